/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Multilevel feedback queue. Twin of `mlfq` in crates/sched/src/mlfq.rs, with the same options.
 *
 * A better queue preempts; whom it drives out returns to the head of its queue with the rest of its
 * quantum. Using up a quantum leads to the tail of the next queue, from the last one to its own
 * tail. Who blocks or yields before that stays in its queue and gets a whole quantum next time
 * (accounting turn) or goes on with what was left (allotment). At each multiple of the boost
 * interval every task moves to queue 0, waiting ones in their order: an entry remembers the number
 * of boosts before it, and entries of earlier ones sort before all of later ones.
 *
 * What differs from the model: quanta end at ticks, and a boost reaches a running task at its next
 * tick; boosts are counted from when the scheduler was loaded; a waking task drives out only the
 * one on the CPU that it wakes on.
 *
 * Sources: Silberschatz, Galvin, Gagne, "Operating System Concepts"; Arpaci-Dusseau, "Operating
 * Systems: Three Easy Pieces", chapter 8.
 */
#define TASK_FIELDS                                                                                \
	u64 used_ns;     /* of its quantum, in turns that have ended */                            \
	u64 ran_ns;      /* in this turn */                                                        \
	u64 epoch;       /* boosts up to when its queue was set, plus 1 */                         \
	u32 queue;                                                                                 \
	bool is_settled; /* this turn's end has been booked */
#define COUNTERS                                                                                   \
	COUNTER(nr_fallen, "quanta used up that led to a worse queue");                            \
	COUNTER(nr_boosted, "tasks found to have been boosted");                                   \
	COUNTER(nr_driven_out, "times a waking task drove out one of a worse queue");
#include "queue.bpf.h"

#define QUEUES_MAX 8
/* Boosts between the oldest entry that may wait and the newest. */
#define EPOCH_SPAN 0x7000

#define QUANTUM(n)                                                                                 \
	OPTION(u64, quantum_##n##_ns, 0, "0s..3600s", "quantum-" #n,                               \
	       "quantum of this queue; 0: twice that of the queue above")

OPTION(u32, queues, 3, "1..8", "", "number of queues");
OPTION(u64, quantum_0_ns, 8000000, "100us..3600s", "quantum-0", "quantum of queue 0");
QUANTUM(1);
QUANTUM(2);
QUANTUM(3);
QUANTUM(4);
QUANTUM(5);
QUANTUM(6);
QUANTUM(7);
OPTION(u32, last_queue, 0, "choice:rr,fcfs", "last-queue",
       "the last queue is round robin, or first come, first served");
OPTION(u64, boost_ns, 1000000000, "0s..3600s", "",
       "interval at which every task moves to queue 0, at least 1 ms; 0: never");
OPTION(u32, entry, 0, "0..7", "", "queue of new tasks; at most the last queue");
OPTION(u32, accounting, 0, "choice:turn,allotment", "",
       "a quantum counts for one turn, or for all stays in the queue together");

/* Quantum of each queue; SLICE_LONG: first come, first served. */
u64 quanta[QUEUES_MAX];
u64 started_ns;

static __always_inline u64 epoch_now(void)
{
	return boost_ns ? (bpf_ktime_get_ns() - started_ns) / boost_ns + 1 : 1;
}

static __always_inline u32 rank_of(struct task_ctx *t)
{
	return t->epoch == epoch_now() ? t->queue : 0;
}
#include "ranked.bpf.h"

static __always_inline u64 quantum_of(u32 queue)
{
	return quanta[queue & (QUEUES_MAX - 1)];
}

/* Makes up for a boost since the task's queue was set; returns whether there was one. */
static __always_inline bool settle(struct task_ctx *t)
{
	u64 epoch = epoch_now();

	if (t->epoch == epoch)
		return false;
	t->epoch = epoch;
	t->queue = 0;
	t->used_ns = 0;
	count(nr_boosted);
	return true;
}

static __always_inline void fall(struct task_ctx *t)
{
	if (t->queue + 1 < queues) {
		t->queue++;
		count(nr_fallen);
	}
	t->used_ns = 0;
}

/* Books the turn of `p`, which ends. */
static __always_inline void settle_turn(struct task_struct *p, struct task_ctx *t, bool blocks)
{
	if (t->is_settled)
		return;
	t->is_settled = true;
	t->ran_ns += charge(p, t);
	if (settle(t))
		return;
	t->used_ns += t->ran_ns;
	if (t->is_over && !t->has_yielded) {
		fall(t);
	} else if (blocks || t->has_yielded) {
		if (!accounting)
			t->used_ns = 0;
		else if (t->used_ns >= quantum_of(t->queue))
			fall(t);
	}
}

