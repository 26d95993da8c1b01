// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of rules that concern a few callbacks, of both versions, at HZ=1000. The engine's tests
//! have sequences over many ticks.

use super::*;
use crate::testing;
use schedlab_model::CgroupId;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::time::NSEC_PER_MSEC as MS;

const C0: CpuId = CpuId(0);
const C1: CpuId = CpuId(1);
const FIRST: Rules = Rules::LINUX_2_6_24;
const LATER: Rules = Rules::LINUX_2_6_32;

struct Kernel {
    core: Core,
    fair: Fair,
}

impl Kernel {
    fn new(rules: Rules, nr_cpus: u32) -> Self {
        Self::with(rules, nr_cpus, &[], &[])
    }

    /// A kernel with control groups of these weights below the root group, and with tunables.
    fn with(rules: Rules, nr_cpus: u32, weights: &[u32], set: &[(&str, u64)]) -> Self {
        let machine = Machine { hz: 1000, ..Machine::flat(nr_cpus) };
        let tunables = if rules.is_later { TUNABLES_2_6_32 } else { TUNABLES_2_6_24 };
        let mut options = Options::defaults(tunables);
        for (name, value) in set {
            options.set(tunables, name, *value).unwrap();
        }
        let spec = |(index, weight): (usize, &u32)| {
            CgroupSpec::new(format!("/{index}"), CgroupId(0), *weight)
        };
        let below = weights.iter().enumerate().map(spec);
        let cgroups: Vec<_> = std::iter::once(CgroupSpec::root()).chain(below).collect();
        let fair = Fair::new(rules, &options, &machine, &cgroups);
        let random = Stream::new(1, Purpose::Scheduler, 0);
        Self { core: Core::new(&machine, cgroups, random), fair }
    }

    fn task(&mut self, cpu: CpuId, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let task = testing::sleeping_task(&self.core, cpu, attr);
        self.core.tasks.push(task);
        self.fair.task_new(&mut self.core, id);
        id
    }

    fn nice(&mut self, nice: i8) -> TaskId {
        self.task(C0, SchedAttr { nice, ..SchedAttr::default() })
    }

    fn member(&mut self, cpu: CpuId, group: u32) -> TaskId {
        self.task(cpu, SchedAttr { cgroup: CgroupId(group), ..SchedAttr::default() })
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        let e = self.fair.task_entity(task);
        &mut self.fair.ents[e as usize]
    }

    fn vruntime(&self, task: TaskId) -> i64 {
        self.fair.ent(self.fair.task_entity(task)).vruntime as i64
    }

    fn min_vruntime(&self, cpu: CpuId) -> i64 {
        self.fair.rq(self.fair.root_queue(cpu)).min_vruntime as i64
    }

    /// The slice of a queued task.
    fn slice(&self, task: TaskId) -> Nanos {
        let e = self.fair.task_entity(task);
        self.fair.slice(self.fair.ent(e).cfs, e)
    }

    fn pass(&mut self, ns: Nanos) {
        self.core.now += ns;
    }

    /// Wakes `task`, by an interrupt or by `waker`.
    fn wake_by(&mut self, task: TaskId, waker: Option<TaskId>) {
        self.core.wake_flags = WakeFlags { waker, ..WakeFlags::TIMER };
        let cpu = self.core.task(task).cpu;
        self.fair.enqueue_task(&mut self.core, cpu, task, EnqueueFlags::WAKEUP);
        self.core.tasks[task.index()].on_rq = true;
        if let Some(curr) = self.core.rq(cpu).curr {
            let flags = self.core.wake_flags;
            self.fair.wakeup_preempt(&mut self.core, cpu, task, curr, flags);
        }
    }

    fn wake(&mut self, task: TaskId) {
        self.wake_by(task, None);
    }

    /// Lets the running task of CPU 0 fork.
    fn fork(&mut self, attr: SchedAttr) -> TaskId {
        let parent = self.core.rq(C0).curr;
        let child = self.task(C0, attr);
        let kind = crate::boundary::flags::WakeKind::Fork;
        self.core.wake_flags = WakeFlags { waker: parent, kind, ..WakeFlags::TIMER };
        self.fair.task_fork(&mut self.core, C0, child, parent);
        self.fair.enqueue_task(&mut self.core, C0, child, EnqueueFlags::INITIAL);
        self.core.tasks[child.index()].on_rq = true;
        child
    }

    fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        let prev = self.core.rq(cpu).curr;
        let next = self.fair.pick_task(&mut self.core, cpu);
        self.core.clear_resched(cpu);
        if prev != next {
            if let Some(prev) = prev {
                self.fair.put_prev_task(&mut self.core, cpu, prev, next);
            }
            self.core.rqs[cpu.index()].curr = next;
            if let Some(next) = next {
                self.fair.set_next_task(&mut self.core, cpu, next, true);
            }
        }
        next
    }

    /// Puts the running task of CPU 0 to sleep. Returns the next one.
    fn sleep(&mut self) -> Option<TaskId> {
        let task = self.core.rq(C0).curr.unwrap();
        self.core.tasks[task.index()].on_rq = false;
        self.fair.dequeue_task(&mut self.core, C0, task, DequeueFlags::SLEEP);
        self.schedule(C0)
    }

    fn run(&mut self, task: TaskId) {
        self.wake(task);
        assert_eq!(self.schedule(C0), Some(task));
    }

    /// Handles a tick after `ns`. Returns whether it requests a reschedule.
    fn tick(&mut self, ns: Nanos) -> bool {
        self.pass(ns);
        let curr = self.core.rq(C0).curr.unwrap();
        self.fair.task_tick(&mut self.core, C0, curr);
        self.core.rq(C0).need_resched
    }

    fn tree(&self, cpu: CpuId) -> Vec<TaskId> {
        let rq = self.fair.rq(self.fair.root_queue(cpu));
        let mut all = Vec::new();
        let mut at = rq.tree.leftmost;
        while at != NIL {
            all.push(self.fair.entity_task(at));
            at = rq.tree.next(&self.fair.nodes, at);
        }
        all
    }
}

fn slices(rules: Rules, nices: &[i8]) -> Vec<Nanos> {
    let mut kernel = Kernel::new(rules, 1);
    let tasks: Vec<_> = nices.iter().map(|value| kernel.nice(*value)).collect();
    for task in &tasks {
        kernel.wake(*task);
    }
    tasks.iter().map(|task| kernel.slice(*task)).collect()
}

#[test]
fn section_5_5_slices() {
    assert_eq!(slices(FIRST, &[0, 0]), [10_000_000, 10_000_000]);
    assert_eq!(slices(FIRST, &[0, 5]), [15_069_904, 4_930_095]);
    assert_eq!(slices(FIRST, &[0, 10]), [18_059_964, 1_940_035]);
    assert_eq!(slices(FIRST, &[0, 19]), [19_711_260, 288_739]);
    assert_eq!(slices(FIRST, &[-10, 0]), [18_062_807, 1_937_192]);
    assert_eq!(slices(FIRST, &[0; 3]), [6_666_666; 3]);
    assert_eq!(slices(FIRST, &[0; 6]), [4_000_000; 6]);
}

#[test]
fn section_5_5_periods() {
    let first = Kernel::new(FIRST, 1).fair;
    assert_eq!([1, 5, 6, 10, 20].map(|nr| first.period(nr) / MS), [20, 20, 24, 40, 80]);
    // 2.6.32: the least slice for each, which gives the same value with the defaults.
    let later = Kernel::new(LATER, 1).fair;
    assert_eq!([1, 5, 6, 10, 20].map(|nr| later.period(nr) / MS), [5, 5, 6, 10, 20]);
    let set = [("sched_latency", 20 * MS), ("sched_min_granularity", 3 * MS)];
    let first = Kernel::with(FIRST, 1, &[], &set).fair;
    let later = Kernel::with(LATER, 1, &[], &set).fair;
    // Writing either file sets the number, so seven tasks fit.
    assert_eq!((first.period(8), later.period(8)), (20 * MS * 8 / 7, 24 * MS));
}

#[test]
fn section_5_5_the_running_entity_is_not_in_the_tree() {
    let mut kernel = Kernel::new(FIRST, 1);
    let (a, b) = (kernel.nice(0), kernel.nice(0));
    kernel.run(a);
    kernel.wake(b);
    assert_eq!(kernel.tree(C0), [b]);
    let rq = *kernel.fair.rq(0);
    assert_eq!((rq.nr_running, rq.load), (2, 2048));
    kernel.pass(3 * MS);
    kernel.tick(MS);
    assert_eq!(kernel.vruntime(a), 4_000_000);
    // The minimum is the lesser of the two, and never falls.
    assert_eq!(kernel.min_vruntime(C0), 0);
    assert_eq!(kernel.schedule(C0), Some(b));
    assert_eq!(kernel.tree(C0), [a]);
}

#[test]
fn section_5_5_min_vruntime_only_grows() {
    let mut kernel = Kernel::new(FIRST, 1);
    let (a, b) = (kernel.nice(0), kernel.nice(0));
    kernel.run(a);
    kernel.tick(30 * MS);
    assert_eq!(kernel.min_vruntime(C0), 30_000_000, "alone: its own");
    kernel.wake(b);
    assert_eq!(kernel.vruntime(b), 10_000_000, "a latency before the rest");
    kernel.tick(MS);
    assert_eq!(kernel.min_vruntime(C0), 30_000_000);
}

