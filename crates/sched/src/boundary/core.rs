// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the modelled kernel that all classes can read, and the requests that they can make.
//!
//! Counterparts: `struct task_struct` and `struct rq` (Linux kernel/sched/sched.h), reduced to what
//! more than one class needs. State of a single class is kept in that class, indexed by task or
//! CPU.

use crate::boundary::clock::StoppedClock;
use crate::boundary::flags::WakeFlags;
use crate::boundary::turns::Turns;
use schedlab_model::random::Stream;
use schedlab_model::{
    CgroupSpec, Comm, CpuId, CpuMask, Machine, Nanos, Policy, Preempt, SchedAttr, TaskId, Topology,
    time::tick_nsec,
};
use std::sync::Arc;

/// State of a task.
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

/// The state of a task that all classes can read.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its attributes, shared by the tasks of one description until they change: a run may have a
    /// million tasks, and a set of CPUs is 136 bytes.
    pub attr: Arc<SchedAttr>,
    /// Kernel priority, lower is more important: -1 DEADLINE, 0..=98 real-time, 100..=139 fair.
    pub prio: i32,
    /// Index of its class in the stack; 0 is the highest class.
    pub class: u8,
    /// State.
    pub state: TaskState,
    /// Whether it is on a runqueue: also while it runs, and while its dequeue is delayed.
    pub on_rq: bool,
    /// Its dequeue is delayed: it sleeps, but its class still has it in the queue
    /// (`sched_delayed`).
    pub sched_delayed: bool,
    /// Whether it frees its memory and does not return to user mode any more (PF_EXITING).
    pub is_exiting: bool,
    /// The CPU whose runqueue it is on, or was on last.
    pub cpu: CpuId,
    /// Address space: tasks with the same number are threads of one process.
    pub mm: u32,
    /// Affinity, within the machine; shared likewise.
    pub cpus_allowed: Arc<CpuMask>,
    /// Number of CPUs in `cpus_allowed`.
    pub nr_cpus_allowed: u32,
    /// CPU time (ns) up to its last switch out. [`Core::sum_exec_runtime`] also counts the present
    /// stay.
    pub sum_exec_runtime: Nanos,
    /// When it last started to run (valid while it runs).
    pub exec_start: Nanos,
    /// CPU time (ns) until it next blocks, yields or exits, counted from `burst_at`; `None`:
    /// unknown or endless. Set only for schedulers with `needs_burst`.
    pub burst_ns: Option<Nanos>,
    /// `sum_exec_runtime` when `burst_ns` was set.
    pub burst_at: Nanos,
    /// Voluntary switches.
    pub nr_voluntary_switches: u64,
    /// Involuntary switches.
    pub nr_involuntary_switches: u64,
    /// Migrations between CPUs.
    pub nr_migrations: u64,
    /// When it was released or created.
    pub release_ns: Nanos,
    /// How long before `release_ns` it was created (ns).
    pub age_ns: Nanos,
    /// Its own name, in reports and for schedulers that are no kernel's.
    pub name: Comm,
    /// What a kernel calls it before its first instructions, which set its own name: what its
    /// parent was called at the fork. `None` after them, and for tasks that nobody forked.
    pub inherited_comm: Option<Comm>,
}

impl Task {
    /// What a kernel calls it now (`comm`).
    pub fn comm(&self) -> &Comm {
        self.inherited_comm.as_ref().unwrap_or(&self.name)
    }
}

