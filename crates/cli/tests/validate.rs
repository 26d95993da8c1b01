// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab validate`: compares hogs under the kernels' own CFS and EEVDF in guests with the
//! models, and with models that are wrong on purpose. Without QEMU, the guest's init or a kernel,
//! the tests are skipped.

mod common;
use common::{Done, kernel_ready, schedlab};
use serde_json::Value;
use std::path::Path;

/// Hogs, and two tasks with different nice values. It is short: five runs of a kernel take a few
/// seconds.
const FILE: &str = r#"
name = "hogs"
[[pair]]
kernel = "KERNEL"
model = "MODEL"
[[lane]]
name = "vm"
machine = "guest-counted"
cpus = [1]
repetitions = 5
shift = { from = "20us", to = "80us", count = 1 }
[[experiment]]
name = "hogs"
text = "Four equal tasks that compute."
tasks = '''
{
  "global": { "duration": "300ms" },
  "tasks": {
    "hog": {
      "instance": 4, "loop": 1,
      "sleep": { "distribution": "uniform", "low": 0, "high": "8ms" }, "run": "10s"
    }
  }
}
'''
[[experiment]]
name = "pair"
text = "Two tasks that compute, with nice values 0 and 5."
parameters = { nice = 5 }
tasks = '''
{
  "global": { "duration": "300ms" },
  "tasks": {
    "heavy": { "loop": 1, "run": "10s" },
    "light": { "priority": {nice}, "loop": 1, "run": "10s" }
  }
}
'''
[[claim]]
id = "cpu_share"
text = "Tasks get the same share."
[claim.pairs]
what = "share"
experiment = "pair"
value = "cpu_share"
within = { difference = 0.03 }
why = "the run is short: a slice is 1.3 points"
[[claim.control]]
experiment = "pair"
model = "rr"
why = "equal shares"
[[claim.knob]]
experiment = "pair"
name = "nice"
values = [0, 5, 10]
[[claim]]
id = "nr_switches"
text = "Tasks are switched out as often."
[claim.pairs]
what = "switches"
experiment = "hogs"
value = "nr_voluntary_switches + nr_involuntary_switches"
within = { part = 0.2 }
floor = 10
why = "a run has some 19 a task"
[[claim.control]]
experiment = "hogs"
model = "rr"
set = { quantum = "8ms" }
why = "slices of two ticks"
[[claim.knob]]
experiment = "hogs"
name = "hz"
values = [100, 250, 1000]
[[claim]]
id = "slices"
text = "Tasks take turns in the same order."
[claim.pairs]
what = "slices equal"
experiment = "hogs"
slices = { gap_ns = 400_000, shortest_ns = 300_000, within_ns = 4_000_000 }
within = { difference = 0.2 }
why = "two that change places are two of 75, and the next ones follow"
[[claim.control]]
experiment = "hogs"
model = "rr"
set = { quantum = "12ms" }
why = "slices of three ticks"
[[claim.knob]]
experiment = "hogs"
name = "hz"
values = [100, 250, 1000]
"#;

/// Validates a model against hogs under a kernel.
fn hogs(dir: &Path, kernel: &str, model: &str, more: &[&str]) -> Done {
    let file = dir.join("hogs.toml");
    std::fs::write(&file, FILE.replace("KERNEL", kernel).replace("MODEL", model)).unwrap();
    let output = dir.join("out");
    let args = ["validate", file.to_str().unwrap(), "--output", output.to_str().unwrap()];
    schedlab(&[&args[..], more].concat())
}

