/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records what the scheduler does with the tasks of one run, and nothing else.
 *
 * Five programs on BTF-typed tracepoints (include/trace/events/sched.h): switch, wakeup,
 * wakeup_new, migrate_task, process_fork. An event goes as 16 bytes into the ring of the CPU it
 * happens on. All but process_fork fire with interrupts disabled on that CPU, so a ring has one
 * writer at any time and needs no atomic operation; process_fork only marks the child, and the
 * event of its creation is wakeup_new, which follows at once. A task's exit is its last switch
 * (state TASK_DEAD).
 *
 * Nobody is woken: the reader empties the rings on a timer. A recorder that wakes its reader for an
 * event records its own wake-ups.
 *
 * Only the tasks of the run: children of the launcher and whatever descends from them. One bit for
 * each process id says so; looking at it costs two loads. Of other tasks it tells how long each ran
 * on a CPU of the run: they take that time from the run's tasks.
 *
 * A kernel can fail to call its own tracepoint (seen: the switch away from a hypervisor agent's
 * thread; ftrace lacked it too). Each ring therefore remembers which task of the run its CPU was
 * last seen to take up. When another one leaves, a switch was not traced: UNSEEN says so, and when
 * the task came by the time stamp that the scheduler itself keeps (sched_info, rq->clock).
 *
 * Types are own subsets of the kernel's, relocated by libbpf against the running kernel's BTF (BPF
 * CO-RE), so no vmlinux.h is needed. Left out: priorities, comm, vruntime, CPUs >= 1024.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_MMAPABLE (1U << 10)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "recorder.h"

/* The kernel's types: only the fields that are read, found by name at load time. */
struct thread_info {
	__u32 cpu;
} __attribute__((preserve_access_index));

struct sched_info {
	unsigned long long last_arrival;
} __attribute__((preserve_access_index));

struct rq {
	__u64 clock;
} __attribute__((preserve_access_index));

struct cfs_rq {
	struct rq *rq;
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	__s32 pid;
	__s32 tgid;
	struct sched_entity se;
	struct sched_info sched_info;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_arm64)
#define SYSCALL_FIELD syscallno
struct pt_regs {
	__s32 syscallno;
} __attribute__((preserve_access_index));
#else
#define SYSCALL_FIELD orig_ax
struct pt_regs {
	unsigned long orig_ax;
} __attribute__((preserve_access_index));
#endif

/* Task states (include/linux/sched.h). */
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_DEAD 0x80

/* Set before loading. */
const volatile __u32 ring_size = 1 << 16; /* records of each ring, a power of two */
const volatile bool weak_memory = false;  /* the CPU may reorder stores */

/* Set before the run. */
__u32 launcher_tgid = 0;
/* The greatest number of rounds by which a switch of the run is made longer, and what draws it. */
__u32 jitter_rounds_max = 0;
__u32 jitter_state = 0;

/* One a CPU. The reader writes `tail` and nothing else. */
struct ring_control {
	__u64 head;       /* records written since the start */
	__u64 busy;       /* not 0 while a record is being written */
	__u64 lost;       /* events lost since the last record */
	__u64 lost_total; /* events lost since the start */
	__u64 runs;       /* pid of the task of the run that the last traced switch was to, or 0 */
	__u64 tells_others; /* set by the reader: this is a CPU of the run */
	__u64 other_since;  /* when the task that is none of the run came that runs now */
	__u64 pad[1];
	__u64 tail; /* records read since the start */
	__u64 pad2[7];
};

struct {
	__u32 pid_bits[REC_PIDS_MAX / 32];
} run_tasks = {};

struct {
	struct ring_control cpu[REC_CPUS_MAX];
} rings = {};

struct record {
	__u64 time_ns;
	__u64 word;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} records SEC(".maps");

static __always_inline bool in_run(__u32 pid)
{
	__u32 bits = run_tasks.pid_bits[(pid & (REC_PIDS_MAX - 1)) / 32];

	return bits >> (pid % 32) & 1;
}

