// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two schedulers on one workload: the first decision that differs, and the first number
//! of their states that differs before it.
//!
//! Both runs advance together, instant by instant, so neither is kept. They end at the first
//! decision that differs. A decision is a switch, the CPU of a wake-up or a new task, or a
//! migration. Decisions of one time are compared as a set, because CPUs have no order. The choice
//! among equal tasks ([`labels`]) is no difference.

mod follow;
mod guide;
mod labels;
mod log;
mod states;
mod turns;

pub use follow::{Agreement, follow};
pub use guide::Counts;
pub use states::StateDifference;
pub use turns::{Recording, Runnable, TurnDiff, TurnDifference, TurnSide, compare_turns};

use crate::case::Case;
use crate::play::{Verdict, panic_text};
use crate::rules::{Breach, DECISIONS};
use crate::subject::Subject;
use log::{Act, Log, Moment, Tap, Watcher};
use schedlab_engine::{Decision, Observer, SimConfig, SimError, Simulation, grouped};
use schedlab_model::{CpuId, Event, EventKind, Machine, Nanos, TaskId, Workload};
use schedlab_sched::{Options, Scheduler};
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// One of two schedulers that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// Values of its tunables.
    pub options: &'a Options,
    /// The machine, with the preemption model of this side.
    pub machine: &'a Machine,
}

/// The run that both sides make.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Seed of the random numbers.
    pub seed: u64,
    /// End of the run (ns), if it does not end before.
    pub until_ns: Option<Nanos>,
}

impl<'a> Side<'a> {
    fn config(&self, setting: &Setting<'_>) -> SimConfig<'a> {
        SimConfig {
            machine: self.machine,
            scheduler: self.scheduler,
            options: self.options,
            seed: setting.seed,
            until_ns: setting.until_ns,
            watchdog_ns: None,
        }
    }
}

/// Why two schedulers cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffError {
    /// The side whose run failed: 0 or 1.
    pub side: usize,
    /// What happened.
    pub text: String,
    /// Whether the scheduler cannot run this workload at all.
    pub is_refusal: bool,
}

impl DiffError {
    fn of(side: usize, error: &SimError) -> Self {
        let failed = matches!(error, SimError::Scheduler { .. } | SimError::Failed { .. });
        Self { side, text: error.to_string(), is_refusal: !failed }
    }
}

impl fmt::Display for DiffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", ["A", "B"][self.side], self.text)
    }
}

/// What the two schedulers decided differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Both switch to another task, but not to the same.
    Pick,
    /// One switches, the other lets its task run or its CPU idle.
    Switch,
    /// They place a waking or new task on different CPUs.
    Placement,
    /// One moves a task, and the other does not, or to another CPU.
    Migration,
}

impl Kind {
    /// Name, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pick => "pick",
            Self::Switch => "switch",
            Self::Placement => "placement",
            Self::Migration => "migration",
        }
    }
}

/// What one side did at the first difference.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its act; `None`: it did nothing there.
    pub event: Option<Event>,
    /// The task that the CPU runs afterwards; `None`: idle.
    pub running: Option<TaskId>,
    /// Its last pick on the CPU up to this time, with the numbers that it compared.
    pub pick: Option<Decision>,
    /// For each CPU the running task, and how many tasks wait, after this time.
    pub cpus: Vec<(Option<TaskId>, usize)>,
}

/// The first decision that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Time (ns).
    pub time_ns: Nanos,
    /// The CPU; of a placement, that of A.
    pub cpu: CpuId,
    /// What differs.
    pub kind: Kind,
    /// What A and B did.
    pub sides: [Choice; 2],
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Diff {
    /// Number of equal decisions: all, or those before the first that differs.
    pub nr_equal: u64,
    /// The end of the comparison (ns): that of the runs, or the first difference.
    pub end_ns: Nanos,
    /// The first decision that differs.
    pub first: Option<Difference>,
    /// The first number that differs, before the first decision or at it.
    pub state: Option<StateDifference>,
    /// When A and B first chose different tasks that are equal (ns).
    pub renamed_ns: Option<Nanos>,
    /// Names of the tasks under A and under B.
    pub names: [Vec<String>; 2],
}

