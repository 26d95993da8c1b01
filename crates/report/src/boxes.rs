// SPDX-License-Identifier: MIT OR Apache-2.0
//! Box plots over tasks and repetitions: turnaround, run delay, wake-up latency.

use crate::draw::{Axis, Chart, Form, Panel, Series, nice_end};
use crate::figure::{Figure, Table};
use crate::group::Group;
use crate::number::{TimeUnit, duration, plural, unit_for_all};
use crate::order::config_order;
use crate::stats::five_numbers;
use crate::style::{Style, Styles};
use crate::words::capital;
use schedlab_lab::redrawn::DrawnPoint;
use schedlab_metrics::TaskMeasures;
use serde::Serialize;
use serde_json::json;

/// A box of at most this many values shows each value as a dot.
const DOTS_MAX: usize = 200;

/// A task measure drawn as boxes.
#[derive(Debug)]
struct TaskMeasure {
    name: &'static str,
    key: &'static str,
    read: fn(&TaskMeasures) -> Option<f64>,
}

const MEASURES: [TaskMeasure; 3] = [
    TaskMeasure {
        name: "turnaround",
        key: "turnaround",
        read: |task| task.turnaround_ns.map(|ns| ns as f64),
    },
    TaskMeasure {
        name: "run delay",
        key: "run_delay",
        read: |task| Some(task.run_delay_ns as f64),
    },
    TaskMeasure {
        name: "mean wake-up latency of a task",
        key: "wakeup_latency_mean",
        read: |task| task.wakeup_latency.ns_mean.map(|ns| ns as f64),
    },
];

/// One picture: a measure at one number of CPUs.
#[derive(Debug)]
pub struct BoxPicture {
    /// Axis label with unit.
    pub label: String,
    /// File name part, such as `turnaround-2cpu`.
    pub key: String,
    /// Unit of `boxes`.
    pub unit: TimeUnit,
    /// The boxes, with values in `unit`.
    pub boxes: Vec<OneBox>,
    /// The measure, the number of tasks and the number of CPUs.
    pub heading: String,
    n: u64,
    cpus: u64,
}

/// One box.
#[derive(Debug)]
pub struct OneBox {
    /// Scheduler.
    pub scheduler: String,
    /// `simulated` or `measured`.
    pub lane: &'static str,
    /// Colour.
    pub style: Style,
    /// One value for each task and repetition.
    pub values: Vec<f64>,
}

/// Data of the figure.
#[derive(Debug, Serialize)]
pub struct BoxesData {
    table: Table,
}

/// All pictures of `group`: one for each number of CPUs and each measure with a value above 0, at
/// the greatest n.
pub fn box_pictures(group: &Group<'_>, styles: &Styles) -> Vec<BoxPicture> {
    let mut pictures = Vec::new();
    for cpus in group.cpus() {
        let Some(n) = group.ns(cpus).last().copied() else { continue };
        for measure in &MEASURES {
            let mut boxes = Vec::new();
            for config in config_order(group) {
                let Some(cell) = group.cell(config, n, cpus) else { continue };
                let tasks = cell.runs.iter().flat_map(|run| &run.measures.tasks);
                let tasks = tasks.filter(|task| !task.is_launcher);
                let values: Vec<f64> = tasks.filter_map(measure.read).collect();
                if !values.is_empty() {
                    let line = &group.configs[config];
                    boxes.push(OneBox {
                        scheduler: line.label(),
                        lane: line.lane_words(),
                        style: styles.of(line),
                        values,
                    });
                }
            }
            if boxes.iter().any(|b| b.values.iter().any(|v| *v > 0.0)) {
                pictures.push(picture(measure, boxes, n, cpus));
            }
        }
    }
    pictures
}

fn picture(measure: &TaskMeasure, mut boxes: Vec<OneBox>, n: u64, cpus: u64) -> BoxPicture {
    let unit = unit_for_all(boxes.iter().flat_map(|b| b.values.iter().copied()));
    for value in boxes.iter_mut().flat_map(|b| b.values.iter_mut()) {
        *value /= unit.ns as f64;
    }
    BoxPicture {
        label: format!("{} ({})", measure.name, unit.symbol),
        key: format!("{}-{cpus}cpu", measure.key.replace('_', "-")),
        heading: format!(
            "{}, n\u{a0}=\u{a0}{n}, {}",
            capital(measure.name),
            plural(cpus as usize, "CPU", "CPUs")
        ),
        unit,
        boxes,
        n,
        cpus,
    }
}

