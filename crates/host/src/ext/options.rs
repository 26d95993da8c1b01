// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a scheduler that are set before it is loaded: constants of its section .rodata.
//!
//! An option's declaration tag is `option|RANGE|ALIAS|TEXT`; RANGE is `LEAST..MOST` or
//! `choice:a,b,c` (the constant is the index). A name that ends in `_ns` is a time. On the command
//! line the option `slice_ns` is `slice=50ms`, `slice_ms=50`, `slice_us=50000` or
//! `slice_ns=50000000`. Constants without a tag, in third-party schedulers, are plain integers, set
//! by their names.

use crate::error::HostError;
use schedlab_workload::units::{format_duration, parse_duration};

/// Units of times in names.
const UNITS: [(&str, u64); 4] =
    [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// The values that an option accepts.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// A time in ns.
    Time,
    /// An integer.
    Integer,
    /// One of these words; the value is its index.
    Choice(Vec<String>),
}

/// An option of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct OptionInfo {
    /// Name of the constant.
    pub name: String,
    /// Another name, without unit; empty if there is none.
    pub alias: String,
    /// The values that it accepts.
    pub kind: OptionKind,
    /// Least value; two's complement if [`Self::is_signed`].
    pub least: i128,
    /// Greatest value.
    pub most: i128,
    /// Default value.
    pub default: i128,
    /// What it does; empty if the object does not describe it.
    pub text: String,
    /// Offset in the section .rodata.
    #[serde(skip)]
    pub offset: usize,
    /// Size in bytes: 1, 2, 4 or 8.
    #[serde(skip)]
    pub size: usize,
}

/// Place of a constant, and its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Offset in the section .rodata.
    pub offset: usize,
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: usize,
    /// Whether it is a signed integer.
    pub is_signed: bool,
    /// Whether it is a _Bool.
    pub is_bool: bool,
}

impl Place {
    fn bounds(self) -> (i128, i128) {
        let bits = 8 * self.size as u32;
        match (self.is_bool, self.is_signed) {
            (true, _) => (0, 1),
            (false, true) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (false, false) => (0, (1 << bits) - 1),
        }
    }

    /// Writes `value` into `section`.
    pub fn write(self, section: &mut [u8], value: i128) {
        if let Some(place) = section.get_mut(self.offset..self.offset.saturating_add(self.size)) {
            place.copy_from_slice(&value.to_le_bytes()[..self.size]);
        }
    }

    /// Its value in `section`; `None` if it is not within it.
    pub fn read(self, section: &[u8]) -> Option<i128> {
        let bytes = section.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut word = [0; 8];
        word.get_mut(..self.size)?.copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let unused = 64 - 8 * self.size as u32;
        Some(if self.is_signed {
            i128::from((value << unused) as i64 >> unused)
        } else {
            i128::from(value)
        })
    }
}

fn amount(text: &str) -> Option<i128> {
    let text = text.trim();
    text.parse().ok().or_else(|| parse_duration(text).ok().map(i128::from))
}

impl OptionInfo {
    /// The option called `name` at `place`, with the text of its tag if it has one.
    ///
    /// # Errors
    /// The tag does not have the required form, or its default is outside of its range.
    pub fn new(
        name: &str,
        place: Place,
        section: &[u8],
        tag: Option<&str>,
    ) -> Result<Self, String> {
        let default = place.read(section).ok_or("lies outside of its section")?;
        let (least, most) = place.bounds();
        let kind = if name.ends_with("_ns") { OptionKind::Time } else { OptionKind::Integer };
        let mut option = Self {
            name: name.into(),
            alias: String::new(),
            kind,
            least,
            most,
            default,
            text: String::new(),
            offset: place.offset,
            size: place.size,
        };
        let Some(tag) = tag else { return Ok(option) };
        let parts: Vec<&str> = tag.splitn(4, '|').collect();
        let &["option", range, alias, text] = parts.as_slice() else {
            return Err(format!("its tag {tag:?} is not option|RANGE|ALIAS|TEXT"));
        };
        (option.alias, option.text) = (alias.into(), text.into());
        if let Some(words) = range.strip_prefix("choice:") {
            let words: Vec<String> = words.split(',').map(|word| word.trim().into()).collect();
            (option.least, option.most) = (0, words.len() as i128 - 1);
            option.kind = OptionKind::Choice(words);
        } else {
            let ends = range
                .split_once("..")
                .and_then(|(least, most)| Some((amount(least)?, amount(most)?)));
            let (least, most) =
                ends.ok_or_else(|| format!("its range {range:?} is not LEAST..MOST"))?;
            (option.least, option.most) = (least.max(option.least), most.min(option.most));
        }
        if !(option.least..=option.most).contains(&default) {
            return Err(format!("its default {default} lies outside of {range}"));
        }
        Ok(option)
    }

