// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of the kernel ([`schedlab_model::machine::KernelThread`]): tasks with the first ids, for
//! which no run waits. A lane hides them from its results; the other tasks have the numbers and the
//! random streams that they would have without them.
//!
//! They may use every CPU: one that wakes next to a busy CPU finds an idle one, if there is one.
//!
//! Left out: bursts of a kernel thread's work (the length of a visit is constant), threads that are
//! bound to a CPU, threads that other events wake.

use crate::clock::{Due, EventQueue};
use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::arrivals::Arrival;
use schedlab_model::machine::{KernelThread, ThreadWakes};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, CpuId, Nanos, Op, Policy, SchedAttr, Step, TaskId, TaskSpec,
    TraceSink, Workload,
};
use schedlab_sched::boundary::core::TaskState;

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    /// Whether the CPU time of the visit is used up.
    has_worked: bool,
    /// Visits that are due at the next ticks.
    nr_due: u32,
    /// Whether a task has exited since the first of them.
    is_asked_again: bool,
    /// Whether the first of them is over: what RCU is to free from now on waits for further ones.
    has_begun: bool,
    /// Whether a reader has delayed the end of the last one. Who locks later does not.
    was_held: bool,
    /// Whether the memory of a task that has exited waits for the last of them.
    holds_memory: bool,
    /// Whether it is freed at the next tick.
    frees: bool,
    /// The time of the next periodic visit.
    next_ns: Nanos,
}

/// The tasks of a control group, and of those below it.
#[derive(Clone, Copy, Debug, Default)]
struct Populated {
    nr_tasks: u32,
    /// Number of the tick before the last time that the worker came for it, or will.
    told: Option<u64>,
}

/// The threads of a run.
#[derive(Debug)]
pub(crate) struct Threads<'a> {
    described: &'a [KernelThread],
    /// The description of the first; the others follow.
    first_spec: u32,
    visits: Vec<Visit>,
    /// By group; the root, which is never empty, is left out.
    populated: Vec<Populated>,
    awaited: Awaited,
    /// The task that holds up a grace period until it goes on, and RCU's thread.
    reader: Option<(TaskId, TaskId)>,
}

/// The task whose exit the launcher waits for.
#[derive(Debug, Default)]
struct Awaited {
    /// The first one that has not exited; `None` if the launcher waits for an endless one.
    first: Option<TaskId>,
    /// By task: whether it has exited.
    has_exited: Vec<bool>,
}

impl Awaited {
    /// `task` exits. Returns whether the launcher has waited for that. It then waits for the next.
    fn exits(&mut self, task: TaskId) -> bool {
        let Some(first) = self.first else { return false };
        let length = self.has_exited.len().max(task.index() + 1);
        self.has_exited.resize(length, false);
        self.has_exited[task.index()] = true;
        let left = self.has_exited.iter().skip(first.index()).take_while(|exited| **exited);
        self.first = Some(TaskId(first.0 + left.count() as u32));
        self.first != Some(first)
    }
}

/// `group` and those above it, without the root.
pub fn with_parents(group: CgroupId, groups: &[CgroupSpec]) -> impl Iterator<Item = CgroupId> {
    let below_root = |group: CgroupId| Some(group).filter(|group| group.index() > 0);
    std::iter::successors(below_root(group), move |group| below_root(groups[group.index()].parent))
}

/// Lowers real-time priorities so that all tasks are below a launcher with priority `launcher`, as
/// a launcher does that has to end a run: two below its own.
fn lower_priorities(workload: &mut Workload, launcher: u8) {
    let most = launcher.saturating_sub(2).max(1);
    for task in &mut workload.tasks {
        task.attr.rt_priority = task.attr.rt_priority.min(most);
        for op in &mut task.program.ops {
            if let Op::SetAttr(attr) = op {
                attr.rt_priority = attr.rt_priority.min(most);
            }
        }
    }
}

