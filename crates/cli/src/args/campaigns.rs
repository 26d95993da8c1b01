// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the commands that make many runs: `compare`, `reproduce`, `validate`.

use super::{MachineArgs, WorkloadArgs};
use crate::complete;
use crate::input::Cpus;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;
use schedlab_lab::store::Begin;
use schedlab_run::{LaneKind, Variant};
use std::path::{Path, PathBuf};

/// Examples for the help of `compare`.
pub(super) const EXAMPLES_COMPARE: &str = "Examples:
  schedlab compare hogs:n=3 --scheduler rr,fcfs,linux-6.12
  schedlab compare hogs:n=4 --scheduler rr --set quantum=1ms,10ms,100ms --report report.html
  schedlab compare sched --scheduler old.bpf.c,new.bpf.c --repetitions 20 --markdown
  schedlab compare --host OTHER,FIFO,nice=5 --cpus 1 -- ./prime 10000
  schedlab compare sched:n=4 --scheduler linux-6.12 --host OTHER,FIFO --repetitions 5 \\
      --report report.html
  schedlab compare hogs --scheduler linux-6.12 --vm 6.12 --machine guest-counted --repetitions 5
  schedlab compare experiment.toml --jobs 4 --output results/   (can be stopped and resumed)
  schedlab compare experiment.toml --dry-run
  schedlab compare --manifest results/manifest.json

An experiment file names schedulers, workloads, parameters, machines and seeds. `schedlab schema
experiment` prints its schema, docs/guide/compare-schedulers.md walks through one.";

/// Examples for the help of `reproduce`.
pub(super) const EXAMPLES_REPRODUCE: &str = "Examples:
  schedlab reproduce --quick                    (all studies in a few minutes)
  schedlab reproduce S0 S1 --details            (every number with its interval)
  schedlab reproduce S4 --lane sim --json | jq '.[] | {id, verdict}'
  schedlab reproduce my-study.toml

The same command resumes where it was stopped. A claim HOLDS if the confidence interval of each of
its numbers is within the bounds that the study's file sets. Only measured numbers count.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Built-in workload, workload file, or experiment file (.toml); omit it to run a command
    #[arg(required_unless_present_any = ["manifest", "command"], conflicts_with = "command",
          add = ArgValueCompleter::new(complete::workloads))]
    pub workload: Option<String>,
    /// Schedulers to simulate, separated by commas
    ///
    /// A policy of tasks and tunables follow after colons: `linux-6.12:FIFO`, `rr:quantum=3ms`.
    #[arg(long, short = 'S', visible_alias = "schedulers", value_delimiter = ',',
          value_name = "NAME", add = ArgValueCompleter::new(complete::schedulers))]
    pub scheduler: Vec<String>,
    /// Policies to measure on this machine, such as OTHER,FIFO,nice=5
    ///
    /// A policy, `nice=N`, `slice=TIME` (Linux 6.12 and later) or `weight=N` (cpu.weight of a
    /// control group for the run), or several joined by +: `BATCH+nice=5`. A command without --host
    /// runs under OTHER, BATCH and FIFO.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    pub host: Vec<Variant>,
    /// Kernels to measure in virtual machines, such as 6.12,6.18:wrr
    ///
    /// `KERNEL:SCHEDULER` loads a sched_ext scheduler (see `schedlab vm`).
    #[arg(long, value_delimiter = ',', value_name = "KERNEL",
          add = ArgValueCompleter::new(complete::kernels))]
    pub vm: Vec<String>,
    /// CPUs, modelled and real, such as 2 or 0-1 [default: 1; command: all]
    ///
    /// A number takes the first ones; a list names those of this machine.
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::cpus)]
    pub cpus: Option<Cpus>,
    /// Runs, each with the next seed [default: 1, on this machine 3]
    ///
    /// Those of a kernel show how much it varies by itself, and whether its model is within that
    /// range: 5 or more. In virtual machines all but the first also start 20 to 80 us later.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: Option<u32>,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Print the results as JSON; for an experiment file, the tables
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print the comparison as Markdown, for the summary of a pull request
    #[arg(long)]
    pub markdown: bool,
    /// Keep the timeline and the progress in the JSON
    #[arg(long, hide_short_help = true, requires = "json")]
    pub keep: bool,
    /// Measures to show, separated by commas; all: every one
    ///
    /// `schedlab list measures` lists them. Without it the table has the usual ones, as many as the
    /// terminal is wide.
    #[arg(long, value_delimiter = ',', value_name = "MEASURE", hide_short_help = true,
          add = ArgValueCompleter::new(complete::measures))]
    pub columns: Vec<String>,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Options of the analysis. For one workload, its results go into the JSON and the report.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
    /// Options for experiment files only.
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Number of copies of the command, started together
    #[arg(short = 'n', long = "copies", value_name = "N", requires = "command",
          hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub copies: Option<u32>,
    /// Command to run on this machine and its arguments, after --
    #[arg(last = true, value_name = "COMMAND",
          conflicts_with_all = ["scheduler", "vm", "manifest"])]
    pub command: Vec<std::ffi::OsString>,
}

