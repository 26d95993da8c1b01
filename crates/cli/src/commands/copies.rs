// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs copies of a command on the running kernel for `run` and `compare`, and prints their tables.

use crate::args::WorkloadArgs;
use crate::error::{CliError, CliResult};
use crate::table::{self, Fitted, maybe_duration, number};
use schedlab_host::{HostOutcome, PolicyOverride, RunCommand, run_command};
use schedlab_metrics::analysis::Context;
use schedlab_metrics::stats::Summary;
use schedlab_model::trace::TraceSink;
use schedlab_model::{Policy, SchedAttr, Workload};
use schedlab_run::analysis as analysis_facts;
use schedlab_run::policy::RT_PRIORITY_DEFAULT;
use schedlab_run::{
    CopyResult, Keep, LaneError, LaneKind, Recorder, RunResult, SCHEMA_VERSION, Variant,
};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Source of a result that comes from a trace.
const SOURCE_BPF: &str = "bpf";

/// Maximum number of copies in a table; the last line sums up all of them.
const COPIES_SHOWN: usize = 40;

/// Copies of a command, with the settings that their result records.
pub struct Copies {
    /// The command with its attributes.
    pub command: RunCommand,
    /// The scheduler in the result, such as `FIFO` or `nice=5`.
    pub label: String,
    /// What the result keeps.
    pub keep: Keep,
    /// Seed, recorded in the result.
    pub seed: u64,
    /// Number of the repetition, from 0.
    pub repetition: u32,
}

/// Makes the request for copies of `argv` with the attributes of `variant`, and those of `tasks`
/// for attributes that `variant` leaves open.
pub fn command(
    argv: &[OsString],
    tasks: &WorkloadArgs,
    variant: &Variant,
) -> CliResult<RunCommand> {
    if !tasks.params.is_empty() {
        return Err(CliError::usage_help(
            "--param is given, but a command is run",
            "parameters belong to built-in workloads",
        ));
    }
    let policy = variant.policy.or(tasks.policy).unwrap_or_default();
    if policy == Policy::Deadline {
        return Err(CliError::usage_help(
            "policy deadline needs a runtime and a period for each task",
            "write an rt-app file (dl-runtime, dl-period)",
        ));
    }
    let priority = tasks.priority.unwrap_or(RT_PRIORITY_DEFAULT);
    let mut command = RunCommand::new(argv.to_vec());
    let rt_priority = if policy.is_rt() { priority } else { 0 };
    command.policy = Some(PolicyOverride { policy, rt_priority });
    command.nice = variant.nice.or(tasks.nice).unwrap_or(0);
    command.slice_ns = variant.slice_ns;
    command.weight = variant.weight;
    if let Some(until_ns) = tasks.until {
        command.limit_ns = until_ns;
    }
    Ok(command)
}

