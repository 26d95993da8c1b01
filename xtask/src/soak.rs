// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask soak` and `make soak`: searches that take too long for every test run.
//!
//! First every modelled scheduler runs every small case of the engine's tests. Then `schedlab
//! check` tries random workloads under each, and must find the known bug of every model that has
//! one on purpose. Last, hackbench runs for a long time under every scheduler of bpf/scx in guests,
//! to check that the kernel never ejects one.
//!
//! Each scheduler is loaded once and then schedules hackbench repeatedly: on one CPU with counted
//! time, and on several CPUs with the host's time. If the kernel ejects one (a task that waited for
//! 30 s, an error of the scheduler), `schedlab vm --soak` fails with the reason.

use std::path::Path;
use std::process::Command;

/// Names of the schedulers.
pub const SCHEDULERS: [&str; 8] =
    ["fifo", "rr", "wrr", "group-wrr", "rmlfq", "mlfq", "sd", "vtime"];

/// A request for a soak run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Soak {
    /// Minutes of the guest's time for each scheduler and kind of guest.
    pub minutes: u32,
    /// Kernel.
    pub kernel: String,
    /// CPUs of guests with the host's time; 0: only guests with counted time.
    pub cpus: u32,
    /// Schedulers.
    pub schedulers: Vec<String>,
    /// Random cases for each modelled scheduler; 0: none.
    pub seeds: u32,
}

impl Soak {
    /// Parses the words after `soak`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut soak = Self {
            minutes: 60,
            kernel: "6.18".into(),
            cpus: 8,
            schedulers: SCHEDULERS.map(String::from).to_vec(),
            seeds: 1_000,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            let number = || value.parse::<u32>().map_err(|_| format!("{word} {value}: no number"));
            match word.as_str() {
                "--minutes" => soak.minutes = number()?,
                "--cpus" => soak.cpus = number()?,
                "--seeds" => soak.seeds = number()?,
                "--kernel" => soak.kernel.clone_from(value),
                "--scheduler" => soak.schedulers = value.split(',').map(String::from).collect(),
                _ => {
                    return Err(format!(
                        "{word}: allowed are --minutes, --cpus, --seeds, --kernel and --scheduler"
                    ));
                }
            }
        }
        if !(1..=1_440).contains(&soak.minutes) || soak.cpus > 64 {
            return Err("allowed are 1 to 1440 minutes, and 0 to 64 CPUs".into());
        }
        Ok(soak)
    }

    /// The arguments of `schedlab` for a scheduler in a guest with counted time, or with `cpus`.
    fn arguments(&self, scheduler: &str, cpus: Option<u32>) -> Vec<String> {
        let groups = cpus.unwrap_or(2);
        let mut all = vec!["vm".into(), format!("hackbench:groups={groups},loops=100")];
        let mut add = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--kernel", &self.kernel, "--scheduler", scheduler]);
        add(&["--soak", &format!("{}s", self.minutes * 60), "--json"]);
        if let Some(cpus) = cpus {
            add(&["--clock", "live", "--repetitions", "1", "--cpus", &cpus.to_string()]);
        }
        all
    }

    /// Checks every modelled scheduler with random cases. Returns what was found.
    fn check(&self, program: &Path) -> Result<Vec<String>, String> {
        if self.seeds == 0 {
            return Ok(Vec::new());
        }
        let run = |arguments: &[&str]| {
            Command::new(program)
                .args(arguments)
                .output()
                .map_err(|error| format!("{}: {error}", program.display()))
        };
        let listed = run(&["list", "schedulers", "--json"])?.stdout;
        let listed: serde_json::Value = serde_json::from_slice(&listed)
            .map_err(|error| format!("the list of schedulers: {error}"))?;
        let names = listed.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
        let seeds = self.seeds.to_string();
        let folder = program.with_file_name("soak").display().to_string();
        let mut arguments = vec!["check", "--seeds", &seeds, "--output", &folder];
        arguments.extend(names);
        let output = run(&arguments)?;
        let told = String::from_utf8_lossy(&output.stdout);
        print!("{told}");
        let found = format!("{}{}", told, String::from_utf8_lossy(&output.stderr));
        let mut failed = if output.status.success() { Vec::new() } else { vec![found] };
        for name in buggy(&run(&["check", "--bugs", "--json"])?.stdout)? {
            // Stored cases would make the search needless.
            let folder = program.with_file_name(format!("soak-{name}"));
            let _ = std::fs::remove_dir_all(&folder);
            let output = run(&[
                "check",
                &name,
                "--budget",
                "300s",
                "-j",
                "1",
                "--output",
                &folder.display().to_string(),
            ])?;
            let told = String::from_utf8_lossy(&output.stdout);
            println!("{}", told.lines().last().unwrap_or_default());
            if output.status.code() != Some(1) {
                failed.push(format!("300 s of random workloads do not find the bug of {name}"));
            }
        }
        Ok(failed)
    }

    /// Runs all small cases under all schedulers, of which the tests run a third.
    fn exhaust(&self) -> Vec<String> {
        if self.seeds == 0 {
            return Vec::new();
        }
        let mut test = crate::cargo();
        test.args(["test", "--workspace", "--test", "engine", "--", "exhaustive::", "--nocapture"]);
        match crate::run(test.env("SCHEDLAB_SOAK", "1")) {
            true => Vec::new(),
            false => vec!["small cases break rules of the conformance suite".into()],
        }
    }

    /// Runs all schedulers. Returns a line for each that failed.
    pub fn run(&self, program: &Path) -> Result<Vec<String>, String> {
        let mut failed = self.exhaust();
        failed.extend(self.check(program)?);
        let live = (self.cpus > 0).then_some(Some(self.cpus));
        for scheduler in &self.schedulers {
            for cpus in [Some(None), live].into_iter().flatten() {
                let output = Command::new(program)
                    .args(self.arguments(scheduler, cpus))
                    .output()
                    .map_err(|error| format!("{}: {error}", program.display()))?;
                let told = String::from_utf8_lossy(&output.stderr);
                print!("{told}");
                if !output.status.success() {
                    let on = cpus.map_or("1 CPU, counted".into(), |cpus| format!("{cpus} CPUs"));
                    failed.push(format!("{scheduler} on {on}: {}", told.trim()));
                }
            }
        }
        Ok(failed)
    }
}

