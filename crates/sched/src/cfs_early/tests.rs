// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of rules that concern a few callbacks, at HZ=1000. The engine's tests have sequences over
//! many ticks.

use super::*;
use crate::balance::early::{Idle, Looker, Runqueues, look};
use crate::boundary::core::TaskState;
use crate::boundary::flags::WakeKind;
use crate::testing;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{CpuMask, Topology};

const C0: CpuId = CpuId(0);
const C1: CpuId = CpuId(1);

struct Kernel {
    core: Core,
    class: FairClock,
}

impl Kernel {
    fn on(topology: Topology, rules: Rules, set: &[(&str, u64)]) -> Self {
        let machine = Machine { hz: 1000, topology, ..Machine::flat(1) };
        let tunables = if rules == Rules::CFS_V19 { TUNABLES_V19 } else { TUNABLES };
        let mut options = Options::defaults(tunables);
        for (name, value) in set {
            options.set(tunables, name, *value).unwrap();
        }
        let class = FairClock::new(rules, &options, &machine);
        Self { core: testing::core(&machine), class }
    }

    fn with(set: &[(&str, u64)]) -> Self {
        Self::on(Topology::flat(1), Rules::LINUX_2_6_23, set)
    }

    fn smp(nr_cpus: u32) -> Self {
        Self::on(Topology::flat(nr_cpus), Rules::LINUX_2_6_23, &[])
    }

    fn task(&mut self, cpu: CpuId, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let task = testing::sleeping_task(&self.core, cpu, attr);
        self.core.tasks.push(task);
        self.class.task_new(&mut self.core, id);
        id
    }

    fn nice(&mut self, nice: i8) -> TaskId {
        self.task(C0, SchedAttr { nice, ..SchedAttr::default() })
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        &mut self.class.fair.entities[task.index()]
    }

    fn clock(&self, cpu: CpuId) -> u64 {
        self.class.fair.cfs[cpu.index()].fair_clock
    }

    /// Wakes `task` on its CPU. Returns whether it preempts.
    fn wake_with(&mut self, task: TaskId, flags: WakeFlags) -> bool {
        let cpu = self.core.task(task).cpu;
        self.core.wake_flags = flags;
        let enqueue = if flags.is_fork() { EnqueueFlags::INITIAL } else { EnqueueFlags::WAKEUP };
        self.class.enqueue_task(&mut self.core, cpu, task, enqueue);
        let t = &mut self.core.tasks[task.index()];
        (t.on_rq, t.state) = (true, TaskState::Running);
        if let Some(curr) = self.core.rq(cpu).curr {
            self.class.wakeup_preempt(&mut self.core, cpu, task, curr, flags);
        }
        self.core.rq(cpu).need_resched
    }

    fn wake(&mut self, task: TaskId) -> bool {
        self.wake_with(task, WakeFlags::TIMER)
    }

    fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        let prev = self.core.rq(cpu).curr;
        let next = self.class.pick_task(&mut self.core, cpu);
        self.core.clear_resched(cpu);
        if prev != next {
            if let Some(prev) = prev {
                self.class.put_prev_task(&mut self.core, cpu, prev, next);
            }
            self.core.rqs[cpu.index()].curr = next;
            if let Some(next) = next {
                self.class.set_next_task(&mut self.core, cpu, next, true);
            }
        }
        next
    }

    /// Puts the running task of CPU 0 to sleep. Returns the next one.
    fn sleep(&mut self) -> Option<TaskId> {
        let task = self.core.rq(C0).curr.unwrap();
        let t = &mut self.core.tasks[task.index()];
        (t.on_rq, t.state) = (false, TaskState::Sleeping);
        self.class.dequeue_task(&mut self.core, C0, task, DequeueFlags::SLEEP);
        self.schedule(C0)
    }

    /// Ticks on CPU 0, whether or not a tick requests a reschedule.
    fn tick(&mut self, count: u64) {
        for _ in 0..count {
            self.core.now += MS;
            let curr = self.core.rq(C0).curr.unwrap();
            self.class.task_tick(&mut self.core, C0, curr);
        }
    }

    /// Lets `parent`, which runs on CPU 0, fork a process.
    fn fork(&mut self, parent: TaskId, is_thread: bool) -> TaskId {
        let attr = *self.core.task(parent).attr;
        let child = self.task(C0, attr);
        if is_thread {
            self.core.tasks[child.index()].mm = self.core.task(parent).mm;
        }
        self.class.task_fork(&mut self.core, C0, child, Some(parent));
        let flags = WakeFlags { kind: WakeKind::Fork, waker: Some(parent), ..WakeFlags::TIMER };
        self.wake_with(child, flags);
        child
    }

    /// Changes the attributes of `task`, which runs or is queued.
    fn change(&mut self, task: TaskId, attr: SchedAttr) {
        let cpu = self.core.task(task).cpu;
        let save = DequeueFlags { save: true, ..DequeueFlags::NONE };
        self.class.dequeue_task(&mut self.core, cpu, task, save);
        self.class.attr_changing(&mut self.core, task, &attr);
        let t = &mut self.core.tasks[task.index()];
        (t.attr, t.prio) = (attr.into(), attr.kernel_prio());
        (t.cpus_allowed, t.nr_cpus_allowed) = (self.core.cpus.into(), self.core.cpus.weight());
        let restore = EnqueueFlags { restore: true, ..EnqueueFlags::NONE };
        self.class.enqueue_task(&mut self.core, cpu, task, restore);
    }

    /// Starts this many hogs of nice 0 on a CPU, the first one running.
    fn hogs(&mut self, cpu: CpuId, count: u32) -> Vec<TaskId> {
        let hog = |kernel: &mut Self| {
            let task = kernel.task(cpu, SchedAttr::default());
            kernel.wake(task);
            task
        };
        let hogs = (0..count).map(|_| hog(self)).collect();
        self.schedule(cpu);
        hogs
    }
}

fn batch() -> SchedAttr {
    SchedAttr { policy: Policy::Batch, ..SchedAttr::default() }
}

fn fifo() -> SchedAttr {
    SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..SchedAttr::default() }
}

#[test]
fn section_5_3_a_sleeper_is_credited_and_preempts() {
    let mut kernel = Kernel::with(&[]);
    let (hog, sleeper) = (kernel.nice(0), kernel.nice(0));
    kernel.wake(sleeper);
    kernel.wake(hog);
    assert_eq!(kernel.schedule(C0), Some(sleeper));
    assert_eq!(kernel.sleep(), Some(hog));
    kernel.tick(30);
    let clock = kernel.clock(C0);
    assert!(kernel.wake(sleeper));
    // 30 ms by the fair clock of a lone hog, of which the limit leaves 20.
    assert_eq!(kernel.entity(sleeper).wait_runtime, 20 * MS as i64);
    assert_eq!(kernel.class.fair.cfs[0].sleeper_bonus, 20 * MS);
    assert_eq!(kernel.class.fair.key(sleeper), clock as i64 - 20 * MS as i64);
    let lead = kernel.class.fair.key(hog) - kernel.class.fair.key(sleeper);
    assert_eq!(lead, 20 * MS as i64);
    // At the limit nothing goes to the bonus: half of the first ms, beyond its share, is charged.
    // Of the second ms its share goes there too.
    assert_eq!(kernel.schedule(C0), Some(sleeper));
    kernel.tick(1);
    assert_eq!(kernel.entity(sleeper).wait_runtime, 19_500_000);
    assert_eq!(kernel.class.fair.cfs[0].sleeper_bonus, 20 * MS);
    kernel.tick(1);
    assert_eq!(kernel.entity(sleeper).wait_runtime, 18_500_000);
    assert_eq!(kernel.class.fair.cfs[0].sleeper_bonus, 19_500_000);
}

