// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arranges runs in rows, with means, intervals and differences from a baseline.
//!
//! The unit of statistics is the seed. A row may hold several conditions, such as every n if rows
//! are schedulers. A seed's value is then its mean over the row's conditions; a seed that lacks a
//! condition is left out and counted. The interval is Student's for the mean over seeds. A
//! difference is computed seed by seed against the baseline's row, over the seeds and conditions
//! that both have. Its interval is Student's for the mean of those differences (paired). One seed
//! gives no interval. Intervals hold for one comparison each; they are not widened for the number
//! of comparisons.

use crate::published::Published;
use schedlab_metrics::stats;
use schedlab_run::place::Step;
use schedlab_run::place::unknown;
use schedlab_run::values::{self, MEASURES_DEFAULT};
use schedlab_run::{RunResult, StudyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How to arrange runs in a table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// Dimensions that identify a row.
    pub by: Vec<String>,
    /// Measures; empty: the usual ones.
    #[serde(default)]
    pub measures: Vec<String>,
    /// Dimensions and their values in the row to compare with.
    #[serde(default)]
    pub baseline: BTreeMap<String, String>,
    /// Only runs with one of these values.
    #[serde(default)]
    pub filter: BTreeMap<String, Vec<String>>,
    /// Dimension of the horizontal axis.
    #[serde(default)]
    pub x: Option<String>,
    /// Published values to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

/// Mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Number of seeds.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation over seeds; `None` for one seed.
    pub std_dev: Option<f64>,
    /// Ends of the 95 % confidence interval of the mean; `None` for one seed.
    pub ci95: Option<[f64; 2]>,
}

/// Difference from the baseline.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Number of seeds that both rows have, the mean of the differences, and its interval.
    pub paired: Estimate,
    /// Mean of the baseline over the same seeds.
    pub baseline_mean: f64,
}

/// One measure in one row.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CellValue {
    /// Mean over seeds; `None` if no run has the measure.
    pub estimate: Option<Estimate>,
    /// Number of seeds left out because they lack one of the row's conditions.
    pub nr_seeds_incomplete: u64,
    /// Difference from the baseline; `None` in the baseline itself, or without a shared seed.
    pub difference: Option<Difference>,
}

/// One row.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Values of the dimensions in `by`.
    pub key: Vec<String>,
    /// Whether other rows are compared with this one.
    pub is_baseline: bool,
    /// Number of runs in the row.
    pub nr_runs: u64,
    /// One value for each measure.
    pub values: Vec<CellValue>,
}

/// Runs as rows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Dimensions of a row's key.
    pub by: Vec<String>,
    /// Names of the measures.
    pub measures: Vec<String>,
    /// Rows, sorted by the first dimension, then by the second; values in order of first
    /// appearance.
    pub rows: Vec<Row>,
}

/// How the table computes means and intervals, for its readers.
pub const METHOD: &str = "Mean over seeds; \u{b1} is half the 95 % confidence interval \
     (Student's t over n seeds), left out for n = 1. Differences are paired: seed by seed, over \
     the seeds that both rows have.";

impl View {
    /// Checks that the measures exist; `figures` are those of the experiment's program.
    pub fn check(&self, figures: &[String]) -> Result<(), StudyError> {
        let mut known = figures.to_vec();
        known.extend(values::measure_names());
        for (index, measure) in self.measures.iter().enumerate() {
            if !known.contains(measure) {
                let steps: [Step; 2] = ["measure".into(), index.into()];
                return Err(unknown("measure", measure, known.iter().map(String::as_str)).at(steps));
            }
        }
        Ok(())
    }

    /// The measures; the usual ones if none is named.
    pub fn measures(&self) -> Vec<String> {
        if self.measures.is_empty() {
            MEASURES_DEFAULT.map(String::from).to_vec()
        } else {
            self.measures.clone()
        }
    }

    /// Whether a run passes the filter.
    pub fn takes(&self, run: &RunResult) -> bool {
        self.filter.iter().all(|(name, allowed)| allowed.contains(&values::dimension(run, name)))
    }

