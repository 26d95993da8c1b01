// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the modelled core, in addition to the kernel's shared state.
//!
//! Source: `struct scx_rq`, `struct scx_sched`, `struct scx_dsp_ctx` of Linux 6.18.

use super::consts::{DSP_DFL_MAX_BATCH, SLICE_INF, WATCHDOG_MAX_TIMEOUT_MS};
use super::dsq::Dsqs;
use super::idle::IdleMasks;
use super::kick::FruitlessKicks;
use super::notes::{Kick, Notes};
use super::ops::{Callback, Callbacks, ExitInfo, Locator, OpsInfo};
use super::options::ExtOptions;
use super::task::{ExtTask, NIL};
use super::user::UserState;
use schedlab_model::{CgroupSpec, CpuId, CpuMask, Machine, Nanos, TaskId, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The stage of a scheduler (/sys/kernel/sched_ext/state).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Not loaded, or unloaded.
    Disabled,
    /// Tasks are about to move to the scheduler.
    Enabling,
    /// The scheduler is active.
    Enabled,
    /// Its tasks are about to leave it.
    Disabling,
}

/// Kicks that a CPU has requested and that are not delivered yet.
#[derive(Clone, Debug)]
pub struct Kicks {
    /// CPUs to reschedule.
    pub plain: CpuMask,
    /// CPUs to reschedule if idle.
    pub if_idle: CpuMask,
    /// CPUs whose running task's slice ends.
    pub preempt: CpuMask,
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct ExtCpu {
    /// The first of its runnable tasks that do not run, in order of waiting time, or [`NIL`].
    pub runnable_head: u32,
    /// Last of them.
    pub runnable_tail: u32,
    /// Runnable tasks of the class.
    pub nr_running: u32,
    /// Whether the previous task continues (SCX_RQ_BAL_KEEP).
    pub bal_keep: bool,
    /// Balancing is under way (SCX_RQ_IN_BALANCE).
    pub in_balance: bool,
    /// Whether a higher class has it, and the scheduler was told.
    pub released: bool,
    /// While a task stops: whether a lower class takes over (`rq->next_class` of 7.x).
    pub goes_lower: bool,
    /// Its running task, if the migration thread is about to move it away.
    pub moving: Option<TaskId>,
    /// Number of the next `ops.enqueue`.
    pub qseq: u64,
    /// Tasks for other CPUs' local queues, in order.
    pub deferred: Vec<TaskId>,
    /// Its kicks; `None`: none.
    pub kicks: Option<Box<Kicks>>,
    /// Kicks that it took while it did nothing.
    pub fruitless_kicks: FruitlessKicks,
    /// Where the next search for a CPU begins.
    pub rotor: u32,
    /// Target performance, 0 to 1024.
    pub cpuperf_target: u32,
}

/// An entry of the dispatch buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    /// The task.
    pub task: TaskId,
    /// Number of its `ops.enqueue` when it was dispatched.
    pub qseq: u64,
    /// The target queue.
    pub dsq_id: u64,
    /// Flags of the insertion.
    pub enq_flags: u64,
}

/// The running callback, and what it may do.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The callback; `None`: none.
    pub callback: Option<Callback>,
    /// The CPU that executes it.
    pub cpu: CpuId,
    /// The CPU whose run queue it holds.
    pub rq: Option<CpuId>,
    /// The task that may be inserted directly.
    pub direct: Direct,
    /// The interrupt that it is part of.
    pub interrupt: Interrupt,
    /// How long ago it took place, if that was before the run (ns).
    pub back_ns: Nanos,
}

impl Context {
    /// No callback, executed on `cpu` for a task.
    pub const fn new(cpu: CpuId, rq: Option<CpuId>) -> Self {
        Self { callback: None, cpu, rq, direct: Direct::No, interrupt: Interrupt::None, back_ns: 0 }
    }
}

/// The interrupt in which a callback is executed (include/linux/preempt.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// None: a task's own call, or the scheduler's (`in_task()`).
    None,
    /// The end of an interrupt (`in_serving_softirq()`): timers of the scheduler.
    Soft,
    /// The interrupt itself (`in_hardirq()`): ticks, and wake-ups by timers and devices.
    Hard,
}

impl Interrupt {
    /// What it adds to the kernel's `preempt_count()`.
    pub const fn preempt_count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Soft => 1 << 8,
            Self::Hard => 1 << 16,
        }
    }
}

/// The task that `ops.select_cpu` or `ops.enqueue` may insert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direct {
    /// None: inserts are buffered.
    No,
    /// This one, once.
    Task(TaskId),
    /// It has been inserted.
    Done,
}

