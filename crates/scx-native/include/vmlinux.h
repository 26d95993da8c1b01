/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel types that a sched_ext scheduler reads, for compiling it natively.
 *
 * It stands where bpftool's dump of a kernel would stand and bears the same guard, so that whatever
 * vmlinux.h a scheduler brings is skipped: a native build cannot move fields when it is loaded, so
 * there must be one layout, and it is this one. Names are the kernel's (include/linux/sched.h,
 * sched/ext.h, cgroup-defs.h, kernel/sched/sched.h and ext.c, Linux 6.12 to 7.1); the order
 * and the padding are not. Left out: every field that is not listed; reading one is an error of the
 * compiler, never a wrong number.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#define SCHEDLAB_NATIVE 1

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef _Bool bool;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ssize_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __s8 int8_t;
typedef __s16 int16_t;
typedef __s32 int32_t;
typedef __INT64_TYPE__ int64_t;
typedef int pid_t;
typedef __u32 uid_t;
typedef __u32 gid_t;
typedef __s64 ktime_t;
typedef long long loff_t;
typedef long __kernel_long_t;
typedef unsigned short umode_t;
typedef unsigned int gfp_t;
typedef __u64 sector_t;
typedef __u64 dma_addr_t;
typedef int wait_queue_flags_t;

enum { false = 0, true = 1 };

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { uid_t val; } kuid_t;
typedef struct { gid_t val; } kgid_t;
typedef struct { atomic_t refs; } refcount_t;
/* What the kernel's guard(rcu)() keeps. */
typedef struct { void *lock; } class_rcu_t;
/* A mask of NUMA nodes. */
typedef struct { unsigned long bits[16]; } nodemask_t;

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct callback_head {
	struct callback_head *next;
	void (*func)(struct callback_head *head);
};

#include "schedlab/scx_enums.h"

#define SCHEDLAB_ENUM_VALUE(name, value, since) name = value,
#define SCHEDLAB_ENUM(tag, list) enum tag { list(SCHEDLAB_ENUM_VALUE) };
SCHEDLAB_SCX_ENUMS(SCHEDLAB_ENUM)

/* A mask of up to 1,024 CPUs. */
#define SCHEDLAB_NR_CPUS 1024

struct cpumask {
	unsigned long bits[SCHEDLAB_NR_CPUS / 64];
};
typedef struct cpumask cpumask_t;
typedef struct cpumask cpumask_var_t[1];

struct bpf_cpumask {
	cpumask_t cpumask;
	struct { u32 refs; } usage;
};

/* A set of CPUs by topological number (cid, 7.2). */
struct scx_cmask {
	u32 base;
	u32 nr_cids;
	u32 alloc_words;
	u64 bits[];
};

struct scx_cid_topo {
	s32 core_cid, core_idx, llc_cid, llc_idx, node_cid, node_idx, shard_cid, shard_idx;
	s32 cluster_cid, cluster_idx;
};

struct scx_enable_args {
	u64 cmask_arena_addr;
};

struct task_struct;
struct cgroup;
struct sched_ext_ops;

struct kernfs_node {
	u64 id;
	const char *name;
	struct kernfs_node *parent;
	struct kernfs_node *__parent;
};

struct cgroup_subsys {
	int id;
	const char *name;
};

/* Counts of references; groups of the model live as long as the run, so none is ever dying. */
struct percpu_ref {
	unsigned long percpu_count_ptr;
};

struct cgroup_subsys_state {
	struct percpu_ref refcnt;
	struct cgroup *cgroup;
	struct cgroup_subsys *ss;
	struct cgroup_subsys_state *parent;
	int id;
	unsigned int flags;
	u64 serial_nr;
};

/* Most levels of nested groups that `ancestors` holds. */
#define SCHEDLAB_CGROUP_LEVELS 64

enum cgroup_subsys_id {
	cpuset_cgrp_id = 0,
	cpu_cgrp_id = 1,
	cpuacct_cgrp_id = 2,
	memory_cgrp_id = 3,
	CGROUP_SUBSYS_COUNT = 4,
};

