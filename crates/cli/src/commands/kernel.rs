// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab kernel`: manages the kernels that guests boot.

use super::vm;
use crate::error::CliResult;
use crate::output::Out;
use crate::table;
use clap::{Args, Subcommand};
use schedlab_run::LaneError;
use schedlab_vm::kernel::{Kernel, Store, series};
use schedlab_vm::{Cache, VmError};
use serde::Serialize;

/// Arguments of `kernel`.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// The subcommands of `kernel`.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Fetch kernels from Debian's archive, or copy image files into the store
    Get {
        /// Series, such as 6.18, or image files (vmlinuz, vmlinux)
        #[arg(required = true, value_name = "SERIES|PATH")]
        kernels: Vec<String>,
        /// Fetch even if a kernel of the series is stored
        #[arg(long)]
        again: bool,
    },
    /// List stored kernels and those that can be fetched
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove kernels from the store
    Remove {
        /// Series or releases
        #[arg(required = true, value_name = "SERIES|RELEASE")]
        kernels: Vec<String>,
    },
}

/// Runs the command.
pub fn kernel(args: &KernelArgs, out: &mut Out) -> CliResult<()> {
    let store = Store::new(Cache::of_user().map_err(LaneError::from)?);
    match &args.command {
        KernelCommand::Get { kernels, again } => get(&store, kernels, *again, out),
        KernelCommand::List { json } => list(&store, *json, out),
        KernelCommand::Remove { kernels } => remove(&store, kernels, out),
    }
}

fn get(store: &Store, names: &[String], again: bool, out: &mut Out) -> CliResult<()> {
    let say = vm::say();
    for name in names {
        let is_series = series::find(name).is_ok();
        let found = match again && is_series {
            true => store.get(name, &*say),
            false => store.resolve(name, &*say),
        };
        let kernel = found.map_err(LaneError::from)?;
        out.line(describe(&kernel))?;
        if let (Some(note), true) = (&kernel.note, kernel.series != *name) {
            out.line(format!("    booted as it is: {note}"))?;
        }
    }
    Ok(())
}

/// Describes a kernel on one line.
fn describe(kernel: &Kernel) -> String {
    let from = kernel.package.as_deref().unwrap_or("a file");
    format!(
        "{}: {}, {}, sched_ext {}, from {from}",
        kernel.series,
        kernel.release,
        kernel.fair_class(),
        kernel.ext.name(),
    )
}

/// What `list --json` prints.
#[derive(Serialize)]
struct Listed {
    kernels: Vec<Kernel>,
    series: Vec<ListedSeries>,
}

/// A series that can be fetched.
#[derive(Serialize)]
struct ListedSeries {
    name: String,
    suite: &'static str,
    pinned: Option<&'static str>,
    about: &'static str,
}

fn list(store: &Store, json: bool, out: &mut Out) -> CliResult<()> {
    let kernels = store.list().map_err(LaneError::from)?;
    if json {
        let of = |series: series::Series| ListedSeries {
            name: series.name(),
            suite: series.image.suite,
            pinned: series.image.pin.map(|pin| pin.version),
            about: series.image.about,
        };
        return out.json(&Listed { kernels, series: series::all().map(of).collect() });
    }
    let mut rows = table::table(&["series", "release", "class", "sched_ext", "from"]);
    for kernel in &kernels {
        rows.add_row([
            kernel.series.as_str(),
            &kernel.release,
            kernel.fair_class(),
            kernel.ext.name(),
            kernel.package.as_deref().unwrap_or("a file"),
        ]);
    }
    for series in series::all() {
        let name = series.name();
        if kernels.iter().all(|kernel| kernel.series != name || kernel.package.is_none()) {
            let get = format!("schedlab kernel get {name}");
            rows.add_row([&name, "-", series.image.about, "", &get]);
        }
    }
    out.line(table::render(&rows))
}

fn remove(store: &Store, names: &[String], out: &mut Out) -> CliResult<()> {
    let kernels = store.list().map_err(LaneError::from)?;
    for name in names {
        let fits = |kernel: &&Kernel| kernel.series == *name || kernel.release == *name;
        let found: Vec<&Kernel> = kernels.iter().filter(fits).collect();
        if found.is_empty() {
            let there: Vec<&str> = kernels.iter().map(|kernel| kernel.release.as_str()).collect();
            let text = format!("no kernel {name:?} is there; there are: {}", there.join(", "));
            return Err(LaneError::from(VmError::Input(text)).into());
        }
        for kernel in found {
            store.remove(kernel).map_err(LaneError::from)?;
            out.line(format!("removed {}", kernel.release))?;
        }
    }
    Ok(())
}
