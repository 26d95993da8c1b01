// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small scheduler with a fault: a real-time class above a class that runs the task with the
//! least CPU time, with a queue for each CPU. Its name is that of a kernel, so that the rules of
//! kernels hold for it.

use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::{CgroupSpec, Change, Costs, CpuId, Policy, Preempt, TaskId};
use schedlab_sched::boundary::class::select_idle_cpu;
use schedlab_sched::registry;
use schedlab_sched::{
    Claims, Core, DequeueFlags, EnqueueFlags, Explain, Make, SchedClass, Scheduler, WakeFlags,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sin {
    /// Nothing; but the toy has no balancing, no weights and no budgets.
    None,
    /// Each seventh pick finds nobody.
    Dozes,
    /// A task that wakes for the third time is queued nowhere.
    Forgets,
    /// Tasks wake on CPUs that they may not use.
    IgnoresAffinity,
    /// Less important real-time tasks run first.
    LowestFirst,
    /// A woken real-time task waits for the next tick.
    LateRealTime,
    /// SCHED_FIFO tasks take turns.
    FifoRotates,
    /// A woken task goes to the head of the queue.
    LastFirst,
    /// Slices of SCHED_RR do not end.
    EndlessSlice,
    /// Fair tasks give way each 100 ticks only.
    LongSlice,
    /// A quarter of the CPU time of the first task counts.
    Unfair,
    /// The second task runs only if nobody else is there.
    Starves,
    /// Each fifth task counts twice.
    CountsTwice,
    /// The first in the alphabet runs first.
    ByName,
    /// The first task runs three times as long.
    FirstComeMost,
    /// A task that changes its policy is forgiven what it has used.
    Forgives,
    /// Tasks with nice values of 3 and more are never preempted.
    NiceStays,
    /// Tasks in groups are never preempted.
    GroupsStay,
    /// Turns are longer while other CPUs are busy.
    LooksAside,
    /// Tasks wake on CPUs of their affinity that their group does not have.
    IgnoresCpuset,
    /// A write to a file of a group forgives what its tasks have used.
    ForgivesAtWrites,
    /// DEADLINE tasks run after real-time ones.
    DeadlineLast,
    /// CPU time counts four times at nice values below 0.
    MoreIsLess,
    /// Turns of each second run are longer.
    Remembers,
}

/// One of the two classes.
struct Toy {
    is_rt: bool,
    sin: Sin,
    /// Runnable tasks by CPU, the running one included.
    queues: Vec<Vec<TaskId>>,
    /// Ticks of the present turn, by task.
    ticks: Vec<u64>,
    /// CPU time (ns) that counts up to the last wake-up, and all CPU time up to then, by task.
    counted: Vec<(u64, u64)>,
    nr_wakeups: Vec<u32>,
    nr_picks: u64,
    nr_enqueued: u64,
    /// Number of the run.
    run: u64,
}

/// Runs of the toy that remembers.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl Toy {
    fn new(is_rt: bool, sin: Sin, nr_cpus: u32) -> Self {
        Self {
            run: 0,
            is_rt,
            sin,
            queues: vec![Vec::new(); nr_cpus as usize],
            ticks: Vec::new(),
            counted: Vec::new(),
            nr_wakeups: Vec::new(),
            nr_picks: 0,
            nr_enqueued: 0,
        }
    }

    /// Ticks of a turn of `task`; `None`: without end.
    fn turn(&self, core: &Core, task: TaskId) -> Option<u64> {
        let rr_ticks = 100_000_000 / core.tick_nsec;
        let attr = &core.task(task).attr;
        match (attr.policy, self.sin) {
            (Policy::Rr, Sin::EndlessSlice) => None,
            (Policy::Rr, _) => Some(rr_ticks),
            (Policy::Fifo, Sin::FifoRotates) => Some(5),
            (Policy::Fifo | Policy::Deadline, _) => None,
            (_, Sin::LongSlice) => Some(100),
            (_, Sin::Remembers) => Some(1 + 5 * (self.run % 2)),
            (_, Sin::NiceStays) if attr.nice >= 3 => None,
            (_, Sin::GroupsStay) if attr.cgroup != ROOT_CGROUP => None,
            (_, Sin::LooksAside) => Some(
                1 + 5 * self.queues.iter().skip(1).filter(|queue| !queue.is_empty()).count() as u64,
            ),
            _ => Some(1),
        }
    }

    /// CPU time of a fair task that counts.
    fn counted(&self, core: &Core, task: TaskId) -> u64 {
        let (counted, before) = self.counted[task.index()];
        let ran = core.sum_exec_runtime(task) - before;
        match self.sin {
            Sin::Unfair if task == TaskId(0) => counted + ran / 4,
            Sin::MoreIsLess if core.task(task).attr.nice < 0 => counted + ran * 4,
            Sin::FirstComeMost if task == TaskId(0) => counted + ran / 3,
            _ => counted + ran,
        }
    }

    /// The least is first.
    fn key(&self, core: &Core, task: TaskId) -> i64 {
        let prio = i64::from(core.task(task).prio);
        match self.sin {
            Sin::LowestFirst if self.is_rt => -prio,
            Sin::DeadlineLast if prio < 0 => i64::MAX,
            _ if self.is_rt => prio,
            Sin::Starves if task == TaskId(1) => i64::MAX,
            Sin::ByName => core.task(task).name.as_str().bytes().next().unwrap_or(0).into(),
            _ => self.counted(core, task) as i64,
        }
    }

    fn first(&self, core: &Core, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].iter().copied().min_by_key(|task| self.key(core, *task))
    }

    fn move_to_tail(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        if let Some(at) = queue.iter().position(|other| *other == task) {
            queue.remove(at);
            queue.push(task);
        }
        self.ticks[task.index()] = 0;
    }
}

