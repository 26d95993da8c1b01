// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair class of Linux 2.6.24 and 2.6.32: CFS ordered by virtual run time.
//!
//! An entity is a task, or a group's share of a CPU. Its virtual run time advances more slowly the
//! more it weighs. The entity with the least virtual run time runs; the others wait in a tree. A
//! period, which is longer when many are queued, is divided by weight into slices. An entity that
//! has run for longer than its slice is preempted at a tick. A sleeper is placed at most a period
//! (2.6.32: half a period) before the rest, and preempts if its distance exceeds the wakeup
//! granularity. A new task is placed a slice behind.
//!
//! [`rules`] has the differences between the versions. Source: Linux 2.6.24 and 2.6.32.67,
//! kernel/sched{,_fair}.c, sched_features.h, include/linux/topology.h. The model follows a later
//! release of 2.6.32 with its final rules of placement. Virtual times are relative while a task
//! moves, a fork has two steps, and real-time tasks have no weight.
//!
//! Real-time tasks are those of [`crate::rt`] under 2.6.32, with push, pull and throttling. Under
//! 2.6.24 they are those of [`crate::rt::early`] and part of this class, because one function
//! balances both and counts the weight of both.
//!
//! Where the rules are incomplete:
//!
//! - A group of a workload is a control group; cpu.weight 100 is cpu.shares 1024. Under 2.6.24 the
//!   root group is a group like others (with twice the shares if groups are users), and mkdir
//!   refuses groups in groups; here they work as the code would.
//! - Linux reads its clock once per event and lets it run at most a tick ahead; here it is exact.
//! - A task that returns from a real-time policy continues with the virtual time that it had then
//!   (2.6.24), however long ago that was.
//! - Values that the kernel compares as unsigned numbers are compared by their difference, as
//!   elsewhere in the kernel.
//!
//! Left out: HRTICK, power saving, the NO_HZ details of idle CPUs (they balance at ticks of their
//! own), and the serialisation of NUMA balancing. Without `scale_rt_power`, a CPU with real-time
//! tasks has the power of the others.

mod balance;
mod entity;
mod explain;
mod groups;
mod place;
mod queue;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod tunables;
mod wake;
mod weights;

use crate::balance::early::look::rebalance_ticks;
use crate::balance::early::moves::push_running;
use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::{Core, PreemptCheck};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::Options;
use crate::fair::rbtree::{NIL, Node};
use crate::kernels;
use crate::rt::early::{RtQueues, SliceRule};
use crate::rt::queue::MAX_RT_PRIO;
use crate::rt::{RtClass, RtOptions, tunables as rt};
use crate::scheduler::{Claims, Make, Scheduler};
use balance::Balance;
use entity::{CfsRq, CpuFair, Entity, Habits};
use rules::Rules;
use schedlab_model::{
    CgroupSpec, Change, Costs, CpuId, KernelVersion, Machine, Nanos, Policy, SchedAttr, TaskId,
};
use tunables::{TUNABLES_2_6_24, TUNABLES_2_6_32, Values};

const CLAIMS: Claims =
    // An idle CPU compares load averages. If the difference is small, it pulls no task and stays
    // idle.
    Claims { work_conserving: false, starvation_free: true, fair: true, needs_burst: false };

/// Linux 2.6.24.
pub fn linux_2_6_24() -> Scheduler {
    Scheduler {
        name: "linux-2.6.24".into(),
        summary: "Linux 2.6.24: real-time > fair (CFS by vruntime, whole shares on each CPU)"
            .into(),
        source: "Linux 2.6.24, kernel/sched{,_fair}.c; include/linux/topology.h from memory".into(),
        leaves_out:
            "power saving, the limits of the runqueue clock, the refusal of groups in groups; \
                 a program is taken to exec when the launcher releases it"
                .into(),
        claims: CLAIMS,
        preempt: kernels::preempt(KernelVersion::release(2, 6, 24)),
        costs: Costs::DEFAULT,
        tunables: TUNABLES_2_6_24.to_vec(),
        digest: None,
        make: Make::new(|options, machine, cgroups| {
            vec![Box::new(Fair::new(Rules::LINUX_2_6_24, options, machine, cgroups))]
        }),
    }
}

