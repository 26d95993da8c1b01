// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of RSDL and SD through the whole engine. HZ=1000, one CPU, nothing costs time.
//!
//! Source: SD is 2.6.22-ck1, kernel/sched.c; RSDL its announcement and LWN (2007), details from
//! memory. The sequences follow from the rules as they stand in crates/sched/src/staircase.

use crate::common;

use common::checks::measures;
use common::workloads::{burst, bursts, nice, on, policy, task};
use common::{Case, MS, Run, S};
use schedlab_engine::{Decision, Observer, SimConfig};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::{
    Amount, Costs, EventKind, LoopCount, Machine, Nanos, Op, Policy, Program, SchedAttr, TaskSpec,
    Workload,
};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::{Explanation, Fact, Value, number_in};
use schedlab_sched::registry::find;

fn endless() -> Program {
    ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000 * S).end_loop().build()
}

fn hogs(nices: &[i8]) -> Vec<TaskSpec> {
    nices.iter().map(|value| task("hog", nice(*value), endless())).collect()
}

fn late(name: &str, attr: SchedAttr, at_ms: u64, program: Program) -> TaskSpec {
    TaskSpec { release_ns: Amount::Constant(at_ms * MS), ..task(name, attr, program) }
}

fn simulate(
    scheduler: &str,
    hz: u32,
    options: &[(&str, u64)],
    tasks: Vec<TaskSpec>,
    until_ms: u64,
) -> (Run, Vec<TaskMeasures>) {
    let info = find(scheduler).expect("the scheduler is registered");
    let workload = Workload::new("vector", tasks);
    let mut case = Case::new(&workload, info, 1);
    for (name, value) in options {
        case.options.set(&info.tunables, name, *value).unwrap();
    }
    case.machine = Machine { hz, ..case.machine };
    case.until_ns = Some(until_ms * MS);
    let run = case.run().unwrap_or_else(|error| panic!("{error}"));
    let tasks = measures(&case, &run).tasks;
    (run, tasks)
}

fn letter(task: u32) -> char {
    char::from(b'A' + task as u8)
}

/// "0A 4B 8-": at 0 ms the CPU starts A, at 4 ms B, at 8 ms it goes idle.
fn timeline(run: &Run) -> String {
    let switches = run.trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Switch { next, .. } => {
            let letter = next.map_or('-', |task| letter(task.0));
            Some(format!("{}{letter}", event.time_ns / MS))
        }
        _ => None,
    });
    switches.collect::<Vec<_>>().join(" ")
}

/// Writes down who is chosen and in which slot, and when arrays change places.
#[derive(Default)]
struct Slots {
    /// Task, slot, since when.
    stays: Vec<(u32, i64, Nanos)>,
    swaps_ms: Vec<u64>,
}

impl Observer for Slots {
    fn wants(&mut self, _now: Nanos, _cpu: schedlab_model::CpuId) -> Option<Explanation> {
        Some(Explanation::new(100, None))
    }

    fn decided(&mut self, _core: &Core, decision: Decision) {
        let contest = &decision.explanation.as_ref().unwrap().contests[0];
        let swapped = Fact { name: "new_rotation", value: Value::Flag(true), unit: "" };
        if contest.facts.contains(&swapped) {
            self.swaps_ms.push(decision.time_ns / MS);
        }
        let chosen = contest.chosen().expect("hogs never leave");
        let slot = number_in(&chosen.facts, "slot").unwrap();
        self.stays.push((decision.next.unwrap().0, slot, decision.time_ns));
    }
}

