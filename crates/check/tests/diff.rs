// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two schedulers are compared: equal ones are equal, a known difference is found where it is, and
//! one scheduler can follow another.

use schedlab_check::{
    Case, Diff, Family, Feature, Features, Kind, Setting, Shape, Side, Subject, Verdict, diff,
    follow, generate, play_both, shrink,
};
use schedlab_model::{Costs, CpuId, Machine, Preempt, TaskId, Workload};
use schedlab_sched::boundary::explain::{Value, Who};
use schedlab_sched::{
    Claims, Core, DequeueFlags, EnqueueFlags, Explain, Make, SchedClass, Scheduler, WakeFlags,
    registry,
};
use schedlab_workload::{read_rtapp, write_rtapp_short};
use std::sync::Arc;

fn subject(name: &str) -> Subject {
    Subject::new(Arc::clone(registry::find(name).expect("it is modelled")))
}

fn workload(text: &str) -> Workload {
    read_rtapp("w.json", text, 1).expect("it is a workload").workload
}

/// The machine of both sides: both have the same preemption model.
fn machine(nr_cpus: u32) -> Machine {
    Machine { preempt: Preempt::Voluntary, costs: Costs::ZERO, ..Machine::flat(nr_cpus) }
}

fn side<'a>(subject: &'a Subject, machine: &'a Machine) -> Side<'a> {
    Side { scheduler: &subject.scheduler, options: &subject.options, machine }
}

fn compared(a: &Subject, b: &Subject, workload: &Workload) -> Diff {
    let machine = machine(1);
    let setting = Setting { workload, seed: 1, until_ns: None };
    diff(&setting, &[side(a, &machine), side(b, &machine)], true).expect("both run")
}

/// A SCHED_IDLE task runs when a normal task wakes.
const IDLE: &str = r#"{ "name": "idle", "global": { "duration": "20ms" },
  "tasks": {
    "low": { "policy": "SCHED_IDLE", "loop": -1, "run": 1000 },
    "high": { "loop": -1, "sleep": 300, "run": 50 } } }"#;

#[test]
fn a_scheduler_is_equal_to_itself() {
    for name in ["linux-6.12", "linux-7.2", "linux-6.1", "rr", "linux-2.6.22"] {
        let one = subject(name);
        let same = [one.clone(), one.clone()];
        for seed in 0..40 {
            let case = generate(&one.shape(), seed);
            let verdict = play_both(&case, &same);
            assert!(!matches!(verdict, Verdict::Broken(_)), "{name}, seed {seed}: {verdict:?}");
        }
        let found = compared(&one, &one, &workload(IDLE));
        assert!(found.first.is_none() && found.state.is_none(), "{name}: {found:?}");
        assert!(found.nr_equal > 2 && found.end_ns == 20_000_000, "{name}: {found:?}");
    }
}

/// Linux 6.12.0 protects a SCHED_IDLE task's slice from a waking normal task; later ones do not.
#[test]
fn the_first_difference_of_two_kernels_is_the_known_one() {
    let found = compared(&subject("linux-6.12.0"), &subject("linux-6.12"), &workload(IDLE));
    let first = found.first.expect("they differ");
    assert_eq!((first.kind, first.cpu), (Kind::Switch, CpuId(0)));
    let name = |index: usize| {
        let running = first.sides[index].running.expect("the CPU is busy");
        found.names[index][running.index()].as_str()
    };
    assert_eq!((name(0), name(1)), ("low", "high"), "{first:?}");
    let pick = first.sides[1].pick.as_ref().expect("it has picked");
    assert_eq!((pick.time_ns, pick.next), (first.time_ns, first.sides[1].running));
    assert!(!pick.explanation.as_ref().expect("it is explained").contests.is_empty());
    assert!(first.sides[0].event.is_none());
}

#[test]
fn a_tunable_shows_in_the_state_before_it_decides() {
    let (a, mut b) = (subject("linux-6.12"), subject("linux-6.12"));
    let tunables = b.scheduler.tunables.clone();
    b.options.set(&tunables, "base_slice", 6_000_000).expect("it is in range");
    let text = r#"{ "name": "w", "global": { "duration": "100ms" },
      "tasks": { "x": { "loop": -1, "run": 50000 },
                 "y": { "priority": 5, "loop": -1, "run": 40000 } } }"#;
    let found = compared(&a, &b, &workload(text));
    let state = found.state.expect("a number differs");
    let first = found.first.expect("the slices end at other ticks");
    assert!(state.time_ns < first.time_ns, "{state:?} {first:?}");
    assert!(["slice", "deadline"].contains(&state.field), "{state:?}");
    assert!(matches!(state.who, [Who::Task(_), Who::Task(_)]));
    let [Value::Number(one), Value::Number(other)] = state.values else { panic!("{state:?}") };
    assert!(one < other, "{state:?}");
}

