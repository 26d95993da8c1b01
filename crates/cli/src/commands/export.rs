// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab export`: a recorded trace into other formats, or the timeline of a result into a table.

use super::trace_file::{TraceContext, TraceFile, TraceFormat};
use super::trace_input::TraceInput;
use crate::args::ExportArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::output::{AtomicFile, Out, say};
use schedlab_model::trace::NullSink;
use schedlab_run::RunResult;
use schedlab_trace::{InputFormat, Reader, TraceCheck};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Largest result that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What `export` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ExportFormat {
    /// Perfetto: opens in ui.perfetto.dev.
    Perfetto,
    /// Parquet: one table of events, one of tasks beside it.
    Parquet,
    /// One JSON object a line.
    Ndjson,
    /// The text of the kernel's ftrace.
    Ftrace,
    /// The project's own log.
    Slt,
    /// Slices as comma-separated values.
    Csv,
}

impl ExportFormat {
    /// The format of traces.
    const fn of_traces(self) -> TraceFormat {
        match self {
            Self::Perfetto => TraceFormat::Perfetto,
            Self::Parquet => TraceFormat::Parquet,
            Self::Ndjson => TraceFormat::Ndjson,
            Self::Ftrace => TraceFormat::Ftrace,
            Self::Slt => TraceFormat::Slt,
            Self::Csv => TraceFormat::Csv,
        }
    }
}

/// Runs the command.
pub fn export(args: &ExportArgs, out: &mut Out) -> CliResult<()> {
    let to_stdout = args.output == Path::new("-");
    let format = match args.format {
        Some(format) => format.of_traces(),
        None if to_stdout => {
            return Err(CliError::usage_help(
                "stdout has no ending that tells the format",
                "give --format perfetto, ndjson, ftrace, slt or csv",
            ));
        }
        None => TraceFormat::of(&args.output)?,
    };
    if is_result(&args.input)? {
        return export_result(args, format, out);
    }
    if !to_stdout {
        let done = export_trace(&args.input, &args.output, format)?;
        say(format!("wrote {}", args.output.display()));
        return done.check(&args.input);
    }
    if format == TraceFormat::Parquet {
        return Err(CliError::usage_help(
            "Parquet is two files: events and tasks",
            "give a file, such as run.parquet",
        ));
    }
    // A converted trace is written whole before any of it goes out: an error in the middle of the
    // input must not look like the end of the trace.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace");
    let done = export_trace(&args.input, &path, format)?;
    let mut file = File::open(&path).map_err(|error| CliError::file("read", &path, &error))?;
    io::copy(&mut file, out)?;
    done.check(&args.input)
}

/// A trace that was written whole, and what is wrong with it.
struct Converted {
    /// It is a log of our own that cannot have happened so.
    violation: Option<String>,
}

impl Converted {
    /// A failed check if the trace of file `input` cannot have happened.
    fn check(&self, input: &Path) -> CliResult<()> {
        let Some(violation) = &self.violation else { return Ok(()) };
        Err(CliError::new(
            Exit::Check,
            format!("{}: {violation}", input.display()),
            "the trace was converted, but it cannot have happened so: do not trust its figures",
        ))
    }
}

/// Whether a file is a JSON document and no trace.
fn is_result(path: &Path) -> CliResult<bool> {
    Ok(TraceInput::open(path)?.format() == InputFormat::Json)
}

/// A log says at its front what a writer must know; of other traces that is found out by reading
/// them once before.
fn export_trace(input: &Path, output: &Path, format: TraceFormat) -> CliResult<Converted> {
    let mut names = Vec::new();
    let nr_cpus = match TraceInput::open(input)? {
        trace if trace.format() == InputFormat::Slt => log_cpus(input)?,
        trace => {
            let facts = trace.read(Vec::new(), &mut NullSink)?;
            names = facts.names();
            facts.nr_cpus
        }
    };
    let mut written = TraceFile::create(output, format, &TraceContext::bare(nr_cpus))?;
    let mut check = TraceCheck::new();
    let trace = TraceInput::open(input)?;
    let facts = trace.read(names, &mut (&mut check, written.sink()))?;
    written.commit()?;
    // Another's recording may have holes; `analyse` tells them.
    let violation = if facts.is_own { check.finish().err() } else { None };
    Ok(Converted { violation: violation.map(|violation| violation.to_string()) })
}

/// CPUs of the machine, from the head of a log.
pub fn log_cpus(path: &Path) -> CliResult<u32> {
    let file = File::open(path).map_err(|error| CliError::file("read", path, &error))?;
    let reader = Reader::new(file)
        .map_err(|error| CliError::usage(format!("{}, {error}", path.display())))?;
    Ok(reader.nr_cpus())
}

/// The timeline that a result holds.
fn export_result(args: &ExportArgs, format: TraceFormat, out: &mut Out) -> CliResult<()> {
    let name = args.input.display();
    if format != TraceFormat::Csv {
        return Err(CliError::usage_help(
            format!("{name} is a result: it has slices, but no events"),
            "write .csv, or record the events with `--trace run.slt` and export those",
        ));
    }
    let text = input::read_text(&args.input, FILE_BYTES_MAX)?;
    let run: RunResult = serde_json::from_str(&text).map_err(|error| {
        CliError::usage_help(
            format!("{name} is no result of one run: {error}"),
            "give what `schedlab sim --json --keep` printed for one scheduler",
        )
    })?;
    if run.slices.is_empty() {
        return Err(CliError::usage_help(
            format!("{name} holds no timeline"),
            "make the result with `--json --keep`",
        ));
    }
    if args.output == Path::new("-") {
        return Ok(write_slices(&run, out)?);
    }
    let mut file = AtomicFile::create(&args.output)?;
    write_slices(&run, &mut file).map_err(|error| CliError::file("write", &args.output, &error))?;
    file.commit()?;
    say(format!("wrote {}", args.output.display()));
    Ok(())
}

fn write_slices(run: &RunResult, writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(super::trace_file::CSV_HEAD)?;
    for slice in &run.slices {
        let task = run.measures.tasks.iter().find(|task| task.id == slice.task);
        let name = task.map_or("", |task| task.name.as_str());
        super::trace_file::write_csv_line(writer, slice, name)?;
    }
    Ok(())
}
