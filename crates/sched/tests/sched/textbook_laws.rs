// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of theory about the textbook schedulers: optimality, bounds, proportions. Also their
//! behaviour on several CPUs, with affinity, and at sched_yield. One unit is 1 ms; nothing has a
//! cost.

use crate::textbook_support;

use schedlab_model::weights::nice_weight;
use schedlab_model::{CpuId, CpuMask, Policy};
use schedlab_sched::registry::SCHEDULERS;
use textbook_support::{Experiment, Job, MS, TEXTBOOK, job, jobs};

/// All orders of `items`.
fn permutations(items: &[u64]) -> Vec<Vec<u64>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        for mut tail in permutations(&rest) {
            tail.insert(0, *first);
            all.push(tail);
        }
    }
    all
}

/// Sum of waits if `bursts` run in this order from time 0.
fn wait_sum(bursts: &[u64]) -> u64 {
    let mut start = 0;
    let mut sum = 0;
    for burst in bursts {
        sum += start;
        start += burst;
    }
    sum
}

#[test]
fn claim_s3_20_sjf_is_optimal_among_all_orders() {
    for bursts in [
        vec![5, 2],
        vec![24, 3, 3],
        vec![6, 8, 7, 3],
        vec![10, 29, 3, 7, 12],
        vec![13, 1, 8, 8, 2, 5],
        vec![1, 2, 3, 4, 5, 6],
    ] {
        let orders = permutations(&bursts);
        let least = orders.iter().map(|order| wait_sum(order)).min().unwrap();
        let most = orders.iter().map(|order| wait_sum(order)).max().unwrap();
        let sjf = Experiment::new("sjf").run(&jobs(&bursts)).wait_sum();
        assert_eq!(sjf, least, "{bursts:?}");
        assert!(least < most, "{bursts:?} would prove nothing");
        // FCFS's mean depends on the order; check several orders.
        for order in orders.iter().take(6) {
            let fcfs = Experiment::new("fcfs").run(&jobs(order)).wait_sum();
            assert_eq!(fcfs, wait_sum(order), "{order:?}");
        }
    }
}

#[test]
fn claim_s3_20_srtf_beats_every_other_scheduler_in_mean_wait() {
    let arriving = [job(0, 9), job(1, 4), job(2, 9), job(3, 1), job(3, 5), job(17, 2)];
    let best = Experiment::new("srtf").run(&arriving).wait_sum();
    for info in SCHEDULERS.iter() {
        if !TEXTBOOK.contains(&&*info.name) {
            continue;
        }
        let sum = Experiment::new(&info.name).run(&arriving).wait_sum();
        assert!(best <= sum, "srtf {best}, {} {sum}", info.name);
    }
}

#[test]
fn claim_s3_20_short_quanta_waste_time_on_switches() {
    // A switch of 1 ms: 20 % of a quantum of 4, 0.99 % of one of 100.
    let makespan = |quantum: u64| {
        let mut experiment = Experiment::new("rr").set("quantum", quantum * MS);
        experiment.costs.context_switch_ns = MS;
        experiment.run(&jobs(&[1_000, 1_000])).exits().into_iter().max().unwrap()
    };
    let (short, long) = (makespan(5), makespan(100));
    assert!(short >= 2_000 * 5 / 4, "{short}");
    assert!((2_020..=2_025).contains(&long), "{long}");
}

#[test]
fn claims_s1_10_and_s2_14_mean_turnaround_of_equal_bursts() {
    for n in 1..=9u64 {
        let equal = jobs(&vec![100; n as usize]);
        let fcfs: u64 = Experiment::new("fcfs").run(&equal).turnarounds().iter().sum();
        // (n + 1) / 2 bursts.
        assert_eq!(2 * fcfs, 100 * n * (n + 1));
        let rr = Experiment::new("rr").set("quantum", MS).run(&equal);
        // All finish together in the last round: within n of n bursts.
        assert!(rr.turnarounds().iter().all(|t| (100 * n - n + 1..=100 * n).contains(t)));
    }
    // Mixed lengths: the convoy makes FCFS worse than RR.
    let convoy = jobs(&[100, 1, 1, 1, 1]);
    let fcfs: u64 = Experiment::new("fcfs").run(&convoy).turnarounds().iter().sum();
    let rr: u64 = Experiment::new("rr").set("quantum", MS).run(&convoy).turnarounds().iter().sum();
    assert!(fcfs > 4 * rr, "fcfs {fcfs}, rr {rr}");
}

/// A task of level 120 next to two of level 119 that leave it no time.
fn starved(scheduler: &str, aging: u64, reset: u64) -> textbook_support::Run {
    let stream = || Job::at(0).forever(10, 10).nice(-1);
    Experiment::new(scheduler)
        .set("aging", aging * MS)
        .set("aging-reset", reset)
        .until(1_000)
        .run(&[stream(), stream(), Job::at(0).forever(10, 10)])
}

