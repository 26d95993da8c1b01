// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of a measure, and a macro that makes a set of measures from a list of
//! declarations.
//!
//! Each measure is declared once, next to the code that computes it: unit, formula, notes, source.
//! [`measures!`] takes a list of fields with their declarations. It makes the struct that is
//! printed as JSON, the function that computes it, and [`Measures::LIST`]. Names in TOML files,
//! tables, the JSON schema and docs/reference/measures.md come from that list.

use crate::Distribution;

/// Unit of a measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// A count.
    Count,
    /// Per second.
    PerSecond,
    /// A ratio or an index without a unit, in this range.
    Ratio(&'static str),
    /// True or false.
    Flag,
    /// A name, or a number that is not a count.
    Label,
    /// A [`Distribution`] of nanoseconds.
    Distribution,
}

impl Unit {
    /// Unit of a figure that a program prints, from the last part of the figure's name: `pass_ns`,
    /// `frames_per_s`, `nr_frames`. Names of measures follow the same rule.
    pub fn of_name(name: &str) -> Self {
        if name.split('_').any(|word| word == "ns") {
            Self::Ns
        } else if name.ends_with("_per_s") {
            Self::PerSecond
        } else if name.starts_with("nr_") || name.ends_with("_count") {
            Self::Count
        } else {
            Self::Ratio("")
        }
    }

    /// The unit in files: `ns`, `count`, `1/s`, or `1` for a plain number.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Count => "count",
            Self::PerSecond => "1/s",
            Self::Ratio(_) | Self::Flag | Self::Label | Self::Distribution => "1",
        }
    }

    /// The unit in documentation.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Ratio(range) => range,
            Self::Flag => "true, false",
            Self::Label => "-",
            Self::Distribution => "distribution",
            Self::Ns | Self::Count | Self::PerSecond => self.symbol(),
        }
    }
}

/// A value of a measure. Whole numbers are exact.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Real(f64),
}

impl Number {
    /// The nearest `f64`.
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    /// The value in millionths, rounded: 0.7399999996 is 0.74.
    pub fn millionths(self) -> i128 {
        match self {
            Self::Whole(whole) => whole * 1_000_000,
            Self::Real(real) => (real * 1e6).round() as i128,
        }
    }
}

/// The value of a field in a set of measures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reading {
    /// A number; `None`: the run or the task has none.
    Number(Option<Number>),
    /// Several numbers.
    Distribution(Distribution),
    /// A word or a flag.
    Word,
}

/// A type that a field in a set of measures may have.
pub(crate) trait Field {
    fn reading(&self) -> Reading;
}

macro_rules! fields {
    ($($type:ty => |$value:ident| $reading:expr;)*) => {
        $(impl Field for $type {
            fn reading(&self) -> Reading {
                let $value = self;
                $reading
            }
        })*
    };
}

fields! {
    u32 => |value| Reading::Number(Some(Number::Whole(i128::from(*value))));
    u64 => |value| Reading::Number(Some(Number::Whole(i128::from(*value))));
    Option<u32> => |value| Reading::Number(value.map(|value| Number::Whole(i128::from(value))));
    Option<u64> => |value| Reading::Number(value.map(|value| Number::Whole(i128::from(value))));
    Option<i64> => |value| Reading::Number(value.map(|value| Number::Whole(i128::from(value))));
    Option<f64> => |value| Reading::Number(value.map(Number::Real));
    Distribution => |value| Reading::Distribution(*value);
    String => |_value| Reading::Word;
    bool => |_value| Reading::Word;
}

/// The declaration of a measure without its name, which is the name of the field.
#[derive(Clone, Copy, Debug)]
pub struct Measure<V> {
    /// Unit.
    pub unit: Unit,
    /// How it is computed, in terms of other measures or of events.
    pub formula: &'static str,
    /// When it is absent, and what it is not.
    pub notes: &'static str,
    /// Origin of the definition: a book, a paper, a file of the kernel.
    pub source: &'static str,
    /// The function that computes it; `()` if the lane sets it.
    pub value: V,
}

