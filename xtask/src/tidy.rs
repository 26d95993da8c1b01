// SPDX-License-Identifier: MIT OR Apache-2.0
//! The house style as a check, so that reviewers need not look for it.
//!
//! - Files have at most 1,000 lines, functions 70 lines, lines 100 characters.
//! - Every source begins with its licence.
//! - Unfinished work, ignored tests, debug output, trailing blanks and paths of one machine are
//!   refused.
//! - Links of pages point to files that exist, and tables of pages have a head.
//! - Tests are skipped with `schedlab_testing::skip` only.
//! - Pages, help texts, docstrings and commit messages use plain words (`words`).

use crate::words::{Rules, commits};
use proc_macro2::Span;
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

const FILE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;

/// Directories without sources of ours.
const SKIPPED: [&str; 8] =
    ["target", ".git", "node_modules", "results", "vendor", "snapshots", "corpus", "golden"];

/// Endings of source files, with the start of a comment in each.
const SOURCES: [&str; 9] = ["rs", "c", "h", "sh", "js", "mjs", "py", "css", "toml"];

/// Endings of other files whose text is checked.
const TEXTS: [&str; 4] = ["md", "yml", "yaml", "txt"];

/// Words that sources must not contain, with reasons. Each is written in two parts, so that this
/// list does not match itself.
fn banned() -> Vec<(String, &'static str)> {
    let joined = |a: &str, b: &str| format!("{a}{b}");
    vec![
        (joined("TO", "DO"), "finish it or leave it out"),
        (joined("FIX", "ME"), "finish it or leave it out"),
        (joined("unimplem", "ented!"), "finish it or leave it out"),
        (joined("to", "do!("), "finish it or leave it out"),
        (joined("db", "g!("), "debug output"),
        (joined("#[ig", "nore"), "a skipped test: assert what is, and say why"),
    ]
}

/// Paths that exist on one machine only.
fn machine_paths() -> Vec<String> {
    ["/wo|rk/", "/tmp/w|t", "/ro|ot/", "/ho|me/"].iter().map(|p| p.replace('|', "")).collect()
}

/// Every problem of the repository at `root`, by file and line.
pub fn check_repository(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    collect(root, &mut files).map_err(|error| format!("cannot list the files: {error}"))?;
    files.sort();
    let rules = Rules::read(root)?;
    let mut problems = commits::check(root, &rules)?;
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else {
            problems.push(format!("{name}: cannot be read as text"));
            continue;
        };
        let found = check_file(&name, &text).into_iter().chain(rules.check_file(&name, &text));
        problems.extend(found.map(|what| format!("{name}{what}")));
        if name.ends_with(".md") {
            problems.extend(dead_links(root, &name, &text));
        }
    }
    Ok(problems)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                collect(&path, files)?;
            }
        } else if is_source(&name) || TEXTS.contains(&ending(&name)) {
            files.push(path);
        }
    }
    Ok(())
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn is_source(name: &str) -> bool {
    SOURCES.contains(&ending(name)) || name == "Makefile" || name == "run"
}

/// Problems of one file: `:LINE: what`.
fn check_file(name: &str, text: &str) -> Vec<String> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let source = is_source(file);
    let mut problems = Vec::new();
    if source && text.lines().count() > FILE_LINES_MAX {
        problems.push(format!(": has more than {FILE_LINES_MAX} lines: split it"));
    }
    let needs_head = source && ending(file) != "toml";
    if needs_head && !text.lines().take(3).any(|line| line.contains("SPDX-License-Identifier:")) {
        problems.push(":1: has no line SPDX-License-Identifier in its head".into());
    }
    for (index, line) in text.lines().enumerate() {
        check_line(line, source, |what| problems.push(format!(":{}: {what}", index + 1)));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(": does not end with a line end".into());
    }
    if ending(file) == "rs" {
        problems.extend(long_functions(text));
        problems.extend(own_skips(name, text));
    }
    if ending(file) == "md" {
        problems.extend(headless_tables(text));
    }
    problems
}

fn check_line(line: &str, source: bool, mut problem: impl FnMut(String)) {
    if line.ends_with([' ', '\t', '\r']) {
        problem("blanks at the end of the line".into());
    }
    for path in machine_paths() {
        // A folder inside a longer path may have this name, as in sysfs.
        let begins = |at: usize| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
        };
        if line.match_indices(path.as_str()).any(|(at, _)| begins(at)) {
            problem(format!("{path} is a path of one machine"));
        }
    }
    if !source {
        return;
    }
    if line.chars().count() > LINE_CHARS_MAX && !line.contains("https://") {
        problem(format!("more than {LINE_CHARS_MAX} characters"));
    }
    for (word, why) in banned() {
        if line.contains(&word) {
            problem(format!("{word}: {why}"));
        }
    }
}

/// Functions that are too long, found by parsing.
fn long_functions(text: &str) -> Vec<String> {
    struct Finder(Vec<String>);
    impl Finder {
        fn function(&mut self, name: &syn::Ident, span: Span) {
            let (first, last) = (span.start().line, span.end().line);
            let lines = last + 1 - first;
            if lines > FUNCTION_LINES_MAX {
                self.0.push(format!(
                    ":{first}: function {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
                ));
            }
        }
    }
    impl<'ast> Visit<'ast> for Finder {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.function(&item.sig.ident, body_span(item.sig.span(), item.block.span()));
            syn::visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.function(&item.sig.ident, body_span(item.sig.span(), item.block.span()));
            syn::visit::visit_impl_item_fn(self, item);
        }
        fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
            if let Some(block) = &item.default {
                self.function(&item.sig.ident, body_span(item.sig.span(), block.span()));
            }
            syn::visit::visit_trait_item_fn(self, item);
        }
    }
    match syn::parse_file(text) {
        Ok(file) => {
            let mut finder = Finder(Vec::new());
            finder.visit_file(&file);
            finder.0
        }
        Err(error) => vec![format!(":{}: cannot be parsed: {error}", error.span().start().line)],
    }
}

