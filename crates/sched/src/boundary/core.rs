// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the modelled kernel that every class may read, and the few things it may ask for.
//!
//! Counterparts: `struct task_struct` and `struct rq` (Linux kernel/sched/sched.h), reduced to what
//! more than one class needs. What only one class needs lives in that class, indexed by task or
//! CPU.

use crate::boundary::flags::WakeFlags;
use schedlab_model::random::Stream;
use schedlab_model::{
    CgroupSpec, CpuId, CpuMask, Machine, Nanos, Policy, Preempt, SchedAttr, TaskId, Topology,
    time::tick_nsec,
};

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// Runnable or running (TASK_RUNNING).
    Running,
    /// Sleeps or waits for another task.
    Sleeping,
    /// Waits for a device.
    BlockedIo,
    /// Has exited.
    Dead,
}

/// The name of a task as the kernel keeps it: at most 15 bytes (`TASK_COMM_LEN`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Comm {
    bytes: [u8; 15],
    len: u8,
}

impl Comm {
    /// The beginning of `name`, whole characters.
    pub fn new(name: &str) -> Self {
        let mut comm = Self::default();
        let mut end = name.len().min(comm.bytes.len());
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        comm.bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        comm.len = end as u8;
        comm
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// What every class may know of a task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its attributes.
    pub attr: SchedAttr,
    /// Kernel priority, lower is more important: -1 DEADLINE, 0..=98 real-time, 100..=139 fair.
    pub prio: i32,
    /// Index of its class in the stack; 0 is the class of highest priority.
    pub class: u8,
    /// State.
    pub state: TaskState,
    /// Whether it is on a runqueue (also while it runs, also with a delayed dequeue).
    pub on_rq: bool,
    /// Dequeue delayed: it sleeps, but its class still holds it in the queue (`sched_delayed`).
    pub sched_delayed: bool,
    /// The CPU whose runqueue it is on, or was on last.
    pub cpu: CpuId,
    /// Address space: tasks with the same number are threads of one process.
    pub mm: u32,
    /// Affinity, within the machine.
    pub cpus_allowed: CpuMask,
    /// Number of CPUs in `cpus_allowed`.
    pub nr_cpus_allowed: u32,
    /// CPU time up to the last switch out; see [`Core::sum_exec_runtime`] for the running value.
    pub sum_exec_runtime: Nanos,
    /// When it last started to run (meaningful while it runs).
    pub exec_start: Nanos,
    /// CPU time until it next gives up the CPU of its own accord, from `burst_at` on; `None`: not
    /// known to end. Only filled for schedulers that claim `needs_burst`.
    pub burst_ns: Option<Nanos>,
    /// `sum_exec_runtime` when `burst_ns` was set.
    pub burst_at: Nanos,
    /// Voluntary switches.
    pub nr_voluntary_switches: u64,
    /// Involuntary switches.
    pub nr_involuntary_switches: u64,
    /// Moves between CPUs.
    pub nr_migrations: u64,
    /// When it was released or created.
    pub release_ns: Nanos,
    /// Its name.
    pub comm: Comm,
}

/// What every class may know of a CPU's runqueue.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The running task; `None` is the idle task.
    pub curr: Option<TaskId>,
    /// Runnable tasks, the running one included, as the classes count them with
    /// [`Core::add_nr_running`]. A task with a delayed dequeue counts.
    pub nr_running: u32,
    /// A reschedule was asked for and has not happened yet.
    pub need_resched: bool,
    /// A reschedule was asked for lazily: it happens when the task returns to user mode, or once
    /// the next tick has made a full request of it (TIF_NEED_RESCHED_LAZY).
    pub need_resched_lazy: bool,
    /// Classes, by bit, whose [`crate::SchedClass::balance_callback`] is to follow the next
    /// reschedule.
    balance_callbacks: u8,
    /// Switches on this CPU.
    pub nr_switches: u64,
    /// When the CPU became idle (meaningful while it is idle).
    pub idle_since: Nanos,
    /// CPU time that each class of the stack has used here, by class index, up to the last switch
    /// out; see [`Core::class_exec_runtime`].
    pub class_exec_runtime: [Nanos; CLASSES_MAX],
    /// The part of `nr_running` that each class has counted.
    pub class_nr_running: [u32; CLASSES_MAX],
    /// When each class's part last rose from 0 (meaningful while it is above 0).
    pub class_running_since: [Nanos; CLASSES_MAX],
}

