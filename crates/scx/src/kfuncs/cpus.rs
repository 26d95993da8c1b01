// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kicks and performance of CPUs.

use crate::consts::{CPUPERF_ONE, KICK_IDLE, KICK_PREEMPT, KICK_WAIT};
use crate::kernel::Kernel;
use crate::state::{Events, Kicks};
use schedlab_model::CpuMask;

impl Kernel<'_> {
    /// `scx_bpf_kick_cpu`: requests that `cpu` reschedules. It takes effect when the calling CPU
    /// has finished its present work. SCX_KICK_WAIT takes no time, because the kicked CPU picks at
    /// the same instant.
    pub fn kick_cpu(&mut self, cpu: i32, flags: u64) {
        let Some(cpu) = self.valid_cpu(cpu) else { return };
        if self.state.bypass {
            return;
        }
        let this_cpu = self.this_cpu();
        if flags & KICK_IDLE != 0 && flags & (KICK_PREEMPT | KICK_WAIT) != 0 {
            self.scx_error(format!(
                "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE (flags 0x{flags:x})"
            ));
            return;
        }
        if flags & KICK_IDLE != 0 {
            // SCX_KICK_IDLE already has no effect on a busy CPU; except on the one whose run queue
            // is held, because its running task is about to change.
            let is_idle = self.core.rq(cpu).curr.is_none();
            let is_held = self.state.context.rq == Some(cpu);
            if !is_idle && !self.state.cpu(cpu).in_balance && !is_held {
                return;
            }
        }
        if self.state.notes.is_some() {
            let kick = self.state.kick_now(self.core.now);
            self.state.notes.iter_mut().for_each(|notes| notes.kicked(cpu, flags, kick));
        }
        let empty = || Kicks {
            plain: CpuMask::empty(),
            if_idle: CpuMask::empty(),
            preempt: CpuMask::empty(),
        };
        let slot = &mut self.state.cpus[this_cpu.index()].kicks;
        if slot.is_none() {
            self.state.kicking.push(this_cpu);
        }
        let kicks = slot.get_or_insert_with(|| Box::new(empty()));
        if flags & KICK_IDLE != 0 {
            kicks.if_idle.set(cpu);
            return;
        }
        kicks.plain.set(cpu);
        if flags & KICK_PREEMPT != 0 {
            kicks.preempt.set(cpu);
        }
    }

    /// `scx_bpf_cpuperf_cap`: the capacity of a CPU: 1024, because all are alike.
    pub fn cpuperf_cap(&mut self, cpu: i32) -> u32 {
        self.valid_cpu(cpu);
        CPUPERF_ONE
    }

    /// `scx_bpf_cpuperf_cur`: its present performance: always full, because frequency is not
    /// modelled.
    pub fn cpuperf_cur(&mut self, cpu: i32) -> u32 {
        self.valid_cpu(cpu);
        CPUPERF_ONE
    }

    /// `scx_bpf_cpuperf_set`: stores its target, 0 to 1024, which has no effect.
    pub fn cpuperf_set(&mut self, cpu: i32, perf: u32) {
        if perf > CPUPERF_ONE {
            self.scx_error(format!("Invalid cpuperf target {perf} for CPU {cpu}"));
            return;
        }
        if let Some(cpu) = self.valid_cpu(cpu) {
            self.state.cpu_mut(cpu).cpuperf_target = perf;
        }
    }

    /// `scx_bpf_events`: counters of the core.
    pub fn events(&self) -> Events {
        self.state.events
    }
}
