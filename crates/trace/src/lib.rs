// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: sinks that write or check a stream of events, and readers.
//!
//! Every sink uses constant memory (plus a few words per task). A sink that writes cannot report an
//! error from `event`: it keeps the first one, writes nothing more, and returns it from `finish`.
//! The crate builds for wasm32. The cargo feature `parquet` adds the sink [`parquet`].

pub mod binary;
pub mod check;
mod error;
pub mod export;
pub mod ftrace;
pub mod input;
mod kernel;
mod names;
pub mod ndjson;
pub mod perf_data;
pub mod perfetto;
pub mod slices;
pub mod synthetic;
pub mod text;
pub mod trace_dat;
mod tracepoint;
mod varint;
pub mod window;

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
pub use kernel::{Dialect, Facts, WakeSource};
pub use ndjson::NdjsonSink;
pub use perfetto::PerfettoSink;
pub use slices::{Slice, SliceEnd, SliceSink, SliceTracker};
pub use window::Window;
