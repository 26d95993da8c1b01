// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement and load balancing of fair tasks under CFS and EEVDF, driven by a small kernel at
//! ideal ticks and without costs.

use crate::balancing_support;
use crate::rt_kernel;

use balancing_support::*;
use rt_kernel::{Kernel, fifo, mask};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuId, Nanos, SchedAttr, TaskId, Topology};
use schedlab_sched::fair::FairClass;

const MS: Nanos = 1_000_000;
const SEC: Nanos = 1_000 * MS;

fn nr_running(k: &Kernel<FairClass>) -> Vec<u32> {
    k.core.rqs.iter().map(|rq| rq.nr_running).collect()
}

/// CPU time of each task in percent of one CPU over the last `window`.
fn shares(k: &mut Kernel<FairClass>, tasks: &[TaskId], window: Nanos) -> Vec<u64> {
    let before: Vec<Nanos> = tasks.iter().map(|t| k.core.sum_exec_runtime(*t)).collect();
    k.run_until(k.core.now + window);
    let after = tasks.iter().map(|t| k.core.sum_exec_runtime(*t));
    after.zip(before).map(|(after, before)| (after - before) * 100 / window).collect()
}

#[test]
fn hogs_spread_at_fork() {
    for rules in RULES {
        for (nr_cpus, hogs, expected) in [
            (2, 2, vec![1, 1]),
            (2, 4, vec![2, 2]),
            (4, 4, vec![1, 1, 1, 1]),
            (4, 8, vec![2, 2, 2, 2]),
        ] {
            let mut k = kernel(rules, nr_cpus);
            for _ in 0..hogs {
                k.fork(hog());
            }
            k.run_until(SEC);
            assert_eq!(nr_running(&k), expected, "{rules:?}, {hogs} hogs");
        }
    }
}

#[test]
fn even_loads_stay_where_they_are() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        let tasks: Vec<TaskId> = (0..4).map(|_| k.fork(hog())).collect();
        k.run_until(SEC);
        let moves: u64 = tasks.iter().map(|t| k.core.task(*t).nr_migrations).sum();
        let shares = shares(&mut k, &tasks, 10 * SEC);
        assert!(shares.iter().all(|share| (49..=51).contains(share)), "{shares:?}");
        let later: u64 = tasks.iter().map(|t| k.core.task(*t).nr_migrations).sum();
        assert_eq!(moves, later, "{rules:?}: no task moves between even CPUs");
    }
}

#[test]
fn three_hogs_on_two_cpus_rotate() {
    for rules in RULES {
        for hz in [250, 1000] {
            let mut k = kernel_of(rules, Topology::flat(2), hz);
            let tasks: Vec<TaskId> = (0..3).map(|_| k.fork(hog())).collect();
            k.run_until(SEC);
            let shares = shares(&mut k, &tasks, 10 * SEC);
            // With ideal ticks and no costs, moves can be in step with the slices, so that one task
            // never waits. It then has a little more than two thirds.
            assert_eq!(shares.iter().sum::<u64>().div_ceil(10) * 10, 200, "{shares:?}");
            assert!(
                shares.iter().all(|share| (60..=77).contains(share)),
                "{rules:?} at HZ {hz}: {shares:?}"
            );
            let moves: u64 = tasks.iter().map(|t| k.core.task(*t).nr_migrations).sum();
            assert!((50..=200).contains(&moves), "{rules:?} at HZ {hz}: {moves} moves");
            assert_eq!(k.core.idle_cpus.weight(), 0);
        }
    }
}

#[test]
fn a_cpu_that_goes_idle_pulls_at_once() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        let tasks: Vec<TaskId> = (0..4).map(|_| k.fork(hog())).collect();
        k.run_until(SEC);
        let on_0: Vec<TaskId> =
            tasks.iter().copied().filter(|t| k.core.task(*t).cpu == CpuId(0)).collect();
        for task in on_0 {
            k.sleep(task);
        }
        k.settle();
        k.run_until(k.core.now + 20 * MS);
        assert_eq!(k.core.idle_cpus.weight(), 0, "{rules:?}: {:?}", nr_running(&k));
    }
}

#[test]
fn idle_cpus_are_found_by_a_busy_ones_tick() {
    for rules in RULES {
        let mut k = kernel(rules, 4);
        // Bound to CPU 0 at first, so that they cannot spread; then released.
        let tasks: Vec<TaskId> = (0..4).map(|_| k.fork(pinned(&[0]))).collect();
        k.run_until(100 * MS);
        assert_eq!(nr_running(&k), [4, 0, 0, 0]);
        for task in &tasks {
            k.set_attr(*task, hog());
        }
        k.run_until(k.core.now + 100 * MS);
        assert_eq!(nr_running(&k), [1, 1, 1, 1], "{rules:?}");
    }
}

