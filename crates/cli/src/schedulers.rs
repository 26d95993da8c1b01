// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers that a command can name, and the tunables that it sets.
//!
//! A name is in the registry, or is a file: `--scheduler ./my_sched.bpf.c` compiles it for this
//! machine, once for each command, and `--scheduler ./policy.js` reads a policy in JavaScript,
//! `--scheduler ./policy.py` one in Python.
//! `--set slice=10ms` sets a tunable for every scheduler of the command, `--set
//! linux-6.12:base_slice=3ms` for one of them, as `--scheduler linux-6.12:base_slice=3ms` does.

use crate::args::{ScxArgs, ScxChecks};
use crate::commands::UserSpec;
use crate::error::{CliError, CliResult, Exit};
use crate::output::say;
use schedlab_core::schedulers;
use schedlab_model::Policy;
use schedlab_run::file::read_text;
use schedlab_run::place::allowed_words;
use schedlab_run::policy::Spec;
use schedlab_run::{LaneError, StudyError, Warning};
use schedlab_sched::{Scheduler, registry};
use schedlab_scx::inspect::{Inspected, Wanted};
use schedlab_scx_source::MissingSetup;
use schedlab_sim::SimLane;
use schedlab_vm::Cache;
use schedlab_vm::verify::known;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use schedlab_scx_native::Inspector;

/// Nothing is compiled for this machine, so nothing is inspected.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[derive(Debug)]
enum Inspector {}

/// One `--set` option.
#[derive(Clone, Debug)]
struct Setting {
    /// Its text on the command line.
    text: String,
    /// The scheduler that it applies to; `None`: all.
    scheduler: Option<String>,
    name: String,
    value: String,
}

/// A scheduler made from a file.
#[derive(Debug)]
struct Compiled {
    scheduler: Arc<Scheduler>,
    /// Options that take several values. They are set at compile time, not with a run.
    arrays: Vec<String>,
    /// What it misses without its user program.
    missing: Option<MissingSetup>,
}

/// The schedulers of a command.
#[derive(Debug, Default)]
pub struct Schedulers {
    scx: ScxArgs,
    settings: Vec<Setting>,
    compiled: RefCell<Vec<Compiled>>,
    /// What to keep of the next run of a compiled scheduler.
    wanted: Option<Wanted>,
    inspector: RefCell<Option<Arc<Inspector>>>,
    /// The user program of a compiled scheduler.
    user: Option<UserSpec>,
    /// Aliases that the program has already explained on stderr.
    said: RefCell<BTreeSet<String>>,
}

/// Whether a scheduler's name is a path.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || [".c", ".o", ".js", ".py"].iter().any(|end| name.ends_with(end))
}

/// Whether a scheduler's name is the path of a policy in JavaScript or Python.
pub fn is_policy(name: &str) -> bool {
    name.ends_with(".js") || is_python(name)
}

/// Whether a scheduler's name is the path of a policy in Python.
fn is_python(name: &str) -> bool {
    name.ends_with(".py")
}

/// Whether a scheduler, perhaps with tunables, is the path of a source for sched_ext.
pub fn is_source(scheduler: &str) -> bool {
    let name = scheduler.split(':').next().unwrap_or_default();
    is_file(name) && !is_policy(name)
}

/// A scheduler of the command line.
pub struct Chosen {
    /// The scheduler.
    pub scheduler: Arc<Scheduler>,
    /// Policy of tasks that name none.
    pub policy: Option<Policy>,
    /// Its tunables, as text with units: its own, and those of `--set`.
    pub tunables: Vec<(String, String)>,
}

impl Schedulers {
    /// The schedulers of a command with these compile options and tunables (`--set`).
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

    /// These schedulers, of whose next run `wanted` is kept. For one run of a compiled scheduler.
    pub fn inspecting(self, wanted: Option<Wanted>) -> Self {
        Self { wanted, ..self }
    }

    /// These schedulers, next to whose runs this user program runs.
    pub fn with_user_program(self, user: Option<UserSpec>) -> Self {
        Self { user, ..self }
    }

