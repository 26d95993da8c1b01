// SPDX-License-Identifier: MIT OR Apache-2.0
//! Perfetto's protobuf.

use super::{ExportSink, Exporter, Files, Output, TraceContext};
use crate::PerfettoSink;
use std::io;

/// [`crate::perfetto`].
pub struct Perfetto;

impl Exporter for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["pftrace", "perfetto-trace"]
    }

    fn summary(&self) -> &'static str {
        "Perfetto: opens in ui.perfetto.dev"
    }

    fn sink(&self, files: Files, context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        let sink = PerfettoSink::new(files.first)
            .with_prio(context.priorities.clone())
            .with_phases(context.phases.clone())
            .with_counters(context.has_counters);
        Ok(Box::new(sink))
    }
}

impl ExportSink for PerfettoSink<Box<dyn Output>> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        self.finish()?.commit()
    }
}