/// Boxes of quartiles, with every value as a dot if there are few.
fn panel(picture: &BoxPicture) -> Panel {
    let has_dots = picture.boxes.iter().all(|one| one.values.len() <= DOTS_MAX);
    let mut series = Vec::new();
    let mut top = 0.0_f64;
    for (slot, one) in (0..).map(f64::from).zip(&picture.boxes) {
        let Some(five) = five_numbers(&one.values) else { continue };
        top = one.values.iter().copied().fold(top, f64::max);
        let spread = Some([five.low, five.q1, five.q3, five.high]);
        let whole = DrawnPoint { spread, ..DrawnPoint::plain(slot, five.median) };
        let form = Form::Bars { part: 0, parts: 1 };
        series.push(Series {
            style: Some(one.style),
            form,
            points: vec![whole],
            ..Series::default()
        });
        if has_dots {
            let dots = one.values.iter().map(|value| DrawnPoint::plain(slot, *value));
            let form = Form::Dots { r: 1.8 };
            series.push(Series { form, points: dots.collect(), ..Series::default() });
        }
    }
    let name = |one: &OneBox| format!("{}, {}", one.scheduler, short_lane(one.lane));
    Panel {
        title: picture.heading.clone(),
        height: 26.0 * picture.boxes.len() as f64,
        along: Axis::Names(picture.boxes.iter().map(name).collect()),
        value: Axis::numbers(&picture.label, 0.0, nice_end(top)),
        is_lying: true,
        series,
        ..Panel::default()
    }
}

fn short_lane(lane: &str) -> &str {
    match lane {
        "simulated" => "sim",
        "measured" => "real",
        other => other,
    }
}

/// A picture as a file.
pub fn box_file(picture: &BoxPicture) -> String {
    Chart { title: String::new(), columns: 1, panels: vec![panel(picture)] }.file(720.0)
}

/// The figure and its data; `None` if no task has any of the measures.
pub fn boxes(group: &Group<'_>, styles: &Styles) -> Option<(Figure, BoxesData)> {
    let pictures = box_pictures(group, styles);
    if pictures.is_empty() {
        return None;
    }
    let mut alternative = String::from("Box plots.");
    let mut table = Table {
        columns: [
            "measure",
            "unit",
            "cpus",
            "n",
            "scheduler",
            "lane",
            "values",
            "low",
            "q1",
            "median",
            "q3",
            "high",
            "outliers",
        ]
        .map(String::from)
        .to_vec(),
        rows: Vec::new(),
    };
    for picture in &pictures {
        describe(picture, &mut alternative, &mut table);
    }
    let panels = pictures.iter().map(panel).collect();
    let chart = Chart { title: String::new(), columns: 2, panels };
    let figure = Figure {
        id: format!("{}-boxes", group.id),
        kind: "boxes",
        title: "Spread over tasks.".into(),
        caption: "Each value is one task of one repetition, at the greatest n that was run. The \
            box holds the middle half of the values, the line in it is the median; whiskers reach \
            to the last value within 1.5 box lengths. Dots are the values themselves, where a \
            box has at most 200."
            .into(),
        alternative,
        notices: Vec::new(),
        legend: String::new(),
        picture: chart.page(520.0, Some(340.0)),
        half: false,
    };
    Some((figure, BoxesData { table }))
}

fn describe(picture: &BoxPicture, alternative: &mut String, table: &mut Table) {
    *alternative += &format!(" {}: median", picture.heading);
    for one in &picture.boxes {
        let Some(five) = five_numbers(&one.values) else { continue };
        let median_ns = five.median * picture.unit.ns as f64;
        *alternative += &format!(" {} {} {};", one.scheduler, one.lane, duration(median_ns));
        table.rows.push(vec![
            json!(picture.label.split(" (").next().unwrap_or_default()),
            json!(picture.unit.symbol),
            json!(picture.cpus),
            json!(picture.n),
            json!(one.scheduler),
            json!(one.lane),
            json!(one.values.len()),
            json!(five.low),
            json!(five.q1),
            json!(five.median),
            json!(five.q3),
            json!(five.high),
            json!(five.outliers),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::Sim;

    #[test]
    fn boxes_hold_one_value_a_task_and_repetition_at_the_greatest_n() {
        let mut big = run(Sim, "rr", 2, 1);
        big.measures.tasks = (1..=2)
            .map(|i| TaskMeasures { turnaround_ns: Some(i * 1_000_000), ..TaskMeasures::default() })
            .collect();
        let mut small = big.clone();
        small.parameters.insert("n".into(), "1".into());
        let results = [experiment("x", vec![small, big.clone(), big])];
        let groups = group_all(&results);
        let styles = Styles::new(&groups);
        let pictures = box_pictures(&groups[0], &styles);
        assert_eq!(pictures.len(), 1, "run delay and wake-ups are all 0");
        assert_eq!(pictures[0].boxes[0].values, [1.0, 2.0, 1.0, 2.0]);
        let (figure, data) = boxes(&groups[0], &styles).unwrap();
        assert_eq!(data.table.rows.len(), 1);
        assert_eq!(figure.picture.matches("<svg").count(), 2);
        assert!(!figure.picture.contains(" id="), "ids would clash between pictures");
        // The four values appear as dots, and there is one box.
        assert_eq!(box_file(&pictures[0]).matches("h0").count(), 4);
        assert_eq!(box_file(&pictures[0]).matches("median\" d").count(), 1);
    }
}
