/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: writes to an array at an index that nothing bounds. The verifier refuses to load
 * it; in a simulator the write may reach another variable of the scheduler.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

u64 nr_enqueued[16];

void BPF_STRUCT_OPS(out_of_bounds_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueued[p->pid]++;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(out_of_bounds_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(out_of_bounds_ops,
	       .enqueue = (void *)out_of_bounds_enqueue,
	       .exit = (void *)out_of_bounds_exit,
	       .name = "out_of_bounds");

char _license[] SEC("license") = "Dual MIT/GPL";
