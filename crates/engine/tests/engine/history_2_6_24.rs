// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the fair classes of Linux 2.6.24 and 2.6.32 through the whole engine:
//! programs, ticks, tree, schedule() and the trace. Nothing costs time.
//!
//! The sequences follow from the rules of kernel/sched_fair.c of the two versions; HZ=1000 and one
//! CPU unless a test says otherwise.

use crate::common;

use common::checks::measures;
use common::workloads::{bursts, endless, nice, on, policy, task};
use common::{Case, MS, Run, S};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    CgroupId, CgroupSpec, LoopCount, Machine, Op, Policy, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::boundary::options::Options;
use schedlab_sched::registry::find;

const FIRST: &str = "linux-2.6.24";
const LATER: &str = "linux-2.6.32";

/// A run: what, where, how long.
struct Setup<'a> {
    scheduler: &'a str,
    hz: u32,
    nr_cpus: u32,
    set: Vec<(&'a str, u64)>,
}

impl<'a> Setup<'a> {
    fn new(scheduler: &'a str) -> Self {
        Self { scheduler, hz: 1000, nr_cpus: 1, set: Vec::new() }
    }

    fn run(&self, workload: &Workload, until_ms: u64) -> (Run, Vec<TaskMeasures>) {
        let info = find(self.scheduler).expect("it is registered");
        let mut case = Case::new(workload, info, self.nr_cpus);
        case.machine = Machine { hz: self.hz, ..case.machine };
        case.until_ns = Some(until_ms * MS);
        case.options = Options::defaults(&info.tunables);
        for (name, value) in &self.set {
            case.options.set(&info.tunables, name, *value).unwrap();
        }
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let tasks = measures(&case, &run).tasks;
        (run, tasks)
    }

    fn turns(&self, tasks: Vec<TaskSpec>, until_ms: u64) -> String {
        common::turns(&self.run(&Workload::new("vector", tasks), until_ms).0, MS)
    }
}

/// Hogs A, B, ... of these nice values, released by a wake-up at 0.
fn hogs(nices: &[i8]) -> Vec<TaskSpec> {
    let name = |index: usize| char::from(b'A' + index as u8).to_string();
    let hog = |(index, value): (usize, &i8)| task(&name(index), nice(*value), endless());
    nices.iter().enumerate().map(hog).collect()
}

/// Share of the first of two hogs, in hundredths of a percent.
fn share(scheduler: &str, nices: [i8; 2]) -> u64 {
    let (run, tasks) = Setup::new(scheduler).run(&Workload::new("share", hogs(&nices)), 1_000_000);
    (tasks[0].cpu_time_ns * 10_000 + run.trace.end_ns / 2) / run.trace.end_ns
}

#[test]
fn section_5_5_two_hogs_have_turns_of_11_ms() {
    let setup = Setup::new(FIRST);
    assert_eq!(setup.turns(hogs(&[0, 0]), 55), "A11 B11 A11 B11 A11");
    assert_eq!(Setup { hz: 250, ..Setup::new(FIRST) }.turns(hogs(&[0, 0]), 48), "A12 B12 A12 B12");
}

#[test]
fn section_5_5_three_hogs_have_turns_of_7_ms() {
    assert_eq!(Setup::new(FIRST).turns(hogs(&[0, 0, 0]), 42), "A7 B7 C7 A7 B7 C7");
}

#[test]
fn section_5_5_hogs_of_unequal_nice_values() {
    // B is chosen twice in a row: it is behind after one slice. A turn shows both.
    let setup = Setup::new(FIRST);
    assert_eq!(setup.turns(hogs(&[0, 5]), 63), "A16 B10 A16 B5 A16");
    assert_eq!(setup.turns(hogs(&[0, 10]), 65), "A19 B4 A19 B2 A19 B2");
    for scheduler in [FIRST, LATER] {
        let found = [[0, 5], [0, 10], [0, 1], [-5, 0]].map(|nices| share(scheduler, nices));
        assert_eq!(found, [7535, 9030, 5553, 7530], "{scheduler}");
    }
}

