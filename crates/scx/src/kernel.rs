// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel as a scheduler sees it: tasks, groups, CPUs, time. [`crate::kfuncs`] has the
//! functions of sched_ext itself.
//!
//! Source: the fields of `struct task_struct` and `struct cgroup` that schedulers read; Linux 6.18.

use super::consts::{PF_EXITING, PF_FORKNOEXEC};
use super::entity::{Entity, Words};
use super::ops::Callback;
use super::state::{ExtState, OpsTimer};
pub use super::user::USER_PID;
use schedlab_model::{CgroupId, CgroupSpec, CpuId, CpuMask, Nanos, Policy, TaskId, Topology};
use schedlab_sched::Core;
use schedlab_sched::boundary::core::TaskState;
use std::ptr::NonNull;

/// Process id of the first task. Lower ids belong to the kernel.
pub const PID_BASE: u32 = 1_000;

/// Uptime of the machine when a run begins (ns). Schedulers use a time of 0 for "never", and assume
/// that never was long ago.
pub const UPTIME_NS: Nanos = 1_000_000_000_000;

/// Bit of the core's own timers; the scheduler's do not have it.
pub const TIMER_OF_CORE: u64 = 1 << 63;

/// The present values of the fields of `struct task_struct` that schedulers read.
pub struct TaskView<'k> {
    /// The task as the modelled kernel core has it.
    pub core: &'k schedlab_sched::boundary::core::Task,
    /// Whether it has called exit.
    pub is_exiting: bool,
    /// As [`Kernel::task_running`].
    pub is_on_cpu: bool,
    /// As [`Kernel::is_queued`].
    pub is_queued: bool,
    /// As [`Kernel::sum_exec_runtime`].
    pub sum_exec_runtime: Nanos,
}

impl TaskView<'_> {
    /// PF_* bits.
    pub fn flags(&self) -> u32 {
        flags_of(self.is_exiting || self.core.state == TaskState::Dead)
    }

    /// As [`Kernel::static_prio`].
    pub fn static_prio(&self) -> i32 {
        120 + i32::from(self.core.attr.nice)
    }

    /// The fields that change rarely.
    #[inline(always)]
    pub fn seldom(&self) -> Seldom {
        let t = self.core;
        Seldom {
            cpu: t.cpu,
            prio: t.prio,
            nr_cpus_allowed: t.nr_cpus_allowed,
            cgroup: t.attr.cgroup,
            nice: t.attr.nice,
            has_own_name: t.inherited_comm.is_none(),
            state: t.state,
            is_on_cpu: self.is_on_cpu,
            is_queued: self.is_queued,
            is_exiting: self.is_exiting,
        }
    }
}

/// The fields of a [`TaskView`] that change rarely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seldom {
    cpu: CpuId,
    prio: i32,
    nr_cpus_allowed: u32,
    /// Its control group.
    pub cgroup: CgroupId,
    nice: i8,
    /// It has set its own name.
    pub has_own_name: bool,
    state: TaskState,
    is_on_cpu: bool,
    is_queued: bool,
    is_exiting: bool,
}

impl Seldom {
    /// The values for no task.
    pub const NOTHING: Self = Self {
        cpu: CpuId(u32::MAX),
        prio: 0,
        nr_cpus_allowed: 0,
        cgroup: CgroupId(u32::MAX),
        nice: 0,
        has_own_name: false,
        state: TaskState::Dead,
        is_on_cpu: false,
        is_queued: false,
        is_exiting: false,
    };
}

/// The kernel, as passed to a callback.
pub struct Kernel<'a> {
    pub(crate) state: &'a mut ExtState,
    pub(crate) core: &'a mut Core,
}

