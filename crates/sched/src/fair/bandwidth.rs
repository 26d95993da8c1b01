// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bandwidth control (cpu.max): a group's CPU time in each period is limited.
//!
//! A group with a limit has a pool that a timer refills once in each period. Each of its queues,
//! one per CPU, takes time from the pool in slices and runs on that. A queue that has used up its
//! time and finds the pool empty is throttled. Up to 6.17 the group's entity then leaves the queue
//! above. From 6.18 on each of its tasks leaves when it would be picked, and enters the queue's
//! limbo; under 7.2 the running one leaves as it returns to user mode. The next refill first covers
//! what a queue overran, and lets it run again. When the last entity leaves a queue, all but 1 ms
//! of its time returns to the pool, and other queues may run.
//!
//! Time is charged where running time is accounted, so that a queue overruns by up to a tick.
//!
//! Source: Linux kernel/sched/fair.c (account_cfs_rq_runtime, throttle_cfs_rq, unthrottle_cfs_rq,
//! distribute_cfs_runtime, do_sched_cfs_period_timer, do_sched_cfs_slack_timer) and core.c, 6.1,
//! 6.6, 6.12.63, 6.18.2, 7.2.8. Left out: the doubling of periods that a late timer could not keep
//! (timers are never late here); load averages that do not change while a queue is throttled; and
//! from 6.18 on, on machines without `throttle_ns`, the visit of a throttled task to its CPU: it
//! leaves when it is picked instead of at its return to user mode.

use super::FairClass;
use super::load::Change;
use super::queue::Dequeue;
use super::rbtree::NIL;
use super::rules::{FairBug, Rules, Throttling};
use crate::SchedClass;
use crate::boundary::core::Core;
use crate::boundary::explain::BandwidthStats;
use crate::boundary::flags::EnqueueFlags;
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::workload::{CPU_MAX_PERIOD_NS, CpuMaxWrite};
use schedlab_model::{CgroupId, CgroupSpec, CpuId, CpuMax, Nanos, TaskId};
use std::collections::VecDeque;

/// What a queue keeps when its last entity leaves (min_cfs_rq_runtime).
const KEPT_RUNTIME: i64 = NSEC_PER_MSEC as i64;
/// Time from a return to the pool to its distribution (cfs_bandwidth_slack_period).
const SLACK_PERIOD: Nanos = 5 * NSEC_PER_MSEC;
/// A refill within this time makes a distribution of slack pointless (min_bandwidth_expiration).
const REFILL_SOON: Nanos = 2 * NSEC_PER_MSEC;

/// The purpose of a timer; purpose and group form the token.
const TOKEN_PERIOD: u64 = 0;
const TOKEN_SLACK: u64 = 1;

/// The pool of a group with a limit (`struct cfs_bandwidth`).
#[derive(Debug)]
struct Pool {
    /// `None`: the limit was taken away.
    quota: Option<Nanos>,
    period: Nanos,
    burst: Nanos,
    /// CPU time that queues may take.
    runtime: Nanos,
    /// `runtime` as it was right after the last refill.
    runtime_snap: Nanos,
    /// When the period timer fires, or would have fired.
    expires: Nanos,
    /// Whether `expires` has its first value.
    has_expiry: bool,
    period_active: bool,
    /// Whether no queue took time from the pool in this period so far.
    idle: bool,
    slack_started: bool,
    /// Throttled queues, in the order of throttling.
    throttled: VecDeque<u32>,
    stats: BandwidthStats,
}

impl Pool {
    /// The pool of a group with this limit. A bug divides the burst by `burst_part`. cpu.max was
    /// written before cpu.max.burst, and each write has refilled the pool.
    fn new(max: CpuMax, burst_part: Nanos) -> Self {
        let burst = max.burst_ns / burst_part;
        let runtime = max.quota_ns.saturating_add(burst);
        Self {
            quota: Some(max.quota_ns),
            burst,
            runtime,
            runtime_snap: runtime,
            ..Self::without_limit(max.period_ns)
        }
    }

