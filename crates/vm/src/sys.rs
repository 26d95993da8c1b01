// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few system calls that the standard library has no words for: memory without a file, and a
//! child that ends with its parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A file of `len` zero bytes that exists only as this descriptor (memfd_create(2)).
pub fn memory_file(len: u64) -> io::Result<File> {
    // SAFETY: a valid C string; the result is a new descriptor or an error.
    let fd = unsafe { libc::memfd_create(c"schedlab-vm".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(len)?;
    Ok(file)
}

/// Lets the child of `command` have descriptors under fixed numbers, and makes the kernel kill it
/// when the thread that starts it ends, however that ends.
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

/// Copies of descriptors above the numbers that a child will have them under.
pub struct Lifted(Vec<(OwnedFd, RawFd)>);

impl Lifted {
    /// Pairs for [`tie_and_pass`].
    pub fn numbers(&self) -> Vec<(RawFd, RawFd)> {
        self.0.iter().map(|(from, to)| (from.as_raw_fd(), *to)).collect()
    }
}

/// Copies descriptors to numbers of 64 and more, so that giving one its final number does not
/// overwrite another.
pub fn lift(pass: &[(RawFd, RawFd)]) -> io::Result<Lifted> {
    let copy = |&(from, to): &(RawFd, RawFd)| {
        // SAFETY: gives a new descriptor or an error.
        let fd = unsafe { libc::fcntl(from, libc::F_DUPFD_CLOEXEC, 64) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok((unsafe { OwnedFd::from_raw_fd(fd) }, to))
    };
    pass.iter().map(copy).collect::<io::Result<_>>().map(Lifted)
}

/// Number of a file's descriptor.
pub fn raw(file: &impl AsRawFd) -> RawFd {
    file.as_raw_fd()
}