/// CPUs from which on it is remembered which of them have changed: on smaller machines asking all
/// of them costs less.
pub const TOUCHED_MIN_CPUS: u32 = 32;

/// Most classes in a stack.
pub const CLASSES_MAX: usize = 8;

/// A timer that a class asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerRequest {
    /// When it comes.
    pub at: Nanos,
    /// Class index in the stack.
    pub class: u8,
    /// Handed back to [`crate::SchedClass::timer`]; its meaning is the class's own. There is no
    /// cancelling: a class keeps a generation in the token and ignores what is stale.
    pub token: u64,
}

/// Outcome of comparing a woken task with what a CPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreemptCheck {
    /// Both are of one class, which decides.
    SameClass(TaskId),
    /// The CPU is idle or runs a task of a lower class: reschedule.
    Resched,
    /// The CPU runs a task of a higher class: nothing to do.
    Nothing,
}

/// Work that a scheduler did since the engine last looked; the machine model puts a price on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Queue entries examined beyond the first.
    pub entries_scanned: u32,
    /// Of these, those that were looked at without the lock of the queue.
    pub entries_unlocked: u32,
    /// CPUs whose task was compared with a woken one, under the lock, beyond the first.
    pub cpus_compared: u32,
}

/// Which run queues one lock protects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockDomain {
    /// Each CPU's has its own lock.
    Cpu,
    /// One lock for all CPUs.
    Global,
}

/// The shared state.
#[derive(Debug)]
pub struct Core {
    /// Now.
    pub now: Nanos,
    /// Ticks a second.
    pub hz: u32,
    /// Length of a tick.
    pub tick_nsec: Nanos,
    /// How late timers come on this machine.
    pub timer_delay_ns: Nanos,
    /// CPUs and what they share.
    pub topology: Topology,
    /// All CPUs.
    pub cpus: CpuMask,
    /// CPUs that run their idle task and have nothing queued.
    pub idle_cpus: CpuMask,
    /// Runqueues by CPU.
    pub rqs: Vec<Rq>,
    /// Tasks by id.
    pub tasks: Vec<Task>,
    /// Control groups; 0 is the root group.
    pub cgroups: Vec<CgroupSpec>,
    /// Random numbers for schedulers that draw.
    pub random: Stream,
    /// Work done since the engine last looked.
    pub work: Work,
    /// Circumstances of the wake-up or fork under way: meaningful while a task is enqueued that
    /// wakes, is new or has just been moved off a CPU that it may not use any more.
    pub wake_flags: WakeFlags,
    /// Which policy belongs to which class of the stack, by policy number; filled by the engine.
    class_of_policy: [u8; 8],
    /// Policies, by bit, that a class has taken over from the one that owns them.
    taken_over: u8,
    /// CPUs that each class claims; see [`Core::claim_cpu`].
    claimed: [CpuMask; CLASSES_MAX],
    /// CPUs whose latest choice was left to a class below the next one.
    passed_down: CpuMask,
    timers: Vec<TimerRequest>,
    /// CPUs of which `nr_running` or `curr` has changed; see [`Core::take_touched`].
    touched: CpuMask,
    tracks_touched: bool,
    resched_cpus: CpuMask,
    resched_pending: u32,
    /// CPUs whose request to reschedule stands but must wait.
    resched_parked: u32,
    /// The machine's preemption model is the lazy one.
    lazy_preempt: bool,
    /// CPUs asked lazily that the engine has not looked at yet.
    lazy_cpus: Vec<CpuId>,
    moves: Vec<(TaskId, CpuId, CpuId)>,
    /// A class has said that the run cannot go on, and why.
    failure: Option<String>,
    /// There are timers, moves or a failure that the engine has not looked at yet.
    has_requests: bool,
    /// A class has asked that all tasks be given their classes anew.
    reclass: bool,
    current_class: u8,
    /// Number of the latest tick, and its time: most questions are about that one.
    jiffy: u64,
    jiffy_start: Nanos,
}

