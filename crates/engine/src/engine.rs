// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main loop: advances time from instant to instant.

use crate::asking::{Asking, Phase};
use crate::burst::Cpus;
use crate::clock::{Clock, Due};
use crate::config::{SimConfig, SimOutcome};
use crate::custody::Custody;
use crate::device::DeviceQueue;
use crate::error::SimError;
use crate::exec::Tasks;
use crate::family::Walks;
use crate::fork_costs::{CachedStacks, Exits};
use crate::group_lock::GroupLocks;
use crate::groups::Cpusets;
use crate::interrupts::Interrupts;
use crate::jitter::Jitter;
use crate::launch::Launch;
use crate::locks::Locks;
use crate::newidle::Searches;
use crate::objects::Objects;
use crate::observe::{Cause, Watch};
use crate::rt_limit::RtLimit;
use crate::stack::Stack;
use crate::start::Start;
use crate::threads::Threads;
use crate::user::User;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    CgroupId, Costs, CpuId, CpuMask, Event, EventKind, Nanos, ObjectId, TaskId, TraceSink, Workload,
};
use schedlab_sched::{BandwidthStats, Core, SchedClass};

/// Latest end of a run: 292 years. No single duration is longer, so its sum with the present time
/// cannot overflow.
const TIME_NS_MAX: Nanos = 1 << 63;

/// A running simulation.
pub(crate) struct Engine<'a, S> {
    pub workload: &'a Workload,
    pub config: &'a SimConfig<'a>,
    pub sink: S,
    pub core: Core,
    pub stack: Stack,
    pub costs: Costs,
    pub tasks: Tasks,
    pub clock: Clock,
    pub cpus: Cpus,
    /// CPUs of the groups, once a task has changed some.
    pub cpusets: Option<Box<Cpusets>>,
    /// Held by a task that moves to another group.
    pub group_locks: GroupLocks,
    /// The real-time limit that the kernel's files hold.
    pub rt_limit: RtLimit,
    /// `Some` only if locks of run queues cost time on this machine.
    pub locks: Option<Locks>,
    /// `Some` only if searches before going idle take time on this machine.
    pub searches: Option<Searches>,
    /// Tasks of time 0 that the launcher has not woken yet.
    pub launch: Launch,
    /// `Some` only if exits and waits for children look through lists of tasks.
    pub walks: Option<Walks>,
    /// Stacks of ended tasks that the kernel keeps for new ones.
    pub stacks: CachedStacks,
    /// What exits take.
    pub exits: Exits,
    /// If switches take longer, by how much.
    pub jitter: Option<Jitter>,
    pub interrupts: Interrupts<'a>,
    pub device: DeviceQueue,
    pub objects: Objects,
    pub custody: Custody,
    /// The user half of the scheduler, if it has one.
    pub user: Option<User>,
    /// Threads of the machine's kernel, if it has some.
    pub threads: Option<Box<Threads<'a>>>,
    pub outcome: SimOutcome,
    /// State for the observer, if there is one.
    pub watch: Option<Watch<'a>>,
    /// `Some` if the run stops before decisions: the one that it waits for.
    pub asking: Option<Box<Asking>>,
    /// Whether the sink uses virtual runtimes: at each pick those of the leaving and the picked
    /// task, at each tick that of the running task.
    pub tells_vruntime: bool,
    /// Whether the sink wants lengths of dispatch queues, and a class has some.
    pub tells_queues: bool,
    /// Whether there are an observer, an agent, or threads of the kernel, locks or exits cost time,
    /// or a class watches idle CPUs. Most runs have none of these, so one test per reschedule
    /// suffices.
    pub has_followers: bool,
    /// Whether a switch takes more than the plain cost from some tasks, or after some others.
    pub has_switch_costs: bool,
}

