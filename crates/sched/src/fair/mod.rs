// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair class: SCHED_NORMAL, SCHED_BATCH and SCHED_IDLE, with control groups.
//!
//! One class for all kernel versions: [`rules::Rules`] selects the algorithm (CFS or EEVDF) and its
//! details. State is in vectors ([`entity`]). The code is in files by topic. [`queue`] has enqueue
//! and dequeue through the levels of groups; `cfs` and `eevdf` have placement, pick and preemption.
//! `bandwidth` has cpu.max; [`load`] has load averages and shares of groups; [`access`] serves CPU
//! selection and load balancing. The others are [`pelt`] and `hrtick`.
//!
//! Source: Linux kernel/sched/fair.c, 6.1.158, 6.6, 6.12.0, 6.12.63, 6.18.2, 7.1.5, 7.2.9. Left
//! out: core scheduling, NUMA balancing, cpu.idle groups, utilisation estimates (util_est) and
//! clamps, and from 7.2 on the preference of a process's threads for one cache (SCHED_CACHE).

pub mod access;
mod audit;
pub mod average;
mod bandwidth;
mod cfs;
mod eevdf;
#[cfg(test)]
mod eevdf_tests;
pub mod entity;
mod explain;
pub mod features;
mod hrtick;
pub mod load;
pub mod pelt;
pub mod queue;
pub mod rbtree;
mod root;
pub mod rules;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod tunables;
mod util_est;
pub mod weights;
pub mod wmult;

use crate::balance::{BalanceOptions, Balancer, FairQueues, kicked_by};
use crate::boundary::class::{ClassTraits, SchedClass};
use crate::boundary::core::{Core, PreemptCheck, TOUCHED_MIN_CPUS};
use crate::boundary::explain::StepLog;
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::hrtick::Hrticks;
use crate::boundary::options::Options;
use bandwidth::Bandwidth;
use entity::{CfsRq, CpuFair, Entity, TaskGroup};
use rbtree::{NIL, Node, before};
use rules::{Algorithm, Rules};
use schedlab_model::program::{SchedFeature, SchedTunable};
use schedlab_model::{
    CgroupSpec, Change, CpuId, CpuMask, CpuMax, Machine, Nanos, Policy, SchedAttr, TaskId,
};
use tunables::FairTunables;
use weights::{LoadWeight, NICE_0_LOAD, shares_of};

/// Bounds of a custom slice (include/linux/sched.h, __setparam_fair).
const CUSTOM_SLICE: std::ops::RangeInclusive<Nanos> = 100_000..=100_000_000;

/// The properties of a wake-up that the check for preemption uses.
#[derive(Clone, Copy, Default, Debug)]
struct Wake {
    is_fork: bool,
    /// Whether the waker is about to sleep (WF_SYNC).
    is_sync: bool,
}

/// The class.
#[derive(Debug)]
pub struct FairClass {
    rules: Rules,
    /// The rules without features that are switched, and the options, to switch others.
    switchable: Option<Box<(Rules, Options)>>,
    tunables: FairTunables,
    nr_cpus: u32,
    /// Entities; see [`entity`].
    ents: Vec<Entity>,
    /// Tree nodes of the entities.
    nodes: Vec<Node>,
    /// Queues.
    cfs: Vec<CfsRq>,
    /// Groups.
    groups: Vec<TaskGroup>,
    /// CPUs.
    cpus: Vec<CpuFair>,
    /// Index of task 0's entity.
    first_task: u32,
    /// Placement and load balancing; taken out while it works on the queues.
    balancer: Option<Box<Balancer>>,
    /// Bandwidth control, if some group has a limit.
    bandwidth: Option<Box<Bandwidth>>,
    /// High-resolution ticks, with the feature HRTICK.
    hrtick: Option<Box<Hrticks>>,
    /// Whether either of the two exists, so that the common case needs one test.
    has_extras: bool,
    /// CPUs whose figures have changed; see [`FairQueues::take_touched`].
    touched: CpuMask,
    tracks_touched: bool,
    /// Whether some task is or was SCHED_IDLE.
    has_sched_idle: bool,
    /// Whether some task has asked for a slice.
    has_slices: bool,
    /// What the class did since the last explained pick, if an observer asks.
    audit: Option<Box<StepLog>>,
    /// Whether the class is audited or has a bug on purpose.
    is_odd: bool,
    /// Whether there are neither limits of groups nor oddities, so tasks at the root may take the
    /// short paths.
    is_plain: bool,
}

