// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file means: the program and the attributes that follow from it, by rt-app's rules.

use schedlab_model::program::{IoDirection, SchedFeature, SchedTunable};
use schedlab_model::{
    Amount, CgroupId, Change, CpuId, CpuMask, CpuMax, DeadlineParams, LoopCount, Op, Policy,
    Release, SchedAttr, TaskSpec, TimerMode, Workload,
};
use schedlab_workload::read_rtapp;

fn read(text: &str) -> Workload {
    read_rtapp("w.json", text, 4).unwrap_or_else(|e| panic!("{e}\n{}", e.help)).workload
}

/// The one task that has these members.
fn task(members: &str) -> TaskSpec {
    read(&format!("{{ \"tasks\": {{ \"a\": {{ {members} }} }} }}")).tasks.remove(0)
}

fn run(us: u64) -> Op {
    Op::Run(Amount::Constant(us * 1_000))
}

fn sleep(us: u64) -> Op {
    Op::Sleep(Amount::Constant(us * 1_000))
}

fn set(attr: SchedAttr) -> Op {
    Op::SetAttr(Box::new(attr))
}

fn begin(count: LoopCount, end: u32) -> Op {
    Op::LoopBegin { count, end }
}

#[test]
fn events_keep_the_order_of_the_file_whatever_their_keys() {
    let task = task(
        r#"/* C comment */ "loop": 1, "run": 1, "sleep": 2, "run": 3, // and another
           "runtime1": 4, "run0": 5, "sleepX": 6, "yield": "", "exit": null,"#,
    );
    let wall = Op::RunWall(Amount::Constant(4_000));
    let ops = [run(1), sleep(2), run(3), wall, run(5), sleep(6), Op::Yield, Op::Exit];
    assert_eq!(task.program.ops, ops);
}

#[test]
fn a_task_loops_without_end_and_a_phase_once_unless_they_say_otherwise() {
    let endless = task(r#""run": 1"#);
    let forever = begin(LoopCount::Forever, 2);
    assert_eq!(endless.program.ops, [forever, run(1), Op::LoopEnd { begin: 0 }]);
    let phases = task(
        r#""phases": { "p": { "run": 1 }, "q": { "loop": 3, "run": 2 },
                       "r": { "loop": 0, "run": 9 } }"#,
    );
    let ops = [
        begin(LoopCount::Forever, 11),
        Op::Phase(0),
        run(1),
        Op::Phase(1),
        begin(LoopCount::Times(3), 6),
        run(2),
        Op::LoopEnd { begin: 4 },
        Op::Phase(2),
        begin(LoopCount::Times(0), 10),
        run(9),
        Op::LoopEnd { begin: 8 },
        Op::LoopEnd { begin: 0 },
    ];
    assert_eq!(phases.program.ops, ops);
    assert_eq!(phases.phases, ["p", "q", "r"]);
}

#[test]
fn durations_are_microseconds_or_have_a_unit_or_a_distribution() {
    let exponential = r#"{ "distribution": "exponential", "mean": 7 }"#;
    let task = task(&format!(
        r#""loop": 1, "run": 5, "run": "5ns", "run": "1.5ms", "sleep": {exponential},
           "sleep": {{ "high": "2us", "low": 1, "distribution": "uniform" }}"#
    ));
    let ops = [
        run(5),
        Op::Run(Amount::Constant(5)),
        run(1_500),
        Op::Sleep(Amount::Exponential { mean: 7_000 }),
        Op::Sleep(Amount::Uniform { low: 1_000, high: 2_000 }),
    ];
    assert_eq!(task.program.ops, ops);
}

