// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of CPU time by weight.
//!
//! The members of a group on one CPU are its tasks and, on a machine of one CPU, its groups. Two
//! members that are both runnable throughout a span are due CPU time in the ratio of their weights,
//! whatever the others do. On several CPUs the weight of a group is divided among them, so there
//! only tasks are compared.

use super::changers::Changers;
use super::groups::Groups;
use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::{Seen, State, World};
use schedlab_model::program::SchedTunable;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::weights::{group_weight, task_weight};
use schedlab_model::{CgroupId, CpuId, Event, EventKind, KernelVersion, Nanos, Op, Policy, TaskId};
use std::collections::BTreeMap;

/// Longest base slice of a kernel, and latency target of CFS on 8 CPUs.
pub(super) const SLICE_NS: Nanos = 3 * MS;
const CFS_LATENCY_NS: Nanos = 24 * MS;

/// How far equal tasks may be apart under a textbook scheduler.
const TEXTBOOK_NS: Nanos = 500 * MS;

/// A member of a group on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Member {
    Task(TaskId),
    Group(CgroupId),
}

/// Whose members compete: the group, and the CPU.
type Place = (CgroupId, CpuId);

/// CPU times of two members when both had become runnable.
type Base = (Nanos, Nanos);

struct Share<'c> {
    context: Context<'c>,
    groups: Groups,
    changers: Changers,
    /// Longest slice of any task.
    slice_ns: Nanos,
    latency_ns: Nanos,
    /// Runnable members, and where they compete.
    present: BTreeMap<Member, Place>,
    pairs: BTreeMap<(Member, Member), Base>,
    group_ran: Vec<Nanos>,
    /// What changed since the last look: only then who is present may have changed.
    is_stale: bool,
}

/// Fair shares.
pub(super) fn share<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let claims = context.subject.scheduler.claims.fair;
    let may = match context.family {
        Family::Kernel(_) => true,
        Family::Textbook => claims && context.nr_cpus() == 1,
        _ => false,
    };
    if !may || context.lends_priority() {
        return None;
    }
    let is_cfs = matches!(context.family, Family::Kernel(version)
        if version < KernelVersion::release(6, 6, 0));
    Some(Box::new(Share {
        context: *context,
        groups: Groups::of(context),
        changers: Changers::of(context),
        slice_ns: longest_slice(context),
        latency_ns: if is_cfs { cfs_latency(context) } else { 0 },
        present: BTreeMap::new(),
        pairs: BTreeMap::new(),
        group_ran: vec![0; context.workload().cgroups.len()],
        is_stale: true,
    }))
}

/// Longest slice that a task may have.
pub(crate) fn longest_slice(context: &Context<'_>) -> Nanos {
    let slices = context.attrs().filter_map(|attr| attr.slice_ns);
    let tuned = context
        .tuned(SchedTunable::BaseSlice)
        .chain(context.tuned(SchedTunable::MinGranularity))
        .chain(context.tuned(SchedTunable::WakeupGranularity));
    slices.chain(tuned).max().unwrap_or(0).max(SLICE_NS)
}

/// Longest period of CFS.
pub(crate) fn cfs_latency(context: &Context<'_>) -> Nanos {
    context.tuned(SchedTunable::Latency).max().unwrap_or(0).max(CFS_LATENCY_NS)
}

