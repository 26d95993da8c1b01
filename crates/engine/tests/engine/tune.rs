// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables and features that change while the workload runs, and CPUs with which groups start.

use crate::common;

use common::workloads::{endless, policy, task};
use common::{Case, MS, Run, S};
use schedlab_model::program::{ProgramBuilder, SchedFeature, SchedTunable};
use schedlab_model::{
    CgroupId, CgroupSpec, CpuId, CpuMask, CpuMax, EventKind, LoopCount, Machine, Nanos, Op, Policy,
    SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

/// Plays `workload` for four seconds under `name`, at no costs.
fn play(workload: &Workload, name: &str, nr_cpus: u32) -> Result<Run, String> {
    let mut case = Case::new(workload, find(name).expect("it is registered"), nr_cpus);
    case.machine = Machine { costs: schedlab_model::Costs::ZERO, ..case.machine };
    case.until_ns = Some(4 * S);
    case.run().map_err(|error| error.to_string())
}

/// A task above all others that performs each step after another second.
fn boss(steps: &[(SchedTunable, u64)]) -> TaskSpec {
    let mut program = ProgramBuilder::new();
    for (tunable, value) in steps {
        program.sleep(S).op(Op::Tune { tunable: *tunable, value: *value });
    }
    task("boss", policy(Policy::Fifo, 99), program.sleep(S).build())
}

/// CPU time of the tasks called `name` in each second.
fn seconds(run: &Run, name: &str) -> Vec<Nanos> {
    let mut sums = vec![0; 4];
    let mut since: Vec<Option<Nanos>> = vec![None; 8];
    let mut add = |from: Nanos, to: Nanos| {
        for (second, sum) in (0..).zip(&mut sums) {
            let (start, end) = (second * S, (second + 1) * S);
            *sum += to.clamp(start, end) - from.clamp(start, end);
        }
    };
    for event in &run.trace.events {
        let EventKind::Switch { next, .. } = event.kind else { continue };
        let slot = &mut since[event.cpu.index()];
        if let Some(from) = slot.take() {
            add(from, event.time_ns);
        }
        let is_it = next.is_some_and(|next| run.trace.tasks[next.index()].name == name);
        *slot = is_it.then_some(event.time_ns);
    }
    since.into_iter().flatten().for_each(|from| add(from, run.trace.end_ns));
    sums
}

/// A hog of the fair class next to a real-time one, and a task that tunes.
fn real_time(steps: &[(SchedTunable, u64)]) -> Workload {
    let hog = task("hog", policy(Policy::Fifo, 1), endless());
    let fair = task("fair", SchedAttr::default(), endless());
    Workload::new("w", vec![hog, fair, boss(steps)])
}

#[test]
fn the_real_time_limit_holds_from_its_change_on() {
    let steps = [
        (SchedTunable::RtRuntime, 500 * MS),
        (SchedTunable::RtRuntime, SchedTunable::NO_LIMIT),
        (SchedTunable::RtRuntime, 300 * MS),
    ];
    let run = play(&real_time(&steps), "linux-6.1", 1).unwrap();
    let fair = seconds(&run, "fair");
    // 950 ms of each second, 500 ms, all. A limit that comes back is exceeded once, which ends a
    // period at once.
    assert!(fair[0].abs_diff(50 * MS) <= 8 * MS, "{fair:?}");
    assert!(fair[1].abs_diff(500 * MS) <= 60 * MS, "{fair:?}");
    assert!(fair[2] <= 60 * MS, "{fair:?}");
    assert!(fair[3].abs_diff(400 * MS) <= 20 * MS, "{fair:?}");
}

/// P13: no timer ends the period of a limit that comes back.
#[test]
fn a_limit_that_comes_back_throttles_for_ever_with_bug_p13() {
    let steps = [
        (SchedTunable::RtRuntime, SchedTunable::NO_LIMIT),
        (SchedTunable::RtRuntime, 300 * MS),
        (SchedTunable::RtRuntime, 300 * MS),
    ];
    let workload = real_time(&steps);
    let of = |name| seconds(&play(&workload, name, 1).unwrap(), "hog");
    let (mended, buggy) = (of("linux-6.1"), of("linux-6.1+P13"));
    assert_eq!(mended[..2], buggy[..2]);
    assert!(buggy[3] <= 4 * MS && mended[3] >= 250 * MS, "{buggy:?} {mended:?}");
}

#[test]
fn a_period_above_the_runtime_is_refused_while_it_runs() {
    let refused = play(&real_time(&[(SchedTunable::RtPeriod, 100 * MS)]), "linux-6.1", 1);
    let text = refused.err().unwrap();
    assert!(text.contains("the kernel refuses a runtime above the period"), "{text}");
    let both = [(SchedTunable::RtRuntime, 50 * MS), (SchedTunable::RtPeriod, 100 * MS)];
    let run = play(&real_time(&both), "linux-6.1", 1).unwrap();
    let hog = seconds(&run, "hog");
    assert!(hog[3].abs_diff(500 * MS) <= 60 * MS, "{hog:?}");
}

#[test]
fn a_deadline_task_and_a_changing_limit_are_refused_together() {
    let mut workload = real_time(&[(SchedTunable::RtRuntime, 500 * MS)]);
    workload.tasks[1].attr.policy = Policy::Deadline;
    workload.tasks[1].attr.deadline = schedlab_model::DeadlineParams {
        runtime_ns: MS,
        deadline_ns: 10 * MS,
        period_ns: 10 * MS,
        reclaim: false,
    };
    let text = play(&workload, "linux-6.12", 1).err().unwrap();
    assert!(text.contains("admission that changes during a run"), "{text}");
}

/// Times and kinds of the events of a run.
fn events(run: &Run) -> Vec<(Nanos, EventKind)> {
    run.trace.events.iter().map(|event| (event.time_ns, event.kind)).collect()
}

/// Hogs, tasks that wake often, and a task that switches a feature after a second.
#[test]
fn a_feature_holds_from_its_switch_on() {
    for (name, feature) in [
        ("linux-6.1", SchedFeature::WakeupPreemption),
        ("linux-6.6", SchedFeature::RunToParity),
        ("linux-6.12", SchedFeature::RunToParity),
        ("linux-6.12", SchedFeature::PlaceLag),
        ("linux-6.18", SchedFeature::DelayDequeue),
        ("linux-7.1", SchedFeature::PlaceLag),
    ] {
        let attr = SchedAttr::default();
        let mut program = ProgramBuilder::new();
        program.begin_loop(LoopCount::Forever).run(950_000).sleep(1_700_000).end_loop();
        let sleeper = TaskSpec { instances: 3, ..task("sleeper", attr, program.build()) };
        let hog = TaskSpec { instances: 2, ..task("hog", attr, endless()) };
        let run = |value| {
            let boss = boss(&[(SchedTunable::Feature(feature), value)]);
            let workload = Workload::new("w", vec![sleeper.clone(), hog.clone(), boss]);
            events(&play(&workload, name, 1).unwrap())
        };
        let (off, on) = (run(0), run(1));
        let before = |all: &[(Nanos, EventKind)]| all.iter().filter(|one| one.0 < S).count();
        assert!(off[..before(&off)] == on[..before(&on)], "{name}: {feature:?}");
        assert!(off != on, "{name}: {feature:?}");
    }
}

#[test]
fn a_feature_that_a_version_does_not_have_is_refused() {
    for (name, feature) in [
        ("linux-7.1", SchedFeature::LastBuddy),
        ("linux-6.6", SchedFeature::DelayDequeue),
        ("rr", SchedFeature::RunToParity),
    ] {
        let tasks = vec![boss(&[(SchedTunable::Feature(feature), 0)])];
        let text = play(&Workload::new("w", tasks), name, 1).err().unwrap();
        assert!(text.contains(feature.name()), "{name}: {text}");
    }
}

/// A group that may use half of two CPUs: a queue takes a slice of the quota at once.
#[test]
fn a_slice_of_the_quota_holds_from_its_change_on() {
    let max = CpuMax { quota_ns: 40 * MS, period_ns: 100 * MS, burst_ns: 0 };
    let within = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
    let hogs = TaskSpec { instances: 2, ..task("hog", within, endless()) };
    let workload = |value| {
        let tasks = vec![hogs.clone(), boss(&[(SchedTunable::BandwidthSlice, value)])];
        let mut workload = Workload::new("w", tasks);
        let group = CgroupSpec::new("/a", CgroupId(0), 100);
        workload.cgroups.push(CgroupSpec { cpu_max: Some(max), ..group });
        workload
    };
    let run = |value| play(&workload(value), "linux-6.12", 2).unwrap();
    let (small, large) = (run(1_000_000), run(40 * MS));
    let upto = |all: &[(Nanos, EventKind)]| all.iter().filter(|one| one.0 < S).count();
    let (small, large) = (events(&small), events(&large));
    assert!(small[..upto(&small)] == large[..upto(&large)]);
    assert!(small != large);
}

#[test]
fn a_group_starts_with_its_cpus() {
    for name in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-2.6.32", "rr"] {
        let within = SchedAttr { cgroup: CgroupId(2), ..SchedAttr::default() };
        let hogs = TaskSpec { instances: 3, ..task("in", within, endless()) };
        let out = TaskSpec { instances: 2, ..task("out", SchedAttr::default(), endless()) };
        let mut workload = Workload::new("w", vec![hogs, out]);
        let cpus = (2..4).map(CpuId).collect::<CpuMask>();
        let group = CgroupSpec { cpus: Some(cpus), ..CgroupSpec::new("/a", CgroupId(0), 100) };
        workload.cgroups.push(group);
        workload.cgroups.push(CgroupSpec::new("/a/b", CgroupId(1), 100));
        let run = play(&workload, name, 4).unwrap();
        let mut used = CpuMask::empty();
        for event in &run.trace.events {
            if let EventKind::Switch { next: Some(next), .. } = event.kind
                && run.trace.tasks[next.index()].name.starts_with("in")
            {
                used.set(event.cpu);
            }
        }
        assert_eq!(used, cpus, "{name}");
    }
}