/// The state of a CPU's runqueue that all classes can read.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The running task; `None` is the idle task.
    pub curr: Option<TaskId>,
    /// Number of runnable tasks, the running one included, as counted with
    /// [`Core::add_nr_running`]. A task with a delayed dequeue counts.
    pub nr_running: u32,
    /// Whether a requested reschedule has not happened yet.
    pub need_resched: bool,
    /// Whether a lazy reschedule was requested: it happens when the task returns to user mode, or
    /// after the next tick has turned it into a full request (TIF_NEED_RESCHED_LAZY).
    pub need_resched_lazy: bool,
    /// Whether the last request to reschedule was only for what the running task does as it
    /// returns to user mode (TIF_NOTIFY_RESUME). A real request comes before that.
    pub resched_is_notify: bool,
    /// When the last switch comes, or came, for which the way to it took time.
    pub switches_at: Nanos,
    /// When its timer of slices and budgets was started last, by any class.
    pub hrtick_started: Nanos,
    /// When its clock was updated last, if the next pick leaves the clock as it is
    /// (`rq_clock_skip_update`).
    pub clock_stopped: StoppedClock,
    /// Classes, by bit, that requested [`crate::SchedClass::balance_callback`] after the next
    /// reschedule.
    balance_callbacks: u8,
    /// Switches on this CPU.
    pub nr_switches: u64,
    /// When the CPU became idle (valid while it is idle).
    pub idle_since: Nanos,
    /// CPU time (ns) of each class of the stack on this CPU, by class index, up to the last switch
    /// out. [`Core::class_exec_runtime`] also counts the present stay.
    pub class_exec_runtime: [Nanos; CLASSES_MAX],
    /// The part of `nr_running` that each class counted.
    pub class_nr_running: [u32; CLASSES_MAX],
    /// When each class's part last rose from 0 (valid while it is above 0).
    pub class_running_since: [Nanos; CLASSES_MAX],
}

/// From this number of CPUs on, the core remembers which CPUs changed. On smaller machines it is
/// faster to look at all of them.
pub const TOUCHED_MIN_CPUS: u32 = 32;

/// Most classes in a stack.
pub const CLASSES_MAX: usize = 8;

/// A timer that a class requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerRequest {
    /// When it expires.
    pub at: Nanos,
    /// Index of the class in the stack.
    pub class: u8,
    /// Passed to [`crate::SchedClass::timer`]; the class defines its meaning. Timers cannot be
    /// cancelled: a class keeps a generation in the token and ignores old ones.
    pub token: u64,
}

/// Result of comparing a woken task with the running task of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreemptCheck {
    /// Both are of one class, which decides.
    SameClass(TaskId),
    /// The CPU is idle or runs a task of a lower class: reschedule.
    Resched,
    /// The CPU runs a task of a higher class: nothing to do.
    Nothing,
}

/// Work that a scheduler did since the engine last read it. The machine defines its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Queue entries examined beyond the first.
    pub entries_scanned: u32,
    /// Those of them that were examined without the queue's lock.
    pub entries_unlocked: u32,
    /// What the present switch takes (ns) because the previous task leaves the queues of its
    /// groups.
    pub leave_ns: Nanos,
    /// At how many levels below the root the present switch stays in the same groups.
    pub shared_levels: u32,
    /// How often the timer of a slice was started.
    pub hrtick_starts: u32,
    /// How often the budget of a server was renewed.
    pub server_refills: u32,
    /// Number of tasks, or groups without any, that the pick has found asleep on their queue.
    pub delayed_dequeued: u32,
    /// Instructions of a scheduler's programs, as [`schedlab_model::Costs::bpf_kinsn_ns`] has them.
    pub bpf_insns: u32,
    /// The CPU that executed the last of them.
    pub bpf_cpu: CpuId,
    /// The CPU whose timer of a slice has expired.
    pub hrtick_ended: Option<CpuId>,
    /// The CPU whose timer of a slice or a budget has expired while a task of another class runs.
    pub hrtick_stray: Option<CpuId>,
    /// The CPU on which another timer of a class has expired that takes time there.
    pub timer_ended: Option<CpuId>,
    /// Whether that is the timer of the 0-lag time of a SCHED_DEADLINE task.
    pub is_inactive_timer: bool,
    /// The CPU whose group may run again after it had used its quota.
    pub unthrottled: Option<CpuId>,
    /// How many tasks that put back on its queue.
    pub unthrottled_tasks: u32,
    /// Levels of groups of these tasks, below the first.
    pub unthrottled_levels: u32,
    /// Whether the picked task is throttled at its return to user mode.
    pub is_visit: bool,
    /// Whether the time of a group is used up and its running task leaves by itself: at a tick, or
    /// since the last pick.
    pub leaves_itself: bool,
    /// CPU time (ns) of a task that goes to sleep since the clock of its CPU was updated
    /// (`update_rq_clock` in `__schedule`).
    pub after_clock_ns: Nanos,
    /// The time that the clock of the CPU showed at the last reschedule.
    pub pick_clock_ns: Nanos,
    /// The true time of that reschedule.
    pub switch_ns: Nanos,
    /// CPUs whose running task was compared with a woken one, under the lock, after the first.
    pub cpus_compared: u32,
}

