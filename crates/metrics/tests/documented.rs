// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/reference/measures.md names everything that goes out; the tables of measures in it are
//! made from their declarations.

use schedlab_metrics::analysis::{
    Antagonist, Antagonists, Curve, Depth, Findings, Lag, NamedAntagonist, Progress, QueueDepth,
    Starved, StateTime, TaskAnalysis, Wasted,
};
use schedlab_metrics::cpu_use::CpuMeasures;
use schedlab_metrics::{
    Distribution, Measures, ModelCounters, RunMeasures, RunTotals, TaskMeasures, Unit,
};
use std::collections::BTreeSet;

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

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/measures.md");

/// The table of a set of measures. Its last column has the numbers of the sources, which it adds
/// to the page's list.
fn table_of<S: Measures>(sources: &mut Vec<&'static str>) -> String {
    let mut table =
        String::from("| name | unit | formula | notes | source |\n|---|---|---|---|---|\n");
    for measure in S::LIST {
        let source = match measure.source {
            "" => String::new(),
            source => {
                let known = sources.iter().position(|known| *known == source);
                let at = known.unwrap_or_else(|| {
                    sources.push(source);
                    sources.len() - 1
                });
                format!("[{}](#sources)", at + 1)
            }
        };
        let [name, unit, formula] = [measure.name, measure.unit.text(), measure.formula];
        let cells = [&format!("`{name}`"), unit, formula, measure.notes, &source];
        let cells =
            cells.map(|cell| if cell.is_empty() { String::new() } else { format!("{cell} ") });
        table += &format!("| {}|\n", cells.join("| "));
    }
    table
}

/// The page with the numbered list of sources at its end.
fn with_sources(page: &str, sources: &[&str]) -> String {
    let (before, _) = page.split_once("\n## Sources\n").expect("the page lists its sources");
    let list = (1..).zip(sources).map(|(number, source)| format!("{number}. {source}\n"));
    format!("{before}\n## Sources\n\n{}", list.collect::<String>())
}

/// The page with `table` in place of the first one below `heading`.
fn with_table(page: &str, heading: &str, table: &str) -> String {
    let below = page.find(heading).expect(heading);
    let start = below + page[below..].find("\n|").expect("a table") + 1;
    let rows = page[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = start + rows.map(str::len).sum::<usize>();
    [&page[..start], table, &page[end..]].concat()
}

/// `cargo xtask bless` sets the variable and so writes the tables anew.
#[test]
fn tables_are_made_from_the_declarations() {
    let mut sources = Vec::new();
    let tables = [
        ("## Measures of a task", table_of::<TaskMeasures>(&mut sources)),
        ("## Measures of the run", table_of::<RunTotals>(&mut sources)),
        ("## Counters of the simulator", table_of::<ModelCounters>(&mut sources)),
        ("## Distributions", table_of::<Distribution>(&mut sources)),
    ];
    let page = || std::fs::read_to_string(PAGE).expect("the page of the measures is there");
    let wanted =
        tables.iter().fold(page(), |page, (heading, table)| with_table(&page, heading, table));
    let wanted = with_sources(&wanted, &sources);
    if std::env::var_os("SCHEDLAB_BLESS").is_some() {
        std::fs::write(PAGE, &wanted).unwrap();
    }
    assert!(page() == wanted, "docs/reference/measures.md is out of date: `cargo xtask bless`");
}

/// What a set declares is what goes out as JSON; each declaration says what is to be known.
fn check_declarations<S: Measures + serde::Serialize>() {
    let declared: Vec<&str> = S::LIST.iter().map(|measure| measure.name).collect();
    let json = json_of(S::default());
    let mut fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    let mut names = declared.clone();
    names.sort_unstable();
    fields.sort();
    assert_eq!(names, fields);
    for measure in S::LIST {
        let name = measure.name;
        assert!(!measure.formula.is_empty() && !measure.meaning.trim().is_empty(), "{name}");
        if !matches!(measure.unit, Unit::Label | Unit::Flag | Unit::Distribution) {
            let by_name = Unit::of_name(name).symbol();
            assert!(measure.unit.symbol() == by_name || name == "count", "{name}: {by_name}");
        }
    }
}

#[test]
fn declarations_are_whole_and_names_end_in_their_unit() {
    check_declarations::<TaskMeasures>();
    check_declarations::<RunTotals>();
    check_declarations::<ModelCounters>();
    check_declarations::<Distribution>();
}

/// Each number has one name, by which it is found; nothing that did not happen is 0.
#[test]
fn numbers_are_found_by_their_names() {
    let run = RunMeasures::default();
    let numbers = run.numbers();
    let names: BTreeSet<&String> = numbers.iter().map(|(name, _, _)| name).collect();
    assert_eq!(names.len(), numbers.len(), "a name is of one measure");
    for (name, unit, number) in &numbers {
        assert_eq!(run.number(name), Some(*number), "{name}");
        assert_eq!(unit.symbol(), Unit::of_name(name).symbol(), "{name}");
    }
    for absent in ["turnaround_ns_mean", "wait_count", "wait_ns_p99", "jain_index", "nr_interrupts"]
    {
        assert_eq!(run.number(absent), Some(None), "{absent}");
    }
    assert_eq!(run.number("nr_lock"), None);
    let counters = ModelCounters { nr_interrupts: 3, ..ModelCounters::default() };
    let simulated = RunMeasures { model: Some(counters), ..run };
    let number = |name| simulated.number(name).flatten().map(|number| number.as_f64());
    assert_eq!((number("nr_interrupts"), number("lock_wait_ns")), (Some(3.0), Some(0.0)));
}

#[test]
fn every_field_of_the_rest_is_documented_and_nothing_else() {
    let page = include_str!("../../../docs/reference/measures.md");
    let cpu = json_of(CpuMeasures::default());
    let (named, pid) = (|| Some(String::new()), Some(1));
    let progress = Progress { units: vec![1], ..Progress::default() };
    let analysed =
        TaskAnalysis { pid, progress: Some(progress.clone()), ..TaskAnalysis::default() };
    let state = StateTime { object: named(), kind: named(), ..StateTime::default() };
    let depth = Depth { curve: Some(Curve::default()), ..Depth::default() };
    for (value, heading) in [
        (&cpu, "## Measures of a CPU"),
        (&json_of(analysed), "### A task (`analysis.tasks[]`)"),
        (&json_of(state), "### A state"),
        (&json_of(Antagonists::default()), "### Antagonists"),
        (&json_of(Antagonist { pid, ..Antagonist::default() }), "### An antagonist"),
        (
            &json_of(NamedAntagonist { pid, ..NamedAntagonist::default() }),
            "### Antagonists of one name",
        ),
        (&json_of(depth), "### Depth of run queues"),
        (&json_of(QueueDepth::default()), "### Depth of dispatch queues"),
        (&json_of(Curve::default()), "### A curve"),
        (&json_of(Lag::default()), "### Lag"),
        (&json_of(progress), "### Progress over time"),
        (&json_of(Findings::<Wasted>::default()), "### Findings"),
        (&json_of(Starved { pid, ..Starved::default() }), "### A starved task"),
        (&json_of(Wasted { pid, ..Wasted::default() }), "### A wasted CPU"),
    ] {
        let mut fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        let mut documented = names_below(page, heading);
        fields.sort();
        documented.sort();
        assert_eq!(documented, fields, "{heading}");
    }
}
