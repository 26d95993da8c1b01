// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers that a command may name, and the tunables that it gives them.
//!
//! A name is one of the registry, or a file: `--scheduler ./my_sched.bpf.c` compiles it for this
//! machine, once for a command. Tunables are `--set slice=10ms` for every scheduler of the command,
//! or `--set linux-6.12:base_slice=3ms` for one of them.

use crate::args::ScxArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::say;
use schedlab_run::place::allowed_words;
use schedlab_run::{LaneError, LaneKind, StudyError, policy};
use schedlab_sched::{Scheduler, registry};
use schedlab_sim::SimLane;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// One `--set`.
#[derive(Clone, Debug)]
struct Setting {
    /// As it was given.
    text: String,
    /// The scheduler that it is for; `None`: all.
    scheduler: Option<String>,
    name: String,
    value: String,
}

/// A compiled scheduler.
#[derive(Debug)]
struct Compiled {
    scheduler: Arc<Scheduler>,
    /// Options that take several values: they are given when the scheduler is compiled, not with a
    /// run.
    arrays: Vec<String>,
}

/// The schedulers of a command.
#[derive(Debug, Default)]
pub struct Schedulers {
    scx: ScxArgs,
    settings: Vec<Setting>,
    compiled: RefCell<Vec<Compiled>>,
    /// Other names of schedulers that a note has explained already.
    said: RefCell<BTreeSet<String>>,
}

/// Whether a scheduler's name is that of a file.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".c")
}

impl Schedulers {
    /// Those of a command that says this about compiling, and gives these tunables (`--set`).
    pub fn new(scx: &ScxArgs, tunables: &[String]) -> CliResult<Self> {
        let mut settings = Vec::new();
        for text in tunables {
            let (name, value) = schedlab_workload::pair("--set", text)?;
            let (scheduler, name) = match name.split_once(':') {
                Some((scheduler, name)) => (Some(scheduler.trim().to_owned()), name.trim()),
                None => (None, name),
            };
            let (text, name, value) = (text.clone(), name.to_owned(), value.to_owned());
            settings.push(Setting { text, scheduler, name, value });
        }
        Ok(Self { scx: scx.clone(), settings, ..Self::default() })
    }

    /// The scheduler called `name`; that of a file is compiled if it is not yet. The error names
    /// what is near, and what is allowed.
    pub fn find(&self, name: &str) -> CliResult<Arc<Scheduler>> {
        self.find_at(name, Path::new(name))
    }

    /// The scheduler called `name`, whose file, if it is one, is at `path`: beside an experiment
    /// file, for example.
    pub fn find_at(&self, name: &str, path: &Path) -> CliResult<Arc<Scheduler>> {
        if let Some(scheduler) = registry::find(name) {
            if scheduler.name != name && self.said.borrow_mut().insert(name.to_owned()) {
                say(format!("note: {name} stands for {}", scheduler.name));
            }
            return Ok(Arc::clone(scheduler));
        }
        if !is_file(name) {
            return Err(unknown(name));
        }
        let known = |compiled: &&Compiled| compiled.scheduler.name == name;
        if let Some(compiled) = self.compiled.borrow().iter().find(known) {
            return Ok(Arc::clone(&compiled.scheduler));
        }
        let compiled = self.compile(name, path)?;
        let scheduler = Arc::clone(&compiled.scheduler);
        self.compiled.borrow_mut().push(compiled);
        Ok(scheduler)
    }

    /// All that were compiled so far.
    pub fn compiled(&self) -> Vec<Arc<Scheduler>> {
        self.compiled.borrow().iter().map(|made| Arc::clone(&made.scheduler)).collect()
    }

    /// The tunables that the command gives `scheduler`.
    pub fn tunables(&self, scheduler: &Scheduler) -> Vec<(String, String)> {
        let compiled = self.compiled.borrow();
        let own = compiled.iter().find(|made| made.scheduler.name == scheduler.name);
        let is_array =
            |name: &str| own.is_some_and(|made| made.arrays.iter().any(|array| array == name));
        let given = self.settings.iter().filter(|set| set.is_for(&scheduler.name));
        let given = given.filter(|set| !is_array(&set.name));
        given.map(|set| (set.name.clone(), set.value.clone())).collect()
    }

