/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random multilevel feedback queue: WRR with 100 priorities, ten slice lengths, and a draw at the
 * end of each slice. Twin of `rmlfq-design`, `rmlfq-as-built-64` and `rmlfq-as-built-32` in
 * crates/sched/src/wrr (option variant).
 *
 * The best priority (0) runs first, tasks of one priority in turn. A slice is 100 ms times one more
 * than the decile of the priority, 10 ms in the background. Who has used it up moves ten priorities
 * up, ten down, or stays, by chance; whoever waits never moves. A waking task drives out one of a
 * worse priority, which goes on afterwards where it was.
 *
 * What differs from the model: the study's bitmap of 100 lists is one queue ordered by priority and
 * arrival, which the kernel keeps (a DSQ), so that a task that leaves takes no bit along; and since
 * nobody who waits ever moves, wait_max_ns is what keeps the kernel from ejecting the scheduler.
 * With the same seed the draws on one CPU are those of the model.
 *
 * Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021), sections 3.3
 * (design) and 4.4 (code).
 */
#define TASK_FIELDS                                                                                \
	u32 ticks_left; /* of its slice */                                                         \
	u8 prio;        /* 0 is best */                                                            \
	u8 times;       /* slices at this priority, from 1 */                                      \
	bool is_background;
#define COUNTERS                                                                                   \
	COUNTER(nr_promoted, "draws that led ten priorities up");                                  \
	COUNTER(nr_demoted, "draws that led ten priorities down");                                 \
	COUNTER(nr_stayed, "draws that left the priority as it was");                              \
	COUNTER(nr_driven_out, "times a waking task drove out a worse one");                       \
	COUNTER(nr_drawn_stage_0, "draws at priorities 0 to 19, the best stage");                  \
	COUNTER(nr_drawn_stage_1, "draws at priorities 20 to 39");                                 \
	COUNTER(nr_drawn_stage_2, "draws at priorities 40 to 59");                                 \
	COUNTER(nr_drawn_stage_3, "draws at priorities 60 to 79");                                 \
	COUNTER(nr_drawn_stage_4, "draws at priorities 80 to 99, the worst stage");                \
	COUNTER(nr_promoted_stage_0, "draws at stage 0 that led up");                              \
	COUNTER(nr_promoted_stage_1, "draws at stage 1 that led up");                              \
	COUNTER(nr_promoted_stage_2, "draws at stage 2 that led up");                              \
	COUNTER(nr_promoted_stage_3, "draws at stage 3 that led up");                              \
	COUNTER(nr_promoted_stage_4, "draws at stage 4 that led up");                              \
	COUNTER(nr_demoted_stage_0, "draws at stage 0 that led down");                             \
	COUNTER(nr_demoted_stage_1, "draws at stage 1 that led down");                             \
	COUNTER(nr_demoted_stage_2, "draws at stage 2 that led down");                             \
	COUNTER(nr_demoted_stage_3, "draws at stage 3 that led down");                             \
	COUNTER(nr_demoted_stage_4, "draws at stage 4 that led down");                             \
	COUNTER(nr_drawn_times_1, "draws after the first slice at a priority");                    \
	COUNTER(nr_drawn_times_2, "draws after the second slice at a priority");                   \
	COUNTER(nr_drawn_times_3, "draws after the third slice at a priority");                    \
	COUNTER(nr_stayed_times_1, "draws after the first slice that led nowhere");                \
	COUNTER(nr_stayed_times_2, "draws after the second slice that led nowhere");               \
	COUNTER(nr_stayed_times_3, "draws after the third slice that led nowhere");
#include "queue.bpf.h"
#include "background.bpf.h"
#include "random.bpf.h"

#define PRIORITIES 100
#define DECILE 10
#define STAGE 20

enum variant {
	DESIGN,
	AS_BUILT_64,
	AS_BUILT_32,
};

OPTION(u32, variant, DESIGN, "choice:design,as-built-64,as-built-32", "",
       "rules of the study's text, of its code, or of its code with a 32-bit unsigned long");
OPTION(u32, priority, 99, "0..99", "",
       "priority that tasks begin with, as the user sees it: 99 is the best list");

static __always_inline u32 rank_of(struct task_ctx *t)
{
	return t->prio;
}
#include "ranked.bpf.h"

static __always_inline u32 slice_of(struct task_ctx *t, u8 prio)
{
	if (t->is_background)
		return ticks_of(slice_background_ns);
	return ticks_of(slice_foreground_ns) * (prio / DECILE + 1);
}

static __always_inline void thresholds(u32 stage, u32 times, u32 *low, u32 *high)
{
	const u64 most = 0xffffffffULL;
	u32 l = times + stage, h = 5 + stage - times;

	if (variant == DESIGN) {
		*low = l;
		*high = h;
	} else if (variant == AS_BUILT_64) {
		*low = l * most / 10;
		*high = h * most / 10;
	} else {
		*low = (u32)(l * most) / 10;
		*high = (u32)(h * most) / 10;
	}
}

