// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes single runs from a study: every point of every experiment, for this machine and seed.
//!
//! The plan is a pure function of study, machine and seed. Its order is the order of results. On a
//! real machine, the seed shuffles the order of runs (`host_order`), so that a drift of the machine
//! (heat, other load) does not affect only one scheduler.

mod hz;
mod note;

pub use hz::ModelTicks;
pub use note::Note;

use crate::Experiment;
use crate::study::{ExperimentSpec, RunsSpec, Shift, Study};
use schedlab_metrics::analysis::Thresholds;
use schedlab_model::program::Amount;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuMask, Nanos, Policy, Workload};
use schedlab_run::policy::{RT_PRIORITY_DEFAULT, Spec, apply_policy, scheduler_of};
use schedlab_run::program::{ProgramRun, Surroundings};
use schedlab_run::{Boot, Keep, LaneKind, MachineSpec, RunRequest, Schedulers, StudyError};
use schedlab_workload::units;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A workload and all its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// The workload.
    pub workload: Workload,
    /// Parameters: the given ones, and those in its name (`hogs:n=4`).
    pub parameters: BTreeMap<String, String>,
}

/// Makes a workload from its name, its parameters and the number of CPUs of the run.
pub type WorkloadFactory<'a> =
    dyn Fn(&str, &BTreeMap<String, String>, u32) -> Result<Built, String> + 'a;

/// Parses a workload written in the study: its name, its text, the number of CPUs.
pub type TasksReader<'a> = dyn Fn(&str, &str, u32) -> Result<Workload, String> + 'a;

/// Parameter of a run with a shifted start: the number of the shift, from 1.
pub const SHIFT: &str = "shift";
/// Parameter of a run with a shifted start whose switches also take longer: how much at most.
pub const SWITCH_JITTER: &str = "switch_jitter";

/// Makes a modelled machine from its name.
pub type MachineFactory<'a> = dyn Fn(&str) -> Result<MachineSpec, String> + 'a;

/// Makes the things that a study names.
#[derive(Clone, Copy)]
pub struct Makers<'m> {
    /// Makes workloads.
    pub workload: &'m WorkloadFactory<'m>,
    /// Parses workloads written in the study.
    pub tasks: &'m TasksReader<'m>,
    /// Makes machines.
    pub machine: &'m MachineFactory<'m>,
    /// Schedulers of the lane that simulates.
    pub schedulers: &'m dyn Schedulers,
}

/// What a plan depends on, in addition to the study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanInput {
    /// CPUs of the host that runs may use. Their number is the value of `all`.
    pub host_cpus: CpuMask,
    /// Seed of the first repetition; each later repetition adds 1.
    pub seed: u64,
    /// Only these lanes; empty: all.
    pub lanes: Vec<LaneKind>,
    /// Repetitions on the host instead of the study's, if given.
    pub host_repetitions: Option<u32>,
    /// Maximum number of runs in a plan.
    pub runs_max: usize,
    /// Whether every experiment gets a table with intervals, not only those that describe one.
    pub has_views: bool,
}

/// Default maximum number of runs in a plan; each takes about 3 kB of memory.
pub const RUNS_MAX_DEFAULT: usize = 100_000;

/// One run of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedRun {
    /// Index into [`Plan::experiments`].
    pub experiment: usize,
    /// The lane.
    pub lane: LaneKind,
    /// The request for the lane.
    pub request: RunRequest,
}

impl PlannedRun {
    /// A line for people: lane, scheduler, n, CPUs.
    pub fn label(&self) -> String {
        let parameters: Vec<String> =
            self.request.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "{} {} {} {}",
            self.lane,
            self.request.scheduler,
            self.request.workload.name,
            parameters.join(" ")
        )
    }
}

/// All runs of one or more studies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// Experiments, in the order of the study.
    pub experiments: Vec<Experiment>,
    /// Runs, in the order of results.
    pub runs: Vec<PlannedRun>,
    /// What this machine cannot do of the study.
    pub notes: Vec<Note>,
}

/// An entry of `runs`, with its index in the list.
#[derive(Clone, Copy)]
struct Entry<'p> {
    index: usize,
    runs: &'p RunsSpec,
}

