// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of a study file: what its parser refuses, and where in the text an error is.

use crate::LabError;
use schedlab_model::suggest::nearest;
use schedlab_run::StudyError;
use schedlab_run::place::Step;
use schedlab_workload::ReadError;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Adds the position in `text` to `error`. If the place does not exist, uses the nearest one that
/// does.
pub fn located(mut error: StudyError, text: &str) -> StudyError {
    if error.span.is_none() && !error.path.is_empty() {
        error.span = find(text, &error.path);
    }
    error
}

/// The error with file, line and column before it and the line itself below. `help` applies if the
/// error has no advice of its own.
pub fn placed(name: &str, text: &str, error: StudyError, help: &str) -> LabError {
    let error = located(error, text);
    let help = if error.help.is_empty() { help.into() } else { error.help.clone() };
    match error.span {
        Some(span) => ReadError::at(name, text, span, error.text, help).into(),
        None => LabError::refused(format!("{name}: {}", error.text), help),
    }
}

/// Converts an error of the TOML parser. An unknown key gets the nearest known one as a suggestion.
pub fn from_toml(error: &toml::de::Error) -> StudyError {
    let message = error.message();
    let span = error.span();
    let Some(rest) = message.strip_prefix("unknown field ") else {
        return StudyError { text: message.trim_end().into(), span, ..StudyError::default() };
    };
    // "unknown field `a`, expected one of `b`, `c`": the names are between backticks.
    let words: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let (found, known) = words.split_first().map_or(("", &[][..]), |(f, k)| (*f, k));
    let guess = nearest(found, known.iter().copied())
        .map_or_else(String::new, |word| format!(": did you mean `{word}`?"));
    StudyError {
        text: format!("no key is called `{found}` here{guess}"),
        help: format!("allowed are {}", known.join(", ")),
        span,
        ..StudyError::default()
    }
}

/// Byte range of the deepest part of `path` that the document has.
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
        let error = located(StudyError { path: path.to_vec(), ..StudyError::default() }, TEXT);
        error.position(TEXT)
    }

    #[test]
    fn paths_lead_to_lines_and_columns() {
        assert_eq!(position(&["a".into()]), Some((1, 5)));
        assert_eq!(position(&["x".into(), 0.into(), "n".into(), 2.into()]), Some((4, 8)));
        assert_eq!(position(&["x".into(), 1.into(), "b".into(), "c".into()]), Some((6, 11)));
        // An error about something missing points at its parent.
        let missing = position(&["x".into(), 0.into(), "zz".into()]).unwrap();
        assert_eq!(missing.0, 2);
        assert_eq!(position(&["zz".into()]), None);
    }
}
