// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ticks that change nothing but sums are taken several at once: the trace and all counts stay
//! those of one tick after the other. A run that is watched takes them one by one.

use crate::common;

use common::workloads::{nice, policy, task};
use common::{Case, MS, S};
use schedlab_engine::{Decision, Observer, SimConfig, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::trace::MemorySink;
use schedlab_model::{
    Amount, Costs, CpuId, CpuMask, LoopCount, Machine, Nanos, Op, Policy, TaskSpec, Workload,
};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::Explanation;
use schedlab_sched::registry::SCHEDULERS;

/// Looks away: its presence alone makes the engine take every tick.
struct Blind;

impl Observer for Blind {
    fn wants(&mut self, _now: Nanos, _cpu: CpuId) -> Option<Explanation> {
        None
    }

    fn decided(&mut self, _core: &Core, _decision: Decision) {}
}

/// A task that runs for long, between sleeps and yields.
fn long_task(draw: &mut Stream, nr_cpus: u32, name: &str) -> TaskSpec {
    let mut attr = match draw.below(8) {
        0 => policy(Policy::Fifo, 1 + draw.below(3) as u8),
        1 => policy(Policy::Rr, 1),
        2 => policy(Policy::Batch, 0),
        3 => nice(draw.below(40) as i8 - 20),
        _ => nice(0),
    };
    if draw.below(5) == 0 {
        attr.affinity = Some(CpuMask::only(CpuId(draw.below(u64::from(nr_cpus)) as u32)));
    }
    // Multiples of a tick and of a tick less its cost end together with ticks.
    let run_ns = match draw.below(3) {
        0 => 4 * MS * (1 + draw.below(100)),
        1 => (4 * MS - Costs::DEFAULT.tick_ns) * (1 + draw.below(100)),
        _ => 1 + draw.below(900 * MS),
    };
    let wait = match draw.below(4) {
        0 => Op::Yield,
        1 => Op::RunWall(Amount::Constant(draw.below(300 * MS))),
        2 => Op::Sleep(Amount::Constant(4 * MS * draw.below(60))),
        _ => Op::Sleep(Amount::Constant(draw.below(500 * MS))),
    };
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(1 + draw.below(3)))
        .run(run_ns)
        .op(wait)
        .end_loop()
        .build();
    let release_ns = Amount::Constant(draw.below(3) * draw.below(50) * 4 * MS);
    TaskSpec { release_ns, ..task(name, attr, program) }
}

#[test]
fn ticks_taken_at_once_are_ticks_taken_one_by_one() {
    for number in 0..150 {
        let mut draw = Stream::new(number, Purpose::Scheduler, 2);
        let nr_cpus = 1 + draw.below(4) as u32;
        let nr_tasks = 1 + draw.below(3 * u64::from(nr_cpus));
        let tasks = (0..nr_tasks).map(|n| long_task(&mut draw, nr_cpus, &format!("t{n}")));
        let workload = Workload::new("long", tasks.collect());
        let costs = if draw.below(2) == 0 { Costs::ZERO } else { Costs::DEFAULT };
        let hz = [100, 250, 1000][draw.below(3) as usize];
        for info in SCHEDULERS.iter() {
            let machine = Machine { hz, costs, ..Machine::flat(nr_cpus) };
            let until_ns = Some(2 * S);
            let case =
                Case { machine, until_ns, watchdog_ns: None, ..Case::new(&workload, info, 1) };
            let at_once = case.run().unwrap();
            let config = SimConfig {
                machine: &case.machine,
                scheduler: info,
                options: &case.options,
                seed: case.seed,
                until_ns,
                watchdog_ns: None,
            };
            let mut trace = MemorySink::default();
            let one_by_one = simulate(&workload, &config, &mut trace, Some(&mut Blind)).unwrap();
            assert_eq!(at_once.outcome, one_by_one, "workload {number}, {}", case.describe());
            let same = at_once.trace.events == trace.events;
            assert!(same, "workload {number}, {}: another trace", case.describe());
        }
    }
}
