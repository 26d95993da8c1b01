/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Staircase Deadline 0.48. Twin of `sd-0.48` in crates/sched/src/staircase.
 *
 * A nice value says in how many of 40 slots a task may run in a rotation, and for how long in each.
 * The best slot that holds a task runs, its tasks in turn; who has used its time in a slot goes
 * down to its next one, and after the last one to the next rotation, which begins when nothing is
 * left in this one. A task that sleeps keeps its slot and its time. A waking task drives out one in
 * a worse slot. SCHED_BATCH has the slots from its own priority on, SCHED_IDLE runs when nobody
 * else does.
 *
 * A CPU's two arrays are one queue here, ordered by rotation, slot and arrival: the expired array
 * is what waits for the rotation after this one.
 *
 * What differs from the model: a parent is charged at fork for what the kernel has booked by then;
 * SCHED_IDLE has turns of the quota of nice 19, in the model of one tick at nice 0; wake-ups are
 * never synchronous; balancing is that of queue.bpf.h, and a CPU that is asked for
 * work several times while it idles begins several rotations.
 *
 * Source: the patch 2.6.22-ck1 (Con Kolivas, 2007) to Linux 2.6.22, kernel/sched.c.
 */
#define TASK_FIELDS                                                                                \
	s64 left_us;       /* of its time in a slot; below 0 after an overrun */                   \
	s64 quota_us;      /* its time in a slot */                                                \
	u64 rotation;      /* of its CPU when it was last queued */                                \
	u64 turn;          /* rotation in which it may run */                                      \
	u64 used;          /* slots that it has had in this rotation */                            \
	u64 key;           /* where it waits once its turn is over */                              \
	s32 parent_pid;    /* whose time it shares */                                              \
	u8 user;           /* nice + 20 */                                                         \
	u8 slot;                                                                                   \
	u8 array;          /* which of the two, or NO_ARRAY */                                     \
	u8 kind;                                                                                   \
	bool is_first_time; /* it still runs on the time that its parent gave it */                \
	bool is_new;        /* it has not been queued yet */
#define COUNTERS                                                                                   \
	COUNTER(nr_rotations, "rotations begun");                                                  \
	COUNTER(nr_slots, "times a task went down to its next slot");                              \
	COUNTER(nr_driven_out, "times a waking task drove out one in a worse slot");
#include "queue.bpf.h"

#define SLOTS 40
#define NO_ARRAY 2
/* Rank of what waits for the next rotation, added to its slot. */
#define RANK_EXPIRED 64
#define RANK_IDLE 255
/* Rotations ahead at which tasks of SCHED_IDLE wait. */
#define IDLE_AHEAD 4096
#define SCHED_BATCH 3
#define SCHED_IDLE 5
/* Static priority of nice -20. */
#define PRIO_FIRST 100

enum kind {
	NORMAL,
	BATCH,
	IDLE,
};

OPTION(u32, rr_interval_ms, 0, "0..5000", "rr_interval",
       "time in a slot in ms at nice 0; 0: 6 times 1 + log2 of the number of CPUs");
OPTION(u32, interactive, 1, "choice:no,yes", "",
       "whether only its own history bounds the slots of a task that wakes");

struct rotation {
	u64 number;
	u8 active;           /* which of the two arrays */
	u8 best_static[2];   /* best user priority that has run from each */
	u8 reached[SLOTS];   /* slot that each user priority has got to */
} __attribute__((aligned(64)));

struct rotation rotations[NR_CPUS_MAX];
/* Slots that each user priority may not use, a bit each. */
u64 rows[SLOTS];
s64 interval_ms;

static __always_inline struct rotation *rotation_of(s32 cpu)
{
	return &rotations[(u32)cpu & (NR_CPUS_MAX - 1)];
}

static __always_inline bool is_later(u64 a, u64 b)
{
	return (s64)(a - b) > 0;
}

static __always_inline u32 rank_of(struct task_ctx *t)
{
	if (t->kind == IDLE)
		return RANK_IDLE;
	return t->slot + (is_later(t->turn, rotation_of(t->cpu)->number) ? RANK_EXPIRED : 0);
}
#include "ranked.bpf.h"