/// Which run queues share a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockDomain {
    /// Each CPU's queue has its own lock.
    Cpu,
    /// All queues share one lock.
    Global,
}

/// The state of the modelled kernel that all classes share.
#[derive(Debug)]
pub struct Core {
    /// Present time (ns).
    pub now: Nanos,
    /// Ticks per second.
    pub hz: u32,
    /// Length of a tick (ns).
    pub tick_nsec: Nanos,
    /// Delay of timers on this machine (ns).
    pub timer_delay_ns: Nanos,
    /// What it takes to start the timer of a slice on this machine (ns).
    pub hrtick_after_ns: Nanos,
    /// From a switch until it is started then (ns).
    pub hrtick_switch_ns: Nanos,
    /// As [`schedlab_model::Costs::clock_lead_ns`].
    pub clock_lead_ns: Nanos,
    /// As [`schedlab_model::Costs::nohz_kick_ns`].
    pub nohz_kick_ns: Nanos,
    /// As [`schedlab_model::Costs::tick_budget_lead_ns`].
    pub tick_budget_lead_ns: Nanos,
    /// As [`schedlab_model::Costs::pick_entity_ns`].
    pub pick_entity_ns: Nanos,
    /// As [`schedlab_model::Costs::pick_shared_ns`].
    pub pick_shared_ns: Nanos,
    /// As [`schedlab_model::Costs::bpf_kinsn_ns`].
    pub bpf_kinsn_ns: Nanos,
    /// How long a task whose group has used its quota visits its CPU (ns).
    pub throttle_ns: Nanos,
    /// Whether periods of cpu.max end at multiples of their length.
    pub aligns_periods: bool,
    /// From the creation of tasks to the start of the run (ns).
    pub set_up_ns: Nanos,
    /// Whose turn it is among equally good CPUs; `None` if the first one is taken.
    pub turns: Option<Turns>,
    /// Time between two checks for stalls of a sched_ext scheduler (ns); 0: none is loaded.
    pub check_period_ns: Nanos,
    /// How much earlier fair servers started that start at time 0 (ns).
    pub server_lead_ns: Nanos,
    /// As [`schedlab_model::Costs::server_idle_ns`].
    pub server_idle_ns: Nanos,
    /// CPUs and what they share.
    pub topology: Topology,
    /// All CPUs.
    pub cpus: CpuMask,
    /// CPUs that run their idle task and have an empty queue.
    pub idle_cpus: CpuMask,
    /// Runqueues by CPU.
    pub rqs: Vec<Rq>,
    /// Tasks by id.
    pub tasks: Vec<Task>,
    /// Control groups; 0 is the root group.
    pub cgroups: Vec<CgroupSpec>,
    /// Random numbers for schedulers.
    pub random: Stream,
    /// Work since the engine last read it.
    pub work: Work,
    /// The task of the scheduler's user half, once it exists.
    pub user_half: Option<TaskId>,
    /// Circumstances of the present wake-up or fork. Valid while a task is enqueued that wakes, is
    /// new, or was just moved off a CPU that it may not use any more.
    pub wake_flags: WakeFlags,
    /// Index of the class that each policy belongs to, by policy number. The engine sets it.
    class_of_policy: [u8; 8],
    /// Policies, by bit, that a class has taken over from the one that owns them.
    taken_over: u8,
    /// CPUs that each class claims: [`Core::claim_cpu`].
    claimed: [CpuMask; CLASSES_MAX],
    /// CPUs whose latest pick was left to a class below the next one.
    passed_down: CpuMask,
    timers: Vec<TimerRequest>,
    /// CPUs whose `nr_running` or `curr` changed: [`Core::take_touched`].
    touched: CpuMask,
    tracks_touched: bool,
    resched_cpus: CpuMask,
    resched_pending: u32,
    /// Number of CPUs whose request to reschedule must wait.
    resched_parked: u32,
    /// Whether the machine's preemption model is the lazy one.
    lazy_preempt: bool,
    /// CPUs with a lazy request that the engine has not read yet.
    lazy_cpus: Vec<CpuId>,
    moves: Vec<(TaskId, CpuId, CpuId)>,
    /// Why the run cannot continue, if a class called [`Core::fail`].
    failure: Option<String>,
    /// Whether there are timers, moves or a failure that the engine has not read yet.
    has_requests: bool,
    /// Whether a class called [`Core::request_reclass`].
    reclass: bool,
    /// Whether a class called [`Core::wake_user_half`].
    wakes_user_half: bool,
    current_class: u8,
    /// Number and time of the latest tick, since most questions are about it.
    jiffy: u64,
    jiffy_start: Nanos,
}

