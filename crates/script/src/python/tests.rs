// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies in Python, against the built-in schedulers and against their limits.

use super::*;
use schedlab_core::{Outcome, Request, simulate, simulate_with};
use std::sync::Arc;

fn request(workload: &str, cpus: u32) -> Request {
    let mut request = Request::new(workload, "rr:quantum=4ms");
    request.cpus = Some(cpus);
    request.costs = Some("zero".into());
    request.keep.slices = true;
    request
}

/// Whether this machine can run policies in Python at all; tells the tester if not.
fn is_here(test: &str) -> bool {
    match scheduler("policy.py", &policy("waiting[0]", "")) {
        Err(Error::Unavailable(text)) => {
            schedlab_testing::skip(format!("{test}: {text}"));
            false
        }
        _ => true,
    }
}

fn policy(pick: &str, more: &str) -> String {
    format!(
        "import schedlab\n\nclass Mine(schedlab.Policy):\n\
         \x20   def pick(self, cpu, *, now, waiting):\n\
         \x20       return {pick}\n{more}"
    )
}

const QUANTUM: &str = "    def quantum(self, task):\n        return 4_000_000\n";

fn run(request: &Request, source: &str) -> Result<Outcome, String> {
    let made = scheduler("policy.py", source).map_err(|error| match error {
        Error::Unavailable(text) | Error::Policy(text) => text,
    })?;
    let request = Request { scheduler: "policy.py".into(), ..request.clone() };
    simulate_with(&request, Some(Arc::new(made)), None).map_err(|error| error.one_line())
}

fn fails(source: &str) -> String {
    run(&request("hogs:n=3,work=30ms", 1), source).unwrap_err()
}

#[test]
fn the_first_of_the_waiting_tasks_with_a_quantum_is_round_robin() {
    if !is_here("the_first_of_the_waiting_tasks_with_a_quantum_is_round_robin") {
        return;
    }
    for workload in ["hogs:n=4,work=30ms", "interactive:until=300ms", "queue"] {
        for cpus in [1, 4] {
            let request = request(workload, cpus);
            let built_in = simulate(&request).unwrap();
            let written = run(&request, &policy("waiting[0]", QUANTUM)).unwrap();
            assert_eq!(written.columns.slices, built_in.columns.slices, "{workload}, {cpus} CPUs");
            assert!(written.columns.slices.cpu.len() > 3);
        }
    }
}

#[test]
fn callbacks_see_the_tasks_in_nanoseconds() {
    if !is_here("callbacks_see_the_tasks_in_nanoseconds") {
        return;
    }
    let source = r#"
import schedlab
class Mine(schedlab.Policy):
    def __init__(self):
        self.seen = []
    def enqueue(self, task, *, now, why):
        self.seen.append(f"{why} {task.name} {now}")
        self.ran = task.ran_ns
    def dequeue(self, task, *, now):
        self.seen.append(f"out {task.id} {now}")
    def tick(self, task, *, now, ran_ns):
        return ran_ns >= 8_000_000
    def pick(self, cpu, *, now, waiting):
        if now >= 36_000_000:
            raise RuntimeError(", ".join(self.seen) + f"; {self.ran}")
        return waiting[-1] if now == 0 else waiting[0]
"#;
    let expected = "line 15: RuntimeError: new hog-0 0, new hog-1 0, expired hog-1 8000000, \
                    expired hog-0 16000000, expired hog-1 24000000, expired hog-0 32000000, out 1 \
                    36000000";
    let found = run(&request("hogs:n=2,work=20ms", 1), source).unwrap_err();
    assert!(found.contains("line 15: RuntimeError: new hog-0 0"), "{found}");
    assert!(found.contains(expected), "{found}");
}