/// A CPU that got work while it was idle counts as busy until its next time, which is 16 times as
/// far away. If it goes idle again without finding work, a busy CPU's tick still balances for it
/// soon.
#[test]
fn a_cpu_that_goes_idle_again_is_looked_after_at_its_idle_interval() {
    for rules in RULES {
        let mut k = kernel(rules, 3);
        k.fork(pinned(&[0]));
        let moves: Vec<TaskId> = (0..2).map(|_| k.fork(pinned(&[0]))).collect();
        k.fork(pinned(&[1]));
        k.run_until(k.core.now + 40 * MS);
        // CPU 2 is idle. One of the tasks may move now, and a tick moves it.
        k.set_attr(moves[0], pinned(&[0, 2]));
        k.run_until(k.core.now + 12 * MS);
        assert_eq!(k.core.task(moves[0]).cpu, CpuId(2), "{rules:?}");
        k.sleep(moves[0]);
        k.settle();
        k.set_attr(moves[1], pinned(&[0, 2]));
        k.run_until(k.core.now + 16 * MS);
        assert_eq!(k.core.task(moves[1]).cpu, CpuId(2), "{rules:?}");
    }
}

/// One attempt looks at no more than 32 tasks, even if none of them may move: longer lists are gone
/// through in several attempts. Linux 6.1 to 6.9 looked on until a task could move, and the lock
/// was held long enough for reports of lockups (commit b0defa7ae03e, later reverted).
#[test]
fn an_attempt_looks_at_no_more_tasks_than_it_may() {
    for rules in RULES {
        let moved_after = |nr_pinned: usize| {
            let mut k = kernel(rules, 2);
            for _ in 0..nr_pinned {
                k.fork(pinned(&[0]));
            }
            // The latest is looked at last. It is bound too until all are there.
            let last = k.fork(pinned(&[0]));
            k.run_until(100 * MS);
            k.set_attr(last, hog());
            let start = k.core.now;
            while k.core.task(last).cpu == CpuId(0) {
                assert!(k.core.now < start + 2_000 * MS, "{rules:?}: it never moves");
                k.run_until(k.core.now + MS);
            }
            k.core.now - start
        };
        let (few, many) = (moved_after(10), moved_after(40));
        assert!(many > few, "{rules:?}: {many} ns, with few tasks {few} ns");
    }
}

#[test]
fn pinned_tasks_stay_and_the_others_make_room() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        let bound: Vec<TaskId> = (0..2).map(|_| k.fork(pinned(&[0]))).collect();
        let free: Vec<TaskId> = (0..2).map(|_| k.fork(hog())).collect();
        k.run_until(SEC);
        for task in &bound {
            assert_eq!(k.core.task(*task).cpu, CpuId(0));
        }
        for task in &free {
            assert_eq!(k.core.task(*task).cpu, CpuId(1), "{rules:?}");
        }
    }
}

#[test]
fn all_pinned_to_one_cpu_leaves_the_other_idle() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        for _ in 0..3 {
            k.fork(pinned(&[1]));
        }
        k.run_until(3 * SEC);
        assert_eq!(nr_running(&k), [0, 3]);
    }
}

#[test]
fn hogs_use_whole_cores_before_hardware_threads() {
    for rules in RULES {
        let mut k = kernel_of(rules, smt(4), 250);
        for _ in 0..4 {
            k.fork(hog());
        }
        k.run_until(2 * SEC);
        let cores: Vec<u32> =
            (0..4).map(|c| k.core.rqs[c].nr_running + k.core.rqs[c + 4].nr_running).collect();
        assert_eq!(cores, [1, 1, 1, 1], "{rules:?}");
    }
}

#[test]
fn two_hogs_on_one_core_are_parted_by_stopping_one() {
    for rules in RULES {
        let mut k = kernel_of(rules, smt(2), 250);
        // CPUs 0 and 2 are one core.
        let tasks = [k.fork(pinned(&[0])), k.fork(pinned(&[2]))];
        k.run_until(50 * MS);
        for task in tasks {
            k.set_attr(task, hog());
        }
        k.run_until(2 * SEC);
        let cores: Vec<u32> =
            (0..2).map(|c| k.core.rqs[c].nr_running + k.core.rqs[c + 2].nr_running).collect();
        assert_eq!(cores, [1, 1], "{rules:?}");
    }
}

