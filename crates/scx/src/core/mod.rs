// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sched_ext core, modelled as one more scheduling class.
//!
//! A scheduler is an [`Ops`]; the core calls it as the kernel would and offers it the kernel's
//! functions ([`Kernel`]). See docs/internals/sched-ext.md.

pub mod consts;
mod dispatch;
mod dsq;
pub mod entity;
mod idle;
pub mod kernel;
mod kfuncs;
pub mod ops;
pub mod options;
mod state;
mod task;
mod watchdog;

pub use consts::ExitKind;
pub use entity::Entity;
pub use kernel::Kernel;
pub use kfuncs::DsqIter;
pub use ops::{
    Callback, Callbacks, CgroupInitArgs, ExitInfo, InitTaskArgs, Ops, OpsFault, OpsInfo, OpsResult,
};
pub use options::{CoreVersion, ExtOptions, OnError};
pub use state::{Events, ExtState};