/// One point of an experiment, without the scheduler.
struct Point<'p> {
    experiment: usize,
    spec: &'p ExperimentSpec,
    entry: Entry<'p>,
    workload: &'p str,
    machine: Option<&'p NamedMachine>,
    values: BTreeMap<String, String>,
    /// Whether the study has claims, which need every repetition.
    has_claims: bool,
}

impl Point<'_> {
    /// Parameters for the workload.
    fn given(&self) -> BTreeMap<String, String> {
        let fixed = self.spec.parameters.iter();
        fixed
            .map(|(name, value)| (name.clone(), value.to_string()))
            .chain(self.values.clone())
            .filter(|(name, _)| name != "cpus")
            .collect()
    }

    /// Puts the error's place below the entry of `runs`.
    fn in_runs(&self, error: StudyError) -> StudyError {
        error.at(["runs".into(), self.entry.index.into()])
    }

    /// Builds the workload, which must fit the machine.
    fn build(&self, nr_cpus: u32, make: Makers<'_>) -> Result<Built, StudyError> {
        if let Some(program) = &self.spec.program {
            let workload = Workload::new(program.name(), Vec::new());
            return Ok(Built { workload, parameters: self.given() });
        }
        let key = if self.spec.tasks.is_some() { "tasks" } else { "workload" };
        let wrong = |text: String| StudyError::new(text, "").below(key);
        let given = self.given();
        let built = match &self.spec.tasks {
            None => (make.workload)(self.workload, &given, nr_cpus).map_err(wrong)?,
            Some(tasks) => {
                let tasks = fill(tasks, &given);
                let workload = (make.tasks)(self.workload, &tasks, nr_cpus).map_err(wrong)?;
                Built { workload, parameters: given }
            }
        };
        if self.entry.runs.lane == LaneKind::Sim {
            built.workload.check(nr_cpus).map_err(|error| wrong(error.to_string()))?;
            if let Some((_, spec)) = self.machine {
                spec.first_cpus(nr_cpus)
                    .map_err(|text| StudyError::new(text, "").below("machine"))?;
            }
        }
        Ok(built)
    }

    /// The program at this point under `policy`, if the experiment has one.
    fn program(
        &self,
        parameters: &BTreeMap<String, String>,
        policy: Option<Policy>,
    ) -> Result<Option<Arc<ProgramRun>>, StudyError> {
        let Some(spec) = &self.spec.program else { return Ok(None) };
        let policy = policy.unwrap_or_default();
        let run = ProgramRun { spec: spec.clone(), values: parameters.clone(), policy };
        run.ready(Surroundings::ANYWHERE).map_err(|error| error.below("program"))?;
        Ok(Some(Arc::new(run)))
    }

    /// Scheduler and policy of entry `index`.
    fn scheduler(
        &self,
        index: usize,
        make: Makers<'_>,
    ) -> Result<(String, Option<Policy>), StudyError> {
        let place = |error: StudyError| self.in_runs(error.at(["schedulers".into(), index.into()]));
        let Entry { runs, .. } = self.entry;
        let lane = runs.lane;
        let found = scheduler_of(lane, &runs.schedulers[index]).map_err(place)?;
        if lane == LaneKind::Sim {
            make.schedulers.check_name(&found.0).map_err(place)?;
        }
        Ok(found)
    }

    /// The request for the scheduler of entry `index` on `cpus`, without tunables, for the first
    /// seed.
    fn request(
        &self,
        index: usize,
        built: &Built,
        cpus: CpuMask,
        make: Makers<'_>,
    ) -> Result<RunRequest, StudyError> {
        let (scheduler, policy) = self.scheduler(index, make)?;
        let nr_cpus = cpus.weight();
        let mut parameters = built.parameters.clone();
        parameters.insert("cpus".into(), nr_cpus.to_string());
        if let Some((name, _)) = self.machine {
            parameters.insert("machine".into(), name.clone());
        }
        if let Some(hz) = self.entry.runs.hz.filter(|hz| self.spec.has_other_hz(*hz, &scheduler)) {
            parameters.insert("hz".into(), hz.to_string());
        }
        let mut workload = built.workload.clone();
        if let Some(policy) = policy {
            apply_policy(&mut workload, policy, RT_PRIORITY_DEFAULT);
            if self.entry.runs.lane == LaneKind::Sim {
                parameters.insert("policy".into(), policy.name().into());
            }
        }
        Ok(RunRequest {
            program: self.program(&parameters, policy)?,
            machine: machine_of(self, nr_cpus),
            parameters,
            until_ns: until(self.spec)?,
            keep: Keep {
                slices: self.spec.keep_slices,
                progress: self.spec.keep_progress,
                analysis: None,
                totals_only: !self.spec.keep_tasks,
            },
            ..RunRequest::new(workload, scheduler, cpus)
        })
    }

    /// Refuses tunables that the scheduler does not have.
    fn check_tunables(
        &self,
        request: &RunRequest,
        tunables: &[(String, String)],
        make: Makers<'_>,
    ) -> Result<(), StudyError> {
        if self.entry.runs.lane != LaneKind::Sim {
            return Ok(());
        }
        let checked = make.schedulers.check_tunables(&request.scheduler, tunables);
        checked.map_err(|error| self.in_runs(StudyError::new(error.text(), "").below("set")))
    }

    /// The run of `request` with these tunables and this seed. On a real machine only the first
    /// repetition keeps its timeline, unless claims or the file need it. The other repetitions only
    /// serve statistics.
    fn run(
        &self,
        request: &RunRequest,
        tunables: &[(String, String)],
        (repetition, seed): (u32, u64),
    ) -> PlannedRun {
        let keeps_all = self.entry.runs.lane == LaneKind::Sim
            || repetition == 0
            || self.has_claims
            || self.spec.keep_each;
        let mut request = RunRequest {
            seed,
            repetition,
            tunables: tunables.to_vec(),
            keep: match keeps_all {
                true => request.keep,
                false => Keep { totals_only: request.keep.totals_only, ..Keep::NOTHING },
            },
            ..request.clone()
        };
        let named = tunables.iter().map(|(name, value)| (format!("set.{name}"), value.clone()));
        request.parameters.extend(named);
        PlannedRun { experiment: self.experiment, lane: self.entry.runs.lane, request }
    }
}

