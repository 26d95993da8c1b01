// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name of a workload: a built-in with parameters (`hogs:n=4,work=1s`), or the path of a file.

use std::path::Path;

/// The name of a workload, as a user writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadName<'t> {
    /// A built-in with parameters.
    Builtin(&'t str, Vec<(&'t str, &'t str)>),
    /// The path of a file.
    File(&'t Path),
}

impl<'t> WorkloadName<'t> {
    /// Distinguishes files from built-ins: text that ends in `.json` or contains a `/` is a path.
    pub fn parse(text: &'t str) -> Result<Self, NotAPair> {
        let is_path = text.contains('/') || text.to_ascii_lowercase().ends_with(".json");
        if is_path {
            return Ok(Self::File(Path::new(text)));
        }
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let pairs = split_parameters(parameters).into_iter().map(|text| pair("--param", text));
        Ok(Self::Builtin(name, pairs.collect::<Result<_, _>>()?))
    }
}

/// The text is not of the form `name=value`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{option} is {text:?}")]
pub struct NotAPair {
    option: String,
    text: String,
}

impl NotAPair {
    /// The form to write instead.
    pub fn help(&self) -> String {
        format!("write NAME=VALUE, as in {} n=4", self.option)
    }
}

/// Splits `name=value`, which is the value of `option`.
pub fn pair<'t>(option: &str, text: &'t str) -> Result<(&'t str, &'t str), NotAPair> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(NotAPair { option: option.into(), text: text.into() }),
    }
}

/// Splits `n=4,nice=0,5,work=1s` before each part with a `=`, because values may contain commas.
fn split_parameters(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, _) in text.match_indices(',') {
        let rest = &text[index + 1..];
        let next = rest.split(',').next().unwrap_or_default();
        if next.contains('=') || next.is_empty() {
            parts.push(&text[start..index]);
            start = index + 1;
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_may_hold_commas() {
        assert_eq!(split_parameters("n=4,nice=0,5,work=1s"), ["n=4", "nice=0,5", "work=1s"]);
        assert_eq!(split_parameters(""), [""; 0]);
        assert_eq!(split_parameters("cpus=0,2"), ["cpus=0,2"]);
    }

    #[test]
    fn files_are_told_from_builtins() {
        let name = |text| WorkloadName::parse(text);
        assert_eq!(name("hogs:n=4"), Ok(WorkloadName::Builtin("hogs", vec![("n", "4")])));
        assert_eq!(name("a.json"), Ok(WorkloadName::File(Path::new("a.json"))));
        assert_eq!(name("./hogs"), Ok(WorkloadName::File(Path::new("./hogs"))));
        let error = name("hogs:4").unwrap_err();
        assert_eq!(error.to_string(), "--param is \"4\"");
        assert_eq!(error.help(), "write NAME=VALUE, as in --param n=4");
    }
}
