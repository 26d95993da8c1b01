// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload file with sessions: they share the CPU where autogroup is set, and the host lane
//! refuses them.

mod common;
use common::{ok, schedlab};
use serde_json::Value;

const DESKTOP: &str = r#"{
  "name": "desktop",
  "global": { "duration": "4s" },
  "sessions": { "player": { "nice": 0 } },
  "tasks": {
    "make": { "session": "build", "instance": 3, "run": 10000 },
    "player": { "session": "player", "run": 10000 }
  }
}"#;

#[test]
fn sessions_share_the_cpu_where_autogroup_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("desktop.json");
    std::fs::write(&path, DESKTOP).unwrap();
    let path = path.to_str().unwrap();
    let base = ["sim", path, "--cpus", "1", "--costs", "zero", "--scheduler", "linux-6.12"];
    let share = |more: &[&str]| {
        let run = ok(&[&base[..], &["--json", "--analysis"], more].concat()).stdout;
        let run: Value = serde_json::from_str(&run).expect("the output is JSON");
        let tasks = run["measures"]["tasks"].as_array().unwrap();
        let player = tasks.iter().find(|task| task["name"] == "player").unwrap();
        player["cpu_time_ns"].as_u64().unwrap() / 40_000_000
    };
    assert!((24..=26).contains(&share(&[])), "{}", share(&[]));
    let with = share(&["--set", "sched_autogroup_enabled=1"]);
    assert!((49..=51).contains(&with), "{with}");
    let refused =
        schedlab(&["sim", path, "--scheduler", "rr", "--set", "sched_autogroup_enabled=1"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let host = schedlab(&["run", path]);
    assert_ne!(host.code, 0, "{}", host.stdout);
    assert!(host.stderr.contains("one session"), "{}", host.stderr);
}