#[test]
fn section_5_3_no_credit_while_too_much_of_it_is_out() {
    for (bonus, credit) in [(20 * MS, 5 * MS), (20 * MS + 1, 0)] {
        let mut kernel = Kernel::with(&[]);
        let (hog, sleeper) = (kernel.nice(0), kernel.nice(0));
        kernel.wake(sleeper);
        kernel.wake(hog);
        kernel.schedule(C0);
        kernel.sleep();
        kernel.tick(5);
        kernel.class.fair.cfs[0].sleeper_bonus = bonus;
        kernel.wake(sleeper);
        assert_eq!(kernel.entity(sleeper).wait_runtime, credit as i64);
        // SCHED_BATCH tasks never get credit, nor does any task with the feature off.
        let mut kernel = Kernel::with(&[("sched_features", 0)]);
        kernel.hogs(C0, 1);
        kernel.tick(5);
        let (normal, batch) = (kernel.nice(0), kernel.task(C0, batch()));
        kernel.wake(normal);
        kernel.wake(batch);
        assert_eq!((kernel.entity(normal).wait_runtime, kernel.entity(batch).wait_runtime), (0, 0));
    }
}

#[test]
fn section_5_3_credit_by_the_load_that_would_have_been() {
    // SLEEPER_AVG without SLEEPER_LOAD_AVG: half of the sleep next to one hog.
    let mut kernel = Kernel::with(&[("sched_features", 1 + 2)]);
    kernel.hogs(C0, 1);
    kernel.tick(10);
    let sleeper = kernel.nice(0);
    kernel.wake(sleeper);
    assert_eq!(kernel.entity(sleeper).wait_runtime, 5 * MS as i64);
    // With it, the average over ticks counts: the CPU has seen no tick yet.
    let mut kernel = Kernel::with(&[("sched_features", 1 + 2 + 4)]);
    kernel.hogs(C0, 1);
    kernel.tick(10);
    let sleeper = kernel.nice(0);
    kernel.wake(sleeper);
    assert_eq!(kernel.entity(sleeper).wait_runtime, 0);
}

#[test]
fn section_5_3_accounts_and_keys_by_weight() {
    let mut kernel = Kernel::with(&[]);
    let (hog, nice5) = (kernel.nice(0), kernel.nice(5));
    kernel.wake(hog);
    kernel.wake(nice5);
    kernel.schedule(C0);
    kernel.tick(1);
    // The fair clock of load 1359, and the share of 1024 in it.
    assert_eq!(kernel.clock(C0), 1 + 753_495);
    assert_eq!(kernel.entity(hog).wait_runtime, 753_495 - MS as i64);
    // For the time waited, a task of nice 5 is owed 335 / 1024; its key scales that back.
    kernel.core.resched_curr(C0);
    kernel.class.fair.move_to(C0, hog, 10 * MS);
    assert_eq!(kernel.schedule(C0), Some(nice5));
    assert_eq!(kernel.entity(nice5).wait_runtime, 753_495 * 335 / 1024);
    kernel.class.fair.rekey(C0, nice5);
    let clock = kernel.clock(C0) as i64;
    assert_eq!(kernel.class.fair.key(nice5), clock - ((246_504 * 12_820_798) >> 22));
    kernel.entity(nice5).wait_runtime = -246_504;
    kernel.class.fair.rekey(C0, nice5);
    assert_eq!(kernel.class.fair.key(nice5), clock + ((246_504 * 12_820_798) >> 22));
}

#[test]
fn section_5_3_accounts_stop_at_the_limit() {
    let mut kernel = Kernel::with(&[]);
    let hogs = kernel.hogs(C0, 2);
    kernel.tick(100);
    assert_eq!(kernel.entity(hogs[0]).wait_runtime, -20 * MS as i64);
    assert_eq!(kernel.schedule(C0), Some(hogs[1]));
    assert_eq!(kernel.entity(hogs[1]).wait_runtime, 20 * MS as i64);
}

