// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translates the kernel's events, which name process ids, into schedlab's, which name tasks.
//!
//! - A task is a process id (a thread, in the kernel's words: tid) from its fork to its death. The
//!   same number used again is another task. Its name is the comm under which it was first seen;
//!   [`Translator::names`] has later ones (exec, prctl).
//! - A fork becomes an event at sched_wakeup_new, when the task becomes runnable, on the CPU where
//!   it is placed. A wake-up is sched_wakeup. Its waker is the running task at the last
//!   sched_waking of that task; none if that was an interrupt. In a trace that has only
//!   sched_waking, that is the wake-up.
//! - If `prev` of a switch is not the task last switched to on that CPU, a switch is missing. It is
//!   counted, and the switch is passed on unchanged; the measures count the gap as unaccounted.
//! - Left out: what the text does not tell. `sched_yield` looks like a preemption.

use super::{COMM_MAX, Kernel, Wake, Who};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::collections::BTreeMap;

/// Most tasks of one trace. A comm, a number and a few words are kept for each.
const TASKS_MAX: usize = 1 << 24;

/// Which events wake tasks in this trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WakeSource {
    /// The trace has none, so no wait after a sleep can be measured.
    #[default]
    None,
    /// `sched_waking` only: a wait begins slightly early, where the wake-up was decided.
    Waking,
    /// `sched_wakeup`.
    Wakeup,
}

/// The state of a task that the reader needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// Forked, without an event since.
    New {
        parent: Option<TaskId>,
    },
    Alive,
    Dead,
}

#[derive(Debug)]
struct Task {
    comm: Box<[u8]>,
    life: Life,
    /// Whether it sleeps, as far as known.
    sleeps: bool,
    /// The task that woke it, in a sched_waking without a sched_wakeup so far.
    woken_by: Option<Option<TaskId>>,
    is_renamed: bool,
    /// Whether it was announced with a name that was given for it.
    is_given: bool,
    /// The first thread of its process; 0: not known.
    tgid: u32,
}

/// Where and when an event happened, and which task ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub time_ns: Nanos,
    pub cpu: CpuId,
    /// The running task; `None` in an interrupt or if unknown.
    pub who: Option<Who<'a>>,
}

/// Counts of the translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub events: u64,
    pub missing_switches: u64,
    pub switches: u64,
}

/// The state of the translation.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    /// Task number + 1 of each process id; 0: none.
    by_pid: Vec<u32>,
    tasks: Vec<Task>,
    /// The running task of each CPU; `None` if unknown.
    running: Vec<Option<Option<TaskId>>>,
    /// Objects of schedlab's own text, by kind and name.
    objects: BTreeMap<Vec<u8>, ObjectId>,
    nr_objects: u32,
    /// Names that replace the first ones seen.
    given_names: Vec<String>,
    pub counts: Counts,
    pub wakes: WakeSource,
    /// The greatest CPU number seen.
    pub cpu_max: u32,
}

/// A comm as text: control characters, which could steer a terminal, and what is no UTF-8 become
/// U+FFFD. That is longer than what it replaces; the name is cut where it would be too long.
pub(crate) fn clean(comm: &[u8]) -> String {
    let replace = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut name: String = String::from_utf8_lossy(comm).chars().map(replace).collect();
    name.truncate(name.floor_char_boundary(COMM_MAX));
    name
}

impl Translator {
    pub fn new(given_names: Vec<String>) -> Self {
        Self { given_names, ..Self::default() }
    }

    /// The last name of each task, if it is not the first one.
    pub fn names(&self) -> Vec<(TaskId, String)> {
        let renamed = self.tasks.iter().zip(0..).filter(|(task, _)| task.is_renamed);
        renamed.map(|(task, id)| (TaskId(id), clean(&task.comm))).collect()
    }

