// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ought to hold and no rule checks, with the reason.

/// A statement without a rule.
#[derive(Clone, Copy, Debug)]
pub struct Unchecked {
    /// What ought to hold.
    pub statement: &'static str,
    /// Why no rule checks it.
    pub reason: &'static str,
}

const fn unchecked(statement: &'static str, reason: &'static str) -> Unchecked {
    Unchecked { statement, reason }
}

const NO_FREQUENCY: &str = "models have no frequencies, and guests do not show load averages";
const ELSEWHERE: &str = "the engine checks it in every run: rule answers";

/// All of them.
pub static UNCHECKED: [Unchecked; 25] = [
    unchecked(
        "A task wakes as soon as what it waits for is there.",
        "a trace does not show what a task waits for, and several may wait for one thing",
    ),
    unchecked(
        "Times of running, waiting and sleeping add up to the life of a task.",
        "they are taken from the same events, so they always do; rule custody checks the events",
    ),
    unchecked(
        "No task of a throttled group runs.",
        "a task runs on until the next tick, from 6.18 on until it returns to user mode; rule \
         quota bounds what the group gets",
    ),
    unchecked(
        "A SCHED_DEADLINE task ends its work before its deadline.",
        "random tasks have no jobs of a known length; rule deadline-served checks the runtime",
    ),
    unchecked(
        "A wake-up moves a task no more often than it must.",
        "the right number is not known: `schedlab diff` compares two schedulers",
    ),
    unchecked(
        "A balanced set of tasks does not move.",
        "three busy tasks on two CPUs must: `schedlab diff` compares two schedulers",
    ),
    unchecked(
        "Equal busy tasks spread until the counts of CPUs differ by at most one.",
        "kernels tolerate an imbalance (imbalance_pct, bugs P14 and P15); rule idle-other-queue \
         checks the case that costs time",
    ),
    unchecked(
        "A tick does not preempt a protected task before its slice ends.",
        "shorter slices, wake-ups and changes of attributes do so by right; rule eevdf-pick \
         checks the pick",
    ),
    unchecked("The last exit leaves empty queues.", "rule counts compares them at every pick"),
    unchecked(
        "Trees are in order, and each subtree has the right minimum.",
        "rules eevdf-pick and least-slice compare what trees answer with a list",
    ),
    unchecked(
        "A virtual runtime rises by the CPU time, divided by the weight.",
        "the check would repeat the model's arithmetic; rule share checks the effect",
    ),
    unchecked(
        "A buddy is a queued task that is not about to leave.",
        "rule eevdf-pick checks that a picked buddy is eligible",
    ),
    unchecked(
        "The lags of a queue add up to zero.",
        "it follows from rule average, which compares each lag with the exact average",
    ),
    unchecked("Utilisation halves in 32 ms of idling at most.", NO_FREQUENCY),
    unchecked(
        "The sum of a load average is zero if and only if the average is.",
        "small sums round to zero; rule load-average checks the range",
    ),
    unchecked(
        "A throttled queue has a timer that releases it.",
        "rule quota-given checks the effect",
    ),
    unchecked(
        "The bitmap of real-time priorities agrees with the lists.",
        "the model has lists only; rules rt-strict and rt-order check the picks",
    ),
    unchecked(
        "The bandwidth of SCHED_DEADLINE tasks is the sum over the admitted ones.",
        "tests of crates/sched/src/deadline check admission and its sums",
    ),
    unchecked(
        "A queue with load is in the list of leaf queues.",
        "models look at all queues: they have no such list",
    ),
    unchecked("A task is queued on the CPU that it belongs to.", ELSEWHERE),
    unchecked("A sleeper that changes its class is queued nowhere.", ELSEWHERE),
    unchecked(
        "The least utilisation asked for is not above the greatest one allowed.",
        "models have no utilisation clamps",
    ),
    unchecked(
        "Counters of the load average survive 2^32 changes.",
        "models have no load average of the machine",
    ),
    unchecked(
        "A feature that should cost latency only, such as DELAY_DEQUEUE, changes no share.",
        "rule share checks both settings: random cases switch features; `schedlab diff --set-b` \
         compares two settings",
    ),
    unchecked(
        "Twice the times, twice the tick: the same shares.",
        "slices do not scale, so shares agree in the long run only, which rule share checks",
    ),
];
