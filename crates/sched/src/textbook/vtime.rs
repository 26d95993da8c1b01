// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighted virtual time, as in the simplest sched_ext scheduler.
//!
//! A task's virtual time grows by its running time, times 100 / its weight. Weights are the
//! kernel's on sched_ext's scale: 100 at nice 0, 8668 at nice -20, 1 at nice 19. The task with the
//! least virtual time runs next, for a slice; equal ones run in order of arrival. The clock is the
//! greatest virtual time with which a task has begun to run. A task that slept, or fell behind
//! otherwise, is placed at most one slice behind the clock; a new one begins at the clock.
//!
//! The kernel asks a sched_ext scheduler for the next task before it queues the leaving one, so the
//! latter is not a candidate while another task waits. Exactly two tasks that always run therefore
//! take turns whatever their weights are; weights count with three or more tasks. The model does
//! the same.
//!
//! Source: tools/sched_ext/scx_simple.bpf.c and kernel/sched/ext.c (Linux 6.12). That scheduler
//! does not charge a task that runs alone for its time before its last slice; the model charges all
//! of it.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Ordered;
use crate::textbook::rules::{Discipline, Sequence, TurnEnd};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC};
use schedlab_model::weights::task_weight;
use schedlab_model::{Costs, Nanos, Preempt, TaskId};

/// SCX_SLICE_DFL.
const SLICE_DEFAULT: Nanos = 20 * NSEC_PER_MSEC;

const SLICE: Tunable = Tunable::new(
    "slice",
    TunableKind::Time { min: 100 * NSEC_PER_USEC, max: 10 * NSEC_PER_SEC },
    SLICE_DEFAULT,
    "longest stay on a CPU while others wait",
);

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "vtime".into(),
        summary: "weighted virtual time, as the simplest of sched_ext's schedulers does it".into(),
        source: "scx_simple (Linux 6.12, tools/sched_ext), weights of kernel/sched/ext.c".into(),
        leaves_out:
            "one queue and one clock for all CPUs; slices end at their exact time; policies \
                 but SCHED_IDLE are ignored"
                .into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::DEFAULT,
        tunables: vec![SLICE],
        digest: None,
        make: Make::new(|options: &Options, machine, _| {
            let rules = Vtime { slice: options.get(&SLICE.name), ..Vtime::default() };
            vec![Box::new(Global::new(rules, machine.nr_cpus()))]
        }),
    }
}

/// The kernel's weight `weight` on the scale of control groups, on which nice 0 has 100.
fn scaled(weight: u64) -> i64 {
    ((weight * 100 + 512) / 1_024).clamp(1, 10_000) as i64
}

/// The scheduler's state of a task.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    vtime: i64,
    /// Its position among equal virtual times.
    place: i64,
}

/// The rules.
#[derive(Debug, Default)]
struct Vtime {
    slice: Nanos,
    clock: i64,
    accounts: Vec<Account>,
    sequence: Sequence,
}

impl Vtime {
    fn weight(core: &Core, task: TaskId) -> i64 {
        scaled(task_weight(&core.task(task).attr))
    }

    fn charge(&mut self, core: &Core, task: TaskId, ran: Nanos) {
        let step = i128::from(ran) * 100 / i128::from(Self::weight(core, task));
        let account = &mut self.accounts[task.index()];
        account.vtime = account.vtime.saturating_add(step.min(i64::MAX.into()) as i64);
    }

    /// Queues `task`, at most one slice behind the clock.
    fn queue(&mut self, task: TaskId) {
        let oldest = self.clock - self.slice as i64;
        let place = self.sequence.next_tail();
        let account = &mut self.accounts[task.index()];
        *account = Account { vtime: account.vtime.max(oldest), place };
    }
}

impl Discipline for Vtime {
    type Pool = Ordered<(i64, i64)>;

    fn name(&self) -> &'static str {
        "vtime"
    }

    fn task_new(&mut self, _core: &Core, task: TaskId) {
        self.accounts.resize(task.index() + 1, Account::default());
    }

    fn join(&mut self, _core: &Core, task: TaskId, _running: bool, flags: EnqueueFlags) {
        if flags.initial {
            self.accounts[task.index()].vtime = self.clock;
        }
        self.queue(task);
    }

    fn requeue(&mut self, core: &Core, task: TaskId, _why: TurnEnd, ran: Nanos) {
        self.charge(core, task, ran);
        self.queue(task);
    }

    fn leave(&mut self, core: &Core, task: TaskId, _flags: DequeueFlags, ran: Option<Nanos>) {
        self.charge(core, task, ran.unwrap_or(0));
    }

    fn key(&self, _core: &Core, task: TaskId) -> (i64, i64) {
        let account = &self.accounts[task.index()];
        (account.vtime, account.place)
    }

    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        Some(self.slice)
    }

    fn asks_before_requeue(&self) -> bool {
        true
    }

    fn begin_turn(&mut self, _core: &Core, task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        self.clock = self.clock.max(self.accounts[task.index()].vtime);
        left.or(Some(self.slice))
    }

    fn rule(&self) -> Rule {
        Rule::Least {
            keys: &["vtime", "place"],
            text: "the least virtual time; who gives up the CPU waits for the next choice",
        }
    }

    /// Shows virtual time as its distance from the clock.
    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let account = &self.accounts[task.index()];
        vec![
            Fact::number("vtime", account.vtime - self.clock),
            Fact::number("place", account.place),
            Fact::number("weight", Self::weight(core, task)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::weights::{IDLE_WEIGHT, NICE_WEIGHTS};

    #[test]
    fn weights_are_those_of_the_kernel() {
        // p->scx.weight of nice -20 to 19.
        let expected = [
            8668, 7007, 5516, 4519, 3544, 2847, 2271, 1827, 1460, 1164, 932, 744, 596, 479, 381,
            305, 244, 194, 155, 125, 100, 80, 64, 51, 41, 33, 27, 21, 17, 13, 11, 8, 7, 5, 4, 4, 3,
            2, 2, 1,
        ];
        assert_eq!(NICE_WEIGHTS.map(scaled), expected);
        assert_eq!(scaled(IDLE_WEIGHT), 1);
    }
}
