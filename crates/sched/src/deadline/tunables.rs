// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the deadline class. `dl_period_min` and `dl_period_max` follow the files
//! `sched_deadline_period_min_us` and `sched_deadline_period_max_us` of /proc/sys/kernel, those of
//! the ext server `sched/ext_server/cpuN/runtime` and `period` of debugfs.

use super::cbs::to_ratio;
use super::fair_server::StopRule;
use super::grub::{GrubRule, ServersTaken};
use crate::boundary::hrtick::HrtickRule;
use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::rt::tunables::{Bandwidth, RT_PERIOD, RT_RUNTIME, RtOptions};
use schedlab_model::Nanos;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC};

/// Shortest period.
pub const DL_PERIOD_MIN: Tunable = Tunable::new(
    "dl_period_min",
    TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    100 * NSEC_PER_USEC,
    "shortest period of a DEADLINE task",
);

/// Longest period.
pub const DL_PERIOD_MAX: Tunable = Tunable::new(
    "dl_period_max",
    TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    (1 << 22) * NSEC_PER_USEC,
    "longest period of a DEADLINE task",
);

/// Whether a timer ends budgets (HRTICK_DL, a feature of kernel/sched/features.h).
pub const HRTICK_DL: Tunable = Tunable::new(
    "HRTICK_DL",
    TunableKind::words(&["no", "yes"]),
    0,
    "feature: a timer ends the budgets of DEADLINE tasks between ticks",
);

/// CPU time of starving sched_ext tasks.
pub const EXT_SERVER_RUNTIME: Tunable = Tunable::new(
    "ext_server_runtime",
    TunableKind::Time { min: 0, max: NSEC_PER_SEC },
    50 * NSEC_PER_MSEC,
    "fair-server: CPU time of starving sched_ext tasks in each ext_server_period; 0: none; \
           counted by admission",
);

/// Period of the ext server.
pub const EXT_SERVER_PERIOD: Tunable = Tunable::new(
    "ext_server_period",
    TunableKind::Time { min: NSEC_PER_MSEC, max: 4 * NSEC_PER_SEC },
    NSEC_PER_SEC,
    "fair-server: period of ext_server_runtime",
);

/// Tunables of the ext server.
pub const EXT_SERVER: &[Tunable] = &[EXT_SERVER_RUNTIME, EXT_SERVER_PERIOD];

/// Tunables of the class.
pub const TUNABLES: &[Tunable] = &[DL_PERIOD_MIN, DL_PERIOD_MAX, HRTICK_DL];

/// The differences between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlRules {
    /// The charge of a reclaiming task.
    pub grub: GrubRule,
    /// When a fair server stops; versions before 6.12 have none.
    pub server_stops: StopRule,
    /// Whether the ext server of each CPU counts, even if it has no tasks to serve.
    pub counts_ext_server: bool,
    /// How often the bandwidth of fair servers is taken from what tasks may reclaim.
    pub servers_taken: ServersTaken,
    /// Rule of the high-resolution tick.
    pub hrtick: HrtickRule,
    /// A bug that the version does not have.
    pub bug: Option<DlBug>,
}

/// A bug of the fair server. [`crate::bugs`] describes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DlBug {
    /// A server that is picked without a task to run yields the rest of its period.
    Yields,
    /// A server that stops because it has no task to run yields, too.
    StoppedYields,
    /// A server whose timer expires while there are no tasks is never queued again.
    Sticks,
}

impl DlRules {
    /// Linux 6.1.
    pub const LINUX_6_1: Self = Self {
        grub: GrubRule::Before6_5,
        server_stops: StopRule::LastLeaves,
        counts_ext_server: false,
        servers_taken: ServersTaken::Once,
        hrtick: HrtickRule::LINUX_6_1,
        bug: None,
    };
    /// Linux 6.6.
    pub const LINUX_6_6: Self =
        Self { grub: GrubRule::From6_5, hrtick: HrtickRule::LINUX_6_6, ..Self::LINUX_6_1 };
    /// Linux 6.12.
    pub const LINUX_6_12: Self = Self {
        servers_taken: ServersTaken::AtEachDomain,
        hrtick: HrtickRule::LINUX_6_12,
        ..Self::LINUX_6_6
    };
    /// Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        server_stops: StopRule::NobodyToRun,
        servers_taken: ServersTaken::Once,
        ..Self::LINUX_6_12
    };
    /// Linux 7.1.
    pub const LINUX_7_1: Self = Self {
        server_stops: StopRule::OrIdle,
        counts_ext_server: true,
        hrtick: HrtickRule::LINUX_7_1,
        ..Self::LINUX_6_18
    };
    /// Linux 7.2: the ext server counts only while a sched_ext scheduler is loaded
    /// (`dl_bw_attached`).
    pub const LINUX_7_2: Self = Self { counts_ext_server: false, ..Self::LINUX_7_1 };
}

