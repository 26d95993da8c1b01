// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts as a load: each takes time from the running task of its CPU.
//!
//! A kernel without IRQ_TIME_ACCOUNTING (such as Debian's) counts that time as CPU time of the
//! interrupted task; so does the engine. An idle CPU handles its interrupts too: a task that it
//! should run meanwhile waits for their end.

use crate::engine::Engine;
use schedlab_model::machine::{InterruptArrivals, InterruptSource};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuId, Machine, Nanos, TraceSink};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A source on one CPU.
#[derive(Debug)]
struct Line {
    source: u32,
    cpu: CpuId,
    stream: Stream,
}

/// Future interrupts, ordered by time, then by source and CPU.
#[derive(Debug)]
pub struct Interrupts<'a> {
    sources: &'a [InterruptSource],
    lines: Vec<Line>,
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When each idle CPU has handled its interrupts; empty without sources.
    pub busy_until: Vec<Nanos>,
}

impl<'a> Interrupts<'a> {
    /// The first interrupt of every source and CPU.
    pub fn new(machine: &'a Machine, seed: u64) -> Self {
        let nr_cpus = machine.nr_cpus();
        let sources = &machine.interrupts[..];
        let mut lines = Vec::new();
        let mut heap = BinaryHeap::new();
        for (source, described) in sources.iter().enumerate() {
            for cpu in described.cpus.iter().filter(|cpu| cpu.0 < nr_cpus) {
                let entity = (source as u64) << 32 | u64::from(cpu.0);
                let mut stream = Stream::new(seed, Purpose::Interrupt, entity);
                let interval = described.next_interval_ns(&mut stream);
                let first = match described.arrivals {
                    InterruptArrivals::Exponential => interval,
                    // The product stays in range: an interval has 64 bits, a CPU number 10.
                    InterruptArrivals::Periodic => {
                        let shift = u128::from(interval) * u128::from(cpu.0) / u128::from(nr_cpus);
                        interval.saturating_add(shift as Nanos)
                    }
                };
                heap.push(Reverse((first, lines.len() as u32)));
                lines.push(Line { source: source as u32, cpu, stream });
            }
        }
        let nr_handled = if lines.is_empty() { 0 } else { nr_cpus as usize };
        Self { sources, lines, heap, busy_until: vec![0; nr_handled] }
    }

    /// Time of the first interrupt; `Nanos::MAX` without any.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// Removes the first interrupt if it is due at `now`. Returns its CPU and the time that it
    /// takes.
    fn pop_at(&mut self, now: Nanos) -> Option<(CpuId, Nanos)> {
        if self.next_time() != now {
            debug_assert!(self.next_time() > now, "an interrupt was missed");
            return None;
        }
        let Reverse((_, index)) = self.heap.pop()?;
        let line = &mut self.lines[index as usize];
        let source = &self.sources[line.source as usize];
        let next = now.saturating_add(source.next_interval_ns(&mut line.stream));
        self.heap.push(Reverse((next, index)));
        debug_assert!(next > now, "source {} comes without end at {now}", line.source);
        let due = (line.cpu, source.stolen_ns());
        debug_assert_eq!(self.heap.len(), self.lines.len(), "a line has one interrupt to come");
        Some(due)
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Handles the interrupts that are due now.
    pub(crate) fn take_interrupts(&mut self) {
        let now = self.core.now;
        while let Some((cpu, stolen)) = self.interrupts.pop_at(now) {
            self.outcome.nr_interrupts += 1;
            self.outcome.interrupt_ns += stolen;
            if self.core.rq(cpu).curr.is_some() {
                self.extend_burst(cpu, stolen);
                self.interrupt_returns(cpu);
            } else {
                let until = &mut self.interrupts.busy_until[cpu.index()];
                *until = (*until).max(now).saturating_add(stolen);
            }
        }
    }

    /// Time (ns) that idle `cpu` still needs for interrupts, before the next task runs.
    pub(crate) fn interrupt_rest(&self, cpu: CpuId) -> Nanos {
        let until = self.interrupts.busy_until.get(cpu.index());
        until.map_or(0, |until| until.saturating_sub(self.core.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::CpuMask;

    fn machine(arrivals: InterruptArrivals) -> Machine {
        let source = InterruptSource {
            name: "nic".into(),
            cpus: CpuMask::first(8),
            interval_ns: 1_000,
            cost_ns: 3,
            softirq_ns: 4,
            arrivals,
        };
        Machine { interrupts: vec![source], ..Machine::flat(2) }
    }

    #[test]
    fn periodic_interrupts_of_two_cpus_do_not_meet() {
        let machine = machine(InterruptArrivals::Periodic);
        let mut interrupts = Interrupts::new(&machine, 1);
        let mut taken = Vec::new();
        for _ in 0..4 {
            let now = interrupts.next_time();
            assert_eq!(interrupts.pop_at(now - 1), None);
            taken.push((now, interrupts.pop_at(now).unwrap()));
        }
        let (a, b) = (CpuId(0), CpuId(1));
        assert_eq!(taken, [(1_000, (a, 7)), (1_500, (b, 7)), (2_000, (a, 7)), (2_500, (b, 7))]);
    }

    #[test]
    fn exponential_interrupts_have_their_mean_and_depend_on_the_seed() {
        let machine = machine(InterruptArrivals::Exponential);
        let nth = |seed| {
            let mut interrupts = Interrupts::new(&machine, seed);
            let mut now = 0;
            for _ in 0..20_000 {
                now = interrupts.next_time();
                interrupts.pop_at(now);
            }
            now
        };
        // 20,000 draws on two CPUs: 10 million ns, and a deviation of 1 %.
        assert!((9_700_000..10_300_000).contains(&nth(1)), "{}", nth(1));
        assert_eq!(nth(7), nth(7));
        assert_ne!(nth(1), nth(2));
    }

    #[test]
    fn a_machine_without_sources_has_no_interrupts() {
        let machine = Machine::flat(4);
        let interrupts = Interrupts::new(&machine, 1);
        assert_eq!(interrupts.next_time(), Nanos::MAX);
        assert!(interrupts.busy_until.is_empty());
    }
}
