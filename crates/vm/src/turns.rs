// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goldens that hold for every build of the guest: the order in which tasks ran, and why each left
//! its CPU.
//!
//! A golden of decisions ([`crate::golden`]) belongs to one build of the guest, because another
//! build has other instructions and therefore other times. The order of turns does not depend on
//! microseconds. A *turn* lasts until another task of the run takes the CPU, or until the task
//! leaves voluntarily and another one has run. Left out is what depends on microseconds: times,
//! kernel threads in between, and stays shorter than [`SHORT_NS`] at the start and the end of a
//! task's work.
//!
//! An entry belongs to a kernel's file, QEMU, the machine and the request (workload, seed,
//! options). The scheduler's object is tested; the entry contains it for information.

use crate::golden_file::{GoldenEntry, GoldenFile, Names};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink};
use schedlab_run::RunResult;
use serde::{Deserialize, Serialize};

/// Shorter stays (ns) are the start or the end of a task's work.
pub const SHORT_NS: Nanos = 300_000;
/// Turns per line in the file.
const TURNS_A_LINE: usize = 24;

/// A turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    task: TaskId,
    cpu: u32,
    out: SwitchOut,
}

/// A CPU while its turns are collected.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    /// The task of the turn; `None`: not a task of the run.
    task: Option<TaskId>,
    /// Since when it runs; `None`: a thread outside of the run has the CPU.
    since: Option<Nanos>,
    /// How long it ran before that (ns).
    ran_ns: Nanos,
}

/// Collects the turns of a run from its trace.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    names: Names,
    stays: Vec<Stay>,
    found: Vec<Turn>,
}

impl Turns {
    fn end_stay(&mut self, cpu: u32, out: SwitchOut) {
        let stay = std::mem::take(&mut self.stays[cpu as usize]);
        let Some(task) = stay.task.filter(|_| stay.ran_ns >= SHORT_NS) else { return };
        match self.found.iter_mut().rfind(|turn| turn.cpu == cpu) {
            Some(last) if last.task == task => last.out = out,
            _ => self.found.push(Turn { task, cpu, out }),
        }
    }

    fn switch(&mut self, event: &Event, next: Option<TaskId>, out: SwitchOut) {
        let cpu = event.cpu.0;
        if self.stays.len() <= cpu as usize {
            self.stays.resize(cpu as usize + 1, Stay::default());
        }
        let stay = &mut self.stays[cpu as usize];
        if let Some(since) = stay.since.take() {
            stay.ran_ns += event.time_ns - since;
        }
        let is_interrupted = next.is_none() && out == SwitchOut::Preempted;
        if is_interrupted && stay.task.is_some() {
            return;
        }
        let goes_on = next.is_some() && next == stay.task && out == SwitchOut::Idle;
        if !goes_on {
            // A task that was interrupted and does not continue has been preempted.
            self.end_stay(cpu, if out == SwitchOut::Idle { SwitchOut::Preempted } else { out });
        }
        let stay = &mut self.stays[cpu as usize];
        stay.task = next;
        stay.since = next.map(|_| event.time_ns);
    }

    /// The names of tasks that had turns, and the turns in lines. A turn is the number of the name,
    /// a letter for how it ended, and the CPU unless it is the first. Letters: `p`reempted,
    /// `y`ielded, `s`leeps, `d` waits for a device, `x` exited.
    fn lines(&self) -> (Vec<String>, Vec<String>) {
        let mut tasks: Vec<String> = Vec::new();
        let mut words = Vec::new();
        for turn in &self.found {
            let name = self.names.get(turn.task);
            let known = tasks.iter().position(|task| task == name);
            let number = known.unwrap_or_else(|| {
                tasks.push(name.into());
                tasks.len() - 1
            });
            let cpu = if turn.cpu == 0 { String::new() } else { format!("@{}", turn.cpu) };
            words.push(format!("{number}{}{cpu}", letter(turn.out)));
        }
        (tasks, words.chunks(TURNS_A_LINE).map(|line| line.join(" ")).collect())
    }
}

const fn letter(out: SwitchOut) -> char {
    match out {
        SwitchOut::Preempted => 'p',
        SwitchOut::Yielded => 'y',
        SwitchOut::Sleeping => 's',
        SwitchOut::BlockedIo => 'd',
        SwitchOut::Dead => 'x',
        SwitchOut::Idle => '-',
    }
}

