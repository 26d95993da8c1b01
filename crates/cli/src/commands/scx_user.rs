// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sim --scx-user`: the user program of a scheduler runs next to the simulation and goes on
//! deciding.

use super::scx_setup::types;
use crate::args::MachineArgs;
use crate::complete;
use crate::error::{CliError, CliResult};
use crate::schedulers::is_source;
use clap_complete::ArgValueCompleter;
use schedlab_model::Nanos;
use std::ffi::OsString;
use std::sync::Arc;

/// The user program of a simulated .bpf.c.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ScxUserArgs {
    /// Run the user program of a .bpf.c in simulated time, such as './scx_userland -b 4'
    ///
    /// The program runs unchanged and sees the modelled machine. In the simulation it is a task,
    /// which the scheduler schedules. Takes the place of a setup.
    #[arg(long = "scx-user", hide_short_help = true, value_name = "COMMAND")]
    pub command: Option<String>,
    /// CPU time that the user program takes for each step [default: 20us]
    ///
    /// A step lasts until the program waits or calls sched_yield.
    #[arg(long = "scx-user-cost", hide_short_help = true, value_name = "TIME",
          requires = "command", value_parser = crate::input::duration)]
    pub cost: Option<Nanos>,
    /// Kernel that the user program sees [default: 6.18 if stored, this one, or 6.18 fetched]
    #[arg(long = "scx-user-kernel", hide_short_help = true, value_name = "KERNEL",
          requires = "command", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
}

/// CPU time of a step without `--scx-user-cost` (ns).
const COST_NS: Nanos = 20_000;
/// How long a program may take to its attach, on this machine (s).
const LIMIT_S: u64 = 60;

/// A user program to run next to a simulation.
#[derive(Clone, Debug)]
pub struct UserSpec {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Type information of the kernel that it sees, and the kernel's release.
    pub types: Arc<[u8]>,
    /// See `types`.
    pub kernel: String,
    /// CPU time of a step (ns).
    pub step_ns: Nanos,
    /// Limit of the time until the attach (s).
    pub limit_s: u64,
}

impl ScxUserArgs {
    /// Threads to simulate on. Runs with a user program are one at a time unless the user chooses:
    /// an arena is at one address, which one run can have.
    pub fn threads(&self, machine: &MachineArgs) -> usize {
        match self.command {
            Some(_) if machine.threads.is_none() => 1,
            _ => super::sim::threads(machine),
        }
    }

    /// The program for runs of `schedulers`; `None`: none is given.
    pub fn spec(&self, schedulers: &[String]) -> CliResult<Option<UserSpec>> {
        let Some(text) = &self.command else { return Ok(None) };
        let refuse = |what: &str, help: &str| {
            Err(CliError::usage_help(format!("--scx-user {text:?}: {what}"), help))
        };
        if !matches!(schedulers, [one] if is_source(one)) {
            return refuse(
                "a user program belongs to one .bpf.c",
                "give one --scheduler, the source of the BPF half",
            );
        }
        let words = crate::input::words(text)
            .map_err(|why| CliError::usage(format!("--scx-user {text:?}: {why}")))?;
        if words.is_empty() {
            return refuse("there is no program", "give its path and its arguments");
        }
        let (types, kernel) = types(self.kernel.as_deref())?;
        Ok(Some(UserSpec {
            command: words.into_iter().map(OsString::from).collect(),
            types: types.into(),
            kernel,
            step_ns: self.cost.unwrap_or(COST_NS),
            limit_s: LIMIT_S,
        }))
    }
}
