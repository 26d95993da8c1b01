// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab analyse`: the measures, tables, slices and report of a recorded trace.
//!
//! One pass over the file in constant memory; only a timeline that was asked for grows with it, up
//! to [`SLICES_MAX`] slices. What the trace does not show is told as warnings.

mod doubts;
mod show;
mod timeline;

use super::trace_file::SliceLines;
use super::trace_input::{TraceInput, format_name};
use super::{analysis, export, report, results, sim};
use crate::args::AnalyseArgs;
use crate::error::{CliError, CliResult};
use crate::output::Out;
use schedlab_lab::ExperimentResult;
use schedlab_metrics::TaskMeasures;
use schedlab_metrics::analysis::{Context, SpecFacts, Thresholds};
use schedlab_metrics::cpu_use::{CpuMeasures, CpuUse};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::NullSink;
use schedlab_model::{CpuMask, Workload, suggest};
use schedlab_run::pipeline::on_own_thread;
use schedlab_run::{Keep, MachineInfo, Origin, Recorder, RunResult, SCHEMA_VERSION, Setting};
use schedlab_trace::{Facts, InputFormat};
use std::collections::BTreeSet;
use std::path::Path;
use timeline::Timeline;

/// Slices that a timeline keeps; about 60 bytes each.
pub const SLICES_MAX: usize = 1_000_000;

/// Which tasks are shown: by name or process id. Without any, all.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// Whether a task is shown.
    pub fn has(&self, name: &str, pid: Option<u32>) -> bool {
        let is_it =
            |wanted: &String| wanted == name || (pid.is_some() && wanted.parse().ok() == pid);
        self.0.is_empty() || self.0.iter().any(is_it)
    }

    /// Refuses a name that no task has.
    fn check(&self, path: &Path, tasks: &[TaskMeasures]) -> CliResult<()> {
        for wanted in &self.0 {
            let one = Self(vec![wanted.clone()]);
            if tasks.iter().any(|task| one.has(&task.name, task.pid)) {
                continue;
            }
            let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
            let guess = suggest::nearest(wanted, names.iter().copied())
                .map(|name| format!(": did you mean `{name}`?"))
                .unwrap_or_default();
            return Err(CliError::usage_help(
                format!(
                    "no task of {} has the name or process id {wanted:?}{guess}",
                    path.display()
                ),
                "without --task all tasks are shown",
            ));
        }
        Ok(())
    }
}

/// A trace that was read.
pub struct Analysed {
    /// What it shows, in the shape of a run.
    pub run: RunResult,
    /// What each CPU did.
    pub cpus: Vec<CpuMeasures>,
    /// What is known of it beside that.
    pub facts: Facts,
}

/// Runs the command.
pub fn analyse(args: &AnalyseArgs, out: &mut Out) -> CliResult<()> {
    if args.print.slices && args.files.len() > 1 {
        return Err(CliError::usage_help(
            format!("--slices shows one trace, here are {}", args.files.len()),
            "give one file",
        ));
    }
    let wanted = Wanted(args.task.clone());
    let mut all = Vec::new();
    for path in &args.files {
        all.push(one(path, args, &wanted, out)?);
    }
    results::warn(all.iter().map(|analysed| &analysed.run));
    if args.print.json && args.cpus {
        match &all[..] {
            [one] => out.json(&one.cpus)?,
            many => out.json(&many.iter().map(|one| &one.cpus).collect::<Vec<_>>())?,
        }
    } else if args.print.json {
        let runs: Vec<RunResult> = all.iter().map(|one| one.run.clone()).collect();
        sim::print_json(&runs, args.print.keep, out)?;
    } else if !args.print.slices {
        for analysed in &all {
            show::one(analysed, args.cpus, out)?;
            analysis::show(&analysed.run, out)?;
        }
    }
    if let Some(path) = &args.report {
        let runs: Vec<RunResult> = all.into_iter().map(|analysed| analysed.run).collect();
        let title = match &runs[..] {
            [run] => format!("Trace {}", run.workload),
            runs => format!("{} traces", runs.len()),
        };
        let results: Vec<_> = runs
            .into_iter()
            .map(|run| ExperimentResult::of_runs(&run.workload.clone(), vec![run]))
            .collect();
        report::write(path, None, &title, &results)?;
    }
    Ok(())
}