#[test]
fn mistakes_are_named_with_their_line() {
    if !is_here("mistakes_are_named_with_their_line") {
        return;
    }
    for (source, expected) in [
        (policy("nothing", ""), "line 5: NameError: name 'nothing' is not defined"),
        (policy("99", ""), "pick returned 99: return one of the waiting tasks, 0"),
        (policy("None", ""), "pick returned None: return a waiting task"),
        (policy("waiting[0]", &QUANTUM.replace("4_", "-4_")), "quantum returned -4000000: return"),
        ("import schedlab\nclass Mine(schedlab.Policy: pass".into(), "line 2: SyntaxError: "),
        ("x = 1".into(), "ValueError: the file has no class of schedlab.Policy"),
        ("import schedlab\nclass Mine(schedlab.Policy): pass".into(), "needs the method pick"),
        (format!("import numpy\n{}", policy("waiting[0]", "")), "line 1: ImportError: a policy"),
        (policy("waiting[0]", "    tick = None\n    def __init__(self):\n        1 / 0\n"), "Zero"),
    ] {
        let found = fails(&source);
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

/// A statement of the policy's text, which ends the run with what it could reach.
fn reached(statement: &str) -> String {
    let text =
        format!("import dataclasses\nsys = dataclasses.sys\nos = sys.modules['os']\n{statement}\n");
    fails(&format!("{text}{}", policy("waiting[0]", "")))
}

#[test]
fn a_policy_reaches_no_file_process_or_network() {
    if !is_here("a_policy_reaches_no_file_process_or_network") {
        return;
    }
    let refused = "PermissionError: [Errno 1]";
    for (statement, expected) in [
        ("os.open('/etc/passwd', os.O_RDONLY)", refused),
        ("os.listdir('/')", refused),
        ("os.stat('/')", refused),
        ("os.fork()", refused),
        ("os.execv('/bin/true', ['true'])", refused),
        ("os.kill(1, 0)", refused),
        ("os.kill(os.getppid(), 9)", refused),
        ("os.mkdir('/tmp/x')", refused),
        ("open('/etc/passwd')", "NameError: name 'open' is not defined"),
        ("sys.modules['resource'].setrlimit(7, (9, 9))", "ValueError: not allowed"),
        ("raise KeyError(sys.modules['ctypes'].CDLL(None).socket(1, 1, 0))", "KeyError: -1"),
        ("os.urandom(3)", refused),
        ("import time", "ImportError: a policy cannot import time: allowed are __future__, bis"),
        ("import os", "ImportError: a policy cannot import os"),
        ("os._exit(0)", "ended its process (exit status: 0)"),
        ("os.write(1, b'nonsense\\n')", "wrote to the descriptor of its answers"),
        ("[0] * 10**9", "MemoryError"),
    ] {
        let found = reached(statement);
        assert!(found.contains(expected), "{statement}: {found}");
    }
}

#[test]
fn hashes_and_random_numbers_are_those_of_every_machine() {
    if !is_here("hashes_and_random_numbers_are_those_of_every_machine") {
        return;
    }
    let source = policy("random.choice(waiting)", QUANTUM).replacen("import", "import random,", 1);
    let slices = |seed| {
        let request = Request { seed, ..request("hogs:n=5,work=30ms", 1) };
        run(&request, &source).unwrap().columns.slices
    };
    assert_eq!(slices(1), slices(1));
    assert_ne!(slices(1), slices(2));
    let words = reached("raise KeyError(list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}))");
    assert_eq!(words, reached("raise KeyError(list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}))"));
    let digest = |source: &str| scheduler("p.py", source).unwrap().digest;
    assert_eq!(digest(&source), digest(&source));
    assert_ne!(digest(&source), digest(&policy("waiting[0]", "")));
}

#[test]
fn nothing_of_a_run_is_left_for_the_next() {
    if !is_here("nothing_of_a_run_is_left_for_the_next") {
        return;
    }
    let source = "import schedlab\nseen = []\nclass Mine(schedlab.Policy):\n\
                  \x20   def pick(self, cpu, *, now, waiting):\n\
                  \x20       seen.append(now)\n        return waiting[len(seen) % len(waiting)]\n";
    let made = Arc::new(scheduler("p.py", source).unwrap());
    let request = Request { scheduler: "p.py".into(), ..request("hogs:n=3,work=30ms", 1) };
    let slices = || simulate_with(&request, Some(Arc::clone(&made)), None).unwrap().columns.slices;
    assert_eq!(slices(), slices());
}