/* A turn with what is left of the quantum. */
static __always_inline void begin_turn(struct task_struct *p, struct task_ctx *t)
{
	u64 whole = quantum_of(t->queue);

	new_turn(p, t, whole > t->used_ns ? whole - t->used_ns : 1);
	t->ran_ns = 0;
	t->is_settled = false;
}

s32 BPF_STRUCT_OPS(mlfq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		settle(t);
		begin_turn(p, t);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, t->left_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(mlfq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool comes, at_head;
	s32 cpu = scx_bpf_task_cpu(p);
	u64 epoch;

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	comes = arrives(t);
	at_head = is_interrupted(t);
	settle(t);
	epoch = at_head && !t->queue ? t->epoch - EPOCH_SPAN : t->epoch;
	begin_turn(p, t);
	starts_waiting(p, t);
	scx_bpf_dsq_insert_vtime(p, cpu, t->left_ns,
				 epoch << (PLACE_BITS + 4) | (u64)t->queue << PLACE_BITS |
					 next_place(cpu, at_head),
				 enq_flags);
	if (comes)
		drive_out(cpu, t->queue);
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(mlfq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;

	if (rescues(cpu))
		return;
	if (!is_runnable(prev)) {
		if (!scx_bpf_dsq_move_to_local(cpu))
			take_from_others(cpu);
		return;
	}
	t = task_ctx(prev);
	if (!t)
		return;
	if (t->is_over)
		settle_turn(prev, t, false);
	if (is_outranked(cpu, rank_of(t), t->is_over) && scx_bpf_dsq_move_to_local(cpu)) {
		if (!t->is_over)
			count(nr_driven_out);
		return;
	}
	if (t->is_over) {
		if (even_out(cpu))
			return;
		count(nr_continued);
		settle(t);
		begin_turn(prev, t);
	}
	cpu_state(cpu)->rank = t->queue;
	set_slice(prev, t->left_ns ? t->left_ns : 1);
}

void BPF_STRUCT_OPS(mlfq_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u32 queue;
	u64 used;

	if (!t)
		return;
	t->ran_ns += charge(p, t);
	if (ends_now(t->left_ns) || waits_too_long(cpu)) {
		end_turn(p, t);
		return;
	}
	queue = t->queue;
	used = t->used_ns;
	if (!settle(t))
		return;
	cpu_state(cpu)->rank = 0;
	if (!queue) {
		/* It is where a boost leads, and goes on with its quantum. */
		t->used_ns = used;
		return;
	}
	begin_turn(p, t);
	set_slice(p, t->left_ns);
}

void BPF_STRUCT_OPS(mlfq_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	cpu_state(comes(p, t))->rank = p->flags & PF_KTHREAD ? 0 : rank_of(t);
	/* A boost while it waited: it has a whole quantum of queue 0. */
	if (settle(t)) {
		begin_turn(p, t);
		set_slice(p, t->left_ns);
	}
}

void BPF_STRUCT_OPS(mlfq_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	settle_turn(p, t, !runnable);
	leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(mlfq_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);

	if (t && !to)
		yields(from, t);
	return false;
}

s32 BPF_STRUCT_OPS(mlfq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *t = task_ctx_new(p);

	if (!t)
		return -ENOMEM;
	t->queue = entry < queues ? entry : queues - 1;
	t->epoch = epoch_now();
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(mlfq_init)
{
	const u64 set[QUEUES_MAX] = { quantum_0_ns, quantum_1_ns, quantum_2_ns, quantum_3_ns,
				      quantum_4_ns, quantum_5_ns, quantum_6_ns, quantum_7_ns };
	u64 above = 0;
	u32 i;

	if (boost_ns && boost_ns < NSEC_PER_MSEC) {
		scx_bpf_error("boost is %llu ns; it takes 0 or at least 1 ms", boost_ns);
		return -EINVAL;
	}
	for (i = 0; i < QUEUES_MAX; i++) {
		above = set[i] ? set[i] : 2 * above;
		if (above > SLICE_LONG)
			above = SLICE_LONG;
		quanta[i] = above;
	}
	if (last_queue)
		quanta[(queues - 1) & (QUEUES_MAX - 1)] = SLICE_LONG;
	started_ns = bpf_ktime_get_ns();
	return create_queues();
}

void BPF_STRUCT_OPS(mlfq_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(mlfq_ops,
	       .select_cpu = (void *)mlfq_select_cpu,
	       .enqueue = (void *)mlfq_enqueue,
	       .dispatch = (void *)mlfq_dispatch,
	       .tick = (void *)mlfq_tick,
	       .running = (void *)mlfq_running,
	       .stopping = (void *)mlfq_stopping,
	       .yield = (void *)mlfq_yield,
	       .init_task = (void *)mlfq_init_task,
	       .init = (void *)mlfq_init,
	       .exit = (void *)mlfq_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "mlfq");
