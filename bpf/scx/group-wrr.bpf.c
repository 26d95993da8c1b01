/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Group WRR: each control group its turn, however many tasks it has; groups in groups. Twin of
 * `group-wrr` in crates/sched/src/wrr.
 *
 * A group is one member of the list of the group above it, beside the tasks that are in that one
 * itself. The pick goes from the root to the first member, and into it while it is a group. At the
 * end of a slice the task and every group above it go to the tails of their lists, so groups take
 * turns slice by slice; so do the groups above a task that comes or goes. Slices are those of WRR;
 * cpu.weight does not count.
 *
 * Each group has a queue for each CPU (a DSQ), which holds its own tasks. A list of tasks and
 * groups is not stored: every member has a position, and the least one is first.
 *
 * What differs from the model: as wrr. Where CPUs times groups would be more than QUEUES_MAX, and
 * below DEPTH_MAX, further groups have no turn of their own: their tasks are tasks of the group
 * above. A task whose attributes change while it waits goes to the tail.
 *
 * Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), Group WRR.
 */
#define TASK_FIELDS                                                                                \
	u64 position;   /* in the list of its group */                                             \
	u32 group;      /* whose task it is */                                                     \
	u32 waits_in;   /* group in whose queue it waits */                                        \
	s32 waits_for;  /* CPU in whose queue it waits, plus 1; 0: it does not wait */             \
	u32 ticks_left; /* of its slice */                                                         \
	bool is_background;
#define COUNTERS                                                                                   \
	COUNTER(nr_groups_merged, "groups without a turn of their own: there are too many");       \
	COUNTER(nr_dead_ends, "picks that found the first group empty");
#define SEVERAL_QUEUES
#define GROUP_FIELDS                                                                               \
	u32 index;      /* of the group that its tasks count for */                                \
	bool is_merged; /* that is the group above */
#include "queue.bpf.h"
#include "background.bpf.h"

/* Most groups with a turn of their own. */
#define GROUPS_MAX 256
/* Most queues of all groups and CPUs together. */
#define QUEUES_MAX 16384
/* Deepest group with a turn of its own; the root is at 0. */
#define DEPTH_MAX 8
/* Room for a path; a power of two, so that a mask bounds an index. */
#define PATH_LEN 16
#define NOWHERE (~0ULL)

/* What is known of a group on every CPU. */
struct group_info {
	u32 path[PATH_LEN]; /* groups from the root down to it, which fills the rest */
	u32 depth;
	u32 above;
	bool is_used;
	bool has_queues;
};

/* What is known of the groups on a CPU. */
struct tree {
	u64 last;                     /* position given last */
	u64 positions[GROUPS_MAX];    /* of each group in the list of the one above */
	u32 nr_waiting[GROUPS_MAX];   /* tasks that wait in it and below it */
} __attribute__((aligned(64)));

struct group_info infos[GROUPS_MAX];
struct tree trees[NR_CPUS_MAX];
u32 nr_groups = 1;
u32 nr_groups_max = GROUPS_MAX;

static __always_inline struct tree *tree_of(s32 cpu)
{
	return &trees[(u32)cpu & (NR_CPUS_MAX - 1)];
}

static __always_inline struct group_info *info_of(u32 group)
{
	return &infos[group & (GROUPS_MAX - 1)];
}

static __always_inline u64 queue_of(u32 group, s32 cpu)
{
	return (u64)group << 32 | (u32)cpu;
}

static __always_inline s32 queue_length(s32 cpu)
{
	return tree_of(cpu)->nr_waiting[0];
}

static __noinline bool take_first(s32 cpu)
{
	s32 group;

	bpf_for(group, 0, nr_groups) {
		if (tree_of(cpu)->nr_waiting[group & (GROUPS_MAX - 1)] &&
		    scx_bpf_dsq_move_to_local(queue_of(group, cpu)))
			return true;
	}
	return false;
}

static __always_inline bool somebody_waits_too_long(s32 cpu, u64 now)
{
	s32 group;

	bpf_for(group, 0, nr_groups) {
		if (tree_of(cpu)->nr_waiting[group & (GROUPS_MAX - 1)] &&
		    search_queue(queue_of(group, cpu), now))
			return true;
	}
	return false;
}

static __always_inline bool take_who_waits_too_long(s32 cpu, u64 now)
{
	s32 group;

	bpf_for(group, 0, nr_groups) {
		if (tree_of(cpu)->nr_waiting[group & (GROUPS_MAX - 1)] &&
		    take_from_queue(queue_of(group, cpu), cpu, now))
			return true;
	}
	return false;
}

/* One more, or one less, waits in `group` on `cpu`. */
static __always_inline void count_waiting(u32 group, s32 cpu, s32 change)
{
	struct group_info *info = info_of(group);
	struct tree *tree = tree_of(cpu);
	u32 i;

	for (i = 0; i <= DEPTH_MAX; i++) {
		if (i <= info->depth)
			__sync_fetch_and_add(&tree->nr_waiting[info->path[i] & (GROUPS_MAX - 1)],
					     change);
	}
}

