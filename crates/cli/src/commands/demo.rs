// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab demo`: studies S0 and S1, simulated and on this machine, to a table and a report.

use super::results::{self, Expectations};
use super::{report, sim, studies};
use crate::args::{DemoArgs, LaneArg};
use crate::error::{CliError, CliResult, Exit};
use crate::machine;
use crate::output::{AtomicFile, Out, is_watched, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_host::HostLane;
use schedlab_lab::{ExecuteOptions, Failure, LaneError, Plan, PlanInput, PlannedRun, execute};
use std::collections::BTreeMap;

/// Runs the command.
pub fn demo(args: &DemoArgs, out: &mut Out) -> CliResult<()> {
    let studies = studies::read(&args.studies)?;
    let lane = machine::sim_lane(&args.machine)?;
    let host = HostLane;
    let input = PlanInput {
        host_cpus: schedlab_host::allowed_cpus(),
        seed: args.seed,
        lanes: args.lane.map(LaneArg::name).map(String::from).into_iter().collect(),
        host_repetitions: args.repetitions,
        runs_max: schedlab_lab::plan::RUNS_MAX_DEFAULT,
        has_views: false,
    };
    let mut plan = Plan::default();
    for study in &studies {
        study.plan(&mut plan, &input)?;
    }
    for request in plan.runs.iter_mut().map(|run| &mut run.request) {
        if request.repetition == 0 {
            request.keep.analysis = args.analysis.thresholds();
        }
    }
    std::fs::create_dir_all(&args.output)
        .map_err(|error| CliError::file("create", &args.output, &error))?;
    announce(&plan, &input);
    let bar = Bar::new(&plan);
    let outcome = execute(
        &plan,
        &[&lane, &host],
        ExecuteOptions { threads: sim::threads(&args.machine), seed: args.seed },
        &|run, error| bar.step(&plan.runs[run], error),
    );
    bar.finish();
    results::warn(outcome.results.iter().flat_map(|result| &result.runs));
    out.line(results::summary(&outcome.results))?;
    let expectations = Expectations::of(outcome.results.iter().flat_map(|result| &result.runs));
    expectations.table().map(|table| out.line(table)).transpose()?;
    out.finish_now()?;
    if outcome.results.iter().any(|result| !result.runs.is_empty()) {
        let path = args.output.join("results.json");
        let mut file = AtomicFile::create(&path)?;
        serde_json::to_writer(&mut file, &outcome.results)
            .map_err(|error| CliError::file("write", &path, &error.into()))?;
        file.commit()?;
        let plots = args.plots.then(|| args.output.join("plots"));
        let path = args.output.join("report.html");
        report::write(&path, plots.as_deref(), &title(&studies), &outcome.results)?;
    }
    let finished = finish_with_failures(&outcome.failures, Unavailable::IsSaid);
    // A failed check counts most.
    expectations.check(&title(&studies)).and(finished)
}

fn title(studies: &[studies::Source]) -> String {
    let names: Vec<&str> = studies.iter().map(|source| source.study.name.as_str()).collect();
    format!("schedlab: {}", names.join(" and "))
}

/// Says what comes, so that nobody wonders why the machine is busy.
fn announce(plan: &Plan, input: &PlanInput) {
    let count = |lane: &str| plan.runs.iter().filter(|run| run.lane == lane).count();
    say(format!(
        "{} experiments: {} runs simulated, {} runs on this machine (CPUs {}), seed {}",
        plan.experiments.len(),
        count("sim"),
        count("host"),
        input.host_cpus,
        input.seed
    ));
    for note in &plan.notes {
        say(format!("note: {note}"));
    }
}

/// A progress bar for a person; a pipe or a log gets nothing.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for all runs of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let target =
            if is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(plan.runs.len() as u64), target);
        let template = "{elapsed_precise} [{wide_bar}] {pos}/{len} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        Self { bar }
    }

    /// Runs that are there already.
    pub fn skip(&self, count: usize) {
        self.bar.inc(count as u64);
    }

    /// A run has ended.
    pub fn step(&self, run: &PlannedRun, error: Option<&LaneError>) {
        self.bar.inc(1);
        let label: String = run.label().chars().take(40).collect();
        self.bar.set_message(if error.is_some() { format!("{label}: failed") } else { label });
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What runs that this machine cannot do mean for the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// They were asked for by name: the command fails.
    Fails,
    /// They are said, and what could be done counts: the demo works on any machine.
    IsSaid,
}

/// Tells every failure once, and turns them into an exit code: a failed check counts most, then bad
/// input, then what this machine cannot do.
pub fn finish_with_failures(failures: &[Failure], unavailable: Unavailable) -> CliResult<()> {
    let mut texts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for failure in failures {
        texts.entry(failure.error.text()).or_insert((0, &failure.label)).0 += 1;
    }
    for (text, (count, label)) in texts {
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        say(format!("no result: {label}{others}: {text}"));
    }
    let has = |wanted: fn(&LaneError) -> bool| failures.iter().any(|f| wanted(&f.error));
    if has(|error| matches!(error, LaneError::Check(_))) {
        Err(CliError::Silent(Exit::Check))
    } else if has(|error| matches!(error, LaneError::Input(_))) {
        Err(CliError::Silent(Exit::Usage))
    } else if has(|error| matches!(error, LaneError::System(_)))
        || (unavailable == Unavailable::Fails && !failures.is_empty())
    {
        Err(CliError::Silent(Exit::Unavailable))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_decides_the_exit_code() {
        let failure = |error| Failure { run: 0, label: "x".into(), error };
        let failures = [
            failure(LaneError::Unavailable("no".into())),
            failure(LaneError::Check("lost a task".into())),
        ];
        let exit = |failures: &[Failure]| match finish_with_failures(failures, Unavailable::Fails) {
            Err(CliError::Silent(exit)) => Some(exit),
            _ => None,
        };
        assert_eq!(exit(&failures), Some(Exit::Check));
        assert_eq!(exit(&failures[..1]), Some(Exit::Unavailable));
        assert_eq!(exit(&[]), None);
        assert!(finish_with_failures(&failures[..1], Unavailable::IsSaid).is_ok());
    }

    #[test]
    fn the_demos_plan_can_be_made_for_any_machine() {
        for nr_cpus in [1, 2, 7, 128] {
            let input = PlanInput {
                host_cpus: schedlab_model::CpuMask::first(nr_cpus),
                seed: 1,
                lanes: Vec::new(),
                host_repetitions: None,
                runs_max: schedlab_lab::plan::RUNS_MAX_DEFAULT,
                has_views: false,
            };
            let mut plan = Plan::default();
            for study in studies::built_in().unwrap() {
                study.plan(&mut plan, &input).unwrap();
            }
            for run in &plan.runs {
                run.request.workload.check(run.request.cpus.weight()).unwrap();
            }
            let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
            assert!(names.contains(&"S0-2cpu-4") && names.contains(&"S1-1cpu"), "{names:?}");
        }
    }
}
