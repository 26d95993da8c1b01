// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that the fair class compared: one pick for each level of control groups, from the
//! root inwards.
//!
//! The rules come from the functions that pick ([`FairClass::pick_cfs`],
//! [`FairClass::pick_next_eevdf`]). These change nothing, and are applied to the queue right after
//! the pick. Virtual times are relative to the queue's `min_vruntime`.

use super::FairClass;
use super::rbtree::NIL;
use super::rules::{Algorithm, Protection};
use super::weights::calc_delta_fair;
use crate::boundary::core::Core;
use crate::boundary::explain::{
    BandwidthStats, Candidate, Contest, Explain, Explanation, Fact, Rule, Who,
};
use schedlab_model::{CgroupId, CpuId, TaskId};

const LEAST_VRUNTIME: Rule = Rule::Least { keys: &["vruntime"], text: "the least virtual runtime" };
const EARLIEST_DEADLINE: Rule =
    Rule::Least { keys: &["deadline"], text: "the earliest virtual deadline among the eligible" };

const ALL_THROTTLED: Rule =
    Rule::Named("nobody: the groups of its tasks have used up their cpu.max (throttled)");

const PUSHED: Rule =
    Rule::HeldBack("what runs is about to be pushed to another CPU (active balancing)");

impl Explain for FairClass {
    fn name(&self) -> &'static str {
        "fair"
    }

    fn will_be_asked(&mut self) {
        self.begin_audit();
    }

    fn bandwidth_stats(&self, core: &Core, group: CgroupId) -> Option<BandwidthStats> {
        self.stats_of(core.now, group)
    }

    fn explain_pick(&self, _core: &Core, cpu: CpuId, into: &mut Explanation) {
        self.explain_steps(cpu, into);
        if self.is_pushing(cpu) {
            into.contests.push(Contest::nobody("fair", PUSHED));
            return;
        }
        let mut q = cpu.0;
        if self.rq(q).nr_queued == 0 {
            let rule = if self.holds_back(cpu) { ALL_THROTTLED } else { Rule::Empty };
            into.contests.push(Contest::nobody("fair", rule));
            return;
        }
        loop {
            let curr = self.rq(q).curr;
            let curr = if curr != NIL && self.ent(curr).on_rq { curr } else { NIL };
            let chosen = match self.rules.algorithm {
                Algorithm::Cfs => self.pick_cfs(q, curr),
                _ => self.pick_next_eevdf(q),
            };
            if chosen == NIL {
                return;
            }
            let contest = self.contest(q, curr, chosen, into);
            into.contests.push(contest);
            if self.is_task(chosen) {
                return;
            }
            q = self.ent(chosen).my_q;
        }
    }

    fn explain_preempt(&self, _core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        let (se, pse) = self.matching(self.task_entity(curr), self.task_entity(woken));
        let base = self.rq(self.ent(se).cfs).min_vruntime;
        let relative = |v: u64| v.wrapping_sub(base) as i64;
        let (running, other) = (self.ent(se), self.ent(pse));
        let mut facts = vec![
            Fact::vns("running.vruntime", relative(running.vruntime)),
            Fact::vns("woken.vruntime", relative(other.vruntime)),
        ];
        if self.rules.algorithm == Algorithm::Cfs {
            let ahead = running.vruntime.wrapping_sub(other.vruntime) as i64;
            let granularity = calc_delta_fair(self.tunables.wakeup_granularity_ns, other.load);
            facts.push(Fact::vns("ahead", ahead));
            facts.push(Fact::vns("must_exceed", granularity as i64));
            return facts;
        }
        let q = running.cfs;
        let average = self.avg_vruntime(q).wrapping_sub(base) as i64;
        facts.extend([
            Fact::vns("avg_vruntime", average),
            Fact::flag("running.eligible", self.entity_eligible(q, se)),
            Fact::flag("woken.eligible", self.entity_eligible(q, pse)),
            Fact::vns("running.deadline", relative(running.deadline)),
            Fact::vns("woken.deadline", relative(other.deadline)),
            Fact::ns("running.slice", running.slice),
            Fact::ns("woken.slice", other.slice),
        ]);
        facts
    }

    fn vruntime(&self, _core: &Core, task: TaskId) -> Option<i64> {
        Some(self.relative_vruntime(self.task_entity(task)))
    }

    fn explain_task(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        let e = self.task_entity(task);
        let mut facts = self.entity_facts(e);
        if self.is_hierarchy_throttled(self.ent(e).cfs) {
            facts.push(Fact::flag("throttled", true));
        }
        if self.rules.is_eevdf() {
            let q = self.ent(e).cfs;
            let average = self.avg_vruntime(q).wrapping_sub(self.rq(q).min_vruntime) as i64;
            facts.push(Fact::vns("avg_vruntime", average));
        }
        facts
    }
}

