/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The enumerations of sched_ext, each value with the first release that has it (major * 100 +
 * minor). One list serves twice: vmlinux.h makes the enumerations of it, rt.c a table by name, for
 * CO-RE's questions and for the `__SCX_...` words that a loader fills in.
 *
 * Values: kernel/sched/ext_internal.h and include/linux/sched/ext.h of Linux 6.12, 6.18 and 7.1,
 * kernel/sched/ext of 7.2 and 7.3; two flags have moved in 7.1. Later values (704) are those of the
 * scx repository's own headers. Left out: enumerations that no callback is ever handed.
 */
#ifndef SCHEDLAB_SCX_ENUMS_H
#define SCHEDLAB_SCX_ENUMS_H

/* The modelled release; the one who compiles says which. */
#ifndef SCHEDLAB_KERNEL
#define SCHEDLAB_KERNEL 618
#endif

#if SCHEDLAB_KERNEL >= 701
#define SCHEDLAB_ENQ_HEAD 0x10000ULL
#define SCHEDLAB_ENQ_CPU_SELECTED 0x100000ULL
#else
#define SCHEDLAB_ENQ_HEAD 0x10ULL
#define SCHEDLAB_ENQ_CPU_SELECTED 0x400ULL
#endif

#if SCHEDLAB_KERNEL >= 703
#define SCHEDLAB_REASON_BITS 3
#define SCHEDLAB_REASON_MASK 0x7000
#else
#define SCHEDLAB_REASON_BITS 2
#define SCHEDLAB_REASON_MASK 0x3000
#endif

#define SCHEDLAB_SCX_PUBLIC_CONSTS(V)                   \
	V(SCX_OPS_NAME_LEN, 128ULL, 612)                \
	V(SCX_SLICE_DFL, 20000000ULL, 612)              \
	V(SCX_SLICE_BYPASS, 5000000ULL, 619)            \
	V(SCX_SLICE_INF, 0xffffffffffffffffULL, 612)

#define SCHEDLAB_SCX_CONSTS(V)                          \
	V(SCX_DSP_DFL_MAX_BATCH, 32, 612)               \
	V(SCX_DSP_MAX_LOOPS, 32, 612)                   \
	V(SCX_WATCHDOG_MAX_TIMEOUT, 30000, 612)         \
	V(SCX_EXIT_BT_LEN, 64, 612)                     \
	V(SCX_EXIT_MSG_LEN, 1024, 612)                  \
	V(SCX_EXIT_DUMP_DFL_LEN, 32768, 612)            \
	V(SCX_CPUPERF_ONE, 1024, 612)                   \
	V(SCX_TASK_ITER_BATCH, 32, 614)                 \
	V(SCX_OPS_TASK_ITER_BATCH, 32, 612)             \
	V(SCX_BYPASS_LB_DFL_INTV_US, 500000, 619)       \
	V(SCX_BYPASS_LB_DONOR_PCT, 125, 619)            \
	V(SCX_BYPASS_LB_MIN_DELTA_DIV, 4, 619)          \
	V(SCX_BYPASS_LB_BATCH, 256, 619)                \
	V(SCX_BYPASS_HOST_NTH, 2, 701)                  \
	V(SCX_REENQ_LOCAL_MAX_REPEAT, 256, 701)         \
	V(SCX_SUB_MAX_DEPTH, 4, 701)                    \
	V(SCX_TID_CHUNK, 1024, 702)                     \
	V(SCX_REENQ_MAX_REPEAT, 256, 703)               \
	V(SCX_RESCUE_DFL_BW_PPT, 20, 703)               \
	V(SCX_RESCUE_MAX_BW_PPT, 250, 703)              \
	V(SCX_RESCUE_DISABLE, 0xffffffffU, 703)         \
	V(SCX_RESCUE_DFL_QUANTUM_US, 5000, 703)         \
	V(SCX_RESCUE_MIN_QUANTUM_US, 1000, 703)         \
	V(SCX_RESCUE_MAX_QUANTUM_US, 100000, 703)       \
	V(SCX_RESCUE_MIN_SLICE_US, 1000, 703)           \
	V(SCX_RESCUE_OVERLOAD_MULT, 16, 703)            \
	V(SCX_RESCUE_MIN_OVERLOAD_MS, 1000, 703)        \
	V(SCX_RESCUE_MAX_OVERLOAD_MS, 15000, 703)

