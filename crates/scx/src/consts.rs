// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants of sched_ext with which schedulers are compiled.
//!
//! Source: Linux include/linux/sched/ext.h, kernel/sched/ext_internal.h, kernel/sched/sched.h, 6.12
//! to 7.1.

/// Default slice, ns (SCX_SLICE_DFL).
pub const SLICE_DFL: u64 = 20_000_000;
/// A slice that is never used up (SCX_SLICE_INF).
pub const SLICE_INF: u64 = u64::MAX;
/// Slice while the scheduler is bypassed, ns (SCX_SLICE_BYPASS, 6.19 and later).
pub const SLICE_BYPASS: u64 = 5_000_000;

/// Bit of the core's own queues (SCX_DSQ_FLAG_BUILTIN).
pub const DSQ_FLAG_BUILTIN: u64 = 1 << 63;
/// With [`DSQ_FLAG_BUILTIN`]: the local queue of the CPU in the low half (SCX_DSQ_FLAG_LOCAL_ON).
pub const DSQ_FLAG_LOCAL_ON: u64 = 1 << 62;
/// No queue (SCX_DSQ_INVALID).
pub const DSQ_INVALID: u64 = DSQ_FLAG_BUILTIN;
/// The global queue (SCX_DSQ_GLOBAL).
pub const DSQ_GLOBAL: u64 = DSQ_FLAG_BUILTIN | 1;
/// The local queue of the CPU in question (SCX_DSQ_LOCAL).
pub const DSQ_LOCAL: u64 = DSQ_FLAG_BUILTIN | 2;
/// The queue of bypassed tasks (SCX_DSQ_BYPASS, 6.19 and later).
pub const DSQ_BYPASS: u64 = DSQ_FLAG_BUILTIN | 3;
/// The local queue of the CPU in the low 32 bits (SCX_DSQ_LOCAL_ON).
pub const DSQ_LOCAL_ON: u64 = DSQ_FLAG_BUILTIN | DSQ_FLAG_LOCAL_ON;
/// Where [`DSQ_LOCAL_ON`] has its CPU (SCX_DSQ_LOCAL_CPU_MASK).
pub const DSQ_LOCAL_CPU_MASK: u64 = 0xffff_ffff;

/// Default size of the dispatch buffer (SCX_DSP_DFL_MAX_BATCH).
pub const DSP_DFL_MAX_BATCH: u32 = 32;
/// Rounds of `ops.dispatch` in one balance (SCX_DSP_MAX_LOOPS).
pub const DSP_MAX_LOOPS: u32 = 32;
/// Longest and default limit of the watchdog, ms (SCX_WATCHDOG_MAX_TIMEOUT).
pub const WATCHDOG_MAX_TIMEOUT_MS: u32 = 30_000;
/// Longest name, with its final zero (SCX_OPS_NAME_LEN).
pub const OPS_NAME_LEN: usize = 128;
/// Full performance of a CPU (SCX_CPUPERF_ONE).
pub const CPUPERF_ONE: u32 = 1024;

/// Only if the CPU is idle (SCX_KICK_IDLE).
pub const KICK_IDLE: u64 = 1;
/// Ends the slice of the running task (SCX_KICK_PREEMPT).
pub const KICK_PREEMPT: u64 = 2;
/// Waits until the CPU has picked a task (SCX_KICK_WAIT).
pub const KICK_WAIT: u64 = 4;

/// Only a CPU whose whole core is idle (SCX_PICK_IDLE_CORE).
pub const PICK_IDLE_CORE: u64 = 1;
/// Only CPUs of the node (SCX_PICK_IDLE_IN_NODE).
pub const PICK_IDLE_IN_NODE: u64 = 2;

/// A new task (SCX_WAKE_FORK).
pub const WAKE_FORK: u64 = 4;
/// A wake-up (SCX_WAKE_TTWU).
pub const WAKE_TTWU: u64 = 8;
/// The waker is about to sleep (SCX_WAKE_SYNC).
pub const WAKE_SYNC: u64 = 0x10;

/// Walks a queue backwards (SCX_DSQ_ITER_REV).
pub const DSQ_ITER_REV: u64 = 1 << 16;

/// The task wakes (SCX_ENQ_WAKEUP).
pub const ENQ_WAKEUP: u64 = 1;
/// It is put back after a change of attributes (ENQUEUE_RESTORE).
pub const ENQ_RESTORE: u64 = 2;
/// Its place may change (ENQUEUE_MOVE).
pub const ENQ_MOVE: u64 = 4;
/// The clock is up to date (ENQUEUE_NOCLOCK); every wake-up carries it.
pub const ENQ_NOCLOCK: u64 = 8;
/// Preempts the running task there (SCX_ENQ_PREEMPT).
pub const ENQ_PREEMPT: u64 = 1 << 32;
/// It was taken back from a queue (SCX_ENQ_REENQ).
pub const ENQ_REENQ: u64 = 1 << 40;
/// The CPU has nothing else to run (SCX_ENQ_LAST).
pub const ENQ_LAST: u64 = 1 << 41;
/// Bits that a scheduler must not set (__SCX_ENQ_INTERNAL_MASK).
pub const ENQ_INTERNAL_MASK: u64 = 0xff << 56;
/// Internal: ordered by virtual time (SCX_ENQ_DSQ_PRIQ).
pub const ENQ_DSQ_PRIQ: u64 = 1 << 57;

