// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multilevel queues: a task belongs to one queue permanently. Between queues there is either fixed
//! priority or a division of time.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling.
//!
//! The queue of a task: `realtime` for FIFO, RR and DEADLINE; `background` for BATCH, IDLE and nice
//! above 0; `foreground` for the rest. Each queue is round robin with its own quantum, or first
//! come, first served (quantum 0).
//!
//! Fixed priority (`multilevel`): a queue runs only while all queues above it are empty; an arrival
//! above preempts. Shares (`multilevel-timeshare`): there are two queues; `realtime` is part of
//! `foreground`. Time is divided into cycles from 0 on. The first part of each belongs to the
//! foreground, the rest to the background. The queue that owns the time runs first. While it is
//! empty the other one runs, until the owner has a task again. A preempted task returns to the head
//! of its queue with the rest of its quantum.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::EnqueueFlags;
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Ordered;
use crate::textbook::rr::{QUANTUM_DEFAULT, QUANTUM_MAX};
use crate::textbook::rules::{Discipline, Positions, Ring, TurnEnd};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{Costs, CpuId, Nanos, Policy, Preempt, SchedAttr, TaskId};

const fn quantum(name: &'static str, default: Nanos, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::Time { min: 0, max: QUANTUM_MAX }, default, text)
}
const QUANTUM_REALTIME: Tunable =
    quantum("quantum-realtime", QUANTUM_DEFAULT, "of the real-time queue; 0: FCFS");
const QUANTUM_FOREGROUND: Tunable =
    quantum("quantum-foreground", QUANTUM_DEFAULT, "of the foreground queue; 0: FCFS");
const QUANTUM_BACKGROUND: Tunable =
    quantum("quantum-background", 0, "of the background queue; 0: FCFS");
const CYCLE: Tunable = Tunable::new(
    "cycle",
    TunableKind::Time { min: 1_000, max: 3_600 * NSEC_PER_SEC },
    1_000 * NSEC_PER_MSEC,
    "length of the cycle that the queues share",
);
const FOREGROUND_SHARE: Tunable = Tunable::new(
    "foreground-share",
    TunableKind::Count { min: 0, max: 100 },
    80,
    "part of each cycle that belongs to the foreground, per cent",
);

/// Registry entry of fixed priority between queues.
pub fn multilevel() -> Scheduler {
    Scheduler {
        name: "multilevel".into(),
        summary: "multilevel queue: real-time, foreground, background; fixed priority between them"
            .into(),
        source: "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling".into(),
        leaves_out: "no order by priority or nice value within a queue".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: false,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![QUANTUM_REALTIME, QUANTUM_FOREGROUND, QUANTUM_BACKGROUND],
        digest: None,
        make: Make::new(|options, machine, _| {
            let quanta = [
                rr_quantum(options, &QUANTUM_REALTIME),
                rr_quantum(options, &QUANTUM_FOREGROUND),
                rr_quantum(options, &QUANTUM_BACKGROUND),
            ];
            let rules = Multilevel { name: "multilevel", quanta, ..Multilevel::default() };
            vec![Box::new(Global::new(rules, machine.nr_cpus()))]
        }),
    }
}

/// Registry entry of shares of time between queues.
pub fn multilevel_timeshare() -> Scheduler {
    Scheduler {
        name: "multilevel-timeshare".into(),
        summary: "multilevel queue: foreground and background, each with its share of the time"
            .into(),
        tunables: vec![QUANTUM_FOREGROUND, QUANTUM_BACKGROUND, CYCLE, FOREGROUND_SHARE],
        make: Make::new(|options, machine, _| {
            let foreground = rr_quantum(options, &QUANTUM_FOREGROUND);
            let quanta = [foreground, foreground, rr_quantum(options, &QUANTUM_BACKGROUND)];
            let length = options.get(&CYCLE.name);
            let share = u128::from(options.get(&FOREGROUND_SHARE.name));
            let foreground = (u128::from(length) * share / 100) as Nanos;
            let cycle = Some(Cycle { length, foreground });
            let rules =
                Multilevel { name: "multilevel-timeshare", quanta, cycle, ..Default::default() };
            vec![Box::new(Global::new(rules, machine.nr_cpus()))]
        }),
        ..multilevel()
    }
}

fn rr_quantum(options: &Options, tunable: &Tunable) -> Option<Nanos> {
    Some(options.get(&tunable.name)).filter(|quantum| *quantum > 0)
}