static __always_inline u64 row_of(struct task_ctx *t)
{
	if (t->kind == BATCH)
		return (1ULL << (t->user & 63)) - 1;
	return t->user < SLOTS ? rows[t->user] : 0;
}

/*
 * Number of the lowest bit that is set. BPF has no instruction for it, and the verifier follows
 * both ways of each branch, so it is looked up: the product of a power of two and this constant
 * (a de Bruijn sequence) has another number in its upper six bits for each power.
 */
static const u8 bit_numbers[64] = {
	0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
	62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
	46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
};

static __always_inline u8 lowest_bit(u64 word)
{
	return bit_numbers[((word & -word) * 0x03f79d71b4cb0a89ULL) >> 58];
}

/* The first slot from `start` on that is not `taken`; SLOTS if there is none. */
static __always_inline u8 first_free(u64 taken, u8 start)
{
	u64 free = ~(taken | ((1ULL << (start & 63)) - 1)) & ((1ULL << SLOTS) - 1);

	return free ? lowest_bit(free) : SLOTS;
}

static __always_inline void begin_levels(struct rotation *rq)
{
	u32 i;

	rq->best_static[0] = rq->best_static[1] = SLOTS - 1;
	for (i = 0; i < SLOTS; i++)
		rq->reached[i] = 0;
	count(nr_rotations);
}

static __always_inline void begin_rotation(struct task_ctx *t, u64 number)
{
	t->used = 0;
	t->rotation = number;
	t->left_us = t->quota_us;
	t->is_first_time = false;
}

static __always_inline void queue_expired(struct rotation *rq, struct task_ctx *t)
{
	u8 expired = (1 - rq->active) & 1;

	begin_rotation(t, rq->number);
	if (t->user < rq->best_static[expired])
		rq->best_static[expired] = t->user;
	t->array = expired;
	t->turn = rq->number + 1;
	t->slot = first_free(row_of(t), 0);
}

/* The next slot of `t` in this rotation; SLOTS if it has none. */
static __always_inline u8 next_slot(struct rotation *rq, struct task_ctx *t)
{
	u8 active = rq->active & 1, best = rq->best_static[active], start = 0;
	s32 i;

	if (t->user > rq->best_static[1 - active])
		return SLOTS;
	if (t->user < best) {
		if (t->kind != BATCH)
			rq->best_static[active] = t->user;
	} else {
		if (!interactive && t->user < SLOTS)
			start = rq->reached[t->user];
		bpf_for(i, 0, SLOTS) {
			if (t->user > best && i >= best && i <= t->user && rq->reached[i] > start)
				start = rq->reached[i];
		}
	}
	return first_free(row_of(t) | t->used, start);
}

/* Where `t` is queued, by what it has had of this rotation. Global, so that the verifier reads it
 * once. */
__noinline int place_task(struct task_ctx *t, s32 cpu)
{
	struct rotation *rq = rotation_of(cpu);
	u8 active = rq->active & 1, slot;
	bool takes_part;

	if (!t)
		return 0;
	if (t->kind == IDLE) {
		if (t->left_us <= 0)
			t->left_us += t->quota_us;
		t->turn = rq->number + IDLE_AHEAD;
		return 0;
	}
	takes_part = t->rotation == rq->number;
	if (takes_part && t->array == 1 - active) {
		queue_expired(rq, t);
		return 0;
	}
	t->turn = rq->number;
	if (takes_part && t->array == active) {
		if (t->left_us > 0)
			return 0;
		t->left_us = t->quota_us;
	} else {
		begin_rotation(t, rq->number);
	}
	t->is_first_time = false;
	t->array = active;
	slot = next_slot(rq, t);
	if (slot >= SLOTS) {
		queue_expired(rq, t);
		return 0;
	}
	t->used |= 1ULL << slot;
	t->slot = slot;
	count(nr_slots);
	return 0;
}

/* From another CPU: keeps its rotation if it took part in the present one there. */
static __always_inline void come_to(struct task_ctx *t, s32 cpu)
{
	struct rotation *from = rotation_of(t->cpu), *here = rotation_of(cpu);

	if (t->cpu == cpu)
		return;
	if (t->rotation == from->number && t->array != NO_ARRAY) {
		t->array = t->array == from->active ? here->active : 1 - here->active;
		t->rotation = here->number;
	} else {
		t->array = NO_ARRAY;
		t->rotation = 0;
	}
	t->cpu = cpu;
}

