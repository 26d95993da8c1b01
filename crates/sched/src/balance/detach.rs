// SPDX-License-Identifier: MIT OR Apache-2.0
//! One attempt to balance a domain: which tasks move, and what follows from a failure.
//!
//! Source: Linux kernel/sched/fair.c (load_balance, should_we_balance, detach_tasks,
//! can_migrate_task, task_hot, need_active_balance, active_load_balance_cpu_stop). Newly idle CPUs
//! stop after one task, as kernels built with CONFIG_PREEMPTION (PREEMPT_DYNAMIC included) do.

use super::busiest::MigrationType;
use super::{Balancer, FairQueues};
use crate::boundary::core::Core;
use crate::boundary::domains::Domain;
use crate::boundary::explain::{Fact, StepKind};
use schedlab_model::{CpuId, CpuMask, Policy, TaskId};

/// Longest interval (ms) between attempts that fail because all tasks are pinned.
const MAX_PINNED_INTERVAL: u64 = 512;

/// With LB_MIN, a task with less load than this does not move until an attempt has failed.
const SMALL_LOAD: u64 = 16;

/// The state of the balancing CPU (`enum cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    Busy,
    Idle,
    NewlyIdle,
}

/// An attempt (`struct lb_env`).
#[derive(Debug)]
pub(super) struct Attempt {
    /// CPU that balances.
    pub this_cpu: CpuId,
    /// CPU that receives.
    pub dst: CpuId,
    /// Position of the domain among those of `this_cpu`, its number, and the local group.
    pub position: usize,
    pub domain: u32,
    pub local_group: usize,
    pub idle: Activity,
    /// CPUs that take part.
    pub cpus: CpuMask,
    /// Whether the domain's kept sums are valid.
    pub has_sums: bool,
    /// Whether the attempt leaves out some CPU of the domain.
    pub has_left_out: bool,
    pub kind: MigrationType,
    /// Amount still to be moved.
    pub imbalance: i64,
    all_pinned: bool,
    some_pinned: bool,
    /// Another CPU of the local group, for a task that may not use `dst` but may use this CPU.
    new_dst: Option<CpuId>,
    /// Whether the source's running task was stopped for this attempt.
    active: bool,
}

impl Attempt {
    pub fn is_idle(&self) -> bool {
        self.idle != Activity::Busy
    }

    /// Whether this attempt can use the kept sums.
    pub fn has_kept(&self) -> bool {
        self.has_sums && !self.has_left_out
    }

    pub fn is_newly_idle(&self) -> bool {
        self.idle == Activity::NewlyIdle
    }
}

/// Result of pulling from the busiest CPU.
enum Pull {
    Moved,
    Nothing,
    /// All tasks of the source are pinned. `true`: there are other sources.
    AllPinned(bool),
}

impl Balancer {
    pub(super) fn attempt(&self, cpu: CpuId, position: usize, idle: Activity) -> Attempt {
        let entry = self.domains.of_cpu(cpu)[position];
        Attempt {
            this_cpu: cpu,
            dst: cpu,
            position,
            domain: entry.domain,
            local_group: entry.local_group as usize,
            idle,
            cpus: self.domains.domain(entry.domain).span,
            has_sums: false,
            has_left_out: false,
            kind: MigrationType::Load,
            imbalance: 0,
            all_pinned: false,
            some_pinned: false,
            new_dst: None,
            active: false,
        }
    }

