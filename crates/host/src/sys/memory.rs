// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory shared with processes that are forked later.

use super::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU8, Ordering};

/// A file without a name in memory. Its length `len` is sealed, so no process can change it. It is
/// closed on exec.
pub fn sealed_file(name: &CStr, len: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` ends with a zero; the descriptor is new and has no other owner.
    let file = unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), flags).into())?;
        File::from_raw_fd(fd as i32)
    };
    file.set_len(len)?;
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: no memory is involved.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
    Ok(file)
}

/// Anonymous shared memory, zeroed and page-aligned. Unused pages take no memory.
#[derive(Debug)]
pub struct SharedMap {
    start: *mut u8,
    len: usize,
}

// SAFETY: plain memory; its content is accessed only through atomics.
unsafe impl Send for SharedMap {}
// SAFETY: as above.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    /// `len` bytes.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping touches no memory in use.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), len })
    }

    /// The object at byte `offset`. `T` must consist of atomics (or arrays of them), for which zero
    /// bytes are a valid value. Panics if it does not fit or is not aligned.
    ///
    /// # Safety
    ///
    /// `T` is valid for all-zero bytes and has interior mutability throughout.
    pub unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.len && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: in range and aligned (above), mapped as long as `self`; validity is the caller's.
        unsafe { &*self.start.add(offset).cast::<T>() }
    }

    /// Allocates the pages from `offset` on, so that no fault happens later.
    pub fn populate(&self, offset: usize, len: usize) {
        let page = super::page_size();
        let end = (offset + len).min(self.len);
        let mut at = offset / page * page;
        while at < end {
            // SAFETY: in range.
            let byte = unsafe { &*self.start.add(at).cast::<AtomicU8>() };
            // Writes the page without changing it. Compilers remove an addition of 0.
            let _ = byte.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
            at += page;
        }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no reference outlives `self`.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}
