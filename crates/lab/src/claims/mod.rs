// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims of a study, and their verdicts.
//!
//! A claim is data: a sentence, the study's numbers for it, and checks. A check names runs, an
//! expression over their measures (`expression`), and the bounds for its value (`bounds`). The
//! bounds are fixed before anything runs, with a reason. `evaluate` computes a number with its
//! interval from the runs. `verdict` derives the answer: holds, fails, or inconclusive. What was
//! not measured never counts as agreement. `finding` sums up a claim's result in a sentence.
//! `derived` has measures that only claims need.
//!
//! A claim can also be about pairs of runs, one in each of two places. `pairs` defines the
//! comparison, `compare` answers it by `units` (numbers) and `slices` (the timeline), and `tables`
//! makes tables of the answers.

mod bounds;
mod compare;
mod derived;
mod evaluate;
mod expression;
mod fact;
mod finding;
pub(crate) mod pairs;
#[cfg(test)]
mod pairs_tests;
mod reason;
pub mod slices;
pub mod tables;
mod units;
mod verdict;

pub use bounds::{Bounds, Lies};
pub use compare::{KnobPoint, PairKind, PairResult, UnitResult};
pub use derived::DERIVED;
pub(crate) use evaluate::is_disturbed;
pub use evaluate::{Disturbed, Found, Scope};
pub use expression::{Expr, MeasureRef};
pub use fact::Fact;
pub use finding::summary;
pub use pairs::{Case, Control, Knob, Of, Pairs, Scale, Within};
pub(crate) use pairs::{Number, Yardstick};
pub use reason::Reason;
pub use tables::Word;
pub(crate) use units::{pooled, values};
pub use verdict::{Answer, CheckResult, ClaimResult, Evidence, Verdict, judge};

use crate::axis::{OneOrMore, Scalar};
use crate::published::Published;
use crate::study::{ExperimentSpec, Study};
use schedlab_run::place::unknown;
use schedlab_run::{LaneKind, RunResult, StudyError, values};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A statement of a study.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name: the study's name and a number, `S0-3`.
    pub id: String,
    /// The study's statement, as a sentence.
    pub text: String,
    /// The study's numbers, for people.
    #[serde(default)]
    pub numbers: String,
    /// Other known facts, such as a contradiction in the study, or third parties' published data.
    #[serde(default)]
    pub remark: String,
    /// Why nothing can be measured, for a statement about code or words. Replaces checks.
    #[serde(default)]
    pub not_measured: Option<String>,
    /// Facts, read instead of measured.
    #[serde(default, rename = "fact")]
    pub facts: Vec<Fact>,
    /// Checks: numbers with bounds.
    #[serde(default, rename = "check")]
    pub checks: Vec<Check>,
    /// Comparison of pairs of runs.
    #[serde(default)]
    pub pairs: Option<Pairs>,
    /// Wrong models that the comparison must reject.
    #[serde(default, rename = "control")]
    pub controls: Vec<Control>,
    /// Settings of the model that must move the compared number.
    #[serde(default, rename = "knob")]
    pub knobs: Vec<Knob>,
}

/// A number that the claim is about.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Description of the number, for people; `{n}` stands for a value of `each`.
    pub what: String,
    /// Names of the experiments whose runs it uses, as in the study, with their braces.
    pub experiment: OneOrMore,
    /// Places: `sim`, `host` or `vm`, then a blank and a scheduler (`sim linux-6.12`), unless the
    /// value names schedulers. Each place makes a row.
    pub on: Vec<String>,
    /// Names with the values that replace `{name}`. Each combination of values makes rows.
    #[serde(default)]
    pub each: BTreeMap<String, OneOrMore>,
    /// The number: an expression over measures of the runs.
    pub value: String,
    /// The study's value.
    #[serde(default, deserialize_with = "crate::published::of_check")]
    #[schemars(with = "Option<crate::published::Short>")]
    pub published: Option<Published>,
    /// The bounds within which the claim holds.
    pub holds: String,
    /// Reason for these bounds.
    pub why: String,
}

/// A place: where the runs of a row were made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The lane.
    pub lane: LaneKind,
    /// The scheduler; `None` if the value names it.
    pub scheduler: Option<String>,
}

impl Place {
    /// Parses a place such as `sim linux-6.12`.
    pub fn parse(text: &str) -> Option<Self> {
        let (lane, scheduler) = match text.trim().split_once(char::is_whitespace) {
            Some((lane, scheduler)) => (lane, Some(scheduler.trim().to_string())),
            None => (text.trim(), None),
        };
        Some(Self { lane: lane.parse().ok()?, scheduler })
    }

