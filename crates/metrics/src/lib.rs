// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a trace to numbers. One file a measure; this file holds the names under which they go out.
//!
//! All times are nanoseconds. Floating point appears only here, at output, never in what decides.
//! [`Collector`] computes [`RunMeasures`] from an event stream; [`totals::summarise`] makes the
//! totals from tasks that were measured another way; [`stats`] summarises repetitions.
//! Builds for wasm32: no file, clock or environment is read.

use serde::{Deserialize, Serialize};

mod account;
pub mod analysis;
mod collector;
pub mod cpu_share;
pub mod cpu_use;
pub mod idle_capacity;
pub mod jain_index;
mod life;
pub mod makespan;
pub mod migrations;
pub mod response;
pub mod run_delay;
pub mod samples;
pub mod slice;
pub mod stats;
pub mod switches;
pub mod throughput;
pub mod totals;
pub mod turnaround;
pub mod user_system;
pub mod utilisation;
pub mod wait_as_reported;
pub mod wakeup_latency;

#[cfg(test)]
mod testing;

pub use analysis::{Analyser, Analysis};
pub use collector::Collector;

/// Statistics of a set of durations (ns). With no sample, every field is 0. Percentiles are exact
/// for small sets and within 0.1 % for large ones ([`samples`]).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Number of samples.
    pub count: u64,
    /// Least.
    pub ns_min: u64,
    /// Arithmetic mean, rounded to the nearest ns.
    pub ns_mean: u64,
    /// Median (mean of the two middle samples when their number is even).
    pub ns_median: u64,
    /// 95th percentile (nearest rank).
    pub ns_p95: u64,
    /// 99th percentile (nearest rank).
    pub ns_p99: u64,
    /// Greatest.
    pub ns_max: u64,
}

/// Measures of one task. `None`: it did not happen before the run ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskMeasures {
    /// Number in the run.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Index of its description in the workload.
    pub spec: Option<u32>,
    /// Process id on the host; 0 in the simulator.
    pub pid: u32,
    /// When it was released; with `is_release_unseen` when it was first seen.
    pub release_ns: u64,
    /// When it first ran.
    pub first_run_ns: Option<u64>,
    /// When it exited.
    pub exit_ns: Option<u64>,
    /// Release to first run.
    pub response_ns: Option<u64>,
    /// Release to exit.
    pub turnaround_ns: Option<u64>,
    /// Time on a CPU.
    pub cpu_time_ns: u64,
    /// The part of it in user mode, as the kernel splits it; `None`: not known.
    #[serde(default)]
    pub user_time_ns: Option<u64>,
    /// The part of it in the kernel; `None`: not known.
    #[serde(default)]
    pub system_time_ns: Option<u64>,
    /// Time runnable but not running.
    pub run_delay_ns: u64,
    /// Time asleep (timers, other tasks).
    pub sleep_ns: u64,
    /// Time waiting for a device.
    pub blocked_io_ns: u64,
    /// Time of its life that no event explains, because events were lost; 0 in a whole trace.
    pub unaccounted_ns: u64,
    /// CPU time as a part of the CPU time all tasks of the run got, 0 to 1.
    pub cpu_share: f64,
    /// Voluntary switches, the kernel's rule (nvcsw).
    pub nr_voluntary_switches: u64,
    /// Involuntary switches (nivcsw).
    pub nr_involuntary_switches: u64,
    /// Moves between CPUs.
    pub nr_migrations: u64,
    /// Wake-ups (not the release).
    pub nr_wakeups: u64,
    /// Units of progress finished.
    pub nr_progress: u64,
    /// Wake-up to run.
    pub wakeup_latency: Distribution,
    /// Its single waits on a run queue, whatever began them; their sum is the run delay.
    pub wait: Distribution,
    /// Lengths of its uninterrupted stays on a CPU.
    pub slice: Distribution,
    /// Whether its figures may be wrong: events were lost while it lived, or do not fit together.
    pub is_uncertain: bool,
    /// Whether it lived before the recording began: it has neither response nor turnaround, and
    /// what it did before its first event is in no figure.
    #[serde(default)]
    pub is_release_unseen: bool,
    /// Whether it only forks others and waits for them: it is no part of the workload's work.
    #[serde(default)]
    pub is_launcher: bool,
}

