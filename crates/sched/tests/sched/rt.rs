// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real-time class against the shared state: queue positions, preemption, slices, throttling,
//! the fair server, push and pull. Expected figures follow from the rules of Linux
//! kernel/sched/rt.c and deadline.c at ideal ticks.

use crate::rt_kernel;

use rt_kernel::{Kernel, RT, fifo, mask, rt_attr};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuId, Policy, SchedAttr, TaskId};
use schedlab_sched::SchedClass;
use schedlab_sched::rt::{Bandwidth, RtOptions};

const MS: u64 = 1_000_000;
const THROTTLING: Bandwidth = Bandwidth::Throttling { runtime: 950 * MS, period: 1_000 * MS };
const SERVER: Bandwidth = Bandwidth::FairServer { runtime: 50 * MS, period: 1_000 * MS };

fn kernel(nr_cpus: u32) -> Kernel {
    Kernel::new(nr_cpus, 250, Bandwidth::Off)
}

/// `attr` bound to `cpus`.
fn on(cpus: &[u32], attr: SchedAttr) -> SchedAttr {
    SchedAttr { affinity: Some(mask(cpus)), ..attr }
}

#[test]
fn section_3_2_rr_slice_is_100_ms_of_ticks_at_any_hz() {
    for hz in [100, 250, 1000] {
        let mut k = Kernel::new(1, hz, Bandwidth::Off);
        k.start(rt_attr(Policy::Rr, 10));
        k.start(rt_attr(Policy::Rr, 10));
        k.run_until(350 * MS);
        let expected = [(0, Some(0)), (100, Some(1)), (200, Some(0)), (300, Some(1))];
        assert_eq!(k.timeline_ms(0), expected, "HZ {hz}");
    }
}

#[test]
fn rr_task_alone_at_its_priority_is_not_switched() {
    let mut k = kernel(1);
    k.start(rt_attr(Policy::Rr, 10));
    k.start(rt_attr(Policy::Rr, 9));
    k.run_until(1_000 * MS);
    assert_eq!(k.timeline_ms(0), [(0, Some(0))]);
}

#[test]
fn rr_slice_goes_on_after_preemption_and_keeps_its_place() {
    let mut k = kernel(1);
    let a = k.start(rt_attr(Policy::Rr, 10));
    k.start(rt_attr(Policy::Rr, 10));
    let high = k.create(fifo(50));
    k.run_until(60 * MS);
    k.wake(high);
    k.settle();
    assert_eq!(k.queued(0), [2, 0, 1]);
    k.run_until(80 * MS);
    k.sleep(high);
    k.run_until(200 * MS);
    // 60 ms before, 40 ms after.
    let expected = [(0, Some(a.0)), (60, Some(2)), (80, Some(a.0)), (120, Some(1))];
    assert_eq!(k.timeline_ms(0), expected);
}

#[test]
fn fifo_ends_only_by_itself_and_yield_goes_to_the_tail() {
    let mut k = kernel(1);
    (0..3).for_each(|_| {
        k.start(fifo(10));
    });
    k.run_until(5_000 * MS);
    assert_eq!(k.timeline_ms(0), [(0, Some(0))]);
    k.yield_cpu(0);
    k.settle();
    assert_eq!((k.curr(0), k.queued(0)), (Some(1), vec![1, 2, 0]));
    k.sleep(TaskId(1));
    k.settle();
    assert_eq!(k.queued(0), [2, 0]);
    k.wake(TaskId(1));
    assert_eq!(k.queued(0), [2, 0, 1], "a wake-up goes to the tail");
}

#[test]
fn yield_alone_changes_nothing() {
    let mut k = kernel(1);
    k.start(fifo(10));
    k.settle();
    k.yield_cpu(0);
    k.settle();
    assert_eq!(k.switches.len(), 1);
}

