// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text that the kernel's tracefs prints, for people and for tools that read it.
//!
//! Each event is a line `TASK-PID [CPU] FLAGS SECONDS: event: fields`, with nine decimals.
//! Perfetto's importer reads it
//! (src/trace_processor/importers/systrace/systrace_line_tokenizer.cc), and so do tools that read
//! `trace-cmd report -R`. Field names and their order: Linux include/trace/events/sched.h. A
//! wake-up is two lines, sched_waking and sched_wakeup, because viewers take the start of a wait
//! from the first. Phases and progress are the user-space marks of `trace_marker`, in the form of
//! Android's systrace (`B|pid|name`, `E|pid`, `C|pid|name|value`); a block is the instant
//! `I|pid|blocks on mutex m`. schedlab's own comments (the number of CPUs and the objects at the
//! start, the end of the run in the last line) let [`crate::text`] read the same events from the
//! text. Left out: of the FLAGS only `h` is set, if a timer or a device wakes instead of a task;
//! other interrupts and the preemption depth are unknown.

use crate::names::{Name, Names};
use crate::text::{OWN_END, OWN_HEAD, OWN_OBJECT};
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Writes ftrace text.
#[derive(Debug)]
pub struct FtraceSink<W: Write> {
    writer: BufWriter<W>,
    names: Names,
    /// Units of progress of each task, and whether it is in a phase.
    marks: Vec<(u64, bool)>,
    nr_cpus: u32,
    is_begun: bool,
    error: Option<io::Error>,
}

/// FLAGS of a line without known flags, and of a line from an interrupt.
const PLAIN: &str = ".....";
const IN_IRQ: &str = "..h..";

const HEADER: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// How the kernel prints the state of a task that leaves its CPU.
const fn prev_state(out: SwitchOut) -> &'static str {
    match out {
        SwitchOut::Idle | SwitchOut::Yielded => "R",
        SwitchOut::Preempted => "R+",
        SwitchOut::Sleeping => "S",
        SwitchOut::BlockedIo => "D",
        SwitchOut::Dead => "X",
    }
}

/// `comm=NAME pid=PID prio=PRIO` with a prefix before each key. The idle task has its own names.
struct Fields<'a>(&'a str, Option<&'a Name>, CpuId);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(prefix, name, cpu) = self;
        match name {
            Some(Name { comm, pid, prio, .. }) => {
                write!(f, "{prefix}comm={comm} {prefix}pid={pid} {prefix}prio={prio}")
            }
            None => write!(f, "{prefix}comm=swapper/{cpu} {prefix}pid=0 {prefix}prio=120"),
        }
    }
}

impl<W: Write> FtraceSink<W> {
    /// Writes to `writer`, with a buffer.
    pub fn new(writer: W) -> Self {
        Self {
            writer: BufWriter::with_capacity(1 << 16, writer),
            names: Names::default(),
            marks: Vec::new(),
            nr_cpus: 0,
            is_begun: false,
            error: None,
        }
    }

    /// Sets the kernel's priority (`SchedAttr::kernel_prio`) of each description of the workload.
    /// The default is 120.
    pub fn with_prio(mut self, spec_prio: Vec<i32>) -> Self {
        self.names.set_prio(spec_prio);
        self
    }

    /// Sets the number of CPUs of the machine, for the header.
    pub fn with_cpus(mut self, nr_cpus: u32) -> Self {
        self.nr_cpus = nr_cpus;
        self
    }

