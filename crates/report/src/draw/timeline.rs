// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU timeline as a still picture: a Gantt chart for slides. It has a lane for each CPU and a
//! row for each task. A row shows the task's arrival, its time on a CPU and, in a lighter tone, its
//! waits for one. It draws at most one block for each half unit of width, so that a picture of a
//! million slices stays small.

use super::path::Path;
use super::scale::Scale;
use super::svg::{Svg, colour, fitted, width_of};
use crate::number::unit_for;
use crate::style::COLOURS;
use crate::timeline::{PanelTask, Timeline};
use schedlab_run::Slice;

/// Narrow, so that text is large when the picture fills a slide.
const WIDTH: f64 = 800.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 62.0;
const HEAD: f64 = 28.0;
const FOOT: f64 = 48.0;
/// Heights of CPU lanes, and of task rows if they are few or many.
const LANE: f64 = 24.0;
const ROW: f64 = 20.0;
const ROW_OF_MANY: f64 = 12.0;
/// Maximum number of tasks that count as few.
const FEW: usize = 24;
/// Gap between the blocks of neighbouring rows.
const GAP: f64 = 3.0;
/// Colours that need dark text.
const LIGHT: [usize; 4] = [3, 4, 5, 7];
/// Maximum number of rows for one run. The page's caption states the same limit for itself.
const ROWS_MAX: usize = 200;

/// All runs of one experiment, stacked on one time axis.
pub fn timeline_file(title: &str, runs: &[Timeline<'_>]) -> String {
    let end_ns = runs.iter().map(|run| run.end_ns).max().unwrap_or(1).max(1);
    let height = TOP + runs.iter().map(height_of).sum::<f64>() + FOOT;
    let unit = unit_for(end_ns as f64 / 2.0);
    let end = end_ns as f64 / unit.ns as f64;
    let time = Scale::linear(0.0, end, LEFT, WIDTH - RIGHT);
    let bottom = height - FOOT;
    let mut svg = Svg::default();
    svg.text("large bold", (12.0, 24.0), &fitted(title, WIDTH * 0.78));
    legend(&mut svg);
    let mut grid = Path::default();
    for (value, label) in time.ticks(10, false) {
        let x = time.clamped(value);
        grid.segment((x, TOP), (x, bottom));
        // Keep the last label within the picture.
        let middle = x.min(WIDTH - 4.0 - width_of(&label) / 2.0);
        svg.text("mid", (middle, bottom + 16.0), &label);
    }
    svg.path("grid", &grid);
    let mut axis = Path::default();
    axis.segment((LEFT, bottom), (WIDTH - RIGHT, bottom));
    svg.path("axis", &axis);
    let label = format!("time since the first release ({})", unit.symbol);
    svg.text("mid", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36.0), &label);
    let scale = (WIDTH - LEFT - RIGHT) / end_ns as f64;
    let mut top = TOP;
    for run in runs {
        Still { run, scale }.draw(&mut svg, top);
        top += height_of(run);
    }
    svg.for_file((WIDTH, height))
}

/// Draws the key of the marks.
fn legend(svg: &mut Svg) {
    let y = 38.0;
    let mut x = LEFT;
    let block = |svg: &mut Svg, class: &str, x: f64| {
        let mut block = Path::default();
        block.rect((x, y), (x + 22.0, y + 12.0));
        svg.open(&colour(0), None);
        svg.path(class, &block);
        svg.close();
    };
    for (class, text) in [("block", "on a CPU"), ("waiting", "waits for a CPU")] {
        block(svg, class, x);
        svg.text("", (x + 28.0, y + 10.0), text);
        x += 48.0 + width_of(text);
    }
    let mut arrow = Path::default();
    arrival(&mut arrow, (x + 4.0, y + 13.0), 14.0);
    svg.stroke("arrival", &arrow, 1.5, "");
    svg.text("", (x + 14.0, y + 10.0), "arrival");
}

