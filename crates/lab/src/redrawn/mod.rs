// SPDX-License-Identifier: MIT OR Apache-2.0
//! A study's own figures and tables, redrawn next to the original's values.
//!
//! The study's file defines them as data: which runs, in which places, in which form. Values are
//! expressions over measures, as in claims. `draw` fills them from runs, and the caller draws the
//! result. `[experiment.published]` makes a figure of lines by itself.

mod draw;
mod raw;
#[cfg(test)]
mod tests;

pub use draw::{
    Drawn, DrawnKind, DrawnPanel, DrawnPoint, DrawnRow, DrawnSeries, DrawnTable, figure, published,
    table,
};

use crate::axis::{OneOrMore, Scalar};
use crate::claims::{Expr, Place, check_number};
use crate::published::{Published, PublishedRow};
use crate::study::ExperimentSpec;
use schedlab_run::place::unknown;
use schedlab_run::{StudyError, place::Step};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The form of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Number of the process, and its progress in percent, against elapsed time, with a dot for
    /// each record. Its runs must keep their progress.
    Records,
    /// A dot for each value of `x`.
    Points,
    /// A dot for each value of `x`, with lines between the dots.
    Lines,
    /// Groups of bars, a group for each of `groups`.
    Bars,
    /// Groups of box plots, a group for each of `groups`: least, quartiles and greatest over tasks.
    Boxes,
}

/// A figure of a study.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFigure {
    /// Short name, unique in the study: `S0-F1`.
    pub id: String,
    /// Title; the study's own, if it has one.
    pub title: String,
    /// Description, with what a reader must know about the original.
    #[serde(default)]
    pub text: String,
    /// Its form.
    pub form: Form,
    /// Claims based on it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Names of the experiments whose runs are drawn, as in the study, with braces.
    pub experiment: OneOrMore,
    /// Places, a panel for each: `sim linux-6.12`, `host OTHER`. Only the lane if the series name
    /// the scheduler.
    pub on: Vec<String>,
    /// Maximum number of panels in a row on a wide page; 0: automatic.
    #[serde(default)]
    pub columns: u32,
    /// Required values of dimensions for runs; `all` is the number of CPUs.
    #[serde(default, rename = "where")]
    pub which: BTreeMap<String, Scalar>,
    /// For points and lines: the dimension on the horizontal axis.
    #[serde(default)]
    pub x: String,
    /// Label of the horizontal axis.
    #[serde(default)]
    pub x_label: String,
    /// Label of the vertical axis, with the unit.
    #[serde(default)]
    pub y_label: String,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Start of the vertical axis. Default: 0, or 1 for a logarithmic axis.
    #[serde(default)]
    pub y_min: Option<f64>,
    /// End of the vertical axis, such as 100 for percentages.
    #[serde(default)]
    pub y_max: Option<f64>,
    /// For points, lines, bars and boxes: the series.
    #[serde(default)]
    pub series: Vec<SeriesSpec>,
    /// For bars and boxes: the groups.
    #[serde(default)]
    pub groups: Vec<GroupSpec>,
    /// The study's values.
    #[serde(default)]
    pub published: Option<Published>,
}

/// A series, drawn for each x or in each group.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesSpec {
    /// Its name in the legend.
    pub label: String,
    /// The number: an expression over measures, in the unit of the axis: `makespan_ns / 1s`. For
    /// boxes, `{q}` stands for `min`, `q1`, `median`, `q3` and `max`:
    /// `response_ns_{q}[task=child-*] / 1ms`.
    pub value: String,
}

/// A group of bars, or a row of a table.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name below the axis or at the start of the row.
    pub label: String,
    /// Required values of dimensions for its runs.
    #[serde(rename = "where")]
    pub which: BTreeMap<String, Scalar>,
}

/// A table of a study.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyTable {
    /// Short name, unique in the study: `S2-T1`.
    pub id: String,
    /// Title.
    pub title: String,
    /// Description.
    #[serde(default)]
    pub text: String,
    /// Experiments whose runs it shows; empty: only published data.
    #[serde(default)]
    pub experiment: Option<OneOrMore>,
    /// Claims based on it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Places; each makes a row in each group.
    #[serde(default)]
    pub on: Vec<String>,
    /// The rows.
    #[serde(default)]
    pub rows: Vec<GroupSpec>,
    /// The columns.
    #[serde(default)]
    pub columns: Vec<SeriesSpec>,
    /// Published data next to our numbers.
    #[serde(default)]
    pub reference: Vec<Reference>,
    /// Whether to list every repetition too, as time(1) printed it for the study: wall, user and
    /// system time (s), CPU use (%), involuntary and voluntary switches.
    #[serde(default)]
    pub raw: bool,
}