    /// The living task of this process id belongs to the process whose first thread is `tgid`.
    pub fn belongs(&mut self, pid: u32, tgid: u32) {
        let known = self.by_pid.get(pid as usize).and_then(|id| id.checked_sub(1));
        if let Some(task) = known.and_then(|task| self.tasks.get_mut(task as usize)) {
            task.tgid = tgid;
        }
    }

    /// The first thread of each task's process, as far as it was told.
    pub fn processes(&self) -> Vec<(TaskId, u32)> {
        let told = self.tasks.iter().zip(0..).filter(|(task, _)| task.tgid > 0);
        told.map(|(task, id)| (TaskId(id), task.tgid)).collect()
    }

    pub fn nr_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Translates one event of the kernel.
    pub fn event<S: TraceSink + ?Sized>(
        &mut self,
        at: Context<'_>,
        kernel: Kernel<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        self.see(at.cpu);
        match kernel {
            Kernel::Switch { prev, out, next } => self.switch(at, prev, out, next, sink),
            Kernel::Wake { who, cpu, wake } => {
                let cpu = cpu.map_or(at.cpu, CpuId);
                self.see(cpu);
                self.wake(at, who, cpu, wake, sink)
            }
            Kernel::Migrate { who, from, to } => {
                self.see(CpuId(from));
                self.see(CpuId(to));
                let Some(task) = self.task(who, sink)? else { return Ok(()) };
                if from != to {
                    let kind = EventKind::Migrate { task, from: CpuId(from) };
                    self.emit(at.time_ns, CpuId(to), kind, sink);
                }
                Ok(())
            }
            Kernel::Fork { parent, child } => {
                let parent = self.task(parent, sink)?;
                self.announce(child, Life::New { parent }, sink).map(drop)
            }
            Kernel::Exit { who } => {
                if let Some(task) = self.task(who, sink)? {
                    self.emit(at.time_ns, at.cpu, EventKind::Exit { task }, sink);
                }
                Ok(())
            }
            Kernel::Exec { pid, old_pid } => {
                self.exec(pid, old_pid);
                Ok(())
            }
            Kernel::Mark { text } => self.mark(at, text, sink),
            Kernel::Other => Ok(()),
        }
    }

    /// Events were lost on this CPU, so its running task is unknown.
    pub fn lost(&mut self, cpu: CpuId) {
        self.see(cpu);
        if let Some(running) = self.running.get_mut(cpu.index()) {
            *running = None;
        }
    }

    fn see(&mut self, cpu: CpuId) {
        self.cpu_max = self.cpu_max.max(cpu.0);
    }

    fn emit<S: TraceSink + ?Sized>(
        &mut self,
        time_ns: Nanos,
        cpu: CpuId,
        kind: EventKind,
        sink: &mut S,
    ) {
        self.counts.events += 1;
        sink.event(&Event { time_ns, cpu, kind });
    }

    fn life(&self, task: TaskId) -> Life {
        self.tasks[task.index()].life
    }

    /// The task with this process id, announced if it is new. `None`: the idle task.
    fn task<S: TraceSink + ?Sized>(
        &mut self,
        who: Who<'_>,
        sink: &mut S,
    ) -> Result<Option<TaskId>, String> {
        if who.pid == 0 {
            return Ok(None);
        }
        let known = self.by_pid.get(who.pid as usize).and_then(|id| id.checked_sub(1));
        match known.map(TaskId) {
            Some(task) if self.life(task) != Life::Dead => {
                let entry = &mut self.tasks[task.index()];
                if *entry.comm != *who.comm {
                    entry.comm = who.comm.into();
                    entry.is_renamed = true;
                    if !entry.is_given {
                        sink.renamed(task, &clean(who.comm));
                    }
                }
                Ok(Some(task))
            }
            _ => self.announce(who, Life::Alive, sink).map(Some),
        }
    }