struct cgroup_root {
	struct cgroup *cgrp_first;
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	unsigned long flags;
	int level;
	int max_depth;
	int nr_descendants;
	int nr_populated_csets;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_COUNT];
	struct cgroup_root *root;
	/* The group whose domain its threads are in: itself, since no group is threaded. */
	struct cgroup *dom_cgrp;
	struct cgroup *ancestors[SCHEDLAB_CGROUP_LEVELS];
};

/* Only of groups that have one: of others the pointer in `subsys` is NULL. */
struct cpuset {
	struct cgroup_subsys_state css;
	cpumask_var_t cpus_allowed;
};

struct css_set {
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_COUNT];
	struct cgroup *dfl_cgrp;
	int nr_tasks;
};

struct scx_task_group_ext {
	u32 flags;
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us;
	bool idle;
};

struct task_group {
	struct cgroup_subsys_state css;
	unsigned long shares;
	struct task_group *parent;
	u32 scx_flags;
	u32 scx_weight;
	struct scx_task_group_ext scx;
};

struct load_weight {
	unsigned long weight;
	u32 inv_weight;
};

struct sched_avg {
	u64 last_update_time;
	unsigned long load_avg, runnable_avg, util_avg;
};

struct sched_entity {
	struct load_weight load;
	u64 deadline, min_vruntime, exec_start, sum_exec_runtime, prev_sum_exec_runtime;
	u64 vruntime, slice, nr_migrations;
	unsigned char on_rq;
	struct sched_avg avg;
};

struct scx_dsq_list_node {
	struct list_head node;
	u32 flags;
	u32 priv;
};

struct scx_dispatch_q {
	u32 nr;
	u32 seq;
	u64 id;
};

struct sched_ext_entity {
	/* Written by schedulers; the model of the core keeps these words here and nowhere else. */
	u64 slice;
	u64 dsq_vtime;
	u32 weight;
	u32 flags;
	bool disallow;
	/* Only read. */
	s32 sticky_cpu, holding_cpu, selected_cpu;
	struct scx_dispatch_q *dsq;
	struct scx_dsq_list_node dsq_list;
	u32 dsq_seq, dsq_flags;
	u64 ddsp_dsq_id, ddsp_enq_flags;
	unsigned long runnable_at;
	u64 core_sched_at;
	u64 tid;
	struct cgroup *cgrp_moving_from;
};

struct cred {
	kuid_t uid, euid;
	kgid_t gid, egid;
};

struct mm_struct {
	atomic_t mm_users, mm_count;
	struct task_struct *owner;
};

/* The model has one PID namespace: a task has no struct pid. */
struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	unsigned int level;
	struct pid_namespace *parent;
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID, PIDTYPE_MAX };

struct pid {
	refcount_t count;
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	int nr_threads;
	struct list_head thread_head;
	struct pid *pids[PIDTYPE_MAX];
};

/* No task of the model has a memory policy: the pointer of every task is NULL. */
enum {
	MPOL_DEFAULT,
	MPOL_PREFERRED,
	MPOL_BIND,
	MPOL_INTERLEAVE,
	MPOL_LOCAL,
	MPOL_PREFERRED_MANY,
	MPOL_WEIGHTED_INTERLEAVE,
	MPOL_MAX,
};

struct mempolicy {
	atomic_t refcnt;
	unsigned short mode;
	unsigned short flags;
	nodemask_t nodes;
	int home_node;
};

/* Drivers of frequencies and timers: not modelled, the kernel's pointers to them are NULL. */
struct cpufreq_cpuinfo {
	unsigned int max_freq, min_freq;
};

struct cpufreq_policy {
	struct cpufreq_cpuinfo cpuinfo;
	unsigned int min, max, cur;
	unsigned int cpu;
};

struct clock_event_device {
	ktime_t next_event;
};

struct tick_device {
	struct clock_event_device *evtdev;
};

/* Arguments of programs that are attached to tracepoints and files; the model calls none. */
struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
};

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
};

struct trace_event_raw_sys_exit {
	struct trace_entry ent;
	long id, ret;
};

