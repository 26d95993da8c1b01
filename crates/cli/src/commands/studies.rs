// SPDX-License-Identifier: MIT OR Apache-2.0
//! The studies that come with the program, and those in files.

use crate::error::{CliError, CliResult};
use crate::input;
use schedlab_lab::Study;
use std::path::PathBuf;

/// Studies as text, compiled in so that the program needs no other file.
const BUILT_IN: [&str; 2] =
    [include_str!("../../../../studies/S0.toml"), include_str!("../../../../studies/S1.toml")];

/// Largest study file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The studies that come with the program.
pub fn built_in() -> CliResult<Vec<Study>> {
    BUILT_IN.iter().map(|text| Ok(Study::parse(text)?)).collect()
}

/// The studies in these files; without any, the built-in ones.
pub fn read(paths: &[PathBuf]) -> CliResult<Vec<Study>> {
    if paths.is_empty() {
        return built_in();
    }
    let read_one = |path: &PathBuf| {
        let text = input::read_text(path, FILE_BYTES_MAX)?;
        Study::parse(&text).map_err(|error| {
            CliError::usage_help(
                format!("{}: {error}", path.display()),
                "the studies of the project, in the directory `studies`, are examples",
            )
        })
    };
    paths.iter().map(read_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_studies_can_be_read() {
        let names: Vec<String> = built_in().unwrap().into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["S0", "S1"]);
    }
}
