// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's state of a task and of a CPU.
//!
//! Counterparts: `struct sched_entity` and `struct cfs_rq` of Linux 2.6.23, include/linux/sched.h,
//! kernel/sched.c. The kernel keeps `sum_exec_runtime` and `prev_sum_exec_runtime`; the entity
//! keeps their difference. The time of the running task's last update is kept by CPU.

use crate::fair::rbtree::Tree;
use crate::fair::wmult::LoadWeight;
use schedlab_model::{Nanos, TaskId};

/// The scheduling classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SCHED_FIFO and SCHED_RR, and tasks that inherit their priority.
    Rt,
    /// All others.
    Fair,
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// CPU time (ns) that it should still get (positive), or got in excess (negative).
    pub wait_runtime: i64,
    /// `fair_clock` when it began to wait; 0: it does not wait.
    pub wait_start_fair: u64,
    /// `fair_clock` when it fell asleep; 0: it does not sleep.
    pub sleep_start_fair: u64,
    /// CPU time since it was picked (ns).
    pub ran: Nanos,
    /// Its weight.
    pub weight: u32,
    /// 2^32 / weight.
    pub inv_weight: u32,
    /// Its class. While it is queued, the class of the runqueue that holds it.
    pub class: Class,
    /// Whether it is on a runqueue.
    pub on_rq: bool,
    /// Whether its policy is SCHED_BATCH.
    pub is_batch: bool,
}

impl Entity {
    /// A task with this weight that has never run and, if it wakes rather than is forked, has slept
    /// since the start.
    pub fn new(load: LoadWeight, class: Class, is_batch: bool) -> Self {
        let mut entity = Self {
            wait_runtime: 0,
            wait_start_fair: 0,
            sleep_start_fair: FAIR_CLOCK_START,
            ran: 0,
            weight: 0,
            inv_weight: 0,
            class,
            on_rq: false,
            is_batch,
        };
        entity.set_load(load);
        entity
    }

    /// Sets a weight; the task loses what it was owed (`set_load_weight`).
    pub fn set_load(&mut self, load: LoadWeight) {
        self.weight = load.weight as u32;
        self.inv_weight = load.inv_weight as u32;
        self.wait_runtime = 0;
    }

    /// The weight with its inverse.
    #[inline]
    pub fn load(&self) -> LoadWeight {
        let (weight, inv_weight) = (u64::from(self.weight), u64::from(self.inv_weight));
        LoadWeight { weight, inv_weight }
    }
}

/// Where every `fair_clock` starts, so that 0 can mean "never".
pub const FAIR_CLOCK_START: u64 = 1;

/// The fair runqueue of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct CfsRq {
    /// Time that a task of nice 0 would have got if all tasks had run at once.
    pub fair_clock: u64,
    /// Sum of the weights of its tasks, including the running one. Its inverse is 0 until needed.
    pub load: LoadWeight,
    /// Number of its tasks, including the running one.
    pub nr_running: u32,
    /// Credit of sleepers (ns) that is not yet charged to other tasks.
    pub sleeper_bonus: u64,
    /// Its tasks by `fair_key`, including the running one.
    pub tree: Tree,
    /// Time of the last update of the running task's account.
    pub exec_start: Nanos,
}

impl CfsRq {
    /// An empty runqueue.
    pub const EMPTY: Self = Self {
        fair_clock: FAIR_CLOCK_START,
        load: LoadWeight::ZERO,
        nr_running: 0,
        sleeper_bonus: 0,
        tree: Tree::new(false),
        exec_start: 0,
    };

    /// The load with its inverse.
    #[inline]
    pub fn load(&mut self) -> LoadWeight {
        if self.load.inv_weight == 0 {
            self.load = LoadWeight::of_load(self.load.weight);
        }
        self.load
    }

    /// The first task of the tree.
    #[inline]
    pub fn leftmost(&self) -> Option<TaskId> {
        let first = self.tree.leftmost;
        (first != crate::fair::rbtree::NIL).then_some(TaskId(first))
    }
}

/// Times that are still too short to be accounted (`delta_exec`, `delta_fair_run`,
/// `delta_fair_sleep`). Kept only if `sched_stat_granularity` is set.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rest {
    /// CPU time.
    pub exec: u64,
    /// Time waited, on the fair clock.
    pub fair_run: u64,
    /// Time slept, on the fair clock.
    pub fair_sleep: u64,
}
