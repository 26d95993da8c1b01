// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real-time class of Linux 2.6.23 and 2.6.24: only 100 FIFO lists per CPU.
//!
//! The head of the best list runs and stays in its list. A SCHED_RR task whose slice is over moves
//! to the tail of its list, unless it is alone there. There is no throttling, which 2.6.25
//! introduced, and tasks are neither pushed nor pulled. They change CPU only when the load of all
//! tasks is balanced, which takes them before fair ones. One function balances both, so this is
//! part of a [`crate::SchedClass`], not a separate one.
//!
//! Slices: 2.6.23 gives each task the slice of its nice value as in the O(1) scheduler, but 1 tick
//! at nice 19; 2.6.24 gives 100 ms. The first slice of a task is the rest of its parent's. The
//! kernel's first task starts with HZ ticks, which only SCHED_RR ticks use up. So a task whose
//! ancestors were never SCHED_RR begins with a whole second.
//!
//! Source: Linux 2.6.23.17 and 2.6.24, kernel/sched_rt.c, kernel/sched.c
//! (`static_prio_timeslice`), include/linux/init_task.h (the first slice: from memory). The file
//! sched_rt.c of 2.6.23 was read in the form of 2.6.24; the two differ by the slice and by how
//! balancing counts.

use crate::boundary::core::Core;
use crate::boundary::explain::{Candidate, Contest, Explanation, Fact, Rule, Who};
use crate::rt::queue::{MAX_RT_PRIO, PrioLists};
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

const BEST_PRIORITY: Rule = Rule::Least {
    keys: &["prio", "position"],
    text: "the best priority (least kernel prio), the head of its list",
};

/// The length of a SCHED_RR slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceRule {
    /// By nice value: 800 ms at -20, 100 ms at 0, 1 tick at 19 (2.6.23).
    ByNice,
    /// 100 ms (2.6.24).
    Fixed,
}

impl SliceRule {
    /// Ticks of a slice.
    pub fn ticks(self, hz: u32, nice: i8) -> u32 {
        let (default, least) = (100 * hz / 1000, (5 * hz / 1000).max(1));
        match (self, nice) {
            (Self::Fixed, _) => default.max(1),
            (Self::ByNice, 19) => 1,
            (Self::ByNice, nice) => {
                let base = if nice < 0 { 4 * default } else { default };
                (base * (20 - i32::from(nice)) as u32 / 20).max(least)
            }
        }
    }
}

/// The real-time runqueues of all CPUs.
#[derive(Debug)]
pub struct RtQueues {
    lists: PrioLists,
    /// Ticks left of SCHED_RR slices by task, if they were needed so far.
    slices: Vec<u32>,
    rule: SliceRule,
    hz: u32,
}

impl RtQueues {
    /// Empty queues.
    pub fn new(rule: SliceRule, nr_cpus: u32, hz: u32) -> Self {
        Self { lists: PrioLists::new(nr_cpus), slices: Vec::new(), rule, hz }
    }

    /// Handles the fork of `task` by `parent`: it inherits the rest of its parent's slice.
    pub fn fork(&mut self, task: TaskId, parent: TaskId) {
        if let Some(&left) = self.slices.get(parent.index()).filter(|left| **left != self.hz) {
            self.make_room(task);
            self.slices[task.index()] = left;
        }
    }

    fn make_room(&mut self, task: TaskId) {
        if self.slices.len() <= task.index() {
            self.slices.resize(task.index() + 1, self.hz);
        }
    }

    /// Puts `task` at the tail of its list.
    pub fn enqueue(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        self.make_room(task);
        self.lists.add_task(task);
        self.lists.add(cpu, task, core.task(task).prio as usize, false);
    }

    /// Removes `task` from its list.
    pub fn dequeue(&mut self, task: TaskId) {
        self.lists.remove(task);
    }

    /// Moves queued `task` to the tail of its list, as sched_yield does.
    pub fn requeue(&mut self, task: TaskId) {
        self.lists.requeue(task, false);
    }

    /// Whether `cpu` has no real-time task.
    #[inline]
    pub fn is_empty(&self, cpu: CpuId) -> bool {
        self.lists.is_empty(cpu)
    }

    /// The task that `cpu` should run.
    #[inline]
    pub fn first(&self, cpu: CpuId) -> Option<TaskId> {
        self.lists.first(cpu)
    }

    /// Tasks in balancing's order.
    pub fn iter_to_balance(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.lists.iter_from_tails(cpu)
    }

