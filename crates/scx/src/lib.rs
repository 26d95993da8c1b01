// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core of sched_ext, modelled as a scheduling class.
//!
//! A scheduler implements [`Ops`]. The core calls it as the kernel would, and offers it the
//! kernel's functions ([`Kernel`]). See docs/internals/sched-ext.md.

mod balance;
mod class;
pub mod consts;
mod dispatch;
mod dsq;
mod enqueue;
pub mod entity;
mod explain;
mod ext;
mod idle;
pub mod inspect;
pub mod kernel;
mod kfuncs;
mod kick;
mod life;
mod notes;
pub mod ops;
pub mod options;
mod rules;
mod run;
mod stack;
mod state;
mod task;
mod user;
mod watchdog;

pub use class::ExtClass;
pub use consts::ExitKind;
pub use entity::Entity;
pub use kernel::Kernel;
pub use kfuncs::DsqIter;
pub use ops::{
    Callback, Callbacks, CgroupInitArgs, ExitInfo, InitTaskArgs, Locator, Ops, OpsFault, OpsInfo,
    OpsResult, UserWait,
};
pub use options::{ExtOptions, OnError};
pub use rules::{CORES, CoreRules};
pub use schedlab_sched::boundary::options::SCX_CORE;
pub use stack::{named, scheduler, stack, stack_checked};
pub use state::{Events, ExtState};