#[test]
fn timers_are_one_by_name_within_a_task() {
    let timer = |name: &str| format!(r#""timer": {{ "ref": "{name}", "period": 9 }}"#);
    let task = task(&format!(
        r#""loop": 1, {}, {}, {}, "timer": {{ "period": 9, "mode": "absolute" }}"#,
        timer("uniqueA"),
        timer("tick"),
        timer("uniqueA")
    ));
    let numbers: Vec<_> = task
        .program
        .ops
        .iter()
        .map(|op| match op {
            Op::Timer { timer, mode, .. } => (*timer, *mode),
            other => panic!("{other:?}"),
        })
        .collect();
    use TimerMode::{Absolute, Relative};
    assert_eq!(numbers, [(0, Relative), (1, Relative), (0, Relative), (2, Absolute)]);
    assert_eq!(task.program.nr_timers, 3);
}

#[test]
fn attributes_follow_the_policy() {
    assert_eq!(task(r#""run": 1, "priority": -19"#).attr.nice, -19);
    let rr = task(r#""run": 1, "policy": "SCHED_RR""#).attr;
    assert_eq!((rr.policy, rr.rt_priority), (Policy::Rr, 10));
    let sliced = task(r#""run": 1, "dl-runtime": 100000"#).attr;
    assert_eq!(sliced.slice_ns, Some(100_000_000));
    let dl = task(r#""run": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 20, "dl-period": "1ms""#);
    let ns = (20_000, 1_000_000);
    let wanted =
        DeadlineParams { runtime_ns: ns.0, deadline_ns: ns.1, period_ns: ns.1, reclaim: false };
    assert_eq!(dl.attr.deadline, wanted);
    let workload = read(
        r#"{ "global": { "default_policy": "SCHED_FIFO", "duration": 3 },
             "tasks": { "a": { "run": 1 }, "b": { "run": 1, "policy": "SCHED_IDLE" } } }"#,
    );
    let policies: Vec<_> =
        workload.tasks.iter().map(|task| (task.attr.policy, task.attr.rt_priority)).collect();
    assert_eq!(policies, [(Policy::Fifo, 10), (Policy::Idle, 0)]);
    assert_eq!(workload.duration_ns, Some(3_000_000_000));
}

/// rt-app's tutorial: a phase without `cpus` goes back to the task's own.
#[test]
fn the_affinity_goes_back_to_the_tasks_own_after_a_phase() {
    let mask = |cpus: &[u32]| Some(cpus.iter().map(|cpu| CpuId(*cpu)).collect::<CpuMask>());
    let task = task(
        r#""loop": 1, "cpus": [2, 3], "phases": {
             "one": { "cpus": [0, 1], "run": 1 }, "two": { "cpus": [2], "run": 2 },
             "three": { "run": 3 }, "four": { "run": 4 } }"#,
    );
    let with = |cpus: &[u32]| set(SchedAttr { affinity: mask(cpus), ..task.attr });
    let ops = [
        Op::Phase(0),
        with(&[0, 1]),
        run(1),
        Op::Phase(1),
        with(&[2]),
        run(2),
        Op::Phase(2),
        with(&[2, 3]),
        run(3),
        Op::Phase(3),
        run(4),
    ];
    assert_eq!(task.program.ops, ops);
    assert_eq!(task.attr.affinity, mask(&[2, 3]));
}

/// The policy stays until another phase changes it: the first phase of the second round has the
/// policy of the last phase of the first.
#[test]
fn the_policy_stays_so_later_rounds_may_differ_from_the_first() {
    let task = task(
        r#""loop": 3, "phases": { "p": { "cpus": [0], "run": 1 },
                                  "q": { "policy": "SCHED_FIFO", "run": 2 } }"#,
    );
    let affinity = Some(CpuMask::only(CpuId(0)));
    let other = SchedAttr::default();
    let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 10, ..other };
    let round =
        |first: SchedAttr| vec![Op::Phase(0), set(first), run(1), Op::Phase(1), set(fifo), run(2)];
    let mut ops = round(SchedAttr { affinity, ..other });
    ops.push(begin(LoopCount::Times(2), 13));
    ops.extend(round(SchedAttr { affinity, ..fifo }));
    ops.push(Op::LoopEnd { begin: 6 });
    assert_eq!(task.program.ops, ops);
}

#[test]
fn the_same_attributes_in_every_round_need_no_round_of_their_own() {
    let task = task(
        r#""loop": 5, "phases": { "p": { "run": 1 }, "q": { "cpus": [0], "priority": 5, "run": 2 },
                                  "r": { "policy": "SCHED_OTHER", "run": 3 } }"#,
    );
    assert_eq!(task.program.ops[0], begin(LoopCount::Times(5), 9));
    assert_eq!(task.program.ops.len(), 10);
}

#[test]
fn a_sched_event_starts_from_the_tasks_own_attributes() {
    let task = task(
        r#""loop": 1, "priority": 4, "cpus": [1], "run": 1,
           "sched": { "policy": "SCHED_RR", "priority": 7 },
           "sched": { "cpus": "all" }, "sched": { "taskgroup": "/g" }"#,
    );
    let own = task.attr;
    let rr = SchedAttr { policy: Policy::Rr, rt_priority: 7, nice: 0, ..own };
    let ops = [
        run(1),
        set(rr),
        set(SchedAttr { affinity: None, ..own }),
        set(SchedAttr { cgroup: CgroupId(1), ..own }),
    ];
    assert_eq!(task.program.ops, ops);
}

#[test]
fn a_change_is_one_operation_for_each_file() {
    let workload = read(
        r#"{ "cgroups": { "/w": {} }, "tasks": { "a": { "loop": 1,
             "change": { "cpu_max": { "quota": "5ms", "burst": "1ms" }, "weight": 7,
                         "taskgroup": "/w/v" },
             "change1": { "taskgroup": "/w", "cpu_max": "max", "cpus": [0, 2] },
             "change2": { "taskgroup": "/w", "cpus": "all" },
             "tune": { "nr_migrate": 8, "base_slice": "3ms" }, "run": 1 } } }"#,
    );
    let change = |change| Op::Change(Box::new(change));
    let two = [CpuId(0), CpuId(2)].into_iter().collect();
    let max = CpuMax { quota_ns: 5_000_000, period_ns: 100_000_000, burst_ns: 1_000_000 };
    let ops = [
        change(Change::Weight { group: CgroupId(2), weight: 7 }),
        change(Change::CpuMax { group: CgroupId(2), cpu_max: Some(max) }),
        change(Change::CpuMax { group: CgroupId(1), cpu_max: None }),
        change(Change::Cpus { group: CgroupId(1), cpus: Some(two) }),
        change(Change::Cpus { group: CgroupId(1), cpus: None }),
        Op::Tune { tunable: SchedTunable::NrMigrate, value: 8 },
        Op::Tune { tunable: SchedTunable::BaseSlice, value: 3_000_000 },
        run(1),
    ];
    assert_eq!(workload.tasks[0].program.ops, ops);
    let written = schedlab_workload::write_rtapp(&workload);
    assert_eq!(read(&written), workload, "{written}");
}

