// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills figures of a study from hand-made runs.

use super::*;
use crate::{Experiment, ExperimentResult, Study};
use schedlab_metrics::TaskMeasures;
use schedlab_run::RunResult;

const HEAD: &str = r#"
name = "S9"
[[experiment]]
name = "e"
workload = "hogs"
axes = { n = [1, 2] }
[[experiment.runs]]
lane = "sim"
schedulers = ["rr", "fcfs"]
[[figure]]
id = "S9-F1"
title = "t"
experiment = "e"
on = ["sim"]
"#;

/// Tasks that first run after 1, 2, 3, 4, 5 times `unit` ms; the makespan is `unit` s.
fn run(scheduler: &str, n: u64, unit: u64) -> RunResult {
    let mut run = RunResult {
        lane: schedlab_run::LaneKind::Sim.into(),
        scheduler: scheduler.into(),
        workload: "hogs".into(),
        ..RunResult::default()
    };
    run.parameters.insert("n".into(), n.to_string());
    run.measures.totals.makespan_ns = Some(unit * 1_000_000_000);
    run.measures.tasks = (1..=5)
        .map(|number| TaskMeasures {
            name: format!("hog-{number}"),
            response_ns: Some(number * unit * 1_000_000),
            ..TaskMeasures::default()
        })
        .collect();
    run
}

fn drawn(figure: &str) -> Drawn {
    let study = Study::parse(&format!("{HEAD}{figure}")).unwrap();
    let runs = vec![run("rr", 1, 1), run("rr", 2, 3), run("fcfs", 1, 2), run("fcfs", 2, 8)];
    let experiment = Experiment { name: "e".into(), study: "S9".into(), ..Experiment::default() };
    super::figure("S9", &study.figures[0], &[ExperimentResult { experiment, runs }], 1)
}

fn refused(figure: &str) -> String {
    Study::parse(&format!("{HEAD}{figure}")).unwrap_err().to_string()
}

#[test]
fn a_measure_is_that_at_x_unless_it_names_another() {
    let found = drawn(
        "form = \"lines\"\nx = \"n\"\nseries = [\n\
         { label = \"a\", value = \"makespan_ns[scheduler=rr] / 1s\" },\n\
         { label = \"b\", value = \"makespan_ns[scheduler=fcfs] / \
         makespan_ns[scheduler=fcfs, n=1]\" },\n\
         ]\n[figure.published]\nsource = \"s\"\nat = [1, 2]\n\
         row = [{ where = { series = \"a\" }, values = [7, 9] }]\n",
    );
    assert_eq!((found.panels.len(), found.panels[1].title.as_str()), (2, "simulated"));
    let ys = |panel: usize, series: usize| -> Vec<(f64, f64)> {
        found.panels[panel].series[series].points.iter().map(|p| (p.x, p.y)).collect()
    };
    assert!(found.panels.iter().all(|panel| panel.kind == DrawnKind::Lines));
    assert_eq!(ys(0, 0), [(1.0, 7.0), (2.0, 9.0)]);
    assert!(found.panels[0].is_original && ys(0, 1).is_empty());
    assert_eq!(ys(1, 0), [(1.0, 1.0), (2.0, 3.0)]);
    assert_eq!(ys(1, 1), [(1.0, 1.0), (2.0, 4.0)]);
}

#[test]
fn a_box_has_the_five_numbers_of_the_tasks() {
    let found = drawn(
        "form = \"boxes\"\nseries = [\n\
         { label = \"a\", value = \"response_ns_{q}[scheduler=rr, task=hog*] / 1ms\" }]\n\
         groups = [{ label = \"two\", where = { n = 2 } },\n\
         { label = \"none\", where = { n = 3 } }]\n\
         [figure.published]\nsource = \"s\"\nrow = [\
         { where = { series = \"a\", group = \"two\" }, values = [1, 2, 3, 4, 9] }]\n",
    );
    let [original, own] = [0, 1].map(|panel| &found.panels[panel].series[0].points);
    assert_eq!(original.len(), 1, "a group that the original does not have");
    assert_eq!((original[0].y, original[0].spread), (3.0, Some([1.0, 2.0, 4.0, 9.0])));
    assert_eq!(own.len(), 1, "a group without a run");
    assert_eq!((own[0].y, own[0].spread), (9.0, Some([3.0, 6.0, 12.0, 15.0])));
    assert_eq!(own[0].top(), 15.0);
}

#[test]
fn an_original_that_does_not_fit_is_refused() {
    let boxes = "form = \"boxes\"\nseries = [{ label = \"a\", value = \"nr_switches\" }]\n\
                 groups = [{ label = \"g\", where = { n = 2 } }]\n\
                 [figure.published]\nsource = \"s\"\n";
    let row = |which: &str, values: &str| format!("{{ where = {{ {which} }}, values = {values} }}");
    let known = "series = \"a\", group = \"g\"";
    let five = "[1, 2, 3, 4, 5]";
    let twice = [row(known, five), row(known, five)].join(", ");
    for wrong in [
        row(known, "[1, 2, 3]"),
        row(known, "[5, 4, 3, 2, 1]"),
        row("series = \"a\"", five),
        row("series = \"b\", group = \"g\"", five),
        twice,
        String::new(),
    ] {
        let error = refused(&format!("{boxes}row = [{wrong}]\n"));
        assert!(error.contains("`published` does not fit the form"), "{wrong}: {error}");
    }
    let of_an_experiment = format!("{boxes}unit = 2\nrow = [{}]\n", row(known, five));
    assert!(refused(&of_an_experiment).contains("does not fit"));
    let lines = "form = \"lines\"\nx = \"n\"\n\
                 series = [{ label = \"a\", value = \"nr_switches\" }]\n[figure.published]\n\
                 source = \"s\"\nat = [1, 2]\n";
    let short = format!("{lines}row = [{}]\n", row("series = \"a\"", "[1]"));
    assert!(refused(&short).contains("does not fit"));
    assert!(refused("form = \"lines\"\nx = \"n\"\n").contains("`series` is empty"));
    let unknown = "form = \"boxes\"\n\
                   series = [{ label = \"a\", value = \"nothing_{q}[task=x]\" }]\n\
                   groups = [{ label = \"g\", where = {} }]\n";
    assert!(refused(unknown).contains("nothing_median"));
}