#[test]
fn section_3_3_lowered_goes_to_the_head_raised_to_the_tail() {
    let mut k = kernel(1);
    k.start(fifo(99));
    (0..2).for_each(|_| {
        k.start(fifo(10));
    });
    let moved = k.start(fifo(20));
    k.settle();
    assert_eq!(k.queued(0), [0, 3, 1, 2]);
    k.set_attr(moved, fifo(10));
    assert_eq!(k.queued(0), [0, 3, 1, 2], "head of the lower list");
    k.set_attr(TaskId(2), fifo(5));
    k.set_attr(TaskId(2), fifo(10));
    assert_eq!(k.queued(0), [0, 3, 1, 2], "tail of the higher list");
    k.set_attr(TaskId(3), fifo(9));
    k.set_attr(TaskId(3), fifo(10));
    assert_eq!(k.queued(0), [0, 1, 2, 3]);
}

#[test]
fn section_3_3_a_change_at_equal_priority_keeps_the_place() {
    let mut k = kernel(2);
    k.start(on(&[0], fifo(99)));
    k.start(on(&[1], fifo(99)));
    (0..3).for_each(|_| {
        k.start(on(&[0], fifo(10)));
    });
    k.settle();
    assert_eq!(k.queued(0), [0, 2, 3, 4]);
    k.set_attr(TaskId(2), on(&[0], rt_attr(Policy::Rr, 10)));
    assert_eq!(k.queued(0), [0, 2, 3, 4]);
    k.set_attr(TaskId(3), fifo(10));
    assert_eq!(k.queued(0), [0, 2, 3, 4]);
}

#[test]
fn section_3_4_only_a_better_priority_preempts() {
    let mut k = kernel(1);
    k.start(fifo(10));
    k.settle();
    k.start(fifo(10));
    k.settle();
    assert_eq!(k.curr(0), Some(0), "equal");
    k.start(fifo(11));
    k.settle();
    assert_eq!((k.curr(0), k.queued(0)), (Some(2), vec![2, 0, 1]), "better; displaced at the head");
}

#[test]
fn a_running_task_that_is_lowered_gives_way() {
    let mut k = kernel(1);
    let a = k.start(fifo(20));
    k.start(fifo(10));
    k.settle();
    k.set_attr(a, fifo(10));
    k.settle();
    assert_eq!(k.curr(0), Some(0), "as good as the best waiting: stays, at the head");
    k.set_attr(a, fifo(9));
    k.settle();
    assert_eq!(k.curr(0), Some(1));
    k.set_attr(a, fifo(11));
    k.settle();
    assert_eq!(k.curr(0), Some(0), "raised above what runs");
}

#[test]
fn changing_class_starts_and_stops_preemption() {
    let mut k = kernel(1);
    let a = k.start(SchedAttr::default());
    let b = k.start(SchedAttr::default());
    k.settle();
    assert_eq!(k.curr(0), Some(a.0));
    k.set_attr(b, fifo(1));
    k.settle();
    assert_eq!((k.curr(0), k.queued(0)), (Some(b.0), vec![b.0]));
    k.set_attr(b, SchedAttr::default());
    k.run_until(4 * MS);
    assert_eq!(k.queued(0), Vec::<u32>::new());
    assert_eq!(k.core.rq(CpuId(0)).class_nr_running[RT], 0);
}

/// A FIFO hog (task 0) and a fair hog (task 1) from t = 0.
fn hogs(hz: u32, bandwidth: Bandwidth, end_ms: u64) -> Vec<(u64, Option<u32>)> {
    let mut k = Kernel::new(1, hz, bandwidth);
    k.start(fifo(50));
    k.start(SchedAttr::default());
    k.run_until(end_ms * MS);
    k.timeline_ms(0)
}

/// Times at which the fair hog gets and loses the CPU.
fn fair_turns(timeline: &[(u64, Option<u32>)]) -> Vec<(u64, u64)> {
    let (first, rest) = timeline.split_first().unwrap();
    assert_eq!(*first, (0, Some(0)), "the real-time hog starts");
    rest.chunks(2).filter(|turn| turn.len() == 2).map(|turn| (turn[0].0, turn[1].0)).collect()
}

