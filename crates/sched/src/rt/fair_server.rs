// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair server: fair tasks that real-time tasks starve get a reserved share of each CPU.
//!
//! A deadline reservation for each CPU (50 ms in each second by default) whose work is the fair
//! class. It is deferred: while fair tasks run anyway, their time is charged to it and it does
//! nothing; only when the time left to its deadline is no longer than its budget (zero laxity) does
//! it go ahead of the real-time tasks, until the budget is used up. Then it waits for the next
//! period, and while real-time tasks go on starving the fair ones, it runs at the start of each
//! further period.
//!
//! A server starts with the first runnable fair task of its CPU and stops with the last. Charges
//! are made at ticks and reschedules. Idle time counts as time that fair tasks could have had.
//!
//! Source: Linux kernel/sched/deadline.c (dl_server_*, dl_server_timer, update_curr_dl_se,
//! replenish_dl_entity), 6.12.63. Left out: the budget cut of a server that starts anew before an
//! old deadline and would exceed its bandwidth (it gets a full new period instead), admission
//! control, and the hierarchy of deadline entities: with no other deadline entity the server always
//! comes first.

use crate::core::{CLASSES_MAX, Core};
use schedlab_model::time::NSEC_PER_MSEC;
use schedlab_model::{CpuId, Nanos, Policy};

/// Least time by which the zero-laxity timer is put off (dl_server_min_res).
const MIN_RESOLUTION: i64 = NSEC_PER_MSEC as i64;

/// What a server does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No fair task is runnable.
    Stopped,
    /// Waits for zero laxity.
    Deferred,
    /// Fair tasks go first.
    Running,
    /// Budget used up; waits for the next period.
    Throttled,
}

/// The server of one CPU.
#[derive(Clone, Copy, Debug)]
struct Server {
    state: State,
    /// It has had to run: at the next replenishment it runs at once (`dl_defer_running`).
    defer_running: bool,
    /// It has never had a period.
    fresh: bool,
    /// Budget left, ns; below 0 after an overrun.
    runtime: i64,
    /// Absolute deadline, ns.
    deadline: Nanos,
    /// Since when fair tasks have been runnable here without a break.
    session: Nanos,
    /// CPU time of the fair class up to the last charge.
    exec_seen: Nanos,
    /// Before then the budget cannot be used up: at the last charge that much of it was left.
    lasts_until: Nanos,
    /// When the server stopped, and the CPU time of all classes by then.
    stopped_at: (Nanos, Nanos),
    /// When the timer should fire.
    wanted: Nanos,
    /// The one timer under way; earlier ones are never cancelled but ignored.
    under_way: Option<Nanos>,
}

/// The servers of all CPUs.
#[derive(Debug)]
pub struct FairServers {
    runtime: Nanos,
    period: Nanos,
    cpus: Vec<Server>,
}

/// Whether a budget of `runtime` up to `laxity` from now exceeds the bandwidth of `dl_runtime` in
/// `dl_deadline` (dl_entity_overflow, with its loss of the ten lowest bits).
fn overflows(runtime: i64, laxity: i64, dl_runtime: Nanos, dl_deadline: Nanos) -> bool {
    let (dl_runtime, dl_deadline) = (dl_runtime as i64 >> 10, dl_deadline as i64 >> 10);
    i128::from(dl_deadline) * i128::from(runtime >> 10)
        > i128::from(laxity >> 10) * i128::from(dl_runtime)
}

fn busy_time(core: &Core, cpu: CpuId) -> Nanos {
    (0..CLASSES_MAX as u8).map(|class| core.class_exec_runtime(cpu, class)).sum()
}

impl FairServers {
    /// Servers of `runtime` ns in each `period` ns.
    pub fn new(runtime: Nanos, period: Nanos, nr_cpus: u32) -> Self {
        let server = Server {
            state: State::Stopped,
            defer_running: false,
            fresh: true,
            runtime: 0,
            deadline: 0,
            session: 0,
            exec_seen: 0,
            lasts_until: 0,
            stopped_at: (0, 0),
            wanted: 0,
            under_way: None,
        };
        Self { runtime: runtime.min(period), period, cpus: vec![server; nr_cpus as usize] }
    }

    /// Whether fair tasks go ahead of real-time tasks on `cpu` now.
    pub fn is_running(&self, core: &Core, cpu: CpuId) -> bool {
        let fair = usize::from(core.class_of(Policy::Normal));
        self.cpus[cpu.index()].state == State::Running && core.rq(cpu).class_nr_running[fair] > 0
    }

    /// Whether [`FairServers::sync`] may be put off: the server waits for zero laxity, fair tasks
    /// have been runnable all the while, and even if they alone have run since the last charge they
    /// have left some of the budget.
    #[inline]
    pub fn may_wait(&self, core: &Core, cpu: CpuId) -> bool {
        let fair = usize::from(core.class_of(Policy::Normal));
        let (rq, server) = (core.rq(cpu), &self.cpus[cpu.index()]);
        core.now < server.lasts_until
            && server.state == State::Deferred
            && rq.class_nr_running[fair] > 0
            && rq.class_running_since[fair] == server.session
    }

