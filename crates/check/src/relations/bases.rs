// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first case of a pair, made of any case. Made of a first case it is the same.

use crate::case::Case;
use crate::shrink::{each_attr, tidy};
use crate::tree::{self, Node};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::machine::Caches;
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Change, Costs, CpuId, CpuMask, CpuMax, LoopCount, Machine, Op,
    Policy, Release, SchedAttr, TaskSpec, Topology, Workload,
};

/// Most instances of a description.
const INSTANCES_MAX: u32 = 8;

/// A machine without costs, of these CPUs.
fn free_machine(case: &Case, topology: Topology) -> Machine {
    let nr_cpus = topology.nr_cpus();
    Machine {
        hz: case.machine.hz,
        topology,
        costs: Costs::ZERO,
        caches: Caches::NONE,
        ..Machine::flat(nr_cpus)
    }
}

/// The fair tasks of the case as endless loops on one CPU, with their nice values, slices and
/// groups. There their shares are fixed. `None` if there are fewer than two.
pub(super) fn hogs(case: &Case) -> Option<Case> {
    let mut base = hogs_with_limits(case)?;
    base.workload.cgroups.iter_mut().for_each(|group| group.cpu_max = None);
    Some(base)
}

/// The same, with the limits of the groups.
fn hogs_with_limits(case: &Case) -> Option<Case> {
    let is_hog = |task: &&TaskSpec| {
        task.instances > 0 && matches!(task.attr.policy, Policy::Normal | Policy::Batch)
    };
    let tasks = case.workload.tasks.iter().filter(is_hog).map(|task| TaskSpec {
        attr: SchedAttr { affinity: None, ..task.attr },
        instances: task.instances.min(INSTANCES_MAX),
        release: Release::Fork,
        ..TaskSpec::new(task.name.clone(), endless(turn(task)))
    });
    let mut workload = Workload {
        cgroups: case.workload.cgroups.clone(),
        duration_ns: case.workload.duration_ns,
        ..Workload::new(case.workload.name.clone(), tasks.collect())
    };
    if workload.tasks.iter().map(|task| task.instances).sum::<u32>() < 2 {
        return None;
    }
    workload.cgroups.iter_mut().for_each(|group| group.cpus = None);
    tidy(&mut workload);
    let machine = free_machine(case, Topology::flat(1));
    Some(Case { workload, machine, seed: case.seed })
}

/// The path of a group without tasks.
pub(super) const EMPTY: &str = "/empty";

/// Hogs of which the first that is in a group writes cpu.weight of an empty group, in every round.
pub(super) fn writes_elsewhere(case: &Case) -> Option<Case> {
    let base = hogs(case)?;
    let weight = own_group(&base)?.weight;
    with_write(base, |group| Change::Weight { group, weight }, None)
}

/// Hogs of which the first that is in a limited group writes cpu.max of an empty group, in every
/// round.
pub(super) fn limits_elsewhere(case: &Case) -> Option<Case> {
    let base = hogs_with_limits(case)?;
    let cpu_max = own_group(&base)?.cpu_max;
    cpu_max?;
    with_write(base, |group| Change::CpuMax { group, cpu_max }, cpu_max)
}

/// The group of the first hog that is in one.
pub(super) fn own_group(case: &Case) -> Option<&CgroupSpec> {
    let mut groups = case.workload.tasks.iter().map(|task| task.attr.cgroup);
    let group = groups.find(|group| *group != ROOT_CGROUP)?;
    Some(&case.workload.cgroups[group.index()])
}

/// The first hog that is in a group makes `change` of an empty group with this limit in every
/// round.
fn with_write(
    mut base: Case,
    change: impl FnOnce(CgroupId) -> Change,
    cpu_max: Option<CpuMax>,
) -> Option<Case> {
    let groups = &mut base.workload.cgroups;
    if groups.iter().any(|group| group.path == EMPTY) {
        return None;
    }
    let empty = CgroupId(groups.len() as u32);
    groups.push(CgroupSpec { cpu_max, ..CgroupSpec::new(EMPTY, ROOT_CGROUP, 100) });
    let task = base.workload.tasks.iter_mut().find(|task| task.attr.cgroup != ROOT_CGROUP)?;
    let mut nodes = tree::nodes(&task.program);
    let Some(Node::Loop(_, body)) = nodes.first_mut() else { return None };
    body.push(Node::Op(Op::Change(Box::new(change(empty)))));
    task.program = tree::program(&nodes);
    Some(base)
}

/// Added to each turn of a hog: so rounds do not end at ticks.
const OFF_TICK_NS: u64 = 37 * US;

/// How long a hog runs in each round of its loop: about as long as its task runs first.
fn turn(task: &TaskSpec) -> u64 {
    let first = task.program.ops.iter().find_map(|op| match op {
        Op::Run(amount) => Some(constant(*amount)),
        _ => None,
    });
    let turn = first.unwrap_or(MS).clamp(MS, 20 * MS);
    turn / (100 * US) * (100 * US) + OFF_TICK_NS
}

/// A program that runs for ever.
pub(super) fn endless(run_ns: u64) -> schedlab_model::Program {
    let body = vec![Node::Op(Op::Run(Amount::Constant(run_ns)))];
    tree::program(&[Node::Loop(LoopCount::Forever, body)])
}

/// Two CPUs that share nothing. Every task is on the first. Amounts are constant, because a new
/// task may change what later ones draw.
pub(super) fn pinned(case: &Case) -> Option<Case> {
    let mut workload = case.workload.clone();
    let first = CpuMask::only(CpuId(0));
    workload.cgroups.iter_mut().for_each(|group| group.cpus = None);
    for task in &mut workload.tasks {
        each_attr(task, &mut |attr| {
            // DEADLINE tasks may not be pinned.
            if attr.policy == Policy::Deadline {
                *attr = SchedAttr::default();
            }
            attr.affinity = Some(first);
        });
        task.release_ns = Amount::Constant(constant(task.release_ns));
        task.interarrival_ns =
            task.interarrival_ns.map(|amount| Amount::Constant(constant(amount)));
        task.program.ops.iter_mut().for_each(make_constant);
        task.program.ops.iter_mut().for_each(keep_cpus);
    }
    let apart = vec![0, 1];
    let topology = Topology { core: apart.clone(), llc: apart.clone(), node: apart };
    let machine = free_machine(case, topology);
    Some(Case { workload, machine, seed: case.seed })
}

/// A change of a group's CPUs would move its pinned tasks: it gives the group all.
fn keep_cpus(op: &mut Op) {
    if let Op::Change(change) = op
        && let Change::Cpus { cpus, .. } = &mut **change
    {
        *cpus = None;
    }
}

fn make_constant(op: &mut Op) {
    let amount = match op {
        Op::Run(amount) | Op::RunWall(amount) | Op::Sleep(amount) => amount,
        Op::Timer { period, .. } => period,
        Op::Io { bytes, .. }
        | Op::Mem { bytes }
        | Op::Send { bytes, .. }
        | Op::Receive { bytes, .. } => bytes,
        Op::MemRun { count, .. } => count,
        _ => return,
    };
    *amount = Amount::Constant(constant(*amount));
}

/// An amount in the middle of what is drawn.
fn constant(amount: Amount) -> u64 {
    match amount {
        Amount::Constant(value) | Amount::Exponential { mean: value } => value,
        Amount::Uniform { low, high } => low.midpoint(high),
    }
}
