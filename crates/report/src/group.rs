// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups runs for figures and tables. A *configuration* is one scheduler in one lane. A *cell* is
//! one configuration at one number of tasks and CPUs, with its repetitions.

use crate::html::slug;
use crate::stats::{Estimate, estimate};
use schedlab_lab::ExperimentResult;
use schedlab_lab::plan::SHIFT;
use schedlab_run::{LaneKind, Origin, RunResult};
use std::collections::{BTreeMap, BTreeSet};

/// One scheduler in one lane: one line of a figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// A lane, or a trace.
    pub lane: Origin,
    /// Scheduler or policy.
    pub scheduler: String,
    /// Parameters that distinguish it from another line with the same scheduler, such as `nice=5`;
    /// usually empty.
    pub variant: String,
}

impl Config {
    /// Whether the numbers come from a model.
    pub fn is_simulated(&self) -> bool {
        self.lane == LaneKind::Sim
    }

    /// Scheduler and variant, for a legend. A policy appears without a word before it.
    pub fn label(&self) -> String {
        if self.variant.is_empty() {
            self.scheduler.clone()
        } else {
            format!(
                "{} ({})",
                self.scheduler,
                self.variant.replace("policy=", "").replace("set.", "")
            )
        }
    }

    /// The lane's name for people.
    pub const fn lane_words(&self) -> &'static str {
        match self.lane {
            Origin::Lane(LaneKind::Sim) => "simulated",
            Origin::Lane(LaneKind::Host) => "measured",
            Origin::Lane(LaneKind::Vm) => "measured in a VM",
            Origin::Trace => "from a trace",
        }
    }

    /// Scheduler and lane, for people.
    pub fn full_label(&self) -> String {
        format!("{}, {}", self.label(), self.lane_words())
    }
}

/// One configuration at one point of the axes, with all repetitions.
#[derive(Debug)]
pub struct Cell<'a> {
    /// Index into [`Group::configs`].
    pub config: usize,
    /// Number of tasks.
    pub n: u64,
    /// Number of CPUs.
    pub cpus: u64,
    /// Its runs in the order given; never empty.
    pub runs: Vec<&'a RunResult>,
}

impl Cell<'_> {
    /// Mean and interval over repetitions of a run's `measure`.
    pub fn estimate(&self, measure: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| measure(run)).collect();
        estimate(&values)
    }
}

/// One experiment, grouped.
#[derive(Debug)]
pub struct Group<'a> {
    /// The experiment as given.
    pub result: &'a ExperimentResult,
    /// Id, unique in the report and safe in ids and file names.
    pub id: String,
    /// Lines of its figures, in order of first appearance.
    pub configs: Vec<Config>,
    /// Sorted by CPUs, then n, then configuration.
    pub cells: Vec<Cell<'a>>,
}

impl<'a> Group<'a> {
    /// All numbers of CPUs in the experiment, ascending.
    pub fn cpus(&self) -> Vec<u64> {
        self.cells.iter().map(|cell| cell.cpus).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// All numbers of tasks with `cpus` CPUs, ascending.
    pub fn ns(&self, cpus: u64) -> Vec<u64> {
        let found: BTreeSet<u64> =
            self.cells.iter().filter(|cell| cell.cpus == cpus).map(|cell| cell.n).collect();
        found.into_iter().collect()
    }

    /// The cell of `config` at `n` and `cpus`.
    pub fn cell(&self, config: usize, n: u64, cpus: u64) -> Option<&Cell<'a>> {
        self.cells.iter().find(|c| c.config == config && c.n == n && c.cpus == cpus)
    }

    /// The experiment's title, else its name.
    pub fn title(&self) -> &str {
        let experiment = &self.result.experiment;
        if experiment.title.is_empty() { &experiment.name } else { &experiment.title }
    }
}

