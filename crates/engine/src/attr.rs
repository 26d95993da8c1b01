// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a task's attributes (sched_setattr, sched_setaffinity) and of its priority
//! (`rt_mutex_setprio`).

use crate::engine::Engine;
use crate::error::SimError;
use crate::observe::Cause;
use crate::step::Next;
use schedlab_model::{
    Costs, CpuId, CpuMask, Nanos, Op, SchedAttr, Step, TaskId, TraceSink, Workload,
};
use schedlab_sched::boundary::core::TaskState;
use schedlab_sched::{DequeueFlags, EnqueueFlags};
use std::sync::Arc;

impl<'w, S: TraceSink> Engine<'w, S> {
    /// Sets the attributes of `task`, which runs on `cpu`. If the class finds nothing to change,
    /// nothing happens, as in the kernel.
    pub(crate) fn set_attr(&mut self, cpu: CpuId, task: TaskId, attr: &SchedAttr) {
        if !self.is_changed_by(task, attr) {
            return;
        }
        if !self.admit(task, attr) || !self.is_within_cpuset(task, attr) {
            return;
        }
        let before = Arc::clone(&self.core.task(task).cpus_allowed);
        self.change(task, attr);
        self.choose_other_cpu(cpu, task, &before);
        if !self.core.task(task).cpus_allowed.contains(cpu) {
            self.tasks[task].must_move = true;
            self.core.resched_curr(cpu);
        }
        self.drain();
    }

    /// A call on `this_cpu` has set the CPUs that `task` may use, which were `before`. The kernel
    /// chooses one of them, whether or not the task must move to it (`__set_cpus_allowed_ptr`).
    pub(crate) fn choose_other_cpu(&mut self, this_cpu: CpuId, task: TaskId, before: &CpuMask) {
        let allowed = Arc::clone(&self.core.task(task).cpus_allowed);
        if *allowed != *before
            && let Some(turns) = &mut self.core.turns
        {
            self.tasks[task].move_to = turns.choose(this_cpu, &allowed);
        }
    }

    /// The step `op` of the program of `task`, which runs on `cpu`, sets its attributes. These are
    /// several calls, as in the player: the task joins its new group and sets its affinity, and may
    /// lose the CPU or, where calls take time, move to another; then it sets the rest.
    pub(crate) fn sets_attr(&mut self, cpu: CpuId, task: TaskId, op: u32) -> Next {
        let Some(attr) = self.attr_of(task, op) else { return Next::Call };
        let now = *self.core.task(task).attr;
        let moves_group = attr.cgroup != now.cgroup;
        let locks = self.costs.group_move_ns > 0;
        match self.group_locks.are_held_by(task) {
            false if moves_group && locks => return self.waits_to_move(task, op),
            true if !moves_group => {
                self.unlock_groups(cpu, task);
                return self.call_first(task, self.costs.set_attr_ns, Step::SetAttr(op));
            }
            _ => {}
        }
        let takes_time = self.costs.set_attr_ns > 0;
        let leaves_cpu = takes_time && attr.affinity.is_some_and(|mask| !mask.contains(cpu));
        if moves_group || (leaves_cpu && attr.affinity != now.affinity) {
            let moved = SchedAttr { cgroup: attr.cgroup, affinity: attr.affinity, ..now };
            if moves_group && self.threads.is_some() {
                self.threads_see_move(cpu, task, Some(attr.cgroup));
            }
            self.set_attr(cpu, task, &moved);
            let mut ns = if moves_group && locks { 0 } else { self.costs.set_attr_ns };
            if moves_group {
                ns = ns.saturating_add(self.costs.group_move_after_ns);
            }
            if leaves_cpu {
                let after_ns = self.costs.set_attr_after_ns;
                ns = ns.saturating_add(after_ns).saturating_add(self.costs.syscall_ns);
            }
            return self.call_first(task, ns, Step::SetAttr(op));
        }
        if self.is_changed_by(task, attr) {
            let (from, to) = (self.core.task(task).class, self.core.class_of(attr.policy));
            self.set_attr(cpu, task, attr);
            // Within the real-time class the task only moves to another list.
            let stays_rt = from == to && self.levels_of(task) == 0;
            let after_ns = self.costs.set_attr_after_ns;
            self.charge(task, if stays_rt { after_ns / 2 } else { after_ns });
        }
        Next::Call
    }

    fn is_changed_by(&self, task: TaskId, attr: &SchedAttr) -> bool {
        let class = self.stack.class(self.core.task(task).class);
        class.is_changed_by(&self.core, task, attr)
    }

    /// Begins the step `op`: a move of `task` to another group takes its locks, if they are free.
    /// Returns how long it is until the first change of attributes, or until the task sleeps
    /// because another one holds a lock.
    pub(crate) fn begin_set_attr_ns(&mut self, task: TaskId, op: u32) -> Nanos {
        match self.attr_of(task, op) {
            Some(attr) if attr.cgroup != self.core.task(task).attr.cgroup => {
                let Costs { group_move_ns, group_lock_ns, block_ns, .. } = self.costs;
                if group_move_ns > 0 && !self.group_locks.take(task, attr.cgroup) {
                    return group_lock_ns.saturating_add(block_ns);
                }
                self.move_ns(task, attr.cgroup)
            }
            Some(_) => self.costs.set_attr_ns,
            None => 0,
        }
    }

