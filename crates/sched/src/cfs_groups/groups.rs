// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups: their entities and queues, and each CPU's part of a group's shares.
//!
//! Under 2.6.24 a group's entity has all of the group's shares on every CPU. Under 2.6.32 they are
//! distributed in proportion to the group's load on each CPU. A CPU computes this when it balances
//! or chooses a CPU for a task, at most once in `sched_shares_ratelimit`.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`sched_init`, `init_tg_cfs_entry`,
//! `update_shares`, `tg_shares_up`, `update_group_shares_cpu`, `__set_se_shares`, `tg_load_down`).

use super::Fair;
use super::entity::{CfsRq, Entity};
use super::weights::{NICE_0_LOAD, of_shares, shares_of};
use crate::boundary::core::Core;
use crate::fair::rbtree::{NIL, Node};
use schedlab_model::weights::{MAX_SHARES, MIN_SHARES};
use schedlab_model::{CgroupSpec, CpuId, CpuMask};

/// A control group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// cpu.shares.
    pub shares: u64,
    pub parent: u32,
}

/// A group's values on a CPU for the computation of shares.
#[derive(Clone, Copy)]
struct Spread {
    /// Shares to distribute.
    shares: u64,
    /// Sum of the loads.
    weight: u64,
}

impl Fair {
    /// Makes the queues and entities of `cgroups`.
    pub(super) fn make_groups(&mut self, cgroups: &[CgroupSpec]) {
        let nr_cpus = self.nr_cpus;
        // If it is the only group, the root group decides nothing, so its level is left out.
        let root_is_group = self.rules.root_is_group && cgroups.len() > 1;
        let nr_groups = cgroups.len() as u32;
        self.first_root = if root_is_group { nr_groups * nr_cpus } else { 0 };
        for (group, spec) in cgroups.iter().enumerate() {
            let is_root = group == 0;
            let shares = if is_root { self.values.root_shares } else { shares_of(spec.weight) };
            self.groups.push(Group { shares, parent: spec.parent.0 });
            for cpu in 0..nr_cpus {
                if is_root && !root_is_group {
                    self.cfs.push(CfsRq::new(0, NIL));
                    continue;
                }
                // The parent is the queue of the CPU, or a group other than the root.
                let parent_q = match spec.parent.0 {
                    0 => self.first_root + cpu,
                    parent => parent * nr_cpus + cpu,
                };
                let parent = if spec.parent.0 == 0 { NIL } else { self.rq(parent_q).se };
                let depth = if parent == NIL { 0 } else { self.ent(parent).depth + 1 };
                let my_q = group as u32 * nr_cpus + cpu;
                let load = of_shares(shares, &self.rules);
                self.cfs.push(CfsRq::new(group as u32, self.ents.len() as u32));
                self.ents.push(Entity::new(load, parent_q, my_q, parent, depth));
                self.nodes.push(Node::NEW);
            }
        }
        if root_is_group {
            self.cfs.extend((0..nr_cpus).map(|_| CfsRq::new(0, NIL)));
        }
        self.first_task = self.ents.len() as u32;
    }

    /// The queue of `group` on `cpu`.
    pub(super) fn group_queue(&self, group: u32, cpu: CpuId) -> u32 {
        group * self.nr_cpus + cpu.0
    }

    /// Number of groups, the root group included.
    pub(super) fn nr_groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// Distributes the shares of all groups over the CPUs of `span`; `is_top`: these are all CPUs.
    pub(super) fn spread_shares(&mut self, core: &Core, span: &CpuMask, is_top: bool) {
        // Groups within groups come after their parents.
        for group in (1..self.nr_groups()).rev() {
            let spread = self.sum_of_group(group, span, is_top);
            for cpu in span.iter() {
                self.set_part(core, group, cpu, spread);
            }
        }
    }

    fn sum_of_group(&self, group: u32, span: &CpuMask, is_top: bool) -> Spread {
        let (mut weight, mut pretended, mut shares) = (0, 0, 0);
        for cpu in span.iter() {
            let rq = self.rq(self.group_queue(group, cpu));
            weight += rq.load;
            // If the group has no task there, assume one of average weight.
            pretended += if rq.load == 0 { NICE_0_LOAD } else { rq.load };
            shares += rq.shares;
        }
        let weight = if weight == 0 { pretended } else { weight };
        let all = self.groups[group as usize].shares;
        let shares = if is_top || shares == 0 || shares > all { all } else { shares };
        Spread { shares, weight }
    }

    /// Sets the shares of `group` on `cpu`.
    fn set_part(&mut self, core: &Core, group: u32, cpu: CpuId, spread: Spread) {
        let q = self.group_queue(group, cpu);
        let (load, e) = (self.rq(q).load, self.rq(q).se);
        let weight = if load == 0 { NICE_0_LOAD } else { load };
        let shares = (spread.shares * weight / spread.weight).clamp(MIN_SHARES, MAX_SHARES);
        if shares.abs_diff(self.ent(e).load.weight) <= self.values.shares_thresh {
            return;
        }
        let rq = &mut self.cfs[q as usize];
        rq.rq_weight = load;
        rq.shares = if load == 0 { 0 } else { shares };
        self.set_group_weight(core, e, shares);
    }

    /// cpu.shares of `group` was written (`sched_group_set_shares`): its entity has all of them on
    /// every CPU, under 2.6.32 until they are distributed again.
    pub(super) fn set_group_shares(&mut self, core: &Core, group: u32, shares: u64) {
        if std::mem::replace(&mut self.groups[group as usize].shares, shares) == shares {
            return;
        }
        for cpu in 0..self.nr_cpus {
            let q = self.group_queue(group, CpuId(cpu));
            self.cfs[q as usize].shares = 0;
            self.set_group_weight(core, self.rq(q).se, shares);
        }
    }

    fn set_group_weight(&mut self, core: &Core, e: u32, shares: u64) {
        let on_rq = self.ent(e).on_rq;
        if on_rq {
            self.dequeue_entity(core.now, e, false);
        }
        self.ents[e as usize].load = of_shares(shares, &self.rules);
        if on_rq {
            let q = self.ent(e).cfs;
            self.enter_queue(e, q);
            self.enqueue_entity(core.now, e, false);
        }
    }

    /// Computes which part of the load of `cpu` comes from the tasks of each group.
    pub(super) fn update_h_load(&mut self, cpu: CpuId) {
        for group in 0..self.nr_groups() {
            let q = self.group_queue(group, cpu);
            let load = if group == 0 {
                self.rq(q).load
            } else {
                let parent = self.rq(self.group_queue(self.groups[group as usize].parent, cpu));
                parent.h_load * self.rq(q).shares / (parent.load + 1)
            };
            self.cfs[q as usize].h_load = load;
        }
    }
}
