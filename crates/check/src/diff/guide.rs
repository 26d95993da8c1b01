// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that are asked for their choice and then follow that of another run.
//!
//! A [`Guided`] class passes every callback to the class that it wraps, so that the class keeps its
//! own books: its virtual times, lags, queues. Only the answers of `pick_task` and `select_task_rq`
//! are those of the other run. The kernel's core scheduling relies on the same contract: a class
//! may be told to run another task than it has picked.

use schedlab_model::program::SchedTunable;
use schedlab_model::{CgroupSpec, Change, CpuId, Nanos, Policy, SchedAttr, SwitchOut, TaskId};
use schedlab_sched::boundary::core::TaskState;
use schedlab_sched::boundary::explain::{Explanation, Fact};
use schedlab_sched::{
    BandwidthStats, ClassTraits, Core, DequeueFlags, EnqueueFlags, Explain, SchedClass, WakeFlags,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// How often the guided scheduler agrees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Decisions: picks of a CPU with two or more tasks, the running one included.
    pub nr_decisions: u64,
    /// Both switch at this time, to different tasks.
    pub nr_other_task: u64,
    /// Only the first scheduler preempts the running task at this time.
    pub nr_only_first: u64,
    /// Only the guided scheduler would preempt the running task at this time.
    pub nr_only_second: u64,
}

impl Counts {
    /// Decisions in which the two disagree.
    pub const fn nr_differing(&self) -> u64 {
        self.nr_other_task + self.nr_only_first + self.nr_only_second
    }
}

/// A switch of the other run that is to be followed.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub prev: Option<TaskId>,
    pub next: Option<TaskId>,
    pub out: SwitchOut,
}

/// What the guided classes follow, and how often they agree.
#[derive(Debug, Default)]
pub struct Guide {
    /// Switches of the present time, by CPU.
    pub orders: Vec<VecDeque<Order>>,
    /// CPUs of the tasks that wake or are new at the present time.
    pub places: BTreeMap<TaskId, CpuId>,
    /// Whether the classes did not request the present reschedule.
    pub is_unasked: bool,
    pub counts: Counts,
    /// Why the classes cannot follow any further.
    pub stopped: Option<String>,
    /// The task that the present pick must give.
    target: Option<TaskId>,
    /// What the classes would pick.
    own: Option<TaskId>,
}

pub type SharedGuide = Arc<Mutex<Guide>>;

/// The guide, even after a panic.
pub fn locked(guide: &SharedGuide) -> MutexGuard<'_, Guide> {
    guide.lock().unwrap_or_else(|broken| broken.into_inner())
}

impl Guide {
    pub fn stop(&mut self, why: String) {
        self.stopped.get_or_insert(why);
    }

    /// A pick of `cpu` begins: finds what the other run does here.
    fn begin(&mut self, core: &Core, cpu: CpuId) {
        let prev = core.rq(cpu).curr;
        let stays = prev.filter(|prev| {
            let task = core.task(*prev);
            task.on_rq && !task.sched_delayed && task.state == TaskState::Running
        });
        let orders = &mut self.orders[cpu.index()];
        let is_due = orders.front().is_some_and(|order| {
            order.prev == prev && (order.out.is_voluntary() == (prev.is_some() && stays.is_none()))
        });
        self.own = None;
        self.target = match is_due {
            true => orders.pop_front().and_then(|order| order.next),
            false => stays,
        };
        if !is_due && prev.is_some() && stays.is_none() {
            self.stop("its running task sleeps at another time".into());
        }
    }

    /// A pick is done: `task` runs on `cpu`.
    fn end(&mut self, core: &Core, cpu: CpuId, task: TaskId) {
        if core.rq(cpu).nr_running < 2 {
            return;
        }
        let keeps = core.rq(cpu).curr == Some(task);
        self.counts.nr_decisions += 1;
        let would_keep = self.own.is_some() && self.own == core.rq(cpu).curr;
        if !keeps && (self.is_unasked || would_keep) {
            self.counts.nr_only_first += 1;
        } else if self.own != Some(task) {
            match keeps {
                true => self.counts.nr_only_second += 1,
                false => self.counts.nr_other_task += 1,
            }
        }
    }
}

/// A class that follows.
pub struct Guided {
    pub class: Box<dyn SchedClass>,
    pub guide: SharedGuide,
    /// Whether it is the class of sched_ext, whose tasks wait in queues of the BPF scheduler, and
    /// whose balancing is a part of the pick: it asks the BPF scheduler to dispatch.
    pub dispatches: bool,
}

impl Explain for Guided {
    fn name(&self) -> &'static str {
        self.class.name()
    }

    fn notes(&self, core: &Core) -> Vec<(&'static str, String)> {
        self.class.notes(core)
    }

    fn bandwidth_stats(
        &self,
        core: &Core,
        group: schedlab_model::CgroupId,
    ) -> Option<BandwidthStats> {
        self.class.bandwidth_stats(core, group)
    }

    fn explain_pick(&self, core: &Core, cpu: CpuId, into: &mut Explanation) {
        self.class.explain_pick(core, cpu, into);
    }

    fn explain_preempt(&self, core: &Core, woken: TaskId, curr: TaskId) -> Vec<Fact> {
        self.class.explain_preempt(core, woken, curr)
    }

    fn vruntime(&self, core: &Core, task: TaskId) -> Option<i64> {
        self.class.vruntime(core, task)
    }

    fn explain_task(&self, core: &Core, task: TaskId) -> Vec<Fact> {
        self.class.explain_task(core, task)
    }
}