    /// The pool of a group that never had a limit (init_cfs_bandwidth).
    fn without_limit(period: Nanos) -> Self {
        Self {
            quota: None,
            period,
            burst: 0,
            runtime: 0,
            runtime_snap: 0,
            expires: 0,
            has_expiry: false,
            period_active: false,
            idle: false,
            slack_started: false,
            throttled: VecDeque::new(),
            stats: BandwidthStats::default(),
        }
    }
}

/// State of one queue.
#[derive(Clone, Debug, Default)]
struct QueueState {
    /// CPU time that the queue may use; negative after an overrun.
    remaining: i64,
    throttled: bool,
    throttled_at: Nanos,
    /// Number of throttled queues among this one and those above it.
    throttle_count: u32,
    /// Single throttled tasks, the last one first (6.18).
    limbo: Vec<u32>,
    /// Of the root's queue: the task that visits the CPU before it is throttled, and since when.
    visit: Option<(u32, Nanos)>,
    /// Of the root's queue: the running task that is throttled when it returns to user mode.
    leaves: Option<u32>,
    /// Of the root's queue: whether its class picks a task.
    picks: bool,
}

/// What each queue of a group has after a write of its limit (tg_set_cfs_bandwidth). Below 1 ns, a
/// queue asks the pool for more when a task is queued, and with it a period begins.
fn written_remaining(rules: &Rules) -> i64 {
    let with_nothing =
        rules.throttling == Throttling::Queues || rules.has(FairBug::UnthrottledWithNothing);
    i64::from(!with_nothing)
}

/// Bandwidth control of a run with at least one limit.
#[derive(Debug)]
pub struct Bandwidth {
    slice: Nanos,
    random_offset: bool,
    /// Pools by group.
    pools: Vec<Option<Pool>>,
    /// State by queue.
    queues: Vec<QueueState>,
    /// By group: the group and its descendants, parents first.
    below: Vec<Vec<u32>>,
    /// Task entities that throttle themselves when they next return to user mode, if their group is
    /// throttled then (`sched_throttle_work` of 7.2).
    works: Vec<u32>,
}

impl Bandwidth {
    /// Bandwidth control; `None` if no group has a limit.
    pub fn new(
        rules: &Rules,
        slice: Nanos,
        groups: &[CgroupSpec],
        nr_cpus: u32,
    ) -> Option<Box<Self>> {
        if groups.iter().all(|group| group.cpu_max.is_none()) {
            return None;
        }
        Some(Self::with_pools(rules, slice, groups, nr_cpus))
    }

    /// sched_cfs_bandwidth_slice_us was written: queues take this much next time.
    pub fn set_slice(&mut self, slice: Nanos) {
        self.slice = slice;
    }

    fn with_pools(rules: &Rules, slice: Nanos, groups: &[CgroupSpec], nr_cpus: u32) -> Box<Self> {
        let burst_part = if rules.has(FairBug::BurstDivided) { 1_000 } else { 1 };
        let mut queues = vec![QueueState::default(); groups.len() * nr_cpus as usize];
        for (index, queue) in queues.iter_mut().enumerate() {
            if groups[index / nr_cpus as usize].cpu_max.is_some() {
                queue.remaining = written_remaining(rules);
            }
        }
        let pools = groups.iter().map(|group| Some(Pool::new(group.cpu_max?, burst_part)));
        let mut below: Vec<Vec<u32>> = (0..groups.len() as u32).map(|group| vec![group]).collect();
        for group in 1..groups.len() as u32 {
            let mut above = groups[group as usize].parent;
            loop {
                below[above.index()].push(group);
                if above == CgroupId(0) {
                    break;
                }
                above = groups[above.index()].parent;
            }
        }
        Box::new(Self {
            slice,
            random_offset: rules.random_period_offset,
            pools: pools.collect(),
            queues,
            below,
            works: Vec::new(),
        })
    }

    fn pool(&mut self, group: u32) -> &mut Pool {
        self.pools[group as usize].as_mut().expect("the group has a limit")
    }

