// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stride scheduling: the deterministic counterpart of the lottery.
//!
//! Source: Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource
//! Management", MIT/LCS/TM-528, 1995, section 2 with dynamic participation and nonuniform quanta.
//!
//! A task's stride is inverse to its tickets (the weight of its nice value). Its pass advances by
//! one stride for each quantum that it runs, and by the corresponding part of it for a part of a
//! quantum. The least pass runs next; equal passes run in order of task ids. The global pass is
//! that of an average task. A task that sleeps keeps its distance from it (`remain`) and returns at
//! that distance, so sleeping neither saves up time nor loses it. A new task starts one stride
//! ahead of the global pass. A change of tickets rescales the distance. A task that arrives waits
//! for the end of a quantum.
//!
//! The paper does not describe several CPUs. Here the global pass advances with the CPU time that
//! all CPUs spend on tasks. Left out: the hierarchical form, which bounds the error by the
//! logarithm of the number of tasks.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Ordered;
use crate::textbook::rr::QUANTUM;
use crate::textbook::rules::{Discipline, TurnEnd};
use schedlab_model::weights::nice_weight;
use schedlab_model::{Costs, Nanos, Preempt, TaskId};

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "stride".into(),
        summary: "stride: proportional shares without chance; tickets follow nice".into(),
        source: "Waldspurger and Weihl: Stride Scheduling, MIT/LCS/TM-528, 1995".into(),
        leaves_out: "hierarchical strides, ticket transfers; policies and priorities are ignored"
            .into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![QUANTUM],
        digest: None,
        make: Make::new(|options, machine, _| {
            let rules = Stride { quantum: options.get(&QUANTUM.name), ..Stride::default() };
            vec![Box::new(Global::new(rules, machine.nr_cpus()))]
        }),
    }
}

/// Pass of one ticket for one quantum (`stride1`). The paper has 2^20. With 2^50, the rounding of a
/// turn amounts to less than 0.1 ns of CPU time at quanta up to 1 s.
const STRIDE1: i128 = 1 << 50;

/// A task's account.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    tickets: i128,
    /// Its pass while it is runnable.
    pass: i128,
    /// Its pass minus the global pass while it is not runnable.
    remain: i128,
}

/// The rules.
#[derive(Debug, Default)]
struct Stride {
    quantum: Nanos,
    accounts: Vec<Account>,
    /// Tickets of all runnable tasks.
    global_tickets: i128,
    global_pass: i128,
    updated_at: Nanos,
    /// Tasks that run now.
    nr_running: i128,
}

impl Stride {
    /// How much `ns` of CPU time add to the pass of a holder of `tickets`.
    fn advance(&self, ns: i128, tickets: i128) -> i128 {
        STRIDE1 * ns / (tickets * i128::from(self.quantum))
    }

    /// Updates the global pass to now. Called before tickets or the number of running tasks change.
    fn update_global_pass(&mut self, core: &Core) {
        let elapsed = i128::from(core.now - self.updated_at);
        self.updated_at = core.now;
        if self.global_tickets > 0 {
            self.global_pass += self.advance(elapsed * self.nr_running, self.global_tickets);
        }
    }

    fn turn_ended(&mut self, core: &Core, task: TaskId, ran: Nanos) {
        self.update_global_pass(core);
        self.nr_running -= 1;
        let tickets = self.accounts[task.index()].tickets;
        let step = self.advance(i128::from(ran), tickets);
        self.accounts[task.index()].pass += step;
    }
}

impl Discipline for Stride {
    type Pool = Ordered<i128>;

    fn name(&self) -> &'static str {
        "stride"
    }

    fn task_new(&mut self, _core: &Core, task: TaskId) {
        self.accounts.resize(task.index() + 1, Account::default());
    }

    fn join(&mut self, core: &Core, task: TaskId, _running: bool, _flags: EnqueueFlags) {
        self.update_global_pass(core);
        let tickets = i128::from(nice_weight(core.task(task).attr.nice));
        let account = &mut self.accounts[task.index()];
        if account.tickets == 0 {
            account.remain = STRIDE1 / tickets;
        } else if account.tickets != tickets {
            account.remain = account.remain * account.tickets / tickets;
        }
        account.tickets = tickets;
        account.pass = self.global_pass + account.remain;
        self.global_tickets += tickets;
    }

    fn requeue(&mut self, core: &Core, task: TaskId, _why: TurnEnd, ran: Nanos) {
        self.turn_ended(core, task, ran);
    }

    fn leave(&mut self, core: &Core, task: TaskId, _flags: DequeueFlags, ran: Option<Nanos>) {
        match ran {
            Some(ran) => self.turn_ended(core, task, ran),
            None => self.update_global_pass(core),
        }
        let account = &mut self.accounts[task.index()];
        account.remain = account.pass - self.global_pass;
        self.global_tickets -= account.tickets;
    }

    fn key(&self, _core: &Core, task: TaskId) -> i128 {
        self.accounts[task.index()].pass
    }

    fn quantum(&self, _core: &Core, _task: TaskId) -> Option<Nanos> {
        Some(self.quantum)
    }

    fn begin_turn(&mut self, core: &Core, _task: TaskId, left: Option<Nanos>) -> Option<Nanos> {
        self.update_global_pass(core);
        self.nr_running += 1;
        left.or(Some(self.quantum))
    }

    fn rule(&self) -> Rule {
        Rule::Least { keys: &["pass"], text: "the least pass" }
    }

    /// Shows the pass as its distance from the global pass, in 2^-50 of a stride of one ticket.
    fn facts(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        let account = &self.accounts[task.index()];
        let pass = account.pass - self.global_pass;
        let stride = STRIDE1 / account.tickets.max(1);
        vec![
            Fact::number("pass", pass.clamp(i64::MIN.into(), i64::MAX.into())),
            Fact::number("stride", stride),
            Fact::number("tickets", account.tickets),
        ]
    }
}