#[test]
fn section_3_5_throttling_hz250() {
    let turns = fair_turns(&hogs(250, THROTTLING, 4_500));
    assert_eq!(turns, [(952, 1000), (1952, 2000), (2948, 3000), (3952, 4000)]);
}

#[test]
fn section_3_5_throttling_hz1000() {
    let turns = fair_turns(&hogs(1000, THROTTLING, 3_500));
    assert_eq!(turns, [(951, 1000), (1950, 2000), (2950, 3000)]);
}

#[test]
fn throttled_cpu_without_other_work_stays_idle() {
    let mut k = Kernel::new(1, 250, THROTTLING);
    let hog = k.start(fifo(50));
    k.run_until(960 * MS);
    assert_eq!(k.curr(0), None);
    assert!(k.rt.is_throttled(&k.core, hog) && k.core.idle_cpu(CpuId(0)));
    k.run_until(1_100 * MS);
    assert_eq!(k.timeline_ms(0), [(0, Some(0)), (952, None), (1000, Some(0))]);
    assert!(!k.rt.is_throttled(&k.core, hog));
}

#[test]
fn tasks_may_come_and_go_while_throttled() {
    let mut k = Kernel::new(1, 250, THROTTLING);
    let hog = k.start(fifo(50));
    k.run_until(956 * MS);
    let other = k.start(fifo(60));
    k.settle();
    assert_eq!((k.curr(0), k.core.rq(CpuId(0)).nr_running), (None, 0));
    k.sleep(hog);
    k.run_until(1_000 * MS);
    assert_eq!((k.curr(0), k.core.rq(CpuId(0)).nr_running), (Some(other.0), 1));
}

#[test]
fn runtime_as_long_as_the_period_never_throttles() {
    let unlimited = Bandwidth::Throttling { runtime: 1_000 * MS, period: 1_000 * MS };
    assert_eq!(hogs(250, unlimited, 5_000), [(0, Some(0))]);
    assert_eq!(hogs(250, Bandwidth::Off, 5_000), [(0, Some(0))]);
}

#[test]
fn period_timer_starts_with_the_first_real_time_task() {
    let mut k = Kernel::new(1, 250, THROTTLING);
    k.start(SchedAttr::default());
    k.run_until(300 * MS);
    k.start(fifo(50));
    k.run_until(1_400 * MS);
    let expected = [(0, Some(0)), (300, Some(1)), (1252, Some(0)), (1300, Some(1))];
    assert_eq!(k.timeline_ms(0), expected);
}

#[test]
fn section_4_6_fair_server() {
    for hz in [250, 1000] {
        let turns = fair_turns(&hogs(hz, SERVER, 4_100));
        assert_eq!(turns, [(950, 1000), (1950, 2000), (2950, 3000), (3950, 4000)], "HZ {hz}");
    }
}

#[test]
fn fair_server_notices_a_task_that_comes_under_a_real_time_hog() {
    let mut k = Kernel::new(1, 250, SERVER);
    k.start(fifo(50));
    k.run_until(101 * MS);
    k.start(SchedAttr::default());
    k.run_until(1_200 * MS);
    // Deadline 1101, budget 50: zero laxity is at 1051, although the class notices the task at tick
    // 104.
    assert_eq!(k.timeline_ms(0), [(0, Some(0)), (1051, Some(1)), (1104, Some(0))]);
}