    /// Returns the writer, or the first error.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            self.writer.write_all(HEADER.as_bytes())?;
            writeln!(self.writer, "{OWN_HEAD}{}", self.nr_cpus)?;
        }
        Ok(())
    }

    fn put(&mut self, event: &Event) -> io::Result<()> {
        self.begin()?;
        let (writer, names) = (&mut self.writer, &self.names);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                let name = |task: Option<TaskId>| task.and_then(|task| names.get(task));
                let from = Fields("prev_", name(prev), event.cpu);
                let to = Fields("next_", name(next), event.cpu);
                let state = prev_state(out);
                let what = format_args!("sched_switch: {from} prev_state={state} ==> {to}");
                line(writer, names, event, what)?;
                self.names.set_running(event.cpu, next);
                Ok(())
            }
            EventKind::Wakeup { task, waker } => wakeup(writer, names, event, task, waker),
            EventKind::Fork { task, parent } => {
                let parent = parent.and_then(|parent| names.get(parent));
                let (comm, pid) = parent.map_or(("schedlab", 0), |p| (p.comm.as_str(), p.pid));
                let Some(Name { comm: child, pid: child_pid, .. }) = names.get(task) else {
                    return Ok(());
                };
                let what = format_args!(
                    "sched_process_fork: comm={comm} pid={pid} child_comm={child} \
                     child_pid={child_pid}"
                );
                line(writer, names, event, what)?;
                about(writer, names, event, task, "sched_wakeup_new")
            }
            EventKind::Exit { task } => {
                let Some(name) = names.get(task) else { return Ok(()) };
                let fields = Fields("", Some(name), event.cpu);
                line(writer, names, event, format_args!("sched_process_exit: {fields}"))
            }
            EventKind::Migrate { task, from } => {
                let Some(name) = names.get(task) else { return Ok(()) };
                let (fields, to) = (Fields("", Some(name), event.cpu), event.cpu);
                let what =
                    format_args!("sched_migrate_task: {fields} orig_cpu={from} dest_cpu={to}");
                line(writer, names, event, what)
            }
            EventKind::Phase { .. } | EventKind::Progress { .. } => self.mark(event),
            EventKind::Block { task, object } => {
                let (Some(Name { pid, .. }), Some(object)) =
                    (names.get(task), names.object(object))
                else {
                    return Ok(());
                };
                let what = format_args!("tracing_mark_write: I|{pid}|blocks on {object}");
                line(writer, names, event, what)
            }
            EventKind::Lost { count } => {
                writeln!(writer, "CPU:{} [LOST {count} EVENTS]", event.cpu)
            }
        }
    }

    /// Writes a phase or a unit of progress as a user-space mark.
    fn mark(&mut self, event: &Event) -> io::Result<()> {
        let (writer, names) = (&mut self.writer, &self.names);
        let (EventKind::Phase { task, .. } | EventKind::Progress { task }) = event.kind else {
            return Ok(());
        };
        let (Some(name), Some((done, is_open))) =
            (names.get(task), self.marks.get_mut(task.index()))
        else {
            return Ok(());
        };
        let pid = name.pid;
        if let EventKind::Phase { phase, .. } = event.kind {
            if std::mem::replace(is_open, true) {
                line(writer, names, event, format_args!("tracing_mark_write: E|{pid}"))?;
            }
            let what = format_args!("tracing_mark_write: B|{pid}|phase {phase}");
            return line(writer, names, event, what);
        }
        *done += 1;
        line(writer, names, event, format_args!("tracing_mark_write: C|{pid}|progress|{done}"))
    }
}

/// The task and CPU of a line, and its FLAGS.
struct Context<'a> {
    task: Option<&'a Name>,
    cpu: CpuId,
    flags: &'static str,
}

/// Writes one line.
fn line_of(
    writer: &mut impl Write,
    context: &Context<'_>,
    time_ns: Nanos,
    what: fmt::Arguments<'_>,
) -> io::Result<()> {
    let Context { task, cpu: CpuId(cpu), flags } = context;
    let (comm, pid) = task.map_or(("<idle>", 0), |name| (name.comm.as_str(), name.pid));
    let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    writeln!(writer, "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {seconds:>5}.{nanos:09}: {what}")
}

/// Writes one line, from the running task of the event's CPU.
fn line(
    writer: &mut impl Write,
    names: &Names,
    event: &Event,
    what: fmt::Arguments<'_>,
) -> io::Result<()> {
    let task = names.running(event.cpu).and_then(|task| names.get(task));
    line_of(writer, &Context { task, cpu: event.cpu, flags: PLAIN }, event.time_ns, what)
}

/// Writes the two lines of a wake-up, from the waker, or from an interrupt on the task's CPU.
fn wakeup(
    writer: &mut impl Write,
    names: &Names,
    event: &Event,
    task: TaskId,
    waker: Option<TaskId>,
) -> io::Result<()> {
    let Some(name) = names.get(task) else { return Ok(()) };
    let context = match waker {
        Some(waker) => {
            let task = names.get(waker);
            let cpu = task.and_then(|name| name.cpu).unwrap_or(event.cpu);
            Context { task, cpu, flags: PLAIN }
        }
        None => Context {
            task: names.running(event.cpu).and_then(|task| names.get(task)),
            cpu: event.cpu,
            flags: IN_IRQ,
        },
    };
    let (fields, cpu) = (Fields("", Some(name), event.cpu), event.cpu.0);
    for what in ["sched_waking", "sched_wakeup"] {
        let what = format_args!("{what}: {fields} target_cpu={cpu:03}");
        line_of(writer, &context, event.time_ns, what)?;
    }
    Ok(())
}

/// Writes a line about a task that is placed on the event's CPU.
fn about(
    writer: &mut impl Write,
    names: &Names,
    event: &Event,
    task: TaskId,
    what: &str,
) -> io::Result<()> {
    let Some(name) = names.get(task) else { return Ok(()) };
    let (fields, cpu) = (Fields("", Some(name), event.cpu), event.cpu.0);
    line(writer, names, event, format_args!("{what}: {fields} target_cpu={cpu:03}"))
}

