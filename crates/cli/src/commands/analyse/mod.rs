// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab analyse`: the measures, tables, slices and report of a recorded trace.
//!
//! The command reads the file once, in constant memory. Only a requested timeline grows with the
//! trace, up to [`SLICES_MAX`] slices. Warnings name what the trace does not show.

mod answer;
mod doubts;
mod processes;
mod show;
mod timeline;

use super::trace_file::SliceLines;
use super::trace_input::{TraceInput, format_name};
use super::{export, report, results, sim};
use crate::args::AnalyseArgs;
use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::table::duration;
use schedlab_lab::ExperimentResult;
use schedlab_metrics::TaskMeasures;
use schedlab_metrics::analysis::{Analysis, Context, LISTED_MAX, SpecFacts, Wanted};
use schedlab_metrics::cpu_use::{CpuMeasures, CpuUse};
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::NullSink;
use schedlab_model::{CpuMask, Nanos, Workload, suggest};
use schedlab_run::pipeline::on_own_thread;
use schedlab_run::{Keep, MachineInfo, Origin, Recorder, RunResult, SCHEMA_VERSION, Setting};
use schedlab_trace::window::Delayed;
use schedlab_trace::{Facts, InputFormat, Window};
use std::collections::BTreeSet;
use std::path::Path;
use timeline::Timeline;

/// Maximum number of slices in a timeline; each takes about 60 bytes.
pub const SLICES_MAX: usize = 1_000_000;

/// Maximum number of findings of each kind under `--all`; each takes about 200 bytes.
const ALL_MAX: usize = 1_000_000;

/// Refuses a name or process id that no task has.
fn check_wanted(wanted: &Wanted, path: &Path, tasks: &[TaskMeasures]) -> CliResult<()> {
    for name in wanted.names() {
        let one = Wanted::new(vec![name.to_string()]);
        if tasks.iter().any(|task| one.has(&task.name, task.pid)) {
            continue;
        }
        let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let guess = suggest::nearest(name, names.iter().copied())
            .map(|name| format!(": did you mean `{name}`?"))
            .unwrap_or_default();
        return Err(CliError::usage_help(
            format!("no task of {} has the name or process id {name:?}{guess}", path.display()),
            "without --task all tasks are shown",
        ));
    }
    Ok(())
}

/// An analysed trace.
pub struct Analysed {
    /// Its measures, in the same type as those of a run.
    pub run: RunResult,
    /// What each CPU did.
    pub cpus: Vec<CpuMeasures>,
    /// Other facts about the trace.
    pub facts: Facts,
    /// The analysis. The first line needs it even if no table shows it.
    pub analysis: Analysis,
    /// The requested part of the trace (ns from its start).
    pub part: Part,
}

/// A part of a trace (ns from its start).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its start.
    pub from_ns: Nanos,
    /// Its end; [`Nanos::MAX`] means the end of the trace.
    pub to_ns: Nanos,
}

impl Part {
    /// The part that `--from` and `--to` select.
    fn of(args: &AnalyseArgs) -> CliResult<Self> {
        let part = Self { from_ns: args.from.unwrap_or(0), to_ns: args.to.unwrap_or(Nanos::MAX) };
        if part.from_ns < part.to_ns {
            return Ok(part);
        }
        let (from, to) = (duration(part.from_ns), duration(part.to_ns));
        Err(CliError::usage_help(
            format!("--from {from} is not before --to {to}"),
            "give the start of the part first: --from 1.2s --to 1.3s",
        ))
    }

    /// Whether the part is the whole trace.
    pub const fn is_whole(self) -> bool {
        self.from_ns == 0 && self.to_ns == Nanos::MAX
    }

    /// Refuses a part that begins after the trace ends.
    fn check(self, path: &Path, end_ns: Nanos) -> CliResult<()> {
        if self.from_ns == 0 || self.from_ns < end_ns {
            return Ok(());
        }
        let (from, end) = (duration(self.from_ns), duration(end_ns));
        Err(CliError::usage_help(
            format!("{} ends at {end}, before --from {from}", path.display()),
            "times count from the first event of the trace",
        ))
    }
}