#[test]
fn claim_s3_21_aging_prevents_starvation() {
    for scheduler in ["priority", "priority-preemptive", "priority-rr"] {
        assert_eq!(starved(scheduler, 0, 0).cpu_time(2), 0, "{scheduler} without aging");
        let run = starved(scheduler, 100, 0);
        // One level below: it waits at most two intervals and the turns of the tasks before it.
        let starts: Vec<u64> = run.pieces_of(2).iter().map(|piece| piece.start_ns / MS).collect();
        let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest <= 2 * 100 + 20, "{scheduler}: {longest}");
        assert!(run.cpu_time(2) >= 30, "{scheduler}: {}", run.cpu_time(2));
    }
}

#[test]
fn aging_interrupts_at_the_very_time_and_gives_the_raised_task_time() {
    // No task blocks. P2 rises above P1 after 2 intervals (level 121 to 119) and has fallen back
    // when it runs, until P1 rises above it one interval later.
    let two = [job(0, 100), job(0, 100).nice(1)];
    let run = Experiment::new("priority-preemptive").set("aging", 10 * MS).until(60).run(&two);
    assert_eq!(run.gantt(), [(1, 0, 20), (2, 20, 30), (1, 30, 50), (2, 50, 60)]);
    // The level stays until the task blocks: the raised task continues until the other has aged
    // past it.
    let run = Experiment::new("priority-preemptive")
        .set("aging", 10 * MS)
        .set("aging-reset", 1)
        .until(60)
        .run(&two);
    assert_eq!(run.gantt(), [(1, 0, 20), (2, 20, 40), (1, 40, 60)]);
}

/// Numbers of turns of tasks with these nice values under the lottery.
fn lottery_turns(nices: &[i8], turns: u64) -> Vec<u64> {
    let hogs: Vec<Job> = nices.iter().map(|nice| Job::at(0).run(10 * turns).nice(*nice)).collect();
    let run = Experiment::new("lottery").set("quantum", MS).until(turns).run(&hogs);
    (0..nices.len() as u32).map(|task| run.cpu_time(task)).collect()
}

#[test]
fn lottery_shares_pass_a_chi_square_test() {
    // Critical values at 0.1 % for 1, 2 and 4 degrees of freedom, times 1,000.
    for (nices, critical) in
        [(vec![0, 0], 10_828), (vec![0, 3, -3], 13_816), (vec![-5, 0, 5, 10, 0], 18_467)]
    {
        let turns = 20_000;
        let counts = lottery_turns(&nices, turns);
        let total: u64 = nices.iter().map(|nice| nice_weight(*nice)).sum();
        let chi_square_milli: u64 = nices
            .iter()
            .zip(&counts)
            .map(|(nice, count)| {
                let expected_milli = turns * 1_000 * nice_weight(*nice) / total;
                let difference = (count * 1_000).abs_diff(expected_milli);
                difference * difference / expected_milli
            })
            .sum();
        assert_eq!(counts.iter().sum::<u64>(), turns);
        assert!(chi_square_milli < critical, "{nices:?}: {counts:?}, {chi_square_milli}");
        // A lottery with fixed turns would fit too well.
        assert!(chi_square_milli > 1, "{nices:?}: {counts:?}, {chi_square_milli}");
    }
}

#[test]
fn lottery_compensation_gives_a_task_of_short_turns_its_share() {
    // A uses 2 of each quantum of 10 and yields the rest; B is a hog (the paper's example).
    let two = [Job::at(0).yields_forever(2), Job::at(0).run(1_000_000)];
    let share = |compensation: u64| {
        let run = Experiment::new("lottery")
            .set("quantum", 10 * MS)
            .set("compensation", compensation)
            .until(40_000)
            .run(&two);
        100 * run.cpu_time(0) / (run.cpu_time(0) + run.cpu_time(1))
    };
    let (with, without) = (share(1), share(0));
    // Half with compensation; without it 2 in 12 of the time, a sixth.
    assert!((45..=55).contains(&with), "{with} %");
    assert!((14..=20).contains(&without), "{without} %");
}

