// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subcommands, one file each.

mod analyse;
mod analysis;
mod attach;
mod bench;
mod bisect;
mod calibrate;
mod check;
mod compare;
mod compare_command;
mod copies;
mod coverage;
mod diff;
mod doctor;
mod exercise;
mod explain;
mod export;
mod grade;
mod inspect;
mod kernel;
mod list;
mod load;
mod machines;
mod man;
mod progress;
mod qemu;
mod report;
mod reproduce;
mod results;
mod run;
mod run_bar;
mod schema;
mod scx;
mod scx_setup;
mod scx_user;
mod scx_verify;
mod sim;
mod sweep;
mod trace_file;
mod trace_input;
mod validate;
mod vm;
mod vm_golden;
mod watch;

pub use analysis::AnalysisArgs;
pub use attach::AttachArgs;
pub use bisect::{BisectArgs, EXAMPLES as EXAMPLES_BISECT};
pub use check::{CheckArgs, EXAMPLES as EXAMPLES_CHECK};
pub use diff::{DiffArgs, EXAMPLES as EXAMPLES_DIFF};
pub use exercise::{EXAMPLES as EXAMPLES_EXERCISE, ExerciseArgs};
pub use export::format_parser;
pub use grade::{EXAMPLES as EXAMPLES_GRADE, GradeArgs};
pub use inspect::InspectArgs;
pub use kernel::KernelArgs;
pub use load::LoadArgs;
pub use qemu::{EXAMPLES as EXAMPLES_QEMU, QemuArgs};
pub use schema::SchemaKind;
pub use scx::{EXAMPLES as EXAMPLES_SCX, ScxToolArgs};
pub use scx_user::{ScxUserArgs, UserSpec};
pub use trace_file::help_of_trace;
pub use validate::{EXAMPLES as EXAMPLES_VALIDATE, ValidateArgs};
pub use vm::VmArgs;

use crate::args::{Cli, Command, CompletionArgs};
use crate::error::CliResult;
use crate::output::Out;
use clap_complete::env::Shells;
use std::io::Write;

/// Runs the subcommand.
pub fn run(cli: &Cli, out: &mut Out) -> CliResult<()> {
    match &cli.command {
        Command::List(args) => list::list(args, out),
        Command::Sim(args) => sim::sim(args, out),
        Command::Explain(args) => explain::explain(args, out),
        Command::Exercise(args) => exercise::exercise(args, out),
        Command::Grade(args) => grade::grade(args, out),
        Command::Check(args) => check::check(args, out),
        Command::Diff(args) => diff::diff(args, out),
        Command::Bisect(args) => bisect::bisect(args, out),
        Command::Run(args) => run::run(args, out),
        Command::Vm(args) => vm::vm(args, out),
        Command::Kernel(args) => kernel::kernel(args, out),
        Command::Qemu(args) => qemu::qemu(args, out),
        Command::Compare(args) => compare::compare(args, out),
        Command::Report(args) => report::report(args),
        Command::Analyse(args) => analyse::analyse(args, out),
        Command::Export(args) => export::export(args, out),
        Command::Calibrate(args) => calibrate::calibrate(args, out),
        Command::Bench(args) => bench::bench(args, out),
        Command::Load(args) => load::load(args, out),
        Command::Scx(args) => scx::scx(args, out),
        Command::Attach(args) => attach::attach(args, out),
        Command::Doctor(args) => doctor::doctor(args, out),
        Command::Reproduce(args) => reproduce::reproduce(args, out),
        Command::Validate(args) => validate::validate(args, out),
        Command::Schema(args) => schema::print(args, out),
        Command::Completion(args) => completion(args, out),
        Command::Man(args) => man::write(args),
    }
}

/// Prints the shell script that asks this program for completions.
fn completion(args: &CompletionArgs, out: &mut Out) -> CliResult<()> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string()).expect("clap completes for every shell");
    shell.write_registration("COMPLETE", "schedlab", "schedlab", "schedlab", &mut script)?;
    Ok(out.write_all(&script)?)
}
