// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pools of waiting tasks for the textbook schedulers: one logical queue for all CPUs.
//!
//! A pick must find the best task that its CPU may run. In one sorted queue it would have to skip
//! every task that may not run here. So tasks with equal affinity share a sub-queue, and a pick
//! looks only at the heads of its CPU's sub-queues: O(distinct affinities of the CPU x log n). Most
//! workloads have one affinity, so nothing is scanned. Every head after the first counts as a
//! scanned entry.

use crate::boundary::core::Core;
use schedlab_model::{CpuId, CpuMask, TaskId};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;

/// Tasks with one affinity, by number.
type Group = u32;

/// The sub-queue of each affinity, and the sub-queues that a CPU may take from.
#[derive(Debug, Default)]
pub struct Groups {
    /// Number of each known affinity. The map is only looked up, never iterated, because a hash
    /// order would show.
    by_mask: HashMap<CpuMask, Group>,
    /// Sub-queues of each CPU, in the order of first use.
    by_cpu: Vec<Vec<Group>>,
    count: Group,
}

impl Groups {
    /// The sub-queue of `task`; a new affinity gets a new one.
    fn of(&mut self, core: &Core, task: TaskId) -> Group {
        let allowed = &core.task(task).cpus_allowed;
        if let Some(group) = self.by_mask.get(allowed) {
            return *group;
        }
        let group = self.count;
        self.count += 1;
        self.by_mask.insert(**allowed, group);
        for cpu in allowed.iter() {
            if self.by_cpu.len() <= cpu.index() {
                self.by_cpu.resize(cpu.index() + 1, Vec::new());
            }
            self.by_cpu[cpu.index()].push(group);
        }
        group
    }

    /// The sub-queues that `cpu` may take from.
    fn of_cpu(&self, cpu: CpuId) -> &[Group] {
        self.by_cpu.get(cpu.index()).map_or(&[], Vec::as_slice)
    }
}

/// Waiting tasks of all CPUs.
pub trait Pool: Default + Send {
    /// What the pool compares.
    type Key: Copy + Debug + Send;

    /// Adds `task`, which is not in the pool.
    fn insert(&mut self, core: &Core, task: TaskId, key: Self::Key);

    /// Removes `task`. Returns whether it was in the pool.
    fn remove(&mut self, task: TaskId) -> bool;

    /// Whether `task` is in the pool.
    fn contains(&self, task: TaskId) -> bool;

    /// The task that `cpu` should run next among those it may run. It stays in the pool.
    fn best(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId>;

    /// The first `limit` tasks that `cpu` may run, in order, and how many there are. For
    /// explanations, because it walks the pool.
    fn waiting(&self, cpu: CpuId, limit: usize) -> (Vec<TaskId>, usize);

    /// The last drawn ticket and the number of all tickets; `None` for a pool without draws.
    fn drawn(&self) -> Option<(u64, u64)> {
        None
    }

    /// The first ticket of `task` in the numbering of the last draw, and how many it held.
    fn range(&self, _task: TaskId) -> Option<(u64, u64)> {
        None
    }
}

/// A pool in order of keys, least first; equal keys in order of task ids.
#[derive(Debug)]
pub struct Ordered<K> {
    groups: Groups,
    queues: Vec<BTreeSet<(K, TaskId)>>,
    /// Sub-queue and key of each task.
    place: Vec<Option<(Group, K)>>,
}

impl<K> Default for Ordered<K> {
    fn default() -> Self {
        Self { groups: Groups::default(), queues: Vec::new(), place: Vec::new() }
    }
}

impl<K: Ord + Copy + Debug + Send> Ordered<K> {
    /// The least entry for `cpu` whose key is at least `from` (`None`: any key).
    pub fn first(&self, core: &mut Core, cpu: CpuId, from: Option<K>) -> Option<(K, TaskId)> {
        let groups = self.groups.of_cpu(cpu);
        core.work.entries_scanned += groups.len().saturating_sub(1) as u32;
        let heads = groups.iter().filter_map(|group| {
            // A number is given to an affinity when its first task arrives, so the queue exists.
            let queue = &self.queues[*group as usize];
            match from {
                None => queue.first().copied(),
                Some(key) => queue.range((key, TaskId(0))..).next().copied(),
            }
        });
        heads.min()
    }

    /// Changes the key of `task` if it is in the pool.
    pub fn rekey(&mut self, task: TaskId, key: K) {
        if let Some(Some((group, old))) = self.place.get_mut(task.index()) {
            let queue = &mut self.queues[*group as usize];
            queue.remove(&(*old, task));
            queue.insert((key, task));
            *old = key;
        }
    }
}

impl<K: Ord + Copy + Debug + Send> Pool for Ordered<K> {
    type Key = K;

