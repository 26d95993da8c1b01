// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of RSDL and SD for balancing along domains ([`crate::balance::early`]): the load
//! and priority of a task, the order in which tasks move, and when a task is cache-hot.
//!
//! Both were patches that changed only the walk through the arrays in the kernel's balancing. So
//! the version is that of 2.6.22, to which SD 0.48 was applied. RSDL 0.31 was applied to 2.6.20 and
//! 2.6.21-rc, and 2.6.22 is the nearest modelled version. These kernels differ from it in one rule:
//! a woken task moves to an idle thread of the core even if two already wait on its CPU.
//!
//! A task weighs 40 times the ms (RSDL: ticks) that it may run in a rotation: thousands, where
//! 2.6.22 has 128 for nice 0. SCHED_LOAD_SCALE stays 128. Where it represents a task, on a CPU or
//! in a group without one, that task is a small one.
//!
//! Source: 2.6.22-ck1, kernel/sched.c (`set_load_weight`, `task_timeslice`), and Linux 2.6.22.19,
//! kernel/sched.c (`move_tasks`, `can_migrate_task`, `pull_task`, `try_to_wake_up`, `sched_exec`,
//! `active_load_balance`). From memory: the best list of a CPU is the best of both its arrays
//! (`rq_best_prio`), tasks of SCHED_IDLEPRIO move last, and the changes of RSDL. Its weights are
//! assumed to be those of SD.

use super::matrix::{self, SLOTS};
use super::tasks::Kind;
use super::variants::Rules;
use super::{FIRST_SLOT, IDLE_PRIO, Staircase};
use crate::balance::early::moves::{Move, Moved, move_some, push_running};
use crate::balance::early::select::{Waking, place, wake_cpu};
use crate::balance::early::{Balancer, Looker, Runqueues, look};
use crate::boundary::core::Core;
use crate::boundary::flags::WakeFlags;
use crate::rt::queue::{MAX_RT_PRIO, PrioLists};
use schedlab_model::{CpuId, SchedAttr, TaskId};

impl Staircase {
    /// Whether `cpu` is about to give a task away. Until then it picks nothing.
    #[inline]
    pub(super) fn is_pushing(&self, cpu: CpuId) -> bool {
        self.balancer.is_pushing(cpu)
    }

    /// The load of a task with a quota of `quota` in a slot (`set_load_weight`). A real-time task
    /// weighs at least twice as much as any other.
    pub(super) fn load_weight(&self, kind: Kind, quota: i64, attr: &SchedAttr) -> u64 {
        let slots = match kind {
            Kind::Fifo | Kind::Rr => 20 * (40 + i64::from(attr.rt_priority)),
            _ => i64::from(SLOTS - matrix::user_priority(attr.nice)),
        };
        let scale = if kind == Kind::Idle { 1 } else { i64::from(SLOTS) };
        let per_ms = match self.rules {
            Rules::Sd => 1_000,
            Rules::Rsdl => 1,
        };
        (quota * slots / per_ms * scale).max(1) as u64
    }

    /// Adds the load of `task` to `cpu`, or subtracts it.
    pub(super) fn count_load(&mut self, cpu: CpuId, task: TaskId, comes: bool) {
        let load = self.entry(task).weight;
        let sum = &mut self.balancer.load[cpu.index()];
        *sum = if comes { *sum + load } else { *sum - load };
    }

    /// The CPU for waking or new `task`.
    pub(super) fn select_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        place(self, core, task, prev, flags, || {
            let this = flags.this_cpu;
            let leaver = core.rq(this).curr.filter(|_| self.honours_sync && flags.sync);
            let leaves = leaver.map_or(0, |curr| self.entry(curr).weight);
            wake_cpu(self, core, Waking { task, prev, this, leaves, comes: false })
        })
    }

    /// Handles `cpu` having no task left. Returns whether it got one.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        core.nr_cpus() > 1 && look::idle_balance(self, core, cpu) == look::Outcome::Moved
    }

    /// Does the work of the migration thread of `cpu`.
    pub(super) fn push_tasks(&mut self, core: &mut Core, cpu: CpuId) {
        if self.is_pushing(cpu) {
            push_running(self, core, cpu);
            // With no task left the CPU becomes idle now.
            if core.rq(cpu).nr_running == 0 {
                core.resched_curr(cpu);
            }
        }
    }

    /// Best list that holds a task of `cpu` (`rq_best_prio`). [`IDLE_PRIO`]: it has only tasks that
    /// run when no other does.
    fn best_prio(&self, cpu: CpuId) -> i32 {
        let best = |lists: &PrioLists, owner, first| match lists.best_prio(owner) {
            MAX_RT_PRIO => IDLE_PRIO,
            list => first + list as i32,
        };
        let of_array = |array| best(&self.slots, Self::lists(cpu, array), FIRST_SLOT);
        best(&self.rt, cpu, 0).min(of_array(0)).min(of_array(1))
    }
}

