// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots of machines that have booted: the next run begins where the boot ended.
//!
//! A watchdog pauses the machine at a fixed time, while all of the guest sleeps; QEMU then writes
//! the machine's state into a file of the cache, named by everything that the state depends on. A
//! run that boots anew is paused and resumed at the same time and gives the same trace.

use super::command::fd;
use super::{Files, Guest, Qemu, Setup};
use crate::protocol::{stage, word};
use crate::shared::SharedFile;
use crate::{Cache, VmError, hash};
use serde_json::json;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most snapshots in the cache; those that were not used for longest go first. Each takes about
/// 100 MB.
const KEPT_MAX: usize = 24;
/// Longest time to read or write one.
const COPY_LIMIT: Duration = Duration::from_secs(60);

/// Quotes a path for the shell that QEMU starts.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// The snapshot of a machine: made if it is not there.
pub fn ensure(
    cache: &Cache,
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    key: &str,
    boot_limit: Duration,
) -> Result<PathBuf, VmError> {
    let dir = cache.dir("snapshots")?;
    let path = dir.join(format!("{}.state", hash::sha256(key.as_bytes())));
    if path.is_file() {
        // The newest use decides which one goes when there are too many.
        let _ = File::open(&path).and_then(|file| file.set_modified(std::time::SystemTime::now()));
        return Ok(path);
    }
    let lock_path = path.with_extension("lock");
    let lock = File::create(&lock_path).map_err(|e| VmError::file("write", &lock_path, &e))?;
    lock.lock().map_err(|error| VmError::file("lock", &lock_path, &error))?;
    if !path.is_file() {
        let new = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&dir)
            .map_err(|error| VmError::file("write in", &dir, &error))?;
        make(qemu, setup, files, new.path(), boot_limit)?;
        new.persist(&path).map_err(|error| VmError::file("write", &path, &error.error))?;
        remove_oldest(&dir);
    }
    let _ = fs::remove_file(&lock_path);
    Ok(path)
}

fn make(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    path: &Path,
    boot_limit: Duration,
) -> Result<(), VmError> {
    let mut guest = boot(qemu, setup, files, &[], boot_limit)?;
    let saved = guest
        .qmp
        .execute("migrate-set-parameters", json!({ "max-bandwidth": 1u64 << 40 }))
        .and_then(|_| {
            let uri = format!("exec:cat > {}", quoted(path));
            guest.qmp.execute("migrate", json!({ "uri": uri }))
        })
        .and_then(|_| guest.qmp.wait_migration(COPY_LIMIT));
    saved.map_err(|error| guest.why_ended(error))
}

/// Boots a machine with a request in its memory, up to the pause.
fn boot(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    request: &[u8],
    limit: Duration,
) -> Result<Guest, VmError> {
    let shared = SharedFile::new().map_err(no_memory)?;
    shared.set_word(word::PAUSES, 1).map_err(no_memory)?;
    shared.ask(request).map_err(|error| VmError::Input(error.to_string()))?;
    let mut guest = Guest::start(qemu, setup, files, (&[], None), shared)?;
    match guest.qmp.wait_event("STOP", limit) {
        Ok(true) if guest.shared.stage() == stage::READY => Ok(guest),
        Ok(true) => Err(guest.failure("the machine stopped too early")),
        Ok(false) => Err(guest.failure(&format!(
            "the guest was not ready within {} s of real time and was ended",
            limit.as_secs()
        ))),
        Err(error) => Err(guest.why_ended(error)),
    }
}

/// Boots a machine that goes on at once with the request.
pub fn boot_and_run(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    request: &[u8],
    limit: Duration,
) -> Result<Guest, VmError> {
    let mut guest = boot(qemu, setup, files, request, limit)?;
    match guest.qmp.execute("cont", json!({})) {
        Ok(_) => Ok(guest),
        Err(error) => Err(guest.why_ended(error)),
    }
}

fn no_memory(error: std::io::Error) -> VmError {
    VmError::System(format!("memory shared with the guest: {error}"))
}

/// Starts a machine from a snapshot, with a request in its memory.
pub fn resume(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    path: &Path,
    request: &[u8],
) -> Result<Guest, VmError> {
    let shared = SharedFile::new().map_err(no_memory)?;
    let file = File::open(path).map_err(|error| VmError::file("read", path, &error))?;
    let more: [OsString; 3] = ["-S".into(), "-incoming".into(), source(qemu).into()];
    let mut guest = Guest::start(qemu, setup, files, (&more, Some(&file)), shared)?;
    let resumed = guest.qmp.wait_migration(COPY_LIMIT).and_then(|()| {
        guest.shared.reset().map_err(no_memory)?;
        guest.shared.set_word(word::STAGE, stage::READY).map_err(no_memory)?;
        guest.shared.ask(request).map_err(|error| VmError::Input(error.to_string()))?;
        guest.qmp.execute("cont", json!({}))
    });
    match resumed {
        Ok(_) => Ok(guest),
        Err(error) => Err(guest.why_ended(error)),
    }
}

/// Where the machine reads its snapshot: the file itself. A pipe would take twice the CPU time.
/// QEMU 8.2 has a name for files; later ones take descriptors of files no more.
fn source(qemu: &Qemu) -> String {
    match qemu.number >= (8, 2) {
        true => format!("file:/proc/self/fd/{}", fd::SNAPSHOT),
        false => format!("fd:{}", fd::SNAPSHOT),
    }
}

fn remove_oldest(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let states = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "state"));
    let mut found: Vec<_> = states
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    for (_, path) in found.iter().rev().skip(KEPT_MAX) {
        // Another run may have removed it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_the_shell() {
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }

    #[test]
    fn the_oldest_snapshots_go_first() {
        let dir = tempfile::tempdir().unwrap();
        for nth in 0..KEPT_MAX + 2 {
            let file = File::create(dir.path().join(format!("{nth:02}.state"))).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::from_secs(nth as u64);
            file.set_modified(time).unwrap();
        }
        remove_oldest(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), KEPT_MAX);
        assert!(!dir.path().join("01.state").exists() && dir.path().join("02.state").exists());
    }
}
