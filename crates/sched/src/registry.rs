// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only list of schedulers. A new scheduler is one file and one line here.

use crate::boundary::class::SchedClass;
use crate::boundary::options::{Options, Tunable};
use schedlab_model::{CgroupSpec, Machine};

/// What a scheduler promises; the conformance suite holds it to that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claims {
    /// No CPU stays idle while a task that may use it waits.
    pub work_conserving: bool,
    /// Every runnable task of equal importance runs again within bounded time.
    pub starvation_free: bool,
    /// Equal CPU hogs on one CPU get equal shares.
    pub fair: bool,
    /// It must be told the length of CPU bursts in advance.
    pub needs_burst: bool,
}

/// Makes a stack of classes, highest priority first.
pub type Build = fn(&Options, &Machine, &[CgroupSpec]) -> Vec<Box<dyn SchedClass>>;

/// A scheduler's entry.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerInfo {
    /// Name: what it is faithful to.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Where its rules come from.
    pub source: &'static str,
    /// What it leaves out or simplifies.
    pub leaves_out: &'static str,
    /// What it promises.
    pub claims: Claims,
    /// Its tunables.
    pub tunables: &'static [Tunable],
    /// Makes its stack of classes, highest priority first.
    pub build: Build,
}

/// A stack of classes for one run, or why there is none.
pub type MadeStack = Result<Vec<Box<dyn SchedClass>>, String>;

type MakeStack = dyn Fn(&Options, &Machine, &[CgroupSpec]) -> MadeStack + Send + Sync;

/// A scheduler that is no entry here because it is made at run time, from a file for example.
pub struct MadeScheduler {
    /// Name.
    pub name: String,
    /// What it promises, its tunables, and what its model leaves out; not its name.
    pub like: &'static SchedulerInfo,
    /// A sum of what it was made of: two with equal sums decide alike. Empty: not known.
    pub sum: String,
    make: Box<MakeStack>,
}

impl MadeScheduler {
    /// A scheduler called `name`, of which `make` gives a fresh stack for each run.
    pub fn new(
        name: impl Into<String>,
        like: &'static SchedulerInfo,
        make: impl Fn(&Options, &Machine, &[CgroupSpec]) -> MadeStack + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), like, sum: String::new(), make: Box::new(make) }
    }

    /// The same with a sum of what it was made of.
    pub fn with_sum(self, sum: String) -> Self {
        Self { sum, ..self }
    }

    /// Makes its stack of classes, highest priority first.
    pub fn build(&self, options: &Options, machine: &Machine, cgroups: &[CgroupSpec]) -> MadeStack {
        (self.make)(options, machine, cgroups)
    }
}

impl std::fmt::Debug for MadeScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeScheduler").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for MadeScheduler {
    /// Names tell schedulers apart.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MadeScheduler {}

/// All schedulers.
pub const SCHEDULERS: &[&SchedulerInfo] = &[
    &crate::textbook::fcfs::INFO,
    &crate::textbook::sjf::SJF,
    &crate::textbook::sjf::SJF_PREDICTED,
    &crate::textbook::sjf::SRTF,
    &crate::textbook::sjf::SRTF_PREDICTED,
    &crate::textbook::priority::PRIORITY,
    &crate::textbook::priority::PRIORITY_PREEMPTIVE,
    &crate::textbook::priority::PRIORITY_RR,
    &crate::textbook::rr::INFO,
    &crate::textbook::multilevel::MULTILEVEL,
    &crate::textbook::multilevel::MULTILEVEL_TIMESHARE,
    &crate::textbook::mlfq::INFO,
    &crate::textbook::lottery::INFO,
    &crate::textbook::stride::INFO,
    &crate::textbook::vtime::INFO,
    &crate::wrr::WRR,
    &crate::wrr::GROUP_WRR,
    &crate::wrr::BASIC_WRR_AS_BUILT,
    &crate::wrr::RMLFQ_DESIGN,
    &crate::wrr::RMLFQ_AS_BUILT_64,
    &crate::wrr::RMLFQ_AS_BUILT_32,
    &crate::o_n::INFO,
    &crate::o1::INFO_2_6_0,
    &crate::o1::INFO_2_6_11,
    &crate::o1::INFO_2_6_22,
    &crate::staircase::RSDL_0_31,
    &crate::staircase::SD_0_48,
    &crate::cfs_early::INFO_V19,
    &crate::cfs_early::INFO,
    &crate::cfs_groups::INFO_2_6_24,
    &crate::cfs_groups::INFO_2_6_32,
    &crate::linux_6_1::INFO,
    &crate::linux_6_12::INFO_6_6,
    &crate::linux_6_12::INFO_6_12_0,
    &crate::linux_6_12::INFO,
    &crate::linux_6_12::INFO_6_18,
    &crate::linux_6_12::INFO_7_1,
    &crate::linux_6_12::INFO_7_2,
];

/// The scheduler called `name`.
pub fn find(name: &str) -> Option<&'static SchedulerInfo> {
    SCHEDULERS.iter().copied().find(|info| info.name == name)
}

/// The models of the kernels just before and just after the one that `name` names as they do
/// (`linux-6.14`), of which there is none; `None`: it names no kernel.
pub fn kernels_around(name: &str) -> Option<[Option<&'static str>; 2]> {
    let wanted = kernel_version(name)?;
    let versions = || {
        let all = SCHEDULERS.iter().map(|info| (kernel_version(info.name), info.name));
        all.filter_map(|(version, name)| Some((version?, name)))
    };
    let before = versions().filter(|(version, _)| *version < wanted).max();
    let after = versions().filter(|(version, _)| *version > wanted).min();
    Some([before, after].map(|found| found.map(|(_, name)| name)))
}

/// The numbers of a kernel's version; a series counts as its last release.
fn kernel_version(name: &str) -> Option<[u32; 3]> {
    let mut numbers = name.strip_prefix("linux-")?.split('.');
    let mut number = || match numbers.next() {
        Some(text) => text.parse().ok().map(Some),
        None => Some(None),
    };
    let version = [number()??, number()??, number()?.unwrap_or(u32::MAX)];
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_model_lies_between_two() {
        let around = |name| kernels_around(name).unwrap().map(Option::unwrap_or_default);
        for (name, before, after) in [
            ("linux-6.14", "linux-6.12", "linux-6.18"),
            ("linux-6.12.5", "linux-6.12.0", "linux-6.12"),
            ("linux-5.15", "linux-2.6.32", "linux-6.1"),
            ("linux-2.4.20", "linux-2.4.18", "linux-2.6.0"),
            ("linux-2.2", "", "linux-2.4.18"),
            ("linux-9.0", "linux-7.2", ""),
        ] {
            assert_eq!(around(name), [before, after], "{name}");
        }
        for name in ["6.14", "linux-", "linux-6", "linux-6.x", "linux-6.1.2.3", "linux-6.-1"] {
            assert_eq!(kernels_around(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_defaults_lie_in_range() {
        for (index, info) in SCHEDULERS.iter().enumerate() {
            assert!(SCHEDULERS[..index].iter().all(|other| other.name != info.name));
            let mut options = Options::defaults(info.tunables);
            for tunable in info.tunables {
                options.set(info.tunables, tunable.name, tunable.default).unwrap();
            }
        }
    }
}
