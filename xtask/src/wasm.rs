// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the pure crates for wasm32, runs them in node, and compares the results with those of
//! this machine. A difference is a defect, because the same input gives the same bytes everywhere.

use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
const PACKAGE: &str = "schedlab-wasm";
/// The pure crate that no simulated run needs. It is only built.
const BUILT_ONLY: &str = "schedlab-scx";

/// What this machine lacks, with a remedy.
pub fn missing(root: &Path) -> Option<String> {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root)
        .output();
    let is_installed = libraries
        .is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if !is_installed {
        return Some(format!("target {TARGET} is not installed; `rustup target add {TARGET}`"));
    }
    let node = Command::new("node").arg("--version").output();
    let has_node = node.is_ok_and(|output| output.status.success());
    (!has_node).then(|| "node is not installed; install the package nodejs".into())
}

/// Builds, runs and compares. Returns the problems.
pub fn check(root: &Path, target: &Path) -> Result<Vec<String>, String> {
    let mut build = crate::cargo();
    build.args(["build", "--lib", "--target", TARGET]);
    printed(root, build.args(["--package", PACKAGE, "--package", BUILT_ONLY]))?;
    let module = target.join(TARGET).join("debug/schedlab_wasm.wasm");
    let wasm =
        printed(root, Command::new("node").arg(root.join("tests/wasm/run.mjs")).arg(module))?;
    let native = printed(root, &mut Command::new(crate::built(PACKAGE)?))?;
    println!("{} runs on wasm32 and on this machine", native.lines().count());
    Ok(differences(&native, &wasm))
}

/// The output of a command; an error if it fails.
fn printed(root: &Path, command: &mut Command) -> Result<String, String> {
    let output = command
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

/// Runs whose lines differ.
fn differences(native: &str, wasm: &str) -> Vec<String> {
    let (natives, wasms) = (native.lines().count(), wasm.lines().count());
    if natives == 0 || natives != wasms {
        return vec![format!("{natives} runs on this machine, {wasms} on wasm32")];
    }
    let pairs = native.lines().zip(wasm.lines()).filter(|(native, wasm)| native != wasm);
    pairs.map(|(native, wasm)| format!("{native}\n  on wasm32: {wasm}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_digest_and_a_missing_run_are_problems() {
        let native = "hogs rr: 1 2\nhogs fcfs: 3 4\n";
        assert_eq!(differences(native, native), [""; 0]);
        let other = "hogs rr: 1 2\nhogs fcfs: 3 5\n";
        assert_eq!(differences(native, other), ["hogs fcfs: 3 4\n  on wasm32: hogs fcfs: 3 5"]);
        assert_eq!(differences(native, "hogs rr: 1 2\n"), ["2 runs on this machine, 1 on wasm32"]);
        assert_eq!(differences("", ""), ["0 runs on this machine, 0 on wasm32"]);
    }
}
