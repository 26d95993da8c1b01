// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of structure.

use super::tidy::each_attr;
use crate::case::Case;
use crate::rules::Breach;
use crate::tree::{self, Node};
use schedlab_model::machine::Caches;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{
    Amount, CgroupId, Change, Costs, CpuMask, MutexProtocol, ObjectKind, Op, Policy, Release,
    SchedAttr, TaskSpec, Topology,
};

/// Changes of `case` by `f`, one for each index below `count`. `f` returns false if it changes
/// nothing.
fn each(case: &Case, count: usize, f: impl Fn(&mut Case, usize) -> bool) -> Vec<Case> {
    let change = |index| {
        let mut changed = case.clone();
        f(&mut changed, index).then_some(changed)
    };
    (0..count).filter_map(change).collect()
}

/// The run ends just after the breach.
pub(super) fn earlier_end(case: &Case, breach: &Breach) -> Vec<Case> {
    let Some(now) = case.workload.duration_ns else { return Vec::new() };
    let after = breach.time_ns.div_ceil(MS) * MS + MS;
    let ends = [after, now / 2 / MS * MS];
    let sooner = ends.into_iter().filter(|end| (1..now).contains(end));
    sooner
        .map(|end| {
            let mut changed = case.clone();
            changed.workload.duration_ns = Some(end);
            changed
        })
        .collect()
}

/// Without one of the tasks.
pub(super) fn fewer_tasks(case: &Case, _: &Breach) -> Vec<Case> {
    each(case, case.workload.tasks.len(), |case, index| {
        let tasks = &mut case.workload.tasks;
        tasks.remove(index);
        tasks.iter_mut().for_each(|task| forget_task(task, index as u32));
        !tasks.is_empty()
    })
}

/// Removes forks of task `gone`, and numbers those after it anew.
fn forget_task(task: &mut TaskSpec, gone: u32) {
    let mut nodes = tree::nodes(&task.program);
    tree::remove_ops(
        &mut nodes,
        &|op| matches!(op, Op::Fork { task } | Op::Join { task } if *task == gone),
    );
    tree::each_op(&mut nodes, &mut |op| {
        if let Op::Fork { task } | Op::Join { task } = op {
            *task -= u32::from(*task > gone);
        }
    });
    task.program = tree::program(&nodes);
}

/// Removes the changes of groups that `is` names.
fn remove_changes(task: &mut TaskSpec, is: &dyn Fn(&Change) -> bool) {
    let mut nodes = tree::nodes(&task.program);
    tree::remove_ops(&mut nodes, &|op| matches!(op, Op::Change(change) if is(change)));
    task.program = tree::program(&nodes);
}

/// One instance of a task instead of many, or half of them.
pub(super) fn fewer_instances(case: &Case, _: &Breach) -> Vec<Case> {
    let count = case.workload.tasks.len();
    each(case, 2 * count, |case, index| {
        let instances = &mut case.workload.tasks[index % count].instances;
        let fewer = if index < count { 1 } else { instances.saturating_sub(1) };
        let is_fewer = *instances > 1 && fewer >= 1;
        *instances = if is_fewer { fewer } else { *instances };
        is_fewer
    })
}

/// Without one of the groups: its members move up.
pub(super) fn fewer_groups(case: &Case, _: &Breach) -> Vec<Case> {
    each(case, case.workload.cgroups.len().saturating_sub(1), |case, index| {
        let gone = CgroupId(index as u32 + 1);
        let parent = case.workload.cgroups[gone.index()].parent;
        let mut is_used = false;
        let mut move_up = |group: &mut CgroupId| {
            if *group == gone {
                *group = parent;
                is_used = true;
            }
        };
        for task in &mut case.workload.tasks {
            each_attr(task, &mut |attr| move_up(&mut attr.cgroup));
        }
        for group in case.workload.cgroups.iter_mut().skip(1) {
            move_up(&mut group.parent);
        }
        for task in &mut case.workload.tasks {
            remove_changes(task, &|change| change.group() == gone);
        }
        is_used && rename_groups(case)
    })
}

