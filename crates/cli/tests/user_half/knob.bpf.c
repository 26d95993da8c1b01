/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First come, first served, with a slice that the user program (tuner.c) sets while it runs. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "Dual MIT/GPL";

/* Written by the user program. */
u64 slice_knob;
/* What the user program has counted: its looks, and the sum of what it read. */
u64 nr_looks;
u64 nr_seen;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} enqueued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__type(value, u32);
} advice SEC(".maps");

/* Advice that arrived. */
u64 nr_advised;

void BPF_STRUCT_OPS(knob_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 0, pid;
	u64 *count = bpf_map_lookup_elem(&enqueued, &key);

	if (count)
		(*count)++;
	if (!bpf_map_pop_elem(&advice, &pid))
		nr_advised++;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_knob ?: SCX_SLICE_DFL, enq_flags);
}

SEC("syscall")
int double_knob(u64 *context)
{
	slice_knob *= *context;
	*context = slice_knob;
	return 7;
}

SEC(".struct_ops.link")
struct sched_ext_ops knob_ops = {
	.enqueue = (void *)knob_enqueue,
	.name = "knob",
};
