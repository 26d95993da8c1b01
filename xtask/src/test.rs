// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every test and prints, as its last line, `N passed, N failed, N skipped`, summed over all
//! runners. It also writes the line to target/test-summary, and the output of each runner to
//! test-logs in the target directory.

use crate::sums::{self, Sums};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Variable that tells tests the directory with published sched_ext schedulers.
const SCHEDULERS: &str = "SCHEDLAB_SCX_SCHEDULERS";
/// Variable for the part of it with the kernel's examples.
const EXAMPLES: &str = "SCHEDLAB_SCHED_EXT_EXAMPLES";

/// The parts of the tests, in their order. The last one runs only if it is asked for: it makes a
/// minimal Debian, and installs and builds everything in it.
pub const PARTS: [&str; 9] =
    ["fmt", "clippy", "tidy", "wasm", "guest", "cargo-test", "python", "browser", "bare"];

/// Which parts to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts(Vec<String>);

impl Parts {
    /// From the words of the command line: names of parts; none stands for all but `bare`, and
    /// `--with-bare` for all.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let all = |nr: usize| Self(PARTS[..nr].iter().map(ToString::to_string).collect());
        match words {
            [] => Ok(all(PARTS.len() - 1)),
            [word] if word == "--with-bare" => Ok(all(PARTS.len())),
            words => match words.iter().find(|word| !PARTS.contains(&word.as_str())) {
                Some(word) => Err(format!(
                    "{word}: allowed are the parts of the tests ({}), or --with-bare for all of \
                     them",
                    PARTS.join(", ")
                )),
                None => Ok(Self(words.to_vec())),
            },
        }
    }

    fn has(&self, part: &str) -> bool {
        self.0.iter().any(|name| name == part)
    }
}

/// So many failed tests at most are run a second time: more have a common cause.
const REPEATED_MAX: usize = 8;

/// Number of lines to show of a failed runner's log.
const SHOWN_LINES: usize = 150;

/// The tests that have run so far.
struct Tests<'r> {
    root: &'r Path,
    logs: PathBuf,
    sums: Sums,
    failures: Vec<String>,
    /// What failed runners printed, shown after the last part: a long log is often seen cut.
    shown: Vec<String>,
    /// Skipped tests with their reasons, shown at the end next to their number.
    skips: Vec<String>,
    /// Tests that failed and passed when they were repeated alone, shown at the end too.
    unsteady: Vec<String>,
}

