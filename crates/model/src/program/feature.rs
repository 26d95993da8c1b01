// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features of the kernel's scheduler that tasks may switch.

/// A feature of kernel/sched/features.h that a model follows during a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum SchedFeature {
    /// A sleeper gains half of the latency, CFS.
    GentleFairSleepers,
    /// A new task starts one slice behind, CFS.
    StartDebit,
    /// The task that woke last is picked next if that is fair.
    NextBuddy,
    /// A task preempted by a wake-up runs next, CFS.
    LastBuddy,
    /// A waking task may preempt the running one.
    WakeupPreemption,
    /// The period grows with all fair tasks of the CPU, CFS.
    AltPeriod,
    /// No slice is shorter than the minimum granularity, CFS.
    BaseSlice,
    /// A task that comes keeps its lag.
    PlaceLag,
    /// A new task's first deadline is half a slice away.
    PlaceDeadlineInitial,
    /// Deadlines survive a move as distances.
    PlaceRelDeadline,
    /// A picked task is protected until its request is done.
    RunToParity,
    /// A waking task with a shorter slice ends protection.
    PreemptShort,
    /// A sleeper with negative lag stays queued.
    DelayDequeue,
    /// A sleeper that stayed queued keeps no positive lag.
    DelayZero,
    /// An eligible buddy is picked before all others.
    PickBuddy,
    /// The buddy of a queue counts as cache-hot.
    CacheHotBuddy,
    /// Idle CPUs decide whether a task wakes on the waker's CPU.
    WaIdle,
    /// Loads do, where idle CPUs do not.
    WaWeight,
    /// The load of the previous CPU counts for some percent more.
    WaBias,
    /// The busier a cache, the fewer of its CPUs a wake-up looks at.
    SisUtil,
    /// Balancing leaves light tasks.
    LbMin,
    /// A CPU short of real-time work has others push.
    RtPushIpi,
    /// CPUs lend each other real-time runtime.
    RtRuntimeShare,
}

impl SchedFeature {
    /// Every feature.
    pub const ALL: [Self; 23] = [
        Self::GentleFairSleepers,
        Self::StartDebit,
        Self::NextBuddy,
        Self::LastBuddy,
        Self::WakeupPreemption,
        Self::AltPeriod,
        Self::BaseSlice,
        Self::PlaceLag,
        Self::PlaceDeadlineInitial,
        Self::PlaceRelDeadline,
        Self::RunToParity,
        Self::PreemptShort,
        Self::DelayDequeue,
        Self::DelayZero,
        Self::PickBuddy,
        Self::CacheHotBuddy,
        Self::WaIdle,
        Self::WaWeight,
        Self::WaBias,
        Self::SisUtil,
        Self::LbMin,
        Self::RtPushIpi,
        Self::RtRuntimeShare,
    ];

    /// Its name in the kernel's file, and of the tunable of a modelled scheduler.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GentleFairSleepers => "GENTLE_FAIR_SLEEPERS",
            Self::StartDebit => "START_DEBIT",
            Self::NextBuddy => "NEXT_BUDDY",
            Self::LastBuddy => "LAST_BUDDY",
            Self::WakeupPreemption => "WAKEUP_PREEMPTION",
            Self::AltPeriod => "ALT_PERIOD",
            Self::BaseSlice => "BASE_SLICE",
            Self::PlaceLag => "PLACE_LAG",
            Self::PlaceDeadlineInitial => "PLACE_DEADLINE_INITIAL",
            Self::PlaceRelDeadline => "PLACE_REL_DEADLINE",
            Self::RunToParity => "RUN_TO_PARITY",
            Self::PreemptShort => "PREEMPT_SHORT",
            Self::DelayDequeue => "DELAY_DEQUEUE",
            Self::DelayZero => "DELAY_ZERO",
            Self::PickBuddy => "PICK_BUDDY",
            Self::CacheHotBuddy => "CACHE_HOT_BUDDY",
            Self::WaIdle => "WA_IDLE",
            Self::WaWeight => "WA_WEIGHT",
            Self::WaBias => "WA_BIAS",
            Self::SisUtil => "SIS_UTIL",
            Self::LbMin => "LB_MIN",
            Self::RtPushIpi => "RT_PUSH_IPI",
            Self::RtRuntimeShare => "RT_RUNTIME_SHARE",
        }
    }

    /// The feature that a word of the kernel's file names, and whether it is on: `NAME` or
    /// `NO_NAME`.
    pub fn of_word(word: &str) -> Option<(Self, bool)> {
        let (name, is_on) = match word.strip_prefix("NO_") {
            Some(name) => (name, false),
            None => (word, true),
        };
        let found = Self::ALL.into_iter().find(|feature| feature.name() == name)?;
        Some((found, is_on))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_feature() {
        for feature in SchedFeature::ALL {
            assert_eq!(SchedFeature::of_word(feature.name()), Some((feature, true)));
            let off = format!("NO_{}", feature.name());
            assert_eq!(SchedFeature::of_word(&off), Some((feature, false)));
        }
        assert_eq!(SchedFeature::of_word("HRTICK"), None);
    }
}