    /// Gives queue `q` of `group` time up to `target`, if the pool has it. Returns whether the
    /// queue may run (__assign_cfs_rq_runtime).
    fn assign(&mut self, core: &mut Core, group: u32, q: u32, target: Nanos) -> bool {
        self.start_period(core, group);
        let remaining = &mut self.queues[q as usize].remaining;
        let pool = self.pools[group as usize].as_mut().expect("the group has a limit");
        let amount = pool.runtime.min((target as i64 - *remaining) as u64);
        if amount > 0 {
            pool.runtime -= amount;
            pool.idle = false;
            *remaining += amount as i64;
        }
        *remaining > 0
    }

    /// Starts the period timer if it does not run (start_cfs_bandwidth).
    fn start_period(&mut self, core: &mut Core, group: u32) {
        let random_offset = self.random_offset && !core.aligns_periods;
        let pool = self.pool(group);
        if pool.period_active {
            return;
        }
        pool.period_active = true;
        if !pool.has_expiry {
            pool.has_expiry = true;
            pool.expires = if random_offset { core.random.below(pool.period) } else { 0 };
        }
        // A guest's tasks are woken just before time 0, which then ends a period.
        let is_first = core.aligns_periods && core.now == 0;
        let now = core.hrtimer_now();
        if now >= pool.expires && !is_first {
            pool.expires += ((now - pool.expires) / pool.period + 1) * pool.period;
        }
        core.start_timer(pool.expires, token(TOKEN_PERIOD, group));
    }

    /// Whether a group's next refill is within `within` (runtime_refresh_within).
    fn refills_within(&mut self, now: Nanos, group: u32, within: Nanos) -> bool {
        self.pool(group).expires.saturating_sub(now) < within
    }

    /// Puts the time of an emptied queue back into the pool (return_cfs_rq_runtime).
    fn give_back(&mut self, core: &mut Core, group: u32, q: u32) {
        let slack = self.queues[q as usize].remaining - KEPT_RUNTIME;
        if slack <= 0 {
            return;
        }
        self.queues[q as usize].remaining = KEPT_RUNTIME;
        let slice = self.slice;
        let pool = self.pool(group);
        pool.runtime += slack as u64;
        let helps = pool.runtime > slice && !pool.throttled.is_empty() && !pool.slack_started;
        let now = core.hrtimer_now();
        if helps && !self.refills_within(now, group, SLACK_PERIOD + REFILL_SOON) {
            self.pool(group).slack_started = true;
            core.start_timer(now + SLACK_PERIOD, token(TOKEN_SLACK, group));
        }
    }

    /// Refills the pool (__refill_cfs_bandwidth_runtime).
    fn refill(&mut self, group: u32) {
        let pool = self.pool(group);
        let Some(quota) = pool.quota else { return };
        pool.runtime += quota;
        if pool.runtime_snap > pool.runtime {
            pool.stats.burst_ns += pool.runtime_snap - pool.runtime;
            pool.stats.nr_bursts += 1;
        }
        pool.runtime = pool.runtime.min(quota + pool.burst);
        pool.runtime_snap = pool.runtime;
    }
}

const fn token(kind: u64, group: u32) -> u64 {
    kind << 32 | group as u64
}

impl FairClass {
    fn bw(&mut self) -> &mut Bandwidth {
        self.bandwidth.as_mut().expect("some group has a limit")
    }

    /// Whether queue `q` belongs to a group with a limit of its own.
    fn has_limit(&self, q: u32) -> bool {
        let group = self.rq(q).group as usize;
        let pool = self.bandwidth.as_ref().and_then(|bw| bw.pools[group].as_ref());
        pool.is_some_and(|pool| pool.quota.is_some())
    }

    /// Whether queue `q` is throttled itself (cfs_rq_throttled).
    #[inline]
    pub(super) fn is_queue_throttled(&self, q: u32) -> bool {
        self.bandwidth.as_ref().is_some_and(|bw| bw.queues[q as usize].throttled)
    }

    /// Whether queue `q` or one above it is throttled (throttled_hierarchy).
    #[inline]
    pub(super) fn is_hierarchy_throttled(&self, q: u32) -> bool {
        self.bandwidth.as_ref().is_some_and(|bw| bw.queues[q as usize].throttle_count > 0)
    }

