// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only list of schedulers. A new scheduler is one file and one line here. A new kernel is a
//! row of [`crate::kernels`].

use crate::bugs::{BUGS, KnownBug};
use crate::kernels::{MODELS, Model};
use crate::scheduler::Scheduler;
use crate::textbook::{fcfs, lottery, mlfq, multilevel, priority, rr, sjf, stride, vtime};
use crate::{cfs_early, cfs_groups, o_n, o1, staircase, wrr};
use schedlab_model::KernelVersion;
use std::sync::{Arc, LazyLock};

/// Schedulers that are not models of Linux 6.1 or later.
const EARLY: &[fn() -> Scheduler] = &[
    fcfs::scheduler,
    sjf::sjf,
    sjf::sjf_predicted,
    sjf::srtf,
    sjf::srtf_predicted,
    priority::priority,
    priority::priority_preemptive,
    priority::priority_rr,
    rr::scheduler,
    multilevel::multilevel,
    multilevel::multilevel_timeshare,
    mlfq::scheduler,
    lottery::scheduler,
    stride::scheduler,
    vtime::scheduler,
    wrr::wrr,
    wrr::group_wrr,
    wrr::basic_wrr_as_built,
    wrr::rmlfq_design,
    wrr::rmlfq_as_built_64,
    wrr::rmlfq_as_built_32,
    o_n::scheduler,
    o1::linux_2_6_0,
    o1::linux_2_6_11,
    o1::linux_2_6_22,
    staircase::rsdl_0_31,
    staircase::sd_0_48,
    cfs_early::cfs_v19,
    cfs_early::scheduler,
    cfs_groups::linux_2_6_24,
    cfs_groups::linux_2_6_32,
];

/// Short names that users type, and the scheduler of each: the latest of its kind.
pub const ALIASES: &[(&str, &str)] = &[
    ("fifo", "fcfs"),
    ("o1", "linux-2.6.22"),
    ("rsdl", "rsdl-0.31"),
    ("sd", "sd-0.48"),
    ("cfs", "linux-6.1"),
    ("eevdf", "linux-7.2"),
    ("linux", "linux-7.2"),
];

/// All schedulers, in listing order.
pub static SCHEDULERS: LazyLock<Vec<Arc<Scheduler>>> = LazyLock::new(|| {
    let early = EARLY.iter().map(|scheduler| scheduler());
    early.chain(MODELS.iter().map(|model| model.scheduler())).map(Arc::new).collect()
});

/// Models with a known bug that they do not have, named `linux-7.1+P22`. Lists leave them out.
static WITH_BUGS: LazyLock<Vec<Arc<Scheduler>>> =
    LazyLock::new(|| BUGS.iter().flat_map(KnownBug::schedulers).map(Arc::new).collect());

/// The model `kernel` with bug `id`.
fn find_with_bug(kernel: &str, id: &str) -> Option<&'static Arc<Scheduler>> {
    let name = format!("{}+{id}", find(kernel)?.name);
    WITH_BUGS.iter().find(|scheduler| scheduler.name.eq_ignore_ascii_case(&name))
}

/// Finds the scheduler called `name`. A kernel's name with a known bug ([`BUGS`]) is a model with
/// this bug (`linux-7.1+P22`). Kernels are also found by their version alone (`6.12`), and
/// some schedulers by a short name ([`ALIASES`]).
pub fn find(name: &str) -> Option<&'static Arc<Scheduler>> {
    if let Some((kernel, id)) = name.split_once('+') {
        return find_with_bug(kernel, id);
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let exact = SCHEDULERS.iter().find(|scheduler| scheduler.name == name);
    exact.or_else(|| {
        let version: KernelVersion = name.parse().ok()?;
        let version = Model::with_rules_of(version).map_or(version, |model| model.version);
        let name = format!("linux-{version}");
        SCHEDULERS.iter().find(|scheduler| scheduler.name == name)
    })
}

/// Names of all schedulers, in listing order.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    SCHEDULERS.iter().map(|scheduler| scheduler.name.as_ref())
}

/// The models of the kernels just before and just after kernel `name`, which has no model
/// (`linux-6.14`, `6.14`). `None`: `name` is not a kernel.
pub fn kernels_around(name: &str) -> Option<[Option<&'static str>; 2]> {
    let wanted: KernelVersion = name.parse().ok()?;
    let versions = || {
        let linux = names().filter(|name| name.starts_with("linux-"));
        linux.filter_map(|name| Some((name.parse::<KernelVersion>().ok()?, name)))
    };
    let before = versions().filter(|(version, _)| *version < wanted).max();
    let after = versions().filter(|(version, _)| *version > wanted).min();
    Some([before, after].map(|found| found.map(|(_, name)| name)))
}

