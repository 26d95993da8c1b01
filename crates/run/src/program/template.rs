// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words with `{name}` in them.
//!
//! The result is executed, so the rules are strict: a name without a value and a single brace are
//! errors. `{{` and `}}` are braces.

use schedlab_model::suggest::nearest;
use std::collections::BTreeMap;

/// Name of the run's private directory.
pub const DIR: &str = "dir";
/// Name of a number that no other run has at the same time.
pub const NUMBER: &str = "number";

/// Replaces the names in `text` by their values.
pub fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = after;
            continue;
        }
        let inside = rest.split_once('}').filter(|_| brace == "{");
        let Some((name, after)) = inside else {
            return Err(format!(
                "{text:?} has a {brace:?} without its pair: write {brace}{brace} for the sign"
            ));
        };
        let value = values.get(name).ok_or_else(|| unknown(text, name, values))?;
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn unknown(text: &str, name: &str, values: &BTreeMap<String, String>) -> String {
    let known: Vec<&str> = values.keys().map(String::as_str).collect();
    let guess = nearest(name, known.iter().copied())
        .map_or_else(String::new, |word| format!(": did you mean {{{word}}}?"));
    format!("{text:?} names {name:?}{guess}; values have {}", known.join(", "))
}
