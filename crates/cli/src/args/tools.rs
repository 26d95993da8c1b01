// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the commands about schedlab and this machine: `list`, `calibrate`, `bench`,
//! `doctor`, `schema`, `completion`, `man`.

use super::ScxArgs;
use clap::{Args, ValueEnum};
use schedlab_model::Nanos;
use std::path::PathBuf;

/// Examples for the help of `calibrate`.
pub(super) const EXAMPLES_CALIBRATE: &str = "Examples:
  schedlab calibrate --output costs.txt
  schedlab sim hogs --costs costs.txt";

/// Examples for the help of `bench`.
pub(super) const EXAMPLES_BENCH: &str = "Examples:
  schedlab bench J1 J8 P8 --repetitions 5
  schedlab bench J8 --trace binary --hz 1000 --json
  schedlab bench J8 --scheduler all --switches 2000000
  schedlab bench --curve tasks
  schedlab bench --curve pick --scheduler linux-2.4.18,linux-2.6.22,linux-6.12";

/// Examples for the help of `completion`.
pub(super) const EXAMPLES_COMPLETION: &str = "Examples:
  schedlab completion bash > ~/.local/share/bash-completion/completions/schedlab
  echo 'source <(schedlab completion bash)' >> ~/.bashrc
  schedlab completion zsh > ~/.zfunc/_schedlab
  schedlab completion fish > ~/.config/fish/completions/schedlab.fish";

/// Examples for the help of `man`.
pub(super) const EXAMPLES_MAN: &str = "Examples:
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