/// The models of the kernels that a number alone may mean (`linux-6`, `9`): those of this major
/// version, or the nearest. `None`: `name` is no such number.
pub fn kernels_of_major(name: &str) -> Option<Vec<&'static str>> {
    let major: u16 = name.strip_prefix("linux-").unwrap_or(name).parse().ok()?;
    let of_major = format!("linux-{major}.");
    let found: Vec<_> = names().filter(|name| name.starts_with(&of_major)).collect();
    match found.is_empty() {
        false => Some(found),
        true => Some(kernels_around(&format!("{major}.0"))?.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::options::Options;
    use schedlab_model::{Kernel, Preempt};

    #[test]
    fn a_kernel_without_a_model_lies_between_two() {
        let around = |name| kernels_around(name).unwrap().map(Option::unwrap_or_default);
        for (name, before, after) in [
            ("linux-6.14", "linux-6.12", "linux-6.18.44"),
            ("6.14", "linux-6.12", "linux-6.18.44"),
            ("linux-6.12.5", "linux-6.12.0", "linux-6.12"),
            ("linux-5.15", "linux-2.6.32", "linux-6.1"),
            ("linux-2.4.20", "linux-2.4.18", "linux-2.6.0"),
            ("linux-2.2", "", "linux-2.4.18"),
            ("linux-99.0", names().last().unwrap(), ""),
        ] {
            assert_eq!(around(name), [before, after], "{name}");
        }
        for name in ["rr", "linux-", "linux-6", "linux-6.x", "linux-6.1.2.3", "linux-6.-1"] {
            assert_eq!(kernels_around(name), None, "{name}");
        }
    }

    #[test]
    fn a_number_alone_means_kernels_of_this_major_version() {
        let newest = names().last().unwrap();
        assert_eq!(kernels_of_major("linux-9"), Some(vec![newest]));
        let of_7 = kernels_of_major("linux-7").unwrap();
        assert!(of_7.len() >= 2 && of_7.iter().all(|name| name.starts_with("linux-7.")));
        assert_eq!(kernels_of_major("5"), Some(vec!["linux-2.6.32", "linux-6.1"]));
        assert_eq!(kernels_of_major("rr"), None);
        assert_eq!(kernels_of_major("linux-6.12"), None);
    }

    #[test]
    fn a_kernel_has_one_name_in_every_lane() {
        for name in ["6.12", "linux-6.12"] {
            assert_eq!(find(name).unwrap().name, "linux-6.12");
        }
        assert_eq!(find("linux-6.16"), None);
        // A release has the rules of the row that covers it. Others are unknown.
        for (name, found) in [
            ("6.18.15", Some("linux-6.18.44")),
            ("linux-6.18.44", Some("linux-6.18.44")),
            ("6.18.45", Some("linux-6.18")),
            ("6.12.117", Some("linux-6.12")),
            ("6.12.5", None),
            ("6.13.2", None),
        ] {
            assert_eq!(find(name).map(|scheduler| scheduler.name.as_ref()), found, "{name}");
        }
    }

    #[test]
    fn an_alias_stands_for_the_last_of_its_kind() {
        for (alias, name) in ALIASES {
            assert_eq!(find(alias).map(|found| &*found.name), Some(*name), "{alias}");
            assert!(names().all(|known| known != *alias), "{alias} is a scheduler");
        }
        let newest = MODELS.last().map(|model| format!("linux-{}", model.version));
        assert_eq!(find("linux").map(|found| found.name.to_string()), newest);
        assert_eq!(find("eevdf"), find("linux"));
    }

    #[test]
    fn a_kernel_s_model_has_its_kernel_s_preemption() {
        for scheduler in SCHEDULERS.iter().filter(|found| found.name.starts_with("linux-")) {
            let version = scheduler.name.parse().expect("it is named after a version");
            let kernel = Kernel::find(version).expect("the kernel is in the table");
            assert_eq!(Some(scheduler.preempt), kernel.preempt, "{}", scheduler.name);
        }
        // The patch to 2.6.21 that became the fair class of 2.6.23. RSDL and SD were patches too.
        for name in ["cfs-v19", "rsdl-0.31", "sd-0.48"] {
            assert_eq!(find(name).unwrap().preempt, Preempt::None, "{name}");
        }
    }

    /// As guests of 6.1.192, 6.12.117, 6.18.15 and 7.2.12 tell it.
    #[test]
    fn late_releases_of_old_series_pull_real_time_tasks_as_new_kernels_do() {
        let pushes = |name: &str| {
            let tunables = &find(name).unwrap().tunables;
            tunables.iter().find(|one| one.name == "RT_PUSH_IPI").unwrap().default
        };
        assert_eq!(["linux-6.1", "linux-6.12", "linux-7.1", "linux-7.2"].map(pushes), [0; 4]);
        let names = ["linux-6.6", "linux-6.12.0", "linux-6.18.44", "linux-6.18"];
        assert_eq!(names.map(pushes), [1; 4]);
    }

    #[test]
    fn names_are_unique_and_defaults_lie_in_range() {
        for (index, scheduler) in SCHEDULERS.iter().enumerate() {
            assert!(SCHEDULERS[..index].iter().all(|other| other.name != scheduler.name));
            let mut options = Options::defaults(&scheduler.tunables);
            for tunable in &scheduler.tunables {
                options.set(&scheduler.tunables, &tunable.name, tunable.default).unwrap();
            }
        }
    }
}
