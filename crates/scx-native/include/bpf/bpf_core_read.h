/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stand-in for libbpf's bpf_core_read.h in native builds. There is one layout, so reading a field
 * is reading it; questions about the kernel are answered for the release in SCHEDLAB_KERNEL.
 */
#ifndef __BPF_CORE_READ_H__
#define __BPF_CORE_READ_H__

#include <bpf/bpf_helpers.h>

int schedlab_core_type_exists(const char *name);
int schedlab_core_field_exists(const char *name);
int schedlab_core_enum_value_exists(const char *name);

/* Each place asks once: the answer does not change within a run. */
#define SCHEDLAB_ASK_ONCE(question)                                     \
	({                                                              \
		static signed char ___answer = -1;                      \
		if (___answer < 0)                                      \
			___answer = (question);                         \
		___answer;                                              \
	})

#define bpf_core_type_exists(type) SCHEDLAB_ASK_ONCE(schedlab_core_type_exists(#type))
#define bpf_core_type_matches(type) bpf_core_type_exists(type)
#define bpf_core_type_size(type) sizeof(type)
/* bpf_obj_new() passes this on to the allocator, which wants the size. */
#define bpf_core_type_id_local(type) sizeof(type)
#define bpf_core_type_id_kernel(type) sizeof(type)
#define bpf_core_field_exists(field...) \
	SCHEDLAB_ASK_ONCE(((void)sizeof(SCHEDLAB_FIELD(field)), \
			   schedlab_core_field_exists(#field)))
#define SCHEDLAB_FIELD1(field) field
#define SCHEDLAB_FIELD2(type, field) ((type *)0)->field
#define SCHEDLAB_FIELD(field...) \
	___bpf_apply(SCHEDLAB_FIELD, ___bpf_narg(field))(field)
#define bpf_core_field_size(field...) sizeof(SCHEDLAB_FIELD(field))
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_core_enum_value_exists(type, value) \
	SCHEDLAB_ASK_ONCE(schedlab_core_enum_value_exists(#value))
#define bpf_core_enum_value(type, value) ((__u64)(value))
#define bpf_core_cast(ptr, type) ((typeof(type) *)(ptr))
#define bpf_rdonly_cast(ptr, type) (ptr)

#define bpf_core_read(dst, size, src) bpf_probe_read_kernel(dst, size, src)
#define bpf_core_read_str(dst, size, src) bpf_probe_read_kernel_str(dst, size, src)
#define bpf_core_read_user(dst, size, src) bpf_probe_read_user(dst, size, src)

/*
 * BPF_CORE_READ(a, b, c) is a->b->c, or zeroes if a pointer on the way is NULL, as a faulting read.
 * The value may be of any type: SCHEDLAB_AT finds the address of the last field, or NULL; an array
 * stands for its first element, in the struct or among the zeroes.
 */
extern const unsigned char schedlab_zeroes[4096] __attribute__((aligned(16)));

#define SCHEDLAB_POINTER(s, a) \
	({ __auto_type ___s = (s); ___s ? ___s->a : (typeof(___s->a))0; })
#define SCHEDLAB_AT1(s, a) \
	({ __auto_type ___s = (s); ___s ? &___s->a : (typeof(&___s->a))0; })
#define SCHEDLAB_AT2(s, a, b) SCHEDLAB_AT1(SCHEDLAB_POINTER(s, a), b)
#define SCHEDLAB_AT3(s, a, b, c) SCHEDLAB_AT2(SCHEDLAB_POINTER(s, a), b, c)
#define SCHEDLAB_AT4(s, a, b, c, d) SCHEDLAB_AT3(SCHEDLAB_POINTER(s, a), b, c, d)
#define SCHEDLAB_AT5(s, a, b, c, d, e) SCHEDLAB_AT4(SCHEDLAB_POINTER(s, a), b, c, d, e)
#define SCHEDLAB_AT6(s, a, b, c, d, e, f) \
	SCHEDLAB_AT5(SCHEDLAB_POINTER(s, a), b, c, d, e, f)
#define SCHEDLAB_AT(src, a, ...) \
	___bpf_apply(SCHEDLAB_AT, ___bpf_narg(a, ##__VA_ARGS__))(src, a, ##__VA_ARGS__)
#define BPF_CORE_READ(src, a, ...)                                      \
	(*({                                                            \
		__auto_type ___at = SCHEDLAB_AT(src, a, ##__VA_ARGS__); \
		_Static_assert(sizeof(*___at) <= sizeof(schedlab_zeroes), "too long to read"); \
		___at ? ___at : (typeof(___at))(const void *)schedlab_zeroes; \
	}))
#define BPF_PROBE_READ(src, a, ...) BPF_CORE_READ(src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_USER(src, a, ...) BPF_CORE_READ(src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_INTO(dst, src, a, ...)                            \
	({                                                              \
		const void *___from = SCHEDLAB_AT(src, a, ##__VA_ARGS__); \
		__builtin_memcpy((void *)(dst), ___from ?: schedlab_zeroes, sizeof(*(dst))); \
		___from ? 0 : -14;                                      \
	})
#define BPF_PROBE_READ_INTO(dst, src, a, ...) BPF_CORE_READ_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_STR_INTO(dst, src, a, ...) \
	bpf_probe_read_kernel_str((void *)(dst), sizeof(*(dst)), \
				  SCHEDLAB_AT(src, a, ##__VA_ARGS__))
#define BPF_CORE_READ_BITFIELD(s, field) ((unsigned long long)(s)->field)
#define BPF_CORE_READ_BITFIELD_PROBED(s, field) ((unsigned long long)(s)->field)
#define BPF_CORE_WRITE_BITFIELD(s, field, value) ({ (s)->field = (value); })

#endif
