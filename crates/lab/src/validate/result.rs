// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a validation gives: what `validate --json` prints and the report shows.

use super::file::Metric;
use super::slices::Equal;
use crate::claims::Reason;
use schedlab_run::LaneKind;
use schemars::JsonSchema;
use serde::Serialize;

/// What is said of a metric.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every deviation, with its whole interval, is within the tolerance.
    Within,
    /// A deviation is outside with its whole interval.
    Outside,
    /// The tolerance lies in an interval, or something disturbed the runs.
    Inconclusive,
    /// The metric accepts a wrong model, or nothing moves it: agreement says nothing.
    DoesNotDiscriminate,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Within, Self::Outside, Self::Inconclusive, Self::DoesNotDiscriminate];

    /// Its words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Outside => "OUTSIDE",
            Self::Inconclusive => "inconclusive",
            Self::DoesNotDiscriminate => "does not discriminate",
        }
    }
}

/// One task, or all of one description, in the kernel and in the model.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct UnitResult {
    /// Task, `child-*` for all of one description, or `all tasks`.
    pub unit: String,
    /// Mean over the runs of the kernel.
    pub kernel: f64,
    /// Mean over the runs of the model.
    pub model: f64,
    /// Mean deviation of the model from the kernel, seed by seed: a factor of 1 and more
    /// (`run_delay_ns`, latencies, migrations), or a difference (`cpu_share`), or a part of the
    /// kernel's value (`nr_switches`), or the part that is not equal (`slices`).
    pub deviation: f64,
    /// Ends of its 95 % interval; equal where nothing varied.
    pub ci95: [f64; 2],
}

/// A metric of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct MetricResult {
    /// The metric.
    pub metric: Metric,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why it is inconclusive, or does not discriminate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<Reason>,
    /// Greatest deviation that is allowed.
    pub within: f64,
    /// By task, the one that is farthest off first.
    pub units: Vec<UnitResult>,
    /// Of slices: how many are equal, run by run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Equal>,
}

/// A workload under a kernel and under its model.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// `vm` or `host`.
    pub lane: LaneKind,
    /// Series of the kernel.
    pub kernel: String,
    /// Its release.
    pub release: String,
    /// The model.
    pub model: String,
    /// The workload.
    pub workload: String,
    /// CPUs.
    pub nr_cpus: u32,
    /// Pairs of runs that were compared.
    pub nr_runs: u64,
    /// Metrics, in the order of the file.
    pub metrics: Vec<MetricResult>,
}

/// A model that is wrong on purpose.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ControlResult {
    /// The metric that must reject it.
    pub metric: Metric,
    /// `vm` or `host`.
    pub lane: LaneKind,
    /// CPUs.
    pub nr_cpus: u32,
    /// Series of the kernel that it is compared with.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// The wrong model, with its tunables.
    pub model: String,
    /// What is wrong with it.
    pub why: String,
    /// Its greatest deviation.
    pub deviation: f64,
    /// Whether it is rejected: outside with its whole interval.
    pub is_rejected: bool,
}

/// A value of a knob.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SweepPoint {
    /// The value.
    pub value: String,
    /// Greatest deviation from the kernel with it.
    pub deviation: f64,
}

/// How a setting of the model moves a metric.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SweepResult {
    /// The metric.
    pub metric: Metric,
    /// `vm` or `host`.
    pub lane: LaneKind,
    /// CPUs.
    pub nr_cpus: u32,
    /// Series of the kernel that the model is compared with.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// The knob.
    pub knob: String,
    /// Its values.
    pub points: Vec<SweepPoint>,
    /// Whether the deviations of two values differ by more than the tolerance.
    pub moves: bool,
}

/// A whole validation.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ValidationResult {
    /// Name of the validation.
    pub name: String,
    /// schedlab's version.
    pub schedlab_version: String,
    /// What was compared.
    pub comparisons: Vec<Comparison>,
    /// Wrong models.
    pub controls: Vec<ControlResult>,
    /// Knobs.
    pub sweeps: Vec<SweepResult>,
    /// What was not compared, and why.
    pub missing: Vec<String>,
}

impl MetricResult {
    /// By how much the unit that is farthest off differs, for people.
    pub fn worst_text(&self) -> Option<String> {
        self.units.first().map(|unit| self.metric.deviation_text(unit.deviation))
    }

    /// The verdict and its reason, for people: `inconclusive: no task has such a value`.
    pub fn verdict_text(&self) -> String {
        let verdict = self.verdict.text().to_lowercase();
        match &self.reason {
            None => verdict,
            Some(why) => format!("{verdict}: {why}"),
        }
    }
}

impl SweepResult {
    /// The deviation at each value, for people: `100: 3.1 %, 250: 0.2 %`.
    pub fn points_text(&self) -> String {
        let point = |point: &SweepPoint| {
            format!("{}: {}", point.value, self.metric.deviation_text(point.deviation))
        };
        self.points.iter().map(point).collect::<Vec<_>>().join(", ")
    }
}

impl ValidationResult {
    /// The metrics that any comparison has.
    pub fn metrics(&self) -> Vec<Metric> {
        let found = || self.comparisons.iter().flat_map(|comparison| &comparison.metrics);
        let has = |metric: &Metric| found().any(|found| found.metric == *metric);
        Metric::ALL.into_iter().filter(has).collect()
    }

    /// How many metrics have each verdict, for people.
    pub fn verdicts_text(&self) -> String {
        let of = |verdict: Verdict| {
            format!("{} {}", self.with(verdict).len(), verdict.text().to_lowercase())
        };
        Verdict::ALL.map(of).join(", ")
    }

    /// How many wrong models are rejected.
    pub fn nr_rejected(&self) -> usize {
        self.controls.iter().filter(|control| control.is_rejected).count()
    }

    /// How many knobs move their metric.
    pub fn nr_moving(&self) -> usize {
        self.sweeps.iter().filter(|sweep| sweep.moves).count()
    }

    /// Metrics with this verdict, each as `workload under 6.12 (vm, 1 CPU): slices`.
    pub fn with(&self, verdict: Verdict) -> Vec<String> {
        let mut names = Vec::new();
        for comparison in &self.comparisons {
            for metric in comparison.metrics.iter().filter(|found| found.verdict == verdict) {
                names.push(format!("{}: {}", comparison.label(), metric.metric.name()));
            }
        }
        names
    }
}

impl Comparison {
    /// For people: `hogs under 6.12 (vm, 1 CPU)`.
    pub fn label(&self) -> String {
        let cpus = if self.nr_cpus == 1 { "CPU" } else { "CPUs" };
        format!("{} under {} ({}, {} {cpus})", self.workload, self.kernel, self.lane, self.nr_cpus)
    }
}
