// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between the schedulers of the WRR class, as data, and their registry entries.

use super::WrrClass;
use super::transition::DrawRule;
use crate::SchedClass;
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::fair::{FairClass, rules::Rules, tunables as fair};
use crate::rt::{RtClass, RtOptions, tunables as rt};
use crate::scheduler::{Claims, Make, Scheduler};
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC};
use schedlab_model::{CgroupSpec, Costs, Machine, Policy, Preempt};

/// When a task that has used up its slice gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refill {
    /// Before it moves: the task gets the slice of its old priority.
    BeforeMove,
    /// After it has moved: the task gets the slice of its new priority.
    AfterMove,
}

/// One scheduler's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    /// Whether control groups are entities.
    pub groups: bool,
    /// Whether the user's priority is the number of the list, so that 0 is best; otherwise the
    /// number is 99 minus the priority.
    pub user_priority_is_index: bool,
    /// Whether a waking task preempts if its priority is worse (a defect of the code).
    pub preempts_if_worse: bool,
    /// Rule of the draws after slices, which grow by decile (RMLFQ); `None`: no draws.
    pub draws: Option<DrawRule>,
    /// When a used-up slice is renewed.
    pub refill: Refill,
    /// Whether sched_yield draws too.
    pub yield_draws: bool,
}

const BASIC: Variant = Variant {
    groups: false,
    user_priority_is_index: false,
    preempts_if_worse: false,
    draws: None,
    refill: Refill::AfterMove,
    yield_draws: false,
};

/// The tasks that belong to the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Members {
    Other,
    Rr,
}

impl Members {
    pub fn from_options(options: &Options) -> Self {
        if options.get(&MEMBERS.name) == 0 { Self::Other } else { Self::Rr }
    }

    pub const fn policy(self) -> Policy {
        match self {
            Self::Other => Policy::Normal,
            Self::Rr => Policy::Rr,
        }
    }
}

/// The policy that represents the study's SCHED_WRR.
pub(super) const MEMBERS: Tunable = Tunable::new(
    "members",
    TunableKind::words(&["other", "rr"]),
    0,
    "whose tasks are the class's, as SCHED_WRR is no policy of Linux: those of SCHED_OTHER, \
           all of one priority, or those of SCHED_RR with their own",
);

/// User priority of tasks without their own.
pub(super) const PRIORITY: Tunable = Tunable::new(
    "priority",
    TunableKind::Count { min: 0, max: 99 },
    99,
    "members=other: user priority of every member (sched_priority); the study's programs set \
           99",
);

/// Slice of foreground tasks.
pub(super) const SLICE_FOREGROUND: Tunable = Tunable::new(
    "slice_foreground",
    TunableKind::Time { min: NSEC_PER_MSEC, max: 3_600 * NSEC_PER_SEC },
    100 * NSEC_PER_MSEC,
    "slice of tasks in the foreground, cut to whole ticks, at least one; under rmlfq that of \
           the first decile, and what each further one adds",
);

/// Slice of background tasks.
pub(super) const SLICE_BACKGROUND: Tunable = Tunable::new(
    "slice_background",
    TunableKind::Time { min: NSEC_PER_MSEC, max: 3_600 * NSEC_PER_SEC },
    10 * NSEC_PER_MSEC,
    "slice of tasks in the background, cut to whole ticks, at least one: those in a control \
     group whose path has b as its second character, such as /bg_non_interactive",
);

const OWN: &[Tunable] = &[MEMBERS, PRIORITY, SLICE_FOREGROUND, SLICE_BACKGROUND];

fn stack(
    variant: Variant,
    options: &Options,
    machine: &Machine,
    cgroups: &[CgroupSpec],
) -> Vec<Box<dyn SchedClass>> {
    let rt = RtClass::new(&RtOptions::from_options(options), machine);
    let rt = if Members::from_options(options) == Members::Rr { rt.without_rr() } else { rt };
    vec![
        Box::new(rt),
        Box::new(WrrClass::new(variant, options, machine, cgroups)),
        Box::new(FairClass::new(Rules::LINUX_6_1, options, machine, cgroups)),
    ]
}

const CLAIMS: Claims = Claims {
    // A task preempted by a real-time task waits on its CPU, even if another CPU is idle.
    work_conserving: false,
    starvation_free: true,
    fair: true,
    needs_burst: false,
};

