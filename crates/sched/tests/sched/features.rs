// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features of the fair class (kernel/sched/features.h). Each is turned over in a case that it
//! decides: picks and slices on one CPU.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, nice};
use schedlab_model::{CgroupId, Policy, SchedAttr};
use schedlab_sched::fair::rules::Rules;

/// One CPU at HZ 1000 with the tunables of `scaling_cpus` and these features.
fn setup(rules: Rules, scaling_cpus: u64, set: &[(&'static str, u64)]) -> Setup {
    Setup { set: set.to_vec(), ..Setup::new(rules, scaling_cpus, 1000) }
}

fn timeline(mut kernel: Kernel, until_ms: u64) -> String {
    kernel.run_until(until_ms * MS);
    kernel.timeline()
}

/// A task with a request of 20 ms wakes next to two hogs with requests of 0.7 ms: its deadline is
/// the latest. As a buddy it runs at the next pick; 7.1 picks at its wake-up.
#[test]
fn next_buddy_runs_what_woke_last_eevdf() {
    let off = "0A 1B 2A 3B 4A 5B 6C 7A 8B";
    let next_pick = "0A 1B 2A 3B 4A 5C 6B 7A 8B";
    for (rules, off, on) in [
        (Rules::LINUX_6_6, "0A 1B 3A 5B 6C 7A 8B", "0A 1B 3A 5C 6B 8A"),
        (Rules::LINUX_6_12_0, off, next_pick),
        (Rules::LINUX_6_12, off, next_pick),
        (Rules::LINUX_6_18, off, next_pick),
        (Rules::LINUX_7_1, off, "0A 1B 2A 3B 4A 4.500000C 5.500000B 7A 8B"),
    ] {
        for (value, expected) in [(0, off), (1, on)] {
            let mut kernel = setup(rules, 1, &[("NEXT_BUDDY", value)]).build();
            kernel.hog(nice(0));
            kernel.hog(nice(0));
            let long = SchedAttr { slice_ns: Some(20 * MS), ..nice(0) };
            kernel.sleeper(long, &[4_500_000], MS);
            assert_eq!(timeline(kernel, 8), expected, "{rules:?} {value}");
        }
    }
}

/// CFS makes buddies only on crowded queues (eight tasks), batch tasks included. The last one (J,
/// or G of seven) wakes at 0 and at 7.5 ms for half a millisecond.
#[test]
fn next_buddy_runs_what_woke_last_cfs() {
    for (hogs, value, expected) in [
        (9, 0, "0A 1B 2C 3D 4E 5F 6G 7H 8I 9J 9.500000A"),
        (9, 1, "0A 1J 1.500000B 3C 4D 5E 6F 7G 8J 8.500000H 10I"),
        (6, 0, "0A 1B 2C 3D 4E 5F 6G 6.500000A 8G 8.500000B 10C"),
        (6, 1, "0A 1B 2C 3D 4E 5F 6G 6.500000A 8G 8.500000B 10C"),
    ] {
        let mut kernel = setup(Rules::LINUX_6_1, 1, &[("NEXT_BUDDY", value)]).build();
        for _ in 0..hogs {
            kernel.hog(nice(0));
        }
        let batch = SchedAttr { policy: Policy::Batch, ..nice(0) };
        kernel.sleeper(batch, &[0, 7_500_000], MS / 2);
        assert_eq!(timeline(kernel, 10), expected, "{hogs} hogs {value}");
    }
}

/// Two hogs of a group with a weight of 10,000 next to eight others. The period is that of ten
/// tasks, 7.5 ms, or that of the two, 6 ms. Half of 93 % of it ends at the next tick, after 4 or 3
/// ms.
#[test]
fn alt_period_counts_all_tasks_of_the_cpu() {
    for (value, expected) in
        [(1, "0A 4C 5D 6E 7F 8G 9H 10I 11J 12B 16A"), (0, "0A 3C 4D 5E 6F 7G 8H 9I 10J 11B 14A")]
    {
        let mut setup = setup(Rules::LINUX_6_1, 1, &[("ALT_PERIOD", value)]);
        let group = setup.group(CgroupId(0), 10_000);
        let mut kernel = setup.build();
        for _ in 0..2 {
            kernel.hog(SchedAttr { cgroup: group, ..nice(0) });
        }
        for _ in 0..8 {
            kernel.hog(nice(0));
        }
        let until = if value == 1 { 16 } else { 14 };
        assert_eq!(timeline(kernel, until), expected, "{value}");
    }
}

/// Nice 15 next to nice 0: 24 ms times 36 / 1,060 are 0.8 ms, the least granularity 3 ms.
#[test]
fn base_slice_bounds_slices_from_below() {
    for (value, expected) in [(1, "0A 24B 27A"), (0, "0A 24B 25A 49B 50A")] {
        let mut kernel = setup(Rules::LINUX_6_1, 8, &[("BASE_SLICE", value)]).build();
        kernel.hog(nice(0));
        kernel.hog(nice(15));
        assert_eq!(timeline(kernel, 60), expected, "{value}");
    }
}

/// A sleeper that stayed queued wakes half a millisecond after the average has passed it. It keeps
/// that lag only without the feature.
#[test]
fn delay_zero_takes_positive_lag_from_who_stayed_queued() {
    for rules in [Rules::LINUX_6_12_0, Rules::LINUX_6_12, Rules::LINUX_6_18, Rules::LINUX_7_1] {
        for value in [1, 0] {
            let mut kernel = setup(rules, 8, &[("DELAY_ZERO", value)]).build();
            let sleeper = kernel.sleeper(nice(0), &[0, 7 * MS + 500_000], 2 * MS);
            kernel.run_until(0);
            kernel.hog(nice(0));
            kernel.hog(nice(0));
            kernel.run_until(7 * MS);
            assert!(kernel.core.task(sleeper).sched_delayed, "{rules:?}");
            let before = kernel.class.vruntime(sleeper);
            kernel.run_until(7 * MS + 500_000);
            assert!(!kernel.core.task(sleeper).sched_delayed, "{rules:?}");
            let forward = kernel.class.vruntime(sleeper).wrapping_sub(before);
            assert_eq!(forward, value * 500_000, "{rules:?} {value}");
        }
    }
}
