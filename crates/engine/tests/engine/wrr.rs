// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the WRR and RMLFQ schedulers through the whole engine, and the claims of the
//! study that proposed them. HZ=100 as in the study, one CPU, nothing costs time.
//!
//! Source: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021); numbers of claims
//! (S4-...) are those of this project's list of its claims.

use crate::common;

use common::checks::{check_case, measures};
use common::workloads::{burst, bursts, policy, task};
use common::{Case, MS, Run, S};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Costs, EventKind, LoopCount, Machine, Nanos, Op, Policy, Program,
    SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;
use schedlab_sched::wrr::transition::{DrawRule, decile, moved, stage};
use std::collections::VecDeque;

const ALL: [&str; 6] = [
    "wrr",
    "group-wrr",
    "basic-wrr-as-built",
    "rmlfq-design",
    "rmlfq-as-built-64",
    "rmlfq-as-built-32",
];
const RR_MEMBERS: &[(&str, u64)] = &[("members", 1)];

fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(S).end_loop().build()
}

fn hog(name: &str, attr: SchedAttr) -> TaskSpec {
    task(name, attr, endless())
}

fn other(cgroup: u32) -> SchedAttr {
    SchedAttr { cgroup: CgroupId(cgroup), ..SchedAttr::default() }
}

/// Groups below the root, each with the number of its parent.
fn groups(workload: &mut Workload, paths: &[(&str, u32)]) {
    let specs = paths.iter().map(|(path, parent)| CgroupSpec::new(*path, CgroupId(*parent), 100));
    workload.cgroups = std::iter::once(CgroupSpec::root()).chain(specs).collect();
}

fn simulate(
    scheduler: &str,
    workload: &Workload,
    options: &[(&str, u64)],
    until_ms: Option<u64>,
) -> (Run, Vec<TaskMeasures>) {
    let info = find(scheduler).expect("the scheduler is registered");
    let mut case = Case::new(workload, info, 1);
    for (name, value) in options {
        case.options.set(&info.tunables, name, *value).unwrap();
    }
    case.machine = Machine { hz: 100, ..case.machine };
    case.until_ns = until_ms.map(|ms| ms * MS);
    case.watchdog_ns = None;
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let tasks = measures(&case, &run).tasks;
    (run, tasks)
}

/// "0A 4B 8-": at 0 ms the CPU starts A, at 4 ms B, at 8 ms it goes idle.
fn timeline(run: &Run) -> String {
    let switches = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { next, .. } => {
            let letter = next.map_or('-', |task| char::from(b'A' + task.0 as u8));
            Some(format!("{}{letter}", event.time_ns / MS))
        }
        _ => None,
    });
    switches.collect::<Vec<_>>().join(" ")
}

fn assert_timeline(
    scheduler: &str,
    options: &[(&str, u64)],
    tasks: Vec<TaskSpec>,
    until_ms: u64,
    expected: &str,
) {
    let (run, _) = simulate(scheduler, &Workload::new("vector", tasks), options, Some(until_ms));
    assert_eq!(timeline(&run), expected, "{scheduler}");
}

fn cpu_times_ms(scheduler: &str, workload: &Workload, until_ms: u64) -> Vec<u64> {
    let (_, tasks) = simulate(scheduler, workload, &[], Some(until_ms));
    tasks.iter().map(|task| task.cpu_time_ns / MS).collect()
}

/// `foreground` hogs in the foreground, `background` in /bg_non_interactive.
fn grounds(foreground: u32, background: u32) -> Workload {
    let of = |name: &str, group, instances| TaskSpec { instances, ..hog(name, other(group)) };
    let tasks = vec![of("fore", 0, foreground), of("back", 1, background)];
    let mut workload = Workload::new("grounds", tasks);
    groups(&mut workload, &[("/bg_non_interactive", 0)]);
    workload
}

#[test]
fn section_5_2_a_foreground_100_ms_background_10_ms() {
    for scheduler in ["wrr", "basic-wrr-as-built"] {
        let (run, _) = simulate(scheduler, &grounds(2, 2), &[], Some(441));
        assert_eq!(timeline(&run), "0A 100B 200C 210D 220A 320B 420C 430D 440A", "{scheduler}");
    }
}