impl FairClass {
    fn contest(&self, q: u32, curr: u32, chosen: u32, into: &Explanation) -> Contest {
        let rq = self.rq(q);
        let rule = match self.rules.algorithm {
            _ if rq.nr_queued == 1 => Rule::Alone,
            Algorithm::Cfs => self.cfs_rule(q, curr, chosen),
            _ => self.eevdf_rule(q, curr, chosen),
        };
        let focus = into.focus.map(|task| self.task_entity(task));
        let mut shown = Vec::new();
        let mut nr_waiting = 0;
        if curr != NIL {
            shown.push(curr);
        }
        let mut e = rq.waiting.first();
        while e != NIL {
            if nr_waiting < into.limit || e == chosen || Some(e) == focus {
                shown.push(e);
            }
            nr_waiting += 1;
            e = rq.waiting.next(&self.nodes, e);
        }
        let total = nr_waiting + usize::from(curr != NIL);
        let candidate = |e: u32| Candidate {
            who: self.who(e),
            running: e == curr,
            considered: self.rules.algorithm == Algorithm::Cfs || self.entity_eligible(q, e),
            chosen: e == chosen,
            facts: self.entity_facts(e),
        };
        Contest {
            class: "fair",
            group: Some(CgroupId(rq.group)),
            rule,
            facts: self.queue_facts(q),
            candidates: shown.iter().map(|e| candidate(*e)).collect(),
            nr_omitted: (total - shown.len()) as u64,
        }
    }

    pub(super) fn who(&self, e: u32) -> Who {
        if self.is_task(e) {
            Who::Task(self.entity_task(e))
        } else {
            Who::Group(CgroupId(self.rq(self.ent(e).my_q).group))
        }
    }

    fn cfs_rule(&self, q: u32, curr: u32, chosen: u32) -> Rule {
        let rq = self.rq(q);
        let leftmost = rq.waiting.first();
        let least = if leftmost == NIL || (curr != NIL && self.v_before(curr, leftmost)) {
            curr
        } else {
            leftmost
        };
        if chosen == least {
            LEAST_VRUNTIME
        } else if chosen == rq.next {
            Rule::Named("the buddy that preempted: within the wakeup granularity of the least one")
        } else if chosen == rq.last {
            Rule::Named(
                "the buddy that was preempted: within the wakeup granularity of the least one",
            )
        } else {
            Rule::Named("the second: the least one has yielded")
        }
    }

    fn eevdf_rule(&self, q: u32, curr: u32, chosen: u32) -> Rule {
        let rq = self.rq(q);
        let eligible = self.entity_eligible(q, chosen);
        if self.rules.pick_buddy && chosen == rq.next && eligible {
            Rule::Named("the buddy of the queue: it is eligible")
        } else if chosen == curr && eligible && self.is_protected(curr) {
            Rule::Keeps("it is eligible and protected until it has used its slice")
        } else if eligible {
            EARLIEST_DEADLINE
        } else {
            Rule::Named("none is eligible, which only rounding can do: the first of the queue")
        }
    }

    fn queue_facts(&self, q: u32) -> Vec<Fact> {
        let rq = self.rq(q);
        let mut facts = vec![
            Fact::number("nr_queued", rq.nr_queued),
            Fact::vns("min_vruntime", rq.min_vruntime as i64),
        ];
        if let Some((remaining, pool)) = self.runtime_left(q) {
            facts.push(Fact::ns("runtime_remaining", remaining));
            facts.push(Fact::ns("pool_runtime", pool));
        }
        if self.rules.is_eevdf() {
            let average = self.avg_vruntime(q).wrapping_sub(rq.min_vruntime) as i64;
            facts.push(Fact::vns("avg_vruntime", average));
        } else {
            facts.push(Fact::ns("wakeup_granularity", self.tunables.wakeup_granularity_ns));
        }
        facts
    }

    /// The virtual runtime of an entity, relative to the min_vruntime of its queue.
    pub(super) fn relative_vruntime(&self, e: u32) -> i64 {
        let se = self.ent(e);
        // EEVDF keeps the flag on an entity that was placed again.
        if se.v_relative && !se.on_rq {
            return se.vruntime as i64;
        }
        se.vruntime.wrapping_sub(self.rq(se.cfs).min_vruntime) as i64
    }

    /// The explained values of an entity of a queue.
    pub(super) fn entity_facts(&self, e: u32) -> Vec<Fact> {
        let se = self.ent(e);
        let q = se.cfs;
        let base = self.rq(q).min_vruntime;
        let relative = |v: u64| v.wrapping_sub(base) as i64;
        let weight = Fact::number("weight", se.load.averaged);
        let mut facts = vec![Fact::vns("vruntime", self.relative_vruntime(e))];
        if self.rules.algorithm == Algorithm::Cfs {
            facts.push(weight);
            if self.rq(q).curr == e {
                facts.push(Fact::ns("slice", self.sched_slice(q, e)));
                facts.push(Fact::ns("ran", se.sum_exec_runtime - se.prev_sum_exec_runtime));
            }
            return facts;
        }
        let deadline = if se.rel_deadline { se.deadline as i64 } else { relative(se.deadline) };
        facts.push(Fact::vns("deadline", deadline));
        let lag = self.avg_vruntime(q).wrapping_sub(se.vruntime) as i64;
        facts.push(Fact::vns("lag", lag));
        facts.push(Fact::flag("eligible", self.entity_eligible(q, e)));
        facts.push(Fact::ns("slice", se.slice));
        facts.push(weight);
        if self.rq(q).curr == e {
            facts.push(Fact::flag("protected", self.is_protected(e)));
            if self.rules.protection == Protection::ShortestSlice {
                facts.push(Fact::vns("protected_until", relative(se.vprot)));
            }
        }
        if se.delayed {
            facts.push(Fact::flag("dequeue_delayed", true));
        }
        facts
    }
}
