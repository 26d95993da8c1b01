// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that idle while tasks wait.

use super::groups::Groups;
use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::{Seen, World};
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{CpuId, Nanos, Op, Policy, TaskId};
use std::collections::BTreeMap;

/// For how long a CPU of a kernel may idle while a task waits: a factor above what balancing
/// takes.
const BALANCED_NS: Nanos = 100 * MS;

/// How long a condition has held for each key, such as a CPU.
pub(super) struct Stays<K> {
    since: BTreeMap<K, Nanos>,
}

impl<K> Default for Stays<K> {
    fn default() -> Self {
        Self { since: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Stays<K> {
    /// The condition has not held at this moment for the keys that `are` so.
    pub fn end(&mut self, are: impl Fn(K) -> bool) {
        self.since.retain(|key, _| !are(*key));
    }

    /// The condition holds for `keys` from `from` to `to`, and for no others. Returns the first
    /// key for which it has held for longer than `most`, and how long.
    pub fn update(
        &mut self,
        keys: impl Iterator<Item = K>,
        (from, to): (Nanos, Nanos),
        most: impl Fn(K) -> Nanos,
    ) -> Option<(K, Nanos)> {
        let mut next = BTreeMap::new();
        let mut found = None;
        for key in keys {
            let since = *self.since.get(&key).unwrap_or(&from);
            if to - since > most(key) && found.is_none() {
                found = Some((key, to - since));
            }
            next.insert(key, since);
        }
        self.since = next;
        found
    }
}

struct Idle {
    groups: Groups,
    /// The real-time limit holds nobody back before this time.
    rt_free_ns: Nanos,
    /// Whether a mutex may make a fair task a real-time one.
    lends_rt: bool,
    /// Whether a task counts only on the queue where it waits.
    own_queue: bool,
    most_ns: Nanos,
    stays: Stays<CpuId>,
}

/// No CPU idles while a task waits on its own queue.
pub(super) fn own_queue<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let most_ns = context.kernel_ns();
    Some(Box::new(Idle {
        groups: Groups::of(context),
        rt_free_ns: context.rt_free_ns(),
        lends_rt: lends_rt(context),
        own_queue: true,
        most_ns,
        stays: Stays::default(),
    }))
}

/// No CPU idles while a task waits on another queue.
pub(super) fn other_queue<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let claims = context.subject.scheduler.claims.work_conserving;
    let most_ns = match context.family {
        Family::Textbook if claims => context.kernel_ns(),
        Family::Kernel(_) if claims && is_uniform(context) => BALANCED_NS,
        _ => return None,
    };
    // Which CPUs a task may use is known only while its group keeps its own.
    if context.nr_cpus() == 1 || context.has_cpusets() {
        return None;
    }
    Some(Box::new(Idle {
        groups: Groups::of(context),
        rt_free_ns: context.rt_free_ns(),
        lends_rt: lends_rt(context),
        own_queue: false,
        most_ns,
        stays: Stays::default(),
    }))
}

/// Whether a mutex may lend the priority of a real-time task to a fair one.
fn lends_rt(context: &Context<'_>) -> bool {
    context.lends_priority() && context.attrs().any(|attr| attr.policy.is_rt())
}

/// Whether all tasks are equal, fair and free to move, on CPUs that share one cache.
fn is_uniform(context: &Context<'_>) -> bool {
    let topology = &context.case.machine.topology;
    let is_flat = topology.llc.iter().all(|llc| *llc == topology.llc[0])
        && topology.core.iter().enumerate().all(|(cpu, core)| *core == cpu as u32);
    let is_plain = |attr: &schedlab_model::SchedAttr| {
        attr.policy == Policy::Normal
            && attr.nice == 0
            && attr.affinity.is_none()
            && attr.cgroup == schedlab_model::ids::ROOT_CGROUP
    };
    is_flat
        && context.workload().tasks.iter().all(|task| {
            let changes = |op: &Op| matches!(op, Op::SetAttr(_));
            is_plain(&task.attr) && !task.program.ops.iter().any(changes)
        })
}

impl Idle {
    /// Whether `task`, which waits on the queue of `place`, should run on `cpu`.
    fn should_run(&self, now: Nanos, task: &Seen<'_>, place: CpuId, cpu: CpuId) -> bool {
        let Some(attr) = task.attr else { return false };
        let is_there = if self.own_queue { place == cpu } else { task.allowed.contains(cpu) };
        // The real-time limit holds tasks back, also those to which a mutex lends a priority.
        let is_free = !(attr.policy.is_rt() || self.lends_rt) || now <= self.rt_free_ns;
        let is_budgeted = attr.policy == Policy::Deadline || self.groups.is_limited(attr.cgroup);
        is_there && is_free && !is_budgeted
    }
}

impl Idle {
    /// A task that should run on idle `cpu`.
    fn due(&self, world: &World<'_>, cpu: CpuId) -> Option<TaskId> {
        let mut waiting = world.waiting();
        let due = waiting.find(|(_, task, place)| self.should_run(world.now, task, *place, cpu));
        due.map(|(id, ..)| id)
    }
}

impl Check for Idle {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        let idle = world.cpus.iter().filter(|cpu| world.running[cpu.index()].is_none());
        let wanted: Vec<CpuId> = idle.filter(|cpu| self.due(world, *cpu).is_some()).collect();
        let most = self.most_ns;
        let found_stay = self.stays.update(wanted.into_iter(), (world.now, to), |_| most);
        if let Some((cpu, length)) = found_stay
            && let Some(id) = self.due(world, cpu)
        {
            let name = &world.task(id).name;
            let text = format!(
                "CPU {cpu} has idled for {length} ns while tasks such as {name:?} waited; allowed \
                 are {most} ns"
            );
            found.add(to, Some(cpu), Some(name), text);
        }
    }
}
