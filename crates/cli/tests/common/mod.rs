// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared helpers for tests of the program: run it, look at exit code, stdout and stderr.

use std::path::Path;
use std::process::{Command, Output};

/// A finished run of the program.
pub struct Done {
    /// Exit code. If a signal ended the program, the test panics.
    pub code: i32,
    /// Data of the program.
    #[allow(dead_code)]
    pub stdout: String,
    /// Messages of the program.
    pub stderr: String,
}

/// The program, without colour.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    // The tester's own configuration file must not add defaults.
    command.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").env("SCHEDLAB_CONFIG", "");
    command
}

/// Runs the program with these arguments.
#[allow(dead_code)]
pub fn schedlab(args: &[&str]) -> Done {
    done(&command().args(args).output().expect("the program can be started"))
}

/// Runs the program with these arguments in a directory.
#[allow(dead_code)]
pub fn schedlab_in(folder: &Path, args: &[&str]) -> Done {
    let output = command().args(args).current_dir(folder).output();
    done(&output.expect("the program can be started"))
}

/// Runs the program and expects success.
#[allow(dead_code)]
pub fn ok(args: &[&str]) -> Done {
    let done = schedlab(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done
}

/// Converts a finished process.
pub fn done(output: &Output) -> Done {
    Done {
        code: output.status.code().expect("the program was not ended by a signal"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Whether this kernel can run as a guest here; if not, the test is skipped.
#[allow(dead_code)]
pub fn kernel_ready(kernel: &str) -> bool {
    let skip = |why: &str| {
        schedlab_testing::skip(why);
        false
    };
    if let Err(error) = schedlab_vm::qemu::Qemu::find() {
        return skip(&error.to_string());
    }
    if let Err(error) = schedlab_vm::guest::find() {
        return skip(&error.to_string());
    }
    let got = schedlab(&["kernel", "get", kernel]);
    match got.code {
        0 => true,
        3 => skip(&got.stderr),
        code => panic!("kernel get {kernel} gave {code}: {}", got.stderr),
    }
}

/// The source of the round-robin scheduler for sched_ext. Its headers are copied to `folder`.
#[allow(dead_code)]
pub fn rr_source(folder: &Path) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx");
    for entry in std::fs::read_dir(&from).expect("the directory is there").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".bpf.h") {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("it is copied");
        }
    }
    std::fs::read_to_string(from.join("rr.bpf.c")).expect("the scheduler is there")
}

/// A message of the program as one line: where it breaks depends on the length of the paths in it.
#[allow(dead_code)]
pub fn flat(text: &str) -> String {
    text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}
