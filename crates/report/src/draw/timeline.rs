// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU timeline as a still picture: CPU lanes and task rows, at most one block for each half
//! unit of width, so that a picture of a million slices stays small.

use super::path::Path;
use super::scale::Scale;
use super::svg::{Svg, colour, fitted};
use crate::number::unit_for;
use crate::style::COLOURS;
use crate::timeline::{PanelTask, Timeline};
use schedlab_run::Slice;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const LANE: f64 = 16.0;
const ROW: f64 = 12.0;
const HEAD: f64 = 26.0;
const FOOT: f64 = 44.0;
/// Rows drawn at most for one run, as in the page.
const ROWS_MAX: usize = 200;
/// Width of a digit in small text.
const DIGIT: f64 = 6.0;

/// All runs of one experiment, stacked on one time axis.
pub fn timeline_file(title: &str, runs: &[Timeline<'_>]) -> String {
    let end_ns = runs.iter().map(|run| run.end_ns).max().unwrap_or(1).max(1);
    let height = TOP + runs.iter().map(height_of).sum::<f64>() + FOOT;
    let unit = unit_for(end_ns as f64 / 2.0);
    let end = end_ns as f64 / unit.ns as f64;
    let time = Scale::linear(0.0, end, LEFT, WIDTH - RIGHT);
    let bottom = height - FOOT;
    let mut svg = Svg::default();
    svg.text("large bold", (12.0, 24.0), title);
    let mut grid = Path::default();
    for (value, label) in time.ticks(10, false) {
        let x = time.clamped(value);
        grid.segment((x, TOP), (x, bottom));
        svg.text("mid small", (x, bottom + 16.0), &label);
    }
    svg.path("grid", &grid);
    let mut axis = Path::default();
    axis.segment((LEFT, bottom), (WIDTH - RIGHT, bottom));
    svg.path("axis", &axis);
    let label = format!("time since the first release ({})", unit.symbol);
    svg.text("mid", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0), &label);
    let scale = (WIDTH - LEFT - RIGHT) / end_ns as f64;
    let mut top = TOP;
    for run in runs {
        Still { run, scale }.draw(&mut svg, top);
        top += height_of(run);
    }
    svg.for_file((WIDTH, height))
}

/// Name and process id of a row; where there is no room the name is cut, not the process id.
fn label(task: &PanelTask) -> String {
    let pid = task.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    fitted(&task.name, LEFT - 14.0 - DIGIT * pid.len() as f64) + &pid
}

fn height_of(run: &Timeline<'_>) -> f64 {
    let rows = run.tasks.len().min(ROWS_MAX) as f64;
    HEAD + run.cpus.len() as f64 * LANE + 4.0 + rows * ROW + 10.0
}

/// A run and the units of width that a nanosecond has.
struct Still<'s> {
    run: &'s Timeline<'s>,
    scale: f64,
}

