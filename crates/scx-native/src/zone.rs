// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that a scheduler has pointers to: it never moves, and it exists as long as its run.
//!
//! Each run has a slot of the address space, its zone, with all memory that the scheduler may
//! touch. With checks on, a shadow says which bytes of the zone belong to an object. It has one
//! byte for eight: 0 if all eight may be used, 1 to 7 if only so many may be, negative if none. The
//! shadow of an address is at `address / 8 + SHADOW_OFFSET`. The compiler puts a look at it before
//! each load and store. Only zones have a shadow, so any other address faults there, and no checked
//! store reaches memory of the simulator.
//!
//! Source of the encoding: AddressSanitizer (compiler-rt/lib/asan/asan_mapping.h of LLVM).

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Distance of the shadow: the compiler's own constant for x86-64.
pub const SHADOW_OFFSET: u64 = 0x7fff_8000;

/// First address of the zones: far from what a kernel hands out.
pub const ZONES_START: u64 = 0x2000_0000_0000;

/// Size of a zone.
const SLOT: u64 = 1 << 36;

/// End of the addresses at which memory can be shared with another process.
const SHARED_END: u64 = ZONES_START;

/// Number of zones.
const NR_SLOTS: u64 = 256;

/// First address after the zones.
pub const ZONES_END: u64 = ZONES_START + NR_SLOTS * SLOT;

/// Regions are multiples of this: a page of the shadow.
pub const GRAIN: u64 = 1 << 15;

/// Unmapped bytes after each region.
pub const GUARD: u64 = 1 << 16;

/// Bytes of small blocks that are mapped at a time.
const CHUNK: u64 = 1 << 20;

/// Blocks of this size and more get a region of their own.
const LARGE: u64 = 1 << 18;

/// Bytes after a block that are no part of it.
const REDZONE: u64 = 32;

/// Shadow of bytes that were never handed out.
const NOBODYS: u8 = 0xfa;

/// Shadow of bytes that were freed.
const FREED: u8 = 0xfd;

/// The address whose shadow is at `shadow`; `None`: it is the shadow of no address.
pub fn shadowed(shadow: u64) -> Option<u64> {
    let last = (1 << 44) + SHADOW_OFFSET;
    (SHADOW_OFFSET..last).contains(&shadow).then(|| (shadow - SHADOW_OFFSET) << 3)
}

/// Maps the shadow of `range`, all of whose bytes may then be used. Safe in a signal handler.
pub fn map_shadow(range: &Range<u64>) -> bool {
    let (start, end) = (shadow_of(range.start), shadow_of(range.end));
    map(start, end - start, READ_WRITE, libc::MAP_FIXED).is_ok()
}

/// The address of the shadow of an address.
pub fn shadow_of(at: u64) -> u64 {
    (at >> 3) + SHADOW_OFFSET
}

/// The memory of a run. Clones refer to the same memory, which is unmapped with the last of them.
#[derive(Clone, Debug)]
pub struct Zone(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    base: u64,
    is_checked: bool,
    room: Mutex<Room>,
    /// Memory outside of the slot, shared with another process.
    shared: Mutex<Vec<Range<u64>>>,
}

/// What is not handed out yet.
#[derive(Debug)]
struct Room {
    /// Start of the next region.
    next: u64,
    /// Rest of the last chunk for small blocks.
    small: Range<u64>,
}

impl Room {
    /// Takes `bytes` of the chunk for small blocks; `None`: it has not so many.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let at = self.small.start;
        let fits = self.small.end - at >= bytes;
        self.small.start += if fits { bytes } else { 0 };
        fits.then_some(at)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: all mappings of the slot and of its shadow are ours, and the run is over.
        unsafe {
            libc::munmap(shadow_of(self.base) as *mut _, (SLOT / 8) as usize);
            libc::munmap(self.base as *mut _, SLOT as usize);
        }
        for range in self.shared.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let len = (range.end - range.start) as usize;
            // SAFETY: mappings that `share` has made.
            unsafe {
                libc::munmap(shadow_of(range.start) as *mut _, len / 8);
                libc::munmap(range.start as *mut _, len);
            }
        }
    }
}

