// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moving tasks: which, how much, and what follows from success and failure.
//!
//! Source: Linux 2.6.24 and 2.6.32.67, kernel/sched.c (`load_balance`, `load_balance_newidle`,
//! `balance_tasks`, `can_migrate_task`, `task_hot`, `pull_task`, `active_load_balance`,
//! `update_shares`), sched_fair.c (`load_balance_fair`).

use super::super::Fair;
use super::Idle;
use super::busiest::{LOAD_SCALE, Look, Looker};
use crate::core::Core;
use crate::fair::rbtree::NIL;
use schedlab_model::{CpuId, CpuMask, TaskId};

/// Priority of an idle CPU (MAX_PRIO).
const MAX_PRIO: i32 = 140;
/// Longest interval, in ms, that affinity makes (MAX_PINNED_INTERVAL).
const MAX_PINNED_INTERVAL: u64 = 512;

/// How a look at a domain ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Nothing,
    Moved,
    /// Nothing, but the CPU is not to be taken for idle (-1).
    Stop,
    /// Another CPU of the own group balances this domain.
    OtherCpu,
}

/// A run of moving tasks.
struct Move {
    looker: Looker,
    from: CpuId,
    /// Best priority on the CPU that takes (2.6.24).
    best_prio: i32,
    all_pinned: bool,
}

impl Fair {
    /// Looks at a domain of `cpu` at a tick, and sets when to look again.
    pub(super) fn load_balance(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        position: usize,
        idle: Idle,
    ) -> Outcome {
        let looker = Looker { cpu, position, idle };
        let is_core = self.balance.level(cpu, position).is_core;
        let mut sd_idle = idle != Idle::Not && is_core;
        let mut cpus = core.cpus;
        loop {
            self.update_shares(core, cpu, position);
            let found = match self.find_busiest_group(core, looker, &cpus, &mut sd_idle) {
                Look::OtherCpu => {
                    self.was_balanced(cpu, position, false);
                    return Outcome::OtherCpu;
                }
                Look::Found(group) => {
                    let from = self.find_busiest_queue(core, looker, group, &cpus);
                    from.map(|from| (from, group.imbalance))
                }
                Look::Balanced => None,
            };
            let Some((from, imbalance)) = found else {
                self.was_balanced(cpu, position, false);
                return if is_core && !sd_idle { Outcome::Stop } else { Outcome::Nothing };
            };
            let mut moved = false;
            if core.rq(from).nr_running > 1 {
                let all_pinned;
                (moved, all_pinned) = self.move_tasks(core, looker, from, imbalance);
                if all_pinned {
                    cpus.clear(from);
                    continue;
                }
            }
            if moved {
                self.set_interval(cpu, position, false);
                self.balance.state(cpu, position).nr_balance_failed = 0;
                self.update_shares(core, cpu, position);
                return Outcome::Moved;
            }
            self.balance_failed(core, looker, from);
            return if is_core && !sd_idle { Outcome::Stop } else { Outcome::Nothing };
        }
    }

    /// A domain is in balance, or what runs there may not come.
    fn was_balanced(&mut self, cpu: CpuId, position: usize, is_pinned: bool) {
        let most = self.balance.level(cpu, position).max_interval;
        let state = self.balance.state(cpu, position);
        if !is_pinned {
            state.nr_balance_failed = 0;
        }
        let interval = state.balance_interval;
        if interval < most || (is_pinned && interval < MAX_PINNED_INTERVAL) {
            state.balance_interval *= 2;
        }
    }

    fn set_interval(&mut self, cpu: CpuId, position: usize, pushes: bool) {
        let level = self.balance.level(cpu, position);
        let (least, most) = (level.min_interval, level.max_interval);
        let state = self.balance.state(cpu, position);
        if !pushes {
            state.balance_interval = least;
        } else if state.balance_interval < most {
            state.balance_interval *= 2;
        }
    }