/// Checks that the kernel's own scheduler is within the tolerances of its model, and outside those
/// of wrong models.
fn agrees(kernel: &str, model: &str) {
    if !kernel_ready(kernel) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let done = hogs(dir.path(), kernel, model, &["--json"]);
    let found: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let checks =
        || found.as_array().unwrap().iter().flat_map(|claim| claim["checks"].as_array().unwrap());
    let of = |kind: &str| -> Vec<&Value> {
        checks().filter(|check| check["pair"]["kind"] == kind).collect()
    };
    let compared = of("agrees");
    let workloads: Vec<&Value> = compared.iter().map(|check| &check["pair"]["workload"]).collect();
    assert_eq!(workloads, ["pair", "hogs", "hogs"]);
    for check in &compared {
        assert_eq!((&check["nr_runs"], &check["scheduler"]), (&10.into(), &kernel.into()));
        let units = check["pair"]["units"].as_array().unwrap();
        assert!(units.iter().all(|unit| unit["variation"].is_number()), "{check}");
    }
    for equal in compared[2]["pair"]["slices"].as_array().unwrap() {
        assert!((65..90).contains(&equal["nr_kernel"].as_u64().unwrap()), "{equal}");
    }
    assert_eq!((of("rejects").len(), of("moves").len()), (3, 3));
    assert!(checks().all(|check| check["answer"] == "holds"), "{found:#}");
    assert!(found.as_array().unwrap().iter().all(|claim| claim["verdict"] == "holds"));
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn linux_6_1_agrees_with_its_model() {
    agrees("6.1", "linux-6.1");
}

#[test]
fn linux_6_12_agrees_with_its_model() {
    agrees("6.12", "linux-6.12");
}

#[test]
fn linux_6_18_agrees_with_its_model() {
    agrees("6.18", "linux-6.18.44");
}

#[test]
fn a_wrong_model_fails_by_name_and_stored_runs_are_not_run_again() {
    if !kernel_ready("6.12") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let first = hogs(dir.path(), "6.12", "fcfs", &["--details"]);
    let wrong = |done: &Done| {
        assert_eq!(done.code, 1, "{}", done.stderr);
        let words = done.stderr.split_whitespace().filter(|word| *word != "\u{2502}");
        let text = words.collect::<Vec<_>>().join(" ");
        for metric in ["hogs under 6.12 (vm, 1 CPU): nr_switches", "CPU): slices", "cpu_share"] {
            assert!(text.contains(metric), "{metric}: {text}");
        }
    };
    wrong(&first);
    assert!(first.stdout.contains("FAILS"), "{}", first.stdout);
    let again = hogs(dir.path(), "6.12", "fcfs", &["--details"]);
    wrong(&again);
    assert!(again.stderr.contains("are stored in"), "{}", again.stderr);
    assert_eq!(first.stdout, again.stdout);
    let written = std::fs::read_to_string(dir.path().join("out/claims.json")).unwrap();
    let schema: Value = serde_json::from_str(&schedlab(&["schema", "claims"]).stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let found: Value = serde_json::from_str(&written).unwrap();
    assert!(schema.is_valid(&found), "{written}");
    let tables = std::fs::read_to_string(dir.path().join("out/tables.md")).unwrap();
    assert!(tables.contains("| hogs | 6.12 | fcfs | vm, 1 CPU |"), "{tables}");
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for wanted in ["FAILS", "rr quantum=12ms", "slices of three ticks", "--details", "6.12."] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("about these results"), "tasks are meant to be cut off");
}

/// Two random workloads in each half.
const CASES: &str = r#"
name = "random"
[[pair]]
kernel = "6.12"
model = "linux-6.12"
wrong = "linux-6.1"
[[measure]]
what = "share"
value = "cpu_share"
within = { difference = 0.01 }
why = "a point"
[[cases]]
name = "few"
machine = "guest-counted"
duration = "100ms"
shift = { from = "20us", to = "80us", count = 2 }
development = [1003, 1004]
held_out = [1005, 1006]
"#;

#[test]
fn random_workloads_of_a_half_are_compared_and_stored() {
    if !kernel_ready("6.12") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cases.toml");
    std::fs::write(&file, CASES).unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (output, stored) = (path("out"), path("figures.json"));
    let run = |half: &str| {
        let file = file.to_str().unwrap();
        let of = ["validate", file, "--cases", half, "--output", &output, "--store", &stored];
        schedlab(&[&of[..], &["--json"]].concat())
    };
    for half in ["development", "held-out"] {
        let done = run(half);
        let found: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        let kernel = &found["kernels"][0];
        assert_eq!(
            (&kernel["half"], &kernel["nr_cases"]),
            (&half.into(), &2.into()),
            "{}",
            done.stderr
        );
        let all = &kernel["figures"]["all"];
        let counts = ["within", "by_variation", "by_switches", "outside"]
            .map(|key| all[key].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), 2, "{all}");
        let schema: Value =
            serde_json::from_str(&schedlab(&["schema", "agreement"]).stdout).unwrap();
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&found), "{found:#}");
    }
    let text = std::fs::read_to_string(&stored).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["kernels"].as_array().unwrap().len(), 2, "both halves: {text}");
    assert!(Path::new(&output).join("cases/few-1005.json").exists());
    let tables = std::fs::read_to_string(Path::new(&output).join("agreement.md")).unwrap();
    assert!(tables.contains("**few, held-out half**"), "{tables}");
}

