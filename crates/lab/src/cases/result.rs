// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far models and kernels agree on cases, in numbers.

use super::{Cause, Half};
use crate::claims::Scale;
use schedlab_run::LaneKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of a comparison, best first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every task deviates by the tolerance at most.
    #[default]
    Within,
    /// Every task deviates by the tolerance at most, or by what shifted starts change in a kernel.
    ByVariation,
    /// As above, or by what longer switches change in the kernel.
    BySwitches,
    /// A task deviates by more.
    Outside,
}

/// How many comparisons have each outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Within the tolerance.
    pub within: u32,
    /// Only within what shifted starts change in the kernel.
    pub by_variation: u32,
    /// Only within what shifted starts and longer switches change in the kernel.
    #[serde(default)]
    pub by_switches: u32,
    /// Outside both.
    pub outside: u32,
}

impl Counts {
    /// Adds a comparison.
    pub fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Within => &mut self.within,
            Outcome::ByVariation => &mut self.by_variation,
            Outcome::BySwitches => &mut self.by_switches,
            Outcome::Outside => &mut self.outside,
        } += 1;
    }

    /// Number of comparisons.
    pub const fn nr(self) -> u32 {
        self.within + self.by_variation + self.by_switches + self.outside
    }

    /// The share within the tolerance or the kernel's own variation, in percent.
    pub fn percent(self) -> Option<f64> {
        self.share(self.nr() - self.outside)
    }

    /// The share within the tolerance, or within what shifted starts change, in percent.
    pub fn percent_shifted(self) -> Option<f64> {
        self.share(self.within + self.by_variation)
    }

    /// The share within the tolerance alone, in percent.
    pub fn percent_within(self) -> Option<f64> {
        self.share(self.within)
    }

    fn share(self, part: u32) -> Option<f64> {
        (self.nr() > 0).then(|| 100.0 * f64::from(part) / f64::from(self.nr()))
    }
}

/// The comparisons of a kernel with its model.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// All of them.
    pub all: Counts,
    /// By measure.
    pub measures: BTreeMap<String, Counts>,
    /// By feature of the case. A case counts for each of its features.
    pub features: BTreeMap<String, FeatureCounts>,
}

/// The comparisons of cases with one feature.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FeatureCounts {
    /// Number of cases.
    pub nr_cases: u32,
    /// Their comparisons.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Figures {
    /// Counts a case.
    pub fn count_case(&mut self, features: &[String]) {
        for feature in features {
            self.features.entry(feature.clone()).or_default().nr_cases += 1;
        }
    }

    /// Counts a comparison.
    pub fn count(&mut self, measure: &str, features: &[String], outcome: Outcome) {
        self.all.add(outcome);
        self.measures.entry(measure.into()).or_default().add(outcome);
        for feature in features {
            self.features.entry(feature.clone()).or_default().counts.add(outcome);
        }
    }
}

/// A comparison, with the task that deviates most.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Seed of the case.
    pub seed: u64,
    /// The measure.
    pub measure: String,
    /// The task: `a/2` is the one with the second least value of those called `a`.
    pub unit: String,
    /// Its value in the kernel: the median of its runs.
    pub on: f64,
    /// Its value in the model: the median of its runs.
    pub against: f64,
    /// Their deviation.
    pub deviation: f64,
    /// The kernel's own variation.
    pub variation: f64,
    /// The scale of both.
    pub scale: Scale,
    /// Why it is outside, if it is and that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// How many changes of the model's costs by microseconds bring it inside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nr_changes: u32,
    /// The outcome.
    #[serde(skip)]
    pub outcome: Outcome,
}

const fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Comparison {
    /// The comparison, of this case and measure.
    pub(super) fn of(self, seed: u64, measure: &str) -> Self {
        Self { seed, measure: measure.into(), ..self }
    }
}

/// How exact a measure is: medians over the cases, each of the task that deviates most.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Typical {
    /// Deviation of the model.
    pub deviation: f64,
    /// The kernel's own variation.
    pub variation: f64,
    /// The scale of both.
    pub scale: Scale,
}

impl Typical {
    /// `3.1 % (1.2 %)`: the deviation and, in brackets, the variation.
    pub fn text(&self) -> String {
        format!("{} ({})", self.scale.text(self.deviation), self.scale.text(self.variation))
    }
}

const fn vm() -> LaneKind {
    LaneKind::Vm
}

/// A set of cases under one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KernelAgreement {
    /// The set.
    pub set: String,
    /// Its half.
    pub half: Half,
    /// Where the kernel ran.
    #[serde(default = "vm")]
    pub lane: LaneKind,
    /// Series of the kernel.
    pub kernel: String,
    /// Its release.
    pub release: String,
    /// The model.
    pub model: String,
    /// A model that is wrong on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// Number of cases that the kernel can run.
    pub nr_cases: u32,
    /// Number of the kernel's runs.
    #[serde(default)]
    pub nr_runs: u32,
    /// Number of these that other programs or the hypervisor disturbed.
    #[serde(default)]
    pub nr_disturbed: u32,
    /// The model against the kernel.
    pub figures: Figures,
    /// How exact each measure is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub typical: BTreeMap<String, Typical>,
    /// The kernel against itself: what a perfect model would reach.
    pub kernel_itself: Counts,
    /// The wrong model against the kernel.
    pub wrong_model: Counts,
    /// The comparisons outside.
    pub outside: Vec<Comparison>,
    /// Those of the wrong model.
    #[serde(skip)]
    pub wrong_outside: Vec<Comparison>,
    /// How many of those a change by microseconds brings inside, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_wrong_caused: Option<u32>,
}

/// A case without a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// The set.
    pub set: String,
    /// Seed of the case.
    pub seed: u64,
    /// Where the kernel should have run.
    #[serde(default = "vm")]
    pub lane: LaneKind,
    /// The kernel.
    pub kernel: String,
    /// Why.
    pub why: String,
}

/// How far models and kernels agree on the cases of a study.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// By set and kernel.
    pub kernels: Vec<KernelAgreement>,
    /// Cases that could not be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
}

impl Agreement {
    /// Replaces what `other` has too, and adds the rest. The order is by set, half, lane, kernel.
    pub fn merge(&mut self, other: Self) {
        let key = |one: &KernelAgreement| (one.set.clone(), one.half, one.lane, one.kernel.clone());
        let renewed: Vec<_> = other.kernels.iter().map(key).collect();
        self.kernels.retain(|one| !renewed.contains(&key(one)));
        self.kernels.extend(other.kernels);
        self.kernels.sort_by_key(|one| {
            let version = one.kernel.parse::<schedlab_model::KernelVersion>().ok();
            // Guests first.
            let is_here = one.lane != LaneKind::Vm;
            (one.set.clone(), one.half, is_here, version, one.kernel.clone())
        });
    }
}
