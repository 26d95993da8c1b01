// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortest job first, and its preemptive form, shortest remaining time first; each with the exact
//! length of the next CPU burst, which no real scheduler knows, or with a prediction.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling. The
//! prediction is the exponential average tau' = alpha t + (1 - alpha) tau of the bursts t that
//! have ended, rounded to the nearest ns. A burst ends when the task blocks: preemption and
//! sched_yield do not end it. Equal times run in order of arrival, and the running task keeps its
//! CPU.
//!
//! A burst of unknown length (a program that never blocks) is longer than any other. One that runs
//! longer than predicted has 0 left: SRTF lets it finish.

use crate::boundary::core::Core;
use crate::boundary::explain::{Fact, Rule};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags};
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::pool::Ordered;
use crate::textbook::rules::{Discipline, Positions, TurnEnd};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{Costs, Machine, Nanos, Preempt, TaskId};

const SOURCE: &str = "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling";
const LEAVES_OUT: &str = "policies, priorities and nice values are ignored";
const EXACT: Claims =
    Claims { work_conserving: true, starvation_free: false, fair: false, needs_burst: true };
const PREDICTED: Claims = Claims { needs_burst: false, ..EXACT };

/// Whole of `alpha`.
const PER_MILLE: u64 = 1_000;

const TUNABLES: &[Tunable] = &[
    Tunable::new(
        "alpha",
        TunableKind::Count { min: 0, max: PER_MILLE },
        PER_MILLE / 2,
        "weight of the last burst in the prediction, per mille",
    ),
    Tunable::new(
        "tau0",
        TunableKind::Time { min: 0, max: 3_600 * NSEC_PER_SEC },
        10 * NSEC_PER_MSEC,
        "prediction for a task's first burst",
    ),
];

/// Registry entry of shortest job first.
pub fn sjf() -> Scheduler {
    Scheduler {
        name: "sjf".into(),
        summary: "shortest job (CPU burst) first, lengths known; no preemption".into(),
        source: SOURCE.into(),
        leaves_out: LEAVES_OUT.into(),
        claims: EXACT,
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![],
        digest: None,
        make: Make::new(|_, machine, _| vec![Box::new(class("sjf", false, None, machine))]),
    }
}

/// Registry entry of shortest remaining time first.
pub fn srtf() -> Scheduler {
    Scheduler {
        name: "srtf".into(),
        summary: "shortest remaining time first, lengths known; preemptive".into(),
        make: Make::new(|_, machine, _| vec![Box::new(class("srtf", true, None, machine))]),
        ..sjf()
    }
}

/// Registry entry of shortest job first with predicted bursts.
pub fn sjf_predicted() -> Scheduler {
    Scheduler {
        name: "sjf-predicted".into(),
        summary: "shortest job first by the exponential average of past bursts; no preemption"
            .into(),
        source: SOURCE.into(),
        leaves_out: LEAVES_OUT.into(),
        claims: PREDICTED,
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: TUNABLES.to_vec(),
        digest: None,
        make: Make::new(|options, machine, _| {
            let average = Average::new(options);
            vec![Box::new(class("sjf-predicted", false, Some(average), machine))]
        }),
    }
}

/// Registry entry of shortest remaining time first with predicted bursts.
pub fn srtf_predicted() -> Scheduler {
    Scheduler {
        name: "srtf-predicted".into(),
        summary:
            "shortest remaining time first by the exponential average of past bursts; preemptive"
                .into(),
        make: Make::new(|options, machine, _| {
            let average = Average::new(options);
            vec![Box::new(class("srtf-predicted", true, Some(average), machine))]
        }),
        ..sjf_predicted()
    }
}

fn class(
    name: &'static str,
    preemptive: bool,
    average: Option<Average>,
    machine: &Machine,
) -> Global<ShortestFirst> {
    let rules = ShortestFirst { name, preemptive, average, positions: Positions::default() };
    Global::new(rules, machine.nr_cpus())
}

/// The prediction for a task.
#[derive(Clone, Copy, Debug)]
struct Prediction {
    /// Length of the present or next burst (ns).
    tau: Nanos,
    /// CPU time of the task when that burst began.
    began_at: Nanos,
}

/// Exponential averages of all tasks.
#[derive(Debug)]
struct Average {
    alpha_per_mille: u64,
    tau0: Nanos,
    by_task: Vec<Prediction>,
}

