// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the real-time class, for the tables of the stacks that contain it.
//!
//! Names follow the files of /proc/sys/kernel and debugfs: `sched_rr_timeslice_ms`,
//! `sched_rt_runtime_us`, `sched_rt_period_us`, `sched/fair_server/cpuN/runtime` and `period`.

use crate::boundary::options::{Options, Tunable, TunableKind};
use schedlab_model::Nanos;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC};

/// SCHED_RR slice.
pub const RR_TIMESLICE_MS: Tunable = Tunable::new(
    "rr_timeslice_ms",
    TunableKind::Count { min: 0, max: 100_000 },
    100,
    "slice of SCHED_RR tasks in ms, rounded up to whole ticks; 0 is the default of 100",
);

const WORDS: &[&str] = &["throttling", "off"];
const WORDS_6_12: &[&str] = &["throttling", "off", "fair-server"];

/// What keeps lower classes from starving, in kernels before 6.12.
pub const RT_BANDWIDTH: Tunable = Tunable::new(
    "rt_bandwidth",
    TunableKind::words(WORDS),
    0,
    "what keeps real-time tasks from starving others (off: sched_rt_runtime_us = -1)",
);

/// What keeps lower classes from starving, from 6.12 on.
pub const RT_BANDWIDTH_6_12: Tunable = Tunable::new(
    "rt_bandwidth",
    TunableKind::words(WORDS_6_12),
    2,
    "what keeps real-time tasks from starving others (kernels built with \
     CONFIG_RT_GROUP_SCHED throttle)",
);

/// Runtime of throttling.
pub const RT_RUNTIME: Tunable = Tunable::new(
    "rt_runtime",
    TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    950 * NSEC_PER_MSEC,
    "throttling: most CPU time of real-time tasks in each rt_period on each CPU; \
           as long as rt_period or longer: never throttled",
);

/// Period of throttling.
pub const RT_PERIOD: Tunable = Tunable::new(
    "rt_period",
    TunableKind::Time { min: NSEC_PER_USEC, max: 4_000 * NSEC_PER_SEC },
    NSEC_PER_SEC,
    "throttling: period of rt_runtime",
);

/// Runtime of the fair server.
pub const FAIR_SERVER_RUNTIME: Tunable = Tunable::new(
    "fair_server_runtime",
    TunableKind::Time { min: 0, max: 4 * NSEC_PER_SEC },
    50 * NSEC_PER_MSEC,
    "fair-server: CPU time of starving fair tasks in each fair_server_period; 0: none",
);

/// Period of the fair server.
pub const FAIR_SERVER_PERIOD: Tunable = Tunable::new(
    "fair_server_period",
    TunableKind::Time { min: 100 * NSEC_PER_USEC, max: 4 * NSEC_PER_SEC },
    NSEC_PER_SEC,
    "fair-server: period of fair_server_runtime",
);

const fn feature(name: &'static str, default: u64, text: &'static str) -> Tunable {
    Tunable::new(name, TunableKind::words(&["no", "yes"]), default, text)
}

/// Features of kernel/sched/features.h that the class uses; RT_PUSH_IPI is off from 7.1 on.
pub const FEATURES: &[Tunable] = &[
    feature(
        "RT_PUSH_IPI",
        1,
        "feature: a CPU short of real-time work has all CPUs with waiting ones push, \
         instead of pulling them",
    ),
    feature("RT_RUNTIME_SHARE", 0, "feature: CPUs lend each other the rt_runtime that they leave"),
];

/// Tunables of the class in kernels before 6.12.
pub const TUNABLES: &[Tunable] = &[RR_TIMESLICE_MS, RT_BANDWIDTH, RT_RUNTIME, RT_PERIOD];

/// Tunables of the class from 6.12 on.
pub const TUNABLES_6_12: &[Tunable] = &[
    RR_TIMESLICE_MS,
    RT_BANDWIDTH_6_12,
    RT_RUNTIME,
    RT_PERIOD,
    FAIR_SERVER_RUNTIME,
    FAIR_SERVER_PERIOD,
];

