/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: never leaves ops.enqueue. The verifier refuses to load it; in a simulator, which
 * has no verifier, the loop must be found when it runs.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

u64 always = 1;

void BPF_STRUCT_OPS(endless_loop_enqueue, struct task_struct *p, u64 enq_flags)
{
	while (*(volatile u64 *)&always)
		;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(endless_loop_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(endless_loop_ops,
	       .enqueue = (void *)endless_loop_enqueue,
	       .exit = (void *)endless_loop_exit,
	       .name = "endless_loop");

char _license[] SEC("license") = "Dual MIT/GPL";
