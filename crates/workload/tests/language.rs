// SPDX-License-Identifier: MIT OR Apache-2.0
//! What events that act on other tasks mean, and files of the shapes that rt-app's own examples
//! have: members without a value, repeated keys, names used for several kinds of object.

use schedlab_model::{
    Amount, ChannelKind, Comparison, CpuMax, DeadlineParams, Expectation, MemAccess, MemPattern,
    MutexProtocol, ObjectId, ObjectKind, ObjectSpec, Op, Policy, Subject, Workload,
};
use schedlab_workload::{WarningKind, read_rtapp, write_rtapp};

fn read(text: &str) -> Workload {
    let read = read_rtapp("w.json", text, 4).unwrap_or_else(|e| panic!("{e}\n{}", e.help));
    let printed = write_rtapp(&read.workload);
    let again = read_rtapp("w.json", &printed, 4).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(again.workload, read.workload, "{printed}");
    assert_eq!(again.warnings, [], "{printed}");
    read.workload
}

fn ops(workload: &Workload, task: &str) -> Vec<Op> {
    let task = workload.tasks.iter().find(|spec| spec.name == task).expect("the task is there");
    let is_loop = |op: &&Op| !matches!(op, Op::LoopBegin { .. } | Op::LoopEnd { .. });
    task.program.ops.iter().filter(is_loop).cloned().collect()
}

fn object(index: u32) -> ObjectId {
    ObjectId(index)
}

fn run(us: u64) -> Op {
    Op::Run(Amount::Constant(us * 1_000))
}

#[test]
fn events_create_what_they_name_in_the_order_of_the_file() {
    let workload = read(
        r#"{ "tasks": {
          "maker": { "loop": 4, "lock": "m", "run0": 5, "signal": "c", "unlock": "m", "run1": 6,
                     "sem_post": "s", "broad": "c" },
          "taker": { "loop": 4, "sem_wait": "s", "lock": "m",
                     "wait": { "ref": "c", "mutex": "m" }, "unlock": "m",
                     "sync": { "ref": "c", "mutex": "m" } } } }"#,
    );
    let names: Vec<_> =
        workload.objects.iter().map(|spec| (spec.name.as_str(), spec.kind)).collect();
    let semaphore = ObjectKind::Semaphore { initial: 0 };
    assert_eq!(names, [("m", ObjectKind::MUTEX), ("c", ObjectKind::Condvar), ("s", semaphore)]);
    let (m, c, s) = (object(0), object(1), object(2));
    let maker = [
        Op::Lock { object: m },
        run(5),
        Op::Signal { object: c },
        Op::Unlock { object: m },
        run(6),
        Op::SemPost { object: s },
        Op::Broadcast { object: c },
    ];
    assert_eq!(ops(&workload, "maker"), maker);
    let taker = [
        Op::SemWait { object: s },
        Op::Lock { object: m },
        Op::Wait { condvar: c, mutex: m },
        Op::Unlock { object: m },
        Op::Sync { condvar: c, mutex: m },
    ];
    assert_eq!(ops(&workload, "taker"), taker);
}

#[test]
fn one_name_for_two_kinds_is_two_objects() {
    let workload = read(
        r#"{ "tasks": { "a": { "lock": "x", "wait": { "ref": "x", "mutex": "x" }, "unlock": "x",
             "run": 1, "sem_post": "x", "barrier": "x" } } }"#,
    );
    let names: Vec<_> = workload.objects.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["x", "x (condvar)", "x (semaphore)", "x (barrier)"]);
    let wait = Op::Wait { condvar: object(1), mutex: object(0) };
    assert_eq!(ops(&workload, "a")[1], wait);
}

/// rt-app's workgen puts the task's own name behind a `suspend` without one.
#[test]
fn a_suspend_without_a_name_is_on_the_task_itself() {
    let workload = read(
        r#"{ "tasks": {
          "tick": { "resume": "worker", "timer": { "ref": "t", "period": 4000 } },
          "worker": { "suspend", "run": 900, "suspend": "", "run": 80, "suspend" } } }"#,
    );
    assert_eq!(workload.objects, [ObjectSpec::new("worker", ObjectKind::Event)]);
    let suspend = || Op::Suspend { object: object(0) };
    assert_eq!(ops(&workload, "worker"), [suspend(), run(900), suspend(), run(80), suspend()]);
    assert_eq!(ops(&workload, "tick")[0], Op::Resume { object: object(0) });
}