/// Linux 2.6.32.
pub fn linux_2_6_32() -> Scheduler {
    Scheduler {
        name: "linux-2.6.32".into(),
        summary:
            "Linux 2.6.32: real-time > fair (CFS with buddies, gentle sleepers, spread shares)"
                .into(),
        source:
            "Linux 2.6.32.67, kernel/sched{,_fair}.c, sched_features.h, include/linux/topology.h"
                .into(),
        leaves_out: "HRTICK, power saving, control groups of real-time tasks, scale_rt_power, the \
                 details of idle CPUs without ticks; a program is taken to exec when the \
                 launcher releases it"
            .into(),
        preempt: kernels::preempt(KernelVersion::release(2, 6, 32)),
        costs: Costs::DEFAULT,
        tunables: [TUNABLES_2_6_32, rt::TUNABLES].concat(),
        make: Make::new(|options, machine, cgroups| {
            vec![
                Box::new(RtClass::new(&RtOptions::from_options(options), machine)),
                Box::new(Fair::new(Rules::LINUX_2_6_32, options, machine, cgroups)),
            ]
        }),
        ..linux_2_6_24()
    }
}

/// The class.
#[derive(Debug)]
pub struct Fair {
    rules: Rules,
    values: Values,
    nr_cpus: u32,
    /// Entities of groups, then of tasks.
    ents: Vec<Entity>,
    nodes: Vec<Node>,
    /// Averages by task; empty under 2.6.24.
    habits: Vec<Habits>,
    first_task: u32,
    cfs: Vec<CfsRq>,
    /// Index of the queue of CPU 0.
    first_root: u32,
    cpus: Vec<CpuFair>,
    /// Shares and parent of each group.
    groups: Vec<groups::Group>,
    balance: Balance,
    /// Real-time tasks (2.6.24).
    rt: RtQueues,
    /// A task whose change of attributes does not interrupt its run.
    keeps_stretch: Option<TaskId>,
}

impl Fair {
    /// The class of a version for a machine and its control groups; group 0 is the root group.
    pub fn new(rules: Rules, options: &Options, machine: &Machine, cgroups: &[CgroupSpec]) -> Self {
        let nr_cpus = machine.nr_cpus();
        let values = Values::new(&rules, options, nr_cpus);
        let mut fair = Self {
            balance: Balance::new(&rules, machine),
            rt: RtQueues::new(SliceRule::Fixed, nr_cpus, machine.hz),
            rules,
            values,
            nr_cpus,
            ents: Vec::new(),
            nodes: Vec::new(),
            habits: Vec::new(),
            first_task: 0,
            cfs: Vec::new(),
            first_root: 0,
            cpus: vec![CpuFair::default(); nr_cpus as usize],
            groups: Vec::new(),
            keeps_stretch: None,
        };
        fair.make_groups(cgroups);
        fair
    }

    #[inline]
    fn task_entity(&self, task: TaskId) -> u32 {
        self.first_task + task.0
    }

    #[inline]
    fn entity_task(&self, e: u32) -> TaskId {
        TaskId(e - self.first_task)
    }

    #[inline]
    fn is_task(&self, e: u32) -> bool {
        e >= self.first_task
    }

    #[inline]
    fn ent(&self, e: u32) -> &Entity {
        &self.ents[e as usize]
    }

    #[inline]
    fn rq(&self, q: u32) -> &CfsRq {
        &self.cfs[q as usize]
    }

    /// The queue of `cpu` itself.
    #[inline]
    fn root_queue(&self, cpu: CpuId) -> u32 {
        self.first_root + cpu.0
    }

    /// The queue of `task`'s group on `cpu`.
    #[inline]
    fn queue_of(&self, core: &Core, task: TaskId, cpu: CpuId) -> u32 {
        core.task(task).attr.cgroup.0 * self.nr_cpus + cpu.0
    }

    /// Averages of `e`; groups have none.
    fn habits(&self, e: u32) -> Habits {
        match e.checked_sub(self.first_task) {
            Some(task) => self.habits[task as usize],
            None => Habits::default(),
        }
    }

    fn habits_mut(&mut self, e: u32) -> &mut Habits {
        &mut self.habits[(e - self.first_task) as usize]
    }

