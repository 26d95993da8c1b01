// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that a pick of 2.4 compared: the goodness of every task in the queue, and its parts.

use super::{GlobalQueue, NONE};
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CpuId, TaskId};

const BEST: Rule = Rule::Greatest {
    keys: &["goodness", "position"],
    text: "the greatest goodness, the first one in the queue",
};

const NOT_TOLD: &str = "an idle CPU looks at the queue only when it is told of a task";

impl Explain for GlobalQueue {
    fn name(&self) -> &'static str {
        "2.4"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let state = &self.cpus[cpu.index()];
        let curr = core.rq(cpu).curr;
        let may_run = |task: &TaskId| self.can_schedule(core, task.0, cpu);
        let goodness =
            |task: TaskId| self.goodness(&self.tasks[task.index()], cpu, state.active_mm);
        let first = |task: TaskId| self.prev_first && curr == Some(task);
        // The first of equally good tasks; with `prev_first` the running task precedes all others.
        let mut chosen: Option<TaskId> = None;
        if !state.stayed_idle {
            for task in self.queued().filter(may_run) {
                let beats = chosen.is_none_or(|best| {
                    goodness(task) > goodness(best)
                        || (goodness(task) == goodness(best) && first(task))
                });
                if beats {
                    chosen = Some(task);
                }
            }
        }
        let nr_runnable = self.queued().filter(may_run).count();
        let rule = match nr_runnable {
            0 => Rule::Empty,
            _ if state.stayed_idle => Rule::HeldBack(NOT_TOLD),
            1 => Rule::Alone,
            _ => BEST,
        };
        let mut contest = Contest::nobody("2.4", rule);
        contest.facts = vec![
            Fact::number("nr_running", self.nr_running),
            Fact::number("epoch", self.epoch),
            Fact::flag("recalculated", state.recalculated),
        ];
        for (position, task) in self.queued().enumerate().filter(|(_, task)| may_run(task)) {
            let running = curr == Some(task);
            let is_shown = running || chosen == Some(task) || into.focus == Some(task);
            if contest.candidates.len() >= into.limit && !is_shown {
                contest.nr_omitted += 1;
                continue;
            }
            let place = if first(task) { -1 } else { position as i64 };
            let mut facts = vec![
                Fact::number("goodness", goodness(task)),
                Fact::number("position", place),
                Fact::flag("same_mm", state.active_mm == Some(self.tasks[task.index()].mm)),
            ];
            facts.extend(self.facts_of(task, cpu));
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: !state.stayed_idle,
                chosen: chosen == Some(task),
                facts,
            });
        }
        into.contests.push(contest);
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        let cpu = core.task(curr).cpu;
        let mm = Some(self.tasks[curr.index()].mm);
        let of = |task: TaskId| self.goodness(&self.tasks[task.index()], cpu, mm);
        vec![Fact::number("running.goodness", of(curr)), Fact::number("woken.goodness", of(woken))]
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        self.facts_of(task, core.task(task).cpu)
    }
}

impl GlobalQueue {
    /// Tasks of the queue from the head on.
    pub(super) fn queued(&self) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            (at != NONE).then(|| {
                let task = TaskId(at);
                at = self.tasks[task.index()].next;
                task
            })
        })
    }

    /// The explained values of `task` for `cpu`.
    pub(super) fn facts_of(&self, task: TaskId, cpu: CpuId) -> Vec<Fact> {
        let entry = &self.tasks[task.index()];
        let mut facts = vec![
            Fact::number("counter", self.counter(task)),
            Fact::number("epoch_ticks", entry.ticks),
            Fact::number("nice", entry.nice),
        ];
        if entry.rt_priority > 0 {
            facts.push(Fact::number("rt_priority", entry.rt_priority));
        }
        if entry.yielded {
            facts.push(Fact::flag("yielded", true));
        }
        if self.is_smp {
            facts.push(Fact::flag("ran_here", entry.processor == cpu.0));
        }
        facts
    }
}
