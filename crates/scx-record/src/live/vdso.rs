// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the clocks of a process's vDSO by system calls.
//!
//! The kernel maps the same code into every process (vdso(7)). A write to it through /proc/PID/mem
//! changes the process's own copy, as a debugger's breakpoint does.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Longest vDSO.
const SIZE_MAX: u64 = 1 << 20;
/// SHT_DYNSYM.
const SYMBOLS: u32 = 11;

/// The functions, and the system calls that do the same. `None`: it says that it is not there, and
/// the C library makes the call.
const FUNCTIONS: [(&str, Option<libc::c_long>); 6] = [
    ("__vdso_clock_gettime", Some(libc::SYS_clock_gettime)),
    ("__vdso_gettimeofday", Some(libc::SYS_gettimeofday)),
    ("__vdso_time", Some(libc::SYS_time)),
    ("__vdso_clock_getres", Some(libc::SYS_clock_getres)),
    ("__vdso_getcpu", Some(libc::SYS_getcpu)),
    ("__vdso_getrandom", None),
];

/// The code of a function.
fn code(call: Option<libc::c_long>) -> Vec<u8> {
    match call {
        // mov eax, NUMBER; syscall; ret
        Some(number) => [&[0xb8][..], &(number as u32).to_le_bytes(), &[0x0f, 0x05, 0xc3]].concat(),
        // mov eax, -ENOSYS; cdqe; ret
        None => [&[0xb8][..], &(-libc::ENOSYS).to_le_bytes(), &[0x48, 0x98, 0xc3]].concat(),
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(wide))
}

/// Names and places of the functions of a vDSO (elf(5), 64 bits).
fn functions(elf: &[u8]) -> Option<Vec<(String, u64)>> {
    let (table, nr) = (number::<8>(elf, 0x28)? as usize, number::<2>(elf, 0x3c)? as usize);
    let section = |nth: usize| {
        let at = table.checked_add(nth.checked_mul(64)?)?;
        let [kind, link] = [4, 40].map(|offset| number::<4>(elf, at + offset));
        let [start, size] = [24, 32].map(|offset| number::<8>(elf, at + offset));
        Some((kind? as u32, start? as usize, size? as usize, link? as usize))
    };
    let (_, start, size, link) = (0..nr).filter_map(section).find(|(kind, ..)| *kind == SYMBOLS)?;
    let (_, names, ..) = section(link)?;
    let mut found = Vec::new();
    for nth in 0..size / 24 {
        let at = start.checked_add(nth * 24)?;
        let name = elf.get(names.checked_add(number::<4>(elf, at)? as usize)?..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        found.push((name, number::<8>(elf, at + 8)?));
    }
    Some(found)
}

/// Replaces the clocks of the process of `thread`. Nothing happens if it has no vDSO.
pub(super) fn replace(thread: u32) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{thread}/maps"))?;
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else { return Ok(()) };
    let range = line.split_ascii_whitespace().next().and_then(|range| range.split_once('-'));
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let Some((Some(start), Some(end))) = range.map(|(a, b)| (address(a), address(b))) else {
        return Ok(());
    };
    let memory = File::options().read(true).write(true).open(format!("/proc/{thread}/mem"))?;
    let mut elf = vec![0; end.saturating_sub(start).min(SIZE_MAX) as usize];
    memory.read_exact_at(&mut elf, start)?;
    for (name, at) in functions(&elf).unwrap_or_default() {
        if let Some((_, call)) = FUNCTIONS.iter().find(|(own, _)| *own == name) {
            memory.write_all_at(&code(*call), start.wrapping_add(at))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vDSO of this process.
    fn own() -> Vec<u8> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut elf = vec![0; (end - start) as usize];
        File::open("/proc/self/mem").unwrap().read_exact_at(&mut elf, start).unwrap();
        elf
    }

    #[test]
    fn the_functions_of_a_vdso_are_found() {
        let elf = own();
        let found = functions(&elf).unwrap();
        let at = found.iter().find(|(name, _)| name == "__vdso_clock_gettime").unwrap().1;
        assert!(at > 0 && (at as usize) < elf.len());
        // Damaged ones are none, or others.
        for at in 0..0x40 {
            let mut damaged = elf.clone();
            damaged[at] ^= 0xff;
            let _ = functions(&damaged);
            let _ = functions(&elf[..at]);
        }
    }

    #[test]
    fn the_code_is_a_system_call() {
        assert_eq!(code(Some(228)), [0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0xc3]);
        assert_eq!(code(None), [0xb8, 0xda, 0xff, 0xff, 0xff, 0x48, 0x98, 0xc3]);
    }
}