#define SCHEDLAB_SCX_ARENA_CONSTS(V)                    \
	V(SCX_ARENA_MIN_ORDER, 3, 702)                  \
	V(SCX_ARENA_GROW_PAGES, 4, 702)

#define SCHEDLAB_SCX_CAP_FLAGS(V)                       \
	V(__SCX_CAP_ENQ_IMMED, 0, 703)                  \
	V(__SCX_CAP_ENQ, 1, 703)                        \
	V(__SCX_CAP_PREEMPT, 2, 703)                    \
	V(__SCX_CAP_PERF, 3, 703)                       \
	V(__SCX_NR_CAPS, 4, 703)                        \
	V(__SCX_CAP_ALL, 15, 703)                       \
	V(SCX_CAP_ENQ_IMMED, 1, 703)                    \
	V(SCX_CAP_ENQ, 2, 703)                          \
	V(SCX_CAP_PREEMPT, 4, 703)                      \
	V(SCX_CAP_PERF, 8, 703)                         \
	V(SCX_CAP_BASE, 1, 703)                         \
	V(SCX_CAPS_REENQ_ON_LOSS, 3, 703)

#define SCHEDLAB_SCX_CID_CONSTS(V)                      \
	V(SCX_CID_SHARD_SIZE_DFL, 24, 703)              \
	V(SCX_CID_SHARD_MAX_CPUS, 512, 703)

#define SCHEDLAB_SCX_CID_SCHED_CONSTS(V)                \
	V(SCX_CID_SCHED_NONE, 0xfffffffffffffffeULL, 704) \
	V(SCX_CID_SCHED_SELF, 0xffffffffffffffffULL, 704)

#define SCHEDLAB_SCX_EXIT_KIND(V)                       \
	V(SCX_EXIT_NONE, 0, 612)                        \
	V(SCX_EXIT_DONE, 1, 612)                        \
	V(SCX_EXIT_UNREG, 64, 612)                      \
	V(SCX_EXIT_UNREG_BPF, 65, 612)                  \
	V(SCX_EXIT_UNREG_KERN, 66, 612)                 \
	V(SCX_EXIT_SYSRQ, 67, 612)                      \
	V(SCX_EXIT_PARENT, 68, 701)                     \
	V(SCX_EXIT_ERROR, 1024, 612)                    \
	V(SCX_EXIT_ERROR_BPF, 1025, 612)                \
	V(SCX_EXIT_PARENT_KILL, 69, 703)                \
	V(SCX_EXIT_ERROR_STALL, 1026, 612)              \
	V(SCX_EXIT_ERROR_REENQ, 1027, 703)              \
	V(SCX_EXIT_ERROR_RESCUE, 1028, 703)

#define SCHEDLAB_SCX_EXIT_FLAGS(V)                      \
	V(SCX_EFLAG_INITIALIZED, 1, 618)

#define SCHEDLAB_SCX_EXIT_CODE(V)                       \
	V(SCX_ECODE_RSN_HOTPLUG, 1ULL << 32, 612)       \
	V(SCX_ECODE_RSN_CGROUP_OFFLINE, 2ULL << 32, 701) \
	V(SCX_ECODE_ACT_RESTART, 1ULL << 48, 612)

#define SCHEDLAB_SCX_OPS_FLAGS(V)                       \
	V(SCX_OPS_KEEP_BUILTIN_IDLE, 1ULL << 0, 612)    \
	V(SCX_OPS_ENQ_LAST, 1ULL << 1, 612)             \
	V(SCX_OPS_ENQ_EXITING, 1ULL << 2, 612)          \
	V(SCX_OPS_SWITCH_PARTIAL, 1ULL << 3, 612)       \
	V(SCX_OPS_ENQ_MIGRATION_DISABLED, 1ULL << 4, 614) \
	V(SCX_OPS_ALLOW_QUEUED_WAKEUP, 1ULL << 5, 615)  \
	V(SCX_OPS_BUILTIN_IDLE_PER_NODE, 1ULL << 6, 615) \
	V(SCX_OPS_ALWAYS_ENQ_IMMED, 1ULL << 7, 701)     \
	V(SCX_OPS_TID_TO_TASK, 1ULL << 8, 702)          \
	V(SCX_OPS_LAZY_RESCHED, 1ULL << 9, 704)         \
	V(SCX_OPS_ENQ_BLOCKED, 1ULL << 10, 704)         \
	V(SCX_OPS_HAS_CPU_PREEMPT, 1ULL << 56, 618)     \
	V(SCX_OPS_HAS_CGROUP_WEIGHT, 1ULL << 16, 612)

