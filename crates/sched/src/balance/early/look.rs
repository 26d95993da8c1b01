// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides when a CPU searches its domains, and what follows from the result.
//!
//! At ticks, only one CPU of a group searches: its first idle one, or else its first one (2.6.11:
//! each CPU). Each search of a balanced domain doubles its interval, up to the longest one; an
//! unbalanced domain is searched again soon. If tasks may not move because of affinity, intervals
//! become longer still. A CPU that becomes idle searches at once.
//!
//! Source: Linux 2.6.11 (`rebalance_tick`, `load_balance`, `idle_balance`), 2.6.22, 2.6.23.17,
//! 2.6.24 and 2.6.32.67 (`rebalance_domains`, `load_balance`, `load_balance_newidle`,
//! `idle_balance`), kernel/sched.c.

use super::busiest::{self, Look};
use super::{Balancer, Idle, Looker, Runqueues};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, CpuMask, TaskId};

/// Longest interval (ms) if nothing may move because of affinity (MAX_PINNED_INTERVAL).
const MAX_PINNED_INTERVAL: u64 = 512;

/// The result of a search of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No task moved.
    Nothing,
    /// Some task moved.
    Moved,
    /// No task moved, and the CPU does not count as idle: a thread of its core is busy (-1).
    Stop,
    /// Another CPU of the own group balances this domain.
    OtherCpu,
}

/// Handles the tick of busy `cpu` after those of the idle CPUs before it. The last busy CPU also
/// executes the ticks of the CPUs after it.
pub fn rebalance_ticks<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) {
    let (missed, cpus) = rqs.balancer_mut().ticks.due(core, cpu);
    if missed > 0 {
        rqs.balancer_mut().all_were_idle(core.jiffies(), missed);
    }
    for cpu in cpus.map(CpuId) {
        let load = rqs.load_at_tick(core, cpu);
        rqs.balancer_mut().move_averages(cpu, load);
        rebalance_tick(rqs, core, cpu);
    }
}

/// Handles the tick of `cpu`, whose averages are up to date (`rebalance_domains`).
pub fn rebalance_tick<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) {
    let spreads = rqs.balancer().version.counts_tasks;
    let jiffies = core.jiffies() + rqs.balancer().offset(cpu);
    let is_idle = core.rq(cpu).curr.is_none();
    if !is_idle && rqs.balancer().looks_later(cpu, jiffies) {
        return;
    }
    let mut idle = if is_idle { Idle::AtTick } else { Idle::Not };
    for position in 0..rqs.balancer().nr_levels(cpu) {
        let ticks = rqs.balancer().interval_ticks(cpu, position, idle);
        let last = rqs.balancer().state(cpu, position).last_balance;
        if jiffies < last + ticks {
            continue;
        }
        let outcome = load_balance(rqs, core, Looker { cpu, position, idle });
        let state = rqs.balancer_mut().state_mut(cpu, position);
        state.last_balance = if spreads { last + ticks } else { jiffies };
        match outcome {
            Outcome::OtherCpu => break,
            Outcome::Moved | Outcome::Stop => idle = Idle::Not,
            Outcome::Nothing => {}
        }
    }
    if !is_idle {
        rqs.balancer_mut().note_looked(cpu);
    }
}

impl Balancer {
    /// Ends a search without a task. If another thread of its core is busy, the CPU does not count
    /// as idle in the domains above.
    fn nothing(&self, looker: Looker, sd_idle: bool) -> Outcome {
        let is_core = self.level(looker.cpu, looker.position).is_core;
        let tells = is_core && !self.version.counts_tasks;
        if tells && !sd_idle { Outcome::Stop } else { Outcome::Nothing }
    }

    /// Whether the threads of a core count as idle until one is found busy.
    fn begins_idle(&self, looker: Looker) -> bool {
        looker.idle != Idle::Not && self.level(looker.cpu, looker.position).is_core
    }

    /// Lengthens the interval of a domain that is in balance, or whose tasks may not move
    /// (`is_pinned`).
    fn lengthen(&mut self, looker: Looker, is_pinned: bool) {
        let most = self.level(looker.cpu, looker.position).max_interval;
        let state = self.state_mut(looker.cpu, looker.position);
        if state.interval < most || (is_pinned && state.interval < MAX_PINNED_INTERVAL) {
            state.interval *= 2;
        }
    }
}

/// Where a search found work.
struct Found {
    from: CpuId,
    imbalance: u64,
}

/// Searches a domain. Result: another CPU searches it, it is in balance, or it has work.
fn search<R: Runqueues>(
    rqs: &mut R,
    core: &Core,
    looker: Looker,
    cpus: &CpuMask,
    sd_idle: &mut bool,
) -> Result<Found, Look> {
    rqs.refresh(core, looker);
    let look = busiest::find_busiest_group(rqs, core, looker, cpus, sd_idle);
    let Look::Found(group) = look else { return Err(look) };
    let from = busiest::find_busiest_queue(rqs, core, looker, group, cpus);
    let from = from.filter(|from| *from != looker.cpu).ok_or(Look::Balanced)?;
    Ok(Found { from, imbalance: group.imbalance })
}