    /// Whether `key` means this option, and the unit in `key` (ns).
    fn is_named(&self, key: &str) -> Option<Option<u64>> {
        let base = match self.kind {
            OptionKind::Time => self.name.strip_suffix("_ns").unwrap_or(&self.name),
            _ => &self.name,
        };
        let is_base = |text: &str| text == base || (!self.alias.is_empty() && text == self.alias);
        if is_base(key) {
            return Some(None);
        }
        if self.kind != OptionKind::Time {
            return None;
        }
        UNITS
            .iter()
            .find(|(unit, _)| key.strip_suffix(unit).is_some_and(is_base))
            .map(|(_, ns)| Some(*ns))
    }

    /// Formats a value of this option.
    pub fn show(&self, value: i128) -> String {
        match &self.kind {
            OptionKind::Choice(words) => usize::try_from(value)
                .ok()
                .and_then(|index| words.get(index).cloned())
                .unwrap_or_else(|| value.to_string()),
            OptionKind::Integer => value.to_string(),
            OptionKind::Time => {
                u64::try_from(value).map_or_else(|_| format!("{value}ns"), format_duration)
            }
        }
    }

    /// Describes the allowed values.
    pub fn range(&self) -> String {
        match &self.kind {
            OptionKind::Choice(words) => words.join(", "),
            _ => format!("{}..{}", self.show(self.least), self.show(self.most)),
        }
    }

    fn parse(&self, value: &str, unit: Option<u64>) -> Result<i128, String> {
        let value = value.trim();
        if let OptionKind::Choice(words) = &self.kind {
            let found = words.iter().position(|word| word == value);
            return found
                .map(|index| index as i128)
                .ok_or_else(|| format!("is none of {}", self.range()));
        }
        let number: Option<i128> = match value {
            "true" => Some(1),
            "false" => Some(0),
            _ => value.parse().ok(),
        };
        let parsed = match (&self.kind, unit, number) {
            (OptionKind::Time, Some(unit), Some(number)) => number.checked_mul(i128::from(unit)),
            (OptionKind::Time, None, Some(0)) => Some(0),
            (OptionKind::Time, None, Some(_)) => {
                return Err(format!("has no unit: write {value}ms, or {}_ms={value}", self.base()));
            }
            (OptionKind::Time, _, None) => parse_duration(value).ok().map(i128::from),
            (_, _, number) => number,
        };
        let parsed = parsed.ok_or_else(|| match self.kind {
            OptionKind::Time => "is no time such as 50ms".to_string(),
            _ => "is no whole number".to_string(),
        })?;
        if (self.least..=self.most).contains(&parsed) {
            Ok(parsed)
        } else {
            Err(format!("is outside of {}", self.range()))
        }
    }

    fn base(&self) -> &str {
        self.name.strip_suffix("_ns").unwrap_or(&self.name)
    }

    /// Writes `value` into the section.
    fn write(&self, section: &mut [u8], value: i128) {
        let (offset, size) = (self.offset, self.size);
        Place { offset, size, is_signed: self.least < 0, is_bool: false }.write(section, value);
    }
}

/// Sets `settings` (name and value) in `section`.
///
/// # Errors
/// An unknown option, with a list of the known ones; a value that is not allowed.
pub(super) fn apply(
    options: &[OptionInfo],
    settings: &[(String, String)],
    section: &mut [u8],
    scheduler: &str,
) -> Result<(), HostError> {
    for (key, value) in settings {
        let found = options.iter().find_map(|option| Some((option, option.is_named(key)?)));
        let Some((option, unit)) = found else {
            return Err(HostError::Input(unknown(options, key, scheduler)));
        };
        let parsed = option.parse(value, unit).map_err(|why| {
            HostError::Input(format!(
                "option {key} of {scheduler}: {value:?} {why}; it takes {}, {} if not set",
                option.range(),
                option.show(option.default)
            ))
        })?;
        option.write(section, parsed);
    }
    Ok(())
}

