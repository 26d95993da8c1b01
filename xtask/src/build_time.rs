// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how long a clean `make build` takes, crate by crate, and how large its output is.
//!
//! It builds program and guest one after the other in a new target directory, as `make build` does.
//! It sums cargo's own report of times by crate. Crates compile in parallel, so their seconds add
//! up to more than the elapsed time.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Crates that take less time share one line.
const SHOWN_SECONDS: f64 = 2.0;

/// Builds both parts and prints the table.
pub fn run(root: &Path) -> Result<bool, String> {
    let target = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let target = target.path();
    let mut program = crate::cargo();
    program.args(["build", "--release", "--locked", "--package", "schedlab", "--timings"]);
    let mut guest = Command::new(root.join("scripts/guest.sh"));
    guest.arg(target.join("release")).arg("--timings");
    for (name, mut command) in [("schedlab", program), ("schedlab-guest", guest)] {
        let begin = Instant::now();
        let built = crate::run(command.env("CARGO_TARGET_DIR", target));
        let seconds = begin.elapsed().as_secs_f64();
        if !built {
            return Ok(false);
        }
        let path = target.join("cargo-timings/cargo-timing.html");
        let report = std::fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        std::fs::remove_file(&path).map_err(|e| format!("{name}: {e}"))?;
        let file = target.join("release").join(name);
        let size = bytes(&file)?;
        let stripped = stripped_bytes(&file)?;
        println!("{name}: {seconds:.0} s, {} as built, {} stripped", mb(size), mb(stripped));
        print!("{}", table(&seconds_by_crate(&report)?));
    }
    Ok(true)
}

/// Seconds of each crate in cargo's report: all its units, including build scripts and their runs.
fn seconds_by_crate(report: &str) -> Result<BTreeMap<String, f64>, String> {
    let (_, rest) = report.split_once("const UNIT_DATA = ").ok_or("the report has no units")?;
    let units = serde_json::Deserializer::from_str(rest).into_iter::<Vec<Value>>().next();
    let units = units.and_then(Result::ok).ok_or("the report's units cannot be read")?;
    let mut seconds = BTreeMap::new();
    for unit in units {
        let (Some(name), Some(duration)) = (unit["name"].as_str(), unit["duration"].as_f64())
        else {
            return Err(format!("a unit of the report has no name or no duration: {unit}"));
        };
        *seconds.entry(name.to_string()).or_insert(0.0) += duration;
    }
    Ok(seconds)
}

/// The slowest crates, in lines of seconds and name.
fn table(seconds: &BTreeMap<String, f64>) -> String {
    let mut crates: Vec<(&String, f64)> = seconds.iter().map(|(name, s)| (name, *s)).collect();
    crates.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown = crates.iter().take_while(|(_, seconds)| *seconds >= SHOWN_SECONDS).count();
    let (long, short) = crates.split_at(shown);
    let mut text = String::new();
    for (name, seconds) in long {
        text += &format!("{seconds:8.1}  {name}\n");
    }
    let others: f64 = short.iter().map(|(_, seconds)| seconds).sum();
    text + &format!("{others:8.1}  {} others\n", short.len())
}

fn bytes(file: &Path) -> Result<u64, String> {
    let metadata = std::fs::metadata(file);
    metadata.map(|metadata| metadata.len()).map_err(|e| format!("{}: {e}", file.display()))
}

/// The size of a program without symbols.
fn stripped_bytes(file: &Path) -> Result<u64, String> {
    let stripped = file.with_extension("stripped");
    let mut strip = Command::new("strip");
    if !crate::run(strip.arg("--strip-all").arg("-o").arg(&stripped).arg(file)) {
        return Err("strip failed; install the package binutils".into());
    }
    bytes(&stripped)
}

fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_of_a_crate_are_summed_up_and_sorted() {
        let report = r#"<script>
const DURATION = 9;
const UNIT_DATA = [
  {"i": 0, "name": "libc", "mode": "run-custom-build", "start": 0.0, "duration": 0.5},
  {"i": 1, "name": "libc", "mode": "todo", "start": 0.5, "duration": 2.5},
  {"i": 2, "name": "cfg-if", "mode": "todo", "start": 1.0, "duration": 0.25},
  {"i": 3, "name": "schedlab", "mode": "todo", "start": 3.0, "duration": 6.0}
];
const CONCURRENCY_DATA = [];
"#;
        let seconds = seconds_by_crate(report).unwrap();
        assert_eq!(seconds["libc"], 3.0);
        assert_eq!(table(&seconds), "     6.0  schedlab\n     3.0  libc\n     0.2  1 others\n");
    }

    #[test]
    fn a_report_of_another_form_is_refused() {
        assert!(seconds_by_crate("<html>").unwrap_err().contains("no units"));
        assert!(seconds_by_crate("const UNIT_DATA = {").unwrap_err().contains("cannot be read"));
        let nameless = seconds_by_crate("const UNIT_DATA = [{\"duration\": 1}];");
        assert!(nameless.unwrap_err().contains("has no name"));
    }
}
