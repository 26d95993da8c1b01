// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features of placement and load balancing (kernel/sched/features.h). Each is turned over in a
//! case that it decides.

use crate::balancing_support;
use crate::rt_kernel;

use balancing_support::*;
use rt_kernel::Kernel;
use schedlab_model::{CpuId, Nanos, Policy, SchedAttr, TaskId, Topology};
use schedlab_sched::WakeFlags;
use schedlab_sched::fair::FairClass;
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::registry::find;

const MS: Nanos = 1_000_000;

/// A task that has run on CPU `cpu` for 4 ms and slept for 40; it may now run on `cpus`.
fn sleeper(k: &mut Kernel<FairClass>, nice: i8, cpu: u32, cpus: &[u32]) -> TaskId {
    let task = k.fork(SchedAttr { nice, ..pinned(&[cpu]) });
    k.run_until(k.core.now + 4 * MS);
    k.sleep(task);
    k.settle();
    k.run_until(k.core.now + 40 * MS);
    k.set_attr(task, SchedAttr { nice, ..pinned(cpus) });
    task
}

/// The waker is about to sleep, which leaves its CPU idle. The other CPU runs a task of nice 19,
/// which has less load than the woken task.
#[test]
fn wa_idle_lets_idleness_decide() {
    for rules in RULES {
        for (value, expected) in [(1, CpuId(0)), (0, CpuId(2))] {
            let mut k = kernel_set(rules, two_caches(2), &[("WA_IDLE", value)]);
            let task = sleeper(&mut k, 0, 2, &[0, 2]);
            let waker = k.fork(pinned(&[0]));
            k.fork(SchedAttr { nice: 19, ..pinned(&[2]) });
            k.run_until(k.core.now + 8 * MS);
            k.wake_with(task, WakeFlags { sync: true, ..wakeup(0, Some(waker)) });
            assert_eq!(k.core.task(task).cpu, expected, "{rules:?} {value}");
        }
    }
}

/// Three tasks are on the CPU where it ran, one on the waker's: by load it moves to the waker.
#[test]
fn wa_weight_lets_load_decide() {
    for rules in RULES {
        for (value, expected) in [(1, CpuId(1)), (0, CpuId(3))] {
            let mut k = kernel_set(rules, two_caches(2), &[("WA_WEIGHT", value)]);
            let task = sleeper(&mut k, 0, 2, &[0, 1, 2, 3]);
            let waker = k.fork(pinned(&[0]));
            for _ in 0..3 {
                k.fork(pinned(&[2]));
            }
            k.run_until(k.core.now + 200 * MS);
            k.wake_with(task, wakeup(0, Some(waker)));
            assert_eq!(k.core.task(task).cpu, expected, "{rules:?} {value}");
        }
    }
}

/// Equal loads, and a woken task with the small load of nice 19: the bias of 8 % is greater.
#[test]
fn wa_bias_counts_the_load_left_behind_for_more() {
    for rules in RULES {
        for (value, expected) in [(1, CpuId(0)), (0, CpuId(2))] {
            let mut k = kernel_set(rules, two_caches(2), &[("WA_BIAS", value)]);
            let task = sleeper(&mut k, 19, 2, &[0, 2]);
            let waker = k.fork(pinned(&[0]));
            k.fork(pinned(&[2]));
            k.run_until(k.core.now + 300 * MS);
            k.wake_with(task, wakeup(0, Some(waker)));
            assert_eq!(k.core.task(task).cpu, expected, "{rules:?} {value}");
        }
    }
}

/// 14 of 16 CPUs of a cache are busy: the wake-up searches none.
#[test]
fn sis_util_spares_a_busy_cache_the_search() {
    for rules in RULES {
        for (value, expected) in [(1, CpuId(2)), (0, CpuId(15))] {
            let mut k = kernel_set(rules, Topology::flat(16), &[("SIS_UTIL", value)]);
            let all: Vec<u32> = (0..16).collect();
            let task = sleeper(&mut k, 0, 2, &all);
            let hogs: Vec<TaskId> = (0..15).map(|cpu| k.fork(pinned(&[cpu]))).collect();
            k.run_until(k.core.now + 500 * MS);
            k.wake_with(task, wakeup(2, Some(hogs[2])));
            assert_eq!(k.core.task(task).cpu, expected, "{rules:?} {value}");
        }
    }
}

