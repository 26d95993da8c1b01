// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel that is just enough for one class.

use super::{Experiment, Job, Piece, Run};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CgroupSpec, CpuId, Interpreter, Machine, Nanos, Op, SchedAttr, Step, TaskId};
use schedlab_sched::core::{PreemptCheck, Task, TaskState};
use schedlab_sched::{Core, DequeueFlags, EnqueueFlags, SchedClass, WakeFlags, WakeKind};

struct Program<'j> {
    job: &'j Job,
    interpreter: Interpreter,
    left: Nanos,
    wake_at: Option<Nanos>,
    exit_at: Option<Nanos>,
    new: bool,
}

struct Kernel<'j> {
    core: Core,
    class: Box<dyn SchedClass>,
    tasks: Vec<Program<'j>>,
    timers: Vec<(Nanos, u64)>,
    pieces: Vec<Piece>,
    needs_burst: bool,
    switch_ns: Nanos,
    keeps_levels: bool,
}

/// Runs `jobs`.
pub fn run(experiment: &Experiment, jobs: &[Job]) -> Run {
    let machine = Machine { hz: experiment.hz, ..Machine::flat(experiment.nr_cpus) };
    let groups = vec![CgroupSpec::root()];
    let mut classes = (experiment.scheduler.build)(&experiment.options, &machine, &groups);
    let core = Core::new(&machine, groups, Stream::new(1, Purpose::Scheduler, 0));
    let mut kernel = Kernel {
        core,
        class: classes.remove(0),
        tasks: Vec::new(),
        timers: Vec::new(),
        pieces: Vec::new(),
        needs_burst: experiment.scheduler.claims.needs_burst,
        switch_ns: experiment.costs.context_switch_ns,
        keeps_levels: experiment.keeps_levels(),
    };
    for job in jobs {
        kernel.create(job);
    }
    kernel.run_until(experiment.until_ns.unwrap_or(Nanos::MAX));
    kernel.pieces.sort_by_key(|piece| (piece.start_ns, piece.cpu));
    let exit_ns = kernel.tasks.iter().map(|task| task.exit_at).collect();
    let entries_scanned = kernel.core.work.entries_scanned;
    Run { pieces: kernel.pieces, exit_ns, jobs: jobs.to_vec(), entries_scanned }
}

impl<'j> Kernel<'j> {
    fn create(&mut self, job: &'j Job) {
        let id = TaskId(self.tasks.len() as u32);
        let attr = job.attr;
        let cpus_allowed = attr.affinity.unwrap_or(self.core.cpus).and(&self.core.cpus);
        self.core.tasks.push(Task {
            prio: attr.kernel_prio(),
            class: 0,
            attr,
            state: TaskState::Sleeping,
            on_rq: false,
            sched_delayed: false,
            cpu: CpuId(0),
            cpus_allowed,
            nr_cpus_allowed: cpus_allowed.weight(),
            sum_exec_runtime: 0,
            exec_start: 0,
            burst_ns: None,
            burst_at: 0,
            nr_voluntary_switches: 0,
            nr_involuntary_switches: 0,
            nr_migrations: 0,
            release_ns: 0,
        });
        self.tasks.push(Program {
            job,
            interpreter: Interpreter::new(1, id),
            left: 0,
            wake_at: Some(job.arrival * super::MS),
            exit_at: None,
            new: true,
        });
        self.class.task_new(&mut self.core, id);
    }

