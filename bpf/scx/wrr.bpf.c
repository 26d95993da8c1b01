/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Weighted round robin: 100 ms in the foreground, 10 ms in the background, by control group. Twin
 * of `wrr` in crates/sched/src/wrr.
 *
 * One list for each CPU, first in, first out. A task that has used its slice goes to the tail with
 * a new one; alone, it goes on. A task that blocks keeps what is left of its slice, one that yields
 * goes to the tail with it, and a child starts with what its parent had left.
 *
 * What differs from the model: SCHED_WRR is the tasks that sched_ext has, which are of one
 * priority, so that of the 100 lists one is used; which CPU a task wakes on, and what a CPU takes
 * from another, is decided as queue.bpf.h says.
 *
 * Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), Basic WRR.
 */
#define TASK_FIELDS                                                                                \
	u32 ticks_left; /* of its slice */                                                         \
	bool is_background;
#define COUNTERS                                                                                   \
	COUNTER(nr_ticks_foreground, "ticks that met a task of the foreground");                   \
	COUNTER(nr_ticks_background, "ticks that met a task of the background");
#include "queue.bpf.h"
#include "background.bpf.h"

static __always_inline u32 slice_of(struct task_ctx *t)
{
	return ticks_of(t->is_background ? slice_background_ns : slice_foreground_ns);
}

s32 BPF_STRUCT_OPS(wrr_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		new_turn(p, t, SLICE_LONG);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_LONG, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(wrr_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool goes_on;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	goes_on = is_interrupted(t);
	new_turn(p, t, SLICE_LONG);
	starts_waiting(p, t);
	scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), SLICE_LONG,
			   goes_on ? enq_flags | SCX_ENQ_HEAD : enq_flags);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(wrr_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (is_runnable(prev)) {
		if (even_out(cpu) || scx_bpf_dsq_move_to_local(cpu))
			return;
		t = task_ctx(prev);
		if (t) {
			new_turn(prev, t, SLICE_LONG);
			set_slice(prev, SLICE_LONG);
			count(nr_continued);
		}
		return;
	}
	if (!scx_bpf_dsq_move_to_local(cpu))
		take_from_others(cpu);
}

void BPF_STRUCT_OPS(wrr_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	if (t->is_background)
		count(nr_ticks_background);
	else
		count(nr_ticks_foreground);
	if (t->ticks_left > 1) {
		t->ticks_left--;
		if (waits_too_long(scx_bpf_task_cpu(p)))
			end_turn(p, t);
		return;
	}
	t->ticks_left = slice_of(t);
	end_turn(p, t);
}

void BPF_STRUCT_OPS(wrr_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		comes(p, t);
}

void BPF_STRUCT_OPS(wrr_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(wrr_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to)
		yields(from, t);
	return false;
}

s32 BPF_STRUCT_OPS(wrr_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *t = task_ctx_new(p), *parent = parent_ctx(args);

	if (!t)
		return -ENOMEM;
	t->is_background = group_is_background(args->cgroup);
	t->ticks_left = parent ? parent->ticks_left : slice_of(t);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(wrr_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	return group_new(cgrp);
}

void BPF_STRUCT_OPS(wrr_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		changes_ground(t, group_is_background(to));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(wrr_init)
{
	return create_queues();
}

void BPF_STRUCT_OPS(wrr_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(wrr_ops,
	       .select_cpu = (void *)wrr_select_cpu,
	       .enqueue = (void *)wrr_enqueue,
	       .dispatch = (void *)wrr_dispatch,
	       .tick = (void *)wrr_tick,
	       .running = (void *)wrr_running,
	       .stopping = (void *)wrr_stopping,
	       .yield = (void *)wrr_yield,
	       .init_task = (void *)wrr_init_task,
	       .cgroup_init = (void *)wrr_cgroup_init,
	       .cgroup_move = (void *)wrr_cgroup_move,
	       .init = (void *)wrr_init,
	       .exit = (void *)wrr_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "wrr");
