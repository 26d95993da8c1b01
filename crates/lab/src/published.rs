// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published values next to those of runs: for an experiment, a study's figure, or a check of a
//! claim.
//!
//! An experiment's values are rows along one dimension. A row is compared in three ways. The first
//! is value by value (simulated divided by published), the second its growth from the first value
//! to the last. The third is its gap to the row that differs from it in what `against` names. The
//! fit error covers the whole: the square root of the mean square of ln(simulated / published),
//! reported as a factor. Opposite signs do not cancel in it, and a value that is half counts as
//! much as one that is double.

use crate::ExperimentResult;
use crate::axis::Scalar;
use schedlab_run::place::unknown;
use schedlab_run::{RunResult, StudyError, values};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Published values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Author and publication.
    pub source: String,
    /// Name of their panel in a figure; default: `the study`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// For an experiment: their measure.
    #[serde(default)]
    pub measure: String,
    /// For an experiment: the value 1 in the measure's unit, such as 1000000000 for seconds if the
    /// measure is in nanoseconds.
    #[serde(default = "one")]
    pub unit: u64,
    /// For an experiment: the dimension along a row.
    #[serde(default)]
    pub along: String,
    /// Its values; for a figure of points or lines, the values of x.
    #[serde(default)]
    pub at: Vec<Scalar>,
    /// For an experiment: values of dimensions that identify the row to compare with.
    #[serde(default)]
    pub against: BTreeMap<String, Scalar>,
    /// The rows.
    #[serde(rename = "row")]
    pub rows: Vec<PublishedRow>,
}

const fn one() -> u64 {
    1
}

/// A row of published values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// Dimensions and their values. For a figure: `series` and `group` with their labels. For a
    /// check: names of `each`.
    #[serde(default, rename = "where")]
    pub which: BTreeMap<String, Scalar>,
    /// One value for each of `at`. For a figure of records: the elapsed milliseconds of each record
    /// of a process. For bars: the number. For boxes: the five numbers from least to greatest.
    pub values: Vec<f64>,
}

/// The short form for a check: its number, or one number for each row of `each`.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, a list of numbers, or a table with `row`")]
pub(crate) enum Short {
    One(f64),
    Many(Vec<f64>),
    Whole(Published),
}

impl From<Short> for Published {
    fn from(short: Short) -> Self {
        let values = match short {
            Short::One(value) => vec![value],
            Short::Many(values) => values,
            Short::Whole(published) => return published,
        };
        Self {
            source: String::new(),
            title: String::new(),
            measure: String::new(),
            unit: 1,
            along: String::new(),
            at: Vec::new(),
            against: BTreeMap::new(),
            rows: vec![PublishedRow { which: BTreeMap::new(), values }],
        }
    }
}

/// Parses the values of a check.
pub(crate) fn of_check<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Published>, D::Error> {
    Ok(Some(Short::deserialize(from)?.into()))
}

impl Published {
    /// Values of the row with exactly these labels.
    pub(crate) fn labelled(&self, labels: &[(&str, &str)]) -> Option<&[f64]> {
        let is_it = |row: &&PublishedRow| {
            let has = |(name, label): &(&str, &str)| {
                row.which.get(*name).is_some_and(|found| found.to_string() == *label)
            };
            row.which.len() == labels.len() && labels.iter().all(has)
        };
        self.rows.iter().find(is_it).map(|row| row.values.as_slice())
    }

    /// Name of their panel in a figure.
    pub(crate) fn panel_title(&self) -> &str {
        if self.title.is_empty() { "the study" } else { &self.title }
    }

    /// The numbers of `at`; `None` if one is neither a number nor a time.
    pub(crate) fn places(&self) -> Option<Vec<f64>> {
        let number = |at: &Scalar| Some(values::axis_value(&at.to_string())?.number);
        self.at.iter().map(number).collect()
    }

    /// Whether the fields for experiments are all unset.
    pub(crate) fn is_plain(&self) -> bool {
        let has_names = !self.measure.is_empty() || !self.along.is_empty();
        !has_names && self.unit == 1 && self.against.is_empty()
    }

