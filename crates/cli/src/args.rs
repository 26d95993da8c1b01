// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as types. `-h` prints one line for each option; `--help` prints the long text
//! and examples.

use crate::complete;
use crate::error::{CliError, CliResult};
use crate::input::Cpus;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use schedlab_lab::store::Begin;
use schedlab_model::{Nanos, Policy};
use schedlab_run::{LaneKind, Variant};
use schedlab_scx_source::SourceOptions;
use schedlab_trace::Exporter;
use std::path::{Path, PathBuf};

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
    #[command(after_long_help = EXAMPLES_SIM)]
    Sim(SimArgs),
    /// Explain why a task waited, or why a scheduler chose a task
    #[command(after_long_help = EXAMPLES_EXPLAIN)]
    Explain(ExplainArgs),
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
    #[command(after_long_help = EXAMPLES_RUN)]
    Run(RunArgs),
    /// Run a workload on other kernels in virtual machines, repeatably
    #[command(after_long_help = EXAMPLES_VM)]
    Vm(Box<crate::commands::VmArgs>),
    /// Fetch, list and remove the kernels for `vm`
    #[command(after_long_help = EXAMPLES_KERNEL)]
    Kernel(crate::commands::KernelArgs),
    /// Build QEMU for guests with several CPUs and a counted clock
    #[command(after_long_help = crate::commands::EXAMPLES_QEMU)]
    Qemu(crate::commands::QemuArgs),
    /// Compare schedulers on one workload, simulated and measured
    #[command(after_long_help = EXAMPLES_COMPARE)]
    Compare(Box<CompareArgs>),
    /// Make an HTML report and plots from stored results
    #[command(after_long_help = EXAMPLES_REPORT)]
    Report(ReportArgs),
    /// Analyse a recorded trace (ftrace, trace-cmd, perf or schedlab)
    #[command(after_long_help = EXAMPLES_ANALYSE, visible_alias = "analyze")]
    Analyse(AnalyseArgs),
    /// Convert a trace, or the timeline of a result, to another format
    #[command(after_long_help = EXAMPLES_EXPORT)]
    Export(ExportArgs),
    /// Measure what switches, wake-ups, forks and ticks cost here
    #[command(after_long_help = EXAMPLES_CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Measure the simulator's speed and memory use
    #[command(after_long_help = EXAMPLES_BENCH)]
    Bench(BenchArgs),
    /// Load a sched_ext scheduler into this kernel until Ctrl-C
    #[command(after_long_help = EXAMPLES_LOAD)]
    Load(crate::commands::LoadArgs),
    /// Check schedulers of sched_ext with the verifiers of real kernels
    #[command(after_long_help = crate::commands::EXAMPLES_SCX)]
    Scx(crate::commands::ScxToolArgs),
    /// Show or change the policy of a running task
    #[command(after_long_help = EXAMPLES_ATTACH)]
    Attach(crate::commands::AttachArgs),
    /// Check what this machine can do and what is missing
    Doctor(DoctorArgs),
    /// Repeat the studies' experiments and judge their claims
    #[command(after_long_help = EXAMPLES_REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// Compare the models with the kernels they model
    #[command(after_long_help = crate::commands::EXAMPLES_VALIDATE)]
    Validate(crate::commands::ValidateArgs),
    /// Print the JSON schema of an output or input format
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    #[command(after_long_help = EXAMPLES_COMPLETION)]
    Completion(CompletionArgs),
    /// Write the manual pages, one for each command
    #[command(after_long_help = EXAMPLES_MAN)]
    Man(ManArgs),
}

const EXAMPLES_SIM: &str = "Examples:
  schedlab sim hogs:n=4,work=100ms --scheduler rr --set quantum=10ms
  schedlab sim sched --param n=4 --cpus 2 --hz 1000 --scheduler linux-6.1,linux-6.12
  schedlab sim hackbench --machine server-2x32 --preempt lazy
  schedlab sim hackbench --scheduler ./my_sched.bpf.c --watch
  schedlab sim my-workload.json --costs zero --json | jq .measures.totals
  schedlab sim hogs --slices | head
  schedlab sim interactive --until 2s --trace run.pftrace     (opens in ui.perfetto.dev)";

