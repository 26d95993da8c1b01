// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a validation: how far each model is from its kernel, metric by metric, the wrong
//! models and the knobs that say whether that means anything, and where it was measured.
//!
//! `tables` holds the parts; the skeleton, the style and what is said of the machines are those of
//! every report.

mod tables;

use crate::ModelNote;
use crate::group::group_all;
use crate::html::escape;
use crate::machines::machine_section;
use crate::number::plural;
use crate::page::head;
use crate::sections::footer;
use crate::warnings::warnings_section;
use crate::{ExperimentResult, ReportError};
use schedlab_lab::validate::{Validation, ValidationResult};
use schedlab_run::Code;
use schedlab_run::file::write_whole;
use std::fmt::Write as _;
use std::path::Path;

/// Everything the page of a validation is made from.
#[derive(Clone, Copy, Debug)]
pub struct ValidationInput<'a> {
    /// Title.
    pub title: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// What was to be compared, with the tolerances and their reasons.
    pub validation: &'a Validation,
    /// What came of it.
    pub found: &'a ValidationResult,
    /// The runs.
    pub results: &'a [ExperimentResult],
    /// What each model simplifies.
    pub model_notes: &'a [ModelNote],
}

const CONTENTS: [(&str, &str); 8] = [
    ("verdicts", "Models and kernels at a glance"),
    ("comparisons", "Every value, task by task"),
    ("controls", "Models that are wrong on purpose"),
    ("knobs", "Settings that must move a metric"),
    ("tolerances", "What is allowed, and why"),
    ("missing", "What was not compared"),
    ("machine", "Machine, settings, versions, seeds"),
    ("models", "What the models simplify"),
];

/// The page as one HTML file.
pub fn render_validation(input: &ValidationInput<'_>) -> String {
    let groups = group_all(input.results);
    let found = input.found;
    let mut out = head(input.title);
    let _ = writeln!(
        out,
        "<main>\n<header>\n<h1>{}</h1>\n<p class=\"byline\">Made by <code>{}</code>, schedlab {}; \
         the same command makes it again. Machines, settings and seeds stand at the \
         <a href=\"#machine\">end</a>.</p>\n</header>",
        escape(input.title),
        escape(input.command),
        escape(&found.schedlab_version)
    );
    out += "<nav class=\"contents\" aria-label=\"Contents\">\n<h2>Contents</h2>\n<ol>\n";
    let is_there = |id: &str| id != "missing" || !found.missing.is_empty();
    for (id, text) in CONTENTS.into_iter().filter(|(id, _)| is_there(id)) {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{text}</a></li>");
    }
    out += "</ol>\n</nav>\n";
    let _ = writeln!(out, "<p class=\"summary\" id=\"summary\">{}</p>", escape(&summary(found)));
    out += &tables::verdicts(found);
    // The tasks of a validation compute until the run is over.
    out += &warnings_section(&groups, &[Code::UnfinishedTasks]);
    out += &tables::comparisons(found);
    out += &tables::controls(found);
    out += &tables::knobs(found);
    out += &tables::tolerances(input.validation);
    if !found.missing.is_empty() {
        out += "<section id=\"missing\">\n<h2>What was not compared</h2>\n<ul>\n";
        for text in &found.missing {
            let _ = writeln!(out, "<li>{}</li>", escape(text));
        }
        out += "</ul>\n</section>\n";
    }
    out += &machine_section(&groups, Some(input.command));
    out += "</main>\n";
    out += &footer(input.model_notes);
    out += "</body>\n</html>\n";
    out
}

/// Writes the page to `path`, whole or not at all.
pub fn write_validation(path: &Path, input: &ValidationInput<'_>) -> Result<(), ReportError> {
    Ok(write_whole(path, render_validation(input).as_bytes())?)
}