/// Draws an upward arrow of this height from a point.
fn arrival(path: &mut Path, (x, y): (f64, f64), height: f64) {
    path.segment((x, y), (x, y - height));
    for side in [-3.0, 3.0] {
        path.segment((x + side, y - height + 4.0), (x, y - height));
    }
}

fn row_of(run: &Timeline<'_>) -> f64 {
    if run.tasks.len() <= FEW { ROW } else { ROW_OF_MANY }
}

fn height_of(run: &Timeline<'_>) -> f64 {
    let rows = run.tasks.len().min(ROWS_MAX) as f64;
    HEAD + run.cpus.len() as f64 * LANE + 4.0 + rows * row_of(run) + 10.0
}

/// A run, and the width of a nanosecond in units.
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
            svg.text("end", (LEFT - 8.0, y + LANE / 2.0 + 3.0), &format!("CPU {cpu}"));
            let blocks = self.blocks(|slice| slice.cpu == *cpu);
            draw_blocks(svg, &blocks, (y, LANE - GAP));
            self.names(svg, &blocks, y + LANE / 2.0 + 2.5);
        }
        let rows = lanes + run.cpus.len() as f64 * LANE + 4.0;
        let row = row_of(run);
        let class = if row < ROW { "end small" } else { "end" };
        for (index, task) in run.tasks.iter().take(ROWS_MAX).enumerate() {
            let y = rows + index as f64 * row;
            svg.text(class, (LEFT - 8.0, y + row / 2.0 + 2.5), &label(task));
            self.waits(svg, (y, row - GAP), index);
            draw_blocks(svg, &self.blocks(|slice| slice.task == task.id), (y, row - GAP));
            let mut arrow = Path::default();
            let x = self.x(run.origin_ns.saturating_add(task.release_ns));
            arrival(&mut arrow, (x, y + row - GAP), row - GAP);
            svg.stroke("arrival", &arrow, 1.5, "");
        }
        if run.tasks.len() > ROWS_MAX {
            let note = format!("first {ROWS_MAX} of {} tasks", run.tasks.len());
            svg.text("end small", (WIDTH - RIGHT, top + 17.0), &note);
        }
    }

    /// Draws blocks in a lighter tone while the task with this number was runnable: from its
    /// release, or from losing its CPU, until it ran again or the run ended.
    fn waits(&self, svg: &mut Svg, (y, height): (f64, f64), index: usize) {
        let task = &self.run.tasks[index];
        let mut since = Some(self.run.origin_ns.saturating_add(task.release_ns));
        let mut waits = Path::default();
        let mut add = |since: Option<u64>, until: u64| {
            let Some(from) = since.map(|from| self.x(from)) else { return };
            let to = self.x(until);
            if to - from >= 0.5 {
                waits.rect((from, y), (to, y + height));
            }
        };
        for slice in self.run.slices.iter().filter(|slice| slice.task == task.id) {
            add(since, slice.start_ns);
            since = matches!(slice.end.as_str(), "preempted" | "yielded").then_some(slice.end_ns);
        }
        add(since, self.run.origin_ns.saturating_add(self.run.end_ns));
        svg.open(&colour(index), None);
        svg.path("waiting", &waits);
        svg.close();
    }

    /// Writes names of tasks into the blocks that are wide enough.
    fn names(&self, svg: &mut Svg, blocks: &[Block], y: f64) {
        for block in blocks {
            let Some(task) = self.run.tasks.get(block.task) else { continue };
            if width_of(&task.name) + 6.0 > block.to - block.from {
                continue;
            }
            let is_light = LIGHT.contains(&(block.task % COLOURS.len()));
            let class = if is_light { "mid" } else { "mid inside" };
            svg.text(class, ((block.from + block.to) / 2.0, y + 1.0), &task.name);
        }
    }

    /// Blocks of the slices that `belongs` accepts. A block that starts within half a unit of the
    /// previous block's end, with the same colour, extends it.
    fn blocks(&self, belongs: impl Fn(&Slice) -> bool) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for slice in self.run.slices.iter().filter(|slice| belongs(slice)) {
            let (from, to) = (self.x(slice.start_ns), self.x(slice.end_ns.max(slice.start_ns)));
            let tasks = &self.run.tasks;
            let task = tasks.binary_search_by_key(&slice.task, |task| task.id).unwrap_or(0);
            match blocks.last_mut() {
                Some(last) if from - last.to < 0.5 && (last.task == task || to - last.to < 0.5) => {
                    last.to = last.to.max(to);
                }
                _ => blocks.push(Block { from, to: to.max(from + 0.5), task }),
            }
        }
        blocks
    }
}

