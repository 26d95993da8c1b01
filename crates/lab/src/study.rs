// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies as data: the TOML files that say which experiments a study consists of.
//!
//! This file holds the shape and the checks that need no machine; `plan` turns a study into runs.

use crate::FigureKind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study: a named list of experiments.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Short name, such as `S0`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What it is about and where it comes from, for people.
    pub text: String,
    /// Its experiments.
    #[serde(rename = "experiment")]
    pub experiments: Vec<ExperimentSpec>,
}

/// One or more experiments over the same axes.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Name; `{axis}` stands for the value of an axis in `split`.
    pub name: String,
    /// Title for people, with `{axis}` too.
    pub title: String,
    /// What it shows, for people, with `{axis}` too.
    pub text: String,
    /// Figures to draw.
    #[serde(default)]
    pub figures: Vec<FigureKind>,
    /// Name of a built-in workload.
    pub workload: String,
    /// Axes each of whose values makes an experiment of its own; the other axes vary within one.
    #[serde(default)]
    pub split: Vec<String>,
    /// Parameters that every run gets.
    #[serde(default)]
    pub parameters: BTreeMap<String, Scalar>,
    /// Parameters that vary. `cpus` is the number of CPUs; all others go to the workload.
    #[serde(default)]
    pub axes: BTreeMap<String, Axis>,
    /// Whether the timeline stays in the result.
    #[serde(default)]
    pub keep_slices: bool,
    /// Whether the times of progress stay in the result.
    #[serde(default)]
    pub keep_progress: bool,
    /// Where and under what each point runs.
    pub runs: Vec<RunsSpec>,
}

/// Schedulers of one lane.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsSpec {
    /// `sim` or `host`.
    pub lane: String,
    /// Sim: names of the registry, `name:POLICY` for tasks under another policy than their own.
    /// Host: policies.
    pub schedulers: Vec<String>,
    /// How often each point is run.
    #[serde(default = "one")]
    pub repetitions: u32,
}

fn one() -> u32 {
    1
}

/// A whole number or a word.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Number(u64),
    /// A word, a time with unit, or (on an axis) `all`.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Values of an axis.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Axis {
    /// These.
    List(Vec<Scalar>),
    /// Whole numbers from 1 up.
    Range(AxisRange),
}

/// Whole numbers from 1 to an end that may depend on the machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisRange {
    /// The last value: `A`, `A*all`, `A*all+B`, where `all` is the machine's number of CPUs.
    pub to: Scalar,
    /// Most values; with more CPUs the range is thinned out evenly and keeps both ends.
    pub points_max: u64,
}

/// Most values that an axis may have.
const AXIS_VALUES_MAX: u64 = 10_000;

impl Axis {
    /// The values on a machine with `nr_cpus` CPUs, `all` replaced by their number, without
    /// repetitions of a value.
    pub fn values(&self, name: &str, nr_cpus: u32) -> Result<Vec<String>, StudyError> {
        let mut values: Vec<String> = match self {
            Self::List(list) => list
                .iter()
                .map(|value| match value {
                    Scalar::Text(text) if text == "all" => nr_cpus.to_string(),
                    other => other.to_string(),
                })
                .collect(),
            Self::Range(range) => range.values(name, nr_cpus)?,
        };
        let mut seen = std::collections::BTreeSet::new();
        values.retain(|value| seen.insert(value.clone()));
        if values.is_empty() {
            return Err(StudyError(format!(
                "axis {name:?} has no value: give a list such as [1, 2, 4]"
            )));
        }
        Ok(values)
    }
}

impl AxisRange {
    fn values(&self, name: &str, nr_cpus: u32) -> Result<Vec<String>, StudyError> {
        let wrong = |what: String| StudyError(format!("axis {name:?}: {what}"));
        let last = last_value(&self.to.to_string(), nr_cpus)
            .filter(|last| (1..=AXIS_VALUES_MAX).contains(last))
            .ok_or_else(|| {
                wrong(format!(
                    "`to` is {:?}, allowed are A, A*all and A*all+B with a result of 1 to \
                     {AXIS_VALUES_MAX}",
                    self.to.to_string()
                ))
            })?;
        if self.points_max < 2 {
            return Err(wrong(format!("`points_max` is {}, least is 2", self.points_max)));
        }
        let count = last.min(self.points_max);
        let step = |index: u64| if count < 2 { 1 } else { 1 + index * (last - 1) / (count - 1) };
        Ok((0..count).map(|index| step(index).to_string()).collect())
    }
}

