// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims over pairs of runs: runs of one seed in two places agree, such as a kernel and its model.
//!
//! `[claim.pairs]` sets what to compare and the tolerance, with the reason. An insensitive number
//! would agree with everything. So the claim lists wrong models that the comparison must reject
//! (`[[claim.control]]`), and settings of the model that must move the number (`[[claim.knob]]`).
//! `compare` judges them. The study decides how to make the two runs of a pair: by its
//! `[[experiment.runs]]`, or by its `[[pair]]`, from which [`crate::pairs`] makes experiments.

use super::slices::SliceRule;
use super::{Claim, Expr, Place};
use crate::axis::{OneOrMore, Scalar};
use crate::study::{ExperimentSpec, Study};
use schedlab_metrics::{Measures, TaskMeasures, Unit};
use schedlab_run::place::unknown;
use schedlab_run::{LaneKind, StudyError, values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A comparison and its tolerance.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// Description in a word or two: the heading of a column.
    pub what: String,
    /// Experiments; each is compared separately.
    pub experiment: OneOrMore,
    /// Places of the reference runs, such as `host OTHER`. With `[[pair]]`: the kernels.
    #[serde(default)]
    pub on: Vec<String>,
    /// Place of the runs that must agree with them: `sim linux-6.12`. With `[[pair]]`: the models.
    #[serde(default)]
    pub against: String,
    /// Required values of dimensions, for the runs of both places.
    #[serde(default, rename = "where")]
    pub which: BTreeMap<String, Scalar>,
    /// The number: an expression over measures of a task, or of the run.
    #[serde(default)]
    pub value: String,
    /// Whether the number belongs to each task or to the run.
    #[serde(default)]
    pub of: Of,
    /// Rule for comparing the sequence of slices on one CPU, in place of `value`.
    #[serde(default)]
    pub slices: Option<SliceRule>,
    /// The tolerance.
    pub within: Within,
    /// Floor: smaller values count as this one. A number, or a time.
    #[serde(default)]
    pub floor: Option<Scalar>,
    /// Minimum number of CPUs with which the number means anything.
    #[serde(default)]
    pub cpus_least: Option<u32>,
    /// For a shared machine: minimum CPU time of the runs `on`, as a share (0 to 1) of that of the
    /// runs `against`. Below it the comparison is inconclusive.
    #[serde(default)]
    pub cpu_time_least: Option<f64>,
    /// Reason for the tolerance.
    pub why: String,
    /// The cases to compare.
    #[serde(skip)]
    pub cases: Vec<Case>,
}

/// Whose number to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Each task's number. More than eight tasks of one description are compared as one.
    #[default]
    Tasks,
    /// The run's number.
    Run,
}

/// Greatest allowed deviation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// The difference of the two values, or the share of unequal slices.
    Difference(f64),
    /// Their difference, divided by the first value.
    Part(f64),
    /// Their quotient, at least 1.
    Factor(f64),
}

impl Default for Within {
    fn default() -> Self {
        Self::Difference(0.0)
    }
}

/// A deliberately wrong model that the comparison must reject.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The experiment.
    pub experiment: String,
    /// The model: a scheduler of the lane sim.
    pub model: String,
    /// Its tunables.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// What is wrong with it.
    pub why: String,
}

/// A setting that must move the number.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// The experiment of the runs `on`.
    pub experiment: String,
    /// The dimension: `hz`, `set.TUNABLE`, or a parameter of the workload.
    pub name: String,
    /// Its values, two or more.
    pub values: Vec<Scalar>,
    /// The experiment whose runs `against` have these values. With `[[pair]]`, schedlab makes it.
    #[serde(default)]
    pub sweep: String,
    /// With `[[pair]]`: use only these kernels' models.
    #[serde(default)]
    pub kernels: Vec<String>,
}

/// One comparison: the runs of one experiment in two places.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Name of the experiment.
    pub experiment: String,
    /// Place of the reference runs.
    pub on: Place,
    /// Place of the runs that must agree with them.
    pub against: Place,
    /// As in [`Pairs`].
    pub cpu_time_least: Option<f64>,
    /// Wrong models by their index, each with the experiment of its runs.
    pub controls: Vec<(usize, String)>,
    /// Knobs by their index, each with the experiment of its runs.
    pub knobs: Vec<(usize, String)>,
}

/// The scale of deviations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Percentage points: a difference of values from 0 to 1.
    Points,
    /// A difference.
    #[default]
    Difference,
    /// A difference divided by the first value.
    Part,
    /// A factor.
    Factor,
    /// The share of unequal slices; shown to people as the share of equal ones.
    Slices,
}