#[test]
fn section_5_3_granularity_by_nice_value() {
    let niced = |rules: Rules| {
        [-20, -10, -5, 0, 5, 10, 19].map(|nice| {
            let mut kernel = Kernel::on(Topology::flat(1), rules, &[]);
            let task = kernel.nice(nice);
            kernel.class.fair.niced_granularity(task, 5 * MS)
        })
    };
    let expected = [57_682, 536_237, 1_640_499, 5_000_000, 1_635_742, 537_109, 73_242];
    assert_eq!(niced(Rules::LINUX_2_6_23), expected);
    // v19 shifts by 10 too many.
    let expected = [56, 523, 1_602, 5_000_000, 1_635_742, 537_109, 73_242];
    assert_eq!(niced(Rules::CFS_V19), expected);
}

#[test]
fn section_5_3_a_child_goes_before_its_parent() {
    for (nr_running, granularity) in [(1, 20 * MS), (2, 5 * MS), (3, 4_444_444)] {
        let mut kernel = Kernel::with(&[]);
        let parent = kernel.hogs(C0, nr_running)[0];
        let key = kernel.class.fair.key(parent);
        let child = kernel.fork(parent, false);
        assert_eq!(kernel.class.fair.key(child), key - granularity as i64 - 1, "{nr_running}");
        assert_eq!(kernel.entity(child).wait_runtime, -(granularity as i64) / 2);
        let clock = kernel.clock(C0);
        assert_eq!(kernel.entity(child).wait_start_fair, clock);
        assert!(kernel.core.rq(C0).need_resched);
        assert_eq!(kernel.schedule(C0), Some(child));
    }
    // The granularity of the parent's nice value.
    let mut kernel = Kernel::with(&[]);
    let parent = kernel.nice(5);
    kernel.wake(parent);
    kernel.schedule(C0);
    let key = kernel.class.fair.key(parent);
    let child = kernel.fork(parent, false);
    assert_eq!(kernel.class.fair.key(child), key - ((20 * MS as i64 * 335) >> 10) - 1);
}

#[test]
fn section_5_3_threads_and_late_children_are_queued_plainly() {
    for (is_thread, set) in [(true, 1), (false, 0)] {
        let mut kernel = Kernel::with(&[("sched_child_runs_first", set)]);
        let parent = kernel.hogs(C0, 1)[0];
        let child = kernel.fork(parent, is_thread);
        assert_eq!(kernel.entity(child).wait_runtime, 0);
        assert_eq!(kernel.class.fair.key(child), kernel.clock(C0) as i64);
        assert!(!kernel.core.rq(C0).need_resched);
    }
    // Without a debit, and without the first wait.
    let mut kernel = Kernel::with(&[("sched_features", 1 + 32)]);
    let parent = kernel.hogs(C0, 1)[0];
    let child = kernel.fork(parent, false);
    let entity = *kernel.entity(child);
    assert_eq!((entity.wait_runtime, entity.wait_start_fair), (0, 0));
}

#[test]
fn section_5_3_wakeup_preemption() {
    // Leads that the sleeper has over the hog, and whether it preempts by its policy.
    for (lead, attr, preempts) in [
        (MS, SchedAttr::default(), false),
        (MS + 1, SchedAttr::default(), true),
        (20 * MS, batch(), false),
        (26 * MS, batch(), true),
    ] {
        let mut kernel = Kernel::with(&[("sched_runtime_limit", 100 * MS)]);
        let hog = kernel.hogs(C0, 1)[0];
        let sleeper = kernel.task(C0, attr);
        kernel.class.fair.move_to(C0, hog, 1 + lead);
        assert_eq!(kernel.wake(sleeper), preempts, "{lead} {attr:?}");
    }
    // The granularity is 0 after the hog has had its part of the latency.
    let mut kernel = Kernel::with(&[]);
    let hog = kernel.hogs(C0, 1)[0];
    let sleeper = kernel.nice(0);
    kernel.class.fair.move_to(C0, hog, 2);
    kernel.entity(hog).ran = 10 * MS + 1;
    assert!(kernel.wake(sleeper));
}

