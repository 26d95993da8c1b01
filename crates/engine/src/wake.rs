// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks become runnable: release, fork, wake-up (try_to_wake_up, wake_up_new_task).

use crate::clock::Due;
use crate::engine::Engine;
use crate::error::{SchedulerFault, SimError};
use crate::exec::{Exec, Waiting};
use crate::locks::LateWake;
use crate::step::Next;
use schedlab_model::trace::TaskInfo;
use schedlab_model::workload::TASKS_MAX;
use schedlab_model::{
    Comm, Costs, CpuId, CpuMask, EventKind, Interpreter, Nanos, Policy, Release, Step, TaskId,
    TraceSink,
};
use schedlab_sched::boundary::core::{PreemptCheck, Task, TaskState};
use schedlab_sched::{EnqueueFlags, WakeFlags, WakeKind};
use std::sync::Arc;

/// Most steps that are looked ahead to find the length of a CPU burst.
const BURST_STEPS_MAX: u32 = 10_000;

impl<S: TraceSink> Engine<'_, S> {
    /// An arrival is released: by the launcher at time 0, later by a timer.
    pub(crate) fn release(&mut self, index: u32) {
        let spec = self.tasks.arrival_spec(index);
        debug_assert!(self.tasks.nr_live() > 0, "arrival {index} is of no one who was to come");
        let allowed = self.workload.tasks[spec as usize].attr.affinity;
        let mut cpus = allowed.map_or(self.core.cpus, |mask| mask.and(&self.core.cpus));
        if self.cpusets.is_some() {
            cpus = self.allowed_cpus(&self.workload.tasks[spec as usize].attr);
        }
        let this_cpu = self.set_up_on(&cpus);
        if self.tasks.release_ns(index) > 0 && self.start_waits(index, this_cpu) {
            return;
        }
        let name = self.tasks.take_arrival_name(index);
        let task = self.create(spec, name, this_cpu, None);
        self.charge(task, self.costs.task_start_ns);
        let release_ns = self.tasks.release_ns(index);
        self.tasks[task].timers.fill(release_ns);
        if release_ns == 0 && self.awaits_launch(task) {
            self.await_launch(task);
        } else {
            let earlier_ns = (release_ns > 0).then(|| self.start_earlier_ns(index));
            self.begin_released(task, earlier_ns);
        }
    }

    /// A released task becomes runnable, by the launcher or by a timer. `earlier_ns`: how much
    /// earlier than the timer's delay that is.
    pub(crate) fn begin_released(&mut self, task: TaskId, earlier_ns: Option<i64>) {
        let this_cpu = self.core.task(task).cpu;
        let was_asked = self.core.rq(this_cpu).need_resched;
        self.start_released(task, this_cpu);
        self.interrupt_returns(this_cpu);
        let rest_ns = match earlier_ns {
            Some(_) => self.take_timer_wakeup(this_cpu, task, was_asked),
            None => 0,
        };
        if self.core.now == 0 {
            // Tasks of time 0 have been woken before it.
            self.core.work.bpf_insns = 0;
        }
        let programs_ns = self.lose_class_cost(this_cpu);
        if let Some(earlier_ns) = earlier_ns {
            self.meets_tick(this_cpu, task, earlier_ns, was_asked);
        }
        self.switches_later(programs_ns.saturating_add(rest_ns));
    }

    /// A released task starts; `this_cpu` wakes it. Where tasks exist before the run, as in real
    /// runs, every release is a wake-up.
    pub(crate) fn start_released(&mut self, task: TaskId, this_cpu: CpuId) {
        let release = self.workload.tasks[self.tasks[task].spec as usize].release;
        let kind = match (release, self.core.set_up_ns) {
            (Release::Fork, 0) => WakeKind::Fork,
            _ => WakeKind::Wakeup,
        };
        self.start(task, kind, this_cpu, None);
    }

    /// The running `parent` forks a task of description `spec` on `cpu`.
    pub(crate) fn fork(&mut self, cpu: CpuId, parent: TaskId, spec: u32) -> Next {
        if self.core.tasks.len() as u64 >= TASKS_MAX {
            let time_ns = self.core.now;
            self.fail(SimError::TooManyTasks { max: TASKS_MAX, time_ns });
            return Next::Call;
        }
        debug_assert!(self.core.is_running(parent), "task {parent} forks while it does not run");
        let number = self.tasks.fork(spec);
        let name = format!("{}-{number}", self.workload.tasks[spec as usize].name);
        let task = self.create(spec, name, cpu, Some(parent));
        self.note_child(parent, task);
        self.objects.open_ends(spec);
        let group = self.core.task(task).attr.cgroup;
        if let Some(threads) = &mut self.threads {
            threads.set_up(group, &self.core.cgroups);
        }
        self.charge(task, self.costs.child_start_ns);
        self.start(task, WakeKind::Fork, cpu, Some(parent));
        if self.costs.fork_after_ns > 0 {
            self.owes_copies(parent, task);
        }
        if self.costs.fork_heap_ns > 0 {
            self.shared(parent).heap_child = Some(task);
        }
        Next::Call
    }

    /// `parent` has forked `child`, and copies pages when it continues.
    fn owes_copies(&mut self, parent: TaskId, child: TaskId) {
        let (after_ns, switch_ns) = (self.costs.fork_after_ns, self.costs.fork_switch_ns);
        let shared = self.shared(parent);
        let is_switched = std::mem::take(&mut shared.is_switched);
        shared.copies_ns = after_ns.saturating_add(if is_switched { switch_ns } else { 0 });
        shared.young = (!is_switched).then_some(child);
        if is_switched {
            self.spare(child, switch_ns);
        }
    }

    /// `child` need not copy a page that its parent has copied.
    pub(crate) fn spare(&mut self, child: TaskId, ns: Nanos) {
        let exec = &mut self.tasks[child];
        exec.overhead = exec.overhead.saturating_sub(ns);
    }

    /// `task` runs again. A task that was switched out in a fork, or after it, writes to its area
    /// for restartable sequences when it returns to user mode (rseq_handle_notify_resume). It has
    /// to copy that page, unless its child, which does the same when it begins, was faster.
    #[inline(never)]
    pub(crate) fn copies_rseq(&mut self, task: TaskId) {
        let Some(shared) = self.tasks[task].shared.as_mut() else { return };
        if matches!(shared.pending, Some(Step::Fork { .. })) {
            shared.is_switched = true;
        } else if let Some(child) = shared.young.take()
            && !self.tasks[child].has_run
        {
            self.charge(task, self.costs.fork_switch_ns);
            self.spare(child, self.costs.fork_switch_ns);
        }
    }

    /// `child` runs for the first time. If its parent has not continued since the fork, the child
    /// is the first to write to pages that they share, and copies them.
    #[inline(never)]
    pub(crate) fn copies_first(&mut self, child: TaskId) {
        let copy_ns = self.costs.fork_copy_ns;
        let Some(parent) = self.tasks[child].parent else { return };
        let Some(shared) = self.tasks[parent].shared.as_mut() else { return };
        if shared.copies_ns >= self.costs.fork_after_ns && copy_ns <= shared.copies_ns {
            shared.copies_ns -= copy_ns;
            self.charge(child, copy_ns);
        }
    }

    /// The CPU, of `cpus`, where a task has been until its release. A launcher that has set the run
    /// up before it, and its tasks, end on the last one.
    pub(crate) fn set_up_on(&self, cpus: &CpuMask) -> CpuId {
        let cpu = match self.core.set_up_ns {
            0 => cpus.first_cpu(),
            _ => cpus.iter().last(),
        };
        cpu.unwrap_or(CpuId(0))
    }

    /// The interpreter of a new task. Its random stream is the one that it has without threads of
    /// the kernel.
    fn interpreter(&self, id: TaskId) -> Interpreter {
        let nr_threads = self.threads.as_ref().map_or(0, |threads| threads.nr());
        Interpreter::new(self.config.seed, TaskId(id.0.saturating_sub(nr_threads)))
    }

    /// Creates a task on `cpu`, asleep.
    pub(crate) fn create(
        &mut self,
        spec: u32,
        name: String,
        cpu: CpuId,
        parent: Option<TaskId>,
    ) -> TaskId {
        let id = TaskId(self.core.tasks.len() as u32);
        let description = &self.workload.tasks[spec as usize];
        let begin = self.tasks.begin_with(spec, &description.attr, &self.core.cpus);
        let (attr, mut cpus_allowed) = begin;
        if self.cpusets.is_some() {
            cpus_allowed = Arc::new(self.allowed_cpus(&attr));
        }
        assert!(!cpus_allowed.is_empty(), "the workload was checked: task {id} has a CPU");
        self.core.tasks.push(Task {
            prio: attr.kernel_prio(),
            class: self.core.class_of(attr.policy),
            attr,
            state: TaskState::Sleeping,
            on_rq: false,
            sched_delayed: false,
            is_exiting: false,
            cpu,
            mm: if description.is_process { id.0 + 1 } else { 0 },
            nr_cpus_allowed: cpus_allowed.weight(),
            cpus_allowed,
            sum_exec_runtime: 0,
            exec_start: 0,
            burst_ns: None,
            burst_at: 0,
            nr_voluntary_switches: 0,
            nr_involuntary_switches: 0,
            nr_migrations: 0,
            release_ns: self.core.now,
            age_ns: self.age_ns(parent),
            name: Comm::new(&name),
            inherited_comm: parent.map(|parent| *self.core.task(parent).comm()),
        });
        if self.is_user(spec) {
            self.core.user_half = Some(id);
        }
        self.sink.task(id, &TaskInfo { name: name.clone(), spec: Some(spec), pid: 0 });
        let exec = Exec {
            spec,
            interpreter: self.interpreter(id),
            remaining: 0,
            ahead: 0,
            overhead: 0,
            wall_until: None,
            waiting: Waiting::No,
            timers: vec![self.core.now; description.program.nr_timers as usize],
            parent,
            children: 0,
            has_left: false,
            shared: None,
            must_move: false,
            move_to: None,
            yielded: false,
            runnable_since: self.core.now,
            has_run: false,
            last_cpu: cpu.0,
            name,
        };
        self.tasks.push(id, exec);
        self.each_class(|class, core| class.task_new(core, id));
        id
    }

    /// How long a new task with this parent has existed.
    fn age_ns(&self, parent: Option<TaskId>) -> Nanos {
        match (parent, self.core.set_up_ns) {
            (None, set_up_ns @ 1..) => self.core.now + set_up_ns,
            _ => 0,
        }
    }

    /// A created task becomes runnable for the first time.
    fn start(&mut self, task: TaskId, kind: WakeKind, this_cpu: CpuId, parent: Option<TaskId>) {
        let flags = WakeFlags { kind, sync: false, migrated: false, this_cpu, waker: parent };
        debug_assert_eq!(
            self.core.task(task).state,
            TaskState::Sleeping,
            "task {task} starts twice"
        );
        self.note_burst(task);
        let attr = *self.core.task(task).attr;
        if !self.admit(task, &attr) {
            return;
        }
        if flags.is_fork() {
            let (class, core) = self.class(self.core.task(task).class);
            class.task_fork(core, this_cpu, task, parent);
        }
        let prev = self.core.task(task).cpu;
        let cpu = self.select_cpu(task, prev, flags);
        if cpu != prev && !flags.is_fork() {
            let (class, core) = self.class(self.core.task(task).class);
            class.migrate_task_rq(core, task, cpu);
        }
        self.core.tasks[task.index()].cpu = cpu;
        self.tasks[task].last_cpu = cpu.0;
        self.emit(cpu, EventKind::Fork { task, parent });
        let enqueue = if flags.is_fork() { EnqueueFlags::INITIAL } else { EnqueueFlags::WAKEUP };
        let nr_starts = self.core.work.hrtick_starts;
        self.activate(cpu, task, enqueue, flags);
        if cpu != this_cpu {
            self.woken_from_afar(cpu, nr_starts, parent);
        }
        self.charge_programs(parent);
        // The launcher is no part of the machine.
        if self.locks.is_some() && parent.is_some() {
            self.lock_wakeup(cpu, this_cpu, parent);
        }
    }

    /// The event that a task waits for has happened.
    pub(crate) fn wake_from_event(&mut self, task: TaskId) {
        if self.threads.is_some() && (self.only_frees(task) || self.thread_goes_on(task)) {
            return;
        }
        let this_cpu = self.core.task(task).cpu;
        let earlier_ns = self.earlier_ns(task);
        if self.waits_for_switch(this_cpu, Due::Wake(task))
            || self.waits_for_tick(this_cpu, earlier_ns, Due::Wake(task))
            || self.is_in_timer(this_cpu, Due::Wake(task))
        {
            return;
        }
        let was_asked = self.core.rq(this_cpu).need_resched;
        self.wake(task, this_cpu, None);
        self.interrupt_returns(this_cpu);
        let rest_ns = self.take_timer_wakeup(this_cpu, task, was_asked);
        let programs_ns = self.lose_class_cost(this_cpu);
        self.meets_tick(this_cpu, task, earlier_ns, was_asked);
        self.switches_later(programs_ns.saturating_add(rest_ns));
    }

    /// How much earlier the event of the wake-up of `task` is than its timer's delay says
    /// ([`Self::sleep`]).
    #[inline]
    fn earlier_ns(&self, task: TaskId) -> i64 {
        let Costs { interrupt_entry_ns, timer_rt_ns, wakeup_switch_ns, .. } = self.costs;
        if interrupt_entry_ns == 0 {
            return 0;
        }
        let is_rt = self.core.task(task).attr.policy.is_rt();
        let earlier_ns = wakeup_switch_ns.saturating_add(if is_rt { timer_rt_ns } else { 0 });
        let later_ns = self.costs.syscall_ns.saturating_add(self.costs.timer_absolute_ns);
        earlier_ns as i64 - later_ns as i64
    }

    /// A real-time task wakes, or a little later if its CPU is idle.
    pub(crate) fn wake_on_busy(&mut self, task: TaskId) {
        if self.core.rq(self.core.task(task).cpu).curr.is_some() {
            return self.wake_from_event(task);
        }
        let at = self.core.now.saturating_add(self.costs.timer_rt_ns);
        self.clock.events.push(at, Due::Wake(task));
    }

    /// A timer that has woken `task` takes time from the one that runs on `cpu`, which `was_asked`
    /// to reschedule before. Returns what it adds to the time until the switch.
    #[inline]
    fn take_timer_wakeup(&mut self, cpu: CpuId, task: TaskId, was_asked: bool) -> Nanos {
        if self.costs.timer_wakeup_ns == 0 || self.wakes_in_timer(cpu, task, was_asked) {
            return 0;
        }
        self.timer_wakeup(cpu, task)
    }

    fn timer_wakeup(&mut self, cpu: CpuId, task: TaskId) -> Nanos {
        let entities = |nr: u32| Nanos::from(nr).saturating_mul(self.costs.queue_entity_ns);
        let levels = self.levels_of(task);
        let class = usize::from(self.core.task(task).class);
        let is_first = levels > 0 && self.core.rq(cpu).class_nr_running[class] == 1;
        let server_ns = if is_first { self.costs.first_fair_ns } else { 0 };
        let Some(curr) = self.core.rq(cpu).curr else {
            return (entities(levels.saturating_sub(1)) / 2).saturating_add(server_ns);
        };
        let shared = self.shared_levels(task, curr);
        let queued_ns = entities(levels.saturating_sub(1));
        // A task of SCHED_BATCH or SCHED_IDLE does not preempt, so it is compared with none.
        let is_compared = shared > 0 && self.core.task(task).attr.policy == Policy::Normal;
        let check_ns = if is_compared { self.costs.preempt_check_ns } else { 0 };
        let preempts = self.costs.wakeup_switch_ns > 0 && self.core.is_asked(cpu);
        let fair_ns = match levels {
            0 => 0,
            _ if preempts => self.costs.timer_fair_preempt_ns,
            _ => self.costs.timer_fair_ns,
        };
        let mut taken_ns = queued_ns.saturating_add(check_ns).saturating_add(fair_ns);
        taken_ns = taken_ns.saturating_add(server_ns);
        let mut later_ns = 0;
        // A task that is preempted pays for the way to the switch, not for the way back.
        if preempts {
            let put_ns = if levels == 0 { self.put_groups_ns(curr) } else { 0 };
            taken_ns = taken_ns.saturating_add(put_ns);
            later_ns = check_ns.saturating_add(queued_ns / 2).saturating_add(put_ns);
        } else {
            let is_rt = self.core.task(task).attr.policy.is_rt();
            let rt_ns = if is_rt { self.costs.timer_wakeup_rt_ns } else { 0 };
            taken_ns = taken_ns.saturating_add(self.costs.timer_wakeup_ns).saturating_add(rt_ns);
        }
        self.extend_burst(cpu, taken_ns);
        later_ns
    }

    /// What it takes to put `curr` back that a task of FIFO, RR or DEADLINE preempts, for its
    /// groups below the root.
    pub(crate) fn put_groups_ns(&self, curr: TaskId) -> Nanos {
        let levels = self.levels_of(curr).saturating_sub(1);
        self.costs.put_group_ns.saturating_mul(Nanos::from(levels))
    }

    /// The number of groups, the root among them, of which both tasks are; 0 if one is not fair.
    pub(crate) fn shared_levels(&self, a: TaskId, b: TaskId) -> u32 {
        let most = self.levels_of(a).min(self.levels_of(b));
        let groups = &self.core.cgroups;
        let above = |task| {
            let own = Some(self.core.task(task).attr.cgroup);
            // The root group is its own parent.
            std::iter::successors(own, |group| {
                Some(groups[group.index()].parent).filter(|parent| parent != group)
            })
        };
        let shared = above(a).filter(|group| above(b).any(|other| other == *group)).count();
        most.min(shared as u32)
    }

    /// Levels of groups at which `task` is queued, the root among them; 0 if it is not fair.
    pub(crate) fn levels_of(&self, task: TaskId) -> u32 {
        self.stack.class(self.core.task(task).class).tick_levels(task)
    }

    /// Wakes `task` (try_to_wake_up). `waker` runs on `this_cpu`; without a waker an interrupt
    /// there wakes it.
    pub(crate) fn wake(&mut self, task: TaskId, this_cpu: CpuId, waker: Option<TaskId>) {
        self.wake_sync(task, this_cpu, waker, false);
    }

    /// Wakes `task`; `sync`: the waker is about to sleep.
    pub(crate) fn wake_sync(
        &mut self,
        task: TaskId,
        this_cpu: CpuId,
        waker: Option<TaskId>,
        sync: bool,
    ) {
        if self.has_followers {
            let wake = LateWake { task, this_cpu, waker, sync };
            let waits_for_lock = self.locks.is_some() && self.wakes_later(wake);
            if waits_for_lock || (self.searches.is_some() && self.wakes_after_search(wake)) {
                return;
            }
        }
        self.wake_now(task, this_cpu, waker, sync);
    }

    /// Executes a wake-up.
    pub(crate) fn wake_now(
        &mut self,
        task: TaskId,
        this_cpu: CpuId,
        waker: Option<TaskId>,
        sync: bool,
    ) {
        if self.has_followers && self.wakes_kept(task, this_cpu, waker) {
            return;
        }
        let exec = &mut self.tasks[task];
        exec.waiting = Waiting::No;
        exec.runnable_since = self.core.now;
        self.note_burst(task);
        let mut flags =
            WakeFlags { kind: WakeKind::Wakeup, sync, migrated: false, this_cpu, waker };
        let t = self.core.task(task);
        debug_assert_eq!(t.on_rq, t.sched_delayed, "task {task} is woken while it is runnable");
        debug_assert_ne!(t.state, TaskState::Dead, "task {task} is woken after its exit");
        let prev = t.cpu;
        if t.sched_delayed {
            self.requeue_delayed(prev, task, flags);
            return;
        }
        let cpu = self.select_cpu(task, prev, flags);
        flags.migrated = cpu != prev;
        let enqueue = EnqueueFlags { migrated: flags.migrated, ..EnqueueFlags::WAKEUP };
        if flags.migrated {
            let (class, core) = self.class(self.core.task(task).class);
            class.migrate_task_rq(core, task, cpu);
            self.core.set_task_cpu(task, cpu);
            self.drain();
        }
        self.emit(cpu, EventKind::Wakeup { task, waker });
        let nr_starts = self.core.work.hrtick_starts;
        self.activate(cpu, task, enqueue, flags);
        if cpu != this_cpu {
            self.woken_from_afar(cpu, nr_starts, waker);
        }
        // The task that runs has set the timer of its slice: the next one does not pay for it.
        self.core.work.hrtick_starts = nr_starts;
        self.charge_groups(task);
        if self.costs.wakeup_fair_ns > 0 && cpu == this_cpu {
            self.charge_fair_wakeup(task, waker, self.costs.wakeup_fair_ns);
        }
        self.charge_programs(waker);
        if self.locks.is_some() {
            self.lock_wakeup(cpu, this_cpu, waker);
        }
    }

    /// Charges `waker` for what a fair `task` takes more, without comparing it `fair_ns`. What an
    /// exit takes includes it.
    #[inline(never)]
    fn charge_fair_wakeup(&mut self, task: TaskId, waker: Option<TaskId>, fair_ns: Nanos) {
        let Some(waker) = waker.filter(|_| self.levels_of(task) > 0) else { return };
        if self.tasks[waker].shared.as_ref().is_some_and(|shared| shared.has_left) {
            return;
        }
        // Half of what an interrupt takes for it.
        let check_ns = if self.levels_of(waker) > 0 { self.costs.preempt_check_ns / 2 } else { 0 };
        self.charge(waker, fair_ns.saturating_add(check_ns));
    }

    /// Charges `task`, which wakes, for the queues of its groups.
    fn charge_groups(&mut self, task: TaskId) {
        if self.costs.block_entity_ns > 0 {
            let below = Nanos::from(self.levels_of(task).saturating_sub(1));
            self.charge(task, below.saturating_mul(self.costs.block_entity_ns));
        }
    }

    /// Wakes a task that is still in the queue (ttwu_runnable): no CPU is chosen.
    fn requeue_delayed(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags) {
        self.emit(cpu, EventKind::Wakeup { task, waker: flags.waker });
        let t = &mut self.core.tasks[task.index()];
        debug_assert_eq!(t.cpu, cpu, "task {task} is delayed on another CPU");
        t.sched_delayed = false;
        t.state = TaskState::Running;
        let (class, core) = self.class(self.core.task(task).class);
        let enqueue = EnqueueFlags { delayed: true, ..EnqueueFlags::WAKEUP };
        let nr_starts = core.work.hrtick_starts;
        class.enqueue_task(core, cpu, task, enqueue);
        if self.costs.clock_lead_ns > 0 {
            self.account_ahead(cpu, task);
        }
        self.preempt(cpu, task, flags);
        if self.costs.wakeup_fair_ns > 0 && cpu == flags.this_cpu {
            // A third of it goes into what such a task does not need, the choice of a CPU.
            self.charge_fair_wakeup(task, flags.waker, self.costs.wakeup_fair_ns * 2 / 3);
        }
        if cpu != flags.this_cpu {
            self.woken_from_afar(cpu, nr_starts, flags.waker);
        }
        if self.locks.is_some() {
            self.lock_wakeup(cpu, flags.this_cpu, flags.waker);
        }
    }

    #[inline(always)]
    fn select_cpu(&mut self, task: TaskId, prev: CpuId, flags: WakeFlags) -> CpuId {
        let t = self.core.task(task);
        if t.nr_cpus_allowed == 1 {
            debug_assert_eq!(t.cpus_allowed.weight(), 1, "CPUs of task {task} are miscounted");
            return t.cpus_allowed.first_cpu().expect("affinity was checked");
        }
        let (class, core) = self.class(t.class);
        let cpu = class.select_task_rq(core, task, prev, flags);
        let t = self.core.task(task);
        if !t.cpus_allowed.contains(cpu) {
            let fallback = t.cpus_allowed.first_cpu().expect("affinity was checked");
            if self.cpusets.is_some() && !t.cpus_allowed.contains(prev) {
                // Its cpuset changed while it slept, and a class may answer with the CPU where it
                // slept (select_fallback_rq).
                return self.core.allowed_near(task, prev);
            }
            self.fault(SchedulerFault::ForbiddenCpu, "select_task_rq", task, cpu);
            return fallback;
        }
        cpu
    }

    /// Puts a task on the runqueue of `cpu` (activate_task) and lets it preempt.
    #[inline(always)]
    pub(crate) fn activate(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        enqueue: EnqueueFlags,
        flags: WakeFlags,
    ) {
        let t = &mut self.core.tasks[task.index()];
        debug_assert!(!t.on_rq, "task {task} is put on a runqueue twice");
        debug_assert_eq!(t.cpu, cpu, "task {task} is queued where it is not");
        t.state = TaskState::Running;
        let class = t.class;
        self.core.wake_flags = flags;
        if self.costs.clock_lead_ns > 0 {
            self.account_ahead(cpu, task);
        }
        let (class, core) = self.class(class);
        class.enqueue_task(core, cpu, task, enqueue);
        core.tasks[task.index()].on_rq = true;
        self.preempt(cpu, task, flags);
    }

    /// A wake-up of `task` reads the clock of `cpu` before it places the task, a little later than
    /// it takes place here.
    #[inline(never)]
    fn account_ahead(&mut self, cpu: CpuId, task: TaskId) {
        if self.core.rq(cpu).curr.is_some() {
            let ns = self.core.wakeup_clock_ns(cpu);
            let (class, core) = self.class(self.core.task(task).class);
            class.account_ahead(core, task, ns);
        }
    }

    #[inline(always)]
    fn preempt(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags) {
        let (class, core) = self.class(self.core.task(task).class);
        let check = core.preempt_check(cpu, task);
        match check {
            PreemptCheck::SameClass(curr) => class.wakeup_preempt(core, cpu, task, curr, flags),
            PreemptCheck::Resched => core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
        class.task_woken(core, cpu, task);
        if matches!(check, PreemptCheck::Nothing) {
            self.each_class(|class, core| class.woken_below(core, cpu));
        }
        if self.costs.wakeup_switch_ns > 0 && self.stack.wakeups_stop_clock {
            self.core.stop_clock(cpu, matches!(check, PreemptCheck::Resched));
        }
        self.drain();
        if self.has_followers {
            self.tell_woken(task);
        }
    }

    /// Informs the observer and the sink about a task that has become runnable.
    #[inline(never)]
    fn tell_woken(&mut self, task: TaskId) {
        if self.watch.is_some() {
            self.note_woken(task);
        }
        if self.tells_queues {
            self.tell_queues();
        }
    }

    /// Sets the length of the next burst, for schedulers with `needs_burst`.
    #[inline]
    pub(crate) fn note_burst(&mut self, task: TaskId) {
        if self.config.scheduler.claims.needs_burst {
            self.look_ahead(task);
        }
    }

    #[inline(never)]
    fn look_ahead(&mut self, task: TaskId) {
        let exec = &self.tasks[task];
        let program = &self.workload.tasks[exec.spec as usize].program;
        let burst =
            exec.interpreter.peek_burst(program, &self.config.machine.memory, BURST_STEPS_MAX);
        let burst = burst.map(|ns| ns.saturating_add(exec.remaining));
        let used = self.core.sum_exec_runtime(task);
        let t = &mut self.core.tasks[task.index()];
        t.burst_ns = burst;
        t.burst_at = used;
    }
}
