// SPDX-License-Identifier: MIT OR Apache-2.0
//! The textbook schedulers compared with the worked examples of their books. Names give the section
//! of the collection of vectors: 1.1 FCFS, 1.2 SJF, 1.3 SRTF, 1.4 prediction, 1.5 priority, 1.6
//! round robin, 1.7 multilevel queues, 1.8 MLFQ. One unit is 1 ms; nothing has a cost.

use crate::textbook_support;

use schedlab_model::{Policy, SchedAttr};
use textbook_support::{Experiment, Job, MS, job, jobs};

/// Level of `job` under the priority schedulers, as a nice value: 1 is better than 2.
fn at_level(job: Job, level: i8) -> Job {
    job.nice(level)
}

fn real_time(rt_priority: u8) -> SchedAttr {
    SchedAttr { policy: Policy::Fifo, rt_priority, ..SchedAttr::default() }
}

#[test]
fn section_1_1_fcfs_waits() {
    for (bursts, waits) in [
        (vec![24, 3, 3], vec![0, 24, 27]),
        (vec![3, 3, 24], vec![0, 3, 6]),
        (vec![6, 8, 7, 3], vec![0, 6, 14, 21]),
        (vec![10, 29, 3, 7, 12], vec![0, 10, 39, 42, 49]),
    ] {
        assert_eq!(Experiment::new("fcfs").run(&jobs(&bursts)).waits(), waits, "{bursts:?}");
    }
    // Means 17, 3, 10.25 and 28, as sums.
    let sum = |bursts: &[u64]| Experiment::new("fcfs").run(&jobs(bursts)).wait_sum();
    assert_eq!(sum(&[24, 3, 3]), 17 * 3);
    assert_eq!(sum(&[3, 3, 24]), 3 * 3);
    assert_eq!(sum(&[6, 8, 7, 3]), 41);
    assert_eq!(sum(&[10, 29, 3, 7, 12]), 28 * 5);
}

#[test]
fn section_1_2_sjf_order_and_waits() {
    let run = Experiment::new("sjf").run(&jobs(&[6, 8, 7, 3]));
    assert_eq!(run.gantt(), [(4, 0, 3), (1, 3, 9), (3, 9, 16), (2, 16, 24)]);
    assert_eq!(run.waits(), [3, 16, 9, 0]);
    let run = Experiment::new("sjf").run(&jobs(&[10, 29, 3, 7, 12]));
    assert_eq!(run.wait_sum(), 13 * 5);
    let run = Experiment::new("sjf").run(&[job(0, 8), job(1, 4), job(2, 9), job(3, 5)]);
    assert_eq!(run.gantt(), [(1, 0, 8), (2, 8, 12), (4, 12, 17), (3, 17, 26)]);
    assert_eq!(run.waits(), [0, 7, 15, 9]);
}

#[test]
fn section_1_2_sjf_ties_run_in_order_of_arrival() {
    let run = Experiment::new("sjf").run(&[job(0, 5), job(2, 3), job(1, 3), job(1, 3)]);
    assert_eq!(run.gantt(), [(1, 0, 5), (3, 5, 8), (4, 8, 11), (2, 11, 14)]);
}

#[test]
fn section_1_3_srtf_order_and_waits() {
    let run = Experiment::new("srtf").run(&[job(0, 8), job(1, 4), job(2, 9), job(3, 5)]);
    assert_eq!(run.gantt(), [(1, 0, 1), (2, 1, 5), (4, 5, 10), (1, 10, 17), (3, 17, 26)]);
    assert_eq!(run.waits(), [9, 0, 15, 2]);
}

#[test]
fn section_1_3_srtf_tie_leaves_the_running_task_its_cpu() {
    // P1 has 4 left when P2 with 4 arrives; P3 with 4 came later.
    let run = Experiment::new("srtf").run(&[job(0, 6), job(2, 4), job(3, 4)]);
    assert_eq!(run.gantt(), [(1, 0, 6), (2, 6, 10), (3, 10, 14)]);
}