#[test]
fn section_5_3_a_synchronous_wakeup_here_preempts_nobody() {
    for (set, this_cpu, preempts) in [(0, C0, true), (1, C0, false), (1, C1, true)] {
        let mut kernel = Kernel::with(&[("sync_wakeups", set)]);
        let hog = kernel.hogs(C0, 1)[0];
        let sleeper = kernel.nice(0);
        kernel.class.fair.move_to(C0, hog, 10 * MS);
        let flags = WakeFlags { sync: true, waker: Some(hog), this_cpu, ..WakeFlags::TIMER };
        assert_eq!(kernel.wake_with(sleeper, flags), preempts);
    }
}

#[test]
fn section_5_2_real_time_is_above_fair() {
    let mut kernel = Kernel::with(&[]);
    let hog = kernel.hogs(C0, 1)[0];
    kernel.core.now += MS / 2;
    let fifo = kernel.task(C0, fifo());
    assert!(kernel.wake(fifo));
    // This has updated the hog's account.
    assert_eq!(kernel.clock(C0), 1 + MS / 2);
    assert_eq!(kernel.schedule(C0), Some(fifo));
    let waking = kernel.nice(-20);
    assert!(!kernel.wake(waking));
    // The hog's key dates from its last tick, before all the time since then.
    assert_eq!(kernel.sleep(), Some(hog));
}

#[test]
fn section_5_3_yield() {
    // A task that is alone: nothing happens.
    let mut kernel = Kernel::with(&[]);
    let hog = kernel.hogs(C0, 1)[0];
    kernel.core.now += MS;
    kernel.class.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.clock(C0), 1);
    // It moves to the place of its account, which is now up to date.
    let other = kernel.nice(0);
    kernel.wake(other);
    kernel.entity(hog).wait_runtime = 5 * MS as i64;
    kernel.class.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.schedule(C0), Some(hog));
    kernel.core.now += 6 * MS;
    kernel.class.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.schedule(C0), Some(other));
    // It moves behind all others.
    let mut kernel = Kernel::with(&[("sched_compat_yield", 1)]);
    let hogs = kernel.hogs(C0, 3);
    kernel.class.fair.move_to(C0, hogs[2], 50 * MS);
    kernel.class.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.class.fair.key(hogs[0]), 50 * MS as i64 + 1);
    let order: Vec<TaskId> = kernel.class.fair.iter(C0).collect();
    assert_eq!(order, [hogs[1], hogs[2], hogs[0]]);
    // The last task keeps its place.
    kernel.class.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.class.fair.key(hogs[0]), 50 * MS as i64 + 1);
}

#[test]
fn section_5_3_a_change_of_nice_forgets_the_account() {
    let mut kernel = Kernel::with(&[]);
    let hogs = kernel.hogs(C0, 2);
    kernel.tick(3);
    kernel.change(hogs[0], SchedAttr { nice: 5, ..SchedAttr::default() });
    let entity = *kernel.entity(hogs[0]);
    assert_eq!((entity.wait_runtime, entity.weight), (0, 335));
    assert_eq!(kernel.class.fair.cfs[0].load.weight, 1359);
    assert_eq!(kernel.class.balancer.load[0], 1359);
    assert!(kernel.core.rq(C0).need_resched, "it runs, and has become worse");
    // A waiting task that becomes worse requests nothing.
    kernel.core.clear_resched(C0);
    kernel.change(hogs[1], SchedAttr { nice: 10, ..SchedAttr::default() });
    assert!(!kernel.core.rq(C0).need_resched);
    kernel.change(hogs[1], SchedAttr { nice: 0, ..SchedAttr::default() });
    assert!(kernel.core.rq(C0).need_resched);
}

