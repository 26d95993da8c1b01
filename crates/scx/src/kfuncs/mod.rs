// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that sched_ext offers to schedulers (kfuncs), as methods of
//! [`Kernel`](crate::kernel::Kernel).
//!
//! Source: Linux kernel/sched/ext.c and ext_idle.c, 6.18. Names are those of 6.13 and later without
//! `scx_bpf_`. Values are those of C: negative error numbers, `bool`, counts. A wrong use is an
//! error of the scheduler. It is recorded, the function has only the effect that its documentation
//! describes, the callback continues, and the scheduler is ejected after it.

mod cpus;
mod errors;
mod idle;
mod insert;
mod iter;
pub use iter::DsqIter;
mod queues;
