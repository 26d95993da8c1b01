// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far simulation and kernel agree. For each measure, the section shows every pair's ratio
//! (simulated by measured), as dots on a logarithmic scale and as a table.

use crate::findings::{ratios, within};
use crate::html::escape;
use crate::number::{plural, significant};
use crate::pairs::{MEASURES, Pair};
use crate::style::Styles;
use std::fmt::Write as _;

/// Writes the section as HTML.
pub fn agreement_section(pairs: &[Pair<'_>], styles: &Styles) -> String {
    let mut out =
        String::from("<section id=\"agreement\">\n<h2>How far simulation and kernel agree</h2>\n");
    if pairs.is_empty() {
        out += "<p>No simulated run has a measured partner with equal parameters, so nothing can \
            be compared.</p>\n</section>\n";
        return out;
    }
    let _ = writeln!(
        out,
        "<p>Each dot is one pair of a simulated and a measured configuration with the same \
         workload, n and CPUs: {} in all. It stands at the ratio <em>simulated \u{f7} \
         measured</em> of their means over repetitions; the grey band is 10\u{a0}% to either \
         side of 1. The scale is logarithmic, so twice and half are equally far from 1. Dots at \
         the edge lie beyond it. Pairs in which both times are below 0.1\u{a0}ms, or both counts \
         below 10, are left out: their ratio says nothing about the policy.</p>",
        plural(pairs.len(), "pair", "pairs")
    );
    strips(&mut out, pairs, styles);
    table(&mut out, pairs, styles);
    out += "</section>\n";
    out
}

/// The upper end of the scale; its inverse is the lower end.
fn reach(pairs: &[Pair<'_>]) -> f64 {
    let farthest = MEASURES
        .iter()
        .flat_map(|measure| ratios(pairs, measure))
        .filter(|(ratio, _)| *ratio > 0.0)
        .map(|(ratio, _)| ratio.max(1.0 / ratio))
        .fold(1.0, f64::max);
    [1.5, 2.0, 4.0].into_iter().find(|reach| farthest <= *reach).unwrap_or(10.0)
}

/// Position of `ratio` on the scale, 0 to 100.
fn place(ratio: f64, reach: f64) -> f64 {
    let at = ratio.max(f64::MIN_POSITIVE).ln() / reach.ln();
    50.0 + 50.0 * at.clamp(-1.0, 1.0)
}

fn strips(out: &mut String, pairs: &[Pair<'_>], styles: &Styles) {
    let reach = reach(pairs);
    let kinds = kinds_of(pairs);
    let _ = writeln!(
        out,
        "<div class=\"strips\" role=\"img\" aria-label=\"{}\">",
        escape(&alternative(pairs))
    );
    for measure in &MEASURES {
        let found = ratios(pairs, measure);
        if !found.is_empty() {
            strip(out, measure.name, &found, reach, &kinds, styles);
        }
    }
    *out +=
        "<div class=\"strip axis\"><span class=\"strip-name\"></span><span class=\"strip-track\">";
    for tick in ticks(reach) {
        let _ = write!(out, "<b style=\"left:{:.2}%\">{tick}</b>", place(*tick, reach));
    }
    *out += "</span><span class=\"strip-note\">simulated \u{f7} measured</span></div>\n</div>\n";
    legend(out, pairs, styles);
}

/// Ticks of an axis from 1/`reach` to `reach`.
fn ticks(reach: f64) -> &'static [f64] {
    match reach {
        r if r <= 1.5 => &[0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4],
        r if r <= 2.0 => &[0.5, 0.7, 0.9, 1.0, 1.1, 1.4, 2.0],
        r if r <= 4.0 => &[0.25, 0.5, 1.0, 2.0, 4.0],
        _ => &[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0],
    }
}

fn alternative(pairs: &[Pair<'_>]) -> String {
    let mut text = String::from("Ratios simulated by measured.");
    for measure in &MEASURES {
        let found = ratios(pairs, measure);
        if let (Some(least), Some(most)) = (found.first(), found.last()) {
            let (least, most) = (significant(least.0), significant(most.0));
            let _ = write!(text, " {}: {least} to {most};", measure.name);
        }
    }
    text
}

/// Draws one measure: a track with a dot for each pair of `found`.
fn strip(
    out: &mut String,
    name: &str,
    found: &[(f64, &Pair<'_>)],
    reach: f64,
    kinds: &[String],
    styles: &Styles,
) {
    let (low, high) = (place(0.9, reach), place(1.1, reach));
    let _ = write!(
        out,
        "<div class=\"strip\"><span class=\"strip-name\">{name}</span><span class=\"strip-track\">\
         <i class=\"band\" style=\"left:{low:.2}%;width:{:.2}%\"></i><i class=\"one\"></i>",
        high - low
    );
    for (ratio, pair) in found {
        let label = pair.label();
        // Give each kind of pair its own height, so that dots of different kinds do not overlap.
        let kind = kinds.iter().position(|known| *known == label).unwrap_or(0);
        let height = 8.0 + 84.0 * (kind as f64 + 0.5) / kinds.len() as f64;
        let _ = write!(
            out,
            "<i class=\"dot c{}\" style=\"left:{:.2}%;top:{height:.0}%\" \
             title=\"{}, n = {}, {}, {}: {}\"></i>",
            styles.of(pair.measured_config()).colour,
            place(*ratio, reach),
            escape(&label),
            pair.measured.n,
            plural(pair.measured.cpus as usize, "CPU", "CPUs"),
            escape(&pair.group.result.experiment.name),
            significant(*ratio),
        );
    }
    let _ = writeln!(
        out,
        "</span><span class=\"strip-note\">median {}, {} of {} within 10 %</span></div>",
        significant(found[found.len() / 2].0),
        within(found, 0.1),
        found.len()
    );
}

/// The distinct labels of `pairs`, in order of appearance.
fn kinds_of(pairs: &[Pair<'_>]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for label in pairs.iter().map(Pair::label) {
        if !kinds.contains(&label) {
            kinds.push(label);
        }
    }
    kinds
}

fn legend(out: &mut String, pairs: &[Pair<'_>], styles: &Styles) {
    let mut seen: Vec<String> = Vec::new();
    *out += "<ul class=\"legend\" aria-label=\"Legend\">";
    for pair in pairs {
        let label = pair.label();
        if !seen.contains(&label) {
            let colour = styles.of(pair.measured_config()).colour;
            let _ = write!(
                out,
                "<li><span><i class=\"dot c{colour}\"></i>{}</span></li>",
                escape(&label)
            );
            seen.push(label);
        }
    }
    *out += "</ul>\n";
}

fn table(out: &mut String, pairs: &[Pair<'_>], styles: &Styles) {
    *out += "<div class=\"fig-foot\"><a class=\"csv-of\" href=\"#agreement\" \
        data-table=\"agreement-table\" download=\"agreement.csv\">Data as CSV</a></div>";
    *out += "<details class=\"data-table\"><summary>Data as a table</summary><div class=\"scroll\">\
        <table class=\"sortable\" id=\"agreement-table\">\n<thead><tr>";
    for head in ["experiment", "pair"] {
        let _ = write!(out, "<th scope=\"col\"><button type=\"button\">{head}</button></th>");
    }
    let names = MEASURES.iter().map(|measure| measure.name);
    for head in ["n", "CPUs"].into_iter().chain(names) {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"num\"><button type=\"button\">{head}</button></th>"
        );
    }
    *out += "</tr></thead>\n<tbody>\n";
    for pair in pairs {
        let colour = styles.of(pair.measured_config()).colour;
        let _ = write!(
            out,
            "<tr><td><a href=\"#{}\">{}</a></td><th scope=\"row\"><i class=\"dot c{colour}\"></i>\
             {}</th><td class=\"num\" data-v=\"{n}\">{n}</td>\
             <td class=\"num\" data-v=\"{cpus}\">{cpus}</td>",
            pair.group.id,
            escape(&pair.group.result.experiment.name),
            escape(&pair.label()),
            n = pair.measured.n,
            cpus = pair.measured.cpus,
        );
        for measure in &MEASURES {
            match pair.ratio(measure) {
                Some(ratio) => {
                    let far = if (ratio - 1.0).abs() > 0.1 { " far" } else { "" };
                    let _ = write!(
                        out,
                        "<td class=\"num{far}\" data-v=\"{ratio}\">{}</td>",
                        significant(ratio)
                    );
                }
                None => *out += "<td class=\"num none\">\u{2013}</td>",
            }
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div></details>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_and_half_are_equally_far_and_the_edge_holds() {
        assert_eq!(place(1.0, 2.0), 50.0);
        assert!((place(2.0, 4.0) - 75.0).abs() < 1e-9);
        assert!((place(0.5, 4.0) - 25.0).abs() < 1e-9);
        assert_eq!(place(1e9, 10.0), 100.0);
        assert_eq!(place(0.0, 10.0), 0.0);
    }

    #[test]
    fn without_pairs_the_section_says_so() {
        let html = agreement_section(&[], &Styles::default());
        assert!(html.contains("nothing can be compared"));
    }
}
