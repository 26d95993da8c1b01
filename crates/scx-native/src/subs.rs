// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions about schedulers below a scheduler (sub-schedulers), which the model does not have: a
//! root scheduler that offers them runs, and finds that none attaches. Its own capabilities are
//! those of a root, every one on every CPU.
//!
//! Source: Linux kernel/sched/ext/sub.c (7.3).

use super::cids::{CMASK_BITS, words_of};
use super::host::with;
use super::maps::errno::{EINVAL, ENODEV, EOPNOTSUPP};
use super::touch;

/// Every SCX_CAP_* bit.
const CAPS: u64 = 0xf;

/// Checks what every function about capabilities checks first; an error number otherwise.
fn check(caps: u64) -> Result<(), i32> {
    with(|k, run| {
        if !run.cids.is_form {
            k.scx_error("sub-cap kfuncs require a cid-form scheduler".into());
            return Err(-EOPNOTSUPP as i32);
        }
        if caps & !CAPS != 0 {
            k.scx_error(format!("invalid caps 0x{caps:x}"));
            return Err(-EINVAL as i32);
        }
        Ok(())
    })
}

/// `scx_bpf_sub_dispatch`: there is no such scheduler.
pub extern "C" fn dispatch(_cgroup: u64) -> bool {
    false
}

/// `scx_bpf_sub_grant` and `scx_bpf_sub_kill_bstr`: the same.
pub extern "C" fn of_child(_cgroup: u64) -> i32 {
    check(0).err().unwrap_or(-ENODEV as i32)
}

/// `scx_bpf_sub_revoke`: the same.
pub extern "C" fn revoke(_cgroup: u64) {
    let _ = check(0);
}

/// `scx_bpf_sub_caps`: sets the cids of `out` on which the scheduler (`cgroup` 0) has one of
/// `caps`.
pub extern "C" fn caps(cgroup: u64, caps: u64, out: u64) -> i32 {
    if let Err(errno) = check(caps) {
        return errno;
    }
    if cgroup != 0 {
        return -ENODEV as i32;
    }
    let mut head = [0u8; 12];
    touch::copy_from(out, &mut head);
    let word = |nth: usize| {
        u32::from_le_bytes(head[nth * 4..nth * 4 + 4].try_into().expect("four bytes")) as usize
    };
    let (base, nr, nr_words) = (word(0), word(1), word(2));
    let nr_cids = with(|k, _| k.nr_cpu_ids()) as usize;
    if base >= nr_cids || nr > nr_cids - base || words_of(nr) > nr_words {
        with(|k, _| k.scx_error(format!("invalid out (-{EINVAL})")));
        return -EINVAL as i32;
    }
    // Words of a mask begin at multiples of 64 cids.
    let first = base / 64 * 64;
    let mut words = vec![0u64; (base + nr - first).div_ceil(64)];
    for cid in (base..base + nr).filter(|_| caps != 0) {
        words[(cid - first) / 64] |= 1 << (cid % 64);
    }
    touch::put_words(out + CMASK_BITS, &words);
    0
}
