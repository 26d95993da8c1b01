// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots of booted machines: the next run starts where the boot ended.
//!
//! A watchdog pauses the machine at a fixed time, while the whole guest sleeps. QEMU then writes
//! the machine's state to a file of the cache, named by everything that influences the state. A run
//! that boots is paused and resumed at the same time, and gives the same trace.
//!
//! The guest's memory is a separate file: shared memory of this process while a snapshot is made;
//! in a run the copy in the cache, mapped privately. So a run reads only what it uses, a tenth of
//! it, and QEMU's migration contains only the devices (its capability `x-ignore-shared`, QEMU 4.0
//! and later).

use super::command::{fd, memory_in_file};
use super::{Files, Guest, Qemu, Setup};
use crate::shared::SharedFile;
use crate::{Cache, VmError, sys};
use schedlab_guest::protocol::{Message, SHARED_BYTES, stage, word};
use schedlab_run::sha::sha256;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most snapshots in the cache. The least recently used are removed first. Each takes about 100 MB.
const KEPT_MAX: usize = 24;
/// Longest time to read or write one.
const COPY_LIMIT: Duration = Duration::from_secs(60);
/// Part of a snapshot's name; differs for each format.
const FORMAT: &str = "devices and memory";
/// Extensions of its two files.
const STATE: &str = "state";
const MEMORY: &str = "memory";

/// A snapshot of a booted machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// State of its devices.
    state: PathBuf,
    /// Its memory.
    memory: PathBuf,
}

impl Snapshot {
    fn at(path: &Path) -> Self {
        Self { state: path.with_extension(STATE), memory: path.with_extension(MEMORY) }
    }

    fn is_there(&self) -> bool {
        self.state.is_file() && self.memory.is_file()
    }
}

/// Quotes a path for the shell that QEMU starts.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// The snapshot of a machine; made if it does not exist.
pub fn ensure(
    cache: &Cache,
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    key: &str,
    boot_limit: Duration,
) -> Result<Snapshot, VmError> {
    let dir = cache.dir("snapshots")?;
    let path = dir.join(sha256(format!("{key} {FORMAT}").as_bytes()));
    let snapshot = Snapshot::at(&path);
    if snapshot.is_there() {
        // The last use decides which snapshots are removed.
        let now = std::time::SystemTime::now();
        let _ = File::open(&snapshot.state).and_then(|file| file.set_modified(now));
        return Ok(snapshot);
    }
    let lock_path = path.with_extension("lock");
    let lock = File::create(&lock_path).map_err(|e| VmError::file("write", &lock_path, &e))?;
    lock.lock().map_err(|error| VmError::file("lock", &lock_path, &error))?;
    if !snapshot.is_there() {
        let new = || {
            let made = tempfile::Builder::new().prefix(".new-").tempfile_in(&dir);
            made.map_err(|error| VmError::file("write in", &dir, &error))
        };
        let (state, memory) = (new()?, new()?);
        make(qemu, setup, files, (state.path(), memory.as_file()), boot_limit)?;
        // The state is written last: a snapshot with a state is complete.
        for (new, path) in [(memory, &snapshot.memory), (state, &snapshot.state)] {
            new.persist(path).map_err(|error| VmError::file("write", path, &error.error))?;
        }
        remove_oldest(&dir);
    }
    let _ = fs::remove_file(&lock_path);
    Ok(snapshot)
}

fn make(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    (state, kept): (&Path, &File),
    boot_limit: Duration,
) -> Result<(), VmError> {
    let memory = sys::memory_file(u64::from(setup.memory_mib) << 20).map_err(no_memory)?;
    let more = (&memory_in_file(setup, true)[..], &[(&memory, fd::MEMORY)][..]);
    let mut guest = boot(qemu, setup, files, &Message::default(), more, boot_limit)?;
    let saved = guest
        .qmp
        .execute("migrate-set-parameters", json!({ "max-bandwidth": 1u64 << 40 }))
        .and_then(|_| guest.qmp.execute(CAPABILITIES, capabilities()))
        .and_then(|_| {
            // The empty file is replaced by the whole one.
            let (part, whole) = (quoted(&state.with_extension("part")), quoted(state));
            let uri = format!("exec:cat > {part} && mv {part} {whole}");
            guest.qmp.execute("migrate", json!({ "uri": uri }))
        })
        .and_then(|_| guest.qmp.wait_migration(COPY_LIMIT));
    saved.map_err(|error| guest.why_ended(error))?;
    unmap_shared(state)?;
    // Written to the disk: otherwise a crash of the host could leave zeroes unnoticed.
    sys::copy_sparse(&memory, kept)
        .and_then(|()| kept.sync_data())
        .map_err(|error| VmError::System(format!("keeping the guest's memory: {error}")))
}

