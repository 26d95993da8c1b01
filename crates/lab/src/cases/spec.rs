// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of generated cases, as a study lists them: a seed is a case.

use super::features::features;
use crate::axis::Seeds;
use crate::claims::{Pairs, Within};
use crate::study::Shift;
use schedlab_check::{Case, Feature, Features, Shape, generate};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_USEC};
use schedlab_model::{Amount, KernelVersion, Release};
use schedlab_run::{LaneKind, StudyError};
use schedlab_workload::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The half of a set.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// The cases that people look into while they change a model.
    Development,
    /// The cases that only give a figure.
    HeldOut,
}

impl Half {
    /// Its name in output and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::HeldOut => "held-out",
        }
    }
}

/// A set of random workloads, made by the generator of `schedlab check`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseSet {
    /// Short name.
    pub name: String,
    /// Description, for people.
    #[serde(default)]
    pub text: String,
    /// The machine of the models: a preset.
    pub machine: String,
    /// Greatest number of CPUs. With 2 or more, every case must have at least 2.
    #[serde(default = "one")]
    pub cpus: u32,
    /// Shortest run, sleep and period of a task, such as `100us`, up to `10ms`.
    #[serde(default = "step")]
    pub step: String,
    /// Longest run, such as `1s`.
    pub duration: String,
    /// Shortest run, if `steps` allows it.
    #[serde(default = "none")]
    pub duration_least: String,
    /// About how many steps all tasks of a case may take.
    #[serde(default = "steps")]
    pub steps: u64,
    /// Runs of each kernel and model with shifted starts. Longer switches are only for kernels.
    pub shift: Shift,
    /// How many cases of a half the quick form has, the first ones; `None`: all.
    #[serde(default)]
    pub quick: Option<u32>,
    /// Seeds of the cases that people look into while they change a model.
    pub development: Seeds,
    /// Seeds of the cases that only give a figure.
    pub held_out: Seeds,
}

const fn one() -> u32 {
    1
}

const fn steps() -> u64 {
    2_000
}

fn step() -> String {
    "1us".into()
}

fn none() -> String {
    "0s".into()
}

/// A number that is compared in every case, with its tolerance.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// Description in a word or two: the heading of a column.
    pub what: String,
    /// The number: an expression over measures of a task, or of the run.
    pub value: String,
    /// Whether the number belongs to each task or to the run.
    #[serde(default)]
    pub of: crate::claims::Of,
    /// The tolerance.
    pub within: Within,
    /// Floor: smaller values count as this one. A number, or a time.
    #[serde(default)]
    pub floor: Option<crate::axis::Scalar>,
    /// Minimum number of CPUs with which the number means anything.
    #[serde(default)]
    pub cpus_least: Option<u32>,
    /// Reason for the tolerance.
    pub why: String,
}

impl MeasureSpec {
    pub(super) fn pairs(&self) -> Pairs {
        Pairs {
            what: self.what.clone(),
            value: self.value.clone(),
            of: self.of,
            within: self.within,
            floor: self.floor.clone(),
            cpus_least: self.cpus_least,
            why: self.why.clone(),
            ..Pairs::default()
        }
    }
}

/// A case of a set: what is run, and what is said about it.
#[derive(Clone, PartialEq, Debug)]
pub struct SetCase {
    /// Name of the set.
    pub set: String,
    /// The half.
    pub half: Half,
    /// The seed.
    pub seed: u64,
    /// Number of CPUs.
    pub nr_cpus: u32,
    /// Features of the workload.
    pub features: Vec<String>,
    /// The workload as a file.
    pub text: String,
}

/// First kernel with custom slices.
const FIRST_SLICES: KernelVersion = KernelVersion::release(6, 12, 0);

impl SetCase {
    /// Name of the experiment with the runs of the case on the kernels of this lane.
    pub fn experiment(&self, lane: LaneKind) -> String {
        match lane {
            LaneKind::Vm => format!("{} {}", self.set, self.seed),
            other => format!("{} {} {other}", self.set, self.seed),
        }
    }

    /// Whether a kernel has every feature of the case. Before 6.12 there are no custom slices.
    pub fn is_for(&self, kernel: &str) -> bool {
        let has_slices = self.features.iter().any(|name| name == "slices");
        !has_slices || kernel.parse::<KernelVersion>().is_ok_and(|version| version >= FIRST_SLICES)
    }
}

