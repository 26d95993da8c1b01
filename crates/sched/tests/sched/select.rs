// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU that a waking or new fair task gets, under CFS and EEVDF.

use crate::balancing_support;
use crate::rt_kernel;

use balancing_support::*;
use rt_kernel::{Kernel, fifo};
use schedlab_model::{CpuId, Machine, Nanos, Policy, SchedAttr, TaskId, Topology};
use schedlab_sched::WakeFlags;
use schedlab_sched::fair::FairClass;
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::rt::Bandwidth;

const MS: Nanos = 1_000_000;

/// A sleeping task that ran on CPU `cpu`.
fn sleeper(k: &mut Kernel<FairClass>, cpu: u32) -> TaskId {
    let task = k.fork(pinned(&[cpu]));
    k.run_until(k.core.now + 4 * MS);
    k.sleep(task);
    k.settle();
    k.run_until(k.core.now + 40 * MS);
    k.set_attr(task, hog());
    assert_eq!((k.core.task(task).on_rq, k.core.task(task).cpu), (false, CpuId(cpu)));
    task
}

#[test]
fn a_waking_task_goes_back_to_its_idle_cpu() {
    for rules in RULES {
        let mut k = kernel(rules, 4);
        let task = sleeper(&mut k, 2);
        k.wake_with(task, wakeup(0, None));
        assert_eq!(k.core.task(task).cpu, CpuId(2), "{rules:?}");
    }
}

#[test]
fn a_waking_task_whose_cpu_is_busy_finds_an_idle_one() {
    for rules in RULES {
        let mut k = kernel(rules, 4);
        let tasks = [sleeper(&mut k, 2), sleeper(&mut k, 2)];
        let busy = k.fork(pinned(&[2]));
        k.run_until(k.core.now + 100 * MS);
        assert_eq!(k.core.rq(CpuId(2)).curr, Some(busy));
        k.wake_with(tasks[0], wakeup(2, Some(busy)));
        assert_eq!(k.core.task(tasks[0]).cpu, CpuId(0), "{rules:?}: where it was forked");
        k.settle();
        k.wake_with(tasks[1], wakeup(2, Some(busy)));
        assert_eq!(k.core.task(tasks[1]).cpu, CpuId(3), "{rules:?}: next after its own");
    }
}

#[test]
fn a_waking_task_follows_its_waker_to_another_cache_only_if_its_own_is_loaded() {
    for rules in RULES {
        let mut k = kernel_of(rules, two_caches(2), 250);
        let task = sleeper(&mut k, 2);
        let waker = k.fork(pinned(&[0]));
        let busy: Vec<TaskId> = (0..3).map(|_| k.fork(pinned(&[2]))).collect();
        k.run_until(k.core.now + 200 * MS);
        assert_eq!(busy.len(), 3);
        k.wake_with(task, wakeup(0, Some(waker)));
        // Three tasks are on its own CPU, one on the waker's: it moves to the idle CPU of that
        // cache.
        assert_eq!(k.core.task(task).cpu, CpuId(1), "{rules:?}");
    }
}

#[test]
fn smt_wakeup_prefers_an_idle_core() {
    for rules in RULES {
        let mut k = kernel_of(rules, smt(2), 250);
        let task = sleeper(&mut k, 0);
        k.fork(pinned(&[0]));
        k.run_until(k.core.now + 100 * MS);
        k.wake_with(task, wakeup(0, None));
        // CPU 2 is the sibling of the busy CPU 0; core 1 (CPUs 1 and 3) is idle.
        assert_eq!(k.core.task(task).cpu, CpuId(1), "{rules:?}");
    }
}

#[test]
fn a_cpu_with_only_sched_idle_work_counts_as_idle() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        let task = sleeper(&mut k, 0);
        let background = SchedAttr { policy: Policy::Idle, ..pinned(&[0]) };
        k.fork(background);
        let other = k.fork(pinned(&[1]));
        k.run_until(k.core.now + 100 * MS);
        k.wake_with(task, wakeup(1, Some(other)));
        assert_eq!(k.core.task(task).cpu, CpuId(0), "{rules:?}");
        k.settle();
        assert_eq!(k.core.rq(CpuId(0)).curr, Some(task));
    }
}

/// From 7.1 on, a CPU with only SCHED_IDLE work counts as busy for a task that is SCHED_IDLE too.
#[test]
fn section_5_5_sched_idle_work_counts_as_idle_for_others_only() {
    for rules in RULES {
        let mut k = kernel(rules, 3);
        let task = k.create(SchedAttr { policy: Policy::Idle, ..pinned(&[0, 1]) });
        k.fork(SchedAttr { policy: Policy::Idle, ..pinned(&[0]) });
        let other = k.fork(pinned(&[2]));
        k.run_until(k.core.now + 100 * MS);
        k.wake_with(task, wakeup(2, Some(other)));
        let expected = if rules == Rules::LINUX_7_1 { CpuId(1) } else { CpuId(0) };
        assert_eq!(k.core.task(task).cpu, expected, "{rules:?}");
    }
}