const EXAMPLES_REPRODUCE: &str = "Examples:
  schedlab reproduce --quick                    (all studies in a few minutes)
  schedlab reproduce S0 S1 --details            (every number with its interval)
  schedlab reproduce S4 --lane sim --json | jq '.[] | {id, verdict}'
  schedlab reproduce my-study.toml

The same command resumes where it was stopped. A claim HOLDS if the confidence interval of each of
its numbers is within the bounds that the study's file sets. Only measured numbers count.";

const EXAMPLES_EXPLAIN: &str = "Examples:
  schedlab explain interactive --until 2s                     (the longest wait of the run)
  schedlab explain interactive --until 2s --task hog --nth 3
  schedlab explain hogs:n=3,work=50ms --scheduler rr --at 120ms
  schedlab explain hogs:n=3,work=50ms --from 10ms --to 20ms --json";

const EXAMPLES_RUN: &str = "Examples:
  schedlab run -n 10 --policy fifo --cpus 1 -- ./prime 10000
  schedlab run hogs:n=4,work=1s --cpus 0-1 --policy batch
  schedlab run my-workload.json --trace run.parquet --json

Without root, the kernel refuses FIFO, RR and negative nice values, and schedlab reads /proc instead
of recording a trace. The result's `source` names what was used.";

const EXAMPLES_VM: &str = "Examples:
  schedlab vm hogs:n=4 --kernel 6.12
  schedlab vm hogs:n=4 --kernel 6.1,6.12,6.18 --until 2s
  schedlab vm interactive --kernel 6.18 --scheduler kernel,rr --slices
  schedlab vm hogs --kernel ./vmlinuz --trace run.pftrace
  schedlab vm hogs:n=4 --kernel 6.18 --scheduler-cmd './scx_lavd --performance'
  schedlab vm hogs:n=4 --policy fifo --sysctl kernel.sched_rt_runtime_us=800000

With the counted clock, a run gives the same bytes every time, on any host. The printed identity
names everything the run depends on. Needs qemu-system-x86_64, but neither root nor KVM.";

const EXAMPLES_KERNEL: &str = "Examples:
  schedlab kernel list
  schedlab kernel get 6.1 6.12 6.18
  schedlab kernel get ./vmlinuz

Kernels come from Debian's archive and are checked against its signatures. The system's package
sources are not changed. Kernels are stored in $SCHEDLAB_CACHE [default: ~/.cache/schedlab].";

const EXAMPLES_COMPARE: &str = "Examples:
  schedlab compare hogs:n=3 --scheduler rr,fcfs,linux-6.12
  schedlab compare hogs:n=4 --scheduler rr --set quantum=1ms,10ms,100ms --report report.html
  schedlab compare sched --scheduler old.bpf.c,new.bpf.c --repetitions 20 --markdown
  schedlab compare --host OTHER,FIFO,nice=5 --cpus 1 -- ./prime 10000
  schedlab compare sched:n=4 --scheduler linux-6.12 --host OTHER,FIFO --repetitions 5 \\
      --report report.html
  schedlab compare experiment.toml --jobs 4 --output results/   (can be stopped and resumed)
  schedlab compare experiment.toml --dry-run
  schedlab compare --manifest results/manifest.json

An experiment file names schedulers, workloads, parameters, machines and seeds. `schedlab schema
experiment` prints its schema, docs/guide/compare-schedulers.md walks through one.";

const EXAMPLES_REPORT: &str = "Examples:
  schedlab sim hogs --scheduler rr,fcfs --json --keep | schedlab report -
  schedlab report results.json --output report.html --plots plots/";

const EXAMPLES_ANALYSE: &str = "Examples:
  schedlab analyse perf.data
  schedlab analyse perf.data --task mysqld --from 1.2s --to 1.3s
  trace-cmd report -t trace.dat | schedlab analyse - --report trace.html
  schedlab analyse run.slt --cpus

Record at least sched_switch and sched_wakeup. All measures need sched_wakeup_new, sched_waking,
sched_migrate_task and sched_process_{fork,exec,exit} too.";

const EXAMPLES_EXPORT: &str = "Examples:
  schedlab export trace.txt trace.pftrace
  schedlab sim hogs --trace run.slt && schedlab export run.slt run.parquet
  schedlab export run.slt run.pftrace
  schedlab export result.json slices.csv";

