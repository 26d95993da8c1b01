// SPDX-License-Identifier: MIT OR Apache-2.0
//! `expect`: the results that a workload expects, so that a file can be a test.
//!
//! This crate does not know the measures, so it checks only the form of their names.

use super::error::{Result, problem};
use super::json::{Members, kind_name, object, span, string};
use super::task::ReadTask;
use crate::units::parse_duration;
use jsonc_parser::ast::{Object, Value};
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{Comparison, Expectation, Subject};
use std::collections::BTreeMap;

/// Comparisons by their keys.
pub(crate) const COMPARISONS: [(&str, Comparison); 5] = [
    ("below", Comparison::Less),
    ("at_most", Comparison::AtMost),
    ("equal", Comparison::Equal),
    ("at_least", Comparison::AtLeast),
    ("above", Comparison::Greater),
];

/// Most expectations in a file.
const EXPECTATIONS_MAX: usize = 1_000;
/// Longest name of a measure.
const MEASURE_BYTES_MAX: usize = 64;
/// Decimal places of a value.
pub(crate) const DECIMALS: usize = 6;
/// Millionths of a unit.
pub(crate) const MILLION: i128 = 1_000_000;

/// Reads the list. `tasks` are the tasks of the file.
pub(crate) fn read(value: &Value, tasks: &[ReadTask]) -> Result<Vec<Expectation>> {
    let Value::Array(array) = value else {
        return super::json::wrong_kind(value, "expect", "an array of objects");
    };
    if array.elements.len() > EXPECTATIONS_MAX {
        return Err(problem(
            span(value),
            format!("`expect` has {} entries", array.elements.len()),
            format!("at most {EXPECTATIONS_MAX} are checked: leave some out"),
        ));
    }
    let names: BTreeMap<&str, u32> =
        tasks.iter().map(|task| (task.spec.name.as_str(), task.spec.instances)).collect();
    let mut expectations = Vec::new();
    for element in &array.elements {
        read_one(object(element, "expect")?, &names, &mut expectations)?;
    }
    Ok(expectations)
}

fn read_one(
    body: &Object,
    names: &BTreeMap<&str, u32>,
    expectations: &mut Vec<Expectation>,
) -> Result<()> {
    let mut keys = vec!["measure", "task"];
    keys.extend(COMPARISONS.map(|(key, _)| key));
    let mut members = Members::new(body, &keys, "expect")?;
    let Some(value) = members.take("measure") else {
        let help = "name one, such as \"measure\": \"turnaround_ns_mean\"; `schedlab list \
                    measures` shows all";
        return Err(problem(span(body), "an expectation without `measure`", help));
    };
    let measure = string(value, "measure")?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    if measure.is_empty() || measure.len() > MEASURE_BYTES_MAX || !measure.chars().all(allowed) {
        let help = "a measure has a name of lower-case letters, digits and `_`, such as \
                    \"run_delay_ns_p99\"; `schedlab list measures` shows all";
        return Err(problem(span(value), "this is no name of a measure", help));
    }
    let subject = match members.take("task") {
        None => Subject::Total,
        Some(value) => Subject::Task(task_name(value, names)?),
    };
    let before = expectations.len();
    for (key, comparison) in COMPARISONS {
        if let Some(member) = members.take_member(key) {
            expectations.push(Expectation {
                subject: subject.clone(),
                measure: measure.into(),
                comparison,
                value_millionths: millionths(&member.value, key)?,
            });
        }
    }
    if expectations.len() == before {
        let help = format!("give one of {}", list(COMPARISONS.map(|(key, _)| key)));
        return Err(problem(span(value), format!("nothing is expected of {measure:?}"), help));
    }
    Ok(())
}

/// A task by its description's name; or one instance or fork of it, as `name-k`.
fn task_name(value: &Value, names: &BTreeMap<&str, u32>) -> Result<String> {
    let name = string(value, "task")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_instance = name.rsplit_once('-').is_some_and(|(task, number)| {
        is_number(number) && names.get(task).is_some_and(|instances| *instances != 1)
    });
    if names.contains_key(name) || is_instance {
        return Ok(name.into());
    }
    let described = || names.keys().copied().take(20);
    Err(problem(
        span(value),
        format!("the task {name:?} is not described"),
        did_you_mean(name, described())
            + "described are "
            + &list(described())
            + "; an instance is called name-0, name-1, ...",
    ))
}

/// A decimal number, or a duration with a unit, which is a number of nanoseconds.
fn millionths(value: &Value, name: &str) -> Result<i128> {
    const FORMS: &str = "write a number with at most 6 decimal places such as 0.95, or a duration \
                         with a unit such as \"20ms\"";
    match value {
        Value::StringLit(literal) => match parse_duration(&literal.value) {
            Ok(ns) => Ok(i128::from(ns) * MILLION),
            Err(error) => Err(problem(span(value), format!("`{name}`: {error}"), FORMS)),
        },
        Value::NumberLit(literal) => decimal(literal.value).ok_or_else(|| {
            problem(span(value), format!("`{name}` is no number that can be compared"), FORMS)
        }),
        _ => Err(problem(span(value), format!("`{name}` is {}", kind_name(value)), FORMS)),
    }
}

/// A JSON number without an exponent, in millionths, exactly.
fn decimal(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DECIMALS || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = i128::from(whole.parse::<u64>().ok()?);
    let fraction: i128 = format!("{fraction:0<DECIMALS$}").parse().ok()?;
    Some(sign * (whole * MILLION + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal("0.95"), Some(950_000));
        assert_eq!(decimal("-1.5"), Some(-1_500_000));
        assert_eq!(decimal("3"), Some(3_000_000));
        assert_eq!(decimal("0.0000010"), Some(1));
        assert_eq!(decimal("18446744073709551615"), Some(i128::from(u64::MAX) * MILLION));
        for bad in ["0.0000001", "1e3", "18446744073709551616", "1.2.3", "", "-"] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }
}
