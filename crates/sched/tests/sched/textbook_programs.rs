// SPDX-License-Identifier: MIT OR Apache-2.0
//! The textbook schedulers under programs that do more than run and sleep: forks and joins, changes
//! of their own nice value and affinity, sched_yield. One unit is 1 ms; nothing has a cost.

use crate::textbook_support;

use schedlab_model::weights::nice_weight;
use schedlab_model::{CpuId, CpuMask};
use textbook_support::{Experiment, Job, MS, Piece, Run, TEXTBOOK, job};

/// Runs 2, forks the second job, runs 2, waits for it, runs 1.
fn parent() -> Job {
    Job::at(0).run(2).forks(1).run(2).joins().run(1)
}

/// Task (from 1), CPU, start and end of each stay, in units.
fn stays(run: &Run) -> Vec<(u32, u32, u64, u64)> {
    let stay = |p: &Piece| (p.task + 1, p.cpu, p.start_ns / MS, p.end_ns / MS);
    run.pieces.iter().map(stay).collect()
}

#[test]
fn child_waits_for_its_turn_on_one_cpu() {
    for scheduler in ["fcfs", "sjf", "srtf", "priority", "priority-preemptive", "multilevel"] {
        let run = Experiment::new(scheduler).run(&[parent(), job(0, 3).forked()]);
        assert_eq!(run.gantt(), [(1, 0, 4), (2, 4, 7), (1, 7, 8)], "{scheduler}");
        // The child was created at 2.
        assert_eq!(run.turnarounds(), [8, 5], "{scheduler}");
        assert_eq!(run.gaps(1), [2], "{scheduler}");
    }
}

#[test]
fn child_that_ranks_better_preempts_its_parent_in_the_fork() {
    let expected = [(1, 0, 2), (2, 2, 5), (1, 5, 8)];
    for scheduler in ["priority-preemptive", "priority-rr"] {
        let run = Experiment::new(scheduler).run(&[parent(), job(0, 3).nice(-1).forked()]);
        assert_eq!(run.gantt(), expected, "{scheduler}");
    }
    // The parent has 2 left of the burst that its wait for the child ends; the child needs 1.
    let run = Experiment::new("srtf").run(&[parent(), job(0, 1).forked()]);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 3), (1, 3, 6)]);
}

#[test]
fn child_starts_at_once_on_an_idle_cpu() {
    for scheduler in TEXTBOOK {
        let run = Experiment::new(scheduler).cpus(2).run(&[parent(), job(0, 3).forked()]);
        assert_eq!(stays(&run), [(1, 0, 0, 4), (2, 1, 2, 5), (1, 0, 5, 6)], "{scheduler}");
    }
}

#[test]
fn a_tree_of_forks_ends_from_its_leaves() {
    for scheduler in TEXTBOOK {
        for nr_cpus in 1..=4 {
            let tree = [
                Job::at(0).forks(1).forks(2).run(1).joins().run(1),
                Job::at(0).run(1).forks(3).joins().run(2).forked(),
                Job::at(0).run(4).forked(),
                Job::at(0).run(3).forked(),
            ];
            let run = Experiment::new(scheduler).cpus(nr_cpus).run(&tree);
            let exits = run.exits();
            let last = *exits.iter().max().unwrap();
            assert_eq!(exits[0], last, "{scheduler}");
            assert!(exits[3] + 2 <= exits[1] && exits[1] < last, "{scheduler}: {exits:?}");
            for (task, job) in (0..).zip(&tree) {
                assert_eq!(run.cpu_time(task), job.work(), "{scheduler}");
            }
            // The longest path is 1 + 3 + 2 + 1; a single CPU needs all 12.
            assert!((7..=12).contains(&last), "{scheduler}: {last}");
            assert!(nr_cpus > 1 || last == 12, "{scheduler}: {last}");
        }
    }
}

#[test]
fn a_task_that_gives_up_its_cpu_by_affinity_waits_for_the_other() {
    // P1 leaves CPU 0 to P3, which waited for it, and waits for P2 on CPU 1.
    let three = [
        Job::at(0).run(2).set_affinity(CpuMask::only(CpuId(1))).run(4),
        job(0, 3).cpu(1),
        job(0, 2).cpu(0),
    ];
    for scheduler in ["fcfs", "rr", "priority", "priority-preemptive", "multilevel", "mlfq"] {
        let run = Experiment::new(scheduler).cpus(2).run(&three);
        let expected = [(1, 0, 0, 2), (2, 1, 0, 3), (3, 0, 2, 4), (1, 1, 3, 7)];
        assert_eq!(stays(&run), expected, "{scheduler}");
    }
}

