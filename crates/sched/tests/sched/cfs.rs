// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFS as in Linux 6.1: exact sequences of switches.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, hogs, nice, policy};
use schedlab_model::{Nanos, Policy, TaskId};
use schedlab_sched::fair::rules::Rules;

fn kernel(scaling_cpus: u64, hz: u32) -> Kernel {
    Setup::new(Rules::LINUX_6_1, scaling_cpus, hz).build()
}

fn assert_hogs(scaling_cpus: u64, hz: u32, nices: &[i8], end_ms: u64, expected: &str) {
    assert_eq!(hogs(Rules::LINUX_6_1, scaling_cpus, hz, nices, end_ms), expected);
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz250_linux_6_1() {
    assert_hogs(1, 250, &[0, 0], 12, "0A 4B 8A 12B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz250_linux_6_1() {
    assert_hogs(8, 250, &[0, 0], 36, "0A 12B 24A 36B");
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz1000_linux_6_1() {
    assert_hogs(1, 1000, &[0, 0], 9, "0A 3B 6A 9B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz1000_linux_6_1() {
    assert_hogs(8, 1000, &[0, 0], 36, "0A 12B 24A 36B");
}

#[test]
fn section_7_1_nice_0_5_1_cpu_hz250_linux_6_1() {
    let expected = "0A 8B 12A 20B 24A 36B 40A 52B 56A 68B 72A";
    assert_hogs(1, 250, &[0, 5], 72, expected);
}

#[test]
fn section_7_1_nice_0_5_8_cpus_hz1000_linux_6_1() {
    assert_hogs(8, 1000, &[0, 5], 76, "0A 19B 26A 45B 51A 70B 76A");
}

#[test]
fn section_7_1_nice_0_0_0_8_cpus_hz1000_linux_6_1() {
    assert_hogs(8, 1000, &[0, 0, 0], 40, "0A 8B 16C 24A 32B 40C");
}

#[test]
fn section_7_1_nice_0_times_4_4_cpus_hz1000_linux_6_1() {
    assert_hogs(4, 1000, &[0; 4], 20, "0A 5B 10C 15D 20A");
}

#[test]
fn section_7_1_nice_minus_5_0_5_8_cpus_hz250_linux_6_1() {
    assert_hogs(8, 250, &[-5, 0, 5], 64, "0A 20B 28C 32A 52B 60C 64A");
}

/// A hog and a sleeper that wakes at 10, 30 and 50 ms for 1 ms each time.
fn hog_and_sleeper(scaling_cpus: u64) -> Kernel {
    let mut kernel = kernel(scaling_cpus, 250);
    kernel.hog(nice(0));
    kernel.sleeper(nice(0), &[10 * MS, 30 * MS, 50 * MS], MS);
    kernel
}

fn vruntime(kernel: &Kernel, task: u32) -> Nanos {
    kernel.class.vruntime(TaskId(task))
}

#[test]
fn section_7_2_hog_and_sleeper_1_cpu_hz250_linux_6_1() {
    let mut kernel = hog_and_sleeper(1);
    for (wake, v) in [(10, 7), (30, 26), (50, 45)] {
        kernel.run_until(wake * MS);
        assert_eq!(vruntime(&kernel, 1), v * MS, "at {wake} ms");
    }
    kernel.run_until(60 * MS);
    assert_eq!(kernel.timeline(), "0A 10B 11A 30B 31A 50B 51A");
}

#[test]
fn section_7_2_hog_and_sleeper_8_cpus_hz250_linux_6_1() {
    let mut kernel = hog_and_sleeper(8);
    for (wake, v) in [(10, 0), (30, 17), (50, 36)] {
        kernel.run_until(wake * MS);
        assert_eq!(vruntime(&kernel, 1), v * MS, "at {wake} ms");
    }
    kernel.run_until(60 * MS);
    assert_eq!(kernel.timeline(), "0A 10B 11A 30B 31A 50B 51A");
}

#[test]
fn section_1_14_batch_does_not_preempt_and_idle_is_preempted_at_once() {
    let mut kernel = kernel(1, 250);
    kernel.hog(nice(0));
    kernel.sleeper(policy(Policy::Batch), &[9 * MS], MS);
    kernel.run_until(20 * MS);
    assert_eq!(kernel.timeline(), "0A 12B 13A");

    let mut kernel = self::kernel(1, 250);
    kernel.hog(policy(Policy::Idle));
    kernel.sleeper(policy(Policy::Batch), &[9 * MS], MS);
    kernel.sleeper(nice(0), &[15 * MS], MS);
    kernel.run_until(20 * MS);
    assert_eq!(kernel.timeline(), "0A 9B 10A 15C 16A");
}

#[test]
fn section_1_12_yield_passes_the_caller_over_unless_that_is_unfair() {
    let mut kernel = kernel(1, 1000);
    kernel.hog(nice(0));
    kernel.hog(nice(0));
    kernel.run_until(2 * MS);
    // A is 2 ms ahead: B is picked, although A yielded at once.
    kernel.yield_cpu(0);
    assert_eq!(kernel.timeline(), "0A 2B");
    // B is at 0.5 ms, A at 2 ms. A is more than 1 ms ahead, so B continues.
    kernel.run_until(2 * MS + 500_000);
    kernel.yield_cpu(0);
    assert_eq!(kernel.timeline(), "0A 2B");
    // B is at 1.2 ms: A is within 1 ms of it.
    kernel.run_until(3 * MS + 200_000);
    kernel.yield_cpu(0);
    assert_eq!(kernel.timeline(), "0A 2B 3.200000A");
}

#[test]
fn section_1_13_a_child_does_not_preempt_its_parent() {
    let mut kernel = kernel(1, 1000);
    let parent = kernel.hog(nice(0));
    kernel.run_until(10 * MS);
    let v = vruntime(&kernel, 0);
    let child = kernel.fork(parent, nice(0));
    assert_eq!(vruntime(&kernel, child.0), v + 2_999_998);
    kernel.run_until(30 * MS);
    // The parent, alone since 0, has long used its slice of 3 ms. It is preempted at the next tick,
    // but picked again while it is before the child.
    assert_eq!(kernel.timeline(), "0A 13B 16A 19B 22A 25B 28A");
}

#[test]
fn section_1_15_renice_keeps_the_relative_vruntime() {
    let mut kernel = kernel(1, 1000);
    let a = kernel.hog(nice(0));
    let b = kernel.hog(nice(0));
    kernel.run_until(7 * MS);
    let before = (vruntime(&kernel, 0), vruntime(&kernel, 1));
    kernel.set_attr(b, nice(5));
    assert_eq!((vruntime(&kernel, 0), vruntime(&kernel, 1)), before);
    kernel.run_until(20_000 * MS);
    // 1024 : 335 from then on.
    let share = (kernel.ran(b) - 3 * MS) * 1_000_000 / (19_993 * MS);
    assert!(share.abs_diff(335 * 1_000_000 / 1359) < 1000, "{share}");
    assert!(kernel.ran(a) + kernel.ran(b) == 20_000 * MS);
}

#[test]
fn long_run_shares_follow_the_weights() {
    for (nices, weights) in
        [(vec![0, 5], vec![1024, 335]), (vec![-5, 0, 5, 10], vec![3121, 1024, 335, 110])]
    {
        let mut kernel = kernel(8, 1000);
        kernel.record = false;
        for value in &nices {
            kernel.hog(nice(*value));
        }
        let end = 400_000 * MS;
        kernel.run_until(end);
        let total: u64 = weights.iter().sum();
        for (task, weight) in weights.iter().enumerate() {
            let due = end * weight / total;
            let error = kernel.ran(TaskId(task as u32)).abs_diff(due);
            assert!(error * 1000 < end, "nice {}: {error} ns of {due}", nices[task]);
        }
    }
}
