// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the program share: run it, look at exit code, stdout and stderr.

use std::path::Path;
use std::process::{Command, Output};

/// A finished run of the program.
pub struct Done {
    /// Exit code; a signal is a panic here.
    pub code: i32,
    /// Data.
    #[allow(dead_code)]
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

/// The program, without colour.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    // The file of the person who tests gives no defaults.
    command.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").env("SCHEDLAB_CONFIG", "");
    command
}

/// Runs the program with these arguments.
#[allow(dead_code)]
pub fn schedlab(args: &[&str]) -> Done {
    done(&command().args(args).output().expect("the program can be started"))
}

/// The same, in a directory.
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

/// Takes an output apart.
pub fn done(output: &Output) -> Done {
    Done {
        code: output.status.code().expect("the program was not ended by a signal"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Whether guests with this kernel can run here; otherwise the test is skipped.
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
