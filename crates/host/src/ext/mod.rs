// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers written for sched_ext: describes, loads, watches and unloads them.
//!
//! The schedulers of bpf/scx are compiled when this crate is built and are part of the program
//! ([`builtin`]); any other comes from an object file, or from a source that clang compiles
//! ([`compile`]). [`describe`] needs no kernel: options and statistics describe themselves in the
//! object's type information (BTF declaration tags). [`load`] loads one:
//!
//! ```no_run
//! use schedlab_host::ext::{self, Build, Source};
//! let options = [("slice_ms".to_string(), "50".to_string())];
//! let loaded = ext::load(&Source::parse("rr"), &Build::default(), &options, None)?;
//! println!("{} schedules this machine", loaded.name());
//! for counter in loaded.stats()? {
//!     println!("{} {}", counter.name, counter.value);
//! }
//! let end = loaded.detach()?;
//! assert_eq!(end.kind, ext::EXIT_UNREG);
//! # Ok::<(), schedlab_host::HostError>(())
//! ```
//!
//! An accepted scheduler may still fail: the kernel ejects it later if it breaks a rule, and its
//! tasks continue under the kernel's own class. So callers read [`Loaded::exit`] and
//! [`KernelState`] during a run and after it.

pub mod builtin;
#[cfg(schedlab_bpf)]
mod compile;
#[cfg(schedlab_bpf)]
mod describe;
mod exit;
mod inner;
mod kernel;
#[cfg(schedlab_bpf)]
mod link;
#[cfg(schedlab_bpf)]
mod load;
mod options;
#[cfg(schedlab_bpf)]
mod prepare;
#[cfg(schedlab_bpf)]
mod setup;
pub mod verdict;
#[cfg(schedlab_bpf)]
mod verifier;
#[cfg(schedlab_bpf)]
mod verify;
#[cfg(schedlab_bpf)]
mod vmlinux;

pub use exit::{EXIT_ERROR, EXIT_UNREG, ExitInfo, kind_name};
pub use kernel::{KernelState, check_kernel, kernel_state};
pub use options::{OptionInfo, OptionKind};

use crate::error::HostError;
use schedlab_scx_source::{MissingSetup, SourceOptions};
use std::path::PathBuf;

/// The source of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// One of [`builtin::NAMES`].
    Builtin(String),
    /// An object file, or a C source that clang compiles (name ends in `.c`).
    File(PathBuf),
}

impl Source {
    /// Reads a name or a path: text with a `/`, or that ends in `.c` or `.o`, is a path.
    pub fn parse(text: &str) -> Self {
        if text.contains('/') || text.ends_with(".c") || text.ends_with(".o") {
            Self::File(text.into())
        } else {
            Self::Builtin(text.into())
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Builtin(name) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// A counter of a scheduler's statistics.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CounterInfo {
    /// Name. Its last part is the unit, unless it is a plain count.
    pub name: String,
    /// What it counts; empty if the object does not describe it.
    pub text: String,
}

/// A counter with its value, the sum over all CPUs.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Counter {
    /// Name. Its last part is the unit, unless it is a plain count.
    pub name: String,
    /// What it counts; empty if the object does not describe it.
    pub text: String,
    /// Value since the scheduler was loaded.
    pub value: u64,
}

/// The description of a scheduler, from its object.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Description {
    /// Name of the scheduler (`sched_ext_ops.name`).
    pub name: String,
    /// Its options.
    pub options: Vec<OptionInfo>,
    /// Its counters; empty if it has no map `stats`.
    pub counters: Vec<CounterInfo>,
    /// Tables of constants without a value, which its user program would fill.
    pub empty_tables: Vec<String>,
}

impl Description {
    /// What it misses without its user program; `None`: nothing is known to be missing.
    pub fn missing_setup(&self) -> Option<MissingSetup> {
        MissingSetup::of(&self.name, self.empty_tables.clone())
    }
}

#[cfg(schedlab_bpf)]
pub use describe::{describe, describe_object};
#[cfg(schedlab_bpf)]
pub use load::{Loaded, load};
#[cfg(schedlab_bpf)]
pub use verify::verify;

#[cfg(not(schedlab_bpf))]
mod absent;
#[cfg(not(schedlab_bpf))]
pub use absent::{Loaded, describe, describe_object, load, object, verify};

/// Gives the calling thread a real-time policy, above sched_ext, so that a scheduler cannot keep it
/// from running. A thread that monitors a scheduler must run even if that gives the CPU to no other
/// task. Returns whether this succeeded.
pub fn stay_responsive() -> bool {
    let attr = schedlab_model::SchedAttr {
        policy: schedlab_model::Policy::Rr,
        rt_priority: 1,
        ..schedlab_model::SchedAttr::default()
    };
    let mut raw = crate::sys::RawSchedAttr::new(&attr);
    raw.flags |= crate::sys::RESET_ON_FORK;
    crate::sys::sched_setattr(0, &raw).is_ok()
}

/// How a source is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build {
    /// Its headers, further sources and macros, in addition to those that are found.
    pub source: SourceOptions,
    /// The file with the type information of the kernel that is to load it, raw or in an ELF image.
    pub types: PathBuf,
}

impl Default for Build {
    fn default() -> Self {
        Self { source: SourceOptions::default(), types: RUNNING_TYPES.into() }
    }
}

/// Where the running kernel's type information is.
pub const RUNNING_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The object of a scheduler.
///
/// # Errors
/// An unknown name, a file that cannot be read, a source that does not compile.
#[cfg(schedlab_bpf)]
pub fn object(
    source: &Source,
    build: &Build,
) -> Result<std::borrow::Cow<'static, [u8]>, HostError> {
    use std::borrow::Cow;
    match source {
        Source::Builtin(name) => builtin::object(name).map(Cow::Borrowed),
        Source::File(path) if path.extension().is_some_and(|end| end == "c") => {
            compile::compile(path, build).map(Cow::Owned)
        }
        Source::File(path) => std::fs::read(path)
            .map(Cow::Owned)
            .map_err(|error| HostError::Input(format!("{}: {error}", path.display()))),
    }
}
