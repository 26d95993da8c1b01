// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on this kernel: the lane plays what was requested, and the numbers agree.

mod common;

use common::{hogs, play, play_until, units};
use schedlab_host::result::{ABSENT_WITHOUT_TRACE, measures_without_trace};
use schedlab_host::{HostLane, HostOutcome, HostRequest, PolicyOverride, RecorderChoice};
use schedlab_metrics::{Distribution, Measures, Reading, TaskMeasures};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::trace::{MemorySink, NullSink};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Change, CpuId, CpuMask, CpuMax, DeadlineParams, EventKind,
    LoopCount, MemAccess, MemPattern, Op, Policy, SchedAttr, SwitchOut, TaskId, TaskSpec, Workload,
};
use schedlab_run::{Code, Keep, Lane, LaneKind, RunRequest};
use schedlab_testing::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn on_cpu0(workload: Workload) -> HostRequest {
    let cpus = schedlab_host::allowed_cpus().first_cpu().map(CpuMask::only).unwrap();
    HostRequest { cpus, ..HostRequest::new(workload, 1) }
}

/// Whether the recorder saw every event. Under heavy load it may miss some; the outcome then
/// reports this.
fn is_complete(outcome: &HostOutcome, _: &MemorySink) -> bool {
    outcome.nr_lost_events == 0 && outcome.check.nr_waits_off == Some(0)
}

/// The share of the run's time in which its only task had a CPU.
fn share(outcome: &HostOutcome) -> f64 {
    outcome.tasks[0].run_ns as f64 / outcome.end_ns as f64
}

#[test]
fn hogs_use_what_they_were_asked_to_use_and_the_trace_agrees_with_the_kernel() {
    if !common::has_bpf() {
        return;
    }
    let in_bounds = |outcome: &HostOutcome, sink: &MemorySink| {
        is_complete(outcome, sink)
            && outcome.tasks.iter().all(|task| (30_000_000..36_000_000).contains(&task.run_ns))
    };
    let (outcome, sink) = play_until(&on_cpu0(hogs(3, 30, 1_000_000)), in_bounds);
    assert_eq!(outcome.source, "bpf");
    assert!(outcome.check.calibration_error_ppm.unwrap() < 20_000, "{:?}", outcome.check);
    assert_eq!(outcome.check.nr_waits_off, Some(0), "{:?}", outcome.check);
    assert_eq!(outcome.nr_lost_events, 0);
    for task in &outcome.tasks {
        assert_eq!((task.requested_ns, task.nr_progress), (30_000_000, 30));
        assert_eq!(task.exit_code, Some(0));
    }
    assert!(sink.events.is_sorted_by_key(|event| event.time_ns));
    let first: Vec<u32> = sink
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Fork { task, parent: None } => Some(task.0),
            _ => None,
        })
        .collect();
    assert_eq!(first.len(), 3, "each hog is released once: {first:?}");
    let cpu = on_cpu0(hogs(1, 1, 1)).cpus.first_cpu().unwrap();
    for event in &sink.events {
        assert!(matches!(event.kind, EventKind::Migrate { .. }) || event.cpu == cpu, "{event:?}");
    }
    let progress = sink.events.iter().filter(|e| matches!(e.kind, EventKind::Progress { .. }));
    assert_eq!(progress.count(), 90);
}

/// The timeline of one CPU must be consistent: the task that leaves is the one that came.
#[test]
fn switches_of_a_cpu_fit_together() {
    if !common::has_bpf() {
        return;
    }
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(50))
        .run(100_000)
        .sleep(200_000)
        .end_loop()
        .build();
    let mut task = TaskSpec::new("sleeper", program);
    task.instances = 4;
    let request = HostRequest::new(Workload::new("w", vec![task]), 1);
    let (outcome, sink) = play_until(&request, is_complete);
    let mut on_cpu: BTreeMap<CpuId, Option<TaskId>> = BTreeMap::new();
    let mut switches = 0;
    for event in &sink.events {
        if let EventKind::Switch { prev, next, out } = event.kind {
            let before = on_cpu.insert(event.cpu, next).unwrap_or(None);
            assert_eq!(before, prev, "at {} ns on CPU {}", event.time_ns, event.cpu);
            assert_eq!(out == SwitchOut::Idle, prev.is_none());
            switches += 1;
        }
    }
    let slices: u64 = outcome.tasks.iter().map(|task| task.nr_slices).sum();
    assert!(switches as u64 >= slices && slices >= 200, "{switches} {slices}");
    let voluntary: u64 = outcome.tasks.iter().map(|task| task.nr_voluntary_switches).sum();
    assert!(voluntary >= 4 * 51, "50 sleeps and an exit each: {voluntary}");
}