#[test]
fn s4_2_shares_are_10_to_1() {
    for (fore, back) in [(1, 1), (1, 3), (3, 1), (2, 5), (4, 4)] {
        // Whole cycles of 100 F + 10 B ms: each foreground task has 10 of 10 F + B parts.
        let cycle_ms = u64::from(100 * fore + 10 * back);
        let found = cpu_times_ms("wrr", &grounds(fore, back), 7 * cycle_ms);
        let expected: Vec<u64> =
            (0..fore + back).map(|task| if task < fore { 700 } else { 70 }).collect();
        assert_eq!(found, expected, "{fore} and {back}");
    }
}

#[test]
fn s4_1_slices_are_cut_to_ticks() {
    // At HZ=250 the 10 ms of the background are 2 ticks.
    let info = find("wrr").unwrap();
    let workload = grounds(1, 1);
    let mut case = Case::new(&workload, info, 1);
    case.until_ns = Some(217 * MS);
    assert_eq!(timeline(&case.run().unwrap()), "0A 100B 108A 208B 216A");
}

#[test]
fn section_5_2_a_nobody_waits_longer_than_the_turns_of_the_others() {
    for nr_hogs in [2, 5, 9] {
        let hogs = TaskSpec { instances: nr_hogs, ..hog("hog", other(0)) };
        let workload = Workload::new("bound", vec![hogs]);
        let (_, tasks) = simulate("wrr", &workload, &[], Some(10_000));
        let bound = u64::from(nr_hogs - 1) * 100 * MS;
        assert!(tasks.iter().all(|task| task.wait.ns_max == Some(bound)), "{nr_hogs}");
    }
}

#[test]
fn section_5_2_a_a_preempted_task_keeps_its_place_and_the_rest_of_its_slice() {
    // The real-time task takes the ticks of 40 and 50 ms: A has used 3 of 10 before, 7 after it.
    let late = TaskSpec {
        release_ns: Amount::Constant(35 * MS),
        ..task("F", policy(Policy::Fifo, 1), burst(20 * MS))
    };
    let tasks = vec![hog("A", other(0)), hog("B", other(0)), late];
    assert_timeline("wrr", &[], tasks, 221, "0A 35C 55A 120B 220A");
}

#[test]
fn section_5_2_a_sched_yield_leads_to_the_tail_with_the_rest_of_the_slice() {
    let yielder = ProgramBuilder::new().run(30 * MS).op(Op::Yield).run(S).build();
    let tasks = vec![task("A", other(0), yielder), hog("B", other(0))];
    // 3 of 10 ticks are used before the yield.
    assert_timeline("wrr", &[], tasks, 301, "0A 30B 130A 200B 300A");
}

#[test]
fn section_5_1_a_child_inherits_the_rest_of_the_slice() {
    let parent = ProgramBuilder::new().run(30 * MS).op(Op::Fork { task: 1 }).run(10 * S).build();
    let child = TaskSpec { instances: 0, ..hog("C", other(0)) };
    assert_timeline(
        "wrr",
        &[],
        vec![task("P", other(0), parent), child],
        371,
        "0A 100B 170A 270B 370A",
    );
}

#[test]
fn section_5_1_real_time_is_above_and_fair_below() {
    let late = |name, attr| TaskSpec {
        release_ns: Amount::Constant(20 * MS),
        ..task(name, attr, burst(30 * MS))
    };
    let tasks = vec![
        task("B", policy(Policy::Batch, 0), burst(10 * MS)),
        task("W", other(0), burst(100 * MS)),
        late("F", policy(Policy::Rr, 1)),
    ];
    assert_timeline("wrr", &[], tasks, 500, "0B 20C 50B 130A 140-");
}

fn rr(name: &str, rt_priority: u8) -> TaskSpec {
    hog(name, policy(Policy::Rr, rt_priority))
}

fn late_rr(rt_priority: u8) -> TaskSpec {
    let attr = policy(Policy::Rr, rt_priority);
    TaskSpec { release_ns: Amount::Constant(25 * MS), ..task("L", attr, burst(20 * MS)) }
}

#[test]
fn c8_a_waking_task_preempts_if_it_is_better() {
    let worse = || vec![task("A", policy(Policy::Rr, 5), burst(150 * MS)), late_rr(1)];
    let better = || vec![task("A", policy(Policy::Rr, 5), burst(150 * MS)), late_rr(50)];
    for scheduler in ["wrr", "group-wrr", "rmlfq-design", "rmlfq-as-built-64"] {
        assert_timeline(scheduler, RR_MEMBERS, better(), 500, "0A 25B 45A 170-");
    }
    assert_timeline("wrr", RR_MEMBERS, worse(), 500, "0A 150B 170-");
}