    /// Whether counts stop at queue `q`, because the queues above do not hold its tasks. From 6.18
    /// on the tasks themselves leave.
    #[inline]
    pub(super) fn ends_at(&self, q: u32) -> bool {
        // Usually there is no limit at all, so test that first.
        self.is_queue_throttled(q) && self.rules.throttling == Throttling::Queues
    }

    /// Charges queue `q` for `delta` of running time (account_cfs_rq_runtime).
    #[cold]
    pub(super) fn charge_runtime(&mut self, core: &mut Core, q: u32, delta: Nanos) {
        if !self.has_limit(q) {
            return;
        }
        let (group, cpu, runs) = (self.rq(q).group, CpuId(self.rq(q).cpu), self.rq(q).curr != NIL);
        let runs = runs && !self.rules.has(FairBug::QuotaNotTaken);
        let bw = self.bw();
        let state = &mut bw.queues[q as usize];
        state.remaining -= delta as i64;
        if state.remaining > 0 || state.throttled {
            return;
        }
        let slice = bw.slice;
        if bw.assign(core, group, q, slice) || !runs {
            return;
        }
        if !self.rules.throttles_when_charged {
            // It is picked again, and leaves.
            let by_task = self.rules.throttling == Throttling::Tasks;
            core.work.leaves_itself = by_task && self.rq(q).h_nr_queued == 1;
            core.resched_curr(cpu);
        } else if self.throttle(core, q) {
            self.leaves_on_return(core, cpu);
        }
    }

    /// A queue of the running task of `cpu` has been throttled: the task leaves when it returns to
    /// user mode (task_throttle_setup_work). If the CPU is to reschedule, or does, that comes first
    /// (exit_to_user_mode_loop): the task stays queued, and leaves when it has run again.
    fn leaves_on_return(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(task) = core.rq(cpu).curr else { return };
        let e = self.task_entity(task);
        if self.rq(self.ent(e).cfs).curr != e || !self.is_hierarchy_throttled(self.ent(e).cfs) {
            return;
        }
        self.sets_up_work(e);
        if !self.bw().queues[cpu.index()].picks && core.notify_resume(cpu) {
            self.bw().queues[cpu.index()].leaves = Some(e);
            core.work.leaves_itself = true;
        }
    }

    /// `cpu` reschedules in a system call, before what its running task does as it returns to user
    /// mode.
    #[cold]
    pub(super) fn reschedules_first(&mut self, cpu: CpuId) {
        self.bw().queues[cpu.index()].leaves = None;
    }

    /// Task entity `e` throttles itself when it returns to user mode.
    fn sets_up_work(&mut self, e: u32) {
        let works = &mut self.bw().works;
        if !works.contains(&e) {
            works.push(e);
        }
    }

    /// What task entity `e` was to do when it returns to user mode is done; returns whether there
    /// was anything.
    fn takes_work(&mut self, e: u32) -> bool {
        let works = &mut self.bw().works;
        let nr = works.len();
        works.retain(|other| *other != e);
        works.len() < nr
    }

    /// The class is to pick for `cpu`. The running task may have left before.
    #[cold]
    pub(super) fn begin_pick(&mut self, core: &mut Core, cpu: CpuId) {
        core.work.leaves_itself = false;
        let state = &mut self.bw().queues[cpu.index()];
        state.picks = true;
        let leaves = state.leaves.take().filter(|_| core.rq(cpu).resched_is_notify);
        if let Some(e) = leaves {
            let runs = core.rq(cpu).curr == Some(self.entity_task(e));
            let stays = self.ent(e).on_rq && !self.ent(e).delayed;
            if runs && stays && self.is_held(core, e) {
                self.throttle_task(core, cpu, e);
            }
        }
        if core.throttle_ns > 0 {
            self.end_visit(core, cpu);
        }
    }

    /// The class has picked for `cpu`.
    #[cold]
    pub(super) fn end_pick(&mut self, cpu: CpuId) {
        self.bw().queues[cpu.index()].picks = false;
    }