#define SCHEDLAB_SCX_ENQ_FLAGS(V)                       \
	V(SCX_ENQ_WAKEUP, 1ULL, 612)                    \
	V(SCX_ENQ_HEAD, SCHEDLAB_ENQ_HEAD, 612)                 \
	V(SCX_ENQ_CPU_SELECTED, SCHEDLAB_ENQ_CPU_SELECTED, 612)         \
	V(SCX_ENQ_PREEMPT, 1ULL << 32, 612)             \
	V(SCX_ENQ_IMMED, 1ULL << 33, 701)               \
	V(SCX_ENQ_RESCUE, 1ULL << 34, 703)              \
	V(SCX_ENQ_PREEMPT_LAZY, 1ULL << 35, 704)        \
	V(SCX_ENQ_REENQ, 1ULL << 40, 612)               \
	V(SCX_ENQ_LAST, 1ULL << 41, 612)                \
	V(__SCX_ENQ_INTERNAL_MASK, 0xff00000000000000ULL, 612) \
	V(SCX_ENQ_CLEAR_OPSS, 1ULL << 56, 612)          \
	V(SCX_ENQ_DSQ_PRIQ, 1ULL << 57, 612)            \
	V(SCX_ENQ_NESTED, 1ULL << 58, 614)              \
	V(SCX_ENQ_BLOCKED, 1ULL << 42, 704)             \
	V(SCX_ENQ_GDSQ_FALLBACK, 1ULL << 59, 701)       \
	V(SCX_ENQ_IGNORE_CAPS, 1ULL << 60, 703)         \
	V(SCX_ENQ_APPLY_SLICE, 1ULL << 61, 703)         \
	V(SCX_ENQ_SLICE_DFL, 1ULL << 62, 703)

#define SCHEDLAB_SCX_DEQ_FLAGS(V)                       \
	V(SCX_DEQ_SLEEP, 1ULL, 612)                     \
	V(SCX_DEQ_CORE_SCHED_EXEC, 1ULL << 32, 612)     \
	V(SCX_DEQ_SCHED_CHANGE, 1ULL << 33, 701)

#define SCHEDLAB_SCX_DSQ_ID_FLAGS(V)                    \
	V(SCX_DSQ_FLAG_BUILTIN, 1ULL << 63, 612)        \
	V(SCX_DSQ_FLAG_LOCAL_ON, 1ULL << 62, 612)       \
	V(SCX_DSQ_INVALID, 1ULL << 63, 612)             \
	V(SCX_DSQ_GLOBAL, (1ULL << 63) | 1, 612)        \
	V(SCX_DSQ_LOCAL, (1ULL << 63) | 2, 612)         \
	V(SCX_DSQ_BYPASS, (1ULL << 63) | 3, 619)        \
	V(SCX_DSQ_REJECT, (1ULL << 63) | 4, 703)        \
	V(SCX_DSQ_RESCUE, (1ULL << 63) | 5, 703)        \
	V(SCX_DSQ_LOCAL_ON, (1ULL << 63) | (1ULL << 62), 612) \
	V(SCX_DSQ_LOCAL_CPU_MASK, 0xffffffffULL, 612)

#define SCHEDLAB_SCX_DSQ_ITER_FLAGS(V)                  \
	V(SCX_DSQ_ITER_REV, 1U << 16, 612)              \
	V(__SCX_DSQ_ITER_HAS_SLICE, 1U << 30, 612)      \
	V(__SCX_DSQ_ITER_HAS_VTIME, 1U << 31, 612)

#define SCHEDLAB_SCX_KICK_FLAGS(V)                      \
	V(SCX_KICK_IDLE, 1, 612)                        \
	V(SCX_KICK_PREEMPT, 2, 612)                     \
	V(SCX_KICK_WAIT, 4, 612)                        \
	V(SCX_KICK_PREEMPT_LAZY, 8, 704)

