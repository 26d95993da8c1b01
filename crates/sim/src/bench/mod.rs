// SPDX-License-Identifier: MIT OR Apache-2.0
//! The speed of the simulator: the result of a measured job, and how long to simulate it.
//!
//! A job is measured in its own process, so that CPU time and memory belong to that job alone. The
//! caller starts the processes. `length` finds the simulated time for a number of switches, `play`
//! is the run that is measured.

pub mod length;
pub mod play;

use schedlab_metrics::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The speed of a job. Rates are per second of CPU time (user and system) of the whole process,
/// start-up included. Rates whose names begin with `run_` leave the start-up out.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BenchResult {
    /// Version of schedlab.
    pub schedlab_version: String,
    /// Name in benchmarks/jobs.json.
    pub job: String,
    /// A description of the job.
    pub text: String,
    /// Scheduler.
    pub scheduler: String,
    /// `none`, or `binary`: schedlab's own log, written to a file.
    pub trace: String,
    /// Name of the modelled machine; empty (flat) in results of older versions.
    #[serde(default)]
    pub machine: String,
    /// CPUs of the modelled machine.
    pub nr_cpus: u32,
    /// Tasks.
    pub nr_tasks: u64,
    /// Ticks per second of the modelled kernel.
    pub hz: u32,
    /// Simulated time, ns.
    pub simulated_ns: u64,
    /// Switches of what a CPU runs, those to idle included.
    pub nr_switches: u64,
    /// Ticks that busy CPUs took.
    pub nr_ticks: u64,
    /// Records of the trace, written or not.
    pub nr_records: u64,
    /// Trace records and ticks, as counted by `events_per_cpu_s`. Every switch is one record.
    pub nr_events: u64,
    /// Queue entries that picks examined, after the first of each, as counted by the scheduler
    /// (`pick_entry_ns` is charged for each). 0 in results of older versions.
    #[serde(default)]
    pub nr_entries_scanned: u64,
    /// Length of the trace file; 0 without one.
    pub trace_bytes: u64,
    /// CPU time of the whole process (s). This and all following times are medians of the
    /// repetitions.
    pub cpu_s: f64,
    /// Part of it outside the simulation: loading the program, reading the job, compiling a
    /// `.bpf.c` that is not in the cache.
    pub start_up_cpu_s: f64,
    /// Switches per second of CPU time, start-up included.
    pub switches_per_cpu_s: f64,
    /// Events per second of CPU time, start-up included.
    pub events_per_cpu_s: f64,
    /// Trace records per second of CPU time, start-up included.
    pub records_per_cpu_s: f64,
    /// CPU time of the simulation alone, s.
    pub run_cpu_s: f64,
    /// Switches per second of CPU time of the simulation alone.
    pub run_switches_per_cpu_s: f64,
    /// Events per second of CPU time of the simulation alone.
    pub run_events_per_cpu_s: f64,
    /// With `--curve pick`: the second half of the run, in which no task starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// Greatest resident memory of the process (VmHWM), bytes.
    pub max_rss_bytes: u64,
    /// Processes that were measured.
    pub nr_repetitions: u32,
    /// Model of the CPU that did it.
    pub cpu_model: String,
    /// Kernel of the machine that did it.
    pub kernel: String,
}

/// The difference between a run and one of half its length. It contains no start-up of program or
/// tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// Switches.
    pub nr_switches: u64,
    /// Ticks.
    pub nr_ticks: u64,
    /// CPU time, s.
    pub cpu_s: f64,
    /// CPU time for each switch, ticks in between included, ns.
    pub ns_per_switch: f64,
    /// Queue entries that picks examined after the first of each, per switch.
    pub entries_per_switch: f64,
}

impl BenchResult {
    /// Computes the rates from counts and times.
    pub fn with_rates(mut self) -> Self {
        // The kernel counts CPU time in microseconds; 0 would make a rate infinite.
        let rate = |count: u64, seconds: f64| count as f64 / seconds.max(1e-6);
        self.switches_per_cpu_s = rate(self.nr_switches, self.cpu_s);
        self.events_per_cpu_s = rate(self.nr_events, self.cpu_s);
        self.records_per_cpu_s = rate(self.nr_records, self.cpu_s);
        self.run_switches_per_cpu_s = rate(self.nr_switches, self.run_cpu_s);
        self.run_events_per_cpu_s = rate(self.nr_events, self.run_cpu_s);
        self
    }

    /// The medians of several measurements of the same job; at least one.
    pub fn median(results: &[Self]) -> Self {
        let median =
            |of: fn(&Self) -> f64| stats::median(&results.iter().map(of).collect::<Vec<_>>());
        Self {
            cpu_s: median(|r| r.cpu_s),
            start_up_cpu_s: median(|r| r.start_up_cpu_s),
            run_cpu_s: median(|r| r.run_cpu_s),
            max_rss_bytes: median(|r| r.max_rss_bytes as f64) as u64,
            nr_repetitions: results.len() as u32,
            ..results[0].clone()
        }
        .with_rates()
    }

    /// The difference between this run and `half` of it; `None` if it has no switch.
    pub fn beyond(&self, half: &Self) -> Option<Steady> {
        let nr_switches = self.nr_switches.checked_sub(half.nr_switches).filter(|nr| *nr > 0)?;
        let entries = self.nr_entries_scanned.saturating_sub(half.nr_entries_scanned);
        let cpu_s = (self.run_cpu_s - half.run_cpu_s).max(0.0);
        Some(Steady {
            nr_switches,
            nr_ticks: self.nr_ticks.saturating_sub(half.nr_ticks),
            cpu_s,
            ns_per_switch: cpu_s * 1e9 / nr_switches as f64,
            entries_per_switch: entries as f64 / nr_switches as f64,
        })
    }
}
