// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executes one task's program in its own process.
//!
//! The interpreter is the model's, seeded with the task's number, so the random amounts equal the
//! simulator's. Run uses CPU time by the thread's own clock; sleeps and timers are absolute on
//! CLOCK_MONOTONIC; a fork is a real process; a join waits on pidfds, so the child's exit wakes the
//! parent. Timer periods count from the task's release (rt-app counts from the start of the thread,
//! which differs only by the first wake-up).
//!
//! A working set is read once completely when the task returns from a wait. The time that this
//! takes with a warm cache, measured before the release, counts as part of the next Run. The
//! additional time with a cold cache is extra, as in the simulator.
//!
//! Every task is a process, even if the workload has threads, because only a process stays a zombie
//! until its last counters are read. The difference is the switch of the address space.

mod buffers;
mod objects;
mod waits;

pub use buffers::{BufferNeeds, TASK_BYTES_MAX, largest};

use crate::attr;
use crate::burn::{Burner, Speed};
use crate::files::TaskFiles;
use crate::memory::{Mark, Marker, RunMemory, Slot, slot_state};
use crate::objects::mutex::HeldMutexes;
use crate::plan::RunPlan;
use crate::{pace, sys};
use buffers::Buffers;
use objects::Goes;
use schedlab_model::program::IoDirection;
use schedlab_model::{
    Comm, Interpreter, ObjectId, Op, Program, SchedAttr, Step, TaskId, TaskSpec, TimerMode,
};
use std::io;
use std::sync::atomic::Ordering;
use waits::Waits;

/// Steps of the program that a task takes before its release, without their effects: enough for
/// every page that its interpreter needs.
const REHEARSED_STEPS: u32 = 64;
/// CPU time (ns) that it uses before its release.
const REHEARSED_NS: u64 = 1_000;
/// Children for which a task that forks has room before its release. To make room takes a fork 0.2
/// to 0.5 ms, as the new pages are those that parent and child share.
const CHILDREN: usize = 64;

/// Depth of the stack (bytes) that a task has for its own before its release. A call that goes
/// deeper for the first time takes a page fault, 20 us in a guest.
const STACK_LEN: usize = 16 << 10;

/// Number of the stage in which a copy becomes its command.
pub const STAGE_EXECUTING: u32 = 9;

/// What can fail in a task, by the number that a slot keeps.
pub const STAGES: [&str; 26] = [
    "nothing",
    "dropping privileges",
    "tying its life to the launcher's",
    "setting its timer slack",
    "opening its files",
    "transferring with its file",
    "forking a task",
    "forking a task: more tasks at once than the lane keeps",
    "setting its scheduling attributes",
    "executing the command",
    "redirecting its output",
    "locking a mutex",
    "locking a mutex that it holds",
    "unlocking a mutex that it does not hold",
    "waiting for a condition variable with a mutex that it does not hold",
    "unlocking a mutex",
    "setting the priority of a mutex's ceiling",
    "waiting for or posting a semaphore",
    "moving bytes through a channel",
    "waiting for any of several objects",
    "waiting for an object",
    "registering its list of mutexes",
    "preparing its wait sets",
    "entering its private directory",
    "changing a control group",
    "setting a tunable",
];

/// A failure: its step and the system's error.
pub struct Failure {
    stage: u32,
    /// Number of the object concerned plus one; 0: none.
    object: u32,
    error: io::Error,
}

impl Failure {
    /// Failure at `STAGES[stage]`.
    pub fn at(stage: u32) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { stage, object: 0, error }
    }

    /// Failure at `STAGES[stage]`, with `object`.
    pub fn on(stage: u32, object: ObjectId) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { stage, object: object.0 + 1, error }
    }
}

/// Records the failure in the slot and ends the process.
pub fn fail(slot: &Slot, failure: &Failure) -> ! {
    slot.error_stage.store(failure.stage, Ordering::Relaxed);
    slot.error_object.store(failure.object, Ordering::Relaxed);
    slot.error_number.store(failure.error.raw_os_error().unwrap_or(0), Ordering::Relaxed);
    slot.state.store(slot_state::FAILED, Ordering::Release);
    sys::exit_now(125)
}