impl<'a, S: TraceSink> Engine<'a, S> {
    pub fn new(
        workload: &'a Workload,
        config: &'a SimConfig<'a>,
        classes: Vec<Box<dyn SchedClass>>,
        sink: S,
    ) -> Self {
        let machine = config.machine;
        let tells_vruntime = sink.wants_vruntime();
        let random = Stream::new(config.seed, Purpose::Scheduler, machine.boot.into());
        let mut core = Core::new(machine, workload.cgroups.clone(), random);
        let stack = Stack::new(classes, workload, &mut core);
        let tells_queues =
            sink.wants_queues() && stack.classes().iter().any(|class| class.has_queues());
        let cpusets = workload.has_cpusets().then(|| {
            let all = CpuMask::first(machine.nr_cpus());
            Box::new(Cpusets::new(&workload.cgroups, all))
        });
        let mut clock = Clock::new(machine.nr_cpus(), core.tick_nsec + core.tick_delay_ns());
        let mut arrivals = workload.arrivals(config.seed);
        let user = User::of(config.scheduler, workload);
        if let Some(user) = &user {
            user.comes_first(&mut arrivals);
        }
        let at_start = arrivals.iter().filter(|of| of.release_ns == 0);
        let policies = at_start.map(|of| workload.tasks[of.spec as usize].attr.policy);
        core.server_lead_ns = machine.costs.server_lead(policies);
        let mut threads = Threads::of(&machine.threads, workload, usize::from(user.is_some()));
        if let Some(threads) = &mut threads {
            threads.come_first(&mut clock.events);
            threads.set_up_all(&arrivals, workload);
        }
        clock.expect(&arrivals, |of| Start::of(of, workload, &machine.costs).on_busy_ns);
        Self {
            workload,
            config,
            sink,
            cpusets,
            group_locks: GroupLocks::new(workload.cgroups.len()),
            rt_limit: RtLimit::of(config.options),
            launch: Launch::default(),
            locks: Locks::new(&machine.costs, machine.nr_cpus(), stack.lock_domain),
            searches: Searches::new(&machine.costs, machine.nr_cpus()),
            walks: Walks::new(&machine.costs, stack.walks_tasks),
            stacks: CachedStacks::new(machine.nr_cpus(), workload, &arrivals),
            exits: Exits::new(&machine.costs, workload),
            jitter: Jitter::new(machine.switch_jitter_ns, config.seed),
            core,
            stack,
            costs: machine.costs,
            objects: Objects::new(workload, &arrivals),
            tasks: Tasks::new(workload, arrivals, u64::from(user.is_some())),
            threads: threads.map(Box::new),
            user,
            clock,
            cpus: Cpus::new(machine, workload),
            interrupts: Interrupts::new(machine, config.seed),
            device: DeviceQueue::new(machine.device),
            custody: Custody::new(config.watchdog_ns),
            outcome: SimOutcome::default(),
            watch: None,
            asking: None,
            tells_vruntime,
            tells_queues,
            has_followers: false,
            has_switch_costs: false,
        }
    }

    /// A class, and the state that its callbacks get.
    #[inline]
    pub fn class(&mut self, class: u8) -> (&mut dyn SchedClass, &mut Core) {
        self.core.enter_class(class);
        (self.stack.class_mut(class), &mut self.core)
    }

    #[inline]
    pub fn emit(&mut self, cpu: CpuId, kind: EventKind) {
        debug_assert!(cpu.0 < self.core.nr_cpus(), "an event on CPU {cpu}, which does not exist");
        self.outcome.nr_events += 1;
        self.sink.event(&Event { time_ns: self.core.now, cpu, kind });
    }

    /// Processes requests that classes made in a callback: timers and moves.
    #[inline(always)]
    pub fn drain(&mut self) {
        if self.core.has_requests() {
            self.drain_requests();
        }
    }

