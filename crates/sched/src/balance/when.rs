// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides when CPUs balance: at ticks, before going idle, and idle CPUs for each other.
//!
//! An idle CPU has no tick. If a busy CPU's tick finds a reason, the first idle CPU balances for
//! all idle ones. On machines where this takes time ([`schedlab_model::Costs::nohz_kick_ns`]) the
//! busy CPU may have switched by then. On others it happens within that tick, after the busy CPU's
//! own balancing.
//!
//! Source: Linux kernel/sched/fair.c (trigger_load_balance, rebalance_domains, nohz_balancer_kick,
//! _nohz_idle_balance, newidle_balance, update_newidle_cost, update_newidle_stats).

use super::detach::Activity;
use super::{BalanceFeatures, BalanceOptions, Balancer, FairQueues, NewidleRecord};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, Nanos, TaskId};

/// Jiffies between two attempts (get_sd_balance_interval).
fn interval_jiffies(interval_ms: u64, busy: bool, hz: u64, nr_cpus: u64) -> u64 {
    const BUSY_FACTOR: u64 = 16;
    let ms = if busy { interval_ms * BUSY_FACTOR } else { interval_ms };
    // msecs_to_jiffies rounds up.
    let jiffies = (ms * hz).div_ceil(1000);
    let jiffies = if busy { jiffies.saturating_sub(1) } else { jiffies };
    jiffies.clamp(1, (hz * nr_cpus / 10).max(1))
}

/// The purpose of a timer of the fair class; purpose and CPU form the token.
const TOKEN_KICK: u64 = 3;

const fn kick_token(cpu: CpuId) -> u64 {
    TOKEN_KICK << 32 | cpu.0 as u64
}

/// The CPU whose tick asked an idle CPU to balance, if the token is of that.
pub const fn kicked_by(token: u64) -> Option<CpuId> {
    if token >> 32 == TOKEN_KICK { Some(CpuId(token as u32)) } else { None }
}

/// Scale of [`NewidleRecord::ratio`].
const RATIO_SCALE: u32 = 1024;

impl NewidleRecord {
    /// Counts an attempt (update_newidle_stats). With `by_rate` (NI_RATE), the rarer attempts are,
    /// the larger the share of them that is made.
    fn note(&mut self, now: Nanos, successes: u32, by_rate: bool) {
        self.calls += 1;
        self.successes += successes;
        if self.calls < RATIO_SCALE {
            return;
        }
        let rareness = if by_rate { (now - self.renewed_at) >> 22 } else { 0 };
        self.renewed_at = now;
        let ratio = rareness.saturating_add(u64::from(self.successes));
        self.ratio = ratio.min(u64::from(RATIO_SCALE)) as u32;
        self.calls /= 2;
        self.successes /= 2;
    }
}

impl Balancer {
    fn interval(&self, core: &Core, cpu: CpuId, position: usize, busy: bool) -> u64 {
        let interval = self.cpus[cpu.index()].domains[position].balance_interval;
        interval_jiffies(interval, busy, u64::from(core.hz), u64::from(core.nr_cpus()))
    }

    /// Whether the tick of busy `cpu` has nothing to balance: its interval has not ended, and no
    /// idle CPU needs a kick or an update.
    #[inline]
    pub fn is_quiet(&self, core: &Core, cpu: CpuId) -> bool {
        core.jiffies() < self.cpus[cpu.index()].next_balance && core.idle_cpus.is_empty()
    }

    /// Handles the tick of busy `cpu`, after the class's own work.
    pub fn tick(&mut self, core: &mut Core, fair: &mut impl FairQueues, cpu: CpuId) {
        if self.domains.of_cpu(cpu).is_empty() {
            return;
        }
        self.update_higher_share(core, cpu);
        let is_due = core.jiffies() >= self.cpus[cpu.index()].next_balance;
        let kicks = self.is_nohz_kick(core, fair, cpu);
        self.refresh_idle(core, fair);
        if is_due {
            fair.update_averages(core, cpu);
            self.rebalance_domains(core, fair, cpu, Activity::Busy);
        }
        if kicks && core.nohz_kick_ns > 0 {
            self.nohz_next_balance = core.jiffies() + 1;
            core.start_timer(core.now + core.nohz_kick_ns, kick_token(cpu));
        } else if kicks {
            self.kick_idle_balance(core, fair, cpu);
        } else if self.nohz_needs_update {
            self.update_nohz_next_balance(core);
        }
    }

    /// Updates the averages of idle CPUs every 32 ms.
    fn refresh_idle(&mut self, core: &Core, fair: &mut impl FairQueues) {
        const LOAD_AVG_PERIOD_MS: u64 = 32;
        if core.jiffies() <= self.nohz_next_blocked || core.idle_cpus.is_empty() {
            return;
        }
        self.nohz_next_blocked =
            core.jiffies() + (LOAD_AVG_PERIOD_MS * u64::from(core.hz)).div_ceil(1000);
        for idle in core.idle_cpus.iter() {
            if fair.cpu_load(idle) > 0 || fair.cpu_util(idle) > 0 {
                fair.update_averages(core, idle);
            }
        }
    }