impl Plan {
    /// Adds every run of `study`. The error has a path into the study's text.
    pub fn add_study(
        &mut self,
        study: &Study,
        input: &PlanInput,
        make: Makers<'_>,
    ) -> Result<(), StudyError> {
        for (index, spec) in study.experiments.iter().enumerate() {
            self.add_experiment(study, spec, input, make)
                .map_err(|error| error.at(["experiment".into(), index.into()]))?;
        }
        Ok(())
    }

    fn add_experiment(
        &mut self,
        study: &Study,
        spec: &ExperimentSpec,
        input: &PlanInput,
        make: Makers<'_>,
    ) -> Result<(), StudyError> {
        let nr_cpus = input.host_cpus.weight();
        let mut inner = Vec::new();
        let mut outer = Vec::new();
        let values = |axis: &str| {
            spec.axes[axis]
                .values(axis, nr_cpus)
                .map_err(|error| error.at(["axes".into(), axis.into()]))
        };
        for axis in &spec.split {
            outer.push((axis.as_str(), values(axis)?));
        }
        for axis in spec.axes.keys().filter(|name| !spec.split.contains(name)) {
            inner.push((axis.as_str(), values(axis)?));
        }
        self.check_size(spec, &[&outer[..], &inner[..]].concat(), input)?;
        let machines = machines(spec, make)?;
        let entries = entries(spec, input);
        let (workloads, inner) = (spec.workloads(), points(&inner));
        let has_claims = !study.claims.is_empty();
        for fixed in points(&outer) {
            let experiment = self.experiments.len();
            self.experiments.push(Experiment {
                name: fill(&spec.name, &fixed),
                study: study.name.clone(),
                title: fill(&spec.title, &fixed),
                text: fill(&spec.text, &fixed),
                figures: spec.figures.clone(),
                view: (input.has_views || spec.has_view()).then(|| spec.view()),
            });
            // The axes vary fastest and the entries of `runs` slowest.
            let things = entries.iter().flat_map(|entry| {
                pairs(&workloads, &machines, entry.runs.lane).into_iter().map(|pair| (*entry, pair))
            });
            let combinations =
                things.flat_map(|thing| inner.iter().map(move |varying| (thing, varying)));
            for ((entry, (workload, machine)), varying) in combinations {
                let values = fixed.iter().chain(varying);
                let values = values.map(|(name, value)| (name.clone(), value.clone())).collect();
                let point =
                    Point { experiment, spec, entry, workload, machine, values, has_claims };
                self.add_point(&point, input, make)?;
            }
        }
        Ok(())
    }

