// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priority scheduling: not preemptive, preemptive, and preemptive with round robin among equals;
//! each with or without aging.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling.
//!
//! The level of a task is its kernel priority; lower is better. It is 99 - rt_priority (0 to 98)
//! for FIFO and RR, 120 + nice (100 to 139) for OTHER, BATCH, IDLE and EXT, and -1 for DEADLINE.
//! Equal levels run first come, first served; a preempted task stays at the head of its level.
//!
//! Aging: each whole interval that a task waits without a break raises it by one level, down to
//! level 0 at best. Among equals it keeps the place of its arrival. When it gets a CPU it returns
//! to its own level (`aging-reset dispatch`), or keeps the raised one until it blocks (`aging-reset
//! block`). In the preemptive forms a task that is raised above a running one takes its CPU at that
//! time. A task that got a CPU by aging and returned to its level is preempted only by a task that
//! arrives or is raised later. The task that it has just preempted does not preempt it. Otherwise
//! aging would give it no time at all. A raise costs O(log n) and happens at most once for each
//! level; raises without an effect in between are combined.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::{Ordered, Pool};
use crate::textbook::rr::QUANTUM;
use crate::textbook::rules::{Discipline, Positions, Ring, TurnEnd};
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{Costs, CpuId, Machine, Nanos, Preempt, TaskId};
use std::collections::BTreeSet;

/// Best level that aging can reach.
const LEVEL_BEST: i32 = 0;

const AGING: Tunable = Tunable::new(
    "aging",
    TunableKind::Time { min: 0, max: 86_400 * NSEC_PER_SEC },
    0,
    "waiting this long raises a task by one level; 0: no aging",
);
const AGING_RESET: Tunable = Tunable::new(
    "aging-reset",
    TunableKind::words(&["dispatch", "block"]),
    0,
    "when a raised task falls back to its own level",
);

/// Registry entry of priority scheduling without preemption.
pub fn priority() -> Scheduler {
    Scheduler {
        name: "priority".into(),
        summary: "best priority first; no preemption; optional aging".into(),
        source: "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling".into(),
        leaves_out: "no time slices: equal priorities run first come, first served".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: false,
            fair: false,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![AGING, AGING_RESET],
        digest: None,
        make: Make::new(|options, machine, _| {
            vec![Box::new(class("priority", false, None, options, machine))]
        }),
    }
}

/// Registry entry of preemptive priority scheduling.
pub fn priority_preemptive() -> Scheduler {
    Scheduler {
        name: "priority-preemptive".into(),
        summary: "best priority first; preemptive; optional aging".into(),
        make: Make::new(|options, machine, _| {
            vec![Box::new(class("priority-preemptive", true, None, options, machine))]
        }),
        ..priority()
    }
}

/// Registry entry of preemptive priority scheduling with round robin among equals.
pub fn priority_rr() -> Scheduler {
    Scheduler {
        name: "priority-rr".into(),
        summary: "best priority first, round robin among equals; preemptive; optional aging".into(),
        leaves_out: "the quantum is the same at every priority".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        tunables: vec![AGING, AGING_RESET, QUANTUM],
        make: Make::new(|options, machine, _| {
            let quantum = Some(options.get(&QUANTUM.name));
            vec![Box::new(class("priority-rr", true, quantum, options, machine))]
        }),
        ..priority()
    }
}

fn class(
    name: &'static str,
    preemptive: bool,
    quantum: Option<Nanos>,
    options: &Options,
    machine: &Machine,
) -> Global<Priority> {
    let rules = Priority {
        name,
        preemptive,
        quantum,
        aging: options.get(&AGING.name),
        reset_at_dispatch: options.get(&AGING_RESET.name) == 0,
        positions: Positions::default(),
        standings: Vec::new(),
        raises: BTreeSet::new(),
    };
    Global::new(rules, machine.nr_cpus())
}

/// The position of a task.
#[derive(Clone, Copy, Default, Debug)]
struct Standing {
    /// Level while it runs, or when its wait began.
    level: i32,
    /// When its wait began.
    waits_since: Option<Nanos>,
}

/// The rules.
#[derive(Debug)]
struct Priority {
    name: &'static str,
    preemptive: bool,
    quantum: Option<Nanos>,
    /// Interval of aging; 0: off.
    aging: Nanos,
    reset_at_dispatch: bool,
    positions: Positions,
    standings: Vec<Standing>,
    /// Time of each waiting task's next raise. Each raise is processed once.
    raises: BTreeSet<(Nanos, TaskId)>,
}

impl Priority {
    fn base(core: &Core, task: TaskId) -> i32 {
        core.task(task).prio
    }

    /// The level of `task` now, raised by its wait.
    fn level(&self, core: &Core, task: TaskId) -> i32 {
        let standing = self.standings[task.index()];
        match standing.waits_since {
            Some(since) if self.aging > 0 && standing.level > LEVEL_BEST => {
                let raised = (core.now - since) / self.aging;
                let most = (standing.level - LEVEL_BEST) as u64;
                standing.level - raised.min(most) as i32
            }
            _ => standing.level,
        }
    }

