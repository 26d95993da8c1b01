// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks idle CPUs, and picks one for a waking task.
//!
//! Source: Linux kernel/sched/ext_idle.c, 6.18. A CPU is claimed by clearing its bit. The bit is
//! set again when the CPU next becomes idle. Left out: masks for each node.

use super::consts::{EBUSY, PICK_IDLE_CORE};
use schedlab_model::{CpuId, CpuMask, Topology};

/// Idle CPUs and idle cores.
#[derive(Debug)]
pub struct IdleMasks {
    /// Whether tracking is on.
    pub is_on: bool,
    cpus: CpuMask,
    /// CPUs of cores that are idle as a whole; only with SMT.
    cores: CpuMask,
    has_smt: bool,
    /// CPUs of the core of each CPU; only with SMT.
    siblings: Vec<CpuMask>,
    /// CPUs of each last-level cache, where there are several.
    llcs: Vec<CpuMask>,
    /// CPUs of each node, where there are several.
    nodes: Vec<CpuMask>,
    topology: Topology,
}

/// A request for a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'m> {
    /// CPUs that are allowed.
    pub allowed: &'m CpuMask,
    /// Where the task ran.
    pub prev: CpuId,
    /// SCX_PICK_IDLE_*.
    pub flags: u64,
    /// The waker of a synchronous wake-up; `None` for other wake-ups.
    pub sync: Option<SyncWaker>,
}

/// The waker of a synchronous wake-up.
#[derive(Clone, Copy, Debug)]
pub struct SyncWaker {
    /// Its CPU.
    pub cpu: CpuId,
    /// Whether it will leave its CPU to the woken task: it does not exit, and no task waits there.
    pub makes_room: bool,
}

impl IdleMasks {
    /// Masks for a machine. Tracking is off, and no CPU is idle.
    pub fn new(topology: &Topology) -> Self {
        let nr_cpus = topology.core.len() as u32;
        let all = || (0..nr_cpus).map(CpuId);
        let alike = |of: &[u32], number: u32| -> CpuMask {
            all().filter(|cpu| of[cpu.index()] == number).collect()
        };
        let mut cores = topology.core.clone();
        cores.sort_unstable();
        cores.dedup();
        let has_smt = cores.len() < nr_cpus as usize;
        let siblings = match has_smt {
            true => all().map(|cpu| alike(&topology.core, topology.core[cpu.index()])).collect(),
            false => Vec::new(),
        };
        let parts = |of: &[u32]| -> Vec<CpuMask> {
            let nr = of.iter().max().map_or(0, |last| last + 1);
            if nr < 2 { Vec::new() } else { (0..nr).map(|number| alike(of, number)).collect() }
        };
        Self {
            is_on: false,
            cpus: CpuMask::empty(),
            cores: CpuMask::empty(),
            has_smt,
            siblings,
            llcs: parts(&topology.llc),
            nodes: parts(&topology.node),
            topology: topology.clone(),
        }
    }

    /// Marks all CPUs as idle, as when a scheduler is loaded.
    pub fn reset(&mut self) {
        self.cpus = CpuMask::first(self.topology.core.len() as u32);
        self.cores = if self.has_smt { self.cpus } else { CpuMask::empty() };
    }

    /// Idle CPUs.
    pub fn cpus(&self) -> &CpuMask {
        &self.cpus
    }

    /// CPUs of idle cores; without SMT the idle CPUs.
    pub fn cores(&self) -> &CpuMask {
        if self.has_smt { &self.cores } else { &self.cpus }
    }

    /// Sets whether `cpu` is idle.
    pub fn set(&mut self, cpu: CpuId, idle: bool) {
        if idle {
            self.cpus.set(cpu);
        } else {
            self.cpus.clear(cpu);
        }
        if !self.has_smt {
            return;
        }
        let siblings = &self.siblings[cpu.index()];
        if !idle {
            self.cores = self.cores.and_not(siblings);
        } else if siblings.and_not(&self.cpus).is_empty() {
            self.cores = self.cores.or(siblings);
        }
    }

    /// Claims `cpu`. Returns whether it was idle.
    pub fn claim(&mut self, cpu: CpuId) -> bool {
        if self.has_smt {
            let siblings = &self.siblings[cpu.index()];
            if self.cores.intersects(siblings) {
                self.cores = self.cores.and_not(siblings);
            }
        }
        let was_idle = self.cpus.contains(cpu);
        self.cpus.clear(cpu);
        was_idle
    }

    /// Claims an idle CPU of `allowed`, if possible one of an idle core. `rotor` is where the last
    /// pick of this kind ended.
    pub fn pick(&mut self, allowed: &CpuMask, flags: u64, rotor: &mut u32) -> Option<CpuId> {
        let mut cpu = None;
        if self.has_smt {
            cpu = next_of(&self.cores.and(allowed), rotor);
            if cpu.is_none() && flags & PICK_IDLE_CORE != 0 {
                return None;
            }
        }
        let cpu = match cpu {
            Some(cpu) => cpu,
            None => next_of(&self.cpus.and(allowed), rotor)?,
        };
        self.claim(cpu);
        Some(cpu)
    }

