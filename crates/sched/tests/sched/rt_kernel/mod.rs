// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel of a hundred lines for tests of one class: tasks that run until the test stops them,
//! ticks, class timers and reschedules. Nothing has a cost. It calls the callbacks in the order
//! that the boundary describes, with first come, first served as the class below.

// Each test file uses its own part.
#![allow(dead_code)]

use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    CgroupSpec, Comm, CpuId, CpuMask, Machine, Nanos, Policy, SchedAttr, TaskId, Topology,
};
use schedlab_sched::boundary::core::{PreemptCheck, Task, TaskState};
use schedlab_sched::deadline::fair_server::StopRule;
use schedlab_sched::deadline::{DlClass, DlOptions};
use schedlab_sched::rt::{Bandwidth, RtClass, RtOptions};
use schedlab_sched::{Core, DequeueFlags, EnqueueFlags, Explain, SchedClass, WakeFlags, WakeKind};

/// Index of the real-time class.
pub const RT: usize = 1;

/// Number of classes: deadline, for its fair server; real-time; and one below.
const NR_CLASSES: u8 = 3;

/// A switch: time (ns), CPU, next task (`None`: idle).
pub type Switch = (Nanos, u32, Option<u32>);

/// The class below: a FIFO queue for each CPU, with the running task at its head.
pub struct Filler {
    queues: Vec<Vec<TaskId>>,
}

impl Filler {
    fn new(nr_cpus: u32) -> Self {
        Self { queues: vec![Vec::new(); nr_cpus as usize] }
    }
}

impl Explain for Filler {
    fn name(&self) -> &'static str {
        "filler"
    }
}

impl SchedClass for Filler {
    fn owns(&self, policy: Policy) -> bool {
        policy.is_fair()
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        self.queues[cpu.index()].push(task);
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: DequeueFlags) -> bool {
        core.sub_nr_running(cpu, 1);
        self.queues[cpu.index()].retain(|queued| *queued != task);
        true
    }

    fn wakeup_preempt(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: TaskId, _: WakeFlags) {}

    fn pick_task(&mut self, _: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].first().copied()
    }
}

/// The kernel.
pub struct Kernel<L = Filler> {
    pub core: Core,
    dl: DlClass,
    pub rt: RtClass,
    pub lower: L,
    timers: Vec<(Nanos, u8, u64)>,
    next_tick: Nanos,
    pub switches: Vec<Switch>,
}

/// Real-time attributes.
pub fn rt_attr(policy: Policy, priority: u8) -> SchedAttr {
    SchedAttr { policy, rt_priority: priority, ..SchedAttr::default() }
}

pub fn fifo(priority: u8) -> SchedAttr {
    rt_attr(Policy::Fifo, priority)
}

impl Kernel {
    pub fn new(nr_cpus: u32, hz: u32, bandwidth: Bandwidth) -> Self {
        let machine = Machine { hz, topology: Topology::flat(nr_cpus), ..Machine::flat(nr_cpus) };
        Self::with_lower(&machine, bandwidth, Filler::new(nr_cpus))
    }

    /// A kernel at HZ 250 with these settings of the real-time class.
    pub fn with_rt(nr_cpus: u32, options: RtOptions) -> Self {
        Self::with_options(&Machine::flat(nr_cpus), options, Filler::new(nr_cpus))
    }
}

impl<L: SchedClass> Kernel<L> {
    /// A kernel with `lower` below the real-time class.
    pub fn with_lower(machine: &Machine, bandwidth: Bandwidth, lower: L) -> Self {
        let options =
            RtOptions { rr_timeslice_ms: 100, bandwidth, push_ipi: false, runtime_share: false };
        Self::with_options(machine, options, lower)
    }

    /// A kernel with these settings of the real-time class and `lower` below it.
    pub fn with_options(machine: &Machine, options: RtOptions, lower: L) -> Self {
        let random = Stream::new(1, Purpose::Scheduler, 0);
        let mut core = Core::new(machine, vec![CgroupSpec::root()], random);
        for policy in [Policy::Normal, Policy::Batch, Policy::Idle] {
            core.set_class_of(policy, NR_CLASSES - 1, false);
        }
        for policy in [Policy::Fifo, Policy::Rr] {
            core.set_class_of(policy, RT as u8, false);
        }
        let server = match options.bandwidth {
            Bandwidth::FairServer { runtime, period } => {
                Some((StopRule::LastLeaves, runtime, period))
            }
            _ => None,
        };
        let deadline = DlOptions { server, ..DlOptions::default() };
        Self {
            next_tick: core.tick_nsec,
            core,
            dl: DlClass::new(deadline, machine),
            rt: RtClass::new(&options, machine),
            lower,
            timers: Vec::new(),
            switches: Vec::new(),
        }
    }