/// Runs these parts of the tests of the repository at `root`; `Ok(true)`: none failed.
pub fn run(root: &Path, target: &Path, parts: &Parts) -> Result<bool, String> {
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
    let mut tests = Tests {
        root,
        logs,
        sums: Sums::default(),
        failures: Vec::new(),
        shown: Vec::new(),
        skips: Vec::new(),
        unsteady: Vec::new(),
    };
    tests.parts(target, parts)?;
    tests.shown.iter().for_each(|line| println!("{line}"));
    tests.skips.iter().for_each(|line| println!("{line}"));
    if !tests.unsteady.is_empty() {
        println!("passed only when repeated alone: {}", tests.unsteady.join(", "));
    }
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
    fn parts(&mut self, target: &Path, parts: &Parts) -> Result<(), String> {
        let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
        let mut bare = Command::new(self.root.join("scripts/bare.sh"));
        bare.args(["demo --first", "test tidy"]);
        let steps = [
            ("fmt", cargo(&["fmt", "--all", "--check"])),
            ("clippy", cargo(&clippy)),
            ("tidy", cargo(&["xtask", "tidy"])),
            ("wasm", cargo(&["xtask", "wasm"])),
            ("guest", Command::new(self.root.join("scripts/guest.sh"))),
        ];
        for (name, command) in steps {
            if parts.has(name) {
                self.step(name, command)?;
            }
        }
        if parts.has("cargo-test") {
            let schedulers = self.schedulers(target);
            self.cargo_test(schedulers)?;
        }
        if parts.has("python") {
            self.python()?;
        }
        if parts.has("browser") {
            self.browser()?;
        }
        if parts.has("bare") {
            self.step("bare", bare)?;
        }
        Ok(())
    }

    /// Runs a command with its output in a log. Returns the log and whether the command succeeded.
    fn logged(&self, name: &str, mut command: Command) -> Result<(String, bool), String> {
        println!("=== {name}: {command:?}");
        let path = self.logs.join(format!("{name}.log"));
        let problem = |error: std::io::Error| format!("{name}: {error}");
        let log = fs::File::create(&path).map_err(problem)?;
        let colour = std::env::var("CARGO_TERM_COLOR").unwrap_or_else(|_| "never".into());
        let begin = Instant::now();
        let status = command
            .current_dir(self.root)
            .env("CARGO_TERM_COLOR", colour)
            .stdout(log.try_clone().map_err(problem)?)
            .stderr(log)
            .status()
            .map_err(problem)?;
        println!("    {} s", begin.elapsed().as_secs());
        let text = fs::read(&path).map_err(problem)?;
        Ok((String::from_utf8_lossy(&text).into_owned(), status.success()))
    }

    fn fail(&mut self, name: &str, shown: &[&str]) {
        let last = &shown[shown.len().saturating_sub(SHOWN_LINES)..];
        self.shown.push(format!("=== {name} failed:"));
        self.shown.extend(last.iter().map(|line| format!("    {line}")));
        self.failures.push(name.into());
    }

    /// Runs a command that is a single test.
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

    /// Runs the tests of all crates. Tests on the running kernel and in guests may fail on a busy
    /// machine where the code does not: what fails is run a second time, one test after the other.
    fn cargo_test(&mut self, schedulers: Option<PathBuf>) -> Result<(), String> {
        let command = |selected: &[&str], of_libtest: &[&str]| {
            let mut command = cargo(&["test"]);
            command.args(selected).args(["--no-fail-fast", "--", "--show-output"]);
            command.args(of_libtest).env("INSTA_UPDATE", "no").env("INSTA_FORCE_PASS", "0");
            if let Some(schedulers) = &schedulers {
                let kernel = schedulers.join("kernel");
                command.envs(kernel.is_dir().then_some((EXAMPLES, kernel)));
                command.env(SCHEDULERS, schedulers);
            }
            command
        };
        let (log, succeeded) =
            self.logged("cargo-test", command(&["--workspace", "--quiet"], &[]))?;
        let (mut sums, reasons) = sums::of_cargo_test(&log);
        self.skips.extend(reasons.into_iter().map(String::from));
        if !succeeded {
            // If no test failed, one did not compile or ended its process.
            sums.failed = sums.failed.max(1);
            let (printed, mut names) = sums::failures_of_cargo_test(&log);
            if (1..=REPEATED_MAX).contains(&names.len()) && sums::are_failures_named(&log) {
                println!("cargo-test: failed, running again: {}", names.join(", "));
                printed.iter().for_each(|line| println!("    {line}"));
                let repeated = self.repeated(&log, &names, command)?;
                names.retain(|name| !repeated.contains(*name));
                sums.passed += sums.failed - names.len() as u64;
                sums.failed = names.len() as u64;
                self.unsteady.extend(repeated);
            }
            if sums.failed > 0 {
                self.show_failed(&log, &printed);
                self.failures.extend(names.into_iter().map(String::from));
            }
        }
        self.sums += sums;
        Ok(())
    }

    /// Repeats the tests with these names alone, in every program with a failed test. Returns those
    /// that pass in all programs that have them.
    fn repeated(
        &self,
        log: &str,
        names: &[&str],
        command: impl Fn(&[&str], &[&str]) -> Command,
    ) -> Result<BTreeSet<String>, String> {
        let mut of_libtest = vec!["--test-threads=1", "--exact"];
        of_libtest.extend(names);
        let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for (nr, mut program) in sums::failed_programs(log).into_iter().enumerate() {
            program.insert(0, "--workspace");
            let name = format!("cargo-test-again-{nr}");
            let (log, succeeded) = self.logged(&name, command(&program, &of_libtest))?;
            let failures = sums::failures_of_cargo_test(&log).1;
            if !succeeded && failures.is_empty() {
                return Ok(BTreeSet::new());
            }
            failed.extend(failures.into_iter().map(String::from));
            passed.extend(sums::passed_of_cargo_test(&log).into_iter().map(String::from));
        }
        let of_names = |name: &String| names.contains(&name.as_str());
        Ok(passed.into_iter().filter(|name| of_names(name) && !failed.contains(name)).collect())
    }

    /// Keeps what failed tests printed; the whole log if none did, as when one does not compile.
    fn show_failed(&mut self, log: &str, printed: &[&str]) {
        let is_talk = |line: &str| {
            line.starts_with("test result: ok")
                || line.starts_with("running ")
                || line.bytes().all(|byte| matches!(byte, b'.' | b' '))
        };
        match printed.is_empty() {
            true => {
                let lines: Vec<&str> = log.lines().filter(|line| !is_talk(line)).collect();
                self.fail("cargo-test", &lines);
            }
            false => self.fail("cargo-test", printed),
        }
    }

    /// Builds the Python package and runs its tests, which pytest counts.
    fn python(&mut self) -> Result<(), String> {
        let (log, succeeded) =
            self.logged("python", Command::new(self.root.join("python/test.sh")))?;
        let (of_step, reason) = sums::of_step(&log, succeeded);
        self.skips.extend(reason.map(String::from));
        self.skips.extend(sums::skips_of_pytest(&log));
        self.sums += sums::of_pytest(&log).unwrap_or(of_step);
        if !succeeded {
            self.fail("python", &log.lines().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Runs the tests of the report in a headless browser, which node counts. A browser on a busy
    /// machine may fail where the report does not: what fails is run a second time, and told.
    fn browser(&mut self) -> Result<(), String> {
        let run = |tests: &Self, name: &str| {
            tests.logged(name, Command::new(tests.root.join("tests/browser/run.sh")))
        };
        let (mut log, mut succeeded) = run(self, "browser")?;
        if !succeeded {
            let (printed, _) = sums::failures_of_node(&log);
            println!("browser: failed, running it a second time");
            printed.iter().for_each(|line| println!("    {line}"));
            (log, succeeded) = run(self, "browser-again")?;
        }
        let (of_step, reason) = sums::of_step(&log, succeeded);
        self.skips.extend(reason.map(String::from));
        self.sums += sums::of_node(&log).unwrap_or(of_step);
        if !succeeded {
            let (printed, names) = sums::failures_of_node(&log);
            match printed.is_empty() {
                true => self.fail("browser", &log.lines().collect::<Vec<_>>()),
                false => self.fail("browser", &printed),
            }
            self.failures.extend(names.into_iter().map(String::from));
        }
        Ok(())
    }

    /// Fetches published schedulers, as far as the registries have them. A second run finds them in
    /// the target directory.
    fn schedulers(&self, target: &Path) -> Option<PathBuf> {
        if [SCHEDULERS, EXAMPLES].iter().any(|name| std::env::var_os(name).is_some()) {
            return None;
        }
        let directory = target.join("scx-schedulers");
        if !directory.is_dir() {
            let part = target.join("scx-schedulers.part");
            let mut fetch = Command::new(self.root.join("scripts/fetch-scx-schedulers.sh"));
            fetch.arg(&part);
            let (_, succeeded) = self.logged("schedulers", fetch).ok()?;
            succeeded.then(|| fs::rename(&part, &directory).ok()).flatten()?;
        }
        directory.canonicalize().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_by_name() {
        let parse = |words: &[&str]| {
            Parts::parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let names = |words: &[&str]| parse(words).unwrap().0.join(" ");
        assert_eq!(names(&[]), "fmt clippy tidy wasm guest cargo-test python browser");
        assert_eq!(names(&["--with-bare"]), names(&[]) + " bare");
        assert_eq!(names(&["tidy", "fmt"]), "tidy fmt");
        assert!(parse(&["tidi"]).unwrap_err().starts_with("tidi: allowed are"));
    }

    #[test]
    fn steps_are_summed_up_and_named_if_they_fail() {
        let logs = tempfile::tempdir().unwrap();
        let mut tests = Tests {
            root: logs.path(),
            logs: logs.path().into(),
            sums: Sums::default(),
            failures: Vec::new(),
            shown: Vec::new(),
            skips: Vec::new(),
            unsteady: Vec::new(),
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
        assert_eq!(tests.shown, ["=== fails failed:", "    SKIP fails: no cause"]);
        let log = fs::read_to_string(logs.path().join("passes.log")).unwrap();
        assert_eq!(log, "well\ndone\n");
    }
}