#[test]
fn a_change_of_affinity_leaves_the_account_and_the_place() {
    let mut kernel = Kernel::smp(2);
    let hogs = kernel.hogs(C0, 2);
    kernel.tick(3);
    let before = *kernel.entity(hogs[0]);
    let affinity = Some(CpuMask::only(C0));
    kernel.change(hogs[0], SchedAttr { affinity, ..SchedAttr::default() });
    assert_eq!(kernel.entity(hogs[0]).wait_runtime, before.wait_runtime);
    assert!(before.wait_runtime < 0);
    assert_eq!(kernel.core.rq(C0).nr_running, 2);
}

#[test]
fn a_task_changes_its_class_and_comes_back() {
    let mut kernel = Kernel::with(&[]);
    let hogs = kernel.hogs(C0, 2);
    kernel.change(hogs[1], fifo());
    assert!(kernel.core.rq(C0).need_resched);
    assert_eq!(kernel.class.fair.cfs[0].nr_running, 1);
    assert_eq!(kernel.class.balancer.load[0], 1024 + 177_522);
    assert_eq!(kernel.schedule(C0), Some(hogs[1]));
    kernel.core.now += 7 * MS;
    kernel.change(hogs[1], SchedAttr::default());
    assert!(kernel.core.rq(C0).need_resched);
    assert_eq!(kernel.class.fair.cfs[0].nr_running, 2);
    // Time that it ran as a real-time task is not charged.
    kernel.tick(1);
    assert_eq!(kernel.entity(hogs[1]).wait_runtime, -(MS as i64) / 2);
}

#[test]
fn section_5_3_clocks_of_cpus_differ() {
    let mut kernel = Kernel::smp(2);
    let sleeper = kernel.nice(0);
    kernel.class.fair.cfs[0].fair_clock = 70 * MS;
    kernel.class.fair.cfs[1].fair_clock = 500 * MS;
    kernel.entity(sleeper).sleep_start_fair = 60 * MS;
    kernel.class.migrate_task_rq(&mut kernel.core, sleeper, C1);
    assert_eq!(kernel.entity(sleeper).sleep_start_fair, 490 * MS);
    assert_eq!(kernel.entity(sleeper).wait_start_fair, 0);
}

#[test]
fn times_below_the_stat_granularity_wait() {
    let mut kernel = Kernel::with(&[("sched_stat_granularity", 3 * MS)]);
    let hog = kernel.hogs(C0, 2)[0];
    kernel.tick(3);
    assert_eq!((kernel.clock(C0), kernel.entity(hog).wait_runtime), (1, 0));
    kernel.tick(1);
    assert_eq!((kernel.clock(C0), kernel.entity(hog).wait_runtime), (1 + 2 * MS, -2 * MS as i64));
}

#[test]
fn section_5_4_v19_takes_the_bonus_back_by_shares() {
    let mut kernel = Kernel::on(Topology::flat(1), Rules::CFS_V19, &[]);
    let hog = kernel.hogs(C0, 2)[0];
    kernel.class.fair.cfs[0].sleeper_bonus = 10 * MS;
    kernel.tick(1);
    // Half of the bonus, and half of the ms that it ran.
    assert_eq!(kernel.class.fair.cfs[0].sleeper_bonus, 5 * MS);
    assert_eq!(kernel.entity(hog).wait_runtime, -(5 * MS as i64) - MS as i64 / 2);
}

