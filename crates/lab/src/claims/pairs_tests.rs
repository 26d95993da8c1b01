// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges pairs of hand-made runs.

use super::tables::{compared as tables_of, label, pairs_summary};
use super::*;
use crate::axis::{SeedRange, Seeds};
use crate::pairs::Wanted;
use crate::{Experiment, ExperimentResult, Plan};
use schedlab_metrics::TaskMeasures;
use schedlab_run::LaneKind::{self, Host, Sim, Vm};
use std::collections::BTreeMap;

const FILE: &str = r#"
name = "v"
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
[[experiment]]
name = "hogs"
text = "t"
parameters = { n = 2 }
tasks = '{ "tasks": { "hog": { "instance": {n}, "loop": 1, "run": "1s" } } }'
[[claim]]
id = "run_delay_ns"
text = "t"
[claim.pairs]
what = "run delay"
experiment = "hogs"
value = "run_delay_ns"
within = { factor = 1.25 }
floor = 1000
why = "w"
[[claim.control]]
experiment = "hogs"
model = "rr"
set = { slice = "9ms" }
why = "w"
[[claim.knob]]
experiment = "hogs"
name = "n"
values = [1, 2]
"#;

/// Names of the experiments: kernels and models, the wrong model, the knob.
const CONTROL: &str = "hogs vm 1 control rr slice=9ms";
const KNOB: &str = "hogs vm 1 n=1,2 linux-6.12";

fn study(wanted: &Wanted) -> Study {
    Study::parse(FILE).unwrap().with_pairs(wanted).unwrap()
}

fn vm() -> Wanted {
    Wanted { lanes: vec![Vm], kernels: vec!["6.12".into()], ..Wanted::default() }
}

/// Five runs with these delays and parameters.
fn runs(
    lane: LaneKind,
    scheduler: &str,
    parameters: &[(&str, &str)],
    delays: [u64; 5],
) -> Vec<RunResult> {
    let run = |(seed, run_delay_ns): (u64, u64)| {
        let mut run = RunResult {
            lane: lane.into(),
            scheduler: scheduler.into(),
            workload: "hogs".into(),
            seed,
            ..RunResult::default()
        };
        run.parameters =
            parameters.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect::<BTreeMap<_, _>>();
        run.parameters.entry("cpus".into()).or_insert_with(|| "1".into());
        run.measures.tasks =
            vec![TaskMeasures { name: "hog-0".into(), run_delay_ns, ..Default::default() }];
        run.measures.totals.cpu_time_ns = 100;
        run
    };
    (1..).zip(delays).map(run).collect()
}

/// The result for these runs of the study's experiments, by name.
fn found(wanted: &Wanted, mut runs: BTreeMap<&str, Vec<RunResult>>) -> ClaimResult {
    let study = study(wanted);
    let results: Vec<ExperimentResult> = study
        .experiments
        .iter()
        .map(|spec| ExperimentResult {
            experiment: Experiment {
                name: spec.name.clone(),
                study: "v".into(),
                ..Experiment::default()
            },
            runs: runs.remove(spec.name.as_str()).unwrap_or_default(),
        })
        .collect();
    assert!(runs.is_empty(), "no experiment is called {:?}", runs.keys());
    judged(&study, &results)
}

fn judged(study: &Study, results: &[ExperimentResult]) -> ClaimResult {
    let plan = Plan {
        experiments: results.iter().map(|result| result.experiment.clone()).collect(),
        notes: study.notes.clone(),
        ..Plan::default()
    };
    let name = &study.name;
    let evidence =
        Evidence { study: name, results, nr_cpus: 2, lanes: &[], plan: &plan, failures: &[] };
    judge(&study.claims, evidence).remove(0)
}

const KERNEL: [u64; 5] = [10_000, 10_100, 9_900, 10_050, 9_950];

