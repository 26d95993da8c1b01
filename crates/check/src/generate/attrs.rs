// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling attributes, at the start and during a run.

use super::{Draft, Draw, Feature};
use crate::tree::Node;
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US};
use schedlab_model::{CgroupId, CpuId, CpuMask, DeadlineParams, Op, Policy, SchedAttr};

impl Draw {
    /// Attributes of a task.
    pub(super) fn attr(&mut self) -> SchedAttr {
        let policy = self.policy();
        let mut attr = SchedAttr { policy, ..SchedAttr::default() };
        match policy {
            Policy::Fifo | Policy::Rr => attr.rt_priority = self.choose(&[1, 1, 2, 50, 99]),
            Policy::Deadline => attr.deadline = self.deadline(),
            _ => self.fair(&mut attr),
        }
        let is_bound = self.pins_all || self.one_in(2);
        if self.has(Feature::Affinity) && is_bound && policy != Policy::Deadline {
            attr.affinity = Some(self.affinity());
        }
        attr
    }

    fn policy(&mut self) -> Policy {
        let mut policies = vec![Policy::Normal; 3];
        for (feature, policy) in [
            (Feature::Batch, Policy::Batch),
            (Feature::Idle, Policy::Idle),
            (Feature::RealTime, Policy::Fifo),
            (Feature::RealTime, Policy::Rr),
            (Feature::Deadline, Policy::Deadline),
        ] {
            if self.has(feature) {
                policies.push(policy);
            }
        }
        self.choose(&policies)
    }

    fn fair(&mut self, attr: &mut SchedAttr) {
        if self.has(Feature::Nice) && self.one_in(2) {
            attr.nice = self.choose(&[-20, -10, -1, 0, 1, 5, 10, 19]);
        }
        let may_slice = matches!(attr.policy, Policy::Normal | Policy::Batch);
        if self.has(Feature::Slices) && may_slice && self.one_in(2) {
            attr.slice_ns = Some(self.choose(&[100 * US, 700 * US, 3 * MS, 10 * MS, 100 * MS]));
        }
        let nr_groups = self.workload.cgroups.len() as u64;
        attr.cgroup = match self.below(4) {
            0 => CgroupId(self.below(nr_groups) as u32),
            1 => ROOT_CGROUP,
            _ => self.home,
        };
    }

    /// At most a quarter of a CPU, so that two are always admitted.
    fn deadline(&mut self) -> DeadlineParams {
        let runtime_ns = self.choose(&[100 * US, 500 * US, MS, 3 * MS, 5 * MS]);
        let period_ns = runtime_ns * self.choose(&[5, 7, 10, 20]);
        let deadline_ns = if self.one_in(2) { period_ns } else { period_ns / 2 };
        let reclaim = self.one_in(4);
        DeadlineParams { runtime_ns, deadline_ns, period_ns, reclaim }
    }

    fn affinity(&mut self) -> CpuMask {
        let nr_cpus = u64::from(self.nr_cpus);
        if self.pins_all || self.one_in(2) || nr_cpus < 2 {
            return CpuMask::only(CpuId(self.below(nr_cpus) as u32));
        }
        let first = self.below(2) as u32 * (self.nr_cpus / 2);
        (first..first + self.nr_cpus.div_ceil(2))
            .filter(|cpu| *cpu < self.nr_cpus)
            .map(CpuId)
            .collect()
    }

    /// Lets some tasks change their own attributes. A mark before the change and one after it show
    /// in the trace which attributes hold.
    pub(super) fn change(&mut self, drafts: &mut [Draft]) {
        if !self.has(Feature::Changes) {
            return;
        }
        for draft in drafts {
            if self.one_in(2) || draft.spec.attr.policy == Policy::Deadline {
                continue;
            }
            let count = 1 + self.below(2);
            for _ in 0..count {
                let attr = loop {
                    let attr = self.attr();
                    if attr.policy != Policy::Deadline {
                        break attr;
                    }
                };
                self.insert_change(draft, attr);
            }
        }
    }

    fn insert_change(&mut self, draft: &mut Draft, attr: SchedAttr) {
        draft.push_marked(Op::SetAttr(Box::new(attr)));
        let run = Op::Run(self.amount_of_work());
        draft.body.push(Node::Op(run));
    }
}

impl Draft {
    /// Adds a change between two marks. It goes to the end, so that the marks are numbered in their
    /// order.
    pub(super) fn push_marked(&mut self, change: Op) {
        let first = self.spec.phases.len() as u32;
        for mark in ["before", "after"] {
            self.spec.phases.push(format!("{mark}{}", first / 2));
        }
        let marked = [Op::Phase(first), change, Op::Phase(first + 1)];
        self.body.extend(marked.map(Node::Op));
    }
}
