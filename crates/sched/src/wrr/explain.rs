// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that a WRR class compared: priorities and places in lists; under RMLFQ also slices by
//! decile and the last draw.

use super::WrrClass;
use super::transition::{decile, stage};
use super::tree::Member;
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CgroupId, CpuId, TaskId};

const BEST_PRIORITY: Rule = Rule::Least {
    keys: &["prio", "position"],
    text: "the best priority (least prio), the head of its list",
};

impl Explain for WrrClass {
    fn name(&self) -> &'static str {
        "wrr"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let mut queue = cpu.0;
        loop {
            let contest = self.contest(core, cpu, queue, into);
            let chosen = self.tree.members(queue).next();
            into.contests.push(contest);
            match chosen {
                Some((Member::Group(inner), _)) => queue = inner,
                _ => return,
            }
        }
    }

    fn explain_preempt(&self, _core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        Fact::prios(self.task(curr).prio, self.task(woken).prio)
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let entry = self.task(task);
        let ground = if self.in_background(core, task) { "background" } else { "foreground" };
        let mut facts = vec![
            Fact::number("prio", entry.prio),
            Fact::word("ground", ground),
            Fact::number("ticks_left", entry.ticks_left),
            Fact::number("slice_ticks", self.slice(core, task, entry.prio)),
        ];
        if self.variant.draws.is_none() {
            return facts;
        }
        facts.push(Fact::number("decile", decile(entry.prio)));
        facts.push(Fact::number("stage", stage(entry.prio)));
        facts.push(Fact::number("times", entry.times));
        if let Some(draw) = entry.draw {
            facts.push(Fact::number("last_draw", draw.drawn));
            facts.push(Fact::number("promotes_below", draw.promotes_below));
            facts.push(Fact::number("demotes_above", draw.demotes_above));
            facts.push(Fact::word("last_move", draw.outcome.word()));
        }
        facts
    }
}

impl WrrClass {
    fn contest(&self, core: &Core, cpu: CpuId, queue: u32, into: &Explanation) -> Contest {
        let nr_members = self.tree.members(queue).count();
        let rule = match nr_members {
            0 => Rule::Empty,
            1 => Rule::Alone,
            _ => BEST_PRIORITY,
        };
        let mut contest = Contest::nobody("wrr", rule);
        contest.group = self.tree.group_of(queue).map(CgroupId);
        let curr = core.rq(cpu).curr;
        let mut place = (u8::MAX, 0);
        for (index, (member, prio)) in self.tree.members(queue).enumerate() {
            place = if place.0 == prio { (prio, place.1 + 1) } else { (prio, 0) };
            let is_running = curr.is_some_and(|curr| self.is_in(member, curr));
            let is_focus = into.focus.is_some_and(|focus| self.is_in(member, focus));
            if index >= into.limit.max(1) && !is_running && !is_focus {
                contest.nr_omitted += 1;
                continue;
            }
            let mut facts = match member {
                Member::Task(task) => self.explain_task(core, task),
                Member::Group(_) => vec![Fact::number("prio", prio)],
            };
            facts.push(Fact::number("position", place.1));
            contest.candidates.push(Candidate {
                who: self.who(member),
                running: is_running,
                considered: true,
                chosen: index == 0,
                facts,
            });
        }
        contest
    }

    fn is_in(&self, member: Member, task: TaskId) -> bool {
        match member {
            Member::Task(other) => other == task,
            Member::Group(queue) => self.tree.holds(queue, task),
        }
    }

    fn who(&self, member: Member) -> Who {
        match member {
            Member::Task(task) => Who::Task(task),
            Member::Group(queue) => {
                Who::Group(CgroupId(self.tree.group_of(queue).unwrap_or_default()))
            }
        }
    }
}