#[test]
fn caches_share_the_load_evenly() {
    for rules in RULES {
        let mut k = kernel_of(rules, two_caches(2), 250);
        for _ in 0..8 {
            k.fork(hog());
        }
        k.run_until(3 * SEC);
        let running = nr_running(&k);
        assert_eq!(running, [2, 2, 2, 2], "{rules:?}");
    }
}

#[test]
fn real_time_work_makes_a_cpu_smaller() {
    for rules in RULES {
        let mut k = kernel(rules, 2);
        k.fork(SchedAttr { affinity: Some(mask(&[0])), ..fifo(10) });
        let tasks: Vec<TaskId> = (0..2).map(|_| k.fork(hog())).collect();
        k.run_until(2 * SEC);
        let shares = shares(&mut k, &tasks, 5 * SEC);
        assert_eq!(shares.iter().sum::<u64>().div_ceil(10) * 10, 100, "{shares:?}");
        for task in &tasks {
            assert_eq!(k.core.task(*task).cpu, CpuId(1), "{rules:?}");
        }
    }
}

/// At most 3 tasks on 2 CPUs, with every affinity: within two balancing intervals no CPU is idle
/// while a task that may use it waits.
#[test]
fn no_cpu_idles_beside_waiting_work() {
    let masks: [&[u32]; 3] = [&[0], &[1], &[0, 1]];
    for rules in RULES {
        for case in 0..27 {
            let mut k = kernel(rules, 2);
            let of = |n: usize| pinned(masks[n]);
            let tasks: Vec<TaskId> =
                [case % 3, case / 3 % 3, case / 9].into_iter().map(|n| k.fork(of(n))).collect();
            k.run_until(200 * MS);
            check_work_conserved(&k, &tasks, &format!("{rules:?} case {case}"));
            k.sleep(tasks[0]);
            k.settle();
            k.run_until(k.core.now + 200 * MS);
            check_work_conserved(&k, &tasks, &format!("{rules:?} case {case} after sleep"));
        }
    }
}

fn check_work_conserved(k: &Kernel<FairClass>, tasks: &[TaskId], what: &str) {
    for task in tasks {
        let t = k.core.task(*task);
        assert!(t.cpus_allowed.contains(t.cpu), "{what}: task {task} on CPU {}", t.cpu);
        if t.on_rq && !t.sched_delayed && k.core.rq(t.cpu).curr != Some(*task) {
            let idle = t.cpus_allowed.and(&k.core.idle_cpus);
            assert!(idle.is_empty(), "{what}: task {task} waits, CPUs {idle} idle");
        }
    }
}

/// Random tasks on random machines: no task runs on a forbidden CPU, none is lost, work is
/// conserved.
#[test]
fn random_lives_keep_custody_and_conserve_work() {
    for seed in 0..60 {
        let mut random = Stream::new(seed, Purpose::Scheduler, 3);
        let rules = RULES[random.below(RULES.len() as u64) as usize];
        let topology = match random.below(4) {
            0 => Topology::flat(1 + random.below(4) as u32),
            1 => smt(1 + random.below(3) as u32),
            2 => two_caches(1 + random.below(3) as u32),
            _ => Topology { node: vec![0, 0, 1, 1], llc: vec![0, 0, 1, 1], ..Topology::flat(4) },
        };
        let nr_cpus = topology.nr_cpus();
        let mut k = kernel_of(rules, topology, 250);
        let tasks: Vec<TaskId> = (0..6)
            .map(|_| {
                let cpu = random.below(u64::from(nr_cpus)) as u32;
                let attr = if random.below(4) == 0 { pinned(&[cpu]) } else { hog() };
                k.fork(SchedAttr { nice: random.below(5) as i8 - 2, ..attr })
            })
            .collect();
        for _ in 0..60 {
            let task = tasks[random.below(6) as usize];
            let t = k.core.task(task).clone();
            if t.on_rq && !t.sched_delayed {
                k.sleep(task);
            } else {
                let this = random.below(u64::from(nr_cpus)) as u32;
                k.wake_with(task, wakeup(this, k.core.rq(CpuId(this)).curr));
            }
            k.settle();
            k.run_until(k.core.now + random.below(60) * MS);
            let counted: u32 = nr_running(&k).iter().sum();
            let on_rq = tasks.iter().filter(|t| k.core.task(**t).on_rq).count();
            assert_eq!(counted as usize, on_rq, "seed {seed}");
        }
        k.run_until(k.core.now + SEC);
        check_work_conserved(&k, &tasks, &format!("{rules:?} seed {seed}"));
    }
}
