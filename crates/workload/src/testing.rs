// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers of this crate's tests.

/// The text in lines of at most 82 columns, so that snapshots stay readable.
pub(crate) fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 82 {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
