// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab export`: converts a recorded trace to other formats, or the timeline of a result to a
//! table.

use super::trace_file::{TraceFile, format_of};
use super::trace_input::TraceInput;
use crate::args::ExportArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Out, say};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use schedlab_model::trace::NullSink;
use schedlab_run::RunResult;
use schedlab_run::file::AtomicFile;
use schedlab_run::file::read_text;
use schedlab_trace::export::csv::{self, Line};
use schedlab_trace::export::{self, EXPORTERS, Exporter, Holds, TraceContext};
use schedlab_trace::{InputFormat, Reader, TraceCheck};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Size limit for a result file.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads `--format`.
pub fn format_parser() -> impl TypedValueParser<Value = &'static dyn Exporter> {
    let values = EXPORTERS.iter().map(|one| PossibleValue::new(one.name()).help(one.summary()));
    PossibleValuesParser::new(values)
        .map(|name| export::by_name(&name).expect("it is one of the values"))
}

/// Runs the command.
pub fn export(args: &ExportArgs, out: &mut Out) -> CliResult<()> {
    let to_stdout = args.output == Path::new("-");
    let format = match args.format {
        Some(format) => format,
        None if to_stdout => {
            let single = EXPORTERS.iter().filter(|one| one.second_file().is_none());
            let names: Vec<&str> = single.map(|one| one.name()).collect();
            return Err(CliError::usage_help(
                "stdout has no ending that tells the format",
                format!("give --format {}", names.join(", ")),
            ));
        }
        None => format_of(&args.output)?,
    };
    if is_result(&args.input)? {
        return export_result(args, format, out);
    }
    if !to_stdout {
        let done = export_trace(args, &args.output, format)?;
        say(format!("wrote {}", args.output.display()));
        return done.check(&args.input);
    }
    if format.second_file().is_some() {
        return Err(CliError::usage_help(
            format!("{} writes two files, and stdout is one", format.name()),
            format!("give a file, such as run.{}", format.endings()[0]),
        ));
    }
    // Convert the whole trace before writing any of it: a reader must not take an error in the
    // middle of the input for the end of the trace.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace");
    let done = export_trace(args, &path, format)?;
    let mut file = File::open(&path).map_err(|error| CliError::file("read", &path, &error))?;
    io::copy(&mut file, out)?;
    done.check(&args.input)
}

/// A completely converted trace, and what is wrong with it.
struct Converted {
    /// Why a trace in schedlab's own format cannot have happened.
    violation: Option<String>,
}

impl Converted {
    /// Fails as a failed check if the trace of file `input` cannot have happened.
    fn check(&self, input: &Path) -> CliResult<()> {
        let Some(violation) = &self.violation else { return Ok(()) };
        Err(CliError::new(
            Exit::Check,
            format!("{}: {violation}", input.display()),
            "the trace was converted, but it cannot have happened so: do not trust its figures",
        ))
    }
}

/// Whether a file is a JSON document rather than a trace.
fn is_result(path: &Path) -> CliResult<bool> {
    Ok(TraceInput::open(path)?.format() == InputFormat::Json)
}

/// Converts a trace. The head of a log has the facts that a writer needs; other traces are read
/// once beforehand to find them.
fn export_trace(args: &ExportArgs, output: &Path, format: &dyn Exporter) -> CliResult<Converted> {
    let input = &args.input;
    let mut names = Vec::new();
    let nr_cpus = match TraceInput::open(input)? {
        trace if trace.format() == InputFormat::Slt => log_cpus(input)?,
        trace => {
            let facts = trace.read(Vec::new(), &mut NullSink)?;
            names = facts.names();
            facts.nr_cpus
        }
    };
    let context =
        TraceContext { has_counters: !args.no_counters, ..TraceContext::of_recording(nr_cpus) };
    let mut written = TraceFile::create(output, format, &context)?;
    let mut check = TraceCheck::new();
    let trace = TraceInput::open(input)?;
    let facts = trace.read(names, &mut (&mut check, written.sink()))?;
    written.commit()?;
    // A foreign recording may have gaps; `analyse` reports them.
    let violation = if facts.is_own { check.finish().err() } else { None };
    Ok(Converted { violation: violation.map(|violation| violation.to_string()) })
}

/// Number of CPUs of the machine, from the head of a log.
pub fn log_cpus(path: &Path) -> CliResult<u32> {
    let file = File::open(path).map_err(|error| CliError::file("read", path, &error))?;
    let reader = Reader::new(file)
        .map_err(|error| CliError::usage(format!("{}, {error}", path.display())))?;
    Ok(reader.nr_cpus())
}

/// Exports the timeline of a result.
fn export_result(args: &ExportArgs, format: &dyn Exporter, out: &mut Out) -> CliResult<()> {
    let name = args.input.display();
    if format.holds() != Holds::Slices {
        return Err(CliError::usage_help(
            format!("{name} is a result: it has slices, but no events"),
            "write .csv, or record the events with `--trace run.slt` and export those",
        ));
    }
    let text = read_text(&args.input, FILE_BYTES_MAX)?;
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
    writer.write_all(csv::HEAD)?;
    for slice in &run.slices {
        let task = run.measures.tasks.iter().find(|task| task.id == slice.task);
        let line = Line {
            cpu: slice.cpu,
            task: slice.task,
            name: task.map_or("", |task| task.name.as_str()),
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            end: &slice.end,
        };
        line.write(writer)?;
    }
    Ok(())
}