#[test]
fn section_5_5_the_tick_asks_when_the_slice_is_exceeded() {
    let mut kernel = Kernel::new(FIRST, 1);
    let (a, b) = (kernel.nice(0), kernel.nice(0));
    kernel.run(a);
    assert!(!kernel.tick(50 * MS), "alone");
    kernel.wake(b);
    kernel.core.clear_resched(C0);
    kernel.schedule(C0);
    let curr = kernel.core.rq(C0).curr.unwrap();
    assert_eq!(curr, b, "the sleeper is far behind");
    assert!(!kernel.tick(10 * MS), "not more than its slice");
    assert!(kernel.tick(1), "more");
}

#[test]
fn section_5_5_placement_of_sleepers() {
    // Own time, least time of the queue, place.
    let placed = |rules: Rules, own: i64, least: i64, attr: SchedAttr| {
        let mut kernel = Kernel::new(rules, 1);
        let task = kernel.task(C0, attr);
        kernel.fair.cfs[0].min_vruntime = least as u64;
        kernel.entity(task).vruntime = own as u64;
        kernel.wake(task);
        kernel.vruntime(task)
    };
    let normal = SchedAttr::default();
    let ms = MS as i64;
    assert_eq!(placed(FIRST, 0, 100 * ms, normal), 80 * ms);
    assert_eq!(placed(FIRST, 95 * ms, 100 * ms, normal), 95 * ms, "slept for less");
    assert_eq!(placed(FIRST, 130 * ms, 100 * ms, normal), 130 * ms, "never forwards");
    // 2.6.32 gives half a latency, whatever the weight.
    let light = SchedAttr { nice: 10, ..normal };
    assert_eq!(placed(LATER, 0, 100 * ms, normal), 97 * ms + ms / 2);
    assert_eq!(placed(LATER, 0, 100 * ms, light), 97 * ms + ms / 2);
    assert_eq!(placed(LATER, 99 * ms, 100 * ms, normal), 99 * ms);
}

#[test]
fn section_5_6_features_of_the_credit() {
    let placed = |set: &[(&str, u64)], nice: i8| {
        let mut kernel = Kernel::with(LATER, 1, &[], set);
        let task = kernel.nice(nice);
        kernel.fair.cfs[0].min_vruntime = 1_000 * MS;
        kernel.wake(task);
        1_000_000_000 - kernel.vruntime(task)
    };
    assert_eq!(placed(&[], 5), 2_500_000);
    assert_eq!(placed(&[("GENTLE_FAIR_SLEEPERS", 0)], 5), 5_000_000);
    assert_eq!(placed(&[("FAIR_SLEEPERS", 0)], 5), 0);
    // 5 ms at nice 5 are 15.283582 ms of virtual time.
    let set = [("NORMALIZED_SLEEPER", 1), ("GENTLE_FAIR_SLEEPERS", 0)];
    assert_eq!(placed(&set, 5), 15_283_582);
}

#[test]
fn section_5_5_fork_swaps_parent_and_child() {
    for (others, debit) in [(0, 10), (2, 5)] {
        let mut kernel = Kernel::new(FIRST, 1);
        let parent = kernel.nice(0);
        kernel.run(parent);
        for _ in 0..others {
            let other = kernel.nice(0);
            kernel.wake(other);
        }
        kernel.core.clear_resched(C0);
        let least = kernel.min_vruntime(C0).max(kernel.vruntime(parent));
        let child = kernel.fork(SchedAttr::default());
        // One nice-0 runner: the child would wait for 10 ms; three: for 5.
        assert_eq!(kernel.vruntime(child), least);
        assert_eq!(kernel.vruntime(parent), least + debit * MS as i64);
        assert!(kernel.core.rq(C0).need_resched);
    }
}

#[test]
fn section_5_5_fork_without_the_swap() {
    let mut kernel = Kernel::with(FIRST, 1, &[], &[("sched_child_runs_first", 0)]);
    let parent = kernel.nice(0);
    kernel.run(parent);
    let child = kernel.fork(SchedAttr::default());
    assert_eq!((kernel.vruntime(parent), kernel.vruntime(child)), (0, 10_000_000));
    // A new task's own virtual time does not count: only its place does.
    let mut kernel = Kernel::with(FIRST, 1, &[], &[("sched_features", 3)]);
    let parent = kernel.nice(0);
    kernel.run(parent);
    kernel.tick(7 * MS);
    let child = kernel.fork(SchedAttr::default());
    assert_eq!(kernel.vruntime(child), 7_000_000);
}

