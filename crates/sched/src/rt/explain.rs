// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that the real-time class compared: priorities, and places in the lists.

use super::RtClass;
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CpuId, Policy, TaskId};

const BEST_PRIORITY: Rule = Rule::Least {
    keys: &["prio", "position"],
    text: "the best priority (least kernel prio), the head of its list",
};

impl Explain for RtClass {
    fn name(&self) -> &'static str {
        "rt"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let held_back = if self.is_cpu_throttled(cpu) {
            Some("real-time tasks have used their runtime of this period (sched_rt_runtime_us)")
        } else if core.is_pick_passed_down(cpu) {
            Some("the fair server runs fair tasks ahead of real-time tasks")
        } else {
            None
        };
        let first = self.queues.first(cpu);
        let rule = match held_back {
            _ if first.is_none() => Rule::Empty,
            Some(why) => Rule::HeldBack(why),
            None if self.queues.iter(cpu).nth(1).is_none() => Rule::Alone,
            None => BEST_PRIORITY,
        };
        let chosen = if held_back.is_none() { first } else { None };
        let mut contest = Contest::nobody("rt", rule);
        if let Some(throttling) = self.throttling.as_ref().filter(|one| one.is_throttled(cpu)) {
            contest.facts.push(Fact::flag("period_timer", throttling.is_timer_active()));
        }
        let mut place = (i32::MIN, 0);
        for (index, task) in self.queues.iter(cpu).enumerate() {
            let prio = core.task(task).prio;
            place = if place.0 == prio { (prio, place.1 + 1) } else { (prio, 0) };
            let running = core.rq(cpu).curr == Some(task);
            if index >= into.limit && !running && into.focus != Some(task) {
                contest.nr_omitted += 1;
                continue;
            }
            let mut facts = self.explain_task(core, task);
            facts.push(Fact::number("position", place.1));
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: held_back.is_none(),
                chosen: chosen == Some(task),
                facts,
            });
        }
        into.contests.push(contest);
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        Fact::prios(core.task(curr).prio, core.task(woken).prio)
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let t = core.task(task);
        let mut facts = vec![
            Fact::number("prio", t.prio),
            Fact::number("rt_priority", t.attr.rt_priority),
            Fact::word("policy", t.attr.policy.name()),
        ];
        if t.attr.policy == Policy::Rr {
            facts.push(Fact::number("ticks_left", self.task(task).time_slice));
        }
        facts
    }
}
