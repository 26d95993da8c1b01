// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivers kicks.
//!
//! Source: Linux kernel/sched/ext.c, `kick_cpus_irq_workfn()`, `kick_one_cpu()`, 6.18. A CPU's own
//! kicks are delivered when it has released its run queue. Left out: the wait of SCX_KICK_WAIT,
//! because the kicked CPU picks at the same instant.

use super::kernel::Kernel;
use schedlab_model::CpuId;

impl Kernel<'_> {
    /// Delivers all kicks: by calling CPU in order of their calls, then by target.
    pub(crate) fn deliver_kicks(&mut self) {
        if self.state.kicking.is_empty() {
            return;
        }
        for caller in std::mem::take(&mut self.state.kicking) {
            let Some(kicks) = self.state.cpu_mut(caller).kicks.take() else { continue };
            for cpu in kicks.plain.iter() {
                self.kick_one(cpu, kicks.preempt.contains(cpu));
            }
            for cpu in kicks.if_idle.and_not(&kicks.plain).iter() {
                if self.core.rq(cpu).curr.is_none() || self.state.cpu(cpu).in_balance {
                    self.core.resched_curr(cpu);
                }
            }
        }
    }

    fn kick_one(&mut self, cpu: CpuId, preempt: bool) {
        if let Some(curr) = self.core.rq(cpu).curr {
            if self.state.options.core.kicks_spare_higher
                && self.core.task(curr).class < self.state.class
            {
                return;
            }
            if preempt && self.is_ext(curr) {
                self.state.task(curr).entity.set_slice(0);
            }
        }
        self.core.resched_curr(cpu);
    }
}