const EXAMPLES_CALIBRATE: &str = "Examples:
  schedlab calibrate --output costs.txt
  schedlab sim hogs --costs costs.txt";

const EXAMPLES_BENCH: &str = "Examples:
  schedlab bench J1 J8 P8 --repetitions 5
  schedlab bench J8 --trace binary --hz 1000 --json
  schedlab bench J8 --scheduler all --switches 2000000
  schedlab bench --curve tasks
  schedlab bench --curve pick --scheduler linux-2.4.18,linux-2.6.22,linux-6.12";

const EXAMPLES_LOAD: &str = "Examples:
  schedlab load --list
  schedlab load wrr --describe
  sudo schedlab load wrr --set slice_ms=50
  sudo schedlab load ./my.bpf.c --duration 10s

Needs root and a kernel with sched_ext, 6.16 or later. `schedlab sim` and `schedlab vm` try a
scheduler without either.";

const EXAMPLES_ATTACH: &str = "Examples:
  schedlab attach 1234
  schedlab attach 1234 --threads --policy batch
  sudo schedlab attach 1234 --policy rr --priority 10
  schedlab attach --list";

const EXAMPLES_COMPLETION: &str = "Examples:
  schedlab completion bash > ~/.local/share/bash-completion/completions/schedlab
  echo 'source <(schedlab completion bash)' >> ~/.bashrc
  schedlab completion zsh > ~/.zfunc/_schedlab
  schedlab completion fish > ~/.config/fish/completions/schedlab.fish";

const EXAMPLES_MAN: &str = "Examples:
  schedlab man ~/.local/share/man/man1 && man schedlab-sim";

