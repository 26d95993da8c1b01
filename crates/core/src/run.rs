// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a request.

use crate::columns::Filler;
use crate::lane::Watch;
use crate::outcome::EventHash;
use crate::schedulers::{self, Planned};
use crate::workload::{self, Changes, Named, Source};
use crate::{Error, Kind, Outcome, Request, SimLane, machine, parse};
use schedlab_engine::SimConfig;
use schedlab_metrics::analysis::Thresholds;
use schedlab_model::{Machine, Nanos, Policy, Workload};
use schedlab_run::machine::preempt_by_name;
use schedlab_run::policy::Spec;
use schedlab_run::{LaneError, LaneKind, RunRequest, Warning, check_run, expect};
use schedlab_sched::{Options, Scheduler};
use std::sync::Arc;

/// The name of a workload file without a name.
const WORKLOAD_NAME: &str = "workload.json";
/// The name of a machine file and of a costs file in errors.
const MACHINE_NAME: &str = "machine.toml";
const COSTS_NAME: &str = "costs";

/// Runs the request to its end.
///
/// # Errors
/// If the request is wrong, or if the scheduler breaks a rule. The texts are the command line's.
///
/// ```
/// let request = schedlab_core::Request::new("hogs:n=2,work=10ms", "rr:quantum=5ms");
/// let outcome = schedlab_core::simulate(&request).unwrap();
/// assert_eq!(outcome.result.measures.totals.makespan_ns, Some(20_000_000));
/// ```
pub fn simulate(request: &Request) -> Result<Outcome, Error> {
    simulate_with(request, None, None)
}

/// Runs the request under `scheduler` in place of the one that it names, if there is one, and calls
/// `watch` with the present time again and again. If `watch` breaks, the run ends with an error of
/// the kind [`Kind::Cancelled`].
pub fn simulate_with(
    request: &Request,
    scheduler: Option<Arc<Scheduler>>,
    watch: Option<&mut Watch<'_>>,
) -> Result<Outcome, Error> {
    let prepared = Prepared::new(request, scheduler)?;
    let nr_cpus = prepared.run.cpus.weight();
    let mut filler = Filler::new(request.keep, nr_cpus);
    let mut hash = EventHash::new(request.keep.digest, nr_cpus);
    let mut cancelled = false;
    let result = check_run(LaneKind::Sim, &prepared.run, |bounded| {
        let sinks = &mut (&mut filler, &mut hash);
        let Some(watch) = watch else { return prepared.lane.run_observed(bounded, sinks, None) };
        let mut noting = |now| {
            let flow = watch(now);
            cancelled |= flow.is_break();
            flow
        };
        prepared.lane.run_watched(bounded, sinks, &mut noting)
    });
    let mut result = result.map_err(|error| failure(error, cancelled))?;
    result.warnings.extend(prepared.warnings);
    let digest = hash.finish(&result).map_err(|error| LaneError::Check(error.to_string()))?;
    Ok(Outcome { result, columns: filler.finish(), notes: prepared.notes, digest })
}

/// Checks the request without running it.
pub fn validate(request: &Request) -> Result<(), Error> {
    let prepared = Prepared::new(request, None)?;
    Ok(prepared.lane.check(&prepared.run)?)
}

/// Everything that a simulation borrows, for callers that advance it themselves.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The workload, with an end.
    pub workload: Workload,
    /// The machine, with its costs.
    pub machine: Machine,
    /// The scheduler.
    pub scheduler: Arc<Scheduler>,
    /// Values of its tunables.
    pub options: Options,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Ends the run at this time (ns).
    pub until_ns: Option<Nanos>,
    /// Longest wait of a runnable task (ns).
    pub watchdog_ns: Option<Nanos>,
}

impl Inputs {
    /// The inputs of a run of `request` under `scheduler`, or else under the one that it names.
    pub fn new(request: &Request, scheduler: Option<Arc<Scheduler>>) -> Result<Self, Error> {
        let prepared = Prepared::new(request, scheduler)?;
        let (bounded, _) = prepared.run.bounded(LaneKind::Sim);
        Ok(prepared.lane.inputs(&bounded)?)
    }

    /// What the engine needs besides the workload.
    pub fn config(&self) -> SimConfig<'_> {
        SimConfig {
            machine: &self.machine,
            scheduler: &self.scheduler,
            options: &self.options,
            seed: self.seed,
            until_ns: self.until_ns,
            watchdog_ns: self.watchdog_ns,
        }
    }
}

fn failure(error: LaneError, cancelled: bool) -> Error {
    let error = Error::from(error);
    match cancelled {
        true => Error { kind: Kind::Cancelled, ..error },
        false => error,
    }
}

