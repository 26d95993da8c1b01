// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of each CPU's tasks and fair server by deadline, and the order of CPUs by their earliest
//! deadline.
//!
//! Source: Linux kernel/sched/deadline.c (`dl_rq.root`, `pushable_dl_tasks_root`) and
//! cpudeadline.c. Equal deadlines keep the order of arrival.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};
use std::collections::BTreeSet;

/// Key in a queue: deadline, then order of arrival.
type Key = (Nanos, u64, TaskId);

/// The task or server with the earliest deadline of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// A task.
    Task(TaskId),
    /// The fair server.
    Server,
}

/// One queue for each CPU, ordered by deadline.
#[derive(Debug)]
pub struct DeadlineQueues {
    cpus: Vec<BTreeSet<Key>>,
    /// Deadline and order of arrival of the fair server, if it is queued.
    servers: Vec<Option<(Nanos, u64)>>,
    /// CPU and key of each task.
    places: Vec<Option<(CpuId, Key)>>,
    sequence: u64,
}

impl DeadlineQueues {
    /// Empty queues.
    pub fn new(nr_cpus: u32) -> Self {
        let cpus = (0..nr_cpus).map(|_| BTreeSet::new()).collect();
        Self { cpus, servers: vec![None; nr_cpus as usize], places: Vec::new(), sequence: 0 }
    }

    /// Makes room for `task`.
    pub fn add_task(&mut self, task: TaskId) {
        if self.places.len() <= task.index() {
            self.places.resize(task.index() + 1, None);
        }
    }

    /// Adds `task` after those with the same deadline.
    pub fn add(&mut self, cpu: CpuId, task: TaskId, deadline: Nanos) {
        self.remove(task);
        let key = (deadline, self.sequence, task);
        self.sequence += 1;
        self.cpus[cpu.index()].insert(key);
        self.places[task.index()] = Some((cpu, key));
    }

    /// Removes `task`, if it is queued.
    pub fn remove(&mut self, task: TaskId) {
        if let Some((cpu, key)) = self.places[task.index()].take() {
            self.cpus[cpu.index()].remove(&key);
        }
    }

    /// Queues the fair server of `cpu` with this deadline, after those with the same one; or
    /// removes it.
    pub fn set_server(&mut self, cpu: CpuId, deadline: Option<Nanos>) {
        self.servers[cpu.index()] = deadline.map(|deadline| (deadline, self.sequence));
        self.sequence += 1;
    }

    /// Deadline of the fair server of `cpu` if it is queued.
    pub fn server(&self, cpu: CpuId) -> Option<Nanos> {
        self.servers[cpu.index()].map(|server| server.0)
    }

    /// Whether `task` is in a queue.
    pub fn contains(&self, task: TaskId) -> bool {
        self.places[task.index()].is_some()
    }

    /// Whether `cpu` has neither a task nor a server.
    pub fn is_empty(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].is_empty() && self.servers[cpu.index()].is_none()
    }

    /// The task or server with the earliest deadline.
    pub fn first(&self, cpu: CpuId) -> Option<First> {
        let task = self.cpus[cpu.index()].first();
        match (task, self.servers[cpu.index()]) {
            (None, None) => None,
            (Some(key), Some(server)) if (key.0, key.1) < server => Some(First::Task(key.2)),
            (Some(key), None) => Some(First::Task(key.2)),
            (_, Some(_)) => Some(First::Server),
        }
    }

    /// The task with the earliest deadline.
    pub fn first_task(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].first().map(|key| key.2)
    }

    /// The earliest deadline.
    pub fn earliest(&self, cpu: CpuId) -> Option<Nanos> {
        let task = self.cpus[cpu.index()].first().map(|key| key.0);
        match (task, self.server(cpu)) {
            (Some(task), Some(server)) => Some(task.min(server)),
            (task, server) => task.or(server),
        }
    }

    /// Tasks by deadline.
    pub fn iter(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.cpus[cpu.index()].iter().map(|key| key.2)
    }
}

/// The CPUs by their earliest deadline (`struct cpudl`).
#[derive(Debug)]
pub struct CpuDl {
    /// CPUs without a task of the class.
    free: CpuMask,
    by_deadline: BTreeSet<(Nanos, CpuId)>,
    deadlines: Vec<Option<Nanos>>,
}

