// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair server: a reserved share of each CPU for fair tasks that higher classes starve. The ext
//! server of 7.x does the same for the tasks of a sched_ext scheduler; if that has all fair tasks,
//! "fair" here means those.
//!
//! The server is a deadline entity of each CPU (50 ms in each second by default) that runs the fair
//! class. It is queued among the deadline tasks of the CPU: while its deadline is the earliest,
//! fair tasks run. It is deferred. While fair tasks run anyway, their time is charged to it and it
//! stays out of the queue. Only when the time to its deadline is no longer than its budget (zero
//! laxity) is it queued, until the budget is used up. Then it waits for the next period. While fair
//! tasks are still starved, it is queued at the start of each further period.
//!
//! A server starts with the first runnable fair task of its CPU, and stops with the last one
//! ([`StopRule`]). Charges are made at ticks and reschedules, where arriving and leaving fair tasks
//! are noticed too; the times that count are those of their arrival. A fair task that starts a
//! server again which had to run is noticed at once, because it preempts a real-time task. Idle
//! time counts as time that fair tasks could have had. It is subtracted from the budget when the
//! CPU is no longer idle, after the start of a server that ends the idleness.
//!
//! In 7.x idle time is charged like execution, but idle time before a start is not. When it uses up
//! the budget of a waiting server, a new period begins. In it the timer stops the server, unless
//! fair tasks arrive before.
//!
//! Source: Linux kernel/sched/deadline.c (dl_server_start, dl_server_stop, dl_server_timer,
//! dl_server_update_idle_time, dl_server_update_idle, update_curr_dl_se, update_dl_entity,
//! replenish_dl_entity, enqueue_dl_entity), 6.12.63, 6.18 and 7.2.

use super::cbs::Entity;
use super::tunables::DlBug;
use crate::boundary::core::{CLASSES_MAX, Core};
use crate::boundary::explain::Fact;
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::{CpuId, DeadlineParams, Nanos, Policy};

/// Least time by which the zero-laxity timer is put off (dl_server_min_res).
const MIN_RESOLUTION: i64 = NSEC_PER_MSEC as i64;

/// When a server stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopRule {
    /// When the last fair task leaves its CPU's queue (6.12).
    LastLeaves,
    /// When it is picked and has no task to run (6.17 and later). Short sleeps do not stop a
    /// server.
    NobodyToRun,
    /// As `NobodyToRun`, and when its timer expires while the CPU is idle (7.x). A server that
    /// starts again within its period gets the part of its budget that its share of the rest
    /// allows.
    OrIdle,
}

/// The server of one CPU.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// Budget and deadline; `throttled` means that it is not in the queue.
    entity: Entity,
    /// Whether it has started (`dl_server_active`).
    active: bool,
    /// Whether it is out of the queue to wait for zero laxity (`dl_defer_armed`).
    armed: bool,
    /// Whether it had to run: the next replenishment then queues it at once (`dl_defer_running`).
    defer_running: bool,
    /// Whether idle time has used up its budget, so that its timer stops it (`dl_defer_idle`, 7.x).
    idle_wait: bool,
    /// Start of the time in which fair tasks have been runnable here without a break, at the last
    /// charge.
    session: Nanos,
    /// Start of the session in which it stopped for good (ext server). It starts again with the
    /// first task of another session.
    over: Option<Nanos>,
    /// CPU time of the fair class up to the last charge.
    exec_seen: Nanos,
    /// Time of the last charge, and the CPU time of all classes by then.
    seen: (Nanos, Nanos),
    /// The budget cannot be used up before this time; computed from the rest at the last charge.
    lasts_until: Nanos,
    /// When the timer should fire.
    wanted: Nanos,
    /// How often it has stopped while it was not in the queue, because its tasks had left.
    early_stops: u32,
    /// The only timer that counts. Earlier ones are not cancelled but ignored.
    under_way: Option<Nanos>,
}

impl Server {
    /// Starts a period now; a deferred server waits for zero laxity (replenish_dl_new_period).
    fn new_period(&mut self, now: Nanos) {
        self.entity.start_period(now);
        if !self.defer_running {
            self.wait_for_zero_laxity();
        }
    }

    fn wait_for_zero_laxity(&mut self) {
        self.armed = true;
        self.entity.throttled = true;
    }

    /// When the time to its deadline equals its budget; 0 for any time before the start.
    fn zero_laxity(&self) -> Nanos {
        (self.entity.deadline as i64 - self.entity.runtime).max(0) as Nanos
    }