/// The kernel's delays are about 10,000; those of its shifted runs, the model, the wrong model and
/// the knob are as given.
fn shifted(shifted: Option<[u64; 5]>, model: [u64; 5], wrong: u64, knob: u64) -> ClaimResult {
    let mut own = [runs(Vm, "6.12", &[], KERNEL), runs(Sim, "linux-6.12", &[], model)].concat();
    own.extend(shifted.iter().flat_map(|delays| runs(Vm, "6.12", &[("shift", "1")], *delays)));
    let of_knob = |n, delay| runs(Sim, "linux-6.12", &[("n", n)], [delay; 5]);
    found(
        &vm(),
        BTreeMap::from([
            ("hogs vm 1", own),
            (CONTROL, runs(Sim, "rr", &[("set.slice", "9ms")], [wrong; 5])),
            (KNOB, [of_knob("1", 10_000), of_knob("2", knob)].concat()),
        ]),
    )
}

fn compared(model: [u64; 5], wrong: u64, knob: u64) -> ClaimResult {
    shifted(None, model, wrong, knob)
}

fn pair(claim: &ClaimResult, index: usize) -> &PairResult {
    claim.checks[index].pair.as_ref().unwrap()
}

fn reason(claim: &ClaimResult) -> Option<Reason> {
    claim.checks[0].reason.clone()
}

#[test]
fn a_model_within_the_tolerance_holds_and_one_without_fails() {
    let found = compared([10_400; 5], 30_000, 30_000);
    assert_eq!((found.verdict, found.checks.len()), (Verdict::Holds, 3), "{found:?}");
    let unit = &pair(&found, 0).units[0];
    assert!((unit.deviation - 1.04).abs() < 0.001 && unit.ci95[0] < unit.ci95[1], "{unit:?}");
    assert_eq!(unit.variation, None);
    let less = compared([7_000; 5], 30_000, 30_000);
    assert_eq!(less.verdict, Verdict::Fails);
    assert_eq!(label(&less.checks[0], pair(&less, 0)), "hogs under 6.12 (vm, 1 CPU)");
    assert_eq!(pair(&less, 0).worst_text().unwrap(), "1.43x");
    let finding = less.finding(|_, value| value.to_string());
    assert!(
        finding.contains(
            "run delay of hogs vm 1: 1.43x between vm 6.12 and sim linux-6.12, and \
                          should be within 1.25x"
        ),
        "{finding}"
    );
}

#[test]
fn a_tolerance_within_the_interval_is_inconclusive() {
    let found = compared([10_000, 15_000, 10_000, 15_000, 12_000], 30_000, 30_000);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert_eq!(reason(&found), Some(Reason::ToleranceAcross("hog/1".into())));
}

#[test]
fn a_comparison_that_accepts_a_wrong_model_or_that_nothing_moves_says_nothing() {
    let accepting = compared([10_000; 5], 10_500, 30_000);
    assert_eq!(accepting.verdict, Verdict::Inconclusive);
    let (model, workload) = ("rr slice=9ms".into(), "hogs".into());
    assert_eq!(reason(&accepting), Some(Reason::Accepts { model, workload }));
    assert_eq!(accepting.checks[1].answer, Answer::Fails);
    assert_eq!(Word::of(&accepting.checks[0]), Word::SeesNothing);
    let still = compared([10_000; 5], 30_000, 10_500);
    assert_eq!(still.verdict, Verdict::Inconclusive);
    let answers: Vec<Answer> = still.checks.iter().map(|check| check.answer).collect();
    assert_eq!(answers, [Answer::Inconclusive, Answer::Holds, Answer::Fails]);
    // A failure stays a failure.
    assert_eq!(compared([90_000; 5], 10_000, 10_000).verdict, Verdict::Fails);
}

#[test]
fn without_a_wrong_model_agreement_says_nothing() {
    let own = [runs(Vm, "6.12", &[], [9_999; 5]), runs(Sim, "linux-6.12", &[], [9_999; 5])];
    let found = found(&vm(), BTreeMap::from([("hogs vm 1", own.concat())]));
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert_eq!(reason(&found), Some(Reason::NoWrongModel));
    assert_eq!(found.checks[1].nr_runs, 0, "{:?}", found.checks[1]);
}

