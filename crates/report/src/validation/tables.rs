// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the page of pairs.

use crate::ExperimentResult;
use crate::html::{escape, slug};
use crate::legend::verdict_item;
use crate::number::{duration, significant};
use schedlab_lab::claims::tables::{
    self, PairCell, PairDetail, PairTable, compared, controls, knobs,
};
use schedlab_lab::claims::{CheckResult, ClaimResult, Word};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// CSS class of a word.
const fn class(word: Word) -> &'static str {
    match word {
        Word::Holds | Word::HoldsByVariation => "holds",
        Word::Fails => "fails",
        Word::Inconclusive => "inconclusive",
        Word::SeesNothing => "partly",
    }
}

/// A sign for a word, so that colour is not the only cue.
const fn sign(word: Word) -> &'static str {
    match word {
        Word::Holds => "\u{2713}",
        Word::HoldsByVariation => "\u{2713} v",
        Word::Fails => "\u{2717}",
        Word::Inconclusive => "?",
        Word::SeesNothing => "~",
    }
}

fn value(check: &CheckResult, value: f64) -> String {
    if check.is_time { duration(value) } else { significant(value) }
}

fn cell(cell: &PairCell) -> String {
    match cell {
        PairCell::Text(text) => format!("<td>{}</td>", escape(text)),
        PairCell::Number(text) => format!("<td class=\"num\">{}</td>", escape(text)),
        PairCell::Deviation { text, own, word, verdict } => {
            let own = own.as_ref().map_or_else(String::new, |own| {
                format!("<br><small>own variation {}</small>", escape(own))
            });
            let (class, sign) = (class(*word), sign(*word));
            let verdict = escape(verdict);
            format!(
                "<td class=\"num\" title=\"{verdict}\">{} \
                 <span class=\"cell {class}\">{sign}</span>{own}</td>",
                escape(text)
            )
        }
        PairCell::Verdict(text, word) => {
            format!("<td><span class=\"verdict {}\">{text}</span></td>", class(*word))
        }
    }
}

fn id_of(detail: &PairDetail) -> String {
    format!("compared-{}", slug(&detail.place.join(" ")))
}

/// A table; with `details`, the first cell of each row links to its details.
fn table(table: &PairTable, style: &str, details: &[PairDetail]) -> String {
    let mut out = format!("<div class=\"scroll\"><table class=\"{style}\">\n<thead><tr>");
    for head in &table.heads {
        let _ = write!(out, "<th>{}</th>", escape(head));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (index, cells) in table.rows.iter().enumerate() {
        out += "<tr>";
        match (details.get(index), cells.split_first()) {
            (Some(detail), Some((PairCell::Text(first), rest))) => {
                let id = id_of(detail);
                let _ = write!(out, "<td><a href=\"#{id}\">{}</a></td>", escape(first));
                rest.iter().for_each(|one| out += &cell(one));
            }
            _ => cells.iter().for_each(|one| out += &cell(one)),
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

fn section(id: &str, title: &str, text: &str, rest: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n<p>{text}</p>\n{rest}</section>\n")
}

/// The comparisons at a glance, and a table with every value that opens for each comparison.
pub fn comparisons(claims: &[ClaimResult]) -> String {
    let (glance, details) = compared(claims, &value);
    let mut legend = String::from("<ul class=\"legend\" aria-label=\"Legend\">");
    for word in Word::ALL {
        legend += &verdict_item(class(word), sign(word), word.text());
    }
    legend += "</ul>\n";
    let out = section(
        "verdicts",
        "Models and kernels at a glance",
        "Each cell shows by how much the task that is farthest off differs between the model and \
         the kernel; of slices, how many are equal in order and length. Below it, where it was \
         measured, is the kernel\u{2019}s own variation: how far a task under the kernel is at \
         most from itself when the same workload starts some tens of microseconds later. A \
         comparison holds if the whole 95\u{a0}% interval of every task lies within the \
         tolerance, or within that variation.",
        &(legend + &table(&glance, "verdicts", &details)),
    );
    let mut every = String::new();
    for detail in &details {
        let [workload, kernel, model, place] = detail.place.each_ref().map(|text| escape(text));
        let _ = writeln!(
            every,
            "<details class=\"claim-details\" id=\"{}\"{}><summary>{workload} {kernel}: {place}, \
             release {}, against {model}, {} pairs of runs</summary>",
            id_of(detail),
            // A failed comparison is open at first, because readers look for failures.
            if detail.fails { " open" } else { "" },
            escape(&detail.release),
            detail.nr_pairs,
        );
        every += &table(&detail.table, "checks", &[]);
        for (what, text) in &detail.notes {
            let (what, text) = (escape(what), escape(text));
            let _ = writeln!(every, "<p class=\"claim-note\"><b>{what}:</b> {text}</p>");
        }
        every += "</details>\n";
    }
    out + &section(
        "comparisons",
        "Every value, task by task",
        "Means over the runs; the deviation is the mean over pairs of one seed, with its \
         95\u{a0}% interval. The kernel\u{2019}s own variation is the greatest deviation of one of \
         its runs with a shifted start.",
        &every,
    )
}

/// Evidence that agreement is meaningful (wrong models, knobs), then the tolerances and the
/// workloads.
pub fn evidence(claims: &[ClaimResult], results: &[ExperimentResult]) -> String {
    let of = |rows: PairTable| table(&rows, "checks", &[]);
    let mut workloads = String::from("<dl>\n");
    let mut seen = BTreeSet::new();
    for result in results {
        let Some(run) = result.runs.first() else { continue };
        if seen.insert(&run.workload) {
            let (name, text) = (escape(&run.workload), escape(result.experiment.text.trim()));
            let _ = writeln!(workloads, "<dt>{name}</dt><dd>{text}</dd>");
        }
    }
    [
        section(
            "controls",
            "Models that are wrong on purpose",
            "A comparison that accepts one of them tells nothing by its agreement.",
            &of(controls(claims)),
        ),
        section(
            "knobs",
            "Settings that must move a measure",
            "The model with each value of the setting, against the same runs of the kernel. A \
             comparison that no setting moves by more than the tolerance sees nothing.",
            &of(knobs(claims)),
        ),
        section(
            "tolerances",
            "What is allowed, and why",
            "Written down before anything ran.",
            &(of(tables::tolerances(claims)) + &workloads + "</dl>\n"),
        ),
    ]
    .concat()
}
