// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers written in C for sched_ext, compiled for this machine and run by the modelled core.
//!
//! The source is the one that a kernel loads, unchanged: `compile` turns it into an object with our
//! headers beneath it, `program` accounts for every name it uses, `image` puts a copy of it into
//! memory for each run, `guard` calls it and gets back out of it whatever it does, `host` says
//! what it may call. See docs/reference/sched-ext-in-the-simulator.md.
//!
//! x86-64 Linux only, elsewhere the crate is empty: calls, relocations and signals are the
//! machine's. A scheduler compiled so may do anything that a program may; run only what you would
//! run.
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

/// A compiled scheduler with its options chosen: runs are made from it, any number, side by side.
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

    /// The same with these options, `name` and `value`.
    pub fn with_options(&self, given: &[(String, String)]) -> Result<Self, NativeError> {
        let chosen = Chosen::parse(&self.program, given)?;
        Ok(Self { chosen, ..self.clone() })
    }

    /// Its options.
    pub fn options(&self) -> Vec<OptionInfo> {
        options::list(&self.program)
    }

    /// A run of it on a machine of `nr_cpus` CPUs with `hz` ticks a second.
    pub fn ops(&self, nr_cpus: u32, hz: u32) -> Result<Box<dyn Ops>, NativeError> {
        let machine = options::MachineWords { nr_cpus, hz };
        Ok(Box::new(ops::NativeOps::new(Arc::clone(&self.program), &self.chosen, machine)?))
    }
}
