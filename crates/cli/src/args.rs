// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as types. `-h` gives one line an option, `--help` the long text and examples.

use clap::{Args, Parser, Subcommand, ValueEnum};
use schedlab_model::{Nanos, Policy};
use schedlab_run::LaneKind;
use schedlab_trace::Exporter;
use std::path::{Path, PathBuf};

/// A laboratory for Linux CPU schedulers: one workload, simulated and on the running kernel.
#[derive(Debug, Parser)]
#[command(name = "schedlab", version, propagate_version = true, max_term_width = 100)]
#[command(after_long_help = EXAMPLES_TOP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES_TOP: &str = "Examples:
  schedlab sim hogs:n=4,work=100ms --scheduler rr,linux-6.12 --cpus 2
  schedlab run -n 10 --policy fifo --cpus 0 -- ./prime 10000
  schedlab compare sched:n=4 --scheduler linux-6.12 --host OTHER --report report.html
  schedlab doctor

Exit codes: 0 ok, 1 a check failed, 2 usage or bad input, 3 this machine cannot do it.
Data goes to stdout, talk to stderr.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List schedulers, workloads, measures, studies and machines.
    List(ListArgs),
    /// Simulate a workload under one or more schedulers.
    #[command(after_long_help = EXAMPLES_SIM)]
    Sim(SimArgs),
    /// Tell why a simulated scheduler chose a task, and who kept a task waiting.
    #[command(after_long_help = EXAMPLES_EXPLAIN)]
    Explain(ExplainArgs),
    /// Run a workload, or n copies of any command, on the running kernel.
    #[command(after_long_help = EXAMPLES_RUN)]
    Run(RunArgs),
    /// Run a workload on real kernels in virtual machines, exactly repeatable.
    #[command(after_long_help = EXAMPLES_VM)]
    Vm(Box<crate::commands::VmArgs>),
    /// Fetch and list the kernels for `vm`.
    #[command(after_long_help = EXAMPLES_KERNEL)]
    Kernel(crate::commands::KernelArgs),
    /// Run one workload under several schedulers, simulated and real, side by side.
    #[command(after_long_help = EXAMPLES_COMPARE)]
    Compare(CompareArgs),
    /// Make a report (one HTML file) and plots from results.
    #[command(after_long_help = EXAMPLES_REPORT)]
    Report(ReportArgs),
    /// Measure what a trace shows, whoever recorded it: ftrace, trace-cmd, perf or schedlab.
    #[command(after_long_help = EXAMPLES_ANALYSE)]
    Analyse(AnalyseArgs),
    /// Convert a recorded trace, or the timeline of a result, into another format.
    #[command(after_long_help = EXAMPLES_EXPORT)]
    Export(ExportArgs),
    /// Measure what switches, wake-ups, forks and ticks cost on this machine.
    #[command(after_long_help = EXAMPLES_CALIBRATE)]
    Calibrate(CalibrateArgs),
    /// Measure how fast the simulator is: switches and events per second of CPU time, memory.
    #[command(after_long_help = EXAMPLES_BENCH)]
    Bench(BenchArgs),
    /// Put a sched_ext scheduler to work on this machine until Ctrl-C.
    #[command(after_long_help = EXAMPLES_LOAD)]
    Load(crate::commands::LoadArgs),
    /// Show a task that runs already, and switch it to another policy.
    #[command(after_long_help = EXAMPLES_ATTACH)]
    Attach(crate::commands::AttachArgs),
    /// Show what this machine can do, what is missing and how to get it.
    Doctor(DoctorArgs),
    /// Run the studies' experiments again, and judge each of their claims.
    #[command(after_long_help = EXAMPLES_REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// Compare the models with the kernels that they are models of.
    #[command(after_long_help = crate::commands::EXAMPLES_VALIDATE)]
    Validate(crate::commands::ValidateArgs),
    /// Print the JSON schemas of what `--json` and `--slices` give.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    #[command(after_long_help = EXAMPLES_COMPLETION)]
    Completion(CompletionArgs),
}