    /// Whether `task` is a fair task now.
    #[inline]
    fn is_fair(&self, core: &Core, task: TaskId) -> bool {
        core.task(task).class == core.class_of(Policy::Normal) && !Self::is_rt(core, task)
    }

    /// Whether `task` is a real-time task now, possibly only through a mutex that it holds.
    #[inline]
    fn is_rt(core: &Core, task: TaskId) -> bool {
        core.task(task).prio < MAX_RT_PRIO as i32
    }

    /// Applies attributes to an entity that is on no queue.
    fn apply_attr(&mut self, e: u32, attr: &SchedAttr) {
        let load = weights::of_task(attr, &self.rules);
        let se = &mut self.ents[e as usize];
        se.load = load;
        se.is_idle = attr.policy == Policy::Idle;
        se.is_normal = attr.policy == Policy::Normal;
    }

    /// Compares queued `task` with the running task of its CPU, of any class.
    fn check_preempt_any(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        match core.preempt_check(cpu, task) {
            PreemptCheck::SameClass(curr) => {
                self.check_preempt(core, cpu, task, curr, WakeFlags::TIMER);
            }
            PreemptCheck::Resched => core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
    }
}

impl SchedClass for Fair {
    fn owns(&self, policy: Policy) -> bool {
        policy.is_fair() || (policy.is_rt() && !self.rules.is_later)
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits { has_quiet_ticks: true, cpuset_forgets_affinity: true, ..ClassTraits::DEFAULT }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let e = self.task_entity(task);
        assert_eq!(e as usize, self.ents.len(), "tasks are announced in order of their ids");
        let attr = *core.task(task).attr;
        let q = self.queue_of(core, task, core.task(task).cpu);
        let parent = self.rq(q).se;
        let depth = if parent == NIL { 0 } else { self.ent(parent).depth + 1 };
        let load = weights::of_task(&attr, &self.rules);
        let mut se = Entity::new(load, q, NIL, parent, depth);
        se.is_relative = self.rules.is_later && !attr.policy.is_fair();
        self.ents.push(se);
        self.nodes.push(Node::NEW);
        self.apply_attr(e, &attr);
        if self.rules.is_later {
            let avg_wakeup = self.values.wakeup_granularity;
            self.habits.push(Habits { avg_wakeup, ..Habits::default() });
        }
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let e = self.task_entity(task);
        if flags.restore {
            let attr = *core.task(task).attr;
            self.apply_attr(e, &attr);
        }
        let q = self.queue_of(core, task, cpu);
        self.enter_queue(e, q);
        if Self::is_rt(core, task) {
            self.rt.enqueue(core, cpu, task);
            core.add_nr_running(cpu, 1);
            return;
        }
        if flags.initial && !self.rules.is_later {
            self.place_new(core, cpu, task);
        }
        let counts_habits = self.rules.is_later && flags.wakeup;
        if counts_habits {
            let ran = self.ent(e).sum_exec_runtime;
            self.habits_mut(e).start_runtime = ran;
        }
        self.enqueue_levels(core.now, cpu, e, flags.wakeup);
        core.add_nr_running(cpu, 1);
        if counts_habits
            && let Some(waker) = core.wake_flags.waker.filter(|waker| self.is_fair(core, *waker))
        {
            self.note_wakeup(self.task_entity(waker));
        }
        if self.nr_cpus > 1 && flags.wakeup {
            self.balance.not_idle(&self.values, core.now, cpu);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        let e = self.task_entity(task);
        if !self.ent(e).on_rq {
            self.rt.dequeue(task);
            core.sub_nr_running(cpu, 1);
            return true;
        }
        if self.rules.is_later && flags.sleep {
            self.note_sleep(e);
        }
        self.dequeue_levels(core.now, cpu, e, flags.sleep);
        core.sub_nr_running(cpu, 1);
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        match core.rq(cpu).curr {
            Some(curr) if Self::is_rt(core, curr) => self.rt.requeue(curr),
            _ => self.do_yield(core, cpu),
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        flags: WakeFlags,
    ) {
        self.check_preempt(core, cpu, task, curr, flags);
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if self.balance.is_pushing(cpu) {
            return None;
        }
        match self.rt.first(cpu) {
            None => self.pick(core, cpu),
            first => first,
        }
    }

    fn put_prev_task(&mut self, core: &mut Core, _cpu: CpuId, prev: TaskId, _: Option<TaskId>) {
        self.put_prev(core.now, self.task_entity(prev));
    }

    fn set_next_task(&mut self, core: &mut Core, _cpu: CpuId, task: TaskId, _first: bool) {
        let e = self.task_entity(task);
        let keeps_stretch = self.keeps_stretch.take() == Some(task);
        if Self::is_rt(core, task) {
            return;
        }
        let before = self.ent(e).prev_sum_exec_runtime;
        self.set_next(core.now, e);
        // sched_setscheduler() requeues the task and picks it again; setpriority() does not.
        if keeps_stretch {
            self.ents[e as usize].prev_sum_exec_runtime = before;
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        self.select_cpu(core, task, prev, flags)
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        self.nr_cpus > 1 && !self.balance.is_pushing(cpu) && self.idle_balance(core, cpu)
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        if self.nr_cpus > 1 {
            rebalance_ticks(self, core, cpu);
        }
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        push_running(self, core, cpu);
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        if Self::is_rt(core, curr) {
            self.rt.tick(core, cpu, curr);
            return;
        }
        let mut e = self.task_entity(curr);
        while e != NIL {
            self.entity_tick(core, cpu, self.ent(e).cfs, e);
            e = self.ent(e).parent;
        }
    }

    fn quiet_ticks(&self, core: &Core, cpu: CpuId, curr: Option<TaskId>) -> u64 {
        match curr.map_or(0, |curr| self.quiet_ticks_of(core, curr)) {
            nr if nr > 0 && self.nr_cpus > 1 => nr.min(self.quiet_balance_ticks(core, cpu)),
            nr => nr,
        }
    }

    fn pass_ticks(&mut self, core: &Core, cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr.filter(|curr| !Self::is_rt(core, *curr)) {
            self.pass_ticks_of(core, curr, nr);
        }
        if self.nr_cpus > 1 {
            self.pass_balance_ticks(core, cpu, nr);
        }
    }

    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        if self.rules.is_later {
            self.task_fork_later(core, cpu, task);
        } else if let Some(parent) = parent {
            self.rt.fork(task, parent);
        }
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if !core.task(task).on_rq {
            let attr = *core.task(task).attr;
            self.apply_attr(self.task_entity(task), &attr);
        } else if core.is_running(task) {
            core.resched_curr(cpu);
        } else {
            self.check_preempt_any(core, cpu, task);
        }
    }

    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, old_prio: i32) {
        let prio = core.task(task).prio;
        if !core.task(task).on_rq {
            return;
        }
        if core.is_running(task) {
            if prio > old_prio {
                core.resched_curr(cpu);
            }
        } else if prio.min(old_prio) < MAX_RT_PRIO as i32 {
            self.check_preempt_any(core, cpu, task);
        } else if prio < old_prio {
            core.resched_curr(cpu);
        }
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        let old = *core.task(task).attr;
        let e = self.task_entity(task);
        self.apply_attr(e, attr);
        if old.cgroup != attr.cgroup {
            let q = attr.cgroup.0 * self.nr_cpus + core.task(task).cpu.0;
            if self.rules.is_later && !self.ent(e).is_relative {
                self.enter_queue(e, q);
            } else {
                self.enter_group(e, q);
            }
        }
        let same = (old.policy, old.cgroup) == (attr.policy, attr.cgroup);
        self.keeps_stretch = same.then_some(task);
    }

    fn cgroup_changed(&mut self, core: &mut Core, _cpu: CpuId, change: &Change, _old: &CgroupSpec) {
        if let Change::Weight { group, weight } = change {
            self.set_group_shares(core, group.0, weights::shares_of(*weight));
        }
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        let cpu = core.task(task).cpu;
        if Self::is_rt(core, task) {
            return self.rt.get_rr_interval(core, task);
        }
        if self.rq(self.root_queue(cpu)).load == 0 {
            return 0;
        }
        let e = self.task_entity(task);
        let ticks = self.slice(self.ent(e).cfs, e) / core.tick_nsec;
        ticks * core.tick_nsec
    }
}