    /// Whether a run was made in this place.
    pub fn has(&self, run: &RunResult) -> bool {
        let is_its = |name: &String| values::scheduler_label(run) == *name;
        run.lane == self.lane && self.scheduler.as_ref().is_none_or(is_its)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scheduler {
            Some(scheduler) => write!(f, "{} {scheduler}", self.lane),
            None => self.lane.fmt(f),
        }
    }
}

/// A check at one place, with values of `each` inserted.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Description of the number.
    pub what: String,
    /// The place.
    pub place: Place,
    /// The expression as text.
    pub value: String,
    /// The parsed expression.
    pub expr: Expr,
    /// The bounds as text.
    pub holds: String,
    /// The parsed bounds.
    pub bounds: Bounds,
    /// The study's number.
    pub published: Option<f64>,
}

impl Check {
    /// The rows of the check: for each combination of `each`, in order, one at every place.
    pub fn rows(&self) -> Result<Vec<Row>, StudyError> {
        let axes: Vec<(&str, Vec<String>)> =
            self.each.iter().map(|(name, values)| (name.as_str(), values.values())).collect();
        let sets = crate::plan::points(&axes);
        let mut rows = Vec::new();
        for (index, set) in sets.iter().enumerate() {
            let fill = |text: &str| crate::plan::fill(text, set);
            let (value, holds) = (fill(&self.value), fill(&self.holds));
            let expr = Expr::parse(&value).map_err(|error| {
                StudyError::new(format!("the value {value:?}: {error}"), "").below("value")
            })?;
            let bounds =
                Bounds::parse(&holds).map_err(|text| StudyError::new(text, "").below("holds"))?;
            let of_row = |all: &Published| all.of_row((index, sets.len()), set);
            let published = self.published.as_ref().map(of_row).transpose()?;
            for (at, on) in self.on.iter().enumerate() {
                let place = Place::parse(&fill(on)).ok_or_else(|| {
                    StudyError::new(
                        format!("{on:?} is no place of runs"),
                        "give a lane (sim, host, vm), or a lane and a scheduler: sim linux-6.12",
                    )
                    .at(["on".into(), at.into()])
                })?;
                rows.push(Row {
                    what: fill(&self.what),
                    place,
                    value: value.clone(),
                    expr: expr.clone(),
                    holds: holds.clone(),
                    bounds,
                    published,
                });
            }
        }
        Ok(rows)
    }

    /// Whether the check covers the experiments made from the study's experiment `name`.
    pub fn is_about(&self, experiment: &str) -> bool {
        self.experiment.values().iter().any(|template| matches_template(template, experiment))
    }

    fn check(&self, experiments: &[ExperimentSpec]) -> Result<(), StudyError> {
        let mut dimensions: BTreeSet<String> = BTreeSet::from(["task".to_string()]);
        let mut figures = Vec::new();
        for name in self.experiment.values() {
            let Some(spec) = experiments.iter().find(|spec| spec.name == name) else {
                let names = experiments.iter().map(|spec| spec.name.as_str());
                return Err(unknown("experiment", &name, names).below("experiment"));
            };
            dimensions.extend(spec.dimensions());
            figures.extend(spec.figure_names());
        }
        if self.on.is_empty() {
            return Err(
                StudyError::new("`on` is empty", "name a lane: sim, host or vm").below("on")
            );
        }
        for row in self.rows()? {
            check_number(&row.expr, &dimensions, &figures).map_err(|error| error.below("value"))?;
        }
        Ok(())
    }
}

/// Checks the names in a number, for runs with these dimensions and programs with these figures.
pub(crate) fn check_number(
    expr: &Expr,
    dimensions: &BTreeSet<String>,
    figures: &[String],
) -> Result<(), StudyError> {
    for measure in expr.measures() {
        evaluate::check_measure(measure, figures)?;
        for (name, _) in &measure.selectors {
            known_dimension(name, dimensions)?;
        }
    }
    for name in expr.series_dimensions() {
        known_dimension(name, dimensions)?;
    }
    match expr.free_variables().into_iter().find(|name| *name != "all") {
        None => Ok(()),
        Some(name) => Err(StudyError::new(
            format!("{name:?} has no value here"),
            "a dimension has one within a series, as in max(n: nr_switches / n); `all` is the \
             number of CPUs",
        )),
    }
}

fn known_dimension(name: &str, known: &BTreeSet<String>) -> Result<(), StudyError> {
    if known.contains(name) {
        return Ok(());
    }
    Err(unknown("dimension", name, known.iter().map(String::as_str)))
}

