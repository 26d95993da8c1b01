/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Weighted virtual time. Twin of `vtime` in crates/sched/src/vtime.rs.
 *
 * Each task has a virtual time, which grows by what it runs, times 100 / its weight (100 at nice 0,
 * 8668 at nice -20, 1 at nice 19). The one that is furthest behind runs next, for a slice. A task
 * that slept is put at most one slice behind the clock of its CPU, so that it cannot save up. The
 * clock of a CPU is the greatest virtual time of any task that has started to run there.
 *
 * What is peculiar: the kernel asks for the next task before it queues the one that leaves, so with
 * exactly two tasks that always run on a CPU they take turns whatever their weights; weights count
 * from three tasks on. The scx_simple of the kernel does the same, and so does the model.
 *
 * Unlike the others here it has no ops.tick: the slice it asks for is half a tick shorter than the
 * turn, and so the kernel itself ends it at the tick nearest to the turn's length. Who waits too
 * long is looked for when turns end.
 *
 * What differs from the model: a slice ends at the nearest tick, the model's at its exact time. A
 * task that goes on alone is charged and moves the clock with it (scx_simple forgets what ran
 * before its last slice, and wraps when a slice is longer than the kernel's default).
 */
#define TASK_FIELDS                                                                                \
	u64 vtime;  /* virtual time, ns */                                                         \
	u64 ran_ns; /* what it ran and has not been charged in virtual time */
#define COUNTERS COUNTER(nr_clamped, "sleepers whose virtual time was moved up to the clock's");
#include "queue.bpf.h"

OPTION(u64, slice_ns, 20000000, "100us..10s", "quantum", "longest stay on a CPU while others wait");

/* Clock of each CPU, in virtual time. */
u64 clocks[NR_CPUS_MAX];

static __always_inline u64 *clock_of(s32 cpu)
{
	return &clocks[(u32)cpu & (NR_CPUS_MAX - 1)];
}

/* The slice that the kernel ends at the tick nearest to the end of the turn. */
static __always_inline u64 slice_of(struct task_ctx *t)
{
	return ends_now(t->left_ns) ? 1 : t->left_ns - tick_ns / 2;
}

static __always_inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Virtual time on one CPU means nothing on another: the distance from the clock does. */
static __always_inline void move_to(struct task_ctx *t, s32 cpu)
{
	if (t->cpu != cpu)
		t->vtime += *clock_of(cpu) - *clock_of(t->cpu);
	t->cpu = cpu;
}

static __always_inline void charge_vtime(struct task_struct *p, struct task_ctx *t)
{
	t->vtime += t->ran_ns * 100 / (p->scx.weight ? p->scx.weight : 1);
	t->ran_ns = 0;
}

static __always_inline void advance(struct task_ctx *t)
{
	u64 *clock = clock_of(t->cpu);

	if (before(*clock, t->vtime))
		*clock = t->vtime;
}

s32 BPF_STRUCT_OPS(vtime_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		new_turn(p, t, slice_ns);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(t), 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(vtime_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 oldest;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	if (!is_interrupted(t))
		new_turn(p, t, slice_ns);
	move_to(t, cpu);
	oldest = *clock_of(cpu) - slice_ns;
	if (before(t->vtime, oldest)) {
		t->vtime = oldest;
		count(nr_clamped);
	}
	starts_waiting(p, t);
	scx_bpf_dsq_insert_vtime(p, cpu, slice_of(t), t->vtime, enq_flags);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(vtime_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (waits_too_long(cpu) && rescue(cpu))
		return;
	if (is_runnable(prev)) {
		if (even_out(cpu) || scx_bpf_dsq_move_to_local(cpu))
			return;
		t = task_ctx(prev);
		if (t) {
			t->ran_ns += charge(prev, t);
			charge_vtime(prev, t);
			advance(t);
			new_turn(prev, t, slice_ns);
			set_slice(prev, slice_of(t));
			count(nr_continued);
		}
		return;
	}
	if (!scx_bpf_dsq_move_to_local(cpu))
		take_from_others(cpu);
}

void BPF_STRUCT_OPS(vtime_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t)
		return;
	move_to(t, cpu);
	comes_to(cpu, p, t);
	t->ran_ns = 0;
	advance(t);
}

void BPF_STRUCT_OPS(vtime_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	t->ran_ns += charge(p, t);
	charge_vtime(p, t);
	t->is_over |= ends_now(t->left_ns);
	leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(vtime_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to)
		yields(from, t);
	return false;
}

s32 BPF_STRUCT_OPS(vtime_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return task_ctx_new(p) ? 0 : -ENOMEM;
}

void BPF_STRUCT_OPS(vtime_enable, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t) {
		t->cpu = scx_bpf_task_cpu(p);
		t->vtime = *clock_of(t->cpu);
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(vtime_init)
{
	return create_queues();
}

void BPF_STRUCT_OPS(vtime_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(vtime_ops,
	       .select_cpu = (void *)vtime_select_cpu,
	       .enqueue = (void *)vtime_enqueue,
	       .dispatch = (void *)vtime_dispatch,
	       .running = (void *)vtime_running,
	       .stopping = (void *)vtime_stopping,
	       .yield = (void *)vtime_yield,
	       .init_task = (void *)vtime_init_task,
	       .enable = (void *)vtime_enable,
	       .init = (void *)vtime_init,
	       .exit = (void *)vtime_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "vtime");