    /// Claims an idle CPU for a waking task. Returns a negative error number if there is none.
    pub fn select(&mut self, wish: &Wish<'_>, rotor: &mut u32) -> Result<CpuId, i32> {
        let Wish { allowed, prev, flags, sync } = *wish;
        let prev_allowed = allowed.contains(prev);
        if let Some(waker) = sync {
            let llc = &self.topology.llc;
            let shares = llc[waker.cpu.index()] == llc[prev.index()];
            if prev_allowed && shares && self.claim(prev) {
                return Ok(prev);
            }
            if waker.makes_room && !self.cpus.is_empty() && allowed.contains(waker.cpu) {
                return Ok(waker.cpu);
            }
        }
        let near = self.near(prev, allowed);
        if self.has_smt {
            if prev_allowed && self.cores.contains(prev) && self.claim(prev) {
                return Ok(prev);
            }
            for mask in near.iter().flatten().chain([allowed]) {
                if let Some(cpu) = self.pick(mask, flags | PICK_IDLE_CORE, rotor) {
                    return Ok(cpu);
                }
            }
            if flags & PICK_IDLE_CORE != 0 {
                return Err(-EBUSY);
            }
        }
        if prev_allowed && self.claim(prev) {
            return Ok(prev);
        }
        for mask in near.iter().flatten().chain([allowed]) {
            if let Some(cpu) = self.pick(mask, flags, rotor) {
                return Ok(cpu);
            }
        }
        Err(-EBUSY)
    }

    /// The allowed CPUs that share a cache or a node with `prev`, unless these are all.
    fn near(&self, prev: CpuId, allowed: &CpuMask) -> [Option<CpuMask>; 2] {
        let part = |of: &[CpuMask], number: u32| {
            of.get(number as usize).map(|mask| mask.and(allowed)).filter(|mask| !mask.is_empty())
        };
        [
            part(&self.llcs, self.topology.llc[prev.index()]),
            part(&self.nodes, self.topology.node[prev.index()]),
        ]
    }
}

/// The CPU of `mask` after `rotor`, wrapping round (`cpumask_any_and_distribute`).
pub fn next_of(mask: &CpuMask, rotor: &mut u32) -> Option<CpuId> {
    let cpu = mask.iter_from(CpuId(*rotor + 1)).next()?;
    *rotor = cpu.0;
    Some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(cpus: &[u32]) -> CpuMask {
        cpus.iter().map(|cpu| CpuId(*cpu)).collect()
    }

    /// CPUs 0 and 2, 1 and 3 are siblings.
    fn smt() -> IdleMasks {
        let mut idle = IdleMasks::new(&Topology { core: vec![0, 1, 0, 1], ..Topology::flat(4) });
        idle.reset();
        idle
    }

    #[test]
    fn a_core_is_idle_with_all_its_threads() {
        let mut idle = smt();
        assert!(idle.claim(CpuId(0)) && !idle.claim(CpuId(0)));
        assert_eq!((*idle.cpus(), *idle.cores()), (mask(&[1, 2, 3]), mask(&[1, 3])));
        idle.set(CpuId(0), true);
        assert_eq!(*idle.cores(), mask(&[0, 1, 2, 3]));
        idle.set(CpuId(3), false);
        assert_eq!((*idle.cpus(), *idle.cores()), (mask(&[0, 1, 2]), mask(&[0, 2])));
    }

    #[test]
    fn idle_cores_come_first_and_the_choice_goes_round() {
        let (mut idle, mut rotor) = (smt(), 0);
        idle.claim(CpuId(0));
        let all = CpuMask::first(4);
        assert_eq!(idle.pick(&all, 0, &mut rotor), Some(CpuId(1)));
        assert_eq!(idle.pick(&all, PICK_IDLE_CORE, &mut rotor), None);
        assert_eq!(idle.pick(&all, 0, &mut rotor), Some(CpuId(2)));
        assert_eq!(idle.pick(&all, 0, &mut rotor), Some(CpuId(3)));
        assert_eq!(idle.pick(&all, 0, &mut rotor), None);
    }

    #[test]
    fn the_first_choice_passes_over_cpu_0() {
        let mut idle = IdleMasks::new(&Topology::flat(3));
        idle.reset();
        let (all, mut rotor) = (CpuMask::first(3), 0);
        let picks: Vec<_> = (0..4).map(|_| idle.pick(&all, 0, &mut rotor)).collect();
        assert_eq!(picks, [Some(CpuId(1)), Some(CpuId(2)), Some(CpuId(0)), None]);
    }

    #[test]
    fn a_task_stays_near_where_it_ran() {
        let topology = Topology { llc: vec![0, 0, 1, 1], ..Topology::flat(4) };
        let (mut idle, mut rotor) = (IdleMasks::new(&topology), 0);
        idle.reset();
        let allowed = CpuMask::first(4);
        let wish = Wish { allowed: &allowed, prev: CpuId(3), flags: 0, sync: None };
        let picks: Vec<_> = (0..5).map(|_| idle.select(&wish, &mut rotor)).collect();
        let cpu = |cpu| Ok(CpuId(cpu));
        assert_eq!(picks, [cpu(3), cpu(2), cpu(0), cpu(1), Err(-EBUSY)]);
    }

    #[test]
    fn a_synchronous_waker_hands_its_cpu_over() {
        let (mut idle, mut rotor) = (IdleMasks::new(&Topology::flat(3)), 0);
        idle.reset();
        idle.claim(CpuId(0));
        idle.claim(CpuId(1));
        let allowed = CpuMask::first(3);
        let sync = Some(SyncWaker { cpu: CpuId(0), makes_room: true });
        let wish = Wish { allowed: &allowed, prev: CpuId(1), flags: 0, sync };
        assert_eq!(idle.select(&wish, &mut rotor), Ok(CpuId(0)));
        idle.claim(CpuId(2));
        assert_eq!(idle.select(&wish, &mut rotor), Err(-EBUSY));
    }
}
