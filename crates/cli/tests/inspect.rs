// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sim --printk --maps`: what a .bpf.c printed, and its maps and variables; and the warning about
//! a run that is too short to see a stall.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{flat, ok, schedlab};
use schedlab_testing::skip;
use serde_json::Value;
use std::path::Path;

fn file(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scx-native/tests/native");
    let path = root.canonicalize().unwrap().join(name).display().to_string();
    let probe = schedlab(&["sim", "hogs", "--scheduler", &path, "--until", "1ms"]);
    if probe.code == 3 {
        skip(&probe.stderr);
        return None;
    }
    Some(path)
}

fn sim<'a>(scheduler: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let workload = "hogs:n=3,work=10ms";
    [&["sim", workload, "--cpus", "2", "--scheduler", scheduler][..], more].concat()
}

#[test]
fn lines_and_maps_follow_the_tables() {
    let Some(inspect) = file("inspect.bpf.c") else { return };
    let text = ok(&sim(&inspect, &["--printk=2", "--maps"])).stdout;
    for part in [
        "\nbpf_printk:\n  swapper/0-0 [000] 0.000000000: ops.enqueue: enqueue hog-2 pid 1002 flags",
        "[000] 0.004000000: ops.tick: \\u{1b}[31mtick\\n  fake-1 [000] line ",
        " more lines after the first 2; --printk=",
        "  runs (HASH, 1 element)\n    {pid = 1002, kind = 2, pad = 0}: 1\n",
        "  counts (ARRAY, 100 elements, 99 all zero)\n    7: -1\n",
        "  slice_ns = 5000000 (option)\n",
        "  title = \"ab\\\"c\"\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(ok(&sim(&inspect, &["--printk=2", "--maps"])).stdout, text);
    let plain = ok(&sim(&inspect, &[])).stdout;
    assert!(text.starts_with(&plain), "{plain}");
}

#[test]
fn json_has_them_beside_the_result() {
    let Some(inspect) = file("inspect.bpf.c") else { return };
    let more = ["--printk", "--maps=stats,nr_enqueued", "--json"];
    let result: Value = serde_json::from_str(&ok(&sim(&inspect, &more)).stdout).unwrap();
    let schema = serde_json::from_str(&ok(&["schema", "inspected"]).stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    schema.validate(&result).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result["measures"]["tasks"].as_array().unwrap().len(), 3);
    let line = &result["printk"]["lines"][0];
    assert_eq!((&line["callback"], &line["pid"]), (&"ops.enqueue".into(), &0.into()));
    let state = &result["state"];
    assert_eq!(state["maps"][0]["elements"][0]["value"], serde_json::json!([1, 0]));
    assert_eq!(state["variables"][0]["value"], 1);
    let mut broken = result.clone();
    broken["printk"]["lines"][0]["cpu"] = "none".into();
    assert!(!schema.is_valid(&broken));
}

#[test]
fn a_run_that_fails_shows_them_on_stderr() {
    let Some(inspect) = file("inspect.bpf.c") else { return };
    let more = ["--until", "1s", "--set", "crash=true", "--printk", "--maps", "--json"];
    let mut args = sim(&inspect, &more);
    args[1] = "hogs:n=6,work=100ms";
    let done = schedlab(&args);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""));
    assert!(done.stderr.contains("  nr_enqueued = 4\n"), "{}", done.stderr);
    assert!(done.stderr.contains("ops.enqueue: enqueue hog-2"), "{}", done.stderr);
    assert!(flat(&done.stderr).contains("ops.enqueue failed"), "{}", done.stderr);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let Some(inspect) = file("inspect.bpf.c") else { return };
    for (args, expected) in [
        (sim(&inspect, &["--maps=statts"]), "did you mean `stats`?"),
        (sim(&inspect, &["--maps", "--repetitions", "2"]), "here are 2 runs"),
        (sim("rr", &["--printk"]), "rr is no .bpf.c"),
        (sim(&inspect, &["--printk=many"]), "invalid value 'many'"),
    ] {
        let done = schedlab(&args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_run_too_short_to_see_a_stall_is_told() {
    let Some(_) = file("inspect.bpf.c") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forgets.bpf.c").display().to_string();
    let text = "#include <scx/common.bpf.h>\n\
                void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f)\n\
                { if (p->pid != 1002) scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, f); }\n\
                SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");\n";
    std::fs::write(&path, text).unwrap();
    let run = |until| schedlab(&["sim", "hogs:n=3,work=60s", "-S", &path, "--until", until]);
    let short = run("3s");
    assert_eq!(short.code, 0, "{}", short.stderr);
    let words: Vec<&str> = short.stderr.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("scx-short-run") || text.contains("hog-2[1002] had waited"), "{text}");
    assert!(text.contains("--until 46s"), "{text}");
    let long = run("46s");
    assert_eq!(long.code, 1, "{}", long.stderr);
    assert!(long.stderr.contains("hog-2[1002] failed to run for"), "{}", long.stderr);
}
