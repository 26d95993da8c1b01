/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Made to fail: uses what a map lookup gives without asking whether it gave anything. The verifier
 * refuses to load it; in a simulator the access through NULL must become an error of the run.
 */
#include "scx.bpf.h"

UEI_DEFINE(uei);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

void BPF_STRUCT_OPS(rejected_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = p->pid;
	u64 *nr = bpf_map_lookup_elem(&counts, &key);

	*nr += 1;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 5 * NSEC_PER_MSEC, enq_flags);
}

void BPF_STRUCT_OPS(rejected_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(rejected_ops,
	       .enqueue = (void *)rejected_enqueue,
	       .exit = (void *)rejected_exit,
	       .name = "rejected");

char _license[] SEC("license") = "Dual MIT/GPL";