impl Core {
    /// The state at the start of a run.
    pub fn new(machine: &Machine, cgroups: Vec<CgroupSpec>, random: Stream) -> Self {
        let nr_cpus = machine.nr_cpus();
        let rq = Rq {
            curr: None,
            nr_running: 0,
            need_resched: false,
            need_resched_lazy: false,
            balance_callbacks: 0,
            nr_switches: 0,
            idle_since: 0,
            class_exec_runtime: [0; CLASSES_MAX],
            class_nr_running: [0; CLASSES_MAX],
            class_running_since: [0; CLASSES_MAX],
        };
        Self {
            now: 0,
            hz: machine.hz,
            tick_nsec: tick_nsec(machine.hz),
            timer_delay_ns: machine.costs.timer_delay_ns,
            topology: machine.topology.clone(),
            cpus: CpuMask::first(nr_cpus),
            idle_cpus: CpuMask::first(nr_cpus),
            rqs: vec![rq; nr_cpus as usize],
            tasks: Vec::new(),
            cgroups,
            random,
            work: Work::default(),
            wake_flags: WakeFlags::TIMER,
            class_of_policy: [0; 8],
            taken_over: 0,
            claimed: [CpuMask::empty(); CLASSES_MAX],
            passed_down: CpuMask::empty(),
            timers: Vec::new(),
            touched: CpuMask::first(nr_cpus),
            tracks_touched: nr_cpus >= TOUCHED_MIN_CPUS,
            resched_cpus: CpuMask::empty(),
            resched_pending: 0,
            resched_parked: 0,
            lazy_preempt: machine.preempt == Preempt::Lazy,
            lazy_cpus: Vec::new(),
            moves: Vec::new(),
            failure: None,
            has_requests: false,
            reclass: false,
            current_class: 0,
            jiffy: 0,
            jiffy_start: 0,
        }
    }

    /// Number of CPUs.
    #[inline]
    pub fn nr_cpus(&self) -> u32 {
        self.rqs.len() as u32
    }

    /// A task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// A runqueue.
    #[inline]
    pub fn rq(&self, cpu: CpuId) -> &Rq {
        &self.rqs[cpu.index()]
    }

    /// Ticks since the start: floor(now / tick).
    #[inline]
    pub fn jiffies(&self) -> u64 {
        if self.now.wrapping_sub(self.jiffy_start) < self.tick_nsec {
            self.jiffy
        } else {
            self.now / self.tick_nsec
        }
    }

    /// Whether `cpu` runs its idle task and has nothing queued (`idle_cpu()`).
    #[inline]
    pub fn idle_cpu(&self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        rq.curr.is_none() && rq.nr_running == 0
    }

    /// `cpu` if `task` may run there, else the lowest CPU where it may.
    #[inline]
    pub fn allowed_cpu(&self, task: TaskId, cpu: CpuId) -> CpuId {
        let allowed = &self.task(task).cpus_allowed;
        if allowed.contains(cpu) {
            return cpu;
        }
        allowed.first_cpu().expect("affinity was checked to be within the machine")
    }

    /// Whether `task` is what its CPU runs.
    #[inline]
    pub fn is_running(&self, task: TaskId) -> bool {
        self.rq(self.task(task).cpu).curr == Some(task)
    }

    /// CPU time of `task` up to now.
    #[inline]
    pub fn sum_exec_runtime(&self, task: TaskId) -> Nanos {
        let t = self.task(task);
        if self.is_running(task) {
            t.sum_exec_runtime + (self.now - t.exec_start)
        } else {
            t.sum_exec_runtime
        }
    }

    /// CPU time that class number `class` has used on `cpu` up to now.
    #[inline]
    pub fn class_exec_runtime(&self, cpu: CpuId, class: u8) -> Nanos {
        let rq = self.rq(cpu);
        let running = match rq.curr {
            Some(curr) if self.task(curr).class == class => self.now - self.task(curr).exec_start,
            _ => 0,
        };
        rq.class_exec_runtime[usize::from(class)] + running
    }

    /// CPU time that classes above the fair one have used on `cpu` up to now. A stack may hold a
    /// class for SCHED_OTHER above the fair one.
    pub fn higher_exec_runtime(&self, cpu: CpuId) -> Nanos {
        (0..self.class_of(Policy::Batch)).map(|class| self.class_exec_runtime(cpu, class)).sum()
    }

    /// CPU time left until `task` gives up the CPU of its own accord; `None` if it is not known to.
    /// Only for schedulers that claim `needs_burst`.
    pub fn burst_remaining(&self, task: TaskId) -> Option<Nanos> {
        let t = self.task(task);
        let used = self.sum_exec_runtime(task) - t.burst_at;
        t.burst_ns.map(|burst| burst.saturating_sub(used))
    }

    /// Asks that `cpu` reschedules as soon as it can (sets TIF_NEED_RESCHED).
    #[inline]
    pub fn resched_curr(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        if !rq.need_resched {
            rq.need_resched = true;
            self.resched_cpus.set(cpu);
            self.resched_pending += 1;
        }
    }