    /// The number for row `index` of a check with `count` rows; its `each` has the values `point`.
    pub(crate) fn of_row(
        &self,
        (index, count): (usize, usize),
        point: &BTreeMap<String, String>,
    ) -> Result<f64, StudyError> {
        let is_meant = |row: &&PublishedRow| {
            row.which.iter().all(|(name, value)| point.get(name) == Some(&value.to_string()))
        };
        let found: Vec<f64> =
            self.rows.iter().filter(is_meant).flat_map(|row| row.values.iter().copied()).collect();
        match found[..] {
            [value] => Ok(value),
            _ if found.len() == count => Ok(found[index]),
            _ => Err(StudyError::new(
                format!("`published` has {} numbers, `each` makes {count} rows", found.len()),
                "give one number, or as many as there are rows",
            )
            .below("published")),
        }
    }

    /// Checks names and numbers of an experiment's values; `known` are its dimensions.
    pub(crate) fn check(&self, known: &[String], figures: &[String]) -> Result<(), StudyError> {
        if self.measure.is_empty() || self.along.is_empty() {
            return Err(StudyError::new(
                "`published` lacks `measure` or `along`",
                "say what the figures are, and along which dimension a row goes",
            ));
        }
        let mut measures = figures.to_vec();
        measures.extend(values::measure_names());
        if !measures.contains(&self.measure) {
            let names = measures.iter().map(String::as_str);
            return Err(unknown("measure", &self.measure, names).below("measure"));
        }
        let rows = self.rows.iter().flat_map(|row| row.which.keys());
        for name in rows.chain(self.against.keys()).chain([&self.along]) {
            if !known.contains(name) {
                return Err(unknown("dimension", name, known.iter().map(String::as_str)));
            }
        }
        if self.unit == 0 || self.at.is_empty() || self.rows.is_empty() {
            return Err(StudyError::new(
                "`published` lacks something",
                "`unit` is at least 1, `at` and `row` are not empty",
            ));
        }
        let is_good = |row: &PublishedRow| {
            row.values.len() == self.at.len()
                && row.values.iter().all(|value| value.is_finite() && *value > 0.0)
        };
        match self.rows.iter().find(|row| !is_good(row)) {
            None => Ok(()),
            Some(row) => Err(StudyError::new(
                format!("a published row has the values {:?}", row.values),
                format!("give one for each of the {} of `at`, all above 0", self.at.len()),
            )),
        }
    }
}

/// A published value and the corresponding value of the runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    /// Mean over the runs.
    pub simulated: f64,
    /// The published value.
    pub published: f64,
}

impl Pair {
    /// Simulated divided by published.
    pub fn ratio(self) -> f64 {
        self.simulated / self.published
    }

    fn by(self, other: Self) -> Self {
        Self {
            simulated: self.simulated / other.simulated,
            published: self.published / other.published,
        }
    }
}

/// A compared row.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparedRow {
    /// Name of the row.
    pub name: String,
    /// Pairs by place along the row; `None` without a run.
    pub pairs: Vec<Option<Pair>>,
    /// The last value divided by the first.
    pub growth: Option<Pair>,
}

/// A complete comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Places along the rows.
    pub at: Vec<String>,
    /// The published rows.
    pub rows: Vec<ComparedRow>,
    /// Each row divided by the row to compare with.
    pub gaps: Vec<ComparedRow>,
}

impl Comparison {
    /// Compares the runs of an experiment with its published values; `None` without any.
    pub fn of(result: &ExperimentResult) -> Option<Self> {
        let published = result.experiment.view.as_ref()?.published.as_ref()?;
        let text = |map: &BTreeMap<String, Scalar>| -> BTreeMap<String, String> {
            map.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
        };
        let at: Vec<String> = published.at.iter().map(Scalar::to_string).collect();
        let pairs = |row: &PublishedRow| -> Vec<Option<Pair>> {
            let which = text(&row.which);
            let places = at.iter().zip(&row.values);
            places
                .map(|(place, value)| {
                    let mut which = which.clone();
                    which.insert(published.along.clone(), place.clone());
                    let simulated = mean(&result.runs, &which, &published.measure)?;
                    let simulated = simulated / published.unit as f64;
                    (simulated > 0.0).then_some(Pair { simulated, published: *value })
                })
                .collect()
        };
        let against = text(&published.against);
        let mut found = Vec::new();
        for row in &published.rows {
            found.push((text(&row.which), pairs(row)));
        }
        let gaps = found.iter().filter_map(|(which, pairs)| {
            let mut other = which.clone();
            other.extend(against.clone());
            let (_, base) = found.iter().find(|(known, _)| *known == other && known != which)?;
            let by = |(own, base): (&Option<Pair>, &Option<Pair>)| Some((*own)?.by((*base)?));
            Some(compared(which, pairs.iter().zip(base).map(by).collect()))
        });
        let gaps = gaps.collect();
        let rows = found.iter().map(|(which, pairs)| compared(which, pairs.clone())).collect();
        Some(Self { at, rows, gaps })
    }

