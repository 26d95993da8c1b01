// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a study to single runs: every point of every experiment, for this machine and this seed.
//!
//! The plan is a pure function of study, machine and seed. Its order is the order of results; the
//! order in which a real machine is measured is shuffled by the seed (`host_order`), so that a
//! drift of the machine (heat, other load) does not fall on one scheduler alone.

pub use crate::policy::{
    POLICIES, RT_PRIORITY_DEFAULT, apply_policy, policy_by_name, scheduler_of,
};
use crate::sim;
use crate::study::{ExperimentSpec, RunsSpec, Study};
use crate::{Experiment, Keep, RunRequest, StudyError};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuMask, Nanos, Workload};
use schedlab_workload::units;
use std::collections::BTreeMap;

/// A workload and every parameter it was made with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// The workload.
    pub workload: Workload,
    /// Parameters: those handed in, and those that its name holds (`hogs:n=4`).
    pub parameters: BTreeMap<String, String>,
}

/// Makes a workload from its name, its parameters and the number of CPUs of the run.
pub type WorkloadFactory<'a> =
    dyn Fn(&str, &BTreeMap<String, String>, u32) -> Result<Built, String> + 'a;

/// What a plan depends on beside the study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanInput {
    /// CPUs of the host that runs may use, also what `all` counts.
    pub host_cpus: CpuMask,
    /// Seed of the first repetition; each further one adds 1.
    pub seed: u64,
    /// Only this lane, if given.
    pub lane: Option<String>,
    /// Repetitions on the host instead of the study's, if given.
    pub host_repetitions: Option<u32>,
    /// Most runs that a plan may have.
    pub runs_max: usize,
    /// Every experiment gets a table with intervals, not only those that describe one.
    pub has_views: bool,
}

/// Most runs of a plan, unless told otherwise: some 3 kB of memory each.
pub const RUNS_MAX_DEFAULT: usize = 100_000;

/// One run of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedRun {
    /// Index into [`Plan::experiments`].
    pub experiment: usize,
    /// Name of the lane.
    pub lane: String,
    /// What the lane gets.
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
    /// What this machine cannot do of the study, for people.
    pub notes: Vec<String>,
}

/// What a point of an experiment is made of, beside the scheduler.
struct Point<'p> {
    experiment: usize,
    spec: &'p ExperimentSpec,
    runs: &'p RunsSpec,
    workload: &'p str,
    values: &'p BTreeMap<String, String>,
}

impl Plan {
    /// Adds every run of `study`. The error has a path into the study's text.
    pub fn add_study(
        &mut self,
        study: &Study,
        input: &PlanInput,
        workload: &WorkloadFactory<'_>,
    ) -> Result<(), StudyError> {
        for (index, spec) in study.experiments.iter().enumerate() {
            self.add_experiment(study, spec, input, workload)
                .map_err(|error| error.at(["experiment".into(), index.into()]))?;
        }
        Ok(())
    }

