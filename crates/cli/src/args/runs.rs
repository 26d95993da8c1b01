// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the commands that run one workload: `sim`, `explain`, `run`. Examples of the
//! commands about kernels: `vm`, `kernel`, `load`, `attach`.

use super::{MachineArgs, OutputArgs, WorkloadArgs};
use crate::complete;
use crate::input::Cpus;
use clap::Args;
use clap_complete::ArgValueCompleter;
use schedlab_model::Nanos;

/// Examples for the help of `sim`.
pub(super) const EXAMPLES_SIM: &str = "Examples:
  schedlab sim hogs:n=4,work=100ms --scheduler rr --set quantum=10ms
  schedlab sim sched --param n=4 --cpus 2 --hz 1000 --scheduler linux-6.1,linux-6.12
  schedlab sim hackbench --machine server-2x32 --preempt lazy
  schedlab sim hackbench --scheduler ./my_sched.bpf.c --watch
  schedlab sim my-workload.json --costs zero --json | jq .measures.totals
  schedlab sim hogs --slices | head
  schedlab sim interactive --until 2s --trace run.pftrace     (opens in ui.perfetto.dev)";

/// Examples for the help of `explain`.
pub(super) const EXAMPLES_EXPLAIN: &str = "Examples:
  schedlab explain interactive --until 2s                     (the longest wait of the run)
  schedlab explain interactive --until 2s --task hog --nth 3
  schedlab explain hogs:n=3,work=50ms --scheduler rr --at 120ms
  schedlab explain hogs:n=3,work=50ms --from 10ms --to 20ms --json";

/// Examples for the help of `run`.
pub(super) const EXAMPLES_RUN: &str = "Examples:
  schedlab run -n 10 --policy fifo --cpus 1 -- ./prime 10000
  schedlab run hogs:n=4,work=1s --cpus 0-1 --policy batch
  schedlab run my-workload.json --trace run.parquet --json

Without root, the kernel refuses FIFO, RR and negative nice values, and schedlab reads /proc instead
of recording a trace. The result's `source` names what was used.";

/// Examples for the help of `vm`.
pub(super) const EXAMPLES_VM: &str = "Examples:
  schedlab vm hogs:n=4 --kernel 6.12
  schedlab vm hogs:n=4 --kernel 6.1,6.12,6.18 --until 2s
  schedlab vm interactive --kernel 6.18 --scheduler kernel,rr --slices
  schedlab vm hogs --kernel ./vmlinuz --trace run.pftrace
  schedlab vm hogs:n=4 --kernel 6.18 --scheduler-cmd './scx_lavd --performance'
  schedlab vm hogs:n=4 --policy fifo --sysctl kernel.sched_rt_runtime_us=800000

With the counted clock, a run gives the same bytes every time, on any host. The printed identity
names everything the run depends on. Needs qemu-system-x86_64, but neither root nor KVM.";

/// Examples for the help of `kernel`.
pub(super) const EXAMPLES_KERNEL: &str = "Examples:
  schedlab kernel list
  schedlab kernel get 6.1 6.12 6.18
  schedlab kernel get ./vmlinuz

Kernels come from Debian's archive and are checked against its signatures. The system's package
sources are not changed. Kernels are stored in $SCHEDLAB_CACHE [default: ~/.cache/schedlab].";

/// Examples for the help of `load`.
pub(super) const EXAMPLES_LOAD: &str = "Examples:
  schedlab load --list
  schedlab load wrr --describe
  sudo schedlab load wrr --set slice_ms=50
  sudo schedlab load ./my.bpf.c --duration 10s

Needs root and a kernel with sched_ext, 6.16 or later. `schedlab sim` and `schedlab vm` try a
scheduler without either.";

/// Examples for the help of `attach`.
pub(super) const EXAMPLES_ATTACH: &str = "Examples:
  schedlab attach 1234
  schedlab attach 1234 --threads --policy batch
  sudo schedlab attach 1234 --policy rr --priority 10
  schedlab attach --list";

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
    /// compiled for the simulator. A policy of tasks and tunables follow after colons:
    /// `linux-6.12:FIFO`, `rr:quantum=3ms`.
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
    /// Make each switch longer, by a time of its own up to this one
    ///
    /// What changes then depends on microseconds. Up to 20us; the seed draws the times.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = crate::input::jitter)]
    pub switch_jitter: Option<Nanos>,
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
    /// Scheduler (`schedlab list schedulers`), such as rr or rr:quantum=3ms
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
