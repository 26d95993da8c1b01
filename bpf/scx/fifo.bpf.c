/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * First come, first served: no preemption. Twin of `fcfs` in crates/sched/src/fcfs.rs.
 *
 * A task runs until it blocks or yields; then it comes to the tail when it is ready again. Nice
 * values and priorities do not count.
 *
 * What differs from the model: the model has one queue for all CPUs, here each has its own
 * (queue.bpf.h). And a task that has waited for wait_max_ns is next: without that the kernel ejects
 * the scheduler as soon as a CPU hog keeps another task waiting for 30 s.
 *
 * Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling.
 */
#define TASK_FIELDS
#define COUNTERS
#include "queue.bpf.h"

s32 BPF_STRUCT_OPS(fifo_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		new_turn(p, t, SLICE_LONG);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, t->left_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool goes_on;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	goes_on = is_interrupted(t);
	if (!goes_on)
		new_turn(p, t, SLICE_LONG);
	starts_waiting(p, t);
	scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), t->left_ns,
			   goes_on ? enq_flags | SCX_ENQ_HEAD : enq_flags);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (is_runnable(prev)) {
		if (scx_bpf_dsq_move_to_local(cpu))
			return;
		t = task_ctx(prev);
		if (t) {
			new_turn(prev, t, SLICE_LONG);
			set_slice(prev, SLICE_LONG);
		}
		return;
	}
	if (!scx_bpf_dsq_move_to_local(cpu))
		take_from_others(cpu);
}

void BPF_STRUCT_OPS(fifo_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	if (waits_too_long(scx_bpf_task_cpu(p)))
		end_turn(p, t);
}

void BPF_STRUCT_OPS(fifo_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		comes(p, t);
}

void BPF_STRUCT_OPS(fifo_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(fifo_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to)
		yields(from, t);
	return false;
}

s32 BPF_STRUCT_OPS(fifo_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return task_ctx_new(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(fifo_init)
{
	return create_queues();
}

void BPF_STRUCT_OPS(fifo_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(fifo_ops,
	       .select_cpu = (void *)fifo_select_cpu,
	       .enqueue = (void *)fifo_enqueue,
	       .dispatch = (void *)fifo_dispatch,
	       .tick = (void *)fifo_tick,
	       .running = (void *)fifo_running,
	       .stopping = (void *)fifo_stopping,
	       .yield = (void *)fifo_yield,
	       .init_task = (void *)fifo_init_task,
	       .init = (void *)fifo_init,
	       .exit = (void *)fifo_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "fifo");