struct trace_event_raw_sched_switch {
	struct trace_entry ent;
	char prev_comm[16];
	pid_t prev_pid;
	int prev_prio;
	long prev_state;
	char next_comm[16];
	pid_t next_pid;
	int next_prio;
};

struct trace_event_raw_sched_wakeup_template {
	struct trace_entry ent;
	char comm[16];
	pid_t pid;
	int prio, target_cpu;
};

struct __kernel_timespec {
	long long tv_sec, tv_nsec;
};

struct seq_file {
	void *private;
};

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id, seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct thread_info {
	unsigned long flags;
	u32 status;
	u32 cpu;
};

struct sched_info {
	unsigned long pcount;
	u64 run_delay, last_arrival, last_queued;
};

/* Not kept by the model: all zero. */
struct sched_statistics {
	u64 wait_start, wait_max, wait_count, wait_sum, iowait_count, iowait_sum;
	u64 sleep_start, sleep_max;
	s64 sum_sleep_runtime;
	u64 block_start, block_max;
	s64 sum_block_runtime;
	s64 exec_max;
	u64 slice_max, nr_migrations_cold, nr_failed_migrations_affine;
	u64 nr_failed_migrations_running, nr_failed_migrations_hot, nr_forced_migrations;
	u64 nr_wakeups, nr_wakeups_sync, nr_wakeups_migrate, nr_wakeups_local, nr_wakeups_remote;
	u64 nr_wakeups_affine, nr_wakeups_affine_attempts, nr_wakeups_passive, nr_wakeups_idle;
};

struct sched_class {
	int schedlab_rank;
};

struct rt_mutex_waiter;
struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu, on_rq;
	int prio, static_prio, normal_prio;
	unsigned int rt_priority;
	unsigned int policy;
	int wake_cpu, recent_used_cpu;
	unsigned int wakee_flips;
	unsigned long wakee_flip_decay_ts;
	struct task_struct *last_wakee;
	int nr_cpus_allowed;
	pid_t pid, tgid;
	/* Not fields of the kernel's: number of the task in the model, and its storage (rt.c). */
	u32 schedlab_task;
	void *schedlab_storage[4];
	/* What changes often stands together. */
	struct sched_ext_entity scx;
	struct sched_entity se;
	u64 utime;
	unsigned long nvcsw, nivcsw;
	struct css_set *cgroups;
	const cpumask_t *cpus_ptr;
	cpumask_t *user_cpus_ptr;
	cpumask_t cpus_mask;
	unsigned short migration_disabled;
	unsigned short migration_flags;
	const struct sched_class *sched_class;
	struct task_group *sched_task_group;
	struct sched_info sched_info;
	struct sched_statistics stats;
	int exit_state, exit_code, exit_signal;
	unsigned in_iowait : 1;
	unsigned sched_reset_on_fork : 1;
	struct task_struct *real_parent, *parent, *group_leader;
	struct mm_struct *mm, *active_mm;
	struct mempolicy *mempolicy;
	int numa_preferred_nid;
	struct pid *thread_pid;
	struct list_head thread_node;
	struct signal_struct *signal;
	const struct cred *real_cred, *cred;
	u64 stime, gtime;
	u64 start_time, start_boottime;
	char comm[16];
	struct rt_mutex_waiter *pi_blocked_on;
};

struct scx_rq {
	struct scx_dispatch_q local_dsq;
	u32 flags, nr_running, cpuperf_target;
	bool cpu_released;
	u64 clock;
};

/*
 * The first four are in the order of `struct rq___local` in the schedulers' own headers: CO-RE
 * would find each by its name, a native build reads both structs from the same place.
 */
struct rq {
	u64 clock_task, clock_pelt;
	unsigned long lost_idle_time;
	u64 prev_steal_time_rq;
	unsigned int nr_running;
	struct task_struct *curr, *idle, *stop, *donor;
	u64 clock;
	int cpu;
	bool online;
	unsigned long cpu_capacity;
	u64 nr_switches;
	struct scx_rq scx;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s32 exit_cpu;
	s64 exit_code;
	u64 flags;
	const char *reason;
	unsigned long *bt;
	u32 bt_len;
	char *msg;
	char *dump;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us, bw_quota_us, bw_burst_us;
	bool sched_idle;
};

