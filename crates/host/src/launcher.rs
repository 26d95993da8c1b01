// SPDX-License-Identifier: MIT OR Apache-2.0
//! The launcher: a separate process that creates, holds, releases, supervises and reaps the tasks,
//! and always cleans up.
//!
//! It is the parent of every task (also of tasks that tasks fork). So a task that ends stays a
//! zombie until the launcher has read its last counters, and every task is killed when the launcher
//! ends. It waits on a pipe from the caller. When the caller ends, even by kill -9, the pipe
//! closes, and the launcher kills the tasks and removes groups and files. When the launcher itself
//! is killed, the kernel kills the tasks, and the caller removes the rest.
//!
//! As root it runs at SCHED_FIFO 99, above all tasks, so that a hog cannot keep it from ending the
//! run. It sleeps while tasks run, and stays off the run's CPUs if others are free.

mod periods;
mod release;
mod settle;
mod stage;

use crate::attr;
use crate::burn::Speed;
use crate::cgroup::{CpuController, GroupNeeds};
use crate::deadlock::{self, Deadlock};
use crate::files::{self, FileNeeds};
use crate::memory::{RunMemory, Slot, run_state, slot_state};
use crate::plan::{Output, RunPlan, Work};
use crate::player::{self, Failure, STAGES};
use crate::procfs;
use crate::sys::{self, Pollable, RawSchedAttr};
use release::Release;
use schedlab_model::{CgroupId, CgroupSpec, Change, Comm, CpuMask};
use stage::Staying;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::IntoRawFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Name of the launcher's process.
pub const LAUNCHER_NAME: &str = "schedlab-launch";

/// Longest time in which tasks must be ready (ns).
const SETUP_LIMIT_NS: u64 = 60_000_000_000;

/// Longest time in which every task runs once before the release (ns).
const ROLL_LIMIT_NS: u64 = 1_000_000_000;

/// Why the launcher stops early.
enum Stop {
    /// The run cannot continue, for this reason.
    Failed(String),
    /// The caller no longer exists, or a signal requested the end: clean up, because results are
    /// not read.
    Abandoned,
}

struct Launcher<'a> {
    plan: &'a mut RunPlan,
    memory: &'a RunMemory,
    control: i32,
    signals: i32,
    /// Commands that keep running next to a program.
    staying: Vec<Staying>,
    /// Killed processes that a command left running.
    leftover: BTreeSet<u32>,
    /// Whether it runs with a policy above that of all tasks, but for SCHED_DEADLINE.
    outranks: bool,
    /// Whether tasks have its policy until their own is set (see [`settle`]).
    lends_policy: bool,
    /// Whether the kernel has CFS, whose queues move on from the tasks before the run.
    outruns: bool,
}

/// Body of the launcher process. `control` is the reading end of the pipe. Never returns.
pub fn run(plan: &mut RunPlan, memory: &RunMemory, control: i32) -> ! {
    sys::block_signals();
    let outputs = plan.program.as_ref().map(|program| [program.log.fd(), program.output.fd()]);
    let [log, output] = outputs.unwrap_or([control; 2]);
    let alarm = memory.header().alarm().unwrap_or(control);
    sys::close_others(&[control, log, output, alarm]);
    sys::set_name(Comm::new(LAUNCHER_NAME));
    let started = sys::new_process_group().and_then(|()| sys::become_subreaper(true));
    let signals = started.and_then(|()| sys::end_signals_fd());
    let signals = match signals {
        Ok(fd) => fd,
        Err(error) => {
            memory.header().fail(&format!("starting the launcher: {error}"));
            sys::exit_now(1);
        }
    };
    // One that is pending is not sent again: the exit of a task would wake the launcher's poll.
    sys::kill(sys::getpid() as i32, libc::SIGCHLD);
    sys::raise_file_limit();
    let mut launcher = Launcher {
        plan,
        memory,
        control,
        signals,
        staying: Vec::new(),
        leftover: BTreeSet::new(),
        outranks: false,
        lends_policy: false,
        outruns: false,
    };
    let result = launcher.whole_run();
    launcher.clean_up();
    match result {
        Ok(()) => memory.header().state.store(run_state::DONE, Ordering::Release),
        Err(Stop::Failed(text)) => memory.header().fail(&text),
        Err(Stop::Abandoned) => memory.header().fail("the run was ended from outside"),
    }
    sys::exit_now(0)
}

