// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters that only the simulator has, because traces do not contain them. Other lanes have none.
//!
//! The lane takes them from the engine's outcome. 0 is a measured 0.

use crate::measure::{Measure, Unit, measures};

const fn counter(unit: Unit, formula: &'static str, notes: &'static str) -> Measure<()> {
    Measure { unit, formula, notes, source: "the engine", value: () }
}

measures! {
    /// Counters that only the simulator has.
    #[derive(Copy, Eq)]
    ModelCounters {
        /// Interrupts of the modelled machine's sources, on busy and idle CPUs.
        nr_interrupts: u64 = counter(
            Unit::Count,
            "interrupts of the modelled machine's sources",
            "on busy and idle CPUs",
        ),
        /// Time (ns) that they took. On a busy CPU it is part of the interrupted task's CPU time.
        interrupt_ns: u64 = counter(
            Unit::Ns,
            "sum of what they cost",
            "on a busy CPU also in the interrupted task's `cpu_time_ns`",
        ),
        /// Time (ns) that tasks with a known working set spent refilling caches; part of their CPU
        /// time.
        cache_refill_ns: u64 = counter(
            Unit::Ns,
            "sum over the switches in of tasks with a known working set",
            "also in their `cpu_time_ns`",
        ),
        /// Run queue entries that the modelled scheduler examined in its picks, after the first of
        /// each.
        nr_entries_scanned: u64 = counter(
            Unit::Count,
            "sum over the choices: run queue entries looked at beyond the first",
            "the scheduler reports it",
        ),
        /// How often a modelled CPU waited for the lock of a run queue.
        nr_lock_waits: u64 = counter(
            Unit::Count,
            "times that a CPU found the lock of a run queue held by another",
            "0 unless the machine's locks [cost something](machines.md#costs)",
        ),
        /// Time (ns) that modelled CPUs waited for these locks; mostly part of a task's CPU time.
        lock_wait_ns: u64 =
            counter(Unit::Ns, "sum of these waits", "charged to the running task"),
        /// Time (ns) to transfer these locks from the CPU that held them last.
        lock_transfer_ns: u64 = counter(
            Unit::Ns,
            "time to fetch locks that another CPU held last",
            "charged to the running task",
        ),
    }
}
