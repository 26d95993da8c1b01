// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a case that breaks a rule smaller, as long as the same rule still breaks.
//!
//! Structure goes before numbers: the end of the run, tasks, groups, CPUs, steps and loops,
//! attributes, and at last amounts. Each pass tries all its changes one after the other, and all
//! passes are repeated until none of them changes anything.

mod numbers;
mod structure;
mod tidy;

use crate::case::Case;
use crate::rules::Breach;
pub(crate) use tidy::{each_attr, tidy};

/// A small case.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// Its breach.
    pub breach: Breach,
    /// Number of runs that it took.
    pub nr_runs: u32,
}

/// All changes that a pass can make to a case.
type Pass = fn(&Case, &Breach) -> Vec<Case>;

/// The passes, in their order.
const PASSES: [Pass; 14] = [
    structure::earlier_end,
    structure::fewer_tasks,
    structure::fewer_instances,
    structure::fewer_groups,
    structure::fewer_cpus,
    structure::plainer_machine,
    structure::fewer_steps,
    structure::without_loops,
    structure::plainer_tasks,
    structure::plainer_groups,
    structure::plainer_objects,
    numbers::constant_amounts,
    numbers::rounder_amounts,
    numbers::rounder_numbers,
];

/// Shrinks `case`, which breaks a rule by `breach`. `test` runs a case and returns its breach.
/// After `runs_max` runs the smallest case so far is the answer.
pub fn shrink(
    case: &Case,
    breach: &Breach,
    runs_max: u32,
    test: &mut dyn FnMut(&Case) -> Option<Breach>,
) -> Shrunk {
    let best = Shrunk { case: case.clone(), breach: breach.clone(), nr_runs: 0 };
    let mut shrinker = Shrinker { best, runs_max, test, tried: Vec::new() };
    loop {
        let changed = PASSES.iter().filter(|pass| shrinker.exhaust(**pass)).count();
        if changed == 0 {
            break;
        }
    }
    shrinker.best
}

struct Shrinker<'t> {
    best: Shrunk,
    runs_max: u32,
    test: &'t mut dyn FnMut(&Case) -> Option<Breach>,
    /// Cases that did not break the rule.
    tried: Vec<Case>,
}

impl Shrinker<'_> {
    /// Makes the changes of a pass until none of them keeps the breach.
    fn exhaust(&mut self, pass: Pass) -> bool {
        let mut has_changed = false;
        let mut next = 0;
        loop {
            let mut changes = pass(&self.best.case, &self.best.breach);
            if next >= changes.len() {
                return has_changed;
            }
            // After a change the others have moved up.
            if self.attempt(changes.swap_remove(next)) {
                has_changed = true;
            } else {
                next += 1;
            }
        }
    }

    fn attempt(&mut self, mut case: Case) -> bool {
        tidy(&mut case.workload);
        let is_old = case == self.best.case || self.tried.contains(&case);
        if is_old || self.best.nr_runs >= self.runs_max || case.check().is_err() {
            return false;
        }
        self.best.nr_runs += 1;
        match (self.test)(&case) {
            Some(breach) if breach.is_like(&self.best.breach) => {
                self.best.case = case;
                self.best.breach = breach;
                true
            }
            _ => {
                self.tried.push(case);
                false
            }
        }
    }
}