#[test]
fn tunables_have_the_kernels_names_and_units() {
    let workload = read(
        r#"{ "cgroups": { "/w": { "cpus": [1, 2] } }, "tasks": { "a": { "loop": 1,
             "tune": { "rt_runtime": -1, "rt_period": "2s", "cfs_bandwidth_slice": 3000,
                       "features": ["NO_RUN_TO_PARITY", "NEXT_BUDDY"] },
             "tune1": { "rt_runtime": "900ms" }, "run": 1 } } }"#,
    );
    let tune = |tunable, value| Op::Tune { tunable, value };
    let ops = [
        tune(SchedTunable::RtRuntime, SchedTunable::NO_LIMIT),
        tune(SchedTunable::RtPeriod, 2_000_000_000),
        tune(SchedTunable::BandwidthSlice, 3_000_000),
        tune(SchedTunable::Feature(SchedFeature::RunToParity), 0),
        tune(SchedTunable::Feature(SchedFeature::NextBuddy), 1),
        tune(SchedTunable::RtRuntime, 900_000_000),
        run(1),
    ];
    assert_eq!(workload.tasks[0].program.ops, ops);
    let cpus = [CpuId(1), CpuId(2)].into_iter().collect();
    assert_eq!(workload.cgroups[1].cpus, Some(cpus));
    let written = schedlab_workload::write_rtapp(&workload);
    assert_eq!(read(&written), workload, "{written}");
}

