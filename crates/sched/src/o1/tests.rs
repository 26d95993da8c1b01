// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of rules that concern a few callbacks, of every version, at HZ=1000. The engine's tests
//! have sequences over many ticks.

use super::*;
use crate::balance::early::{Runqueues, look, source_load, target_load};
use crate::testing;
use schedlab_model::Topology;
use schedlab_model::time::NSEC_PER_MSEC as MS;

const C0: CpuId = CpuId(0);
const ALL: [Rules; 3] = [Rules::LINUX_2_6_0, Rules::LINUX_2_6_11, Rules::LINUX_2_6_22];
const DOMAINS: [Rules; 2] = [Rules::LINUX_2_6_11, Rules::LINUX_2_6_22];

struct Kernel {
    core: Core,
    o1: OrderOne,
}

impl Kernel {
    fn new(rules: Rules, nr_cpus: u32) -> Self {
        Self::on(rules, Topology::flat(nr_cpus))
    }

    fn on(rules: Rules, topology: Topology) -> Self {
        let machine = Machine { hz: 1000, topology, ..Machine::flat(1) };
        let options = Options::defaults(&linux_2_6_0().tunables);
        let o1 = OrderOne::new(rules, &options, 2 * MS, &machine);
        Self { core: testing::core(&machine), o1 }
    }

    fn task(&mut self, cpu: CpuId, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let task = testing::sleeping_task(&self.core, cpu, attr);
        self.core.tasks.push(task);
        self.o1.task_new(&mut self.core, id);
        id
    }

    fn normal(&mut self, nice: i8) -> TaskId {
        self.task(C0, SchedAttr { nice, ..SchedAttr::default() })
    }

    fn entry(&mut self, task: TaskId) -> &mut Entry {
        &mut self.o1.tasks[task.index()]
    }

    fn pass(&mut self, ns: Nanos) {
        self.core.now += ns;
    }

    /// Wakes `task`, by another task.
    fn wake(&mut self, task: TaskId) {
        self.core.wake_flags = WakeFlags { waker: Some(task), ..WakeFlags::TIMER };
        let cpu = self.core.task(task).cpu;
        self.o1.enqueue_task(&mut self.core, cpu, task, EnqueueFlags::WAKEUP);
        self.core.tasks[task.index()].on_rq = true;
        if let Some(curr) = self.core.rq(cpu).curr {
            let flags = self.core.wake_flags;
            self.o1.wakeup_preempt(&mut self.core, cpu, task, curr, flags);
        }
    }

    fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        let next = self.o1.pick_task(&mut self.core, cpu);
        self.core.clear_resched(cpu);
        self.core.rqs[cpu.index()].curr = next;
        next
    }

    /// Puts the running task of CPU 0 to sleep.
    fn sleep(&mut self, state: TaskState) {
        let task = self.core.rq(C0).curr.unwrap();
        self.core.tasks[task.index()].state = state;
        self.core.tasks[task.index()].on_rq = false;
        self.o1.dequeue_task(&mut self.core, C0, task, DequeueFlags::SLEEP);
        self.schedule(C0);
    }

    /// Wakes `task` on idle CPU 0 and runs it.
    fn run(&mut self, task: TaskId) {
        self.wake(task);
        assert_eq!(self.schedule(C0), Some(task));
    }

    /// Changes the attributes of queued `task`.
    fn change(&mut self, task: TaskId, attr: SchedAttr) {
        let save = DequeueFlags { save: true, ..DequeueFlags::NONE };
        self.o1.dequeue_task(&mut self.core, C0, task, save);
        self.o1.attr_changing(&mut self.core, task, &attr);
        self.core.tasks[task.index()].attr = attr.into();
        let restore = EnqueueFlags { restore: true, ..EnqueueFlags::NONE };
        self.o1.enqueue_task(&mut self.core, C0, task, restore);
    }

    /// Gives queued `task` a sleep average, and the corresponding priority.
    fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: Nanos) {
        self.o1.arrays.remove(task);
        self.entry(task).sleep_avg = sleep_avg;
        self.o1.set_effective_prio(task);
        let prio = self.entry(task).prio;
        self.o1.arrays.add(C0, Side::Active, task, prio);
    }

    fn bonus(&self, task: TaskId) -> u64 {
        self.o1.scale.current_bonus(self.o1.tasks[task.index()].sleep_avg)
    }

    fn tick(&mut self) {
        self.pass(MS);
        let curr = self.core.rq(C0).curr.unwrap();
        self.o1.task_tick(&mut self.core, C0, curr);
    }
}

