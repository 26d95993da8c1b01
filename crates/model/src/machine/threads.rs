// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of the kernel: tasks that no workload has and that take CPU time from its tasks.
//!
//! A visit of a few ten microseconds matters more than its length: the scheduler picks again after
//! it, so a task may lose a turn that it would have kept up to a tick.

use crate::Nanos;

/// A thread of the kernel, which may use every CPU.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelThread {
    /// Its name, such as `kcompactd0`.
    pub name: String,
    /// When it wakes.
    pub wakes: ThreadWakes,
    /// Its priority (1 to 99) with the policy SCHED_FIFO; 0: the default policy and nice value.
    pub rt_priority: u8,
    /// CPU time of a visit (ns), >= 1, in addition to the switches.
    pub run_ns: Nanos,
}

/// When a thread of the kernel wakes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadWakes {
    /// At equal distances.
    Periodic {
        /// For the first time (ns).
        first_ns: Nanos,
        /// From one visit to the next (ns), >= [`THREAD_PERIOD_NS_MIN`].
        period_ns: Nanos,
    },
    /// Once, exactly then: no timer delays it.
    Once {
        /// The time (ns).
        at_ns: Nanos,
    },
    /// After a task has exited: at the next ticks, as RCU's thread does for a grace period
    /// (kernel/rcu/tree.c). An exit during these visits is served by further ones.
    AfterExit {
        /// Number of visits, >= 1, each at a tick.
        ticks: u32,
        /// The end (ns) of a fork. A task that is preempted before it, copying its memory, holds
        /// a lock of RCU's readers: the thread comes again when that task has gone on. `None`: no
        /// fork delays a grace period.
        fork_unlocked_ns: Option<Nanos>,
    },
    /// When a control group gets its first task, or has lost its last one (`cgroup_file_notify`): a
    /// worker tells who watches the group's cgroup.events. It wakes at once, but at the tick after
    /// 10 ms if it has been told of the same group within them.
    AtPopulated,
    /// When a task exits that the launcher of the run waits for: the first one, in the order in
    /// which they were made, that has not exited. It waits for an endless one if there is one.
    AtAwaitedExit,
    /// When the kernel checks for tasks that a scheduler for sched_ext lets wait too long: twice in
    /// each timeout.
    AtChecks {
        /// From the last check before the run to time 0 (ns).
        after_ns: Nanos,
    },
}

/// Highest priority of a thread.
const RT_PRIORITY_MAX: u8 = 99;

/// Least period of a thread (ns).
pub const THREAD_PERIOD_NS_MIN: Nanos = 100_000;

impl KernelThread {
    /// Checks that the thread leaves time for tasks.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = |text: String| Err(format!("thread {:?}: {text}", self.name));
        if self.run_ns == 0 {
            return wrong("`run_ns` is 0: allowed is 1 and more".into());
        }
        if self.rt_priority > RT_PRIORITY_MAX {
            let given = self.rt_priority;
            return wrong(format!("`rt_priority` is {given}: allowed is 0 to {RT_PRIORITY_MAX}"));
        }
        match self.wakes {
            ThreadWakes::Periodic { period_ns, .. }
                if period_ns < THREAD_PERIOD_NS_MIN || self.run_ns > period_ns / 2 =>
            {
                wrong(format!(
                    "it runs {} ns of every {period_ns} ns: give it a period of at least \
                     {THREAD_PERIOD_NS_MIN} ns, and at most half of it to run",
                    self.run_ns
                ))
            }
            ThreadWakes::AfterExit { ticks: 0, .. } => wrong("it makes no visit".into()),
            _ => Ok(()),
        }
    }
}
