// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment file made into a plan, with everything that decides its results.

use crate::args::{CompareArgs, LaneArg, MachineArgs};
use crate::commands::studies::Source;
use crate::commands::{guest_hz, vm};
use crate::error::{CliError, CliResult};
use crate::machine;
use crate::output::say;
use crate::schedulers::Schedulers;
use schedlab_host::HostLane;
use schedlab_lab::identity::{Program, plan_key, run_key};
use schedlab_lab::plan::Note;
use schedlab_lab::validate::Wanted;
use schedlab_lab::{Plan, PlanInput, PlannedRun};
use schedlab_metrics::analysis::Thresholds;
use schedlab_model::{Costs, Preempt};
use schedlab_run::{Lane, LaneKind};
use schedlab_sim::{SimLane, Watchdog};
use schedlab_vm::VmLane;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What decides the results beside the experiment file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Seed of the first repetition where the file names no seeds, and of the order of runs on a
    /// real machine.
    pub seed: u64,
    /// CPUs of the host that runs may use; their number is what `all` counts.
    pub host_cpus: String,
    /// Only these lanes, if any is named.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub lanes: Vec<LaneKind>,
    /// Repetitions on the host instead of the study's, if any were asked for.
    #[serde(default)]
    pub host_repetitions: Option<u32>,
    /// The quick form of the study.
    #[serde(default)]
    pub quick: bool,
    /// The first run of each point is analysed too: lengths (ns) from which a wait is starvation,
    /// and a CPU that idles beside a waiting task wasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<[u64; 2]>,
    /// Ticks a second of modelled machines instead of their own.
    pub hz: Option<u32>,
    /// Costs of modelled machines (ns) instead of their own.
    pub costs: Option<BTreeMap<String, u64>>,
    /// Preemption model instead of the machine's or the scheduler's.
    pub preempt: Option<String>,
    /// Longest wait of a runnable task: `auto`, `off`, or a time in ns.
    pub watchdog: String,
    /// CPU model and kernel of the host; empty where nothing was measured.
    pub host: String,
    /// QEMU and guest of runs in virtual machines; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vm: String,
    /// What was wanted of a validation; the text is then a validation file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Wanted>,
}

impl Settings {
    /// For a model as `lane` has it; only the lanes that are `wanted`, if any is.
    pub fn new(seed: u64, wanted: &[LaneArg], lane: &SimLane) -> Self {
        let costs = |costs: &Costs| {
            let value = |name: &&str| costs.field(name).unwrap_or_default();
            Costs::NAMES.iter().map(|name| ((*name).to_string(), value(name))).collect()
        };
        Self {
            seed,
            host_cpus: schedlab_host::allowed_cpus().to_string(),
            lanes: wanted.iter().map(|lane| lane.kind()).collect(),
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
            validation: None,
        }
    }

    /// The modelled machine.
    pub fn lane(&self) -> CliResult<SimLane> {
        let wrong = |text: String| CliError::usage(format!("settings of the manifest: {text}"));
        let mut costs = self.costs.as_ref().map(|_| Costs::ZERO);
        for (name, value) in self.costs.iter().flatten() {
            let field = costs.as_mut().and_then(|costs| costs.field_mut(name));
            *field.ok_or_else(|| wrong(format!("no cost {name:?}")))? = *value;
        }
        let hz = self.hz.map(|hz| crate::input::hz(&hz.to_string()));
        let preempt = self.preempt.as_deref().map(schedlab_run::machine::preempt_by_name);
        Ok(SimLane {
            hz: hz.transpose().map_err(wrong)?,
            costs,
            preempt: preempt.transpose().map_err(wrong)?,
            watchdog: crate::input::watchdog(&self.watchdog).map_err(wrong)?,
            ..SimLane::default()
        })
    }
}

