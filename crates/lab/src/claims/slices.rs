// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two sequences of slices on one CPU: which share is equal in order and length.
//!
//! Equal slices are those of the longest common subsequence: pairs of slices in the same order in
//! both runs. The two slices belong to one task, and their lengths differ by no more than the rule
//! allows. The share is relative to the longer sequence, so slices in only one run count as
//! different. An extra slice counts once and does not affect the slices after it.
//!
//! Tasks of one description are interchangeable, because chance may decide which of two equal tasks
//! is released first. The comparison renames them so that they match best.

use schedlab_run::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What counts as a slice in a comparison of sequences.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SliceRule {
    /// Two stays of one task on the CPU are one slice if no other task ran between them and they
    /// are less than this apart (ns). An interrupt or a kernel thread may separate them.
    pub gap_ns: u64,
    /// Shorter slices are left out (ns): the overhead of tasks before their first and after their
    /// last work.
    pub shortest_ns: u64,
    /// Two slices are equal if they belong to one task and their lengths differ by no more than
    /// this (ns).
    pub within_ns: u64,
}

/// A slice in a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// Index of the task among the names.
    pub task: usize,
    /// Its length.
    pub ns: u64,
}

/// The slices of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sequence {
    /// Names of the tasks, sorted.
    pub names: Vec<String>,
    /// The slices in order.
    pub stays: Vec<Stay>,
}

/// The number of equal slices of two runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Equal {
    /// Number of slices equal in order and length.
    pub nr_equal: u64,
    /// Number of slices of the run `on`.
    pub nr_kernel: u64,
    /// Number of slices of the run `against`.
    pub nr_model: u64,
}

impl Equal {
    /// The equal slices as a share of the longer sequence, 0 to 1; 1 without any slice.
    pub fn part(self) -> f64 {
        match self.nr_kernel.max(self.nr_model) {
            0 => 1.0,
            longer => self.nr_equal as f64 / longer as f64,
        }
    }
}

/// Maximum number of renamings to try; with more, tasks keep their names.
const RENAMINGS_MAX: usize = 720;

/// How far apart in the sequences two matching slices may be, in addition to the difference in
/// length. Without this limit, a wrong model could find its slices anywhere in the run.
const BAND: usize = 16;

impl Sequence {
    /// The slices of a run on one CPU, by the rule.
    pub fn of(run: &RunResult, rule: &SliceRule) -> Self {
        let tasks = run.measures.tasks.iter();
        let name_of: BTreeMap<u32, &str> =
            tasks.map(|task| (task.id, task.name.as_str())).collect();
        let mut names: Vec<String> = name_of.values().map(ToString::to_string).collect();
        names.sort_unstable();
        names.dedup();
        let mut joined: Vec<(usize, u64, u64)> = Vec::new();
        for slice in &run.slices {
            let Some(name) = name_of.get(&slice.task) else { continue };
            let Ok(task) = names.binary_search_by(|known| known.as_str().cmp(name)) else {
                continue;
            };
            match joined.last_mut() {
                Some((last, _, end))
                    if *last == task && slice.start_ns.saturating_sub(*end) < rule.gap_ns =>
                {
                    *end = slice.end_ns;
                }
                _ => joined.push((task, slice.start_ns, slice.end_ns)),
            }
        }
        let stay = |(task, start, end): (usize, u64, u64)| Stay { task, ns: end - start };
        let stays = joined.into_iter().map(stay).filter(|stay| stay.ns >= rule.shortest_ns);
        Self { names, stays: stays.collect() }
    }

    /// The slices with other task indices. Tasks that are not in `to` get an index that no task of
    /// the other run has.
    fn renamed(&self, to: &[usize]) -> Vec<Stay> {
        let stay = |stay: &Stay| Stay { task: to[stay.task], ns: stay.ns };
        self.stays.iter().map(stay).collect()
    }
}

/// A task's name without its number: `hog-3` is a `hog`.
pub fn description(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((stem, number)) => {
            let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            if is_number && !stem.is_empty() { stem } else { name }
        }
        None => name,
    }
}

/// Compares a kernel's slices with a model's.
pub fn compare(kernel: &Sequence, model: &Sequence, rule: &SliceRule) -> Equal {
    let best = renamings(kernel, model)
        .into_iter()
        .map(|to| common(&kernel.renamed(&to), &model.stays, rule.within_ns))
        .max();
    Equal {
        nr_equal: best.unwrap_or_default() as u64,
        nr_kernel: kernel.stays.len() as u64,
        nr_model: model.stays.len() as u64,
    }
}

