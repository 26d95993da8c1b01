// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two arrays of 140 FIFO lists for each CPU: one active, one expired.
//!
//! Counterpart: `struct prio_array` of Linux 2.6.0 to 2.6.22, kernel/sched.c. Links are stored by
//! task, so every operation has the same cost for any number of tasks.

use super::rules::MAX_PRIO;
use schedlab_model::{CpuId, TaskId};

const NONE: u32 = u32::MAX;

/// One of the two arrays of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Tasks with time left.
    Active,
    /// Tasks that have used their slice.
    Expired,
}

/// Lists, bitmap and count.
#[derive(Clone, Debug)]
struct Array {
    bitmap: [u64; 3],
    nr_active: u32,
    head: [u32; MAX_PRIO],
    tail: [u32; MAX_PRIO],
}

impl Array {
    const EMPTY: Self =
        Self { bitmap: [0; 3], nr_active: 0, head: [NONE; MAX_PRIO], tail: [NONE; MAX_PRIO] };

    /// The best priority from `from` on, or MAX_PRIO.
    #[inline]
    fn find_bit(&self, from: usize) -> usize {
        let mut word = from / 64;
        if word >= self.bitmap.len() {
            return MAX_PRIO;
        }
        let mut bits = self.bitmap[word] & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            if word == self.bitmap.len() {
                return MAX_PRIO;
            }
            bits = self.bitmap[word];
        }
        word * 64 + bits.trailing_zeros() as usize
    }
}

/// The list that holds a task.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    /// The CPU, or NONE.
    cpu: u32,
    /// Which of the two arrays of the CPU.
    array: u8,
    prio: u8,
}

const UNLINKED: Link = Link { prev: NONE, next: NONE, cpu: NONE, array: 0, prio: 0 };

/// The arrays of all CPUs.
#[derive(Debug)]
pub struct Arrays {
    arrays: Vec<[Array; 2]>,
    /// Index of the active array, by CPU.
    active: Vec<u8>,
    links: Vec<Link>,
}

impl Arrays {
    /// Empty arrays.
    pub fn new(nr_cpus: u32) -> Self {
        let nr_cpus = nr_cpus as usize;
        Self {
            arrays: vec![[Array::EMPTY; 2]; nr_cpus],
            active: vec![0; nr_cpus],
            links: Vec::new(),
        }
    }

    /// Makes room for the next task.
    pub fn add_task(&mut self) {
        self.links.push(UNLINKED);
    }

    #[inline]
    fn index(&self, cpu: CpuId, side: Side) -> u8 {
        let active = self.active[cpu.index()];
        if side == Side::Active { active } else { 1 - active }
    }

    #[inline]
    fn array(&self, cpu: CpuId, side: Side) -> &Array {
        &self.arrays[cpu.index()][usize::from(self.index(cpu, side))]
    }

    /// The array that holds `task`.
    #[inline]
    pub fn side(&self, task: TaskId) -> Option<Side> {
        let link = self.links[task.index()];
        if link.cpu == NONE {
            return None;
        }
        let is_active = self.active[link.cpu as usize] == link.array;
        Some(if is_active { Side::Active } else { Side::Expired })
    }

    /// Tasks in an array.
    #[inline]
    pub fn nr_active(&self, cpu: CpuId, side: Side) -> u32 {
        self.array(cpu, side).nr_active
    }

    /// Puts `task`, which is in no list, at the tail of its list (`enqueue_task`).
    pub fn add(&mut self, cpu: CpuId, side: Side, task: TaskId, prio: u8) {
        let index = self.index(cpu, side);
        debug_assert!(self.links[task.index()].cpu == NONE, "task {task} is queued twice");
        let array = &mut self.arrays[cpu.index()][usize::from(index)];
        let list = usize::from(prio);
        let prev = array.tail[list];
        array.tail[list] = task.0;
        match prev {
            NONE => {
                array.head[list] = task.0;
                array.bitmap[list / 64] |= 1 << (list % 64);
            }
            prev => self.links[prev as usize].next = task.0,
        }
        array.nr_active += 1;
        self.links[task.index()] = Link { prev, next: NONE, cpu: cpu.0, array: index, prio };
    }

    /// Puts `task`, which is in no list, right before queued `other`.
    pub fn add_before(&mut self, task: TaskId, other: TaskId) {
        let Link { prev, cpu, array: index, prio, .. } = self.links[other.index()];
        let array = &mut self.arrays[cpu as usize][usize::from(index)];
        match prev {
            NONE => array.head[usize::from(prio)] = task.0,
            prev => self.links[prev as usize].next = task.0,
        }
        array.nr_active += 1;
        self.links[other.index()].prev = task.0;
        self.links[task.index()] = Link { prev, next: other.0, cpu, array: index, prio };
    }