    /// Balances each domain of `cpu` whose interval has ended, smallest first.
    fn rebalance_domains(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        cpu: CpuId,
        idle: Activity,
    ) {
        let now = core.jiffies();
        let mut idle = idle;
        let mut next_balance: Option<u64> = None;
        let (mut continue_balancing, mut decayed, mut max_cost) = (true, false, 0);
        for position in 0..self.domains.of_cpu(cpu).len() {
            let needs_decay = self.update_newidle_cost(cpu, position, 0, now, core.hz);
            decayed |= needs_decay;
            max_cost += self.cpus[cpu.index()].domains[position].max_newidle_lb_cost;
            if !continue_balancing {
                if needs_decay {
                    continue;
                }
                break;
            }
            let mut busy = idle == Activity::Busy && !fair.sched_idle_cpu(core, cpu);
            let mut interval = self.interval(core, cpu, position, busy);
            if now >= self.cpus[cpu.index()].domains[position].last_balance + interval {
                match self.load_balance(core, fair, cpu, position, idle) {
                    Some(true) => {
                        idle = if core.idle_cpu(cpu) { Activity::Idle } else { Activity::Busy };
                        busy = idle == Activity::Busy && !fair.sched_idle_cpu(core, cpu);
                    }
                    Some(false) => {}
                    None => continue_balancing = false,
                }
                self.cpus[cpu.index()].domains[position].last_balance = now;
                interval = self.interval(core, cpu, position, busy);
            }
            let due = self.cpus[cpu.index()].domains[position].last_balance + interval;
            next_balance = Some(next_balance.map_or(due, |next| next.min(due)));
        }
        let state = &mut self.cpus[cpu.index()];
        if decayed {
            state.max_idle_balance_cost = max_cost.max(self.options.migration_cost);
            fair.set_max_idle_balance_cost(cpu, state.max_idle_balance_cost);
        }
        if let Some(next) = next_balance {
            state.next_balance = next;
        }
    }

    /// Whether the tick of busy `cpu` has a reason to make idle CPUs balance.
    fn is_nohz_kick(&self, core: &Core, fair: &impl FairQueues, cpu: CpuId) -> bool {
        if core.jiffies() < self.nohz_next_balance || core.idle_cpus.is_empty() {
            return false;
        }
        if core.rq(cpu).nr_running >= 2 {
            return true;
        }
        let pct = self.domains.iter(cpu).next().map_or(100, |domain| domain.imbalance_pct);
        if fair.h_nr_running(cpu) >= 1 && self.is_capacity_reduced(core, cpu, pct) {
            return true;
        }
        self.domains.llc(cpu).is_some_and(|llc| {
            let idle = llc.span.and(&core.idle_cpus).weight();
            llc.weight - idle > 1
        })
    }

    /// Accounts for a CPU that went idle and may be due earlier than those that were idle before
    /// (NOHZ_NEXT_KICK).
    fn update_nohz_next_balance(&mut self, core: &Core) {
        self.nohz_needs_update = false;
        let idle = core.idle_cpus.iter().map(|cpu| self.cpus[cpu.index()].next_balance);
        if let Some(next) = idle.min() {
            self.nohz_next_balance = next.min(core.jiffies() + 60 * u64::from(core.hz));
        }
    }

    /// The first idle CPU balances, some time after the tick of `cpu` asked it to. It needs the
    /// locks of busy CPUs. One that switches holds its own, from the reading of its clock on.
    pub fn idle_balances(&mut self, core: &mut Core, fair: &mut impl FairQueues, cpu: CpuId) {
        let switches = core.rqs.iter().map(|rq| rq.switches_at);
        let held = core.now..=core.now.saturating_add(core.clock_lead_ns);
        match switches.filter(|at| held.contains(at)).max() {
            Some(at) => core.start_timer(at + 1, kick_token(cpu)),
            None => self.kick_idle_balance(core, fair, cpu),
        }
    }

    /// Makes the first idle CPU balance for all idle ones, itself last.
    fn kick_idle_balance(&mut self, core: &mut Core, fair: &mut impl FairQueues, cpu: CpuId) {
        let now = core.jiffies();
        self.nohz_next_balance = now + 1;
        self.nohz_needs_update = false;
        let Some(balancer) = core.idle_cpus.iter().find(|idle| *idle != cpu) else { return };
        let idle_cpus = core.idle_cpus;
        let mut next_balance = now + 60 * u64::from(core.hz);
        for idle in idle_cpus.iter_from(CpuId(balancer.0 + 1)) {
            if !core.idle_cpu(idle) {
                continue;
            }
            if core.rq(balancer).need_resched {
                // It has work now; the next idle CPU handles the rest.
                return;
            }
            if now >= self.cpus[idle.index()].next_balance {
                fair.update_averages(core, idle);
                self.rebalance_domains(core, fair, idle, Activity::Idle);
            }
            next_balance = next_balance.min(self.cpus[idle.index()].next_balance);
        }
        self.nohz_next_balance = next_balance;
    }