/// "A@1:6 B@1:6": A in slot 1 for 6 ms, then B; and the times at which the arrays change places.
fn slots(
    scheduler: &str,
    options: &[(&str, u64)],
    tasks: Vec<TaskSpec>,
    until_ms: u64,
) -> (String, Vec<u64>) {
    let info = find(scheduler).unwrap();
    let workload = Workload::new("slots", tasks);
    let mut case = Case::new(&workload, info, 1);
    for (name, value) in options {
        case.options.set(&info.tunables, name, *value).unwrap();
    }
    let machine = Machine { hz: 1_000, costs: Costs::ZERO, ..case.machine.clone() };
    let config = SimConfig {
        machine: &machine,
        scheduler: info,
        options: &case.options,
        seed: 1,
        until_ns: Some(until_ms * MS),
        watchdog_ns: None,
    };
    let mut seen = Slots::default();
    schedlab_engine::simulate(&workload, &config, MemorySink::default(), Some(&mut seen)).unwrap();
    let ends = seen.stays.iter().skip(1).map(|stay| stay.2);
    let text: Vec<String> = seen
        .stays
        .iter()
        .zip(ends)
        .map(|((task, slot, from), to)| format!("{}@{slot}:{}", letter(*task), (to - from) / MS))
        .collect();
    (text.join(" "), seen.swaps_ms)
}

fn assert_slots(nices: &[i8], expected: &str) {
    let until_ms = expected.split(' ').map(|stay| stay.split(':').nth(1).unwrap());
    let until_ms: u64 = until_ms.map(|ms| ms.parse::<u64>().unwrap()).sum();
    let (found, _) = slots("sd-0.48", &[], hogs(nices), until_ms + 1);
    assert_eq!(found, expected, "{nices:?}");
}

fn swaps(nices: &[i8], until_ms: u64) -> Vec<u64> {
    slots("sd-0.48", &[], hogs(nices), until_ms).1
}

/// CPU time of two hogs in hundredths of a per cent of the first.
fn share(scheduler: &str, nices: &[i8], until_ms: u64) -> u64 {
    let (_, tasks) = simulate(scheduler, 1_000, &[], hogs(nices), until_ms);
    (tasks[0].cpu_time_ns * 10_000 + until_ms * MS / 2) / (until_ms * MS)
}

#[test]
fn section_4_7_nice_0_0() {
    let whole: Vec<String> = (0..20).map(|at| format!("A@{0}:6 B@{0}:6", 2 * at + 1)).collect();
    // In the second rotation both have slot 1 twice.
    let second = "A@1:6 B@1:6 A@1:6 B@1:6 A@3:6 B@3:6";
    assert_slots(&[0, 0], &format!("{} {second}", whole.join(" ")));
    assert_eq!(swaps(&[0, 0], 1_000), [240, 492, 744, 996]);
    // Each switch at a tick costs 1 us, so after a thousand turns one is a tick shorter.
    assert_eq!(share("sd-0.48", &[0, 0], 240 + 252 * 100), 5_001);
}

#[test]
fn section_4_7_nice_0_10() {
    assert_slots(&[0, 10], "A@1:6 B@3:3 A@3:6 A@5:6 B@7:3 A@7:6 A@9:6 B@11:3 A@11:6");
    assert_eq!(swaps(&[0, 10], 700), [150, 309, 468, 627]);
    assert_eq!(share("sd-0.48", &[0, 10], 150 + 159 * 1_000), 7_925);
}

#[test]
fn section_4_7_nice_0_19() {
    let alone: Vec<String> = (0..19).map(|at| format!("A@{}:6", 2 * at + 1)).collect();
    assert_slots(&[0, 19], &format!("{} B@39:3 A@39:6", alone.join(" ")));
    assert_eq!(swaps(&[0, 19], 400), [123, 255, 387]);
    assert_eq!(share("sd-0.48", &[0, 19], 123 + 132 * 10_000), 9_546);
}

#[test]
fn section_4_7_nice_0_5() {
    let start = "A@1:6 B@2:3 A@3:6 B@5:3 A@5:6 A@7:6 B@8:3 A@9:6 B@10:3";
    assert_slots(&[0, 5], start);
    assert_eq!(swaps(&[0, 5], 600), [165, 339, 513]);
    assert_eq!(share("sd-0.48", &[0, 5], 165 + 174 * 1_000), 7_242);
}

#[test]
fn section_4_7_nice_minus_10_0() {
    let start = "A@1:15 B@1:6 A@2:15 B@3:6 A@4:15 B@5:6 A@5:15 A@6:15";
    assert_slots(&[-10, 0], start);
    assert_eq!(swaps(&[-10, 0], 600), [570]);
    assert_eq!(share("sd-0.48", &[-10, 0], 570 + 591 * 1_000), 7_868);
}