/// Tasks.
impl Kernel<'_> {
    /// Number of tasks created so far. Their ids are below it.
    pub fn nr_tasks(&self) -> u32 {
        self.state.tasks.len() as u32
    }

    /// Process id.
    pub fn pid(&self, p: TaskId) -> u32 {
        self.user_pid(p).unwrap_or(PID_BASE + p.0)
    }

    /// Process id of the first thread of its process.
    pub fn tgid(&self, p: TaskId) -> u32 {
        self.user_pid(p).unwrap_or(PID_BASE + self.state.task(p).tgid)
    }

    /// The task with this process id, if it has not exited.
    pub fn task_from_pid(&self, pid: u32) -> Option<TaskId> {
        let id = match self.core.user_half.filter(|_| pid == USER_PID) {
            Some(user) => user,
            None => TaskId(pid.checked_sub(PID_BASE)?),
        };
        let task = self.core.tasks.get(id.index())?;
        (task.state != TaskState::Dead).then_some(id)
    }

    /// What a kernel calls it now, at most 15 bytes: up to its first instructions as its parent.
    pub fn comm(&self, p: TaskId) -> &str {
        self.core.task(p).comm().as_str()
    }

    /// Its own name, at most 15 bytes.
    pub fn name(&self, p: TaskId) -> &str {
        self.core.task(p).name.as_str()
    }

    /// The present values of a task's fields.
    #[inline(always)]
    pub fn task_view(&self, p: TaskId) -> TaskView<'_> {
        let (core, ext) = (self.core.task(p), self.state.task(p));
        let is_on_cpu = self.core.rq(core.cpu).curr == Some(p);
        let since = if is_on_cpu { self.core.now - core.exec_start } else { 0 };
        TaskView {
            core,
            is_exiting: ext.exiting,
            is_on_cpu,
            is_queued: ext.queued,
            sum_exec_runtime: core.sum_exec_runtime + since,
        }
    }

    /// Whether the task of this callback is unchanged since the last callback showed it. True only
    /// once.
    #[inline]
    pub fn take_is_shown(&mut self) -> bool {
        std::mem::take(&mut self.state.is_shown)
    }

    /// The words that the scheduler may store to: slice, virtual time, ...
    #[inline]
    pub fn entity(&self, p: TaskId) -> &Entity {
        &self.state.task(p).entity
    }

    /// Moves these words to `home`, where the scheduler stores to them directly.
    ///
    /// # Safety
    ///
    /// As for [`Entity::place`].
    pub unsafe fn place_entity(&mut self, p: TaskId, home: NonNull<Words>) {
        // SAFETY: the caller's promise.
        unsafe { self.state.task_mut(p).entity.place(home) };
    }

    /// Moves these words back to the core's memory.
    pub fn take_entity_back(&mut self, p: TaskId) {
        self.state.task_mut(p).entity.take_back();
    }

    /// Priority from the nice value, 100 to 139; 120 for nice 0.
    pub fn static_prio(&self, p: TaskId) -> i32 {
        self.task_view(p).static_prio()
    }

    /// Priority in effect: -1 deadline, 0 to 98 real-time, 100 to 139.
    pub fn prio(&self, p: TaskId) -> i32 {
        self.core.task(p).prio
    }

    /// Policy.
    pub fn policy(&self, p: TaskId) -> Policy {
        self.core.task(p).attr.policy
    }

    /// Number of CPUs that it may use.
    #[inline]
    pub fn nr_cpus_allowed(&self, p: TaskId) -> u32 {
        self.core.task(p).nr_cpus_allowed
    }

    /// CPUs that it may use.
    #[inline]
    pub fn cpus_allowed(&self, p: TaskId) -> &CpuMask {
        &self.core.task(p).cpus_allowed
    }

    /// Its group.
    pub fn task_cgroup(&self, p: TaskId) -> CgroupId {
        self.core.task(p).attr.cgroup
    }

    /// Whether it is running.
    pub fn task_running(&self, p: TaskId) -> bool {
        self.core.is_running(p)
    }

    /// The CPU whose run queue it is or was last on.
    pub fn task_cpu(&self, p: TaskId) -> CpuId {
        self.core.task(p).cpu
    }

    /// Whether the class counts it as runnable (SCX_TASK_QUEUED).
    pub fn is_queued(&self, p: TaskId) -> bool {
        self.state.task(p).queued
    }

    /// CPU time (ns) up to its last update.
    pub fn sum_exec_runtime(&self, p: TaskId) -> Nanos {
        self.core.sum_exec_runtime(p)
    }

    /// Voluntary and involuntary switches.
    pub fn nr_switches(&self, p: TaskId) -> (u64, u64) {
        let t = self.core.task(p);
        (t.nr_voluntary_switches, t.nr_involuntary_switches)
    }
}

/// Groups.
impl Kernel<'_> {
    /// Number of groups; the root group is 0.
    pub fn nr_cgroups(&self) -> u32 {
        self.core.cgroups.len() as u32
    }

    /// A group: path, parent, weight, limit.
    pub fn cgroup(&self, cgroup: CgroupId) -> &CgroupSpec {
        &self.core.cgroups[cgroup.index()]
    }

    /// Inode number in the cgroup file system; 1 for the root group.
    pub fn cgroup_kernfs_id(&self, cgroup: CgroupId) -> u64 {
        u64::from(cgroup.0) + 1
    }

    /// The group with this inode number.
    pub fn cgroup_from_id(&self, id: u64) -> Option<CgroupId> {
        let index = u32::try_from(id.checked_sub(1)?).ok()?;
        (index < self.nr_cgroups()).then_some(CgroupId(index))
    }

    /// Depth below the root group. The root group has 0.
    pub fn cgroup_level(&self, cgroup: CgroupId) -> u32 {
        let (mut at, mut level) = (cgroup, 0);
        while at.0 != 0 {
            at = self.cgroup(at).parent;
            level += 1;
        }
        level
    }

    /// The ancestor of `cgroup` at depth `level`. At its own depth it is `cgroup` itself.
    pub fn cgroup_ancestor(&self, cgroup: CgroupId, level: u32) -> Option<CgroupId> {
        let up = self.cgroup_level(cgroup).checked_sub(level)?;
        Some((0..up).fold(cgroup, |at, _| self.cgroup(at).parent))
    }
}

