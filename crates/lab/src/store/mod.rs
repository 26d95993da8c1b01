// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results on disk: a directory holds the runs of one experiment file and the files made from them.
//!
//! `sweep` is an experiment file as a plan, with the key of each run. `folder` guards the
//! directory, `log` holds its runs, `manifest` describes it so that it can be repeated. `repeat`
//! compares a repetition with it; `export` writes tables.

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

/// Locks data that threads share. A thread that panicked cannot leave partial data: log lines are
/// written whole, everything else is replaced at once.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