/// Sleep average in microseconds (rounded) and priority after one sleep from which a task wakes it.
fn after_sleep(rules: Rules, slept: Nanos, state: TaskState) -> (u64, u8) {
    let mut kernel = Kernel::new(rules, 1);
    let task = kernel.normal(0);
    kernel.run(task);
    kernel.sleep(state);
    kernel.pass(slept);
    kernel.wake(task);
    let entry = kernel.entry(task);
    (entry.sleep_avg / MS, entry.prio)
}

#[test]
fn section_3_5_one_sleep() {
    let sleeps = [10, 50, 100, 500, 2000];
    let found = |rules| sleeps.map(|ms| after_sleep(rules, ms * MS, TaskState::Sleeping));
    let multiplied = [(100, 124), (500, 120), (1000, 115), (1000, 115), (900, 116)];
    assert_eq!(found(Rules::LINUX_2_6_11), multiplied);
    let plain = [(10, 125), (50, 125), (100, 124), (500, 120), (799, 118)];
    assert_eq!(found(Rules::LINUX_2_6_22), plain);
    // 10 ms are 100 of 1020, just below the first step.
    let credits = [(100, 125), (500, 121), (1000, 116), (1020, 115), (918, 116)];
    assert_eq!(found(Rules::LINUX_2_6_0), credits);
}

#[test]
fn section_3_5_uninterruptible_sleep_stops_at_the_limit() {
    for (rules, limit) in ALL.into_iter().zip([815, 799, 799]) {
        assert_eq!(after_sleep(rules, 2000 * MS, TaskState::BlockedIo).0, limit, "{}", rules.name);
    }
    // Already above the limit: no gain.
    let mut kernel = Kernel::new(Rules::LINUX_2_6_11, 1);
    let task = kernel.normal(0);
    kernel.run(task);
    kernel.sleep(TaskState::BlockedIo);
    kernel.entry(task).sleep_avg = 850 * MS;
    kernel.pass(50 * MS);
    kernel.wake(task);
    assert_eq!(kernel.entry(task).sleep_avg, 850 * MS);
}

#[test]
fn section_3_5_interactive_credits() {
    let mut kernel = Kernel::new(Rules::LINUX_2_6_0, 1);
    let task = kernel.normal(0);
    kernel.run(task);
    kernel.sleep(TaskState::Sleeping);
    let credit = kernel.entry(task).credit;
    kernel.pass(900 * MS);
    kernel.wake(task);
    assert_eq!(kernel.entry(task).credit, credit + 1);
    // Without much credit a sleep counts for at most a slice.
    kernel.schedule(C0);
    kernel.sleep(TaskState::Sleeping);
    kernel.entry(task).credit = -101;
    kernel.entry(task).sleep_avg = 0;
    kernel.pass(50 * MS);
    kernel.wake(task);
    assert_eq!(kernel.entry(task).sleep_avg, 102 * MS);
    // Running is charged in part only with credit: at bonus 9, 90 ms cost 10 ms.
    for (credit, left) in [(100, 850), (101, 930)] {
        kernel.schedule(C0);
        kernel.entry(task).credit = credit;
        kernel.entry(task).sleep_avg = 940 * MS;
        kernel.pass(90 * MS);
        kernel.sleep(TaskState::Sleeping);
        assert_eq!(kernel.entry(task).sleep_avg, left * MS, "credit {credit}");
        kernel.wake(task);
    }
}