#[test]
fn c7_c8_basic_as_built_does_not_let_a_better_task_in() {
    // 1 is better than 5 in its queue. The test at wake-up asks for a reschedule only if the new
    // task is worse, and then the pick finds the running one again; and since that is alone in its
    // list it goes on when its slice ends.
    for late in [1, 50] {
        let tasks = vec![task("A", policy(Policy::Rr, 5), burst(950 * MS)), late_rr(late)];
        assert_timeline("basic-wrr-as-built", RR_MEMBERS, tasks, 2_000, "0A 950B 970-");
    }
    // Two at priority 5: at the end of A's slice there is a reschedule, and the better one runs.
    let tasks = vec![rr("A", 5), rr("B", 5), late_rr(1)];
    assert_timeline("basic-wrr-as-built", RR_MEMBERS, tasks, 221, "0A 100C 120B 220A");
}

#[test]
fn c7_user_priority_99_is_best_but_worst_as_built() {
    let tasks = || {
        let short = |name, rt| task(name, policy(Policy::Rr, rt), burst(50 * MS));
        vec![short("A", 50), short("B", 99), short("C", 1)]
    };
    assert_timeline("wrr", RR_MEMBERS, tasks(), 500, "0B 50A 100C 150-");
    assert_timeline("basic-wrr-as-built", RR_MEMBERS, tasks(), 500, "0C 50A 100B 150-");
}

#[test]
fn s4_5_foreground_only_wrr_is_the_kernels_round_robin() {
    let sleeper = |name, attr| task(name, attr, bursts(40, 7 * MS, 33 * MS));
    let tasks = vec![
        TaskSpec { instances: 3, ..task("hog", policy(Policy::Rr, 10), burst(730 * MS)) },
        sleeper("better", policy(Policy::Rr, 20)),
        sleeper("equal", policy(Policy::Rr, 10)),
        sleeper("worse", policy(Policy::Rr, 5)),
    ];
    let workload = Workload::new("round robin", tasks);
    let (rr, _) = simulate("linux-6.1", &workload, &[("rt_bandwidth", 1)], None);
    let (wrr, _) = simulate("wrr", &workload, RR_MEMBERS, None);
    assert!(rr.trace.events.len() > 300);
    assert_eq!(rr.trace.events, wrr.trace.events);
}

#[test]
fn s4_4_alice_and_robert() {
    let tasks = vec![hog("alice", other(1)), TaskSpec { instances: 49, ..hog("robert", other(2)) }];
    let mut workload = Workload::new("users", tasks);
    groups(&mut workload, &[("/alice", 0), ("/robert", 0)]);
    let grouped = cpu_times_ms("group-wrr", &workload, 9_800);
    assert_eq!(grouped, std::iter::once(4_900).chain([100; 49]).collect::<Vec<_>>());
    let (run, _) = simulate("group-wrr", &workload, &[], Some(501));
    assert_eq!(timeline(&run), "0A 100B 200A 300C 400A 500D");
    assert_eq!(cpu_times_ms("wrr", &workload, 10_000), [200; 50]);
}

#[test]
fn section_5_2_b_shares_of_groups_follow_the_slice_of_the_running_member() {
    let tasks = vec![hog("fore", other(1)), TaskSpec { instances: 3, ..hog("back", other(2)) }];
    let mut workload = Workload::new("grounds", tasks);
    groups(&mut workload, &[("/fore", 0), ("/background", 0)]);
    assert_eq!(cpu_times_ms("group-wrr", &workload, 3_300), [3_000, 100, 100, 100]);
}

#[test]
fn section_5_2_b_groups_nest() {
    let tasks = vec![
        hog("x", other(2)),
        hog("y", other(3)),
        TaskSpec { instances: 2, ..hog("z", other(4)) },
        hog("root", other(0)),
    ];
    let mut workload = Workload::new("nested", tasks);
    groups(&mut workload, &[("/a", 0), ("/a/x", 1), ("/a/y", 1), ("/c", 0)]);
    // /a, /c and the task of the root take turns: a sixth for x and y, a sixth for each z.
    assert_eq!(cpu_times_ms("group-wrr", &workload, 12_000), [2_000, 2_000, 2_000, 2_000, 4_000]);
}

