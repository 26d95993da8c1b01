// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCHED_DEADLINE through the whole engine: exact sequences that follow from the rules of
//! kernel/sched/deadline.c (6.12) at HZ=250, where the budget is looked at every 4 ms.

use crate::common;

use common::checks::{check_case, measures};
use common::workloads::{burst, bursts, endless, on, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_engine::SimError;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    Amount, DeadlineParams, EventKind, LoopCount, Nanos, Op, Policy, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

const ALL: [&str; 6] =
    ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];

fn deadline(runtime_ns: Nanos, deadline_ns: Nanos, period_ns: Nanos) -> SchedAttr {
    let deadline = DeadlineParams { runtime_ns, deadline_ns, period_ns, reclaim: false };
    SchedAttr { policy: Policy::Deadline, deadline, ..SchedAttr::default() }
}

/// Budget and period in ms, deadline at the period's end.
fn implicit(runtime_ms: u64, period_ms: u64) -> SchedAttr {
    deadline(runtime_ms * MS, period_ms * MS, period_ms * MS)
}

fn run_on(
    scheduler: &str,
    nr_cpus: u32,
    tasks: Vec<TaskSpec>,
    until_ms: u64,
) -> Result<Run, SimError> {
    let workload = Workload::new("deadline", tasks);
    let mut case = Case::new(&workload, find(scheduler).unwrap(), nr_cpus);
    case.until_ns = Some(until_ms * MS);
    case.run()
}

fn run(tasks: Vec<TaskSpec>, until_ms: u64) -> Run {
    run_on("linux-6.12", 1, tasks, until_ms).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(scheduler: &str, nr_cpus: u32, tasks: Vec<TaskSpec>) -> String {
    run_on(scheduler, nr_cpus, tasks, 1_000).err().expect("it is refused").to_string()
}

#[test]
fn an_overrun_up_to_the_tick_is_paid_from_the_next_budget() {
    for scheduler in ALL {
        let tasks = vec![
            task("A", implicit(10, 100), endless()),
            task("B", SchedAttr::default(), endless()),
        ];
        let run = run_on(scheduler, 1, tasks, 420).unwrap();
        let expected = "0A 12B 100A 108B 200A 212B 300A 308B 400A 412B";
        assert_eq!(timeline(&run), expected, "{scheduler}");
    }
}

#[test]
fn the_earliest_deadline_runs_and_equal_ones_keep_their_order() {
    let tasks =
        vec![task("A", implicit(30, 100), endless()), task("B", implicit(20, 50), endless())];
    // B, due at 50, runs first. At 50 both are due at 100: A, which runs, goes on to the tick at
    // 52, owing 2 ms. At 100 A gets 28 ms and is due at 200, B 18 ms and is due at 150.
    let run = run(tasks, 205);
    assert_eq!(timeline(&run), "0B 20A 52B 72- 100B 120A 148- 150B 172- 200B");
}

#[test]
fn a_deadline_task_goes_before_every_other_class() {
    let tasks = vec![
        task("A", policy(Policy::Fifo, 99), endless()),
        task("B", implicit(8, 40), bursts(3, 8 * MS, 32 * MS)),
    ];
    let run = run(tasks, 130);
    assert_eq!(timeline(&run), "0B 8A 40B 48A 80B 88A 120B 120A");
}

#[test]
fn a_yield_gives_away_the_rest_of_the_budget() {
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(3 * MS)
        .op(Op::Yield)
        .end_loop()
        .build();
    let tasks =
        vec![task("A", implicit(10, 50), program), task("B", SchedAttr::default(), endless())];
    assert_eq!(timeline(&run(tasks, 140)), "0A 3B 50A 53B 100A 103B");
}

#[test]
fn a_sleeper_keeps_what_it_has_only_while_that_is_within_its_share() {
    // Budget 10 of 100 ms. After 4 ms of work and 36 ms of sleep, 6 ms until 100 would be a tenth
    // of 60 ms and just too much (whole units of 1024 ns are compared): a new period begins at 40.
    let again = |sleep_ms| {
        let mut program = ProgramBuilder::new();
        program.run(4 * MS).sleep(sleep_ms * MS).run(100 * MS);
        task("A", implicit(10, 100), program.build())
    };
    assert_eq!(timeline(&run(vec![again(36)], 180)), "0A 4- 40A 52- 140A 148-");
    // Woken at 30 it keeps its 6 ms until 100; noticed at the tick at 36.
    assert_eq!(timeline(&run(vec![again(26)], 120)), "0A 4- 30A 36- 100A 112-");
}

#[test]
fn a_constrained_task_that_wakes_too_late_waits_for_its_next_period() {
    let mut program = ProgramBuilder::new();
    program.run(2 * MS).sleep(30 * MS).run(3 * MS);
    let attr = deadline(4 * MS, 20 * MS, 100 * MS);
    assert_eq!(timeline(&run(vec![task("A", attr, program.build())], 200)), "0A 2- 100A 103-");
}

#[test]
fn on_m_cpus_the_m_earliest_deadlines_run() {
    for scheduler in ALL {
        let tasks = [40, 30, 20]
            .map(|period| task("t", implicit(8, period), endless()))
            .into_iter()
            .collect();
        let run = run_on(scheduler, 2, tasks, 36).unwrap();
        let starts: Vec<String> = run
            .trace
            .events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Switch { next: Some(next), .. } => {
                    let letter = char::from(b'A' + next.0 as u8);
                    Some(format!("{}{letter} on {}", event.time_ns / MS, event.cpu))
                }
                _ => None,
            })
            .collect();
        // All three come to CPU 0; B, the second, is pushed to CPU 1. A waits for C's CPU. A task
        // whose budget is renewed is pushed on while its own CPU has not begun to run it: if the
        // other one is free, C and B change CPUs with every period, as they do in a real kernel.
        assert_eq!(
            starts,
            ["0C on 0", "0B on 1", "8A on 0", "20C on 1", "30B on 0"],
            "{scheduler}"
        );
    }
}

