// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: sinks that write or check the event stream as it passes, and the reader of the project's
//! own log.
//!
//! Every sink works in constant memory (plus a few words a task). A sink that writes cannot report
//! an error from `event`; it remembers the first one, writes nothing more, and returns it from
//! `finish`. The core builds for wasm32. Behind the cargo feature `parquet`: the [`parquet`] sink.

pub mod binary;
pub mod check;
mod error;
pub mod export;
pub mod ftrace;
pub mod input;
mod names;
pub mod ndjson;
pub mod perfetto;
pub mod slices;
pub mod synthetic;
pub mod text;
mod varint;

#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "parquet")]
pub mod parquet_table;

pub use binary::{BinarySink, Reader, Record};
pub use check::{TraceCheck, Violation};
pub use error::{Place, ReadError};
pub use export::{EXPORTERS, Exporter};
pub use ftrace::FtraceSink;
pub use input::InputFormat;
pub use ndjson::NdjsonSink;
pub use perfetto::PerfettoSink;
pub use slices::{Slice, SliceEnd, SliceSink, SliceTracker};
pub use text::{Dialect, Facts, WakeSource};
