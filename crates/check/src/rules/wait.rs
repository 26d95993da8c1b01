// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a fair task may wait.
//!
//! At each level of groups an entity waits at most until every rival has used a slice, and as much
//! longer as the rival is heavier. What must pass inside a group passes at the group's share only.

use super::changers::Changers;
use super::groups::Groups;
use super::share::{cfs_latency, longest_slice};
use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::{Seen, State, World};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::weights::task_weight;
use schedlab_model::{CgroupId, KernelVersion, Nanos, Op, Policy, SchedAttr};

/// Allowed beyond the bound, in addition to the factor.
const SLACK_NS: Nanos = 20 * MS;
/// The factor; CFS has no bound that is proved.
const FACTOR: u128 = 3;
const FACTOR_CFS: u128 = 6;

/// Wait of a task among equal ones under a scheduler that starves nobody: this, and as much for
/// each rival.
const STARVED_NS: Nanos = 1_000 * MS;
const STARVED_RIVAL_NS: Nanos = 100 * MS;

struct Wait<'c> {
    context: Context<'c>,
    groups: Groups,
    changers: Changers,
    slice_ns: Nanos,
    latency_ns: Nanos,
}

struct Starvation;

/// Nobody starves.
pub(super) fn starvation<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let claims = context.subject.scheduler.claims.starvation_free;
    let claims = claims || context.family == Family::Native;
    let is_plain = |attr: &SchedAttr| {
        let is_normal = attr.policy == Policy::Normal && attr.nice == 0 && attr.slice_ns.is_none();
        is_normal && !context.is_limited(attr.cgroup) && attr.cgroup == ROOT_CGROUP
    };
    let holds = claims && context.attrs().all(is_plain) && !context.lends_priority();
    holds.then(|| Box::new(Starvation) as Box<dyn Check + 'c>)
}

impl Check for Starvation {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        for (_, task, cpu) in world.waiting() {
            let State::Waits { since, .. } = task.state else { continue };
            if to - since <= STARVED_NS {
                continue;
            }
            let most = STARVED_NS + STARVED_RIVAL_NS * world.tasks.len() as u64;
            if to - since > most {
                let text = format!(
                    "task {:?} has waited for {} ns among equal tasks; allowed are {most} ns",
                    task.name,
                    to - since
                );
                found.add(to, Some(cpu), Some(&task.name), text);
            }
        }
    }
}

/// Waits end.
pub(super) fn wait<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let Family::Kernel(version) = context.family else { return None };
    let is_fair = context.attrs().all(|attr| attr.policy.is_fair());
    let is_cfs = version < KernelVersion::release(6, 6, 0);
    let check = Wait {
        context: *context,
        groups: Groups::of(context),
        changers: Changers::of(context),
        slice_ns: longest_slice(context),
        latency_ns: if is_cfs { cfs_latency(context) } else { 0 },
    };
    let is_known = !context.lends_priority() && !check.changers.are_hidden();
    (is_fair && is_known).then(|| Box::new(check) as Box<dyn Check + 'c>)
}

