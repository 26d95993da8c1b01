// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-up latency: from a wake-up until the task runs.
//!
//! Formula: for each wake-up of a sleeping or blocked task, (next switch-in - wake-up). Unit: ns.
//! Source: what cyclictest, schbench and `perf sched latency` measure; between the kernel's
//! tracepoints sched_wakeup and sched_switch (include/trace/events/sched.h).
//! Not: the release (that is the response time), nor a wait after preemption (that is run delay
//! only).

use crate::samples::Samples;
use schedlab_model::Nanos;

/// Wake-up latency of one task.
#[derive(Clone, Debug, Default)]
pub struct WakeupLatency {
    is_pending: bool,
    nr_wakeups: u64,
    samples: Samples,
}

impl WakeupLatency {
    /// The task has been woken; its wait has just begun.
    #[inline]
    pub fn woken(&mut self) {
        self.is_pending = true;
        self.nr_wakeups += 1;
    }

    /// A wait has ended with a switch-in; if a wake-up began it, it is a sample.
    #[inline]
    pub fn wait_ended(&mut self, wait_ns: Nanos) {
        if self.is_pending {
            self.is_pending = false;
            self.samples.record(wait_ns);
        }
    }

    /// What was seen so far does not hold together: forget the wake-up.
    pub fn forget(&mut self) {
        self.is_pending = false;
    }

    /// Wake-ups from sleep or from a device.
    pub const fn nr_wakeups(&self) -> u64 {
        self.nr_wakeups
    }

    /// The latencies.
    pub const fn samples(&self) -> &Samples {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure};
    use schedlab_model::SwitchOut;

    /// Latencies 1, 2, ... 10: known percentiles; neither the release nor a preemption is a sample.
    #[test]
    fn counts_wakeups_only() {
        let mut s = Script::new(1);
        s.fork(0, 0).switch(3, None, Some(0), SwitchOut::Idle);
        s.switch(4, Some(0), None, SwitchOut::Preempted);
        s.switch(9, None, Some(0), SwitchOut::Idle);
        for round in 1..=10 {
            let at = 1_000 * round;
            s.switch(at, Some(0), None, SwitchOut::Sleeping).wakeup(at + 500, 0);
            s.switch(at + 500 + round, None, Some(0), SwitchOut::Idle);
        }
        s.end(20_000);
        let task = &measure(1, &s).tasks[0];
        let d = task.wakeup_latency;
        assert_eq!((task.nr_wakeups, d.count, d.ns_min, d.ns_max), (10, 10, 1, 10));
        assert_eq!((d.ns_mean, d.ns_median, d.ns_p95), (6, 5, 10));
        assert_eq!(task.run_delay_ns, 3 + 5 + 55);
        assert_eq!(task.wait.count, 12);
    }
}
