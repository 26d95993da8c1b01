// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface that a BPF scheduler implements: `struct sched_ext_ops`.
//!
//! Source: Linux kernel/sched/ext_internal.h (6.18), include/linux/sched/ext.h (6.12). A scheduler
//! calls the kernel's functions as methods of [`Kernel`]. A callback that is not in
//! [`OpsInfo::callbacks`] is never called; the core then does its default.

use super::consts::ExitKind;
use super::kernel::Kernel;
use schedlab_model::{CgroupId, CpuId, CpuMask, TaskId};

macro_rules! callbacks {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// A callback.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Callback { $($(#[$doc])* $name,)* }

        impl Callback {
            /// Every callback.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in `struct sched_ext_ops`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Its name as people write it, such as `ops.enqueue`.
            pub const fn ops_name(self) -> &'static str {
                match self { $(Self::$name => concat!("ops.", $text),)* }
            }
        }
    };
}

callbacks! {
    /// Chooses a CPU for a waking task.
    SelectCpu "select_cpu",
    /// A task is runnable and needs a queue.
    Enqueue "enqueue",
    /// A task leaves the scheduler's custody.
    Dequeue "dequeue",
    /// A CPU needs work.
    Dispatch "dispatch",
    /// The tick.
    Tick "tick",
    /// A task becomes runnable.
    Runnable "runnable",
    /// It starts to run.
    Running "running",
    /// It stops running.
    Stopping "stopping",
    /// It is no longer runnable.
    Quiescent "quiescent",
    /// sched_yield.
    Yield "yield",
    /// Core scheduling, which is not modelled: never called.
    CoreSchedBefore "core_sched_before",
    /// The weight changes.
    SetWeight "set_weight",
    /// The affinity changes.
    SetCpumask "set_cpumask",
    /// A CPU becomes idle or busy.
    UpdateIdle "update_idle",
    /// A CPU returns from a higher class.
    CpuAcquire "cpu_acquire",
    /// A higher class takes a CPU.
    CpuRelease "cpu_release",
    /// A task is announced.
    InitTask "init_task",
    /// A task no longer exists, or the scheduler ends.
    ExitTask "exit_task",
    /// A task enters the class.
    Enable "enable",
    /// A task leaves the class.
    Disable "disable",
    /// Writes its state to the dump, after an error.
    Dump "dump",
    /// Writes the state of a CPU to the dump.
    DumpCpu "dump_cpu",
    /// Writes the state of a task to the dump.
    DumpTask "dump_task",
    /// A group is announced.
    CgroupInit "cgroup_init",
    /// A group no longer exists.
    CgroupExit "cgroup_exit",
    /// A task is about to change its group.
    CgroupPrepMove "cgroup_prep_move",
    /// A task changes its group.
    CgroupMove "cgroup_move",
    /// A prepared change of group does not take place.
    CgroupCancelMove "cgroup_cancel_move",
    /// cpu.weight of a group changes.
    CgroupSetWeight "cgroup_set_weight",
    /// cpu.max of a group changes.
    CgroupSetBandwidth "cgroup_set_bandwidth",
    /// cpu.idle of a group changes.
    CgroupSetIdle "cgroup_set_idle",
    /// A CPU is added. Never called, because CPUs do not change.
    CpuOnline "cpu_online",
    /// A CPU is removed. Never called, because CPUs do not change.
    CpuOffline "cpu_offline",
    /// Numbers the CPUs (7.3). Called before [`Callback::Init`] by who loads a compiled scheduler.
    InitCids "init_cids",
    /// The scheduler starts.
    Init "init",
    /// The scheduler ends.
    Exit "exit",
    /// A `bpf_timer` expires. Not a member of the struct.
    Timer "timer",
}

/// A set of callbacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Callbacks(pub u64);

impl Callbacks {
    /// These.
    pub const fn of(callbacks: &[Callback]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < callbacks.len() {
            bits |= 1 << callbacks[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// Whether `callback` is among them.
    #[inline]
    pub const fn has(self, callback: Callback) -> bool {
        self.0 >> callback as u8 & 1 == 1
    }

    /// The set with `callback` added.
    #[must_use]
    pub const fn with(self, callback: Callback) -> Self {
        Self(self.0 | 1 << callback as u8)
    }
}

/// The data of `struct sched_ext_ops`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpsInfo {
    /// Name; required, at most 127 bytes.
    pub name: String,
    /// SCX_OPS_* bits.
    pub flags: u64,
    /// Limit of the watchdog, ms; 0: 30 s, the greatest value.
    pub timeout_ms: u32,
    /// Entries of the dispatch buffer; 0: 32.
    pub dispatch_max_batch: u32,
    /// Bytes of a dump; 0: 32768.
    pub exit_dump_len: u32,
    /// The callbacks that it implements.
    pub callbacks: Callbacks,
}

/// The scheduler crashed or hung, so the run cannot continue. In a kernel the verifier prevents
/// this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpsFault(
    /// What happened.
    pub String,
);

/// Arguments of `ops.init_task` (`struct scx_init_task_args`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitTaskArgs {
    /// Whether the task is being forked. Otherwise it existed when the scheduler was loaded.
    pub fork: bool,
    /// Its group.
    pub cgroup: CgroupId,
}

