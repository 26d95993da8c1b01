// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run delay: time a task was runnable but not on a CPU.
//!
//! Formula: the sum, over every wait, of (switch-in - start of the wait). A wait starts at the
//! release, at a wake-up from sleep, and at a switch-out in state R (preempted or yielded). A
//! wake-up of a task that is still queued or running starts nothing. Unit: ns.
//! Source: Linux kernel/sched/stats.h, `sched_info_enqueue` / `sched_info_arrive`; it is the second
//! number of /proc/PID/schedstat and `cpu_delay_total` of taskstats.
//! The single waits are kept too: their greatest is the longest a task was starved.

use crate::samples::Samples;
use schedlab_model::Nanos;

/// Run delay of one task.
#[derive(Clone, Debug, Default)]
pub struct RunDelay {
    total_ns: Nanos,
    waits: Samples,
}

impl RunDelay {
    /// A wait of this length has ended with a switch-in.
    #[inline]
    pub fn wait_ended(&mut self, wait_ns: Nanos) {
        self.total_ns += wait_ns;
        self.waits.record(wait_ns);
    }

    /// The run ended during a wait: its length counts as delay, but it is no whole wait.
    pub fn wait_cut_off(&mut self, wait_ns: Nanos) {
        self.total_ns += wait_ns;
    }

    /// Sum of all waits.
    pub const fn total_ns(&self) -> Nanos {
        self.total_ns
    }

    /// The single waits.
    pub const fn waits(&self) -> &Samples {
        &self.waits
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure, run};
    use schedlab_model::SwitchOut;

    /// FCFS: waiting times 0, 24, 27, mean 17 (Silberschatz).
    #[test]
    fn fcfs_textbook_example() {
        let m = measure(1, &run::fcfs(&[24, 3, 3]));
        let delays: Vec<_> = m.tasks.iter().map(|task| task.run_delay_ns).collect();
        assert_eq!(delays, [0, 24, 27]);
        assert_eq!((m.totals.run_delay_ns, m.totals.run_delay.ns_mean), (51, 17));
    }

    /// Round robin, quantum 4, bursts 24, 3, 3: waits 6, 4, 7, mean 17/3 (Silberschatz).
    #[test]
    fn round_robin_textbook_example() {
        let m = measure(1, &run::round_robin(&[24, 3, 3], 4));
        let delays: Vec<_> = m.tasks.iter().map(|task| task.run_delay_ns).collect();
        assert_eq!(delays, [6, 4, 7]);
    }

    /// A second wake-up of a queued task must not restart its wait; nor must one of a running task.
    #[test]
    fn a_wakeup_of_a_queued_task_does_not_restart_the_wait() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.wakeup(30, 1).wakeup(40, 0);
        s.switch(50, Some(0), Some(1), SwitchOut::Preempted).end(60);
        let m = measure(1, &s);
        assert_eq!(m.tasks[1].run_delay_ns, 50);
        assert_eq!((m.tasks[1].nr_wakeups, m.tasks[0].nr_wakeups), (0, 0));
        // Task 0 waits from 50 until the run ends: delay, but no finished wait.
        assert_eq!((m.tasks[0].run_delay_ns, m.tasks[0].wait.count), (10, 1));
    }

    /// sched_yield leaves the task runnable: a wait starts.
    #[test]
    fn a_yield_starts_a_wait() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.switch(5, Some(0), Some(1), SwitchOut::Yielded);
        s.switch(9, Some(1), Some(0), SwitchOut::Sleeping).end(20);
        let m = measure(1, &s);
        assert_eq!(m.tasks[0].run_delay_ns, 4);
        assert_eq!((m.tasks[1].run_delay_ns, m.tasks[1].sleep_ns), (5, 11));
        assert_eq!(m.tasks[0].wait.ns_max, 4);
    }
}
