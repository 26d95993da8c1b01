// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry entries of the two schedulers, and their settings.

use super::Staircase;
use crate::balance::early::CACHE_HOT;
use crate::boundary::core::Core;
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::kernels;
use crate::scheduler::{Claims, Make, Scheduler};
use schedlab_model::time::NSEC_PER_USEC;
use schedlab_model::{Costs, KernelVersion, Machine, Nanos};

/// SD or RSDL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rules {
    Rsdl,
    Sd,
}

/// Interval of both, ms.
const RR_INTERVAL_DEFAULT: u64 = 6;

const RR_INTERVAL: Tunable = Tunable::new(
    "rr_interval",
    TunableKind::Count { min: 0, max: 5_000 },
    0,
    "time in a slot in ms at nice 0, half of it above, more below -6 (kernel.rr_interval); \
           0: 6 times 1 + log2 of the number of CPUs",
);

const INTERACTIVE: Tunable = Tunable::new(
    "interactive",
    TunableKind::words(&["no", "yes"]),
    1,
    "whether only its own history bounds the slots of a task that wakes, or also the slot \
           that its nice value has reached (kernel.interactive)",
);

const SYNC_WAKEUPS: Tunable = Tunable::new(
    "sync_wakeups",
    TunableKind::words(&["no", "yes"]),
    0,
    "whether a synchronous wake-up on the waker's CPU preempts nobody; the modelled pipes \
           and sockets are those of recent kernels, whose every write is synchronous; in 2.6 only \
           one that blocks was",
);

pub(super) fn honours_sync(options: &Options) -> bool {
    options.get(&SYNC_WAKEUPS.name) == 1
}

impl Rules {
    /// Name of the class.
    pub const fn class_name(self) -> &'static str {
        match self {
            Self::Rsdl => "rsdl",
            Self::Sd => "sd",
        }
    }

    /// The interval: ms (SD), ticks (RSDL).
    pub fn interval(self, options: &Options, machine: &Machine) -> i64 {
        match self {
            Self::Rsdl => (RR_INTERVAL_DEFAULT * u64::from(machine.hz) / 1_000).max(1) as i64,
            Self::Sd => match options.get(&RR_INTERVAL.name) {
                0 => (RR_INTERVAL_DEFAULT * u64::from(1 + machine.nr_cpus().ilog2())) as i64,
                ms => ms as i64,
            },
        }
    }

    /// Whether SD's tunable `interactive` is on.
    pub fn interactive(self, options: &Options) -> bool {
        self == Self::Sd && options.get(&INTERACTIVE.name) == 1
    }

    /// Unit of the time in a slot.
    pub fn unit_ns(self, core: &Core) -> Nanos {
        match self {
            Self::Rsdl => core.tick_nsec,
            Self::Sd => NSEC_PER_USEC,
        }
    }
}

/// The kernel that the newest of the patches is for.
pub(super) const NEWEST: KernelVersion = KernelVersion::release(2, 6, 22);

const CLAIMS: Claims = Claims {
    // With domains an idle CPU searches when an interval is over, and uses averages of loads.
    work_conserving: false,
    starvation_free: true,
    fair: true,
    needs_burst: false,
};

/// SD 0.48, as in 2.6.22-ck1.
pub fn sd_0_48() -> Scheduler {
    Scheduler {
        name: "sd-0.48".into(),
        summary: "Staircase Deadline 0.48 (2.6.22-ck1): 40 slots a rotation, no measuring of sleep"
            .into(),
        source: "2.6.22-ck1 (Con Kolivas) on Linux 2.6.22, kernel/sched.c; several CPUs as \
             linux-2.6.22, with the weights of the patch; from memory: which priority of a CPU \
             counts when tasks are moved"
            .into(),
        leaves_out: "SCHED_ISO; the tick that nanosleep adds, NUMA nodes, priority inheritance, \
                 control groups, the measured cache_hot_time; a program is taken to exec when the \
                 launcher releases it"
            .into(),
        claims: CLAIMS,
        preempt: kernels::preempt(NEWEST),
        costs: Costs::DEFAULT,
        tunables: vec![RR_INTERVAL, INTERACTIVE, SYNC_WAKEUPS, CACHE_HOT],
        digest: None,
        make: Make::new(|options, machine, _| {
            vec![Box::new(Staircase::new(Rules::Sd, options, machine))]
        }),
    }
}

/// RSDL 0.31, partly from memory.
pub fn rsdl_0_31() -> Scheduler {
    Scheduler {
        name: "rsdl-0.31".into(),
        summary: "Rotating Staircase Deadline: quotas of tasks and of levels (partly from memory)"
            .into(),
        source: "announcement of RSDL (linux-kernel, 4 March 2007); LWN, The Rotating Staircase \
             Deadline Scheduler; its code was not found: constants and details are from memory; \
             several CPUs as linux-2.6.22, though it was a patch to 2.6.20 and 2.6.21-rc"
            .into(),
        leaves_out:
            "uncertain: RR_INTERVAL of 6 ms, quotas below nice -6, where a level's rest goes, \
                 fork and yield (those of SD are taken), turns of SCHED_RR; BATCH and IDLE are \
                 OTHER; left out: as sd-0.48"
                .into(),
        tunables: vec![SYNC_WAKEUPS, CACHE_HOT],
        make: Make::new(|options, machine, _| {
            vec![Box::new(Staircase::new(Rules::Rsdl, options, machine))]
        }),
        ..sd_0_48()
    }
}