#[test]
fn section_5_5_a_long_queue_stretches_the_period() {
    assert_eq!(Setup::new(FIRST).turns(hogs(&[0; 6]), 30), "A5 B5 C5 D5 E5 F5");
    assert_eq!(Setup::new(LATER).turns(hogs(&[0; 6]), 12), "A1 B1 C1 D1 E1 F1 A1 B1 C1 D1 E1 F1");
}

#[test]
fn section_5_6_hogs_under_2_6_32() {
    let setup = Setup::new(LATER);
    assert_eq!(setup.turns(hogs(&[0, 0]), 12), "A3 B3 A3 B3");
    assert_eq!(setup.turns(hogs(&[0, 0, 0]), 12), "A2 B2 C2 A2 B2 C2");
    assert_eq!(setup.turns(hogs(&[0, 5]), 28), "A4 B2 A4 B2 A8 B2 A4 B1 A1");
    assert_eq!(setup.turns(hogs(&[0, 10]), 30), "A5 B1 A5 B1 A10 B1 A7");
    // A tick of 4 ms is longer than the slice.
    assert_eq!(Setup { hz: 250, ..Setup::new(LATER) }.turns(hogs(&[0, 0]), 16), "A4 B4 A4 B4");
}

/// A hog and a task that sleeps for 30 ms, as soon as it has had a turn, and then wants 25 ms.
fn hog_and_sleeper(scheduler: &str) -> String {
    let mut tasks = hogs(&[0]);
    tasks.push(task("B", nice(0), ProgramBuilder::new().sleep(30 * MS).run(25 * MS).build()));
    Setup::new(scheduler).turns(tasks, 100)
}

#[test]
fn section_5_5_a_sleeper_preempts_and_catches_up() {
    // Woken at 41 ms it is placed 20 ms behind and runs until its slice of 10 ms is exceeded; then
    // it is at 32 and still first.
    assert_eq!(hog_and_sleeper(FIRST), "A11 A30 B22 A11 B3 A23");
    // 2.5 ms behind 33: at 33.5 it is beyond the hog, and then they take turns of 3.
    let turns = format!("A3 A30{} B1 A18", " B3 A3".repeat(8));
    assert_eq!(hog_and_sleeper(LATER), turns);
}

#[test]
fn section_5_5_a_short_sleeper_waits_for_the_granularity() {
    // After 5 ms of sleep B is 6 ms behind, under 2.6.24 too little to preempt; 2.6.32 gives it at
    // most 2.5 ms, which is more than 1.
    let sleeper = ProgramBuilder::new().run(MS).sleep(5 * MS).run(3 * MS).build();
    let tasks = || {
        let mut tasks = hogs(&[0]);
        tasks.insert(0, task("B", nice(0), sleeper.clone()));
        tasks
    };
    assert_eq!(Setup::new(FIRST).turns(tasks(), 40), "A1 B11 A3 B25");
    assert_eq!(Setup::new(LATER).turns(tasks(), 40), "A1 B5 A3 B31");
}

#[test]
fn section_5_5_the_child_runs_first_and_under_2_6_32_the_parent() {
    let tasks = || {
        let parent =
            ProgramBuilder::new().run(5 * MS).op(Op::Fork { task: 1 }).run(100 * MS).build();
        let child = TaskSpec { instances: 0, ..TaskSpec::new("B", endless()) };
        vec![task("A", nice(0), parent), child]
    };
    assert!(Setup::new(FIRST).turns(tasks(), 60).starts_with("A5 B11 A11 B11 A"));
    assert!(Setup::new(LATER).turns(tasks(), 40).starts_with("A9 B3 A3 B3 A3"));
}

fn member(cgroup: u32, cpu: u32) -> SchedAttr {
    SchedAttr { cgroup: CgroupId(cgroup), ..on(&[cpu]) }
}