#[test]
fn section_1_4_predictions_decide_the_order() {
    // Both sleep 100 between bursts, so that they wake together. From the first bursts the
    // scheduler learns that task 1 is long (tau 15) and task 2 short (tau 6).
    let two = [Job::at(0).run(20).sleep(100).run(5), Job::at(0).run(2).sleep(118).run(50)];
    let run = Experiment::new("sjf-predicted").run(&two);
    assert_eq!(run.gantt(), [(1, 0, 20), (2, 20, 22), (1, 120, 125), (2, 140, 190)]);
    // Wake both at 140.
    let two = [Job::at(0).run(20).sleep(120).run(5), Job::at(0).run(2).sleep(118).run(50)];
    let run = Experiment::new("sjf-predicted").run(&two);
    assert_eq!(run.gantt(), [(1, 0, 20), (2, 20, 22), (2, 140, 190), (1, 190, 195)]);
    // With alpha 0 both have the prediction tau0, so they run in order of arrival.
    let run = Experiment::new("sjf-predicted").set("alpha", 0).run(&two);
    assert_eq!(run.gantt(), [(1, 0, 20), (2, 20, 22), (1, 140, 145), (2, 145, 195)]);
}

#[test]
fn section_1_4_srtf_predicted_compares_what_is_left_of_the_prediction() {
    // tau0 is 10. P1 has 7 left of it when P2 (10) arrives, and keeps the CPU, even beyond 10.
    let run = Experiment::new("srtf-predicted").run(&[job(0, 30), job(3, 1)]);
    assert_eq!(run.gantt(), [(1, 0, 30), (2, 30, 31)]);
    // P2 has learned tau 6 from a burst of 2, and preempts P1, which has 10 - 2 left at 104.
    let two = [Job::at(102).run(20), Job::at(0).run(2).sleep(102).run(5)];
    let run = Experiment::new("srtf-predicted").run(&two);
    assert_eq!(run.gantt(), [(2, 0, 2), (1, 102, 104), (2, 104, 109), (1, 109, 127)]);
}

#[test]
fn section_1_5_priority_waits() {
    let levels = [3, 1, 4, 5, 2];
    let five: Vec<Job> = [10, 1, 2, 1, 5]
        .iter()
        .zip(levels)
        .map(|(burst, level)| at_level(job(0, *burst), level))
        .collect();
    for scheduler in ["priority", "priority-preemptive", "priority-rr"] {
        let run = Experiment::new(scheduler).run(&five);
        let order: Vec<u32> = run.gantt().iter().map(|piece| piece.0).collect();
        assert_eq!(order, [2, 5, 1, 3, 4], "{scheduler}");
        assert_eq!(run.waits(), [6, 0, 16, 18, 1], "{scheduler}");
    }
}

#[test]
fn section_1_5_priority_preemptive_gantt() {
    let four = [
        at_level(job(0, 8), 3),
        at_level(job(1, 4), 1),
        at_level(job(2, 9), 4),
        at_level(job(3, 5), 2),
    ];
    let run = Experiment::new("priority-preemptive").run(&four);
    assert_eq!(run.gantt(), [(1, 0, 1), (2, 1, 5), (4, 5, 10), (1, 10, 17), (3, 17, 26)]);
    assert_eq!(run.waits(), [9, 0, 15, 2]);
    // Without preemption the first runs to its end.
    let run = Experiment::new("priority").run(&four);
    assert_eq!(run.gantt(), [(1, 0, 8), (2, 8, 12), (4, 12, 17), (3, 17, 26)]);
}

#[test]
fn section_1_5_priority_levels_are_kernel_priorities() {
    let mut four = [job(0, 1), job(0, 1), job(0, 1), job(0, 1)];
    four[1].attr.nice = -20;
    four[2].attr = real_time(1);
    four[3].attr = real_time(99);
    let run = Experiment::new("priority").run(&four);
    assert_eq!(run.gantt(), [(4, 0, 1), (3, 1, 2), (2, 2, 3), (1, 3, 4)]);
}

