// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of schedulers, as data that the command line can list and check.

use crate::boundary::tunable_names::{self, Meaning};
use schedlab_model::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The words of a choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Words {
    /// Words of a scheduler in this program.
    Fixed(&'static [&'static str]),
    /// Words that were read from a file or come from a table.
    Read(Vec<String>),
}

impl Words {
    /// Number of words.
    pub fn len(&self) -> usize {
        match self {
            Self::Fixed(words) => words.len(),
            Self::Read(words) => words.len(),
        }
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The words in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, read): (&[&'static str], &[String]) = match self {
            Self::Fixed(words) => (words, &[]),
            Self::Read(words) => (&[], words),
        };
        fixed.iter().copied().chain(read.iter().map(String::as_str))
    }

    /// The word with this number, from 0.
    pub fn get(&self, index: usize) -> Option<&str> {
        self.iter().nth(index)
    }

    /// The words in order, separated by commas.
    pub fn joined(&self) -> String {
        self.iter().collect::<Vec<_>>().join(", ")
    }
}

/// The allowed values of a tunable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TunableKind {
    /// A time in ns, given with a unit (`10ms`).
    Time {
        /// Least.
        min: Nanos,
        /// Greatest.
        max: Nanos,
    },
    /// A whole number.
    Count {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// One of these words. The value is the word's index.
    Choice(Words),
}

impl TunableKind {
    /// A choice of `words`.
    pub const fn words(words: &'static [&'static str]) -> Self {
        Self::Choice(Words::Fixed(words))
    }
}

/// Name of the tunable with the kernel whose sched_ext core a run has.
pub const SCX_CORE: &str = "scx_core";

/// A tunable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunable {
    /// Name. It omits the unit at the end of a kernel's file name, because times are given with a
    /// unit.
    pub name: Cow<'static, str>,
    /// Kind and range.
    pub kind: TunableKind,
    /// Default: a time in ns, a number, or the index of a word.
    pub default: u64,
    /// What it does.
    pub text: Cow<'static, str>,
}

impl Tunable {
    /// A tunable of a scheduler in this program.
    pub const fn new(
        name: &'static str,
        kind: TunableKind,
        default: u64,
        text: &'static str,
    ) -> Self {
        Self { name: Cow::Borrowed(name), kind, default, text: Cow::Borrowed(text) }
    }
}

/// A tunable cannot be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionError(
    /// What was found, and what is allowed.
    pub String,
);

impl std::fmt::Display for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionError {}

/// Values of a scheduler's tunables: the defaults, some of them replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    values: BTreeMap<Cow<'static, str>, u64>,
}

impl Options {
    /// The defaults of `tunables`.
    pub fn defaults(tunables: &[Tunable]) -> Self {
        Self { values: tunables.iter().map(|t| (t.name.clone(), t.default)).collect() }
    }

    /// Sets `name` to a value: a time in ns, a number, or the index of a word.
    pub fn set(&mut self, tunables: &[Tunable], name: &str, value: u64) -> Result<(), OptionError> {
        let tunable = find(tunables, name)?.tunable;
        let (min, max) = match &tunable.kind {
            TunableKind::Time { min, max } | TunableKind::Count { min, max } => (*min, *max),
            TunableKind::Choice(words) => (0, words.len() as u64 - 1),
        };
        if !(min..=max).contains(&value) {
            return Err(OptionError(format!("{name} is {value}, allowed are {min} to {max}")));
        }
        self.values.insert(tunable.name.clone(), value);
        Ok(())
    }

