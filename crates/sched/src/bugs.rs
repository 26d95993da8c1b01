// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only list of known bugs of Linux' scheduler.
//!
//! A bug that the models can have is a change of a model's rules. A model with such a bug is a
//! scheduler of its own: `linux-7.1+P22` is the model of Linux 7.1 with bug P22. No model has a bug
//! by default that its kernel did not have.
//!
//! `schedlab check --bugs` lists them; crates/check/tests shows that random workloads find each.

use crate::deadline::fair_server::StopRule;
use crate::deadline::tunables::DlBug;
use crate::fair::rules::{FairBug, Reweight};
use crate::kernels::Model;
use crate::scheduler::Scheduler;
use schedlab_model::KernelVersion;

/// How a bug enters a model.
#[derive(Clone, Copy, Debug)]
pub enum Modelled {
    /// The change of the rules, and the kernels whose models may have it; the first is the one to
    /// show it with.
    In(&'static [KernelVersion], fn(&mut Model)),
    /// No model can have it, for this reason.
    No(&'static str),
}

/// A known bug.
#[derive(Clone, Copy, Debug)]
pub struct KnownBug {
    /// Short name: `P` and a number.
    pub id: &'static str,
    /// What the kernel does wrong.
    pub statement: &'static str,
    /// The commits that mended it, or who reported it.
    pub source: &'static str,
    /// The kernels that have or had it.
    pub kernels: &'static str,
    /// Releases that have it or may have it, as far as is known: first and last of each range. None
    /// if only release candidates had it.
    pub releases: &'static [(KernelVersion, KernelVersion)],
    /// How the models have it.
    pub modelled: Modelled,
}

const V6_1: KernelVersion = KernelVersion::series(6, 1);
const V6_6: KernelVersion = KernelVersion::series(6, 6);
const V6_12: KernelVersion = KernelVersion::series(6, 12);
const V6_18: KernelVersion = KernelVersion::series(6, 18);
const V7_1: KernelVersion = KernelVersion::series(7, 1);
const V7_2: KernelVersion = KernelVersion::series(7, 2);

const fn v(major: u16, minor: u16, patch: u16) -> KernelVersion {
    KernelVersion::release(major, minor, patch)
}

const fn s(major: u16, minor: u16) -> KernelVersion {
    KernelVersion::series(major, minor)
}

/// 6.12.117 is the first release of 6.12 whose source was read for the cures of later kernels.
const BEFORE_6_12_117: KernelVersion = v(6, 12, 116);

const NO_FREQUENCY: &str = "models have no frequencies, so clocks of load averages do not drift";

impl KnownBug {
    /// The bugs that a running kernel of this release has or may have.
    pub fn of(version: KernelVersion) -> impl Iterator<Item = &'static Self> {
        let has = move |(first, last): &(_, _)| (*first..=*last).contains(&version);
        BUGS.iter().filter(move |bug| bug.releases.iter().any(has))
    }

    /// The models with this bug, as schedulers.
    pub fn schedulers(&self) -> Vec<Scheduler> {
        let Modelled::In(versions, change) = self.modelled else { return Vec::new() };
        let models = versions.iter().filter_map(|version| Model::of(*version));
        models.map(|model| self.scheduler(*model, change)).collect()
    }

    fn scheduler(&self, mut model: Model, change: fn(&mut Model)) -> Scheduler {
        change(&mut model);
        let scheduler = model.scheduler();
        Scheduler {
            name: format!("{}+{}", scheduler.name, self.id).into(),
            summary: format!("Linux {} with bug {}: {}", model.version, self.id, self.statement)
                .into(),
            source: format!("{}; the bug: {}", scheduler.source, self.source).into(),
            ..scheduler
        }
    }

    /// Names of the models with this bug; the first is the one to show it with.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let versions = match self.modelled {
            Modelled::In(versions, _) => versions,
            Modelled::No(_) => &[],
        };
        versions.iter().map(|version| format!("linux-{version}+{}", self.id))
    }

    /// Why no model can have it.
    pub const fn left_out(&self) -> Option<&'static str> {
        match self.modelled {
            Modelled::In(..) => None,
            Modelled::No(reason) => Some(reason),
        }
    }

    /// Its row of the table in docs/guide/find-a-bug.md.
    #[cfg(test)]
    fn row(&self) -> String {
        let shown = match self.left_out() {
            Some(reason) => format!("not modelled: {reason}"),
            None => self.names().map(|name| format!("`{name}`")).next().unwrap_or_default(),
        };
        let Self { id, statement, kernels, source, .. } = self;
        format!("| {id} | {statement} | {kernels} | {source} | {shown} |\n")
    }
}

