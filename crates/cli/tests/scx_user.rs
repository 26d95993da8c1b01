// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sim --scx-user`: a user program goes on deciding in simulated time. The program of the tests is
//! `user_half/tuner.c`, its scheduler `user_half/knob.bpf.c`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{Done, flat, schedlab};
use schedlab_testing::skip;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The folder of the sources.
fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/user_half"))
}

/// Compiles the user program; `None`: this machine lacks a compiler or a kernel's types.
fn tuner(folder: &Path) -> Option<String> {
    let program = folder.join("tuner");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(sources().join("tuner.c"));
    match compiler.status() {
        Ok(status) => assert!(status.success(), "tuner.c does not compile"),
        Err(_) => {
            skip("no cc in PATH");
            return None;
        }
    }
    let got = schedlab(&["kernel", "get", "6.18"]);
    if got.code == 3 {
        skip(got.stderr);
        return None;
    }
    assert_eq!(got.code, 0, "{}", got.stderr);
    Some(program.display().to_string())
}

/// Simulates under knob.bpf.c; `None`: this machine has no namespaces or filters for that.
fn simulate(more: &[&str]) -> Option<Done> {
    let source = sources().join("knob.bpf.c").display().to_string();
    let base = ["sim", "hogs:n=2,work=1s", "--cpus", "1", "--scheduler", &source];
    let done = schedlab(&[&base[..], more].concat());
    if done.code == 3 {
        skip(done.stderr);
        return None;
    }
    Some(done)
}

/// The final value of a variable in the JSON of a run.
fn variable(run: &Value, name: &str) -> u64 {
    let all = run["state"]["variables"].as_array().unwrap();
    let found = all.iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{name}"));
    found["value"].as_u64().unwrap_or_else(|| panic!("{found}"))
}

#[test]
fn a_user_program_decides_in_simulated_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = tuner(folder.path()) else { return };
    let shown = ["--json", "--maps"];
    let options = [&shown[..], &["--scx-user", &program]].concat();
    let Some(done) = simulate(&options) else { return };
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    // A look each 25 ms for 2 s, and the wait for the CPU until the two hogs have had a slice each.
    let looks = variable(&run, "nr_looks");
    assert!((50..80).contains(&looks), "{looks}");
    // 10 ms before the attach, 1 ms after four looks, doubled by a program after eight.
    assert_eq!(variable(&run, "slice_knob"), 2_000_000);
    assert_eq!(variable(&run, "nr_advised"), looks / 4);
    // At HZ 250 a slice of less than 4 ms lasts one tick.
    let seen = variable(&run, "nr_seen");
    assert!((450..700).contains(&seen), "{seen} enqueues");
    // Each 64th enqueue is a record, which the program answers.
    let (events, orders) = (variable(&run, "nr_events"), variable(&run, "nr_orders"));
    assert!(events >= 7 && (events - 1..=events).contains(&orders), "{orders} of {events}");
    // Without the program nothing of this happens.
    let alone = simulate(&shown).unwrap();
    let alone: Value = serde_json::from_str(&alone.stdout).unwrap();
    assert_eq!((variable(&alone, "slice_knob"), variable(&alone, "nr_looks")), (0, 0));
    assert!(!done.stderr.contains("scx-no-setup"), "{}", done.stderr);
    assert!(done.stdout.contains("\"tuner\""), "the program is a task of the run");
    let settings = run["machine"]["settings"].as_array().unwrap();
    let step = settings.iter().find(|setting| setting["name"] == "user_half.step").unwrap();
    assert_eq!(step["value"], "20us");
}

#[test]
fn two_runs_with_a_user_program_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = tuner(folder.path()) else { return };
    let options = ["--slices", "--scx-user", &program, "--scx-user-cost", "50us"];
    let Some(first) = simulate(&options) else { return };
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.lines().count() > 400);
    for _ in 0..2 {
        let again = simulate(&options).unwrap();
        assert!(first.stdout == again.stdout, "two runs differ");
    }
    let cheaper = simulate(&["--slices", "--scx-user", &program]).unwrap();
    assert_ne!(first.stdout, cheaper.stdout, "the cost of a step counts");
}

