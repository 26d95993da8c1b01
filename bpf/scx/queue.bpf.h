/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What all schedulers here have in common: a queue for each CPU, turns, and the care for tasks that
 * the rules of a scheduler would leave waiting for ever.
 *
 * - DSQ n holds what waits for CPU n. The kernel keeps it: it skips tasks that may not run on the
 *   CPU that asks, and takes out those that leave. Tasks enter the queue of the CPU whose runqueue
 *   they are on, so under that runqueue's lock.
 * - A CPU that runs dry takes from the longest other queue; one that ends a turn looks at one other
 *   queue, each time the next one, and takes from it when that is longer by two. Who waits wakes an
 *   idle CPU that it may use. On one CPU none of this happens.
 * - A turn is a stay on a CPU, charged with the task's own CPU time (sum_exec_runtime, what the
 *   kernel charges slices with). It ends at the tick nearest to its length: the kernel would end it
 *   at the first tick after, a whole tick late whenever a tick comes a microsecond early.
 * - ops.dispatch runs before the task that leaves the CPU is queued again. Schedulers that must
 *   compare the two therefore look at `prev` there and let it go on by giving it a new slice.
 * - Kernel threads are not what a study of schedulers schedules, and a system whose kernel threads
 *   wait behind a CPU hog falls apart: a waking one runs at once, and whom it interrupts goes on
 *   afterwards. One that uses up its turn waits like everybody.
 * - A task that has waited for wait_max_ns is next, whatever the rules say: the kernel ejects a
 *   scheduler that lets a task wait for 30 s.
 *
 * A scheduler defines TASK_FIELDS, what it keeps of a task beside its turn, and COUNTERS, what it
 * counts, and includes this file.
 */
#ifndef SCHEDLAB_QUEUE_BPF_H
#define SCHEDLAB_QUEUE_BPF_H

#include "scx.bpf.h"

/* Most CPUs; the kernel's own limit for this distribution of work is far above. */
#define NR_CPUS_MAX 1024
/* A slice that never ends by itself: who uses it ends turns in ops.tick. */
#define SLICE_LONG (3600 * NSEC_PER_SEC)
/* Turn of a kernel thread. */
#define KTHREAD_TURN (5 * NSEC_PER_MSEC)
/* Waiting tasks looked at for one that waits too long. */
#define SCAN_MAX 512
/*
 * ops.flags: SCX_OPS_ENQ_EXITING, as a number because initial data cannot be relocated. Without it
 * a task that loses its CPU while it exits is next on it again, whatever the rules say.
 */
#define QUEUE_OPS_FLAGS (1ULL << 2)

OPTION(u64, tick_ns, 4000000, "1us..1s", "",
       "time between two ticks of the machine; whoever loads the scheduler sets it");
OPTION(u64, wait_max_ns, 10000000000, "10ms..25s", "",
       "a task that has waited this long is next, whatever the rules say");

struct task_ctx {
	u64 left_ns;    /* of its turn, when it was charged last */
	u64 charged_ns; /* CPU time up to that charge */
	u64 since_ns;   /* since when it waits; 0: it does not wait */
	s32 cpu;        /* where it was queued or ran last */
	bool is_over;   /* its turn is used up */
	bool has_yielded;
	bool comes_back; /* it left a CPU and was runnable */
	TASK_FIELDS
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} tasks SEC(".maps");

