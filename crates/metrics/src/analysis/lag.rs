// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lag against ideal fair sharing: how much less CPU time a task got than its weight entitles it
//! to.
//!
//! Formula: lag(t) = S(t0, t) - s(t0, t). t0 is the moment when the task became runnable (release
//! or wake-up; a preemption does not restart it). s is the time that it ran since then. S is its
//! service since then on the ideal machine ([`super::fluid`]), which at each moment serves the
//! tasks that are runnable on the real one. A positive lag means that the task is behind. Unit: ns.
//!
//! Between two switches of a task, its lag only rises (it waits) or only falls (it runs). So its
//! extremes are at its own switches and at the end of the run, and are exact. The mean is that of
//! |lag| over these moments, not over time.
//!
//! Source: I. Stoica, H. Abdel-Wahab, K. Jeffay and others, A Proportional Share Resource
//! Allocation Algorithm for Real-Time, Time-Shared Systems, RTSS 1996, equation 3.
//!
//! Weights are the initial ones: nice, SCHED_IDLE (3), cpu.weight. Real-time tasks count as fair
//! tasks of their nice value: their lag shows what their policy takes from the others.
//!
//! Affinity: CPUs that no task's affinity connects are separate machines. If affinities overlap,
//! the ideal machine shares all the CPUs that they connect among all their tasks.
//!
//! Left out: cpu.max, different speeds of CPUs, changes that a task makes to its attributes while
//! it runs.

use super::context::Context;
use super::fluid::Fluid;
use super::follow::Change;
use crate::life::State;
use schedlab_model::{CpuMask, Nanos, TaskId};
use serde::{Deserialize, Serialize};

/// Lag of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lag {
    /// The furthest that it was behind (ns).
    pub behind_ns_max: u64,
    /// When that was.
    pub behind_at_ns: u64,
    /// The furthest that it was ahead (ns).
    pub ahead_ns_max: u64,
    /// When that was.
    pub ahead_at_ns: u64,
    /// Mean of the lag's absolute value over the task's switches and the end of the run.
    pub abs_ns_mean: u64,
    /// Number of moments at which the lag was computed.
    pub count: u64,
}

#[derive(Clone, Debug, Default)]
struct Task {
    domain: usize,
    group: u32,
    class: usize,
    is_active: bool,
    /// The class's service when the task became runnable.
    base: u128,
    got_ns: Nanos,
    lag: Lag,
    abs_sum: u128,
}

impl Task {
    fn sample(&mut self, now: Nanos, served: u128) {
        let due_ns = Fluid::whole_ns(served.saturating_sub(self.base));
        let (behind, ahead) =
            (due_ns.saturating_sub(self.got_ns), self.got_ns.saturating_sub(due_ns));
        let lag = &mut self.lag;
        if behind > lag.behind_ns_max {
            (lag.behind_ns_max, lag.behind_at_ns) = (behind, now);
        }
        if ahead > lag.ahead_ns_max {
            (lag.ahead_ns_max, lag.ahead_at_ns) = (ahead, now);
        }
        self.abs_sum += u128::from(behind + ahead);
        lag.count += 1;
    }
}

/// The lag of every task.
#[derive(Clone, Debug)]
pub(crate) struct Lags {
    domains: Vec<(CpuMask, Fluid)>,
    tasks: Vec<Task>,
}

impl Lags {
    /// `None` if the CPUs are unknown.
    pub fn new(context: &Context) -> Option<Self> {
        if context.cpus.is_empty() {
            return None;
        }
        let specs = context.specs.iter();
        let all = if context.specs.is_empty() { Some(&context.other) } else { None };
        let mut masks: Vec<CpuMask> = Vec::new();
        for spec in specs.chain(all) {
            let mut mask = spec.cpus.unwrap_or(context.cpus);
            masks.retain(|other| {
                let is_apart = !other.intersects(&mask);
                if !is_apart {
                    mask = mask.or(other);
                }
                is_apart
            });
            masks.push(mask);
        }
        let fluid = |mask: CpuMask| (mask, Fluid::new(mask.weight(), &context.groups));
        Some(Self { domains: masks.into_iter().map(fluid).collect(), tasks: Vec::new() })
    }

    pub fn task(&mut self, context: &Context, spec: Option<u32>) {
        let facts = context.spec(spec);
        let cpus = facts.cpus.unwrap_or(context.cpus);
        let domain = self.domains.iter().position(|(mask, _)| mask.intersects(&cpus));
        let domain = domain.unwrap_or(0);
        let class = self.domains[domain].1.class(facts.group, facts.weight);
        self.tasks.push(Task { domain, group: facts.group, class, ..Task::default() });
    }

    #[inline]
    pub fn change(&mut self, change: &Change) {
        let Some(task) = self.tasks.get_mut(change.task.index()) else { return };
        let fluid = &mut self.domains[task.domain].1;
        let (now, is_runnable) = (change.now, change.state.is_runnable());
        if task.is_active {
            if matches!(change.past.state, State::Running(_)) {
                task.got_ns += change.past.ns;
            }
            if change.past.is_known {
                let served = fluid.served(now, task.class);
                task.sample(now, served);
            }
        }
        // After a gap in the trace the lag is unknown, so it restarts.
        let begins = is_runnable && (!task.is_active || !change.past.is_known);
        if task.is_active != is_runnable {
            fluid.set_active(now, task.group, task.class, is_runnable);
            task.is_active = is_runnable;
        }
        if begins {
            (task.base, task.got_ns) = (fluid.served(now, task.class), 0);
        }
    }

