// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A scheduler that checks what a forked task is called: as its parent, `boss`, until it runs, and
 * `errand-0`, `errand-1`, ... from its first instructions on.
 */
#include <scx/common.bpf.h>
#include "check.bpf.h"

char _license[] SEC("license") = "GPL";

u64 nr_inherited, nr_own;
s32 boss;

/* Whether a forked task has run is in its `dsq_vtime`, which this scheduler does not use. */
static void check(struct task_struct *p)
{
	if (p->pid == boss)
		CHECK(p->comm[0] == 'b');
	else if (p->scx.dsq_vtime)
		CHECK(p->comm[0] == 'e' && p->comm[7]);
	else
		CHECK(p->comm[0] == 'b' && !p->comm[4]);
}

s32 BPF_STRUCT_OPS(names_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!boss)
		boss = p->pid;
	check(p);
	return 0;
}

void BPF_STRUCT_OPS(names_enqueue, struct task_struct *p, u64 enq_flags)
{
	check(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(names_running, struct task_struct *p)
{
	check(p);
	if (p->pid != boss && !p->scx.dsq_vtime) {
		nr_inherited++;
		p->scx.dsq_vtime = 1;
	}
}

void BPF_STRUCT_OPS(names_tick, struct task_struct *p)
{
	char comm[16];

	check(p);
	bpf_get_current_comm(comm, sizeof(comm));
	CHECK(comm[0] == p->comm[0]);
}

void BPF_STRUCT_OPS(names_stopping, struct task_struct *p, bool runnable)
{
	check(p);
	if (p->pid != boss)
		nr_own++;
}

SCX_OPS_DEFINE(names_ops,
	       .init_task = (void *)names_init_task,
	       .enqueue = (void *)names_enqueue,
	       .running = (void *)names_running,
	       .tick = (void *)names_tick,
	       .stopping = (void *)names_stopping,
	       .name = "names");