#[test]
fn what_a_tunable_does_not_take_is_refused_with_advice() {
    for (tune, wanted) in [
        (r#""features": ["NO_RUN_TO_PARTY"]"#, "did you mean \"RUN_TO_PARITY\"?"),
        (r#""features": ["HRTICK"]"#, "features that may change are GENTLE_FAIR_SLEEPERS"),
        (r#""features": "RUN_TO_PARITY""#, "give an array of names"),
        (r#""rt_runtime": "1500ns""#, "whole microseconds"),
        (r#""rt_period": -1"#, ""),
        (r#""cfs_bandwidth_slice": "2s""#, "the kernel takes"),
    ] {
        let text = format!(r#"{{ "tasks": {{ "a": {{ "tune": {{ {tune} }}, "run": 1 }} }} }}"#);
        let error = schedlab_workload::read_rtapp("w.json", &text, 4).unwrap_err();
        assert!(error.help.contains(wanted), "{tune}: {error}: {}", error.help);
    }
}

#[test]
fn groups_have_their_parents_first_and_their_weights() {
    let workload = read(
        r#"{ "tasks": { "a": { "run": 1, "taskgroup": "/x/y" }, "b": { "run": 1, "taskgroup": "" },
                        "c": { "run": 1, "taskgroup": "/x" } },
             "cgroups": { "/w/v": { "weight": 7 } } }"#,
    );
    let groups: Vec<_> = workload
        .cgroups
        .iter()
        .map(|group| (group.path.as_str(), group.parent.0, group.weight))
        .collect();
    let wanted = [("/", 0, 100), ("/w", 0, 100), ("/w/v", 1, 7), ("/x", 0, 100), ("/x/y", 3, 100)];
    assert_eq!(groups, wanted);
    let of_tasks: Vec<u32> = workload.tasks.iter().map(|task| task.attr.cgroup.0).collect();
    assert_eq!(of_tasks, [4, 0, 3]);
}

#[test]
fn transfers_forks_and_arrivals() {
    let workload = read(
        r#"{ "tasks": {
          "a": { "instance": 3, "delay": 9, "interarrival": "2ms", "release": "wakeup", "loop": 1,
                 "iorun": 512, "iorun": { "direction": "read", "bytes": "4KiB", "sync": true },
                 "repeat": { "loop": 2, "fork": "b", "join": "" } },
          "b": { "instance": 0, "loop": 1, "run": 1, "progress": "" } } }"#,
    );
    let a = &workload.tasks[0];
    assert_eq!((a.instances, a.release), (3, Release::Wakeup));
    assert_eq!(a.release_ns, Amount::Constant(9_000));
    assert_eq!(a.interarrival_ns, Some(Amount::Constant(2_000_000)));
    let io = |direction, bytes, sync| Op::Io { direction, bytes: Amount::Constant(bytes), sync };
    let ops = [
        io(IoDirection::Write, 512, false),
        io(IoDirection::Read, 4096, true),
        begin(LoopCount::Times(2), 5),
        Op::Fork { task: 1 },
        Op::JoinAll,
        Op::LoopEnd { begin: 2 },
    ];
    assert_eq!(a.program.ops, ops);
    assert_eq!(workload.nr_tasks_least(), 9);
}

#[test]
fn a_byte_order_mark_moves_no_column() {
    let error = read_rtapp("w.json", "\u{feff}{ \"taks\": {} }", 1).unwrap_err();
    assert_eq!((error.line, error.column), (1, 6));
    assert!(read_rtapp("w.json", "\u{feff}{ \"tasks\": { \"a\": { \"run\": 1 } } }", 1).is_ok());
}
