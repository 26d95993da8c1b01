// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats in which a trace can be written: one file each, and the only list of them.
//!
//! A new format is a file here that implements [`Exporter`], and its lines in this file. Options,
//! help and error messages of the command line come from the list. A test compares it with
//! docs/reference/trace-format.md.

use schedlab_model::{TraceSink, Workload};
use std::fmt;
use std::io::{self, Write};

pub mod csv;
mod ftrace;
mod ndjson;
#[cfg(feature = "parquet")]
pub mod parquet;
mod perfetto;
mod slt;

/// Every format, in the order of help texts.
pub const EXPORTERS: &[&dyn Exporter] = &[
    &perfetto::Perfetto,
    #[cfg(feature = "parquet")]
    &parquet::Parquet,
    &ndjson::Ndjson,
    &ftrace::Ftrace,
    &slt::Slt,
    &csv::Csv,
];

/// The part of a trace that a format contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// The events.
    Events,
    /// Only slices, which a result has too.
    Slices,
}

/// A format of traces that can be written.
pub trait Exporter: Sync {
    /// Name, as in `--format perfetto`.
    fn name(&self) -> &'static str;

    /// Extensions of file names without the dot, in lower case, the usual one first.
    fn endings(&self) -> &'static [&'static str];

    /// A description in one line, without a full stop.
    fn summary(&self) -> &'static str;

    /// The part of a trace that it contains. Default: events.
    fn holds(&self) -> Holds {
        Holds::Events
    }

    /// The extension of a second file, for a format that writes two. It replaces the extension of
    /// the first file. Default: none.
    fn second_file(&self) -> Option<&'static str> {
        None
    }

    /// Begins a trace in these files. Errors: those of writing the header.
    fn sink(&self, files: Files, context: &TraceContext) -> io::Result<Box<dyn ExportSink>>;
}

impl fmt::Debug for dyn Exporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A file that appears under its name only when it is complete.
pub trait Output: Write + Send {
    /// Makes the file appear. Errors: those of the file system.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// The files of one trace.
pub struct Files {
    /// The file that the user named.
    pub first: Box<dyn Output>,
    /// The second file, if [`Exporter::second_file`] names one.
    pub second: Option<Box<dyn Output>>,
}

/// Takes the events of one trace.
pub trait ExportSink: TraceSink {
    /// Writes the rest and makes the files appear. Errors: the first one since the sink was made.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// The data of a trace that a writer needs in addition to its events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    /// Number of CPUs of the machine.
    pub nr_cpus: u32,
    /// The kernel's priority (`SchedAttr::kernel_prio`) of each description; empty: unknown.
    pub priorities: Vec<i32>,
    /// Names of the phases of each description; empty: unknown.
    pub phases: Vec<Vec<String>>,
    /// Whether counters are written, if the format supports them.
    pub has_counters: bool,
}

impl TraceContext {
    /// The context of a recording of which only the number of CPUs is known.
    pub const fn of_recording(nr_cpus: u32) -> Self {
        Self { nr_cpus, priorities: Vec::new(), phases: Vec::new(), has_counters: true }
    }

    /// The context of a run of `workload` on `nr_cpus` CPUs.
    pub fn of_run(workload: &Workload, nr_cpus: u32) -> Self {
        Self {
            priorities: workload.tasks.iter().map(|task| task.attr.kernel_prio()).collect(),
            phases: workload.tasks.iter().map(|task| task.phases.clone()).collect(),
            ..Self::of_recording(nr_cpus)
        }
    }
}

/// Finds the format called `name`.
pub fn by_name(name: &str) -> Option<&'static dyn Exporter> {
    EXPORTERS.iter().copied().find(|exporter| exporter.name() == name)
}

/// Finds the format with this file extension, without the dot, in upper or lower case.
pub fn by_ending(ending: &str) -> Option<&'static dyn Exporter> {
    let ending = ending.to_ascii_lowercase();
    EXPORTERS.iter().copied().find(|exporter| exporter.endings().contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    /// A file in memory, and whether it has appeared.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<(Vec<u8>, bool)>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Shared {
        fn commit(self: Box<Self>) -> io::Result<()> {
            self.0.lock().unwrap().1 = true;
            Ok(())
        }
    }

    /// Accepts nothing.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Full {
        fn commit(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    const TRACE: Synthetic = Synthetic { seed: 4, nr_cpus: 2, nr_tasks: 5, nr_events: 500 };

    #[test]
    fn names_and_endings_name_one_format() {
        let mut seen = BTreeSet::new();
        for exporter in EXPORTERS {
            assert!(seen.insert(exporter.name()), "{exporter:?}");
            assert_eq!(by_name(exporter.name()).unwrap().name(), exporter.name());
            for ending in exporter.endings() {
                assert_eq!(by_ending(&ending.to_uppercase()).unwrap().name(), exporter.name());
                assert!(*ending == exporter.name() || seen.insert(ending), "{ending}");
            }
            assert!(!exporter.summary().is_empty() && !exporter.summary().ends_with('.'));
        }
        assert!(by_name("xlsx").is_none() && by_ending("").is_none());
    }

    /// Every format writes as many files as it says, and they appear at the end.
    #[test]
    fn files_appear_when_they_are_whole() {
        for exporter in EXPORTERS {
            let files: Vec<Shared> =
                [Some(Shared::default()), exporter.second_file().map(|_| Shared::default())]
                    .into_iter()
                    .flatten()
                    .collect();
            let boxed = |file: &Shared| Box::new(file.clone()) as Box<dyn Output>;
            let context = TraceContext::of_recording(2);
            let both = Files { first: boxed(&files[0]), second: files.get(1).map(boxed) };
            let mut sink = exporter.sink(both, &context).unwrap();
            TRACE.play(&mut &mut *sink);
            let states = || files.iter().map(|file| file.0.lock().unwrap().1);
            assert!(states().all(|is_there| !is_there), "{exporter:?}");
            sink.commit().unwrap();
            assert!(states().all(|is_there| is_there), "{exporter:?}");
            assert!(files.iter().all(|file| file.0.lock().unwrap().0.len() > 50), "{exporter:?}");
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        for exporter in EXPORTERS {
            let full = || Box::new(Full) as Box<dyn Output>;
            let context = TraceContext::of_recording(2);
            let second = exporter.second_file().map(|_| full());
            let begun = exporter.sink(Files { first: full(), second }, &context);
            let written = begun.and_then(|mut sink| {
                TRACE.play(&mut &mut *sink);
                sink.commit()
            });
            assert!(written.is_err(), "{exporter:?}");
        }
    }
}
