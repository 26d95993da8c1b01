// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of rules that concern one callback, on a state set by hand. The engine's tests have
//! sequences over many ticks.

use super::goodness::{Look, goodness};
use super::*;
use crate::boundary::flags::WakeKind;
use crate::testing;
use schedlab_model::CpuMask;

const C0: CpuId = CpuId(0);
const C1: CpuId = CpuId(1);

struct Kernel {
    core: Core,
    queue: GlobalQueue,
}

impl Kernel {
    fn new(nr_cpus: u32) -> Self {
        let machine = Machine { hz: 100, ..Machine::flat(nr_cpus) };
        let options = Options::defaults(&scheduler().tunables);
        Self { core: testing::core(&machine), queue: GlobalQueue::new(&options, &machine) }
    }

    /// A sleeping task with its own address space that last ran on `cpu`.
    fn task(&mut self, cpu: CpuId, counter: i32, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let task = testing::sleeping_task(&self.core, cpu, attr);
        self.core.tasks.push(task);
        self.queue.task_new(&mut self.core, id);
        self.queue.entry(id).counter = counter;
        id
    }

    fn normal(&mut self, cpu: CpuId, counter: i32) -> TaskId {
        self.task(cpu, counter, SchedAttr::default())
    }

    fn wake(&mut self, task: TaskId, sync: bool) {
        self.core.wake_flags = WakeFlags { sync, kind: WakeKind::Wakeup, ..WakeFlags::TIMER };
        let cpu = self.core.task(task).cpu;
        self.queue.enqueue_task(&mut self.core, cpu, task, EnqueueFlags::WAKEUP);
        self.core.tasks[task.index()].on_rq = true;
    }

    /// Lets `cpu` choose and switch to its choice.
    fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        let prev = self.core.rq(cpu).curr;
        let next = self.queue.pick_task(&mut self.core, cpu);
        self.core.clear_resched(cpu);
        if prev != next {
            if let Some(prev) = prev {
                self.queue.put_prev_task(&mut self.core, cpu, prev, next);
            }
            self.core.rqs[cpu.index()].curr = next;
            if let Some(next) = next {
                self.queue.set_next_task(&mut self.core, cpu, next, true);
            }
        }
        self.queue.balance_callback(&mut self.core, cpu);
        next
    }

    /// Wakes `task` and runs it on its CPU.
    fn run(&mut self, task: TaskId) {
        let cpu = self.core.task(task).cpu;
        self.wake(task, false);
        assert_eq!(self.schedule(cpu), Some(task));
    }

    fn asked(&self) -> Vec<u32> {
        let cpus = (0..self.core.nr_cpus()).filter(|cpu| self.core.rq(CpuId(*cpu)).need_resched);
        cpus.collect()
    }
}

#[test]
fn section_2_3_the_idle_task_is_worse_than_a_yielder() {
    // Only the idle task has nice 20: its goodness of -99 is 20 - 20 + 1 - 100.
    let idle = Look {
        yielded: false,
        rt_priority: 0,
        counter: -100,
        nice: 20,
        affine: false,
        same_mm: true,
    };
    assert_eq!(goodness(&idle), -99);
}

#[test]
fn section_2_8_preemption_on_one_cpu() {
    for (running, woken, preempts) in [(6, 6, false), (5, 6, false), (4, 6, true), (6, 11, true)] {
        let mut kernel = Kernel::new(1);
        let hog = kernel.normal(C0, running);
        kernel.run(hog);
        let waker = kernel.normal(C0, woken);
        kernel.wake(waker, false);
        let by = kernel.queue.preemption_goodness(hog, waker, C0);
        assert_eq!(by, woken - running - 1, "counter {running}");
        assert_eq!(kernel.core.rq(C0).need_resched, preempts, "counter {running}");
    }
}