/// Compares the decisions of two schedulers. With `explains`, the classes state the numbers of
/// every pick: slower, and needed to explain the first difference.
///
/// # Errors
/// If a scheduler cannot run the workload, or fails before the first difference.
pub fn diff(
    setting: &Setting<'_>,
    sides: &[Side<'_>; 2],
    explains: bool,
) -> Result<Diff, DiffError> {
    // A class that finds its own state broken panics.
    let side = std::cell::Cell::new(0);
    let run = || compare(setting, sides, explains, &side);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = format!("the model found its own state broken: {}", panic_text(&*panic));
        Err(DiffError { side: side.get(), text, is_refusal: false })
    })
}

/// Plays `case` under both subjects. A first difference counts as a breach, so that the search and
/// the shrinker of cases work on it.
pub fn play_both(case: &Case, subjects: &[Subject; 2]) -> Verdict {
    let machines = subjects
        .each_ref()
        .map(|subject| Machine { preempt: subject.scheduler.preempt, ..case.machine.clone() });
    let side = |index: usize| Side {
        scheduler: &subjects[index].scheduler,
        options: &subjects[index].options,
        machine: &machines[index],
    };
    let setting = Setting { workload: &case.workload, seed: case.seed, until_ns: None };
    match diff(&setting, &[side(0), side(1)], false) {
        Ok(Diff { first: None, .. }) => Verdict::Passed,
        Ok(Diff { first: Some(first), names, .. }) => Verdict::Broken(Breach {
            rule: &DECISIONS,
            kind: "",
            time_ns: first.time_ns,
            cpu: Some(first.cpu),
            task: first.sides[0].running.map(|task| names[0][task.index()].clone()),
            text: format!("the first {} differs", first.kind.name()),
        }),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}

fn compare(
    setting: &Setting<'_>,
    sides: &[Side<'_>; 2],
    explains: bool,
    current: &std::cell::Cell<usize>,
) -> Result<Diff, DiffError> {
    let configs = sides.map(|side| side.config(setting));
    let mut workloads = Vec::new();
    for (side, config) in configs.iter().enumerate() {
        let workload = grouped(setting.workload, config);
        workloads.push(workload.map_err(|error| DiffError::of(side, &error))?);
    }
    let logs = sides.map(|side| Log::new(setting.workload, side.machine.nr_cpus()));
    let mut watchers = logs.each_ref().map(|log| Watcher(Rc::clone(log)));
    let mut observers =
        watchers.each_mut().map(|watcher| explains.then_some(watcher as &mut dyn Observer));
    let mut runs: Vec<Option<Simulation<'_, Tap>>> = Vec::new();
    for side in 0..2 {
        current.set(side);
        let (tap, observer) = (Tap(Rc::clone(&logs[side])), observers[side].take());
        let run = Simulation::new(&workloads[side], &configs[side], tap, observer);
        runs.push(Some(run.map_err(|error| DiffError::of(side, &error))?));
    }
    let mut lockstep = Lockstep { logs: &logs, found: Found::default() };
    // The side whose next instant is earlier advances, so neither runs ahead of the other.
    while let Some(side) = next_side(&runs) {
        current.set(side);
        let run = runs[side].as_mut().expect("it goes on");
        if !run.advance()
            && let Some(run) = runs[side].take()
        {
            let end_ns = run.now();
            // A side that is stopped after the other has decided otherwise was no cause.
            let outcome = run.finish().map_err(|error| DiffError::of(side, &error));
            let past = past(&runs).min(end_ns + 1);
            if lockstep.catch_up(past) {
                break;
            }
            outcome?;
            lockstep.found.end_ns = lockstep.found.end_ns.max(end_ns);
        }
        if lockstep.catch_up(past(&runs)) {
            break;
        }
    }
    let found = lockstep.found;
    let [a, b] = &logs;
    let names = [a, b].map(|log| std::mem::take(&mut log.borrow_mut().names));
    Ok(Diff {
        nr_equal: found.nr_equal,
        end_ns: found.first.as_ref().map_or(found.end_ns, |first| first.time_ns),
        first: found.first,
        state: found.state,
        renamed_ns: found.renamed_ns,
        names,
    })
}

/// The side that advances next.
fn next_side(runs: &[Option<Simulation<'_, Tap>>]) -> Option<usize> {
    let next = |side: &usize| runs[*side].as_ref().map_or(Nanos::MAX, Simulation::next_time);
    (0..2).filter(|side| runs[*side].is_some()).min_by_key(next)
}

/// Both sides have decided everything before this time (ns).
fn past(runs: &[Option<Simulation<'_, Tap>>]) -> Nanos {
    runs.iter().flatten().map(Simulation::next_time).min().unwrap_or(Nanos::MAX)
}

#[derive(Default)]
struct Found {
    nr_equal: u64,
    end_ns: Nanos,
    first: Option<Difference>,
    state: Option<StateDifference>,
    renamed_ns: Option<Nanos>,
}

struct Lockstep<'l> {
    logs: &'l [Rc<RefCell<Log>>; 2],
    found: Found,
}

impl Lockstep<'_> {
    /// Compares everything before `past`. Returns whether a decision differs.
    fn catch_up(&mut self, past: Nanos) -> bool {
        loop {
            let times = self.logs.each_ref().map(|log| log.borrow().first_time());
            let Some(time) = times.into_iter().flatten().min().filter(|time| *time < past) else {
                return false;
            };
            let [a, b] = self.logs.each_ref().map(|log| log.borrow_mut().take(time));
            let empty = || Moment { time_ns: time, ..Moment::default() };
            let (a, b) = (a.unwrap_or_else(empty), b.unwrap_or_else(empty));
            if self.found.state.is_none() {
                self.found.state = states::compare(&a, &b);
            }
            if a.acts != b.acts {
                self.found.first = Some(self.difference(&a, &b));
                return true;
            }
            self.found.nr_equal += a.acts.len() as u64;
            let same = |(one, other): (&Act, &Act)| one.event == other.event;
            if self.found.renamed_ns.is_none() && !a.acts.iter().zip(&b.acts).all(same) {
                self.found.renamed_ns = Some(time);
            }
        }
    }

    fn difference(&self, a: &Moment, b: &Moment) -> Difference {
        let (cpu, kind, acts) = first_of(&a.acts, &b.acts);
        let choice = |side: usize| {
            let log = self.logs[side].borrow();
            let waits =
                |cpu: usize| log.waits_on.values().filter(|place| place.index() == cpu).count();
            let own = acts[side].and_then(|act| act.pick.as_ref());
            let pick = own.or(log.last[cpu.index()].as_ref());
            Choice {
                event: acts[side].map(|act| act.event),
                running: log.running[cpu.index()],
                pick: pick.map(|pick| Decision::clone(pick)),
                cpus: (0..log.running.len()).map(|cpu| (log.running[cpu], waits(cpu))).collect(),
            }
        };
        Difference { time_ns: a.time_ns, cpu, kind, sides: [choice(0), choice(1)] }
    }
}

/// What differs first between the acts of one time, and the acts of both sides.
fn first_of<'m>(a: &'m [Act], b: &'m [Act]) -> (CpuId, Kind, [Option<&'m Act>; 2]) {
    // A task that is placed elsewhere is missing on one CPU and too much on another.
    for one in a {
        let Some((_, label)) = one.placed() else { continue };
        let is_twin = |act: &&Act| act.placed().is_some_and(|(_, other)| other == label);
        if let Some(other) = b.iter().find(is_twin)
            && other.event.cpu != one.event.cpu
        {
            return (one.event.cpu, Kind::Placement, [Some(one), Some(other)]);
        }
    }
    let equal = a.iter().zip(b).take_while(|(one, other)| one == other).count();
    let [one, other] = [a.get(equal), b.get(equal)];
    let cpus = [one, other].into_iter().flatten().map(|act| act.event.cpu);
    let cpu = cpus.min().unwrap_or(CpuId(0));
    let acts = [one, other].map(|act| act.filter(|act| act.event.cpu == cpu));
    let is_switch = |act: &Act| matches!(act.event.kind, EventKind::Switch { .. });
    let kind = match acts {
        [Some(one), Some(other)] if is_switch(one) && is_switch(other) => Kind::Pick,
        _ if acts.iter().flatten().any(|act| is_switch(act)) => Kind::Switch,
        _ => Kind::Migration,
    };
    (cpu, kind, acts)
}
