// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the deadline class. `dl_period_min` and `dl_period_max` follow the files
//! `sched_deadline_period_min_us` and `sched_deadline_period_max_us` of /proc/sys/kernel.

use super::cbs::to_ratio;
use crate::options::{Options, Tunable, TunableKind};
use crate::rt::tunables::{Bandwidth, RT_PERIOD, RT_RUNTIME, RtOptions};
use schedlab_model::Nanos;
use schedlab_model::time::{NSEC_PER_SEC, NSEC_PER_USEC};

/// Shortest period.
pub const DL_PERIOD_MIN: Tunable = Tunable {
    name: "dl_period_min",
    kind: TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    default: 100 * NSEC_PER_USEC,
    text: "shortest period of a DEADLINE task",
};

/// Longest period.
pub const DL_PERIOD_MAX: Tunable = Tunable {
    name: "dl_period_max",
    kind: TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    default: (1 << 22) * NSEC_PER_USEC,
    text: "longest period of a DEADLINE task",
};

/// Tunables of the class.
pub const TUNABLES: &[Tunable] = &[DL_PERIOD_MIN, DL_PERIOD_MAX];

/// Settings of the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlOptions {
    /// Shortest period.
    pub period_min: Nanos,
    /// Longest period.
    pub period_max: Nanos,
    /// What may be in use on each CPU, in 2^-20 (`sched_rt_runtime_us`); `None`: anything.
    pub bandwidth: Option<u64>,
    /// What the fair server of each CPU uses of that.
    pub server_bandwidth: u64,
}

impl DlOptions {
    /// The settings of a stack that declares [`TUNABLES`] and those of the real-time class.
    pub fn from_options(options: &Options) -> Self {
        let rt = RtOptions::from_options(options);
        let global = to_ratio(options.get(RT_PERIOD.name), options.get(RT_RUNTIME.name));
        Self {
            period_min: options.get(DL_PERIOD_MIN.name),
            period_max: options.get(DL_PERIOD_MAX.name),
            bandwidth: (rt.bandwidth != Bandwidth::Off).then_some(global),
            server_bandwidth: match rt.bandwidth {
                Bandwidth::FairServer { runtime, period } => to_ratio(period, runtime),
                _ => 0,
            },
        }
    }
}

impl Default for DlOptions {
    /// The defaults of a kernel without fair servers.
    fn default() -> Self {
        Self {
            period_min: DL_PERIOD_MIN.default,
            period_max: DL_PERIOD_MAX.default,
            bandwidth: Some(to_ratio(RT_PERIOD.default, RT_RUNTIME.default)),
            server_bandwidth: 0,
        }
    }
}