/// Gives every group the path of its parent and its own last name.
fn rename_groups(case: &mut Case) -> bool {
    for index in 1..case.workload.cgroups.len() {
        let above = case.workload.cgroups[index].parent;
        let above = case.workload.cgroups[above.index()].path.trim_end_matches('/').to_owned();
        let path = &mut case.workload.cgroups[index].path;
        let last = path.rsplit('/').next().unwrap_or_default();
        *path = format!("{above}/{last}");
    }
    true
}

/// One CPU, half of them, or one less.
pub(super) fn fewer_cpus(case: &Case, _: &Breach) -> Vec<Case> {
    let now = case.machine.nr_cpus();
    let fewer = [1, 2, now / 2, now - 1].map(|count| count.clamp(1, now));
    each(case, fewer.len(), |case, index| {
        let nr_cpus = fewer[index];
        case.machine.topology = case.machine.topology.first_cpus(nr_cpus);
        let cpus = CpuMask::first(nr_cpus);
        for group in &mut case.workload.cgroups {
            group.cpus = group.cpus.map(|mask| mask.and(&cpus)).filter(|mask| !mask.is_empty());
        }
        for task in &mut case.workload.tasks {
            each_attr(task, &mut |attr| {
                attr.affinity = attr.affinity.map(|mask| mask.and(&cpus));
                attr.affinity = attr.affinity.filter(|mask| !mask.is_empty() && *mask != cpus);
            });
            remove_changes(task, &|change| match change {
                Change::Cpus { cpus: Some(of), .. } => of.and(&cpus).is_empty(),
                _ => false,
            });
        }
        nr_cpus < now
    })
}

/// A flat topology, 250 ticks a second, no costs or the default ones.
pub(super) fn plainer_machine(case: &Case, _: &Breach) -> Vec<Case> {
    each(case, 5, |case, index| {
        let machine = &mut case.machine;
        let before = (machine.clone(), case.seed);
        match index {
            0 => machine.topology = Topology::flat(machine.nr_cpus()),
            1 => machine.hz = 250,
            2 => {
                machine.costs = Costs::ZERO;
                machine.caches = Caches::NONE;
            }
            3 => machine.smt_speed.clear(),
            _ => case.seed = 1,
        }
        before != (case.machine.clone(), case.seed)
    })
}

/// Number of nodes of a tree.
fn size(nodes: &[Node]) -> usize {
    let of = |node: &Node| match node {
        Node::Op(_) => 1,
        Node::Loop(_, body) => 1 + size(body),
    };
    nodes.iter().map(of).sum()
}

/// Replaces node number `index` of the tree by what `f` makes of it. Returns whether it did.
fn replace(
    nodes: &mut Vec<Node>,
    index: &mut usize,
    f: &dyn Fn(&Node) -> Option<Vec<Node>>,
) -> bool {
    for at in 0..nodes.len() {
        if *index == 0 {
            let Some(new) = f(&nodes[at]) else { return false };
            nodes.splice(at..=at, new);
            return true;
        }
        *index -= 1;
        if let Node::Loop(_, body) = &mut nodes[at] {
            let within = size(body);
            if *index < within {
                return replace(body, index, f);
            }
            *index -= within;
        }
    }
    false
}

/// Each change of one node of one program.
fn each_node(case: &Case, f: &dyn Fn(&Node) -> Option<Vec<Node>>) -> Vec<Case> {
    let mut changes = Vec::new();
    for (number, task) in case.workload.tasks.iter().enumerate() {
        let nodes = tree::nodes(&task.program);
        // Outer nodes first: they take most away.
        for mut index in 0..size(&nodes) {
            let mut changed = nodes.clone();
            if replace(&mut changed, &mut index, f) {
                let mut case = case.clone();
                case.workload.tasks[number].program = tree::program(&changed);
                changes.push(case);
            }
        }
    }
    changes
}