struct stats {
	COUNTER(nr_picked, "times a task came to a CPU");
	COUNTER(nr_idle, "wake-ups and forks that found an idle CPU");
	COUNTER(nr_queued, "times a task had to wait in a queue");
	COUNTER(nr_expired, "turns that were used up");
	COUNTER(nr_continued, "turns after which the same task went on");
	COUNTER(nr_yielded, "turns given up by sched_yield");
	COUNTER(nr_preempted, "turns interrupted, to go on later");
	COUNTER(nr_taken, "tasks taken from another CPU's queue");
	COUNTER(nr_kthreads, "wake-ups of kernel threads, which run at once");
	COUNTER(nr_rescued, "tasks that ran out of order because they had waited too long");
	COUNTER(wait_ns, "time that tasks spent waiting in queues");
	COUNTERS
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

#define count_by(field, amount)                                                                    \
	({                                                                                         \
		u32 ___zero = 0;                                                                   \
		struct stats *___stats = bpf_map_lookup_elem(&stats, &___zero);                    \
		if (___stats)                                                                      \
			___stats->field += (amount);                                               \
	})
#define count(field) count_by(field, 1)

/* What is known of a CPU. */
struct cpu_state {
	u64 scanned_ns; /* when its queue was last searched for one that waits too long */
	u32 victim;     /* whose queue it looks at next */
	u32 rank;       /* of the task that runs, lower is better; schedulers with ranks set it */
	bool is_busy;   /* a task of ours runs */
	bool rescues;   /* a task in its queue has waited too long */
} __attribute__((aligned(64)));

struct cpu_state cpus[NR_CPUS_MAX];
u32 nr_cpus = 1;
/* 0; the verifier does not know that, and so need not follow each round of a bounded search. */
u32 scan_start;

UEI_DEFINE(uei);

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	return &cpus[(u32)cpu & (NR_CPUS_MAX - 1)];
}

static __always_inline struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

/* The context of a task that is new to the scheduler. */
static __always_inline struct task_ctx *task_ctx_new(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void set_slice(struct task_struct *p, u64 slice_ns)
{
#ifndef SCHEDLAB_NATIVE
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
#endif
		p->scx.slice = slice_ns;
}

/* Charges what `p` has run since the last charge; returns it. */
static __always_inline u64 charge(struct task_struct *p, struct task_ctx *t)
{
	u64 used = p->se.sum_exec_runtime - t->charged_ns;

	t->charged_ns += used;
	t->left_ns -= used < t->left_ns ? used : t->left_ns;
	return used;
}

/* The whole turn of a task begins, from now on or when it runs next. */
static __always_inline void new_turn(struct task_struct *p, struct task_ctx *t, u64 length_ns)
{
	t->left_ns = length_ns;
	t->charged_ns = p->se.sum_exec_runtime;
	t->is_over = false;
	t->has_yielded = false;
}

/* Whether a turn with this much left ends at the present tick rather than at the next one. */
static __always_inline bool ends_now(u64 left_ns)
{
	return left_ns <= tick_ns / 2;
}

/* Ends the turn of the task that runs: the CPU picks anew. */
static __always_inline void end_turn(struct task_struct *p, struct task_ctx *t)
{
	t->is_over = true;
	set_slice(p, 0);
}

/* Whether `prev` may go on after a dispatch: it has neither blocked nor gone. */
static __always_inline bool is_runnable(struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED);
}

static __always_inline void starts_waiting(struct task_struct *p, struct task_ctx *t)
{
	t->since_ns = bpf_ktime_get_ns();
	count(nr_queued);
}

static __always_inline void stops_waiting(struct task_ctx *t)
{
	if (t->since_ns)
		count_by(wait_ns, bpf_ktime_get_ns() - t->since_ns);
	t->since_ns = 0;
}

