/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds: virtual CPUs that share a thread and an instruction count all
 * execute the same stretch of virtual time before the count goes on.
 *
 * -icount shift=N,...,quantum=NS turns them on.
 */
#ifndef ACCEL_TCG_ROUNDS_H
#define ACCEL_TCG_ROUNDS_H

/* Sets the length of a round in ns; 0 turns rounds off. */
void rounds_configure(int64_t quantum_ns);

/* Whether rounds are on. */
bool rounds_are_on(void);

/* Whether a round is under way. Its value is stable while the BQL is held. */
bool rounds_is_under_way(void);

/* Runs a round. current: where the running CPU is published for kicks. */
void rounds_run(CPUState **current);

/*
 * Credits executed instructions to the CPU's own time within the round.
 * Returns false outside a round: the common count has to be increased.
 */
bool rounds_account(CPUState *cpu, int64_t executed);

/* How far a CPU's own time is ahead of the common count. */
int64_t rounds_ahead(CPUState *cpu);

/*
 * Called before an interrupt is raised. Returns true if the interrupt is kept
 * back until the receiver's own time has reached the sender's.
 */
bool rounds_hold_interrupt(CPUState *cpu, int mask);

#endif