impl Explain for Toy {
    fn name(&self) -> &'static str {
        if self.is_rt { "toy-rt" } else { "toy-fair" }
    }
}

impl SchedClass for Toy {
    fn owns(&self, policy: Policy) -> bool {
        (policy.is_rt() || policy == Policy::Deadline) == self.is_rt
    }

    fn task_new(&mut self, _core: &mut Core, task: TaskId) {
        self.ticks.resize(task.index() + 1, 0);
        self.counted.resize(task.index() + 1, (0, 0));
        self.nr_wakeups.resize(task.index() + 1, 0);
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        self.nr_enqueued += 1;
        let counts_twice = self.sin == Sin::CountsTwice && self.nr_enqueued.is_multiple_of(5);
        core.add_nr_running(cpu, 1 + u32::from(counts_twice));
        self.nr_wakeups[task.index()] += u32::from(flags.wakeup);
        if self.sin == Sin::Forgets && flags.wakeup && self.nr_wakeups[task.index()] == 3 {
            return;
        }
        if !flags.restore || (self.sin == Sin::Forgives && !self.is_rt) {
            // A sleeper keeps no credit.
            let others = self.queues[cpu.index()].iter();
            let least = others.map(|other| self.counted(core, *other)).min().unwrap_or(0);
            let counted = match self.sin {
                Sin::Forgives => least,
                _ => self.counted(core, task).max(least),
            };
            self.counted[task.index()] = (counted, core.sum_exec_runtime(task));
        }
        let at_head = flags.head || (self.sin == Sin::LastFirst && flags.wakeup);
        let at = if at_head { 0 } else { self.queues[cpu.index()].len() };
        self.queues[cpu.index()].insert(at, task);
        self.ticks[task.index()] = 0;
    }

    fn dequeue_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _flags: DequeueFlags,
    ) -> bool {
        core.sub_nr_running(cpu, 1);
        self.queues[cpu.index()].retain(|other| *other != task);
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId) {
        if let Some(curr) = core.rq(cpu).curr {
            self.move_to_tail(cpu, curr);
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
        let is_before = self.key(core, task) < self.key(core, curr);
        if self.is_rt && is_before && self.sin != Sin::LateRealTime {
            core.resched_curr(cpu);
        }
    }

    fn cgroup_changed(&mut self, core: &mut Core, _: CpuId, change: &Change, _: &CgroupSpec) {
        if self.sin != Sin::ForgivesAtWrites || self.is_rt {
            return;
        }
        for id in (0..core.tasks.len() as u32).map(TaskId) {
            if core.task(id).attr.cgroup == change.group() {
                self.counted[id.index()] = (0, core.sum_exec_runtime(id));
            }
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        self.nr_picks += 1;
        if self.sin == Sin::Dozes && self.nr_picks.is_multiple_of(7) {
            return None;
        }
        self.first(core, cpu)
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        prev: CpuId,
        _flags: WakeFlags,
    ) -> CpuId {
        match self.sin {
            Sin::IgnoresAffinity => {
                let forbidden = core.cpus.and_not(&core.task(task).cpus_allowed);
                forbidden.first_cpu().unwrap_or_else(|| select_idle_cpu(core, task, prev))
            }
            Sin::IgnoresCpuset => {
                let own = core.task(task).attr.affinity.unwrap_or(core.cpus);
                own.first_cpu().unwrap_or_else(|| select_idle_cpu(core, task, prev))
            }
            _ => select_idle_cpu(core, task, prev),
        }
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId) {
        self.ticks[curr.index()] += 1;
        if self.turn(core, curr).is_none_or(|turn| self.ticks[curr.index()] < turn) {
            return;
        }
        self.move_to_tail(cpu, curr);
        if self.first(core, cpu) != Some(curr) {
            core.resched_curr(cpu);
        }
    }
}

const CLAIMS: Claims =
    Claims { work_conserving: true, starvation_free: true, fair: true, needs_burst: false };

/// The scheduler with this fault.
pub fn toy(sin: Sin) -> Scheduler {
    Scheduler {
        name: "linux-6.12.1".into(),
        summary: "a toy".into(),
        source: "this test".into(),
        leaves_out: "nearly everything".into(),
        // Without balancing it would idle before it ran anybody elsewhere.
        claims: Claims {
            work_conserving: !matches!(sin, Sin::IgnoresAffinity | Sin::IgnoresCpuset),
            ..CLAIMS
        },
        preempt: Preempt::Full,
        costs: Costs::DEFAULT,
        tunables: Vec::new(),
        digest: None,
        make: Make::new(move |_, machine, _| {
            let run = if sin == Sin::Remembers { RUNS.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let class = |is_rt| {
                let toy = Toy::new(is_rt, sin, machine.nr_cpus());
                Box::new(Toy { run, ..toy }) as Box<dyn SchedClass>
            };
            vec![class(true), class(false)]
        }),
    }
}

/// Linux 7.1, whose fair class is not told of limits.
pub fn without_quota() -> Scheduler {
    with_groups(|group| group.cpu_max = None)
}

/// Linux 7.1, whose fair class gives an eighth of each quota.
pub fn with_less_quota() -> Scheduler {
    with_groups(|group| {
        if let Some(limit) = &mut group.cpu_max {
            limit.quota_ns /= 8;
        }
    })
}

fn with_groups(change: fn(&mut CgroupSpec)) -> Scheduler {
    let real = Arc::clone(registry::find("linux-7.1").expect("it is modelled"));
    let inner = Arc::clone(&real);
    let make = Make::fallible(move |options, machine, cgroups| {
        let mut groups = cgroups.to_vec();
        groups.iter_mut().for_each(change);
        inner.stack(options, machine, &groups)
    });
    Scheduler { make, ..(*real).clone() }
}