#[test]
fn fair_server_does_nothing_while_fair_tasks_run_anyway() {
    let mut k = Kernel::new(1, 250, SERVER);
    k.start(SchedAttr::default());
    let rt = k.create(fifo(50));
    // The real-time task takes 60 ms of each 100 ms, so fair tasks get more than their reserve.
    for round in 0..30 {
        k.run_until((round * 100 + 40) * MS);
        k.wake(rt);
        k.run_until((round * 100 + 100) * MS);
        assert_eq!(k.curr(0), Some(rt.0), "round {round}");
        k.sleep(rt);
        k.settle();
    }
    assert_eq!(k.core.sum_exec_runtime(rt), 30 * 60 * MS);
}

#[test]
fn fair_server_returns_to_waiting_once_fair_tasks_have_run_by_themselves() {
    let mut k = Kernel::new(1, 1000, SERVER);
    let hog = k.start(fifo(50));
    k.start(SchedAttr::default());
    k.run_until(1_200 * MS);
    k.sleep(hog);
    k.run_until(1_300 * MS);
    k.wake(hog);
    k.run_until(3_000 * MS);
    // Its budget is used up when the hog leaves at 1200, so the next ms of fair execution starts a
    // new period (1201). The 50 ms up to 1251 start another one with deadline 2251. 49 ms of its
    // budget are used when the hog returns at 1300. So zero laxity is not at 2201 but at 2251 - 1,
    // when it gets a whole new budget.
    let turns = fair_turns(&k.timeline_ms(0));
    assert_eq!(turns[..3], [(950, 1000), (1200, 1300), (2250, 2300)]);
}

#[test]
fn section_3_7_rr_interval_is_the_slice_of_rr_and_0_of_fifo() {
    let mut k = kernel(1);
    let rr = k.create(rt_attr(Policy::Rr, 1));
    let ff = k.create(fifo(1));
    assert_eq!(k.rt.get_rr_interval(&k.core, rr), 100 * MS);
    assert_eq!(k.rt.get_rr_interval(&k.core, ff), 0);
}

#[test]
fn section_3_6_displaced_task_is_pushed_and_pulled_back() {
    let mut k = kernel(2);
    let a = k.start(fifo(10));
    let b = k.start(fifo(20));
    let c = k.start(on(&[0], fifo(30)));
    k.settle();
    assert_eq!((k.curr(0), k.curr(1)), (Some(c.0), Some(b.0)));
    assert_eq!(k.core.task(a).cpu, CpuId(0), "a waits where it was");
    k.sleep(b);
    k.settle();
    assert_eq!((k.curr(0), k.curr(1)), (Some(c.0), Some(a.0)), "pulled when b went to sleep");
}

#[test]
fn a_pinned_equal_makes_the_running_task_move_on() {
    let mut k = kernel(2);
    let a = k.start(fifo(10));
    k.settle();
    assert_eq!(k.curr(0), Some(a.0));
    let pinned = k.start(on(&[0], fifo(10)));
    k.settle();
    assert_eq!((k.curr(0), k.curr(1)), (Some(pinned.0), Some(a.0)));
}

#[test]
fn wakeup_avoids_a_cpu_that_runs_an_equal() {
    let mut k = kernel(2);
    k.start(fifo(10));
    k.settle();
    let b = k.create(fifo(10));
    k.wake(b);
    assert_eq!(k.core.task(b).cpu, CpuId(1));
    let c = k.create(fifo(11));
    k.wake(c);
    assert_eq!(k.core.task(c).cpu, CpuId(0), "a better one takes over its own CPU");
}

#[test]
fn no_task_is_pushed_where_the_fair_server_runs() {
    let mut k = Kernel::new(2, 250, SERVER);
    k.start(on(&[0], fifo(50)));
    k.start(on(&[0], SchedAttr::default()));
    k.start(on(&[1], fifo(20)));
    k.run_until(960 * MS);
    assert_eq!(k.curr(0), Some(1), "the server runs");
    let low = k.start(fifo(10));
    k.settle();
    assert_eq!((k.curr(1), k.core.task(low).cpu), (Some(2), CpuId(0)));
    k.run_until(2_000 * MS);
    assert_eq!(k.curr(0), Some(0));
}

