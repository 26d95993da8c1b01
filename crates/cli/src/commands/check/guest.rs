// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases on real kernels in guests with counted time: `schedlab check 6.18 --lane vm`.
//!
//! Each run starts from a snapshot of the booted guest. The rules of the trace judge it. Threads of
//! the kernel and of the recorder share the guest's CPU, so rules get a tolerance. A breach counts
//! if another run of the same case breaks the same rule.

use super::finding::Found;
use super::place::{Pace, Place, write_trace};
use super::recipe::Recipe;
use crate::args::ScxArgs;
use crate::commands::vm;
use crate::error::{CliError, CliResult};
use crate::input;
use crate::output::say;
use crate::schedulers::is_source;
use schedlab_check::{Breach, Case, Feature, Features, Judge, Rule, Shape, Subject, Verdict, rule};
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{CpuMask, KernelVersion, Nanos};
use schedlab_run::{Lane, LaneError, LaneKind, RunRequest};
use schedlab_sched::registry::{self, kernels_around};
use schedlab_sched::{Scheduler, SourceDigest};
use schedlab_vm::VmLane;
use schedlab_vm::lane::{Options, Target};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What threads outside of the workload may take at once: the launcher, the recorder, threads of
/// the kernel, and the costs of a CPU that runs 125 million instructions a second. CPUs of a guest
/// take turns, so several take as much longer.
const OUTSIDE_NS: Nanos = 10 * MS;

/// Longest run.
const DURATION_NS_MAX: Nanos = 400 * MS;

/// Most steps of a run: a guest takes some 30 us for each.
const STEPS_MAX: u64 = 2_000;

/// First kernel with custom slices.
const FIRST_SLICES: KernelVersion = KernelVersion::release(6, 12, 0);

/// Features that guests of one or a few CPUs do not have: another tick, another topology, costs of
/// a model, a device. A crowd of pinned tasks needs several CPUs.
const LEFT_OUT: [Feature; 6] = [
    Feature::Topology,
    Feature::Hz,
    Feature::Costs,
    Feature::Io,
    Feature::Crowds,
    // A release may lack a tunable of the model that is near.
    Feature::Tunes,
];

/// The lane of the guests.
pub struct Guests {
    lane: Arc<VmLane>,
}

impl Guests {
    /// The lane with the user's cache.
    pub fn new(scx: &ScxArgs) -> CliResult<Self> {
        let options = Options {
            source: scx.options_without_setup()?,
            // What breaks a rule is repeated here.
            is_compared: false,
            ..Options::default()
        };
        let lane = vm::lane_with(options)?;
        Ok(Self { lane: Arc::new(lane) })
    }

    /// The place of the kernel `name`: a series, an image, or one of them with a scheduler for
    /// sched_ext (`6.18:rr`).
    pub fn place(
        &self,
        name: &str,
        tunables: &[String],
        judges_limits: bool,
    ) -> CliResult<InGuest> {
        let target = Target::parse(name);
        let release = self.lane.kernel(target.kernel).map_err(LaneError::from)?.release;
        let version = version_of(&release).ok_or_else(|| {
            CliError::usage(format!("kernel {name}: its release {release:?} has no version"))
        })?;
        let hz = self.lane.hz(target.kernel)?;
        let model = model(version)?;
        let scheduler = Scheduler {
            name: format!("linux-{version}").into(),
            digest: target.scheduler.map(|name| SourceDigest::SchedExt(name.to_owned())),
            ..(*model).clone()
        };
        let subject = Subject { judges_limits, ..Subject::new(Arc::new(scheduler)) };
        Ok(InGuest {
            lane: Arc::clone(&self.lane),
            name: name.to_owned(),
            tunables: input::pairs("--set", tunables)?,
            subject,
            model: match target.scheduler {
                None => Some(model.name.to_string()),
                Some(scheduler) => is_source(scheduler).then(|| scheduler.to_owned()),
            },
            version,
            hz,
            failure: Mutex::default(),
        })
    }
}

/// The version at the start of a release, such as 6.18.15 of `6.18.15+deb13-cloud-amd64`.
fn version_of(release: &str) -> Option<KernelVersion> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let end = release.find(|c| !is_number(c)).unwrap_or(release.len());
    let numbers: Vec<&str> = release[..end].split('.').filter(|part| !part.is_empty()).collect();
    numbers.get(..numbers.len().min(3))?.join(".").parse().ok()
}

/// The model of a kernel, or else that of its series, or of the kernel before it.
fn model(version: KernelVersion) -> CliResult<Arc<Scheduler>> {
    let name = format!("linux-{version}");
    let series: Vec<&str> = name.split('.').take(2).collect();
    let of_series = || registry::find(&series.join("."));
    let near = || kernels_around(&name)?.into_iter().flatten().find_map(registry::find);
    registry::find(&name).or_else(of_series).or_else(near).cloned().ok_or_else(|| {
        CliError::usage(format!("kernel {version}: no model is near, so no rule is known to hold"))
    })
}

/// A kernel in guests.
pub struct InGuest {
    lane: Arc<VmLane>,
    /// Kernel and scheduler, as named by the user.
    name: String,
    tunables: Vec<(String, String)>,
    subject: Subject,
    /// What explains its choices in the simulator.
    model: Option<String>,
    version: KernelVersion,
    hz: u32,
    /// Why no guest can be run.
    failure: Mutex<Option<LaneError>>,
}

