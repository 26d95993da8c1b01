// SPDX-License-Identifier: MIT OR Apache-2.0
//! How Linux 2.6.22 and 2.6.23 balance: from which CPU they take how much weight, at which times.
//!
//! Of a group of CPUs only one balances at ticks: its first idle one, or the first one. It takes
//! from the group with most load for its power, of those with more tasks than CPUs' worth of power,
//! if that exceeds its own by the domain's percentage, as much as brings the lower one to the
//! average; a difference of less than a task moves a task where the two get more done so, in 2.6.23
//! also where 1024 (one of nice 0) more would justify it. After failed attempts what runs there is
//! pushed away. A CPU that runs dry looks at once.
//!
//! Source: Linux 2.6.22 and 2.6.23.17, kernel/sched.c (`find_busiest_group`, `find_busiest_queue`,
//! `load_balance`, `load_balance_newidle`, `rebalance_domains`, `active_load_balance`,
//! `try_to_wake_up`, `wake_idle`, `sched_balance_self`); include/linux/topology.h in a form between
//! 2.6.17 and 2.6.24 (the constants of the domains did not change there). Left out:
//! `rq->next_balance`, which looks at a domain later than its own interval says where that was last
//! computed for another state of the CPU; the nomination of a CPU that balances for idle ones
//! (NO_HZ): idle CPUs look at ticks of their own; power savings; the limit of an interval to
//! NR_CPUS / 10 s.

use super::group::{Busiest, Sum, work_now_and_then};
use super::{Domain, Domains, Idle, LOAD_SCALE_REVISED, Style};
use crate::core::Core;
use crate::flags::WakeFlags;
use schedlab_model::{CpuId, CpuMask, TaskId};

/// By how much two loads must differ at least to be taken for different, and a task be heavier than
/// what is left to move (SCHED_LOAD_SCALE_FUZZ).
pub const FUZZ: u64 = LOAD_SCALE_REVISED;
/// Longest interval in ms where nothing may move because of affinity (MAX_PINNED_INTERVAL).
const MAX_PINNED_INTERVAL: u64 = 512;

/// What a move brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Something came.
    pub any: bool,
    /// Nothing of what was looked at last may run here.
    pub all_pinned: bool,
}

/// The runqueues as balancing sees them.
pub trait Runqueues {
    /// The domains.
    fn domains(&mut self) -> &mut Domains;

    /// Moves waiting tasks from one CPU to `cpu`, of a weight of `most` altogether (`move_tasks`);
    /// `level` is the number of the domain that `cpu` looks at.
    fn move_tasks(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        level: usize,
        from: CpuId,
        most: u64,
    ) -> Moved;

    /// What runs on `from` is to be pushed to `cpu` (`active_balance`). Says no if a push from
    /// there is under way.
    fn push_running(&mut self, core: &mut Core, from: CpuId, cpu: CpuId) -> bool;
}

/// Whom to take from.
enum Search {
    /// Another CPU of the group looks.
    NotMine,
    Balanced,
    Found(Busiest, CpuId),
}

/// What a look brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Nothing,
    Moved,
    /// A sibling is busy: the outer domains are looked at as by a busy CPU.
    SiblingBusy,
}

impl Domain {
    /// Which average of the loads a look goes by; 0: none (busy_idx, idle_idx, newidle_idx).
    fn load_index(&self, idle: Idle) -> usize {
        match (self.is_core, idle) {
            (true, Idle::Newly) => 1,
            (true, _) => 0,
            (false, Idle::AtTick) => 1,
            (false, _) => 2,
        }
    }

    /// Which one a wake-up goes by (wake_idx).
    pub const fn wake_index(&self) -> usize {
        if self.is_core { 0 } else { 1 }
    }
}

impl Domains {
    /// Load for each CPU's worth of power. The kernel reckons it in 32 bits.
    const fn for_power(&self, load: u64, power: u64) -> u64 {
        ((load * self.scale()) as u32 as u64) / power
    }