    /// Charges what fair tasks have run, and follows their coming and going. True if a running
    /// server has just used up its budget.
    pub fn sync(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let fair = core.class_of(Policy::Normal);
        let exec = core.class_exec_runtime(cpu, fair);
        let (nr_running, since) = {
            let rq = core.rq(cpu);
            (rq.class_nr_running[usize::from(fair)], rq.class_running_since[usize::from(fair)])
        };
        let server = &mut self.cpus[cpu.index()];
        let ran = exec.saturating_sub(server.exec_seen);
        server.exec_seen = exec;
        let mut exhausted = false;
        if server.state != State::Stopped {
            exhausted = self.charge(core, cpu, ran);
            let server = &mut self.cpus[cpu.index()];
            if nr_running == 0 || since != server.session {
                server.state = State::Stopped;
                server.stopped_at = (core.now, busy_time(core, cpu));
            }
        }
        if self.cpus[cpu.index()].state == State::Stopped && nr_running > 0 {
            self.start(core, cpu, since);
        }
        self.note_budget(core.now, cpu);
        exhausted
    }

    /// The budget has just been charged or renewed.
    fn note_budget(&mut self, now: Nanos, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        server.lasts_until = now.saturating_add_signed(server.runtime);
    }

    fn charge(&mut self, core: &mut Core, cpu: CpuId, ran: Nanos) -> bool {
        let server = &mut self.cpus[cpu.index()];
        if ran == 0 {
            return false;
        }
        server.runtime -= ran as i64;
        if server.runtime > 0 {
            return false;
        }
        if server.state != State::Running {
            // Fair tasks got their share without help: a new period, deferred.
            server.defer_running = false;
            self.new_period(core.now, cpu);
            self.defer(core, cpu);
            return false;
        }
        server.state = State::Throttled;
        let deadline = server.deadline;
        if deadline < core.now {
            self.replenish(core, cpu);
        } else {
            self.arm(core, cpu, deadline);
        }
        true
    }

    /// Fair tasks have been runnable since `since`.
    fn start(&mut self, core: &mut Core, cpu: CpuId, since: Nanos) {
        let busy = busy_time(core, cpu);
        let (dl_runtime, period) = (self.runtime, self.period);
        let server = &mut self.cpus[cpu.index()];
        server.session = since;
        let (stopped_at, busy_then) = server.stopped_at;
        let idle = (core.now - stopped_at).saturating_sub(busy.saturating_sub(busy_then));
        if server.runtime >= 0 {
            server.runtime -= idle as i64;
            if server.runtime < 0 {
                server.runtime = 0;
                server.defer_running = false;
            }
        }
        let laxity = server.deadline as i64 - since as i64;
        let stale = server.deadline < since;
        if server.fresh || stale || overflows(server.runtime, laxity, dl_runtime, period) {
            server.fresh = false;
            self.new_period(since, cpu);
        }
        if self.cpus[cpu.index()].defer_running {
            self.cpus[cpu.index()].state = State::Running;
        } else {
            self.defer(core, cpu);
        }
    }

    fn new_period(&mut self, now: Nanos, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        server.deadline = now + self.period;
        server.runtime = self.runtime as i64;
    }

    /// Waits for zero laxity, or runs if that is past.
    fn defer(&mut self, core: &mut Core, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        let zero_laxity = server.deadline as i64 - server.runtime;
        if zero_laxity < core.now as i64 {
            server.state = State::Running;
        } else {
            server.state = State::Deferred;
            self.arm(core, cpu, zero_laxity as Nanos);
        }
    }

    /// A new period for a server that has used up its budget.
    fn replenish(&mut self, core: &mut Core, cpu: CpuId) {
        let server = &mut self.cpus[cpu.index()];
        while server.runtime <= 0 {
            server.deadline += self.period;
            server.runtime += self.runtime as i64;
        }
        if server.deadline < core.now {
            self.new_period(core.now, cpu);
        }
        if self.cpus[cpu.index()].defer_running {
            self.cpus[cpu.index()].state = State::Running;
        } else {
            self.defer(core, cpu);
        }
    }

    /// Wants the timer at `at`. At most one timer that comes no later is kept under way, so servers
    /// that start and stop often cost no timer each time.
    fn arm(&mut self, core: &mut Core, cpu: CpuId, at: Nanos) {
        let server = &mut self.cpus[cpu.index()];
        server.wanted = at;
        if server.under_way.is_none_or(|under_way| under_way > at) {
            server.under_way = Some(at.max(core.now));
            core.start_timer(at, u64::from(cpu.0));
        }
    }

    /// The timer of `cpu` fires. True if the CPU should choose anew.
    pub fn timer(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.cpus[cpu.index()].under_way != Some(core.now) {
            return false;
        }
        self.cpus[cpu.index()].under_way = None;
        let exhausted = self.sync(core, cpu);
        let begins = self.timer_fires(core, cpu);
        self.note_budget(core.now, cpu);
        exhausted || begins
    }

    /// The rest of [`FairServers::timer`]; true if the server has begun to run.
    fn timer_fires(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let Server { state, wanted, .. } = self.cpus[cpu.index()];
        match state {
            State::Stopped | State::Running => return false,
            _ if wanted > core.now => {
                self.arm(core, cpu, wanted);
                return false;
            }
            State::Throttled => self.replenish(core, cpu),
            State::Deferred => self.zero_laxity(core, cpu),
        }
        self.cpus[cpu.index()].state == State::Running
    }

    fn zero_laxity(&mut self, core: &mut Core, cpu: CpuId) {
        let (dl_runtime, period) = (self.runtime, self.period);
        let server = &mut self.cpus[cpu.index()];
        let zero_laxity = server.deadline as i64 - server.runtime;
        if (core.now as i64) < zero_laxity - MIN_RESOLUTION {
            // Fair tasks have used some of the budget meanwhile: there is time yet.
            self.arm(core, cpu, zero_laxity as Nanos);
            return;
        }
        server.defer_running = true;
        let laxity = server.deadline as i64 - core.now as i64;
        if overflows(server.runtime, laxity, dl_runtime, period) {
            self.new_period(core.now, cpu);
        }
        self.replenish(core, cpu);
    }
}
