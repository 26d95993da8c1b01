// SPDX-License-Identifier: MIT OR Apache-2.0
//! GRUB, greedy reclamation of unused bandwidth: what a task with SCHED_FLAG_RECLAIM is charged for
//! the time that it runs.
//!
//! A reclaiming task is charged less than the time that it runs, so its budget lasts longer.
//! Bandwidth of its CPU that is neither admitted (Uextra) nor in use (Uinact) goes to reclaiming
//! tasks, up to the share Umax that `sched_rt_runtime_us` leaves to deadline tasks. The bandwidth
//! of a task is in use, or *active*, from its wake-up to its 0-lag time after it blocks: until then
//! it could still claim the rest. Bandwidths are in units of 2^-20 of a CPU.
//!
//! Source: Linux kernel/sched/deadline.c (grub_reclaim, task_contending, task_non_contending,
//! init_dl_rq_bw_ratio), 6.12.63; before 6.5 another equation gave back more than was free (6.1 has
//! it). Left out: the other use of the active bandwidth, choosing the frequency of the CPU
//! (GRUB-PA).

use super::cbs::to_ratio;
use schedlab_model::{CpuId, Nanos};

/// Bits of a bandwidth's fraction (BW_SHIFT).
const BW_SHIFT: u32 = 20;

/// A whole CPU (BW_UNIT).
const BW_UNIT: u64 = 1 << BW_SHIFT;

/// Bits of the fraction of the ratio (RATIO_SHIFT).
const RATIO_SHIFT: u32 = 8;

/// The equation for the charge of a reclaiming task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrubRule {
    /// max(u / Umax, 1 - Uinact - Uextra) for each unit of time (4.13 to 6.4).
    Before6_5,
    /// max(u, Umax - Uinact - Uextra) / Umax (6.5 and later).
    From6_5,
}

/// How often a kernel takes the bandwidth of the fair servers from what tasks may reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServersTaken {
    /// Once: servers are made when all CPUs are there (`sched_init_dl_servers`, 6.17 and later).
    Once,
    /// When a server is made, which is during the boot, and again each time that its CPU joins a
    /// root domain (`__dl_server_attach_root`, 6.12). The CPUs that are in the domain already
    /// share what is taken, and nothing is given back, so each CPU has its own Uextra. A guest of
    /// 6.12.117 with four CPUs has 0.70, 0.85, 0.90 and 0.94 after its boot.
    AtEachDomain,
}

/// Bandwidth of the deadline entities of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct CpuBandwidth {
    /// Bandwidth of all of them (`this_bw`).
    this: u64,
    /// Bandwidth of the active ones (`running_bw`).
    running: u64,
    /// Uextra (`extra_bw`): Umax minus the admitted bandwidth, divided by the number of CPUs. It
    /// wraps below 0 if admission has no limit.
    extra: u64,
}

/// Bandwidth of all CPUs.
#[derive(Debug)]
pub struct Grub {
    rule: GrubRule,
    /// Umax (`max_bw`).
    max_bw: u64,
    /// 1 / Umax in units of 2^-8 (`bw_ratio`).
    bw_ratio: u64,
    cpus: Vec<CpuBandwidth>,
}

impl Grub {
    /// Bandwidth before any admission. `limit`: runtime and period that all deadline tasks of a CPU
    /// may use; `None`: the whole CPU.
    pub fn new(rule: GrubRule, limit: Option<(Nanos, Nanos)>, nr_cpus: u32) -> Self {
        let (max_bw, bw_ratio) = match limit {
            None => (BW_UNIT, 1 << RATIO_SHIFT),
            Some((runtime, period)) => {
                (to_ratio(period, runtime), to_ratio(runtime, period) >> (BW_SHIFT - RATIO_SHIFT))
            }
        };
        let cpu = CpuBandwidth { extra: max_bw, ..CpuBandwidth::default() };
        Self { rule, max_bw, bw_ratio, cpus: vec![cpu; nr_cpus as usize] }
    }

