// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds of a claim, fixed before the number is known: `1.9 .. 2.2`, `>= 0.95`, `<= 5ms`, `=
//! 10`.

use schedlab_workload::units;

/// A range of numbers that includes its ends, unless the text excludes them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Least number.
    low: f64,
    /// Greatest number.
    high: f64,
    /// Whether the range excludes its ends (`<`, `>`).
    is_open: bool,
}

/// How an interval relates to the bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lies {
    /// The whole interval is within the bounds.
    Within,
    /// The whole interval is outside, on one side.
    Outside,
    /// The interval contains an end of the bounds.
    Across,
}

impl Bounds {
    /// Parses bounds.
    pub fn parse(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed are A .. B, >= A, > A, <= B, < B, = A, each a number or a \
                               time with its unit";
        let wrong = || format!("`holds` is {text:?}: {ALLOWED}");
        let read = |part: &str| number(part).ok_or_else(wrong);
        let text = text.trim();
        let infinite = f64::INFINITY;
        let (low, high, is_open) = if let Some((low, high)) = text.split_once("..") {
            (read(low)?, read(high)?, false)
        } else if let Some(low) = text.strip_prefix(">=") {
            (read(low)?, infinite, false)
        } else if let Some(high) = text.strip_prefix("<=") {
            (-infinite, read(high)?, false)
        } else if let Some(low) = text.strip_prefix('>') {
            (read(low)?, infinite, true)
        } else if let Some(high) = text.strip_prefix('<') {
            (-infinite, read(high)?, true)
        } else if let Some(value) = text.strip_prefix('=') {
            (read(value)?, read(value)?, false)
        } else {
            return Err(wrong());
        };
        if low > high {
            return Err(format!("`holds` is {text:?}: the first number is the smaller one"));
        }
        Ok(Self { low, high, is_open })
    }

    /// The range from `-limit` to `limit`.
    pub const fn about_zero(limit: f64) -> Self {
        Self { low: -limit, high: limit, is_open: false }
    }

    /// How the interval from `low` to `high` relates to the bounds.
    pub fn lie(self, low: f64, high: f64) -> Lies {
        let (is_low_in, is_high_in) = (self.contains(low), self.contains(high));
        if is_low_in && is_high_in {
            Lies::Within
        } else if !is_low_in && !is_high_in && (high <= self.low || low >= self.high) {
            Lies::Outside
        } else {
            Lies::Across
        }
    }

    fn contains(self, value: f64) -> bool {
        if self.is_open {
            value > self.low && value < self.high
        } else {
            value >= self.low && value <= self.high
        }
    }
}

/// Parses a number, or a time as nanoseconds.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    units::parse_duration(text).ok().map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_lies_within_outside_or_across() {
        let lie = |bounds: &str, low, high| Bounds::parse(bounds).unwrap().lie(low, high);
        assert_eq!(lie("1.9 .. 2.2", 1.9, 2.2), Lies::Within);
        assert_eq!(lie("1.9 .. 2.2", 2.1, 2.3), Lies::Across);
        assert_eq!(lie("1.9 .. 2.2", 2.3, 2.4), Lies::Outside);
        assert_eq!(lie("1.9 .. 2.2", 1.0, 3.0), Lies::Across, "the bounds are in it");
        assert_eq!(lie(">= 5ms", 5e6, 5e6), Lies::Within);
        assert_eq!(lie("> 5ms", 5e6, 5e6), Lies::Outside);
        assert_eq!(lie("< -1", -2.0, -1.5), Lies::Within);
        assert_eq!(lie("= 10", 10.0, 10.0), Lies::Within);
        assert_eq!(lie("= 10", 9.0, 9.5), Lies::Outside);
    }

    #[test]
    fn bounds_that_are_none_are_refused() {
        for text in ["", "2", "~ 2", ">= x", "3 .. 2", ">= NaN", "1 .. inf", "5 parsec .. 6"] {
            let error = Bounds::parse(text).unwrap_err();
            assert!(error.contains("`holds` is"), "{text}: {error}");
        }
    }
}