    /// Nothing could be moved. After some failures what runs on `from` is to be pushed.
    fn balance_failed(&mut self, core: &mut Core, looker: Looker, from: CpuId) {
        let Looker { cpu, position, .. } = looker;
        let tries = self.balance.level(cpu, position).cache_nice_tries;
        let state = self.balance.state(cpu, position);
        state.nr_balance_failed += 1;
        let curr = core.rq(from).curr.filter(|_| state.nr_balance_failed > tries + 2);
        let Some(curr) = curr else {
            self.set_interval(cpu, position, false);
            return;
        };
        if !core.task(curr).cpus_allowed.contains(cpu) {
            self.was_balanced(cpu, position, true);
            return;
        }
        state.nr_balance_failed = tries + 1;
        let pushes = !self.balance.is_pushing(from);
        self.set_interval(cpu, position, pushes);
        if pushes {
            self.balance.cpus[from.index()].push_cpu = Some(cpu);
            core.queue_balance_callback(from);
            core.resched_curr(from);
        }
    }

    /// `cpu` is about to become idle and looks at a domain.
    pub(super) fn load_balance_newidle(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        position: usize,
    ) -> Outcome {
        let looker = Looker { cpu, position, idle: Idle::Newly };
        let is_core = self.balance.level(cpu, position).is_core;
        let mut sd_idle = is_core;
        let mut cpus = core.cpus;
        loop {
            self.update_shares(core, cpu, position);
            let look = self.find_busiest_group(core, looker, &cpus, &mut sd_idle);
            let stops = is_core && !sd_idle;
            let found = match look {
                Look::Found(group) => {
                    let from = self.find_busiest_queue(core, looker, group, &cpus);
                    from.map(|from| (from, group.imbalance))
                }
                _ => None,
            };
            let Some((from, imbalance)) = found else {
                if !stops {
                    self.balance.state(cpu, position).nr_balance_failed = 0;
                }
                return if stops { Outcome::Stop } else { Outcome::Nothing };
            };
            if core.rq(from).nr_running > 1 {
                let (moved, all_pinned) = self.move_tasks(core, looker, from, imbalance);
                if all_pinned {
                    cpus.clear(from);
                    continue;
                }
                if moved {
                    self.balance.state(cpu, position).nr_balance_failed = 0;
                    self.update_shares(core, cpu, position);
                    return Outcome::Moved;
                }
            }
            // 2.6.32 stops where there was work and none came, 2.6.24 among threads only.
            return if stops || self.rules.is_later { Outcome::Stop } else { Outcome::Nothing };
        }
    }

    /// Moves up to `most` weight from one CPU to another. Says whether anything came, and whether
    /// all was kept back by affinity.
    fn move_tasks(
        &mut self,
        core: &mut Core,
        looker: Looker,
        from: CpuId,
        most: u64,
    ) -> (bool, bool) {
        let curr = core.rq(looker.cpu).curr;
        let best_prio = curr.map_or(MAX_PRIO, |curr| core.task(curr).prio);
        let mut run = Move { looker, from, best_prio, all_pinned: false };
        let most = most as i64;
        let moved = if self.rules.is_later {
            self.move_by_h_load(core, &mut run, most)
        } else {
            // Real-time tasks first.
            let rt = self.rt.iter_to_balance(from).map(|task| self.task_entity(task));
            let rt: Vec<u32> = rt.take(self.values.nr_migrate as usize + 1).collect();
            let moved = self.move_some(core, &mut run, &rt, most);
            let left = most - moved;
            if left > 0 { moved + self.move_by_group(core, &mut run, left) } else { moved }
        };
        (moved > 0, run.all_pinned)
    }

    /// Group by group, of each at most half of its difference (2.6.24).
    fn move_by_group(&mut self, core: &mut Core, run: &mut Move, most: i64) -> i64 {
        let (to, mut left) = (run.looker.cpu, most);
        // The last group made is the first in the list.
        for group in (0..self.nr_groups()).rev() {
            let (busy, this) = (self.group_queue(group, run.from), self.group_queue(group, to));
            let difference = self.rq(busy).load as i64 - self.rq(this).load as i64;
            if difference <= 0 {
                continue;
            }
            run.best_prio = self.best_prio(core, this);
            left -= self.move_from_queue(core, run, busy, left.min(difference / 2));
            if left <= 0 {
                break;
            }
        }
        most - left
    }

