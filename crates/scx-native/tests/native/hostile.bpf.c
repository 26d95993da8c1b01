// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Accesses of memory that is not the scheduler's, or not of the object that it means, by option. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

enum what {
	NOTHING, ARRAY, ARRAY_NEXT, ARRAY_FAR, PERCPU, HASH, STORAGE, GLOBAL, STATIC, LOCAL, LOCAL_READ,
	PLAIN_RECURSION, RECURSION_WITH_CALLS, STALE_TASK, STALE_OBJECT, OBJECT, ARENA,
	OTHER_TASK, RETURN_ADDRESS, WILD_CALL, HELPER, COPY, UNCHECKED, ADDRESS_SPACE, RETURNED,
	ERROR, MISUSE, BARRIER, BARRIER_FAR,
};

const volatile enum what what = NOTHING;

struct value {
	u64 words[2];
	u32 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct value);
} array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} percpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct value);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct value);
} storage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
} arena SEC(".maps");

void *bpf_arena_alloc_pages(void *map, void *addr, __u32 page_cnt, int node_id, __u64 flags) __ksym;

u64 global[4];
u64 neighbour[4];
static u8 bytes[13];

static struct task_struct *kept;

struct thing {
	u64 value;
};

static struct thing *thing;

/* The compiler must not see where these lead. */
static volatile u64 four = 4, three = 3, far = 1 << 20;
static u64 (*volatile function)(u64);

static __noinline u64 recurse(u64 depth)
{
	return recurse(depth + four) * depth + four;
}

static __noinline u64 recurse_with_calls(u64 depth)
{
	return recurse_with_calls(depth + scx_bpf_nr_cpu_ids()) * depth + four;
}

static __noinline void set(u64 *at, u64 index)
{
	at[index] = 1;
}

static __noinline u64 *local_of_another(void)
{
	u64 room[4] = { four };

	set(room, three);
	return (u64 *)(unsigned long)((u64)room + four - four);
}

__attribute__((no_sanitize("address"), __no_sanitize__("address")))
static __noinline void unchecked(u64 *at)
{
	at[four] = 1;
}

/* With a barrier, as bpf_for() has one, the variable is on the stack. */
static __noinline u64 with_barrier(u64 index)
{
	u64 room[4] = { four };

	barrier_var(index);
	set(room, index);
	return room[index & 3];
}

typedef u64 __attribute__((address_space(1))) elsewhere;

static void __noinline do_it(struct task_struct *p)
{
	u32 zero = 0, key = 7;
	struct value fresh = {}, *value;
	u64 room[4] = {}, *at;

	switch (what) {
	case ARRAY:
		value = bpf_map_lookup_elem(&array, &zero);
		set((u64 *)value, three);
		break;
	case ARRAY_NEXT:
		value = bpf_map_lookup_elem(&array, &zero);
		set((u64 *)value, four * four + four * three);
		break;
	case ARRAY_FAR:
		value = bpf_map_lookup_elem(&array, &zero);
		set((u64 *)value, far);
		break;
	case PERCPU:
		at = bpf_map_lookup_elem(&percpu, &zero);
		set(at, four - three);
		break;
	case HASH:
		bpf_map_update_elem(&hash, &key, &fresh, 0);
		value = bpf_map_lookup_elem(&hash, &key);
		set((u64 *)value, three);
		break;
	case STORAGE:
		value = bpf_task_storage_get(&storage, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		set((u64 *)value, four);
		break;
	case GLOBAL:
		set(global, four);
		break;
	case STATIC:
		bytes[four + four + four] = 1;
		bytes[four + four + four + 1] = 1;
		p->scx.slice = bytes[four];
		break;
	case LOCAL:
		set(room, four);
		p->scx.slice = room[0];
		break;
	case LOCAL_READ:
		set(room, three);
		p->scx.slice = room[four + three];
		break;
	case PLAIN_RECURSION:
		p->scx.slice = recurse(1);
		break;
	case RECURSION_WITH_CALLS:
		p->scx.slice = recurse_with_calls(1);
		break;
	case STALE_TASK:
		if (kept)
			kept->scx.slice = 1;
		break;
	case STALE_OBJECT:
		if (thing)
			thing->value = 1;
		else if ((thing = bpf_obj_new(struct thing)))
			bpf_obj_drop(thing);
		break;
	case OBJECT:
		thing = bpf_obj_new(struct thing);
		if (thing)
			set(&thing->value, four);
		break;
	case ARENA:
		at = bpf_arena_alloc_pages(&arena, NULL, 4, -1, 0);
		set(at, 4 * 4096 / 8 - 1);
		set(at, four * 4096 / 8);
		break;
	case OTHER_TASK:
		set((u64 *)p, (sizeof(*p) + 7) / 8 + three - three);
		break;
	case RETURN_ADDRESS:
		set(__builtin_frame_address(0), 1);
		break;
	case WILD_CALL:
		function = (void *)0x123456789000;
		function(1);
		break;
	case HELPER:
		bpf_probe_read_kernel(__builtin_frame_address(0), 8, p);
		break;
	case COPY:
		__builtin_memcpy(room, p, four * four * four);
		p->scx.slice = room[0];
		break;
	case UNCHECKED:
		unchecked(global);
		break;
	case ADDRESS_SPACE:
		((elsewhere *)global)[four] = 1;
		break;
	case RETURNED:
		set(local_of_another(), three);
		break;
	case BARRIER:
		p->scx.slice = with_barrier(three) + SCX_SLICE_DFL;
		break;
	case BARRIER_FAR:
		p->scx.slice = with_barrier(four);
		break;
	case ERROR:
		scx_bpf_error("no more");
		break;
	case MISUSE:
		scx_bpf_dsq_insert(p, 77, 1, 0);
		break;
	default:
		break;
	}
}

void BPF_STRUCT_OPS(hostile_enqueue, struct task_struct *p, u64 enq_flags)
{
	do_it(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(hostile_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	if (!args->cancelled)
		kept = p;
}

SCX_OPS_DEFINE(hostile_ops, .enqueue = (void *)hostile_enqueue,
	       .exit_task = (void *)hostile_exit_task, .name = "hostile");
