// SPDX-License-Identifier: MIT OR Apache-2.0
//! The speed of hardware threads that share a core: how much work is left, and when it ends.
//!
//! Work is counted in thousandths of a nanosecond of a thread that is alone on its core, so no
//! division is needed: in `t` ns at speed `s` (in thousandths) a thread does exactly `t * s`. A
//! burst ends at the first whole nanosecond at which its work is done. The excess counts for the
//! task's next burst. CPU time counts at full speed, as in the kernel.

use schedlab_model::machine::SMT_SPEED_FULL;
use schedlab_model::{CpuId, Machine, Nanos};

/// Work of one nanosecond at full speed.
const WORK_PER_NS: i128 = SMT_SPEED_FULL as i128;

/// The work of one CPU.
#[derive(Clone, Copy, Default, Debug)]
struct Work {
    /// Work left at `since`; negative: work done beyond the burst's end.
    left: i128,
    since: Nanos,
    speed: u32,
}

impl Work {
    fn left_at(&self, now: Nanos) -> i128 {
        self.left - i128::from(now - self.since) * i128::from(self.speed)
    }

    fn end(&self) -> Nanos {
        if self.left <= 0 {
            return self.since;
        }
        let speed = i128::from(self.speed);
        let ns = (self.left + speed - 1) / speed;
        self.since.saturating_add(Nanos::try_from(ns).unwrap_or(Nanos::MAX))
    }
}

/// The rest of an interrupted burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// Work (ns), rounded up.
    pub ns: Nanos,
    /// The rounding, in thousandths of a nanosecond: this part is already done.
    pub ahead: u32,
}

/// The speeds of all CPUs of a machine whose hardware threads slow each other.
#[derive(Debug)]
pub struct Pace {
    cpus: Vec<Work>,
    core_of: Vec<u32>,
    /// CPUs of each core.
    threads: Vec<Vec<CpuId>>,
    nr_busy: Vec<u32>,
    /// Speed by the number of busy threads, from 1.
    speeds: Vec<u32>,
}

impl Pace {
    /// `None` for a machine whose CPUs all run at full speed.
    pub fn new(machine: &Machine) -> Option<Self> {
        let core = &machine.topology.core;
        let mut numbers: Vec<u32> = core.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let has_siblings = numbers.len() < core.len();
        if !has_siblings || machine.smt_speed.iter().all(|speed| *speed == SMT_SPEED_FULL) {
            return None;
        }
        let mut threads = vec![Vec::new(); numbers.len()];
        let mut core_of = Vec::with_capacity(core.len());
        for (cpu, number) in core.iter().enumerate() {
            let index = numbers.partition_point(|known| known < number);
            threads[index].push(CpuId(cpu as u32));
            core_of.push(index as u32);
        }
        let alone = Work { speed: SMT_SPEED_FULL, ..Work::default() };
        let speeds = std::iter::once(SMT_SPEED_FULL).chain(machine.smt_speed.iter().copied());
        Some(Self {
            cpus: vec![alone; core.len()],
            core_of,
            nr_busy: vec![0; numbers.len()],
            threads,
            speeds: speeds.collect(),
        })
    }

    fn core(&self, cpu: CpuId) -> usize {
        self.core_of[cpu.index()] as usize
    }

    /// CPUs of the core of `cpu`, itself included.
    pub fn threads(&self, cpu: CpuId) -> &[CpuId] {
        &self.threads[self.core(cpu)]
    }

    /// `cpu` becomes busy or idle. Returns whether that changes its core's speed.
    pub fn set_busy(&mut self, cpu: CpuId, busy: bool) -> bool {
        let before = self.speed(cpu);
        let core = self.core(cpu);
        let nr_busy = &mut self.nr_busy[core];
        debug_assert!(busy || *nr_busy > 0, "CPU {cpu} of idle core {core} becomes idle");
        *nr_busy = if busy { *nr_busy + 1 } else { *nr_busy - 1 };
        debug_assert!(
            *nr_busy as usize <= self.threads[core].len(),
            "core {core} has no thread left"
        );
        self.speed(cpu) != before
    }

    /// Speed of the busy threads of the core of `cpu`.
    fn speed(&self, cpu: CpuId) -> u32 {
        let nr_busy = self.nr_busy[self.core(cpu)].max(1) as usize;
        self.speeds[(nr_busy - 1).min(self.speeds.len() - 1)]
    }

