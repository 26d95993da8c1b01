/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a sched_ext scheduler needs of the kernel, and nothing else: types, kfuncs, macros.
 *
 * For BPF there is no vmlinux.h. The types are own subsets of the kernel's: only the fields that
 * are used, found by name in the running kernel's BTF when the object is loaded (CO-RE). So are the
 * members of struct sched_ext_ops, which is why any order and any subset will do, and the values of
 * enumerators, which differ between kernels (SCX_ENQ_HEAD is 0x10 in 6.18 and 0x10000 in 7.2). The
 * names below exist unchanged in Linux 6.16 to 7.2; what is younger is __weak and asked for with
 * bpf_ksym_exists().
 *
 * Compiled natively (for a simulator), the same names come from that one's own headers.
 *
 * Source: include/linux/sched/ext.h, kernel/sched/ext_internal.h (Linux 6.18 and 7.2).
 */
#ifndef SCHEDLAB_SCX_BPF_H
#define SCHEDLAB_SCX_BPF_H

#if defined(SCHEDLAB_NATIVE)
#include <scx/common.bpf.h>
#else

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_MAP_TYPE_CGRP_STORAGE 32
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ULL << 0)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* errno.h, which BPF cannot include. */
#define ENOENT 2
#define ENOMEM 12
#define EEXIST 17
#define EINVAL 22
#define ENOSPC 28

/* Tasks. */
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct {
	unsigned int flags;
	s32 pid;
	s32 tgid;
	int static_prio;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_entity se;
	struct sched_ext_entity scx;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
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
};

#pragma clang attribute pop

struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

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
	void (*set_weight)(struct task_struct *p, u32 weight);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* Enumerators: the kernel's values are put in when the object is loaded. */
enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1,
	SCX_ENQ_HEAD,
	SCX_ENQ_PREEMPT,
	SCX_ENQ_REENQ,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT,
};

enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 1,
	SCX_DSQ_LOCAL_ON,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};

enum scx_wake_flags {
	SCX_WAKE_FORK = 1,
	SCX_WAKE_SYNC,
};

#define SCX_ENQ_WAKEUP bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_HEAD bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_PREEMPT bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_ENQ_REENQ bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_REENQ)
#define SCX_KICK_IDLE bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT bpf_core_enum_value(enum scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_DSQ_LOCAL bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define SCX_DSQ_LOCAL_ON bpf_core_enum_value(enum scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define SCX_TASK_QUEUED bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_QUEUED)
#define SCX_WAKE_FORK bpf_core_enum_value(enum scx_wake_flags, SCX_WAKE_FORK)
#define SCX_WAKE_SYNC bpf_core_enum_value(enum scx_wake_flags, SCX_WAKE_SYNC)

/* kfuncs of sched_ext. */
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags) __ksym;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it__iter, u64 slice) __ksym;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, u64 vtime) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
bool scx_bpf_task_running(const struct task_struct *p) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;   /* 6.19 */
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

/* kfuncs of BPF. */
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

#if __clang_major__ < 15
/* Without a variable of the type, it is a mere name to these, and no kfunc's prototype matches. */
struct cpumask cpumask_type;
#endif

#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)
#define SCX_OPS_DEFINE(name, ...)                                                                  \
	SEC(".struct_ops.link") struct sched_ext_ops name = {                                      \
		__VA_ARGS__,                                                                       \
	}

/* The iterator of the bpf_for_each() around it. */
#define BPF_FOR_EACH_ITER (&___it)

/* Ends the scheduler with an error that says why. */
#define scx_bpf_error(fmt, args...)                                                                \
	({                                                                                         \
		static char ___fmt[] = fmt;                                                        \
		unsigned long long ___param[___bpf_narg(args) ? ___bpf_narg(args) : 1] = {};       \
		___bpf_fill(___param, args);                                                       \
		scx_bpf_error_bstr(___fmt, ___param, sizeof(___param));                            \
	})

/* Why the scheduler has ended, for the program that loaded it. */
struct user_exit_info {
	int kind;
	s64 exit_code;
	char reason[128];
	char msg[1024];
};

#define UEI_DEFINE(name) struct user_exit_info name SEC(".data")
#define UEI_RECORD(name, info)                                                                     \
	({                                                                                         \
		bpf_probe_read_kernel_str(name.reason, sizeof(name.reason), (info)->reason);       \
		bpf_probe_read_kernel_str(name.msg, sizeof(name.msg), (info)->msg);                \
		name.exit_code = (info)->exit_code;                                                \
		__sync_val_compare_and_swap(&name.kind, name.kind, (info)->kind);                  \
	})

#endif /* SCHEDLAB_NATIVE */

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

/* Not every scheduler uses all that a header has. */
#ifndef __maybe_unused
#define __maybe_unused __attribute__((unused))
#endif

/* A text that the loader finds in the object's BTF, beside what it describes. */
#ifndef SCHEDLAB_NATIVE
#define DESCRIBED(text) __attribute__((btf_decl_tag(text)))
#else
#define DESCRIBED(text)
#endif

/*
 * What can be set when the object is loaded. `range` is "least..most", with units where the name
 * ends in a unit, or "choice:a,b,c", of which the variable holds the index. `alias` is a second
 * name without unit, or "".
 */
#define OPTION(type, name, value, range, alias, text)                                              \
	const volatile type name DESCRIBED("option|" range "|" alias "|" text) = value

/* A counter of the statistics; its unit is part of its name. */
#define COUNTER(name, text) u64 name DESCRIBED(text)

#endif