    /// Priority of the first task of a queue.
    fn best_prio(&self, core: &Core, q: u32) -> i32 {
        let rq = self.rq(q);
        let first = if rq.curr == NIL { rq.tree.leftmost } else { rq.curr };
        match first {
            NIL => MAX_PRIO,
            e if self.is_task(e) => core.task(self.entity_task(e)).prio,
            _ => MAX_PRIO,
        }
    }

    /// Group by group, the load of a group counting as what it is of that of its CPU (2.6.32).
    fn move_by_h_load(&mut self, core: &mut Core, run: &mut Move, most: i64) -> i64 {
        self.update_h_load(run.from);
        let mut left = most;
        for group in (0..self.nr_groups()).rev() {
            let q = self.group_queue(group, run.from);
            let rq = self.rq(q);
            let (h_load, weight) = (i128::from(rq.h_load), i128::from(rq.load));
            if rq.task_weight == 0 {
                continue;
            }
            let part = i128::from(left) * weight / (h_load + 1);
            let moved = self.move_from_queue(core, run, q, part as i64);
            if moved == 0 {
                continue;
            }
            left -= (i128::from(moved) * h_load / (weight + 1)) as i64;
            if left < 0 {
                break;
            }
        }
        most - left
    }

    /// Moves tasks of queue `q`, up to `most` of their weight; says how much.
    fn move_from_queue(&mut self, core: &mut Core, run: &mut Move, q: u32, most: i64) -> i64 {
        let candidates = self.candidates(q, self.values.nr_migrate as usize + 1);
        self.move_some(core, run, &candidates, most)
    }

    /// Moves some of `candidates`, up to `most` of their weight; says how much.
    fn move_some(&mut self, core: &mut Core, run: &mut Move, candidates: &[u32], most: i64) -> i64 {
        if most <= 0 {
            run.all_pinned = false;
            return 0;
        }
        run.all_pinned = true;
        let fuzz = if self.rules.is_later { 0 } else { LOAD_SCALE as i64 };
        let mut left = most;
        for &e in candidates {
            let task = self.entity_task(e);
            let weight = self.weight_of(core, task) as i64;
            let prio = core.task(task).prio;
            let is_heavy = weight >> 1 > left + fuzz;
            // Under 2.6.24 a task that would be the best of its new CPU comes though it is heavy.
            let skips = is_heavy && (self.rules.is_later || prio >= run.best_prio);
            if skips || !self.can_migrate(core, run, e) {
                continue;
            }
            self.pull_task(core, run, e);
            left -= weight;
            if left <= 0 {
                break;
            }
            run.best_prio = run.best_prio.min(prio);
        }
        most - left
    }

    /// The first tasks of queue `q` in the order in which balancing looks at them: that of the tree
    /// (2.6.24), or the last queued first, the running one included (2.6.32).
    fn candidates(&self, q: u32, count: usize) -> Vec<u32> {
        let rq = self.rq(q);
        let is_later = self.rules.is_later;
        let first = if is_later { rq.tasks_head } else { rq.tree.leftmost };
        let next = |e: &u32| match is_later {
            true => self.ent(*e).list_next,
            false => rq.tree.next(&self.nodes, *e),
        };
        let exists = |e: &u32| *e != NIL;
        let first = Some(first).filter(exists);
        let all = std::iter::successors(first, |e| Some(next(e)).filter(exists));
        all.filter(|e| self.is_task(*e)).take(count).collect()
    }

