// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab scx verify`: verdicts of a real kernel's verifier on schedulers, good ones and those
//! with a mistake each, and what the simulator says of them before and after.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{command, done, flat, kernel_ready, schedlab};
use serde_json::Value;
use std::path::{Path, PathBuf};

const KERNEL: &str = "6.18";

fn bad(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx/bad");
    dir.join(format!("{name}.bpf.c")).display().to_string()
}

/// The verdict on one scheduler, and the exit code.
fn verdict(file: &str, more: &[&str]) -> (Value, i32) {
    let done = schedlab(&[&["scx", "verify", file, "--kernel", KERNEL, "--json"], more].concat());
    let all: Value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{file}: {error}: {}", done.stderr));
    (all[0].clone(), done.code)
}

/// Mistake, the program with it, words of the reason, the code at which it shows.
const MISTAKES: [(&str, &str, &str, &str); 6] = [
    ("rejected", "rejected_enqueue", "invalid mem access 'map_value_or_null'", "*nr += 1;"),
    ("use-after-release", "use_after_release_enqueue", "invalid mem access 'scalar'", "leader->st"),
    ("leaked-reference", "leaked_reference_enqueue", "would lead to reference leak", ""),
    ("endless-loop", "endless_loop_enqueue", "infinite loop detected", "while (*(volatile"),
    ("unbounded-loop", "unbounded_loop_enqueue", "too large. Processed 1000001", "for (round"),
    ("out-of-bounds", "out_of_bounds_enqueue", "unbounded min value", "nr_enqueued[p->pid]++;"),
];

#[test]
fn each_mistake_is_refused_with_its_line_of_source() {
    if !kernel_ready(KERNEL) {
        return;
    }
    for (file, program, reason, code) in MISTAKES {
        let (found, exit) = verdict(&bad(file), &[]);
        assert_eq!(exit, 1, "{file}");
        let programs = found["programs"].as_array().unwrap();
        for other in programs {
            let is_bad = other["program"] == program;
            assert_eq!(other["refusal"].is_object(), is_bad, "{file}: {other}");
            assert!(other["nr_insns"].as_u64().unwrap() > 0, "{file}: {other}");
        }
        let refusal =
            &programs.iter().find(|found| found["program"] == program).unwrap()["refusal"];
        assert!(refusal["reason"].as_str().unwrap().contains(reason), "{file}: {refusal}");
        let place = refusal["at"]["place"].as_str().unwrap();
        assert!(place.starts_with(&format!("{file}.bpf.c:")), "{place}");
        assert!(refusal["at"]["code"].as_str().unwrap().contains(code), "{file}: {refusal}");
        assert!(!refusal["log"].as_array().unwrap().is_empty());
    }
    let (leak, _) = verdict(&bad("leaked-reference"), &[]);
    let taken = &leak["programs"][0]["refusal"]["acquired_at"]["code"];
    assert!(taken.as_str().unwrap().contains("bpf_task_from_pid"), "{taken}");
}

#[test]
fn an_accepted_scheduler_has_figures_and_the_same_ones_again() {
    if !kernel_ready(KERNEL) {
        return;
    }
    let done = schedlab(&["scx", "verify", "fifo", "--kernel", KERNEL]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("fifo on 6.18.") && done.stdout.contains(": accepted"));
    let rows: Vec<&str> = done.stdout.lines().filter(|line| line.contains(" accepted ")).collect();
    assert!(rows.len() > 5 && rows.iter().all(|row| row.contains(" B ")), "{}", done.stdout);
    let (stored, _) = verdict("fifo", &[]);
    let (again, exit) = verdict("fifo", &["--again"]);
    assert_eq!((&stored, exit), (&again, 0), "a counted clock repeats");
    let (wide, _) = verdict("fifo", &["--set", "tick_ns=1000000"]);
    assert_eq!(wide["object_sha256"], stored["object_sha256"]);
}

/// The compilers of PATH that are named `clang-N`, oldest first.
fn compilers() -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &String| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    (14..=30).map(|version| format!("clang-{version}")).filter(is_there).collect()
}

/// Compilers differ in what they make of the same source, and a verifier may refuse what one of
/// them made: clang 19 once merged two returns from a loop with arithmetic on a pointer.
#[test]
fn what_any_installed_compiler_makes_of_the_schedulers_is_accepted() {
    if !kernel_ready(KERNEL) {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx");
    let sources: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|path| path.ends_with(".bpf.c"))
        .collect();
    assert!(sources.len() >= 8, "{sources:?}");
    let compilers = compilers();
    if compilers.is_empty() {
        schedlab_testing::skip("no clang-N is installed");
    }
    for clang in compilers {
        let mut verify = command();
        verify.env("SCHEDLAB_CLANG", &clang).args(["scx", "verify", "--kernel", KERNEL]);
        let done = done(&verify.args(&sources).output().unwrap());
        assert_eq!(done.code, 0, "{clang}: {}{}", done.stdout, done.stderr);
    }
}

