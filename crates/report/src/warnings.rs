// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about the results, in words, before any figure: the runs' own warnings, and those
//! derived from the numbers (lost events, tasks that did not end, coarse sources).

use crate::fold::folded;
use crate::group::Group;
use crate::html::escape;
use crate::number::{count, plural};
use schedlab_run::{Code, RunResult, Warning};
use std::fmt::Write as _;

/// A warning with the runs that it concerns.
#[derive(Debug, PartialEq, Eq)]
pub struct Noted {
    /// The warning.
    pub warning: Warning,
    /// Experiments and lines that it concerns, each once.
    pub places: Vec<String>,
    /// Number of runs.
    pub runs: usize,
}

/// All warnings, each text once, in order of first appearance.
pub fn collect(groups: &[Group<'_>]) -> Vec<Noted> {
    let mut noted: Vec<Noted> = Vec::new();
    for group in groups {
        for cell in &group.cells {
            let config = &group.configs[cell.config];
            let place = format!("{}: {}", group.result.experiment.name, config.full_label());
            for run in &cell.runs {
                for warning in run.warnings.iter().cloned().chain(seen_in_numbers(run)) {
                    note(&mut noted, warning, &place);
                }
            }
        }
    }
    noted
}

fn note(noted: &mut Vec<Noted>, warning: Warning, place: &str) {
    let found = noted.iter().position(|known| known.warning == warning);
    let index = found.unwrap_or_else(|| {
        noted.push(Noted { warning, places: Vec::new(), runs: 0 });
        noted.len() - 1
    });
    let entry = &mut noted[index];
    entry.runs += 1;
    if !entry.places.iter().any(|known| known == place) {
        entry.places.push(place.to_string());
    }
}

fn seen_in_numbers(run: &RunResult) -> Vec<Warning> {
    let totals = &run.measures.totals;
    let mut out = Vec::new();
    let says_so = |one: &Warning| {
        matches!(one.code, Code::LostEvents | Code::LostMarks | Code::TraceLostEvents)
    };
    if totals.nr_lost_events > 0 && !run.warnings.iter().any(says_so) {
        let events = plural(totals.nr_lost_events as usize, "event", "events");
        out.push(Warning::lost_events_counted(&events));
    }
    if totals.nr_inconsistent_events > 0 {
        let events = plural(totals.nr_inconsistent_events as usize, "event", "events");
        let tasks = plural(totals.nr_uncertain_tasks as usize, "task", "tasks");
        out.push(Warning::inconsistent_events(&events, &tasks));
    }
    if totals.nr_exited < totals.nr_tasks {
        let unfinished = count(totals.nr_tasks - totals.nr_exited);
        out.push(Warning::unfinished_tasks(&unfinished, &count(totals.nr_tasks)));
    }
    if run.source == "schedstat" {
        out.push(Warning::no_recorder());
    }
    out
}

/// Groups warnings by code, in order of first appearance. Two hundred runs that each report another
/// load have one warning with two hundred figures.
fn by_code(noted: &[Noted]) -> Vec<Vec<&Noted>> {
    let mut codes: Vec<Vec<&Noted>> = Vec::new();
    for one in noted {
        match codes.iter_mut().find(|same| same[0].warning.code == one.warning.code) {
            Some(same) => same.push(one),
            None => codes.push(vec![one]),
        }
    }
    codes
}

/// Number of kinds of warnings about these results.
pub fn nr_warnings(groups: &[Group<'_>]) -> usize {
    by_code(&collect(groups)).len()
}

/// Writes one code: the first text visible, every text with its runs behind a click.
fn warning_item(same: &[&Noted]) -> String {
    let runs: usize = same.iter().map(|one| one.runs).sum();
    let first = same[0];
    let mut out = format!(
        "<li><strong>{}</strong> {} ",
        escape(first.warning.code.name()),
        escape(&first.warning.text),
    );
    let mut places = String::new();
    if same.len() == 1 {
        places += &escape(&first.places.join("; "));
    } else {
        places += "<ul>";
        for one in same {
            let affected = escape(&one.places.join("; "));
            let _ = write!(places, "<li>{affected}: {}</li>", escape(&one.warning.text));
        }
        places += "</ul>";
    }
    let summary = format!(
        "in {}{}",
        plural(runs, "run", "runs"),
        if same.len() > 1 { "; the text is the first one's" } else { "" }
    );
    out += &folded("", &summary, places);
    out += "</li>\n";
    out
}

/// Writes the section as HTML; empty without warnings. It omits the codes in `meant`: these
/// describe what the runs do on purpose.
pub fn warnings_section(groups: &[Group<'_>], meant: &[Code]) -> String {
    let mut noted = collect(groups);
    noted.retain(|one| !meant.contains(&one.warning.code));
    if noted.is_empty() {
        return String::new();
    }
    let codes = by_code(&noted);
    let mut out = format!(
        "<section id=\"warnings\" class=\"warnings\" aria-labelledby=\"warnings-head\">\n\
         <details><summary><h2 id=\"warnings-head\">{} about these results</h2></summary>\n<ul>\n",
        plural(codes.len(), "warning", "warnings")
    );
    for same in &codes {
        out += &warning_item(same);
    }
    out += "</ul>\n</details>\n</section>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Host;

    #[test]
    fn equal_warnings_merge_and_numbers_speak_for_themselves() {
        let mut a = run(Host, "RR", 2, 1);
        a.warnings = vec![Warning { code: Code::Steal, text: "<b>9 %".into() }];
        let mut b = a.clone();
        b.measures.totals.nr_lost_events = 3;
        b.measures.totals.nr_tasks = 2;
        b.measures.totals.nr_exited = 1;
        let mut c = a.clone();
        c.warnings[0].text = "another share".into();
        let results = [experiment("x", vec![a, b, c])];
        let groups = group_all(&results);
        let noted = collect(&groups);
        assert_eq!(by_code(&noted)[0].len(), 2);
        let shown = warnings_section(&groups, &[Code::UnfinishedTasks]);
        assert!(shown.contains("lost-events") && !shown.contains("unfinished-tasks"), "{shown}");
        let codes: Vec<&str> = noted.iter().map(|one| one.warning.code.name()).collect();
        assert_eq!(codes, ["steal", "lost-events", "unfinished-tasks", "steal"]);
        assert_eq!((noted[0].runs, noted[0].places.len()), (2, 1));
        let html = warnings_section(&groups, &[]);
        assert!(html.contains("3\u{a0}warnings about") && html.contains("&lt;b&gt;9 %"));
        assert!(html.contains("1 of 2 tasks had not ended"));
    }
}
