// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shape of a validation file (TOML), and the checks that need no machine.

use crate::axis::Scalar;
use crate::document;
use crate::study::HZ;
use schedlab_run::place::unknown;
use schedlab_run::{LaneKind, StudyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A validation: what is compared, and how far it may be apart.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Short name.
    pub name: String,
    /// Title for people.
    #[serde(default)]
    pub title: String,
    /// What it is about, for people.
    #[serde(default)]
    pub text: String,
    /// Kernels and their models.
    #[serde(rename = "pair")]
    pub pairs: Vec<Pair>,
    /// Where the kernels run.
    #[serde(rename = "lane")]
    pub lanes: Vec<LaneSpec>,
    /// What is compared, and how far it may be apart.
    #[serde(rename = "metric")]
    pub metrics: Vec<Tolerance>,
    /// What counts as a slice where slices are compared.
    pub slices: SliceRule,
    /// What runs.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
    /// Models that are wrong on purpose: the metric must reject them.
    #[serde(default, rename = "control")]
    pub controls: Vec<Control>,
    /// Settings of the model that must move a metric.
    #[serde(default, rename = "sweep")]
    pub sweeps: Vec<Sweep>,
}

/// A kernel and its model.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Series of the kernel, such as `6.12`: that of a guest, and of a host whose release begins
    /// with it.
    pub kernel: String,
    /// Model in the registry.
    pub model: String,
    /// Whether `--quick` leaves it out in guests, unless the kernel is asked for by name.
    #[serde(default)]
    pub skip_quick: bool,
}

/// Where kernels run, and the modelled machine that stands for it.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneSpec {
    /// `vm` (counted time) or `host`.
    pub name: LaneKind,
    /// The machine of the model: a preset, or `host` for a model of this machine.
    pub machine: String,
    /// Numbers of CPUs; a workload runs with each.
    pub cpus: Vec<u32>,
    /// Runs of each kernel and of its model, each pair of them with one seed. The seed draws the
    /// releases and sleeps of the workload, the same in both.
    pub repetitions: u32,
    /// On a machine that others use too: the least part of the CPU time of the model's tasks that
    /// those of the kernel must have got, 0 to 1. Below it nothing is told of the comparison.
    #[serde(default)]
    pub cpu_time_least: Option<f64>,
}

/// Fewest repetitions: what is said of a spread rests on them.
pub const REPETITIONS_MIN: u32 = 5;

/// What is compared.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU time of a task as a part of all tasks'; off by the difference.
    CpuShare,
    /// Voluntary and involuntary switches of a task; off by the difference as a part of the
    /// kernel's.
    NrSwitches,
    /// Time runnable but not running, of a task; off by a factor.
    RunDelayNs,
    /// Median from wake-up to run, of a task; off by a factor.
    WakeupLatencyNsMedian,
    /// 99th percentile of the same.
    WakeupLatencyNsP99,
    /// Moves between CPUs, of all tasks together; off by a factor. With two CPUs and more.
    NrMigrations,
    /// The sequence of slices, on one CPU; off by the part that is not equal in order and length.
    Slices,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::CpuShare,
        Self::NrSwitches,
        Self::RunDelayNs,
        Self::WakeupLatencyNsMedian,
        Self::WakeupLatencyNsP99,
        Self::NrMigrations,
        Self::Slices,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuShare => "cpu_share",
            Self::NrSwitches => "nr_switches",
            Self::RunDelayNs => "run_delay_ns",
            Self::WakeupLatencyNsMedian => "wakeup_latency_ns_median",
            Self::WakeupLatencyNsP99 => "wakeup_latency_ns_p99",
            Self::NrMigrations => "nr_migrations",
            Self::Slices => "slices",
        }
    }

    /// Its name in a table, short.
    pub const fn label(self) -> &'static str {
        match self {
            Self::CpuShare => "share",
            Self::NrSwitches => "switches",
            Self::RunDelayNs => "run delay",
            Self::WakeupLatencyNsMedian => "latency p50",
            Self::WakeupLatencyNsP99 => "latency p99",
            Self::NrMigrations => "migrations",
            Self::Slices => "slices equal",
        }
    }

    /// A deviation for people, on the scale of the metric: points, percent, a factor; of slices the
    /// part that is equal.
    pub fn deviation_text(self, value: f64) -> String {
        match self {
            Self::CpuShare => format!("{:.2} pt", value * 100.0),
            Self::NrSwitches => format!("{:.1} %", value * 100.0),
            Self::Slices => format!("{:.1} %", (1.0 - value) * 100.0),
            _ => format!("{value:.2}x"),
        }
    }

    /// Whether it is a time in nanoseconds.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::RunDelayNs | Self::WakeupLatencyNsMedian | Self::WakeupLatencyNsP99)
    }

    /// Whether `within` is the greatest factor; else it is the greatest difference.
    pub const fn is_factor(self) -> bool {
        self.is_time() || matches!(self, Self::NrMigrations)
    }

    /// Whether it says anything with so many CPUs.
    pub const fn fits(self, nr_cpus: u32) -> bool {
        match self {
            Self::Slices => nr_cpus == 1,
            Self::NrMigrations => nr_cpus > 1,
            _ => true,
        }
    }
}

