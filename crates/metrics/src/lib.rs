// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a trace to numbers. One file a measure: it computes and declares it. This file lists them.
//!
//! A new measure is a file and a line of a list below. Fields that can be without a value are
//! `Option`: a measure is absent or a value, never 0 for "none".
//!
//! All times are nanoseconds. Floating point appears only here, at output, never in what decides.
//! [`Collector`] computes [`RunMeasures`] from an event stream; [`totals::summarise`] makes the
//! totals from tasks that were measured another way; [`stats`] summarises repetitions.
//! Builds for wasm32: no file, clock or environment is read.

use facts::{RunFacts, TaskFacts};
use measure::measures;
use serde::{Deserialize, Serialize};

mod account;
pub mod analysis;
mod census;
mod collector;
pub mod cpu_share;
pub mod cpu_use;
mod distribution;
mod facts;
pub mod idle_capacity;
pub mod jain_index;
mod life;
mod losses;
pub mod makespan;
pub mod measure;
pub mod migrations;
mod model_counters;
pub mod response;
pub mod run_delay;
pub mod samples;
pub mod slice;
mod states;
pub mod stats;
pub mod switches;
mod task;
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
pub use distribution::Distribution;
pub use measure::{Declared, Measures, Number, Reading, Unit};
pub use model_counters::ModelCounters;

measures! {
    /// Measures of one task. `None`: it did not happen before the run ended, or is not known.
    TaskMeasures of TaskFacts<'_> {
        /// Number in the run.
        id: u32 = task::ID,
        /// Name.
        name: String = task::NAME,
        /// Index of its description in the workload.
        spec: Option<u32> = task::SPEC,
        /// Process id on the host; `None` in the simulator.
        pid: Option<u32> = task::PID,
        /// When it was released; with `is_release_unseen` when it was first seen.
        release_ns: u64 = task::RELEASE,
        /// When it first ran.
        first_run_ns: Option<u64> = task::FIRST_RUN,
        /// When it exited.
        exit_ns: Option<u64> = task::EXIT,
        /// Release to first run.
        response_ns: Option<u64> = response::OF_TASK,
        /// Release to exit.
        turnaround_ns: Option<u64> = turnaround::OF_TASK,
        /// Time on a CPU.
        cpu_time_ns: u64 = slice::CPU_TIME,
        /// The part of it in user mode, as the kernel splits it; `None`: not known.
        user_time_ns: Option<u64> = user_system::USER,
        /// The part of it in the kernel; `None`: not known.
        system_time_ns: Option<u64> = user_system::SYSTEM,
        /// Time runnable but not running.
        run_delay_ns: u64 = run_delay::OF_TASK,
        /// Time asleep (timers, other tasks); `None` without a trace.
        sleep_ns: Option<u64> = states::SLEEP,
        /// Time waiting for a device; `None` without a trace.
        blocked_io_ns: Option<u64> = states::BLOCKED_IO,
        /// Time that no event accounts for, because events were lost; 0 in a complete trace.
        unaccounted_ns: Option<u64> = states::UNACCOUNTED,
        /// CPU time as a part of the CPU time all tasks of the run got, 0 to 1.
        cpu_share: Option<f64> = cpu_share::OF_TASK,
        /// Voluntary switches, the kernel's rule (nvcsw).
        nr_voluntary_switches: u64 = switches::VOLUNTARY,
        /// Involuntary switches (nivcsw).
        nr_involuntary_switches: u64 = switches::INVOLUNTARY,
        /// Moves between CPUs; `None` without a trace.
        nr_migrations: Option<u64> = migrations::OF_TASK,
        /// Wake-ups (not the release); `None` without a trace.
        nr_wakeups: Option<u64> = wakeup_latency::WAKEUPS,
        /// Units of progress finished.
        nr_progress: u64 = task::PROGRESS,
        /// Wake-up to run.
        wakeup_latency: Distribution = wakeup_latency::OF_TASK,
        /// Its single waits on a run queue, whatever began them; their sum is the run delay.
        wait: Distribution = run_delay::WAITS,
        /// Lengths of its uninterrupted stays on a CPU.
        slice: Distribution = slice::OF_TASK,
        /// Whether its figures may be wrong: events were lost while it lived, or do not fit
        /// together.
        is_uncertain: bool = losses::IS_UNCERTAIN,
        /// Whether it lived before the recording began: it has neither response nor turnaround, and
        /// what it did before its first event is in no figure.
        is_release_unseen: bool = task::IS_RELEASE_UNSEEN,
        /// Whether it only forks others and waits for them: it is no part of the workload's work.
        is_launcher: bool = task::IS_LAUNCHER,
    }
}