    fn insert(&mut self, core: &Core, task: TaskId, key: K) {
        let group = self.groups.of(core, task);
        if self.queues.len() <= group as usize {
            self.queues.push(BTreeSet::new());
        }
        if self.place.len() <= task.index() {
            self.place.resize(task.index() + 1, None);
        }
        let before = self.place[task.index()].replace((group, key));
        assert!(before.is_none(), "task {task} is put into the queue twice");
        self.queues[group as usize].insert((key, task));
    }

    fn remove(&mut self, task: TaskId) -> bool {
        let Some((group, key)) = self.place.get_mut(task.index()).and_then(Option::take) else {
            return false;
        };
        self.queues[group as usize].remove(&(key, task))
    }

    fn contains(&self, task: TaskId) -> bool {
        self.place.get(task.index()).is_some_and(Option::is_some)
    }

    fn best(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.first(core, cpu, None).map(|(_, task)| task)
    }

    fn waiting(&self, cpu: CpuId, limit: usize) -> (Vec<TaskId>, usize) {
        let queues = self.groups.of_cpu(cpu).iter().map(|group| &self.queues[*group as usize]);
        let total = queues.clone().map(BTreeSet::len).sum();
        let mut first: Vec<(K, TaskId)> =
            queues.flat_map(|queue| queue.iter().take(limit).copied()).collect();
        first.sort_unstable();
        (first.into_iter().take(limit).map(|(_, task)| task).collect(), total)
    }
}

/// Tickets of the tasks with one affinity: a Fenwick tree, so that a draw and a change take O(log
/// n).
#[derive(Debug, Default)]
struct TicketTree {
    /// Sums; index 0 is unused. The length minus one is a power of 2.
    sums: Vec<u64>,
    /// Which task holds which slot.
    tasks: Vec<TaskId>,
    /// Slots that no task holds, last freed first.
    free: Vec<u32>,
    total: u64,
}

impl TicketTree {
    fn add(&mut self, slot: u32, tickets: u64) {
        self.total += tickets;
        let mut index = slot as usize + 1;
        while index < self.sums.len() {
            self.sums[index] += tickets;
            index += index & index.wrapping_neg();
        }
    }

    fn take(&mut self, slot: u32, tickets: u64) {
        self.total -= tickets;
        let mut index = slot as usize + 1;
        while index < self.sums.len() {
            self.sums[index] -= tickets;
            index += index & index.wrapping_neg();
        }
    }

    fn insert(&mut self, task: TaskId, tickets: u64) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.tasks[slot as usize] = task;
                slot
            }
            None => {
                self.tasks.push(task);
                self.tasks.len() as u32 - 1
            }
        };
        if slot as usize + 1 >= self.sums.len() {
            self.grow();
        }
        self.add(slot, tickets);
        slot
    }

    /// Doubles the room. The new upper half is empty, so only its root has a sum: the total.
    fn grow(&mut self) {
        let size = self.sums.len().saturating_sub(1).max(1) * 2;
        self.sums.resize(size + 1, 0);
        self.sums[size] = self.total;
    }

    /// The task that holds ticket number `ticket` (below the total).
    fn holder(&self, mut ticket: u64) -> (u32, TaskId) {
        let mut index = 0;
        let mut step = self.sums.len() - 1;
        while step > 0 {
            if index + step < self.sums.len() && self.sums[index + step] <= ticket {
                index += step;
                ticket -= self.sums[index];
            }
            step /= 2;
        }
        (index as u32, self.tasks[index])
    }
}

/// The last draw, for explanations.
#[derive(Clone, Copy, Debug)]
struct Draw {
    cpu: CpuId,
    ticket: u64,
    total: u64,
    /// Sub-queue and slot of the winner, which may have left it.
    winner: (Group, u32),
    tickets: u64,
}

/// A pool that draws tasks with chances proportional to their tickets.
#[derive(Debug, Default)]
pub struct Tickets {
    groups: Groups,
    trees: Vec<TicketTree>,
    /// Affinity, slot and tickets of each waiting task.
    place: Vec<Option<(Group, u32, u64)>>,
    last_draw: Option<Draw>,
}

impl Tickets {
    /// Tickets that were in a slot at the last draw.
    fn tickets_at(&self, draw: &Draw, group: Group, slot: u32, task: TaskId) -> u64 {
        match self.place.get(task.index()).copied().flatten() {
            _ if (group, slot) == draw.winner => draw.tickets,
            Some((g, s, tickets)) if (g, s) == (group, slot) => tickets,
            _ => 0,
        }
    }
}

