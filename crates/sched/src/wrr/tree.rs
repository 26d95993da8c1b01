// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queues of a WRR class: for each CPU the root's queue and, with groups, one for each group.
//!
//! A queue has 100 FIFO lists and a bitmap; the running task stays in its list. A group with
//! runnable tasks on a CPU is itself an entity in its parent's queue there, with the best priority
//! of its entities. So a pick walks from the root's first entry down to a task along one path.
//! Entities are numbered: groups first, by queue, then tasks. The lists are those of the real-time
//! class, with entities as members instead of tasks, and queues as owners instead of CPUs.

use crate::rt::queue::PrioLists;
use schedlab_model::{CgroupSpec, CpuId, TaskId};

/// A member of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Member {
    /// A task.
    Task(TaskId),
    /// The group that owns this queue.
    Group(u32),
}

/// All queues.
#[derive(Debug)]
pub(super) struct Tree {
    nr_cpus: u32,
    lists: PrioLists,
    /// Parent of each group; only the root if groups do not count.
    parents: Vec<u32>,
    /// Number of the first task: the number of group entities.
    first_task: u32,
}

impl Tree {
    /// Queues for `nr_cpus` CPUs; if `groups` is empty, one queue for each CPU.
    pub fn new(nr_cpus: u32, groups: &[CgroupSpec]) -> Self {
        let parents: Vec<u32> = match groups {
            [] => vec![0],
            groups => groups.iter().map(|group| group.parent.0).collect(),
        };
        let nr_queues = nr_cpus * parents.len() as u32;
        let first_task = nr_queues - nr_cpus;
        let mut lists = PrioLists::new(nr_queues);
        (0..first_task).for_each(|entity| lists.add_task(TaskId(entity)));
        Self { nr_cpus, lists, parents, first_task }
    }

    /// Makes room for `task`.
    pub fn add_task(&mut self, task: TaskId) {
        self.lists.add_task(self.entity(task));
    }

    fn entity(&self, task: TaskId) -> TaskId {
        TaskId(self.first_task + task.0)
    }

    fn member(&self, entity: TaskId) -> Member {
        match entity.0.checked_sub(self.first_task) {
            Some(task) => Member::Task(TaskId(task)),
            None => Member::Group(entity.0 + self.nr_cpus),
        }
    }

    /// The queue of `group` (0 if groups do not count) on `cpu`.
    pub fn queue(&self, group: u32, cpu: CpuId) -> u32 {
        let group = if self.parents.len() > 1 { group } else { 0 };
        group * self.nr_cpus + cpu.0
    }

    /// The group of `queue`; `None` if groups do not count.
    pub fn group_of(&self, queue: u32) -> Option<u32> {
        (self.parents.len() > 1).then_some(queue / self.nr_cpus)
    }

    /// The group entity that represents `queue`, and the queue to which it belongs; `None` for a
    /// root queue.
    fn above(&self, queue: u32) -> Option<(TaskId, u32)> {
        let entity = queue.checked_sub(self.nr_cpus)?;
        let parent = self.parents[(queue / self.nr_cpus) as usize];
        Some((TaskId(entity), parent * self.nr_cpus + queue % self.nr_cpus))
    }

    /// The queue that holds `task`, and its priority there.
    pub fn position(&self, task: TaskId) -> Option<(u32, u8)> {
        let (queue, prio) = self.lists.position(self.entity(task))?;
        Some((queue.0, prio as u8))
    }

    /// Removes the groups above `queue` from their lists.
    fn unqueue_groups(&mut self, queue: u32) {
        let mut at = queue;
        while let Some((entity, parent)) = self.above(at) {
            self.lists.remove(entity);
            at = parent;
        }
    }

    /// Adds the groups above `queue` that are not empty to their lists, from the innermost on.
    fn queue_groups(&mut self, queue: u32, head: bool) {
        let mut at = queue;
        while let Some((entity, parent)) = self.above(at) {
            if !self.lists.is_empty(CpuId(at)) {
                let prio = self.lists.best_prio(CpuId(at));
                self.lists.add(CpuId(parent), entity, prio, head);
            }
            at = parent;
        }
    }

    /// Queues `task`, which is in no list, and every group above it, at the tail (or head).
    pub fn insert(&mut self, task: TaskId, queue: u32, prio: u8, head: bool) {
        self.unqueue_groups(queue);
        self.lists.add(CpuId(queue), self.entity(task), usize::from(prio), head);
        self.queue_groups(queue, head);
    }

    /// Removes `task`, if it is in a list. The groups above that are not empty move to the tail.
    pub fn remove(&mut self, task: TaskId) {
        if let Some((queue, _)) = self.position(task) {
            self.unqueue_groups(queue);
            self.lists.remove(self.entity(task));
            self.queue_groups(queue, false);
        }
    }

    /// Moves `task` and every group above it to the tail of its list.
    pub fn requeue(&mut self, task: TaskId) {
        let Some((queue, _)) = self.position(task) else { return };
        self.lists.requeue(self.entity(task), false);
        let mut at = queue;
        while let Some((entity, parent)) = self.above(at) {
            self.lists.requeue(entity, false);
            at = parent;
        }
    }

    /// Whether `task` and every group above it are alone in their lists.
    pub fn is_alone(&self, task: TaskId) -> bool {
        let Some((queue, _)) = self.position(task) else { return true };
        let mut alone = self.lists.is_alone(self.entity(task));
        let mut at = queue;
        while let Some((entity, parent)) = self.above(at) {
            alone &= self.lists.is_alone(entity);
            at = parent;
        }
        alone
    }

    /// The task that `cpu` should run.
    pub fn first(&self, cpu: CpuId) -> Option<TaskId> {
        let mut queue = cpu;
        loop {
            match self.member(self.lists.first(queue)?) {
                Member::Task(task) => return Some(task),
                Member::Group(inner) => queue = CpuId(inner),
            }
        }
    }

    /// Members of `queue` in its order, with their priorities.
    pub fn members(&self, queue: u32) -> impl Iterator<Item = (Member, u8)> + '_ {
        self.lists.iter(CpuId(queue)).map(|entity| {
            let (_, prio) = self.lists.position(entity).expect("it is in this queue");
            (self.member(entity), prio as u8)
        })
    }

    /// The first task of `queue` and the queues below, in the order in which they would run, for
    /// which `wanted` holds.
    pub fn find(&self, queue: u32, wanted: &impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.members(queue).find_map(|(member, _)| match member {
            Member::Task(task) => wanted(task).then_some(task),
            Member::Group(inner) => self.find(inner, wanted),
        })
    }

    /// Whether `task` is in `queue` or below it.
    pub fn holds(&self, queue: u32, task: TaskId) -> bool {
        let Some((mut at, _)) = self.position(task) else { return false };
        while at != queue {
            let Some((_, parent)) = self.above(at) else { return false };
            at = parent;
        }
        true
    }
}