#[test]
fn real_time_hogs_run_one_after_the_other_and_never_outrank_the_launcher() {
    if !common::has_bpf() {
        return;
    }
    let mut request = on_cpu0(hogs(3, 10, 1_000_000));
    request.workload.tasks[0].attr.policy = Policy::Fifo;
    request.workload.tasks[0].attr.rt_priority = 99;
    let (outcome, sink) = play(&request);
    assert!(outcome.warnings.iter().any(|warning| warning.code == Code::RtPriorityCapped));
    // Compare units of work: a task that ends may sleep for a lock of the kernel, and return.
    let mut order: Vec<TaskId> = sink
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Progress { task, .. } => Some(task),
            _ => None,
        })
        .collect();
    assert_eq!(order.len(), 30);
    order.dedup();
    assert_eq!(order.len(), 3, "FIFO does not alternate: {order:?}");
}

#[test]
fn a_hog_that_never_ends_is_ended_at_the_limit_even_under_fifo() {
    if !common::has_nice() {
        return;
    }
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let mut hog = TaskSpec::new("hog", forever);
    hog.instances = 2 * schedlab_host::allowed_cpus().weight();
    let mut request = HostRequest::new(Workload::new("w", vec![hog]), 1);
    request.policy = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 97 });
    request.limit_ns = 300_000_000;
    let (outcome, _) = play_until(&request, |outcome, _| outcome.end_ns < 900_000_000);
    assert!(outcome.was_limited);
    assert!(outcome.tasks.iter().all(|task| task.exit_code == Some(-9)));
    request.duration_ns = Some(50_000_000);
    let (outcome, sink) = play_until(&request, |outcome, _| outcome.end_ns < 250_000_000);
    assert!(!outcome.was_limited && sink.end_ns >= 50_000_000);
}

#[test]
fn forks_joins_yields_phases_and_attributes_are_played() {
    if !common::has_bpf() {
        return;
    }
    let batch = SchedAttr { policy: Policy::Batch, nice: 3, ..SchedAttr::default() };
    let mut parent = ProgramBuilder::new();
    parent.op(Op::Phase(0)).op(Op::Fork { task: 1 }).op(Op::Fork { task: 1 });
    parent.op(Op::JoinAll).op(Op::Phase(1)).op(Op::SetAttr(Box::new(batch)));
    parent.run(100_000).op(Op::Yield);
    let mut parent = TaskSpec::new("parent", parent.build());
    parent.phases = vec!["fork".into(), "join".into()];
    let mut child = TaskSpec::new("child", units(2, 500_000));
    child.instances = 0;
    child.attr.nice = 7;
    let request = on_cpu0(Workload::new("family", vec![parent, child]));
    let (_, sink) = play_until(&request, is_complete);
    let names: Vec<&str> = sink.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["parent", "child-0", "child-1"]);
    let parents = sink.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { parent, .. } => Some(parent),
        _ => None,
    });
    assert_eq!(parents.collect::<Vec<_>>(), [None, Some(TaskId(0)), Some(TaskId(0))]);
    let time_of = |wanted: &dyn Fn(&EventKind) -> bool| {
        sink.events.iter().rfind(|event| wanted(&event.kind)).map(|event| event.time_ns).unwrap()
    };
    let joined = time_of(&|kind| matches!(kind, EventKind::Phase { phase: 1, .. }));
    let last_child = time_of(&|kind| matches!(kind, EventKind::Progress { .. }));
    assert!(joined > last_child, "the join ends after the children: {joined} {last_child}");
}

#[test]
fn a_yield_between_two_tasks_is_a_yield() {
    if !common::has_bpf() {
        return;
    }
    let program = ProgramBuilder::new()
        .begin_loop(LoopCount::Times(20))
        .run(50_000)
        .op(Op::Yield)
        .end_loop()
        .build();
    let mut task = TaskSpec::new("polite", program);
    task.instances = 2;
    task.attr.policy = Policy::Rr;
    task.attr.rt_priority = 10;
    let is_yield =
        |kind: &EventKind| matches!(kind, EventKind::Switch { out: SwitchOut::Yielded, .. });
    // Some of the 40 are preemptions if other real-time tasks use the CPU.
    play_until(&on_cpu0(Workload::new("w", vec![task])), |_, sink| {
        sink.events.iter().filter(|event| is_yield(&event.kind)).count() >= 30
    });
}

