// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays one task's program in a process of its own.
//!
//! The interpreter is the model's, seeded with the task's number, so the amounts drawn equal the
//! simulator's. Run burns CPU time by the thread's own clock; sleeps and timers are absolute on
//! CLOCK_MONOTONIC; a fork is a real process; joining waits on pidfds, so it is the child's exit
//! that wakes the parent. Timer periods count from the task's release (rt-app counts from the
//! start of the thread, which is the same moment but for the first wake-up).

use crate::attr;
use crate::burn::{Burner, Speed};
use crate::files::TaskFiles;
use crate::memory::{Mark, MarkRing, RunMemory, Slot, slot_state};
use crate::plan::RunPlan;
use crate::sys;
use schedlab_model::program::IoDirection;
use schedlab_model::{Interpreter, Op, Program, Step, TaskId, TimerMode};
use std::io;
use std::sync::atomic::Ordering;

/// What can fail in a task, by the number that a slot keeps.
pub const STAGES: [&str; 11] = [
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
];

/// A failure: its stage and the system's reason.
pub struct Failure {
    stage: u32,
    error: io::Error,
}

impl Failure {
    /// Failure at `STAGES[stage]`.
    pub fn at(stage: u32) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { stage, error }
    }
}

/// Records the failure in the slot and ends the process.
pub fn fail(slot: &Slot, failure: &Failure) -> ! {
    slot.error_stage.store(failure.stage, Ordering::Relaxed);
    slot.error_number.store(failure.error.raw_os_error().unwrap_or(0), Ordering::Relaxed);
    slot.state.store(slot_state::FAILED, Ordering::Release);
    sys::exit_now(125)
}

/// What every task does before it is released: rights, life line, timer slack. `keep_nice`: whether
/// it keeps the right to change scheduling attributes.
pub fn prepare(plan: &RunPlan, launcher_pid: u32, keep_nice: bool) -> Result<(), Failure> {
    if let Some((uid, gid)) = plan.user {
        sys::drop_privileges(uid, gid, keep_nice).map_err(Failure::at(1))?;
    }
    tie_to_launcher(launcher_pid)?;
    sys::set_timer_slack_ns(1).map_err(Failure::at(3))
}

fn tie_to_launcher(launcher_pid: u32) -> Result<(), Failure> {
    sys::die_with_parent().map_err(Failure::at(2))?;
    if sys::getppid() != launcher_pid {
        sys::exit_now(125); // The launcher ended before the line was tied.
    }
    Ok(())
}

/// Sleeps until the launcher releases the task.
pub fn wait_for_release(memory: &RunMemory, index: u32, word_of: u32) {
    let slot = memory.slot(index);
    let usage = sys::own_usage();
    slot.base.user_us.store(usage.user_us, Ordering::Relaxed);
    slot.base.system_us.store(usage.system_us, Ordering::Relaxed);
    slot.state.store(slot_state::HELD, Ordering::Release);
    let word = &memory.slot(word_of).go;
    while word.load(Ordering::Acquire) == 0 {
        sys::futex_wait(word, 0);
    }
    slot.first_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
    slot.state.store(slot_state::RUNNING, Ordering::Release);
}

/// A task at work.
struct Player<'a> {
    plan: &'a RunPlan,
    memory: &'a RunMemory,
    launcher_pid: u32,
    index: u32,
    marks: &'a MarkRing,
    burner: Burner,
    /// Next boundary of each timer, CLOCK_MONOTONIC.
    timers: Vec<u64>,
    /// pidfds of the tasks it forked and has not joined.
    children: Vec<i32>,
    files: TaskFiles,
}

/// Body of a task that the launcher starts. Never returns.
pub fn run_released(
    plan: &RunPlan,
    memory: &RunMemory,
    index: u32,
    word_of: u32,
    speed: Speed,
) -> ! {
    let slot = memory.slot(index);
    let launcher_pid = sys::getppid();
    let spec = slot.spec.load(Ordering::Relaxed);
    let program = plan.program(spec);
    let mut player = Player::new(plan, memory, launcher_pid, index, speed);
    let setup = prepare(plan, launcher_pid, plan.needs_nice)
        .and_then(|()| player.files.open(program).map_err(Failure::at(4)));
    if let Err(failure) = setup {
        fail(slot, &failure);
    }
    memory.populate_marks(index);
    wait_for_release(memory, index, word_of);
    player.play(program)
}

impl<'a> Player<'a> {
    fn new(
        plan: &'a RunPlan,
        memory: &'a RunMemory,
        launcher_pid: u32,
        index: u32,
        speed: Speed,
    ) -> Self {
        Self {
            plan,
            memory,
            launcher_pid,
            index,
            marks: memory.marks(index),
            burner: Burner::new(speed),
            timers: Vec::new(),
            children: Vec::new(),
            files: TaskFiles::new(plan.dir.clone(), index),
        }
    }