    /// Balances the domain at `position` of `cpu`. Returns `None` if another CPU of its group
    /// should do it, otherwise whether tasks moved.
    pub(super) fn load_balance(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        cpu: CpuId,
        position: usize,
        idle: Activity,
    ) -> Option<bool> {
        if idle == Activity::NewlyIdle && self.finds_nobody(core, fair, cpu) {
            self.cpus[cpu.index()].domains[position].nr_balance_failed = 0;
            return Some(false);
        }
        let mut attempt = self.attempt(cpu, position, idle);
        if core.tracks_touched() {
            attempt.has_sums = self.refresh_sums(core, fair, attempt.domain);
        }
        loop {
            if !self.should_we_balance(core, &attempt, attempt.dst) {
                self.balanced(&attempt);
                return None;
            }
            self.note(StepKind::Balances, cpu, || self.nr_balancing(core, &attempt));
            let source = self
                .find_busiest_group(core, fair, &mut attempt)
                .and_then(|group| self.find_busiest_queue(core, fair, &attempt, group));
            let Some(src) = source else {
                self.balanced(&attempt);
                return Some(false);
            };
            match self.pull_from(core, fair, &mut attempt, src) {
                Pull::AllPinned(true) => {}
                Pull::AllPinned(false) => {
                    self.domain_state(&attempt).nr_balance_failed = 0;
                    self.lengthen_interval(&attempt);
                    return Some(false);
                }
                Pull::Moved => {
                    self.domain_state(&attempt).nr_balance_failed = 0;
                    self.shorten_interval(&attempt);
                    return Some(true);
                }
                Pull::Nothing => {
                    self.failed(core, fair, &mut attempt, src);
                    return Some(false);
                }
            }
        }
    }

    fn domain_state(&mut self, attempt: &Attempt) -> &mut super::DomainState {
        &mut self.cpus[attempt.this_cpu.index()].domains[attempt.position]
    }

    fn nr_balance_failed(&self, attempt: &Attempt) -> u32 {
        self.cpus[attempt.this_cpu.index()].domains[attempt.position].nr_balance_failed
    }

    /// Whether `dst` is the CPU of its group that should balance.
    fn should_we_balance(&self, core: &Core, attempt: &Attempt, dst: CpuId) -> bool {
        if !attempt.cpus.contains(dst) {
            return false;
        }
        if attempt.is_newly_idle() {
            return core.rq(dst).nr_running == 0;
        }
        let domain = self.domains.domain(attempt.domain);
        let group = &domain.groups[attempt.local_group];
        let members = group.span.and(&attempt.cpus);
        let by_core = self.options.rules.by_core && !domain.is_smt();
        let mut idle_thread = None;
        for cpu in members.iter().filter(|cpu| core.idle_cpu(*cpu)) {
            if !by_core || self.is_core_idle(core, cpu) {
                return cpu == dst;
            }
            idle_thread.get_or_insert(cpu);
        }
        if self.options.rules.two_balance && idle_thread == Some(dst) {
            return true;
        }
        let idle_thread = idle_thread.filter(|_| !self.options.rules.two_balance);
        idle_thread.or(group.span.first_cpu()) == Some(dst)
    }

    /// How many CPUs of the group should balance now, of those that do not go idle just now.
    fn nr_balancing(&self, core: &Core, attempt: &Attempt) -> Vec<Fact> {
        if attempt.is_newly_idle() {
            return vec![Fact::number("passing", 1)];
        }
        let group = &self.domains.domain(attempt.domain).groups[attempt.local_group];
        let passes = |dst: &CpuId| self.should_we_balance(core, attempt, *dst);
        vec![Fact::number("passing", group.span.iter().filter(passes).count())]
    }

    /// Moves tasks from `src` up to the amount.
    fn pull_from(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        attempt: &mut Attempt,
        src: CpuId,
    ) -> Pull {
        attempt.all_pinned = true;
        if core.rq(src).nr_running <= 1 {
            attempt.all_pinned = false;
            return Pull::Nothing;
        }
        let mut moved = 0;
        loop {
            moved += self.detach_tasks(core, fair, attempt, src);
            match attempt.new_dst.take() {
                // Tasks that may not use this CPU may use another one of its group.
                Some(cpu) if attempt.imbalance > 0 => {
                    attempt.cpus.clear(attempt.dst);
                    attempt.has_left_out = true;
                    attempt.dst = cpu;
                }
                _ => break,
            }
        }
        if attempt.some_pinned && attempt.imbalance > 0 {
            self.set_parent_imbalance(attempt, true);
        }
        if attempt.all_pinned {
            attempt.cpus.clear(src);
            attempt.has_left_out = true;
            let domain = self.domains.domain(attempt.domain);
            let local = &domain.groups[attempt.local_group].span;
            return Pull::AllPinned(!attempt.cpus.and_not(local).is_empty());
        }
        if moved > 0 { Pull::Moved } else { Pull::Nothing }
    }