    /// Sums over group number `group`, and the sum of loads before it is divided by the power.
    fn sum_group(
        &self,
        core: &Core,
        domain: &Domain,
        (group, is_local): (usize, bool),
        idle: Idle,
        excluded: &CpuMask,
    ) -> (Sum, u64) {
        let index = domain.load_index(idle);
        let entry = &domain.groups[group];
        let (mut load, mut nr_running, mut weight) = (0, 0, 0);
        for &cpu in entry.cpus.iter().filter(|cpu| !excluded.contains(**cpu)) {
            load +=
                if is_local { self.target_load(cpu, index) } else { self.source_load(cpu, index) };
            nr_running += u64::from(core.rq(cpu).nr_running);
            weight += self.load[cpu.index()];
        }
        let power = entry.power;
        (Sum { group, load: self.for_power(load, power), power, nr_running, weight }, load)
    }

    /// The CPU from which `cpu` should take work in its domain number `level`, and how much.
    fn search(
        &self,
        core: &Core,
        cpu: CpuId,
        level: usize,
        idle: Idle,
        excluded: &CpuMask,
    ) -> Search {
        let state = &self.intervals[cpu.index()][level];
        let domain = &self.domains[state.domain];
        let own = state.own_group;
        if idle != Idle::Newly {
            let cpus = &domain.groups[own].cpus;
            let is_idle = |cpu: &&CpuId| core.rq(**cpu).curr.is_none();
            let balances = cpus.iter().find(is_idle).or(cpus.first());
            if balances != Some(&cpu) {
                return Search::NotMine;
            }
        }
        let (here, mut total) = self.sum_group(core, domain, (own, true), idle, excluded);
        let mut total_power = here.power;
        let mut busiest: Option<Sum> = None;
        let count = domain.groups.len();
        for group in (own + 1..count).chain(0..own) {
            let (sum, load) = self.sum_group(core, domain, (group, false), idle, excluded);
            total += load;
            total_power += sum.power;
            let most = busiest.map_or(0, |busiest| busiest.load);
            if sum.load > most && sum.nr_running > sum.power / self.scale() {
                busiest = Some(sum);
            }
        }
        let found = busiest.and_then(|busiest| {
            let average = self.scale() * total / total_power;
            let pct = domain.imbalance_pct;
            let imbalance = imbalance(&here, &busiest, average, pct, self.style)?;
            let wanted = Busiest { group: busiest.group, imbalance };
            let from = self.busiest_queue(core, domain, wanted, excluded)?;
            Some((wanted, from))
        });
        found.map_or(Search::Balanced, |(wanted, from)| Search::Found(wanted, from))
    }

    /// The CPU of the group with most load, but none whose only task is heavier than what is to be
    /// moved.
    fn busiest_queue(
        &self,
        core: &Core,
        domain: &Domain,
        wanted: Busiest,
        excluded: &CpuMask,
    ) -> Option<CpuId> {
        let mut found = (None, 0);
        for &cpu in &domain.groups[wanted.group].cpus {
            let load = self.load[cpu.index()];
            let is_too_heavy = core.rq(cpu).nr_running == 1 && load > wanted.imbalance;
            if load > found.1 && !is_too_heavy && !excluded.contains(cpu) {
                found = (Some(cpu), load);
            }
        }
        found.0
    }