/// In rt-app suspend and resume use the condition variable and the mutex of their name; other
/// events may use these two as well.
#[test]
fn a_suspend_that_shares_its_variable_is_read_as_what_it_does() {
    let workload = read(
        r#"{ "tasks": {
          "a": { "lock": "d", "sync": { "ref": "d", "mutex": "d" }, "unlock": "d",
                 "suspend": "d", "run": 3 },
          "b": { "run": 4, "resume": "d", "suspend": "own" } } }"#,
    );
    let kinds: Vec<_> = workload.objects.iter().map(|spec| spec.kind).collect();
    assert_eq!(kinds, [ObjectKind::MUTEX, ObjectKind::Condvar, ObjectKind::Event]);
    let (mutex, condvar) = (object(0), object(1));
    let lock = || Op::Lock { object: mutex };
    let unlock = || Op::Unlock { object: mutex };
    let a = [
        lock(),
        Op::Sync { condvar, mutex },
        unlock(),
        lock(),
        Op::Wait { condvar, mutex },
        unlock(),
        run(3),
    ];
    assert_eq!(ops(&workload, "a"), a);
    let b = [
        run(4),
        lock(),
        Op::Broadcast { object: condvar },
        unlock(),
        Op::Suspend { object: object(2) },
    ];
    assert_eq!(ops(&workload, "b"), b);
}

#[test]
fn a_barrier_has_as_many_parties_as_the_file_has_users() {
    let workload = read(
        r#"{ "tasks": {
          "a": { "instance": 3, "loop": 2,
                 "phases": { "p": { "run": 1, "barrier": "first" }, "q": { "barrier": "last" } } },
          "b": { "loop": 2, "runtime1": 9, "barrier1": "first", "runtime2": 9,
                 "barrier2": "last" } } }"#,
    );
    let parties: Vec<_> = workload.objects.iter().map(|spec| spec.kind).collect();
    assert_eq!(parties, [ObjectKind::Barrier { parties: 4 }, ObjectKind::Barrier { parties: 4 }]);
}

#[test]
fn objects_say_what_events_cannot() {
    let workload = read(
        r#"{ "global": { "pi_enabled": true },
          "objects": {
            "plain": { "kind": "mutex", "protocol": "none" },
            "top": { "kind": "mutex", "protocol": "ceiling", "priority": 80 },
            "default": { "kind": "mutex" },
            "jobs": { "kind": "pipe" },
            "wire": { "kind": "socketpair", "capacity": "8KiB" },
            "tokens": { "kind": "semaphore", "initial": 4 },
            "gate": { "kind": "barrier", "parties": 9 },
            "here": { "kind": "barrier" } },
          "tasks": {
            "a": { "run": 1, "wait_any0": ["jobs", "tokens"], "wait_any1": ["wire", "late"],
                   "wait_any2": ["jobs", "tokens"], "send": { "channel": "jobs", "bytes": "1KiB" },
                   "receive": { "channel": "wire",
                                "bytes": { "distribution": "uniform", "low": 1, "high": 9 } } },
            "b": { "instance": 2, "sem_post": "late", "lock": "made", "unlock": "made",
                   "barrier": "here" } } }"#,
    );
    let mutex = |protocol| ObjectKind::Mutex { protocol };
    let channel = |kind, capacity_bytes| ObjectKind::Channel { kind, capacity_bytes };
    let kinds: Vec<_> = workload.objects.iter().map(|spec| spec.kind).collect();
    let wanted = [
        mutex(MutexProtocol::None),
        mutex(MutexProtocol::Ceiling { rt_priority: 80 }),
        mutex(MutexProtocol::Inherit),
        channel(ChannelKind::Pipe, 65_536),
        channel(ChannelKind::SocketPair, 8_192),
        ObjectKind::Semaphore { initial: 4 },
        ObjectKind::Barrier { parties: 9 },
        ObjectKind::Barrier { parties: 2 },
        ObjectKind::Semaphore { initial: 0 },
        mutex(MutexProtocol::Inherit),
    ];
    assert_eq!(kinds, wanted);
    let sets = [vec![object(3), object(5)], vec![object(4), object(8)]];
    assert_eq!(workload.wait_sets, sets);
    let a = ops(&workload, "a");
    assert_eq!(a[1..4], [0, 1, 0].map(|set| Op::WaitAny { set }));
    assert_eq!(a[4], Op::Send { channel: object(3), bytes: Amount::Constant(1024) });
    let drawn = Amount::Uniform { low: 1, high: 9 };
    assert_eq!(a[5], Op::Receive { channel: object(4), bytes: drawn });
}

