// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that leave the program: files in several formats, and slices as lines on stdout.

use super::analyse::Wanted;
use super::schema::SliceLine;
use crate::error::{CliError, CliResult};
use crate::output::{AtomicFile, Out};
use schedlab_model::trace::{NullSink, TaskInfo};
use schedlab_model::{Event, Nanos, TaskId, TraceSink, Workload};
use schedlab_run::{Slice, SliceTracker};
use schedlab_trace::parquet::ParquetSink;
use schedlab_trace::parquet_table::io_error;
use schedlab_trace::{BinarySink, FtraceSink, NdjsonSink, PerfettoSink};
use std::io;
use std::path::{Path, PathBuf};

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// Perfetto: opens in ui.perfetto.dev.
    Perfetto,
    /// Parquet: one table of events, one of tasks beside it.
    Parquet,
    /// One JSON object a line.
    Ndjson,
    /// The text of the kernel's ftrace.
    Ftrace,
    /// The project's own log, which `export` reads.
    Slt,
    /// Slices as comma-separated values.
    Csv,
}

impl TraceFormat {
    const ALL: [Self; 6] =
        [Self::Perfetto, Self::Parquet, Self::Ndjson, Self::Ftrace, Self::Slt, Self::Csv];

    /// Endings of file names, the first one the usual.
    const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Perfetto => &["pftrace", "perfetto-trace"],
            Self::Parquet => &["parquet"],
            Self::Ndjson => &["ndjson", "jsonl"],
            Self::Ftrace => &["ftrace", "txt"],
            Self::Slt => &["slt"],
            Self::Csv => &["csv"],
        }
    }

    /// The format that a path's ending names.
    pub fn of(path: &Path) -> CliResult<Self> {
        let all = Self::ALL;
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        all.iter().copied().find(|format| format.endings().contains(&ending.as_str())).ok_or_else(
            || {
                let known: Vec<String> =
                    all.iter().map(|format| format!(".{}", format.endings()[0])).collect();
                CliError::usage_help(
                    format!("{}: the ending names no format of traces", path.display()),
                    format!("allowed are {}", known.join(", ")),
                )
            },
        )
    }
}

/// What a trace file knows beside the events.
#[derive(Clone, Debug, Default)]
pub struct TraceContext {
    nr_cpus: u32,
    /// The kernel's priority of each description.
    priorities: Vec<i32>,
    /// Names of the phases of each description.
    phases: Vec<Vec<String>>,
}

impl TraceContext {
    /// From a workload that runs on `nr_cpus` CPUs.
    pub fn of(workload: &Workload, nr_cpus: u32) -> Self {
        Self {
            nr_cpus,
            priorities: workload.tasks.iter().map(|task| task.attr.kernel_prio()).collect(),
            phases: workload.tasks.iter().map(|task| task.phases.clone()).collect(),
        }
    }

    /// From a recording that only knows its CPUs.
    pub fn bare(nr_cpus: u32) -> Self {
        Self { nr_cpus, ..Self::default() }
    }
}

/// A trace file being written. It appears under its name when it is whole.
pub struct TraceFile {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Perfetto(Box<PerfettoSink<AtomicFile>>),
    Parquet(Box<ParquetSink<AtomicFile>>),
    Ndjson(NdjsonSink<AtomicFile>),
    Ftrace(Box<FtraceSink<AtomicFile>>),
    Slt(Box<BinarySink<AtomicFile>>),
    Csv(Box<CsvSink<AtomicFile>>),
}

