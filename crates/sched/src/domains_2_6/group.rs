// SPDX-License-Identifier: MIT OR Apache-2.0
//! From which group of a domain to take work, and how much.
//!
//! Source: Linux 2.6.11, kernel/sched.c (`find_busiest_group`, `find_busiest_queue`).

use super::{Domain, Domains, Idle, LOAD_SCALE};
use crate::core::Core;
use schedlab_model::CpuId;

/// Number of the average that loads are seen through.
const AVERAGE: usize = 1;

/// The busiest group, and what is to be moved: tasks (2.6.11) or weight (2.6.22 and later).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busiest {
    /// Number of the group in its domain.
    pub group: usize,
    /// Tasks or weight.
    pub imbalance: u64,
}

/// Sums over a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub group: usize,
    /// Load for each SCHED_LOAD_SCALE of power.
    pub load: u64,
    pub power: u64,
    pub nr_running: u64,
    /// Load of all its tasks now.
    pub weight: u64,
}

impl Sum {
    /// Mean weight of its tasks; of no task `scale`, which stands for one of nice 0.
    pub fn load_per_task(&self, scale: u64) -> u64 {
        self.weight.checked_div(self.nr_running).unwrap_or(scale)
    }

    /// What the group gets done of `load`: no more than its power.
    fn work(&self, load: u64, per_task: u64) -> u64 {
        self.power * load.min(per_task)
    }
}

impl Domains {
    /// Sums over the groups of `domain`, that of `own` first, and the average load.
    fn sums(&self, core: &Core, domain: &Domain, own: usize) -> (Vec<Sum>, u64) {
        let (mut total, mut total_power) = (0, 0);
        let count = domain.groups.len();
        let sum = |group: usize| {
            let cpus = &domain.groups[group].cpus;
            let load = |cpu: &CpuId| match group == own {
                true => self.target_load(*cpu, AVERAGE),
                false => self.source_load(*cpu, AVERAGE),
            };
            let power = domain.groups[group].power;
            let load: u64 = cpus.iter().map(load).sum();
            total += load;
            total_power += power;
            let nr_running = cpus.iter().map(|cpu| u64::from(core.rq(*cpu).nr_running)).sum();
            let weight = cpus.iter().map(|cpu| self.load[cpu.index()]).sum();
            Sum { group, load: load * LOAD_SCALE / power, power, nr_running, weight }
        };
        let sums = (0..count).map(|step| (own + step) % count).map(sum).collect();
        (sums, LOAD_SCALE * total / total_power)
    }

    /// The group from which a CPU of group `own` should take work.
    pub fn find_busiest_group(
        &self,
        core: &Core,
        domain: &Domain,
        own: usize,
        idle: Idle,
    ) -> Option<Busiest> {
        let (sums, average) = self.sums(core, domain, own);
        let here = sums[0];
        let mut busiest: Option<Sum> = None;
        for sum in &sums[1..] {
            if sum.load > busiest.map_or(0, |busiest| busiest.load) {
                busiest = Some(*sum);
            }
        }
        let busiest = busiest?;
        let amount = tasks_to_move(&here, &busiest, average, domain.imbalance_pct, idle);
        amount.map(|imbalance| Busiest { group: busiest.group, imbalance })
    }

    /// The CPU of a group from which to take work.
    pub fn find_busiest_queue(&self, domain: &Domain, busiest: Busiest) -> Option<CpuId> {
        let mut found = (None, 0);
        for cpu in &domain.groups[busiest.group].cpus {
            let load = self.source_load(*cpu, AVERAGE);
            if load > found.1 {
                found = (Some(*cpu), load);
            }
        }
        found.0
    }
}

/// Whether the loads differ enough to do anything.
fn differs(here: &Sum, busiest: &Sum, average: u64, imbalance_pct: u64) -> bool {
    here.load < busiest.load
        && here.load < average
        && 100 * busiest.load > imbalance_pct * here.load
}

/// What both groups get done now, and when `moved` of load went over.
pub(super) fn work_now_and_then(
    here: &Sum,
    busiest: &Sum,
    per_task: [u64; 2],
    moved: u64,
    scale: u64,
) -> (u64, u64) {
    let [task_here, task_there] = per_task;
    let now = busiest.work(busiest.load, task_there) + here.work(here.load, task_here);
    let taken = moved * scale / busiest.power;
    let left = match busiest.load > taken {
        true => busiest.work(busiest.load - taken, task_there),
        false => 0,
    };
    let added = if busiest.load * busiest.power < moved * scale {
        busiest.load * busiest.power / here.power
    } else {
        moved * scale / here.power
    };
    let then = left + here.work(here.load + added, task_here);
    (now / scale, then / scale)
}

/// Number of tasks to move (2.6.11).
fn tasks_to_move(here: &Sum, busiest: &Sum, average: u64, pct: u64, idle: Idle) -> Option<u64> {
    // A CPU that would run nothing takes one also where the loads do not differ enough.
    let anyway = idle == Idle::Newly || (idle == Idle::AtTick && busiest.load > LOAD_SCALE);
    let anyway = anyway.then_some(1);
    if !differs(here, busiest, average, pct) {
        return anyway;
    }
    let gap = (busiest.load - average).min(average - here.load);
    let load = gap * busiest.power.min(here.power) / LOAD_SCALE;
    if load >= LOAD_SCALE - 1 {
        return Some((load + 1) / LOAD_SCALE);
    }
    if busiest.load - here.load >= 2 * LOAD_SCALE {
        return Some(1);
    }
    let (now, then) = work_now_and_then(here, busiest, [LOAD_SCALE; 2], LOAD_SCALE, LOAD_SCALE);
    if then >= now + LOAD_SCALE / 8 { Some(1) } else { anyway }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(load: u64, nr_running: u64) -> Sum {
        Sum { group: 0, load, power: LOAD_SCALE, nr_running, weight: load }
    }

    #[test]
    fn section_3_11_tasks_to_move_of_2_6_11() {
        let tasks = |here: u64, there: u64, idle| {
            let (here, there) = (sum(here * 128, here), sum(there * 128, there));
            tasks_to_move(&here, &there, (here.load + there.load) / 2, 125, idle)
        };
        assert_eq!(tasks(1, 3, Idle::Not), Some(1));
        assert_eq!(tasks(1, 7, Idle::Not), Some(3));
        assert_eq!(tasks(4, 5, Idle::Not), None, "500 is not more than 125 * 4");
        assert_eq!(tasks(1, 2, Idle::Not), None, "half a task, and no power is gained");
        assert_eq!(tasks(0, 2, Idle::AtTick), Some(1));
        assert_eq!(tasks(1, 2, Idle::Newly), Some(1), "anyway");
        assert_eq!(tasks(0, 1, Idle::AtTick), None, "it runs already");
    }
}
