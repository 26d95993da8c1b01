// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of built-in workloads: their types, and how a text is read and checked.

use crate::policy::{RT_PRIORITY_DEFAULT, has_nice, parse_policy};
use crate::units::{self, UnitError};
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{CpuMask, Nanos, Policy, SchedAttr};

/// Type of a parameter, with the allowed values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number.
    Count {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// A duration with a unit.
    Duration {
        /// Least (ns); at most [`units::DURATION_NS_MAX`].
        min_ns: Nanos,
    },
    /// A duration, or a word that means "none".
    DurationOr {
        /// Least (ns).
        min_ns: Nanos,
        /// The word.
        word: &'static str,
    },
    /// A whole number, or a word that means "no limit".
    CountOr {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
        /// The word.
        word: &'static str,
    },
    /// A number of bytes, with or without a unit.
    Bytes {
        /// Least.
        min: u64,
        /// Most; at most [`units::BYTES_MAX`].
        max: u64,
    },
    /// One of some words.
    Word {
        /// The words.
        words: &'static [&'static str],
    },
    /// Nice values, -20 to 19, separated by commas, or by slashes where commas separate parameters.
    NiceList,
    /// One nice value, -20 to 19.
    Nice,
    /// A scheduling policy that needs no further parameters.
    Policy,
    /// FIFO or RR.
    RtPolicy,
    /// A real-time priority, 1 to 99; used with FIFO and RR only.
    Priority,
    /// CPUs as a list such as `0-3,8` or `0-3/8`, or `all`.
    Cpus,
}

impl Kind {
    /// Describes the allowed values for messages.
    pub fn allowed(&self) -> String {
        let at_least = |ns: Nanos| format!("a duration of {} or more", units::format_duration(ns));
        match self {
            Self::Count { min, max } => format!("a whole number, {min} to {max}"),
            Self::CountOr { min, max, word } => {
                format!("a whole number, {min} to {max}, or `{word}`")
            }
            Self::Duration { min_ns } => at_least(*min_ns),
            Self::DurationOr { min_ns, word } => format!("{}, or `{word}`", at_least(*min_ns)),
            Self::Bytes { min, max } => {
                format!("bytes, {min} to {}", units::format_bytes(*max))
            }
            Self::Word { words } => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
            }
            Self::NiceList => "nice values, -20 to 19, separated by commas or slashes".into(),
            Self::Nice => "a nice value, -20 to 19".into(),
            Self::Policy => "OTHER, BATCH, IDLE, FIFO, RR or EXT".into(),
            Self::RtPolicy => "FIFO or RR".into(),
            Self::Priority => "a real-time priority, 1 to 99 (FIFO and RR only)".into(),
            Self::Cpus => "CPUs such as `0-3,8`, or `all`".into(),
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Default, as a user would write it.
    pub default: &'static str,
    /// Meaning, in one line.
    pub help: &'static str,
}

/// Why a built-in workload cannot be made. The text names what was found and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuiltinError {
    /// No built-in has this name.
    #[error("no built-in workload is called {found:?}: {hint}allowed: {allowed}")]
    UnknownBuiltin {
        /// The name that was given.
        found: String,
        /// `did you mean ...? `, or nothing.
        hint: String,
        /// Names of all built-ins.
        allowed: String,
    },
    /// The built-in has no such parameter.
    #[error("{builtin} has no parameter {found:?}: {hint}allowed: {allowed}")]
    UnknownParam {
        /// The built-in.
        builtin: &'static str,
        /// The name that was given.
        found: String,
        /// `did you mean ...? `, or nothing.
        hint: String,
        /// Names of its parameters.
        allowed: String,
    },
    /// A parameter was given twice.
    #[error("{builtin}: parameter {param:?} is given twice: give it once")]
    Twice {
        /// The built-in.
        builtin: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// A value cannot be read or is out of range.
    #[error("{builtin}: {param}={found}: {why}; allowed: {allowed}")]
    BadValue {
        /// The built-in.
        builtin: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value that was given.
        found: String,
        /// What is wrong.
        why: String,
        /// What is allowed.
        allowed: String,
    },
    /// Values that contradict each other.
    #[error("{builtin}: {why}")]
    Conflict {
        /// The built-in.
        builtin: &'static str,
        /// Which values contradict each other, and what to do.
        why: String,
    },
}

impl BuiltinError {
    /// Names the command that shows more.
    pub fn help(&self) -> String {
        match self {
            Self::UnknownBuiltin { .. } => {
                "`schedlab list workloads` shows all; a file must end in .json or contain a /"
                    .into()
            }
            Self::UnknownParam { builtin, .. }
            | Self::Twice { builtin, .. }
            | Self::BadValue { builtin, .. }
            | Self::Conflict { builtin, .. } => {
                format!("`schedlab list workloads {builtin}` shows its parameters")
            }
        }
    }
}

/// A checked value.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Number(u64),
    /// The word that means "none" or "no limit".
    NoLimit,
    Word(&'static str),
    Nices(Vec<i8>),
    Policy(Policy),
    Cpus(Option<CpuMask>),
}

/// The checked values of all parameters of a built-in.
#[derive(Clone, Debug)]
pub struct Args {
    builtin: &'static str,
    params: &'static [Param],
    values: Vec<Value>,
    given: Vec<bool>,
}

impl Args {
    /// Checks `given` against `params` and fills in the defaults.
    pub(super) fn parse(
        builtin: &'static str,
        params: &'static [Param],
        given: &[(&str, &str)],
    ) -> Result<Self, BuiltinError> {
        let mut texts: Vec<Option<&str>> = vec![None; params.len()];
        for (name, text) in given {
            let index = params.iter().position(|param| param.name == *name).ok_or_else(|| {
                let names = || params.iter().map(|param| param.name);
                BuiltinError::UnknownParam {
                    builtin,
                    found: (*name).into(),
                    hint: did_you_mean(name, names()),
                    allowed: list(names()),
                }
            })?;
            if texts[index].replace(text).is_some() {
                return Err(BuiltinError::Twice { builtin, param: params[index].name });
            }
        }
        let mut values = Vec::with_capacity(params.len());
        for (param, text) in params.iter().zip(&texts) {
            let text = text.unwrap_or(param.default);
            values.push(parse_value(param.kind, text.trim()).map_err(|why| {
                BuiltinError::BadValue {
                    builtin,
                    param: param.name,
                    found: text.chars().take(60).collect(),
                    why,
                    allowed: param.kind.allowed(),
                }
            })?);
        }
        Ok(Self { builtin, params, values, given: texts.iter().map(Option::is_some).collect() })
    }

