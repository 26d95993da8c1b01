// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every scheduler of the registry keeps the rules of the kernel core and its own claims.
//!
//! Each scheduler runs every fixed workload on 1, 2 and 4 CPUs, with and without costs, and with
//! those of locks, under several seeds. A new scheduler is held to this by its line in the registry
//! alone.

use crate::common;

use common::Case;
use common::checks::{check_case, check_fair, check_starvation_free};
use schedlab_model::machine::{InterruptArrivals, InterruptSource, Shape};
use schedlab_model::{Costs, CpuMask, Machine, Preempt, Topology};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::SCHEDULERS;

/// Runs `check` for every scheduler that `claims`, and reports all failures together.
fn for_each(
    claims: impl Fn(&Scheduler) -> bool,
    check: impl Fn(&'static Scheduler, &mut Vec<String>),
) {
    let mut failures = Vec::new();
    let mut nr_checked = 0;
    for info in SCHEDULERS.iter().filter(|info| claims(info)) {
        check(info, &mut failures);
        nr_checked += 1;
    }
    assert!(nr_checked > 0, "no scheduler makes this claim");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Costs with which CPUs wait for each other: locks that are held for all of a wake-up, and lines
/// that come from other caches.
const LOCKED: Costs =
    Costs { lock_hold_ns: 900, lock_transfer_ns: 500, channel_transfer_ns: 700, ..Costs::DEFAULT };

fn conform(nr_cpus: u32, costs: Costs) {
    let workloads = common::workloads::all(nr_cpus);
    for_each(
        |_| true,
        |info, failures| {
            let (mut nr_waits, mut lock_ns) = (0, 0);
            for workload in &workloads {
                for (seed, hz) in [(1, 250), (2, 1000), (0xfeed_beef, 100)] {
                    let mut case = Case::new(workload, info, nr_cpus);
                    case.machine = Machine { costs, hz, ..case.machine };
                    case.seed = seed;
                    match check_case(&case) {
                        Ok(run) => {
                            nr_waits += run.outcome.nr_lock_waits;
                            lock_ns += run.outcome.lock_wait_ns + run.outcome.lock_transfer_ns;
                        }
                        Err(broken) => failures.push(broken.text),
                    }
                }
            }
            // Without a wait for a lock anywhere this would hold nobody to anything.
            if (nr_waits > 0 && lock_ns > 0) != (costs.has_locks() && nr_cpus > 1) {
                failures.push(format!("{}: {nr_waits} waits for locks", info.name));
            }
        },
    );
}

#[test]
fn on_1_cpu_without_costs() {
    conform(1, Costs::ZERO);
}

#[test]
fn on_2_cpus_without_costs() {
    conform(2, Costs::ZERO);
}

#[test]
fn on_4_cpus_without_costs() {
    conform(4, Costs::ZERO);
}

#[test]
fn on_1_cpu_with_costs() {
    conform(1, Costs::DEFAULT);
}

#[test]
fn on_2_cpus_with_costs() {
    conform(2, Costs::DEFAULT);
}

#[test]
fn on_4_cpus_with_costs() {
    conform(4, Costs::DEFAULT);
}

#[test]
fn on_2_cpus_with_locks() {
    conform(2, LOCKED);
}

#[test]
fn on_4_cpus_with_locks() {
    conform(4, LOCKED);
}

#[test]
fn on_whole_machines() {
    conform_on_whole_machines(Costs::DEFAULT);
}

#[test]
fn on_whole_machines_with_locks() {
    conform_on_whole_machines(LOCKED);
}

/// Machines with every level of topology, slowed siblings, interrupts and each preemption model.
fn conform_on_whole_machines(costs: Costs) {
    let shape = Shape {
        nodes: 2,
        llcs_per_node: 1,
        cores_per_llc: 2,
        threads_per_core: 2,
        siblings_apart: true,
    };
    let interrupts = vec![InterruptSource {
        name: "nic".into(),
        cpus: CpuMask::first(8),
        interval_ns: 700_000,
        cost_ns: 3_000,
        softirq_ns: 7_000,
        arrivals: InterruptArrivals::Exponential,
    }];
    let topology = Topology::regular(shape);
    let workloads = common::workloads::all(topology.nr_cpus());
    for_each(
        |_| true,
        |info, failures| {
            for workload in &workloads {
                for (seed, preempt) in Preempt::ALL.into_iter().enumerate() {
                    let mut case = Case::new(workload, info, topology.nr_cpus());
                    case.machine = Machine {
                        topology: topology.clone(),
                        costs,
                        smt_speed: vec![620],
                        preempt,
                        interrupts: interrupts.clone(),
                        ..case.machine
                    };
                    case.seed = seed as u64;
                    failures.extend(check_case(&case).err().map(|broken| broken.text));
                }
            }
        },
    );
}

#[test]
fn claim_fair() {
    for_each(
        |info| info.claims.fair,
        |info, failures| {
            for nr_hogs in [2, 3, 5] {
                let checked = check_fair(info, nr_hogs);
                failures.extend(checked.err().map(|broken| broken.text));
            }
        },
    );
}

#[test]
fn claim_starvation_free() {
    for_each(
        |info| info.claims.starvation_free,
        |info, failures| {
            for nr_cpus in [1, 2] {
                let checked = check_starvation_free(info, nr_cpus);
                failures.extend(checked.err().map(|broken| broken.text));
            }
        },
    );
}