    fn can_migrate(&self, core: &Core, run: &mut Move, e: u32) -> bool {
        let Looker { cpu, position, .. } = run.looker;
        let task = self.entity_task(e);
        if !core.task(task).cpus_allowed.contains(cpu) {
            return false;
        }
        run.all_pinned = false;
        if core.is_running(task) {
            return false;
        }
        let failed = self.balance.cpus[cpu.index()].domains[position].nr_balance_failed;
        failed > self.balance.level(cpu, position).cache_nice_tries || !self.is_hot(core, cpu, e)
    }

    /// Whether the cache of its CPU is likely to hold what `e` uses (`task_hot`); `cpu` asks.
    pub(in crate::linux_2_6_24) fn is_hot(&self, core: &Core, cpu: CpuId, e: u32) -> bool {
        let se = self.ent(e);
        if Self::is_rt(core, self.entity_task(e)) {
            return false;
        }
        if self.rules.is_later {
            if se.is_idle {
                return false;
            }
            let rq = self.rq(se.cfs);
            let is_buddy = rq.next == e || rq.last == e;
            let counts = self.values.features.cache_hot_buddy && core.rq(cpu).nr_running > 0;
            if counts && is_buddy {
                return true;
            }
        }
        core.now - se.exec_start < self.values.migration_cost
    }

    fn pull_task(&mut self, core: &mut Core, run: &Move, e: u32) {
        let (task, to) = (self.entity_task(e), run.looker.cpu);
        let is_rt = Self::is_rt(core, task);
        if is_rt {
            self.rt.dequeue(task);
        } else {
            self.dequeue_levels(core.now, run.from, e, false);
        }
        core.sub_nr_running(run.from, 1);
        core.set_task_cpu(task, to);
        let q = self.queue_of(core, task, to);
        self.enter_queue(e, q);
        if is_rt {
            self.rt.enqueue(core, to, task);
        } else {
            self.enqueue_levels(core.now, to, e, false);
        }
        core.add_nr_running(to, 1);
        // What is about to become idle picks anyway.
        if run.looker.idle != Idle::Newly {
            self.check_preempt_any(core, to, task);
        }
    }

    /// The migration thread of `cpu` has taken its place: a task goes to the CPU that asked.
    pub(in crate::linux_2_6_24) fn push_running(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(target) = self.balance.cpus[cpu.index()].push_cpu.take() else { return };
        let position =
            self.balance.domains.iter(target).position(|domain| domain.span.contains(cpu));
        if let Some(position) = position {
            let looker = Looker { cpu: target, position, idle: Idle::AtTick };
            let mut run = Move { looker, from: cpu, best_prio: MAX_PRIO, all_pinned: false };
            self.move_one_task(core, &mut run);
        }
        if core.rq(cpu).nr_running > 0 {
            core.resched_curr(cpu);
        }
    }

    fn move_one_task(&mut self, core: &mut Core, run: &mut Move) {
        let rt: Vec<TaskId> = self.rt.iter_to_balance(run.from).collect();
        for e in rt.into_iter().map(|task| self.task_entity(task)) {
            if self.can_migrate(core, run, e) {
                self.pull_task(core, run, e);
                return;
            }
        }
        for group in (0..self.nr_groups()).rev() {
            let q = self.group_queue(group, run.from);
            for e in self.candidates(q, usize::MAX) {
                if self.can_migrate(core, run, e) {
                    self.pull_task(core, run, e);
                    return;
                }
            }
        }
    }

    /// Spreads the shares of groups over a domain of `cpu`, if that was not done lately (2.6.32).
    pub(super) fn update_shares(&mut self, core: &Core, cpu: CpuId, position: usize) {
        if !self.rules.is_later || self.nr_groups() == 1 {
            return;
        }
        let limit = self.values.shares_ratelimit;
        let state = self.balance.state(cpu, position);
        if state.last_update.is_some_and(|last| core.now - last < limit) {
            return;
        }
        state.last_update = Some(core.now);
        let entry = self.balance.domains.of_cpu(cpu)[position];
        let span: CpuMask = self.balance.domains.domain(entry.domain).span;
        let is_top = self.balance.is_top(cpu, position);
        self.spread_shares(core, &span, is_top);
    }
}
