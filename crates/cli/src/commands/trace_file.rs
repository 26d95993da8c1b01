// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes traces to files in several formats, and slices as lines on stdout.

use super::schema::SliceLine;
use crate::args::TraceArgs;
use crate::error::{CliError, CliResult};
use crate::output::Out;
use schedlab_metrics::analysis::Wanted;
use schedlab_model::trace::{NullSink, TaskInfo};
use schedlab_model::{Event, Nanos, TaskId, TraceSink, Workload};
use schedlab_run::file::AtomicFile;
use schedlab_trace::export::{self, EXPORTERS, ExportSink, Exporter, Files, Output, TraceContext};
use schedlab_trace::{Slice, SliceTracker};
use std::path::{Path, PathBuf};

/// The usual file endings of all formats: `.pftrace, .parquet, ...`.
fn endings() -> String {
    let endings = EXPORTERS.iter().map(|exporter| format!(".{}", exporter.endings()[0]));
    endings.collect::<Vec<_>>().join(", ")
}

/// The help text of `--trace`.
pub fn help_of_trace() -> String {
    format!("Write the trace; the ending names the format: {}", endings())
}

/// The format for the ending of a path.
pub fn format_of(path: &Path) -> CliResult<&'static dyn Exporter> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    export::by_ending(&ending).ok_or_else(|| {
        CliError::usage_help(
            format!("{}: the ending names no format of traces", path.display()),
            format!("allowed are {}", endings()),
        )
    })
}

/// A trace file being written. It gets its name when it is complete.
pub struct TraceFile {
    path: PathBuf,
    sink: Box<dyn ExportSink>,
}

impl TraceFile {
    /// Starts the file `path`.
    pub fn create(path: &Path, exporter: &dyn Exporter, context: &TraceContext) -> CliResult<Self> {
        let create =
            |path: &Path| -> CliResult<Box<dyn Output>> { Ok(Box::new(AtomicFile::create(path)?)) };
        let first = create(path)?;
        let second = exporter.second_file().map(|ending| create(&path.with_extension(ending)));
        let files = Files { first, second: second.transpose()? };
        let sink = exporter.sink(files, context);
        let sink = sink.map_err(|error| CliError::file("write", path, &error))?;
        Ok(Self { path: path.into(), sink })
    }

    /// The sink that takes the events.
    pub fn sink(&mut self) -> &mut dyn TraceSink {
        &mut *self.sink
    }

    /// Completes the file and gives it its name.
    pub fn commit(self) -> CliResult<()> {
        let Self { path, sink } = self;
        sink.commit().map_err(|error| CliError::file("write", &path, &error))
    }
}

/// The trace file of a run, if requested.
pub struct OptionalTraceFile {
    file: Option<TraceFile>,
    null: NullSink,
}

impl OptionalTraceFile {
    /// Starts the file of `args` for a run of `workload` on `nr_cpus` CPUs. Its ending selects the
    /// format.
    pub fn create(args: &TraceArgs, workload: &Workload, nr_cpus: u32) -> CliResult<Self> {
        let create = |path: &Path| {
            let context = TraceContext {
                has_counters: !args.no_counters,
                ..TraceContext::of_run(workload, nr_cpus)
            };
            TraceFile::create(path, format_of(path)?, &context)
        };
        Ok(Self { file: args.file.as_deref().map(create).transpose()?, null: NullSink })
    }

    /// The sink that takes the events.
    pub fn sink(&mut self) -> &mut dyn TraceSink {
        match &mut self.file {
            Some(file) => file.sink(),
            None => &mut self.null,
        }
    }

    /// Completes the file and gives it its name.
    pub fn commit(self) -> CliResult<()> {
        self.file.map_or(Ok(()), TraceFile::commit)
    }
}

/// Prints slices as JSON lines on stdout, in the order of their ends; nothing if `out` is `None`.
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
    /// Writes lines to `out`. With `quits_early` the program ends as soon as the reader closes the
    /// pipe. Use it only if this leaves nothing behind: no task on a real machine, no partial file.
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

    /// Keeps only slices of these tasks.
    pub fn only(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// Returns the first error.
    pub fn finish(self) -> CliResult<()> {
        self.error.map_or(Ok(()), Err)
    }

    fn write(&mut self, slice: &Slice) {
        let Some(out) = self.out.as_mut().filter(|_| self.error.is_none()) else { return };
        if !self.is_wanted.get(slice.task.index()).is_none_or(|wanted| *wanted) {
            return;
        }
        let line = SliceLine {
            cpu: slice.cpu.0,
            task: slice.task.0,
            name: self.names.get(slice.task.index()).map_or("", String::as_str),
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            end: slice.end.name(),
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
        self.is_wanted.push(self.wanted.has(&info.name, Some(info.pid).filter(|pid| *pid > 0)));
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
        let of = |name: &str| format_of(Path::new(name)).map(Exporter::name);
        assert_eq!(of("a.b/run.PFTRACE").unwrap(), "perfetto");
        assert_eq!(of("run.parquet").unwrap(), "parquet");
        assert!(of("run").is_err() && of("run.xlsx").is_err());
    }

    /// The reference page's table has every format with its file endings.
    #[test]
    fn the_reference_has_every_format() {
        let page = include_str!("../../../../docs/reference/trace-format.md");
        for exporter in EXPORTERS {
            let endings: Vec<String> =
                exporter.endings().iter().map(|ending| format!("`.{ending}`")).collect();
            let row = format!("| `{}` | {} | ", exporter.name(), endings.join(", "));
            assert!(page.contains(&row), "no line begins with {row}");
        }
    }
}