/// Arguments of `ops.cgroup_init` (`struct scx_cgroup_init_args`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CgroupInitArgs {
    /// cpu.weight, 1 to 10000.
    pub weight: u32,
    /// Period of cpu.max, us.
    pub bw_period_us: u64,
    /// Quota of cpu.max, us; all ones: no limit.
    pub bw_quota_us: u64,
    /// cpu.max.burst, us.
    pub bw_burst_us: u64,
}

/// How and why a scheduler ended (`struct scx_exit_info`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExitInfo {
    /// Kind.
    pub kind: ExitKind,
    /// Code of `scx_bpf_exit`, or of the kernel.
    pub exit_code: i64,
    /// The kind in words.
    pub reason: String,
    /// What happened.
    pub msg: String,
    /// Where it happened: the line of the scheduler that broke a rule, or the place of a task that
    /// waited too long. The scheduler does not get it.
    pub place: Option<String>,
    /// The output of the dump callbacks.
    pub dump: String,
}

/// Names a place in the source of a scheduler; `None`: no callback runs.
pub type Locator = fn() -> Option<String>;

/// Result of a callback without a value.
pub type OpsResult = Result<(), OpsFault>;

/// What the user half of a scheduler waits for after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserWait {
    /// This time of the run (ns); `None`: only [`Kernel::wake_user_half`] wakes it.
    Until(Option<schedlab_model::Nanos>),
    /// Nothing: it called sched_yield.
    Yield,
}

/// A BPF scheduler. Arguments and meaning are those of `struct sched_ext_ops`. The defaults return
/// what the kernel assumes for a missing callback.
#[allow(unused_variables, reason = "the defaults need no argument")]
pub trait Ops: Send {
    /// Its data; called once.
    fn info(&self) -> OpsInfo;

    /// A function that names the place in the source from which the running callback has called the
    /// core; called once.
    fn locator(&self) -> Option<Locator> {
        None
    }

