/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What schedulers expect of <scx/common.bpf.h>, for those that come without their own: kfuncs,
 * macros, small functions. Names as in tools/sched_ext of Linux 6.12 to 7.3; the bodies are ours.
 * Left out: functions about arenas and about sets of cids.
 */
#ifndef SCHEDLAB_SCX_COMMON_STANDIN_H
#define SCHEDLAB_SCX_COMMON_STANDIN_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <asm-generic/errno.h>

#define PF_IDLE 0x00000002
#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD 0x00200000
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7
#ifndef NR_CPUS
#define NR_CPUS 1024
#endif
#ifndef NUMA_NO_NODE
#define NUMA_NO_NODE (-1)
#endif

extern int LINUX_KERNEL_VERSION __kconfig;

/* Queues and dispatch. */
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
void scx_bpf_destroy_dsq(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
bool scx_bpf_dsq_move_to_local___v2___compat(u64 dsq_id, u64 enq_flags) __ksym __weak;
u32 scx_bpf_dispatch_nr_slots(void) __ksym;
void scx_bpf_dispatch_cancel(void) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id) __ksym __weak;
void scx_bpf_dsq_reenq(u64 dsq_id, u64 reenq_flags) __ksym __weak;

/*
 * Headers of 7.1 and later have a second argument, flags of the task that is moved. Both forms
 * compile; kernels without flags ignore them.
 */
static inline __attribute__((always_inline, unused)) bool schedlab_move_to_local(u64 dsq_id,
										 u64 enq_flags)
{
	if (enq_flags && bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___compat))
		return scx_bpf_dsq_move_to_local___v2___compat(dsq_id, enq_flags);
	return scx_bpf_dsq_move_to_local(dsq_id);
}
#define scx_bpf_dsq_move_to_local(dsq_id, ...)				\
	schedlab_move_to_local(dsq_id, 0 __VA_OPT__(+(__VA_ARGS__)))

/* The names of 6.12. */
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			    u64 enq_flags) __ksym;
bool scx_bpf_consume(u64 dsq_id) __ksym;
void scx_bpf_dispatch_from_dsq_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym;
void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym;
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			       u64 enq_flags) __ksym;
bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				     u64 dsq_id, u64 enq_flags) __ksym;

/* CPUs. */
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *cpus_allowed, u64 flags) __ksym __weak;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
u32 scx_bpf_cpuperf_cap(s32 cpu) __ksym;
u32 scx_bpf_cpuperf_cur(s32 cpu) __ksym;
void scx_bpf_cpuperf_set(s32 cpu, u32 perf) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
u32 scx_bpf_nr_node_ids(void) __ksym __weak;
int scx_bpf_cpu_node(s32 cpu) __ksym __weak;
const struct cpumask *scx_bpf_get_possible_cpumask(void) __ksym;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
void scx_bpf_put_cpumask(const struct cpumask *cpumask) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask_node(int node) __ksym __weak;
const struct cpumask *scx_bpf_get_idle_smtmask_node(int node) __ksym __weak;
void scx_bpf_put_idle_cpumask(const struct cpumask *cpumask) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
s32 scx_bpf_pick_idle_cpu(const cpumask_t *cpus_allowed, u64 flags) __ksym;
s32 scx_bpf_pick_idle_cpu_node(const cpumask_t *cpus_allowed, int node, u64 flags) __ksym __weak;
s32 scx_bpf_pick_any_cpu(const cpumask_t *cpus_allowed, u64 flags) __ksym;
s32 scx_bpf_pick_any_cpu_node(const cpumask_t *cpus_allowed, int node, u64 flags) __ksym __weak;

/* CPUs by topology (7.2). */
s32 scx_bpf_cpu_to_cid(s32 cpu) __ksym __weak;
s32 scx_bpf_cid_to_cpu(s32 cid) __ksym __weak;
void scx_bpf_cid_topo(s32 cid, struct scx_cid_topo *out, size_t out__sz) __ksym __weak;
#if SCHEDLAB_KERNEL >= 703
void scx_bpf_cid_override(const s32 *cpu_to_cid, u32 cpu_to_cid_cnt, const s32 *shard_start,
			  u32 shard_start_cnt) __ksym __weak;
#else
void scx_bpf_cid_override(const s32 *cpu_to_cid, u32 cpu_to_cid__sz) __ksym __weak;
#endif
const void *scx_bpf_online_cmask(void) __ksym __weak;
void scx_bpf_kick_cid(s32 cid, u64 flags) __ksym __weak;
s32 scx_bpf_task_cid(const struct task_struct *p) __ksym __weak;
s32 scx_bpf_this_cid(void) __ksym __weak;
struct task_struct *scx_bpf_cid_curr(s32 cid) __ksym __weak;
u32 scx_bpf_nr_cids(void) __ksym __weak;
u32 scx_bpf_nr_online_cids(void) __ksym __weak;
u32 scx_bpf_cidperf_cap(s32 cid) __ksym __weak;
u32 scx_bpf_cidperf_cur(s32 cid) __ksym __weak;
void scx_bpf_cidperf_set(s32 cid, u32 perf) __ksym __weak;