/// In the state of a machine, sets the address of the shared memory to that of a machine that has
/// not started: none. QEMU checks that shared memory has the same address as before. The guest
/// decides the address of a PCI device's memory; a new machine learns it from the device's
/// registers, after that check.
fn unmap_shared(state: &Path) -> Result<(), VmError> {
    let until = Instant::now() + COPY_LIMIT;
    while fs::metadata(state).is_ok_and(|data| data.len() == 0) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let wrong = |error: std::io::Error| VmError::file("read", state, &error);
    let mut bytes = fs::read(state).map_err(wrong)?;
    let address = address_of_shared(&bytes).ok_or_else(|| {
        VmError::System("QEMU's snapshot does not say where the shared memory is".into())
    })?;
    bytes[address..address + 8].fill(0);
    fs::write(state, bytes).map_err(|error| VmError::file("write", state, &error))
}

/// Position of the shared memory's address in a state: after the block's name, which ends with the
/// name of the object, and its length (`ram_save_setup()` in migration/ram.c of QEMU).
fn address_of_shared(state: &[u8]) -> Option<usize> {
    let mut head = b"/iv".to_vec();
    head.extend((SHARED_BYTES as u64).to_be_bytes());
    let address = memchr::memmem::find(state, &head)? + head.len();
    (address + 8 <= state.len()).then_some(address)
}

/// The command that sets [`capabilities`].
const CAPABILITIES: &str = "migrate-set-capabilities";

/// Shared memory is not migrated, and the end of a migration is reported.
fn capabilities() -> serde_json::Value {
    let on = |name: &str| json!({ "capability": name, "state": true });
    json!({ "capabilities": [on("x-ignore-shared"), on("events")] })
}

/// Boots a machine with a request in its memory, up to the pause.
fn boot(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    request: &Message,
    more: (&[String], &[(&File, i32)]),
    limit: Duration,
) -> Result<Guest, VmError> {
    let shared = SharedFile::new().map_err(no_memory)?;
    shared.set_word(word::PAUSES, 1).map_err(no_memory)?;
    shared.ask(request).map_err(|error| VmError::Input(error.to_string()))?;
    let mut guest = Guest::start(qemu, setup, files, more, shared)?;
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

/// Boots a machine that continues at once with the request.
pub fn boot_and_run(
    qemu: &Qemu,
    setup: &Setup,
    files: Files<'_>,
    request: &Message,
    limit: Duration,
) -> Result<Guest, VmError> {
    let mut guest = boot(qemu, setup, files, request, (&[], &[]), limit)?;
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
    snapshot: &Snapshot,
    request: &Message,
) -> Result<Guest, VmError> {
    let shared = SharedFile::new().map_err(no_memory)?;
    let open = |path| File::open(path).map_err(|error| VmError::file("read", path, &error));
    // QEMU opens the memory again, to read and to write, and maps it privately.
    let (state, memory) = (open(&snapshot.state)?, open(&snapshot.memory)?);
    let mut more = memory_in_file(setup, false);
    more.extend(["-S", "-incoming", "defer"].map(str::to_owned));
    let given = [(&state, fd::SNAPSHOT), (&memory, fd::MEMORY)];
    let mut guest = Guest::start(qemu, setup, files, (&more, &given), shared)?;
    let resumed = guest.qmp.execute(CAPABILITIES, capabilities()).and_then(|_| {
        guest.qmp.execute("migrate-incoming", json!({ "uri": source(qemu) }))?;
        guest.qmp.wait_migration(COPY_LIMIT)?;
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

/// Where the machine reads the state of its devices. QEMU 8.2 introduced file names; later versions
/// no longer accept descriptors of files.
fn source(qemu: &Qemu) -> String {
    match qemu.number >= (8, 2) {
        true => format!("file:/proc/self/fd/{}", fd::SNAPSHOT),
        false => format!("fd:{}", fd::SNAPSHOT),
    }
}

fn remove_oldest(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let states = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == STATE));
    let mut found: Vec<_> = states
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    for (_, path) in found.iter().rev().skip(KEPT_MAX) {
        // Another run may have removed it.
        let Snapshot { state, memory } = Snapshot::at(path);
        let _ = fs::remove_file(state);
        let _ = fs::remove_file(memory);
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
    fn the_address_of_the_shared_memory_stands_behind_its_name_and_length() {
        let mut state = b"QEVM pc.ram".to_vec();
        state.extend([1; 16]);
        state.extend(b"\x0f0000:00:01.0/iv");
        state.extend((SHARED_BYTES as u64).to_be_bytes());
        assert_eq!(address_of_shared(&state), None, "it ends there");
        let at = state.len();
        state.extend(0xf800_0000_u64.to_be_bytes());
        assert_eq!(address_of_shared(&state), Some(at));
        assert_eq!(address_of_shared(b"QEVM"), None);
    }

    #[test]
    fn the_oldest_snapshots_go_first() {
        let dir = tempfile::tempdir().unwrap();
        for nth in 0..KEPT_MAX + 2 {
            File::create(dir.path().join(format!("{nth:02}.memory"))).unwrap();
            let file = File::create(dir.path().join(format!("{nth:02}.state"))).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::from_secs(nth as u64);
            file.set_modified(time).unwrap();
        }
        remove_oldest(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2 * KEPT_MAX);
        for end in [STATE, MEMORY] {
            let there = ["01", "02"].map(|nth| dir.path().join(format!("{nth}.{end}")).exists());
            assert_eq!(there, [false, true]);
        }
    }
}