impl Guided {
    /// Whether the class may balance load. With several CPUs it may not: tasks are where the other
    /// run has them. With one CPU it moves none, and may keep averages that its choices need.
    fn balances(&self, core: &Core) -> bool {
        self.dispatches || core.nr_cpus() == 1
    }
}

impl SchedClass for Guided {
    fn balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        self.balances(core) && self.class.balance(core, cpu)
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        if self.balances(core) {
            self.class.balance_callback(core, cpu);
        }
    }

    fn task_woken(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if self.balances(core) {
            self.class.task_woken(core, cpu, task);
        }
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        if self.balances(core) {
            self.class.tick_balance(core, cpu);
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let class = core.current_class();
        let mut guide = locked(&self.guide);
        if class == 0 {
            guide.begin(core, cpu);
        }
        let (target, has_own) = (guide.target, guide.own.is_some());
        drop(guide);
        if !has_own {
            let own = self.class.pick_task(core, cpu);
            locked(&self.guide).own = own;
        }
        let task = target.filter(|task| core.task(*task).class == class)?;
        let mut guide = locked(&self.guide);
        // A task that was not dispatched may run: core scheduling does the same.
        if !self.dispatches && self.class.is_throttled(core, task) {
            guide.stop("it throttles the task that A runs".into());
        }
        if core.task(task).cpu != cpu || !core.task(task).on_rq || core.task(task).sched_delayed {
            guide.stop("the task that A runs is not on this CPU's queue".into());
        }
        guide.end(core, cpu, task);
        match guide.stopped {
            Some(_) => guide.own.filter(|own| core.task(*own).class == class),
            None => Some(task),
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        let own = self.class.select_task_rq(core, task, prev, flags);
        // Not counted: without load balancing the class does not see the load as it would.
        locked(&self.guide).places.get(&task).copied().unwrap_or(own)
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits { has_quiet_ticks: false, ..self.class.traits() }
    }

    fn owns(&self, policy: Policy) -> bool {
        self.class.owns(policy)
    }

    fn takes_over(&self, policy: Policy) -> bool {
        self.class.takes_over(policy)
    }

    fn serves(&self, policy: Policy) -> bool {
        self.class.serves(policy)
    }

    fn is_changed_by(&self, core: &Core, task: TaskId, attr: &SchedAttr) -> bool {
        self.class.is_changed_by(core, task, attr)
    }

    fn admit(&mut self, core: &Core, task: TaskId, attr: &SchedAttr) -> Result<(), String> {
        self.class.admit(core, task, attr)
    }

    fn run_begins(&mut self, core: &mut Core) {
        self.class.run_begins(core);
    }

    fn run_ends(&mut self, core: &mut Core) {
        self.class.run_ends(core);
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        self.class.task_new(core, task);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.class.enqueue_task(core, cpu, task, flags);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        self.class.dequeue_task(core, cpu, task, flags)
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        self.class.yield_task(core, cpu);
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    ) {
        self.class.wakeup_preempt(core, cpu, task, curr, flags);
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        self.class.put_prev_task(core, cpu, prev, next);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, first: bool) {
        self.class.set_next_task(core, cpu, task, first);
    }

    fn idle_changed(&mut self, core: &mut Core, cpu: CpuId, idle: bool, again: bool) {
        self.class.idle_changed(core, cpu, idle, again);
    }

    fn migrate_task_rq(&mut self, core: &mut Core, task: TaskId, cpu: CpuId) {
        self.class.migrate_task_rq(core, task, cpu);
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.class.task_tick(core, cpu, curr);
    }

    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        self.class.task_fork(core, cpu, task, parent);
    }

    fn task_dead(&mut self, core: &mut Core, task: TaskId) {
        self.class.task_dead(core, task);
    }

    fn task_exited(&mut self, core: &mut Core, task: TaskId) {
        self.class.task_exited(core, task);
    }

    fn attr_changed(&mut self, core: &mut Core, task: TaskId, old_class: u8, old: &SchedAttr) {
        self.class.attr_changed(core, task, old_class, old);
    }

    fn reclassed(&mut self, core: &mut Core) {
        self.class.reclassed(core);
    }

    fn switched_from(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.class.switched_from(core, cpu, task);
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.class.switched_to(core, cpu, task);
    }

    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, old_prio: i32) {
        self.class.prio_changed(core, cpu, task, old_prio);
    }

    fn lend(&mut self, core: &Core, task: TaskId, donor: Option<TaskId>) {
        self.class.lend(core, task, donor);
    }

    fn waiter_key(&self, task: TaskId) -> Nanos {
        self.class.waiter_key(task)
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        self.class.attr_changing(core, task, attr);
    }

    fn tunable_changed(&mut self, core: &mut Core, tunable: SchedTunable, value: u64) {
        self.class.tunable_changed(core, tunable, value);
    }

    fn cgroup_changed(&mut self, core: &mut Core, cpu: CpuId, change: &Change, old: &CgroupSpec) {
        self.class.cgroup_changed(core, cpu, change, old);
    }

    fn timer(&mut self, core: &mut Core, token: u64) {
        self.class.timer(core, token);
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        self.class.get_rr_interval(core, task)
    }

    fn is_throttled(&self, core: &Core, task: TaskId) -> bool {
        self.class.is_throttled(core, task)
    }
}