const EXAMPLES_SIM: &str = "Examples:
  schedlab sim hogs:n=4,work=100ms --scheduler rr --set slice=10ms
  schedlab sim sched --param n=4 --cpus 2 --hz 1000 --scheduler linux-6.1,linux-6.12
  schedlab sim hackbench --machine server-2x32 --preempt lazy
  schedlab sim my-workload.json --costs zero --json | jq .measures.totals
  schedlab sim hogs --slices | head
  schedlab sim interactive --until 2s --trace run.pftrace     (opens in ui.perfetto.dev)";

const EXAMPLES_REPRODUCE: &str = "Examples:
  schedlab reproduce --quick                    (all studies in a few minutes)
  schedlab reproduce S0 S1 --details            (every number with its interval)
  schedlab reproduce S4 --lane sim --json | jq '.[] | {id, verdict}'
  schedlab reproduce my-study.toml

The same command goes on where it was stopped. A claim HOLDS if the whole interval of each of its
numbers lies within bounds that stand in the study's file; what was not measured never counts.";

const EXAMPLES_EXPLAIN: &str = "Examples:
  schedlab explain interactive --until 2s                     (the longest wait of the run)
  schedlab explain interactive --until 2s --task hog --nth 3
  schedlab explain hogs:n=3,work=50ms --scheduler rr --at 120ms
  schedlab explain hogs:n=3,work=50ms --from 10ms --to 20ms --json";

const EXAMPLES_RUN: &str = "Examples:
  schedlab run -n 10 --policy fifo --cpus 0 -- ./prime 10000
  schedlab run hogs:n=4,work=1s --cpus 0-1 --policy batch
  schedlab run my-workload.json --trace run.parquet --json

Without root, FIFO, RR and negative nice values are refused by the kernel, and the numbers come from
/proc instead of a trace; the result says so.";

const EXAMPLES_VM: &str = "Examples:
  schedlab vm hogs:n=4 --kernel 6.12
  schedlab vm hogs:n=4 --kernel 6.1,6.12,6.18 --until 2s
  schedlab vm interactive --kernel 6.18 --scheduler kernel,rr --slices
  schedlab vm hogs --kernel ./vmlinuz --trace run.pftrace
  schedlab vm hogs:n=4 --policy fifo --sysctl kernel.sched_rt_runtime_us=800000

With the counted clock a run is the same every time, byte for byte, on any host; the identity
that is printed names everything that it depends on. Needs qemu-system-x86_64, but neither root nor
KVM.";

const EXAMPLES_KERNEL: &str = "Examples:
  schedlab kernel list
  schedlab kernel get 6.1 6.12 6.18
  schedlab kernel get ./vmlinuz

Kernels come from Debian's archive, checked by its signatures; the system's package sources stay as
they are. They are kept in $SCHEDLAB_CACHE, else in ~/.cache/schedlab.";

const EXAMPLES_COMPARE: &str = "Examples:
  schedlab compare hogs:n=3 --scheduler rr,fcfs,linux-6.12
  schedlab compare sched:n=4 --scheduler linux-6.12 --host OTHER,FIFO --repetitions 5 \\
      --report report.html
  schedlab compare experiment.toml --jobs 4 --output results/   (stop and go on at any time)
  schedlab compare experiment.toml --dry-run
  schedlab compare --manifest results/manifest.json

An experiment file names schedulers, workloads, parameters, machines and seeds; `schedlab schema
experiment` prints what it may hold, docs/guide/compare-schedulers.md goes through one.";

const EXAMPLES_REPORT: &str = "Examples:
  schedlab sim hogs --scheduler rr,fcfs --json --keep | schedlab report -
  schedlab report results.json --output report.html --plots plots/";

const EXAMPLES_ANALYSE: &str = "Examples:
  trace-cmd report trace.dat > trace.txt && schedlab analyse trace.txt
  perf script -i perf.data --ns --show-lost-events | schedlab analyse -
  schedlab analyse trace.txt --task hackbench --report trace.html
  schedlab analyse run.slt --cpus

The events sched_switch and sched_wakeup are wanted at least; with sched_wakeup_new, sched_waking,
sched_migrate_task and sched_process_fork, _exec and _exit every measure is there.";

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

It takes root and a kernel with sched_ext (6.16 or later); `schedlab sim` and `schedlab vm` try a
scheduler without either.";