/* Wakes an idle CPU that `p`, which has to wait, may use: it will take it. */
static __always_inline void call_idle_cpu(struct task_struct *p)
{
	s32 cpu;

	if (nr_cpus == 1 || p->nr_cpus_allowed == 1)
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * Whether a task that is being queued wakes, is new, or waited while its attributes were changed,
 * rather than leaves a CPU.
 */
static __always_inline bool arrives(struct task_ctx *t)
{
	return !t->comes_back;
}

/*
 * A waking kernel thread runs at once, one that was interrupted as soon as it can. Returns whether
 * `p` is one of these.
 */
static __always_inline bool serve_kthread(struct task_struct *p, struct task_ctx *t, u64 enq_flags)
{
	u64 preempt = 0;

	if (!(p->flags & PF_KTHREAD))
		return false;
	if (arrives(t)) {
		new_turn(p, t, KTHREAD_TURN);
		preempt = SCX_ENQ_PREEMPT;
		count(nr_kthreads);
	} else if (t->is_over || !t->left_ns) {
		return false;
	}
	t->comes_back = false;
	t->cpu = scx_bpf_task_cpu(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, t->left_ns, enq_flags | preempt);
	return true;
}

/*
 * Whether `p`, which is being queued, left its CPU in the middle of a turn and goes on with it
 * later. A waking task does not, nor one that waited while its attributes were changed.
 */
static __always_inline bool is_interrupted(struct task_ctx *t)
{
	bool came_back = t->comes_back;

	t->comes_back = false;
	return came_back && !t->is_over && t->left_ns;
}

/* What differs where a CPU has several queues (SEVERAL_QUEUES). How many wait for a CPU: */
static s32 queue_length(s32 cpu);
/* Gives this CPU the first that waits for `cpu` and may run here; false if there is none: */
static bool take_first(s32 cpu);
/* Whether one of those that wait for `cpu` has waited too long: */
static bool somebody_waits_too_long(s32 cpu, u64 now);
/* Gives `cpu` that one; false if there is none: */
static bool take_who_waits_too_long(s32 cpu, u64 now);

/* The CPU with the shortest queue among those near `prev_cpu`; for new tasks. */
static __always_inline s32 shortest_queue(struct task_struct *p, s32 prev_cpu)
{
	s32 best = prev_cpu, least = 1 << 30, i;

	bpf_for(i, 0, 64) {
		s32 cpu = (prev_cpu + i) % nr_cpus, load;

		if (i >= nr_cpus)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		load = 2 * queue_length(cpu) + cpu_state(cpu)->is_busy;
		if (load < least) {
			least = load;
			best = cpu;
		}
	}
	return best;
}

/* Where a task that wakes or is new runs; `is_idle`: nobody runs there. */
static __always_inline s32 choose_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				      bool *is_idle)
{
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, is_idle);

	if (*is_idle)
		count(nr_idle);
	else if (nr_cpus > 1 && (wake_flags & SCX_WAKE_FORK))
		cpu = shortest_queue(p, prev_cpu);
	return cpu;
}

static __always_inline bool take_from(s32 cpu)
{
	if (!take_first(cpu))
		return false;
	count(nr_taken);
	return true;
}

/* `cpu` has nothing to run: takes from the longest queue, else from any. */
static __noinline __maybe_unused bool take_from_others(s32 cpu)
{
	s32 most = 0, from = -1, i;

	if (nr_cpus == 1)
		return false;
	bpf_for(i, 0, nr_cpus) {
		s32 nr = i == cpu ? 0 : queue_length(i);

		if (nr > most) {
			most = nr;
			from = i;
		}
	}
	if (from < 0)
		return false;
	if (take_from(from))
		return true;
	bpf_for(i, 0, nr_cpus) {
		if (i != cpu && queue_length(i) > 0 && take_from(i))
			return true;
	}
	return false;
}

/* A turn on `cpu` is over: takes from one other queue if that is longer by two. */
static __always_inline bool even_out(s32 cpu)
{
	struct cpu_state *here = cpu_state(cpu);
	s32 other;

	if (nr_cpus == 1)
		return false;
	other = here->victim++ % nr_cpus;
	return other != cpu && queue_length(other) > queue_length(cpu) + 1 && take_from(other);
}

/* Whether a task in `dsq` has waited too long. */
static __noinline __maybe_unused bool search_queue(u64 dsq, u64 now)
{
	struct task_struct *p;
	u32 nr = scan_start;
	bool found = false;

	bpf_for_each(scx_dsq, p, dsq, 0) {
		struct task_ctx *t = task_ctx(p);

		if (t && t->since_ns && now - t->since_ns > wait_max_ns) {
			found = true;
			break;
		}
		if (++nr >= SCAN_MAX)
			break;
	}
	return found;
}

