// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a search for tasks by a CPU that is about to go idle (`newidle_balance`).
//!
//! The kernel searches after the task has left its queue, and before the switch to the idle task:
//! on the leaving task's time. The model keeps the task on its CPU for the time that the search
//! will take ([`schedlab_model::Costs::newidle_ns`]), as it does when a CPU spins for the lock of
//! its queue (`locks.rs`), and moves tasks at the end. A task that another CPU puts on this queue
//! meanwhile runs when the search is over. So does the leaving one if it is woken: it leaves first,
//! and its own CPU queues it then (`ttwu_queue_wakelist`, or the end of `on_cpu`).
//!
//! Left out: the last search of an exit, and those of a CPU whose task is throttled; interrupts
//! that wait until the search is over.

use crate::clock::Due;
use crate::engine::Engine;
use crate::locks::LateWake;
use schedlab_model::{Costs, CpuId, Nanos, TraceSink};
use schedlab_sched::TaskState;

/// What a CPU does before it goes idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Search {
    No,
    Runs,
    /// It is over, and the reschedule that waited for it has not happened yet.
    Over,
}

/// The searches of all CPUs, if they take time on this machine.
#[derive(Debug)]
pub struct Searches {
    of_cpu: Vec<Search>,
    /// For each CPU, the wake-up of the task that leaves it.
    late: Vec<Option<LateWake>>,
}

impl Searches {
    /// `None` if searches take no time.
    pub fn new(costs: &Costs, nr_cpus: u32) -> Option<Self> {
        let takes_time = costs.has_newidle() && nr_cpus > 1;
        let nr = nr_cpus as usize;
        takes_time.then(|| Self { of_cpu: vec![Search::No; nr], late: vec![None; nr] })
    }

    /// Whether `cpu` searches for tasks before its own leaves.
    pub fn runs(&self, cpu: CpuId) -> bool {
        self.of_cpu[cpu.index()] == Search::Runs
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Whether `cpu` must search before its task leaves. If so, it keeps its task until then.
    pub(crate) fn must_search(&mut self, cpu: CpuId) -> bool {
        let Some(searches) = &mut self.searches else { return false };
        let search = &mut searches.of_cpu[cpu.index()];
        if *search != Search::No {
            return *search == Search::Runs;
        }
        let Some(prev) = self.core.rq(cpu).curr else { return false };
        if matches!(self.core.task(prev).state, TaskState::Running | TaskState::Dead) {
            return false;
        }
        let mut nr_cpus = None;
        self.each_class(|class, core| {
            nr_cpus = nr_cpus.or_else(|| class.foresee_newidle(core, cpu, prev));
        });
        let Some(nr_cpus) = nr_cpus else { return false };
        let each = self.costs.newidle_cpu_ns.saturating_mul(Nanos::from(nr_cpus));
        let end = self.core.now.saturating_add(self.costs.newidle_ns).saturating_add(each);
        self.set_search(cpu, Search::Runs);
        self.core.park_resched(cpu);
        self.clock.events.push(end, Due::Searched(cpu));
        self.keep_rest(cpu, prev);
        self.clock.burst_ends.set(cpu, Nanos::MAX);
        true
    }

    fn set_search(&mut self, cpu: CpuId, search: Search) {
        if let Some(searches) = &mut self.searches {
            searches.of_cpu[cpu.index()] = search;
        }
    }

    /// The search of `cpu` is over: its task leaves.
    pub(crate) fn searched(&mut self, cpu: CpuId) {
        debug_assert!(self.keeps_task(cpu), "CPU {cpu} ends a search that it has not begun");
        self.set_search(cpu, Search::Over);
        self.restart_kept(cpu);
        self.schedule(cpu);
        let late = self.searches.as_mut().and_then(|searches| searches.late[cpu.index()].take());
        if let Some(LateWake { task, this_cpu, waker, sync }) = late {
            let waker = waker.filter(|waker| self.core.is_running(*waker));
            self.wake_now(task, this_cpu, waker, sync);
            self.interrupt_returns(this_cpu);
        }
    }

    /// A wake-up begins. Returns whether it takes effect later, because the task's CPU searches
    /// before the task has left.
    pub(crate) fn wakes_after_search(&mut self, wake: LateWake) -> bool {
        let (cpu, is_running) = (self.core.task(wake.task).cpu, self.core.is_running(wake.task));
        match &mut self.searches {
            Some(searches) if is_running && searches.runs(cpu) => {
                searches.late[cpu.index()].get_or_insert(wake);
                true
            }
            _ => false,
        }
    }

    /// `cpu` reschedules now.
    pub(crate) fn search_is_used(&mut self, cpu: CpuId) {
        self.set_search(cpu, Search::No);
    }
}
