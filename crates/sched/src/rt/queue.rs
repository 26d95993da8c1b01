// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priority lists: 100 FIFO lists and a bitmap for each CPU.
//!
//! Counterparts: `struct rt_prio_array`, and the plist of pushable tasks (Linux
//! kernel/sched/sched.h and rt.c). The plist is ordered by priority, and first come, first served
//! among equals, so it has the same structure. A task is in at most one list of one [`PrioLists`].
//! Links are stored by task, so adding and removing cost the same for any length of a list. Load
//! balancing keeps its list of fair tasks (`rq->cfs_tasks`) in the same way, at one priority.

use schedlab_model::{CpuId, TaskId};

/// Number of real-time priorities (MAX_RT_PRIO): kernel priorities 0 (best) to 99.
pub const MAX_RT_PRIO: usize = 100;

const NONE: u32 = u32::MAX;

/// Lists of one CPU.
#[derive(Clone, Debug)]
struct Array {
    bitmap: u128,
    head: [u32; MAX_RT_PRIO],
    tail: [u32; MAX_RT_PRIO],
}

/// Links of one task.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    /// CPU whose lists contain the task, or NONE.
    cpu: u32,
    prio: u8,
}

const UNLINKED: Link = Link { prev: NONE, next: NONE, cpu: NONE, prio: 0 };

/// Priority lists of all CPUs.
#[derive(Debug)]
pub struct PrioLists {
    arrays: Vec<Array>,
    links: Vec<Link>,
}

impl PrioLists {
    /// Empty lists for `nr_cpus` CPUs.
    pub fn new(nr_cpus: u32) -> Self {
        let array = Array { bitmap: 0, head: [NONE; MAX_RT_PRIO], tail: [NONE; MAX_RT_PRIO] };
        Self { arrays: vec![array; nr_cpus as usize], links: Vec::new() }
    }

    /// Makes room for `task`.
    pub fn add_task(&mut self, task: TaskId) {
        if self.links.len() <= task.index() {
            self.links.resize(task.index() + 1, UNLINKED);
        }
    }

    /// The CPU and priority of the list that holds `task`.
    pub fn position(&self, task: TaskId) -> Option<(CpuId, usize)> {
        let link = self.links[task.index()];
        (link.cpu != NONE).then_some((CpuId(link.cpu), usize::from(link.prio)))
    }

    /// Best priority queued on `cpu`, or [`MAX_RT_PRIO`] if there is none.
    #[inline]
    pub fn best_prio(&self, cpu: CpuId) -> usize {
        // trailing_zeros of 0 is 128: cap it to the kernel's "none".
        (self.arrays[cpu.index()].bitmap.trailing_zeros() as usize).min(MAX_RT_PRIO)
    }

    /// Whether `cpu` has nothing queued.
    #[inline]
    pub fn is_empty(&self, cpu: CpuId) -> bool {
        self.arrays[cpu.index()].bitmap == 0
    }

    /// Head of the best list of `cpu`.
    #[inline]
    pub fn first(&self, cpu: CpuId) -> Option<TaskId> {
        let prio = self.best_prio(cpu);
        (prio < MAX_RT_PRIO).then(|| TaskId(self.arrays[cpu.index()].head[prio]))
    }

    /// Head of list `prio` of `cpu`.
    #[inline]
    pub fn head(&self, cpu: CpuId, prio: usize) -> Option<TaskId> {
        let array = &self.arrays[cpu.index()];
        (array.bitmap >> prio & 1 != 0).then(|| TaskId(array.head[prio]))
    }

    /// Adds `task`, which is in no list, at the tail (or head) of list `prio` of `cpu`.
    pub fn add(&mut self, cpu: CpuId, task: TaskId, prio: usize, head: bool) {
        assert!(self.position(task).is_none(), "task {task} is in a list already");
        let array = &mut self.arrays[cpu.index()];
        let mut link = Link { prev: NONE, next: NONE, cpu: cpu.0, prio: prio as u8 };
        if array.bitmap >> prio & 1 == 0 {
            array.bitmap |= 1 << prio;
            array.head[prio] = task.0;
            array.tail[prio] = task.0;
        } else if head {
            link.next = array.head[prio];
            self.links[link.next as usize].prev = task.0;
            array.head[prio] = task.0;
        } else {
            link.prev = array.tail[prio];
            self.links[link.prev as usize].next = task.0;
            array.tail[prio] = task.0;
        }
        self.links[task.index()] = link;
    }