#[test]
fn section_5_5_features_of_placement() {
    let placed = |bits: u64| {
        let mut kernel = Kernel::with(FIRST, 1, &[], &[("sched_features", bits)]);
        let tasks = [kernel.nice(0), kernel.nice(0), kernel.nice(0)];
        kernel.run(tasks[0]);
        kernel.wake(tasks[1]);
        let e = kernel.fair.task_entity(tasks[1]);
        kernel.fair.cfs[0].tree.remove(&mut kernel.fair.nodes, e);
        kernel.entity(tasks[1]).vruntime = 30 * MS;
        kernel.fair.nodes[e as usize].key = 30 * MS;
        kernel.fair.cfs[0].tree.insert(&mut kernel.fair.nodes, e);
        kernel.wake(tasks[2]);
        kernel.vruntime(tasks[2])
    };
    // The queue is at 0, its last one at 30 ms; half a slice of two tasks is 5 ms.
    assert_eq!([6, 6 + 8, 6 + 16].map(placed), [0, 15_000_000, 5_000_000]);
}

#[test]
fn section_5_6_fork_leaves_the_parent_first() {
    let mut kernel = Kernel::new(LATER, 1);
    let parent = kernel.nice(0);
    kernel.run(parent);
    kernel.tick(7 * MS);
    let child = kernel.fork(SchedAttr::default());
    // Half of 5 ms behind, as near as the inverse of 2048 + 1 allows.
    let debit = kernel.vruntime(child) - kernel.vruntime(parent);
    assert_eq!(debit, 2_498_780);
    assert!(!kernel.core.rq(C0).need_resched);
    let set = [("sched_child_runs_first", 1)];
    let mut kernel = Kernel::with(LATER, 1, &[], &set);
    let parent = kernel.nice(0);
    kernel.run(parent);
    kernel.tick(7 * MS);
    let child = kernel.fork(SchedAttr::default());
    assert_eq!(kernel.vruntime(parent) - kernel.vruntime(child), debit);
    assert!(kernel.core.rq(C0).need_resched);
}

/// Whether a task `behind` the running one preempts it.
fn preempts(rules: Rules, behind: Nanos, curr: SchedAttr, woken: SchedAttr) -> bool {
    let mut kernel = Kernel::new(rules, 1);
    let (a, b) = (kernel.task(C0, curr), kernel.task(C0, woken));
    kernel.fair.cfs[0].min_vruntime = 1_000 * MS;
    kernel.entity(a).vruntime = 1_000 * MS;
    kernel.run(a);
    kernel.entity(b).vruntime = 1_000 * MS - behind;
    kernel.wake(b);
    kernel.core.rq(C0).need_resched
}

#[test]
fn section_5_5_wakeup_preemption() {
    let normal = SchedAttr::default();
    let nice = |nice| SchedAttr { nice, ..normal };
    assert!(!preempts(FIRST, 10 * MS, normal, normal));
    assert!(preempts(FIRST, 10 * MS + 1, normal, normal));
    // The granularity is in the running task's virtual time: 10 ms at nice -5 are 3.281 ms.
    assert!(!preempts(FIRST, 3_281_000, nice(-5), normal));
    assert!(preempts(FIRST, 3_281_001, nice(-5), normal));
    assert!(!preempts(FIRST, 20 * MS, nice(5), normal), "30.567 ms");
    let batch = SchedAttr { policy: Policy::Batch, ..normal };
    assert!(!preempts(FIRST, 20 * MS, normal, batch));
    assert!(preempts(FIRST, 20 * MS, batch, normal));
    let idle = SchedAttr { policy: Policy::Idle, ..normal };
    assert!(preempts(FIRST, 20 * MS, normal, idle), "IDLE is but a weight");
}

#[test]
fn section_5_6_wakeup_preemption() {
    let normal = SchedAttr::default();
    assert!(!preempts(LATER, MS, normal, normal));
    assert!(preempts(LATER, MS + 1, normal, normal));
    // The granularity is in the waking task's virtual time.
    let heavy = SchedAttr { nice: -5, ..normal };
    assert!(preempts(LATER, 328_101, normal, heavy));
    assert!(!preempts(LATER, 328_100, normal, heavy));
    assert!(!preempts(LATER, MS + 1, normal, SchedAttr { nice: 5, ..normal }));
    let idle = SchedAttr { policy: Policy::Idle, ..normal };
    assert!(!preempts(LATER, 2 * MS, normal, idle), "IDLE never preempts");
    assert!(preempts(LATER, 0, idle, normal), "and is preempted by all");
}

