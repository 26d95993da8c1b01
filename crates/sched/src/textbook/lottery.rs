// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lottery scheduling: each quantum goes to the holder of a ticket drawn at random.
//!
//! Source: Waldspurger and Weihl, "Lottery Scheduling: Flexible Proportional-Share Resource
//! Management", OSDI 1994. A task holds as many tickets as its nice value weighs (1,024 at nice 0).
//! Draws come from the run's seeded stream. A task that arrives waits for the next draw.
//!
//! Compensation tickets (section 3.4 of the paper): a task may block or yield after only the part f
//! of its quantum. It then holds 1/f times its tickets until its next turn begins, so that it gets
//! its share although it never uses whole quanta. f counts as at least 2^-20.
//!
//! Left out: currencies, ticket transfers and inflation by the tasks themselves (sections 3.1 to
//! 3.3).

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::boundary::options::{Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Tickets;
use crate::textbook::rr::QUANTUM;
use crate::textbook::rules::{Discipline, TurnEnd};
use schedlab_model::weights::nice_weight;
use schedlab_model::{Costs, Nanos, Preempt, TaskId};

const COMPENSATION: Tunable = Tunable::new(
    "compensation",
    TunableKind::words(&["off", "on"]),
    1,
    "more tickets for a task that did not use its whole quantum",
);

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "lottery".into(),
        summary: "lottery: each quantum goes to a ticket drawn at random; tickets follow nice"
            .into(),
        source: "Waldspurger and Weihl: Lottery Scheduling, OSDI 1994".into(),
        leaves_out: "currencies, ticket transfers and inflation; policies and priorities are \
                     ignored"
            .into(),
        // Shares are equal and waits are bounded only in expectation.
        claims: Claims {
            work_conserving: true,
            starvation_free: false,
            fair: false,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![QUANTUM, COMPENSATION],
        digest: None,
        make: Make::new(|options, machine, _| {
            let rules = Lottery {
                quantum: options.get(&QUANTUM.name),
                compensates: options.get(&COMPENSATION.name) == 1,
                used: Vec::new(),
            };
            vec![Box::new(Global::new(rules, machine.nr_cpus()))]
        }),
    }
}

/// Least part of a quantum that compensation counts, as a power of 1/2. It limits the sum of all
/// tickets: 4,194,304 tasks x 88,761 x 2^20 < 2^64.
const LEAST_PART_SHIFT: u32 = 20;

/// The rules.
#[derive(Debug)]
struct Lottery {
    quantum: Nanos,
    compensates: bool,
    /// By task: how much of its last quantum it used, if not all.
    used: Vec<Option<Nanos>>,
}

impl Lottery {
    /// Handles the end of a turn of `ran` ns for the reason `why`.
    fn account(&mut self, task: TaskId, why: TurnEnd, ran: Nanos) {
        let part = matches!(why, TurnEnd::Yielded | TurnEnd::Blocked) && ran < self.quantum;
        self.used[task.index()] = (self.compensates && part).then_some(ran);
    }

    fn tickets(&self, core: &Core, task: TaskId) -> u64 {
        let weight = nice_weight(core.task(task).attr.nice);
        match self.used[task.index()] {
            None => weight,
            Some(used) => {
                let used = used.max(self.quantum >> LEAST_PART_SHIFT).max(1);
                (u128::from(weight) * u128::from(self.quantum) / u128::from(used)) as u64
            }
        }
    }
}

impl Discipline for Lottery {
    type Pool = Tickets;

    fn name(&self) -> &'static str {
        "lottery"
    }

    fn task_new(&mut self, _core: &Core, task: TaskId) {
        self.used.resize(task.index() + 1, None);
    }

    fn join(&mut self, _core: &Core, _task: TaskId, _running: bool, _flags: EnqueueFlags) {}

    fn requeue(&mut self, _core: &Core, task: TaskId, why: TurnEnd, ran: Nanos) {
        self.account(task, why, ran);
    }

    fn leave(&mut self, _core: &Core, task: TaskId, flags: DequeueFlags, ran: Option<Nanos>) {
        if let Some(ran) = ran {
            let why = if flags.save { TurnEnd::Preempted } else { TurnEnd::Blocked };
            self.account(task, why, ran);
        }
    }

    fn key(&self, core: &Core, task: TaskId) -> u64 {
        self.tickets(core, task)
    }

    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        Some(self.quantum)
    }

    fn begin_turn(&mut self, _core: &Core, task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        self.used[task.index()] = None;
        left.or(Some(self.quantum))
    }

    /// The rule of tasks that no draw selected. If there was a draw, the pool knows the ticket.
    fn rule(&self) -> Rule {
        Rule::Unstated
    }

    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let mut facts = vec![
            Fact::number("nice", core.task(task).attr.nice),
            Fact::number("tickets_now", self.tickets(core, task)),
        ];
        if let Some(used) = self.used[task.index()] {
            facts.push(Fact::ns("used_of_quantum", used));
        }
        facts
    }

    fn queue_facts(&self, _core: &Core) -> Vec<Fact> {
        vec![Fact::ns("quantum", self.quantum)]
    }
}
