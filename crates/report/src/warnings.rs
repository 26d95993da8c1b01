// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may falsify the results, in words, before any figure: the runs' own warnings, and what
//! the numbers themselves give away (lost events, tasks that did not end, coarse sources).

use crate::group::Group;
use crate::html::escape;
use crate::number::{count, plural};
use schedlab_run::RunResult;
use std::fmt::Write as _;

/// One warning with the runs it bears on.
#[derive(Debug, PartialEq, Eq)]
pub struct Noted {
    /// Short name.
    pub code: String,
    /// Cause, consequence, next step.
    pub text: String,
    /// Experiments and lines it bears on, each once.
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
                for warning in &run.warnings {
                    note(&mut noted, &warning.code, warning.text.clone(), &place);
                }
                for (code, text) in seen_in_numbers(run) {
                    note(&mut noted, code, text, &place);
                }
            }
        }
    }
    noted
}

fn note(noted: &mut Vec<Noted>, code: &str, text: String, place: &str) {
    let found = noted.iter().position(|n| n.code == code && n.text == text);
    let index = found.unwrap_or_else(|| {
        noted.push(Noted { code: code.into(), text, places: Vec::new(), runs: 0 });
        noted.len() - 1
    });
    let entry = &mut noted[index];
    entry.runs += 1;
    if !entry.places.iter().any(|known| known == place) {
        entry.places.push(place.to_string());
    }
}

fn seen_in_numbers(run: &RunResult) -> Vec<(&'static str, String)> {
    let totals = &run.measures.totals;
    let mut out = Vec::new();
    if totals.nr_lost_events > 0 && !run.warnings.iter().any(|w| w.code.contains("lost")) {
        out.push((
            "lost-events",
            format!(
                "The recorder lost {}. Switches, slices and run delay of these runs are too low; \
                 record again with fewer tasks or a greater buffer.",
                plural(totals.nr_lost_events as usize, "event", "events")
            ),
        ));
    }
    if totals.nr_inconsistent_events > 0 {
        out.push((
            "inconsistent-events",
            format!(
                "{} contradict what was recorded before them, which a whole recording never \
                 does; {} may have wrong figures. Record again; if it happens without lost \
                 events, the recorder has a fault.",
                plural(totals.nr_inconsistent_events as usize, "event", "events"),
                plural(totals.nr_uncertain_tasks as usize, "task", "tasks")
            ),
        ));
    }
    if totals.nr_exited < totals.nr_tasks {
        out.push((
            "unfinished-tasks",
            format!(
                "{} of {} tasks had not ended when the run did. Mean turnaround counts only those \
                 that ended and there is no makespan; let the run last longer.",
                count(totals.nr_tasks - totals.nr_exited),
                count(totals.nr_tasks)
            ),
        ));
    }
    if run.source == "schedstat" {
        out.push((
            "no-recorder",
            "These runs were measured without the event recorder, from /proc/PID/schedstat and \
             the tasks' own time stamps: they have no timeline and no wake-up latency. Run as \
             root on a kernel with BTF to get both."
                .to_string(),
        ));
    }
    out
}

/// Warnings of one code together, in order of first appearance: two hundred runs that each say how
/// much other load they met are one thing to know, with two hundred figures behind it.
fn by_code(noted: &[Noted]) -> Vec<Vec<&Noted>> {
    let mut codes: Vec<Vec<&Noted>> = Vec::new();
    for warning in noted {
        match codes.iter_mut().find(|same| same[0].code == warning.code) {
            Some(same) => same.push(warning),
            None => codes.push(vec![warning]),
        }
    }
    codes
}

/// One code: the first text in the open, every text with its runs behind a click.
fn warning_item(same: &[&Noted]) -> String {
    let runs: usize = same.iter().map(|warning| warning.runs).sum();
    let first = same[0];
    let mut out = format!(
        "<li><strong>{}</strong> {} <details><summary>in {}{}</summary>",
        escape(&first.code),
        escape(&first.text),
        plural(runs, "run", "runs"),
        if same.len() > 1 { "; the text is the first one's" } else { "" }
    );
    if same.len() == 1 {
        out += &escape(&first.places.join("; "));
    } else {
        out += "<ul>";
        for warning in same {
            let places = escape(&warning.places.join("; "));
            let _ = write!(out, "<li>{places}: {}</li>", escape(&warning.text));
        }
        out += "</ul>";
    }
    out += "</details></li>\n";
    out
}

/// The section's HTML; empty without warnings. Those with the codes of `meant` are left out: they
/// say what the runs are made to do.
pub fn warnings_section(groups: &[Group<'_>], meant: &[&str]) -> String {
    let mut noted = collect(groups);
    noted.retain(|one| !meant.contains(&one.code.as_str()));
    if noted.is_empty() {
        return String::new();
    }
    let codes = by_code(&noted);
    let mut out = format!(
        "<section id=\"warnings\" class=\"warnings\" aria-labelledby=\"warnings-head\">\n\
         <h2 id=\"warnings-head\">{} may falsify these results</h2>\n<ul>\n",
        plural(codes.len(), "thing", "things")
    );
    for same in &codes {
        out += &warning_item(same);
    }
    out += "</ul>\n</section>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::Warning;

    #[test]
    fn equal_warnings_merge_and_numbers_speak_for_themselves() {
        let mut a = run("host", "RR", 2, 1);
        a.warnings = vec![Warning { code: "steal".into(), text: "<b>9 %".into() }];
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
        let shown = warnings_section(&groups, &["unfinished-tasks"]);
        assert!(shown.contains("lost-events") && !shown.contains("unfinished-tasks"), "{shown}");
        let codes: Vec<&str> = noted.iter().map(|n| n.code.as_str()).collect();
        assert_eq!(codes, ["steal", "lost-events", "unfinished-tasks", "steal"]);
        assert_eq!((noted[0].runs, noted[0].places.len()), (2, 1));
        let html = warnings_section(&groups, &[]);
        assert!(html.contains("3\u{a0}things may falsify") && html.contains("&lt;b&gt;9 %"));
        assert!(html.contains("1 of 2 tasks had not ended"));
    }
}