#[test]
fn admission_is_the_kernels() {
    let tenths = |count| (0..count).map(|_| task("A", implicit(10, 100), endless())).collect();
    assert!(run_on("linux-6.1", 1, tenths(9), 10).is_ok());
    assert!(run_on("linux-6.12", 1, tenths(9), 10).is_ok());
    // Two servers of 50 ms in 1 s are admitted beside them, in 7.2 one again.
    assert!(run_on("linux-7.1", 1, tenths(8), 10).is_ok());
    assert!(refusal("linux-7.1", 1, tenths(9)).contains("beside the 0.899 in use"));
    assert!(run_on("linux-7.2", 1, tenths(9), 10).is_ok());
    // 7.2 lets them have the whole CPU (sched_rt_runtime_us is 1,000,000).
    assert!(refusal("linux-7.2", 1, tenths(10)).contains("may use 1.000"));
    assert_eq!(
        refusal("linux-6.1", 1, tenths(10)),
        "task \"A\" at 0 ns: its share of 0.099 CPUs is not admitted beside the 0.899 in use: \
         DEADLINE tasks and servers may use 0.949 (EBUSY); lower a runtime, or raise \
         rt_runtime"
    );
    assert!(run_on("linux-6.1", 2, tenths(19), 10).is_ok());
    assert!(refusal("linux-6.1", 2, tenths(20)).contains("may use 1.899"));
    let one = |attr| vec![task("A", attr, endless())];
    let text =
        refusal("linux-6.12", 2, one(SchedAttr { affinity: on(&[0]).affinity, ..implicit(1, 10) }));
    assert!(text.contains("every CPU of the machine (EPERM)"), "{text}");
    assert!(
        run_on(
            "linux-6.12",
            1,
            one(SchedAttr { affinity: on(&[0]).affinity, ..implicit(1, 10) }),
            10
        )
        .is_ok()
    );
    assert!(
        refusal("linux-6.12", 1, one(deadline(1_023, MS, MS))).contains("the least is 1024 ns")
    );
    assert!(
        refusal("linux-6.12", 1, one(deadline(2_000, 90_000, 90_000))).contains("dl_period_min")
    );
    assert!(refusal("linux-6.12", 1, one(implicit(10, 5_000))).contains("100000 to 4194304000 ns"));
}

