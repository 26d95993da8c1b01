// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run delay: time during which a task was runnable but not on a CPU.
//!
//! The single waits are recorded too. The greatest is the longest time that a task was starved.

use crate::Distribution;
use crate::facts::{OfRun, OfTask};
use crate::measure::{Measure, Unit};
use crate::samples::Samples;
use schedlab_model::Nanos;

/// Of one task.
pub(crate) const OF_TASK: OfTask<u64> = Measure {
    unit: Unit::Ns,
    formula: "sum of the times it was runnable and not on a CPU",
    notes: "a wait starts at release, wake-up, preemption and yield, and ends at switch-in; a \
            wake-up of a task that is still queued restarts nothing",
    source: "Linux kernel/sched/stats.h, `sched_info_enqueue` and `sched_info_arrive`: second \
             number of /proc/PID/schedstat, `cpu_delay_total` of taskstats",
    value: |of| of.account.run_delay.total_ns,
};

/// The single waits of one task.
pub(crate) const WAITS: OfTask<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "each single wait that `run_delay_ns` sums",
    notes: "`wait.ns_max`: the longest it was starved",
    source: OF_TASK.source,
    value: |of| of.account.run_delay.waits.distribution(),
};

/// Of all tasks.
pub(crate) const OF_RUN: OfRun<u64> = Measure {
    unit: Unit::Ns,
    formula: "sum over tasks",
    notes: "",
    source: OF_TASK.source,
    value: |of| of.sum(|task| task.run_delay_ns),
};

/// Over the jobs.
pub(crate) const OVER_JOBS: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over the tasks' `run_delay_ns`",
    notes: "one value a task",
    source: OF_TASK.source,
    value: |of| of.over_jobs(|task| Some(task.run_delay_ns)),
};

/// The single waits of all tasks.
pub(crate) const ALL_WAITS: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over all single waits of all tasks",
    notes: "",
    source: OF_TASK.source,
    value: |of| of.merged(|merged| &merged.run_delays),
};

/// Run delay of one task.
#[derive(Clone, Debug, Default)]
pub struct RunDelay {
    pub(crate) total_ns: Nanos,
    pub(crate) waits: Samples,
}

impl RunDelay {
    /// A wait of this length ended, because the task runs.
    #[inline]
    pub fn wait_ended(&mut self, wait_ns: Nanos) {
        self.total_ns += wait_ns;
        self.waits.record(wait_ns);
    }

    /// The run ended during a wait. Its length counts as delay, but it is not a complete wait.
    pub fn wait_cut_off(&mut self, wait_ns: Nanos) {
        self.total_ns += wait_ns;
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
        assert_eq!((m.totals.run_delay_ns, m.totals.run_delay.ns_mean), (51, Some(17)));
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
        assert_eq!((m.tasks[1].nr_wakeups, m.tasks[0].nr_wakeups), (Some(0), Some(0)));
        // Task 0 waits from 50 until the run ends: delay, but no finished wait.
        assert_eq!((m.tasks[0].run_delay_ns, m.tasks[0].wait.count), (10, Some(1)));
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
        assert_eq!((m.tasks[1].run_delay_ns, m.tasks[1].sleep_ns), (5, Some(11)));
        assert_eq!(m.tasks[0].wait.ns_max, Some(4));
    }
}