/// With 32 bits ten times 430 ms wrap at 4.295 s, and so may the sum; in 2.6.22, which multiplies
/// nothing, 4.3 s of sleep do.
#[test]
fn an_unsigned_long_of_32_bits_wraps() {
    let wrapped = 4_300 * MS - (1 << 32);
    let (v0, v11, v22) = (Rules::LINUX_2_6_0, Rules::LINUX_2_6_11, Rules::LINUX_2_6_22);
    for (rules, before, slept, wide, narrow) in [
        (v0, 0, 429, 1_020 * MS, 1_020 * MS),
        (v0, 0, 430, 1_020 * MS, wrapped),
        (v11, 0, 429, 1_000 * MS, 1_000 * MS),
        (v11, 0, 430, 1_000 * MS, wrapped),
        (v11, 99, 425, 1_000 * MS, 4_349 * MS - (1 << 32)),
        (v11, 0, 800, 900 * MS, 900 * MS),
        (v22, 0, 4_290, 799 * MS, 799 * MS),
        (v22, 0, 4_300, 799 * MS, wrapped),
    ] {
        for (ulong_max, sleep_avg) in [(Nanos::MAX, wide), (u32::MAX.into(), narrow)] {
            let mut kernel = Kernel::new(rules, 1);
            kernel.o1.ulong_max = ulong_max;
            let task = kernel.normal(0);
            kernel.entry(task).sleep_avg = before * MS;
            kernel.pass(slept * MS);
            kernel.wake(task);
            let got = kernel.entry(task).sleep_avg;
            assert_eq!(got, sleep_avg, "{}: {before} ms, {slept} ms, {ulong_max}", rules.name);
        }
    }
}

#[test]
fn section_3_6_the_wait_on_the_queue_counts_in_part() {
    for rules in DOMAINS {
        for (waker, counted) in [(Some(TaskId(0)), 100 * MS * 38 / 128), (None, 100 * MS)] {
            let mut kernel = Kernel::new(rules, 1);
            let (hog, task) = (kernel.normal(0), kernel.normal(0));
            kernel.run(hog);
            kernel.core.wake_flags = WakeFlags { waker, ..WakeFlags::TIMER };
            kernel.o1.enqueue_task(&mut kernel.core, C0, task, EnqueueFlags::WAKEUP);
            kernel.pass(100 * MS);
            kernel.sleep(TaskState::Sleeping);
            assert_eq!(kernel.core.rq(C0).curr, Some(task));
            let factor = if rules == Rules::LINUX_2_6_11 { 10 } else { 1 };
            let expected = (counted * factor).min(1000 * MS);
            assert_eq!(kernel.entry(task).sleep_avg, expected, "{}", rules.name);
            assert_eq!(kernel.entry(task).woken, Woken::No);
        }
    }
}

#[test]
fn section_3_7_run_time_is_divided_by_the_bonus() {
    for rules in DOMAINS {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.entry(task).sleep_avg = 900 * MS;
        kernel.pass(90 * MS);
        kernel.schedule(C0);
        assert_eq!(kernel.entry(task).sleep_avg, 890 * MS);
    }
}

#[test]
fn section_3_8_rotation_of_interactive_tasks() {
    for rules in DOMAINS {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.set_sleep_avg(task, 850 * MS);
        let mut rotations = Vec::new();
        for _ in 0..100 {
            kernel.tick();
            if kernel.core.rq(C0).need_resched {
                rotations.push(kernel.entry(task).time_slice);
                kernel.core.clear_resched(C0);
            }
        }
        // The last request is the end of the slice, which then restarts.
        assert_eq!(rotations, [80, 60, 40, 20, 100], "{}", rules.name);
    }
}

#[test]
fn section_3_8_an_interactive_task_goes_on_until_others_starve() {
    for rules in ALL {
        let mut kernel = Kernel::new(rules, 1);
        let (task, waiting) = (kernel.normal(0), kernel.normal(0));
        kernel.run(task);
        kernel.wake(waiting);
        let slice = kernel.o1.scale.timeslice(120);
        let end_of_slice = |kernel: &mut Kernel, since: Option<u64>, now: u64| {
            kernel.entry(task).sleep_avg = kernel.o1.scale.max_sleep;
            kernel.entry(task).time_slice = 1;
            kernel.o1.cpus[0].expired_timestamp = since;
            kernel.core.now = (now - 1) * MS;
            kernel.tick();
            kernel.o1.arrays.side(task)
        };
        let limit = kernel.o1.scale.starvation_limit() * 2;
        let side = end_of_slice(&mut kernel, Some(7), 7 + limit);
        assert_eq!(side, Some(Side::Active), "{}", rules.name);
        assert_eq!(kernel.entry(task).time_slice, slice);
        let side = end_of_slice(&mut kernel, Some(7), 7 + limit + 1);
        assert_eq!(side, Some(Side::Expired), "{}", rules.name);
    }
}

