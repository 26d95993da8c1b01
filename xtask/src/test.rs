// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every test and prints, as its last line, `N passed, N failed, N skipped`, summed over all
//! runners. The line is also left in target/test-summary, the output of each runner in the target
//! directory's test-logs.

use crate::sums::{self, Sums};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the directory with the kernel's example schedulers to the tests that run them.
const EXAMPLES: &str = "SCHEDLAB_SCHED_EXT_EXAMPLES";

/// Lines of a failed runner's log that are shown.
const SHOWN_LINES: usize = 150;

/// What has run so far.
struct Tests<'r> {
    root: &'r Path,
    logs: PathBuf,
    sums: Sums,
    failures: Vec<String>,
    /// Who was skipped, and why. Shown at the end, next to their number.
    skips: Vec<String>,
}

/// Runs all tests of the repository at `root`; `Ok(true)`: none failed.
pub fn run(root: &Path, target: &Path) -> Result<bool, String> {
    let logs = target.join("test-logs");
    let summary = root.join("target/test-summary");
    let io = |error: std::io::Error| format!("cannot write the logs of the tests: {error}");
    for removed in [fs::remove_dir_all(&logs), fs::remove_file(&summary)] {
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(io(error));
        }
    }
    fs::create_dir_all(&logs).map_err(io)?;
    fs::create_dir_all(root.join("target")).map_err(io)?;
    let mut tests =
        Tests { root, logs, sums: Sums::default(), failures: Vec::new(), skips: Vec::new() };
    let examples = tests.examples(target);
    tests.step("fmt", cargo(&["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    tests.step("clippy", cargo(&clippy))?;
    tests.step("tidy", cargo(&["xtask", "tidy"]))?;
    tests.step("wasm", cargo(&["xtask", "wasm"]))?;
    tests.step("guest", Command::new(root.join("scripts/guest.sh")))?;
    tests.cargo_test(examples)?;
    tests.browser()?;
    tests.skips.iter().for_each(|line| println!("{line}"));
    if !tests.failures.is_empty() {
        let logs = tests.logs.display();
        println!("failed: {}; whole logs are in {logs}", tests.failures.join(", "));
    }
    fs::write(&summary, format!("{}\n", tests.sums)).map_err(io)?;
    println!("{}", tests.sums);
    Ok(tests.sums.failed == 0 && tests.failures.is_empty())
}

fn cargo(args: &[&str]) -> Command {
    let mut command = crate::cargo();
    command.args(args);
    command
}

impl Tests<'_> {
    /// Runs a command with its output in a log; gives the log and whether it succeeded.
    fn logged(&self, name: &str, mut command: Command) -> Result<(String, bool), String> {
        println!("=== {name}: {command:?}");
        let path = self.logs.join(format!("{name}.log"));
        let problem = |error: std::io::Error| format!("{name}: {error}");
        let log = fs::File::create(&path).map_err(problem)?;
        let colour = std::env::var("CARGO_TERM_COLOR").unwrap_or_else(|_| "never".into());
        let status = command
            .current_dir(self.root)
            .env("CARGO_TERM_COLOR", colour)
            .stdout(log.try_clone().map_err(problem)?)
            .stderr(log)
            .status()
            .map_err(problem)?;
        let text = fs::read(&path).map_err(problem)?;
        Ok((String::from_utf8_lossy(&text).into_owned(), status.success()))
    }

    fn fail(&mut self, name: &str, shown: &[&str]) {
        for line in &shown[shown.len().saturating_sub(SHOWN_LINES)..] {
            println!("    {line}");
        }
        self.failures.push(name.into());
    }

    /// A command that is a single test of its own.
    fn step(&mut self, name: &str, command: Command) -> Result<(), String> {
        let (log, succeeded) = self.logged(name, command)?;
        let (sums, reason) = sums::of_step(&log, succeeded);
        self.skips.extend(reason.map(String::from));
        self.sums += sums;
        if !succeeded {
            self.fail(name, &log.lines().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// The tests of all crates.
    fn cargo_test(&mut self, examples: Option<PathBuf>) -> Result<(), String> {
        let args = ["test", "--workspace", "--no-fail-fast", "--quiet", "--", "--show-output"];
        let mut command = cargo(&args);
        command.env("INSTA_UPDATE", "no").env("INSTA_FORCE_PASS", "0");
        command.envs(examples.map(|examples| (EXAMPLES, examples)));
        let (log, succeeded) = self.logged("cargo-test", command)?;
        let (mut sums, reasons) = sums::of_cargo_test(&log);
        self.skips.extend(reasons.into_iter().map(String::from));
        if !succeeded {
            // Without a failed test, one did not compile or ended its process.
            sums.failed = sums.failed.max(1);
            let is_talk = |line: &str| {
                line.starts_with("test result: ok")
                    || line.starts_with("running ")
                    || line.bytes().all(|byte| matches!(byte, b'.' | b' '))
            };
            let (printed, names) = sums::failures_of_cargo_test(&log);
            let shown: Vec<&str> = match printed.is_empty() {
                true => log.lines().filter(|line| !is_talk(line)).collect(),
                false => printed,
            };
            self.fail("cargo-test", &shown);
            self.failures.extend(names.into_iter().map(String::from));
        }
        self.sums += sums;
        Ok(())
    }

    /// The report in a headless browser, whose tests node counts.
    fn browser(&mut self) -> Result<(), String> {
        let (log, succeeded) =
            self.logged("browser", Command::new(self.root.join("tests/browser/run.sh")))?;
        let (of_step, reason) = sums::of_step(&log, succeeded);
        self.skips.extend(reason.map(String::from));
        self.sums += sums::of_node(&log).unwrap_or(of_step);
        if !succeeded {
            self.fail("browser", &log.lines().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// The kernel's example schedulers, where the distribution has its source; a second run finds
    /// them in the target directory.
    fn examples(&self, target: &Path) -> Option<PathBuf> {
        if std::env::var_os(EXAMPLES).is_some() {
            return None;
        }
        let directory = target.join("sched-ext-examples");
        if !directory.is_dir() {
            let part = target.join("sched-ext-examples.part");
            let mut fetch = Command::new(self.root.join("scripts/fetch-sched-ext-examples.sh"));
            fetch.arg(&part);
            let (_, succeeded) = self.logged("examples", fetch).ok()?;
            succeeded.then(|| fs::rename(&part, &directory).ok()).flatten()?;
        }
        directory.canonicalize().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_summed_up_and_named_if_they_fail() {
        let logs = tempfile::tempdir().unwrap();
        let mut tests = Tests {
            root: logs.path(),
            logs: logs.path().into(),
            sums: Sums::default(),
            failures: Vec::new(),
            skips: Vec::new(),
        };
        for (name, script) in [
            ("passes", "echo well; echo done >&2"),
            ("skips", "echo 'SKIP skips: no cause' >&2; echo 'SKIP skips: none'"),
            ("fails", "echo 'SKIP fails: no cause'; exit 1"),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            tests.step(name, command).unwrap();
        }
        assert_eq!(tests.sums, Sums { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(tests.failures, ["fails"]);
        let log = fs::read_to_string(logs.path().join("passes.log")).unwrap();
        assert_eq!(log, "well\ndone\n");
    }
}