impl FairClass {
    /// The class for a machine and its control groups; group 0 is the root group.
    pub fn new(rules: Rules, options: &Options, machine: &Machine, cgroups: &[CgroupSpec]) -> Self {
        let nr_cpus = machine.nr_cpus();
        let tunables = FairTunables::new(&rules, options, nr_cpus);
        let waiting = rules.timeline();
        let mut ents: Vec<Entity> = Vec::new();
        let mut cfs: Vec<CfsRq> =
            (0..nr_cpus).map(|cpu| CfsRq::new(0, cpu, NIL, waiting.clone())).collect();
        for (group, spec) in cgroups.iter().enumerate().skip(1) {
            for cpu in 0..nr_cpus {
                let parent_q = spec.parent.0 * nr_cpus + cpu;
                let my_q = group as u32 * nr_cpus + cpu;
                let parent = cfs[parent_q as usize].se;
                let depth = if parent == NIL { 0 } else { ents[parent as usize].depth + 1 };
                let load = rules.weight_of(LoadWeight::of_load(NICE_0_LOAD));
                let mut se = Entity::new(load, parent_q, my_q, parent, depth);
                se.slice = tunables.base_slice_ns;
                cfs.push(CfsRq::new(group as u32, cpu, ents.len() as u32, waiting.clone()));
                ents.push(se);
            }
        }
        if rules.algorithm == Algorithm::Cfs && machine.set_up_ns > 0 {
            // Tasks and groups have slept while their queues moved on, so that they begin where
            // sleepers do (place_entity), not where new ones do.
            for rq in &mut cfs {
                rq.min_vruntime = rq.min_vruntime.wrapping_add(2 * tunables.latency_ns);
            }
        }
        let cpu = CpuFair {
            tasks_head: NIL,
            tasks_tail: NIL,
            idle_stamp: None,
            avg_idle: 2 * tunables.migration_cost_ns,
            max_idle_balance_cost: tunables.migration_cost_ns,
            util_est: 0,
        };
        let balance = BalanceOptions {
            rules: rules.balance,
            features: rules.features.balance,
            migration_cost: tunables.migration_cost_ns,
            nr_migrate: tunables.nr_migrate,
            newidle_cost: machine.costs.newidle_ns,
            newidle_cpu_cost: machine.costs.newidle_cpu_ns,
        };
        let groups = cgroups.iter().map(|spec| TaskGroup { shares: shares_of(spec), load_avg: 0 });
        let bandwidth = Bandwidth::new(&rules, tunables.bandwidth_slice_ns, cgroups, nr_cpus);
        let hrtick = rules.features.hrtick.then(|| Hrticks::new(rules.hrtick, machine));
        Self {
            rules,
            switchable: None,
            tunables,
            nr_cpus,
            nodes: vec![Node::NEW; ents.len()],
            first_task: ents.len() as u32,
            ents,
            cfs,
            groups: groups.collect(),
            cpus: vec![cpu; nr_cpus as usize],
            balancer: Some(Box::new(Balancer::new(balance, machine))),
            touched: CpuMask::first(nr_cpus),
            tracks_touched: nr_cpus >= TOUCHED_MIN_CPUS,
            has_sched_idle: false,
            has_slices: false,
            has_extras: bandwidth.is_some() || hrtick.is_some(),
            audit: None,
            is_odd: rules.bug.is_some(),
            is_plain: bandwidth.is_none() && rules.bug.is_none(),
            bandwidth,
            hrtick,
        }
    }

    /// The class with the features of `options`, which tasks may switch. `rules` are those of the
    /// version, as without features.
    pub fn with_switches(
        rules: Rules,
        options: &Options,
        machine: &Machine,
        cgroups: &[CgroupSpec],
    ) -> Self {
        let class = Self::new(rules.with_features(options), options, machine, cgroups);
        Self { switchable: Some(Box::new((rules, options.clone()))), ..class }
    }

