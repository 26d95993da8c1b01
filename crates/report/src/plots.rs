// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures as files: an SVG and a PNG each.

use crate::analysis::analysis_scenes;
use crate::boxes::box_pictures;
use crate::curves::{axis_of, facets_of};
use crate::error::ReportError;
use crate::group::{Group, group_all};
use crate::html::slug;
use crate::order::PANELS_MAX;
use crate::plot::{
    Ink, boxes_scene, curves_scene, png, progress_scene, svg, sweep_bars_scene, sweep_lines_scene,
    timeline_scene,
};
use crate::progress::{progress_runs, thinned};
use crate::study::figure_scenes;
use crate::style::Styles;
use crate::sweep::sweep_pictures;
use crate::timeline::{origin_ns, timeline_runs};
use crate::{ReportInput, write};
use kuva::render::render::Scene;
use schedlab_lab::FigureKind;
use schedlab_run::RunResult;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Marks of one progress line in a picture at most; more cannot be told apart on paper.
const MARKS_MAX: usize = 2000;

/// Writes every figure of `input` into the folder `dir` (made if absent) as `NAME.svg` and
/// `NAME.png`, and returns their paths in order. Each file is written whole or not at all.
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
    let of_group = |group| scenes(group, &styles).into_iter().chain(analysis_scenes(group));
    let own = groups.iter().flat_map(of_group);
    let of_studies = input.studies.iter().flat_map(|page| figure_scenes(&page.figures));
    for (name, scene) in of_studies.chain(own) {
        let mut unique = name.clone();
        let mut again = 1;
        while !names.insert(unique.clone()) {
            again += 1;
            unique = format!("{name}-{again}");
        }
        let svg_path = dir.join(format!("{unique}.svg"));
        write::write_whole(&svg_path, svg(&scene).as_bytes())?;
        let picture =
            png(&scene).map_err(|reason| ReportError::Png { figure: unique.clone(), reason })?;
        let png_path = dir.join(format!("{unique}.png"));
        write::write_whole(&png_path, &picture)?;
        written.extend([svg_path, png_path]);
    }
    Ok(written)
}

fn scenes(group: &Group<'_>, styles: &Styles) -> Vec<(String, Scene)> {
    let mut out = Vec::new();
    let mut kinds: Vec<FigureKind> = Vec::new();
    for kind in &group.result.experiment.figures {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    for kind in kinds {
        match kind {
            FigureKind::Timeline => out.extend(timeline_picture(group)),
            FigureKind::Progress => out.extend(progress_picture(group)),
            FigureKind::TurnaroundAgainstN | FigureKind::ThroughputAgainstN => {
                let Some(axis) = axis_of(kind, group) else { continue };
                let name = axis.label.split(" (").next().unwrap_or_default().to_string();
                let facets = facets_of(group, styles, &axis);
                for facet in &facets {
                    let title = if facets.len() == 1 {
                        group.title().to_string()
                    } else {
                        format!("{}, {}", group.title(), facet.title)
                    };
                    let scene = curves_scene(facet, &title, &axis.label);
                    out.push((format!("{}-{}-{}cpu", group.id, slug(&name), facet.cpus), scene));
                }
            }
            FigureKind::Boxes => {
                for picture in box_pictures(group, styles) {
                    let scene = boxes_scene(&picture, 720.0, Ink::File);
                    out.push((format!("{}-box-{}", group.id, picture.key), scene));
                }
            }
        }
    }
    for picture in sweep_pictures(group) {
        let scene = match picture.x_label {
            Some(_) => sweep_lines_scene(&picture, group.title(), 760.0, Ink::File),
            None => sweep_bars_scene(&picture, group.title(), 760.0, Ink::File),
        };
        out.push((format!("{}-sweep-{}", group.id, picture.key), scene));
    }
    out
}

fn timeline_picture(group: &Group<'_>) -> Option<(String, Scene)> {
    let runs: Vec<(String, &RunResult)> =
        timeline_runs(group).into_iter().map(|(title, run)| (with_lane(title, run), run)).collect();
    (!runs.is_empty())
        .then(|| (format!("{}-timeline", group.id), timeline_scene(group.title(), &runs)))
}

fn progress_picture(group: &Group<'_>) -> Option<(String, Scene)> {
    let mut end_ms = 0.0_f64;
    let mut panels = Vec::new();
    for (_, title, run) in progress_runs(group).into_iter().take(PANELS_MAX) {
        let origin = origin_ns(run);
        let whole = run.progress.iter().map(|c| c.times_ns.len()).max().unwrap_or(0).max(1);
        let mut lines = Vec::new();
        for curve in &run.progress {
            let step = curve.times_ns.len().div_ceil(MARKS_MAX).max(1);
            let mut points = vec![(0.0, 0.0)];
            for (index, time) in thinned(&curve.times_ns, step).enumerate() {
                let ms = time.saturating_sub(origin) as f64 / 1e6;
                let done = ((index + 1) * step).min(curve.times_ns.len());
                points.push((ms, done as f64 * 100.0 / whole as f64));
                end_ms = end_ms.max(ms);
            }
            let task = run.measures.tasks.iter().find(|task| task.id == curve.task);
            let name = task.map_or_else(|| format!("task {}", curve.task), |t| t.name.clone());
            lines.push((name, points));
        }
        panels.push((with_lane(title, run), lines));
    }
    if panels.is_empty() {
        return None;
    }
    Some((
        format!("{}-progress", group.id),
        progress_scene(group.title(), &panels, end_ms.max(1e-6)),
    ))
}

fn with_lane(title: String, run: &RunResult) -> String {
    let lane = if run.lane == "sim" { "simulated" } else { "measured" };
    format!("{title}, {lane}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::group::tests::{experiment, run};
    use schedlab_run::Slice;

    #[test]
    fn hostile_names_become_harmless_files_with_text_in_them() {
        let mut r = run("sim", "<b>$x$", 1, 1);
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
        assert_eq!(names, [Path::new("x-timeline.svg"), Path::new("x-timeline.png")]);
        let svg = std::fs::read_to_string(&files[0]).unwrap();
        assert!(svg.contains("&lt;b&gt;$x$, simulated"), "{svg}");
        let png = std::fs::read(&files[1]).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