/// All ways to rename the kernel's tasks to the model's tasks of the same description.
fn renamings(kernel: &Sequence, model: &Sequence) -> Vec<Vec<usize>> {
    let none = model.names.len();
    // First try each task's own name.
    let own = |name: &String| model.names.binary_search(name).unwrap_or(none);
    let mut all: Vec<Vec<usize>> = vec![kernel.names.iter().map(own).collect()];
    let mut classes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, name) in kernel.names.iter().enumerate() {
        if all[0][index] != none {
            classes.entry(description(name)).or_default().push(index);
        }
    }
    for members in classes.values().filter(|members| members.len() > 1) {
        let orders = permutations(members.len(), RENAMINGS_MAX / all.len());
        let mut more = Vec::with_capacity(all.len() * orders.len());
        for renaming in &all {
            for order in &orders {
                let mut renamed = renaming.clone();
                for (member, to) in members.iter().zip(order) {
                    renamed[*member] = all[0][members[*to]];
                }
                more.push(renamed);
            }
        }
        all = more;
    }
    all
}

/// All orders of `count` things; only the first one if there are more than `most`.
fn permutations(count: usize, most: usize) -> Vec<Vec<usize>> {
    let own: Vec<usize> = (0..count).collect();
    let number = (1..=count).try_fold(1_usize, |product, factor| product.checked_mul(factor));
    if number.is_none_or(|number| number > most) {
        return vec![own];
    }
    let mut all = vec![Vec::new()];
    for item in 0..count {
        let mut more = Vec::new();
        for order in &all {
            for place in (0..=order.len()).rev() {
                let mut longer: Vec<usize> = order.clone();
                longer.insert(place, item);
                more.push(longer);
            }
        }
        all = more;
    }
    all
}

