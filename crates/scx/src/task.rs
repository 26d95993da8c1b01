// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's state of a task: its queue, its owner, and its stage.
//!
//! Source: Linux kernel/sched/ext.c and include/linux/sched/ext.h, 6.18.

use super::consts::DSQ_INVALID;
use super::entity::Entity;
use schedlab_model::weights::{NICE_0_WEIGHT, task_weight};
use schedlab_model::{CpuId, CpuMask, Nanos, SchedAttr};
use std::sync::Arc;

/// No task, no queue.
pub const NIL: u32 = u32::MAX;

/// The stage of a task (`enum scx_task_state`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Life {
    /// `ops.init_task` has not succeeded.
    None,
    /// Initialised, of another class.
    Ready,
    /// Of this class.
    Enabled,
}

/// The owner of a task that needs a queue (`enum scx_ops_state`). QUEUEING lasts only during
/// `ops.enqueue`, when no other code can see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpsState {
    /// The core.
    None,
    /// `ops.enqueue` is under way.
    Queueing,
    /// The scheduler.
    Queued,
}

/// Links of a list that a task is in.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// The task after it, or [`NIL`].
    pub next: u32,
    /// The task before it.
    pub prev: u32,
}

impl Links {
    /// In no list.
    pub const NONE: Self = Self { next: NIL, prev: NIL };
}

/// A task.
#[derive(Debug)]
pub struct ExtTask {
    /// The words that the scheduler reads and writes.
    pub entity: Entity,
    /// Its queue, or [`NIL`].
    pub dsq: u32,
    /// Number of its insertion into the queue.
    pub dsq_seq: u32,
    /// Whether it is ordered by virtual time there.
    pub on_priq: bool,
    /// Its links in the queue.
    pub links: Links,
    /// Runnable, as the class counts it (SCX_TASK_QUEUED).
    pub queued: bool,
    /// Whether its waiting time restarts (SCX_TASK_RESET_RUNNABLE_AT).
    pub reset_runnable_at: bool,
    /// 7.1: whether the scheduler or one of its queues has it.
    pub in_custody: bool,
    /// Whether it has called exit (PF_EXITING).
    pub exiting: bool,
    /// The CPUs that the scheduler was last told for it.
    pub told_cpus: Option<Arc<CpuMask>>,
    /// Life.
    pub life: Life,
    /// Owner.
    pub ops_state: OpsState,
    /// Number of the latest `ops.enqueue`.
    pub qseq: u64,
    /// The queue into which it was inserted directly; [`DSQ_INVALID`]: none.
    pub ddsp_dsq_id: u64,
    /// Flags of that insertion.
    pub ddsp_enq_flags: u64,
    /// Whether it is in its CPU's list of deferred dispatches.
    pub deferred: bool,
    /// A CPU whose local queue it must enter.
    pub sticky_cpu: Option<CpuId>,
    /// Since when it waits.
    pub runnable_at: Nanos,
    /// Whether it is in its CPU's list of runnable tasks.
    pub on_runnable_list: bool,
    /// Its links in that list.
    pub runnable_links: Links,
    /// Time up to which its slice is charged.
    pub charged_at: Nanos,
    /// Its process: the id of the first task with the same address space.
    pub tgid: u32,
}

impl ExtTask {
    /// A new task.
    pub fn new(tgid: u32) -> Self {
        Self {
            entity: Entity::default(),
            dsq: NIL,
            dsq_seq: 0,
            on_priq: false,
            links: Links::NONE,
            queued: false,
            reset_runnable_at: true,
            in_custody: false,
            exiting: false,
            told_cpus: None,
            life: Life::None,
            ops_state: OpsState::None,
            qseq: 0,
            ddsp_dsq_id: DSQ_INVALID,
            ddsp_enq_flags: 0,
            deferred: false,
            sticky_cpu: None,
            runnable_at: 0,
            on_runnable_list: false,
            runnable_links: Links::NONE,
            charged_at: 0,
            tgid,
        }
    }

    /// Clears the pending direct dispatch.
    #[inline]
    pub fn clear_direct_dispatch(&mut self) {
        self.ddsp_dsq_id = DSQ_INVALID;
        self.ddsp_enq_flags = 0;
    }
}

/// The weight that a scheduler sees: that of the fair class, scaled so that nice 0 is 100, 1 to
/// 10000 (`sched_weight_to_cgroup`).
pub fn weight(attr: &SchedAttr) -> u32 {
    let rounded = (task_weight(attr) * 100 + NICE_0_WEIGHT / 2) / NICE_0_WEIGHT;
    rounded.clamp(1, 10_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Policy;

    #[test]
    fn weights_are_those_of_the_kernel() {
        let of = |nice: i8| weight(&SchedAttr { nice, ..SchedAttr::default() });
        let all: Vec<u32> = (-20..=19).map(of).collect();
        assert_eq!(
            all,
            [
                8668, 7007, 5516, 4519, 3544, 2847, 2271, 1827, 1460, 1164, 932, 744, 596, 479,
                381, 305, 244, 194, 155, 125, 100, 80, 64, 51, 41, 33, 27, 21, 17, 13, 11, 8, 7, 5,
                4, 4, 3, 2, 2, 1
            ]
        );
        assert_eq!(weight(&SchedAttr { policy: Policy::Idle, ..SchedAttr::default() }), 1);
    }
}