impl Scale {
    /// A deviation for people: points, percent or a factor; for slices, the share of equal ones.
    pub fn text(self, deviation: f64) -> String {
        match self {
            Self::Points => format!("{:.2} pt", deviation * 100.0),
            Self::Difference => format!("{deviation:.2}"),
            Self::Part => format!("{:.1} %", deviation * 100.0),
            Self::Slices => format!("{:.1} %", (1.0 - deviation) * 100.0),
            Self::Factor => format!("{deviation:.2}x"),
        }
    }

    /// The signed deviation of `model` from `kernel` on the averaging scale: a difference, or the
    /// logarithm of a quotient. Means over several runs use this scale.
    pub(crate) fn deviation(self, kernel: f64, model: f64) -> f64 {
        match self {
            Self::Part => model / kernel - 1.0,
            Self::Factor => (model / kernel).ln(),
            _ => model - kernel,
        }
    }

    /// A deviation on the reported scale: a factor of at least 1, or a difference without its sign.
    pub(crate) fn told(self, deviation: f64) -> f64 {
        if self == Self::Factor { deviation.abs().exp() } else { deviation.abs() }
    }

    /// Converts a reported deviation to the averaging scale.
    pub(crate) fn averaged(self, told: f64) -> f64 {
        if self == Self::Factor { told.ln() } else { told }
    }
}

/// The compared number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Number {
    /// A number of the run or of each task.
    Value(Expr, Of),
    /// The sequence of slices.
    Slices(SliceRule),
}

/// A parsed comparison: what to compare, and how.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Yardstick {
    pub number: Number,
    pub scale: Scale,
    /// Greatest allowed deviation, on the reported scale.
    pub within: f64,
    pub floor: f64,
}

impl Yardstick {
    /// Greatest allowed deviation, on the averaging scale.
    pub fn limit(&self) -> f64 {
        self.scale.averaged(self.within)
    }

    /// Whether values are times in nanoseconds.
    pub fn is_time(&self) -> bool {
        matches!(&self.number, Number::Value(expr, _) if expr.is_time())
    }
}

impl Pairs {
    /// Whether the comparison means anything with this number of CPUs.
    pub fn fits(&self, nr_cpus: u32) -> bool {
        nr_cpus >= self.cpus_least.unwrap_or(1) && (self.slices.is_none() || nr_cpus == 1)
    }

    pub(crate) fn yardstick(&self) -> Result<Yardstick, StudyError> {
        let number = match (&self.slices, self.value.is_empty()) {
            (Some(rule), true) => Number::Slices(rule.clone()),
            (None, false) => Number::Value(self.expression()?, self.of),
            _ => {
                let text = "`pairs` needs either `value` or `slices`";
                return Err(StudyError::new(text, "give the number that is compared"));
            }
        };
        let is_share = |expr: &Expr| {
            expr.measures().iter().all(|m| matches!(values::unit_of(&m.name), Unit::Ratio(_)))
        };
        let (within, scale, least) = match (self.within, &number) {
            (Within::Difference(within), Number::Slices(_)) => (within, Scale::Slices, 0.0),
            (Within::Difference(within), Number::Value(expr, _)) if is_share(expr) => {
                (within, Scale::Points, 0.0)
            }
            (Within::Difference(within), _) => (within, Scale::Difference, 0.0),
            (Within::Part(within), Number::Value(..)) => (within, Scale::Part, 0.0),
            (Within::Factor(within), Number::Value(..)) => (within, Scale::Factor, 1.0),
            (_, Number::Slices(_)) => {
                let help = "give `within = { difference = 0.05 }`: the part that is not equal";
                return Err(StudyError::new("slices have no factor", help).below("within"));
            }
        };
        if !within.is_finite() || within <= least {
            let text = format!("`within` is {within}");
            return Err(StudyError::new(text, format!("give more than {least}")).below("within"));
        }
        let floor = self.floor()?;
        if floor == 0.0 && matches!(scale, Scale::Part | Scale::Factor) {
            return Err(StudyError::new(
                format!("{:?} needs a `floor`", self.what),
                "a quotient of values near 0 says nothing: give the least value that counts",
            )
            .below("what"));
        }
        Ok(Yardstick { number, scale, within, floor })
    }