/// Features that guests do not have: another tick, another topology, costs of a model, a device.
/// A crowd of pinned tasks takes too many steps; a release may lack a tunable.
const LEFT_OUT: [Feature; 6] =
    [Feature::Topology, Feature::Hz, Feature::Costs, Feature::Io, Feature::Crowds, Feature::Tunes];

impl CaseSet {
    pub(crate) fn check(&self) -> Result<(), StudyError> {
        self.shape()?;
        if !(1..=8).contains(&self.cpus) {
            let text = format!("`cpus` is {}", self.cpus);
            return Err(StudyError::new(text, "allowed are 1 to 8").below("cpus"));
        }
        self.shift.check(LaneKind::Vm).map_err(|error| error.below("shift"))?;
        if self.quick == Some(0) {
            return Err(StudyError::new("`quick` is 0", "give 1 or more cases").below("quick"));
        }
        let both = [Half::Development, Half::HeldOut].map(|half| self.seeds(half));
        let [development, held_out] = both;
        let development = development?;
        match held_out?.iter().find(|seed| development.contains(seed)) {
            None => Ok(()),
            Some(seed) => Err(StudyError::new(
                format!("seed {seed} is in both halves"),
                "a case that people look into gives no figure: name it in one half only",
            )
            .below("held_out")),
        }
    }

    fn seeds(&self, half: Half) -> Result<Vec<u64>, StudyError> {
        let (seeds, key) = match half {
            Half::Development => (&self.development, "development"),
            Half::HeldOut => (&self.held_out, "held_out"),
        };
        seeds.values().map_err(|error| error.below(key))
    }

    fn shape(&self) -> Result<Shape, StudyError> {
        let time = |text: &str, key: &'static str| {
            units::parse_duration(text)
                .map_err(|error| StudyError::new(format!("`{key}`: {error}"), "").below(key))
        };
        let time_ns_min = time(&self.step, "step")?;
        if !(NSEC_PER_USEC..=10 * NSEC_PER_MSEC).contains(&time_ns_min) {
            let text = format!("`step` is {}", self.step);
            return Err(StudyError::new(text, "allowed are 1us to 10ms").below("step"));
        }
        let mut features = LEFT_OUT.into_iter().fold(Features::ALL, Features::without);
        if self.cpus == 1 {
            for feature in [Feature::Smp, Feature::Affinity, Feature::Cpusets] {
                features = features.without(feature);
            }
        }
        Ok(Shape {
            features,
            cpus_max: self.cpus,
            time_ns_min,
            duration_ns_min: time(&self.duration_least, "duration_least")?,
            duration_ns_max: time(&self.duration, "duration")?,
            steps_max: self.steps,
            deadline_is_rare: false,
            ..Shape::default()
        })
    }

    /// The cases of one half.
    ///
    /// # Errors
    /// A seed gives a case of one CPU in a set for several.
    pub fn cases(&self, half: Half) -> Result<Vec<SetCase>, StudyError> {
        let shape = self.shape()?;
        let case = |seed: u64| -> Result<SetCase, StudyError> {
            let case = fit(generate(&shape, seed));
            let nr_cpus = case.machine.nr_cpus();
            if self.cpus > 1 && nr_cpus == 1 {
                let text = format!("the case of seed {seed} has one CPU");
                let help = format!("set {:?} is for several: leave the seed out", self.name);
                return Err(StudyError::new(text, help).below("name"));
            }
            Ok(SetCase {
                set: self.name.clone(),
                half,
                seed,
                nr_cpus,
                features: features(&case.workload, nr_cpus),
                text: schedlab_workload::write_rtapp_short(&case.workload),
            })
        };
        self.seeds(half)?.into_iter().map(case).collect()
    }
}

/// The case as kernels and models play it alike. The launcher of a real run wakes tasks that exist
/// and sleep, so models see a wake-up too. A forked task has the attributes of its parent, because
/// a real one sets its own some time after the fork.
fn fit(mut case: Case) -> Case {
    for task in &mut case.workload.tasks {
        task.release = Release::Wakeup;
        // A start without a greatest value cannot be shifted.
        if let Amount::Exponential { mean } = task.release_ns {
            task.release_ns = Amount::Uniform { low: 0, high: 2 * mean };
        }
    }
    schedlab_check::inherit(&mut case.workload.tasks);
    case
}
