// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that the fair class compared: one pick for each level of groups, from the queue of
//! the CPU inwards.
//!
//! The pick sets the picked entity running at once, so on each level it is the running one. The
//! others, including the previous one, are in the tree. Virtual times are relative to the queue's
//! `min_vruntime`.

use super::Fair;
use super::entity::is_before;
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use crate::fair::rbtree::NIL;
use schedlab_model::{CgroupId, CpuId, TaskId};

const LEAST: Rule = Rule::Least { keys: &["vruntime"], text: "the least virtual run time" };
const BUDDY: Rule =
    Rule::Named("a buddy, preempted or woken last: within the wakeup granularity of the least one");

impl Explain for Fair {
    fn name(&self) -> &'static str {
        if self.rules.is_later { "fair" } else { "rt and fair" }
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let mut q = self.root_queue(cpu);
        if self.balance.is_pushing(cpu) {
            let why = "the migration thread takes a task away first";
            into.contests.push(Contest::nobody("fair", Rule::HeldBack(why)));
            return;
        }
        if !self.rt.is_empty(cpu) {
            self.rt.explain_pick(core, cpu, into);
            return;
        }
        if self.rq(q).nr_running == 0 {
            into.contests.push(Contest::nobody("fair", Rule::Empty));
            return;
        }
        let prev = core.rq(cpu).curr.filter(|prev| self.is_fair(core, *prev));
        let prev = prev.map(|prev| self.task_entity(prev));
        loop {
            let chosen = self.rq(q).curr;
            if chosen == NIL {
                return;
            }
            into.contests.push(self.contest(q, chosen, prev, into));
            if self.is_task(chosen) {
                return;
            }
            q = self.ent(chosen).my_q;
        }
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        if Self::is_rt(core, woken) || Self::is_rt(core, curr) {
            return Fact::prios(core.task(curr).prio, core.task(woken).prio);
        }
        self.preempt_facts(woken, curr)
    }

    fn vruntime(&self, core: &Core, task: TaskId) -> Option<i64> {
        let e = self.task_entity(task);
        (!Self::is_rt(core, task)).then(|| self.relative_vruntime(e))
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        match Self::is_rt(core, task) {
            true => self.rt.facts(core, task),
            false => self.facts_of(self.task_entity(task)),
        }
    }
}

impl Fair {
    fn contest(&self, q: u32, chosen: u32, prev: Option<u32>, into: &Explanation) -> Contest {
        let rq = self.rq(q);
        let focus = into.focus.map(|task| self.task_entity(task));
        let mut shown = vec![chosen];
        let mut nr_waiting = 0;
        let mut at = rq.tree.leftmost;
        let first = at;
        while at != NIL {
            if nr_waiting < into.limit || Some(at) == focus || Some(at) == prev {
                shown.push(at);
            }
            nr_waiting += 1;
            at = rq.tree.next(&self.nodes, at);
        }
        let rule = match rq.nr_running {
            1 => Rule::Alone,
            _ if first != NIL && is_before(self.ent(first).vruntime, self.ent(chosen).vruntime) => {
                BUDDY
            }
            _ => LEAST,
        };
        let candidate = |e: u32| Candidate {
            who: self.who(e),
            running: prev.is_some_and(|prev| self.is_above(e, prev)),
            considered: true,
            chosen: e == chosen,
            facts: self.facts_of(e),
        };
        Contest {
            class: "fair",
            group: Some(CgroupId(rq.group)),
            rule,
            facts: vec![
                Fact::number("nr_running", rq.nr_running),
                Fact::number("load", rq.load),
                Fact::ns("period", self.period(u64::from(rq.nr_running))),
                Fact::vns("min_vruntime", rq.min_vruntime as i64),
                Fact::ns("wakeup_granularity", self.values.wakeup_granularity),
            ],
            candidates: shown.iter().map(|e| candidate(*e)).collect(),
            nr_omitted: (nr_waiting + 1 - shown.len()) as u64,
        }
    }

    /// Whether `e` is `of` or a group that contains it.
    fn is_above(&self, e: u32, of: u32) -> bool {
        let mut at = of;
        while at != NIL && at != e {
            at = self.ent(at).parent;
        }
        at == e
    }

    fn who(&self, e: u32) -> Who {
        match self.is_task(e) {
            true => Who::Task(self.entity_task(e)),
            false => Who::Group(CgroupId(self.rq(self.ent(e).my_q).group)),
        }
    }

    /// The virtual runtime of `e`, relative to the min_vruntime of its queue.
    pub(super) fn relative_vruntime(&self, e: u32) -> i64 {
        let se = self.ent(e);
        match se.is_relative {
            true => se.vruntime as i64,
            false => se.vruntime.wrapping_sub(self.rq(se.cfs).min_vruntime) as i64,
        }
    }

    /// The explained values of `e`.
    pub(super) fn facts_of(&self, e: u32) -> Vec<Fact> {
        let se = self.ent(e);
        let rq = self.rq(se.cfs);
        let vruntime = self.relative_vruntime(e);
        let mut facts =
            vec![Fact::vns("vruntime", vruntime), Fact::number("weight", se.load.weight)];
        if se.on_rq {
            facts.push(Fact::ns("slice", self.slice(se.cfs, e)));
        }
        if rq.curr == e {
            facts.push(Fact::ns("ran", se.sum_exec_runtime - se.prev_sum_exec_runtime));
        }
        if self.rules.is_later && self.is_task(e) {
            facts.push(Fact::ns("avg_wakeup", self.habits(e).avg_wakeup));
        }
        if rq.next == e {
            facts.push(Fact::flag("next_buddy", true));
        }
        if rq.last == e {
            facts.push(Fact::flag("last_buddy", true));
        }
        facts
    }

    /// The values that the wake-up of `woken` compared with running `curr`, at their common level.
    pub(super) fn preempt_facts(&self, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        let (se, pse) = self.matching(self.task_entity(curr), self.task_entity(woken));
        let base = self.rq(self.ent(se).cfs).min_vruntime;
        let relative = |e: u32| self.ent(e).vruntime.wrapping_sub(base) as i64;
        let limit = match self.rules.is_later {
            true => self.wakeup_gran(se, pse),
            false => self.granularity(se),
        };
        vec![
            Fact::vns("running.vruntime", relative(se)),
            Fact::vns("woken.vruntime", relative(pse)),
            Fact::vns("ahead", relative(se) - relative(pse)),
            Fact::vns("must_exceed", limit as i64),
        ]
    }
}
