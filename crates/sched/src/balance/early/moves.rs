// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves waiting tasks, and pushes the running task after failed attempts.
//!
//! A CPU that runs one task has no waiting task to pull, although its core may run two tasks and
//! another core none. After some failures the searching CPU asks the other one's migration thread
//! to give a task away. That thread takes the CPU for a moment. In the model the CPU once picks no
//! task, and gives the task away right after that. 2.6.11 gives tasks to every CPU whose core is
//! idle; later versions give them to the CPU that asked.
//!
//! Source: Linux 2.6.11 and 2.6.22 (`move_tasks`), 2.6.23.17, 2.6.24 and 2.6.32.67
//! (`balance_tasks`), kernel/sched.c, with `can_migrate_task` and `active_load_balance` of each.

use super::versions::Heavy;
use super::{Balancer, Idle, Looker, Runqueues};
use crate::boundary::core::Core;
use schedlab_model::{CpuId, TaskId};

/// Result of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Whether a task moved.
    pub any: bool,
    /// Whether none of the last examined tasks may run here.
    pub all_pinned: bool,
}

/// One series of moves.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The CPU that takes tasks.
    pub looker: Looker,
    /// The CPU that gives tasks away.
    pub from: CpuId,
    /// Maximum number of tasks to move.
    pub most_tasks: u64,
    /// Best priority on the target CPU.
    pub best_prio: i32,
    /// Best priority on the source CPU, while only one task is known to have it (2.6.22).
    pub only_best: Option<i32>,
    /// Whether no examined task may run on the target CPU.
    pub all_pinned: bool,
}

impl Move {
    /// A move to a CPU on which nothing has a better priority than `best_prio`.
    pub const fn new(looker: Looker, from: CpuId, best_prio: i32) -> Self {
        let most_tasks = u64::MAX;
        Self { looker, from, most_tasks, best_prio, only_best: None, all_pinned: false }
    }
}

/// Moves some of `candidates`, up to the weight `most`. Returns the moved weight (`balance_tasks`).
pub fn move_some<R: Runqueues>(
    rqs: &mut R,
    core: &mut Core,
    run: &mut Move,
    candidates: &[TaskId],
    most: i64,
) -> i64 {
    if most <= 0 || run.most_tasks == 0 {
        run.all_pinned = false;
        return 0;
    }
    run.all_pinned = true;
    let mut left = most;
    for &task in candidates {
        let weight = rqs.task_weight(core, task) as i64;
        let prio = rqs.prio(core, task);
        if is_too_heavy(rqs.balancer(), run, weight, prio, left)
            || !can_migrate(rqs, core, run, task)
        {
            run.only_best = run.only_best.filter(|best| *best != prio);
            continue;
        }
        rqs.pull_task(core, task, run);
        run.most_tasks -= 1;
        left = left.saturating_sub(weight);
        if run.most_tasks == 0 || left <= 0 {
            break;
        }
        run.best_prio = run.best_prio.min(prio);
    }
    most.saturating_sub(left)
}

/// Whether a task must not move because of its weight. Except under 2.6.32, a task that would be
/// the best of its new CPU moves nevertheless.
fn is_too_heavy(balancer: &Balancer, run: &Move, weight: i64, prio: i32, left: i64) -> bool {
    let is_worse = prio >= run.best_prio;
    let half = || (weight >> 1) > left.saturating_add(balancer.version.fuzz as i64);
    match balancer.version.heavy {
        Heavy::Never => false,
        Heavy::Whole => weight > left && (is_worse || run.only_best == Some(prio)),
        Heavy::Half => half() && is_worse,
        Heavy::HalfAlways => (weight >> 1) > left,
    }
}

/// Whether waiting `task` may move to the target CPU (`can_migrate_task`).
fn can_migrate<R: Runqueues>(rqs: &R, core: &Core, run: &mut Move, task: TaskId) -> bool {
    let Looker { cpu, position, .. } = run.looker;
    if !core.task(task).cpus_allowed.contains(cpu) {
        return false;
    }
    run.all_pinned = false;
    if core.is_running(task) {
        return false;
    }
    let balancer = rqs.balancer();
    let nr_failed = balancer.state(cpu, position).nr_failed;
    let tries = balancer.level(cpu, position).cache_nice_tries;
    nr_failed > tries || !rqs.is_hot(core, run.looker, task)
}

impl Balancer {
    /// Requests a push of the running task of `from` to `cpu`. Returns false if a push is already
    /// pending.
    pub fn ask_to_push(&mut self, core: &mut Core, from: CpuId, cpu: CpuId) -> bool {
        let push_cpu = &mut self.cpus[from.index()].push_cpu;
        if push_cpu.is_some() {
            return false;
        }
        *push_cpu = Some(cpu);
        self.nr_pushing += 1;
        core.queue_balance_callback(from);
        core.resched_curr(from);
        true
    }

    fn take_push(&mut self, cpu: CpuId) -> Option<CpuId> {
        if self.nr_pushing == 0 {
            return None;
        }
        let target = self.cpus[cpu.index()].push_cpu.take()?;
        self.nr_pushing -= 1;
        Some(target)
    }

    /// CPUs whose cores are idle, nearest first (2.6.11).
    fn idle_targets(&self, core: &Core, cpu: CpuId) -> Vec<CpuId> {
        // The thread that pushes keeps its own core busy.
        let own = self.domains.smt_mask(cpu);
        let mut targets: Vec<CpuId> = Vec::new();
        for position in 0..self.nr_levels(cpu) {
            let looker = Looker { cpu, position, idle: Idle::AtTick };
            let (domain, local) = self.domain_of(looker);
            let (before, from_own) = domain.groups.split_at(local);
            for other in from_own.iter().chain(before).flat_map(|group| group.span.iter()) {
                let is_free = !own.contains(other) && self.core_is_idle(core, other);
                if is_free && !targets.contains(&other) {
                    targets.push(other);
                }
            }
        }
        targets
    }
}

/// Runs the migration thread of `cpu`: moves a task to the CPU that asked (`active_load_balance`).
pub fn push_running<R: Runqueues>(rqs: &mut R, core: &mut Core, cpu: CpuId) {
    let Some(target) = rqs.balancer_mut().take_push(cpu) else { return };
    let targets = match rqs.balancer().version.counts_tasks {
        true => rqs.balancer().idle_targets(core, cpu),
        false => vec![target],
    };
    for target in targets {
        push_one(rqs, core, cpu, target);
    }
    if core.rq(cpu).nr_running > 0 {
        core.resched_curr(cpu);
    }
}

/// Moves the first task of `from` that may run on `target` to it (`move_one_task`).
fn push_one<R: Runqueues>(rqs: &mut R, core: &mut Core, from: CpuId, target: CpuId) {
    let Some(position) = rqs.balancer().position_with(target, from) else { return };
    let looker = Looker { cpu: target, position, idle: Idle::AtTick };
    let mut run = Move::new(looker, from, i32::MAX);
    let candidates = rqs.movable(core, from);
    let found = candidates.into_iter().find(|task| can_migrate(rqs, core, &mut run, *task));
    if let Some(task) = found {
        rqs.pull_task(core, task, &run);
    }
}
