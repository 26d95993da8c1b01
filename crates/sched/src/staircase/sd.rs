// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots of SD: each task walks down the free columns of its row of the matrix, not above those
//! that better priorities have reached.
//!
//! Source: 2.6.22-ck1, kernel/sched.c (`recalc_task_prio`, `next_entitled_slot`, `queue_expired`,
//! `next_dynamic_task`).

use super::tasks::Kind;
use super::{Staircase, matrix, variants::Rules};
use schedlab_model::{CpuId, TaskId};

impl Staircase {
    /// The slot of `task` at the start of a rotation.
    pub(super) fn first_slot(&self, task: TaskId) -> u8 {
        matrix::first_free(self.entry(task).row, 0, 0).expect("every row has its last slot")
    }

    /// Queues `task` by its used part of this rotation (`recalc_task_prio`, `enqueue_task`).
    pub(super) fn queue_sd(&mut self, cpu: CpuId, task: TaskId) {
        let entry = *self.entry(task);
        let rq = self.rq(cpu);
        let (rotation, active, expired) = (rq.rotation, rq.active, rq.expired());
        let takes_part = entry.rotation == rotation;
        if takes_part && entry.array == expired {
            self.queue_expired(cpu, task);
            return;
        }
        if takes_part && entry.array == active {
            if entry.left > 0 {
                self.add_to(cpu, task, active, entry.slot);
                return;
            }
            self.entry_mut(task).left = entry.quota;
        } else {
            self.entry_mut(task).begin_rotation(rotation);
        }
        self.entry_mut(task).first_time_slice = false;
        match self.next_entitled_slot(cpu, task) {
            Some(slot) => {
                self.entry_mut(task).used |= 1 << slot;
                self.add_to(cpu, task, active, slot);
            }
            None => self.queue_expired(cpu, task),
        }
    }

    /// The next slot of `task` in this rotation, if it has one.
    fn next_entitled_slot(&mut self, cpu: CpuId, task: TaskId) -> Option<u8> {
        let entry = *self.entry(task);
        let (row, user) = (entry.row, entry.user);
        let interactive = self.interactive;
        let rq = self.rq_mut(cpu);
        if user > rq.best_static[usize::from(rq.expired())] {
            // A better task has already had all its slots.
            return None;
        }
        let best = &mut rq.best_static[usize::from(rq.active)];
        let own = if interactive { 0 } else { rq.reached[usize::from(user)] };
        let start = if user < *best {
            if entry.kind != Kind::Batch {
                *best = user;
            }
            0
        } else if user == *best {
            own
        } else {
            let between = &rq.reached[usize::from(*best)..=usize::from(user)];
            between.iter().copied().fold(own, u8::max)
        };
        matrix::first_free(row, entry.used, start)
    }