/// CPU time of each task in thousandths of the whole, of endless tasks with these attributes and
/// groups below the root group.
fn group_shares(
    setup: &Setup<'_>,
    weights: &[u32],
    attrs: &[(SchedAttr, u32)],
    until_ms: u64,
) -> Vec<u64> {
    let tasks = attrs.iter().enumerate().map(|(index, (attr, count))| TaskSpec {
        instances: *count,
        ..task(&format!("t{index}"), *attr, endless())
    });
    let mut workload = Workload::new("groups", tasks.collect());
    let groups = weights
        .iter()
        .enumerate()
        .map(|(index, weight)| CgroupSpec::new(format!("/{index}"), CgroupId(0), *weight));
    workload.cgroups = std::iter::once(CgroupSpec::root()).chain(groups).collect();
    let (_, tasks) = setup.run(&workload, until_ms);
    let whole = until_ms * MS;
    tasks.iter().map(|task| (task.cpu_time_ns * 1000 + whole / 2) / whole).collect()
}

#[test]
fn section_5_7_groups_share_by_weight_whatever_their_number_of_tasks() {
    for scheduler in [FIRST, LATER] {
        let setup = Setup::new(scheduler);
        let attrs = [(member(1, 0), 1), (member(2, 0), 9)];
        let found = group_shares(&setup, &[100, 100], &attrs, 200_000);
        assert_eq!(found[0], 500, "{scheduler}");
        assert!(found[1..].iter().all(|share| share.abs_diff(56) <= 1), "{scheduler}: {found:?}");
        let attrs = [(member(1, 0), 1), (member(2, 0), 1)];
        assert_eq!(group_shares(&setup, &[100, 300], &attrs, 100_000), [250, 750]);
    }
}

#[test]
fn section_5_7_the_root_group() {
    let attrs = [(member(0, 0), 1), (member(1, 0), 1)];
    // As a user, root has twice the shares of another.
    let users = Setup { set: vec![("group_basis", 1)], ..Setup::new(FIRST) };
    assert_eq!(group_shares(&users, &[100], &attrs, 100_000), [667, 333]);
    assert_eq!(group_shares(&Setup::new(FIRST), &[100], &attrs, 100_000), [500, 500]);
    // Its tasks are one group under 2.6.24, and each by itself beside groups under 2.6.32.
    let attrs = [(member(0, 0), 3), (member(1, 0), 1)];
    let found = group_shares(&Setup::new(FIRST), &[100], &attrs, 100_000);
    assert_eq!(found, [167, 167, 167, 500]);
    let found = group_shares(&Setup::new(LATER), &[100], &attrs, 100_000);
    assert_eq!(found, [250, 250, 250, 250]);
}

#[test]
fn section_5_7_on_two_cpus_each_is_shared_in_full() {
    let setup = Setup { nr_cpus: 2, ..Setup::new(FIRST) };
    let both = |group| [(member(group, 0), 1), (member(group, 1), 1)];
    let attrs = [both(1), both(2)].concat();
    assert_eq!(group_shares(&setup, &[100, 100], &attrs, 100_000), [500; 4]);
    let attrs = [both(1)[0], both(1)[1], both(2)[1]];
    assert_eq!(group_shares(&setup, &[100, 100], &attrs, 100_000), [1000, 500, 500]);
    // 2.6.32 spreads them: the group with tasks on both CPUs has half of its shares on each.
    let setup = Setup { nr_cpus: 2, ..Setup::new(LATER) };
    let found = group_shares(&setup, &[100, 100], &attrs, 100_000);
    assert_eq!(found, [1000, 334, 666]);
}

#[test]
fn section_5_2_real_time_tasks() {
    let rt = |name, kind, rt_priority| task(name, policy(kind, rt_priority), endless());
    let with_hog = |mut tasks: Vec<TaskSpec>| {
        tasks.extend(hogs(&[-20]));
        tasks
    };
    let fifo = with_hog(vec![rt("A", Policy::Fifo, 10)]);
    assert_eq!(Setup::new(FIRST).turns(fifo.clone(), 2_000), "A2000");
    // 2.6.32 throttles, at the tick that finds that 950 ms are exceeded.
    assert_eq!(Setup::new(LATER).turns(fifo, 2_000), "A951 B49 A950 B50");
    let rr = || vec![rt("A", Policy::Rr, 10), rt("B", Policy::Rr, 10)];
    assert_eq!(Setup::new(LATER).turns(rr(), 300), "A100 B100 A100");
    // The kernel's first task has a slice of a second, which nobody used up before.
    assert_eq!(Setup::new(FIRST).turns(rr(), 2_300), "A1000 B1000 A100 B100 A100");
}

