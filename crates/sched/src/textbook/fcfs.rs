// SPDX-License-Identifier: MIT OR Apache-2.0
//! First come, first served: one FIFO queue for all CPUs, no preemption.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling. A task
//! that blocks is queued at the tail when it wakes, like a new task, and so is one that yields.
//! Policies, priorities and nice values are ignored: all tasks are equal.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::EnqueueFlags;
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Ordered;
use crate::textbook::rules::{Discipline, Positions, TurnEnd};
use schedlab_model::{Costs, Nanos, Preempt, TaskId};

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "fcfs".into(),
        summary: "first come, first served; no preemption".into(),
        source: "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling".into(),
        leaves_out: "policies, priorities and nice values are ignored".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: false,
            fair: false,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![],
        digest: None,
        make: Make::new(|_, machine, _| {
            vec![Box::new(Global::new(Fifo::new("fcfs", None), machine.nr_cpus()))]
        }),
    }
}

/// A FIFO queue, with or without a quantum.
#[derive(Debug)]
pub struct Fifo {
    name: &'static str,
    quantum: Option<Nanos>,
    positions: Positions,
}

impl Fifo {
    /// With `quantum` it is round robin.
    pub fn new(name: &'static str, quantum: Option<Nanos>) -> Self {
        Self { name, quantum, positions: Positions::default() }
    }
}

impl Discipline for Fifo {
    type Pool = Ordered<i64>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn join(&mut self, _core: &Core, task: TaskId, _running: bool, _flags: EnqueueFlags) {
        self.positions.arrive(task);
    }

    fn requeue(&mut self, _core: &Core, task: TaskId, why: TurnEnd, _ran: Nanos) {
        self.positions.give_up(task, why);
    }

    fn key(&self, _core: &Core, task: TaskId) -> i64 {
        self.positions.of(task)
    }

    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        self.quantum
    }

    fn rule(&self) -> Rule {
        Rule::Least { keys: &["position"], text: "the head of the queue" }
    }

    fn facts(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        vec![Fact::number("position", self.positions.of(task))]
    }
}
