// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_ext as a scheduling class: the engine's callbacks become those of the scheduler.
//!
//! Source: `DEFINE_SCHED_CLASS(ext)` of Linux kernel/sched/ext.c, 6.18.

use super::consts::{
    DEQ_MOVE, DEQ_NOCLOCK, DEQ_SAVE, DEQ_SLEEP, ENQ_MOVE, ENQ_NOCLOCK, ENQ_RESTORE, ENQ_WAKEUP,
    ExitKind, OPS_ENQ_LAST, OPS_SWITCH_PARTIAL, WAKE_FORK, WAKE_SYNC, WAKE_TTWU,
};
use super::enqueue::Leaves;
use super::ext::Ext;
use super::kernel::{Kernel, TIMER_OF_CORE};
use super::kick::TIMER_KICK;
use super::ops::{Callback, Ops};
use super::options::ExtOptions;
use super::state::{ExtState, Interrupt, Status};
use super::task::{ExtTask, Life, weight};
use super::watchdog::TIMER_WATCHDOG;
use schedlab_model::trace::DispatchQueue;
use schedlab_model::{CgroupSpec, Change, CpuId, Machine, Policy, SchedAttr, TaskId};
use schedlab_sched::boundary::core::PreemptCheck;
use schedlab_sched::boundary::explain::{Explanation, Fact};
use schedlab_sched::{
    Balances, ClassTraits, Core, DequeueFlags, EnqueueFlags, Explain, SchedClass, UserNext,
    WakeFlags,
};

/// The timer of loading.
const TIMER_LOAD: u64 = TIMER_OF_CORE | 2;
/// The timer of unloading.
const TIMER_UNLOAD: u64 = TIMER_OF_CORE | 3;

/// The interrupt that a wake-up is part of: without a waker, a timer's or a device's.
fn interrupt_of(flags: WakeFlags) -> Interrupt {
    let by_task = flags.waker.is_some() || flags.is_fork();
    if by_task { Interrupt::None } else { Interrupt::Hard }
}

/// The class.
pub struct ExtClass {
    ops: Box<dyn Ops>,
    state: ExtState,
    /// Whether it has all tasks except real-time and deadline ones.
    is_full: bool,
    /// First task of each address space, by its number.
    leaders: Vec<Option<TaskId>>,
    /// In an unloading, tasks below this id have been processed.
    unloaded_below: u32,
}

impl ExtClass {
    /// The class of the scheduler `ops`.
    pub fn new(
        ops: Box<dyn Ops>,
        options: ExtOptions,
        machine: &Machine,
        cgroups: &[CgroupSpec],
    ) -> Self {
        let info = ops.info();
        let is_full = info.flags & OPS_SWITCH_PARTIAL == 0;
        let mut state = ExtState::new(info, options, machine, cgroups);
        state.locator = ops.locator();
        Self { ops, state, is_full, leaders: Vec::new(), unloaded_below: 0 }
    }

    /// Whether the scheduler has all tasks except real-time and deadline ones.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The core's state, for observers.
    pub fn state(&self) -> &ExtState {
        &self.state
    }

    #[inline]
    fn with<'a>(&'a mut self, core: &'a mut Core) -> Ext<'a> {
        Ext { ops: self.ops.as_mut(), k: Kernel { state: &mut self.state, core } }
    }

    /// As [`Self::with`], executed on `cpu`, whose run queue is held or not.
    #[inline]
    fn on<'a>(&'a mut self, core: &'a mut Core, cpu: CpuId, is_held: bool) -> Ext<'a> {
        let mut ext = self.with(core);
        ext.on(cpu, is_held);
        ext
    }

    /// The scheduler and the core, executed on `cpu` by the user half.
    pub(super) fn on_user<'a>(&'a mut self, core: &'a mut Core, cpu: CpuId) -> Ext<'a> {
        self.on(core, cpu, false)
    }

    /// The core's state.
    pub(super) fn state_mut(&mut self) -> &mut ExtState {
        &mut self.state
    }

    fn leader_of(&mut self, core: &Core, task: TaskId) -> TaskId {
        let mm = core.task(task).mm as usize;
        if self.leaders.len() <= mm {
            self.leaders.resize(mm + 1, None);
        }
        *self.leaders[mm].get_or_insert(task)
    }

    /// In an unloading, processes the tasks of other classes below `end`.
    fn unload_below(&mut self, core: &mut Core, end: u32) {
        let begin = std::mem::replace(&mut self.unloaded_below, end);
        for p in (begin..end).map(TaskId) {
            if core.task(p).class != self.state.class {
                self.with(core).exit_task(p, false);
            }
        }
    }

