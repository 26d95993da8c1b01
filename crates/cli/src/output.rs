// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where output goes: data to stdout, talk to stderr.

use crate::error::CliResult;
use std::io::{self, BufWriter, IsTerminal, Write};

/// Standard output, buffered. A reader that goes away ends the program without an error.
pub struct Out {
    writer: BufWriter<io::Stdout>,
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Self {
        Self { writer: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    /// Writes what is left in the buffer.
    pub fn finish(mut self) -> CliResult<()> {
        self.finish_now()
    }

    /// Writes what is left in the buffer, before something is said on stderr.
    pub fn finish_now(&mut self) -> CliResult<()> {
        Ok(self.writer.flush()?)
    }

    /// Writes `text` and a line end.
    pub fn line(&mut self, text: impl AsRef<str>) -> CliResult<()> {
        self.writer.write_all(text.as_ref().as_bytes())?;
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

/// Says something to the person at the terminal. Where nobody can be told (a full disk behind
/// stderr, a closed pipe) the work goes on: `eprintln!` would end it in a panic.
pub fn say(text: impl AsRef<str>) {
    let line = format!("{}\n", text.as_ref());
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Whether a person watches stderr, so that a progress bar makes sense.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}