measures! {
    /// Measures of the whole run.
    RunTotals of RunFacts<'_> {
        /// End of the run.
        end_ns: u64 = census::END,
        /// Tasks seen, launchers left out.
        nr_tasks: u64 = census::TASKS,
        /// Tasks that only fork others and wait for them. They stand among the tasks but in none of
        /// the totals about response, turnaround, makespan, throughput, run delay and the Jain
        /// index.
        nr_launchers: u64 = census::LAUNCHERS,
        /// Tasks that exited.
        nr_exited: u64 = census::EXITED,
        /// First release to last exit; `None` while a task is alive.
        makespan_ns: Option<u64> = makespan::OF_RUN,
        /// Last begin of a phase to last exit; `None` without phases and while a task is alive.
        last_phase_ns: Option<u64> = makespan::LAST_PHASE,
        /// Exited tasks a second of makespan (or of the run, while a task is alive).
        throughput_per_s: Option<f64> = throughput::OF_RUN,
        /// Busy CPU time by (CPUs x makespan, or run time while a task is alive), 0 to 1.
        utilisation: Option<f64> = utilisation::OF_RUN,
        /// Jain's index of the tasks' CPU time, 1/n to 1; `None` without CPU time.
        jain_index: Option<f64> = jain_index::OF_RUN,
        /// CPU time of all tasks.
        cpu_time_ns: u64 = slice::CPU_TIME_OF_RUN,
        /// The part of it in user mode; `None`: not known.
        user_time_ns: Option<u64> = user_system::USER_OF_RUN,
        /// The part of it in the kernel; `None`: not known.
        system_time_ns: Option<u64> = user_system::SYSTEM_OF_RUN,
        /// CPU time that the machine had during the makespan and no task of the run used; `None`
        /// while a task is alive.
        idle_capacity_ns: Option<i64> = idle_capacity::OF_RUN,
        /// Study S2's "wait time" as its text has it; `None` while a task is alive, or where user
        /// and system time are not known.
        wait_as_reported_ns: Option<i64> = wait_as_reported::OF_RUN,
        /// Run delay of all tasks.
        run_delay_ns: u64 = run_delay::OF_RUN,
        /// Switches to or from a task.
        nr_switches: u64 = switches::OF_RUN,
        /// Voluntary switches.
        nr_voluntary_switches: u64 = switches::VOLUNTARY_OF_RUN,
        /// Involuntary switches.
        nr_involuntary_switches: u64 = switches::INVOLUNTARY_OF_RUN,
        /// Moves between CPUs; `None` without a trace.
        nr_migrations: Option<u64> = migrations::OF_RUN,
        /// Events lost by the recorder.
        nr_lost_events: u64 = losses::LOST,
        /// Events that contradict what came before; 0 in a complete trace.
        nr_inconsistent_events: u64 = losses::INCONSISTENT,
        /// Tasks with `is_uncertain`.
        nr_uncertain_tasks: u64 = losses::UNCERTAIN_TASKS,
        /// Mean over exited tasks; `None` if none has.
        turnaround_ns_mean: Option<u64> = turnaround::MEAN,
        /// Mean over tasks that ran; `None` if none did.
        response_ns_mean: Option<u64> = response::MEAN,
        /// Over all tasks.
        turnaround: Distribution = turnaround::OVER_JOBS,
        /// Over all tasks.
        response: Distribution = response::OVER_JOBS,
        /// Over all tasks' run delays.
        run_delay: Distribution = run_delay::OVER_JOBS,
        /// Over all wake-ups of all tasks.
        wakeup_latency: Distribution = wakeup_latency::OF_RUN,
        /// Over all single waits of all tasks.
        wait: Distribution = run_delay::ALL_WAITS,
        /// Over all slices of all tasks.
        slice: Distribution = slice::OF_RUN,
    }
}

/// Everything measured in one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMeasures {
    /// The whole run.
    pub totals: RunTotals,
    /// What only the simulator knows; absent in every other lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelCounters>,
    /// Each task, by id.
    pub tasks: Vec<TaskMeasures>,
}

impl RunMeasures {
    /// Every number of the run with its name and unit: the totals, then the simulator's counters,
    /// which have no value in the other lanes.
    pub fn numbers(&self) -> Vec<(String, Unit, Option<Number>)> {
        let counters = self.model.unwrap_or_default().numbers().into_iter();
        let counters = counters
            .map(|(name, unit, number)| (name, unit, number.filter(|_| self.model.is_some())));
        self.totals.numbers().into_iter().chain(counters).collect()
    }

    /// The number of the run of that name. The outer `None`: there is no such measure.
    pub fn number(&self, name: &str) -> Option<Option<Number>> {
        let of_model = || {
            let known = self.model.unwrap_or_default().number(name)?;
            Some(known.filter(|_| self.model.is_some()))
        };
        self.totals.number(name).or_else(of_model)
    }
}