/// How far a model may be off.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// The metric.
    pub name: Metric,
    /// Greatest deviation: a difference (`cpu_share`), a part (`nr_switches`, `slices`), or a
    /// factor of 1 and more (the others).
    pub within: f64,
    /// Values below count as this one: counts, or nanoseconds.
    #[serde(default)]
    pub floor: f64,
    /// Why.
    pub why: String,
}

/// What counts as a slice.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SliceRule {
    /// Two stays of one task on the CPU are one slice if no other task ran between them and they
    /// are less than this apart (ns): an interrupt, a thread of the kernel.
    pub gap_ns: u64,
    /// Shorter slices are left out (ns): what tasks do before their first and after their last
    /// work.
    pub shortest_ns: u64,
    /// Two slices are equal if they are of one task and their lengths differ by no more (ns).
    pub within_ns: u64,
}

/// A workload.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Short name.
    pub name: String,
    /// What it is, for people.
    pub text: String,
    /// What is compared.
    pub metrics: Vec<Metric>,
    /// Only in these lanes; in all if nothing is said.
    #[serde(default)]
    pub lanes: Vec<LaneKind>,
    /// Whether `--quick` leaves it out.
    #[serde(default)]
    pub skip_quick: bool,
    /// Runs of each kernel instead of the lane's, where those are too few to tell.
    #[serde(default)]
    pub repetitions: Option<u32>,
    /// Values that are put in for `{name}` in the text below; a sweep changes them.
    #[serde(default)]
    pub parameters: BTreeMap<String, Scalar>,
    /// The tasks, in the workload format (JSON).
    pub tasks: String,
}

/// A model that is wrong on purpose.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The metric that must reject it.
    pub metric: Metric,
    /// Under this workload.
    pub workload: String,
    /// The model: a name of the registry.
    pub model: String,
    /// Its tunables.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// Only in these lanes; in all if nothing is said.
    #[serde(default)]
    pub lanes: Vec<LaneKind>,
    /// What is wrong with it.
    pub why: String,
}

/// A setting that must move a metric.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The metrics that it must move.
    pub metrics: Vec<Metric>,
    /// Under this workload.
    pub workload: String,
    /// `hz`, `set.TUNABLE`, or a parameter of the workload.
    pub knob: String,
    /// Its values.
    pub values: Vec<Scalar>,
    /// Only these models; all if nothing is said.
    #[serde(default)]
    pub models: Vec<String>,
}

