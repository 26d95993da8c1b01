// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON with comments, and typed access to it with errors that name the place.
//!
//! The parser is jsonc-parser: it keeps spans, key order and duplicate keys, skips C comments,
//! accepts trailing commas (rt-app's own examples have them) and bounds the nesting. Its other
//! leniencies (single quotes, hexadecimal, missing commas) are off.

use super::error::{Result, problem};
use crate::units::{self, BYTES_MAX, DURATION_NS_MAX};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use schedlab_model::{Amount, Nanos};
use std::ops::{Range, RangeInclusive};

/// Largest file (bytes): far more than people write, and few enough operations for 32-bit indices.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Parses the text.
pub(crate) fn parse(text: &str) -> Result<Value<'_>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(problem(
            0..0,
            format!("the file has {} bytes", text.len()),
            format!("a workload file has at most {TEXT_BYTES_MAX} bytes: split the workload"),
        ));
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => parsed.value.ok_or_else(|| {
            problem(0..0, "the file is empty", "write an object: { \"tasks\": { ... } }")
        }),
        Err(error) => {
            let range = error.range();
            let kind = error.kind();
            let mut message = kind.to_string();
            if let Some(first) = message.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            Err(problem(range.start..range.end, message, syntax_help(kind)))
        }
    }
}

fn syntax_help(kind: &ParseErrorKind) -> &'static str {
    match kind {
        ParseErrorKind::UnterminatedObject
        | ParseErrorKind::UnterminatedArray
        | ParseErrorKind::UnterminatedCommentBlock => {
            "the file ends too early: close what was opened, or check whether the file was cut off"
        }
        ParseErrorKind::ExpectedComma => "put a comma between two members",
        ParseErrorKind::ExpectedStringObjectProperty | ParseErrorKind::UnexpectedWord => {
            "keys and words stand in double quotes; only true, false and null do not"
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => "use double quotes",
        ParseErrorKind::NestingDepthExceeded => "nest less deeply",
        ParseErrorKind::MultipleRootJsonValues => "a file holds one object: remove what follows it",
        ParseErrorKind::String(_) => "close the string, and escape `\"` and `\\` with a backslash",
        _ => "the file is JSON; C comments and trailing commas are allowed",
    }
}

/// Place of a value in the text.
pub(crate) fn span(value: &impl Ranged) -> Range<usize> {
    let range = value.range();
    range.start..range.end
}

/// Place of a member's key in the text.
pub(crate) fn key_span(member: &ObjectProp) -> Range<usize> {
    span(&member.name)
}

/// The key of a member.
pub(crate) fn key<'v>(member: &'v ObjectProp) -> &'v str {
    member.name.as_str()
}

/// Kind of a value, for messages.
pub(crate) fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "null",
    }
}

/// How a message names a key. The file itself has no key.
fn shown(name: &str) -> String {
    if name.contains(' ') { name.into() } else { format!("`{name}`") }
}

/// An error for a value of the wrong kind.
pub(crate) fn wrong_kind<T>(value: &Value, name: &str, wanted: &str) -> Result<T> {
    Err(problem(
        span(value),
        format!("{} is {}", shown(name), kind_name(value)),
        format!("{} takes {wanted}", shown(name)),
    ))
}

/// The value as an object.
pub(crate) fn object<'v, 'a>(value: &'v Value<'a>, name: &str) -> Result<&'v Object<'a>> {
    match value {
        Value::Object(object) => Ok(object),
        _ => wrong_kind(value, name, "an object: { ... }"),
    }
}

/// The value as a string.
pub(crate) fn string<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    match value {
        Value::StringLit(literal) => Ok(&literal.value),
        _ => wrong_kind(value, name, "a string in double quotes"),
    }
}

/// The value as a whole number in `range`.
pub(crate) fn integer(value: &Value, name: &str, range: RangeInclusive<i64>) -> Result<i64> {
    let allowed =
        || format!("`{name}` takes a whole number from {} to {}", range.start(), range.end());
    let Value::NumberLit(literal) = value else {
        return Err(problem(span(value), format!("`{name}` is {}", kind_name(value)), allowed()));
    };
    if literal.value.contains(['.', 'e', 'E']) {
        return Err(problem(span(value), format!("`{name}` is no whole number"), allowed()));
    }
    match literal.value.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(problem(span(value), format!("`{name}` is out of range"), allowed())),
    }
}

const DURATION_FORMS: &str = "write microseconds as a whole number, or a string with a unit such \
                              as \"1500us\", \"1.5ms\" or \"250ns\"";

/// Reads a constant duration: whole microseconds, as in rt-app, or a string with a unit. `name` is
/// the key.
pub(crate) fn duration(value: &Value, name: &str) -> Result<Nanos> {
    match value {
        Value::NumberLit(literal) => {
            if literal.value.contains(['.', 'e', 'E']) {
                return Err(problem(
                    span(value),
                    format!("`{name}` is no whole number of microseconds"),
                    DURATION_FORMS,
                ));
            }
            if literal.value.starts_with('-') {
                return Err(problem(
                    span(value),
                    format!("`{name}` is negative"),
                    format!("a duration is 0 or more: {DURATION_FORMS}"),
                ));
            }
            let ns = literal.value.parse::<u64>().ok().and_then(|us| us.checked_mul(1_000));
            ns.filter(|ns| *ns <= DURATION_NS_MAX).ok_or_else(|| {
                problem(
                    span(value),
                    format!("`{name}` is too long"),
                    format!("a duration is at most {} us (3650 days)", DURATION_NS_MAX / 1_000),
                )
            })
        }
        Value::StringLit(literal) => units::parse_duration(&literal.value)
            .map_err(|error| problem(span(value), format!("`{name}`: {error}"), DURATION_FORMS)),
        _ => wrong_kind(value, name, &format!("a duration: {DURATION_FORMS}")),
    }
}

