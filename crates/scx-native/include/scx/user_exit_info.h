/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A scheduler's own if it has one, else all of it is in the stand-in of common.bpf.h. */
#if __has_include_next(<scx/user_exit_info.h>)
#include_next <scx/user_exit_info.h>
#else
#include "schedlab/scx_common.bpf.h"
#endif