impl TraceSink for Turns {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.names.set(id, info);
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Switch { next, out, .. } = event.kind {
            self.switch(event, next, out);
        }
    }
}

/// The turns of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnsEntry {
    /// Kernel and scheduler of the request.
    pub scheduler: String,
    /// Workload with its parameters.
    pub workload: String,
    /// Release of the kernel.
    pub kernel: String,
    /// SHA-256 of its file.
    pub kernel_sha256: String,
    /// QEMU.
    pub qemu: String,
    /// SHA-256 of the scheduler's object; `none`: the kernel's own scheduler.
    pub object: String,
    /// Hash of kernel, QEMU, machine and request, which must be equal for a comparison.
    pub conditions: String,
    /// The tasks that had turns.
    pub tasks: Vec<String>,
    /// The turns.
    pub turns: Vec<String>,
}

impl TurnsEntry {
    /// Makes an entry from a result of the vm lane.
    pub fn of(run: &RunResult, turns: &Turns) -> Self {
        let value = |name| run.machine.setting(name).unwrap_or_default().to_string();
        let parameters: Vec<String> =
            run.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (tasks, turns) = turns.lines();
        Self {
            scheduler: run.scheduler.clone(),
            workload: format!("{} {} seed={}", run.workload, parameters.join(" "), run.seed),
            kernel: run.machine.kernel.clone(),
            kernel_sha256: value("vm.kernel"),
            qemu: value("vm.qemu"),
            object: value("vm.object"),
            conditions: value("vm.turn_conditions"),
            tasks,
            turns,
        }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().flat_map(|line| line.split(' '))
    }

    /// Number of turns.
    pub fn len(&self) -> usize {
        self.words().count()
    }

    /// Whether no task had a turn.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Describes turn `at`.
    fn told(&self, at: usize) -> String {
        let Some(word) = self.words().nth(at) else {
            return format!("no more, after {} turns", self.len());
        };
        let end = word.find(|found: char| !found.is_ascii_digit()).unwrap_or(word.len());
        let task = word[..end].parse().ok().and_then(|at: usize| self.tasks.get(at));
        let how = SwitchOut::ALL.into_iter().find(|out| word[end..].starts_with(letter(*out)));
        format!("{} {}", task.map_or("?", String::as_str), how.map_or("?", SwitchOut::name))
    }

    /// Describes the first turn that differs from that of `found`; `None`: all are equal.
    pub fn difference(&self, found: &Self) -> Option<String> {
        let (count, other) = (self.len(), found.len());
        let at = (0..count.max(other)).find(|at| self.told(*at) != found.told(*at))?;
        let object = match self.object == found.object {
            true => "",
            false => " (the scheduler's object is another one)",
        };
        Some(format!(
            "turn {} of {count}: expected {}, found {}{object}",
            at + 1,
            self.told(at),
            found.told(at)
        ))
    }
}

impl GoldenEntry for TurnsEntry {
    const FORMAT: &'static str = "schedlab turns 1";
    const HOLDS: &'static str = "turns";

    fn is_for(&self, found: &Self) -> bool {
        self.scheduler == found.scheduler && self.conditions == found.conditions
    }
}

/// A file of them: entries by scheduler and workload.
pub type TurnsFile = GoldenFile<TurnsEntry>;

impl TurnsFile {
    /// Why there is no entry.
    pub fn why_none(&self, found: &TurnsEntry) -> String {
        let of_run = |entry: &&TurnsEntry| {
            entry.scheduler == found.scheduler && entry.workload == found.workload
        };
        let mut others = self.entries.iter().filter(of_run).peekable();
        if others.peek().is_none() {
            return "none for this run".into();
        }
        let differs = |what: fn(&TurnsEntry) -> &str| {
            self.entries.iter().filter(of_run).all(|entry| what(entry) != what(found))
        };
        if differs(|entry| &entry.kernel_sha256) {
            format!("none for kernel {}", found.kernel)
        } else if differs(|entry| &entry.qemu) {
            format!("none for {}", found.qemu)
        } else {
            "that of this kernel and QEMU is of another machine or request: bless anew".into()
        }
    }

