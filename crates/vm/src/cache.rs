// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache of kernels, initial file systems and snapshots.
//!
//! Its directory is `$SCHEDLAB_CACHE`, or else `$XDG_CACHE_HOME/schedlab`, or else
//! `~/.cache/schedlab` (XDG Base Directory Specification). Files are written under a temporary name
//! and renamed, so no process sees an incomplete file, and several runs can fill the cache at the
//! same time.

use crate::VmError;
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache.
    pub fn of_user() -> Result<Self, VmError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let below = |dir: std::ffi::OsString, rest: &str| PathBuf::from(dir).join(rest);
        let root = set("SCHEDLAB_CACHE").map(PathBuf::from);
        let root = root.or_else(|| set("XDG_CACHE_HOME").map(|dir| below(dir, "schedlab")));
        let root = root.or_else(|| set("HOME").map(|dir| below(dir, ".cache/schedlab")));
        let root = root.ok_or_else(|| {
            VmError::Unavailable(
                "there is no place to keep kernels: neither SCHEDLAB_CACHE nor HOME is set".into(),
            )
        })?;
        Ok(Self::at(root))
    }

    /// A cache in this directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root: PathBuf = root.into();
        Self { root: std::path::absolute(&root).unwrap_or(root) }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A directory of the cache, created if necessary.
    pub fn dir(&self, name: &str) -> Result<PathBuf, VmError> {
        let dir = self.root.join(name);
        fs::create_dir_all(&dir).map_err(|error| VmError::file("make", &dir, &error))?;
        Ok(dir)
    }

    /// Writes a file whose name is the hash of its content, unless it exists already.
    pub fn write_once(&self, path: &Path, bytes: &[u8]) -> Result<(), VmError> {
        match fs::read(path) {
            Ok(found) if found == bytes => Ok(()),
            _ => Ok(write_whole(path, bytes)?),
        }
    }
}

/// A name that changes when the program is replaced. What is known of the program is stored under
/// it. `None` for a script, which may start another program.
pub fn program_key(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let mut magic = [0; 4];
    let mut file = fs::File::open(&path).ok()?;
    file.read_exact(&mut magic).ok()?;
    let data = file.metadata().ok()?;
    let text = format!(
        "{} {} {} {}.{}",
        path.display(),
        data.ino(),
        data.len(),
        data.mtime(),
        data.mtime_nsec()
    );
    (&magic == b"\x7fELF").then(|| sha256(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_whole_and_nothing_is_left_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let kernels = cache.dir("kernels").unwrap();
        let path = kernels.join("x");
        cache.write_once(&path, b"abc").unwrap();
        cache.write_once(&path, b"abcd").unwrap();
        fs::write(&path, b"abXd").unwrap();
        cache.write_once(&path, b"abcd").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcd", "a damaged file is replaced");
        assert_eq!(fs::read_dir(&kernels).unwrap().count(), 1);
    }
}
