// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that sched_ext offers to schedulers (kfuncs), as methods of
//! [`Kernel`](crate::kernel::Kernel).
//!
//! Source: Linux kernel/sched/ext.c and ext_idle.c, 6.18. Names are those of 6.13 and later without
//! `scx_bpf_`; values are C's: negative error numbers, `bool`, counts. A misuse is an error of the
//! scheduler: it is recorded, the function has no effect beyond what its documentation says, the
//! callback goes on, and the scheduler is ejected when the core is done with it.

mod cpus;
mod errors;
mod idle;
mod insert;
mod iter;
pub use iter::DsqIter;
mod queues;
