// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slices as comma-separated values, in order of their ends.

use super::{ExportSink, Exporter, Files, Holds, Output, TraceContext};
use crate::{Slice, SliceTracker};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, Nanos, TaskId, TraceSink};
use std::borrow::Cow;
use std::io::{self, Write};

/// Names of the columns.
pub const HEAD: &[u8] = b"cpu,task,name,start_ns,end_ns,end\n";

/// Slices as comma-separated values.
pub struct Csv;

impl Exporter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["csv"]
    }

    fn summary(&self) -> &'static str {
        "CSV: slices only, one a line"
    }

    fn holds(&self) -> Holds {
        Holds::Slices
    }

    fn sink(&self, files: Files, _context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        let mut file = files.first;
        file.write_all(HEAD)?;
        let (names, tracker) = (Vec::new(), SliceTracker::default());
        Ok(Box::new(CsvSink { file, names, tracker, error: None }))
    }
}

struct CsvSink {
    file: Box<dyn Output>,
    names: Vec<String>,
    tracker: SliceTracker,
    error: Option<io::Error>,
}

impl CsvSink {
    fn write(&mut self, slice: &Slice) {
        if self.error.is_none() {
            let line = Line {
                cpu: slice.cpu.0,
                task: slice.task.0,
                name: self.names.get(slice.task.index()).map_or("", String::as_str),
                start_ns: slice.start_ns,
                end_ns: slice.end_ns,
                end: slice.end.name(),
            };
            self.error = line.write(&mut self.file).err();
        }
    }
}

impl TraceSink for CsvSink {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.names.push(info.name.clone());
    }

    fn event(&mut self, event: &Event) {
        if let Some(slice) = self.tracker.event(event) {
            self.write(&slice);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        let cut_off = self.tracker.end(end_ns);
        cut_off.iter().for_each(|slice| self.write(slice));
    }
}

impl ExportSink for CsvSink {
    fn commit(self: Box<Self>) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)?;
        self.file.commit()
    }
}

/// A slice as a line of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// CPU.
    pub cpu: u32,
    /// Number of the task.
    pub task: u32,
    /// Name of the task.
    pub name: &'a str,
    /// Switch-in.
    pub start_ns: Nanos,
    /// Switch-out; or the last time at which it is known to run.
    pub end_ns: Nanos,
    /// Why it ended: a word of [`crate::SliceEnd::name`].
    pub end: &'a str,
}

impl Line<'_> {
    /// Writes the line.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let Self { cpu, task, name, start_ns, end_ns, end } = self;
        writeln!(writer, "{cpu},{task},{},{start_ns},{end_ns},{end}", quoted(name))
    }
}

/// A field of a line, quoted where it must be (RFC 4180).
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_quoted() {
        let (name, end) = ("a,\"b\"", "preempted");
        let mut text = Vec::new();
        Line { cpu: 1, task: 2, name, start_ns: 3, end_ns: 4, end }.write(&mut text).unwrap();
        assert_eq!(text, b"1,2,\"a,\"\"b\"\"\",3,4,preempted\n");
    }
}