    /// Handles `cpu` having nothing to run. Returns whether it pulled a task.
    pub fn newidle(&mut self, core: &mut Core, fair: &mut impl FairQueues, cpu: CpuId) -> bool {
        if self.is_pushing(cpu) {
            return false;
        }
        fair.set_idle_stamp(cpu, Some(core.now));
        let mut next_balance = core.jiffies() + u64::from(core.hz);
        let pulled = self.newidle_domains(core, fair, cpu, &mut next_balance);
        let state = &mut self.cpus[cpu.index()];
        state.next_balance = state.next_balance.min(next_balance);
        if pulled {
            fair.set_idle_stamp(cpu, None);
        } else {
            self.nohz_needs_update = true;
            self.new_idle_core(core, cpu);
        }
        pulled
    }

    /// How many CPUs `cpu` will compare before it goes idle, now that `prev` leaves it; none if it
    /// draws that it does not search. `None`: it has other tasks, or a search is not worth it.
    pub fn foresee_newidle(
        &mut self,
        core: &mut Core,
        fair: &impl FairQueues,
        cpu: CpuId,
        prev: TaskId,
    ) -> Option<u32> {
        let rq = core.rq(cpu);
        let nr_left = rq.nr_running.saturating_sub(fair.h_nr_delayed(cpu));
        if rq.curr != Some(prev) || nr_left > 1 || self.is_pushing(cpu) {
            return None;
        }
        let (mut spent, mut nr_cpus) = (0, None);
        for position in 0..self.domains.of_cpu(cpu).len() {
            if !self.newidle_is_worth(fair, cpu, position, spent) {
                break;
            }
            let drawn = self.newidle_draw(core, cpu, position);
            self.cpus[cpu.index()].domains[position].newidle.foreseen = Some(drawn);
            let nr_compared = nr_cpus.get_or_insert(0);
            if drawn.is_some() {
                spent += self.newidle_cost(cpu, position);
                *nr_compared += self.nr_compared(core, fair, cpu, position);
            }
        }
        nr_cpus
    }

    /// How many CPUs a search of `cpu` in a domain compares. If it may take no task of the busiest
    /// one, it compares the others again.
    fn nr_compared(&self, core: &Core, fair: &impl FairQueues, cpu: CpuId, position: usize) -> u32 {
        let Some(domain) = self.domains.iter(cpu).nth(position) else { return 0 };
        let crowded = domain.span.iter().filter(|from| core.rq(*from).nr_running > 1);
        let (mut nr_compared, mut nr_left) = (domain.weight, domain.weight);
        for from in crowded {
            let tasks =
                std::iter::successors(fair.tasks_tail(from), |task| fair.tasks_before(*task));
            if tasks.into_iter().any(|task| core.task(task).cpus_allowed.contains(cpu)) {
                return domain.weight;
            }
            nr_left -= 1;
            nr_compared += nr_left;
        }
        nr_compared
    }

    fn domain_weight(&self, cpu: CpuId, position: usize) -> u32 {
        self.domains.iter(cpu).nth(position).map_or(0, |domain| domain.weight)
    }

    /// What an attempt in a domain is taken to cost (ns).
    fn newidle_cost(&self, cpu: CpuId, position: usize) -> Nanos {
        /// On machines where attempts cost nothing.
        const ASSUMED: Nanos = 2_000;
        let BalanceOptions { newidle_cost, newidle_cpu_cost, .. } = self.options;
        match newidle_cost + newidle_cpu_cost * Nanos::from(self.domain_weight(cpu, position)) {
            0 => ASSUMED,
            cost => cost,
        }
    }

    /// Whether some CPU has too many tasks, and the expected idle time exceeds the cost.
    fn newidle_is_worth(
        &self,
        fair: &impl FairQueues,
        cpu: CpuId,
        position: usize,
        spent: Nanos,
    ) -> bool {
        let state = &self.cpus[cpu.index()].domains[position];
        self.overload && fair.avg_idle(cpu) >= spent + state.max_newidle_lb_cost
    }

