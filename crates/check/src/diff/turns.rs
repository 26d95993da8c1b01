// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two recorded runs on one CPU: the first decision that differs.
//!
//! Runs of real kernels have no common clock: each has costs of its own, and threads of the kernel
//! pass. So *turns* are compared, not times: the n-th turn of one run with the n-th of the other. A
//! turn lasts from when a task is picked until it leaves the CPU for another task of the run, or to
//! sleep; threads outside of the run interrupt it only.
//!
//! A difference has one of two causes. Either the same tasks wait in both runs, and the schedulers
//! choose otherwise; or the times have moved so far that other tasks wait, or that the task ends
//! its work first: then neither scheduler decided anything else. The same holds for tasks that
//! start together: a launcher makes them one after the other.

use super::labels::{Label, Labels};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, EventKind, Nanos, SwitchOut, TaskId, TraceSink, Workload};
use std::collections::BTreeMap;

/// Keeps a whole trace.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    tasks: Vec<TaskInfo>,
    events: Vec<Event>,
    end_ns: Nanos,
}

impl TraceSink for Recording {
    fn task(&mut self, _id: TaskId, info: &TaskInfo) {
        self.tasks.push(info.clone());
    }

    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = end_ns;
    }
}

/// A task that could run at a decision, as far as the trace tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runnable {
    /// Its name.
    pub name: String,
    /// How long it has waited (ns); `None`: it runs.
    pub waited_ns: Option<Nanos>,
    /// Its CPU time so far (ns).
    pub ran_ns: Nanos,
    label: Label,
}

/// What one run did at the first difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnSide {
    /// Time of the decision in this run (ns).
    pub time_ns: Nanos,
    /// What it did, as the rest of a sentence.
    pub did: String,
    /// The tasks that could run just before.
    pub runnable: Vec<Runnable>,
}

/// The first turn that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnDifference {
    /// Why other times alone explain it; `None`: the schedulers choose otherwise.
    pub timing: Option<String>,
    /// What A and B did.
    pub sides: [TurnSide; 2],
}

/// The result of a comparison of two recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnDiff {
    /// Number of equal turns before the first difference, or of all.
    pub nr_equal: u64,
    /// How far equal turns begin apart, at most (ns).
    pub apart_ns_max: Nanos,
    /// The first difference.
    pub first: Option<TurnDifference>,
    /// Why nothing can be compared from some point on: events were lost.
    pub stopped: Option<String>,
}

/// A turn of a task on the CPU.
#[derive(Clone, Copy, Debug)]
struct Turn {
    task: TaskId,
    label: Label,
    start_ns: Nanos,
    end_ns: Nanos,
    /// CPU time of the task in the turn.
    ran_ns: Nanos,
    /// Why it ended; `None`: the run ended first.
    out: Option<SwitchOut>,
}

impl Turn {
    fn is_preempted(&self) -> bool {
        self.out == Some(SwitchOut::Preempted)
    }
}

/// Makes turns of events.
#[derive(Default)]
struct Turns {
    all: Vec<Turn>,
    /// Since when the task of the last turn runs; `None`: a thread outside of the run does.
    since: Option<Nanos>,
    is_open: bool,
    has_lost: bool,
}

impl Turns {
    fn of(recording: &Recording, workload: &Workload) -> Self {
        let mut labels = Labels::new(workload);
        recording.tasks.iter().for_each(|info| labels.announce(info));
        let mut turns = Self::default();
        for event in &recording.events {
            labels.see(event);
            match event.kind {
                EventKind::Switch { prev, next, out } => {
                    turns.switch(event.time_ns, prev, next.map(|id| (id, labels.of(id))), out);
                }
                EventKind::Lost { count } if count > 0 => {
                    turns.has_lost = true;
                    break;
                }
                _ => {}
            }
        }
        turns.pause(recording.end_ns);
        turns
    }

    fn switch(
        &mut self,
        now: Nanos,
        prev: Option<TaskId>,
        next: Option<(TaskId, Label)>,
        out: SwitchOut,
    ) {
        if prev.is_some() {
            self.pause(now);
            // A thread outside of the run may come between, and the task may go on after it.
            if next.is_some() || out != SwitchOut::Preempted {
                self.close(out);
            }
        }
        let Some((task, label)) = next else { return };
        if self.is_open && self.all.last().is_some_and(|turn| turn.task == task) {
            self.since = Some(now);
            return;
        }
        self.close(SwitchOut::Preempted);
        let turn = Turn { task, label, start_ns: now, end_ns: now, ran_ns: 0, out: None };
        self.all.push(turn);
        (self.since, self.is_open) = (Some(now), true);
    }

