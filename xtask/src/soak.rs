// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask soak`: hackbench for long under every scheduler of bpf/scx in guests, to see that
//! none is ever ejected.
//!
//! Each scheduler is loaded once and then schedules hackbench again and again: on one CPU with
//! counted time, and on several with the host's. `schedlab vm --soak` fails when the kernel ejects
//! one (a task that waited for 30 s, an error of the scheduler) and says why.

use std::path::Path;
use std::process::Command;

/// The schedulers.
pub const SCHEDULERS: [&str; 8] =
    ["fifo", "rr", "wrr", "group-wrr", "rmlfq", "mlfq", "sd", "vtime"];

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Soak {
    /// Minutes of the guest's time for each scheduler and kind of guest.
    pub minutes: u32,
    /// Kernel.
    pub kernel: String,
    /// CPUs of guests with the host's time; 0: only counted ones.
    pub cpus: u32,
    /// Schedulers.
    pub schedulers: Vec<String>,
}

impl Soak {
    /// From the words after `soak`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let mut soak = Self {
            minutes: 60,
            kernel: "6.18".into(),
            cpus: 8,
            schedulers: SCHEDULERS.map(String::from).to_vec(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            let number = || value.parse::<u32>().map_err(|_| format!("{word} {value}: no number"));
            match word.as_str() {
                "--minutes" => soak.minutes = number()?,
                "--cpus" => soak.cpus = number()?,
                "--kernel" => soak.kernel.clone_from(value),
                "--scheduler" => soak.schedulers = value.split(',').map(String::from).collect(),
                _ => {
                    return Err(format!(
                        "{word}: allowed are --minutes, --cpus, --kernel and --scheduler"
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

    /// Runs all, and gives a line for each that failed.
    pub fn run(&self, program: &Path) -> Result<Vec<String>, String> {
        let mut failed = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Soak, String> {
        Soak::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_become_runs() {
        let soak = parse(&["--minutes", "5", "--cpus", "0", "--scheduler", "rr,sd"]).unwrap();
        assert_eq!((soak.minutes, soak.cpus, soak.schedulers.len()), (5, 0, 2));
        let counted = soak.arguments("rr", None).join(" ");
        assert!(counted.contains("--scheduler rr --soak 300s"), "{counted}");
        assert!(!counted.contains("live"), "{counted}");
        let live = soak.arguments("rr", Some(8)).join(" ");
        assert!(live.contains("groups=8") && live.contains("--clock live"), "{live}");
        assert_eq!(parse(&[]).unwrap().schedulers.len(), SCHEDULERS.len());
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
