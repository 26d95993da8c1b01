// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a tunable by its own name, or by the name of the kernel's file.
//!
//! A tunable is declared without the unit of its file (`base_slice`), because times are given with
//! a unit. Users of a kernel write what they see there: `base_slice_ns=3000000`,
//! `kernel.sched_rt_runtime_us=-1`, `features=NO_RUN_TO_PARITY`. Both are understood. Source:
//! kernel/sched/debug.c, kernel/sched/rt.c, kernel/sched/deadline.c and kernel/sysctl.c of the
//! modelled versions. Left out: files that do not concern a scheduler ([`elsewhere`] tells where
//! some of them are set).

use crate::boundary::options::{Tunable, TunableKind};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_USEC};
use schedlab_model::{Nanos, suggest};

/// Directories of such files, and the form in which `sysctl` writes them.
const FOLDERS: &[&str] =
    &["/proc/sys/kernel/", "/sys/kernel/debug/sched/", "kernel.", "kernel/", "debug/sched/"];

/// Units at the end of a file's name.
const UNITS: &[(&str, Nanos)] = &[("_ns", 1), ("_us", NSEC_PER_USEC), ("_ms", NSEC_PER_MSEC)];

/// Tunables, without `sched_`, and the names of their files if these differ.
const FILES: &[(&str, &str)] = &[
    ("base_slice", "base_slice_ns"),
    ("latency", "latency_ns"),
    ("min_granularity", "min_granularity_ns"),
    ("idle_min_granularity", "idle_min_granularity_ns"),
    ("wakeup_granularity", "wakeup_granularity_ns"),
    ("batch_wakeup_granularity", "batch_wakeup_granularity_ns"),
    ("granularity", "granularity_ns"),
    ("stat_granularity", "stat_granularity_ns"),
    ("runtime_limit", "runtime_limit_ns"),
    ("migration_cost", "migration_cost_ns"),
    ("child_runs_first", "sched_child_runs_first"),
    ("rr_timeslice_ms", "sched_rr_timeslice_ms"),
    ("rt_runtime", "sched_rt_runtime_us"),
    ("rt_period", "sched_rt_period_us"),
    ("dl_period_min", "sched_deadline_period_min_us"),
    ("dl_period_max", "sched_deadline_period_max_us"),
    ("fair_server_runtime", "fair_server/runtime"),
    ("fair_server_period", "fair_server/period"),
    ("ext_server_runtime", "ext_server/runtime"),
    ("ext_server_period", "ext_server/period"),
];

/// Files in ns whose names do not end in a unit, without `sched_`.
const PLAIN_NS: &[&str] = &[
    "shares_ratelimit",
    "fair_server/runtime",
    "fair_server/period",
    "ext_server/runtime",
    "ext_server/period",
];

/// Names that schedulers and textbooks use for the longest stay on a CPU. A user may write one and
/// mean another.
const SLICES: &[&str] = &[
    "quantum",
    "slice",
    "base_slice",
    "timeslice",
    "time_slice",
    "rr_timeslice_ms",
    "rr_interval",
];

/// Settings that are not tunables here, and how to set them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("preempt", "the preemption model is set with --preempt"),
    ("nice", "nice values are set with --nice, or for each task in the workload"),
    ("hz", "ticks a second are set with --hz"),
    ("cpu.weight", "weights of control groups are part of the workload"),
    ("cpu.shares", "weights of control groups are part of the workload"),
    ("cpu.max", "limits of control groups are part of the workload"),
];

/// Features of kernel/sched/features.h that have no effect here, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("NONTASK_CAPACITY", "the time of interrupts and of a hypervisor is nobody's load here"),
    ("TTWU_QUEUE", "a wake-up takes effect at once, whichever CPU carries it out"),
    ("UTIL_EST", "estimates of utilisation always count here"),
    ("UTIL_EST_FASTUP", "estimates of utilisation always rise at once here"),
    ("ATTACH_AGE_LOAD", "a task that comes from elsewhere is counted when it is queued next"),
    ("SIS_PROP", "it goes by the time that a search takes, and searches take none here"),
    ("HZ_BW", "it is for CPUs that need no tick while they are busy, which are not here"),
    ("PARANOID_AVG", "it watches over sums that cannot overflow here"),
    ("WARN_DOUBLE_CLOCK", "it only warns"),
    ("LATENCY_WARN", "it only warns"),
    ("PLACE_DEADLINE_INITIAL", "6.6 places a new task twice, the second time as any other"),
];