#[test]
fn precise_loads_count_the_time_that_a_cpu_was_busy() {
    let mut kernel = Kernel::with(&[("sched_features", 8)]);
    let hog = kernel.hogs(C0, 1)[0];
    kernel.tick(1);
    kernel.class.tick_balance(&mut kernel.core, C0);
    // A ns is added to each of the sums, so that none is 0.
    assert_eq!(kernel.class.balancer.average(C0, 0), 1023);
    // Busy for a quarter of the next tick, with no other task.
    kernel.core.now += MS / 4;
    assert_eq!(kernel.sleep(), None);
    kernel.core.now += 3 * MS / 4;
    kernel.class.tick_balance(&mut kernel.core, C0);
    assert_eq!(kernel.class.balancer.average(C0, 0), 256);
    assert_eq!(kernel.entity(hog).wait_runtime, 0);
}

/// Two CPUs with these numbers of nice-0 hogs, and time for the averages to follow.
fn loaded(here: u32, there: u32) -> Kernel {
    let mut kernel = Kernel::smp(2);
    kernel.hogs(C0, here);
    kernel.hogs(C1, there);
    kernel.core.now += 100 * MS;
    for _ in 0..50 {
        for cpu in [C0, C1] {
            let load = kernel.class.cpu_weight(&kernel.core, cpu);
            kernel.class.balancer.move_averages(cpu, load);
        }
    }
    kernel
}

#[test]
fn section_5_3_loads_are_sums_of_weights_and_averages_are_cut() {
    let kernel = loaded(1, 3);
    assert_eq!(kernel.class.balancer.load, [1024, 3072]);
    assert_eq!(kernel.class.balancer.average(C1, 0), 3072);
    assert_eq!(kernel.class.balancer.average(C1, 1), 3071);
    assert_eq!(kernel.class.balancer.average(C1, 2), 3069);
}

#[test]
fn section_5_3_a_busy_cpu_balances_at_ticks() {
    for (here, there, moved) in [(1, 3, 1), (1, 7, 3), (1, 2, 1), (4, 5, 0), (3, 1, 0)] {
        let mut kernel = loaded(here, there);
        look::rebalance_tick(&mut kernel.class, &mut kernel.core, C0);
        let now = kernel.core.rq(C0).nr_running;
        assert_eq!(now as i64 - i64::from(here), moved, "{here} {there}");
    }
}

/// The first CPU searches its only domain while it runs a task.
const LOOKER: Looker = Looker { cpu: C0, position: 0, idle: Idle::Not };

#[test]
fn section_5_3_a_cpu_that_runs_dry_takes_the_leftmost() {
    let mut kernel = loaded(0, 3);
    assert!(kernel.class.newidle_balance(&mut kernel.core, C0));
    // 1536 of 3072 are wanted: two tasks, in the order of the tree, whatever the times of their
    // last runs.
    let moved: Vec<TaskId> = kernel.class.fair.iter(C0).collect();
    assert_eq!(moved, [TaskId(1), TaskId(2)]);
    assert!(kernel.core.rq(C0).need_resched);
    let mut kernel = loaded(0, 1);
    assert!(!kernel.class.newidle_balance(&mut kernel.core, C0));
}

#[test]
fn section_5_3_heavy_tasks_stay_unless_they_are_the_best() {
    for (running, moved) in [(0, TaskId(1)), (-20, TaskId(2))] {
        let mut kernel = Kernel::smp(2);
        let here = kernel.nice(running);
        kernel.wake(here);
        kernel.schedule(C0);
        for nice in [-20, 0, 0] {
            let task = kernel.task(C1, SchedAttr { nice, ..SchedAttr::default() });
            kernel.wake(task);
        }
        // Half of the weight of nice -20 exceeds 1024 and 1024 of fuzz. The task moves only if it
        // is better than what runs here. One task is enough.
        let found = kernel.class.move_tasks(&mut kernel.core, LOOKER, C1, 1024);
        assert!(found.any && !found.all_pinned);
        let came: Vec<TaskId> = kernel.class.fair.iter(C0).filter(|task| *task != here).collect();
        assert_eq!(came, [moved]);
    }
}

