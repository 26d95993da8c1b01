// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers written for sched_ext: describes, loads, watches and unloads them.
//!
//! The schedulers of bpf/scx are compiled when this crate is built and are part of the program
//! ([`builtin`]); any other is taken from an object file, or from a source that clang compiles
//! ([`compile`]). [`describe`] needs no kernel: options and statistics describe themselves in the
//! object's type information (BTF declaration tags). [`load`] puts one to work:
//!
//! ```no_run
//! use schedlab_host::ext::{self, Source};
//! let options = [("slice_ms".to_string(), "50".to_string())];
//! let loaded = ext::load(&Source::parse("rr"), &options)?;
//! println!("{} schedules this machine", loaded.name());
//! for counter in loaded.stats()? {
//!     println!("{} {}", counter.name, counter.value);
//! }
//! let end = loaded.detach()?;
//! assert_eq!(end.kind, ext::EXIT_UNREG);
//! # Ok::<(), schedlab_host::HostError>(())
//! ```
//!
//! That a scheduler was accepted says little: the kernel ejects it later when it breaks a rule, and
//! its tasks go on under the kernel's own class. So [`Loaded::exit`] and [`KernelState`] are read
//! during a run and after it.

pub mod builtin;
#[cfg(schedlab_bpf)]
mod compile;
#[cfg(schedlab_bpf)]
mod describe;
mod exit;
mod kernel;
#[cfg(schedlab_bpf)]
mod load;
mod options;
#[cfg(schedlab_bpf)]
mod verifier;

pub use exit::{EXIT_ERROR, EXIT_UNREG, ExitInfo, kind_name};
pub use kernel::{KernelState, check_kernel, kernel_state};
pub use options::{OptionInfo, OptionKind};

use crate::error::HostError;
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
    /// What it counts; empty if the object does not tell.
    pub text: String,
}

/// A counter with its value, the sum over all CPUs.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Counter {
    /// Name. Its last part is the unit, unless it is a plain count.
    pub name: String,
    /// What it counts; empty if the object does not tell.
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
}

#[cfg(schedlab_bpf)]
pub use describe::describe;
#[cfg(schedlab_bpf)]
pub use load::{Loaded, load};

#[cfg(not(schedlab_bpf))]
mod absent;
#[cfg(not(schedlab_bpf))]
pub use absent::{Loaded, describe, load};

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

/// The object of a scheduler.
///
/// # Errors
/// An unknown name, a file that cannot be read, a source that does not compile.
#[cfg(schedlab_bpf)]
pub fn object(source: &Source) -> Result<std::borrow::Cow<'static, [u8]>, HostError> {
    use std::borrow::Cow;
    match source {
        Source::Builtin(name) => builtin::object(name).map(Cow::Borrowed),
        Source::File(path) if path.extension().is_some_and(|end| end == "c") => {
            compile::compile(path).map(Cow::Owned)
        }
        Source::File(path) => std::fs::read(path)
            .map(Cow::Owned)
            .map_err(|error| HostError::Input(format!("{}: {error}", path.display()))),
    }
}
