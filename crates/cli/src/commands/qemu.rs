// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab qemu`: builds the QEMU in which several CPUs of a guest run at the same counted time.

use super::vm;
use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::table;
use clap::{Args, Subcommand};
use schedlab_run::LaneError;
use schedlab_vm::Cache;
use schedlab_vm::qemu::build::{self, Build, Recipe};
use std::io::{IsTerminal, Write};

/// Examples in the long help.
pub const EXAMPLES: &str = "Examples:
  schedlab qemu build
  schedlab qemu build --yes --jobs 2
  schedlab qemu list
  schedlab qemu remove

`schedlab vm --cpus N` uses the build for guests with a counted clock. The source comes from
Debian's archive and is checked against its signatures. Nothing outside of $SCHEDLAB_CACHE
[default: ~/.cache/schedlab] changes, and root is not needed.";

/// Arguments of `qemu`.
#[derive(Debug, Args)]
pub struct QemuArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: QemuCommand,
}

/// The subcommands of `qemu`.
#[derive(Debug, Subcommand)]
pub enum QemuCommand {
    /// Build QEMU from Debian's source with schedlab's patch
    Build {
        /// Do not ask before downloading and compiling
        #[arg(long, short)]
        yes: bool,
        /// Build even if it is built
        #[arg(long)]
        again: bool,
        /// Compilers at a time [default: all CPUs]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
        jobs: Option<u16>,
    },
    /// List what is built
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove what is built
    Remove {
        /// Remove only the builds of other versions of schedlab
        #[arg(long)]
        old: bool,
    },
}

/// Runs the command.
pub fn qemu(args: &QemuArgs, out: &mut Out) -> CliResult<()> {
    let cache = Cache::of_user().map_err(LaneError::from)?;
    match &args.command {
        QemuCommand::Build { yes, again, jobs } => make(&cache, *yes, *again, *jobs, out),
        QemuCommand::List { json } => list(&cache, *json, out),
        QemuCommand::Remove { old } => remove(&cache, *old, out),
    }
}

fn make(cache: &Cache, yes: bool, again: bool, jobs: Option<u16>, out: &mut Out) -> CliResult<()> {
    if let (Some(found), false) = (build::find(cache), again) {
        return out.line(format!("{} is built already (--again builds it again)", found.version));
    }
    // First: nobody is asked about a build that cannot begin.
    let missing = Recipe::missing();
    if !missing.0.is_empty() {
        return Err(LaneError::Unavailable(missing.to_string()).into());
    }
    if !yes {
        confirm(cache)?;
    }
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let say = vm::say();
    let build = build::build(cache, jobs.map_or(all, usize::from), &*say);
    let build = build.map_err(LaneError::from)?;
    out.line(format!("{}: {}", build.version, build.program(cache).display()))
}

/// Asks the user on the terminal.
fn confirm(cache: &Cache) -> CliResult<()> {
    let plan = format!(
        "This downloads QEMU's source from Debian's archive (45 MB), and compiles it for some five \
         minutes of CPU time in {} (500 MB meanwhile, 11 MB afterwards).",
        cache.root().display()
    );
    if !std::io::stdin().is_terminal() {
        return Err(CliError::usage_help(plan, "give --yes to build without a question"));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{plan}\nBuild it? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::usage("nothing was built: the answer was not yes")),
    }
}

fn list(cache: &Cache, json: bool, out: &mut Out) -> CliResult<()> {
    let builds = build::list(cache);
    if json {
        return out.json(&builds);
    }
    let mut rows = table::table(&["build", "version", "source", "used"]);
    for build in &builds {
        let used = if build.is_current { "yes" } else { "no: of another version of schedlab" };
        rows.add_row([
            &build.recipe[..build.recipe.len().min(12)],
            &build.version,
            &build.source,
            used,
        ]);
    }
    if builds.iter().all(|build| !build.is_current) {
        rows.add_row(["-", "not built", "", "schedlab qemu build"]);
    }
    out.line(table::render(&rows))
}

fn remove(cache: &Cache, old: bool, out: &mut Out) -> CliResult<()> {
    let builds = build::list(cache);
    let wanted: Vec<&Build> = builds.iter().filter(|build| !(old && build.is_current)).collect();
    if wanted.is_empty() {
        return out.line("nothing to remove");
    }
    for build in wanted {
        build.remove(cache).map_err(LaneError::from)?;
        out.line(format!("removed {}", build.version))?;
    }
    Ok(())
}