    /// Whether task entity `e` may not run in user mode.
    fn is_held(&self, core: &Core, e: u32) -> bool {
        self.is_hierarchy_throttled(self.ent(e).cfs) && !core.task(self.entity_task(e)).is_exiting
    }

    /// Whether task entity `e`, which would be picked, has to leave before it runs on in user mode.
    pub(super) fn has_to_leave(&mut self, core: &Core, e: u32) -> bool {
        if !self.rules.throttles_when_charged {
            return self.is_held(core, e);
        }
        if !core.is_running(self.entity_task(e)) && self.is_found_throttled(self.ent(e).cfs) {
            self.sets_up_work(e);
        }
        let is_held = self.is_held(core, e);
        // It visits the CPU with its work.
        let visits = is_held && core.throttle_ns > 0 && !core.is_running(self.entity_task(e));
        let works = if visits { self.bw().works.contains(&e) } else { self.takes_work(e) };
        works && is_held
    }

    /// Whether a task of queue `q`, which is picked, finds a throttled queue on the way up to the
    /// first one that it shares with the task before. The kernel looks no further
    /// (set_next_task_fair of 7.2), so a task may run in spite of a throttled group above.
    fn is_found_throttled(&self, mut q: u32) -> bool {
        loop {
            if self.is_queue_throttled(q) {
                return true;
            }
            let se = self.rq(q).se;
            if self.rq(q).curr != NIL || se == NIL {
                return false;
            }
            q = self.ent(se).cfs;
        }
    }

    /// Throttles queue `q` if it has used up its time; returns whether it is throttled
    /// (check_cfs_rq_runtime).
    #[cold]
    pub(super) fn check_runtime(&mut self, core: &mut Core, q: u32) -> bool {
        if !self.has_limit(q) {
            return false;
        }
        let state = &self.bw().queues[q as usize];
        if state.remaining > 0 {
            return false;
        }
        state.throttled || self.throttle(core, q)
    }

    /// Handles the first entity of queue `q` while none of it runs (check_enqueue_throttle).
    #[cold]
    pub(super) fn check_enqueue_throttle(&mut self, core: &mut Core, q: u32) {
        if !self.has_limit(q) || self.rq(q).curr != NIL || self.is_queue_throttled(q) {
            return;
        }
        self.charge_runtime(core, q, 0);
        if self.bw().queues[q as usize].remaining <= 0 {
            self.throttle(core, q);
        }
    }

    /// Handles the last entity leaving queue `q`.
    #[cold]
    pub(super) fn return_runtime(&mut self, core: &mut Core, q: u32) {
        if self.has_limit(q) {
            let group = self.rq(q).group;
            self.bw().give_back(core, group, q);
        }
    }

    /// Throttles queue `q`, unless the pool has time after all.
    fn throttle(&mut self, core: &mut Core, q: u32) -> bool {
        let (group, cpu, se) = (self.rq(q).group, self.rq(q).cpu, self.rq(q).se);
        let nr_cpus = self.nr_cpus;
        let bw = self.bw();
        if bw.assign(core, group, q, 1) {
            return false;
        }
        bw.pool(group).throttled.push_back(q);
        for below in &bw.below[group as usize] {
            bw.queues[(below * nr_cpus + cpu) as usize].throttle_count += 1;
        }
        let state = &mut bw.queues[q as usize];
        (state.throttled, state.throttled_at) = (true, core.now);
        if self.rules.throttling == Throttling::Queues && se != NIL {
            self.take_group_off(core, q, se);
        }
        true
    }

    /// Takes the entity `se` of throttled queue `q` off the queue above, and the groups that become
    /// empty.
    fn take_group_off(&mut self, core: &mut Core, q: u32, mut se: u32) {
        let rq = self.rq(q);
        let (queued, runnable, idle) =
            (rq.h_nr_queued as i32, rq.h_nr_runnable as i32, rq.h_nr_idle as i32);
        let cpu = CpuId(rq.cpu);
        let mut still_leaves = true;
        while se != NIL {
            if !self.ent(se).on_rq {
                return;
            }
            let above = self.ent(se).cfs;
            if still_leaves {
                let delayed = self.ent(se).delayed;
                self.take_entity_off(core, above, se, delayed);
            } else {
                self.update_load_avg(core.now, above, se, Change::None);
                self.update_runnable(se);
            }
            self.count(above, -queued, -runnable, -idle);
            still_leaves &= self.rq(above).load == 0;
            se = self.ent(se).parent;
        }
        core.sub_nr_running(cpu, queued as u32);
    }

