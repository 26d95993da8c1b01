// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader knows about a trace in addition to its tasks and events.

use super::WakeSource;
use schedlab_model::{Nanos, TaskId};

/// Which tool recorded or printed a trace of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// tracefs: `trace` or `trace_pipe`.
    #[default]
    Ftrace,
    /// `trace-cmd report`.
    TraceCmd,
    /// `perf script` or `perf sched script`.
    Perf,
}

/// What a reader knows about a trace in addition to its tasks and events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Which tool recorded or printed it; `None` for the project's own formats.
    pub dialect: Option<Dialect>,
    /// CPUs of the machine, if the trace has their number; else the greatest CPU seen + 1.
    pub nr_cpus: u32,
    /// Whether `nr_cpus` is what the trace says.
    pub is_nr_cpus_stated: bool,
    /// Lines (text) or records read.
    pub nr_records: u64,
    /// Events handed to the sink.
    pub nr_events: u64,
    /// Tasks announced to the sink.
    pub nr_tasks: u64,
    /// Time of the first event by the trace's own clock (ns).
    pub start_clock_ns: Nanos,
    /// End of the trace (ns from its start).
    pub end_ns: Nanos,
    /// Whether the project itself recorded it: it holds the run from its start to its end.
    pub is_own: bool,
    /// Events of kinds that tell nothing of scheduling.
    pub nr_other_events: u64,
    /// Lines that hold no event, heads and comments not counted.
    pub nr_other_lines: u64,
    /// The first of them: its number and its text.
    pub other_line: Option<(u64, String)>,
    /// Switches.
    pub nr_switches: u64,
    /// Switches whose task was not seen to come to the CPU: at least so many are missing.
    pub nr_missing_switches: u64,
    /// Events that the recorder lost, as far as it counted them.
    pub nr_lost_events: u64,
    /// Times that the recorder reported a loss.
    pub nr_losses: u64,
    /// Events that the ring buffer had overwritten before it was read (ftrace's head).
    pub nr_overwritten_events: u64,
    /// Lines with a time before that of the line above; they are taken at the latest time.
    pub nr_times_back: u64,
    /// How far back, at most (ns).
    pub back_ns_max: Nanos,
    /// Whether the times are whole numbers without a point: taken as nanoseconds.
    pub is_clock_unknown: bool,
    /// Whether the last line was cut off; it is left out.
    pub is_cut_off: bool,
    /// Which events wake tasks; [`WakeSource::Wakeup`] for the project's own formats.
    pub wakes: WakeSource,
    /// Last name of each task that had several.
    pub last_names: Vec<(TaskId, String)>,
    /// Process of each task of which the trace tells it: the id of its first thread (tgid).
    pub processes: Vec<(TaskId, u32)>,
}

impl Facts {
    /// The last names by task, empty where there was one only: what [`read`] takes as `names`.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (task, name) in &self.last_names {
            names.resize(names.len().max(task.index() + 1), String::new());
            names[task.index()].clone_from(name);
        }
        names
    }
}
