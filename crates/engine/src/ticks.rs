// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tick of all busy CPUs, and quiet ticks that are processed in one step.
//!
//! With long slices nearly every tick only counts a slice down. If every class reports this for the
//! next ticks of every busy CPU ([`SchedClass::quiet_ticks`]), and nothing else happens before
//! them, they are processed at once. The trace and all counts are the same as with single ticks;
//! only the number of instants is smaller.
//!
//! [`SchedClass::quiet_ticks`]: schedlab_sched::SchedClass::quiet_ticks

use crate::clock::Due;
use crate::engine::Engine;
use schedlab_model::{Costs, CpuId, Nanos, Policy, TaskId, TraceSink};

impl<S: TraceSink> Engine<'_, S> {
    /// Processes the due tick, or several quiet ones.
    pub(crate) fn tick(&mut self) {
        let is_plain = self.ticks_are_equal() && self.costs.clock_lead_ns == 0;
        let nr = if self.stack.has_quiet_ticks && is_plain { self.nr_quiet_ticks() } else { 0 };
        if nr > 0 {
            self.pass_ticks(nr);
        } else {
            self.clock.ticked(1, self.core.tick_nsec);
            self.take_tick();
        }
    }

    #[inline]
    fn take_tick(&mut self) {
        self.core.note_tick();
        let tick_ns = self.costs.tick_ns;
        // Every busy CPU loses as much, unless siblings, kernel code or groups make a difference.
        let is_uniform = self.ticks_are_equal();
        if is_uniform {
            self.clock.burst_ends.move_all(tick_ns);
        }
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            let Some(curr) = self.core.rq(cpu).curr else { continue };
            debug_assert!(self.is_on(cpu, curr), "the tick finds task {curr} off its queue");
            self.outcome.nr_ticks += 1;
            self.core.update_stopped_clock(cpu);
            let mut levels_ns = 0;
            if !is_uniform {
                levels_ns = self.tick_class_ns(curr);
                self.extend_burst(cpu, tick_ns.saturating_add(levels_ns));
            }
            if self.core.rq(cpu).need_resched_lazy {
                self.core.resched_lazy_now(cpu);
            }
            if self.watch.is_some() {
                self.watched_tick(cpu, curr);
            } else {
                self.tick_classes(cpu, curr);
            }
            if self.tells_vruntime {
                self.tell_vruntime(curr);
            }
            if self.has_class_cost() || self.costs.tick_resched_ns > 0 {
                self.end_tick(cpu, levels_ns);
            }
        }
    }

    /// The classes have their part of a tick of `cpu`, on which `curr` runs.
    #[inline(always)]
    fn tick_classes(&mut self, cpu: CpuId, curr: TaskId) {
        let (class, core) = self.class(self.core.task(curr).class);
        class.task_tick(core, cpu, curr);
        for index in 0..self.stack.len() {
            let (class, core) = self.class(index);
            class.tick_balance(core, cpu);
        }
        self.interrupt_returns(cpu);
        self.drain();
    }

    /// The part of the classes in a tick of a run that is watched. It records the numbers of `curr`
    /// before and after.
    #[cold]
    fn watched_tick(&mut self, cpu: CpuId, curr: TaskId) {
        let before = self.numbers_of(cpu, curr);
        self.tick_classes(cpu, curr);
        self.note_tick(cpu, curr, before);
    }

    /// A tick of `cpu` ends: it has taken the groups of its task `levels_ns`.
    #[inline(never)]
    fn end_tick(&mut self, cpu: CpuId, levels_ns: Nanos) {
        let class_ns = self.class_cost();
        if class_ns > 0 {
            self.extend_burst(cpu, class_ns);
        }
        // A task that is throttled where it runs takes a quarter as long for it as one that visits.
        let leaves = std::mem::take(&mut self.core.work.leaves_itself);
        let leave_ns = if leaves { self.core.throttle_ns / 4 } else { 0 };
        if leave_ns > 0 {
            self.extend_burst(cpu, leave_ns);
        }
        let rest_ns = self.costs.tick_resched_ns.saturating_add(class_ns).saturating_add(leave_ns);
        if self.is_asked_by_timer(cpu) {
            self.core.park_resched(cpu);
        } else if self.core.rq(cpu).need_resched {
            let ns = rest_ns.saturating_add(levels_ns).saturating_add(self.tick_pick_fair_ns(cpu));
            if self.costs.tick_lead_ns > 0 && self.stack.wakeups_stop_clock {
                // The pick updates the clock at its beginning.
                let read_ns = ns.saturating_sub(self.costs.tick_lead_ns);
                let at = self.core.now.saturating_add(read_ns);
                self.core.rqs[cpu.index()].clock_stopped.stop_at(at);
            }
            self.resched_after(cpu, ns);
        }
    }

    /// What the way to the switch takes `cpu` more if a fair task follows one of another class.
    fn tick_pick_fair_ns(&mut self, cpu: CpuId) -> Nanos {
        let ns = self.costs.tick_pick_fair_ns;
        let rq = self.core.rq(cpu);
        let Some(curr) = rq.curr.filter(|_| ns > 0) else { return 0 };
        let fair = self.core.class_of(Policy::Normal);
        let nr_above: u32 = rq.class_nr_running[..usize::from(fair)].iter().sum();
        let own = self.core.task(curr).class;
        // A task of FIFO or RR that is alone leaves only for the fair server, or is throttled.
        let leaves_alone = nr_above == 1 && own == self.core.class_of(Policy::Fifo);
        let has_fair = rq.class_nr_running[usize::from(fair)] > 0;
        if own >= fair || !has_fair || (nr_above > 0 && !leaves_alone) {
            return 0;
        }
        self.extend_burst(cpu, ns);
        ns
    }

    /// Whether a tick takes the same time from every task, and nothing slows one down.
    #[inline]
    fn ticks_are_equal(&self) -> bool {
        let costs = &self.costs;
        costs.tick_entity_ns == 0 && costs.tick_rt_ns == 0 && self.cpus.has_plain_bursts()
    }

    /// What a tick takes beyond the plain cost from `task`, because of its class.
    pub(crate) fn tick_class_ns(&self, task: TaskId) -> Nanos {
        let levels = self.levels_of(task);
        if levels == 0 && self.core.task(task).class <= self.core.class_of(Policy::Fifo) {
            return self.costs.tick_rt_ns;
        }
        Nanos::from(levels).saturating_mul(self.costs.tick_entity_ns)
    }

    /// What took classes time since the last call beyond the plain costs: new periods of servers,
    /// and programs of a scheduler for sched_ext.
    #[inline]
    pub(crate) fn class_cost(&mut self) -> Nanos {
        if !self.has_class_cost() {
            return 0;
        }
        let programs_ns = self.core.programs_ns();
        self.core.work.bpf_insns = 0;
        self.server_cost().saturating_add(programs_ns)
    }

    /// Whether classes did something since then that may take time.
    #[inline]
    fn has_class_cost(&self) -> bool {
        self.core.work.bpf_insns | self.core.work.server_refills != 0
    }

    /// What the servers' new periods take that began since the last call.
    #[inline]
    pub(crate) fn server_cost(&mut self) -> Nanos {
        let nr = Nanos::from(std::mem::take(&mut self.core.work.server_refills));
        nr.saturating_mul(self.costs.server_refill_ns)
    }

    /// The running task of `cpu` loses what took classes time in an interrupt. Returns how much.
    #[inline]
    pub(crate) fn lose_class_cost(&mut self, cpu: CpuId) -> Nanos {
        if self.core.rq(cpu).curr.is_none() {
            // The next switch there pays.
            return 0;
        }
        let ns = self.class_cost();
        self.lose(cpu, ns);
        ns
    }

    /// Programs of a scheduler end, which a timer has started on `cpu`. What they asked for takes
    /// place then.
    #[inline(never)]
    pub(crate) fn programs_end(&mut self, cpu: CpuId) {
        let ns = self.lose_class_cost(cpu);
        if ns > 0 && self.core.rq(cpu).need_resched {
            self.resched_after(cpu, ns);
        }
    }

    /// The timer of a slice has asked `cpu` to reschedule.
    pub(crate) fn resched_after_hrtick(&mut self, cpu: CpuId) {
        let levels = self.core.rq(cpu).curr.map_or(0, |curr| self.levels_of(curr));
        let Costs { hrtick_resched_ns, hrtick_end_ns, tick_entity_ns, .. } = self.costs;
        // A budget that is used up takes a third longer, for its own timer starts. Each level of
        // groups below the root is updated after the task.
        let more = match levels {
            0 => hrtick_resched_ns / 3,
            _ => Nanos::from(levels - 1).saturating_mul(tick_entity_ns),
        };
        let picked = self.cpus.timers[cpu.index()].picked;
        let load_ns = self.load_period_ns(picked).saturating_mul(Nanos::from(levels));
        let more = more.saturating_add(load_ns);
        let ns = if hrtick_resched_ns == 0 { 0 } else { hrtick_resched_ns.saturating_add(more) };
        if ns > 0 && self.core.rq(cpu).need_resched {
            self.resched_after(cpu, ns);
            let end_ns = if levels > 0 { hrtick_end_ns } else { 0 };
            self.extend_burst(cpu, ns.saturating_add(end_ns));
        }
    }

    /// The timer of a slice or a budget interrupts a task of another class on `cpu`. A fair one is
    /// picked again.
    #[inline(never)]
    pub(crate) fn stray_hrtick_ends(&mut self, cpu: CpuId) {
        let ns = self.costs.hrtick_stray_ns;
        let Some(curr) = self.core.rq(cpu).curr.filter(|_| ns > 0) else { return };
        self.extend_burst(cpu, ns);
        if self.levels_of(curr) > 0 {
            self.core.resched_curr(cpu);
            self.resched_after(cpu, ns);
        }
    }

    /// What the update of a load average takes more because a period has ended after `since`. Where
    /// periods begin on the clock of the kernel is not known here.
    pub(crate) fn load_period_ns(&self, since: Nanos) -> Nanos {
        const PERIOD_NS: Nanos = 1 << 20;
        match since / PERIOD_NS == self.core.now / PERIOD_NS {
            true => 0,
            false => self.costs.load_period_ns,
        }
    }

    /// A timer has let groups of `cpu` run again. What it takes delays the switch.
    #[inline(never)]
    pub(crate) fn unthrottling_ends(&mut self, cpu: CpuId) {
        let Costs { unthrottle_ns, unthrottle_task_ns, .. } = self.costs;
        let nr = std::mem::take(&mut self.core.work.unthrottled_tasks);
        let levels = std::mem::take(&mut self.core.work.unthrottled_levels);
        if unthrottle_ns == 0 || self.core.nr_cpus() > 1 {
            return;
        }
        // Each level of groups below the first takes a quarter more.
        let quarters = Nanos::from(nr).saturating_mul(4).saturating_add(levels.into());
        let tasks_ns = quarters.saturating_mul(unthrottle_task_ns) / 4;
        let ns = unthrottle_ns.saturating_add(tasks_ns);
        if self.core.rq(cpu).curr.is_none() {
            return self.switches_later(ns);
        }
        self.extend_burst(cpu, ns);
        if self.core.rq(cpu).need_resched {
            self.resched_after(cpu, ns);
        }
    }

    /// A timer of a class has expired on `cpu`, which `was_asked` to reschedule before. A task that
    /// it preempts pays for the way to the switch, as after a wake-up.
    #[inline(never)]
    pub(crate) fn class_timer_ends(&mut self, cpu: CpuId, was_asked: bool) {
        let timer_ns = match std::mem::take(&mut self.core.work.is_inactive_timer) {
            true => self.costs.inactive_timer_ns,
            false => self.costs.class_timer_ns,
        };
        if self.costs.class_timer_ns == 0 {
            return;
        }
        let entry_ns = self.costs.interrupt_entry_ns;
        if self.is_next_in_timer(cpu, timer_ns.saturating_sub(entry_ns), was_asked) {
            return;
        }
        if self.core.rq(cpu).curr.is_none() || self.core.is_asked(cpu) {
            let curr = self.core.rq(cpu).curr;
            let put_ns = curr.map_or(0, |curr| self.put_groups_ns(curr));
            if put_ns > 0 {
                self.extend_burst(cpu, put_ns);
            }
            self.switches_later(put_ns);
        } else {
            self.extend_burst(cpu, timer_ns);
        }
    }

    /// A reschedule of `cpu` was requested in an interrupt. It takes place when the rest of the
    /// interrupt, `ns`, has passed. The running task does no work meanwhile.
    #[inline(never)]
    pub(crate) fn resched_after(&mut self, cpu: CpuId, ns: Nanos) {
        self.core.park_resched(cpu);
        let at = self.core.now.saturating_add(ns);
        self.core.rqs[cpu.index()].switches_at = at;
        self.clock.events.push(at, Due::ReturnToUser(cpu));
    }

    /// How many ticks, the due one included, may be processed at once; 0 if the due one is not
    /// quiet.
    #[inline(never)]
    fn nr_quiet_ticks(&self) -> u64 {
        // An observer sees every tick, and so does a sink that wants virtual runtimes.
        if self.watch.is_some() || self.tells_vruntime || self.core.next_resched().is_some() {
            return 0;
        }
        let mut nr = u64::MAX;
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            let Some(curr) = self.core.rq(cpu).curr else { continue };
            for (index, class) in (0..).zip(self.stack.classes()) {
                let own = self.own_task(curr, index);
                nr = nr.min(class.quiet_ticks(&self.core, cpu, own));
                if nr == 0 {
                    return 0;
                }
            }
        }
        nr.min(self.nr_ticks_ahead())
    }

    /// Number of ticks before anything else happens, the due one included; at least 1.
    fn nr_ticks_ahead(&self) -> u64 {
        let (now, tick) = (self.core.now, self.core.tick_nsec);
        let next = self.clock.events.next_time().min(self.interrupts.next_time());
        let next = next.min(self.end_ns()).min(self.custody.next_check());
        let before_next = next.saturating_sub(now).div_ceil(tick);
        // Each tick puts the ends of bursts off; a burst that ends with a tick ends after it.
        let room = self.clock.burst_ends.first_time().saturating_sub(now);
        let before_end = match tick.checked_sub(self.costs.tick_ns) {
            Some(gain) if gain > 0 => room / gain + 1,
            _ => 1,
        };
        before_next.min(before_end).max(1)
    }

    fn pass_ticks(&mut self, nr: u64) {
        let tick = self.core.tick_nsec;
        self.core.now += (nr - 1) * tick;
        self.clock.ticked(nr, tick);
        // What is due at the time of a tick may come after it.
        let comes_later = nr == 1 && self.stack.timers_follow_tick;
        let (now, events) = (self.core.now, self.clock.events.next_time());
        debug_assert!(comes_later || now < events, "ticks passed over an event");
        let interrupts = self.interrupts.next_time();
        debug_assert!(comes_later || now < interrupts, "ticks passed an interrupt");
        self.core.note_tick();
        self.clock.burst_ends.move_all(nr * self.costs.tick_ns);
        let first = self.clock.burst_ends.first_time();
        debug_assert!(first >= self.core.now, "ticks passed the end of a burst at {first}");
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            let Some(curr) = self.core.rq(cpu).curr else { continue };
            self.outcome.nr_ticks += nr;
            for index in 0..self.stack.len() {
                let own = self.own_task(curr, index);
                let (class, core) = self.class(index);
                class.pass_ticks(core, cpu, own, nr);
            }
        }
    }

    /// `task` if it is of class number `index`.
    fn own_task(&self, task: TaskId, index: u8) -> Option<TaskId> {
        (self.core.task(task).class == index).then_some(task)
    }
}