#[test]
fn section_3_8_a_better_expired_task_ends_the_privilege() {
    for (rules, side) in ALL.into_iter().zip([Side::Active, Side::Expired, Side::Expired]) {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.entry(task).sleep_avg = kernel.o1.scale.max_sleep;
        kernel.entry(task).time_slice = 1;
        kernel.o1.cpus[0].best_expired_prio = 119;
        kernel.tick();
        assert_eq!(kernel.o1.arrays.side(task), Some(side), "{}", rules.name);
    }
}

#[test]
fn section_3_10_fork_splits_the_slice() {
    for (rules, is_thread) in ALL.into_iter().flat_map(|rules| [(rules, false), (rules, true)]) {
        for (before, child, parent) in [(100, 50, 50), (5, 3, 2)] {
            let mut kernel = Kernel::new(rules, 1);
            let task = kernel.normal(0);
            kernel.run(task);
            kernel.entry(task).time_slice = before;
            kernel.set_sleep_avg(task, 3 * kernel.o1.scale.max_sleep / 4);
            let new = kernel.normal(0);
            if is_thread {
                kernel.core.tasks[new.index()].mm = kernel.core.task(task).mm;
            }
            kernel.o1.task_fork(&mut kernel.core, C0, new, Some(task));
            kernel.o1.enqueue_task(&mut kernel.core, C0, new, EnqueueFlags::INITIAL);
            assert_eq!(kernel.entry(new).time_slice, child);
            assert_eq!(kernel.entry(task).time_slice, parent);
            // Bonus 7 of the parent, 6 of the child.
            assert_eq!((kernel.bonus(task), kernel.bonus(new)), (7, 6), "{}", rules.name);
            let runs_last = is_thread && rules.threads_run_last;
            let order: Vec<_> = kernel.o1.arrays.iter(C0, Side::Active).collect();
            let expected = if runs_last { [task, new] } else { [new, task] };
            assert_eq!(order, expected, "{}", rules.name);
            assert_eq!(kernel.core.rq(C0).need_resched, !runs_last);
        }
    }
}

#[test]
fn section_3_10_a_fork_with_the_last_tick_ends_the_slice() {
    for rules in ALL {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.entry(task).time_slice = 1;
        let new = kernel.normal(0);
        kernel.o1.task_fork(&mut kernel.core, C0, new, Some(task));
        assert_eq!(kernel.entry(new).time_slice, 1);
        let slice = kernel.o1.scale.timeslice(120);
        assert_eq!(kernel.entry(task).time_slice, slice);
        assert_eq!(kernel.o1.arrays.side(task), Some(Side::Expired));
    }
}

#[test]
fn section_3_10_exit() {
    for (rules, most) in ALL.into_iter().zip([140, 100, 100]) {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        let new = kernel.normal(0);
        kernel.o1.task_fork(&mut kernel.core, C0, new, Some(task));
        kernel.entry(task).sleep_avg = 800 * MS;
        kernel.entry(new).sleep_avg = 400 * MS;
        kernel.entry(task).time_slice = 90;
        kernel.entry(new).time_slice = 50;
        kernel.o1.task_dead(&mut kernel.core, new);
        assert_eq!(kernel.entry(task).sleep_avg, 700 * MS);
        assert_eq!(kernel.entry(task).time_slice, most, "{}", rules.name);
        // A child that has used a slice gives nothing back, nor one that slept as much.
        let new = kernel.normal(0);
        kernel.o1.task_fork(&mut kernel.core, C0, new, Some(task));
        kernel.entry(task).sleep_avg = 300 * MS;
        kernel.entry(new).sleep_avg = 400 * MS;
        kernel.entry(new).first_time_slice = false;
        let before = kernel.entry(task).time_slice;
        kernel.o1.task_dead(&mut kernel.core, new);
        let entry = *kernel.entry(task);
        assert_eq!((entry.sleep_avg, entry.time_slice), (300 * MS, before));
    }
}

