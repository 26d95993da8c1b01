// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the group of a domain, and its CPU, from which to take work.
//!
//! Source: Linux 2.6.11, 2.6.22, 2.6.23.17 and 2.6.24, kernel/sched.c (`find_busiest_group`,
//! `find_busiest_queue`, `sg_div_cpu_power`), and 2.6.32.67 (`update_sg_lb_stats`,
//! `update_sd_lb_stats`, `find_busiest_queue`).

use super::amount::{self, Sum};
use super::levels::Level;
use super::{Idle, Looker, Runqueues, source_load, target_load};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, CpuMask};

/// The busiest group of a domain, and how much to move: tasks (2.6.11) or weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busiest {
    /// Number of the group in its domain.
    pub group: usize,
    /// Number of tasks, or weight. 0: there is an imbalance, but nothing of it can move.
    pub imbalance: u64,
}

/// The result of a search of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// Another CPU of the own group searches this domain and those above.
    OtherCpu,
    Balanced,
    Found(Busiest),
}

impl Level {
    /// Index of the load average that a search uses; 0: the load itself.
    pub(super) const fn index_of(&self, idle: Idle) -> usize {
        match idle {
            Idle::Not => self.busy_idx,
            Idle::Newly => self.newidle_idx,
            Idle::AtTick => self.idle_idx,
        }
    }
}

/// The group of a domain from which its `looker` should take work. `sd_idle` stays set if no CPU of
/// the domain runs anything.
pub(super) fn find_busiest_group<R: Runqueues>(
    rqs: &R,
    core: &Core,
    looker: Looker,
    cpus: &CpuMask,
    sd_idle: &mut bool,
) -> Look {
    let balancer = rqs.balancer();
    let version = &balancer.version;
    let (domain, own) = balancer.domain_of(looker);
    if looker.idle != Idle::Newly && !version.counts_tasks {
        let span = domain.groups[own].span.and(cpus);
        let first_idle = span.iter().find(|cpu| core.rq(*cpu).curr.is_none());
        if first_idle.unwrap_or(domain.groups[own].first) != looker.cpu {
            *sd_idle &= span.iter().all(|cpu| core.rq(cpu).nr_running == 0);
            return Look::OtherCpu;
        }
    }
    let level = balancer.level(looker.cpu, looker.position);
    let here = sum(rqs, core, looker, own, cpus, sd_idle);
    let (mut load, mut power) = (here.group_load, here.power);
    let mut busiest: Option<Sum> = None;
    let count = domain.groups.len();
    for group in (own + 1..count).chain(0..own) {
        let mut sum = sum(rqs, core, looker, group, cpus, sd_idle);
        load += sum.group_load;
        power += sum.power;
        if level.spreads_siblings && here.has_capacity() {
            sum.capacity = sum.capacity.min(1);
        }
        let is_more = sum.load > busiest.map_or(0, |busiest| busiest.load);
        let counts = version.counts_tasks || sum.nr_running > sum.capacity || sum.is_uneven;
        if is_more && counts {
            busiest = Some(sum);
        }
    }
    let Some(busiest) = busiest.filter(|sum| sum.nr_running > 0) else {
        return Look::Balanced;
    };
    let average = version.scale * load / power;
    let pct = level.imbalance_pct;
    let amount = if version.counts_tasks {
        amount::tasks(&here, &busiest, average, pct, looker.idle)
    } else if version.counts_capacity {
        let looking = amount::Looking {
            idle: looker.idle,
            runs_nothing: core.rq(looker.cpu).curr.is_none(),
            load_per_task: rqs.load_per_task(core, looker.cpu),
        };
        amount::weight_by_capacity(&here, &busiest, average, pct, looking)
    } else {
        amount::weight(version, &here, &busiest, average, pct)
    };
    amount.map_or(Look::Balanced, |imbalance| {
        Look::Found(Busiest { group: busiest.group, imbalance })
    })
}

fn sum<R: Runqueues>(
    rqs: &R,
    core: &Core,
    looker: Looker,
    group: usize,
    cpus: &CpuMask,
    sd_idle: &mut bool,
) -> Sum {
    let balancer = rqs.balancer();
    let version = &balancer.version;
    let (domain, own) = balancer.domain_of(looker);
    let (span, is_own) = (&domain.groups[group].span, group == own);
    let index = balancer.level(looker.cpu, looker.position).index_of(looker.idle);
    let power = balancer.group_power(looker.cpu, looker.position)[group];
    let mut sum = Sum::empty(version, group, power, span.weight());
    let (mut most, mut most_running, mut least) = (0, 0, u64::MAX);
    for cpu in span.and(cpus).iter() {
        let nr_running = u64::from(core.rq(cpu).nr_running);
        *sd_idle &= nr_running == 0;
        let load = match is_own {
            true => target_load(rqs, core, cpu, index),
            false => source_load(rqs, core, cpu, index),
        };
        if load > most {
            (most, most_running) = (load, nr_running);
        }
        least = least.min(load);
        sum.group_load += load;
        sum.nr_running += nr_running;
        sum.weight += rqs.cpu_weight(core, cpu);
        sum.idle_cpus += u64::from(core.rq(cpu).curr.is_none());
    }
    sum.load = sum.for_power(sum.group_load, version.is_32_bit);
    // For the own group, and for one without an allowed CPU, the kernel's difference wraps.
    if version.sees_uneven_groups && !is_own && least != u64::MAX {
        let gap = most - least;
        let per_task = sum.weight.checked_div(sum.nr_running).unwrap_or(0);
        sum.is_uneven = match version.counts_capacity {
            true => gap > 2 * per_task && most_running > 1,
            false => gap > version.scale,
        };
    }
    sum
}

/// The CPU of a group from which to take work: the one with the most load. Skips CPUs whose only
/// task is heavier than the amount to move.
pub(super) fn find_busiest_queue<R: Runqueues>(
    rqs: &R,
    core: &Core,
    looker: Looker,
    busiest: Busiest,
    cpus: &CpuMask,
) -> Option<CpuId> {
    let balancer = rqs.balancer();
    let version = &balancer.version;
    let span = &balancer.domain_of(looker).0.groups[busiest.group].span;
    let index = balancer.level(looker.cpu, looker.position).index_of(looker.idle);
    let mut found = (None, 0);
    for cpu in span.and(cpus).iter() {
        let weight = rqs.cpu_weight(core, cpu);
        let load = if version.counts_tasks {
            source_load(rqs, core, cpu, index)
        } else if core.rq(cpu).nr_running == 1 && weight > busiest.imbalance {
            continue;
        } else {
            // Before 2.6.32 all CPUs have equal power.
            weight * version.scale / balancer.cpu_power[cpu.index()]
        };
        if load > found.1 {
            found = (Some(cpu), load);
        }
    }
    found.0
}
