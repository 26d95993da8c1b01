/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds: see rounds.h.
 *
 * The common count stays at the beginning of the round until all CPUs have
 * had their stretch. Only the running CPU sees its own time, so nothing that
 * other threads do (run timers, skip idle time) depends on how far a round is.
 *
 * - Who goes first is drawn from the count: it does not depend on the host,
 *   and survives snapshots. Of two CPUs each is first in half of the rounds.
 * - An interrupt to a sleeping CPU wakes it at the sender's time. An
 *   interrupt to a CPU whose time is behind is kept back until that CPU gets
 *   there. A CPU that is ahead gets it late, by less than a round.
 * - A CPU that runs while all others sleep is not cut into stretches: it runs
 *   to the next timer, or until it wakes another CPU.
 * - Kicks, which other threads may cause at any time of the host, neither
 *   shorten nor end a stretch.
 */
#include "qemu/osdep.h"
#include "hw/core/cpu.h"
#include "exec/cpu-common.h"
#include "qemu/main-loop.h"
#include "qemu/seqlock.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/cpu-timers.h"
#include "system/cpu-timers-internal.h"
#include "tcg-accel-ops.h"
#include "rounds.h"

static int64_t quantum;         /* length of a round, ns */
static int64_t length;          /* length of this round, instructions */
static bool under_way;
static bool is_alone;           /* all CPUs but one slept when it began */

void rounds_configure(int64_t quantum_ns)
{
    quantum = quantum_ns;
}

bool rounds_are_on(void)
{
    return quantum > 0;
}

bool rounds_is_under_way(void)
{
    return under_way;
}

bool rounds_account(CPUState *cpu, int64_t executed)
{
    if (!under_way) {
        return false;
    }
    cpu->round_at += executed;
    return true;
}

int64_t rounds_ahead(CPUState *cpu)
{
    return under_way ? cpu->round_at : 0;
}

static bool is_awake(CPUState *cpu)
{
    return !cpu->halted || cpu_has_work(cpu);
}

static bool is_ready(CPUState *cpu)
{
    return !cpu->stopped && !cpu->unplug && is_awake(cpu) &&
           cpu->round_at < length;
}

bool rounds_hold_interrupt(CPUState *cpu, int mask)
{
    CPUState *sender = current_cpu;

    if (!sender || !under_way || !sender->running || sender == cpu) {
        return false;
    }
    icount_update(sender);
    if (!is_awake(cpu)) {
        cpu->round_at = MAX(cpu->round_at, sender->round_at);
        if (is_alone) {
            cpu_exit(sender);
        }
        return false;
    }
    if (cpu->round_at >= sender->round_at) {
        return false;
    }
    if (!cpu->round_held || cpu->round_held_at < sender->round_at) {
        cpu->round_held_at = sender->round_at;
    }
    cpu->round_held |= mask;
    return true;
}

/* Raises what was kept back, if the CPU has reached that time or sleeps. */
static void release(CPUState *cpu)
{
    int mask = cpu->round_held;

    if (!mask || (cpu->round_at < cpu->round_held_at && is_awake(cpu))) {
        return;
    }
    cpu->round_at = MAX(cpu->round_at, cpu->round_held_at);
    cpu->round_held = 0;
    tcg_handle_interrupt(cpu, mask);
}

static void execute(CPUState *cpu, int64_t nr_instructions)
{
    int64_t low = MIN(0xffff, nr_instructions);
    int why;

    cpu->icount_budget = nr_instructions;
    cpu->neg.icount_decr.u16.low = low;
    cpu->icount_extra = nr_instructions - low;
    bql_unlock();
    why = tcg_cpu_exec(cpu);
    icount_update(cpu);
    cpu->neg.icount_decr.u16.low = 0;
    cpu->icount_extra = 0;
    cpu->icount_budget = 0;
    if (why == EXCP_ATOMIC) {
        cpu_exec_step_atomic(cpu);
    }
    bql_lock();
    if (why == EXCP_DEBUG) {
        cpu_handle_guest_debug(cpu);
    }
}

static void run_stretch(CPUState *cpu)
{
    while (is_ready(cpu)) {
        int64_t until = length;

        if (cpu->round_held) {
            until = MIN(until, cpu->round_held_at);
        }
        if (!cpu_work_list_empty(cpu)) {
            process_queued_cpu_work(cpu);
        }
        execute(cpu, until - cpu->round_at);
        release(cpu);
        if (is_alone) {
            /* It may have set a timer or woken a CPU: look again. */
            length = cpu->round_at;
        }
    }
}

/* Instructions until the next timer of the virtual clock. */
static int64_t to_next_timer(void)
{
    int64_t ns = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL,
                                            QEMU_TIMER_ATTR_ALL);

    if (ns < 0 || ns > INT32_MAX) {
        ns = INT32_MAX;
    }
    return MAX(1, icount_round(ns));
}

/* The bits of a number, mixed (the finalizer of splitmix64). */
static uint64_t mixed(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* All CPUs in an order that is drawn from the count: a start, a direction. */
static GPtrArray *in_order(void)
{
    static GPtrArray *all, *ordered;
    uint64_t draw = mixed(icount_get_raw());
    unsigned start, nth;
    bool is_down = draw >> 63;
    CPUState *cpu;

    if (!all) {
        all = g_ptr_array_new();
        ordered = g_ptr_array_new();
    }
    g_ptr_array_set_size(all, 0);
    g_ptr_array_set_size(ordered, 0);
    CPU_FOREACH(cpu) {
        g_ptr_array_add(all, cpu);
    }
    start = (draw >> 32 & 0x7fffffff) % all->len;
    for (nth = 0; nth < all->len; nth++) {
        unsigned step = is_down ? all->len - nth : nth;

        cpu = g_ptr_array_index(all, (start + step) % all->len);
        g_ptr_array_add(ordered, cpu);
    }
    return ordered;
}

void rounds_run(CPUState **current)
{
    GPtrArray *cpus = in_order();
    unsigned nth, nr_awake = 0;
    int64_t done = 0;
    CPUState *cpu;
    bool again;

    for (nth = 0; nth < cpus->len; nth++) {
        cpu = g_ptr_array_index(cpus, nth);
        cpu->round_at = 0;
        nr_awake += cpu_can_run(cpu) && is_awake(cpu);
    }
    if (!nr_awake) {
        return;
    }
    is_alone = nr_awake == 1;
    length = to_next_timer();
    if (!is_alone) {
        length = MIN(length, MAX(1, icount_round(quantum)));
    }
    under_way = true;
    do {
        again = false;
        for (nth = 0; nth < cpus->len; nth++) {
            cpu = g_ptr_array_index(cpus, nth);
            if (is_ready(cpu)) {
                qatomic_set_mb(current, cpu);
                current_cpu = cpu;
                run_stretch(cpu);
                again = true;
            }
        }
    } while (again);
    under_way = false;
    for (nth = 0; nth < cpus->len; nth++) {
        cpu = g_ptr_array_index(cpus, nth);
        done = MAX(done, cpu->round_at);
    }
    seqlock_write_lock(&timers_state.vm_clock_seqlock,
                       &timers_state.vm_clock_lock);
    qatomic_set_i64(&timers_state.qemu_icount,
                    timers_state.qemu_icount + done);
    seqlock_write_unlock(&timers_state.vm_clock_seqlock,
                         &timers_state.vm_clock_lock);
}