    /// The last part of enqueue_dl_entity: returns when the timer should fire, if the server must
    /// wait; otherwise it is in the queue.
    fn settle(&mut self, now: Nanos) -> Option<Nanos> {
        if !self.entity.throttled {
            return None;
        }
        let at = if self.armed { self.zero_laxity() } else { self.entity.next_period() };
        // As in start_dl_timer: no timer if that is a microsecond or more ago.
        if now < at + 1_000 {
            return Some(at);
        }
        (self.armed, self.entity.throttled) = (false, false);
        None
    }

    /// Renews the budget (replenish_dl_entity).
    fn replenish(&mut self, now: Nanos) {
        let entity = &mut self.entity;
        if self.armed && (entity.deadline < now || entity.overflows(now)) {
            entity.start_period(now);
        }
        entity.replenish(now);
        if !std::mem::take(&mut self.armed) && !self.defer_running && now < self.zero_laxity() {
            self.wait_for_zero_laxity();
        }
    }
}

/// The servers of all CPUs.
#[derive(Debug)]
pub struct FairServers {
    rule: StopRule,
    bug: Option<DlBug>,
    has_runtime: bool,
    cpus: Vec<Server>,
}

/// CPU time of all classes on `cpu`.
fn busy_time(core: &Core, cpu: CpuId) -> Nanos {
    (0..CLASSES_MAX as u8).map(|class| core.class_exec_runtime(cpu, class)).sum()
}

/// Runnable fair tasks of `cpu`, and since when there have been any.
fn fair_tasks(core: &Core, cpu: CpuId) -> (u32, Nanos) {
    let (rq, fair) = (core.rq(cpu), usize::from(core.class_of(Policy::Normal)));
    (rq.class_nr_running[fair], rq.class_running_since[fair])
}

impl FairServers {
    /// Servers with `runtime` ns in each `period` ns.
    pub fn new(
        (rule, bug): (StopRule, Option<DlBug>),
        runtime: Nanos,
        period: Nanos,
        nr_cpus: u32,
    ) -> Self {
        let mut entity = Entity::default();
        let runtime_ns = runtime.min(period);
        entity.set_params(&DeadlineParams {
            runtime_ns,
            deadline_ns: period,
            period_ns: period,
            reclaim: false,
        });
        let server = Server {
            entity,
            active: false,
            armed: false,
            defer_running: false,
            idle_wait: false,
            session: 0,
            over: None,
            exec_seen: 0,
            seen: (0, 0),
            lasts_until: 0,
            wanted: 0,
            early_stops: 0,
            under_way: None,
        };
        Self { rule, bug, has_runtime: runtime_ns > 0, cpus: vec![server; nr_cpus as usize] }
    }

    /// Activates these servers: they are not charged for earlier execution.
    pub fn begin(&mut self, core: &Core) {
        let class = core.class_of(Policy::Normal);
        for cpu in core.cpus.iter() {
            let server = &mut self.cpus[cpu.index()];
            server.exec_seen = core.class_exec_runtime(cpu, class);
            server.seen = (core.now, busy_time(core, cpu));
            // A timer that expired while the other servers were active was ignored.
            server.under_way = None;
        }
    }

    /// Starts the server of `cpu` at the beginning of a run, if its launcher has started it before:
    /// in 7.x a server starts when its parameters are written, without a fair task.
    pub fn start_early(&mut self, core: &mut Core, cpu: CpuId) {
        let idle = core.server_idle_ns;
        let server = &mut self.cpus[cpu.index()];
        if idle == 0 || self.rule != StopRule::OrIdle || !self.has_runtime {
            return;
        }
        server.active = true;
        server.new_period(core.now);
        let entity = &mut server.entity;
        if entity.runtime > idle as i64 {
            entity.deadline = entity.deadline.saturating_sub(core.server_lead_ns + idle);
            entity.runtime -= idle as i64;
        }
        self.settle(core, cpu);
        self.note_budget(core.now, cpu);
    }

    /// Makes the server of `cpu`, which is about to stop, wait until all tasks that are runnable
    /// now have left.
    pub fn wait_for_next(&mut self, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        server.over = Some(server.session);
    }

    /// Budget and deadline of the server of `cpu`.
    pub fn entity(&self, cpu: CpuId) -> &Entity {
        &self.cpus[cpu.index()].entity
    }

