// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own trace log: a compact stream, written and read in constant memory.
//!
//! Layout (docs/reference/trace-format.md has it byte by byte): a 16-byte header, then records of
//! one tag byte and varints. Times are deltas; a field that follows from the records before it (the
//! CPU of the last event, the task that ran on a CPU) is left out. About five bytes an event, a
//! third of a fixed 16-byte record, and the shorter file makes up for the encoding: `cargo run
//! --release -p schedlab-metrics --example trace_speed` measures both.
//! Left out: compression and an index. The log is meant to be read once, from front to back.

mod read;
mod write;

pub use read::{Reader, Record};
pub use write::BinarySink;

/// First bytes of a log. They are not text, and a transfer that treats the file as text damages
/// them.
pub const MAGIC: [u8; 8] = *b"\x89SLT\r\n\x1a\n";
/// Version of the layout that is written.
pub const VERSION: u16 = 2;
/// Oldest version that is read. Version 1 has neither objects nor blocks.
pub const VERSION_MIN: u16 = 1;
/// Length of the header.
pub const HEADER_LEN: usize = 16;
/// Longest name of a task or object in bytes.
pub const NAME_MAX: usize = 4096;

/// Kinds of record: bits 0 to 2 of the tag.
mod kind {
    pub const CONTROL: u8 = 0;
    pub const SWITCH: u8 = 1;
    pub const WAKEUP: u8 = 2;
    pub const FORK: u8 = 3;
    pub const MIGRATE: u8 = 4;
    pub const EXIT: u8 = 5;
    pub const MARK: u8 = 6;
}

/// Bit 3 of an event's tag: it happened on the CPU of the event before.
const SAME_CPU: u8 = 1 << 3;
/// Bit 7 of a switch's tag: `prev` is the task that ran on the CPU.
const PREV_IMPLIED: u8 = 1 << 7;
/// Bit 4 of a wake-up's or fork's tag: no waker, no parent.
const NO_WAKER: u8 = 1 << 4;
/// Bit 5 of a wake-up's or fork's tag: the waker or parent is the running task of the event's CPU.
const WAKER_IMPLIED: u8 = 1 << 5;

/// Control records: the whole tag.
mod control {
    pub const TASK: u8 = 1 << 3;
    pub const END: u8 = 2 << 3;
    pub const OBJECT: u8 = 3 << 3;
}

/// Marks: bits 4 and 5 of the tag.
mod mark {
    pub const PHASE: u8 = 0;
    pub const PROGRESS: u8 = 1 << 4;
    pub const LOST: u8 = 2 << 4;
    pub const BLOCK: u8 = 3 << 4;
}

#[cfg(test)]
mod tests;
