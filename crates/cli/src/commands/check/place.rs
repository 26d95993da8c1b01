// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where cases are played and judged: in the simulator, or in guests ([`super::guest`]).

use super::finding::{Found, write_json};
use super::recipe::Recipe;
use crate::commands::trace_file::{TraceFile, format_of};
use crate::error::{CliError, CliResult};
use schedlab_check::{Case, Rule, Shape, Subject, Verdict};
use schedlab_model::{Costs, CpuMask};
use schedlab_run::machine::MachineSpec;
use schedlab_run::{Lane, LaneKind, RunRequest};
use schedlab_sim::SimLane;
use schedlab_sim::explain::{Query, Question, explain};
use schedlab_trace::export::TraceContext;
use std::path::Path;
use std::sync::Arc;

/// How a search is paced at a place.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Cases between two looks at the clock.
    pub batch: u64,
    /// Most runs that shrinking takes.
    pub shrink_runs_max: u32,
}

/// A place where cases are played.
pub trait Place: Sync {
    /// The lane, and the scheduler or the kernel.
    fn target(&self) -> (LaneKind, &str);

    /// The tunables that are set.
    fn tunables(&self) -> &[(String, String)];

    /// The scheduler that explains in the simulator what happens, if there is one.
    fn model(&self) -> Option<&str>;

    /// What cases may have.
    fn shape(&self) -> Shape;

    /// Its pace.
    fn pace(&self) -> Pace;

    /// The case as it is played here.
    fn fit(&self, case: &Case) -> Case {
        case.clone()
    }

    /// Plays a case and judges it by every rule.
    fn check(&self, case: &Case) -> Verdict;

    /// Plays a case and judges it by what shows whether this rule is broken.
    fn check_rule(&self, case: &Case, rule: &'static Rule) -> Verdict;

    /// The pair of cases by which a rule is judged.
    fn pair(&self, _case: &Case, _rule: &'static Rule) -> Option<[Case; 2]> {
        None
    }

    /// Why cases can no longer be played; the search has ended early.
    ///
    /// # Errors
    /// If that is so.
    fn failure(&self) -> CliResult<()> {
        Ok(())
    }

    /// Writes a trace of the found case, and its explanation.
    fn record(
        &self,
        recipe: &Recipe,
        found: &Found,
        trace: &Path,
        explanation: &Path,
    ) -> CliResult<()>;
}

/// Writes the trace of a run. A run that is stopped leaves the events up to there.
pub fn write_trace(
    lane: &dyn Lane,
    request: &RunRequest,
    case: &Case,
    path: &Path,
) -> CliResult<()> {
    let context = TraceContext::of_run(&case.workload, case.machine.nr_cpus());
    let mut trace = TraceFile::create(path, format_of(path)?, &context)?;
    let _ = lane.run(request, trace.sink());
    trace.commit()
}

/// The simulator.
pub struct InSim {
    pub subject: Subject,
    pub tunables: Vec<(String, String)>,
}

impl InSim {
    /// The lane that runs the case as its command does.
    fn lane(&self, recipe: &Recipe) -> CliResult<SimLane> {
        let spec = match recipe.is_flat() {
            true => None,
            false => Some(recipe.machine_file().spec().map_err(CliError::usage)?),
        };
        Ok(SimLane {
            machine: spec.map(|spec: MachineSpec| Arc::new(spec)),
            hz: Some(recipe.hz),
            costs: Some(if recipe.has_costs { Costs::DEFAULT } else { Costs::ZERO }),
            schedulers: vec![Arc::clone(&self.subject.scheduler)],
            ..SimLane::default()
        })
    }
}

impl Place for InSim {
    fn target(&self) -> (LaneKind, &str) {
        (LaneKind::Sim, &self.subject.scheduler.name)
    }

    fn tunables(&self) -> &[(String, String)] {
        &self.tunables
    }

    fn model(&self) -> Option<&str> {
        Some(&self.subject.scheduler.name)
    }

    fn shape(&self) -> Shape {
        self.subject.shape()
    }

    fn pace(&self) -> Pace {
        Pace { batch: super::search::BATCH, shrink_runs_max: super::SHRINK_RUNS_MAX }
    }

    fn check(&self, case: &Case) -> Verdict {
        schedlab_check::check(case, &self.subject)
    }

    fn check_rule(&self, case: &Case, rule: &'static Rule) -> Verdict {
        schedlab_check::check_rule(case, &self.subject, rule)
    }

    fn pair(&self, case: &Case, rule: &'static Rule) -> Option<[Case; 2]> {
        schedlab_check::pair(case, &self.subject, rule).map(|pair| pair.cases)
    }

    fn record(
        &self,
        recipe: &Recipe,
        found: &Found,
        trace: &Path,
        explanation: &Path,
    ) -> CliResult<()> {
        let (case, breach) = (&found.case, &found.breach);
        let lane = self.lane(recipe)?;
        let cpus = CpuMask::first(case.machine.nr_cpus());
        let request = RunRequest {
            tunables: self.tunables.clone(),
            seed: case.seed,
            ..RunRequest::new(case.workload.clone(), self.subject.scheduler.name.as_ref(), cpus)
        };
        write_trace(&lane, &request, case, trace)?;
        let question = match &breach.task {
            Some(task) => Question::Task(task.clone(), None),
            None => Question::At(breach.time_ns),
        };
        let query = Query { question, cpu: None, decisions_max: 20, candidates_max: 12 };
        // A run that is stopped cannot be explained.
        match explain(&lane, &request, &query) {
            Ok(answer) => write_json(explanation, &answer),
            Err(_) => Ok(()),
        }
    }
}