/// A scheduler that no test has seen before.
fn new_scheduler(dir: &Path, body: &str) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let text = format!(
        "#include \"scx.bpf.h\"\nu64 salt = {}ull;\n\
         void BPF_STRUCT_OPS(new_enqueue, struct task_struct *p, u64 enq_flags)\n{{\n{body}\n\
         scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC + (salt & 1), enq_flags);\n}}\n\
         SCX_OPS_DEFINE(new_ops, .enqueue = (void *)new_enqueue, .name = \"new\");\n\
         char _license[] SEC(\"license\") = \"GPL\";\n",
        now.as_nanos() as u64
    );
    let path = dir.join("new.bpf.c");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_simulator_says_what_no_kernel_has_verified() {
    if !kernel_ready(KERNEL) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let good = new_scheduler(dir.path(), "");
    let good = good.to_str().unwrap();
    let warnings = |file: &str| {
        let done = schedlab(&["sim", "hogs:n=2,work=5ms", "--scheduler", file, "--json"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let run: Value = serde_json::from_str(&done.stdout).unwrap();
        let all = run["warnings"].as_array().unwrap().clone();
        let scx = all.iter().filter(|found| found["code"].as_str().unwrap().starts_with("scx-"));
        scx.map(|found| format!("{}: {}", found["code"], found["text"])).collect::<Vec<_>>()
    };
    let before = warnings(good);
    assert!(before.len() == 1 && before[0].contains("scx-not-verified"), "{before:?}");
    assert_eq!(verdict(good, &[]).1, 0);
    assert_eq!(warnings(good), [""; 0]);
    // Another program with a mistake that the simulator does not see.
    let bad = new_scheduler(dir.path(), "if (p->pid < 0) for (;;) salt++;");
    let bad = bad.to_str().unwrap();
    assert!(warnings(bad)[0].contains("scx-not-verified"));
    assert_eq!(verdict(bad, &[]).1, 1);
    let after = warnings(bad);
    assert!(after.len() == 1 && after[0].contains("scx-refused"), "{after:?}");
    assert!(after[0].contains("6.18.") && after[0].contains("new_enqueue"), "{after:?}");
    assert_eq!(warnings("rr"), [""; 0], "a scheduler of this program");
}

/// The verifier sees the constants that a scheduler has in a run: one that loops for ever with its
/// own constant is accepted with its setup, which is next to the source or named.
#[test]
fn a_setup_is_applied_before_the_verifier_looks() {
    if !kernel_ready(KERNEL) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = new_scheduler(dir.path(), "if (is_endless) for (;;) salt++;");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("u64 salt", "const volatile bool is_endless = 1;\nu64 salt"),
    )
    .unwrap();
    let file = path.to_str().unwrap();
    let (without, exit) = verdict(file, &[]);
    assert_eq!((&without["setup"], exit), (&Value::Null, 1), "{without}");
    let setup = dir.path().join("mine.toml");
    std::fs::write(&setup, "[variables]\nis_endless = false\n").unwrap();
    let (named, exit) = verdict(file, &["--scx-setup", setup.to_str().unwrap()]);
    assert_eq!((&named["setup"], exit), (&Value::from(setup.to_str().unwrap()), 0), "{named}");
    std::fs::copy(&setup, dir.path().join("new.setup.toml")).unwrap();
    let done = schedlab(&["scx", "verify", file, "--kernel", KERNEL]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("new.setup.toml) on 6.18."), "{}", done.stdout);
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let refused = |args: &[&str], words: &str| {
        let done = schedlab(&[&["scx", "verify"], args].concat());
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        let text = flat(&done.stderr);
        assert!(text.contains(words), "{args:?}: {text}");
    };
    refused(&[], "required");
    if !kernel_ready(KERNEL) {
        return;
    }
    refused(&["./none.bpf.c", "--kernel", KERNEL], "no such file");
    refused(&["cfs", "--kernel", KERNEL], "known: fifo, rr");
    refused(&["rr", "--kernel", "9.9"], "no kernel is called");
    refused(&["rr", "--kernel", KERNEL, "--set", "slize=1"], "no option \"slize\"");
    refused(&["rr", "--kernel", KERNEL, "--scx-setup", "x.toml"], "rr is built in and needs none");
    let dir = tempfile::tempdir().unwrap();
    let good = new_scheduler(dir.path(), "");
    let (good, wrong) = (good.to_str().unwrap(), dir.path().join("wrong.toml"));
    std::fs::write(&wrong, "[variables]\nslice = 1\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    refused(
        &[good, "--kernel", KERNEL, "--scx-setup", wrong],
        "variable slice: the scheduler has none",
    );
    let text = dir.path().join("x.bpf.o");
    std::fs::write(&text, "no object").unwrap();
    refused(&[text.to_str().unwrap(), "--kernel", KERNEL], "no BPF object");
}