#define SCHEDLAB_SCX_PICK_IDLE_FLAGS(V)                 \
	V(SCX_PICK_IDLE_CORE, 1, 612)                   \
	V(SCX_PICK_IDLE_IN_NODE, 2, 615)

#define SCHEDLAB_SCX_WAKE_FLAGS(V)                      \
	V(SCX_WAKE_FORK, 4, 612)                        \
	V(SCX_WAKE_TTWU, 8, 612)                        \
	V(SCX_WAKE_SYNC, 16, 612)

#define SCHEDLAB_SCX_PREEMPT_REASON(V)                  \
	V(SCX_CPU_PREEMPT_RT, 0, 612)                   \
	V(SCX_CPU_PREEMPT_DL, 1, 612)                   \
	V(SCX_CPU_PREEMPT_STOP, 2, 612)                 \
	V(SCX_CPU_PREEMPT_UNKNOWN, 3, 612)

#define SCHEDLAB_SCX_ENT_FLAGS(V)                       \
	V(SCX_TASK_QUEUED, 1, 612)                      \
	V(SCX_TASK_IN_CUSTODY, 2, 701)                  \
	V(SCX_TASK_RESET_RUNNABLE_AT, 4, 612)           \
	V(SCX_TASK_DEQD_FOR_SLEEP, 8, 612)              \
	V(SCX_TASK_SUB_INIT, 16, 701)                   \
	V(SCX_TASK_IMMED, 32, 701)                      \
	V(SCX_TASK_PROTECTED, 64, 703)                  \
	V(SCX_TASK_RUN_TRACKED, 128, 704)               \
	V(SCX_TASK_STATE_SHIFT, 8, 612)                 \
	V(SCX_TASK_STATE_BITS, 2, 612)                  \
	V(SCX_TASK_STATE_MASK, 0x300, 612)              \
	V(SCX_TASK_REENQ_REASON_SHIFT, 12, 701)         \
	V(SCX_TASK_REENQ_REASON_BITS, SCHEDLAB_REASON_BITS, 701) \
	V(SCX_TASK_REENQ_REASON_MASK, SCHEDLAB_REASON_MASK, 701) \
	V(SCX_TASK_REENQ_NONE, 0, 701)                  \
	V(SCX_TASK_REENQ_KFUNC, 0x1000, 701)            \
	V(SCX_TASK_REENQ_IMMED, 0x2000, 701)            \
	V(SCX_TASK_REENQ_PREEMPTED, 0x3000, 701)        \
	V(SCX_TASK_REENQ_CAP, 0x4000, 703)              \
	V(SCX_TASK_REENQ_PROXY, 0x5000, 704)            \
	V(SCX_TASK_CURSOR, 1U << 31, 612)

#define SCHEDLAB_SCX_TASK_STATE(V)                      \
	V(SCX_TASK_NONE, 0, 612)                        \
	V(SCX_TASK_INIT, 1, 612)                        \
	V(SCX_TASK_READY, 2, 612)                       \
	V(SCX_TASK_ENABLED, 3, 612)

#define SCHEDLAB_SCX_ENABLE_STATE(V)                    \
	V(SCX_ENABLING, 0, 612)                         \
	V(SCX_ENABLED, 1, 612)                          \
	V(SCX_DISABLING, 2, 612)                        \
	V(SCX_DISABLED, 3, 612)

#define SCHEDLAB_SCX_RQ_FLAGS(V)                        \
	V(SCX_RQ_ONLINE, 1, 612)                        \
	V(SCX_RQ_CAN_STOP_TICK, 2, 612)                 \
	V(SCX_RQ_BAL_PENDING, 4, 612)                   \
	V(SCX_RQ_BAL_KEEP, 8, 612)                      \
	V(SCX_RQ_BYPASSING, 16, 612)                    \
	V(SCX_RQ_CLK_VALID, 32, 614)                    \
	V(SCX_RQ_BAL_CB_PENDING, 64, 618)               \
	V(SCX_RQ_IN_WAKEUP, 1U << 16, 612)              \
	V(SCX_RQ_IN_BALANCE, 1U << 17, 612)             \
	V(SCX_RQ_SUB_IDLE_RENOTIFY, 128, 703)           \
	V(SCX_RQ_ROOT_IDLE_RENOTIFY, 256, 703)          \
	V(SCX_RQ_PROXY_RETRY, 512, 704)                 \
	V(SCX_RQ_PROXY_TICK, 1024, 704)                 \
	V(SCX_RQ_IN_DISPATCH, 1U << 17, 703)

