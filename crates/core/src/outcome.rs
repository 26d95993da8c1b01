// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of a request, and the digest by which two outcomes are compared.

use crate::Columns;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, Nanos, ObjectId, TaskId, TraceSink};
use schedlab_run::RunResult;
use schedlab_run::sha::{hex, sha256};
use schedlab_trace::BinarySink;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};

/// What a request gives.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The result, with measures and warnings, as `schedlab sim --json` prints it.
    pub result: RunResult,
    /// Slices, states, queues and progress, as far as the request keeps them.
    pub columns: Columns,
    /// Remarks that the command line prints on stderr, such as which name an alias stands for.
    pub notes: Vec<String>,
    /// The digest, if the request keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// SHA-256 of a run, in hexadecimal digits. Equal runs have equal digests on every machine, native
/// or in wasm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Digest {
    /// Of the text that `schedlab sim --json` prints.
    pub result: String,
    /// Of the file that `schedlab sim --trace FILE.slt` writes.
    pub events: String,
}

impl Outcome {
    /// The text that `schedlab sim --json` prints for the run.
    pub fn result_json(&self) -> String {
        json(&self.result)
    }
}

/// `value` as the command line prints JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("results have text keys only");
    text + "\n"
}

/// Writes into a hash.
#[derive(Default)]
struct Hashed(Sha256);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sink that computes the digest of all events, if the request wants it.
pub(crate) struct EventHash(Option<BinarySink<Hashed>>);

impl EventHash {
    /// A sink for a run on `nr_cpus` CPUs.
    pub fn new(wanted: bool, nr_cpus: u32) -> Self {
        Self(wanted.then(|| BinarySink::new(Hashed::default(), nr_cpus)))
    }

    /// The digest of the events and of `result`.
    pub fn finish(self, result: &RunResult) -> io::Result<Option<Digest>> {
        let Some(sink) = self.0 else { return Ok(None) };
        let events = hex(&sink.finish()?.0.finalize());
        Ok(Some(Digest { result: sha256(json(result).as_bytes()), events }))
    }
}

impl TraceSink for EventHash {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        if let Some(sink) = &mut self.0 {
            sink.task(id, info);
        }
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        if let Some(sink) = &mut self.0 {
            sink.object(id, info);
        }
    }

    fn event(&mut self, event: &Event) {
        if let Some(sink) = &mut self.0 {
            sink.event(event);
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        if let Some(sink) = &mut self.0 {
            sink.end(end_ns);
        }
    }
}
