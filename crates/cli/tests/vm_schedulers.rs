// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which a sched_ext scheduler comes into a guest besides a source: a ready-made
//! object, and a program that loads one. And the warning that a scheduler runs without what its
//! user program sets.
#![cfg(target_os = "linux")]

mod common;
use common::{flat, kernel_ready as ready, schedlab};
use schedlab_host::ext::{self, Build, Source};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNEL: &str = "6.18";

fn json(args: &[&str]) -> Value {
    let done = schedlab(&[args, &["--json"]].concat());
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

fn setting<'r>(run: &'r Value, name: &str) -> &'r str {
    let settings = run["machine"]["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name);
    found.unwrap_or_else(|| panic!("no setting {name}"))["value"].as_str().unwrap()
}

/// This program without what a debugger needs: it loads schedulers, and is small enough.
fn program(dir: &Path) -> Option<PathBuf> {
    let path = dir.join("loader");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(&path)
        .arg(env!("CARGO_BIN_EXE_schedlab"))
        .status()
        .is_ok_and(|status| status.success());
    if !stripped {
        schedlab_testing::skip("no strip (binutils)");
    }
    stripped.then_some(path)
}

#[test]
fn a_program_runs_as_the_scheduler_of_a_guest() {
    let dir = tempfile::tempdir().unwrap();
    if !ready(KERNEL) {
        return;
    }
    let Some(program) = program(dir.path()) else { return };
    let program = program.display();
    let command = format!("{program} load rr --set 'slice=20ms'");
    let base = ["vm", "hogs:n=3,work=50ms", "--kernel", KERNEL];
    let args = [&base[..], &["--scheduler-cmd", &command]].concat();
    let run = json(&args);
    assert_eq!(run["scheduler"], format!("{KERNEL}:{program}"));
    assert_eq!(setting(&run, "vm.sched_ext_after"), "enabled rr");
    assert!(setting(&run, "vm.scheduler_command").ends_with("load rr --set slice=20ms"));
    assert_eq!(setting(&json(&args), "vm.trace"), setting(&run, "vm.trace"), "it repeats");
    // The same scheduler, loaded by the guest's init, gives turns of the same length.
    let own = [&base[..], &["--scheduler", "rr", "--set", "slice=20ms"]].concat();
    let switches =
        |run: &Value| run["measures"]["totals"]["nr_involuntary_switches"].as_u64().unwrap();
    let (mine, theirs) = (switches(&json(&own)), switches(&run));
    assert!(theirs.abs_diff(mine) <= 4, "{theirs} {mine}");
    for task in run["measures"]["tasks"].as_array().unwrap() {
        let cpu_ms = task["cpu_time_ns"].as_u64().unwrap() / 1_000_000;
        assert!((50..60).contains(&cpu_ms), "what init kept for the program costs no task: {task}");
    }
    // Long enough to be still running when a program ends that loads for half a second.
    let long = ["vm", "hogs:n=3,work=1s", "--kernel", KERNEL];
    let fails = |words: &str, code: i32, what: &str| {
        let done = schedlab(&[&long[..], &["--scheduler-cmd", words]].concat());
        assert_eq!(done.code, code, "{words}: {}", done.stderr);
        assert!(flat(&done.stderr).contains(what), "{words}: {}", done.stderr);
    };
    fails(&format!("{program} load cfs"), 1, "no sched_ext scheduler is called \"cfs\"");
    fails(&format!("{program} load rr --duration 500ms"), 1, "ended during the run");
    fails("/bin/sleep 1000", 1, "loaded nothing within 60 s");
    fails("./no-such-program", 2, "no-such-program");
    fails("./x 'y", 2, "a quote ' is not closed");
    let set = schedlab(&[&args[..], &["--set", "slice=1ms"]].concat());
    assert_eq!(set.code, 2);
    assert!(flat(&set.stderr).contains("give them as its arguments"), "{}", set.stderr);
}