/// The tunable that a name means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning<'t> {
    /// The tunable.
    pub tunable: &'t Tunable,
    /// Unit (ns) of a number without a unit, from the name. `None`: the number needs a unit.
    pub unit_ns: Option<Nanos>,
}

fn stem(name: &str) -> &str {
    let bare = FOLDERS.iter().find_map(|folder| name.strip_prefix(folder)).unwrap_or(name);
    bare.strip_prefix("sched_").unwrap_or(bare)
}

/// Splits a name into the name without its unit, and the unit.
fn without_unit(name: &str) -> (&str, Option<Nanos>) {
    let found = UNITS.iter().find_map(|(end, ns)| Some((name.strip_suffix(end)?, Some(*ns))));
    found.unwrap_or((name, None))
}

/// Finds the tunable that `name` means: the one with that name, or with a kernel's file of that
/// name.
pub(crate) fn meaning<'t>(tunables: &'t [Tunable], name: &str) -> Option<Meaning<'t>> {
    let given = stem(name);
    let (bare, mut unit_ns) = without_unit(given);
    if PLAIN_NS.contains(&given) {
        unit_ns = Some(1);
    }
    let by_file = FILES.iter().find(|(_, file)| stem(file) == given).map(|(own, _)| *own);
    let is_time = |tunable: &Tunable| matches!(tunable.kind, TunableKind::Time { .. });
    let is_meant = |tunable: &&Tunable| {
        let own = stem(&tunable.name);
        own == given
            || by_file.is_some_and(|by_file| by_file == own)
            || (is_time(tunable) && without_unit(own).0 == bare)
    };
    let exact = tunables.iter().find(|tunable| tunable.name == name);
    let tunable = exact.or_else(|| tunables.iter().find(is_meant))?;
    Some(Meaning { tunable, unit_ns: if is_time(tunable) { unit_ns } else { None } })
}

