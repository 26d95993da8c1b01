// SPDX-License-Identifier: MIT OR Apache-2.0
//! The high-resolution tick (HRTICK): a timer of each CPU that ends a slice or a budget exactly,
//! instead of at the next tick.
//!
//! Each class that uses it has one table of timers. The engine's timers cannot be stopped, so
//! [`Hrticks`] remembers which time is valid, and starts as few timers as possible.
//!
//! Source: Linux kernel/sched/core.c (hrtick_start, hrtick, hrtick_schedule_exit, and hrtick_clear
//! in `__schedule`), fair.c (hrtick_start_fair, hrtick_update, entity_tick), deadline.c
//! (start_hrtick_dl, task_tick_dl), 6.1, 6.6, 6.12, 6.18, 7.2.9. Left out: the correction by the
//! load of interrupts, and the time that the interrupt takes. In the kernel the timer belongs to
//! the CPU, here to the class. (From 7.1 on, a timer of the fair class that expires while a
//! real-time task runs takes a tick off that task's time slice under SCHED_RR. Here it only takes
//! time from that task.)

use crate::boundary::core::Core;
use schedlab_model::{CpuId, Machine, Nanos};

/// Least time (ns) from start to expiry.
const DELAY_MIN: Nanos = 10_000;
/// A running timer is kept if it expires this close (ns) to the new time (7.1).
const NEAR_ENOUGH: Nanos = 5_000;

/// Differences between versions of the high-resolution tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HrtickRule {
    /// Every reschedule stops the timer. Otherwise it runs until the CPU is idle, whatever task
    /// runs.
    pub stops_at_schedule: bool,
    /// The timer is restarted when the running task is picked again.
    pub restarts_on_repick: bool,
    /// For the fair class: the timer runs until the virtual deadline; otherwise until the end of
    /// the slice.
    pub until_deadline: bool,
    /// For the fair class: only in short queues do arriving and leaving tasks restart it.
    pub short_queues_only: bool,
}

impl HrtickRule {
    /// Linux 6.6, the first with EEVDF.
    pub const LINUX_6_6: Self = Self {
        stops_at_schedule: true,
        restarts_on_repick: true,
        until_deadline: false,
        short_queues_only: false,
    };
    /// CFS as in 6.1.
    pub const LINUX_6_1: Self = Self { short_queues_only: true, ..Self::LINUX_6_6 };
    /// Linux 6.12 to 7.0.
    pub const LINUX_6_12: Self = Self { restarts_on_repick: false, ..Self::LINUX_6_6 };
    /// Linux 7.1 and later.
    pub const LINUX_7_1: Self =
        Self { stops_at_schedule: false, until_deadline: true, ..Self::LINUX_6_12 };
}

#[derive(Clone, Copy, Debug)]
struct CpuTimer {
    /// When the tick is due; `None` if it is stopped.
    expires: Option<Nanos>,
    /// When it was started.
    started: Nanos,
    /// The earliest timer of the engine that has not expired.
    pending: Option<Nanos>,
}

/// The timers of a class with this feature.
#[derive(Debug)]
pub struct Hrticks {
    rule: HrtickRule,
    cpus: Vec<CpuTimer>,
}

impl Hrticks {
    /// All timers are stopped.
    pub fn new(rule: HrtickRule, machine: &Machine) -> Box<Self> {
        let cpu = CpuTimer { expires: None, started: 0, pending: None };
        Box::new(Self { rule, cpus: vec![cpu; machine.nr_cpus() as usize] })
    }

    /// The rules in force.
    pub fn rule(&self) -> HrtickRule {
        self.rule
    }

    /// Whether the timer of `cpu` runs. An idle CPU has none.
    pub fn is_active(&self, core: &Core, cpu: CpuId) -> bool {
        let timer = &self.cpus[cpu.index()];
        timer.expires.is_some() && core.rq(cpu).idle_since <= timer.started
    }

    /// Stops the timer of `cpu`.
    pub fn stop(&mut self, cpu: CpuId) {
        self.cpus[cpu.index()].expires = None;
    }

    /// Starts the timer of `cpu`, where a task is picked, to expire after `delay`. The engine
    /// passes `token` back. The kernel reads the clock behind the switch, as it sets the timer
    /// (`hrtick_schedule_exit`).
    pub fn start(&mut self, core: &mut Core, cpu: CpuId, delay: Nanos, token: u64) {
        let after_ns = core.hrtick_after_ns.saturating_add(core.hrtick_switch_ns);
        self.start_after(after_ns, core, cpu, delay, token);
    }

    /// As [`Hrticks::start`], while the task of `cpu` goes on.
    pub fn start_meanwhile(&mut self, core: &mut Core, cpu: CpuId, delay: Nanos, token: u64) {
        self.start_after(core.hrtick_after_ns, core, cpu, delay, token);
    }

    /// As [`Hrticks::start`], in the timer's own interrupt. From one expiry to the start after it
    /// take 7.4 us in a guest of 7.2, where `hrtick_ns` is 4.4 us; the way from the expiry to its
    /// effect is part of that.
    pub fn start_again(&mut self, core: &mut Core, cpu: CpuId, delay: Nanos, token: u64) {
        let expired = core.hrtimer_now().saturating_sub(core.timer_delay_ns);
        let begins = expired.saturating_add(core.hrtick_after_ns * 5 / 3);
        self.start_at(begins, core, cpu, delay, token);
    }

    fn start_after(
        &mut self,
        after_ns: Nanos,
        core: &mut Core,
        cpu: CpuId,
        delay: Nanos,
        token: u64,
    ) {
        let begins = core.hrtimer_now().saturating_add(after_ns);
        self.start_at(begins, core, cpu, delay, token);
    }

