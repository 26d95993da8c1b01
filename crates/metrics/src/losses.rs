// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is missing in a trace, and which tasks' figures may be wrong because of it.

use crate::facts::{OfRun, OfTask};
use crate::measure::{Measure, Unit};

/// Whether a task's figures may be wrong.
pub(crate) const IS_UNCERTAIN: OfTask<bool> = Measure {
    unit: Unit::Flag,
    formula: "events were lost while it lived, or contradict each other",
    notes: "its figures may be wrong",
    source: "",
    value: |of| of.account.life.is_uncertain,
};

/// Events that the recorder lost.
pub(crate) const LOST: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "events the recorder lost",
    notes: "always 0 in the simulator",
    source: "",
    value: |of| of.trace.as_ref().map_or(0, |trace| trace.nr_lost_events),
};

/// Events that contradict earlier ones.
pub(crate) const INCONSISTENT: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "events that contradict those before",
    notes: "0 in a complete trace",
    source: "",
    value: |of| of.trace.as_ref().map_or(0, |trace| trace.nr_inconsistent_events),
};

/// Tasks whose figures may be wrong.
pub(crate) const UNCERTAIN_TASKS: OfRun<u64> = Measure {
    unit: Unit::Count,
    formula: "tasks with `is_uncertain`",
    notes: "",
    source: "",
    value: |of| of.count(|task| task.is_uncertain),
};