impl Share<'_> {
    fn is_kernel(&self) -> bool {
        matches!(self.context.family, Family::Kernel(_))
    }

    /// Where a task competes; `None` if it cannot be judged.
    fn place(&self, task: &Seen<'_>) -> Option<Place> {
        let attr = task.attr?;
        let cpu = match task.state {
            State::Waits { cpu, .. } | State::Runs { cpu, .. } => cpu,
            _ => return None,
        };
        let is_plain = matches!(attr.policy, Policy::Normal)
            && !self.context.has_op(task.spec, |op| matches!(op, Op::Yield));
        let is_equal = attr.nice == 0 && attr.cgroup == schedlab_model::ids::ROOT_CGROUP;
        let stays = task.allowed.weight() == 1 && task.allowed.contains(cpu);
        let owes = self.changers.may_owe(&self.context, task.spec, attr.cgroup);
        let may = is_plain && stays && !owes && (is_equal || self.is_kernel());
        (may && !self.groups.is_limited(attr.cgroup)).then_some((attr.cgroup, cpu))
    }

    fn weight(&self, world: &World<'_>, member: Member) -> u64 {
        match member {
            Member::Task(id) => world.task(id).attr.map_or(1, task_weight),
            Member::Group(group) => group_weight(&self.context.workload().cgroups[group.index()]),
        }
    }

    fn ran(&self, world: &World<'_>, member: Member) -> Nanos {
        match member {
            Member::Task(id) => world.task(id).ran_ns,
            Member::Group(group) => self.group_ran[group.index()],
        }
    }

    fn name(&self, world: &World<'_>, member: Member) -> String {
        match member {
            Member::Task(id) => format!("task {:?}", world.task(id).name),
            Member::Group(group) => {
                format!("group {:?}", self.context.workload().cgroups[group.index()].path)
            }
        }
    }

    /// Who is present now.
    fn look(&mut self, world: &World<'_>) {
        let mut present = BTreeMap::new();
        let has_groups = self.is_kernel() && self.context.nr_cpus() == 1;
        for (id, task) in world.each() {
            if let Some(place) = self.place(task) {
                present.insert(Member::Task(id), place);
            }
            // A group is present if any fair task in it is.
            let fair = task.attr.filter(|attr| has_groups && attr.policy.is_fair());
            let Some(attr) = fair.filter(|_| task.is_runnable()) else { continue };
            let mut group = attr.cgroup;
            while group.index() != 0 && !self.groups.is_limited(group) {
                let parent = self.context.workload().cgroups[group.index()].parent;
                if self.groups.keeps_weight(group) && !self.changers.has(group) {
                    present.insert(Member::Group(group), (parent, CpuId(0)));
                }
                group = parent;
            }
        }
        self.pairs.retain(|(a, b), _| {
            let place = present.get(a);
            place.is_some() && place == present.get(b)
        });
        for (b, place) in &present {
            if self.present.get(b) == Some(place) {
                continue;
            }
            for (a, _) in present.iter().filter(|(a, other)| *a != b && *other == place) {
                let pair = if a < b { (*a, *b) } else { (*b, *a) };
                let base = (self.ran(world, pair.0), self.ran(world, pair.1));
                self.pairs.insert(pair, base);
            }
        }
        self.present = present;
    }

    /// CPU time by which two members of these weights may be apart, times both weights.
    fn bound(&self, weights: (u64, u64)) -> u128 {
        let apart = match self.is_kernel() {
            true => {
                let slice = self.slice_ns + self.context.tick_ns + self.context.lazy_ns();
                4 * (slice + self.context.kernel_ns()) + self.latency_ns
            }
            false => TEXTBOOK_NS / 2,
        };
        u128::from(apart) * u128::from(weights.0 + weights.1)
    }

    fn judge(&self, world: &World<'_>, found: &mut Found) {
        for (&(a, b), base) in &self.pairs {
            let ran = (self.ran(world, a) - base.0, self.ran(world, b) - base.1);
            let weights = (self.weight(world, a), self.weight(world, b));
            let due = (
                u128::from(ran.0) * u128::from(weights.1),
                u128::from(ran.1) * u128::from(weights.0),
            );
            let bound = self.bound(weights);
            if due.0.abs_diff(due.1) > bound {
                let text = format!(
                    "{} got {} ns and {} got {} ns while both were runnable; their weights are {} \
                     and {}, and they may be {} ns apart at equal weights",
                    self.name(world, a),
                    ran.0,
                    self.name(world, b),
                    ran.1,
                    weights.0,
                    weights.1,
                    bound / u128::from(weights.0.max(weights.1))
                );
                let less = if due.0 < due.1 { a } else { b };
                let task = match less {
                    Member::Task(id) => Some(world.task(id).name.as_str()),
                    Member::Group(_) => None,
                };
                found.add(world.now, None, task, text);
            }
        }
    }
}

impl Check for Share<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        if self.is_stale {
            self.look(world);
            self.is_stale = false;
        }
        self.judge(world, found);
        let span = to - world.now;
        for id in world.running.iter().flatten() {
            let Some(attr) = world.task(*id).attr else { continue };
            let mut group = attr.cgroup;
            while group.index() != 0 {
                self.group_ran[group.index()] += span;
                group = self.context.workload().cgroups[group.index()].parent;
            }
        }
    }

    fn event(&mut self, _world: &World<'_>, event: &Event, _found: &mut Found) {
        self.is_stale = true;
        if let EventKind::Phase { task, .. } = event.kind {
            // Its weight may have changed: a new comparison begins.
            let member = Member::Task(task);
            self.present.remove(&member);
            self.pairs.retain(|(a, b), _| *a != member && *b != member);
        }
    }
}
