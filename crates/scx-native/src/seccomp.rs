// SPDX-License-Identifier: MIT OR Apache-2.0
//! No system call comes from a scheduler's code.
//!
//! A filter of the thread lets the kernel send SIGSYS for every system call whose instruction is
//! in a zone; [`super::guard`] then ends the callback. All other code of the thread is free to call
//! the system. A kernel without filters leaves this out: the compiler has refused assembly anyway.
//!
//! Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.

use super::zone::{ZONES_END, ZONES_START};
use std::ffi::c_int;

/// SECCOMP_FILTER_FLAG_SPEC_ALLOW: the filter is no reason to run the thread slower.
const SPEC_ALLOW: libc::c_ulong = 4;

/// Offset of the upper half of the instruction pointer in `struct seccomp_data`.
const POINTER_HIGH: u32 = 12;

fn op(code: u32, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k }
}

/// Forbids system calls from zones to this thread.
pub fn forbid_system_calls() {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        op(load, 0, 0, POINTER_HIGH),
        op(at_least, 0, 2, (ZONES_START >> 32) as u32),
        op(at_least, 1, 0, (ZONES_END >> 32) as u32),
        op(answer, 0, 0, libc::SECCOMP_RET_TRAP),
        op(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    let set = || {
        // SAFETY: the program and its instructions exist during the call.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                SPEC_ALLOW,
                &raw const program,
            )
        }
    };
    if set() != 0 {
        // Without privileges a thread must first renounce those of programs that it starts.
        // SAFETY: a flag of this thread.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        set();
    }
}

/// The number of the system call that SIGSYS is about (sigaction(2), `si_syscall`).
///
/// # Safety
///
/// `info` is what a handler got.
pub unsafe fn number(info: *mut libc::siginfo_t) -> c_int {
    /// Offset of `si_syscall`: after signal, error, code, and the address of the call.
    const SYSCALL: usize = 24;
    // SAFETY: the kernel passes 128 bytes.
    unsafe { info.cast::<u8>().add(SYSCALL).cast::<c_int>().read() }
}

#[cfg(test)]
mod tests {
    use super::super::guard::{self, Fault, Place};
    use super::super::zone::{Zone, put};

    #[test]
    fn a_system_call_from_a_zone_ends_the_call_and_others_work() {
        /// `mov $39, %eax; syscall; ret`: getpid.
        const CODE: [u8; 8] = [0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3];
        let zone = Zone::new(false).unwrap();
        let [code, stack] = [4096, 1 << 18].map(|len| zone.region(len).unwrap());
        let place = Place { text: code..code + 4096, stack: stack..stack + (1 << 18) };
        // SAFETY: the regions are ours, and the code is a function without arguments.
        let answer = unsafe {
            put(code, CODE);
            let prot = libc::PROT_READ | libc::PROT_EXEC;
            assert_eq!(libc::mprotect(code as *mut _, 4096, prot), 0);
            guard::call(code, [0; 4], &raw const place)
        };
        let fault = *answer.unwrap_err();
        assert_eq!(fault, Fault::SystemCall { at: code + 7, number: 39 });
        std::fs::metadata("/").unwrap();
    }
}