/* The time of `t` in its slot is over: what it ran over is taken off the next one. */
static __always_inline void entitlement_is_over(struct task_ctx *t, s32 cpu)
{
	s64 overrun = t->left_us;

	place_task(t, cpu);
	if (t->kind != IDLE)
		t->left_us += overrun;
}

/* `t`, which has slots, is next: a new rotation begins if it waited for that. */
static __always_inline void reach_rotation(struct task_ctx *t, struct rotation *rq)
{
	if (!is_later(t->turn, rq->number))
		return;
	rq->active = (1 - rq->active) & 1;
	rq->number++;
	begin_levels(rq);
}

/* `t` is next, but ran over by more than its time in this slot: on to the one after it. */
static __always_inline void walk_on(struct task_ctx *t, s32 cpu)
{
	if (t->kind != IDLE)
		reach_rotation(t, rotation_of(cpu));
	entitlement_is_over(t, cpu);
}

/* Where `t` waits for `cpu`: by rotation, slot and arrival. */
static __always_inline u64 key_of(struct task_ctx *t, s32 cpu, bool at_head)
{
	return t->turn << (PLACE_BITS + 6) | (u64)t->slot << PLACE_BITS | next_place(cpu, at_head);
}

/* The time of `t`, which runs, is over: it has its place in the queue from now on. */
static __always_inline void takes_place(struct task_ctx *t, s32 cpu)
{
	entitlement_is_over(t, cpu);
	t->key = key_of(t, cpu, false);
}

/* Where the first waits that waits for `cpu` and may run there. */
static __noinline u64 first_key(s32 cpu)
{
	struct task_struct *p;
	u64 key = ~0ULL;
	u32 nr = scan_start;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (++nr >= SCAN_MAX)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		key = p->scx.dsq_vtime;
		break;
	}
	return key;
}

/* Whether the first that waits for `cpu` had no time left and has walked on. */
static __noinline bool first_walks_on(s32 cpu)
{
	struct task_struct *p;
	bool walks = false;
	u32 nr = scan_start;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *t;

		if (++nr >= SCAN_MAX)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_ctx(p);
		if (t && t->left_us <= 0) {
			walk_on(t, cpu);
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, key_of(t, cpu, false));
			walks = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, cpu, 0);
		}
		break;
	}
	return walks;
}

/*
 * Whether one that waits for `cpu` comes before the task that runs, which is `t` and may go on.
 * Whoever is first of all and has no time left walks on, slot by slot.
 *
 * The answer has one place in memory: clang 19 merges the values of several returns from the loop
 * with arithmetic on whatever a register holds, which the verifier refuses where that is a pointer.
 */
static __noinline bool gives_way(s32 cpu, struct task_ctx *t)
{
	volatile bool gives = false;
	s32 i;

	bpf_for(i, 0, SLOTS) {
		if (t->is_over ? first_key(cpu) < t->key : is_outranked(cpu, rank_of(t), false)) {
			gives = !first_walks_on(cpu);
			if (gives)
				break;
		} else if (t->left_us <= 0) {
			walk_on(t, cpu);
			t->key = key_of(t, cpu, false);
		} else {
			break;
		}
	}
	return gives;
}

/* `t` is picked. */
static __always_inline void enter_slot(struct task_ctx *t, s32 cpu)
{
	struct rotation *rq = rotation_of(cpu);
	u8 active;

	if (t->kind == IDLE)
		return;
	reach_rotation(t, rq);
	active = rq->active & 1;
	if (t->user < rq->best_static[active])
		rq->best_static[active] = t->user;
	if (t->user < SLOTS && t->slot > rq->reached[t->user])
		rq->reached[t->user] = t->slot;
	t->rotation = rq->number;
	t->turn = rq->number;
	t->array = active;
}

static __always_inline void charge_us(struct task_struct *p, struct task_ctx *t)
{
	t->left_us -= charge(p, t) / NSEC_PER_USEC;
}