const EXAMPLES_ATTACH: &str = "Examples:
  schedlab attach 1234
  schedlab attach 1234 --threads --policy batch
  sudo schedlab attach 1234 --policy rr --priority 10
  schedlab attach --list";

const EXAMPLES_COMPLETION: &str = "Examples:
  schedlab completion bash > ~/.local/share/bash-completion/completions/schedlab
  schedlab completion zsh > ~/.zfunc/_schedlab
  schedlab completion fish > ~/.config/fish/completions/schedlab.fish";

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
    /// Every machine that a simulation can have, and this one.
    Machines,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list; without it, everything in short.
    #[arg(value_enum)]
    pub what: Option<Listed>,
    /// Show one scheduler, workload, measure, study or machine only.
    pub name: Option<String>,
    /// Show sources, what is left out, tunables and parameters too.
    #[arg(long, short)]
    pub long: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The workload and what bends it.
#[derive(Clone, Debug, Args)]
pub struct WorkloadArgs {
    /// Parameter of a built-in workload, as in `--param n=4`; may be repeated.
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Policy of the tasks that name none: other, batch, idle, fifo, rr, ...
    #[arg(long, value_parser = crate::input::policy)]
    pub policy: Option<Policy>,
    /// Real-time priority that goes with `--policy fifo` and `rr`, 1 to 99.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=99), requires = "policy")]
    pub priority: Option<u8>,
    /// Nice value of the tasks that have none of their own, -20 to 19.
    #[arg(long, value_parser = clap::value_parser!(i8).range(-20..=19), allow_hyphen_values = true)]
    pub nice: Option<i8>,
    /// Seed of every random draw.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// End the run at this time, such as 500ms or 2s, in place of the workload's own end.
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub until: Option<Nanos>,
}

/// The modelled machine.
#[derive(Clone, Debug, Args)]
pub struct MachineArgs {
    /// The modelled machine: a preset (`schedlab list machines`), a file (.toml, .json), or `host`
    /// for a model of this machine; without it a flat one.
    #[arg(long, value_name = "PRESET|FILE|host")]
    pub machine: Option<String>,
    /// Ticks a second of the modelled kernel, instead of the machine's; 250 without a machine.
    #[arg(long, value_parser = crate::input::hz)]
    pub hz: Option<u32>,
    /// When a CPU acts on a request to reschedule, instead of what the machine says; without
    /// either, what the scheduler's kernel has in Debian, full for textbook schedulers.
    #[arg(long, value_name = "none|voluntary|full|lazy",
          value_parser = schedlab_run::machine::preempt_by_name)]
    pub preempt: Option<schedlab_model::Preempt>,
    /// What switches, ticks and wake-ups cost, instead of the machine's: zero, default, or a file
    /// of `schedlab calibrate`.
    #[arg(long, value_name = "zero|default|FILE")]
    pub costs: Option<String>,
    /// Value of a tunable, as in `--set slice=10ms`, or of one scheduler's, as in
    /// `--set linux-6.12:base_slice=3ms`; may be repeated.
    #[arg(long = "set", short = 's', value_name = "[SCHEDULER:]TUNABLE=VALUE")]
    pub tunables: Vec<String>,
    /// Threads to simulate on, all CPUs if nothing is said; the results do not depend on it.
    #[arg(long, short = 'j', visible_alias = "jobs", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Stop with an error when a runnable task has waited this long; `auto`: 30s under schedulers
    /// that claim to starve nobody; `off` never stops.
    #[arg(long, value_name = "TIME|auto|off", default_value = "auto",
          value_parser = crate::input::watchdog)]
    pub watchdog: schedlab_sim::Watchdog,
    /// Schedulers that are files.
    #[command(flatten)]
    pub scx: ScxArgs,
}

/// How a scheduler that is a file (`--scheduler ./my_sched.bpf.c`) is compiled.
#[derive(Clone, Debug, Default, Args)]
pub struct ScxArgs {
    /// Directory with headers of a scheduler that is a file, before the simulator's own; may be
    /// repeated. `include` beside the scheduler is found by itself.
    #[arg(long = "scx-include", value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Further source file of a scheduler that is a file; may be repeated.
    #[arg(long = "scx-source", value_name = "FILE")]
    pub source: Vec<PathBuf>,
}