/* Gives `cpu` the task in `dsq` that has waited too long, if it may run there. */
static __noinline __maybe_unused bool take_from_queue(u64 dsq, s32 cpu, u64 now)
{
	struct task_struct *p;
	u32 nr = scan_start;
	bool found = false;

	bpf_for_each(scx_dsq, p, dsq, 0) {
		struct task_ctx *t = task_ctx(p);

		if (t && t->since_ns && now - t->since_ns > wait_max_ns &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			found = true;
			break;
		}
		if (++nr >= SCAN_MAX)
			break;
	}
	return found;
}

#ifndef SEVERAL_QUEUES
static __always_inline s32 queue_length(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(cpu);
}

static __always_inline bool take_first(s32 cpu)
{
	return scx_bpf_dsq_move_to_local(cpu);
}

static __always_inline bool somebody_waits_too_long(s32 cpu, u64 now)
{
	return search_queue(cpu, now);
}

static __always_inline bool take_who_waits_too_long(s32 cpu, u64 now)
{
	return take_from_queue(cpu, cpu, now);
}
#endif

/*
 * Whether a task that waits for `cpu` has waited too long. Looked for at most 32 times in that
 * time, since it costs a walk along the queue.
 */
static __noinline __maybe_unused bool waits_too_long(s32 cpu)
{
	struct cpu_state *here = cpu_state(cpu);
	u64 now = bpf_ktime_get_ns(), pause = now - here->scanned_ns;

	if (pause < wait_max_ns / 32 || pause < 8 * tick_ns)
		return false;
	here->scanned_ns = now;
	if (!somebody_waits_too_long(cpu, now))
		return false;
	here->rescues = true;
	here->scanned_ns = 0;
	return true;
}

/* Dispatch on `cpu`: gives it the task that has waited too long, if there is one. */
static __noinline __maybe_unused bool rescue(s32 cpu)
{
	cpu_state(cpu)->rescues = false;
	if (!take_who_waits_too_long(cpu, bpf_ktime_get_ns()))
		return false;
	count(nr_rescued);
	return true;
}

static __always_inline bool rescues(s32 cpu)
{
	return cpu_state(cpu)->rescues && rescue(cpu);
}

/* `p` comes to `cpu`, which is its own. */
static __always_inline void comes_to(s32 cpu, struct task_struct *p, struct task_ctx *t)
{
	t->cpu = cpu;
	t->charged_ns = p->se.sum_exec_runtime;
	cpu_state(cpu)->is_busy = true;
	stops_waiting(t);
	count(nr_picked);
}

/* `p` comes to its CPU. Returns the CPU. */
static __always_inline s32 comes(struct task_struct *p, struct task_ctx *t)
{
	s32 cpu = scx_bpf_task_cpu(p);

	comes_to(cpu, p, t);
	return cpu;
}

/* `p` leaves its CPU, and is charged for what it ran since the last tick. */
static __always_inline void leaves(struct task_struct *p, struct task_ctx *t, bool runnable)
{
	charge(p, t);
	cpu_state(t->cpu)->is_busy = false;
	t->comes_back = runnable;
	if (!runnable)
		return;
	if (t->has_yielded)
		count(nr_yielded);
	else if (t->is_over)
		count(nr_expired);
	else
		count(nr_preempted);
}

/* `p` gives up its turn. */
static __always_inline void yields(struct task_struct *p, struct task_ctx *t)
{
	t->has_yielded = true;
	end_turn(p, t);
}

/* One queue for each CPU. */
static __always_inline s32 create_queues(void)
{
	s32 i, error;

	nr_cpus = scx_bpf_nr_cpu_ids();
	if (nr_cpus > NR_CPUS_MAX) {
		scx_bpf_error("%u CPUs; this scheduler has room for %u", nr_cpus, NR_CPUS_MAX);
		return -ENOSPC;
	}
	bpf_for(i, 0, nr_cpus) {
		error = scx_bpf_create_dsq(i, -1);
		if (error)
			return error;
	}
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";

#endif