/// Runs the command.
pub fn analyse(args: &AnalyseArgs, out: &mut Out) -> CliResult<()> {
    if args.print.slices && args.files.len() > 1 {
        return Err(CliError::usage_help(
            format!("--slices shows one trace, here are {}", args.files.len()),
            "give one file",
        ));
    }
    let request = Request { args, wanted: Wanted::new(args.task.clone()), part: Part::of(args)? };
    let mut all = Vec::new();
    for path in &args.files {
        all.push(one(path, &request, out)?);
    }
    results::warn(all.iter().map(|analysed| &analysed.run));
    if args.print.json && args.cpus {
        match &all[..] {
            [one] => out.json(&one.cpus)?,
            many => out.json(&many.iter().map(|one| &one.cpus).collect::<Vec<_>>())?,
        }
    } else if args.print.json {
        let mut runs: Vec<RunResult> = all.iter().map(|one| one.run.clone()).collect();
        sim::print_json(&mut runs, args.print.keep, out)?;
    } else if !args.print.slices {
        for analysed in &all {
            show::one(analysed, args, out)?;
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

/// What the user asked for, the same for each trace.
struct Request<'a> {
    args: &'a AnalyseArgs,
    wanted: Wanted,
    part: Part,
}

impl Request<'_> {
    /// Whether tables of the analysis are shown. They need the number of CPUs.
    fn is_detailed(&self) -> bool {
        self.args.analysis.analysis || !self.wanted.is_all()
    }

    /// Maximum number of slices in the timeline.
    fn slices_max(&self) -> usize {
        if self.args.print.keep || self.args.report.is_some() { SLICES_MAX } else { 0 }
    }

    /// What the analysis must know about a trace beforehand.
    fn context(&self, format: InputFormat, nr_cpus: u32) -> Context {
        let args = self.args;
        let mut thresholds = args.analysis.thresholds().unwrap_or_default();
        if !self.wanted.is_all() && args.analysis.starved_after.is_none() {
            thresholds.starved_ns = 1;
        }
        Context {
            cpus: CpuMask::first(nr_cpus.min(NR_CPUS_MAX as u32)),
            is_whole: is_from_the_start(format) && self.part.from_ns == 0,
            other: SpecFacts { cpus: None, ..SpecFacts::default() },
            thresholds,
            wanted: self.wanted.clone(),
            listed_max: if args.all { ALL_MAX } else { LISTED_MAX },
            ..Context::default()
        }
    }
}

/// Whether the trace covers the run from its start. Traces recorded by schedlab do: no CPU runs a
/// task of the workload before it begins. A log converted from a foreign trace does not if its
/// first event marks it so.
fn is_from_the_start(format: InputFormat) -> bool {
    matches!(format, InputFormat::Slt | InputFormat::Ndjson | InputFormat::Parquet)
}

/// Reads one trace.
fn one(path: &Path, request: &Request<'_>, out: &mut Out) -> CliResult<Analysed> {
    let (args, part) = (request.args, request.part);
    let input = TraceInput::open(path)?;
    let format = input.format();
    let kept = request.slices_max();
    let has_slices = kept > 0 || args.print.slices;
    let survey = Survey::of(path, format, has_slices || request.is_detailed())?;
    let context = request.context(format, survey.nr_cpus);
    let nr_idle = if is_from_the_start(format) { survey.nr_cpus } else { 0 };
    let mut recorder = Recorder::new(1, Keep::NOTHING).with_analysis(context);
    let mut cpus = CpuUse::default();
    let wanted = &request.wanted;
    let mut timeline = Timeline::new(kept, wanted.clone());
    let mut lines = SliceLines::new(args.print.slices.then_some(out), true).only(wanted.clone());
    let range = (part.from_ns, part.to_ns);
    let facts = if has_slices {
        let slices = Delayed::new((&mut timeline, &mut lines), part.from_ns);
        let mut sinks = ((&mut recorder, &mut cpus), slices);
        input.read(survey.names, &mut Window::new(&mut sinks, range, nr_idle))?
    } else {
        // Reading and measuring take about as long: each has its own thread.
        let mut sinks = (&mut recorder, &mut cpus);
        on_own_thread(&mut sinks, |sink| {
            input.read(survey.names, &mut Window::new(sink, range, nr_idle))
        })?
    };
    lines.finish()?;
    part.check(path, facts.end_ns)?;
    recorder.set_cpus(facts.nr_cpus);
    let (slices, progress, cut) = timeline.finish();
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let recorded = recorder.finish(&Workload::new(&name, vec![]));
    let (mut measures, analysis) = (recorded.measures, recorded.analysis.unwrap_or_default());
    rename(&mut measures.tasks, &facts);
    check_wanted(wanted, path, &measures.tasks)?;
    let mut warnings = doubts::of(&facts, &measures, part);
    warnings.extend(cut);
    measures.tasks.retain(|task| wanted.has(&task.name, task.pid));
    let analysis = of_the_trace(analysis, &mut measures.tasks, part);
    let run = RunResult {
        schema_version: SCHEMA_VERSION,
        schedlab_version: env!("CARGO_PKG_VERSION").into(),
        lane: Origin::Trace,
        scheduler: "recorded".into(),
        workload: name,
        machine: machine(&facts, part),
        source: format_name(format, &facts).into(),
        warnings,
        measures,
        slices,
        progress,
        analysis: args.analysis.analysis.then(|| analysis.clone()),
        ..RunResult::default()
    };
    Ok(Analysed { run, cpus: cpus.finish(facts.nr_cpus), facts, analysis, part })
}

/// Gives each task its last name. The list is sorted by id, but omits tasks that no event released.
fn rename(tasks: &mut [TaskMeasures], facts: &Facts) {
    for (task, last) in &facts.last_names {
        if let Ok(at) = tasks.binary_search_by_key(&task.0, |task| task.id) {
            tasks[at].name.clone_from(last);
        }
    }
}

/// Keeps only the rows of these tasks, and makes times count from the start of the whole trace.
fn of_the_trace(mut analysis: Analysis, tasks: &mut [TaskMeasures], part: Part) -> Analysis {
    analysis.retain(|id| tasks.binary_search_by_key(&id, |task| task.id).is_ok());
    analysis.shift(part.from_ns);
    for task in tasks {
        task.release_ns = task.release_ns.saturating_add(part.from_ns);
        for time in [&mut task.first_run_ns, &mut task.exit_ns].into_iter().flatten() {
            *time = time.saturating_add(part.from_ns);
        }
    }
    analysis
}

/// Facts about a trace that the reader needs before the first event.
#[derive(Default)]
struct Survey {
    /// Number of its CPUs; 0 if unknown.
    nr_cpus: u32,
    /// The last name of each task that has several. Slices are written before the end is known, and
    /// a task that has called exec must not appear under its parent's name.
    names: Vec<String>,
}

impl Survey {
    /// Surveys a trace. A log has the facts in its head. For other traces, if `is_needed`, this
    /// reads the file once. Stdin cannot be read twice: there the number of CPUs stays unknown, and
    /// tasks keep their first names.
    fn of(path: &Path, format: InputFormat, is_needed: bool) -> CliResult<Self> {
        match format {
            _ if path == Path::new("-") => Ok(Self::default()),
            InputFormat::Slt => Ok(Self { nr_cpus: export::log_cpus(path)?, names: Vec::new() }),
            // If the part begins later, the analysis must know which CPUs were idle before it.
            _ if !is_needed && !is_from_the_start(format) => Ok(Self::default()),
            _ => {
                let facts = TraceInput::open(path)?.read(Vec::new(), &mut NullSink)?;
                Ok(Self { nr_cpus: facts.nr_cpus, names: facts.names() })
            }
        }
    }
}

/// What the trace says about its machine.
fn machine(facts: &Facts, part: Part) -> MachineInfo {
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
    if !part.is_whole() {
        settings.push(setting("trace.part_from_ns", part.from_ns.to_string()));
        settings.push(setting("trace.part_to_ns", part.to_ns.min(facts.end_ns).to_string()));
    }
    MachineInfo {
        cpu_model: "not in the trace".into(),
        nr_cpus: facts.nr_cpus,
        hz: None,
        kernel: String::new(),
        settings,
    }
}
