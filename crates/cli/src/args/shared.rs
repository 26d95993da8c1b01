// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that several commands have: the workload, the machine, the output.

use crate::complete;
use crate::error::{CliError, CliResult};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use schedlab_model::{Nanos, Policy};
use schedlab_scx_source::SourceOptions;
use std::path::PathBuf;

/// The workload, and the options that change it.
#[derive(Clone, Debug, Args)]
pub struct WorkloadArgs {
    /// Set a parameter of the workload, such as n=4 (repeatable)
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Policy of tasks that name none: other, batch, idle, fifo, rr
    #[arg(long, value_name = "POLICY", value_parser = crate::input::policy)]
    pub policy: Option<Policy>,
    /// Real-time priority for --policy fifo and rr, 1 to 99
    #[arg(long, hide_short_help = true, value_name = "N",
          value_parser = clap::value_parser!(u8).range(1..=99), requires = "policy")]
    pub priority: Option<u8>,
    /// Nice value of tasks that set none, -20 to 19
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(i8).range(-20..=19), allow_hyphen_values = true)]
    pub nice: Option<i8>,
    /// Seed of every random draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// End the run at this time, such as 500ms [default: the workload's end]
    ///
    /// A workload that never ends stops after 10 s of simulated time, or 30 s on this machine.
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub until: Option<Nanos>,
}

/// The modelled machine.
#[derive(Clone, Debug, Args)]
pub struct MachineArgs {
    /// Modelled machine: a preset, host, or a file
    ///
    /// `schedlab list machines` lists the presets; `host` is a model of this machine; files are
    /// .toml or .json. Without it, CPUs are equal and have no caches.
    #[arg(long, value_name = "MACHINE",
          add = ArgValueCompleter::new(complete::machines))]
    pub machine: Option<String>,
    /// Timer ticks a second: 100, 250, 300 or 1000 [default: the machine's, or 250]
    #[arg(long, hide_short_help = true, value_parser = crate::input::hz)]
    pub hz: Option<u32>,
    /// Preemption model: none, voluntary, full or lazy
    ///
    /// The default is the machine's, or the scheduler's.
    /// Decides when a CPU acts on a request to reschedule. Without --machine, a Linux model has the
    /// preemption model of Debian's kernel, and a textbook scheduler has `full`.
    #[arg(long, hide_short_help = true, value_name = "MODEL",
          value_parser = schedlab_run::machine::preempt_by_name)]
    pub preempt: Option<schedlab_model::Preempt>,
    /// Costs: zero, default or a file [default: the machine's]
    ///
    /// What switches, ticks, wake-ups and other acts of the kernel cost.
    /// `zero`, `default`, or a file written by `schedlab calibrate`. Without --machine, textbook
    /// schedulers have no costs and all others have the default ones.
    #[arg(long, value_name = "COSTS")]
    pub costs: Option<String>,
    /// Set a tunable, such as quantum=10ms (repeatable)
    ///
    /// `linux-6.12:base_slice=3ms` sets it for one of several schedulers only.
    #[arg(long = "set", short = 's', value_name = "NAME=VALUE")]
    pub tunables: Vec<String>,
    /// Threads to simulate on [default: one for each CPU]
    ///
    /// The number of threads does not change results.
    #[arg(long, short = 'j', hide_short_help = true, visible_alias = "jobs", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Fail when a runnable task has waited this long
    ///
    /// `auto` is 30s under schedulers that claim to starve no task, and `off` under others.
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "auto",
          value_parser = crate::input::watchdog)]
    pub watchdog: schedlab_sim::Watchdog,
    /// Options for compiling a .bpf.c.
    #[command(flatten)]
    pub scx: ScxArgs,
}

