// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU timeline as a still picture: CPU lanes and task rows drawn with the library's plain
//! rectangles, at most one for each half unit of width, so that a picture of a million slices
//! stays small.

use super::{AXIS, FONTS, GRID, TEXT, text};
use crate::style::COLOURS;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};
use schedlab_run::{RunResult, Slice};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const LANE: f64 = 16.0;
const ROW: f64 = 12.0;
const HEAD: f64 = 26.0;
/// Rows drawn at most for one run; the caption of the page says the same of its own limit.
const ROWS_MAX: usize = 64;

/// All runs of one experiment, stacked on one time axis.
pub fn timeline_scene(title: &str, runs: &[(String, &RunResult)]) -> Scene {
    let panels: Vec<Panel<'_>> = runs.iter().map(|(title, run)| Panel::new(title, run)).collect();
    let end_ns = panels.iter().map(|panel| panel.end_ns).max().unwrap_or(1).max(1);
    let height: f64 = 40.0 + panels.iter().map(Panel::height).sum::<f64>() + 44.0;
    let mut scene = Scene::new(WIDTH, height);
    scene.background_color = Some("white".into());
    scene.text_color = Some(TEXT.into());
    scene.font_family = Some(FONTS.into());
    text(&mut scene, (12.0, 24.0), title, 16, true, TextAnchor::Start);
    let scale = (WIDTH - LEFT - RIGHT) / end_ns as f64;
    let bottom = height - 44.0;
    axis(&mut scene, end_ns, scale, bottom);
    let mut y = 40.0;
    for panel in &panels {
        panel.draw(&mut scene, y, scale);
        y += panel.height();
    }
    scene
}

struct Panel<'a> {
    title: &'a str,
    slices: Vec<&'a Slice>,
    cpus: Vec<u32>,
    tasks: Vec<(u32, String)>,
    origin: u64,
    end_ns: u64,
}

impl<'a> Panel<'a> {
    fn new(title: &'a str, run: &'a RunResult) -> Panel<'a> {
        let mut slices: Vec<&Slice> = run.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.start_ns, slice.cpu));
        let distinct = |key: fn(&Slice) -> u32| {
            let mut keys: Vec<u32> = slices.iter().map(|slice| key(slice)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let cpus = distinct(|slice| slice.cpu);
        let tasks = distinct(|slice| slice.task)
            .into_iter()
            .map(|id| {
                let known = run.measures.tasks.iter().find(|task| task.id == id);
                (id, known.map_or_else(|| format!("task {id}"), |task| task.name.clone()))
            })
            .collect();
        let origin = crate::timeline::origin_ns(run);
        let end_ns = slices.iter().map(|s| s.end_ns.saturating_sub(origin)).max().unwrap_or(0);
        Panel { title, slices, cpus, tasks, origin, end_ns }
    }

    fn height(&self) -> f64 {
        let rows = self.tasks.len().min(ROWS_MAX) as f64;
        HEAD + self.cpus.len() as f64 * LANE + 4.0 + rows * ROW + 10.0
    }

    fn draw(&self, scene: &mut Scene, top: f64, scale: f64) {
        text(scene, (LEFT, top + 17.0), self.title, 13, true, TextAnchor::Start);
        let lanes = top + HEAD;
        for (index, cpu) in self.cpus.iter().enumerate() {
            let y = lanes + index as f64 * LANE;
            let label = format!("CPU {cpu}");
            text(scene, (LEFT - 8.0, y + 11.0), &label, 11, false, TextAnchor::End);
            self.row(scene, y, LANE - 3.0, scale, |slice| slice.cpu == *cpu);
        }
        let rows = lanes + self.cpus.len() as f64 * LANE + 4.0;
        for (index, (id, name)) in self.tasks.iter().take(ROWS_MAX).enumerate() {
            let y = rows + index as f64 * ROW;
            let short: String = name.chars().take(16).collect();
            text(scene, (LEFT - 8.0, y + 9.0), &short, 10, false, TextAnchor::End);
            self.waiting(scene, y + ROW / 2.0 - 2.0, scale, *id);
            self.row(scene, y, ROW - 3.0, scale, |slice| slice.task == *id);
        }
        if self.tasks.len() > ROWS_MAX {
            let note = format!("first {ROWS_MAX} of {} tasks", self.tasks.len());
            text(scene, (WIDTH - RIGHT, top + 17.0), &note, 11, false, TextAnchor::End);
        }
    }

    /// Thin lines where `task` was runnable: after it lost a CPU or gave it up, until it ran again.
    fn waiting(&self, scene: &mut Scene, y: f64, scale: f64, task: u32) {
        let (mut xs, mut ws) = (Vec::new(), Vec::new());
        let mut since: Option<u64> = None;
        for slice in self.slices.iter().filter(|slice| slice.task == task) {
            if let Some(from) = since {
                let width = slice.start_ns.saturating_sub(from) as f64 * scale;
                if width >= 0.5 {
                    xs.push(LEFT + from.saturating_sub(self.origin) as f64 * scale);
                    ws.push(width);
                }
            }
            let waits = matches!(slice.end.as_str(), "preempted" | "yielded");
            since = waits.then_some(slice.end_ns);
        }
        let count = xs.len();
        scene.add(Primitive::RectBatch {
            x: xs,
            y: vec![y; count],
            w: ws,
            h: vec![1.0; count],
            fills: vec![Color::from(AXIS); count],
        });
    }

    /// Rectangles of the slices that `belongs` takes; a rectangle that would start within half a
    /// unit of the last one's end and has its colour extends it.
    fn row(
        &self,
        scene: &mut Scene,
        y: f64,
        height: f64,
        scale: f64,
        belongs: impl Fn(&Slice) -> bool,
    ) {
        let (mut xs, mut ws, mut fills) = (Vec::<f64>::new(), Vec::<f64>::new(), Vec::new());
        let mut last: Option<(f64, usize)> = None;
        for slice in self.slices.iter().filter(|slice| belongs(slice)) {
            let at = |ns: u64| LEFT + ns.saturating_sub(self.origin) as f64 * scale;
            let (from, to) = (at(slice.start_ns), at(slice.end_ns.max(slice.start_ns)));
            let task = self.tasks.binary_search_by_key(&slice.task, |(id, _)| *id).unwrap_or(0);
            match last {
                Some((end, colour)) if from - end < 0.5 && (colour == task || to - end < 0.5) => {
                    let index = xs.len() - 1;
                    ws[index] = (to - xs[index]).max(ws[index]);
                    last = Some((end.max(to), colour));
                }
                _ => {
                    xs.push(from);
                    ws.push((to - from).max(0.5));
                    fills.push(Color::from(COLOURS[task % COLOURS.len()]));
                    last = Some((to, task));
                }
            }
        }
        let count = xs.len();
        scene.add(Primitive::RectBatch {
            x: xs,
            y: vec![y; count],
            w: ws,
            h: vec![height; count],
            fills,
        });
    }
}