/// What came of it in two sentences.
fn summary(found: &ValidationResult) -> String {
    format!(
        "{} of models with kernels: {}. {} of {} are rejected, {} of {} move their metric.",
        plural(found.comparisons.len(), "comparison", "comparisons"),
        found.verdicts_text(),
        found.nr_rejected(),
        plural(found.controls.len(), "wrong model", "wrong models"),
        found.nr_moving(),
        plural(found.sweeps.len(), "setting", "settings"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::{experiment, run};
    use schedlab_lab::claims::Reason;
    use schedlab_lab::validate::{
        Comparison, ControlResult, Metric, MetricResult, SweepPoint, SweepResult, UnitResult,
        Verdict,
    };
    use schedlab_run::LaneKind::{Sim, Vm};

    const FILE: &str = include_str!("../../../../studies/validate.toml");

    fn found() -> ValidationResult {
        let unit = |name: &str, deviation: f64| UnitResult {
            unit: name.into(),
            kernel: 0.25,
            model: 0.26,
            deviation,
            ci95: [0.001, 0.02],
        };
        let metric = |metric, verdict, reason| MetricResult {
            metric,
            verdict,
            reason,
            within: 0.05,
            units: vec![unit("hog-<0>", 0.012)],
            slices: Vec::new(),
        };
        let metrics = vec![
            metric(Metric::CpuShare, Verdict::Outside, None),
            metric(
                Metric::Slices,
                Verdict::Inconclusive,
                Some(Reason::NotInBoth { unit: "<this>".into() }),
            ),
        ];
        let comparison = Comparison {
            lane: Vm,
            kernel: "6.12".into(),
            release: "6.12.117".into(),
            model: "linux-6.12".into(),
            workload: "<nice>".into(),
            nr_cpus: 1,
            nr_runs: 5,
            metrics,
        };
        ValidationResult {
            name: "validate".into(),
            schedlab_version: "9.9.9".into(),
            comparisons: vec![comparison],
            controls: vec![ControlResult {
                metric: Metric::CpuShare,
                lane: Vm,
                nr_cpus: 1,
                kernel: "6.12".into(),
                workload: "<nice>".into(),
                model: "rr".into(),
                why: "equal <shares>".into(),
                deviation: 0.355,
                is_rejected: false,
            }],
            sweeps: vec![SweepResult {
                metric: Metric::CpuShare,
                lane: Vm,
                nr_cpus: 1,
                kernel: "6.12".into(),
                workload: "<nice>".into(),
                knob: "nice".into(),
                points: vec![SweepPoint { value: "5".into(), deviation: 0.2 }],
                moves: true,
            }],
            missing: vec!["lane <host>: no model".into()],
        }
    }

    fn page(found: &ValidationResult) -> String {
        let mut guest = run(Vm, "6.12", 1, 1);
        guest.machine.kernel = "6.12.117<x>".into();
        let results = [experiment("nice vm 1", vec![run(Sim, "linux-6.12", 1, 1), guest])];
        render_validation(&ValidationInput {
            title: "How <far>",
            command: "schedlab validate --kernel '6.12'",
            validation: &Validation::parse(FILE).unwrap(),
            found,
            results: &results,
            model_notes: &[],
        })
    }

    #[test]
    fn the_page_has_values_verdicts_controls_knobs_reasons_and_the_machine() {
        let html = page(&found());
        for wanted in [
            "How &lt;far&gt;",
            "schedlab validate --kernel &#39;6.12&#39;",
            "1.20 pt",
            "25.00 %",
            "26.00 %",
            "inconclusive: &lt;this&gt; is not in both",
            "ACCEPTED",
            "equal &lt;shares&gt;",
            "35.50 pt",
            "5: 20.00 pt",
            "lane &lt;host&gt;: no model",
            "6.12.117&lt;x&gt;",
            "a fifth of a nice level",
            "0 of 1\u{a0}wrong model are rejected",
        ] {
            assert!(html.contains(wanted), "{wanted}: {html}");
        }
        for hostile in ["<nice>", "<0>", "<this>", "<far>", "<host>", "<x>"] {
            assert!(!html.contains(hostile), "{hostile}");
        }
    }

    #[test]
    fn links_lead_somewhere_and_ids_are_unique() {
        let html = page(&found());
        let of = |mark: &str| -> Vec<&str> {
            html.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).collect()
        };
        let mut ids = of(" id=\"");
        for link in of("href=\"#") {
            assert!(ids.contains(&link), "{link}");
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn nothing_missing_is_not_a_section() {
        let complete = ValidationResult { missing: Vec::new(), ..found() };
        let html = page(&complete);
        assert!(!html.contains("What was not compared") && html.contains("id=\"controls\""));
    }
}