/* Sub-schedulers (7.1; capabilities 7.3): there are none below a scheduler of the model. */
bool scx_bpf_sub_dispatch(u64 cgroup_id) __ksym __weak;
s32 scx_bpf_sub_grant(u64 cgroup_id, u64 caps, const struct scx_cmask *cmask,
		      struct scx_cmask *denied_out) __ksym __weak;
void scx_bpf_sub_revoke(u64 cgroup_id, u64 caps, const struct scx_cmask *cmask) __ksym __weak;
s32 scx_bpf_sub_caps(u64 cgroup_id, u64 caps, struct scx_cmask *out) __ksym __weak;

/* Tasks. */
struct task_struct *scx_bpf_tid_to_task(u64 tid) __ksym __weak;
bool scx_bpf_task_running(const struct task_struct *p) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym;
struct rq *scx_bpf_cpu_rq(s32 cpu) __ksym;
struct rq *scx_bpf_locked_rq(void) __ksym __weak;
struct task_struct *scx_bpf_cpu_curr(s32 cpu) __ksym __weak;
u64 scx_bpf_now(void) __ksym;
void scx_bpf_events(struct scx_event_stats *events, size_t events__sz) __ksym __weak;

/* Ends and words. */
void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data_len) __ksym;
void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data_len) __ksym;

#define SCX_STRINGIFY(x) #x
#define SCX_TOSTRING(x) SCX_STRINGIFY(x)
#define scx_bpf_error(fmt, args...)                                     \
	SCHEDLAB_WITH_ARGS(scx_bpf_error_bstr(__FILE__ ":" SCX_TOSTRING(__LINE__) ": " fmt, \
					      ___data, ___bpf_narg(args) * 8), ##args)
#define scx_bpf_exit(code, fmt, args...)                                \
	SCHEDLAB_WITH_ARGS(scx_bpf_exit_bstr(code, fmt, ___data, ___bpf_narg(args) * 8), ##args)
#define scx_bpf_dump(fmt, args...)                                      \
	SCHEDLAB_WITH_ARGS(scx_bpf_dump_bstr(fmt, ___data, ___bpf_narg(args) * 8), ##args)
#define BPF_FOR_EACH_ITER (&___it)
#define scx_read_event(e, name) (bpf_core_field_exists((e)->name) ? (e)->name : 0)

/* Programs, options, the table of operations. */
#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)
#define SCX_OPS_DEFINE(__name, ...)                                     \
	SEC(".struct_ops.link") struct sched_ext_ops __name = { __VA_ARGS__, };
#define SCX_OPS_CID_DEFINE(__name, ...)                                 \
	SEC(".struct_ops.link") struct sched_ext_ops_cid __name = { __VA_ARGS__, };
#define RESIZABLE_ARRAY(elfsec, arr) arr[1] SEC("." #elfsec "." #arr)

enum uei_sizes {
	UEI_REASON_LEN = 128,
	UEI_MSG_LEN = 1024,
	UEI_DUMP_DFL_LEN = 32768,
};

struct user_exit_info {
	int kind;
	s32 exit_cpu;
	s64 exit_code;
	char reason[UEI_REASON_LEN];
	char msg[UEI_MSG_LEN];
};

#define UEI_DEFINE(__name)                                              \
	char RESIZABLE_ARRAY(data, __name##_dump);                      \
	const volatile u32 __name##_dump_len;                           \
	struct user_exit_info __name SEC(".data")
#define UEI_RECORD(__name, __ei)                                        \
	({                                                              \
		bpf_probe_read_kernel_str(__name.reason, sizeof(__name.reason), (__ei)->reason); \
		bpf_probe_read_kernel_str(__name.msg, sizeof(__name.msg), (__ei)->msg); \
		bpf_probe_read_kernel_str(__name##_dump, __name##_dump_len, (__ei)->dump); \
		__name.exit_code = (__ei)->exit_code;                   \
		__name.exit_cpu = (__ei)->exit_cpu;                     \
		__name.kind = (__ei)->kind;                             \
	})

/* Objects, trees, lists. */
#define __contains(name, node) __attribute__((btf_decl_tag("contains:" #name ":" #node)))
#define private(name) SEC(".data." #name) __hidden __attribute__((aligned(8)))

void *bpf_obj_new_impl(__u64 local_type_id, void *meta) __ksym;
void bpf_obj_drop_impl(void *kptr, void *meta) __ksym;
void *bpf_refcount_acquire_impl(void *kptr, void *meta) __ksym;
#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(bpf_core_type_id_local(type), NULL))
#define bpf_obj_drop(kptr) bpf_obj_drop_impl(kptr, NULL)
#define bpf_refcount_acquire(kptr) ((typeof(kptr))bpf_refcount_acquire_impl(kptr, NULL))
int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node, void *meta,
			     __u64 off) __ksym;
int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node, void *meta,
			    __u64 off) __ksym;
struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head) __ksym;
#define bpf_list_push_front(head, node) bpf_list_push_front_impl(head, node, NULL, 0)
#define bpf_list_push_back(head, node) bpf_list_push_back_impl(head, node, NULL, 0)
int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			bool (less)(struct bpf_rb_node *a, const struct bpf_rb_node *b),
			void *meta, __u64 off) __ksym;
struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node) __ksym;
struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym;
#define bpf_rbtree_add(root, node, less) bpf_rbtree_add_impl(root, node, less, NULL, 0)