    /// The attributes that the step `op` of the program of `task` sets.
    pub(crate) fn attr_of(&self, task: TaskId, op: u32) -> Option<&'w SchedAttr> {
        match self.op(task, op) {
            Some(Op::SetAttr(attr)) => Some(attr),
            _ => None,
        }
    }

    /// The operation number `op` of the program of `task`.
    pub(crate) fn op(&self, task: TaskId, op: u32) -> Option<&'w Op> {
        let workload: &'w Workload = self.workload;
        let program = &workload.tasks[self.tasks[task].spec as usize].program;
        program.ops.get(op as usize)
    }

    /// Asks the class of `attr` whether it accepts `task`. A refusal ends the run.
    pub(crate) fn admit(&mut self, task: TaskId, attr: &SchedAttr) -> bool {
        let (class, core) = self.class(self.core.class_of(attr.policy));
        let Err(why) = class.admit(core, task, attr) else { return true };
        let (task, time_ns) = (self.tasks[task].name.clone(), self.core.now);
        self.fail(SimError::Refused { task, why, time_ns });
        false
    }

    /// Sets the attributes of `task`, in any state. Its priority and class follow from them and
    /// from the mutexes that it holds.
    pub(crate) fn change(&mut self, task: TaskId, attr: &SchedAttr) {
        let moves_group = attr.cgroup != self.core.task(task).attr.cgroup;
        self.requeue_with(task, attr, moves_group && self.stack.group_moves_resched);
    }

    /// Running `task` is at the end of its exit and moves from its autogroup to its control group,
    /// which is the same one if it has none (`sched_autogroup_exit_task`, with
    /// CONFIG_SCHED_AUTOGROUP, as distributions have it).
    pub(crate) fn leave_autogroup(&mut self, task: TaskId) {
        let attr = *self.core.task(task).attr;
        self.requeue_with(task, &attr, true);
    }

    /// Takes `task` off its queue and puts it back with other attributes. `moves_group`: as
    /// `sched_move_task` does, which puts a real-time task at the tail of its priority and requests
    /// a reschedule.
    fn requeue_with(&mut self, task: TaskId, attr: &SchedAttr, moves_group: bool) {
        let (new_prio, new_class) = self.effective(task, attr);
        let donor = self.donor(task, attr);
        let is_lent_anew = donor != self.current_donor(task);
        let t = self.core.task(task);
        let (cpu, old_class, old_prio) = (t.cpu, t.class, t.prio);
        let is_running = self.core.is_running(task);
        if t.sched_delayed && (new_prio != old_prio || new_class != old_class) {
            // A sleeping task whose dequeue is delayed leaves the queue now, because its class may
            // change.
            let (class, core) = self.class(old_class);
            let special = DequeueFlags { special: true, ..DequeueFlags::SLEEP };
            class.dequeue_task(core, cpu, task, special);
            core.dequeue_delayed(task);
        }
        let is_queued = self.core.task(task).on_rq;
        let cpus_allowed = self.allowed_cpus(attr);
        debug_assert!(is_queued || !is_running, "task {task} runs on no queue");
        let has_moved = new_prio != old_prio;
        let moved = has_moved || moves_group;
        if is_running {
            self.account(cpu, task);
        }
        let (class, core) = self.class(old_class);
        if is_queued {
            let save = DequeueFlags { save: true, moved, ..DequeueFlags::NONE };
            class.dequeue_task(core, cpu, task, save);
        }
        if is_running {
            class.put_prev_task(core, cpu, task, Some(task));
        }
        class.attr_changing(core, task, attr);
        assert!(!cpus_allowed.is_empty(), "the workload was checked: task {task} keeps a CPU");
        let t = &mut core.tasks[task.index()];
        let old_attr = std::mem::replace(&mut t.attr, Arc::new(*attr));
        t.prio = new_prio;
        t.class = new_class;
        t.nr_cpus_allowed = cpus_allowed.weight();
        t.cpus_allowed = Arc::new(cpus_allowed);
        if is_lent_anew {
            self.lend(task, donor);
        }
        let (class, core) = self.class(new_class);
        class.attr_changed(core, task, old_class, &old_attr);
        if is_queued {
            let head = old_prio < new_prio;
            let restore = EnqueueFlags { restore: true, moved, head, ..EnqueueFlags::NONE };
            class.enqueue_task(core, cpu, task, restore);
        }
        if is_running {
            class.set_next_task(core, cpu, task, false);
            if moves_group {
                core.resched_curr(cpu);
            }
        }
        if new_class != old_class {
            let (class, core) = self.class(old_class);
            class.switched_from(core, cpu, task);
            let (class, core) = self.class(new_class);
            class.switched_to(core, cpu, task);
        } else if has_moved || is_lent_anew {
            class.prio_changed(core, cpu, task, old_prio);
        }
        debug_assert_eq!(self.core.is_running(task), is_running, "task {task} was switched");
        self.drain();
        if self.watch.is_some() {
            self.note_cause(&Cause::Attr { task });
        }
    }

    /// Updates the class of every task after a class took over policies.
    pub(crate) fn reclass(&mut self) {
        self.stack.assign(&mut self.core);
        for task in self.tasks.ids() {
            let t = self.core.task(task);
            let (attr, class, is_dead) = (*t.attr, t.class, t.state == TaskState::Dead);
            if !is_dead && self.effective(task, &attr).1 != class {
                self.change(task, &attr);
            }
        }
        debug_assert!(self.tasks.ids().all(|task| {
            let t = self.core.task(task);
            t.state == TaskState::Dead || self.effective(task, &t.attr).1 == t.class
        }));
        self.each_class(|class, core| class.reclassed(core));
        self.drain();
    }
}
