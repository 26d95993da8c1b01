// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tick of a running task, and the effects of fork, exit and changes of attributes on slices
//! and places.
//!
//! Source: Linux 2.6.0, 2.6.11 and 2.6.22, kernel/sched.c (`scheduler_tick`, `sched_fork`,
//! `wake_up_forked_process`, `wake_up_new_task`, `sched_exit`, `set_user_nice`, `setscheduler`).

use super::arrays::Side;
use super::rules::{EXIT_WEIGHT, MAX_PRIO};
use super::{Change, OrderOne};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, SchedAttr, TaskId};

impl OrderOne {
    /// Does the task's part of `scheduler_tick`.
    pub(super) fn tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        if self.arrays.side(curr) != Some(Side::Active) {
            core.resched_curr(cpu);
            return;
        }
        let entry = &mut self.tasks[curr.index()];
        if entry.is_rt() {
            if entry.is_rr {
                self.tick_rr(core, cpu, curr);
            }
            return;
        }
        entry.time_slice = entry.time_slice.saturating_sub(1);
        let (left, static_prio, prio) = (entry.time_slice, entry.static_prio, entry.prio);
        if left == 0 {
            self.slice_is_over(core, cpu, curr);
        } else if self.scale.is_interactive(static_prio, prio) {
            self.rotate(core, cpu, curr);
        }
    }

    /// Number of ticks of running `curr` that only count its slice down.
    pub(super) fn quiet_ticks_of(&self, curr: TaskId) -> u64 {
        if self.arrays.side(curr) != Some(Side::Active) {
            return 0;
        }
        let entry = &self.tasks[curr.index()];
        let quiet = u64::from(entry.time_slice.saturating_sub(1));
        match () {
            () if entry.is_rt() && !entry.is_rr => u64::MAX,
            () if entry.is_rt() => quiet,
            () if self.scale.is_interactive(entry.static_prio, entry.prio) => {
                quiet.min(self.ticks_to_rotation(curr) - 1)
            }
            () => quiet,
        }
    }

    /// Passes this many such ticks.
    pub(super) fn pass_ticks_of(&mut self, curr: TaskId, nr: u64) {
        let entry = &mut self.tasks[curr.index()];
        if !entry.is_rt() || entry.is_rr {
            entry.time_slice -= nr as u32;
        }
    }

    /// Number of ticks, at least 1, until interactive `curr` may have to rotate.
    fn ticks_to_rotation(&self, curr: TaskId) -> u64 {
        let entry = &self.tasks[curr.index()];
        let whole = u64::from(self.scale.timeslice(entry.static_prio));
        match whole.checked_sub(u64::from(entry.time_slice)) {
            Some(used) => {
                let granularity = self.scale.granularity(entry.sleep_avg);
                granularity - used % granularity
            }
            // More than a slice is left, because of children that exited: the count wraps.
            None => 1,
        }
    }

    fn tick_rr(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let entry = &mut self.tasks[curr.index()];
        entry.time_slice = entry.time_slice.saturating_sub(1);
        if entry.time_slice == 0 {
            entry.time_slice = self.scale.timeslice(entry.static_prio);
            entry.first_time_slice = false;
            let prio = entry.prio;
            core.resched_curr(cpu);
            self.arrays.remove(curr);
            self.arrays.add(cpu, Side::Active, curr, prio);
        }
    }

    fn slice_is_over(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.arrays.remove(curr);
        core.resched_curr(cpu);
        self.set_effective_prio(curr);
        let entry = &mut self.tasks[curr.index()];
        entry.time_slice = self.scale.timeslice(entry.static_prio);
        entry.first_time_slice = false;
        let (static_prio, prio) = (entry.static_prio, entry.prio);
        let jiffies = core.jiffies();
        self.cpus[cpu.index()].expired_timestamp.get_or_insert(jiffies);
        let goes_on = self.scale.is_interactive(static_prio, prio)
            && !self.is_expired_starving(core, cpu, static_prio);
        if goes_on {
            self.arrays.add(cpu, Side::Active, curr, prio);
        } else {
            self.arrays.add(cpu, Side::Expired, curr, prio);
            let best = &mut self.cpus[cpu.index()].best_expired_prio;
            *best = (*best).min(static_prio);
        }
    }

    /// Whether tasks in the expired array have waited for long, or one of them is better than the
    /// running task (EXPIRED_STARVING).
    fn is_expired_starving(&self, core: &Core, cpu: CpuId, static_prio: u8) -> bool {
        let state = &self.cpus[cpu.index()];
        let limit = self.scale.starvation_limit() * u64::from(core.rq(cpu).nr_running) + 1;
        let waits = state.expired_timestamp.map_or(0, |since| core.jiffies() - since);
        let minds = self.scale.rules.minds_expired_prio;
        let is_better = minds && static_prio > state.best_expired_prio;
        waits >= limit || is_better
    }

    /// Moves an interactive task to the tail of its list at regular intervals, so that others
    /// of its priority get the CPU.
    fn rotate(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let entry = &self.tasks[curr.index()];
        let granularity = self.scale.granularity(entry.sleep_avg);
        let left = u64::from(entry.time_slice);
        let used = u64::from(self.scale.timeslice(entry.static_prio)).wrapping_sub(left);
        if !used.is_multiple_of(granularity) || left < granularity {
            return;
        }
        self.arrays.remove(curr);
        core.resched_curr(cpu);
        if self.scale.rules.rotation_recomputes {
            self.set_effective_prio(curr);
        }
        let prio = self.tasks[curr.index()].prio;
        self.arrays.add(cpu, Side::Active, curr, prio);
    }

    /// Splits the parent's slice, and sets the sleep averages of both.
    pub(super) fn fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: TaskId) {
        let from = self.tasks[parent.index()];
        let child = &mut self.tasks[task.index()];
        child.time_slice = (from.time_slice + 1) >> 1;
        child.first_time_slice = true;
        child.timestamp = core.now;
        child.sleep_avg = self.scale.child_sleep_avg(from.sleep_avg);
        child.credit = 0;
        child.parent = Some(parent);
        self.set_effective_prio(task);
        let entry = &mut self.tasks[parent.index()];
        entry.sleep_avg = self.scale.parent_sleep_avg(from.sleep_avg);
        entry.time_slice = from.time_slice >> 1;
        if entry.time_slice == 0 {
            entry.time_slice = 1;
            self.tick(core, cpu, parent);
        }
    }

    /// Puts a new task into its list. Returns whether it is before its parent.
    pub(super) fn enqueue_new(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) -> bool {
        let entry = &self.tasks[task.index()];
        if let Some(parent) = entry.parent
            && self.runs_before(core, cpu, task, parent)
        {
            self.tasks[task.index()].prio = self.tasks[parent.index()].prio;
            self.arrays.add_before(task, parent);
            core.resched_curr(cpu);
            return true;
        }
        self.set_effective_prio(task);
        self.add_activated(cpu, task);
        false
    }

    /// Whether new `task` is queued right before its parent: a process (any task, before 2.6.11)
    /// with the attributes that it inherits.
    fn runs_before(&self, core: &Core, cpu: CpuId, task: TaskId, parent: TaskId) -> bool {
        let (child, from) = (&self.tasks[task.index()], &self.tasks[parent.index()]);
        let is_thread = core.task(task).mm == core.task(parent).mm;
        core.rq(cpu).curr == Some(parent)
            && self.arrays.side(parent).is_some()
            && !(is_thread && self.scale.rules.threads_run_last)
            && (child.static_prio, child.rt_prio) == (from.static_prio, from.rt_prio)
    }

    /// Handles the exit of a child. A child that never used a whole slice returns the rest to its
    /// parent. One that slept less than its parent makes the parent less interactive.
    pub(super) fn exit(&mut self, core: &Core, task: TaskId) {
        let child = self.tasks[task.index()];
        let Some(parent) = child.parent.filter(|p| !self.tasks[p.index()].is_dead) else { return };
        let rules = self.scale.rules;
        let same_cpu = core.task(task).cpu == core.task(parent).cpu;
        let entry = &mut self.tasks[parent.index()];
        if child.first_time_slice && (same_cpu || !rules.exit_same_cpu) {
            let most = match rules.exit_caps_by_child {
                true => self.scale.timeslice(child.static_prio),
                false => self.scale.max_timeslice,
            };
            entry.time_slice = (entry.time_slice + child.time_slice).min(most);
        }
        if child.sleep_avg < entry.sleep_avg {
            let parts = EXIT_WEIGHT + 1;
            entry.sleep_avg = entry.sleep_avg / parts * EXIT_WEIGHT + child.sleep_avg / parts;
        }
    }

    /// Applies new attributes; a queued task changes its place when it is put back.
    pub(super) fn attributes_change(&mut self, core: &Core, task: TaskId, attr: &SchedAttr) {
        let old = *core.task(task).attr;
        let change = if (old.policy, old.rt_priority) != (attr.policy, attr.rt_priority) {
            Change::Policy
        } else if old.nice != attr.nice {
            Change::Nice
        } else {
            Change::None
        };
        self.adopt(task, attr);
        self.tasks[task.index()].change = change;
        if self.arrays.side(task).is_none() {
            self.change_prio(task);
        }
    }

    /// Sets the priority that follows from new attributes, for a task that is in no list.
    fn change_prio(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        let change = std::mem::replace(&mut entry.change, Change::None);
        match entry.rt_prio {
            _ if change == Change::None => {}
            Some(prio) => entry.prio = prio,
            None if self.scale.rules.nice_keeps_bonus => self.set_effective_prio(task),
            None => entry.prio = entry.static_prio,
        }
        let entry = &mut self.tasks[task.index()];
        if change == Change::Policy && entry.is_batch {
            // "Perpetual CPU hogs", from the next time on that the priority is computed.
            entry.sleep_avg = 0;
        }
    }

    /// Queues a task on `cpu` again after a change of its attributes.
    pub(super) fn restore(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let change = self.tasks[task.index()].change;
        let Some(side) = self.arrays.side(task).filter(|_| change != Change::None) else { return };
        let old_prio = self.tasks[task.index()].prio;
        self.arrays.remove(task);
        self.change_prio(task);
        let prio = self.tasks[task.index()].prio;
        // setscheduler() activates the task again, setpriority() leaves it in its array.
        match change {
            Change::Policy => self.add_activated(cpu, task),
            _ => self.arrays.add(cpu, side, task, prio),
        }
        let curr_prio = core.rq(cpu).curr.map_or(MAX_PRIO as u8, |c| self.tasks[c.index()].prio);
        let worse = core.is_running(task) && prio > old_prio;
        let better = match change {
            Change::Policy => prio < curr_prio,
            _ => prio < old_prio,
        };
        if worse || better {
            core.resched_curr(cpu);
        }
    }
}