impl TraceFile {
    /// Starts the file `path`.
    pub fn create(path: &Path, format: TraceFormat, context: &TraceContext) -> CliResult<Self> {
        let file = AtomicFile::create(path)?;
        let sink = match format {
            TraceFormat::Perfetto => Sink::Perfetto(Box::new(
                PerfettoSink::new(file)
                    .with_prio(context.priorities.clone())
                    .with_phases(context.phases.clone()),
            )),
            TraceFormat::Parquet => {
                let tasks = AtomicFile::create(&tasks_path(path))?;
                let sink = ParquetSink::new(file, tasks).map_err(|e| wrong(path, &io_error(e)))?;
                Sink::Parquet(Box::new(sink))
            }
            TraceFormat::Ndjson => Sink::Ndjson(NdjsonSink::new(file)),
            TraceFormat::Ftrace => {
                let sink = FtraceSink::new(file).with_prio(context.priorities.clone());
                Sink::Ftrace(Box::new(sink.with_cpus(context.nr_cpus)))
            }
            TraceFormat::Slt => Sink::Slt(Box::new(BinarySink::new(file, context.nr_cpus))),
            TraceFormat::Csv => Sink::Csv(Box::new(CsvSink::new(file))),
        };
        Ok(Self { path: path.into(), sink })
    }

    /// Where events go.
    pub fn sink(&mut self) -> &mut dyn TraceSink {
        match &mut self.sink {
            Sink::Perfetto(sink) => &mut **sink,
            Sink::Parquet(sink) => &mut **sink,
            Sink::Ndjson(sink) => sink,
            Sink::Ftrace(sink) => &mut **sink,
            Sink::Slt(sink) => &mut **sink,
            Sink::Csv(sink) => &mut **sink,
        }
    }

    /// Makes the file appear.
    pub fn commit(self) -> CliResult<()> {
        let path = self.path;
        let file = match self.sink {
            Sink::Perfetto(sink) => sink.finish(),
            Sink::Parquet(sink) => {
                let (events, tasks) = sink.finish().map_err(|e| wrong(&path, &io_error(e)))?;
                tasks.commit()?;
                Ok(events)
            }
            Sink::Ndjson(sink) => sink.finish(),
            Sink::Ftrace(sink) => sink.finish(),
            Sink::Slt(sink) => sink.finish(),
            Sink::Csv(sink) => sink.finish(),
        };
        file.map_err(|error| wrong(&path, &error))?.commit()
    }
}

/// The trace file of a run, if one was asked for.
pub struct OptionalTraceFile {
    file: Option<TraceFile>,
    null: NullSink,
}

impl OptionalTraceFile {
    /// Starts the file `path` for a run of `workload` on `nr_cpus` CPUs; its ending names the
    /// format.
    pub fn create(path: Option<&Path>, workload: &Workload, nr_cpus: u32) -> CliResult<Self> {
        let create = |path| {
            let context = TraceContext::of(workload, nr_cpus);
            TraceFile::create(path, TraceFormat::of(path)?, &context)
        };
        Ok(Self { file: path.map(create).transpose()?, null: NullSink })
    }

    /// Where events go.
    pub fn sink(&mut self) -> &mut dyn TraceSink {
        match &mut self.file {
            Some(file) => file.sink(),
            None => &mut self.null,
        }
    }

    /// Makes the file appear.
    pub fn commit(self) -> CliResult<()> {
        self.file.map_or(Ok(()), TraceFile::commit)
    }
}

fn wrong(path: &Path, error: &io::Error) -> CliError {
    CliError::file("write", path, error)
}

/// `run.parquet` holds the events, `run.tasks.parquet` the tasks.
pub fn tasks_path(path: &Path) -> PathBuf {
    path.with_extension("tasks.parquet")
}

/// Names of the columns of a table of slices.
pub const CSV_HEAD: &[u8] = b"cpu,task,name,start_ns,end_ns,end\n";

/// Slices as comma-separated values, in order of their ends.
struct CsvSink<W: io::Write> {
    names: Vec<String>,
    tracker: SliceTracker,
    writer: W,
    error: Option<io::Error>,
}

impl<W: io::Write> CsvSink<W> {
    fn new(mut writer: W) -> Self {
        let error = writer.write_all(CSV_HEAD).err();
        Self { names: Vec::new(), tracker: SliceTracker::default(), writer, error }
    }

    fn write(&mut self, slice: &Slice) {
        if self.error.is_none() {
            let name = self.names.get(slice.task as usize).map_or("", String::as_str);
            self.error = write_csv_line(&mut self.writer, slice, name).err();
        }
    }