/// What a command prints of its runs or traces.
#[derive(Debug, Default, Args)]
pub struct PrintArgs {
    /// Print the result as JSON (see `schedlab schema`); several make an array.
    #[arg(long, conflicts_with = "slices")]
    pub json: bool,
    /// Keep the timeline and the progress in the JSON.
    #[arg(long, requires = "json")]
    pub keep: bool,
    /// Print one JSON line a slice: cpu, task, name, start_ns, end_ns, end.
    #[arg(long, conflicts_with = "analysis")]
    pub slices: bool,
}

/// Where the trace of a run goes.
#[derive(Debug, Default, Args)]
pub struct TraceArgs {
    /// The file.
    #[arg(long = "trace", id = "trace", value_name = "FILE",
          help = crate::commands::help_of_trace())]
    pub file: Option<PathBuf>,
    /// Leave the counters out of a Perfetto trace, for a smaller file and a quicker run.
    #[arg(long, requires = "trace")]
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
    /// Write a report of the run(s) to this HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every figure (timeline, progress, box plots) as SVG into this directory.
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// The analysis.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
}

/// Arguments of `sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// A built-in workload, such as `hogs` or `hogs:n=4,work=100ms`, or the path of an rt-app file.
    pub workload: String,
    /// Schedulers by name, separated by commas; `schedlab list schedulers` shows them. A file
    /// (`./my_sched.bpf.c`) is a scheduler for sched_ext, compiled for this machine.
    #[arg(
        long,
        visible_alias = "schedulers",
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "linux-6.12"
    )]
    pub scheduler: Vec<String>,
    /// CPUs of the modelled machine, its first; all of a machine that is named, else 1.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: Option<u32>,
    /// Repetitions, each with the next seed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: u32,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A built-in workload, such as `hogs` or `hogs:n=4,work=100ms`, or the path of an rt-app file.
    pub workload: String,
    /// The scheduler; `schedlab list schedulers` shows all.
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "linux-6.12")]
    pub scheduler: Vec<String>,
    /// CPUs of the modelled machine, its first; all of a machine that is named, else 1.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: Option<u32>,
    /// Explain what each CPU runs at this time: its last choice up to then.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["task", "from", "to"],
          value_parser = crate::input::moment)]
    pub at: Option<Nanos>,
    /// Explain the longest wait of the task of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub task: Option<String>,
    /// With --task: its nth wait, from 1, in place of the longest.
    #[arg(long, value_name = "N", requires = "task",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub nth: Option<u64>,
    /// Explain every choice from this time on.
    #[arg(long, value_name = "TIME", value_parser = crate::input::moment)]
    pub from: Option<Nanos>,
    /// Explain every choice up to this time.
    #[arg(long, value_name = "TIME", value_parser = crate::input::moment)]
    pub to: Option<Nanos>,
    /// Only the choices of this CPU.
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Most choices to show.
    #[arg(long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// Most waiting candidates of a choice to show.
    #[arg(long, default_value_t = 12, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub candidates: u32,
    /// Print JSON (see `schedlab schema explain`).
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
    /// A built-in workload or the path of an rt-app file; leave out to run a command.
    #[arg(required_unless_present = "command")]
    pub workload: Option<String>,
    /// Copies of the command to start at once.
    #[arg(short = 'n', long = "copies", value_name = "N", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub copies: Option<u32>,
    /// Logical CPUs the tasks may use, such as 0 or 0-3,8; all of this process's by default.
    #[arg(long, value_name = "LIST", value_parser = crate::input::cpu_list)]
    pub cpus: Option<schedlab_model::CpuMask>,
    /// Repetitions, each with the next seed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: u32,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The command and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// An experiment file (.toml), a built-in workload, or the path of an rt-app file.
    #[arg(required_unless_present = "manifest")]
    pub workload: Option<String>,
    /// Schedulers to simulate, separated by commas; `NAME:POLICY` puts the tasks under a policy.
    #[arg(long, visible_alias = "schedulers", value_delimiter = ',', value_name = "NAME")]
    pub scheduler: Vec<String>,
    /// Policies to measure on this machine, separated by commas, such as OTHER,FIFO.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    pub host: Vec<String>,
    /// Kernels to boot in virtual machines, separated by commas, such as 6.12,6.18:wrr
    /// (`KERNEL[:SCHEDULER]`, see `schedlab vm`).
    #[arg(long, value_delimiter = ',', value_name = "KERNEL")]
    pub vm: Vec<String>,
    /// CPUs, modelled and real; 1 if nothing is said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: Option<u32>,
    /// Repetitions on this machine; 3 if nothing is said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repetitions: Option<u32>,
    /// The workload.
    #[command(flatten)]
    pub tasks: WorkloadArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Print the results as JSON; of an experiment file, the tables.
    #[arg(long)]
    pub json: bool,
    /// Keep the timeline and the progress in the JSON.
    #[arg(long, requires = "json")]
    pub keep: bool,
    /// Write a report to this HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The analysis, of one workload: in the JSON and in the report.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
    /// The experiment file's own.
    #[command(flatten)]
    pub sweep: SweepArgs,
}

