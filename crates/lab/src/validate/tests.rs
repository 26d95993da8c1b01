// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judging runs that are made by hand.

use super::*;
use crate::axis::{SeedRange, Seeds};
use crate::claims::Reason;
use crate::study::ExperimentSpec;
use crate::{Experiment, ExperimentResult};
use schedlab_metrics::TaskMeasures;
use schedlab_run::LaneKind::{self, Host, Sim, Vm};
use schedlab_run::RunResult;
use std::collections::BTreeMap;

const FILE: &str = r#"
name = "v"
[slices]
gap_ns = 1
shortest_ns = 1
within_ns = 1
[[pair]]
kernel = "6.12"
model = "linux-6.12"
[[pair]]
kernel = "6.18"
model = "linux-6.18"
[[lane]]
name = "vm"
machine = "laptop"
cpus = [1]
repetitions = 5
[[lane]]
name = "host"
machine = "host"
cpus = [1, 2]
repetitions = 7
cpu_time_least = 0.9
[[metric]]
name = "run_delay_ns"
within = 1.25
floor = 1000
why = "w"
[[workload]]
name = "hogs"
text = "t"
metrics = ["run_delay_ns"]
parameters = { n = 2 }
tasks = '{ "tasks": { "hog": { "instance": {n}, "loop": 1, "run": "1s" } } }'
[[control]]
metric = "run_delay_ns"
workload = "hogs"
model = "rr"
set = { slice = "9ms" }
why = "w"
[[sweep]]
metrics = ["run_delay_ns"]
workload = "hogs"
knob = "n"
values = [1, 2]
"#;

fn validation() -> Validation {
    Validation::parse(FILE).unwrap()
}

fn vm() -> Wanted {
    Wanted { lanes: vec![Vm], kernels: vec!["6.12".into()], ..Wanted::default() }
}

/// Five runs with these delays.
fn runs(lane: LaneKind, scheduler: &str, delays: [u64; 5]) -> Vec<RunResult> {
    let run = |(seed, run_delay_ns): (u64, u64)| {
        let mut run = RunResult {
            lane: lane.into(),
            scheduler: scheduler.into(),
            seed,
            ..RunResult::default()
        };
        run.measures.tasks =
            vec![TaskMeasures { name: "hog-0".into(), run_delay_ns, ..Default::default() }];
        run.measures.totals.cpu_time_ns = 100;
        run
    };
    (1..).zip(delays).map(run).collect()
}

/// What is found of these runs of the study's experiments, by their names.
fn found(wanted: &Wanted, mut runs: BTreeMap<&str, Vec<RunResult>>) -> ValidationResult {
    let validation = validation();
    let made = validation.study(wanted).unwrap();
    let result = |spec: &ExperimentSpec| ExperimentResult {
        experiment: Experiment { name: spec.name.clone(), ..Experiment::default() },
        runs: runs.remove(spec.name.as_str()).unwrap_or_default(),
    };
    let results: Vec<ExperimentResult> = made.study.experiments.iter().map(result).collect();
    assert!(runs.is_empty(), "no experiment is called {:?}", runs.keys());
    judge(&validation, &made, &results)
}

/// The kernel's delays are about 10,000; those of model, wrong model and knob as given.
fn judged(model: [u64; 5], wrong: u64, knob: u64) -> ValidationResult {
    let kernel = [10_000, 10_100, 9_900, 10_050, 9_950];
    let own = [runs(Vm, "6.12", kernel), runs(Sim, "linux-6.12", model)].concat();
    let runs = BTreeMap::from([
        ("hogs vm 1", own),
        ("hogs vm 1 control rr slice=9ms", runs(Sim, "rr", [wrong; 5])),
        ("hogs vm 1 n=1", runs(Sim, "linux-6.12", [10_000; 5])),
        ("hogs vm 1 n=2", runs(Sim, "linux-6.12", [knob; 5])),
    ]);
    found(&vm(), runs)
}

fn verdict(found: &ValidationResult) -> Verdict {
    found.comparisons[0].metrics[0].verdict
}

fn reason(found: &ValidationResult) -> Option<Reason> {
    found.comparisons[0].metrics[0].reason.clone()
}