    /// Removes `task` from its list, if it is in one.
    pub fn remove(&mut self, task: TaskId) {
        let link = std::mem::replace(&mut self.links[task.index()], UNLINKED);
        if link.cpu == NONE {
            return;
        }
        let array = &mut self.arrays[link.cpu as usize];
        let prio = usize::from(link.prio);
        match link.prev {
            NONE => array.head[prio] = link.next,
            prev => self.links[prev as usize].next = link.next,
        }
        match link.next {
            NONE => array.tail[prio] = link.prev,
            next => self.links[next as usize].prev = link.prev,
        }
        if array.head[prio] == NONE {
            array.bitmap &= !(1 << prio);
        }
    }

    /// Moves `task` to the tail (or head) of its list (`requeue_task_rt`).
    pub fn requeue(&mut self, task: TaskId, head: bool) {
        if let Some((cpu, prio)) = self.position(task) {
            self.remove(task);
            self.add(cpu, task, prio, head);
        }
    }

    /// Whether `task` is the only one of its list.
    pub fn is_alone(&self, task: TaskId) -> bool {
        let link = self.links[task.index()];
        link.prev == NONE && link.next == NONE
    }

    /// Tasks of `cpu`, best priority first, each list from its head.
    pub fn iter(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(cpu, false)
    }

    /// Tasks of `cpu`, best priority first, each list from its tail: balancing's order before
    /// real-time tasks were pushed and pulled.
    pub fn iter_from_tails(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(cpu, true)
    }

    fn walk(&self, cpu: CpuId, from_tails: bool) -> impl Iterator<Item = TaskId> + '_ {
        let array = &self.arrays[cpu.index()];
        let mut lists = array.bitmap;
        let mut next = NONE;
        std::iter::from_fn(move || {
            if next == NONE {
                if lists == 0 {
                    return None;
                }
                let ends = if from_tails { &array.tail } else { &array.head };
                next = ends[lists.trailing_zeros() as usize];
                lists &= lists - 1;
            }
            let task = TaskId(next);
            let link = &self.links[task.index()];
            next = if from_tails { link.prev } else { link.next };
            Some(task)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lists: &PrioLists, cpu: u32) -> Vec<u32> {
        lists.iter(CpuId(cpu)).map(|task| task.0).collect()
    }

    fn lists(tasks: u32) -> PrioLists {
        let mut lists = PrioLists::new(2);
        (0..tasks).for_each(|task| lists.add_task(TaskId(task)));
        lists
    }

    #[test]
    fn lists_are_ordered_by_priority_then_by_arrival() {
        let mut lists = lists(5);
        lists.add(CpuId(0), TaskId(0), 50, false);
        lists.add(CpuId(0), TaskId(1), 10, false);
        lists.add(CpuId(0), TaskId(2), 50, false);
        lists.add(CpuId(0), TaskId(3), 50, true);
        lists.add(CpuId(1), TaskId(4), 98, false);
        assert_eq!(order(&lists, 0), [1, 3, 0, 2]);
        let from_tails: Vec<u32> = lists.iter_from_tails(CpuId(0)).map(|task| task.0).collect();
        assert_eq!(from_tails, [1, 2, 0, 3]);
        assert_eq!(order(&lists, 1), [4]);
        assert_eq!(lists.best_prio(CpuId(0)), 10);
        lists.requeue(TaskId(3), false);
        assert_eq!(order(&lists, 0), [1, 0, 2, 3]);
        lists.remove(TaskId(1));
        lists.remove(TaskId(2));
        assert_eq!(order(&lists, 0), [0, 3]);
        assert!(!lists.is_alone(TaskId(0)) && lists.is_alone(TaskId(4)));
    }

    #[test]
    fn removing_what_is_not_queued_changes_nothing() {
        let mut lists = lists(1);
        lists.remove(TaskId(0));
        assert!(lists.is_empty(CpuId(0)));
        assert_eq!(lists.best_prio(CpuId(0)), MAX_RT_PRIO);
        assert_eq!(lists.first(CpuId(0)), None);
    }
}
