// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler boundary, and every scheduler.
//!
//! A scheduler is a stack of scheduling classes ([`SchedClass`]) in order of priority, as in
//! Linux kernel/sched/. A class sees the shared state of the modelled kernel ([`Core`]) and never
//! the engine that drives it. [`registry`] is the only list of schedulers.

pub mod balance;
pub mod balance_2_6;
pub mod class;
pub mod core;
pub mod deadline;
pub mod domains;

pub mod explain;
pub mod fair;
pub mod fcfs;
pub mod flags;
pub mod hrtick;
pub mod linux_2_4;
pub mod linux_2_6;
pub mod linux_2_6_23;
pub mod linux_2_6_24;
pub mod linux_6_1;
pub mod linux_6_12;
pub mod lottery;
pub mod mlfq;
pub mod multilevel;
pub mod options;
pub mod priority;
pub mod registry;
pub mod rr;
pub mod rt;
pub mod rt_2_6;
pub mod sjf;
pub mod staircase;
pub mod stride;
#[cfg(test)]
mod testing;
pub mod textbook;
pub mod textbook_pool;
pub mod textbook_rules;
pub mod tunable_names;
pub mod vtime;
pub mod weights;
pub mod wmult;
pub mod wrr;

pub use class::{BandwidthStats, SchedClass};
pub use core::{Core, LockDomain, PreemptCheck, Rq, Task, TaskState, TimerRequest};
pub use flags::{DequeueFlags, EnqueueFlags, WakeFlags, WakeKind};
pub use options::{OptionError, Options, Tunable, TunableKind};
pub use registry::{Claims, SchedulerInfo};
