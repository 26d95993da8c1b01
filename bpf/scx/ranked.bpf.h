/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Queues in an order of their own: a task waits at a key, the least key runs next, equal keys in
 * the order in which they came. The rank of a task is the part of the key that decides whether a
 * waking task drives out the one that runs, and whether that one goes on when asked: a lower rank
 * is better.
 *
 * The running task competes: ops.dispatch is called before it is queued again, so what it would
 * wait at is compared with the head of the queue there.
 *
 * A scheduler defines rank_of(), the rank of a task as of now, before it includes this file.
 */
#ifndef SCHEDLAB_RANKED_BPF_H
#define SCHEDLAB_RANKED_BPF_H

/* Places in a list: tails count up from the middle, heads down. Room for half a year of a million
 * of them each second. */
#define PLACE_BITS 44
#define PLACE_MIDDLE (1ULL << (PLACE_BITS - 1))

struct places {
	u64 nr_tails;
	u64 nr_heads;
} __attribute__((aligned(64)));

struct places places[NR_CPUS_MAX];

/* The next place at the tail, or head, of a list of `cpu`. */
static __always_inline u64 next_place(s32 cpu, bool at_head)
{
	struct places *of_cpu = &places[(u32)cpu & (NR_CPUS_MAX - 1)];

	return at_head ? PLACE_MIDDLE - ++of_cpu->nr_heads : PLACE_MIDDLE + of_cpu->nr_tails++;
}

/* Whether a task in the queue of `cpu` that may run there ranks better than `rank`, or at least
 * as well if `ties_win`. */
static __noinline __maybe_unused bool is_outranked(s32 cpu, u32 rank, bool ties_win)
{
	struct task_struct *p;
	bool outranked = false;
	u32 nr = scan_start;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *t;

		if (++nr >= SCAN_MAX)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_ctx(p);
		if (t) {
			u32 best = rank_of(t);

			outranked = ties_win ? best <= rank : best < rank;
		}
		break;
	}
	return outranked;
}

/* A task of `rank` waits for `cpu` from now on: it drives out one that ranks worse. */
static __always_inline void drive_out(s32 cpu, u32 rank)
{
	struct cpu_state *there = cpu_state(cpu);

	if (there->is_busy && rank < there->rank)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

#endif