    /// The runs as a table.
    pub fn table<'r>(&self, runs: impl IntoIterator<Item = &'r RunResult>) -> Table {
        let measures = self.measures();
        let mut groups: Vec<Group> = Vec::new();
        let mut index: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for run in runs.into_iter().filter(|run| self.takes(run)) {
            let key: Vec<String> = self.by.iter().map(|d| values::dimension(run, d)).collect();
            let at = *index.entry(key).or_insert_with_key(|key| {
                groups.push(Group::new(key.clone(), measures.len()));
                groups.len() - 1
            });
            groups[at].add(run, &measures, &self.by);
        }
        let rows = groups.iter().enumerate().map(|(at, group)| {
            let base = self.baseline_of(&group.key, &index);
            let other = base.filter(|base| *base != at).map(|base| &groups[base]);
            Row {
                key: group.key.clone(),
                is_baseline: base == Some(at),
                nr_runs: group.nr_runs,
                values: (0..measures.len())
                    .map(|m| cell(&group.values[m], other.map(|other| &other.values[m])))
                    .collect(),
            }
        });
        let mut rows: Vec<Row> = rows.collect();
        sort(&mut rows);
        Table { by: self.by.clone(), rows, measures }
    }

    /// Index in `by` of the dimension for a horizontal axis: the requested one, else the one with
    /// most values, all of them numbers or times.
    pub fn axis(&self, table: &Table) -> Option<usize> {
        const NAMES: [&str; 5] = ["lane", "scheduler", "workload", "policy", "machine"];
        if let Some(x) = &self.x {
            return table.by.iter().position(|name| name == x);
        }
        let candidates = table.by.iter().enumerate().filter_map(|(index, name)| {
            let met: BTreeSet<&str> = table
                .rows
                .iter()
                .map(|row| row.key[index].as_str())
                .filter(|value| !value.is_empty())
                .collect();
            let is_axis = met.len() > 1
                && !NAMES.contains(&name.as_str())
                && met.iter().all(|value| values::axis_value(value).is_some());
            is_axis.then_some((met.len(), index))
        });
        candidates.max_by_key(|(count, index)| (*count, usize::MAX - index)).map(|found| found.1)
    }

    /// The row to compare with: the row's own key with the baseline's values. If no row has its
    /// tunables, the row without tunables, because other schedulers have none.
    fn baseline_of(&self, key: &[String], index: &BTreeMap<Vec<String>, usize>) -> Option<usize> {
        if self.baseline.is_empty() {
            return None;
        }
        let wanted = |with_tunables: bool| -> Vec<String> {
            let value = |(name, own): (&String, &String)| match self.baseline.get(name) {
                Some(value) => value.clone(),
                None if !with_tunables && name.starts_with("set.") => String::new(),
                None => own.clone(),
            };
            self.by.iter().zip(key).map(value).collect()
        };
        index.get(&wanted(true)).or_else(|| index.get(&wanted(false))).copied()
    }
}

/// Sorts rows by the first dimension, then by the second; values in order of first appearance.
fn sort(rows: &mut [Row]) {
    let mut ranks: Vec<BTreeMap<String, usize>> = Vec::new();
    for row in rows.iter() {
        ranks.resize_with(row.key.len(), BTreeMap::new);
        for (rank, value) in ranks.iter_mut().zip(&row.key) {
            let next = rank.len();
            rank.entry(value.clone()).or_insert(next);
        }
    }
    rows.sort_by_cached_key(|row| -> Vec<usize> {
        ranks.iter().zip(&row.key).filter_map(|(rank, value)| rank.get(value).copied()).collect()
    });
}

/// Values by seed and condition.
type BySeed = BTreeMap<u64, BTreeMap<Vec<String>, Vec<f64>>>;

/// The runs of a row.
struct Group {
    key: Vec<String>,
    nr_runs: u64,
    values: Vec<BySeed>,
}

