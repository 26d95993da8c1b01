// SPDX-License-Identifier: MIT OR Apache-2.0
//! The main loop: time moves from instant to instant.

use crate::clock::{BurstEnds, Due, EventQueue};
use crate::cold_cache::ColdCaches;
use crate::config::{SimConfig, SimOutcome};
use crate::device::DeviceQueue;
use crate::error::SimError;
use crate::exec::Exec;
use crate::family::Walks;
use crate::interrupts::Interrupts;
use crate::kernel_mode::KernelMode;
use crate::locks::Locks;
use crate::objects::Objects;
use crate::observe::{Cause, Watch};
use crate::pace::Pace;
use crate::stack::Stack;
use schedlab_model::arrivals::Arrival;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    CgroupId, Costs, CpuId, Event, EventKind, Nanos, ObjectId, TaskId, TraceSink, Workload,
    time::NSEC_PER_SEC,
};
use schedlab_sched::{BandwidthStats, Core, SchedClass};

/// Program steps and reschedules at one instant before the run is taken to hang.
const ROUNDS_MAX: u64 = 1_000_000;

/// A run under way.
pub(crate) struct Engine<'a, S> {
    pub workload: &'a Workload,
    pub config: &'a SimConfig<'a>,
    pub sink: S,
    pub core: Core,
    pub stack: Stack,
    pub costs: Costs,
    pub execs: Vec<Exec>,
    pub events: EventQueue,
    pub burst_ends: BurstEnds,
    /// Only on a machine whose hardware threads slow each other.
    pub pace: Option<Pace>,
    pub kernel_mode: KernelMode,
    /// No pace, and no time in the kernel to keep: a burst is a time and nothing else.
    pub has_plain_bursts: bool,
    /// Every class may have quiet ticks, and neither siblings nor kernel code make ticks differ.
    pub may_pass_ticks: bool,
    /// Only where a task has a working set and the machine has caches.
    pub cold_caches: Option<ColdCaches>,
    /// Only on a machine where the locks of run queues cost anything.
    pub locks: Option<Locks>,
    pub interrupts: Interrupts<'a>,
    pub device: DeviceQueue,
    pub objects: Objects,
    pub arrivals: Vec<Arrival>,
    /// Forked so far of each description, for names.
    pub nr_forked: Vec<u32>,
    pub nr_busy: u32,
    pub next_tick: Nanos,
    pub next_check: Nanos,
    /// A second, or half of the watchdog's limit if that is shorter.
    pub check_interval: Nanos,
    /// When all tasks were last checked, and what had been done by then (events and ticks).
    pub last_check: (Nanos, u64),
    pub idle_suspects: Vec<CpuId>,
    pub nr_live: u64,
    /// Steps and reschedules since time last moved.
    pub rounds: u64,
    pub outcome: SimOutcome,
    pub error: Option<SimError>,
    /// Somebody watches the choices.
    pub watch: Option<Watch<'a>>,
    /// Somebody watches the choices, locks or exits cost time, or a class is told of idle CPUs:
    /// most runs have none of it, and ask once a reschedule.
    pub has_followers: bool,
    /// What exits and waits for children walk through.
    pub walks: Option<Walks>,
}

impl<'a, S: TraceSink> Engine<'a, S> {
    pub fn new(
        workload: &'a Workload,
        config: &'a SimConfig<'a>,
        classes: Vec<Box<dyn SchedClass>>,
        sink: S,
    ) -> Self {
        let machine = config.machine;
        let random = Stream::new(config.seed, Purpose::Scheduler, 0);
        let mut core = Core::new(machine, workload.cgroups.clone(), random);
        let stack = Stack::new(classes, workload, &mut core);
        let half = config.watchdog_ns.unwrap_or(Nanos::MAX) / 2;
        let check_interval = half.clamp(1, NSEC_PER_SEC);
        let arrivals = workload.arrivals(config.seed);
        let mut events = EventQueue::default();
        for (index, arrival) in arrivals.iter().enumerate() {
            events.push(arrival.release_ns, Due::Release(index as u32));
        }
        let (pace, kernel_mode) = (Pace::new(machine), KernelMode::new(machine));
        let has_plain_bursts = pace.is_none() && !kernel_mode.is_tracked();
        Self {
            workload,
            config,
            sink,
            locks: Locks::new(&machine.costs, machine.nr_cpus(), stack.lock_domain),
            has_followers: false,
            walks: Walks::new(&machine.costs, stack.walks_tasks),
            costs: machine.costs,
            execs: Vec::new(),
            events,
            burst_ends: BurstEnds::new(machine.nr_cpus()),
            has_plain_bursts,
            may_pass_ticks: has_plain_bursts && stack.has_quiet_ticks,
            stack,
            pace,
            kernel_mode,
            cold_caches: ColdCaches::new(machine, workload),
            interrupts: Interrupts::new(machine, config.seed),
            device: DeviceQueue::new(machine.device),
            objects: Objects::new(workload),
            nr_live: arrivals.len() as u64,
            arrivals,
            nr_forked: vec![0; workload.tasks.len()],
            nr_busy: 0,
            next_tick: core.timer_comes(core.tick_nsec),
            next_check: check_interval,
            check_interval,
            last_check: (0, 0),
            idle_suspects: Vec::new(),
            rounds: 0,
            outcome: SimOutcome::default(),
            error: None,
            watch: None,
            core,
        }
    }

