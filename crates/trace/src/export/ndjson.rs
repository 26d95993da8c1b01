// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON lines.

use super::{ExportSink, Exporter, Files, Output, TraceContext};
use crate::NdjsonSink;
use std::io;

/// [`crate::ndjson`].
pub struct Ndjson;

impl Exporter for Ndjson {
    fn name(&self) -> &'static str {
        "ndjson"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["ndjson", "jsonl"]
    }

    fn summary(&self) -> &'static str {
        "JSON lines: one object a line"
    }

    fn sink(&self, files: Files, _context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        Ok(Box::new(NdjsonSink::new(files.first)))
    }
}

impl ExportSink for NdjsonSink<Box<dyn Output>> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        self.finish()?.commit()
    }
}