/// A sweep before its first run.
#[derive(Debug)]
pub struct Prepared {
    /// The file.
    pub source: Source,
    /// What decides the results beside it.
    pub settings: Settings,
    /// All runs.
    pub plan: Plan,
    /// Key of each run.
    pub keys: Vec<String>,
    /// Key of all.
    pub plan_key: String,
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
        let settings = Settings::new(args.tasks.seed, args.sweep.lane.as_slice(), &lane);
        Self::of(source, settings, &Program::this(), &known, args.sweep.runs_max as usize)
    }

    /// From a source and settings, with the keys that `program` gives.
    pub fn of(
        mut source: Source,
        mut settings: Settings,
        program: &Program,
        known: &Schedulers,
        runs_max: usize,
    ) -> CliResult<Self> {
        let mut lane = settings.lane()?;
        let host_cpus = crate::input::cpu_list(&settings.host_cpus).map_err(CliError::usage)?;
        let input = PlanInput {
            host_cpus,
            seed: settings.seed,
            lanes: settings.lanes.clone(),
            host_repetitions: settings.host_repetitions,
            runs_max,
            has_views: true,
        };
        if settings.quick {
            source.study = source.study.quick();
        }
        let mut plan = Plan::default();
        source.plan(&mut plan, &input, known)?;
        analyse_first(&mut plan, settings.analysis);
        lane.schedulers = known.compiled();
        let guests = guests(&mut plan);
        guest_hz::agree(&mut plan, guests.as_ref(), &lane)?;
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
        let keys = keys(&plan, &lane, &settings, program);
        let names = plan.runs.iter().map(|run| plan.experiments[run.experiment].name.as_str());
        let plan_key = plan_key(names.zip(keys.iter().map(String::as_str)));
        Ok(Self { source, settings, plan, keys, plan_key, lane, guests })
    }

    /// Name of the experiment file without its folder: what is the same on every machine.
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.source.name).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Title of the report.
    pub fn title(&self) -> String {
        let study = &self.source.study;
        if study.title.is_empty() { study.name.clone() } else { study.title.clone() }
    }

    /// Says what comes.
    pub fn announce(&self, nr_stored: usize, output: &Path) {
        let stored = match nr_stored {
            0 => String::new(),
            count => format!("; {count} are stored in {} and not run again", output.display()),
        };
        say(format!("{}: {}{stored}", self.file_name(), self.counts()));
    }

    /// How many runs are where.
    pub fn counts(&self) -> String {
        let count = |lane: LaneKind| self.plan.runs.iter().filter(|run| run.lane == lane).count();
        let guests = match count(LaneKind::Vm) {
            0 => String::new(),
            count => format!(", {count} in virtual machines"),
        };
        let [simulated, measured] = [LaneKind::Sim, LaneKind::Host].map(count);
        format!("{simulated} runs simulated, {measured} on this machine{guests}")
    }
}

/// What of a lane decides its runs, beside their requests.
#[derive(Hash)]
enum LaneSettings<'l> {
    Sim {
        hz: Option<u32>,
        costs: Option<Costs>,
        preempt: Option<Preempt>,
        watchdog: Watchdog,
        /// Digest of the source of a compiled scheduler.
        digest: Option<&'l str>,
    },
    /// CPU model and kernel.
    Host(&'l str),
    /// QEMU and guest.
    Vm(&'l str),
}

/// The key of each run.
fn keys(plan: &Plan, lane: &SimLane, settings: &Settings, program: &Program) -> Vec<String> {
    let SimLane { hz, costs, preempt, watchdog, .. } = *lane;
    let key = |run: &PlannedRun| {
        let mut compiled = lane.schedulers.iter();
        let of_file = compiled.find(|found| found.name == run.request.scheduler);
        let digest = of_file.and_then(|found| found.digest.as_deref());
        let lane = match run.lane {
            LaneKind::Sim => LaneSettings::Sim { hz, costs, preempt, watchdog, digest },
            LaneKind::Vm => LaneSettings::Vm(&settings.vm),
            LaneKind::Host => LaneSettings::Host(&settings.host),
        };
        run_key(run, &lane, program)
    };
    plan.runs.iter().map(key).collect()
}

/// Asks for the analysis of the first run of each point.
fn analyse_first(plan: &mut Plan, lengths: Option<[u64; 2]>) {
    let thresholds = lengths.map(|[starved_ns, wasted_ns]| Thresholds { starved_ns, wasted_ns });
    for run in plan.runs.iter_mut().filter(|run| run.request.repetition == 0) {
        run.request.keep.analysis = thresholds;
    }
}

/// The lane for runs in virtual machines. Where there can be none, they leave the plan, with a
/// note.
fn guests(plan: &mut Plan) -> Option<VmLane> {
    vm::lane_of(plan).unwrap_or_else(|error| {
        plan.runs.retain(|run| run.lane != LaneKind::Vm);
        plan.notes.push(Note::NoGuests(error.text()));
        None
    })
}

/// Options of the modelled machine that a manifest fixes.
pub fn machine_is_default(args: &MachineArgs) -> bool {
    args.hz.is_none()
        && args.costs.is_none()
        && args.preempt.is_none()
        && args.watchdog == Watchdog::Auto
        && args.tunables.is_empty()
}