impl Wait<'_> {
    /// Whether a task can be judged.
    fn is_judged(&self, task: &Seen<'_>, attr: &SchedAttr) -> bool {
        let is_placed = self.context.nr_cpus() == 1 || attr.cgroup == ROOT_CGROUP;
        matches!(attr.policy, Policy::Normal | Policy::Batch)
            && is_placed
            && !self.groups.is_limited(attr.cgroup)
            && !self.changers.may_owe(&self.context, task.spec, attr.cgroup)
            && !self.context.has_op(task.spec, |op| matches!(op, Op::Yield))
    }

    /// Time for which all other members of `group` go before an entity of `weight`, once each.
    fn before(&self, world: &World<'_>, task: &Seen<'_>, group: CgroupId, weight: u64) -> u128 {
        let groups = &self.context.workload().cgroups;
        let turn = self.slice_ns + self.context.tick_ns + self.context.kernel_ns();
        let turn = u128::from(turn + self.context.lazy_ns());
        let of = |rival: u64| turn * u128::from(rival.max(weight)) / u128::from(weight);
        let mut sum = 0;
        for (_, other) in world.each().filter(|(_, other)| !std::ptr::eq(*other, task)) {
            // Its group may have changed: it counts in all.
            let is_member = other.attr.is_none_or(|attr| attr.cgroup == group);
            // One that has exited may have run meanwhile.
            let is_there = !matches!(other.state, State::New);
            if is_member && is_there && other.allowed.intersects(&task.allowed) {
                sum += of(other.attr.map_or(88_761, task_weight));
            }
        }
        let inner = groups.iter().enumerate().skip(1).filter(|(_, inner)| inner.parent == group);
        sum + inner.map(|(id, _)| of(self.most(id))).sum::<u128>()
    }

    /// Time that rivals of `task` within `group` may have gained since `since` by changes of their
    /// attributes: a slice by each. Those of `inner` are left out.
    fn gained(
        &self,
        world: &World<'_>,
        task: &Seen<'_>,
        groups: (CgroupId, Option<CgroupId>),
        since: Nanos,
    ) -> u128 {
        let turn = self.slice_ns.max(self.latency_ns) + self.context.tick_ns;
        let turn = turn + self.context.kernel_ns() + self.context.lazy_ns();
        u128::from(turn) * u128::from(self.changers.count(world, task, groups, since))
    }

    /// Greatest weight that the group with this number ever has.
    fn most(&self, group: usize) -> u64 {
        self.groups.most_weight(CgroupId(group as u32))
    }

    /// Sum of the weights of a group's members.
    fn total(&self, world: &World<'_>, group: CgroupId) -> u64 {
        let groups = &self.context.workload().cgroups;
        let is_alive = |task: &Seen<'_>| !matches!(task.state, State::Dead | State::New);
        let members = world.each().filter(|(_, task)| is_alive(task));
        let weights = members
            .filter(|(_, task)| task.attr.is_none_or(|attr| attr.cgroup == group))
            .map(|(_, task)| task.attr.map_or(88_761, task_weight));
        let inner = groups.iter().enumerate().skip(1).filter(|(_, inner)| inner.parent == group);
        weights.sum::<u64>() + inner.map(|(id, _)| self.most(id)).sum::<u64>()
    }

    /// The longest wait of `task`, which began at `since`.
    fn bound(&self, world: &World<'_>, task: &Seen<'_>, attr: &SchedAttr, since: Nanos) -> u128 {
        let groups = &self.context.workload().cgroups;
        let mut wait = self.before(world, task, attr.cgroup, task_weight(attr));
        let mut gained = self.gained(world, task, (attr.cgroup, None), since);
        let mut group = attr.cgroup;
        while group.index() != 0 {
            let (weight, parent) = (self.groups.least_weight(group), groups[group.index()].parent);
            let total = u128::from(self.total(world, parent).max(weight));
            wait = wait * total / u128::from(weight) + self.before(world, task, parent, weight);
            gained = gained * total / u128::from(weight)
                + self.gained(world, task, (parent, Some(group)), since);
            group = parent;
        }
        let factor = if self.latency_ns > 0 { FACTOR_CFS } else { FACTOR };
        factor * (wait + u128::from(self.latency_ns)) + gained + u128::from(SLACK_NS)
    }
}

impl Check for Wait<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        for (_, task, cpu) in world.waiting() {
            let State::Waits { since, .. } = task.state else { continue };
            // Nothing shorter can be a breach.
            if to - since <= SLACK_NS {
                continue;
            }
            let Some(attr) = task.attr.filter(|attr| self.is_judged(task, attr)) else { continue };
            let most = self.bound(world, task, attr, since);
            if u128::from(to - since) > most {
                let text = format!(
                    "task {:?} has waited for {} ns; allowed are {most} ns",
                    task.name,
                    to - since
                );
                found.add(to, Some(cpu), Some(&task.name), text);
            }
        }
    }
}