    /// Lets throttled queue `q` run again (unthrottle_cfs_rq).
    fn unthrottle(&mut self, core: &mut Core, q: u32) {
        let (group, cpu, se) = (self.rq(q).group, CpuId(self.rq(q).cpu), self.rq(q).se);
        let nr_cpus = self.nr_cpus;
        let bw = self.bw();
        let state = &mut bw.queues[q as usize];
        state.throttled = false;
        // A tick charges ahead.
        let stood_for = core.now.saturating_sub(state.throttled_at);
        let pool = bw.pool(group);
        pool.stats.throttled_ns += stood_for;
        pool.throttled.retain(|other| *other != q);
        let mut released = Vec::new();
        for below in bw.below[group as usize].iter().rev() {
            let state = &mut bw.queues[(below * nr_cpus + cpu.0) as usize];
            state.throttle_count -= 1;
            if state.throttle_count == 0 {
                released.append(&mut state.limbo);
            }
        }
        core.work.unthrottled = Some(cpu);
        core.work.unthrottled_tasks += released.len() as u32;
        if self.rules.throttling == Throttling::Queues {
            if self.rq(q).load != 0 {
                self.put_group_back(core, q, se);
            }
        } else {
            for e in released {
                self.ent_mut(e).limbo = false;
                let task = self.entity_task(e);
                let levels = SchedClass::tick_levels(self, task);
                core.work.unthrottled_levels += levels.saturating_sub(2);
                self.enqueue_task_fair(core, cpu, task, EnqueueFlags::NONE);
                if self.has_extras {
                    self.hrtick_update(core, cpu, true);
                }
            }
        }
        if core.rq(cpu).curr.is_none() && self.rq(cpu.0).nr_queued > 0 {
            core.resched_curr(cpu);
        }
    }

    /// Puts the entity `se` of queue `q`, which has tasks, back into the queue above.
    fn put_group_back(&mut self, core: &mut Core, q: u32, mut se: u32) {
        let rq = self.rq(q);
        let (queued, runnable, idle) =
            (rq.h_nr_queued as i32, rq.h_nr_runnable as i32, rq.h_nr_idle as i32);
        let cpu = CpuId(rq.cpu);
        let mut joins = true;
        while se != NIL {
            let above = self.ent(se).cfs;
            if joins && self.ent(se).on_rq {
                if self.ent(se).delayed && !self.rules.has(FairBug::UnthrottledOverDelayed) {
                    self.take_entity_off(core, above, se, true);
                } else {
                    joins = false;
                }
            }
            if joins {
                self.put_back_entity(core, above, se);
            } else {
                self.update_load_avg(core.now, above, se, Change::None);
                self.update_runnable(se);
            }
            self.count(above, queued, runnable, idle);
            if self.is_queue_throttled(above) {
                return;
            }
            se = self.ent(se).parent;
        }
        core.add_nr_running(cpu, queued as u32);
    }

    /// Gives throttled queues of `group` the time that they need, in order
    /// (distribute_cfs_runtime).
    fn distribute(&mut self, core: &mut Core, group: u32) {
        let queues: Vec<u32> = self.bw().pool(group).throttled.iter().copied().collect();
        let least = i64::from(!self.rules.has(FairBug::UnthrottledWithNothing));
        for q in queues {
            if self.rules.throttles_when_charged && self.rq(q).curr != NIL {
                self.update_curr(core, q);
            }
            let bw = self.bw();
            let pool = bw.pools[group as usize].as_mut().expect("the group has a limit");
            if pool.runtime == 0 {
                return;
            }
            let remaining = &mut bw.queues[q as usize].remaining;
            let amount = pool.runtime.min((least - *remaining) as u64);
            pool.runtime -= amount;
            *remaining += amount as i64;
            if *remaining >= least && !self.spends_at_once(core, q, least) {
                let remaining = self.bw().queues[q as usize].remaining;
                self.note_unthrottled(q, remaining);
                self.unthrottle(core, q);
            }
        }
    }