    /// Asks that the task of `cpu` gives way when it next returns to user mode (resched_curr_lazy):
    /// what the fair class asks for its own tasks. On a machine whose kernel is not preempted
    /// lazily, and on an idle CPU, it is [`Core::resched_curr`].
    #[inline]
    pub fn resched_curr_lazy(&mut self, cpu: CpuId) {
        if !self.lazy_preempt || self.rq(cpu).curr.is_none() {
            self.resched_curr(cpu);
            return;
        }
        let rq = &mut self.rqs[cpu.index()];
        if !rq.need_resched && !rq.need_resched_lazy {
            rq.need_resched_lazy = true;
            self.lazy_cpus.push(cpu);
        }
    }

    /// Asks for the calling class's `balance_callback` after the next reschedule of `cpu`.
    #[inline]
    pub fn queue_balance_callback(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].balance_callbacks |= 1 << self.current_class;
    }

    /// Whether it is remembered which CPUs have changed.
    #[inline]
    pub fn tracks_touched(&self) -> bool {
        self.tracks_touched
    }

    /// CPUs whose running task or whose number of tasks may have changed since the last call; at
    /// first all of them. Only on machines of at least [`TOUCHED_MIN_CPUS`].
    pub fn take_touched(&mut self) -> CpuMask {
        std::mem::replace(&mut self.touched, CpuMask::empty())
    }

    /// Something of `cpu` changes that [`Core::take_touched`] tells.
    #[doc(hidden)]
    #[inline]
    pub fn touch(&mut self, cpu: CpuId) {
        if self.tracks_touched {
            self.note_touched(cpu);
        }
    }

    // Out of line: most machines are small.
    #[cold]
    fn note_touched(&mut self, cpu: CpuId) {
        self.touched.set(cpu);
    }

    /// Counts `count` more runnable tasks on `cpu` (`add_nr_running`).
    #[inline]
    pub fn add_nr_running(&mut self, cpu: CpuId, count: u32) {
        let class = usize::from(self.current_class);
        let rq = &mut self.rqs[cpu.index()];
        rq.nr_running += count;
        if rq.class_nr_running[class] == 0 {
            rq.class_running_since[class] = self.now;
        }
        rq.class_nr_running[class] += count;
        self.idle_cpus.clear(cpu);
        self.touch(cpu);
    }

    /// Counts `count` fewer runnable tasks on `cpu` (`sub_nr_running`).
    #[inline]
    pub fn sub_nr_running(&mut self, cpu: CpuId, count: u32) {
        let rq = &mut self.rqs[cpu.index()];
        assert!(rq.nr_running >= count, "nr_running of CPU {cpu} would fall below 0");
        rq.nr_running -= count;
        let part = &mut rq.class_nr_running[usize::from(self.current_class)];
        assert!(*part >= count, "class {} uncounts tasks it has not counted", self.current_class);
        *part -= count;
        if rq.nr_running == 0 && rq.curr.is_none() {
            self.idle_cpus.set(cpu);
        }
        self.touch(cpu);
    }

    /// Moves `task`, which is not running, to `cpu` (`set_task_cpu`). The class has taken it off
    /// the old queue itself and puts it on the new one itself.
    pub fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let from = self.tasks[task.index()].cpu;
        if from != cpu {
            assert!(!self.is_running(task), "task {task} is moved while it runs on CPU {from}");
            self.tasks[task.index()].cpu = cpu;
            self.tasks[task.index()].nr_migrations += 1;
            self.moves.push((task, from, cpu));
            self.has_requests = true;
        }
    }

    /// Completes the delayed dequeue of `task`: it is on no runqueue any more. The class has
    /// uncounted it.
    pub fn dequeue_delayed(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.index()];
        assert!(t.sched_delayed && t.on_rq, "task {task} has no delayed dequeue to complete");
        t.sched_delayed = false;
        t.on_rq = false;
    }

    /// Compares `task`, just queued on `cpu`, with what the CPU runs (`wakeup_preempt`'s class
    /// part).
    #[inline]
    pub fn preempt_check(&self, cpu: CpuId, task: TaskId) -> PreemptCheck {
        match self.rq(cpu).curr {
            None => PreemptCheck::Resched,
            Some(curr) => match self.task(task).class.cmp(&self.task(curr).class) {
                std::cmp::Ordering::Less => PreemptCheck::Resched,
                std::cmp::Ordering::Equal => PreemptCheck::SameClass(curr),
                std::cmp::Ordering::Greater => PreemptCheck::Nothing,
            },
        }
    }

    /// When a timer that is set for `at` comes. A machine's timers may be late
    /// ([`schedlab_model::Costs::timer_delay_ns`]).
    #[inline]
    pub fn timer_comes(&self, at: Nanos) -> Nanos {
        at.max(self.now).saturating_add(self.timer_delay_ns)
    }

    /// Whether a timer that was set for `at` has come, or comes now.
    #[inline]
    pub fn timer_has_come(&self, at: Nanos) -> bool {
        at.saturating_add(self.timer_delay_ns) <= self.now
    }

    /// Asks for a timer of the calling class, set for `at`; see [`TimerRequest`].
    pub fn start_timer(&mut self, at: Nanos, token: u64) {
        let at = self.timer_comes(at);
        self.timers.push(TimerRequest { at, class: self.current_class, token });
        self.has_requests = true;
    }

    /// The calling class says that the run cannot go on: what happened, what to do. Only the first
    /// text counts.
    pub fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
        self.has_requests = true;
    }

    /// The calling class takes over other policies than before
    /// ([`crate::SchedClass::takes_over`]): before the next instant the engine asks every class and
    /// moves the tasks, then calls [`crate::SchedClass::reclassed`].
    pub fn request_reclass(&mut self) {
        self.reclass = true;
    }

    /// Says whether the calling class claims `cpu`: lower classes keep their tasks away from it,
    /// even while it runs nothing of the class.
    #[inline]
    pub fn claim_cpu(&mut self, cpu: CpuId, is_claimed: bool) {
        let claimed = &mut self.claimed[usize::from(self.current_class)];
        if is_claimed { claimed.set(cpu) } else { claimed.clear(cpu) }
    }

    /// CPUs that classes above number `class` claim.
    pub fn claimed_above(&self, class: u8) -> CpuMask {
        let above = &self.claimed[..usize::from(class)];
        above.iter().fold(CpuMask::empty(), |all, claimed| all.or(claimed))
    }

    /// The calling class names nobody on `cpu` because a class below the next one is to choose:
    /// those in between name nobody either. Stands until it is set anew.
    #[inline]
    pub fn pass_pick_down(&mut self, cpu: CpuId, is_passed: bool) {
        if is_passed {
            self.passed_down.set(cpu);
        } else if self.passed_down.contains(cpu) {
            self.passed_down.clear(cpu);
        }
    }

    /// Whether a higher class has left the latest choice of `cpu` to a lower one than the next.
    #[inline]
    pub fn is_pick_passed_down(&self, cpu: CpuId) -> bool {
        self.passed_down.contains(cpu)
    }

    /// Index of the class that is being called.
    #[inline]
    pub fn current_class(&self) -> u8 {
        self.current_class
    }

    /// The class of `policy` in the stack.
    #[inline]
    pub fn class_of(&self, policy: Policy) -> u8 {
        self.class_of_policy[policy as usize]
    }

    /// Whether a class has taken `policy` over from the one that owns it
    /// ([`crate::SchedClass::takes_over`]).
    pub fn is_taken_over(&self, policy: Policy) -> bool {
        self.taken_over & 1 << policy as u8 != 0
    }
}