#[test]
fn section_5_6_adaptive_granularity() {
    let gran = |avg_wakeup: Nanos, ran: Nanos| {
        let mut kernel = Kernel::new(LATER, 1);
        let (a, b) = (kernel.nice(0), kernel.nice(0));
        kernel.run(a);
        kernel.wake(b);
        let e = kernel.fair.task_entity(b);
        kernel.fair.habits_mut(e).avg_wakeup = avg_wakeup;
        kernel.entity(a).sum_exec_runtime = ran;
        let curr = kernel.fair.task_entity(a);
        kernel.fair.wakeup_gran(curr, e)
    };
    // min(1 ms, 2 * avg_wakeup * 2 tasks - ran)
    assert_eq!(gran(100_000, 0), 400_000);
    assert_eq!(gran(100_000, 150_000), 250_000);
    assert_eq!(gran(100_000, 400_000), 0);
    assert_eq!(gran(MS, 0), MS);
}

#[test]
fn section_5_6_averages_of_wakeups() {
    let mut kernel = Kernel::new(LATER, 1);
    let (waker, woken) = (kernel.nice(0), kernel.nice(0));
    kernel.run(waker);
    let e = kernel.fair.task_entity(waker);
    assert_eq!(kernel.fair.habits(e).avg_wakeup, MS, "at first the granularity");
    kernel.tick(200_000);
    kernel.wake_by(woken, Some(waker));
    // An eighth of the way from 1 ms to 0.2 ms.
    assert_eq!(kernel.fair.habits(e).avg_wakeup, 900_000);
    assert_eq!(kernel.fair.habits(e).last_wakeup, 200_000);
    kernel.pass(80_000);
    kernel.core.clear_resched(C0);
    kernel.tick(0);
    kernel.sleep();
    // It ran for 0.08 ms after it woke the other; put_prev_task counts nothing of a sleeper.
    assert_eq!(kernel.fair.habits(e).avg_overlap, 10_000);
    assert_eq!(kernel.fair.habits(e).last_wakeup, 0);
}

/// 2.6.32: `nr` tasks. The first one runs, and the last one, far behind, preempts it.
fn preempted(nr: usize) -> (Kernel, Vec<TaskId>) {
    let mut kernel = Kernel::new(LATER, 1);
    let tasks: Vec<_> = (0..nr).map(|_| kernel.nice(0)).collect();
    kernel.fair.cfs[0].min_vruntime = 1_000 * MS;
    for task in &tasks {
        kernel.entity(*task).vruntime = 1_000 * MS;
    }
    kernel.run(tasks[0]);
    for task in &tasks[1..nr - 1] {
        kernel.wake(*task);
    }
    let last = tasks[nr - 1];
    kernel.entity(last).vruntime = 1_000 * MS - 2 * MS;
    kernel.wake(last);
    assert!(kernel.core.rq(C0).need_resched);
    assert_eq!(kernel.schedule(C0), Some(last));
    (kernel, tasks)
}

#[test]
fn section_5_6_the_preempted_task_is_gone_back_to() {
    let (mut kernel, tasks) = preempted(5);
    let last = kernel.fair.rq(0).last;
    assert_eq!(last, kernel.fair.task_entity(tasks[0]));
    // The others are before it in the tree, because they are equal and came first.
    assert_eq!(kernel.tree(C0)[0], tasks[1]);
    assert_eq!(kernel.sleep(), Some(tasks[0]));
    assert_eq!(kernel.fair.rq(0).last, NIL, "it had its turn");
}

#[test]
fn section_5_6_no_last_buddy_among_few() {
    let (mut kernel, tasks) = preempted(4);
    assert_eq!(kernel.fair.rq(0).last, NIL);
    assert_eq!(kernel.sleep(), Some(tasks[1]));
}

#[test]
fn section_5_6_a_buddy_too_far_ahead_is_passed_over() {
    let (mut kernel, tasks) = preempted(5);
    kernel.fair.cfs[0].tree.remove(&mut kernel.fair.nodes, kernel.fair.first_task + 1);
    let e = kernel.fair.first_task + 1;
    let vruntime = kernel.vruntime(tasks[0]) as u64 - MS - 1;
    kernel.entity(tasks[1]).vruntime = vruntime;
    kernel.fair.nodes[e as usize].key = vruntime;
    kernel.fair.cfs[0].tree.insert(&mut kernel.fair.nodes, e);
    assert_eq!(kernel.sleep(), Some(tasks[1]), "more than the wakeup granularity behind");
}

#[test]
fn section_5_6_the_tick_minds_who_is_far_behind() {
    let mut kernel = Kernel::new(LATER, 1);
    let (a, b) = (kernel.nice(0), kernel.nice(0));
    kernel.fair.cfs[0].min_vruntime = 1_000 * MS;
    kernel.entity(a).vruntime = 1_000 * MS;
    kernel.run(a);
    kernel.entity(b).vruntime = 1_000 * MS - 2 * MS;
    kernel.wake(b);
    kernel.core.clear_resched(C0);
    // The slice is 2.5 ms, less what the rounding takes; b is 2 ms behind at first.
    let slice = kernel.slice(a);
    assert_eq!(slice, 2_498_780);
    assert!(!kernel.tick(600_000), "less than the least slice of 1 ms");
    assert!(kernel.tick(400_000), "3 ms ahead, more than a slice");
}

