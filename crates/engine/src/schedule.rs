// SPDX-License-Identifier: MIT OR Apache-2.0
//! Picks the next task of a CPU (`__schedule`) and switches to it.

use crate::engine::Engine;
use crate::error::SchedulerFault;
use crate::exec::Waiting;
use crate::observe::Cause;
use schedlab_model::{Costs, CpuId, EventKind, Nanos, Policy, SwitchOut, TaskId, TraceSink};
use schedlab_sched::boundary::class::select_idle_cpu;
use schedlab_sched::boundary::core::{Core, Task, TaskState};
use schedlab_sched::{DequeueFlags, EnqueueFlags, WakeFlags, WakeKind};

impl<S: TraceSink> Engine<'_, S> {
    /// Reschedules `cpu`.
    pub(crate) fn schedule(&mut self, cpu: CpuId) {
        if self.has_followers && self.is_held(cpu) {
            return;
        }
        self.schedule_now(cpu);
    }

    /// Whether `cpu` searches for tasks, spins for a lock, or an agent must decide first.
    fn is_held(&mut self, cpu: CpuId) -> bool {
        (self.searches.is_some() && self.must_search(cpu))
            || (self.locks.is_some() && self.must_spin(cpu))
            || (self.asking.is_some() && self.must_ask(cpu))
    }

    /// Reschedules `cpu`, which has the lock and a decision.
    #[inline(always)]
    pub(crate) fn schedule_now(&mut self, cpu: CpuId) {
        let followed = self.has_followers;
        if followed {
            self.search_is_used(cpu);
            self.stops_spinning(cpu);
        }
        let prev = self.core.rq(cpu).curr;
        debug_assert!(prev.is_none_or(|prev| self.is_on(cpu, prev)), "CPU {cpu} runs {prev:?}");
        let now = self.core.now;
        self.core.work.pick_clock_ns = self.core.rqs[cpu.index()].clock_stopped.resume(now);
        self.core.work.switch_ns = now;
        let (out, must_move) = prev.map_or((SwitchOut::Idle, false), |prev| self.leave(cpu, prev));
        if self.stack.pulls_before_pick {
            self.at_clock(|engine| engine.pull_before_pick(cpu, prev));
        }
        let mut next = self.at_clock(|engine| engine.pick(cpu));
        while next.is_none() && self.newidle_balance(cpu) {
            next = self.pick_again(cpu);
            // A sleeper whose dequeue was delayed leaves its queue when it is picked.
            if self.core.rq(cpu).nr_running > 0 {
                break;
            }
        }
        // Below, the switch clears what asked for it after the account of the task that leaves.
        let clears_later = prev != next && prev.is_some() && next.is_some();
        if !clears_later {
            self.core.clear_resched(cpu);
        }
        self.drain();
        if self.custody.has_failed() {
            return;
        }
        if followed {
            self.tell_choice(cpu, prev, next, out);
        }
        if prev != next {
            self.switch(cpu, prev, next, out);
        } else if self.core.work.entries_scanned > 0
            || self.core.work.bpf_insns > 0
            || self.costs.repick_ns | self.costs.dequeue_delayed_ns > 0
        {
            // A task that yields to no other has no request to look for.
            let pays = next.is_some() && out != SwitchOut::Yielded;
            let repick = if pays { self.costs.repick_ns } else { 0 };
            let found = self.scan_cost().saturating_add(self.delayed_cost());
            self.lose(cpu, repick.saturating_add(found));
            self.lose_class_cost(cpu);
        }
        if followed && next.is_none() && prev.is_none() {
            self.tell_idle(cpu, true, true);
        }
        if must_move && let Some(prev) = prev.filter(|prev| next != Some(*prev)) {
            self.move_away(cpu, prev);
        }
        self.balance_callbacks(cpu);
        if followed && self.locks.is_some() {
            self.lock_callbacks(cpu);
        }
        self.drain();
        if followed {
            if self.watch.is_some() {
                self.note_cause(&Cause::Moved);
            }
            // Now the next task has left its queue.
            if self.tells_queues {
                self.tell_queues();
            }
        }
    }

    /// Does what a pick does at the time of the CPU's clock. A wake-up that preempts has updated
    /// the clock, so the pick does not (`rq_clock_skip_update` in `wakeup_preempt`): the time
    /// between the two is charged to the next task, not to the one that runs meanwhile.
    #[inline(always)]
    fn at_clock<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let now = std::mem::replace(&mut self.core.now, self.core.work.pick_clock_ns);
        let result = work(self);
        self.core.now = now;
        result
    }

    /// Whether `task` is on the runqueue of `cpu`, waiting or running.
    pub(crate) fn is_on(&self, cpu: CpuId, task: TaskId) -> bool {
        let t = self.core.task(task);
        t.on_rq && !t.sched_delayed && t.cpu == cpu
    }

    /// Informs the observer, the sink and the locks about the task that `cpu` runs next.
    #[inline(never)]
    fn tell_choice(
        &mut self,
        cpu: CpuId,
        prev: Option<TaskId>,
        next: Option<TaskId>,
        out: SwitchOut,
    ) {
        if self.watch.is_some() {
            self.note_decision(cpu, prev, next, out);
        }
        if self.tells_vruntime {
            for task in [prev, next].into_iter().flatten() {
                self.tell_vruntime(task);
            }
        }
        if self.locks.is_some() {
            self.lock_choice(cpu, prev, next);
        }
        if let Some(prev) = prev.filter(|prev| next != Some(*prev)) {
            self.owner_leaves(prev);
        }
    }

    /// Calls `balance` of the class of `prev` and those below it, until one has a task for this
    /// CPU.
    fn pull_before_pick(&mut self, cpu: CpuId, prev: Option<TaskId>) {
        let first = prev.map_or(self.stack.len(), |prev| self.core.task(prev).class);
        let first = first.min(self.stack.balance_from);
        for index in first..self.stack.len() {
            let (class, core) = self.class(index);
            if class.balance(core, cpu) {
                break;
            }
        }
    }

    /// `cpu` found no task. Returns whether a class pulled one.
    fn newidle_balance(&mut self, cpu: CpuId) -> bool {
        (0..self.stack.len()).any(|index| {
            let (class, core) = self.class(index);
            class.newidle_balance(core, cpu)
        })
    }

    /// Calls the requested balance callbacks, highest class first.
    #[inline]
    fn balance_callbacks(&mut self, cpu: CpuId) {
        let mut asked = self.core.take_balance_callbacks(cpu);
        while asked != 0 {
            let (class, core) = self.class(asked.trailing_zeros() as u8);
            class.balance_callback(core, cpu);
            asked &= asked - 1;
        }
    }

    /// Takes `prev` off the runqueue if it blocks, exits or must move. Returns why it leaves, and
    /// whether it must move.
    #[inline(always)]
    fn leave(&mut self, cpu: CpuId, prev: TaskId) -> (SwitchOut, bool) {
        let exec = &mut self.tasks[prev];
        let (yielded, must_move) = (std::mem::take(&mut exec.yielded), exec.must_move);
        if self.core.task(prev).state == TaskState::Running && !must_move {
            let out = if yielded { SwitchOut::Yielded } else { SwitchOut::Preempted };
            return (out, false);
        }
        self.at_clock(|engine| engine.take_off(cpu, prev, must_move))
    }

    fn take_off(&mut self, cpu: CpuId, prev: TaskId, must_move: bool) -> (SwitchOut, bool) {
        let t = self.core.task(prev);
        let (state, class) = (t.state, t.class);
        let out = match state {
            TaskState::Running => SwitchOut::Preempted,
            TaskState::Sleeping => SwitchOut::Sleeping,
            TaskState::BlockedIo => SwitchOut::BlockedIo,
            TaskState::Dead => SwitchOut::Dead,
        };
        // One that blocks before it has moved may not stay queued: it finds its CPU when it wakes.
        let special = out == SwitchOut::Dead || (must_move && state != TaskState::Running);
        let flags = match out {
            SwitchOut::Preempted => DequeueFlags { moved: true, ..DequeueFlags::NONE },
            _ => DequeueFlags { special, ..DequeueFlags::SLEEP },
        };
        let (class, core) = self.class(class);
        let dequeued = class.dequeue_task(core, cpu, prev, flags);
        let t = &mut core.tasks[prev.index()];
        t.on_rq = !dequeued;
        t.sched_delayed = !dequeued;
        if !dequeued && (special || must_move) {
            self.fault(SchedulerFault::DelayedExit, "dequeue_task", prev, cpu);
        }
        let moves = must_move && state == TaskState::Running;
        if must_move && !moves {
            self.tasks[prev].must_move = false;
        }
        (out, moves)
    }

    /// Picks again, after a class pulled a task.
    #[inline(never)]
    fn pick_again(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.pick(cpu)
    }

    /// Passes the virtual runtime of `task` to the sink, if its class has one.
    #[inline(never)]
    pub(crate) fn tell_vruntime(&mut self, task: TaskId) {
        let class = self.stack.class(self.core.task(task).class);
        if let Some(vruntime) = class.vruntime(&self.core, task) {
            self.sink.vruntime(self.core.now, task, vruntime);
        }
    }

    /// Passes the lengths of the classes' dispatch queues to the sink.
    #[inline(never)]
    pub(crate) fn tell_queues(&mut self) {
        let (now, sink) = (self.core.now, &mut self.sink);
        for class in self.stack.classes() {
            class.queue_lengths(&mut |queue, nr| sink.queue_length(now, queue, nr));
        }
    }

    /// Calls `pick_task`, highest class first.
    #[inline(always)]
    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let watched = self.has_followers && self.watch.is_some();
        if watched {
            self.note_pick_begins(cpu);
        }
        for index in 0..self.stack.len() {
            let (class, core) = self.class(index);
            let picked = class.pick_task(core, cpu);
            if watched {
                self.note_pick(cpu, index);
            }
            if let Some(task) = picked {
                return self.check_pick(cpu, task, index).then_some(task);
            }
        }
        None
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>, out: SwitchOut) {
        if let Some(prev) = prev {
            self.switch_out(cpu, prev, next, out);
            // What its last account asked for was meant for it: the kernel clears its flag after
            // the pick, which includes this. A task put back on a CPU that goes idle is picked.
            if next.is_some() {
                self.core.clear_resched(cpu);
            }
        }
        if self.has_followers && (prev.is_none() || next.is_none()) {
            self.tell_idle(cpu, next.is_none(), false);
        }
        debug_assert_ne!(prev, next, "CPU {cpu} switches to what it runs");
        debug_assert!(next.is_none_or(|next| self.is_on(cpu, next)), "CPU {cpu} gets {next:?}");
        self.emit(cpu, EventKind::Switch { prev, next, out });
        let now = self.core.now;
        let rq = &mut self.core.rqs[cpu.index()];
        rq.curr = next;
        rq.nr_switches += 1;
        self.core.touch(cpu);
        let Some(next) = next else {
            // No task can be charged for an unsuccessful pick.
            self.scan_cost();
            (self.core.work.delayed_dequeued, self.core.work.bpf_insns) = (0, 0);
            if self.has_followers {
                self.walk_debt();
            }
            let rq = &mut self.core.rqs[cpu.index()];
            rq.idle_since = now;
            self.clock.cpu_idle(cpu);
            self.core_busy(cpu, false);
            if self.core.rq(cpu).nr_running == 0 {
                self.core.idle_cpus.set(cpu);
            } else {
                self.custody.suspect(cpu);
            }
            return;
        };
        if prev.is_none() {
            self.clock.cpu_busy(now, self.core.tick_nsec, self.core.tick_delay_ns());
            self.core_busy(cpu, true);
            self.core.idle_cpus.clear(cpu);
        }
        let leave_ns = if self.has_switch_costs { self.leave_cost(prev, next, out) } else { 0 };
        self.switch_in(cpu, next, prev.is_none(), leave_ns);
    }

    /// What a switch takes beyond a plain one because of the task that leaves.
    #[inline(never)]
    fn leave_cost(&mut self, prev: Option<TaskId>, next: TaskId, out: SwitchOut) -> Nanos {
        if self.costs.pick_shared_ns > 0 {
            // A task from another branch, or from deeper groups, leaves entities of its own.
            let levels = prev.map_or(0, |prev| self.levels_of(prev));
            let shared = prev.map_or(0, |prev| self.shared_levels(prev, next));
            let stays = if shared == levels { shared.saturating_sub(1) } else { 0 };
            self.core.work.shared_levels = stays;
        }
        let mut groups_ns = 0;
        let leave_ns = match out {
            SwitchOut::Idle => 0,
            SwitchOut::Preempted => {
                groups_ns = self.put_cost(prev, next);
                groups_ns = groups_ns.saturating_add(self.load_cost(prev, next));
                prev.map_or(0, |prev| self.preempt_cost(prev))
            }
            // It stays on its queue, where the fair class moves it.
            SwitchOut::Yielded if prev.is_some_and(|prev| self.levels_of(prev) == 0) => 0,
            _ => {
                let stays = out == SwitchOut::Yielded;
                let cost = if stays { Self::put_cost } else { Self::dequeue_cost };
                groups_ns = cost(self, prev, next);
                if prev.is_some_and(|prev| self.core.task(prev).sched_delayed) {
                    groups_ns = groups_ns.saturating_add(self.costs.delay_dequeue_ns);
                }
                self.costs.block_switch_ns.saturating_add(self.late_pick_ns(prev, next))
            }
        };
        groups_ns = groups_ns.saturating_add(self.delayed_cost());
        // All this comes before the timer of a slice is set.
        self.core.work.leave_ns = groups_ns;
        let moves = prev.is_some_and(|prev| self.tasks[prev].must_move);
        let stopper_ns = if moves { self.stopper_ns() } else { 0 };
        let leave_ns = leave_ns.saturating_add(groups_ns);
        leave_ns.saturating_add(self.server_cost()).saturating_add(stopper_ns)
    }

    /// What the turn of `next` takes more after `prev` has blocked, if neither is a fair task and
    /// `next` has slept.
    fn late_pick_ns(&self, prev: Option<TaskId>, next: TaskId) -> Nanos {
        let fair = self.core.class_of(Policy::Normal);
        let is_above = |task: TaskId| self.core.task(task).class < fair;
        let exec = &self.tasks[next];
        let has_slept = exec.has_run && exec.remaining == 0;
        let is_late = has_slept && is_above(next) && prev.is_some_and(is_above);
        if is_late { self.costs.pick_fair_ns } else { 0 }
    }

    /// What it takes to take `prev`, which has blocked, off the queues of its groups.
    fn dequeue_cost(&self, prev: Option<TaskId>, next: TaskId) -> Nanos {
        let Some(prev) = prev.filter(|_| self.costs.dequeue_entity_ns > 0) else { return 0 };
        let (own, shared) = self.levels_left(prev, next);
        let own_ns = own.saturating_mul(self.costs.dequeue_entity_ns);
        own_ns.saturating_add(shared.saturating_mul(self.costs.pick_shared_ns))
    }

    /// What it takes to put `prev` back on the queues of the groups that `next` is not in.
    fn put_cost(&self, prev: Option<TaskId>, next: TaskId) -> Nanos {
        let Some(prev) = prev.filter(|_| self.costs.queue_entity_ns > 0) else { return 0 };
        self.levels_left(prev, next).0.saturating_mul(self.costs.queue_entity_ns)
    }

    /// What the update of load averages takes when `next` goes on, which has waited. It is half of
    /// a period's cost for the task, and all of it for each of its groups that has not run.
    fn load_cost(&self, prev: Option<TaskId>, next: TaskId) -> Nanos {
        let exec = &self.tasks[next];
        let is_fair = self.costs.load_period_ns > 0 && self.levels_of(next) > 0;
        let Some(prev) = prev.filter(|_| is_fair) else { return 0 };
        let period_ns = self.load_period_ns(exec.runnable_since);
        let (own, _) = self.levels_left(next, prev);
        period_ns.saturating_mul(own).saturating_add(period_ns / 2)
    }

    /// The levels below the root of `prev` alone, and those that it shares with `next`.
    fn levels_left(&self, prev: TaskId, next: TaskId) -> (Nanos, Nanos) {
        let below = self.levels_of(prev).saturating_sub(1);
        let shared = self.shared_levels(prev, next).saturating_sub(1).min(below);
        (Nanos::from(below - shared), Nanos::from(shared))
    }

    /// What a CPU does to move its running task away: it switches to the thread that moves it.
    fn stopper_ns(&self) -> Nanos {
        if self.costs.wakeup_switch_ns > 0 { self.costs.context_switch_ns } else { 0 }
    }

    /// What the switch from `prev`, which stays queued, takes beyond a plain one.
    #[inline]
    fn preempt_cost(&self, prev: TaskId) -> Nanos {
        if self.costs.preempt_switch_ns == 0 {
            return 0;
        }
        let entity_ns = if self.levels_of(prev) > 0 { self.costs.tick_entity_ns } else { 0 };
        self.costs.preempt_switch_ns.saturating_add(entity_ns)
    }

    fn switch_out(&mut self, cpu: CpuId, prev: TaskId, next: Option<TaskId>, out: SwitchOut) {
        debug_assert_ne!(next, Some(prev), "CPU {cpu} goes on with task {prev}");
        self.keep_rest(cpu, prev);
        if self.cpus.cold_caches.is_some() {
            self.caches_used(cpu, prev);
        }
        let t = &mut self.core.tasks[prev.index()];
        debug_assert_eq!(out == SwitchOut::Dead, t.state == TaskState::Dead);
        if out.is_voluntary() {
            t.nr_voluntary_switches += 1;
        } else {
            t.nr_involuntary_switches += 1;
        }
        let class = t.class;
        self.at_clock(|engine| {
            engine.account(cpu, prev);
            let (class, core) = engine.class(class);
            class.put_prev_task(core, cpu, prev, next);
        });
        let (class, core) = self.class(class);
        if out == SwitchOut::Dead {
            class.task_dead(core, prev);
            self.each_class(|class, core| class.task_exited(core, prev));
        }
    }

    /// Informs the classes that watch idle CPUs that `cpu` becomes idle or busy.
    #[inline(never)]
    fn tell_idle(&mut self, cpu: CpuId, idle: bool, again: bool) {
        let mut watchers = self.stack.idle_watchers;
        while watchers != 0 {
            let (class, core) = self.class(watchers.trailing_zeros() as u8);
            class.idle_changed(core, cpu, idle, again);
            watchers &= watchers - 1;
        }
    }

    /// Adds the running task's CPU time up to now to the sums. Returns the task.
    #[inline]
    pub(crate) fn account(&mut self, cpu: CpuId, task: TaskId) -> &mut Task {
        let now = self.core.now;
        let Core { rqs, tasks, .. } = &mut self.core;
        let (rq, t) = (&mut rqs[cpu.index()], &mut tasks[task.index()]);
        debug_assert!(t.exec_start <= now, "task {task} has started to run in the future");
        let ran = now - t.exec_start;
        t.sum_exec_runtime += ran;
        t.exec_start = now;
        rq.clock_stopped.update(now);
        debug_assert!(
            t.sum_exec_runtime <= now - t.release_ns + clock_lag_ns(&self.costs),
            "task {task} ran {} ns of {} ns",
            t.sum_exec_runtime,
            now - t.release_ns
        );
        rq.class_exec_runtime[usize::from(t.class)] += ran;
        t
    }

    /// `leave_ns`: what the switch takes beyond a plain one, since the previous task leaves.
    fn switch_in(&mut self, cpu: CpuId, next: TaskId, from_idle: bool, leave_ns: Nanos) {
        let mut cost = self.switch_cost(cpu, from_idle) + leave_ns;
        let exec = &mut self.tasks[next];
        debug_assert_eq!(exec.waiting, Waiting::No, "task {next} runs while it waits");
        debug_assert_eq!(self.core.task(next).state, TaskState::Running, "task {next} runs");
        let last = std::mem::replace(&mut exec.last_cpu, cpu.0);
        let has_run = std::mem::replace(&mut exec.has_run, true);
        if has_run && last != cpu.0 {
            cost += self.migration_cost(cpu, next, last);
        }
        if self.has_switch_costs {
            cost = cost.saturating_add(self.pick_cost(next));
            if from_idle && self.core.task(next).class < self.core.class_of(Policy::Normal) {
                cost = cost.saturating_sub(self.costs.idle_rt_ns);
            }
            self.copies_pages(next, has_run);
        }
        let refill = match self.cpus.cold_caches {
            Some(_) => self.refill_caches(cpu, CpuId(last), next),
            None => 0,
        };
        self.resume_burst(cpu, next, cost, refill);
        let t = &mut self.core.tasks[next.index()];
        t.exec_start = self.core.work.pick_clock_ns;
        let class = t.class;
        self.at_clock(|engine| {
            let (class, core) = engine.class(class);
            class.set_next_task(core, cpu, next, true);
        });
        if self.has_switch_costs {
            self.pay_for_pick(cpu, next);
        }
        if !has_run {
            self.core.tasks[next.index()].inherited_comm = None;
        }
        if self.has_followers {
            self.launcher_comes(cpu, next);
            self.reader_comes(next);
        }
    }

    /// The cost (ns) of the pick of `next` in its groups.
    #[inline(never)]
    fn pick_cost(&self, next: TaskId) -> Nanos {
        let below = Nanos::from(self.levels_of(next).saturating_sub(1));
        let shared = Nanos::from(self.core.work.shared_levels).min(below);
        let shared_ns = shared.saturating_mul(self.costs.pick_shared_ns);
        (below - shared).saturating_mul(self.costs.pick_entity_ns).saturating_add(shared_ns)
    }

    /// `next` copies pages that a fork has left to it.
    #[inline(never)]
    fn copies_pages(&mut self, next: TaskId, has_run: bool) {
        if !has_run && self.costs.fork_copy_ns > 0 {
            self.copies_first(next);
        }
        if !has_run && self.costs.child_alone_ns > 0 {
            self.starts_alone(next);
        }
        if has_run && self.costs.fork_switch_ns > 0 {
            self.copies_rseq(next);
        }
    }

    /// `next` pays for the programs of a scheduler, for the timer of its slice, and for a visit
    /// before it is throttled.
    #[inline(never)]
    fn pay_for_pick(&mut self, cpu: CpuId, next: TaskId) {
        if self.core.work.bpf_insns > 0 {
            self.lose_class_cost(cpu);
        }
        if self.costs.load_period_ns | self.costs.switch_closed_ns > 0 {
            self.cpus.timers[cpu.index()].picked = self.core.now;
        }
        if self.costs.hrtick_ns > 0 {
            // The timer of a budget takes 2 to 3 us: the rest is what fair tasks take besides.
            let is_fair = self.levels_of(next) > 0;
            let parts = if is_fair { 1 } else { 2 };
            self.pay_hrtick(cpu, self.costs.hrtick_ns / parts);
        }
        if self.core.throttle_ns > 0 && std::mem::take(&mut self.core.work.is_visit) {
            self.core.resched_curr(cpu);
            self.resched_after(cpu, self.core.throttle_ns);
            self.extend_burst(cpu, self.core.throttle_ns);
        }
    }

    /// The task that runs on `cpu` pays `each_ns` for each timer of a slice that was started.
    #[inline(never)]
    pub(crate) fn pay_hrtick(&mut self, cpu: CpuId, each_ns: Nanos) {
        let nr = Nanos::from(std::mem::take(&mut self.core.work.hrtick_starts));
        if nr > 0 {
            self.extend_burst(cpu, nr.saturating_mul(each_ns));
        }
    }

    /// The cost (ns) of the entries that the pick examined. Counts them.
    #[inline]
    fn scan_cost(&mut self) -> Nanos {
        if self.core.work.entries_scanned == 0 {
            return 0;
        }
        let scanned = u64::from(std::mem::take(&mut self.core.work.entries_scanned));
        self.outcome.nr_entries_scanned += scanned;
        scanned * self.costs.pick_entry_ns
    }

    /// The cost (ns) of the tasks that the pick has found asleep on their queue.
    #[inline]
    fn delayed_cost(&mut self) -> Nanos {
        let nr = Nanos::from(std::mem::take(&mut self.core.work.delayed_dequeued));
        nr.saturating_mul(self.costs.dequeue_delayed_ns)
    }

    fn switch_cost(&mut self, cpu: CpuId, from_idle: bool) -> Nanos {
        let mut cost = self.costs.context_switch_ns + self.scan_cost();
        if from_idle {
            cost += self.costs.idle_exit_ns + self.interrupt_rest(cpu);
        }
        if self.has_followers && self.locks.is_some() {
            cost = cost.saturating_add(self.lock_debt(cpu, from_idle));
        }
        if self.has_followers && self.walks.is_some() {
            cost = cost.saturating_add(self.walk_debt());
        }
        if self.has_followers
            && let Some(jitter) = &mut self.jitter
        {
            cost = cost.saturating_add(jitter.draw());
        }
        cost
    }

    /// The cost (ns) if `next`, which runs on `cpu`, last ran on `last`.
    #[inline(never)]
    fn migration_cost(&self, cpu: CpuId, next: TaskId, last: u32) -> Nanos {
        if self.working_set(next).is_some() {
            return 0;
        }
        debug_assert_ne!(last, cpu.0, "task {next} has not migrated");
        let llc = &self.core.topology.llc;
        let shares = llc[last as usize] == llc[cpu.index()];
        if shares { self.costs.migration_ns } else { self.costs.migration_llc_ns }
    }

    /// Moves `task`, which waits on `cpu`, to a CPU that it may use (`move_queued_task`).
    pub(crate) fn move_queued(&mut self, cpu: CpuId, task: TaskId) {
        let (class, core) = self.class(self.core.task(task).class);
        let moved = DequeueFlags { moved: true, ..DequeueFlags::NONE };
        class.dequeue_task(core, cpu, task, moved);
        core.tasks[task.index()].on_rq = false;
        self.tasks[task].must_move = true;
        self.move_away(cpu, task);
    }

    /// The migration thread's work: moves `task` off `cpu`, which its affinity excludes.
    fn move_away(&mut self, cpu: CpuId, task: TaskId) {
        debug_assert!(!self.core.task(task).on_rq, "task {task} moves while it is queued");
        debug_assert!(self.tasks[task].must_move, "task {task} may stay on CPU {cpu}");
        self.tasks[task].must_move = false;
        let chosen = self.tasks[task].move_to.take();
        let to = chosen.unwrap_or_else(|| select_idle_cpu(&self.core, task, cpu));
        let allowed = &self.core.task(task).cpus_allowed;
        debug_assert!(allowed.contains(to), "task {task} moves to CPU {to} of {allowed:?}");
        self.core.set_task_cpu(task, to);
        self.drain();
        let enqueue = EnqueueFlags { moved: true, migrated: true, ..EnqueueFlags::NONE };
        let flags = WakeFlags {
            kind: WakeKind::Wakeup,
            sync: false,
            migrated: true,
            this_cpu: cpu,
            waker: None,
        };
        self.activate(to, task, enqueue, flags);
        // It arrives when the thread has run; here it is queued at once, and its switch waits.
        self.switches_after_message(to, self.stopper_ns());
    }
}

/// Most by which the clock of a CPU that has stopped may be behind at a switch. That is the time
/// between a wake-up, or a call that blocks, and the switch; another CPU's new task may come in it.
/// 0 on machines on which neither takes time.
fn clock_lag_ns(costs: &Costs) -> Nanos {
    const LEVELS_MAX: Nanos = 8;
    let queues_ns = costs.queue_entity_ns.saturating_mul(LEVELS_MAX);
    let block_ns = costs.block_ns.saturating_add(costs.block_fair_ns);
    let ways = [block_ns, costs.wakeup_switch_ns, costs.idle_tick_ns];
    let wakes = [
        costs.timer_next_ns,
        costs.timer_fair_ns.max(costs.timer_fair_preempt_ns),
        costs.preempt_check_ns,
        queues_ns,
    ];
    ways.into_iter().chain(wakes).fold(0, Nanos::saturating_add)
}