static __always_inline void mark(__u32 pid, bool belongs)
{
	__u32 *bits = &run_tasks.pid_bits[(pid & (REC_PIDS_MAX - 1)) / 32];

	if (belongs)
		__sync_fetch_and_or(bits, 1u << (pid % 32));
	else
		__sync_fetch_and_and(bits, ~(1u << (pid % 32)));
}

/*
 * The task that wakes somebody by what it does, 0 if it is none of the run. An interrupt that wakes
 * somebody borrows whatever runs: it shows by the task's saved registers, which hold no system call
 * when the task was interrupted in user mode. An interrupt inside of a system call is taken for the
 * task; asking the preemption count instead would need a kernel with CONFIG_KALLSYMS_ALL.
 */
static __always_inline __u32 current_waker(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = task->pid;
	struct pt_regs *regs;

	if (!in_run(pid))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return (__s32)regs->SYSCALL_FIELD >= 0 ? pid : 0;
}

/* Makes what was written before visible before what is written next. */
#define ordered_store(where, value)                                                  \
	do {                                                                         \
		barrier();                                                           \
		if (weak_memory)                                                     \
			__sync_lock_test_and_set(where, value);                      \
		else                                                                 \
			*(volatile typeof(*(where)) *)(where) = (value);             \
	} while (0)

static __always_inline void put(__u32 cpu, __u64 head, __u64 time_ns, __u64 word)
{
	__u32 index = cpu * ring_size + (__u32)(head & (ring_size - 1));
	struct record *record = bpf_map_lookup_elem(&records, &index);

	if (record) {
		record->time_ns = time_ns;
		record->word = word;
	}
}

static __always_inline void emit_word(__u64 word)
{
	__u32 here = bpf_get_smp_processor_id();
	struct ring_control *ring;
	__u64 head, room, time_ns;

	if (here >= REC_CPUS_MAX)
		return;
	ring = &rings.cpu[here];
	ordered_store(&ring->busy, 1);
	time_ns = bpf_ktime_get_ns();
	head = ring->head;
	room = ring_size - (head - *(volatile __u64 *)&ring->tail);
	if (room < 2) { /* the event, and before it the mark of a loss */
		ring->lost++;
		ring->lost_total++;
		ordered_store(&ring->busy, 0);
		return;
	}
	if (ring->lost) {
		__u64 lost = ring->lost < REC_PIDS_MAX ? ring->lost : REC_PIDS_MAX - 1;

		put(here, head++, time_ns,
		    (__u64)REC_LOST << REC_KIND_SHIFT | (__u64)here << REC_CPU_SHIFT | lost);
		ring->lost -= lost;
	}
	put(here, head, time_ns, word);
	ordered_store(&ring->head, head + 1);
	ordered_store(&ring->busy, 0);
}

static __always_inline void emit(__u64 kind, __u64 first, __u64 second, __u64 cpu, __u64 out)
{
	emit_word(kind << REC_KIND_SHIFT | out << REC_OUT_SHIFT | cpu << REC_CPU_SHIFT |
		  second << REC_SECOND_SHIFT | first);
}

/*
 * When `task`, which leaves this CPU now, came to it: ns ago, 0 if that cannot be told. The
 * runqueue is found through the task's group of tasks (CONFIG_FAIR_GROUP_SCHED), which tasks of
 * every class have: the kernel's own table of runqueues needs CONFIG_KALLSYMS_ALL.
 */
static __always_inline __u64 came_ago_ns(struct task_struct *task)
{
	__u64 now, came;

	if (!task->pid || !bpf_core_field_exists(task->sched_info.last_arrival) ||
	    !bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(((struct cfs_rq *)0)->rq))
		return 0;
	came = task->sched_info.last_arrival;
	now = task->se.cfs_rq->rq->clock;
	return came && came < now ? now - came : 0;
}