/// Options for compiling a native scheduler (`--scheduler ./my_sched.bpf.c`).
#[derive(Clone, Debug, Default, Args)]
pub struct ScxArgs {
    /// Extra include directory for a .bpf.c, searched first (repeatable)
    ///
    /// The nearest directory `include` with the headers of sched_ext, next to the scheduler or
    /// above it, is always searched.
    #[arg(long = "scx-include", hide_short_help = true, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Extra source file of a .bpf.c (repeatable)
    ///
    /// The files that a build.rs above the scheduler links to it are always compiled.
    #[arg(long = "scx-source", hide_short_help = true, value_name = "FILE")]
    pub source: Vec<PathBuf>,
    /// Define a macro for a .bpf.c (repeatable)
    #[arg(long = "scx-define", short = 'D', hide_short_help = true, value_name = "NAME[=VALUE]",
          value_parser = schedlab_scx_source::check_define)]
    pub define: Vec<String>,
    /// Setup of a .bpf.c: what its user program would set
    ///
    /// [default: NAME.setup.toml next to NAME.bpf.c, or the built-in setup of its name]
    #[arg(long = "scx-setup", hide_short_help = true, value_name = "FILE")]
    pub setup: Option<PathBuf>,
    /// Check every load and store of a simulated .bpf.c
    ///
    /// Without checks, a bug of the scheduler can change results or crash the program.
    #[arg(long = "scx-checks", hide_short_help = true, value_enum, default_value_t)]
    pub checks: ScxChecks,
}

/// Whether loads and stores of a simulated .bpf.c are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ScxChecks {
    /// An access out of bounds ends the run with an error
    #[default]
    On,
    /// The scheduler runs faster, and is trusted
    Off,
}

impl ScxArgs {
    /// The options as the compilers take them.
    pub fn options(&self) -> SourceOptions {
        SourceOptions {
            include: self.include.clone(),
            sources: self.source.clone(),
            defines: self.define.clone(),
        }
    }

    /// The options for a kernel, which has its own checks.
    pub fn options_for_kernel(&self) -> CliResult<SourceOptions> {
        if self.checks != ScxChecks::default() {
            return Err(CliError::usage_help(
                "--scx-checks is for simulated schedulers",
                "in a kernel the verifier checks every program before it is loaded",
            ));
        }
        Ok(self.options())
    }

    /// The options for a command that applies no setup.
    pub fn options_without_setup(&self) -> CliResult<SourceOptions> {
        match &self.setup {
            None => self.options_for_kernel(),
            Some(_) => Err(CliError::usage_help(
                "--scx-setup is for runs of a scheduler",
                "`schedlab sim`, `vm`, `load` and `scx verify` apply setups",
            )),
        }
    }
}

/// What a command prints about its runs or traces.
#[derive(Debug, Default, Args)]
pub struct PrintArgs {
    /// Print the result as JSON; several results make an array
    #[arg(long, conflicts_with = "slices")]
    pub json: bool,
    /// Keep the timeline and the progress in the JSON
    #[arg(long, hide_short_help = true, requires = "json")]
    pub keep: bool,
    /// Print each slice as a line of JSON: who ran where and when
    #[arg(long, conflicts_with = "analysis")]
    pub slices: bool,
}

/// Where the trace of a run is written.
#[derive(Debug, Default, Args)]
pub struct TraceArgs {
    /// The trace file.
    #[arg(long = "trace", id = "trace", value_name = "FILE",
          help = crate::commands::help_of_trace())]
    pub file: Option<PathBuf>,
    /// Omit the counters from a Perfetto trace: a smaller file, a faster run
    #[arg(long, hide_short_help = true, requires = "trace")]
    pub no_counters: bool,
}

/// What a command prints and writes.
#[derive(Debug, Default, Args)]
pub struct OutputArgs {
    /// What stdout gets.
    #[command(flatten)]
    pub print: PrintArgs,
    /// The trace.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Measures to show, separated by commas; all: every one
    ///
    /// `schedlab list measures` lists them. Without it the table has the usual ones, as many as the
    /// terminal is wide.
    #[arg(long, value_delimiter = ',', value_name = "MEASURE", hide_short_help = true,
          add = ArgValueCompleter::new(complete::measures))]
    pub columns: Vec<String>,
    /// Write every figure as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// The analysis.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
}
