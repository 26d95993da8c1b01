// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPU a task runs on: that of 2.6.22 in outline, by weights of load.
//!
//! A CPU balances at its ticks, when its interval is over (1 to 4 ms while idle, 64 times that
//! while busy), and when it runs dry: from the CPU with the most load it takes what it lacks to the
//! average, expired tasks first, and one task at least if it has none. The load is the weight of
//! what is queued, which follows a task's time in a rotation.
//!
//! Source: Linux 2.6.22, kernel/sched.c (`find_busiest_group`, `move_tasks`, `can_migrate_task`,
//! `try_to_wake_up`, `sched_exec`), and the weights of 2.6.22-ck1. Left out: the averages of load
//! over ticks (the load is that of the moment), domains and groups of CPUs (all CPUs are one domain
//! but for hardware threads at wake-ups), pushing of running tasks to idle CPUs. The engine has no
//! ticks on idle CPUs: those are made up for at the next tick of a busy one.

use super::Staircase;
use crate::core::Core;
use crate::flags::WakeFlags;
use schedlab_model::time::NSEC_PER_USEC;
use schedlab_model::{CpuId, Nanos, TaskId};

/// Interval between two looks, ms, while idle; longest.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 1..=4;
/// While busy the interval is as many times as long.
const BUSY_FACTOR: u64 = 64;
/// Per cent by which the busiest must exceed this CPU.
const IMBALANCE_PCT: u64 = 125;
/// A task that ran less long ago is cache-hot.
const CACHE_HOT: Nanos = 2_500 * NSEC_PER_USEC;
/// After more failures than this hot tasks are moved too.
const CACHE_NICE_TRIES: u32 = 1;

/// What a CPU does while it balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Activity {
    Busy,
    Idle,
    NewlyIdle,
}

/// What is kept of a CPU.
#[derive(Clone, Copy, Debug)]
struct CpuBalance {
    load: u64,
    interval_ms: u64,
    /// Jiffy of the last look.
    last_balance: u64,
    nr_failed: u32,
}

/// What balancing remembers.
#[derive(Debug)]
pub(super) struct BalanceState {
    cpus: Vec<CpuBalance>,
}

impl BalanceState {
    pub fn new(nr_cpus: u32) -> Self {
        let cpu = CpuBalance {
            load: 0,
            interval_ms: *INTERVAL_MS.start(),
            last_balance: 0,
            nr_failed: 0,
        };
        Self { cpus: vec![cpu; nr_cpus as usize] }
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].load
    }

    /// A task of this weight is queued on `cpu`.
    pub fn add(&mut self, cpu: CpuId, weight: u64) {
        self.cpus[cpu.index()].load += weight;
    }

    /// It is so no more.
    pub fn sub(&mut self, cpu: CpuId, weight: u64) {
        self.cpus[cpu.index()].load -= weight;
    }
}