#[test]
fn a_task_that_leaves_by_affinity_drives_out_a_worse_one() {
    let two =
        [Job::at(0).run(2).set_affinity(CpuMask::only(CpuId(1))).run(4), job(0, 10).nice(3).cpu(1)];
    for scheduler in ["priority-preemptive", "priority-rr"] {
        let run = Experiment::new(scheduler).cpus(2).run(&two);
        let expected = [(1, 0, 0, 2), (2, 1, 0, 2), (1, 1, 2, 6), (2, 1, 6, 14)];
        assert_eq!(stays(&run), expected, "{scheduler}");
    }
}

#[test]
fn a_wider_affinity_is_used_when_it_pays() {
    // Both are bound to CPU 0. P1 removes its binding, but only P2 has to wait, because it is still
    // bound.
    let two = [Job::at(0).cpu(0).run(2).set_affinity(CpuMask::first(2)).run(4), job(0, 3).cpu(0)];
    let run = Experiment::new("fcfs").cpus(2).run(&two);
    assert_eq!(stays(&run), [(1, 0, 0, 6), (2, 0, 6, 9)], "no task moves while it runs");
    // After a preemption it continues where it may run now.
    let better = job(3, 3).cpu(0).nice(-1);
    let run = Experiment::new("priority-preemptive").cpus(2).run(&[two[0].clone(), better]);
    assert_eq!(stays(&run), [(1, 0, 0, 3), (2, 0, 3, 6), (1, 1, 3, 6)]);
}

#[test]
fn a_task_that_lowers_itself_gives_way_on_its_cpu_only() {
    let three = [Job::at(0).run(2).set_nice(5).run(4), job(0, 5), job(0, 10).nice(3)];
    let run = Experiment::new("priority-preemptive").cpus(2).run(&three);
    assert_eq!(stays(&run), [(1, 0, 0, 2), (2, 1, 0, 5), (3, 0, 2, 12), (1, 1, 5, 9)]);
    // Without preemption it continues.
    let run = Experiment::new("priority").cpus(2).run(&three);
    assert_eq!(run.pieces_of(0).len(), 1);
}

#[test]
fn new_tickets_count_from_the_moment_of_the_change() {
    // Half of 1,000 for each; then the shares follow the weights of nice -5 and 0.
    for (scheduler, tolerance) in [("stride", 3), ("lottery", 150)] {
        let two = [Job::at(0).run(500).set_nice(-5).run(100_000), job(0, 100_000)];
        let run = Experiment::new(scheduler).set("quantum", MS).until(5_000).run(&two);
        let share = 4_000 * nice_weight(-5) / (nice_weight(-5) + nice_weight(0));
        let time = run.cpu_time(0);
        assert!(time.abs_diff(500 + share) <= tolerance, "{scheduler}: {time}, {share}");
    }
}

#[test]
fn a_change_of_attributes_at_the_end_of_a_quantum_gives_no_second_one() {
    let two = [Job::at(0).run(2).set_nice(1).run(2), job(0, 2)];
    let run = Experiment::new("rr").set("quantum", 2 * MS).run(&two);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 4), (1, 4, 6)]);
    // In the middle of a quantum it keeps the rest.
    let two = [Job::at(0).run(1).set_nice(1).run(3), job(0, 2)];
    let run = Experiment::new("rr").set("quantum", 2 * MS).run(&two);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 4), (1, 4, 6)]);
}

#[test]
fn yield_gives_up_the_rest_of_a_quantum() {
    let two = [Job::at(0).yields_forever(1), Job::at(0).run(100)];
    let run = Experiment::new("rr").set("quantum", 4 * MS).until(11).run(&two);
    assert_eq!(run.gantt(), [(1, 0, 1), (2, 1, 5), (1, 5, 6), (2, 6, 10), (1, 10, 11)]);
}

#[test]
fn yield_at_the_very_end_of_a_quantum_costs_one_turn_only() {
    let three = [Job::at(0).run(2).yields().run(2), job(0, 2), job(0, 2)];
    let run = Experiment::new("rr").set("quantum", 2 * MS).run(&three);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 4), (3, 4, 6), (1, 6, 8)]);
}

#[test]
fn yield_of_a_task_alone_switches_nothing() {
    for scheduler in TEXTBOOK {
        let one = Job::at(0).run(1).yields().yields().run(2).yields().run(3);
        let run = Experiment::new(scheduler).cpus(2).run(&[one]);
        assert_eq!(run.gantt(), [(1, 0, 6)], "{scheduler}");
    }
}

#[test]
fn mlfq_yields_game_the_turns_but_not_the_allotment() {
    // A yields before each turn of 8 ends, so by turns it always stays in queue 0.
    let two = [Job::at(0).yields_forever(1), Job::at(0).run(1_000)];
    let time = |accounting: u64| {
        let experiment = Experiment::new("mlfq").set("boost", 0).set("accounting", accounting);
        experiment.until(400).run(&two).cpu_time(1)
    };
    assert_eq!(time(0), 8);
    assert!(time(1) >= 100, "{}", time(1));
}
