// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU: finding it, its command line, and its results.

pub mod build;
pub mod command;
pub mod live;
pub mod process;
pub mod qmp;
pub mod snapshot;

use crate::cache::program_key;
use crate::{Cache, VmError};
use schedlab_run::file::write_whole;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use command::{Accel, Files, Setup};
pub use process::Guest;

/// Name of the program.
const PROGRAM: &str = "qemu-system-x86_64";

/// An installed QEMU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// First line of the output of `--version`.
    pub version: String,
    /// Major and minor number.
    pub number: (u32, u32),
    /// Directory of its firmware, if it is not where the program looks by itself.
    pub firmware: Option<PathBuf>,
}

impl Qemu {
    /// Finds the program in `SCHEDLAB_QEMU`, or else in PATH.
    pub fn find() -> Result<Self, VmError> {
        Self::start(&named().map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from))
    }

    /// Asks a program for its version.
    pub(crate) fn start(program: &Path) -> Result<Self, VmError> {
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
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
        Ok(Self { program: program.to_owned(), version, number, firmware: None })
    }

    /// As [`Self::find`], but the version of an unchanged program is read from the cache. Starting
    /// the program takes as long as a tenth of a short run.
    pub fn find_known(cache: &Cache) -> Result<Self, VmError> {
        let path = named().map_or_else(|| in_path(PROGRAM), |name| Some(PathBuf::from(name)));
        let Some((program, key)) = path.and_then(|path| program_key(&path).map(|key| (path, key)))
        else {
            return Self::find();
        };
        let known = cache.dir("qemu")?.join(key);
        if let Ok(version) = fs::read_to_string(&known)
            && let Some(number) = number_of(&version)
        {
            return Ok(Self { program, version, number, firmware: None });
        }
        let found = Self::find()?;
        write_whole(&known, found.version.as_bytes())?;
        Ok(found)
    }

    /// Refuses counted time with several CPUs for versions where it is not reliable.
    pub fn check_counted(&self, nr_cpus: u32) -> Result<(), VmError> {
        if nr_cpus == 1 || self.number >= (8, 1) {
            return Ok(());
        }
        Err(VmError::Unavailable(format!(
            "counted time with {nr_cpus} CPUs needs QEMU 8.1 or later, here is {}.{}: up to 8.0 a \
             CPU runs until the next timer and can starve the others for seconds. Build one in \
             which all CPUs run at the same time (`schedlab qemu build`), or use one CPU, another \
             QEMU (SCHEDLAB_QEMU), `--clock live`, or the simulator",
            self.number.0, self.number.1
        )))
    }
}

/// The program that the user names.
pub fn named() -> Option<OsString> {
    std::env::var_os("SCHEDLAB_QEMU").filter(|path| !path.is_empty())
}

/// The file of a command in PATH.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Reads the numbers of `QEMU emulator version 7.2.22 (...)`.
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
        Qemu { program: PROGRAM.into(), version: version.into(), number, firmware: None }
    }

    #[test]
    fn a_program_is_known_until_its_file_changes_and_a_script_never() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        fs::write(&path, b"#!/bin/sh\nexec qemu").unwrap();
        assert_eq!(program_key(&path), None);
        fs::write(&path, b"\x7fELF one").unwrap();
        let first = program_key(&path).unwrap();
        assert_eq!(program_key(&path).unwrap(), first);
        fs::write(&path, b"\x7fELF other").unwrap();
        assert_ne!(program_key(&path).unwrap(), first);
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
