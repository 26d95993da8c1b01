// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of all textbook schedulers: one logical queue for all CPUs, turns with exact
//! ends, and the rule that the best tasks run.
//!
//! A textbook defines in which order tasks run and when one is preempted, and so does a
//! [`Discipline`]. [`Global`] makes a scheduling class from it. It adds rules for several CPUs,
//! which textbooks do not describe:
//!
//! - A task that becomes runnable goes to an idle CPU that it may use: its own, or else the next by
//!   number.
//! - With a preemptive discipline and no such CPU it preempts the task that ranks worst on the CPUs
//!   that it may use, if that task ranks worse than itself. Of equal ones it takes that of its own
//!   CPU, or else of the next by number. The preempted task looks for another CPU in the same way.
//! - A CPU that becomes free takes the best waiting task that may use it.
//! - A timer ends a turn (quantum) at its exact time, independently of ticks. A task whose turn has
//!   ended, or that yields, is queued by its discipline. The best of all tasks is picked, this one
//!   included: if it is alone, it continues with a new turn. Tasks that become runnable at that
//!   very time are queued before it (the engine's order of simultaneous events).
//!
//! When a task takes a CPU, it is in the CPU's *slot* until that CPU reschedules. Other CPUs do not
//! see it there. Otherwise the first CPU to reschedule would take tasks that were meant for others,
//! and tasks bound to it would wait although another CPU is idle.
//!
//! Left out: a running task that is not outranked is never moved to make room for another one's
//! affinity.

mod explain;
pub mod fcfs;
pub mod lottery;
pub mod mlfq;
pub mod multilevel;
pub mod pool;
pub mod priority;
pub mod rr;
pub mod rules;
pub mod sjf;
pub mod stride;
pub mod user;
pub mod vtime;

use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::{Core, LockDomain, TaskState};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::textbook::pool::Pool;
use crate::textbook::rules::{Discipline, Ring, TurnEnd};
use schedlab_model::{CpuId, Nanos, Policy, TaskId};

/// The state of a CPU.
#[derive(Clone, Copy, Default, Debug)]
struct Turn {
    /// The task whose turn it is.
    task: Option<TaskId>,
    /// When the turn began.
    started_at: Nanos,
    /// When the quantum ends.
    ends_at: Option<Nanos>,
    /// Why the turn is over, if it is. The CPU is then about to reschedule.
    over: Option<TurnEnd>,
    /// Distinguishes the timer of this turn from older ones.
    generation: u64,
    /// How the last pick was made, for explanations.
    pick: explain::Pick,
}

/// The queue's state of a task.
#[derive(Clone, Copy, Default, Debug)]
struct Entry {
    /// The CPU whose slot holds it.
    slot: Option<CpuId>,
    /// Rest of its quantum.
    left: Option<Nanos>,
}

/// Marks the token of a discipline's alarm; the other bits are its generation.
const ALARM: u64 = 1 << 63;
/// Bits of the CPU in the token of a quantum. The generation is above them.
const CPU_BITS: u32 = 16;

/// The scheduling class of a discipline.
pub struct Global<D: Discipline> {
    rules: D,
    pool: D::Pool,
    turns: Vec<Turn>,
    /// The task that each CPU takes at its next reschedule.
    slots: Vec<Option<TaskId>>,
    entries: Vec<Entry>,
    /// Number of runnable tasks, including the running ones.
    nr_runnable: u32,
    alarm_at: Option<Nanos>,
    alarm_generation: u64,
}

impl<D: Discipline> Global<D> {
    /// A class with these rules for a machine of `nr_cpus` CPUs.
    pub fn new(rules: D, nr_cpus: u32) -> Self {
        let nr_cpus = nr_cpus as usize;
        Self {
            rules,
            pool: D::Pool::default(),
            turns: vec![Turn::default(); nr_cpus],
            slots: vec![None; nr_cpus],
            entries: Vec::new(),
            nr_runnable: 0,
            alarm_at: None,
            alarm_generation: 0,
        }
    }