/// A setting that the kernel makes with a value, but the model with a tunable of its own:
/// `sched_rt_runtime_us=-1` means no limit, `features=NO_NAME` switches a feature off.
pub(crate) fn as_another<'t>(
    tunables: &'t [Tunable],
    name: &str,
    text: &str,
) -> Option<(&'t str, &'t str)> {
    let own = |wanted: &str| tunables.iter().find(|tunable| tunable.name == wanted);
    match (stem(name), text) {
        ("rt_runtime_us", "-1") => Some((&own("rt_bandwidth")?.name, "off")),
        ("features", _) if own(name).is_none() => {
            let (feature, on) = match text.strip_prefix("NO_") {
                Some(feature) => (feature, false),
                None => (text, true),
            };
            let feature = own(feature)?;
            match &feature.kind {
                TunableKind::Choice(words) if words.len() == 2 => {
                    Some((&feature.name, words.get(usize::from(on))?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether `name` is the kernel's file of features.
pub(crate) fn is_features(name: &str) -> bool {
    stem(name) == "features"
}

/// The name of the kernel's file for a tunable, if it differs from the tunable's name.
pub fn file_name(tunable: &Tunable) -> Option<String> {
    let own = stem(&tunable.name);
    let (_, file) = FILES.iter().find(|(name, _)| *name == own)?;
    // What debugfs has without it, /proc/sys/kernel had with it.
    let was_sysctl = own != tunable.name && stem(file) == *file;
    let file = if was_sysctl { format!("sched_{file}") } else { (*file).to_string() };
    (file != tunable.name).then_some(file)
}

/// How to set something that is not a tunable of a scheduler, but may be taken for one.
fn elsewhere(name: &str) -> Option<&'static str> {
    let given = stem(name);
    ELSEWHERE.iter().find(|(other, _)| *other == given).map(|(_, how)| *how)
}

/// Why the feature `name` (or `NO_` and its name) is not among `tunables`, if it has no effect
/// here.
pub(crate) fn without_effect(tunables: &[Tunable], name: &str) -> Option<String> {
    let has_features = tunables.iter().any(|tunable| tunable.name == "WAKEUP_PREEMPTION");
    let bare = name.strip_prefix("NO_").unwrap_or(name);
    let (feature, why) = WITHOUT_EFFECT.iter().find(|(feature, _)| *feature == bare)?;
    has_features.then(|| format!("feature {feature} cannot matter in this model: {why}; leave it"))
}

/// Error text for an unknown `name`: a suggestion, and the allowed names.
pub(crate) fn unknown(tunables: &[Tunable], name: &str) -> String {
    if let Some(text) = without_effect(tunables, name) {
        return text;
    }
    let mut text = format!("tunable {name:?} is unknown: ");
    if let Some(how) = elsewhere(name) {
        text += &format!("{how}; ");
    } else if let Some(near) = nearest(tunables, name) {
        text += &format!("did you mean `{near}`? ");
    }
    let shown = |tunable: &Tunable| match file_name(tunable) {
        Some(file) => format!("{} ({file})", tunable.name),
        None => tunable.name.to_string(),
    };
    let names: Vec<String> = tunables.iter().map(shown).collect();
    if names.is_empty() {
        text + "this scheduler has none"
    } else {
        text + "allowed are " + &names.join(", ")
    }
}

/// The name for which `name` is probably a misspelling, in its own form or that of the file.
fn nearest(tunables: &[Tunable], name: &str) -> Option<String> {
    let all = tunables.iter().flat_map(|t| [Some(t.name.to_string()), file_name(t)]).flatten();
    let all: Vec<String> = all.collect();
    let slip = suggest::nearest(stem(name), all.iter().map(|word| stem(word)));
    if let Some(near) = slip {
        return all.iter().find(|word| stem(word) == near).cloned();
    }
    let is_slice = SLICES.contains(&stem(name));
    let own = SLICES.iter().find(|slice| is_slice && all.iter().any(|word| word == *slice));
    own.map(|slice| (*slice).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::options::Options;
    use crate::registry::{self, SCHEDULERS};

    #[test]
    fn another_scheduler_s_word_for_a_slice_is_answered_with_its_own() {
        for (scheduler, given, own) in [
            ("rr", "slice", "quantum"),
            ("rr", "timeslice", "quantum"),
            ("linux-6.12", "quantum", "base_slice"),
            ("sd-0.48", "slice", "rr_interval"),
        ] {
            let tunables = &registry::find(scheduler).unwrap().tunables;
            let text = unknown(tunables, given);
            assert!(text.contains(&format!("did you mean `{own}`?")), "{scheduler}: {text}");
        }
        let none = unknown(&registry::find("fcfs").unwrap().tunables, "slice");
        assert!(!none.contains("did you mean"), "{none}");
    }

    fn set(scheduler: &str, name: &str, text: &str) -> Result<Options, String> {
        let info = registry::find(scheduler).expect("a scheduler of the registry");
        let mut options = Options::defaults(&info.tunables);
        let parse = |text: &str| match text.strip_suffix("ms") {
            Some(ms) => ms.parse::<Nanos>().map(|ms| ms * 1_000_000).map_err(|e| e.to_string()),
            None => Err("no unit".into()),
        };
        options.set_text(&info.tunables, name, text, parse).map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn the_names_and_units_of_the_files_are_understood() {
        for (scheduler, file, text, name, value) in [
            ("linux-6.12", "base_slice_ns", "3000000", "base_slice", 3_000_000),
            ("linux-6.12", "base_slice_ns", "3ms", "base_slice", 3_000_000),
            ("linux-6.12", "base_slice", "3ms", "base_slice", 3_000_000),
            ("linux-6.1", "sched_latency_ns", "6000000", "latency", 6_000_000),
            ("linux-6.1", "/sys/kernel/debug/sched/latency_ns", "7000000", "latency", 7_000_000),
            ("linux-6.1", "migration_cost_ns", "0", "migration_cost", 0),
            ("linux-6.1", "sched_child_runs_first", "1", "child_runs_first", 1),
            ("linux-6.1", "kernel.sched_rt_runtime_us", "800000", "rt_runtime", 800_000_000),
            ("linux-6.12", "sched_rt_period_us", "500000", "rt_period", 500_000_000),
            ("linux-6.12", "sched_rr_timeslice_ms", "30", "rr_timeslice_ms", 30),
            ("linux-6.12", "sched_deadline_period_min_us", "200", "dl_period_min", 200_000),
            ("linux-6.18", "fair_server/runtime", "60000000", "fair_server_runtime", 60_000_000),
            ("linux-7.1", "ext_server/runtime", "70000000", "ext_server_runtime", 70_000_000),
            ("linux-6.1", "tunable_scaling", "2", "tunable_scaling", 2),
            ("sd-0.48", "kernel.rr_interval", "12", "rr_interval", 12),
            ("linux-6.1", "sched_rt_runtime_us", "-1", "rt_bandwidth", 1),
            ("linux-2.6.24", "sched_latency_ns", "6000000", "sched_latency", 6_000_000),
            ("linux-2.6.23", "sched_features", "6", "sched_features", 6),
            ("cfs-v19", "sched_features", "6", "sched_features", 6),
            ("linux-2.6.24", "kernel.sched_features", "6", "sched_features", 6),
            ("linux-2.6.32", "sched_features", "NO_LAST_BUDDY", "LAST_BUDDY", 0),
            ("linux-2.6.32", "features", "NEXT_BUDDY", "NEXT_BUDDY", 1),
            ("linux-6.12", "features", "NO_RUN_TO_PARITY", "RUN_TO_PARITY", 0),
            ("linux-6.1", "/sys/kernel/debug/sched/features", "NO_LAST_BUDDY", "LAST_BUDDY", 0),
            ("linux-6.1", "features", "LAST_BUDDY", "LAST_BUDDY", 1),
        ] {
            assert_eq!(set(scheduler, file, text).unwrap().get(name), value, "{scheduler} {file}");
        }
    }

    #[test]
    fn a_number_without_a_unit_anywhere_is_refused() {
        assert!(set("linux-6.12", "base_slice", "3000000").unwrap_err().contains("no unit"));
        assert!(set("rr", "quantum", "10").is_err());
        let large = set("linux-6.12", "base_slice_ns", "99999999999999999999").unwrap_err();
        assert!(large.contains("base_slice"), "{large}");
        assert!(set("linux-6.12", "sched_rt_runtime_us", "-2").is_err());
        let far = set("linux-6.12", "sched_rt_runtime_us", "18446744073709551615").unwrap_err();
        assert!(far.contains("too large"), "{far}");
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_list_and_a_guess() {
        let slip = set("linux-6.12", "base_slise_ns", "3000000").unwrap_err();
        assert!(slip.contains("did you mean `base_slice_ns`?"), "{slip}");
        assert!(slip.contains("nr_migrate") && slip.contains("sched_rt_runtime_us"), "{slip}");
        let preempt = set("linux-6.12", "sched_preempt", "lazy").unwrap_err();
        assert!(preempt.contains("--preempt"), "{preempt}");
        let none = set("fcfs", "quantum", "10ms").unwrap_err();
        assert!(none.contains("this scheduler has none"), "{none}");
        let far = set("linux-6.12", &"x".repeat(100_000), "1").unwrap_err();
        assert!(!far.contains("did you mean"));
        // CFS's file is none of EEVDF's.
        assert!(set("linux-6.12", "latency_ns", "6000000").is_err());
    }

    #[test]
    fn features_that_cannot_matter_are_refused_with_the_reason() {
        for scheduler in ["linux-6.1", "linux-6.12", "linux-7.2"] {
            for (feature, why) in WITHOUT_EFFECT.iter().filter(|f| f.0 != "PLACE_DEADLINE_INITIAL")
            {
                for (name, text) in [(*feature, "no"), ("features", &*format!("NO_{feature}"))] {
                    let refusal = set(scheduler, name, text).unwrap_err();
                    assert!(refusal.contains(feature) && refusal.contains(why), "{refusal}");
                }
            }
        }
        assert!(set("linux-6.12", "PLACE_DEADLINE_INITIAL", "no").is_ok());
        assert!(set("linux-6.6", "PLACE_DEADLINE_INITIAL", "no").unwrap_err().contains("twice"));
        let slip = set("linux-6.12", "features", "NO_RUN_TO_PARTY").unwrap_err();
        assert!(slip.contains("did you mean `RUN_TO_PARITY`?"), "{slip}");
        assert!(set("rr", "TTWU_QUEUE", "no").unwrap_err().contains("unknown"));
    }

    /// No two tunables of one scheduler answer to the same name.
    #[test]
    fn every_tunable_is_found_under_its_own_name_and_its_files() {
        for info in SCHEDULERS.iter() {
            for tunable in &info.tunables {
                let names = [Some(tunable.name.to_string()), file_name(tunable)];
                for name in names.into_iter().flatten() {
                    let found = meaning(&info.tunables, &name).expect("it is declared").tunable;
                    assert_eq!(found.name, tunable.name, "{} {name}", info.name);
                }
            }
        }
    }
}