/// Whether `name` is `template` with text in place of each pair of braces.
pub(crate) fn matches_template(template: &str, name: &str) -> bool {
    let Some((before, rest)) = template.split_once('{') else { return template == name };
    let Some(name) = name.strip_prefix(before) else { return false };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    (1..=name.len())
        .filter(|at| name.is_char_boundary(*at))
        .any(|at| matches_template(after, &name[at..]))
}

/// Checks the claims of a study.
pub(crate) fn check(study: &Study) -> Result<(), StudyError> {
    let mut ids = BTreeSet::new();
    for (index, claim) in study.claims.iter().enumerate() {
        let inside = |error: StudyError| error.at(["claim".into(), index.into()]);
        if !ids.insert(&claim.id) {
            return Err(inside(
                StudyError::new(
                    format!("two claims are called {:?}", claim.id),
                    "give each its own id",
                )
                .below("id"),
            ));
        }
        let has_checks =
            !claim.checks.is_empty() || !claim.facts.is_empty() || claim.pairs.is_some();
        if has_checks != claim.not_measured.is_none() {
            return Err(inside(StudyError::new(
                format!("claim {:?} must have either checks or `not_measured`", claim.id),
                "add [[claim.check]], [[claim.fact]] or [claim.pairs], or say in `not_measured` \
                 why there is nothing to check",
            )));
        }
        for (at, check) in claim.checks.iter().enumerate() {
            check
                .check(&study.experiments)
                .map_err(|error| inside(error.at(["check".into(), at.into()])))?;
        }
        for (at, fact) in claim.facts.iter().enumerate() {
            fact.check().map_err(|error| inside(error.at(["fact".into(), at.into()])))?;
        }
        claim.check_pairs(study).map_err(inside)?;
    }
    Ok(())
}

/// What a quick reproduction changes in an experiment.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Whether to leave the experiment out. Claims about it are then inconclusive.
    #[serde(default)]
    pub skip: bool,
    /// Axes with other values.
    #[serde(default)]
    pub axes: BTreeMap<String, crate::axis::Axis>,
    /// Parameters with other values.
    #[serde(default)]
    pub parameters: BTreeMap<String, Scalar>,
    /// Schedulers to keep in every entry of `runs`; an entry without any is left out.
    #[serde(default)]
    pub schedulers: Vec<String>,
    /// Number of repetitions for every entry of `runs` that sets one.
    #[serde(default)]
    pub repetitions: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Short;

    #[test]
    fn experiments_are_known_by_their_template() {
        assert!(matches_template("S0-{cpus}cpu-{n}", "S0-1cpu-4"));
        assert!(matches_template("S0-{cpus}cpu-{n}", "S0-128cpu-16"));
        assert!(!matches_template("S0-{cpus}cpu-{n}", "S0-nice"));
        assert!(!matches_template("S0-{cpus}cpu-{n}", "S0-1cpu-"));
        assert!(matches_template("S1", "S1") && !matches_template("S1", "S10"));
    }

    #[test]
    fn each_value_and_each_place_is_a_row() {
        let check = Check {
            what: "with {n}".into(),
            experiment: OneOrMore::One(Scalar::Text("x".into())),
            on: vec!["sim a".into(), "host".into()],
            each: BTreeMap::from([(
                "n".into(),
                OneOrMore::Many(vec![Scalar::Number(2), Scalar::Number(4)]),
            )]),
            value: "nr_switches[n={n}] / {n}".into(),
            published: Some(Short::Many(vec![1.5, 2.5]).into()),
            holds: "0 .. {n}".into(),
            why: String::new(),
        };
        let rows = check.rows().unwrap();
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.what.as_str(), row.place.lane, row.published.unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                ("with 2", LaneKind::Sim, 1.5),
                ("with 2", LaneKind::Host, 1.5),
                ("with 4", LaneKind::Sim, 2.5),
                ("with 4", LaneKind::Host, 2.5)
            ]
        );
        assert_eq!(rows[3].value, "nr_switches[n=4] / 4");
        let with = |text: &str| Check {
            published: Some(toml::from_str::<Published>(text).unwrap()),
            ..check.clone()
        };
        let whole =
            with("source='s'\nrow=[{where={n=4}, values=[2.5]}, {where={n=2}, values=[1.5]}]");
        assert_eq!(whole.rows().unwrap(), rows);
        let wrong = with("source='s'\nrow=[{values=[1.0, 2.0, 3.0]}]");
        assert!(wrong.rows().unwrap_err().text.contains("has 3 numbers"));
    }
}