#[test]
fn io_waits_for_the_device_and_leaves_no_file() {
    if !common::has_bpf() {
        return;
    }
    let io = |direction, sync| Op::Io { direction, bytes: Amount::Constant(4096), sync };
    let mut program = ProgramBuilder::new();
    program.begin_loop(LoopCount::Times(10));
    program.op(io(IoDirection::Write, true)).op(io(IoDirection::Read, true));
    program.op(io(IoDirection::Write, false)).op(io(IoDirection::Read, false)).end_loop();
    let request = on_cpu0(Workload::new("io", vec![TaskSpec::new("io", program.build())]));
    let mut sink = MemorySink::default();
    let _turn = schedlab_testing::turn();
    match HostLane.play(&request, &mut sink) {
        Err(error) if error.to_string().contains("O_DIRECT") => skip(error),
        Err(error) => panic!("{error}"),
        Ok(_) => {
            let blocked = sink.events.iter().filter(|event| {
                matches!(event.kind, EventKind::Switch { out: SwitchOut::BlockedIo, .. })
            });
            assert!(blocked.count() >= 10, "each synchronous write waits");
        }
    }
}

#[test]
fn release_times_are_kept() {
    let mut late = hogs(3, 1, 100_000);
    late.tasks[0].release_ns = Amount::Constant(2_000_000);
    late.tasks[0].interarrival_ns = Some(Amount::Constant(20_000_000));
    let wanted = [2_000_000u64, 22_000_000, 42_000_000];
    let releases = |outcome: &HostOutcome| -> Vec<u64> {
        outcome.tasks.iter().map(|task| task.release_ns).collect()
    };
    let (outcome, _) = play_until(&HostRequest::new(late, 1), |outcome, _| {
        releases(outcome).iter().zip(wanted).all(|(release, at)| *release < at + 15_000_000)
    });
    let releases = releases(&outcome);
    assert!(releases.iter().zip(wanted).all(|(release, at)| *release >= at), "{releases:?}");
    assert_eq!(releases.len(), 3);
}

#[test]
fn weights_of_control_groups_share_the_cpu() {
    if !common::has_bpf() {
        return;
    }
    if schedlab_host::cgroup::CpuController::detect().is_none() {
        return skip("no cpu controller is mounted");
    }
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let hog = |name: &str, group| {
        let mut task = TaskSpec::new(name, forever.clone());
        task.attr.cgroup = CgroupId(group);
        task
    };
    let mut workload = Workload::new("groups", vec![hog("heavy", 1), hog("light", 2)]);
    for (path, weight) in [("/heavy", 300), ("/light", 100)] {
        workload.cgroups.push(CgroupSpec::new(path, CgroupId(0), weight));
    }
    workload.duration_ns = Some(600_000_000);
    play_until(&on_cpu0(workload), |outcome, _| {
        let [heavy, light] = [0, 1].map(|task| outcome.tasks[task].run_ns as f64);
        (0.68..0.82).contains(&(heavy / (heavy + light)))
    });
}

#[test]
fn without_bpf_the_result_says_so_and_leaves_out_what_it_cannot_know() {
    let mut request = HostRequest::new(hogs(2, 5, 1_000_000), 1);
    request.recorder = RecorderChoice::Schedstat;
    let (outcome, sink) = play(&request);
    assert_eq!(outcome.source, "schedstat");
    assert!(outcome.tasks.iter().all(|task| task.trace.is_none() && task.run_ns > 4_900_000));
    assert_eq!(outcome.check.run_delay_error_ppm, None);
    let progress = sink.events.iter().filter(|e| matches!(e.kind, EventKind::Progress { .. }));
    assert_eq!(progress.count(), 10);
    assert!(!sink.events.iter().any(|event| matches!(event.kind, EventKind::Switch { .. })));
    let measures = measures_without_trace(&outcome, &Workload::new("w", Vec::new()), 1);
    assert!(measures.totals.makespan_ns.is_some() && measures.totals.cpu_time_ns > 9_800_000);
    assert_eq!(measures.model, None, "only the simulator has its counters");
    let absent = |task: &TaskMeasures| {
        let read = |name| TaskMeasures::LIST.iter().find(|m| m.name == name).unwrap().read;
        ABSENT_WITHOUT_TRACE.iter().all(|name| match read(*name)(task) {
            Reading::Number(number) => number.is_none(),
            Reading::Distribution(distribution) => distribution == Distribution::default(),
            Reading::Word => false,
        })
    };
    assert!(measures.tasks.iter().all(absent), "not known is not 0");
}