/// The m best runnable tasks that may move run on m CPUs, through arrivals, exits and changes of
/// priority.
#[test]
fn the_best_tasks_run_on_the_cpus() {
    for seed in 0..200 {
        let mut random = Stream::new(seed, Purpose::Scheduler, 1);
        let nr_cpus = 1 + random.below(4) as u32;
        let mut k = kernel(nr_cpus);
        let tasks: Vec<TaskId> =
            (0..8).map(|_| k.create(fifo(1 + random.below(6) as u8))).collect();
        for step in 0..120 {
            let task = tasks[random.below(8) as usize];
            let t = k.core.task(task).clone();
            match random.below(3) {
                0 if !t.on_rq => k.wake(task),
                1 if t.on_rq => k.sleep(task),
                2 if k.core.is_running(task) => {
                    k.set_attr(task, fifo(1 + random.below(6) as u8));
                }
                _ => continue,
            }
            k.settle();
            let mut runnable: Vec<i32> =
                tasks.iter().map(|t| k.core.task(*t)).filter(|t| t.on_rq).map(|t| t.prio).collect();
            runnable.sort_unstable();
            runnable.truncate(nr_cpus as usize);
            let mut running: Vec<i32> = (0..nr_cpus)
                .filter_map(|cpu| k.curr(cpu))
                .map(|task| k.core.task(TaskId(task)).prio)
                .collect();
            running.sort_unstable();
            assert_eq!(running, runnable, "seed {seed}, step {step}, {nr_cpus} CPUs");
        }
    }
}

/// After any change, each task is on an allowed CPU, in one list, and counted once.
#[test]
fn custody_holds_under_random_changes() {
    for seed in 0..300 {
        let mut random = Stream::new(seed, Purpose::Scheduler, 2);
        let nr_cpus = 1 + random.below(3) as u32;
        let bandwidth = [Bandwidth::Off, THROTTLING, SERVER][random.below(3) as usize];
        let mut k = Kernel::new(nr_cpus, 250, bandwidth);
        let attr = |random: &mut Stream| {
            let pinned = random.below(3) == 0;
            let attr = match random.below(4) {
                0 => SchedAttr::default(),
                1 => rt_attr(Policy::Rr, 1 + random.below(3) as u8),
                _ => fifo(1 + random.below(3) as u8),
            };
            let cpu = random.below(u64::from(nr_cpus)) as u32;
            if pinned { on(&[cpu], attr) } else { attr }
        };
        let tasks: Vec<TaskId> = (0..5).map(|_| k.create(attr(&mut random))).collect();
        for _ in 0..150 {
            let task = tasks[random.below(5) as usize];
            let t = k.core.task(task).clone();
            match random.below(4) {
                0 if !t.on_rq => k.wake(task),
                1 if t.on_rq => k.sleep(task),
                2 => {
                    // Keep the attributes within what the task's CPU allows, because the engine
                    // does the moving.
                    let attr = attr(&mut random);
                    if attr.affinity.is_none_or(|mask| mask.contains(t.cpu)) {
                        k.set_attr(task, attr);
                    }
                }
                3 => k.run_until(k.core.now + random.below(400) * MS),
                _ => {}
            }
            k.settle();
            check_custody(&k, &tasks);
        }
    }
}

fn check_custody(k: &Kernel, tasks: &[TaskId]) {
    let nr_cpus = k.core.nr_cpus();
    let mut seen: Vec<u32> = (0..nr_cpus).flat_map(|cpu| k.queued(cpu)).collect();
    seen.sort_unstable();
    let expected: Vec<u32> = tasks
        .iter()
        .filter(|id| k.core.task(**id).on_rq && k.core.task(**id).attr.policy.is_rt())
        .map(|id| id.0)
        .collect();
    assert_eq!(seen, expected);
    for cpu in 0..nr_cpus {
        for id in k.queued(cpu) {
            let t = k.core.task(TaskId(id));
            assert_eq!(t.cpu, CpuId(cpu));
            assert!(t.cpus_allowed.contains(t.cpu));
        }
        if let Some(first) = k.queued(cpu).first()
            && !k.rt.is_throttled(&k.core, TaskId(*first))
        {
            // The running task is not always the head: one that is raised while it runs moves to
            // the tail and continues.
            let curr = k.core.task(TaskId(k.curr(cpu).expect("work is waiting")));
            assert_eq!(curr.prio, k.core.task(TaskId(*first)).prio, "the best list runs");
        }
    }
}