    fn detach_tasks(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        attempt: &mut Attempt,
        src: CpuId,
    ) -> usize {
        let nr_running = core.rq(src).nr_running;
        if nr_running <= 1 {
            attempt.all_pinned = false;
            return 0;
        }
        let failed = self.nr_balance_failed(attempt);
        let few = self.options.nr_migrate.min(nr_running);
        let mut detached = Vec::new();
        let mut examined = 0;
        while attempt.imbalance > 0
            && (!attempt.is_idle() || core.rq(src).nr_running > 1)
            && (examined < few || (self.options.rules.walks_pinned && attempt.all_pinned))
            && examined < nr_running
        {
            let Some(task) = fair.tasks_tail(src) else { break };
            examined += 1;
            let size = match attempt.kind {
                MigrationType::Load => fair.task_h_load(task).max(1),
                MigrationType::Util => fair.task_util(task),
                MigrationType::Task => 1,
            };
            let relaxes = attempt.kind == MigrationType::Load || self.options.rules.relaxes_util;
            let bound = if relaxes { size >> failed.min(63) } else { size };
            let is_small = attempt.kind == MigrationType::Load && size < SMALL_LOAD && failed == 0;
            if !self.can_migrate(core, fair, attempt, task, src)
                || (is_small && self.options.features.lb_min)
                || (attempt.kind != MigrationType::Task && bound as i64 > attempt.imbalance)
            {
                fair.tasks_move_to_head(task);
                continue;
            }
            fair.detach_task(core, task, src, attempt.dst);
            attempt.imbalance -= size as i64;
            detached.push(task);
            if attempt.is_newly_idle() {
                break;
            }
        }
        self.note(StepKind::Examined, src, || {
            let limit = self.options.nr_migrate;
            vec![Fact::number("examined", examined), Fact::number("limit", limit)]
        });
        // Reverse order, as in the kernel's list.
        for task in detached.iter().rev() {
            self.attach(core, fair, attempt, *task);
        }
        detached.len()
    }

    fn attach(
        &mut self,
        core: &mut Core,
        fair: &mut impl FairQueues,
        attempt: &Attempt,
        task: TaskId,
    ) {
        let picks_next = attempt.is_newly_idle() && attempt.dst == attempt.this_cpu;
        fair.attach_task(core, task, attempt.dst, !picks_next);
        self.task_queued(core, attempt.dst);
    }

    fn can_migrate(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &mut Attempt,
        task: TaskId,
        src: CpuId,
    ) -> bool {
        if self.options.rules.leaves_delayed
            && core.task(task).sched_delayed
            && attempt.kind != MigrationType::Load
        {
            return false;
        }
        if fair.is_throttled_on(core, task, src) || fair.is_throttled_on(core, task, attempt.dst) {
            return false;
        }
        let allowed = &core.task(task).cpus_allowed;
        let domain = self.domains.domain(attempt.domain);
        if !allowed.contains(attempt.dst) {
            attempt.some_pinned = true;
            if !attempt.is_newly_idle() && attempt.new_dst.is_none() && !attempt.active {
                let local = &domain.groups[attempt.local_group].span;
                attempt.new_dst = local.and(&attempt.cpus).and(allowed).first_cpu();
            }
            return false;
        }
        attempt.all_pinned = false;
        if core.rq(src).curr == Some(task) {
            return false;
        }
        attempt.active
            || self.nr_balance_failed(attempt) > domain.cache_nice_tries
            || !self.is_cache_hot(core, fair, attempt, domain, task)
    }

    fn is_cache_hot(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        domain: &Domain,
        task: TaskId,
    ) -> bool {
        if core.task(task).attr.policy == Policy::Idle || domain.is_smt() {
            return false;
        }
        let buddies = self.options.features.cache_hot_buddy && core.rq(attempt.dst).nr_running > 0;
        let since = core.now.saturating_sub(fair.exec_start(task));
        (buddies && fair.is_buddy(task)) || since < self.options.migration_cost
    }