impl Group {
    fn new(key: Vec<String>, nr_measures: usize) -> Self {
        Self { key, nr_runs: 0, values: vec![BySeed::new(); nr_measures] }
    }

    fn add(&mut self, run: &RunResult, measures: &[String], by: &[String]) {
        // A dimension of the row's key is not a condition within the row. A model's policy is a
        // part of its name.
        let is_key = |name: &str| {
            let name = if name == "policy" { "scheduler" } else { name };
            by.iter().any(|known| known == name)
        };
        let condition: Vec<String> = values::condition(run)
            .into_iter()
            .filter(|(name, _)| !is_key(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        for (values, measure) in self.values.iter_mut().zip(measures) {
            if let Some(value) = values::run_value(run, measure) {
                let of_seed = values.entry(run.seed).or_default();
                of_seed.entry(condition.clone()).or_default().push(value);
            }
        }
        self.nr_runs += 1;
    }
}

/// All conditions of any seed.
fn conditions(values: &BySeed) -> BTreeSet<&Vec<String>> {
    values.values().flat_map(BTreeMap::keys).collect()
}

/// A seed's mean over `wanted`; `None` if it lacks one of these conditions.
fn seed_mean(
    of_seed: &BTreeMap<Vec<String>, Vec<f64>>,
    wanted: &BTreeSet<&Vec<String>>,
) -> Option<f64> {
    let means: Option<Vec<f64>> =
        wanted.iter().map(|condition| Some(stats::mean(of_seed.get(*condition)?))).collect();
    means.filter(|means| !means.is_empty()).map(|means| stats::mean(&means))
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let mean = stats::mean(values);
    Some(Estimate {
        n: values.len() as u64,
        mean,
        std_dev: (values.len() > 1).then(|| stats::std_dev(values)),
        ci95: stats::ci95_half_width(values).map(|half| [mean - half, mean + half]),
    })
}

fn cell(own: &BySeed, base: Option<&BySeed>) -> CellValue {
    let all = conditions(own);
    let values: Vec<f64> = own.values().filter_map(|of_seed| seed_mean(of_seed, &all)).collect();
    CellValue {
        estimate: estimate(&values),
        nr_seeds_incomplete: (own.len() - values.len()) as u64,
        difference: base.and_then(|base| difference(own, base)),
    }
}

/// The difference seed by seed, over the conditions that both have.
fn difference(own: &BySeed, base: &BySeed) -> Option<Difference> {
    let (own_has, base_has) = (conditions(own), conditions(base));
    let shared: BTreeSet<&Vec<String>> = own_has.intersection(&base_has).copied().collect();
    let pairs: Vec<(f64, f64)> = own
        .iter()
        .filter_map(|(seed, of_seed)| {
            Some((seed_mean(of_seed, &shared)?, seed_mean(base.get(seed)?, &shared)?))
        })
        .collect();
    let differences: Vec<f64> = pairs.iter().map(|(own, base)| own - base).collect();
    let bases: Vec<f64> = pairs.iter().map(|(_, base)| *base).collect();
    Some(Difference { paired: estimate(&differences)?, baseline_mean: stats::mean(&bases) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scheduler: &str, n: u64, seed: u64, switches: u64) -> RunResult {
        let mut run = RunResult {
            lane: schedlab_run::LaneKind::Sim.into(),
            scheduler: scheduler.into(),
            seed,
            ..Default::default()
        };
        run.parameters.insert("n".into(), n.to_string());
        run.measures.totals.nr_switches = switches;
        run
    }

    fn view(by: &[&str]) -> View {
        View {
            by: by.iter().map(|name| (*name).into()).collect(),
            measures: vec!["nr_switches".into()],
            baseline: BTreeMap::from([("scheduler".into(), "a".into())]),
            ..View::default()
        }
    }

    /// Differences 8, 10, 12: mean 10, deviation 2, t(2) = 4.302653, half 4.96828. The spread of
    /// the rows themselves is 50 times as large and does not matter.
    #[test]
    fn differences_are_taken_seed_by_seed() {
        let runs = [
            run("a", 1, 1, 100),
            run("a", 1, 2, 200),
            run("a", 1, 3, 300),
            run("b", 1, 3, 312),
            run("b", 1, 1, 108),
            run("b", 1, 2, 210),
            run("b", 1, 4, 9999),
        ];
        let table = view(&["scheduler"]).table(&runs);
        assert!(table.rows[0].is_baseline && !table.rows[1].is_baseline);
        assert_eq!(table.rows[0].values[0].difference, None);
        let own = table.rows[1].values[0].estimate.unwrap();
        assert_eq!(own.n, 4);
        let difference = table.rows[1].values[0].difference.unwrap();
        assert_eq!((difference.paired.n, difference.paired.mean), (3, 10.0));
        assert_eq!(difference.baseline_mean, 200.0);
        let [low, high] = difference.paired.ci95.unwrap();
        assert!((low - (10.0 - 4.968_28)).abs() < 1e-4 && (high - 14.968_28).abs() < 1e-4);
    }

    #[test]
    fn one_seed_gives_no_interval() {
        let table = view(&["scheduler"]).table(&[run("a", 1, 1, 4), run("b", 1, 1, 6)]);
        let value = table.rows[1].values[0];
        assert_eq!((value.estimate.unwrap().ci95, value.estimate.unwrap().std_dev), (None, None));
        assert_eq!(value.difference.unwrap().paired.mean, 2.0);
        assert_eq!(value.difference.unwrap().paired.ci95, None);
    }

    /// Several conditions in a row are not repetitions: n stays the number of seeds.
    #[test]
    fn a_seed_is_one_value_however_many_conditions_a_row_has() {
        let mut runs = Vec::new();
        for seed in 1..=2 {
            for n in 1..=10 {
                runs.push(run("a", n, seed, n * 10 + seed));
            }
        }
        runs.push(run("a", 1, 3, 1000));
        let table = view(&["scheduler"]).table(&runs);
        let value = table.rows[0].values[0];
        assert_eq!(value.estimate.unwrap().n, 2);
        assert_eq!(value.estimate.unwrap().mean, 56.5);
        assert_eq!(value.nr_seeds_incomplete, 1, "seed 3 has one n of ten");
        assert_eq!(table.rows[0].nr_runs, 21);
    }

    /// The baseline has n = 1 only, so the other row's n = 2 must not count as a difference.
    #[test]
    fn only_shared_conditions_are_compared() {
        let runs = [run("a", 1, 1, 5), run("b", 1, 1, 6), run("b", 2, 1, 700)];
        let table = view(&["scheduler"]).table(&runs);
        assert_eq!(table.rows[1].values[0].difference.unwrap().paired.mean, 1.0);
        assert_eq!(table.rows[1].values[0].estimate.unwrap().mean, 353.0);
    }

    #[test]
    fn rows_are_compared_with_the_baseline_at_the_same_n() {
        let runs = [run("a", 1, 1, 5), run("b", 1, 1, 6), run("a", 2, 1, 50), run("b", 2, 1, 70)];
        let table = view(&["scheduler", "n"]).table(&runs);
        let differences: Vec<Option<f64>> =
            table.rows.iter().map(|r| Some(r.values[0].difference?.paired.mean)).collect();
        assert_eq!(differences, [None, None, Some(1.0), Some(20.0)], "a 1, a 2, b 1, b 2");
        let only = View {
            filter: BTreeMap::from([("n".into(), vec!["2".into()])]),
            ..view(&["scheduler", "n"])
        };
        assert_eq!(only.table(&runs).rows.len(), 2);
    }

    #[test]
    fn a_measure_that_no_run_has_is_empty() {
        let view = View { measures: vec!["makespan_ns".into()], ..view(&["scheduler"]) };
        assert_eq!(view.table(&[run("a", 1, 1, 5)]).rows[0].values[0].estimate, None);
    }
}
