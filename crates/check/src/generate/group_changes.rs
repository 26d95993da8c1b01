// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of groups during a run.

use super::{Draft, Draw, Feature};
use crate::tree::Node;
use schedlab_model::{CgroupId, Change, CpuId, CpuMask, Op, Policy, SchedAttr};

/// Weights that a group may have.
pub(super) const WEIGHTS: [u32; 7] = [1, 20, 99, 101, 300, 1_000, 10_000];

impl Draw {
    /// Lets tasks change groups, in one of two cases that may.
    pub(super) fn change_groups(&mut self, drafts: &mut [Draft]) {
        let nr_groups = self.workload.cgroups.len() as u64;
        if !self.has(Feature::GroupChanges) || nr_groups < 2 || !self.one_in(2) {
            return;
        }
        // An affinity outside the CPUs of the group is refused.
        let is_free = drafts.iter().all(|draft| attrs(draft).all(|attr| attr.affinity.is_none()));
        for _ in 0..1 + self.below(3) {
            let group = CgroupId(1 + self.below(nr_groups - 1) as u32);
            let change = match self.below(3) {
                0 if self.has(Feature::Quota) => {
                    let cpu_max = (!self.one_in(3)).then(|| self.cpu_max());
                    Change::CpuMax { group, cpu_max }
                }
                1 if is_free && self.nr_cpus > 1 => Change::Cpus { group, cpus: self.cpus() },
                _ => Change::Weight { group, weight: self.choose(&WEIGHTS) },
            };
            let index = self.below(drafts.len() as u64) as usize;
            let run = Op::Run(self.amount_of_work());
            let is_marked = self.has(Feature::Cpusets) && matches!(change, Change::Cpus { .. });
            let change = Op::Change(Box::new(change));
            match is_marked {
                true => drafts[index].push_marked(change),
                false => drafts[index].body.push(Node::Op(change)),
            }
            drafts[index].body.push(Node::Op(run));
        }
    }

    /// Gives groups CPUs of their own at the start. A task with an affinity might have none of
    /// them, and a DEADLINE task must have all.
    pub(super) fn confine_groups(&mut self, drafts: &[Draft]) {
        if !self.has(Feature::Cpusets) || self.nr_cpus < 2 {
            return;
        }
        let may = |attr: &SchedAttr| attr.affinity.is_none() && attr.policy != Policy::Deadline;
        if !drafts.iter().all(|draft| attrs(draft).all(may)) {
            return;
        }
        for group in 1..self.workload.cgroups.len() {
            if self.one_in(2) {
                self.workload.cgroups[group].cpus = self.cpus();
            }
        }
    }

    /// CPUs of a group: one, some or all.
    fn cpus(&mut self) -> Option<CpuMask> {
        let nr_cpus = self.nr_cpus;
        match self.below(3) {
            0 => None,
            1 => Some(CpuMask::only(CpuId(self.below(u64::from(nr_cpus)) as u32))),
            _ => {
                let bits = 1 + self.below((1 << nr_cpus.min(16)) - 1);
                Some((0..nr_cpus.min(16)).filter(|cpu| bits >> cpu & 1 == 1).map(CpuId).collect())
            }
        }
    }
}

/// All attributes that the tasks of a draft ever have.
fn attrs(draft: &Draft) -> impl Iterator<Item = &SchedAttr> {
    let later = draft.body.iter().filter_map(|node| match node {
        Node::Op(Op::SetAttr(attr)) => Some(&**attr),
        _ => None,
    });
    later.chain([&draft.spec.attr])
}