/// The task blocks (SCX_DEQ_SLEEP).
pub const DEQ_SLEEP: u64 = 1;
/// Taken off for a change of attributes (DEQUEUE_SAVE).
pub const DEQ_SAVE: u64 = 2;
/// Its place may change (DEQUEUE_MOVE).
pub const DEQ_MOVE: u64 = 4;
/// The clock is up to date (DEQUEUE_NOCLOCK).
pub const DEQ_NOCLOCK: u64 = 8;
/// 7.1: it leaves the scheduler's custody for a change of attributes (SCX_DEQ_SCHED_CHANGE).
pub const DEQ_SCHED_CHANGE: u64 = 1 << 33;

/// All tasks of a queue (SCX_REENQ_ANY), and the bits that a scheduler may set
/// (__SCX_REENQ_USER_MASK).
pub const REENQ_ANY: u64 = 1;
/// How often at one instant tasks of a queue may be taken back (SCX_REENQ_LOCAL_MAX_REPEAT).
pub const REENQ_REPEAT_MAX: u32 = 256;

/// Built-in idle tracking although `ops.update_idle` exists (SCX_OPS_KEEP_BUILTIN_IDLE).
pub const OPS_KEEP_BUILTIN_IDLE: u64 = 1;
/// `ops.enqueue` is called for the last task of a CPU (SCX_OPS_ENQ_LAST).
pub const OPS_ENQ_LAST: u64 = 1 << 1;
/// `ops.enqueue` is also called for tasks that exit (SCX_OPS_ENQ_EXITING).
pub const OPS_ENQ_EXITING: u64 = 1 << 2;
/// Only tasks of policy SCHED_EXT (SCX_OPS_SWITCH_PARTIAL).
pub const OPS_SWITCH_PARTIAL: u64 = 1 << 3;
/// `ops.enqueue` is called for tasks that may not migrate (SCX_OPS_ENQ_MIGRATION_DISABLED).
pub const OPS_ENQ_MIGRATION_DISABLED: u64 = 1 << 4;
/// Queued wake-ups are allowed (SCX_OPS_ALLOW_QUEUED_WAKEUP).
pub const OPS_ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
/// Idle masks for each node (SCX_OPS_BUILTIN_IDLE_PER_NODE).
pub const OPS_BUILTIN_IDLE_PER_NODE: u64 = 1 << 6;
/// 7.1: every insert into a local queue is an immediate one (SCX_OPS_ALWAYS_ENQ_IMMED).
pub const OPS_ALWAYS_ENQ_IMMED: u64 = 1 << 7;
/// 7.2: tasks are found by their numbers (SCX_OPS_TID_TO_TASK).
pub const OPS_TID_TO_TASK: u64 = 1 << 8;
/// Has no effect (SCX_OPS_HAS_CGROUP_WEIGHT).
pub const OPS_HAS_CGROUP_WEIGHT: u64 = 1 << 16;

/// The real-time class took the CPU (SCX_CPU_PREEMPT_RT).
pub const CPU_PREEMPT_RT: u32 = 0;
/// The deadline class took it (SCX_CPU_PREEMPT_DL).
pub const CPU_PREEMPT_DL: u32 = 1;
/// Another class took it (SCX_CPU_PREEMPT_UNKNOWN).
pub const CPU_PREEMPT_UNKNOWN: u32 = 3;

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such entry.
pub const ENOENT: i32 = 2;
/// No such process.
pub const ESRCH: i32 = 3;
/// Busy.
pub const EBUSY: i32 = 16;
/// Exists already.
pub const EEXIST: i32 = 17;
/// Invalid argument.
pub const EINVAL: i32 = 22;
/// Protocol error: a callback returned an invalid error number.
pub const EPROTO: i32 = 71;
/// Greatest error number.
pub const MAX_ERRNO: i32 = 4095;

/// Flag of a task: a kernel thread (PF_KTHREAD).
pub const PF_KTHREAD: u32 = 0x20_0000;
/// It exits (PF_EXITING).
pub const PF_EXITING: u32 = 4;
/// It was forked and has not executed a program (PF_FORKNOEXEC), like every modelled task.
pub const PF_FORKNOEXEC: u32 = 0x40;

/// Flags whose numbers differ between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnqBits {
    /// The task goes to the head (SCX_ENQ_HEAD).
    pub head: u64,
    /// `ops.select_cpu` was called (SCX_ENQ_CPU_SELECTED).
    pub cpu_selected: u64,
    /// It comes from another CPU (ENQUEUE_MIGRATED).
    pub migrated: u64,
    /// First enqueue (ENQUEUE_INITIAL).
    pub initial: u64,
}

/// Why a scheduler ended (`enum scx_exit_kind`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum ExitKind {
    /// It has not ended.
    #[default]
    None = 0,
    /// It ended normally.
    Done = 1,
    /// Unregistered from user space: the run ended.
    Unreg = 64,
    /// `scx_bpf_exit`.
    UnregBpf = 65,
    /// By the kernel: a CPU was added or removed.
    UnregKern = 66,
    /// SysRq-S.
    Sysrq = 67,
    /// The scheduler broke a rule.
    Error = 1024,
    /// `scx_bpf_error`.
    ErrorBpf = 1025,
    /// A task did not run in time.
    ErrorStall = 1026,
}

impl ExitKind {
    /// The reason in the kernel's words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::None | Self::Done => "none",
            Self::Unreg => "unregistered from user space",
            Self::UnregBpf => "unregistered from BPF",
            Self::UnregKern => "unregistered from the main kernel",
            Self::Sysrq => "disabled by sysrq-S",
            Self::Error => "runtime error",
            Self::ErrorBpf => "scx_bpf_error",
            Self::ErrorStall => "runnable task stall",
        }
    }

    /// Whether it is an error.
    pub const fn is_error(self) -> bool {
        self as u32 >= Self::Error as u32
    }
}
