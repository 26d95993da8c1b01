// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time during which a task neither ran nor waited for a CPU.
//!
//! With CPU time ([`crate::slice`]) and run delay ([`crate::run_delay`]) these add up exactly to
//! the turnaround.

use crate::facts::OfTask;
use crate::measure::{Measure, Unit};

/// Asleep.
pub(crate) const SLEEP: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "sum of (wake-up - switch-out) of switches out to sleep",
    notes: "timers, pipes, other tasks; null without a trace",
    source: "state S of proc(5)",
    value: |of| Some(of.account.sleep_ns),
};

/// Waiting for a device.
pub(crate) const BLOCKED_IO: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "sum of (wake-up - switch-out) of switches out to uninterruptible sleep",
    notes: "host: mostly block devices; null without a trace",
    source: "state D of proc(5)",
    value: |of| Some(of.account.blocked_io_ns),
};

/// Time that no event explains.
pub(crate) const UNACCOUNTED: OfTask<Option<u64>> = Measure {
    unit: Unit::Ns,
    formula: "time that no event accounts for",
    notes: "above 0 only after lost events; null without a trace",
    source: "",
    value: |of| Some(of.account.unaccounted_ns),
};
