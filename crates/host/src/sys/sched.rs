// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_setattr(2), sched_setaffinity(2) and their readers.

use super::check;
use schedlab_model::{CpuId, CpuMask, DeadlineParams, Policy, SchedAttr};
use std::io;

/// `struct sched_attr` of include/uapi/linux/sched/types.h, second version (56 bytes, kernel 5.3).
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct RawSchedAttr {
    /// Size of this structure.
    pub size: u32,
    /// SCHED_*.
    pub policy: u32,
    /// SCHED_FLAG_*.
    pub flags: u64,
    /// Nice value (OTHER, BATCH).
    pub nice: i32,
    /// Real-time priority (FIFO, RR).
    pub priority: u32,
    /// DEADLINE budget; for OTHER and BATCH the custom slice (6.12 and later). ns.
    pub runtime: u64,
    /// DEADLINE relative deadline, ns.
    pub deadline: u64,
    /// DEADLINE period, ns.
    pub period: u64,
    /// Least utilisation, with SCHED_FLAG_UTIL_CLAMP_MIN in the flags.
    pub util_min: u32,
    /// Greatest utilisation, with SCHED_FLAG_UTIL_CLAMP_MAX.
    pub util_max: u32,
}

const RAW_LEN: u32 = size_of::<RawSchedAttr>() as u32;

/// Children start under OTHER (SCHED_FLAG_RESET_ON_FORK).
pub const RESET_ON_FORK: u64 = 1;
/// A DEADLINE task reclaims bandwidth that others do not use (SCHED_FLAG_RECLAIM, 4.13).
pub const RECLAIM: u64 = 2;
/// SCHED_FLAG_UTIL_CLAMP_MIN.
const UTIL_CLAMP_MIN: u64 = 0x20;
/// SCHED_FLAG_UTIL_CLAMP_MAX.
const UTIL_CLAMP_MAX: u64 = 0x40;

impl RawSchedAttr {
    /// The attributes in the form of the system call.
    pub fn new(attr: &SchedAttr) -> Self {
        let mut raw = Self { size: RAW_LEN, policy: attr.policy as u32, ..Self::default() };
        match attr.policy {
            Policy::Fifo | Policy::Rr => raw.priority = u32::from(attr.rt_priority),
            Policy::Deadline => {
                let DeadlineParams { runtime_ns, deadline_ns, period_ns, reclaim } = attr.deadline;
                (raw.runtime, raw.deadline, raw.period) = (runtime_ns, deadline_ns, period_ns);
                // Without this flag the kernel refuses forks of a DEADLINE task (sched(7)).
                raw.flags |= RESET_ON_FORK;
                if reclaim {
                    raw.flags |= RECLAIM;
                }
            }
            Policy::Normal | Policy::Batch | Policy::Idle | Policy::Ext => {
                raw.nice = i32::from(attr.nice);
                raw.runtime = attr.slice_ns.unwrap_or(0);
            }
        }
        if let Some(least) = attr.util_min {
            raw.flags |= UTIL_CLAMP_MIN;
            raw.util_min = u32::from(least);
        }
        if let Some(most) = attr.util_max {
            raw.flags |= UTIL_CLAMP_MAX;
            raw.util_max = u32::from(most);
        }
        raw
    }
}

/// Sets policy, nice, priority, slice or deadline of `pid` (0: the caller).
pub fn sched_setattr(pid: u32, raw: &RawSchedAttr) -> io::Result<()> {
    // SAFETY: `raw` is valid and states its size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, pid, raw as *const RawSchedAttr, 0u32) })
        .map(drop)
}

/// Reads the attributes back.
pub fn sched_getattr(pid: u32) -> io::Result<RawSchedAttr> {
    let mut raw = RawSchedAttr::default();
    // SAFETY: `raw` is valid for RAW_LEN bytes.
    check(unsafe {
        libc::syscall(libc::SYS_sched_getattr, pid, &mut raw as *mut RawSchedAttr, RAW_LEN, 0u32)
    })?;
    Ok(raw)
}

/// Least and greatest real-time priority of a policy; `None` if this kernel does not know it.
pub fn priority_range(policy: i32) -> Option<(i32, i32)> {
    // SAFETY: no memory is involved.
    let ends =
        unsafe { (libc::sched_get_priority_min(policy), libc::sched_get_priority_max(policy)) };
    (ends.0 >= 0 && ends.1 >= 0).then_some(ends)
}

/// The slice (ns) of `pid`, as reported by its class; 0 if it has none.
pub fn rr_interval_ns(pid: u32) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    let result = unsafe { libc::sched_rr_get_interval(pid as libc::pid_t, &mut time) };
    check(result.into())?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

const MASK_WORDS: usize = schedlab_model::cpumask::NR_CPUS_MAX / 64;

/// Restricts `pid` (0: the calling thread) to `mask`.
pub fn sched_setaffinity(pid: u32, mask: &CpuMask) -> io::Result<()> {
    let mut words = [0u64; MASK_WORDS];
    for cpu in mask.iter() {
        words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }
    // SAFETY: `words` is valid for its length; cpu_set_t is a bitmap of longs, little end first.
    let result = unsafe {
        libc::sched_setaffinity(pid as libc::pid_t, size_of_val(&words), words.as_ptr().cast())
    };
    check(result.into()).map(drop)
}

/// CPUs that `pid` (0: the calling thread) may use.
pub fn sched_getaffinity(pid: u32) -> io::Result<CpuMask> {
    let mut words = [0u64; MASK_WORDS];
    // SAFETY: `words` is valid for its length.
    let result = unsafe {
        libc::sched_getaffinity(pid as libc::pid_t, size_of_val(&words), words.as_mut_ptr().cast())
    };
    check(result.into())?;
    let cpus = (0..schedlab_model::cpumask::NR_CPUS_MAX as u32).map(CpuId);
    Ok(cpus.filter(|cpu| words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1).collect())
}

/// Gives up the CPU.
pub fn sched_yield() {
    // SAFETY: no memory is involved; cannot fail on Linux.
    unsafe { libc::sched_yield() };
}