/// Foreground 100 ms, background 10 ms, first in, first out.
pub fn wrr() -> Scheduler {
    Scheduler {
        name: "wrr".into(),
        summary:
            "weighted round robin: real-time > WRR (100 ms foreground, 10 ms background) > fair"
                .into(),
        source: "Zenan Li: In Search of an Efficient Linux Process Scheduler (2021), Basic WRR as \
             designed"
            .into(),
        leaves_out:
            "SCHED_WRR is SCHED_OTHER or SCHED_RR; priority inheritance within the class; the \
                 study has one CPU: choice of CPU and pulling are the lab's; the classes around it \
                 are those of Linux 6.1, not 3.4"
                .into(),
        claims: CLAIMS,
        preempt: Preempt::Full,
        costs: Costs::DEFAULT,
        tunables: [OWN, fair::CFS, rt::TUNABLES].concat(),
        digest: None,
        make: Make::new(|options, machine, cgroups| stack(BASIC, options, machine, cgroups)),
    }
}

/// Control groups as entities.
pub fn group_wrr() -> Scheduler {
    Scheduler {
        name: "group-wrr".into(),
        summary:
            "WRR with control groups as entities: each group its turn, however many tasks it has"
                .into(),
        source: "Zenan Li: In Search of an Efficient Linux Process Scheduler (2021), Group WRR as \
             designed; its code cannot work"
            .into(),
        leaves_out:
            "as wrr; uncertain, for the study does not say: a group has the best priority of \
                 what it holds and no slice of its own; cpu.weight does not count"
                .into(),
        make: Make::new(|options, machine, cgroups| {
            stack(Variant { groups: true, ..BASIC }, options, machine, cgroups)
        }),
        ..wrr()
    }
}

/// The code of Basic WRR.
pub fn basic_wrr_as_built() -> Scheduler {
    Scheduler {
        name: "basic-wrr-as-built".into(),
        summary:
            "WRR as its code is: user priority 0 is best, a waking task preempts if it is worse"
                .into(),
        source: "Zenan Li: In Search of an Efficient Linux Process Scheduler (2021), wrr_basic.c"
            .into(),
        make: Make::new(|options, machine, cgroups| {
            let variant =
                Variant { user_priority_is_index: true, preempts_if_worse: true, ..BASIC };
            stack(variant, options, machine, cgroups)
        }),
        ..wrr()
    }
}

const RMLFQ_CLAIMS: Claims = Claims {
    // Only the running task moves, and at random.
    starvation_free: false,
    fair: false,
    ..CLAIMS
};

/// The text's RMLFQ.
pub fn rmlfq_design() -> Scheduler {
    Scheduler {
        name: "rmlfq-design".into(),
        summary: "WRR with slices of 100 to 1,000 ms by priority and random moves, as designed"
            .into(),
        source: "Zenan Li: In Search of an Efficient Linux Process Scheduler (2021), section 3.3"
            .into(),
        leaves_out: "as wrr; uncertain readings: the slice is that of the priority moved to, \
                 sched_yield does not draw"
            .into(),
        claims: RMLFQ_CLAIMS,
        make: Make::new(|options, machine, cgroups| {
            let variant = Variant { draws: Some(DrawRule::Design), ..BASIC };
            stack(variant, options, machine, cgroups)
        }),
        ..wrr()
    }
}

const fn as_built(rule: DrawRule) -> Variant {
    Variant { draws: Some(rule), refill: Refill::BeforeMove, yield_draws: true, ..BASIC }
}

/// The code's RMLFQ without overflow.
pub fn rmlfq_as_built_64() -> Scheduler {
    Scheduler {
        name: "rmlfq-as-built-64".into(),
        summary: "RMLFQ as its code is, on a machine whose unsigned long does not overflow in it"
            .into(),
        source: "Zenan Li: In Search of an Efficient Linux Process Scheduler (2021), wrr_RMLFQ.c"
            .into(),
        leaves_out: "as wrr; uncertain: the constants of the build that the study measured (its \
                 figure 10 shows a slice that the code does not give)"
            .into(),
        make: Make::new(|options, machine, cgroups| {
            stack(as_built(DrawRule::AsBuilt64), options, machine, cgroups)
        }),
        ..rmlfq_design()
    }
}

/// The code's RMLFQ as a 32-bit compiler of its time made it.
pub fn rmlfq_as_built_32() -> Scheduler {
    Scheduler {
        name: "rmlfq-as-built-32".into(),
        summary:
            "RMLFQ as its code is with 32-bit unsigned long: promoted 1 time in 10, else demoted"
                .into(),
        leaves_out:
            "as wrr; uncertain: the compiler of the study's kernel, which decides whether the \
                 products wrap, and the constants of the build that it measured"
                .into(),
        make: Make::new(|options, machine, cgroups| {
            stack(as_built(DrawRule::AsBuilt32), options, machine, cgroups)
        }),
        ..rmlfq_as_built_64()
    }
}
