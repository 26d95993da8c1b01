// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that the standard library lacks: memory without a file, and a child that ends with
//! its parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A file of `len` zero bytes that exists only as this descriptor (memfd_create(2)).
pub fn memory_file(len: u64) -> io::Result<File> {
    // SAFETY: a valid C string; the result is a new descriptor or an error.
    let fd = unsafe { libc::memfd_create(c"schedlab-vm".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(len)?;
    Ok(file)
}

/// Copies the content of `from`, a file of [`memory_file`], to an empty file. Blocks of zeroes
/// become holes.
pub fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    const PIECE: u64 = 64 << 10;
    let len = from.metadata()?.len();
    to.set_len(len)?;
    let mut bytes = vec![0; PIECE as usize];
    let mut at = 0;
    // Beyond the last data lseek says ENXIO.
    while let Some(data) = seek(from, at, libc::SEEK_DATA) {
        at = data / PIECE * PIECE;
        let end = seek(from, data, libc::SEEK_HOLE).unwrap_or(len);
        while at < end {
            let piece = &mut bytes[..PIECE.min(len - at) as usize];
            from.read_exact_at(piece, at)?;
            if piece.iter().any(|byte| *byte != 0) {
                to.write_all_at(piece, at)?;
            }
            at += PIECE;
        }
    }
    Ok(())
}

/// The next data, or the next hole, from byte `at` on.
fn seek(file: &File, at: u64, what: libc::c_int) -> Option<u64> {
    // SAFETY: no memory is involved.
    let found = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, what) };
    u64::try_from(found).ok()
}

/// Gives the child of `command` descriptors with fixed numbers, and makes the kernel kill it when
/// the thread that starts it ends for any reason.
pub fn tie_and_pass(command: &mut Command, pass: Vec<(RawFd, RawFd)>) {
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: async-signal-safe calls only, between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as usize) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            for &(from, to) in &pass {
                if libc::dup2(from, to) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Copies of descriptors, with numbers above those that a child will use.
pub struct Lifted(Vec<(OwnedFd, RawFd)>);

impl Lifted {
    /// Pairs for [`tie_and_pass`].
    pub fn numbers(&self) -> Vec<(RawFd, RawFd)> {
        self.0.iter().map(|(from, to)| (from.as_raw_fd(), *to)).collect()
    }
}

/// Copies descriptors to numbers of 64 and more, so that setting one final number does not
/// overwrite another descriptor.
pub fn lift(pass: &[(RawFd, RawFd)]) -> io::Result<Lifted> {
    let copy = |&(from, to): &(RawFd, RawFd)| {
        // SAFETY: gives a new descriptor or an error.
        let fd = unsafe { libc::fcntl(from, libc::F_DUPFD_CLOEXEC, 64) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok((unsafe { OwnedFd::from_raw_fd(fd) }, to))
    };
    pass.iter().map(copy).collect::<io::Result<_>>().map(Lifted)
}

/// Number of a file's descriptor.
pub fn raw(file: &impl AsRawFd) -> RawFd {
    file.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_is_equal_and_has_holes() {
        const MIB: u64 = 1 << 20;
        let from = memory_file(8 * MIB + 7).unwrap();
        for (at, text) in [(0, &b"first"[..]), (3 * MIB - 2, b"across"), (8 * MIB + 3, b"last")] {
            from.write_all_at(text, at).unwrap();
        }
        from.write_all_at(&[0; 4096], 5 * MIB).unwrap();
        let to = tempfile::tempfile().unwrap();
        copy_sparse(&from, &to).unwrap();
        let read = |file: &File| {
            let mut bytes = vec![0; 8 * MIB as usize + 7];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(file.metadata().unwrap().len(), bytes.len() as u64);
            bytes
        };
        assert!(read(&from) == read(&to));
        assert!(to.metadata().unwrap().blocks() * 512 < MIB, "four pieces of 64 KiB");
    }
}
