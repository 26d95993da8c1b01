// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priority inheritance from deadline tasks: the holder of a mutex runs with the parameters of the
//! waiter whose deadline is the earliest, and is not held back meanwhile.
//!
//! Sequences follow from rt_mutex_setprio (kernel/sched/core.c) and enqueue_task_dl
//! (kernel/sched/deadline.c), 6.12. HZ=1000, one CPU, nothing costs time.

use crate::common;

use common::checks::check_case;
use common::workloads::{bursts, endless, policy, task};
use common::{Case, MS, timeline};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    Amount, DeadlineParams, MutexProtocol, ObjectId, ObjectKind, ObjectSpec, Policy, Program,
    SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

const ALL: [&str; 4] = ["linux-6.1", "linux-6.6", "linux-6.12", "linux-6.18"];
const M: ObjectId = ObjectId(0);
const N: ObjectId = ObjectId(1);

fn deadline(runtime_ms: u64, period_ms: u64) -> SchedAttr {
    let (runtime_ns, period_ns) = (runtime_ms * MS, period_ms * MS);
    let deadline = DeadlineParams { runtime_ns, deadline_ns: period_ns, period_ns, reclaim: false };
    SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() }
}

/// Holds mutex M for some time.
fn section(ms: u64) -> Program {
    ProgramBuilder::new().lock(M).run(ms * MS).unlock(M).build()
}

fn at(ms: u64, attr: SchedAttr, program: Program) -> TaskSpec {
    TaskSpec { release_ns: Amount::Constant(ms * MS), ..task("task", attr, program) }
}

fn workload(tasks: Vec<TaskSpec>, protocol: MutexProtocol) -> Workload {
    let mut workload = Workload::new("inherits", tasks);
    for name in ["m", "n"] {
        workload.add_object(ObjectSpec::new(name, ObjectKind::Mutex { protocol }));
    }
    workload
}

fn runs(scheduler: &str, tasks: Vec<TaskSpec>, protocol: MutexProtocol, until_ms: u64) -> String {
    let workload = workload(tasks, protocol);
    let mut case = Case::new(&workload, find(scheduler).unwrap(), 1);
    case.machine.hz = 1000;
    case.until_ns = Some(until_ms * MS);
    timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
}

fn fifo() -> SchedAttr {
    policy(Policy::Fifo, 50)
}

#[test]
fn the_classic_inversion() {
    for scheduler in ALL {
        // A holds the mutex for 5 ms, B comes for it at 1 ms, C in between at 2 ms.
        let tasks = || {
            vec![
                at(0, SchedAttr::default(), section(5)),
                at(1, deadline(10, 100), section(2)),
                at(2, fifo(), endless()),
            ]
        };
        let inherits = runs(scheduler, tasks(), MutexProtocol::Inherit, 50);
        assert_eq!(inherits, "0A 1B 1A 5B 7C", "{scheduler}");
        let plain = runs(scheduler, tasks(), MutexProtocol::None, 50);
        assert_eq!(plain, "0A 1B 1A 2C", "{scheduler}");
    }
}

#[test]
fn a_boosted_holder_gets_another_period_when_its_budget_is_used_up() {
    for scheduler in ALL {
        // B's budget is 2 of 20 ms. A, which runs on it, needs 9 ms more: no break at 3 ms.
        let tasks = vec![
            at(0, SchedAttr::default(), section(10)),
            at(1, deadline(2, 20), section(1)),
            at(2, fifo(), endless()),
        ];
        assert_eq!(runs(scheduler, tasks, MutexProtocol::Inherit, 50), "0A 1B 1A 10B 11C");
    }
}

#[test]
fn a_boost_ends_that_a_deadline_task_is_held_back() {
    for scheduler in ALL {
        // A is out of budget at 2, holding the mutex, until 100. C, due at 25, wants it at 5.
        let tasks = vec![
            at(0, deadline(2, 100), section(6)),
            at(1, SchedAttr::default(), endless()),
            at(5, deadline(5, 20), section(1)),
        ];
        let found = runs(scheduler, tasks, MutexProtocol::Inherit, 50);
        assert_eq!(found, "0A 2B 5C 5A 9C 10A 10B", "{scheduler}");
    }
}

#[test]
fn the_earliest_deadline_gets_the_mutex_first() {
    for scheduler in ALL {
        // B, due at 201, waits from 1 on, C, due at 52, from 2 on.
        let tasks = vec![
            at(0, SchedAttr::default(), section(5)),
            at(1, deadline(20, 200), section(3)),
            at(2, deadline(5, 50), section(2)),
        ];
        assert_eq!(
            runs(scheduler, tasks, MutexProtocol::Inherit, 50),
            "0A 1B 1A 2C 2A 5C 7B 10A 10-"
        );
    }
}

#[test]
fn a_chain_passes_the_parameters_on() {
    for scheduler in ALL {
        // A holds N, B holds M and waits for N, C, a deadline task, waits for M, D is FIFO.
        let of_n = ProgramBuilder::new().lock(N).run(6 * MS).unlock(N).build();
        let of_both =
            ProgramBuilder::new().lock(M).run(MS).lock(N).run(MS).unlock(N).unlock(M).build();
        let tasks = vec![
            at(0, SchedAttr::default(), of_n),
            at(1, policy(Policy::Fifo, 1), of_both),
            at(3, deadline(10, 100), section(2)),
            at(4, fifo(), endless()),
        ];
        let found = runs(scheduler, tasks, MutexProtocol::Inherit, 50);
        // A has run for 1 ms when B comes, which runs for 1; A goes on with B's priority, from 3 on
        // with C's parameters, to 7; then B, then C.
        assert_eq!(found, "0A 1B 2A 3C 3A 7B 8C 10D", "{scheduler}");
    }
}

/// Nobody is lost, and every mutex finds its way, whoever waits for it.
#[test]
fn random_sets_keep_the_rules_of_the_core() {
    let mut random = Stream::new(13, Purpose::Scheduler, 0);
    for round in 0..60 {
        let nr_cpus = 1 + round % 3;
        let mut draw = |low: u64, high: u64| low + random.below(high - low + 1);
        let mut tasks: Vec<TaskSpec> = (0..6)
            .map(|_| {
                let attr = match draw(0, 2) {
                    0 => SchedAttr::default(),
                    1 => policy(Policy::Fifo, draw(1, 3) as u8),
                    _ => {
                        let period = draw(8, 60);
                        deadline((period / draw(5, 10)).max(1), period)
                    }
                };
                let mut program = ProgramBuilder::new();
                for _ in 0..draw(1, 6) {
                    program.run(draw(1, 3) * MS / 2).lock(M).run(draw(1, 4) * MS);
                    if draw(0, 1) == 0 {
                        program.lock(N).run(draw(1, 2) * MS).sleep(MS / 2).unlock(N);
                    }
                    program.unlock(M).sleep(draw(0, 5) * MS);
                }
                at(draw(0, 20), attr, program.build())
            })
            .collect();
        tasks.push(task("fair", SchedAttr::default(), bursts(20, 3 * MS, 2 * MS)));
        let workload = workload(tasks, MutexProtocol::Inherit);
        for scheduler in ALL {
            let mut case = Case::new(&workload, find(scheduler).unwrap(), nr_cpus);
            case.machine.hz = 1000;
            case.watchdog_ns = None;
            case.judges_balance = false;
            if let Err(broken) = check_case(&case) {
                panic!("round {round}: {}", broken.text);
            }
        }
    }
}