#[test]
fn section_3_10_yield() {
    let mut kernel = Kernel::new(Rules::LINUX_2_6_11, 1);
    let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..SchedAttr::default() };
    let (normal, a, b) = (kernel.normal(0), kernel.task(C0, fifo), kernel.task(C0, fifo));
    kernel.run(normal);
    kernel.o1.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.o1.arrays.side(normal), Some(Side::Expired));
    kernel.wake(a);
    kernel.wake(b);
    assert_eq!(kernel.schedule(C0), Some(a));
    kernel.o1.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.schedule(C0), Some(b));
}

/// Two FIFO tasks of one priority wake, A first, and A is picked. A better task interrupts it. In
/// 2.6.0 the pick has put A behind B.
#[test]
fn a_woken_real_time_task_loses_its_place_only_in_2_6_0() {
    for (rules, b_is_next) in ALL.into_iter().zip([true, false, false]) {
        let mut kernel = Kernel::new(rules, 1);
        let fifo =
            |rt_priority| SchedAttr { policy: Policy::Fifo, rt_priority, ..SchedAttr::default() };
        let [a, b] = [fifo(10), fifo(10)].map(|attr| kernel.task(C0, attr));
        let better = kernel.task(C0, fifo(20));
        kernel.wake(a);
        kernel.wake(b);
        assert_eq!(kernel.schedule(C0), Some(a), "{}", rules.name);
        kernel.pass(MS);
        kernel.wake(better);
        assert_eq!(kernel.schedule(C0), Some(better), "{}", rules.name);
        kernel.sleep(TaskState::Sleeping);
        let next = if b_is_next { b } else { a };
        assert_eq!(kernel.core.rq(C0).curr, Some(next), "{}", rules.name);
    }
}

/// In 2.6.0 the wait of a woken real-time task counts as sleep too. It shows when the task gives
/// up its policy.
#[test]
fn a_real_time_tasks_wait_counts_as_sleep_only_in_2_6_0() {
    // 128 ms of waiting, of which 38 count, ten times.
    for (rules, sleep_avg) in ALL.into_iter().zip([380 * MS, 0, 0]) {
        let mut kernel = Kernel::new(rules, 1);
        let fifo =
            |rt_priority| SchedAttr { policy: Policy::Fifo, rt_priority, ..SchedAttr::default() };
        let [better, a] = [fifo(20), fifo(10)].map(|attr| kernel.task(C0, attr));
        kernel.run(better);
        kernel.wake(a);
        kernel.pass(128 * MS);
        kernel.sleep(TaskState::Sleeping);
        assert_eq!(kernel.core.rq(C0).curr, Some(a), "{}", rules.name);
        assert_eq!(kernel.entry(a).sleep_avg, sleep_avg, "{}", rules.name);
    }
}

/// A FIFO task sleeps for 10 ms. What counts of it shows when the task gives up its policy.
#[test]
fn a_real_time_tasks_sleep_counts_up_to_2_6_11() {
    for (rules, sleep_avg) in ALL.into_iter().zip([100 * MS, 100 * MS, 0]) {
        let mut kernel = Kernel::new(rules, 1);
        let attr = SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..SchedAttr::default() };
        let fifo = kernel.task(C0, attr);
        kernel.run(fifo);
        kernel.sleep(TaskState::Sleeping);
        kernel.pass(10 * MS);
        kernel.run(fifo);
        assert_eq!(kernel.entry(fifo).sleep_avg, sleep_avg, "{}", rules.name);
    }
}

