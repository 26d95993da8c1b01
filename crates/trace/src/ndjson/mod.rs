// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace as one JSON object per line, for scripts.
//!
//! `{"kind":"task","task":0,"name":"hog-0","spec":0,"pid":0}` announces a task,
//! `{"kind":"object","object":0,"name":"m","class":"mutex"}` an object. Every other line has
//! `time_ns`, `kind`, and (except `end`) `cpu` and the fields of the event, with the names of
//! docs/reference/trace-format.md. Tasks are numbers. The idle task, an unknown waker and a missing
//! description are null.

mod read;

pub use read::read;

use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, ObjectId, TaskId, TraceSink};
use std::io::{self, BufWriter, Write};

/// Writes JSON lines.
#[derive(Debug)]
pub struct NdjsonSink<W: Write> {
    writer: BufWriter<W>,
    error: Option<io::Error>,
}

/// A number or `null`.
struct OrNull(Option<u32>);

impl std::fmt::Display for OrNull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("null"),
        }
    }
}

fn or_null(task: Option<TaskId>) -> OrNull {
    OrNull(task.map(|task| task.0))
}

impl<W: Write> NdjsonSink<W> {
    /// Writes to `writer`, with a buffer.
    pub fn new(writer: W) -> Self {
        Self { writer: BufWriter::with_capacity(1 << 16, writer), error: None }
    }

    /// Returns the writer, or the first error.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    fn try_write(&mut self, write: impl FnOnce(&mut BufWriter<W>) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut self.writer).err();
        }
    }
}

impl<W: Write> TraceSink for NdjsonSink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.try_write(|w| {
            write!(w, r#"{{"kind":"task","task":{id},"name":"#)?;
            serde_json::to_writer(&mut *w, &info.name)?;
            writeln!(w, r#","spec":{},"pid":{}}}"#, OrNull(info.spec), info.pid)
        });
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.try_write(|w| {
            write!(w, r#"{{"kind":"object","object":{id},"name":"#)?;
            serde_json::to_writer(&mut *w, &info.name)?;
            writeln!(w, r#","class":"{}"}}"#, info.kind.name())
        });
    }

    fn event(&mut self, event: &Event) {
        let (time, cpu) = (event.time_ns, event.cpu);
        self.try_write(|w| {
            write!(w, r#"{{"time_ns":{time},"cpu":{cpu},"kind":"#)?;
            match event.kind {
                EventKind::Switch { prev, next, out } => writeln!(
                    w,
                    r#""switch","prev":{},"next":{},"out":"{}"}}"#,
                    or_null(prev),
                    or_null(next),
                    out.name()
                ),
                EventKind::Wakeup { task, waker } => {
                    writeln!(w, r#""wakeup","task":{task},"waker":{}}}"#, or_null(waker))
                }
                EventKind::Fork { task, parent } => {
                    writeln!(w, r#""fork","task":{task},"parent":{}}}"#, or_null(parent))
                }
                EventKind::Exit { task } => writeln!(w, r#""exit","task":{task}}}"#),
                EventKind::Migrate { task, from } => {
                    writeln!(w, r#""migrate","task":{task},"from":{from}}}"#)
                }
                EventKind::Phase { task, phase } => {
                    writeln!(w, r#""phase","task":{task},"phase":{phase}}}"#)
                }
                EventKind::Progress { task } => writeln!(w, r#""progress","task":{task}}}"#),
                EventKind::Block { task, object } => {
                    writeln!(w, r#""block","task":{task},"object":{object}}}"#)
                }
                EventKind::Lost { count } => writeln!(w, r#""lost","count":{count}}}"#),
            }
        });
    }

    fn end(&mut self, end_ns: Nanos) {
        self.try_write(|w| writeln!(w, r#"{{"time_ns":{end_ns},"kind":"end"}}"#));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use schedlab_model::trace::MemorySink;
    use schedlab_model::{CpuId, SwitchOut};
    use serde_json::Value;

    fn parse(bytes: Vec<u8>) -> Vec<Value> {
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Rebuilds each event from its line.
    #[test]
    fn every_line_is_json_that_says_the_event() {
        let (mut memory, mut sink) = (MemorySink::default(), NdjsonSink::new(Vec::new()));
        let what = Synthetic { seed: 3, nr_cpus: 2, nr_tasks: 12, nr_events: 3_000 };
        what.play(&mut (&mut memory, &mut sink));
        let lines = parse(sink.finish().unwrap());
        let number = |value: &Value| value.as_u64().map(|n| TaskId(n as u32));
        let events: Vec<Event> = lines
            .iter()
            .filter(|v| v["kind"] != "task" && v["kind"] != "object" && v["kind"] != "end")
            .map(|v| {
                let task = number(&v["task"]).unwrap_or_default();
                let kind = match v["kind"].as_str().unwrap() {
                    "switch" => EventKind::Switch {
                        prev: number(&v["prev"]),
                        next: number(&v["next"]),
                        out: SwitchOut::ALL.into_iter().find(|o| v["out"] == o.name()).unwrap(),
                    },
                    "wakeup" => EventKind::Wakeup { task, waker: number(&v["waker"]) },
                    "fork" => EventKind::Fork { task, parent: number(&v["parent"]) },
                    "exit" => EventKind::Exit { task },
                    "migrate" => {
                        EventKind::Migrate { task, from: CpuId(number(&v["from"]).unwrap().0) }
                    }
                    "phase" => EventKind::Phase { task, phase: number(&v["phase"]).unwrap().0 },
                    "progress" => EventKind::Progress { task },
                    "block" => {
                        let object = ObjectId(number(&v["object"]).unwrap().0);
                        EventKind::Block { task, object }
                    }
                    other => panic!("kind {other}"),
                };
                let cpu = CpuId(v["cpu"].as_u64().unwrap() as u32);
                Event { time_ns: v["time_ns"].as_u64().unwrap(), cpu, kind }
            })
            .collect();
        assert_eq!(events, memory.events);
        assert_eq!(lines.last().unwrap()["time_ns"], memory.end_ns);
        let objects = lines.iter().filter(|v| v["kind"] == "object").map(|v| {
            let text = |key: &str| v[key].as_str().unwrap().to_owned();
            (text("name"), text("class"))
        });
        let written = memory.objects.into_iter().map(|o| (o.name, o.kind.name().to_owned()));
        assert!(objects.eq(written));
    }

    #[test]
    fn names_are_escaped() {
        let mut sink = NdjsonSink::new(Vec::new());
        let name = "a\"b\\c\nd";
        sink.task(TaskId(0), &TaskInfo { name: name.into(), spec: None, pid: 3 });
        let lines = parse(sink.finish().unwrap());
        assert_eq!((lines[0]["name"].as_str(), &lines[0]["spec"]), (Some(name), &Value::Null));
    }
}