    fn enq_flags(&mut self, task: TaskId, flags: EnqueueFlags) -> u64 {
        let bits = self.state.options.core.bits;
        let selected = self.state.selected.take() == Some(task);
        let pairs = [
            (flags.wakeup, ENQ_WAKEUP | ENQ_NOCLOCK),
            (flags.wakeup && selected, bits.cpu_selected),
            (flags.initial, bits.initial | ENQ_NOCLOCK),
            (flags.restore, ENQ_RESTORE | ENQ_NOCLOCK),
            (flags.restore && flags.moved, ENQ_MOVE),
            (flags.head, bits.head),
            (flags.migrated, bits.migrated),
        ];
        pairs.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, bit)| all | bit)
    }
}

impl Explain for ExtClass {
    fn name(&self) -> &'static str {
        "ext"
    }

    fn will_be_asked(&mut self) {
        self.state.keep_notes();
    }

    fn notes(&self, _core: &Core) -> Vec<(&'static str, String)> {
        let ended = self.state.end_text.iter().map(|text| ("scx-disabled", text.clone()));
        let short = self.state.short_text.iter().map(|text| ("scx-short-run", text.clone()));
        ended.chain(short).collect()
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        self.state.explain_pick(core, cpu, into);
    }

    fn explain_task(&self, _core: &Core, task: TaskId) -> Vec<Fact> {
        self.state.task_facts(task)
    }

    fn has_queues(&self) -> bool {
        true
    }

    fn queue_lengths(&self, tell: &mut dyn FnMut(DispatchQueue, u32)) {
        self.state.dsqs.lengths().for_each(|(queue, nr)| tell(queue, nr));
    }
}

impl SchedClass for ExtClass {
    fn owns(&self, _policy: Policy) -> bool {
        false
    }

    fn traits(&self) -> ClassTraits {
        let balances =
            if self.state.options.core.picks_balance { Balances::Never } else { Balances::Always };
        let callbacks = &self.state.info.callbacks;
        ClassTraits {
            balances,
            watches_idle: true,
            has_quiet_ticks: !callbacks.has(Callback::Tick),
            // The kernel tells the scheduler the limits, and does not enforce them itself.
            enforces_cpu_max: callbacks.has(Callback::CgroupInit),
            ..ClassTraits::DEFAULT
        }
    }

    fn takes_over(&self, policy: Policy) -> bool {
        let is_loading = self.state.status == Status::Disabled
            && self.state.options.load_at == 0
            && self.state.exit.is_none();
        let has_tasks =
            is_loading || matches!(self.state.status, Status::Enabling | Status::Enabled);
        has_tasks && (policy == Policy::Ext || (self.is_full && policy.is_fair()))
    }

    fn run_begins(&mut self, core: &mut Core) {
        self.state.class = core.current_class();
        let options = self.state.options;
        if options.unload_at > 0 {
            core.start_timer(options.unload_at, TIMER_UNLOAD);
        }
        if options.load_at > 0 {
            core.start_timer(options.load_at, TIMER_LOAD);
        } else {
            let mut ext = self.on(core, CpuId(0), false);
            ext.load();
            ext.settle();
        }
    }

    fn run_ends(&mut self, core: &mut Core) {
        self.on(core, CpuId(0), false).end_run();
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let tgid = self.leader_of(core, task);
        assert_eq!(self.state.tasks.len(), task.index(), "tasks are announced in order");
        self.state.tasks.push(ExtTask::new(tgid.0));
        self.state.dsqs.add_task();
        if !matches!(self.state.status, Status::Enabled | Status::Enabling) {
            return;
        }
        let cpu = core.task(task).cpu;
        let is_ext = core.task(task).class == self.state.class;
        let mut ext = self.on(core, cpu, false);
        if let Err(what) = ext.init_task(task, true) {
            ext.k.core.fail(format!("{what}: its fork fails"));
        } else if is_ext {
            ext.enable_task(task);
        }
        ext.settle();
    }