impl Average {
    fn new(options: &Options) -> Self {
        Self {
            alpha_per_mille: options.get("alpha"),
            tau0: options.get("tau0"),
            by_task: Vec::new(),
        }
    }

    fn remaining(&self, core: &Core, task: TaskId) -> Nanos {
        let prediction = self.by_task[task.index()];
        let used = core.sum_exec_runtime(task) - prediction.began_at;
        prediction.tau.saturating_sub(used)
    }

    /// The task's burst has ended.
    fn burst_ended(&mut self, core: &Core, task: TaskId) {
        let prediction = &mut self.by_task[task.index()];
        let runtime = core.sum_exec_runtime(task);
        let burst = runtime - prediction.began_at;
        prediction.tau = next_tau(self.alpha_per_mille, burst, prediction.tau);
        prediction.began_at = runtime;
    }
}

/// alpha t + (1 - alpha) tau, rounded to the nearest.
fn next_tau(alpha_per_mille: u64, burst: Nanos, tau: Nanos) -> Nanos {
    let sum = u128::from(alpha_per_mille) * u128::from(burst)
        + u128::from(PER_MILLE - alpha_per_mille) * u128::from(tau);
    let rounded = (sum + u128::from(PER_MILLE / 2)) / u128::from(PER_MILLE);
    // A weighted mean is between its parts.
    rounded as Nanos
}

/// The rules.
#[derive(Debug)]
struct ShortestFirst {
    name: &'static str,
    preemptive: bool,
    /// `None`: the lengths are known.
    average: Option<Average>,
    positions: Positions,
}

impl ShortestFirst {
    fn remaining(&self, core: &Core, task: TaskId) -> Nanos {
        match &self.average {
            Some(average) => average.remaining(core, task),
            None => core.burst_remaining(task).unwrap_or(Nanos::MAX),
        }
    }
}

impl Discipline for ShortestFirst {
    type Pool = Ordered<(Nanos, i64)>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn task_new(&mut self, core: &Core, task: TaskId) {
        if let Some(average) = &mut self.average {
            let began_at = core.sum_exec_runtime(task);
            let prediction = Prediction { tau: average.tau0, began_at };
            average.by_task.resize(task.index() + 1, prediction);
        }
    }

    fn join(&mut self, _core: &Core, task: TaskId, _running: bool, _flags: EnqueueFlags) {
        self.positions.arrive(task);
    }

    fn requeue(&mut self, _core: &Core, task: TaskId, why: TurnEnd, _ran: Nanos) {
        self.positions.give_up(task, why);
    }

    fn leave(&mut self, core: &Core, task: TaskId, flags: DequeueFlags, _ran: Option<Nanos>) {
        if flags.sleep
            && let Some(average) = &mut self.average
        {
            average.burst_ended(core, task);
        }
    }

    fn key(&self, core: &Core, task: TaskId) -> (Nanos, i64) {
        (self.remaining(core, task), self.positions.of(task))
    }

    fn preemptive(&self) -> bool {
        self.preemptive
    }

    fn rank(&self, core: &Core, task: TaskId) -> u64 {
        self.remaining(core, task)
    }

    fn rule(&self) -> Rule {
        let text = match self.average {
            None => "the shortest remaining CPU burst",
            Some(_) => "the shortest predicted rest of a CPU burst",
        };
        Rule::Least { keys: &["burst_left", "position"], text }
    }

    fn facts(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        let mut facts = vec![
            Fact::ns("burst_left", self.remaining(core, task)),
            Fact::number("position", self.positions.of(task)),
        ];
        if let Some(average) = &self.average {
            facts.push(Fact::ns("predicted_burst", average.by_task[task.index()].tau));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_1_4_exponential_average() {
        let mut tau = 10;
        let mut predictions = vec![tau];
        for burst in [6, 4, 6, 4, 13, 13, 13] {
            tau = next_tau(500, burst, tau);
            predictions.push(tau);
        }
        assert_eq!(predictions, [10, 8, 6, 6, 5, 9, 11, 12]);
    }

    #[test]
    fn section_1_4_extremes_of_alpha() {
        assert_eq!(next_tau(0, 99, 10), 10, "alpha 0 keeps the first prediction");
        assert_eq!(next_tau(1_000, 99, 10), 99, "alpha 1 takes the last burst");
        assert_eq!(next_tau(999, u64::MAX, u64::MAX), u64::MAX, "no overflow");
    }
}
