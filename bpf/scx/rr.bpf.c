/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Round robin: first in, first out, and a quantum. Twin of `rr` in crates/sched/src/rr.rs.
 *
 * A task that has used its quantum goes to the tail; with nobody waiting it goes on with a new one.
 * Who blocks or yields loses the rest; who is interrupted comes back to the head with it. Nice
 * values and priorities do not count.
 *
 * What differs from the model: the model has one queue for all CPUs and ends a quantum at its exact
 * time. Here each CPU has a queue (queue.bpf.h), a quantum ends at a tick, and of two tasks that
 * become ready while a third gives up its CPU at the same instant, the one that gives up is last,
 * because the kernel queues it after it has asked for the next.
 *
 * Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling.
 */
#define TASK_FIELDS
#define COUNTERS
#include "queue.bpf.h"

OPTION(u64, quantum_ns, 100000000, "100us..3600s", "slice",
       "longest stay on a CPU while others wait");

s32 BPF_STRUCT_OPS(rr_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		new_turn(p, t, quantum_ns);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, t->left_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(rr_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool goes_on;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	goes_on = is_interrupted(t);
	if (!goes_on)
		new_turn(p, t, quantum_ns);
	starts_waiting(p, t);
	scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), t->left_ns,
			   goes_on ? enq_flags | SCX_ENQ_HEAD : enq_flags);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(rr_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (is_runnable(prev)) {
		if (even_out(cpu) || scx_bpf_dsq_move_to_local(cpu))
			return;
		t = task_ctx(prev);
		if (t) {
			new_turn(prev, t, quantum_ns);
			set_slice(prev, quantum_ns);
			count(nr_continued);
		}
		return;
	}
	if (!scx_bpf_dsq_move_to_local(cpu))
		take_from_others(cpu);
}

void BPF_STRUCT_OPS(rr_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	charge(p, t);
	if (ends_now(t->left_ns) || waits_too_long(scx_bpf_task_cpu(p)))
		end_turn(p, t);
}

void BPF_STRUCT_OPS(rr_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		comes(p, t);
}

void BPF_STRUCT_OPS(rr_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(rr_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to)
		yields(from, t);
	return false;
}

s32 BPF_STRUCT_OPS(rr_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return task_ctx_new(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rr_init)
{
	return create_queues();
}

void BPF_STRUCT_OPS(rr_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(rr_ops,
	       .select_cpu = (void *)rr_select_cpu,
	       .enqueue = (void *)rr_enqueue,
	       .dispatch = (void *)rr_dispatch,
	       .tick = (void *)rr_tick,
	       .running = (void *)rr_running,
	       .stopping = (void *)rr_stopping,
	       .yield = (void *)rr_yield,
	       .init_task = (void *)rr_init_task,
	       .init = (void *)rr_init,
	       .exit = (void *)rr_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "rr");
