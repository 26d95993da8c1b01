// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far simulation and kernel agree. For each measure, the section shows the model's value of
//! every pair divided by the kernel's, as dots on a logarithmic scale and as a table. Bars show the
//! range of the kernel's own runs.

use crate::findings::{compared, within};
use crate::html::escape;
use crate::number::{plural, significant};
use crate::pairs::Pair;
use crate::style::Styles;
use schedlab_lab::against::{Against, MEASURES, Place};
use std::fmt::Write as _;

/// With more pairs than this, a measure shows dots without bars, which would overlap.
const BARS_MAX: usize = 6;

/// Writes the section as HTML.
pub fn agreement_section(pairs: &[Pair<'_>], styles: &Styles) -> String {
    let mut out =
        String::from("<section id=\"agreement\">\n<h2>How far simulation and kernel agree</h2>\n");
    if pairs.is_empty() {
        out += "<p>No simulated run has a measured partner with equal parameters, so nothing can \
            be compared.</p>\n</section>\n";
        return out;
    }
    exactness(&mut out, pairs);
    let bars = match pairs.len() <= BARS_MAX {
        true => {
            " The bar around 1 is the range of the kernel's own runs, from the least to the \
             greatest. A filled dot is inside of it or within 1\u{a0}% of 1, a hollow one is \
             outside or its uncertainty is unknown."
        }
        false => "",
    };
    let _ = writeln!(
        out,
        "<p>Each dot is one pair of a simulated and a measured configuration with the same \
         workload, n and CPUs: {} in all. Its place is the ratio <em>simulated \u{f7} \
         measured</em> of their medians over repetitions.{bars} The grey band is 10\u{a0}% to \
         either side of 1. The scale is logarithmic, so twice and half are equally far from 1. \
         Dots at the edge lie beyond it. Pairs in which both times are below 0.1\u{a0}ms, or both \
         counts below 10, are left out: their ratio says nothing about the policy.</p>",
        plural(pairs.len(), "pair", "pairs")
    );
    strips(&mut out, pairs, styles);
    table(&mut out, pairs, styles);
    out += "</section>\n";
    out
}

/// Writes how exact each comparison is; of many, how many pairs have an uncertainty at all.
fn exactness(out: &mut String, pairs: &[Pair<'_>]) {
    if pairs.len() > BARS_MAX {
        let repeated = pairs.iter().filter(|pair| pair.measured.runs.len() > 1).count();
        let _ = writeln!(
            out,
            "<p>The kernel ran several times in {repeated} of {}: only there its own range is \
             known.</p>",
            plural(pairs.len(), "pair", "pairs")
        );
        return;
    }
    for pair in pairs {
        let text = pair.all().sentences().join(" ");
        let _ = writeln!(
            out,
            "<p class=\"exactness\"><strong>{}</strong>: {}</p>",
            escape(&pair.label()),
            escape(&text)
        );
    }
}

/// The upper end of the scale; its inverse is the lower end.
fn reach(pairs: &[Pair<'_>]) -> f64 {
    let ends = |against: Against<'_>| {
        let bar = against.range().filter(|_| pairs.len() <= BARS_MAX);
        [against.ratio()].into_iter().chain(bar.into_iter().flatten())
    };
    let farthest = MEASURES
        .iter()
        .flat_map(|measure| compared(pairs, measure))
        .flat_map(|(against, _)| ends(against))
        .filter(|ratio| *ratio > 0.0)
        .map(|ratio| ratio.max(1.0 / ratio))
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
        let found = compared(pairs, measure);
        if !found.is_empty() {
            strip(out, measure.words(), &found, reach, &kinds, styles);
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
        let found = compared(pairs, measure);
        if let (Some(least), Some(most)) = (found.first(), found.last()) {
            let (least, most) = (significant(least.0.ratio()), significant(most.0.ratio()));
            let _ = write!(text, " {}: {least} to {most}{};", measure.words(), inside(&found));
        }
    }
    text
}

/// `, inside or equal in 2 of 3`, of the pairs whose kernel has a range; empty if none has.
fn inside(found: &[(Against<'_>, &Pair<'_>)]) -> String {
    let places = || found.iter().map(|(against, _)| against.place());
    let agree = places().filter(|place| place.agrees()).count();
    match places().filter(|place| *place != Place::Unknown).count() {
        0 => String::new(),
        known => format!(", inside or equal in {agree} of {known}"),
    }
}

/// Draws one measure: a track with a dot for each pair of `found` and, if they are few, the ranges
/// of the kernels.
fn strip(
    out: &mut String,
    name: &str,
    found: &[(Against<'_>, &Pair<'_>)],
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
    let has_bars = found.len() <= BARS_MAX;
    for (index, (against, pair)) in found.iter().enumerate() {
        let label = pair.label();
        // Each kind has its own height, and few pairs of one kind too, so that dots do not overlap.
        let kind = kinds.iter().position(|known| *known == label).unwrap_or(0);
        let (row, rows) = match has_bars && kinds.len() < found.len() {
            true => (index, found.len()),
            false => (kind, kinds.len()),
        };
        let height = 8.0 + 84.0 * (row as f64 + 0.5) / rows as f64;
        let colour = styles.of(pair.measured_config()).colour;
        if let Some(ends) = against.range().filter(|_| has_bars) {
            let [from, to] = ends.map(|end| place(end, reach));
            let _ = write!(
                out,
                "<i class=\"range c{colour}\" style=\"left:{from:.2}%;width:{:.2}%;\
                 top:{height:.0}%\"></i>",
                to - from
            );
        }
        let hollow = if has_bars && !against.place().agrees() { " hollow" } else { "" };
        let _ = write!(
            out,
            "<i class=\"dot c{colour}{hollow}\" style=\"left:{:.2}%;top:{height:.0}%\" \
             title=\"{}, n = {}, {}, {}: {}\"></i>",
            place(against.ratio(), reach),
            escape(&label),
            pair.measured.n,
            plural(pair.measured.cpus as usize, "CPU", "CPUs"),
            escape(&pair.group.result.experiment.name),
            ratio_text(against),
        );
    }
    let middle = found[found.len() / 2].0;
    let note = match found.len() {
        1 => ratio_text(&middle),
        count => format!(
            "median {}, {} of {count} within 10 %{}",
            significant(middle.ratio()),
            within(found, 0.1),
            inside(found)
        ),
    };
    let _ = writeln!(out, "</span><span class=\"strip-note\">{note}</span></div>");
}

/// `1.05 (kernel 0.97 to 1.08: inside)`.
fn ratio_text(against: &Against<'_>) -> String {
    let ratio = significant(against.ratio());
    match against.range() {
        Some([low, high]) => {
            let word = against.place().name();
            format!("{ratio} (kernel {} to {}: {word})", significant(low), significant(high))
        }
        None => format!("{ratio} (kernel's range unknown)"),
    }
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
    let names = MEASURES.iter().map(|measure| measure.words());
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
            match pair.against(measure) {
                Some(against) => {
                    let ratio = against.ratio();
                    let far = if (ratio - 1.0).abs() > 0.1 { " far" } else { "" };
                    let _ = write!(
                        out,
                        "<td class=\"num{far}\" data-v=\"{ratio}\">{}</td>",
                        ratio_text(&against)
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
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use crate::pairs::pairs_of;
    use schedlab_run::LaneKind::{Host, Sim};
    use schedlab_run::RunResult;

    /// The section on a model and so many kernel's runs, with these turnarounds.
    fn section(model: u64, kernel: &[u64]) -> String {
        let with = |mut run: RunResult, ns| {
            run.measures.totals.turnaround_ns_mean = Some(ns);
            run.machine.kernel = "6.18.44".into();
            run
        };
        let mut runs = vec![with(run(Sim, "linux-6.12", 2, 1), model)];
        runs.extend(kernel.iter().map(|ns| with(run(Host, "OTHER", 2, 1), *ns)));
        let results = [experiment("x", runs)];
        let groups = group_all(&results);
        agreement_section(&pairs_of(&groups), &Styles::new(&groups))
    }

    #[test]
    fn the_kernels_range_is_a_bar_with_the_models_dot() {
        let html = section(105, &[90, 100, 110]);
        assert_eq!(html.matches("class=\"range").count(), 1);
        assert!(html.contains("1.05 (kernel 0.900 to 1.10: inside)"), "{html}");
        assert!(!html.contains(" hollow\""));
        assert!(html.contains("median, in 1 of 1 measures"), "{html}");
        // On a scale to 1.5, the bar goes from ln 0.9 to ln 1.1.
        assert!(html.contains("left:37.01%;width:24.75%"), "{html}");
        let html = section(111, &[90, 100, 110]);
        assert!(html.contains("OUTSIDE") && html.contains(" hollow\""));
    }

    #[test]
    fn one_run_of_the_kernel_has_no_bar() {
        let html = section(105, &[100]);
        assert!(!html.contains("class=\"range"));
        assert!(html.contains("kernel's range unknown") && html.contains("--repetitions 5"));
    }

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
