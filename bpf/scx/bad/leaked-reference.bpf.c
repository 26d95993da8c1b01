/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: takes a reference to a task and keeps it on one path. The verifier refuses to load
 * it; a kernel would never free that task.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

u64 nr_own;

void BPF_STRUCT_OPS(leaked_reference_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_struct *leader = bpf_task_from_pid(p->tgid);

	if (leader && leader->pid != p->pid) {
		bpf_task_release(leader);
		nr_own++;
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(leaked_reference_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(leaked_reference_ops,
	       .enqueue = (void *)leaked_reference_enqueue,
	       .exit = (void *)leaked_reference_exit,
	       .name = "leaked_reference");

char _license[] SEC("license") = "Dual MIT/GPL";