/// Gives the launcher its policy; `flags` may hold [`sys::RESET_ON_FORK`].
fn take_policy(flags: u64) -> io::Result<()> {
    let priority = u32::from(attr::LAUNCHER_PRIORITY);
    set_policy(RawSchedAttr {
        policy: libc::SCHED_FIFO as u32,
        flags,
        priority,
        ..Default::default()
    })
}

/// Makes the launcher a fair task.
fn leave_policy() -> io::Result<()> {
    set_policy(RawSchedAttr { flags: sys::RESET_ON_FORK, ..Default::default() })
}

fn set_policy(raw: RawSchedAttr) -> io::Result<()> {
    sys::sched_setattr(0, &RawSchedAttr { size: size_of::<RawSchedAttr>() as u32, ..raw })
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Stop {
    move |error| Stop::Failed(format!("{what}: {error}"))
}

impl Launcher<'_> {
    fn whole_run(&mut self) -> Result<(), Stop> {
        self.wait_for_caller()?;
        self.outrank();
        self.outruns = self.outruns_tasks();
        self.make_groups_and_files()?;
        self.set_stage()?;
        let speed = self.measure_speed();
        if self.plan.pace.calm_ns > 0 {
            // Without it, only the costs of first uses differ.
            let _ = sys::inherit_code(&player::code());
        }
        let mut release = self.plan_release();
        let count = release.count();
        self.lend_policy();
        for (index, (spec, _)) in (0..).zip(self.plan.released()) {
            self.start(index, spec, release.word_of(index), speed)?;
        }
        if self.lends_policy {
            take_policy(sys::RESET_ON_FORK).map_err(failed("setting the launcher's policy"))?;
        }
        self.plan.objects.close_all();
        self.wait_until_held(count)?;
        self.join_groups(count)?;
        self.renew_domains();
        // A task that is no fair one at the roll call would keep the lag of its setup until it is
        // one, and be placed with it.
        let is_calm = self.plan.pace.calm_ns > 0;
        let sets_late = self.lends_policy || self.outruns || (is_calm && self.outranks);
        if !sets_late {
            self.set_attributes(count)?;
        }
        let is_planned = self.plan_zero();
        let knows_plan = self.call_roll(count)? && is_planned;
        if self.outruns {
            self.outrun_tasks()?;
        }
        if sets_late {
            self.set_attributes(count)?;
        }
        self.align_periods(self.memory.header().planned_ns.load(Ordering::Relaxed))?;
        self.read_base(count)?;
        self.line_up(&release);
        let mut awaited = Awaited { endless: self.endless_task(), ..Awaited::default() };
        let result = self.watch(&mut release, knows_plan, &mut awaited);
        self.let_last_task_leave(awaited.last_that_exited());
        self.memory.header().end_ns.store(sys::monotonic_ns(), Ordering::Release);
        self.kill_and_count();
        result?;
        self.report_failed_task()?;
        self.check_staying()?;
        self.tear_down()
    }

    /// Waits for the byte that the caller sends when its recorder is ready.
    fn wait_for_caller(&self) -> Result<(), Stop> {
        let mut items = [Pollable { fd: self.control, is_ready: false }];
        while !items[0].is_ready {
            sys::poll(&mut items, None);
        }
        if sys::read_byte(self.control) { Ok(()) } else { Err(Stop::Abandoned) }
    }

    /// Sets FIFO 99 on the CPUs that the run leaves free. Without the right to do so the launcher
    /// keeps its policy; then no task can have a real-time policy either.
    fn outrank(&mut self) {
        self.outranks = take_policy(sys::RESET_ON_FORK).is_ok();
        let _ = sys::sched_setaffinity(0, &self.plan.launcher_cpus);
    }

    fn make_groups_and_files(&mut self) -> Result<(), Stop> {
        let controller = CpuController::detect();
        let workload = match &self.plan.work {
            Work::Tasks { workload, .. } => workload,
            Work::Command { weight: None, .. } => return Ok(()),
            Work::Command { weight: Some(weight), attr, .. } => {
                let spec = CgroupSpec { weight: *weight, ..CgroupSpec::root() };
                let groups = &mut self.plan.groups;
                let has_rt = vec![attr.policy.is_rt()];
                let needs = GroupNeeds { has_rt, ..GroupNeeds::default() };
                return groups.create(controller.as_ref(), &[spec], &needs).map_err(Stop::Failed);
            }
        };
        let mut has_rt = vec![false; workload.cgroups.len()];
        let mut needs = FileNeeds::default();
        for task in &workload.tasks {
            has_rt[task.attr.cgroup.index()] |= task.attr.policy.is_rt();
            needs = needs.or(FileNeeds::of(&task.program));
        }
        let groups = &mut self.plan.groups;
        let changes_cpus = workload.changes().any(|change| matches!(change, Change::Cpus { .. }));
        let has_cpusets = changes_cpus || workload.has_cpusets();
        let changes_root = workload.changes().any(|change| change.group() == CgroupId(0));
        let may_use_root = self.plan.pace.has_machine() && !changes_root;
        let group_needs = GroupNeeds { has_rt, has_cpusets, may_use_root };
        groups
            .create(controller.as_ref(), &workload.cgroups, &group_needs)
            .map_err(Stop::Failed)?;
        groups.open_changes(controller.as_ref(), workload).map_err(Stop::Failed)?;
        self.plan.tunables.open().map_err(Stop::Failed)?;
        if needs.any {
            let dir = files::make_dir(self.plan.user, needs, self.plan.pace.file_len);
            self.plan.dir = Some(dir.map_err(Stop::Failed)?);
        }
        self.plan.objects.open().map_err(Stop::Failed)
    }

    /// Calibrates on a CPU of the run.
    fn measure_speed(&self) -> Speed {
        let first = self.plan.cpus.first_cpu().map(CpuMask::only);
        let is_there = first.is_some_and(|mask| sys::sched_setaffinity(0, &mask).is_ok());
        let speed = Speed::measure();
        let speed = match self.plan.pace.instruction_ns {
            Some(ns) => speed.rounded_to(ns),
            None => speed,
        };
        if is_there {
            let _ = sys::sched_setaffinity(0, &self.plan.launcher_cpus);
        }
        speed
    }

    fn start(&mut self, index: u32, spec: u32, word_of: u32, speed: Speed) -> Result<(), Stop> {
        let slot_index = self.memory.allocate(spec, u32::MAX);
        if slot_index != Some(index) {
            return Err(Stop::Failed("task slots ran out".into()));
        }
        let launcher_pid = sys::getpid();
        match sys::fork().map_err(failed("making a process"))? {
            Some(pid) => {
                self.memory.slot(index).pid.store(pid, Ordering::Release);
                Ok(())
            }
            None => {
                sys::default_signals();
                sys::close(self.control);
                sys::close(self.signals);
                // A task may use every CPU until its own mask is set; it must not keep the
                // launcher's mask.
                let first = if self.gathers() { self.last_cpu(spec) } else { self.plan.cpus };
                let _ = sys::sched_setaffinity(0, &first);
                if self.plan.tasks_set_own {
                    // The launcher checks the result when it sets attributes.
                    let _ = attr::apply(0, self.plan.attr(spec));
                }
                match &self.plan.work {
                    Work::Tasks { .. } => {
                        player::run_released(self.plan, self.memory, index, word_of, speed)
                    }
                    Work::Command { .. } => self.run_command(index, word_of, launcher_pid),
                }
            }
        }
    }

    /// Body of a copy of a command.
    fn run_command(&self, index: u32, word_of: u32, launcher_pid: u32) -> ! {
        let slot = self.memory.slot(index);
        let Work::Command { image, output, .. } = &self.plan.work else { sys::exit_now(125) };
        let rights = match &self.plan.program {
            Some(program) => player::restrict(self.plan, launcher_pid, false)
                .and_then(|()| sys::confine(&program.dir).map_err(Failure::at(23))),
            None => player::prepare(self.plan, launcher_pid, false),
        };
        let setup = rights.and_then(|()| redirect(*output).map_err(Failure::at(10)));
        if let Err(failure) = setup {
            player::fail(slot, &failure);
        }
        player::wait_for_release(self.memory, index, word_of, 0);
        let error = image.exec();
        player::fail(slot, &Failure::at(player::STAGE_EXECUTING)(error));
    }

    /// Waits until every task sleeps at its barrier.
    fn wait_until_held(&self, count: u32) -> Result<(), Stop> {
        let deadline = sys::monotonic_ns() + SETUP_LIMIT_NS;
        for index in 0..count {
            let slot = self.memory.slot(index);
            let pid = slot.pid.load(Ordering::Acquire);
            loop {
                match slot.state.load(Ordering::Acquire) {
                    slot_state::HELD if procfs::is_sleeping(pid) => break,
                    slot_state::FAILED => return self.report_failed_task(),
                    _ => {}
                }
                if matches!(sys::wait_peek(Some(pid), false), Ok(Some(_))) {
                    self.report_failed_task()?;
                    return Err(Stop::Failed(format!("task {index} ended before its release")));
                }
                if sys::monotonic_ns() > deadline {
                    return Err(Stop::Failed("tasks did not get ready within 60 s".into()));
                }
                self.pause(200_000)?;
            }
        }
        Ok(())
    }

    /// Sleeps, unless the caller ends.
    fn pause(&self, ns: u64) -> Result<(), Stop> {
        let mut items = [
            Pollable { fd: self.control, is_ready: false },
            Pollable { fd: self.signals, is_ready: false },
        ];
        sys::poll(&mut items, Some(Duration::from_nanos(ns)));
        if items.iter().any(|item| item.is_ready) { Err(Stop::Abandoned) } else { Ok(()) }
    }

    /// Moves each task into its control group.
    fn join_groups(&self, count: u32) -> Result<(), Stop> {
        for index in 0..count {
            let (pid, spec) = self.who(index);
            (self.plan.groups.join(pid, self.plan.attr(spec).cgroup)).map_err(|error| {
                self.failed_task(spec, &format!("joining its control group: {error}"))
            })?;
        }
        Ok(())
    }

    fn set_attributes(&self, count: u32) -> Result<(), Stop> {
        for index in 0..count {
            let (pid, spec) = self.who(index);
            let attr = self.plan.attr(spec);
            self.let_go(pid, spec)?;
            let set = if self.plan.tasks_set_own && attr::check_set(pid, attr).is_ok() {
                Ok(())
            } else {
                attr::apply(pid, attr)
            };
            set.map_err(|error| self.failed_task(spec, &attr::explain(attr, &error)))?;
        }
        Ok(())
    }

    /// Process and task of the workload in slot `index`.
    fn who(&self, index: u32) -> (u32, u32) {
        let slot = self.memory.slot(index);
        (slot.pid.load(Ordering::Acquire), slot.spec.load(Ordering::Relaxed))
    }

    fn failed_task(&self, spec: u32, why: &str) -> Stop {
        Stop::Failed(format!("task {:?}: {why}", self.plan.spec_name(spec)))
    }

    /// Lets each task run once and sleep again while all others sleep. A task that sleeps alone
    /// leaves its queue with a lag of 0 (kernel/sched/fair.c); before, each has the lag of its
    /// setup, which decides who is first after the release. Returns false if it gave up, on a busy
    /// machine.
    fn call_roll(&self, count: u32) -> Result<bool, Stop> {
        const LOOK_NS_MAX: u64 = 4_000_000;
        let calm = self.calm_of_roll(count);
        let deadline = sys::monotonic_ns() + ROLL_LIMIT_NS + u64::from(count) * calm.before_ns;
        for index in 0..count {
            let slot = self.memory.slot(index);
            let (pid, spec) = self.who(index);
            if self.gathers() {
                // The kernel refuses this to tasks of SCHED_DEADLINE, which need all CPUs.
                let _ = sys::sched_setaffinity(pid, &self.last_cpu(spec));
            }
            self.pause(calm.before_ns)?;
            // It finds that it is not released.
            sys::futex_wake(&slot.go, 1);
            // Looking takes the CPU from the task: one in nested groups, looked at every 50 us, did
            // not get to sleep within a second.
            let mut look_ns = calm.look_ns;
            while !procfs::is_sleeping(pid) {
                if sys::monotonic_ns() > deadline {
                    self.let_go(pid, spec)?;
                    return Ok(false);
                }
                self.pause(look_ns)?;
                look_ns = (2 * look_ns).min(LOOK_NS_MAX);
            }
            self.let_go(pid, spec)?;
        }
        Ok(true)
    }

    fn read_base(&self, count: u32) -> Result<(), Stop> {
        for index in 0..count {
            let slot = self.memory.slot(index);
            let pid = slot.pid.load(Ordering::Acquire);
            let stat = procfs::schedstat(pid).map_err(failed("reading schedstat"))?;
            slot.base.run_ns.store(stat.run_ns, Ordering::Relaxed);
            slot.base.run_delay_ns.store(stat.run_delay_ns, Ordering::Relaxed);
            slot.base.nr_slices.store(stat.nr_slices, Ordering::Relaxed);
            let (voluntary, involuntary) = procfs::switches(pid).unwrap_or_default();
            slot.base.nr_voluntary.store(voluntary, Ordering::Relaxed);
            slot.base.nr_involuntary.store(involuntary, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The first task whose program never ends.
    fn endless_task(&self) -> Option<u32> {
        let released = self.plan.released();
        let endless = released.iter().position(|(spec, _)| self.plan.program(*spec).is_endless());
        endless.map(|index| index as u32)
    }

    /// Releases the tasks at their times and waits for the end. `knows_plan`: all tasks have
    /// seen a planned time 0.
    fn watch(
        &mut self,
        release: &mut Release,
        knows_plan: bool,
        awaited: &mut Awaited,
    ) -> Result<(), Stop> {
        let header = self.memory.header();
        let is_command = matches!(self.plan.work, Work::Command { .. });
        awaited.notes_exits = is_command;
        awaited.advance(self.memory);
        let zero_ns = self.release_first(release)?;
        if knows_plan {
            release.leave_rest();
        }
        header.state.store(run_state::RUNNING, Ordering::Release);
        let limit_ns = zero_ns.saturating_add(self.plan.limit_ns);
        let end_ns = self.plan.duration_ns.map_or(u64::MAX, |ns| zero_ns.saturating_add(ns));
        let mut deadlock = Deadlock::default();
        loop {
            while release
                .next_ns()
                .is_some_and(|at| zero_ns.saturating_add(at) <= sys::monotonic_ns())
            {
                self.release_next(release);
            }
            let next_ns = release.next_ns().map(|at| zero_ns.saturating_add(at));
            let last_ns = zero_ns.saturating_add(release.last_ns());
            let is_all_released = next_ns.is_none() && last_ns <= sys::monotonic_ns();
            if awaited.advance(self.memory) && is_all_released {
                return Ok(());
            }
            let now = sys::monotonic_ns();
            if now >= end_ns {
                return Ok(());
            }
            if now >= limit_ns {
                header.was_limited.store(1, Ordering::Relaxed);
                deadlock::note_waits(self.memory, &self.plan.objects);
                return Ok(());
            }
            let may_be_stuck = is_all_released && self.plan.duration_ns.is_none() && !is_command;
            if may_be_stuck && deadlock.is_found(self.memory, now) {
                header.was_deadlocked.store(1, Ordering::Relaxed);
                deadlock::note_waits(self.memory, &self.plan.objects);
                return Ok(());
            }
            let until = next_ns
                .unwrap_or(u64::MAX)
                .min(end_ns)
                .min(limit_ns)
                .min(now.saturating_add(self.plan.pace.look_ns));
            let mut items = [
                Pollable { fd: self.control, is_ready: false },
                Pollable { fd: self.signals, is_ready: false },
                Pollable { fd: awaited.pidfd, is_ready: false },
            ];
            sys::poll(&mut items, Some(Duration::from_nanos(until.saturating_sub(now))));
            if items[0].is_ready || items[1].is_ready {
                return Err(Stop::Abandoned);
            }
            self.report_failed_task()?;
        }
    }

    /// Lets the last task leave its CPU. A task reports its exit before its last switch. If the
    /// launcher shares that CPU, it has preempted the task. The last switch happens only after
    /// tasks that the scheduler prefers (kernel threads that free the memory of exited tasks).
    fn let_last_task_leave(&self, last: u32) {
        const EXIT_NS: u64 = 500_000;
        const STEPS_MAX: u32 = 200;
        let shared = self.plan.launcher_cpus.and(&self.plan.cpus);
        if shared.is_empty() {
            return;
        }
        for _ in 0..STEPS_MAX {
            sys::sleep_until_ns(sys::monotonic_ns() + EXIT_NS);
            if last == 0 || !procfs::is_on_its_way_out(last) {
                break;
            }
        }
    }

    /// Ends all living tasks and reads their last counters.
    fn kill_and_count(&mut self) {
        self.kill_below();
        let mut nr_killed = 0;
        let mut index = 0;
        // A task that forks while it is being killed may still add one slot.
        while index < self.memory.nr_slots() {
            let nr_slots = self.memory.nr_slots();
            for rest in (nr_killed..nr_slots).chain([index]) {
                let pid = self.memory.slot(rest).pid.load(Ordering::Acquire);
                if pid != 0 {
                    sys::kill_now(pid as i32);
                }
            }
            nr_killed = nr_slots;
            let slot = self.memory.slot(index);
            let pid = slot.pid.load(Ordering::Acquire);
            if pid != 0 {
                count_and_reap(slot, pid);
            }
            index += 1;
        }
    }

    /// Kills the descendants of a command's copies before waiting for a copy: a busy descendant
    /// with a real-time policy could keep its killed parent from ending. Descendants of a program's
    /// own steps stay until the steps have ended them.
    fn kill_below(&mut self) {
        if !matches!(self.plan.work, Work::Command { .. }) {
            return;
        }
        let copies: BTreeSet<u32> = (0..self.memory.nr_slots())
            .map(|index| self.memory.slot(index).pid.load(Ordering::Acquire))
            .collect();
        for pid in &copies {
            sys::kill_now(*pid as i32);
        }
        let mut seen = copies.clone();
        // A task with a pending SIGKILL no longer forks: each round finds those forked before.
        loop {
            let below: Vec<u32> = match &self.plan.program {
                None => procfs::descendants(sys::getpid()),
                Some(_) => copies.iter().flat_map(|pid| procfs::descendants(*pid)).collect(),
            };
            let new: Vec<u32> = below.into_iter().filter(|pid| seen.insert(*pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new.into_iter().filter(|pid| !procfs::has_ended(*pid)) {
                self.leftover.insert(pid);
                sys::kill_now(pid as i32);
            }
        }
    }

    /// Describes the first task that failed.
    fn report_failed_task(&self) -> Result<(), Stop> {
        for index in 0..self.memory.nr_slots() {
            let slot = self.memory.slot(index);
            if slot.state.load(Ordering::Acquire) != slot_state::FAILED {
                continue;
            }
            let spec = slot.spec.load(Ordering::Relaxed);
            let stage = slot.error_stage.load(Ordering::Relaxed);
            let error = io::Error::from_raw_os_error(slot.error_number.load(Ordering::Relaxed));
            let help = self.help_for(stage, &error);
            let object = slot.error_object.load(Ordering::Relaxed).checked_sub(1);
            let object = object.and_then(|object| self.plan.objects.infos().get(object as usize));
            let object = object.map_or_else(String::new, |info| format!(" ({:?})", info.name));
            return Err(Stop::Failed(format!(
                "task {index} ({}): {}{object}: {error}{help}",
                self.plan.spec_name(spec),
                STAGES.get(stage as usize).copied().unwrap_or("unknown step")
            )));
        }
        Ok(())
    }

    /// What to do about a command that the user of the tasks may not execute.
    fn help_for(&self, stage: u32, error: &io::Error) -> String {
        let (Some((uid, _)), io::ErrorKind::PermissionDenied) = (self.plan.user, error.kind())
        else {
            return String::new();
        };
        if stage != player::STAGE_EXECUTING {
            return String::new();
        }
        format!(
            ". Tasks do not run as root but as user {uid}, who must be able to execute the file \
             and to enter each directory above it: chmod it, or copy it to a place such as \
             /usr/local/bin"
        )
    }

    /// Leaves nothing behind: no process, no group, no file.
    fn clean_up(&mut self) {
        self.clear_stage();
        kill_descendants(&mut self.leftover);
        self.memory.header().nr_leftover.store(self.leftover.len() as u32, Ordering::Relaxed);
        let usage = sys::usage_of_children();
        let used_us = usage.user_us + usage.system_us;
        self.memory.header().descendants_cpu_us.store(used_us, Ordering::Relaxed);
        self.plan.groups.remove();
        self.plan.tunables.restore();
        if let Some(dir) = self.plan.dir.take() {
            // A directory that cannot be removed stays until the system's own cleaning.
            let _ = fs::remove_dir_all(dir);
        }
    }
}

/// The task whose exit the launcher waits for: the first one that has not exited, or one that never
/// does, since each exit that wakes the launcher takes a CPU of the run.
#[derive(Default)]
struct Awaited {
    index: u32,
    /// A task that ends only if it fails, as long as it lives.
    endless: Option<u32>,
    /// Negative: none so far.
    pidfd: i32,
    /// Whether `pidfd` is open.
    is_open: bool,
    /// Whether it records when the awaited task exits: for commands, which do not report it.
    notes_exits: bool,
    /// Process that was last awaited; 0: none.
    last: u32,
}

impl Awaited {
    /// The process that exited last; 0: the run ended before that, or none was awaited.
    fn last_that_exited(&self) -> u32 {
        if self.is_open { 0 } else { self.last }
    }

    /// Skips all tasks that have exited. Returns true if none is left.
    fn advance(&mut self, memory: &RunMemory) -> bool {
        if let Some(endless) = self.endless {
            let pid = memory.slot(endless).pid.load(Ordering::Acquire);
            if matches!(sys::wait_peek(Some(pid), false), Ok(None)) {
                self.open(pid);
                return false;
            }
            self.endless = None;
            self.close();
        }
        while self.index < memory.nr_slots() {
            let slot = memory.slot(self.index);
            let pid = slot.pid.load(Ordering::Acquire);
            let has_exited = match pid {
                0 => !parent_lives(memory, slot),
                _ => !matches!(sys::wait_peek(Some(pid), false), Ok(None)),
            };
            if !has_exited {
                self.open(pid);
                return false;
            }
            if self.is_open && self.notes_exits {
                slot.ended_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
            }
            self.close();
            self.index += 1;
        }
        self.close();
        true
    }

    fn open(&mut self, pid: u32) {
        if !self.is_open {
            self.pidfd = if pid == 0 { -1 } else { sys::pidfd_open(pid).unwrap_or(-1) };
            self.is_open = self.pidfd >= 0;
            self.last = pid;
        }
    }

    fn close(&mut self) {
        if self.is_open {
            sys::close(self.pidfd);
        }
        self.is_open = false;
        self.pidfd = -1;
    }
}

/// Whether the task that was about to fork into `slot` still lives, so that it may do so.
fn parent_lives(memory: &RunMemory, slot: &Slot) -> bool {
    let parent = slot.parent.load(Ordering::Relaxed);
    if parent == u32::MAX || parent >= memory.nr_slots() {
        return false;
    }
    let pid = memory.slot(parent).pid.load(Ordering::Acquire);
    matches!(sys::wait_peek(Some(pid), false), Ok(None))
}

/// Waits for `pid`, reads its counters while it is a zombie, and reaps it.
fn count_and_reap(slot: &Slot, pid: u32) {
    if !matches!(sys::wait_peek(Some(pid), true), Ok(Some(_))) {
        return;
    }
    if let Ok(stat) = procfs::schedstat(pid) {
        slot.last.run_ns.store(stat.run_ns, Ordering::Relaxed);
        slot.last.run_delay_ns.store(stat.run_delay_ns, Ordering::Relaxed);
        slot.last.nr_slices.store(stat.nr_slices, Ordering::Relaxed);
    }
    if let Ok((status, usage)) = sys::reap(pid) {
        slot.status.store(status, Ordering::Relaxed);
        slot.last.user_us.store(usage.user_us, Ordering::Relaxed);
        slot.last.system_us.store(usage.system_us, Ordering::Relaxed);
        slot.last.nr_voluntary.store(usage.nr_voluntary, Ordering::Relaxed);
        slot.last.nr_involuntary.store(usage.nr_involuntary, Ordering::Relaxed);
        slot.is_reaped.store(1, Ordering::Release);
    }
}

/// Kills and reaps all descendants of the caller, orphans included. Adds those that still lived to
/// `killed`.
fn kill_descendants(killed: &mut BTreeSet<u32>) {
    loop {
        for pid in procfs::descendants(sys::getpid()) {
            if !procfs::has_ended(pid) && killed.insert(pid) {
                sys::kill_now(pid as i32);
            }
        }
        // Wait for one, then take all that have ended.
        let mut ended = sys::wait_peek(None, true);
        if !matches!(ended, Ok(Some(_))) {
            // No child is left.
            return;
        }
        while let Ok(Some(pid)) = ended {
            let _ = sys::reap(pid);
            ended = sys::wait_peek(None, false);
        }
    }
}

/// Redirects standard input from /dev/null, and the output as requested.
fn redirect(output: Output) -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into_raw_fd();
    sys::redirect(null, 0)?;
    let to = match output {
        Output::Inherit => None,
        Output::Null => Some(null),
        Output::File(fd) => Some(fd),
    };
    if let Some(fd) = to {
        sys::redirect(fd, 1)?;
        sys::redirect(fd, 2)?;
    }
    sys::close_others(&[]);
    Ok(())
}
