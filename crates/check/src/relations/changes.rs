// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second case of a pair: the first with a change that must not matter. `None`: the case has
//! nothing to change.

use super::bases::endless;
use crate::case::Case;
use crate::tree::{self, Node};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{
    CgroupId, CgroupSpec, CpuId, CpuMask, Op, Policy, SchedAttr, TaskSpec, Workload,
};

/// Steps between the nice values of tasks before and after scaling.
const NICE_STEPS: i8 = 5;

/// Names in another order than those of the case.
pub(super) fn other_names(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let count = case.workload.tasks.len();
    for (index, task) in changed.workload.tasks.iter_mut().enumerate() {
        task.name = format!("z{:03}", count - index);
    }
    Some(changed)
}

/// The descriptions of tasks in the reverse order.
pub(super) fn reversed(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    changed.workload.tasks.reverse();
    (case.workload.tasks.len() > 1).then_some(changed)
}

/// One task changes its policy between two of the same weight, twice in every round of its loop.
/// (Of two nice values the one in between may last: a call can end a slice.) All tasks are equal,
/// so that the limit of lags, which holds at each change, cuts none.
pub(super) fn same_weight(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let task = changed.workload.tasks.first_mut()?;
    let attr = task.attr;
    let is_equal = |other: &SchedAttr| SchedAttr { policy: attr.policy, ..*other } == attr;
    if !case.workload.tasks.iter().all(|other| is_equal(&other.attr)) {
        return None;
    }
    let policy = if attr.policy == Policy::Batch { Policy::Normal } else { Policy::Batch };
    let mut nodes = tree::nodes(&task.program);
    let Some(Node::Loop(_, body)) = nodes.first_mut() else { return None };
    for attr in [SchedAttr { policy, ..attr }, attr] {
        body.push(Node::Op(Op::SetAttr(Box::new(attr))));
    }
    task.program = tree::program(&nodes);
    Some(changed)
}

/// A smaller nice value for the first task.
pub(super) fn less_nice(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let attr = &mut changed.workload.tasks.first_mut()?.attr;
    attr.nice -= NICE_STEPS;
    (attr.nice >= -20).then_some(changed)
}

/// Twice the weight, or half of it, for all members of a group. Groups are scaled exactly; tasks
/// are if they have one nice value.
pub(super) fn scaled_weights(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let mut has_changed = false;
    for group in 0..case.workload.cgroups.len() {
        has_changed |= scale_members(&mut changed.workload, CgroupId(group as u32));
    }
    has_changed.then_some(changed)
}

fn scale_members(workload: &mut Workload, group: CgroupId) -> bool {
    let members = |task: &&mut TaskSpec| task.attr.cgroup == group;
    let is_within = |index: usize, inner: &CgroupSpec| index > 0 && inner.parent == group;
    let groups = &mut workload.cgroups;
    let has_groups = groups.iter().enumerate().any(|(index, inner)| is_within(index, inner));
    let mut tasks: Vec<&mut TaskSpec> = workload.tasks.iter_mut().filter(members).collect();
    match tasks.first().map(|task| task.attr.nice) {
        Some(nice) if !has_groups => {
            let other = if nice <= 19 - NICE_STEPS { nice + NICE_STEPS } else { nice - NICE_STEPS };
            let may = tasks.iter().all(|task| task.attr.nice == nice);
            tasks.iter_mut().filter(|_| may).for_each(|task| task.attr.nice = other);
            may
        }
        None if has_groups => {
            let inner = || groups.iter().enumerate().filter(|(index, one)| is_within(*index, one));
            let may_grow = inner().all(|(_, one)| one.weight <= 5_000);
            let may_shrink = inner().all(|(_, one)| one.weight.is_multiple_of(200));
            let is_plain = inner().all(|(_, one)| one.weight_nice.is_none());
            let is_scaled = is_plain && (may_grow || may_shrink);
            for (index, one) in groups.iter_mut().enumerate().filter(|_| is_scaled) {
                if is_within(index, one) {
                    one.weight = if may_grow { one.weight * 2 } else { one.weight / 2 };
                }
            }
            is_scaled
        }
        _ => false,
    }
}

/// All tasks and groups within a new group.
pub(super) fn one_more_group(case: &Case) -> Option<Case> {
    const NAME: &str = "/outer";
    let mut changed = case.clone();
    let Workload { tasks, cgroups, .. } = &mut changed.workload;
    for group in cgroups.iter_mut().skip(1) {
        group.parent = CgroupId(group.parent.0 + 1);
        group.path = format!("{NAME}{}", group.path);
    }
    cgroups.insert(1, CgroupSpec::new(NAME, ROOT_CGROUP, 100));
    tasks.iter_mut().for_each(|task| task.attr.cgroup.0 += 1);
    Some(changed)
}

/// A hog on the second CPU.
pub(super) fn busy_cpu(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let attr = SchedAttr { affinity: Some(CpuMask::only(CpuId(1))), ..SchedAttr::default() };
    let task = TaskSpec { attr, ..TaskSpec::new("elsewhere", endless(10 * MS)) };
    changed.workload.tasks.push(task);
    Some(changed)
}

/// The writes to an empty group go to the task's own, which has the written value.
pub(super) fn own_group(case: &Case) -> Option<Case> {
    let mut changed = case.clone();
    let task = changed.workload.tasks.iter_mut().find(|task| task.attr.cgroup != ROOT_CGROUP)?;
    let own = task.attr.cgroup;
    for op in &mut task.program.ops {
        if let Op::Change(change) = op {
            change.set_group(own);
        }
    }
    Some(changed)
}
