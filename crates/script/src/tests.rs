// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies in JavaScript, against the built-in schedulers and against their limits.

use super::*;
use schedlab_core::{Outcome, Request, simulate, simulate_with};

const WORKLOADS: [&str; 3] = ["hogs:n=4,work=30ms", "interactive:until=300ms", "queue"];

fn request(workload: &str, cpus: u32) -> Request {
    let mut request = Request::new(workload, "rr:quantum=4ms");
    request.cpus = Some(cpus);
    request.costs = Some("zero".into());
    request.keep.slices = true;
    request
}

fn run(request: &Request, source: &str) -> Result<Outcome, String> {
    let made = scheduler("policy.js", source)?;
    let request = Request { scheduler: "policy.js".into(), ..request.clone() };
    simulate_with(&request, Some(Arc::new(made)), None).map_err(|error| error.one_line())
}

fn fails(source: &str) -> String {
    run(&request("hogs:n=3,work=30ms", 1), source).unwrap_err()
}

#[test]
fn the_first_of_the_waiting_tasks_with_a_quantum_is_round_robin() {
    let source = "policy({ pick: (cpu, waiting) => waiting[0], quantum: () => 4 });";
    for workload in WORKLOADS {
        for cpus in [1, 2, 4] {
            let request = request(workload, cpus);
            let built_in = simulate(&request).unwrap();
            let written = run(&request, source).unwrap();
            assert_eq!(written.columns.slices, built_in.columns.slices, "{workload}, {cpus} CPUs");
            assert!(written.columns.slices.cpu.len() > 3);
        }
    }
}

#[test]
fn callbacks_see_the_tasks_in_milliseconds() {
    let source = r#"
let seen = [];
policy({
  enqueue(task, why, now) { seen.push(`${why} ${task.name} ${now}`); },
  pick: (cpu, waiting, now) => {
    if (now === 30) throw new Error(seen.join(", ") + "; " + waiting[0].ran);
    return waiting[0].id;
  },
  quantum: () => 10,
});"#;
    let expected = "line 6: Error: new hog-0 0, new hog-1 0, new hog-2 0, expired hog-0 10, \
                    expired hog-1 20, expired hog-2 30; 10";
    assert!(fails(source).contains(expected), "{}", fails(source));
}

#[test]
fn a_tick_ends_a_turn() {
    let with = |ticks: &str| {
        let source = format!("policy({{ pick: (cpu, waiting) => waiting[0]{ticks} }});");
        run(&request("hogs:n=2,work=20ms", 1), &source).unwrap().columns.slices.cpu.len()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with(", tick: (task, ran) => ran >= 8"), 6, "20 ms are turns of 8, 8 and 4 ms");
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (source, expected) in [
        ("policy({\n  pick() { return nothing; },\n});", "line 2: ReferenceError: nothing is not"),
        ("policy({ pick: () => 99 });", "pick returned 99: return one of the waiting tasks, hog"),
        ("policy({ pick: (c, w) => w[0], quantum: () => -1 });", "quantum returned -1: return"),
        ("policy({ pick: (c, w) => w[0], later() {} });", "knows no callback later: allowed are"),
        ("let x = 1;", "the policy has no pick"),
        ("\npolicy({", "line 2: SyntaxError"),
        ("policy({ pick: 3 });", "the policy has no pick"),
        ("policy({ pick: (c, w) => w[0] }); x = 1;", "line 1: ReferenceError"),
        ("policy({ pick: () => { throw 3; } });", "3"),
    ] {
        assert!(fails(source).contains(expected), "{source}: {}", fails(source));
    }
}

#[test]
fn a_policy_reaches_nothing_but_its_run() {
    for name in ["Date", "performance", "WeakRef", "console", "process", "require", "std", "os"] {
        let source = format!("policy({{ pick: () => {name}.x }});");
        let expected = format!("{name} is not defined");
        assert!(fails(&source).contains(&expected), "{name}: {}", fails(&source));
    }
    assert!(fails("schedlabHost.pick = () => 0; policy({ pick: () => 0 });").contains("TypeError"));
    let import = fails("import('fs').then(() => 0); policy({ pick: () => 7 });");
    assert!(import.contains("pick returned 7"), "{import}");
}

#[test]
fn endless_loops_and_large_objects_end_the_run() {
    let endless = fails("policy({ pick() { for (;;); } });");
    assert!(endless.contains("pick did not return after 20000000 steps"), "{endless}");
    let endless = fails("for (;;);");
    assert!(endless.contains("the policy's text did not return after"), "{endless}");
    let large =
        fails("const all = []; policy({ pick() { for (;;) all.push('x'.repeat(1e6)); } });");
    assert!(large.contains("pick needs more than 64 MiB of memory"), "{large}");
    let deep = fails("policy({ pick: function again() { return again(); } });");
    assert!(deep.contains("Maximum call stack size exceeded"), "{deep}");
    let text = "x".repeat(SOURCE_BYTES_MAX + 1);
    assert!(scheduler("p.js", &text).unwrap_err().contains("allowed are 1048576"));
}

#[test]
fn random_numbers_belong_to_the_seed() {
    let source = "policy({ quantum: () => 1,\
                  pick: (cpu, waiting) => waiting[Math.floor(Math.random() * waiting.length)] });";
    let drawn = |seed| {
        let request = Request { seed, ..request("hogs:n=4,work=30ms", 1) };
        run(&request, source).unwrap().columns.slices.task
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn another_text_is_another_scheduler() {
    let digest = |source| scheduler("p.js", source).unwrap().digest;
    let (one, other) = ("policy({ pick: (c, w) => w[0] });", "policy({ pick: (c, w) => w[1] });");
    assert_eq!(digest(one), digest(one));
    assert_ne!(digest(one), digest(other));
    assert!(scheduler("p.js", one).unwrap().scx_digest().is_none());
}