    fn class(&mut self, class: u8) -> (&mut dyn SchedClass, &mut Core) {
        self.core.enter_class(class);
        let class: &mut dyn SchedClass = match class {
            0 => &mut self.dl,
            1 => &mut self.rt,
            _ => &mut self.lower,
        };
        (class, &mut self.core)
    }

    /// Creates a sleeping task.
    pub fn create(&mut self, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let cpus_allowed = attr.affinity.unwrap_or(self.core.cpus);
        self.core.tasks.push(Task {
            prio: attr.kernel_prio(),
            class: self.core.class_of(attr.policy),
            attr: attr.into(),
            state: TaskState::Sleeping,
            on_rq: false,
            sched_delayed: false,
            is_exiting: false,
            cpu: CpuId(0),
            mm: 0,
            cpus_allowed: cpus_allowed.into(),
            nr_cpus_allowed: cpus_allowed.weight(),
            sum_exec_runtime: 0,
            exec_start: 0,
            burst_ns: None,
            burst_at: 0,
            nr_voluntary_switches: 0,
            nr_involuntary_switches: 0,
            nr_migrations: 0,
            release_ns: 0,
            age_ns: 0,
            name: Comm::default(),
            inherited_comm: None,
        });
        for class in 0..NR_CLASSES {
            let (class, core) = self.class(class);
            class.task_new(core, id);
        }
        id
    }

    /// Wakes `task` from its previous CPU, without rescheduling yet.
    pub fn wake(&mut self, task: TaskId) {
        let this_cpu = self.core.task(task).cpu;
        let flags = WakeFlags {
            kind: WakeKind::Wakeup,
            sync: false,
            migrated: false,
            this_cpu,
            waker: None,
        };
        self.wake_with(task, flags);
    }

    /// Wakes a task, or starts a new one, with these flags.
    pub fn wake_with(&mut self, task: TaskId, mut flags: WakeFlags) {
        let index = self.core.task(task).class;
        let prev = self.core.task(task).cpu;
        let (class, core) = self.class(index);
        if core.task(task).sched_delayed {
            core.tasks[task.index()].sched_delayed = false;
            core.tasks[task.index()].state = TaskState::Running;
            let enqueue = EnqueueFlags { delayed: true, ..EnqueueFlags::WAKEUP };
            class.enqueue_task(core, prev, task, enqueue);
            self.preempt(prev, task, flags);
            return;
        }
        if flags.is_fork() {
            class.task_fork(core, flags.this_cpu, task, flags.waker);
        }
        let cpu = if core.task(task).nr_cpus_allowed > 1 {
            class.select_task_rq(core, task, prev, flags)
        } else {
            core.task(task).cpus_allowed.first_cpu().unwrap()
        };
        assert!(core.task(task).cpus_allowed.contains(cpu), "task {task} sent to CPU {cpu}");
        flags.migrated = cpu != prev;
        if flags.migrated && !flags.is_fork() {
            class.migrate_task_rq(core, task, cpu);
        }
        core.tasks[task.index()].cpu = cpu;
        core.tasks[task.index()].state = TaskState::Running;
        let fork = EnqueueFlags::INITIAL;
        let enqueue = if flags.is_fork() { fork } else { EnqueueFlags::WAKEUP };
        class.enqueue_task(core, cpu, task, enqueue);
        core.tasks[task.index()].on_rq = true;
        self.preempt(cpu, task, flags);
    }

