// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel of a few hundred lines for tests of the fair class alone: hogs, and tasks that wake at
//! given times and run for a while. Nothing has a cost. At one instant the order is: wake-ups,
//! timers of the class, ticks, ends of bursts, reschedules, lowest CPU first. It calls the
//! callbacks in the order that the boundary describes.
#![allow(dead_code)] // each test file uses a part

use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    CgroupId, CgroupSpec, Comm, CpuId, Machine, Nanos, Policy, SchedAttr, TaskId,
};
use schedlab_sched::boundary::core::{PreemptCheck, Task, TaskState};
use schedlab_sched::fair::{FairClass, rules::Rules};
use schedlab_sched::kernels::{MODELS, Model};
use schedlab_sched::{Core, DequeueFlags, EnqueueFlags, Options, SchedClass, WakeFlags, WakeKind};
use std::collections::{BTreeSet, VecDeque};

pub const MS: Nanos = 1_000_000;

/// A switch: time, CPU, next task (`None`: idle).
pub type Switch = (Nanos, u32, Option<u32>);

/// What a task still has to do.
#[derive(Clone, Debug)]
struct Script {
    /// Future wake-ups: time, and how long the task then runs.
    wakes: VecDeque<(Nanos, Nanos)>,
    /// CPU time until it sleeps; `None`: it never sleeps.
    left: Option<Nanos>,
}

pub struct Kernel {
    pub core: Core,
    pub class: FairClass,
    scripts: Vec<Script>,
    next_tick: Nanos,
    /// Timers that the class started: time, order, token.
    timers: BTreeSet<(Nanos, u64, u64)>,
    nr_timers: u64,
    pub switches: Vec<Switch>,
    /// Virtual switch counters, for speed tests.
    pub nr_switches: u64,
    pub record: bool,
}

/// The machine and options of one test.
pub struct Setup {
    pub rules: Rules,
    pub nr_cpus: u32,
    pub scaling_cpus: u64,
    pub hz: u32,
    pub groups: Vec<CgroupSpec>,
    /// Tunables to set.
    pub set: Vec<(&'static str, u64)>,
}

impl Setup {
    pub fn new(rules: Rules, scaling_cpus: u64, hz: u32) -> Self {
        let groups = vec![CgroupSpec::root()];
        Self { rules, nr_cpus: 1, scaling_cpus, hz, groups, set: Vec::new() }
    }

    /// Adds a group below `parent`; returns its id.
    pub fn group(&mut self, parent: CgroupId, weight: u32) -> CgroupId {
        let path = format!("/g{}", self.groups.len());
        self.groups.push(CgroupSpec::new(path, parent, weight));
        CgroupId(self.groups.len() as u32 - 1)
    }