impl Copies {
    /// The workload that the result names: the command without its directory.
    pub fn workload(&self) -> Workload {
        let name = self.command.argv.first().map(|word| word.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        Workload::new(name.rsplit('/').next().unwrap_or_default(), Vec::new())
    }

    /// Runs the copies until all exit, and sends their events to `sink` too.
    pub fn play(&self, sink: &mut dyn TraceSink) -> CliResult<RunResult> {
        let workload = self.workload();
        let mut recorder = self.recorder(&workload);
        let outcome =
            run_command(&self.command, &mut (&mut recorder, sink)).map_err(LaneError::from)?;
        let recorded = recorder.finish(&workload);
        let is_recorded = outcome.host.source == SOURCE_BPF;
        let measures = match is_recorded {
            true => recorded.measures,
            false => self.measures_without_trace(&outcome.host, &workload),
        };
        Ok(RunResult {
            schema_version: SCHEMA_VERSION,
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
            lane: LaneKind::Host.into(),
            scheduler: self.label.clone(),
            workload: workload.name,
            parameters: self.parameters(),
            seed: self.seed,
            repetition: self.repetition,
            machine: outcome.host.machine,
            source: outcome.host.source.into(),
            warnings: outcome.host.warnings,
            measures,
            slices: recorded.slices,
            progress: recorded.progress,
            analysis: recorded.analysis.filter(|_| is_recorded),
            expectations: Vec::new(),
            copies: outcome.copies.into_iter().map(CopyResult::from).collect(),
            figures: BTreeMap::new(),
            groups: Vec::new(),
        })
    }

    fn measures_without_trace(
        &self,
        host: &HostOutcome,
        workload: &Workload,
    ) -> schedlab_metrics::RunMeasures {
        let nr_cpus = self.command.cpus.weight();
        schedlab_host::result::measures_without_trace(host, workload, nr_cpus)
    }

    /// A recorder for copies that all have the command's attributes.
    fn recorder(&self, workload: &Workload) -> Recorder {
        let cpus = &self.command.cpus;
        let recorder = Recorder::new(cpus.weight(), self.keep);
        let Some(thresholds) = self.keep.analysis else { return recorder };
        let attr = SchedAttr {
            policy: self.command.policy.map_or(Policy::Normal, |given| given.policy),
            nice: self.command.nice,
            rt_priority: self.command.policy.map_or(0, |given| given.rt_priority),
            ..SchedAttr::default()
        };
        let other = analysis_facts::facts(&attr, cpus);
        let context = analysis_facts::context(workload, cpus, thresholds);
        recorder.with_analysis(Context { other, ..context })
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let command = &self.command;
        let words: Vec<String> =
            command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        BTreeMap::from([
            ("n".into(), command.copies.to_string()),
            ("cpus".into(), command.cpus.weight().to_string()),
            ("nice".into(), command.nice.to_string()),
            ("command".into(), words.join(" ")),
        ])
    }
}

/// Fails as a failed check if any copy ended with an exit code other than 0.
pub fn check_exits<'r>(runs: impl Iterator<Item = &'r RunResult>) -> CliResult<()> {
    let failed = runs.flat_map(|run| &run.copies).filter(|copy| copy.exit_code != Some(0)).count();
    if failed == 0 {
        return Ok(());
    }
    Err(CliError::new(
        crate::error::Exit::Check,
        format!("{failed} of the copies did not end with exit code 0"),
        "`schedlab run` shows the codes; a negative one is the signal that ended the copy",
    ))
}

/// A figure of a copy, if the copy has it.
type Figure = (&'static str, fn(&CopyResult) -> Option<u64>);

/// Times of a copy, ns.
const TIMES: [Figure; 4] = [
    ("wall", |copy| copy.wall_ns),
    ("user", |copy| Some(copy.user_ns)),
    ("system", |copy| Some(copy.system_ns)),
    ("run delay", |copy| Some(copy.run_delay_ns)),
];

/// Counts of a copy.
const COUNTS: [Figure; 2] = [
    ("voluntary", |copy| Some(copy.nr_voluntary_switches)),
    ("involuntary", |copy| Some(copy.nr_involuntary_switches)),
];

/// Mean of a figure over the copies of a run.
fn mean(run: &RunResult, figure: fn(&CopyResult) -> Option<u64>) -> Option<f64> {
    let values: Vec<f64> =
        run.copies.iter().filter_map(|copy| Some(figure(copy)? as f64)).collect();
    (!values.is_empty()).then(|| Summary::of(&values).mean)
}

fn time_cell(ns: Option<f64>) -> comfy_table::Cell {
    number(maybe_duration(ns.map(|ns| ns.round() as u64)))
}

fn count_cell(count: Option<f64>) -> comfy_table::Cell {
    number(table::or_dash(count, |count| format!("{count:.0}")))
}

/// A table with one line for each copy: wall, user, system, run delay, both kinds of switches.
pub fn copies_table(run: &RunResult) -> String {
    let heads = ["copy", "pid"].into_iter().chain(heads()).chain(["exit"]);
    let mut rows = Fitted::new(heads, 3);
    for copy in run.copies.iter().take(COPIES_SHOWN) {
        let times = TIMES.iter().map(|(_, of)| number(maybe_duration(of(copy))));
        let counts = COUNTS.iter().map(|(_, of)| number(of(copy).unwrap_or_default()));
        let exit = copy.exit_code.map_or_else(|| "-".into(), |code| code.to_string());
        let start = [number(copy.task), number(copy.pid)];
        rows.add(start.into_iter().chain(times).chain(counts).chain([number(exit)]));
    }
    let times = TIMES.iter().map(|(_, of)| time_cell(mean(run, *of)));
    let counts = COUNTS.iter().map(|(_, of)| count_cell(mean(run, *of)));
    let start = ["mean", ""].map(comfy_table::Cell::new);
    let end = [comfy_table::Cell::new("")];
    rows.add(start.into_iter().chain(times).chain(counts).chain(end));
    format!("{}\n{}", head(run), rows.render())
}

fn heads() -> impl Iterator<Item = &'static str> {
    TIMES.iter().chain(&COUNTS).map(|(head, _)| *head)
}