/// A kernel with these features of the class.
fn kernel_with(nr_cpus: u32, bandwidth: Bandwidth, push_ipi: bool, runtime_share: bool) -> Kernel {
    Kernel::with_rt(nr_cpus, RtOptions { rr_timeslice_ms: 100, bandwidth, push_ipi, runtime_share })
}

/// The best waiting task of CPU 0 may not run on CPU 2; the second may. A CPU that pulls finds it,
/// but a CPU that pushes tries only its best one (push_rt_task).
#[test]
fn with_rt_push_ipi_only_the_best_waiting_task_moves() {
    for (push_ipi, expected) in [(false, Some(3)), (true, None)] {
        let mut k = kernel_with(3, Bandwidth::Off, push_ipi, false);
        k.start(on(&[0], fifo(50)));
        k.start(on(&[1], fifo(60)));
        let last = k.start(on(&[2], fifo(60)));
        k.settle();
        let second = k.start(on(&[0, 2], fifo(40)));
        k.start(on(&[0, 1], fifo(45)));
        assert_eq!(second, TaskId(3));
        k.settle();
        assert_eq!(k.queued(0), [0, 4, 3], "both wait on CPU 0");
        k.sleep(last);
        k.settle();
        assert_eq!(k.curr(2), expected, "RT_PUSH_IPI {push_ipi}");
    }
}

#[test]
fn with_rt_push_ipi_a_cpu_short_of_work_still_gets_it() {
    for push_ipi in [false, true] {
        let mut k = kernel_with(2, Bandwidth::Off, push_ipi, false);
        k.start(on(&[0], fifo(50)));
        let second = k.start(on(&[1], fifo(50)));
        let waiting = k.start(fifo(40));
        k.settle();
        k.sleep(second);
        k.settle();
        assert_eq!(k.curr(1), Some(waiting.0), "RT_PUSH_IPI {push_ipi}");
    }
}

/// Half of the other CPU's unused part of 950 ms exceeds the 50 ms that this one lacks.
#[test]
fn with_rt_runtime_share_a_busy_cpu_borrows_the_rest_of_its_period() {
    for (share, expected) in [(false, vec![952, 1_000, 1_952, 2_000]), (true, vec![])] {
        let mut k = kernel_with(2, THROTTLING, false, share);
        k.start(on(&[0], fifo(10)));
        k.start(on(&[0], SchedAttr::default()));
        k.run_until(2_500 * MS);
        let times: Vec<u64> = k.timeline_ms(0).iter().skip(1).map(|(time, _)| *time).collect();
        assert_eq!(times, expected, "RT_RUNTIME_SHARE {share}");
    }
}

/// Two CPUs that run real-time tasks without a break have nothing to lend.
#[test]
fn with_rt_runtime_share_busy_cpus_lend_nothing_for_long() {
    let mut k = kernel_with(2, THROTTLING, false, true);
    k.start(on(&[0], fifo(10)));
    k.start(on(&[1], fifo(10)));
    k.start(on(&[0], SchedAttr::default()));
    k.start(on(&[1], SchedAttr::default()));
    k.run_until(20_000 * MS);
    let rt: u64 = (0..2).map(|task| k.core.sum_exec_runtime(TaskId(task))).sum();
    assert!(rt <= 2 * 19_000 * MS + 100 * MS, "{rt}");
}
