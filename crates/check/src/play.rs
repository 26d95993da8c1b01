// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays a case in the simulator and judges the run.

use crate::case::Case;
use crate::rules::{Breach, Context, Judge, rule};
use crate::states::StateJudge;
use crate::subject::Subject;
use schedlab_engine::{Observer, SimConfig, SimError, SimOutcome, simulate};
use schedlab_model::{Machine, Nanos, TraceSink};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a case.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// No rule was broken.
    Passed,
    /// The scheduler cannot play the workload; the reason.
    Refused(String),
    /// The first breach.
    Broken(Breach),
}

impl Verdict {
    /// The breach, if there is one.
    pub fn breach(self) -> Option<Breach> {
        match self {
            Self::Broken(breach) => Some(breach),
            _ => None,
        }
    }
}

/// Plays `case` under `subject` and judges the run by every rule.
pub fn play(case: &Case, subject: &Subject) -> Verdict {
    // A class that finds its own state broken panics.
    let played = catch_unwind(AssertUnwindSafe(|| judged(case, subject)));
    played.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        answers("panic", 0, format!("the model found its own state broken: {text}"))
    })
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Simulates `case` under `subject`.
pub(crate) fn simulated(
    case: &Case,
    subject: &Subject,
    sink: impl TraceSink,
    observer: Option<&mut dyn Observer>,
) -> Result<SimOutcome, SimError> {
    let scheduler = &*subject.scheduler;
    let machine = Machine { preempt: scheduler.preempt, ..case.machine.clone() };
    let config = SimConfig {
        machine: &machine,
        scheduler,
        options: &subject.options,
        seed: case.seed,
        until_ns: None,
        watchdog_ns: None,
    };
    simulate(&case.workload, &config, sink, observer)
}

fn judged(case: &Case, subject: &Subject) -> Verdict {
    let mut judge = Judge::new(case, subject);
    let mut states = StateJudge::new(&Context::new(case, subject));
    match simulated(case, subject, &mut judge, Some(&mut states)) {
        Ok(_) => earlier(judge.finish(), states.finish()),
        Err(SimError::Scheduler { fault, class, callback, task, cpu, time_ns, .. }) => {
            let text = format!("class {class:?}, callback {callback}, task {task:?}, CPU {cpu}");
            // What the trace shows before the class is caught is nearer to the cause.
            match earlier(judge.finish(), states.finish()) {
                Verdict::Passed => {
                    answers(fault.name(), time_ns, format!("{}: {text}", fault.name()))
                }
                found => found,
            }
        }
        Err(SimError::Failed { what, time_ns, .. }) => answers("failed", time_ns, what),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}

fn earlier(one: Option<Breach>, other: Option<Breach>) -> Verdict {
    let found = one.into_iter().chain(other).min_by_key(|breach| breach.time_ns);
    found.map_or(Verdict::Passed, Verdict::Broken)
}

fn answers(kind: &'static str, time_ns: Nanos, text: String) -> Verdict {
    let rule = rule("answers").expect("the table has the rule");
    Verdict::Broken(Breach { rule, kind, time_ns, cpu: None, task: None, text })
}