/// A stretch of time on a CPU, in units of width.
struct Block {
    from: f64,
    to: f64,
    /// Number of the task's row.
    task: usize,
}

fn draw_blocks(svg: &mut Svg, blocks: &[Block], (y, height): (f64, f64)) {
    for index in 0..COLOURS.len() {
        let mut lane = Path::default();
        for block in blocks.iter().filter(|block| block.task % COLOURS.len() == index) {
            lane.segment((block.from, y + height / 2.0), (block.to, y + height / 2.0));
        }
        svg.stroke(&format!("line {}", colour(index)), &lane, height, "");
    }
}

/// Name and process id of a task; if both are too wide, the name is shortened.
fn label(task: &PanelTask) -> String {
    let pid = task.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    fitted(&task.name, LEFT - 14.0 - width_of(&pid)) + &pid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::slice;
    use schedlab_metrics::TaskMeasures;
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

    /// The positions of all texts with this content: x, and the class.
    fn texts<'s>(svg: &'s str, wanted: &str) -> Vec<(f64, &'s str)> {
        let of = |text: &'s str| {
            let (attributes, content) = text.split_once('>')?;
            let x = attributes.split("x=\"").nth(1)?.split('"').next()?.parse().ok()?;
            let class = attributes.split("class=\"").nth(1)?.split('"').next()?;
            (content.split('<').next() == Some(wanted)).then_some((x, class))
        };
        svg.split("<text ").skip(1).filter_map(of).collect()
    }

    #[test]
    fn a_slide_shows_arrivals_waits_and_names_within_its_borders() {
        let slices = vec![slice(0, 0, 0, 40_000_000), slice(0, 1, 40_000_000, 100_000_000)];
        let mut run = RunResult { slices, ..RunResult::default() };
        // The first task runs to the end; the second arrives at 20 ms and never runs again.
        run.slices[0].end = "exited".into();
        run.measures.totals.end_ns = 123_456_000_000;
        run.measures.tasks = [("first", 0), ("second", 20_000_000)]
            .into_iter()
            .enumerate()
            .map(|(id, (name, release_ns))| TaskMeasures {
                id: id as u32,
                name: name.into(),
                release_ns,
                ..TaskMeasures::default()
            })
            .collect();
        let svg = timeline_file("x", &[Timeline::new("run".into(), "simulated".into(), &run)]);
        assert_eq!(svg.matches("class=\"arrival\"").count(), 2 + 1, "each task, and the legend");
        assert_eq!(svg.matches("class=\"waiting\"").count(), 1 + 1, "the second, and the legend");
        assert!(svg.contains("time since the first release (s)"), "{svg}");
        let ticks = texts(&svg, "120");
        assert!(ticks.len() == 1 && ticks[0].0 + width_of("120") / 2.0 <= WIDTH, "{ticks:?}");
        run.measures.totals.end_ns = 100_000_000;
        let svg = timeline_file("x", &[Timeline::new("run".into(), "simulated".into(), &run)]);
        assert_eq!(texts(&svg, "first").len(), 2, "in its row and in its block");
        let last = texts(&svg, "100");
        assert!(last[0].0 + width_of("100") / 2.0 <= WIDTH, "{last:?}");
    }
}