impl Validation {
    /// Reads a file. The error names the place, and for an unknown key the keys that exist.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let found: Self = toml::from_str(text).map_err(|error| document::from_toml(&error))?;
        found.check().map_err(|error| document::located(error, text))?;
        Ok(found)
    }

    /// Its title, or its name where it has none.
    pub fn title_or_name(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// The tolerance of a metric; `check` has seen that there is one.
    pub fn tolerance(&self, metric: Metric) -> Option<&Tolerance> {
        self.metrics.iter().find(|tolerance| tolerance.name == metric)
    }

    fn check(&self) -> Result<(), StudyError> {
        names(&self.pairs, "pair", |pair| pair.kernel.as_str())?;
        names(&self.lanes, "lane", |lane| lane.name.name())?;
        names(&self.metrics, "metric", |metric| metric.name.name())?;
        names(&self.workloads, "workload", |workload| workload.name.as_str())?;
        each(&self.lanes, "lane", LaneSpec::check)?;
        each(&self.metrics, "metric", Tolerance::check)?;
        each(&self.workloads, "workload", |workload| workload.check(self))?;
        each(&self.controls, "control", |control| {
            self.check_use(&[control.metric], &control.workload, &control.lanes)
        })?;
        each(&self.sweeps, "sweep", |sweep| {
            self.check_use(&sweep.metrics, &sweep.workload, &[])?;
            sweep.check(self)
        })?;
        self.check_controlled()
    }

    /// The workload has the metrics, and the lanes exist.
    fn check_use(
        &self,
        metrics: &[Metric],
        workload: &str,
        lanes: &[LaneKind],
    ) -> Result<(), StudyError> {
        let all = self.workloads.iter().map(|workload| workload.name.as_str());
        let Some(found) = self.workloads.iter().find(|found| found.name == workload) else {
            return Err(unknown("workload", workload, all).below("workload"));
        };
        if let Some(metric) = metrics.iter().find(|metric| !found.metrics.contains(metric)) {
            return Err(StudyError::new(
                format!("workload {workload:?} does not compare {}", metric.name()),
                "add it to the workload's `metrics`, or name another workload",
            )
            .below("workload"));
        }
        self.check_lanes(lanes)
    }

    fn check_lanes(&self, lanes: &[LaneKind]) -> Result<(), StudyError> {
        let known = self.lanes.iter().map(|lane| lane.name);
        match lanes.iter().position(|lane| !known.clone().any(|name| name == *lane)) {
            Some(at) => Err(unknown("lane", lanes[at].name(), known.map(LaneKind::name))
                .at(["lanes".into(), at.into()])),
            None => Ok(()),
        }
    }

    /// Every metric has a control and a sweep: agreement alone says nothing.
    fn check_controlled(&self) -> Result<(), StudyError> {
        for (index, metric) in self.metrics.iter().enumerate() {
            let has_control = self.controls.iter().any(|control| control.metric == metric.name);
            let has_sweep = self.sweeps.iter().any(|sweep| sweep.metrics.contains(&metric.name));
            if !has_control || !has_sweep {
                let missing = if has_control { "[[sweep]]" } else { "[[control]]" };
                return Err(StudyError::new(
                    format!("metric {} has no {missing}", metric.name.name()),
                    "a metric counts only if it rejects a wrong model and some setting moves it",
                )
                .at(["metric".into(), index.into()]));
            }
        }
        Ok(())
    }
}

/// Whether a list of names that may be left empty means this one too.
pub(super) fn means<T: PartialEq>(names: &[T], name: &T) -> bool {
    names.is_empty() || names.contains(name)
}

/// There is one, and no two have one name.
fn names<T>(list: &[T], key: &str, name: impl Fn(&T) -> &str) -> Result<(), StudyError> {
    if list.is_empty() {
        return Err(StudyError::new(format!("there is no [[{key}]]"), "give one or more"));
    }
    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let name = name(item);
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if name.is_empty() || !is_plain {
            return Err(StudyError::new(
                format!("{name:?} is no name"),
                "allowed are letters, digits, `.`, `_` and `-`",
            )
            .at([key.into(), index.into()]));
        }
        if !seen.insert(name.to_string()) {
            return Err(StudyError::new(
                format!("there are two of [[{key}]] called {name:?}"),
                "give each its own name",
            )
            .at([key.into(), index.into()]));
        }
    }
    Ok(())
}

fn each<T>(
    list: &[T],
    key: &str,
    check: impl Fn(&T) -> Result<(), StudyError>,
) -> Result<(), StudyError> {
    for (index, item) in list.iter().enumerate() {
        check(item).map_err(|error| error.at([key.into(), index.into()]))?;
    }
    Ok(())
}

