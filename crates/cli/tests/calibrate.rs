// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab calibrate` on the machine that runs the tests, and the simulator's use of its file.

mod common;
use common::{ok, schedlab};
use serde_json::Value;
use std::collections::BTreeMap;

/// A simulation uses the costs of the file, and a round over two pipes takes their sum.
#[test]
fn a_simulation_pays_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("costs.txt");
    let path = file.to_str().unwrap();
    let done = ok(&["calibrate", "--repetitions", "6", "--output", path, "--json"]);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let costs: BTreeMap<String, u64> = serde_json::from_value(found["costs"].clone()).unwrap();
    assert!(costs.len() >= 11 && costs["pipe_ns"] > costs["syscall_ns"], "{costs:?}");

    let figures = found["figures"].as_array().unwrap();
    for figure in figures {
        let (name, median) = (figure["name"].as_str().unwrap(), figure["median_ns"].as_u64());
        if let Some(cost) = costs.get(name) {
            let raised = name == "migration_llc_ns" && Some(*cost) > median;
            assert!(Some(*cost) == median || raised, "{figure}");
        }
        assert!(!figure["method"].as_str().unwrap().is_empty(), "{figure}");
        let noise = figure["noise"].as_str().unwrap();
        assert!(["quiet", "noisy", "unreliable"].contains(&noise), "{figure}");
        // On a busy machine not every yield switches; then fewer measurements give a value.
        if figure["nr_repetitions"] == 6 {
            let end = |index: usize| figure["ci95_ns"][index].as_u64().unwrap();
            assert!((end(0)..=end(1)).contains(&median.unwrap()), "{figure}");
        }
    }
    for name in ["syscall_ns", "pipe_ns", "socket_ns", "fork_ns"] {
        assert!(figures.iter().any(|figure| figure["name"] == name), "{name}");
    }

    let text = std::fs::read_to_string(&file).unwrap();
    let of_file: BTreeMap<String, u64> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, rest) = line.split_once(" = ").unwrap();
            (name.into(), rest.split_whitespace().next().unwrap().parse().unwrap())
        })
        .collect();
    assert_eq!(of_file, costs, "{text}");
    assert!(text.contains("pick_entry_ns = 20  # not measured"), "{text}");
    assert!(text.contains("6 repetitions"), "{text}");

    let rounds = 1_000;
    let ring = format!("token_ring:n=2,size=0,rounds={rounds}");
    let sim = ok(&["sim", &ring, "--scheduler", "rr", "--costs", path, "--json"]);
    let run: Value = serde_json::from_str(&sim.stdout).unwrap();
    let settings = run["machine"]["settings"].as_array().unwrap();
    for (name, cost) in &costs {
        let wanted = format!("costs.{name}");
        let setting = settings.iter().find(|setting| setting["name"] == *wanted).unwrap();
        assert_eq!(setting["value"], cost.to_string(), "{name}");
    }
    let hop = 2 * costs["pipe_ns"] + costs["wakeup_ns"] + costs["context_switch_ns"];
    let took = run["measures"]["totals"]["end_ns"].as_u64().unwrap();
    // In addition to the hops, the time contains ticks, the copy of a byte, the start and the end.
    let ticks = (took / 4_000_000 + 1) * costs["tick_ns"];
    let others = ticks + costs["idle_exit_ns"] + 2 * rounds * 8 + 20 * hop;
    let hops = 2 * rounds * hop;
    assert!((hops..hops + others).contains(&took), "{took} for hops of {hop}");
}

#[test]
fn repetitions_have_bounds() {
    for count in ["0", "61", "x"] {
        let done = schedlab(&["calibrate", "--repetitions", count]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{}", done.stderr);
    }
}
