// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the timer of a release after time 0 takes effect.
//!
//! In a real run the task sleeps until then, for the first time: its timer starts before the run
//! and meets colder data than the ones of later sleeps.

use crate::clock::Due;
use crate::engine::Engine;
use crate::threads::with_parents;
use schedlab_model::{Arrival, Costs, CpuId, Nanos, TraceSink, Workload};

/// The delays of one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Delay on a busy CPU.
    pub on_busy_ns: Nanos,
    /// Delay on an idle CPU, at least `on_busy_ns`.
    on_idle_ns: Nanos,
}

impl Start {
    pub fn of(arrival: &Arrival, workload: &Workload, costs: &Costs) -> Self {
        let attr = &workload.tasks[arrival.spec as usize].attr;
        let mut delay_ns = costs.timer_delay_ns.saturating_add(costs.start_delay_ns);
        if !attr.policy.is_fair() {
            let on_busy_ns = delay_ns.saturating_sub(costs.start_rt_ns);
            return Self { on_busy_ns, on_idle_ns: delay_ns };
        }
        let levels = with_parents(attr.cgroup, &workload.cgroups).count() as Nanos;
        delay_ns = delay_ns.saturating_add(costs.start_entity_ns.saturating_mul(levels));
        Self { on_busy_ns: delay_ns, on_idle_ns: delay_ns }
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether arrival number `index`, whose timer has expired on `cpu`, is released later: what
    /// the CPU does comes first, or it is idle.
    pub(crate) fn start_waits(&mut self, index: u32, cpu: CpuId) -> bool {
        let due = Due::Release(index);
        let start = self.start_of(index);
        let on_idle = self.tasks.release_ns(index).saturating_add(start.on_idle_ns);
        if self.core.now < on_idle && self.core.rq(cpu).curr.is_none() {
            self.clock.events.push(on_idle, due);
            return true;
        }
        let earlier_ns = self.start_earlier_ns(index);
        self.waits_for_switch(cpu, due)
            || self.waits_for_tick(cpu, earlier_ns, due)
            || self.is_in_timer(cpu, due)
    }

    /// How much earlier than a timer's delay arrival number `index` is released on a busy CPU.
    pub(crate) fn start_earlier_ns(&self, index: u32) -> i64 {
        self.costs.timer_delay_ns as i64 - self.start_of(index).on_busy_ns as i64
    }

    fn start_of(&self, index: u32) -> Start {
        Start::of(self.tasks.arrival(index), self.workload, &self.costs)
    }
}