impl Runqueues for Staircase {
    fn balancer(&self) -> &Balancer {
        &self.balancer
    }

    fn balancer_mut(&mut self) -> &mut Balancer {
        &mut self.balancer
    }

    fn task_weight(&self, _: &Core, task: TaskId) -> u64 {
        self.entry(task).weight
    }

    /// The list in which `task` waits. Under RSDL it may have moved down without an update.
    fn prio(&self, _: &Core, task: TaskId) -> i32 {
        let list = |lists: &PrioLists| lists.position(task).map(|(_, list)| list as i32);
        let slot = || list(&self.slots).map(|slot| FIRST_SLOT + slot);
        list(&self.rt).or_else(slot).unwrap_or(IDLE_PRIO)
    }

    /// Threads of a core share their cache.
    fn is_hot(&self, core: &Core, looker: Looker, task: TaskId) -> bool {
        let is_core = self.balancer.level(looker.cpu, looker.position).is_core;
        !is_core && core.now.saturating_sub(self.entry(task).last_ran) < self.cache_hot
    }

    fn move_tasks(&mut self, core: &mut Core, looker: Looker, from: CpuId, most: u64) -> Moved {
        let candidates = self.movable(core, from);
        let mut run = Move::new(looker, from, self.best_prio(looker.cpu));
        run.most_tasks = u64::from(core.rq(from).nr_running) - 1;
        let best = self.best_prio(from);
        let runs = core.rq(from).curr.map(|curr| self.prio(curr));
        run.only_best = Some(best).filter(|best| runs != Some(*best));
        let any = move_some(self, core, &mut run, &candidates, most as i64) > 0;
        Moved { any, all_pinned: run.all_pinned }
    }

    /// Waiting tasks of `from`, expired ones first, each list from its tail.
    fn movable(&self, _: &Core, from: CpuId) -> Vec<TaskId> {
        let rq = self.rq(from);
        let (expired, active) = (Self::lists(from, rq.expired()), Self::lists(from, rq.active));
        let groups =
            [(&self.slots, expired), (&self.rt, from), (&self.slots, active), (&self.idle, from)];
        groups.into_iter().flat_map(|(lists, owner)| lists.iter_from_tails(owner)).collect()
    }