/// Prepares a task before its release: rights, death with the launcher, timer slack. `keep_nice`:
/// whether it keeps the right to change scheduling attributes.
pub fn prepare(plan: &RunPlan, launcher_pid: u32, keep_nice: bool) -> Result<(), Failure> {
    restrict(plan, launcher_pid, keep_nice)?;
    sys::set_timer_slack_ns(1).map_err(Failure::at(3))
}

/// Sets rights, and death with the launcher.
pub fn restrict(plan: &RunPlan, launcher_pid: u32, keep_nice: bool) -> Result<(), Failure> {
    if let Some((uid, gid)) = plan.user {
        sys::drop_privileges(uid, gid, keep_nice).map_err(Failure::at(1))?;
    }
    tie_to_launcher(launcher_pid)
}

fn tie_to_launcher(launcher_pid: u32) -> Result<(), Failure> {
    sys::die_with_parent().map_err(Failure::at(2))?;
    if sys::getppid() != launcher_pid {
        sys::exit_now(125); // The launcher ended before the line was tied.
    }
    Ok(())
}

/// Sleeps until the launcher releases the task, or until `release_ns` after the planned time 0 if
/// that is later.
pub fn wait_for_release(memory: &RunMemory, index: u32, word_of: u32, release_ns: u64) {
    let slot = memory.slot(index);
    let usage = sys::own_usage();
    slot.base.user_us.store(usage.user_us, Ordering::Relaxed);
    slot.base.system_us.store(usage.system_us, Ordering::Relaxed);
    slot.state.store(slot_state::HELD, Ordering::Release);
    let common = &memory.slot(word_of).go;
    while common.load(Ordering::Acquire) == 0 && slot.go.load(Ordering::Acquire) == 0 {
        let planned_ns = memory.header().planned_ns.load(Ordering::Acquire);
        if planned_ns == 0 || release_ns == 0 {
            sys::futex_wait(&slot.go, 0);
            continue;
        }
        let at_ns = planned_ns.saturating_add(release_ns);
        if at_ns <= sys::monotonic_ns() {
            slot.released_ns.store(at_ns, Ordering::Relaxed);
            break;
        }
        sys::futex_wait_until(&slot.go, 0, at_ns);
    }
    slot.first_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
    slot.state.store(slot_state::RUNNING, Ordering::Release);
}

/// A running task.
struct Player<'a> {
    plan: &'a RunPlan,
    memory: &'a RunMemory,
    launcher_pid: u32,
    index: u32,
    marks: Marker<'a>,
    waits: Waits<'a>,
    burner: Burner,
    /// Next period boundary of each timer, CLOCK_MONOTONIC.
    timers: Vec<u64>,
    /// Description and pidfd of the tasks it forked and has not joined.
    children: Vec<(u32, i32)>,
    files: TaskFiles,
    buffers: Buffers,
    held: HeldMutexes,
    /// Sets of objects that the program waits for, each with an epoll instance.
    epolls: Vec<(u32, i32)>,
    /// Its own attributes, without a ceiling's priority.
    attr: SchedAttr,
    /// Highest ceiling that it runs with; 0: none.
    ceiling: u8,
    /// CPU time of reading the working set with a warm cache.
    warm_ns: u64,
    /// Time (ns) that the next Run counts as its own.
    credit_ns: u64,
}