#[test]
fn section_5_5_yield() {
    for rules in [FIRST, LATER] {
        let mut kernel = Kernel::new(rules, 1);
        let (a, b) = (kernel.nice(0), kernel.nice(0));
        kernel.run(a);
        kernel.fair.yield_task(&mut kernel.core, C0);
        kernel.wake(b);
        kernel.core.clear_resched(C0);
        kernel.pass(MS);
        kernel.fair.yield_task(&mut kernel.core, C0);
        assert_eq!(kernel.vruntime(a), MS as i64, "charged, and that is all");
        let mut kernel = Kernel::with(rules, 1, &[], &[("sched_compat_yield", 1)]);
        let (a, b) = (kernel.nice(0), kernel.nice(0));
        kernel.run(a);
        kernel.wake(b);
        kernel.entity(b).vruntime = 9 * MS;
        kernel.fair.yield_task(&mut kernel.core, C0);
        assert_eq!(kernel.vruntime(a), 9_000_001, "behind the last one");
        // SCHED_BATCH always does this.
        let mut kernel = Kernel::new(rules, 1);
        let batch = SchedAttr { policy: Policy::Batch, ..SchedAttr::default() };
        let (a, b) = (kernel.task(C0, batch), kernel.nice(0));
        kernel.run(a);
        kernel.wake(b);
        kernel.entity(b).vruntime = 9 * MS;
        kernel.fair.yield_task(&mut kernel.core, C0);
        assert_eq!(kernel.vruntime(a), 9_000_001);
    }
}

#[test]
fn section_5_5_migration_keeps_the_distance_to_the_least() {
    for rules in [FIRST, LATER] {
        let mut kernel = Kernel::new(rules, 2);
        kernel.fair.cfs[0].min_vruntime = 100 * MS;
        kernel.fair.cfs[1].min_vruntime = 40 * MS;
        let task = kernel.nice(0);
        kernel.entity(task).vruntime = 130 * MS;
        kernel.core.tasks[task.index()].cpu = C1;
        kernel.wake(task);
        assert_eq!(kernel.vruntime(task), 70 * MS as i64, "{}", rules.name);
    }
}

#[test]
fn section_5_5_cache_hot_tasks_stay() {
    for rules in [FIRST, LATER] {
        let mut kernel = Kernel::new(rules, 2);
        let task = kernel.nice(0);
        kernel.entity(task).exec_start = 10 * MS;
        kernel.core.now = 10 * MS + 499_999;
        assert!(kernel.fair.is_cache_hot(&kernel.core, C1, task));
        kernel.core.now += 1;
        assert!(!kernel.fair.is_cache_hot(&kernel.core, C1, task));
        kernel.fair.values.migration_cost = 0;
        kernel.core.now = 10 * MS;
        assert!(!kernel.fair.is_cache_hot(&kernel.core, C1, task));
    }
}

#[test]
fn section_5_7_a_group_has_all_of_its_shares_on_every_cpu() {
    let mut kernel = Kernel::with(FIRST, 2, &[100, 200], &[("group_basis", 1)]);
    for (group, shares) in [(0, 2048), (1, 1024), (2, 2048)] {
        for cpu in [C0, C1] {
            let task = kernel.member(cpu, group);
            kernel.wake(task);
            let se = kernel.fair.rq(kernel.fair.group_queue(group, cpu)).se;
            assert_eq!(kernel.fair.ent(se).load.weight, shares);
        }
    }
    for cpu in [C0, C1] {
        assert_eq!(kernel.fair.rq(kernel.fair.root_queue(cpu)).load, 5120);
    }
}

#[test]
fn section_5_7_groups_get_no_credit_for_sleep() {
    let mut kernel = Kernel::with(FIRST, 1, &[100], &[]);
    let task = kernel.member(C0, 1);
    let root = kernel.fair.root_queue(C0);
    kernel.fair.cfs[root as usize].min_vruntime = 500 * MS;
    kernel.wake(task);
    let se = kernel.fair.rq(kernel.fair.group_queue(1, C0)).se;
    assert_eq!(kernel.fair.ent(se).vruntime, 500 * MS);
}

