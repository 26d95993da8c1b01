// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boundary between an experiment and the places where its runs happen.
//!
//! A lane gets a request that is complete in itself (a checked workload, the CPUs, the seed) and
//! gives the same shape of result whether the machine is modelled or real. What a lane cannot do it
//! refuses by name; it never skips a part of the workload in silence.

use crate::place::unknown;
use crate::program::ProgramRun;
use crate::{MachineSpec, RunResult, StudyError, Warning, expect};
use schedlab_metrics::analysis::Thresholds;
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{CpuMask, Nanos, TraceSink, Workload};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where runs happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum LaneKind {
    /// In the simulator.
    Sim,
    /// On the running kernel.
    Host,
    /// On a kernel in a virtual machine.
    Vm,
}

impl LaneKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Sim, Self::Host, Self::Vm];

    /// Its name in files, results and plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Host => "host",
            Self::Vm => "vm",
        }
    }

    /// When a run ends that neither its workload nor its request ends. Simulated time costs less
    /// than real time, and a person waits for the latter.
    pub const fn endless_limit_ns(self) -> Nanos {
        match self {
            Self::Sim | Self::Vm => 10 * NSEC_PER_SEC,
            Self::Host => 30 * NSEC_PER_SEC,
        }
    }
}

impl fmt::Display for LaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LaneKind {
    type Err = StudyError;

    fn from_str(text: &str) -> Result<Self, StudyError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| unknown("lane", text, Self::ALL.iter().map(|kind| kind.name())))
    }
}

impl TryFrom<String> for LaneKind {
    type Error = StudyError;

    fn try_from(text: String) -> Result<Self, StudyError> {
        text.parse()
    }
}

impl From<LaneKind> for String {
    fn from(lane: LaneKind) -> Self {
        lane.name().into()
    }
}

/// Where a result comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Origin {
    /// From a trace file.
    #[default]
    Trace,
    /// From a run in this lane.
    Lane(LaneKind),
}

impl Origin {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Lane(lane) => lane.name(),
        }
    }
}

impl From<LaneKind> for Origin {
    fn from(lane: LaneKind) -> Self {
        Self::Lane(lane)
    }
}

impl PartialEq<LaneKind> for Origin {
    fn eq(&self, lane: &LaneKind) -> bool {
        *self == Self::Lane(*lane)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for Origin {
    type Error = StudyError;

    fn try_from(text: String) -> Result<Self, StudyError> {
        let all = [Self::Trace].into_iter().chain(LaneKind::ALL.map(Self::Lane));
        let found = all.clone().find(|origin| origin.name() == text);
        found.ok_or_else(|| unknown("lane", &text, all.map(Self::name)))
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.name().into()
    }
}

/// Which parts of a trace stay in the result, beside the measures. Slices and progress grow with
/// the run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Keep {
    /// Every slice: the CPU timeline.
    pub slices: bool,
    /// The times of every unit of progress.
    pub progress: bool,
    /// The analysis (states, antagonists, run queues), with what counts as a finding. It does not
    /// grow with the run, but it takes time.
    pub analysis: Option<Thresholds>,
    /// Of the measures only those of the run as a whole, without each task's.
    pub totals_only: bool,
}

impl Keep {
    /// Measures only.
    pub const NOTHING: Self =
        Self { slices: false, progress: false, analysis: None, totals_only: false };
    /// Slices and progress.
    pub const ALL: Self = Self { slices: true, progress: true, ..Self::NOTHING };
}

/// One run, complete in itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RunRequest {
    /// What to run. Policies and affinities stand in its tasks: a lane need not look at `scheduler`
    /// to learn them.
    pub workload: Workload,
    /// Sim: name in the registry. Host: a label, such as the policy (`FIFO`), copied to the result.
    pub scheduler: String,
    /// Tunables of the scheduler, as text with units (`slice` = `5ms`). Only the sim lane has any.
    pub tunables: Vec<(String, String)>,
    /// CPUs that the run may use. Host: these logical CPUs, and no task may leave them. Sim: the
    /// machine has as many CPUs as the set, numbered from 0.
    pub cpus: CpuMask,
    /// The modelled machine, of which the run gets the first CPUs; `None`: the lane's own. Only the
    /// sim lane has any.
    pub machine: Option<Arc<MachineSpec>>,
    /// Copied to the result: n, CPUs and whatever else is an axis of a figure.
    pub parameters: BTreeMap<String, String>,
    /// Seed of every random draw.
    pub seed: u64,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Ends the run at this time (ns) if it has not ended before, in place of the workload's own
    /// duration.
    pub until_ns: Option<Nanos>,
    /// What stays in the result.
    pub keep: Keep,
    /// Somebody else's program in place of the workload, which then has a name and no task. Only
    /// the host lane runs it.
    pub program: Option<Arc<ProgramRun>>,
}

