// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups that change while the workload runs: weights and limits hold from the change on.

use crate::common;

use common::workloads::{endless, task};
use common::{Case, MS, Run, S};
use schedlab_model::program::{ProgramBuilder, SchedTunable};
use schedlab_model::workload::Change;
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, CpuId, CpuMask, CpuMax, EventKind, LoopCount, Machine, Nanos, Op,
    SchedAttr, SwitchOut, TaskId, TaskSpec, Workload,
};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::{SCHEDULERS, find};
use std::collections::BTreeMap;

const FAIR: [&str; 7] = [
    "linux-6.1",
    "linux-6.6",
    "linux-6.12.0",
    "linux-6.12",
    "linux-6.18",
    "linux-7.1",
    "linux-7.2",
];

fn scheduler(name: &str) -> &'static Scheduler {
    find(name).expect("the scheduler is registered")
}

fn inside(group: u32) -> SchedAttr {
    SchedAttr { cgroup: CgroupId(group), ..SchedAttr::default() }
}

/// A hog in each of two groups for each CPU, and a task that makes each change after a second more.
fn workload(nr_cpus: u32, changes: Vec<Change>) -> Workload {
    let mut boss = ProgramBuilder::new();
    for change in changes {
        boss.sleep(S).op(Op::Change(Box::new(change)));
    }
    let hog = |name, group| TaskSpec { instances: nr_cpus, ..task(name, inside(group), endless()) };
    let tasks =
        vec![hog("a", 1), hog("b", 2), task("boss", SchedAttr::default(), boss.sleep(S).build())];
    let mut workload = Workload::new("changes", tasks);
    for path in ["/a", "/b"] {
        workload.cgroups.push(CgroupSpec::new(path, CgroupId(0), 100));
    }
    workload
}

/// CPU time of the hogs whose name begins with `prefix` from `from` to `to`.
fn ran(run: &Run, prefix: &str, from: Nanos, to: Nanos) -> Nanos {
    let is_one = |id: usize| run.trace.tasks[id].name.starts_with(prefix);
    let mut running: Vec<(Option<usize>, Nanos)> = vec![(None, 0); 16];
    let mut sum = 0;
    let mut add = |slot: &mut (Option<usize>, Nanos), at: Nanos| {
        if slot.0.is_some_and(is_one) {
            sum += at.clamp(from, to) - slot.1.clamp(from, to);
        }
    };
    for event in &run.trace.events {
        if let EventKind::Switch { next, .. } = event.kind {
            let slot = &mut running[event.cpu.index()];
            add(slot, event.time_ns);
            *slot = (next.map(|task| task.index()), event.time_ns);
        }
    }
    running.iter_mut().for_each(|slot| add(slot, run.trace.end_ns));
    sum
}

