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

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
} orders SEC(".maps");

/* Records for the user program, and the sum of those that it wrote. */
u64 nr_events;
u64 nr_orders;

static long take_order(struct bpf_dynptr *order, void *context)
{
	u64 value = 0;

	bpf_dynptr_read(&value, sizeof(value), order, 0, 0);
	nr_orders += value;
	return 0;
}

static void tell(u64 count)
{
	u64 *event;

	if (count % 64)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		*event = ++nr_events;
		bpf_ringbuf_submit(event, 0);
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event)
		bpf_ringbuf_discard(event, 0);
}

void BPF_STRUCT_OPS(knob_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 0, pid;
	u64 *count = bpf_map_lookup_elem(&enqueued, &key);

	if (count)
		tell(++*count);
	bpf_user_ringbuf_drain(&orders, take_order, NULL, 0);
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
