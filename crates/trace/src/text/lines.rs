// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the lines of a stream in a fixed amount of memory.
//!
//! A line is returned without its end (`\n` or `\r\n`). A last line without an end is returned too
//! and marked, because a file that was cut off ends so. A line longer than [`LINE_MAX`] is an
//! error: no tool writes one, and the search for its end must not fill the memory.

use std::io::{ErrorKind, Read};

/// Longest line in bytes. The longest that the kernel prints has about 1,100 (one page of a
/// `trace_seq` is the bound, kernel/trace/trace_seq.c).
pub const LINE_MAX: usize = 1 << 16;
/// Bytes read at a time; room for two of the longest lines.
const BUFFER: usize = 2 * LINE_MAX;

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[start..stop]`.
    start: usize,
    stop: usize,
    is_at_end: bool,
    /// Number of the last line returned, from 1.
    number: u64,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line<'a> {
    /// Its bytes without its end.
    pub text: &'a [u8],
    /// Its number, from 1.
    pub number: u64,
    /// Whether it is the last one and has no end.
    pub is_cut_off: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `source`. It buffers, so pass the file itself.
    pub fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER], start: 0, stop: 0, is_at_end: false, number: 0 }
    }

    /// Number of the last line returned, from 1; 0 before the first.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, String> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start + searched..self.stop];
            if let Some(length) = memchr::memchr(b'\n', unread) {
                let (from, to) = (self.start, self.start + searched + length);
                self.start = to + 1;
                self.number += 1;
                return Ok(Some(self.line(from, to, false)));
            }
            searched = self.stop - self.start;
            if searched > LINE_MAX {
                self.number += 1;
                return Err(format!(
                    "the line has more than {LINE_MAX} bytes, the most that is allowed: this is no \
                     text of a trace"
                ));
            }
            if self.is_at_end {
                return Ok(self.last());
            }
            self.refill()?;
        }
    }

    /// The text after the last line end.
    fn last(&mut self) -> Option<Line<'_>> {
        if self.start == self.stop {
            return None;
        }
        let from = std::mem::replace(&mut self.start, self.stop);
        self.number += 1;
        Some(self.line(from, self.stop, true))
    }

    fn line(&self, from: usize, to: usize, is_cut_off: bool) -> Line<'_> {
        let text = &self.buffer[from..to];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Line { text, number: self.number, is_cut_off }
    }

    fn refill(&mut self) -> Result<(), String> {
        self.buffer.copy_within(self.start..self.stop, 0);
        self.stop -= self.start;
        self.start = 0;
        loop {
            match self.source.read(&mut self.buffer[self.stop..]) {
                Ok(0) => self.is_at_end = true,
                Ok(length) => self.stop += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("cannot read: {error}")),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time: every boundary is met.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Some((&first, rest)) = self.0.split_first() else { return Ok(0) };
            out[0] = first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn all(source: impl Read) -> (Vec<String>, bool) {
        let (mut lines, mut out, mut is_cut_off) = (Lines::new(source), Vec::new(), false);
        while let Some(line) = lines.next_line().unwrap() {
            out.push(String::from_utf8(line.text.to_vec()).unwrap());
            assert_eq!(line.number, out.len() as u64);
            is_cut_off = line.is_cut_off;
        }
        (out, is_cut_off)
    }

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        let text = b"one\r\n\ntwo\n three";
        let want = ["one", "", "two", " three"].map(String::from).to_vec();
        assert_eq!(all(&text[..]), (want.clone(), true));
        assert_eq!(all(Drip(text)), (want, true));
        assert_eq!(all(&b"a\n"[..]), (vec!["a".to_string()], false));
        assert_eq!(all(&b""[..]), (vec![], false));
    }

    #[test]
    fn a_line_without_end_is_refused_in_constant_memory() {
        let mut lines = Lines::new(std::io::repeat(b'x'));
        assert!(lines.next_line().unwrap_err().contains("65536"));
        assert_eq!(lines.buffer.len(), BUFFER);
        let long = [vec![b'y'; LINE_MAX], vec![b'\n']].concat();
        assert_eq!(all(&long[..]).0[0].len(), LINE_MAX);
    }
}
