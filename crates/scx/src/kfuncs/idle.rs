// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle CPUs.

use crate::consts::{EBUSY, EINVAL, PICK_IDLE_CORE, PICK_IDLE_IN_NODE, WAKE_SYNC};
use crate::idle::{SyncWaker, Wish, next_of};
use crate::kernel::Kernel;
use schedlab_model::{CpuId, CpuMask, TaskId};

impl Kernel<'_> {
    /// `scx_bpf_select_cpu_dfl`: the built-in choice for waking `p`. Returns the CPU, and whether
    /// it was idle and is now claimed. Without built-in tracking it is an error and returns `prev`.
    pub fn select_cpu_dfl(&mut self, p: TaskId, prev: i32, wake_flags: u64) -> (i32, bool) {
        let Some(prev_cpu) = self.valid_cpu(prev) else { return (prev, false) };
        if !self.tracks_idle() {
            return (prev, false);
        }
        match self.choose_idle(p, prev_cpu, wake_flags, None, 0) {
            Ok(cpu) => (cpu.0 as i32, true),
            Err(_) => (prev, false),
        }
    }

    /// `scx_bpf_select_cpu_and` (6.16): the built-in choice among `allowed`. Returns a negative
    /// error number if no CPU is idle.
    pub fn select_cpu_and(
        &mut self,
        p: TaskId,
        prev: i32,
        wake_flags: u64,
        allowed: &CpuMask,
        flags: u64,
    ) -> i32 {
        let Some(prev_cpu) = self.valid_cpu(prev) else { return -EINVAL };
        if flags & !(PICK_IDLE_CORE | PICK_IDLE_IN_NODE) != 0 || !self.tracks_idle() {
            return if self.state.idle.is_on { -EINVAL } else { -EBUSY };
        }
        let choice = self.choose_idle(p, prev_cpu, wake_flags, Some(allowed), flags);
        choice.map_or_else(|error| error, |cpu| cpu.0 as i32)
    }

    /// Whether the core tracks idle CPUs, and none is idle.
    #[inline]
    pub fn is_every_cpu_busy(&self) -> bool {
        self.state.idle.is_on && self.state.idle.cpus().is_empty()
    }

    /// `scx_bpf_pick_idle_cpu`: claims an idle CPU of `allowed`, or -EBUSY.
    pub fn pick_idle_cpu(&mut self, allowed: &CpuMask, flags: u64) -> i32 {
        if !self.tracks_idle() {
            return -EBUSY;
        }
        self.pick_idle(allowed, flags).map_or(-EBUSY, |cpu| cpu.0 as i32)
    }

    /// `scx_bpf_pick_any_cpu`: claims an idle CPU of `allowed`, or returns any of them; -EBUSY if
    /// there is none.
    pub fn pick_any_cpu(&mut self, allowed: &CpuMask, flags: u64) -> i32 {
        if self.state.idle.is_on
            && let Some(cpu) = self.pick_idle(allowed, flags)
        {
            return cpu.0 as i32;
        }
        let this_cpu = self.this_cpu();
        let possible = allowed.and(&self.core.cpus);
        let cpu = next_of(&possible, &mut self.state.cpu_mut(this_cpu).rotor);
        cpu.map_or(-EBUSY, |cpu| cpu.0 as i32)
    }

    /// `scx_bpf_test_and_clear_cpu_idle`: claims `cpu`. Returns whether it was idle.
    pub fn test_and_clear_cpu_idle(&mut self, cpu: i32) -> bool {
        if !self.tracks_idle() {
            return false;
        }
        let Some(cpu) = self.valid_cpu(cpu) else { return false };
        self.state.idle.claim(cpu)
    }

    /// `scx_bpf_get_idle_cpumask`: the idle CPUs. Without built-in tracking it is an error and
    /// returns none.
    pub fn idle_cpumask(&mut self) -> CpuMask {
        if self.tracks_idle() { *self.state.idle.cpus() } else { CpuMask::empty() }
    }

    /// `scx_bpf_get_idle_smtmask`: the CPUs of idle cores; without SMT the idle CPUs.
    pub fn idle_smtmask(&mut self) -> CpuMask {
        if self.tracks_idle() { *self.state.idle.cores() } else { CpuMask::empty() }
    }

    fn tracks_idle(&mut self) -> bool {
        if !self.state.idle.is_on {
            self.scx_error("built-in idle tracking is disabled".into());
        }
        self.state.idle.is_on
    }

    fn pick_idle(&mut self, allowed: &CpuMask, flags: u64) -> Option<CpuId> {
        let this_cpu = self.this_cpu().index();
        self.state.idle.pick(allowed, flags, &mut self.state.cpus[this_cpu].rotor)
    }

    /// The built-in choice, within `mask` if given.
    pub(crate) fn choose_idle(
        &mut self,
        p: TaskId,
        prev: CpuId,
        wake_flags: u64,
        mask: Option<&CpuMask>,
        flags: u64,
    ) -> Result<CpuId, i32> {
        let task = self.core.task(p);
        let allowed = mask.map_or(*task.cpus_allowed, |mask| task.cpus_allowed.and(mask));
        if task.nr_cpus_allowed == 1 {
            let claimed = allowed.contains(prev) && self.state.idle.claim(prev);
            return if claimed { Ok(prev) } else { Err(-EBUSY) };
        }
        if allowed.is_empty() {
            return Err(-EBUSY);
        }
        let this_cpu = self.this_cpu();
        let sync = (wake_flags & WAKE_SYNC != 0).then(|| {
            let exits = self.current().is_some_and(|curr| self.state.task(curr).exiting);
            let local = self.state.dsqs.local(this_cpu);
            let makes_room = !exits && self.state.dsqs.get(local).nr == 0;
            SyncWaker { cpu: this_cpu, makes_room }
        });
        let wish = Wish { allowed: &allowed, prev, flags, sync };
        self.state.idle.select(&wish, &mut self.state.cpus[this_cpu.index()].rotor)
    }
}
