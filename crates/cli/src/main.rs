// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `schedlab` program: command line, terminal, exit codes. Only this crate connects the other
//! crates, which do the work.

mod args;
mod commands;
mod complete;
mod config;
mod error;
mod input;
mod machine;
mod output;
mod schedulers;
mod setups;
mod table;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Answers a shell's request for completions and exits.
    CompleteEnv::with_factory(args::Cli::command).complete();
    let argv = match config::with_defaults(&args::Cli::command(), std::env::args_os().collect()) {
        Ok(argv) => argv,
        Err(error) => return error.report(),
    };
    let cli = match args::Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(error) => return error::usage(&error),
    };
    let mut out = output::Out::stdout();
    let result = commands::run(&cli, &mut out).and_then(|()| out.finish());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