/// What `list` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Listed {
    /// Every scheduler that can be simulated.
    Schedulers,
    /// Every built-in workload.
    Workloads,
    /// Every measure: name, unit, meaning.
    Measures,
    /// The studies that the demo runs.
    Studies,
    /// Every modelled machine, and this machine.
    Machines,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list [default: an overview]
    #[arg(value_enum)]
    pub what: Option<Listed>,
    /// Show only the scheduler, workload, measure, study or machine of this name
    pub name: Option<String>,
    /// Show sources, omissions, tunables and parameters too
    #[arg(long, short)]
    pub long: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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
    /// Setup of a simulated .bpf.c: what its user program would set
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

    /// The options for a kernel, which knows no setups.
    pub fn options_for_kernel(&self) -> CliResult<SourceOptions> {
        if self.checks != ScxChecks::default() {
            return Err(CliError::usage_help(
                "--scx-checks is for simulated schedulers",
                "in a kernel the verifier checks every program before it is loaded",
            ));
        }
        match &self.setup {
            None => Ok(self.options()),
            Some(_) => Err(CliError::usage_help(
                "--scx-setup is for simulated schedulers",
                "in a kernel the scheduler's own user program does its setup",
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

/// Arguments of `sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Built-in workload, such as hogs or hogs:n=4,work=100ms, or a file
    ///
    /// `schedlab list workloads` lists the built-in ones. Files are in rt-app's JSON
    /// (docs/guide/write-a-workload.md).
    #[arg(add = ArgValueCompleter::new(complete::workloads))]
    pub workload: String,
    /// Schedulers, separated by commas
    ///
    /// `schedlab list schedulers` lists them. A file (`./my_sched.bpf.c`) is a sched_ext scheduler,
    /// compiled for the simulator.
    #[arg(
        long,
        short = 'S',
        visible_alias = "schedulers",
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "linux-6.12",
        add = ArgValueCompleter::new(complete::schedulers)
    )]
    pub scheduler: Vec<String>,
    /// CPUs, such as 4 or 0-3 [default: all CPUs of --machine, or 1]
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::model_cpus)]
    pub cpus: Option<u32>,
    /// Runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: u32,
    /// Run again whenever the scheduler, a header of it or the workload is saved
    #[arg(long)]
    pub watch: bool,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What to show of a .bpf.c.
    #[command(flatten)]
    pub inspect: crate::commands::InspectArgs,
    /// The user program of a .bpf.c.
    #[command(flatten)]
    pub user: crate::commands::ScxUserArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Built-in workload, such as hogs or hogs:n=4,work=100ms, or a file
    ///
    /// `schedlab list workloads` lists the built-in ones. Files are in rt-app's JSON
    /// (docs/guide/write-a-workload.md).
    #[arg(add = ArgValueCompleter::new(complete::workloads))]
    pub workload: String,
    /// Scheduler (`schedlab list schedulers`)
    #[arg(long, short = 'S', value_delimiter = ',', value_name = "NAME",
          default_value = "linux-6.12",
          add = ArgValueCompleter::new(complete::schedulers))]
    pub scheduler: Vec<String>,
    /// CPUs, such as 4 or 0-3 [default: all CPUs of --machine, or 1]
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::model_cpus)]
    pub cpus: Option<u32>,
    /// Explain each CPU's last choice before this time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["task", "from", "to"],
          value_parser = crate::input::moment)]
    pub at: Option<Nanos>,
    /// Explain the longest wait of this task
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub task: Option<String>,
    /// With --task: explain its nth wait instead of the longest
    #[arg(long, value_name = "N", requires = "task",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub nth: Option<u64>,
    /// Explain every choice from this time on
    #[arg(long, value_name = "TIME", value_parser = crate::input::moment)]
    pub from: Option<Nanos>,
    /// Explain every choice up to this time
    #[arg(long, value_name = "TIME", value_parser = crate::input::moment)]
    pub to: Option<Nanos>,
    /// Explain only the choices of this CPU
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Maximum number of choices to show
    #[arg(long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// Maximum number of candidates to show for each choice
    #[arg(long, default_value_t = 12, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub candidates: u32,
    /// Print JSON (`schedlab schema explain`)
    #[arg(long)]
    pub json: bool,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Built-in workload, such as hogs:n=4, or a file; omit it to run a command
    #[arg(required_unless_present = "command",
          add = ArgValueCompleter::new(complete::workloads))]
    pub workload: Option<String>,
    /// Number of copies of the command, started together
    #[arg(short = 'n', long = "copies", value_name = "N", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub copies: Option<u32>,
    /// CPUs that tasks may use, such as 2 or 0-3,8 [default: all]
    ///
    /// A number takes the first ones; a list names them. CPU 0 alone is 0-0.
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::cpus)]
    pub cpus: Option<Cpus>,
    /// Runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: u32,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Command to run and its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Built-in workload, workload file, or experiment file (.toml); omit it to run a command
    #[arg(required_unless_present_any = ["manifest", "command"], conflicts_with = "command",
          add = ArgValueCompleter::new(complete::workloads))]
    pub workload: Option<String>,
    /// Schedulers to simulate, separated by commas
    ///
    /// `NAME:POLICY`, such as linux-6.12:FIFO, runs the tasks under a policy.
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
    /// Runs, each with the next seed [default: 1 simulated, 3 on this machine]
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

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Files with results, as printed by --json; - is stdin
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
    /// HTML file to write
    #[arg(long, short, default_value = "report.html")]
    pub output: PathBuf,
    /// Write every figure as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

