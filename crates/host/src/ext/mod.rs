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

/// Where a scheduler comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// One of [`builtin::NAMES`].
    Builtin(String),
    /// An object file, or a C source that clang compiles (name ends in `.c`).
    File(PathBuf),
}

impl Source {
    /// A name, or a path: what holds a `/` or ends in `.c` or `.o`.
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
    /// Name; its last part is the unit where it is not a mere count.
    pub name: String,
    /// What it counts; empty where the object does not say.
    pub text: String,
}

/// A counter with its value, the sum over all CPUs.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Counter {
    /// Name; its last part is the unit where it is not a mere count.
    pub name: String,
    /// What it counts; empty where the object does not say.
    pub text: String,
    /// Value since the scheduler was loaded.
    pub value: u64,
}

/// What an object says of itself.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Description {
    /// Name of the scheduler (`sched_ext_ops.name`).
    pub name: String,
    /// What can be set.
    pub options: Vec<OptionInfo>,
    /// What it counts; empty if it has no map `stats`.
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

/// Makes the calling thread one that a scheduler cannot hold up: real-time, above sched_ext. Who
/// watches a scheduler that gives the CPU to nobody else must still run. Gives whether it worked.
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
