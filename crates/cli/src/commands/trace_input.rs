// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads traces from a file or stdin, in any supported format.

use crate::error::{CliError, CliResult};
use schedlab_model::TraceSink;
use schedlab_trace::export::parquet::TASKS_ENDING;
use schedlab_trace::input::{self, HEAD_LEN, Source};
use schedlab_trace::{Dialect, Facts, InputFormat, Place, ReadError};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// An opened trace. Only its first bytes have been read.
pub struct TraceInput<'p> {
    path: &'p Path,
    format: InputFormat,
    head: Vec<u8>,
    rest: Box<dyn Read>,
}

impl<'p> TraceInput<'p> {
    /// Opens a file, or stdin for `-`, and detects its format.
    pub fn open(path: &'p Path) -> CliResult<Self> {
        let wrong = |error: io::Error| CliError::file("read", path, &error);
        let mut rest: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(wrong)?)
        };
        let mut head = Vec::new();
        rest.by_ref().take(HEAD_LEN as u64).read_to_end(&mut head).map_err(wrong)?;
        let format = input::detect(&head).map_err(|what| {
            CliError::usage_help(
                format!("{} cannot be read as a trace: {what}", path.display()),
                "`schedlab analyse --help` names the formats",
            )
        })?;
        Ok(Self { path, format, head, rest })
    }

    /// The format.
    pub const fn format(&self) -> InputFormat {
        self.format
    }

    /// Reads the trace to its end. For `names` see [`schedlab_trace::text::read`].
    pub fn read(self, names: Vec<String>, sink: &mut dyn TraceSink) -> CliResult<Facts> {
        let Self { path, format, head, rest } = self;
        if format == InputFormat::Json {
            return Err(CliError::usage_help(
                format!("{} is one JSON document, no trace", path.display()),
                "results go to `schedlab report`; a trace comes from `--trace run.slt`",
            ));
        }
        let open =
            |path: &Path| File::open(path).map_err(|error| CliError::file("read", path, &error));
        let is_file = path != Path::new("-") && path.is_file();
        let source = match format {
            InputFormat::PerfData | InputFormat::TraceDat if is_file => Source::File(open(path)?),
            InputFormat::Parquet => {
                Source::Files([open(path)?, open(&path.with_extension(TASKS_ENDING))?])
            }
            _ => Source::Stream(Box::new(io::Cursor::new(head).chain(rest))),
        };
        input::read_source(format, source, names, sink)
            .map_err(|error| damaged(path, format, &error))
    }
}

/// Makes the error of a reader, with file and position in the form that editors and terminals use.
fn damaged(path: &Path, format: InputFormat, error: &ReadError) -> CliError {
    let name = path.display();
    let text = match error.place {
        Place::Line(line) => format!("{name}:{line}: {}", error.what),
        place => format!("{name}, {place}: {}", error.what),
    };
    let help = match format {
        InputFormat::Text => {
            "`schedlab analyse --help` says how to get a text; a line can be left out with \
             `sed LINEd`"
        }
        InputFormat::PerfData => {
            "`perf script -i FILE --ns --show-lost-events | schedlab analyse -` reads it by perf"
        }
        InputFormat::TraceDat => {
            "`trace-cmd report -t FILE | schedlab analyse -` reads it by trace-cmd"
        }
        _ => "`schedlab sim --trace` and `schedlab run --trace` write such files",
    };
    CliError::usage_help(text, help)
}

/// The name of the format for people.
pub fn format_name(format: InputFormat, facts: &Facts) -> &'static str {
    match (format, facts.dialect) {
        (InputFormat::Slt, _) => "schedlab log",
        (InputFormat::Ndjson, _) => "JSON lines",
        (InputFormat::Parquet, _) => "Parquet",
        (InputFormat::Json, _) => "JSON",
        (InputFormat::PerfData, _) => "perf.data",
        (InputFormat::TraceDat, _) => "trace.dat",
        (InputFormat::Text, Some(Dialect::TraceCmd)) => "trace-cmd report",
        (InputFormat::Text, Some(Dialect::Perf)) => "perf script",
        (InputFormat::Text, _) => "ftrace text",
    }
}
