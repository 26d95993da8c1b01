// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines on which sums over CPUs are kept instead of asking every CPU: with assertions on, as in
//! tests, each attempt to balance and each search for an idle CPU compares what was kept with what
//! the CPUs say, and stops the run at the first difference.

use crate::common;

use common::workloads::{nice, on, policy, task};
use common::{Case, MS};
use schedlab_model::machine::Shape;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, CpuMax, LoopCount, Machine, Op, Policy, Program,
    SchedAttr, TaskSpec, Topology, Workload,
};
use schedlab_sched::registry::find;

const ALL: [&str; 6] =
    ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];

/// Computes and sleeps for drawn times, for ever.
fn sleeper(mean_run_ns: u64, mean_sleep_ns: u64) -> Program {
    ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .op(Op::Run(Amount::Exponential { mean: mean_run_ns }))
        .op(Op::Sleep(Amount::Exponential { mean: mean_sleep_ns }))
        .end_loop()
        .build()
}

/// Every kind of task that the fair class knows, in groups and out of them.
fn mixed(nr_cpus: u32, has_sched_idle: bool) -> Workload {
    let many = |name: &str, instances: u32, attr: SchedAttr, program: Program| TaskSpec {
        instances,
        ..task(name, attr, program)
    };
    let in_group =
        |group: u32, nice_value: i8| SchedAttr { cgroup: CgroupId(group), ..nice(nice_value) };
    let mut tasks = vec![
        many("sleeper", 3 * nr_cpus, SchedAttr::default(), sleeper(MS, 4 * MS)),
        many("long", nr_cpus / 4, nice(5), sleeper(20 * MS, 10 * MS)),
        many("short", nr_cpus / 4, nice(-5), sleeper(MS / 20, MS)),
        many("batch", nr_cpus / 8, policy(Policy::Batch, 0), sleeper(5 * MS, 5 * MS)),
        many("pinned", 3, on(&[1]), sleeper(2 * MS, 2 * MS)),
        many("grouped", nr_cpus / 2, in_group(1, 0), sleeper(2 * MS, 6 * MS)),
        many("limited", nr_cpus / 4, in_group(2, 3), sleeper(3 * MS, 3 * MS)),
    ];
    if has_sched_idle {
        tasks.push(many("idle", nr_cpus / 4, policy(Policy::Idle, 0), sleeper(4 * MS, MS)));
    }
    let mut workload = Workload::new("mixed", tasks);
    workload.cgroups.push(CgroupSpec::new("/free", CgroupId(0), 200));
    let mut limited = CgroupSpec::new("/limited", CgroupId(0), 100);
    let (quota_ns, period_ns) = (20 * MS, 10 * MS);
    limited.cpu_max = Some(CpuMax { quota_ns, period_ns, burst_ns: 0 });
    workload.cgroups.push(limited);
    workload
}

/// `nr_llcs` caches of `per_llc` CPUs in one node.
fn caches(nr_llcs: u32, per_llc: u32) -> Topology {
    let mut topology = Topology::flat(nr_llcs * per_llc);
    for (cpu, llc) in topology.llc.iter_mut().enumerate() {
        *llc = cpu as u32 / per_llc;
    }
    topology
}

/// Two hardware threads a core.
fn threads(nodes: u32, llcs_per_node: u32, cores_per_llc: u32, siblings_apart: bool) -> Topology {
    let threads_per_core = 2;
    Topology::regular(Shape {
        nodes,
        llcs_per_node,
        cores_per_llc,
        threads_per_core,
        siblings_apart,
    })
}

#[test]
fn what_is_kept_of_the_cpus_is_what_they_say() {
    all_agree(&[Topology::flat(40), caches(2, 32), Topology::flat(130)]);
}

#[test]
fn what_is_kept_of_cores_and_nodes_is_what_their_cpus_say() {
    // Cores of two threads; nodes; caches too small for sums of their own; one core that has a
    // single thread.
    let mut odd = threads(1, 1, 20, false);
    odd.core[39] = 20;
    all_agree(&[threads(1, 1, 20, true), threads(2, 2, 9, false), odd]);
}

/// Runs on each machine, under each scheduler that keeps sums, with tasks of all kinds.
fn all_agree(machines: &[Topology]) {
    for name in ALL {
        for (topology, has_sched_idle) in machines.iter().zip([false, true, false]) {
            let nr_cpus = topology.nr_cpus();
            let workload = mixed(nr_cpus, has_sched_idle);
            let mut case = Case::new(&workload, find(name).unwrap(), nr_cpus);
            let topology = topology.clone();
            case.machine = Machine { topology, costs: Costs::DEFAULT, ..case.machine };
            case.until_ns = Some(150 * MS);
            let run = case.run().unwrap_or_else(|error| panic!("{}: {error}", case.describe()));
            // Enough for every CPU to have balanced again and again.
            let switches = run.outcome.nr_switches;
            assert!(switches > 40 * u64::from(nr_cpus), "{}: {switches}", case.describe());
        }
    }
}