/// Maps zeroes at `at`. `extra`: flags in addition.
fn map(at: u64, len: u64, prot: i32, extra: i32) -> Result<(), String> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | extra;
    // SAFETY: the range is in a slot of ours, or the flags keep it from replacing a mapping.
    let got = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, -1, 0) };
    if got == libc::MAP_FAILED {
        return Err(format!("no memory for the scheduler: {}", std::io::Error::last_os_error()));
    }
    if got as u64 != at {
        // SAFETY: a mapping of ours that nobody knows.
        unsafe { libc::munmap(got, len as usize) };
        return Err("no memory for the scheduler at its place in the address space".into());
    }
    Ok(())
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Zone {
    /// An empty zone, with a shadow if `is_checked`.
    pub fn new(is_checked: bool) -> Result<Self, String> {
        let mut last = String::new();
        for slot in 0..NR_SLOTS {
            let base = ZONES_START + slot * SLOT;
            // The first page of a slot is never used: who has mapped it has the slot.
            match map(base, GUARD, libc::PROT_NONE, libc::MAP_FIXED_NOREPLACE) {
                Ok(()) => {
                    let room = Room { next: base + GUARD, small: 0..0 };
                    let (room, shared) = (Mutex::new(room), Mutex::default());
                    return Ok(Self(Arc::new(Inner { base, is_checked, room, shared })));
                }
                Err(error) => last = error,
            }
        }
        Err(format!("{last} ({NR_SLOTS} runs of compiled schedulers are possible at a time)"))
    }

    /// Whether it has a shadow.
    pub fn is_checked(&self) -> bool {
        self.0.is_checked
    }

    /// The addresses of the zone.
    pub fn range(&self) -> Range<u64> {
        self.0.base..self.0.base + SLOT
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps `len` bytes of zeroes, in whole pages. They have no shadow yet.
    pub fn region(&self, len: u64) -> Result<u64, String> {
        let len = len.max(1).checked_next_multiple_of(GRAIN).filter(|len| *len < SLOT / 2);
        let mut room = self.room();
        let fits = |len: &u64| room.next + len + GUARD <= self.0.base + SLOT;
        let len = len.filter(fits).ok_or("the scheduler's memory exceeds 64 GiB")?;
        let at = room.next;
        map(at, len, READ_WRITE, libc::MAP_FIXED)?;
        room.next = at + len + GUARD;
        Ok(at)
    }

    /// Maps a file that another process has at `range` to the same place, all of whose bytes may be
    /// used.
    pub fn share(&self, file: &File, range: &Range<u64>) -> Result<(), String> {
        let len = range.end.saturating_sub(range.start);
        let is_whole = len > 0 && range.start.is_multiple_of(GRAIN) && len.is_multiple_of(GRAIN);
        if !is_whole || range.end > SHARED_END {
            return Err(format!(
                "the user program has mapped an arena at {:#x}, where the simulator cannot have \
                 it: an arena takes a map_extra, such as 1 << 44",
                range.start
            ));
        }
        // SAFETY: nothing is replaced; the file is not shortened.
        let got = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
            libc::mmap(range.start as *mut _, len as usize, READ_WRITE, flags, file.as_raw_fd(), 0)
        };
        if got as u64 != range.start {
            if got != libc::MAP_FAILED {
                // SAFETY: a mapping of ours that nobody knows.
                unsafe { libc::munmap(got, len as usize) };
            }
            return Err(format!(
                "another run has an arena at {:#x}: run one at a time (--threads 1)",
                range.start
            ));
        }
        let mut shared = self.0.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.push(range.clone());
        match self.0.is_checked {
            true => map(shadow_of(range.start), len / 8, READ_WRITE, libc::MAP_FIXED_NOREPLACE),
            false => Ok(()),
        }
    }

    /// Gives a region its shadow, all of whose bytes may be used. `at` and `len` are multiples of
    /// [`GRAIN`].
    fn shadow(&self, at: u64, len: u64) -> Result<(), String> {
        if !self.0.is_checked {
            return Ok(());
        }
        map(shadow_of(at), len / 8, READ_WRITE, libc::MAP_FIXED)
    }

    /// Gives a region its shadow. None of its bytes may be used before [`Zone::allow`].
    pub fn forbid_region(&self, at: u64, len: u64) -> Result<(), String> {
        let len = len.next_multiple_of(GRAIN);
        self.shadow(at, len)?;
        self.fill(at, len, NOBODYS);
        Ok(())
    }

    /// Gives a region of `len` bytes its shadow: they may be used, and nothing after them.
    pub fn allow_region(&self, at: u64, len: u64) -> Result<(), String> {
        let whole = len.next_multiple_of(GRAIN);
        self.shadow(at, whole)?;
        let end = at + len.next_multiple_of(8);
        self.fill(end, at + whole - end, NOBODYS);
        self.end_of(at, len);
        Ok(())
    }

    fn fill(&self, at: u64, len: u64, with: u8) {
        if self.0.is_checked {
            // SAFETY: the caller has mapped the shadow of these bytes of the zone.
            unsafe { std::ptr::write_bytes(shadow_of(at) as *mut u8, with, (len / 8) as usize) };
        }
    }

    /// The last eight bytes of an object may belong to it in part.
    fn end_of(&self, at: u64, len: u64) {
        if self.0.is_checked && !len.is_multiple_of(8) {
            // SAFETY: as in `fill`.
            unsafe { (shadow_of(at + len) as *mut u8).write((len % 8) as u8) };
        }
    }

    /// `len` bytes at `at`, a multiple of 8, are an object. Their shadow exists.
    pub fn allow(&self, at: u64, len: u64) {
        self.fill(at, len, 0);
        self.end_of(at, len);
    }

    /// `len` bytes at `at`, a multiple of 8, are no object any more.
    pub fn forbid(&self, at: u64, len: u64) {
        self.fill(at, len.next_multiple_of(8), FREED);
    }

    /// A block of `size` bytes.
    pub fn try_block(&self, size: u64) -> Result<Block, String> {
        let size = size.max(1);
        if size >= LARGE {
            let at = self.region(size)?;
            self.allow_region(at, size)?;
            return Ok(Block { at, size });
        }
        let whole = (size + REDZONE).next_multiple_of(16);
        // The lock is released before more is mapped.
        let taken = self.room().take(whole);
        let at = match taken {
            Some(at) => at,
            None => {
                let chunk = self.region(CHUNK)?;
                self.forbid_region(chunk, CHUNK)?;
                let mut room = self.room();
                // Nothing is before the first block, so that no block follows another region.
                room.small = chunk + REDZONE..chunk + CHUNK;
                room.take(whole).ok_or("a block is larger than a chunk")?
            }
        };
        self.allow(at, size);
        Ok(Block { at, size })
    }

    /// A block of a small, fixed size. A system without memory ends the process, as it does for
    /// every other allocation.
    pub fn block(&self, size: usize) -> Block {
        self.try_block(size as u64).expect("memory for the scheduler")
    }

    /// A block with these bytes.
    pub fn block_of(&self, bytes: &[u8]) -> Block {
        let mut block = self.block(bytes.len());
        block.write(bytes);
        block
    }
}