#[test]
fn memory_is_written_within_the_buffer() {
    let workload = read(
        r#"{ "global": { "mem_buffer_size": 1048576 }, "tasks": { "a": {
          "mem0": 4096, "mem1": 10000000, "mem2": { "distribution": "exponential", "mean": 640 },
          "memrun0": { "type": "chase", "size": 262144, "count": 5000 },
          "memrun1": { "type": "read", "count": 77 },
          "memrun2": { "type": "write", "size": "2MiB", "count": 9, "stride": 4096,
                       "pattern": "random" } } } }"#,
    );
    let memrun = |access, pattern, size_bytes, stride_bytes, count| Op::MemRun {
        access,
        pattern,
        size_bytes,
        stride_bytes,
        count,
    };
    let (read_, write) = (MemAccess::Read, MemAccess::Write);
    let (in_order, random) = (MemPattern::Sequential, MemPattern::Random);
    let fixed = Amount::Constant;
    let wanted = [
        Op::Mem { bytes: fixed(4096) },
        memrun(write, in_order, 1 << 20, 64, fixed(10_000_000 / 64)),
        memrun(write, in_order, 1 << 20, 64, Amount::Exponential { mean: 10 }),
        memrun(MemAccess::Chase, random, 262_144, 64, fixed(5000)),
        memrun(read_, in_order, 1 << 20, 1, fixed(77)),
        memrun(write, random, 2 << 20, 4096, fixed(9)),
    ];
    assert_eq!(ops(&workload, "a"), wanted);
}

#[test]
fn deadline_parameters_have_older_names_and_slices_the_same_key() {
    let workload = read(
        r#"{ "tasks": {
          "old": { "policy": "SCHED_DEADLINE", "runtime": 3000, "period": 20000,
                   "deadline": 10000, "phases": { "p": { "run": 1000 } } },
          "event": { "policy": "SCHED_DEADLINE", "runtime": 2000, "dl-period": 9000 },
          "new": { "policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-reclaim": true,
                   "loop": 1, "phases": {
                     "p": { "run": 1 },
                     "q": { "dl-runtime": 3000, "run": 1 },
                     "r": { "dl-reclaim": false, "run": 1 } } },
          "slice": { "dl-runtime": 30000, "run": 1, "util_min": 100, "util_max": 900 } } }"#,
    );
    let deadline = |runtime: u64, deadline: u64, period: u64| DeadlineParams {
        runtime_ns: runtime * 1_000,
        deadline_ns: deadline * 1_000,
        period_ns: period * 1_000,
        reclaim: false,
    };
    let of = |index: usize| workload.tasks[index].attr;
    assert_eq!(of(0).deadline, deadline(3_000, 10_000, 20_000));
    // As in rt-app, one key is the event and the budget.
    assert_eq!(of(1).deadline, deadline(2_000, 9_000, 9_000));
    assert_eq!(ops(&workload, "event"), [Op::RunWall(Amount::Constant(2_000_000))]);
    let reclaiming = |ms| DeadlineParams { reclaim: true, ..deadline(ms, 4_000, 4_000) };
    assert_eq!(of(2).deadline, reclaiming(4_000));
    let later = ops(&workload, "new").into_iter().filter_map(|op| match op {
        Op::SetAttr(attr) => Some(attr.deadline),
        _ => None,
    });
    let later: Vec<_> = later.collect();
    assert_eq!(later, [reclaiming(3_000), deadline(3_000, 4_000, 4_000)]);
    assert_eq!((of(3).policy, of(3).slice_ns), (Policy::Normal, Some(30_000_000)));
    assert_eq!((of(3).util_min, of(3).util_max), (Some(100), Some(900)));
}

#[test]
fn clamps_hold_until_they_are_taken_away() {
    let workload = read(
        r#"{ "tasks": { "a": { "util_min": 200, "loop": 1, "phases": {
             "p": { "run": 1 }, "q": { "util_max": 600, "policy": "SCHED_BATCH", "run": 2 },
             "r": { "util_min": -1, "run": 3 } } } } }"#,
    );
    let clamps: Vec<_> = ops(&workload, "a")
        .iter()
        .filter_map(|op| match op {
            Op::SetAttr(attr) => Some((attr.util_min, attr.util_max)),
            _ => None,
        })
        .collect();
    assert_eq!(clamps, [(Some(200), Some(600)), (None, Some(600))]);
}