static __always_inline void leave_queue(struct task_ctx *t)
{
	if (t->waits_for)
		count_waiting(t->waits_in, t->waits_for - 1, -1);
	t->waits_for = 0;
}

static __always_inline void enter_queue(struct task_ctx *t, s32 cpu)
{
	leave_queue(t);
	t->waits_for = cpu + 1;
	t->waits_in = t->group;
	count_waiting(t->group, cpu, 1);
}

/* The groups above a task of `group` go to the tails of their lists, the innermost first. */
static __always_inline void requeue_groups(u32 group, s32 cpu)
{
	struct group_info *info = info_of(group);
	struct tree *tree = tree_of(cpu);
	u32 i;

	for (i = DEPTH_MAX; i > 0; i--) {
		if (i <= info->depth)
			tree->positions[info->path[i] & (GROUPS_MAX - 1)] = ++tree->last;
	}
}

/* `t` and the groups above it go to the tails of their lists. */
static __always_inline void requeue(struct task_ctx *t, s32 cpu)
{
	t->position = ++tree_of(cpu)->last;
	requeue_groups(t->group, cpu);
}

/* The position of the first task in the queue of `group` on `cpu` that may run there. */
static __noinline u64 first_position(u32 group, s32 cpu)
{
	u64 position = NOWHERE;
	u32 nr = scan_start;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue_of(group, cpu), 0) {
		struct task_ctx *t;

		if (++nr >= SCAN_MAX)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_ctx(p);
		position = t ? t->position : 0;
		break;
	}
	return position;
}

/*
 * The first group in the list of `above` on `cpu`: one that holds waiting tasks, or `with`, which
 * holds the running one. 0 if there is none.
 */
static __noinline u32 first_group(u32 above, s32 cpu, u32 with)
{
	struct tree *tree = tree_of(cpu);
	u64 least = NOWHERE;
	u32 first = 0;
	s32 group;

	bpf_for(group, 1, nr_groups) {
		struct group_info *info = info_of(group);
		u64 position = tree->positions[group & (GROUPS_MAX - 1)];

		if (info->is_used && info->above == above && position < least &&
		    (tree->nr_waiting[group & (GROUPS_MAX - 1)] || group == with)) {
			least = position;
			first = group;
		}
	}
	return first;
}

/*
 * Goes from the root to the first task for `cpu`. `running`, if there is one, competes as a member
 * of its group. Returns 1 if the task that waits there was taken, 0 if it is the running one, or
 * nobody.
 */
static __noinline int pick(s32 cpu, struct task_ctx *running)
{
	struct group_info *own = running ? info_of(running->group) : NULL;
	bool on_path = own;
	u32 at = 0;
	s32 level;

	bpf_for(level, 0, DEPTH_MAX + 1) {
		bool is_here = on_path && own->depth == level, goes_on = false;
		u64 task = first_position(at, cpu), position;
		u32 with = 0, group;

		if (on_path && !is_here)
			with = own->path[(level + 1) & (PATH_LEN - 1)];
		group = first_group(at, cpu, with);
		position = group ? tree_of(cpu)->positions[group & (GROUPS_MAX - 1)] : NOWHERE;
		if (is_here && running->position < task && running->position < position)
			return 0;
		if (task < position)
			return scx_bpf_dsq_move_to_local(queue_of(at, cpu));
		if (!group)
			return 0;
		goes_on = on_path && group == with;
		on_path = goes_on;
		at = group;
	}
	return 0;
}

s32 BPF_STRUCT_OPS(group_wrr_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		new_turn(p, t, SLICE_LONG);
		requeue(t, cpu);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_LONG, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(group_wrr_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	bool comes, goes_on;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	comes = arrives(t);
	goes_on = is_interrupted(t);
	/* At the end of a slice it has been given its position already. */
	if (comes || (!goes_on && !t->is_over))
		requeue(t, cpu);
	new_turn(p, t, SLICE_LONG);
	starts_waiting(p, t);
	enter_queue(t, cpu);
	scx_bpf_dsq_insert(p, queue_of(t->group, cpu), SLICE_LONG,
			   goes_on ? enq_flags | SCX_ENQ_HEAD : enq_flags);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(group_wrr_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (!is_runnable(prev)) {
		if (pick(cpu, NULL))
			return;
		if (queue_length(cpu)) {
			count(nr_dead_ends);
			if (take_first(cpu))
				return;
		}
		take_from_others(cpu);
		return;
	}
	t = task_ctx(prev);
	if (!t || even_out(cpu) || pick(cpu, t))
		return;
	count(nr_continued);
	new_turn(prev, t, SLICE_LONG);
	set_slice(prev, SLICE_LONG);
}

void BPF_STRUCT_OPS(group_wrr_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t)
		return;
	if (t->ticks_left > 1) {
		t->ticks_left--;
		if (!waits_too_long(cpu))
			return;
	} else {
		t->ticks_left = ticks_of(t->is_background ? slice_background_ns :
							    slice_foreground_ns);
	}
	requeue(t, cpu);
	end_turn(p, t);
}

void BPF_STRUCT_OPS(group_wrr_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	leave_queue(t);
	/* A position on another CPU means nothing here. */
	if (t->cpu != scx_bpf_task_cpu(p))
		requeue(t, scx_bpf_task_cpu(p));
	comes(p, t);
}

void BPF_STRUCT_OPS(group_wrr_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	if (!runnable)
		requeue_groups(t->group, scx_bpf_task_cpu(p));
	leaves(p, t, runnable);
}

void BPF_STRUCT_OPS(group_wrr_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		leave_queue(t);
}

bool BPF_STRUCT_OPS(group_wrr_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to) {
		requeue(t, scx_bpf_task_cpu(from));
		yields(from, t);
	}
	return false;
}

