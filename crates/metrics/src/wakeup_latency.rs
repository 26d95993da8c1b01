// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-up latency: from a wake-up until the task runs.
//!
//! The release is not a wake-up (its wait is the response time), and neither is a preemption (its
//! wait is run delay only).

use crate::Distribution;
use crate::facts::{OfRun, OfTask};
use crate::measure::{Measure, Unit};
use crate::samples::Samples;
use schedlab_model::Nanos;

/// Wake-ups of one task.
pub(crate) const WAKEUPS: OfTask<Option<u64>> = Measure {
    unit: Unit::Count,
    formula: "wake-ups from sleep or from a device",
    notes: "not the release; null without a trace",
    source: "sched_wakeup (include/trace/events/sched.h)",
    value: |of| Some(of.account.wakeup_latency.nr_wakeups),
};

/// Of one task.
pub(crate) const OF_TASK: OfTask<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "for each wake-up, (switch-in - wake-up)",
    notes: "",
    source: "cyclictest, schbench, `perf sched latency`",
    value: |of| of.account.wakeup_latency.samples.distribution(),
};

/// Of all tasks.
pub(crate) const OF_RUN: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over all wake-ups of all tasks",
    notes: "",
    source: OF_TASK.source,
    value: |of| of.merged(|merged| &merged.wakeup_latencies),
};

/// Wake-up latency of one task.
#[derive(Clone, Debug, Default)]
pub struct WakeupLatency {
    is_pending: bool,
    pub(crate) nr_wakeups: u64,
    pub(crate) samples: Samples,
}

impl WakeupLatency {
    /// The task has been woken, and its wait has begun.
    #[inline]
    pub fn woken(&mut self) {
        self.is_pending = true;
        self.nr_wakeups += 1;
    }

    /// A wait ended, because the task runs. If a wake-up began it, it is a sample.
    #[inline]
    pub fn wait_ended(&mut self, wait_ns: Nanos) {
        if self.is_pending {
            self.is_pending = false;
            self.samples.record(wait_ns);
        }
    }

    /// The events contradict each other: forgets the wake-up.
    pub fn forget(&mut self) {
        self.is_pending = false;
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
        assert_eq!([task.nr_wakeups, d.count, d.ns_min, d.ns_max], [10, 10, 1, 10].map(Some));
        assert_eq!([d.ns_mean, d.ns_median, d.ns_p95], [6, 5, 10].map(Some));
        assert_eq!(task.run_delay_ns, 3 + 5 + 55);
        assert_eq!(task.wait.count, Some(12));
    }
}