/// A new SCHED_BATCH task waits in the expired array, as one that wakes does.
#[test]
fn a_new_batch_task_is_expired() {
    for (rules, side) in ALL.into_iter().zip([Side::Active, Side::Active, Side::Expired]) {
        let mut kernel = Kernel::new(rules, 1);
        let batch = SchedAttr { policy: Policy::Batch, ..SchedAttr::default() };
        let [new, woken] = [batch, batch].map(|attr| kernel.task(C0, attr));
        kernel.o1.task_fork(&mut kernel.core, C0, new, None);
        kernel.o1.enqueue_task(&mut kernel.core, C0, new, EnqueueFlags::INITIAL);
        kernel.wake(woken);
        let sides = [new, woken].map(|task| kernel.o1.arrays.side(task));
        assert_eq!(sides, [Some(side); 2], "{}", rules.name);
    }
}

/// A task that becomes a SCHED_BATCH one expires and loses its sleep average; its priority is
/// computed before.
#[test]
fn a_change_to_batch_ends_the_turn() {
    for (rules, side, sleep_avg, prio) in [
        (Rules::LINUX_2_6_11, Side::Active, 1000 * MS, 120),
        (Rules::LINUX_2_6_22, Side::Expired, 0, 115),
    ] {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.entry(task).sleep_avg = kernel.o1.scale.max_sleep;
        kernel.change(task, SchedAttr { policy: Policy::Batch, ..SchedAttr::default() });
        assert_eq!(kernel.o1.arrays.side(task), Some(side), "{}", rules.name);
        let entry = kernel.entry(task);
        assert_eq!((entry.sleep_avg, entry.prio), (sleep_avg, prio), "{}", rules.name);
    }
}

#[test]
fn section_3_10_nice_and_policy() {
    for (rules, prio) in ALL.into_iter().zip([110, 110, 105]) {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.normal(0);
        kernel.run(task);
        kernel.entry(task).sleep_avg = kernel.o1.scale.max_sleep;
        let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..SchedAttr::default() };
        for (attr, prio) in [(SchedAttr { nice: -10, ..SchedAttr::default() }, prio), (fifo, 89)] {
            kernel.change(task, attr);
            assert_eq!(kernel.entry(task).prio, prio, "{}", rules.name);
        }
    }
}

/// Cycles of 30 ms of sleep, ended by a task, and 10 ms on the CPU. Each entry has the bonus and
/// priority when it runs, and the rest of the sleep average in us.
fn cycles(rules: Rules, count: usize) -> Vec<(u64, u8, u64)> {
    let mut kernel = Kernel::new(rules, 1);
    let task = kernel.normal(0);
    let cycle = |kernel: &mut Kernel| {
        kernel.pass(30 * MS);
        kernel.run(task);
        let (bonus, prio) = (kernel.bonus(task), kernel.entry(task).prio);
        kernel.pass(10 * MS);
        kernel.sleep(TaskState::Sleeping);
        (bonus, prio, (kernel.entry(task).sleep_avg + 500) / 1000)
    };
    (0..count).map(|_| cycle(&mut kernel)).collect()
}

#[test]
fn section_3_13_interactivity_2_6_11() {
    let expected = [
        (3, 122, 296_667),
        (5, 120, 534_667),
        (6, 119, 683_000),
        (8, 117, 801_750),
        (8, 117, 860_500),
        (9, 116, 919_389),
        (9, 116, 948_278),
        (9, 116, 977_167),
        (10, 115, 999_000),
        (10, 115, 999_000),
        (10, 115, 999_000),
    ];
    assert_eq!(cycles(Rules::LINUX_2_6_11, 11), expected);
}

#[test]
fn section_3_13_interactivity_2_6_22() {
    let found = cycles(Rules::LINUX_2_6_22, 40);
    for (cycle, expected) in [
        (1, (0, 125, 20_000)),
        (2, (0, 125, 40_000)),
        (5, (1, 124, 100_000)),
        (10, (2, 123, 205_000)),
        (15, (3, 122, 333_333)),
        (20, (4, 121, 469_167)),
        (25, (6, 119, 609_000)),
        (30, (7, 118, 751_143)),
        (35, (8, 117, 894_714)),
        (40, (10, 115, 999_000)),
    ] {
        assert_eq!(found[cycle - 1], expected, "cycle {cycle}");
    }
}

