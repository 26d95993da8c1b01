// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload file with cpu.max: the simulator keeps the limit, the analysis names it, and
//! schedulers without bandwidth control refuse it.

mod common;
use common::{ok, schedlab};
use serde_json::Value;

/// A hog with a limit of 20 ms in each 100 ms.
const LIMITED: &str = r#"{
  "name": "limited",
  "global": { "duration": "1s" },
  "cgroups": { "/batch": { "weight": 50, "cpu_max": { "quota": "20ms", "period": "100ms" } } },
  "tasks": { "hog": { "taskgroup": "/batch", "run": 10000 } }
}"#;

fn limited() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limited.json");
    std::fs::write(&path, LIMITED).unwrap();
    let path = path.to_str().unwrap().to_string();
    (folder, path)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).expect("the output is JSON")
}

#[test]
fn a_limited_group_runs_within_its_limit() {
    let (_folder, path) = limited();
    let base = ["sim", path.as_str(), "--cpus", "1", "--costs", "zero", "--json", "--analysis"];
    let args = [&base[..], &["--starved-after", "50ms", "--scheduler", "linux-6.1"]].concat();
    let run = json(&args);
    let hog = &run["measures"]["tasks"][0];
    // The periods begin at multiples of 100 ms; 20 ms are five ticks.
    assert_eq!(hog["cpu_time_ns"], 200_000_000, "{hog}");
    assert_eq!(hog["run_delay_ns"], 800_000_000, "{hog}");
    let starved = &run["analysis"]["starved"];
    assert_eq!(starved["count"], 10, "{starved}");
    assert_eq!(starved["longest"][0]["cause"], "throttled", "{starved}");
    assert_eq!(starved["longest"][0]["ns"], 80_000_000, "{starved}");
    for name in ["linux-6.6", "linux-6.12", "linux-6.18", "linux-7.1"] {
        let run = json(&[&base[..], &["--scheduler", name]].concat());
        let ran = run["measures"]["tasks"][0]["cpu_time_ns"].as_u64().unwrap();
        // The first period can begin at any time.
        assert!((196_000_000..=224_000_000).contains(&ran), "{name}: {ran} ns");
    }
}

#[test]
fn the_result_has_what_the_kernels_cpu_stat_says() {
    let (_folder, path) = limited();
    let base = ["sim", path.as_str(), "--cpus", "1", "--costs", "zero"];
    let args = [&base[..], &["--scheduler", "linux-6.1"]].concat();
    let run = json(&[&args[..], &["--json"]].concat());
    let groups = run["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{groups:?}");
    let group = &groups[0];
    assert_eq!(group["path"], "/batch");
    // The last period ends with the run, so it is incomplete. In each of ten periods the hog lost
    // 80 ms.
    assert_eq!((&group["nr_periods"], &group["nr_throttled"]), (&9.into(), &9.into()), "{group}");
    assert_eq!(group["throttled_ns"], 800_000_000, "{group}");
    let shown = ok(&args).stdout;
    let line = "group /batch: throttled at the end of 9 of 9 periods, for 800.0 ms in all";
    assert!(shown.contains(line), "{shown}");
    // No limit, no group.
    let run = json(&["sim", "hogs:n=2,work=10ms", "--cpus", "1", "--json"]);
    assert!(run.get("groups").is_none(), "{run}");
}

/// At 20 ms the scheduler stops choosing the hog; the answer names the reason.
#[test]
fn explain_names_what_is_throttled() {
    let (_folder, path) = limited();
    let base = ["explain", path.as_str(), "--cpus", "1", "--costs", "zero", "--at", "20ms"];
    let shown = ok(&[&base[..], &["--scheduler", "linux-6.1"]].concat()).stdout;
    assert!(shown.contains("throttled"), "{shown}");
}

#[test]
fn the_slice_is_a_tunable_and_others_refuse_the_limit() {
    let (_folder, path) = limited();
    let slice = "sched_cfs_bandwidth_slice_us=20000";
    let args = ["sim", &path, "--cpus", "1", "--costs", "zero", "--json", "--set", slice];
    let run = json(&[&args[..], &["--scheduler", "linux-6.1"]].concat());
    assert_eq!(run["measures"]["tasks"][0]["cpu_time_ns"], 200_000_000);
    for name in ["rr", "linux-2.6.22", "wrr"] {
        let done = schedlab(&["sim", &path, "--scheduler", name]);
        assert_ne!(done.code, 0, "{name}");
        let words: Vec<&str> = done.stderr.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.contains("/batch") && text.contains("leaves out cpu.max"), "{name}: {text}");
    }
}
