// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A scheduler that checks what it is offered: maps, trees, lists, masks, objects, timers, walks,
 * text, storage, questions about the kernel. What is wrong is an scx_bpf_error with its line.
 */
#include <scx/common.bpf.h>
#include "check.bpf.h"

char _license[] SEC("license") = "GPL";

enum { QUEUE_DSQ = 7 };

struct item {
	struct bpf_rb_node node;
	struct bpf_list_node link;
	u64 key, nr;
};

struct place {
	struct item __kptr *item;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, u64);
	__type(value, struct place);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 3);
	__type(value, u32);
} queue SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u32);
} first SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [0] = &first } };

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} storage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} group_storage SEC(".maps");

private(TREE) struct bpf_spin_lock lock;
private(TREE) struct bpf_rb_root tree __contains(item, node);
private(TREE) struct bpf_list_head list __contains(item, link);

u64 nr_fired;
u64 RESIZABLE_ARRAY(data, per_cpu);
const volatile u32 nr_cpu_ids = 1;

static bool less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return container_of(a, struct item, node)->key <
	       container_of(b, struct item, node)->key;
}

static void check_tree(void)
{
	u32 seed = 1, i;
	u64 last = 0, nr = 0;

	bpf_spin_lock(&lock);
	bpf_for(i, 0, 100) {
		struct item *item = bpf_obj_new(struct item);

		seed = seed * 1103515245 + 12345;
		item->key = seed >> 16 & 15;
		item->nr = i;
		bpf_rbtree_add(&tree, &item->node, less);
	}
	bpf_repeat(200) {
		struct bpf_rb_node *node = bpf_rbtree_first(&tree);
		struct item *item;

		if (!node)
			break;
		node = bpf_rbtree_remove(&tree, node);
		item = container_of(node, struct item, node);
		CHECK(item->key * 1000 + item->nr >= last);
		last = item->key * 1000 + item->nr;
		nr++;
		bpf_obj_drop(item);
	}
	bpf_spin_unlock(&lock);
	CHECK(nr == 100);
	CHECK(!bpf_rbtree_first(&tree));
}

static void check_list(void)
{
	struct item *a = bpf_obj_new(struct item), *b = bpf_obj_new(struct item);

	bpf_list_push_back(&list, &a->link);
	bpf_list_push_front(&list, &b->link);
	CHECK(bpf_list_push_back(&list, &a->link) == -EINVAL);
	CHECK(bpf_list_pop_front(&list) == &b->link);
	CHECK(bpf_list_pop_back(&list) == &a->link);
	CHECK(!bpf_list_pop_back(&list));
	bpf_obj_drop(a);
	bpf_obj_drop(b);
}

static void check_maps(void)
{
	u64 key = 5, other = 6, third = 7;
	u32 index = 0, value, *slot;
	struct place empty = {}, *place;
	struct item *item;
	void *map;

	CHECK(!bpf_map_lookup_elem(&hash, &key));
	CHECK(bpf_map_update_elem(&hash, &key, &empty, BPF_EXIST) == -ENOENT);
	CHECK(!bpf_map_update_elem(&hash, &key, &empty, BPF_NOEXIST));
	CHECK(!bpf_map_update_elem(&hash, &other, &empty, BPF_ANY));
	CHECK(bpf_map_update_elem(&hash, &third, &empty, BPF_ANY) == -E2BIG);
	place = bpf_map_lookup_elem(&hash, &key);
	CHECK(place);
	item = bpf_obj_new(struct item);
	CHECK(!bpf_kptr_xchg(&place->item, item));
	CHECK(bpf_kptr_xchg(&place->item, NULL) == item);
	bpf_obj_drop(item);
	CHECK(!bpf_map_delete_elem(&hash, &other));
	CHECK(bpf_map_delete_elem(&hash, &other) == -ENOENT);

	bpf_for(value, 1, 4)
		CHECK(!bpf_map_push_elem(&queue, &value, 0));
	CHECK(bpf_map_push_elem(&queue, &value, 0) == -E2BIG);
	CHECK(!bpf_map_peek_elem(&queue, &value) && value == 1);
	CHECK(!bpf_map_pop_elem(&queue, &value) && value == 1);
	CHECK(!bpf_map_pop_elem(&queue, &value) && value == 2);
	CHECK(!bpf_map_pop_elem(&queue, &value) && value == 3);
	CHECK(bpf_map_pop_elem(&queue, &value) == -ENOENT);

	map = bpf_map_lookup_elem(&outer, &index);
	CHECK(map == (void *)&first);
	slot = bpf_map_lookup_elem(map, &index);
	CHECK(slot);
	*slot = 77;
	CHECK(*(u32 *)bpf_map_lookup_elem(&first, &index) == 77);
	index = 1;
	map = bpf_map_lookup_elem(&outer, &index);
	CHECK(!map);
	index = 2;
	CHECK(!bpf_map_lookup_elem(&outer, &index));
}

