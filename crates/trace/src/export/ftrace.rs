// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text format of the kernel's ftrace.

use super::{ExportSink, Exporter, Files, Output, TraceContext};
use crate::FtraceSink;
use std::io;

/// [`crate::ftrace`].
pub struct Ftrace;

impl Exporter for Ftrace {
    fn name(&self) -> &'static str {
        "ftrace"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["ftrace", "txt"]
    }

    fn summary(&self) -> &'static str {
        "ftrace text: that of the kernel's tracefs"
    }

    fn sink(&self, files: Files, context: &TraceContext) -> io::Result<Box<dyn ExportSink>> {
        let sink = FtraceSink::new(files.first).with_prio(context.priorities.clone());
        Ok(Box::new(sink.with_cpus(context.nr_cpus)))
    }
}

impl ExportSink for FtraceSink<Box<dyn Output>> {
    fn commit(self: Box<Self>) -> io::Result<()> {
        self.finish()?.commit()
    }
}