    /// Counts the runs before any of them takes memory.
    fn check_size(
        &self,
        spec: &ExperimentSpec,
        axes: &[(&str, Vec<String>)],
        input: &PlanInput,
    ) -> Result<(), StudyError> {
        let product = |counts: Vec<usize>| {
            counts.into_iter().try_fold(1_usize, |product, count| product.checked_mul(count))
        };
        let points = product(axes.iter().map(|(_, values)| values.len()).collect());
        let mut total = Some(self.runs.len());
        for runs in spec.runs.iter().filter(|runs| wanted(runs, input)) {
            let sets = product(runs.set.values().map(|values| values.values().len()).collect());
            let seeds = match &spec.seeds {
                Some(seeds) => seeds.values()?.len(),
                None => repetitions(runs, input) as usize,
            };
            let shifts = 1 + runs.shift.as_ref().map_or(0, |shift| shift.count as usize);
            let seeds = seeds.saturating_mul(shifts);
            let machines =
                if runs.lane == LaneKind::Sim { spec.machines().len().max(1) } else { 1 };
            let count = points.zip(sets).and_then(|(points, sets)| {
                let workloads = spec.workloads().len();
                product(vec![workloads, machines, runs.schedulers.len(), seeds, points, sets])
            });
            total = total.zip(count).and_then(|(total, count)| total.checked_add(count));
        }
        match total {
            Some(total) if total <= input.runs_max => Ok(()),
            _ => {
                let found = total.map_or("more than can be counted".into(), |n| n.to_string());
                Err(StudyError::new(
                    format!("with experiment {:?} there are {found} runs", spec.name),
                    format!(
                        "most are {}: take values or seeds away, or raise the limit (--runs-max)",
                        input.runs_max
                    ),
                )
                .below("name"))
            }
        }
    }

    /// Adds the runs of a point: each scheduler with each set of tunables; seeds vary fastest.
    fn add_point(
        &mut self,
        point: &Point<'_>,
        input: &PlanInput,
        make: Makers<'_>,
    ) -> Result<(), StudyError> {
        let Entry { runs, .. } = point.entry;
        let lane = runs.lane;
        let nr_cpus = point_cpus(point, input)?;
        let Some(cpus) = lane_cpus(lane, nr_cpus, input) else {
            let name = &self.experiments[point.experiment].name;
            let note = Note::TooFewCpus {
                experiment: name.clone(),
                needed: nr_cpus,
                available: input.host_cpus.weight(),
            };
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            return Ok(());
        };
        let built = point.build(nr_cpus, make)?;
        let seeds = seeds(point.spec, runs, input)?;
        for index in 0..runs.schedulers.len() {
            let request = point.request(index, &built, cpus, make)?;
            let own = Spec::parse(&runs.schedulers[index]).ok().filter(|_| lane == LaneKind::Sim);
            for set in tunable_sets(runs) {
                let tunables = match &own {
                    Some(spec) => spec.tunables_with(set),
                    None => set,
                };
                point.check_tunables(&request, &tunables, make)?;
                let numbered = || (0_u32..).zip(seeds.iter().copied());
                self.runs.extend(numbered().map(|seed| point.run(&request, &tunables, seed)));
                let Some(shift) = &runs.shift else { continue };
                for number in 1..=shift.count {
                    for seed in numbered() {
                        let mut run = point.run(&request, &tunables, seed);
                        let place = |error: StudyError| point.in_runs(error.below("shift"));
                        shift_start(&mut run, shift, number).map_err(place)?;
                        self.runs.push(run);
                    }
                }
            }
        }
        Ok(())
    }

    /// Requests the analysis of the first run of each point.
    pub fn analyse_first(&mut self, thresholds: Option<Thresholds>) {
        for run in self.runs.iter_mut().filter(|run| run.request.repetition == 0) {
            run.request.keep.analysis = thresholds;
        }
    }