/// Without one of the steps, or one of the loops with its body. Both halves of a critical section
/// go together.
pub(super) fn fewer_steps(case: &Case, _: &Breach) -> Vec<Case> {
    let mut changes = without_sections(case);
    changes.extend(each_node(case, &|_| Some(Vec::new())));
    changes
}

fn without_sections(case: &Case) -> Vec<Case> {
    each(case, case.workload.objects.len(), |case, object| {
        let names = |op: &Op| {
            matches!(op, Op::Lock { object: id } | Op::Unlock { object: id }
                | Op::Barrier { object: id } | Op::SemWait { object: id }
                | Op::SemPost { object: id } | Op::Suspend { object: id }
                | Op::Resume { object: id } | Op::Send { channel: id, .. }
                | Op::Receive { channel: id, .. } if id.index() == object)
        };
        for task in &mut case.workload.tasks {
            let mut nodes = tree::nodes(&task.program);
            tree::remove_ops(&mut nodes, &names);
            task.program = tree::program(&nodes);
        }
        true
    })
}

/// The body of a loop instead of the loop, once.
pub(super) fn without_loops(case: &Case, _: &Breach) -> Vec<Case> {
    each_node(case, &|node| match node {
        Node::Loop(_, body) => Some(body.clone()),
        Node::Op(_) => None,
    })
}

/// Defaults instead of attributes, times of release and their kin, task by task.
pub(super) fn plainer_tasks(case: &Case, _: &Breach) -> Vec<Case> {
    const CHANGES: [fn(&mut TaskSpec); 12] = [
        |task| each_attr(task, &mut |attr| *attr = SchedAttr::default()),
        |task| task.release_ns = Amount::Constant(0),
        |task| task.interarrival_ns = None,
        |task| task.release = Release::Fork,
        |task| each_attr(task, &mut |attr| attr.affinity = None),
        |task| each_attr(task, &mut |attr| attr.slice_ns = None),
        |task| each_attr(task, &mut |attr| attr.nice = 0),
        |task| each_attr(task, &mut |attr| attr.cgroup = schedlab_model::ids::ROOT_CGROUP),
        |task| {
            each_attr(task, &mut |attr| {
                let SchedAttr { affinity, cgroup, nice, .. } = *attr;
                *attr = SchedAttr { affinity, cgroup, nice, ..SchedAttr::default() };
            });
        },
        |task| {
            each_attr(task, &mut |attr| {
                if attr.policy == Policy::Rr {
                    attr.policy = Policy::Fifo;
                }
            });
        },
        |task| {
            each_attr(task, &mut |attr| attr.rt_priority = attr.rt_priority.min(1));
        },
        |task| task.attr = SchedAttr::default(),
    ];
    let nr_tasks = case.workload.tasks.len();
    each(case, nr_tasks * CHANGES.len(), |case, index| {
        let task = &mut case.workload.tasks[index % nr_tasks];
        let before = task.clone();
        CHANGES[index / nr_tasks](task);
        *task != before
    })
}

/// Groups without limit, with the default weight, and without CPUs of their own.
pub(super) fn plainer_groups(case: &Case, _: &Breach) -> Vec<Case> {
    let count = case.workload.cgroups.len();
    each(case, 3 * count, |case, index| {
        let group = &mut case.workload.cgroups[index % count];
        let before = group.clone();
        match index / count {
            0 => group.cpu_max = None,
            1 => group.weight = 100,
            _ => group.cpus = None,
        }
        *group != before
    })
}

/// Mutexes without a protocol.
pub(super) fn plainer_objects(case: &Case, _: &Breach) -> Vec<Case> {
    each(case, case.workload.objects.len(), |case, index| {
        match &mut case.workload.objects[index].kind {
            ObjectKind::Mutex { protocol } if *protocol != MutexProtocol::None => {
                *protocol = MutexProtocol::None;
                true
            }
            ObjectKind::Barrier { parties } if *parties > 1 => {
                *parties -= 1;
                true
            }
            _ => false,
        }
    })
}
