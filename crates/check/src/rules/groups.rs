// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds of each group throughout a run, although tasks may change it.

use super::Context;
use schedlab_model::weights::group_weight;
use schedlab_model::{CgroupId, Change};

/// Facts about one group.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// Least and greatest weight that it ever has.
    weights: (u64, u64),
    /// Whether it or a group above it ever has a limit.
    is_limited: bool,
}

/// Facts about all groups, by number.
#[derive(Clone, Debug)]
pub(super) struct Groups(Vec<Facts>);

impl Groups {
    /// The groups of a case.
    pub fn of(context: &Context<'_>) -> Self {
        let ids = (0..context.workload().cgroups.len() as u32).map(CgroupId);
        let facts = |group| Facts {
            weights: weights(context, group),
            is_limited: context.is_limited(group),
        };
        Self(ids.map(facts).collect())
    }

    /// Whether `group` or a group above it ever has a limit of CPU time.
    pub fn is_limited(&self, group: CgroupId) -> bool {
        self.0[group.index()].is_limited
    }

    /// Least weight that `group` ever has.
    pub fn least_weight(&self, group: CgroupId) -> u64 {
        self.0[group.index()].weights.0
    }

    /// Greatest weight that `group` ever has.
    pub fn most_weight(&self, group: CgroupId) -> u64 {
        self.0[group.index()].weights.1
    }

    /// Whether the weight of `group` stays the same.
    pub fn keeps_weight(&self, group: CgroupId) -> bool {
        self.least_weight(group) == self.most_weight(group)
    }
}

fn weights(context: &Context<'_>, group: CgroupId) -> (u64, u64) {
    let spec = &context.workload().cgroups[group.index()];
    let later = context.workload().changes().filter_map(|change| match change {
        Change::Weight { group: of, .. } if *of == group => {
            let mut changed = spec.clone();
            change.apply(&mut changed);
            Some(group_weight(&changed))
        }
        _ => None,
    });
    let first = group_weight(spec);
    later.fold((first, first), |(least, most), one| (least.min(one), most.max(one)))
}
