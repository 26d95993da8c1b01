// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entities, queues and groups of the fair class.
//!
//! Counterparts: `struct sched_entity`, `struct cfs_rq` and `struct task_group` (Linux
//! kernel/sched/sched.h). All are in vectors and refer to each other by index. The entities of
//! groups are first, one for each CPU and each group except the root; then those of tasks, in order
//! of task ids. The queue of group `g` on CPU `c` is number `g * nr_cpus + c`.

use super::pelt::{Avg, EntityAvg, Step};
use super::rbtree::{NIL, Node, before, min_time};
use super::rules::{Algorithm, Protection};
use super::timeline::{Slot, Timeline};
use super::util_est::UtilEst;
use super::weights::{LoadWeight, calc_delta_fair, scale_load_down};
use schedlab_model::Nanos;

/// A schedulable entity: a task, or all of a group's tasks on one CPU.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Weight.
    pub load: LoadWeight,
    /// Virtual runtime; relative to the queue's `min_vruntime` if `v_relative`.
    pub vruntime: u64,
    /// Virtual deadline (EEVDF); relative to `vruntime` if `rel_deadline`.
    pub deadline: u64,
    /// Lag in virtual time at the last dequeue (EEVDF).
    pub vlag: i64,
    /// Protection of the running entity: the deadline when it was picked (6.6, 6.12), or the
    /// virtual runtime up to which it lasts (6.18).
    pub vprot: u64,
    /// Slice (EEVDF).
    pub slice: Nanos,
    /// Time of the last accounting; 0 after a migration: not cache-hot.
    pub exec_start: Nanos,
    /// Running time so far.
    pub sum_exec_runtime: Nanos,
    /// Running time when it was last picked.
    pub prev_sum_exec_runtime: Nanos,
    /// The queue it belongs to.
    pub cfs: u32,
    /// The queue that it represents; [`NIL`] for a task.
    pub my_q: u32,
    /// The entity of its queue's group, [`NIL`] at the root.
    pub parent: u32,
    /// Number of entities above it.
    pub depth: u32,
    /// Number of tasks below it that its load average counts as runnable (`runnable_weight`).
    pub runnable_weight: u32,
    /// Whether it is queued or running.
    pub on_rq: bool,
    /// Whether it sleeps but stays queued (`sched_delayed`).
    pub delayed: bool,
    /// Whether it is throttled: on no queue, but in the limbo of its own queue (6.18).
    pub limbo: bool,
    /// Whether `deadline` is relative.
    pub rel_deadline: bool,
    /// Whether `slice` is its own, not the scheduler's.
    pub custom_slice: bool,
    /// Whether `vruntime` is relative (CFS).
    pub v_relative: bool,
    /// Whether it is a SCHED_IDLE task.
    pub idle: bool,
    /// Whether it is a SCHED_NORMAL task, which may preempt when it wakes.
    pub normal: bool,
    /// Neighbour towards the head of the CPU's list of tasks.
    pub list_prev: u32,
    /// Neighbour towards the tail of the CPU's list of tasks.
    pub list_next: u32,
    /// Load tracking.
    pub avg: EntityAvg,
    /// Estimated utilisation of a task.
    pub util_est: UtilEst,
    /// Wake-up statistics of a task.
    pub wake: WakeStats,
}

/// Data of a task for the choice of a CPU at wake-up.
#[derive(Clone, Copy, Debug)]
pub struct WakeStats {
    /// How often it woke another task than the last time (`wakee_flips`).
    pub flips: u32,
    /// When `flips` was last halved, in ticks.
    pub flip_decay_jiffies: u64,
    /// The task it woke last; [`NIL`] if none.
    pub last_wakee: u32,
    /// CPU it used recently; [`NIL`] if none.
    pub recent_used_cpu: u32,
}

impl WakeStats {
    /// Statistics of a new task.
    pub const NEW: Self =
        Self { flips: 0, flip_decay_jiffies: 0, last_wakee: NIL, recent_used_cpu: NIL };
}

impl Entity {
    /// An entity on no queue.
    pub fn new(load: LoadWeight, cfs: u32, my_q: u32, parent: u32, depth: u32) -> Self {
        Self {
            load,
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            // It has ended: tasks ran before they came here.
            vprot: (1u64 << 62).wrapping_neg(),
            slice: 0,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            cfs,
            my_q,
            parent,
            depth,
            runnable_weight: 0,
            on_rq: false,
            delayed: false,
            limbo: false,
            rel_deadline: false,
            custom_slice: false,
            v_relative: false,
            idle: false,
            normal: true,
            list_prev: NIL,
            list_next: NIL,
            avg: EntityAvg::default(),
            util_est: UtilEst::default(),
            wake: WakeStats::NEW,
        }
    }

