// SPDX-License-Identifier: MIT OR Apache-2.0
//! A QEMU of schedlab's own, in which several CPUs run at the same (counted) time.
//!
//! QEMU emulates the CPUs of a guest one after the other if it counts instructions. `rounds.c` and
//! `hooks.patch` make every CPU execute the same stretch of virtual time before the clock goes on.
//! [`build`] compiles them into the QEMU of Debian's archive and keeps the result in the cache.

mod recipe;
mod steps;

use super::{Qemu, number_of};
use crate::{Cache, VmError};
use schedlab_run::file::write_whole;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

pub use recipe::{Missing, Recipe};
pub use steps::build;

/// Directory of the builds in the cache.
const DIR: &str = "qemu-builds";
/// The program in a build's directory.
const PROGRAM: &str = super::PROGRAM;
/// The firmware in a build's directory.
const FIRMWARE: &str = "firmware";
/// The description in a build's directory. It is written last: a build with one is complete.
const NOTE: &str = "build.json";
/// Begins the text in parentheses in the version of such a QEMU.
const MARK: &str = "(schedlab ";

/// A QEMU that was built.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Build {
    /// Hash of what schedlab adds and sets: the name of the build's directory.
    pub recipe: String,
    /// First line of the output of `--version`. It contains the build's own hash.
    pub version: String,
    /// Source package and version, such as `qemu_10.0.13+ds.orig.tar.xz`.
    pub source: String,
    /// SHA-256 of the source.
    pub source_sha256: String,
    /// Whether this program would build it in the same way.
    #[serde(skip)]
    pub is_current: bool,
}

impl Build {
    fn dir(&self, cache: &Cache) -> PathBuf {
        cache.root().join(DIR).join(&self.recipe)
    }

    /// The program.
    pub fn program(&self, cache: &Cache) -> PathBuf {
        self.dir(cache).join(PROGRAM)
    }

    /// The QEMU of the build.
    fn qemu(&self, cache: &Cache) -> Option<Qemu> {
        let program = self.program(cache);
        let firmware = Some(self.dir(cache).join(FIRMWARE));
        let number = number_of(&self.version)?;
        let version = self.version.clone();
        program.is_file().then_some(Qemu { program, version, number, firmware })
    }

    /// Removes it.
    pub fn remove(&self, cache: &Cache) -> Result<(), VmError> {
        let dir = self.dir(cache);
        fs::remove_dir_all(&dir).map_err(|error| VmError::file("remove", &dir, &error))
    }
}

/// All builds in the cache, in order of their recipes.
pub fn list(cache: &Cache) -> Vec<Build> {
    let current = Recipe::default().sha256();
    let entries = fs::read_dir(cache.root().join(DIR)).into_iter().flatten().flatten();
    let mut builds: Vec<Build> =
        entries.filter_map(|entry| read(&entry.path(), &current)).collect();
    builds.sort_by(|a, b| a.recipe.cmp(&b.recipe));
    builds
}

fn read(dir: &Path, current: &str) -> Option<Build> {
    let mut build: Build = serde_json::from_slice(&fs::read(dir.join(NOTE)).ok()?).ok()?;
    // Not what the file says: the directory is what gets removed.
    build.recipe = dir.file_name()?.to_str()?.to_owned();
    build.is_current = build.recipe == current;
    Some(build)
}

fn write(dir: &Path, build: &Build) -> Result<(), VmError> {
    let text = serde_json::to_vec_pretty(build)
        .map_err(|error| VmError::System(format!("describing a build of QEMU: {error}")))?;
    Ok(write_whole(&dir.join(NOTE), &text)?)
}

/// The QEMU that this program's recipe gave; `None` if it has not been built.
pub fn find(cache: &Cache) -> Option<Qemu> {
    let current = Recipe::default().sha256();
    read(&cache.root().join(DIR).join(&current), &current)?.qemu(cache)
}

/// Whether several CPUs of a guest run at the same time under a QEMU of this version.
pub fn is_parallel(version: &str) -> bool {
    version.contains(MARK)
}

/// One line for `schedlab doctor`: what is built, or why runs need it.
pub fn describe(cache: &Cache) -> Result<String, String> {
    match (find(cache), list(cache).is_empty()) {
        (Some(qemu), _) => Ok(qemu.version),
        (None, true) => Err("not built".into()),
        (None, false) => Err("built by another version of schedlab".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_in(cache: &Cache, recipe: &str) -> Build {
        let build = Build {
            recipe: recipe.into(),
            version: "QEMU emulator version 10.0.13 (schedlab 0123456789ab)".into(),
            source: "qemu_10.0.13+ds.orig.tar.xz".into(),
            source_sha256: "s".into(),
            is_current: false,
        };
        let dir = build.dir(cache);
        fs::create_dir_all(&dir).unwrap();
        write(&dir, &build).unwrap();
        build
    }

    #[test]
    fn a_build_is_used_if_its_recipe_is_this_programs_and_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        assert_eq!(describe(&cache), Err("not built".into()));
        let old = build_in(&cache, "0123");
        fs::write(old.program(&cache), "x").unwrap();
        assert_eq!((find(&cache), list(&cache).len()), (None, 1));
        assert!(describe(&cache).unwrap_err().contains("another version"));
        let new = build_in(&cache, &Recipe::default().sha256());
        assert_eq!(find(&cache), None, "its program is missing");
        fs::write(new.program(&cache), "x").unwrap();
        let found = find(&cache).unwrap();
        assert_eq!(found.number, (10, 0));
        assert!(found.firmware.unwrap().ends_with("firmware") && is_parallel(&found.version));
        let current: Vec<bool> = list(&cache).iter().map(|build| build.is_current).collect();
        assert_eq!(current.iter().filter(|is_current| **is_current).count(), 1);
        new.remove(&cache).unwrap();
        assert_eq!((find(&cache), list(&cache).len()), (None, 1));
    }

    #[test]
    fn other_builds_of_qemu_are_not_taken_for_it() {
        assert!(!is_parallel("QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)"));
    }
}
