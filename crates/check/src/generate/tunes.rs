// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables that tasks set during a run.

use super::{Draft, Draw, Feature};
use crate::tree::Node;
use schedlab_model::Op;
use schedlab_model::program::{SchedFeature, SchedTunable};
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US};
use schedlab_sched::Scheduler;

/// A set of tunables and features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunes(u32);

impl Tunes {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Every tunable, then every feature.
    fn each() -> impl Iterator<Item = SchedTunable> {
        SchedTunable::ALL.into_iter().chain(SchedFeature::ALL.map(SchedTunable::Feature))
    }

    /// Those that a modelled kernel has.
    pub fn of(scheduler: &Scheduler) -> Self {
        let has = |tunable: &SchedTunable| {
            scheduler.tunables.iter().any(|known| known.name == tunable.model_name())
        };
        let bits = (0..).zip(Self::each()).filter(|(_, tunable)| has(tunable));
        Self(bits.fold(0, |all, (bit, _)| all | 1 << bit))
    }

    /// Those that both have.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn list(self) -> Vec<SchedTunable> {
        let is_in = |bit: u32| self.0 >> bit & 1 == 1;
        (0..).zip(Self::each()).filter(|(bit, _)| is_in(*bit)).map(|(_, one)| one).collect()
    }
}

impl Draw {
    /// Lets tasks set tunables, in one of two cases that may.
    pub(super) fn tune(&mut self, drafts: &mut [Draft], tunes: Tunes) {
        let mut tunables = tunes.list();
        let is_rt =
            |one: &SchedTunable| matches!(one, SchedTunable::RtRuntime | SchedTunable::RtPeriod);
        if self.has(Feature::Deadline) {
            // Models do not admit DEADLINE tasks while the limit changes.
            tunables.retain(|one| !is_rt(one));
        } else if self.has(Feature::RealTime) && tunables.iter().any(is_rt) && self.one_in(2) {
            tunables.retain(is_rt);
        }
        if !self.has(Feature::Tunes) || tunables.is_empty() || !self.one_in(2) {
            return;
        }
        for _ in 0..1 + self.below(3) {
            let tunable = self.choose(&tunables);
            let index = self.below(drafts.len() as u64) as usize;
            // One value, or two in turn.
            for _ in 0..1 + self.below(2) {
                let value = self.tuned(tunable);
                let run = Op::Run(self.amount_of_work());
                let body = &mut drafts[index].body;
                body.push(Node::Op(Op::Tune { tunable, value }));
                body.push(Node::Op(run));
            }
        }
    }

    /// A value that the kernel takes, whatever the others are.
    fn tuned(&mut self, tunable: SchedTunable) -> u64 {
        match tunable {
            SchedTunable::BaseSlice | SchedTunable::MinGranularity => {
                self.choose(&[100 * US, 700 * US, 750 * US, 3 * MS, 10 * MS])
            }
            SchedTunable::Latency => self.choose(&[750 * US, 6 * MS, 24 * MS]),
            SchedTunable::WakeupGranularity => self.choose(&[0, MS, 4 * MS]),
            SchedTunable::MigrationCost => self.choose(&[0, 500 * US, 5 * MS]),
            SchedTunable::NrMigrate => self.choose(&[1, 8, 32]),
            SchedTunable::BandwidthSlice => self.choose(&[MS, 5 * MS, 20 * MS]),
            SchedTunable::RtRuntime => {
                self.choose(&[20 * MS, 100 * MS, 500 * MS, SchedTunable::NO_LIMIT])
            }
            SchedTunable::RtPeriod => self.choose(&[1_000 * MS, 2_000 * MS]),
            SchedTunable::Feature(_) => self.below(2),
        }
    }
}