#[test]
fn an_object_is_loaded_as_its_source_is() {
    let Ok(object) = ext::object(&Source::parse("rr"), &Build::default()) else {
        return schedlab_testing::skip("this build has no schedulers");
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rr.bpf.o");
    std::fs::write(&path, object).unwrap();
    let path = path.to_str().unwrap();
    let described = schedlab(&["load", path, "--describe"]);
    assert!(described.stdout.contains("Options of rr"), "{}", described.stderr);
    let refused = schedlab(&["sim", "hogs", "--scheduler", path]);
    assert_eq!(refused.code, 2);
    assert!(flat(&refused.stderr).contains("name its .bpf.c"), "{}", refused.stderr);
    if !ready(KERNEL) {
        return;
    }
    let args = ["vm", "hogs:n=2,work=20ms", "--kernel", KERNEL, "--set", "slice=5ms"];
    let of = |scheduler: &str| json(&[&args[..], &["--scheduler", scheduler]].concat());
    let (file, name) = (of(path), of("rr"));
    assert_eq!(setting(&file, "vm.object"), setting(&name, "vm.object"));
    // The name of a file is longer, which moves times by nanoseconds: a task that ends near a tick
    // may need another turn.
    let switches = |run: &Value| run["measures"]["totals"]["nr_switches"].as_u64().unwrap();
    let (file, name) = (switches(&file), switches(&name));
    assert!(file.abs_diff(name) <= 2, "{file} {name}");
}

#[test]
fn a_scheduler_without_its_setup_gets_a_warning() {
    const TABLE: &str = "const volatile u64 cpu_capacity[8];\nconst volatile char prefix[8];\n\
                         const volatile u32 is_fast;\n";
    let source = |table: &str, value: &str| {
        format!(
            "#include \"scx.bpf.h\"\n{table}\
             void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)\n{{\n\
             scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC + {value}, enq_flags);\n}}\n\
             SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");\n\
             char _license[] SEC(\"license\") = \"GPL\";\n"
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bpf.c");
    let file = path.to_str().unwrap();
    let write = |table: &str, value: &str| std::fs::write(&path, source(table, value)).unwrap();
    let warning = |args: &[&str]| {
        let run = json(&[args, &["--scheduler", file]].concat());
        let all = run["warnings"].as_array().unwrap();
        let found = all.iter().find(|found| found["code"] == "scx-no-setup");
        found.map(|found| found["text"].as_str().unwrap().to_owned())
    };
    let sim = ["sim", "hogs:n=2,work=5ms"];
    let vm = ["vm", "hogs:n=2,work=5ms", "--kernel", KERNEL];
    write(TABLE, "cpu_capacity[p->pid & 7] + is_fast + prefix[0]");
    let probe = schedlab(&[&sim[..], &["--scheduler", file]].concat());
    if probe.code == 3 {
        return schedlab_testing::skip(probe.stderr);
    }
    let text = warning(&sim).expect("a table that nobody fills");
    assert!(text.contains("its table cpu_capacity is empty") && text.contains("--scx-setup"));
    let lanes: &[&[&str]] = if ready(KERNEL) { &[&sim, &vm] } else { &[&sim] };
    if lanes.len() == 2 {
        let text = warning(&vm).expect("nobody fills it in a kernel either");
        assert!(text.contains("cpu_capacity is empty") && text.contains("--scheduler-cmd"));
        assert!(text.contains("--scx-setup"), "{text}");
    }
    let setup = dir.path().join("x.setup.toml");
    std::fs::write(&setup, "[variables]\ncpu_capacity = \"true of cpu\"\n").unwrap();
    for lane in lanes {
        assert_eq!(warning(lane), None, "a setup is next to it: {lane:?}");
    }
    std::fs::remove_file(&setup).unwrap();
    // A filled table, a text and a switch that is off need no user program.
    write(
        &TABLE.replace("cpu_capacity[8]", "cpu_capacity[8] = { 1 }"),
        "cpu_capacity[1] + is_fast",
    );
    for lane in lanes {
        assert_eq!(warning(lane), None, "{lane:?}");
    }
}

/// A scheduler whose slice is the sum of what its setup sets in six ways, 4 ms each.
const SET_UP: &str = r#"#include "scx.bpf.h"
struct part { u32 id; u64 ns; };
struct arg { s32 cpu; u64 ns; };
const volatile u64 table[2];
struct part of_bss[2];
u64 before_ns, after_ns;
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2); __type(key, u32);
	 __type(value, u64); } shared SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, u32);
	 __type(value, struct part); } copies SEC(".maps");

