// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slices: a task's uninterrupted stays on a CPU.
//!
//! A slice is not the scheduler's quantum: it may be longer or shorter. A stay that the end of the
//! run cuts off is CPU time but not a slice, because its length is unknown.

use crate::Distribution;
use crate::facts::{OfRun, OfTask, RunFacts};
use crate::measure::{Measure, Unit};
use crate::samples::Samples;
use schedlab_model::Nanos;

/// CPU time of one task.
pub(crate) const CPU_TIME: OfTask<u64> = Measure {
    unit: Unit::Ns,
    formula: "total time on CPUs",
    notes: "host: wall time on the CPU; the kernel's own figure (first number of schedstat) leaves \
            out time stolen by a hypervisor or by interrupts, where it accounts them",
    source: "between two sched_switch events of one CPU",
    value: |of| of.account.slices.cpu_time_ns,
};

/// Slices of one task.
pub(crate) const OF_TASK: OfTask<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "each stay on a CPU that ended",
    notes: "a stay cut off by the end of the run is in `cpu_time_ns` only",
    source: "\"run time\" of `perf sched timehist`",
    value: |of| of.account.slices.samples.distribution(),
};

/// CPU time of all tasks.
pub(crate) const CPU_TIME_OF_RUN: OfRun<u64> = Measure {
    unit: Unit::Ns,
    formula: "sum over tasks",
    notes: "",
    source: CPU_TIME.source,
    value: cpu_time_ns,
};

/// Slices of all tasks.
pub(crate) const OF_RUN: OfRun<Distribution> = Measure {
    unit: Unit::Distribution,
    formula: "over all slices of all tasks",
    notes: "",
    source: OF_TASK.source,
    value: |of| of.merged(|merged| &merged.slices),
};

/// CPU time of all tasks.
pub(crate) fn cpu_time_ns(of: &RunFacts<'_>) -> Nanos {
    of.sum(|task| task.cpu_time_ns)
}

/// Slices and CPU time of one task.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    pub(crate) cpu_time_ns: Nanos,
    pub(crate) samples: Samples,
}

impl Slices {
    /// A slice of this length ended with a switch.
    #[inline]
    pub fn ended(&mut self, stay_ns: Nanos) {
        self.cpu_time_ns += stay_ns;
        self.samples.record(stay_ns);
    }

    /// The run ended during a stay on a CPU.
    pub fn cut_off(&mut self, stay_ns: Nanos) {
        self.cpu_time_ns += stay_ns;
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure, run};
    use schedlab_model::SwitchOut;

    /// Round robin, quantum 4, bursts 10 and 10: slices 4, 4, 2 each.
    #[test]
    fn round_robin_slices() {
        let m = measure(1, &run::round_robin(&[10, 10], 4));
        let d = m.tasks[0].slice;
        assert_eq!(
            [d.count, d.ns_min, d.ns_mean, d.ns_median, d.ns_max],
            [3, 2, 3, 4, 4].map(Some)
        );
        assert_eq!(m.totals.slice.count, Some(6));
        assert_eq!(m.totals.cpu_time_ns, 20);
    }

    #[test]
    fn a_stay_cut_off_by_the_end_is_cpu_time_but_no_slice() {
        let mut s = Script::new(1);
        s.fork(0, 0).switch(0, None, Some(0), SwitchOut::Idle).end(500);
        let m = measure(1, &s);
        assert_eq!((m.tasks[0].cpu_time_ns, m.tasks[0].slice.count), (500, Some(0)));
    }
}
