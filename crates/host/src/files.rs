// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files for Io operations, in the run's private directory.
//!
//! A synchronous write uses O_SYNC, a synchronous read bypasses the page cache (O_DIRECT), so both
//! wait for the device. Other transfers are copied through the page cache. Reads use one input file
//! that is created before the run; each task writes to its own file. Both start again at a length
//! that the run's pace defines, so a run cannot fill the disk. O_DIRECT transfers whole blocks, so
//! such a read is rounded up to [`BLOCK`].

use schedlab_model::program::IoDirection;
use schedlab_model::{Op, Program};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Block of a direct transfer.
pub const BLOCK: u64 = 4096;
/// Largest single transfer; longer ones are several system calls.
const BUFFER_LEN: usize = 1 << 20;

/// Prefix of the names of the runs' directories. The launcher's pid follows.
const DIR_PREFIX: &str = "schedlab-io-";
/// Prefix of the names of programs' directories. The caller's pid follows.
const PROGRAM_PREFIX: &str = "schedlab-run-";
/// Name of the input file in the run's directory.
const INPUT: &str = "input";

/// The kinds of files that a program needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileNeeds {
    /// Whether it reads or writes.
    pub any: bool,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it waits for the device.
    pub sync: bool,
}

impl FileNeeds {
    /// The needs of `program`.
    pub fn of(program: &Program) -> Self {
        let mut needs = Self::default();
        for op in &program.ops {
            if let Op::Io { direction, sync, .. } = op {
                needs.any = true;
                needs.reads |= *direction == IoDirection::Read;
                needs.sync |= sync;
            }
        }
        needs
    }

    /// The needs of both.
    pub fn or(self, other: Self) -> Self {
        Self {
            any: self.any || other.any,
            reads: self.reads || other.reads,
            sync: self.sync || other.sync,
        }
    }
}

/// A page-aligned buffer.
struct Buffer {
    bytes: Vec<u8>,
    offset: usize,
}

impl Buffer {
    fn new() -> Self {
        let bytes = vec![0x5a; BUFFER_LEN + BLOCK as usize];
        let offset = bytes.as_ptr().align_offset(BLOCK as usize);
        Self { bytes, offset }
    }

    fn slice(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.offset..self.offset + len]
    }
}

/// The files of one task.
pub struct TaskFiles {
    dir: Option<PathBuf>,
    index: u32,
    /// Length (bytes) after which transfers start again at the beginning.
    len: u64,
    buffer: Option<Buffer>,
    /// (input, output) for transfers that do not wait.
    buffered: Option<(File, File)>,
    /// (input, output) for transfers that wait for the device.
    sync: Option<(File, File)>,
    read_at: u64,
    write_at: u64,
}

impl TaskFiles {
    /// No file is opened yet. `len` is a multiple of [`BLOCK`].
    pub fn new(dir: Option<PathBuf>, index: u32, len: u64) -> Self {
        Self { dir, index, len, buffer: None, buffered: None, sync: None, read_at: 0, write_at: 0 }
    }

    /// Opens the files that `program` needs.
    pub fn open(&mut self, program: &Program) -> io::Result<()> {
        let needs = FileNeeds::of(program);
        let Some(dir) = self.dir.as_ref().filter(|_| needs.any) else { return Ok(()) };
        let output = |flags: i32| {
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(flags)
                .open(dir.join(format!("output-{}", self.index)))
        };
        let input = |flags| OpenOptions::new().read(true).custom_flags(flags).open(dir.join(INPUT));
        self.buffered = Some((input(0)?, output(0)?));
        if needs.sync {
            self.sync = Some((input(libc::O_DIRECT)?, output(libc::O_SYNC)?));
        }
        self.buffer = Some(Buffer::new());
        Ok(())
    }

    /// Moves `bytes` bytes.
    pub fn transfer(&mut self, is_read: bool, bytes: u64, is_sync: bool) -> io::Result<()> {
        let files = if is_sync { &self.sync } else { &self.buffered };
        let (Some((input, output)), Some(buffer)) = (files, &mut self.buffer) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let block = if is_sync && is_read { BLOCK } else { 1 };
        let mut left = bytes.next_multiple_of(block);
        while left > 0 {
            let at = if is_read { &mut self.read_at } else { &mut self.write_at };
            if is_read {
                *at = *at / block * block;
            }
            let len = left.min(BUFFER_LEN as u64).min(self.len - *at);
            let slice = buffer.slice(len as usize);
            if is_read {
                input.read_exact_at(slice, *at)?;
            } else {
                output.write_all_at(slice, *at)?;
            }
            *at = (*at + len) % self.len;
            left -= len;
        }
        Ok(())
    }
}

/// Directories for private directories, real file systems first.
pub fn candidates() -> Vec<PathBuf> {
    let asked = std::env::var_os("SCHEDLAB_IO_DIR").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let fixed = ["/var/tmp"].map(PathBuf::from);
    asked.into_iter().chain(fixed).chain(here).chain([std::env::temp_dir()]).collect()
}

/// Whether a file in `dir` can be read with O_DIRECT.
fn allows_direct(dir: &Path) -> bool {
    let path = dir.join("probe");
    let is_written = fs::write(&path, vec![0u8; BLOCK as usize]).is_ok();
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path);
    let allows = is_written
        && opened.is_ok_and(|file| {
            let mut buffer = Buffer::new();
            file.read_exact_at(buffer.slice(BLOCK as usize), 0).is_ok()
        });
    // The directory is private; its removal also removes a probe that stays.
    let _ = fs::remove_file(&path);
    allows
}

