/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: puts tasks into a DSQ that nobody has created. The kernel ejects it at the first
 * task ("runtime error": a DSQ that does not exist).
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

void BPF_STRUCT_OPS(missing_dsq_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, 42, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(missing_dsq_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(missing_dsq_ops,
	       .enqueue = (void *)missing_dsq_enqueue,
	       .exit = (void *)missing_dsq_exit,
	       .name = "missing_dsq");

char _license[] SEC("license") = "Dual MIT/GPL";
