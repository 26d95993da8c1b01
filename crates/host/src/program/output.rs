// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of programs, kept in memory: a file without a name (memfd_create(2)) that is their
//! standard output and error.
//!
//! Its length is fixed and sealed. A program that prints more gets an error (EPERM) and cannot fill
//! the memory. Pages without data take no memory. All processes that inherit the descriptor share
//! its offset, which is therefore the number of bytes printed.

use crate::sys;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Most bytes that are kept.
pub const OUTPUT_MAX: u64 = 16 << 20;
/// Lines that a message about a failed program shows.
const LINES_SHOWN: usize = 6;
/// Longest line that such a message shows, in characters.
const LINE_MAX: usize = 200;

/// The output of one or more programs.
#[derive(Debug)]
pub struct OutputFile(File);

impl OutputFile {
    /// An empty output.
    pub fn new() -> io::Result<Self> {
        sys::sealed_file(c"schedlab-output", OUTPUT_MAX).map(Self)
    }

    /// The descriptor to write to.
    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Bytes printed so far.
    pub fn len(&self) -> u64 {
        let mut file = &self.0;
        file.stream_position().unwrap_or(0).min(OUTPUT_MAX)
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the output did not fit.
    pub fn is_full(&self) -> bool {
        self.len() == OUTPUT_MAX
    }

    /// The output after the first `from` bytes.
    pub fn text(&self, from: u64) -> String {
        let mut bytes = vec![0; self.len().saturating_sub(from) as usize];
        match self.0.read_exact_at(&mut bytes, from) {
            Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    }

    /// The last lines after the first `from` bytes, for a message. Control characters are escaped,
    /// because a terminal may show them.
    pub fn last_lines(&self, from: u64) -> String {
        let text = self.text(from);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].iter().map(|line| {
            let begin: String = line.trim_end().chars().take(LINE_MAX).collect();
            begin.chars().flat_map(shown).collect::<String>()
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "it printed nothing".into() } else { shown.join(" | ") }
    }

    /// Adds a line of the lane itself.
    pub fn note(&self, line: &str) {
        // A note that does not fit is left out; the exit code shows the failure too.
        let _ = writeln!(&self.0, "{line}");
    }
}

fn shown(sign: char) -> Vec<char> {
    match sign {
        '\t' => vec![' '],
        sign if sign.is_control() => sign.escape_default().collect(),
        sign => vec![sign],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_and_has_an_end() {
        let output = OutputFile::new().unwrap();
        assert!(output.is_empty());
        output.note("one");
        let from = output.len();
        output.note("two \u{1b}[31m");
        assert_eq!((output.text(0).as_str(), from), ("one\ntwo \u{1b}[31m\n", 4));
        assert_eq!(output.last_lines(from), "two \\u{1b}[31m");
        assert_eq!(output.last_lines(output.len()), "it printed nothing");
        let mut file = &output.0;
        let many = vec![b'x'; OUTPUT_MAX as usize];
        assert!(file.write_all(&many).is_err(), "there is no room for all of it");
        assert!(output.is_full());
    }
}
