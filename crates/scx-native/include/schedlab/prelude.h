/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Included before the first line of every scheduler that is compiled natively.
 *
 * Loops of BPF programs carry `may_goto`, an instruction that leaves them after a while; it is
 * written as `asm volatile goto(...)`, which another processor cannot assemble. The macro below
 * makes it an empty statement (a plain `goto label` has no parenthesis and is left alone); what
 * bounds loops here is the limit of CPU time of a callback.
 */
#ifndef SCHEDLAB_PRELUDE_H
#define SCHEDLAB_PRELUDE_H

#include "vmlinux.h"

#define goto(...) ("")

/*
 * Sources ask for the version to avoid what an older clang cannot translate to BPF, atomics for
 * example, and have assembly of BPF instead. Another processor needs none of it.
 */
#undef __clang_major__
#define __clang_major__ 22

/* Address of a member, or NULL if it lies outside of the object; headers keep this definition. */
#define MEMBER_VPTR(base, member)                                       \
	((typeof((base) member) *)({                                    \
		u64 ___base = (u64)(unsigned long)&(base);              \
		u64 ___addr = (u64)(unsigned long)&((base) member);     \
		___addr - ___base <= sizeof(base) - sizeof((base) member) ? ___addr : 0; \
	}))

/* Address of element `i` of an array of `n`, or NULL. */
#define ARRAY_ELEM_PTR(arr, i, n)                                       \
	((typeof((arr)[0]) *)({                                         \
		u64 ___i = (u64)(i);                                    \
		___i < (u64)(n) ? (u64)(unsigned long)&((arr)[___i]) : 0; \
	}))

/* Every access is checked: no source can ask the compiler to leave a function or a pointer out. */
#define address_space(...)
#define __address_space__(...)
#define no_sanitize(...) annotate("")
#define __no_sanitize__(...) annotate("")
#define no_sanitize_address annotate("")
#define disable_sanitizer_instrumentation annotate("")

/* Pointers into an arena are pointers: no cast between address spaces is to be written out. */
#ifndef __BPF_FEATURE_ADDR_SPACE_CAST
#define __BPF_FEATURE_ADDR_SPACE_CAST 1
#endif

#endif
