// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running machine, and errors when it ends unexpectedly.
//!
//! It has no files: memory, console and control are descriptors. It is killed when the host's
//! process ends for any reason, and when this value is dropped.

use super::command::fd;
use super::qmp::Qmp;
use super::{Files, Qemu, Setup};
use crate::shared::SharedFile;
use crate::{VmError, sys};
use schedlab_guest::protocol::{EXIT_DONE, stage};
use schedlab_host::sys as host;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Last lines of the console that an error shows.
const LINES_SHOWN: usize = 12;
/// Most lines that an error shows of a kernel's complaint, from its first line on. The cause and
/// the call trace are far above the last lines.
const COMPLAINT_SHOWN: usize = 60;
/// Texts in the first line of a kernel's complaint (arch/x86: `die`, `show_fault_oops`,
/// `exc_general_protection`; lib/bug.c; kernel/panic.c).
const COMPLAINTS: [&str; 6] = [
    "BUG: ",
    "kernel BUG at ",
    "Oops: ",
    "general protection fault",
    "double fault",
    "Kernel panic",
];
/// Bytes of the console that are read.
const CONSOLE_MAX: u64 = 1 << 20;

/// A running machine.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    console: File,
    messages: File,
    /// The memory shared with it.
    pub shared: SharedFile,
    /// Its control connection.
    pub qmp: Qmp,
}