impl Core {
    /// The state at the start of a run.
    pub fn new(machine: &Machine, cgroups: Vec<CgroupSpec>, random: Stream) -> Self {
        let (nr_cpus, has_hrtick) = (machine.nr_cpus(), machine.costs.hrtick_ns > 0);
        let rq = Rq {
            curr: None,
            nr_running: 0,
            need_resched: false,
            need_resched_lazy: false,
            resched_is_notify: false,
            switches_at: 0,
            hrtick_started: 0,
            clock_stopped: StoppedClock::RUNS,
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
            hrtick_after_ns: machine.costs.hrtick_ns,
            hrtick_switch_ns: machine.costs.context_switch_ns * u64::from(has_hrtick),
            clock_lead_ns: machine.costs.clock_lead_ns,
            nohz_kick_ns: machine.costs.nohz_kick_ns,
            tick_budget_lead_ns: machine.costs.tick_budget_lead_ns,
            pick_entity_ns: machine.costs.pick_entity_ns,
            pick_shared_ns: machine.costs.pick_shared_ns,
            bpf_kinsn_ns: machine.costs.bpf_kinsn_ns,
            throttle_ns: machine.costs.throttle_ns,
            aligns_periods: machine.aligns_periods,
            set_up_ns: machine.set_up_ns,
            turns: None,
            check_period_ns: 0,
            server_lead_ns: 0,
            server_idle_ns: machine.costs.server_idle_ns,
            topology: machine.topology.clone(),
            cpus: CpuMask::first(nr_cpus),
            idle_cpus: CpuMask::first(nr_cpus),
            rqs: vec![rq; nr_cpus as usize],
            tasks: Vec::new(),
            cgroups,
            random,
            work: Work::default(),
            user_half: None,
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
            wakes_user_half: false,
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

    /// The state of a task.
    #[inline]
    pub fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    /// The runqueue of a CPU.
    #[inline]
    pub fn rq(&self, cpu: CpuId) -> &Rq {
        &self.rqs[cpu.index()]
    }

    /// Number of ticks since the start: floor(now / tick).
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

    /// Returns `cpu` if `task` may run there, or else the lowest CPU that it may use.
    #[inline]
    pub fn allowed_cpu(&self, task: TaskId, cpu: CpuId) -> CpuId {
        let allowed = &self.task(task).cpus_allowed;
        if allowed.contains(cpu) {
            return cpu;
        }
        allowed.first_cpu().expect("affinity was checked to be within the machine")
    }

    /// One of these CPUs, which are equally good for a task; `this_cpu` asks.
    pub fn one_of(&mut self, cpus: &CpuMask, this_cpu: CpuId) -> Option<CpuId> {
        match &mut self.turns {
            Some(turns) => turns.choose(this_cpu, cpus),
            None => cpus.first_cpu(),
        }
    }

    /// The lowest CPU that `task` may use in the node of `cpu`, or else in any.
    pub fn allowed_near(&self, task: TaskId, cpu: CpuId) -> CpuId {
        let node = |cpu: CpuId| self.topology.node[cpu.index()];
        let near = self.task(task).cpus_allowed.iter().find(|other| node(*other) == node(cpu));
        near.unwrap_or_else(|| self.allowed_cpu(task, cpu))
    }

    /// Whether `task` is running.
    #[inline]
    pub fn is_running(&self, task: TaskId) -> bool {
        self.rq(self.task(task).cpu).curr == Some(task)
    }

    /// CPU time (ns) of `task` up to now.
    #[inline]
    pub fn sum_exec_runtime(&self, task: TaskId) -> Nanos {
        let t = self.task(task);
        if self.is_running(task) {
            t.sum_exec_runtime + (self.now - t.exec_start)
        } else {
            t.sum_exec_runtime
        }
    }

    /// CPU time (ns) that class number `class` used on `cpu` up to now.
    #[inline]
    pub fn class_exec_runtime(&self, cpu: CpuId, class: u8) -> Nanos {
        let rq = self.rq(cpu);
        let running = match rq.curr {
            Some(curr) if self.task(curr).class == class => self.now - self.task(curr).exec_start,
            _ => 0,
        };
        rq.class_exec_runtime[usize::from(class)] + running
    }

    /// CPU time (ns) that classes above the fair class used on `cpu` up to now. A stack may have a
    /// class for SCHED_OTHER above the fair one.
    pub fn higher_exec_runtime(&self, cpu: CpuId) -> Nanos {
        (0..self.class_of(Policy::Batch)).map(|class| self.class_exec_runtime(cpu, class)).sum()
    }

    /// CPU time (ns) until `task` blocks, yields or exits; `None` if unknown or endless. Only for
    /// schedulers with `needs_burst`.
    pub fn burst_remaining(&self, task: TaskId) -> Option<Nanos> {
        let t = self.task(task);
        let used = self.sum_exec_runtime(task) - t.burst_at;
        t.burst_ns.map(|burst| burst.saturating_sub(used))
    }

    /// Requests that `cpu` reschedules as soon as possible (sets TIF_NEED_RESCHED).
    #[inline]
    pub fn resched_curr(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].resched_is_notify = false;
        self.resched_lazy_now(cpu);
    }

    /// A lazy request to reschedule `cpu` becomes a full one.
    #[doc(hidden)]
    #[inline]
    pub fn resched_lazy_now(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        if !rq.need_resched {
            rq.need_resched = true;
            self.resched_cpus.set(cpu);
            self.resched_pending += 1;
        }
    }

    /// Requests that the running task of `cpu` does something as it returns to user mode, after
    /// which it reschedules (`task_work_add`). Returns whether it comes to that: if the CPU is to
    /// reschedule anyway, it does that first.
    pub fn notify_resume(&mut self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        if rq.need_resched || rq.need_resched_lazy {
            return rq.resched_is_notify;
        }
        self.resched_curr_lazy(cpu);
        self.rqs[cpu.index()].resched_is_notify = true;
        true
    }

    /// Requests that the task of `cpu` is preempted when it next returns to user mode
    /// (resched_curr_lazy). The fair class requests this for its own tasks. On a machine without
    /// the lazy preemption model, and on an idle CPU, this is [`Core::resched_curr`].
    #[inline]
    pub fn resched_curr_lazy(&mut self, cpu: CpuId) {
        if !self.lazy_preempt || self.rq(cpu).curr.is_none() {
            self.resched_curr(cpu);
            return;
        }
        let rq = &mut self.rqs[cpu.index()];
        rq.resched_is_notify = false;
        if !rq.need_resched && !rq.need_resched_lazy {
            rq.need_resched_lazy = true;
            self.lazy_cpus.push(cpu);
        }
    }

    /// Requests the calling class's `balance_callback` after the next reschedule of `cpu`.
    #[inline]
    pub fn queue_balance_callback(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].balance_callbacks |= 1 << self.current_class;
    }