#[test]
fn a_waker_that_will_sleep_is_followed() {
    for rules in RULES {
        let mut k = kernel_of(rules, two_caches(2), 250);
        let task = sleeper(&mut k, 2);
        k.set_attr(task, pinned(&[0, 2]));
        let waker = k.fork(pinned(&[0]));
        k.fork(pinned(&[2]));
        k.run_until(k.core.now + 200 * MS);
        // One task on each CPU: the loads are equal, so without the hint it stays.
        k.wake_with(task, wakeup(0, Some(waker)));
        assert_eq!(k.core.task(task).cpu, CpuId(2), "{rules:?}");
        k.settle();
        k.sleep(task);
        k.run_until(k.core.now + 40 * MS);
        k.wake_with(task, WakeFlags { sync: true, ..wakeup(0, Some(waker)) });
        assert_eq!(k.core.task(task).cpu, CpuId(0), "{rules:?}");
    }
}

#[test]
fn a_waker_of_many_is_not_followed() {
    for rules in RULES {
        for wide in [false, true] {
            let mut k = kernel_of(rules, two_caches(2), 250);
            let task = sleeper(&mut k, 2);
            let others = [sleeper(&mut k, 1), sleeper(&mut k, 1)];
            let waker = k.fork(pinned(&[0]));
            for _ in 0..3 {
                k.fork(pinned(&[2]));
            }
            k.run_until(k.core.now + 200 * MS);
            // The task switches between two others, the waker twice as often: too much for a cache
            // of two CPUs.
            let turns = if wide { 2 } else { 0 };
            for (by, count) in [(task, turns), (waker, 2 * turns)] {
                for turn in 0..count {
                    let other = others[turn % 2];
                    k.wake_with(other, wakeup(1, Some(by)));
                    k.settle();
                    k.sleep(other);
                    k.settle();
                    k.run_until(k.core.now + 4 * MS);
                }
            }
            k.wake_with(task, wakeup(0, Some(waker)));
            let expected = if wide { CpuId(3) } else { CpuId(1) };
            assert_eq!(k.core.task(task).cpu, expected, "{rules:?}, wide {wide}");
        }
    }
}

#[test]
fn an_idle_waker_of_the_same_cache_is_taken_only_if_the_own_cpu_is_busy() {
    for rules in RULES {
        let mut k = kernel(rules, 4);
        let task = sleeper(&mut k, 2);
        // A timer on idle CPU 1 wakes the task: its own idle CPU first.
        k.wake_with(task, wakeup(1, None));
        assert_eq!(k.core.task(task).cpu, CpuId(2), "{rules:?}");
        k.settle();
        k.sleep(task);
        k.settle();
        k.fork(pinned(&[2]));
        k.run_until(k.core.now + 40 * MS);
        k.wake_with(task, wakeup(1, None));
        assert_eq!(k.core.task(task).cpu, CpuId(1), "{rules:?}");
    }
}

#[test]
fn a_new_task_goes_to_the_emptier_cache() {
    for rules in RULES {
        let mut k = kernel_of(rules, two_caches(4), 250);
        for cpu in 0..3 {
            k.fork(pinned(&[cpu]));
        }
        k.run_until(100 * MS);
        let task = k.fork(hog());
        assert!(k.core.task(task).cpu >= CpuId(4), "{rules:?}");
    }
}

#[test]
fn new_tasks_stay_on_a_quiet_node() {
    for rules in RULES {
        let nodes: Vec<u32> = (0..16).map(|cpu| cpu / 8).collect();
        let topology = Topology { llc: nodes.clone(), node: nodes, ..Topology::flat(16) };
        let mut k = kernel_of(rules, topology, 250);
        // One eighth of a node's CPUs, that is one task, may be apart.
        let first = k.fork(hog());
        assert!(k.core.task(first).cpu < CpuId(8), "{rules:?}");
        let rest: Vec<TaskId> = (0..7).map(|_| k.fork(hog())).collect();
        let cpus: Vec<u32> = rest.iter().map(|task| k.core.task(*task).cpu.0).collect();
        let far = cpus.iter().filter(|cpu| **cpu >= 8).count();
        assert!((3..=4).contains(&far), "{rules:?}: {cpus:?}");
    }
}

#[test]
fn forks_respect_affinity() {
    for rules in RULES {
        let mut k = kernel_of(rules, two_caches(2), 250);
        for cpus in [&[3][..], &[1, 2], &[2, 3], &[0]] {
            let task = k.fork(pinned(cpus));
            assert!(cpus.contains(&k.core.task(task).cpu.0), "{rules:?}");
        }
        let on = |cpu: u32| k.core.rq(CpuId(cpu)).nr_running;
        assert_eq!([on(0), on(1), on(2), on(3)], [1, 1, 1, 1], "{rules:?}: idle ones first");
    }
}

#[test]
fn the_fair_server_serves_eevdf_as_its_vector_says() {
    let server = Bandwidth::FairServer { runtime: 50 * MS, period: 1_000 * MS };
    let mut k = kernel_with(Rules::LINUX_6_12, &Machine::flat(1), server);
    k.start(fifo(50));
    k.fork(hog());
    k.fork(SchedAttr { nice: 5, ..hog() });
    k.run_until(3_100 * MS);
    let timeline = k.timeline_ms(0);
    let fair: Vec<u64> =
        timeline.iter().filter(|(_, task)| *task == Some(0)).map(|(time, _)| *time).collect();
    assert_eq!(fair, [0, 1000, 2000, 3000], "the real-time hog comes back at these: {timeline:?}");
    let first_fair = timeline.iter().find(|(_, task)| *task != Some(0)).unwrap();
    assert_eq!(first_fair.0, 950);
}