    /// Adds an entry. It replaces the one that it would be compared with, or one of the same run on
    /// the same kernel and QEMU.
    pub fn bless(&mut self, found: TurnsEntry) {
        let is_same = |entry: &TurnsEntry| {
            entry.scheduler == found.scheduler
                && entry.workload == found.workload
                && entry.kernel_sha256 == found.kernel_sha256
                && entry.qemu == found.qemu
        };
        self.entries.retain(|entry| !entry.is_for(&found) && !is_same(entry));
        self.entries.push(found);
        let key = |entry: &TurnsEntry| (entry.scheduler.clone(), entry.workload.clone());
        self.entries.sort_by_key(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuId;

    const MS: Nanos = 1_000_000;

    fn turns(switches: &[(Nanos, Option<u32>, SwitchOut)]) -> Turns {
        let mut turns = Turns::default();
        for (id, name) in [(0, "a"), (1, "b")] {
            turns.task(TaskId(id), &TaskInfo { name: name.into(), ..TaskInfo::default() });
        }
        for (time_ns, next, out) in switches {
            let next = next.map(TaskId);
            let kind = EventKind::Switch { prev: None, next, out: *out };
            turns.event(&Event { time_ns: *time_ns, cpu: CpuId(0), kind });
        }
        turns
    }

    #[test]
    fn strangers_and_short_stays_are_left_out() {
        use SwitchOut::{Dead, Idle, Preempted, Sleeping};
        let found = turns(&[
            (0, Some(0), Idle),
            // A thread of the kernel runs in between: the turn stays the same.
            (MS, None, Preempted),
            (2 * MS, Some(0), Idle),
            (4 * MS, Some(1), Preempted),
            // A short stay: b runs only for a moment.
            (4 * MS + SHORT_NS - 1, Some(0), Sleeping),
            // Interrupted, and then another task runs.
            (8 * MS, None, Preempted),
            (9 * MS, Some(1), Idle),
            (12 * MS, Some(0), Preempted),
            (13 * MS, None, Dead),
        ]);
        let expected: Vec<String> = vec!["0p 1p 0x".into()];
        assert_eq!(found.lines(), (vec!["a".into(), "b".into()], expected));
    }

    fn entry(turns: &[&str]) -> TurnsEntry {
        TurnsEntry {
            scheduler: "6.18:rr".into(),
            workload: "hogs n=2".into(),
            kernel: "6.18.1".into(),
            kernel_sha256: "k".into(),
            qemu: "QEMU".into(),
            object: "o".into(),
            conditions: "c".into(),
            tasks: vec!["a".into(), "b".into()],
            turns: turns.iter().map(|line| (*line).into()).collect(),
        }
    }

    #[test]
    fn the_first_turn_that_differs_is_named() {
        let golden = entry(&["0p 1p", "0x 1x"]);
        assert_eq!(golden.difference(&entry(&["0p 1p 0x 1x"])), None, "lines mean nothing");
        let text = golden.difference(&entry(&["0p 1p 1x 0x"])).unwrap();
        assert_eq!(text, "turn 3 of 4: expected a exited, found b exited");
        let other = TurnsEntry { object: "p".into(), ..entry(&["0p 1y 0x 1x"]) };
        let text = golden.difference(&other).unwrap();
        assert!(text.contains("expected b preempted, found b yielded (the scheduler's"), "{text}");
        let text = golden.difference(&entry(&["0p 1p 0x"])).unwrap();
        assert!(text.contains("found no more, after 3 turns"), "{text}");
    }

    #[test]
    fn an_entry_is_found_by_its_conditions_or_it_is_said_why_not() {
        let mut file = TurnsFile::default();
        file.bless(entry(&["0p"]));
        file.bless(entry(&["0x"]));
        assert_eq!(file.entries.len(), 1);
        assert_eq!(TurnsFile::read(&file.text()), Ok(file.clone()));
        let found = entry(&["1x"]);
        assert_eq!(file.find(&found).unwrap().turns, ["0x"]);
        let stale = TurnsEntry { conditions: "d".into(), ..found.clone() };
        assert!(file.find(&stale).is_none());
        assert!(file.why_none(&stale).contains("bless anew"));
        let kernel = TurnsEntry { kernel_sha256: "l".into(), ..stale.clone() };
        assert_eq!(file.why_none(&kernel), "none for kernel 6.18.1");
        let qemu = TurnsEntry { qemu: "QEMU 9".into(), ..stale.clone() };
        assert_eq!(file.why_none(&qemu), "none for QEMU 9");
        let run = TurnsEntry { workload: "x".into(), ..stale };
        assert_eq!(file.why_none(&run), "none for this run");
        assert!(TurnsFile::read("{}").unwrap_err().contains("no file of turns"));
    }
}
