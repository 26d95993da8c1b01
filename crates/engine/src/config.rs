// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input and output of a simulation, except workload and trace.

use crate::objects::BlockedTask;
use schedlab_model::{CgroupId, Machine, Nanos};
use schedlab_sched::{BandwidthStats, Options, Scheduler};

/// Everything that determines a run, except the workload.
#[derive(Clone, Debug)]
pub struct SimConfig<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// Values of its tunables.
    pub options: &'a Options,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Ends the run at this time (ns) if it has not ended before; `None`: at the end of the
    /// workload's duration, if it has one.
    pub until_ns: Option<Nanos>,
    /// Longest wait of a runnable task (ns). A longer wait is detected after at most half of that
    /// time in addition. `None`: no limit.
    pub watchdog_ns: Option<Nanos>,
}

/// Counters of a run, and notes about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOutcome {
    /// End of the run (ns).
    pub end_ns: Nanos,
    /// Tasks created.
    pub nr_tasks: u64,
    /// Tasks that exited.
    pub nr_exited: u64,
    /// Switches on all CPUs.
    pub nr_switches: u64,
    /// Ticks taken by busy CPUs.
    pub nr_ticks: u64,
    /// Events passed to the sink.
    pub nr_events: u64,
    /// Tasks that still waited when nothing more could happen before the run's end.
    pub blocked: Vec<BlockedTask>,
    /// Tasks whose program ended early: nobody had the other end of their channel open any more.
    pub cut_off: Vec<BlockedTask>,
    /// Interrupts of the machine's sources, on busy and idle CPUs.
    pub nr_interrupts: u64,
    /// Time that they took (ns).
    pub interrupt_ns: Nanos,
    /// CPU time (ns) that programs asked for, of operations that began.
    pub work_ns: Nanos,
    /// Time (ns) that tasks with a known working set spent refilling caches.
    pub cache_refill_ns: Nanos,
    /// Run queue entries that picks examined, after the first of each.
    pub nr_entries_scanned: u64,
    /// How often a CPU had to wait for the lock of a run queue.
    pub nr_lock_waits: u64,
    /// Time (ns) that CPUs waited for these locks.
    pub lock_wait_ns: Nanos,
    /// Time (ns) to transfer these locks from the CPU that held them last.
    pub lock_transfer_ns: Nanos,
    /// Statistics of bandwidth control for the groups with a cpu.max, in order of the groups.
    pub bandwidth: Vec<(CgroupId, BandwidthStats)>,
    /// Notes of classes for the reader of the result: a short name and a sentence each.
    pub notes: Vec<(&'static str, String)>,
}
