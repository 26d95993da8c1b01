// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes measures from a trace. Each measure has a file that declares and computes it. This file
//! lists them.
//!
//! A new measure is a file and a line of a list below. A measure that may have no value is an
//! `Option`. 0 always means a measured 0.
//!
//! All times are nanoseconds. Floating point appears only here, at output, never where something is
//! decided. [`Collector`] computes [`RunMeasures`] from a stream of events; [`totals::summarise`]
//! computes the totals of tasks that were measured another way; [`stats`] summarises repetitions.
//! The crate builds for wasm32 and reads no file, clock or environment.

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
    /// Measures of one task. `None`: it did not happen before the run ended, or is unknown.
    TaskMeasures of TaskFacts<'_> {
        /// Number in the run.
        id: u32 = task::ID,
        /// Name.
        name: String = task::NAME,
        /// Index of its description in the workload.
        spec: Option<u32> = task::SPEC,
        /// Process id on the host; `None` in the simulator.
        pid: Option<u32> = task::PID,
        /// Release time; with `is_release_unseen` the time of the first event.
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
        /// The part of the CPU time in user mode, as the kernel splits it; `None`: unknown.
        user_time_ns: Option<u64> = user_system::USER,
        /// The part of the CPU time in the kernel; `None`: unknown.
        system_time_ns: Option<u64> = user_system::SYSTEM,
        /// Time runnable but not running.
        run_delay_ns: u64 = run_delay::OF_TASK,
        /// Time asleep (timers, other tasks); `None` without a trace.
        sleep_ns: Option<u64> = states::SLEEP,
        /// Time waiting for a device; `None` without a trace.
        blocked_io_ns: Option<u64> = states::BLOCKED_IO,
        /// Time that no event explains, because events were lost; 0 in a complete trace.
        unaccounted_ns: Option<u64> = states::UNACCOUNTED,
        /// Part of the CPU time that all tasks of the run got, 0 to 1.
        cpu_share: Option<f64> = cpu_share::OF_TASK,
        /// Voluntary switches, counted by the kernel's rule (nvcsw).
        nr_voluntary_switches: u64 = switches::VOLUNTARY,
        /// Involuntary switches (nivcsw).
        nr_involuntary_switches: u64 = switches::INVOLUNTARY,
        /// Migrations between CPUs; `None` without a trace.
        nr_migrations: Option<u64> = migrations::OF_TASK,
        /// Wake-ups, without the release; `None` without a trace.
        nr_wakeups: Option<u64> = wakeup_latency::WAKEUPS,
        /// Units of progress finished.
        nr_progress: u64 = task::PROGRESS,
        /// Times from a wake-up until the task runs.
        wakeup_latency: Distribution = wakeup_latency::OF_TASK,
        /// Its single waits on a run queue, whatever started them. Their sum is the run delay.
        wait: Distribution = run_delay::WAITS,
        /// Its slices: uninterrupted stays on a CPU.
        slice: Distribution = slice::OF_TASK,
        /// Whether its figures may be wrong: events were lost while it lived, or contradict each
        /// other.
        is_uncertain: bool = losses::IS_UNCERTAIN,
        /// Whether it lived before the recording began. It then has neither response nor
        /// turnaround, and its figures leave out what it did before its first event.
        is_release_unseen: bool = task::IS_RELEASE_UNSEEN,
        /// Whether it only forks other tasks and waits for them, so that it does none of the
        /// workload's work.
        is_launcher: bool = task::IS_LAUNCHER,
    }
}

measures! {
    /// Measures of the whole run.
    RunTotals of RunFacts<'_> {
        /// End of the run.
        end_ns: u64 = census::END,
        /// Tasks, launchers left out.
        nr_tasks: u64 = census::TASKS,
        /// Tasks that only fork other tasks and wait for them. They are listed as tasks, but left
        /// out of the totals about response, turnaround, makespan, throughput, run delay and the
        /// Jain index.
        nr_launchers: u64 = census::LAUNCHERS,
        /// Tasks that exited.
        nr_exited: u64 = census::EXITED,
        /// First release to last exit; `None` while a task is alive.
        makespan_ns: Option<u64> = makespan::OF_RUN,
        /// Start of the last phase to last exit; `None` without phases or while a task is alive.
        last_phase_ns: Option<u64> = makespan::LAST_PHASE,
        /// Exited tasks per second of makespan (or of the run, while a task is alive).
        throughput_per_s: Option<f64> = throughput::OF_RUN,
        /// CPU time of the tasks, divided by the number of CPUs times the makespan (or the run,
        /// while a task is alive), 0 to 1.
        utilisation: Option<f64> = utilisation::OF_RUN,
        /// Jain's index of the tasks' CPU time, 1/n to 1; `None` without CPU time.
        jain_index: Option<f64> = jain_index::OF_RUN,
        /// CPU time of all tasks.
        cpu_time_ns: u64 = slice::CPU_TIME_OF_RUN,
        /// The part of the CPU time in user mode; `None`: unknown.
        user_time_ns: Option<u64> = user_system::USER_OF_RUN,
        /// The part of the CPU time in the kernel; `None`: unknown.
        system_time_ns: Option<u64> = user_system::SYSTEM_OF_RUN,
        /// CPU time that the machine had during the makespan and no task of the run used; `None`
        /// while a task is alive.
        idle_capacity_ns: Option<i64> = idle_capacity::OF_RUN,
        /// The "wait time" of study S2, by the formula in its text; `None` while a task is alive,
        /// or if user and system time are unknown.
        wait_as_reported_ns: Option<i64> = wait_as_reported::OF_RUN,
        /// Run delay of all tasks.
        run_delay_ns: u64 = run_delay::OF_RUN,
        /// Switches to or from a task.
        nr_switches: u64 = switches::OF_RUN,
        /// Voluntary switches.
        nr_voluntary_switches: u64 = switches::VOLUNTARY_OF_RUN,
        /// Involuntary switches.
        nr_involuntary_switches: u64 = switches::INVOLUNTARY_OF_RUN,
        /// Migrations between CPUs; `None` without a trace.
        nr_migrations: Option<u64> = migrations::OF_RUN,
        /// Events lost by the recorder.
        nr_lost_events: u64 = losses::LOST,
        /// Events that contradict earlier ones; 0 in a complete trace.
        nr_inconsistent_events: u64 = losses::INCONSISTENT,
        /// Tasks with `is_uncertain`.
        nr_uncertain_tasks: u64 = losses::UNCERTAIN_TASKS,
        /// Mean over tasks that exited; `None` if none did.
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
    /// Counters that only the simulator has; `None` in other lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelCounters>,
    /// Each task, by id.
    pub tasks: Vec<TaskMeasures>,
}

impl RunMeasures {
    /// Every number of the run with its name and unit: the totals, then the simulator's counters.
    /// The latter have no value in other lanes.
    pub fn numbers(&self) -> Vec<(String, Unit, Option<Number>)> {
        let counters = self.model.unwrap_or_default().numbers().into_iter();
        let counters = counters
            .map(|(name, unit, number)| (name, unit, number.filter(|_| self.model.is_some())));
        self.totals.numbers().into_iter().chain(counters).collect()
    }

    /// The number with this name. The outer `None`: there is no such measure.
    pub fn number(&self, name: &str) -> Option<Option<Number>> {
        let of_model = || {
            let known = self.model.unwrap_or_default().number(name)?;
            Some(known.filter(|_| self.model.is_some()))
        };
        self.totals.number(name).or_else(of_model)
    }
}