    /// A class and the state it works on.
    #[inline]
    pub fn class(&mut self, class: u8) -> (&mut dyn SchedClass, &mut Core) {
        self.core.enter_class(class);
        (self.stack.class_mut(class), &mut self.core)
    }

    #[inline]
    pub fn emit(&mut self, cpu: CpuId, kind: EventKind) {
        self.outcome.nr_events += 1;
        self.sink.event(&Event { time_ns: self.core.now, cpu, kind });
    }

    /// Takes over what classes asked for in a callback: timers and moves.
    #[inline(always)]
    pub fn drain(&mut self) {
        if self.core.has_requests() {
            self.drain_requests();
        }
    }

    #[inline(never)]
    fn drain_requests(&mut self) {
        while let Some(timer) = self.core.take_timer() {
            let due = Due::ClassTimer { class: timer.class, token: timer.token };
            self.events.push(timer.at, due);
        }
        let mut index = 0;
        while let Some((task, from, cpu)) = self.core.nth_move(index) {
            index += 1;
            self.emit(cpu, EventKind::Migrate { task, from });
            let t = self.core.task(task);
            if !t.cpus_allowed.contains(cpu) {
                self.fault(crate::SchedulerFault::ForbiddenCpu, "set_task_cpu", task, cpu);
            }
        }
        self.core.requests_done();
        if let Some(what) = self.core.take_failure() {
            let scheduler = self.config.scheduler.name.to_string();
            let time_ns = self.core.now;
            self.error.get_or_insert(SimError::Failed { scheduler, what, time_ns });
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
        for (id, info) in self.workload.trace_objects().iter().enumerate() {
            self.sink.object(ObjectId(id as u32), info);
        }
        let end_ns = self.end_ns();
        self.has_followers = self.watch.is_some()
            || self.locks.is_some()
            || self.walks.is_some()
            || self.stack.idle_watchers != 0;
        if self.watch.is_some() {
            self.each_class(|class, _| class.will_be_asked());
        }
        self.each_class(|class, core| class.run_begins(core));
        self.drain();
        while self.nr_live > 0 && self.error.is_none() {
            let tick = if self.nr_busy > 0 { self.next_tick } else { Nanos::MAX };
            let now = self.events.next_time().min(tick).min(self.burst_ends.first_time());
            let never = now == Nanos::MAX || (end_ns == Nanos::MAX && self.waits_for_nobody());
            if never && (end_ns == Nanos::MAX || self.runnable_task().is_some()) {
                self.report_stuck();
                break;
            }
            // An interrupt alone keeps no run going: it wakes nobody.
            let now = now.min(self.interrupts.next_time());
            if now >= end_ns {
                self.core.now = end_ns;
                if self.is_stuck() {
                    self.outcome.blocked = self.blocked_tasks();
                }
                break;
            }
            if now != self.core.now {
                self.rounds = 0;
            }
            self.core.now = now;
            self.instant(now);
        }
        if self.error.is_none() {
            self.check_all();
            self.each_class(|class, core| class.run_ends(core));
        }
        self.outcome.notes = self.notes();
        self.outcome.end_ns = self.core.now;
        self.outcome.bandwidth = self.bandwidth();
        self.outcome.nr_tasks = self.core.tasks.len() as u64;
        self.outcome.nr_switches = self.core.rqs.iter().map(|rq| rq.nr_switches).sum();
        self.sink.end(self.core.now);
        self.error.map_or(Ok(self.outcome), Err)
    }

    /// When the run is over at the latest.
    pub fn end_ns(&self) -> Nanos {
        self.config.until_ns.or(self.workload.duration_ns).unwrap_or(Nanos::MAX)
    }

    /// One round at an instant; the order is the crate's documentation.
    fn instant(&mut self, now: Nanos) {
        while let Some(due) = self.events.pop_at(now) {
            match due {
                Due::Release(index) => self.release(index),
                Due::Wake(task) => self.wake_from_event(task),
                Due::ClassTimer { class, token } => {
                    let (class, core) = self.class(class);
                    class.timer(core, token);
                    let class = class.name();
                    self.drain();
                    if self.watch.is_some() {
                        self.note_cause(&Cause::Timer { class });
                    }
                }
                Due::ReturnToUser(cpu) => self.return_to_user(cpu),
                Due::LockTaken(cpu) => self.lock_taken(cpu),
                Due::WakeTaken(number) => self.wake_taken(number),
            }
        }
        if self.interrupts.next_time() == now {
            self.take_interrupts();
        }
        if self.next_tick == now && self.nr_busy > 0 {
            self.tick();
        }
        // Several ticks may have been taken at once.
        let now = self.core.now;
        while self.burst_ends.first_time() <= now && self.error.is_none() {
            let cpu = self.burst_ends.first_cpu();
            self.count_round(cpu);
            self.step(cpu);
        }
        loop {
            self.reschedule_all();
            if !self.core.take_reclass() || self.error.is_some() {
                break;
            }
            self.reclass();
        }
        if self.kernel_mode.is_lazy() {
            self.await_lazy();
        }
        if !self.idle_suspects.is_empty() {
            self.check_idle_suspects();
        }
        if now >= self.next_check {
            self.check_if_worth();
        }
    }

    /// Reschedules until no CPU is left that was asked to.
    #[inline(always)]
    fn reschedule_all(&mut self) {
        while let Some(cpu) = self.core.next_resched() {
            if self.error.is_some() {
                break;
            }
            if self.puts_off(cpu) {
                continue;
            }
            self.count_round(cpu);
            self.schedule(cpu);
        }
    }

    /// Ends the run if this instant never ends.
    #[inline]
    pub fn count_round(&mut self, cpu: CpuId) {
        self.rounds += 1;
        if self.rounds > ROUNDS_MAX {
            self.report_hang(cpu);
        }
    }

    /// An instant does not end; what `cpu` runs is named.
    #[cold]
    #[inline(never)]
    fn report_hang(&mut self, cpu: CpuId) {
        let task = match self.core.rq(cpu).curr {
            Some(curr) => self.execs[curr.index()].name.clone(),
            None => "none".into(),
        };
        let time_ns = self.core.now;
        self.error.get_or_insert(SimError::NoProgress { task, time_ns });
    }

    /// Nothing is due any more though tasks live: somebody waits for ever.
    fn report_stuck(&mut self) {
        if let Some(id) = self.runnable_task() {
            let cpu = self.core.task(id).cpu;
            self.fault(crate::SchedulerFault::Lost, "pick_task", id, cpu);
            return;
        }
        let blocked = self.blocked_tasks();
        if !blocked.is_empty() {
            // Timers of classes may have come after the last task went to sleep.
            let time_ns = self.core.rqs.iter().map(|rq| rq.idle_since).max().unwrap_or(0);
            self.error.get_or_insert(SimError::Deadlock { blocked, time_ns });
        }
    }

    fn runnable_task(&self) -> Option<TaskId> {
        let mut ids = (0..self.core.tasks.len() as u32).map(TaskId);
        ids.find(|id| self.core.task(*id).on_rq && !self.core.task(*id).sched_delayed)
    }

    /// What bandwidth control did to each group with a limit.
    fn bandwidth(&self) -> Vec<(CgroupId, BandwidthStats)> {
        let groups = (0..self.workload.cgroups.len() as u32).map(CgroupId);
        let stats =
            |group| self.stack.classes().iter().find_map(|c| c.bandwidth_stats(&self.core, group));
        groups.filter_map(|group| Some((group, stats(group)?))).collect()
    }

    /// Whether nothing but timers of classes is to come, and nobody is there for them to serve.
    fn waits_for_nobody(&self) -> bool {
        self.nr_busy == 0 && self.events.next_is_class_timer() && self.is_stuck()
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        self.stack.classes().iter().flat_map(|class| class.notes(&self.core)).collect()
    }

    /// Whether no task will ever run again, whatever timers of classes still come.
    fn is_stuck(&self) -> bool {
        self.nr_busy == 0 && !self.events.wakes_somebody() && self.runnable_task().is_none()
    }
}