/// Searches a domain at a tick, and sets the time of the next search.
fn load_balance<R: Runqueues>(rqs: &mut R, core: &mut Core, looker: Looker) -> Outcome {
    let Looker { cpu, position, .. } = looker;
    let mut sd_idle = rqs.balancer().begins_idle(looker);
    let mut cpus = core.cpus;
    let mut all_pinned = false;
    loop {
        let found = match search(rqs, core, looker, &cpus, &mut sd_idle) {
            Ok(found) => found,
            Err(look) => {
                let balancer = rqs.balancer_mut();
                balancer.lengthen(looker, all_pinned);
                // 2.6.11 resets failures only after a task moved.
                if !balancer.version.counts_tasks {
                    balancer.state_mut(cpu, position).nr_failed = 0;
                }
                let other = look == Look::OtherCpu;
                return if other { Outcome::OtherCpu } else { balancer.nothing(looker, sd_idle) };
            }
        };
        if core.rq(found.from).nr_running > 1 {
            let moved = rqs.move_tasks(core, looker, found.from, found.imbalance);
            if moved.any {
                let balancer = rqs.balancer_mut();
                let interval = balancer.level(cpu, position).min_interval;
                let state = balancer.state_mut(cpu, position);
                (state.nr_failed, state.interval) = (0, interval);
                rqs.refresh(core, looker);
                return Outcome::Moved;
            }
            if moved.all_pinned && !rqs.balancer().version.counts_tasks {
                all_pinned = true;
                cpus.clear(found.from);
                continue;
            }
        }
        failed(rqs, core, looker, found.from);
        return rqs.balancer().nothing(looker, sd_idle);
    }
}

/// Handles an attempt that moved nothing from `from`. After some such attempts the running task is
/// pushed.
fn failed<R: Runqueues>(rqs: &mut R, core: &mut Core, looker: Looker, from: CpuId) {
    let Looker { cpu, position, .. } = looker;
    let balancer = rqs.balancer_mut();
    let level = balancer.level(cpu, position);
    let (tries, least, most) = (level.cache_nice_tries, level.min_interval, level.max_interval);
    let counts_tasks = balancer.version.counts_tasks;
    let state = balancer.state_mut(cpu, position);
    state.nr_failed += 1;
    let is_enough = state.nr_failed > tries + 2;
    if counts_tasks {
        if state.interval < most {
            state.interval += 1;
        }
        if is_enough {
            state.nr_failed = tries;
            balancer.ask_to_push(core, from, cpu);
        }
        return;
    }
    if is_enough {
        // The idle task may run only on its own CPU.
        let may_come = |curr: TaskId| core.task(curr).cpus_allowed.contains(cpu);
        if !core.rq(from).curr.is_some_and(may_come) {
            balancer.lengthen(looker, true);
            return;
        }
        state.nr_failed = tries + 1;
        if balancer.ask_to_push(core, from, cpu) {
            balancer.lengthen(looker, false);
            return;
        }
    }
    balancer.state_mut(cpu, position).interval = least;
}

/// Handles `cpu` becoming idle (`idle_balance`). If a sibling is busy, the kernel treats this as
/// success too and stops the search.
pub fn idle_balance<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) -> Outcome {
    for position in 0..rqs.balancer().nr_levels(cpu) {
        if !rqs.balancer().level(cpu, position).newidle {
            continue;
        }
        let looker = Looker { cpu, position, idle: Idle::Newly };
        let outcome = load_balance_newidle(rqs, core, looker);
        if matches!(outcome, Outcome::Moved | Outcome::Stop) {
            return outcome;
        }
    }
    Outcome::Nothing
}

fn load_balance_newidle<R: Runqueues>(rqs: &mut R, core: &mut Core, looker: Looker) -> Outcome {
    let Looker { cpu, position, .. } = looker;
    let version = rqs.balancer().version;
    let mut sd_idle = rqs.balancer().begins_idle(looker);
    let mut cpus = core.cpus;
    loop {
        let Ok(found) = search(rqs, core, looker, &cpus, &mut sd_idle) else {
            let nothing = rqs.balancer().nothing(looker, sd_idle);
            if nothing == Outcome::Nothing && !version.counts_tasks {
                rqs.balancer_mut().state_mut(cpu, position).nr_failed = 0;
            }
            return nothing;
        };
        // 2.6.11 does not check the number of runnable tasks.
        if version.counts_tasks || core.rq(found.from).nr_running > 1 {
            let moved = rqs.move_tasks(core, looker, found.from, found.imbalance);
            if moved.any {
                if !version.counts_tasks {
                    rqs.balancer_mut().state_mut(cpu, position).nr_failed = 0;
                }
                rqs.refresh(core, looker);
                return Outcome::Moved;
            }
            let tries_others = moved.all_pinned || version.newidle_tries_others;
            if tries_others && !version.counts_tasks {
                cpus.clear(found.from);
                continue;
            }
        }
        let nothing = rqs.balancer().nothing(looker, sd_idle);
        return if version.newidle_failure_ends { Outcome::Stop } else { nothing };
    }
}
