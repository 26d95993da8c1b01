// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU: which one is there, how it is called, and what comes of a call.

pub mod command;
pub mod live;
pub mod process;
pub mod qmp;
pub mod snapshot;

use crate::VmError;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub use command::{Accel, Files, Setup};
pub use process::Guest;

/// Name of the program.
const PROGRAM: &str = "qemu-system-x86_64";

/// A QEMU that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// First line of what it says of itself.
    pub version: String,
    /// Major and minor number.
    pub number: (u32, u32),
}

impl Qemu {
    /// The program that `SCHEDLAB_QEMU` names, else the one in PATH.
    pub fn find() -> Result<Self, VmError> {
        let named = std::env::var_os("SCHEDLAB_QEMU").filter(|path| !path.is_empty());
        let program = named.map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from);
        let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            VmError::Unavailable(format!(
                "{} cannot be started: {error}. Install it (apt-get install qemu-system-x86), or \
                 name one by SCHEDLAB_QEMU",
                program.display()
            ))
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        let number = number_of(&version).ok_or_else(|| {
            VmError::Unavailable(format!(
                "{} does not say which version of QEMU it is: {version:?}",
                program.display()
            ))
        })?;
        Ok(Self { program, version, number })
    }

    /// Refuses counted time with several CPUs where it cannot be trusted.
    pub fn check_counted(&self, nr_cpus: u32) -> Result<(), VmError> {
        if nr_cpus == 1 || self.number >= (8, 1) {
            return Ok(());
        }
        Err(VmError::Unavailable(format!(
            "counted time with {nr_cpus} CPUs needs QEMU 8.1 or later, here is {}.{}: up to 8.0 a \
             CPU runs until the next timer and can starve the others for seconds. Use one CPU, \
             another QEMU (SCHEDLAB_QEMU), `--clock live`, or the simulator",
            self.number.0, self.number.1
        )))
    }
}

/// The numbers in `QEMU emulator version 7.2.22 (...)`.
fn number_of(version: &str) -> Option<(u32, u32)> {
    let rest = version.split("version ").nth(1)?;
    let mut parts = rest.split(|found: char| !found.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu(version: &str) -> Qemu {
        let number = number_of(version).unwrap();
        Qemu { program: PROGRAM.into(), version: version.into(), number }
    }

    #[test]
    fn old_versions_are_refused_for_several_cpus_only() {
        let old = qemu("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)");
        assert_eq!(old.number, (7, 2));
        assert!(old.check_counted(1).is_ok());
        let text = old.check_counted(2).unwrap_err().to_string();
        assert!(text.contains("8.1") && text.contains("starve") && text.contains("live"), "{text}");
        assert!(qemu("QEMU emulator version 10.0.13").check_counted(4).is_ok());
        assert_eq!(number_of("no QEMU at all"), None);
    }
}
