// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout rule: dependencies between the crates point one way, and a new one is a decision.
//!
//! The lists below are that decision. To add an edge, add it here, with a line in ARCHITECTURE.md.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Allowed dependencies: crate, and the crates it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("schedlab-model", &[]),
    ("schedlab-sched", &["schedlab-model"]),
    ("schedlab-engine", &["schedlab-model", "schedlab-sched"]),
    ("schedlab-workload", &["schedlab-model"]),
    ("schedlab-trace", &["schedlab-model"]),
    ("schedlab-metrics", &["schedlab-model", "schedlab-trace"]),
    ("schedlab-scx", &["schedlab-model", "schedlab-sched"]),
    ("schedlab-run", &["schedlab-model", "schedlab-workload", "schedlab-metrics"]),
    (
        "schedlab-sim",
        &[
            "schedlab-model",
            "schedlab-sched",
            "schedlab-engine",
            "schedlab-workload",
            "schedlab-trace",
            "schedlab-metrics",
            "schedlab-run",
        ],
    ),
    ("schedlab-host", &["schedlab-model", "schedlab-workload", "schedlab-metrics", "schedlab-run"]),
    ("schedlab-guest", &["schedlab-model", "schedlab-trace", "schedlab-run", "schedlab-host"]),
    (
        "schedlab-vm",
        &[
            "schedlab-model",
            "schedlab-workload",
            "schedlab-trace",
            "schedlab-run",
            "schedlab-host",
            "schedlab-guest",
        ],
    ),
    ("schedlab-scx-native", &["schedlab-model", "schedlab-sched", "schedlab-scx"]),
    ("schedlab-lab", &["schedlab-model", "schedlab-workload", "schedlab-metrics", "schedlab-run"]),
    ("schedlab-report", &["schedlab-metrics", "schedlab-run", "schedlab-lab"]),
    (
        "schedlab",
        &[
            "schedlab-model",
            "schedlab-sched",
            "schedlab-engine",
            "schedlab-workload",
            "schedlab-trace",
            "schedlab-metrics",
            "schedlab-run",
            "schedlab-sim",
            "schedlab-lab",
            "schedlab-host",
            "schedlab-vm",
            "schedlab-scx",
            "schedlab-scx-native",
            "schedlab-report",
        ],
    ),
    ("xtask", &[]),
];

/// Dependencies that tests may have beyond those: the worked examples of the textbook schedulers
/// run in the simulator, and so do those of sched_ext; the engine's conformance suite judges traces
/// with the checker and the measures of every lane; plans are tried in the simulator.
const ALLOWED_IN_TESTS: &[(&str, &str)] = &[
    ("schedlab-sched", "schedlab-engine"),
    ("schedlab-engine", "schedlab-trace"),
    ("schedlab-engine", "schedlab-metrics"),
    ("schedlab-scx", "schedlab-engine"),
    ("schedlab-scx", "schedlab-trace"),
    ("schedlab-scx-native", "schedlab-engine"),
    ("schedlab-run", "schedlab-trace"),
    ("schedlab-host", "schedlab-trace"),
    ("schedlab-guest", "schedlab-workload"),
    ("schedlab-lab", "schedlab-sim"),
];

/// Crates of the repository that use one another although no list allows it.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read cargo metadata: {error}"))?;
    Ok(check_metadata(&metadata))
}

fn check_metadata(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_string();
    let members: Vec<String> = packages.iter().map(name).collect();
    let mut problems = Vec::new();
    for package in packages {
        let from = name(package);
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == from) else {
            problems.push(format!("{from}: a crate that xtask/src/layout.rs does not know"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            let to = name(dependency);
            if !members.contains(&to) || to == from || allowed.contains(&to.as_str()) {
                continue;
            }
            let in_tests = dependency["kind"].as_str() == Some("dev");
            if in_tests && ALLOWED_IN_TESTS.contains(&(from.as_str(), to.as_str())) {
                continue;
            }
            let kind = if in_tests { "its tests use" } else { "it uses" };
            problems.push(format!(
                "{from}: {kind} {to}, which the layout does not allow; allowed: {}",
                allowed.join(", ")
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_crates_keep_to_the_layout() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let problems = check(root).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn a_new_edge_is_refused_by_name() {
        let package = |name: &str, uses: &[(&str, Option<&str>)]| {
            let uses: Vec<Value> =
                uses.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
            json!({"name": name, "dependencies": uses})
        };
        let metadata = json!({"packages": [
            package("schedlab-model", &[("serde", None), ("schedlab-sched", Some("dev"))]),
            package("schedlab-sched", &[("schedlab-model", None), ("schedlab-engine", None)]),
            package("schedlab-engine", &[]),
            package("stranger", &[]),
        ]});
        let problems = check_metadata(&metadata);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("schedlab-model: its tests use schedlab-sched"));
        assert!(problems[1].contains("schedlab-sched: it uses schedlab-engine"));
        assert!(problems[2].contains("stranger"));
    }

    /// Every edge goes to a crate that stands earlier, so that no list allows a circle.
    #[test]
    fn the_lists_allow_no_circle() {
        let level = |name: &str| ALLOWED.iter().position(|(known, _)| *known == name);
        for (from, allowed) in ALLOWED {
            for to in *allowed {
                assert!(level(to) < level(from), "{from} -> {to}");
            }
        }
    }
}