/// When a task of level 127 first runs next to an endless stream of level-0 tasks with bursts of
/// `burst`, in units.
fn first_run_of_the_last(scheduler: &str, aging: u64, burst: u64) -> u64 {
    // Two tasks alternate: one of them runs at any time, and never for a whole quantum.
    let mut vip = Job::at(0).forever(burst, burst);
    vip.attr = real_time(99);
    let mut other = Job::at(burst).forever(burst, burst);
    other.attr = real_time(99);
    let poor = at_level(job(0, 1), 7);
    let until = 127 * aging + 10 * burst;
    let mut experiment = Experiment::new(scheduler).set("aging", aging * MS).until(until);
    if scheduler == "priority-rr" {
        experiment = experiment.set("quantum", 2 * burst * MS);
    }
    let run = experiment.run(&[vip, other, poor]);
    run.pieces.iter().find(|piece| piece.task == 2).map_or(u64::MAX, |piece| piece.start_ns / MS)
}

#[test]
fn section_1_5_aging_brings_level_127_to_level_0_in_127_intervals() {
    // 15 min for each level: 31.75 h.
    let minute = 60_000;
    for scheduler in ["priority", "priority-preemptive", "priority-rr"] {
        let first = first_run_of_the_last(scheduler, 15 * minute, minute);
        assert_eq!(first, 127 * 15 * minute, "{scheduler}");
        assert_eq!(first * 100, 3_175 * 60 * minute, "31.75 h");
        // 1 s for each level: "a little over 2 minutes".
        assert_eq!(first_run_of_the_last(scheduler, 1_000, 500), 127_000, "{scheduler}");
    }
}

#[test]
fn section_1_5_priority_rr_gantt() {
    let five: Vec<Job> = [(4, 3), (5, 2), (8, 2), (7, 1), (3, 3)]
        .iter()
        .map(|(burst, level)| at_level(job(0, *burst), *level))
        .collect();
    let run = Experiment::new("priority-rr").set("quantum", 2 * MS).run(&five);
    let expected = [
        (4, 0, 7),
        (2, 7, 9),
        (3, 9, 11),
        (2, 11, 13),
        (3, 13, 15),
        (2, 15, 16),
        (3, 16, 20),
        (1, 20, 22),
        (5, 22, 24),
        (1, 24, 26),
        (5, 26, 27),
    ];
    assert_eq!(run.gantt(), expected);
}

#[test]
fn section_1_6_round_robin_waits() {
    let run = Experiment::new("rr").set("quantum", 4 * MS).run(&jobs(&[24, 3, 3]));
    assert_eq!(run.gantt(), [(1, 0, 4), (2, 4, 7), (3, 7, 10), (1, 10, 30)]);
    assert_eq!(run.waits(), [6, 4, 7]);
    let run = Experiment::new("rr").set("quantum", 10 * MS).run(&jobs(&[10, 29, 3, 7, 12]));
    assert_eq!(run.wait_sum(), 23 * 5);
}

#[test]
fn section_1_6_round_robin_mean_turnaround_by_quantum() {
    let four_times_mean: Vec<u64> = (1..=7)
        .map(|quantum| {
            let run = Experiment::new("rr").set("quantum", quantum * MS).run(&jobs(&[6, 3, 1, 7]));
            run.turnarounds().iter().sum()
        })
        .collect();
    // 11.0, 11.5, 10.75, 11.5, 12.25, 10.5, 10.5
    assert_eq!(four_times_mean, [44, 46, 43, 46, 49, 42, 42]);
}

#[test]
fn section_1_6_arrival_at_the_end_of_a_quantum_is_queued_first() {
    let run = Experiment::new("rr").set("quantum", 2 * MS).run(&[job(0, 4), job(2, 1)]);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 3), (1, 3, 5)]);
}

#[test]
fn section_1_6_bound_of_the_wait_for_a_turn() {
    for n in 2..=7u64 {
        let quantum = 3;
        let run =
            Experiment::new("rr").set("quantum", quantum * MS).run(&jobs(&vec![30; n as usize]));
        let waits: Vec<u64> = (0..n as u32).flat_map(|task| run.gaps(task)).collect();
        assert_eq!(waits.iter().max(), Some(&((n - 1) * quantum)), "n = {n}");
    }
}