#[test]
fn section_5_2_b_a_group_has_the_best_priority_among_what_it_holds() {
    let member = |name, group, rt_priority| {
        let attr = SchedAttr { cgroup: CgroupId(group), ..policy(Policy::Rr, rt_priority) };
        task(name, attr, burst(50 * MS))
    };
    let tasks = vec![member("A", 1, 10), member("B", 1, 50), member("C", 2, 30)];
    let mut workload = Workload::new("priorities", tasks);
    groups(&mut workload, &[("/alice", 0), ("/carol", 0)]);
    let (run, _) = simulate("group-wrr", &workload, RR_MEMBERS, None);
    assert_eq!(timeline(&run), "0B 50C 100A 150-");
}

#[test]
fn section_5_2_b_an_enqueue_puts_every_group_above_to_the_tail() {
    // C arrives in A's group before anybody runs: the group goes behind that of B.
    let tasks = vec![hog("A", other(1)), hog("B", other(2)), hog("C", other(1))];
    let mut workload = Workload::new("tails", tasks);
    groups(&mut workload, &[("/a", 0), ("/c", 0)]);
    let (run, _) = simulate("group-wrr", &workload, &[], Some(401));
    assert_eq!(timeline(&run), "0B 100A 200B 300C 400B");
    // So does a departure: when B leaves, its group has had its turn.
    let tasks = vec![hog("A", other(1)), task("B", other(1), burst(20 * MS)), hog("C", other(2))];
    let mut workload = Workload::new("leaves", tasks);
    groups(&mut workload, &[("/a", 0), ("/c", 0)]);
    let (run, _) = simulate("group-wrr", &workload, &[], Some(421));
    assert_eq!(timeline(&run), "0A 100C 200B 220C 320A 420C");
}

/// RMLFQ as a list of lists, for hogs of these priorities, up to `until` ticks.
fn rmlfq(rule: DrawRule, prios: &[u8], until: u64) -> String {
    let mut random = Stream::new(1, Purpose::Scheduler, 0);
    let slice = |prio: u8| 10 * (u64::from(decile(prio)) + 1);
    let mut lists = vec![VecDeque::new(); 100];
    for (task, prio) in prios.iter().enumerate() {
        lists[usize::from(*prio)].push_back((task, 1, slice(*prio)));
    }
    let (mut now, mut last, mut text) = (0, None, Vec::new());
    while now < until {
        let prio = lists.iter().position(|list| !list.is_empty()).unwrap() as u8;
        let (task, times, left) = lists[usize::from(prio)].pop_front().unwrap();
        if last != Some(task) {
            text.push(format!("{}{}", now * 10, char::from(b'A' + task as u8)));
            last = Some(task);
        }
        now += left;
        let outcome = rule.draw(&mut random, stage(prio), times).outcome;
        let (to, times) = moved(prio, times, outcome);
        let refill = slice(if rule == DrawRule::Design { to } else { prio });
        lists[usize::from(to)].push_back((task, times, refill));
    }
    text.join(" ")
}

#[test]
fn section_5_2_c_slices_and_moves_follow_the_draws() {
    for (scheduler, rule) in [
        ("rmlfq-design", DrawRule::Design),
        ("rmlfq-as-built-64", DrawRule::AsBuilt64),
        ("rmlfq-as-built-32", DrawRule::AsBuilt32),
    ] {
        for users in [&[99, 99][..], &[99, 99, 99, 99, 99], &[79, 59, 99, 49]] {
            let hogs = users.iter().map(|user| rr("hog", *user)).collect();
            let (run, _) =
                simulate(scheduler, &Workload::new("draws", hogs), RR_MEMBERS, Some(300_000));
            let prios: Vec<u8> = users.iter().map(|user| 99 - user).collect();
            let expected = rmlfq(rule, &prios, 30_000);
            assert!(expected.len() > 200, "{expected}");
            assert_eq!(timeline(&run), expected, "{scheduler} {users:?}");
        }
    }
}

#[test]
fn c6_background_slices_do_not_grow() {
    let mut workload =
        Workload::new("background", vec![TaskSpec { instances: 2, ..hog("back", other(1)) }]);
    groups(&mut workload, &[("/bg", 0)]);
    let (_, tasks) = simulate("rmlfq-design", &workload, &[], Some(60_000));
    // Whoever stays best may go on for several slices; none is cut.
    assert!(tasks.iter().all(|task| task.slice.ns_min == Some(10 * MS)), "{:?}", tasks[0].slice);
}