    fn pause(&mut self, now: Nanos) {
        if let (Some(since), Some(turn)) = (self.since.take(), self.all.last_mut()) {
            turn.ran_ns += now.saturating_sub(since);
            turn.end_ns = now;
        }
    }

    fn close(&mut self, out: SwitchOut) {
        if let Some(turn) = self.all.last_mut().filter(|_| self.is_open) {
            turn.out = Some(out);
        }
        self.is_open = false;
    }
}

/// Tasks that run or wait at some time of a recording.
struct State {
    labels: Labels,
    /// Since when each waits.
    waits: BTreeMap<TaskId, Nanos>,
    running: Option<(TaskId, Nanos)>,
    ran_ns: BTreeMap<TaskId, Nanos>,
}

impl State {
    /// The state after all events before `until`, or up to it if `is_after`.
    fn at(recording: &Recording, workload: &Workload, until: Nanos, is_after: bool) -> Self {
        let mut labels = Labels::new(workload);
        recording.tasks.iter().for_each(|info| labels.announce(info));
        let mut state =
            Self { labels, waits: BTreeMap::new(), running: None, ran_ns: BTreeMap::new() };
        let counts = |event: &&Event| event.time_ns < until || (is_after && event.time_ns == until);
        // A wake-up of the instant in question comes before its switch.
        let wakes = |event: &&Event| {
            let is_wakeup = matches!(event.kind, EventKind::Wakeup { .. } | EventKind::Fork { .. });
            event.time_ns == until && is_wakeup
        };
        let (before, rest): (Vec<&Event>, Vec<&Event>) =
            recording.events.iter().partition(|event| counts(event));
        for event in before.into_iter().chain(rest.into_iter().filter(wakes)) {
            state.see(event);
        }
        state
    }

    fn see(&mut self, event: &Event) {
        self.labels.see(event);
        let now = event.time_ns;
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                if let Some((task, since)) = self.running.take() {
                    *self.ran_ns.entry(task).or_default() += now.saturating_sub(since);
                }
                let stays = matches!(out, SwitchOut::Preempted | SwitchOut::Yielded);
                if let Some(prev) = prev.filter(|_| stays) {
                    self.waits.insert(prev, now);
                }
                if let Some(next) = next {
                    self.waits.remove(&next);
                    self.running = Some((next, now));
                }
            }
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. }
                if self.running.is_none_or(|(running, _)| running != task) =>
            {
                self.waits.entry(task).or_insert(now);
            }
            _ => {}
        }
    }

    fn runnable(&self, recording: &Recording, now: Nanos) -> Vec<Runnable> {
        let name = |task: TaskId| {
            let info = recording.tasks.get(task.index());
            info.map_or_else(|| format!("task {task}"), |info| info.name.clone())
        };
        let ran = |task: TaskId| self.ran_ns.get(&task).copied().unwrap_or_default();
        let running = self.running.map(|(task, since)| Runnable {
            name: name(task),
            waited_ns: None,
            ran_ns: ran(task) + now.saturating_sub(since),
            label: self.labels.of(task),
        });
        let waiting = self.waits.iter().map(|(task, since)| Runnable {
            name: name(*task),
            waited_ns: Some(now.saturating_sub(*since)),
            ran_ns: ran(*task),
            label: self.labels.of(*task),
        });
        running.into_iter().chain(waiting).collect()
    }
}

/// Compares two recordings of `workload` on one CPU. Turns that a preemption ends count as equal if
/// their CPU times differ by `tolerance_ns` at most.
pub fn compare_turns(
    workload: &Workload,
    recordings: &[Recording; 2],
    tolerance_ns: Nanos,
) -> TurnDiff {
    let turns = recordings.each_ref().map(|recording| Turns::of(recording, workload));
    let mut diff = TurnDiff { nr_equal: 0, apart_ns_max: 0, first: None, stopped: None };
    let [a, b] = turns.each_ref().map(|turns| turns.all.as_slice());
    let compared = Compared { workload, recordings, turns: [a, b], tolerance_ns };
    for index in 0..a.len().max(b.len()) {
        let Some((one, other)) = a.get(index).zip(b.get(index)) else {
            diff.first = compared.end(index);
            break;
        };
        if one.label != other.label {
            diff.first = Some(compared.pick(index));
            break;
        }
        diff.apart_ns_max = diff.apart_ns_max.max(one.start_ns.abs_diff(other.start_ns));
        if let Some(first) = compared.lengths(index) {
            diff.first = Some(first);
            break;
        }
        diff.nr_equal += 1;
    }
    let lost = turns.iter().position(|turns| turns.has_lost);
    if let (Some(side), None) = (lost, &diff.first) {
        diff.stopped = Some(format!("the trace of {} lost events", ["A", "B"][side]));
    }
    diff
}