    /// Updates the averages of a task. See [`Entity::refresh_avg`].
    #[inline(always)]
    pub fn refresh_task_avg(&mut self, now: Nanos, running: bool) -> Option<Step> {
        let runnable = u64::from(self.on_rq & !self.delayed);
        self.avg.update(now, self.load.scaled, self.on_rq, runnable, running)
    }

    /// Updates the averages. `running`: it has run since the last update. Returns the step of time,
    /// if there was one.
    #[inline(always)]
    pub fn refresh_avg(&mut self, now: Nanos, running: bool) -> Option<Step> {
        let runnable = match self.my_q {
            _ if self.delayed => 0,
            NIL => u64::from(self.on_rq),
            _ => u64::from(self.runnable_weight),
        };
        self.avg.update(now, self.load.scaled, self.on_rq, runnable, running)
    }

    /// Whether, running, it is still protected from others by this rule (EEVDF).
    #[inline]
    pub fn is_protected(&self, rule: Protection) -> bool {
        match rule {
            Protection::ShortestSlice => before(self.vruntime, self.vprot),
            Protection::WhileEligible | Protection::RescheduleIneligible => {
                self.vprot == self.deadline
            }
        }
    }

    /// Renews the deadline if the virtual runtime has reached it. Returns whether it did
    /// (update_deadline). `base_slice` is the default slice.
    #[inline]
    pub fn renew_deadline(&mut self, base_slice: Nanos) -> bool {
        if before(self.vruntime, self.deadline) {
            return false;
        }
        if !self.custom_slice {
            self.slice = base_slice;
        }
        self.deadline = self.vruntime.wrapping_add(calc_delta_fair(self.slice, self.load));
        true
    }
}

/// Load of entities that left the queue from another CPU. The next update of the queue subtracts
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removed {
    /// Number of these entities.
    pub nr: u32,
    /// Their load.
    pub load_avg: u64,
    /// Their utilisation.
    pub util_avg: u64,
    /// Their runnable average.
    pub runnable_avg: u64,
}

/// A queue: the entities of one group on one CPU.
#[derive(Clone, Debug)]
pub struct CfsRq {
    /// Waiting entities.
    pub waiting: Timeline,
    /// Running entity; not in the tree.
    pub curr: u32,
    /// The entity to run next, unless that is unfair.
    pub next: u32,
    /// The preempted entity to run next, unless that is unfair (CFS).
    pub last: u32,
    /// The entity that yielded (CFS).
    pub skip: u32,
    /// Least virtual runtime; never falls.
    pub min_vruntime: u64,
    /// Sum over the tree of (virtual runtime - `min_vruntime`) * weight (EEVDF).
    pub avg_vruntime: i128,
    /// Sum over the tree of the weights (EEVDF).
    pub avg_load: i64,
    /// Sum of stored weights, the running entity's included.
    pub load: u64,
    /// Number of entities, including the running and the delayed ones.
    pub nr_queued: u32,
    /// Number of SCHED_IDLE entities among them.
    pub nr_idle: u32,
    /// Number of tasks of this group and its descendants (`h_nr_running`, from 6.13 on
    /// `h_nr_queued`).
    pub h_nr_queued: u32,
    /// Number of tasks whose dequeue is not delayed.
    pub h_nr_runnable: u32,
    /// Number of SCHED_IDLE tasks among them.
    pub h_nr_idle: u32,
    /// Group.
    pub group: u32,
    /// CPU.
    pub cpu: u32,
    /// The entity that represents this queue; [`NIL`] for the root group.
    pub se: u32,
    /// Load tracking.
    pub avg: Avg,
    /// See [`Removed`].
    pub removed: Removed,
    /// This queue's contribution to its group's load.
    pub tg_load_avg_contrib: u64,
    /// When that was last refreshed.
    pub last_update_tg_load_avg: Nanos,
    /// Whether load joined or left below, to be passed on to the entity above.
    pub propagate: bool,
    /// How much runnable sum did.
    pub prop_runnable_sum: i64,
}

impl CfsRq {
    /// An empty queue; `waiting` is as empty.
    pub fn new(group: u32, cpu: u32, se: u32, waiting: Timeline) -> Self {
        Self {
            waiting,
            curr: NIL,
            next: NIL,
            last: NIL,
            skip: NIL,
            // So that a wrap-around shows early, as in the kernel.
            min_vruntime: (1u64 << 20).wrapping_neg(),
            avg_vruntime: 0,
            avg_load: 0,
            load: 0,
            nr_queued: 0,
            nr_idle: 0,
            h_nr_queued: 0,
            h_nr_runnable: 0,
            h_nr_idle: 0,
            group,
            cpu,
            se,
            avg: Avg::default(),
            removed: Removed::default(),
            tg_load_avg_contrib: 0,
            last_update_tg_load_avg: 0,
            propagate: false,
            prop_runnable_sum: 0,
        }
    }
}