    /// Whether the core remembers which CPUs changed.
    #[inline]
    pub fn tracks_touched(&self) -> bool {
        self.tracks_touched
    }

    /// Returns the CPUs whose running task or number of tasks may have changed since the last call;
    /// in the first call all CPUs. Only on machines of at least [`TOUCHED_MIN_CPUS`].
    pub fn take_touched(&mut self) -> CpuMask {
        std::mem::replace(&mut self.touched, CpuMask::empty())
    }

    /// Notes a change of `cpu` for [`Core::take_touched`].
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

    /// Adds `count` to the number of runnable tasks of `cpu` (`add_nr_running`).
    #[inline]
    pub fn add_nr_running(&mut self, cpu: CpuId, count: u32) {
        // A group without tasks that is released leaves an idle CPU idle.
        if count == 0 {
            return;
        }
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

    /// Subtracts `count` from the number of runnable tasks of `cpu` (`sub_nr_running`).
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

    /// Moves `task`, which is not running, to `cpu` (`set_task_cpu`). The class itself removes it
    /// from its old queue and adds it to the new one.
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

    /// Completes the delayed dequeue of `task`: it is no longer on a runqueue. The class has called
    /// [`Core::sub_nr_running`].
    pub fn dequeue_delayed(&mut self, task: TaskId) {
        let t = &mut self.tasks[task.index()];
        assert!(t.sched_delayed && t.on_rq, "task {task} has no delayed dequeue to complete");
        t.sched_delayed = false;
        t.on_rq = false;
    }

    /// Compares `task`, which was just queued on `cpu`, with its running task, by class (part of
    /// `wakeup_preempt`).
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

    /// When a timer set for `at` expires. Timers of a machine may be late
    /// ([`schedlab_model::Costs::timer_delay_ns`]).
    #[inline]
    pub fn timer_comes(&self, at: Nanos) -> Nanos {
        at.max(self.now).saturating_add(self.timer_delay_ns)
    }

    /// Time from a multiple of the tick to the effect of the tick there. Where timers take time, a
    /// run begins a little after a tick, so that a tick comes before timers for the same time.
    #[inline]
    pub fn tick_delay_ns(&self) -> Nanos {
        const AFTER_TICK_NS: Nanos = 2_000;
        self.timer_delay_ns.saturating_sub(AFTER_TICK_NS)
    }

    /// Whether a timer set for `at` has expired by now.
    #[inline]
    pub fn timer_has_come(&self, at: Nanos) -> bool {
        at.saturating_add(self.timer_delay_ns) <= self.now
    }

    /// The time of the clock that timers follow. The clock of a CPU may be stopped before it.
    #[inline]
    pub fn hrtimer_now(&self) -> Nanos {
        self.now.max(self.work.switch_ns)
    }

    /// When a timer comes that is to expire as the clock of the CPU shows `at`. The kernel starts
    /// such timers for the time that is left (`start_dl_timer`, `task_non_contending`), so they are
    /// as late as a stopped clock is behind.
    #[inline]
    pub fn at_hrtimer_clock(&self, at: Nanos) -> Nanos {
        at.saturating_add(self.hrtimer_now() - self.now)
    }

    /// Starts a timer of the calling class for `at`: [`TimerRequest`].
    pub fn start_timer(&mut self, at: Nanos, token: u64) {
        let at = self.timer_comes(at);
        self.timers.push(TimerRequest { at, class: self.current_class, token });
        self.has_requests = true;
    }

    /// Ends the run: the calling class cannot continue. The text tells what happened and what to
    /// do. Only the first call counts.
    pub fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
        self.has_requests = true;
    }