/// Counters of the core (`struct scx_event_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// The CPU that `ops.select_cpu` returned could not be used.
    pub select_cpu_fallback: u64,
    /// The previous task continued because no other was runnable.
    pub dispatch_keep_last: u64,
    /// Exiting tasks that skipped `ops.enqueue`.
    pub enq_skip_exiting: u64,
    /// Slices refilled.
    pub refill_slice_dfl: u64,
    /// Time bypassed (ns).
    pub bypass_duration: u64,
    /// Tasks dispatched while bypassed.
    pub bypass_dispatch: u64,
    /// How often bypassing began.
    pub bypass_activate: u64,
    /// 7.1: inserts of tasks that the scheduler did not own.
    pub insert_not_owned: u64,
}

/// A timer of the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct OpsTimer {
    /// When it expires.
    pub at: Nanos,
    /// The CPU where it expires.
    pub cpu: CpuId,
}

/// The core's state.
#[derive(Debug)]
pub struct ExtState {
    /// Data of the scheduler.
    pub info: OpsInfo,
    /// Callbacks that may be called now.
    pub live: Callbacks,
    /// Settings.
    pub options: ExtOptions,
    /// Index of the class in the stack.
    pub class: u8,
    /// Stage of the scheduler.
    pub status: Status,
    /// Whether the scheduler is bypassed.
    pub bypass: bool,
    /// Tasks by id.
    pub tasks: Vec<ExtTask>,
    /// Queues.
    pub dsqs: Dsqs,
    /// CPUs.
    pub cpus: Vec<ExtCpu>,
    /// Idle CPUs.
    pub idle: IdleMasks,
    /// Why the scheduler ended or is about to.
    pub exit: Option<ExitInfo>,
    /// Names the place of a call in the scheduler's source.
    pub locator: Option<Locator>,
    /// The callback in which the scheduler crashed, and what happened.
    pub fault: Option<(Callback, String)>,
    /// The running callback.
    pub context: Context,
    /// Whether the next callback is about the same task as the last one, and nothing of it has
    /// changed.
    pub is_shown: bool,
    /// The dispatch buffer.
    pub buffer: Vec<Buffered>,
    /// Size of the dispatch buffer.
    pub max_batch: u32,
    /// Tasks dispatched in this round.
    pub nr_dispatched: u32,
    /// Tasks whose `ops.dequeue` of 7.1 waits for the end of the running callback.
    pub left_custody: Vec<TaskId>,
    /// Tasks that `reenqueue_local` took back and that `ops.enqueue` gets next.
    pub taken_back: Vec<(CpuId, TaskId)>,
    /// Numbers of the queues whose tasks `dsq_reenq` takes back next, each once.
    pub reenqueuing: Vec<u32>,
    /// When queues were last taken back, and how often since then.
    pub reenqueued: (Nanos, u32),
    /// CPUs with deferred dispatches.
    pub deferring: Vec<CpuId>,
    /// CPUs that take a kick later.
    pub late_kicks: BTreeSet<CpuId>,
    /// Cost of a switch between tasks.
    pub switch_ns: Nanos,
    /// CPUs with kicks.
    pub kicking: Vec<CpuId>,
    /// The scheduler's user half.
    pub user: UserState,
    /// Timers of the scheduler by token.
    pub timers: BTreeMap<u64, OpsTimer>,
    /// The watchdog's next check; `None`: no check is set.
    pub next_check: Option<Nanos>,
    /// When the scheduler was loaded.
    pub loaded_at: Nanos,
    /// Tasks that have exited but are still on their CPUs.
    pub dead: Vec<TaskId>,
    /// The longest wait that has ended (ns).
    pub longest_wait: Nanos,
    /// A task that waited when the run ended, if that may have become a stall.
    pub short_text: Option<String>,
    /// How a scheduler ended that ended before the run.
    pub end_text: Option<String>,
    /// Text of the dump callbacks.
    pub dump: String,
    /// Counters.
    pub events: Events,
    /// Groups that were passed to `ops.cgroup_init`.
    pub cgroups_ready: Vec<bool>,
    /// The waking task for which `ops.select_cpu` was called.
    pub selected: Option<TaskId>,
    /// Tasks of policy SCHED_EXT that the scheduler refused.
    pub nr_rejected: u64,
    /// Number of NUMA nodes.
    pub nr_nodes: u32,
    /// Notes for explanations; `None` without an observer.
    pub notes: Option<Box<Notes>>,
}