impl Staircase {
    /// The CPU for waking or new `task`.
    pub(super) fn select_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let allowed = core.task(task).cpus_allowed;
        let is_new = flags.is_fork() && flags.waker.is_none();
        if is_new || !allowed.contains(prev) {
            // What the launcher starts is balanced as at exec.
            return allowed
                .iter_from(prev)
                .min_by_key(|cpu| (self.balance.load(*cpu), core.rq(*cpu).nr_running))
                .expect("affinity was checked to be within the machine");
        }
        if flags.is_fork() {
            return prev;
        }
        let this = flags.this_cpu;
        let pulls = this != prev && allowed.contains(this) && self.wakes_here(core, task, flags);
        let cpu = if pulls { this } else { prev };
        if core.idle_cpu(cpu) {
            return cpu;
        }
        let siblings = self.domains.smt_mask(cpu).and(&allowed);
        siblings.iter().find(|sibling| core.idle_cpu(*sibling)).unwrap_or(cpu)
    }

    /// Whether a woken task comes to the waker's CPU (`wake_affine`).
    fn wakes_here(&self, core: &Core, task: TaskId, flags: WakeFlags) -> bool {
        let prev = core.task(task).cpu;
        let (this, weight) = (flags.this_cpu, self.entry(task).weight);
        let nr_here = u64::from(core.rq(this).nr_running);
        let average = self.balance.load(this).checked_div(nr_here).unwrap_or(weight);
        let load = self.balance.load(prev);
        let leaves = match flags.waker {
            Some(waker) if flags.sync && self.honours_sync => self.entry(waker).weight,
            _ => 0,
        };
        let here = self.balance.load(this).saturating_sub(leaves);
        (here <= load && here + load <= average) || 100 * (here + weight) <= 112 * load
    }

    /// The tick of busy `cpu`: it balances if its time has come, and so do idle CPUs.
    pub(super) fn rebalance_tick(&mut self, core: &mut Core, cpu: CpuId) {
        self.balance_if_due(core, cpu, Activity::Busy);
        let idle_cpus = core.idle_cpus;
        for idle in idle_cpus.iter() {
            if core.idle_cpu(idle) {
                self.balance_if_due(core, idle, Activity::Idle);
            }
        }
    }

    fn balance_if_due(&mut self, core: &mut Core, cpu: CpuId, activity: Activity) {
        let state = &self.balance.cpus[cpu.index()];
        let factor = if activity == Activity::Busy { BUSY_FACTOR } else { 1 };
        let interval = (state.interval_ms * factor * u64::from(core.hz) / 1_000).max(1);
        if core.jiffies() - state.last_balance >= interval {
            self.balance.cpus[cpu.index()].last_balance = core.jiffies();
            self.load_balance(core, cpu, activity);
        }
    }

    /// `cpu` has nothing left to run. Says whether it got something.
    pub(super) fn balance_newly_idle(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        core.nr_cpus() > 1 && self.load_balance(core, cpu, Activity::NewlyIdle)
    }

    /// The CPU to take tasks from, and how much load.
    fn find_busiest(&self, core: &Core, this: CpuId, activity: Activity) -> Option<(CpuId, u64)> {
        let cpus = (0..core.nr_cpus()).map(CpuId);
        let (mut total, mut busiest, mut most) = (0, None, 0);
        for cpu in cpus {
            let load = self.balance.load(cpu);
            total += load;
            if cpu != this && core.rq(cpu).nr_running >= 2 && load > most {
                (busiest, most) = (Some(cpu), load);
            }
        }
        let busiest = busiest?;
        let (average, here) = (total / u64::from(core.nr_cpus()), self.balance.load(this));
        if activity != Activity::Busy && core.rq(this).nr_running == 0 {
            // One task at least, whatever it weighs.
            return Some((busiest, most.saturating_sub(average).min(average - here)));
        }
        let is_enough = here < average && 100 * most > IMBALANCE_PCT * here && most > average;
        is_enough.then(|| (busiest, (most - average).min(average - here)))
    }

    fn load_balance(&mut self, core: &mut Core, this: CpuId, activity: Activity) -> bool {
        let Some((busiest, imbalance)) = self.find_busiest(core, this, activity) else {
            let state = &mut self.balance.cpus[this.index()];
            state.nr_failed = 0;
            state.interval_ms = (state.interval_ms * 2).min(*INTERVAL_MS.end());
            return false;
        };
        let moved = self.move_tasks(core, busiest, this, imbalance, activity);
        let state = &mut self.balance.cpus[this.index()];
        state.interval_ms = *INTERVAL_MS.start();
        if moved {
            state.nr_failed = 0;
        } else if activity != Activity::NewlyIdle {
            state.nr_failed += 1;
        }
        moved
    }

    /// Tasks of `cpu` in the order in which balancing looks at them: expired ones first, in each
    /// array the best list first, from its tail.
    fn movable(&self, cpu: CpuId) -> Vec<TaskId> {
        let mut all = Vec::new();
        let rq = self.rq(cpu);
        let (expired, active) = (Self::lists(cpu, rq.expired()), Self::lists(cpu, rq.active));
        for (lists, owner) in
            [(&self.slots, expired), (&self.rt, cpu), (&self.slots, active), (&self.idle, cpu)]
        {
            let mut list = Vec::new();
            let mut prio = None;
            for task in lists.iter(owner) {
                let here = lists.position(task).map(|(_, prio)| prio);
                if here != prio {
                    all.extend(list.drain(..).rev());
                    prio = here;
                }
                list.push(task);
            }
            all.extend(list.drain(..).rev());
        }
        all
    }

    fn move_tasks(
        &mut self,
        core: &mut Core,
        from: CpuId,
        to: CpuId,
        imbalance: u64,
        activity: Activity,
    ) -> bool {
        let may_be_hot = self.balance.cpus[to.index()].nr_failed > CACHE_NICE_TRIES;
        let needs_one = activity != Activity::Busy && core.rq(to).nr_running == 0;
        let (mut left, mut moved) = (imbalance, false);
        for task in self.movable(from) {
            let entry = *self.entry(task);
            let is_hot = core.now.saturating_sub(entry.last_ran) < CACHE_HOT;
            let may_move = !core.is_running(task)
                && core.task(task).cpus_allowed.contains(to)
                && (activity != Activity::Busy || may_be_hot || !is_hot);
            let fits = entry.weight <= left || (needs_one && !moved);
            if may_move && fits {
                self.pull(core, task, from, to);
                moved = true;
                left = left.saturating_sub(entry.weight);
                if left == 0 || core.rq(from).nr_running < 2 {
                    break;
                }
            }
        }
        moved
    }

    /// Moves waiting `task` from one CPU to another (`pull_task`).
    fn pull(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId) {
        let weight = self.entry(task).weight;
        self.unqueue(task);
        self.balance.sub(from, weight);
        core.sub_nr_running(from, 1);
        core.set_task_cpu(task, to);
        self.queue(to, task);
        self.entry_mut(task).cpu = to;
        self.balance.add(to, weight);
        core.add_nr_running(to, 1);
        let preempts = core
            .rq(to)
            .curr
            .is_none_or(|curr| self.is_active(to, task) && self.prio(task) < self.prio(curr));
        if preempts {
            core.resched_curr(to);
        }
    }
}