    /// The calling class takes over other policies than before ([`crate::SchedClass::takes_over`]).
    /// Before the next instant the engine asks every class and moves the tasks, then calls
    /// [`crate::SchedClass::reclassed`].
    pub fn request_reclass(&mut self) {
        self.reclass = true;
    }

    /// Sets whether the calling class claims `cpu`. Lower classes keep their tasks away from a
    /// claimed CPU, even while it runs no task of the class.
    #[inline]
    pub fn claim_cpu(&mut self, cpu: CpuId, is_claimed: bool) {
        let claimed = &mut self.claimed[usize::from(self.current_class)];
        if is_claimed { claimed.set(cpu) } else { claimed.clear(cpu) }
    }

    /// CPUs claimed by classes above number `class`.
    pub fn claimed_above(&self, class: u8) -> CpuMask {
        let above = &self.claimed[..usize::from(class)];
        above.iter().fold(CpuMask::empty(), |all, claimed| all.or(claimed))
    }

    /// The calling class picks no task on `cpu`, because a class below the next one should pick.
    /// Classes in between pick none either. Holds until it is set again.
    #[inline]
    pub fn pass_pick_down(&mut self, cpu: CpuId, is_passed: bool) {
        if is_passed {
            self.passed_down.set(cpu);
        } else if self.passed_down.contains(cpu) {
            self.passed_down.clear(cpu);
        }
    }

    /// Whether a higher class left the latest pick of `cpu` to a class below the next one.
    #[inline]
    pub fn is_pick_passed_down(&self, cpu: CpuId) -> bool {
        self.passed_down.contains(cpu)
    }

    /// Index of the class whose callback is running.
    #[inline]
    pub fn current_class(&self) -> u8 {
        self.current_class
    }

    /// Index of the class of `policy` in the stack.
    #[inline]
    pub fn class_of(&self, policy: Policy) -> u8 {
        self.class_of_policy[policy as usize]
    }