fn play(workload: &Workload, name: &str, nr_cpus: u32, costs: Costs) -> Run {
    let mut case = Case::new(workload, scheduler(name), nr_cpus);
    case.machine = Machine { costs, ..case.machine };
    case.until_ns = Some(4 * S);
    case.run().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn weight(group: u32, weight: u32) -> Change {
    Change::Weight { group: CgroupId(group), weight }
}

fn limit(group: u32, quota_ms: u64, period_ms: u64) -> Change {
    let max = CpuMax { quota_ns: quota_ms * MS, period_ns: period_ms * MS, burst_ns: 0 };
    Change::CpuMax { group: CgroupId(group), cpu_max: Some(max) }
}

fn no_limit(group: u32) -> Change {
    Change::CpuMax { group: CgroupId(group), cpu_max: None }
}

fn permille(part: Nanos, other: Nanos) -> u64 {
    part * 1_000 / (part + other)
}

/// Equal shares, then 3 to 1, then equal again.
#[test]
fn shares_follow_the_weight_from_the_change_on() {
    for name in FAIR.into_iter().chain(["linux-2.6.24", "linux-2.6.32"]) {
        for nr_cpus in [1, 2] {
            let workload = workload(nr_cpus, vec![weight(1, 300), weight(2, 300)]);
            for costs in [Costs::ZERO, Costs::DEFAULT] {
                let run = play(&workload, name, nr_cpus, costs);
                let share = |from, to| permille(ran(&run, "a", from, to), ran(&run, "b", from, to));
                let shares = [share(0, S), share(S, 2 * S), share(2 * S, 4 * S)];
                for (got, due) in shares.into_iter().zip([500u64, 750, 500]) {
                    assert!(got.abs_diff(due) <= 45, "{name}, {nr_cpus} CPUs: {shares:?}");
                }
            }
        }
    }
}

/// A weight of two groups deep in the tree counts too: the entities above are computed anew.
#[test]
fn a_group_below_another_changes() {
    for name in FAIR {
        let mut workload = workload(1, vec![weight(3, 300)]);
        workload.cgroups.push(CgroupSpec::new("/a/x", CgroupId(1), 100));
        workload.tasks.push(task("x", inside(3), endless()));
        let run = play(&workload, name, 1, Costs::ZERO);
        let share = |from, to| permille(ran(&run, "x", from, to), ran(&run, "a", from, to));
        // A task of nice 0 weighs as much as a group of weight 100.
        let shares = [share(0, S), share(S, 4 * S)];
        assert!(
            shares[0].abs_diff(500) <= 45 && shares[1].abs_diff(750) <= 45,
            "{name}: {shares:?}"
        );
        let halves = permille(ran(&run, "b", 0, 4 * S), 4 * S - ran(&run, "b", 0, 4 * S));
        assert!(halves.abs_diff(500) <= 20, "{name}: b got {halves} of 1000");
    }
}

/// No limit, then a quarter of a CPU, then none.
#[test]
fn a_limit_comes_and_goes() {
    for name in FAIR {
        for nr_cpus in [1, 2] {
            let workload = workload(nr_cpus, vec![limit(1, 5, 20), no_limit(1)]);
            let run = play(&workload, name, nr_cpus, Costs::ZERO);
            let got = |from, to| ran(&run, "a", from, to);
            let half = u64::from(nr_cpus) * S / 2;
            let [before, within, after] = [got(0, S), got(S, 2 * S), got(2 * S, 4 * S)];
            let text = format!("{name}, {nr_cpus} CPUs: {before} {within} {after}");
            assert!(before.abs_diff(half) <= half / 10, "{text}");
            // A tick of overrun in a period is paid back in the next.
            assert!(within.abs_diff(S / 4) <= S / 20, "{text}");
            assert!(after.abs_diff(2 * half) <= half / 5, "{text}");
            let all = [ran(&run, "a", 0, 4 * S), ran(&run, "b", 0, 4 * S)];
            assert!(all[0] + all[1] >= 4 * u64::from(nr_cpus) * S * 95 / 100, "{text}: idle");
        }
    }
}

/// The new limit holds also where the old one is above it, and a throttled group runs again at the
/// change.
#[test]
fn a_limit_becomes_another() {
    for name in FAIR {
        let mut workload = workload(1, vec![limit(1, 200, 400), limit(1, 50, 1_000)]);
        workload.cgroups[1].cpu_max =
            Some(CpuMax { quota_ns: MS, period_ns: 100 * MS, burst_ns: 0 });
        workload.tasks.remove(1);
        let run = play(&workload, name, 1, Costs::ZERO);
        let got = |from, to| ran(&run, "a", from, to);
        let (first, second, third) = (got(0, S), got(S, 2 * S), got(2 * S, 4 * S));
        let text = format!("{name}: {first} {second} {third}");
        assert!(first <= 15 * MS, "{text}");
        // The pool has 200 ms at once, at the end of the old period, and then every 400 ms.
        assert!((550 * MS..=850 * MS).contains(&second), "{text}");
        assert!((80 * MS..=260 * MS).contains(&third), "{text}");
        assert!(got(S, S + 50 * MS) >= 40 * MS, "{text}: it was to run at once");
    }
}

#[test]
fn a_limit_to_come_is_refused_where_none_is_enforced() {
    let workload = workload(1, vec![limit(1, 5, 20)]);
    let case = Case::new(&workload, scheduler("linux-2.6.32"), 1);
    let error = case.run().err().expect("it is refused").to_string();
    assert!(error.contains("\"/a\"") && error.contains("leaves out cpu.max"), "{error}");
}

#[test]
fn the_writer_pays_a_system_call() {
    let workload = workload(1, vec![weight(1, 300)]);
    let run = play(&workload, "linux-6.12", 1, Costs { syscall_ns: 2 * MS, ..Costs::ZERO });
    // A call that sleeps, one that changes the group, and one that sleeps.
    assert_eq!(ran(&run, "boss", 0, 4 * S), 3 * 2 * MS);
}

fn cpus(group: u32, cpus: &[u32]) -> Change {
    let mask = cpus.iter().map(|cpu| CpuId(*cpu)).collect();
    Change::Cpus { group: CgroupId(group), cpus: Some(mask) }
}

fn all_cpus(group: u32) -> Change {
    Change::Cpus { group: CgroupId(group), cpus: None }
}

/// CPUs on which the tasks whose name begins with `prefix` ran from `from` to `to`.
fn places(run: &Run, prefix: &str, from: Nanos, to: Nanos) -> CpuMask {
    let mut seen = CpuMask::empty();
    let mut running: BTreeMap<CpuId, (Nanos, Option<TaskId>)> = BTreeMap::new();
    let mut look = |cpu: CpuId, (since, task): (Nanos, Option<TaskId>), until: Nanos| {
        let is_one = |task: TaskId| run.trace.tasks[task.index()].name.starts_with(prefix);
        if task.is_some_and(is_one) && since < to && until > from {
            seen.set(cpu);
        }
    };
    for event in &run.trace.events {
        let EventKind::Switch { next, .. } = event.kind else { continue };
        let before = running.insert(event.cpu, (event.time_ns, next)).unwrap_or((0, None));
        look(event.cpu, before, event.time_ns);
    }
    running.into_iter().for_each(|(cpu, last)| look(cpu, last, run.trace.end_ns));
    seen
}

/// Tasks that run, wait and sleep leave CPUs that the cpuset of their group excludes, under every
/// scheduler; and may come back.
#[test]
fn tasks_follow_the_cpus_of_their_group() {
    for scheduler in SCHEDULERS.iter() {
        let changes = vec![cpus(1, &[1]), cpus(1, &[0, 3]), all_cpus(1)];
        let mut workload = workload(4, changes);
        let mut sleeper = ProgramBuilder::new();
        sleeper.begin_loop(LoopCount::Forever).run(2 * MS).sleep(7 * MS).end_loop();
        workload.tasks.push(TaskSpec { instances: 3, ..task("as", inside(1), sleeper.build()) });
        let mut case = Case::new(&workload, scheduler, 4);
        // Schedulers that preempt nobody let the boss wait.
        case.watchdog_ns = None;
        case.until_ns = Some(4 * S);
        let run = match case.run() {
            Ok(run) => run,
            Err(error) => panic!("{}: {error}", scheduler.name),
        };
        let at: Vec<Nanos> = boss_ran(&run);
        if at.len() < 3 {
            continue;
        }
        let only = |cpus: &[u32]| cpus.iter().map(|cpu| CpuId(*cpu)).collect::<CpuMask>();
        let seen = [(at[0], at[1], only(&[1])), (at[1], at[2], only(&[0, 3]))];
        for (from, to, due) in seen {
            // The change is made some time before the boss stops.
            let places = places(&run, "a", from, to - 5 * MS);
            let text = format!("{}: CPU {places} from {from} to {to}", scheduler.name);
            assert!(!places.is_empty() && places.and_not(&due).is_empty(), "{text}");
        }
    }
}

/// When the boss slept after each change.
fn boss_ran(run: &Run) -> Vec<Nanos> {
    let boss = run.trace.tasks.iter().position(|task| task.name == "boss");
    let events = run.trace.events.iter();
    let stops = events.filter_map(|event| match event.kind {
        EventKind::Switch { prev: Some(prev), out: SwitchOut::Sleeping, .. }
            if Some(prev.index()) == boss =>
        {
            Some(event.time_ns)
        }
        _ => None,
    });
    // It first sleeps.
    stops.filter(|time| *time >= S).collect()
}

/// From 6.2 on a cpuset and an affinity both hold; before, the cpuset replaced the affinity.
#[test]
fn an_affinity_comes_back_from_6_2_on() {
    for name in FAIR {
        let mut workload = workload(2, vec![cpus(1, &[1]), all_cpus(1)]);
        workload.tasks[0].attr.affinity = Some(CpuMask::only(CpuId(0)));
        workload.tasks[0].instances = 1;
        workload.tasks.remove(1);
        let run = play(&workload, name, 2, Costs::ZERO);
        assert_eq!(places(&run, "a", 0, S).to_string(), "0", "{name}");
        // No CPU is in both: that of the group holds.
        assert_eq!(places(&run, "a", S + 1, 2 * S).to_string(), "1", "{name}");
        let after = places(&run, "a", 2 * S + 1, 4 * S).to_string();
        assert_eq!(after, if name == "linux-6.1" { "1" } else { "0" }, "{name}");
    }
}

#[test]
fn a_group_stays_within_the_one_above() {
    let mut workload = workload(4, vec![cpus(3, &[0, 1]), cpus(1, &[1, 2]), cpus(3, &[3])]);
    workload.cgroups.push(CgroupSpec::new("/a/x", CgroupId(1), 100));
    workload.tasks.push(TaskSpec { instances: 4, ..task("x", inside(3), endless()) });
    let run = play(&workload, "linux-6.12", 4, Costs::ZERO);
    let at = boss_ran(&run);
    let seen = [(at[0], at[1]), (at[1], at[2]), (at[2], 4 * S)];
    let places = seen.map(|(from, to)| places(&run, "x", from, to - 5 * MS).to_string());
    // The parent has none of the CPUs that it asks for last, so it gets those of the parent.
    assert_eq!(places, ["0-1", "1", "1-2"]);
}

#[test]
fn an_affinity_outside_the_cpuset_is_refused() {
    let mut workload = workload(2, vec![cpus(1, &[1])]);
    let attr = SchedAttr { affinity: Some(CpuMask::only(CpuId(0))), ..inside(1) };
    let mut late = ProgramBuilder::new();
    late.sleep(2 * S).op(Op::SetAttr(Box::new(attr)));
    workload.tasks.push(task("late", inside(1), late.build()));
    let case = Case::new(&workload, scheduler("linux-6.12"), 2);
    let error = case.run().err().expect("it is refused").to_string();
    assert!(error.contains("affinity is CPU 0") && error.contains("\"/a\" has CPU 1"), "{error}");
}

fn tune(tunable: SchedTunable, value: u64) -> Op {
    Op::Tune { tunable, value }
}

/// Two hogs on one CPU, and a task that sets a tunable after two seconds of four.
fn tuned(op: Op) -> Workload {
    let mut boss = ProgramBuilder::new();
    boss.sleep(2 * S).op(op).sleep(S);
    let plain = SchedAttr::default();
    let hogs = TaskSpec { instances: 2, ..task("a", plain, endless()) };
    Workload::new("tuned", vec![hogs, task("boss", plain, boss.build())])
}

fn switches(run: &Run, from: Nanos, to: Nanos) -> usize {
    let is_within = |time| (from..to).contains(&time);
    let is_switch = |kind: &EventKind| matches!(kind, EventKind::Switch { .. });
    run.trace.events.iter().filter(|e| is_within(e.time_ns) && is_switch(&e.kind)).count()
}

/// A longer slice switches less often, from the change on.
#[test]
fn a_longer_slice_holds_from_the_change_on() {
    for name in FAIR {
        let workload = match name {
            "linux-6.1" => tuned(tune(SchedTunable::MinGranularity, 40 * MS)),
            _ => tuned(tune(SchedTunable::BaseSlice, 40 * MS)),
        };
        let run = play(&workload, name, 1, Costs::ZERO);
        let (before, after) = (switches(&run, 0, 2 * S), switches(&run, 2 * S, 4 * S));
        assert!((25..before / 4).contains(&after), "{name}: {before} and {after}");
    }
}

#[test]
fn a_tunable_that_a_scheduler_does_not_have_is_refused() {
    for (name, tunable) in [
        ("linux-6.12", SchedTunable::Latency),
        ("linux-6.1", SchedTunable::BaseSlice),
        ("linux-2.6.32", SchedTunable::Latency),
        ("rr", SchedTunable::NrMigrate),
    ] {
        let workload = tuned(tune(tunable, tunable.range().1));
        let text = Case::new(&workload, scheduler(name), 1).run().err().map(|e| e.to_string());
        let is_named = text.as_ref().is_some_and(|text| text.contains(tunable.name()));
        assert!(is_named, "{name}: {text:?}");
    }
    let small = tuned(tune(SchedTunable::BaseSlice, 1));
    let error = Case::new(&small, scheduler("linux-6.12"), 1).run().err().expect("it is refused");
    assert!(error.to_string().contains("allowed are 100000 to 1000000000"), "{error}");
}