    /// `cpu` begins `ns` of work, of which `ahead` is done. Returns the end.
    pub fn start(&mut self, cpu: CpuId, now: Nanos, ns: Nanos, ahead: u32) -> Nanos {
        let left = i128::from(ns) * WORK_PER_NS - i128::from(ahead);
        debug_assert!(ns == 0 || left > 0, "{ahead} thousandths of {ns} ns are done on CPU {cpu}");
        self.cpus[cpu.index()] = Work { left, since: now, speed: self.speed(cpu) };
        self.cpus[cpu.index()].end()
    }

    /// Adds `ns` of work to `cpu`. Returns the new end.
    pub fn extend(&mut self, cpu: CpuId, ns: Nanos) -> Nanos {
        let work = &mut self.cpus[cpu.index()];
        work.left += i128::from(ns) * WORK_PER_NS;
        work.end()
    }

    /// `cpu` continues at its core's present speed. Returns the new end.
    pub fn repace(&mut self, cpu: CpuId, now: Nanos) -> Nanos {
        let speed = self.speed(cpu);
        let work = &mut self.cpus[cpu.index()];
        debug_assert!(now >= work.since, "CPU {cpu} changes its pace before {}", work.since);
        *work = Work { left: work.left_at(now), since: now, speed };
        work.end()
    }

    /// The rest of the burst of `cpu`.
    pub fn rest(&self, cpu: CpuId, now: Nanos) -> Rest {
        let left = self.cpus[cpu.index()].left_at(now).max(0);
        let ns = (left + WORK_PER_NS - 1) / WORK_PER_NS;
        let ahead = ns * WORK_PER_NS - left;
        debug_assert!((0..WORK_PER_NS).contains(&ahead), "CPU {cpu} is {ahead} thousandths ahead");
        Rest { ns: Nanos::try_from(ns).unwrap_or(Nanos::MAX), ahead: ahead as u32 }
    }

    /// Work done beyond the end of the burst of `cpu`, in thousandths of a nanosecond.
    pub fn excess(&self, cpu: CpuId, now: Nanos) -> u32 {
        let excess = -self.cpus[cpu.index()].left_at(now);
        excess.clamp(0, WORK_PER_NS - 1) as u32
    }

    /// Work (ns, rounded down) that `cpu` does in `ns` at its present speed.
    pub fn at_full_speed(&self, cpu: CpuId, ns: Nanos) -> Nanos {
        let work = u128::from(ns) * u128::from(self.cpus[cpu.index()].speed);
        let ns_of_work = (work / u128::from(SMT_SPEED_FULL)) as Nanos;
        debug_assert!(ns_of_work <= ns, "CPU {cpu} is faster than at full speed");
        ns_of_work
    }

    /// Time (ns, rounded up) that `ns` of work take on `cpu` at its present speed.
    pub fn stretch(&self, cpu: CpuId, ns: Nanos) -> Nanos {
        let stretched = (u128::from(ns) * u128::from(SMT_SPEED_FULL))
            .div_ceil(u128::from(self.cpus[cpu.index()].speed));
        Nanos::try_from(stretched).unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Topology;

    fn pair(smt_speed: Vec<u32>) -> Option<Pace> {
        let topology = Topology { core: vec![5, 5], ..Topology::flat(2) };
        Pace::new(&Machine { topology, smt_speed, ..Machine::flat(2) })
    }

    #[test]
    fn only_machines_with_slowed_siblings_have_a_pace() {
        assert!(pair(vec![]).is_none() && pair(vec![1000]).is_none());
        assert!(Pace::new(&Machine { smt_speed: vec![500], ..Machine::flat(2) }).is_none());
        assert!(pair(vec![650]).is_some());
    }

    #[test]
    fn work_is_exact_to_the_thousandth() {
        let mut pace = pair(vec![650]).unwrap();
        let (a, b) = (CpuId(0), CpuId(1));
        assert!(!pace.set_busy(a, true));
        assert_eq!(pace.start(a, 0, 1_000, 0), 1_000);
        assert!(pace.set_busy(b, true));
        // 400 ns done alone; 600 left at 0.65 take 923.08 ns.
        assert_eq!(pace.repace(a, 400), 1_324);
        assert_eq!(pace.rest(a, 401), Rest { ns: 600, ahead: 650 });
        assert_eq!(pace.excess(a, 1_324), (924 * 650 - 600_000) as u32);
        assert!(pace.set_busy(b, false));
        assert_eq!(pace.repace(a, 1_323), 1_324);
        assert_eq!(pace.extend(a, 10), 1_334);
    }
}