    /// Makes an error about values that contradict each other.
    pub(super) fn conflict(&self, why: impl Into<String>) -> BuiltinError {
        BuiltinError::Conflict { builtin: self.builtin, why: why.into() }
    }

    fn index(&self, name: &str) -> usize {
        self.params
            .iter()
            .position(|param| param.name == name)
            .unwrap_or_else(|| panic!("{} has no parameter {name}", self.builtin))
    }

    fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name)
    }

    fn given(&self, name: &str) -> bool {
        self.has(name) && self.given[self.index(name)]
    }

    /// The value of a count, a duration (ns) or a number of bytes.
    pub(super) fn number(&self, name: &str) -> u64 {
        match self.values[self.index(name)] {
            Value::Number(number) => number,
            ref other => panic!("{}: {name} is {other:?}, not a number", self.builtin),
        }
    }

    /// The value of a count. Its range ensures that it fits in 32 bits.
    pub(super) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("the range of a count lies within 32 bits")
    }

    /// The number; `None` if the word was given.
    pub(super) fn number_or_none(&self, name: &str) -> Option<u64> {
        match self.values[self.index(name)] {
            Value::Number(number) => Some(number),
            Value::NoLimit => None,
            ref other => panic!("{}: {name} is {other:?}, not a number", self.builtin),
        }
    }

    /// One of the words of a parameter.
    pub(super) fn word(&self, name: &str) -> &'static str {
        match self.values[self.index(name)] {
            Value::Word(word) => word,
            ref other => panic!("{}: {name} is {other:?}, not a word", self.builtin),
        }
    }

    /// A list of nice values, never empty.
    pub(super) fn nices(&self, name: &str) -> &[i8] {
        match &self.values[self.index(name)] {
            Value::Nices(nices) => nices,
            other => panic!("{}: {name} is {other:?}, not a list", self.builtin),
        }
    }

    /// One nice value.
    pub(super) fn nice(&self, name: &str) -> i8 {
        self.nices(name)[0]
    }

    /// Reads attributes from those of the parameters `policy`, `priority`, `nice` and `cpus` that
    /// the built-in has. A value that was given but would have no effect is refused.
    pub(super) fn attr(&self) -> Result<SchedAttr, BuiltinError> {
        let mut attr = SchedAttr::default();
        if self.has("policy")
            && let Value::Policy(policy) = self.values[self.index("policy")]
        {
            attr.policy = policy;
        }
        if attr.policy.is_rt() {
            attr.rt_priority = RT_PRIORITY_DEFAULT;
            if self.has("priority") {
                // The range of the kind is 1 to 99.
                attr.rt_priority = self.number("priority") as u8;
            }
        } else if self.given("priority") {
            return Err(self.conflict(format!(
                "priority has no effect under {}: leave it out, or set policy=FIFO or policy=RR",
                attr.policy.name()
            )));
        }
        if self.given("nice") && !has_nice(attr.policy) {
            return Err(self.conflict(format!(
                "nice has no effect under {}: leave it out, or set policy=OTHER",
                attr.policy.name()
            )));
        }
        if self.has("cpus")
            && let Value::Cpus(cpus) = &self.values[self.index("cpus")]
        {
            attr.affinity = *cpus;
        }
        Ok(attr)
    }
}