/// The machine.
impl Kernel<'_> {
    /// Present time on the calling CPU (ns).
    #[inline]
    pub fn now(&self) -> Nanos {
        self.core.now
    }

    /// What the kernel's clocks show on the calling CPU (ns).
    #[inline]
    pub fn clock_ns(&self) -> Nanos {
        self.rq_clock_ns() + self.core.programs_ns()
    }

    /// What the clock of the calling CPU's run queue shows (ns): programs of the same operation do
    /// not move it.
    #[inline]
    pub fn rq_clock_ns(&self) -> Nanos {
        UPTIME_NS + self.core.now - self.state.context.back_ns
    }

    /// How long programs of this operation took so far (ns).
    #[inline]
    pub fn programs_ns(&self) -> Nanos {
        self.core.programs_ns()
    }

    /// The calling CPU has executed so many instructions of a program and of what it called.
    #[inline]
    pub fn spend(&mut self, insns: u32) {
        if self.core.bpf_kinsn_ns > 0 {
            let work = &mut self.core.work;
            work.bpf_insns = work.bpf_insns.saturating_add(insns);
            work.bpf_cpu = self.state.context.cpu;
        }
    }

    /// Ticks a second.
    pub fn hz(&self) -> u32 {
        self.core.hz
    }

    /// Ticks so far.
    pub fn jiffies(&self) -> u64 {
        self.core.jiffies()
    }

    /// The CPU that executes the callback.
    #[inline]
    pub fn this_cpu(&self) -> CpuId {
        self.state.context.cpu
    }

    /// Lets `work` be executed by `cpu`, as a user program chooses a CPU for the programs that it
    /// runs.
    pub fn on_cpu<R>(&mut self, cpu: CpuId, work: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.state.context.cpu, cpu);
        let result = work(self);
        self.state.context.cpu = outer;
        result
    }

    /// The running callback; `None`: none, as for programs of the setup.
    pub fn callback(&self) -> Option<Callback> {
        self.state.context.callback
    }

    /// The running task of the CPU that executes the callback; `None`: the idle task.
    pub fn current(&self) -> Option<TaskId> {
        self.core.rq(self.state.context.cpu).curr
    }

    /// What the kernel's `preempt_count()` says of interrupts, on the CPU that executes the
    /// callback. Left out: how often preemption is disabled.
    pub fn preempt_count(&self) -> u32 {
        self.state.context.interrupt.preempt_count()
    }

    /// A random number of the run's own stream (`bpf_get_prandom_u32`).
    pub fn prandom_u32(&mut self) -> u32 {
        self.core.random.next_u64() as u32
    }

    /// Number of CPUs. All are always online.
    pub fn nr_cpu_ids(&self) -> u32 {
        self.core.nr_cpus()
    }

    /// Number of nodes.
    pub fn nr_node_ids(&self) -> u32 {
        self.state.nr_nodes
    }

    /// The node of a CPU; `None` if there is no such CPU.
    pub fn cpu_node(&self, cpu: i32) -> Option<u32> {
        let cpu = usize::try_from(cpu).ok()?;
        self.core.topology.node.get(cpu).copied()
    }

    /// All CPUs.
    pub fn possible_cpus(&self) -> &CpuMask {
        &self.core.cpus
    }

    /// Cores, caches, nodes.
    pub fn topology(&self) -> &Topology {
        &self.core.topology
    }

    /// The running task of `cpu`. The outer `None`: there is no such CPU, which is an error of the
    /// scheduler.
    pub fn cpu_curr(&mut self, cpu: i32) -> Option<Option<TaskId>> {
        let cpu = self.valid_cpu(cpu)?;
        Some(self.core.rq(cpu).curr)
    }

    /// Runnable tasks of `cpu`, of all classes (`rq->nr_running`).
    pub fn rq_nr_running(&self, cpu: CpuId) -> u32 {
        self.core.rq(cpu).nr_running
    }

    /// CPU time of all tasks on `cpu` (ns).
    pub fn cpu_busy_ns(&self, cpu: CpuId) -> Nanos {
        let classes = 0..schedlab_sched::boundary::core::CLASSES_MAX as u8;
        classes.map(|class| self.core.class_exec_runtime(cpu, class)).sum()
    }

    /// The CPU whose run queue the callback holds (`scx_bpf_locked_rq`).
    pub fn locked_rq(&self) -> Option<CpuId> {
        self.state.context.rq
    }
}

/// Timers of the scheduler.
impl Kernel<'_> {
    /// Sets timer `token` (below 2^63) to expire at `at` on the calling CPU. A timer that is set
    /// again expires only at the new time (`bpf_timer_start`).
    pub fn start_timer(&mut self, token: u64, at: Nanos) {
        let token = token & !TIMER_OF_CORE;
        let cpu = self.state.context.cpu;
        let timer = OpsTimer { at: self.core.timer_comes(at), cpu };
        self.state.timers.insert(token, timer);
        self.core.start_timer(at, token);
    }

    /// Stops timer `token`. Returns whether it was set (`bpf_timer_cancel`).
    pub fn cancel_timer(&mut self, token: u64) -> bool {
        self.state.timers.remove(&token).is_some()
    }
}

/// PF_* bits of a task.
fn flags_of(is_exiting: bool) -> u32 {
    PF_FORKNOEXEC | if is_exiting { PF_EXITING } else { 0 }
}
