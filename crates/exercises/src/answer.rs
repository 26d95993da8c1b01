// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers, and what counts as equal to them.

use schedlab_model::time::NSEC_PER_MSEC;
use serde::Serialize;

/// How far a time may be from the exact one: two decimal places of a millisecond.
const TIME_NS_OFF: i64 = 5_000;
/// How far a share may be from the simulated one, in hundredths of a per cent: slices are whole.
const SHARE_OFF: i64 = 100;

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A time in ns.
    Time(i64),
    /// A share in hundredths of a per cent.
    Share(i64),
    /// A whole number.
    Count(i64),
    /// Names of jobs in order; one name is an order of one.
    Names(Vec<String>),
    /// Yes or no.
    Yes(bool),
}

/// What is said of a given answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verdict {
    /// Whether it is right.
    pub right: bool,
    /// The right answer.
    pub answer: String,
    /// The digest of the sheet.
    pub digest: String,
}

impl Answer {
    /// The form that an answer must have.
    pub fn form(&self) -> &'static str {
        match self {
            Self::Time(_) => "a time in ms, to two decimal places",
            Self::Share(_) => "a share in per cent; 1 per cent more or less is right",
            Self::Count(_) => "a whole number",
            Self::Names(names) if names.len() == 1 => "the name of a job",
            Self::Names(_) => "names of jobs in order, separated by blanks",
            Self::Yes(_) => "yes or no",
        }
    }

    /// The answer as text.
    pub fn text(&self) -> String {
        match self {
            Self::Time(ns) => format!("{} ms", decimal(*ns, NSEC_PER_MSEC as i64)),
            Self::Share(share) => format!("{} %", decimal(*share, 100)),
            Self::Count(count) => count.to_string(),
            Self::Names(names) => names.join(" "),
            Self::Yes(true) => "yes".into(),
            Self::Yes(false) => "no".into(),
        }
    }

    /// Whether `given` is right.
    ///
    /// # Errors
    /// If it is not of the form of the answer.
    pub fn matches(&self, given: &str) -> Result<bool, String> {
        let given = given.trim();
        let wrong = || format!("the answer is {given:?}: give {}", self.form());
        Ok(match self {
            Self::Time(exact) => {
                let found = parsed(given.trim_end_matches("ms"), NSEC_PER_MSEC as i64);
                (found.ok_or_else(wrong)? - exact).abs() <= TIME_NS_OFF
            }
            Self::Share(exact) => {
                let found = parsed(given.trim_end_matches('%'), 100);
                (found.ok_or_else(wrong)? - exact).abs() <= SHARE_OFF
            }
            Self::Count(exact) => parsed(given, 1).ok_or_else(wrong)? == *exact,
            Self::Names(exact) => {
                let separates = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '>' | '-');
                let names: Vec<&str> =
                    given.split(separates).filter(|name| !name.is_empty()).collect();
                if names.is_empty() {
                    return Err(wrong());
                }
                names.len() == exact.len()
                    && names.iter().zip(exact).all(|(name, own)| name.eq_ignore_ascii_case(own))
            }
            Self::Yes(exact) => match given.to_ascii_lowercase().as_str() {
                "yes" | "y" => *exact,
                "no" | "n" => !*exact,
                _ => return Err(wrong()),
            },
        })
    }
}

/// `value` in units of `whole`, with up to three decimal places, the last one rounded.
fn decimal(value: i64, whole: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let thousandths =
        (i128::from(value.unsigned_abs()) * 1_000 + i128::from(whole) / 2) / i128::from(whole);
    let text = format!("{sign}{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A decimal number in units of `1 / whole`; `None`: it is no number, or too large.
fn parsed(text: &str, whole: i64) -> Option<i64> {
    let text = text.trim().replace('\u{2212}', "-").replace(',', ".");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.len() <= 12 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(before) || !is_number(after) || before.len() + after.len() == 0 {
        return None;
    }
    let whole = i128::from(whole);
    let mut value = before.parse::<i128>().unwrap_or(0) * whole;
    let mut scale = 1_i128;
    let mut part = 0_i128;
    for digit in after.bytes() {
        part = part * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    value += (part * whole + scale / 2) / scale;
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_equal_to_two_places() {
        let answer = Answer::Time(11_333_333);
        assert_eq!(answer.text(), "11.333 ms");
        for right in ["11.33", "11.333 ms", " 11,33ms", "11.3333333"] {
            assert_eq!(answer.matches(right), Ok(true), "{right}");
        }
        for wrong in ["11.3", "11.34", "-11.33", "0"] {
            assert_eq!(answer.matches(wrong), Ok(false), "{wrong}");
        }
        for bad in ["", "x", "1.2.3", "1e3", ".", "99999999999999"] {
            assert!(answer.matches(bad).unwrap_err().contains("to two decimal places"), "{bad}");
        }
        assert_eq!(Answer::Time(-1_500_000).matches("\u{2212}1.5"), Ok(true));
    }

    #[test]
    fn names_shares_and_words_are_compared() {
        let order = Answer::Names(vec!["A".into(), "B".into()]);
        assert_eq!((order.matches("a, b"), order.matches("b a")), (Ok(true), Ok(false)));
        assert_eq!(order.matches("A > B"), Ok(true));
        assert!(order.matches(" ").is_err());
        assert_eq!(Answer::Share(7_531).text(), "75.31 %");
        assert_eq!(Answer::Share(7_531).matches("75 %"), Ok(true));
        assert_eq!(Answer::Share(7_531).matches("77"), Ok(false));
        assert_eq!(
            (Answer::Yes(false).matches("No"), Answer::Count(3).matches("3")),
            (Ok(true), Ok(true))
        );
        assert!(Answer::Yes(true).matches("perhaps").is_err());
    }
}