#[test]
fn section_5_7_slices_are_local_or_multiplied() {
    // A task in each of two groups: under 2.6.24 it has all of its level's 20 ms; under 2.6.32 it
    // has half, like its group.
    let slice = |rules| {
        let mut kernel = Kernel::with(rules, 1, &[100, 100], &[]);
        let tasks = [kernel.member(C0, 1), kernel.member(C0, 2)];
        for task in tasks {
            kernel.wake(task);
        }
        kernel.slice(tasks[0])
    };
    assert_eq!(slice(FIRST), 20 * MS);
    let later = slice(LATER);
    assert!(later.abs_diff(2_500_000) < 5_000, "{later}");
}

#[test]
fn section_5_7_shares_follow_load_over_cpus() {
    let mut kernel = Kernel::with(LATER, 2, &[100], &[]);
    let tasks = [kernel.member(C0, 1), kernel.member(C0, 1), kernel.member(C1, 1)];
    for task in tasks {
        kernel.wake(task);
    }
    let weight = |kernel: &Kernel, cpu| {
        let se = kernel.fair.rq(kernel.fair.group_queue(1, cpu)).se;
        kernel.fair.ent(se).load.weight
    };
    // Until the shares are distributed, each CPU has all of them.
    assert_eq!([C0, C1].map(|cpu| weight(&kernel, cpu)), [1024, 1024]);
    let all = kernel.core.cpus;
    kernel.fair.spread_shares(&kernel.core, &all, true);
    assert_eq!([C0, C1].map(|cpu| weight(&kernel, cpu)), [682, 341]);
    assert_eq!(kernel.fair.rq(kernel.fair.root_queue(C0)).load, 682);
    kernel.fair.update_h_load(C0);
    let h_load = kernel.fair.rq(kernel.fair.group_queue(1, C0)).h_load;
    assert_eq!(h_load, 682 * 682 / 683);
    // A CPU without a task of the group counts as if it had one of weight 1024.
    kernel.fair.dequeue_task(&mut kernel.core, C1, tasks[2], DequeueFlags::SLEEP);
    kernel.fair.spread_shares(&kernel.core, &all, true);
    assert_eq!([C0, C1].map(|cpu| weight(&kernel, cpu)), [1024, 512]);
    // A difference of up to 4 has no effect.
    kernel.fair.values.shares_thresh = 1024;
    kernel.fair.enqueue_task(&mut kernel.core, C1, tasks[2], EnqueueFlags::WAKEUP);
    kernel.fair.spread_shares(&kernel.core, &all, true);
    assert_eq!([C0, C1].map(|cpu| weight(&kernel, cpu)), [1024, 512]);
}

#[test]
fn a_change_of_nice_keeps_the_stretch_and_one_of_policy_does_not() {
    for rules in [FIRST, LATER] {
        for (attr, ran) in [
            (SchedAttr { nice: 5, ..SchedAttr::default() }, 3 * MS),
            (SchedAttr { policy: Policy::Batch, ..SchedAttr::default() }, 0),
        ] {
            let mut kernel = Kernel::new(rules, 1);
            let task = kernel.nice(0);
            kernel.run(task);
            kernel.pass(3 * MS);
            let save = DequeueFlags { save: true, ..DequeueFlags::NONE };
            let (core, fair) = (&mut kernel.core, &mut kernel.fair);
            fair.dequeue_task(core, C0, task, save);
            fair.put_prev_task(core, C0, task, Some(task));
            fair.attr_changing(core, task, &attr);
            core.tasks[task.index()].attr = attr.into();
            let restore = EnqueueFlags { restore: true, ..EnqueueFlags::NONE };
            fair.enqueue_task(core, C0, task, restore);
            fair.set_next_task(core, C0, task, false);
            let se = *kernel.entity(task);
            assert_eq!(se.sum_exec_runtime - se.prev_sum_exec_runtime, ran, "{}", rules.name);
            assert_eq!(se.vruntime as i64, 3 * MS as i64);
            assert_eq!(kernel.fair.rq(0).load, se.load.weight);
        }
    }
}

impl Kernel {
    /// Number of ticks of CPU 0, in steps of a millisecond, until `task` is on CPU 1; at most 20.
    fn ticks_until_moved(&mut self, task: TaskId) -> Option<usize> {
        (1..=20).find(|_| {
            self.pass(MS);
            self.fair.tick_balance(&mut self.core, C0);
            self.core.task(task).cpu == C1
        })
    }

    fn pin(&mut self, task: TaskId) {
        self.core.tasks[task.index()].cpus_allowed = schedlab_model::CpuMask::only(C0).into();
    }
}

#[test]
fn section_5_5_a_look_sees_one_task_more_than_nr_migrate() {
    for (nr_pinned, ticks) in [(32, Some(1)), (33, None)] {
        let mut kernel = Kernel::new(FIRST, 2);
        let runs = kernel.nice(0);
        kernel.pin(runs);
        kernel.run(runs);
        for _ in 0..nr_pinned {
            let task = kernel.nice(0);
            kernel.pin(task);
            kernel.wake(task);
        }
        let free = kernel.nice(0);
        kernel.wake(free);
        assert_eq!(kernel.ticks_until_moved(free), ticks, "{nr_pinned} pinned ones before it");
    }
}

