// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's init: where it is, and whether it is suitable.

use crate::cache::program_key;
use crate::kernel::elf::Elf;
use crate::{Cache, VmError, initramfs};
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the program.
const NAME: &str = "schedlab-guest";
/// Directory of the archives in the cache.
const DIR: &str = "guests";
/// Where the build puts it, relative to the directory of `schedlab` in the same build.
const IN_BUILD: &str = "../x86_64-unknown-linux-gnu/guest/schedlab-guest";
/// Where packages install it, relative to the directory of `schedlab`.
const INSTALLED: &str = "../lib/schedlab/schedlab-guest";

/// The guest's initial file system, in the cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Initramfs {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
}

/// Finds the init: the file in `SCHEDLAB_GUEST`, or else the program in the directory of
/// `schedlab`, or else that of the same build.
pub fn find() -> Result<PathBuf, VmError> {
    if let Some(path) = std::env::var_os("SCHEDLAB_GUEST").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        check(&path).map_err(|why| {
            VmError::Input(format!("SCHEDLAB_GUEST names {}: {why}", path.display()))
        })?;
        return Ok(path);
    }
    let mut reasons = Vec::new();
    for path in &places() {
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

/// Where the init may be by default.
fn places() -> Vec<PathBuf> {
    let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let dirs = own.ancestors().skip(1).take(2);
    // Tests are one directory deeper than the programs.
    dirs.flat_map(|dir| [NAME, INSTALLED, IN_BUILD].map(|place| dir.join(place))).collect()
}

/// The initial file system of an init that was packed before and has not changed. Packing it again
/// would take as long as a twentieth of a short run.
fn known(cache: &Cache) -> Result<Option<Initramfs>, VmError> {
    let named = std::env::var_os("SCHEDLAB_GUEST").filter(|path| !path.is_empty());
    let path = match named {
        Some(path) => Some(PathBuf::from(path)),
        None => places().into_iter().find(|path| path.exists()),
    };
    let Some(note) = path.and_then(|path| note_of(cache, &path).transpose()).transpose()? else {
        return Ok(None);
    };
    let Ok(sha256) = fs::read_to_string(note) else { return Ok(None) };
    if sha256.len() != 64 || !sha256.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let path = archive_of(cache, &sha256)?;
    let is_whole = fs::metadata(&path).is_ok_and(|data| data.len() > 0);
    Ok(is_whole.then_some(Initramfs { path, sha256 }))
}

/// The file with the hash of a program's archive.
fn note_of(cache: &Cache, program: &Path) -> Result<Option<PathBuf>, VmError> {
    let Some(key) = program_key(program) else { return Ok(None) };
    Ok(Some(cache.dir(DIR)?.join(format!("{key}.sum"))))
}

fn archive_of(cache: &Cache, sha256: &str) -> Result<PathBuf, VmError> {
    Ok(cache.dir(DIR)?.join(format!("{sha256}.cpio")))
}

/// Checks that the program needs no loader, because the guest has no libraries.
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

/// The initial file system with the init. Writes it to the cache if it is missing.
pub fn initramfs(cache: &Cache) -> Result<Initramfs, VmError> {
    if let Some(known) = known(cache)? {
        return Ok(known);
    }
    let init = find()?;
    let bytes = fs::read(&init).map_err(|error| VmError::file("read", &init, &error))?;
    let archive = initramfs::pack(&bytes);
    let sha256 = sha256(&archive);
    let path = archive_of(cache, &sha256)?;
    cache.write_once(&path, &archive)?;
    if let Some(note) = note_of(cache, &init)? {
        write_whole(&note, sha256.as_bytes())?;
    }
    Ok(Initramfs { path, sha256 })
}