/// The scheduler to show each known bug with, from the list of `schedlab check --bugs --json`.
fn buggy(listed: &[u8]) -> Result<Vec<String>, String> {
    let bugs: serde_json::Value = serde_json::from_slice(listed)
        .map_err(|error| format!("the list of known bugs: {error}"))?;
    let names = bugs.as_array().into_iter().flatten();
    let names = names.filter_map(|bug| bug["schedulers"][0].as_str()).map(String::from);
    Ok(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Soak, String> {
        Soak::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_become_runs() {
        let words = ["--minutes", "5", "--cpus", "0", "--scheduler", "rr,sd", "--seeds", "7"];
        let soak = parse(&words).unwrap();
        assert_eq!((soak.minutes, soak.cpus, soak.schedulers.len(), soak.seeds), (5, 0, 2, 7));
        let counted = soak.arguments("rr", None).join(" ");
        assert!(counted.contains("--scheduler rr --soak 300s"), "{counted}");
        assert!(!counted.contains("live"), "{counted}");
        let live = soak.arguments("rr", Some(8)).join(" ");
        assert!(live.contains("groups=8") && live.contains("--clock live"), "{live}");
        assert_eq!(parse(&[]).unwrap().schedulers.len(), SCHEDULERS.len());
    }

    #[test]
    fn known_bugs_become_schedulers() {
        let text = r#"[{ "schedulers": ["a+P01", "b+P01"] }, { "schedulers": [] }]"#;
        assert_eq!(buggy(text.as_bytes()).unwrap(), ["a+P01"]);
        assert!(buggy(b"no").unwrap_err().contains("known bugs"));
    }

    #[test]
    fn wrong_words_are_refused() {
        for (words, text) in [
            (vec!["--minutes"], "needs a value"),
            (vec!["--minutes", "soon"], "no number"),
            (vec!["--hours", "1"], "allowed are --minutes"),
            (vec!["--minutes", "0"], "1 to 1440"),
        ] {
            assert!(parse(&words).unwrap_err().contains(text), "{words:?}");
        }
    }
}