struct scx_cpu_acquire_args {};

struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
};

struct scx_dump_ctx {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	u64 at_ns, at_jiffies;
};

struct scx_sub_attach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};

struct scx_sub_detach_args {
	struct sched_ext_ops *ops;
	char *cgroup_path;
};

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id, slice, vtime, enq_flags;
};

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags, flags;
};

struct scx_event_stats {
	s64 SCX_EV_SELECT_CPU_FALLBACK;
	s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	s64 SCX_EV_DISPATCH_KEEP_LAST;
	s64 SCX_EV_ENQ_SKIP_EXITING;
	s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
	s64 SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_BYPASS_DURATION;
	s64 SCX_EV_BYPASS_DISPATCH;
	s64 SCX_EV_BYPASS_ACTIVATE;
	s64 SCX_EV_REENQ_IMMED;
	s64 SCX_EV_REENQ_LOCAL_REPEAT;
	s64 SCX_EV_INSERT_NOT_OWNED;
	s64 SCX_EV_SUB_BYPASS_DISPATCH;
	s64 SCX_EV_REENQ_REPEAT, SCX_EV_SLICE_CLAMPED, SCX_EV_SLICE_DENIED;
	s64 SCX_EV_SUB_FORCED_ADMIT, SCX_EV_SUB_PREEMPT_DENIED, SCX_EV_SUB_KICK_DENIED;
	s64 SCX_EV_SUB_REENQ_DENIED, SCX_EV_SUB_CIDPERF_DENIED, SCX_EV_SUB_RESCUE;
};

/* The operations; `schedlab_op_*` in rt.c and crates/scx-native/src/ops.rs go by these names. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init_cids)(void);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	u32 cid_shard_size;
	u32 rescue_bandwidth_ppt;
	u32 rescue_quantum_us;
	u64 sub_cgroup_id;
	char name[128];
	void *priv;
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
};

/* Members of the next struct that 7.3 has renamed. */
#if SCHEDLAB_KERNEL >= 703
#define SCHEDLAB_CGROUP(what) cpuctl_##what
#define SCHEDLAB_ENABLE_ARGS , struct scx_enable_args *args
#else
#define SCHEDLAB_CGROUP(what) cgroup_##what
#define SCHEDLAB_ENABLE_ARGS
#endif

/* The same for schedulers that count CPUs by topology (7.2). Places are those of sched_ext_ops. */
struct sched_ext_ops_cid {
	s32 (*select_cid)(struct task_struct *p, s32 prev_cid, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cid, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cmask)(struct task_struct *p, const struct scx_cmask *cmask);
	void (*update_idle)(s32 cid, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p SCHEDLAB_ENABLE_ARGS);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cid)(struct scx_dump_ctx *ctx, s32 cid, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*SCHEDLAB_CGROUP(init))(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*SCHEDLAB_CGROUP(exit))(struct cgroup *cgrp);
	s32 (*SCHEDLAB_CGROUP(prep_move))(struct task_struct *p, struct cgroup *from,
					  struct cgroup *to);
	void (*SCHEDLAB_CGROUP(move))(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*SCHEDLAB_CGROUP(cancel_move))(struct task_struct *p, struct cgroup *from,
					     struct cgroup *to);
	void (*SCHEDLAB_CGROUP(set_weight))(struct cgroup *cgrp, u32 weight);
	void (*SCHEDLAB_CGROUP(set_bandwidth))(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*SCHEDLAB_CGROUP(set_idle))(struct cgroup *cgrp, bool idle);
	s32 (*sub_attach)(struct scx_sub_attach_args *args);
	void (*sub_detach)(struct scx_sub_detach_args *args);
	void (*sub_caps_updated)(const struct scx_cmask *cmask, u64 caps);
	void (*sub_ecaps_updated)(s32 cid, u64 before, u64 after);
	void (*cid_online)(s32 cid);
	void (*cid_offline)(s32 cid);
	s32 (*init_cids)(void);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	u32 cid_shard_size;
	u32 rescue_bandwidth_ppt;
	u32 rescue_quantum_us;
	u64 sub_cgroup_id;
	char name[128];
	void *priv;
};

