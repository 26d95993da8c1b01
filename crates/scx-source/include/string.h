/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Functions on memory: clang writes them out in place, or the simulator has them. */
#ifndef SCHEDLAB_STRING_H
#define SCHEDLAB_STRING_H

#define memset(s, c, n) __builtin_memset(s, c, n)
#define memcpy(dst, src, n) __builtin_memcpy(dst, src, n)
#define memmove(dst, src, n) __builtin_memmove(dst, src, n)
#define memcmp(a, b, n) __builtin_memcmp(a, b, n)
#define strlen(s) __builtin_strlen(s)

#endif