impl Pool for Tickets {
    type Key = u64;

    fn insert(&mut self, core: &Core, task: TaskId, tickets: u64) {
        let group = self.groups.of(core, task);
        if self.trees.len() <= group as usize {
            self.trees.push(TicketTree::default());
        }
        if self.place.len() <= task.index() {
            self.place.resize(task.index() + 1, None);
        }
        let slot = self.trees[group as usize].insert(task, tickets);
        let before = self.place[task.index()].replace((group, slot, tickets));
        assert!(before.is_none(), "task {task} is put into the pool twice");
    }

    fn remove(&mut self, task: TaskId) -> bool {
        let place = self.place.get_mut(task.index()).and_then(Option::take);
        let Some((group, slot, tickets)) = place else { return false };
        let tree = &mut self.trees[group as usize];
        tree.take(slot, tickets);
        tree.free.push(slot);
        true
    }

    fn contains(&self, task: TaskId) -> bool {
        self.place.get(task.index()).is_some_and(Option::is_some)
    }

    fn best(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let groups = self.groups.of_cpu(cpu);
        core.work.entries_scanned += groups.len().saturating_sub(1) as u32;
        let total: u64 = groups.iter().map(|group| self.trees[*group as usize].total).sum();
        if total == 0 {
            return None;
        }
        let drawn = core.random.below(total);
        let mut ticket = drawn;
        for group in groups {
            let tree = &self.trees[*group as usize];
            if ticket < tree.total {
                let (slot, task) = tree.holder(ticket);
                let tickets = self.place[task.index()].map_or(0, |(_, _, tickets)| tickets);
                let winner = (*group, slot);
                self.last_draw = Some(Draw { cpu, ticket: drawn, total, winner, tickets });
                return Some(task);
            }
            ticket -= tree.total;
        }
        unreachable!("a ticket below the total belongs to a tree")
    }

    fn waiting(&self, cpu: CpuId, limit: usize) -> (Vec<TaskId>, usize) {
        let groups = self.groups.of_cpu(cpu).iter().copied();
        let mut all = groups.flat_map(|group| {
            let tasks = self.trees[group as usize].tasks.iter().zip(0u32..);
            tasks.filter_map(move |(task, slot)| {
                let (g, s, _) = self.place.get(task.index()).copied().flatten()?;
                ((g, s) == (group, slot)).then_some(*task)
            })
        });
        let first: Vec<TaskId> = all.by_ref().take(limit).collect();
        let total = first.len() + all.count();
        (first, total)
    }

    fn drawn(&self) -> Option<(u64, u64)> {
        self.last_draw.map(|draw| (draw.ticket, draw.total))
    }

    fn range(&self, task: TaskId) -> Option<(u64, u64)> {
        let draw = self.last_draw?;
        let mut first = 0;
        for &group in self.groups.of_cpu(draw.cpu) {
            for (holder, slot) in self.trees[group as usize].tasks.iter().zip(0u32..) {
                let tickets = self.tickets_at(&draw, group, slot, *holder);
                if *holder == task && tickets > 0 {
                    return Some((first, tickets));
                }
                first += tickets;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ticket_has_its_holder_whatever_was_inserted_and_removed() {
        let mut tree = TicketTree::default();
        let mut held: Vec<Option<u64>> = Vec::new();
        let mut state = 1u64;
        for round in 0..400u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let waiting: Vec<usize> = (0..held.len()).filter(|s| held[*s].is_some()).collect();
            if state >> 62 == 0 && !waiting.is_empty() {
                let slot = waiting[(state >> 20) as usize % waiting.len()];
                let tickets = held[slot].take().expect("filtered");
                tree.take(slot as u32, tickets);
                tree.free.push(slot as u32);
            } else {
                let tickets = 1 + (state >> 40) % 5;
                let slot = tree.insert(TaskId(round), tickets) as usize;
                held.resize(held.len().max(slot + 1), None);
                held[slot] = Some(tickets);
            }
            let mut ticket = 0;
            for (slot, tickets) in held.iter().enumerate() {
                for _ in 0..tickets.unwrap_or(0) {
                    assert_eq!(
                        tree.holder(ticket),
                        (slot as u32, tree.tasks[slot]),
                        "round {round}"
                    );
                    ticket += 1;
                }
            }
            assert_eq!(ticket, tree.total);
        }
    }
}
