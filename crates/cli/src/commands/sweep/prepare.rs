// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a plan from an experiment file, with every setting that decides its results.

use crate::args::{CompareArgs, MachineArgs};
use crate::commands::vm;
use crate::error::{CliError, CliResult};
use crate::machine::{self, Machines};
use crate::output::say;
use crate::schedulers::{Beside, Schedulers};
use schedlab_host::HostLane;
use schedlab_lab::Plan;
use schedlab_lab::identity::Program;
use schedlab_lab::plan::Note;
use schedlab_lab::store::{Settings, Sweep};
use schedlab_lab::studies::Source;
use schedlab_model::cpumask::CpuListError;
use schedlab_model::{Costs, CpuMask};
use schedlab_run::{Lane, LaneKind};
use schedlab_sim::{SimLane, Watchdog};
use schedlab_vm::VmLane;
use std::path::Path;

/// Settings for a model of `lane`; only for the lanes in `wanted`, unless it is empty.
pub fn settings(seed: u64, wanted: &[LaneKind], lane: &SimLane) -> Settings {
    let costs = |costs: &Costs| {
        let value = |name: &&str| costs.field(name).unwrap_or_default();
        Costs::NAMES.iter().map(|name| ((*name).to_string(), value(name))).collect()
    };
    Settings {
        seed,
        host_cpus: schedlab_host::allowed_cpus().to_string(),
        lanes: wanted.to_vec(),
        host_repetitions: None,
        quick: false,
        analysis: None,
        hz: lane.hz,
        costs: lane.costs.as_ref().map(costs),
        preempt: lane.preempt.map(|preempt| preempt.name().into()),
        watchdog: match lane.watchdog {
            Watchdog::Auto => "auto".into(),
            Watchdog::Off => "off".into(),
            Watchdog::After(ns) => format!("{ns}ns"),
        },
        host: String::new(),
        vm: String::new(),
        pairs: None,
    }
}

/// The modelled machine of settings.
fn lane(settings: &Settings) -> CliResult<SimLane> {
    let wrong = |text: String| CliError::usage(format!("settings of the manifest: {text}"));
    let mut costs = settings.costs.as_ref().map(|_| Costs::ZERO);
    for (name, value) in settings.costs.iter().flatten() {
        let field = costs.as_mut().and_then(|costs| costs.field_mut(name));
        *field.ok_or_else(|| wrong(format!("no cost {name:?}")))? = *value;
    }
    let hz = settings.hz.map(|hz| crate::input::hz(&hz.to_string()));
    let preempt = settings.preempt.as_deref().map(schedlab_run::machine::preempt_by_name);
    Ok(SimLane {
        hz: hz.transpose().map_err(wrong)?,
        costs,
        charges_textbooks: true,
        preempt: preempt.transpose().map_err(wrong)?,
        watchdog: crate::input::watchdog(&settings.watchdog).map_err(wrong)?,
        ..SimLane::default()
    })
}

/// A sweep before its first run, with its lanes.
#[derive(Debug)]
pub struct Prepared {
    /// The sweep.
    pub sweep: Sweep,
    /// The modelled machine.
    pub lane: SimLane,
    /// Guests, if any run is in one.
    pub guests: Option<VmLane>,
}

impl Prepared {
    /// The lanes of its runs.
    pub fn lanes<'l>(&'l self, host: &'l HostLane) -> Vec<&'l dyn Lane> {
        let mut lanes: Vec<&dyn Lane> = vec![&self.lane, host];
        lanes.extend(self.guests.as_ref().map(|guests| guests as &dyn Lane));
        lanes
    }

    /// From the command line.
    pub fn new(args: &CompareArgs, path: &Path) -> CliResult<Self> {
        let source = Source::read(path)?;
        let lane = machine::sim_lane(&args.machine)?;
        let known = Schedulers::new(&args.machine.scx, &[])?;
        let settings = settings(args.tasks.seed, args.sweep.lane.as_slice(), &lane);
        Self::of(source, settings, &Program::this(), &known, args.sweep.runs_max as usize)
    }

    /// Prepares a sweep from a source and settings; `program` determines the keys of its runs.
    pub fn of(
        mut source: Source,
        mut settings: Settings,
        program: &Program,
        known: &Schedulers,
        runs_max: usize,
    ) -> CliResult<Self> {
        let mut lane = lane(&settings)?;
        let host_cpus: Result<CpuMask, CpuListError> = settings.host_cpus.parse();
        let host_cpus = host_cpus.map_err(|error| CliError::usage(error.to_string()))?;
        let input = settings.input(host_cpus, runs_max);
        if settings.quick {
            source.study = source.study.quick();
        }
        let mut plan = Plan::default();
        let schedulers = Beside { folder: source.folder(), known };
        let planned = source.plan(&mut plan, &input, &Machines, &schedulers);
        for warning in source.take_warnings() {
            say(format!("warning [{}]: {}", warning.code, warning.text));
        }
        planned?;
        plan.analyse_first(settings.thresholds());
        lane.schedulers = known.compiled();
        let guests = guests(&mut plan);
        vm::agree_hz(&mut plan, guests.as_ref(), &lane)?;
        if plan.runs.is_empty() {
            return Err(CliError::usage_help(
                format!("{} has no run that this machine can do", source.name),
                plan.notes.iter().map(Note::to_string).collect::<Vec<_>>().join("; "),
            ));
        }
        if settings.host.is_empty() && plan.runs.iter().any(|run| run.lane == LaneKind::Host) {
            let info = schedlab_host::machine::info(&host_cpus);
            settings.host = format!("{}, {}", info.cpu_model, info.kernel);
        }
        if let Some(guests) = guests.as_ref().filter(|_| settings.vm.is_empty()) {
            settings.vm = guests.describe();
        }
        let model = |scheduler: &str| lane.identity(scheduler);
        let sweep = Sweep::new(source, settings, plan, program, model);
        Ok(Self { sweep, lane, guests })
    }

    /// Prints what will run.
    pub fn announce(&self, nr_stored: usize, output: &Path) {
        let stored = match nr_stored {
            0 => String::new(),
            count => format!("; {count} are stored in {} and not run again", output.display()),
        };
        say(format!("{}: {}{stored}", self.sweep.source.file_name(), self.counts()));
    }

    /// The number of runs in each lane.
    pub fn counts(&self) -> String {
        let guests = match self.sweep.nr_runs(LaneKind::Vm) {
            0 => String::new(),
            count => format!(", {count} in virtual machines"),
        };
        let [simulated, measured] =
            [LaneKind::Sim, LaneKind::Host].map(|lane| self.sweep.nr_runs(lane));
        format!("{simulated} runs simulated, {measured} on this machine{guests}")
    }
}

/// The lane for runs in virtual machines. If guests cannot run here, removes these runs from the
/// plan and adds a note.
fn guests(plan: &mut Plan) -> Option<VmLane> {
    vm::lane_of(plan).unwrap_or_else(|error| {
        plan.runs.retain(|run| run.lane != LaneKind::Vm);
        plan.notes.push(Note::NoGuests(error.text()));
        None
    })
}

/// Whether none of the machine options that a manifest fixes is given.
pub fn machine_is_default(args: &MachineArgs) -> bool {
    args.hz.is_none()
        && args.costs.is_none()
        && args.preempt.is_none()
        && args.watchdog == Watchdog::Auto
        && args.tunables.is_empty()
}