    /// All pairs of the rows that have runs.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.rows.iter().flat_map(|row| row.pairs.iter().flatten().copied())
    }
}

fn compared(which: &BTreeMap<String, String>, pairs: Vec<Option<Pair>>) -> ComparedRow {
    let name = which.values().map(String::as_str).collect::<Vec<_>>().join(", ");
    let ends = pairs.first().copied().flatten().zip(pairs.last().copied().flatten());
    ComparedRow { name, growth: ends.map(|(first, last)| last.by(first)), pairs }
}

/// Mean of a measure over the runs with these values of dimensions.
fn mean(runs: &[RunResult], which: &BTreeMap<String, String>, measure: &str) -> Option<f64> {
    let fits = |run: &&RunResult| which.iter().all(|(n, v)| values::dimension(run, n) == *v);
    let found = runs.iter().filter(fits).filter_map(|run| values::run_value(run, measure));
    let (count, sum) = found.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// The typical factor between simulated and published: the exponential of the square root of the
/// mean square of ln(simulated / published). At least 1; `None` without a pair.
pub fn typical_factor(pairs: impl Iterator<Item = Pair>) -> Option<f64> {
    let squares = pairs.map(|pair| pair.ratio().ln().powi(2));
    let (count, sum) = squares.fold((0_u32, 0.0), |(count, sum), one| (count + 1, sum + one));
    (count > 0).then(|| (sum / f64::from(count)).sqrt().exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_double_do_not_cancel() {
        let pair = |simulated| Pair { simulated, published: 2.0 };
        let factor = |values: &[f64]| typical_factor(values.iter().map(|v| pair(*v)));
        assert_eq!(factor(&[]), None);
        assert!((factor(&[2.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((factor(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn rows_are_compared_by_value_growth_and_gap() {
        let run = |scheduler: &str, n: &str, end_ns| {
            let mut run = RunResult { scheduler: scheduler.into(), ..RunResult::default() };
            run.parameters.insert("n".into(), n.into());
            run.measures.totals.end_ns = end_ns;
            run
        };
        let text = "name='x'\n[[experiment]]\nname='a'\nworkload='hogs'\naxes={n=[1,2]}\n\
                    [[experiment.runs]]\nlane='sim'\nschedulers=['a','b']\n\
                    [experiment.published]\nsource='s'\nmeasure='end_ns'\nunit=10\nalong='n'\n\
                    at=[1,2]\nagainst={scheduler='b'}\n\
                    row=[{where={scheduler='a'}, values=[2.0, 8.0]},\
                    {where={scheduler='b'}, values=[1.0, 2.0]}]\n";
        let spec = &crate::Study::parse(text).unwrap().experiments[0];
        let mut result = ExperimentResult {
            experiment: crate::Experiment { view: Some(spec.view()), ..Default::default() },
            runs: vec![run("a", "1", 20), run("a", "2", 160), run("b", "1", 5)],
        };
        let found = Comparison::of(&result).unwrap();
        assert_eq!(found.rows[0].pairs[1], Some(Pair { simulated: 16.0, published: 8.0 }));
        assert_eq!(found.rows[0].growth, Some(Pair { simulated: 8.0, published: 4.0 }));
        assert_eq!((found.rows[1].pairs[1], found.rows[1].growth), (None, None));
        assert_eq!(found.gaps.len(), 1);
        assert_eq!(found.gaps[0].pairs, [Some(Pair { simulated: 4.0, published: 2.0 }), None]);
        assert_eq!(found.pairs().count(), 3);
        result.experiment.view = None;
        assert_eq!(Comparison::of(&result), None);
    }
}
