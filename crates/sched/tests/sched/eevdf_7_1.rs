// SPDX-License-Identifier: MIT OR Apache-2.0
//! Visible differences between EEVDF of Linux 7.1 and that of 6.18: new tasks, nice values with
//! inexact inverse weights, changes of a running task.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, nice};
use schedlab_model::SchedAttr;
use schedlab_sched::fair::rules::Rules;

/// Eight CPUs' tunables and a tick of 1 ms.
fn kernel(rules: Rules) -> Kernel {
    Setup::new(rules, 8, 1000).build()
}

fn sliced(slice_ns: u64) -> SchedAttr {
    SchedAttr { slice_ns: Some(slice_ns), ..nice(0) }
}

/// The parent has run past its protection, and the child's deadline is earlier than its own.
#[test]
fn section_2_8_a_new_task_does_not_preempt_its_parent() {
    for (rules, expected) in [(Rules::LINUX_6_18, "0A 10B"), (Rules::LINUX_7_1, "0A 11B")] {
        let mut kernel = kernel(rules);
        let parent = kernel.hog(nice(0));
        kernel.run_until(10 * MS);
        let child = kernel.fork(parent, nice(0));
        let (first, second) = (kernel.class.deadline(parent), kernel.class.deadline(child));
        assert_eq!(first.wrapping_sub(second), 400_000, "{rules:?}");
        kernel.run_until(11 * MS);
        assert_eq!(kernel.timeline(), expected, "{rules:?}");
    }
}

#[test]
fn section_2_8_a_new_task_with_a_shorter_slice_does() {
    let mut kernel = kernel(Rules::LINUX_7_1);
    let parent = kernel.hog(nice(0));
    kernel.run_until(10 * MS);
    kernel.fork(parent, sliced(MS));
    assert_eq!(kernel.timeline(), "0A 10B");
}

/// Nice 19 in ticks of 3 ms: by the inverse weight each is 204,799,999 ns of virtual time.
#[test]
fn section_1_2_virtual_time_is_exact() {
    for (rules, v) in [(Rules::LINUX_6_18, 204_799_999), (Rules::LINUX_7_1, 204_800_000)] {
        let mut kernel = Setup::new(rules, 8, 1000).build();
        kernel.core.tick_nsec = 3 * MS;
        let hog = kernel.hog(nice(19));
        kernel.run_until(0);
        let origin = kernel.class.vruntime(hog);
        kernel.run_until(31 * MS);
        // The first tick is at 1 ms.
        let ran = 68_266_666 + 10 * v;
        assert_eq!(kernel.class.vruntime(hog).wrapping_sub(origin), ran, "{rules:?}");
    }
}

/// Only a pick starts a protection. In 6.18 a change of the running task's attributes does too.
#[test]
fn section_2_8_a_change_of_attributes_does_not_protect_anew() {
    for (rules, expected) in [(Rules::LINUX_6_18, "0A 5B"), (Rules::LINUX_7_1, "0A 3B")] {
        let mut kernel = kernel(rules);
        let first = kernel.hog(sliced(7 * MS));
        // Its slice of 3 ms is the shortest, its deadline the later one.
        kernel.hog(SchedAttr { nice: 5, ..sliced(3 * MS) });
        kernel.run_until(MS + 500_000);
        kernel.set_attr(first, sliced(7 * MS));
        kernel.run_until(5 * MS);
        assert_eq!(kernel.timeline(), expected, "{rules:?}");
    }
}