/// The lines from the start of the signature to the end of the body.
fn body_span(signature: Span, block: Span) -> Span {
    signature.join(block).unwrap_or(block)
}

/// Tests that report a skip in their own form, which the summary does not count.
fn own_skips(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("crates/") || name.starts_with("crates/testing/") {
        return Vec::new();
    }
    let found = (1..).zip(text.lines()).filter(|(_, line)| line.contains("\"SKIP"));
    found.map(|(number, _)| format!(":{number}: skip a test with schedlab_testing::skip")).collect()
}

/// Rows of a table without a head, for example after a blank line: a page shows them as text.
fn headless_tables(text: &str) -> Vec<String> {
    let is_row = |line: &str| line.trim_start().starts_with('|');
    let is_rule = |line: &str| is_row(line) && line.chars().all(|c| "|-: ".contains(c));
    let mut problems = Vec::new();
    let (mut in_code, mut was_row) = (false, false);
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        in_code ^= line.trim_start().starts_with("```");
        let begins = !in_code && is_row(line) && !was_row;
        if begins && !lines.peek().is_some_and(|(_, next)| is_rule(next)) {
            problems.push(format!(":{number}: a row of a table without a head"));
        }
        was_row = is_row(line);
    }
    problems
}

/// Links of a page to files that do not exist.
fn dead_links(root: &Path, name: &str, text: &str) -> Vec<String> {
    let folder = root.join(name).parent().unwrap_or(root).to_path_buf();
    let mut problems = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in links(line) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !path.is_empty() && !elsewhere && !folder.join(path).exists() {
                problems.push(format!("{name}:{}: the link {target} leads nowhere", index + 1));
            }
        }
    }
    problems
}

/// Targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        rest.split_once(')').map(|(target, _)| target.split(' ').next().unwrap_or(target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "// SPDX-License-Identifier: MIT OR Apache-2.0\n";

    #[test]
    fn the_repository_is_tidy() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let problems = check_repository(root).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    fn problems(name: &str, body: &str) -> Vec<String> {
        check_file(name, &format!("{HEAD}{body}"))
    }

    #[test]
    fn a_clean_file_has_no_problem() {
        assert_eq!(problems("a.rs", "fn f() {}\n"), [""; 0]);
    }

    #[test]
    fn a_long_function_is_named_with_its_lines() {
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines));
        assert_eq!(problems("a.rs", &body(68)), [""; 0]);
        let found = problems("a.rs", &body(69));
        assert_eq!(found, [":2: function f has 71 lines, at most 70"]);
        // Methods, default methods and nested functions count too.
        let method = format!("struct S;\nimpl S {{\n{}}}\n", body(69));
        assert_eq!(problems("a.rs", &method).len(), 1);
    }

    #[test]
    fn long_lines_and_long_files_are_found() {
        assert_eq!(problems("a.c", &format!("{}\n", "x".repeat(101))).len(), 1);
        assert_eq!(problems("a.c", &format!("{}\n", "\u{e4}".repeat(100))), [""; 0]);
        assert_eq!(problems("a.md", &format!("{}\n", "x".repeat(500))), [""; 0]);
        assert_eq!(problems("a.sh", &"x\n".repeat(1000)).len(), 1);
    }

    #[test]
    fn unfinished_work_and_foreign_paths_are_found() {
        for (word, _) in banned() {
            assert_eq!(problems("a.c", &format!("{word}\n")).len(), 1, "{word}");
        }
        for path in machine_paths() {
            assert_eq!(problems("a.md", &format!("see {path}x\n")).len(), 1, "{path}");
        }
        assert_eq!(problems("a.md", "blank \n").len(), 1);
    }

    #[test]
    fn heads_and_ends_are_asked_for() {
        assert_eq!(check_file("a.sh", "#!/bin/sh\n").len(), 1);
        assert_eq!(check_file("a.toml", "x = 1\n"), [""; 0]);
        assert_eq!(check_file("a.toml", "x = 1").len(), 1);
    }

    #[test]
    fn tables_without_a_head_are_found() {
        let table = "text\n| a | b |\n| --- | :-: |\n| 1 | 2 |\n";
        assert_eq!(check_file("x.md", table), [""; 0]);
        let cut = format!("{table}\n| 3 | 4 |\n| 5 | 6 |\n\n```\n| code |\n```\n");
        assert_eq!(check_file("x.md", &cut), [":6: a row of a table without a head"]);
    }

    #[test]
    fn skips_that_nobody_counts_are_found() {
        let body = "fn f() {\n    println!(\"SKIP: no clang\");\n}\n";
        let found = ":3: skip a test with schedlab_testing::skip";
        assert_eq!(problems("crates/x/tests/a.rs", body), [found]);
        assert_eq!(problems("crates/testing/src/lib.rs", body), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "[a](src/main.rs) [b](nowhere.md#x) [c](https://example.org) [d](#here)\n\
                    ```\n[e](nowhere.md)\n```\n";
        let found = dead_links(root, "x.md", text);
        assert_eq!(found, ["x.md:1: the link nowhere.md#x leads nowhere"]);
    }
}
