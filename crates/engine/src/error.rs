// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a simulation stops early.

use crate::objects::BlockedTask;
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{CpuId, Nanos};
use std::fmt;

/// What a scheduler did wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerFault {
    /// It named a task that runs on another CPU.
    PickedTwice,
    /// It named a task that is not runnable, or belongs to another class.
    PickedNotRunnable,
    /// It put or ran a task on a CPU that the task may not use.
    ForbiddenCpu,
    /// It named a task that is on another CPU's runqueue.
    WrongCpu,
    /// A CPU stays idle although a runnable task waits on its runqueue.
    Lost,
    /// A runnable task waited longer than the watchdog allows.
    Starved,
    /// Its count of runnable tasks differs from the tasks it holds.
    CountDrifted,
    /// It delayed a dequeue that must not be delayed.
    DelayedExit,
}

impl SchedulerFault {
    /// Name for programs and tests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PickedTwice => "picked-twice",
            Self::PickedNotRunnable => "picked-not-runnable",
            Self::ForbiddenCpu => "forbidden-cpu",
            Self::WrongCpu => "wrong-cpu",
            Self::Lost => "lost",
            Self::Starved => "starved",
            Self::CountDrifted => "count-drifted",
            Self::DelayedExit => "delayed-exit",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::PickedTwice => "picked a task that runs on another CPU already",
            Self::PickedNotRunnable => "picked a task that is not runnable in this class",
            Self::ForbiddenCpu => "chose a CPU that the task's affinity forbids",
            Self::WrongCpu => "picked a task that waits on another CPU's runqueue",
            Self::Lost => "lost a task: it is runnable, its CPU is idle, and nobody picks it",
            Self::Starved => "starved a task: it was runnable longer than the watchdog allows",
            Self::CountDrifted => "counts a number of runnable tasks that is not what it holds",
            Self::DelayedExit => "delayed the dequeue of a task that exits or must leave",
        }
    }
}

/// Why a simulation stops early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// The workload does not fit the machine.
    Workload(String),
    /// The machine is impossible.
    Machine(String),
    /// The scheduler cannot be had on this machine or with these options.
    Unavailable(String),
    /// The scheduler broke a rule.
    Scheduler {
        /// Which rule.
        fault: SchedulerFault,
        /// Scheduler.
        scheduler: String,
        /// Class.
        class: String,
        /// Callback whose answer was wrong.
        callback: &'static str,
        /// Task concerned.
        task: String,
        /// CPU concerned.
        cpu: CpuId,
        /// When.
        time_ns: Nanos,
    },
    /// A class says that the run cannot go on.
    Failed {
        /// Scheduler.
        scheduler: String,
        /// What happened.
        what: String,
        /// When.
        time_ns: Nanos,
    },
    /// A class did not admit a task.
    Refused {
        /// The task.
        task: String,
        /// Why, and what to do.
        why: String,
        /// When.
        time_ns: Nanos,
    },
    /// Programs ran too many steps without time passing.
    NoProgress {
        /// A task that did.
        task: String,
        /// When.
        time_ns: Nanos,
    },
    /// Tasks only switch: each leaves its CPU before it comes to its work.
    NoWork {
        /// How often in a row.
        nr_switches: u32,
        /// When.
        time_ns: Nanos,
    },
    /// Simulated time passed what a run can last.
    TooLong {
        /// The limit.
        max_ns: Nanos,
    },
    /// A program does what must not be done with an object.
    Misuse {
        /// The task.
        task: String,
        /// What it does to it.
        what: &'static str,
        /// Kind and name of the object.
        object: String,
        /// When.
        time_ns: Nanos,
    },
    /// Every task that lives waits for another one, for ever.
    Deadlock {
        /// Who waits for what.
        blocked: Vec<BlockedTask>,
        /// When.
        time_ns: Nanos,
    },
    /// More tasks than a run may have.
    TooManyTasks {
        /// The limit.
        max: u64,
        /// When.
        time_ns: Nanos,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload(text) | Self::Unavailable(text) => f.write_str(text),
            Self::Machine(text) => write!(f, "machine: {text}"),
            Self::Scheduler { fault, scheduler, class, callback, task, cpu, time_ns } => write!(
                f,
                "scheduler {scheduler:?} {}: class {class:?}, callback {callback}, task {task:?}, \
                 CPU {cpu}, at {time_ns} ns ({})",
                fault.text(),
                fault.name()
            ),
            Self::Failed { scheduler, what, time_ns } => {
                write!(f, "scheduler {scheduler:?} at {time_ns} ns: {what}")
            }
            Self::Refused { task, why, time_ns } => {
                write!(f, "task {task:?} at {time_ns} ns: {why}")
            }
            Self::NoProgress { task, time_ns } => write!(
                f,
                "task {task:?} went through a million steps at {time_ns} ns without time passing: \
                 give its loop some CPU time or sleep, or run with costs (--costs default)"
            ),
            Self::NoWork { nr_switches, time_ns } => write!(
                f,
                "{nr_switches} switches in a row left no task time for its work, up to {time_ns} \
                 ns: a switch costs as much as a slice lasts; lower --costs, or set a longer slice"
            ),
            Self::TooLong { max_ns } => write!(
                f,
                "the run has passed {} years of simulated time: give tasks less to do, or end it \
                 at a time (--until)",
                max_ns / (365 * 86_400 * NSEC_PER_SEC)
            ),
            Self::Misuse { task, what, object, time_ns } => {
                write!(f, "task {task:?} {what} {object}, at {time_ns} ns: mend its program")
            }
            Self::Deadlock { blocked, time_ns } => write_deadlock(f, blocked, *time_ns),
            Self::TooManyTasks { max, time_ns } => {
                write!(f, "more than {max} tasks at {time_ns} ns: end forked tasks, or fork fewer")
            }
        }
    }
}

/// Most tasks that the text of a deadlock names.
const BLOCKED_NAMED_MAX: usize = 8;

fn write_deadlock(
    f: &mut fmt::Formatter<'_>,
    blocked: &[BlockedTask],
    time_ns: Nanos,
) -> fmt::Result {
    write!(f, "deadlock: from {time_ns} ns on every task that lives waits for ever: ")?;
    for (index, task) in blocked.iter().take(BLOCKED_NAMED_MAX).enumerate() {
        write!(f, "{}{task}", if index == 0 { "" } else { "; " })?;
    }
    if blocked.len() > BLOCKED_NAMED_MAX {
        write!(f, "; and {} more", blocked.len() - BLOCKED_NAMED_MAX)?;
    }
    write!(f, ". Let somebody wake them, or end the run at a time (--until)")
}

impl std::error::Error for SimError {}
