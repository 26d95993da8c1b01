// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers for the tests of all crates: how a test reports that it cannot run on this machine, and
//! how it compares its output with a file that `cargo xtask bless` renews.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Marks the running test as skipped: prints `SKIP name: reason` on one line, which
/// `cargo xtask test` counts once for each test. The test then returns.
pub fn skip(reason: impl Display) {
    let thread = std::thread::current();
    // libtest calls the thread of a test like the test.
    skip_named(thread.name().unwrap_or("unnamed test"), reason);
}

/// Marks the part `name` of a test program without libtest as skipped.
pub fn skip_named(name: &str, reason: impl Display) {
    println!("{}", line(name, &reason.to_string()));
}

fn line(name: &str, reason: &str) -> String {
    format!("SKIP {name}: {}", reason.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Waits until no other test of this program holds a turn. Tests whose tasks run on this kernel
/// under real-time policies hold one meanwhile: on one CPU they would delay each other's tasks.
#[must_use = "the turn ends when the guard is dropped"]
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `cargo xtask bless` runs this test. The test then writes the expected output.
pub fn is_blessing() -> bool {
    std::env::var_os("SCHEDLAB_BLESS").is_some_and(|value| value == "1")
}

/// Compares `found` with the file at `path`, or writes the file if [`is_blessing`].
///
/// # Errors
///
/// Names the file and the first line in which both differ, or why the file cannot be read.
///
/// # Panics
///
/// The file cannot be written.
pub fn golden(path: &Path, found: &str) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if is_blessing() {
        std::fs::write(path, found).unwrap_or_else(|error| panic!("{name}: {error}"));
        return Ok(());
    }
    match std::fs::read_to_string(path) {
        Ok(golden) if golden == found => Ok(()),
        Ok(golden) => Err(format!("{name}: {}", difference(&golden, found))),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// The first line in which two texts differ.
fn difference(golden: &str, found: &str) -> String {
    let (mut a, mut b) = (golden.lines(), found.lines());
    for number in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let [a, b] = [a, b].map(|line| line.unwrap_or("(end of file)"));
                return format!("line {number}\n  expected {a}\n  found    {b}");
            }
        }
    }
    "line ends differ".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_is_one_line() {
        assert_eq!(line("a::b", "no\n  clang\n"), "SKIP a::b: no clang");
    }

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2\n  expected b\n  found    c");
        assert!(difference("a\n", "a\nb\n").contains("expected (end of file)"));
        assert_eq!(difference("a\r\n", "a\n"), "line ends differ");
        let missing = golden(Path::new("/nonexistent/x.txt"), "").map_err(|why| why.len() > 7);
        assert!(is_blessing() || missing == Err(true));
    }
}
