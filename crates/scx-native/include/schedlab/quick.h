/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers that need no call: what the loader and the simulator write down for C, and how it is
 * read. The run time (rt.c) has functions of the same names for schedulers that want an address;
 * bpf_helpers.h puts these in place of calls.
 */
#ifndef SCHEDLAB_QUICK_H
#define SCHEDLAB_QUICK_H

#include "vmlinux.h"

#define SCHEDLAB_INLINE static inline __attribute__((always_inline, unused))

/* What does not change while a callback runs; filled in before each. */
struct schedlab_call {
	u64 now_ns;
	/* The clock of the run queue: time before the programs of the same operation. */
	u64 rq_now_ns;
	u32 cpu;
	/* Instructions that a kernel would have executed so far, see src/insns.rs. */
	u32 insns;
};

/* Instructions of helpers that need no call. */
#define SCHEDLAB_INSNS_LOOKUP 37
#define SCHEDLAB_INSNS_STORAGE 52

extern struct schedlab_call schedlab_call __attribute__((visibility("hidden")));

/*
 * What the loader writes over the variable of a map: its number; for arrays, where the elements
 * are; for the storage of tasks, its place in the struct of a task. 0: only the simulator knows.
 */
struct schedlab_map {
	u64 mark;
	union {
		u64 elements;
		u64 place;
	};
	u32 max_entries, stride;
};

#define SCHEDLAB_MAP_ARRAY 0x5ced1ab1u
#define SCHEDLAB_MAP_PERCPU_ARRAY 0x5ced1ab2u
#define SCHEDLAB_MAP_TASK_STORAGE 0x5ced1ab3u

void *schedlab_map_lookup_elem(void *map, const void *key);
void *schedlab_map_lookup_u32(void *map, u32 key);
void *schedlab_task_storage_get(void *map, struct task_struct *p, void *value, u64 flags);

SCHEDLAB_INLINE void *schedlab_quick_lookup(void *map, const void *key)
{
	const struct schedlab_map *m = map;
	u32 kind = m->mark >> 32, index, cpu = 0;

	schedlab_call.insns += SCHEDLAB_INSNS_LOOKUP;

	if (kind == SCHEDLAB_MAP_PERCPU_ARRAY)
		cpu = schedlab_call.cpu;
	else if (kind != SCHEDLAB_MAP_ARRAY) {
		/* A key that is passed by value can stay in a register. */
		if (__builtin_object_size(key, 1) == sizeof(index))
			return schedlab_map_lookup_u32(map, *(const u32 *)key);
		return schedlab_map_lookup_elem(map, key);
	}
	index = *(const u32 *)key;
	if (index >= m->max_entries)
		return (void *)0;
	return (void *)(unsigned long)(m->elements +
				       ((u64)cpu * m->max_entries + index) * m->stride);
}

SCHEDLAB_INLINE void *schedlab_quick_storage(void *map, struct task_struct *p, void *value,
					     u64 flags)
{
	const struct schedlab_map *m = map;

	schedlab_call.insns += SCHEDLAB_INSNS_STORAGE;
	if (p && m->mark >> 32 == SCHEDLAB_MAP_TASK_STORAGE && p->schedlab_storage[m->place])
		return p->schedlab_storage[m->place];
	return schedlab_task_storage_get(map, p, value, flags);
}

#endif