#[test]
fn c10_sched_yield_draws_as_built_only() {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(MS)
        .op(Op::Yield)
        .end_loop()
        .build();
    let tasks = |last| vec![task("A", policy(Policy::Rr, 99), yielder.clone()), rr("B", last)];
    // As designed A yields within its list for ever; as built it soon falls below B.
    let workload = Workload::new("yield", tasks(95));
    let (run, _) = simulate("rmlfq-design", &workload, RR_MEMBERS, Some(90));
    assert_eq!(timeline(&run), "0A");
    let (run, _) = simulate("rmlfq-as-built-32", &workload, RR_MEMBERS, Some(90));
    let mut random = Stream::new(1, Purpose::Scheduler, 0);
    let (mut prio, mut times, mut ms) = (0, 1, 0);
    while prio < 4 {
        let outcome = DrawRule::AsBuilt32.draw(&mut random, stage(prio), times).outcome;
        (prio, times) = moved(prio, times, outcome);
        ms += 1;
    }
    assert_eq!(timeline(&run), format!("0A {ms}B"));
}

#[test]
fn s4_13_a_task_with_a_worse_last_digit_starves() {
    for scheduler in ["rmlfq-design", "rmlfq-as-built-64", "rmlfq-as-built-32"] {
        let hogs = vec![rr("A", 99), rr("B", 4)];
        let workload = Workload::new("starves", hogs);
        let (_, tasks) = simulate(scheduler, &workload, RR_MEMBERS, Some(1_000_000));
        assert_eq!(tasks[0].cpu_time_ns, 1_000 * S, "{scheduler}");
        assert_eq!(tasks[1].cpu_time_ns, 0, "{scheduler}");
    }
}

fn makespan(scheduler: &str, attr: SchedAttr, options: &[(&str, u64)]) -> Nanos {
    let jobs = TaskSpec { instances: 100, ..task("job", attr, burst(200 * MS)) };
    let (run, _) = simulate(scheduler, &Workload::new("jobs", vec![jobs]), options, None);
    run.outcome.end_ns
}

#[test]
fn s4_6_every_policy_takes_as_long_unless_it_is_throttled() {
    for scheduler in ALL {
        assert_eq!(makespan(scheduler, other(0), &[]), 20 * S, "{scheduler}");
    }
    for rt in [Policy::Fifo, Policy::Rr] {
        assert_eq!(makespan("wrr", policy(rt, 99), &[("rt_bandwidth", 1)]), 20 * S);
        // Android's 80 %: the limit is noticed at the tick after it, 810 ms in the first second and
        // 800 ms in each further one.
        let android = [("rt_runtime", 800 * MS)];
        assert_eq!(makespan("wrr", policy(rt, 99), &android), 24_790 * MS, "{rt:?}");
    }
}

#[test]
fn on_several_cpus_the_fewest_tasks_attract_and_a_dry_cpu_pulls() {
    // A and B take the idle CPUs, C and D queue where fewest tasks are: behind A, behind B. At
    // 450 ms CPU 0 has done A and C, and takes D, which waits for B's turn to end.
    let task = |name, ms| TaskSpec::new(name, burst(ms * MS));
    let tasks = vec![task("A", 50), task("B", 400), task("C", 400), task("D", 400)];
    let workload = Workload::new("two CPUs", tasks);
    let mut case = Case::new(&workload, find("wrr").unwrap(), 2);
    case.machine = Machine { hz: 100, ..case.machine };
    let run = case.run().unwrap();
    let moves: Vec<_> = run
        .trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Migrate { task, from } => {
                Some((event.time_ns / MS, task.0, from.0, event.cpu.0))
            }
            _ => None,
        })
        .collect();
    assert_eq!(moves, [(450, 3, 1, 0)]);
    let exits: Vec<u64> =
        measures(&case, &run).tasks.iter().map(|task| task.exit_ns.unwrap() / MS).collect();
    assert_eq!(exits, [50, 600, 450, 650]);
}

#[test]
fn members_rr_conforms() {
    for nr_cpus in [1, 2] {
        for workload in common::workloads::all(nr_cpus) {
            for scheduler in ALL {
                let info = find(scheduler).unwrap();
                let mut case = Case::new(&workload, info, nr_cpus);
                case.options.set(&info.tunables, "members", 1).unwrap();
                case.machine = Machine { costs: Costs::DEFAULT, ..case.machine };
                check_case(&case).unwrap_or_else(|broken| panic!("{}", broken.text));
            }
        }
    }
}