/// Adds the descriptions of threads to a workload. None of them is an instance that a launcher
/// starts.
pub(crate) fn added_to(workload: &Workload, threads: &[KernelThread]) -> Workload {
    let mut own = workload.clone();
    for thread in threads.iter().filter(|thread| thread.wakes == ThreadWakes::AtAwaitedExit) {
        lower_priorities(&mut own, thread.rt_priority);
    }
    for thread in threads {
        let mut attr = SchedAttr::default();
        if thread.rt_priority > 0 {
            (attr.policy, attr.rt_priority) = (Policy::Fifo, thread.rt_priority);
        }
        let program = ProgramBuilder::new().run(thread.run_ns).build();
        let mut name = thread.name.clone();
        while own.tasks.iter().any(|task| task.name == name) {
            name.push_str(".kernel");
        }
        own.tasks.push(TaskSpec { attr, instances: 0, ..TaskSpec::new(name, program) });
    }
    own
}

impl<'a> Threads<'a> {
    /// The threads of a machine, whose descriptions [`added_to`] has put at the end of the
    /// workload, before `nr_after` others.
    pub fn of(described: &'a [KernelThread], workload: &Workload, nr_after: usize) -> Option<Self> {
        let first = workload.tasks.len().checked_sub(described.len() + nr_after)?;
        let has = !described.is_empty() && workload.tasks[first..].iter().all(|t| t.instances < 2);
        has.then(|| Self {
            described,
            first_spec: first as u32,
            visits: vec![Visit::default(); described.len()],
            populated: vec![Populated::default(); workload.cgroups.len()],
            awaited: Awaited::default(),
            reader: None,
        })
    }

    /// A task of a run, which begins in `group`, is set up.
    pub fn set_up(&mut self, group: CgroupId, groups: &[CgroupSpec]) {
        for group in with_parents(group, groups) {
            self.populated[group.index()].nr_tasks += 1;
        }
    }

    /// All tasks that a launcher starts are set up.
    pub fn set_up_all(&mut self, arrivals: &[Arrival], workload: &Workload) {
        let is_endless =
            |arrival: &Arrival| workload.tasks[arrival.spec as usize].program.is_endless();
        if !arrivals.iter().any(is_endless) {
            self.awaited.first = Some(TaskId(self.nr()));
        }
        for arrival in arrivals {
            let group = workload.tasks[arrival.spec as usize].attr.cgroup;
            self.set_up(group, &workload.cgroups);
        }
    }

    /// Number of threads.
    pub fn nr(&self) -> u32 {
        self.described.len() as u32
    }

    /// Threads of time 0 are woken before the tasks of that time: the launcher runs already, and
    /// ends what it does before a task of the same priority.
    pub fn come_first(&self, events: &mut EventQueue) {
        for (number, thread) in (0..).zip(self.described) {
            if matches!(thread.wakes, ThreadWakes::Once { at_ns: 0 }) {
                events.push(0, Due::Wake(TaskId(number)));
            }
        }
    }

    /// The thread that runs at time 0: it is waking the tasks of that time.
    pub fn launcher(&self) -> Option<TaskId> {
        let is_first =
            |thread: &KernelThread| matches!(thread.wakes, ThreadWakes::Once { at_ns: 0 });
        let number = self.described.iter().position(is_first)?;
        Some(TaskId(number as u32))
    }

