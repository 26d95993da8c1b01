// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers of sched_ext keep the engine's rules on every workload of its conformance suite: no
//! task is lost or run twice or on a forbidden CPU, every task ends, the trace is one that can have
//! happened, and the same input gives the same events.

use crate::support;

#[path = "../../../engine/tests/engine/common/workloads.rs"]
#[allow(dead_code, reason = "only the workloads are of use here")]
mod workloads;

use schedlab_engine::{SimConfig, SimOutcome, simulate};
use schedlab_model::machine::Shape;
use schedlab_model::trace::MemorySink;
use schedlab_model::{Costs, Event, Machine, ObjectId, TaskId, Topology, TraceSink, Workload};
use schedlab_sched::boundary::options::Options;
use schedlab_scx::{Ops, scheduler};
use schedlab_trace::TraceCheck;
use support::MS;
use support::schedulers::{Central, Global, Simple};

type Make = fn() -> Box<dyn Ops>;

const SCHEDULERS: [(&str, Make); 4] = [
    ("fifo", || Box::new(Simple::fifo())),
    ("vtime", || Box::new(Simple::vtime())),
    ("central", || Box::<Central>::default()),
    ("global", || Box::new(Global)),
];

fn run(workload: &Workload, machine: &Machine, core: u64, make: Make) -> (SimOutcome, MemorySink) {
    let mut options = Options::defaults(&scheduler().tunables);
    options.set(&scheduler().tunables, "scx_core", core).unwrap();
    let config = SimConfig {
        machine,
        scheduler: &support::once(make()),
        options: &options,
        seed: 7,
        until_ns: None,
        watchdog_ns: None,
    };
    let mut trace = MemorySink::default();
    let outcome = simulate(workload, &config, &mut trace, None)
        .unwrap_or_else(|error| panic!("{} on {}: {error}", workload.name, machine.nr_cpus()));
    (outcome, trace)
}

fn check(name: &str, workload: &Workload, machine: &Machine, core: u64, make: Make) {
    let (outcome, trace) = run(workload, machine, core, make);
    let what = format!("{name} on {}, {} CPUs", workload.name, machine.nr_cpus());
    assert_eq!(outcome.nr_exited, outcome.nr_tasks, "{what}: tasks are left");
    let mut check = TraceCheck::with_moves();
    for (id, info) in trace.tasks.iter().enumerate() {
        check.task(TaskId(id as u32), info);
    }
    for (id, info) in trace.objects.iter().enumerate() {
        check.object(ObjectId(id as u32), info);
    }
    trace.events.iter().for_each(|event: &Event| check.event(event));
    check.end(trace.end_ns);
    check.finish().unwrap_or_else(|violation| panic!("{what}: {violation}"));
    let (again, second) = run(workload, machine, core, make);
    assert!(again == outcome && second.events == trace.events, "{what}: another run differs");
}

fn conform(machine: &Machine) {
    for workload in workloads::all(machine.nr_cpus()) {
        for (name, make) in SCHEDULERS {
            for core in [0, 1] {
                check(name, &workload, machine, core, make);
            }
        }
    }
}

#[test]
fn on_1_to_4_cpus() {
    for nr_cpus in [1, 2, 4] {
        for costs in [Costs::ZERO, Costs::DEFAULT] {
            conform(&Machine { costs, ..Machine::flat(nr_cpus) });
        }
    }
}

#[test]
fn on_a_machine_with_threads_and_nodes() {
    let shape = Shape {
        nodes: 2,
        llcs_per_node: 2,
        cores_per_llc: 2,
        threads_per_core: 2,
        siblings_apart: true,
    };
    let topology = Topology::regular(shape);
    let machine = Machine { smt_speed: vec![620], ..Machine::flat(topology.nr_cpus()) };
    conform(&Machine { topology, ..machine });
}

#[test]
fn on_1024_cpus() {
    let machine = Machine::flat(1024);
    for workload in workloads::all(1024).iter().take(3) {
        for (name, make) in SCHEDULERS {
            check(name, workload, &machine, 0, make);
        }
    }
}
