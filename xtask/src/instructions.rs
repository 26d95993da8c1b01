// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guard of speed that does not depend on the machine's load: how many instructions a switch
//! costs, counted by valgrind, against a stored reference.
//!
//! Time on a shared machine varies by tens of percent, counts by less than one. Each job of
//! benchmarks/instructions.json runs twice, once for twice as long: the difference has no start-up
//! in it. The reference belongs to a compiler and a release profile; a new compiler may need new
//! figures (`--bless`).

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The stored reference.
const FILE: &str = "benchmarks/instructions.json";

/// What this machine lacks for counting, with a remedy.
pub fn missing() -> Option<&'static str> {
    let found =
        Command::new("valgrind").arg("--version").output().is_ok_and(|o| o.status.success());
    (!found).then_some("valgrind is not installed; install the package valgrind")
}

/// Counts and compares, or with `bless` writes the reference. Returns the problems found.
pub fn check(root: &Path, program: &Path, bless: bool) -> Result<Vec<String>, String> {
    let path = root.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{FILE}: {error}"))?;
    let mut reference: Value =
        serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
    let tolerance = reference["tolerance_percent"]
        .as_f64()
        .ok_or_else(|| format!("{FILE}: tolerance_percent is no number"))?;
    let mut problems = Vec::new();
    for job in reference["jobs"].as_array_mut().ok_or_else(|| format!("{FILE}: no jobs"))? {
        let found = per_switch(program, job)?;
        let known = job["instructions_per_switch"].as_f64().unwrap_or(f64::NAN);
        println!("{}: {found:.0} instructions a switch, reference {known:.0}", job["arguments"]);
        if bless {
            job["instructions_per_switch"] = json!(found.round());
        } else {
            problems.extend(verdict(&job["arguments"].to_string(), found, known, tolerance));
        }
    }
    if bless {
        let text = serde_json::to_string_pretty(&reference).map_err(|error| error.to_string())?;
        std::fs::write(&path, text + "\n").map_err(|error| format!("{FILE}: {error}"))?;
    }
    Ok(problems)
}

/// The problem with `found`, if any. Fewer instructions than the reference minus the tolerance are
/// a problem too: the guard would not notice the next loss.
fn verdict(job: &str, found: f64, known: f64, tolerance: f64) -> Option<String> {
    let percent = (found / known - 1.0) * 100.0;
    if percent.abs() <= tolerance {
        return None;
    }
    let advice = if percent > 0.0 { "find what costs more" } else { "well done" };
    Some(format!(
        "{job}: {found:.0} instructions a switch, {percent:+.1} % from {known:.0} (allowed: \
         {tolerance} %): {advice}, or `cargo xtask instructions --bless`"
    ))
}

/// Instructions for each switch of a job, without start-up.
fn per_switch(program: &Path, job: &Value) -> Result<f64, String> {
    let until = job["until_ms"].as_u64().ok_or_else(|| format!("{FILE}: until_ms is missing"))?;
    let (once, switches_once) = count(program, job, until)?;
    let (twice, switches_twice) = count(program, job, 2 * until)?;
    Ok((twice - once) / (switches_twice - switches_once).max(1.0))
}

/// Instructions and switches of one run.
fn count(program: &Path, job: &Value, until_ms: u64) -> Result<(f64, f64), String> {
    let arguments = job["arguments"].as_array().map_or(&[][..], Vec::as_slice);
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg("bench")
        .args(arguments)
        .args(["--json", "--until", &format!("{until_ms}ms")])
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}; install the package valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("schedlab bench under valgrind: {error}; it said: {said}"))?;
    let switches = result["nr_switches"].as_f64().ok_or("schedlab bench gave no nr_switches")?;
    let instructions =
        collected(&said).ok_or_else(|| format!("valgrind gave no count; it said: {said}"))?;
    Ok((instructions, switches))
}

/// The count in callgrind's output: `==1234== Collected : 5678`.
fn collected(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        assert_eq!(collected("==7== \n==7== Collected : 28237974\n"), Some(28_237_974.0));
        assert_eq!(collected("==7== Collected : many"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn both_more_and_fewer_than_the_tolerance_are_a_problem() {
        assert_eq!(verdict("J8", 1_019.0, 1_000.0, 2.0), None);
        assert!(verdict("J8", 1_021.0, 1_000.0, 2.0).unwrap().contains("+2.1 %"));
        assert!(verdict("J8", 900.0, 1_000.0, 2.0).unwrap().contains("--bless"));
        assert!(verdict("J8", 1.0, f64::NAN, 2.0).is_some());
    }
}
