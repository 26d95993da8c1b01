// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_ext schedulers in C, compiled for this machine and run by the modelled core.
//!
//! The source is the same that a kernel loads. `compile` turns it into an object with schedlab's
//! headers, and `program` resolves every name that it uses. `image` puts a copy into memory for
//! each run. `guard` calls it and returns from it even if it fails. `host` has the functions that
//! it may call. See docs/reference/sched-ext-in-the-simulator.md.
//!
//! Only on x86-64 Linux, because calls, relocations and signals depend on the machine; elsewhere
//! the crate is empty. A scheduler compiled this way may do anything that a program may, so run
//! only schedulers that you trust.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod cache;
mod compile;
mod dwarf;
mod error;
mod groups;
mod guard;
mod helpers;
mod host;
mod image;
mod kfuncs;
mod layout;
mod maps;
mod object;
mod ops;
mod options;
mod program;
mod run;
mod scheduler;
mod storage;
mod tasks;
mod text;
mod touch;
mod zone;

pub use compile::{CLANG_VARIABLE, CompileOptions, find_clang};
pub use error::NativeError;
pub use guard::LIMIT_S;
pub use options::OptionInfo;

use options::Chosen;
use program::Program;
use schedlab_scx::Ops;
use std::path::Path;
use std::sync::Arc;

/// A compiled scheduler with its options. Any number of runs can use it in parallel.
#[derive(Clone, Debug)]
pub struct NativeScheduler {
    program: Arc<Program>,
    compile: CompileOptions,
    chosen: Chosen,
}

impl NativeScheduler {
    /// Compiles `source`.
    pub fn compile(source: &Path, options: &CompileOptions) -> Result<Self, NativeError> {
        let program = Arc::new(Program::compile(source, options)?);
        Ok(Self { program, compile: options.clone(), chosen: Chosen::default() })
    }

    /// This scheduler with these options: `name` and `value`.
    pub fn with_options(&self, given: &[(String, String)]) -> Result<Self, NativeError> {
        let chosen = Chosen::parse(&self.program, given)?;
        Ok(Self { chosen, ..self.clone() })
    }

    /// Its options.
    pub fn options(&self) -> Vec<OptionInfo> {
        options::list(&self.program)
    }

    /// Makes an instance for a run on a machine of `nr_cpus` CPUs with `hz` ticks per second.
    pub fn ops(&self, nr_cpus: u32, hz: u32) -> Result<Box<dyn Ops>, NativeError> {
        let machine = options::MachineWords { nr_cpus, hz };
        Ok(Box::new(ops::NativeOps::new(Arc::clone(&self.program), &self.chosen, machine)?))
    }
}
