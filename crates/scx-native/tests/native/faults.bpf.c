// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Everything that a verifier would have kept from happening, by option. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

enum what {
	NOTHING, NULL_POINTER, WILD_POINTER, DIVISION, ENDLESS, RECURSION, ABSENT, UNLOCK, BAD_KEY,
	BAD_TASK, NULL_CALL, DOUBLE_DROP, TIMER_FAULT, ENDLESS_HELPER,
};

const volatile enum what what = NOTHING;

/* BPF defines divisions by zero: 0, and the dividend as the remainder. */
#define DIVIDE(type, a, op, b, answer)                                  \
	({                                                              \
		volatile type ___a = (a), ___b = (b), ___answer = ___a op ___b; \
		if (___answer != (type)(answer))                        \
			scx_bpf_error(#a " " #op " " #b " is %lld", (s64)___answer); \
	})

static void divide(void)
{
	DIVIDE(u64, 7, /, 0, 0);
	DIVIDE(u64, 7, %, 0, 7);
	DIVIDE(s64, -7, /, 0, 0);
	DIVIDE(s64, -7, %, 0, -7);
	DIVIDE(u32, 7, /, 0, 0);
	DIVIDE(u32, 7, %, 0, 7);
	DIVIDE(u16, 7, %, 0, 7);
	DIVIDE(u8, 7, %, 0, 7);
	DIVIDE(s64, 1LL << 63, /, -1, 1LL << 63);
	DIVIDE(s64, 1LL << 63, %, -1, 0);
	DIVIDE(s32, 1 << 31, /, -1, 1 << 31);
}

void scx_bpf_teleport(struct task_struct *p) __ksym __weak;

static struct bpf_spin_lock lock;
static volatile u32 zero;
static u64 (*volatile nowhere)(void);

struct thing {
	u64 value;
};

struct holder {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct holder);
} timers SEC(".maps");

static int on_timer(void *map, u32 *key, struct bpf_timer *timer)
{
	*(volatile u64 *)8 = 1;
	return 0;
}

static __noinline u64 recurse(u64 depth)
{
	volatile char room[4096];

	room[0] = depth;
	return recurse(depth + 1) + room[0];
}

static void __noinline do_fault(struct task_struct *p)
{
	u32 key = 0;
	struct holder *holder;
	struct thing *thing;

	switch (what) {
	case NULL_POINTER:
		((struct task_struct *)(unsigned long)zero)->scx.slice = 1;
		break;
	case WILD_POINTER:
		*(volatile u64 *)0x123456789000 = 1;
		break;
	case DIVISION:
		divide();
		break;
	case ENDLESS:
		while (!zero)
			;
		break;
	case ENDLESS_HELPER:
		while (!zero)
			bpf_map_lookup_elem(&timers, &key);
		break;
	case RECURSION:
		p->scx.slice = recurse(1);
		break;
	case ABSENT:
		scx_bpf_teleport(p);
		break;
	case UNLOCK:
		bpf_printk("before unlocking %d", 7);
		bpf_spin_unlock(&lock);
		break;
	case BAD_KEY:
		if (bpf_map_lookup_elem(&timers, (void *)16))
			p->scx.slice = 1;
		break;
	case BAD_TASK:
		scx_bpf_task_cpu((void *)&lock);
		break;
	case NULL_CALL:
		nowhere();
		break;
	case DOUBLE_DROP:
		thing = bpf_obj_new(struct thing);
		bpf_obj_drop(thing);
		bpf_obj_drop(thing);
		break;
	case TIMER_FAULT:
		holder = bpf_map_lookup_elem(&timers, &key);
		if (holder && !bpf_timer_init(&holder->timer, &timers, CLOCK_MONOTONIC)) {
			bpf_timer_set_callback(&holder->timer, on_timer);
			bpf_timer_start(&holder->timer, 1000000, 0);
		}
		break;
	default:
		break;
	}
}

void BPF_STRUCT_OPS(faults_enqueue, struct task_struct *p, u64 enq_flags)
{
	do_fault(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(faults_ops, .enqueue = (void *)faults_enqueue, .name = "faults");