/// The engine's side: what a class must not call.
impl Core {
    /// Says which class a policy belongs to, and whether it has taken the policy over.
    #[doc(hidden)]
    pub fn set_class_of(&mut self, policy: Policy, class: u8, is_taken_over: bool) {
        self.class_of_policy[policy as usize] = class;
        let bit = 1 << policy as u8;
        self.taken_over =
            if is_taken_over { self.taken_over | bit } else { self.taken_over & !bit };
    }

    /// Says which class is about to be called.
    #[doc(hidden)]
    #[inline]
    pub fn enter_class(&mut self, class: u8) {
        debug_assert!(usize::from(class) < CLASSES_MAX, "class {class} is called");
        self.current_class = class;
    }

    /// The lowest CPU that must reschedule.
    #[doc(hidden)]
    #[inline]
    pub fn next_resched(&self) -> Option<CpuId> {
        debug_assert_eq!(self.resched_pending, self.resched_cpus.weight(), "requests miscounted");
        if self.resched_pending == 0 { None } else { self.resched_cpus.first_cpu() }
    }

    /// The CPU has rescheduled.
    #[doc(hidden)]
    #[inline]
    pub fn clear_resched(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        debug_assert!(rq.need_resched || !self.resched_cpus.contains(cpu), "CPU {cpu} asks twice");
        rq.need_resched_lazy = false;
        if rq.need_resched {
            rq.need_resched = false;
            if self.resched_cpus.take(cpu) {
                self.resched_pending -= 1;
            } else {
                self.resched_parked -= 1;
            }
        }
    }

