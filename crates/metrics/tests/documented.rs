// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every name under which a measure goes out stands in docs/reference/measures.md.

use schedlab_metrics::cpu_use::CpuMeasures;
use schedlab_metrics::{Distribution, RunMeasures, RunTotals, TaskMeasures};

/// The rows of the table below `heading`: the words in code style of the first column.
fn names_below(page: &str, heading: &str) -> Vec<String> {
    let (_, part) = page.split_once(heading).expect(heading);
    let part = part.split_once("\n## ").map_or(part, |(part, _)| part);
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once('`').expect("a closing quote").0.to_owned()).collect()
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
    for (value, heading) in [
        (&json["tasks"][0], "## Measures of a task"),
        (&json["totals"], "## Measures of the run"),
        (&distribution, "## Distributions"),
        (&cpu, "## Measures of a CPU"),
    ] {
        let mut fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        let mut documented = names_below(&page, heading);
        fields.sort();
        documented.sort();
        assert_eq!(documented, fields, "{heading}");
    }
}
