// SPDX-License-Identifier: MIT OR Apache-2.0
//! From which group of a domain, and which of its CPUs, to take weight, and how much.
//!
//! Source: Linux 2.6.24, kernel/sched.c (`find_busiest_group`, `find_busiest_queue`), and 2.6.32.67
//! (`update_sg_lb_stats`, `update_sd_lb_stats`, `calculate_imbalance`, `fix_small_imbalance`).

use super::super::Fair;
use super::super::weights::NICE_0_LOAD;
use super::Idle;
use super::levels::Level;
use crate::core::Core;
use schedlab_model::{CpuId, CpuMask};

/// Load of a task of nice 0, strength of a CPU (SCHED_LOAD_SCALE, SCHED_LOAD_SCALE_FUZZ).
pub const LOAD_SCALE: u64 = NICE_0_LOAD;

/// The busiest group of a domain, and what is to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busiest {
    pub group: usize,
    pub imbalance: u64,
}

/// What a look at a domain finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Another CPU of the own group sees to this domain and those above.
    OtherCpu,
    Balanced,
    Found(Busiest),
}

/// Who looks.
#[derive(Clone, Copy)]
pub struct Looker {
    pub cpu: CpuId,
    pub position: usize,
    pub idle: Idle,
}

/// Sums over a group.
#[derive(Clone, Copy, Debug)]
struct Sum {
    group: usize,
    /// Sum of the loads, and the same for each 1024 of power.
    group_load: u64,
    load: u64,
    power: u64,
    nr_running: u64,
    /// Sum of the weights now.
    weight: u64,
    capacity: u64,
    /// Its CPUs differ much.
    is_uneven: bool,
    idle_cpus: u64,
    nr_cpus: u64,
}

impl Sum {
    fn has_capacity(&self) -> bool {
        self.capacity > self.nr_running
    }

    fn scaled(&self, load: u64) -> u64 {
        load * LOAD_SCALE / self.power
    }
}

impl Fair {
    /// The group of a domain from which its `looker` should take weight. `sd_idle` stays set if no
    /// CPU of the domain runs anything.
    pub(super) fn find_busiest_group(
        &self,
        core: &Core,
        looker: Looker,
        cpus: &CpuMask,
        sd_idle: &mut bool,
    ) -> Look {
        let Looker { cpu, position, idle } = looker;
        let entry = self.balance.domains.of_cpu(cpu)[position];
        let groups = &self.balance.domains.domain(entry.domain).groups;
        let own = entry.local_group as usize;
        if idle != Idle::Newly {
            let span = groups[own].span.and(cpus);
            let first_idle = span.iter().find(|cpu| core.rq(*cpu).curr.is_none());
            if first_idle.unwrap_or(groups[own].first) != cpu {
                *sd_idle &= span.iter().all(|cpu| core.rq(cpu).nr_running == 0);
                return Look::OtherCpu;
            }
        }
        let level = self.balance.level(cpu, position);
        let here = self.sum(core, looker, own, cpus, sd_idle);
        let (mut load, mut power) = (here.group_load, here.power);
        let mut busiest: Option<Sum> = None;
        for step in 1..groups.len() {
            let mut sum = self.sum(core, looker, (own + step) % groups.len(), cpus, sd_idle);
            load += sum.group_load;
            power += sum.power;
            if level.spreads_siblings && here.has_capacity() {
                sum.capacity = sum.capacity.min(1);
            }
            let is_more = sum.load > busiest.map_or(0, |busiest| busiest.load);
            if is_more && (sum.nr_running > sum.capacity || sum.is_uneven) {
                busiest = Some(sum);
            }
        }
        let Some(busiest) = busiest.filter(|sum| sum.nr_running > 0) else {
            return Look::Balanced;
        };
        let average = LOAD_SCALE * load / power;
        let amount = match self.rules.is_later {
            false => amount_first(&here, busiest, average, level.imbalance_pct),
            true => self.amount_later(core, looker, &here, busiest, average),
        };
        match amount {
            Some(imbalance) => Look::Found(Busiest { group: busiest.group, imbalance }),
            None => Look::Balanced,
        }
    }

