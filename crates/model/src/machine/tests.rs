// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const SHAPE: Shape = Shape {
    nodes: 2,
    llcs_per_node: 2,
    cores_per_llc: 2,
    threads_per_core: 2,
    siblings_apart: true,
};

#[test]
fn regular_machines_number_siblings_apart_or_side_by_side() {
    let apart = Topology::regular(SHAPE);
    assert_eq!(apart.nr_cpus(), 16);
    assert_eq!(apart.smt_span(CpuId(1)).to_string(), "1,9");
    assert_eq!(apart.llc_span(CpuId(1)).to_string(), "0-1,8-9");
    assert_eq!(apart.node_span(CpuId(1)).to_string(), "0-3,8-11");
    let adjacent = Topology::regular(Shape { siblings_apart: false, ..SHAPE });
    assert_eq!(adjacent.smt_span(CpuId(1)).to_string(), "0-1");
    assert_eq!(adjacent.node_span(CpuId(1)).to_string(), "0-7");
    assert_eq!((apart.check(), adjacent.check()), (Ok(()), Ok(())));
    assert_eq!(apart.first_cpus(3).llc, [0, 0, 1]);
}

#[test]
fn levels_that_do_not_nest_are_refused() {
    let topology = Topology { core: vec![0, 0], llc: vec![0, 1], node: vec![0, 0] };
    let error = topology.check().unwrap_err();
    assert!(error.contains("CPUs 0 and 1 share core 0"), "{error}");
    let short = Topology { node: vec![0], ..Topology::flat(2) };
    assert!(short.check().unwrap_err().contains("one entry a CPU"));
    assert!(Topology::flat(0).check().unwrap_err().contains("1 to 1024"));
}

#[test]
fn a_slower_clock_lengthens_what_instructions_cost() {
    let costs = Costs { lock_hold_ns: 333, ..Costs::DEFAULT }.at_clock(1_000, 700);
    assert_eq!((costs.context_switch_ns, costs.socket_ns, costs.lock_hold_ns), (1_714, 1_143, 476));
    for name in Costs::OF_MEMORY {
        assert_eq!(costs.field(name), Costs::DEFAULT.field(name), "{name}");
    }
    assert_eq!(Costs::DEFAULT.at_clock(850, 850), Costs::DEFAULT);
}

#[test]
fn impossible_machines_are_refused() {
    let source = InterruptSource {
        name: "eth0".into(),
        cpus: CpuMask::first(2),
        interval_ns: 10_000,
        cost_ns: 5_900,
        softirq_ns: 3_999,
        arrivals: InterruptArrivals::Periodic,
    };
    let with = |source| Machine { interrupts: vec![source], ..Machine::flat(2) }.check();
    assert_eq!(with(source.clone()), Ok(()));
    let busy = InterruptSource { softirq_ns: 4_100, ..source.clone() };
    assert!(with(busy).unwrap_err().contains("no time would be left"));
    let slowed = Machine {
        topology: Topology { core: vec![0, 0], ..Topology::flat(2) },
        interrupts: vec![source.clone()],
        smt_speed: vec![900],
        ..Machine::flat(2)
    };
    assert!(slowed.check().unwrap_err().contains("\"eth0\", the tick"));
    let two = Machine { interrupts: vec![source.clone(); 2], smt_speed: vec![], ..slowed };
    assert!(two.check().unwrap_err().contains("\"eth0\", \"eth0\", the tick"));
    let far = InterruptSource { cpus: CpuMask::only(CpuId(7)), ..source };
    assert!(with(far).unwrap_err().contains("CPUs 7"));
    let fast = Machine { smt_speed: vec![1_001], ..Machine::flat(1) };
    assert!(fast.check().unwrap_err().contains("1 to 1000"));
}