#[test]
fn the_lane_gives_a_result_with_settings_and_self_check() {
    let request = RunRequest {
        seed: 3,
        keep: Keep::ALL,
        ..RunRequest::new(hogs(2, 5, 1_000_000), "OTHER", schedlab_host::allowed_cpus())
    };
    let result = HostLane.run(&request, &mut NullSink).unwrap();
    assert_eq!((result.lane, result.measures.tasks.len()), (LaneKind::Host.into(), 2));
    assert_eq!(result.progress.iter().map(|curve| curve.times_ns.len()).sum::<usize>(), 10);
    assert!(result.measures.tasks.iter().all(|task| task.pid.is_some()));
    let names: Vec<&str> =
        result.machine.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert!(names.contains(&"calibration_error_ppm"));
    if result.source == "bpf" {
        assert!(names.contains(&"trace_run_delay_error_ppm"));
        assert!(!result.slices.is_empty());
    }
    let tuned = RunRequest { tunables: vec![("slice".into(), "1ms".into())], ..request };
    assert!(HostLane.run(&tuned, &mut NullSink).unwrap_err().text().contains("slice"));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let error = |request: &HostRequest| {
        HostLane.play(request, &mut NullSink).expect_err("must be refused").to_string()
    };
    let mut request = HostRequest::new(hogs(1, 1, 1_000), 1);
    request.cpus = CpuMask::only(CpuId(1023));
    assert!(error(&request).contains("CPU 1023"));
    let mut request = HostRequest::new(hogs(1, 1, 1_000), 1);
    request.policy = Some(PolicyOverride { policy: Policy::Rr, rt_priority: 98 });
    assert!(error(&request).contains("1 to 97"));
    let mut request = HostRequest::new(hogs(1, 1, 1_000), 1);
    request.workload.tasks[0].attr.slice_ns = Some(5);
    assert!(error(&request).contains("slice"));
}

#[test]
fn a_quota_limits_a_group() {
    if !common::has_root() {
        return;
    }
    if schedlab_host::cgroup::CpuController::detect().is_none() {
        return skip("no cpu controller is mounted");
    }
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let mut workload = Workload::new("quota", vec![TaskSpec::new("hog", forever)]);
    workload.tasks[0].attr.cgroup = CgroupId(1);
    let mut group = CgroupSpec::new("/limited", CgroupId(0), 100);
    group.cpu_max = Some(CpuMax { quota_ns: 5_000_000, period_ns: 20_000_000, burst_ns: 0 });
    workload.cgroups.push(group);
    workload.duration_ns = Some(600_000_000);
    // A quarter was allowed. Other load on the machine, above all the real-time tasks of parallel
    // tests, leaves less.
    play_until(&on_cpu0(workload.clone()), |outcome, _| (0.1..0.32).contains(&share(outcome)));
    // The run's own group can have a limit too, and no group may have more than its parent: a
    // twentieth was allowed.
    workload.cgroups[0].cpu_max =
        Some(CpuMax { quota_ns: 1_000_000, period_ns: 20_000_000, burst_ns: 500_000 });
    workload.cgroups[1].cpu_max = None;
    play_until(&on_cpu0(workload), |outcome, _| (0.01..0.12).contains(&share(outcome)));
}

#[test]
fn a_task_limits_a_group_and_frees_it() {
    if !common::has_root() {
        return;
    }
    if schedlab_host::cgroup::CpuController::detect().is_none() {
        return skip("no cpu controller is mounted");
    }
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let change = |cpu_max| {
        let group = CgroupId(1);
        Op::Change(Box::new(Change::CpuMax { group, cpu_max }))
    };
    let max = CpuMax { quota_ns: 5_000_000, period_ns: 20_000_000, burst_ns: 0 };
    let weight = Change::Weight { group: CgroupId(1), weight: 300 };
    let mut boss = ProgramBuilder::new();
    boss.op(change(Some(max))).op(Op::Change(Box::new(weight))).sleep(600_000_000);
    let mut workload = Workload::new(
        "changes",
        vec![TaskSpec::new("hog", forever), TaskSpec::new("boss", boss.build())],
    );
    workload.tasks[0].attr.cgroup = CgroupId(1);
    workload.cgroups.push(CgroupSpec::new("/limited", CgroupId(0), 100));
    workload.duration_ns = Some(600_000_000);
    // As where the limit holds from the start.
    play_until(&on_cpu0(workload.clone()), |outcome, _| (0.1..0.32).contains(&share(outcome)));
    // A limit that is taken away at once holds nobody back.
    let mut boss = ProgramBuilder::new();
    boss.op(change(Some(max))).op(change(None)).sleep(600_000_000);
    workload.tasks[1].program = boss.build();
    play_until(&on_cpu0(workload), |outcome, _| share(outcome) > 0.4);
}