    /// An idle CPU for `task` that no other task was sent to: `prefer`, or else the next by number.
    fn free_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prefer: CpuId,
        except: Option<CpuId>,
    ) -> Option<CpuId> {
        let allowed = &core.task(task).cpus_allowed;
        let is_free = |cpu: CpuId| {
            Some(cpu) != except && core.rq(cpu).curr.is_none() && self.slots[cpu.index()].is_none()
        };
        if allowed.contains(prefer) && is_free(prefer) {
            return Some(prefer);
        }
        if core.idle_cpus.is_empty() {
            return None;
        }
        allowed.and(&core.idle_cpus).iter_from(prefer).find(|cpu| is_free(*cpu))
    }

    /// The CPU whose task, or next task, ranks worst, and worse than `task`.
    fn victim_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prefer: CpuId,
        except: Option<CpuId>,
    ) -> Option<CpuId> {
        if !self.rules.preemptive() {
            return None;
        }
        let mut worst_rank = self.rules.rank(core, task);
        let mut victim = None;
        for cpu in core.task(task).cpus_allowed.iter_from(prefer) {
            let occupant = self.slots[cpu.index()].or(core.rq(cpu).curr);
            if let Some(occupant) = occupant
                && Some(cpu) != except
                && occupant != task
            {
                let rank = self.rules.rank(core, occupant);
                if rank > worst_rank {
                    worst_rank = rank;
                    victim = Some(cpu);
                }
            }
        }
        victim
    }

    /// The CPU that should run `task`, which waits or wakes, at once.
    fn find_cpu(
        &self,
        core: &Core,
        task: TaskId,
        prefer: CpuId,
        except: Option<CpuId>,
    ) -> Option<CpuId> {
        self.free_cpu(core, task, prefer, except)
            .or_else(|| self.victim_cpu(core, task, prefer, except))
    }

    /// Sends waiting `task`, which is in neither pool nor slot, to a CPU that should run it; or
    /// else puts it into the pool. A task that loses its slot is sent to another CPU. Each ranks
    /// worse than the one before, so this terminates.
    fn place(&mut self, core: &mut Core, task: TaskId, prefer: CpuId, except: Option<CpuId>) {
        let (mut task, mut prefer) = (task, prefer);
        loop {
            let Some(cpu) = self.find_cpu(core, task, prefer, except) else {
                let key = self.rules.key(core, task);
                self.pool.insert(core, task, key);
                return;
            };
            core.resched_curr(cpu);
            self.entries[task.index()].slot = Some(cpu);
            let Some(displaced) = self.slots[cpu.index()].replace(task) else { return };
            self.entries[displaced.index()].slot = None;
            prefer = core.task(displaced).cpu;
            task = displaced;
        }
    }

    /// Sends `task`, if it is in the pool, to a CPU that should run it. A task in a slot has its
    /// CPU already.
    fn send_waiting(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prefer: CpuId,
        except: Option<CpuId>,
    ) {
        if self.pool.contains(task) && self.find_cpu(core, task, prefer, except).is_some() {
            self.pool.remove(task);
            self.place(core, task, prefer, except);
        }
    }

    /// Removes `task` from pool or slot, if it waits there.
    fn unplace(&mut self, task: TaskId) {
        match self.entries[task.index()].slot.take() {
            Some(cpu) => self.slots[cpu.index()] = None,
            None => {
                self.pool.remove(task);
            }
        }
    }

    fn begin_turn(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let left = self.entries[task.index()].left.take();
        let length = self.rules.begin_turn(core, task, left);
        let turn = &mut self.turns[cpu.index()];
        turn.task = Some(task);
        turn.started_at = core.now;
        turn.over = None;
        self.set_turn_end(core, cpu, length);
    }

    /// Sets the end of `cpu`'s quantum, `length` from now.
    fn set_turn_end(&mut self, core: &mut Core, cpu: CpuId, length: Option<Nanos>) {
        let turn = &mut self.turns[cpu.index()];
        turn.generation += 1;
        turn.ends_at = length.map(|length| core.now.saturating_add(length));
        if let Some(at) = turn.ends_at {
            core.start_timer(at, turn.generation << CPU_BITS | u64::from(cpu.0));
        }
    }

    /// Ends the turn of `cpu`'s task. Returns how long it ran.
    fn end_turn(&mut self, core: &Core, cpu: CpuId, task: TaskId, why: TurnEnd) -> Nanos {
        let turn = &mut self.turns[cpu.index()];
        debug_assert_eq!(turn.task, Some(task));
        let left = turn.ends_at.map(|at| at.saturating_sub(core.now));
        self.entries[task.index()].left = left.filter(|_| self.rules.keeps_quantum(why));
        turn.task = None;
        turn.ends_at = None;
        turn.over = None;
        turn.generation += 1;
        core.now - turn.started_at
    }

    /// Running `task` leaves `cpu` and waits.
    fn requeue(&mut self, core: &Core, cpu: CpuId, task: TaskId, why: TurnEnd) {
        let ran = self.end_turn(core, cpu, task, why);
        self.rules.requeue(core, task, why, ran);
        let key = self.rules.key(core, task);
        self.pool.insert(core, task, key);
    }

    /// The task that `cpu`, whose task `curr` is runnable, should run.
    fn contest(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) -> explain::Pick {
        let Some(why) = self.turns[cpu.index()].over else {
            if self.rules.preemptive()
                && let Some(best) = self.rules.best(core, &mut self.pool, cpu)
                && self.rules.rank(core, best) < self.rules.rank(core, curr)
            {
                return explain::Pick::Outranks(best);
            }
            return explain::Pick::Keeps(curr);
        };
        let next = if self.rules.asks_before_requeue() {
            self.rules.best(core, &mut self.pool, cpu)
        } else {
            None
        };
        self.requeue(core, cpu, curr, why);
        if let Some(next) = next {
            return explain::Pick::Next(next);
        }
        let best = self.rules.best(core, &mut self.pool, cpu);
        let best = best.expect("the task that gave up its turn is in the pool");
        if best == curr {
            self.pool.remove(curr);
            self.begin_turn(core, cpu, curr);
        }
        explain::Pick::Best(best)
    }

    /// Ends the run if the discipline cannot continue.
    fn report(&mut self, core: &mut Core) {
        if let Some(what) = self.rules.take_failure() {
            core.fail(what);
        }
    }

    /// Ends the turn of the task that runs on `cpu`, if there is one.
    fn end_turn_early(&mut self, core: &mut Core, cpu: CpuId, why: TurnEnd) {
        let turn = &mut self.turns[cpu.index()];
        if turn.task.is_some() {
            turn.over = turn.over.or(Some(why));
            core.resched_curr(cpu);
        }
    }

    /// Starts a timer for the discipline's alarm if that is earlier than the present one.
    fn arm(&mut self, core: &mut Core) {
        if self.nr_runnable == 0 {
            return;
        }
        if let Some(at) = self.rules.alarm(core)
            && self.alarm_at.is_none_or(|armed| at < armed)
        {
            self.alarm_at = Some(at);
            self.alarm_generation += 1;
            core.start_timer(at, ALARM | self.alarm_generation);
        }
    }

    fn ring(&mut self, core: &mut Core) {
        self.alarm_at = None;
        if self.nr_runnable == 0 {
            return;
        }
        match self.rules.ring(core, &mut self.pool) {
            Ring::Raised(tasks) => {
                for task in tasks {
                    self.send_waiting(core, task, core.task(task).cpu, None);
                }
            }
            Ring::Reschedule => {
                for cpu in 0..self.turns.len() {
                    if self.turns[cpu].task.is_some() {
                        core.resched_curr(CpuId(cpu as u32));
                    }
                }
            }
            Ring::Refresh => self.refresh(core),
            Ring::End(tasks) => {
                for cpu in (0..core.nr_cpus()).map(CpuId) {
                    if self.turns[cpu.index()].task.is_some_and(|task| tasks.contains(&task)) {
                        self.end_turn_early(core, cpu, TurnEnd::Expired);
                    }
                }
                self.refresh(core);
            }
        }
        self.arm(core);
    }

    fn refresh(&mut self, core: &mut Core) {
        for cpu in (0..core.nr_cpus()).map(CpuId) {
            let turn = self.turns[cpu.index()];
            // A quantum that ends at this very time ends.
            if let Some(task) = turn.task
                && turn.over.is_none()
                && turn.ends_at.is_none_or(|at| at > core.now)
                && self.rules.refresh(core, task)
            {
                let length = self.rules.quantum(core, task);
                self.turns[cpu.index()].started_at = core.now;
                self.set_turn_end(core, cpu, length);
            }
        }
    }
}

