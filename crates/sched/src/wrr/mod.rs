// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighted round robin (WRR) and the random multilevel feedback queue (RMLFQ): a scheduling class
//! between the real-time and the fair class.
//!
//! Each CPU has 100 FIFO lists, one for each priority (0 is best), and runs the head of the best
//! one. A task runs for its slice, which is long in the foreground and short in the background, and
//! goes to the tail. Group WRR makes each control group one entity in its parent's queue. Under
//! RMLFQ the priority also determines the length of the slice. At the end of a slice, a random draw
//! moves the task to a better or a worse priority ([`transition`]). [`variants::Variant`] has the
//! differences between the schedulers; [`tree`] holds the queues.
//!
//! Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), text and kernel
//! sources (wrr_basic.c, wrr_group.c, wrr_RMLFQ.c, for Linux 3.4 on one 32-bit CPU).
//!
//! What the models add to the study, or read in it:
//!
//! - The study's SCHED_WRR is a separate policy. In the model, the class takes the tasks of
//!   SCHED_OTHER, all with one user priority, or those of SCHED_RR, each with its own (tunable
//!   `members`).
//! - A task is in the background if its group's path has a b as its second character, such as
//!   `/bg_non_interactive`; the study tests the same character.
//! - The study contradicts itself on which priority is best and on when a waking task preempts. The
//!   designs take 0 as best, 99 less the user's priority; the models named "as built" follow the
//!   code.
//! - The study uses one CPU. On several, a new or waking task goes to an idle CPU, or else to the
//!   one with the fewest tasks of the class. A CPU that becomes idle takes a waiting task from the
//!   one with the most.
//! - The group scheduler's code cannot work, so the model follows its design. A group has the best
//!   priority of its entities, and no slice of its own.
//!
//! Left out: priority inheritance within the class. The stack's real-time and fair classes are
//! those of Linux 6.1 rather than 3.4.

mod explain;
pub mod transition;
mod tree;
mod variants;

use crate::boundary::class::{ClassTraits, SchedClass, select_idle_cpu};
use crate::boundary::core::{Core, PreemptCheck};
use crate::boundary::flags::{DequeueFlags, EnqueueFlags, WakeFlags};
use crate::boundary::options::Options;
use schedlab_model::{CgroupSpec, CpuId, Machine, Nanos, Policy, TaskId};
use transition::{Draw, PRIORITIES, decile, moved, stage};
use tree::Tree;
use variants::{Members, Refill, Variant};
pub use variants::{
    basic_wrr_as_built, group_wrr, rmlfq_as_built_32, rmlfq_as_built_64, rmlfq_design, wrr,
};

/// The class's state of a task.
#[derive(Clone, Copy, Debug)]
struct WrrTask {
    /// Whether it counts among the runnable tasks of its CPU.
    queued: bool,
    /// Policy and priority that were last set. Setting them again starts a new slice.
    set: (Policy, u8),
    /// Priority, 0 is best.
    prio: u8,
    /// Slices at this priority, counted from 1 (RMLFQ).
    times: u8,
    /// Ticks left of its slice.
    ticks_left: u64,
    /// The last transition (RMLFQ).
    draw: Option<Draw>,
}

/// The class.
#[derive(Debug)]
pub struct WrrClass {
    variant: Variant,
    members: Members,
    /// User priority of members without their own.
    user_priority: u8,
    /// Slices in ticks.
    foreground: u64,
    background: u64,
    /// Groups in the background.
    is_background: Vec<bool>,
    tree: Tree,
    tasks: Vec<WrrTask>,
    /// Number of runnable tasks by CPU, including the running one.
    nr_running: Vec<u32>,
}

/// Whether the group at `path` is in the background, by its second character.
fn is_background(path: &str) -> bool {
    path.chars().nth(1) == Some('b')
}

impl WrrClass {
    fn new(variant: Variant, options: &Options, machine: &Machine, cgroups: &[CgroupSpec]) -> Self {
        let nr_cpus = machine.nr_cpus();
        let ticks = |ns: Nanos| {
            let ticks = u128::from(ns) * u128::from(machine.hz) / 1_000_000_000;
            (ticks as u64).max(1)
        };
        Self {
            variant,
            members: Members::from_options(options),
            user_priority: options.get(&variants::PRIORITY.name) as u8,
            foreground: ticks(options.get(&variants::SLICE_FOREGROUND.name)),
            background: ticks(options.get(&variants::SLICE_BACKGROUND.name)),
            is_background: cgroups.iter().map(|group| is_background(&group.path)).collect(),
            tree: Tree::new(nr_cpus, if variant.groups { cgroups } else { &[] }),
            tasks: Vec::new(),
            nr_running: vec![0; nr_cpus as usize],
        }
    }