#[test]
fn a_task_that_only_one_has_cannot_be_compared() {
    let mut kernel = runs(Vm, "6.12", &[], [10_000; 5]);
    kernel[2].measures.tasks[0].name = "cat-0".into();
    let own = [kernel, runs(Sim, "linux-6.12", &[], [10_000; 5])].concat();
    let found = found(&vm(), BTreeMap::from([("hogs vm 1", own)]));
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert_eq!(reason(&found), Some(Reason::NotInBoth { unit: "cat/1".into() }));
}

#[test]
fn runs_of_a_machine_that_others_use_say_nothing() {
    let wanted =
        Wanted { lanes: vec![Host], host_release: Some("6.18.5-x".into()), ..Wanted::default() };
    let mut kernel = runs(Host, "OTHER", &[], [90_000; 5]);
    for run in &mut kernel {
        run.measures.totals.cpu_time_ns = 80;
    }
    let own = [kernel, runs(Sim, "linux-6.18", &[], [10_000; 5])].concat();
    let found = found(&wanted, BTreeMap::from([("hogs host 1", own)]));
    assert_eq!(found.verdict, Verdict::Inconclusive);
    let text = reason(&found).unwrap().to_string();
    assert!(text.contains("80 % of the CPU time"), "{text}");
    let missing = &found.checks[1];
    assert_eq!((missing.nr_runs, pair(&found, 1).experiment.as_str()), (0, "hogs host 2"));
    let (table, details) = tables_of(&[found], &|_, value| value.to_string());
    assert_eq!((table.rows.len(), details[0].nr_pairs), (1, 5));
}

/// The deviation of 1.4 exceeds 1.25, but the kernel itself varies from 10,000 to 15,000.
#[test]
fn what_only_the_kernels_own_variation_accepts_holds_and_is_marked() {
    let moved = [15_000, 10_100, 9_900, 10_050, 9_950];
    let found = shifted(Some(moved), [14_000; 5], 30_000, 30_000);
    assert_eq!(found.verdict, Verdict::Holds, "{found:?}");
    assert_eq!(Word::of(&found.checks[0]), Word::HoldsByVariation);
    let unit = &pair(&found, 0).units[0];
    assert!((unit.variation.unwrap() - 1.5).abs() < 1e-9, "{unit:?}");
    assert!(pairs_summary(&[found]).contains("1 HOLDS (1 only by the kernel's own variation)"));
    // Without the shifted runs it fails. A deviation outside both limits also fails.
    assert_eq!(compared([14_000; 5], 30_000, 30_000).verdict, Verdict::Fails);
    assert_eq!(shifted(Some(moved), [16_000; 5], 30_000, 30_000).verdict, Verdict::Fails);
    let across = [14_000, 16_000, 14_000, 16_000, 15_000];
    let across = shifted(Some(moved), across, 30_000, 30_000);
    assert_eq!(across.verdict, Verdict::Inconclusive);
    // A deviation within the tolerance is not marked.
    let within = shifted(Some(moved), [10_400; 5], 30_000, 30_000);
    assert_eq!(Word::of(&within.checks[0]), Word::Holds);
}

/// If the variation is so wide that it accepts a wrong model or covers a knob's effect, it accepts
/// everything.
#[test]
fn wrong_models_and_knobs_have_the_same_yardstick() {
    let moved = [31_000, 10_100, 9_900, 10_050, 9_950];
    let found = shifted(Some(moved), [14_000; 5], 30_000, 90_000);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(matches!(reason(&found), Some(Reason::Accepts { .. })), "{found:?}");
    let still = shifted(Some(moved), [14_000; 5], 90_000, 30_000);
    assert!(matches!(reason(&still), Some(Reason::DoesNotMove { .. })), "{still:?}");
}