/* A switch to `prev` was not traced. Rare, so it may cost. */
static __noinline int unseen(__u32 prev_pid, __u32 runs, __u64 ago_ns)
{
	__u32 here = bpf_get_smp_processor_id();

	if (ago_ns >= 1ULL << REC_CPU_SHIFT)
		ago_ns = 0;
	emit(REC_UNSEEN, prev_pid, runs, here, 0);
	emit_word((__u64)REC_AGO << REC_KIND_SHIFT | (__u64)here << REC_CPU_SHIFT | ago_ns);
	return 0;
}

/* Tells how long `prev_pid`, a task that is none of the run, had this CPU; 0 for a task of it. */
static __always_inline void tell_other(__u32 here, __u32 prev_pid, bool other_comes)
{
	struct ring_control *ring = &rings.cpu[here];
	__u64 now, ran;

	if (!ring->tells_others || (!prev_pid && !other_comes))
		return;
	now = bpf_ktime_get_ns();
	if (prev_pid && ring->other_since) {
		ran = now - ring->other_since;
		if (ran > ~0u)
			ran = ~0u;
		emit_word((__u64)REC_OTHER << REC_KIND_SHIFT | ran << REC_SECOND_SHIFT | prev_pid);
	}
	ring->other_since = other_comes ? now : 0;
}

/*
 * Makes this switch longer, by a number of rounds that it draws. The generator is the linear
 * congruential one of Numerical Recipes, whose upper bits are used.
 */
static __noinline int make_longer(void)
{
	__u32 rounds, i;

	jitter_state = jitter_state * 1664525 + 1013904223;
	rounds = (__u64)(jitter_state >> 8) * (jitter_rounds_max + 1) >> 24;
	for (i = 0; i < REC_JITTER_ROUNDS_MAX && i < rounds; i++)
		barrier();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u32 prev_pid = prev->pid, next_pid = next->pid;
	bool leaves = in_run(prev_pid), comes = in_run(next_pid);
	__u32 here = bpf_get_smp_processor_id();
	__u64 out = REC_OUT_SLEEPING, runs;

	if (here >= REC_CPUS_MAX)
		return 0;
	tell_other(here, leaves ? 0 : prev_pid, !comes && next_pid);
	runs = rings.cpu[here].runs;
	if (runs != (leaves ? prev_pid : 0))
		unseen(leaves ? prev_pid : 0, runs, came_ago_ns(prev));
	else if (!leaves && !comes)
		return 0;
	rings.cpu[here].runs = comes ? next_pid : 0;
	if (!leaves && !comes)
		return 0;
	if (!leaves) {
		out = REC_OUT_IDLE;
		prev_pid = 0;
	} else if (preempt || !prev_state) {
		out = REC_OUT_PREEMPTED;
	} else if (prev_state & TASK_DEAD) {
		out = REC_OUT_DEAD;
		mark(prev_pid, false);
	} else if (prev_state & TASK_UNINTERRUPTIBLE) {
		out = REC_OUT_BLOCKED_IO;
	}
	emit(REC_SWITCH, prev_pid, comes ? next_pid : 0, here, out);
	if (jitter_rounds_max)
		make_longer();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	__u32 pid = task->pid;

	if (in_run(pid))
		emit(REC_WAKEUP, pid, current_waker(), task->thread_info.cpu, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	__u32 pid = task->pid, parent;

	if (!in_run(pid))
		return 0;
	parent = (__u32)bpf_get_current_pid_tgid();
	emit(REC_NEW, pid, in_run(parent) ? parent : 0, task->thread_info.cpu, 0);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int dest_cpu)
{
	__u32 pid = task->pid;

	if (in_run(pid))
		emit(REC_MIGRATE, pid, task->thread_info.cpu, dest_cpu, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (parent->tgid == launcher_tgid || in_run(parent->pid))
		mark(child->pid, true);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