    fn expression(&self) -> Result<Expr, StudyError> {
        let wrong = |text: String, help: &str| Err(StudyError::new(text, help).below("value"));
        let expr = match Expr::parse(&self.value) {
            Ok(expr) => expr,
            Err(error) => return wrong(format!("the value {:?}: {error}", self.value), ""),
        };
        if !expr.free_variables().is_empty() || !expr.series_dimensions().is_empty() {
            return wrong(
                format!("the value {:?} is not of one run", self.value),
                "give measures, numbers and + - * / only: a pair is two runs",
            );
        }
        let known = match self.of {
            Of::Tasks => TaskMeasures::names(),
            Of::Run => values::measure_names(),
        };
        for measure in expr.measures() {
            if !measure.selectors.is_empty() {
                return wrong(
                    format!("{measure} selects runs"),
                    "a pair is two runs of one seed: select them with `where`",
                );
            }
            if !known.contains(&measure.name) {
                let names = known.iter().map(String::as_str);
                return Err(unknown("measure", &measure.name, names).below("value"));
            }
        }
        Ok(expr)
    }

    fn floor(&self) -> Result<f64, StudyError> {
        let Some(floor) = &self.floor else { return Ok(0.0) };
        match values::axis_value(&floor.to_string()) {
            Some(value) if value.number >= 0.0 => Ok(value.number),
            _ => {
                let text = format!("`floor` is {floor}");
                Err(StudyError::new(text, "give a number or a time, 0 or more").below("floor"))
            }
        }
    }

    fn check(&self) -> Result<(), StudyError> {
        self.yardstick()?;
        match self.cpu_time_least {
            Some(part) if !(0.0..=1.0).contains(&part) => {
                let text = format!("`cpu_time_least` is {part}");
                Err(StudyError::new(text, "give 0 to 1").below("cpu_time_least"))
            }
            _ => Ok(()),
        }
    }
}

impl Control {
    /// The wrong model with its tunables, for people.
    pub fn label(&self) -> String {
        let set: Vec<String> = self.set.iter().map(|(name, v)| format!("{name}={v}")).collect();
        match set.is_empty() {
            true => self.model.clone(),
            false => format!("{} {}", self.model, set.join(",")),
        }
    }
}

impl Claim {
    /// Checks the claim's pairs. `study` is the study as in the file, before experiments are made
    /// from its pairs.
    pub(super) fn check_pairs(&self, study: &Study) -> Result<(), StudyError> {
        let stray = |key: &str| {
            let text = format!("[[claim.{key}]] without [claim.pairs]");
            Err(StudyError::new(text, "say what is compared in [claim.pairs]").below(key))
        };
        let Some(pairs) = &self.pairs else {
            return match (self.controls.is_empty(), self.knobs.is_empty()) {
                (true, true) => Ok(()),
                (false, _) => stray("control"),
                (true, false) => stray("knob"),
            };
        };
        let find = |name: &str| find(name, &study.experiments);
        let inside = |error: StudyError| error.below("pairs");
        pairs.check().map_err(inside)?;
        let experiments = pairs.experiment.values();
        for name in &experiments {
            find(name).map_err(|error| inside(error.below("experiment")))?;
        }
        self.check_places(study, pairs).map_err(inside)?;
        let uses = |name: &String| match experiments.contains(name) {
            true => Ok(()),
            false => Err(StudyError::new(
                format!("experiment {name:?} is not compared"),
                "name one of `experiment` in [claim.pairs]",
            )
            .below("experiment")),
        };
        for (index, control) in self.controls.iter().enumerate() {
            uses(&control.experiment).map_err(|e| e.at(["control".into(), index.into()]))?;
        }
        for (index, knob) in self.knobs.iter().enumerate() {
            let inside = |error: StudyError| error.at(["knob".into(), index.into()]);
            uses(&knob.experiment).map_err(inside)?;
            knob.check(study).map_err(inside)?;
        }
        // Agreement alone proves nothing.
        let missing = match (self.controls.is_empty(), self.knobs.is_empty()) {
            (true, _) => "[[claim.control]]",
            (_, true) => "[[claim.knob]]",
            _ => return Ok(()),
        };
        Err(inside(StudyError::new(
            format!("claim {:?} has no {missing}", self.id),
            "a comparison counts only if it rejects a wrong model and some setting moves it",
        )))
    }

