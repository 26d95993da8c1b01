// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for people: three or four significant digits, one unit per column, no false precision.

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeUnit {
    /// Symbol, such as `ms`.
    pub symbol: &'static str,
    /// Nanoseconds in one unit.
    pub ns: u64,
}

const UNITS: [TimeUnit; 4] = [
    TimeUnit { symbol: "s", ns: 1_000_000_000 },
    TimeUnit { symbol: "ms", ns: 1_000_000 },
    TimeUnit { symbol: "\u{b5}s", ns: 1_000 },
    TimeUnit { symbol: "ns", ns: 1 },
];

/// Milliseconds, the unit of S0's figures.
pub const MS: TimeUnit = UNITS[1];

/// The greatest unit in which `ns` is at least 1; ns for 0.
pub fn unit_for(ns: f64) -> TimeUnit {
    UNITS.iter().copied().find(|unit| ns >= unit.ns as f64).unwrap_or(UNITS[3])
}

/// One unit for a whole column or axis: the unit of its median, so that most values are readable.
pub fn unit_for_all(values: impl IntoIterator<Item = f64>) -> TimeUnit {
    let mut values: Vec<f64> = values.into_iter().filter(|v| *v > 0.0).collect();
    if values.is_empty() {
        return MS;
    }
    values.sort_by(f64::total_cmp);
    unit_for(values[values.len() / 2])
}

/// `value` with three significant digits, thousands separated by a thin space; no exponent.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "\u{2013}".to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 9) as usize;
    let text = format!("{:.*}", decimals, value.abs());
    let sign = if value < 0.0 { "\u{2212}" } else { "" };
    format!("{sign}{}", group_thousands(&text))
}

/// A count, thousands separated by a thin space.
pub fn count(value: u64) -> String {
    group_thousands(&value.to_string())
}

/// A duration with its unit: `203\u{a0}ms`.
pub fn duration(ns: f64) -> String {
    let unit = unit_for(ns);
    format!("{}\u{a0}{}", significant(ns / unit.ns as f64), unit.symbol)
}

/// A relative change as a signed percentage: `+3.1 %`.
pub fn percent_change(from: f64, to: f64) -> String {
    if from <= 0.0 {
        return "\u{2013}".to_string();
    }
    let change = (to / from - 1.0) * 100.0;
    let digits = if change.abs() < 10.0 { 1 } else { 0 };
    let text = format!("{:.*}", digits, change.abs());
    let zero = text.chars().all(|c| c == '0' || c == '.');
    let sign = if zero {
        ""
    } else if change < 0.0 {
        "\u{2212}"
    } else {
        "+"
    };
    format!("{sign}{text}\u{a0}%")
}

/// A number with `one` or `many` as its noun.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{}\u{a0}{}", count(n as u64), if n == 1 { one } else { many })
}

fn group_thousands(text: &str) -> String {
    let (whole, rest) = match text.find('.') {
        Some(dot) => text.split_at(dot),
        None => (text, ""),
    };
    if whole.len() < 5 {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (index, c) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_the_unit_in_which_they_read_well() {
        assert_eq!(duration(0.0), "0\u{a0}ns");
        assert_eq!(duration(999.0), "999\u{a0}ns");
        assert_eq!(duration(54_210.0), "54.2\u{a0}\u{b5}s");
        assert_eq!(duration(203_400_000.0), "203\u{a0}ms");
        assert_eq!(duration(1.0234e9), "1.02\u{a0}s");
    }

    #[test]
    fn big_numbers_are_grouped_and_negative_ones_keep_their_sign() {
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(count(9_999), "9999");
        assert_eq!(significant(-12_345.6), "\u{2212}12\u{2009}346");
        assert_eq!(significant(f64::NAN), "\u{2013}");
        assert_eq!(significant(0.001_234), "0.00123");
    }

    #[test]
    fn changes_are_signed() {
        assert_eq!(percent_change(100.0, 103.14), "+3.1\u{a0}%");
        assert_eq!(percent_change(100.0, 50.0), "\u{2212}50\u{a0}%");
        assert_eq!(percent_change(100.0, 100.0), "0.0\u{a0}%");
        assert_eq!(percent_change(0.0, 1.0), "\u{2013}");
    }

    #[test]
    fn a_column_takes_the_unit_of_its_median() {
        assert_eq!(unit_for_all([2e6, 5e6, 3e9]).symbol, "ms");
        assert_eq!(unit_for_all([]).symbol, "ms");
    }
}