/// Settings of the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlOptions {
    /// Shortest period.
    pub period_min: Nanos,
    /// Longest period.
    pub period_max: Nanos,
    /// Runtime and period that each CPU may use (`sched_rt_runtime_us`, `sched_rt_period_us`);
    /// `None`: no limit.
    pub limit: Option<(Nanos, Nanos)>,
    /// The fair server of each CPU: when it stops, its runtime and period; from 6.12 on.
    pub server: Option<(StopRule, Nanos, Nanos)>,
    /// Runtime and period of the ext server of each CPU. Without runtime it is inactive.
    pub ext_server: Option<(Nanos, Nanos)>,
    /// The charge of a reclaiming task.
    pub grub: GrubRule,
    /// See [`DlRules::servers_taken`].
    pub servers_taken: ServersTaken,
    /// The high-resolution tick, with the feature HRTICK_DL.
    pub hrtick: Option<HrtickRule>,
    /// A bug on purpose.
    pub bug: Option<DlBug>,
}

impl DlOptions {
    /// The settings of a stack that declares [`TUNABLES`] and those of the real-time class.
    pub fn from_options(options: &Options, rules: DlRules) -> Self {
        let rt = RtOptions::from_options(options);
        // A runtime of the whole period or more is the whole CPU: the kernel accepts no longer
        // runtime.
        let period = options.get(&RT_PERIOD.name);
        let runtime = options.get(&RT_RUNTIME.name).min(period);
        let has_servers = matches!(rt.bandwidth, Bandwidth::FairServer { .. });
        let ext_server = (has_servers && rules.counts_ext_server).then(|| {
            let period = options.get(&EXT_SERVER_PERIOD.name);
            (options.get(&EXT_SERVER_RUNTIME.name).min(period), period)
        });
        Self {
            period_min: options.get(&DL_PERIOD_MIN.name),
            period_max: options.get(&DL_PERIOD_MAX.name),
            limit: (rt.bandwidth != Bandwidth::Off).then_some((runtime, period)),
            server: match rt.bandwidth {
                Bandwidth::FairServer { runtime, period } => {
                    Some((rules.server_stops, runtime.min(period), period))
                }
                _ => None,
            },
            ext_server,
            grub: rules.grub,
            servers_taken: rules.servers_taken,
            hrtick: (options.get(&HRTICK_DL.name) == 1).then_some(rules.hrtick),
            bug: rules.bug,
        }
    }

    /// The part of it that the servers of each CPU use, in 2^-20 of a CPU.
    pub fn server_bandwidth(&self) -> u64 {
        let ext = self.ext_server.map_or(0, |(runtime, period)| to_ratio(period, runtime));
        self.server.map_or(0, |(_, runtime, period)| to_ratio(period, runtime)) + ext
    }

    /// [`DlOptions::limit`] in 2^-20 of a CPU.
    pub fn bandwidth(&self) -> Option<u64> {
        self.limit.map(|(runtime, period)| to_ratio(period, runtime))
    }
}

impl Default for DlOptions {
    /// The defaults of a kernel without fair servers.
    fn default() -> Self {
        Self {
            period_min: DL_PERIOD_MIN.default,
            period_max: DL_PERIOD_MAX.default,
            limit: Some((RT_RUNTIME.default, RT_PERIOD.default)),
            server: None,
            ext_server: None,
            grub: GrubRule::From6_5,
            servers_taken: ServersTaken::Once,
            hrtick: None,
            bug: None,
        }
    }
}