impl LaneSpec {
    fn check(&self) -> Result<(), StudyError> {
        let wrong =
            |key: &str, text: String, help: &str| Err(StudyError::new(text, help).below(key));
        if self.name == LaneKind::Sim {
            let text = format!("{:?} has no kernels", self.name.name());
            return wrong("name", text, "allowed are `vm` and `host`");
        }
        if self.cpus.is_empty() || self.cpus.iter().any(|cpus| !(1..=1024).contains(cpus)) {
            let text = format!("`cpus` is {:?}", self.cpus);
            return wrong("cpus", text, "give one or more numbers from 1 to 1024");
        }
        check_repetitions(self.repetitions)?;
        match self.cpu_time_least {
            Some(part) if !(0.0..=1.0).contains(&part) => {
                wrong("cpu_time_least", format!("`cpu_time_least` is {part}"), "give 0 to 1")
            }
            _ => Ok(()),
        }
    }
}

fn check_repetitions(count: u32) -> Result<(), StudyError> {
    if count < REPETITIONS_MIN {
        return Err(StudyError::new(
            format!("`repetitions` is {count}"),
            "give 5 or more: a spread rests on them",
        )
        .below("repetitions"));
    }
    Ok(())
}

impl Tolerance {
    fn check(&self) -> Result<(), StudyError> {
        let least = if self.name.is_factor() { 1.0 } else { 0.0 };
        if !self.within.is_finite() || self.within <= least {
            return Err(StudyError::new(
                format!("`within` is {}", self.within),
                format!("{} needs more than {least}", self.name.name()),
            )
            .below("within"));
        }
        if !self.floor.is_finite() || self.floor < 0.0 {
            return Err(StudyError::new(format!("`floor` is {}", self.floor), "give 0 or more")
                .below("floor"));
        }
        let needs = self.name.is_factor() || self.name == Metric::NrSwitches;
        if needs && self.floor == 0.0 {
            return Err(StudyError::new(
                format!("{} needs a `floor`", self.name.name()),
                "a quotient of values near 0 says nothing: give the least value that counts",
            )
            .below("name"));
        }
        Ok(())
    }
}

impl WorkloadSpec {
    fn check(&self, all: &Validation) -> Result<(), StudyError> {
        if self.metrics.is_empty() {
            return Err(StudyError::new("`metrics` is empty", "name one or more").below("metrics"));
        }
        if let Some(at) = self.metrics.iter().position(|name| all.tolerance(*name).is_none()) {
            let known = all.metrics.iter().map(|tolerance| tolerance.name.name());
            return Err(unknown("[[metric]]", self.metrics[at].name(), known)
                .at(["metrics".into(), at.into()]));
        }
        self.repetitions.map_or(Ok(()), check_repetitions)?;
        all.check_lanes(&self.lanes)
    }
}

impl Sweep {
    /// Least number of values: fewer move nothing.
    const VALUES_MIN: usize = 2;

    fn check(&self, all: &Validation) -> Result<(), StudyError> {
        if self.values.len() < Self::VALUES_MIN || self.metrics.is_empty() {
            return Err(StudyError::new(
                "a sweep needs metrics and two values or more",
                "one value cannot move anything",
            )
            .below("values"));
        }
        let workload = all.workloads.iter().find(|workload| workload.name == self.workload);
        let parameters = workload.map(|workload| &workload.parameters);
        let is_known = self.knob == "hz"
            || self.knob.starts_with("set.")
            || parameters.is_some_and(|parameters| parameters.contains_key(&self.knob));
        if !is_known {
            let own = parameters.into_iter().flat_map(|parameters| parameters.keys());
            let mut known: Vec<&str> = vec!["hz", "set.TUNABLE"];
            known.extend(own.map(String::as_str));
            return Err(unknown("knob", &self.knob, known.into_iter()).below("knob"));
        }
        let is_hz = |value: &Scalar| HZ.iter().any(|hz| *value == Scalar::Number((*hz).into()));
        if let Some(value) = self.values.iter().find(|value| self.knob == "hz" && !is_hz(value)) {
            return Err(StudyError::new(
                format!("a value of `hz` is {value}"),
                "allowed are 100, 250, 300 and 1000",
            )
            .below("values"));
        }
        let models = all.pairs.iter().map(|pair| pair.model.as_str());
        match self.models.iter().position(|model| !models.clone().any(|known| known == model)) {
            Some(at) => {
                Err(unknown("model", &self.models[at], models).at(["models".into(), at.into()]))
            }
            None => Ok(()),
        }
    }
}
