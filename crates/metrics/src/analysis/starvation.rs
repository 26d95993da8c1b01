// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starvation: waits of runnable tasks that lasted too long, and their causes.
//!
//! Formula: each wait (as in `wait`, or cut off by the end of the run) of at least the threshold.
//! The CPU on which the task waited last decides the cause, by what it did during the wait. Unit:
//! ns.
//!
//! Source: the watchdogs of Linux do the same with longer thresholds: sched_ext (30 s,
//! kernel/sched/ext.c), the hung task detector (120 s, kernel/hung_task.c).

use super::antagonists::Antagonist;
use super::context::Context;
use super::findings::{Findings, Longest, View};
use super::follow::Change;
use super::names::Names;
use crate::life::State;
use serde::{Deserialize, Serialize};

/// A wait at or above the threshold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Starved {
    /// Number of the task.
    pub task: u32,
    /// Process id; null in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name.
    pub name: String,
    /// Start of the wait (ns).
    pub from_ns: u64,
    /// End of the wait: when it got a CPU, or the end of the run (ns).
    pub to_ns: u64,
    /// Length of the wait (ns).
    pub ns: u64,
    /// Whether it still waited at the end of the run.
    pub is_open: bool,
    /// The CPU on which it waited last.
    pub cpu: u32,
    /// What this CPU did for at least half of the wait. `throttled`: a cpu.max limit of the task's
    /// group, or real-time throttling, kept it from running. `higher-class`: tasks of a higher
    /// class or real-time priority ran. `idle`: no task of the run ran. `unknown`: the trace does
    /// not show it. Otherwise `same-class`: tasks of its own class ran.
    pub cause: String,
    /// Tasks that ran there meanwhile, the longest first; at most 5.
    pub ran: Vec<Antagonist>,
    /// How long the CPU was idle meanwhile (ns).
    pub idle_ns: u64,
}

/// Finds the waits.
#[derive(Clone, Debug)]
pub(crate) struct Starvation {
    found: Longest<Starved>,
}

impl Starvation {
    pub fn new(context: &Context) -> Self {
        Self { found: Longest::new(context.thresholds.starved_ns, context) }
    }

    #[inline]
    pub fn change(&mut self, view: View<'_>, change: &Change) {
        let past = change.past;
        if past.state != State::Queued || !past.is_known || past.ns < self.found.threshold_ns() {
            return;
        }
        let (task, cpu, to_ns) = (change.task, change.from, change.now);
        let from_ns = to_ns.saturating_sub(past.ns);
        self.found.add(task, view.names, past.ns, || {
            let seen = view.meanwhile(task, cpu, (from_ns, to_ns));
            Starved {
                task: task.0,
                pid: view.names.pid(task),
                name: view.names.name(task).into(),
                from_ns,
                to_ns,
                ns: past.ns,
                is_open: !change.state.is_runnable(),
                cpu: cpu.0,
                cause: seen.cause(view.is_throttled(task, &seen)).into(),
                ran: seen.ran(view.names),
                idle_ns: seen.idle_ns,
            }
        });
    }

    pub fn finish(self, names: &Names) -> Findings<Starved> {
        self.found.finish(names, |one| one.from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{analyse_with, context};
    use crate::analysis::{GroupFacts, SpecFacts, Thresholds};
    use crate::testing::Script;
    use schedlab_model::{Policy, SwitchOut};

    const LIMITS: Thresholds = Thresholds { starved_ns: 100, wasted_ns: 1_000_000 };

    fn starved(specs: Vec<SpecFacts>, groups: &[GroupFacts], script: &Script) -> Vec<Starved> {
        let groups = [&[GroupFacts::ROOT], groups].concat();
        let context = Context { specs, groups, thresholds: LIMITS, ..context(1) };
        analyse_with(context, script).starved.longest
    }

    /// Task 0 runs 0..150 while task 1 waits. Then task 0 waits for 99, which is too short, and
    /// finally for 140, which the end cuts off.
    fn script() -> Script {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.switch(150, Some(0), Some(1), SwitchOut::Preempted);
        s.switch(249, Some(1), Some(0), SwitchOut::Preempted);
        s.switch(260, Some(0), Some(1), SwitchOut::Preempted).end(400);
        s
    }

    #[test]
    fn waits_from_the_threshold_on_are_listed() {
        let found = starved(vec![SpecFacts::default(); 2], &[], &script());
        let seen: Vec<_> = found
            .iter()
            .map(|s| (s.name.as_str(), s.from_ns, s.to_ns, s.is_open, s.cause.as_str()))
            .collect();
        let want = [("t1", 0, 150, false, "same-class"), ("t0", 260, 400, true, "same-class")];
        assert_eq!(seen, want);
        assert_eq!((found[0].ran[0].name.as_str(), found[0].ran[0].ns), ("t0", 150));
    }

    #[test]
    fn the_cause_is_what_ran() {
        let fifo = SpecFacts { policy: Policy::Fifo, prio: 50, ..SpecFacts::default() };
        let fair = SpecFacts::default();
        let causes = |specs: Vec<SpecFacts>, groups: &[GroupFacts]| -> Vec<String> {
            starved(specs, groups, &script()).into_iter().map(|one| one.cause).collect()
        };
        // A FIFO task runs, then waits for a fair one: only throttling causes that.
        assert_eq!(causes(vec![fifo, fair], &[]), ["higher-class", "throttled"]);
        let limited = GroupFacts { parent: 0, weight: 1024, is_limited: true };
        let nested = GroupFacts { parent: 1, weight: 1024, is_limited: false };
        let inside = SpecFacts { group: 2, ..fair };
        assert_eq!(causes(vec![fair, inside], &[limited, nested]), ["throttled", "same-class"]);
    }

    /// The CPU ran nothing while the task waited.
    #[test]
    fn a_wait_beside_an_idle_cpu() {
        let mut s = Script::new(1);
        s.fork(0, 0).switch(200, None, Some(0), SwitchOut::Idle).end(200);
        let found = starved(vec![SpecFacts::default()], &[], &s);
        assert_eq!((found[0].cause.as_str(), found[0].idle_ns), ("idle", 200));
    }
}