/// The longest wait of a task that does not sleep, ms, in the steady state.
fn longest_wait(nices: &[i8], of: usize) -> u64 {
    let (_, tasks) = simulate("sd-0.48", 1_000, &[("rr_interval", 8)], hogs(nices), 60_000);
    tasks[of].wait.ns_max.unwrap() / MS
}

#[test]
fn section_4_7_waits_stay_within_the_documented_bounds() {
    // The document's figures are bounds for a task that has just expired: 19 x 8, 10 x 8, and
    // 19 x 8 + 8 ms.
    for (nices, of, bound) in [([0, 0], 1, 152), ([0, 10], 0, 80), ([0, 10], 1, 160)] {
        let found = longest_wait(&nices, of);
        assert!(found > 0 && found <= bound, "{nices:?}: {found} ms, bound {bound} ms");
    }
}

#[test]
fn section_4_5_what_a_tick_is_late_is_taken_off_the_next_slot() {
    // At HZ=250 the 6 ms of a slot end at the tick of 8 ms, so that the next has 4.
    let (run, _) = simulate("sd-0.48", 250, &[], hogs(&[0, 0]), 45);
    assert_eq!(timeline(&run), "0A 8B 16A 20B 24A 32B 40A 44B");
}

/// Runs on `nr_cpus` CPUs.
fn on_cpus(nr_cpus: u32, tasks: Vec<TaskSpec>, until_ms: u64) -> Run {
    let workload = Workload::new("cpus", tasks);
    let mut case = Case::new(&workload, find("sd-0.48").unwrap(), nr_cpus);
    case.machine = Machine { hz: 1_000, ..case.machine };
    case.until_ns = Some(until_ms * MS);
    case.run().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn section_4_2_the_interval_grows_with_the_number_of_cpus() {
    for (nr_cpus, expected) in [(1, "0A 6B 12A"), (2, "0A 12B 24A"), (4, "0A 18B 36A")] {
        let hogs = TaskSpec { instances: 2, ..task("hog", on(&[0]), endless()) };
        let run = on_cpus(nr_cpus, vec![hogs], 40);
        assert!(timeline(&run).starts_with(expected), "{nr_cpus}: {}", timeline(&run));
    }
}

#[test]
fn section_4_6_an_idle_cpu_pulls_what_is_cold() {
    // All wake on CPU 0. At the first tick after 2.5 ms, for which what is new is cache-hot, CPU 1
    // takes half of the load.
    let run = on_cpus(2, vec![TaskSpec { instances: 4, ..task("hog", nice(0), endless()) }], 100);
    let moves: Vec<(Nanos, u32)> = run
        .trace
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Migrate { .. }))
        .map(|event| (event.time_ns / MS, event.cpu.0))
        .collect();
    assert_eq!(moves, [(3, 1), (3, 1)]);
}

#[test]
fn section_4_3_a_sleeper_keeps_its_slot_and_the_rest_of_its_time() {
    // S uses 2 of its 6 ms in slot 1 and sleeps for 10; the hog is in slot 3 then and gives way at
    // once. S goes down to slot 3, behind the hog, when it has used its 6 ms in slot 1.
    let sleeper = ProgramBuilder::new().run(2 * MS).sleep(10 * MS).run(S).build();
    let tasks = vec![task("S", nice(0), sleeper), hogs(&[0]).remove(0)];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 31);
    assert_eq!(timeline(&run), "0A 2B 12A 16B 18A 24B 30A");
}

#[test]
fn section_4_3_a_sleep_through_a_swap_is_a_fresh_start() {
    // The hog begins a rotation at 125 ms. At 205 ms it has had slots 1, 1, 3 ... 23 and 2 ms of
    // slot 25. The sleeper has whole quotas in slots 1 to 23, and then waits behind the hog.
    let sleeper = ProgramBuilder::new().run(5 * MS).sleep(200 * MS).run(S).build();
    let tasks = vec![task("S", nice(0), sleeper), hogs(&[0]).remove(0)];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 280);
    assert_eq!(timeline(&run), "0A 5B 205A 277B");
}