#[test]
fn processes_joins_groups_and_expectations() {
    let workload = read(
        r#"{ "cgroups": { "/a": { "weight": 50, "cpu_max": { "quota": "20ms" } },
                          "/a/b": {
                            "cpu_max": { "quota": 400000, "period": "1s", "burst": "50ms" } } },
          "tasks": {
            "shell": { "loop": 1, "process": true, "working_set": "1MiB", "fork0": "job",
                       "fork1": "other", "join0": "job", "join1": "" },
            "job": { "instance": 0, "loop": 1, "run": 5 },
            "other": { "instance": 0, "loop": 1, "run": 5 } },
          "expect": [
            { "measure": "turnaround_ns_mean", "task": "job", "at_most": "20ms", "above": "5us" },
            { "measure": "cpu_share", "task": "job-0", "at_least": 0.4 },
            { "measure": "nr_switches", "below": 1000 },
            { "measure": "nr_migrations", "equal": 0 } ] }"#,
    );
    let limits: Vec<_> = workload.cgroups.iter().map(|group| group.cpu_max).collect();
    let limit = |quota_ns, period_ns, burst_ns| Some(CpuMax { quota_ns, period_ns, burst_ns });
    let expected =
        [None, limit(20_000_000, 100_000_000, 0), limit(400_000_000, 1_000_000_000, 50_000_000)];
    assert_eq!(limits, expected);
    let shell = &workload.tasks[0];
    assert!(shell.is_process && !workload.tasks[1].is_process);
    assert_eq!(shell.working_set_bytes, 1 << 20);
    assert_eq!(shell.program.ops[2..], [Op::Join { task: 1 }, Op::JoinAll]);
    let expect = |subject: &str, measure: &str, comparison, value_millionths| Expectation {
        subject: match subject {
            "" => Subject::Total,
            task => Subject::Task(task.into()),
        },
        measure: measure.into(),
        comparison,
        value_millionths,
    };
    let wanted = [
        expect("job", "turnaround_ns_mean", Comparison::AtMost, 20_000_000_000_000),
        expect("job", "turnaround_ns_mean", Comparison::Greater, 5_000_000_000),
        expect("job-0", "cpu_share", Comparison::AtLeast, 400_000),
        expect("", "nr_switches", Comparison::Less, 1_000_000_000),
        expect("", "nr_migrations", Comparison::Equal, 0),
    ];
    assert_eq!(workload.expect, wanted);
}

/// A phase may stand twice under one name, as workgen allows.
#[test]
fn repeated_phases_and_repeated_events_keep_their_order() {
    let workload = read(
        r#"{ "tasks": { "a": { "loop": 1, "phases": {
             "low": { "loop": 3, "run": 1, "timer": { "ref": "unique", "period": 100 } },
             "high": { "run": 7, "sleep": 1, "run": 8 },
             "low": { "run": 2 }, } }, },
           "global": { "duration": -1, "gnuplot": true, "frag": 1, "log_size": "auto", }, }"#,
    );
    let order: Vec<u64> = ops(&workload, "a")
        .iter()
        .filter_map(|op| match op {
            Op::Run(Amount::Constant(ns)) => Some(ns / 1_000),
            _ => None,
        })
        .collect();
    assert_eq!(order, [1, 7, 8, 2]);
    assert_eq!(workload.tasks[0].phases, ["low", "high"]);
}

#[test]
fn what_has_no_effect_is_listed() {
    let text = r#"{
  "global": { "lock_pages": true, "logdir": "./", "pi_enabled": false, "mem_buffer_size": 4096 },
  "tasks": { "a": {
    "suspend", "nodes_membind": [0, 1],
    "policy": "SCHED_FIFO", "period": 100, "run": 5,
    "memrun": { "type": "read", "count": 5, "ref": "shared" } } } }"#;
    let read = read_rtapp("w.json", text, 2).unwrap();
    let found: Vec<_> =
        read.warnings.iter().map(|warning| (warning.kind, warning.line, warning.column)).collect();
    let wanted = [
        (WarningKind::Unused, 2, 15),
        (WarningKind::Logging, 2, 35),
        // The missing value of `suspend` moves no place.
        (WarningKind::Memory, 4, 16),
        (WarningKind::PolicyIgnores, 5, 39),
        (WarningKind::Memory, 6, 45),
    ];
    assert_eq!(found, wanted, "{:#?}", read.warnings);
}

#[test]
fn sessions_are_named_by_tasks_and_described_for_their_nice_value() {
    let text = r#"{
      "sessions": { "player": { "nice": -5 }, "unused": {} },
      "tasks": {
        "song": { "session": "player", "run": 10 },
        "make": { "session": "build", "run": 10 },
        "none": { "run": 10 }
      }
    }"#;
    let workload = read(text);
    let known: Vec<_> =
        workload.sessions.iter().map(|session| (session.name.as_str(), session.nice)).collect();
    assert_eq!(known, [("player", -5), ("unused", 0), ("build", 0)]);
    let of: Vec<_> = workload.tasks.iter().map(|task| task.session).collect();
    assert_eq!(of, [Some(0), Some(2), None]);
    // What is written reads back to the same.
    assert_eq!(read(&schedlab_workload::write_rtapp(&workload)).sessions, workload.sessions);
}
