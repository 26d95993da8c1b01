// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a simulation stops early.

use crate::objects::BlockedTask;
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{CpuId, Nanos};
use std::fmt;

/// A rule that a scheduler broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerFault {
    /// It picked a task that runs on another CPU.
    PickedTwice,
    /// It picked a task that is not runnable, or belongs to another class.
    PickedNotRunnable,
    /// It put or ran a task on a CPU that the task may not use.
    ForbiddenCpu,
    /// It picked a task that is on another CPU's runqueue.
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
    /// Name, for programs and tests.
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
    /// The scheduler cannot run on this machine or with these options.
    Unavailable(String),
    /// The scheduler broke a rule.
    Scheduler {
        /// Which rule.
        fault: SchedulerFault,
        /// Scheduler.
        scheduler: String,
        /// The class.
        class: String,
        /// The callback whose answer was wrong.
        callback: &'static str,
        /// The task.
        task: String,
        /// The CPU.
        cpu: CpuId,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// A class reports that the run cannot continue.
    Failed {
        /// Scheduler.
        scheduler: String,
        /// What happened.
        what: String,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// A class refused a task.
    Refused {
        /// The task.
        task: String,
        /// Why, and what to do.
        why: String,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// Programs ran too many steps without time passing.
    NoProgress {
        /// One such task.
        task: String,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// Tasks only switch: each leaves its CPU before it begins its work.
    NoWork {
        /// Number of such switches in a row.
        nr_switches: u32,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// The simulated time exceeds the limit.
    TooLong {
        /// The limit (ns).
        max_ns: Nanos,
    },
    /// A program uses an object in a way that is not allowed.
    Misuse {
        /// The task.
        task: String,
        /// What it does with the object.
        what: &'static str,
        /// Kind and name of the object.
        object: String,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// Every task waits for another one, for ever.
    Deadlock {
        /// The tasks, and what they wait for.
        blocked: Vec<BlockedTask>,
        /// Time (ns).
        time_ns: Nanos,
    },
    /// The caller ended the run.
    Cancelled {
        /// Time (ns).
        time_ns: Nanos,
    },
    /// More tasks than a run may have.
    TooManyTasks {
        /// The limit.
        max: u64,
        /// Time (ns).
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
            Self::Cancelled { time_ns } => write!(f, "the run was cancelled at {time_ns} ns"),
            Self::Deadlock { blocked, time_ns } => write_deadlock(f, blocked, *time_ns),
            Self::TooManyTasks { max, time_ns } => {
                write!(f, "more than {max} tasks at {time_ns} ns: end forked tasks, or fork fewer")
            }
        }
    }
}

/// Most tasks that a deadlock's text names.
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
