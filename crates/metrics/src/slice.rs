// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slices: a task's uninterrupted stays on a CPU.
//!
//! Formula: switch-out - switch-in. Unit: ns. A stay that the end of the run cuts off counts as CPU
//! time but is no slice, for its length is not known.
//! Source: what `perf sched timehist` calls "run time"; between two sched_switch events of one CPU.
//! Not: the scheduler's target slice (a quantum), which a stay may exceed or miss.

use crate::samples::Samples;
use schedlab_model::Nanos;

/// Slices and CPU time of one task.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    cpu_time_ns: Nanos,
    samples: Samples,
}

impl Slices {
    /// A stay of this length has ended with a switch-out.
    #[inline]
    pub fn ended(&mut self, stay_ns: Nanos) {
        self.cpu_time_ns += stay_ns;
        self.samples.record(stay_ns);
    }

    /// The run ended during a stay.
    pub fn cut_off(&mut self, stay_ns: Nanos) {
        self.cpu_time_ns += stay_ns;
    }

    /// Time on a CPU.
    pub const fn cpu_time_ns(&self) -> Nanos {
        self.cpu_time_ns
    }

    /// The slices.
    pub const fn samples(&self) -> &Samples {
        &self.samples
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
        assert_eq!((d.count, d.ns_min, d.ns_mean, d.ns_median, d.ns_max), (3, 2, 3, 4, 4));
        assert_eq!(m.totals.slice.count, 6);
        assert_eq!(m.totals.cpu_time_ns, 20);
    }

    #[test]
    fn a_stay_cut_off_by_the_end_is_cpu_time_but_no_slice() {
        let mut s = Script::new(1);
        s.fork(0, 0).switch(0, None, Some(0), SwitchOut::Idle).end(500);
        let m = measure(1, &s);
        assert_eq!((m.tasks[0].cpu_time_ns, m.tasks[0].slice.count), (500, 0));
    }
}
