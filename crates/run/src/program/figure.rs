// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number that is read from a program's output.
//!
//! A regular expression with one group finds the number. The regex crate matches in time linear in
//! the text, whatever the pattern. Figures are used like measures, so their names follow the same
//! rule: unit and qualifier last (`transactions_per_s`, `pass_ns`). Times are converted to
//! nanoseconds.

use crate::{StudyError, values};
use regex::Regex;
use serde::{Deserialize, Serialize};

/// How a figure is read from the output.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name: small letters, digits and `_`, the unit last. A name with `ns` is a time.
    pub name: String,
    /// Regular expression (syntax of the regex crate; `^` and `$` match at every line). Its only
    /// group is the number.
    pub pattern: String,
    /// Unit of a time in the output: `s`, `ms`, `us` or `ns`. Only for times.
    #[serde(default)]
    pub unit: Option<String>,
    /// Which match is used if there are several; default: the last.
    #[serde(default)]
    pub pick: Pick,
}

/// Which match is used if there are several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The first.
    First,
    /// The last.
    #[default]
    Last,
    /// The least number of all matches.
    Min,
    /// The greatest number of all matches.
    Max,
    /// The mean of all matches.
    Mean,
    /// The sum of all matches.
    Sum,
}

/// Units of times and their nanoseconds.
pub const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Most memory (bytes) that a compiled pattern may take.
const COMPILED_MAX: usize = 1 << 20;

/// Compiles a pattern.
pub(super) fn compile(pattern: &str) -> Result<Regex, StudyError> {
    regex::RegexBuilder::new(pattern).multi_line(true).size_limit(COMPILED_MAX).build().map_err(
        |error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            StudyError::new(
                format!("{pattern:?} is no regular expression: {last}"),
                "the syntax is that of Rust's regex crate",
            )
        },
    )
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Matcher(Regex);

impl Matcher {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, StudyError> {
        compile(pattern).map(Self)
    }

    /// Whether some part of `text` matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl Figure {
    pub(super) fn check(&self) -> Result<(), StudyError> {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = self.name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || !self.name.chars().all(is_word) || !self.name.contains('_') {
            return Err(StudyError::new(
                format!("{:?} cannot be the name of a figure", self.name),
                "small letters, digits and at least one _, the unit last: pass_ns, frames_per_s",
            )
            .below("name"));
        }
        if values::measure_names().contains(&self.name) {
            return Err(StudyError::new(
                format!("{:?} is a measure of every run", self.name),
                "give the figure another name",
            )
            .below("name"));
        }
        let regex = compile(&self.pattern).map_err(|error| error.below("pattern"))?;
        if regex.captures_len() != 2 {
            return Err(StudyError::new(
                format!("{:?} has {} groups", self.pattern, regex.captures_len() - 1),
                "put the number, and nothing else, between ( and ); (?:...) is no group",
            )
            .below("pattern"));
        }
        match (&self.unit, values::is_time(&self.name)) {
            (Some(unit), true) if UNITS.iter().any(|(known, _)| known == unit) => Ok(()),
            (None, false) => Ok(()),
            (Some(unit), true) => Err(StudyError::new(
                format!("{unit:?} is no unit of time"),
                "allowed are s, ms, us and ns",
            )
            .below("unit")),
            (None, true) => Err(StudyError::new(
                format!("{:?} is a time, but not in which unit it is printed", self.name),
                "say `unit`: s, ms, us or ns",
            )),
            (Some(_), false) => Err(StudyError::new(
                format!("`unit` stands at {:?}, which is no time", self.name),
                "drop it, or give the figure a name with ns",
            )
            .below("unit")),
        }
    }

    /// Reads the number from `output`.
    pub fn read(&self, output: &str) -> Result<f64, String> {
        let regex = compile(&self.pattern).map_err(|error| error.to_string())?;
        let mut numbers = Vec::new();
        for found in regex.captures_iter(output) {
            let text = found.get(1).map_or("", |group| group.as_str());
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            numbers.push(number.ok_or_else(|| {
                format!("figure {}: {text:?} is no number: mend the pattern", self.name)
            })?);
        }
        let factor = UNITS.iter().find(|(unit, _)| self.unit.as_deref() == Some(*unit));
        let picked = self.pick.of(&numbers).ok_or_else(|| {
            format!("figure {}: nothing printed matches {:?}", self.name, self.pattern)
        })?;
        Ok(picked * factor.map_or(1.0, |(_, factor)| *factor))
    }
}

impl Pick {
    fn of(self, numbers: &[f64]) -> Option<f64> {
        let (first, last) = (numbers.first()?, numbers.last()?);
        let sum: f64 = numbers.iter().sum();
        Some(match self {
            Self::First => *first,
            Self::Last => *last,
            Self::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => sum / numbers.len() as f64,
            Self::Sum => sum,
        })
    }
}