    /// Chooses a CPU for waking `p`, and may insert `p` once. It may return any number; a number
    /// that is not a CPU is an error of the scheduler.
    fn select_cpu(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        prev: CpuId,
        wake_flags: u64,
    ) -> Result<i32, OpsFault> {
        Ok(prev.0 as i32)
    }
    /// `p` is runnable. Inserts it into a queue, or keeps it.
    fn enqueue(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        Ok(())
    }
    /// `p`, which the scheduler kept, leaves.
    fn dequeue(&mut self, k: &mut Kernel<'_>, p: TaskId, deq_flags: u64) -> OpsResult {
        Ok(())
    }
    /// `cpu` needs work. `prev` is the task that it ran, if it is of this class.
    fn dispatch(&mut self, k: &mut Kernel<'_>, cpu: CpuId, prev: Option<TaskId>) -> OpsResult {
        Ok(())
    }
    /// A tick while `p` runs.
    fn tick(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        Ok(())
    }
    /// `p` becomes runnable.
    fn runnable(&mut self, k: &mut Kernel<'_>, p: TaskId, enq_flags: u64) -> OpsResult {
        Ok(())
    }
    /// `p` starts to run.
    fn running(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        Ok(())
    }
    /// `p` stops running.
    fn stopping(&mut self, k: &mut Kernel<'_>, p: TaskId, runnable: bool) -> OpsResult {
        Ok(())
    }
    /// `p` is no longer runnable.
    fn quiescent(&mut self, k: &mut Kernel<'_>, p: TaskId, deq_flags: u64) -> OpsResult {
        Ok(())
    }
    /// `from` yields; to `to` if that is a task. Returns whether it did.
    fn yield_(
        &mut self,
        k: &mut Kernel<'_>,
        from: TaskId,
        to: Option<TaskId>,
    ) -> Result<bool, OpsFault> {
        Ok(false)
    }
    /// The weight of `p` is now `weight`, 1 to 10000.
    fn set_weight(&mut self, k: &mut Kernel<'_>, p: TaskId, weight: u32) -> OpsResult {
        Ok(())
    }
    /// `p` may use `cpumask`.
    fn set_cpumask(&mut self, k: &mut Kernel<'_>, p: TaskId, cpumask: &CpuMask) -> OpsResult {
        Ok(())
    }
    /// `cpu` becomes idle, or busy.
    fn update_idle(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        Ok(())
    }
    /// `cpu` returns from a higher class.
    fn cpu_acquire(&mut self, k: &mut Kernel<'_>, cpu: CpuId) -> OpsResult {
        Ok(())
    }
    /// A higher class takes `cpu` for `task`. `reason` is one of SCX_CPU_PREEMPT_*.
    fn cpu_release(
        &mut self,
        k: &mut Kernel<'_>,
        cpu: CpuId,
        reason: u32,
        task: TaskId,
    ) -> OpsResult {
        Ok(())
    }
    /// Announces `p`. Returns 0 or a negative error number.
    fn init_task(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        args: &InitTaskArgs,
    ) -> Result<i32, OpsFault> {
        Ok(0)
    }
    /// `p` exits, or the scheduler ends. `cancelled`: before `p` ran.
    fn exit_task(&mut self, k: &mut Kernel<'_>, p: TaskId, cancelled: bool) -> OpsResult {
        Ok(())
    }
    /// `p` enters the class.
    fn enable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        Ok(())
    }
    /// `p` leaves the class.
    fn disable(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        Ok(())
    }
    /// Writes its state with [`Kernel::dump`].
    fn dump(&mut self, k: &mut Kernel<'_>) -> OpsResult {
        Ok(())
    }
    /// Writes its state of `cpu`.
    fn dump_cpu(&mut self, k: &mut Kernel<'_>, cpu: CpuId, idle: bool) -> OpsResult {
        Ok(())
    }
    /// Writes its state of runnable `p`.
    fn dump_task(&mut self, k: &mut Kernel<'_>, p: TaskId) -> OpsResult {
        Ok(())
    }
    /// Announces `cgroup`. Returns 0 or a negative error number.
    fn cgroup_init(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        args: &CgroupInitArgs,
    ) -> Result<i32, OpsFault> {
        Ok(0)
    }
    /// `cgroup` no longer exists, or the scheduler ends.
    fn cgroup_exit(&mut self, k: &mut Kernel<'_>, cgroup: CgroupId) -> OpsResult {
        Ok(())
    }
    /// `p` is about to move to another group. Returns 0 or a negative error number.
    fn cgroup_prep_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> Result<i32, OpsFault> {
        Ok(0)
    }
    /// `p` moves to another group.
    fn cgroup_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> OpsResult {
        Ok(())
    }
    /// The prepared move of `p` does not take place.
    fn cgroup_cancel_move(
        &mut self,
        k: &mut Kernel<'_>,
        p: TaskId,
        from: CgroupId,
        to: CgroupId,
    ) -> OpsResult {
        Ok(())
    }
    /// cpu.weight of `cgroup` is now `weight`.
    fn cgroup_set_weight(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        weight: u32,
    ) -> OpsResult {
        Ok(())
    }
    /// cpu.max of `cgroup` is now this; a quota of `u64::MAX` is no limit.
    fn cgroup_set_bandwidth(
        &mut self,
        k: &mut Kernel<'_>,
        cgroup: CgroupId,
        period_us: u64,
        quota_us: u64,
        burst_us: u64,
    ) -> OpsResult {
        Ok(())
    }
    /// The scheduler starts. Returns 0 or a negative error number.
    fn init(&mut self, k: &mut Kernel<'_>) -> Result<i32, OpsFault> {
        Ok(0)
    }
    /// The scheduler ends.
    fn exit(&mut self, k: &mut Kernel<'_>, info: &ExitInfo) -> OpsResult {
        Ok(())
    }
    /// The scheduler is about to be unloaded, or has crashed: nothing of it has been taken away
    /// yet. Called once or more; it must not change anything that the run depends on.
    fn before_unload(&mut self, k: &mut Kernel<'_>) {}
    /// The user half, task `p`, does a step. An error says what the program did wrong.
    fn user_step(&mut self, k: &mut Kernel<'_>, p: TaskId) -> Result<UserWait, OpsFault> {
        Ok(UserWait::Until(None))
    }
    /// A timer set with [`Kernel::start_timer`] expires.
    fn timer(&mut self, k: &mut Kernel<'_>, token: u64) -> OpsResult {
        Ok(())
    }
}