struct Compared<'c> {
    workload: &'c Workload,
    recordings: &'c [Recording; 2],
    turns: [&'c [Turn]; 2],
    tolerance_ns: Nanos,
}

impl Compared<'_> {
    fn runnable(&self, side: usize, time_ns: Nanos, is_after: bool) -> Vec<Runnable> {
        let recording = &self.recordings[side];
        State::at(recording, self.workload, time_ns, is_after).runnable(recording, time_ns)
    }

    fn name(&self, side: usize, turn: &Turn) -> &str {
        let info = self.recordings[side].tasks.get(turn.task.index());
        info.map_or("a task", |info| info.name.as_str())
    }

    /// One run has no turn of this number: it has ended, or nobody can run any more.
    fn end(&self, index: usize) -> Option<TurnDifference> {
        let last = |side: usize| self.turns[side].last().copied();
        let longer = if self.turns[0].len() > index { 0 } else { 1 };
        let shorter = 1 - longer;
        let is_cut = last(shorter).is_none_or(|turn| turn.out.is_none());
        // Its other turns may come after the end of the shorter run.
        let next = self.turns[longer][index];
        if is_cut || next.start_ns + self.tolerance_ns >= self.recordings[shorter].end_ns {
            return None;
        }
        let at = self.recordings[shorter].end_ns;
        let side = |side: usize| match side == longer {
            true => self.picks(side, index),
            false => TurnSide {
                time_ns: at,
                did: "runs no task any more".into(),
                runnable: self.runnable(side, at, true),
            },
        };
        let timing = Some("one run has ended its work with fewer turns".into());
        Some(TurnDifference { timing, sides: [side(0), side(1)] })
    }

    fn picks(&self, side: usize, index: usize) -> TurnSide {
        let turn = &self.turns[side][index];
        TurnSide {
            time_ns: turn.start_ns,
            did: format!("picks {}", self.name(side, turn)),
            runnable: self.runnable(side, turn.start_ns, false),
        }
    }

    /// Both pick, but not the same task.
    fn pick(&self, index: usize) -> TurnDifference {
        let sides = [self.picks(0, index), self.picks(1, index)];
        let is_new = |side: usize| {
            let turns = self.turns[side];
            let picked = turns[index].task;
            turns[..index].iter().all(|turn| turn.task != picked)
        };
        let timing = other_tasks(&sides).or_else(|| {
            let why = "both tasks have not run yet, and the order of starts is the launcher's";
            (is_new(0) && is_new(1)).then(|| why.into())
        });
        TurnDifference { timing, sides }
    }

    /// The turn ends for another reason, or after another time.
    fn lengths(&self, index: usize) -> Option<TurnDifference> {
        let [one, other] = self.turns.map(|turns| turns[index]);
        // A task that leaves by itself does what its program says.
        let leaves = |turn: &Turn| turn.out.is_some() && !turn.is_preempted();
        if leaves(&one) && leaves(&other) {
            return None;
        }
        let is_near = one.ran_ns.abs_diff(other.ran_ns) <= self.tolerance_ns;
        // One that has the CPU at the end of its run would have gone on.
        let goes_on = |turn: &Turn, than: &Turn| {
            turn.out.is_none() && turn.ran_ns <= than.ran_ns + self.tolerance_ns
        };
        if goes_on(&one, &other) || goes_on(&other, &one) {
            return None;
        }
        if one.is_preempted() && other.is_preempted() && is_near {
            return None;
        }
        let early = usize::from(other.ran_ns < one.ran_ns);
        Some(self.ended(index, early, is_near))
    }

    /// The turn of the side `early` is shorter.
    fn ended(&self, index: usize, early: usize, is_near: bool) -> TurnDifference {
        let late = 1 - early;
        let [short, long] = [early, late].map(|side| self.turns[side][index]);
        let preemptor = self.turns[early].get(index + 1);
        let timing = if is_near {
            Some(
                "the task ends its work in one run just before it is preempted in the other".into(),
            )
        } else if !short.is_preempted() {
            Some("the task has less work, or waits earlier, in one run".into())
        } else {
            preemptor.and_then(|next| self.absent(late, &long, short.ran_ns, next))
        };
        let side = |side: usize| {
            let turn = &self.turns[side][index];
            let did = match (side == early, short.is_preempted()) {
                (true, true) => self.preempts(side, index),
                (false, true) => format!(
                    "lets {} run on, for {} in all",
                    self.name(side, turn),
                    millis(turn.ran_ns)
                ),
                _ => self.ends(side, index),
            };
            let time_ns = match side == early {
                true => turn.end_ns,
                false => (turn.start_ns + short.ran_ns).min(turn.end_ns),
            };
            TurnSide { time_ns, did, runnable: self.runnable(side, time_ns, false) }
        };
        TurnDifference { timing, sides: [side(0), side(1)] }
    }

    fn preempts(&self, side: usize, index: usize) -> String {
        let turn = &self.turns[side][index];
        let after = millis(turn.ran_ns);
        match self.turns[side].get(index + 1) {
            Some(next) => {
                format!(
                    "preempts {} after {after} and picks {}",
                    self.name(side, turn),
                    self.name(side, next)
                )
            }
            None => format!("preempts {} after {after}", self.name(side, turn)),
        }
    }

    fn ends(&self, side: usize, index: usize) -> String {
        let turn = &self.turns[side][index];
        let (name, after) = (self.name(side, turn), millis(turn.ran_ns));
        match turn.out {
            Some(SwitchOut::Preempted) => self.preempts(side, index),
            Some(SwitchOut::Dead) => format!("runs {name} for {after}, until it exits"),
            Some(SwitchOut::Yielded) => format!("runs {name} for {after}, until it yields"),
            Some(_) => format!("runs {name} for {after}, until it sleeps"),
            None => format!("runs {name} for {after}, until the run ends"),
        }
    }

    /// Why the side `late` could not have picked `next` when its turn was as long as `ran_ns`.
    fn absent(&self, late: usize, turn: &Turn, ran_ns: Nanos, next: &Turn) -> Option<String> {
        let at = (turn.start_ns + ran_ns + self.tolerance_ns).min(turn.end_ns);
        let runnable = self.runnable(late, at, true);
        // Its label while it waited: a task that has run has another.
        let waited = State::at(&self.recordings[1 - late], self.workload, next.start_ns, false);
        let label = waited.labels.of(next.task);
        if runnable.iter().any(|task| task.label == label && task.waited_ns.is_some()) {
            return None;
        }
        let who = self.name(1 - late, next);
        Some(format!("{who} is not runnable at that time in {}", ["A", "B"][late]))
    }
}

