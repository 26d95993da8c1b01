// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls: the only part of this crate with `unsafe`, except the recorder's rings.
//!
//! Each function is one call (or a fixed short sequence) with its result as `io::Result`. They use
//! `libc`; calls without a function there (sched_setattr, clone, pidfd_open, futex, capset) use
//! `syscall(2)` with the numbers and structures of the kernel's uapi headers. Functions do not
//! allocate, unless their documentation states it, so they may be used in a process forked from a
//! program with threads.

mod channel;
mod code;
mod futex;
mod heap;
mod memory;
mod process;
mod sched;

pub use channel::*;
pub use code::{FUNCTION_LEN, inherit_code};
pub use futex::*;
pub use heap::{TaskHeap, begin_task, touch_task};
pub use memory::{SharedMap, sealed_file};
pub use process::*;
pub use sched::*;

use std::io;
use std::time::Duration;

/// Turns `-1` with errno into an error.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clocks named below exist on every Linux.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in ns: the clock of the trace.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CLOCK_MONOTONIC_COARSE in ns: the time of the last tick.
#[inline]
pub fn last_tick_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE)
}

/// CPU time of the calling thread in ns.
#[inline]
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until `deadline_ns` on CLOCK_MONOTONIC.
pub fn sleep_until_ns(deadline_ns: u64) {
    let time = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is valid; an absolute sleep has no remainder to write. EINTR: sleep on.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// A descriptor that [`poll`] waits for, and whether it is ready.
#[derive(Clone, Copy, Debug)]
pub struct Pollable {
    /// Descriptor; negative ones are ignored.
    pub fd: i32,
    /// Readable, or hung up.
    pub is_ready: bool,
}

/// Waits until a descriptor is ready or the time has passed. At most 8 descriptors.
pub fn poll(items: &mut [Pollable], timeout: Option<Duration>) {
    let mut fds = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 8];
    for (fd, item) in fds.iter_mut().zip(items.iter()) {
        fd.fd = item.fd;
    }
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    });
    let time_ptr = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
    let count = items.len().min(fds.len()) as libc::nfds_t;
    // SAFETY: `fds` holds `count` entries; `time_ptr` is null or valid. EINTR reads as "none
    // ready".
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), count, time_ptr, std::ptr::null()) };
    for (fd, item) in fds.iter().zip(items.iter_mut()) {
        item.is_ready = ready > 0 && fd.revents != 0;
    }
}

/// The page size.
pub fn page_size() -> usize {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Number of CPUs that are online.
pub fn nr_cpus_online() -> u32 {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN).max(1) as u32 }
}

/// Clock ticks per second of /proc/stat (USER_HZ).
pub fn user_hz() -> u64 {
    // SAFETY: no memory is involved.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK).max(1) as u64 }
}

/// Time between two scheduler ticks (ns): the resolution of the coarse clocks is one tick (1 s /
/// CONFIG_HZ).
pub fn tick_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists since Linux 2.6.32.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
}

/// Effective user id.
pub fn euid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether this process may set the scheduling attributes of other users' tasks and real-time
/// policies (CAP_SYS_NICE; capabilities(7)).
pub fn has_cap_sys_nice() -> bool {
    const CAP_SYS_NICE: u32 = 23;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .is_some_and(|bits| bits >> CAP_SYS_NICE & 1 == 1)
}