impl RunRequest {
    /// The first run, with seed 1, of `workload` under `scheduler` on `cpus`: to its end, on the
    /// lane's own machine, of which only the measures are kept.
    pub fn new(workload: Workload, scheduler: impl Into<String>, cpus: CpuMask) -> Self {
        Self {
            workload,
            scheduler: scheduler.into(),
            tunables: Vec::new(),
            cpus,
            machine: None,
            parameters: BTreeMap::new(),
            seed: 1,
            repetition: 0,
            until_ns: None,
            keep: Keep::NOTHING,
            program: None,
        }
    }

    /// The request with an end, and a warning that names the endless task, if a run of it would
    /// never end in `lane`.
    pub fn bounded(&self, lane: LaneKind) -> (Cow<'_, Self>, Option<Warning>) {
        let task = match self.until_ns {
            None => self.workload.endless_task(),
            Some(_) => None,
        };
        let Some(task) = task else { return (Cow::Borrowed(self), None) };
        let limit_ns = lane.endless_limit_ns();
        let warning = Warning::endless(&task.name, limit_ns / NSEC_PER_SEC);
        (Cow::Owned(Self { until_ns: Some(limit_ns), ..self.clone() }), Some(warning))
    }

    /// The error of a lane that has no programs, if the request has one.
    pub fn refuse_program(&self, lane: LaneKind) -> Result<(), LaneError> {
        let Some(program) = &self.program else { return Ok(()) };
        Err(LaneError::Input(format!(
            "program {:?}: lane {lane} plays workloads only; programs run in lane host",
            program.spec.name()
        )))
    }
}

/// Why a run gave no result. Each text says what was found, what is allowed and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaneError {
    /// The request is wrong: an unknown scheduler, an impossible affinity, a tunable out of range.
    Input(String),
    /// The request asks for something that this lane or this machine cannot do.
    Unavailable(String),
    /// A check of the run itself failed: a scheduler lost or starved a task, a measurement that
    /// contradicts the kernel's own counters.
    Check(String),
    /// The system refused or broke something on the way (a file, a process).
    System(String),
}

impl LaneError {
    /// The text, without the kind.
    pub fn text(&self) -> &str {
        match self {
            Self::Input(text)
            | Self::Unavailable(text)
            | Self::Check(text)
            | Self::System(text) => text,
        }
    }
}

impl fmt::Display for LaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for LaneError {}

/// A place where runs happen.
pub trait Lane: Sync {
    /// Which lane it is, in results and plans.
    fn kind(&self) -> LaneKind;

    /// Whether runs on several threads at once give the same result as one after the other. True
    /// for a model; false for a real machine, where neighbours disturb.
    fn is_parallel(&self) -> bool;

    /// Runs `request`. Every event also goes to `sink`, in time order, with `end` at the end; a
    /// lane that records no events (a host without rights) gives `sink` none and says so in the
    /// result's
    /// `source`.
    fn run(&self, request: &RunRequest, sink: &mut dyn TraceSink) -> Result<RunResult, LaneError>;
}

/// Runs a request, and compares the result with what its workload expects. A run that would never
/// end gets an end, and its result a warning.
pub fn run_and_check(
    lane: &dyn Lane,
    request: &RunRequest,
    sink: &mut dyn TraceSink,
) -> Result<RunResult, LaneError> {
    expect::check(&request.workload).map_err(LaneError::Input)?;
    let (bounded, warning) = request.bounded(lane.kind());
    let mut result = lane.run(&bounded, sink)?;
    result.warnings.extend(warning);
    result.expectations = expect::evaluate(&request.workload, &result.measures);
    if request.keep.totals_only {
        result.measures.tasks = Vec::new();
    }
    Ok(result)
}

/// The schedulers that a lane can simulate, as far as a plan must know them.
pub trait Schedulers {
    /// Whether a scheduler of that name can be simulated; the error lists those that can.
    fn check_name(&self, name: &str) -> Result<(), StudyError>;

    /// Whether the scheduler takes these values for its tunables.
    fn check_tunables(&self, name: &str, tunables: &[(String, String)]) -> Result<(), LaneError>;
}
