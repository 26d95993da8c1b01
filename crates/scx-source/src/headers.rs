// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headers for schedulers that bring none of that name: they are searched last.

/// Name and text of each header of bpf/scx, for schedulers in other directories that include them.
/// They are searched last, so that a user's own header comes first.
pub const SHARED_HEADERS: &[(&str, &str)] = &[
    ("scx.bpf.h", include_str!("../../../bpf/scx/scx.bpf.h")),
    ("queue.bpf.h", include_str!("../../../bpf/scx/queue.bpf.h")),
    ("ranked.bpf.h", include_str!("../../../bpf/scx/ranked.bpf.h")),
    ("background.bpf.h", include_str!("../../../bpf/scx/background.bpf.h")),
    ("random.bpf.h", include_str!("../../../bpf/scx/random.bpf.h")),
];

/// Headers of the system: BPF programs have no C library.
pub const SYSTEM_HEADERS: &[(&str, &str)] = &[
    ("errno.h", include_str!("../include/errno.h")),
    ("string.h", include_str!("../include/string.h")),
    ("asm-generic/errno.h", include_str!("../include/asm-generic/errno.h")),
];