    /// Time of the next raise of waiting `task`.
    fn next_raise(&self, core: &Core, task: TaskId) -> Option<Nanos> {
        let since = self.standings[task.index()].waits_since?;
        if self.aging == 0 || self.level(core, task) <= LEVEL_BEST {
            return None;
        }
        let raised = (core.now - since) / self.aging;
        since.checked_add((raised + 1).checked_mul(self.aging)?)
    }

    fn start_wait(&mut self, core: &Core, task: TaskId, level: i32) {
        self.standings[task.index()] = Standing { level, waits_since: Some(core.now) };
        if let Some(at) = self.next_raise(core, task) {
            self.raises.insert((at, task));
        }
    }

    fn stop_wait(&mut self, core: &Core, task: TaskId) {
        if self.aging > 0
            && let Some(since) = self.standings[task.index()].waits_since
        {
            // The raise noted is the next one, or one that is due now and not yet processed.
            let raised = (core.now - since) / self.aging;
            for count in [raised, raised + 1] {
                self.raises.remove(&(since.saturating_add(count.saturating_mul(self.aging)), task));
            }
        }
        self.standings[task.index()].waits_since = None;
    }

    /// Moves raised tasks to their new place. Returns them.
    fn raise_due(&mut self, core: &Core, pool: &mut Ordered<(i32, i64)>) -> Vec<TaskId> {
        let mut raised = Vec::new();
        while let Some(&(at, task)) = self.raises.first() {
            if at > core.now {
                break;
            }
            self.raises.pop_first();
            if let Some(next) = self.next_raise(core, task) {
                self.raises.insert((next, task));
            }
            pool.rekey(task, self.key(core, task));
            raised.push(task);
        }
        raised
    }
}

impl Discipline for Priority {
    type Pool = Ordered<(i32, i64)>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn task_new(&mut self, core: &Core, task: TaskId) {
        self.standings.resize(task.index() + 1, Standing::default());
        self.standings[task.index()].level = Self::base(core, task);
    }

    fn join(&mut self, core: &Core, task: TaskId, running: bool, _flags: EnqueueFlags) {
        self.positions.arrive(task);
        let base = Self::base(core, task);
        if running {
            self.standings[task.index()] = Standing { level: base, waits_since: None };
        } else {
            self.start_wait(core, task, base);
        }
    }

    fn requeue(&mut self, core: &Core, task: TaskId, why: TurnEnd, _ran: Nanos) {
        self.positions.give_up(task, why);
        let level = self.standings[task.index()].level;
        self.start_wait(core, task, level);
    }

    fn leave(&mut self, core: &Core, task: TaskId, _flags: DequeueFlags, _ran: Option<Nanos>) {
        self.stop_wait(core, task);
        self.standings[task.index()].level = Self::base(core, task);
    }

    fn key(&self, core: &Core, task: TaskId) -> (i32, i64) {
        (self.level(core, task), self.positions.of(task))
    }

    fn preemptive(&self) -> bool {
        self.preemptive
    }

    fn rank(&self, core: &Core, task: TaskId) -> u64 {
        (self.level(core, task) + 1) as u64
    }

    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        self.quantum
    }

    fn begin_turn(&mut self, core: &Core, task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        let aged = self.level(core, task);
        self.stop_wait(core, task);
        self.standings[task.index()].level =
            if self.reset_at_dispatch { Self::base(core, task) } else { aged };
        left.or(self.quantum)
    }

    fn best(&mut self, core: &mut Core, pool: &mut Self::Pool, cpu: CpuId) -> Option<TaskId> {
        self.raise_due(core, pool);
        pool.best(core, cpu)
    }

    fn alarm(&self, _core: &Core) -> Option<Nanos> {
        // Without preemption nothing happens when a task is raised, until a CPU picks.
        let (at, _) = self.raises.first().filter(|_| self.preemptive)?;
        Some(*at)
    }

    fn ring(&mut self, core: &Core, pool: &mut Self::Pool) -> Ring {
        Ring::Raised(self.raise_due(core, pool))
    }

    fn rule(&self) -> Rule {
        let text = "the best level (least number), first come, first served among equals";
        Rule::Least { keys: &["level", "position"], text }
    }

    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let mut facts = vec![
            Fact::number("level", self.level(core, task)),
            Fact::number("position", self.positions.of(task)),
        ];
        if self.aging > 0 {
            let since = self.standings[task.index()].waits_since;
            facts.push(Fact::number("own_level", Self::base(core, task)));
            facts.push(Fact::ns("waited", since.map_or(0, |since| core.now - since)));
            facts.push(Fact::ns("aging", self.aging));
        }
        facts
    }
}