impl Still<'_> {
    fn x(&self, ns: u64) -> f64 {
        LEFT + ns.saturating_sub(self.run.origin_ns) as f64 * self.scale
    }

    fn draw(&self, svg: &mut Svg, top: f64) {
        let run = self.run;
        let title = format!("{}, {}", run.title, run.lane);
        svg.text("bold", (LEFT, top + 17.0), &title);
        let lanes = top + HEAD;
        for (index, cpu) in run.cpus.iter().enumerate() {
            let y = lanes + index as f64 * LANE;
            svg.text("end small", (LEFT - 8.0, y + 11.0), &format!("CPU {cpu}"));
            self.blocks(svg, (y, LANE - 3.0), |slice| slice.cpu == *cpu);
        }
        let rows = lanes + run.cpus.len() as f64 * LANE + 4.0;
        for (index, task) in run.tasks.iter().take(ROWS_MAX).enumerate() {
            let y = rows + index as f64 * ROW;
            svg.text("end small", (LEFT - 8.0, y + 9.0), &label(task));
            self.waits(svg, y + ROW / 2.0 - 1.5, index);
            self.blocks(svg, (y, ROW - 3.0), |slice| slice.task == task.id);
        }
        if run.tasks.len() > ROWS_MAX {
            let note = format!("first {ROWS_MAX} of {} tasks", run.tasks.len());
            svg.text("end small", (WIDTH - RIGHT, top + 17.0), &note);
        }
    }

    /// Thin lines where the task with this number was runnable: from its release or the loss of its
    /// CPU until it ran again.
    fn waits(&self, svg: &mut Svg, y: f64, task: usize) {
        let task = &self.run.tasks[task];
        let mut since = Some(self.run.origin_ns.saturating_add(task.release_ns));
        let mut waits = Path::default();
        for slice in self.run.slices.iter().filter(|slice| slice.task == task.id) {
            if let Some(from) = since.map(|from| self.x(from)) {
                let to = self.x(slice.start_ns);
                if to - from >= 0.5 {
                    waits.segment((from, y), (to, y));
                }
            }
            since = matches!(slice.end.as_str(), "preempted" | "yielded").then_some(slice.end_ns);
        }
        svg.path("wait", &waits);
    }

    /// Blocks of the slices that `belongs` takes; one that would start within half a unit of the
    /// last one's end and has its colour extends it.
    fn blocks(&self, svg: &mut Svg, (y, height): (f64, f64), belongs: impl Fn(&Slice) -> bool) {
        let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
        for slice in self.run.slices.iter().filter(|slice| belongs(slice)) {
            let (from, to) = (self.x(slice.start_ns), self.x(slice.end_ns.max(slice.start_ns)));
            let tasks = &self.run.tasks;
            let task = tasks.binary_search_by_key(&slice.task, |task| task.id).unwrap_or(0);
            match blocks.last_mut() {
                Some((_, end, last)) if from - *end < 0.5 && (*last == task || to - *end < 0.5) => {
                    *end = end.max(to);
                }
                _ => blocks.push((from, to.max(from + 0.5), task)),
            }
        }
        for index in 0..COLOURS.len() {
            let mut lane = Path::default();
            let of_colour = blocks.iter().filter(|block| block.2 % COLOURS.len() == index);
            of_colour.for_each(|(from, to, _)| {
                lane.segment((*from, y + height / 2.0), (*to, y + height / 2.0));
            });
            svg.stroke(&format!("line {}", colour(index)), &lane, height, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::slice;
    use schedlab_run::RunResult;

    #[test]
    fn a_row_has_the_whole_process_id() {
        let name = "a-very-long-name-of-a-task".to_string();
        let task = PanelTask { id: 0, name, pid: Some(4_194_304), release_ns: 0 };
        let label = label(&task);
        assert!(label.starts_with("a-ver") && label.ends_with(" 4194304"), "{label}");
        assert!(label.len() < 22, "{label}");
    }

    #[test]
    fn every_one_of_150_tasks_has_a_labelled_row() {
        let slices = (0..150u32).map(|i| slice(0, i, u64::from(i) * 10, u64::from(i) * 10 + 10));
        let run = RunResult { slices: slices.collect(), ..RunResult::default() };
        let timeline = Timeline::new("run".into(), "recorded".into(), &run);
        let svg = timeline_file("x", &[timeline]);
        assert!((0..150).all(|task| svg.contains(&format!(">task {task}<"))));
    }

    #[test]
    fn a_hundred_thousand_slices_make_few_blocks() {
        let slices = (0..100_000_u64).map(|i| slice(0, (i % 3) as u32, i * 1000, i * 1000 + 900));
        let run = RunResult { slices: slices.collect(), ..RunResult::default() };
        let timeline = Timeline::new("run".into(), "simulated".into(), &run);
        let svg = timeline_file("x", &[timeline]);
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
        assert!(svg.contains("CPU 0") && svg.contains("run, simulated"));
    }
}
