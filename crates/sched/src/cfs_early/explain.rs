// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys that the scheduler compared, and the accounts from which they are computed.

use super::FairClock;
use super::entity::Class;
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CpuId, TaskId};

const LEFTMOST: Rule = Rule::Least {
    keys: &["fair_key"],
    text: "the least fair_key (fair_clock - wait_runtime), the leftmost of the tree",
};

impl Explain for FairClock {
    fn name(&self) -> &'static str {
        "rt and fair"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        if self.balancer.is_pushing(cpu) {
            let why = "the migration thread runs, to push away what ran";
            into.contests.push(Contest::nobody("rt", Rule::HeldBack(why)));
            return;
        }
        if !self.rt.is_empty(cpu) {
            self.rt.explain_pick(core, cpu, into);
            return;
        }
        let rq = &self.fair.cfs[cpu.index()];
        let chosen = rq.leftmost();
        let rule = match rq.nr_running {
            0 => Rule::Empty,
            1 => Rule::Alone,
            _ => LEFTMOST,
        };
        let mut contest = Contest::nobody("fair", rule);
        contest.facts = vec![
            Fact::vns("fair_clock", rq.fair_clock as i64),
            Fact::number("load", rq.load.weight),
            Fact::number("nr_running", rq.nr_running),
            Fact::ns("sleeper_bonus", rq.sleeper_bonus),
            Fact::ns("granularity", self.fair.values.granularity(&self.fair.rules, rq.nr_running)),
        ];
        for (index, task) in self.fair.iter(cpu).enumerate() {
            let running = core.rq(cpu).curr == Some(task);
            let is_shown = running || chosen == Some(task) || into.focus == Some(task);
            if index >= into.limit && !is_shown {
                contest.nr_omitted += 1;
                continue;
            }
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: true,
                chosen: chosen == Some(task),
                facts: self.explain_task(core, task),
            });
        }
        into.contests.push(contest);
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        let is_rt = |task: TaskId| self.fair.entity(task).class == Class::Rt;
        if is_rt(woken) || is_rt(curr) {
            return Fact::prios(core.task(curr).prio, core.task(woken).prio);
        }
        let rq = &self.fair.cfs[core.task(curr).cpu.index()];
        let ideal = self.fair.values.ideal_runtime(&self.fair.rules, rq.nr_running);
        let granularity = self.fair.niced_granularity(curr, self.wakeup_granularity(woken));
        let mut facts = vec![
            Fact::vns("running.fair_key", self.fair.key(curr)),
            Fact::vns("woken.fair_key", self.fair.key(woken)),
            Fact::ns("woken.wait_runtime", self.fair.entity(woken).wait_runtime),
            Fact::vns("granularity", granularity),
            Fact::ns("running.ran", self.fair.entity(curr).ran),
        ];
        facts.extend(ideal.map(|ideal| Fact::ns("ideal_runtime", ideal)));
        facts
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let entity = self.fair.entity(task);
        if entity.class == Class::Rt {
            return self.rt.facts(core, task);
        }
        let mut facts = vec![
            Fact::vns("fair_key", self.fair.key(task)),
            Fact::ns("wait_runtime", entity.wait_runtime),
            Fact::number("weight", entity.weight),
        ];
        if entity.wait_start_fair != 0 {
            let clock = self.fair.cfs[core.task(task).cpu.index()].fair_clock;
            let waited = clock.wrapping_sub(entity.wait_start_fair) as i64;
            facts.push(Fact::vns("fair_clock_since_wait", waited));
        } else {
            facts.push(Fact::ns("ran", entity.ran));
        }
        facts
    }
}