/// What keeps real-time tasks from starving the classes below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bandwidth {
    /// Nothing: a real-time hog keeps its CPU.
    Off,
    /// At most `runtime` of real-time execution in each `period` on each CPU.
    Throttling {
        /// Runtime (ns).
        runtime: Nanos,
        /// Period (ns).
        period: Nanos,
    },
    /// Starving fair tasks get `runtime` in each `period` on each CPU.
    FairServer {
        /// Runtime (ns).
        runtime: Nanos,
        /// Period (ns).
        period: Nanos,
    },
}

/// Settings of the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtOptions {
    /// SCHED_RR slice (ms); 0 means the default of 100.
    pub rr_timeslice_ms: u32,
    /// Protection of lower classes.
    pub bandwidth: Bandwidth,
    /// Whether RT_PUSH_IPI is on.
    pub push_ipi: bool,
    /// Whether RT_RUNTIME_SHARE is on.
    pub runtime_share: bool,
}

impl RtOptions {
    /// The settings of a stack that declares [`TUNABLES`] or [`TUNABLES_6_12`], and optionally
    /// [`FEATURES`]; without these both features are off.
    pub fn from_options(options: &Options) -> Self {
        // The newer list begins with the words of the older one.
        let bandwidth = match WORDS_6_12[options.get(&RT_BANDWIDTH.name) as usize] {
            "throttling" => Bandwidth::Throttling {
                runtime: options.get(&RT_RUNTIME.name),
                period: options.get(&RT_PERIOD.name),
            },
            "fair-server" if options.get(&FAIR_SERVER_RUNTIME.name) > 0 => Bandwidth::FairServer {
                runtime: options.get(&FAIR_SERVER_RUNTIME.name),
                period: options.get(&FAIR_SERVER_PERIOD.name),
            },
            _ => Bandwidth::Off,
        };
        let is_set = |name: &str| options.iter().any(|(known, value)| known == name && value == 1);
        Self {
            rr_timeslice_ms: options.get(&RR_TIMESLICE_MS.name) as u32,
            bandwidth,
            push_ipi: is_set("RT_PUSH_IPI"),
            runtime_share: is_set("RT_RUNTIME_SHARE"),
        }
    }

    /// SCHED_RR slice in ticks: by default 100 ms truncated to whole ticks (RR_TIMESLICE),
    /// otherwise the given time rounded up (msecs_to_jiffies).
    pub fn rr_timeslice_ticks(&self, hz: u32) -> u32 {
        let ticks = match self.rr_timeslice_ms {
            0 | 100 => 100 * hz / 1000,
            ms => (u64::from(ms) * u64::from(hz)).div_ceil(1000) as u32,
        };
        ticks.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Tunable> {
        [TUNABLES, FEATURES].concat()
    }

    #[test]
    fn words_mean_the_same_in_both_lists() {
        assert!(WORDS_6_12.starts_with(WORDS));
        let defaults = RtOptions::from_options(&Options::defaults(TUNABLES));
        let throttling = Bandwidth::Throttling { runtime: 950_000_000, period: 1_000_000_000 };
        let expected = RtOptions {
            rr_timeslice_ms: 100,
            bandwidth: throttling,
            push_ipi: false,
            runtime_share: false,
        };
        assert_eq!(defaults, expected);
        assert!(RtOptions::from_options(&Options::defaults(&all())).push_ipi);
        let mut options = Options::defaults(TUNABLES_6_12);
        let server = Bandwidth::FairServer { runtime: 50_000_000, period: 1_000_000_000 };
        assert_eq!(RtOptions::from_options(&options).bandwidth, server);
        options.set(TUNABLES_6_12, "rt_bandwidth", 1).unwrap();
        assert_eq!(RtOptions::from_options(&options).bandwidth, Bandwidth::Off);
    }

    #[test]
    fn slices_are_rounded_up_to_ticks() {
        let ticks = |ms, hz| {
            let options = RtOptions {
                rr_timeslice_ms: ms,
                bandwidth: Bandwidth::Off,
                push_ipi: false,
                runtime_share: false,
            };
            options.rr_timeslice_ticks(hz)
        };
        assert_eq!([ticks(100, 250), ticks(0, 250), ticks(100, 1000)], [25, 25, 100]);
        assert_eq!([ticks(10, 250), ticks(1, 100), ticks(30, 300)], [3, 1, 9]);
    }
}
