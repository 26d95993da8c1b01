// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's init: where it is, and whether it can be one.

use crate::kernel::elf::Elf;
use crate::{Cache, VmError, hash, initramfs};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the program.
const NAME: &str = "schedlab-guest";
/// Where the build leaves it, seen from the directory of `schedlab` in the same build.
const IN_BUILD: &str = "../x86_64-unknown-linux-gnu/guest/schedlab-guest";

/// The guest's first file system, in the cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Initramfs {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
}

/// The init: what `SCHEDLAB_GUEST` names, else the program beside `schedlab`, else the one of the
/// same build.
pub fn find() -> Result<PathBuf, VmError> {
    if let Some(path) = std::env::var_os("SCHEDLAB_GUEST").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        check(&path).map_err(|why| {
            VmError::Input(format!("SCHEDLAB_GUEST names {}: {why}", path.display()))
        })?;
        return Ok(path);
    }
    let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let dirs = own.ancestors().skip(1).take(2);
    // Tests lie one directory deeper than the programs.
    let places: Vec<PathBuf> = dirs.flat_map(|dir| [dir.join(NAME), dir.join(IN_BUILD)]).collect();
    let mut reasons = Vec::new();
    for path in &places {
        match check(path) {
            Ok(()) => return Ok(path.clone()),
            Err(why) if path.exists() => reasons.push(format!("; {}: {why}", path.display())),
            Err(_) => {}
        }
    }
    Err(VmError::Unavailable(format!(
        "the guest's init is not there: {NAME} is looked for beside schedlab{}. `make build` \
         builds both; SCHEDLAB_GUEST names it elsewhere",
        reasons.concat()
    )))
}

/// A program without a loader: the guest has no library.
fn check(path: &Path) -> Result<(), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let elf = Elf::new(&bytes).ok_or("it is no 64-bit ELF program")?;
    if elf.is_dynamic() {
        return Err(
            "it is linked with libraries, and a guest has none: build it with `make guest`".into(),
        );
    }
    Ok(())
}

/// The first file system with the init, written into the cache if it is not there.
pub fn initramfs(cache: &Cache) -> Result<Initramfs, VmError> {
    let init = find()?;
    let bytes = fs::read(&init).map_err(|error| VmError::file("read", &init, &error))?;
    let archive = initramfs::pack(&bytes);
    let sha256 = hash::sha256(&archive);
    let path = cache.dir("guests")?.join(format!("{sha256}.cpio"));
    cache.write_once(&path, &archive)?;
    Ok(Initramfs { path, sha256 })
}