    /// Whether the server of `cpu` has started.
    pub fn is_active(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].active
    }

    /// Whether the server of `cpu`, which has stopped, is queued at once when it starts.
    pub fn runs_at_once(&self, cpu: CpuId) -> bool {
        let server = &self.cpus[cpu.index()];
        server.defer_running && !server.active
    }

    /// Deadline of the server of `cpu` if it belongs in the queue.
    pub fn queued(&self, cpu: CpuId) -> Option<Nanos> {
        let server = &self.cpus[cpu.index()];
        (server.active && !server.entity.throttled).then_some(server.entity.deadline)
    }

    /// Whether [`FairServers::sync`] may be postponed. The server waits for zero laxity, fair tasks
    /// have been runnable since the last charge, and even if only they ran since then, some of the
    /// budget is left.
    #[inline]
    pub fn may_wait(&self, core: &Core, cpu: CpuId) -> bool {
        let server = &self.cpus[cpu.index()];
        let (nr_running, since) = fair_tasks(core, cpu);
        core.now < server.lasts_until
            && server.active
            && server.armed
            && nr_running > 0
            && since == server.session
    }

    /// Charges what fair tasks have run, and notes that they arrived or left. Returns true if the
    /// CPU should pick again, because the server has used up its budget or was queued.
    pub fn sync(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let (nr_running, since) = fair_tasks(core, cpu);
        let exec = core.class_exec_runtime(cpu, core.class_of(Policy::Normal));
        let (now, busy) = (core.now, busy_time(core, cpu));
        let was_queued = self.queued(cpu);
        let server = &mut self.cpus[cpu.index()];
        // The clock of a CPU whose task blocks is a little behind what was seen meanwhile.
        let ran = exec.saturating_sub(server.exec_seen);
        server.exec_seen += ran;
        let (seen_at, busy_seen) = server.seen;
        server.seen = (now.max(seen_at), busy.max(busy_seen));
        let idle = now.saturating_sub(seen_at).saturating_sub(busy.saturating_sub(busy_seen));
        let ends = server.session != since || nr_running == 0;
        let was_active = server.active;
        if was_active {
            self.charge(core, cpu, ran, false);
            if ends && self.rule == StopRule::LastLeaves {
                self.cpus[cpu.index()].early_stops += u32::from(was_queued.is_none());
                self.stop(cpu);
            }
        }
        let server = &mut self.cpus[cpu.index()];
        server.session = since;
        if nr_running > 0 {
            server.idle_wait = false;
            if !server.active && self.has_runtime && server.over != Some(since) {
                self.start(core, cpu, since);
            }
        }
        if self.rule == StopRule::OrIdle {
            if was_active {
                let is_idle = core.rq(cpu).nr_running == 0;
                self.charge(core, cpu, idle, is_idle);
            }
        } else {
            self.take_idle_time(cpu, idle);
        }
        self.note_budget(now, cpu);
        self.queued(cpu) != was_queued
    }

    /// Subtracts `idle`, a time in which fair tasks could have run (dl_server_update_idle_time, up
    /// to 6.18).
    fn take_idle_time(&mut self, cpu: CpuId, idle: Nanos) {
        let server = &mut self.cpus[cpu.index()];
        if idle > 0 && server.entity.runtime >= 0 {
            server.entity.runtime -= idle as i64;
            if server.entity.runtime < 0 {
                server.entity.runtime = 0;
                server.defer_running = false;
            }
        }
    }

    /// Updates the earliest end of the budget after a charge or renewal.
    fn note_budget(&mut self, now: Nanos, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        server.lasts_until = now.saturating_add_signed(server.entity.runtime);
    }

    /// Charges the budget for the time that fair tasks `ran`, or for idle time. `is_idle`: none
    /// runs now.
    fn charge(&mut self, core: &mut Core, cpu: CpuId, ran: Nanos, is_idle: bool) {
        let now = core.now;
        let server = &mut self.cpus[cpu.index()];
        if ran == 0 {
            return;
        }
        server.entity.runtime -= ran as i64;
        server.idle_wait &= is_idle;
        if server.entity.runtime > 0 {
            return;
        }
        if server.entity.throttled {
            if server.idle_wait {
                // The timer will stop it.
                server.entity.runtime = 0;
                return;
            }
            // Fair tasks got their share without help, so a deferred period begins.
            server.defer_running = false;
            server.new_period(now);
            server.idle_wait = is_idle;
            core.work.server_refills += 1;
        } else {
            server.entity.throttled = true;
            if server.entity.timer_at(now).is_none() {
                // Its next period has begun already.
                match self.rule {
                    StopRule::LastLeaves => server.replenish(now),
                    StopRule::NobodyToRun | StopRule::OrIdle => server.new_period(now),
                }
            }
        }
        self.settle(core, cpu);
    }

    /// Starts the server; fair tasks have been runnable since `since`.
    fn start(&mut self, core: &mut Core, cpu: CpuId, since: Nanos) {
        let revised = self.rule == StopRule::OrIdle;
        let server = &mut self.cpus[cpu.index()];
        server.active = true;
        let entity = &mut server.entity;
        let is_over = entity.is_new() || entity.deadline < since;
        if !is_over && revised && entity.overflows(since) {
            entity.revise(since);
        } else if is_over || entity.overflows(since) {
            server.defer_running &= !revised;
            server.new_period(since);
            if since == 0 {
                // Tasks of time 0 have been woken before it.
                server.entity.deadline -= core.server_lead_ns;
            }
        } else if !server.defer_running {
            server.wait_for_zero_laxity();
        }
        self.settle(core, cpu);
    }

    /// With a bug: the server of `cpu`, which has no task to run, gives up the rest of its period.
    /// Returns whether it goes on.
    pub fn yields(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        match self.bug {
            Some(DlBug::Yields) => {}
            Some(DlBug::StoppedYields) => {
                self.cpus[cpu.index()].entity.runtime = 0;
                return false;
            }
            _ => return false,
        }
        let server = &mut self.cpus[cpu.index()];
        server.entity.runtime = 0;
        server.entity.throttled = true;
        self.settle(core, cpu);
        self.queued(cpu).is_none()
    }

    /// The state of the server of `cpu`.
    pub fn facts(&self, cpu: CpuId) -> Vec<Fact> {
        let server = &self.cpus[cpu.index()];
        vec![
            Fact::flag("active", server.active),
            Fact::flag("queued", self.queued(cpu).is_some()),
            Fact::flag("timer", server.under_way.is_some()),
            Fact::ns("runtime", server.entity.runtime),
            Fact::ns("deadline", server.entity.deadline),
            Fact::ns("charged_at", server.seen.0),
            Fact::ns("session", server.session),
            Fact::number("early_stops", server.early_stops),
        ]
    }

    /// Stops the server of `cpu`, which has no task to run.
    pub fn stop(&mut self, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        server.active = false;
        server.armed = false;
        server.idle_wait = false;
        server.entity.throttled = false;
    }

    fn settle(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(at) = self.cpus[cpu.index()].settle(core.now) {
            self.arm(core, cpu, at);
        }
    }

    /// Sets the timer to `at`. At most one timer that expires no later is kept, so that servers
    /// that start and stop often do not need a timer each time.
    fn arm(&mut self, core: &mut Core, cpu: CpuId, at: Nanos) {
        let at = core.at_hrtimer_clock(at);
        let server = &mut self.cpus[cpu.index()];
        server.wanted = at;
        let comes = core.timer_comes(at);
        if server.under_way.is_none_or(|under_way| under_way > comes) {
            server.under_way = Some(comes);
            core.start_timer(at, super::token_of_server(cpu));
        }
    }

    /// Handles the timer of `cpu`. Returns true if the CPU should pick again.
    pub fn timer(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.cpus[cpu.index()].under_way != Some(core.now) {
            return false;
        }
        let server = &mut self.cpus[cpu.index()];
        server.under_way = None;
        if self.rule == StopRule::OrIdle && server.active && server.wanted > core.now {
            // An older timer, which a kernel would have cancelled.
            let at = server.wanted;
            self.arm(core, cpu, at);
            return false;
        }
        let was_queued = self.queued(cpu);
        self.sync(core, cpu);
        let now = core.now;
        let server = &mut self.cpus[cpu.index()];
        if !server.active || !server.entity.throttled {
            return self.queued(cpu) != was_queued;
        }
        if server.idle_wait {
            self.stop(cpu);
            return false;
        }
        if self.bug == Some(DlBug::Sticks) && fair_tasks(core, cpu).0 == 0 {
            server.replenish(now);
            // It stays active, out of the queue and without a timer.
            server.entity.throttled = true;
            return self.queued(cpu) != was_queued;
        }
        let zero_laxity = server.zero_laxity();
        if server.wanted > now {
            let at = server.wanted;
            self.arm(core, cpu, at);
        } else if server.armed && (now as i64) < zero_laxity as i64 - MIN_RESOLUTION {
            // Fair tasks have used some of the budget meanwhile, so zero laxity is later.
            self.arm(core, cpu, zero_laxity);
        } else {
            server.defer_running |= server.armed;
            server.replenish(now);
            self.settle(core, cpu);
        }
        self.note_budget(now, cpu);
        self.queued(cpu) != was_queued
    }
}
