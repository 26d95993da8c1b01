// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts: what can be read instead of measured, for claims about code, words and definitions.

use super::Answer;
use schedlab_run::StudyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that was read, with the place where everybody can read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What was found, in a sentence with its full stop.
    pub found: String,
    /// Where it can be read: the file and function of a kernel with its version, or of a program.
    pub source: String,
    /// Whether the claim holds by it.
    pub holds: bool,
}

impl Fact {
    /// What it answers.
    pub const fn answer(&self) -> Answer {
        if self.holds { Answer::Holds } else { Answer::Fails }
    }

    /// Refuses a fact that says nothing, or that nobody can look up.
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
