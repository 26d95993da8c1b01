// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a user program sees in place of this machine's, and the file for its output.

use crate::{RecordError, Request, tree};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The list of mounts.
const MOUNTS: &str = "/proc/self/mounts";
/// Times of CPUs.
const TIMES: &str = "/proc/stat";

/// Files of one user program. They exist as long as this.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    /// Writes the files of the request's machine.
    pub(crate) fn new(request: &Request<'_>) -> Result<Self, RecordError> {
        let stage = Self { folder: tempfile::tempdir()? };
        tree::write(&stage.path("sys"), request.topology, request.caches, request.types)?;
        // An empty /run hides the services of this machine, such as the daemon of power profiles.
        fs::create_dir(stage.path("run"))?;
        fs::write(stage.path("mounts"), fs::read_to_string(MOUNTS)? + tree::MOUNT)?;
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files, and where the program sees them.
    pub(crate) fn mounts(&self) -> Vec<(PathBuf, &'static Path)> {
        let mount = |name: &str, at: &'static str| (self.path(name), Path::new(at));
        let mut mounts = vec![mount("sys", "/sys"), mount("run", "/run"), mount("mounts", MOUNTS)];
        if self.path("stat").exists() {
            mounts.push(mount("stat", TIMES));
        }
        mounts
    }

    /// Makes the file for the program's output.
    pub(crate) fn create_output(&self) -> io::Result<File> {
        File::create(self.output())
    }

    /// The file with the program's output.
    pub(crate) fn output(&self) -> PathBuf {
        self.path("output")
    }

    /// Shows these times of CPUs in /proc/stat.
    pub(crate) fn show_times(&self, text: &str) -> io::Result<()> {
        fs::write(self.path("stat"), text)
    }

    /// Shows that a scheduler is active.
    pub(crate) fn show_attached(&self) -> io::Result<()> {
        let ext = self.path("sys").join("kernel/sched_ext");
        fs::write(ext.join("state"), "enabled\n")?;
        fs::write(ext.join("enable_seq"), "1\n")?;
        fs::write(ext.join("switch_all"), "1\n")
    }
}