/// The value as a constant number of bytes.
pub(crate) fn bytes(value: &Value, name: &str) -> Result<u64> {
    match value {
        Value::StringLit(literal) => units::parse_bytes(&literal.value).map_err(|error| {
            let help = "write bytes as a whole number, or a string with a unit such as \"4KiB\"";
            problem(span(value), format!("`{name}`: {error}"), help)
        }),
        _ => integer(value, name, 0..=BYTES_MAX as i64).map(|bytes| bytes as u64),
    }
}

/// A duration, constant or drawn.
pub(crate) fn duration_amount(value: &Value, name: &str) -> Result<Amount> {
    amount(value, name, duration)
}

/// A number of bytes, constant or drawn.
pub(crate) fn byte_amount(value: &Value, name: &str) -> Result<Amount> {
    amount(value, name, bytes)
}

/// A count, constant or drawn.
pub(crate) fn count_amount(value: &Value, name: &str) -> Result<Amount> {
    amount(value, name, |value, name| integer(value, name, 0..=i64::MAX).map(|n| n as u64))
}

/// The value as true or false.
pub(crate) fn boolean(value: &Value, name: &str) -> Result<bool> {
    match value {
        Value::BooleanLit(literal) => Ok(literal.value),
        _ => wrong_kind(value, name, "true or false"),
    }
}

const DISTRIBUTIONS: &str = "{ \"distribution\": \"uniform\", \"low\": ..., \"high\": ... } or \
                             { \"distribution\": \"exponential\", \"mean\": ... }";

fn amount(value: &Value, name: &str, constant: fn(&Value, &str) -> Result<u64>) -> Result<Amount> {
    let Value::Object(object) = value else {
        return constant(value, name).map(Amount::Constant);
    };
    let mut members = Members::new(object, &["distribution", "low", "high", "mean"], name)?;
    let allowed = format!("a distribution is {DISTRIBUTIONS}");
    let mut take = |key: &str| {
        members.take(key).ok_or_else(|| {
            problem(span(object), format!("`{name}` has no `{key}`"), allowed.clone())
        })
    };
    let kind = take("distribution")?;
    match string(kind, "distribution")? {
        "uniform" => {
            let low = constant(take("low")?, "low")?;
            let high_value = take("high")?;
            let high = constant(high_value, "high")?;
            if low > high {
                return Err(problem(
                    span(high_value),
                    "`high` is below `low`",
                    "swap them: both ends belong to the range",
                ));
            }
            members.refuse_rest(name, &allowed)?;
            Ok(Amount::Uniform { low, high })
        }
        "exponential" => {
            let mean_value = take("mean")?;
            let mean = constant(mean_value, "mean")?;
            if mean == 0 {
                let help = "a mean of 0 draws nothing but 0: write 0 instead of the distribution";
                return Err(problem(span(mean_value), "`mean` is 0", help));
            }
            members.refuse_rest(name, &allowed)?;
            Ok(Amount::Exponential { mean })
        }
        other => {
            let known = ["uniform", "exponential"];
            let hint = schedlab_model::suggest::did_you_mean(other, known);
            Err(problem(
                span(kind),
                format!("distribution {other:?} is not known"),
                hint + &allowed,
            ))
        }
    }
}

/// The members of an object that has a fixed set of keys, each at most once.
pub(crate) struct Members<'v, 'a> {
    members: Vec<(&'v ObjectProp<'a>, bool)>,
}

impl<'v, 'a> Members<'v, 'a> {
    /// Refuses keys that are not `allowed`, and keys that occur twice. `name` is the object's name.
    pub fn new(object: &'v Object<'a>, allowed: &[&str], name: &str) -> Result<Self> {
        let mut members: Vec<(&ObjectProp, bool)> = Vec::new();
        for member in &object.properties {
            let found = key(member);
            if !allowed.contains(&found) {
                let hint = schedlab_model::suggest::did_you_mean(found, allowed.iter().copied());
                let allowed = schedlab_model::suggest::list(allowed.iter().copied());
                return Err(problem(
                    key_span(member),
                    format!("{} knows no key {found:?}", shown(name)),
                    format!("{hint}allowed are {allowed}"),
                ));
            }
            if members.iter().any(|(earlier, _)| key(earlier) == found) {
                return Err(twice(member));
            }
            members.push((member, false));
        }
        Ok(Self { members })
    }

    /// Returns the value of `key`, and marks it as used.
    pub fn take(&mut self, wanted: &str) -> Option<&'v Value<'a>> {
        let (member, taken) = self.members.iter_mut().find(|(member, _)| key(member) == wanted)?;
        *taken = true;
        Some(&member.value)
    }

    /// Returns the member of `key` with its place, and marks it as used.
    pub fn take_member(&mut self, wanted: &str) -> Option<&'v ObjectProp<'a>> {
        let (member, taken) = self.members.iter_mut().find(|(member, _)| key(member) == wanted)?;
        *taken = true;
        Some(member)
    }

    /// Refuses keys that were not used.
    fn refuse_rest(&self, name: &str, help: &str) -> Result<()> {
        match self.members.iter().find(|(_, taken)| !taken) {
            None => Ok(()),
            Some((member, _)) => Err(problem(
                key_span(member),
                format!("`{name}`: {:?} does not belong to this distribution", key(member)),
                help,
            )),
        }
    }
}

/// An error for a key that may occur only once.
pub(crate) fn twice(member: &ObjectProp) -> Box<super::error::Problem> {
    problem(
        key_span(member),
        format!("`{}` stands here for the second time", key(member)),
        "only events may be repeated: keep one of the two",
    )
}