/// A request whose names and texts have been read.
pub(crate) struct Prepared {
    /// The lane: machine, costs, watchdog.
    pub lane: SimLane,
    /// The request for it.
    pub run: RunRequest,
    /// Warnings of the workload's file.
    pub warnings: Vec<Warning>,
    /// Remarks for people.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Reads everything in `request`; `own` replaces its scheduler.
    pub fn new(request: &Request, own: Option<Arc<Scheduler>>) -> Result<Self, Error> {
        let mut lane = lane(request)?;
        let nr_cpus = match request.cpus {
            Some(cpus) => Some(parse::nr_cpus(cpus).map_err(|text| wrong("cpus", cpus, &text))?),
            None => None,
        };
        let nr_cpus = machine::nr_cpus(&lane, nr_cpus)?;
        let named = named(request, nr_cpus)?;
        expect::check(&named.workload).map_err(|text| Error::usage(text, ""))?;
        let spec = Spec::parse(&request.scheduler)?;
        let mut notes = Vec::new();
        let scheduler = match own {
            Some(scheduler) => {
                lane.schedulers.push(Arc::clone(&scheduler));
                scheduler
            }
            None => {
                let scheduler = schedulers::find(spec.name)?;
                notes.extend(schedulers::alias_note(spec.name, scheduler));
                Arc::clone(scheduler)
            }
        };
        notes.extend(schedulers::free_note(&lane, std::iter::once(scheduler.name.as_ref())));
        let preset = request.machine.as_deref().filter(|text| !is_text(text));
        let machine = preset.or(lane.machine.as_ref().map(|spec| spec.machine.name.as_str()));
        let run = Planned {
            named: &named,
            scheduler: &scheduler,
            policy: spec.policy.map(|policy| (policy, request.priority)),
            tunables: spec.tunables_with(request.tunables.clone().into_iter().collect()),
            nr_cpus,
            machine,
            seed: request.seed,
            repetition: request.repetition,
            until_ns: optional("until", request.until.as_deref(), parse::duration)?,
            keep: schedlab_run::Keep {
                analysis: request.keep.analysis.then(Thresholds::default),
                totals_only: request.keep.totals_only,
                ..schedlab_run::Keep::NOTHING
            },
        }
        .request();
        Ok(Self { lane, run, warnings: named.warnings, notes })
    }
}

fn lane(request: &Request) -> Result<SimLane, Error> {
    let spec = match request.machine.as_deref() {
        None => None,
        Some(text) if is_text(text) => Some(machine::of_file(MACHINE_NAME, text)?),
        Some(name) => Some(machine::preset(name).ok_or_else(|| machine::unknown(name, &[]))?),
    };
    let costs = match request.costs.as_deref() {
        None => None,
        Some(text) if text.contains('=') => Some(machine::costs_of_file(COSTS_NAME, text)?),
        Some(name) => {
            let costs = machine::costs_by_name(name);
            Some(costs.ok_or_else(|| {
                Error::usage(
                    format!("costs is {name:?}, which is no costs file"),
                    "allowed are zero, default and the text of a file that `schedlab calibrate` \
                     wrote",
                )
            })?)
        }
    };
    let hz = request.hz.map(|hz| hz.to_string());
    Ok(SimLane {
        machine: spec.map(Arc::new),
        costs,
        hz: optional("hz", hz.as_deref(), parse::hz)?,
        preempt: optional("preempt", request.preempt.as_deref(), preempt_by_name)?,
        watchdog: optional("watchdog", request.watchdog.as_deref(), parse::watchdog)?
            .unwrap_or_default(),
        ..SimLane::default()
    })
}

/// Whether the text is that of a file, and not a name.
fn is_text(text: &str) -> bool {
    text.contains(['\n', '=', '{'])
}

fn named(request: &Request, nr_cpus: u32) -> Result<Named, Error> {
    let name = request.workload_name.as_deref().unwrap_or(WORKLOAD_NAME);
    let source = Source::of_text(&request.workload, name)?;
    let in_range = |name: &str, value: Option<i64>, least: i64, most: i64| match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(wrong(name, value, &format!("allowed are {least} to {most}")))
        }
        _ => Ok(()),
    };
    in_range("nice", request.nice.map(i64::from), -20, 19)?;
    in_range("priority", request.priority.map(i64::from), 1, 99)?;
    let policy: Option<Policy> = optional("policy", request.policy.as_deref(), parse::policy)?;
    let changes = Changes {
        params: request
            .params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        policy,
        priority: request.priority,
        nice: request.nice,
    };
    workload::make(source, &changes, nr_cpus)
}

fn optional<T>(
    name: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    text.map(|text| parse(text).map_err(|error| wrong(name, text, &error))).transpose()
}

fn wrong(name: &str, found: impl std::fmt::Display, error: &str) -> Error {
    Error::usage(format!("{name} is {found}: {error}"), "")
}