    /// Refuses a tunable for a scheduler that is none of `schedulers`, which run: it would be lost
    /// without a word.
    pub fn check_settings<'s>(&self, schedulers: impl Iterator<Item = &'s str>) -> CliResult<()> {
        let mut running = Vec::new();
        for scheduler in schedulers {
            running.push(policy::scheduler_of(LaneKind::Sim, scheduler)?.0);
        }
        for set in &self.settings {
            let Some(scheduler) = &set.scheduler else { continue };
            let scheduler = self.find(scheduler)?;
            if !running.iter().any(|name| is_called(name, &scheduler.name)) {
                let (text, name) = (&set.text, &scheduler.name);
                return Err(CliError::usage_help(
                    format!("--set {text}: {name} does not run here, but {}", running.join(", ")),
                    format!("add --scheduler {name}, or leave that --set out"),
                ));
            }
        }
        Ok(())
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn compile(&self, name: &str, path: &Path) -> CliResult<Compiled> {
        use schedlab_scx::{CORES, CoreRules, SCX_CORE};
        use schedlab_scx_native::{CompileOptions, NativeError, NativeScheduler};
        let refused = |error: NativeError| {
            let exit = match error {
                NativeError::Compile(_) | NativeError::Refused(_) | NativeError::Option(_) => {
                    Exit::Usage
                }
                NativeError::NoCompiler(_) | NativeError::Internal(_) => Exit::Unavailable,
            };
            CliError::new(exit, error.to_string(), "")
        };
        let own = || self.settings.iter().filter(|set| set.is_for(name));
        let core = own().rfind(|set| set.name == SCX_CORE);
        let core = core.and_then(|set| CoreRules::of(set.value.parse().ok()?));
        let options = CompileOptions {
            include: self.scx.include.clone(),
            sources: self.scx.source.clone(),
            kernel: core.unwrap_or(&CORES[0]).version,
            cache: schedlab_vm::Cache::of_user().ok().map(|cache| cache.root().join("native")),
        };
        let native = NativeScheduler::compile(path, &options).map_err(refused)?;
        let arrays = native.array_options();
        let values: Vec<(String, String)> = own()
            .filter(|set| arrays.contains(&set.name))
            .map(|set| (set.name.clone(), set.value.clone()))
            .collect();
        let scheduler = native.scheduler(name, &values).map_err(refused)?;
        Ok(Compiled { scheduler: Arc::new(scheduler), arrays })
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn compile(&self, name: &str, path: &Path) -> CliResult<Compiled> {
        let _ = (path, &self.scx);
        Err(CliError::new(
            Exit::Unavailable,
            format!("{name}: schedulers are compiled on x86-64 Linux only"),
            "",
        ))
    }
}

/// Schedulers whose files are named from a folder: where a study lies.
pub struct Beside<'s> {
    /// The folder.
    pub folder: &'s Path,
    /// Those of the command.
    pub known: &'s Schedulers,
}

impl Beside<'_> {
    /// The lane with the scheduler called `name`, compiled if it is a file.
    fn lane_with(&self, name: &str) -> CliResult<SimLane> {
        let mut lane = SimLane::default();
        if is_file(name) {
            lane.schedulers.push(self.known.find_at(name, &self.folder.join(name))?);
        }
        Ok(lane)
    }
}

impl schedlab_run::Schedulers for Beside<'_> {
    fn check_name(&self, name: &str) -> Result<(), StudyError> {
        let lane = self.lane_with(name).map_err(|error| StudyError::new(error.text(), ""))?;
        schedlab_run::Schedulers::check_name(&lane, name)
    }

    fn check_tunables(&self, name: &str, tunables: &[(String, String)]) -> Result<(), LaneError> {
        let lane = self.lane_with(name).map_err(|error| LaneError::Input(error.text()))?;
        schedlab_run::Schedulers::check_tunables(&lane, name, tunables)
    }
}

impl Setting {
    fn is_for(&self, scheduler: &str) -> bool {
        self.scheduler.as_ref().is_none_or(|own| is_called(own, scheduler))
    }
}

/// Whether the scheduler `name` is also called `given`.
fn is_called(given: &str, name: &str) -> bool {
    given == name || registry::find(given).is_some_and(|scheduler| scheduler.name == name)
}

fn unknown(name: &str) -> CliError {
    let names: Vec<&str> = registry::names().collect();
    let allowed = match registry::kernels_around(name) {
        Some(around) => {
            let models: Vec<&str> = around.into_iter().flatten().collect();
            format!("nearest are {}; allowed: {}", models.join(" and "), names.join(", "))
        }
        None => allowed_words(name, &names),
    };
    CliError::usage_help(
        format!("no scheduler is called {name:?}: {allowed}"),
        "`schedlab list schedulers` says what each is; a name with a / in it is a file with a \
         scheduler for sched_ext",
    )
}