    #[inline(never)]
    fn drain_requests(&mut self) {
        while let Some(timer) = self.core.take_timer() {
            assert!(
                timer.at >= self.core.now,
                "class {} asks for a timer in the past",
                timer.class
            );
            assert!(timer.class < self.stack.len(), "a timer of class {} of no one", timer.class);
            let due = Due::ClassTimer { class: timer.class, token: timer.token };
            let early_ns = self.class_timer_early_ns(timer.class, timer.token);
            self.clock.events.push(timer.at.saturating_sub(early_ns).max(self.core.now), due);
        }
        let mut index = 0;
        while let Some((task, from, cpu)) = self.core.nth_move(index) {
            index += 1;
            assert_ne!(from, cpu, "task {task} migrates to where it is");
            self.emit(cpu, EventKind::Migrate { task, from });
            let t = self.core.task(task);
            if !t.cpus_allowed.contains(cpu) {
                self.fault(crate::SchedulerFault::ForbiddenCpu, "set_task_cpu", task, cpu);
            }
        }
        self.core.requests_done();
        if let Some(what) = self.core.take_failure() {
            let scheduler = self.config.scheduler.name.to_string();
            self.fail(SimError::Failed { scheduler, what, time_ns: self.core.now });
        }
    }

    /// Calls every class, highest first.
    pub fn each_class(&mut self, mut call: impl FnMut(&mut dyn SchedClass, &mut Core)) {
        for index in 0..self.stack.len() {
            let (class, core) = self.class(index);
            call(class, core);
        }
    }

    pub fn run(mut self) -> Result<SimOutcome, SimError> {
        self.begin();
        let end_ns = self.end_ns();
        while self.advance(end_ns) {}
        self.finish()
    }

    /// Announces the objects, and lets the classes begin.
    pub fn begin(&mut self) {
        for (id, info) in self.workload.trace_objects().iter().enumerate() {
            self.sink.object(ObjectId(id as u32), info);
        }
        self.has_followers = self.watch.is_some()
            || self.asking.is_some()
            || self.tells_vruntime
            || self.tells_queues
            || self.locks.is_some()
            || self.searches.is_some()
            || self.walks.is_some()
            || self.jitter.is_some()
            || self.threads.is_some()
            || self.costs.release_ns > 0
            || self.costs.release_deadline_ns > 0
            || self.may_spin()
            || self.stack.idle_watchers != 0;
        let costs = &self.costs;
        self.has_switch_costs = costs.pick_entity_ns > 0
            || costs.fork_copy_ns > 0
            || costs.fork_switch_ns > 0
            || costs.child_alone_ns > 0
            || costs.preempt_switch_ns > 0
            || costs.block_switch_ns | costs.pick_fair_ns | costs.delay_dequeue_ns > 0
            || costs.server_refill_ns > 0
            || costs.dequeue_entity_ns > 0
            || costs.queue_entity_ns > 0
            || costs.wakeup_switch_ns > 0
            || costs.hrtick_ns > 0
            || costs.switch_closed_ns > 0
            || self.core.bpf_kinsn_ns > 0
            || self.core.throttle_ns > 0;
        if self.watch.is_some() {
            self.each_class(|class, _| class.will_be_asked());
        }
        self.each_class(|class, core| class.run_begins(core));
        self.create_threads();
        self.drain();
    }

    /// Handles the next instant of a run that ends at `end_ns`. Returns whether the run goes on.
    #[inline(always)]
    pub fn advance(&mut self, end_ns: Nanos) -> bool {
        if self.tasks.nr_live() == 0 || self.custody.has_failed() {
            return false;
        }
        let now = self.clock.next_time();
        let never = now == Nanos::MAX || (end_ns == Nanos::MAX && self.waits_for_nobody());
        if never && (end_ns == Nanos::MAX || self.runnable_task().is_some()) {
            self.report_stuck();
            return false;
        }
        // An interrupt alone does not keep a run going, because it wakes no task.
        let now = now.min(self.interrupts.next_time());
        if now >= end_ns.min(TIME_NS_MAX) {
            if end_ns > TIME_NS_MAX {
                self.fail(SimError::TooLong { max_ns: TIME_NS_MAX });
                return false;
            }
            self.core.now = end_ns;
            if self.is_stuck() {
                self.outcome.blocked = self.blocked_tasks();
            }
            return false;
        }
        if now != self.core.now {
            self.custody.time_moves();
        }
        assert!(now >= self.core.now, "time goes back from {} to {now}", self.core.now);
        self.core.now = now;
        self.instant(now);
        true
    }

    fn nr_threads(&self) -> u64 {
        self.threads.as_ref().map_or(0, |threads| threads.nr().into())
    }