    /// The CPU for `task`, which is woken on `flags.this_cpu`; `load` is the task's weight, and
    /// `leaves` that of a waker that is about to sleep.
    pub fn wake_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
        (load, leaves): (u64, u64),
    ) -> CpuId {
        let this = flags.this_cpu;
        let allowed = &core.task(task).cpus_allowed;
        let cpu = if this != prev && allowed.contains(this) {
            let pulls = self.wakes_here(core, this, prev, load, leaves);
            if pulls { this } else { prev }
        } else {
            prev
        };
        // With several threads a core, an idle one beside a thread that has nothing else to do.
        let Some(threads) = self.core_of(cpu) else { return cpu };
        if core.idle_cpu(cpu) || core.rq(cpu).nr_running > 1 {
            return cpu;
        }
        let others = threads.groups.iter().flat_map(|group| &group.cpus).copied();
        let mut idle = others.filter(|other| allowed.contains(*other) && core.idle_cpu(*other));
        idle.next().unwrap_or(cpu)
    }

    /// Whether a woken task of this weight comes to the waker's CPU rather than its own; `leaves`
    /// is the weight of a waker that is about to sleep.
    pub fn wakes_here(
        &self,
        core: &Core,
        this: CpuId,
        prev: CpuId,
        load: u64,
        leaves: u64,
    ) -> bool {
        let spans = |domain: &&Domain| domain.groups.iter().any(|g| g.cpus.contains(&prev));
        let mut domains = self.intervals[this.index()].iter().map(|s| &self.domains[s.domain]);
        let Some(domain) = domains.find(spans) else { return false };
        let index = domain.wake_index();
        let there = self.source_load(prev, index);
        let here = self.target_load(this, index).saturating_sub(leaves);
        let nr_running = u64::from(core.rq(this).nr_running);
        let per_task = self.load[this.index()].checked_div(nr_running).unwrap_or(self.scale());
        let pct = 100 + (domain.imbalance_pct - 100) / 2;
        (here <= there && here + self.target_load(prev, index) <= per_task)
            || 100 * (here + load) <= pct * there
    }

    /// The CPU for a program that was forked on `cpu` and calls exec: that of least load in the
    /// group of least load, if that is clearly less than here.
    pub fn exec_cpu(&self, core: &Core, task: TaskId, cpu: CpuId) -> CpuId {
        let allowed = &core.task(task).cpus_allowed;
        let mut cpu = cpu;
        // From the outermost domain inwards, of the CPU chosen so far.
        for outer in 0..2 {
            let states = &self.intervals[cpu.index()];
            let Some(state) = states.len().checked_sub(outer + 1).map(|i| &states[i]) else {
                break;
            };
            let domain = &self.domains[state.domain];
            let Some(group) = self.idlest_group(domain, state.own_group, allowed) else {
                continue;
            };
            let cpus = domain.groups[group].cpus.iter();
            let idlest = cpus
                .filter(|cpu| allowed.contains(**cpu))
                .min_by_key(|other| (self.load[other.index()], **other != cpu));
            cpu = idlest.copied().unwrap_or(cpu);
        }
        cpu
    }

    fn idlest_group(&self, domain: &Domain, own: usize, allowed: &CpuMask) -> Option<usize> {
        let index = domain.wake_index();
        let count = domain.groups.len();
        let mut here = 0;
        let mut least: Option<(usize, u64)> = None;
        for group in (own..count).chain(0..own) {
            let entry = &domain.groups[group];
            if !entry.cpus.iter().any(|cpu| allowed.contains(*cpu)) {
                continue;
            }
            let loads = entry.cpus.iter().map(|cpu| match group == own {
                true => self.source_load(*cpu, index),
                false => self.target_load(*cpu, index),
            });
            let load = self.for_power(loads.sum(), entry.power);
            if group == own {
                here = load;
            } else if least.is_none_or(|(_, least)| load < least) {
                least = Some((group, load));
            }
        }
        let pct = 100 + (domain.imbalance_pct - 100) / 2;
        let (group, load) = least?;
        (100 * here >= pct * load).then_some(group)
    }
}

/// Weight to move; 0 is an imbalance of which nothing can be moved (2.6.23).
fn imbalance(here: &Sum, busiest: &Sum, average: u64, pct: u64, style: Style) -> Option<u64> {
    let (scale, fuzz) = match style {
        Style::Revised => (LOAD_SCALE_REVISED, FUZZ),
        _ => (super::LOAD_SCALE, 0),
    };
    if here.load >= busiest.load || here.load >= average || 100 * busiest.load <= pct * here.load {
        return None;
    }
    let task_there = busiest.load_per_task(scale);
    if busiest.load <= task_there {
        return None;
    }
    let imbalance = match busiest.load.checked_sub(average) {
        None => 0,
        Some(above) => {
            let pull = above.min(busiest.load - task_there);
            (pull * busiest.power).min((average - here.load) * here.power) / scale
        }
    };
    if imbalance >= task_there {
        return Some(imbalance);
    }
    let task_here = here.load_per_task(scale);
    let tasks = if here.nr_running > 0 && task_there > task_here { 1 } else { 2 };
    if busiest.load - here.load + fuzz >= task_there * tasks {
        return Some(task_there);
    }
    let (now, then) = work_now_and_then(here, busiest, [task_here, task_there], task_there, scale);
    match style {
        _ if then > now => Some(task_there),
        Style::Revised => Some(imbalance),
        _ => None,
    }
}

