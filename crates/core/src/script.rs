// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of a policy in JavaScript, whose numbers are floating-point: for the page and for the
//! command line.

use schedlab_model::Nanos;
use schedlab_sched::textbook::user::TaskView;

/// Longest turn (ns) that a policy in JavaScript may ask for: 2^53 - 1, 104 days, exact there. A
/// longer one has no end.
pub const QUANTUM_NS_MAX: f64 = 9_007_199_254_740_991.0;

/// What changes of `task`, and the time `now`: nice, prio, cpu, release, CPU time, now.
pub fn numbers(task: &TaskView, now: Nanos) -> [f64; 6] {
    [
        f64::from(task.nice),
        f64::from(task.prio),
        f64::from(task.cpu),
        task.released_ns as f64,
        task.ran_ns as f64,
        now as f64,
    ]
}

/// The length of a turn from a policy's answer; `None`: it has no end.
pub fn quantum(ns: f64) -> Option<Nanos> {
    (ns > 0.0 && ns <= QUANTUM_NS_MAX).then_some(ns as Nanos)
}
