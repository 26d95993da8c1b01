// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--bad`: a measure and a bound, in the terms of a workload's `expect`.

use schedlab_model::{Comparison, Expectation, Subject};
use schedlab_run::values;
use schedlab_workload::units;

/// Parses `run_delay_ns_p99>5ms`, or `TASK:wait_ns_max>5ms` for the tasks of one description.
pub fn parse(text: &str) -> Result<Expectation, String> {
    const FORM: &str = "allowed is MEASURE>VALUE with <, <=, ==, >= or >, such as nr_switches>100, \
                        or TASK:wait_ns_max>5ms";
    // The longer of two operators that begin alike is first.
    let mut signs = Comparison::ALL;
    signs.sort_by_key(|comparison| std::cmp::Reverse(comparison.sign().len()));
    let at = text.find(['<', '>', '=']).ok_or(FORM)?;
    let (left, right) = text.split_at(at);
    let comparison = signs.into_iter().find(|comparison| right.starts_with(comparison.sign()));
    let comparison = comparison.ok_or(FORM)?;
    let value = right[comparison.sign().len()..].trim();
    let (subject, measure) = match left.rsplit_once(':') {
        Some((task, measure)) => (Subject::Task(task.trim().to_owned()), measure.trim()),
        None => (Subject::Total, left.trim()),
    };
    if measure.is_empty() {
        return Err(FORM.into());
    }
    let is_time = values::is_time(&measure.replace('.', "_"));
    let value_millionths = match units::parse_duration(value) {
        Ok(ns) if is_time => i128::from(ns) * 1_000_000,
        _ => decimal(value).ok_or_else(|| match is_time {
            true => format!("{value:?} is no time, such as 5ms"),
            false => format!("{value:?} is no number"),
        })?,
    };
    Ok(Expectation { subject, measure: measure.to_owned(), comparison, value_millionths })
}

/// A decimal number in millionths, exactly.
fn decimal(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 18 || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    format!("{whole}{part:0<6}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_an_expectation() {
        let one = parse("run_delay_ns_p99>5ms").unwrap();
        assert_eq!(
            (one.comparison, one.value_millionths),
            (Comparison::Greater, 5_000_000_000_000)
        );
        assert_eq!((one.subject, one.measure.as_str()), (Subject::Total, "run_delay_ns_p99"));
        let one = parse("hog : cpu_share <= 0.25").unwrap();
        assert_eq!((one.comparison, one.value_millionths), (Comparison::AtMost, 250_000));
        assert_eq!(one.subject, Subject::Task("hog".into()));
        for bad in ["", "nr_switches", ">5", "nr_switches>x", "nr_switches=5", "a>-1", "a>1e400"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
