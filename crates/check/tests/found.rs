// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases that the checker has found, and whose cause is mended: no rule breaks any more.

use schedlab_check::{Case, Subject, Verdict, play};
use schedlab_model::machine::Caches;
use schedlab_model::{Costs, Machine};
use schedlab_sched::registry;
use schedlab_workload::read_rtapp;
use std::sync::Arc;

/// A found case: why it broke a rule, the scheduler, CPUs, ticks a second, the workload.
const FOUND: [(&str, &str, u32, u32, &str); 3] = [
    (
        "a woken task was compared with the running task of another CPU",
        "linux-7.1",
        2,
        250,
        r#"{ "name": "check-4", "global": { "duration": "13ms" },
  "tasks": {
    "a": { "instance": 3, "loop": 1, "run": 5000 },
    "c": { "instance": 2, "dl-runtime": 3000, "loop": 1,
      "iorun": { "direction": "write", "bytes": 4096, "sync": true } },
    "d": { "loop": 1, "run": 4000 } } }"#,
    ),
    (
        "a real-time task was not pushed away from a CPU with a DEADLINE task",
        "linux-7.2",
        2,
        1_000,
        r#"{ "name": "check-701", "global": { "duration": "3ms" },
  "tasks": {
    "a": { "delay": 1, "policy": "SCHED_FIFO", "priority": 1, "loop": 1 },
    "c": { "policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-deadline": 50000,
      "dl-period": 100000, "loop": 1, "run": 5000 } } }"#,
    ),
    (
        "a CPU pulled no real-time task as its DEADLINE task left",
        "linux-6.18",
        2,
        250,
        r#"{ "name": "check-2565", "global": { "duration": "6ms" },
  "tasks": {
    "b": { "delay": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-deadline": 30000,
      "dl-period": 60000, "loop": 1 },
    "c": { "policy": "SCHED_FIFO", "priority": 1, "loop": 1 },
    "d": { "policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-deadline": 15000,
      "dl-period": 15000, "dl-reclaim": true, "loop": -1, "run": 1 } } }"#,
    ),
];

#[test]
fn what_was_found_and_mended_stays_mended() {
    for (why, name, nr_cpus, hz, text) in FOUND {
        let workload = read_rtapp("w.json", text, nr_cpus).expect("it is a workload").workload;
        let flat = Machine::flat(nr_cpus);
        let machine = Machine { hz, costs: Costs::ZERO, caches: Caches::NONE, ..flat };
        let case = Case { workload, machine, seed: 1 };
        let scheduler = registry::find(name).expect("it is modelled");
        let subject = Subject { judges_limits: true, ..Subject::new(Arc::clone(scheduler)) };
        assert_eq!(play(&case, &subject), Verdict::Passed, "{why}");
    }
}
