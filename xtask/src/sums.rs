// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the tests that passed, failed and were skipped, from the output of their runners.
//!
//! A test that cannot run on a machine prints `SKIP name: reason` (`schedlab_testing::skip`) and
//! passes. It counts as skipped once, however often it prints the line, and not at all if it fails.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// Numbers of tests by their outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    /// Tests that ran to their end.
    pub passed: u64,
    /// Tests that found a defect, or did not compile.
    pub failed: u64,
    /// Tests that could not run here.
    pub skipped: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The line in which a test reports that it is skipped: its name and the whole line.
fn skip(line: &str) -> Option<(&str, &str)> {
    let (name, _) = line.strip_prefix("SKIP ")?.split_once(": ")?;
    Some((name, line))
}

/// The sums of a command that is a single test, and its line if it is skipped.
pub fn of_step(log: &str, succeeded: bool) -> (Sums, Option<&str>) {
    let none = Sums::default();
    match log.lines().find_map(skip) {
        _ if !succeeded => (Sums { failed: 1, ..none }, None),
        Some((_, line)) => (Sums { skipped: 1, ..none }, Some(line)),
        None => (Sums { passed: 1, ..none }, None),
    }
}

/// The sums of `cargo test -- --show-output`, and the first line of each test that was skipped.
pub fn of_cargo_test(log: &str) -> (Sums, Vec<&str>) {
    let (mut sums, mut reasons) = (Sums::default(), Vec::new());
    // State of the present test program: which test's output follows, and which of its tests were
    // skipped.
    let (mut in_failures, mut block, mut skipped) = (false, None, BTreeSet::new());
    for line in log.lines() {
        if let Some(result) = line.strip_prefix("test result:") {
            let nr_skipped = skipped.len() as u64;
            sums += Sums {
                passed: counted(result, "passed").saturating_sub(nr_skipped),
                failed: counted(result, "failed"),
                skipped: counted(result, "ignored") + nr_skipped,
            };
            (in_failures, block, skipped) = (false, None, BTreeSet::new());
        } else if line == "successes:" || line == "failures:" {
            (in_failures, block) = (line == "failures:", None);
        } else if let Some(name) = output_of(line) {
            block = Some(name);
        } else if let Some((name, reason)) = skip(line).filter(|_| !in_failures)
            && skipped.insert(block.unwrap_or(name))
        {
            reasons.push(reason);
        }
    }
    (sums, reasons)
}

/// The output of failed tests of `cargo test -- --show-output`, and their names. Empty if no test
/// failed, as when one does not compile.
pub fn failures_of_cargo_test(log: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut printed, mut names) = (Vec::new(), Vec::new());
    let mut in_failures = false;
    for line in log.lines() {
        match line {
            "failures:" => in_failures = true,
            "successes:" => in_failures = false,
            _ if line.starts_with("test result:") => in_failures = false,
            _ if in_failures => {
                names.extend(output_of(line));
                printed.push(line);
            }
            _ => {}
        }
    }
    (printed, names)
}

/// Whether every failure is that of a named test: each program that failed came to its end.
pub fn are_failures_named(log: &str) -> bool {
    let ended = log.lines().filter(|line| line.starts_with("test result: FAILED")).count();
    ended > 0 && ended == failed_programs(log).len()
}

/// The tests that passed, from the output of `cargo test` without `--quiet`.
pub fn passed_of_cargo_test(log: &str) -> Vec<&str> {
    let passed = |line| {
        let name = str::strip_prefix(line, "test ")?.strip_suffix(" ... ok")?;
        Some(name.strip_suffix(" - should panic").unwrap_or(name))
    };
    log.lines().filter_map(passed).collect()
}

/// The options of cargo that select the test programs in which a test failed, as cargo lists them
/// after its last line: ``    `-p schedlab --test parity` ``. The package is left out: alone it
/// would be built again with other features.
pub fn failed_programs(log: &str) -> Vec<Vec<&str>> {
    let options = |line| {
        let options = str::trim(line).strip_prefix('`')?.strip_suffix('`')?;
        let (_package, options) = options.strip_prefix("-p ")?.split_once(' ')?;
        Some(options.split(' ').collect())
    };
    log.lines().filter_map(options).collect()
}