/// On this machine nothing is certain about the figures, but every case is run or named.
#[test]
fn random_workloads_run_on_this_machine() {
    if !schedlab_host::lane::may_set_policies() {
        return;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let series: Vec<&str> = release.trim().split('.').take(2).collect();
    let series = series.join(".");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cases.toml");
    std::fs::write(&file, CASES.replacen("6.12", &series, 1)).unwrap();
    let (file, output) = (file.to_str().unwrap(), dir.path().join("out"));
    let of = ["validate", file, "--cases", "held-out", "--lane", "host", "--json"];
    let done = schedlab(&[&of[..], &["--output", output.to_str().unwrap()]].concat());
    let found: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let kernel = &found["kernels"][0];
    assert_eq!((&kernel["lane"], &kernel["kernel"]), (&"host".into(), &series.as_str().into()));
    let nr_missing = found["not_compared"].as_array().map_or(0, Vec::len);
    assert_eq!(kernel["nr_runs"], 3 * (2 - nr_missing), "{found:#}: {}", done.stderr);
    let typical = kernel["typical"]["share"]["variation"].as_f64();
    assert_eq!(typical.is_some(), nr_missing < 2, "{found:#}");
}

#[test]
fn what_cannot_be_validated_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        let out = dir.path().join("out");
        let given = [&["validate", "--output", out.to_str().unwrap()], args].concat();
        let done = schedlab(&given);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        for word in words {
            assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
        }
        assert!(!out.exists(), "nothing is written");
    };
    refused(&["--lane", "sim"], &["vm, host"]);
    refused(&["--repetitions", "4"], &["5.."]);
    refused(&["--kernel", "6.13"], &["6.13", "6.12"]);
    refused(&["no-such-file.toml"], &["no-such-file.toml"]);
    refused(&["--cases", "all"], &["development and held-out"]);
    refused(&["--cases", "held-out", "--only", "two-cpus"], &["two-cpus", "one-cpu"]);
    refused(&["--only", "one-cpu"], &["--cases"]);
    let file = dir.path().join("wrong.toml");
    std::fs::write(&file, FILE.replace("difference = 0.03", "difference = 0.0")).unwrap();
    refused(&[file.to_str().unwrap()], &["wrong.toml:46", "`within` is 0"]);
    let alone = "name='a'\n[[experiment]]\nname='a'\nworkload='hogs'\n[[experiment.runs]]\n\
                 lane='sim'\nschedulers=['rr']\n";
    std::fs::write(&file, alone).unwrap();
    refused(&[file.to_str().unwrap()], &["compares no pairs", "schedlab reproduce"]);
    std::fs::write(&file, FILE.replace("\"MODEL\"", "\"linux-9\"")).unwrap();
    refused(&[file.to_str().unwrap()], &["linux-9"]);
}