/// Runs each task to its end: the first of the line, or the last.
struct Line {
    takes_last: bool,
    tasks: Vec<TaskId>,
}

impl Explain for Line {
    fn name(&self) -> &'static str {
        "line"
    }
}

impl SchedClass for Line {
    fn owns(&self, _: schedlab_model::Policy) -> bool {
        true
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: EnqueueFlags) {
        core.add_nr_running(cpu, 1);
        self.tasks.push(task);
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: DequeueFlags) -> bool {
        core.sub_nr_running(cpu, 1);
        self.tasks.retain(|other| *other != task);
        true
    }

    fn wakeup_preempt(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: TaskId, _: WakeFlags) {}

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let curr = core.rq(cpu).curr.filter(|curr| self.tasks.contains(curr));
        let next = if self.takes_last { self.tasks.last() } else { self.tasks.first() };
        curr.or_else(|| next.copied())
    }
}

fn line(takes_last: bool) -> Subject {
    let make = move |_: &_, _: &_, _: &_| -> Vec<Box<dyn SchedClass>> {
        vec![Box::new(Line { takes_last, tasks: Vec::new() })]
    };
    let rr = registry::find("rr").expect("it is a scheduler");
    let claims = Claims { work_conserving: true, starvation_free: false, ..rr.claims };
    let tunables = Vec::new();
    Subject::new(Arc::new(Scheduler {
        name: "line".into(),
        claims,
        tunables,
        make: Make::new(make),
        ..(**rr).clone()
    }))
}