/// `3 x prime under FIFO on 1 CPU, measured by bpf`.
fn head(run: &RunResult) -> String {
    format!(
        "{} x {} under {} on {}, measured by {}",
        run.copies.len(),
        run.workload,
        run.scheduler,
        table::counted(run.machine.nr_cpus, "CPU", "CPUs"),
        run.source
    )
}

fn mean_of(all: &Summary) -> f64 {
    all.mean
}

fn deviation_of(all: &Summary) -> f64 {
    all.std_dev
}

/// A table with one line for each repetition (means over its copies), then their mean and standard
/// deviation.
pub fn repetitions_table(runs: &[RunResult]) -> String {
    let mut rows = Fitted::new(["repetition"].into_iter().chain(heads()), 2);
    for run in runs {
        let times = TIMES.iter().map(|(_, of)| time_cell(mean(run, *of)));
        let counts = COUNTS.iter().map(|(_, of)| count_cell(mean(run, *of)));
        rows.add([number(run.repetition)].into_iter().chain(times).chain(counts));
    }
    let over = |of: fn(&CopyResult) -> Option<u64>, what: fn(&Summary) -> f64| {
        let means: Vec<f64> = runs.iter().filter_map(|run| mean(run, of)).collect();
        (!means.is_empty()).then(|| what(&Summary::of(&means)))
    };
    for (name, what) in [("mean", mean_of as fn(&Summary) -> f64), ("std dev", deviation_of)] {
        let times = TIMES.iter().map(|(_, of)| time_cell(over(*of, what)));
        let counts = COUNTS.iter().map(|(_, of)| count_cell(over(*of, what)));
        rows.add([comfy_table::Cell::new(name)].into_iter().chain(times).chain(counts));
    }
    let first = runs.first().map(head).unwrap_or_default();
    let text = rows.render();
    format!("{first}, {} repetitions, means over the copies\n{text}", runs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(repetition: u32, walls: &[u64]) -> RunResult {
        let copy = |wall: &u64| CopyResult { wall_ns: Some(*wall), ..CopyResult::default() };
        let copies = walls.iter().map(copy).collect();
        RunResult { repetition, copies, workload: "prime".into(), ..RunResult::default() }
    }

    #[test]
    fn repetitions_have_a_mean_and_a_deviation() {
        let text = repetitions_table(&[run(0, &[1_000, 3_000]), run(1, &[4_000])]);
        let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line("0").unwrap().contains("2.000 us"), "{text}");
        // The mean of 2 and 4 us.
        assert!(line("mean").unwrap().contains("3.000 us"), "{text}");
        assert!(line("std dev").unwrap().contains("1.414 us"), "{text}");
    }

    #[test]
    fn a_copy_that_failed_fails_the_command() {
        let mut runs = [run(0, &[1])];
        runs[0].copies[0].exit_code = Some(0);
        check_exits(runs.iter()).unwrap();
        runs[0].copies[0].exit_code = Some(-9);
        assert!(check_exits(runs.iter()).unwrap_err().text().contains("1 of the copies"));
    }
}
