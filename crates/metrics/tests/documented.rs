// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every name under which a measure goes out stands in docs/reference/measures.md.

use schedlab_metrics::analysis::{
    Antagonist, Antagonists, Curve, Depth, Findings, Lag, Progress, Starved, StateTime,
    TaskAnalysis, Wasted,
};
use schedlab_metrics::cpu_use::CpuMeasures;
use schedlab_metrics::{Distribution, RunMeasures, RunTotals, TaskMeasures};

/// The rows of the table below `heading`: the words in code style of the first column.
fn names_below(page: &str, heading: &str) -> Vec<String> {
    let (_, part) = page.split_once(heading).expect(heading);
    let part = part.split_once("\n## ").map_or(part, |(part, _)| part);
    let part = part.split_once("\n### ").map_or(part, |(part, _)| part);
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once('`').expect("a closing quote").0.to_owned()).collect()
}

fn json_of(value: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn every_field_is_documented_and_nothing_else() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/measures.md");
    let page = std::fs::read_to_string(path).expect("the page of the measures is there");
    let measures =
        RunMeasures { totals: RunTotals::default(), tasks: vec![TaskMeasures::default()] };
    let json = serde_json::to_value(&measures).unwrap();
    let distribution = serde_json::to_value(Distribution::default()).unwrap();
    let cpu = serde_json::to_value(CpuMeasures::default()).unwrap();
    let named = || Some(String::new());
    let progress = Progress { units: vec![1], ..Progress::default() };
    let analysed = TaskAnalysis { progress: Some(progress.clone()), ..TaskAnalysis::default() };
    let state = StateTime { object: named(), kind: named(), ..StateTime::default() };
    let depth = Depth { curve: Some(Curve::default()), ..Depth::default() };
    for (value, heading) in [
        (&json["tasks"][0], "## Measures of a task"),
        (&json["totals"], "## Measures of the run"),
        (&distribution, "## Distributions"),
        (&cpu, "## Measures of a CPU"),
        (&json_of(analysed), "### A task (`analysis.tasks[]`)"),
        (&json_of(state), "### A state"),
        (&json_of(Antagonists::default()), "### Antagonists"),
        (&json_of(Antagonist::default()), "### An antagonist"),
        (&json_of(depth), "### Depth of run queues"),
        (&json_of(Curve::default()), "### A curve"),
        (&json_of(Lag::default()), "### Lag"),
        (&json_of(progress), "### Progress over time"),
        (&json_of(Findings::<Wasted>::default()), "### Findings"),
        (&json_of(Starved::default()), "### A starved task"),
        (&json_of(Wasted::default()), "### A wasted CPU"),
    ] {
        let mut fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        let mut documented = names_below(&page, heading);
        fields.sort();
        documented.sort();
        assert_eq!(documented, fields, "{heading}");
    }
}