#[test]
fn section_1_6_switches_of_a_burst_of_10() {
    for (quantum, switches) in [(12, 0), (6, 1), (1, 9)] {
        let run = Experiment::new("rr").set("quantum", quantum * MS).run(&jobs(&[10, 100]));
        assert_eq!(run.pieces_of(0).len() - 1, switches, "quantum {quantum}");
    }
}

#[test]
fn section_1_7_multilevel_fixed_priority() {
    let three = [job(0, 4), job(0, 6).policy(Policy::Batch), job(6, 3)];
    let run = Experiment::new("multilevel").set("quantum-foreground", 2 * MS).run(&three);
    assert_eq!(run.gantt(), [(1, 0, 4), (2, 4, 6), (3, 6, 9), (2, 9, 13)]);
    assert_eq!(run.waits(), [0, 7, 0]);
}

#[test]
fn section_1_7_multilevel_preempted_task_keeps_its_place_and_quantum() {
    // Background round robin, quantum 4: P1 is preempted after 1 and has 3 left, before P2's turn.
    let three = [job(0, 8).policy(Policy::Batch), job(0, 8).policy(Policy::Batch), job(1, 2)];
    let run = Experiment::new("multilevel").set("quantum-background", 4 * MS).run(&three);
    assert_eq!(
        run.gantt(),
        [(1, 0, 1), (3, 1, 3), (1, 3, 6), (2, 6, 10), (1, 10, 14), (2, 14, 18)]
    );
}

#[test]
fn section_1_7_multilevel_timeshare_80_to_20() {
    let two = [Job::at(0).forever(1_000, 0), Job::at(0).forever(1_000, 0).policy(Policy::Batch)];
    let run = Experiment::new("multilevel-timeshare")
        .set("cycle", 10 * MS)
        .set("quantum-foreground", 3 * MS)
        .until(100)
        .run(&two);
    let expected: Vec<(u32, u64, u64)> = (0..10)
        .flat_map(|cycle| [(1, 10 * cycle, 10 * cycle + 8), (2, 10 * cycle + 8, 10 * cycle + 10)])
        .collect();
    assert_eq!(run.gantt(), expected);
}

#[test]
fn section_1_7_timeshare_gives_unused_time_to_the_other_queue() {
    // The foreground sleeps from 2 to 5 and from 7 to 10; the background uses the gaps and its own
    // part.
    let two = [
        Job::at(0).run(2).sleep(3).run(2).sleep(3).run(1),
        Job::at(0).forever(1_000, 0).policy(Policy::Batch),
    ];
    let run = Experiment::new("multilevel-timeshare").set("cycle", 10 * MS).until(12).run(&two);
    let expected = [(1, 0, 2), (2, 2, 5), (1, 5, 7), (2, 7, 10), (1, 10, 11), (2, 11, 12)];
    assert_eq!(run.gantt(), expected);
    // A foreground task that wakes in the background's part waits for its own.
    let two = [Job::at(9).run(3), Job::at(0).forever(1_000, 0).policy(Policy::Batch)];
    let run = Experiment::new("multilevel-timeshare").set("cycle", 10 * MS).until(14).run(&two);
    assert_eq!(run.gantt(), [(2, 0, 10), (1, 10, 13), (2, 13, 14)]);
}

#[test]
fn section_1_8_mlfq_gantt() {
    let three = [job(0, 40), job(10, 5), job(12, 30)];
    let run = Experiment::new("mlfq").set("boost", 0).set("last-queue", 1).run(&three);
    let expected = [
        (1, 0, 10), // 0-8 in queue 0, 8-10 in queue 1
        (2, 10, 15),
        (3, 15, 23),
        (1, 23, 37),
        (3, 37, 53),
        (1, 53, 69),
        (3, 69, 75),
    ];
    assert_eq!(run.gantt(), expected);
    assert_eq!(run.exits(), [69, 15, 75]);
}