#[test]
fn each_case_wrong_model_and_knob_is_an_experiment() {
    let wanted = Wanted { host_release: Some("6.18.5-x".into()), ..Wanted::default() };
    let study = study(&wanted);
    let names: Vec<&str> = study.experiments.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "hogs vm 1",
            CONTROL,
            "hogs vm 1 n=1,2 linux-6.12,linux-6.18",
            "hogs host 1",
            "hogs host 1 control rr slice=9ms",
            "hogs host 1 n=1,2 linux-6.18",
            "hogs host 2",
            "hogs host 2 control rr slice=9ms",
            "hogs host 2 n=1,2 linux-6.18",
        ]
    );
    let models = |index: usize, run: usize| study.experiments[index].runs[run].schedulers.clone();
    assert_eq!(models(0, 0), ["linux-6.12", "linux-6.18"]);
    assert_eq!(models(0, 1), ["6.12", "6.18"]);
    assert_eq!(models(3, 0), ["linux-6.18"], "the one that this machine has");
    assert_eq!(models(3, 1), ["OTHER"]);
    assert_eq!(study.claims[0].pairs.as_ref().unwrap().cases.len(), 4);
}

#[test]
fn a_quick_study_leaves_out_pairs_unless_they_are_asked_for() {
    let text = FILE.replacen("model = \"linux-6.12\"", "model = \"linux-6.12\"\nquick = false", 1);
    let kernels = |lane: LaneKind, kernels: &[&str], quick: bool| {
        let wanted = Wanted {
            lanes: vec![lane],
            kernels: kernels.iter().map(ToString::to_string).collect(),
            quick,
            host_release: Some("6.12.1".into()),
            ..Wanted::default()
        };
        let study = Study::parse(&text).unwrap().with_pairs(&wanted).unwrap();
        study.experiments[0].runs[0].schedulers.clone()
    };
    assert_eq!(kernels(Vm, &[], false), ["linux-6.12", "linux-6.18"]);
    assert_eq!(kernels(Vm, &[], true), ["linux-6.18"]);
    assert_eq!(kernels(Vm, &["6.12"], true), ["linux-6.12"]);
    assert_eq!(kernels(Host, &[], true), ["linux-6.12"], "a host has one kernel");
}

#[test]
fn an_experiment_may_have_seeds_of_its_own_and_the_command_has_the_last_word() {
    let more = FILE.replace("parameters = {", "seeds = { first = 1, count = 9 }\nparameters = {");
    for (text, asked, wanted) in [(FILE, None, 5), (&more, None, 9), (&more, Some(6), 6)] {
        let wanted_runs = Wanted { repetitions: asked, ..vm() };
        let study = Study::parse(text).unwrap().with_pairs(&wanted_runs).unwrap();
        for spec in &study.experiments {
            assert_eq!(spec.seeds, Some(Seeds::Range(SeedRange { first: 1, count: wanted })));
        }
    }
}