impl Guest {
    /// Starts a machine. `more`: arguments in addition to those of `setup`, and files that it gets
    /// under these numbers ([`fd`]).
    pub fn start(
        qemu: &Qemu,
        setup: &Setup,
        files: Files<'_>,
        (more, given): (&[String], &[(&File, i32)]),
        shared: SharedFile,
    ) -> Result<Self, VmError> {
        let wrong =
            |error: std::io::Error| VmError::System(format!("preparing a machine: {error}"));
        let console = sys::memory_file(0).map_err(wrong)?;
        let messages = sys::memory_file(0).map_err(wrong)?;
        let (ours, theirs) = UnixStream::pair().map_err(wrong)?;
        let mut command = Command::new(&qemu.program);
        // Which firmware it is belongs to the version of a QEMU that has its own.
        command.args(qemu.firmware.iter().flat_map(|dir| [OsStr::new("-L"), dir.as_os_str()]));
        command.args(setup.arguments(files)).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::from(messages.try_clone().map_err(wrong)?));
        // Numbers above those of the machine, so that none is overwritten before it is copied.
        let mut pass = vec![
            (sys::raw(shared.file()), fd::SHARED),
            (sys::raw(&console), fd::CONSOLE),
            (sys::raw(&theirs), fd::CONTROL),
        ];
        pass.extend(given.iter().map(|(file, number)| (sys::raw(*file), *number)));
        let lifted = sys::lift(&pass).map_err(wrong)?;
        sys::tie_and_pass(&mut command, lifted.numbers());
        let child = command.spawn().map_err(|error| {
            VmError::Unavailable(format!("{} cannot be started: {error}", qemu.program.display()))
        })?;
        Ok(Self { child, console, messages, shared, qmp: Qmp::new(ours)? })
    }

    /// The guest's console output so far.
    pub fn console(&self) -> String {
        text_of(&self.console)
    }

    /// Process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the guest has answered.
    pub fn wait(&mut self, limit: Duration) -> Result<(), VmError> {
        match self.wait_end(limit)? {
            Some(status)
                if status.code() == Some(EXIT_DONE) && self.shared.stage() == stage::DONE =>
            {
                Ok(())
            }
            Some(status) => Err(self.bad_end(status)),
            None => Err(self.failure(&format!(
                "the guest did not answer within {} s of real time and was ended",
                limit.as_secs()
            ))),
        }
    }

    /// Waits for the end of QEMU; `None` if it did not end within the limit.
    fn wait_end(&mut self, limit: Duration) -> Result<Option<ExitStatus>, VmError> {
        let until = Instant::now() + limit;
        let wrong = |error| VmError::System(format!("waiting for QEMU: {error}"));
        let pidfd = host::pidfd_open(self.child.id()).map_err(wrong)?;
        let found = loop {
            if let Some(status) = self.child.try_wait().map_err(wrong)? {
                break Some(status);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break None;
            }
            let mut items = [host::Pollable { fd: pidfd, is_ready: false }];
            host::poll(&mut items, Some(left));
        };
        host::close(pidfd);
        Ok(found)
    }

    /// The reason, if QEMU has ended or ends at once; otherwise `otherwise`.
    pub fn why_ended(&mut self, otherwise: VmError) -> VmError {
        match self.wait_end(Duration::from_secs(1)) {
            Ok(Some(status)) => self.bad_end(status),
            _ => otherwise,
        }
    }

    fn bad_end(&self, status: ExitStatus) -> VmError {
        let console = self.console();
        let panic = console.lines().find(|line| line.contains("Kernel panic"));
        let what = match (status.code(), status.signal(), panic) {
            (_, _, Some(line)) => format!("the guest's kernel panicked ({})", after_stamp(line)),
            (Some(0), ..) => "the guest restarted or switched itself off".into(),
            (Some(1), ..) if self.shared.stage() == stage::BOOTING && console.is_empty() => {
                return VmError::System(format!(
                    "QEMU did not start the machine: {}",
                    text_of(&self.messages).trim()
                ));
            }
            (Some(EXIT_DONE), ..) => {
                "the guest ended before it was asked to: it is of another build \
                                      than this program (make guest)"
                    .into()
            }
            (Some(code), ..) => format!("QEMU ended with code {code}"),
            (None, Some(signal), _) => format!("QEMU was killed by signal {signal}"),
            (None, None, _) => "QEMU ended".into(),
        };
        self.failure(&what)
    }

    /// An error with the last lines of the console.
    pub fn failure(&self, what: &str) -> VmError {
        let tail = shown(&self.console());
        let when = stage::text(self.shared.stage());
        VmError::System(format!("{what} {when}; {tail}"))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended; then both calls fail and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of a console that an error shows.
fn shown(console: &str) -> String {
    let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
    let complains = |line: &&str| COMPLAINTS.iter().any(|words| line.contains(words));
    let (what, lines) = match lines.iter().position(complains) {
        Some(first) => {
            let end = lines.len().min(first + COMPLAINT_SHOWN);
            ("what its kernel says", &lines[first..end])
        }
        None if lines.is_empty() => return "nothing was written on its console".into(),
        None => {
            let first = lines.len().saturating_sub(LINES_SHOWN);
            ("the last lines of its console", &lines[first..])
        }
    };
    format!("{what}:\n    {}", lines.join("\n    "))
}

/// The text of a file, without characters that a terminal would not show.
fn text_of(file: &File) -> String {
    let len = file.metadata().map_or(0, |data| data.len());
    let from = len.saturating_sub(CONSOLE_MAX);
    let mut bytes = vec![0; (len - from) as usize];
    let read = file.read_at(&mut bytes, from).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]).replace('\r', "");
    text.chars().filter(|found| *found == '\n' || *found == '\t' || !found.is_control()).collect()
}

/// A line of the kernel without its time stamp.
fn after_stamp(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_shown_from_where_the_kernel_goes_wrong() {
        let boots: Vec<String> = (0..40).map(|nth| format!("[    0.{nth:02}] boots")).collect();
        let boots = boots.join("\n");
        let trace: Vec<String> =
            (0..80).map(|nth| format!("[    1.{nth:02}]  call {nth}")).collect();
        let fault = "[    1.00] Oops: general protection fault, probably for address 0x1";
        let all = format!("{boots}\n\n{fault}\n{}\n", trace.join("\n"));
        let text = shown(&all);
        assert!(text.starts_with(&format!("what its kernel says:\n    {fault}\n")), "{text}");
        assert!(text.ends_with("call 58"), "{text}");
        let text = shown(&boots);
        assert!(text.starts_with("the last lines of its console:\n    [    0.28] boots"), "{text}");
        assert_eq!(shown("\n"), "nothing was written on its console");
    }
}
