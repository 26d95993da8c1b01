// SPDX-License-Identifier: MIT OR Apache-2.0
//! The high-resolution tick of the fair class (HRTICK): when it is started, and what it does.
//!
//! A pick starts it if other tasks wait: for the rest of the slice (to 7.0) or until the virtual
//! deadline (7.1). A task that arrives starts it if the running one was alone. Up to 7.0 every task
//! that arrives or leaves restarts it. The tick accounts the running task and reschedules its CPU;
//! the pick decides. [`crate::boundary::hrtick`] has the timers and the source.
//!
//! A real timer is microseconds late; here it is exact. The kernel's rounding would make it expire
//! some nanoseconds before the deadline. It is then postponed until the deadline is reached.
//! Otherwise the pick would find the request unfinished and let the task run until the next tick.

use super::FairClass;
use super::load::Change;
use super::rbtree::NIL;
use super::rules::Algorithm;
use super::weights::{NICE_0_LOAD, calc_delta_fair};
use crate::boundary::core::Core;
use crate::boundary::hrtick::Hrticks;
use schedlab_model::{CpuId, Nanos, TaskId};

/// Kind of the timer's token; the others are those of bandwidth control.
const TOKEN_HRTICK: u64 = 2;
/// Maximum error of rounding virtual time, as real time (ns).
const ROUNDING: Nanos = 64;

const fn token(cpu: CpuId) -> u64 {
    TOKEN_HRTICK << 32 | cpu.0 as u64
}

/// The CPU of a high-resolution tick whose timer has this token.
pub(super) const fn cpu_of(token: u64) -> Option<CpuId> {
    if token >> 32 == TOKEN_HRTICK { Some(CpuId(token as u32)) } else { None }
}

impl FairClass {
    /// Handles the pick of `e` on its CPU: its slice begins, or continues.
    pub(super) fn hrtick_pick(&mut self, core: &mut Core, q: u32, e: u32) {
        let cpu = CpuId(self.rq(q).cpu);
        let Some(hrtick) = &mut self.hrtick else { return };
        let rule = hrtick.rule();
        if rule.stops_at_schedule {
            hrtick.stop(cpu);
        }
        if rule.restarts_on_repick && core.rq(cpu).curr == Some(self.entity_task(e)) {
            self.hrtick_start(core, cpu, e, false);
        }
    }

    /// Handles task entity `e` starting to run after a pick.
    pub(super) fn hrtick_set_next(&mut self, core: &mut Core, q: u32, e: u32) {
        if self.hrtick.is_some() && self.is_task(e) {
            let cpu = CpuId(self.rq(q).cpu);
            self.hrtick_start(core, cpu, e, false);
        }
    }

    /// Handles a task that arrives on `cpu` or leaves it (`hrtick_update`).
    pub(super) fn hrtick_update(&mut self, core: &mut Core, cpu: CpuId, comes: bool) {
        let Some(hrtick) = &self.hrtick else { return };
        let rule = hrtick.rule();
        if !rule.stops_at_schedule && (!comes || hrtick.is_active(core, cpu)) {
            return;
        }
        let Some(e) = self.running_task(core, cpu) else { return };
        let nr_queued = self.rq(self.ent(e).cfs).nr_queued;
        if !rule.short_queues_only || nr_queued < self.tunables.nr_latency {
            self.hrtick_start(core, cpu, e, true);
        }
    }

    /// Whether only the high-resolution tick checks the running task of `q`, not the ordinary tick
    /// (CFS; not with DOUBLE_TICK).
    pub(super) fn hrtick_replaces_tick(&self, core: &Core, q: u32) -> bool {
        let cpu = CpuId(self.rq(q).cpu);
        !self.rules.features.double_tick
            && self.hrtick.as_ref().is_some_and(|hrtick| hrtick.is_active(core, cpu))
    }