#[test]
fn what_cannot_be_compared_is_named() {
    let study = |wanted: Wanted| Study::parse(FILE).unwrap().with_pairs(&wanted);
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

/// Two models in a study without `[[pair]]`: the study itself has all runs, including the knob's.
#[test]
fn any_study_may_compare_two_of_its_places() {
    let text = "name='v'\n[[experiment]]\nname='x'\nworkload='hogs'\naxes.n=[1, 2]\n\
                [[experiment.runs]]\nlane='sim'\nschedulers=['a', 'b']\n\
                [[experiment.runs]]\nlane='sim'\nschedulers=['rr']\nset.slice='9ms'\n\
                [[claim]]\nid='c'\ntext='t'\n[claim.pairs]\nwhat='delay'\nexperiment='x'\n\
                on=['sim a']\nagainst='sim b'\nwhere={n=1}\nvalue='run_delay_ns'\n\
                within={factor=1.25}\nfloor='1us'\nwhy='w'\n\
                [[claim.control]]\nexperiment='x'\nmodel='rr'\nset.slice='9ms'\nwhy='w'\n\
                [[claim.knob]]\nexperiment='x'\nname='n'\nvalues=[1, 2]\nsweep='x'\n";
    let study = Study::parse(text).unwrap();
    let of = |scheduler, n, delay| runs(Sim, scheduler, &[("n", n)], [delay; 5]);
    let wrong = runs(Sim, "rr", &[("n", "1"), ("set.slice", "9ms")], [40_000; 5]);
    let all = [of("a", "1", 10_000), of("a", "2", 20_000), of("b", "1", 10_400), wrong];
    let all = [all.concat(), of("b", "2", 21_000)].concat();
    let experiment = Experiment { name: "x".into(), study: "v".into(), ..Experiment::default() };
    let found = judged(&study, &[ExperimentResult { experiment: experiment.clone(), runs: all }]);
    assert_eq!(found.verdict, Verdict::Holds, "{found:#?}");
    assert_eq!(pair(&found, 2).points_text(), "1: 1.04x, 2: 2.10x");
    // Without `where` a seed has two runs.
    let open = Study::parse(&text.replace("where={n=1}\n", "")).unwrap();
    let both = [of("a", "1", 10_000), of("a", "2", 20_000), of("b", "1", 10_400)].concat();
    let found = judged(&open, &[ExperimentResult { experiment, runs: both }]);
    assert_eq!(reason(&found), Some(Reason::Mixed { seed: 1 }));
}

#[test]
fn what_does_not_fit_is_refused_where_it_is() {
    for (from, to, wanted) in [
        ("repetitions = 5", "repetitions = 4", "5 or more"),
        ("parameters = {", "seeds = [1, 2]\nparameters = {", "5 or more"),
        ("factor = 1.25", "factor = 1.0", "more than 1"),
        ("factor = 1.25", "times = 1.0", "unknown variant"),
        ("floor = 1000", "floor = 0", "needs a `floor`"),
        ("floor = 1000", "floor = \"soon\"", "`floor` is soon"),
        ("name = \"vm\"", "name = \"sim\"", "allowed are `vm` and `host`"),
        ("experiment = \"hogs\"\nvalue", "experiment = \"hog\"\nvalue", "did you mean `hogs`"),
        ("value = \"run_delay_ns\"", "value = \"run_delay\"", "did you mean `run_delay_ns`"),
        ("value = \"run_delay_ns\"", "value = \"max(n: run_delay_ns)\"", "not of one run"),
        ("value = \"run_delay_ns\"", "value = \"run_delay_ns[n=2]\"", "select them with `where`"),
        ("value = \"run_delay_ns\"", "of = \"run\"", "needs either `value` or `slices`"),
        ("experiment = \"hogs\"\nmodel", "experiment = \"hog\"\nmodel", "is not compared"),
        ("name = \"n\"", "name = \"m\"", "no knob is called \"m\""),
        ("values = [1, 2]", "values = [1]", "two values"),
        ("name = \"n\"\nvalues = [1, 2]", "name = \"hz\"\nvalues = [100, 99]", "`hz` is 99"),
        ("name = \"n\"", "kernels = [\"6.13\"]\nname = \"n\"", "no kernel is called \"6.13\""),
        ("cpus = [1, 2]", "cpus = []", "give one or more numbers"),
        (
            "cpus = [1, 2]",
            "cpus = [1]\nshift = { from = \"0us\", to = \"1us\", count = 1 }",
            "above 0",
        ),
        (
            "cpus = [1, 2]",
            "cpus = [1]\nshift = { from = \"1us\", to = \"1us\", count = 0 }",
            "1 to 100",
        ),
        ("kernel = \"6.18\"", "kernel = \"6.12\"", "two of [[pair]]"),
        ("what = \"run delay\"", "what = \"run delay\"\non = [\"vm 6.12\"]", "beside [[pair]]"),
        ("why = \"w\"\n[[claim.c", "[[claim.c", "missing field"),
    ] {
        assert!(FILE.contains(from), "{from}");
        let text = FILE.replacen(from, to, 1);
        let error = Study::parse(&text).unwrap_err();
        let all = format!("{error}");
        assert!(all.contains(wanted), "{to}: {all}");
        assert!(error.position(&text).is_some(), "{to}: {all}");
    }
    let uncontrolled = &FILE[..FILE.find("[[claim.control]]").unwrap()];
    let error = Study::parse(uncontrolled).unwrap_err();
    assert!(error.to_string().contains("has no [[claim.control]]"), "{error}");
}