/// What only an experiment file or a manifest has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiment files and manifests")]
pub struct SweepArgs {
    /// Directory for the results, run by run; by default the name of the experiment file with
    /// `.results`. If it holds the same experiment, the command goes on where it was stopped.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// List the runs, and run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with what the directory holds; an error if it holds nothing.
    #[arg(long, conflicts_with = "fresh")]
    pub resume: bool,
    /// Throw away the results that the directory holds, whatever experiment they are of.
    #[arg(long)]
    pub fresh: bool,
    /// Only the runs of this lane.
    #[arg(long, value_enum)]
    pub lane: Option<LaneArg>,
    /// Most runs an experiment file may make.
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub runs_max: u32,
    /// Also write every figure as SVG into the directory `plots` of the results.
    #[arg(long)]
    pub plots: bool,
    /// Repeat the experiment of this manifest.json, and tell whether every result is the same.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "fresh", "resume", "lane"])]
    pub manifest: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Files with results (what `--json` printed); `-` is stdin.
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
    /// The HTML file to write.
    #[arg(long, short, default_value = "report.html")]
    pub output: PathBuf,
    /// Also write every figure as SVG into this directory.
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

/// Arguments of `analyse`.
#[derive(Debug, Args)]
pub struct AnalyseArgs {
    /// Traces: text of ftrace, `trace-cmd report` or `perf script`, or .slt, .parquet or .ndjson;
    /// told apart by their content. `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show only tasks with this name or process id; may be repeated.
    #[arg(long, value_name = "NAME|PID")]
    pub task: Vec<String>,
    /// Show what each CPU did in place of the tasks.
    #[arg(long, conflicts_with_all = ["slices", "task"])]
    pub cpus: bool,
    /// What stdout gets.
    #[command(flatten)]
    pub print: PrintArgs,
    /// Write a report to this HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The analysis.
    #[command(flatten)]
    pub analysis: crate::commands::AnalysisArgs,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A trace (.slt, .parquet, .ndjson, or text of ftrace, `trace-cmd report` or `perf script`),
    /// or the JSON result of a run.
    pub input: PathBuf,
    /// The file to write; `-` is stdout.
    pub output: PathBuf,
    /// The format, if the file's ending does not tell it.
    #[arg(long, value_parser = crate::commands::format_parser())]
    pub format: Option<&'static dyn Exporter>,
    /// Leave the counters out of a Perfetto trace, for a smaller file.
    #[arg(long)]
    pub no_counters: bool,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Write the costs to this file, for `--costs FILE`.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Times that everything is measured, 1 to 60; an interval wants 6, one takes 0.3 s.
    #[arg(long, value_name = "N", default_value_t = schedlab_host::REPETITIONS_DEFAULT,
          value_parser = clap::value_parser!(u32)
              .range(1..=i64::from(schedlab_host::REPETITIONS_MAX)))]
    pub repetitions: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Where the events of a benchmark go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BenchTrace {
    /// Nowhere.
    None,
    /// Into a file in the own format (.slt), deleted at the end.
    Binary,
}

impl BenchTrace {
    /// Its word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Binary => "binary",
        }
    }
}