/// Options that only an experiment file or a manifest has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment files and manifests")]
pub struct SweepArgs {
    /// Directory for the results [default: the file's name with .results]
    ///
    /// If it holds results of the same experiment, the command resumes there.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// List the runs without running them
    #[arg(long, hide_short_help = true)]
    pub dry_run: bool,
    /// Resume; fail if the directory holds no results
    #[arg(long, hide_short_help = true, conflicts_with = "fresh")]
    pub resume: bool,
    /// Delete the results that the directory holds first
    #[arg(long, hide_short_help = true)]
    pub fresh: bool,
    /// Run only the runs of this lane
    #[arg(long, hide_short_help = true, value_parser = lane())]
    pub lane: Option<LaneKind>,
    /// Maximum number of runs that a file may ask for
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub runs_max: u32,
    /// Write every figure as SVG into the directory plots of the results
    #[arg(long, hide_short_help = true)]
    pub plots: bool,
    /// Repeat the experiment of a manifest.json and compare the results
    #[arg(long, hide_short_help = true, value_name = "FILE",
          conflicts_with_all = ["workload", "fresh", "resume", "lane"])]
    pub manifest: Option<PathBuf>,
}

/// Parser for the lanes in which a study's runs happen.
pub fn lane() -> impl TypedValueParser<Value = LaneKind> {
    let about = |lane: LaneKind| match lane {
        LaneKind::Sim => "Simulated only",
        LaneKind::Host => "On this machine only",
        LaneKind::Vm => "On real kernels in virtual machines only",
    };
    let value = |lane: LaneKind| PossibleValue::new(lane.name()).help(about(lane));
    PossibleValuesParser::new(LaneKind::ALL.map(value)).try_map(|name| name.parse::<LaneKind>())
}

/// Where `reproduce` and `validate` write their verdicts and runs, and what they print.
#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// Directory for report.html, verdicts and runs
    ///
    /// The same command continues with the runs that the directory holds. The default is
    /// `reproduction` or `validation`, after the command.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Delete the runs that the directory holds first
    #[arg(long)]
    pub fresh: bool,
    /// Print the numbers behind each verdict
    #[arg(long)]
    pub details: bool,
    /// Print the verdicts as JSON
    #[arg(long, conflicts_with = "details")]
    pub json: bool,
}

impl VerdictArgs {
    /// The output directory: `--output`, or the command's own default.
    pub fn folder(&self, own: &'static str) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(own))
    }

    /// Whether to continue with the stored runs or, under `--fresh`, to delete them first.
    pub fn begin(&self) -> Begin {
        if self.fresh { Begin::Fresh } else { Begin::Any }
    }
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Studies by name, or files [default: all built-in studies]
    #[arg(value_name = "STUDY|FILE")]
    pub studies: Vec<String>,
    /// Fewer points and repetitions: minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// Run only these lanes, separated by commas
    #[arg(long, value_parser = lane(), value_delimiter = ',')]
    pub lane: Vec<LaneKind>,
    /// Options for the verdicts.
    #[command(flatten)]
    pub verdicts: VerdictArgs,
    /// Runs on this machine [default: as the studies say]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Seed of every random draw and of the order of runs here
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write every figure as SVG into the directory plots
    #[arg(long)]
    pub plots: bool,
    /// The analysis.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
}