    /// Switches a feature. What is queued stays as it is, as in the kernel, which reads a feature
    /// where it needs it.
    fn switch(&mut self, feature: SchedFeature, value: u64) {
        let Some(switchable) = &mut self.switchable else { return };
        let (rules, options) = &mut **switchable;
        if options.replace(feature.name(), value) {
            self.rules = rules.with_features(options);
        }
        let features = self.rules.features.balance;
        self.with_balancer(|balancer, _| balancer.set_features(features));
    }

    /// Runs `work` of the balancer on the queues.
    fn with_balancer<T>(&mut self, work: impl FnOnce(&mut Balancer, &mut Self) -> T) -> T {
        let mut balancer = self.balancer.take().expect("the balancer does not call itself");
        let result = work(&mut balancer, self);
        self.balancer = Some(balancer);
        result
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The tunables in force.
    pub fn tunables(&self) -> &FairTunables {
        &self.tunables
    }

    /// Whether the running task of `cpu` is about to be pushed to another CPU.
    #[inline]
    fn is_pushing(&self, cpu: CpuId) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.is_pushing(cpu))
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
    fn ent_mut(&mut self, e: u32) -> &mut Entity {
        &mut self.ents[e as usize]
    }

    #[inline]
    fn rq(&self, q: u32) -> &CfsRq {
        &self.cfs[q as usize]
    }

    #[inline]
    fn rq_mut(&mut self, q: u32) -> &mut CfsRq {
        &mut self.cfs[q as usize]
    }

    /// Records a change in the figures of queue `q`, and so of its CPU if it is a root queue.
    #[inline]
    fn touch(&mut self, q: u32) {
        if self.tracks_touched {
            self.note_touched(q);
        }
    }

    // Not inlined, because most machines are small.
    #[cold]
    fn note_touched(&mut self, q: u32) {
        if q < self.nr_cpus {
            self.touched.set(CpuId(q));
        }
    }

    /// The queue of `task`'s group on `cpu`.
    fn queue_of(&self, core: &Core, task: TaskId, cpu: CpuId) -> u32 {
        core.task(task).attr.cgroup.0 * self.nr_cpus + cpu.0
    }

    /// The weight of a task with these attributes.
    fn task_load(&self, attr: &SchedAttr) -> LoadWeight {
        self.rules.weight_of(LoadWeight::of_task(attr))
    }

    /// Applies attributes: weight, idle, custom slice (set_load_weight, __setparam_fair).
    fn apply_attr(&mut self, core: &mut Core, e: u32, attr: &SchedAttr) {
        let load = self.task_load(attr);
        if self.ent(e).load != load {
            if self.is_odd {
                self.reweight_odd(core, e, load, attr.policy == Policy::Idle);
            } else {
                self.reweight_entity(core, e, load);
            }
        }
        self.set_parameters(e, attr);
    }

    /// A task comes from another class, which has no weights. Its weight changed there without its
    /// lag (set_load_weight calls reweight_task of the class that the task is in). The kernel keeps
    /// its load average, too, which so grows by 341 each time that a real-time task becomes
    /// SCHED_IDLE; here it changes with the weight.
    fn take_attr(&mut self, e: u32, attr: &SchedAttr) {
        let load = self.task_load(attr);
        let se = self.ent_mut(e);
        if se.load != load {
            let avg = se.avg.settled();
            avg.load_avg = avg.load_avg * load.scaled / se.load.scaled.max(1);
            se.load = load;
        }
        self.set_parameters(e, attr);
    }

    /// Policy and slice of a task (__setparam_fair).
    fn set_parameters(&mut self, e: u32, attr: &SchedAttr) {
        let base_slice = self.tunables.base_slice_ns;
        let custom = self.rules.custom_slice;
        self.has_sched_idle |= attr.policy == Policy::Idle;
        let se = self.ent_mut(e);
        se.idle = attr.policy == Policy::Idle;
        se.normal = attr.policy == Policy::Normal;
        if matches!(attr.policy, Policy::Normal | Policy::Batch) {
            let asks = custom && attr.slice_ns.is_some();
            se.custom_slice = asks;
            se.slice = match attr.slice_ns {
                Some(slice) if custom => slice.clamp(*CUSTOM_SLICE.start(), *CUSTOM_SLICE.end()),
                _ => base_slice,
            };
            if asks && !std::mem::replace(&mut self.has_slices, true) {
                for rq in &mut self.cfs {
                    rq.waiting.keep_shape(&mut self.nodes);
                }
            }
        }
    }