    fn task_exited(&mut self, core: &mut Core, task: TaskId) {
        if self.state.task(task).life != Life::None {
            self.state.dead.push(task);
            core.queue_balance_callback(core.task(task).cpu);
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let kind = if flags.is_fork() { WAKE_FORK } else { WAKE_TTWU };
        let wake_flags = kind | if flags.sync { WAKE_SYNC } else { 0 };
        let mut ext = self.on(core, flags.this_cpu, false);
        ext.within(interrupt_of(flags));
        ext.select_cpu(task, prev, wake_flags)
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let enq_flags = self.enq_flags(task, flags);
        let is_wakeup = flags.wakeup || flags.initial;
        let (this_cpu, interrupt) = match is_wakeup {
            true => (core.wake_flags.this_cpu, interrupt_of(core.wake_flags)),
            false => (cpu, Interrupt::None),
        };
        let is_move = flags.migrated && !is_wakeup;
        let mut ext = self.on(core, this_cpu, true);
        ext.within(interrupt);
        ext.k.state.context.rq = Some(cpu);
        ext.enqueue(cpu, task, enq_flags, is_move);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        if flags.special {
            self.state.task_mut(task).exiting = true;
        }
        let move_bit = if flags.moved { DEQ_MOVE } else { 0 };
        let (deq_flags, leaves) = if flags.sleep {
            (DEQ_SLEEP | DEQ_NOCLOCK, Leaves::Off)
        } else if flags.save {
            (DEQ_SAVE | DEQ_NOCLOCK | move_bit, Leaves::Off)
        } else {
            (DEQ_NOCLOCK, Leaves::ToOtherCpu)
        };
        let mut ext = self.on(core, cpu, true);
        ext.dequeue(cpu, task, deq_flags, leaves);
        ext.leave_rest_for(cpu);
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        let mut ext = self.on(core, cpu, true);
        ext.yield_task(curr);
        ext.settle();
    }

    fn wakeup_preempt(
        &mut self,
        _core: &mut Core,
        _cpu: CpuId,
        _task: TaskId,
        _curr: TaskId,
        _flags: WakeFlags,
    ) {
        // Inserting into a local queue with SCX_ENQ_PREEMPT, and kicks, are the only ways.
    }

    fn task_woken(&mut self, core: &mut Core, _cpu: CpuId, _task: TaskId) {
        self.with(core).settle();
    }

    fn balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        if self.state.options.core.picks_balance || self.state.status == Status::Disabled {
            return false;
        }
        // A class between that of the previous task and this one that has work ends the search.
        let prev_class = core.rq(cpu).curr.map_or(self.state.class, |prev| core.task(prev).class);
        let between = usize::from(prev_class)..usize::from(self.state.class);
        if between.into_iter().any(|class| core.rq(cpu).class_nr_running[class] > 0) {
            self.state.cpu_mut(cpu).bal_keep = false;
            return false;
        }
        let mut ext = self.on(core, cpu, true);
        let has_work = ext.balance(cpu);
        ext.leave_rest_for(cpu);
        has_work
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if self.state.status == Status::Disabled {
            return None;
        }
        let mut ext = self.on(core, cpu, true);
        if ext.k.state.options.core.picks_balance {
            ext.balance(cpu);
            ext.leave_rest_for(cpu);
        }
        ext.pick(cpu)
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let mut ext = self.on(core, cpu, true);
        ext.put_prev(cpu, prev, next);
        ext.leave_rest_for(cpu);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, first: bool) {
        let mut ext = self.on(core, cpu, true);
        ext.set_next(task);
        if first {
            ext.leave_rest_for(cpu);
        } else {
            ext.settle();
        }
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        self.on(core, cpu, false).settle();
    }

    fn idle_changed(&mut self, core: &mut Core, cpu: CpuId, idle: bool, again: bool) {
        if matches!(self.state.status, Status::Disabled | Status::Disabling) {
            return;
        }
        if self.state.idle.is_on {
            self.state.idle.set(cpu, idle);
        }
        if self.state.has(Callback::UpdateIdle) && !again && !self.state.bypass {
            let mut ext = self.on(core, cpu, true);
            ext.tell(Callback::UpdateIdle, |ops, k| ops.update_idle(k, cpu, idle));
            ext.leave_rest_for(cpu);
        }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let mut ext = self.on(core, cpu, true);
        ext.within(Interrupt::Hard);
        ext.tick(cpu, curr);
        ext.settle();
    }

    fn quiet_ticks(&self, core: &Core, _cpu: CpuId, curr: Option<TaskId>) -> u64 {
        let Some(curr) = curr else { return u64::MAX };
        Ext::quiet_ticks(&self.state, core.now, core.tick_nsec, curr)
    }

    fn pass_ticks(&mut self, core: &Core, _cpu: CpuId, curr: Option<TaskId>, _nr: u64) {
        if let Some(curr) = curr {
            self.state.charge(core.now, curr);
        }
    }