SEC("syscall") int before(struct arg *arg)
{
	before_ns = arg->ns;
	return 0;
}

SEC("syscall") int after(struct arg *arg)
{
	after_ns = arg->ns;
	return bpf_get_smp_processor_id() != arg->cpu;
}

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 one = 1, zero = 0;
	u64 *element = bpf_map_lookup_elem(&shared, &one);
	struct part *copy = bpf_map_lookup_elem(&copies, &zero);
	u64 ns = table[1] + of_bss[1].ns + before_ns + after_ns;

	if (element && copy)
		ns += *element + copy->ns;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, ns ?: 100 * NSEC_PER_MSEC, enq_flags);
}

SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = "x");
char _license[] SEC("license") = "GPL";
"#;

const SETUP: &str = r#"
[variables]
table = [0, 4_000_000]
"of_bss[all].ns" = 4_000_000

[[elements]]
map = "shared"
key = [["u32", 1]]
value = [["u64", 4_000_000]]

[[elements]]
map = "copies"
each = "cpu"
key = [["u32", 0]]
members = { ".ns" = 4_000_000 }

[[runs]]
program = "before"
context = [["i32", 0], ["u64", 4_000_000]]

[[runs]]
program = "after"
context = [["i32", "last_cpu"], ["u64", 4_000_000]]
cpu = "last_cpu"
attached = true
"#;

#[test]
fn a_guest_applies_a_setup_as_the_simulator_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, setup) = (path("x.bpf.c"), path("mine.toml"));
    std::fs::write(&file, SET_UP).unwrap();
    std::fs::write(&setup, SETUP).unwrap();
    let workload = "hogs:n=2,work=240ms";
    let sim = ["sim", workload, "--machine", "guest-counted", "--scheduler", &file];
    let vm = ["vm", workload, "--kernel", KERNEL, "--scheduler", &file];
    let probe = schedlab(&sim);
    if probe.code == 3 {
        return schedlab_testing::skip(probe.stderr);
    }
    if !ready(KERNEL) {
        return;
    }
    let switches = |args: &[&str]| {
        let run = json(args);
        let tasks = run["measures"]["tasks"].as_array().unwrap();
        tasks.iter().map(|task| task["nr_involuntary_switches"].as_u64().unwrap()).sum::<u64>()
    };
    let set_up = |lane: &[&str]| switches(&[lane, &["--scx-setup", &setup]].concat());
    let (simulated, found) = (set_up(&sim), set_up(&vm));
    // Slices of 24 ms; if one of the six parts is missing, of 20 ms, and of 100 ms without a setup.
    // Each task's exit, which wakes the launcher, is one more turn.
    assert!((17..=19).contains(&simulated), "{simulated}");
    assert!(found.abs_diff(simulated) <= 1, "{found} in the guest, {simulated} simulated");
    assert!(switches(&vm) <= 6, "without the setup");
    let run = json(&[&vm[..], &["--scx-setup", &setup]].concat());
    assert_eq!(setting(&run, "vm.scheduler_setup"), setup);
    let fails = |text: &str, what: &str| {
        std::fs::write(&setup, text).unwrap();
        let done = schedlab(&[&vm[..], &["--scx-setup", &setup]].concat());
        assert_eq!(done.code, 2, "{text}: {}", done.stderr);
        assert!(flat(&done.stderr).contains(what), "{text}: {}", done.stderr);
    };
    fails("[variables]\nnone = 1\n", "variable none: the scheduler has none");
    fails("[variables]\ntable = [1, 2, 3]\n", "variable table: 3 values for an array of 2");
    fails("[[runs]]\nprogram = \"none\"\n", "there is no program none");
    fails("[[runs]]\nprogram = \"after\"\ncontext = [[\"u64\", 1], [\"u64\", 1]]\n", "returned");
    fails("refuse = \"too young\"\n", "scheduler x: too young");
    let builtin =
        schedlab(&["vm", workload, "--kernel", KERNEL, "--scheduler", "rr", "--scx-setup", &setup]);
    assert_eq!(builtin.code, 2);
}