/// `A`, `A*all`, `A*all+B`, `all`, `all+B`.
fn last_value(text: &str, nr_cpus: u32) -> Option<u64> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (product, add) = match text.split_once('+') {
        Some((product, add)) => (product, add.parse().ok()?),
        None => (text.as_str(), 0),
    };
    let factor: u64 = match product.strip_suffix("all")? {
        "" => 1,
        factor => factor.strip_suffix('*')?.parse().ok()?,
    };
    factor.checked_mul(u64::from(nr_cpus))?.checked_add(add)
}

/// Why a study cannot be read or planned: what was found, what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StudyError(
    /// The text.
    pub String,
);

impl std::fmt::Display for StudyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StudyError {}

impl Study {
    /// Reads a study. The error shows the line and, for an unknown key, the keys that exist.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let study: Self = toml::from_str(text).map_err(|error| StudyError(error.to_string()))?;
        for spec in &study.experiments {
            spec.check().map_err(|what| {
                StudyError(format!("experiment {:?} of study {:?}: {what}", spec.name, study.name))
            })?;
        }
        if study.experiments.is_empty() {
            return Err(StudyError(format!("study {:?} has no [[experiment]]", study.name)));
        }
        Ok(study)
    }
}

impl ExperimentSpec {
    fn check(&self) -> Result<(), String> {
        for axis in &self.split {
            if !self.axes.contains_key(axis) {
                return Err(format!(
                    "`split` names {axis:?}, which is no axis: allowed are {:?}",
                    self.axes.keys().collect::<Vec<_>>()
                ));
            }
            if !self.name.contains(&format!("{{{axis}}}")) {
                return Err(format!(
                    "the name must contain {{{axis}}}, else several experiments get one name"
                ));
            }
        }
        if let Some(both) = self.axes.keys().find(|axis| self.parameters.contains_key(*axis)) {
            return Err(format!("{both:?} is an axis and a parameter: drop one of them"));
        }
        for runs in &self.runs {
            if !matches!(runs.lane.as_str(), "sim" | "host") {
                return Err(format!("lane is {:?}, allowed are sim and host", runs.lane));
            }
            if runs.schedulers.is_empty() || runs.repetitions == 0 {
                return Err("every [[experiment.runs]] needs a scheduler and a repetition".into());
            }
        }
        if self.runs.is_empty() {
            return Err("it has no [[experiment.runs]]".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(to: &str, points_max: u64) -> Axis {
        Axis::Range(AxisRange { to: Scalar::Text(to.into()), points_max })
    }

    #[test]
    fn an_axis_follows_the_machine_and_is_thinned_out() {
        assert_eq!(range("2*all+1", 9).values("n", 2).unwrap(), ["1", "2", "3", "4", "5"]);
        let thin = range("2*all+1", 9).values("n", 64).unwrap();
        assert_eq!((thin.len(), thin[0].as_str(), thin[8].as_str()), (9, "1", "129"));
        let cpus = Axis::List(vec![Scalar::Number(1), Scalar::Text("all".into())]);
        assert_eq!(cpus.values("cpus", 8).unwrap(), ["1", "8"]);
        assert_eq!(cpus.values("cpus", 1).unwrap(), ["1"]);
    }

    #[test]
    fn ends_that_are_no_ends_are_refused() {
        for to in ["", "all*2", "2*", "x", "-1", "0", "99999999999999999999*all", "9999*all"] {
            let error = range(to, 9).values("n", 2).unwrap_err().to_string();
            assert!(error.contains("allowed are A, A*all and A*all+B"), "{to}: {error}");
        }
        assert_eq!(last_value("all+3", 4), Some(7));
    }

    #[test]
    fn an_unknown_key_is_shown_with_the_known_ones() {
        let error = Study::parse("name='x'\ntitle='t'\ntext=''\ncpu=1\n").unwrap_err().to_string();
        assert!(error.contains("unknown field `cpu`") && error.contains("`experiment`"), "{error}");
        assert!(error.contains("line 4"), "{error}");
    }

    #[test]
    fn experiments_of_one_name_are_refused() {
        let text = "name='x'\ntitle='t'\ntext=''\n[[experiment]]\nname='a'\ntitle=''\ntext=''\n\
                    workload='hogs'\nsplit=['n']\naxes.n=[1,2]\n\
                    [[experiment.runs]]\nlane='sim'\nschedulers=['fcfs']\n";
        let error = Study::parse(text).unwrap_err().to_string();
        assert!(error.contains("must contain {n}"), "{error}");
    }
}
