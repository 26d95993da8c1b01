// SPDX-License-Identifier: MIT OR Apache-2.0
//! schedlab's own log.

use super::{ExportSink, Exporter, Files, Output, TraceContext};
use crate::BinarySink;
use std::io;

/// [`crate::binary`].
pub struct Slt;

impl Exporter for Slt {
    fn name(&self) -> &'static str {
        "slt"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["slt"]
    }

    fn summary(&self) -> &'static str {
        "log: schedlab's own, short and quick to read"
    }

    fn sink(&self, files: Files, context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        Ok(Box::new(BinarySink::new(files.first, context.nr_cpus)))
    }
}

impl ExportSink for BinarySink<Box<dyn Output>> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        self.finish()?.commit()
    }
}