/// The test whose output begins after this line of libtest.
fn output_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The number before `what` in libtest's last line: ` ok. 3 passed; 0 failed; ...`.
fn counted(result: &str, what: &str) -> u64 {
    let mut words = result.split([' ', ';']).filter(|word| !word.is_empty());
    let mut last = "";
    let found = words.find_map(|word| {
        let number = (word == what).then_some(last);
        last = word;
        number
    });
    found.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The sums at the end of the output of node's test runner (`# pass 5` or `ℹ pass 5`); `None` if
/// there are none.
pub fn of_node(log: &str) -> Option<Sums> {
    let number = |what: &str| {
        log.lines().rev().find_map(|line| match *line.split(' ').collect::<Vec<_>>() {
            [_, name, number] if name == what => number.parse::<u64>().ok(),
            _ => None,
        })
    };
    Some(Sums { passed: number("pass")?, failed: number("fail")?, skipped: number("skipped")? })
}

/// The sums of pytest, from its last line: `1 failed, 23 passed, 2 skipped in 6.55s`. `None`
/// without such a line, as when the build fails.
pub fn of_pytest(log: &str) -> Option<Sums> {
    let line =
        log.lines().rev().find(|line| line.contains(" passed") || line.contains(" failed"))?;
    let (counts, time) = line.trim_matches(['=', ' ']).split_once(" in ")?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = |what: &str| {
        let count = |part: &str| part.strip_suffix(what)?.trim().parse().ok();
        counts.split(", ").find_map(count).unwrap_or(0)
    };
    let failed = number("failed") + number("error") + number("errors");
    Some(Sums { passed: number("passed"), failed, skipped: number("skipped") })
}

/// Why pytest skipped tests, from the summary that its option `-rs` asks for: a line a place.
pub fn skips_of_pytest(log: &str) -> Vec<String> {
    let reason = |line: &str| {
        let (_, place) = line.strip_prefix("SKIPPED [")?.split_once("] ")?;
        let (place, reason) = place.split_once(": ")?;
        let place = place.rsplit('/').next().unwrap_or(place);
        Some(format!("SKIP {place}: {reason}"))
    };
    log.lines().filter_map(reason).collect()
}

/// The lines of failed tests in the output of node's test runner, and their names. A test's lines
/// go from `not ok 3 - NAME` to the next that is not indented.
pub fn failures_of_node(log: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut printed, mut names) = (Vec::new(), Vec::new());
    let mut in_failure = false;
    for line in log.lines() {
        let tap = line.strip_prefix("not ok ").and_then(|rest| Some(rest.split_once(" - ")?.1));
        if let Some(name) = tap {
            in_failure = true;
            names.push(name);
        } else if !line.starts_with([' ', '\t']) {
            in_failure = false;
        }
        if in_failure {
            printed.push(line);
        }
    }
    (printed, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_of_node_are_shown_with_their_causes() {
        let log = "TAP version 13\n# Subtest: good\nok 1 - good\n  ---\n  ...\n\
                   # Subtest: bad\nnot ok 2 - bad - really\n  ---\n  error: 'wide'\n  ...\n\
                   # Subtest: fine\nok 3 - fine\n1..3\n# pass 2\n# fail 1\n";
        let (printed, names) = failures_of_node(log);
        assert_eq!(names, ["bad - really"]);
        assert_eq!(printed, ["not ok 2 - bad - really", "  ---", "  error: 'wide'", "  ..."]);
        assert_eq!(failures_of_node("ok 1 - good\n"), (vec![], vec![]));
    }

    #[test]
    fn pytest_counts_its_tests_in_its_last_line() {
        let passed = ".....\n24 passed in 6.55s\n";
        assert_eq!(of_pytest(passed), Some(sums(24, 0, 0)));
        let all = "=== 1 failed, 23 passed, 2 skipped, 1 error in 0:01:06 ===";
        assert_eq!(of_pytest(all), Some(sums(23, 2, 2)));
        let skipped =
            "SKIPPED [2] ../a/tests/test_sweep.py:9: Ray is not installed: pip\n2 skipped";
        let expected = "SKIP test_sweep.py:9: Ray is not installed: pip";
        assert_eq!(skips_of_pytest(skipped), [expected]);
        assert_eq!(of_pytest("SKIP Python package: no pip\n"), None);
        assert_eq!(of_pytest("error: could not compile: 3 tests passed in theory\n"), None);
    }

    fn sums(passed: u64, failed: u64, skipped: u64) -> Sums {
        Sums { passed, failed, skipped }
    }

    /// A test program's output as libtest prints it with `--show-output`.
    fn program(successes: &str, failures: &str, result: &str) -> String {
        let mut log = format!("\nrunning 5 tests\n..F..\nsuccesses:\n\n{successes}\n");
        log += "successes:\n    a\n    b\n";
        if !failures.is_empty() {
            log += &format!("\nfailures:\n\n{failures}\n\nfailures:\n    c\n");
        }
        log + &format!("\ntest result: {result}; 0 measured; 0 filtered out\n")
    }

    #[test]
    fn a_test_that_skips_itself_twice_counts_once() {
        let a = "---- a stdout ----\nSKIP a: needs root\nSKIP a: needs CAP_SYS_NICE\n";
        let b = "---- m::b stdout ----\nfirst\nSKIP m::b: no clang: none in PATH\n";
        let log = program(&format!("{a}\n{b}"), "", "ok. 5 passed; 0 failed; 1 ignored");
        let (found, reasons) = of_cargo_test(&log);
        assert_eq!(found, sums(3, 0, 3));
        assert_eq!(reasons, ["SKIP a: needs root", "SKIP m::b: no clang: none in PATH"]);
    }

    #[test]
    fn a_test_of_the_same_name_in_another_program_counts_too() {
        let a = program("---- a stdout ----\nSKIP a: x\n", "", "ok. 2 passed; 0 failed; 0 ignored");
        assert_eq!(of_cargo_test(&format!("{a}{a}")).0, sums(2, 0, 2));
    }

    #[test]
    fn a_failed_test_is_not_skipped_too() {
        let failed = "---- c stdout ----\nSKIP c: no clang\nthread 'c' panicked\n";
        let log = program("", failed, "FAILED. 4 passed; 1 failed; 0 ignored");
        assert_eq!(of_cargo_test(&log), (sums(4, 1, 0), vec![]));
    }

    #[test]
    fn failed_tests_are_named_with_what_they_printed() {
        let failed = "---- m::c stdout ----\nthread 'm::c' panicked\nleft: 1";
        let good = program("---- a stdout ----\nfine\n", "", "ok. 5 passed; 0 failed; 0 ignored");
        let bad = program("---- b stdout ----\nfine\n", failed, "FAILED. 4 passed; 1 failed");
        let log = format!("{good}{bad}{good}");
        let (printed, names) = failures_of_cargo_test(&log);
        assert_eq!(names, ["m::c"]);
        assert!(printed.contains(&"left: 1") && !printed.contains(&"fine"), "{printed:?}");
        assert_eq!(failures_of_cargo_test(&good), (vec![], vec![]));
    }

    #[test]
    fn programs_with_failed_tests_are_those_that_cargo_lists() {
        let log = "error: test failed, to rerun pass `-p schedlab --test parity`\n\n\
                   running 1 test\n`-p` is unknown\nerror: 2 targets failed:\n    \
                   `-p schedlab --test parity`\n    `-p schedlab-model --doc`\n";
        let programs = [vec!["--test", "parity"], vec!["--doc"]];
        assert_eq!(failed_programs(log), programs);
        assert!(failed_programs("error: could not compile `a` (lib test)\n").is_empty());
        let ended = "test result: FAILED. 4 passed; 1 failed\n";
        assert!(are_failures_named(&format!("{ended}{ended}{log}")));
        assert!(
            !are_failures_named(&format!("{ended}{log}")),
            "one program ended without a result"
        );
        assert!(!are_failures_named("error: could not compile"));
    }

    #[test]
    fn tests_that_passed_are_named() {
        let log = "running 3 tests\ntest m::a ... ok\ntest b - should panic ... ok\n\
                   test c ... FAILED\n---- b stdout ----\ntested ... ok\n";
        assert_eq!(passed_of_cargo_test(log), ["m::a", "b"]);
    }

    #[test]
    fn only_the_whole_form_skips() {
        let other = "---- a stdout ----\nSKIP: no name\nSKIP a\nskipped: SKIP a: b\nSKIPPED a: b\n";
        let log = program(other, "", "ok. 5 passed; 0 failed; 0 ignored");
        assert_eq!(of_cargo_test(&log), (sums(5, 0, 0), vec![]));
    }

    #[test]
    fn parts_of_a_program_without_libtest_are_known_by_their_names() {
        let log = "SKIP hogs: no rights\nSKIP hogs: none\nSKIP groups: no cgroups\nleft: nothing\n\
                   test result: ok. 7 passed\n";
        assert_eq!(of_cargo_test(log).0, sums(5, 0, 2));
    }

    #[test]
    fn a_step_is_one_test() {
        assert_eq!(of_step("all is well\n", true), (sums(1, 0, 0), None));
        let skipped = "Compiling\nSKIP wasm: no node\nSKIP wasm: no target\n";
        assert_eq!(of_step(skipped, true), (sums(0, 0, 1), Some("SKIP wasm: no node")));
        assert_eq!(of_step(skipped, false), (sums(0, 1, 0), None));
    }

    #[test]
    fn node_counts_for_itself() {
        let log = "# tests 9\n# pass 7\n# fail 1\n# cancelled 0\n# skipped 1\n# duration_ms 3.5\n";
        assert_eq!(of_node(log), Some(sums(7, 1, 1)));
        assert_eq!(of_node(&log.replace('#', "\u{2139}")), Some(sums(7, 1, 1)));
        assert_eq!(of_node("SKIP browser tests: no Chromium\n"), None);
    }
}
