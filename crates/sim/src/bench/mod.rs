// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the simulator is: what a measured job gives, and how long to simulate it.
//!
//! A job is measured in a process of its own, whose CPU time and memory belong to that job alone:
//! who starts the processes is the caller's affair. `length` finds the simulated time for a number
//! of switches.

pub mod length;

use schedlab_metrics::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast a job was. Rates are per second of CPU time (user and system) of the whole process,
/// start-up included, unless their name begins with `run_`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BenchResult {
    /// Version of schedlab.
    pub schedlab_version: String,
    /// Name in benchmarks/jobs.json.
    pub job: String,
    /// What the job is.
    pub text: String,
    /// Scheduler.
    pub scheduler: String,
    /// `none`, or `binary`: the own log, written to a file.
    pub trace: String,
    /// Name of the modelled machine; empty in results of before it could be chosen: flat.
    #[serde(default)]
    pub machine: String,
    /// CPUs of the modelled machine.
    pub nr_cpus: u32,
    /// Tasks.
    pub nr_tasks: u64,
    /// Ticks a second of the modelled kernel.
    pub hz: u32,
    /// Simulated time, ns.
    pub simulated_ns: u64,
    /// Dispatches: changes of what a CPU runs, to idle included.
    pub nr_switches: u64,
    /// Ticks that busy CPUs took.
    pub nr_ticks: u64,
    /// Records of the trace, written or not.
    pub nr_records: u64,
    /// What `events_per_cpu_s` counts: trace records and ticks. Every switch is one record.
    pub nr_events: u64,
    /// Queue entries beyond the first that picks looked at, as the scheduler counts them: what
    /// `pick_entry_ns` is charged for. 0 in results of before it was told.
    #[serde(default)]
    pub nr_entries_scanned: u64,
    /// Length of the trace file; 0 without one.
    pub trace_bytes: u64,
    /// CPU time of the whole process, s: median of the repetitions, as is all that follows.
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
    /// With `--curve pick`: what the second half of the run took, in which no task starts.
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

/// The difference between a run and one of half the time: start-up of program and tasks is in both.
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
    /// Queue entries beyond the first that picks looked at, for each switch.
    pub entries_per_switch: f64,
}

impl BenchResult {
    /// Fills in the rates from counts and times.
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

    /// The medians of several processes that measured the same; one at least.
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

    /// What this run has beyond `half` of it; nothing if that is no switch.
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
