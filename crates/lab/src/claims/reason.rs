// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a check of a claim has no answer.

use super::Disturbed;
use crate::plan::Note;
use serde::{Serialize, Serializer};
use std::fmt;

/// Why a check has no answer. In JSON it appears as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A run failed, with the lane's message.
    RunFailed(String),
    /// A quick reproduction leaves the experiment out.
    NotInQuick,
    /// This machine cannot make the runs.
    NotHere(Note),
    /// The expression has no value, and this is missing.
    NoValue(String),
    /// One repetition gives no interval.
    OneRepetition,
    /// Other load used the CPUs during some of these runs.
    Disturbed {
        /// The disturbed runs.
        by: Disturbed,
        /// Number of runs behind the number.
        nr_runs: usize,
    },
    /// A bound is within the interval.
    BoundAcross,
    /// One pair of runs gives no interval for this task.
    OnePair {
        /// The task.
        unit: String,
    },
    /// The tolerance is within the interval of this task.
    ToleranceAcross(String),
    /// Runs of one seed differ in more than the place.
    Mixed {
        /// The seed.
        seed: u64,
    },
    /// Only one of the two runs has this task.
    NotInBoth {
        /// The task.
        unit: String,
    },
    /// No task has this value.
    NoTask,
    /// The tasks got less CPU time than those of the other runs, because other programs used the
    /// CPUs.
    Crowded {
        /// Share of that CPU time, in percent.
        percent: u32,
    },
    /// No wrong model was run.
    NoWrongModel,
    /// The comparison accepts a wrong model.
    Accepts {
        /// The wrong model, with its tunables.
        model: String,
        /// The workload.
        workload: String,
    },
    /// No setting was tried.
    NoKnob,
    /// A setting does not move the number.
    DoesNotMove {
        /// The setting.
        knob: String,
        /// The workload.
        workload: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunFailed(text) | Self::NoValue(text) => f.write_str(text),
            Self::NotInQuick => f.write_str("a quick reproduction leaves it out"),
            Self::NotHere(note) => note.fmt(f),
            Self::OneRepetition => f.write_str("one repetition has no interval: repeat it"),
            Self::Disturbed { by, nr_runs } => write!(
                f,
                "{} of {nr_runs} runs were disturbed, so this does not count against the claim: {}",
                by.nr_runs, by.text
            ),
            Self::BoundAcross => {
                f.write_str("a bound lies within the interval: more repetitions tell")
            }
            Self::OnePair { unit } => write!(f, "{unit}: one pair of runs has no interval"),
            Self::ToleranceAcross(unit) => {
                write!(f, "the tolerance lies within the interval of {unit}")
            }
            Self::Mixed { seed } => write!(
                f,
                "several runs of seed {seed} differ in more than their place: give `where`"
            ),
            Self::NotInBoth { unit } => write!(f, "only one of the two runs has {unit}"),
            Self::NoTask => f.write_str("no task has such a value"),
            Self::Crowded { percent } => write!(
                f,
                "others used this machine: the tasks got {percent} % of the CPU time of the model's"
            ),
            Self::NoWrongModel => {
                f.write_str("no wrong model was run that it would have to reject")
            }
            Self::Accepts { model, workload } => write!(f, "it accepts {model} under {workload}"),
            Self::NoKnob => f.write_str("no setting was tried that would have to move it"),
            Self::DoesNotMove { knob, workload } => {
                write!(f, "{knob} does not move it under {workload}")
            }
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