    fn preempt(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags) {
        let (class, core) = self.class(self.core.task(task).class);
        match core.preempt_check(cpu, task) {
            PreemptCheck::SameClass(curr) => class.wakeup_preempt(core, cpu, task, curr, flags),
            PreemptCheck::Resched => core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
        class.task_woken(core, cpu, task);
    }

    /// Forks a task from the launcher on CPU 0, then reschedules.
    pub fn fork(&mut self, attr: SchedAttr) -> TaskId {
        let task = self.create(attr);
        let flags = WakeFlags {
            kind: WakeKind::Fork,
            sync: false,
            migrated: false,
            this_cpu: CpuId(0),
            waker: None,
        };
        self.wake_with(task, flags);
        self.settle();
        task
    }

    /// Creates and wakes a task.
    pub fn start(&mut self, attr: SchedAttr) -> TaskId {
        let task = self.create(attr);
        self.wake(task);
        task
    }

    /// Puts `task` to sleep; a running one reschedules at the next [`Kernel::settle`].
    pub fn sleep(&mut self, task: TaskId) {
        let (index, cpu) = (self.core.task(task).class, self.core.task(task).cpu);
        let (class, core) = self.class(index);
        let left = class.dequeue_task(core, cpu, task, DequeueFlags::SLEEP);
        core.tasks[task.index()].on_rq = !left;
        core.tasks[task.index()].sched_delayed = !left;
        core.tasks[task.index()].state = TaskState::Sleeping;
        if core.is_running(task) {
            core.resched_curr(cpu);
        }
    }

    /// Calls sched_yield in the running task of `cpu`.
    pub fn yield_cpu(&mut self, cpu: u32) {
        let curr = self.core.rq(CpuId(cpu)).curr.expect("an idle CPU does not yield");
        let (class, core) = self.class(self.core.task(curr).class);
        class.yield_task(core, CpuId(cpu));
        self.core.resched_curr(CpuId(cpu));
    }

    /// sched_setattr(2) and sched_setaffinity(2).
    pub fn set_attr(&mut self, task: TaskId, attr: SchedAttr) {
        let cpu = self.core.task(task).cpu;
        let (queued, running) = (self.core.task(task).on_rq, self.core.is_running(task));
        let (old_class, old_prio) = (self.core.task(task).class, self.core.task(task).prio);
        let moved = attr.kernel_prio() != old_prio;
        if running {
            self.account(cpu);
        }
        if queued {
            let flags = DequeueFlags { save: true, moved, ..DequeueFlags::NONE };
            let (class, core) = self.class(old_class);
            class.dequeue_task(core, cpu, task, flags);
            if running {
                class.put_prev_task(core, cpu, task, None);
            }
        }
        let new_class = self.core.class_of(attr.policy);
        let t = &mut self.core.tasks[task.index()];
        (t.attr, t.prio, t.class) = (attr.into(), attr.kernel_prio(), new_class);
        t.cpus_allowed = attr.affinity.unwrap_or(self.core.cpus).into();
        t.nr_cpus_allowed = t.cpus_allowed.weight();
        let worse = old_prio < attr.kernel_prio();
        let (class, core) = self.class(new_class);
        if queued {
            let flags = EnqueueFlags { restore: true, moved, head: worse, ..EnqueueFlags::NONE };
            class.enqueue_task(core, cpu, task, flags);
            if running {
                class.set_next_task(core, cpu, task, false);
            }
        }
        if new_class == old_class {
            if old_prio != attr.kernel_prio() {
                class.prio_changed(core, cpu, task, old_prio);
            }
        } else {
            class.switched_to(core, cpu, task);
            let (class, core) = self.class(old_class);
            class.switched_from(core, cpu, task);
        }
    }

    fn account(&mut self, cpu: CpuId) {
        let now = self.core.now;
        if let Some(curr) = self.core.rq(cpu).curr {
            let t = &mut self.core.tasks[curr.index()];
            let ran = now - t.exec_start;
            (t.sum_exec_runtime, t.exec_start) = (t.sum_exec_runtime + ran, now);
            self.core.rqs[cpu.index()].class_exec_runtime[usize::from(t.class)] += ran;
        }
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        (0..NR_CLASSES).find_map(|class| {
            let (class, core) = self.class(class);
            class.pick_task(core, cpu)
        })
    }

    fn schedule(&mut self, cpu: CpuId) {
        self.core.clear_resched(cpu);
        let prev = self.core.rq(cpu).curr;
        let first = prev.map_or(NR_CLASSES, |prev| self.core.task(prev).class);
        for class in first..NR_CLASSES {
            let (class, core) = self.class(class);
            if class.balance(core, cpu) {
                break;
            }
        }
        let mut next = self.pick(cpu);
        if next.is_none() {
            let pulled = (0..NR_CLASSES).any(|class| {
                let (class, core) = self.class(class);
                class.newidle_balance(core, cpu)
            });
            if pulled {
                next = self.pick(cpu);
            }
        }
        self.core.clear_resched(cpu);
        if prev != next {
            self.account(cpu);
            if let Some(prev) = prev {
                let (class, core) = self.class(self.core.task(prev).class);
                class.put_prev_task(core, cpu, prev, next);
            }
            let now = self.core.now;
            let rq = &mut self.core.rqs[cpu.index()];
            rq.curr = next;
            rq.idle_since = now;
            if let Some(next) = next {
                assert_eq!(self.core.task(next).cpu, cpu, "task {next} runs on another CPU");
                assert!(self.core.task(next).cpus_allowed.contains(cpu));
                self.core.idle_cpus.clear(cpu);
                self.core.tasks[next.index()].exec_start = now;
                let (class, core) = self.class(self.core.task(next).class);
                class.set_next_task(core, cpu, next, true);
            } else if rq.nr_running == 0 {
                self.core.idle_cpus.set(cpu);
            }
            self.switches.push((now, cpu.0, next.map(|next| next.0)));
        }
        for class in 0..NR_CLASSES {
            let (class, core) = self.class(class);
            class.balance_callback(core, cpu);
        }
    }

    fn drain_timers(&mut self) {
        while let Some(timer) = self.core.take_timer() {
            self.timers.push((timer.at, timer.class, timer.token));
        }
    }

    /// Reschedules until no CPU requests it.
    pub fn settle(&mut self) {
        let mut rounds = 0;
        while let Some(cpu) = self.core.next_resched() {
            self.schedule(cpu);
            rounds += 1;
            assert!(rounds < 10_000, "CPUs reschedule for ever");
        }
        self.drain_timers();
        self.core.requests_done();
    }

    /// Runs up to and including `end`: class timers, then ticks of busy CPUs, then reschedules.
    pub fn run_until(&mut self, end: Nanos) {
        self.settle();
        loop {
            let timer = self.timers.iter().map(|timer| timer.0).min().unwrap_or(Nanos::MAX);
            let now = timer.min(self.next_tick);
            if now > end {
                self.core.now = end;
                return;
            }
            self.core.now = now;
            if timer == now {
                let at = self.timers.iter().position(|timer| timer.0 == now).unwrap();
                let (_, index, token) = self.timers.remove(at);
                let (class, core) = self.class(index);
                class.timer(core, token);
                self.drain_timers();
                if self.timers.iter().any(|timer| timer.0 == now) {
                    continue;
                }
            }
            if self.next_tick == now {
                self.next_tick += self.core.tick_nsec;
                for cpu in 0..self.core.nr_cpus() {
                    self.tick(CpuId(cpu));
                }
            }
            self.settle();
        }
    }

    fn tick(&mut self, cpu: CpuId) {
        if let Some(curr) = self.core.rq(cpu).curr {
            let (class, core) = self.class(self.core.task(curr).class);
            class.task_tick(core, cpu, curr);
            for class in 0..NR_CLASSES {
                let (class, core) = self.class(class);
                class.tick_balance(core, cpu);
            }
        }
    }

    /// The running task of `cpu`.
    pub fn curr(&self, cpu: u32) -> Option<u32> {
        self.core.rq(CpuId(cpu)).curr.map(|task| task.0)
    }

    /// The list of `cpu` in running order.
    pub fn queued(&self, cpu: u32) -> Vec<u32> {
        self.rt.queued(CpuId(cpu)).iter().map(|task| task.0).collect()
    }

    /// Switches as `time in ms, task`.
    pub fn timeline_ms(&self, cpu: u32) -> Vec<(u64, Option<u32>)> {
        let of_cpu = self.switches.iter().filter(|switch| switch.1 == cpu);
        of_cpu.map(|(time, _, task)| (time / 1_000_000, *task)).collect()
    }
}

/// CPUs of a list.
pub fn mask(cpus: &[u32]) -> CpuMask {
    cpus.iter().map(|cpu| CpuId(*cpu)).collect()
}