    /// Whether queue `q`, whose debt has been paid, is in debt again, since its task has yet to
    /// leave the CPU and is charged up to now. It then stays throttled to the next refill
    /// (`unthrottle_cfs_rq` of 7.2).
    fn spends_at_once(&mut self, core: &mut Core, q: u32, least: i64) -> bool {
        if !self.rules.throttles_when_charged || self.rq(q).curr == NIL {
            return false;
        }
        self.update_curr_ahead(core, q);
        self.bw().queues[q as usize].remaining < least
    }

    /// Handles a timer of a group.
    pub(super) fn bandwidth_timer(&mut self, core: &mut Core, token: u64) {
        let group = token as u32;
        if token >> 32 == TOKEN_PERIOD {
            self.period_timer(core, group);
        } else {
            self.slack_timer(core, group);
        }
    }

    /// Begins a period of `group` (do_sched_cfs_period_timer).
    fn period_timer(&mut self, core: &mut Core, group: u32) {
        let pool = self.bw().pool(group);
        if pool.quota.is_none() {
            pool.expires += pool.period;
            pool.period_active = false;
            return;
        }
        let before = self.bw().pool(group).runtime;
        self.bw().refill(group);
        let after = self.bw().pool(group).runtime;
        self.note_refilled(group, before, after);
        let bw = self.bw();
        let pool = bw.pool(group);
        pool.expires += pool.period;
        let expires = pool.expires;
        pool.stats.nr_periods += 1;
        if pool.throttled.is_empty() {
            if pool.idle {
                pool.period_active = false;
                return;
            }
            pool.idle = true;
        } else {
            pool.stats.nr_throttled += 1;
            self.distribute(core, group);
            self.bw().pool(group).idle = false;
        }
        core.start_timer(expires, self::token(TOKEN_PERIOD, group));
    }

    /// Distributes the time that emptied queues returned (do_sched_cfs_slack_timer).
    fn slack_timer(&mut self, core: &mut Core, group: u32) {
        let bw = self.bw();
        let slice = bw.slice;
        let refills = bw.refills_within(core.now, group, REFILL_SOON);
        let pool = bw.pool(group);
        pool.slack_started = false;
        if !refills && pool.quota.is_some() && pool.runtime > slice {
            self.distribute(core, group);
        }
    }

    /// cpu.max or cpu.max.burst of `group` was written (tg_set_cfs_bandwidth). The pool is refilled
    /// at once. Every queue of the group gives up what it had and may run again. A period that has
    /// begun ends when it was to end; the next has the new length.
    pub(super) fn set_bandwidth(&mut self, core: &mut Core, group: u32, write: &CpuMaxWrite) {
        if self.bandwidth.is_none() {
            let slice = self.tunables.bandwidth_slice_ns;
            let groups: Vec<CgroupSpec> = core
                .cgroups
                .iter()
                .map(|spec| CgroupSpec { cpu_max: None, ..spec.clone() })
                .collect();
            let made = Bandwidth::with_pools(&self.rules, slice, &groups, self.nr_cpus);
            self.bandwidth = Some(made);
            (self.has_extras, self.is_plain) = (true, false);
        }
        let divides_burst = self.rules.has(FairBug::BurstDivided) && !write.is_burst;
        let bw = self.bw();
        let unlimited = || Pool::without_limit(CPU_MAX_PERIOD_NS);
        let pool = bw.pools[group as usize].get_or_insert_with(unlimited);
        pool.quota = write.quota_ns;
        pool.period = write.period_ns;
        pool.burst = if divides_burst { pool.burst / 1_000 } else { write.burst_ns };
        bw.refill(group);
        if write.quota_ns.is_some() {
            bw.start_period(core, group);
        }
        let remaining = written_remaining(&self.rules);
        for cpu in 0..self.nr_cpus {
            let q = group * self.nr_cpus + cpu;
            self.bw().queues[q as usize].remaining = remaining;
            if self.is_queue_throttled(q) {
                self.unthrottle(core, q);
            }
        }
    }