    /// Announces a task that was not seen before.
    fn announce<S: TraceSink + ?Sized>(
        &mut self,
        who: Who<'_>,
        life: Life,
        sink: &mut S,
    ) -> Result<TaskId, String> {
        if self.tasks.len() >= TASKS_MAX {
            return Err(format!("there are more than {TASKS_MAX} tasks, the most that is allowed"));
        }
        let id = TaskId(self.tasks.len() as u32);
        let pid = who.pid as usize;
        if pid >= self.by_pid.len() {
            self.by_pid.resize((pid + 1).next_power_of_two(), 0);
        }
        self.by_pid[pid] = id.0 + 1;
        let given = self.given_names.get_mut(id.index()).map(std::mem::take);
        let given = given.filter(|name| !name.is_empty());
        self.tasks.push(Task {
            comm: who.comm.into(),
            life,
            sleeps: true,
            woken_by: None,
            is_renamed: false,
            is_given: given.is_some(),
            tgid: 0,
        });
        let name = given.unwrap_or_else(|| clean(who.comm));
        sink.task(id, &TaskInfo { name, spec: None, pid: who.pid });
        Ok(id)
    }

    fn switch<S: TraceSink + ?Sized>(
        &mut self,
        at: Context<'_>,
        prev: Who<'_>,
        out: SwitchOut,
        next: Who<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        if prev.pid == next.pid {
            return Err(format!("a switch from process {} to itself", prev.pid));
        }
        let prev = self.task(prev, sink)?;
        let next = self.task(next, sink)?;
        let slot = at.cpu.index();
        if slot >= self.running.len() {
            self.running.resize((slot + 1).min(NR_CPUS_MAX), None);
        }
        let expected = self.running[slot].replace(next);
        self.counts.switches += 1;
        self.counts.missing_switches += u64::from(expected.is_some_and(|task| task != prev));
        let out = if prev.is_none() { SwitchOut::Idle } else { out };
        if let Some(task) = prev {
            let entry = &mut self.tasks[task.index()];
            entry.life = if out == SwitchOut::Dead { Life::Dead } else { Life::Alive };
            entry.sleeps = out.is_voluntary();
        }
        if let Some(task) = next {
            let entry = &mut self.tasks[task.index()];
            let is_woken = entry.woken_by.take().is_some() && entry.sleeps;
            if is_woken && self.wakes != WakeSource::Wakeup {
                // Woken by a sched_waking without a sched_wakeup: this trace has none. Later ones
                // count; this one is too late to be put in its place.
                self.wakes = WakeSource::Waking;
            }
            entry.life = Life::Alive;
            entry.sleeps = false;
        }
        self.emit(at.time_ns, at.cpu, EventKind::Switch { prev, next, out }, sink);
        Ok(())
    }

    fn wake<S: TraceSink + ?Sized>(
        &mut self,
        at: Context<'_>,
        who: Who<'_>,
        cpu: CpuId,
        wake: Wake,
        sink: &mut S,
    ) -> Result<(), String> {
        let context = match at.who {
            Some(who) => self.context(who, sink)?,
            None => None,
        };
        if wake == Wake::New {
            return self.wake_new(at, who, cpu, context, sink);
        }
        let Some(task) = self.task(who, sink)? else { return Ok(()) };
        let entry = &mut self.tasks[task.index()];
        if wake == Wake::Waking && self.wakes != WakeSource::Waking {
            entry.woken_by = Some(context);
            return Ok(());
        }
        if wake == Wake::Wakeup {
            self.wakes = WakeSource::Wakeup;
        }
        let waker = entry.woken_by.take().unwrap_or(context).filter(|waker| *waker != task);
        entry.life = Life::Alive;
        entry.sleeps = false;
        self.emit(at.time_ns, cpu, EventKind::Wakeup { task, waker }, sink);
        Ok(())
    }

    /// The running task, by its process id. Its name is used only if there is no other, because
    /// tools cut names or do not know them (`<...>`).
    fn context<S: TraceSink + ?Sized>(
        &mut self,
        who: Who<'_>,
        sink: &mut S,
    ) -> Result<Option<TaskId>, String> {
        let known = self.by_pid.get(who.pid as usize).and_then(|id| id.checked_sub(1));
        match known.map(TaskId) {
            Some(task) if self.life(task) != Life::Dead => Ok(Some(task)),
            _ => self.task(who, sink),
        }
    }

