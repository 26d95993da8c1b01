// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab scx setup`: records what a scheduler's user program sets up on a modelled machine.

use super::scx_verify::KERNEL_DEFAULT;
use super::vm;
use crate::complete;
use crate::error::{CliError, CliResult, Exit};
use crate::machine;
use crate::output::{Out, say};
use clap::Args;
use clap_complete::ArgValueCompleter;
use schedlab_model::Nanos;
use schedlab_run::file::write_whole;
use schedlab_run::{LaneError, MachineSpec};
use schedlab_scx_record::{RecordError, Recording, Request, has_sched_ext, record};
use schedlab_vm::Cache;
use schedlab_vm::kernel::Store;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The running kernel's type information.
const RUNNING_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The running kernel's release.
const RUNNING_RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Examples of `schedlab scx setup`.
pub const EXAMPLES: &str = "Examples:
  schedlab scx setup --machine laptop --output laptop.toml -- ./scx_bpfland --slice-us 5000
  schedlab sim hogs --machine laptop --scheduler ./main.bpf.c --scx-setup laptop.toml

The program runs on this machine, sees the CPUs of the modelled one, and loads no scheduler: it is
ended once it has attached its scheduler. It takes neither root nor a kernel with sched_ext.
docs/reference/sched-ext-setup.md describes the file.";

/// Arguments of `scx setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Modelled machine that the program sees: a preset, host, or a file
    #[arg(long, value_name = "MACHINE", add = ArgValueCompleter::new(complete::machines))]
    pub machine: Option<String>,
    /// CPUs, such as 4 or 0-3 [default: all CPUs of --machine, or 1]
    #[arg(long, value_name = "N|LIST", value_parser = crate::input::model_cpus)]
    pub cpus: Option<u32>,
    /// Kernel that the program sees [default: 6.18 if stored, this one, or 6.18 fetched]
    ///
    /// A series (`schedlab kernel list`) or an image file.
    #[arg(long, value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// File for the setup [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Limit on the time until the program attaches its scheduler
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "1min",
          value_parser = crate::input::duration)]
    pub limit: Nanos,
    /// Program that loads the scheduler and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Runs the command.
pub fn setup(args: &SetupArgs, out: &mut Out) -> CliResult<()> {
    let spec = match &args.machine {
        Some(name) => machine::spec(name)?,
        None => MachineSpec::flat(args.cpus.unwrap_or(1)),
    };
    let nr_cpus = args.cpus.unwrap_or(spec.machine.nr_cpus());
    let model = spec.first_cpus(nr_cpus).map_err(CliError::usage)?;
    let (types, kernel) = types(args.kernel.as_deref())?;
    let request = Request {
        command: &args.command,
        topology: &model.topology,
        caches: &model.caches,
        types: &types,
        kernel: &kernel,
        limit: Duration::from_nanos(args.limit),
    };
    let Recording { text, notes } = record(&request).map_err(failure)?;
    for note in notes {
        say(format!("warning: not recorded: {note}"));
    }
    match &args.output {
        Some(path) => {
            write_whole(path, text.as_bytes())?;
            let machine = args.machine.as_deref().unwrap_or("equal CPUs");
            say(format!("{}: {nr_cpus} CPUs of {machine}, kernel {kernel}", path.display()));
        }
        None => out.line(text.trim_end())?,
    }
    Ok(())
}

fn failure(error: RecordError) -> CliError {
    let exit = match error {
        RecordError::Input(_) => Exit::Usage,
        RecordError::Unavailable(_) => Exit::Unavailable,
        RecordError::Program(_) => Exit::Check,
    };
    CliError::new(exit, error.to_string(), "")
}

/// Type information of the kernel that the program sees, and the kernel's release.
pub(super) fn types(named: Option<&str>) -> CliResult<(Vec<u8>, String)> {
    let store = Store::new(Cache::of_user().map_err(LaneError::from)?);
    let is_stored = store.of_series(KERNEL_DEFAULT).map_err(LaneError::from)?.is_some();
    if named.is_none()
        && !is_stored
        && let Ok(types) = std::fs::read(RUNNING_TYPES)
        && has_sched_ext(&types)
    {
        let release = std::fs::read_to_string(RUNNING_RELEASE).unwrap_or_default();
        return Ok((types, release.trim().to_owned()));
    }
    let kernel = store.resolve(named.unwrap_or(KERNEL_DEFAULT), &vm::say());
    let kernel = kernel.map_err(LaneError::from)?;
    kernel.check_ext().map_err(LaneError::from)?;
    let types = store.types(&kernel).map_err(LaneError::from)?;
    Ok((types, kernel.release))
}