impl InGuest {
    /// Without these rules.
    pub fn skipping(mut self, rules: &[&'static str]) -> Self {
        self.subject.skipped = rules.to_vec();
        self
    }

    /// Its lane.
    pub fn lane(&self) -> &dyn Lane {
        &*self.lane
    }

    /// Kernel and scheduler, as the lane calls them.
    pub fn kernel(&self) -> &str {
        &self.name
    }

    /// Ticks a second of the kernel.
    pub fn hz(&self) -> u32 {
        self.hz
    }

    fn request(&self, case: &Case) -> RunRequest {
        let cpus = CpuMask::first(case.machine.nr_cpus());
        RunRequest {
            tunables: self.tunables.clone(),
            seed: case.seed,
            ..RunRequest::new(case.workload.clone(), self.name.as_str(), cpus)
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<LaneError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One run of a case, judged.
    fn play(&self, case: &Case) -> Verdict {
        if let Some(error) = &*self.locked() {
            return Verdict::Refused(error.text().to_owned());
        }
        let outside_ns = OUTSIDE_NS * u64::from(case.machine.nr_cpus());
        let subject = Subject { outside_ns, ..self.subject.clone() };
        let mut judge = Judge::new(case, &subject);
        match self.lane.run(&self.request(case), &mut judge) {
            Ok(_) => judge.finish().map_or(Verdict::Passed, Verdict::Broken),
            Err(LaneError::Input(why)) => Verdict::Refused(why),
            // The kernel has ejected the scheduler.
            Err(LaneError::Check(why)) => failed(&why),
            Err(error) => {
                let why = error.text().to_owned();
                self.locked().get_or_insert(error);
                Verdict::Refused(why)
            }
        }
    }

    /// Plays a case, and plays it again if it breaks a rule.
    fn play_checked(&self, case: &Case) -> Verdict {
        let breach = match self.play(case) {
            Verdict::Broken(breach) => breach,
            verdict => return verdict,
        };
        match self.play(case) {
            Verdict::Broken(again) if again.is_like(&breach) => Verdict::Broken(breach),
            _ => {
                say(format!(
                    "warning: {} broke rule {} once, but not when it was repeated",
                    case.workload.name, breach.rule.name
                ));
                Verdict::Passed
            }
        }
    }
}

impl Place for InGuest {
    fn target(&self) -> (LaneKind, &str) {
        (LaneKind::Vm, &self.name)
    }

    fn tunables(&self) -> &[(String, String)] {
        &self.tunables
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn shape(&self) -> Shape {
        let own = self.subject.shape();
        let mut features = LEFT_OUT.into_iter().fold(own.features, Features::without);
        if self.version < FIRST_SLICES {
            features = features.without(Feature::Slices);
        }
        Shape {
            features,
            cpus_max: 1,
            duration_ns_max: DURATION_NS_MAX,
            steps_max: STEPS_MAX,
            ..own
        }
    }

    fn pace(&self) -> Pace {
        Pace { batch: 4, shrink_runs_max: 150 }
    }

    /// The case with the tick of the guest.
    fn fit(&self, case: &Case) -> Case {
        let mut case = case.clone();
        case.machine.hz = self.hz;
        schedlab_check::inherit(&mut case.workload.tasks);
        case
    }

    fn check(&self, case: &Case) -> Verdict {
        self.play_checked(&self.fit(case))
    }

    fn check_rule(&self, case: &Case, _rule: &'static Rule) -> Verdict {
        self.play_checked(&self.fit(case))
    }

    fn failure(&self) -> CliResult<()> {
        match self.locked().take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn record(&self, _: &Recipe, found: &Found, trace: &Path, _: &Path) -> CliResult<()> {
        write_trace(&*self.lane, &self.request(&found.case), &found.case, trace)
    }
}

/// A run in which a check of the lane failed.
fn failed(why: &str) -> Verdict {
    let rule = rule("answers").expect("the table has the rule");
    let first = why.lines().next().unwrap_or_default();
    let text = first.trim_end_matches("; the kernel logged:").to_owned();
    Verdict::Broken(Breach { rule, kind: "failed", time_ns: 0, cpu: None, task: None, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_version() {
        for (release, version) in [
            ("6.18.15+deb13-cloud-amd64", Some(KernelVersion::release(6, 18, 15))),
            ("6.1.0-56-cloud-amd64", Some(KernelVersion::release(6, 1, 0))),
            ("7.3.0-rc1", Some(KernelVersion::release(7, 3, 0))),
            ("7.3-rc1", Some(KernelVersion::series(7, 3))),
            ("", None),
            ("next-20261101", None),
        ] {
            assert_eq!(version_of(release), version, "{release}");
        }
    }

    #[test]
    fn every_kernel_with_an_image_has_a_model_near() {
        for kernel in schedlab_model::kernel::KERNELS.iter().filter(|one| one.image.is_some()) {
            assert!(model(kernel.version).is_ok(), "{}", kernel.version);
        }
        let name =
            |minor, patch| model(KernelVersion::release(6, minor, patch)).unwrap().name.clone();
        let found =
            [(1, 0), (12, 117), (17, 13), (18, 15)].map(|(minor, patch)| name(minor, patch));
        assert_eq!(found, ["linux-6.1", "linux-6.12", "linux-6.12", "linux-6.18.44"]);
    }
}
