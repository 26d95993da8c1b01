// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the engine's tests share: running a workload into memory, short ways to describe tasks, the
//! fixed workloads and the checks of the conformance suite.
#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub mod checks;
pub mod workloads;

use schedlab_engine::{SimConfig, SimError, SimOutcome, simulate};
use schedlab_model::trace::MemorySink;
use schedlab_model::{Costs, EventKind, Machine, Nanos, TaskId, Workload};
use schedlab_sched::Scheduler;
use schedlab_sched::boundary::options::Options;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// One second.
pub const S: Nanos = 1_000 * MS;

/// Everything that determines a run.
#[derive(Clone)]
pub struct Case<'a> {
    pub workload: &'a Workload,
    pub scheduler: &'a Scheduler,
    pub options: Options,
    pub machine: Machine,
    pub seed: u64,
    pub until_ns: Option<Nanos>,
    pub watchdog_ns: Option<Nanos>,
    /// Whether Linux models are held to a bound on how long a CPU idles beside a waiting task.
    pub judges_balance: bool,
}

/// A run that ended well.
pub struct Run {
    pub outcome: SimOutcome,
    pub trace: MemorySink,
}

impl<'a> Case<'a> {
    /// `workload` under `scheduler` with its defaults, on `nr_cpus` CPUs where nothing costs time.
    pub fn new(workload: &'a Workload, scheduler: &'a Scheduler, nr_cpus: u32) -> Self {
        Self {
            workload,
            scheduler,
            options: Options::defaults(&scheduler.tunables),
            machine: Machine { costs: Costs::ZERO, ..Machine::flat(nr_cpus) },
            seed: 1,
            until_ns: None,
            watchdog_ns: scheduler.claims.starvation_free.then_some(10 * S),
            judges_balance: true,
        }
    }

    /// Runs it.
    pub fn run(&self) -> Result<Run, SimError> {
        let mut trace = MemorySink::default();
        let config = SimConfig {
            machine: &self.machine,
            scheduler: self.scheduler,
            options: &self.options,
            seed: self.seed,
            until_ns: self.until_ns,
            watchdog_ns: self.watchdog_ns,
        };
        let outcome = simulate(self.workload, &config, &mut trace, None)?;
        Ok(Run { outcome, trace })
    }

    /// For messages: scheduler, workload, machine, seed.
    pub fn describe(&self) -> String {
        let costs = if self.machine.costs == Costs::ZERO { "no" } else { "with" };
        format!(
            "{} on {:?}, {} CPUs, HZ={}, {costs} costs, seed {}",
            self.scheduler.name,
            self.workload.name,
            self.machine.nr_cpus(),
            self.machine.hz,
            self.seed
        )
    }
}

fn time(ns: Nanos) -> String {
    match ns % MS {
        0 => (ns / MS).to_string(),
        part => format!("{}.{part:06}", ns / MS),
    }
}

/// "0A 4B 8-": at 0 ms a CPU starts A, at 4 ms B, at 8 ms it goes idle.
pub fn timeline(run: &Run) -> String {
    let switches = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { next, .. } => {
            let letter = next.map_or('-', |task| char::from(b'A' + task.0 as u8));
            Some(format!("{}{letter}", time(event.time_ns)))
        }
        _ => None,
    });
    switches.collect::<Vec<_>>().join(" ")
}

/// "A6 B6": on a machine of one CPU, A ran for 6 ticks of this length, then B for 6; "-" is idle.
/// Tasks have letters in order of their ids. A task that is chosen again is not told apart.
pub fn turns(run: &Run, tick: Nanos) -> String {
    let mut turns = Vec::new();
    let mut since: (Option<TaskId>, Nanos) = (None, 0);
    let switches = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { next, .. } => Some((next, event.time_ns)),
        _ => None,
    });
    for (next, at) in switches.chain([(None, run.trace.end_ns)]) {
        if at > since.1 {
            let letter = since.0.map_or('-', |task| char::from(b'A' + task.0 as u8));
            let (ticks, rest) = ((at - since.1) / tick, (at - since.1) % tick);
            let rest = if rest == 0 { String::new() } else { format!("+{}ms", rest / MS) };
            turns.push(format!("{letter}{ticks}{rest}"));
        }
        since = (next, at);
    }
    turns.join(" ")
}
