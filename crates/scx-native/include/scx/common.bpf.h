/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The header that sched_ext schedulers include. If a scheduler comes with its own, that one is
 * taken and only its two macros with BPF assembly are replaced; else the stand-in beside this one.
 */
#ifndef SCHEDLAB_SCX_COMMON_BPF_H
#define SCHEDLAB_SCX_COMMON_BPF_H

#if __has_include_next(<scx/common.bpf.h>)
#include_next <scx/common.bpf.h>
#else
#include "schedlab/scx_common.bpf.h"
#endif

/* Address of a member, or NULL if it lies outside of the object. */
#undef MEMBER_VPTR
#define MEMBER_VPTR(base, member)                                       \
	((typeof((base) member) *)({                                    \
		u64 ___base = (u64)(unsigned long)&(base);              \
		u64 ___addr = (u64)(unsigned long)&((base) member);     \
		___addr - ___base <= sizeof(base) - sizeof((base) member) ? ___addr : 0; \
	}))

/* Address of element `i` of an array of `n`, or NULL. */
#undef ARRAY_ELEM_PTR
#define ARRAY_ELEM_PTR(arr, i, n)                                       \
	((typeof((arr)[0]) *)({                                         \
		u64 ___i = (u64)(i);                                    \
		___i < (u64)(n) ? (u64)(unsigned long)&((arr)[___i]) : 0; \
	}))

#endif
