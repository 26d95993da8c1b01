// SPDX-License-Identifier: MIT OR Apache-2.0
//! Escapes text from data for HTML, SVG and script elements.
//!
//! Task names, kernel strings and titles are hostile: a task may be called `</script>`. Every
//! string that comes from data passes through one of these functions.

use serde::Serialize;

/// Escapes `text` for an element's content or a double-quoted attribute. HTML forbids control
/// characters other than line feed and tab; they become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// `value` as JSON for a `<script type="application/json">` element. The result has no `<`, `>` or
/// `&`, so neither `</script>` nor `<!--` can occur.
pub fn json_in_script<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(value)?;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Makes a part of an element id or file name from `text`: lower case ASCII letters, digits and
/// `-`, 1 to 48 characters.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() == 48 {
            break;
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "experiment".to_string() } else { out.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(escape("<b a=\"x\">'&"), "&lt;b a=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(escape("a\u{0}b\u{1b}c"), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn json_never_closes_its_script_element() {
        let json = json_in_script(&["</script><!-- & \u{2028}"]).unwrap();
        assert!(!json.contains(['<', '>', '&', '\u{2028}']));
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, ["</script><!-- & \u{2028}"]);
    }

    #[test]
    fn slugs_are_safe_file_names() {
        assert_eq!(slug("S0: 1 CPU, 4 hogs"), "s0-1-cpu-4-hogs");
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug("\u{4e2d}"), "experiment");
        assert!(slug(&"x".repeat(500)).len() <= 48);
    }
}
