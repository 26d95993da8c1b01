// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tutorials do what they show: every file is saved, every command runs in a directory of its
//! own, and what it prints is compared with the page. `...` in a page means text that is left out.
//! Examples of other pages that need no file run, too.

mod common;

use common::command;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A fenced block of a page.
struct Block {
    /// Its language.
    language: String,
    /// The line of text before it.
    before: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut before, mut is_inside) = (String::new(), false);
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(language) => {
                let (language, before) = (language.to_string(), before.clone());
                found.push(Block { language, before, text: String::new() });
                is_inside = true;
            }
            None if is_inside => {
                let block = found.last_mut().expect("a block has begun");
                block.text += line;
                block.text.push('\n');
            }
            None if !line.is_empty() => before = line.to_string(),
            None => {}
        }
    }
    found
}

/// The file in which a page saves the block after this line: `... as `NAME`:`.
fn file_name(before: &str) -> Option<&str> {
    let name = before.strip_suffix("`:")?;
    Some(&name[name.rfind('`')? + 1..])
}

/// Whether `line` is what a page shows: `...` is any text.
fn fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split("...").map(str::trim_end);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.trim_end().is_empty() };
    for part in middle {
        let Some(at) = rest.find(part.trim_start()) else { return false };
        rest = &rest[at + part.trim_start().len()..];
    }
    rest.ends_with(last.trim_start())
}

/// Whether the lines are what a page shows: a line `...` is any number of lines.
fn all_fit(shown: &[&str], lines: &[&str]) -> bool {
    match (shown.first(), lines.first()) {
        (None, _) => lines.is_empty(),
        (Some(&"..."), _) => (0..=lines.len()).any(|skip| all_fit(&shown[1..], &lines[skip..])),
        (Some(first), Some(line)) => fits(first, line) && all_fit(&shown[1..], &lines[1..]),
        (Some(_), None) => false,
    }
}

/// What a command of a page prints. The program is found in the path, as a reader finds it.
fn printed(line: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_schedlab"));
    let mut shell = Command::new("sh");
    for (name, value) in command().get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let folder_of_program = program.parent().expect("the program is in a directory");
    shell.env("PATH", format!("{}:{path}", folder_of_program.display()));
    let output = shell.args(["-c", line]).current_dir(folder).output().expect("sh starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    // A command that finds something wrong, such as a failed test of a policy, ends with 1.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{line}: {code:?}\n{messages}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Does what a page says. Returns the number of its commands.
fn follow(name: &str) -> usize {
    let page = fs::read_to_string(docs().join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for block in blocks(&page) {
        if block.language != "console" {
            if let Some(file) = file_name(&block.before) {
                fs::write(folder.path().join(file), &block.text).unwrap();
            }
            continue;
        }
        for part in block.text.split("$ ").filter(|part| !part.is_empty()) {
            let mut lines = part.lines();
            let typed = lines.next().unwrap_or_default();
            let shown: Vec<&str> = lines.collect();
            let found = printed(typed, folder.path());
            let lines: Vec<&str> = found.lines().collect();
            let shows = shown.join("\n");
            assert!(all_fit(&shown, &lines), "{name}: {typed}\nthe page:\n{shows}\nnow:\n{found}");
            count += 1;
        }
    }
    count
}

#[test]
fn a_student_gets_what_the_tutorial_shows() {
    assert!(follow("tutorials/student.md") >= 7);
}

#[test]
fn a_teacher_gets_what_the_tutorial_shows() {
    assert!(follow("tutorials/teacher.md") >= 7);
}

#[test]
fn an_author_of_a_scheduler_gets_what_the_tutorial_shows() {
    if let Err(error) = schedlab_scx_native::find_clang() {
        return schedlab_testing::skip(error.to_string());
    }
    assert!(follow("tutorials/scheduler-author.md") >= 7);
}

/// The text of the only block of a page in this language.
fn block(page: &str, language: &str) -> String {
    let page = fs::read_to_string(docs().join(page)).unwrap();
    let mut found = blocks(&page).into_iter().filter(|block| block.language == language);
    let text = found.next().map(|block| block.text).unwrap_or_default();
    assert!(!text.is_empty() && found.next().is_none(), "one block in {language}");
    text
}

#[test]
fn the_policy_and_the_assignment_of_the_guides_work() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("handed-in")).unwrap();
    fs::write(folder.path().join("handed-in/own.js"), block("guide/playground.md", "js")).unwrap();
    fs::write(folder.path().join("rr.toml"), block("guide/exercises.md", "toml")).unwrap();
    let run = printed("schedlab sim hogs:n=3 --scheduler ./handed-in/own.js", folder.path());
    assert!(run.starts_with("hogs under ./handed-in/own.js: simulated, 1 CPU"), "{run}");
    let marks = printed("schedlab grade rr.toml handed-in", folder.path());
    // Its turns are 3 ms long, not 4 ms as the assignment wants, but it breaks no rule.
    assert!(marks.starts_with("Round robin: 10 points\n"), "{marks}");
    assert!(marks.contains("own.js, three jobs: seed 1: slice 1 of 21 differs"), "{marks}");
    assert!(!marks.contains("random cases:"), "{marks}");
}

/// The examples of a page that simulate a built-in workload, print a list or ask an exercise: they
/// need no file and no other lane.
fn simple_examples(page: &str) -> Vec<String> {
    let typed = page.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?.trim();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        // A remark after the command, or what another program does with its output.
        let end = ["  ", " # ", " | ", " > "].iter().filter_map(|end| line.find(end)).min();
        Some(line[..end.unwrap_or(line.len())].to_string())
    });
    typed.filter(|line| is_simple(line)).collect()
}

fn is_simple(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_ours = words.next() == Some("schedlab");
    let command = words.next().unwrap_or_default();
    let kinds = ["sim", "explain", "list", "exercise"];
    // Files, other machines, placeholders, and lines that go on. A PDF needs a browser.
    let files = ["/", ".json", ".bpf.c", ".toml", ".js", ".py", ".txt", ".pdf"];
    let others = ["--watch", "host", "...", "["];
    let has_other = files.iter().chain(&others).any(|other| line.contains(other));
    let has_other = has_other || line.ends_with('\\');
    is_ours && kinds.contains(&command) && !has_other
}

#[test]
fn simple_examples_of_all_pages_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for part in ["", "guide", "reference", "tutorials"] {
        for entry in fs::read_dir(docs().join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            for example in simple_examples(&fs::read_to_string(&path).unwrap()) {
                printed(&example, folder.path());
                count += 1;
            }
        }
    }
    println!("{count} examples");
    assert!(count >= 40, "only {count} examples were found");
}

#[test]
fn a_page_that_shows_something_else_is_noticed() {
    assert!(fits("a ... c", "a b c") && fits("a ...", "a b") && fits("a", "a"));
    assert!(!fits("a ... c", "a b") && !fits("a", "a b") && !fits("b", "a"));
    assert!(all_fit(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(all_fit(&["..."], &[]) && !all_fit(&["a"], &["a", "b"]));
    assert!(!all_fit(&["a", "b"], &["a"]));
    assert_eq!(file_name("Save this as `a.json`:"), Some("a.json"));
    assert_eq!(file_name("Save this."), None);
}
