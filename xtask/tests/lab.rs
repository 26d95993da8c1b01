// SPDX-License-Identifier: MIT OR Apache-2.0
//! `./lab`, with stand-ins for the programs that it calls: its steps, their order, and its
//! behaviour when it cannot fetch kernels.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A copy of the script in a directory where every program that it calls only records its
/// arguments.
struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    /// Makes a copy whose `schedlab kernel get` ends with this exit code.
    fn new(kernels_code: u32) -> Self {
        let lab = Self { folder: tempfile::tempdir().unwrap() };
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab");
        lab.write("lab", &fs::read_to_string(own).unwrap());
        let note = |name: &str| format!("#!/bin/sh\necho {name} \"$@\" >> \"$LOG\"\n");
        lab.write("scripts/install.sh", &note("install"));
        lab.write("scripts/guest.sh", &note("guest"));
        lab.write(
            "schedlab",
            &format!("{}[ $1 = kernel ] && exit {kernels_code}\nexit 0\n", note("schedlab")),
        );
        let built = "mkdir -p target/release && cp schedlab target/release/schedlab\n";
        lab.write("bin/cargo", &format!("{}{built}", note("cargo")));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new(self.path("lab"));
        command.args(args).current_dir(self.folder.path());
        command.env("PATH", path).env("LOG", self.path("log")).env("HOME", self.path("home"));
        command.env_remove("CARGO_TARGET_DIR").output().unwrap()
    }

    /// The recorded calls, without arguments after the second.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let short = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        log.lines().map(short).collect()
    }
}

#[test]
fn the_demo_shows_a_simulated_report_before_it_builds_what_guests_need() {
    let lab = Lab::new(0);
    let output = lab.run(&["demo", "out"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let calls = lab.calls();
    let at = |call: &str| calls.iter().position(|found| found.starts_with(call)).expect(call);
    let first = at("schedlab compare");
    assert!(at("install") < at("cargo build") && at("cargo build") < first, "{calls:?}");
    assert!(first < at("guest") && first < at("schedlab kernel"), "{calls:?}");
    assert_eq!(calls.last().unwrap(), "schedlab reproduce");
    let log = fs::read_to_string(lab.path("log")).unwrap();
    assert!(log.contains("--vm 6.1,6.12,6.18"), "{log}");
    for report in ["out/first.html", "out/lanes.html", "out/report.html"] {
        assert!(said.contains(&lab.path(report).display().to_string()), "{report}: {said}");
    }
    assert!(said.contains("[0:0"), "each step has the time since the start: {said}");
}

#[test]
fn without_kernels_the_demo_goes_on_and_says_so() {
    let lab = Lab::new(3);
    let output = lab.run(&["demo"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("going on without virtual machines"), "{said}");
    let log = fs::read_to_string(lab.path("log")).unwrap();
    assert!(!log.contains("--vm") && log.contains("reproduce --quick"), "{log}");
}

#[test]
fn other_commands_install_first_and_unknown_ones_are_refused() {
    let lab = Lab::new(0);
    assert!(lab.run(&["test"]).status.success());
    assert_eq!(lab.calls(), ["install test", "cargo xtask"]);
    let refused = lab.run(&["frobnicate"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("unknown command \"frobnicate\"") && said.contains("Usage:"), "{said}");
    let help = lab.run(&[]);
    assert!(String::from_utf8_lossy(&help.stdout).starts_with("Usage: ./lab COMMAND"));
}