/// Length of the longest common subsequence, within a band around the diagonal.
fn common(a: &[Stay], b: &[Stay], within_ns: u64) -> usize {
    let width = BAND + a.len().abs_diff(b.len());
    let mut before = vec![0_usize; b.len() + 1];
    let mut row = vec![0_usize; b.len() + 1];
    for (i, left) in a.iter().enumerate() {
        let (from, to) = (i.saturating_sub(width), (i + width + 1).min(b.len()));
        // Left of the band the length stays constant.
        row[from] = before[from];
        for j in from..to {
            let right = &b[j];
            let is_equal = left.task == right.task && left.ns.abs_diff(right.ns) <= within_ns;
            let kept = row[j].max(before[j + 1]);
            row[j + 1] = kept.max(before[j] + usize::from(is_equal));
        }
        // Right of the band the row continues with its last value.
        let last = row[to];
        row[to..].fill(last);
        std::mem::swap(&mut before, &mut row);
    }
    before[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::TaskMeasures;
    use schedlab_run::Slice;

    const MS: u64 = 1_000_000;
    const RULE: SliceRule = SliceRule { gap_ns: 400_000, shortest_ns: 300_000, within_ns: 4 * MS };

    /// A run of slices of so many microseconds each.
    fn run(names: &[&str], slices: &[(usize, u64)]) -> RunResult {
        let mut run = RunResult::default();
        run.measures.tasks = (0..)
            .zip(names)
            .map(|(id, name)| TaskMeasures { id, name: (*name).into(), ..Default::default() })
            .collect();
        let mut now = 0;
        for (task, us) in slices {
            let end = now + us * 1_000;
            run.slices.push(Slice {
                cpu: 0,
                task: *task as u32,
                start_ns: now,
                end_ns: end,
                end: "preempted".into(),
            });
            now = end;
        }
        run
    }

    fn sequence(names: &[&str], slices: &[(usize, u64)]) -> Sequence {
        Sequence::of(&run(names, slices), &RULE)
    }

    const HOGS: [&str; 3] = ["hog-0", "hog-1", "hog-2"];

    fn round_robin(order: [usize; 3], count: usize, us: u64) -> Vec<(usize, u64)> {
        order.into_iter().cycle().take(count).map(|task| (task, us)).collect()
    }

    #[test]
    fn equal_runs_are_equal_whatever_equal_tasks_are_called() {
        let kernel = sequence(&HOGS, &round_robin([2, 0, 1], 30, 4_000));
        let model = sequence(&HOGS, &round_robin([0, 1, 2], 30, 4_100));
        let found = compare(&kernel, &model, &RULE);
        assert_eq!((found.nr_equal, found.nr_kernel, found.nr_model), (30, 30, 30));
        assert_eq!(found.part(), 1.0);
    }

    #[test]
    fn tasks_of_other_descriptions_are_not_renamed() {
        let kernel = sequence(&["a", "b"], &[(0, 4_000), (1, 4_000), (0, 4_000)]);
        let model = sequence(&["a", "b"], &[(1, 4_000), (0, 4_000), (1, 4_000)]);
        assert_eq!(compare(&kernel, &model, &RULE).nr_equal, 2);
        let strange = sequence(&["c", "d"], &[(1, 4_000), (0, 4_000), (1, 4_000)]);
        assert_eq!(compare(&kernel, &strange, &RULE).nr_equal, 0);
    }

    #[test]
    fn lengths_count() {
        let kernel = sequence(&HOGS, &round_robin([0, 1, 2], 30, 4_000));
        let long = sequence(&HOGS, &round_robin([0, 1, 2], 3, 40_000));
        assert_eq!(compare(&kernel, &long, &RULE).nr_equal, 0);
        let near = sequence(&HOGS, &round_robin([0, 1, 2], 30, 8_000));
        assert_eq!(compare(&kernel, &near, &RULE).nr_equal, 30, "a tick apart");
        let far = sequence(&HOGS, &round_robin([0, 1, 2], 30, 8_001));
        assert_eq!(compare(&kernel, &far, &RULE).nr_equal, 0);
    }

    #[test]
    fn an_extra_slice_costs_itself_and_two_that_change_places_cost_one() {
        let mut slices = round_robin([0, 1, 2], 30, 4_000);
        let model = sequence(&HOGS, &slices);
        slices.insert(7, (2, 1_000));
        let kernel = sequence(&HOGS, &slices);
        let found = compare(&kernel, &model, &RULE);
        assert_eq!((found.nr_equal, found.nr_kernel), (30, 31));
        slices.remove(7);
        slices.swap(10, 11);
        let swapped = sequence(&HOGS, &slices);
        assert_eq!(compare(&swapped, &model, &RULE).nr_equal, 29);
    }

    #[test]
    fn many_short_slices_are_not_a_few_long_ones() {
        let kernel = sequence(&HOGS, &round_robin([0, 1, 2], 300, 700));
        let model = sequence(&HOGS, &round_robin([0, 1, 2], 60, 3_500));
        assert!(compare(&kernel, &model, &RULE).part() <= 0.2);
    }

    #[test]
    fn what_an_interrupt_parts_is_one_slice_and_short_ones_are_left_out() {
        let mut parted = run(&HOGS, &[(0, 2_000), (0, 2_000), (1, 200), (2, 4_000)]);
        for slice in &mut parted.slices[1..] {
            slice.start_ns += 50_000;
            slice.end_ns += 50_000;
        }
        let found = Sequence::of(&parted, &RULE);
        assert_eq!(found.stays, [Stay { task: 0, ns: 4_050_000 }, Stay { task: 2, ns: 4 * MS }]);
        // Another task between them, however short, makes them two slices.
        let apart = Sequence::of(&run(&HOGS, &[(0, 2_000), (1, 200), (0, 2_000)]), &RULE);
        assert_eq!(apart.stays.len(), 2);
    }

    #[test]
    fn a_run_without_slices_has_nothing_to_differ_in() {
        let none = sequence(&HOGS, &[]);
        assert_eq!(compare(&none, &none, &RULE).part(), 1.0);
        let some = sequence(&HOGS, &[(0, 4_000)]);
        assert_eq!(compare(&none, &some, &RULE).part(), 0.0);
    }

    #[test]
    fn descriptions() {
        let all = ["hog-3", "a-b-12", "hog", "-3", "a-", "x-y"].map(description);
        assert_eq!(all, ["hog", "a-b", "hog", "-3", "a-", "x-y"]);
    }

    #[test]
    fn orders_are_all_there_or_only_their_own() {
        let mut all = permutations(4, 24);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 24);
        assert_eq!(permutations(4, 23), [vec![0, 1, 2, 3]]);
        assert_eq!(permutations(40, usize::MAX).len(), 1);
    }
}
