// SPDX-License-Identifier: MIT OR Apache-2.0
//! The accounts: fair clock, wait_runtime, the bonus of sleepers, and keys.
//!
//! Source: Linux 2.6.23.17, kernel/sched_fair.c (`update_curr`, `update_stats_enqueue`,
//! `update_stats_wait_end`, `enqueue_sleeper`, `niced_granularity`), on a 64-bit machine.

use super::entity::{CfsRq, Class, Entity, Rest};
use super::rules::{FAIR_SLEEPERS, Rules, SLEEPER_AVG, SLEEPER_LOAD_AVG, Values};
use crate::fair::rbtree::{NIL, Node};
use crate::fair::wmult::{LoadWeight, NICE_0_LOAD, NICE_0_SHIFT, WMULT_SHIFT};
use crate::fair::wmult::{calc_delta_fair, calc_delta_mine};
use schedlab_model::{CpuId, Nanos, TaskId};

/// Maximum number of ticks skipped at once.
const QUIET_TICKS_MAX: u64 = 63;

/// The fair class.
#[derive(Debug)]
pub struct Fair {
    /// The rules of the version.
    pub rules: Rules,
    /// Tunables.
    pub values: Values,
    /// Queues by CPU.
    pub cfs: Vec<CfsRq>,
    /// Entities by task.
    pub entities: Vec<Entity>,
    /// Nodes in the trees, with the keys, by task.
    pub nodes: Vec<Node>,
    /// Rests by task, only with a `sched_stat_granularity`.
    rests: Vec<Rest>,
}

impl Fair {
    /// Empty queues.
    pub fn new(rules: Rules, values: Values, nr_cpus: u32) -> Self {
        Self {
            rules,
            values,
            cfs: vec![CfsRq::EMPTY; nr_cpus as usize],
            entities: Vec::new(),
            nodes: Vec::new(),
            rests: Vec::new(),
        }
    }

    /// Adds a task, the next one by id.
    pub fn add_task(&mut self, entity: Entity) {
        self.entities.push(entity);
        self.nodes.push(Node::NEW);
        if self.values.stat_granularity > 0 {
            self.rests.push(Rest::default());
        }
    }

