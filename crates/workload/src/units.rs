// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers with units, as people write them on a command line and in files: `100ms`, `64KiB`.
//!
//! A unit is required. rt-app counts in microseconds, the kernel in nanoseconds, studies in
//! milliseconds, so the meaning of a bare `100` would be a guess. Decimal fractions are exact: the
//! parser uses integers and refuses fractions of a nanosecond or a byte.

use schedlab_model::Nanos;
use std::fmt;

/// Longest accepted duration: 3,650 days. A sum of a few dozen such durations still fits in the 64
/// bits of a [`Nanos`], so lanes need not check each addition.
pub const DURATION_NS_MAX: Nanos = 3_650 * 86_400 * 1_000_000_000;

/// Largest amount of bytes of one transfer: 1 TiB.
pub const BYTES_MAX: u64 = 1 << 40;

/// Units of time: suffix and length in nanoseconds. Of equal units the first is printed.
const TIME_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of bytes: suffix and size.
const BYTE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("k", 1 << 10),
    ("M", 1 << 20),
];

/// Why a number with a unit cannot be read. The text names what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnitError {
    /// The text is empty.
    Empty {
        /// An example of a valid text.
        example: &'static str,
    },
    /// The text does not begin with a number.
    NotANumber {
        /// What was given.
        found: String,
        /// An example of a valid text.
        example: &'static str,
    },
    /// A number below zero.
    Negative {
        /// What was given.
        found: String,
    },
    /// The number has no unit.
    NoUnit {
        /// What was given.
        found: String,
        /// The same number with several units.
        examples: String,
    },
    /// The unit is unknown.
    UnknownUnit {
        /// The unit that was given.
        unit: String,
        /// The units that are known.
        allowed: String,
    },
    /// A fraction of the smallest unit.
    TooFine {
        /// What was given.
        found: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// More than the greatest accepted value.
    TooLarge {
        /// What was given.
        found: String,
        /// The greatest accepted value.
        max: String,
    },
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { example } => {
                write!(f, "nothing given: write a number with a unit, such as {example}")
            }
            Self::NotANumber { found, example } => {
                write!(f, "{found:?} is no number with a unit: write it like {example}")
            }
            Self::Negative { found } => write!(f, "{found:?} is negative: allowed are 0 and more"),
            Self::NoUnit { found, examples } => {
                write!(f, "{found:?} has no unit: write {examples}")
            }
            Self::UnknownUnit { unit, allowed } => {
                write!(f, "unit {unit:?} is not known: allowed are {allowed}")
            }
            Self::TooFine { found, smallest } => {
                write!(f, "{found:?} is finer than 1 {smallest}: drop the last digits")
            }
            Self::TooLarge { found, max } => write!(f, "{found:?} is too large: at most {max}"),
        }
    }
}

impl std::error::Error for UnitError {}

/// A kind of quantity: its units, its limits, and how it is printed.
struct Quantity {
    units: &'static [(&'static str, u64)],
    /// Unit of an integer without a unit, if one is accepted.
    bare: Option<u64>,
    max: u64,
    max_text: &'static str,
    allowed: &'static str,
    example: &'static str,
}

const TIME: Quantity = Quantity {
    units: &TIME_UNITS,
    bare: None,
    max: DURATION_NS_MAX,
    max_text: "3650 days (87600h)",
    allowed: "ns, us, ms, s, min, h",
    example: "100ms, 1.5s or 250us",
};

const BYTES: Quantity = Quantity {
    units: &BYTE_UNITS,
    bare: Some(1),
    max: BYTES_MAX,
    max_text: "1024GiB",
    allowed: "B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024), k, M (KiB, MiB)",
    example: "512, 4KiB or 1MiB",
};

/// Reads a duration: a decimal number and one of `ns us ms s min h`, such as `100ms` or `1.5s`.
///
/// A bare integer is refused, because its unit would be a guess.
pub fn parse_duration(text: &str) -> Result<Nanos, UnitError> {
    TIME.parse(text)
}

/// Reads a number of bytes: `512`, `4KiB`, `1.5MB`. A bare integer is bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    BYTES.parse(text)
}

