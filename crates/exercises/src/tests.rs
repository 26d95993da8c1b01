// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every exercise has a sheet for every seed; some answers are worked out again, without the
//! simulator.

use super::*;

const SEEDS: std::ops::Range<u64> = 0..25;

#[test]
fn there_are_thirty_exercises_and_each_has_sheets() {
    assert!(EXERCISES.len() >= 30);
    for number in 1..=EXERCISES.len() as u32 {
        let sheets: Vec<Sheet> = SEEDS.map(|seed| sheet(number, seed).unwrap()).collect();
        for made in &sheets {
            assert_eq!(*made, sheet(number, made.seed).unwrap(), "the same again");
            let verdict = check(number, made.seed, &made.answer).unwrap();
            assert!(verdict.right, "{number}, seed {}: {}", made.seed, made.answer);
            assert!(made.question.ends_with('?') && !made.hints.is_empty(), "{}", made.question);
        }
        let answers: std::collections::BTreeSet<&str> =
            sheets.iter().map(|made| made.answer.as_str()).collect();
        assert!(answers.len() > 1, "exercise {number} always has the answer {answers:?}");
    }
    assert!(sheet(0, 1).unwrap_err().contains("allowed are 1 to"));
    assert!(sheet(99, 1).is_err());
}

/// The browser test compares the sheets of the page with the same file.
#[test]
fn sheets_stay_as_they_are() {
    let mut text = String::new();
    for number in 1..=EXERCISES.len() as u32 {
        for seed in [1, 2] {
            let digest = sheet(number, seed).unwrap().digest;
            text += &format!("{number} {seed} {digest}\n");
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    schedlab_testing::golden(&root.join("tests/exercises/digests.txt"), &text).unwrap();
}

/// Exits of jobs that run one after the other in the order of the list.
fn exits(jobs: &[Job]) -> Vec<u64> {
    let mut now = 0;
    jobs.iter()
        .map(|job| {
            now = now.max(job.release) + job.run;
            now
        })
        .collect()
}

#[test]
fn first_come_first_served_is_computed_again() {
    for seed in SEEDS {
        let made = sheet(2, seed).unwrap();
        let sum: u64 =
            exits(&made.jobs).iter().zip(&made.jobs).map(|(exit, job)| exit - job.release).sum();
        let mean = Answer::Time((sum * 1_000_000 / made.jobs.len() as u64) as i64);
        assert_eq!(mean.text(), made.answer, "seed {seed}");
    }
}

#[test]
fn shares_follow_the_weights() {
    let number =
        EXERCISES.iter().position(|one| one.title == "Shares by weight").unwrap() as u32 + 1;
    for seed in SEEDS {
        let made = sheet(number, seed).unwrap();
        let weight = |job: &Job| schedlab_model::weights::nice_weight(job.priority as i8);
        let sum: u64 = made.jobs.iter().map(weight).sum();
        let end = made.question.find(" got by then").unwrap();
        let job = made.jobs.iter().find(|job| made.question[..end].ends_with(&job.name)).unwrap();
        let share = format!("{}", weight(job) * 100 / sum);
        let next = format!("{}", weight(job) * 100 / sum + 1);
        let right = |given: &str| check(number, seed, given).unwrap().right;
        assert!(right(&share) || right(&next), "seed {seed}: {share}, {}", made.answer);
    }
}

#[test]
fn a_lag_is_the_mean_less_the_own_vruntime() {
    let number = EXERCISES.iter().position(|one| one.title == "Lag").unwrap() as u32 + 1;
    for seed in SEEDS {
        let made = sheet(number, seed).unwrap();
        let value = |text: &str| text.trim_end_matches(" ms").parse::<f64>().unwrap();
        let of = |row: &Vec<String>| value(&row[1]);
        let rows = &made.table.rows;
        let mean = rows.iter().map(of).sum::<f64>() / rows.len() as f64;
        let asked = rows.iter().find(|row| made.question.contains(&format!("of {}?", row[0])));
        let lag = mean - of(asked.unwrap());
        assert!((lag - value(&made.answer)).abs() < 0.003, "seed {seed}: {lag}, {made:?}");
    }
}

#[test]
fn the_rules_of_picks_hold_for_the_numbers_shown() {
    let number = EXERCISES.iter().position(|one| one.title.starts_with("Eligible")).unwrap();
    for seed in SEEDS {
        let made = sheet(number as u32 + 1, seed).unwrap();
        let value = |text: &str| text.trim_end_matches(" ms").parse::<f64>().unwrap();
        let eligible = made.table.rows.iter().filter(|row| value(&row[1]) >= 0.0);
        let first = eligible.min_by(|a, b| value(&a[2]).total_cmp(&value(&b[2]))).unwrap();
        assert_eq!(first[0], made.answer, "seed {seed}: {:?}", made.table);
    }
}