#[test]
fn section_2_8_preemption_on_two_cpus() {
    let mut kernel = Kernel::new(2);
    let (a, b) = (kernel.normal(C0, 2), kernel.normal(C1, 6));
    kernel.run(a);
    kernel.run(b);
    let woken = kernel.normal(C1, 11);
    kernel.wake(woken, false);
    assert_eq!(kernel.queue.preemption_goodness(a, woken, C0), -7);
    assert_eq!(kernel.queue.preemption_goodness(b, woken, C1), 4);
    assert_eq!(kernel.asked(), [1]);
    assert_eq!(kernel.schedule(C1), Some(woken));
    // Preempted B looks for another CPU: there A is worth 2 + 15 + 1 + 20, B 26.
    assert_eq!(kernel.asked(), [0; 0]);
}

#[test]
fn an_idle_cpu_is_preferred_and_the_longest_idle_of_others() {
    let mut kernel = Kernel::new(4);
    let hog = kernel.normal(C0, 6);
    kernel.run(hog);
    kernel.core.now = 100;
    kernel.core.rqs[1].idle_since = 50;
    kernel.core.rqs[2].idle_since = 20;
    kernel.core.rqs[3].idle_since = 20;
    let last_on = [C1, C0, C0, C0];
    let asked: Vec<Vec<u32>> = last_on
        .into_iter()
        .map(|cpu| {
            let task = kernel.normal(cpu, 6);
            kernel.wake(task, false);
            kernel.asked()
        })
        .collect();
    // Its own idle CPU; then the longest idle one, the first of equals; the last task finds none.
    assert_eq!(asked, [vec![1], vec![1, 2], vec![1, 2, 3], vec![1, 2, 3]]);
    for cpu in [C1, C0] {
        let _ = kernel.schedule(cpu);
    }
    assert_eq!(kernel.core.rq(C1).curr.map(|task| task.0), Some(1));
}

#[test]
fn an_idle_sibling_of_an_idle_thread_is_taken_at_once() {
    let mut kernel = Kernel::new(4);
    kernel.core.topology.core = vec![0, 1, 0, 1];
    kernel.core.now = 100;
    kernel.core.rqs[3].idle_since = 1;
    kernel.core.rqs[1].idle_since = 90;
    let hog = kernel.normal(C0, 6);
    kernel.run(hog);
    let task = kernel.normal(C0, 6);
    kernel.wake(task, false);
    // CPU 1 and its sibling 3 are idle: 1 is first, although 3 has been idle longer.
    assert_eq!(kernel.asked(), [1]);
}

#[test]
fn a_synchronous_wake_up_tells_nobody_where_it_is_honoured() {
    for (honours, asked) in [(false, vec![0]), (true, vec![])] {
        let mut kernel = Kernel::new(1);
        kernel.queue.honours_sync = honours;
        let hog = kernel.normal(C0, 1);
        kernel.run(hog);
        let task = kernel.normal(C0, 11);
        kernel.wake(task, true);
        assert_eq!(kernel.asked(), asked);
    }
}

#[test]
fn section_2_10_fork_splits_the_counter() {
    for (before, child, parent) in [(6, 3, 3), (5, 3, 2), (1, 1, 0), (0, 0, 0)] {
        let mut kernel = Kernel::new(1);
        let task = kernel.normal(C0, 6);
        kernel.run(task);
        kernel.queue.entry(task).counter = before;
        let new = kernel.normal(C0, 0);
        kernel.queue.task_fork(&mut kernel.core, C0, new, Some(task));
        assert_eq!((kernel.queue.counter(new), kernel.queue.counter(task)), (child, parent));
        assert_eq!(kernel.core.rq(C0).need_resched, parent == 0, "counter {before}");
    }
}

#[test]
fn section_2_10_the_rest_of_a_child_returns_to_its_parent() {
    for (parent, child, sum) in [(3, 2, 5), (11, 8, 19), (11, 9, 20), (11, 11, 20)] {
        let mut kernel = Kernel::new(1);
        let task = kernel.normal(C0, 0);
        let new = kernel.normal(C0, 0);
        kernel.queue.task_fork(&mut kernel.core, C0, new, Some(task));
        kernel.queue.entry(task).counter = parent;
        kernel.queue.entry(new).counter = child;
        kernel.queue.task_dead(&mut kernel.core, new);
        assert_eq!(kernel.queue.counter(task), sum);
    }
}