#[test]
fn deadline_tasks_run_and_too_many_are_not_admitted() {
    if !common::has_root() {
        return;
    }
    let mut periodic = TaskSpec::new("periodic", units(3, 1_000_000));
    periodic.attr.policy = Policy::Deadline;
    let deadline = DeadlineParams {
        runtime_ns: 3_000_000,
        deadline_ns: 10_000_000,
        period_ns: 10_000_000,
        reclaim: true,
    };
    periodic.attr.deadline = deadline;
    let online = schedlab_host::allowed_cpus().weight();
    let mut request = HostRequest::new(Workload::new("w", vec![periodic]), 1);
    let _turn = schedlab_testing::turn();
    match HostLane.play(&request, &mut NullSink) {
        Ok(outcome) => assert_eq!(outcome.tasks[0].nr_progress, 3),
        Err(error) if error.to_string().contains("root domain") => {
            return skip(error);
        }
        Err(error) => panic!("{error}"),
    }
    request.workload.tasks[0].instances = 4 * online;
    let error = HostLane.play(&request, &mut NullSink).unwrap_err().to_string();
    assert!(error.contains("admission control") && error.contains("3000000 ns"), "{error}");
}

#[test]
fn memory_and_working_sets_are_touched() {
    let memrun = |access, pattern, count| Op::MemRun {
        access,
        pattern,
        size_bytes: 32 << 20,
        stride_bytes: 64,
        count: Amount::Constant(count),
    };
    let program = |ops: &[Op]| {
        let mut builder = ProgramBuilder::new();
        for op in ops {
            builder.op(op.clone());
        }
        builder.op(Op::Progress).build()
    };
    let chase = memrun(MemAccess::Chase, MemPattern::Random, 1_000_000);
    let read = memrun(MemAccess::Read, MemPattern::Sequential, 1_000_000);
    let mut set = TaskSpec::new(
        "set",
        ProgramBuilder::new()
            .begin_loop(LoopCount::Times(20))
            .run(2_000_000)
            .sleep(100_000)
            .end_loop()
            .build(),
    );
    set.working_set_bytes = 1 << 20;
    let tasks = vec![
        TaskSpec::new("chase", program(&[chase])),
        TaskSpec::new("read", program(&[read])),
        TaskSpec::new("mem", program(&[Op::Mem { bytes: Amount::Constant(64 << 20) }])),
        set,
    ];
    let (outcome, _) = play(&on_cpu0(Workload::new("memory", tasks)));
    let run: Vec<u64> = outcome.tasks.iter().map(|task| task.run_ns).collect();
    assert!(run[0] > 2 * run[1], "a chase waits for each access: {run:?}");
    assert!(run[2] > 1_000_000, "64 MB take more than a ms: {run:?}");
    assert_eq!(outcome.tasks[3].requested_ns, 40_000_000);
    assert!((40_000_000..80_000_000).contains(&run[3]), "{run:?}");
}

/// Names in the kernel are those of the trace, for forked tasks too.
#[test]
fn tasks_are_called_in_the_kernel_as_in_the_trace() {
    let mut parent = ProgramBuilder::new().run(100_000).build();
    parent.ops.extend([Op::Fork { task: 1 }, Op::Fork { task: 1 }, Op::JoinAll]);
    let mut named = TaskSpec::new("nm-parent", parent);
    named.instances = 2;
    let mut child =
        TaskSpec::new("nm-child-long", ProgramBuilder::new().sleep(150_000_000).build());
    child.instances = 0;
    let request = HostRequest::new(Workload::new("w", vec![named, child]), 1);
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let names = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                seen.extend(names_that_begin_with("nm-"));
                std::thread::sleep(Duration::from_millis(5));
            }
            seen
        });
        let (outcome, _) = play(&request);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(outcome.tasks.len(), 6);
        names.join().unwrap()
    });
    // The kernel keeps 15 bytes.
    let children = (0..4).map(|nth| format!("nm-child-long-{nth}"));
    let parents = (0..2).map(|nth| format!("nm-parent-{nth}"));
    assert_eq!(seen, children.chain(parents).collect());
}

/// Names of processes that begin with `prefix`.
fn names_that_begin_with(prefix: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|dir| std::fs::read_to_string(dir.path().join("comm")).ok());
    names.map(|name| name.trim().to_string()).filter(|name| name.starts_with(prefix)).collect()
}