#[test]
fn real_time_tasks_are_moved_before_fair_ones() {
    let mut kernel = loaded(0, 2);
    for priority in [10, 20] {
        let attr = SchedAttr { rt_priority: priority, ..fifo() };
        let task = kernel.task(C1, attr);
        kernel.wake(task);
    }
    let moved = kernel.class.move_tasks(&mut kernel.core, LOOKER, C1, 1);
    assert!(moved.any);
    assert_eq!(kernel.class.rt.first(C0), Some(TaskId(3)), "the best one");
    assert_eq!(kernel.core.rq(C0).nr_running, 1);
}

#[test]
fn tasks_that_may_not_come_are_all_pinned() {
    let mut kernel = loaded(0, 0);
    for _ in 0..3 {
        let affinity = Some(CpuMask::only(C1));
        let task = kernel.task(C1, SchedAttr { affinity, ..SchedAttr::default() });
        kernel.core.tasks[task.index()].cpus_allowed = CpuMask::only(C1).into();
        kernel.wake(task);
    }
    let moved = kernel.class.move_tasks(&mut kernel.core, LOOKER, C1, 4096);
    assert!(!moved.any && moved.all_pinned);
}

#[test]
fn after_failed_attempts_what_runs_is_pushed() {
    // Both threads of one core run a task each, and the other core is idle.
    let topology = Topology { core: vec![0, 0, 1, 1], ..Topology::flat(4) };
    let mut kernel = Kernel::on(topology, Rules::LINUX_2_6_23, &[]);
    let (a, b) = (kernel.hogs(C0, 1)[0], kernel.hogs(C1, 1)[0]);
    let idle = CpuId(2);
    let mut pushed = None;
    for tick in 1..100 {
        kernel.core.now += MS;
        for cpu in [C0, C1] {
            kernel.class.tick_balance(&mut kernel.core, cpu);
        }
        let from = [C0, C1].into_iter().find(|cpu| kernel.core.rq(*cpu).need_resched);
        if let Some(from) = from {
            assert_eq!(kernel.schedule(from), None, "the migration thread runs");
            kernel.class.balance_callback(&mut kernel.core, from);
            pushed = Some((tick, from));
            break;
        }
    }
    let (_, from) = pushed.expect("it is pushed in time");
    let task = if from == C0 { a } else { b };
    assert_eq!(kernel.core.task(task).cpu, idle);
    assert_eq!(kernel.schedule(idle), Some(task));
    assert_eq!(kernel.schedule(from), None);
}

#[test]
fn section_5_3_a_woken_task_goes_to_the_waker_if_that_is_no_worse() {
    let select = |kernel: &mut Kernel, task, this_cpu| {
        let flags = WakeFlags { this_cpu, ..WakeFlags::TIMER };
        kernel.class.select_task_rq(&mut kernel.core, task, C1, flags)
    };
    // Its CPU has three tasks, the waker's has one.
    let mut kernel = loaded(1, 3);
    let task = kernel.task(C1, SchedAttr::default());
    assert_eq!(select(&mut kernel, task, C0), C0);
    // Its CPU is idle, the waker's is not.
    let mut kernel = loaded(1, 0);
    let task = kernel.task(C1, SchedAttr::default());
    assert_eq!(select(&mut kernel, task, C0), C1);
}

#[test]
fn a_program_starts_on_the_group_with_least_load() {
    let mut kernel = loaded(3, 1);
    let task = kernel.task(C0, SchedAttr::default());
    let flags = WakeFlags { kind: WakeKind::Fork, ..WakeFlags::TIMER };
    assert_eq!(kernel.class.select_task_rq(&mut kernel.core, task, C0, flags), C1);
    // A fork without exec stays with its parent.
    let by_parent = WakeFlags { waker: Some(TaskId(0)), ..flags };
    assert_eq!(kernel.class.select_task_rq(&mut kernel.core, task, C0, by_parent), C0);
}
