// SPDX-License-Identifier: MIT OR Apache-2.0
//! Levels of RSDL. A task has a quota on each level from its static priority down, and so has the
//! level itself. When the level's quota is used up, all tasks still on it move down together.
//!
//! A level's quota is used up when it is exceeded, not when it is exactly 0. A task that moves with
//! the expired array brings its quota only when it is picked. With the opposite rule, tasks after
//! the first one of a level would move down without a quota, rotation after rotation, and starve.
//! That contradicts the announced limits of waiting.
//!
//! Source: the announcement of RSDL and LWN (see the folder's head) for the idea; details and
//! constants from memory.

use super::{SLOTS, Staircase, matrix};
use schedlab_model::{CpuId, TaskId};

impl Staircase {
    /// Queues `task` by its used part of this rotation.
    pub(super) fn queue_rsdl(&mut self, cpu: CpuId, task: TaskId) {
        let entry = *self.entry(task);
        let rq = self.rq(cpu);
        let (rotation, active, expired, level) = (rq.rotation, rq.active, rq.expired(), rq.level);
        let takes_part = entry.rotation == rotation;
        let level_has_time = rq.quota[usize::from(entry.slot)] > 0;
        if takes_part && entry.array == expired {
            self.queue_expired(cpu, task);
        } else if takes_part && entry.array == active {
            if entry.left > 0 && level_has_time {
                self.add_to(cpu, task, active, entry.slot);
                return;
            }
            match matrix::first_free(0, entry.used, entry.user.max(level)) {
                Some(slot) => self.grant(cpu, task, slot),
                None => {
                    self.queue_expired(cpu, task);
                    return;
                }
            }
            let slot = self.entry(task).slot;
            self.add_to(cpu, task, active, slot);
        } else {
            self.entry_mut(task).begin_rotation(rotation);
            self.grant(cpu, task, entry.user);
            self.add_to(cpu, task, active, entry.user);
        }
    }

    /// Grants a whole quota on level `slot`, to the task and to the level.
    fn grant(&mut self, cpu: CpuId, task: TaskId, slot: u8) {
        let entry = self.entry_mut(task);
        entry.slot = slot;
        entry.used |= 1 << slot;
        entry.left = entry.quota;
        entry.first_time_slice = false;
        let quota = entry.quota;
        self.rq_mut(cpu).quota[usize::from(slot)] += quota;
    }

    /// Handles `task` being the first of the best level. If it moved with a swap of the arrays, it
    /// gets its quota now.
    pub(super) fn enter_level(&mut self, cpu: CpuId, task: TaskId) {
        let (_, level) = self.slots.position(task).expect("it heads a list");
        let rq = self.rq_mut(cpu);
        rq.level = level as u8;
        let rotation = rq.rotation;
        if self.entry(task).rotation != rotation {
            self.entry_mut(task).begin_rotation(rotation);
            self.grant(cpu, task, level as u8);
        }
    }

    /// Handles a tick of the running level. Returns true if its quota is exceeded and its tasks
    /// have moved.
    pub(super) fn tick_level(&mut self, cpu: CpuId) -> bool {
        let rq = self.rq_mut(cpu);
        let level = rq.level;
        rq.quota[usize::from(level)] -= 1;
        if rq.quota[usize::from(level)] >= 0 {
            return false;
        }
        if level + 1 < SLOTS {
            self.minor_rotation(cpu, level);
        } else {
            self.major_rotation(cpu);
        }
        true
    }

    /// Moves the remaining tasks of `level` to the tail of the next one.
    fn minor_rotation(&mut self, cpu: CpuId, level: u8) {
        let lists = Self::lists(cpu, self.rq(cpu).active);
        self.splice(lists, usize::from(level), lists, usize::from(level) + 1);
        self.rq_mut(cpu).level = level + 1;
    }

    /// Moves the remaining tasks of the last level to the tail of the best list of the next
    /// rotation, which begins.
    fn major_rotation(&mut self, cpu: CpuId) {
        let last = usize::from(SLOTS - 1);
        let lists = Self::lists(cpu, self.rq(cpu).active);
        let next = Self::lists(cpu, self.rq(cpu).expired());
        if let Some(first) = self.slots.head(lists, last) {
            let own = usize::from(self.entry(first).user);
            let best = self.slots.best_prio(next);
            let to = if best <= last { best } else { own };
            self.splice(lists, last, next, to);
        }
        if !self.slots.is_empty(next) {
            self.rq_mut(cpu).swap();
        }
    }

