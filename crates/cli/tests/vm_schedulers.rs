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
    let fails = |words: &str, code: i32, what: &str| {
        let done = schedlab(&[&base[..], &["--scheduler-cmd", words]].concat());
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
    }
    let setup = dir.path().join("x.setup.toml");
    std::fs::write(&setup, "[variables]\ncpu_capacity = \"true of cpu\"\n").unwrap();
    assert_eq!(warning(&sim), None, "a setup is next to it");
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
