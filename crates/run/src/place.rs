// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of study files, and the places in the file that they are about.
//!
//! A mistake may show only when a study meets a machine: an axis that its workload does not have,
//! a scheduler that nobody knows. Whoever finds it names the path in the document
//! (`experiment`, 0, `axes`, `n`); [`StudyError::located`] looks up where in the text that stands.

use schedlab_workload::nearest;
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A step from a table to its value, or from an array to its element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Key of a table.
    Key(String),
    /// Index of an array.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.into())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Why a study cannot be read or planned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StudyError {
    /// What was found.
    pub text: String,
    /// What is allowed and what to do; may be empty.
    pub help: String,
    /// Where in the document, outermost step first.
    pub path: Vec<Step>,
    /// Where in the text (bytes), once that was looked up.
    pub span: Option<Range<usize>>,
}

impl StudyError {
    /// An error without a place.
    pub fn new(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self { text: text.into(), help: help.into(), ..Self::default() }
    }

    /// The same, below `step`: callers add their steps from the inside out.
    pub fn below(mut self, step: impl Into<Step>) -> Self {
        self.path.insert(0, step.into());
        self
    }

    /// The same, below several steps.
    pub fn at<const N: usize>(mut self, steps: [Step; N]) -> Self {
        self.path.splice(0..0, steps);
        self
    }

    /// The same, with its place in `text` looked up. The nearest place that exists counts.
    pub fn located(mut self, text: &str) -> Self {
        if self.span.is_none() && !self.path.is_empty() {
            self.span = find(text, &self.path);
        }
        self
    }

    /// Line and column (in characters), both from 1, of the place in `text`.
    pub fn position(&self, text: &str) -> Option<(usize, usize)> {
        let start = self.span.as_ref()?.start.min(text.len());
        let before = &text.as_bytes()[..start];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let head = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = before[head..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
        Some((line, column))
    }

    /// From the reader of TOML. An unknown key gets the nearest known one as a suggestion.
    pub(crate) fn from_toml(error: &toml::de::Error) -> Self {
        let message = error.message();
        let span = error.span();
        let Some(rest) = message.strip_prefix("unknown field ") else {
            return Self { text: message.trim_end().into(), span, ..Self::default() };
        };
        // "unknown field `a`, expected one of `b`, `c`": the words stand between backticks.
        let words: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let (found, known) = words.split_first().map_or(("", &[][..]), |(f, k)| (*f, k));
        let guess = nearest(found, known.iter().copied())
            .map_or_else(String::new, |word| format!(": did you mean `{word}`?"));
        Self {
            text: format!("no key is called `{found}` here{guess}"),
            help: format!("allowed are {}", known.join(", ")),
            span,
            ..Self::default()
        }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, ": {}", self.help) }
    }
}

impl std::error::Error for StudyError {}

/// Bytes of the deepest part of `path` that the document has.
fn find(text: &str, path: &[Step]) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let mut span = None;
    let mut steps = path.iter();
    let Step::Key(key) = steps.next()? else { return None };
    let mut value = table.get_ref().get(key.as_str())?;
    loop {
        span = Some(value.span()).or(span);
        let Some(step) = steps.next() else { return span };
        let next = match (value.get_ref(), step) {
            (DeValue::Table(table), Step::Key(key)) => table.get(key.as_str()),
            (DeValue::Array(array), Step::Index(index)) => array.get(*index),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[[x]]\nn = [1,\n  \"\u{e4}\", 22]\n[[x]]\nb = { c = 3 }\n";

    fn position(path: &[Step]) -> Option<(usize, usize)> {
        let error = StudyError { path: path.to_vec(), ..StudyError::default() }.located(TEXT);
        error.position(TEXT)
    }

    #[test]
    fn paths_lead_to_lines_and_columns() {
        assert_eq!(position(&["a".into()]), Some((1, 5)));
        assert_eq!(position(&["x".into(), 0.into(), "n".into(), 2.into()]), Some((4, 8)));
        assert_eq!(position(&["x".into(), 1.into(), "b".into(), "c".into()]), Some((6, 11)));
        // What does not exist is shown at what would hold it.
        let missing = position(&["x".into(), 0.into(), "zz".into()]).unwrap();
        assert_eq!(missing.0, 2);
        assert_eq!(position(&["zz".into()]), None);
    }
}
