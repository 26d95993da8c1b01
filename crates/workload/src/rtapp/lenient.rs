// SPDX-License-Identifier: MIT OR Apache-2.0
//! Members without a value, which occur in rt-app's example files: `"suspend",`.
//!
//! Source: rt-app's doc/workgen, which fills in such members before rt-app reads the file. Here the
//! text gets `:null` after the key. Offsets are mapped back, so messages name places of the
//! original file. Each event decides what a missing value means.

use std::borrow::Cow;

/// Inserted after a key without a value.
const FILLER: &str = ":null";

/// A text in which every member has a value.
pub(crate) struct Filled<'t> {
    /// The text to parse.
    pub text: Cow<'t, str>,
    /// Offsets in the original text at which [`FILLER`] was inserted, ascending.
    at: Vec<usize>,
}

impl<'t> Filled<'t> {
    /// Inserts the missing values. Text that is not JSON stays invalid.
    pub fn new(text: &'t str) -> Self {
        let at = keys_without_value(text.as_bytes());
        if at.is_empty() {
            return Self { text: Cow::Borrowed(text), at };
        }
        let mut filled = String::with_capacity(text.len() + at.len() * FILLER.len());
        let mut from = 0;
        for &offset in &at {
            filled.push_str(&text[from..offset]);
            filled.push_str(FILLER);
            from = offset;
        }
        filled.push_str(&text[from..]);
        Self { text: Cow::Owned(filled), at }
    }

    /// The text without any change.
    pub fn as_it_is(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), at: Vec::new() }
    }

    /// Maps an offset of the filled text to the original text.
    pub fn original(&self, offset: usize) -> usize {
        // The n-th filler begins at its original offset plus the length of those before it.
        let (mut low, mut high) = (0, self.at.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.at[middle] + middle * FILLER.len() < offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        match low.checked_sub(1) {
            None => offset,
            Some(last) => (offset - low * FILLER.len()).max(self.at[last]),
        }
    }
}

/// What a scan expects next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// A key of the innermost object.
    Key,
    /// A colon after the key that ended at this offset, or the end of the member.
    Colon(usize),
    /// Anything else.
    Value,
}

/// Ends of keys that are followed by a comma or a brace instead of a colon.
fn keys_without_value(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_object: Vec<bool> = Vec::new();
    let mut expects = Expects::Value;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(end) = comment_end(bytes, at) {
            at = end;
            continue;
        }
        if let (Expects::Colon(end), b',' | b'}') = (expects, byte) {
            found.push(end);
        }
        at += 1;
        expects = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => expects,
            b'"' => match string_end(bytes, at) {
                // A string without an end is for the parser to report.
                None => return found,
                Some(end) => {
                    at = end;
                    if expects == Expects::Key { Expects::Colon(end) } else { Expects::Value }
                }
            },
            b'{' | b'[' => {
                is_object.push(byte == b'{');
                if byte == b'{' { Expects::Key } else { Expects::Value }
            }
            b'}' | b']' => {
                is_object.pop();
                Expects::Value
            }
            b',' if is_object.last() == Some(&true) => Expects::Key,
            _ => Expects::Value,
        };
    }
    found
}

/// The end of the comment that begins at `at`, if one does.
fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        return Some(at + line);
    }
    if !rest.starts_with(b"/*") {
        return None;
    }
    let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
    Some(at + end.map_or(rest.len(), |end| end + 4))
}

/// The offset after the closing quote of a string whose content begins at `at`, if it has one on
/// its line.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            b'\n' => return None,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> String {
        Filled::new(text).text.into_owned()
    }

    #[test]
    fn only_members_without_a_value_are_filled() {
        assert_eq!(fill(r#"{ "a", "b" : 1, "c" }"#), r#"{ "a":null, "b" : 1, "c":null }"#);
        assert_eq!(
            fill("{\"a\" /* , */ , \"b\"// }\n}"),
            "{\"a\":null /* , */ , \"b\":null// }\n}"
        );
        for text in [
            r#"{ "a": ["b", "c"], "d": { "e": "f" }, }"#,
            r#"["a", "b"]"#,
            r#"{ "a": "x\", }", "b": "\\" }"#,
            "{ \"a\": 1 /* \"b\", */ }",
            "\"a\", \"b\"",
            "{ \"a\n, }",
            "/* \"",
            "{ \"\\",
        ] {
            assert_eq!(fill(text), text);
        }
    }

    #[test]
    fn places_are_those_of_the_file() {
        let text = "{ \"a\", \"bc\", \"d\": 5 }";
        let filled = Filled::new(text);
        for (offset, c) in filled.text.char_indices() {
            let original = filled.original(offset);
            if text[original..].starts_with(c) {
                continue;
            }
            assert!(FILLER.contains(c), "{offset} {original} {c}");
        }
        let five = filled.text.find('5').unwrap();
        assert_eq!(filled.original(five), text.find('5').unwrap());
        assert_eq!(filled.original(filled.text.len()), text.len());
        assert_eq!(filled.original(0), 0);
    }
}
