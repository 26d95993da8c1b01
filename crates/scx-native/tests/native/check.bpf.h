/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A condition that must hold; if it does not, the run ends with its text and its line. */
#define CHECK(condition)                                                \
	do {                                                            \
		if (!(condition))                                       \
			scx_bpf_error("not so: " #condition);           \
	} while (0)
