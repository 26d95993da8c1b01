// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes what nothing names any more: objects, groups, phases.

use crate::tree::{self, Node};
use crate::world::changed_cpus;
use schedlab_model::{CgroupId, ObjectId, Op, SchedAttr, TaskSpec, Workload};

/// Removes unused objects, groups and phases, and numbers the others without gaps.
pub(crate) fn tidy(workload: &mut Workload) {
    tidy_objects(workload);
    tidy_groups(workload);
    workload.tasks.iter_mut().for_each(tidy_phases);
}

/// Calls `f` for the objects that an operation names.
fn each_object(op: &mut Op, f: &mut dyn FnMut(&mut ObjectId)) {
    match op {
        Op::Wait { condvar, mutex } | Op::Sync { condvar, mutex } => {
            f(condvar);
            f(mutex);
        }
        Op::Send { channel, .. } | Op::Receive { channel, .. } => f(channel),
        Op::Lock { object }
        | Op::Unlock { object }
        | Op::Signal { object }
        | Op::Broadcast { object }
        | Op::Barrier { object }
        | Op::SemWait { object }
        | Op::SemPost { object }
        | Op::Suspend { object }
        | Op::Resume { object } => f(object),
        _ => {}
    }
}

fn tidy_objects(workload: &mut Workload) {
    let mut is_used = vec![!workload.wait_sets.is_empty(); workload.objects.len()];
    for op in workload.tasks.iter_mut().flat_map(|task| &mut task.program.ops) {
        each_object(op, &mut |object| is_used[object.index()] = true);
    }
    let number = numbers(&is_used);
    for op in workload.tasks.iter_mut().flat_map(|task| &mut task.program.ops) {
        each_object(op, &mut |object| object.0 = number[object.index()]);
    }
    let mut used = is_used.iter();
    workload.objects.retain(|_| *used.next().unwrap_or(&true));
}

/// The new number of each thing, if the unused ones go.
fn numbers(is_used: &[bool]) -> Vec<u32> {
    let mut next = 0;
    is_used
        .iter()
        .map(|used| {
            let own = next;
            next += u32::from(*used);
            own
        })
        .collect()
}

/// Calls `f` for all attributes of a task.
pub(crate) fn each_attr(task: &mut TaskSpec, f: &mut dyn FnMut(&mut SchedAttr)) {
    f(&mut task.attr);
    for op in &mut task.program.ops {
        if let Op::SetAttr(attr) = op {
            f(attr);
        }
    }
}

fn tidy_groups(workload: &mut Workload) {
    let mut is_used = vec![false; workload.cgroups.len()];
    is_used[0] = true;
    for task in &mut workload.tasks {
        each_attr(task, &mut |attr| is_used[attr.cgroup.index()] = true);
    }
    for index in (1..is_used.len()).rev() {
        if is_used[index] {
            is_used[workload.cgroups[index].parent.index()] = true;
        }
    }
    let number = numbers(&is_used);
    for task in &mut workload.tasks {
        // A group without tasks has nothing to change.
        let mut nodes = tree::nodes(&task.program);
        let is_idle = |op: &Op| matches!(op, Op::Change(of) if !is_used[of.group().index()]);
        tree::remove_ops(&mut nodes, &is_idle);
        tree::each_op(&mut nodes, &mut |op| {
            if let Op::Change(change) = op {
                change.set_group(CgroupId(number[change.group().index()]));
            }
        });
        task.program = tree::program(&nodes);
        each_attr(task, &mut |attr| attr.cgroup.0 = number[attr.cgroup.index()]);
    }
    for group in &mut workload.cgroups {
        group.parent = CgroupId(number[group.parent.index()]);
    }
    let mut used = is_used.iter();
    workload.cgroups.retain(|_| *used.next().unwrap_or(&true));
}

/// Removes marks without a change between them, and names of phases that are not entered.
fn tidy_phases(task: &mut TaskSpec) {
    let mut nodes = tree::nodes(&task.program);
    drop_marks(&mut nodes);
    let mut order: Vec<u32> = Vec::new();
    tree::each_op(&mut nodes, &mut |op| {
        if let Op::Phase(phase) = op {
            let found = order.iter().position(|known| known == phase).unwrap_or_else(|| {
                order.push(*phase);
                order.len() - 1
            });
            *phase = found as u32;
        }
    });
    task.phases = (0..order.len()).map(|phase| format!("p{phase}")).collect();
    task.program = tree::program(&nodes);
}

fn drop_marks(nodes: &mut Vec<Node>) {
    let is_change = |node: Option<&Node>| match node {
        Some(Node::Op(Op::SetAttr(_))) => true,
        Some(Node::Op(op)) => changed_cpus(op).is_some(),
        _ => false,
    };
    let is_needed: Vec<bool> = (0..nodes.len())
        .map(|index| match &nodes[index] {
            Node::Op(Op::Phase(_)) => {
                let before = index.checked_sub(1).and_then(|index| nodes.get(index));
                is_change(before) || is_change(nodes.get(index + 1))
            }
            _ => true,
        })
        .collect();
    let mut needed = is_needed.iter();
    nodes.retain(|_| *needed.next().unwrap_or(&true));
    for node in nodes {
        if let Node::Loop(_, body) = node {
            drop_marks(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::{CgroupSpec, ObjectKind, ObjectSpec};

    #[test]
    fn what_nothing_names_goes_and_the_rest_keeps_its_meaning() {
        let mut workload = Workload::new("w", Vec::new());
        let unused = workload.add_object(ObjectSpec::new("unused", ObjectKind::MUTEX));
        let used = workload.add_object(ObjectSpec::new("used", ObjectKind::MUTEX));
        assert_eq!(unused, ObjectId(0));
        workload.cgroups.push(CgroupSpec::new("/x", CgroupId(0), 100));
        workload.cgroups.push(CgroupSpec::new("/y", CgroupId(0), 100));
        workload.cgroups.push(CgroupSpec::new("/y/z", CgroupId(2), 100));
        let program = ProgramBuilder::new().op(Op::Phase(1)).lock(used).run(5).unlock(used).build();
        let mut task = TaskSpec::new("t", program);
        task.phases = vec!["a".into(), "b".into()];
        task.attr.cgroup = CgroupId(3);
        workload.tasks.push(task);
        tidy(&mut workload);
        assert_eq!(workload.check(1), Ok(()));
        let names: Vec<&str> = workload.objects.iter().map(|object| &*object.name).collect();
        assert_eq!(names, ["used"]);
        let paths: Vec<&str> = workload.cgroups.iter().map(|group| &*group.path).collect();
        assert_eq!(paths, ["/", "/y", "/y/z"]);
        assert_eq!(workload.tasks[0].attr.cgroup, CgroupId(2));
        assert!(workload.tasks[0].phases.is_empty());
    }
}