#[test]
fn section_3_13_against_a_hog() {
    for (rules, preempts) in ALL.into_iter().zip([true, true, false]) {
        let mut kernel = Kernel::new(rules, 1);
        let (task, hog) = (kernel.normal(0), kernel.normal(0));
        kernel.run(task);
        kernel.sleep(TaskState::Sleeping);
        kernel.run(hog);
        kernel.pass(30 * MS);
        kernel.wake(task);
        assert_eq!(kernel.core.rq(C0).need_resched, preempts, "{}", rules.name);
    }
}

/// A 2.6.0 kernel with 2 CPUs and these numbers of runnable tasks, the first ones running.
fn loaded(here: u32, there: u32) -> Kernel {
    let mut kernel = Kernel::new(Rules::LINUX_2_6_0, 2);
    for (cpu, count) in [(C0, here), (CpuId(1), there)] {
        for _ in 0..count {
            let task = kernel.task(cpu, SchedAttr::default());
            kernel.wake(task);
        }
        kernel.schedule(cpu);
    }
    // No task is cache-hot, and the last counts equal the present ones.
    kernel.pass(100 * MS);
    kernel.o1.load_balance_counts(&mut kernel.core, C0, false);
    kernel
}

#[test]
fn section_3_11_busy_balancing_of_2_6_0() {
    for (here, there, moved) in [(1, 3, 1), (4, 5, 0), (1, 7, 3), (5, 5, 0), (5, 3, 0)] {
        let mut kernel = loaded(here, there);
        let before = kernel.core.rq(C0).nr_running;
        kernel.o1.load_balance_counts(&mut kernel.core, C0, false);
        assert_eq!(kernel.core.rq(C0).nr_running - before, moved, "{here} {there}");
    }
}

#[test]
fn section_3_11_a_peak_is_not_seen_at_once_by_a_busy_cpu() {
    let mut kernel = loaded(1, 1);
    for _ in 0..4 {
        let task = kernel.task(CpuId(1), SchedAttr::default());
        kernel.wake(task);
    }
    kernel.pass(100 * MS);
    assert!(!kernel.o1.load_balance_counts(&mut kernel.core, C0, false));
    assert!(kernel.o1.load_balance_counts(&mut kernel.core, C0, false));
}

#[test]
fn section_3_11_an_imbalance_of_1_pulls_all_that_wait() {
    let mut kernel = loaded(2, 2);
    let task = kernel.task(CpuId(1), SchedAttr::default());
    kernel.wake(task);
    kernel.pass(100 * MS);
    kernel.o1.load_balance_counts(&mut kernel.core, C0, false);
    // 2 here, 3 there of which one runs: half of 1 is 0, so both others move.
    kernel.o1.load_balance_counts(&mut kernel.core, C0, false);
    assert_eq!(kernel.core.rq(C0).nr_running, 4);
}

#[test]
fn section_3_11_an_idle_cpu_takes_one_hot_or_not() {
    let mut kernel = Kernel::new(Rules::LINUX_2_6_0, 2);
    for _ in 0..4 {
        let task = kernel.task(CpuId(1), SchedAttr::default());
        kernel.wake(task);
    }
    kernel.schedule(CpuId(1));
    assert!(kernel.o1.load_balance_counts(&mut kernel.core, C0, true));
    assert_eq!(kernel.core.rq(C0).nr_running, 1);
    assert!(kernel.core.rq(C0).need_resched);
}

/// Two CPUs of a version with domains, with these numbers of hogs, and time for their averages to
/// follow.
fn in_domains(rules: Rules, here: u32, there: u32) -> Kernel {
    let mut kernel = Kernel::new(rules, 2);
    for (cpu, count) in [(C0, here), (CpuId(1), there)] {
        for _ in 0..count {
            let task = kernel.task(cpu, SchedAttr::default());
            kernel.wake(task);
        }
        kernel.schedule(cpu);
    }
    kernel.pass(100 * MS);
    for cpu in [C0, CpuId(1)] {
        let load = kernel.o1.cpu_weight(&kernel.core, cpu);
        for _ in 0..50 {
            kernel.o1.balancer_mut().move_averages(cpu, load);
        }
    }
    kernel
}