    fn task(&self, task: TaskId) -> &WrrTask {
        &self.tasks[task.index()]
    }

    fn in_background(&self, core: &Core, task: TaskId) -> bool {
        let group = core.task(task).attr.cgroup;
        self.is_background.get(group.index()).is_some_and(|background| *background)
    }

    /// The slice of `task` at priority `prio`, in ticks.
    fn slice(&self, core: &Core, task: TaskId, prio: u8) -> u64 {
        if self.in_background(core, task) {
            self.background
        } else if self.variant.draws.is_some() {
            self.foreground * (u64::from(decile(prio)) + 1)
        } else {
            self.foreground
        }
    }

    /// Applies policy and priority after they were set again (sched_setscheduler): a new slice at
    /// that priority.
    fn adopt(&mut self, core: &Core, task: TaskId) {
        let attr = &core.task(task).attr;
        let set = (attr.policy, attr.rt_priority);
        if self.task(task).set == set {
            return;
        }
        let user = if attr.policy == Policy::Rr { attr.rt_priority } else { self.user_priority };
        let user = user.min(PRIORITIES - 1);
        let prio = if self.variant.user_priority_is_index { user } else { PRIORITIES - 1 - user };
        let ticks_left = self.slice(core, task, prio);
        let queued = self.task(task).queued;
        self.tasks[task.index()] = WrrTask { queued, set, prio, times: 1, ticks_left, draw: None };
    }

    fn queue_of(&self, core: &Core, task: TaskId, cpu: CpuId) -> u32 {
        self.tree.queue(core.task(task).attr.cgroup.0, cpu)
    }

    /// Takes over `task` on `cpu`, which is its CPU already.
    fn enqueue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.adopt(core, task);
        let queue = self.queue_of(core, task, cpu);
        let prio = self.task(task).prio;
        // Irrelevant changes of attributes keep the place in the list.
        let kept = flags.restore && self.tree.position(task) == Some((queue, prio));
        if !kept {
            self.tree.remove(task);
            self.tree.insert(task, queue, prio, flags.head);
        }
        self.tasks[task.index()].queued = true;
        self.nr_running[cpu.index()] += 1;
        core.add_nr_running(cpu, 1);
    }

    /// Removes `task` from `cpu`. `keep_place` leaves it in its list for the following restore.
    fn dequeue(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, keep_place: bool) {
        self.tasks[task.index()].queued = false;
        if !keep_place {
            self.tree.remove(task);
        }
        self.nr_running[cpu.index()] -= 1;
        core.sub_nr_running(cpu, 1);
    }

    /// Does the random step of RMLFQ: moves `task` to the tail of a randomly drawn list.
    fn transit(&mut self, core: &mut Core, task: TaskId) {
        let Some(rule) = self.variant.draws else { return };
        let entry = self.tasks[task.index()];
        let draw = rule.draw(&mut core.random, stage(entry.prio), entry.times);
        let (prio, times) = moved(entry.prio, entry.times, draw.outcome);
        self.tasks[task.index()] = WrrTask { prio, times, draw: Some(draw), ..entry };
        if let Some((queue, _)) = self.tree.position(task) {
            self.tree.remove(task);
            self.tree.insert(task, queue, prio, false);
        }
    }

    /// Handles the end of the slice of running `curr`.
    fn expire(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let prio_before = self.task(curr).prio;
        if self.variant.draws.is_some() {
            self.transit(core, curr);
            core.resched_curr(cpu);
        } else if !self.tree.is_alone(curr) {
            self.tree.requeue(curr);
            core.resched_curr(cpu);
        }
        let prio = match self.variant.refill {
            Refill::BeforeMove => prio_before,
            Refill::AfterMove => self.task(curr).prio,
        };
        self.tasks[curr.index()].ticks_left = self.slice(core, curr, prio);
    }

    /// The CPU with the fewest tasks of this class among those that `task` may use, `prev` first.
    fn least_loaded(&self, core: &Core, task: TaskId, prev: CpuId) -> CpuId {
        let allowed = *core.task(task).cpus_allowed;
        allowed
            .iter_from(prev)
            .min_by_key(|cpu| self.nr_running[cpu.index()])
            .expect("affinity was checked to be within the machine")
    }

    /// Whether `cpu` runs a task of this class or a higher one, so that its waiting tasks must
    /// wait.
    fn is_held(core: &Core, cpu: CpuId, class: u8) -> bool {
        core.rq(cpu).curr.is_some_and(|curr| core.task(curr).class <= class)
    }
}