    /// Handles an attempt that had a source but moved nothing.
    fn failed(
        &mut self,
        core: &mut Core,
        fair: &impl FairQueues,
        attempt: &mut Attempt,
        src: CpuId,
    ) {
        if !attempt.is_newly_idle() {
            self.domain_state(attempt).nr_balance_failed += 1;
        }
        if self.needs_active_balance(core, fair, attempt, src) {
            let Some(curr) = core.rq(src).curr else { return };
            if !core.task(curr).cpus_allowed.contains(attempt.this_cpu) {
                self.lengthen_interval(attempt);
                return;
            }
            attempt.all_pinned = false;
            // A stack may have a class above the fair one for SCHED_OTHER.
            let fair_runs = core.task(curr).class == core.class_of(Policy::Batch);
            if self.cpus[src.index()].push_cpu.is_none() && fair_runs {
                self.cpus[src.index()].push_cpu = Some(attempt.this_cpu);
                core.queue_balance_callback(src);
                core.resched_curr(src);
            }
        }
        self.shorten_interval(attempt);
    }

    fn needs_active_balance(
        &self,
        core: &Core,
        fair: &impl FairQueues,
        attempt: &Attempt,
        src: CpuId,
    ) -> bool {
        let domain = self.domains.domain(attempt.domain);
        let tries = domain.cache_nice_tries + 2;
        if attempt.kind == MigrationType::Task && self.nr_balance_failed(attempt) > tries {
            return true;
        }
        let pct = domain.imbalance_pct;
        attempt.is_idle()
            && fair.h_nr_running(src) == 1
            && self.is_capacity_reduced(core, src, pct)
            && self.capacity_of(core, src) * pct < self.capacity_of(core, attempt.dst) * 100
    }

    /// Does the stopper thread's work on `cpu`, whose running task must be pushed. That task no
    /// longer runs, so it or another one moves to the CPU that requested this.
    pub fn push_running(&mut self, core: &mut Core, fair: &mut impl FairQueues, cpu: CpuId) {
        let Some(target) = self.cpus[cpu.index()].push_cpu.take() else { return };
        let position = self.domains.iter(target).position(|domain| domain.span.contains(cpu));
        if let Some(position) = position {
            let mut attempt = self.attempt(target, position, Activity::Idle);
            attempt.active = true;
            let mut candidate = fair.tasks_tail(cpu);
            while let Some(task) = candidate {
                candidate = fair.tasks_before(task);
                if self.can_migrate(core, fair, &mut attempt, task, cpu) {
                    fair.detach_task(core, task, cpu, target);
                    self.attach(core, fair, &attempt, task);
                    self.domain_state(&attempt).nr_balance_failed = 0;
                    break;
                }
            }
        }
        if core.rq(cpu).nr_running > 0 {
            core.resched_curr(cpu);
        }
    }

    /// Marks the group in the domain above as unbalanced because of affinity, or clears the mark.
    fn set_parent_imbalance(&mut self, attempt: &Attempt, value: bool) {
        if let Some(parent) = self.domains.of_cpu(attempt.this_cpu).get(attempt.position + 1) {
            let domain = parent.domain as usize;
            let flag = &mut self.imbalanced[domain][parent.local_group as usize];
            let nr_set = &mut self.nr_imbalanced[domain];
            *nr_set = *nr_set + u32::from(value) - u32::from(*flag);
            *flag = value;
        }
    }

    fn balanced(&mut self, attempt: &Attempt) {
        if !attempt.all_pinned {
            self.set_parent_imbalance(attempt, false);
        }
        self.domain_state(attempt).nr_balance_failed = 0;
        self.lengthen_interval(attempt);
    }

    fn shorten_interval(&mut self, attempt: &Attempt) {
        let min = self.domains.domain(attempt.domain).min_interval_ms();
        self.domain_state(attempt).balance_interval = min;
    }

    fn lengthen_interval(&mut self, attempt: &Attempt) {
        let max = self.domains.domain(attempt.domain).max_interval_ms();
        let (newly_idle, pinned) = (attempt.is_newly_idle(), attempt.all_pinned);
        let state = self.domain_state(attempt);
        let interval = state.balance_interval;
        if !newly_idle && (interval < max || (pinned && interval < MAX_PINNED_INTERVAL)) {
            state.balance_interval *= 2;
        }
    }
}
