// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that the deadline class compared: deadlines of tasks with budget.

use super::DlClass;
use super::queue::First;
use crate::boundary::core::Core;
use crate::boundary::explain::{
    Candidate, Contest, Explain, Explanation, Fact, Rule, Step, StepKind, Who,
};
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::{CpuId, TaskId};

const EARLIEST: Rule =
    Rule::Least { keys: &["deadline"], text: "the earliest deadline among those with budget" };

const OUT_OF_BUDGET: &str = "tasks out of budget wait for their next period";

const SERVED: &str = "the deadline of the fair server is earlier: fair tasks run";

impl Explain for DlClass {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let served = self.queues.first(cpu) == Some(First::Server);
        let first = self.queues.first_task(cpu).filter(|_| !served);
        let held_back: Vec<TaskId> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|task| {
                let t = core.task(*task);
                self.entity(*task).throttled && t.on_rq && t.cpu == cpu
            })
            .collect();
        let rule = match first {
            None if served && self.queues.first_task(cpu).is_some() => Rule::HeldBack(SERVED),
            None if held_back.is_empty() => Rule::Empty,
            None => Rule::HeldBack(OUT_OF_BUDGET),
            Some(_)
                if self.queues.server(cpu).is_none() && self.queues.iter(cpu).nth(1).is_none() =>
            {
                Rule::Alone
            }
            Some(_) => EARLIEST,
        };
        let mut contest = Contest::nobody("deadline", rule);
        for (index, task) in self.queues.iter(cpu).chain(held_back).enumerate() {
            let running = core.rq(cpu).curr == Some(task);
            if index >= into.limit && !running && into.focus != Some(task) {
                contest.nr_omitted += 1;
                continue;
            }
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: !served && !self.entity(task).throttled,
                chosen: first == Some(task),
                facts: self.task_facts(cpu, task),
            });
        }
        into.contests.push(contest);
        if let Some(facts) = self.server_facts(cpu) {
            into.steps.push(Step { kind: StepKind::Server, cpu, who: None, facts });
        }
    }

    fn explain_preempt(&self, _core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        vec![
            Fact::ns("running.deadline", self.deadline(curr)),
            Fact::ns("woken.deadline", self.deadline(woken)),
        ]
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        self.task_facts(core.task(task).cpu, task)
    }
}

impl DlClass {
    /// The explained values of `task`.
    pub(super) fn task_facts(&self, cpu: CpuId, task: TaskId) -> Vec<Fact> {
        let entity = self.entity(task);
        let mut facts = vec![
            Fact::ns("deadline", entity.deadline),
            Fact::ns("runtime", entity.runtime),
            Fact::ns("dl_runtime", entity.dl_runtime),
            Fact::ns("dl_deadline", entity.dl_deadline),
            Fact::ns("dl_period", entity.dl_period),
            Fact::flag("throttled", entity.throttled),
        ];
        if entity.lent.is_some() {
            facts.push(Fact::flag("boosted", true));
        }
        if entity.reclaim {
            // The charge for a millisecond.
            facts.push(Fact::ns("reclaim_charge", self.charged(cpu, task, NSEC_PER_MSEC)));
        }
        facts
    }
}