    /// Sets `name` from text: a word of a choice, a whole number, or a time that the caller's
    /// `parse_time` can read. The name may be that of the kernel's file. A bare number then has the
    /// unit at the end of that name, and a switch may be 0 or 1
    /// ([`crate::boundary::tunable_names`]).
    pub fn set_text(
        &mut self,
        tunables: &[Tunable],
        name: &str,
        text: &str,
        parse_time: impl Fn(&str) -> Result<Nanos, String>,
    ) -> Result<(), OptionError> {
        if let Some((other, word)) = tunable_names::as_another(tunables, name, text) {
            return self.set_text(tunables, other, word, parse_time);
        }
        let features = tunables.iter().any(|tunable| tunable_names::is_features(&tunable.name));
        if tunable_names::is_features(name) && !features {
            // Named as in the kernel's file, but none of this scheduler's.
            let bare = text.strip_prefix("NO_").unwrap_or(text);
            return Err(OptionError(tunable_names::unknown(tunables, bare)));
        }
        let Meaning { tunable, unit_ns } = find(tunables, name)?;
        let value = match &tunable.kind {
            TunableKind::Time { .. } => match (unit_ns, text.parse::<Nanos>()) {
                (Some(unit_ns), Ok(number)) => number.checked_mul(unit_ns).ok_or_else(|| {
                    OptionError(format!("{name} is {text:?}, which is too large"))
                })?,
                _ => parse_time(text).map_err(|why| OptionError(format!("{name}: {why}")))?,
            },
            TunableKind::Count { .. } => text
                .parse()
                .map_err(|_| OptionError(format!("{name} is {text:?}, expected a whole number")))?,
            TunableKind::Choice(words) => {
                let by_number = || numbered(words).then(|| text.parse().ok()).flatten();
                words.iter().position(|word| word == text).or_else(by_number).ok_or_else(|| {
                    OptionError(format!("{name} is {text:?}, allowed are {}", words.joined()))
                })? as u64
            }
        };
        self.set(tunables, &tunable.name, value)
    }

    /// The value of `name`. Panics if the scheduler did not declare it, which is a bug in the
    /// scheduler.
    pub fn get(&self, name: &str) -> u64 {
        *self.values.get(name).unwrap_or_else(|| panic!("tunable {name:?} is not declared"))
    }

    /// Gives another value to `name`, if the scheduler declared it. Returns whether it did.
    pub fn replace(&mut self, name: &str, value: u64) -> bool {
        self.values.get_mut(name).map(|known| *known = value).is_some()
    }

    /// Names and values in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.values.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// Whether the kernel's file has this choice as a number with the same order.
fn numbered(words: &Words) -> bool {
    let words: Vec<&str> = words.iter().collect();
    matches!(
        words[..],
        ["no", "yes"] | ["off", "on"] | ["false", "true"] | ["none", "log", "linear"]
    )
}

fn find<'t>(tunables: &'t [Tunable], name: &str) -> Result<Meaning<'t>, OptionError> {
    tunable_names::meaning(tunables, name)
        .ok_or_else(|| OptionError(tunable_names::unknown(tunables, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNABLES: &[Tunable] = &[
        Tunable::new("slice", TunableKind::Time { min: 10, max: 1_000 }, 100, ""),
        Tunable::new("count", TunableKind::Count { min: 0, max: 9 }, 3, ""),
    ];

    fn set(name: &str, text: &str) -> Result<u64, String> {
        let mut options = Options::defaults(TUNABLES);
        let parse =
            |text: &str| text.strip_suffix("ns").unwrap_or("0").parse().map_err(|_| text.into());
        options.set_text(TUNABLES, name, text, parse).map_err(|error| error.to_string())?;
        Ok(options.get(name.trim_end_matches("_ns")))
    }

    #[test]
    fn a_time_may_be_named_in_ns_as_the_kernel_does() {
        assert_eq!(set("slice", "250ns"), Ok(250));
        assert_eq!(set("slice_ns", "250"), Ok(250));
        assert_eq!(set("slice_ns", "250ns"), Ok(250));
        assert!(set("slice_ns", "many").is_err());
        assert_eq!(set("slice_ns", "5"), Err("slice is 5, allowed are 10 to 1000".into()));
        assert!(set("count_ns", "5").unwrap_err().contains("unknown"));
    }
}
