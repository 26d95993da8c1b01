/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: reads a task after it has given its reference back. The verifier refuses to load
 * it; in a kernel the memory may be another task's by then.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

void BPF_STRUCT_OPS(use_after_release_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_struct *leader = bpf_task_from_pid(p->tgid);
	u64 slice = 5 * NSEC_PER_MSEC;

	if (leader) {
		bpf_task_release(leader);
		if (leader->static_prio > 120)
			slice = NSEC_PER_MSEC;
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, enq_flags);
}

void BPF_STRUCT_OPS(use_after_release_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(use_after_release_ops,
	       .enqueue = (void *)use_after_release_enqueue,
	       .exit = (void *)use_after_release_exit,
	       .name = "use_after_release");

char _license[] SEC("license") = "Dual MIT/GPL";