#[test]
fn section_3_11_loads() {
    for (rules, loads) in DOMAINS.into_iter().zip([[128; 4], [1024, 128, 64, 6]]) {
        let mut kernel = Kernel::new(rules, 1);
        for (nice, load) in [-20, 0, 10, 19].into_iter().zip(loads) {
            let task = kernel.normal(nice);
            let before = kernel.o1.balancer().load[0];
            kernel.wake(task);
            assert_eq!(kernel.o1.balancer().load[0] - before, load, "{nice}");
        }
        // The average follows by halves, rounded up while it rises.
        let load = kernel.o1.balancer().load[0];
        kernel.o1.balancer_mut().move_averages(C0, load);
        assert_eq!(kernel.o1.balancer().average(C0, 1), load.div_ceil(2));
        // Averages count from the load at the last tick; 2.6.11 has only the second average.
        assert_eq!(source_load(&kernel.o1, &kernel.core, C0, 2), load.div_ceil(2));
        assert_eq!(target_load(&kernel.o1, &kernel.core, C0, 2), load);
    }
    let mut kernel = Kernel::new(Rules::LINUX_2_6_22, 1);
    let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 50, ..SchedAttr::default() };
    let task = kernel.task(C0, fifo);
    kernel.wake(task);
    assert_eq!(kernel.o1.balancer().load[0], 1024 + 50 * 128 / 100);
}

#[test]
fn section_3_11_a_busy_cpu_balances_its_domain() {
    for rules in DOMAINS {
        for (here, there, moved) in [(1, 3, 1), (4, 5, 0), (1, 7, 3), (3, 1, 0)] {
            let mut kernel = in_domains(rules, here, there);
            // The kernel's CPUs begin with an interval of 1 ms, 64 when busy.
            look::rebalance_tick(&mut kernel.o1, &mut kernel.core, C0);
            let now = kernel.core.rq(C0).nr_running;
            assert_eq!(now - here.min(now), moved, "{} {here} {there}", rules.name);
        }
    }
}

#[test]
fn section_3_11_a_cpu_that_runs_dry_takes_a_task() {
    for rules in DOMAINS {
        let mut kernel = in_domains(rules, 0, 3);
        assert!(kernel.o1.newidle_balance(&mut kernel.core, C0), "{}", rules.name);
        assert!(kernel.core.rq(C0).nr_running >= 1);
        let mut kernel = in_domains(rules, 0, 1);
        assert!(!kernel.o1.newidle_balance(&mut kernel.core, C0), "{}", rules.name);
    }
}

#[test]
fn section_3_11_a_woken_task_goes_to_the_idle_waker_and_not_from_idle_to_busy() {
    for rules in DOMAINS {
        let flags = |cpu| WakeFlags { this_cpu: cpu, ..WakeFlags::TIMER };
        // Its CPU has three tasks, the waker's has one.
        let mut kernel = in_domains(rules, 1, 3);
        let task = kernel.task(CpuId(1), SchedAttr::default());
        let cpu = kernel.o1.select_task_rq(&mut kernel.core, task, CpuId(1), flags(C0));
        assert_eq!(cpu, C0, "{}", rules.name);
        // Its CPU is idle, the waker's is not.
        let mut kernel = in_domains(rules, 1, 0);
        let task = kernel.task(CpuId(1), SchedAttr::default());
        let cpu = kernel.o1.select_task_rq(&mut kernel.core, task, CpuId(1), flags(C0));
        assert_eq!(cpu, CpuId(1), "{}", rules.name);
    }
}

#[test]
fn section_3_11_an_idle_thread_is_for_who_waits_alone() {
    for (rules, beside_two) in DOMAINS.into_iter().zip([CpuId(1), C0]) {
        for (nr_here, expected) in [(0, C0), (1, CpuId(1)), (2, beside_two)] {
            let core = Topology { core: vec![0; 2], ..Topology::flat(2) };
            let mut kernel = Kernel::on(rules, core);
            for _ in 0..nr_here {
                let task = kernel.normal(0);
                kernel.wake(task);
            }
            kernel.schedule(C0);
            let task = kernel.normal(0);
            let cpu = kernel.o1.select_task_rq(&mut kernel.core, task, C0, WakeFlags::TIMER);
            assert_eq!(cpu, expected, "{} beside {nr_here}", rules.name);
        }
    }
}
