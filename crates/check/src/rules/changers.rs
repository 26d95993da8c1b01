// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that change their own attributes, which keeps them on the CPU under kernels before 6.12.
//!
//! A change takes a running task off its queue and puts it back, without another pick. Under 6.1
//! its slice then begins anew (`set_next_entity`), and under 6.6 its deadline is a whole slice away
//! again (`place_entity`), so neither ends it at a tick. From 6.12 on a task keeps what is left of
//! its request (`PLACE_REL_DEADLINE`).
//!
//! So each change by a rival may lengthen a wait by a slice. Under 6.1 the time that a task has
//! taken in this way stays in its virtual runtime, so it and its groups wait for as much later on.
//! Under 6.6 the limit of the lag cuts it.

use super::Context;
use crate::subject::Family;
use crate::world::{Seen, World, is_marked};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::{CgroupId, KernelVersion, Nanos, Op};

/// First kernel in which a task keeps the rest of its slice.
const KEEPS_REQUEST: KernelVersion = KernelVersion::release(6, 12, 0);
/// First kernel that limits the lag.
const LIMITS_LAG: KernelVersion = KernelVersion::release(6, 6, 0);

/// The tasks that change their own attributes.
#[derive(Clone, Debug)]
pub(super) struct Changers {
    /// For each description: whether its tasks are ever within each group. Empty if the tasks keep
    /// their attributes, or the kernel keeps their slices.
    within: Vec<Vec<bool>>,
    /// Whether each change can be seen in the trace.
    are_marked: bool,
    /// Whether what a task has taken is not forgotten.
    adds_up: bool,
}

impl Changers {
    /// Those of a case. There are none if known limits are to be judged.
    pub fn of(context: &Context<'_>) -> Self {
        let version = match context.family {
            Family::Kernel(version) if !context.subject.judges_limits => version,
            _ => KEEPS_REQUEST,
        };
        let tasks = || context.workload().tasks.iter().enumerate();
        let changes = |spec| context.has_op(spec, |op| matches!(op, Op::SetAttr(_)));
        let within = tasks().map(|(spec, task)| {
            if version >= KEEPS_REQUEST || !changes(spec) {
                return Vec::new();
            }
            let mut within = vec![false; context.workload().cgroups.len()];
            let later = task.program.ops.iter().filter_map(|op| match op {
                Op::SetAttr(attr) => Some(attr.cgroup),
                _ => None,
            });
            for group in later.chain([task.attr.cgroup]) {
                path(context, group).for_each(|group| within[group.index()] = true);
            }
            within
        });
        let is_change = |op: &Op| matches!(op, Op::SetAttr(_));
        Self {
            within: within.collect(),
            are_marked: tasks().all(|(_, task)| is_marked(&task.program.ops, is_change)),
            adds_up: version < LIMITS_LAG,
        }
    }

    /// Whether the tasks of a description are changers that are ever within `group`.
    fn is_in(&self, spec: usize, group: CgroupId) -> bool {
        self.within[spec].get(group.index()).is_some_and(|is_in| *is_in)
    }

    /// Whether there are changes that the trace does not show.
    pub fn are_hidden(&self) -> bool {
        !self.are_marked && self.within.iter().any(|within| !within.is_empty())
    }

    /// Whether `group` ever has a task that changes its attributes.
    pub fn has(&self, group: CgroupId) -> bool {
        (0..self.within.len()).any(|spec| self.is_in(spec, group))
    }

    /// Whether a task in `group` may owe more than its rivals may wait: it, or another task of its
    /// groups, may have kept the CPU.
    pub fn may_owe(&self, context: &Context<'_>, spec: usize, group: CgroupId) -> bool {
        let owes = |group: CgroupId| group != ROOT_CGROUP && self.has(group);
        self.adds_up && (!self.within[spec].is_empty() || path(context, group).any(owes))
    }

    /// Changes since `since` by rivals of `task` within `group`, but outside of `inner`.
    pub fn count(
        &self,
        world: &World<'_>,
        task: &Seen<'_>,
        (group, inner): (CgroupId, Option<CgroupId>),
        since: Nanos,
    ) -> u64 {
        let is_rival = |other: &Seen<'_>| {
            let is_inner = inner.is_some_and(|inner| self.is_in(other.spec, inner));
            !std::ptr::eq(other, task) && self.is_in(other.spec, group) && !is_inner
        };
        let rivals = world.each().filter(|(_, other)| is_rival(other));
        rivals.map(|(_, other)| other.nr_changes(since)).sum()
    }
}

/// `group` and the groups above it.
fn path<'c>(context: &Context<'c>, group: CgroupId) -> impl Iterator<Item = CgroupId> + 'c {
    let groups = &context.workload().cgroups;
    let above =
        move |group: &CgroupId| (*group != ROOT_CGROUP).then(|| groups[group.index()].parent);
    std::iter::successors(Some(group), above)
}
