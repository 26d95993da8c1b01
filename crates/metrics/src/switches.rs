// SPDX-License-Identifier: MIT OR Apache-2.0
//! Context switches.
//!
//! A switch from a task is voluntary if the task was no longer runnable (it sleeps, waits for a
//! device, or exited). Otherwise it is involuntary, also after sched_yield. A switch from idle to a
//! task counts for the run, but for no task. Idle to idle does not count.

use crate::facts::{OfRun, OfTask, RunFacts};
use crate::measure::{Measure, Unit};
use schedlab_model::SwitchOut;

const SOURCE: &str = "Linux kernel/sched/core.c, `__schedule` (`switch_count`); getrusage(2)";

/// Voluntary switches of one task.
pub(crate) const VOLUNTARY: OfTask<u64> = Measure {
    unit: Unit::Count,
    formula: "switches out while not runnable (sleeping, blocked-io, exited)",
    notes: "nvcsw of getrusage(2)",
    source: SOURCE,
    value: |of| of.account.switches.voluntary,
};

/// Involuntary switches of one task.
pub(crate) const INVOLUNTARY: OfTask<u64> = Measure {
    unit: Unit::Count,
    formula: "switches out while runnable (preempted, yielded)",
    notes: "nivcsw; sched_yield counts here, as in the kernel",
    source: SOURCE,
    value: |of| of.account.switches.involuntary,
};

/// All switches of a run.
pub(crate) const OF_RUN: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "switches to or from a task",
    notes: "a switch from idle counts here but for no task; without a recorder only the \
            switches out are known",
    source: "Linux kernel/sched/sched.h, `rq->nr_switches`",
    value: |of| {
        let without_trace = voluntary(of) + involuntary(of);
        of.trace.as_ref().map_or(without_trace, |trace| trace.nr_switches)
    },
};

/// Voluntary switches of all tasks.
pub(crate) const VOLUNTARY_OF_RUN: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "sum over tasks",
    notes: "",
    source: SOURCE,
    value: voluntary,
};

/// Involuntary switches of all tasks.
pub(crate) const INVOLUNTARY_OF_RUN: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "sum over tasks",
    notes: "",
    source: SOURCE,
    value: involuntary,
};

fn voluntary(of: &RunFacts<'_>) -> u64 {
    of.sum(|task| task.nr_voluntary_switches)
}

fn involuntary(of: &RunFacts<'_>) -> u64 {
    of.sum(|task| task.nr_involuntary_switches)
}

/// Switches from one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchCounts {
    /// Voluntary switches (nvcsw).
    pub voluntary: u64,
    /// Involuntary switches (nivcsw).
    pub involuntary: u64,
}

impl SwitchCounts {
    /// Counts one switch from the task.
    #[inline]
    pub fn count(&mut self, out: SwitchOut) {
        if out.is_voluntary() {
            self.voluntary += 1;
        } else {
            self.involuntary += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Script, measure, run};
    use schedlab_model::SwitchOut;

    #[test]
    fn kernel_rule() {
        let mut s = Script::new(1);
        let outs = [SwitchOut::Preempted, SwitchOut::Yielded, SwitchOut::Sleeping];
        s.fork(0, 0).switch(0, None, Some(0), SwitchOut::Idle);
        for (i, out) in (1..).zip(outs) {
            s.switch(10 * i, Some(0), None, out);
            if out.is_voluntary() {
                s.wakeup(10 * i + 1, 0);
            }
            s.switch(10 * i + 5, None, Some(0), SwitchOut::Idle);
        }
        s.switch(60, Some(0), None, SwitchOut::BlockedIo).wakeup(61, 0);
        s.switch(62, None, Some(0), SwitchOut::Idle);
        s.exit(70, 0).switch(70, Some(0), None, SwitchOut::Dead).end(70);
        let m = measure(1, &s);
        let task = &m.tasks[0];
        assert_eq!((task.nr_voluntary_switches, task.nr_involuntary_switches), (3, 2));
        // Five switches out and five in.
        assert_eq!(m.totals.nr_switches, 10);
        assert_eq!(m.totals.nr_involuntary_switches, 2);
    }

    /// Round robin, quantum 4, bursts 10 and 10: each task is preempted twice and exits once.
    #[test]
    fn round_robin() {
        let m = measure(1, &run::round_robin(&[10, 10], 4));
        for task in &m.tasks {
            assert_eq!((task.nr_voluntary_switches, task.nr_involuntary_switches), (1, 2));
        }
        assert_eq!(m.totals.nr_switches, 7);
    }
}