/*
 * Charges a task that leaves its CPU, or that its CPU picks again. The kernel does not believe in a
 * time of 0 and charges 1 us: so much costs a switch at the very time of a tick, which has charged
 * everything already.
 */
static __always_inline void charge_at_switch(struct task_struct *p, struct task_ctx *t)
{
	u64 used = charge(p, t);

	t->left_us -= (used ?: NSEC_PER_USEC) / NSEC_PER_USEC;
}

/* Takes over nice value and policy. */
static __always_inline void adopt(struct task_struct *p, struct task_ctx *t)
{
	s64 nice = p->policy == SCHED_IDLE ? 19 : p->static_prio - PRIO_FIRST - 20;

	t->kind = p->policy == SCHED_IDLE ? IDLE : p->policy == SCHED_BATCH ? BATCH : NORMAL;
	t->user = nice + 20;
	if (nice < -6)
		t->quota_us = interval_ms * (u64)(nice * nice) / 40;
	else if (nice <= 0)
		t->quota_us = interval_ms;
	else
		t->quota_us = interval_ms >= 2 ? (u64)interval_ms / 2 : 1;
	t->quota_us *= 1000;
}

s32 BPF_STRUCT_OPS(sd_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool is_idle = false;
	s32 cpu = choose_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle && t) {
		come_to(t, cpu);
		place_task(t, cpu);
		new_turn(p, t, SLICE_LONG);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_LONG, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(sd_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *t = task_ctx(p);
	bool comes, at_head, has_place;
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t || serve_kthread(p, t, enq_flags))
		return;
	comes = arrives(t);
	at_head = is_interrupted(t);
	has_place = !comes && t->is_over && t->cpu == cpu;
	come_to(t, cpu);
	/* One that is driven out between two ticks may have no time left: it goes down at once. */
	if (at_head && t->left_us <= 0) {
		takes_place(t, cpu);
	} else if (!has_place) {
		place_task(t, cpu);
		t->key = key_of(t, cpu, at_head);
	}
	new_turn(p, t, SLICE_LONG);
	starts_waiting(p, t);
	scx_bpf_dsq_insert_vtime(p, cpu, SLICE_LONG, t->key, enq_flags);
	if (comes)
		drive_out(cpu, rank_of(t));
	/* A new process, not a thread, makes its parent's CPU choose anew. */
	if (t->is_new && p->pid == p->tgid)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	t->is_new = false;
	call_idle_cpu(p);
}

void BPF_STRUCT_OPS(sd_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *t;
	s32 i;

	if (rescues(cpu))
		return;
	if (!is_runnable(prev)) {
		bpf_for(i, 0, SLOTS) {
			if (!first_walks_on(cpu))
				break;
		}
		if (!scx_bpf_dsq_move_to_local(cpu) && !take_from_others(cpu)) {
			rotation_of(cpu)->number++;
			begin_levels(rotation_of(cpu));
		}
		return;
	}
	t = task_ctx(prev);
	if (!t)
		return;
	if (gives_way(cpu, t) && scx_bpf_dsq_move_to_local(cpu)) {
		if (!t->is_over)
			count(nr_driven_out);
		return;
	}
	if (t->is_over) {
		if (even_out(cpu))
			return;
		count(nr_continued);
		charge_at_switch(prev, t);
		new_turn(prev, t, SLICE_LONG);
	} else {
		charge_at_switch(prev, t);
	}
	enter_slot(t, cpu);
	cpu_state(cpu)->rank = rank_of(t);
	set_slice(prev, SLICE_LONG);
}

void BPF_STRUCT_OPS(sd_tick, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t)
		return;
	charge_us(p, t);
	if (t->left_us > 0) {
		if (waits_too_long(cpu)) {
			t->key = key_of(t, cpu, false);
			end_turn(p, t);
		}
		return;
	}
	takes_place(t, cpu);
	cpu_state(cpu)->rank = rank_of(t);
	end_turn(p, t);
}

void BPF_STRUCT_OPS(sd_running, struct task_struct *p)
{
	struct task_ctx *t = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t)
		return;
	if (t->cpu != cpu) {
		come_to(t, cpu);
		place_task(t, cpu);
	}
	comes(p, t);
	enter_slot(t, cpu);
	cpu_state(cpu)->rank = p->flags & PF_KTHREAD ? 0 : rank_of(t);
}

