/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The header that sched_ext schedulers include. If a scheduler comes with its own, that one is
 * taken, but not its two macros with BPF assembly (prelude.h has them); else the stand-in.
 */
#ifndef SCHEDLAB_SCX_COMMON_BPF_H
#define SCHEDLAB_SCX_COMMON_BPF_H

#pragma push_macro("MEMBER_VPTR")
#pragma push_macro("ARRAY_ELEM_PTR")
#if __has_include_next(<scx/common.bpf.h>)
#include_next <scx/common.bpf.h>
#else
#include "schedlab/scx_common.bpf.h"
#endif
#pragma pop_macro("ARRAY_ELEM_PTR")
#pragma pop_macro("MEMBER_VPTR")

#endif
