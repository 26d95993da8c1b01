// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of switches and counts of switches under the Linux models, through the whole
//! engine: programs, wake-ups by timers, ticks, schedule() and the trace.
//!
//! Nothing costs time, one CPU; "n CPUs" selects the scaling of the tunables only. The sequences of
//! sections 7.1 and 7.2 are those to which the fair class alone is held (kernel/sched/fair.c, 6.1,
//! 6.6, 6.12.0, 6.12.63, 6.18.2 and 7.1.5). The counts of section 7.4 follow from `__schedule` in
//! kernel/sched/core.c: a switch is voluntary exactly when the task was not runnable any more.

use crate::common;

use common::checks::measures;
use common::workloads::{bursts, endless, nice, policy, task};
use common::{Case, MS, Run, timeline};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, EventKind, LoopCount, Machine, Nanos, Op, Policy, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::registry::find;

const EEVDF: [&str; 5] = ["linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];
/// Versions whose tree is ordered by deadline: a waiting entity wins a tie against the running one.
const BY_DEADLINE: [&str; 4] = ["linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];
/// Versions with the shorter base slice.
const LATE: [&str; 3] = ["linux-6.12", "linux-6.18", "linux-7.1"];
const ALL: [&str; 6] =
    ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];

/// One run on one CPU with the tunables of `scaling_cpus`.
fn simulate(
    scheduler: &str,
    scaling_cpus: u64,
    hz: u32,
    tasks: Vec<TaskSpec>,
    until_ms: u64,
) -> (Run, Vec<TaskMeasures>) {
    let info = find(scheduler).expect("the scheduler is registered");
    let workload = Workload::new("vector", tasks);
    let mut case = Case::new(&workload, info, 1);
    case.options.set(&info.tunables, "scaling_cpus", scaling_cpus).unwrap();
    case.machine = Machine { hz, ..case.machine };
    case.until_ns = Some(until_ms * MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let tasks = measures(&case, &run).tasks;
    (run, tasks)
}

/// Hogs of these nice values, all released at 0. The switch at `end_ms` still shows.
fn assert_hogs(
    schedulers: &[&str],
    scaling_cpus: u64,
    hz: u32,
    nices: &[i8],
    end_ms: u64,
    expected: &str,
) {
    for scheduler in schedulers {
        let hogs = nices.iter().map(|&value| task("hog", nice(value), endless())).collect();
        let (run, _) = simulate(scheduler, scaling_cpus, hz, hogs, end_ms + 1);
        assert_eq!(timeline(&run), expected, "{scheduler}");
    }
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz250() {
    assert_hogs(&["linux-6.1"], 1, 250, &[0, 0], 12, "0A 4B 8A 12B");
    assert_hogs(&BY_DEADLINE, 1, 250, &[0, 0], 12, "0A 4B 8A 12B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz250() {
    assert_hogs(&["linux-6.1"], 8, 250, &[0, 0], 36, "0A 12B 24A 36B");
    assert_hogs(&BY_DEADLINE, 8, 250, &[0, 0], 12, "0A 4B 8A 12B");
}

#[test]
fn section_7_1_nice_0_0_1_cpu_hz1000() {
    assert_hogs(&["linux-6.1"], 1, 1000, &[0, 0], 9, "0A 3B 6A 9B");
    assert_hogs(&BY_DEADLINE, 1, 1000, &[0, 0], 3, "0A 1B 2A 3B");
}

#[test]
fn section_7_1_nice_0_0_8_cpus_hz1000() {
    assert_hogs(&["linux-6.1"], 8, 1000, &[0, 0], 36, "0A 12B 24A 36B");
    assert_hogs(&BY_DEADLINE, 8, 1000, &[0, 0], 9, "0A 3B 6A 9B");
}

#[test]
fn section_7_1_nice_0_5_1_cpu_hz250() {
    let cfs = "0A 8B 12A 20B 24A 36B 40A 52B 56A 68B 72A";
    assert_hogs(&["linux-6.1"], 1, 250, &[0, 5], 72, cfs);
    let eevdf = "0A 4B 8A 20B 24A 36B 40A 52B 56A 68B 72A";
    assert_hogs(&EEVDF, 1, 250, &[0, 5], 72, eevdf);
}

#[test]
fn section_7_1_nice_0_5_8_cpus_hz1000() {
    let cfs = "0A 19B 26A 45B 51A 70B 76A";
    assert_hogs(&["linux-6.1"], 8, 1000, &[0, 5], 76, cfs);
    let first = "0A 3B 7A 19B 23A 35B 39A 51B 55A 67B 71A";
    assert_hogs(&["linux-6.6"], 8, 1000, &[0, 5], 71, first);
    let second = "0A 3B 7A 17B 21A 33B 37A 49B 53A 65B 69A";
    assert_hogs(&["linux-6.12.0"], 8, 1000, &[0, 5], 69, second);
    let later = "0A 3B 6A 13B 16A 25B 28A 37B 40A 49B 52A 61B 64A 74B 77A";
    assert_hogs(&LATE, 8, 1000, &[0, 5], 77, later);
}

#[test]
fn section_7_1_nice_0_0_0_8_cpus_hz1000() {
    assert_hogs(&["linux-6.1"], 8, 1000, &[0; 3], 40, "0A 8B 16C 24A 32B 40C");
    assert_hogs(&BY_DEADLINE, 8, 1000, &[0; 3], 15, "0A 3B 6C 9A 12B 15C");
}

#[test]
fn section_7_1_nice_0_times_4_4_cpus_hz1000() {
    assert_hogs(&["linux-6.1"], 4, 1000, &[0; 4], 20, "0A 5B 10C 15D 20A");
    assert_hogs(&EEVDF, 4, 1000, &[0; 4], 12, "0A 3B 6C 9D 12A");
}

#[test]
fn section_7_1_nice_minus_5_0_5_8_cpus_hz250() {
    let cfs = "0A 20B 28C 32A 52B 60C 64A";
    assert_hogs(&["linux-6.1"], 8, 250, &[-5, 0, 5], 64, cfs);
    let eevdf = "0A 4B 8A 16C 20A 28B 32A 40B 44A 56B 60A 68C 72A 80B";
    assert_hogs(&EEVDF, 8, 250, &[-5, 0, 5], 80, eevdf);
}

/// A hog and a sleeper that wakes at 10, 30 and 50 ms for 1 ms of CPU time each time.
fn hog_and_sleeper(slice_ns: Option<Nanos>) -> Vec<TaskSpec> {
    let mut builder = ProgramBuilder::new();
    builder.begin_loop(LoopCount::Times(3)).run(MS).op(Op::Timer {
        timer: 0,
        period: Amount::Constant(20 * MS),
        mode: schedlab_model::TimerMode::Absolute,
    });
    let attr = SchedAttr { slice_ns, ..nice(0) };
    let sleeper = task("sleeper", attr, builder.end_loop().build());
    let sleeper = TaskSpec { release_ns: Amount::Constant(10 * MS), ..sleeper };
    vec![task("hog", nice(0), endless()), sleeper]
}

#[test]
fn section_7_2_hog_and_sleeper_linux_6_1() {
    for scaling_cpus in [1, 8] {
        let (run, _) = simulate("linux-6.1", scaling_cpus, 250, hog_and_sleeper(None), 60);
        assert_eq!(timeline(&run), "0A 10B 11A 30B 31A 50B 51A", "{scaling_cpus} CPUs");
    }
}

#[test]
fn section_7_2_hog_and_sleeper_8_cpus_hz250_linux_6_6_and_6_12_0() {
    for scheduler in ["linux-6.6", "linux-6.12.0"] {
        let (run, _) = simulate(scheduler, 8, 250, hog_and_sleeper(None), 60);
        assert_eq!(timeline(&run), "0A 12B 13A 30B 31A 52B 53A", "{scheduler}");
    }
}

#[test]
fn section_7_2_hog_and_sleeper_8_cpus_hz1000_linux_6_12() {
    for scheduler in LATE {
        let (run, _) = simulate(scheduler, 8, 1000, hog_and_sleeper(None), 60);
        assert_eq!(timeline(&run), "0A 11B 12A 31B 32A 50B 51A", "{scheduler}");
    }
}

#[test]
fn section_7_2_custom_slice_8_cpus_hz1000() {
    for scheduler in LATE {
        let (run, _) = simulate(scheduler, 8, 1000, hog_and_sleeper(Some(100_000)), 60);
        assert_eq!(timeline(&run), "0A 10B 11A 30B 31A 50B 51A", "{scheduler}");
    }
}

fn assert_switches(task: &TaskMeasures, voluntary: u64, involuntary: u64, scheduler: &str) {
    let found = (task.nr_voluntary_switches, task.nr_involuntary_switches);
    assert_eq!(found, (voluntary, involuntary), "{scheduler}: task {}", task.name);
}

#[test]
fn section_7_4_a_task_that_blocks_100_times() {
    for scheduler in ALL {
        // It blocks every 1.1 ms and so for the 100th time at 109 ms; the idle task runs in
        // between, or else a hog.
        let alone = vec![task("blocker", nice(0), bursts(1_000, 100_000, MS))];
        let (_, tasks) = simulate(scheduler, 1, 250, alone, 110);
        assert_switches(&tasks[0], 100, 0, scheduler);
        let blocker = task("blocker", policy(Policy::Fifo, 1), bursts(1_000, 100_000, MS));
        let beside = vec![blocker, task("hog", nice(0), endless())];
        let (_, tasks) = simulate(scheduler, 1, 250, beside, 110);
        assert_switches(&tasks[0], 100, 0, scheduler);
    }
}

#[test]
fn section_7_4_a_task_that_yields_10_times_and_switches_4_times() {
    for scheduler in ALL {
        // Alone for 6 yields, then beside a task to which each yield passes the CPU.
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Times(6)).run(100_000).op(Op::Yield).end_loop();
        builder.begin_loop(LoopCount::Times(4)).run(100_000).op(Op::Yield).end_loop();
        let yielder = task("yielder", nice(0), builder.run(1).build());
        let rr = SchedAttr { policy: Policy::Fifo, rt_priority: 1, ..nice(0) };
        let mut other = ProgramBuilder::new();
        other.begin_loop(LoopCount::Times(20)).run(50_000).op(Op::Yield).end_loop();
        let other = task("other", rr, other.build());
        let tasks = vec![
            TaskSpec { attr: rr, ..yielder },
            TaskSpec { release_ns: Amount::Constant(650_000), ..other },
        ];
        let (_, tasks) = simulate(scheduler, 1, 250, tasks, 100);
        // The exit is the one voluntary switch.
        assert_switches(&tasks[0], 1, 4, scheduler);
    }
}

#[test]
fn section_7_4_a_hog_preempted_25_times() {
    for scheduler in ALL {
        let hogs = vec![task("a", nice(0), endless()), task("b", nice(0), endless())];
        // Ends right after the 25th time that the first loses the CPU.
        let (run, _) = simulate(scheduler, 1, 250, hogs.clone(), 1_000);
        let mut losses = run.trace.events.iter().filter(|event| {
            matches!(event.kind, EventKind::Switch { prev, .. } if prev.is_some_and(|t| t.0 == 0))
        });
        let end_ms = losses.nth(24).expect("25 losses in 1 s").time_ns / MS + 1;
        let (_, tasks) = simulate(scheduler, 1, 250, hogs, end_ms);
        assert_switches(&tasks[0], 0, 25, scheduler);
    }
}

#[test]
fn section_7_4_a_hog_alone_is_never_switched() {
    for scheduler in ALL {
        let alone = vec![task("hog", nice(0), endless())];
        let (run, tasks) = simulate(scheduler, 1, 250, alone, 1_000);
        assert_eq!(timeline(&run), "0A", "{scheduler}");
        assert_switches(&tasks[0], 0, 0, scheduler);
    }
}

#[test]
fn section_7_4_a_task_preempted_twice_by_real_time_that_exits() {
    for scheduler in ALL {
        let normal = task("normal", nice(0), ProgramBuilder::new().run(20 * MS).build());
        let twice = ProgramBuilder::new().run(MS).sleep(5 * MS).run(MS).build();
        let rt = task("rt", policy(Policy::Fifo, 50), twice);
        let tasks = vec![normal, TaskSpec { release_ns: Amount::Constant(5 * MS), ..rt }];
        let (run, tasks) = simulate(scheduler, 1, 250, tasks, 100);
        assert_eq!(timeline(&run), "0A 5B 6A 11B 12A 22-", "{scheduler}");
        assert_switches(&tasks[0], 1, 2, scheduler);
    }
}

/// Hogs under `vtime`, released at 0 in this order, up to 400 ms.
fn vtime_hogs(nices: &[i8]) -> String {
    let tasks = nices.iter().map(|&value| task("hog", nice(value), endless())).collect();
    let workload = Workload::new("vector", tasks);
    let info = find("vtime").expect("the scheduler is registered");
    let mut case = Case::new(&workload, info, 1);
    case.until_ns = Some(401 * MS);
    timeline(&case.run().unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn section_7_5_c_two_tasks_take_turns_whatever_their_weights() {
    let turns = (0..=20).map(|turn| format!("{}{}", 20 * turn, ["A", "B"][turn % 2]));
    assert_eq!(vtime_hogs(&[0, 5]), turns.collect::<Vec<String>>().join(" "));
}

#[test]
fn section_7_5_d_weights_count_from_three_tasks_on() {
    let expected = "0A 20B 40C 60A 80B 100A 120B 140A 160B 180C 200A 220B 240A 260B 280A 300B 320C \
                    340A 360B 380A 400B";
    assert_eq!(vtime_hogs(&[0, 0, 5]), expected);
}

#[test]
fn section_7_5_e_three_weights() {
    let expected = "0A 20B 40C 60A 80B 100A 120B 140A 160B 180A 200C 220A 240B 260A 280B 300A 320B \
                    340A 360C 380A 400B";
    assert_eq!(vtime_hogs(&[-5, 0, 5]), expected);
}