/// Body of a task that the launcher starts. Never returns.
pub fn run_released(
    plan: &RunPlan,
    memory: &RunMemory,
    index: u32,
    word_of: u32,
    speed: Speed,
) -> ! {
    sys::begin_task();
    let slot = memory.slot(index);
    let launcher_pid = sys::getppid();
    sys::set_name(plan.comm(index));
    let spec = slot.spec.load(Ordering::Relaxed);
    let program = plan.program(spec);
    plan.objects.close_unused(None, spec);
    let setup = prepare(plan, launcher_pid, plan.needs_nice)
        .and_then(|()| Player::ready(plan, memory, launcher_pid, index, speed));
    let player = setup.unwrap_or_else(|failure| fail(slot, &failure));
    memory.populate(index, pace::has_marks(program));
    plan.objects.populate();
    player.rehearse(program);
    wait_for_release(memory, index, word_of, plan.release_ns(index));
    player.play(program)
}

/// Length of the functions that handle each step (bytes).
const STEP_LEN: usize = 32 << 10;

/// Addresses and lengths of the functions that only released tasks call.
pub fn code() -> Vec<(usize, usize)> {
    let of_player = [
        Player::play as *const () as usize,
        Player::step as *const () as usize,
        Player::act as *const () as usize,
        Player::begin_child as *const () as usize,
        Player::join as *const () as usize,
        wait_for_release as *const () as usize,
    ];
    of_player.map(|at| (at, STEP_LEN)).into_iter().chain(crate::objects::code()).collect()
}

/// Whether a task with this program forks others.
fn forks(program: &Program) -> bool {
    program.ops.iter().any(|op| matches!(op, Op::Fork { .. }))
}

/// Writes to the stack that its caller may use.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box(&mut [0_u8; STACK_LEN]);
}

/// Forks a process that ends at once. A first fork takes the longest: it copies pages that the task
/// has in common with the launcher.
fn rehearse_fork() {
    match sys::fork() {
        Ok(None) => sys::exit_now(0),
        Ok(Some(pid)) => _ = sys::reap(pid),
        // The program's own fork will report it.
        Err(_) => {}
    }
}

impl<'a> Player<'a> {
    /// Opens, allocates and registers what the task of slot `index` needs, in its own process.
    fn ready(
        plan: &'a RunPlan,
        memory: &'a RunMemory,
        launcher_pid: u32,
        index: u32,
        speed: Speed,
    ) -> Result<Self, Failure> {
        let (slot, marks) = (memory.slot(index), memory.marker(index));
        let spec = slot.spec.load(Ordering::Relaxed);
        let task = plan.task(spec);
        let mut player = Self {
            plan,
            memory,
            launcher_pid,
            index,
            marks,
            waits: Waits::new(slot, marks, !plan.own_stamps),
            burner: Burner::new(speed),
            // Allocated here: a first allocation after the release takes 0.1 ms of the run.
            timers: vec![0; task.program.nr_timers as usize],
            children: Vec::with_capacity(if forks(&task.program) { CHILDREN } else { 0 }),
            files: TaskFiles::new(plan.dir.clone(), index, plan.pace.file_len),
            buffers: Buffers::new(task),
            held: HeldMutexes::register().map_err(Failure::at(21))?,
            epolls: Vec::new(),
            attr: task.attr,
            ceiling: 0,
            warm_ns: 0,
            credit_ns: 0,
        };
        sys::ignore_broken_pipes();
        player.files.open(&task.program).map_err(Failure::at(4))?;
        player.open_sets(task).map_err(Failure::at(22))?;
        player.measure_working_set();
        Ok(player)
    }

    fn open_sets(&mut self, task: &TaskSpec) -> io::Result<()> {
        for op in &task.program.ops {
            if let Op::WaitAny { set } = op
                && self.epolls.iter().all(|(of, _)| of != set)
            {
                self.epolls.push((*set, self.plan.objects.epoll(*set)?));
            }
        }
        Ok(())
    }

    fn measure_working_set(&mut self) {
        if self.buffers.has_working_set() {
            let rounds = (0..3).map(|_| {
                let start = sys::thread_cpu_ns();
                self.buffers.touch_working_set();
                sys::thread_cpu_ns() - start
            });
            self.warm_ns = rounds.min().unwrap_or(0);
        }
    }

