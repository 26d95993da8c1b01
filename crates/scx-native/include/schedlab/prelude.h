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

/* Pointers into an arena are pointers: no cast between address spaces is to be written out. */
#ifndef __BPF_FEATURE_ADDR_SPACE_CAST
#define __BPF_FEATURE_ADDR_SPACE_CAST 1
#endif

#endif