    /// Moves list `level` of `lists` to the tail of list `to` of `other`. The tasks' own levels are
    /// out of date until they are queued again.
    fn splice(&mut self, lists: CpuId, level: usize, other: CpuId, to: usize) {
        while let Some(task) = self.slots.head(lists, level) {
            self.slots.remove(task);
            self.slots.add(other, task, to, false);
            self.entry_mut(task).array = (other.0 % 2) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_tasks;
    use super::super::variants::Rules::Rsdl;
    use super::*;

    const CPU: CpuId = CpuId(0);

    fn levels(rsdl: &Staircase, array: u8) -> Vec<(u32, usize)> {
        let lists = Staircase::lists(CPU, array);
        let level = |task| rsdl.slots.position(task).unwrap().1;
        rsdl.slots.iter(lists).map(|task| (task.0, level(task))).collect()
    }

    #[test]
    fn section_4_1_levels_get_the_quotas_of_who_comes() {
        let mut rsdl = with_tasks(Rsdl, 1, &[0, 0, -10]);
        (0..3).for_each(|task| rsdl.queue(CPU, TaskId(task)));
        assert_eq!((rsdl.rq(CPU).quota[20], rsdl.rq(CPU).quota[10]), (12, 15));
        // A task that returns with time left adds nothing.
        rsdl.slots.remove(TaskId(1));
        rsdl.queue(CPU, TaskId(1));
        assert_eq!(rsdl.rq(CPU).quota[20], 12);
        // A task without time left brings its quota to the next level.
        rsdl.entry_mut(TaskId(0)).left = 0;
        rsdl.entitlement_is_over(CPU, TaskId(0));
        assert_eq!((rsdl.rq(CPU).quota[20], rsdl.rq(CPU).quota[21]), (12, 6));
        assert_eq!(levels(&rsdl, 0), [(2, 10), (1, 20), (0, 21)]);
    }

    #[test]
    fn section_4_1_minor_rotation() {
        let mut rsdl = with_tasks(Rsdl, 1, &[0, 0, 1]);
        (0..3).for_each(|task| rsdl.queue(CPU, TaskId(task)));
        assert_eq!(rsdl.choose(CPU), Some(TaskId(0)));
        rsdl.rq_mut(CPU).quota[20] = 1;
        assert!(!rsdl.tick_level(CPU), "all is used, and nothing is run over");
        assert!(rsdl.tick_level(CPU));
        assert_eq!(levels(&rsdl, 0), [(2, 21), (0, 21), (1, 21)]);
        assert_eq!(rsdl.rq(CPU).level, 21);
        // Their own levels do not show the move yet.
        assert_eq!(rsdl.entry(TaskId(1)).slot, 20);
    }

    #[test]
    fn section_4_1_major_rotation() {
        let mut rsdl = with_tasks(Rsdl, 1, &[19, 19, 5, 0]);
        (0..2).for_each(|task| rsdl.queue(CPU, TaskId(task)));
        (2..4).for_each(|task| rsdl.queue_expired(CPU, TaskId(task)));
        assert_eq!(rsdl.choose(CPU), Some(TaskId(0)));
        rsdl.rq_mut(CPU).quota[39] = 0;
        assert!(rsdl.tick_level(CPU));
        // Behind the best expired tasks, in a rotation where no level has time yet.
        assert_eq!(rsdl.rq(CPU).rotation, 2);
        assert_eq!(levels(&rsdl, rsdl.rq(CPU).active), [(3, 20), (0, 20), (1, 20), (2, 25)]);
        assert_eq!(rsdl.rq(CPU).quota, [0; 40]);
        assert_eq!(rsdl.choose(CPU), Some(TaskId(3)));
        assert_eq!((rsdl.rq(CPU).quota[20], rsdl.entry(TaskId(3)).left), (6, 6));
    }
}