    /// Takes the page faults of the first steps before the release. Nothing that counts changes:
    /// the amounts come from an interpreter of its own, the work from a copy of the burner.
    fn rehearse(&self, program: &Program) {
        let slot = self.memory.slot(self.index);
        let mut interpreter = Interpreter::new(self.plan.seed, TaskId(self.index));
        for _ in 0..REHEARSED_STEPS {
            let step = std::hint::black_box(interpreter.next(program));
            if step == Step::Exit {
                break;
            }
        }
        let mut burner = self.burner.clone();
        burner.burn(REHEARSED_NS);
        slot.requested_ns.store(0, Ordering::Relaxed);
        slot.burned_ns.store(0, Ordering::Relaxed);
        self.waits.sleeps_alone();
        self.waits.end();
        sys::sleep_until_ns(sys::monotonic_ns());
        sys::sched_yield();
        if forks(program) {
            rehearse_fork();
        }
        // A fork takes the right to write from every page.
        touch_stack();
        sys::touch_task();
    }

    /// Runs the program to its end and exits.
    fn play(mut self, program: &Program) -> ! {
        let slot = self.memory.slot(self.index);
        if self.plan.own_stamps {
            self.marks.push(Mark::Began);
        }
        let released_ns = slot.released_ns.load(Ordering::Relaxed);
        self.timers.clear();
        self.timers.resize(program.nr_timers as usize, released_ns);
        let mut interpreter = Interpreter::new(self.plan.seed, TaskId(self.index));
        self.come_back();
        loop {
            let step = interpreter.next(program);
            if step == Step::Exit {
                break;
            }
            match self.step(program, step) {
                Ok(Goes::On) => {}
                Ok(Goes::NoFurther) => break,
                Err(failure) => fail(slot, &failure),
            }
            if step.ends_burst() {
                self.come_back();
            }
            slot.requested_ns.store(self.burner.requested_ns, Ordering::Relaxed);
            slot.burned_ns.store(self.burner.burned_ns, Ordering::Relaxed);
        }
        if self.plan.own_stamps {
            self.marks.push(Mark::Ended);
        }
        slot.ended_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        slot.state.store(slot_state::ENDED, Ordering::Release);
        sys::exit_now(0)
    }

    /// Handles the task's return from a wait: reads its working set.
    fn come_back(&mut self) {
        if self.buffers.has_working_set() {
            self.buffers.touch_working_set();
            self.credit_ns = self.warm_ns;
        }
    }

    fn step(&mut self, program: &Program, step: Step) -> Result<Goes, Failure> {
        match step {
            Step::Run(ns) => {
                let credit_ns = std::mem::take(&mut self.credit_ns).min(ns);
                self.burner.credit(credit_ns);
                self.burner.burn(ns - credit_ns);
            }
            Step::RunWall(ns) => {
                self.burner.busy_until(sys::monotonic_ns().saturating_add(ns));
            }
            Step::Sleep(ns) => {
                self.waits.sleeps_alone();
                sys::sleep_until_ns(sys::monotonic_ns().saturating_add(ns));
            }
            Step::Timer { timer, period, mode } => self.timer(timer, period, mode),
            Step::Io { direction, bytes, sync } => {
                self.waits.sleeps_alone();
                let is_read = direction == IoDirection::Read;
                self.files.transfer(is_read, bytes, sync).map_err(Failure::at(5))?;
            }
            Step::Yield => {
                self.marks.push(Mark::YieldBegin);
                sys::sched_yield();
                self.marks.push(Mark::YieldEnd);
            }
            Step::Fork { task } => self.fork(task)?,
            Step::JoinAll => self.join(None),
            Step::Join { task } => self.join(Some(task)),
            Step::SetAttr(op) => {
                if let Some(Op::SetAttr(attr)) = program.ops.get(op as usize) {
                    self.set_attr(attr).map_err(Failure::at(8))?;
                }
            }
            Step::Change(op) => {
                if let Some(Op::Change(change)) = program.ops.get(op as usize) {
                    self.plan.groups.change(change).map_err(Failure::at(24))?;
                }
            }
            Step::Tune { tunable, value } => {
                self.plan.tunables.set(tunable, value).map_err(Failure::at(25))?;
            }
            Step::Mem { bytes } => self.buffers.write(bytes),
            Step::MemRun { access, pattern, size_bytes, stride_bytes, count } => {
                self.buffers.touch(access, pattern, size_bytes, stride_bytes, count);
            }
            Step::Phase(phase) => self.marks.push(Mark::Phase(phase)),
            Step::Progress => {
                self.marks.push(Mark::Progress);
                self.memory.slot(self.index).nr_progress.fetch_add(1, Ordering::Relaxed);
            }
            Step::Exit => {}
            step => return self.act(step),
        }
        Ok(Goes::On)
    }

