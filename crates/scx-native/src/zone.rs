// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that a scheduler has pointers to: it never moves, and it exists as long as its run.

/// A block of zeroed words. C and schedlab access it by address, so there are no references into
/// it.
#[derive(Debug)]
pub struct Block {
    words: *mut u64,
    nr: usize,
}

// SAFETY: a block is plain memory of its owner.
unsafe impl Send for Block {}

impl Block {
    /// `size` bytes of zeroes, aligned to 8.
    pub fn new(size: usize) -> Self {
        let nr = size.div_ceil(8).max(1);
        let words = Box::into_raw(vec![0u64; nr].into_boxed_slice()).cast();
        Self { words, nr }
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.words as u64
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.nr * 8
    }

    /// Sets all bytes to zero.
    pub fn clear(&mut self) {
        // SAFETY: the words are ours.
        unsafe { std::ptr::write_bytes(self.words, 0, self.nr) };
    }

    /// Whether `address` is in it.
    pub fn contains(&self, address: u64) -> bool {
        let start = self.address();
        (start..start + self.nr as u64 * 8).contains(&address)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let slice = std::ptr::slice_from_raw_parts_mut(self.words, self.nr);
        // SAFETY: it came from a box of this length.
        drop(unsafe { Box::from_raw(slice) });
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