impl<W: Write> TraceSink for FtraceSink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.names.add(id, info);
        self.marks.push((0, false));
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.names.add_object(info);
        let Some(object) = self.names.object(id).map(str::to_owned) else { return };
        if self.error.is_none() {
            let written = self.begin().and_then(|()| writeln!(self.writer, "{OWN_OBJECT}{object}"));
            self.error = written.err();
        }
    }

    fn event(&mut self, event: &Event) {
        if self.error.is_none() {
            self.error = self.put(event).err();
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        if self.error.is_none() {
            let written = self.begin().and_then(|()| writeln!(self.writer, "{OWN_END}{end_ns} ns"));
            self.error = written.err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::WaitKind;

    fn text_of(events: &[(Nanos, u32, EventKind)]) -> String {
        let mut sink = FtraceSink::new(Vec::new()).with_prio(vec![120, 89]).with_cpus(2);
        for (id, (name, spec, pid)) in [("hog", 0, 0), ("my task", 1, 4711)].iter().enumerate() {
            let info = TaskInfo { name: (*name).into(), spec: Some(*spec), pid: *pid };
            sink.task(TaskId(id as u32), &info);
        }
        let object = ObjectInfo { name: "p\nq".into(), kind: WaitKind::Pipe };
        sink.object(ObjectId(0), &object);
        for &(time_ns, cpu, kind) in events {
            sink.event(&Event { time_ns, cpu: CpuId(cpu), kind });
        }
        sink.end(9);
        String::from_utf8(sink.finish().unwrap()).unwrap()
    }

    #[test]
    fn the_kernels_lines() {
        let (a, b) = (TaskId(0), TaskId(1));
        let text = text_of(&[
            (0, 1, EventKind::Fork { task: a, parent: Some(b) }),
            (
                7_000_000_001,
                1,
                EventKind::Switch { prev: None, next: Some(a), out: SwitchOut::Idle },
            ),
            (7_000_002_000, 0, EventKind::Wakeup { task: b, waker: Some(a) }),
            (7_000_002_500, 1, EventKind::Wakeup { task: b, waker: None }),
            (
                7_000_003_000,
                1,
                EventKind::Switch { prev: Some(a), next: Some(b), out: SwitchOut::Preempted },
            ),
            (7_000_004_000, 0, EventKind::Migrate { task: a, from: CpuId(1) }),
            (7_000_004_500, 1, EventKind::Progress { task: b }),
            (7_000_004_600, 1, EventKind::Lost { count: 5 }),
            (7_000_004_700, 1, EventKind::Block { task: b, object: ObjectId(0) }),
        ]);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let want = [
            "          <idle>-0       [001] .....     0.000000000: sched_process_fork: \
             comm=my task pid=4711 child_comm=hog child_pid=1",
            "          <idle>-0       [001] .....     0.000000000: sched_wakeup_new: comm=hog \
             pid=1 prio=120 target_cpu=001",
            "          <idle>-0       [001] .....     7.000000001: sched_switch: \
             prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog \
             next_pid=1 next_prio=120",
            "             hog-1       [001] .....     7.000002000: sched_waking: comm=my task \
             pid=4711 prio=89 target_cpu=000",
            "             hog-1       [001] .....     7.000002000: sched_wakeup: comm=my task \
             pid=4711 prio=89 target_cpu=000",
            "             hog-1       [001] ..h..     7.000002500: sched_waking: comm=my task \
             pid=4711 prio=89 target_cpu=001",
            "             hog-1       [001] ..h..     7.000002500: sched_wakeup: comm=my task \
             pid=4711 prio=89 target_cpu=001",
            "             hog-1       [001] .....     7.000003000: sched_switch: prev_comm=hog \
             prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=my task next_pid=4711 \
             next_prio=89",
            "          <idle>-0       [000] .....     7.000004000: sched_migrate_task: comm=hog \
             pid=1 prio=120 orig_cpu=1 dest_cpu=0",
            "         my task-4711    [001] .....     7.000004500: tracing_mark_write: \
             C|4711|progress|1",
            "CPU:1 [LOST 5 EVENTS]",
            "         my task-4711    [001] .....     7.000004700: tracing_mark_write: \
             I|4711|blocks on pipe p_q",
        ];
        assert_eq!(lines, want);
        assert!(text.starts_with("# tracer: nop\n"));
        assert!(text.contains("\n# schedlab: the whole run, from 0 ns, CPUs 2\n"));
        assert!(text.ends_with("\n# schedlab: end 9 ns\n"));
    }

    /// A name with a line break must not forge a line.
    #[test]
    fn names_cannot_forge_lines() {
        let mut sink = FtraceSink::new(Vec::new());
        let info = TaskInfo { name: "x\n evil-1 [000]".into(), spec: None, pid: 0 };
        sink.task(TaskId(0), &info);
        let kind = EventKind::Fork { task: TaskId(0), parent: None };
        sink.event(&Event { time_ns: 1, cpu: CpuId(0), kind });
        let text = String::from_utf8(sink.finish().unwrap()).unwrap();
        assert!(text.lines().filter(|l| !l.starts_with('#')).all(|l| l.contains("<idle>-0")));
    }
}