#[test]
fn section_4_4_interactive_off_bounds_the_slots_of_a_woken_task() {
    // The hog has reached slot 19 when a task of its nice value comes: slot 1 by itself, slot 19
    // behind the hog if the level of its nice value counts.
    let tasks = || {
        let mut tasks = hogs(&[0]);
        tasks.push(late("L", nice(0), 57, burst(5 * MS)));
        tasks
    };
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks(), 80);
    assert_eq!(timeline(&run), "0A 57B 62A");
    let (run, _) = simulate("sd-0.48", 1_000, &[("interactive", 0)], tasks(), 80);
    assert_eq!(timeline(&run), "0A 60B 65A");
}

#[test]
fn section_4_4_a_worse_priority_waits_where_a_better_one_has_expired() {
    // At 123 ms the nice-0 hog has had all its slots; whoever is worse goes straight to the
    // expired array, whatever its own slots: it runs in the next rotation, in its slot 3.
    let (text, swaps) = slots(
        "sd-0.48",
        &[],
        vec![hogs(&[0]).remove(0), hogs(&[0]).remove(0), late("L", nice(10), 235, endless())],
        300,
    );
    // At 235 ms A has expired (at 234 ms) and B is in slot 39.
    assert_eq!(swaps, [240]);
    let after = &text[text.rfind("B@39:").unwrap()..];
    let first = after.find('C').expect("L runs in the next rotation");
    assert!(after[first..].starts_with("C@3:3"), "{text}");
    assert!(!text[..text.rfind("B@39:").unwrap()].contains('C'), "{text}");
}

#[test]
fn section_4_6_a_fork_splits_the_time_and_an_early_exit_gives_it_back() {
    // The parent has 4 of 6 ms left at 2 ms: 2 for itself, 2 for the child, in the same slot. The
    // child exits after 1 ms, and its last one makes the parent's next stay longer.
    let parent = ProgramBuilder::new().run(2 * MS).op(Op::Fork { task: 2 }).run(S).build();
    let child = TaskSpec { instances: 0, ..task("C", nice(0), burst(MS)) };
    let tasks = vec![task("P", nice(0), parent.clone()), hogs(&[0]).remove(0), child];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 30);
    // P 0-4 (2 + 2), goes to slot 3; B 4-10 in slot 1; C 10-11 in slot 1; P 11-18 in slot 3, with
    // 6 and 1 more, but no more than a quota: 6.
    assert_eq!(timeline(&run), "0A 4B 10C 11A 17B 23A 29B");
    // A child that goes on uses its 2 ms and then has slots of its own.
    let child = TaskSpec { instances: 0, ..task("C", nice(0), endless()) };
    let tasks = vec![task("P", nice(0), parent), child];
    let tasks = {
        let mut tasks = tasks;
        if let Op::Fork { task } = &mut tasks[0].program.ops[1] {
            *task = 1;
        }
        tasks
    };
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 20);
    assert_eq!(timeline(&run), "0A 4B 6A 12B 18A");
}

#[test]
fn section_4_6_sched_yield_waits_for_the_next_rotation() {
    let yielder = ProgramBuilder::new().run(2 * MS).op(Op::Yield).run(S).build();
    let tasks = vec![task("Y", nice(0), yielder.clone()), hogs(&[0]).remove(0)];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 124);
    assert_eq!(timeline(&run), "0A 2B 122A");
    // Alone it goes on.
    let (run, _) = simulate("sd-0.48", 1_000, &[], vec![task("Y", nice(0), yielder)], 50);
    assert_eq!(timeline(&run), "0A");
}