#define SCHEDLAB_SCX_TG_FLAGS(V)                        \
	V(SCX_TG_ONLINE, 1, 612)                        \
	V(SCX_TG_INITED, 2, 612)

#define SCHEDLAB_SCX_REENQ_FLAGS(V)                     \
	V(SCX_REENQ_ANY, 1ULL, 701)                     \
	V(SCX_REENQ_CAP_REVOKE, 2ULL, 703)              \
	V(__SCX_REENQ_FILTER_MASK, 0xffffULL, 701)      \
	V(__SCX_REENQ_USER_MASK, 1ULL, 701)             \
	V(SCX_REENQ_TSR_RQ_OPEN, 1ULL << 32, 701)       \
	V(SCX_REENQ_TSR_NOT_FIRST, 1ULL << 33, 701)     \
	V(__SCX_REENQ_TSR_MASK, 0xf00000000ULL, 701)

#define SCHEDLAB_SCX_OPS_STATE(V)                       \
	V(SCX_OPSS_NONE, 0, 612)                        \
	V(SCX_OPSS_QUEUEING, 1, 612)                    \
	V(SCX_OPSS_QUEUED, 2, 612)                      \
	V(SCX_OPSS_DISPATCHING, 3, 612)                 \
	V(SCX_OPSS_QSEQ_SHIFT, 2, 612)

/* Every list with the tag of its enumeration. */
#define SCHEDLAB_SCX_ENUMS(L)                           \
	L(scx_public_consts, SCHEDLAB_SCX_PUBLIC_CONSTS) \
	L(scx_consts, SCHEDLAB_SCX_CONSTS)              \
	L(scx_exit_kind, SCHEDLAB_SCX_EXIT_KIND)        \
	L(scx_exit_code, SCHEDLAB_SCX_EXIT_CODE)        \
	L(scx_ops_flags, SCHEDLAB_SCX_OPS_FLAGS)        \
	L(scx_enq_flags, SCHEDLAB_SCX_ENQ_FLAGS)        \
	L(scx_deq_flags, SCHEDLAB_SCX_DEQ_FLAGS)        \
	L(scx_dsq_id_flags, SCHEDLAB_SCX_DSQ_ID_FLAGS)  \
	L(scx_dsq_iter_flags, SCHEDLAB_SCX_DSQ_ITER_FLAGS) \
	L(scx_kick_flags, SCHEDLAB_SCX_KICK_FLAGS)      \
	L(scx_pick_idle_cpu_flags, SCHEDLAB_SCX_PICK_IDLE_FLAGS) \
	L(scx_wake_flags, SCHEDLAB_SCX_WAKE_FLAGS)      \
	L(scx_cpu_preempt_reason, SCHEDLAB_SCX_PREEMPT_REASON) \
	L(scx_ent_flags, SCHEDLAB_SCX_ENT_FLAGS)        \
	L(scx_task_state, SCHEDLAB_SCX_TASK_STATE)      \
	L(scx_enable_state, SCHEDLAB_SCX_ENABLE_STATE)  \
	L(scx_rq_flags, SCHEDLAB_SCX_RQ_FLAGS)          \
	L(scx_tg_flags, SCHEDLAB_SCX_TG_FLAGS)          \
	L(scx_reenq_flags, SCHEDLAB_SCX_REENQ_FLAGS)    \
	L(scx_arena_consts, SCHEDLAB_SCX_ARENA_CONSTS)  \
	L(scx_cap_flags, SCHEDLAB_SCX_CAP_FLAGS)        \
	L(scx_cid_consts, SCHEDLAB_SCX_CID_CONSTS)      \
	L(scx_cid_sched_consts, SCHEDLAB_SCX_CID_SCHED_CONSTS) \
	L(scx_exit_flags, SCHEDLAB_SCX_EXIT_FLAGS)      \
	L(scx_ops_state, SCHEDLAB_SCX_OPS_STATE)

#endif
