// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that all other crates share: time, ids, task attributes, programs, machines, trace
//! events.
//!
//! This crate depends only on the standard library (its feature `borsh` adds binary encodings). It
//! reads no file, clock or environment and uses no floating point, so the same input gives the same
//! bytes on every machine.

pub mod arrivals;
pub mod attr;
pub mod comm;
pub mod cpumask;
pub mod expect;
pub mod ids;
pub mod interpreter;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod objects;
pub mod program;
pub mod random;
pub mod suggest;
pub mod time;
pub mod trace;
pub mod weights;
pub mod workload;

pub use arrivals::Arrival;
pub use attr::{DeadlineParams, Policy, SchedAttr};
pub use comm::Comm;
pub use cpumask::CpuMask;
pub use expect::{Comparison, Expectation, Subject};
pub use ids::{CgroupId, CpuId, ObjectId, TaskId};
pub use interpreter::Interpreter;
pub use kernel::{Kernel, KernelVersion};
pub use machine::{Costs, Machine, Preempt, Topology};
pub use memory::Memory;
pub use objects::{ChannelKind, MutexProtocol, ObjectKind, ObjectSpec};
pub use program::{Amount, LoopCount, MemAccess, MemPattern, Op, Program, Step, TimerMode};
pub use time::Nanos;
pub use trace::{Event, EventKind, SwitchOut, TraceSink};
pub use workload::{CgroupSpec, Change, CpuMax, Release, TaskSpec, Workload};
