// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a study to single runs: every point of every experiment, for this machine and this seed.
//!
//! The plan is a pure function of study, machine and seed. Its order is the order of results; the
//! order in which a real machine is measured is shuffled by the seed (`host_order`), so that a
//! drift of the machine (heat, other load) does not fall on one scheduler alone.

use crate::study::{ExperimentSpec, RunsSpec, Study, StudyError};
use crate::{Experiment, Keep, RunRequest};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuMask, Policy, Workload};
use std::collections::BTreeMap;

/// Makes a workload from its name, its parameters and the number of CPUs of the run.
pub type WorkloadFactory<'a> =
    dyn Fn(&str, &BTreeMap<String, String>, u32) -> Result<Workload, String> + 'a;

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
}

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

impl Plan {
    /// Adds every run of `study`.
    pub fn add_study(
        &mut self,
        study: &Study,
        input: &PlanInput,
        workload: &WorkloadFactory<'_>,
    ) -> Result<(), StudyError> {
        for spec in &study.experiments {
            self.add_experiment(study, spec, input, workload).map_err(|error| {
                StudyError(format!("experiment {:?} of study {:?}: {error}", spec.name, study.name))
            })?;
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
        for axis in &spec.split {
            outer.push((axis.as_str(), spec.axes[axis].values(axis, nr_cpus)?));
        }
        for (name, axis) in spec.axes.iter().filter(|(name, _)| !spec.split.contains(name)) {
            inner.push((name.as_str(), axis.values(name, nr_cpus)?));
        }
        for fixed in points(&outer) {
            let experiment = self.experiments.len();
            self.experiments.push(Experiment {
                name: fill(&spec.name, &fixed),
                study: study.name.clone(),
                title: fill(&spec.title, &fixed),
                text: fill(&spec.text, &fixed),
                figures: spec.figures.clone(),
            });
            for runs in spec.runs.iter().filter(|runs| wanted(runs, input)) {
                for varying in points(&inner) {
                    let mut point = fixed.clone();
                    point.extend(varying);
                    self.add_point(experiment, spec, runs, &point, input, workload)?;
                }
            }
        }
        Ok(())
    }

    fn add_point(
        &mut self,
        experiment: usize,
        spec: &ExperimentSpec,
        runs: &RunsSpec,
        point: &BTreeMap<String, String>,
        input: &PlanInput,
        workload: &WorkloadFactory<'_>,
    ) -> Result<(), StudyError> {
        let nr_cpus = point_cpus(point, input)?;
        let Some(cpus) = lane_cpus(&runs.lane, nr_cpus, input) else {
            let name = &self.experiments[experiment].name;
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
            .chain(point.clone())
            .filter(|(name, _)| name != "cpus")
            .collect();
        let built = workload(&spec.workload, &given, nr_cpus).map_err(StudyError)?;
        for scheduler in &runs.schedulers {
            let (scheduler, policy) = scheduler_of(&runs.lane, scheduler)?;
            let mut parameters = given.clone();
            parameters.insert("cpus".into(), nr_cpus.to_string());
            let mut workload = built.clone();
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
                machine: None,
                parameters,
                seed: input.seed,
                repetition: 0,
                until_ns: None,
                keep: Keep { slices: spec.keep_slices, progress: spec.keep_progress },
            };
            self.add_repetitions(experiment, runs, &request, input);
        }
        Ok(())
    }

    /// Adds `request` once a repetition. On a real machine only the first one keeps its timeline:
    /// repetitions are there for the statistics.
    fn add_repetitions(
        &mut self,
        experiment: usize,
        runs: &RunsSpec,
        request: &RunRequest,
        input: &PlanInput,
    ) {
        let repetitions = match (runs.lane.as_str(), input.host_repetitions) {
            ("host", Some(repetitions)) => repetitions,
            _ => runs.repetitions,
        };
        for repetition in 0..repetitions {
            let keep_whole = runs.lane == "sim" || repetition == 0;
            self.runs.push(PlannedRun {
                experiment,
                lane: runs.lane.clone(),
                request: RunRequest {
                    seed: input.seed.wrapping_add(u64::from(repetition)),
                    repetition,
                    keep: if keep_whole { request.keep } else { Keep::NOTHING },
                    ..request.clone()
                },
            });
        }
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

/// Real-time priority where a study names only the policy: the least important one, so that the
/// kernel's own threads stay above the tasks.
pub const RT_PRIORITY_DEFAULT: u8 = 1;

/// Puts every task that has no policy of its own (and every later change back to that policy) under
/// `policy`; nice values stay, real-time policies get `rt_priority`.
pub fn apply_policy(workload: &mut Workload, policy: Policy, rt_priority: u8) {
    let apply = |attr: &mut schedlab_model::SchedAttr| {
        if attr.policy == Policy::Normal {
            attr.policy = policy;
            attr.rt_priority = if policy.is_rt() { rt_priority } else { 0 };
        }
    };
    for task in &mut workload.tasks {
        apply(&mut task.attr);
        for op in &mut task.program.ops {
            if let schedlab_model::Op::SetAttr(attr) = op {
                apply(attr);
            }
        }
    }
}

/// A policy by its name, with or without `SCHED_`, in any case.
pub fn policy_by_name(text: &str) -> Option<Policy> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SCHED_").unwrap_or(&upper);
    let name = if name == "NORMAL" { "OTHER" } else { name };
    POLICIES.into_iter().find(|policy| policy.name() == name)
}

/// Every policy, by the kernel's number.
pub const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Fifo,
    Policy::Rr,
    Policy::Batch,
    Policy::Idle,
    Policy::Deadline,
    Policy::Ext,
];

/// Scheduler name and policy of an entry: `linux-6.12:FIFO` in the sim lane, `FIFO` on the host.
pub fn scheduler_of(lane: &str, text: &str) -> Result<(String, Option<Policy>), StudyError> {
    let policy = |name: &str| {
        policy_by_name(name).ok_or_else(|| {
            let names: Vec<&str> = POLICIES.iter().map(|policy| policy.name()).collect();
            StudyError(format!("policy {name:?} is not known: allowed are {}", names.join(", ")))
        })
    };
    match (lane, text.split_once(':')) {
        ("sim", None) => Ok((text.into(), None)),
        ("sim", Some((name, after))) => Ok((name.into(), Some(policy(after)?))),
        _ => {
            let found = policy(text)?;
            Ok((found.name().into(), Some(found)))
        }
    }
}

/// Number of CPUs at a point: the axis `cpus`, else all.
fn point_cpus(point: &BTreeMap<String, String>, input: &PlanInput) -> Result<u32, StudyError> {
    const MAX: u32 = schedlab_model::cpumask::NR_CPUS_MAX as u32;
    let Some(text) = point.get("cpus") else { return Ok(input.host_cpus.weight()) };
    text.parse().ok().filter(|n| (1..=MAX).contains(n)).ok_or_else(|| {
        StudyError(format!("axis \"cpus\" has {text:?}, allowed are 1 to {MAX} and all"))
    })
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
    use schedlab_model::{TaskSpec, program::ProgramBuilder};

    fn hogs(name: &str, given: &BTreeMap<String, String>, _cpus: u32) -> Result<Workload, String> {
        let mut task = TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build());
        task.instances =
            given.get("n").map_or(Ok(1), |n| n.parse()).map_err(|_| "n".to_string())?;
        Ok(Workload::new(name, vec![task]))
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
        let input = PlanInput {
            host_cpus: CpuMask::first(host_cpus),
            seed: 7,
            lane: None,
            host_repetitions: None,
        };
        let mut plan = Plan::default();
        plan.add_study(&Study::parse(STUDY).unwrap(), &input, &hogs).unwrap();
        plan
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

    #[test]
    fn an_unknown_policy_is_refused_with_the_known_ones() {
        let error = scheduler_of("host", "FAIR").unwrap_err().to_string();
        assert!(error.contains("OTHER, FIFO, RR, BATCH, IDLE"), "{error}");
        assert_eq!(policy_by_name("sched_fifo"), Some(Policy::Fifo));
        assert_eq!(policy_by_name("normal"), Some(Policy::Normal));
    }

    #[test]
    fn a_tasks_own_policy_stays() {
        let mut workload = hogs("w", &BTreeMap::new(), 1).unwrap();
        workload.tasks[0].attr.policy = Policy::Idle;
        apply_policy(&mut workload, Policy::Fifo, 5);
        assert_eq!(workload.tasks[0].attr.policy, Policy::Idle);
    }
}