    fn wake(&mut self, id: TaskId) {
        let program = &mut self.tasks[id.index()];
        program.wake_at = None;
        let new = std::mem::take(&mut program.new);
        if self.needs_burst {
            let burst = program.interpreter.peek_burst(&program.job.program, 10_000);
            self.core.tasks[id.index()].burst_ns = burst;
            self.core.tasks[id.index()].burst_at = self.core.tasks[id.index()].sum_exec_runtime;
        }
        let prev = self.core.task(id).cpu;
        let kind = if new { WakeKind::Fork } else { WakeKind::Wakeup };
        let flags = WakeFlags { kind, sync: false, migrated: false, this_cpu: prev, waker: None };
        let cpu = if self.core.task(id).nr_cpus_allowed > 1 {
            self.class.select_task_rq(&self.core, id, prev, flags)
        } else {
            self.core.task(id).cpus_allowed.first_cpu().unwrap()
        };
        assert!(self.core.task(id).cpus_allowed.contains(cpu));
        self.core.tasks[id.index()].cpu = cpu;
        self.core.tasks[id.index()].state = TaskState::Running;
        let why = if new { EnqueueFlags::INITIAL } else { EnqueueFlags::WAKEUP };
        self.class.enqueue_task(&mut self.core, cpu, id, why);
        self.core.tasks[id.index()].on_rq = true;
        match self.core.preempt_check(cpu, id) {
            PreemptCheck::SameClass(curr) => {
                self.class.wakeup_preempt(&mut self.core, cpu, id, curr, flags)
            }
            PreemptCheck::Resched => self.core.resched_curr(cpu),
            PreemptCheck::Nothing => {}
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(timer) = self.core.take_timer() {
            self.timers.push((timer.at, timer.token));
        }
        self.core.take_moves();
    }

    fn set_attr(&mut self, id: TaskId, attr: SchedAttr) {
        let cpu = self.core.task(id).cpu;
        let old = self.core.task(id).prio;
        self.account(cpu);
        let save = DequeueFlags { save: true, moved: true, ..DequeueFlags::NONE };
        self.class.dequeue_task(&mut self.core, cpu, id, save);
        self.class.put_prev_task(&mut self.core, cpu, id, None);
        let all = self.core.cpus;
        let task = &mut self.core.tasks[id.index()];
        task.attr = attr;
        task.prio = attr.kernel_prio();
        task.cpus_allowed = attr.affinity.unwrap_or(all).and(&all);
        task.nr_cpus_allowed = task.cpus_allowed.weight();
        if !task.cpus_allowed.contains(cpu) {
            // The migration thread: off this CPU, onto one that is allowed.
            let to = task.cpus_allowed.first_cpu().unwrap();
            self.core.rqs[cpu.index()].curr = None;
            self.end_piece(cpu, id);
            self.core.set_task_cpu(id, to);
            self.class.enqueue_task(&mut self.core, to, id, EnqueueFlags::NONE);
            if self.core.rq(cpu).nr_running == 0 {
                self.core.idle_cpus.set(cpu);
            }
            self.core.resched_curr(cpu);
            self.core.resched_curr(to);
        } else {
            let restore = EnqueueFlags { restore: true, moved: true, ..EnqueueFlags::NONE };
            self.class.enqueue_task(&mut self.core, cpu, id, restore);
            self.class.set_next_task(&mut self.core, cpu, id, false);
            self.class.prio_changed(&mut self.core, cpu, id, old);
        }
        self.drain();
    }

    fn account(&mut self, cpu: CpuId) {
        let Some(curr) = self.core.rq(cpu).curr else { return };
        let now = self.core.now;
        let task = &mut self.core.tasks[curr.index()];
        let ran = now - task.exec_start;
        task.sum_exec_runtime += ran;
        task.exec_start = now;
        self.tasks[curr.index()].left -= ran;
    }

    fn end_piece(&mut self, cpu: CpuId, task: TaskId) {
        let end_ns = self.core.now;
        let open = |piece: &&mut Piece| piece.task == task.0 && piece.end_ns == Nanos::MAX;
        let piece = self.pieces.iter_mut().rev().find(open).expect("it ran");
        assert_eq!(piece.cpu, cpu.0);
        piece.end_ns = end_ns;
        if piece.start_ns == end_ns {
            self.pieces.retain(|piece| piece.start_ns != piece.end_ns);
        }
    }

    fn schedule(&mut self, cpu: CpuId) {
        self.core.clear_resched(cpu);
        let prev = self.core.rq(cpu).curr;
        self.account(cpu);
        let next = self.class.pick_task(&mut self.core, cpu);
        if prev != next {
            if let Some(prev) = prev {
                self.class.put_prev_task(&mut self.core, cpu, prev, next);
                self.end_piece(cpu, prev);
            }
            let now = self.core.now;
            self.core.rqs[cpu.index()].curr = next;
            if let Some(next) = next {
                assert_eq!(self.core.task(next).cpu, cpu);
                assert!(self.core.task(next).cpus_allowed.contains(cpu));
                assert!(self.core.task(next).on_rq);
                self.core.idle_cpus.clear(cpu);
                self.core.tasks[next.index()].exec_start = now;
                self.tasks[next.index()].left += self.switch_ns;
                self.class.set_next_task(&mut self.core, cpu, next, true);
                let piece = Piece { task: next.0, cpu: cpu.0, start_ns: now, end_ns: Nanos::MAX };
                self.pieces.push(piece);
            } else if self.core.rq(cpu).nr_running == 0 {
                self.core.idle_cpus.set(cpu);
            }
        }
        self.drain();
    }

    /// Goes on with the program of what `cpu` runs, whose CPU time is used up; says whether it
    /// yielded.
    fn step(&mut self, cpu: CpuId, id: TaskId) -> bool {
        let program = &mut self.tasks[id.index()];
        let step = program.interpreter.next(&program.job.program);
        let blocks = match step {
            Step::Run(ns) => {
                program.left = ns;
                false
            }
            Step::Sleep(ns) => {
                program.wake_at = Some(self.core.now + ns);
                true
            }
            Step::Exit => {
                program.exit_at = Some(self.core.now);
                true
            }
            Step::Yield => {
                self.class.yield_task(&mut self.core, cpu);
                self.core.resched_curr(cpu);
                false
            }
            Step::SetAttr { op } => {
                let Op::SetAttr(attr) = &program.job.program.ops[op as usize] else { panic!() };
                self.set_attr(id, **attr);
                false
            }
            other => panic!("{other:?}"),
        };
        if blocks {
            let exits = step == Step::Exit;
            let flags = DequeueFlags { special: exits, ..DequeueFlags::SLEEP };
            self.class.dequeue_task(&mut self.core, cpu, id, flags);
            let task = &mut self.core.tasks[id.index()];
            task.on_rq = false;
            task.state = if exits { TaskState::Dead } else { TaskState::Sleeping };
            self.schedule(cpu);
        }
        step == Step::Yield
    }

    /// No CPU is idle, or runs a worse task, beside a waiting task that may use it.
    fn check(&self) {
        for (index, task) in self.core.tasks.iter().enumerate() {
            if !task.on_rq || self.core.is_running(TaskId(index as u32)) {
                continue;
            }
            for cpu in task.cpus_allowed.iter() {
                let at = self.core.now;
                let Some(curr) = self.core.rq(cpu).curr else {
                    panic!("at {at} CPU {cpu} is idle beside task {index}");
                };
                let worse = self.core.task(curr).prio > task.prio;
                assert!(
                    !(self.keeps_levels && worse),
                    "at {at} CPU {cpu} runs task {curr} beside task {index}"
                );
            }
        }
        for (cpu, rq) in self.core.rqs.iter().enumerate() {
            let idle = self.core.idle_cpus.contains(CpuId(cpu as u32));
            assert_eq!(idle, rq.curr.is_none() && rq.nr_running == 0);
        }
    }

    fn next_time(&self) -> Option<Nanos> {
        let wakes = self.tasks.iter().filter_map(|task| task.wake_at);
        let timers = self.timers.iter().map(|timer| timer.0);
        let ends = self
            .core
            .rqs
            .iter()
            .filter_map(|rq| rq.curr)
            .map(|curr| self.core.task(curr).exec_start + self.tasks[curr.index()].left);
        wakes.chain(timers).chain(ends).min()
    }

    fn run_until(&mut self, until: Nanos) {
        while let Some(now) = self.next_time() {
            if now > until || self.tasks.iter().all(|task| task.exit_at.is_some()) {
                break;
            }
            self.core.now = now;
            for id in 0..self.tasks.len() {
                if self.tasks[id].wake_at == Some(now) {
                    self.wake(TaskId(id as u32));
                }
            }
            while let Some(index) = self.timers.iter().position(|timer| timer.0 == now) {
                let (_, token) = self.timers.remove(index);
                self.class.timer(&mut self.core, token);
                self.drain();
            }
            for cpu in (0..self.core.nr_cpus()).map(CpuId) {
                self.account(cpu);
                while let Some(curr) = self.core.rq(cpu).curr
                    && self.tasks[curr.index()].left == 0
                {
                    if self.step(cpu, curr) {
                        break;
                    }
                }
            }
            while let Some(cpu) = self.core.next_resched() {
                self.schedule(cpu);
            }
            self.check();
        }
        if until != Nanos::MAX {
            self.core.now = until;
            for piece in &mut self.pieces {
                piece.end_ns = piece.end_ns.min(until);
            }
            self.pieces.retain(|piece| piece.start_ns != piece.end_ns);
        }
    }
}
