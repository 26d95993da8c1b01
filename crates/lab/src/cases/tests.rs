// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of cases and their figures.

use super::*;
use crate::pairs::Wanted;
use crate::plan::{PlannedRun, SHIFT, SWITCH_JITTER};
use crate::studies::VALIDATION;
use crate::{Experiment, ExperimentResult, Plan};
use schedlab_metrics::TaskMeasures;
use schedlab_model::{Costs, CpuMask, Machine, TraceSink, Workload};
use schedlab_run::{Lane, LaneError, MachineSpec, RunRequest, RunResult};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn built_in(half: Half) -> Study {
    let wanted = Wanted { cases: Some(half), ..Wanted::default() };
    Study::parse(VALIDATION).unwrap().with_pairs(&wanted).unwrap()
}

/// Every set of the built-in study is large, has each feature often, and keeps its halves apart.
#[test]
fn the_built_in_sets_have_every_feature_often() {
    let halves = [Half::Development, Half::HeldOut].map(built_in);
    let cases = || halves.iter().flat_map(|study| &study.of_cases.cases);
    for (set, nr_least) in [("one-cpu", 100), ("several-cpus", 60)] {
        let of_set = || cases().filter(|case| case.set == set);
        assert!(of_set().count() >= nr_least, "{set}: {}", of_set().count());
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut seeds = BTreeSet::new();
        for case in of_set() {
            assert!(seeds.insert(case.seed), "{set}: seed {} is used twice", case.seed);
            assert_eq!(case.nr_cpus > 1, set == "several-cpus", "{set}: seed {}", case.seed);
            for feature in &case.features {
                *counts.entry(feature).or_default() += 1;
            }
        }
        let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 10).collect();
        assert!(rare.is_empty(), "{set}: {rare:?}");
        assert!(counts.len() >= 19, "{set}: {counts:?}");
    }
}

#[test]
fn a_kernel_without_a_feature_leaves_its_cases_out() {
    let study = built_in(Half::Development);
    let is_for =
        |kernel: &str| study.of_cases.cases.iter().filter(|case| case.is_for(kernel)).count();
    assert!(is_for("6.1") < is_for("6.12"));
    assert_eq!(is_for("6.18"), study.of_cases.cases.len());
}

const STUDY: &str = r#"
name = "x"
[[pair]]
kernel = "6.12"
model = "linux-6.12"
wrong = "linux-6.1"
[[measure]]
what = "delay"
value = "run_delay_ns"
within = { factor = 1.25 }
floor = "1ms"
why = "a quarter"
[[cases]]
name = "set"
machine = "guest-counted"
duration = "100ms"
shift = { from = "20us", to = "80us", count = 2 }
development = [1]
held_out = [2]
"#;

fn of(text: &str, half: Half, only: &[&str]) -> Result<Study, String> {
    let wanted = Wanted {
        cases: Some(half),
        sets: only.iter().map(ToString::to_string).collect(),
        ..Wanted::default()
    };
    let study = Study::parse(text).and_then(|study| study.with_pairs(&wanted));
    study.map_err(|error| error.to_string())
}

#[test]
fn a_half_is_its_seeds() {
    let names = |half| -> Vec<String> {
        let study = of(STUDY, half, &["set"]).unwrap();
        study.experiments.iter().map(|spec| spec.name.clone()).collect()
    };
    assert_eq!(names(Half::Development), ["set 1"]);
    assert_eq!(names(Half::HeldOut), ["set 2"]);
}