#[test]
fn stride_error_of_each_pair_stays_below_one_quantum() {
    let nices = [0i8, -4, 3, 7, 0, 10];
    let hogs: Vec<Job> = nices.iter().map(|nice| Job::at(0).run(100_000).nice(*nice)).collect();
    let run = Experiment::new("stride").set("quantum", MS).until(5_000).run(&hogs);
    let mut counts = [0u64; 6];
    let mut checked = 0u64;
    for piece in &run.pieces {
        for _ in 0..(piece.end_ns - piece.start_ns) / MS {
            counts[piece.task as usize] += 1;
            for (i, a) in nices.iter().enumerate() {
                for (j, b) in nices.iter().enumerate().filter(|(j, _)| *j != i) {
                    let (wa, wb) = (nice_weight(*a), nice_weight(*b));
                    // count_i - (count_i + count_j) wa / (wa + wb), times (wa + wb)
                    let actual = counts[i] * (wa + wb);
                    let ideal = (counts[i] + counts[j]) * wa;
                    assert!(actual.abs_diff(ideal) <= wa + wb, "{counts:?}: {i} and {j}");
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(counts.iter().sum::<u64>(), 5_000);
    assert_eq!(checked, 5_000 * 30);
}

#[test]
fn stride_neither_rewards_nor_punishes_sleep() {
    // Equal tickets. B sleeps from 100 to 1,100; afterwards they share equally from where they
    // were.
    let two = [Job::at(0).run(1_000_000), Job::at(0).run(50).sleep(1_000).run(1_000_000)];
    let run = Experiment::new("stride").set("quantum", MS).until(2_100).run(&two);
    let b = run.cpu_time(1);
    assert!(b.abs_diff(50 + 500) <= 2, "{b}");
}

#[test]
fn stride_counts_parts_of_a_quantum() {
    // A uses 2 of each quantum of 10 and yields the rest; equal tickets: equal CPU time.
    let two = [Job::at(0).yields_forever(2), Job::at(0).run(1_000_000)];
    let run = Experiment::new("stride").set("quantum", 10 * MS).until(10_000).run(&two);
    assert!(run.cpu_time(0).abs_diff(run.cpu_time(1)) <= 20, "{}", run.cpu_time(0));
}

#[test]
fn all_use_every_cpu_while_tasks_wait() {
    for scheduler in TEXTBOOK {
        let run = Experiment::new(scheduler).cpus(3).run(&jobs(&[10; 7]));
        let end = *run.exits().iter().max().unwrap();
        assert!((24..=30).contains(&end), "{scheduler}: {end}");
        assert_eq!((0..7).map(|task| run.cpu_time(task)).sum::<u64>(), 70, "{scheduler}");
    }
}

#[test]
fn all_respect_affinity_and_leave_no_cpu_idle_beside_it() {
    // Two tasks bound to CPU 0, released before and after one without affinity.
    for scheduler in TEXTBOOK {
        let three = [job(0, 10).cpu(0), job(0, 10), job(0, 10).cpu(0)];
        let run = Experiment::new(scheduler).cpus(2).run(&three);
        for piece in &run.pieces {
            assert!(piece.task == 1 || piece.cpu == 0, "{scheduler}: {piece:?}");
        }
        assert_eq!(run.exits().into_iter().max(), Some(20), "{scheduler}");
    }
}

#[test]
fn preempted_task_moves_to_an_idle_cpu() {
    // P1 runs on CPU 0 when P2 arrives, which is better and bound to it: P1 continues at once on
    // CPU 1.
    for scheduler in ["priority-preemptive", "priority-rr"] {
        let two = [job(0, 10), job(4, 3).nice(-1).cpu(0)];
        let run = Experiment::new(scheduler).cpus(2).run(&two);
        assert_eq!(run.waits(), [0, 0], "{scheduler}");
        assert_eq!(run.pieces_of(0).len(), 2, "{scheduler}");
    }
}

#[test]
fn the_best_tasks_run_on_all_cpus() {
    // Levels 1 to 5 released in the worst order on 2 CPUs, two at one time.
    let five = [
        job(0, 10).nice(5),
        job(0, 10).nice(4),
        job(1, 10).nice(1),
        job(1, 10).nice(2),
        job(2, 10).nice(3),
    ];
    let run = Experiment::new("priority-preemptive").cpus(2).run(&five);
    assert_eq!(run.exits(), [29, 20, 11, 11, 21].map(|t: u64| t));
}

#[test]
fn a_preempting_task_drives_out_the_worst() {
    let three = [job(0, 10).nice(1), job(0, 10).nice(5), job(1, 2).nice(0)];
    let run = Experiment::new("priority-preemptive").cpus(2).run(&three);
    assert_eq!(run.pieces_of(0).len(), 1, "nice 1 runs on");
    assert_eq!(run.exits(), [10, 12, 3]);
}

#[test]
fn yield_goes_to_the_tail_of_the_tasks_queue() {
    for (scheduler, order) in [
        ("fcfs", vec![1, 2, 3, 1]),
        ("rr", vec![1, 2, 3, 1]),
        ("priority", vec![1, 2, 3, 1]),
        ("priority-preemptive", vec![1, 2, 3, 1]),
        ("priority-rr", vec![1, 2, 3, 1]),
        ("multilevel", vec![1, 2, 3, 1]),
        ("multilevel-timeshare", vec![1, 2, 3, 1]),
        ("mlfq", vec![1, 2, 3, 1]),
        // The shortest rest first: 3 of P2 and P3 against 4 of P1, which yields after 1.
        ("sjf", vec![2, 3, 1]),
        ("srtf", vec![2, 3, 1]),
        // Equal predictions minus the used time: P1 continues.
        ("sjf-predicted", vec![1, 2, 3]),
        ("srtf-predicted", vec![1, 2, 3]),
        // The least pass: P2 and P3 have not run.
        ("stride", vec![1, 2, 3, 1]),
    ] {
        let three = [Job::at(0).run(1).yields().run(4), job(0, 3), job(0, 3)];
        let run = Experiment::new(scheduler).run(&three);
        let tasks: Vec<u32> = run.gantt().iter().map(|piece| piece.0).collect();
        assert_eq!(tasks, order, "{scheduler}");
    }
}

#[test]
fn yield_under_the_lottery_draws_anew() {
    let three = [Job::at(0).yields_forever(1), job(0, 5_000), job(0, 5_000)];
    let run = Experiment::new("lottery").set("quantum", MS).until(3_000).run(&three);
    for task in 0..3 {
        assert!((800..1_200).contains(&run.cpu_time(task)), "{task}: {}", run.cpu_time(task));
    }
}

#[test]
fn equal_hogs_get_equal_shares_where_it_is_claimed() {
    for info in SCHEDULERS.iter().filter(|info| TEXTBOOK.contains(&&*info.name)) {
        let run = Experiment::new(&info.name).until(30_000).run(&jobs(&[100_000; 3]));
        let shares: Vec<u64> = (0..3).map(|task| run.cpu_time(task)).collect();
        let even = shares.iter().all(|share| share.abs_diff(10_000) <= 200);
        // The lottery is even only in expectation, so it claims nothing and may come close.
        if info.name != "lottery" {
            assert_eq!(even, info.claims.fair, "{}: {shares:?}", info.name);
        }
    }
}

#[test]
fn quanta_end_exactly_whatever_the_tick() {
    for hz in [100, 250, 300, 1000] {
        let mut experiment = Experiment::new("rr").set("quantum", 1_234_567);
        experiment.hz = hz;
        let run = experiment.run(&jobs(&[10, 10]));
        let first = &run.pieces[..6];
        for (index, piece) in first.iter().enumerate() {
            assert_eq!(piece.start_ns, 1_234_567 * index as u64, "HZ {hz}");
        }
    }
}

#[test]
fn changes_of_attributes_take_effect_at_once() {
    // P1 raises its nice value after 2, so P2 preempts it. P1 continues after P2 has exited.
    let two = [Job::at(0).run(2).set_nice(5).run(4), job(0, 3)];
    let run = Experiment::new("priority-preemptive").run(&two);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 5), (1, 5, 9)]);
    // Multilevel: it moves to the background.
    let two = [Job::at(0).run(2).set_policy(Policy::Batch).run(4), job(0, 3)];
    let run = Experiment::new("multilevel").run(&two);
    assert_eq!(run.gantt(), [(1, 0, 2), (2, 2, 5), (1, 5, 9)]);
    // Affinity: P1 leaves CPU 0 for CPU 1.
    let mut mask = CpuMask::empty();
    mask.set(CpuId(1));
    for scheduler in TEXTBOOK {
        let one = [Job::at(0).run(2).set_affinity(mask).run(4)];
        let run = Experiment::new(scheduler).cpus(2).run(&one);
        let cpus: Vec<u32> = run.pieces.iter().map(|piece| piece.cpu).collect();
        assert_eq!(cpus, [0, 1], "{scheduler}");
        assert_eq!(run.exits(), [6], "{scheduler}");
    }
}

#[test]
fn only_different_affinities_are_scanned() {
    // Each queue entry that a pick examines after the first costs 1 ns.
    let scanned = |scheduler: &str, jobs: &[Job]| {
        let mut experiment = Experiment::new(scheduler).cpus(2);
        experiment.costs.pick_entry_ns = 1;
        let run = experiment.run(jobs);
        let busy: u64 = run.pieces.iter().map(|piece| piece.end_ns - piece.start_ns).sum();
        busy - jobs.iter().map(Job::work).sum::<u64>() * MS
    };
    for scheduler in TEXTBOOK {
        assert_eq!(scanned(scheduler, &jobs(&[5; 50])), 0, "{scheduler}");
        // Three affinities, two of them usable by each CPU: each pick examines one more head.
        let mixed: Vec<Job> = (0..30)
            .map(|index| match index % 3 {
                0 => job(0, 5).cpu(0),
                1 => job(0, 5).cpu(1),
                _ => job(0, 5),
            })
            .collect();
        let scanned = scanned(scheduler, &mixed);
        assert!((20..=200).contains(&scanned), "{scheduler}: {scanned}");
    }
}