fn parse_value(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Count { min, max } => parse_count(text, min, max).map(Value::Number),
        Kind::CountOr { word, .. } | Kind::DurationOr { word, .. } if text == word => {
            Ok(Value::NoLimit)
        }
        Kind::CountOr { min, max, .. } => parse_count(text, min, max).map(Value::Number),
        Kind::Duration { min_ns } | Kind::DurationOr { min_ns, .. } => {
            at_least(units::parse_duration(text), min_ns)
        }
        Kind::Bytes { min, max } => match units::parse_bytes(text) {
            Ok(bytes) if bytes > max => Err("too large".into()),
            bytes => at_least(bytes, min),
        },
        Kind::Word { words } => match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Value::Word(word)),
            None => Err(did_you_mean(text, words.iter().copied()) + "this is none of the words"),
        },
        Kind::NiceList => {
            let nices: Result<Vec<i8>, String> = text.split([',', '/']).map(parse_nice).collect();
            nices.map(Value::Nices)
        }
        Kind::Nice => Ok(Value::Nices(vec![parse_nice(text)?])),
        Kind::Policy | Kind::RtPolicy => {
            let policy = parse_policy(text).ok_or("this is no policy")?;
            if policy == Policy::Deadline {
                return Err("DEADLINE needs a runtime and a period: write a file".into());
            }
            if kind == Kind::RtPolicy && !policy.is_rt() {
                return Err("the priorities of this workload need a real-time policy".into());
            }
            Ok(Value::Policy(policy))
        }
        Kind::Priority => parse_count(text, 1, 99).map(Value::Number),
        Kind::Cpus if text == "all" => Ok(Value::Cpus(None)),
        // A comma would end the parameter where the workload is named with its parameters.
        Kind::Cpus => (text.replace('/', ",").parse::<CpuMask>())
            .map(|mask| Value::Cpus(Some(mask)))
            .map_err(|error| error.to_string()),
    }
}

fn at_least(value: Result<u64, UnitError>, min: u64) -> Result<Value, String> {
    let value = value.map_err(|error| error.to_string())?;
    if value < min { Err("too small".into()) } else { Ok(Value::Number(value)) }
}

fn parse_count(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let value: u64 = text.parse().map_err(|_| "this is no whole number".to_string())?;
    if value < min {
        return Err("too small".into());
    }
    if value > max {
        return Err("too large".into());
    }
    Ok(value)
}

fn parse_nice(text: &str) -> Result<i8, String> {
    match text.trim().parse::<i8>() {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(nice),
        _ => Err(format!("{:?} is no nice value", text.chars().take(20).collect::<String>())),
    }
}
