// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--scheduler ./my_sched.bpf.c`: compiles sched_ext schedulers for this machine and simulates
//! them, those of the repository and third-party ones.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{Done, command, done, flat, ok, schedlab};
use schedlab_testing::skip;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn own(name: &str) -> String {
    root().join("crates/scx-native/tests/native").join(name).display().to_string()
}

fn has_clang() -> bool {
    let probe = schedlab(&["sim", "hogs", "--scheduler", &own("weighted.bpf.c"), "--until", "1ms"]);
    if probe.code == 3 {
        skip(&probe.stderr);
    }
    probe.code != 3
}

fn refused(args: &[&str]) -> String {
    let done = schedlab(args);
    assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
    flat(&done.stderr)
}

fn sim(scheduler: &str, more: &[&str]) -> Done {
    let mut args = vec!["sim", "hogs:n=6,work=40ms", "--scheduler", scheduler];
    args.extend(more);
    ok(&args)
}

#[test]
fn a_file_is_a_scheduler_whose_options_are_tunables() {
    if !has_clang() {
        return;
    }
    let weighted = own("weighted.bpf.c");
    let run = |set: &str| sim(&weighted, &["--cpus", "2", "--slices", "--set", set]).stdout;
    let plain = run("fifo=false");
    assert_eq!(run("fifo=0"), plain);
    let short = run("slice_ns=4000000");
    assert_ne!(short, plain);
    for same in ["slice=4ms", "slice_ns=4ms"] {
        assert_eq!(run(same), short, "{same}");
    }
    let unknown = refused(&["sim", "hogs", "--scheduler", &weighted, "--set", "slces=1"]);
    assert!(unknown.contains("\"slces\" is unknown"), "{unknown}");
    assert!(unknown.contains("fifo, mode, nr_cpu_ids, slice_ns"), "{unknown}");
    let bad = refused(&["sim", "hogs", "--scheduler", &weighted, "--set", "mode=FASTER"]);
    assert!(bad.contains("allowed are PLAIN, FANCY"), "{bad}");
}

#[test]
fn runs_repeat_to_the_byte_and_stand_beside_others() {
    if !has_clang() {
        return;
    }
    let weighted = own("weighted.bpf.c");
    let both = format!("{weighted},rr");
    let run = |threads: &str| {
        let more = ["--cpus", "2", "--repetitions", "4", "--json", "--keep", "-j", threads];
        sim(&both, &more).stdout
    };
    let one = run("1");
    assert_eq!(run("8"), one);
    assert!(one.contains("weighted.bpf.c"), "{one}");
    let compared = ok(&["compare", "hogs:n=3", "--scheduler", &both]).stdout;
    assert!(compared.contains("rr"), "{compared}");
    let told = ok(&["explain", "hogs:n=3", "--scheduler", &weighted, "--at", "30ms"]).stdout;
    assert!(!told.is_empty());
    let bench = ok(&["bench", "J8", "--scheduler", &weighted, "--until", "1s", "--json"]).stdout;
    assert!(bench.contains("\"nr_switches\": 1"), "{bench}");
}

/// CPU time (s) that the measured process spent before the run.
fn start_up_cpu_s(scheduler: &str, cache: &Path) -> f64 {
    let args = ["bench", "J1", "--scheduler", scheduler, "--until", "100ms", "--json"];
    let output = command().env("SCHEDLAB_CACHE", cache).args(args).output().unwrap();
    let done = done(&output);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    result["start_up_cpu_s"].as_f64().unwrap()
}

#[test]
fn a_benchmark_does_not_count_what_clang_needs() {
    if !has_clang() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let [first, second] = [(); 2].map(|()| start_up_cpu_s(&own("weighted.bpf.c"), cache.path()));
    // Clang needs some hundred milliseconds, loading what it has made less than ten.
    assert!(first > 0.0 && first < 5.0 * second, "{first} and {second} s");
}

#[test]
fn a_large_machine_is_no_obstacle() {
    if !has_clang() {
        return;
    }
    let done = ok(&[
        "sim",
        "hogs:n=1500,work=10ms",
        "--cpus",
        "1024",
        "--scheduler",
        &own("weighted.bpf.c"),
    ]);
    assert!(done.stdout.contains("1024 CPUs"), "{}", done.stdout);
}