    /// Indices of the runs in lanes that are not parallel, shuffled by `seed`.
    pub fn host_order(&self, seed: u64, serial: impl Fn(LaneKind) -> bool) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.runs.len()).filter(|&run| serial(self.runs[run].lane)).collect();
        let mut stream = Stream::new(seed, Purpose::Experiment, 0);
        // Fisher and Yates: every order is equally likely.
        for last in (1..order.len()).rev() {
            order.swap(last, stream.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// Shifts the start of a run: the seed draws one time by which all its tasks are released later.
///
/// # Errors
/// A start is drawn exponentially, so that it has no greatest value.
pub fn shift_start(run: &mut PlannedRun, shift: &Shift, number: u32) -> Result<(), StudyError> {
    let [from, to] = shift.range()?;
    let request = &mut run.request;
    let mut stream = Stream::new(request.seed, Purpose::Experiment, number.into());
    let by = from + stream.below(to - from + 1);
    for task in request.workload.tasks.iter_mut().filter(|task| task.instances > 0) {
        task.release_ns = match task.release_ns {
            Amount::Constant(at) => Amount::Constant(at.saturating_add(by)),
            Amount::Uniform { low, high } => {
                Amount::Uniform { low: low.saturating_add(by), high: high.saturating_add(by) }
            }
            Amount::Exponential { .. } => {
                let text = format!("the start of task {:?} is drawn exponentially", task.name);
                return Err(StudyError::new(text, "such a start cannot be shifted: drop `shift`"));
            }
        };
    }
    request.switch_jitter_ns = shift.switch_jitter_ns(number)?;
    if request.switch_jitter_ns > 0 {
        let text = format!("{}ns", request.switch_jitter_ns);
        request.parameters.insert(SWITCH_JITTER.into(), text);
    }
    if shift.other_boots {
        request.boot = Boot(number);
    }
    request.parameters.insert(SHIFT.into(), number.to_string());
    Ok(())
}

/// Number of CPUs at a point: the axis or parameter `cpus`, else all CPUs of the machine.
fn point_cpus(point: &Point<'_>, input: &PlanInput) -> Result<u32, StudyError> {
    const MAX: u32 = schedlab_model::cpumask::NR_CPUS_MAX as u32;
    let (place, text) = match (point.values.get("cpus"), point.spec.parameters.get("cpus")) {
        (Some(value), _) => ("axes", value.clone()),
        (None, Some(value)) => ("parameters", value.to_string()),
        (None, None) => {
            let machine = point.machine.map(|(_, spec)| spec.machine.nr_cpus());
            return Ok(machine.unwrap_or_else(|| input.host_cpus.weight()));
        }
    };
    if text == "all" {
        return Ok(input.host_cpus.weight());
    }
    text.parse().ok().filter(|n| (1..=MAX).contains(n)).ok_or_else(|| {
        StudyError::new(format!("`cpus` is {text:?}"), format!("allowed are 1 to {MAX} and all"))
            .at([place.into(), "cpus".into()])
    })
}

/// The machine of a point, with the HZ of its entry of `runs`.
fn machine_of(point: &Point<'_>, nr_cpus: u32) -> Option<Arc<MachineSpec>> {
    let named = point.machine.map(|(_, spec)| Arc::clone(spec));
    let Some(hz) = point.entry.runs.hz else { return named };
    let mut spec = named.map_or_else(|| MachineSpec::flat(nr_cpus), Arc::unwrap_or_clone);
    spec.machine.hz = hz;
    Some(Arc::new(spec))
}

/// When the study ends its runs.
fn until(spec: &ExperimentSpec) -> Result<Option<Nanos>, StudyError> {
    let Some(text) = &spec.until else { return Ok(None) };
    match units::parse_duration(text) {
        Ok(ns) if ns > 0 => Ok(Some(ns)),
        Ok(_) => Err(StudyError::new("`until` is 0", "give a time such as 2s").below("until")),
        Err(error) => Err(StudyError::new(format!("`until`: {error}"), "").below("until")),
    }
}

/// The entries of `runs` in the requested lanes.
fn entries<'p>(spec: &'p ExperimentSpec, input: &PlanInput) -> Vec<Entry<'p>> {
    let wanted = spec.runs.iter().enumerate().filter(|(_, runs)| wanted(runs, input));
    wanted.map(|(index, runs)| Entry { index, runs }).collect()
}