    /// What was kept of the last run of the compiled scheduler; `None`: nothing was wanted.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub fn inspected(&self) -> Option<Inspected> {
        self.inspector.borrow().as_ref().map(|inspector| inspector.take())
    }

    /// Nothing.
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    pub fn inspected(&self) -> Option<Inspected> {
        self.inspector.borrow().as_ref().map(|inspector| match **inspector {})
    }

    /// Finds the scheduler called `name`; compiles a file that is not compiled yet. The error
    /// suggests similar names and lists what is allowed.
    pub fn find(&self, name: &str) -> CliResult<Arc<Scheduler>> {
        self.find_at(name, Path::new(name))
    }

    /// Finds the scheduler called `name`. If it is a file, its path is `path`, for example next to
    /// an experiment file.
    pub fn find_at(&self, name: &str, path: &Path) -> CliResult<Arc<Scheduler>> {
        if let Some(scheduler) = registry::find(name) {
            if let Some(note) = schedulers::alias_note(name, scheduler)
                && self.said.borrow_mut().insert(name.to_owned())
            {
                say(note);
            }
            return Ok(Arc::clone(scheduler));
        }
        if !is_file(name) {
            return Err(schedulers::unknown(name).into());
        }
        let known = |compiled: &&Compiled| compiled.scheduler.name == name;
        if let Some(compiled) = self.compiled.borrow().iter().find(known) {
            return Ok(Arc::clone(&compiled.scheduler));
        }
        if path.extension().is_some_and(|end| end == "o") {
            return Err(CliError::usage_help(
                format!("{name} is an object for a kernel, and the simulator compiles sources"),
                "name its .bpf.c; `schedlab vm` and `schedlab load` take objects",
            ));
        }
        let compiled = match is_policy(name) {
            true => read_policy(name, path)?,
            false => self.compile(name, path)?,
        };
        let scheduler = Arc::clone(&compiled.scheduler);
        self.compiled.borrow_mut().push(compiled);
        Ok(scheduler)
    }

    /// Finds the scheduler that `text` names, as in `linux-6.12:FIFO` or `rr:quantum=3ms`.
    pub fn of_spec(&self, text: &str) -> CliResult<Chosen> {
        let spec = Spec::parse(text)?;
        let scheduler = self.find(spec.name)?;
        let tunables = spec.tunables_with(self.tunables(&scheduler));
        Ok(Chosen { scheduler, policy: spec.policy, tunables })
    }

    /// As [`Self::of_spec`], for commands that choose the policies of tasks themselves.
    pub fn without_policy(&self, text: &str) -> CliResult<Chosen> {
        let found = self.of_spec(text)?;
        match found.policy {
            None => Ok(found),
            Some(policy) => Err(CliError::usage_help(
                format!("{text}: this command takes no policy, here is {}", policy.name()),
                "name a scheduler, or a scheduler with tunables: rr:quantum=3ms",
            )),
        }
    }

    /// All schedulers compiled so far.
    pub fn compiled(&self) -> Vec<Arc<Scheduler>> {
        self.compiled.borrow().iter().map(|made| Arc::clone(&made.scheduler)).collect()
    }

    /// A warning, if the compiled scheduler called `name` runs without a setup that it needs.
    pub fn setup_warning(&self, name: &str) -> Option<Warning> {
        const ADVICE: &str = "`schedlab scx setup` records one, --scx-setup FILE applies it.";
        let compiled = self.compiled.borrow();
        let made = compiled.iter().find(|made| made.scheduler.name == name)?;
        let missing = made.missing.as_ref()?.to_string();
        Some(Warning::scx_no_setup(name, &missing, ADVICE))
    }

    /// The tunables that the command sets for `scheduler`.
    pub fn tunables(&self, scheduler: &Scheduler) -> Vec<(String, String)> {
        let compiled = self.compiled.borrow();
        let own = compiled.iter().find(|made| made.scheduler.name == scheduler.name);
        let is_array =
            |name: &str| own.is_some_and(|made| made.arrays.iter().any(|array| array == name));
        let given = self.settings.iter().filter(|set| set.is_for(&scheduler.name));
        let given = given.filter(|set| !is_array(&set.name));
        given.map(|set| (set.name.clone(), set.value.clone())).collect()
    }

    /// Refuses a tunable for a scheduler that is not among `schedulers`: it would have no effect.
    pub fn check_settings<'s>(&self, schedulers: impl Iterator<Item = &'s str>) -> CliResult<()> {
        let mut running = Vec::new();
        for scheduler in schedulers {
            running.push(Spec::parse(scheduler)?.name);
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
        use schedlab_scx_native::{NativeError, NativeScheduler};
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
        let mut options = compile_options(&self.scx, core.unwrap_or(&CORES[0]).version);
        let plain = NativeScheduler::compile(path, &options).map_err(refused)?;
        options.is_counted = self.wanted.as_ref().is_some_and(|wanted| wanted.coverage);
        let native = match &self.wanted {
            Some(wanted) if options.is_counted => {
                let counted = NativeScheduler::compile(path, &options).map_err(refused)?;
                self.inspect(name, &counted, wanted)?
            }
            Some(wanted) => self.inspect(name, &plain, wanted)?,
            None => plain.clone(),
        };
        let native = match &self.user {
            Some(user) => native.with_user_program(user_program(user)),
            None => native,
        };
        let arrays = native.array_options();
        let values: Vec<(String, String)> = own()
            .filter(|set| arrays.contains(&set.name))
            .map(|set| (set.name.clone(), set.value.clone()))
            .collect();
        let mut scheduler = native.scheduler(name, &values).map_err(refused)?;
        if options.is_counted {
            // Counting changes the code and no decision.
            scheduler.digest = plain.scheduler(name, &values).map_err(refused)?.digest;
        }
        let missing = native.missing_setup(&values).map_err(refused)?;
        Ok(Compiled { scheduler: Arc::new(scheduler), arrays, missing })
    }

    /// The scheduler with an inspector that keeps `wanted`. The error lists what it could show.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn inspect(
        &self,
        file: &str,
        native: &schedlab_scx_native::NativeScheduler,
        wanted: &Wanted,
    ) -> CliResult<schedlab_scx_native::NativeScheduler> {
        let known = native.state_names();
        let names = wanted.maps.iter().flat_map(|maps| &maps.names);
        if let Some(name) = names.into_iter().find(|name| !known.contains(name)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(CliError::usage_help(
                format!(
                    "--maps={name}: {file} has no such map or variable: {}",
                    allowed_words(name, &known)
                ),
                "--maps without names shows all",
            ));
        }
        let inspector = Arc::new(Inspector::new(wanted.clone()));
        let native = native.inspected_by(&inspector);
        *self.inspector.borrow_mut() = Some(inspector);
        Ok(native)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn compile(&self, name: &str, path: &Path) -> CliResult<Compiled> {
        let _ = (path, &self.scx, &self.wanted, &self.user);
        Err(CliError::new(
            Exit::Unavailable,
            format!("{name}: schedulers are compiled on x86-64 Linux only"),
            "",
        ))
    }
}

