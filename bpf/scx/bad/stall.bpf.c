/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: keeps user tasks and never gives them back. The kernel's watchdog ejects it after
 * timeout_ms ("runnable task stall"), and the tasks go on under the kernel's own class.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

void BPF_STRUCT_OPS(stall_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->flags & PF_KTHREAD)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(stall_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(stall_ops,
	       .enqueue = (void *)stall_enqueue,
	       .exit = (void *)stall_exit,
	       .timeout_ms = 1000,
	       .name = "stall");

char _license[] SEC("license") = "Dual MIT/GPL";