#[test]
fn section_5_5_hot_tasks_move_after_two_failures() {
    for rules in [FIRST, LATER] {
        let mut kernel = Kernel::with(rules, 2, &[], &[("sched_migration_cost", 1_000 * MS)]);
        let (runs, waits) = (kernel.nice(0), kernel.nice(0));
        kernel.run(runs);
        kernel.wake(waits);
        assert_eq!(kernel.ticks_until_moved(waits), Some(3), "{}", rules.name);
    }
}

#[test]
fn section_5_7_balancing_takes_half_of_the_difference_of_each_group() {
    let mut kernel = Kernel::with(FIRST, 2, &[100, 100], &[]);
    let runs = kernel.member(C0, 0);
    kernel.pin(runs);
    kernel.run(runs);
    let members: Vec<_> = [1, 1, 2, 2].map(|group| kernel.member(C0, group)).into();
    for task in &members {
        kernel.wake(*task);
    }
    kernel.ticks_until_moved(runs);
    let on_second = |task: &TaskId| kernel.core.task(*task).cpu == C1;
    let moved: Vec<_> = members.iter().map(on_second).collect();
    assert_eq!(moved.iter().filter(|moved| **moved).count(), 2, "{moved:?}");
    assert!(moved[0] != moved[1] && moved[2] != moved[3], "one of each group: {moved:?}");
}

/// The CPU for a task whose last CPU is CPU 0, which has `nr` tasks. The running task of CPU 1
/// wakes it.
fn cpu_of_woken(
    rules: Rules,
    nr: usize,
    sync: bool,
    prepare: impl Fn(&mut Kernel, TaskId),
) -> CpuId {
    let set: &[_] = if rules.is_later { &[] } else { &[("sync_wakeups", 1)] };
    let mut kernel = Kernel::with(rules, 2, &[], set);
    let waker = kernel.task(C1, SchedAttr::default());
    kernel.wake(waker);
    kernel.schedule(C1);
    for _ in 0..nr {
        let task = kernel.nice(0);
        kernel.wake(task);
    }
    kernel.schedule(C0);
    kernel.pass(MS);
    for cpu in [C0, C1] {
        kernel.fair.tick_balance(&mut kernel.core, cpu);
    }
    let task = kernel.nice(0);
    kernel.core.now = 1_000 * MS;
    prepare(&mut kernel, task);
    let flags = WakeFlags { waker: Some(waker), sync, this_cpu: C1, ..WakeFlags::TIMER };
    kernel.fair.select_task_rq(&mut kernel.core, task, C0, flags)
}

#[test]
fn section_5_5_a_woken_task_follows_its_waker_if_that_is_not_much_more_loaded() {
    for rules in [FIRST, LATER] {
        let cpu = |nr, sync| cpu_of_woken(rules, nr, sync, |_, _| ());
        // 2048 on the waker's CPU exceed 112 % of 1024, but not of 2048.
        assert_eq!([cpu(1, false), cpu(2, false), cpu(3, false)], [C0, C1, C1], "{}", rules.name);
        // An idle CPU keeps its task; a waker that is about to sleep does not count.
        assert_eq!([cpu(0, false), cpu(1, true)], [C0, C1], "{}", rules.name);
    }
}

#[test]
fn section_5_5_a_synchronous_waker_attracts_cold_tasks() {
    let heat = |kernel: &mut Kernel, task| kernel.entity(task).exec_start = 999_900_000;
    // A cold task moves in any case; a hot one only if the loads allow it.
    assert_eq!(cpu_of_woken(FIRST, 0, true, |_, _| ()), C1);
    assert_eq!(cpu_of_woken(FIRST, 0, true, heat), C1, "the waker's CPU will be idle as well");
    let heavy = |kernel: &mut Kernel, task| {
        heat(kernel, task);
        let load = SchedAttr { nice: -10, ..SchedAttr::default() };
        let e = kernel.fair.task_entity(task);
        kernel.fair.apply_attr(e, &load);
        let other = kernel.task(C1, SchedAttr::default());
        kernel.wake(other);
    };
    assert_eq!(cpu_of_woken(FIRST, 1, true, heavy), C0);
}

#[test]
fn section_5_6_tasks_that_overlap_are_not_taken_for_synchronous() {
    let overlaps = |kernel: &mut Kernel, task| {
        let e = kernel.fair.task_entity(task);
        kernel.fair.habits_mut(e).avg_overlap = MS;
    };
    assert_eq!(cpu_of_woken(LATER, 1, true, overlaps), C0);
}
