// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that a textbook scheduler compared: the key under which each task waits, and the rank
//! that decides preemption.

use super::Global;
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use crate::textbook::pool::Pool;
use crate::textbook::rules::Discipline;
use schedlab_model::{CpuId, TaskId};

/// How the last pick of a CPU was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Pick {
    /// Nothing to run.
    #[default]
    Nobody,
    /// The running task continues: its turn is not over and no other task outranks it.
    Keeps(TaskId),
    /// A waiting task outranks the running one.
    Outranks(TaskId),
    /// The best of the waiting tasks, which include the one that gave up its turn.
    Best(TaskId),
    /// The best of the others, after the running task gave up its turn.
    Next(TaskId),
}

impl<D: Discipline> Explain for Global<D> {
    fn name(&self) -> &'static str {
        self.rules.name()
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let pick = self.turns[cpu.index()].pick;
        let (chosen, considers_running) = match pick {
            Pick::Nobody => {
                into.contests.push(Contest::nobody(self.rules.name(), Rule::Empty));
                return;
            }
            Pick::Keeps(task) | Pick::Outranks(task) => (task, false),
            Pick::Best(task) | Pick::Next(task) => (task, true),
        };
        let gives_up = |task: TaskId| {
            matches!(pick, Pick::Next(_)) && core.rq(cpu).curr == Some(task) && task != chosen
        };
        let curr = core.rq(cpu).curr;
        let (mut waiting, nr_waiting) = self.pool.waiting(cpu, into.limit);
        for extra in [Some(chosen), into.focus].into_iter().flatten() {
            if self.pool.contains(extra) && !waiting.contains(&extra) {
                waiting.push(extra);
            }
        }
        // A task that continues is in no queue; one that blocked is not a candidate.
        let running = curr.filter(|curr| {
            *curr == chosen || (matches!(pick, Pick::Outranks(_)) && core.task(*curr).on_rq)
        });
        waiting.retain(|task| Some(*task) != running);
        let in_pool = running.is_some_and(|running| self.pool.contains(running));
        let total = nr_waiting + usize::from(running.is_some() && !in_pool);
        let shown: Vec<TaskId> = running.into_iter().chain(waiting).collect();
        let candidate = |task: TaskId| Candidate {
            who: Who::Task(task),
            running: curr == Some(task),
            considered: (considers_running || running != Some(task)) && !gives_up(task),
            chosen: task == chosen,
            facts: self.explain_task(core, task),
        };
        let rule = match pick {
            Pick::Keeps(_) if self.rules.preemptive() => {
                Rule::Keeps("its turn is not over and nobody outranks it")
            }
            Pick::Keeps(_) => Rule::Keeps("its turn is not over and nothing preempts it"),
            _ if total == 1 => Rule::Alone,
            _ => match self.pool.drawn() {
                Some((ticket, total)) => Rule::Drawn { ticket, total },
                None => self.rules.rule(),
            },
        };
        into.contests.push(Contest {
            class: self.rules.name(),
            group: None,
            rule,
            facts: self.rules.queue_facts(core),
            nr_omitted: total.saturating_sub(shown.len()) as u64,
            candidates: shown.into_iter().map(candidate).collect(),
        });
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        if !self.rules.preemptive() {
            return Vec::new();
        }
        vec![
            Fact::number("running.rank", self.rules.rank(core, curr)),
            Fact::number("woken.rank", self.rules.rank(core, woken)),
        ]
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let mut facts = self.rules.facts(core, task);
        if self.rules.preemptive() {
            facts.push(Fact::number("rank", self.rules.rank(core, task)));
        }
        if let Some((first, tickets)) = self.pool.range(task) {
            facts.push(Fact::number("first_ticket", first));
            facts.push(Fact::number("tickets", tickets));
        }
        facts
    }
}

impl Pick {
    /// The task that was picked.
    pub fn task(self) -> Option<TaskId> {
        match self {
            Self::Nobody => None,
            Self::Keeps(task) | Self::Outranks(task) | Self::Best(task) | Self::Next(task) => {
                Some(task)
            }
        }
    }
}
