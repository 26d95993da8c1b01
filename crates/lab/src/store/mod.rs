// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results on disk: a directory holds the runs of one experiment file, and what is made of them.
//!
//! `sweep` is an experiment file made into a plan with the key of each run; `folder` guards the
//! directory, `log` holds its runs, `manifest` describes it so that it can be repeated, `repeat`
//! compares the repetition with it; `export` writes tables.

pub mod export;
pub mod folder;
pub mod log;
pub mod manifest;
pub mod repeat;
pub mod sweep;

pub use export::NamedTable;
pub use folder::{Begin, Folder};
pub use log::{LOG_NAME, RunLog};
pub use manifest::Manifest;
pub use sweep::{Settings, Sweep};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what threads share. One that panicked has left nothing half done: a line of the log is
/// written whole, everything else is replaced at once.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
