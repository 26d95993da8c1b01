/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Layout that the recorder's BPF programs share with the reader (crates/host/src/recorder/ring.rs).
 * Every change here is a change there; a test compares the sizes.
 */
#ifndef SCHEDLAB_RECORDER_H
#define SCHEDLAB_RECORDER_H

/* Most CPUs whose events are kept; events of CPUs beyond are not recorded. */
#define REC_CPUS_MAX 1024
/* Process ids are below 2^22 on every 64-bit kernel (PID_MAX_LIMIT, include/linux/threads.h). */
#define REC_PID_BITS 22
#define REC_PIDS_MAX (1u << REC_PID_BITS)

/* Most rounds of the loop that makes a switch longer (crates/host/src/pace.rs). */
#define REC_JITTER_ROUNDS_MAX 1024

/* Kind of a record. */
#define REC_SWITCH 1
#define REC_WAKEUP 2
#define REC_NEW 3
#define REC_MIGRATE 4
#define REC_LOST 5
#define REC_UNSEEN 6
#define REC_AGO 7
#define REC_OTHER 8

/* How the outgoing task left; the numbers of SwitchOut in crates/model/src/trace.rs. */
#define REC_OUT_IDLE 0
#define REC_OUT_PREEMPTED 1
#define REC_OUT_SLEEPING 3
#define REC_OUT_BLOCKED_IO 4
#define REC_OUT_DEAD 5

/*
 * One event, 16 bytes. `word`, from the least significant bit:
 *   22 bits  first pid  (switch: prev, 0 = none of the run; else: the task; lost: count, saturated)
 *   22 bits  second pid (switch: next; wakeup: the waker, 0 = interrupt; new: the parent;
 *                        migrate: the CPU it leaves)
 *   10 bits  CPU (switch: this one; wakeup, new, migrate: the one the task is put on)
 *    4 bits  how the outgoing task left (switch)
 *    4 bits  kind
 *
 * UNSEEN: this CPU ran `first` (0 = none of the run) though no switch to it was traced; the last
 * one traced was to `second`. An AGO of the same CPU follows: its lower 44 bits are how long ago,
 * in ns, `first` came, by the kernel's own books; 0 where they do not tell.
 *
 * OTHER: a task that is none of the run, of pid `first`, leaves a CPU of the run. The 32 bits above
 * the pid are how long it ran, in ns, saturated.
 */
#define REC_SECOND_SHIFT 22
#define REC_CPU_SHIFT 44
#define REC_OUT_SHIFT 54
#define REC_KIND_SHIFT 58

#endif
