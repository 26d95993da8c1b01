// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the prose of pages, studies and Rust sources.

use proc_macro2::{TokenStream, TokenTree};
use std::str::FromStr;
use toml::de::{DeTable, DeValue};

/// A paragraph, an item of a list, a heading or a cell of a table.
pub struct Block {
    /// Its lines, joined by one blank. Backticks replace code, targets of links and addresses.
    pub text: String,
    /// Offset and line number of each line.
    lines: Vec<(usize, usize)>,
}

impl Block {
    /// The line at an offset of the text.
    pub fn line(&self, at: usize) -> usize {
        self.lines.iter().rev().find(|(begin, _)| *begin <= at).map_or(0, |(_, line)| *line)
    }
}

/// Which strings of a Rust source are prose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    /// Docstrings only.
    Docstrings,
    /// Docstrings and all other strings, as in the definition of a command line.
    All,
}

/// Keys of studies whose values are prose.
const STUDY_KEYS: [&str; 7] = ["title", "text", "what", "why", "remark", "numbers", "finding"];

/// Blocks of a page in Markdown.
pub fn of_page(text: &str) -> Vec<Block> {
    blocks((1..).zip(text.lines()))
}

/// Blocks of a study in TOML. Text that cannot be parsed has none; the study's own tests report it.
pub fn of_study(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        of_table(text, table.get_ref(), &mut found);
    }
    found.sort_by_key(|block| block.line(0));
    found
}

fn of_table(text: &str, table: &DeTable, found: &mut Vec<Block>) {
    for (key, value) in table {
        if STUDY_KEYS.contains(&key.get_ref().as_ref()) && value.get_ref().is_str() {
            let span = value.span();
            let first = text[..span.start].matches('\n').count() + 1;
            found.extend(blocks((first..).zip(string_lines(&text[span]))));
        } else {
            of_value(text, value.get_ref(), found);
        }
    }
}

fn of_value(text: &str, value: &DeValue, found: &mut Vec<Block>) {
    match value {
        DeValue::Table(table) => of_table(text, table, found),
        DeValue::Array(array) => {
            array.iter().for_each(|value| of_value(text, value.get_ref(), found));
        }
        _ => {}
    }
}

/// Lines of a string as written, without quotes and without the `\` at a line's end.
fn string_lines(written: &str) -> impl Iterator<Item = &str> {
    written.trim_matches(['"', '\'']).lines().map(|line| line.trim_end_matches('\\'))
}

/// Blocks of a Rust source. A source that cannot be parsed has none; the compiler reports it.
pub fn of_source(text: &str, strings: Strings) -> Vec<Block> {
    let Ok(tokens) = TokenStream::from_str(text) else { return Vec::new() };
    let mut docs: Vec<(usize, String)> = Vec::new();
    let mut others = Vec::new();
    of_tokens(tokens, false, &mut |line, written, is_doc| {
        if is_doc {
            let value = syn::parse_str::<syn::LitStr>(written).map(|value| value.value());
            docs.extend((line..).zip(value.unwrap_or_default().lines().map(String::from)));
        } else if strings == Strings::All {
            // Indented lines of a help text are examples.
            let lines = string_lines(written).map(|l| if l.starts_with("  ") { "" } else { l });
            others.extend(blocks((line..).zip(lines)));
        }
    });
    let mut found = Vec::new();
    for lines in docs.chunk_by(|(line, _), (next, _)| line + 1 == *next) {
        // The blank after the slashes is not indentation.
        let text = |text: &'_ str| -> String { text.strip_prefix(' ').unwrap_or(text).into() };
        let lines: Vec<(usize, String)> = lines.iter().map(|(n, t)| (*n, text(t))).collect();
        found.extend(blocks(lines.iter().map(|(line, text)| (*line, text.as_str()))));
    }
    found.extend(others);
    found.sort_by_key(|block| block.line(0));
    found
}

/// Calls `string` with the line and the text of every string, and whether it is a docstring.
fn of_tokens(tokens: TokenStream, in_attribute: bool, string: &mut impl FnMut(usize, &str, bool)) {
    let mut last = String::new();
    let mut is_doc = false;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                of_tokens(group.stream(), last == "#" || last == "!", string);
            }
            TokenTree::Literal(literal) => {
                let written = literal.to_string();
                if written.starts_with('"') || written.starts_with("r\"") {
                    string(literal.span().start().line, written.trim_start_matches('r'), is_doc);
                }
            }
            TokenTree::Ident(ident) => is_doc = in_attribute && ident == "doc",
            TokenTree::Punct(_) => {}
        }
        last = token.to_string();
    }
}

/// Splits numbered lines of Markdown into blocks. Leaves out indented and fenced code.
fn blocks<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut in_code = false;
    for (number, line) in lines {
        let text = line.trim();
        let fence = text.starts_with("```");
        if fence || in_code || text.is_empty() {
            close(&mut open, &mut found);
            in_code ^= fence;
        } else if text.starts_with('|') {
            close(&mut open, &mut found);
            for cell in text.split('|') {
                open.push((number, cell));
                close(&mut open, &mut found);
            }
        } else if text.starts_with('#') {
            close(&mut open, &mut found);
            open.push((number, text));
            close(&mut open, &mut found);
        } else {
            if begins_item(text) {
                close(&mut open, &mut found);
            } else if open.is_empty() && line.starts_with("    ") {
                continue;
            }
            open.push((number, text));
        }
    }
    close(&mut open, &mut found);
    found
}

fn begins_item(text: &str) -> bool {
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* "].iter().any(|mark| text.starts_with(mark))
        || (numbered.len() < text.len() && numbered.starts_with(". "))
}

/// Makes a block from the open lines.
fn close(open: &mut Vec<(usize, &str)>, found: &mut Vec<Block>) {
    let mut block = Block { text: String::new(), lines: Vec::new() };
    for (number, line) in open.drain(..) {
        if !block.text.is_empty() {
            block.text.push(' ');
        }
        block.lines.push((block.text.len(), number));
        block.text.push_str(line.trim());
    }
    if !block.text.is_empty() {
        block.text = without_code(&block.text);
        found.push(block);
    }
}

/// The text with `` ` `` for every byte of code, targets of links and addresses. Offsets stay
/// valid.
pub fn without_code(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let skipped = if let Some(inner) = rest.strip_prefix('`') {
            inner.find('`').map_or(1, |end| end + 2)
        } else if rest.starts_with("](") {
            rest.find(')').unwrap_or(1)
        } else if rest.starts_with("https://") {
            rest.find(' ').unwrap_or(rest.len())
        } else {
            0
        };
        if skipped > 0 {
            kept.extend(std::iter::repeat_n('`', skipped));
            rest = &rest[skipped..];
        } else if let Some(c) = rest.chars().next() {
            kept.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    kept
}

/// The text with `` ` `` for every character between double quotes.
pub fn without_quotes(text: &str) -> String {
    let mut is_quoted = false;
    let keep = |c: char| {
        is_quoted ^= c == '"';
        if is_quoted { '`' } else { c }
    };
    text.chars().map(keep).collect()
}