#[test]
fn section_1_8_mlfq_without_boost_starves_and_with_boost_does_not() {
    // Two interactive tasks that fill the CPU from queue 0, and a hog that fell to queue 2.
    let three = [Job::at(0).run(100_000), Job::at(30).forever(5, 5), Job::at(30).forever(5, 5)];
    let without = Experiment::new("mlfq").set("boost", 0).until(1_000).run(&three);
    assert_eq!(without.cpu_time(0), 30, "starved from 30 on");
    let with = Experiment::new("mlfq").set("boost", 100 * MS).until(1_000).run(&three);
    // Each of the 9 boosts moves it to queue 0 and so gives it a turn of 8.
    assert_eq!(with.cpu_time(0), 30 + 9 * 8);
}

#[test]
fn section_1_8_mlfq_boost_keeps_order_and_does_not_interrupt() {
    // At 40: A (queue 2) runs, B and C wait in queue 2. The boost gives A a turn of queue 0.
    let run =
        Experiment::new("mlfq").set("boost", 100 * MS).until(132).run(&jobs(&[500, 500, 500]));
    let expected = [
        (1, 0, 8),
        (2, 8, 16),
        (3, 16, 24),
        (1, 24, 40),
        (2, 40, 56),
        (3, 56, 72),
        (1, 72, 108), // 28 of its 32 in queue 2, then 8 in queue 0
        (2, 108, 116),
        (3, 116, 124),
        (1, 124, 132),
    ];
    assert_eq!(run.gantt(), expected);
}

#[test]
fn section_1_8_mlfq_boost_below_the_quantum_starves_nobody() {
    let run = Experiment::new("mlfq").set("boost", 5 * MS).until(600).run(&jobs(&[500, 500, 500]));
    for task in 0..3 {
        assert!(run.cpu_time(task).abs_diff(200) <= 8, "task {task}: {}", run.cpu_time(task));
    }
}

#[test]
fn section_1_8_mlfq_allotment_counts_all_stays_in_a_queue() {
    // A blocks after 7 of 8 each time. By turns it stays in queue 0 and preempts B's lower queues;
    // by allotment it falls after its eighth ms.
    let two = [Job::at(0).forever(7, 1), Job::at(0).run(1_000)];
    let by_turn = Experiment::new("mlfq").set("boost", 0).until(400).run(&two);
    let by_allotment =
        Experiment::new("mlfq").set("boost", 0).set("accounting", 1).until(400).run(&two);
    assert!(by_turn.cpu_time(1) <= 400 / 8 + 8 + 7, "{}", by_turn.cpu_time(1));
    assert!(by_allotment.cpu_time(1) >= 150, "{}", by_allotment.cpu_time(1));
}

#[test]
fn mlfq_allotment_of_several_quanta() {
    let run = Experiment::new("mlfq")
        .set("queues", 2)
        .set("quantum-0", 2 * MS)
        .set("allotment", 2)
        .set("boost", 0)
        .until(24)
        .run(&jobs(&[20, 20]));
    // Two quanta each in queue 0, with a turn of the other between them.
    let expected = [(1, 0, 2), (2, 2, 4), (1, 4, 6), (2, 6, 8)];
    assert_eq!(run.gantt()[..4], expected);
    assert_eq!(run.gantt()[4..6], [(1, 8, 12), (2, 12, 16)]);
}

/// `mlfq` without a boost; its quanta are in units.
fn mlfq(quanta: &[u64]) -> Experiment {
    let experiment = Experiment::new("mlfq").set("queues", quanta.len() as u64).set("boost", 0);
    quanta.iter().enumerate().fold(experiment, |experiment, (queue, quantum)| {
        experiment.set(&format!("quantum-{queue}"), quantum * MS)
    })
}

fn ostep(experiment: Experiment) -> Experiment {
    experiment.set("conventions", 1)
}