#[test]
fn what_cannot_be_compiled_or_bound_is_refused_and_faults_are_errors_of_the_run() {
    if !has_clang() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.bpf.c");
    let file = path.display().to_string();
    let scheduler = |body: &str| {
        let text = format!(
            "#include <scx/common.bpf.h>\nvoid scx_bpf_teleport(struct task_struct *p) __ksym;\n\
             void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f) {{ {body} }}\n\
             SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");\n"
        );
        fs::write(&path, text).unwrap();
    };
    scheduler("p->shoe_size = 1;");
    let text = refused(&["sim", "hogs", "--scheduler", &file]);
    assert!(text.contains("x.bpf.c:3:67: error: no member named 'shoe_size'"), "{text}");
    scheduler("scx_bpf_teleport(p);");
    let text = refused(&["sim", "hogs", "--scheduler", &file]);
    assert!(text.contains("calls what the simulator does not have: scx_bpf_teleport"), "{text}");
    scheduler("*(volatile int *)0 = 1;");
    let done = schedlab(&["sim", "hogs", "--scheduler", &file]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let text = flat(&done.stderr);
    assert!(text.contains("ops.enqueue failed: it followed a null pointer"), "{text}");
    let text = refused(&["sim", "hogs", "--scheduler", "./nowhere.bpf.c"]);
    assert!(text.contains("cannot read the scheduler ./nowhere.bpf.c"), "{text}");
}

#[test]
fn the_repositorys_schedulers_run() {
    if !has_clang() {
        return;
    }
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("bpf/scx"))
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    files.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    files.sort();
    for path in files {
        for cpus in ["1", "4"] {
            let done = sim(&path.display().to_string(), &["--cpus", cpus, "--json"]);
            assert!(done.stdout.contains("\"nr_switches\""), "{}", path.display());
        }
    }
}

/// The kernel's examples run unmodified, if they were fetched
/// (scripts/fetch-sched-ext-examples.sh).
#[test]
fn the_kernels_examples_run_unmodified() {
    let Some(directory) = std::env::var_os("SCHEDLAB_SCHED_EXT_EXAMPLES") else {
        return skip(
            "SCHEDLAB_SCHED_EXT_EXAMPLES names no directory with them, and `cargo xtask test` \
             found no package linux-source-6.12",
        );
    };
    let mut nr_run = 0;
    for tree in fs::read_dir(directory).unwrap() {
        let tree = tree.unwrap().path();
        for name in ["simple", "qmap", "central", "flatcg", "cpu0", "sdt"] {
            let path = tree.join(format!("scx_{name}.bpf.c"));
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if text.contains("SCX_OPS_CID_DEFINE") {
                eprintln!("note: {} is written for CPUs by topological number", path.display());
                continue;
            }
            let path = path.display().to_string();
            let one = sim(&path, &["--cpus", "4", "--json", "--keep"]).stdout;
            assert_eq!(sim(&path, &["--cpus", "4", "--json", "--keep"]).stdout, one);
            nr_run += 1;
        }
    }
    assert!(nr_run > 0, "there is no example");
}

/// Unpacks a package of the registry; `None` if it is unavailable.
fn package(name: &str, version: &str, into: &Path) -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // `cargo info` only downloads the package.
    let wanted = format!("{name}@{version}");
    let info = Command::new(cargo).args(["info", &wanted]).current_dir(into).output().ok()?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let file = format!("{name}-{version}.crate");
    let mut caches = fs::read_dir(home.join("registry/cache")).ok()?.flatten();
    let archive = caches.find_map(|cache| {
        let path = cache.path().join(&file);
        path.is_file().then_some(path)
    });
    let Some(archive) = archive else {
        skip(format!("{wanted}: {}", String::from_utf8_lossy(&info.stderr)));
        return None;
    };
    let unpacked = Command::new("tar").arg("xzf").arg(archive).current_dir(into).status().ok()?;
    unpacked.success().then(|| into.join(format!("{name}-{version}")))
}

/// A production scheduler with its own headers runs as published.
#[test]
fn a_published_scheduler_runs_unmodified() {
    if !has_clang() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (Some(headers), Some(bpfland)) = (
        package("scx_cargo", "1.1.4", directory.path()),
        package("scx_bpfland", "1.1.4", directory.path()),
    ) else {
        return;
    };
    let headers = headers.join("bpf_h").display().to_string();
    let source = bpfland.join("src/bpf/main.bpf.c").display().to_string();
    let more = ["--cpus", "4", "--scx-include", &headers, "--json", "--keep"];
    let one = sim(&source, &more).stdout;
    assert!(one.contains("\"nr_switches\""), "{one}");
    assert_eq!(sim(&source, &more).stdout, one);
}