    /// Runs the program to its end and exits.
    fn play(mut self, program: &Program) -> ! {
        let slot = self.memory.slot(self.index);
        if self.plan.own_stamps {
            self.marks.push(Mark::Began);
        }
        let released_ns = slot.released_ns.load(Ordering::Relaxed);
        self.timers = vec![released_ns; program.nr_timers as usize];
        let mut interpreter = Interpreter::new(self.plan.seed, TaskId(self.index));
        loop {
            let step = interpreter.next(program);
            if step == Step::Exit {
                break;
            }
            if let Err(failure) = self.step(program, step) {
                fail(slot, &failure);
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

    fn step(&mut self, program: &Program, step: Step) -> Result<(), Failure> {
        match step {
            Step::Run(ns) => self.burner.burn(ns),
            Step::RunWall(ns) => {
                self.burner.busy_until(sys::monotonic_ns().saturating_add(ns));
            }
            Step::Sleep(ns) => sys::sleep_until_ns(sys::monotonic_ns().saturating_add(ns)),
            Step::Timer { timer, period_ns, mode } => self.timer(timer, period_ns, mode),
            Step::Io { direction, bytes, sync } => {
                let is_read = direction == IoDirection::Read;
                self.files.transfer(is_read, bytes, sync).map_err(Failure::at(5))?;
            }
            Step::Yield => {
                self.marks.push(Mark::YieldBegin);
                sys::sched_yield();
                self.marks.push(Mark::YieldEnd);
            }
            Step::Fork { task } => self.fork(task)?,
            Step::JoinAll => self.join_all(),
            Step::SetAttr { op } => {
                if let Some(Op::SetAttr(attr)) = program.ops.get(op as usize) {
                    attr::apply_to_self(attr, self.plan).map_err(Failure::at(8))?;
                }
            }
            Step::Phase(phase) => self.marks.push(Mark::Phase(phase)),
            Step::Progress => {
                self.marks.push(Mark::Progress);
                self.memory.slot(self.index).nr_progress.fetch_add(1, Ordering::Relaxed);
            }
            Step::Exit => {}
            Step::Join { .. }
            | Step::Lock { .. }
            | Step::Unlock { .. }
            | Step::Wait { .. }
            | Step::Signal { .. }
            | Step::Broadcast { .. }
            | Step::Sync { .. }
            | Step::Barrier { .. }
            | Step::SemWait { .. }
            | Step::SemPost { .. }
            | Step::Suspend { .. }
            | Step::Resume { .. }
            | Step::Mem { .. }
            | Step::MemRun { .. }
            | Step::Send { .. }
            | Step::Receive { .. }
            | Step::WaitAny { .. } => unreachable!("the lane refuses this operation"),
        }
        Ok(())
    }

    fn timer(&mut self, timer: u32, period_ns: u64, mode: TimerMode) {
        let boundary = &mut self.timers[timer as usize];
        *boundary = boundary.saturating_add(period_ns);
        let now = sys::monotonic_ns();
        if *boundary > now {
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
                self.children.push(pidfd);
                Ok(())
            }
            None => self.begin_child(child),
        }
    }

    /// First instructions of a forked task: its parent's rights and attributes hold until it has
    /// set its own.
    fn begin_child(&mut self, index: u32) -> ! {
        let slot = self.memory.slot(index);
        slot.pid.store(sys::getpid(), Ordering::Release);
        slot.first_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        slot.state.store(slot_state::RUNNING, Ordering::Release);
        for pidfd in self.children.drain(..) {
            sys::close(pidfd);
        }
        let spec = slot.spec.load(Ordering::Relaxed);
        let parent = self.memory.slot(self.index).spec.load(Ordering::Relaxed);
        let program = self.plan.program(spec);
        let speed = self.burner.speed();
        let mut child = Player::new(self.plan, self.memory, self.launcher_pid, index, speed);
        let wanted = self.plan.attr(spec);
        let setup = tie_to_launcher(self.launcher_pid)
            .and_then(|()| {
                let is_same = wanted == self.plan.attr(parent);
                let set = if is_same { Ok(()) } else { attr::apply_to_self(wanted, self.plan) };
                set.map_err(Failure::at(8))
            })
            .and_then(|()| child.files.open(program).map_err(Failure::at(4)));
        if let Err(failure) = setup {
            fail(slot, &failure);
        }
        child.play(program)
    }

    fn join_all(&mut self) {
        for pidfd in self.children.drain(..) {
            let mut items = [sys::Pollable { fd: pidfd, is_ready: false }];
            while !items[0].is_ready {
                sys::poll(&mut items, None);
            }
            sys::close(pidfd);
        }
    }
}