static void check_masks(void)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	int *bit, nr = 0;

	CHECK(mask && bpf_cpumask_empty(cast_mask(mask)));
	bpf_cpumask_set_cpu(1, mask);
	bpf_cpumask_set_cpu(2, mask);
	bpf_cpumask_set_cpu(5000, mask);
	CHECK(bpf_cpumask_weight(cast_mask(mask)) == 2);
	CHECK(bpf_cpumask_first(cast_mask(mask)) == 1);
	CHECK(bpf_cpumask_test_and_clear_cpu(1, mask));
	CHECK(bpf_cpumask_subset(cast_mask(mask), scx_bpf_get_possible_cpumask()));
	bpf_cpumask_setall(mask);
	CHECK(bpf_cpumask_full(cast_mask(mask)));
	CHECK(bpf_cpumask_weight(cast_mask(mask)) == nr_cpu_ids);
	bpf_for_each(bits, bit, (u64 *)cast_mask(mask), sizeof(struct cpumask) / 8)
		CHECK(*bit == nr++);
	CHECK(nr == nr_cpu_ids);
	bpf_cpumask_release(mask);
	ARRAY_ELEM_PTR(per_cpu, nr_cpu_ids - 1, nr_cpu_ids)[0] = 9;
	CHECK(!ARRAY_ELEM_PTR(per_cpu, nr_cpu_ids, nr_cpu_ids));
}

static void check_text(void)
{
	char text[24];

	CHECK(BPF_SNPRINTF(text, sizeof(text), "%d-%s-%x", -3, "ab", 255) == 9);
	CHECK(!bpf_strncmp(text, 9, "-3-ab-ff"));
	CHECK(bpf_probe_read_kernel(text, 8, (void *)64) == -EFAULT && text[0] == 0);
	CHECK(bpf_probe_read_kernel_str(text, 4, "abcdef") == 4 && text[2] == 'c' && !text[3]);
}

static void check_kernel(void)
{
	CHECK(LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 18, 0));
	CHECK(bpf_core_enum_value_exists(enum scx_ops_flags, SCX_OPS_ENQ_MIGRATION_DISABLED));
	CHECK(bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT) == 2);
	CHECK(bpf_core_type_exists(struct task_struct));
	CHECK(bpf_core_field_exists(struct sched_ext_ops, cgroup_set_bandwidth));
	CHECK(bpf_core_type_exists(struct scx_cmask) == 0);
	CHECK(bpf_ksym_exists(scx_bpf_now) && bpf_ksym_exists(scx_bpf_cpu_curr));
}

static int on_timer(void *map, u64 *key, struct bpf_timer *timer)
{
	CHECK(map == &hash && *key == 5);
	if (++nr_fired < 3)
		CHECK(!bpf_timer_start(timer, 2000000, 0));
	return 0;
}

static void check_timer(void)
{
	u64 key = 5;
	struct place *place = bpf_map_lookup_elem(&hash, &key);

	CHECK(place);
	CHECK(bpf_timer_start(&place->timer, 1, 0) == -EINVAL);
	CHECK(!bpf_timer_init(&place->timer, &hash, CLOCK_MONOTONIC));
	CHECK(bpf_timer_init(&place->timer, &hash, CLOCK_MONOTONIC) == -EBUSY);
	CHECK(!bpf_timer_set_callback(&place->timer, on_timer));
	CHECK(!bpf_timer_start(&place->timer, 2000000, 0));
}

s32 BPF_STRUCT_OPS_SLEEPABLE(checks_init)
{
	check_tree();
	check_list();
	check_maps();
	check_masks();
	check_text();
	check_kernel();
	check_timer();
	CHECK(scx_bpf_create_dsq(QUEUE_DSQ, -1) == 0);
	CHECK(scx_bpf_create_dsq(QUEUE_DSQ, -1) == -EEXIST);
	return 0;
}

s32 BPF_STRUCT_OPS(checks_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	u64 *value = bpf_task_storage_get(&storage, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 *group = bpf_cgrp_storage_get(&group_storage, args->cgroup, 0,
					  BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!value || !group)
		return -ENOMEM;
	*value = p->pid;
	(*group)++;
	CHECK(args->cgroup->kn->id == 1 + args->cgroup->level);
	return 0;
}

void BPF_STRUCT_OPS(checks_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 *value = bpf_task_storage_get(&storage, p, 0, 0);
	struct task_struct *same = bpf_task_from_pid(p->pid);
	struct cgroup *group = scx_bpf_task_cgroup(p);

	CHECK(value && *value == p->pid);
	CHECK(same == p);
	if (same)
		bpf_task_release(same);
	CHECK(group == p->cgroups->dfl_cgrp);
	CHECK(bpf_cgroup_from_id(group->kn->id) == group);
	bpf_cgroup_release(group);
	CHECK(bpf_cpumask_weight(p->cpus_ptr) == p->nr_cpus_allowed);
	CHECK(p->scx.weight >= 1 && p->comm[0]);
	scx_bpf_dsq_insert(p, QUEUE_DSQ, 4000000, enq_flags);
}

/* Takes the last of the queue, by a walk from behind. */
void BPF_STRUCT_OPS(checks_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUEUE_DSQ, SCX_DSQ_ITER_REV) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
			break;
	}
}

void BPF_STRUCT_OPS(checks_running, struct task_struct *p)
{
	CHECK(scx_bpf_task_running(p));
	CHECK(scx_bpf_task_cpu(p) == bpf_get_smp_processor_id());
	CHECK(bpf_get_current_task_btf()->pid == p->pid);
	CHECK(scx_bpf_cpu_rq(scx_bpf_task_cpu(p))->curr == p);
}

SCX_OPS_DEFINE(checks_ops,
	       .init = (void *)checks_init,
	       .init_task = (void *)checks_init_task,
	       .enqueue = (void *)checks_enqueue,
	       .dispatch = (void *)checks_dispatch,
	       .running = (void *)checks_running,
	       .name = "checks");
