// SPDX-License-Identifier: MIT OR Apache-2.0
//! A task's identity, when it lived, and what it reported itself.

use crate::facts::OfTask;
use crate::measure::{Measure, Unit};

/// Its number.
pub(crate) const ID: OfTask<u32> = Measure {
    unit: Unit::Label,
    formula: "number in the run",
    notes: "in order of creation",
    source: "",
    value: |of| of.id,
};

/// Its name.
pub(crate) const NAME: OfTask<String> = Measure {
    unit: Unit::Label,
    formula: "name of the task",
    notes: "",
    source: "",
    value: |of| of.info.name.clone(),
};

/// Its description.
pub(crate) const SPEC: OfTask<Option<u32>> = Measure {
    unit: Unit::Label,
    formula: "index of its description in the workload",
    notes: "null for a command",
    source: "",
    value: |of| of.info.spec,
};

/// Its process.
pub(crate) const PID: OfTask<Option<u32>> = Measure {
    unit: Unit::Label,
    formula: "process id on the host",
    notes: "null in the simulator",
    source: "",
    value: |of| Some(of.info.pid).filter(|pid| *pid > 0),
};

/// Release.
pub(crate) const RELEASE: OfTask<u64> = Measure {
    unit: Unit::Ns,
    formula: "time of its release",
    notes: "since the start of the run; with `is_release_unseen` when it was first seen",
    source: "",
    value: |of| of.account.life.release_ns,
};

/// First run.
pub(crate) const FIRST_RUN: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "its first switch-in",
    notes: "null: never ran, or lived before the recording began",
    source: "",
    value: |of| of.account.first_run_ns(),
};

/// Exit.
pub(crate) const EXIT: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "its exit",
    notes: "null: still alive at the end",
    source: "",
    value: |of| of.account.life.exit_ns,
};

/// Progress.
pub(crate) const PROGRESS: OfTask<u64> = Measure {
    unit: Unit::Count,
    formula: "units of work the program reported",
    notes: "only programs that mark them",
    source: "",
    value: |of| of.account.nr_progress,
};

/// Whether the task lived before the recording began.
pub(crate) const IS_RELEASE_UNSEEN: OfTask<bool> = Measure {
    unit: Unit::Flag,
    formula: "it lived before the recording began (a trace of a running machine)",
    notes: "`release_ns` is when it was first seen; it has no response and no turnaround, and \
            nothing before its first event is counted",
    source: "",
    value: |of| of.account.life.is_release_unseen,
};

/// Whether the task only starts other tasks, according to the workload.
pub(crate) const IS_LAUNCHER: OfTask<bool> = Measure {
    unit: Unit::Flag,
    formula: "its program only forks others and waits for them",
    notes: "it is among the tasks, but the totals about jobs (response, turnaround, makespan, \
            throughput, run delay, Jain index) leave it out",
    source: "",
    value: |_| false,
};
