/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Foreground and background: the slices of WRR and RMLFQ, in ticks.
 *
 * A task is in the background if the name of its control group, or of one above it, begins with a b
 * (the study tests the second character of the group's path, as in /bg_non_interactive;
 * background_level says at which depth alone to look). Slices are counted in ticks, as the study's
 * code and the model do: whoever runs when a tick comes pays for it.
 *
 * Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), section 3.1.
 */
#ifndef SCHEDLAB_BACKGROUND_BPF_H
#define SCHEDLAB_BACKGROUND_BPF_H

/* Deepest group whose name is looked at. */
#define LEVELS_MAX 16

OPTION(u64, slice_foreground_ns, 100000000, "1ms..3600s", "slice",
       "slice of tasks in the foreground, in whole ticks, at least one");
OPTION(u64, slice_background_ns, 10000000, "1ms..3600s", "",
       "slice of tasks in the background: in a control group whose name begins with b");
OPTION(u32, background_level, 0, "0..16", "",
       "depth at which the name of a control group counts, 1 is the outermost; 0: at any");

#ifndef GROUP_FIELDS
#define GROUP_FIELDS
#endif

/* What is kept of a control group. */
struct group {
	bool is_background;
	GROUP_FIELDS
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group);
} groups SEC(".maps");

static __always_inline bool group_is_background(struct cgroup *cgrp)
{
	struct group *group = cgrp ? bpf_cgrp_storage_get(&groups, cgrp, 0, 0) : NULL;

	return group && group->is_background;
}

/* A group is new, or was there when the scheduler came. The groups above it came before. */
static __always_inline s32 group_new(struct cgroup *cgrp)
{
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);
	int level = cgrp->level;
	char first[2] = {};

	if (!group)
		return -ENOMEM;
	if (level > 0) {
		struct cgroup *parent = bpf_cgroup_ancestor(cgrp, level - 1);

		if (parent) {
			group->is_background = group_is_background(parent);
			bpf_cgroup_release(parent);
		}
	}
	bpf_probe_read_kernel_str(first, sizeof(first), cgrp->kn->name);
	if (level > 0 && first[0] == 'b' && (!background_level || level == background_level))
		group->is_background = true;
	return 0;
}

/* A slice in ticks. */
static __always_inline u32 ticks_of(u64 slice_ns)
{
	u64 ticks = slice_ns / tick_ns;

	return ticks ? ticks : 1;
}

/* `t` is moved into another group. Who comes to the background keeps no slice of the foreground: a
 * program that is put into its group before it does anything would begin with one. */
static __always_inline void changes_ground(struct task_ctx *t, bool is_background)
{
	u32 ticks = ticks_of(slice_background_ns);

	t->is_background = is_background;
	if (is_background && t->ticks_left > ticks)
		t->ticks_left = ticks;
}

/* The task that makes another one by fork; only in ops.init_task. */
static __always_inline struct task_ctx *parent_ctx(struct scx_init_task_args *args)
{
	struct task_struct *parent = args->fork ? bpf_get_current_task_btf() : NULL;

	return parent ? task_ctx(parent) : NULL;
}

#endif