#[test]
fn what_makes_no_set_is_refused() {
    let refused = |from: &str, to: &str, words: &str| {
        let error = of(&STUDY.replace(from, to), Half::Development, &[]).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    refused("[2]", "[1]", "seed 1 is in both halves");
    refused("[2]", "[2, 2]", "names a seed twice");
    refused("\"100ms\"", "\"x\"", "`duration`");
    refused("count = 2", "count = 0", "`count` is 0");
    refused("duration", "cpus = 9\nduration", "`cpus` is 9");
    refused("duration", "quick = 0\nduration", "`quick` is 0");
    refused("1.25", "1.0", "`within` is 1");
    refused("[[measure]]", "[[measures]]", "measures");
    let error = of(STUDY, Half::Development, &["sat"]).unwrap_err();
    assert!(error.contains("sat") && error.contains("set"), "{error}");
    let (pairs, rest) = STUDY.split_once("[[measure]]").unwrap();
    let cases = &rest[rest.find("[[cases]]").unwrap()..];
    let error = of(&format!("{pairs}{cases}"), Half::Development, &[]).unwrap_err();
    assert!(error.contains("belong together"), "{error}");
    let error = of(pairs, Half::Development, &[]).unwrap_err();
    assert!(error.contains("has no experiment"), "{error}");
    let several = STUDY.replace("duration", "cpus = 4\nduration");
    let any = several.replace("[1]", "{ first = 1, count = 20 }").replace("[2]", "[50]");
    assert!(of(&any, Half::Development, &[]).unwrap_err().contains("has one CPU"));
}

/// A run in which the tasks `a-0`, `a-1` ... wait so many milliseconds.
fn run(lane: LaneKind, scheduler: &str, shift: Option<&str>, waits: &[u64]) -> RunResult {
    let mut run =
        RunResult { lane: lane.into(), scheduler: scheduler.into(), ..RunResult::default() };
    run.parameters.extend(shift.map(|shift| (SHIFT.into(), shift.into())));
    run.measures.tasks = (0..)
        .zip(waits)
        .map(|(index, wait)| TaskMeasures {
            name: format!("a-{index}"),
            run_delay_ns: wait * 1_000_000,
            ..TaskMeasures::default()
        })
        .collect();
    run
}

/// The judgement on a model with these waits in each of its runs. Those of the kernel are 10 and
/// 20 ms, in a shifted run 13 and 20, in one with longer switches 16 and 20.
fn judged_runs(of_model: &[&[u64]]) -> KernelAgreement {
    let jittered = |shift: &str, waits: &[u64]| {
        let mut run = run(LaneKind::Vm, "6.12", Some(shift), waits);
        run.parameters.insert(SWITCH_JITTER.into(), "2000ns".into());
        run
    };
    let study = of(STUDY, Half::Development, &[]).unwrap();
    let mut runs = vec![
        run(LaneKind::Sim, "linux-6.1", None, &[99, 99]),
        run(LaneKind::Vm, "6.12", None, &[10, 20]),
        run(LaneKind::Vm, "6.12", Some("1"), &[10, 20]),
        run(LaneKind::Vm, "6.12", Some("2"), &[20, 13]),
        jittered("3", &[16, 20]),
        jittered("4", &[10, 20]),
    ];
    let shifts = [None, Some("1"), Some("2"), Some("3")];
    let of_model = of_model.iter().zip(shifts);
    runs.extend(of_model.map(|(waits, shift)| run(LaneKind::Sim, "linux-6.12", shift, waits)));
    let experiment = Experiment { name: "set 1".into(), ..Experiment::default() };
    let results = [ExperimentResult { experiment, runs }];
    let agreement = judge(&study.of_cases, &results, &Plan::default(), &[]);
    assert!(agreement.not_compared.is_empty());
    agreement.kernels.into_iter().next().unwrap()
}

fn judged(waits: &[u64]) -> KernelAgreement {
    judged_runs(&[waits])
}

fn told(counts: Counts) -> [u32; 4] {
    let Counts { within, by_variation, by_switches, outside } = counts;
    [within, by_variation, by_switches, outside]
}

#[test]
fn a_comparison_is_judged_by_tolerance_or_by_the_kernels_own_variation() {
    let counts = |waits: &[u64]| told(judged(waits).figures.all);
    assert_eq!(counts(&[10, 20]), [1, 0, 0, 0]);
    assert_eq!(counts(&[20, 10]), [1, 0, 0, 0], "equal tasks may exchange roles");
    assert_eq!(counts(&[12, 20]), [1, 0, 0, 0], "a factor of 1.2");
    assert_eq!(counts(&[13, 20]), [0, 1, 0, 0], "as a shifted start");
    assert_eq!(counts(&[14, 20]), [0, 0, 1, 0], "as with longer switches");
    assert_eq!(counts(&[17, 20]), [0, 0, 0, 1]);
    assert_eq!(counts(&[10, 26]), [0, 0, 0, 1], "this task does not vary");
    let outside = &judged(&[10, 26]).outside[0];
    assert_eq!((outside.unit.as_str(), outside.seed), ("a/2", 1));
    assert!((outside.deviation - 1.3).abs() < 1e-9 && outside.variation == 1.0, "{outside:?}");
    // Tasks that are not equally many in both runs are compared as one.
    assert_eq!(counts(&[10, 10, 10]), [1, 0, 0, 0]);
}

#[test]
fn medians_of_runs_are_compared() {
    let counts = |of_model: &[&[u64]]| told(judged_runs(of_model).figures.all);
    assert_eq!(counts(&[&[10, 26], &[10, 20], &[10, 20]]), [1, 0, 0, 0]);
    assert_eq!(counts(&[&[10, 20], &[10, 26], &[10, 26]]), [0, 0, 0, 1]);
    assert_eq!(counts(&[&[10, 20], &[10, 26]]), [1, 0, 0, 0], "23 is the median of two");
    let outside = &judged_runs(&[&[10, 20], &[10, 26], &[10, 29]]).outside[0];
    assert_eq!((outside.on, outside.against), (20e6, 26e6));
}

#[test]
fn the_kernel_itself_and_a_wrong_model_are_counted_too() {
    let found = judged(&[10, 20]);
    assert_eq!(found.wrong_model, Counts { outside: 1, ..Counts::default() });
    // Every other run has 10, 13 and 10 ms, the rest 10 and 16: medians of 10 and 13, as far from
    // each other as a run with usual switches in either half is from the median of its half.
    assert_eq!(found.kernel_itself, Counts { by_variation: 2, ..Counts::default() });
    assert!(found.figures.features.values().all(|one| one.nr_cases == 1 && one.counts.nr() == 1));
}

#[test]
fn each_measure_has_its_typical_deviation_and_variation() {
    let found = judged(&[10, 26]);
    let typical = &found.typical["delay"];
    assert_eq!(typical.text(), "1.30x (1.00x)");
    assert_eq!((found.nr_runs, found.nr_disturbed), (5, 0));
}

/// The development half of `STUDY` on a machine with this kernel.
fn on_host(release: &str, text: &str) -> Result<Study, String> {
    let wanted = Wanted {
        cases: Some(Half::Development),
        lanes: vec![LaneKind::Host],
        host_release: Some(release.into()),
        ..Wanted::default()
    };
    let study = Study::parse(text).and_then(|study| study.with_pairs(&wanted));
    study.map_err(|error| error.to_string())
}

#[test]
fn cases_run_on_this_machine_with_its_model() {
    let text = STUDY.replace("count = 2", "count = 2, switch_jitter = \"2us\", other_boots = true");
    let study = on_host("6.12.9-cloud", &text).unwrap();
    let [spec] = &study.experiments[..] else { panic!("{:?}", study.experiments) };
    assert_eq!((spec.name.as_str(), spec.machines()), ("set 1 host", vec!["host".to_string()]));
    let [models, kernels] = &spec.runs[..] else { panic!("{:?}", spec.runs) };
    assert_eq!((models.lane, kernels.lane), (LaneKind::Sim, LaneKind::Host));
    assert_eq!(kernels.schedulers, ["OTHER"]);
    let shift = kernels.shift.as_ref().unwrap();
    assert!(shift.switch_jitter.is_none() && !shift.other_boots && shift.count == 2, "{shift:?}");
    let of_model = models.shift.as_ref().unwrap();
    assert!(of_model.switch_jitter.is_none() && of_model.other_boots, "{of_model:?}");
    let of_host = |waits: &[u64], shift| run(LaneKind::Host, "OTHER", shift, waits);
    let mut disturbed = of_host(&[13, 20], Some("1"));
    disturbed.warnings.push(schedlab_run::Warning::other_load(9, 90));
    let runs = vec![
        run(LaneKind::Sim, "linux-6.1", None, &[99, 99]),
        run(LaneKind::Sim, "linux-6.12", None, &[13, 20]),
        of_host(&[10, 20], None),
        of_host(&[10, 20], Some("2")),
        disturbed,
    ];
    let experiment = Experiment { name: "set 1 host".into(), ..Experiment::default() };
    let results = [ExperimentResult { experiment, runs }];
    let agreement = judge(&study.of_cases, &results, &Plan::default(), &[]);
    let [found] = &agreement.kernels[..] else { panic!("{agreement:?}") };
    assert_eq!((found.lane, told(found.figures.all)), (LaneKind::Host, [0, 1, 0, 0]));
    assert_eq!((found.nr_runs, found.nr_disturbed), (3, 1));
    assert!(markdown(&agreement).contains("**set, development half, this machine**"));
}

#[test]
fn cases_that_this_machine_cannot_compare_are_refused() {
    let error = on_host("5.10.0", STUDY).unwrap_err();
    assert!(error.contains("nothing is left to compare"), "{error}");
    let several = STUDY.replace("duration", "cpus = 2\nduration");
    let error = on_host("6.12.9", &several).unwrap_err();
    assert!(error.contains("set is not measured in lane host"), "{error}");
}

#[test]
fn the_quick_form_has_the_first_cases() {
    let text = STUDY.replace("[1]", "[7, 1, 5]").replace("duration", "quick = 2\nduration");
    let seeds = |quick| -> Vec<u64> {
        let wanted = Wanted { cases: Some(Half::Development), quick, ..Wanted::default() };
        let study = Study::parse(&text).unwrap().with_pairs(&wanted).unwrap();
        study.of_cases.cases.iter().map(|case| case.seed).collect()
    };
    assert_eq!((seeds(true), seeds(false)), (vec![7, 1], vec![7, 1, 5]));
}

#[test]
fn a_case_without_runs_is_named() {
    let study = of(STUDY, Half::Development, &[]).unwrap();
    let agreement = judge(&study.of_cases, &[], &Plan::default(), &[]);
    let missing = &agreement.not_compared[0];
    assert_eq!((missing.seed, missing.why.as_str()), (1, "6.12 was not run"));
}

#[test]
fn figures_of_one_kernel_are_renewed_and_others_stay() {
    let one = |kernel: &str, nr_cases| KernelAgreement {
        kernel: kernel.into(),
        nr_cases,
        ..judged(&[10, 20])
    };
    let mut all = Agreement { kernels: vec![one("6.12", 1), one("7.2", 2)], ..Default::default() };
    all.merge(Agreement { kernels: vec![one("6.12", 3), one("6.1", 4)], ..Default::default() });
    let found: Vec<_> = all.kernels.iter().map(|one| (one.kernel.as_str(), one.nr_cases)).collect();
    assert_eq!(found, [("6.1", 4), ("6.12", 3), ("7.2", 2)]);
    let text = markdown(&all);
    assert!(
        text.contains("| `linux-6.12` | 3 | 1 | 100.0 % | 100.0 % | 100.0 % | 100.0 % | 0.0 %"),
        "{text}"
    );
}

/// Simulates the tasks `a-0` and `a-1`, which wait 10 and 26 ms, but 20 for 26 on a machine whose
/// costs are among `right`: a name and a value.
struct Model {
    right: Vec<(&'static str, u64)>,
}

impl Lane for Model {
    fn kind(&self) -> LaneKind {
        LaneKind::Sim
    }
    fn is_parallel(&self) -> bool {
        true
    }
    fn run(&self, request: &RunRequest, _: &mut dyn TraceSink) -> Result<RunResult, LaneError> {
        let mut costs = request.machine.as_ref().unwrap().machine.costs;
        let is_right = |&(name, ns): &(&str, u64)| costs.field_mut(name).copied() == Some(ns);
        let last = if self.right.iter().any(is_right) { 20 } else { 26 };
        Ok(run(LaneKind::Sim, &request.scheduler, None, &[10, last]))
    }
}

/// The causes of the one comparison of [`judged`], whose task waits 26 ms instead of 20, if costs
/// of the model decide that; and how many of those of the wrong model have some.
fn explained(right: &[(&'static str, u64)]) -> (Vec<Cause>, u32, Option<u32>) {
    explained_of(right, &[&[10, 20]])
}

/// As `explained`, with these waits in the kernel's runs.
fn explained_of(
    right: &[(&'static str, u64)],
    kernel: &[&[u64]],
) -> (Vec<Cause>, u32, Option<u32>) {
    let study = of(STUDY, Half::Development, &[]).unwrap();
    let mut machine = Machine::flat(1);
    machine.costs =
        Costs { wakeup_switch_ns: 15_000, fork_ns: 100_000, group_move_ns: 50_000, ..Costs::ZERO };
    let spec = MachineSpec {
        machine,
        preempt: None,
        kernel_costs: vec![],
        kernel_threads: vec![],
        summary: String::new(),
        sources: vec![],
        assumptions: vec![],
    };
    let planned = |scheduler: &str| {
        let mut request =
            RunRequest::new(Workload::new("set 1", vec![]), scheduler, CpuMask::first(1));
        request.machine = Some(Arc::new(spec.clone()));
        PlannedRun { experiment: 0, lane: LaneKind::Sim, request }
    };
    let experiment = Experiment { name: "set 1".into(), ..Experiment::default() };
    let plan = Plan {
        experiments: vec![experiment.clone()],
        runs: vec![planned("linux-6.12"), planned("linux-6.1")],
        ..Plan::default()
    };
    let mut runs = vec![
        run(LaneKind::Sim, "linux-6.1", None, &[99, 99]),
        run(LaneKind::Sim, "linux-6.12", None, &[10, 26]),
    ];
    for (number, waits) in kernel.iter().enumerate() {
        let shift = number.to_string();
        let shift = Some(shift.as_str()).filter(|_| number > 0);
        runs.push(run(LaneKind::Vm, "6.12", shift, waits));
    }
    let results = [ExperimentResult { experiment, runs }];
    let mut agreement = judge(&study.of_cases, &results, &plan, &[]);
    let made = Made { study: &study.of_cases, results: &results, plan: &plan };
    explain(&mut agreement, made, &Model { right: right.to_vec() }, 2);
    let found = &agreement.kernels[0];
    assert_eq!(found.outside.len(), 1);
    (found.outside[0].causes.clone(), found.outside[0].nr_changes, found.nr_wrong_caused)
}

#[test]
fn a_change_that_makes_the_model_agree_is_the_cause() {
    assert_eq!(explained(&[]), (vec![], 0, Some(0)));
    let forks = ("fork_ns", 200_000);
    assert_eq!(explained(&[forks]), (vec![Cause::Forks], 1, Some(1)));
    let two = [forks, ("group_move_ns", 60_000), ("group_move_ns", 30_000)];
    assert_eq!(explained(&two), (vec![Cause::Forks, Cause::Moves], 3, Some(1)));
    let three = [forks, ("group_move_ns", 60_000), ("wakeup_switch_ns", 12_000)];
    assert_eq!(explained(&three).0, [Cause::Order]);
    // Every other run of the kernel has another wait of the first task.
    let halves: [&[u64]; 4] = [&[10, 20], &[14, 20], &[10, 20], &[14, 20]];
    assert_eq!(explained_of(&[], &halves), (vec![Cause::Chance], 0, Some(1)));
    assert_eq!(explained_of(&[forks], &halves).0, [Cause::Forks]);
}

/// Each change changes something on the machines of guests, and one of it is no other.
#[test]
fn every_change_is_one_of_its_own() {
    let name = |one: &causes::WhatIf| format!("{one:?}");
    let names: BTreeSet<String> = causes::WHAT_IFS.iter().map(name).collect();
    assert_eq!(names.len(), causes::WHAT_IFS.len());
    for machine in ["guest-counted", "guest-counted-smp"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let text = std::fs::read_to_string(folder.join(format!("{machine}.toml"))).unwrap();
        let file: schedlab_run::MachineFile = toml::from_str(&text).unwrap();
        let spec = file.spec().unwrap();
        let nr_cpus = spec.machine.nr_cpus();
        let mut request =
            RunRequest::new(Workload::new("w", vec![]), "linux-7.2", CpuMask::first(nr_cpus));
        request.machine = Some(Arc::new(spec));
        for change in &causes::WHAT_IFS {
            let changed = change.applied(&request);
            assert!(changed.is_some() || !change.matters(nr_cpus), "{machine}: {change:?}");
            let checked = changed.and_then(|run| run.machine).map(|spec| spec.machine.check());
            assert!(checked.is_none_or(|checked| checked.is_ok()), "{machine}: {change:?}");
        }
    }
}
