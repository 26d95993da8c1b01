// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the commands that read results and traces: `report`, `analyse`, `export`.

use super::PrintArgs;
use clap::Args;
use schedlab_model::Nanos;
use schedlab_trace::Exporter;
use std::path::PathBuf;

/// Examples for the help of `report`.
pub(super) const EXAMPLES_REPORT: &str = "Examples:
  schedlab sim hogs --scheduler rr,fcfs --json --keep | schedlab report -
  schedlab report results.json --output report.html --plots plots/";

/// Examples for the help of `analyse`.
pub(super) const EXAMPLES_ANALYSE: &str = "Examples:
  schedlab analyse perf.data
  schedlab analyse perf.data --task mysqld --from 1.2s --to 1.3s
  trace-cmd report -t trace.dat | schedlab analyse - --report trace.html
  schedlab analyse run.slt --cpus

Record at least sched_switch and sched_wakeup. All measures need sched_wakeup_new, sched_waking,
sched_migrate_task and sched_process_{fork,exec,exit} too.";

/// Examples for the help of `export`.
pub(super) const EXAMPLES_EXPORT: &str = "Examples:
  schedlab export trace.txt trace.pftrace
  schedlab sim hogs --trace run.slt && schedlab export run.slt run.parquet
  schedlab export run.slt run.pftrace
  schedlab export result.json slices.csv";

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
