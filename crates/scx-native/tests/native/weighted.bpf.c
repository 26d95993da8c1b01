// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Weighted virtual time in one shared queue: what most schedulers begin with. Also the subject of
 * the tests of options.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile bool fifo;
const volatile u64 slice_ns = 5000000;
const volatile u32 nr_cpu_ids = 1;
enum mode { PLAIN, FANCY };
const volatile enum mode mode = PLAIN;
const volatile u32 table[4] = { 1, 2, 3, 4 };

enum { SHARED = 0 };

static u64 vtime_now;
u64 nr_enqueued, nr_dispatched;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} stats SEC(".maps");

UEI_DEFINE(uei);

static void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&stats, &which);

	if (counter)
		(*counter)++;
}

s32 BPF_STRUCT_OPS(weighted_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle) {
		count(0);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(weighted_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	count(1);
	nr_enqueued++;
	if (fifo) {
		scx_bpf_dsq_insert(p, SHARED, slice_ns, enq_flags);
		return;
	}
	if (time_before(vtime, vtime_now - slice_ns))
		vtime = vtime_now - slice_ns;
	scx_bpf_dsq_insert_vtime(p, SHARED, slice_ns, vtime, enq_flags);
}

void BPF_STRUCT_OPS(weighted_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(SHARED))
		nr_dispatched++;
}

void BPF_STRUCT_OPS(weighted_running, struct task_struct *p)
{
	if (time_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(weighted_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (slice_ns - p->scx.slice) * 100 / p->scx.weight;
}

void BPF_STRUCT_OPS(weighted_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(weighted_init)
{
	if (nr_cpu_ids != scx_bpf_nr_cpu_ids())
		scx_bpf_error("nr_cpu_ids was not filled in: %u", nr_cpu_ids);
	return scx_bpf_create_dsq(SHARED, -1);
}

void BPF_STRUCT_OPS(weighted_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(weighted_ops,
	       .select_cpu = (void *)weighted_select_cpu,
	       .enqueue = (void *)weighted_enqueue,
	       .dispatch = (void *)weighted_dispatch,
	       .running = (void *)weighted_running,
	       .stopping = (void *)weighted_stopping,
	       .enable = (void *)weighted_enable,
	       .init = (void *)weighted_init,
	       .exit = (void *)weighted_exit,
	       .name = "weighted");