/// Under 2.6.24 a CPU takes real-time tasks only when it balances.
#[test]
fn real_time_tasks_are_balanced_by_weight() {
    let rt = |name, rt_priority| task(name, policy(Policy::Fifo, rt_priority), endless());
    let setup = Setup { nr_cpus: 2, ..Setup::new(FIRST) };
    let tasks = vec![rt("A", 10), rt("B", 20)];
    let (_, tasks) = setup.run(&Workload::new("rt", tasks), 1_000);
    // An idle CPU looks every 4 ms at the latest.
    assert!(tasks.iter().all(|task| task.cpu_time_ns > 990 * MS), "{tasks:?}");
    // Three on two CPUs: none idles.
    let mut tasks = vec![rt("A", 10), rt("B", 10), rt("C", 10)];
    tasks.extend(hogs(&[0, 0]));
    let (_, tasks) = setup.run(&Workload::new("rt", tasks), 1_000);
    let ran: Vec<u64> = tasks.iter().map(|task| task.cpu_time_ns / MS).collect();
    assert_eq!(ran.iter().sum::<u64>(), 2_000 - 1, "{ran:?}");
    assert_eq!(ran[3..], [0, 0], "fair tasks starve");
}

#[test]
fn section_5_5_a_yielder_keeps_its_place_unless_yield_is_compatible() {
    let yielder = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(MS)
        .op(Op::Yield)
        .end_loop()
        .build();
    let tasks = || {
        let mut tasks = vec![task("A", nice(0), yielder.clone())];
        tasks.extend(hogs(&[0]));
        tasks
    };
    // At 1 ms it is behind the hog, which has a whole slice; then it yields in vain until both are
    // at 11, where the hog was first.
    assert_eq!(Setup::new(FIRST).turns(tasks(), 46), "A1 B11 A10 B11 A11 B2");
    let compat = Setup { set: vec![("sched_compat_yield", 1)], ..Setup::new(FIRST) };
    assert_eq!(compat.turns(tasks(), 36), "A1 B11 A1 B11 A1 B11");
}

/// Idle CPUs pull at once, and three tasks on two CPUs take turns at being alone.
#[test]
fn hogs_are_spread() {
    for scheduler in [FIRST, LATER] {
        let setup = Setup { nr_cpus: 4, ..Setup::new(scheduler) };
        let (_, tasks) = setup.run(&Workload::new("spread", hogs(&[0; 4])), 10_000);
        for task in &tasks {
            assert!(task.cpu_time_ns > 9_900 * MS, "{scheduler}: {}", task.cpu_time_ns);
        }
        let setup = Setup { nr_cpus: 2, ..Setup::new(scheduler) };
        let (_, tasks) = setup.run(&Workload::new("three", hogs(&[0; 3])), 60_000);
        let all: u64 = tasks.iter().map(|task| task.cpu_time_ns).sum();
        assert!(all > 119_900 * MS, "{scheduler}: {all}");
        for task in &tasks {
            let off = task.cpu_time_ns.abs_diff(all / 3);
            assert!(off < all / 3 / 5, "{scheduler}: {} of {all}", task.cpu_time_ns);
        }
    }
}

/// Many short sleepers keep their places within bounds: nobody waits for long.
#[test]
fn nobody_waits_for_long_among_sleepers() {
    for scheduler in [FIRST, LATER] {
        let mut tasks = hogs(&[0, 0]);
        let sleeper = TaskSpec { instances: 20, ..task("S", nice(0), bursts(400, MS, 20 * MS)) };
        tasks.push(sleeper);
        let (_, tasks) = Setup::new(scheduler).run(&Workload::new("sleepers", tasks), 10_000);
        for task in &tasks {
            let longest = task.wait.ns_max.unwrap();
            assert!(longest < S, "{scheduler}: {longest}");
        }
    }
}