    fn newidle_domains(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        cpu: CpuId,
        next_balance: &mut u64,
    ) -> bool {
        let mut spent = 0;
        let nr_domains = self.domains.of_cpu(cpu).len();
        for position in 0..nr_domains {
            let due = self.cpus[cpu.index()].domains[position].last_balance
                + self.interval(core, cpu, position, false);
            *next_balance = (*next_balance).min(due);
            if !self.newidle_is_worth(fair, cpu, position, spent) {
                break;
            }
            if position == 0 {
                fair.update_averages(core, cpu);
            }
            let Some(stands_for) = self.newidle_draw(core, cpu, position) else { continue };
            let pulled = self
                .load_balance(core, fair, cpu, position, Activity::NewlyIdle)
                .is_some_and(|moved| moved);
            let cost = self.newidle_cost(cpu, position);
            spent += cost;
            if self.options.features.ni_random {
                let successes = if pulled { stands_for } else { 0 };
                self.cpus[cpu.index()].domains[position].newidle.note(
                    core.now,
                    successes,
                    self.options.features.ni_rate,
                );
            }
            self.update_newidle_cost(cpu, position, cost, core.jiffies(), core.hz);
            if pulled || core.rq(cpu).nr_running > 0 {
                break;
            }
        }
        let state = &mut self.cpus[cpu.index()];
        state.max_idle_balance_cost = state.max_idle_balance_cost.max(spent);
        fair.set_max_idle_balance_cost(cpu, state.max_idle_balance_cost);
        core.rq(cpu).nr_running > 0
    }

    /// Decides at random whether `cpu`, which becomes idle, tries a domain (NI_RANDOM). `Some`: it
    /// does, and the attempt counts this many times.
    fn newidle_draw(&mut self, core: &mut Core, cpu: CpuId, position: usize) -> Option<u32> {
        let BalanceFeatures { ni_random, ni_rate, .. } = self.options.features;
        let record = &mut self.cpus[cpu.index()].domains[position].newidle;
        if let Some(drawn) = record.foreseen.take() {
            return drawn;
        }
        if !ni_random || record.ratio >= RATIO_SCALE {
            return Some(1);
        }
        let weight = 1 + record.ratio;
        if core.random.below(u64::from(RATIO_SCALE)) > u64::from(weight) {
            record.note(core.now, 0, ni_rate);
            return None;
        }
        Some((RATIO_SCALE + weight / 2) / weight)
    }

    /// Sets the cost of an attempt, or reduces the known one by about 1 % per second. Returns
    /// whether it was reduced.
    fn update_newidle_cost(
        &mut self,
        cpu: CpuId,
        position: usize,
        cost: u64,
        now: u64,
        hz: u32,
    ) -> bool {
        let state = &mut self.cpus[cpu.index()].domains[position];
        if cost > state.max_newidle_lb_cost {
            state.max_newidle_lb_cost = cost;
            state.last_decay_max_lb_cost = now;
            return false;
        }
        if now > state.last_decay_max_lb_cost + u64::from(hz) {
            state.max_newidle_lb_cost = state.max_newidle_lb_cost * 253 / 256;
            state.last_decay_max_lb_cost = now;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{NewidleRecord, interval_jiffies};

    #[test]
    fn section_5_6_the_part_of_newidle_attempts_follows_their_success_and_rareness() {
        // 512 more attempts within less than 2^22 ns, none of which pulls.
        let mut record = NewidleRecord::NEW;
        for call in 0..512 {
            assert_eq!(record.ratio, 512, "after {call} attempts");
            record.note(call * 1_000, 0, true);
        }
        assert_eq!((record.calls, record.successes, record.ratio), (512, 128, 256));
        // Each of 256 made attempts counts as 4: all succeed, so the rule allows all attempts.
        for _ in 0..512 {
            record.note(1_000_000, 4, true);
        }
        assert_eq!(record.ratio, 1024);
        // None succeeds, but they are as rare as 128 a second, all 1,024 within 4 s.
        let mut record = NewidleRecord { successes: 0, ratio: 0, ..NewidleRecord::NEW };
        for call in 1..=512u64 {
            record.note(call << 23, 0, true);
        }
        assert_eq!((record.successes, record.ratio), (0, 1024));
        // Without NI_RATE the rate does not matter.
        let mut record = NewidleRecord { successes: 0, ratio: 0, ..NewidleRecord::NEW };
        for call in 1..=512u64 {
            record.note(call << 23, 0, false);
        }
        assert_eq!((record.successes, record.ratio), (0, 0));
    }

    #[test]
    fn section_7_3_balance_interval() {
        assert_eq!(interval_jiffies(8, false, 250, 8), 2);
        assert_eq!(interval_jiffies(8, true, 250, 8), 31);
        assert_eq!(interval_jiffies(512, true, 250, 8), 200);
        assert_eq!(interval_jiffies(8, false, 1000, 8), 8);
        assert_eq!(interval_jiffies(8, true, 1000, 8), 127);
        assert_eq!(interval_jiffies(512, true, 1000, 8), 800);
        assert_eq!(interval_jiffies(1, false, 100, 1), 1);
    }
}