static __always_inline u32 index_of(struct cgroup *cgrp)
{
	struct group *group = cgrp ? bpf_cgrp_storage_get(&groups, cgrp, 0, 0) : NULL;

	return group ? group->index : 0;
}

s32 BPF_STRUCT_OPS(group_wrr_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *t = task_ctx_new(p), *parent = parent_ctx(args);

	if (!t)
		return -ENOMEM;
	t->group = index_of(args->cgroup);
	t->is_background = group_is_background(args->cgroup);
	t->ticks_left = parent ? parent->ticks_left :
				 ticks_of(t->is_background ? slice_background_ns :
							     slice_foreground_ns);
	return 0;
}

static __always_inline s32 create_group_queues(u32 index)
{
	s32 cpu, error;

	if (info_of(index)->has_queues)
		return 0;
	bpf_for(cpu, 0, nr_cpus) {
		error = scx_bpf_create_dsq(queue_of(index, cpu), -1);
		if (error)
			return error;
	}
	info_of(index)->has_queues = true;
	return 0;
}

/* A free index, or 0. */
static __always_inline u32 free_index(void)
{
	s32 index;

	bpf_for(index, 1, nr_groups_max) {
		if (!info_of(index)->is_used)
			return index;
	}
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(group_wrr_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	s32 error = group_new(cgrp);
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0, 0);
	struct group_info *info, *above;
	struct cgroup *parent;
	u32 index, over = 0, depth, i;

	if (error || !group)
		return error ? error : -ENOMEM;
	if (cgrp->level <= 0)
		return 0;
	parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (parent) {
		over = index_of(parent);
		bpf_cgroup_release(parent);
	}
	above = info_of(over);
	index = above->depth < DEPTH_MAX ? free_index() : 0;
	group->index = index ? index : over;
	group->is_merged = !index;
	if (!index) {
		count(nr_groups_merged);
		return 0;
	}
	info = info_of(index);
	depth = above->depth + 1;
	for (i = 0; i < PATH_LEN; i++)
		info->path[i] = i < depth ? above->path[i] : index;
	info->depth = depth;
	info->above = over;
	error = create_group_queues(index);
	if (error)
		return error;
	info->is_used = true;
	if (index >= nr_groups)
		nr_groups = index + 1;
	return 0;
}

void BPF_STRUCT_OPS(group_wrr_cgroup_exit, struct cgroup *cgrp)
{
	struct group *group = bpf_cgrp_storage_get(&groups, cgrp, 0, 0);

	/* Its queues are empty, and wait for the next group. */
	if (group && group->index && !group->is_merged)
		info_of(group->index)->is_used = false;
}

void BPF_STRUCT_OPS(group_wrr_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	t->group = index_of(to);
	changes_ground(t, group_is_background(to));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(group_wrr_init)
{
	s32 error = create_queues();

	info_of(0)->is_used = true;
	info_of(0)->has_queues = true;
	nr_groups_max = QUEUES_MAX / nr_cpus;
	if (nr_groups_max > GROUPS_MAX)
		nr_groups_max = GROUPS_MAX;
	return error;
}

void BPF_STRUCT_OPS(group_wrr_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(group_wrr_ops,
	       .select_cpu = (void *)group_wrr_select_cpu,
	       .enqueue = (void *)group_wrr_enqueue,
	       .dispatch = (void *)group_wrr_dispatch,
	       .tick = (void *)group_wrr_tick,
	       .running = (void *)group_wrr_running,
	       .stopping = (void *)group_wrr_stopping,
	       .quiescent = (void *)group_wrr_quiescent,
	       .yield = (void *)group_wrr_yield,
	       .init_task = (void *)group_wrr_init_task,
	       .cgroup_init = (void *)group_wrr_cgroup_init,
	       .cgroup_exit = (void *)group_wrr_cgroup_exit,
	       .cgroup_move = (void *)group_wrr_cgroup_move,
	       .init = (void *)group_wrr_init,
	       .exit = (void *)group_wrr_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "group_wrr");