    /// The request to reschedule `cpu` stands, but is not to be acted on yet.
    #[doc(hidden)]
    #[inline]
    pub fn park_resched(&mut self, cpu: CpuId) {
        if self.resched_cpus.contains(cpu) {
            self.resched_cpus.clear(cpu);
            self.resched_pending -= 1;
            self.resched_parked += 1;
        }
    }

    /// Whether a request to reschedule waits anywhere.
    #[doc(hidden)]
    pub fn has_parked_resched(&self) -> bool {
        self.resched_parked > 0
    }

    /// A request to reschedule `cpu` that was put off is to be acted on now.
    #[doc(hidden)]
    pub fn unpark_resched(&mut self, cpu: CpuId) {
        if self.rq(cpu).need_resched && !self.resched_cpus.contains(cpu) {
            self.resched_cpus.set(cpu);
            self.resched_pending += 1;
            self.resched_parked -= 1;
        }
    }

    /// Classes, by bit, that have asked for their `balance_callback` on `cpu` since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_balance_callbacks(&mut self, cpu: CpuId) -> u8 {
        std::mem::take(&mut self.rqs[cpu.index()].balance_callbacks)
    }

    /// A CPU that was asked lazily since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_lazy(&mut self) -> Option<CpuId> {
        self.lazy_cpus.pop()
    }

    /// The oldest timer asked for and not yet taken.
    #[doc(hidden)]
    #[inline]
    pub fn take_timer(&mut self) -> Option<TimerRequest> {
        (!self.timers.is_empty()).then(|| self.timers.remove(0))
    }

    /// Whether a class has asked for timers or moved tasks since the engine last looked.
    #[doc(hidden)]
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.has_requests
    }

    /// What [`Core::fail`] was told.
    #[doc(hidden)]
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Whether [`Core::request_reclass`] was called since the last time.
    #[doc(hidden)]
    #[inline]
    pub fn take_reclass(&mut self) -> bool {
        std::mem::take(&mut self.reclass)
    }

    /// Move number `index` since [`Core::requests_done`], the oldest first: task, the CPU it came
    /// from, the CPU it went to. One task may move more than once.
    #[doc(hidden)]
    pub fn nth_move(&self, index: usize) -> Option<(TaskId, CpuId, CpuId)> {
        self.moves.get(index).copied()
    }

    /// The engine has looked at all requests: forgets the moves.
    #[doc(hidden)]
    pub fn requests_done(&mut self) {
        self.moves.clear();
        self.has_requests = false;
    }

    /// A tick begins: its number is computed once for all CPUs.
    #[doc(hidden)]
    #[inline]
    pub fn note_tick(&mut self) {
        if self.now == self.jiffy_start + self.tick_nsec {
            self.jiffy += 1;
            self.jiffy_start = self.now;
        } else {
            self.jiffy = self.now / self.tick_nsec;
            self.jiffy_start = self.jiffy * self.tick_nsec;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::Purpose;

    #[test]
    fn a_name_is_cut_between_characters() {
        assert_eq!(Comm::new("hog-0").as_str(), "hog-0");
        assert_eq!(Comm::new("0123456789abcdef").as_str(), "0123456789abcde");
        assert_eq!(Comm::new("0123456789abcd\u{e9}").as_str(), "0123456789abcd");
        assert_eq!(Comm::default().as_str(), "");
    }

    #[test]
    fn timers_are_taken_in_the_order_in_which_they_were_asked_for() {
        let random = Stream::new(1, Purpose::Scheduler, 0);
        let mut core = Core::new(&Machine::flat(1), vec![CgroupSpec::root()], random);
        core.enter_class(1);
        for (at, token) in [(7, 1), (5, 2), (5, 3)] {
            core.start_timer(at, token);
        }
        let taken: Vec<_> = std::iter::from_fn(|| core.take_timer()).collect();
        assert_eq!(taken.iter().map(|timer| timer.token).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(taken.iter().all(|timer| timer.class == 1));
    }
}
