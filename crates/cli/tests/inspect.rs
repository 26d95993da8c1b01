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

/// A scheduler with lines that one CPU reaches, two CPUs reach, and none.
const COVERED: &str = r#"#include <scx/common.bpf.h>

static u64 share(u64 nr)
{
	if (nr > 1000000)
		return 1;
	return nr;
}

static void never(void)
{
	bpf_printk("never");
}

void BPF_STRUCT_OPS(covered_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 sum = 0;

	for (int i = 0; i < 3; i++)
		sum += share(i);
	if (scx_bpf_nr_cpu_ids() == 2) {
		sum += 2;
		sum += 3;
	}
	if (sum == 99)
		never();
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(covered_ops, .enqueue = (void *)covered_enqueue, .name = "covered");
"#;

/// The counts of the lines in LCOV's format.
fn counts(lcov: &str) -> Vec<(u32, u64)> {
    let lines = lcov.lines().filter_map(|line| line.strip_prefix("DA:")?.split_once(','));
    lines.map(|(line, count)| (line.parse().unwrap(), count.parse().unwrap())).collect()
}

#[test]
fn coverage_counts_every_line_with_code() {
    // More tasks than CPUs: tasks that find an idle CPU are not enqueued.
    const WORKLOAD: &str = "hogs:n=4,work=1ms";
    if file("inspect.bpf.c").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, lcov) = (folder.path().join("covered.bpf.c"), folder.path().join("covered.info"));
    std::fs::write(&source, COVERED).unwrap();
    let source = source.to_str().unwrap();
    let option = format!("--coverage={}", lcov.display());
    let found = |cpus: &str, more: &[&str]| {
        let args = ["sim", WORKLOAD, "--cpus", cpus, "--scheduler", source, &option];
        let text = flat(&ok(&[&args[..], more].concat()).stdout);
        (text, counts(&std::fs::read_to_string(&lcov).unwrap()))
    };
    let (text, one) = found("1", &[]);
    let at = |counts: &[(u32, u64)], line: u32| {
        counts.iter().find(|(own, _)| *own == line).map(|(_, count)| *count)
    };
    let calls = at(&one, 17).unwrap();
    assert!(calls >= 2, "{one:?}");
    assert_eq!(
        (at(&one, 20), at(&one, 7), at(&one, 6)),
        (Some(3 * calls), Some(3 * calls), Some(0))
    );
    assert_eq!((at(&one, 22), at(&one, 26), at(&one, 12)), (Some(0), Some(0), Some(0)));
    assert_eq!((at(&one, 2), at(&one, 9)), (None, None), "no code");
    for part in ["line 6, in share", "never was never called", "line 26, in covered_enqueue"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (text, two) = found("2", &["--repetitions", "2"]);
    assert_eq!((at(&two, 22), at(&two, 23)), (at(&two, 17), at(&two, 17)));
    assert!(at(&two, 17) >= Some(2), "both runs count: {two:?}");
    assert!(!text.contains("line 22"), "{text}");
    let plain = ["sim", WORKLOAD, "--cpus", "1", "--scheduler", source, "--json"];
    let mut result: Value =
        serde_json::from_str(&ok(&[&plain[..], &["--coverage"]].concat()).stdout).unwrap();
    assert_eq!(result["coverage"]["files"][0]["functions"][0]["name"], "share");
    result.as_object_mut().unwrap().remove("coverage");
    let without: Value = serde_json::from_str(&ok(&plain).stdout).unwrap();
    assert_eq!(result["measures"], without["measures"], "counting changes no decision");
    let refused = schedlab(&[&plain[..], &["--coverage", "--repetitions", "2"]].concat());
    assert!(refused.code == 2 && refused.stderr.contains("--coverage=FILE"), "{}", refused.stderr);
}