    /// Handles the pick of `task`.
    pub(super) fn enter_slot(&mut self, cpu: CpuId, task: TaskId) {
        if self.rules == Rules::Rsdl {
            return;
        }
        let (user, slot) = (self.entry(task).user, self.entry(task).slot);
        let rq = self.rq_mut(cpu);
        let best = &mut rq.best_static[usize::from(rq.active)];
        *best = (*best).min(user);
        let reached = &mut rq.reached[usize::from(user)];
        *reached = (*reached).max(slot);
        let rotation = rq.rotation;
        self.entry_mut(task).rotation = rotation;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_tasks;
    use super::super::variants::Rules::Sd;
    use super::*;

    const CPU: CpuId = CpuId(0);
    const A: TaskId = TaskId(0);

    #[test]
    fn section_4_3_another_cpus_rotation_is_carried_over() {
        // On 2 CPUs the interval is 12 ms.
        let mut sd = with_tasks(Sd, 2, &[0]);
        sd.queue(CPU, A);
        assert_eq!(sd.choose(CPU), Some(A));
        sd.enter_slot(CPU, A);
        sd.entry_mut(A).left = 5_000;
        // It moves to a CPU that is 6 rotations ahead, whose arrays have been swapped.
        sd.rqs[1].rotation = 7;
        sd.rqs[1].active = 1;
        sd.slots.remove(A);
        sd.queue(CpuId(1), A);
        let entry = *sd.entry(A);
        assert_eq!((entry.rotation, entry.array, entry.slot, entry.left), (7, 1, 1, 5_000));
        // Back on a CPU whose rotation has advanced, it starts from the beginning.
        sd.slots.remove(A);
        sd.rqs[1].rotation = 8;
        sd.rqs[0].rotation = 9;
        sd.queue(CPU, A);
        let entry = *sd.entry(A);
        assert_eq!((entry.rotation, entry.array, entry.used, entry.left), (9, 0, 1 << 1, 12_000));
    }

    #[test]
    fn section_4_3_who_expired_elsewhere_has_expired_here() {
        let mut sd = with_tasks(Sd, 2, &[0]);
        sd.queue_expired(CPU, A);
        sd.slots.remove(A);
        sd.queue(CpuId(1), A);
        assert_eq!(sd.entry(A).array, sd.rq(CpuId(1)).expired());
    }

    #[test]
    fn section_4_3_the_first_slot_is_not_marked_by_expiry() {
        let mut sd = with_tasks(Sd, 1, &[0]);
        sd.queue_expired(CPU, A);
        assert_eq!((sd.entry(A).slot, sd.entry(A).used), (1, 0));
        assert_eq!(sd.choose(CPU), Some(A));
        assert_eq!((sd.rq(CPU).rotation, sd.rq(CPU).expired()), (2, 0));
        sd.enter_slot(CPU, A);
        sd.entry_mut(A).left = 0;
        sd.entitlement_is_over(CPU, A);
        assert_eq!(sd.entry(A).slot, 1, "once more");
    }

    #[test]
    fn section_4_4_worse_ones_start_where_better_ones_have_got_to() {
        let mut sd = with_tasks(Sd, 1, &[0, 5, 10, 10]);
        sd.queue(CPU, A);
        sd.queue(CPU, TaskId(1));
        assert_eq!((sd.entry(A).slot, sd.entry(TaskId(1)).slot), (1, 2));
        // Nice 0 has reached slot 9 and nice 5 slot 14: nice 10 begins at 15.
        sd.rq_mut(CPU).reached[20] = 9;
        sd.rq_mut(CPU).reached[25] = 14;
        sd.queue(CPU, TaskId(2));
        assert_eq!(sd.entry(TaskId(2)).slot, 15);
        // After a better task has expired, no worse task has slots left in this rotation.
        let expired = usize::from(sd.rq(CPU).expired());
        sd.rq_mut(CPU).best_static[expired] = 29;
        sd.queue(CPU, TaskId(3));
        assert_eq!((sd.entry(TaskId(3)).array, sd.entry(TaskId(3)).slot), (1, 3));
    }

    #[test]
    fn section_4_5_what_ran_over_is_taken_off_and_may_cost_slots() {
        let mut sd = with_tasks(Sd, 1, &[19, 0]);
        sd.queue(CPU, TaskId(1));
        assert_eq!(sd.choose(CPU), Some(TaskId(1)));
        sd.enter_slot(CPU, TaskId(1));
        // An overrun of 8 ms: the next slot has 6 - 8, the one after it 4.
        sd.entry_mut(TaskId(1)).left = -8_000;
        sd.entitlement_is_over(CPU, TaskId(1));
        assert_eq!((sd.entry(TaskId(1)).slot, sd.entry(TaskId(1)).left), (3, -2_000));
        assert_eq!(sd.choose(CPU), Some(TaskId(1)));
        assert_eq!((sd.entry(TaskId(1)).slot, sd.entry(TaskId(1)).left), (5, 4_000));
    }
}