/* References. */
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
struct cgroup *bpf_task_get_cgroup1(struct task_struct *p, int hierarchy_id) __ksym __weak;
struct cgroup *bpf_cgroup_from_id(u64 cgid) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
		     unsigned int flags) __ksym;
struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym;
void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void bpf_preempt_disable(void) __ksym __weak;
void bpf_preempt_enable(void) __ksym __weak;
int bpf_res_spin_lock(struct bpf_res_spin_lock *lock) __ksym __weak;
void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock) __ksym __weak;

/* Masks. */
struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *cpumask) __ksym;
void bpf_cpumask_release(struct bpf_cpumask *cpumask) __ksym;
u32 bpf_cpumask_first(const struct cpumask *cpumask) __ksym;
u32 bpf_cpumask_first_zero(const struct cpumask *cpumask) __ksym;
u32 bpf_cpumask_first_and(const struct cpumask *src1, const struct cpumask *src2) __ksym;
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
void bpf_cpumask_setall(struct bpf_cpumask *cpumask) __ksym;
void bpf_cpumask_clear(struct bpf_cpumask *cpumask) __ksym;
bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *src1,
		     const struct cpumask *src2) __ksym;
void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *src1,
		    const struct cpumask *src2) __ksym;
void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *src1,
		     const struct cpumask *src2) __ksym;
bool bpf_cpumask_equal(const struct cpumask *src1, const struct cpumask *src2) __ksym;
bool bpf_cpumask_intersects(const struct cpumask *src1, const struct cpumask *src2) __ksym;
bool bpf_cpumask_subset(const struct cpumask *src1, const struct cpumask *src2) __ksym;
bool bpf_cpumask_empty(const struct cpumask *cpumask) __ksym;
bool bpf_cpumask_full(const struct cpumask *cpumask) __ksym;
void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src) __ksym;
u32 bpf_cpumask_any_distribute(const struct cpumask *cpumask) __ksym;
u32 bpf_cpumask_any_and_distribute(const struct cpumask *src1, const struct cpumask *src2) __ksym;
u32 bpf_cpumask_weight(const struct cpumask *cpumask) __ksym;
int bpf_iter_bits_new(struct bpf_iter_bits *it, const u64 *unsafe_ptr__ign, u32 nr_words) __ksym;
int *bpf_iter_bits_next(struct bpf_iter_bits *it) __ksym;
void bpf_iter_bits_destroy(struct bpf_iter_bits *it) __ksym;

static __always_inline const struct cpumask *cast_mask(struct bpf_cpumask *mask)
{
	return (const struct cpumask *)mask;
}

static inline bool is_migration_disabled(const struct task_struct *p)
{
	return p->migration_disabled;
}

/* Times wrap; weights are parts of 100. */
static inline s64 time_delta(u64 after, u64 before)
{
	return (s64)(after - before) > 0 ? (s64)(after - before) : 0;
}

static inline bool time_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline bool time_after(u64 a, u64 b)
{
	return time_before(b, a);
}

static inline bool time_before_eq(u64 a, u64 b)
{
	return !time_before(b, a);
}

static inline bool time_after_eq(u64 a, u64 b)
{
	return !time_before(a, b);
}

static inline bool time_in_range(u64 a, u64 b, u64 c)
{
	return time_after_eq(a, b) && time_before_eq(a, c);
}

static inline u64 scale_by_task_weight(const struct task_struct *p, u64 value)
{
	return value * p->scx.weight / 100;
}

static inline u64 scale_by_task_weight_inverse(const struct task_struct *p, u64 value)
{
	return value * 100 / p->scx.weight;
}

/* Before 6.19 a scheduler writes these words itself. */
static inline bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	p->scx.slice = slice;
	return true;
}

static inline bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	p->scx.dsq_vtime = vtime;
	return true;
}

#ifndef READ_ONCE
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, val) ({ *(volatile typeof(x) *)&(x) = (val); })
#endif

static inline u32 log2_u32(u32 v)
{
	return v ? 31 - __builtin_clz(v) : 0;
}

static inline u32 log2_u64(u64 v)
{
	return v >> 32 ? log2_u32(v >> 32) + 33 : log2_u32(v) + 1;
}

#define __COMPAT_ENUM_OR_ZERO(__type, __ent) \
	(bpf_core_enum_value_exists(__type, __ent) ? (__type)__ent : (__type)0)
#define __COMPAT_scx_bpf_task_cgroup(p) scx_bpf_task_cgroup(p)

#endif
