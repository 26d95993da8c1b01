// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of study files, and their places in the file.
//!
//! An error may appear only when a study meets a machine: an axis that its workload does not have,
//! an unknown scheduler. The code that finds it names the path in the document (`experiment`, 0,
//! `axes`, `n`). The code that has the text then finds the place of that path.

use schedlab_model::suggest::{did_you_mean, nearest};
use std::fmt;
use std::ops::Range;

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
    /// Path in the document, outermost step first.
    pub path: Vec<Step>,
    /// Place in the text (bytes), after it was looked up.
    pub span: Option<Range<usize>>,
}

impl StudyError {
    /// An error without a place.
    pub fn new(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self { text: text.into(), help: help.into(), ..Self::default() }
    }

    /// Adds `step` in front of the path: callers add their steps from the inside out.
    pub fn below(mut self, step: impl Into<Step>) -> Self {
        self.path.insert(0, step.into());
        self
    }

    /// Adds several steps in front of the path.
    pub fn at<const N: usize>(mut self, steps: [Step; N]) -> Self {
        self.path.splice(0..0, steps);
        self
    }

    /// Line and column (in characters), both from 1, of the error's place in `text`.
    pub fn position(&self, text: &str) -> Option<(usize, usize)> {
        let start = self.span.as_ref()?.start.min(text.len());
        let before = &text.as_bytes()[..start];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let head = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = before[head..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
        Some((line, column))
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, ": {}", self.help) }
    }
}

impl std::error::Error for StudyError {}

/// An error about an unknown name. `what` is the kind of thing; the help lists the known names.
pub fn unknown<'a>(
    what: &str,
    found: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> StudyError {
    let guess = nearest(found, known.clone())
        .map_or_else(String::new, |word| format!(": did you mean `{word}`?"));
    StudyError::new(
        format!("no {what} is called {found:?} here{guess}"),
        format!("allowed are {}", known.collect::<Vec<_>>().join(", ")),
    )
}

/// `did you mean `x`? ` if a similar word is allowed, then the list of allowed words.
pub fn allowed_words(found: &str, allowed: &[&str]) -> String {
    let guess = did_you_mean(found, allowed.iter().copied());
    format!("{guess}allowed: {}", allowed.join(", "))
}