/// Creates the run's private directory, owned by `user`, with an input file of `len` bytes. The
/// error names the places that were tried.
pub fn make_dir(user: Option<(u32, u32)>, needs: FileNeeds, len: u64) -> Result<PathBuf, String> {
    remove_dead();
    let mut tried = Vec::new();
    for parent in candidates() {
        match make_dir_in(&parent, user, needs, len) {
            Ok(dir) => return Ok(dir),
            Err(why) => tried.push(format!("{}: {why}", parent.display())),
        }
    }
    Err(format!(
        "no place for the files of Io operations; a directory on a disk (for synchronous transfers \
         one that allows O_DIRECT) is needed: set SCHEDLAB_IO_DIR. Tried {}",
        tried.join("; ")
    ))
}

/// A name for the private directory of a program, in the first place where one can be created and,
/// if the program runs as another user, that user can enter.
pub fn program_dir(is_of_another: bool) -> Result<PathBuf, String> {
    let candidates = candidates();
    let can_go = |parent: &Path| {
        let mode = parent.metadata().map_or(0, |found| found.permissions().mode());
        !is_of_another || mode & 0o001 != 0
    };
    let is_writable = |parent: &&PathBuf| {
        let c_path = std::ffi::CString::new(parent.as_os_str().as_bytes());
        let may_write = c_path.is_ok_and(|path| crate::sys::may_write(&path));
        parent.is_absolute() && may_write && can_go(parent)
    };
    let Some(parent) = candidates.iter().find(is_writable) else {
        let tried: Vec<String> = candidates.iter().map(|dir| dir.display().to_string()).collect();
        return Err(format!(
            "no place for the program's private directory: set SCHEDLAB_IO_DIR. Tried {}",
            tried.join(", ")
        ));
    };
    let (pid, now) = (std::process::id(), crate::sys::monotonic_ns());
    Ok(parent.join(format!("{PROGRAM_PREFIX}{pid}-{now}")))
}

/// Removes the directories of runs and programs whose processes are gone: their callers and
/// launchers were killed at once.
pub fn remove_dead() {
    for parent in candidates() {
        let Ok(entries) = fs::read_dir(parent) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| {
                name.strip_prefix(PROGRAM_PREFIX).or_else(|| name.strip_prefix(DIR_PREFIX))
            });
            let pid = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                // It belongs to another user or has already been removed: ignore it.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Removes the directories that a killed launcher could not remove.
pub fn remove_stale(launcher_pid: u32) {
    let prefix = format!("{DIR_PREFIX}{launcher_pid}-");
    for parent in candidates() {
        let Ok(entries) = fs::read_dir(parent) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                // It belongs to another user or has already been removed: ignore it.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn make_dir_in(
    parent: &Path,
    user: Option<(u32, u32)>,
    needs: FileNeeds,
    len: u64,
) -> Result<PathBuf, String> {
    let text = |error: io::Error| error.to_string();
    let (pid, now) = (std::process::id(), crate::sys::monotonic_ns());
    let dir = parent.join(format!("{DIR_PREFIX}{pid}-{now}"));
    fs::DirBuilder::new().create(&dir).map_err(text)?;
    let fill = || -> Result<(), String> {
        if needs.sync && !allows_direct(&dir) {
            return Err("does not allow O_DIRECT".into());
        }
        let mut input = File::create(dir.join(INPUT)).map_err(text)?;
        let block: Vec<u8> = (0..BLOCK).map(|byte| (byte * 31 % 251) as u8).collect();
        let len = if needs.reads { len } else { 0 };
        for _ in 0..len / BLOCK {
            input.write_all(&block).map_err(text)?;
        }
        input.sync_all().map_err(text)?;
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(&dir, Some(uid), Some(gid)).map_err(text)?;
            std::os::unix::fs::chown(dir.join(INPUT), Some(uid), Some(gid)).map_err(text)?;
        }
        Ok(())
    };
    fill().inspect_err(|_| {
        let _ = fs::remove_dir_all(&dir);
    })?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::Amount;

    const LEN: u64 = 64 << 10;

    fn program(direction: IoDirection, sync: bool) -> Program {
        let op = Op::Io { direction, bytes: Amount::Constant(1), sync };
        Program { ops: vec![op], nr_timers: 0 }
    }

    #[test]
    fn transfers_of_every_kind_move_their_bytes_and_wrap() {
        let needs = FileNeeds { any: true, reads: true, sync: true };
        let dir = match make_dir(None, needs, LEN) {
            Ok(dir) => dir,
            Err(why) => return schedlab_testing::skip(why),
        };
        let mut files = TaskFiles::new(Some(dir.clone()), 3, LEN);
        files.open(&program(IoDirection::Read, true)).unwrap();
        files.transfer(true, 5_000, true).unwrap();
        assert_eq!(files.read_at, 8_192);
        files.transfer(true, 1_000, false).unwrap();
        files.transfer(false, LEN - 10, false).unwrap();
        files.transfer(false, 20, true).unwrap();
        assert_eq!(files.write_at, 10);
        assert_eq!(fs::metadata(dir.join("output-3")).unwrap().len(), LEN);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_program_without_io_opens_nothing() {
        let mut files = TaskFiles::new(Some("/nonexistent".into()), 0, LEN);
        files.open(&Program::default()).unwrap();
        assert!(files.transfer(true, 1, false).is_err());
    }
}
