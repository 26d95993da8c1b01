// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between an experiment and the lanes in which its runs take place.
//!
//! A lane gets a complete request (a checked workload, the CPUs, the seed). It returns a result of
//! the same form, whether the machine is modelled or real. If a lane cannot do a part of the
//! request, it returns an error that names the part; it never skips a part silently.

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
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// A lane: where runs take place.
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
    /// Every lane.
    pub const ALL: [Self; 3] = [Self::Sim, Self::Host, Self::Vm];

    /// Its name in files, results and plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Host => "host",
            Self::Vm => "vm",
        }
    }

    /// When a run ends (ns) that would be endless, because neither its workload nor its request
    /// sets an end: after 10 s of simulated time, or 30 s on the host.
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

/// The origin of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Origin {
    /// Read from a trace file.
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

/// The parts of a trace that the result contains besides the measures. Slices and progress grow
/// with the length of the run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Keep {
    /// Every slice: the CPU timeline.
    pub slices: bool,
    /// The times of every unit of progress.
    pub progress: bool,
    /// The analysis (states, antagonists, run queues), with its thresholds. Its size does not grow
    /// with the length of the run, but it takes time.
    pub analysis: Option<Thresholds>,
    /// Only measures of the whole run, without those of each task.
    pub totals_only: bool,
}

impl Keep {
    /// Measures only.
    pub const NOTHING: Self =
        Self { slices: false, progress: false, analysis: None, totals_only: false };
    /// Slices and progress.
    pub const ALL: Self = Self { slices: true, progress: true, ..Self::NOTHING };
}

/// A complete description of one run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RunRequest {
    /// The workload. Its tasks contain policies and affinities, so a lane need not derive them from
    /// `scheduler`.
    pub workload: Workload,
    /// Sim: name of the scheduler in the registry. Host: a label, such as the policy (`FIFO`),
    /// which is copied to the result.
    pub scheduler: String,
    /// Tunables of the scheduler, as text with units (`slice` = `5ms`). Only the sim lane has
    /// tunables.
    pub tunables: Vec<(String, String)>,
    /// CPUs that the run may use. Host: these logical CPUs; no task may leave them. Sim: the
    /// machine has as many CPUs as the set has, numbered from 0.
    pub cpus: CpuMask,
    /// The modelled machine, of which the run uses the first CPUs; `None`: the lane's default. Only
    /// the sim lane has machines.
    pub machine: Option<Arc<MachineSpec>>,
    /// Parameters that are copied to the result: n, CPUs and the other axes of figures.
    pub parameters: BTreeMap<String, String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Ends the run at this time (ns) if it has not ended before. Replaces the workload's own
    /// duration.
    pub until_ns: Option<Nanos>,
    /// How much longer switches take than they do anyway: each by a time of its own up to this one
    /// (ns). Shows which results depend on microseconds. Only guests with counted time and the
    /// simulator have it.
    pub switch_jitter_ns: Nanos,
    /// The boot of the kernel. Another one draws other random numbers in the kernel itself, and the
    /// same ones in the workload.
    pub boot: Boot,
    /// The parts of the trace that the result contains.
    pub keep: Keep,
    /// A third-party program instead of the workload, which then has a name but no tasks. Only the
    /// host lane can run it.
    pub program: Option<Arc<ProgramRun>>,
}