/// Number of a queue; 0 is the best.
type Queue = u8;
const REALTIME: Queue = 0;
const FOREGROUND: Queue = 1;
const BACKGROUND: Queue = 2;

fn queue_of(attr: &SchedAttr) -> Queue {
    match attr.policy {
        Policy::Fifo | Policy::Rr | Policy::Deadline => REALTIME,
        Policy::Batch | Policy::Idle => BACKGROUND,
        Policy::Normal | Policy::Ext if attr.nice > 0 => BACKGROUND,
        Policy::Normal | Policy::Ext => FOREGROUND,
    }
}

/// How two queues share the time.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    length: Nanos,
    /// The foreground's part, at the start of the cycle.
    foreground: Nanos,
}

impl Cycle {
    /// The queue that owns the time `now`.
    fn owner(&self, now: Nanos) -> Queue {
        if now % self.length < self.foreground { FOREGROUND } else { BACKGROUND }
    }

    /// When the owner next changes; never, if one queue owns everything.
    fn next_change(&self, now: Nanos) -> Option<Nanos> {
        if self.foreground == 0 || self.foreground == self.length {
            return None;
        }
        let begin = now - now % self.length;
        let part = if now - begin < self.foreground { self.foreground } else { self.length };
        begin.checked_add(part)
    }
}

/// The rules.
#[derive(Debug, Default)]
struct Multilevel {
    name: &'static str,
    /// Quantum of each queue; `None`: first come, first served.
    quanta: [Option<Nanos>; 3],
    /// Cycle of shares; `None`: fixed priority.
    cycle: Option<Cycle>,
    positions: Positions,
}

impl Multilevel {
    fn queue(&self, core: &Core, task: TaskId) -> Queue {
        let queue = queue_of(&core.task(task).attr);
        if self.cycle.is_some() { queue.max(FOREGROUND) } else { queue }
    }
}

impl Discipline for Multilevel {
    type Pool = Ordered<(Queue, i64)>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn join(&mut self, _core: &Core, task: TaskId, _running: bool, _flags: EnqueueFlags) {
        self.positions.arrive(task);
    }

    fn requeue(&mut self, _core: &Core, task: TaskId, why: TurnEnd, _ran: Nanos) {
        self.positions.give_up(task, why);
    }

    fn key(&self, core: &Core, task: TaskId) -> (Queue, i64) {
        (self.queue(core, task), self.positions.of(task))
    }

    fn preemptive(&self) -> bool {
        true
    }

    fn rank(&self, core: &Core, task: TaskId) -> u64 {
        let queue = self.queue(core, task);
        match self.cycle {
            None => u64::from(queue),
            Some(cycle) => u64::from(queue != cycle.owner(core.now)),
        }
    }

    fn quantum(&self, core: &Core, task: TaskId) -> Option<Nanos> {
        self.quanta[usize::from(self.queue(core, task))]
    }

    fn best(&mut self, core: &mut Core, pool: &mut Self::Pool, cpu: CpuId) -> Option<TaskId> {
        let owner = self.cycle.map_or(REALTIME, |cycle| cycle.owner(core.now));
        // The least entry not above the owner is the owner's, unless its queue is empty.
        let first = pool.first(core, cpu, Some((owner, i64::MIN)));
        let first = first.or_else(|| pool.first(core, cpu, None));
        first.map(|(_, task)| task)
    }

    fn alarm(&self, core: &Core) -> Option<Nanos> {
        self.cycle?.next_change(core.now)
    }

    fn ring(&mut self, _core: &Core, _pool: &mut Self::Pool) -> Ring {
        Ring::Reschedule
    }

    fn rule(&self) -> Rule {
        let text = match self.cycle {
            None => "the head of the best queue that is not empty",
            Some(_) => "the head of the queue that owns the time, else of the other",
        };
        Rule::Least { keys: &["not_owner", "queue", "position"], text }
    }

    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let queue = self.queue(core, task);
        let not_owner = self.cycle.is_some_and(|cycle| queue < cycle.owner(core.now));
        vec![
            Fact::word("name", ["real-time", "foreground", "background"][usize::from(queue)]),
            Fact::number("not_owner", u8::from(not_owner)),
            Fact::number("queue", queue),
            Fact::number("position", self.positions.of(task)),
        ]
    }

    fn queue_facts(&self, core: &Core) -> Vec<Fact> {
        match self.cycle {
            None => Vec::new(),
            Some(cycle) => vec![Fact::number("owner", cycle.owner(core.now))],
        }
    }
}