fn axis(scene: &mut Scene, end_ns: u64, scale: f64, bottom: f64) {
    let unit = crate::number::unit_for(end_ns as f64 / 2.0);
    let step = tick_step(end_ns);
    let mut at = 0;
    while at <= end_ns {
        let x = LEFT + at as f64 * scale;
        scene.add(Primitive::Line {
            x1: x,
            y1: 40.0,
            x2: x,
            y2: bottom,
            stroke: Color::from(GRID),
            stroke_width: 1.0,
            stroke_dasharray: None,
        });
        let label = (at as f64 / unit.ns as f64).to_string();
        text(scene, (x, bottom + 16.0), &label, 11, false, TextAnchor::Middle);
        at += step;
    }
    scene.add(Primitive::Line {
        x1: LEFT,
        y1: bottom,
        x2: WIDTH - RIGHT,
        y2: bottom,
        stroke: Color::from(AXIS),
        stroke_width: 1.0,
        stroke_dasharray: None,
    });
    let label = format!("time since the first release ({})", unit.symbol);
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    text(scene, (middle, bottom + 34.0), &label, 12, false, TextAnchor::Middle);
}

/// A step of 1, 2 or 5 times a power of ten that gives five to ten ticks.
fn tick_step(end_ns: u64) -> u64 {
    let mut step = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            if end_ns / step.saturating_mul(factor) <= 10 {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for end in [1, 9, 11, 162_000_000, 1_000_000_000, u64::MAX] {
            let step = tick_step(end);
            assert!(end / step <= 10, "{end}: {step}");
        }
        assert_eq!(tick_step(162_000_000), 20_000_000);
    }

    #[test]
    fn a_hundred_thousand_slices_make_few_rectangles() {
        let slices: Vec<Slice> = (0..100_000_u64)
            .map(|i| Slice {
                cpu: 0,
                task: (i % 3) as u32,
                start_ns: i * 1000,
                end_ns: i * 1000 + 900,
                end: "preempted".into(),
            })
            .collect();
        let run = RunResult { slices, ..RunResult::default() };
        let svg = super::super::svg(&timeline_scene("x", &[("run".into(), &run)]));
        assert!(svg.matches("<rect").count() < 10_000);
        assert!(svg.contains("CPU 0"));
    }
}
