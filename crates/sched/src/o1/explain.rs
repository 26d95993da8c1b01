// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that a pick of the O(1) scheduler compared: arrays, lists, and the origin of a
//! priority.

use super::arrays::Side;
use super::{OrderOne, Pick};
use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explain, Explanation, Fact, Rule, Who};
use schedlab_model::{CpuId, TaskId};

const BEST: Rule = Rule::Least {
    keys: &["expired", "prio", "position"],
    text: "the head of the best list (least prio) of the active array",
};

impl Explain for OrderOne {
    fn name(&self) -> &'static str {
        "o1"
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let Pick { task: chosen, prio: chosen_prio, swapped } = self.cpus[cpu.index()].pick;
        let curr = core.rq(cpu).curr;
        // The picked task may already be in another list; it was the head of its old one.
        let waiting = [Side::Active, Side::Expired].into_iter().flat_map(|side| {
            let others = self.arrays.iter(cpu, side).filter(move |task| Some(*task) != chosen);
            others.map(move |task| (side, task))
        });
        let all = chosen.map(|task| (Side::Active, task)).into_iter().chain(waiting);
        let nr_running = core.rq(cpu).nr_running;
        let rule = match (chosen, nr_running) {
            (None, _) => Rule::Empty,
            (_, 1) => Rule::Alone,
            _ => BEST,
        };
        let mut contest = Contest::nobody("o1", rule);
        let of = |side| self.arrays.nr_active(cpu, side);
        contest.facts = vec![
            Fact::number("nr_active", of(Side::Active)),
            Fact::number("nr_expired", of(Side::Expired)),
            Fact::flag("arrays_swapped", swapped),
        ];
        let mut list = None;
        let mut position = 0;
        for (side, task) in all {
            let is_chosen = chosen == Some(task);
            let prio = if is_chosen { chosen_prio } else { self.tasks[task.index()].prio };
            position = if list == Some((side, prio)) { position + 1 } else { 0 };
            list = Some((side, prio));
            let running = curr == Some(task);
            let is_shown = running || is_chosen || into.focus == Some(task);
            if contest.candidates.len() >= into.limit && !is_shown {
                contest.nr_omitted += 1;
                continue;
            }
            let mut facts = vec![
                Fact::number("expired", u8::from(side == Side::Expired)),
                Fact::number("prio", prio),
                Fact::number("position", position),
            ];
            facts.extend(
                self.explain_task(core, task).into_iter().filter(|fact| fact.name != "prio"),
            );
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: true,
                chosen: is_chosen,
                facts,
            });
        }
        into.contests.push(contest);
    }

    fn explain_preempt(&self, _core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        Fact::prios(self.tasks[curr.index()].prio, self.tasks[woken.index()].prio)
    }

    fn explain_task(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        let entry = &self.tasks[task.index()];
        let mut facts = vec![Fact::number("prio", entry.prio)];
        if !entry.is_rt() {
            let bonus = self.scale.current_bonus(entry.sleep_avg) as i64 - 5;
            facts.extend([
                Fact::number("static_prio", entry.static_prio),
                Fact::ns("sleep_avg", entry.sleep_avg),
                Fact::number("bonus", bonus),
                Fact::number("bonus_to_be_interactive", self.scale.delta(entry.static_prio)),
            ]);
        }
        facts.push(Fact::number("time_slice", entry.time_slice));
        facts
    }
}
