// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of both kinds of golden files: the name of the format, entries of which at most
//! one is compared with a run, and the names of tasks.

use schedlab_model::TaskId;
use schedlab_model::trace::TaskInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An entry that runs are compared with.
pub trait GoldenEntry: Serialize + DeserializeOwned {
    /// Name of the format in the file.
    const FORMAT: &'static str;
    /// What the file contains, for errors.
    const HOLDS: &'static str;

    /// Whether `found` is compared with this entry.
    fn is_for(&self, found: &Self) -> bool;
}

/// A file of goldens of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "E: GoldenEntry")]
pub struct GoldenFile<E: GoldenEntry> {
    /// [`GoldenEntry::FORMAT`].
    pub format: String,
    /// Entries.
    pub entries: Vec<E>,
}

impl<E: GoldenEntry> Default for GoldenFile<E> {
    fn default() -> Self {
        Self { format: E::FORMAT.into(), entries: Vec::new() }
    }
}

impl<E: GoldenEntry> GoldenFile<E> {
    /// Reads a file's text.
    pub fn read(text: &str) -> Result<Self, String> {
        let file: Self = serde_json::from_str(text)
            .map_err(|error| format!("it is no file of {}: {error}", E::HOLDS))?;
        if file.format != E::FORMAT {
            return Err(format!("its format is {:?}, known is {:?}", file.format, E::FORMAT));
        }
        Ok(file)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The entry that `found` is compared with.
    pub fn find(&self, found: &E) -> Option<&E> {
        self.entries.iter().find(|entry| entry.is_for(found))
    }
}

/// Names of a trace's tasks, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Sets the name of a task.
    pub fn set(&mut self, id: TaskId, info: &TaskInfo) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, String::from("?"));
        }
        self.0[id.index()].clone_from(&info.name);
    }

    /// The name of a task; `?` if the trace has none.
    pub fn get(&self, id: TaskId) -> &str {
        self.0.get(id.index()).map_or("?", String::as_str)
    }
}
