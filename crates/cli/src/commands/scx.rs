// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab scx`: tools for schedulers of sched_ext.

use super::scx_setup::{self, SetupArgs};
use super::scx_verify::{self, VerifyArgs};
use crate::error::CliResult;
use crate::output::Out;
use clap::{Args, Subcommand};

/// Examples of `schedlab scx`.
pub const EXAMPLES: &str = "Examples:
  schedlab scx verify ./my_sched.bpf.c
  schedlab scx verify wrr ./my_sched.bpf.o --kernel 6.18,7.0,7.2
  schedlab scx verify ./my_sched.bpf.c --json | jq '.[].programs[] | {program, nr_insns}'
  schedlab scx setup --machine laptop --output x.setup.toml -- ./scx_x --slice-us 5000";

/// Arguments of `scx`.
#[derive(Debug, Args)]
pub struct ScxToolArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ScxCommand,
}

/// The subcommands of `scx`.
#[derive(Debug, Subcommand)]
pub enum ScxCommand {
    /// Ask the verifiers of real kernels whether they accept a scheduler
    #[command(after_long_help = scx_verify::EXAMPLES)]
    Verify(VerifyArgs),
    /// Record what a scheduler's user program sets up, as a setup for the simulator
    #[command(after_long_help = scx_setup::EXAMPLES)]
    Setup(SetupArgs),
}

/// Runs the command.
pub fn scx(args: &ScxToolArgs, out: &mut Out) -> CliResult<()> {
    match &args.command {
        ScxCommand::Verify(args) => scx_verify::verify(args, out),
        ScxCommand::Setup(args) => scx_setup::setup(args, out),
    }
}