/* Opaque to schedulers; what the words hold is written in rt.c. */
struct bpf_spin_lock { __u32 val; };
struct bpf_res_spin_lock { __u32 val; };
struct bpf_timer { __u64 __opaque[2]; };
struct bpf_wq { __u64 __opaque[2]; };
struct bpf_refcount { __u32 __opaque[1]; } __attribute__((aligned(4)));
struct bpf_rb_node { __u64 __opaque[4]; };
struct bpf_rb_root { __u64 __opaque[2]; };
struct bpf_list_node { __u64 __opaque[3]; };
struct bpf_list_head { __u64 __opaque[2]; };
struct bpf_dynptr { __u64 __opaque[2]; };
struct bpf_iter_scx_dsq { __u64 __opaque[6]; };
struct bpf_iter_num { __u64 __opaque[1]; };
struct bpf_iter_bits { __u64 __opaque[2]; };
struct bpf_iter_css { __u64 __opaque[3]; };
struct bpf_iter_css_task { __u64 __opaque[1]; };
struct bpf_iter_task { __u64 __opaque[3]; };
struct bpf_map;
struct pt_regs { unsigned long regs[32]; };
struct bpf_perf_event_data { struct pt_regs regs; __u64 sample_period, addr; };
struct bpf_perf_event_value { __u64 counter, enabled, running; };
struct bpf_iter_kmem_cache { __u64 __opaque[1]; };
struct bpf_iter_dmabuf { __u64 __opaque[1]; };
struct bpf_iter_task_vma { __u64 __opaque[1]; };

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC = 0,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_STRUCT_OPS = 26,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_INODE_STORAGE = 28,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_BLOOM_FILTER = 30,
	BPF_MAP_TYPE_USER_RINGBUF = 31,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_MAP_TYPE_ARENA = 33,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_LOCK = 4,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_NO_COMMON_LRU = 1U << 1,
	BPF_F_NUMA_NODE = 1U << 2,
	BPF_F_RDONLY = 1U << 3,
	BPF_F_WRONLY = 1U << 4,
	BPF_F_ZERO_SEED = 1U << 6,
	BPF_F_RDONLY_PROG = 1U << 7,
	BPF_F_WRONLY_PROG = 1U << 8,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_F_PRESERVE_ELEMS = 1U << 11,
	BPF_F_INNER_MAP = 1U << 12,
	BPF_F_SEGV_ON_FAULT = 1U << 17,
	BPF_F_NO_USER_CONV = 1U << 18,
};

enum bpf_cgroup_iter_order {
	BPF_CGROUP_ITER_ORDER_UNSPEC = 0,
	BPF_CGROUP_ITER_SELF_ONLY = 1,
	BPF_CGROUP_ITER_DESCENDANTS_PRE = 2,
	BPF_CGROUP_ITER_DESCENDANTS_POST = 3,
	BPF_CGROUP_ITER_ANCESTORS_UP = 4,
};

enum { TASK_COMM_LEN = 16 };
enum { BPF_F_CURRENT_CPU = 0xffffffffULL };
enum { BPF_F_TIMER_ABS = 1, BPF_F_TIMER_CPU_PIN = 2 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_RB_CONS_POS = 2,
	BPF_RB_PROD_POS = 3,
};
enum {
	BPF_RINGBUF_BUSY_BIT = 1U << 31,
	BPF_RINGBUF_DISCARD_BIT = 1U << 30,
	BPF_RINGBUF_HDR_SZ = 8,
};
enum { BPF_F_INDEX_MASK = 0xffffffffULL };
enum bpf_task_iter_flags {
	BPF_TASK_ITER_ALL_PROCS = 0,
	BPF_TASK_ITER_ALL_THREADS = 1,
	BPF_TASK_ITER_PROC_THREADS = 2,
};

enum page_size_enum { __PAGE_SIZE = 4096 };

enum {
	TASK_RUNNING = 0,
	TASK_INTERRUPTIBLE = 1,
	TASK_UNINTERRUPTIBLE = 2,
};

#endif