/// Columns of published data.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Author and machine.
    pub source: String,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// The rows.
    #[serde(rename = "row")]
    pub rows: Vec<ReferenceRow>,
}

/// A row of published data.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceRow {
    /// The label of the table's row.
    pub row: String,
    /// The policy at the end of the matching place, such as `OTHER` for `host OTHER`; empty: all
    /// places.
    #[serde(default)]
    pub on: String,
    /// The values.
    pub values: Vec<f64>,
}

/// Checks figures and tables.
pub(crate) fn check(
    figures: &[StudyFigure],
    tables: &[StudyTable],
    experiments: &[ExperimentSpec],
) -> Result<(), StudyError> {
    let mut ids = BTreeSet::new();
    let mut is_new = |id: &str| {
        ids.insert(id.to_string()).then_some(()).ok_or_else(|| {
            StudyError::new(format!("two figures or tables are called {id:?}"), "rename one")
                .below("id")
        })
    };
    for (index, figure) in figures.iter().enumerate() {
        let inside = |error: StudyError| error.at(["figure".into(), index.into()]);
        is_new(&figure.id).map_err(inside)?;
        figure.check(experiments).map_err(inside)?;
    }
    for (index, table) in tables.iter().enumerate() {
        let inside = |error: StudyError| error.at(["table".into(), index.into()]);
        is_new(&table.id).map_err(inside)?;
        table.check(experiments).map_err(inside)?;
    }
    Ok(())
}

/// Dimensions of the named experiments.
fn dimensions(
    named: &OneOrMore,
    experiments: &[ExperimentSpec],
) -> Result<BTreeSet<String>, StudyError> {
    let mut all = BTreeSet::new();
    for name in named.values() {
        let Some(spec) = experiments.iter().find(|spec| spec.name == name) else {
            let names = experiments.iter().map(|spec| spec.name.as_str());
            return Err(unknown("experiment", &name, names).below("experiment"));
        };
        all.extend(spec.dimensions());
    }
    Ok(all)
}

/// Figures that the programs of the named experiments print.
fn figure_names(named: &OneOrMore, experiments: &[ExperimentSpec]) -> Vec<String> {
    let named = named.values();
    let meant = experiments.iter().filter(|spec| named.contains(&spec.name));
    meant.flat_map(ExperimentSpec::figure_names).collect()
}

/// The placeholder for each of the five numbers of a box, and their names.
const QUARTILE: &str = "{q}";
const FIVE: [&str; 5] = ["min", "q1", "median", "q3", "max"];

fn check_places(on: &[String], needs_scheduler: bool) -> Result<(), StudyError> {
    let is_wrong = |text: &String| {
        Place::parse(text).is_none_or(|place| needs_scheduler && place.scheduler.is_none())
    };
    match on.iter().position(is_wrong) {
        None => Ok(()),
        Some(index) => Err(StudyError::new(
            format!("{:?} is no place of runs", on[index]),
            "give a lane and a scheduler: sim linux-6.12",
        )
        .at(["on".into(), index.into()])),
    }
}

fn check_series(
    series: &[SeriesSpec],
    (known, figures): (&BTreeSet<String>, &[String]),
    steps: &'static str,
) -> Result<(), StudyError> {
    for (index, one) in series.iter().enumerate() {
        let at: [Step; 2] = [steps.into(), index.into()];
        let wrong =
            |text: String| StudyError::new(format!("the value {:?}: {text}", one.value), "");
        let expr = Expr::parse(&one.value).map_err(|e| wrong(e.to_string()).at(at.clone()))?;
        check_number(&expr, known, figures).map_err(|error| error.at(at))?;
    }
    Ok(())
}

fn check_which<'w>(
    which: impl Iterator<Item = &'w BTreeMap<String, Scalar>>,
    known: &BTreeSet<String>,
) -> Result<(), StudyError> {
    for name in which.flat_map(|which| which.keys()) {
        if !known.contains(name) {
            return Err(unknown("dimension", name, known.iter().map(String::as_str)));
        }
    }
    Ok(())
}