#[test]
fn a_model_within_the_tolerance_is_within_and_one_without_is_outside() {
    let found = judged([10_400; 5], 30_000, 30_000);
    assert_eq!(verdict(&found), Verdict::Within, "{found:?}");
    let unit = &found.comparisons[0].metrics[0].units[0];
    assert!((unit.deviation - 1.04).abs() < 0.001 && unit.ci95[0] < unit.ci95[1], "{unit:?}");
    let less = judged([7_000; 5], 30_000, 30_000);
    assert_eq!(verdict(&less), Verdict::Outside);
    assert_eq!(less.with(Verdict::Outside), ["hogs under 6.12 (vm, 1 CPU): run_delay_ns"]);
}

#[test]
fn a_tolerance_within_the_interval_cannot_be_told() {
    let found = judged([10_000, 15_000, 10_000, 15_000, 12_000], 30_000, 30_000);
    assert_eq!(verdict(&found), Verdict::Inconclusive);
    assert_eq!(reason(&found), Some(Reason::ToleranceAcross("hog-0".into())));
}

#[test]
fn a_metric_that_accepts_a_wrong_model_or_that_nothing_moves_says_nothing() {
    let accepting = judged([10_000; 5], 10_500, 30_000);
    assert_eq!(verdict(&accepting), Verdict::DoesNotDiscriminate);
    let (model, workload) = ("rr slice=9ms".into(), "hogs".into());
    assert_eq!(reason(&accepting), Some(Reason::Accepts { model, workload }));
    let still = judged([10_000; 5], 30_000, 10_500);
    assert_eq!(verdict(&still), Verdict::DoesNotDiscriminate);
    assert!(!still.sweeps[0].moves && still.controls[0].is_rejected);
    // What is outside stays so.
    assert_eq!(verdict(&judged([90_000; 5], 10_000, 10_000)), Verdict::Outside);
}

#[test]
fn without_a_wrong_model_agreement_says_nothing() {
    let own = [runs(Vm, "6.12", [9_999; 5]), runs(Sim, "linux-6.12", [9_999; 5])].concat();
    let found = found(&vm(), BTreeMap::from([("hogs vm 1", own)]));
    assert_eq!(verdict(&found), Verdict::DoesNotDiscriminate);
    assert_eq!(found.missing.len(), 1, "{:?}", found.missing);
}

#[test]
fn a_task_that_only_one_has_cannot_be_compared() {
    let mut kernel = runs(Vm, "6.12", [10_000; 5]);
    kernel[2].measures.tasks[0].name = "hog-7".into();
    let own = [kernel, runs(Sim, "linux-6.12", [10_000; 5])].concat();
    let found = found(&vm(), BTreeMap::from([("hogs vm 1", own)]));
    assert_eq!(verdict(&found), Verdict::Inconclusive);
    assert_eq!(reason(&found), Some(Reason::NotInBoth { unit: "hog-0".into() }));
}

#[test]
fn runs_of_a_machine_that_others_use_say_nothing() {
    let wanted =
        Wanted { lanes: vec![Host], host_release: Some("6.18.5-x".into()), ..Wanted::default() };
    let mut kernel = runs(Host, "OTHER", [90_000; 5]);
    for run in &mut kernel {
        run.measures.totals.cpu_time_ns = 80;
    }
    let own = [kernel, runs(Sim, "linux-6.18", [10_000; 5])].concat();
    let found = found(&wanted, BTreeMap::from([("hogs host 1", own)]));
    assert_eq!(verdict(&found), Verdict::Inconclusive);
    let text = reason(&found).unwrap().to_string();
    assert!(text.contains("80 % of the CPU time"), "{text}");
    assert!(found.missing[0].contains("hogs under 6.18 (host, 2 CPUs)"), "{:?}", found.missing);
}