    /// A new task becomes runnable.
    fn wake_new<S: TraceSink + ?Sized>(
        &mut self,
        at: Context<'_>,
        who: Who<'_>,
        cpu: CpuId,
        context: Option<TaskId>,
        sink: &mut S,
    ) -> Result<(), String> {
        if who.pid == 0 {
            return Ok(());
        }
        let known = self.by_pid.get(who.pid as usize).and_then(|id| id.checked_sub(1));
        let forked = known.map(TaskId).and_then(|task| match self.life(task) {
            Life::New { parent } => Some((task, parent)),
            _ => None,
        });
        let (task, parent) = match forked {
            Some(forked) => forked,
            None => (self.announce(who, Life::Alive, sink)?, context),
        };
        let entry = &mut self.tasks[task.index()];
        entry.life = Life::Alive;
        entry.sleeps = false;
        self.emit(at.time_ns, cpu, EventKind::Fork { task, parent }, sink);
        Ok(())
    }

    /// A thread that is not the first of its group gets the number of the first when it calls exec,
    /// and the first is gone (fs/exec.c, `de_thread`).
    fn exec(&mut self, pid: u32, old_pid: u32) {
        let (new, old) = (pid as usize, old_pid as usize);
        if new == old || new >= self.by_pid.len() || old >= self.by_pid.len() {
            return;
        }
        if let Some(gone) = self.by_pid[new].checked_sub(1) {
            self.tasks[gone as usize].life = Life::Dead;
        }
        self.by_pid[new] = std::mem::take(&mut self.by_pid[old]);
    }

    /// Announces an object of schedlab's own text: `mutex m`.
    pub fn object<S: TraceSink + ?Sized>(
        &mut self,
        text: &[u8],
        sink: &mut S,
    ) -> Result<(), String> {
        let words = clean(text);
        let (class, name) = words.split_once(' ').unwrap_or((&words, ""));
        let kind = WaitKind::ALL.into_iter().find(|kind| kind.name() == class);
        let kind = kind.ok_or_else(|| {
            let names = WaitKind::ALL.map(WaitKind::name);
            format!("the kind of object {class:?} is not known: allowed are {}", names.join(", "))
        })?;
        if name.len() > COMM_MAX || self.nr_objects as usize >= TASKS_MAX {
            return Err(format!(
                "an object's name has at most {COMM_MAX} bytes, and there are at most {TASKS_MAX}"
            ));
        }
        let id = ObjectId(self.nr_objects);
        self.nr_objects += 1;
        self.objects.entry(text.to_vec()).or_insert(id);
        sink.object(id, &ObjectInfo { name: name.into(), kind });
        Ok(())
    }

    /// Reads the marks of phases, progress and blocks in schedlab's own text.
    fn mark<S: TraceSink + ?Sized>(
        &mut self,
        at: Context<'_>,
        text: &[u8],
        sink: &mut S,
    ) -> Result<(), String> {
        let mut parts = text.splitn(3, |byte| *byte == b'|');
        let (Some(letter), Some(pid), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Ok(());
        };
        let parse = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u32>().ok();
        let known = parse(pid).and_then(|pid| self.by_pid.get(pid as usize)?.checked_sub(1));
        let Some(task) = known.map(TaskId) else { return Ok(()) };
        let kind = match (letter, rest) {
            (b"C", rest) if rest.starts_with(b"progress|") => EventKind::Progress { task },
            (b"B", rest) => match rest.strip_prefix(b"phase ").and_then(parse) {
                Some(phase) => EventKind::Phase { task, phase },
                None => return Ok(()),
            },
            (b"I", rest) => {
                let object = rest.strip_prefix(b"blocks on ");
                match object.and_then(|object| self.objects.get(object)) {
                    Some(&object) => EventKind::Block { task, object },
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        self.emit(at.time_ns, at.cpu, kind, sink);
        Ok(())
    }
}