impl StudyFigure {
    fn check(&self, experiments: &[ExperimentSpec]) -> Result<(), StudyError> {
        let known = dimensions(&self.experiment, experiments)?;
        check_places(&self.on, false)?;
        let mut names = known.clone();
        names.insert("task".into());
        let figures = figure_names(&self.experiment, experiments);
        let numbers: Vec<SeriesSpec> = self.series.iter().map(|one| self.plain(one)).collect();
        check_series(&numbers, (&names, &figures), "series")?;
        let groups = self.groups.iter().map(|group| &group.which);
        check_which(std::iter::once(&self.which).chain(groups), &known)?;
        let lacks = |what: &str, form: &str| {
            Err(StudyError::new(format!("`{what}` is empty"), format!("form {form} needs it")))
        };
        match self.form {
            Form::Points | Form::Lines if !known.contains(&self.x) => {
                Err(unknown("dimension", &self.x, known.iter().map(String::as_str)).below("x"))
            }
            Form::Points if self.series.is_empty() => lacks("series", "points"),
            Form::Lines if self.series.is_empty() => lacks("series", "lines"),
            Form::Bars if self.series.is_empty() => lacks("series", "bars"),
            Form::Bars if self.groups.is_empty() => lacks("groups", "bars"),
            Form::Boxes if self.series.is_empty() => lacks("series", "boxes"),
            Form::Boxes if self.groups.is_empty() => lacks("groups", "boxes"),
            _ => self.check_published(),
        }
    }

    /// A series with one number in place of a box's five.
    fn plain(&self, series: &SeriesSpec) -> SeriesSpec {
        match self.form {
            Form::Boxes => SeriesSpec {
                label: series.label.clone(),
                value: series.value.replace(QUARTILE, FIVE[2]),
            },
            _ => series.clone(),
        }
    }

    /// Checks that the study's values belong to the figure's series and groups, in the required
    /// number.
    fn check_published(&self) -> Result<(), StudyError> {
        let Some(published) = &self.published else { return Ok(()) };
        let fits = |values: &[f64]| match self.form {
            Form::Records => true,
            Form::Points | Form::Lines => values.len() == published.at.len(),
            Form::Bars => values.len() == 1,
            Form::Boxes => values.len() == FIVE.len() && values.is_sorted(),
        };
        let nr_known = match self.form {
            Form::Records => published.rows.iter().filter(|row| row.which.is_empty()).count(),
            _ => {
                let labels = self.labels().into_iter();
                labels.filter(|labels| published.labelled(labels).is_some()).count()
            }
        };
        let is_good = |row: &PublishedRow| {
            fits(&row.values) && row.values.iter().all(|number| number.is_finite())
        };
        if nr_known > 0
            && nr_known == published.rows.len()
            && published.rows.iter().all(is_good)
            && published.is_plain()
            && published.places().is_some()
        {
            return Ok(());
        }
        Err(StudyError::new(
            "`published` does not fit the form",
            "it has `source`, `title`, `at` and rows; records: `values` for each process; points \
             and lines: `where` with the label of a `series`, a value for each of `at`; bars and \
             boxes: `where` with the labels of a `series` and a `group`, one value or five that \
             rise",
        )
        .below("published"))
    }

    /// The labels of each row of published values: a series and, with groups, a group.
    fn labels(&self) -> Vec<Vec<(&str, &str)>> {
        let mut all = Vec::new();
        for series in self.series.iter().map(|series| ("series", series.label.as_str())) {
            match self.form {
                Form::Bars | Form::Boxes => {
                    let groups = self.groups.iter().map(|group| ("group", group.label.as_str()));
                    all.extend(groups.map(|group| vec![series, group]));
                }
                _ => all.push(vec![series]),
            }
        }
        all
    }
}

impl StudyTable {
    fn check(&self, experiments: &[ExperimentSpec]) -> Result<(), StudyError> {
        check_places(&self.on, true)?;
        if let Some(named) = &self.experiment {
            let mut known = dimensions(named, experiments)?;
            check_which(self.rows.iter().map(|row| &row.which), &known)?;
            known.insert("task".into());
            let figures = figure_names(named, experiments);
            check_series(&self.columns, (&known, &figures), "columns")?;
            if self.on.is_empty() || self.rows.is_empty() || self.columns.is_empty() {
                return Err(StudyError::new(
                    "a table of runs lacks something",
                    "`on`, `rows` and `columns` are not empty",
                ));
            }
        }
        for (index, reference) in self.reference.iter().enumerate() {
            let count = reference.columns.len();
            if let Some(row) = reference.rows.iter().find(|row| row.values.len() != count) {
                return Err(StudyError::new(
                    format!("row {:?} has {} values", row.row, row.values.len()),
                    format!("give one for each of the {count} columns"),
                )
                .at(["reference".into(), index.into()]));
            }
        }
        Ok(())
    }
}