/// The tick of `cpu`, whose averages are up to date (`rebalance_domains`).
pub fn rebalance_tick<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) {
    let jiffies = core.jiffies();
    let is_idle = core.rq(cpu).curr.is_none();
    let mut idle = if is_idle { Idle::AtTick } else { Idle::Not };
    for level in 0..rqs.domains().intervals[cpu.index()].len() {
        let ticks = rqs.domains().interval_ticks(cpu, level, idle);
        let last = rqs.domains().intervals[cpu.index()][level].last_balance;
        if jiffies < last + ticks {
            continue;
        }
        let (look, is_mine) = load_balance(rqs, core, cpu, level, idle);
        if look != Look::Nothing {
            idle = Idle::Not;
        }
        rqs.domains().intervals[cpu.index()][level].last_balance = jiffies;
        if !is_mine {
            break;
        }
    }
}

/// Whether all CPUs that `cpu` may take from in that domain, itself included, are idle.
fn is_idle_core(domains: &Domains, core: &Core, cpu: CpuId, level: usize, idle: Idle) -> bool {
    let domain = &domains.domains[domains.intervals[cpu.index()][level].domain];
    let mut cpus = domain.groups.iter().flat_map(|group| &group.cpus);
    idle != Idle::Not && domain.is_core && cpus.all(|cpu| core.rq(*cpu).nr_running == 0)
}

/// Nothing moved: what the outer domains are to make of it.
fn nothing_moved(domains: &Domains, core: &Core, cpu: CpuId, level: usize, idle: Idle) -> Look {
    let is_core = domains.domains[domains.intervals[cpu.index()][level].domain].is_core;
    if is_core && !is_idle_core(domains, core, cpu, level, idle) {
        Look::SiblingBusy
    } else {
        Look::Nothing
    }
}

/// Looks at a domain of `cpu`, and sets when to look again; says whether it was its turn.
fn load_balance<R: Runqueues>(
    rqs: &mut R,
    core: &mut Core,
    cpu: CpuId,
    level: usize,
    idle: Idle,
) -> (Look, bool) {
    let mut excluded = CpuMask::empty();
    let (from, moved) = loop {
        match rqs.domains().search(core, cpu, level, idle, &excluded) {
            Search::NotMine => {
                lengthen(rqs.domains(), cpu, level, false);
                rqs.domains().intervals[cpu.index()][level].nr_failed = 0;
                return (nothing_moved(rqs.domains(), core, cpu, level, idle), false);
            }
            Search::Balanced => {
                lengthen(rqs.domains(), cpu, level, !excluded.is_empty());
                rqs.domains().intervals[cpu.index()][level].nr_failed = 0;
                return (nothing_moved(rqs.domains(), core, cpu, level, idle), true);
            }
            Search::Found(wanted, from) => {
                if core.rq(from).nr_running <= 1 {
                    break (from, false);
                }
                let moved = rqs.move_tasks(core, cpu, level, from, wanted.imbalance);
                if !moved.all_pinned {
                    break (from, moved.any);
                }
                excluded.set(from);
            }
        }
    };
    if moved {
        let state = &mut rqs.domains().intervals[cpu.index()][level];
        state.nr_failed = 0;
        state.interval = 1;
        return (Look::Moved, true);
    }
    failed(rqs, core, (cpu, level), from);
    (nothing_moved(rqs.domains(), core, cpu, level, idle), true)
}

/// Nothing could be moved from `from`: after some such attempts what runs there is pushed.
fn failed<R: Runqueues>(rqs: &mut R, core: &mut Core, (cpu, level): (CpuId, usize), from: CpuId) {
    let domains = rqs.domains();
    let state = &mut domains.intervals[cpu.index()][level];
    let tries = domains.domains[state.domain].cache_nice_tries;
    state.nr_failed += 1;
    if state.nr_failed > tries + 2 {
        let may_come = |curr: TaskId| core.task(curr).cpus_allowed.contains(cpu);
        if !core.rq(from).curr.is_none_or(may_come) {
            lengthen(domains, cpu, level, true);
            return;
        }
        state.nr_failed = tries + 1;
        if rqs.push_running(core, from, cpu) {
            lengthen(rqs.domains(), cpu, level, false);
            return;
        }
    }
    rqs.domains().intervals[cpu.index()][level].interval = 1;
}

fn lengthen(domains: &mut Domains, cpu: CpuId, level: usize, all_pinned: bool) {
    let state = &mut domains.intervals[cpu.index()][level];
    let most = domains.domains[state.domain].max_interval;
    if state.interval < most || (all_pinned && state.interval < MAX_PINNED_INTERVAL) {
        state.interval *= 2;
    }
}