#[test]
fn each_case_wrong_model_and_value_is_an_experiment() {
    let wanted = Wanted { host_release: Some("6.18.5-x".into()), ..Wanted::default() };
    let validation = validation();
    let made = validation.study(&wanted).unwrap();
    let study = &made.study;
    study.check().unwrap();
    let names: Vec<&str> = study.experiments.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names.len(), 3 * 4, "{names:?}");
    for name in ["hogs vm 1", "hogs vm 1 control rr slice=9ms", "hogs host 2 n=1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let models = |index: usize, run: usize| study.experiments[index].runs[run].schedulers.clone();
    assert_eq!(models(0, 0), ["linux-6.12", "linux-6.18"]);
    assert_eq!(models(0, 1), ["6.12", "6.18"]);
    let host = names.iter().position(|name| *name == "hogs host 1").unwrap();
    assert_eq!(models(host, 0), ["linux-6.18"], "the one that this machine has");
    assert_eq!(models(host, 1), ["OTHER"]);
    assert!(made.files["hogs.json"].contains(r#""instance": 2,"#));
    assert!(made.files["hogs-n-1.json"].contains(r#""instance": 1,"#));
}

#[test]
fn a_quick_validation_leaves_out_what_says_so_unless_it_is_asked_for() {
    let text =
        FILE.replacen("model = \"linux-6.12\"", "model = \"linux-6.12\"\nskip_quick = true", 1);
    let validation = Validation::parse(&text).unwrap();
    let kernels = |lane: LaneKind, kernels: &[&str], quick: bool| {
        let wanted = Wanted {
            lanes: vec![lane],
            kernels: kernels.iter().map(ToString::to_string).collect(),
            quick,
            host_release: Some("6.12.1".into()),
            ..Wanted::default()
        };
        let study = validation.study(&wanted).unwrap().study;
        study.experiments[0].runs[0].schedulers.clone()
    };
    assert_eq!(kernels(Vm, &[], false), ["linux-6.12", "linux-6.18"]);
    assert_eq!(kernels(Vm, &[], true), ["linux-6.18"]);
    assert_eq!(kernels(Vm, &["6.12"], true), ["linux-6.12"]);
    assert_eq!(kernels(Host, &[], true), ["linux-6.12"], "a host has one kernel");
}

#[test]
fn a_workload_may_have_runs_of_its_own_and_the_command_has_the_last_word() {
    let more = FILE.replace("parameters = {", "repetitions = 9\nparameters = {");
    for (text, asked, wanted) in [(FILE, None, 5), (&more, None, 9), (&more, Some(6), 6)] {
        let wanted_runs = Wanted { repetitions: asked, ..vm() };
        let study = Validation::parse(text).unwrap().study(&wanted_runs).unwrap().study;
        for spec in &study.experiments {
            assert_eq!(spec.seeds, Some(Seeds::Range(SeedRange { first: 1, count: wanted })));
        }
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let validation = validation();
    let study = |wanted: Wanted| validation.study(&wanted);
    let here = |release: &str| Wanted {
        host_release: Some(release.into()),
        lanes: vec![Host],
        ..Wanted::default()
    };
    let error = study(here("6.1.5")).unwrap_err();
    assert!(error.to_string().contains("kernel 6.1.5 has no model"), "{error}");
    assert!(study(here("6.12")).is_ok());
    let unknown = Wanted { kernels: vec!["6.13".into()], ..vm() };
    let error = study(unknown).unwrap_err().to_string();
    assert!(error.contains("did you mean `6.12`") || error.contains("6.12, 6.18"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_where_it_stands() {
    for (from, to, wanted) in [
        ("repetitions = 5", "repetitions = 4", "5 or more"),
        ("parameters = {", "repetitions = 4\nparameters = {", "5 or more"),
        ("within = 1.25", "within = 1.0", "more than 1"),
        ("floor = 1000", "floor = 0", "needs a `floor`"),
        ("name = \"vm\"", "name = \"sim\"", "allowed are `vm` and `host`"),
        ("metrics = [\"run_delay_ns\"]\np", "metrics = []\np", "`metrics` is empty"),
        ("workload = \"hogs\"\nmodel", "workload = \"hog\"\nmodel", "did you mean `hogs`"),
        ("knob = \"n\"", "knob = \"m\"", "no knob is called \"m\""),
        ("values = [1, 2]", "values = [1]", "two values"),
        ("knob = \"n\"\nvalues = [1, 2]", "knob = \"hz\"\nvalues = [100, 99]", "`hz` is 99"),
        ("cpus = [1, 2]", "cpus = []", "give one or more numbers"),
        ("[[control]]\nmetric = \"run", "[[control]]\nmetric = \"ran", "unknown variant"),
        ("kernel = \"6.18\"", "kernel = \"6.12\"", "two of [[pair]]"),
        ("why = \"w\"\n[[workload]]", "[[workload]]", "missing field"),
    ] {
        assert!(FILE.contains(from), "{from}");
        let text = FILE.replacen(from, to, 1);
        let error = Validation::parse(&text).unwrap_err();
        let all = format!("{error}");
        assert!(all.contains(wanted), "{to}: {all}");
        assert!(error.position(&text).is_some(), "{to}: {all}");
    }
    let uncontrolled = &FILE[..FILE.find("[[control]]").unwrap()];
    let error = Validation::parse(uncontrolled).unwrap_err();
    assert!(error.to_string().contains("has no [[control]]"), "{error}");
}
