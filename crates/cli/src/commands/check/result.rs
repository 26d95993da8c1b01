// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `schedlab check` prints: its result, the rules and the known bugs.

use super::finding::Finding;
use crate::table;
use schedlab_check::Rule;
use schedlab_sched::bugs::KnownBug;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the form of results.
const SCHEMA_VERSION: u32 = 1;

/// What `check --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Version of this form.
    pub schema_version: u32,
    /// The schedulers, in the order in which they were named.
    pub schedulers: Vec<Checked>,
}

impl CheckResult {
    /// The result of these schedulers.
    pub fn new(schedulers: Vec<Checked>) -> Self {
        Self { schema_version: SCHEMA_VERSION, schedulers }
    }
}

/// A rule, for `check --rules --json`.
#[derive(Debug, Serialize)]
pub struct StatedRule {
    name: &'static str,
    statement: &'static str,
    source: &'static str,
    holds_for: &'static str,
    tolerance: &'static str,
    traps: &'static str,
}

impl StatedRule {
    /// `rule` for output.
    pub fn of(rule: &Rule) -> Self {
        Self {
            name: rule.name,
            statement: rule.statement,
            source: rule.source,
            holds_for: rule.holds_for,
            tolerance: rule.tolerance,
            traps: rule.traps,
        }
    }
}

/// A known bug, for `check --bugs --json`.
#[derive(Debug, Serialize)]
pub struct StatedBug {
    pub id: &'static str,
    pub statement: &'static str,
    pub kernels: &'static str,
    pub source: &'static str,
    /// Models with the bug; the first is the one to show it with.
    pub schedulers: Vec<String>,
    /// Why no model can have it.
    pub left_out: Option<&'static str>,
}

impl StatedBug {
    /// `bug` for output.
    pub fn of(bug: &KnownBug) -> Self {
        Self {
            id: bug.id,
            statement: bug.statement,
            kernels: bug.kernels,
            source: bug.source,
            schedulers: bug.names().collect(),
            left_out: bug.left_out(),
        }
    }
}

/// The result for one scheduler.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// The scheduler.
    pub scheduler: String,
    /// Stored cases that were checked.
    pub nr_stored: u64,
    /// Random cases that were checked.
    pub nr_cases: u64,
    /// Random cases that the scheduler cannot play, because it lacks a policy or a limit.
    pub nr_refused: u64,
    /// Time of the search (ns).
    pub elapsed_ns: u64,
    /// Seed of the first random case that broke a rule.
    pub found_at_seed: Option<u64>,
    /// Runs that made it smaller.
    pub nr_shrink_runs: u32,
    /// The broken rule and the small case.
    pub finding: Option<Finding>,
}

impl Checked {
    /// Nothing has been checked yet.
    pub fn new(scheduler: &str) -> Self {
        Self {
            scheduler: scheduler.into(),
            nr_stored: 0,
            nr_cases: 0,
            nr_refused: 0,
            elapsed_ns: 0,
            found_at_seed: None,
            nr_shrink_runs: 0,
            finding: None,
        }
    }

    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let time = table::duration(self.elapsed_ns);
        let name = &self.scheduler;
        match &self.finding {
            Some(finding) if self.found_at_seed.is_some() => {
                let rule = &finding.recipe.rule;
                let cases = table::counted(self.nr_cases, "case", "cases");
                format!("{name} breaks rule {rule}: found after {cases} in {time}.")
            }
            Some(finding) => {
                format!("{name} still breaks rule {} in a stored case.", finding.recipe.rule)
            }
            None if self.nr_cases == 0 => format!("{name} breaks no rule in the stored case."),
            None => {
                let stored = match self.nr_stored {
                    0 => String::new(),
                    count => {
                        format!("{} and ", table::counted(count, "stored case", "stored cases"))
                    }
                };
                format!(
                    "{name} breaks no rule in {stored}{} ({} more it cannot play) in {time}.",
                    table::counted(self.nr_cases - self.nr_refused, "case", "cases"),
                    self.nr_refused
                )
            }
        }
    }
}
