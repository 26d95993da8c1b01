// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words every other crate shares: time, ids, task attributes, programs, machine, trace events.
//!
//! This crate depends on nothing but the standard library (feature `borsh` adds derived binary
//! encodings), reads no file, clock or environment, and uses no floating point:
//! the same input gives the same bytes on every machine.

pub mod arrivals;
pub mod attr;
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
pub use workload::{CgroupSpec, CpuMax, Release, TaskSpec, Workload};