impl ExtCpu {
    /// A CPU without tasks.
    fn new() -> Self {
        Self {
            runnable_head: NIL,
            runnable_tail: NIL,
            nr_running: 0,
            bal_keep: false,
            in_balance: false,
            released: false,
            goes_lower: false,
            moving: None,
            qseq: 0,
            deferred: Vec::new(),
            kicks: None,
            fruitless_kicks: FruitlessKicks::default(),
            rotor: 0,
            cpuperf_target: super::consts::CPUPERF_ONE,
        }
    }
}

impl ExtState {
    /// The state before the scheduler is loaded.
    pub fn new(
        info: OpsInfo,
        options: ExtOptions,
        machine: &Machine,
        cgroups: &[CgroupSpec],
    ) -> Self {
        let nr_cpus = machine.nr_cpus();
        let nr_nodes = nr_nodes(&machine.topology);
        let max_batch = match info.dispatch_max_batch {
            0 => DSP_DFL_MAX_BATCH,
            batch => batch,
        };
        Self {
            live: Callbacks::default(),
            options,
            class: 0,
            status: Status::Disabled,
            bypass: false,
            tasks: Vec::new(),
            dsqs: Dsqs::new(nr_cpus, nr_nodes),
            cpus: vec![ExtCpu::new(); nr_cpus as usize],
            idle: IdleMasks::new(&machine.topology),
            exit: None,
            locator: None,
            fault: None,
            context: Context::new(CpuId(0), None),
            is_shown: false,
            buffer: Vec::new(),
            max_batch,
            nr_dispatched: 0,
            left_custody: Vec::new(),
            taken_back: Vec::new(),
            reenqueuing: Vec::new(),
            reenqueued: (0, 0),
            deferring: Vec::new(),
            kicking: Vec::new(),
            late_kicks: BTreeSet::new(),
            switch_ns: machine.costs.context_switch_ns,
            user: UserState::default(),
            timers: BTreeMap::new(),
            next_check: None,
            loaded_at: 0,
            dead: Vec::new(),
            longest_wait: 0,
            short_text: None,
            end_text: None,
            dump: String::new(),
            events: Events::default(),
            cgroups_ready: vec![false; cgroups.len()],
            selected: None,
            nr_rejected: 0,
            nr_nodes,
            notes: None,
            info,
        }
    }

    /// A kick at `now` by the running callback. The caller sets its kind.
    pub fn kick_now(&self, now: Nanos) -> Kick {
        let Context { callback, cpu, .. } = self.context;
        Kick { at: now, by: callback, from_cpu: cpu, how: "" }
    }

    /// A task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &ExtTask {
        &self.tasks[task.index()]
    }

    /// A task, to be changed.
    #[inline]
    pub fn task_mut(&mut self, task: TaskId) -> &mut ExtTask {
        &mut self.tasks[task.index()]
    }

    /// A CPU.
    #[inline]
    pub fn cpu(&self, cpu: CpuId) -> &ExtCpu {
        &self.cpus[cpu.index()]
    }

    /// A CPU, to be changed.
    #[inline]
    pub fn cpu_mut(&mut self, cpu: CpuId) -> &mut ExtCpu {
        &mut self.cpus[cpu.index()]
    }

    /// Whether `callback` exists and may be called now.
    #[inline]
    pub fn has(&self, callback: Callback) -> bool {
        self.live.has(callback)
    }

    /// Whether the scheduler set this SCX_OPS_* bit.
    #[inline]
    pub fn has_flag(&self, flag: u64) -> bool {
        self.info.flags & flag != 0
    }

    /// Subtracts the CPU time of running `p` up to now from its slice. Overrun is not carried over.
    #[inline]
    pub fn charge(&mut self, now: Nanos, p: TaskId) {
        let task = &mut self.tasks[p.index()];
        let used = now - task.charged_at;
        task.charged_at = now;
        let slice = task.entity.slice();
        if used > 0 && slice != SLICE_INF {
            task.entity.set_slice(slice.saturating_sub(used));
        }
    }

    /// The watchdog's limit, ns.
    pub fn timeout_ns(&self) -> Nanos {
        let ms = match self.info.timeout_ms {
            0 => WATCHDOG_MAX_TIMEOUT_MS,
            ms => ms,
        };
        Nanos::from(ms) * 1_000_000
    }
}

/// Number of NUMA nodes.
fn nr_nodes(topology: &Topology) -> u32 {
    topology.node.iter().max().map_or(1, |node| node + 1)
}
