// SPDX-License-Identifier: MIT OR Apache-2.0
//! The high-resolution tick of the deadline class (HRTICK_DL). It fires when the budget of the
//! running task is, or might be, used up, and checks it.
//!
//! Source: Linux kernel/sched/deadline.c (start_hrtick_dl, set_next_task_dl, task_tick_dl), 6.1,
//! 6.12.63; see [`crate::boundary::hrtick`]. The tick fires after at least 10 us, so a smaller
//! budget is overrun. Left out: the tick of a fair server's own budget, which is checked when fair
//! tasks are accounted.

use super::{DlClass, token_of_hrtick};
use crate::boundary::core::Core;
use crate::boundary::hrtick::Hrticks;
use schedlab_model::{CpuId, Nanos, TaskId};

impl DlClass {
    /// Handles a reschedule of `cpu` in which this class picks `picked`.
    pub(super) fn hrtick_pick(&mut self, core: &mut Core, cpu: CpuId, picked: Option<TaskId>) {
        let Some(hrtick) = &mut self.hrtick else { return };
        let rule = hrtick.rule();
        if rule.stops_at_schedule {
            hrtick.stop(cpu);
        }
        if rule.restarts_on_repick
            && let Some(task) = picked.filter(|_| picked == core.rq(cpu).curr)
        {
            self.hrtick_start(core, cpu, task);
        }
    }

    /// Starts the tick for `task`, which runs on `cpu` with its present budget.
    pub(super) fn hrtick_start(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.hrtick_start_by(Hrticks::start, core, cpu, task);
    }

    fn hrtick_start_by(
        &mut self,
        start: fn(&mut Hrticks, &mut Core, CpuId, Nanos, u64),
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
    ) {
        let budget = self.tasks[task.index()].entity.runtime;
        if let Some(hrtick) = &mut self.hrtick {
            start(hrtick, core, cpu, u64::try_from(budget).unwrap_or(0), token_of_hrtick(cpu));
        }
    }

    /// Handles a high-resolution tick of `cpu`.
    pub(super) fn hrtick_timer(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(hrtick) = &mut self.hrtick else { return };
        if !hrtick.comes(core, cpu, token_of_hrtick(cpu)) {
            return;
        }
        let Some(curr) = Self::dl_curr(core, cpu) else { return hrtick.is_stray(core, cpu) };
        core.work.hrtick_ended = Some(cpu);
        self.update_curr(core, cpu);
        if self.tasks[curr.index()].entity.runtime > 0 && self.is_first(cpu, curr) {
            // It starts within its own interrupt, not behind a switch.
            self.hrtick_start_by(Hrticks::start_again, core, cpu, curr);
        }
    }
}