    /// Handles a timer for a high-resolution tick of `cpu`.
    pub(super) fn hrtick_timer(&mut self, core: &mut Core, cpu: CpuId) {
        let due = self.hrtick.as_mut().is_some_and(|t| t.comes(core, cpu, token(cpu)));
        if !due {
            return;
        }
        let Some(curr) = self.running_task(core, cpu) else {
            return self.hrtick.iter().for_each(|hrtick| hrtick.is_stray(core, cpu));
        };
        self.tick_levels(core, curr);
        core.resched_curr(cpu);
        core.work.hrtick_ended = Some(cpu);
    }

    /// Accounts the running `e` and the entities above it (`entity_tick`).
    fn tick_levels(&mut self, core: &mut Core, mut e: u32) {
        while e != NIL {
            let q = self.ent(e).cfs;
            self.update_curr(core, q);
            self.update_load_avg(core.now, q, e, Change::None);
            self.update_cfs_group(core, e);
            e = self.ent(e).parent;
        }
    }

    /// The entity of the running task of `cpu`, if it is of this class.
    fn running_task(&self, core: &Core, cpu: CpuId) -> Option<u32> {
        let curr: TaskId = core.rq(cpu).curr?;
        let e = self.task_entity(curr);
        (self.rq(self.ent(e).cfs).curr == e).then_some(e)
    }

    /// Starts the tick for the time left to task `e` (`hrtick_start_fair`). `runs`: the task
    /// already runs, and is preempted if no time is left.
    fn hrtick_start(&mut self, core: &mut Core, cpu: CpuId, e: u32, runs: bool) {
        if self.rq(cpu.0).h_nr_queued <= 1 {
            return;
        }
        let Some(left) = self.hrtick_left(e) else {
            if runs {
                core.resched_curr(cpu);
            }
            return;
        };
        // A switch sets the timer when the previous task has left its groups and it has picked at
        // each level, which is faster where both are in the same group.
        let picks_ns = if runs {
            0
        } else {
            let depth = self.ent(e).depth;
            let shared = core.work.shared_levels.min(depth);
            u64::from(depth - shared) * core.pick_entity_ns
                + u64::from(shared) * core.pick_shared_ns
                + core.work.leave_ns
        };
        if let Some(hrtick) = &mut self.hrtick {
            let start = if runs { Hrticks::start_meanwhile } else { Hrticks::start };
            start(hrtick, core, cpu, left.saturating_add(picks_ns), token(cpu));
        }
    }

    /// Real time (ns) left to `e`; `None` if it is negative.
    fn hrtick_left(&self, e: u32) -> Option<Nanos> {
        let se = self.ent(e);
        let until_deadline = self.hrtick.as_ref()?.rule().until_deadline;
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
        let left = match self.rules.algorithm {
            Algorithm::Cfs => return self.sched_slice(se.cfs, e).checked_sub(ran),
            _ if !until_deadline => se.slice.checked_sub(ran)?,
            _ => {
                let vleft = u64::try_from(se.deadline.wrapping_sub(se.vruntime) as i64).ok()?;
                scale(vleft, se.load.weight, NICE_0_LOAD)
            }
        };
        let reached = self.time_to_deadline(e);
        Some(if reached > left && reached - left <= ROUNDING { reached } else { left })
    }

    /// The least running time after which the virtual runtime of `e` is not before its deadline.
    fn time_to_deadline(&self, e: u32) -> Nanos {
        let se = self.ent(e);
        let Ok(vleft) = u64::try_from(se.deadline.wrapping_sub(se.vruntime) as i64) else {
            return 0;
        };
        let mut time = scale(vleft, se.load.weight, NICE_0_LOAD);
        // Rounding and the inverse weights change the result by a few nanoseconds at most.
        let end = time.saturating_add(ROUNDING);
        while time < end && calc_delta_fair(time, se.load) < vleft {
            time += 1;
        }
        time
    }
}

/// value * num / den, rounded down.
fn scale(value: u64, num: u64, den: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(num) / u128::from(den)).unwrap_or(u64::MAX)
}