/// `cpu` is about to become idle (`idle_balance`). Says whether it got something.
pub fn idle_balance<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) -> bool {
    let nr_levels = rqs.domains().intervals[cpu.index()].len();
    for level in 0..nr_levels {
        match balance_newly_idle(rqs, core, cpu, level) {
            Look::Moved => return true,
            Look::SiblingBusy => return false,
            Look::Nothing => {}
        }
    }
    false
}

fn balance_newly_idle<R: Runqueues>(
    rqs: &mut R,
    core: &mut Core,
    cpu: CpuId,
    level: usize,
) -> Look {
    let mut excluded = CpuMask::empty();
    let idle = Idle::Newly;
    loop {
        let found = rqs.domains().search(core, cpu, level, idle, &excluded);
        let Search::Found(wanted, from) = found else {
            let look = nothing_moved(rqs.domains(), core, cpu, level, idle);
            if look == Look::Nothing {
                rqs.domains().intervals[cpu.index()][level].nr_failed = 0;
            }
            return look;
        };
        if core.rq(from).nr_running > 1 {
            let moved = rqs.move_tasks(core, cpu, level, from, wanted.imbalance);
            if moved.any {
                rqs.domains().intervals[cpu.index()][level].nr_failed = 0;
                return Look::Moved;
            }
            // 2.6.22 tries the others in any case.
            if moved.all_pinned || rqs.domains().style == Style::Weights {
                excluded.set(from);
                continue;
            }
        }
        return nothing_moved(rqs.domains(), core, cpu, level, idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(load: u64, nr_running: u64, scale: u64) -> Sum {
        let load = load * scale;
        Sum { group: 0, load, power: scale, nr_running, weight: load }
    }

    /// With so many tasks of nice 0 on each of two CPUs.
    fn weight(style: Style, scale: u64, here: u64, there: u64) -> Option<u64> {
        let (here, there) = (sum(here, here, scale), sum(there, there, scale));
        imbalance(&here, &there, (here.load + there.load) / 2, 125, style)
    }

    #[test]
    fn section_5_3_weight_to_move() {
        let weight = |here, there| weight(Style::Revised, 1024, here, there);
        assert_eq!(weight(1, 3), Some(1024));
        assert_eq!(weight(1, 7), Some(3 * 1024));
        assert_eq!(weight(0, 2), Some(1024));
        assert_eq!(weight(4, 5), None, "500 is not more than 125 * 4");
        // 2.6.22 would let that be: a difference of one task counts as two with the fuzz.
        assert_eq!(weight(1, 2), Some(1024));
        assert_eq!(weight(0, 1), None, "it runs already");
    }

    #[test]
    fn section_3_11_weight_to_move_of_2_6_22() {
        let weight = |here, there| weight(Style::Weights, 128, here, there);
        assert_eq!(weight(1, 3), Some(128));
        assert_eq!(weight(1, 7), Some(3 * 128));
        assert_eq!(weight(4, 5), None);
        assert_eq!(weight(1, 2), None);
        assert_eq!(weight(0, 1), None);
        // One task of nice -20 weighs more than its CPU is to give away.
        assert_eq!(imbalance(&sum(0, 0, 128), &sum(8, 1, 128), 512, 125, Style::Weights), None);
        // Groups within their power do not count as the busiest: it may be below the average. Two
        // of nice 0 there and none here: one comes; of one of nice -9 and one of nice 0 nothing.
        let (here, there) = (sum(0, 0, 128), sum(2, 2, 128));
        assert_eq!(imbalance(&here, &there, 3 * 128, 125, Style::Weights), Some(128));
        let (here, there) = (sum(1, 1, 128), sum(2, 2, 128));
        assert_eq!(imbalance(&here, &there, 3 * 128, 125, Style::Weights), None);
    }

    #[test]
    fn loads_are_reckoned_in_32_bits() {
        let machine = schedlab_model::Machine::flat(1);
        let domains = Domains::new(Style::Revised, 0, &machine);
        assert_eq!(domains.for_power(3 * 1024, 1024), 3 * 1024);
        // 4096 tasks of nice 0 look like none.
        assert_eq!(domains.for_power(4096 * 1024, 1024), 0);
    }
}
