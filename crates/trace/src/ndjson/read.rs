// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads JSON lines. The file is treated as hostile: every line is checked against earlier lines,
//! and an error names the line.

use crate::text::{Lines, shown};
use crate::{Facts, WakeSource};
use crate::{Place, ReadError};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::Read;

/// A line with the fields of all kinds. `null` and a missing field are the same.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    time_ns: Option<u64>,
    cpu: Option<u32>,
    task: Option<u32>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    spec: Option<u32>,
    pid: Option<u32>,
    prev: Option<u32>,
    next: Option<u32>,
    #[serde(borrow, default)]
    out: Option<Cow<'a, str>>,
    waker: Option<u32>,
    parent: Option<u32>,
    from: Option<u32>,
    phase: Option<u32>,
    count: Option<u32>,
    object: Option<u32>,
    #[serde(borrow, default)]
    class: Option<Cow<'a, str>>,
}

/// Reads JSON lines to their end. On an error the sink has all lines before it, and no `end`.
pub fn read<R: Read, S: TraceSink + ?Sized>(source: R, sink: &mut S) -> Result<Facts, ReadError> {
    let mut lines = Lines::new(source);
    let mut reader = Reader::default();
    loop {
        let wrong = |number, what| ReadError { place: Place::Line(number), what };
        match lines.next_line() {
            Ok(Some(line)) if line.text.trim_ascii().is_empty() => {}
            Ok(Some(line)) => {
                let read = reader.line(line.text, sink);
                let cut_off = |what| match line.is_cut_off {
                    true => format!("the file ends inside the line: it is truncated ({what})"),
                    false => what,
                };
                read.map_err(|what| wrong(line.number, cut_off(what)))?;
            }
            Ok(None) if reader.end_ns.is_some() => {
                reader.facts.nr_records = lines.number();
                return Ok(reader.facts());
            }
            Ok(None) => {
                let what = "the file ends without a line of the kind \"end\": it is truncated, or \
                            its recording was cut short";
                return Err(wrong(lines.number(), what.into()));
            }
            Err(what) => return Err(wrong(lines.number(), what)),
        }
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    facts: Facts,
    nr_tasks: u32,
    nr_objects: u32,
    last_ns: Nanos,
    nr_cpus: u32,
    end_ns: Option<Nanos>,
}

impl Reader {
    fn facts(&self) -> Facts {
        Facts {
            nr_cpus: self.nr_cpus.max(1),
            nr_tasks: u64::from(self.nr_tasks),
            end_ns: self.end_ns.unwrap_or(self.last_ns),
            is_own: true,
            wakes: WakeSource::Wakeup,
            ..self.facts.clone()
        }
    }

    fn line<S: TraceSink + ?Sized>(&mut self, line: &[u8], sink: &mut S) -> Result<(), String> {
        let fields: Fields<'_> = serde_json::from_slice(line)
            .map_err(|error| format!("{:?} is no line of a trace: {error}", shown(line)))?;
        if self.end_ns.is_some() {
            return Err("more lines follow the one of the kind \"end\"".into());
        }
        if fields.kind == "task" {
            return self.task(&fields, sink);
        }
        if fields.kind == "object" {
            return self.object(&fields, sink);
        }
        let time_ns = wanted(fields.time_ns, "time_ns")?;
        if time_ns < self.last_ns {
            return Err(format!("the time goes back from {} to {time_ns} ns", self.last_ns));
        }
        self.last_ns = time_ns;
        if fields.kind == "end" {
            self.end_ns = Some(time_ns);
            sink.end(time_ns);
            return Ok(());
        }
        let cpu = self.cpu(fields.cpu, "cpu")?;
        let kind = self.kind(&fields)?;
        self.facts.nr_events += 1;
        if let EventKind::Switch { .. } = kind {
            self.facts.nr_switches += 1;
        }
        sink.event(&Event { time_ns, cpu, kind });
        Ok(())
    }

    fn task<S: TraceSink + ?Sized>(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let task = wanted(fields.task, "task")?;
        if task != self.nr_tasks {
            return Err(format!("task {task} is announced, but the next is {}", self.nr_tasks));
        }
        let name = name_of(fields)?;
        self.nr_tasks = task.checked_add(1).ok_or("there are more than 2^32 - 1 tasks")?;
        let pid = fields.pid.unwrap_or(0);
        sink.task(TaskId(task), &TaskInfo { name: name.into(), spec: fields.spec, pid });
        Ok(())
    }

    fn object<S: TraceSink + ?Sized>(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let object = wanted(fields.object, "object")?;
        if object != self.nr_objects {
            return Err(format!(
                "object {object} is announced, but the next is {}",
                self.nr_objects
            ));
        }
        let name = name_of(fields)?.to_owned();
        let class = wanted(fields.class.as_deref(), "class")?;
        let kind =
            WaitKind::ALL.into_iter().find(|kind| kind.name() == class).ok_or_else(|| {
                let names = WaitKind::ALL.map(WaitKind::name).join(", ");
                format!("the class {:?} is not known: allowed are {names}", shown(class.as_bytes()))
            })?;
        self.nr_objects = object.checked_add(1).ok_or("there are more than 2^32 - 1 objects")?;
        sink.object(ObjectId(object), &ObjectInfo { name, kind });
        Ok(())
    }

    fn cpu(&mut self, cpu: Option<u32>, what: &str) -> Result<CpuId, String> {
        let cpu = wanted(cpu, what)?;
        if cpu as usize >= NR_CPUS_MAX {
            return Err(format!(
                "{what} {cpu} is not allowed: allowed are 0 to {}",
                NR_CPUS_MAX - 1
            ));
        }
        self.nr_cpus = self.nr_cpus.max(cpu + 1);
        Ok(CpuId(cpu))
    }

    /// A task that was announced, or `None`.
    fn known(&self, task: Option<u32>) -> Result<Option<TaskId>, String> {
        match task {
            Some(task) if task >= self.nr_tasks => {
                Err(format!("task {task} is named, but was not announced before"))
            }
            task => Ok(task.map(TaskId)),
        }
    }

    fn kind(&mut self, fields: &Fields<'_>) -> Result<EventKind, String> {
        let own = self.known(fields.task)?;
        let task = || own.ok_or_else(|| String::from("the field task is missing"));
        Ok(match &*fields.kind {
            "switch" => {
                let (prev, next) = (self.known(fields.prev)?, self.known(fields.next)?);
                EventKind::Switch { prev, next, out: switch_out(fields.out.as_deref(), prev)? }
            }
            "wakeup" => EventKind::Wakeup { task: task()?, waker: self.known(fields.waker)? },
            "fork" => EventKind::Fork { task: task()?, parent: self.known(fields.parent)? },
            "exit" => EventKind::Exit { task: task()? },
            "migrate" => EventKind::Migrate { task: task()?, from: self.cpu(fields.from, "from")? },
            "phase" => EventKind::Phase { task: task()?, phase: wanted(fields.phase, "phase")? },
            "progress" => EventKind::Progress { task: task()? },
            "block" => {
                let object = wanted(fields.object, "object")?;
                if object >= self.nr_objects {
                    return Err(format!("object {object} is named, but was not announced before"));
                }
                EventKind::Block { task: task()?, object: ObjectId(object) }
            }
            "lost" => EventKind::Lost { count: wanted(fields.count, "count")? },
            other => {
                return Err(format!(
                    "the kind {:?} is not known: allowed are task, object, switch, wakeup, fork, \
                     exit, migrate, phase, progress, block, lost, end",
                    shown(other.as_bytes())
                ));
            }
        })
    }
}

fn name_of<'f>(fields: &'f Fields<'_>) -> Result<&'f str, String> {
    let name = wanted(fields.name.as_deref(), "name")?;
    let (length, max) = (name.len(), crate::binary::NAME_MAX);
    match length <= max {
        true => Ok(name),
        false => Err(format!("a name of {length} bytes; at most {max} are allowed")),
    }
}

fn wanted<T>(value: Option<T>, what: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("the field {what} is missing"))
}