    fn attr_changed(&mut self, core: &mut Core, task: TaskId, old_class: u8, old: &SchedAttr) {
        let (cpu, own) = (core.task(task).cpu, self.state.class);
        let attr = *core.task(task).attr;
        let mut ext = self.on(core, cpu, true);
        if old_class != own {
            ext.switch_to(task);
            return;
        }
        let new_weight = weight(&attr);
        if new_weight != weight(old) {
            ext.k.state.task(task).entity.set_weight(new_weight);
            ext.tell(Callback::SetWeight, |ops, k| ops.set_weight(k, task, new_weight));
        }
        let known = &ext.k.state.task(task).told_cpus;
        let is_other =
            known.as_ref().is_some_and(|known| known != &ext.k.core.task(task).cpus_allowed);
        if attr.affinity != old.affinity || is_other {
            ext.tell_cpumask(task);
        }
        if attr.cgroup != old.cgroup {
            ext.move_cgroup(task, old.cgroup, attr.cgroup);
        }
    }

    fn cgroup_changed(&mut self, core: &mut Core, cpu: CpuId, change: &Change, old: &CgroupSpec) {
        let group = change.group();
        if self.state.status != Status::Enabled || !self.state.cgroups_ready[group.index()] {
            return;
        }
        let mut ext = self.on(core, cpu, false);
        match change {
            Change::Weight { weight, .. } => {
                if old.weight != *weight {
                    let tell = Callback::CgroupSetWeight;
                    ext.tell(tell, |ops, k| ops.cgroup_set_weight(k, group, *weight));
                }
            }
            Change::CpuMax { cpu_max, .. } => ext.set_bandwidth(group, old.cpu_max, *cpu_max),
            Change::Cpus { .. } => {}
        }
        ext.settle();
    }

    fn switched_from(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        let is_unloading = self.state.status == Status::Disabling;
        if is_unloading {
            self.unload_below(core, task.0);
            self.unloaded_below = task.0 + 1;
        }
        let mut ext = self.on(core, cpu, true);
        if is_unloading {
            ext.exit_task(task, false);
        } else {
            ext.disable_task(task);
        }
        ext.settle();
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        // The class has no opinion; but tasks of a higher class must not wait longer.
        let higher = usize::from(self.state.class);
        let waits = core.rq(cpu).class_nr_running[..higher].iter().any(|nr| *nr > 0);
        let is_queued = core.task(task).on_rq;
        if is_queued && (waits || core.preempt_check(cpu, task) == PreemptCheck::Resched) {
            core.resched_curr(cpu);
        }
        self.with(core).settle();
    }

    fn prio_changed(&mut self, core: &mut Core, _cpu: CpuId, _task: TaskId, _old_prio: i32) {
        self.with(core).settle();
    }

    fn reclassed(&mut self, core: &mut Core) {
        match self.state.status {
            Status::Enabling => {
                let mut ext = self.on(core, CpuId(0), false);
                ext.finish_load();
                ext.settle();
            }
            Status::Disabling => {
                let nr_tasks = self.state.tasks.len() as u32;
                self.unload_below(core, nr_tasks);
                self.on(core, CpuId(0), false).finish_unload();
            }
            Status::Disabled | Status::Enabled => {}
        }
    }

    fn user_step(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) -> Option<UserNext> {
        Some(self.step_of_user(core, cpu, task))
    }

    fn timer(&mut self, core: &mut Core, token: u64) {
        if super::user::is_timer(token) {
            return self.user_timer(core, token);
        }
        let now = core.now;
        let is_enabled = self.state.status == Status::Enabled;
        let mut ext = self.on(core, CpuId(0), false);
        match token {
            TIMER_WATCHDOG if is_enabled => ext.k.check_stalls(),
            TIMER_KICK => ext.k.deliver_late_kicks(),
            TIMER_LOAD => ext.load(),
            TIMER_UNLOAD if is_enabled => {
                ext.k.exit_with(ExitKind::Unreg, 0, String::new());
            }
            token if token & TIMER_OF_CORE == 0 => {
                let set = ext.k.state.timers.get(&token).copied();
                let Some(timer) = set.filter(|timer| timer.at == now) else { return };
                ext.k.state.timers.remove(&token);
                ext.on(timer.cpu, false);
                ext.within(Interrupt::Soft);
                if ext.k.state.live.0 != 0 {
                    ext.call(Callback::Timer, |ops, k| ops.timer(k, token));
                }
            }
            _ => {}
        }
        ext.settle();
    }

    fn is_throttled(&self, core: &Core, task: TaskId) -> bool {
        // Tasks outside of local queues wait for the scheduler. A task that SCX_OPS_ENQ_LAST puts
        // into a local queue while its CPU becomes idle waits there for the next event, as in the
        // kernel.
        let local = self.state.dsqs.local(core.task(task).cpu);
        let waits_elsewhere =
            self.state.task(task).dsq != local || self.state.has_flag(OPS_ENQ_LAST);
        waits_elsewhere && !core.is_running(task)
    }
}