/// Groups every experiment that has at least one run.
pub fn group_all(results: &[ExperimentResult]) -> Vec<Group<'_>> {
    let mut used = BTreeMap::new();
    results
        .iter()
        .filter(|result| !result.runs.is_empty())
        .map(|result| {
            let base = slug(&result.experiment.name);
            let seen = used.entry(base.clone()).or_insert(0_u32);
            *seen += 1;
            let id = if *seen == 1 { base } else { format!("{base}-x{seen}") };
            group_one(result, id)
        })
        .collect()
}

fn group_one(result: &ExperimentResult, id: String) -> Group<'_> {
    let variant_keys = variant_keys(&result.runs);
    let workloads: BTreeSet<&str> = result.runs.iter().map(|run| run.workload.as_str()).collect();
    let mut configs: Vec<Config> = Vec::new();
    let mut cells: BTreeMap<(u64, u64, usize), Cell<'_>> = BTreeMap::new();
    for run in &result.runs {
        let config = Config {
            lane: run.lane,
            scheduler: run.scheduler.clone(),
            variant: variant_of(run, &variant_keys, workloads.len() > 1),
        };
        let index = configs.iter().position(|known| *known == config).unwrap_or_else(|| {
            configs.push(config);
            configs.len() - 1
        });
        let (n, cpus) = (tasks_of(run), cpus_of(run));
        cells
            .entry((cpus, n, index))
            .or_insert_with(|| Cell { config: index, n, cpus, runs: Vec::new() })
            .runs
            .push(run);
    }
    Group { result, id, configs, cells: cells.into_values().collect() }
}

/// Number of tasks: parameter `n`, else the number of tasks in the run. Neither counts launchers.
pub fn tasks_of(run: &RunResult) -> u64 {
    number(run, &["n", "tasks", "nr_tasks"]).unwrap_or(run.measures.totals.nr_tasks)
}

/// Number of CPUs: parameter `cpus`, else the CPUs that the run could use.
pub fn cpus_of(run: &RunResult) -> u64 {
    number(run, &["cpus", "CPUs", "nr_cpus"]).unwrap_or(u64::from(run.machine.nr_cpus))
}

fn number(run: &RunResult, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| run.parameters.get(*key)?.trim().parse().ok()).filter(|v| *v > 0)
}

/// Parameters that are an axis, or that only tell repetitions from one another.
const AXES: [&str; 8] = ["n", "tasks", "nr_tasks", "cpus", "CPUs", "nr_cpus", "repetition", SHIFT];

/// Parameters that distinguish lines which would otherwise look like repetitions. They have several
/// values among runs of equal lane, scheduler, n and CPUs; a missing parameter counts as a value.
fn variant_keys(runs: &[RunResult]) -> BTreeSet<String> {
    let keys: BTreeSet<&str> = runs
        .iter()
        .flat_map(|run| run.parameters.keys().map(String::as_str))
        .filter(|key| !AXES.contains(key))
        .collect();
    let separates = |key: &str| {
        // For each point of the axes the first value seen; another value there makes the key count.
        let mut met: BTreeMap<(&str, &str, u64, u64), Option<&String>> = BTreeMap::new();
        runs.iter().any(|run| {
            let value = run.parameters.get(key);
            let point = (run.lane.name(), run.scheduler.as_str(), tasks_of(run), cpus_of(run));
            *met.entry(point).or_insert(value) != value
        })
    };
    keys.into_iter().filter(|key| separates(key)).map(String::from).collect()
}