impl CfsRq {
    /// Whether any buddy is named.
    #[inline]
    pub fn has_buddies(&self) -> bool {
        self.next & self.last & self.skip != NIL
    }

    /// Counts `se`, which joins (`sign` 1) or leaves (-1) those that wait, in the sums over them
    /// (avg_vruntime_add, avg_vruntime_sub; EEVDF).
    #[inline(always)]
    pub fn count_waiting(&mut self, se: &Entity, sign: i64) {
        let weight = sign * se.load.averaged;
        let key = se.vruntime.wrapping_sub(self.min_vruntime) as i64;
        self.avg_vruntime += i128::from(key) * i128::from(weight);
        self.avg_load += weight;
    }

    /// Inserts `se`, which is number `e`, among those that wait (__enqueue_entity).
    #[inline(always)]
    pub fn insert_waiting(&mut self, by: Algorithm, se: &Entity, e: u32, nodes: &mut [Node]) {
        let (key, time) = match by {
            Algorithm::Cfs => (se.vruntime, 0),
            Algorithm::EevdfByVruntime => (se.vruntime, se.deadline),
            Algorithm::EevdfByDeadline => (se.deadline, se.vruntime),
        };
        if by != Algorithm::Cfs {
            self.count_waiting(se, 1);
        }
        self.waiting.insert(nodes, Slot { key, time, slice: se.slice, id: e });
    }

    /// Takes `se`, which is number `e`, from among those that wait (__dequeue_entity).
    #[inline(always)]
    pub fn remove_waiting(&mut self, by: Algorithm, se: &Entity, e: u32, nodes: &mut [Node]) {
        if by != Algorithm::Cfs {
            self.count_waiting(se, -1);
        }
        self.waiting.remove(nodes, e);
    }

    /// Counts `se`, which joins the queue (account_entity_enqueue).
    #[inline(always)]
    pub fn count_in(&mut self, se: &Entity) {
        self.load += se.load.weight;
        self.nr_queued += 1;
        self.nr_idle += u32::from(se.idle);
    }

    /// Counts `se` no more, which leaves the queue (account_entity_dequeue).
    #[inline(always)]
    pub fn count_out(&mut self, se: &Entity) {
        self.load -= se.load.weight;
        self.nr_queued -= 1;
        self.nr_idle -= u32::from(se.idle);
    }

    /// Moves `min_vruntime` up to the least virtual runtime of the queue, never back. `running` is
    /// that of what runs, if it is queued.
    #[inline(always)]
    pub fn raise_min_vruntime(&mut self, by: Algorithm, running: Option<u64>, nodes: &[Node]) {
        let floor = self.min_vruntime;
        if running.is_some_and(|v| !before(floor, v)) {
            return;
        }
        let waiting = match by {
            Algorithm::EevdfByDeadline => self.waiting.min_time_from(nodes, floor),
            _ if self.waiting.is_empty() => None,
            _ => Some(nodes[self.waiting.first() as usize].key),
        };
        let least = match (running, waiting) {
            (Some(a), Some(b)) => min_time(a, b),
            (Some(v), None) | (None, Some(v)) => v,
            (None, None) => return,
        };
        let delta = least.wrapping_sub(self.min_vruntime) as i64;
        if delta > 0 {
            self.avg_vruntime -= i128::from(delta) * i128::from(self.avg_load);
            self.min_vruntime = least;
        }
    }

    /// Brings the queue's averages up to date but for what left it; returns whether they changed.
    /// `step`: a step to `now` that is known already.
    #[inline(always)]
    pub fn refresh_avg(&mut self, now: Nanos, step: Option<&Step>) -> bool {
        let (load, runnable) = (scale_load_down(self.load), u64::from(self.h_nr_runnable));
        self.avg.update(now, step, load, runnable, self.curr != NIL)
    }
}

/// A control group.
#[derive(Clone, Copy, Debug)]
pub struct TaskGroup {
    /// Shares, as a stored weight.
    pub shares: u64,
    /// Sum of its queues' loads, as last reported.
    pub load_avg: u64,
}

/// What the class keeps of a CPU besides its queues.
#[derive(Clone, Copy, Debug)]
pub struct CpuFair {
    /// Head of the list of queued tasks: most recently enqueued or set running.
    pub tasks_head: u32,
    /// Tail of that list: least recently.
    pub tasks_tail: u32,
    /// When the CPU last went idle, until something wakes there.
    pub idle_stamp: Option<Nanos>,
    /// Average length of idle periods.
    pub avg_idle: Nanos,
    /// Bound of `avg_idle`, half of it (max_idle_balance_cost).
    pub max_idle_balance_cost: Nanos,
    /// Sum of the estimated utilisations of the queued tasks (`cfs.avg.util_est`).
    pub util_est: u64,
}