impl RunRequest {
    /// A request to run `workload` under `scheduler` on `cpus`, to its end, with seed 1, on the
    /// lane's default machine. Only measures are kept.
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
            switch_jitter_ns: 0,
            boot: Boot::default(),
            keep: Keep::NOTHING,
            program: None,
        }
    }

    /// Returns the request. If a run of it would never end in `lane`, the request gets an end, and
    /// a warning names the endless task.
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

    /// Returns the error of a lane with a real clock, if the request has longer switches.
    pub fn refuse_switch_jitter(&self, lane: &str) -> Result<(), LaneError> {
        match self.switch_jitter_ns {
            0 => Ok(()),
            longer => Err(LaneError::Input(format!(
                "switches up to {longer} ns longer: {lane} cannot make them longer; only the \
                 simulator and guests with counted time can"
            ))),
        }
    }

    /// Returns the error of a lane that cannot boot a kernel again, if the request asks for that.
    pub fn refuse_boot(&self, lane: &str) -> Result<(), LaneError> {
        match self.boot {
            Boot(0) => Ok(()),
            Boot(number) => Err(LaneError::Input(format!(
                "boot {number}: {lane} cannot repeat a boot; only guests with counted time can"
            ))),
        }
    }

    /// Returns the error of a lane that cannot run programs, if the request has one.
    pub fn refuse_program(&self, lane: LaneKind) -> Result<(), LaneError> {
        let Some(program) = &self.program else { return Ok(()) };
        Err(LaneError::Input(format!(
            "program {:?}: lane {lane} plays workloads only; programs run in lane host",
            program.spec.name()
        )))
    }
}

/// Number of a boot, from 0. The first one adds nothing to a hash, so runs that were stored before
/// there were others keep their keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Boot(pub u32);

impl Boot {
    /// Greatest number.
    pub const MAX: u32 = 1_000;
}

impl Hash for Boot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0 > 0 {
            self.0.hash(state);
        }
    }
}

/// The greatest [`RunRequest::switch_jitter_ns`]. More would not be a detail of a machine any more.
pub const SWITCH_JITTER_NS_MAX: Nanos = 20_000;

/// Why a run has no result. The text tells what was found, what is allowed and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaneError {
    /// The request is wrong: an unknown scheduler, an impossible affinity, a tunable out of range.
    Input(String),
    /// The request asks for something that this lane or this machine cannot do.
    Unavailable(String),
    /// A check of the run failed: a scheduler lost or starved a task, or a measurement contradicts
    /// the kernel's own counters.
    Check(String),
    /// The system refused or broke something during the run (a file, a process).
    System(String),
}

impl LaneError {
    /// The text of the error.
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

/// A lane: runs requests.
pub trait Lane: Sync {
    /// Which lane it is, in results and plans.
    fn kind(&self) -> LaneKind;

    /// Whether runs on several threads at once have the same results as one after the other. True
    /// for a model; false for a real machine, where parallel runs disturb each other.
    fn is_parallel(&self) -> bool;

    /// Runs `request`. Every event also goes to `sink`, in order of time, and `end` at the end. A
    /// lane without events (a host without the rights to record) sends none; the result's `source`
    /// tells where its measures come from.
    fn run(&self, request: &RunRequest, sink: &mut dyn TraceSink) -> Result<RunResult, LaneError>;
}

/// Runs a request, and compares the result with what its workload expects. A run that would never
/// end gets an end, and its result a warning.
pub fn run_and_check(
    lane: &dyn Lane,
    request: &RunRequest,
    sink: &mut dyn TraceSink,
) -> Result<RunResult, LaneError> {
    check_run(lane.kind(), request, |bounded| lane.run(bounded, sink))
}

/// As [`run_and_check`], for a run of `request` in `lane` by a function.
pub fn check_run(
    lane: LaneKind,
    request: &RunRequest,
    run: impl FnOnce(&RunRequest) -> Result<RunResult, LaneError>,
) -> Result<RunResult, LaneError> {
    expect::check(&request.workload).map_err(LaneError::Input)?;
    let (bounded, warning) = request.bounded(lane);
    let mut result = run(&bounded)?;
    result.warnings.extend(warning);
    result.expectations = expect::evaluate(&request.workload, &result.measures);
    if request.keep.totals_only {
        result.measures.tasks = Vec::new();
    }
    Ok(result)
}

/// The schedulers that a lane can simulate. Plans use this to check names and tunables.
pub trait Schedulers {
    /// Checks that a scheduler of that name can be simulated. The error lists those that can.
    fn check_name(&self, name: &str) -> Result<(), StudyError>;

    /// Checks that the scheduler accepts these values of its tunables.
    fn check_tunables(&self, name: &str, tunables: &[(String, String)]) -> Result<(), LaneError>;
}
