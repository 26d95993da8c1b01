/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Frames of local variables whose address is taken, when loads and stores are checked. A part of
 * rt.c. The compiler asks for a frame when a function begins, of 64 << N bytes, and marks in its
 * shadow what lies between the variables. Its last word is the address of a byte, to which the
 * function writes 0 when it returns. Frames end in the reverse order of their beginnings.
 *
 * Source: llvm/lib/Transforms/Instrumentation/AddressSanitizer.cpp, "use after return".
 */
#ifndef SCHEDLAB_FRAMES_H
#define SCHEDLAB_FRAMES_H

#undef no_sanitize
#define UNCHECKED __attribute__((no_sanitize("address")))
/* No scheduler can touch these: they have no shadow. */
#define HIDDEN __attribute__((section(".schedlab")))

/* The shadow of an address (crates/scx-native/src/zone.rs). */
#define SHADOW(at) ((unsigned char *)(((u64)(at) >> 3) + 0x7fff8000))
/* Shadow of variables of a function that has returned. */
#define RETURNED 0xf5
#define RETURNED_8 0xf5f5f5f5f5f5f5f5ULL
#define FRAMES_MAX 4096

/* Filled in by the loader: all memory for frames. */
struct schedlab_frames {
	u64 start, end;
	u32 nr;
} schedlab_frames HIDDEN = { 1 };

static u64 frame_end[FRAMES_MAX] HIDDEN = { 1 };
static volatile unsigned char frame_live[FRAMES_MAX] HIDDEN = { 0 };

_Noreturn void schedlab_frames_full(u64 returns_to);

/* A frame of `size` bytes, of which the function uses `used`. */
UNCHECKED static inline __attribute__((always_inline)) void *frame_new(u64 size, u64 used,
								       u64 returns_to)
{
	u32 nr = schedlab_frames.nr;
	u64 at;

	while (nr && !frame_live[nr - 1])
		nr--;
	at = nr ? frame_end[nr - 1] : schedlab_frames.start;
	if (__builtin_expect(nr == FRAMES_MAX || size > schedlab_frames.end - at, 0))
		schedlab_frames_full(returns_to);
	frame_live[nr] = 1;
	frame_end[nr] = at + size;
	schedlab_frames.nr = nr + 1;
	/* Eight bytes of shadow at a time; the last word of the frame is out of reach. */
	for (u64 i = 0; i < size; i += 64)
		*(u64 *)SHADOW(at + i) = used >= i + 64 ? 0 :
					 used <= i	 ? RETURNED_8 :
							   RETURNED_8 << (used - i);
	*(u64 *)(at + size - 8) = (u64)&frame_live[nr];
	return (void *)at;
}

/* Only for frames of more than 1,024 bytes; the compiler writes the code for others itself. */
UNCHECKED static void frame_end_of(u64 at, u64 size)
{
	for (u32 nr = schedlab_frames.nr; nr--;)
		if (frame_live[nr] && frame_end[nr] == at + size) {
			for (u64 i = 0; i < size; i += 8)
				*SHADOW(at + i) = RETURNED;
			frame_live[nr] = 0;
			return;
		}
}

#define FRAME_CLASS(n)                                                                       \
	UNCHECKED void *__asan_stack_malloc_always_##n(u64 size)                             \
	{                                                                                    \
		return frame_new(64ULL << n, size, (u64)__builtin_return_address(0));        \
	}                                                                                    \
	UNCHECKED void __asan_stack_free_##n(u64 at, u64 size) { frame_end_of(at, 64ULL << n); }

FRAME_CLASS(0)
FRAME_CLASS(1)
FRAME_CLASS(2)
FRAME_CLASS(3)
FRAME_CLASS(4)
FRAME_CLASS(5)
FRAME_CLASS(6)
FRAME_CLASS(7)
FRAME_CLASS(8)
FRAME_CLASS(9)
FRAME_CLASS(10)

/* The functions of the simulator check the whole memory first. */
void *__asan_memcpy(void *dst, const void *src, size_t n);
void *__asan_memmove(void *dst, const void *src, size_t n);
void *__asan_memset(void *s, int c, size_t n);

void *memcpy(void *dst, const void *src, size_t n) { return __asan_memcpy(dst, src, n); }
void *memmove(void *dst, const void *src, size_t n) { return __asan_memmove(dst, src, n); }
void *memset(void *s, int c, size_t n) { return __asan_memset(s, c, n); }

#endif
