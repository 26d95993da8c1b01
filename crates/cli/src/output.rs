// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of the program: data on stdout, messages on stderr.

use crate::error::CliResult;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};

/// Escapes everything in `text` that a terminal would obey, as `\u{1b}`: control characters other
/// than newlines and tabs, and marks that change the writing direction, which can disguise a name.
/// Names come from untrusted files.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_obeyed(c) {
            true => output.extend(c.escape_unicode()),
            false => output.push(c),
        }
    }
    Cow::Owned(output)
}

/// Standard output, buffered. If the reader closes the pipe, the program ends without an error.
pub struct Out {
    writer: BufWriter<io::Stdout>,
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Self {
        Self { writer: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    /// Writes the rest of the buffer.
    pub fn finish(mut self) -> CliResult<()> {
        self.finish_now()
    }

    /// Writes the rest of the buffer before a message goes to stderr.
    pub fn finish_now(&mut self) -> CliResult<()> {
        Ok(self.writer.flush()?)
    }

    /// Writes `text`, escaped by [`printable`], and a newline.
    pub fn line(&mut self, text: impl AsRef<str>) -> CliResult<()> {
        self.writer.write_all(printable(text.as_ref()).as_bytes())?;
        Ok(self.writer.write_all(b"\n")?)
    }

    /// Writes `value` as JSON over several lines.
    pub fn json(&mut self, value: &impl serde::Serialize) -> CliResult<()> {
        serde_json::to_writer_pretty(&mut self.writer, value).map_err(io::Error::from)?;
        Ok(self.writer.write_all(b"\n")?)
    }

    /// Writes `value` as JSON on one line.
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> CliResult<()> {
        serde_json::to_writer(&mut self.writer, value).map_err(io::Error::from)?;
        Ok(self.writer.write_all(b"\n")?)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes `text`, escaped by [`printable`], to stderr. If that fails (full disk, closed pipe), the
/// work continues; `eprintln!` would panic.
pub fn say(text: impl AsRef<str>) {
    say_coloured(&printable(text.as_ref()));
}

/// Like [`say`], for text that the program has coloured itself. It must not hold unescaped foreign
/// text.
pub fn say_coloured(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Whether stderr is a terminal, so that a progress bar makes sense.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Runs `f`, which catches the panics of models, without their texts on stderr: its answer has
/// them.
pub fn without_panic_texts<T>(f: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = f();
    std::panic::set_hook(hook);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_to_obey() {
        let plain = "rr \u{b1} 2 ms\n\tnext";
        assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        assert_eq!(printable("a\u{1b}]0;owned\u{7}b\r"), "a\\u{1b}]0;owned\\u{7}b\\u{d}");
        assert_eq!(printable("x\u{9b}31m\u{202e}y"), "x\\u{9b}31m\\u{202e}y");
    }
}