/// The scheduler of a policy in JavaScript or Python.
fn read_policy(name: &str, path: &Path) -> CliResult<Compiled> {
    let text = read_text(path, schedlab_script::SOURCE_BYTES_MAX as u64)?;
    let made = match is_python(name) {
        true => read_python(name, &text)?,
        false => schedlab_script::scheduler(name, &text)
            .map_err(|error| CliError::usage(format!("{name}: {error}")))?,
    };
    Ok(Compiled { scheduler: Arc::new(made), arrays: Vec::new(), missing: None })
}

#[cfg(unix)]
fn read_python(name: &str, text: &str) -> CliResult<Scheduler> {
    use schedlab_script::python::{Error, INTERPRETER, scheduler};
    scheduler(name, text).map_err(|error| match error {
        Error::Policy(text) => CliError::usage(format!("{name}: {text}")),
        Error::Unavailable(text) => CliError::new(
            Exit::Unavailable,
            format!("{name}: {text}"),
            format!("install Python, or name an interpreter: {INTERPRETER}=/path/to/python3"),
        ),
    })
}

#[cfg(not(unix))]
fn read_python(name: &str, _: &str) -> CliResult<Scheduler> {
    let text = format!("{name}: policies in Python run on Linux only");
    Err(CliError::new(Exit::Unavailable, text, "write it in JavaScript"))
}