/// The sequences are those of mlfq.py (ostep-homework, cpu-sched-mlfq) for the same jobs.
/// scripts/compare-ostep.py compares random ones.
#[test]
fn mlfq_with_the_conventions_of_ostep() {
    // -Q 4 -l 0,12,0:0,6,2 -i 4: at 10 the quantum of the first ends and the second returns.
    let io = || Job::at(0).run(2).sleep(4).run(2).sleep(4).run(2);
    let two = [job(0, 12), io()];
    let last = [(2, 14, 16), (2, 20, 22)];
    let expected = [&[(1, 0, 4), (2, 4, 6), (1, 6, 14)], &last[..]].concat();
    assert_eq!(ostep(mlfq(&[4]).set("accounting", 1)).run(&two).gantt(), expected);
    let ours = mlfq(&[4]).set("accounting", 1).run(&two).gantt();
    assert_eq!(ours[..4], [(1, 0, 4), (2, 4, 6), (1, 6, 10), (2, 10, 12)]);

    // -S -Q 2,2 -l 0,6,2:0,10,0 -i 3: the first does I/O when its quantum ends, and falls.
    let two = [Job::at(0).run(2).sleep(3).run(2).sleep(3).run(2), job(0, 10)];
    let expected = [(1, 0, 2), (2, 2, 6), (1, 6, 8), (2, 8, 12), (1, 12, 14), (2, 14, 16)];
    assert_eq!(ostep(mlfq(&[2, 2])).run(&two).gantt(), expected);
    let ours = mlfq(&[2, 2]).run(&two).gantt();
    assert_eq!(ours[..3], [(1, 0, 2), (2, 2, 5), (1, 5, 7)], "it stays in queue 0");

    // -Q 2,4,6 -l 0,14,0:0,14,0:0,14,0 -B 15: the third, in queue 1, is queued after the others,
    // which were in queue 2.
    let three = jobs(&[14, 14, 14]);
    let boosted = || mlfq(&[2, 4, 6]).set("boost", 15 * MS);
    let expected = [(3, 14, 15), (1, 15, 17), (2, 17, 19), (3, 19, 21), (1, 21, 25), (2, 25, 29)];
    assert_eq!(ostep(boosted()).run(&three).gantt()[5..11], expected);
    let ours = boosted().run(&three).gantt();
    assert_eq!(ours[5..8], [(3, 14, 17), (1, 17, 19), (2, 19, 21)], "it goes on");
}

/// Option -I of mlfq.py, whose sequences these are too.
#[test]
fn mlfq_puts_tasks_that_wake_at_the_head() {
    let head = |experiment: Experiment| ostep(experiment).set("accounting", 1).set("wake-to", 1);

    // -Q 4 -l 0,12,0:0,6,2 -i 3: the second preempts the first, which keeps the rest of its
    // quantum.
    let io = Job::at(0).run(2).sleep(3).run(2).sleep(3).run(2);
    let run = head(mlfq(&[4])).run(&[job(0, 12), io]);
    let begin = [(1, 0, 4), (2, 4, 6), (1, 6, 9), (2, 9, 11)];
    assert_eq!(run.gantt(), [&begin[..], &[(1, 11, 14), (2, 14, 16), (1, 16, 18)]].concat());

    // -Q 10 -l 0,20,0:0,9,3:1,8,2 -i 2: the third preempts the second and is preempted by it.
    let second = Job::at(0).run(3).sleep(2).run(3).sleep(2).run(3);
    let third = Job::at(1).run(2).sleep(2).run(2).sleep(2).run(2).sleep(2).run(2);
    let run = head(mlfq(&[10])).run(&[job(0, 20), second, third]);
    let begin = [(1, 0, 10), (2, 10, 13), (3, 13, 15), (2, 15, 17), (3, 17, 19), (2, 19, 20)];
    let then = [(1, 20, 21), (3, 21, 22), (2, 22, 25), (3, 25, 26), (1, 26, 28)];
    assert_eq!(run.gantt(), [&begin[..], &then, &[(3, 28, 30), (1, 30, 37)]].concat());

    // -Q 6,9 -l 0,20,0:0,20,0:0,6,3 -i 9 -B 24: at 24 the third returns, the quantum of the first
    // in queue 1 ends, and a boost moves both others to queue 0, behind the third.
    let third = Job::at(0).run(3).sleep(9).run(3);
    let run = head(mlfq(&[6, 9])).set("boost", 24 * MS).run(&[job(0, 20), job(0, 20), third]);
    let begin = [(1, 0, 6), (2, 6, 12), (3, 12, 15), (1, 15, 24), (3, 24, 27), (2, 27, 33)];
    assert_eq!(run.gantt(), [&begin[..], &[(1, 33, 38), (2, 38, 46)]].concat());

    // -Q 2,8 -l 0,20,0:0,6,3:15,2,0 -i 2: at 15 the second returns to the queue of the first, which
    // the third preempts from queue 0.
    let second = Job::at(0).run(3).sleep(2).run(3);
    let run = head(mlfq(&[2, 8])).run(&[job(0, 20), second, job(15, 2)]);
    let begin = [(1, 0, 2), (2, 2, 4), (1, 4, 12), (2, 12, 13), (1, 13, 15), (3, 15, 17)];
    assert_eq!(run.gantt(), [&begin[..], &[(2, 17, 20), (1, 20, 28)]].concat());
}

