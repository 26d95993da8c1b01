// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of the kernel: tasks that no workload has and that take CPU time from its tasks.
//!
//! A visit of a few ten microseconds matters more than its length: the scheduler picks again after
//! it, so a task may lose a turn that it would have kept up to a tick.

use crate::Nanos;

/// A thread of the kernel, bound to the first CPU, with the default policy and nice value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelThread {
    /// Its name, such as `kcompactd0`.
    pub name: String,
    /// When it wakes.
    pub wakes: ThreadWakes,
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
    /// After a task has exited: at the next ticks, as RCU's thread does for a grace period
    /// (kernel/rcu/tree.c). An exit during these visits is served by further ones.
    AfterExit {
        /// Number of visits, >= 1, each at a tick.
        ticks: u32,
    },
}

/// Least period of a thread (ns).
pub const THREAD_PERIOD_NS_MIN: Nanos = 100_000;

impl KernelThread {
    /// Checks that the thread leaves time for tasks.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = |text: String| Err(format!("thread {:?}: {text}", self.name));
        if self.run_ns == 0 {
            return wrong("`run_ns` is 0: allowed is 1 and more".into());
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
            ThreadWakes::AfterExit { ticks: 0 } => wrong("it makes no visit".into()),
            _ => Ok(()),
        }
    }
}
