// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of control groups by tasks.

use crate::engine::Engine;
use crate::error::SimError;
use crate::observe::Cause;
use crate::step::Next;
use schedlab_model::workload::effective_cpus;
use schedlab_model::{
    CgroupId, CgroupSpec, Change, CpuId, CpuMask, Nanos, Op, SchedAttr, TaskId, TraceSink,
};
use schedlab_sched::DequeueFlags;
use schedlab_sched::boundary::core::TaskState;
use std::sync::Arc;

/// CPUs of the groups (cpuset.cpus).
#[derive(Clone, Debug)]
pub(crate) struct Cpusets {
    own: Vec<Option<CpuMask>>,
    /// Own CPUs within those of the groups above (cpuset.cpus.effective).
    effective: Vec<CpuMask>,
}

impl Cpusets {
    /// The CPUs with which groups start.
    pub fn new(specs: &[CgroupSpec], all: CpuMask) -> Self {
        let own: Vec<_> = specs.iter().map(|spec| spec.cpus.map(|cpus| cpus.and(&all))).collect();
        let effective = effective_cpus(specs, |group| own[group], all);
        Self { own, effective }
    }

    /// Sets the CPUs of `group`. A group of whose CPUs the parent has none gets the parent's.
    fn set(&mut self, group: CgroupId, cpus: Option<CpuMask>, specs: &[CgroupSpec]) {
        self.own[group.index()] = cpus;
        self.effective = effective_cpus(specs, |group| self.own[group], self.effective[0]);
    }
}

impl<'w, S: TraceSink> Engine<'w, S> {
    /// The change of the step `op` of the program of `task`.
    fn change_of(&self, task: TaskId, op: u32) -> Option<&'w Change> {
        match self.op(task, op) {
            Some(Op::Change(change)) => Some(change),
            _ => None,
        }
    }

    /// What the step `op` takes before it changes a group.
    pub(crate) fn change_ns(&self, task: TaskId, op: u32) -> Nanos {
        let costs = self.costs;
        match self.change_of(task, op) {
            None => 0,
            Some(Change::CpuMax { group, cpu_max }) => {
                let is_limited = |spec: &CgroupSpec| spec.cpu_max.is_some();
                let nr_limited = self.core.cgroups.iter().filter(|spec| is_limited(spec)).count();
                let was_limited = is_limited(&self.core.cgroups[group.index()]);
                let nr_others = nr_limited - usize::from(was_limited);
                let switches = nr_others == 0 && was_limited != cpu_max.is_some();
                let switch_ns = if switches { costs.cpu_max_switch_ns } else { 0 };
                costs.group_change_ns.saturating_add(costs.cpu_max_ns).saturating_add(switch_ns)
            }
            Some(Change::Weight { .. } | Change::Cpus { .. }) => costs.group_change_ns,
        }
    }

    /// The step `op` of the program of `task`, which runs on `cpu`, changes a group.
    pub(crate) fn changes_group(&mut self, cpu: CpuId, task: TaskId, op: u32) -> Next {
        if let Some(change) = self.change_of(task, op) {
            self.change_group(cpu, task, change);
        }
        Next::Call
    }

    /// `task`, running on `cpu`, writes a control file of a group. All of it happens at once, as
    /// the call that the kernel makes for the writer.
    pub(crate) fn change_group(&mut self, cpu: CpuId, task: TaskId, change: &Change) {
        let spec = &mut self.core.cgroups[change.group().index()];
        let old = spec.clone();
        change.apply(spec);
        self.each_class(|class, core| class.cgroup_changed(core, cpu, change, &old));
        self.drain();
        if let Change::Cpus { group, cpus } = change {
            self.set_cpuset(cpu, *group, *cpus);
        }
        if self.watch.is_some() {
            self.note_cause(&Cause::Group { task });
        }
    }

    /// The CPUs that a task with these attributes may use: its affinity within its group's CPUs;
    /// these alone if they have none of its affinity.
    pub(crate) fn allowed_cpus(&self, attr: &SchedAttr) -> CpuMask {
        let own = attr.affinity.unwrap_or(self.core.cpus).and(&self.core.cpus);
        let Some(cpusets) = &self.cpusets else { return own };
        let of_group = cpusets.effective[attr.cgroup.index()];
        let both = own.and(&of_group);
        if both.is_empty() { of_group } else { both }
    }

    /// Whether sched_setaffinity accepts the affinity of `attr`. A refusal ends the run.
    pub(crate) fn is_within_cpuset(&mut self, task: TaskId, attr: &SchedAttr) -> bool {
        let (Some(cpusets), Some(own)) = (&self.cpusets, attr.affinity) else { return true };
        let of_group = cpusets.effective[attr.cgroup.index()];
        if !own.and(&of_group).is_empty() {
            return true;
        }
        let path = &self.core.cgroups[attr.cgroup.index()].path;
        let why = format!(
            "its affinity is CPU {own}, but group {path:?} has CPU {of_group} at this time: name \
             at least one of these"
        );
        let (task, time_ns) = (self.tasks[task].name.clone(), self.core.now);
        self.fail(SimError::Refused { task, why, time_ns });
        false
    }

    /// cpuset.cpus of `group` was written (`update_cpumasks_hier`): tasks leave the CPUs that they
    /// may not use any more.
    fn set_cpuset(&mut self, this_cpu: CpuId, group: CgroupId, cpus: Option<CpuMask>) {
        let all = self.core.cpus;
        let groups = &self.core.cgroups;
        let cpusets = self.cpusets.get_or_insert_with(|| Box::new(Cpusets::new(groups, all)));
        let before = cpusets.effective.clone();
        cpusets.set(group, cpus.map(|cpus| cpus.and(&all)), &self.core.cgroups);
        let is_changed: Vec<bool> =
            before.iter().zip(&cpusets.effective).map(|(was, is)| was != is).collect();
        for task in self.tasks.ids() {
            let t = self.core.task(task);
            if is_changed[t.attr.cgroup.index()] && t.state != TaskState::Dead {
                self.follow_cpuset(this_cpu, task);
            }
        }
    }

    /// The CPUs of the group of `task` have changed (`set_cpus_allowed_ptr`).
    fn follow_cpuset(&mut self, this_cpu: CpuId, task: TaskId) {
        let mut attr = *self.core.task(task).attr;
        if self.stack.cpuset_forgets_affinity && attr.affinity.take().is_some() {
            self.core.tasks[task.index()].attr = Arc::new(attr);
        }
        let allowed = self.allowed_cpus(&attr);
        let t = self.core.task(task);
        if *t.cpus_allowed == allowed {
            return;
        }
        let (cpu, before) = (t.cpu, Arc::clone(&t.cpus_allowed));
        let stays = allowed.contains(cpu);
        if t.sched_delayed && !stays {
            let (class, core) = self.class(self.core.task(task).class);
            let special = DequeueFlags { special: true, ..DequeueFlags::SLEEP };
            class.dequeue_task(core, cpu, task, special);
            core.dequeue_delayed(task);
        }
        self.change(task, &attr);
        self.choose_other_cpu(this_cpu, task, &before);
        if stays || !self.core.task(task).on_rq {
            return;
        }
        if self.core.is_running(task) {
            self.tasks[task].must_move = true;
            self.core.resched_curr(cpu);
        } else {
            self.move_queued(cpu, task);
        }
        self.drain();
    }
}