impl<D: Discipline> SchedClass for Global<D> {
    /// Textbooks know one kind of task: every policy belongs here.
    fn owns(&self, _policy: Policy) -> bool {
        true
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            lock_domain: LockDomain::Global,
            has_quiet_ticks: true,
            ..ClassTraits::DEFAULT
        }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        self.entries.resize(task.index() + 1, Entry::default());
        self.rules.task_new(core, task);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let running = core.is_running(task);
        self.rules.join(core, task, running, flags);
        self.nr_runnable += 1;
        if running {
            // Its new attributes may rank it worse than a waiting task, even with an unchanged
            // priority: multilevel queues use the policy.
            core.resched_curr(cpu);
        } else {
            self.place(core, task, cpu, None);
        }
        core.add_nr_running(cpu, 1);
        if self.rules.take_gives_way() && self.entries[task.index()].slot.is_none() {
            self.end_turn_early(core, cpu, TurnEnd::Preempted);
        }
        self.arm(core);
        self.report(core);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        core.sub_nr_running(cpu, 1);
        self.nr_runnable -= 1;
        let ran = if self.turns[cpu.index()].task == Some(task) {
            let why = if flags.save { TurnEnd::Preempted } else { TurnEnd::Blocked };
            Some(self.end_turn(core, cpu, task, why))
        } else {
            self.unplace(task);
            None
        };
        self.rules.leave(core, task, flags, ran);
        self.report(core);
        true
    }

    fn yield_task(&mut self, _core: &mut Core, cpu: CpuId) {
        // A turn that is over already stays over for its first reason.
        let turn = &mut self.turns[cpu.index()];
        turn.over = turn.over.or(Some(TurnEnd::Yielded));
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _curr: TaskId,
        _flags: WakeFlags,
    ) {
        // enqueue_task has decided already, for all CPUs at once.
        if self.slots[cpu.index()] == Some(task) {
            core.resched_curr(cpu);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let sent = self.slots[cpu.index()].take();
        if let Some(sent) = sent {
            self.entries[sent.index()].slot = None;
            let key = self.rules.key(core, sent);
            self.pool.insert(core, sent, key);
        }
        // A task that blocked, or gave up its turn in an earlier pick, is no candidate.
        let pick = match self.turns[cpu.index()].task {
            Some(curr) => self.contest(core, cpu, curr),
            None => self
                .rules
                .best(core, &mut self.pool, cpu)
                .map(explain::Pick::Best)
                .unwrap_or_default(),
        };
        self.turns[cpu.index()].pick = pick;
        let best = pick.task();
        if let Some(sent) = sent
            && best != Some(sent)
        {
            self.pool.remove(sent);
            self.place(core, sent, core.task(sent).cpu, Some(cpu));
        }
        self.report(core);
        let best = best?;
        let from = core.task(best).cpu;
        if from != cpu {
            core.sub_nr_running(from, 1);
            core.set_task_cpu(best, cpu);
            core.add_nr_running(cpu, 1);
        }
        Some(best)
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        if next == Some(prev) {
            return;
        }
        if self.turns[cpu.index()].task == Some(prev) {
            self.requeue(core, cpu, prev, TurnEnd::Preempted);
        }
        self.send_waiting(core, prev, cpu, Some(cpu));
        self.arm(core);
        self.report(core);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _first: bool) {
        self.unplace(task);
        if self.turns[cpu.index()].task != Some(task) {
            self.begin_turn(core, cpu, task);
        }
        self.arm(core);
        self.report(core);
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        if self.rules.watches_ticks() {
            let ran = core.now - self.turns[cpu.index()].started_at;
            if self.rules.tick(core, curr, ran) {
                self.end_turn_early(core, cpu, TurnEnd::Expired);
            }
            self.report(core);
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _flags: WakeFlags,
    ) -> CpuId {
        let found = self.find_cpu(core, task, prev, None);
        found.unwrap_or_else(|| core.allowed_cpu(task, prev))
    }

    fn timer(&mut self, core: &mut Core, token: u64) {
        if token & ALARM != 0 {
            if token & !ALARM == self.alarm_generation {
                self.ring(core);
            }
            return;
        }
        let cpu = CpuId((token & ((1 << CPU_BITS) - 1)) as u32);
        let turn = &mut self.turns[cpu.index()];
        if turn.task.is_some() && turn.generation == token >> CPU_BITS {
            turn.over = turn.over.or(Some(TurnEnd::Expired));
            core.resched_curr(cpu);
        }
    }

    /// Turns end by timers, unless the discipline looks at ticks.
    fn quiet_ticks(&self, _core: &Core, _cpu: CpuId, _curr: Option<TaskId>) -> u64 {
        if self.rules.watches_ticks() { 0 } else { u64::MAX }
    }

    fn asks(&self, core: &Core, cpu: CpuId) -> Vec<TaskId> {
        if !self.rules.is_asked() {
            return Vec::new();
        }
        let turn = &self.turns[cpu.index()];
        let runnable = |task: &TaskId| core.task(*task).state == TaskState::Running;
        let curr = turn.task.filter(runnable);
        if curr.is_some() && turn.over.is_none() {
            return Vec::new();
        }
        // A task is sent to an idle CPU only if no other waits for it.
        let sent = self.slots[cpu.index()];
        let (waiting, _) = self.pool.waiting(cpu, usize::MAX);
        sent.into_iter().chain(waiting).chain(curr).collect()
    }

    fn decided(&mut self, task: TaskId) {
        self.rules.decided(task);
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        self.rules.quantum(core, task).unwrap_or(0)
    }
}