    /// Handles a tick of running `curr`.
    pub fn tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let attr = *core.task(curr).attr;
        if attr.policy != Policy::Rr {
            return;
        }
        let left = &mut self.slices[curr.index()];
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
        *left = self.rule.ticks(self.hz, attr.nice);
        if !self.lists.is_alone(curr) {
            self.lists.requeue(curr, false);
            core.resched_curr(cpu);
        }
    }

    /// Number of coming ticks that only count down the slice of running `curr`.
    pub fn quiet_ticks(&self, core: &Core, curr: TaskId) -> u64 {
        match core.task(curr).attr.policy {
            Policy::Rr => u64::from(self.slices[curr.index()].saturating_sub(1)),
            _ => u64::MAX,
        }
    }

    /// Passes this many such ticks.
    pub fn pass_ticks(&mut self, core: &Core, curr: TaskId, nr: u64) {
        if core.task(curr).attr.policy == Policy::Rr {
            self.slices[curr.index()] -= nr as u32;
        }
    }

    /// The slice that sched_rr_get_interval(2) reports of a real-time task; 0: none.
    pub fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        let attr = *core.task(task).attr;
        match attr.policy {
            Policy::Fifo => 0,
            _ => Nanos::from(self.rule.ticks(self.hz, attr.nice)) * core.tick_nsec,
        }
    }

    /// Explains the choice on `cpu`.
    pub fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        let chosen = self.first(cpu);
        let rule = match chosen {
            None => Rule::Empty,
            Some(first) if self.lists.iter(cpu).all(|task| task == first) => Rule::Alone,
            Some(_) => BEST_PRIORITY,
        };
        let mut contest = Contest::nobody("rt", rule);
        let (mut list, mut position) = (MAX_RT_PRIO as i32, 0);
        for (index, task) in self.lists.iter(cpu).enumerate() {
            let prio = core.task(task).prio;
            position = if list == prio { position + 1 } else { 0 };
            list = prio;
            let running = core.rq(cpu).curr == Some(task);
            if index >= into.limit && !running && into.focus != Some(task) {
                contest.nr_omitted += 1;
                continue;
            }
            let mut facts = self.facts(core, task);
            facts.push(Fact::number("position", position));
            contest.candidates.push(Candidate {
                who: Who::Task(task),
                running,
                considered: true,
                chosen: chosen == Some(task),
                facts,
            });
        }
        into.contests.push(contest);
    }

    /// The explained values of `task`.
    pub fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let t = core.task(task);
        let mut facts = vec![
            Fact::number("prio", t.prio),
            Fact::number("rt_priority", t.attr.rt_priority),
            Fact::word("policy", t.attr.policy.name()),
        ];
        if t.attr.policy == Policy::Rr {
            let left = self.slices.get(task.index()).copied().unwrap_or(self.hz);
            facts.push(Fact::number("ticks_left", left));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use schedlab_model::{Machine, SchedAttr};

    const CPU: CpuId = CpuId(0);

    /// Queues with tasks of these policies at priority 50.
    fn queues(rule: SliceRule, policies: &[Policy]) -> (Core, RtQueues) {
        let mut core = testing::core(&Machine { hz: 1000, ..Machine::flat(1) });
        let mut queues = RtQueues::new(rule, 1, 1000);
        for (id, &policy) in policies.iter().enumerate() {
            let attr = SchedAttr { policy, rt_priority: 50, ..SchedAttr::default() };
            let task = testing::sleeping_task(&core, CPU, attr);
            core.tasks.push(task);
            queues.enqueue(&core, CPU, TaskId(id as u32));
        }
        (core, queues)
    }

    /// Ticks of each turn until `count` turns are over.
    fn turns(core: &mut Core, queues: &mut RtQueues, count: usize) -> Vec<u32> {
        let turn = |core: &mut Core, queues: &mut RtQueues| {
            let curr = queues.first(CPU).unwrap();
            (1..).find(|_| {
                queues.tick(core, CPU, curr);
                queues.first(CPU) != Some(curr)
            })
        };
        (0..count).map(|_| turn(core, queues).unwrap()).collect()
    }

    #[test]
    fn section_5_2_slices_by_nice_and_fixed() {
        let by_nice = |hz| [-20, -1, 0, 10, 18, 19].map(|nice| SliceRule::ByNice.ticks(hz, nice));
        assert_eq!(by_nice(1000), [800, 420, 100, 50, 10, 1]);
        assert_eq!(by_nice(100), [80, 42, 10, 5, 1, 1]);
        let fixed = [-20, 0, 19].map(|nice| SliceRule::Fixed.ticks(250, nice));
        assert_eq!(fixed, [25, 25, 25]);
    }

    #[test]
    fn section_5_2_rr_takes_turns_and_the_first_lasts_a_second() {
        for rule in [SliceRule::ByNice, SliceRule::Fixed] {
            let (mut core, mut queues) = queues(rule, &[Policy::Rr, Policy::Rr]);
            assert_eq!(turns(&mut core, &mut queues, 5), [1000, 1000, 100, 100, 100]);
        }
    }

    #[test]
    fn section_5_2_who_is_alone_in_a_list_or_fifo_goes_on() {
        let (mut core, mut queues) = queues(SliceRule::Fixed, &[Policy::Rr]);
        for _ in 0..5_000 {
            queues.tick(&mut core, CPU, TaskId(0));
        }
        assert!(!core.rq(CPU).need_resched);
        let (mut core, mut queues) = self::queues(SliceRule::Fixed, &[Policy::Fifo, Policy::Rr]);
        for _ in 0..5_000 {
            queues.tick(&mut core, CPU, TaskId(0));
        }
        assert_eq!((queues.first(CPU), core.rq(CPU).need_resched), (Some(TaskId(0)), false));
    }

    #[test]
    fn a_child_inherits_the_rest_of_a_slice() {
        let (mut core, mut queues) = queues(SliceRule::Fixed, &[Policy::Rr, Policy::Rr]);
        for _ in 0..900 {
            queues.tick(&mut core, CPU, TaskId(0));
        }
        queues.fork(TaskId(2), TaskId(0));
        assert_eq!(queues.slices, [100, 1000, 100]);
    }
}