/// The only task that may leave CPU 0 is its queue's buddy at each tick; nothing else counts as
/// cache-hot. CPU 1 has its own work and balances as a busy CPU.
#[test]
fn cache_hot_buddy_keeps_the_buddy() {
    let leaves = |value| {
        let set = [("NEXT_BUDDY", 1), ("migration_cost_ns", 0), ("CACHE_HOT_BUDDY", value)];
        let mut k = kernel_set(Rules::LINUX_6_1, Topology::flat(2), &set);
        for _ in 0..10 {
            k.fork(pinned(&[0]));
        }
        k.fork(pinned(&[1]));
        let task = k.fork(SchedAttr { policy: Policy::Batch, ..pinned(&[0]) });
        k.run_until(101 * MS);
        k.set_attr(task, SchedAttr { policy: Policy::Batch, ..hog() });
        (1..500).find(|turn| {
            // It wakes again a millisecond before the next tick.
            k.run_until((103 + 4 * turn) * MS);
            if !k.core.is_running(task) {
                k.sleep(task);
                k.wake(task);
                k.settle();
            }
            k.core.task(task).cpu != CpuId(0)
        })
    };
    let (with, without) = (leaves(1), leaves(0));
    // A buddy does not move until two attempts have failed (cache_nice_tries).
    assert_eq!((with, without), (Some(42), Some(28)), "in ticks");
}

/// Tasks of nice 19 have a load of 15: they do not move until an attempt has failed.
#[test]
fn lb_min_leaves_small_tasks() {
    for rules in RULES {
        let left: Vec<Option<u64>> = [0, 1]
            .into_iter()
            .map(|value| {
                let mut k = kernel_set(rules, Topology::flat(2), &[("LB_MIN", value)]);
                k.fork(pinned(&[1]));
                k.fork(pinned(&[0]));
                let small = SchedAttr { nice: 19, ..pinned(&[0]) };
                let tasks: Vec<TaskId> = (0..30).map(|_| k.fork(small)).collect();
                k.run_until(k.core.now + 200 * MS);
                for task in &tasks {
                    k.set_attr(*task, SchedAttr { nice: 19, ..hog() });
                }
                let start = k.core.now;
                (1..=2_000).find(|ms| {
                    k.run_until(start + ms * MS);
                    tasks.iter().any(|task| k.core.task(*task).cpu == CpuId(1))
                })
            })
            .collect();
        // In ms: the first attempt of the busy CPU, and the second.
        assert_eq!(left, [Some(12), Some(40)], "{rules:?}");
    }
}

/// CPU 1 wakes and goes idle two thousand times without finding anything. Then a task waits on CPU
/// 0. Without the random choice the next search moves it; with it a tick does.
///
/// 6.1.160 and 6.12.65 took the feature over from 7.0; NI_RATE came with 7.1.
#[test]
fn ni_random_stops_looking_around_in_vain() {
    for rules in [Rules::LINUX_6_1, Rules::LINUX_7_1] {
        let tries = [1, 0].map(|value| tries_until_a_task_moves(rules, value));
        assert!(tries[0] > 1 && tries[1] == 1, "{rules:?}: {tries:?}");
    }
    for (name, found) in [
        ("linux-6.1", [true, false]),
        ("linux-6.6", [false, false]),
        ("linux-6.12.0", [false, false]),
        ("linux-6.12", [true, false]),
        ("linux-6.18", [true, false]),
        ("linux-7.1", [true, true]),
    ] {
        let tunables = &find(name).unwrap().tunables;
        let has = |name: &str| tunables.iter().any(|tunable| tunable.name == name);
        assert_eq!(["NI_RANDOM", "NI_RATE"].map(has), found, "{name}");
    }
}

fn tries_until_a_task_moves(rules: Rules, ni_random: u64) -> u32 {
    let mut settings = vec![("NI_RANDOM", ni_random), ("migration_cost_ns", 0)];
    if rules.features.balance.ni_rate {
        settings.push(("NI_RATE", 0));
    }
    let mut k = kernel_set(rules, Topology::flat(2), &settings);
    k.fork(pinned(&[0]));
    let blinker = k.fork(pinned(&[1]));
    let blink = |k: &mut Kernel<FairClass>| {
        k.run_until(k.core.now + MS / 2);
        k.sleep(blinker);
        k.settle();
        k.run_until(k.core.now + MS / 2);
        k.wake(blinker);
        k.settle();
    };
    (0..2_000).for_each(|_| blink(&mut k));
    let waiting = k.fork(pinned(&[0]));
    k.set_attr(waiting, hog());
    (0..10_000)
        .find(|_| {
            let moved = k.core.task(waiting).cpu == CpuId(1);
            if !moved {
                blink(&mut k);
            }
            moved
        })
        .unwrap_or(u32::MAX)
}