fn unknown(options: &[OptionInfo], key: &str, scheduler: &str) -> String {
    if options.is_empty() {
        return format!("{scheduler} has no option {key:?}: it has none at all");
    }
    let known: Vec<String> = options
        .iter()
        .map(|option| match option.kind {
            OptionKind::Time => format!("{} ({})", option.base(), option.range()),
            _ => format!("{} ({})", option.name, option.range()),
        })
        .collect();
    format!("{scheduler} has no option {key:?}; it has {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice() -> OptionInfo {
        let place = Place { offset: 8, size: 8, is_signed: false, is_bool: false };
        let mut section = [0; 24];
        section[8..16].copy_from_slice(&20_000_000_u64.to_le_bytes());
        let tag = "option|100us..10s|quantum|longest stay";
        OptionInfo::new("slice_ns", place, &section, Some(tag)).unwrap()
    }

    fn set(key: &str, value: &str) -> Result<u64, String> {
        let mut section = [0; 24];
        apply(&[slice()], &[(key.into(), value.into())], &mut section, "rr")
            .map(|_| u64::from_le_bytes(section[8..16].try_into().unwrap()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn times_have_units_in_the_name_or_in_the_value() {
        for (key, value) in [
            ("slice_ms", "50"),
            ("slice_us", "50000"),
            ("slice_ns", "50000000"),
            ("slice", "50ms"),
            ("slice_ns", "50ms"),
            ("quantum", "50ms"),
            ("quantum_ms", "50"),
        ] {
            assert_eq!(set(key, value), Ok(50_000_000), "{key}={value}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_right() {
        let error = set("slice", "50").unwrap_err();
        assert!(error.contains("has no unit") && error.contains("slice_ms=50"), "{error}");
        let error = set("slice_ms", "20000").unwrap_err();
        assert!(error.contains("outside of 100us..10s") && error.contains("20ms"), "{error}");
        let error = set("slice_ms", "-1").unwrap_err();
        assert!(error.contains("outside of"), "{error}");
        let error = set("slize_ms", "50").unwrap_err();
        assert!(error.contains("slice (100us..10s)"), "{error}");
        assert!(set("slice", "soon").unwrap_err().contains("no time such as 50ms"));
        assert!(set("slice_ns", "99999999999999999999999999999999999999").is_err());
        assert!(set("slice_s", "170141183460469231731687303715884105727").is_err());
    }

    #[test]
    fn choices_are_words() {
        let place = Place { offset: 0, size: 4, is_signed: false, is_bool: false };
        let tag = Some("option|choice:design,as-built|kind|whose rules");
        let option = OptionInfo::new("variant", place, &[1, 0, 0, 0], tag).unwrap();
        assert_eq!(option.show(option.default), "as-built");
        let mut section = [9; 4];
        let options = [option];
        apply(&options, &[("variant".into(), "design".into())], &mut section, "x").unwrap();
        assert_eq!(section, [0; 4]);
        let error = apply(&options, &[("kind".into(), "1".into())], &mut section, "x").unwrap_err();
        assert!(error.to_string().contains("none of design, as-built"), "{error}");
    }

    #[test]
    fn untagged_constants_are_bounded_by_their_types() {
        let place = Place { offset: 0, size: 1, is_signed: false, is_bool: true };
        let fifo = OptionInfo::new("fifo_sched", place, &[0], None).unwrap();
        assert_eq!((fifo.least, fifo.most), (0, 1));
        assert_eq!(fifo.parse("true", None), Ok(1));
        assert!(fifo.parse("2", None).is_err());
        let place = Place { offset: 0, size: 4, is_signed: true, is_bool: false };
        let number = OptionInfo::new("level", place, &(-3_i32).to_le_bytes(), None).unwrap();
        assert_eq!(number.default, -3);
        let mut section = [0; 4];
        number.write(&mut section, -7);
        assert_eq!(i32::from_le_bytes(section), -7);
        assert!(number.parse("2147483648", None).is_err());
    }

    #[test]
    fn bad_tags_and_places_are_errors() {
        let place = Place { offset: 4, size: 8, is_signed: false, is_bool: false };
        assert!(OptionInfo::new("a", place, &[0; 8], None).is_err());
        let place = Place { offset: usize::MAX, ..place };
        assert!(OptionInfo::new("a", place, &[0; 8], None).is_err());
        let place = Place { offset: 0, ..place };
        for tag in ["option|1..2", "option|1-2||x", "option|5..9||x", "choice|a|b|c"] {
            assert!(OptionInfo::new("a", place, &[0; 8], Some(tag)).is_err(), "{tag}");
        }
    }
}
