// SPDX-License-Identifier: MIT OR Apache-2.0
//! The launcher's work around a third-party program: its private directory, the commands before it,
//! those that run next to it, and ending all of them.
//!
//! Every command runs as the unprivileged user of the run, cannot gain rights, and is killed when
//! the launcher ends. A command that still runs is asked to end (SIGTERM) and killed after
//! [`STOP_NS`]. All descendants of these commands are killed together with the run's.

use super::{Launcher, Stop, failed, redirect};
use crate::attr;
use crate::memory::run_state;
use crate::plan::Output;
use crate::player;
use crate::program::{ProgramPlan, StepPlan};
use crate::sys;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::sync::atomic::Ordering;

/// How long a command may take to end by itself (ns).
const STOP_NS: u64 = 5_000_000_000;
/// Time between two checks of a command (ns).
const LOOK_NS: u64 = 5_000_000;

/// A command that keeps running.
#[derive(Clone, Debug)]
pub(super) struct Staying {
    pid: u32,
    name: String,
    is_killed: bool,
    /// Offset of its output in the log.
    log_from: u64,
}

/// The state of a command.
enum Fate {
    Lives,
    /// Ended, with this exit code; or the negative number of the signal.
    Ended(i32),
}

impl Launcher<'_> {
    /// Creates the directory and runs the commands before the program, if there is one.
    pub(super) fn set_stage(&mut self) -> Result<(), Stop> {
        let Some(program) = self.plan.program.take() else { return Ok(()) };
        let result = self.build_stage(&program);
        self.plan.program = Some(program);
        result?;
        self.memory.header().state.store(run_state::PREPARED, Ordering::Release);
        // The recorder follows processes that are forked from now on.
        self.wait_for_caller()
    }

    fn build_stage(&mut self, program: &ProgramPlan) -> Result<(), Stop> {
        self.make_dirs(program)?;
        let deadline = sys::monotonic_ns().saturating_add(program.setup_limit_ns);
        for step in &program.setup {
            for _ in 0..step.count {
                let log_from = program.log.len();
                let pid = self.begin(program, step)?;
                let (name, is_killed) = (step.name.clone(), step.is_killed);
                let one = Staying { pid, name, is_killed, log_from };
                if step.stays {
                    self.staying.push(one.clone());
                    self.wait_until_ready(program, step, &one, deadline)?;
                } else {
                    self.wait_for_end(program, &one, deadline)?;
                }
            }
        }
        Ok(())
    }

    fn make_dirs(&mut self, program: &ProgramPlan) -> Result<(), Stop> {
        let make = |dir: &std::path::Path| {
            DirBuilder::new().mode(0o700).create(dir)?;
            match self.plan.user {
                Some((uid, gid)) => chown(dir, Some(uid), Some(gid)),
                None => Ok(()),
            }
        };
        make(&program.dir).map_err(failed("making the private directory"))?;
        self.plan.dir = Some(program.dir.clone());
        for dir in &program.directories {
            make(dir).map_err(failed("making a directory in the private one"))?;
        }
        Ok(())
    }

    /// Starts a command; returns its pid.
    fn begin(&self, program: &ProgramPlan, step: &StepPlan) -> Result<u32, Stop> {
        let launcher_pid = sys::getpid();
        if let Some(pid) = sys::fork().map_err(failed("making a process"))? {
            return Ok(pid);
        }
        sys::default_signals();
        sys::close(self.control);
        sys::close(self.signals);
        let _ = sys::sched_setaffinity(0, &self.plan.cpus);
        let set = attr::apply(0, &step.attr).map_err(|error| attr::explain(&step.attr, &error));
        let log = Output::File(program.log.fd());
        let ready = set.and_then(|()| {
            player::restrict(self.plan, launcher_pid, false)
                .map_err(|_| "dropping privileges".to_string())?;
            sys::confine(&program.dir).map_err(|error| error.to_string())?;
            redirect(log).map_err(|error| error.to_string())
        });
        let why = match ready {
            Ok(()) => step.image.exec().to_string(),
            Err(why) => why,
        };
        program.log.note(&format!("{}: {why}", step.name));
        sys::exit_now(127)
    }

    fn wait_until_ready(
        &self,
        program: &ProgramPlan,
        step: &StepPlan,
        one: &Staying,
        deadline: u64,
    ) -> Result<(), Stop> {
        loop {
            let has_said = step
                .ready_output
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(&program.log.text(one.log_from)));
            if has_said && step.ready_path.as_ref().is_none_or(|path| path.exists()) {
                return Ok(());
            }
            if let Fate::Ended(code) = fate(one.pid) {
                return Err(unhappy(program, one, &format!("ended ({})", exit(code))));
            }
            self.pause_until(program, one, deadline, "was not ready")?;
        }
    }

    fn wait_for_end(
        &self,
        program: &ProgramPlan,
        one: &Staying,
        deadline: u64,
    ) -> Result<(), Stop> {
        loop {
            match fate(one.pid) {
                Fate::Ended(0) => {
                    let _ = sys::reap(one.pid);
                    return Ok(());
                }
                Fate::Ended(code) => {
                    return Err(unhappy(program, one, &format!("failed ({})", exit(code))));
                }
                Fate::Lives => self.pause_until(program, one, deadline, "had not ended")?,
            }
        }
    }

    fn pause_until(
        &self,
        program: &ProgramPlan,
        one: &Staying,
        deadline: u64,
        what: &str,
    ) -> Result<(), Stop> {
        if sys::monotonic_ns() >= deadline {
            let seconds = program.setup_limit_ns / 1_000_000_000;
            let what = format!("{what} within the {seconds} s of `setup_limit`");
            return Err(unhappy(program, one, &what));
        }
        self.pause(LOOK_NS)
    }

    /// Checks that the commands next to the program still run.
    pub(super) fn check_staying(&self) -> Result<(), Stop> {
        let Some(program) = &self.plan.program else { return Ok(()) };
        for one in &self.staying {
            if let Fate::Ended(code) = fate(one.pid) {
                let what = format!("ended before the program did ({})", exit(code));
                return Err(unhappy(program, one, &what));
            }
        }
        Ok(())
    }

    /// Runs the commands after the program.
    pub(super) fn tear_down(&self) -> Result<(), Stop> {
        let Some(program) = &self.plan.program else { return Ok(()) };
        let deadline = sys::monotonic_ns().saturating_add(program.setup_limit_ns);
        for step in &program.teardown {
            let log_from = program.log.len();
            let (name, pid) = (step.name.clone(), self.begin(program, step)?);
            let one = Staying { pid, name, is_killed: false, log_from };
            self.wait_for_end(program, &one, deadline)?;
        }
        Ok(())
    }

    /// Ends the commands next to the program: asks them first, then kills them.
    pub(super) fn clear_stage(&mut self) {
        for one in self.staying.iter().rev() {
            let signal = if one.is_killed { libc::SIGKILL } else { libc::SIGTERM };
            sys::kill(one.pid as i32, signal);
        }
        let deadline = sys::monotonic_ns() + STOP_NS;
        for one in self.staying.drain(..).rev() {
            while matches!(fate(one.pid), Fate::Lives) {
                if sys::monotonic_ns() >= deadline {
                    sys::kill_now(one.pid as i32);
                    let _ = sys::wait_peek(Some(one.pid), true);
                    break;
                }
                sys::sleep_until_ns(sys::monotonic_ns() + LOOK_NS / 5);
            }
        }
    }
}

/// Whether a child has ended. Does not reap it.
fn fate(pid: u32) -> Fate {
    match sys::wait_code(pid) {
        Some(code) => Fate::Ended(code),
        None => Fate::Lives,
    }
}

fn exit(code: i32) -> String {
    if code < 0 { format!("signal {}", -code) } else { format!("exit code {code}") }
}

fn unhappy(program: &ProgramPlan, one: &Staying, what: &str) -> Stop {
    let lines = program.log.last_lines(one.log_from);
    Stop::Failed(format!("{} {what}: {lines}", one.name))
}