/// Reads one trace.
fn one(path: &Path, args: &AnalyseArgs, wanted: &Wanted, out: &mut Out) -> CliResult<Analysed> {
    let input = TraceInput::open(path)?;
    let format = input.format();
    let mut recorder = Recorder::new(1, Keep::NOTHING);
    if let Some(thresholds) = args.analysis.thresholds() {
        recorder = recorder.with_analysis(context(path, format, thresholds)?);
    }
    let mut cpus = CpuUse::default();
    let kept = if args.print.keep || args.report.is_some() { SLICES_MAX } else { 0 };
    let mut timeline = Timeline::new(kept, wanted.clone());
    let mut lines = SliceLines::new(args.print.slices.then_some(out), true).only(wanted.clone());
    let facts = if kept == 0 && !args.print.slices {
        // Reading and measuring take about as long: each has its own thread.
        let mut sinks = (&mut recorder, &mut cpus);
        on_own_thread(&mut sinks, |sink| input.read(Vec::new(), sink))?
    } else {
        let names = names_of(path, format)?;
        let shown = (&mut timeline, &mut lines);
        input.read(names, &mut ((&mut recorder, &mut cpus), shown))?
    };
    lines.finish()?;
    recorder.set_cpus(facts.nr_cpus);
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let recorded = recorder.finish(&Workload::new(&name, vec![]));
    let (mut measures, mut analysis) = (recorded.measures, recorded.analysis);
    for (task, last) in &facts.last_names {
        // The list of tasks is by id, but leaves out those that no event released.
        if let Ok(at) = measures.tasks.binary_search_by_key(&task.0, |task| task.id) {
            measures.tasks[at].name.clone_from(last);
        }
    }
    if let Some(analysis) = &mut analysis {
        analysis.rename(&facts.names());
    }
    wanted.check(path, &measures.tasks)?;
    let mut warnings = doubts::of(&facts, &measures);
    let (slices, progress, cut) = timeline.finish();
    warnings.extend(cut);
    measures.tasks.retain(|task| wanted.has(&task.name, task.pid));
    if let Some(analysis) = &mut analysis {
        let ids: BTreeSet<u32> = measures.tasks.iter().map(|task| task.id).collect();
        analysis.retain(|task| ids.contains(&task));
    }
    let run = RunResult {
        schema_version: SCHEMA_VERSION,
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
        lane: Origin::Trace,
        scheduler: "recorded".into(),
        workload: name,
        machine: machine(&facts),
        source: format_name(format, &facts).into(),
        warnings,
        measures,
        slices,
        progress,
        analysis,
        ..RunResult::default()
    };
    Ok(Analysed { run, cpus: cpus.finish(facts.nr_cpus), facts })
}

/// What the analysis knows of a trace: its CPUs, from its head or from a pass of its own. Stdin
/// cannot be read twice; there the CPUs are not known before its end, and there is no lag.
fn context(path: &Path, format: InputFormat, thresholds: Thresholds) -> CliResult<Context> {
    let nr_cpus = match format {
        _ if path == Path::new("-") => 0,
        InputFormat::Slt => export::log_cpus(path)?,
        _ => TraceInput::open(path)?.read(Vec::new(), &mut NullSink)?.nr_cpus,
    };
    // What schedlab recorded begins with the run, when no CPU runs a task of it; where a log was
    // made of another's trace, its first event says that it does not.
    let is_whole = format != InputFormat::Text;
    let other = SpecFacts { cpus: None, ..SpecFacts::default() };
    let cpus = CpuMask::first(nr_cpus.min(NR_CPUS_MAX as u32));
    Ok(Context { cpus, is_whole, other, thresholds, ..Context::default() })
}

/// The last name of each task that has several, from a pass of its own: slices go out before the
/// end is known, and a task that has called exec is not known by the name of its parent. Stdin
/// cannot be read twice; there it is the first name.
fn names_of(path: &Path, format: InputFormat) -> CliResult<Vec<String>> {
    if format != InputFormat::Text || path == Path::new("-") {
        return Ok(Vec::new());
    }
    let facts = TraceInput::open(path)?.read(Vec::new(), &mut NullSink)?;
    Ok(facts.names())
}

/// What the trace says of its machine, and what it holds.
fn machine(facts: &Facts) -> MachineInfo {
    let setting = |name: &str, value: String| Setting { name: name.into(), value };
    let mut settings = vec![
        setting("trace.tasks", facts.nr_tasks.to_string()),
        setting("trace.events", facts.nr_events.to_string()),
        setting("trace.start_clock_ns", facts.start_clock_ns.to_string()),
        setting("trace.end_ns", facts.end_ns.to_string()),
    ];
    if facts.nr_other_events > 0 {
        settings.push(setting("trace.other_events", facts.nr_other_events.to_string()));
    }
    MachineInfo {
        cpu_model: "not in the trace".into(),
        nr_cpus: facts.nr_cpus,
        hz: None,
        kernel: String::new(),
        settings,
    }
}