/// What grows along a curve.
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
    /// Jobs: J1 (8 CPU-bound tasks, 1 CPU), J8 (32 CPU-bound tasks, 8 CPUs), P8 (32 tasks that run
    /// 1 ms and sleep 4 ms, 8 CPUs), S1 (8 tasks that run 1 ms and block for 1 us, 1 CPU).
    #[arg(required_unless_present = "curve", value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Measure how the cost of a switch grows, in place of jobs.
    #[arg(long, value_enum, conflicts_with_all = ["jobs", "cpus", "until"])]
    pub curve: Option<BenchCurve>,
    /// Schedulers by name, separated by commas; `all` is every one that `schedlab list schedulers`
    /// shows. A file (`./my_sched.bpf.c`) is a scheduler for sched_ext, compiled for this machine.
    #[arg(
        long,
        visible_alias = "schedulers",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "linux-6.12"
    )]
    pub scheduler: Vec<String>,
    /// Where the events go.
    #[arg(long, value_enum, default_value_t = BenchTrace::None)]
    pub trace: BenchTrace,
    /// CPUs of the modelled machine instead of the job's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: Option<u32>,
    /// The modelled machine, of which the first CPUs are taken: a preset, `host`, or a file;
    /// without it a flat one.
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Tasks instead of the job's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub tasks: Option<u32>,
    /// Simulated time instead of the job's, such as 500ms or 2s.
    #[arg(long, value_name = "TIME", value_parser = crate::input::duration)]
    pub until: Option<Nanos>,
    /// Simulate for as long as about this many switches need, instead of a time: schedulers with
    /// long slices need more of it. With `--curve pick` at least, beyond the start; 200000 there.
    #[arg(long, value_name = "N", conflicts_with = "until",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub switches: Option<u64>,
    /// Ticks a second of the modelled kernel instead of the machine's; of a flat one 250.
    #[arg(long, value_parser = crate::input::hz)]
    pub hz: Option<u32>,
    /// What switches, ticks and wake-ups cost instead of what the machine says: zero, default, or a
    /// file.
    #[arg(long, value_name = "zero|default|FILE")]
    pub costs: Option<String>,
    /// Schedulers that are files.
    #[command(flatten)]
    pub scx: ScxArgs,
    /// Processes to measure; medians are shown.
    #[arg(long, short = 'n', default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Print JSON (see `schedlab schema bench`); several jobs make an array.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Where a study's runs happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LaneArg {
    /// Simulated only.
    Sim,
    /// On this machine only.
    Host,
    /// On real kernels in virtual machines only.
    Vm,
}

impl LaneArg {
    /// The lane.
    pub const fn kind(self) -> LaneKind {
        match self {
            Self::Sim => LaneKind::Sim,
            Self::Host => LaneKind::Host,
            Self::Vm => LaneKind::Vm,
        }
    }
}

/// What becomes of the verdicts of `reproduce` and `validate`, and of the runs behind them.
#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// Directory for report.html, the verdicts as JSON, and the runs, which the same command goes
    /// on with; by default `reproduction` or `validation`.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Throw away the runs that the directory holds.
    #[arg(long)]
    pub fresh: bool,
    /// Print the numbers behind each verdict.
    #[arg(long)]
    pub details: bool,
    /// Print the verdicts as JSON (see `schedlab schema`: claims, validation-result).
    #[arg(long, conflicts_with = "details")]
    pub json: bool,
}

impl VerdictArgs {
    /// The directory: the one that was asked for, or the command's own.
    pub fn folder(&self, own: &'static str) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(own))
    }
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Studies by name, or files; without any, all that are built in.
    #[arg(value_name = "STUDY|FILE")]
    pub studies: Vec<String>,
    /// Fewer points and repetitions, as the studies say: minutes instead of an hour.
    #[arg(long)]
    pub quick: bool,
    /// Only these lanes, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub lane: Vec<LaneArg>,
    /// What becomes of the verdicts.
    #[command(flatten)]
    pub verdicts: VerdictArgs,
    /// Repetitions on this machine instead of the studies'.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Seed of every random draw, and of the order of runs on this machine.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Also write every figure as SVG into the directory `plots`.
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
    /// Which schema.
    #[arg(value_enum, default_value = "result")]
    pub which: crate::commands::SchemaKind,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