impl Quantity {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UnitError::Empty { example: self.example });
        }
        let found = || shorten(text);
        if let Some(rest) = text.strip_prefix('-') {
            return Err(if rest.starts_with(|c: char| c.is_ascii_digit()) {
                UnitError::Negative { found: found() }
            } else {
                UnitError::NotANumber { found: found(), example: self.example }
            });
        }
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim_start();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: String = whole.chars().filter(|&c| c != '_').collect();
        if whole.is_empty()
            || !fraction.chars().all(|c| c.is_ascii_digit())
            || (number.contains('.') && fraction.is_empty())
        {
            return Err(UnitError::NotANumber { found: found(), example: self.example });
        }
        let size = self.unit_size(text, number, unit)?;
        let too_large = || UnitError::TooLarge { found: found(), max: self.max_text.into() };
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let value = u128::from(whole) * u128::from(size) + self.fraction(text, fraction, size)?;
        match u64::try_from(value) {
            Ok(value) if value <= self.max => Ok(value),
            _ => Err(too_large()),
        }
    }

    fn unit_size(&self, text: &str, number: &str, unit: &str) -> Result<u64, UnitError> {
        if unit.is_empty() {
            return self.bare.ok_or_else(|| UnitError::NoUnit {
                found: shorten(text),
                examples: ["ms", "us", "s"].map(|unit| shorten(number) + unit).join(", ")
                    + " or another unit (ns, min, h)",
            });
        }
        self.units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size).ok_or_else(|| {
            UnitError::UnknownUnit { unit: shorten(unit), allowed: self.allowed.into() }
        })
    }

    /// The part after the decimal point, in the smallest unit.
    fn fraction(&self, text: &str, fraction: &str, size: u64) -> Result<u128, UnitError> {
        let digits = fraction.trim_end_matches('0');
        // 10^19 fits in 64 bits; no unit has that many decimal places.
        let scale = u32::try_from(digits.len()).ok().and_then(|n| 10u64.checked_pow(n));
        let too_fine = || UnitError::TooFine { found: shorten(text), smallest: self.units[0].0 };
        let scale = u128::from(scale.ok_or_else(too_fine)?);
        let numerator: u128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| too_fine())? };
        let product = numerator * u128::from(size);
        if product.is_multiple_of(scale) { Ok(product / scale) } else { Err(too_fine()) }
    }
}

/// Shortens the text to 40 characters, because errors repeat only a part of hostile input.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.into();
    }
    text.chars().take(37).chain("...".chars()).collect()
}

/// Prints a duration so that [`parse_duration`] reads the same value: in the largest unit that
/// makes it a whole number, `1500us` and not `1.5ms`.
pub fn format_duration(ns: Nanos) -> String {
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns != 0 && ns.is_multiple_of(size) {
            return format!("{}{unit}", ns / size);
        }
    }
    format!("{ns}ns")
}

/// Prints a number of bytes so that [`parse_bytes`] reads the same value: `4KiB`, `512`.
pub fn format_bytes(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wrap;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        wrap(&parse_duration(text).unwrap_err().to_string())
    }

    #[test]
    fn durations_are_exact() {
        assert_eq!(parse_duration("100ms"), Ok(100_000_000));
        assert_eq!(parse_duration(" 1.5 s "), Ok(1_500_000_000));
        assert_eq!(parse_duration("250us"), Ok(250_000));
        assert_eq!(parse_duration("250\u{b5}s"), Ok(250_000));
        assert_eq!(parse_duration("10ns"), Ok(10));
        assert_eq!(parse_duration("0.001us"), Ok(1));
        assert_eq!(parse_duration("1_000ms"), Ok(1_000_000_000));
        assert_eq!(parse_duration("2min"), Ok(120_000_000_000));
        assert_eq!(parse_duration("87600h"), Ok(DURATION_NS_MAX));
        // 0.1 has no binary fraction; decimal arithmetic gives it exactly.
        assert_eq!(parse_duration("0.1s"), Ok(100_000_000));
        assert_eq!(parse_duration("1.0000000000000000000000000s"), Ok(1_000_000_000));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let huge = "99999999999999999999s";
        let texts = ["100", "", "-5ms", "fast", "5MS", "0.1ns", "87601h", huge, "1.2.3s"];
        insta::assert_snapshot!(texts.map(error).join("\n"), @r#"
        "100" has no unit: write 100ms, 100us, 100s or another unit (ns, min, h)
        nothing given: write a number with a unit, such as 100ms, 1.5s or 250us
        "-5ms" is negative: allowed are 0 and more
        "fast" is no number with a unit: write it like 100ms, 1.5s or 250us
        unit "MS" is not known: allowed are ns, us, ms, s, min, h
        "0.1ns" is finer than 1 ns: drop the last digits
        "87601h" is too large: at most 3650 days (87600h)
        "99999999999999999999s" is too large: at most 3650 days (87600h)
        "1.2.3s" is no number with a unit: write it like 100ms, 1.5s or 250us
        "#);
        insta::assert_snapshot!(wrap(&parse_bytes("4GB2").unwrap_err().to_string()), @r#"
        unit "GB2" is not known: allowed are B, kB, MB, GB (powers of 1000), KiB, MiB, GiB
        (powers of 1024), k, M (KiB, MiB)
        "#);
    }

    #[test]
    fn bytes_know_both_families_of_units() {
        assert_eq!(parse_bytes("512"), Ok(512));
        assert_eq!(parse_bytes("4KiB"), Ok(4096));
        assert_eq!(parse_bytes("4kB"), Ok(4000));
        assert_eq!(parse_bytes("1.5MiB"), Ok(3 << 19));
        assert_eq!(format_bytes(4096), "4KiB");
        assert_eq!(format_bytes(1000), "1000");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ns in 0..=DURATION_NS_MAX, bytes in 0..=BYTES_MAX) {
            prop_assert_eq!(parse_duration(&format_duration(ns)), Ok(ns));
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}", number in "[0-9._-]{0,50}", unit in "[a-z]{0,3}") {
            for text in [text, number + &unit] {
                let _ = parse_duration(&text).map_err(|error| error.to_string());
                let _ = parse_bytes(&text).map_err(|error| error.to_string());
            }
        }
    }
}