/* Counts by stage and by slices at the priority: the study's table of probabilities. */
#define count_stage(what, stage)                                                                   \
	({                                                                                         \
		if ((stage) == 0)                                                                  \
			count(what##_stage_0);                                                     \
		else if ((stage) == 1)                                                             \
			count(what##_stage_1);                                                     \
		else if ((stage) == 2)                                                             \
			count(what##_stage_2);                                                     \
		else if ((stage) == 3)                                                             \
			count(what##_stage_3);                                                     \
		else                                                                               \
			count(what##_stage_4);                                                     \
	})
#define count_times(what, times)                                                                   \
	({                                                                                         \
		if ((times) == 1)                                                                  \
			count(what##_times_1);                                                     \
		else if ((times) == 2)                                                             \
			count(what##_times_2);                                                     \
		else if ((times) == 3)                                                             \
			count(what##_times_3);                                                     \
	})

/* The random step, on `cpu`. */
static __always_inline void transit(struct task_ctx *t, s32 cpu)
{
	u32 drawn = variant == DESIGN ? random_below_10(cpu) : random_u64(cpu) >> 32;
	u32 stage = t->prio / STAGE, times = t->times, low, high;

	thresholds(stage, times, &low, &high);
	count_stage(nr_drawn, stage);
	count_times(nr_drawn, times);
	if (drawn < low) {
		if (t->prio >= DECILE)
			t->prio -= DECILE;
		t->times = 1;
		count(nr_promoted);
		count_stage(nr_promoted, stage);
	} else if (drawn > high) {
		if (t->prio < PRIORITIES - DECILE)
			t->prio += DECILE;
		t->times = 1;
		count(nr_demoted);
		count_stage(nr_demoted, stage);
	} else {
		t->times += t->times < 255;
		count(nr_stayed);
		count_times(nr_stayed, times);
	}
}

s32 BPF_STRUCT_OPS(rmlfq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
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

void BPF_STRUCT_OPS(rmlfq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	bool comes, goes_on;
	u64 key;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	comes = arrives(t);
	goes_on = is_interrupted(t);
	new_turn(p, t, SLICE_LONG);
	starts_waiting(p, t);
	key = (u64)t->prio << PLACE_BITS | next_place(cpu, goes_on);
	scx_bpf_dsq_insert_vtime(p, cpu, SLICE_LONG, key, enq_flags);
	if (comes)
		drive_out(cpu, t->prio);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(rmlfq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (is_runnable(prev)) {
		t = task_ctx(prev);
		if (!t)
			return;
		if (is_outranked(cpu, t->prio, t->is_over) && scx_bpf_dsq_move_to_local(cpu)) {
			if (!t->is_over)
				count(nr_driven_out);
			return;
		}
		if (t->is_over && even_out(cpu))
			return;
		if (t->is_over)
			count(nr_continued);
		new_turn(prev, t, SLICE_LONG);
		set_slice(prev, SLICE_LONG);
		return;
	}
	if (!scx_bpf_dsq_move_to_local(cpu))
		take_from_others(cpu);
}

void BPF_STRUCT_OPS(rmlfq_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u8 before;

	if (!t)
		return;
	if (t->ticks_left > 1) {
		t->ticks_left--;
		if (waits_too_long(cpu))
			end_turn(p, t);
		return;
	}
	before = t->prio;
	transit(t, cpu);
	cpu_state(cpu)->rank = t->prio;
	t->ticks_left = slice_of(t, variant == DESIGN ? t->prio : before);
	end_turn(p, t);
}

void BPF_STRUCT_OPS(rmlfq_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		cpu_state(comes(p, t))->rank = p->flags & PF_KTHREAD ? 0 : t->prio;
}

void BPF_STRUCT_OPS(rmlfq_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(rmlfq_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to) {
		if (variant != DESIGN)
			transit(t, scx_bpf_task_cpu(from));
		yields(from, t);
	}
	return false;
}

s32 BPF_STRUCT_OPS(rmlfq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *t = task_ctx_new(p), *parent = parent_ctx(args);

	if (!t)
		return -ENOMEM;
	t->is_background = group_is_background(args->cgroup);
	t->prio = parent ? parent->prio : PRIORITIES - 1 - priority;
	t->times = parent ? parent->times : 1;
	t->ticks_left = parent ? parent->ticks_left : slice_of(t, t->prio);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rmlfq_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	return group_new(cgrp);
}

void BPF_STRUCT_OPS(rmlfq_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		changes_ground(t, group_is_background(to));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rmlfq_init)
{
	s32 error = create_queues();

	streams_begin();
	return error;
}

void BPF_STRUCT_OPS(rmlfq_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(rmlfq_ops,
	       .select_cpu = (void *)rmlfq_select_cpu,
	       .enqueue = (void *)rmlfq_enqueue,
	       .dispatch = (void *)rmlfq_dispatch,
	       .tick = (void *)rmlfq_tick,
	       .running = (void *)rmlfq_running,
	       .stopping = (void *)rmlfq_stopping,
	       .yield = (void *)rmlfq_yield,
	       .init_task = (void *)rmlfq_init_task,
	       .cgroup_init = (void *)rmlfq_cgroup_init,
	       .cgroup_move = (void *)rmlfq_cgroup_move,
	       .init = (void *)rmlfq_init,
	       .exit = (void *)rmlfq_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "rmlfq");
