// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_ext schedulers in C, compiled for this machine and run by the modelled core.
//!
//! The source is the same that a kernel loads. `compile` turns it into an object with schedlab's
//! headers, `link` resolves every name that it uses. `image` puts a copy into memory for
//! each run. `guard` calls it and returns from it even if it fails. `host` has the functions that
//! it may call. See docs/reference/sched-ext-in-the-simulator.md.
//!
//! Only on x86-64 Linux, because calls, relocations and signals depend on the machine; elsewhere
//! the crate is empty. `zone` has all memory that a scheduler may touch, and `checks` tells which
//! access was out of bounds.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod cache;
mod checks;
mod cids;
mod compile;
mod coverage;
mod decode;
mod division;
mod dwarf;
mod error;
mod groups;
mod guard;
mod helpers;
mod host;
mod image;
mod insns;
mod inspect;
mod kfuncs;
mod layout;
mod lines;
mod link;
mod maps;
mod object;
mod ops;
mod options;
mod prepare;
mod program;
mod ready;
mod run;
mod scheduler;
mod seccomp;
mod setup;
mod setup_words;
mod storage;
mod subs;
mod tasks;
mod text;
mod thunks;
mod touch;
mod user;
mod zone;

pub use compile::{CompileOptions, find_clang};
pub use error::NativeError;
pub use guard::LIMIT_S;
pub use inspect::Inspector;
pub use options::OptionInfo;
pub use ready::ready_setup;
pub use user::UserProgram;

use options::Chosen;
use program::Program;
use schedlab_scx::Ops;
use schedlab_scx_source::MissingSetup;
use std::path::Path;
use std::sync::Arc;

/// A compiled scheduler with its options. Any number of runs can use it in parallel.
#[derive(Clone, Debug)]
pub struct NativeScheduler {
    program: Arc<Program>,
    compile: CompileOptions,
    chosen: Chosen,
    inspector: Option<Arc<Inspector>>,
    user: Option<Arc<UserProgram>>,
}

impl NativeScheduler {
    /// Compiles `source`.
    pub fn compile(source: &Path, options: &CompileOptions) -> Result<Self, NativeError> {
        let program = Arc::new(Program::compile(source, options)?);
        let (compile, chosen) = (options.clone(), Chosen::default());
        Ok(Self { program, compile, chosen, inspector: None, user: None })
    }

    /// This scheduler with these options: `name` and `value`.
    pub fn with_options(&self, given: &[(String, String)]) -> Result<Self, NativeError> {
        let chosen = Chosen::parse(&self.program, given)?;
        Ok(Self { chosen, ..self.clone() })
    }

    /// This scheduler, of whose next run `inspector` keeps something.
    #[must_use]
    pub fn inspected_by(&self, inspector: &Arc<Inspector>) -> Self {
        Self { inspector: Some(Arc::clone(inspector)), ..self.clone() }
    }

    /// This scheduler, next to which its user program runs.
    #[must_use]
    pub fn with_user_program(&self, user: UserProgram) -> Self {
        Self { user: Some(Arc::new(user)), ..self.clone() }
    }

    /// Names of the maps and variables that an inspector can show.
    pub fn state_names(&self) -> Vec<String> {
        inspect::names(&self.program)
    }

    /// SHA-256 of what is loaded, in hexadecimal digits. It does not depend on the source's name,
    /// on debug information or on options.
    pub fn digest(&self) -> String {
        self.program.sum(&[])
    }

    /// What it misses without its user program: no setup was found, and nothing of `given` (name
    /// and value) sets it.
    ///
    /// # Errors
    /// As [`Self::ops`].
    pub fn missing_setup(
        &self,
        given: &[(String, String)],
    ) -> Result<Option<MissingSetup>, NativeError> {
        if self.user.is_some() {
            return Ok(None);
        }
        let machine = options::MachineWords { nr_cpus: 1, hz: 250 };
        let ops = ops::NativeOps::new(Arc::clone(&self.program), &self.chosen, machine, None)?;
        if ops.has_setup() {
            return Ok(None);
        }
        let mut tables = self.program.empty_tables();
        tables.retain(|table| given.iter().all(|(name, _)| name != table));
        Ok(MissingSetup::of(&ops.info().name, tables))
    }

    /// Its options.
    pub fn options(&self) -> Vec<OptionInfo> {
        options::list(&self.program)
    }

    /// Makes an instance for a run on a machine of `nr_cpus` CPUs with `hz` ticks per second.
    pub fn ops(&self, nr_cpus: u32, hz: u32) -> Result<Box<dyn Ops>, NativeError> {
        let machine = options::MachineWords { nr_cpus, hz };
        let mut ops = ops::NativeOps::new(Arc::clone(&self.program), &self.chosen, machine, None)?;
        ops.run.inspector.clone_from(&self.inspector);
        Ok(Box::new(ops))
    }
}
