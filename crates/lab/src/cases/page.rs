// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of cases as tables in Markdown.

use super::{Agreement, Cause, Counts, FeatureCounts, Half, KernelAgreement};
use schedlab_run::LaneKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The tables of all sets and halves: by kernel, by measure, by feature.
pub fn markdown(agreement: &Agreement) -> String {
    let mut text = String::new();
    let mut parts: BTreeMap<(&str, Half, bool), Vec<&KernelAgreement>> = BTreeMap::new();
    for one in &agreement.kernels {
        let is_here = one.lane != LaneKind::Vm;
        parts.entry((&one.set, one.half, is_here)).or_default().push(one);
    }
    for ((set, half, is_here), kernels) in parts {
        let head = |text: &mut String| {
            let of = match half {
                Half::Development => "development half",
                Half::HeldOut => "held-out half",
            };
            let place = if is_here { ", this machine" } else { "" };
            _ = writeln!(text, "**{set}, {of}{place}**\n");
        };
        head(&mut text);
        by_kernel(&mut text, &kernels);
        text.push('\n');
        by_name(&mut text, "measure", &kernels, &|one| shares(&one.figures.measures));
        text.push('\n');
        if kernels.iter().any(|one| !one.typical.is_empty()) {
            let head = "measure, off by (own variation)";
            by_name(&mut text, head, &kernels, &|one| {
                one.typical.iter().map(|(name, typical)| (name.clone(), typical.text())).collect()
            });
            text.push('\n');
        }
        by_name(&mut text, "feature (cases)", &kernels, &|one| shares(&features(one)));
        text.push('\n');
        if kernels.iter().any(|one| one.nr_wrong_caused.is_some()) {
            by_cause(&mut text, &kernels);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Counts by feature, whose name has the number of its cases.
fn features(one: &KernelAgreement) -> BTreeMap<String, Counts> {
    let of = |(name, found): (&String, &FeatureCounts)| (name.clone(), found.counts);
    one.figures.features.iter().map(of).collect()
}

/// The share that agrees, by name.
fn shares(counts: &BTreeMap<String, Counts>) -> BTreeMap<String, String> {
    counts.iter().map(|(name, counts)| (name.clone(), percent(counts.percent()))).collect()
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.1} %"))
}

fn row(text: &mut String, cells: &[String]) {
    _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn line(text: &mut String, count: usize) {
    _ = writeln!(text, "|{}", " --- |".repeat(count));
}

fn by_kernel(text: &mut String, kernels: &[&KernelAgreement]) {
    let heads = [
        "kernel",
        "model",
        "cases",
        "comparisons",
        "within the tolerance",
        "or what shifted starts change",
        "or what longer switches change",
        "the kernel itself",
        "a wrong model",
    ];
    row(text, &heads.map(String::from));
    line(text, heads.len());
    for one in kernels {
        let all = one.figures.all;
        let wrong = match &one.wrong {
            Some(name) => format!("{} (`{name}`)", percent(one.wrong_model.percent())),
            None => "-".into(),
        };
        row(
            text,
            &[
                one.release.split('+').next().unwrap_or_default().to_string(),
                format!("`{}`", one.model),
                one.nr_cases.to_string(),
                all.nr().to_string(),
                percent(all.percent_within()),
                percent(all.percent_shifted()),
                percent(all.percent().filter(|_| one.lane == LaneKind::Vm)),
                percent(one.kernel_itself.percent()),
                wrong,
            ],
        );
    }
}

/// A row for each cause: how many of the comparisons outside have it first.
fn by_cause(text: &mut String, kernels: &[&KernelAgreement]) {
    let titles = kernels.iter().map(|one| one.kernel.clone());
    row(text, &[vec!["outside because of".into()], titles.collect()].concat());
    line(text, kernels.len() + 1);
    let outside = || kernels.iter().flat_map(|one| &one.outside);
    let causes: BTreeSet<Option<Cause>> =
        outside().map(|one| one.causes.first().copied()).collect();
    let known = causes.iter().filter(|cause| cause.is_some());
    for cause in known.chain(causes.iter().filter(|cause| cause.is_none())) {
        let title = cause.map_or("none of these", Cause::text).to_string();
        let count = |one: &&KernelAgreement| {
            one.outside
                .iter()
                .filter(|one| one.causes.first() == cause.as_ref())
                .count()
                .to_string()
        };
        row(text, &[vec![title], kernels.iter().map(count).collect()].concat());
    }
    let all = |one: &&KernelAgreement| one.outside.len().to_string();
    row(text, &[vec!["all".into()], kernels.iter().map(all).collect()].concat());
    let of_wrong = |one: &&KernelAgreement| match one.nr_wrong_caused {
        Some(caused) => format!("{caused} of {}", one.wrong_model.outside),
        None => "-".into(),
    };
    let title = "of a wrong model's, with a cause".into();
    row(text, &[vec![title], kernels.iter().map(of_wrong).collect()].concat());
}

/// A row for each name, a column for each kernel.
fn by_name(
    text: &mut String,
    head: &str,
    kernels: &[&KernelAgreement],
    of: &dyn Fn(&KernelAgreement) -> BTreeMap<String, String>,
) {
    let cells: Vec<BTreeMap<String, String>> = kernels.iter().map(|one| of(one)).collect();
    let names: BTreeSet<&String> = cells.iter().flat_map(BTreeMap::keys).collect();
    let titles = kernels.iter().map(|one| one.kernel.clone());
    row(text, &[vec![head.to_string()], titles.collect()].concat());
    line(text, kernels.len() + 1);
    for name in names {
        let most = |one: &&KernelAgreement| one.figures.features.get(name).map(|f| f.nr_cases);
        let title = match kernels.iter().filter_map(most).max() {
            Some(nr_cases) => format!("{name} ({nr_cases})"),
            None => name.clone(),
        };
        let cell = |cells: &BTreeMap<String, String>| {
            cells.get(name).map_or_else(|| "-".into(), String::clone)
        };
        row(text, &[vec![title], cells.iter().map(cell).collect()].concat());
    }
}
