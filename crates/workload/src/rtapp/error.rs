// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a workload file with their places, and warnings about members that have no effect.

use crate::WarningKind;
use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use std::fmt;
use std::ops::Range;

/// Bytes of a line that a snippet shows on each side of the error. A hostile file may be one line.
const SNIPPET_BYTES: usize = 120;

/// An error at a place of the file, without the file's name and text.
#[derive(Debug)]
pub(crate) struct Problem {
    pub span: Range<usize>,
    pub message: String,
    pub help: String,
}

pub(crate) type Result<T> = std::result::Result<T, Box<Problem>>;

/// Makes a [`Problem`]. `message` tells what was found; `help` what is allowed and what to do.
pub(crate) fn problem(
    span: Range<usize>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Box<Problem> {
    Box::new(Problem { span, message: message.into(), help: help.into() })
}

/// Why a file cannot be read as a workload: file, line, column, what was found, what to do, and a
/// snippet for reports (this is a [`miette::Diagnostic`]).
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ReadError {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found.
    pub message: String,
    /// What is allowed, and what to do.
    #[help]
    pub help: String,
    #[source_code]
    snippet: Snippet,
    #[label(collection)]
    labels: Vec<LabeledSpan>,
}

impl ReadError {
    /// Makes an error at `span` (bytes) of `text`. For readers of other formats too.
    pub fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Box<Self> {
        Self::new(file, text, Problem { span, message: message.into(), help: help.into() })
    }

    pub(crate) fn new(file: &str, text: &str, problem: Problem) -> Box<Self> {
        let (line, column) = position(text, problem.span.start);
        let snippet = Snippet::new(file, text, &problem.span);
        let end = problem.span.end.min(snippet.line_end).max(problem.span.start);
        let label =
            LabeledSpan::new(Some("here".into()), problem.span.start, end - problem.span.start);
        Box::new(Self {
            file: file.into(),
            line,
            column,
            message: problem.message,
            help: problem.help,
            snippet,
            labels: vec![label],
        })
    }
}

/// Line and column (in characters), both from 1, of a byte offset.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    // A byte that does not continue a character begins one.
    let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
    (line, column)
}

/// The lines around an error, made safe for a terminal. Keeps a few hundred bytes, not the file.
#[derive(Debug)]
struct Snippet {
    name: String,
    text: String,
    /// Offset of `text` in the file.
    offset: usize,
    /// Line of its first character, from 0.
    line: usize,
    /// Column of its first character, from 0.
    column: usize,
    /// Offset in the file of the end of the faulty line, or of the part that is shown.
    line_end: usize,
}

impl Snippet {
    fn new(name: &str, text: &str, span: &Range<usize>) -> Self {
        let at = span.start.min(text.len());
        let line_start = text[..at].rfind('\n').map_or(0, |found| found + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |found| at + found);
        let from = floor_char(text, line_start.max(at.saturating_sub(SNIPPET_BYTES)));
        let line_end = floor_char(text, line_end.min(at + SNIPPET_BYTES));
        // One line before, if the faulty one is shown from its start and both are short.
        let before = match line_start {
            0 => from,
            _ if from > line_start => from,
            _ => {
                let start = text[..line_start - 1].rfind('\n').map_or(0, |found| found + 1);
                if line_start - start <= SNIPPET_BYTES { start } else { from }
            }
        };
        let (line, column) = position(text, before);
        let shown = before..line_end;
        Self {
            name: name.into(),
            text: printable(&text[shown.clone()]),
            offset: shown.start,
            line: line - 1,
            column: column - 1,
            line_end,
        }
    }
}

impl SourceCode for Snippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> std::result::Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // Without context a report asks where the span begins, for its head line.
        let skipped = match lines_before + lines_after {
            0 => floor_char(&self.text, span.offset().saturating_sub(self.offset)),
            _ => 0,
        };
        let (before, shown) = self.text.split_at(skipped);
        let line = before.matches('\n').count();
        let column = match before.rfind('\n') {
            Some(at) => before[at + 1..].chars().count(),
            None => self.column + before.chars().count(),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            shown.as_bytes(),
            (self.offset + skipped, shown.len()).into(),
            self.line + line,
            column,
            shown.lines().count().max(1),
        )))
    }
}

fn floor_char(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Replaces characters that could control a terminal or reorder its text by `?`, as many as they
/// have bytes, so that offsets stay.
fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        let steers = (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if steers {
            clean.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            clean.push(c);
        }
    }
    clean
}

/// A member of the file that was accepted, but has no effect or an unexpected one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found, and its effect.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.line, self.column, self.text, self.kind.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("ab\nc\u{e4}d", 3), (2, 1));
        assert_eq!(position("ab\nc\u{e4}d", 6), (2, 3));
        assert_eq!(position("", 9), (1, 1));
    }

    #[test]
    fn snippets_are_short_and_safe() {
        let text = format!("{{\n{}\u{1b}[31m\u{202e}{}", "x".repeat(5000), "\u{e4}".repeat(5000));
        let snippet = Snippet::new("f", &text, &(5002..5003));
        assert!(snippet.text.len() <= 2 * SNIPPET_BYTES);
        assert!(!snippet.text.contains(['\u{1b}', '\u{202e}']), "{:?}", snippet.text);
        assert!(snippet.text.contains("?[31m???"));
    }
}