/// What is known of the verifier's verdict on a compiled scheduler of `lane`: a warning if no
/// kernel was asked, or if one refuses it. None for the schedulers of this program.
pub fn verdict_warning(lane: &SimLane, name: &str) -> Option<Warning> {
    let digest = lane.schedulers.iter().find(|own| own.name == name)?.scx_digest()?;
    let known = known(&Cache::of_user().ok()?, digest);
    if known.is_empty() {
        return Some(Warning::scx_not_verified(name));
    }
    let refused = known.iter().find_map(|known| Some((known, known.refusal.as_deref()?)));
    refused.map(|(known, refusal)| Warning::scx_refused(&known.kernel, refusal))
}

/// How a scheduler is compiled for this machine.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn compile_options(
    scx: &ScxArgs,
    kernel: schedlab_model::KernelVersion,
) -> schedlab_scx_native::CompileOptions {
    schedlab_scx_native::CompileOptions {
        source: scx.options(),
        setup: scx.setup.clone(),
        kernel,
        is_checked: scx.checks == ScxChecks::On,
        is_counted: false,
        cache: Cache::of_user().ok().map(|cache| cache.root().join("native")),
    }
}

/// A user program as the simulator takes it.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn user_program(user: &UserSpec) -> schedlab_scx_native::UserProgram {
    schedlab_scx_native::UserProgram {
        command: user.command.clone(),
        types: Arc::clone(&user.types),
        kernel: user.kernel.clone(),
        limit: std::time::Duration::from_secs(user.limit_s),
        step_ns: user.step_ns,
    }
}

/// The digests under which the simulator would run the source at `path` with checks and without:
/// as on the kernel that it models if none is chosen, and on the modelled ones of `releases`. None
/// for an object, and for a source that cannot be simulated.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn native_digests(scx: &ScxArgs, path: &Path, releases: &[&str]) -> Vec<String> {
    use schedlab_model::KernelVersion;
    use schedlab_scx::CORES;
    use schedlab_scx_native::NativeScheduler;
    if path.extension().is_none_or(|end| end != "c") {
        return Vec::new();
    }
    let compile = |core: &schedlab_scx::CoreRules, checks| {
        let scx = ScxArgs { checks, ..scx.clone() };
        let native = NativeScheduler::compile(path, &compile_options(&scx, core.version));
        native.ok().map(|native| native.digest())
    };
    let modelled = |release: &&str| {
        let series = KernelVersion::of_release(release)?.series_number();
        CORES.iter().find(|core| core.version.series_number() == series)
    };
    let mut cores = vec![&CORES[0]];
    cores.extend(releases.iter().filter_map(modelled));
    cores.sort_by_key(|core| core.version);
    cores.dedup_by_key(|core| core.version);
    let both = |core| [ScxChecks::On, ScxChecks::Off].map(|checks| compile(core, checks));
    cores.into_iter().flat_map(both).flatten().collect()
}

/// Nothing is compiled for this machine.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn native_digests(_scx: &ScxArgs, _path: &Path, _releases: &[&str]) -> Vec<String> {
    Vec::new()
}

/// Finds schedulers whose files are named relative to a folder: that of a study.
pub struct Beside<'s> {
    /// The folder.
    pub folder: &'s Path,
    /// The schedulers of the command.
    pub known: &'s Schedulers,
}

impl Beside<'_> {
    /// The lane with the scheduler called `name`, which is compiled if it is a file.
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

/// Whether `given` is a name or an alias of the scheduler `name`.
fn is_called(given: &str, name: &str) -> bool {
    given == name || registry::find(given).is_some_and(|scheduler| scheduler.name == name)
}