void BPF_STRUCT_OPS(sd_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = task_ctx(p);

	if (!t)
		return;
	charge_at_switch(p, t);
	leaves(p, t, runnable);
}

bool BPF_STRUCT_OPS(sd_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *t = task_ctx(from);
	s32 cpu = scx_bpf_task_cpu(from);

	if (!t || to || scx_bpf_dsq_nr_queued(cpu) <= 0)
		return false;
	if (t->kind != IDLE)
		queue_expired(rotation_of(cpu), t);
	t->key = key_of(t, cpu, false);
	yields(from, t);
	return false;
}

void BPF_STRUCT_OPS(sd_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *t = task_ctx(p);

	if (t)
		adopt(p, t);
}

s32 BPF_STRUCT_OPS(sd_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_struct *parent = args->fork ? bpf_get_current_task_btf() : NULL;
	struct task_ctx *t = task_ctx_new(p), *from = parent ? task_ctx(parent) : NULL;

	if (!t)
		return -ENOMEM;
	adopt(p, t);
	t->array = NO_ARRAY;
	t->is_new = args->fork;
	t->left_us = t->quota_us;
	t->cpu = scx_bpf_task_cpu(p);
	if (!from || from->kind != t->kind || from->user != t->user)
		return 0;
	t->slot = from->slot;
	t->array = from->array;
	t->rotation = from->rotation;
	t->turn = from->turn;
	t->used = from->used;
	t->cpu = from->cpu;
	t->left_us = 0;
	if (from->left_us > 0) {
		from->left_us = (u64)from->left_us / 2;
		t->left_us = from->left_us ? from->left_us : 1;
		t->is_first_time = true;
		t->parent_pid = parent->pid;
	}
	return 0;
}

/* A child that never began a time of its own gives the rest back. */
void BPF_STRUCT_OPS(sd_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *t = task_ctx(p), *to;
	struct task_struct *parent;

	if (!t || !t->is_first_time || t->left_us <= 0)
		return;
	parent = bpf_task_from_pid(t->parent_pid);
	if (!parent)
		return;
	to = task_ctx(parent);
	if (to && to->cpu == t->cpu) {
		to->left_us += t->left_us;
		if (to->left_us > to->quota_us)
			to->left_us = to->quota_us;
	}
	bpf_task_release(parent);
}

static __always_inline void rows_begin(void)
{
	s32 user, k;

	bpf_for(user, 0, SLOTS) {
		u64 row = (1ULL << SLOTS) - 1;

		bpf_for(k, 0, SLOTS) {
			u32 at = (u32)k * (1600 / (SLOTS - (u32)user));

			if (at <= 1560)
				row &= ~(1ULL << (SLOTS - 1 - at / SLOTS));
		}
		rows[user] = row;
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sd_init)
{
	s32 error = create_queues(), cpu;
	u32 log = 0, i;

	rows_begin();
	for (i = 1; i < 11; i++)
		log += nr_cpus >> i != 0;
	interval_ms = rr_interval_ms ? rr_interval_ms : 6 * (1 + log);
	bpf_for(cpu, 0, nr_cpus) {
		rotation_of(cpu)->number = 1;
		begin_levels(rotation_of(cpu));
	}
	return error;
}

void BPF_STRUCT_OPS(sd_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

SCX_OPS_DEFINE(sd_ops,
	       .select_cpu = (void *)sd_select_cpu,
	       .enqueue = (void *)sd_enqueue,
	       .dispatch = (void *)sd_dispatch,
	       .tick = (void *)sd_tick,
	       .running = (void *)sd_running,
	       .stopping = (void *)sd_stopping,
	       .yield = (void *)sd_yield,
	       .set_weight = (void *)sd_set_weight,
	       .init_task = (void *)sd_init_task,
	       .exit_task = (void *)sd_exit_task,
	       .init = (void *)sd_init,
	       .exit = (void *)sd_exit,
	       .flags = QUEUE_OPS_FLAGS,
	       .name = "sd");
