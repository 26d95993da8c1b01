// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes of a plan about this machine and a study.

use schedlab_run::LaneKind;
use std::fmt;

/// Something in a study that this machine cannot do, or does differently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// An experiment needs more CPUs than the runs may use.
    TooFewCpus {
        /// Name of the experiment.
        experiment: String,
        /// CPUs needed.
        needed: u32,
        /// CPUs that runs may use.
        available: u32,
    },
    /// No run is possible in virtual machines, for this reason.
    NoGuests(String),
    /// This machine's kernel, of this release, has no model in the study; `None`: release unknown.
    NoModel(Option<String>),
    /// No pair of the study is left for this lane.
    NoPair(LaneKind),
    /// A set of random workloads is for several CPUs, and this lane measures one CPU only.
    OneCpuOnly {
        /// Name of the set.
        set: String,
        /// The lane.
        lane: LaneKind,
    },
    /// Models differ from a kernel in ticks per second.
    OtherHz {
        /// Name of the experiment.
        experiment: String,
        /// Ticks a second of the models.
        models: Vec<u32>,
        /// Name of the kernel.
        kernel: String,
        /// Its ticks a second.
        hz: u32,
    },
}

impl Note {
    /// Whether the note explains why a lane has no runs of the experiments that `is_about` selects.
    pub fn excuses(&self, lane: LaneKind, is_about: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::TooFewCpus { experiment, .. } => lane == LaneKind::Host && is_about(experiment),
            Self::NoGuests(_) => lane == LaneKind::Vm,
            Self::OtherHz { .. } | Self::NoModel(_) | Self::NoPair(_) | Self::OneCpuOnly { .. } => {
                false
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewCpus { experiment, needed, available } => write!(
                f,
                "{experiment} is not measured: it needs {needed} CPUs, here are {available}"
            ),
            Self::NoGuests(why) => write!(f, "runs in virtual machines are left out: {why}"),
            Self::NoModel(Some(release)) => {
                write!(f, "lane host: this machine's kernel {release} has no model")
            }
            Self::NoModel(None) => f.write_str("lane host: this machine's kernel is not known"),
            Self::NoPair(lane) => write!(f, "lane {lane}: no kernel is left"),
            Self::OneCpuOnly { set, lane } => {
                write!(f, "{set} is not measured in lane {lane}: its cases have several CPUs")
            }
            Self::OtherHz { experiment, models, kernel, hz } => {
                let models: Vec<String> = models.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "{experiment}: models have HZ {}, kernel {kernel} in a guest has HZ {hz}: \
                     slices that end at ticks differ by that",
                    models.join(", ")
                )
            }
        }
    }
}