/// Measures of the whole run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunTotals {
    /// End of the run.
    pub end_ns: u64,
    /// Tasks seen, launchers left out.
    pub nr_tasks: u64,
    /// Tasks that only fork others and wait for them. They stand among the tasks but in none of the
    /// totals about response, turnaround, makespan, throughput, run delay and the Jain index.
    #[serde(default)]
    pub nr_launchers: u64,
    /// Tasks that exited.
    pub nr_exited: u64,
    /// First release to last exit; `None` while a task lives on.
    pub makespan_ns: Option<u64>,
    /// Last begin of a phase to last exit; `None` without phases and while a task lives on.
    #[serde(default)]
    pub last_phase_ns: Option<u64>,
    /// Exited tasks a second of makespan (or of the run, while a task lives on).
    pub throughput_per_s: f64,
    /// Busy CPU time by (CPUs x makespan, or run time while a task lives on), 0 to 1.
    pub utilisation: f64,
    /// Jain's index of the tasks' CPU time, 1/n to 1.
    pub jain_index: f64,
    /// CPU time of all tasks.
    pub cpu_time_ns: u64,
    /// The part of it in user mode; `None`: not known.
    #[serde(default)]
    pub user_time_ns: Option<u64>,
    /// The part of it in the kernel; `None`: not known.
    #[serde(default)]
    pub system_time_ns: Option<u64>,
    /// CPU time that the machine had during the makespan and no task of the run used; `None` while
    /// a task lives on.
    #[serde(default)]
    pub idle_capacity_ns: Option<i64>,
    /// Study S2's "wait time" as its text has it; `None` while a task lives on, or where user and
    /// system time are not known.
    #[serde(default)]
    pub wait_as_reported_ns: Option<i64>,
    /// Run delay of all tasks.
    pub run_delay_ns: u64,
    /// Switches to or from a task.
    pub nr_switches: u64,
    /// Voluntary switches.
    pub nr_voluntary_switches: u64,
    /// Involuntary switches.
    pub nr_involuntary_switches: u64,
    /// Moves between CPUs.
    pub nr_migrations: u64,
    /// Interrupts of the modelled machine's sources, on busy and idle CPUs; 0 on the host.
    #[serde(default)]
    pub nr_interrupts: u64,
    /// Time that they took. On a busy CPU it is part of the interrupted task's CPU time.
    #[serde(default)]
    pub interrupt_ns: u64,
    /// Time that tasks with a known working set spent refilling caches, part of their CPU time; 0
    /// on the host.
    #[serde(default)]
    pub cache_refill_ns: u64,
    /// Run queue entries that the modelled scheduler's choices looked at beyond the first.
    #[serde(default)]
    pub nr_entries_scanned: u64,
    /// Times that a modelled CPU had to wait for the lock of a run queue.
    #[serde(default)]
    pub nr_lock_waits: u64,
    /// Time that modelled CPUs spun for these locks, mostly part of a task's CPU time.
    #[serde(default)]
    pub lock_wait_ns: u64,
    /// Time that they fetched them from the CPU that held them last.
    #[serde(default)]
    pub lock_transfer_ns: u64,
    /// Events lost by the recorder.
    pub nr_lost_events: u64,
    /// Events that contradict what came before; 0 in a whole trace.
    pub nr_inconsistent_events: u64,
    /// Tasks with `is_uncertain`.
    pub nr_uncertain_tasks: u64,
    /// Mean over exited tasks, 0 if none.
    pub turnaround_ns_mean: u64,
    /// Mean over tasks that ran, 0 if none.
    pub response_ns_mean: u64,
    /// Over all tasks.
    pub turnaround: Distribution,
    /// Over all tasks.
    pub response: Distribution,
    /// Over all tasks' run delays.
    pub run_delay: Distribution,
    /// Over all wake-ups of all tasks.
    pub wakeup_latency: Distribution,
    /// Over all single waits of all tasks.
    pub wait: Distribution,
    /// Over all slices of all tasks.
    pub slice: Distribution,
}

/// Everything measured in one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMeasures {
    /// The whole run.
    pub totals: RunTotals,
    /// Each task, by id.
    pub tasks: Vec<TaskMeasures>,
}