/// An experiment file names a scheduler file by a path relative to itself. The scheduler's code is
/// part of the identity of a stored run.
#[test]
fn an_experiment_file_names_a_scheduler_file() {
    if !has_clang() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let source = fs::read_to_string(own("weighted.bpf.c")).unwrap();
    fs::write(path("mine.bpf.c"), &source).unwrap();
    let experiment = |scheduler: &str| {
        format!(
            "name = 'mine'\n[[experiment]]\nname = 'pair'\nworkload = 'hogs:n=3,work=40ms'\n\
             [[experiment.runs]]\nlane = 'sim'\nschedulers = ['rr', '{scheduler}']\n"
        )
    };
    fs::write(path("mine.toml"), experiment("./mine.bpf.c")).unwrap();
    let (file, results) = (path("mine.toml"), path("results"));
    let sweep = || ok(&["compare", &file, "--output", &results, "--json"]);
    let first = sweep();
    assert!(first.stdout.contains("mine.bpf.c"), "{}", first.stdout);
    let again = sweep();
    assert_eq!(again.stdout, first.stdout);
    assert!(again.stderr.contains("2 are stored"), "{}", again.stderr);

    fs::write(path("mine.bpf.c"), format!("/* a remark changes nothing */ {source}")).unwrap();
    assert!(sweep().stderr.contains("2 are stored"));
    let other = source.replacen("slice_ns = 5000000", "slice_ns = 2000000", 1);
    assert_ne!(other, source);
    fs::write(path("mine.bpf.c"), other).unwrap();
    let changed = refused(&["compare", &file, "--output", &results]);
    assert!(changed.contains("the results of another experiment"), "{changed}");
    let anew = ok(&["compare", &file, "--output", &results, "--json", "--fresh"]);
    assert_ne!(anew.stdout, first.stdout);

    fs::write(path("mine.toml"), experiment("./missing.bpf.c")).unwrap();
    let missing = refused(&["compare", &file, "--output", &results]);
    assert!(missing.contains("missing.bpf.c") && missing.contains(":7:"), "{missing}");
}

/// Under a sched_ext scheduler, each choice names the task's queue, which task or CPU put it there,
/// and which tasks waited behind it.
#[test]
fn sched_ext_schedulers_are_explained_by_their_queues() {
    if !has_clang() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx");
    let file = folder.join("vtime.bpf.c").display().to_string();
    let run = ["explain", "sched:n=5,total=80ms", "--cpus", "2", "--scheduler", &file];
    let answer = ok(&[&run[..], &["--from", "0ms", "--to", "1s", "--json"]].concat()).stdout;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let number = |candidate: &Value, name: &str| {
        let facts = candidate["facts"].as_array().unwrap();
        facts.iter().find(|fact| fact["name"] == name).map(|fact| fact["value"].clone())
    };
    let (mut nr_queued, mut nr_waiting) = (0, 0);
    for decision in answer["decisions"].as_array().unwrap() {
        let Some(contest) = decision["contests"]
            .as_array()
            .unwrap()
            .iter()
            .find(|contest| contest["class"] == "ext" && contest["rule"] != "empty")
        else {
            continue;
        };
        let candidates = contest["candidates"].as_array().unwrap();
        let Some(chosen) = candidates.iter().find(|candidate| candidate["chosen"] == true) else {
            assert!(decision["next"].is_null() || contest["rule"] == "held-back", "{decision}");
            continue;
        };
        assert_eq!(chosen["task"], decision["next"], "{decision}");
        if chosen["running"] == true {
            assert_eq!(contest["rule"], "keeps", "{contest}");
            continue;
        }
        assert_eq!(number(chosen, "position"), Some(0.into()), "{chosen}");
        let Some(from) = number(chosen, "from_dsq") else { continue };
        nr_queued += 1;
        assert_eq!(number(chosen, "put_by"), Some("ops.enqueue".into()), "{chosen}");
        assert_eq!(number(chosen, "moved_by"), Some("ops.dispatch".into()), "{chosen}");
        // It is the first of its queue by virtual time.
        let key = number(chosen, "dsq_vtime").unwrap().as_i64().unwrap();
        for other in candidates.iter().filter(|other| number(other, "dsq") == Some(from.clone())) {
            nr_waiting += 1;
            assert!(number(other, "dsq_vtime").unwrap().as_i64().unwrap() >= key, "{contest}");
        }
    }
    assert!(nr_queued > 5 && nr_waiting > 5, "{nr_queued} {nr_waiting}");
    let waits = ok(&[&run[..], &["--task", "child-1"]].concat());
    assert!(waits.stdout.contains("from_dsq"), "{}", waits.stdout);
}