/// Which tasks could run on one side only.
fn other_tasks(sides: &[TurnSide; 2]) -> Option<String> {
    let labels = |side: &TurnSide| {
        let mut labels: Vec<Label> = side.runnable.iter().map(|task| task.label).collect();
        labels.sort_unstable();
        labels
    };
    let [a, b] = [labels(&sides[0]), labels(&sides[1])];
    if a == b {
        return None;
    }
    let only = |side: &TurnSide, others: &[Label]| {
        let names = side.runnable.iter().filter(|task| !others.contains(&task.label));
        names.map(|task| task.name.clone()).collect::<Vec<_>>()
    };
    let parts = [(only(&sides[0], &b), "A"), (only(&sides[1], &a), "B")];
    let parts = parts.into_iter().filter(|(names, _)| !names.is_empty());
    let parts: Vec<String> =
        parts.map(|(names, side)| format!("{} in {side} only", names.join(", "))).collect();
    Some(match parts.is_empty() {
        true => "the number of equal tasks that can run differs".into(),
        false => format!("other tasks can run: {}", parts.join(", ")),
    })
}

/// A time in words, such as `4.012 ms`.
fn millis(ns: Nanos) -> String {
    format!("{}.{:03} ms", ns / 1_000_000, ns % 1_000_000 / 1_000)
}

#[cfg(test)]
mod tests;
