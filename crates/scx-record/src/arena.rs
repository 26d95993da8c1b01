// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arena library of the scx schedulers. Its programs fill the arena with the machine's tree; a
//! setup has them run again with `arena = true`. One returns the address of a mask that the user
//! program fills in, so it is given memory of its arena.
//!
//! Source: rust/scx_arena of the scx repository (`ArenaLib::setup`).

use std::fs;

/// The program that returns the address of a mask, in the first word of its argument.
const ALLOCATES: &str = "arena_alloc_mask";
/// The other programs of the library.
const OTHERS: [&str; 3] = ["arena_init", "arena_topology_init", "arena_topology_node_init"];
/// Bytes for a mask: a header and one bit for each CPU.
const MASK: u64 = 4096;

/// Whether the library runs the program called `name`.
pub(crate) fn is_of_library(name: &str) -> bool {
    name == ALLOCATES || OTHERS.contains(&name)
}

/// Whether the program called `name` returns the address of a mask.
pub(crate) fn allocates(name: &str) -> bool {
    name == ALLOCATES
}

/// Where the process of `thread` has mapped the file with this number, and the end of that.
pub(crate) fn mapping(thread: u32, file: u64) -> Option<(u64, u64)> {
    let maps = fs::read_to_string(format!("/proc/{thread}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        (words.nth(3)?.parse() == Ok(file)).then_some(())?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    })
}

/// The address of the mask with this number in a mapping; `None`: there is no room.
pub(crate) fn mask((start, end): (u64, u64), nth: u64) -> Option<u64> {
    let at = nth.checked_add(1)?.checked_mul(MASK)?.checked_add(start)?;
    (at.checked_add(MASK)? <= end).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::memory_file;
    use std::os::fd::AsRawFd;

    #[test]
    fn masks_are_in_the_mapping_of_the_arena() {
        let (file, number) = memory_file(2 * MASK).unwrap();
        assert_eq!(mapping(std::process::id(), number), None);
        // SAFETY: a new mapping of a file that is not shortened.
        let at = unsafe {
            let (none, len) = (std::ptr::null_mut(), 2 * MASK as usize);
            libc::mmap(none, len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        } as u64;
        let found = mapping(std::process::id(), number).unwrap();
        assert_eq!(found, (at, at + 2 * MASK));
        assert_eq!((mask(found, 0), mask(found, 1)), (Some(at + MASK), None));
        assert_eq!(mask(found, u64::MAX), None);
    }
}