    /// Removes `task` from its list (`dequeue_task`).
    pub fn remove(&mut self, task: TaskId) {
        let link = std::mem::replace(&mut self.links[task.index()], UNLINKED);
        assert!(link.cpu != NONE, "task {task} is in no array");
        let array = &mut self.arrays[link.cpu as usize][usize::from(link.array)];
        let list = usize::from(link.prio);
        match link.prev {
            NONE => array.head[list] = link.next,
            prev => self.links[prev as usize].next = link.next,
        }
        match link.next {
            NONE => array.tail[list] = link.prev,
            next => self.links[next as usize].prev = link.prev,
        }
        if array.head[list] == NONE {
            array.bitmap[list / 64] &= !(1 << (list % 64));
        }
        array.nr_active -= 1;
    }

    /// Swaps the active and the expired array of `cpu`.
    pub fn swap(&mut self, cpu: CpuId) {
        self.active[cpu.index()] ^= 1;
    }

    /// Head of the best list of the active array.
    #[inline]
    pub fn first(&self, cpu: CpuId) -> Option<TaskId> {
        let array = self.array(cpu, Side::Active);
        let prio = array.find_bit(0);
        (prio < MAX_PRIO).then(|| TaskId(array.head[prio]))
    }

    /// Tasks of an array, best priority first, each list from its head.
    pub fn iter(&self, cpu: CpuId, side: Side) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(cpu, side, false)
    }

    /// Tasks of an array, best priority first, each list from its tail: balancing's order.
    pub fn iter_from_tails(&self, cpu: CpuId, side: Side) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(cpu, side, true)
    }

    fn walk(&self, cpu: CpuId, side: Side, from_tails: bool) -> impl Iterator<Item = TaskId> + '_ {
        let array = self.array(cpu, side);
        let (mut prio, mut next) = (0, NONE);
        std::iter::from_fn(move || {
            if next == NONE {
                prio = array.find_bit(prio);
                if prio == MAX_PRIO {
                    return None;
                }
                next = if from_tails { array.tail[prio] } else { array.head[prio] };
                prio += 1;
            }
            let task = TaskId(next);
            let link = self.links[task.index()];
            next = if from_tails { link.prev } else { link.next };
            Some(task)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(0);

    fn arrays(nr_tasks: u32) -> Arrays {
        let mut arrays = Arrays::new(1);
        (0..nr_tasks).for_each(|_| arrays.add_task());
        arrays
    }

    fn order(arrays: &Arrays, side: Side) -> Vec<u32> {
        arrays.iter(CPU, side).map(|task| task.0).collect()
    }

    #[test]
    fn section_3_1_the_best_list_first_and_each_in_order() {
        let mut arrays = arrays(6);
        for (task, prio) in [(0, 120), (1, 120), (2, 63), (3, 64), (4, 139), (5, 0)] {
            arrays.add(CPU, Side::Active, TaskId(task), prio);
        }
        assert_eq!(order(&arrays, Side::Active), [5, 2, 3, 0, 1, 4]);
        let tails: Vec<u32> = arrays.iter_from_tails(CPU, Side::Active).map(|t| t.0).collect();
        assert_eq!(tails, [5, 2, 3, 1, 0, 4]);
        arrays.remove(TaskId(5));
        arrays.remove(TaskId(2));
        arrays.remove(TaskId(0));
        assert_eq!(order(&arrays, Side::Active), [3, 1, 4]);
        assert_eq!(arrays.first(CPU), Some(TaskId(3)));
        assert_eq!(arrays.nr_active(CPU, Side::Active), 3);
    }

    #[test]
    fn section_3_1_arrays_change_places() {
        let mut arrays = arrays(2);
        arrays.add(CPU, Side::Active, TaskId(0), 120);
        arrays.add(CPU, Side::Expired, TaskId(1), 125);
        assert_eq!(arrays.side(TaskId(1)), Some(Side::Expired));
        arrays.swap(CPU);
        assert_eq!(arrays.side(TaskId(0)), Some(Side::Expired));
        assert_eq!(arrays.first(CPU), Some(TaskId(1)));
        arrays.remove(TaskId(1));
        assert_eq!((arrays.first(CPU), arrays.side(TaskId(1))), (None, None));
    }

    #[test]
    fn section_3_10_a_child_goes_right_before_its_parent() {
        let mut arrays = arrays(5);
        for task in 0..3 {
            arrays.add(CPU, Side::Active, TaskId(task), 120);
        }
        arrays.add_before(TaskId(3), TaskId(1));
        arrays.add_before(TaskId(4), TaskId(0));
        assert_eq!(order(&arrays, Side::Active), [4, 0, 3, 1, 2]);
        arrays.remove(TaskId(4));
        arrays.remove(TaskId(3));
        assert_eq!(order(&arrays, Side::Active), [0, 1, 2]);
    }
}