    /// The lag of a task.
    pub fn of(&self, id: TaskId) -> Option<Lag> {
        let task = self.tasks.get(id.index())?;
        let abs_ns_mean = task.abs_sum.checked_div(u128::from(task.lag.count)).unwrap_or(0) as u64;
        Some(Lag { abs_ns_mean, ..task.lag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{analyse, analyse_with, context};
    use crate::analysis::{Analysis, SpecFacts};
    use crate::testing::{Script, run};
    use schedlab_model::{CpuId, SwitchOut};

    fn of(analysis: &Analysis) -> Vec<(u64, u64, u64, u64, u64)> {
        let lags = analysis.tasks.iter().map(|task| task.lag.expect("a lag"));
        lags.map(|l| {
            (l.behind_ns_max, l.behind_at_ns, l.ahead_ns_max, l.ahead_at_ns, l.abs_ns_mean)
        })
        .collect()
    }

    /// Two tasks of 20, quantum 10. Task 0: 0 at 0; 10 - 5 = 5 ahead at 10; 0 at 20; 5 ahead at 30,
    /// where it ends. Task 1 waits: 5 behind at 10; 0 at 20; 5 behind at 30; then it runs alone.
    #[test]
    fn round_robin_of_two() {
        let analysis = analyse(1, &run::round_robin(&[20, 20], 10));
        assert_eq!(of(&analysis), [(0, 0, 5, 10, 2), (5, 10, 0, 0, 3)]);
        assert_eq!(analysis.tasks.iter().map(|t| t.lag.unwrap().count).sum::<u64>(), 8);
    }

    /// Weights 3 to 1: in 40 ns the first is due 30. It runs 0..10, then waits to 40.
    #[test]
    fn the_heavy_task_is_due_more() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.switch(10, Some(0), Some(1), SwitchOut::Preempted);
        s.switch(40, Some(1), Some(0), SwitchOut::Preempted).end(40);
        let weigh = |weight| SpecFacts { weight, ..SpecFacts::default() };
        let specs = vec![weigh(3_072), weigh(1_024)];
        let analysis = analyse_with(Context { specs, ..context(1) }, &s);
        // Task 0: 0 at 0, 2.5 ahead at 10 (rounded up, because service is rounded down), 20 behind
        // at 40, where it is switched in and the run ends.
        assert_eq!(of(&analysis)[0], (20, 40, 3, 10, 10));
        assert_eq!((of(&analysis)[1].2, of(&analysis)[1].3), (20, 40));
    }

    /// Two CPUs, three tasks: each is due two thirds. Task 2 waits for 30.
    #[test]
    fn several_cpus_are_shared() {
        let mut s = Script::new(3);
        s.fork(0, 0).fork(0, 1).fork(0, 2);
        s.switch(0, None, Some(0), SwitchOut::Idle);
        s.switch_on(1, 0, None, Some(1), SwitchOut::Idle);
        s.switch(30, Some(0), Some(2), SwitchOut::Preempted).end(30);
        let lags = of(&analyse(2, &s));
        assert_eq!((lags[2].0, lags[2].1), (19, 30));
        assert_eq!((lags[0].2, lags[0].3), (11, 30));
    }

    /// A task alone on its CPU is never behind, whatever runs on the other CPUs.
    #[test]
    fn cpus_that_nothing_connects_are_machines_of_their_own() {
        let mut s = Script::new(3);
        s.fork(0, 0).fork(0, 1).on(
            0,
            1,
            schedlab_model::EventKind::Fork { task: TaskId(2), parent: None },
        );
        s.switch(0, None, Some(0), SwitchOut::Idle);
        s.switch_on(1, 0, None, Some(2), SwitchOut::Idle);
        s.switch(30, Some(0), Some(1), SwitchOut::Preempted).end(60);
        let pin = |cpu| SpecFacts { cpus: Some(CpuMask::only(CpuId(cpu))), ..Default::default() };
        let specs = vec![pin(0), pin(0), pin(1)];
        let lags = of(&analyse_with(Context { specs, ..context(2) }, &s));
        assert_eq!((lags[0].2, lags[1].0, lags[2].0, lags[2].2), (15, 15, 0, 0));
    }

    /// A sleep ends the account: no lag from before it remains.
    #[test]
    fn a_wakeup_begins_anew() {
        let mut s = Script::new(2);
        s.fork(0, 0).fork(0, 1).switch(0, None, Some(0), SwitchOut::Idle);
        s.switch(40, Some(0), Some(1), SwitchOut::Sleeping).wakeup(60, 0);
        s.switch(60, Some(1), Some(0), SwitchOut::Preempted).end(60);
        let analysis = analyse(1, &s);
        // 20 ahead when it went to sleep; it wakes with a lag of 0.
        assert_eq!(of(&analysis)[0], (0, 0, 20, 40, 5));
        assert_eq!(analysis.tasks[0].lag.unwrap().count, 4);
    }

    #[test]
    fn unknown_cpus_give_no_lag() {
        let analysis = analyse_with(Context::default(), &run::fcfs(&[3, 3]));
        assert!(analysis.tasks.iter().all(|task| task.lag.is_none()));
    }
}
