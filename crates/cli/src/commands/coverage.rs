// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sim --coverage`: the lines of a .bpf.c that were reached, as text and in LCOV's format.
//!
//! Source of the format: geninfo(1) of LCOV.

use super::inspect::one_line;
use schedlab_scx::inspect::{Coverage, FileCoverage, FunctionCoverage, LineCoverage};
use std::fmt::Write as _;

/// Most ranges of lines that are listed of a file; its file in LCOV's format has all.
const RANGES_MAX: usize = 40;

/// The reached lines as text: for each file how many, and the ranges that were not.
pub fn text(coverage: &Coverage) -> String {
    let mut out = String::from("Coverage: lines with code that were reached\n");
    for file in &coverage.files {
        let reached = file.lines.iter().filter(|line| line.count > 0).count();
        let percent = 100 * reached / file.lines.len().max(1);
        let (path, all) = (one_line(&file.path), file.lines.len());
        let _ = writeln!(out, "  {path}: {reached} of {all} ({percent} %)");
        let missed = missed(file);
        for Missed { first, last, function } in missed.iter().take(RANGES_MAX) {
            let lines = match last - first {
                0 => format!("line {first}"),
                _ => format!("lines {first} to {last}"),
            };
            let _ = match function {
                Some(FunctionCoverage { name, calls: 0, .. }) => {
                    writeln!(out, "    {lines}: {} was never called", one_line(name))
                }
                Some(FunctionCoverage { name, .. }) => {
                    writeln!(out, "    {lines}, in {}", one_line(name))
                }
                None => writeln!(out, "    {lines}"),
            };
        }
        if let Some(more @ 1..) = missed.len().checked_sub(RANGES_MAX) {
            let _ = writeln!(out, "    {more} more; --coverage=FILE writes all");
        }
    }
    if coverage.files.is_empty() {
        out.push_str("  no line of the source can be counted\n");
    }
    out
}

/// Lines that follow each other, as far as lines have code, and were not reached.
struct Missed<'c> {
    first: u32,
    last: u32,
    function: Option<&'c FunctionCoverage>,
}

fn missed(file: &FileCoverage) -> Vec<Missed<'_>> {
    let mut found: Vec<Missed<'_>> = Vec::new();
    let mut follows = false;
    for LineCoverage { line, count } in &file.lines {
        if *count > 0 {
            follows = false;
            continue;
        }
        let mut around = file.functions.iter().rev();
        let function = around.find(|of| (of.line..=of.last_line).contains(line));
        match found.last_mut() {
            Some(last) if follows && last.function == function => last.last = *line,
            _ => found.push(Missed { first: *line, last: *line, function }),
        }
        follows = true;
    }
    found
}

/// The reached lines in LCOV's format.
pub fn lcov(coverage: &Coverage) -> String {
    let mut out = String::from("TN:\n");
    for file in &coverage.files {
        let _ = writeln!(out, "SF:{}", one_line(&file.path));
        for FunctionCoverage { name, line, .. } in &file.functions {
            let _ = writeln!(out, "FN:{line},{}", one_line(name));
        }
        for FunctionCoverage { name, calls, .. } in &file.functions {
            let _ = writeln!(out, "FNDA:{calls},{}", one_line(name));
        }
        let called = file.functions.iter().filter(|of| of.calls > 0).count();
        let _ = writeln!(out, "FNF:{}\nFNH:{called}", file.functions.len());
        for LineCoverage { line, count } in &file.lines {
            let _ = writeln!(out, "DA:{line},{count}");
        }
        let reached = file.lines.iter().filter(|line| line.count > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{reached}\nend_of_record", file.lines.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage() -> Coverage {
        let function = |name: &str, line, last_line, calls| FunctionCoverage {
            name: name.into(),
            line,
            last_line,
            calls,
        };
        let functions = vec![function("used", 3, 9, 7), function("idle\nFN:1", 12, 13, 0)];
        let counts = [(3, 7), (4, 0), (6, 0), (7, 2), (8, 0), (9, 7), (12, 0), (13, 0)];
        let lines = counts.map(|(line, count)| LineCoverage { line, count }).to_vec();
        Coverage { files: vec![FileCoverage { path: "x.bpf.c".into(), functions, lines }] }
    }

    #[test]
    fn ranges_name_their_function() {
        assert_eq!(
            text(&coverage()),
            "Coverage: lines with code that were reached\n  x.bpf.c: 3 of 8 (37 %)\n    \
             lines 4 to 6, in used\n    line 8, in used\n    \
             lines 12 to 13: idle\\nFN:1 was never called\n"
        );
    }

    #[test]
    fn lcov_has_a_record_for_each_file() {
        let text = lcov(&coverage());
        assert!(text.starts_with("TN:\nSF:x.bpf.c\nFN:3,used\nFN:12,idle\\nFN:1\nFNDA:7,used\n"));
        assert!(text.ends_with("DA:12,0\nDA:13,0\nLF:8\nLH:3\nend_of_record\n"), "{text}");
    }
}