    fn add_experiment(
        &mut self,
        study: &Study,
        spec: &ExperimentSpec,
        input: &PlanInput,
        workload: &WorkloadFactory<'_>,
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
            for (index, runs) in spec.runs.iter().enumerate().filter(|(_, r)| wanted(r, input)) {
                for name in &spec.workload.values() {
                    for varying in points(&inner) {
                        let mut values = fixed.clone();
                        values.extend(varying);
                        let point =
                            Point { experiment, spec, runs, workload: name, values: &values };
                        self.add_point(&point, index, input, workload)?;
                    }
                }
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
            let count = points.zip(sets).and_then(|(points, sets)| {
                let workloads = spec.workload.values().len();
                product(vec![workloads, runs.schedulers.len(), seeds, points, sets])
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

    fn add_point(
        &mut self,
        point: &Point<'_>,
        runs_index: usize,
        input: &PlanInput,
        workload: &WorkloadFactory<'_>,
    ) -> Result<(), StudyError> {
        let (spec, runs) = (point.spec, point.runs);
        let nr_cpus = point_cpus(point, input)?;
        let Some(cpus) = lane_cpus(&runs.lane, nr_cpus, input) else {
            let name = &self.experiments[point.experiment].name;
            let available = input.host_cpus.weight();
            let note =
                format!("{name} is not measured: it needs {nr_cpus} CPUs, here are {available}");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            return Ok(());
        };
        let given: BTreeMap<String, String> = spec
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .chain(point.values.clone())
            .filter(|(name, _)| name != "cpus")
            .collect();
        let built = workload(point.workload, &given, nr_cpus)
            .map_err(|text| StudyError::new(text, "").below("workload"))?;
        if runs.lane == "sim" {
            let checked = built.workload.check(nr_cpus);
            checked.map_err(|error| StudyError::new(error.to_string(), "").below("workload"))?;
        }
        let until_ns = until(spec)?;
        let place = |error: StudyError, index: usize| {
            let schedulers = ["schedulers".into(), index.into()];
            error.at(schedulers).at(["runs".into(), runs_index.into()])
        };
        for (index, scheduler) in runs.schedulers.iter().enumerate() {
            let (scheduler, policy) =
                scheduler_of(&runs.lane, scheduler).map_err(|error| place(error, index))?;
            if runs.lane == "sim" {
                sim::check_scheduler(&scheduler).map_err(|error| place(error, index))?;
            }
            let mut parameters = built.parameters.clone();
            parameters.insert("cpus".into(), nr_cpus.to_string());
            let mut workload = built.workload.clone();
            if let Some(policy) = policy {
                apply_policy(&mut workload, policy, RT_PRIORITY_DEFAULT);
                if runs.lane == "sim" {
                    parameters.insert("policy".into(), policy.name().into());
                }
            }
            let request = RunRequest {
                workload,
                scheduler,
                tunables: Vec::new(),
                cpus,
                parameters,
                seed: input.seed,
                repetition: 0,
                until_ns,
                keep: Keep { slices: spec.keep_slices, progress: spec.keep_progress },
            };
            for tunables in tunable_sets(runs) {
                if runs.lane == "sim" {
                    sim::check_tunables(&request.scheduler, &tunables).map_err(|error| {
                        let text = error.text().to_string();
                        StudyError::new(text, "")
                            .below("set")
                            .at(["runs".into(), runs_index.into()])
                    })?;
                }
                let mut request = request.clone();
                let named = tunables.iter().map(|(n, value)| (format!("set.{n}"), value.clone()));
                request.parameters.extend(named);
                request.tunables = tunables;
                self.add_repetitions(point, &request, input)?;
            }
        }
        Ok(())
    }

    /// Adds `request` once a seed. On a real machine only the first one keeps its timeline:
    /// repetitions are there for the statistics.
    fn add_repetitions(
        &mut self,
        point: &Point<'_>,
        request: &RunRequest,
        input: &PlanInput,
    ) -> Result<(), StudyError> {
        let seeds: Vec<u64> = match &point.spec.seeds {
            Some(seeds) => seeds.values()?,
            None => (0..repetitions(point.runs, input))
                .map(|repetition| input.seed.wrapping_add(u64::from(repetition)))
                .collect(),
        };
        for (repetition, seed) in (0_u32..).zip(seeds) {
            let keep_whole = point.runs.lane == "sim" || repetition == 0;
            self.runs.push(PlannedRun {
                experiment: point.experiment,
                lane: point.runs.lane.clone(),
                request: RunRequest {
                    seed,
                    repetition,
                    keep: if keep_whole { request.keep } else { Keep::NOTHING },
                    ..request.clone()
                },
            });
        }
        Ok(())
    }

    /// Indices of the runs of lanes that cannot run in parallel, shuffled by `seed`.
    pub fn host_order(&self, seed: u64, serial: impl Fn(&str) -> bool) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.runs.len()).filter(|&run| serial(&self.runs[run].lane)).collect();
        let mut stream = Stream::new(seed, Purpose::Experiment, 0);
        // Fisher and Yates: every order is equally likely.
        for last in (1..order.len()).rev() {
            order.swap(last, stream.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// Number of CPUs at a point: the axis or parameter `cpus`, else all.
fn point_cpus(point: &Point<'_>, input: &PlanInput) -> Result<u32, StudyError> {
    const MAX: u32 = schedlab_model::cpumask::NR_CPUS_MAX as u32;
    let (place, text) = match (point.values.get("cpus"), point.spec.parameters.get("cpus")) {
        (Some(value), _) => ("axes", value.clone()),
        (None, Some(value)) => ("parameters", value.to_string()),
        (None, None) => return Ok(input.host_cpus.weight()),
    };
    if text == "all" {
        return Ok(input.host_cpus.weight());
    }
    text.parse().ok().filter(|n| (1..=MAX).contains(n)).ok_or_else(|| {
        StudyError::new(format!("`cpus` is {text:?}"), format!("allowed are 1 to {MAX} and all"))
            .at([place.into(), "cpus".into()])
    })
}

/// Where the study ends its runs.
fn until(spec: &ExperimentSpec) -> Result<Option<Nanos>, StudyError> {
    let Some(text) = &spec.until else { return Ok(None) };
    match units::parse_duration(text) {
        Ok(ns) if ns > 0 => Ok(Some(ns)),
        Ok(_) => Err(StudyError::new("`until` is 0", "give a time such as 2s").below("until")),
        Err(error) => Err(StudyError::new(format!("`until`: {error}"), "").below("until")),
    }
}

/// How often a point is run where no seeds are named.
fn repetitions(runs: &RunsSpec, input: &PlanInput) -> u32 {
    match (runs.lane.as_str(), input.host_repetitions) {
        ("host", Some(repetitions)) => repetitions,
        _ => runs.repetitions.unwrap_or(1),
    }
}

/// Every combination of the tunables' values; one empty one if there are none.
fn tunable_sets(runs: &RunsSpec) -> Vec<Vec<(String, String)>> {
    let axes: Vec<(&str, Vec<String>)> =
        runs.set.iter().map(|(name, values)| (name.as_str(), values.values())).collect();
    points(&axes).into_iter().map(|set| set.into_iter().collect()).collect()
}

/// The CPUs of a run; `None` where the machine has too few.
fn lane_cpus(lane: &str, nr_cpus: u32, input: &PlanInput) -> Option<CpuMask> {
    if lane == "sim" {
        return Some(CpuMask::first(nr_cpus));
    }
    let available = input.host_cpus.weight();
    (nr_cpus <= available).then(|| input.host_cpus.iter().take(nr_cpus as usize).collect())
}

fn wanted(runs: &RunsSpec, input: &PlanInput) -> bool {
    input.lane.as_ref().is_none_or(|lane| *lane == runs.lane)
}

/// Every combination of the axes' values, the last axis fastest.
fn points(axes: &[(&str, Vec<String>)]) -> Vec<BTreeMap<String, String>> {
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

/// `{name}` replaced by the value of `name`.
fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(template.to_string(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{Policy, TaskSpec, program::ProgramBuilder};

    fn hogs(name: &str, given: &BTreeMap<String, String>, _cpus: u32) -> Result<Built, String> {
        let mut task = TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build());
        task.instances =
            given.get("n").map_or(Ok(1), |n| n.parse()).map_err(|_| "n".to_string())?;
        Ok(Built { workload: Workload::new(name, vec![task]), parameters: given.clone() })
    }

    const STUDY: &str = "
        name = 'S9'
        title = 't'
        text = ''
        [[experiment]]
        name = 'S9-{cpus}'
        title = 'on {cpus}'
        text = ''
        workload = 'hogs'
        split = ['cpus']
        parameters.work = '1ms'
        axes.n = { to = '2*all+1', points_max = 9 }
        axes.cpus = [1, 'all', 3]
        [[experiment.runs]]
        lane = 'sim'
        schedulers = ['fcfs', 'linux-6.12:RR']
        [[experiment.runs]]
        lane = 'host'
        schedulers = ['OTHER']
        repetitions = 2
    ";

    fn plan(host_cpus: u32) -> Plan {
        planned(STUDY, host_cpus, RUNS_MAX_DEFAULT).unwrap()
    }

    fn planned(text: &str, host_cpus: u32, runs_max: usize) -> Result<Plan, StudyError> {
        let input = PlanInput {
            host_cpus: CpuMask::first(host_cpus),
            seed: 7,
            lane: None,
            host_repetitions: None,
            runs_max,
            has_views: false,
        };
        let mut plan = Plan::default();
        plan.add_study(&Study::parse(text)?, &input, &hogs).map_err(|error| error.located(text))?;
        Ok(plan)
    }

    const SWEEP: &str = "name = 'x'
        [[experiment]]
        name = 'x'
        workload = ['hogs', 'hogs:n=3']
        seeds = { first = 40, count = 3 }
        until = '2s'
        by = ['scheduler']
        axes.cpus = [1, 2]
        [[experiment.runs]]
        lane = 'sim'
        schedulers = ['fcfs']
        [[experiment.runs]]
        lane = 'sim'
        schedulers = ['rr']
        set = { quantum = ['1ms', '2ms'] }
    ";

    #[test]
    fn a_sweep_is_every_combination_seeds_fastest() {
        let plan = planned(SWEEP, 4, 36).unwrap();
        assert_eq!(plan.runs.len(), 2 * 2 * 3 + 2 * 2 * 2 * 3);
        let seeds: Vec<u64> = plan.runs[..4].iter().map(|run| run.request.seed).collect();
        assert_eq!(seeds, [40, 41, 42, 40]);
        assert_eq!(plan.runs[0].request.until_ns, Some(2_000_000_000));
        let last = &plan.runs[35].request;
        assert_eq!(last.tunables, [("quantum".into(), "2ms".into())]);
        assert_eq!(last.parameters["set.quantum"], "2ms");
        assert_eq!(plan.experiments[0].view.as_ref().unwrap().by, ["scheduler"]);
        assert_eq!(self::plan(1).experiments[0].view, None, "a study without keys of a table");
    }

    #[test]
    fn too_many_runs_are_counted_not_made() {
        let error = planned(SWEEP, 4, 35).unwrap_err();
        assert!(error.to_string().contains("there are 36 runs: most are 35"), "{error}");
        assert_eq!(error.position(SWEEP).unwrap().0, 3);
        let axis = format!("[{}]", (0..9999).map(|n| n.to_string() + ",").collect::<String>());
        let axes: String = ["a", "b", "c", "d", "e"].map(|n| format!("axes.{n}={axis}\n")).concat();
        let text = SWEEP.replace("axes.cpus = [1, 2]", &axes);
        let error = planned(&text, 4, 1000).unwrap_err().to_string();
        assert!(error.contains("more than can be counted"), "{error}");
    }

    #[test]
    fn mistakes_that_only_a_plan_shows_have_a_place_too() {
        for (from, to, line, wanted) in [
            ("[1, 2]", "[1, 4096]", 8, "allowed are 1 to 1024"),
            ("'2s'", "'2'", 6, "no unit"),
            ("'fcfs'", "'fcfs:FIFOO'", 11, "did you mean `FIFO`?"),
            ("'fcfs'", "'fcsf'", 11, "did you mean `fcfs`?"),
            ("quantum =", "quantmu =", 15, "quantum"),
            ("'2ms'", "'2'", 15, "no unit"),
            ("axes.cpus", "axes.n", 0, ""),
        ] {
            let text = SWEEP.replace(from, to);
            match planned(&text, 4, 1000) {
                Ok(_) => assert_eq!(line, 0, "{to}"),
                Err(error) => {
                    assert_eq!(error.position(&text).unwrap().0, line, "{to}: {error}");
                    assert!(error.to_string().contains(wanted), "{to}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_point_is_planned_once_a_scheduler_and_repetition() {
        let plan = plan(2);
        let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["S9-1", "S9-2", "S9-3"]);
        // 3 experiments x 5 values of n x 2 schedulers, and 2 x 5 x 2 repetitions on the host.
        assert_eq!(plan.runs.len(), 30 + 20);
        assert_eq!(plan.notes, ["S9-3 is not measured: it needs 3 CPUs, here are 2"]);
        let rr = &plan.runs[1].request;
        assert_eq!((rr.scheduler.as_str(), rr.parameters["policy"].as_str()), ("linux-6.12", "RR"));
        assert_eq!(rr.workload.tasks[0].attr.policy, Policy::Rr);
        assert_eq!(rr.workload.tasks[0].attr.rt_priority, RT_PRIORITY_DEFAULT);
        assert_eq!(rr.parameters["work"], "1ms");
        let host: Vec<&PlannedRun> = plan.runs.iter().filter(|run| run.lane == "host").collect();
        assert_eq!((host[0].request.seed, host[1].request.seed), (7, 8));
        assert!(!host[0].request.parameters.contains_key("policy"));
    }

    #[test]
    fn the_hosts_order_is_a_permutation_that_the_seed_decides() {
        let plan = plan(2);
        let order = plan.host_order(1, |lane| lane == "host");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let host: Vec<usize> = (0..50).filter(|&run| plan.runs[run].lane == "host").collect();
        assert_eq!(sorted, host);
        assert_ne!(order, host);
        assert_eq!(order, plan.host_order(1, |lane| lane == "host"));
        assert_ne!(order, plan.host_order(2, |lane| lane == "host"));
    }
}