impl CpuDl {
    /// All CPUs, free.
    pub fn new(nr_cpus: u32) -> Self {
        Self {
            free: CpuMask::first(nr_cpus),
            by_deadline: BTreeSet::new(),
            deadlines: vec![None; nr_cpus as usize],
        }
    }

    /// Sets the earliest deadline of `cpu`.
    pub fn set(&mut self, cpu: CpuId, earliest: Option<Nanos>) {
        let old = std::mem::replace(&mut self.deadlines[cpu.index()], earliest);
        if old == earliest {
            return;
        }
        if let Some(old) = old {
            self.by_deadline.remove(&(old, cpu));
        }
        match earliest {
            Some(deadline) => {
                self.by_deadline.insert((deadline, cpu));
                self.free.clear(cpu);
            }
            None => self.free.set(cpu),
        }
    }

    /// CPUs where a task of `deadline` with affinity `allowed` would run at once: the free ones; or
    /// else the one whose earliest deadline is the latest of all, if that is later.
    pub fn find(&self, allowed: &CpuMask, deadline: Nanos) -> Option<CpuMask> {
        let free = self.free.and(allowed);
        if !free.is_empty() {
            return Some(free);
        }
        let (latest, cpu) = *self.by_deadline.last()?;
        (allowed.contains(cpu) && deadline < latest).then(|| CpuMask::only(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deadlines_keep_their_order() {
        let mut queues = DeadlineQueues::new(2);
        (0..4).for_each(|task| queues.add_task(TaskId(task)));
        for (task, deadline) in [(3, 20), (1, 10), (0, 10), (2, 5)] {
            queues.add(CpuId(1), TaskId(task), deadline);
        }
        let order =
            |queues: &DeadlineQueues| queues.iter(CpuId(1)).map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(order(&queues), [2, 1, 0, 3]);
        queues.add(CpuId(1), TaskId(1), 10);
        queues.remove(TaskId(2));
        assert_eq!(order(&queues), [0, 1, 3]);
        assert_eq!(queues.earliest(CpuId(1)), Some(10));
        assert!(queues.is_empty(CpuId(0)) && !queues.contains(TaskId(2)));
    }

    #[test]
    fn the_server_stands_among_the_tasks() {
        let mut queues = DeadlineQueues::new(1);
        (0..2).for_each(|task| queues.add_task(TaskId(task)));
        let cpu = CpuId(0);
        queues.set_server(cpu, Some(20));
        assert_eq!((queues.first(cpu), queues.earliest(cpu)), (Some(First::Server), Some(20)));
        queues.add(cpu, TaskId(0), 20);
        assert_eq!(queues.first(cpu), Some(First::Server), "it came first");
        queues.set_server(cpu, Some(20));
        assert_eq!(queues.first(cpu), Some(First::Task(TaskId(0))), "it came last");
        queues.add(cpu, TaskId(1), 30);
        queues.remove(TaskId(0));
        assert_eq!(
            (queues.first(cpu), queues.first_task(cpu)),
            (Some(First::Server), Some(TaskId(1)))
        );
        queues.set_server(cpu, None);
        assert_eq!(
            (queues.first(cpu), queues.earliest(cpu)),
            (Some(First::Task(TaskId(1))), Some(30))
        );
        queues.remove(TaskId(1));
        assert!(queues.is_empty(cpu));
    }

    #[test]
    fn free_cpus_come_first_then_the_latest_deadline() {
        let mut cpudl = CpuDl::new(3);
        let all = CpuMask::first(3);
        cpudl.set(CpuId(1), Some(50));
        assert_eq!(cpudl.find(&all, 90), Some(all.and_not(&CpuMask::only(CpuId(1)))));
        cpudl.set(CpuId(0), Some(70));
        cpudl.set(CpuId(2), Some(60));
        assert_eq!(cpudl.find(&all, 69), Some(CpuMask::only(CpuId(0))));
        assert_eq!(cpudl.find(&all, 70), None);
        assert_eq!(cpudl.find(&CpuMask::only(CpuId(2)), 10), None, "only the latest is looked at");
        cpudl.set(CpuId(0), None);
        assert_eq!(cpudl.find(&all, 99), Some(CpuMask::only(CpuId(0))));
    }
}
