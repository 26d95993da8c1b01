// SPDX-License-Identifier: MIT OR Apache-2.0
//! EEVDF as in Linux 6.6, 6.12, 6.18 and 7.1: exact sequences of switches.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, hogs, nice, policy};
use schedlab_model::{CpuId, Policy, SchedAttr, TaskId};
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::{DequeueFlags, SchedClass};

const ALL: [Rules; 5] =
    [Rules::LINUX_6_6, Rules::LINUX_6_12_0, Rules::LINUX_6_12, Rules::LINUX_6_18, Rules::LINUX_7_1];
/// Versions whose tree is ordered by deadline: a waiting entity wins a tie against the running one.
const BY_DEADLINE: [Rules; 4] =
    [Rules::LINUX_6_12_0, Rules::LINUX_6_12, Rules::LINUX_6_18, Rules::LINUX_7_1];
/// Versions with the shorter base slice and the stricter yield.
const LATE: [Rules; 3] = [Rules::LINUX_6_12, Rules::LINUX_6_18, Rules::LINUX_7_1];

fn assert_hogs(
    rules: &[Rules],
    scaling_cpus: u64,
    hz: u32,
    nices: &[i8],
    end_ms: u64,
    expected: &str,
) {
    for rules in rules {
        let found = hogs(*rules, scaling_cpus, hz, nices, end_ms);
        assert_eq!(found, expected, "{rules:?}");
    }
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz250() {
    assert_hogs(&BY_DEADLINE, 1, 250, &[0, 0], 12, "0A 4B 8A 12B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz250() {
    assert_hogs(&BY_DEADLINE, 8, 250, &[0, 0], 12, "0A 4B 8A 12B");
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz1000() {
    assert_hogs(&BY_DEADLINE, 1, 1000, &[0, 0], 3, "0A 1B 2A 3B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz1000() {
    assert_hogs(&BY_DEADLINE, 8, 1000, &[0, 0], 9, "0A 3B 6A 9B");
}

/// In 6.6 the running task keeps the CPU on equal deadlines: its pick starts from the running task
/// and takes another only for a strictly earlier deadline (`__pick_eevdf`). Tables that give 6.6
/// the switches of 6.12 for equal hogs decide that tie the other way.
#[test]
fn section_2_3_equal_deadlines_keep_the_running_task_linux_6_6() {
    let rules = [Rules::LINUX_6_6];
    assert_hogs(&rules, 1, 250, &[0, 0], 28, "0A 4B 12A 20B 28A");
    assert_hogs(&rules, 8, 250, &[0, 0], 28, "0A 4B 12A 20B 28A");
    assert_hogs(&rules, 1, 1000, &[0, 0], 7, "0A 1B 3A 5B 7A");
    assert_hogs(&rules, 8, 1000, &[0, 0], 21, "0A 3B 9A 15B 21A");
}

#[test]
fn section_7_1_nice_0_5_1_cpu_hz250() {
    let expected = "0A 4B 8A 20B 24A 36B 40A 52B 56A 68B 72A";
    assert_hogs(&ALL, 1, 250, &[0, 5], 72, expected);
}

#[test]
fn section_7_1_nice_0_5_8_cpus_hz1000_linux_6_6() {
    let expected = "0A 3B 7A 19B 23A 35B 39A 51B 55A 67B 71A";
    assert_hogs(&[Rules::LINUX_6_6], 8, 1000, &[0, 5], 71, expected);
}

#[test]
fn section_7_1_nice_0_5_8_cpus_hz1000_linux_6_12_0() {
    let expected = "0A 3B 7A 17B 21A 33B 37A 49B 53A 65B 69A";
    assert_hogs(&[Rules::LINUX_6_12_0], 8, 1000, &[0, 5], 69, expected);
}

#[test]
fn section_7_1_nice_0_5_8_cpus_hz1000_linux_6_12() {
    let expected = "0A 3B 6A 13B 16A 25B 28A 37B 40A 49B 52A 61B 64A 74B 77A";
    assert_hogs(&LATE, 8, 1000, &[0, 5], 77, expected);
}

#[test]
fn section_7_1_nice_0_0_0_8_cpus_hz1000() {
    assert_hogs(&BY_DEADLINE, 8, 1000, &[0, 0, 0], 15, "0A 3B 6C 9A 12B 15C");
}

#[test]
fn section_7_1_nice_0_times_4_4_cpus_hz1000() {
    assert_hogs(&ALL, 4, 1000, &[0; 4], 12, "0A 3B 6C 9D 12A");
}

#[test]
fn section_7_1_nice_minus_5_0_5_8_cpus_hz250() {
    let expected = "0A 4B 8A 16C 20A 28B 32A 40B 44A 56B 60A 68C 72A 80B";
    assert_hogs(&ALL, 8, 250, &[-5, 0, 5], 80, expected);
}

/// A hog and a sleeper that wakes at 10, 30 and 50 ms for 1 ms each time.
fn hog_and_sleeper(rules: Rules, hz: u32, slice: Option<u64>) -> Kernel {
    let mut kernel = Setup::new(rules, 8, hz).build();
    kernel.hog(nice(0));
    let attr = SchedAttr { slice_ns: slice, ..SchedAttr::default() };
    kernel.sleeper(attr, &[10 * MS, 30 * MS, 50 * MS], MS);
    kernel
}

/// Virtual runtime and deadline of a task in ms/10, counted from the first task's start.
fn v_and_d(kernel: &Kernel, task: u32) -> (i64, i64) {
    let origin = 1i64 << 20;
    let tenths = |v: u64| (v as i64 + origin) / 100_000;
    let task = TaskId(task);
    (tenths(kernel.class.vruntime(task)), tenths(kernel.class.deadline(task)))
}

#[test]
fn section_7_2_hog_and_sleeper_8_cpus_hz250_linux_6_6_and_6_12_0() {
    for rules in [Rules::LINUX_6_6, Rules::LINUX_6_12_0] {
        let mut kernel = hog_and_sleeper(rules, 250, None);
        kernel.run_until(10 * MS);
        assert_eq!(v_and_d(&kernel, 1), (100, 130), "{rules:?}");
        assert_eq!(v_and_d(&kernel, 0), (100, 110), "{rules:?}");
        kernel.run_until(13 * MS);
        assert_eq!(kernel.class.vlag(TaskId(1)), 500_000, "{rules:?}");
        kernel.run_until(30 * MS);
        assert_eq!(v_and_d(&kernel, 1), (280, 310), "{rules:?}");
        kernel.run_until(31 * MS);
        assert_eq!(kernel.class.vlag(TaskId(1)), 0, "{rules:?}");
        kernel.run_until(50 * MS);
        assert_eq!(v_and_d(&kernel, 1), (480, 510), "{rules:?}");
        assert_eq!(v_and_d(&kernel, 0), (480, 490), "{rules:?}");
        kernel.run_until(60 * MS);
        assert_eq!(kernel.class.vlag(TaskId(1)), 500_000, "{rules:?}");
        assert_eq!(kernel.timeline(), "0A 12B 13A 30B 31A 52B 53A", "{rules:?}");
    }
}

#[test]
fn section_7_2_hog_and_sleeper_8_cpus_hz1000_linux_6_12() {
    for rules in LATE {
        let mut kernel = hog_and_sleeper(rules, 1000, None);
        for (wake, b, a) in [
            (10, (100, 128), (100, 118)),
            (30, (290, 318), (290, 298)),
            (50, (480, 508), (480, 508)),
        ] {
            kernel.run_until(wake * MS);
            assert_eq!(v_and_d(&kernel, 1), b, "{rules:?} at {wake} ms");
            assert_eq!(v_and_d(&kernel, 0), a, "{rules:?} at {wake} ms");
        }
        kernel.run_until(53 * MS);
        assert!(kernel.core.task(TaskId(1)).sched_delayed, "{rules:?}");
        assert_eq!(kernel.core.rqs[0].nr_running, 2, "{rules:?}");
        kernel.run_until(54 * MS);
        assert!(!kernel.core.task(TaskId(1)).on_rq, "{rules:?}");
        assert_eq!(kernel.class.vlag(TaskId(1)), 0, "{rules:?}");
        kernel.run_until(60 * MS);
        assert_eq!(kernel.timeline(), "0A 11B 12A 31B 32A 50B 51A", "{rules:?}");
    }
}

#[test]
fn section_7_2_custom_slice_8_cpus_hz1000() {
    for (rules, completed) in LATE.into_iter().zip([[13, 32, 54], [12, 32, 52], [12, 32, 52]]) {
        let mut kernel = hog_and_sleeper(rules, 1000, Some(100_000));
        let mut found = Vec::new();
        let mut was_delayed = false;
        for ms in 1..=60 {
            kernel.run_until(ms * MS);
            let delayed = kernel.core.task(TaskId(1)).sched_delayed;
            if was_delayed && !delayed {
                found.push(ms);
            }
            was_delayed = delayed;
        }
        assert_eq!(found, completed, "{rules:?}");
        assert_eq!(kernel.timeline(), "0A 10B 11A 30B 31A 50B 51A", "{rules:?}");
    }
}

#[test]
fn section_2_5_a_delayed_sleeper_alone_is_completed_when_the_cpu_goes_idle() {
    let mut kernel = Setup::new(Rules::LINUX_6_12, 8, 1000).build();
    kernel.sleeper(nice(0), &[0], 2 * MS);
    kernel.sleeper(nice(0), &[0], 2 * MS);
    kernel.run_until(10 * MS);
    // A blocks at 2 ms, ahead of B, so its dequeue is delayed. B blocks at 4 ms: both have left.
    assert_eq!(kernel.timeline(), "0A 2B 4-");
    assert!(!kernel.core.task(TaskId(0)).on_rq && !kernel.core.task(TaskId(1)).on_rq);
    assert_eq!(kernel.core.rqs[0].nr_running, 0);
}

#[test]
fn section_2_5_a_delayed_sleeper_that_wakes_stays_where_it_is() {
    let mut kernel = Setup::new(Rules::LINUX_6_12, 8, 1000).build();
    let sleeper = kernel.sleeper(nice(0), &[0, 2 * MS + 500_000], 2 * MS);
    kernel.run_until(0);
    kernel.hog(nice(0));
    kernel.run_until(2 * MS);
    assert!(kernel.core.task(sleeper).sched_delayed);
    let v = kernel.class.vruntime(sleeper);
    kernel.run_until(2 * MS + 500_000);
    assert!(!kernel.core.task(sleeper).sched_delayed);
    // Its lag is still negative: nothing changes.
    assert_eq!(kernel.class.vruntime(sleeper), v);
    assert_eq!(kernel.core.rqs[0].nr_running, 2);
}

/// A kernel in which task 0 sleeps with a delayed dequeue next to two hogs.
fn with_delayed_sleeper(rules: Rules) -> (Kernel, TaskId) {
    let mut kernel = Setup::new(rules, 8, 1000).build();
    let sleeper = kernel.sleeper(nice(0), &[0], 2 * MS);
    kernel.run_until(0);
    kernel.hog(nice(0));
    kernel.hog(nice(0));
    kernel.run_until(2 * MS);
    assert!(kernel.core.task(sleeper).sched_delayed, "{rules:?}");
    assert_eq!(kernel.class.h_nr_delayed(CpuId(0)), 1, "{rules:?}");
    (kernel, sleeper)
}

#[test]
fn section_2_5_a_delayed_sleeper_may_be_reniced() {
    for rules in BY_DEADLINE {
        let (mut kernel, sleeper) = with_delayed_sleeper(rules);
        kernel.set_attr(sleeper, nice(5));
        assert!(kernel.core.task(sleeper).sched_delayed, "{rules:?}");
        kernel.run_until(100 * MS);
        assert!(!kernel.core.task(sleeper).on_rq, "{rules:?}");
        assert_eq!(kernel.core.rqs[0].nr_running, 2, "{rules:?}");
        assert_eq!(kernel.class.h_nr_delayed(CpuId(0)), 0, "{rules:?}");
    }
}

#[test]
fn section_2_5_a_delayed_dequeue_can_be_completed_by_force() {
    for rules in BY_DEADLINE {
        let (mut kernel, sleeper) = with_delayed_sleeper(rules);
        let flags = DequeueFlags { special: true, ..DequeueFlags::SLEEP };
        assert!(kernel.class.dequeue_task(&mut kernel.core, CpuId(0), sleeper, flags));
        assert!(kernel.class.vlag(sleeper) <= 0, "{rules:?}");
        assert!(!kernel.class.is_delayed(sleeper), "{rules:?}");
        assert_eq!(kernel.core.rqs[0].nr_running, 2, "{rules:?}");
        assert_eq!(kernel.class.h_nr_delayed(CpuId(0)), 0, "{rules:?}");
    }
}

#[test]
fn section_2_4_yield_forfeits_the_rest_of_the_request_if_eligible() {
    let early = [(Rules::LINUX_6_6, 10), (Rules::LINUX_6_12_0, 10)];
    for (rules, v) in early.into_iter().chain(LATE.map(|rules| (rules, 28))) {
        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.hog(nice(0));
        kernel.hog(nice(0));
        kernel.run_until(0);
        // If the first is not eligible, the second is behind at once: a yield at 0, both at V.
        let origin = kernel.class.vruntime(TaskId(0));
        if v == 10 {
            kernel.run_until(MS);
        }
        kernel.yield_cpu(0);
        let moved = kernel.class.vruntime(TaskId(0)).wrapping_sub(origin);
        assert_eq!(moved, v * 100_000, "{rules:?}");
    }
    // A task ahead of the average has nothing to forfeit.
    for rules in LATE {
        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.hog(nice(0));
        kernel.hog(nice(0));
        kernel.run_until(MS);
        let d = kernel.class.deadline(TaskId(0));
        kernel.yield_cpu(0);
        assert_eq!(kernel.class.deadline(TaskId(0)), d, "{rules:?}");
    }
}

#[test]
fn section_2_4_a_child_gets_half_a_slice_to_its_first_deadline() {
    let early = [(Rules::LINUX_6_6, 3 * MS), (Rules::LINUX_6_12_0, 3 * MS / 2)];
    let late = LATE.map(|rules| (rules, 2_800_000 / 2));
    for (rules, slice) in early.into_iter().chain(late) {
        let mut kernel = Setup::new(rules, 8, 1000).build();
        let parent = kernel.hog(nice(0));
        kernel.run_until(10 * MS);
        let child = kernel.fork(parent, nice(0));
        let (v, d) = (kernel.class.vruntime(child), kernel.class.deadline(child));
        assert_eq!(v, kernel.class.vruntime(parent), "{rules:?}");
        assert_eq!(d.wrapping_sub(v), slice, "{rules:?}");
    }
}

#[test]
fn section_2_11_batch_does_not_preempt_and_idle_is_preempted_at_once() {
    for rules in ALL {
        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.hog(policy(Policy::Idle));
        kernel.sleeper(policy(Policy::Batch), &[2 * MS + 500_000], MS);
        kernel.run_until(5 * MS);
        // Before 6.15 a reschedule is requested, but the protection goes on: the pick returns A.
        let is_early = [Rules::LINUX_6_6, Rules::LINUX_6_12_0].contains(&rules);
        let expected = if is_early { "0A 4B 5A" } else { "0A 2.500000B 3.500000A" };
        assert_eq!(kernel.timeline(), expected, "{rules:?}");

        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.hog(nice(0));
        let short = SchedAttr { slice_ns: Some(100_000), ..policy(Policy::Batch) };
        kernel.sleeper(short, &[2 * MS + 500_000], MS / 2);
        kernel.run_until(2 * MS + 600_000);
        assert_eq!(kernel.timeline(), "0A", "{rules:?}");
    }
}

#[test]
fn section_2_6_custom_slices_are_clamped_and_refused_to_idle_tasks() {
    let mut kernel = Setup::new(Rules::LINUX_6_12, 8, 1000).build();
    let with = |slice, policy| SchedAttr { slice_ns: slice, policy, ..SchedAttr::default() };
    let cases = [
        (with(Some(1), Policy::Normal), 100_000),
        (with(Some(5 * MS), Policy::Batch), 5 * MS),
        (with(Some(1_000 * MS), Policy::Normal), 100 * MS),
        (with(None, Policy::Normal), 2_800_000),
        (with(Some(5 * MS), Policy::Idle), 2_800_000),
    ];
    for (attr, slice) in cases {
        let task = kernel.create(attr);
        assert_eq!(kernel.class.slice(task), slice, "{attr:?}");
    }
}

#[test]
fn long_run_shares_follow_the_weights() {
    for rules in ALL {
        let (nices, weights) = ([-5, 0, 5, 10], [3121u64, 1024, 335, 110]);
        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.record = false;
        for value in nices {
            kernel.hog(nice(value));
        }
        let end = 400_000 * MS;
        kernel.run_until(end);
        let total: u64 = weights.iter().sum();
        for (task, weight) in weights.iter().enumerate() {
            let due = end * weight / total;
            let error = kernel.ran(TaskId(task as u32)).abs_diff(due);
            assert!(error * 1000 < end, "{rules:?} nice {}: {error} ns", nices[task]);
        }
    }
}
