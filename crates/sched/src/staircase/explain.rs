// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that a staircase scheduler compared: priorities, which include the slots, and places
//! in lists. Also the rest of a task's time, and the state of the rotation.

use super::tasks::Kind;
use super::{FIRST_SLOT, Staircase, variants::Rules};
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CpuId, TaskId};

const BEST_SLOT: Rule = Rule::Least {
    keys: &["array", "list", "position"],
    text: "real-time first, then the best slot of the active array, the head of its list",
};

impl Explain for Staircase {
    fn name(&self) -> &'static str {
        self.rules.class_name()
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let places = self.places(cpu);
        let rule = match places.len() {
            0 => Rule::Empty,
            1 => Rule::Alone,
            _ => BEST_SLOT,
        };
        let rq = self.rq(cpu);
        let mut contest = Contest::nobody(self.rules.class_name(), rule);
        contest.facts.push(Fact::number("rotation", rq.rotation));
        contest.facts.push(Fact::flag("new_rotation", rq.pick.is_first));
        if self.rules == Rules::Rsdl {
            contest.facts.push(Fact::number("level", rq.level));
            let left = rq.quota[usize::from(rq.level)];
            contest.facts.push(Fact::number("level_ticks_left", left));
        }
        for (index, (task, place)) in places.into_iter().enumerate() {
            let chosen = rq.pick.task == Some(task);
            let running = core.rq(cpu).curr == Some(task);
            if index >= into.limit && !running && !chosen && into.focus != Some(task) {
                contest.nr_omitted += 1;
                continue;
            }
            let mut facts: Vec<Fact> = ["array", "list", "position"]
                .into_iter()
                .zip(place)
                .map(|(name, value)| Fact::number(name, value))
                .collect();
            facts.extend(self.explain_task(core, task));
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: true,
                chosen,
                facts,
            });
        }
        into.contests.push(contest);
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        let cpu = core.task(woken).cpu;
        vec![
            Fact::number("running.prio", self.prio(curr)),
            Fact::number("woken.prio", self.prio(woken)),
            Fact::flag("woken.active", self.is_active(cpu, woken)),
        ]
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let entry = self.entry(task);
        let unit = self.rules.unit_ns(core) as i64;
        let mut facts = vec![Fact::number("prio", self.prio(task))];
        match entry.kind {
            Kind::Fifo | Kind::Rr => {
                facts.push(Fact::number("rt_priority", core.task(task).attr.rt_priority));
            }
            Kind::Normal | Kind::Batch => {
                facts.push(Fact::number("slot", entry.slot));
                facts.push(Fact::number("static_slot", entry.user));
                facts.push(Fact::number("slots_used", entry.used.count_ones()));
                facts.push(Fact::number("rotation", entry.rotation));
            }
            Kind::Idle => facts.push(Fact::flag("when_idle", true)),
        }
        if entry.kind != Kind::Fifo {
            facts.push(Fact::ns("left", entry.left.saturating_mul(unit)));
            facts.push(Fact::ns("quota", entry.quota.saturating_mul(unit)));
        }
        facts
    }
}

impl Staircase {
    /// Tasks queued on `cpu` with their array (0 active, 1 expired), list and place in it, in the
    /// order in which they would run.
    fn places(&self, cpu: CpuId) -> Vec<(TaskId, [i32; 3])> {
        let rq = self.rq(cpu);
        let (active, expired) = (Self::lists(cpu, rq.active), Self::lists(cpu, rq.expired()));
        let mut all: Vec<(TaskId, [i32; 3])> = Vec::new();
        let groups = [
            (&self.rt, cpu, 0, 0),
            (&self.slots, active, 0, FIRST_SLOT),
            (&self.slots, expired, 1, FIRST_SLOT),
            // They wait for both arrays to be empty.
            (&self.idle, cpu, 2, 0),
        ];
        for (lists, owner, array, first) in groups {
            for task in lists.iter(owner) {
                let (_, prio) = lists.position(task).expect("it is in this list");
                let list = first + prio as i32;
                let place = match all.last() {
                    Some((_, [a, l, place])) if (*a, *l) == (array, list) => place + 1,
                    _ => 0,
                };
                all.push((task, [array, list, place]));
            }
        }
        all
    }
}