    /// The number of the thread with this description.
    #[inline]
    pub fn number(&self, spec: u32) -> Option<usize> {
        let number = spec.checked_sub(self.first_spec)? as usize;
        (number < self.described.len()).then_some(number)
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Creates the threads, asleep.
    pub(crate) fn create_threads(&mut self) {
        let Some(threads) = &self.threads else { return };
        for number in 0..threads.nr() {
            let Some(threads) = &self.threads else { return };
            let spec = threads.first_spec + number;
            let wakes = threads.described[number as usize].wakes;
            let name = self.workload.tasks[spec as usize].name.clone();
            let cpu = self.set_up_on(&self.core.cpus);
            let task = self.create(spec, name, cpu, None);
            self.tasks[task].waiting = Waiting::Event;
            let at = match wakes {
                ThreadWakes::Periodic { first_ns, .. } => {
                    self.visit(number as usize).next_ns = first_ns;
                    self.core.timer_comes(first_ns)
                }
                // [`Threads::come_first`].
                ThreadWakes::Once { at_ns: 0 } => continue,
                ThreadWakes::Once { at_ns } => at_ns,
                // Without a scheduler for sched_ext nobody checks.
                ThreadWakes::AtChecks { .. } if self.core.check_period_ns == 0 => continue,
                ThreadWakes::AtChecks { after_ns } => {
                    let period_ns = self.core.check_period_ns;
                    let first_ns = period_ns - after_ns % period_ns;
                    self.visit(number as usize).next_ns = first_ns;
                    self.core.timer_comes(first_ns)
                }
                ThreadWakes::AfterExit { .. }
                | ThreadWakes::AtPopulated
                | ThreadWakes::AtAwaitedExit => continue,
            };
            self.clock.events.push(at, Due::Wake(task));
        }
    }

    fn visit(&mut self, number: usize) -> &mut Visit {
        let threads = self.threads.as_mut().expect("there are threads");
        &mut threads.visits[number]
    }

    /// What the launcher, `task`, takes more at time 0 because of the tasks that it has woken.
    fn launch_ns(&self, wakes: ThreadWakes, task: TaskId) -> Nanos {
        let Costs { launch_task_ns, release_ns, pick_fair_ns, pick_entity_ns, .. } = self.costs;
        let launches = matches!(wakes, ThreadWakes::Once { at_ns: 0 }) && release_ns == 0;
        if launch_task_ns == 0 || !launches {
            return 0;
        }
        let fair = self.core.class_of(Policy::Normal);
        let woken = || self.tasks.ids().filter(|id| *id != task && self.core.task(*id).on_rq);
        let each_ns = launch_task_ns.saturating_mul(woken().count() as u64);
        let is_above = |id| self.core.task(id).class < fair;
        let first = woken().next().filter(|_| !woken().any(is_above) && !self.launch.is_awaited());
        let levels = first.map_or(0, |first| self.levels_of(first));
        let pick_ns = if levels > 0 { pick_fair_ns } else { 0 };
        let below_ns = pick_entity_ns.saturating_mul(Nanos::from(levels.saturating_sub(1)));
        each_ns.saturating_add(pick_ns).saturating_add(below_ns)
    }

    /// A thread goes on: it uses the CPU time of its visit, then sleeps to the next.
    pub(crate) fn thread_step(&mut self, number: usize, task: TaskId) -> Next {
        let Some(threads) = &self.threads else { return Next::Call };
        let KernelThread { wakes, run_ns, .. } = threads.described[number];
        let (now, tick) = (self.core.now, self.next_tick());
        let (rcu_wakeup_ns, frees) = (self.costs.rcu_wakeup_ns, self.costs.rcu_free_ns > 0);
        let check_period_ns = self.core.check_period_ns;
        let reader = self.preempted_reader(wakes);
        let visit = self.visit(number);
        visit.has_worked = !visit.has_worked;
        if visit.has_worked {
            return Next::Busy(run_ns.saturating_add(self.launch_ns(wakes, task)));
        }
        let next = match wakes {
            ThreadWakes::AtChecks { .. } => {
                visit.next_ns = visit.next_ns.saturating_add(check_period_ns);
                Some(visit.next_ns)
            }
            ThreadWakes::Periodic { period_ns, .. } => {
                let missed = now.saturating_sub(visit.next_ns) / period_ns;
                visit.next_ns = visit.next_ns.saturating_add((missed + 1) * period_ns);
                Some(visit.next_ns)
            }
            ThreadWakes::AtPopulated if std::mem::take(&mut visit.is_asked_again) => {
                visit.has_worked = true;
                return Next::Busy(run_ns);
            }
            ThreadWakes::Once { .. } | ThreadWakes::AtPopulated | ThreadWakes::AtAwaitedExit => {
                None
            }
            ThreadWakes::AfterExit { .. }
                if let Some(reader) = reader.filter(|_| !visit.was_held) =>
            {
                visit.was_held = true;
                self.threads.as_mut().expect("there are threads").reader = Some((reader, task));
                None
            }
            ThreadWakes::AfterExit { ticks, .. } => {
                visit.was_held = false;
                visit.nr_due = visit.nr_due.saturating_sub(1);
                visit.has_begun = visit.nr_due > 0;
                if visit.nr_due == 0 {
                    visit.frees |= std::mem::take(&mut visit.holds_memory) && frees;
                    if std::mem::take(&mut visit.is_asked_again) {
                        // The visit that ends one grace period begins the next.
                        (visit.nr_due, visit.holds_memory) = ((ticks - 1).max(1), true);
                        visit.has_begun = ticks > 1;
                    }
                }
                let comes = visit.nr_due > 0 || visit.frees;
                comes.then_some(tick.saturating_add(rcu_wakeup_ns))
            }
        };
        if let Some(next) = next {
            let at = self.core.timer_comes(next);
            self.clock.events.push(at, Due::Wake(task));
        }
        self.reads_clock_first(task);
        self.tasks[task].waiting = Waiting::Event;
        Next::Block(TaskState::Sleeping)
    }

    /// A task that was preempted where it copies its memory for a fork, with the lock of a table of
    /// pages and so as a reader for RCU.
    fn preempted_reader(&self, wakes: ThreadWakes) -> Option<TaskId> {
        let ThreadWakes::AfterExit { fork_unlocked_ns: Some(end_ns), .. } = wakes else {
            return None;
        };
        let reads = |task: &TaskId| {
            let exec = &self.tasks[*task];
            let own = exec.shared.as_ref();
            let forks = own.is_some_and(|own| matches!(own.pending, Some(Step::Fork { .. })));
            forks && exec.overhead.saturating_add(exec.remaining) > end_ns
        };
        (0..self.core.tasks.len() as u32).map(TaskId).find(reads)
    }

    /// `task` comes to a CPU. If it holds up a grace period, it wakes RCU's thread as soon as it
    /// has unlocked its memory.
    #[inline]
    pub(crate) fn reader_comes(&mut self, task: TaskId) {
        let Some(threads) = &mut self.threads else { return };
        if let Some((_, thread)) = threads.reader.take_if(|(reader, _)| *reader == task) {
            let Costs { context_switch_ns, wakeup_ns, .. } = self.costs;
            let after_ns = context_switch_ns.saturating_add(wakeup_ns);
            self.clock.events.push(self.core.now.saturating_add(after_ns), Due::Wake(thread));
        }
    }

    /// Exiting `task` tells `parent`, which may not wait for it.
    pub(crate) fn note_zombie(&mut self, task: TaskId, parent: TaskId) {
        let waits = match self.tasks[parent].waiting {
            Waiting::AnyChild => true,
            Waiting::Child(child) => match self.shared(parent).pending {
                Some(Step::Join { .. }) => self.tasks[child].spec == self.tasks[task].spec,
                _ => true,
            },
            _ => false,
        };
        if !waits && self.core.task(parent).state != TaskState::Dead {
            self.shared(task).is_zombie = true;
            self.shared(parent).has_zombies = true;
        }
    }

    /// `task` waits for its children, or exits, so that init does.
    pub(crate) fn reaps_children(&mut self, task: TaskId) {
        let own = &mut self.tasks[task].shared;
        if own.as_mut().is_some_and(|own| std::mem::take(&mut own.has_zombies)) {
            self.threads_see_reaping();
        }
    }

    /// `task` has exited.
    pub(crate) fn threads_see_exit(&mut self, task: TaskId) {
        self.reaps_children(task);
        if !self.tasks[task].shared.as_ref().is_some_and(|own| own.is_zombie) {
            self.threads_see_reaping();
        }
    }

    /// A task that has exited is reaped: RCU frees it (`release_task`).
    fn threads_see_reaping(&mut self) {
        self.call_rcu(true);
    }

    /// RCU is to free memory; `is_reaped`: that of a task that has exited.
    pub(crate) fn call_rcu(&mut self, is_reaped: bool) {
        let Some(threads) = &self.threads else { return };
        for number in 0..threads.nr() {
            let Some(threads) = &self.threads else { return };
            let ThreadWakes::AfterExit { ticks, .. } = threads.described[number as usize].wakes
            else {
                continue;
            };
            let tick = self.next_tick().saturating_add(self.costs.rcu_wakeup_ns);
            let at = self.core.timer_comes(tick);
            let visit = self.visit(number as usize);
            if visit.nr_due > 0 && visit.has_begun {
                visit.is_asked_again = true;
                continue;
            }
            visit.holds_memory |= is_reaped;
            if visit.nr_due > 0 {
                continue;
            }
            visit.nr_due = ticks;
            if !visit.frees {
                self.clock.events.push(at, Due::Wake(TaskId(number)));
            }
        }
    }

    /// `task`, which runs on `cpu`, exits, and wakes the launcher if that waits for it.
    pub(crate) fn launcher_sees_exit(&mut self, cpu: CpuId, task: TaskId) {
        let Some(threads) = &mut self.threads else { return };
        let waits = |thread: &KernelThread| thread.wakes == ThreadWakes::AtAwaitedExit;
        let Some(number) = threads.described.iter().position(waits) else { return };
        let launcher = TaskId(number as u32);
        if !threads.awaited.exits(task) {
            // The launcher reaps it later, if it was its child.
            if self.tasks[task].parent.is_none() {
                self.shared(task).is_zombie = true;
            }
        } else if !self.thread_goes_on(launcher) {
            self.charge(task, self.costs.wakeup_ns);
            self.wake(launcher, cpu, Some(task));
        }
    }

    /// `task`, which runs on `cpu`, moves from one group to another, or exits.
    pub(crate) fn threads_see_move(&mut self, cpu: CpuId, task: TaskId, to: Option<CgroupId>) {
        let from = self.core.task(task).attr.cgroup;
        let tick = self.core.now / self.core.tick_nsec;
        let (hz, groups) = (u64::from(self.core.hz), &self.core.cgroups);
        let Some(threads) = &mut self.threads else { return };
        let mut changed = Vec::new();
        for group in to.into_iter().flat_map(|to| with_parents(to, groups)) {
            let populated = &mut threads.populated[group.index()];
            populated.nr_tasks += 1;
            if populated.nr_tasks == 1 {
                changed.push(group);
            }
        }
        for group in with_parents(from, groups) {
            let populated = &mut threads.populated[group.index()];
            populated.nr_tasks -= 1;
            if populated.nr_tasks == 0 {
                changed.push(group);
            }
        }
        for group in changed {
            let Some(threads) = &mut self.threads else { return };
            let told = &mut threads.populated[group.index()].told;
            if told.is_some_and(|told| told > tick) {
                // What is told then includes this.
                continue;
            }
            // CGROUP_FILE_NOTIFY_MIN_INTV.
            let next = told.map_or(tick, |told| tick.max(told + hz.div_ceil(100) + 1));
            *told = Some(next);
            self.wake_teller(cpu, task, next - tick);
        }
    }

    /// Wakes the threads that tell of populated groups, at once or some ticks later.
    fn wake_teller(&mut self, cpu: CpuId, waker: TaskId, ticks: u64) {
        let Some(threads) = &self.threads else { return };
        let tells =
            |number: &u32| threads.described[*number as usize].wakes == ThreadWakes::AtPopulated;
        let Some(number) = (0..threads.nr()).find(tells) else { return };
        let thread = TaskId(number);
        if ticks > 0 {
            let tick = self.core.now / self.core.tick_nsec + ticks;
            let at = self.core.timer_comes(tick.saturating_mul(self.core.tick_nsec));
            self.clock.events.push(at, Due::Wake(thread));
        } else if !self.thread_goes_on(thread) {
            self.charge(waker, self.costs.wakeup_ns);
            self.wake(thread, cpu, Some(waker));
        }
    }

    /// A timer comes for `task`. Returns whether that was only for RCU's softirq to free memory.
    pub(crate) fn only_frees(&mut self, task: TaskId) -> bool {
        let Some(threads) = &mut self.threads else { return false };
        let Some(visit) = threads.visits.get_mut(task.index()) else { return false };
        // From here on it is too late to join this grace period.
        visit.has_begun = visit.nr_due > 0;
        if !std::mem::take(&mut visit.frees) {
            return false;
        }
        let comes = visit.nr_due > 0;
        let cpu = self.core.task(task).cpu;
        if self.core.rq(cpu).curr.is_some() {
            self.extend_burst(cpu, self.costs.rcu_free_ns);
        }
        !comes
    }

    /// Whether `task` is a thread that is awake when it is to wake: it makes another visit then.
    pub(crate) fn thread_goes_on(&mut self, task: TaskId) -> bool {
        let Some(threads) = &mut self.threads else { return false };
        let is_awake = task.0 < threads.nr() && self.tasks[task].waiting == Waiting::No;
        if is_awake {
            threads.visits[task.index()].is_asked_again = true;
        }
        is_awake
    }

    fn next_tick(&self) -> Nanos {
        (self.core.now / self.core.tick_nsec + 1).saturating_mul(self.core.tick_nsec)
    }
}
