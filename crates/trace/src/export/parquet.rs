// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parquet tables.

use super::{ExportSink, Exporter, Files, Output, TraceContext};
use crate::parquet::ParquetSink;
use crate::parquet_table::io_error;
use std::io;

/// The extension of the file with the tasks: `run.tasks.parquet` next to `run.parquet`.
pub const TASKS_ENDING: &str = "tasks.parquet";

/// [`crate::parquet`].
pub struct Parquet;

impl Exporter for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["parquet"]
    }

    fn summary(&self) -> &'static str {
        "Parquet: a table of events, and one of tasks beside it"
    }

    fn second_file(&self) -> Option<&'static str> {
        Some(TASKS_ENDING)
    }

    fn sink(&self, files: Files, _context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        let tasks = files.second.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Box::new(ParquetSink::new(files.first, tasks).map_err(io_error)?))
    }
}

impl ExportSink for ParquetSink<Box<dyn Output>> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        let (events, tasks) = self.finish().map_err(io_error)?;
        tasks.commit()?;
        events.commit()
    }
}