    /// Inserts it into the array that it was in: it keeps its part of the rotation.
    fn pull_task(&mut self, core: &mut Core, task: TaskId, run: &Move) {
        let (from, to) = (run.from, run.looker.cpu);
        self.unqueue(task);
        core.sub_nr_running(from, 1);
        self.count_load(from, task, false);
        core.set_task_cpu(task, to);
        self.queue(to, task);
        self.entry_mut(task).cpu = to;
        core.add_nr_running(to, 1);
        self.count_load(to, task, true);
        let preempts = core
            .rq(to)
            .curr
            .is_none_or(|curr| self.is_active(to, task) && self.prio(task) < self.prio(curr));
        if preempts {
            core.resched_curr(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::variants::{rsdl_0_31, sd_0_48};
    use super::*;
    use crate::balance::early::Idle;
    use crate::boundary::class::SchedClass;
    use crate::boundary::flags::EnqueueFlags;
    use crate::boundary::options::Options;
    use crate::testing;
    use schedlab_model::time::NSEC_PER_MSEC as MS;
    use schedlab_model::{Machine, Policy};

    const C0: CpuId = CpuId(0);
    const C1: CpuId = CpuId(1);
    const BOTH: [Rules; 2] = [Rules::Sd, Rules::Rsdl];

    struct Kernel {
        core: Core,
        staircase: Staircase,
    }

    impl Kernel {
        fn new(rules: Rules, nr_cpus: u32) -> Self {
            let info = if rules == Rules::Sd { sd_0_48() } else { rsdl_0_31() };
            let machine = Machine { hz: 1_000, ..Machine::flat(nr_cpus) };
            let staircase = Staircase::new(rules, &Options::defaults(&info.tunables), &machine);
            Self { core: testing::core(&machine), staircase }
        }

        /// A sleeping task.
        fn task(&mut self, cpu: CpuId, attr: SchedAttr) -> TaskId {
            let id = TaskId(self.core.tasks.len() as u32);
            let task = testing::sleeping_task(&self.core, cpu, attr);
            self.core.tasks.push(task);
            self.staircase.task_new(&mut self.core, id);
            id
        }

        /// A waiting task.
        fn waiting(&mut self, cpu: CpuId, nice: i8) -> TaskId {
            let task = self.task(cpu, SchedAttr { nice, ..SchedAttr::default() });
            self.staircase.enqueue_task(&mut self.core, cpu, task, EnqueueFlags::WAKEUP);
            self.core.tasks[task.index()].on_rq = true;
            task
        }

        fn schedule(&mut self, cpu: CpuId) {
            let next = self.staircase.pick_task(&mut self.core, cpu);
            self.core.clear_resched(cpu);
            self.core.rqs[cpu.index()].curr = next;
        }

        /// Time for the averages of loads to follow, and for caches to become cold.
        fn settle(&mut self) {
            self.core.now += 100 * MS;
            for cpu in [C0, C1] {
                let load = self.staircase.balancer.load[cpu.index()];
                (0..50).for_each(|_| {
                    self.staircase.balancer.move_averages(cpu, load);
                });
            }
        }

        fn nr_running(&self, cpu: CpuId) -> u32 {
            self.core.rq(cpu).nr_running
        }
    }

    /// Two CPUs with these numbers of hogs.
    fn hogs(rules: Rules, here: u32, there: u32) -> Kernel {
        let mut kernel = Kernel::new(rules, 2);
        for (cpu, count) in [(C0, here), (C1, there)] {
            (0..count).for_each(|_| {
                kernel.waiting(cpu, 0);
            });
            kernel.schedule(cpu);
        }
        kernel.settle();
        kernel
    }

    #[test]
    fn section_4_2_loads() {
        // 6 ms on one CPU, 18 on four (SD): 40 times 120 and 360 ms at nice 0.
        for (rules, nr_cpus, loads) in [
            (Rules::Sd, 1, [96_000, 18_000, 4_800, 1_200, 120]),
            (Rules::Sd, 4, [288_000, 54_000, 14_400, 3_600, 360]),
            (Rules::Rsdl, 4, [96_000, 18_000, 4_800, 2_400, 240]),
        ] {
            let mut kernel = Kernel::new(rules, nr_cpus);
            for (nice, load) in [-20, -10, 0, 10, 19].into_iter().zip(loads) {
                let before = kernel.staircase.balancer.load[0];
                kernel.waiting(C0, nice);
                assert_eq!(kernel.staircase.balancer.load[0] - before, load, "nice {nice}");
            }
        }
        let mut kernel = Kernel::new(Rules::Sd, 1);
        let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 50, ..SchedAttr::default() };
        let task = kernel.task(C0, fifo);
        assert_eq!(kernel.staircase.task_weight(&kernel.core, task), 6 * 20 * (40 + 50) * 40);
    }

    #[test]
    fn section_3_11_a_busy_cpu_balances_its_domain() {
        for rules in BOTH {
            for (here, there, moved) in [(1, 3, 1), (4, 5, 0), (1, 7, 3), (1, 2, 0), (3, 1, 0)] {
                let mut kernel = hogs(rules, here, there);
                look::rebalance_tick(&mut kernel.staircase, &mut kernel.core, C0);
                let now = kernel.nr_running(C0);
                assert_eq!(now - here.min(now), moved, "{rules:?} {here} {there}");
            }
        }
    }

    #[test]
    fn section_3_11_a_cpu_that_runs_dry_takes_a_task() {
        for rules in BOTH {
            let mut kernel = hogs(rules, 0, 3);
            assert!(kernel.staircase.newidle_balance(&mut kernel.core, C0), "{rules:?}");
            assert_eq!(kernel.nr_running(C0), 1);
            assert_eq!(kernel.staircase.rq(C0).rotation, 1);
            // A CPU that stays idle begins a rotation.
            let mut kernel = hogs(rules, 0, 1);
            assert!(!kernel.staircase.newidle_balance(&mut kernel.core, C0), "{rules:?}");
            assert_eq!(kernel.staircase.rq(C0).rotation, 2);
        }
    }

    #[test]
    fn section_3_11_a_hot_task_is_not_moved() {
        for rules in BOTH {
            for (ago, comes) in [(2_499_999, false), (2_500_000, true)] {
                let mut kernel = hogs(rules, 0, 2);
                for entry in &mut kernel.staircase.tasks {
                    entry.last_ran = kernel.core.now - ago;
                }
                let pulled = kernel.staircase.newidle_balance(&mut kernel.core, C0);
                assert_eq!(pulled, comes, "{rules:?} {ago}");
            }
        }
    }

    #[test]
    fn section_4_6_expired_tasks_are_looked_at_first_each_list_from_its_tail() {
        for rules in BOTH {
            let mut kernel = Kernel::new(rules, 2);
            let [a, b, c, d] = [0, 0, 5, 0].map(|nice| kernel.waiting(C0, nice));
            for task in [c, d] {
                kernel.staircase.unqueue(task);
                kernel.staircase.queue_expired(C0, task);
            }
            let rr = SchedAttr { policy: Policy::Rr, rt_priority: 1, ..SchedAttr::default() };
            let rt = kernel.task(C0, rr);
            kernel.staircase.enqueue_task(&mut kernel.core, C0, rt, EnqueueFlags::WAKEUP);
            let found = kernel.staircase.movable(&kernel.core, C0);
            assert_eq!(found, [d, c, rt, b, a], "{rules:?}");
            assert_eq!(kernel.staircase.best_prio(C0), 98);
            assert_eq!(kernel.staircase.best_prio(C1), IDLE_PRIO);
        }
    }

    #[test]
    fn section_4_3_an_expired_task_expires_where_it_comes_to() {
        for rules in BOTH {
            let mut kernel = hogs(rules, 0, 0);
            let (runs, expired) = (kernel.waiting(C1, 0), kernel.waiting(C1, 0));
            kernel.schedule(C1);
            assert_eq!(kernel.core.rq(C1).curr, Some(runs));
            kernel.staircase.unqueue(expired);
            kernel.staircase.queue_expired(C1, expired);
            // A worse task runs on the target: the moved task has to wait for it nevertheless.
            kernel.waiting(C0, 19);
            kernel.schedule(C0);
            kernel.settle();
            look::rebalance_tick(&mut kernel.staircase, &mut kernel.core, C0);
            assert_eq!(kernel.core.task(expired).cpu, C0, "{rules:?}");
            assert!(!kernel.staircase.is_active(C0, expired));
            assert!(!kernel.core.rq(C0).need_resched);
        }
    }

    #[test]
    fn section_3_11_the_only_best_task_stays_if_it_is_too_heavy() {
        // A task of nice -20 is the best on either CPU. A single one stays, and a lighter one
        // moves. Of two, one moves, which is more than enough.
        for (nr_heavy, heavy_come, light_comes) in [(1, 0, true), (2, 1, false)] {
            let mut kernel = hogs(Rules::Sd, 1, 1);
            let heavy: Vec<TaskId> = (0..nr_heavy).map(|_| kernel.waiting(C1, -20)).collect();
            let light = kernel.waiting(C1, 0);
            kernel.settle();
            let looker = Looker { cpu: C0, position: 0, idle: Idle::Not };
            kernel.staircase.move_tasks(&mut kernel.core, looker, C1, 9_600);
            let came = |task: &TaskId| kernel.core.task(*task).cpu == C0;
            assert_eq!(heavy.iter().filter(|task| came(task)).count(), heavy_come);
            assert_eq!(came(&light), light_comes);
        }
    }

    #[test]
    fn section_3_11_a_woken_task_comes_to_a_waker_with_less_load() {
        for rules in BOTH {
            let flags = |cpu| WakeFlags { this_cpu: cpu, ..WakeFlags::TIMER };
            // Numbers of tasks on the waker's CPU and on its own.
            for (here, there, cpu) in [(1, 3, C0), (1, 2, C0), (1, 1, C1), (1, 0, C1), (0, 1, C0)] {
                let mut kernel = hogs(rules, here, there);
                let task = kernel.task(C1, SchedAttr::default());
                let found = kernel.staircase.select_task_rq(&mut kernel.core, task, C1, flags(C0));
                assert_eq!(found, cpu, "{rules:?} {here} {there}");
            }
        }
    }
}
