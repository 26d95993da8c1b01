// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up studies around the made-up results: claims of every verdict, figures, tables, and more
//! runs than a page shows at once. The example and the structure test share them.

use crate::results;
use schedlab_lab::ExperimentResult;
use schedlab_lab::claims::{Answer, CheckResult, ClaimResult, Found, Verdict};
use schedlab_lab::redrawn::{
    Drawn, DrawnKind, DrawnPanel, DrawnPoint, DrawnRow, DrawnSeries, DrawnTable,
};
use schedlab_report::StudyPage;
use schedlab_run::LaneKind;

/// A reproduction of two studies.
pub struct Reproduction {
    /// Experiments of both studies.
    pub results: Vec<ExperimentResult>,
    /// Claims of both studies.
    pub claims: Vec<ClaimResult>,
    /// The studies.
    pub studies: Vec<StudyPage>,
}

/// The whole reproduction; with `long` also a timeline of 100,000 slices in study S0.
pub fn reproduction(long: bool) -> Reproduction {
    let mut results = results::small();
    if long {
        results.extend(results::all());
    }
    for result in &mut results {
        if result.experiment.study.is_empty() {
            result.experiment.study = "S0".into();
        }
    }
    let studies = vec![
        study("S0", "Timeline and progress of <b>processes</b>", DrawnKind::Who),
        study("S1", "Turnaround time against the number of processes", DrawnKind::Lines),
    ];
    let claims = ["S0", "S1"].into_iter().flat_map(claims).collect();
    Reproduction { results, claims, studies }
}

fn claims(study: &str) -> Vec<ClaimResult> {
    let answers = [
        (Verdict::Holds, vec![Answer::Holds, Answer::Holds]),
        (Verdict::PartlyHolds, vec![Answer::Holds, Answer::Fails]),
        (Verdict::PartlyHolds, vec![Answer::Holds, Answer::Inconclusive]),
        (Verdict::Fails, vec![Answer::Fails]),
        (Verdict::Inconclusive, vec![]),
    ];
    let claim = |(index, (verdict, answers)): (usize, (Verdict, Vec<Answer>))| ClaimResult {
        facts: Vec::new(),
        study: study.into(),
        id: format!("{study}-{}", index + 1),
        text: "Twice the work takes <twice> as long, whatever the policy.".into(),
        numbers: "2.1 on one CPU, 1.05 on two".into(),
        remark: String::new(),
        verdict,
        reason: "lane host was not asked for".into(),
        checks: answers.into_iter().map(check).collect(),
    };
    answers.into_iter().enumerate().map(claim).collect()
}

fn check(answer: Answer) -> CheckResult {
    CheckResult {
        pair: None,
        what: "makespan, two by one".into(),
        lane: LaneKind::Sim,
        scheduler: Some("linux-6.12".into()),
        value: "makespan_ns[n=2] / makespan_ns[n=1]".into(),
        published: Some(2.1),
        holds: "1.99 .. 2.02".into(),
        why: "2, and what switching costs".into(),
        found: Some(2.003),
        ci95: None,
        is_exact: true,
        is_time: false,
        nr_runs: 1,
        answer,
        reason: None,
    }
}

fn study(name: &str, title: &str, kind: DrawnKind) -> StudyPage {
    StudyPage {
        name: name.into(),
        title: title.into(),
        author: "N. Obody, Made-up Numbers (2020)".into(),
        text: "Processes of equal work start at once.\n\nNothing of this was measured.".into(),
        figures: vec![figure(name, 1, kind), empty(figure(name, 2, DrawnKind::Bars))],
        tables: vec![table(name), published(name)],
    }
}

/// A figure for which no run gave data.
fn empty(drawn: Drawn) -> Drawn {
    Drawn { panels: Vec::new(), ..drawn }
}

/// Eight panels with 400 points each: enough data that the page packs it.
fn figure(study: &str, number: usize, kind: DrawnKind) -> Drawn {
    let series = |task: usize| DrawnSeries {
        label: format!("process {task}"),
        points: (0..100)
            .map(|at| DrawnPoint::plain((at * 4 + task) as f64, task as f64 + at as f64 * 0.01))
            .collect(),
    };
    let panel = |index: usize| DrawnPanel {
        kind,
        title: format!("policy {index}, this machine"),
        is_original: index == 0,
        series: (0..4).map(series).collect(),
    };
    Drawn {
        id: format!("{study}-F{number}"),
        title: "Who ran when".into(),
        text: "Each dot is a record; processes that share a CPU alternate from one to the next."
            .into(),
        claims: vec![format!("{study}-1")],
        source: Some("the study's records".into()),
        columns: 4,
        x_label: "elapsed time (ms)".into(),
        y_label: "process".into(),
        log: false,
        y_range: [None, None],
        groups: Vec::new(),
        panels: (0..8).map(panel).collect(),
        missing: vec!["RR, this machine".into()],
    }
}

fn table(study: &str) -> DrawnTable {
    let found = |value| Found { value, ci95: Some([value - 0.3, value + 0.3]), ..Found::default() };
    let row = |index: u32| DrawnRow {
        label: format!("work {}", index / 3),
        place: ["OTHER", "FIFO", "RR"][index as usize % 3].into(),
        cells: (0..6).map(|at| Some(found(f64::from(index * 7 + at)))).collect(),
        references: vec![Some(vec![14.5, 394.0])],
        raw: vec!["15.26 60.15 0.1 399% 12 4".into(); 10],
    };
    DrawnTable {
        id: format!("{study}-T1"),
        title: "Cells of policy and work".into(),
        text: String::new(),
        claims: vec![format!("{study}-2")],
        columns: ["wall (s)", "user (s)", "system (s)", "CPU (%)", "involuntary", "voluntary"]
            .map(String::from)
            .into(),
        references: vec![("D. M.".into(), vec!["wall (s)".into(), "CPU (%)".into()])],
        rows: (0..27).map(row).collect(),
        has_raw: true,
    }
}

/// Only what others have published, in tables that are wider than a phone.
fn published(study: &str) -> DrawnTable {
    let table = table(study);
    let values = |value: f64| (0..table.columns.len()).map(|at| value + at as f64).collect();
    let row = |index: u32| DrawnRow {
        label: format!("work {index}"),
        place: "OTHER".into(),
        cells: Vec::new(),
        references: vec![Some(values(394.0)), Some(values(14.5))],
        raw: Vec::new(),
    };
    let source = |name: &str| (name.to_owned(), table.columns.clone());
    DrawnTable {
        id: format!("{study}-T2"),
        title: "What others have published".into(),
        columns: Vec::new(),
        references: vec![source("D. M., 4 CPUs"), source("K. R., 2 CPUs")],
        rows: (0..3).map(row).collect(),
        has_raw: false,
        ..table.clone()
    }
}