    /// The end of the run: checks, and what it counted.
    pub fn finish(&mut self) -> Result<SimOutcome, SimError> {
        if !self.custody.has_failed() {
            self.check_all();
            self.check_sums();
            self.each_class(|class, core| class.run_ends(core));
        }
        self.outcome.notes = self.notes();
        self.outcome.end_ns = self.core.now;
        self.outcome.bandwidth = self.bandwidth();
        self.outcome.nr_tasks = self.core.tasks.len() as u64 - self.nr_threads();
        self.outcome.nr_switches = self.core.rqs.iter().map(|rq| rq.nr_switches).sum();
        self.tasks.check_counts(self.outcome.nr_exited, self.nr_threads());
        assert!(self.outcome.nr_events >= self.outcome.nr_switches, "a switch left no event");
        self.sink.end(self.core.now);
        let outcome = std::mem::take(&mut self.outcome);
        self.custody.take_error().map_or(Ok(outcome), Err)
    }

    /// Latest end of the run.
    pub fn end_ns(&self) -> Nanos {
        self.config.until_ns.or(self.workload.duration_ns).unwrap_or(Nanos::MAX)
    }

    /// One round at an instant. The crate's documentation defines the order.
    #[inline(always)]
    pub fn instant(&mut self, now: Nanos) {
        if self.stack.timers_follow_tick && self.clock.ticks_at(now) {
            self.tick();
        }
        while let Some(due) = self.clock.events.pop_at(now) {
            match due {
                Due::Release(index) => self.release(index),
                Due::Launch => self.launch(),
                Due::Wake(task) => self.wake_from_event(task),
                Due::WakeOnBusy(task) => self.wake_on_busy(task),
                Due::ClassTimer { class, token } => self.class_timer(class, token),
                Due::ReturnToUser(cpu) => self.return_to_user(cpu),
                Due::LockTaken(cpu) => {
                    self.lock_taken(cpu);
                    if self.waits_in(Phase::Events) {
                        return;
                    }
                }
                Due::Searched(cpu) => {
                    self.searched(cpu);
                    if self.waits_in(Phase::Events) {
                        return;
                    }
                }
                Due::WakeTaken(number) => self.wake_taken(number),
            }
        }
        debug_assert!(self.clock.events.next_time() > now, "an event was set for the past");
        if self.interrupts.next_time() == now {
            self.take_interrupts();
        }
        if self.clock.ticks_at(now) {
            self.tick();
        }
        // Several ticks may have been taken at once.
        self.end_bursts(self.core.now);
    }

    /// How much earlier than its delay says the timer of `token` takes effect.
    fn class_timer_early_ns(&self, class: u8, token: u64) -> Nanos {
        let early_ns = self.costs.class_timer_early_ns;
        let is_early =
            early_ns > 0 && self.stack.class(class).timer_cpu(&self.core, token).is_some();
        if is_early { early_ns } else { 0 }
    }

    /// A timer of a class expires.
    #[inline]
    fn class_timer(&mut self, class: u8, token: u64) {
        let cpu = match self.costs.timer_next_ns {
            0 => None,
            _ => self.stack.class(class).timer_cpu(&self.core, token),
        };
        if cpu.is_some_and(|cpu| self.is_in_timer(cpu, Due::ClassTimer { class, token })) {
            return;
        }
        let was_asked = cpu.is_some_and(|cpu| self.core.rq(cpu).need_resched);
        if self.costs.wakeup_switch_ns > 0 {
            // It takes the lock of its CPU, whichever that is.
            self.core.update_stopped_clocks();
        }
        self.core.work.unthrottled = None;
        let (class, core) = self.class(class);
        class.timer(core, token);
        let class = class.name();
        self.drain();
        if let Some(cpu) = self.core.work.unthrottled {
            self.unthrottling_ends(cpu);
        }
        self.idle_switches_later();
        if let Some(cpu) = self.core.work.hrtick_ended.take() {
            self.resched_after_hrtick(cpu);
            if self.costs.hrtick_ns > 0 {
                // A timer that starts again in its own interrupt takes 13.6 us in a guest of 7.2,
                // the interrupt included. A budget that is reclaimed needs many.
                self.pay_hrtick(cpu, self.costs.hrtick_ns * 31 / 10);
            }
        }
        if let Some(cpu) = self.core.work.hrtick_stray.take() {
            self.stray_hrtick_ends(cpu);
        }
        if let Some(cpu) = self.core.work.timer_ended.take() {
            self.class_timer_ends(cpu, was_asked);
        }
        if self.core.work.bpf_insns > 0 {
            self.programs_end(self.core.work.bpf_cpu);
        }
        if self.core.take_user_wake() {
            self.wake_user();
        }
        if self.watch.is_some() {
            self.note_cause(&Cause::Timer { class });
        }
    }