/// A block of bytes, zeroes at first. C and schedlab access it by address, so there are no
/// references into it. It exists as long as its zone.
#[derive(Debug)]
pub struct Block {
    at: u64,
    size: u64,
}

impl Block {
    /// Its address.
    pub fn address(&self) -> u64 {
        self.at
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Sets all bytes to zero.
    pub fn clear(&mut self) {
        // SAFETY: the bytes are of a zone that still exists: its run has the block.
        unsafe { std::ptr::write_bytes(self.at as *mut u8, 0, self.size()) };
    }

    /// Writes `bytes`, which fit, to its beginning.
    pub fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size(), "more bytes than a block has");
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len());
        }
    }

    /// A copy of `len` bytes from `offset` on.
    pub fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        assert!(offset.saturating_add(len) <= self.size, "more bytes than a block has");
        let mut bytes = vec![0; len as usize];
        // SAFETY: as above.
        unsafe {
            let from = (self.at + offset) as *const u8;
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
        }
        bytes
    }

    /// Whether `address` is in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.at..self.at + self.size).contains(&address)
    }
}

/// Writes a value at an address of a block.
///
/// # Safety
///
/// `at` is in memory shared with C, has room for `T`, and no reference to it exists.
#[inline]
pub unsafe fn put<T>(at: u64, value: T) {
    // SAFETY: the caller's promise.
    unsafe { (at as *mut T).write_unaligned(value) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the byte at `at` may be used.
    fn may(at: u64) -> bool {
        // SAFETY: the tests look at bytes whose shadow is mapped.
        let shadow = unsafe { (shadow_of(at) as *const i8).read() };
        shadow == 0 || ((at % 8) as i8) < shadow
    }

    #[test]
    fn the_shadow_knows_each_byte_of_a_block() {
        let zone = Zone::new(true).unwrap();
        for size in [1, 7, 8, 9, 64, 1000, LARGE - 1, LARGE, LARGE + 5] {
            let block = zone.try_block(size).unwrap();
            let at = block.address();
            assert!((at..at + size).all(may), "{size}");
            // A shadow that is not there allows nothing either.
            let is_there = !(at + size).is_multiple_of(GRAIN);
            assert!(!is_there || !(at + size..at + size + REDZONE).any(may), "{size}");
            assert!(size >= LARGE || !(at - 16..at).any(may), "{size}");
            assert!(zone.range().contains(&at) && block.size() == size as usize);
        }
        let block = zone.block(20);
        zone.forbid(block.address(), 20);
        assert!(!(block.address()..block.address() + 20).any(may));
        zone.allow(block.address(), 20);
        assert!(may(block.address() + 19) && !may(block.address() + 20));
    }

    #[test]
    fn zones_do_not_overlap_and_are_given_back() {
        let (one, two) = (Zone::new(true).unwrap(), Zone::new(false).unwrap());
        assert!(!one.range().contains(&two.range().start));
        let start = two.block(8).address();
        assert!(two.range().contains(&start));
        let error = one.region(SLOT).unwrap_err();
        assert!(error.contains("exceeds 64 GiB"), "{error}");
        let last = shadow_of(ZONES_END);
        assert!(last < ZONES_START, "no shadow is in a zone");
        assert_eq!(shadowed(shadow_of(start)), Some(start / 8 * 8));
        assert_eq!(shadowed(0x7fff_7fff), None);
    }
}