    /// Walks up from both entities to their common queue; returns the two there (find_matching_se).
    #[inline(always)]
    fn matching(&self, a: u32, b: u32) -> (u32, u32) {
        // Numbers of queues differ from level to level.
        if self.ent(a).cfs == self.ent(b).cfs { (a, b) } else { self.matching_above(a, b) }
    }

    #[inline(never)]
    fn matching_above(&self, mut a: u32, mut b: u32) -> (u32, u32) {
        while self.ent(a).depth > self.ent(b).depth {
            a = self.ent(a).parent;
        }
        while self.ent(b).depth > self.ent(a).depth {
            b = self.ent(b).parent;
        }
        while self.ent(a).cfs != self.ent(b).cfs {
            a = self.ent(a).parent;
            b = self.ent(b).parent;
        }
        (a, b)
    }

    /// Compares a queued task with the running task of its CPU, of any class (wakeup_preempt).
    fn check_preempt_any(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        match core.preempt_check(cpu, task) {
            PreemptCheck::SameClass(curr) => {
                self.check_preempt(core, cpu, task, curr, Wake::default());
            }
            PreemptCheck::Resched => core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
    }

    fn check_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        wake: Wake,
    ) {
        let (se, pse) = (self.task_entity(curr), self.task_entity(task));
        if se == pse {
            return;
        }
        if self.rules.features.next_buddy && !wake.is_fork {
            self.nominate_buddy(se, pse);
        }
        if core.rq(cpu).need_resched || self.is_hierarchy_throttled(self.ent(pse).cfs) {
            return;
        }
        match self.rules.algorithm {
            Algorithm::Cfs => self.check_preempt_cfs(core, cpu, se, pse),
            _ => self.check_preempt_eevdf(core, cpu, (se, pse), wake),
        }
    }

    /// Handles `pse` waking while `se` runs: `pse` should run next (NEXT_BUDDY, up to 6.18). CFS
    /// requires a crowded queue.
    #[cold]
    fn nominate_buddy(&mut self, se: u32, pse: u32) {
        let may = match self.rules.algorithm {
            Algorithm::Cfs => self.rq(self.ent(se).cfs).nr_queued >= self.tunables.nr_latency,
            _ => self.rules.wakeup == rules::Wakeup::ByDeadline,
        };
        if may && !self.is_hierarchy_throttled(self.ent(pse).cfs) {
            self.set_next_buddy(pse);
        }
    }
}