#[test]
fn user_programs_that_end_are_errors_with_their_output() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = tuner(folder.path()) else { return };
    let command = format!("{program} exit");
    let Some(done) = simulate(&["--scx-user", &command]) else { return };
    let error = flat(&done.stderr);
    assert_eq!(done.code, 1, "{error}");
    assert!(error.contains("tuner ended (exit status: 3)"), "{error}");
    // Its clock is that of the simulation.
    assert!(error.contains(" output: 1000.1"), "{error}");
    let early = simulate(&["--scx-user", "sh -c 'echo nothing to load; exit 4'"]).unwrap();
    let error = flat(&early.stderr);
    assert_eq!(early.code, 2, "{error}");
    assert!(error.contains("sh ended (exit status: 4) before it attached a scheduler"), "{error}");
    assert!(error.ends_with("nothing to load"), "{error}");
}

/// Directory with user programs, and that of the schedulers' sources, as in `scx_setup.rs`. The
/// kernel's scx_userland is built by its own tools/sched_ext/Makefile.
const PROGRAMS: &str = "SCHEDLAB_SCX_PROGRAMS";
const SOURCES: &str = "SCHEDLAB_SCX_SCHEDULERS";

/// Published user programs that decide after the attach: name, source, arguments, machine,
/// workload, and the map or variable that shows it.
const PUBLISHED: [(&str, &str, &str, &str, &str, &str); 3] = [
    (
        "scx_userland",
        "kernel/linux-source-7.2/scx_userland.bpf.c",
        "",
        "laptop",
        "hogs:n=20,work=50ms",
        "nr_user_enqueues",
    ),
    (
        "scx_rustland",
        "registry/scx_rustland_core-2.4.15/assets/bpf/main.bpf.c",
        "",
        "laptop",
        "hogs:n=40,work=200ms",
        "nr_user_dispatches",
    ),
    (
        "scx_rusty",
        "registry/scx_rusty-1.1.4/src/bpf/main.bpf.c",
        "--interval 0.2 --greedy-threshold 0",
        "server-2x32",
        "hogs:n=150",
        "stats",
    ),
];

/// RUSTY_STAT_LOAD_BALANCE: tasks that the user program has moved to another domain.
const MOVED: u64 = 13;

#[test]
fn published_user_programs_decide_after_the_attach() {
    let (Some(programs), Some(sources)) = (std::env::var_os(PROGRAMS), std::env::var_os(SOURCES))
    else {
        return skip(format!("{PROGRAMS} and {SOURCES} name no directories"));
    };
    let include = Path::new(&sources).join("registry/include").display().to_string();
    let mut nr = 0;
    for (name, source, args, machine, workload, shown) in PUBLISHED {
        let (program, source) = (Path::new(&programs).join(name), Path::new(&sources).join(source));
        if !program.is_file() || !source.is_file() {
            continue;
        }
        nr += 1;
        let (user, source) =
            (format!("{} {args}", program.display()), source.display().to_string());
        let maps = format!("--maps={shown}");
        let base = ["sim", workload, "--until", "3s", "--machine", machine, "--json", &maps];
        let more = ["--scheduler", &source, "--scx-user", &user];
        let own = ["--scx-include", &include];
        let own = if name == "scx_userland" { &own[..0] } else { &own[..] };
        let run = || schedlab(&[&base[..], &more, own].concat());
        let first = run();
        assert_eq!(first.code, 0, "{name}: {}", first.stderr);
        assert!(first.stdout == run().stdout, "{name}: two runs differ");
        let result: Value = serde_json::from_str(&first.stdout).unwrap();
        if shown == "stats" {
            let elements = result["state"]["maps"][0]["elements"].as_array().unwrap();
            assert!(elements.iter().any(|one| one["key"] == MOVED), "{elements:?}");
        } else {
            assert!(variable(&result, shown) > 10, "{name} decides dispatches");
        }
    }
    if nr == 0 {
        skip("there are no user programs");
    }
}

#[test]
fn user_programs_belong_to_one_source() {
    for (args, wanted) in [
        (vec!["--scx-user", "./x"], "a user program belongs to one .bpf.c"),
        (vec!["--scheduler", "./a.bpf.c,./b.bpf.c", "--scx-user", "./x"], "to one .bpf.c"),
        (vec!["--scheduler", "./a.bpf.c", "--scx-user", " "], "there is no program"),
        (vec!["--scheduler", "./a.bpf.c", "--scx-user", "'a"], "a quote ' is not closed"),
        (vec!["--scx-user-cost", "1ms"], "--scx-user"),
    ] {
        let done = schedlab(&[&["sim", "hogs"][..], &args].concat());
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(flat(&done.stderr).contains(wanted), "{args:?}: {}", done.stderr);
    }
}
