// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulation is given and what it gives beside the trace.

use crate::objects::BlockedTask;
use schedlab_model::{CgroupId, Machine, Nanos};
use schedlab_sched::{BandwidthStats, Options, Scheduler};

/// Everything that determines a run beside the workload.
#[derive(Clone, Debug)]
pub struct SimConfig<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// Its tunables.
    pub options: &'a Options,
    /// Seed of every random draw.
    pub seed: u64,
    /// Ends the run at this time (ns) if it has not ended before; `None`: at the workload's own
    /// duration, if it has one.
    pub until_ns: Option<Nanos>,
    /// Longest wait of a runnable task (ns), noticed after at most half as long again; `None`: no
    /// limit.
    pub watchdog_ns: Option<Nanos>,
}

/// Counters of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOutcome {
    /// End of the run.
    pub end_ns: Nanos,
    /// Tasks created.
    pub nr_tasks: u64,
    /// Tasks that exited.
    pub nr_exited: u64,
    /// Switches on all CPUs.
    pub nr_switches: u64,
    /// Ticks taken by busy CPUs.
    pub nr_ticks: u64,
    /// Events handed to the sink.
    pub nr_events: u64,
    /// Tasks that waited for ever when nothing was left to happen before the run's end.
    pub blocked: Vec<BlockedTask>,
    /// Interrupts of the machine's sources, on busy and idle CPUs.
    pub nr_interrupts: u64,
    /// Time that they took.
    pub interrupt_ns: Nanos,
    /// CPU time that programs asked for, of what was begun.
    pub work_ns: Nanos,
    /// Time that tasks with a known working set spent refilling caches.
    pub cache_refill_ns: Nanos,
    /// Run queue entries that choices looked at beyond the first.
    pub nr_entries_scanned: u64,
    /// Times that a CPU had to wait for the lock of a run queue.
    pub nr_lock_waits: u64,
    /// Time that CPUs spun for it.
    pub lock_wait_ns: Nanos,
    /// Time that they fetched it from the CPU that held it last.
    pub lock_transfer_ns: Nanos,
    /// What cpu.max did to the groups that have one, in their order.
    pub bandwidth: Vec<(CgroupId, BandwidthStats)>,
    /// What classes want a reader of the result to know: a short name and a sentence each.
    pub notes: Vec<(&'static str, String)>,
}