    /// Admits the fair server of each CPU, of bandwidth `bw`, during the boot. `renews`: before the
    /// run the first CPU was a domain of its own for a moment.
    pub fn admit_servers(&mut self, bw: u64, taken: ServersTaken, renews: bool) {
        for cpu in &mut self.cpus {
            cpu.this += bw;
        }
        let all: Vec<usize> = (0..self.cpus.len()).collect();
        if taken == ServersTaken::Once {
            all.iter().for_each(|_| self.admitted(0, bw));
            return;
        }
        // A CPU's server is made before the CPU counts as active.
        for cpu in &all {
            self.take(&all[..(*cpu).max(1)], bw);
        }
        self.join_domain(&all, bw);
        if !renews || all.len() == 1 {
            return;
        }
        // In between all are in the default domain.
        let (first, others) = all.split_at(1);
        self.join_domain(&all, bw);
        self.join_domain(first, bw);
        self.join_domain(others, bw);
        self.join_domain(&[others, first].concat(), bw);
        self.join_domain(&all, bw);
    }

    /// `cpus` join a domain one after another, each with a server of bandwidth `bw`.
    fn join_domain(&mut self, cpus: &[usize], bw: u64) {
        (1..=cpus.len()).for_each(|nr| self.take(&cpus[..nr], bw));
    }

    /// Takes `bw` from what tasks of `cpus` may reclaim, to equal parts.
    fn take(&mut self, cpus: &[usize], bw: u64) {
        let part = bw / cpus.len() as u64;
        for cpu in cpus {
            let extra = &mut self.cpus[*cpu].extra;
            *extra = extra.wrapping_sub(part);
        }
    }

    /// Handles a change of one entity's admitted bandwidth from `old` to `new` (`__dl_update`).
    pub fn admitted(&mut self, old: u64, new: u64) {
        let nr = self.cpus.len() as u64;
        for cpu in &mut self.cpus {
            cpu.extra = cpu.extra.wrapping_add(old / nr).wrapping_sub(new / nr);
        }
    }

    /// Adds an entity of bandwidth `bw` to `cpu` (`add_rq_bw`).
    pub fn add(&mut self, cpu: CpuId, bw: u64) {
        self.cpus[cpu.index()].this += bw;
    }

    /// Removes an inactive entity from `cpu` (`sub_rq_bw`).
    pub fn remove(&mut self, cpu: CpuId, bw: u64) {
        self.cpus[cpu.index()].this -= bw;
    }

    /// Makes an entity of `cpu` active (`add_running_bw`).
    pub fn activate(&mut self, cpu: CpuId, bw: u64) {
        let cpu = &mut self.cpus[cpu.index()];
        cpu.running += bw;
        assert!(cpu.running <= cpu.this, "more bandwidth is active than there is");
    }

    /// Makes an entity of `cpu` inactive (`sub_running_bw`).
    pub fn deactivate(&mut self, cpu: CpuId, bw: u64) {
        self.cpus[cpu.index()].running -= bw;
    }

    /// The cost of a unit of time to a reclaiming task of bandwidth `u` on `cpu`, in 2^-20.
    pub fn rate(&self, cpu: CpuId, u: u64) -> u64 {
        let CpuBandwidth { this, running, extra } = self.cpus[cpu.index()];
        let free = (this - running).wrapping_add(extra);
        // Compare in this form, as in the kernel, because the free bandwidth may exceed the whole.
        match self.rule {
            GrubRule::Before6_5 => {
                let least = (u * self.bw_ratio) >> RATIO_SHIFT;
                if free > BW_UNIT.wrapping_sub(least) { least } else { BW_UNIT - free }
            }
            GrubRule::From6_5 => {
                let own = free > self.max_bw.wrapping_sub(u);
                let u_act = if own { u } else { self.max_bw - free };
                (u_act * self.bw_ratio) >> RATIO_SHIFT
            }
        }
    }