    /// The rest of an instant, from step 4 on.
    #[inline(always)]
    pub fn end_bursts(&mut self, now: Nanos) {
        while self.clock.burst_ends.first_time() <= now && !self.custody.is_stopped() {
            let cpu = self.clock.burst_ends.first_cpu();
            self.count_round(cpu);
            self.step(cpu);
        }
        if !self.waits_in(Phase::Bursts) {
            self.end_instant(now);
        }
    }

    /// Step 5 of an instant.
    #[inline(always)]
    pub fn end_instant(&mut self, now: Nanos) {
        loop {
            self.reschedule_all();
            debug_assert!(self.custody.is_stopped() || self.core.next_resched().is_none());
            if self.waits_in(Phase::Reschedules) {
                return;
            }
            if !self.core.take_reclass() || self.custody.has_failed() {
                break;
            }
            self.reclass();
        }
        if self.cpus.kernel_mode.is_lazy() {
            self.await_lazy();
        }
        if self.custody.has_suspects() {
            self.check_idle_suspects();
        }
        if now >= self.custody.next_check() {
            self.check_if_worth();
        }
    }

    /// Reschedules until no CPU has a request.
    #[inline(always)]
    pub fn reschedule_all(&mut self) {
        while let Some(cpu) = self.core.next_resched() {
            if self.custody.is_stopped() {
                break;
            }
            if self.puts_off(cpu) {
                continue;
            }
            self.count_round(cpu);
            self.schedule(cpu);
        }
    }

    /// Reports that nothing is due although tasks are alive: they wait for ever.
    fn report_stuck(&mut self) {
        if let Some(id) = self.runnable_task() {
            let cpu = self.core.task(id).cpu;
            self.fault(crate::SchedulerFault::Lost, "pick_task", id, cpu);
            return;
        }
        let blocked = self.blocked_tasks();
        if !blocked.is_empty() {
            // Timers of classes may have expired after the last task went to sleep.
            let time_ns = self.core.rqs.iter().map(|rq| rq.idle_since).max().unwrap_or(0);
            self.fail(SimError::Deadlock { blocked, time_ns });
        }
    }

    fn runnable_task(&self) -> Option<TaskId> {
        let mut ids = self.tasks.ids();
        ids.find(|id| self.core.task(*id).on_rq && !self.core.task(*id).sched_delayed)
    }

    /// Statistics of bandwidth control for each group with a limit.
    fn bandwidth(&self) -> Vec<(CgroupId, BandwidthStats)> {
        let groups = (0..self.workload.cgroups.len() as u32).map(CgroupId);
        let stats =
            |group| self.stack.classes().iter().find_map(|c| c.bandwidth_stats(&self.core, group));
        groups.filter_map(|group| Some((group, stats(group)?))).collect()
    }

    /// Whether only timers of classes are due, and no task can profit from them.
    fn waits_for_nobody(&self) -> bool {
        self.clock.is_idle() && self.clock.events.next_is_class_timer() && self.is_stuck()
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        self.stack.classes().iter().flat_map(|class| class.notes(&self.core)).collect()
    }

    /// Whether no task will ever run again, even if timers of classes expire.
    fn is_stuck(&self) -> bool {
        self.clock.is_idle()
            && !self.clock.events.wakes_somebody()
            && self.runnable_task().is_none()
    }
}
