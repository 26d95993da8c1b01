// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's own code in processes that are forked later.

use std::io;

/// How much of a small function's code is found (bytes).
pub const FUNCTION_LEN: usize = 8 << 10;

/// A mapping of the program's file that is never written.
struct Mapping {
    start: usize,
    len: usize,
    protection: i32,
}

/// Lets processes that are forked later begin with the pages of code and constants that this one
/// has used. So they do with those of functions that only they will call, at these addresses and of
/// these lengths. Otherwise each finds them again by page faults, 50 us each in a guest, and how
/// many it needs depends on where the linker has put what. All pages would make each fork 1 ms
/// longer, and each exit 1.6 ms.
///
/// The kernel copies the page tables of a private mapping of a file only if one of its pages was
/// written (`vma_needs_copy` in mm/memory.c). So one byte of each mapping is written, unchanged.
///
/// # Errors
/// If a mapping's protection cannot be changed.
pub fn inherit_code(functions: &[(usize, usize)]) -> io::Result<()> {
    let own = std::fs::read_link("/proc/self/exe")?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let path = own.to_string_lossy();
    for mapping in maps.lines().filter(|line| line.ends_with(&*path)).filter_map(mapping) {
        let address = mapping.start as *mut libc::c_void;
        let protect = |protection| {
            // SAFETY: the range is one mapping of this program, as the kernel has just told.
            super::check(unsafe { libc::mprotect(address, mapping.len, protection) }.into())
        };
        protect(mapping.protection | libc::PROT_WRITE)?;
        // SAFETY: the byte is mapped and writable, and is written with its own value. No other
        // thread of the program runs yet that could write there: it was not writable.
        unsafe {
            let byte = mapping.start as *mut u8;
            byte.write_volatile(byte.read_volatile());
        }
        protect(mapping.protection)?;
    }
    for (function, len) in functions {
        let start = function / super::page_size() * super::page_size();
        // SAFETY: reads pages, if they are mapped. A kernel before 5.14 does not know the advice,
        // and one that refuses changes nothing: the pages that this process has used remain.
        let _ =
            unsafe { libc::madvise(start as *mut libc::c_void, *len, libc::MADV_POPULATE_READ) };
    }
    Ok(())
}

/// A line of /proc/self/maps, if the mapping cannot be written.
fn mapping(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let protection = match rest.split_once(' ')?.0 {
        "r--p" => libc::PROT_READ,
        "r-xp" => libc::PROT_READ | libc::PROT_EXEC,
        _ => return None,
    };
    Some(Mapping { start, len: end.checked_sub(start)?, protection })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_can_be_written_once_and_is_as_before() {
        let code = code_can_be_written_once_and_is_as_before as *const u8;
        // SAFETY: a function's first bytes can be read.
        let before = unsafe { code.read_volatile() };
        inherit_code(&[(code as usize, 1), (usize::MAX, FUNCTION_LEN)]).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { code.read_volatile() }, before);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let writable_code = maps.lines().filter(|line| line.contains(" rwxp ")).count();
        assert_eq!(writable_code, 0, "{maps}");
    }

    #[test]
    fn only_mappings_that_cannot_be_written_count() {
        let found = mapping("1000-3000 r-xp 00000000 00:01 7 /init").unwrap();
        assert_eq!((found.start, found.len), (0x1000, 0x2000));
        assert_eq!(found.protection, libc::PROT_READ | libc::PROT_EXEC);
        for line in ["1000-3000 rw-p 0 00:01 7 /init", "3000-1000 r--p 0 0 0 /init", "x", ""] {
            assert!(mapping(line).is_none(), "{line}");
        }
    }
}