#[test]
fn section_4_2_real_time_turns() {
    // SCHED_RR: rr_interval; SCHED_FIFO: no end; both before every slot.
    let rr = |name| task(name, policy(Policy::Rr, 10), endless());
    let tasks = vec![rr("A"), rr("B"), hogs(&[-20]).remove(0)];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 25);
    assert_eq!(timeline(&run), "0A 6B 12A 18B 24A");
    let fifo = late("F", policy(Policy::Fifo, 11), 3, burst(20 * MS));
    let (run, _) = simulate("sd-0.48", 1_000, &[], vec![rr("A"), rr("B"), fifo], 40);
    assert_eq!(timeline(&run), "0A 3C 23A 26B 32A 38B");
}

/// A runs from 0.5 ms on, so that its 6 ms end between two ticks, 0.2 ms before D interrupts it. It
/// goes on when D is done, until the tick.
#[test]
fn a_round_robin_task_is_renewed_at_a_tick_only() {
    let rr = |name| task(name, policy(Policy::Rr, 10), endless());
    let fifo = |name, at_us: u64, work_us: u64| TaskSpec {
        release_ns: Amount::Constant(at_us * 1_000),
        ..task(name, policy(Policy::Fifo, 11), burst(work_us * 1_000))
    };
    let tasks = vec![rr("A"), rr("B"), fifo("C", 0, 500), fifo("D", 6_700, 100)];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 12);
    assert_eq!(timeline(&run), "0C 0A 6D 6A 7B");
}

/// C makes A start 1 us late, so after 6 ms of ticks it has 1 us left and goes on for a tick. D
/// interrupts A at a tick, which has charged A up to then: the switch costs the 1 us.
#[test]
fn a_switch_at_the_time_of_a_tick_costs_1_us() {
    let fifo = |name, at_ms: u64, work_us: u64| {
        late(name, policy(Policy::Fifo, 11), at_ms, burst(work_us * 1_000))
    };
    let mut tasks = hogs(&[0, 0]);
    tasks.push(fifo("C", 0, 1));
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks.clone(), 12);
    assert_eq!(timeline(&run), "0C 0A 7B");
    tasks.push(fifo("D", 3, 1_000));
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 12);
    assert_eq!(timeline(&run), "0C 0A 3D 4A 7B");
}

/// A fork shares out what the parent had at the last tick, and the pick that follows the fork of a
/// process does not see what the parent has run since: schedule() charges it afterwards.
#[test]
fn a_fork_between_ticks_sees_the_time_of_the_last_tick() {
    let fifo = late("C", policy(Policy::Fifo, 11), 0, burst(500 * 1_000));
    // At the tick at 6 ms the parent has 0.5 ms left, at 6.7 ms it forks. It goes on to the tick.
    let parent = ProgramBuilder::new().run(6_200_000).op(Op::Fork { task: 2 }).run(S).build();
    let child = TaskSpec { instances: 0, is_process: true, ..task("D", nice(0), burst(10 * MS)) };
    let parent = TaskSpec { is_process: true, ..task("P", nice(0), parent) };
    let (run, _) = simulate("sd-0.48", 1_000, &[], vec![fifo, parent, child], 20);
    assert_eq!(timeline(&run), "0A 0B 7C 8B 14C");
}

/// The kernel takes a number of ms for us, so a turn is over at the next tick; only the first one
/// still has the quota of a new task. Nice -20 has 2.4 ms.
#[test]
fn idleprio_tasks_take_turns_at_every_tick() {
    let idle = |value| {
        let attr = SchedAttr { policy: Policy::Idle, ..nice(value) };
        vec![task("I", attr, endless()), task("I", attr, endless())]
    };
    let (run, _) = simulate("sd-0.48", 1_000, &[], idle(0), 16);
    assert_eq!(timeline(&run), "0A 6B 12A 13B 14A 15B");
    let (run, _) = simulate("sd-0.48", 1_000, &[], idle(-20), 140);
    assert_eq!(timeline(&run), "0A 60B 120A 123B 126A 128B 130A 133B 136A 138B");
}

