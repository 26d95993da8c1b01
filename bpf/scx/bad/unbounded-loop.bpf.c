/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: a loop that ends, but as late as a task's number says. The verifier follows every
 * round, and gives up at its limit.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

u64 sum;

void BPF_STRUCT_OPS(unbounded_loop_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 round, total = 0;

	for (round = 0; round < (u64)p->pid << 20; round++)
		total += round ^ total << 1;
	sum = total;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(unbounded_loop_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(unbounded_loop_ops,
	       .enqueue = (void *)unbounded_loop_enqueue,
	       .exit = (void *)unbounded_loop_exit,
	       .name = "unbounded_loop");

char _license[] SEC("license") = "Dual MIT/GPL";