impl SchedClass for WrrClass {
    fn owns(&self, policy: Policy) -> bool {
        policy == self.members.policy()
    }

    fn traits(&self) -> ClassTraits {
        ClassTraits { has_quiet_ticks: true, ..ClassTraits::DEFAULT }
    }

    fn task_new(&mut self, core: &mut Core, task: TaskId) {
        let unset = WrrTask {
            queued: false,
            set: (Policy::Deadline, 0),
            prio: 0,
            times: 1,
            ticks_left: 1,
            draw: None,
        };
        self.tasks.resize(task.index() + 1, unset);
        self.tree.add_task(task);
        if self.owns(core.task(task).attr.policy) {
            self.adopt(core, task);
        }
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.enqueue(core, cpu, task, flags);
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: DequeueFlags,
    ) -> bool {
        self.dequeue(core, cpu, task, flags.save);
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        let Some(curr) = core.rq(cpu).curr else { return };
        if self.variant.yield_draws {
            self.transit(core, curr);
        } else {
            self.tree.requeue(curr);
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
        _flags: WakeFlags,
    ) {
        let (woken, running) = (self.task(task).prio, self.task(curr).prio);
        let preempts =
            if self.variant.preempts_if_worse { woken > running } else { woken < running };
        if preempts {
            core.resched_curr(cpu);
        }
    }

    fn pick_task(&mut self, _core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.tree.first(cpu)
    }

    fn newidle_balance(&mut self, core: &mut Core, cpu: CpuId) -> bool {
        let class = core.class_of(self.members.policy());
        let may_come =
            |task: TaskId| !core.is_running(task) && core.task(task).cpus_allowed.contains(cpu);
        let mut best: Option<(u32, CpuId, TaskId)> = None;
        for from in (0..core.nr_cpus()).map(CpuId) {
            let nr_running = self.nr_running[from.index()];
            if nr_running > best.map_or(0, |best| best.0)
                && from != cpu
                && Self::is_held(core, from, class)
                && let Some(task) = self.tree.find(from.0, &may_come)
            {
                best = Some((nr_running, from, task));
            }
        }
        let Some((_, from, task)) = best else { return false };
        self.dequeue(core, from, task, false);
        core.set_task_cpu(task, cpu);
        self.enqueue(core, cpu, task, EnqueueFlags { migrated: true, ..EnqueueFlags::NONE });
        true
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _flags: WakeFlags,
    ) -> CpuId {
        let cpu = select_idle_cpu(core, task, prev);
        if core.idle_cpu(cpu) { cpu } else { self.least_loaded(core, task, prev) }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        let entry = &mut self.tasks[curr.index()];
        entry.ticks_left = entry.ticks_left.saturating_sub(1);
        if entry.ticks_left == 0 {
            self.expire(core, cpu, curr);
        }
    }

    fn quiet_ticks(&self, _core: &Core, _cpu: CpuId, curr: Option<TaskId>) -> u64 {
        curr.map_or(u64::MAX, |curr| self.task(curr).ticks_left.saturating_sub(1))
    }

    fn pass_ticks(&mut self, _core: &Core, _cpu: CpuId, curr: Option<TaskId>, nr: u64) {
        if let Some(curr) = curr {
            let left = &mut self.tasks[curr.index()].ticks_left;
            *left -= nr;
        }
    }

    /// Makes the child a copy of its parent, with the rest of the parent's slice.
    fn task_fork(&mut self, core: &mut Core, _cpu: CpuId, task: TaskId, parent: Option<TaskId>) {
        self.adopt(core, task);
        if let Some(parent) = parent {
            let from = *self.task(parent);
            if from.set == self.task(task).set {
                self.tasks[task.index()] = WrrTask { queued: false, draw: None, ..from };
            }
        }
    }

    fn switched_from(&mut self, _core: &mut Core, _cpu: CpuId, task: TaskId) {
        self.tree.remove(task);
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId) {
        self.adopt(core, task);
        if !core.task(task).on_rq {
            return;
        }
        let gives_way = match core.preempt_check(cpu, task) {
            PreemptCheck::SameClass(curr) if curr == task => true,
            PreemptCheck::SameClass(curr) => self.task(task).prio < self.task(curr).prio,
            PreemptCheck::Resched => true,
            PreemptCheck::Nothing => false,
        };
        if gives_way {
            core.resched_curr(cpu);
        }
    }

    fn get_rr_interval(&self, core: &Core, task: TaskId) -> Nanos {
        self.slice(core, task, self.task(task).prio) * core.tick_nsec
    }
}
