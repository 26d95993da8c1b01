// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both kinds of golden files have in common: a format's name, entries of which one at most is
//! compared with a run, and the names of the tasks that their collectors keep.

use schedlab_model::TaskId;
use schedlab_model::trace::TaskInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a run is compared with.
pub trait GoldenEntry: Serialize + DeserializeOwned {
    /// What a file of them says of itself.
    const FORMAT: &'static str;
    /// What it holds, for errors.
    const HOLDS: &'static str;

    /// Whether `found` is to be compared with it.
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

    /// The entry with which `found` is to be compared.
    pub fn find(&self, found: &E) -> Option<&E> {
        self.entries.iter().find(|entry| entry.is_for(found))
    }
}

/// Names of a trace's tasks, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// A task of the trace.
    pub fn set(&mut self, id: TaskId, info: &TaskInfo) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, String::from("?"));
        }
        self.0[id.index()].clone_from(&info.name);
    }

    /// Its name; `?` if the trace did not tell it.
    pub fn get(&self, id: TaskId) -> &str {
        self.0.get(id.index()).map_or("?", String::as_str)
    }
}