#[test]
fn mlfq_boosts_queue_0_behind_a_task_that_goes_to_the_head_at_that_time() {
    let head = |experiment: Experiment| ostep(experiment).set("accounting", 1).set("wake-to", 1);

    // -Q 3 -l 0,9,0:0,9,0:0,4,2 -i 4 -B 12 -I: at 12 the second, in queue 0, gets a whole quantum,
    // and the third preempts it.
    let third = Job::at(0).run(2).sleep(4).run(2);
    let run = head(mlfq(&[3])).set("boost", 12 * MS).run(&[job(0, 9), job(0, 9), third]);
    let begin = [(1, 0, 3), (2, 3, 6), (3, 6, 8), (1, 8, 11), (2, 11, 12), (3, 12, 14)];
    assert_eq!(run.gantt(), [&begin[..], &[(2, 14, 17), (1, 17, 20), (2, 20, 22)]].concat());

    // -Q 4,8 -l 0,30,0:0,8,4 -i 12 -B 10 -I: the second, asleep since before the boost at 10, is
    // back at 20. Without -I the first, which is boosted, goes on until 24.
    let second = Job::at(0).run(4).sleep(12).run(4);
    let run = head(mlfq(&[4, 8])).set("boost", 10 * MS).run(&[job(0, 30), second]);
    assert_eq!(run.gantt(), [(1, 0, 4), (2, 4, 8), (1, 8, 20), (2, 20, 24), (1, 24, 38)]);

    // Two of them at once, which mlfq.py with its constant time of I/O cannot have.
    let second = Job::at(0).run(4).sleep(12).run(4);
    let third = Job::at(0).run(2).sleep(10).run(2);
    let run = head(mlfq(&[4, 8])).set("boost", 10 * MS).run(&[job(0, 30), second, third]);
    let begin = [(1, 0, 4), (2, 4, 8), (3, 8, 10), (1, 10, 20), (3, 20, 22), (2, 22, 26)];
    assert_eq!(run.gantt(), [&begin[..], &[(1, 26, 42)]].concat());
}

/// Of two CPUs that of the older turn is taken, although the sleeper ran on the other one.
#[test]
fn mlfq_takes_the_cpu_of_the_oldest_turn_for_a_task_that_goes_to_the_head() {
    let sleeper = Job::at(0).run(1).sleep(6).run(3);
    let tasks = [sleeper, job(0, 20), job(2, 20)];
    let run = mlfq(&[100]).set("wake-to", 1).cpus(2).run(&tasks);
    assert_eq!(run.gantt(), [(1, 0, 1), (2, 0, 7), (3, 2, 22), (1, 7, 10), (2, 10, 23)]);
    assert_eq!(run.pieces_of(0).iter().map(|piece| piece.cpu).collect::<Vec<_>>(), [0, 1]);
    let run = mlfq(&[100]).cpus(2).run(&tasks);
    assert_eq!(run.gantt(), [(1, 0, 1), (2, 0, 20), (3, 2, 22), (1, 20, 23)]);
}

#[test]
fn section_1_8_mlfq_entry_queue() {
    // If it enters at queue 1, P1 has 16 before P2's turn.
    let run = Experiment::new("mlfq").set("boost", 0).set("entry", 1).run(&jobs(&[20, 20]));
    assert_eq!(run.gantt(), [(1, 0, 16), (2, 16, 32), (1, 32, 36), (2, 36, 40)]);
}