    pub fn build(self) -> Kernel {
        let machine = Machine { hz: self.hz, ..Machine::flat(self.nr_cpus) };
        let is_like = |model: &&Model| {
            let random_period_offset = model.fair.random_period_offset;
            model.fair == Rules { random_period_offset, ..self.rules }
        };
        let tunables = MODELS.iter().find(is_like).expect("rules of a model").tunables();
        let mut options = Options::defaults(&tunables);
        options.set(&tunables, "scaling_cpus", self.scaling_cpus).unwrap();
        for (name, value) in &self.set {
            options.set(&tunables, name, *value).unwrap();
        }
        let rules = self.rules.with_features(&options);
        let class = FairClass::new(rules, &options, &machine, &self.groups);
        let mut core = Core::new(&machine, self.groups, Stream::new(1, Purpose::Scheduler, 0));
        for policy in [Policy::Normal, Policy::Batch, Policy::Idle] {
            core.set_class_of(policy, 0, false);
        }
        Kernel {
            next_tick: core.tick_nsec,
            timers: BTreeSet::new(),
            nr_timers: 0,
            core,
            class,
            scripts: Vec::new(),
            switches: Vec::new(),
            nr_switches: 0,
            record: true,
        }
    }
}

pub fn nice(nice: i8) -> SchedAttr {
    SchedAttr { nice, ..SchedAttr::default() }
}

pub fn policy(policy: Policy) -> SchedAttr {
    SchedAttr { policy, ..SchedAttr::default() }
}

impl Kernel {
    /// Creates a sleeping task.
    pub fn create(&mut self, attr: SchedAttr) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let cpus_allowed = attr.affinity.unwrap_or(self.core.cpus);
        self.core.tasks.push(Task {
            prio: attr.kernel_prio(),
            class: 0,
            attr: attr.into(),
            state: TaskState::Sleeping,
            on_rq: false,
            sched_delayed: false,
            is_exiting: false,
            cpu: cpus_allowed.first_cpu().unwrap(),
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
        self.scripts.push(Script { wakes: VecDeque::new(), left: None });
        self.class.task_new(&mut self.core, id);
        id
    }

    /// Creates a task that never sleeps and wakes it at once.
    pub fn hog(&mut self, attr: SchedAttr) -> TaskId {
        let task = self.create(attr);
        self.wake(task);
        task
    }

    /// Creates a task that sleeps, wakes at each of `times` and then runs for `run`.
    pub fn sleeper(&mut self, attr: SchedAttr, times: &[Nanos], run: Nanos) -> TaskId {
        let task = self.create(attr);
        self.scripts[task.index()].wakes = times.iter().map(|at| (*at, run)).collect();
        task
    }

    /// Forks a hog from the running task of `cpu`.
    pub fn fork(&mut self, parent: TaskId, attr: SchedAttr) -> TaskId {
        let child = self.create(attr);
        let cpu = self.core.task(parent).cpu;
        self.core.tasks[child.index()].cpu = cpu;
        self.core.tasks[child.index()].state = TaskState::Running;
        self.class.task_fork(&mut self.core, cpu, child, Some(parent));
        self.activate(child, WakeKind::Fork);
        self.settle();
        child
    }

    /// Wakes `task` without rescheduling yet.
    pub fn wake(&mut self, task: TaskId) {
        self.core.tasks[task.index()].state = TaskState::Running;
        if self.core.task(task).on_rq {
            assert!(self.core.task(task).sched_delayed);
            let cpu = self.core.task(task).cpu;
            let flags = EnqueueFlags { delayed: true, ..EnqueueFlags::WAKEUP };
            self.class.enqueue_task(&mut self.core, cpu, task, flags);
            self.core.tasks[task.index()].sched_delayed = false;
            if !self.core.is_running(task) {
                self.preempt(cpu, task, WakeKind::Wakeup);
            }
            return;
        }
        self.activate(task, WakeKind::Wakeup);
    }

    fn activate(&mut self, task: TaskId, kind: WakeKind) {
        let prev = self.core.task(task).cpu;
        let mut flags = self.flags(prev, kind);
        let cpu = if self.core.task(task).nr_cpus_allowed > 1 {
            self.class.select_task_rq(&mut self.core, task, prev, flags)
        } else {
            prev
        };
        flags.migrated = cpu != prev;
        if flags.migrated && kind == WakeKind::Wakeup {
            self.class.migrate_task_rq(&mut self.core, task, cpu);
        }
        self.core.set_task_cpu(task, cpu);
        let enqueue = match kind {
            WakeKind::Wakeup => EnqueueFlags { migrated: flags.migrated, ..EnqueueFlags::WAKEUP },
            WakeKind::Fork => EnqueueFlags::INITIAL,
        };
        self.class.enqueue_task(&mut self.core, cpu, task, enqueue);
        self.core.tasks[task.index()].on_rq = true;
        self.preempt(cpu, task, kind);
    }

    fn flags(&self, cpu: CpuId, kind: WakeKind) -> WakeFlags {
        WakeFlags { kind, sync: false, migrated: false, this_cpu: cpu, waker: None }
    }

    fn preempt(&mut self, cpu: CpuId, task: TaskId, kind: WakeKind) {
        let flags = self.flags(cpu, kind);
        match self.core.preempt_check(cpu, task) {
            PreemptCheck::SameClass(curr) => {
                self.class.wakeup_preempt(&mut self.core, cpu, task, curr, flags);
            }
            PreemptCheck::Resched => self.core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
    }

    /// Puts `task` to sleep.
    pub fn sleep(&mut self, task: TaskId) {
        self.account(self.core.task(task).cpu);
        let cpu = self.core.task(task).cpu;
        let left = self.class.dequeue_task(&mut self.core, cpu, task, DequeueFlags::SLEEP);
        let t = &mut self.core.tasks[task.index()];
        (t.on_rq, t.sched_delayed, t.state) = (!left, !left, TaskState::Sleeping);
        if self.core.is_running(task) {
            self.core.resched_curr(cpu);
        }
    }

    /// Calls sched_yield in the running task of `cpu`.
    pub fn yield_cpu(&mut self, cpu: u32) {
        self.class.yield_task(&mut self.core, CpuId(cpu));
        self.core.resched_curr(CpuId(cpu));
        self.settle();
    }

    /// Changes the attributes of `task`, queued or not, as nice(2) does: without DEQUEUE_MOVE.
    pub fn set_attr(&mut self, task: TaskId, attr: SchedAttr) {
        let (cpu, old_prio) = (self.core.task(task).cpu, self.core.task(task).prio);
        let (queued, running) = (self.core.task(task).on_rq, self.core.is_running(task));
        if running {
            self.account(cpu);
        }
        if queued {
            let flags = DequeueFlags { save: true, ..DequeueFlags::NONE };
            self.class.dequeue_task(&mut self.core, cpu, task, flags);
            self.core.tasks[task.index()].on_rq = false;
        }
        if running {
            self.class.put_prev_task(&mut self.core, cpu, task, None);
        }
        self.class.attr_changing(&mut self.core, task, &attr);
        let t = &mut self.core.tasks[task.index()];
        (t.attr, t.prio) = (attr.into(), attr.kernel_prio());
        if queued {
            let flags = EnqueueFlags { restore: true, ..EnqueueFlags::NONE };
            self.class.enqueue_task(&mut self.core, cpu, task, flags);
            self.core.tasks[task.index()].on_rq = true;
        }
        if running {
            self.class.set_next_task(&mut self.core, cpu, task, false);
        }
        self.class.prio_changed(&mut self.core, cpu, task, old_prio);
        self.settle();
    }

    fn account(&mut self, cpu: CpuId) {
        let now = self.core.now;
        if let Some(curr) = self.core.rq(cpu).curr {
            let t = &mut self.core.tasks[curr.index()];
            let ran = now - t.exec_start;
            (t.sum_exec_runtime, t.exec_start) = (t.sum_exec_runtime + ran, now);
            if let Some(left) = &mut self.scripts[curr.index()].left {
                *left -= ran;
            }
        }
    }

    fn schedule(&mut self, cpu: CpuId) {
        let prev = self.core.rq(cpu).curr;
        let mut next = self.class.pick_task(&mut self.core, cpu);
        while next.is_none() && self.class.newidle_balance(&mut self.core, cpu) {
            next = self.class.pick_task(&mut self.core, cpu);
        }
        self.core.clear_resched(cpu);
        if prev != next {
            self.switch(cpu, prev, next);
        }
        self.class.balance_callback(&mut self.core, cpu);
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        self.account(cpu);
        if let Some(prev) = prev {
            self.class.put_prev_task(&mut self.core, cpu, prev, next);
        }
        let now = self.core.now;
        self.core.rqs[cpu.index()].curr = next;
        match next {
            Some(next) => {
                assert_eq!(self.core.task(next).cpu, cpu);
                assert_eq!(self.core.task(next).state, TaskState::Running, "a sleeper is picked");
                self.core.idle_cpus.clear(cpu);
                self.core.tasks[next.index()].exec_start = now;
                self.class.set_next_task(&mut self.core, cpu, next, true);
            }
            None => {
                // A task that is being pushed away may still count.
                if self.core.rq(cpu).nr_running == 0 {
                    self.core.idle_cpus.set(cpu);
                }
            }
        }
        self.nr_switches += 1;
        if self.record {
            self.switches.push((now, cpu.0, next.map(|next| next.0)));
        }
    }

    /// Reschedules until no CPU requests it.
    pub fn settle(&mut self) {
        while let Some(cpu) = self.core.next_resched() {
            self.schedule(cpu);
        }
        self.core.requests_done();
        self.take_timers();
    }

    fn take_timers(&mut self) {
        while let Some(timer) = self.core.take_timer() {
            self.nr_timers += 1;
            self.timers.insert((timer.at, self.nr_timers, timer.token));
        }
    }

    /// Fires due timers of the class.
    fn fire_timers(&mut self, now: Nanos) {
        self.take_timers();
        while let Some(&(at, number, token)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.remove(&(at, number, token));
            self.class.timer(&mut self.core, token);
            self.take_timers();
        }
    }

    fn burst_end(&self, cpu: CpuId) -> Nanos {
        let Some(curr) = self.core.rq(cpu).curr else { return Nanos::MAX };
        match self.scripts[curr.index()].left {
            Some(left) => self.core.task(curr).exec_start + left,
            None => Nanos::MAX,
        }
    }

    /// Runs up to and including `end`.
    pub fn run_until(&mut self, end: Nanos) {
        self.settle();
        loop {
            let wake = self.scripts.iter().filter_map(|s| s.wakes.front().map(|w| w.0)).min();
            let bursts = (0..self.core.nr_cpus()).map(|cpu| self.burst_end(CpuId(cpu))).min();
            let timer = self.timers.first().map_or(Nanos::MAX, |timer| timer.0);
            let next = bursts.unwrap().min(self.next_tick).min(timer);
            let now = wake.unwrap_or(Nanos::MAX).min(next);
            if now > end {
                self.core.now = end;
                return;
            }
            self.core.now = now;
            self.wake_due(now);
            self.fire_timers(now);
            if self.next_tick == now {
                self.tick();
            }
            for cpu in (0..self.core.nr_cpus()).map(CpuId) {
                if self.burst_end(cpu) == now {
                    self.sleep(self.core.rq(cpu).curr.unwrap());
                }
            }
            self.settle();
        }
    }

    /// Ticks all busy CPUs, without wake-ups: for hogs.
    pub fn tick(&mut self) {
        self.core.now = self.next_tick;
        self.next_tick += self.core.tick_nsec;
        for cpu in (0..self.core.nr_cpus()).map(CpuId) {
            if let Some(curr) = self.core.rq(cpu).curr {
                self.class.task_tick(&mut self.core, cpu, curr);
                self.class.tick_balance(&mut self.core, cpu);
            }
        }
    }

    /// Wakes tasks whose time has come. A task that has not finished yet misses its wake-up.
    fn wake_due(&mut self, now: Nanos) {
        for index in 0..self.scripts.len() {
            let task = TaskId(index as u32);
            let is_busy = self.core.task(task).on_rq && !self.core.task(task).sched_delayed;
            let script = &mut self.scripts[index];
            if script.wakes.front().is_some_and(|wake| wake.0 == now) {
                let (_, run) = script.wakes.pop_front().unwrap();
                if !is_busy {
                    script.left = Some(run);
                    self.wake(task);
                }
            }
        }
    }

    /// CPU time of `task` so far.
    pub fn ran(&self, task: TaskId) -> Nanos {
        self.core.sum_exec_runtime(task)
    }

    /// Switches in the notation of the vectors: `0A 4B 8A`, with `-` for idle; times in ms, with
    /// decimals unless whole.
    pub fn timeline(&self) -> String {
        let words = self.switches.iter().map(|(time, _, task)| {
            let name = task.map_or('-', |task| (b'A' + task as u8) as char);
            if time % MS == 0 {
                format!("{}{name}", time / MS)
            } else {
                format!("{}.{:06}{name}", time / MS, time % MS)
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Runs hogs of these nice values on one CPU, all queued at 0, until `end_ms`; returns the
/// switches.
pub fn hogs(rules: Rules, scaling_cpus: u64, hz: u32, nices: &[i8], end_ms: u64) -> String {
    let mut kernel = Setup::new(rules, scaling_cpus, hz).build();
    for value in nices {
        kernel.hog(nice(*value));
    }
    kernel.run_until(end_ms * MS);
    kernel.timeline()
}
