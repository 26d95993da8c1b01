// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder: from the kernel's rings and the tasks' own marks to the model's events.
//!
//! `bpf` loads the programs of bpf/recorder.bpf.c. `ring` reads what they write. `drain` is the
//! thread that empties the rings on a timer. `merge` brings the sources into one order of time.
//! `reorder` accepts events that become known late. `convert` turns pids into task numbers (`pids`)
//! and records into events, and adds up run delays to compare them with the kernel's own counters.
//! docs/internals/recorder.md explains it in full.

#[cfg(schedlab_bpf)]
pub mod bpf;
pub mod convert;
#[cfg(schedlab_bpf)]
pub mod drain;
pub mod merge;
pub mod pids;
pub mod reorder;
pub mod ring;