    fn timer(&mut self, timer: u32, period_ns: u64, mode: TimerMode) {
        let boundary = &mut self.timers[timer as usize];
        *boundary = boundary.saturating_add(period_ns);
        let now = sys::monotonic_ns();
        if *boundary > now {
            self.waits.sleeps_alone();
            sys::sleep_until_ns(*boundary);
        } else if mode == TimerMode::Relative {
            *boundary = now;
        }
    }

    fn fork(&mut self, spec: u32) -> Result<(), Failure> {
        let Some(child) = self.memory.allocate(spec, self.index) else {
            return Err(Failure::at(7)(io::Error::from_raw_os_error(libc::EAGAIN)));
        };
        let slot = self.memory.slot(child);
        slot.released_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        match sys::fork_sibling().map_err(Failure::at(6))? {
            Some((pid, pidfd)) => {
                slot.pid.store(pid, Ordering::Release);
                self.children.push((spec, pidfd));
                Ok(())
            }
            None => self.begin_child(child),
        }
    }

    /// First instructions of a forked task. It has its parent's rights and attributes until it sets
    /// its own.
    fn begin_child(&mut self, index: u32) -> ! {
        let slot = self.memory.slot(index);
        slot.pid.store(sys::getpid(), Ordering::Release);
        slot.first_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        slot.state.store(slot_state::RUNNING, Ordering::Release);
        for (_, pidfd) in self.children.drain(..) {
            sys::close(pidfd);
        }
        for (_, epoll) in self.epolls.drain(..) {
            sys::close(epoll);
        }
        let spec = slot.spec.load(Ordering::Relaxed);
        let nth = slot.nth.load(Ordering::Relaxed);
        sys::set_name(Comm::of_forked(self.plan.spec_name(spec), nth));
        let parent = self.memory.slot(self.index).spec.load(Ordering::Relaxed);
        self.plan.objects.close_unused(Some(parent), spec);
        let wanted = self.plan.attr(spec);
        let is_same = *wanted == self.attr && self.ceiling == 0 && !attr::resets_on_fork(wanted);
        let setup = tie_to_launcher(self.launcher_pid).and_then(|()| {
            let group = self.attr.cgroup;
            let set = match is_same {
                true => Ok(()),
                false => attr::apply_to_self(wanted, group, self.plan),
            };
            set.map_err(Failure::at(8))
        });
        let speed = self.burner.speed();
        let ready = setup
            .and_then(|()| Player::ready(self.plan, self.memory, self.launcher_pid, index, speed));
        match ready {
            Ok(child) => child.play(self.plan.program(spec)),
            Err(failure) => fail(slot, &failure),
        }
    }

    /// Waits for the tasks that it forked: all, or those of description `spec`.
    fn join(&mut self, spec: Option<u32>) {
        let children = self.plan.trace_children();
        self.children.retain(|(of, pidfd)| {
            if spec.is_some_and(|spec| spec != *of) {
                return true;
            }
            self.waits.begin(children);
            let mut items = [sys::Pollable { fd: *pidfd, is_ready: false }];
            while !items[0].is_ready {
                sys::poll(&mut items, None);
            }
            sys::close(*pidfd);
            false
        });
        self.waits.end();
    }
}
