// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of claims over pairs of runs. It shows how far each model is from its kernel, claim by
//! claim. It also shows the deliberately wrong models and the settings that test the comparison,
//! and the machines.
//!
//! `tables` holds the sections; the skeleton, the style and the section on machines are those of
//! every report.

mod tables;

use crate::ModelNote;
use crate::group::group_all;
use crate::html::escape;
use crate::machines::machine_section;
use crate::page::head;
use crate::sections::footer;
use crate::warnings::warnings_section;
use crate::{ExperimentResult, ReportError};
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::claims::tables::pairs_summary;
use schedlab_run::Code;
use schedlab_run::file::write_whole;
use std::fmt::Write as _;
use std::path::Path;

/// The input of a validation's page.
#[derive(Clone, Copy, Debug)]
pub struct ValidationInput<'a> {
    /// Title.
    pub title: &'a str,
    /// The command that reproduces the page.
    pub command: &'a str,
    /// The claims with their verdicts.
    pub claims: &'a [ClaimResult],
    /// What was not compared, and why.
    pub missing: &'a [String],
    /// The runs.
    pub results: &'a [ExperimentResult],
    /// What each model simplifies.
    pub model_notes: &'a [ModelNote],
}

const CONTENTS: [(&str, &str); 8] = [
    ("verdicts", "Models and kernels at a glance"),
    ("comparisons", "Every value, task by task"),
    ("controls", "Models that are wrong on purpose"),
    ("knobs", "Settings that must move a measure"),
    ("tolerances", "What is allowed, and why"),
    ("missing", "What was not compared"),
    ("machine", "Machine, settings, versions, seeds"),
    ("models", "What the models simplify"),
];

/// The page as one HTML file.
pub fn render_validation(input: &ValidationInput<'_>) -> String {
    let groups = group_all(input.results);
    let claims = input.claims;
    let mut out = head(input.title);
    let _ = writeln!(
        out,
        "<main>\n<header>\n<h1>{}</h1>\n<p class=\"byline\">Made by <code>{}</code>, schedlab {}; \
         the same command makes it again. Machines, settings and seeds stand at the \
         <a href=\"#machine\">end</a>.</p>\n</header>",
        escape(input.title),
        escape(input.command),
        env!("CARGO_PKG_VERSION")
    );
    out += "<nav class=\"contents\" aria-label=\"Contents\">\n<h2>Contents</h2>\n<ol>\n";
    let is_there = |id: &str| id != "missing" || !input.missing.is_empty();
    for (id, text) in CONTENTS.into_iter().filter(|(id, _)| is_there(id)) {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{text}</a></li>");
    }
    out += "</ol>\n</nav>\n";
    let _ =
        writeln!(out, "<p class=\"summary\" id=\"summary\">{}</p>", escape(&pairs_summary(claims)));
    // Unfinished tasks are expected: the tasks of a validation compute until the run ends.
    out += &warnings_section(&groups, &[Code::UnfinishedTasks]);
    out += &tables::comparisons(claims);
    out += &tables::evidence(claims, input.results);
    if !input.missing.is_empty() {
        out += "<section id=\"missing\">\n<h2>What was not compared</h2>\n<ul>\n";
        for text in input.missing {
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

/// Writes the page to `path`, complete or not at all.
pub fn write_validation(path: &Path, input: &ValidationInput<'_>) -> Result<(), ReportError> {
    Ok(write_whole(path, render_validation(input).as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::{experiment, run};
    use schedlab_lab::claims::{
        Answer, CheckResult, KnobPoint, PairKind, PairResult, Reason, Scale, UnitResult, Verdict,
    };
    use schedlab_run::LaneKind::{Sim, Vm};

    fn check(what: &str, kind: PairKind, scale: Scale, answer: Answer) -> CheckResult {
        let unit = UnitResult {
            unit: "hog-<0>".into(),
            on: 0.25,
            against: 0.26,
            deviation: 0.012,
            ci95: [0.001, 0.02],
            variation: Some(0.03),
        };
        CheckResult {
            what: what.into(),
            lane: Vm,
            scheduler: Some("6.12".into()),
            value: "cpu_share".into(),
            published: None,
            holds: String::new(),
            why: "equal <shares>".into(),
            found: Some(0.012),
            ci95: Some([0.001, 0.02]),
            is_exact: false,
            is_time: false,
            nr_runs: 10,
            answer,
            reason: None,
            pair: Some(PairResult {
                kind,
                experiment: "nice vm 1".into(),
                workload: "<nice>".into(),
                nr_cpus: 1,
                release: "6.12.117".into(),
                against: "sim linux-6.12".into(),
                scale,
                within: 0.05,
                by_variation: false,
                units: vec![unit],
                slices: Vec::new(),
                knob: "nice".into(),
                points: vec![KnobPoint { value: "5".into(), deviation: 0.2 }],
            }),
        }
    }

    fn claims() -> Vec<ClaimResult> {
        let claim = |id: &str, checks| ClaimResult {
            facts: Vec::new(),
            study: "v".into(),
            id: id.into(),
            text: "t".into(),
            numbers: String::new(),
            remark: String::new(),
            verdict: Verdict::Fails,
            reason: String::new(),
            checks,
        };
        let reason = Some(Reason::NotInBoth { unit: "<this>".into() });
        vec![
            claim(
                "cpu_share",
                vec![
                    check("share", PairKind::Agrees, Scale::Points, Answer::Fails),
                    check("share", PairKind::Rejects, Scale::Points, Answer::Fails),
                    check("share", PairKind::Moves, Scale::Points, Answer::Holds),
                ],
            ),
            claim(
                "slices",
                vec![CheckResult {
                    reason,
                    ..check("slices equal", PairKind::Agrees, Scale::Slices, Answer::Inconclusive)
                }],
            ),
        ]
    }

    fn page(missing: &[String]) -> String {
        let mut guest = run(Vm, "6.12", 1, 1);
        guest.machine.kernel = "6.12.117<x>".into();
        let results = [experiment("nice vm 1", vec![run(Sim, "linux-6.12", 1, 1), guest])];
        render_validation(&ValidationInput {
            title: "How <far>",
            command: "schedlab validate --kernel '6.12'",
            claims: &claims(),
            missing,
            results: &results,
            model_notes: &[],
        })
    }

    #[test]
    fn the_page_has_values_verdicts_controls_knobs_reasons_and_the_machine() {
        let html = page(&["lane <host>: no model".into()]);
        for wanted in [
            "How &lt;far&gt;",
            "schedlab validate --kernel &#39;6.12&#39;",
            "1.20 pt",
            "25.00 %",
            "26.00 %",
            "only one of the two runs has &lt;this&gt;",
            "ACCEPTED",
            "equal &lt;shares&gt;",
            "own variation 3.00 pt",
            "5: 20.00 pt",
            "lane &lt;host&gt;: no model",
            "6.12.117&lt;x&gt;",
            "2 comparisons: 0 HOLDS, 1 FAILS, 1 INCONCLUSIVE; 0 of 1 wrong models are rejected",
        ] {
            assert!(html.contains(wanted), "{wanted}: {html}");
        }
        for hostile in ["<nice>", "<0>", "<this>", "<far>", "<host>", "<x>"] {
            assert!(!html.contains(hostile), "{hostile}");
        }
    }

    #[test]
    fn links_lead_somewhere_and_ids_are_unique() {
        let html = page(&["lane <host>: no model".into()]);
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
        let html = page(&[]);
        assert!(!html.contains("What was not compared") && html.contains("id=\"controls\""));
    }
}