    /// The charge of a reclaiming task of bandwidth `u` for `ns` on `cpu`.
    pub fn charge(&self, cpu: CpuId, u: u64, ns: Nanos) -> Nanos {
        ((u128::from(ns) * u128::from(self.rate(cpu, u))) >> BW_SHIFT) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const LIMIT: Option<(Nanos, Nanos)> = Some((950 * MS, 1_000 * MS));
    const CPU: CpuId = CpuId(0);

    /// Active tasks of one CPU, all admitted.
    fn active(rule: GrubRule, limit: Option<(Nanos, Nanos)>, bandwidths: &[u64]) -> Grub {
        let mut grub = Grub::new(rule, limit, 1);
        for &bw in bandwidths {
            grub.admitted(0, bw);
            grub.add(CPU, bw);
            grub.activate(CPU, bw);
        }
        grub
    }

    #[test]
    fn section_4_5_one_task_alone() {
        let u = to_ratio(100, 10);
        let grub = active(GrubRule::From6_5, LIMIT, &[u]);
        assert_eq!((grub.max_bw, grub.bw_ratio, u), (996_147, 269, 104_857));
        assert_eq!(grub.rate(CPU, u), 110_181);
        assert_eq!(grub.charge(CPU, u, 10 * MS), 1_050_767);
    }

    #[test]
    fn two_tasks_share_what_both_were_given() {
        let (u, v) = (to_ratio(100, 10), to_ratio(100, 30));
        let mut grub = active(GrubRule::From6_5, LIMIT, &[u, v]);
        let both = ((u + v) * 269) >> 8;
        assert_eq!([grub.rate(CPU, u), grub.rate(CPU, v)], [both, both]);
        // Only one is active, and can use the bandwidth of the other.
        grub.deactivate(CPU, v);
        assert_eq!(grub.rate(CPU, u), 110_181);
        // Bandwidth that left the CPU becomes extra.
        grub.remove(CPU, v);
        grub.admitted(v, 0);
        assert_eq!(grub.rate(CPU, u), 110_181);
    }

    #[test]
    fn before_6_5_a_task_alone_got_two_thirds() {
        let u = to_ratio(100, 10);
        let grub = active(GrubRule::Before6_5, LIMIT, &[u]);
        assert_eq!(grub.rate(CPU, u), BW_UNIT - (996_147 - u));
        let whole = active(GrubRule::Before6_5, None, &[u]);
        assert_eq!(whole.rate(CPU, u), u, "without a limit both rules agree");
        assert_eq!(active(GrubRule::From6_5, None, &[u]).rate(CPU, u), u);
    }

    #[test]
    fn on_two_cpus_half_of_a_task_counts_on_each() {
        let u = to_ratio(100, 10);
        let mut grub = Grub::new(GrubRule::From6_5, LIMIT, 2);
        grub.admitted(0, u);
        grub.add(CPU, u);
        grub.activate(CPU, u);
        // Umax - u/2 is free next to it: less than Umax - u would be left, so its own rate applies.
        assert_eq!(grub.rate(CPU, u), 110_181);
    }

    /// The values are those of a guest of 6.12.117, read from its memory.
    #[test]
    fn servers_are_taken_at_each_domain() {
        let bw = to_ratio(1_000, 50);
        let extras = |taken, renews, nr_cpus| {
            let mut grub = Grub::new(GrubRule::From6_5, LIMIT, nr_cpus);
            grub.admit_servers(bw, taken, renews);
            let in_10_000 = |cpu: &CpuBandwidth| (cpu.extra * 10_000 + BW_UNIT / 2) >> BW_SHIFT;
            grub.cpus.iter().map(in_10_000).collect::<Vec<_>>()
        };
        let each = ServersTaken::AtEachDomain;
        assert_eq!(extras(each, false, 4), [7_042, 8_542, 9_042, 9_375]);
        assert_eq!(extras(each, true, 4), [4_333, 5_500, 7_500, 8_667]);
        assert_eq!(extras(each, true, 1), [8_500]);
        assert_eq!(extras(ServersTaken::Once, true, 4), [9_000; 4]);
    }

    #[test]
    fn more_than_everything_admitted_leaves_each_its_own_rate() {
        let u = to_ratio(100, 90);
        let grub = active(GrubRule::From6_5, None, &[u, u]);
        assert_eq!(grub.rate(CPU, u), u);
    }
}