    fn sum(
        &self,
        core: &Core,
        looker: Looker,
        group: usize,
        cpus: &CpuMask,
        sd_idle: &mut bool,
    ) -> Sum {
        let entry = self.balance.domains.of_cpu(looker.cpu)[looker.position];
        let level = self.balance.level(looker.cpu, looker.position);
        let span = &self.balance.domains.domain(entry.domain).groups[group].span;
        let is_own = group == entry.local_group as usize;
        let index = index_of(level, looker.idle);
        let power = level.power[group];
        let mut sum = Sum {
            group,
            group_load: 0,
            load: 0,
            power,
            nr_running: 0,
            weight: 0,
            capacity: if self.rules.is_later {
                (power + LOAD_SCALE / 2) / LOAD_SCALE
            } else {
                power / LOAD_SCALE
            },
            is_uneven: false,
            idle_cpus: 0,
            nr_cpus: u64::from(span.weight()),
        };
        let (mut most, mut most_running, mut least) = (0, 0, u64::MAX);
        for cpu in span.and(cpus).iter() {
            let nr_running = u64::from(core.rq(cpu).nr_running);
            *sd_idle &= nr_running == 0;
            let load = if is_own {
                self.target_load(core, cpu, index)
            } else {
                self.source_load(core, cpu, index)
            };
            if !is_own {
                if load > most {
                    (most, most_running) = (load, nr_running);
                }
                least = least.min(load);
            }
            sum.group_load += load;
            sum.nr_running += nr_running;
            sum.weight += self.cpu_weight(core, cpu);
            sum.idle_cpus += u64::from(core.rq(cpu).curr.is_none());
        }
        sum.load = sum.scaled(sum.group_load);
        let per_task = sum.weight.checked_div(sum.nr_running).unwrap_or(0);
        // Of its own group, and of one without a CPU to look at, the kernel's difference wraps.
        let gap = most.wrapping_sub(least);
        sum.is_uneven = !is_own
            && least != u64::MAX
            && match self.rules.is_later {
                true => gap > 2 * per_task && most_running > 1,
                false => gap > LOAD_SCALE,
            };
        sum
    }

    /// Weight to move under 2.6.32.
    fn amount_later(
        &self,
        core: &Core,
        looker: Looker,
        here: &Sum,
        busiest: Sum,
        average: u64,
    ) -> Option<u64> {
        let is_newly = looker.idle == Idle::Newly;
        let forced = is_newly && here.has_capacity() && !busiest.has_capacity();
        if !forced {
            if here.load >= busiest.load || here.load >= average {
                return None;
            }
            let pct = self.balance.level(looker.cpu, looker.position).imbalance_pct;
            let is_idle = core.rq(looker.cpu).curr.is_none();
            if is_newly || !is_idle {
                if 100 * busiest.load <= pct * here.load {
                    return None;
                }
            } else if here.idle_cpus <= busiest.idle_cpus + 1
                && busiest.nr_running <= busiest.nr_cpus
            {
                return None;
            }
        }
        // A forced look has not computed the average: it is 0 then.
        let average = if forced { 0 } else { average };
        let per_task = busiest.weight / busiest.nr_running;
        let per_task = if busiest.is_uneven { per_task.min(average) } else { per_task };
        let small = || {
            let idle_task = self.load_per_task(core, looker.cpu);
            let scaled = busiest.scaled(per_task);
            small_imbalance(here, &busiest, [per_task, idle_task], [scaled, scaled])
        };
        if busiest.load < average {
            return Some(small());
        }
        let above_capacity = match busiest.is_uneven {
            true => u64::MAX,
            false => {
                let excess = busiest.nr_running.saturating_sub(busiest.capacity);
                excess * LOAD_SCALE * LOAD_SCALE / busiest.power
            }
        };
        let pull = (busiest.load - average).min(above_capacity);
        let room = average.wrapping_sub(here.load).saturating_mul(here.power);
        let imbalance = pull.saturating_mul(busiest.power).min(room) / LOAD_SCALE;
        Some(if imbalance < per_task { imbalance.max(small()) } else { imbalance })
    }

