// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the figures as files.

use crate::ReportInput;
use crate::analysis::analysis_files;
use crate::boxes::{box_file, box_pictures};
use crate::curves::{Facet, axis_of, curves_chart, facets_of};
use crate::draw::timeline_file;
use crate::error::ReportError;
use crate::group::{Group, group_all};
use crate::html::slug;
use crate::latency::latency_file;
use crate::progress::progress_file;
use crate::study::figure_files;
use crate::style::Styles;
use crate::sweep::{sweep_chart, sweep_pictures};
use crate::timeline::{Timeline, timeline_runs};
use schedlab_lab::FigureKind;
use schedlab_run::file::write_whole;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Writes every figure of `input` into the folder `dir` as `NAME.svg` and returns their paths in
/// order. Creates the folder if needed. Each file is complete or missing.
pub fn write_plots(dir: &Path, input: &ReportInput<'_>) -> Result<Vec<PathBuf>, ReportError> {
    let groups = group_all(input.results);
    if groups.is_empty() {
        return Err(ReportError::NoRuns { experiments: input.results.len() });
    }
    std::fs::create_dir_all(dir)
        .map_err(|source| ReportError::Write { path: dir.into(), source })?;
    let styles = Styles::new(&groups);
    let mut written = Vec::new();
    let mut names = BTreeSet::new();
    let of_group = |group| files(group, &styles).into_iter().chain(analysis_files(group));
    let own = groups.iter().flat_map(of_group);
    let of_studies = input.studies.iter().flat_map(|page| figure_files(&page.figures));
    for (name, svg) in of_studies.chain(own) {
        let mut unique = name.clone();
        let mut again = 1;
        while !names.insert(unique.clone()) {
            again += 1;
            unique = format!("{name}-{again}");
        }
        let path = dir.join(format!("{unique}.svg"));
        write_whole(&path, svg.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

fn files(group: &Group<'_>, styles: &Styles) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut kinds: Vec<FigureKind> = Vec::new();
    for kind in &group.result.experiment.figures {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    for kind in kinds {
        match kind {
            FigureKind::Timeline => {
                let runs: Vec<Timeline<'_>> = timeline_runs(group)
                    .into_iter()
                    .map(|(title, lane, run)| Timeline::new(title, lane, run))
                    .collect();
                if !runs.is_empty() {
                    let svg = timeline_file(group.title(), &runs);
                    out.push((format!("{}-timeline", group.id), svg));
                }
            }
            FigureKind::Progress => {
                let svg = progress_file(group);
                out.extend(svg.map(|svg| (format!("{}-progress", group.id), svg)));
            }
            FigureKind::TurnaroundAgainstN | FigureKind::ThroughputAgainstN => {
                out.extend(curve_files(group, styles, kind));
            }
            FigureKind::Boxes => {
                for picture in box_pictures(group, styles) {
                    let name = format!("{}-box-{}", group.id, picture.key);
                    out.push((name, box_file(&picture)));
                }
            }
        }
    }
    let latency = latency_file(group, styles);
    out.extend(latency.map(|svg| (format!("{}-latency", group.id), svg)));
    for picture in sweep_pictures(group) {
        let svg = sweep_chart(&picture, group.title()).file(760.0);
        out.push((format!("{}-sweep-{}", group.id, picture.key), svg));
    }
    out
}

/// Makes a file for each number of CPUs.
fn curve_files(group: &Group<'_>, styles: &Styles, kind: FigureKind) -> Vec<(String, String)> {
    let Some(axis) = axis_of(kind, group) else { return Vec::new() };
    let name = slug(axis.label.split(" (").next().unwrap_or_default());
    let facets = facets_of(group, styles, &axis);
    let is_alone = facets.len() == 1;
    let file = |facet: &Facet| {
        let title = match is_alone {
            true => group.title().to_string(),
            false => format!("{}, {}", group.title(), facet.title),
        };
        let svg = curves_chart(&title, std::slice::from_ref(facet), &axis.label).file(820.0);
        (format!("{}-{name}-{}cpu", group.id, facet.cpus), svg)
    };
    facets.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Sim;
    use schedlab_run::Slice;

    #[test]
    fn hostile_names_become_harmless_files_with_text_in_them() {
        let mut r = run(Sim, "<b>$x$", 1, 1);
        let end = "exited".to_string();
        r.slices = vec![Slice { cpu: 0, task: 0, start_ns: 0, end_ns: 5_000, end }];
        let mut result = experiment("../../<x>", vec![r]);
        result.experiment.figures = vec![FigureKind::Timeline, FigureKind::Timeline];
        let dir = std::env::temp_dir().join(format!("schedlab-plots-{}", std::process::id()));
        let input = ReportInput {
            title: "t",
            date: None,
            command: None,
            results: &[result],
            claims: &[],
            studies: &[],
            model_notes: &[],
            limits: Limits::default(),
        };
        let files = write_plots(&dir, &input).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.strip_prefix(&dir).unwrap()).collect();
        assert_eq!(names, [Path::new("x-timeline.svg")]);
        let svg = std::fs::read_to_string(&files[0]).unwrap();
        assert!(svg.contains("&lt;b&gt;$x$, simulated"), "{svg}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
