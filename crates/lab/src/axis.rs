// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that a study varies: lists, ranges that depend on the machine, seeds.

use schedlab_run::StudyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A whole number or a word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number from 0 up or a text in quotes")]
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

/// One value, or a list of them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a whole number or a text in quotes, or a list of such values"
)]
pub enum OneOrMore {
    /// One value.
    One(Scalar),
    /// Several values.
    Many(Vec<Scalar>),
}

impl Default for OneOrMore {
    /// No value: an experiment that runs a program has no workload.
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMore {
    /// The values as text, each once.
    pub fn values(&self) -> Vec<String> {
        let list = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        };
        without_repetitions(list.iter().map(Scalar::to_string).collect())
    }
}

/// Values of an axis.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a list such as [1, 2, 4] or a range { to = \"2*all+1\", points_max = 9 }"
)]
pub enum Axis {
    /// These values.
    List(Vec<Scalar>),
    /// Whole numbers from 1 up.
    Range(AxisRange),
}

/// Whole numbers from 1 to an end that may depend on the machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisRange {
    /// The last value: `A`, `A*all` or `A*all+B`, where `all` is the machine's number of CPUs.
    pub to: Scalar,
    /// Maximum number of values. With more CPUs, values are dropped evenly; both ends stay.
    pub points_max: u64,
}

/// Maximum number of values of an axis.
pub const AXIS_VALUES_MAX: u64 = 10_000;

impl Axis {
    /// The values on a machine with `nr_cpus` CPUs, each once. `all` becomes the number of CPUs.
    pub fn values(&self, name: &str, nr_cpus: u32) -> Result<Vec<String>, StudyError> {
        let values: Vec<String> = match self {
            Self::List(list) => list
                .iter()
                .map(|value| match value {
                    Scalar::Text(text) if text == "all" => nr_cpus.to_string(),
                    other => other.to_string(),
                })
                .collect(),
            Self::Range(range) => range.values(name, nr_cpus)?,
        };
        let values = without_repetitions(values);
        match values.len() as u64 {
            0 => Err(StudyError::new(
                format!("axis {name:?} has no value"),
                "give a list such as [1, 2, 4]",
            )),
            1..=AXIS_VALUES_MAX => Ok(values),
            count => Err(StudyError::new(
                format!("axis {name:?} has {count} values"),
                format!("most are {AXIS_VALUES_MAX}"),
            )),
        }
    }
}

impl AxisRange {
    fn values(&self, name: &str, nr_cpus: u32) -> Result<Vec<String>, StudyError> {
        let last = last_value(&self.to.to_string(), nr_cpus)
            .filter(|last| (1..=AXIS_VALUES_MAX).contains(last))
            .ok_or_else(|| {
                StudyError::new(
                    format!("axis {name:?}: `to` is {:?}", self.to.to_string()),
                    format!(
                        "allowed are A, A*all and A*all+B with a result of 1 to {AXIS_VALUES_MAX}"
                    ),
                )
            })?;
        if self.points_max < 2 {
            return Err(StudyError::new(
                format!("axis {name:?}: `points_max` is {}", self.points_max),
                "least is 2",
            ));
        }
        let count = last.min(self.points_max);
        let step = |index: u64| if count < 2 { 1 } else { 1 + index * (last - 1) / (count - 1) };
        Ok((0..count).map(|index| step(index).to_string()).collect())
    }
}

/// Evaluates `A`, `A*all`, `A*all+B`, `all` or `all+B`.
pub(crate) fn last_value(text: &str, nr_cpus: u32) -> Option<u64> {
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

/// Seeds for every point of an experiment.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a list such as [1, 2, 3] or a range { first = 1, count = 10 }"
)]
pub enum Seeds {
    /// These seeds.
    List(Vec<u64>),
    /// Consecutive seeds.
    Range(SeedRange),
}

/// Consecutive seeds.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedRange {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
}

impl Seeds {
    /// The seeds, each once.
    pub fn values(&self) -> Result<Vec<u64>, StudyError> {
        let seeds: Vec<u64> = match self {
            Self::List(list) => list.clone(),
            Self::Range(range) if range.count <= AXIS_VALUES_MAX => {
                (0..range.count).map(|index| range.first.wrapping_add(index)).collect()
            }
            Self::Range(range) => {
                return Err(StudyError::new(
                    format!("`seeds` are {}", range.count),
                    format!("most are {AXIS_VALUES_MAX}"),
                ));
            }
        };
        let distinct: BTreeSet<u64> = seeds.iter().copied().collect();
        if seeds.is_empty() || distinct.len() < seeds.len() {
            return Err(StudyError::new(
                "`seeds` is empty or names a seed twice",
                "a repetition with the same seed gives the same simulated run: name each once",
            ));
        }
        Ok(seeds)
    }
}

fn without_repetitions(mut values: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
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
    fn a_seed_counts_once() {
        let range = |first, count| Seeds::Range(SeedRange { first, count }).values();
        assert_eq!(range(7, 3).unwrap(), [7, 8, 9]);
        assert_eq!(range(u64::MAX, 2).unwrap(), [u64::MAX, 0]);
        assert!(range(1, 0).is_err() && range(1, u64::MAX).is_err());
        assert!(Seeds::List(vec![3, 4, 3]).values().is_err());
    }
}