#[test]
fn section_2_11_a_yielder_loses_to_tasks_without_ticks() {
    let mut kernel = Kernel::new(1);
    let (yielder, spent) = (kernel.normal(C0, 6), kernel.normal(C0, 0));
    kernel.run(yielder);
    kernel.wake(spent, false);
    kernel.queue.yield_task(&mut kernel.core, C0);
    assert_eq!(kernel.queue.epoch, 0);
    assert_eq!(kernel.schedule(C0), Some(spent));
    // The best task had no ticks, so an epoch began; the flag is cleared.
    assert_eq!((kernel.queue.epoch, kernel.queue.counter(spent)), (1, 6));
    assert!(!kernel.queue.tasks[yielder.index()].yielded);
}

#[test]
fn section_2_11_a_yield_with_nobody_waiting_has_no_effect() {
    let mut kernel = Kernel::new(2);
    let (a, b) = (kernel.normal(C0, 6), kernel.normal(C1, 6));
    kernel.run(a);
    kernel.run(b);
    let order: Vec<_> = kernel.queue.queued().collect();
    kernel.queue.yield_task(&mut kernel.core, C0);
    assert!(!kernel.queue.tasks[a.index()].yielded);
    assert!(kernel.queue.queued().eq(order));
}

/// The queue from its head after three tasks have become runnable one after the other.
#[test]
fn section_2_6_order_of_the_queue() {
    for (wake_to_tail, order) in [(false, [2, 1, 0]), (true, [0, 1, 2])] {
        let mut kernel = Kernel::new(1);
        kernel.queue.wake_to_tail = wake_to_tail;
        for _ in 0..3 {
            let task = kernel.normal(C0, 6);
            kernel.wake(task, false);
        }
        let found: Vec<u32> = kernel.queue.queued().map(|task| task.0).collect();
        assert_eq!(found, order);
        // sched_setscheduler moves to the head, a change of the nice value does not.
        let task = TaskId(order[2]);
        for (attr, moves) in [
            (SchedAttr { nice: 5, ..SchedAttr::default() }, false),
            (SchedAttr { policy: Policy::Fifo, rt_priority: 1, ..SchedAttr::default() }, true),
        ] {
            let save = DequeueFlags { save: true, ..DequeueFlags::NONE };
            kernel.queue.dequeue_task(&mut kernel.core, C0, task, save);
            kernel.queue.attr_changing(&mut kernel.core, task, &attr);
            kernel.core.tasks[task.index()].attr = attr.into();
            let restore = EnqueueFlags { restore: true, ..EnqueueFlags::NONE };
            kernel.queue.enqueue_task(&mut kernel.core, C0, task, restore);
            assert_eq!(kernel.queue.queued().next() == Some(task), moves);
        }
    }
}

#[test]
fn section_2_12_rr_intervals() {
    let mut kernel = Kernel::new(1);
    let attr = |policy| SchedAttr { policy, rt_priority: 1, nice: 10, ..SchedAttr::default() };
    let fifo = kernel.task(C0, 0, attr(Policy::Fifo));
    let rr = kernel.task(C0, 0, attr(Policy::Rr));
    assert_eq!(kernel.queue.get_rr_interval(&kernel.core, fifo), 0);
    assert_eq!(kernel.queue.get_rr_interval(&kernel.core, rr), 30_000_000);
}

#[test]
fn what_is_bound_elsewhere_is_passed_over() {
    let mut kernel = Kernel::new(2);
    let bound = kernel.normal(C1, 6);
    kernel.core.tasks[bound.index()].cpus_allowed = CpuMask::only(C1).into();
    kernel.core.tasks[bound.index()].nr_cpus_allowed = 1;
    kernel.wake(bound, false);
    kernel.queue.cpus[0].told = Some(bound);
    assert_eq!(kernel.schedule(C0), None);
    assert_eq!(kernel.schedule(C1), Some(bound));
}