/// Why `prev` left, from its word.
fn switch_out(word: Option<&str>, prev: Option<TaskId>) -> Result<SwitchOut, String> {
    let word = wanted(word, "out")?;
    let names = SwitchOut::ALL.map(SwitchOut::name);
    let out = SwitchOut::ALL.into_iter().find(|out| out.name() == word).ok_or_else(|| {
        format!("out {:?} is not known: allowed are {}", shown(word.as_bytes()), names.join(", "))
    })?;
    if prev.is_none() != (out == SwitchOut::Idle) {
        let who = prev.map_or("idle".into(), |id| format!("task {id}"));
        return Err(format!("a switch lets {who} leave the CPU as {word:?}"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NdjsonSink;
    use crate::synthetic::Synthetic;
    use proptest::prelude::*;
    use schedlab_model::trace::MemorySink;

    fn written(what: Synthetic, memory: &mut MemorySink) -> Vec<u8> {
        let mut sink = NdjsonSink::new(Vec::new());
        what.play(&mut (memory, &mut sink));
        sink.finish().unwrap()
    }

    #[test]
    fn gives_back_what_was_written() {
        let what = Synthetic { seed: 4, nr_cpus: 5, nr_tasks: 40, nr_events: 10_000 };
        let (mut memory, mut back) = (MemorySink::default(), MemorySink::default());
        let text = written(what, &mut memory);
        let facts = read(&text[..], &mut back).unwrap();
        assert_eq!((&back.events, &back.tasks), (&memory.events, &memory.tasks));
        assert_eq!(back.objects, memory.objects);
        assert_eq!((back.end_ns, facts.nr_cpus), (memory.end_ns, 5));
        assert_eq!(facts.nr_events, memory.events.len() as u64);
    }

    #[test]
    fn errors_name_the_line() {
        let task = "{\"kind\":\"task\",\"task\":0,\"name\":\"a\",\"spec\":null,\"pid\":0}\n";
        let end = "{\"time_ns\":9,\"kind\":\"end\"}\n";
        for (line, word) in [
            (
                "{\"time_ns\":1,\"kind\":\"frobnicate\",\"cpu\":0}",
                "allowed are task, object, switch",
            ),
            ("{\"time_ns\":1,\"kind\":\"exit\",\"cpu\":0,\"task\":1}", "task 1 is named, but was"),
            ("{\"time_ns\":1,\"kind\":\"exit\",\"cpu\":1024,\"task\":0}", "allowed are 0 to 1023"),
            ("{\"time_ns\":1,\"kind\":\"exit\",\"cpu\":0}", "field task is missing"),
            ("{\"time_ns\":1,\"kind\":\"exit\",\"cpu\":0,\"tsk\":0}", "unknown field `tsk`"),
            ("{\"time_ns\":-1,\"kind\":\"exit\"}", "is no line of a trace"),
            (
                "{\"time_ns\":1,\"kind\":\"switch\",\"cpu\":0,\"prev\":0,\"next\":null,\
                 \"out\":\"idle\"}",
                "a switch lets task 0 leave the CPU as \"idle\"",
            ),
            ("{\"kind\":\"task\",\"task\":2,\"name\":\"b\"}", "task 2 is announced, but the next"),
            ("[[[[", "is no line of a trace"),
        ] {
            let text = format!("{task}{line}\n{end}");
            let error = read(text.as_bytes(), &mut MemorySink::default()).unwrap_err();
            assert!(error.what.contains(word), "{line}: {error}");
            assert_eq!(error.place, Place::Line(2));
        }
        let error = read(task.as_bytes(), &mut MemorySink::default()).unwrap_err();
        assert!(error.what.contains("truncated"), "{error}");
        let text = format!("{end}{task}");
        assert!(read(text.as_bytes(), &mut MemorySink::default()).is_err());
    }

    proptest! {
        /// Any change of bytes is another trace or an error, never a panic.
        #[test]
        fn mutated_lines_are_read_or_refused(
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let what = Synthetic { seed: 9, nr_cpus: 3, nr_tasks: 6, nr_events: 60 };
            let mut text = written(what, &mut MemorySink::default());
            for (at, byte) in edits {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let mut memory = MemorySink::default();
            let _ = read(&text[..], &mut memory);
            text.truncate(cut.index(text.len()));
            let _ = read(&text[..], &mut MemorySink::default());
            prop_assert!(memory.events.windows(2).all(|two| two[0].time_ns <= two[1].time_ns));
        }
    }
}
