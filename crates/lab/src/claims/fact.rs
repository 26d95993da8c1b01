// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts for claims about code, words and definitions: read instead of measured.

use super::Answer;
use schedlab_run::StudyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fact that was read, with its public source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What was found, as a sentence with its full stop.
    pub found: String,
    /// Where to read it: file and function of a kernel with its version, or of a program.
    pub source: String,
    /// Whether the fact confirms the claim.
    pub holds: bool,
}

impl Fact {
    /// The fact's answer to the claim.
    pub const fn answer(&self) -> Answer {
        if self.holds { Answer::Holds } else { Answer::Fails }
    }

    /// Refuses a fact without a text or without a source.
    pub(super) fn check(&self) -> Result<(), StudyError> {
        for (name, text) in [("found", &self.found), ("source", &self.source)] {
            if text.trim().is_empty() {
                let help = "give what was found, and the file and function where it can be read";
                return Err(StudyError::new(format!("`{name}` is empty"), help).below(name));
            }
        }
        Ok(())
    }
}