    fn check_places(&self, study: &Study, pairs: &Pairs) -> Result<(), StudyError> {
        if study.pairs.is_empty() {
            if pairs.on.is_empty() {
                let help = "name the place of the runs that others must agree with: host OTHER";
                return Err(StudyError::new("`on` is empty", help).below("on"));
            }
            pairs.places()?;
            return Ok(());
        }
        match pairs.on.is_empty() && pairs.against.is_empty() {
            true => Ok(()),
            false => Err(StudyError::new(
                "`on` or `against` is given beside [[pair]]",
                "the study's pairs say what is compared with what: drop it",
            )
            .below("on")),
        }
    }
}

impl Pairs {
    /// The places `on`, and the place `against`.
    fn places(&self) -> Result<(Vec<Place>, Place), StudyError> {
        let read = |text: &String, key: &str| {
            Place::parse(text).filter(|place| place.scheduler.is_some()).ok_or_else(|| {
                StudyError::new(
                    format!("{text:?} is no place of runs"),
                    "give a lane and a scheduler: sim linux-6.12, host OTHER, vm 6.12",
                )
                .below(key)
            })
        };
        let on: Result<Vec<Place>, StudyError> =
            self.on.iter().map(|place| read(place, "on")).collect();
        Ok((on?, read(&self.against, "against")?))
    }
}

impl Knob {
    fn check(&self, study: &Study) -> Result<(), StudyError> {
        if self.values.len() < 2 {
            let help = "one value cannot move anything";
            return Err(StudyError::new("a knob needs two values", help).below("values"));
        }
        if study.pairs.is_empty() {
            return match find(&self.sweep, &study.experiments) {
                Ok(spec) => known(&self.name, &spec.dimensions()),
                Err(error) => Err(error.below("sweep")),
            };
        }
        let kernels = || study.pairs.iter().map(|pair| pair.kernel.as_str());
        if let Some(at) = self.kernels.iter().position(|name| !kernels().any(|k| k == name)) {
            let error = unknown("kernel", &self.kernels[at], kernels());
            return Err(error.at(["kernels".into(), at.into()]));
        }
        let is_hz = |value: &Scalar| {
            crate::study::HZ.iter().any(|hz| *value == Scalar::Number((*hz).into()))
        };
        match self.name.as_str() {
            "hz" => match self.values.iter().find(|value| !is_hz(value)) {
                None => Ok(()),
                Some(value) => Err(StudyError::new(
                    format!("a value of `hz` is {value}"),
                    "allowed are 100, 250, 300 and 1000",
                )
                .below("values")),
            },
            name if name.starts_with("set.") => Ok(()),
            name => {
                let spec = find(&self.experiment, &study.experiments)?;
                let mut names = vec!["hz".to_string(), "set.TUNABLE".into()];
                names.extend(spec.parameters.keys().cloned());
                known(name, &names)
            }
        }
    }
}

fn known(name: &str, names: &[String]) -> Result<(), StudyError> {
    match names.iter().any(|known| known == name) {
        true => Ok(()),
        false => Err(unknown("knob", name, names.iter().map(String::as_str)).below("name")),
    }
}

fn find<'e>(
    name: &str,
    experiments: &'e [ExperimentSpec],
) -> Result<&'e ExperimentSpec, StudyError> {
    let names = experiments.iter().map(|spec| spec.name.as_str());
    let found = experiments.iter().find(|spec| spec.name == name);
    found.ok_or_else(|| unknown("experiment", name, names))
}

/// Adds the cases of a study without `[[pair]]`: each experiment in each place `on`.
pub(crate) fn add_cases(claims: &mut [Claim]) -> Result<(), StudyError> {
    for (index, claim) in claims.iter_mut().enumerate() {
        let Claim { pairs: Some(pairs), controls, knobs, .. } = claim else { continue };
        let places = pairs.places();
        let (on, against) =
            places.map_err(|e| e.at(["claim".into(), index.into(), "pairs".into()]))?;
        for experiment in pairs.experiment.values() {
            let controls = controls.iter().enumerate();
            let controls = controls.filter(|(_, control)| control.experiment == experiment);
            let knobs = knobs.iter().enumerate().filter(|(_, k)| k.experiment == experiment);
            let case = Case {
                experiment: experiment.clone(),
                on: Place { lane: LaneKind::Sim, scheduler: None },
                against: against.clone(),
                cpu_time_least: pairs.cpu_time_least,
                controls: controls.map(|(at, _)| (at, experiment.clone())).collect(),
                knobs: knobs.map(|(at, knob)| (at, knob.sweep.clone())).collect(),
            };
            pairs.cases.extend(on.iter().map(|on| Case { on: on.clone(), ..case.clone() }));
        }
    }
    Ok(())
}