    fn finish(self) -> io::Result<W> {
        self.error.map_or(Ok(self.writer), Err)
    }
}

/// One line of a file of slices; names are quoted where they must be (RFC 4180).
pub fn write_csv_line(writer: &mut impl io::Write, slice: &Slice, name: &str) -> io::Result<()> {
    let quoted;
    let name = if name.contains([',', '"', '\n', '\r']) {
        quoted = format!("\"{}\"", name.replace('"', "\"\""));
        &quoted
    } else {
        name
    };
    let Slice { cpu, task, start_ns, end_ns, end } = slice;
    writeln!(writer, "{cpu},{task},{name},{start_ns},{end_ns},{end}")
}

impl<W: io::Write> TraceSink for CsvSink<W> {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.names.push(info.name.clone());
    }

    fn event(&mut self, event: &Event) {
        if let Some(slice) = self.tracker.event(event) {
            self.write(&slice);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        for slice in self.tracker.end(end_ns) {
            self.write(&slice);
        }
    }
}

/// Slices as JSON lines on stdout, in order of their ends; nothing when `out` is `None`.
pub struct SliceLines<'o> {
    out: Option<&'o mut Out>,
    quits_early: bool,
    names: Vec<String>,
    wanted: Wanted,
    /// Whether each task is wanted.
    is_wanted: Vec<bool>,
    tracker: SliceTracker,
    error: Option<CliError>,
}

impl<'o> SliceLines<'o> {
    /// Lines to `out`. With `quits_early` the program ends as soon as the reader has gone; only
    /// where nothing is left behind by that: no task of a real machine, no file half written.
    pub fn new(out: Option<&'o mut Out>, quits_early: bool) -> Self {
        Self {
            out,
            quits_early,
            names: Vec::new(),
            wanted: Wanted::default(),
            is_wanted: Vec::new(),
            tracker: SliceTracker::default(),
            error: None,
        }
    }

    /// Only slices of these tasks.
    pub fn only(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// The first error that occurred.
    pub fn finish(self) -> CliResult<()> {
        self.error.map_or(Ok(()), Err)
    }

    fn write(&mut self, slice: &Slice) {
        let Some(out) = self.out.as_mut().filter(|_| self.error.is_none()) else { return };
        if !self.is_wanted.get(slice.task as usize).is_none_or(|wanted| *wanted) {
            return;
        }
        let line = SliceLine {
            cpu: slice.cpu,
            task: slice.task,
            name: self.names.get(slice.task as usize).map_or("", String::as_str),
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            end: &slice.end,
        };
        self.error = out.json_line(&line).err();
        if self.quits_early && matches!(self.error, Some(CliError::BrokenPipe)) {
            std::process::exit(0);
        }
    }
}

impl TraceSink for SliceLines<'_> {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.names.push(info.name.clone());
        self.is_wanted.push(self.wanted.has(&info.name, info.pid));
    }

    fn event(&mut self, event: &Event) {
        if self.out.is_none() {
            return;
        }
        if let Some(slice) = self.tracker.event(event) {
            self.write(&slice);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        for slice in self.tracker.end(end_ns) {
            self.write(&slice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides_the_format() {
        let of = |name: &str| TraceFormat::of(Path::new(name));
        assert_eq!(of("a.b/run.PFTRACE").unwrap(), TraceFormat::Perfetto);
        assert_eq!(of("run.parquet").unwrap(), TraceFormat::Parquet);
        assert!(of("run").is_err() && of("run.xlsx").is_err());
        assert_eq!(tasks_path(Path::new("d/run.parquet")), Path::new("d/run.tasks.parquet"));
    }

    #[test]
    fn names_with_commas_are_quoted() {
        let slice = Slice { cpu: 1, task: 2, start_ns: 3, end_ns: 4, end: "preempted".into() };
        let mut text = Vec::new();
        write_csv_line(&mut text, &slice, "a,\"b\"").unwrap();
        assert_eq!(text, b"1,2,\"a,\"\"b\"\"\",3,4,preempted\n");
    }
}