    /// Whether a class took `policy` over from the class that owns it
    /// ([`crate::SchedClass::takes_over`]).
    pub fn is_taken_over(&self, policy: Policy) -> bool {
        self.taken_over & 1 << policy as u8 != 0
    }
}

/// For the engine. Classes must not call these.
impl Core {
    /// How long the programs of a scheduler took since the engine last asked (ns).
    #[inline]
    pub fn programs_ns(&self) -> Nanos {
        const KILO: u64 = 1_000;
        if self.work.bpf_insns == 0 {
            return 0;
        }
        u64::from(self.work.bpf_insns).saturating_mul(self.bpf_kinsn_ns) / KILO
    }

    /// Sets which class a policy belongs to, and whether the class took it over.
    #[doc(hidden)]
    pub fn set_class_of(&mut self, policy: Policy, class: u8, is_taken_over: bool) {
        self.class_of_policy[policy as usize] = class;
        let bit = 1 << policy as u8;
        self.taken_over =
            if is_taken_over { self.taken_over | bit } else { self.taken_over & !bit };
    }

    /// Sets the class whose callback is about to run.
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

    /// The request to reschedule `cpu` stays, but must wait.
    #[doc(hidden)]
    #[inline]
    pub fn park_resched(&mut self, cpu: CpuId) {
        if self.resched_cpus.contains(cpu) {
            self.resched_cpus.clear(cpu);
            self.resched_pending -= 1;
            self.resched_parked += 1;
        }
    }

    /// Whether `cpu` is asked to reschedule, and need not wait.
    #[doc(hidden)]
    #[inline]
    pub fn is_asked(&self, cpu: CpuId) -> bool {
        self.resched_cpus.contains(cpu)
    }

    /// Whether any request to reschedule must wait.
    #[doc(hidden)]
    pub fn has_parked_resched(&self) -> bool {
        self.resched_parked > 0
    }

    /// The waiting request to reschedule `cpu` takes effect now.
    #[doc(hidden)]
    pub fn unpark_resched(&mut self, cpu: CpuId) {
        if self.rq(cpu).need_resched && !self.resched_cpus.contains(cpu) {
            self.resched_cpus.set(cpu);
            self.resched_pending += 1;
            self.resched_parked -= 1;
        }
    }

    /// Classes, by bit, that requested `balance_callback` on `cpu` since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_balance_callbacks(&mut self, cpu: CpuId) -> u8 {
        std::mem::take(&mut self.rqs[cpu.index()].balance_callbacks)
    }

    /// A CPU with a lazy request since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_lazy(&mut self) -> Option<CpuId> {
        self.lazy_cpus.pop()
    }

    /// The oldest timer request not yet taken.
    #[doc(hidden)]
    #[inline]
    pub fn take_timer(&mut self) -> Option<TimerRequest> {
        (!self.timers.is_empty()).then(|| self.timers.remove(0))
    }

    /// Whether a class requested timers, moved tasks or failed since the engine last read it.
    #[doc(hidden)]
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.has_requests
    }

    /// The text of [`Core::fail`].
    #[doc(hidden)]
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Wakes the scheduler's user half if it sleeps. Only in [`crate::SchedClass::timer`].
    pub fn wake_user_half(&mut self) {
        self.wakes_user_half = true;
    }

    /// Whether [`Core::wake_user_half`] was called since the last call.
    #[doc(hidden)]
    pub fn take_user_wake(&mut self) -> bool {
        std::mem::take(&mut self.wakes_user_half)
    }

    /// Whether [`Core::request_reclass`] was called since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_reclass(&mut self) -> bool {
        std::mem::take(&mut self.reclass)
    }

    /// Move number `index` since [`Core::requests_done`], oldest first: task, old CPU, new CPU. One
    /// task may move more than once.
    #[doc(hidden)]
    pub fn nth_move(&self, index: usize) -> Option<(TaskId, CpuId, CpuId)> {
        self.moves.get(index).copied()
    }

    /// The engine has read all requests: forgets the moves.
    #[doc(hidden)]
    pub fn requests_done(&mut self) {
        self.moves.clear();
        self.has_requests = false;
    }

    /// A tick begins. Its number is computed once for all CPUs.
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