fn fair(model: &mut Model, bug: FairBug) {
    model.fair.bug = Some(bug);
}

/// Every known bug, by number.
pub static BUGS: &[KnownBug] = &[
    KnownBug {
        id: "P01",
        statement: "a change of the running entity's weight enlarges its lag, so others starve",
        source: "101f3498b4bd reverts 6d71a9c61604",
        kernels: "6.13 to 7.0; 6.18.0 to 6.18.44",
        releases: &[(v(6, 13, 0), s(6, 17)), (v(6, 18, 0), v(6, 18, 44)), (v(6, 19, 0), s(7, 0))],
        modelled: Modelled::In(&[V7_1, V6_18], |model| model.fair.reweight = Reweight::Place),
    },
    KnownBug {
        id: "P02",
        statement: "the lag of a task that sleeps is taken when it no longer counts, so it \
                    preempts too much when it wakes",
        source: "85570f10a4c6 was merged with the cure",
        kernels: "7.3 before release",
        releases: &[],
        modelled: Modelled::In(&[V7_2, V7_1], |model| fair(model, FairBug::LagAfterDequeue)),
    },
    KnownBug {
        id: "P03",
        statement: "a running group is not told that its quota is used up",
        source: "followed 85570f10a4c6",
        kernels: "7.3 before release",
        releases: &[],
        modelled: Modelled::In(&[V7_2, V7_1], |model| fair(model, FairBug::QuotaNotTaken)),
    },
    KnownBug {
        id: "P04",
        statement: "a sync wake-up counts delayed sleepers, so it leaves the waker's CPU",
        source: "aa3ee4f0b754",
        kernels: "6.12 to 6.15",
        releases: &[(v(6, 12, 0), BEFORE_6_12_117), (v(6, 13, 0), s(6, 15))],
        modelled: Modelled::In(&[V6_12, V6_18], |model| {
            model.fair.balance.sync_counts_delayed = true;
        }),
    },
    KnownBug {
        id: "P05",
        statement: "a group whose dequeue is delayed gets the least slice of an empty queue",
        source: "bbce3de72be5",
        kernels: "6.12 to 6.14",
        releases: &[(v(6, 12, 0), BEFORE_6_12_117), (v(6, 13, 0), s(6, 14))],
        modelled: Modelled::In(&[V6_12, V6_18], |model| fair(model, FairBug::SliceOfEmptyGroup)),
    },
    KnownBug {
        id: "P06",
        statement: "two CPUs of a group balance: the first idle thread of a busy core, and the \
                    first CPU",
        source: "6d7e4782bcf5",
        kernels: "6.6-rc",
        releases: &[(v(6, 6, 0), s(6, 6))],
        modelled: Modelled::In(&[V6_12, V7_1], |model| model.fair.balance.two_balance = true),
    },
    KnownBug {
        id: "P07",
        statement: "the least virtual runtime is not renewed after a change of the running \
                    entity's weight",
        source: "5068d84054b7",
        kernels: "6.7",
        releases: &[(v(6, 7, 0), s(6, 7))],
        modelled: Modelled::In(&[V6_6], |model| fair(model, FairBug::StaleMinVruntime)),
    },
    KnownBug {
        id: "P08",
        statement: "an entity alone in its group is rescheduled at the end of each slice if its \
                    CPU has other tasks",
        source: "d4ac164bde7a",
        kernels: "6.12-rc1 to 6.12-rc3",
        releases: &[],
        modelled: Modelled::In(&[V6_12, V6_18], |model| fair(model, FairBug::LoneRescheduled)),
    },
    KnownBug {
        id: "P09",
        statement: "a group whose dequeue is delayed counts as a delayed task",
        source: "3429dd57f0de",
        kernels: "6.13, 6.12.7 and later",
        releases: &[(v(6, 12, 7), BEFORE_6_12_117), (v(6, 13, 0), s(6, 13))],
        modelled: Modelled::In(&[V6_12, V6_18], |model| fair(model, FairBug::DelayedGroupCounted)),
    },
    KnownBug {
        id: "P10",
        statement: "an attempt to balance looks at all tasks while none could be moved",
        source: "b0defa7ae03e, reverted in 6.10",
        kernels: "6.1 to 6.9",
        releases: &[(v(6, 1, 0), s(6, 9))],
        modelled: Modelled::In(&[V6_1, V6_6], |model| model.fair.balance.walks_pinned = true),
    },
    KnownBug {
        id: "P11",
        statement: "a CPU that goes idle does not bring the clock of its load averages up to date",
        source: "17e3e88ed0b6, 98c88dc8a1ac",
        kernels: "5.4 to 6.17",
        releases: &[
            (v(5, 4, 0), s(6, 11)),
            (v(6, 12, 0), BEFORE_6_12_117),
            (v(6, 13, 0), s(6, 17)),
        ],
        modelled: Modelled::No(NO_FREQUENCY),
    },
    KnownBug {
        id: "P12",
        statement: "the freezer, KVM and others take a delayed sleeper for runnable",
        source: "cd9626e9ebc7",
        kernels: "6.12-rc1 to 6.12-rc3",
        releases: &[],
        modelled: Modelled::No("models have no users of the task state outside the scheduler"),
    },
    KnownBug {
        id: "P13",
        statement: "real-time tasks stay throttled after their limit was switched off and on",
        source: "9b58e976b3b3",
        kernels: "2.6.26 to 5.16",
        releases: &[(v(2, 6, 26), s(5, 16))],
        modelled: Modelled::In(&[V6_1], |model| model.rt_forgets_timer = true),
    },
    KnownBug {
        id: "P14",
        statement: "a difference of one idle CPU is halved to none, so a CPU stays idle",
        source: "reported with kSTEP, open",
        kernels: "6.12 to 7.2 and probably others",
        releases: &[(v(6, 12, 0), s(7, 2))],
        modelled: Modelled::No("every model has it, as its kernel does; no kernel has mended it"),
    },
    KnownBug {
        id: "P15",
        statement: "a group counts as overloaded before pinned tasks are considered, so a CPU \
                    stays idle",
        source: "reported with kSTEP, open",
        kernels: "6.12 to 7.2 and probably others",
        releases: &[(v(6, 12, 0), s(7, 2))],
        modelled: Modelled::No("every model has it, as its kernel does; no kernel has mended it"),
    },
    KnownBug {
        id: "P16",
        statement: "the utilisation of real-time tasks drops to nothing in one step",
        source: "reported with kSTEP, open",
        kernels: "7.0 and probably others",
        releases: &[(v(7, 0, 0), s(7, 2))],
        modelled: Modelled::No(NO_FREQUENCY),
    },
    KnownBug {
        id: "P17",
        statement: "a throttled queue is released with nothing left to use",
        source: "956dfda6a708",
        kernels: "6.18-rc1 to 6.18-rc4, when cpu.max is written; here: at every refill",
        releases: &[],
        modelled: Modelled::In(&[V6_18, V7_1], |model| {
            fair(model, FairBug::UnthrottledWithNothing);
        }),
    },
    KnownBug {
        id: "P18",
        statement: "the product of lag and weight overflows 64 bits",
        source: "1560d1f6eb6b",
        kernels: "6.7, 6.8",
        releases: &[(v(6, 7, 0), s(6, 8))],
        modelled: Modelled::No("takes hours of lag; a checked run has at most 2 s"),
    },
    KnownBug {
        id: "P19",
        statement: "the least utilisation asked for can be above the greatest one allowed",
        source: "0213b7083e81",
        kernels: "5.3 to 5.13",
        releases: &[(v(5, 3, 0), s(5, 13))],
        modelled: Modelled::No("models have no utilisation clamps"),
    },
    KnownBug {
        id: "P20",
        statement: "a group without tasks, whose dequeue is delayed, gets the least weight",
        source: "66951e4860d3",
        kernels: "6.12.0 to 6.12.10",
        releases: &[(v(6, 12, 0), v(6, 12, 10))],
        modelled: Modelled::In(&[V6_12, V6_18], |model| {
            model.fair.group_keeps_weight_when_empty = false;
        }),
    },
    KnownBug {
        id: "P21",
        statement: "a change of weight keeps the virtual runtime, so the lag changes",
        source: "eab03c23c2a1; others: P21b, 11b1b8bc2b98, c70fc32f4443",
        kernels: "6.6",
        releases: &[(v(6, 6, 0), s(6, 6))],
        modelled: Modelled::In(&[V6_6, V6_12, V7_1], |model| {
            model.fair.reweight = Reweight::KeepVruntime;
        }),
    },
    KnownBug {
        id: "P21b",
        statement: "the average for a change of weight leaves the changing entity out, if it waits",
        source: "afae8002b4fd",
        kernels: "6.7, 6.8, 6.6 from some release on",
        releases: &[(v(6, 6, 0), s(6, 8))],
        modelled: Modelled::In(&[V6_6, V6_12], |model| fair(model, FairBug::AverageWithoutIt)),
    },
    KnownBug {
        id: "P22",
        statement: "a SCHED_IDLE task keeps its protection when a normal task wakes",
        source: "f553741ac8c0",
        kernels: "6.6 to 6.14",
        releases: &[
            (v(6, 6, 0), s(6, 11)),
            (v(6, 12, 0), BEFORE_6_12_117),
            (v(6, 13, 0), s(6, 14)),
        ],
        modelled: Modelled::In(&[V6_12, V7_1, V6_18], |model| {
            model.fair.idle_loses_protection = false;
        }),
    },
    KnownBug {
        id: "P23",
        statement: "a wake-up asks whether tasks are idle, not whether their groups are",
        source: "faa42d29419d",
        kernels: "5.15 to 6.11",
        releases: &[(v(5, 15, 0), s(6, 11))],
        modelled: Modelled::No("models have no cpu.idle groups"),
    },
    KnownBug {
        id: "P24",
        statement: "the lag is not scaled when a task becomes SCHED_IDLE",
        source: "d32960528702",
        kernels: "4.15 to 6.10",
        releases: &[(v(4, 15, 0), s(6, 10))],
        modelled: Modelled::In(&[V6_6, V6_12], |model| fair(model, FairBug::IdleNotRescaled)),
    },
    KnownBug {
        id: "P25",
        statement: "a migration reads as a long sleep, so a task's debt is forgiven",
        source: "a53ce18cacb4",
        kernels: "6.3-rc1 to 6.3-rc3",
        releases: &[],
        modelled: Modelled::In(&[V6_1], |model| fair(model, FairBug::MigrationForgives)),
    },
    KnownBug {
        id: "P26",
        statement: "a group's new slice does not reach the least slice of its queue",
        source: "563bc2161b94",
        kernels: "6.12 to 6.14",
        releases: &[(v(6, 12, 0), BEFORE_6_12_117), (v(6, 13, 0), s(6, 14))],
        modelled: Modelled::In(&[V6_12, V6_18], |model| fair(model, FairBug::SliceNotCarriedUp)),
    },
    KnownBug {
        id: "P27",
        statement: "the pick goes right although the earliest deadline is on the left",
        source: "b01db23d5923",
        kernels: "6.6-rc1 to 6.6-rc5",
        releases: &[],
        modelled: Modelled::In(&[V6_6], |model| fair(model, FairBug::PickMissesLeft)),
    },
    KnownBug {
        id: "P28",
        statement: "a negative average is rounded towards 0, so a task that was just placed is not \
                    eligible",
        source: "650cad561cce",
        kernels: "6.6-rc1 to 6.6-rc4",
        releases: &[],
        modelled: Modelled::In(&[V6_6], |model| fair(model, FairBug::RoundsTowardsZero)),
    },
    KnownBug {
        id: "P29",
        statement: "the fair server stops and starts at every short sleep",
        source: "cccb45d7c429",
        kernels: "6.12 to 6.16",
        releases: &[(v(6, 12, 0), s(6, 16))],
        modelled: Modelled::In(&[V6_18], |model| {
            model.deadline.server_stops = StopRule::LastLeaves;
        }),
    },
    KnownBug {
        id: "P30",
        statement: "a fair server without a task to run yields the rest of its period",
        source: "a3a70caf7906",
        kernels: "6.17-rc",
        releases: &[],
        modelled: Modelled::In(&[V6_18], |model| model.deadline.bug = Some(DlBug::Yields)),
    },
    KnownBug {
        id: "P31",
        statement: "a fair server whose timer expires while there are no tasks never serves again",
        source: "4ae8d9aa9f9d",
        kernels: "6.17-rc",
        releases: &[],
        modelled: Modelled::In(&[V6_18], |model| model.deadline.bug = Some(DlBug::Sticks)),
    },
    KnownBug {
        id: "P32",
        statement: "a fair server that has just stopped does not count as stopped, so it \
                    yields, too",
        source: "4717432dfd99",
        kernels: "6.17-rc",
        releases: &[],
        modelled: Modelled::In(&[V6_18], |model| model.deadline.bug = Some(DlBug::StoppedYields)),
    },
    KnownBug {
        id: "P33",
        statement: "a group whose dequeue is delayed is not put back when its queue is released",
        source: "9b5ce1a37e90",
        kernels: "6.12-rc1 to 6.12-rc3",
        releases: &[],
        modelled: Modelled::In(&[V6_12], |model| {
            fair(model, FairBug::UnthrottledOverDelayed);
            // Its kernels are older than NI_RANDOM of 6.12.65.
            model.fair.features.balance.ni_random = false;
        }),
    },
    KnownBug {
        id: "P34",
        statement: "a write of cpu.max divides the burst by 1,000",
        source: "49217ea147df",
        kernels: "5.14 to 6.9",
        releases: &[(v(5, 14, 0), s(6, 9))],
        modelled: Modelled::In(&[V6_6, V6_1], |model| fair(model, FairBug::BurstDivided)),
    },
    KnownBug {
        id: "P35",
        statement: "a group without a quota does not inherit that of the group above",
        source: "c98c18270be1",
        kernels: "4.16 to 6.5",
        releases: &[(v(4, 16, 0), s(6, 5))],
        modelled: Modelled::No("only sched_ext schedulers read the inherited number"),
    },
    KnownBug {
        id: "P36",
        statement: "sched_rr_timeslice_ms shows 90 instead of 100 at 300 Hz",
        source: "c7fcb99877f9",
        kernels: "2.6 to 6.5",
        releases: &[(v(2, 6, 0), s(6, 5))],
        modelled: Modelled::No("programs do not read tunables, and the slice itself is right"),
    },
    KnownBug {
        id: "P37",
        statement: "sched_switch reports a sleep that a pending signal has turned into a \
                    preemption",
        source: "8feb053d5319",
        kernels: "5.18 to 6.15",
        releases: &[
            (v(5, 18, 0), s(6, 11)),
            (v(6, 12, 0), BEFORE_6_12_117),
            (v(6, 13, 0), s(6, 15)),
        ],
        modelled: Modelled::No("programs have no signals"),
    },
    KnownBug {
        id: "P38",
        statement: "the load average is wrong after 2^32 changes of the task state",
        source: "36569780b0d6",
        kernels: "5.14 to 6.15",
        releases: &[
            (v(5, 14, 0), s(6, 11)),
            (v(6, 12, 0), BEFORE_6_12_117),
            (v(6, 13, 0), s(6, 15)),
        ],
        modelled: Modelled::No("models have no load average of the machine; takes 2^32 sleeps"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn the_list_is_complete_and_in_order() {
        assert_eq!(BUGS.len(), 39);
        // A letter after the number is another commit about the same.
        let numbers = BUGS.iter().filter(|bug| !bug.id.ends_with('b'));
        assert!(numbers.enumerate().all(|(index, bug)| bug.id == format!("P{:02}", index + 1)));
        for bug in BUGS {
            assert!(!bug.statement.is_empty() && !bug.source.is_empty(), "{}", bug.id);
        }
    }

    #[test]
    fn a_bug_is_found_by_name_and_changes_its_model() {
        for bug in BUGS {
            let Modelled::In(versions, change) = bug.modelled else { continue };
            assert_eq!(bug.schedulers().len(), versions.len(), "{}", bug.id);
            for version in versions {
                let name = format!("linux-{version}+{}", bug.id);
                assert_eq!(registry::find(&name).expect("it is there").name, name);
                let model = Model::of(*version).unwrap();
                let mut changed = *model;
                change(&mut changed);
                let is_same = changed.fair == model.fair
                    && changed.deadline == model.deadline
                    && changed.rt_forgets_timer == model.rt_forgets_timer;
                assert!(!is_same, "{name}");
            }
        }
        for name in ["linux-7.1+P11", "linux-7.1+P99", "rr+P22", "linux-7.1+", "+P22"] {
            assert!(registry::find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn releases_know_their_bugs() {
        let of = |text: &str| -> Vec<&str> {
            KnownBug::of(text.parse().unwrap()).map(|bug| bug.id).collect()
        };
        assert_eq!(of("6.18.44"), ["P01", "P14", "P15"]);
        assert_eq!(of("6.18.45"), ["P14", "P15"]);
        assert_eq!(of("6.12.117"), ["P14", "P15", "P29"]);
        assert!(of("6.12.0").contains(&"P20") && !of("6.12.11").contains(&"P20"));
        assert!(of("7.3.0").is_empty());
        for bug in BUGS {
            assert!(bug.releases.iter().all(|(first, last)| first <= last), "{}", bug.id);
        }
    }

    /// What distorts measurements is in the table of the host lane, too.
    #[test]
    fn both_tables_agree_about_starvation() {
        let starves = &schedlab_model::kernel::KERNEL_BUGS[0];
        assert_eq!(BUGS[0].releases, starves.releases);
    }

    #[test]
    fn the_guide_has_the_table() {
        let page = include_str!("../../../docs/guide/find-a-bug.md");
        let rows: String = BUGS.iter().map(KnownBug::row).collect();
        assert!(page.contains(&rows), "the table should be\n{rows}");
    }

    #[test]
    fn no_model_has_a_bug_on_purpose() {
        for model in &crate::kernels::MODELS {
            assert_eq!((model.fair.bug, model.deadline.bug), (None, None), "{}", model.version);
        }
    }
}