    /// Whether `task`, queued in queue `q` on `cpu`, enters limbo instead (6.18).
    #[inline]
    pub(super) fn goes_to_limbo(&self, core: &Core, task: TaskId, q: u32) -> bool {
        self.is_hierarchy_throttled(q)
            && self.rules.throttling == Throttling::Tasks
            && !core.is_running(task)
            && !core.task(task).is_exiting
    }

    /// Moves task entity `e` to the limbo of its queue; it is then on no queue.
    #[cold]
    pub(super) fn add_to_limbo(&mut self, e: u32) {
        let q = self.ent(e).cfs;
        self.ent_mut(e).limbo = true;
        self.bw().queues[q as usize].limbo.insert(0, e);
    }

    /// Takes task entity `e` out of limbo.
    #[cold]
    pub(super) fn leave_limbo(&mut self, e: u32) {
        let q = self.ent(e).cfs;
        self.ent_mut(e).limbo = false;
        self.bw().queues[q as usize].limbo.retain(|other| *other != e);
    }

    /// Moves task entity `e`, which would be picked but may not run, to limbo (6.18,
    /// throttle_cfs_rq_work).
    #[cold]
    pub(super) fn throttle_task(&mut self, core: &mut Core, cpu: CpuId, e: u32) {
        self.takes_work(e);
        self.util_est_dequeue(cpu, e, true);
        self.dequeue_entities(core, cpu, e, Dequeue::throttle(false));
        self.add_to_limbo(e);
    }

    /// Task entity `e`, whose group has used its quota, is picked for a visit to `cpu`.
    pub(super) fn begin_visit(&mut self, core: &Core, cpu: CpuId, e: u32) {
        self.bw().queues[cpu.index()].visit = Some((e, core.now));
    }

    /// Throttles the running task of `cpu` if its visit is over, whichever is picked next: it does
    /// that itself as it returns to user mode.
    fn end_visit(&mut self, core: &mut Core, cpu: CpuId) {
        let Some((e, since)) = self.bw().queues[cpu.index()].visit.take() else { return };
        let task = self.entity_task(e);
        let is_over = core.now >= since.saturating_add(core.throttle_ns);
        let visits = is_over && core.rq(cpu).curr == Some(task) && self.ent(e).on_rq;
        let ends = visits && self.is_hierarchy_throttled(self.ent(e).cfs);
        if ends {
            self.throttle_task(core, cpu, e);
        }
    }

    /// The counters of `group`, if it has a limit.
    pub(super) fn stats_of(&self, now: Nanos, group: CgroupId) -> Option<BandwidthStats> {
        let bw = self.bandwidth.as_ref()?;
        let pool = bw.pools.get(group.index())?.as_ref()?;
        let since = |q: &u32| now.saturating_sub(bw.queues[*q as usize].throttled_at);
        let under_way: Nanos = pool.throttled.iter().map(since).sum();
        Some(BandwidthStats { throttled_ns: pool.stats.throttled_ns + under_way, ..pool.stats })
    }

    /// Whether `cpu` has throttled tasks.
    pub(super) fn holds_back(&self, cpu: CpuId) -> bool {
        let Some(bw) = self.bandwidth.as_ref() else { return false };
        let of_cpu = bw.queues.iter().zip(&self.cfs).filter(|(_, rq)| rq.cpu == cpu.0);
        let mut held = of_cpu.filter(|(state, _)| state.throttle_count > 0);
        held.any(|(state, rq)| rq.nr_queued > 0 || !state.limbo.is_empty())
    }

    /// CPU time that queue `q` may use before it needs the pool, and the time in the pool.
    pub(super) fn runtime_left(&self, q: u32) -> Option<(i64, Nanos)> {
        let bw = self.bandwidth.as_ref()?;
        let pool = bw.pools[self.rq(q).group as usize].as_ref()?;
        pool.quota?;
        Some((bw.queues[q as usize].remaining, pool.runtime))
    }
}