#[test]
fn bandwidth_is_free_again_at_the_zero_lag_time() {
    // The first task of 60 of 100 ms ends at 12 ms: its share is free at 100 - 48 * 100 / 60,
    // which is 20 ms.
    let late = |release_ms| {
        let mut second = task("B", implicit(60, 100), endless());
        second.release_ns = Amount::Constant(release_ms * MS);
        let mut first = ProgramBuilder::new();
        first.run(12 * MS);
        vec![task("A", implicit(60, 100), first.build()), second]
    };
    assert!(run_on("linux-6.1", 1, late(21), 100).is_ok());
    assert!(refusal("linux-6.1", 1, late(19)).contains("EBUSY"));
}

#[test]
fn a_task_may_come_to_the_class_and_leave_it() {
    let mut program = ProgramBuilder::new();
    program.run(6 * MS);
    program.op(Op::SetAttr(Box::new(implicit(4, 20)))).run(8 * MS);
    program.op(Op::SetAttr(Box::default())).run(6 * MS);
    let tasks = vec![task("A", SchedAttr::default(), program.build())];
    // In the class at 6 ms, due at 26: out of budget at the tick at 12, owing 2; at 26 the rest.
    let run = run(tasks, 200);
    assert_eq!(timeline(&run), "0A 12- 26A 34-");
}

/// Nobody gets more than its share, whatever the tasks do; and with a hundred random sets on one to
/// four CPUs every check of the conformance suite holds.
#[test]
fn random_sets_stay_within_their_bandwidth() {
    let mut random = Stream::new(11, Purpose::Scheduler, 0);
    for round in 0..100 {
        let nr_cpus = 1 + round % 4;
        let mut draw = |low: u64, high: u64| low + random.below(high - low + 1);
        let tasks: Vec<TaskSpec> = (0..draw(1, 2 + 2 * u64::from(nr_cpus)))
            .map(|index| {
                let period = draw(8, 60) * MS;
                let runtime = (period / draw(4, 10)).max(MS);
                let end = draw(runtime / MS + 1, period / MS) * MS;
                let program = match draw(0, 2) {
                    0 => burst(draw(50, 200) * MS),
                    _ => bursts(draw(5, 40), draw(1, 20) * MS, draw(1, 40) * MS),
                };
                task(&format!("t{index}"), deadline(runtime, end.min(period), period), program)
            })
            .collect();
        let mut tasks = tasks;
        tasks.push(task("fair", SchedAttr::default(), burst(500 * MS)));
        tasks.push(task("fifo", policy(Policy::Fifo, 10), bursts(100, MS, 7 * MS)));
        let workload = Workload::new("random", tasks);
        for scheduler in ["linux-6.1", "linux-6.12"] {
            let mut case = Case::new(&workload, find(scheduler).unwrap(), nr_cpus);
            case.watchdog_ns = None;
            // A CPU may idle beside a task that is out of budget.
            case.judges_balance = false;
            let run = match check_case(&case) {
                Ok(run) => run,
                Err(broken) => panic!("round {round}: {broken:?}"),
            };
            for (spec, measured) in workload.tasks.iter().zip(measures(&case, &run).tasks) {
                let dl = &spec.attr.deadline;
                if spec.attr.policy == Policy::Deadline {
                    let periods = measured.turnaround_ns.unwrap().div_ceil(dl.period_ns) + 1;
                    // Beyond its budgets at most what a tick lets through, and once more: a debt of
                    // several periods moves the deadline at once, but the task runs again after
                    // one.
                    let most = periods * dl.runtime_ns + 2 * 4 * MS;
                    assert!(
                        measured.cpu_time_ns <= most,
                        "round {round}: {} of {most} ns: {spec:?}",
                        measured.cpu_time_ns
                    );
                }
            }
        }
    }
}