    /// A task.
    #[inline]
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.entities[task.index()]
    }

    /// Its key in the tree.
    #[inline]
    pub fn key(&self, task: TaskId) -> i64 {
        self.nodes[task.index()].key as i64
    }

    /// Adds `delta` to a task's account, within the limit.
    #[inline]
    fn add_wait_runtime(&mut self, task: TaskId, delta: i64) {
        let limit = self.values.runtime_limit;
        let entity = &mut self.entities[task.index()];
        entity.wait_runtime = (entity.wait_runtime + delta).clamp(-limit, limit);
    }

    /// Charges running `curr` for the time since the last call, and advances the fair clock.
    #[inline]
    pub fn update_curr(&mut self, cpu: CpuId, curr: Option<TaskId>, now: Nanos) {
        let Some(curr) = curr.filter(|curr| self.entity(*curr).class == Class::Fair) else {
            return;
        };
        let rq = &mut self.cfs[cpu.index()];
        let mut delta = now - rq.exec_start;
        rq.exec_start = now;
        if self.values.stat_granularity > 0 {
            let rest = &mut self.rests[curr.index()].exec;
            *rest += delta;
            if *rest <= self.values.stat_granularity {
                return;
            }
            delta = std::mem::take(rest);
        }
        if delta > 0 {
            self.charge(cpu, curr, delta);
        }
    }

    fn charge(&mut self, cpu: CpuId, curr: TaskId, delta_exec: Nanos) {
        let entity = &mut self.entities[curr.index()];
        entity.ran += delta_exec;
        let rq = &mut self.cfs[cpu.index()];
        if rq.load.weight == 0 {
            return;
        }
        let (load, weight) = (rq.load(), u64::from(entity.weight));
        let delta_fair = calc_delta_fair(delta_exec, load);
        let mut delta_mine = calc_delta_mine(delta_exec, weight, load) as i64;
        if rq.sleeper_bonus > self.values.min_granularity {
            // The running tasks pay for the credit of sleepers.
            let paid = if self.rules.pays_bonus_by_share {
                calc_delta_mine(rq.sleeper_bonus, weight, load).min(rq.sleeper_bonus)
            } else {
                let most = self.values.runtime_limit - entity.wait_runtime;
                (delta_mine as u64).min(rq.sleeper_bonus).min(most as u64)
            };
            rq.sleeper_bonus -= paid;
            delta_mine -= paid as i64;
        }
        rq.fair_clock = rq.fair_clock.wrapping_add(delta_fair);
        self.add_wait_runtime(curr, delta_mine - delta_exec as i64);
    }

    /// CPU time (ns) that `delta` of the fair clock is worth to a task.
    #[inline]
    fn weighted(entity: &Entity, delta: u64) -> u64 {
        match u64::from(entity.weight) {
            NICE_0_LOAD => delta,
            weight => delta.wrapping_mul(weight) >> NICE_0_SHIFT,
        }
    }

    /// How far `fair_clock` has advanced since `since`, at most two limits.
    #[inline]
    fn passed(&self, cpu: CpuId, since: u64) -> u64 {
        let delta = self.cfs[cpu.index()].fair_clock.wrapping_sub(since);
        delta.min(2 * self.values.runtime_limit as u64)
    }

    /// Starts a wait of `task`.
    #[inline]
    pub fn wait_start(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].wait_start_fair = self.cfs[cpu.index()].fair_clock;
    }

    /// Ends a wait of `task`: it is owed its fair share of the time waited.
    #[inline]
    pub fn wait_end(&mut self, cpu: CpuId, task: TaskId) {
        let since = self.entity(task).wait_start_fair;
        if since == 0 && self.rules.guards_wait {
            return;
        }
        let mut delta = self.passed(cpu, since);
        self.entities[task.index()].wait_start_fair = 0;
        if self.values.stat_granularity > 0 {
            let rest = &mut self.rests[task.index()].fair_run;
            *rest += delta;
            if *rest < self.values.stat_granularity {
                return;
            }
            delta = std::mem::take(rest);
        }
        let delta = Self::weighted(self.entity(task), delta);
        self.add_wait_runtime(task, delta as i64);
    }

    /// Credits waking `task` for its sleep; `cpu_load` is the average load of the CPU over ticks.
    pub fn credit_sleep(&mut self, cpu: CpuId, task: TaskId, cpu_load: u64) {
        let entity = self.entity(task);
        if entity.is_batch || !self.values.has(FAIR_SLEEPERS) {
            return;
        }
        let mut delta = self.passed(cpu, entity.sleep_start_fair);
        self.entities[task.index()].sleep_start_fair = 0;
        if self.values.stat_granularity > 0 {
            let rest = &mut self.rests[task.index()].fair_sleep;
            *rest += delta;
            if *rest < self.values.stat_granularity {
                return;
            }
            delta = std::mem::take(rest);
        }
        self.give_bonus(cpu, task, delta, cpu_load);
    }

    fn give_bonus(&mut self, cpu: CpuId, task: TaskId, mut delta: u64, cpu_load: u64) {
        let rq = &self.cfs[cpu.index()];
        let is_limited = !self.rules.pays_bonus_by_share;
        if is_limited && rq.sleeper_bonus > self.values.runtime_limit as u64 {
            return;
        }
        let entity = self.entity(task);
        if self.values.has(SLEEPER_AVG) {
            // The fair clock would have been slower if the task had been runnable.
            let averages = self.values.has(SLEEPER_LOAD_AVG);
            let load = if averages { cpu_load } else { rq.load.weight };
            delta = delta.wrapping_mul(load) / (load + u64::from(entity.weight));
        }
        let before = entity.wait_runtime;
        let credit = Self::weighted(entity, delta) as i64;
        self.add_wait_runtime(task, credit);
        let given = self.entity(task).wait_runtime - before;
        self.cfs[cpu.index()].sleeper_bonus += given as u64;
    }

    /// The key of `task` from its present account.
    #[inline]
    fn key_now(&self, cpu: CpuId, task: TaskId) -> u64 {
        Self::key_at(self.cfs[cpu.index()].fair_clock, self.entity(task))
    }

    #[inline]
    fn key_at(fair_clock: u64, entity: &Entity) -> u64 {
        let owed = if u64::from(entity.weight) == NICE_0_LOAD {
            entity.wait_runtime
        } else {
            let size = entity.wait_runtime.unsigned_abs() * u64::from(entity.inv_weight);
            let size = (size >> (WMULT_SHIFT - NICE_0_SHIFT)) as i64;
            if entity.wait_runtime < 0 { -size } else { size }
        };
        fair_clock.wrapping_sub(owed as u64)
    }

    /// Inserts `task` into the tree by its account (`enqueue_entity` after its update).
    pub fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let key = self.key_now(cpu, task);
        self.insert_at(cpu, task, key);
    }

    /// Inserts `task` into the tree at a key.
    pub fn insert_at(&mut self, cpu: CpuId, task: TaskId, key: u64) {
        self.nodes[task.index()].key = key;
        let entity = &mut self.entities[task.index()];
        entity.on_rq = true;
        let rq = &mut self.cfs[cpu.index()];
        rq.tree.insert(&mut self.nodes, task.0);
        let weight = rq.load.weight + u64::from(entity.weight);
        rq.load = LoadWeight { weight, inv_weight: 0 };
        rq.nr_running += 1;
    }

    /// Removes `task` from the tree.
    pub fn remove(&mut self, cpu: CpuId, task: TaskId) {
        let entity = &mut self.entities[task.index()];
        entity.on_rq = false;
        let rq = &mut self.cfs[cpu.index()];
        rq.tree.remove(&mut self.nodes, task.0);
        let weight = rq.load.weight - u64::from(entity.weight);
        rq.load = LoadWeight { weight, inv_weight: 0 };
        rq.nr_running -= 1;
    }

    /// Moves running `task`, whose account is up to date, to its place in the tree. The kernel
    /// removes and reinserts it.
    pub fn rekey(&mut self, cpu: CpuId, task: TaskId) {
        let key = self.key_now(cpu, task);
        self.move_to(cpu, task, key);
    }

    /// Gives queued `task` another key. It is placed after those with the same key.
    pub fn move_to(&mut self, cpu: CpuId, task: TaskId, key: u64) {
        let rq = &mut self.cfs[cpu.index()];
        if rq.tree.leftmost == task.0 {
            // Usually the first task stays first.
            let next = rq.tree.next(&self.nodes, task.0);
            if next == NIL || ((key.wrapping_sub(self.nodes[next as usize].key)) as i64) < 0 {
                self.nodes[task.index()].key = key;
                return;
            }
        }
        rq.tree.remove(&mut self.nodes, task.0);
        self.nodes[task.index()].key = key;
        rq.tree.insert(&mut self.nodes, task.0);
    }

    /// The task with the greatest key of a tree that is not empty.
    pub fn rightmost(&self, cpu: CpuId) -> TaskId {
        let mut last = self.cfs[cpu.index()].tree.root;
        while self.nodes[last as usize].right != NIL {
            last = self.nodes[last as usize].right;
        }
        TaskId(last)
    }

    /// Tasks of `cpu` in the order of the tree.
    pub fn iter(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let tree = &self.cfs[cpu.index()].tree;
        let first = (tree.leftmost != NIL).then_some(tree.leftmost);
        let next = |id: &u32| Some(tree.next(&self.nodes, *id)).filter(|next| *next != NIL);
        std::iter::successors(first, next).map(TaskId)
    }

    /// The granularity of `curr`: full at nice 0, less for any other nice value.
    #[inline]
    pub fn niced_granularity(&self, curr: TaskId, granularity: Nanos) -> i64 {
        let entity = self.entity(curr);
        let niced = match u64::from(entity.weight) {
            NICE_0_LOAD => granularity,
            weight @ ..NICE_0_LOAD => (weight * granularity) >> NICE_0_SHIFT,
            _ => (u64::from(entity.inv_weight) * granularity) >> self.rules.niced_shift,
        };
        niced as i64
    }

    /// Whether `best` preempts running `curr`: its lead must be greater than `granularity`.
    #[inline]
    pub fn gives_way(&self, cpu: CpuId, best: TaskId, curr: TaskId, granularity: Nanos) -> bool {
        let nr_running = self.cfs[cpu.index()].nr_running;
        let ideal = self.values.ideal_runtime(&self.rules, nr_running);
        let is_over = ideal.is_some_and(|ideal| self.entity(curr).ran > ideal);
        let granularity = if is_over { 0 } else { granularity };
        let lead = self.key(curr).wrapping_sub(self.key(best));
        lead > self.niced_granularity(curr, granularity)
    }

    /// How much a time on the CPU changes the fair clock, and the account of running `curr`, if no
    /// bonus is paid back.
    #[inline]
    fn effect(&self, load: LoadWeight, curr: TaskId, delta: Nanos) -> (u64, i64) {
        let mine = calc_delta_mine(delta, u64::from(self.entity(curr).weight), load);
        (calc_delta_fair(delta, load), mine as i64 - delta as i64)
    }

    /// Number of coming ticks, the first of them at `first`, that do not preempt running `curr`.
    /// Preemption becomes ever more likely: its key rises and the granularity falls.
    pub fn quiet_ticks(&self, cpu: CpuId, curr: TaskId, first: Nanos, tick: Nanos) -> u64 {
        let mut rq = self.cfs[cpu.index()];
        let pays = rq.sleeper_bonus > self.values.min_granularity;
        if pays || self.values.stat_granularity > 0 {
            return 0;
        }
        let mut best = rq.tree.leftmost;
        if best == curr.0 {
            best = rq.tree.next(&self.nodes, best);
        }
        if best == NIL {
            return QUIET_TICKS_MAX;
        }
        let (load, limit) = (rq.load(), self.values.runtime_limit);
        let start = first - rq.exec_start;
        let (begin, each) = (self.effect(load, curr, start), self.effect(load, curr, tick));
        let entity = self.entity(curr);
        let granularity = self.values.granularity(&self.rules, rq.nr_running);
        let lead = self.niced_granularity(curr, granularity);
        let ideal = self.values.ideal_runtime(&self.rules, rq.nr_running);
        let best_key = self.nodes[best as usize].key;
        let gives_way = |nr: u64| {
            let clock = rq.fair_clock.wrapping_add(begin.0).wrapping_add((nr - 1) * each.0);
            let owed = (entity.wait_runtime + begin.1).clamp(-limit, limit);
            let owed = (owed + (nr - 1) as i64 * each.1).clamp(-limit, limit);
            let ran = entity.ran + start + (nr - 1) * tick;
            let key = Self::key_at(clock, &Entity { wait_runtime: owed, ..*entity });
            let is_over = ideal.is_some_and(|ideal| ran > ideal);
            key.wrapping_sub(best_key) as i64 > if is_over { 0 } else { lead }
        };
        // There are mostly few. Search in steps that double, then between the last two.
        let (mut quiet, mut end) = (0, 1);
        while end <= QUIET_TICKS_MAX && !gives_way(end) {
            (quiet, end) = (end, 2 * end);
        }
        while end - quiet > 1 {
            let middle = quiet.midpoint(end);
            if gives_way(middle) { end = middle } else { quiet = middle }
        }
        quiet
    }

    /// Passes this many such ticks, the last one at `now`.
    pub fn pass_ticks(&mut self, cpu: CpuId, curr: TaskId, nr: u64, now: Nanos, tick: Nanos) {
        let more = nr - 1;
        self.update_curr(cpu, Some(curr), now - more * tick);
        let rq = &mut self.cfs[cpu.index()];
        let load = rq.load();
        let (fair, owed) = self.effect(load, curr, tick);
        let rq = &mut self.cfs[cpu.index()];
        rq.fair_clock = rq.fair_clock.wrapping_add(more * fair);
        rq.exec_start = now;
        self.entities[curr.index()].ran += more * tick;
        self.add_wait_runtime(curr, more as i64 * owed);
        self.rekey(cpu, curr);
    }

    /// Moves `task`, which is in no queue, from one CPU to another, whose clocks differ.
    pub fn migrate(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let clock = |cpu: CpuId| self.cfs[cpu.index()].fair_clock;
        let offset = clock(from).wrapping_sub(clock(to));
        let entity = &mut self.entities[task.index()];
        for since in [&mut entity.wait_start_fair, &mut entity.sleep_start_fair] {
            if *since != 0 {
                *since = since.wrapping_sub(offset);
            }
        }
    }
}
