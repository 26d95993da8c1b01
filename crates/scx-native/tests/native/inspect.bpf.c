// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Maps of every kind, variables and lines of bpf_printk(), for the tests that look at them. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

enum mode { PLAIN, FANCY };
struct inner { u32 low : 4, high : 12; bool seen; enum mode mode; };
struct task_ctx { u64 nr_runs; struct inner in; char name[16]; struct task_struct *self; };
struct key { u32 pid; u16 kind; u16 pad; };

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} tasks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct key);
	__type(value, u64);
} runs SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} stats SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 100);
	__type(key, u32);
	__type(value, s32);
} counts SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4);
	__type(value, u32);
} last SEC(".maps");

const volatile u64 slice_ns = 5000000;
const volatile bool crash;
u64 nr_enqueued;
s32 balance = -3;
char title[8] = "ab\"c";
struct task_struct *nobody;
enum mode now_mode;

void BPF_STRUCT_OPS(inspect_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 one = 1, index = 7, pid = p->pid;
	struct key key = { .pid = p->pid, .kind = 2 };
	struct task_ctx *tc = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 *value, first = 1;
	s32 *count;

	nr_enqueued++;
	balance--;
	if (crash && nr_enqueued > 3)
		*(volatile u64 *)8 = 1;
	now_mode = FANCY;
	if (tc) {
		tc->nr_runs++;
		tc->in.low = 5;
		tc->in.high = 0x123;
		tc->in.seen = true;
		tc->in.mode = FANCY;
		bpf_probe_read_kernel_str(tc->name, sizeof(tc->name), p->comm);
		tc->self = p;
	}
	value = bpf_map_lookup_elem(&runs, &key);
	if (value)
		(*value)++;
	else
		bpf_map_update_elem(&runs, &key, &first, 0);
	value = bpf_map_lookup_elem(&stats, &one);
	if (value)
		(*value)++;
	count = bpf_map_lookup_elem(&counts, &index);
	if (count)
		(*count)--;
	bpf_map_push_elem(&last, &pid, BPF_EXIST);
	bpf_printk("enqueue %s pid %d flags %llx vtime %llu", p->comm, p->pid, enq_flags,
		   p->scx.dsq_vtime);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
}

void BPF_STRUCT_OPS(inspect_tick, struct task_struct *p)
{
	bpf_printk("\033[31mtick\n  fake-1 [000] line %p %5d|%-5d|%#x", p, 3, -4, 255);
}

SCX_OPS_DEFINE(inspect_ops,
	       .enqueue = (void *)inspect_enqueue,
	       .tick = (void *)inspect_tick,
	       .name = "inspect");