/// Seed of each repetition: the study's seeds, else consecutive ones.
fn seeds(
    spec: &ExperimentSpec,
    runs: &RunsSpec,
    input: &PlanInput,
) -> Result<Vec<u64>, StudyError> {
    match &spec.seeds {
        Some(seeds) => seeds.values(),
        None => Ok((0..repetitions(runs, input))
            .map(|repetition| input.seed.wrapping_add(u64::from(repetition)))
            .collect()),
    }
}

/// Number of repetitions of a point without named seeds.
fn repetitions(runs: &RunsSpec, input: &PlanInput) -> u32 {
    match (runs.lane == LaneKind::Host, input.host_repetitions) {
        (true, Some(repetitions)) => repetitions,
        _ => runs.repetitions.unwrap_or(1),
    }
}

/// Every combination of the tunables' values; a single empty one without tunables.
fn tunable_sets(runs: &RunsSpec) -> Vec<Vec<(String, String)>> {
    let axes: Vec<(&str, Vec<String>)> =
        runs.set.iter().map(|(name, values)| (name.as_str(), values.values())).collect();
    points(&axes).into_iter().map(|set| set.into_iter().collect()).collect()
}

/// The CPUs of a run; `None` if the machine has too few.
fn lane_cpus(lane: LaneKind, nr_cpus: u32, input: &PlanInput) -> Option<CpuMask> {
    if lane != LaneKind::Host {
        return Some(CpuMask::first(nr_cpus));
    }
    let available = input.host_cpus.weight();
    (nr_cpus <= available).then(|| input.host_cpus.iter().take(nr_cpus as usize).collect())
}

fn wanted(runs: &RunsSpec, input: &PlanInput) -> bool {
    input.lanes.is_empty() || input.lanes.contains(&runs.lane)
}

/// The machines of an experiment, each made once.
fn machines(spec: &ExperimentSpec, make: Makers<'_>) -> Result<Vec<NamedMachine>, StudyError> {
    let make = |name: String| match (make.machine)(&name) {
        Ok(machine) => Ok((name, Arc::new(machine))),
        Err(text) => Err(StudyError::new(text, "").below("machine")),
    };
    spec.machines().into_iter().map(make).collect()
}

/// A machine with its name in the study.
type NamedMachine = (String, Arc<MachineSpec>);

/// Every workload with every modelled machine; in other lanes, every workload without a machine.
fn pairs<'p>(
    workloads: &'p [String],
    machines: &'p [NamedMachine],
    lane: LaneKind,
) -> Vec<(&'p str, Option<&'p NamedMachine>)> {
    let machines: Vec<Option<&NamedMachine>> = match lane {
        LaneKind::Sim if !machines.is_empty() => machines.iter().map(Some).collect(),
        _ => vec![None],
    };
    let with = |workload: &'p String| {
        machines.iter().map(|machine| (workload.as_str(), *machine)).collect::<Vec<_>>()
    };
    workloads.iter().flat_map(with).collect()
}

/// Every combination of the axes' values; the last axis varies fastest.
pub(crate) fn points(axes: &[(&str, Vec<String>)]) -> Vec<BTreeMap<String, String>> {
    let mut points = vec![BTreeMap::new()];
    for (name, values) in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.insert((*name).to_string(), value.clone());
                    longer
                })
            })
            .collect();
    }
    points
}

/// Replaces `{name}` by the value of `name`, and `{name:one|many}` by the value and the matching
/// noun. Braces that name no value stay.
pub(crate) fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let filled = after.split_once('}').and_then(|(inside, after)| {
            let (name, words) = inside.split_once(':').unwrap_or((inside, ""));
            Some((values.get(name)?, words.split_once('|'), after))
        });
        rest = match filled {
            Some((value, words, after)) => {
                text.push_str(value);
                if let Some((one, many)) = words {
                    text.push(' ');
                    text.push_str(if value == "1" { one } else { many });
                }
                after
            }
            None => {
                text.push('{');
                after
            }
        };
    }
    text + rest
}

#[cfg(test)]
mod tests;