#[test]
fn section_4_6_batch_and_idleprio() {
    // BATCH of nice 0 has the slots 20 to 39 instead of every second one.
    let batch = || task("B", policy(Policy::Batch, 0), endless());
    let (text, _) = slots("sd-0.48", &[], vec![hogs(&[0]).remove(0), batch()], 90);
    let alone: Vec<String> = (0..10).map(|at| format!("A@{}:6", 2 * at + 1)).collect();
    assert!(text.starts_with(&format!("{} B@20:6 A@21:6 B@21:6", alone.join(" "))), "{text}");
    // IDLE runs when nobody else does, whatever the arrays.
    let idle = task("I", policy(Policy::Idle, 0), endless());
    let tasks = vec![idle, task("S", nice(19), bursts(3, 5 * MS, 10 * MS))];
    let (run, _) = simulate("sd-0.48", 1_000, &[], tasks, 44);
    assert_eq!(timeline(&run), "0B 5A 15B 20A 30B 35A");
}

#[test]
fn section_4_1_rsdl_nice_0_10() {
    // The better one is alone on its first ten levels, then both take turns on the last ten.
    let (run, _) = simulate("rsdl-0.31", 1_000, &[], hogs(&[0, 10]), 361);
    let epoch = |at: u64| {
        let turns = (0..10).map(|turn| {
            let from = at + 60 + 12 * turn;
            format!("{from}B {}A", from + 6)
        });
        turns.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(timeline(&run), format!("0A {} {}", epoch(0), epoch(180)));
    let (_, swaps) = slots("rsdl-0.31", &[], hogs(&[0, 10]), 600);
    assert_eq!(swaps.len(), 3);
    assert_eq!(swaps, [180, 360, 540]);
}

#[test]
fn section_4_1_rsdl_shares() {
    // 20 levels against 20 - n.
    for (value, epoch_ms, expected) in [(0, 240, 5_000), (10, 180, 6_667), (19, 126, 9_524)] {
        assert_eq!(share("rsdl-0.31", &[0, value], epoch_ms * 200), expected, "nice {value}");
    }
}

#[test]
fn section_4_1_rsdl_longest_stays_and_waits() {
    let figures = |nices: &[i8]| {
        let (_, tasks) = simulate("rsdl-0.31", 1_000, &[], hogs(nices), 36_000);
        tasks
            .iter()
            .map(|task| (task.cpu_time_ns / MS, task.wait.ns_max.unwrap() / MS))
            .collect::<Vec<_>>()
    };
    // At nice 0 an epoch has 120 ms for a task. Beside nice 10 it waits for 60 ms at most, and
    // nice 10 for 180 ms at most.
    assert_eq!(figures(&[0, 0]), [(18_000, 6), (18_000, 6)]);
    let beside = figures(&[0, 10]);
    assert!(beside[0].1 <= 60 && beside[1].1 <= 180, "{beside:?}");
    assert_eq!(beside[1].1, 66);
}

#[test]
fn section_4_1_rsdl_a_sleeper_keeps_its_level_and_its_time_there() {
    // C comes to level 20 at 30 ms, after the hogs A and B have left it, and sleeps with 4 of its
    // 6 ms, which level 20 still has when it comes back at 52 ms.
    let sleeper = ProgramBuilder::new().run(2 * MS).sleep(20 * MS).run(S).build();
    let mut tasks = hogs(&[0, 0]);
    tasks.push(late("C", nice(0), 30, sleeper));
    let (run, _) = simulate("rsdl-0.31", 1_000, &[], tasks, 60);
    assert_eq!(timeline(&run), "0A 6B 12A 18B 24A 30C 32B 38A 44B 50A 52C");
}

#[test]
fn section_4_1_rsdl_a_long_sleep_is_a_fresh_start() {
    // It sleeps from 2 ms to 302 ms: the hog's rotations are over at 122 and 242 ms.
    let sleeper = ProgramBuilder::new().run(2 * MS).sleep(300 * MS).run(S).build();
    let tasks = vec![task("S", nice(0), sleeper), hogs(&[0]).remove(0)];
    let (run, _) = simulate("rsdl-0.31", 1_000, &[], tasks, 365);
    // The hog has used 60 ms, ten levels, of the rotation from 242 ms on: the sleeper has those ten
    // to itself.
    assert!(timeline(&run).starts_with("0A 2B 302A 362B"), "{}", timeline(&run));
}
