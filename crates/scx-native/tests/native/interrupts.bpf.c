// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A scheduler that checks which of its callbacks are part of an interrupt: ticks, timers, and
 * wake-ups by a timer are, those by a task are not. `parent` is woken by its child, `sleeper` by a
 * timer.
 */
#include <scx/common.bpf.h>
#include "check.bpf.h"

char _license[] SEC("license") = "GPL";

#ifndef bpf_target_x86
#error "schedulers that ask for the architecture would not ask for interrupts"
#endif

enum { SOFTIRQ = 1 << 8, HARDIRQ = 1 << 16 };

extern const int __preempt_count __ksym __weak;

struct place {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct place);
} timers SEC(".maps");

u64 nr_from_task, nr_from_timer, nr_ticks, nr_expired;

static int interrupts(void)
{
	if (!bpf_ksym_exists(&__preempt_count))
		return -1;
	return *(int *)bpf_this_cpu_ptr(&__preempt_count) & (SOFTIRQ | HARDIRQ);
}

s32 BPF_STRUCT_OPS(interrupts_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	if (p->comm[0] == 's')
		CHECK(interrupts() == HARDIRQ);
	return prev_cpu;
}

void BPF_STRUCT_OPS(interrupts_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_first = !p->scx.dsq_vtime;

	p->scx.dsq_vtime = 1;
	if (!(enq_flags & SCX_ENQ_WAKEUP)) {
		CHECK(interrupts() == 0);
	} else if (p->comm[0] == 's') {
		CHECK(interrupts() == HARDIRQ);
		nr_from_timer++;
	} else if (p->comm[0] == 'p' && !is_first) {
		CHECK(interrupts() == 0);
		nr_from_task++;
	}
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(interrupts_dispatch, s32 cpu, struct task_struct *prev)
{
	CHECK(interrupts() == 0);
}

void BPF_STRUCT_OPS(interrupts_tick, struct task_struct *p)
{
	CHECK(interrupts() == HARDIRQ);
	nr_ticks++;
}

static int expired(void *map, int *key, struct place *place)
{
	CHECK(interrupts() == SOFTIRQ);
	nr_expired++;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(interrupts_init)
{
	u32 zero = 0;
	struct place *place = bpf_map_lookup_elem(&timers, &zero);

	if (!place)
		return -1;
	CHECK(interrupts() == 0);
	bpf_timer_init(&place->timer, &timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&place->timer, expired);
	return bpf_timer_start(&place->timer, 7 * 1000 * 1000, 0);
}

SCX_OPS_DEFINE(interrupts_ops,
	       .select_cpu = (void *)interrupts_select_cpu,
	       .enqueue = (void *)interrupts_enqueue,
	       .dispatch = (void *)interrupts_dispatch,
	       .tick = (void *)interrupts_tick,
	       .init = (void *)interrupts_init,
	       .name = "interrupts");
