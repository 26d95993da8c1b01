// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as types. `-h` prints one line for each option; `--help` prints the long text
//! and examples.

mod campaigns;
mod files;
mod runs;
mod shared;
mod tools;

pub use campaigns::{CompareArgs, ReproduceArgs, SweepArgs, VerdictArgs, lane};
pub use files::{AnalyseArgs, ExportArgs, ReportArgs};
pub use runs::{ExplainArgs, RunArgs, SimArgs};
pub use shared::{MachineArgs, OutputArgs, PrintArgs, ScxArgs, ScxChecks, TraceArgs, WorkloadArgs};
pub use tools::{
    BenchArgs, BenchCurve, BenchTrace, CalibrateArgs, CompletionArgs, DoctorArgs, ListArgs, Listed,
    ManArgs, SchemaArgs,
};

use clap::{Parser, Subcommand};

/// A laboratory for Linux CPU schedulers.
///
/// Runs one workload in a simulator of every scheduler that Linux has had, on the running kernel,
/// and on other kernels in virtual machines, and measures all of them alike.
#[derive(Debug, Parser)]
#[command(name = "schedlab", version, propagate_version = true, max_term_width = 100)]
#[command(after_long_help = EXAMPLES_TOP)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES_TOP: &str = "Examples:
  schedlab sim hogs:n=4,work=100ms --scheduler rr,linux-6.12 --cpus 2
  schedlab run -n 10 --policy fifo --cpus 1 -- ./prime 10000
  schedlab compare sched:n=4 --scheduler linux-6.12 --host OTHER --report report.html
  schedlab doctor

Exit codes: 0 success, 1 a check failed, 2 wrong usage or bad input, 3 this machine lacks something.
Results go to stdout, messages to stderr.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List schedulers, workloads, measures, studies and machines
    List(ListArgs),
    /// Simulate a workload under one or more schedulers
    #[command(after_long_help = runs::EXAMPLES_SIM)]
    Sim(SimArgs),
    /// Explain why a task waited, or why a scheduler chose a task
    #[command(after_long_help = runs::EXAMPLES_EXPLAIN)]
    Explain(ExplainArgs),
    /// Ask questions about schedulers, and check answers
    #[command(after_long_help = crate::commands::EXAMPLES_EXERCISE)]
    Exercise(crate::commands::ExerciseArgs),
    /// Grade schedulers that students have written
    #[command(after_long_help = crate::commands::EXAMPLES_GRADE)]
    Grade(Box<crate::commands::GradeArgs>),
    /// Find bugs of a scheduler with random workloads
    #[command(after_long_help = crate::commands::EXAMPLES_CHECK)]
    Check(crate::commands::CheckArgs),
    /// Find the first decision in which two schedulers differ
    #[command(after_long_help = crate::commands::EXAMPLES_DIFF)]
    Diff(Box<crate::commands::DiffArgs>),
    /// Find the first bad one of several schedulers or commits
    #[command(after_long_help = crate::commands::EXAMPLES_BISECT)]
    Bisect(Box<crate::commands::BisectArgs>),
    /// Run a workload, or copies of a command, on the running kernel
    #[command(after_long_help = runs::EXAMPLES_RUN)]
    Run(RunArgs),
    /// Run a workload on other kernels in virtual machines, repeatably
    #[command(after_long_help = runs::EXAMPLES_VM)]
    Vm(Box<crate::commands::VmArgs>),
    /// Fetch, list and remove the kernels for `vm`
    #[command(after_long_help = runs::EXAMPLES_KERNEL)]
    Kernel(crate::commands::KernelArgs),
    /// Build QEMU for guests with several CPUs and a counted clock
    #[command(after_long_help = crate::commands::EXAMPLES_QEMU)]
    Qemu(crate::commands::QemuArgs),
    /// Compare schedulers on one workload, simulated and measured
    #[command(after_long_help = campaigns::EXAMPLES_COMPARE)]
    Compare(Box<CompareArgs>),
    /// Make an HTML report and plots from stored results
    #[command(after_long_help = files::EXAMPLES_REPORT)]
    Report(ReportArgs),
    /// Analyse a recorded trace (ftrace, trace-cmd, perf or schedlab)
    #[command(after_long_help = files::EXAMPLES_ANALYSE, visible_alias = "analyze")]
    Analyse(AnalyseArgs),
    /// Convert a trace, or the timeline of a result, to another format
    #[command(after_long_help = files::EXAMPLES_EXPORT)]
    Export(ExportArgs),
    /// Measure what switches, wake-ups, forks and ticks cost here
    #[command(after_long_help = tools::EXAMPLES_CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Measure the simulator's speed and memory use
    #[command(after_long_help = tools::EXAMPLES_BENCH)]
    Bench(BenchArgs),
    /// Load a sched_ext scheduler into this kernel until Ctrl-C
    #[command(after_long_help = runs::EXAMPLES_LOAD)]
    Load(crate::commands::LoadArgs),
    /// Check schedulers of sched_ext with the verifiers of real kernels
    #[command(after_long_help = crate::commands::EXAMPLES_SCX)]
    Scx(crate::commands::ScxToolArgs),
    /// Show or change the policy of a running task
    #[command(after_long_help = runs::EXAMPLES_ATTACH)]
    Attach(crate::commands::AttachArgs),
    /// Check what this machine can do and what is missing
    Doctor(DoctorArgs),
    /// Repeat the studies' experiments and judge their claims
    #[command(after_long_help = campaigns::EXAMPLES_REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// Compare the models with the kernels they model
    #[command(after_long_help = crate::commands::EXAMPLES_VALIDATE)]
    Validate(crate::commands::ValidateArgs),
    /// Print the JSON schema of an output or input format
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    #[command(after_long_help = tools::EXAMPLES_COMPLETION)]
    Completion(CompletionArgs),
    /// Write the manual pages, one for each command
    #[command(after_long_help = tools::EXAMPLES_MAN)]
    Man(ManArgs),
}