    fn start_at(&mut self, begins: Nanos, core: &mut Core, cpu: CpuId, delay: Nanos, token: u64) {
        // A stopped clock stops only what tasks are charged.
        let now = core.hrtimer_now();
        let at = begins.saturating_add(delay.max(DELAY_MIN));
        let stays = !self.rule.stops_at_schedule
            && self.is_active(core, cpu)
            && self.cpus[cpu.index()].expires.is_some_and(|old| old.abs_diff(at) <= NEAR_ENOUGH);
        if !stays {
            let timer = &mut self.cpus[cpu.index()];
            (timer.expires, timer.started) = (Some(at), now);
            core.rqs[cpu.index()].hrtick_started = now;
            core.work.hrtick_starts += 1;
            self.ask(core, cpu, token);
        }
    }

    /// A timer of the engine expired for `cpu`. Returns whether the tick is due.
    pub fn comes(&mut self, core: &mut Core, cpu: CpuId, token: u64) -> bool {
        let is_active = self.is_active(core, cpu);
        let timer = &mut self.cpus[cpu.index()];
        if timer.pending.is_some_and(|pending| core.timer_has_come(pending)) {
            timer.pending = None;
        }
        if !is_active {
            timer.expires = None;
        }
        if timer.expires.is_some_and(|at| core.timer_has_come(at)) {
            timer.expires = None;
            return true;
        }
        self.ask(core, cpu, token);
        false
    }

    /// The timer of `cpu` is due, and a task of another class runs. Up to 7.0 the reschedule has
    /// stopped it. Since then it interrupts that task, unless another class has started it again.
    pub fn is_stray(&self, core: &mut Core, cpu: CpuId) {
        let rq = core.rq(cpu);
        let is_last = self.cpus[cpu.index()].started == rq.hrtick_started;
        if !self.rule.stops_at_schedule && is_last && rq.curr.is_some() {
            core.work.hrtick_stray = Some(cpu);
        }
    }

    /// Ensures that a timer of the engine expires no later than the tick.
    fn ask(&mut self, core: &mut Core, cpu: CpuId, token: u64) {
        let timer = &mut self.cpus[cpu.index()];
        let Some(at) = timer.expires else { return };
        if timer.pending.is_none_or(|pending| pending > at) {
            timer.pending = Some(at);
            core.start_timer(at, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::{Purpose, Stream};

    const CPU: CpuId = CpuId(0);

    fn timers(rule: HrtickRule) -> (Box<Hrticks>, Core) {
        let machine = Machine::flat(1);
        let core = Core::new(&machine, Vec::new(), Stream::new(1, Purpose::Scheduler, 0));
        (Hrticks::new(rule, &machine), core)
    }

    /// Times of the timers that the engine was asked for.
    fn asked(core: &mut Core) -> Vec<Nanos> {
        std::iter::from_fn(|| core.take_timer()).map(|timer| timer.at).collect()
    }

    #[test]
    fn ten_microseconds_at_least() {
        let (mut timers, mut core) = timers(HrtickRule::LINUX_7_1);
        timers.start(&mut core, CPU, 1, 0);
        assert_eq!(asked(&mut core), [10_000]);
    }

    #[test]
    fn from_7_1_on_a_timer_that_is_near_enough_stays() {
        for (rule, second) in [(HrtickRule::LINUX_7_1, 700_000), (HrtickRule::LINUX_6_12, 705_000)]
        {
            let (mut timers, mut core) = timers(rule);
            timers.start(&mut core, CPU, 700_000, 0);
            timers.start(&mut core, CPU, 705_000, 0);
            core.now = 700_000;
            assert_eq!(timers.comes(&mut core, CPU, 0), second == 700_000, "{rule:?}");
            core.now = second;
            assert_eq!(timers.is_active(&core, CPU), second > 700_000);
            // 5,001 ns are too far.
            timers.start(&mut core, CPU, 20_000, 0);
            timers.start(&mut core, CPU, 25_001, 0);
            core.now = second + 20_000;
            assert!(!timers.comes(&mut core, CPU, 0));
            core.now = second + 25_001;
            assert!(timers.comes(&mut core, CPU, 0));
        }
    }

    /// The engine is not asked again while a timer is under way that comes in time.
    #[test]
    fn one_timer_of_the_engine_serves_many_starts() {
        let (mut timers, mut core) = timers(HrtickRule::LINUX_6_12);
        for step in 0..10 {
            core.now = step * 50_000;
            timers.start(&mut core, CPU, 700_000, 0);
        }
        assert_eq!(asked(&mut core), [700_000]);
        core.now = 700_000;
        assert!(!timers.comes(&mut core, CPU, 0));
        assert_eq!(asked(&mut core), [1_150_000]);
        // An earlier one is needed, and the later one then finds nothing to do.
        timers.start(&mut core, CPU, 100_000, 0);
        assert_eq!(asked(&mut core), [800_000]);
        core.now = 800_000;
        assert!(timers.comes(&mut core, CPU, 0));
        core.now = 1_150_000;
        assert!(!timers.comes(&mut core, CPU, 0));
        assert_eq!(asked(&mut core), []);
    }

    #[test]
    fn a_cpu_that_has_been_idle_has_no_timer() {
        let (mut timers, mut core) = timers(HrtickRule::LINUX_7_1);
        core.now = 1_000;
        timers.start(&mut core, CPU, 700_000, 0);
        assert!(timers.is_active(&core, CPU));
        core.rqs[0].idle_since = 2_000;
        assert!(!timers.is_active(&core, CPU));
        core.now = 701_000;
        assert!(!timers.comes(&mut core, CPU, 0));
        timers.start(&mut core, CPU, 700_000, 0);
        assert!(timers.is_active(&core, CPU));
    }
}