/// A measure in a list, with its name.
#[derive(Clone, Copy, Debug)]
pub struct Declared<S> {
    /// Name, in JSON and in every file. For a distribution it is the first part of its numbers'
    /// names.
    pub name: &'static str,
    /// Meaning, in a sentence. Each line begins with a blank.
    pub meaning: &'static str,
    /// Unit.
    pub unit: Unit,
    /// How it is computed.
    pub formula: &'static str,
    /// When it is absent, and what it is not.
    pub notes: &'static str,
    /// Origin of the definition.
    pub source: &'static str,
    /// Reads it from a set of measures.
    pub read: fn(&S) -> Reading,
}

/// A set of measures that can be read by name.
pub trait Measures: Default + 'static {
    /// Every measure, in the order of the JSON.
    const LIST: &'static [Declared<Self>];

    /// Every number with its name and unit. Numbers of a distribution are called after it, as in
    /// `wait_ns_p99`. If a measure of the set has such a name itself, the number of the
    /// distribution is left out.
    fn numbers(&self) -> Vec<(String, Unit, Option<Number>)> {
        let mut numbers = Vec::new();
        for measure in Self::LIST {
            match (measure.read)(self) {
                Reading::Word => {}
                Reading::Number(number) => {
                    numbers.push((measure.name.into(), measure.unit, number));
                }
                Reading::Distribution(distribution) => {
                    let parts = distribution.numbers().into_iter();
                    let parts = parts.map(|(part, unit, number)| {
                        (format!("{}_{part}", measure.name), unit, number)
                    });
                    let is_own = |name: &str| Self::LIST.iter().any(|known| known.name == name);
                    numbers.extend(parts.filter(|(name, _, _)| !is_own(name)));
                }
            }
        }
        numbers
    }

    /// The number with this name. The outer `None`: the set has no such measure.
    fn number(&self, name: &str) -> Option<Option<Number>> {
        for measure in Self::LIST {
            let Some(rest) = name.strip_prefix(measure.name) else { continue };
            match (measure.read)(self) {
                Reading::Number(number) if rest.is_empty() => return Some(number),
                Reading::Distribution(distribution) => {
                    let part = rest.strip_prefix('_').and_then(|part| distribution.number(part));
                    if part.is_some() {
                        return part;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Names of all numbers.
    fn names() -> Vec<String> {
        Self::default().numbers().into_iter().map(|(name, _, _)| name).collect()
    }

    /// The unit of the measure with this name; `None`: the set has no such measure.
    fn unit(name: &str) -> Option<Unit> {
        Self::LIST.iter().find_map(|measure| {
            let rest = name.strip_prefix(measure.name)?;
            match measure.unit {
                unit if rest.is_empty() => Some(unit),
                Unit::Distribution => Distribution::unit(rest.strip_prefix('_')?),
                _ => None,
            }
        })
    }
}

/// Makes a set of measures from `field: type = declaration`. The doc comment is the meaning. With
/// `of FACTS` the declarations compute the set from these facts.
macro_rules! measures {
    ($(#[$head:meta])* $set:ident of $facts:ty {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $measure:expr,)*
    }) => {
        $crate::measure::measures! {
            $(#[$head])* $set { $($(#[doc = $meaning])+ $field: $type = $measure,)* }
        }

        impl $set {
            /// Computes every measure of the set.
            pub(crate) fn of(facts: &$facts) -> Self {
                Self { $($field: ($measure.value)(facts),)* }
            }
        }
    };
    ($(#[$head:meta])* $set:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $measure:expr,)*
    }) => {
        $(#[$head])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $set {
            $($(#[doc = $meaning])+ pub $field: $type,)*
        }

        impl $crate::measure::Measures for $set {
            const LIST: &'static [$crate::measure::Declared<Self>] = &[$(
                $crate::measure::Declared {
                    name: stringify!($field),
                    meaning: concat!($($meaning),+),
                    unit: $measure.unit,
                    formula: $measure.formula,
                    notes: $measure.notes,
                    source: $measure.source,
                    read: |of| $crate::measure::Field::reading(&of.$field),
                },
            )*];
        }
    };
}
pub(crate) use measures;