    /// The CPU of a group from which to take weight.
    pub(super) fn find_busiest_queue(
        &self,
        core: &Core,
        looker: Looker,
        busiest: Busiest,
        cpus: &CpuMask,
    ) -> Option<CpuId> {
        let entry = self.balance.domains.of_cpu(looker.cpu)[looker.position];
        let span = &self.balance.domains.domain(entry.domain).groups[busiest.group].span;
        let mut found = (None, 0);
        for cpu in span.and(cpus).iter() {
            let weight = self.cpu_weight(core, cpu);
            if core.rq(cpu).nr_running == 1 && weight > busiest.imbalance {
                continue;
            }
            // Under 2.6.24 all CPUs are equally strong.
            let load = weight * LOAD_SCALE / self.balance.cpu_power[cpu.index()];
            if load > found.1 {
                found = (Some(cpu), load);
            }
        }
        found.0
    }
}

fn index_of(level: &Level, idle: Idle) -> usize {
    match idle {
        Idle::Not => level.busy_idx,
        Idle::Newly => level.newidle_idx,
        Idle::AtTick => level.idle_idx,
    }
}

/// Weight to move under 2.6.24; 0 is an imbalance of which nothing can be moved.
fn amount_first(here: &Sum, busiest: Sum, average: u64, pct: u64) -> Option<u64> {
    if here.load >= busiest.load || here.load >= average || 100 * busiest.load <= pct * here.load {
        return None;
    }
    let per_task = busiest.weight / busiest.nr_running;
    let per_task = if busiest.is_uneven { per_task.min(average) } else { per_task };
    if busiest.load <= per_task {
        return None;
    }
    let small = || small_imbalance(here, &busiest, [per_task, LOAD_SCALE], [per_task, LOAD_SCALE]);
    if busiest.load < average {
        return Some(small());
    }
    let pull = (busiest.load - average).min(busiest.load - per_task);
    let imbalance = (pull * busiest.power).min((average - here.load) * here.power) / LOAD_SCALE;
    Some(if imbalance < per_task { imbalance.max(small()) } else { imbalance })
}

/// Whether less than a task is a reason to move one: its weight, or 0. The loads must differ by so
/// many tasks of the first of `[of_task, fuzz]`, the second being added to the difference; under
/// 2.6.32 both are scaled by power. `idle_task` stands for the weight of a task where none runs.
fn small_imbalance(
    here: &Sum,
    busiest: &Sum,
    [per_task, idle_task]: [u64; 2],
    [of_task, fuzz]: [u64; 2],
) -> u64 {
    let own_task = here.weight.checked_div(here.nr_running);
    let tasks = if own_task.is_some_and(|own| per_task > own) { 1 } else { 2 };
    let own_task = own_task.unwrap_or(idle_task);
    if busiest.load.wrapping_sub(here.load).wrapping_add(fuzz) >= of_task * tasks {
        return per_task;
    }
    let now = busiest.power * per_task.min(busiest.load) + here.power * own_task.min(here.load);
    let taken = busiest.scaled(per_task);
    let left = match busiest.load > taken {
        true => busiest.power * per_task.min(busiest.load - taken),
        false => 0,
    };
    let added = match busiest.load * busiest.power < per_task * LOAD_SCALE {
        true => busiest.load * busiest.power / here.power,
        false => here.scaled(per_task),
    };
    let then = left + here.power * own_task.min(here.load + added);
    if then / LOAD_SCALE > now / LOAD_SCALE { per_task } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(load: u64, nr_running: u64) -> Sum {
        Sum {
            group: 0,
            group_load: load,
            load,
            power: LOAD_SCALE,
            nr_running,
            weight: load,
            capacity: 1,
            is_uneven: false,
            idle_cpus: 0,
            nr_cpus: 1,
        }
    }

    fn weight(here: u64, there: u64) -> Option<u64> {
        let (here, there) = (sum(here * 1024, here), sum(there * 1024, there));
        amount_first(&here, there, (here.load + there.load) / 2, 125)
    }

    #[test]
    fn section_3_11_weight_to_move_of_2_6_24() {
        assert_eq!(weight(1, 3), Some(1024));
        assert_eq!(weight(1, 7), Some(3 * 1024));
        assert_eq!(weight(4, 5), None, "500 is not more than 125 * 4");
        assert_eq!(weight(0, 2), Some(1024));
        assert_eq!(weight(0, 1), None, "it runs already");
        // With one task more there half a task is to be moved, which the fuzz rounds up to one.
        assert_eq!(weight(1, 2), Some(1024));
    }

    #[test]
    fn a_heavy_task_stays() {
        let heavy = sum(88_761, 1);
        assert_eq!(amount_first(&sum(0, 0), heavy, 44_380, 125), None);
    }
}
