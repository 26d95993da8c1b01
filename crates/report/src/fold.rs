// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a page that stay packed until a reader wants them: closed sections, pictures out of
//! view, rows after the first ones. The browser thus parses and lays out only what it shows, and a
//! page of thousands of rows opens at once. `unfold` in assets/data.js unpacks them.

use crate::embed::packed_bytes;

/// HTML shorter than this, in bytes, stays unpacked, because unpacking it would cost more.
const PACKED_MIN: usize = 8 << 10;

/// A script element that holds packed `html`. It has the class `packed` and `class`.
pub fn packed(class: &str, html: &str) -> String {
    let text = packed_bytes(html.as_bytes());
    format!("<script type=\"text/plain\" class=\"{class} packed\">{text}</script>")
}

/// `html`, packed if it is long enough.
pub fn packed_if_long(class: &str, html: String) -> String {
    match html.len() < PACKED_MIN {
        true => html,
        false => packed(class, &html),
    }
}

/// A part that opens with a click on `summary`. `attributes` go into its tag, such as ` id="x"`.
/// All three arguments are HTML.
pub fn folded(attributes: &str, summary: &str, html: String) -> String {
    format!(
        "<details{attributes}><summary>{summary}</summary>\n{}</details>\n",
        packed_if_long("fold", html)
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::embed::tests::unpacked_bytes;

    /// `html` with all packed parts unpacked, as a browser finally shows it.
    pub fn unfolded(html: &str) -> String {
        let mut out = String::new();
        let mut rest = html;
        while let Some(at) = rest.find("<script type=\"text/plain\"") {
            out += &rest[..at];
            let from = at + rest[at..].find('>').unwrap() + 1;
            let to = from + rest[from..].find("</script>").unwrap();
            let text = String::from_utf8(unpacked_bytes(&rest[from..to])).unwrap();
            out += &unfolded(&text);
            rest = &rest[to + "</script>".len()..];
        }
        out + rest
    }

    #[test]
    fn long_parts_are_packed_and_come_back() {
        let short = folded(" id=\"x\"", "head", "<p>a</p>".into());
        assert_eq!(short, "<details id=\"x\"><summary>head</summary>\n<p>a</p></details>\n");
        let html = "<p>\u{b5}</p>".repeat(2000);
        let long = folded("", "head", html.clone());
        assert!(long.len() < 1000 && long.contains("class=\"fold packed\""), "{long}");
        assert_eq!(
            unfolded(&long),
            format!("<details><summary>head</summary>\n{html}</details>\n")
        );
    }
}