/// Arguments of `analyse`.
#[derive(Debug, Args)]
pub struct AnalyseArgs {
    /// Trace files; - is stdin
    ///
    /// perf.data of `perf record`, trace.dat of `trace-cmd record`, text from ftrace, `trace-cmd
    /// report` or `perf script`, or .slt, .parquet or .ndjson files of schedlab. The content
    /// decides the format.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show only tasks with this name or process id, and their waits (repeatable)
    ///
    /// Lists every wait of these tasks, or the 100 longest of each; --all lists all of them. With
    /// --starved-after, only waits of that length.
    #[arg(long, value_name = "NAME|PID")]
    pub task: Vec<String>,
    /// Start of the part to analyse, as the tables show times, such as 1.2s [default: 0]
    #[arg(long, value_name = "TIME", value_parser = crate::input::moment)]
    pub from: Option<Nanos>,
    /// End of the part to analyse [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub to: Option<Nanos>,
    /// Show all rows of every table
    #[arg(long)]
    pub all: bool,
    /// Show CPUs instead of tasks
    #[arg(long, conflicts_with_all = ["slices", "task"])]
    pub cpus: bool,
    /// What stdout gets.
    #[command(flatten)]
    pub print: PrintArgs,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The analysis.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Trace, or JSON result of a run
    ///
    /// Traces are .slt, .parquet or .ndjson files, or text from ftrace, `trace-cmd report` or
    /// `perf script`.
    pub input: PathBuf,
    /// File to write; - is stdout
    pub output: PathBuf,
    /// Format to write [default: by the ending of the file]
    #[arg(long, value_parser = crate::commands::format_parser())]
    pub format: Option<&'static dyn Exporter>,
    /// Omit the counters from a Perfetto trace: a smaller file
    #[arg(long)]
    pub no_counters: bool,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Write the costs to this file, for --costs
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of measurements, 0.3 s each; intervals need 6
    #[arg(long, value_name = "N", default_value_t = schedlab_host::REPETITIONS_DEFAULT,
          value_parser = clap::value_parser!(u32)
              .range(1..=i64::from(schedlab_host::REPETITIONS_MAX)))]
    pub repetitions: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where a benchmark writes its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BenchTrace {
    /// Nowhere.
    None,
    /// Into a file in schedlab's own format (.slt), deleted at the end.
    Binary,
}

impl BenchTrace {
    /// The value's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Binary => "binary",
        }
    }
}

/// The quantity that a curve varies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BenchCurve {
    /// CPU-bound tasks on one CPU, 2 to 1,000,000.
    Tasks,
    /// CPUs, 1 to 1,024, four CPU-bound tasks each.
    Cpus,
    /// CPUs, 1 to 1,024, four tasks each that run 1 ms and sleep 4 ms.
    CpusSleeping,
    /// Runnable tasks on one CPU, 2 to 100,000 (or to `--tasks`), without what starting them costs;
    /// tasks that only compute, or that block each ms where the scheduler preempts nobody.
    Pick,
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Jobs: J1, J8, P8, S1
    ///
    /// J1: 8 CPU-bound tasks on 1 CPU. J8: 32 CPU-bound tasks on 8 CPUs. P8: 32 tasks that run 1 ms
    /// and sleep 4 ms, on 8 CPUs. S1: 8 tasks that run 1 ms and block for 1 us, on 1 CPU.
    #[arg(required_unless_present = "curve", value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Measure how the cost of a switch grows, instead of jobs
    #[arg(long, value_enum, conflicts_with_all = ["jobs", "cpus", "until"])]
    pub curve: Option<BenchCurve>,
    /// Schedulers, separated by commas; `all` for all of them
    ///
    /// `schedlab list schedulers` lists them. A file (`./my_sched.bpf.c`) is a sched_ext scheduler,
    /// compiled for the simulator.
    #[arg(
        long,
        short = 'S',
        visible_alias = "schedulers",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "linux-6.12"
    )]
    pub scheduler: Vec<String>,
    /// Where to write the events
    #[arg(long, value_enum, default_value_t = BenchTrace::None)]
    pub trace: BenchTrace,
    /// CPUs, such as 4 or 0-3 [default: the job's]
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::model_cpus)]
    pub cpus: Option<u32>,
    /// Modelled machine: a preset, host, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Number of tasks [default: the job's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub tasks: Option<u32>,
    /// Simulated time, such as 500ms [default: the job's]
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub until: Option<Nanos>,
    /// Simulate about this many switches instead of a time
    ///
    /// Schedulers with long slices need more time for as many switches. With `--curve pick` it is
    /// the minimum after the start [default there: 200000].
    #[arg(long, value_name = "N", conflicts_with = "until",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub switches: Option<u64>,
    /// Timer ticks a second [default: the machine's, or 250]
    #[arg(long, value_parser = crate::input::hz)]
    pub hz: Option<u32>,
    /// Costs: zero, default or a file [default: the machine's]
    #[arg(long, value_name = "COSTS")]
    pub costs: Option<String>,
    /// How a .bpf.c is compiled.
    #[command(flatten)]
    pub scx: ScxArgs,
    /// Number of measurements; the medians are shown
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Print JSON (`schedlab schema bench`)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Format
    #[arg(value_enum, default_value = "result")]
    pub which: crate::commands::SchemaKind,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// Shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory of the pages; made if it does not exist
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
