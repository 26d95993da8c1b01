// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that are files: `--scheduler ./my_sched.bpf.c` compiles one for this machine.
//!
//! Each is compiled once for a command, when its name is first looked up, and is known by the name
//! under which it was given from then on.

use crate::args::ScxArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use schedlab_sched::registry::MadeScheduler;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How files are compiled: options of the command.
#[derive(Debug, Default)]
struct How {
    scx: ScxArgs,
    tunables: Vec<String>,
}

static HOW: OnceLock<How> = OnceLock::new();

/// A compiled scheduler, and which of its options take several values.
#[derive(Clone, Debug)]
struct Made {
    scheduler: Arc<MadeScheduler>,
    arrays: Vec<String>,
}

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Made>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the command says about compiling, before the first scheduler is looked up.
pub fn configure(scx: &ScxArgs, tunables: &[String]) {
    let _ = HOW.set(How { scx: scx.clone(), tunables: tunables.to_vec() });
}

/// Whether a scheduler's name is that of a file.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".c")
}

/// All that were compiled so far.
pub fn all() -> Vec<Arc<MadeScheduler>> {
    list().iter().map(|made| Arc::clone(&made.scheduler)).collect()
}

/// The scheduler of a file, compiled if it is not yet.
pub fn find(name: &str) -> CliResult<Arc<MadeScheduler>> {
    find_at(name, name.as_ref())
}

/// The same of a file that lies elsewhere than its name says: beside an experiment file.
pub fn find_at(name: &str, path: &Path) -> CliResult<Arc<MadeScheduler>> {
    let known = list().iter().find(|made| made.scheduler.name == name).cloned();
    if let Some(made) = known {
        return Ok(made.scheduler);
    }
    let made = compile(name, path, HOW.get_or_init(How::default))?;
    let scheduler = Arc::clone(&made.scheduler);
    list().push(made);
    Ok(scheduler)
}

/// Whether option `name` of a scheduler takes several values: it is given when the scheduler is
/// compiled, not with a run.
pub fn is_array(scheduler: &str, name: &str) -> bool {
    let made = list();
    let of = made.iter().find(|made| made.scheduler.name == scheduler);
    of.is_some_and(|made| made.arrays.iter().any(|array| array == name))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn compile(name: &str, path: &Path, how: &How) -> CliResult<Made> {
    use schedlab_scx_native::{CompileOptions, NativeError, NativeScheduler};
    let told = |error: NativeError| {
        let exit = match error {
            NativeError::Compile(_) | NativeError::Refused(_) | NativeError::Option(_) => {
                Exit::Usage
            }
            NativeError::NoCompiler(_) | NativeError::Internal(_) => Exit::Unavailable,
        };
        CliError::new(exit, error.to_string(), "")
    };
    let mut kernel = 618;
    let mut pairs = Vec::new();
    for text in &how.tunables {
        let (key, value) = input::pair("--set", text)?;
        let (only, key) = key.split_once(':').map_or((None, key), |(only, key)| (Some(only), key));
        if only.is_some_and(|only| only != name) {
            continue;
        }
        if key == "scx_core" && value == "7.1" {
            kernel = 701;
        }
        pairs.push((key.to_owned(), value.to_owned()));
    }
    let options = CompileOptions {
        include: how.scx.include.clone(),
        sources: how.scx.source.clone(),
        kernel,
    };
    let scheduler = NativeScheduler::compile(path, &options).map_err(told)?;
    let arrays = scheduler.array_options();
    pairs.retain(|(key, _)| arrays.contains(key));
    let scheduler = scheduler.made(name, &pairs).map_err(told)?;
    Ok(Made { scheduler: Arc::new(scheduler), arrays })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn compile(name: &str, path: &Path, how: &How) -> CliResult<Made> {
    let _ = (path, how, input::pair);
    Err(CliError::new(
        Exit::Unavailable,
        format!("{name}: schedulers are compiled on x86-64 Linux only"),
        "",
    ))
}
