// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each CPU did: busy, idle, or unknown.
//!
//! Formula: from one switch on a CPU to the next it is busy, if the first was to a task, or else
//! idle. Three times are unknown: before the first switch; from lost events on that CPU until its
//! next switch; and before a switch whose `prev` is not the task last switched to. Busy, idle and
//! unknown add up to the length of the trace. Unit: ns. Source: sched_switch
//! (include/trace/events/sched.h); `perf sched map` draws the same. This is not the load of the
//! machine if only some tasks are traced: idle then means "no task of the run".

use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{Found, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, TaskId, TraceSink};
use serde::{Deserialize, Serialize};

/// Measures of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuMeasures {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time during which it ran a task (ns).
    pub busy_ns: u64,
    /// Time during which it ran no task (ns).
    pub idle_ns: u64,
    /// Time for which no event tells what it did (ns).
    pub unknown_ns: u64,
    /// Switches to or from a task.
    pub nr_switches: u64,
    /// Tasks placed on it by a wake-up.
    pub nr_wakeups: u64,
    /// New tasks placed on it.
    pub nr_forks: u64,
    /// Tasks that migrated to it from another CPU.
    pub nr_migrations_in: u64,
    /// Lower bound of the number of missing switches.
    pub nr_missing_switches: u64,
    /// Events lost on it, as counted by the recorder.
    pub nr_lost_events: u64,
}

/// What a CPU does now, and since when.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    /// `None`: unknown.
    runs: Option<Option<TaskId>>,
    since_ns: Nanos,
}

/// A sink that measures CPUs.
#[derive(Clone, Debug, Default)]
pub struct CpuUse {
    cpus: Vec<(CpuMeasures, Now)>,
    last_ns: Nanos,
}

impl CpuUse {
    /// Returns the measures of CPUs 0 to `nr_cpus` - 1, and of every other CPU that had an event.
    /// Call it after `end`.
    pub fn finish(mut self, nr_cpus: u32) -> Vec<CpuMeasures> {
        let wanted = (nr_cpus as usize).clamp(self.cpus.len(), NR_CPUS_MAX);
        self.cpus.resize(wanted, Default::default());
        let end_ns = self.last_ns;
        for (cpu, now) in &mut self.cpus {
            book(cpu, now, end_ns);
            let parts = cpu.busy_ns + cpu.idle_ns + cpu.unknown_ns;
            assert_eq!(parts, end_ns, "the parts of a trace of {end_ns} ns are {cpu:?}");
        }
        (0..).zip(self.cpus).map(|(number, (cpu, _))| CpuMeasures { cpu: number, ..cpu }).collect()
    }

    fn slot(&mut self, cpu: usize) -> Option<&mut (CpuMeasures, Now)> {
        if cpu >= self.cpus.len() && cpu < NR_CPUS_MAX {
            self.cpus.resize(cpu + 1, Default::default());
        }
        self.cpus.get_mut(cpu)
    }
}

/// Adds the interval that ends at `time_ns`.
fn book(cpu: &mut CpuMeasures, now: &mut Now, time_ns: Nanos) {
    let interval = time_ns.saturating_sub(now.since_ns);
    match now.runs {
        Some(Some(_)) => cpu.busy_ns += interval,
        Some(None) => cpu.idle_ns += interval,
        None => cpu.unknown_ns += interval,
    }
    now.since_ns = now.since_ns.max(time_ns);
}

impl TraceSink for CpuUse {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    fn found(&mut self, found: Found) {
        if let Found::Runs { cpu, task } = found
            && let Some((_, now)) = self.slot(cpu.index())
        {
            now.runs = Some(task);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        self.last_ns = self.last_ns.max(event.time_ns);
        let Some((cpu, now)) = self.slot(event.cpu.index()) else { return };
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                if now.runs.is_some_and(|runs| runs != prev) {
                    cpu.nr_missing_switches += 1;
                    now.runs = None;
                }
                book(cpu, now, event.time_ns);
                now.runs = Some(next);
                cpu.nr_switches += u64::from(prev.is_some() || next.is_some());
            }
            EventKind::Lost { count } if count > 0 => {
                book(cpu, now, event.time_ns);
                now.runs = None;
                cpu.nr_lost_events += u64::from(count);
            }
            EventKind::Wakeup { .. } => cpu.nr_wakeups += 1,
            EventKind::Fork { .. } => cpu.nr_forks += 1,
            EventKind::Migrate { .. } => cpu.nr_migrations_in += 1,
            _ => {}
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.last_ns = self.last_ns.max(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Script;
    use schedlab_model::SwitchOut;

    #[test]
    fn every_moment_is_booked_once() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1);
        s.switch(10, None, Some(0), SwitchOut::Idle).switch(30, Some(0), None, SwitchOut::Sleeping);
        // CPU 2: a switch is missing between 20 and 50; events are lost from 60 on.
        s.switch_on(2, 20, None, Some(1), SwitchOut::Idle);
        s.switch_on(2, 50, Some(0), Some(1), SwitchOut::Preempted);
        s.on(60, 2, EventKind::Lost { count: 3 });
        s.switch_on(2, 90, Some(1), None, SwitchOut::Sleeping).end(100);
        let mut sink = CpuUse::default();
        s.play(&mut sink);
        let cpus = sink.finish(4);
        let times: Vec<_> = cpus.iter().map(|c| (c.busy_ns, c.idle_ns, c.unknown_ns)).collect();
        assert_eq!(times, [(20, 70, 10), (0, 0, 100), (10, 10, 80), (0, 0, 100)]);
        assert_eq!((cpus[0].nr_switches, cpus[0].nr_forks, cpus[2].nr_switches), (2, 2, 3));
        assert_eq!((cpus[2].nr_missing_switches, cpus[2].nr_lost_events), (1, 3));
        assert_eq!(cpus[3].cpu, 3);
    }
}
