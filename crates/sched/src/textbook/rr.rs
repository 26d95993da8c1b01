// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round robin: one FIFO queue for all CPUs and a quantum.
//!
//! Source: Silberschatz, Galvin, Gagne, "Operating System Concepts", chapter CPU scheduling. At the
//! end of its quantum the running task goes to the tail; tasks that arrive at that very time are
//! queued before it. If no task waits, it continues with a new quantum. A task that blocks or
//! yields loses the rest of its quantum. The quantum ends at its exact time, whatever the tick; the
//! kernel's own SCHED_RR counts ticks and is another scheduler.

use crate::boundary::options::{Options, Tunable, TunableKind};
use crate::scheduler::{Claims, Make, Scheduler};
use crate::textbook::Global;
use crate::textbook::fcfs::Fifo;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_SEC, NSEC_PER_USEC};
use schedlab_model::{Costs, Nanos, Preempt};

/// Default quantum: Linux's default for SCHED_RR (`RR_TIMESLICE`, include/linux/sched/rt.h).
pub const QUANTUM_DEFAULT: Nanos = 100 * NSEC_PER_MSEC;
/// Shortest allowed quantum: a switch costs more, so nearly no work would be done.
pub const QUANTUM_MIN: Nanos = NSEC_PER_USEC;
/// Longest allowed quantum.
pub const QUANTUM_MAX: Nanos = 3_600 * NSEC_PER_SEC;

/// The tunable `quantum` of every scheduler with one quantum.
pub const QUANTUM: Tunable = Tunable::new(
    "quantum",
    TunableKind::Time { min: QUANTUM_MIN, max: QUANTUM_MAX },
    QUANTUM_DEFAULT,
    "longest stay on a CPU while others wait",
);

/// Registry entry.
pub fn scheduler() -> Scheduler {
    Scheduler {
        name: "rr".into(),
        summary: "round robin: FIFO queue with a quantum".into(),
        source: "Silberschatz, Galvin, Gagne: Operating System Concepts, CPU scheduling".into(),
        leaves_out: "policies, priorities and nice values are ignored".into(),
        claims: Claims {
            work_conserving: true,
            starvation_free: true,
            fair: true,
            needs_burst: false,
        },
        preempt: Preempt::Full,
        costs: Costs::ZERO,
        tunables: vec![QUANTUM],
        digest: None,
        make: Make::new(|options: &Options, machine, _| {
            let quantum = options.get(&QUANTUM.name);
            vec![Box::new(Global::new(Fifo::new("rr", Some(quantum)), machine.nr_cpus()))]
        }),
    }
}