impl SchedClass for FairClass {
    fn owns(&self, policy: Policy) -> bool {
        // Without a sched_ext scheduler, SCHED_EXT tasks are fair tasks.
        policy.is_fair() || policy == Policy::Ext
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits {
            acts_without_tasks: false,
            enforces_cpu_max: true,
            follows_tunables: true,
            group_moves_resched: true,
            spins_on_owner: true,
            wakeups_stop_clock: true,
            cpuset_forgets_affinity: self.rules.algorithm == Algorithm::Cfs,
            takes_turns: true,
            ..ClassTraits::DEFAULT
        }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let e = self.task_entity(task);
        assert_eq!(e as usize, self.ents.len(), "tasks are announced in order of their ids");
        let q = self.queue_of(core, task, core.task(task).cpu);
        let parent = self.rq(q).se;
        let depth = if parent == NIL { 0 } else { self.ent(parent).depth + 1 };
        let attr = *core.task(task).attr;
        let load = self.task_load(&attr);
        let mut se = Entity::new(load, q, NIL, parent, depth);
        se.slice = self.tunables.base_slice_ns;
        se.avg.settled().load_avg = load.scaled;
        if self.rules.algorithm == Algorithm::Cfs && !self.owns(attr.policy) {
            se.v_relative = true;
            se.vruntime = self.born_elsewhere(core, task);
        }
        self.ents.push(se);
        self.nodes.push(Node::NEW);
        self.apply_attr(core, e, &attr);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.enqueue_task_fair(core, cpu, task, flags);
        if let Some(balancer) = &mut self.balancer {
            balancer.task_queued(core, cpu);
        }
        if self.has_extras && !flags.delayed && self.ent(self.task_entity(task)).on_rq {
            self.hrtick_update(core, cpu, true);
        }
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        let dequeued = self.dequeue_task_fair(core, cpu, task, flags);
        if self.has_extras && dequeued {
            self.hrtick_update(core, cpu, false);
        }
        dequeued
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        if core.rq(cpu).nr_running == 1 {
            return;
        }
        let e = self.task_entity(curr);
        self.clear_buddies(e);
        match self.rules.algorithm {
            Algorithm::Cfs => {
                if core.task(curr).attr.policy != Policy::Batch {
                    self.update_curr(core, self.ent(e).cfs);
                }
                self.set_skip_buddy(e);
            }
            _ => self.yield_eevdf(core, e),
        }
        if self.bandwidth.is_some() {
            self.reschedules_first(cpu);
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
        let wake = Wake { is_fork: flags.is_fork(), is_sync: flags.sync };
        self.check_preempt(core, cpu, task, curr, wake);
    }

    fn account_ahead(&mut self, core: &mut Core, task: TaskId, ns: Nanos) {
        let mut e = self.task_entity(task);
        let is_compared = self.ent(e).normal;
        // No entity has the number NIL.
        while let Some(se) = self.ents.get(e as usize) {
            let (q, parent) = (se.cfs, se.parent);
            // It is not placed here, and only a comparison accounts what runs.
            if se.on_rq && !is_compared {
                break;
            }
            if self.rq(q).curr != NIL {
                let now = core.now;
                core.now += ns;
                self.update_curr(core, q);
                core.now = now;
                break;
            }
            e = parent;
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        if self.is_pushing(cpu) {
            return None;
        }
        self.pick_task_fair(core, cpu)
    }

    fn put_prev_task(&mut self, core: &mut Core, _cpu: CpuId, prev: TaskId, next: Option<TaskId>) {
        let e = self.task_entity(prev);
        let (parent, q) = (self.ent(e).parent, self.ent(e).cfs);
        if parent == NIL {
            // Above this level there is nothing that `next` could continue.
            self.put_prev_entity(core, q, e);
            return;
        }
        let class = core.task(prev).class;
        let next = next.filter(|next| *next != prev && core.task(*next).class == class);
        self.put_prev_task_fair(core, e, next.map(|n| self.task_entity(n)));
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, first: bool) {
        let e = self.task_entity(task);
        self.set_next_task_fair(core, e, first);
        // A change may have moved it into a throttled group (sched_move_task).
        if !first && self.is_hierarchy_throttled(self.ent(e).cfs) {
            core.resched_curr(cpu);
        }
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        flags: WakeFlags,
    ) -> CpuId {
        self.with_balancer(|balancer, fair| balancer.select_task_rq(core, fair, task, prev, flags))
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        self.with_balancer(|balancer, fair| balancer.newidle(core, fair, cpu))
    }

    fn foresee_newidle(&mut self, core: &mut Core, cpu: CpuId, prev: TaskId) -> Option<u32> {
        self.with_balancer(|balancer, fair| balancer.foresee_newidle(core, fair, cpu, prev))
    }

    fn tick_balance(&mut self, core: &mut Core, cpu: CpuId) {
        if !self.balancer.as_ref().is_some_and(|balancer| balancer.is_quiet(core, cpu)) {
            self.with_balancer(|balancer, fair| balancer.tick(core, fair, cpu));
        }
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId) {
        if self.is_pushing(cpu) {
            self.with_balancer(|balancer, fair| balancer.push_running(core, fair, cpu));
        }
    }

    fn migrate_task_rq(&mut self, core: &mut Core, task: TaskId, _cpu: CpuId) {
        let e = self.task_entity(task);
        let min_vruntime = self.rq(self.ent(e).cfs).min_vruntime;
        let se = self.ent_mut(e);
        if !se.v_relative {
            se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
            se.v_relative = true;
        }
        se.exec_start = 0;
        self.remove_entity_load_avg(core.now, e);
    }

    fn tick_levels(&self, task: TaskId) -> u32 {
        let mut e = self.task_entity(task);
        let mut nr = 0;
        while e != NIL {
            e = self.ent(e).parent;
            nr += 1;
        }
        nr
    }

    fn task_tick(&mut self, core: &mut Core, _cpu: CpuId, curr: TaskId) {
        let mut e = self.task_entity(curr);
        while e != NIL {
            let q = self.ent(e).cfs;
            self.update_curr_ahead(core, q);
            self.update_load_avg(core.now, q, e, load::Change::None);
            self.update_cfs_group(core, e);
            if self.rules.algorithm == Algorithm::Cfs
                && self.rq(q).nr_queued > 1
                && !(self.has_extras && self.hrtick_replaces_tick(core, q))
            {
                self.check_preempt_tick(core, q, e);
            }
            e = self.ent(e).parent;
        }
    }

    fn task_fork(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        let e = self.task_entity(task);
        let q = self.queue_of(core, task, cpu);
        self.move_entity_to(core, e, q);
        self.swap_recent_used_cpu(task, cpu);
        match self.rules.algorithm {
            Algorithm::Cfs => self.task_fork_cfs(core, cpu, e, parent),
            _ => self.ent_mut(e).vlag = 0,
        }
    }

    fn task_dead(&mut self, core: &mut Core, task: TaskId) {
        let e = self.task_entity(task);
        self.remove_entity_load_avg(core.now, e);
    }

    fn switched_from(&mut self, core: &mut Core, _cpu: CpuId, task: TaskId) {
        let e = self.task_entity(task);
        self.make_vruntime_relative(core, e);
        self.detach_entity(core.now, e);
        let se = self.ent_mut(e);
        // A task that was on the queue keeps the rest of its request until it comes back, whatever
        // its slice is then; one whose dequeue was delayed does not (switched_from_fair).
        if std::mem::take(&mut se.delayed) {
            se.rel_deadline = false;
        }
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        if core.task(task).on_rq {
            if core.is_running(task) {
                core.resched_curr(cpu);
            } else {
                self.check_preempt_any(core, cpu, task);
            }
        }
    }

    fn prio_changed(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, old_prio: i32) {
        if !core.task(task).on_rq || self.rq(cpu.0).nr_queued == 1 {
            return;
        }
        if core.is_running(task) {
            if core.task(task).prio > old_prio {
                core.resched_curr(cpu);
            }
        } else {
            self.check_preempt_any(core, cpu, task);
        }
    }

    /// With custom slices the kernel compares the slice that is asked for, 0 for none, with that of
    /// the task, which is never 0. So a call that asks for none does something each time, and one
    /// that asks for the default slice may do nothing (__sched_setscheduler).
    fn is_changed_by(&self, core: &Core, task: TaskId, attr: &SchedAttr) -> bool {
        let old = *core.task(task).attr;
        let compares_slices = self.rules.custom_slice
            && attr.policy == old.policy
            && matches!(attr.policy, Policy::Normal | Policy::Batch);
        if !compares_slices {
            return old != *attr;
        }
        let rest = SchedAttr { slice_ns: old.slice_ns, ..*attr };
        rest != old || attr.slice_ns.unwrap_or(0) != self.ent(self.task_entity(task)).slice
    }

    fn attr_changing(&mut self, core: &mut Core, task: TaskId, attr: &SchedAttr) {
        let e = self.task_entity(task);
        if attr.cgroup != core.task(task).attr.cgroup {
            let q = attr.cgroup.0 * self.nr_cpus + core.task(task).cpu.0;
            self.make_vruntime_relative(core, e);
            self.move_entity_to(core, e, q);
        }
        self.apply_attr(core, e, attr);
    }

    fn tunable_changed(&mut self, _core: &mut Core, tunable: SchedTunable, value: u64) {
        let tunables = &mut self.tunables;
        match tunable {
            SchedTunable::BaseSlice => tunables.base_slice_ns = value,
            SchedTunable::Latency => tunables.latency_ns = value,
            SchedTunable::MinGranularity => tunables.min_granularity_ns = value,
            SchedTunable::WakeupGranularity => tunables.wakeup_granularity_ns = value,
            SchedTunable::MigrationCost => tunables.migration_cost_ns = value,
            SchedTunable::NrMigrate => tunables.nr_migrate = value as u32,
            SchedTunable::BandwidthSlice => {
                tunables.bandwidth_slice_ns = value;
                if let Some(bandwidth) = &mut self.bandwidth {
                    bandwidth.set_slice(value);
                }
            }
            SchedTunable::Feature(feature) => return self.switch(feature, value),
            // The real-time class has them.
            SchedTunable::RtRuntime | SchedTunable::RtPeriod => {}
        }
        let tunables = &self.tunables;
        let (cost, count) = (tunables.migration_cost_ns, tunables.nr_migrate);
        self.with_balancer(|balancer, _| balancer.set_limits(cost, count));
    }

    fn cgroup_changed(&mut self, core: &mut Core, _cpu: CpuId, change: &Change, old: &CgroupSpec) {
        match change {
            Change::Weight { group, .. } => {
                let shares = shares_of(&core.cgroups[group.index()]);
                self.set_group_shares(core, group.0, shares);
            }
            Change::CpuMax { group, cpu_max } => {
                for write in CpuMax::writes(old.cpu_max, *cpu_max) {
                    self.set_bandwidth(core, group.0, &write);
                }
            }
            Change::Cpus { .. } => {}
        }
    }

    fn timer(&mut self, core: &mut Core, token: u64) {
        if let Some(cpu) = hrtick::cpu_of(token) {
            self.hrtick_timer(core, cpu);
        } else if let Some(cpu) = kicked_by(token) {
            self.with_balancer(|balancer, fair| balancer.idle_balances(core, fair, cpu));
        } else {
            self.bandwidth_timer(core, token);
        }
    }

    fn is_throttled(&self, _core: &Core, task: TaskId) -> bool {
        self.bandwidth.is_some()
            && self.is_hierarchy_throttled(self.ent(self.task_entity(task)).cfs)
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        let e = self.task_entity(task);
        let slice = match self.rules.algorithm {
            Algorithm::Cfs if self.rq(core.task(task).cpu.0).load == 0 => 0,
            Algorithm::Cfs => self.sched_slice(self.ent(e).cfs, e),
            _ => self.ent(e).slice,
        };
        slice / core.tick_nsec * core.tick_nsec
    }
}

impl FairClass {
    /// The virtual runtime, relative to the queue that it comes to, of a task that begins in
    /// another class: 0 after a fork (__sched_fork). One that left the fair class asleep during a
    /// setup was placed as a sleeper (detach_task_cfs_rq).
    fn born_elsewhere(&self, core: &Core, task: TaskId) -> u64 {
        if core.task(task).age_ns == 0 {
            return 0;
        }
        let credit = self.tunables.latency_ns;
        let gentle = self.rules.features.gentle_fair_sleepers;
        (if gentle { credit >> 1 } else { credit }).wrapping_neg()
    }

    /// Makes a blocked task's virtual runtime relative before the task changes its queue. (6.1:
    /// detach_task_cfs_rq places it as if it woke, so that it does not keep an old advantage.)
    fn make_vruntime_relative(&mut self, core: &mut Core, e: u32) {
        if self.rules.algorithm != Algorithm::Cfs || self.ent(e).v_relative || self.ent(e).on_rq {
            return;
        }
        let q = self.ent(e).cfs;
        self.place_entity_cfs(core.now, q, e, false);
        let min_vruntime = self.rq(q).min_vruntime;
        let se = self.ent_mut(e);
        se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
        se.v_relative = true;
    }

    /// Moves an entity that is on no queue to queue `q` (set_task_rq), with its load.
    fn move_entity_to(&mut self, core: &mut Core, e: u32, q: u32) {
        if self.ent(e).cfs == q {
            return;
        }
        self.detach_entity(core.now, e);
        let parent = self.rq(q).se;
        let depth = if parent == NIL { 0 } else { self.ent(parent).depth + 1 };
        let se = self.ent_mut(e);
        (se.cfs, se.parent, se.depth) = (q, parent, depth);
    }

    /// Whether `a`'s virtual runtime is less than `b`'s.
    #[inline]
    fn v_before(&self, a: u32, b: u32) -> bool {
        before(self.ent(a).vruntime, self.ent(b).vruntime)
    }
}