/// Names a run's variant. Runs of different workloads in one experiment are never repetitions of
/// one another.
fn variant_of(run: &RunResult, keys: &BTreeSet<String>, with_workload: bool) -> String {
    let workload = with_workload.then(|| run.workload.clone());
    let parameters =
        keys.iter().filter_map(|key| run.parameters.get(key).map(|value| format!("{key}={value}")));
    workload.into_iter().chain(parameters).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use schedlab_lab::Experiment;
    use schedlab_run::LaneKind::{Host, Sim};

    /// A run with the fields that grouping uses.
    pub fn run(lane: LaneKind, scheduler: &str, n: u64, cpus: u64) -> RunResult {
        let mut run =
            RunResult { lane: lane.into(), scheduler: scheduler.into(), ..RunResult::default() };
        run.parameters.insert("n".into(), n.to_string());
        run.parameters.insert("cpus".into(), cpus.to_string());
        run
    }

    /// An experiment of `runs` that asks for no figure.
    pub fn experiment(name: &str, runs: Vec<RunResult>) -> ExperimentResult {
        ExperimentResult {
            experiment: Experiment {
                name: name.into(),
                study: String::new(),
                title: String::new(),
                text: String::new(),
                figures: Vec::new(),
                view: None,
            },
            runs,
        }
    }

    #[test]
    fn repetitions_share_a_cell_and_lines_keep_their_order() {
        let results = [experiment(
            "S1",
            vec![
                run(Sim, "rr", 2, 1),
                run(Sim, "rr", 1, 1),
                run(Host, "RR", 1, 1),
                run(Host, "RR", 1, 1),
            ],
        )];
        let group = &group_all(&results)[0];
        assert_eq!(group.configs.len(), 2);
        assert_eq!(group.cells.len(), 3);
        assert_eq!(group.cell(1, 1, 1).unwrap().runs.len(), 2);
        assert_eq!(group.ns(1), [1, 2]);
    }

    #[test]
    fn a_parameter_that_separates_equal_runs_names_the_line() {
        let mut a = run(Sim, "rr", 1, 1);
        let mut b = a.clone();
        a.parameters.insert("slice".into(), "4ms".into());
        b.parameters.insert("slice".into(), "100ms".into());
        a.parameters.insert("program".into(), "hog".into());
        b.parameters.insert("program".into(), "hog".into());
        let results = [experiment("x", vec![a, b])];
        let group = &group_all(&results)[0];
        assert_eq!(group.configs[0].label(), "rr (slice=4ms)");
        assert_eq!(group.configs[1].label(), "rr (slice=100ms)");
    }

    #[test]
    fn a_shifted_start_is_a_repetition() {
        let (first, mut second) = (run(Host, "OTHER", 1, 1), run(Host, "OTHER", 1, 1));
        second.parameters.insert(SHIFT.into(), "1".into());
        let results = [experiment("x", vec![first, second])];
        assert_eq!(group_all(&results)[0].cells[0].runs.len(), 2);
    }

    #[test]
    fn workloads_of_one_experiment_are_lines_of_their_own() {
        let (mut a, mut b) = (run(Sim, "rr", 1, 1), run(Sim, "rr", 1, 1));
        (a.workload, b.workload) = ("hogs".into(), "sched".into());
        let results = [experiment("x", vec![a, b])];
        let group = &group_all(&results)[0];
        assert_eq!(group.configs[0].label(), "rr (hogs)");
        assert_eq!(group.cells.len(), 2);
    }

    #[test]
    fn a_policy_under_a_model_is_a_line_of_its_own() {
        let mut fifo = run(Sim, "linux-6.12", 1, 1);
        fifo.parameters.insert("policy".into(), "FIFO".into());
        let results = [experiment("x", vec![run(Sim, "linux-6.12", 1, 1), fifo])];
        let labels: Vec<String> =
            group_all(&results)[0].configs.iter().map(Config::label).collect();
        assert_eq!(labels, ["linux-6.12", "linux-6.12 (FIFO)"]);
    }

    #[test]
    fn equal_names_get_different_ids_and_empty_experiments_vanish() {
        let results = [
            experiment("a b", vec![run(Sim, "rr", 1, 1)]),
            experiment("a", vec![]),
            experiment("a/b", vec![run(Sim, "rr", 1, 1)]),
        ];
        let ids: Vec<String> = group_all(&results).into_iter().map(|g| g.id).collect();
        assert_eq!(ids, ["a-b", "a-b-x2"]);
    }

    #[test]
    fn the_machine_tells_the_cpus_where_no_parameter_does() {
        let mut r = run(Host, "OTHER", 1, 1);
        r.parameters.insert("cpus".into(), "all".into());
        r.machine.nr_cpus = 7;
        assert_eq!(cpus_of(&r), 7);
    }
}