#[test]
fn the_choice_among_equal_tasks_is_no_difference() {
    let equal = r#"{ "name": "w", "tasks": {
      "x": { "instance": 2, "loop": 3, "run": 1000 }, "y": { "loop": 3, "run": 1000 } } }"#;
    let found = compared(&line(false), &line(true), &workload(equal));
    assert!(found.first.is_none(), "{found:?}");
    assert!(found.renamed_ns.is_some(), "the tasks have changed places: {found:?}");
    // A task that is longer than the others is not one of them.
    let longer = equal.replace(r#""y": { "loop": 3, "run": 1000"#, r#""y": { "run": 4000"#);
    let found = compared(&line(false), &line(true), &workload(&longer));
    assert_eq!(found.first.expect("y is another task").time_ns, 0);
    // Nor is one that draws its amounts.
    let drawn = equal.replace(r#""run": 1000 }, "y""#, r#""run": { "uniform": [1, 9] } }, "y""#);
    if let Ok(read) = read_rtapp("w.json", &drawn, 1) {
        assert!(compared(&line(false), &line(true), &read.workload).first.is_some());
    }
}

#[test]
fn random_search_finds_a_small_workload_that_differs() {
    let subjects = [subject("linux-6.12.0"), subject("linux-6.12")];
    let mut test = |case: &Case| play_both(case, &subjects).breach();
    let shape = subjects[0].shape();
    let found = (1..500).find_map(|seed| {
        let case = generate(&shape, seed);
        test(&case).map(|breach| (case, breach))
    });
    let (case, breach) = found.expect("a case differs");
    let small = shrink(&case, &breach, 500, &mut test);
    let text = write_rtapp_short(&small.case.workload);
    assert!(text.lines().count() <= 10, "{text}");
    assert!(small.breach.is_like(&breach), "{}", small.breach);
}

#[test]
fn a_scheduler_that_follows_itself_agrees() {
    for name in ["linux-6.1", "linux-6.12", "linux-7.2", "rr", "fcfs", "stride"] {
        let one = subject(name);
        let mut nr_decisions = 0;
        for seed in 0..40 {
            let case = generate(&one.shape(), seed);
            let machine = Machine { preempt: one.scheduler.preempt, ..case.machine.clone() };
            let setting = Setting { workload: &case.workload, seed: case.seed, until_ns: None };
            let Ok(found) = follow(&setting, &[side(&one, &machine), side(&one, &machine)]) else {
                continue;
            };
            assert_eq!(found.counts.nr_differing(), 0, "{name}, seed {seed}: {found:?}");
            let balances = |why: &String| why.contains("load balancing");
            assert!(found.stopped.as_ref().is_none_or(balances), "{name}, seed {seed}: {found:?}");
            nr_decisions += found.counts.nr_decisions;
        }
        assert!(nr_decisions > 100, "{name}: {nr_decisions}");
    }
}

#[test]
fn early_kernels_follow_on_one_cpu() {
    let kernel = subject("linux-6.12");
    for name in
        ["linux-2.4.18", "linux-2.6.0", "linux-2.6.11", "linux-2.6.22", "cfs-v19", "linux-2.6.23"]
    {
        let one = subject(name);
        let (mut nr_decisions, mut nr_whole) = (0, 0);
        for seed in 0..40 {
            let features = Features::ALL.without(Feature::Smp).without(Feature::Deadline);
            let shape = Shape { features: features.without(Feature::Quota), ..Shape::default() };
            let case = generate(&shape, seed);
            let machine = Machine { preempt: one.scheduler.preempt, ..case.machine.clone() };
            let setting = Setting { workload: &case.workload, seed: case.seed, until_ns: None };
            let own = side(&one, &machine);
            let found = follow(&setting, &[own, own]).expect("it follows itself");
            assert_eq!((found.counts.nr_differing(), found.stopped), (0, None), "{name}, {seed}");
            nr_decisions += found.counts.nr_decisions;
            let other = follow(&setting, &[side(&kernel, &machine), own]);
            nr_whole += u32::from(other.is_ok_and(|found| found.stopped.is_none()));
        }
        assert!(nr_decisions > 1_000 && nr_whole >= 20, "{name}: {nr_decisions}, {nr_whole}");
    }
}

#[test]
fn a_follower_whose_pick_changes_queues_is_refused() {
    let workload = workload(IDLE);
    let setting = Setting { workload: &workload, seed: 1, until_ns: None };
    let refused = |name: &str, nr_cpus| {
        let (a, b, machine) = (subject("linux-6.12"), subject(name), machine(nr_cpus));
        follow(&setting, &[side(&a, &machine), side(&b, &machine)]).unwrap_err()
    };
    for (name, nr_cpus, text) in [
        ("linux-2.6.32", 1, "in the pick itself"),
        ("rsdl-0.31", 1, "in the pick itself"),
        ("linux-2.6.22", 2, "with one CPU they follow"),
    ] {
        let error = refused(name, nr_cpus);
        assert!(error.is_refusal && error.side == 1, "{name}: {error}");
        assert!(error.to_string().contains(text), "{name}: {error}");
    }
}

#[test]
fn a_kernel_follows_another_and_disagrees_where_it_should() {
    let (a, b, machine) = (subject("linux-6.12.0"), subject("linux-6.12"), machine(1));
    let workload = workload(IDLE);
    let setting = Setting { workload: &workload, seed: 1, until_ns: None };
    let found = follow(&setting, &[side(&a, &machine), side(&b, &machine)]).expect("it follows");
    assert_eq!(found.stopped, None);
    let counts = found.counts;
    assert!(counts.nr_only_second > 0 && counts.nr_decisions > counts.nr_differing(), "{counts:?}");
    // In the other direction it is the first that preempts.
    let found = follow(&setting, &[side(&b, &machine), side(&a, &machine)]).expect("it follows");
    assert!(found.stopped.is_none() && found.counts.nr_only_first > 0, "{found:?}");
}

#[test]
fn a_scheduler_that_cannot_run_the_workload_is_named() {
    let text = r#"{ "name": "w", "global": { "duration": "1ms" }, "cgroups": { "/g": {
      "cpu_max": [1000, 10000] } }, "tasks": { "x": { "taskgroup": "/g", "run": 10 } } }"#;
    let Ok(read) = read_rtapp("w.json", text, 1) else { return };
    let (a, b, machine) = (subject("linux-6.12"), subject("rr"), machine(1));
    let setting = Setting { workload: &read.workload, seed: 1, until_ns: None };
    let error = diff(&setting, &[side(&a, &machine), side(&b, &machine)], true).unwrap_err();
    assert!(error.is_refusal && error.side == 1 && error.to_string().starts_with("B: "), "{error}");
    assert_eq!(Family::of(&b.scheduler), Family::Textbook);
}
