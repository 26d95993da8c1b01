// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the engine and of the schedulers that it runs. They are one program, since to
//! compile the engine's generic code once for each file took five minutes of processor time.

mod attr_calls;
mod autogroup;
mod bandwidth;
mod canaries;
mod changes;
mod common;
mod conformance;
mod conservation_gaps;
mod deadline;
mod deadline_inherit;
mod deadline_reclaim;
mod ends;
mod exhaustive;
mod explain;
mod fair_server;
mod first_and_last;
mod golden;
mod history_2_4;
mod history_2_6;
mod history_2_6_23;
mod history_2_6_24;
mod hrtick;
mod kernel_threads;
mod known_bugs;
mod large_machines;
mod late_timers;
mod launch;
mod locks;
mod machine;
mod newidle;
mod objects;
mod passed_ticks;
mod queue_costs;
mod random;
mod set_up;
mod staircase;
mod staircase_cpus;
mod tick_and_exit;
mod tune;
mod turns;
mod vectors;
mod wakeup_costs;
mod wrr;
