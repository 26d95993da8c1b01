// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the fair class: entities (tasks and groups), their queues, and the tree of waiting
//! entities.
//!
//! Queues are numbered group by group, CPU by CPU. If the root group is an entity next to the
//! others, the CPUs have further queues, which hold the groups and follow the queues of groups. In
//! the arena the entities of groups come first, then those of tasks. The running entity is not in
//! the tree.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`struct cfs_rq`, `init_cfs_rq`),
//! include/linux/sched.h (`struct sched_entity`).

use super::weights::LoadWeight;
use crate::fair::rbtree::{NIL, Node, Tree};
use schedlab_model::Nanos;

/// An entity: a task, or a group's share of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    pub load: LoadWeight,
    /// Virtual run time; relative to its queue's least one while `is_relative`.
    pub vruntime: u64,
    /// When it was last charged.
    pub exec_start: Nanos,
    pub sum_exec_runtime: Nanos,
    /// `sum_exec_runtime` when it was picked.
    pub prev_sum_exec_runtime: Nanos,
    /// The queue that it is in, or was last in.
    pub cfs: u32,
    /// The queue that it represents, if it is a group.
    pub my_q: u32,
    /// The entity of its group.
    pub parent: u32,
    pub depth: u32,
    /// Neighbours in the task list of its queue.
    pub list_prev: u32,
    pub list_next: u32,
    pub on_rq: bool,
    /// Whether `vruntime` is relative, because it is on no queue after a change or before its first
    /// queue (2.6.32).
    pub is_relative: bool,
    /// Whether the task is SCHED_IDLE.
    pub is_idle: bool,
    /// Whether the task is SCHED_NORMAL, the only policy that preempts.
    pub is_normal: bool,
}

impl Entity {
    pub const fn new(load: LoadWeight, cfs: u32, my_q: u32, parent: u32, depth: u32) -> Self {
        Self {
            load,
            vruntime: 0,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            cfs,
            my_q,
            parent,
            depth,
            list_prev: NIL,
            list_next: NIL,
            on_rq: false,
            is_relative: false,
            is_idle: false,
            is_normal: true,
        }
    }
}

/// How a task wakes others, as 2.6.32 records it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// `sum_exec_runtime` when it woke, and when it last woke another task; 0: not since it woke.
    pub start_runtime: Nanos,
    pub last_wakeup: Nanos,
    /// Average CPU time from waking another task to sleeping.
    pub avg_overlap: Nanos,
    /// Average CPU time until it wakes another task.
    pub avg_wakeup: Nanos,
    /// Average CPU time of an uninterrupted run (ns).
    pub avg_running: Nanos,
}

/// Moves an average by an eighth towards `sample` (`update_avg`).
#[inline]
pub const fn update_avg(average: &mut Nanos, sample: Nanos) {
    let difference = sample.wrapping_sub(*average) as i64;
    *average = average.wrapping_add((difference >> 3) as u64);
}

/// A queue of entities.
#[derive(Clone, Copy, Debug)]
pub struct CfsRq {
    pub tree: Tree,
    /// The group of the queue.
    pub group: u32,
    /// The entity of that group on this CPU.
    pub se: u32,
    /// The running entity.
    pub curr: u32,
    /// Number of queued entities, including the running one, and the sum of their weights.
    pub nr_running: u32,
    pub load: u64,
    pub min_vruntime: u64,
    /// Buddies (2.6.32): the one to pick next, and the one to return to.
    pub next: u32,
    pub last: u32,
    /// Sum of the weights of the tasks among the entities.
    pub task_weight: u64,
    /// Tasks, the last queued first.
    pub tasks_head: u32,
    /// The group's shares on this CPU and the load from which they were computed (2.6.32); 0 if
    /// there was none.
    pub shares: u64,
    pub rq_weight: u64,
    /// Load of the queue as a share of its CPU's load.
    pub h_load: u64,
}

impl CfsRq {
    pub const fn new(group: u32, se: u32) -> Self {
        Self {
            tree: Tree::new(false),
            group,
            se,
            curr: NIL,
            nr_running: 0,
            load: 0,
            min_vruntime: (1u64 << 20).wrapping_neg(),
            next: NIL,
            last: NIL,
            task_weight: 0,
            tasks_head: NIL,
            shares: 0,
            rq_weight: 0,
            h_load: 0,
        }
    }

    /// The last waiting entity.
    pub fn rightmost(&self, nodes: &[Node]) -> u32 {
        let mut at = self.tree.root;
        while at != NIL && nodes[at as usize].right != NIL {
            at = nodes[at as usize].right;
        }
        at
    }
}

/// The fair tasks of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuFair {
    /// Number of queued fair tasks in all groups, and the sum of their weights.
    pub nr_running: u32,
    pub task_weight: u64,
}

/// Whether virtual time `a` is before `b`.
#[inline]
pub const fn is_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The later of two virtual times.
#[inline]
pub const fn later_of(a: u64, b: u64) -> u64 {
    if is_before(a, b) { b } else { a }
}
