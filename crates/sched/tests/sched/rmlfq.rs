// SPDX-License-Identifier: MIT OR Apache-2.0
//! The random transition of RMLFQ, compared with its table of probabilities and its long-run
//! behaviour.
//!
//! Source of the tables: Zenan Li, "In Search of an Efficient Linux Process Scheduler" (2021),
//! sections 3.3 and 4.4. The stationary distributions follow from the tables and are also computed
//! here by iteration. Draws use fixed seeds.

use schedlab_model::random::{Purpose, Stream};
use schedlab_sched::wrr::transition::{DrawRule, Outcome, decile, moved, stage};

const RULES: [DrawRule; 3] = [DrawRule::Design, DrawRule::AsBuilt64, DrawRule::AsBuilt32];
const NR_DRAWS: u32 = 1_000_000;

/// Tenths of promotion and demotion; the rest is the chance to stay.
fn table(rule: DrawRule, stage: u8, times: u8) -> (u32, u32) {
    const DESIGN: [[(u32, u32); 3]; 5] = [
        [(1, 5), (2, 6), (3, 7)],
        [(2, 4), (3, 5), (4, 6)],
        [(3, 3), (4, 4), (5, 5)],
        [(4, 2), (5, 3), (6, 4)],
        [(5, 1), (6, 2), (7, 3)],
    ];
    const CODE: [[(u32, u32); 3]; 5] = [
        [(1, 6), (2, 7), (3, 7)],
        [(2, 5), (3, 6), (4, 6)],
        [(3, 4), (4, 5), (5, 5)],
        [(4, 3), (5, 4), (6, 4)],
        [(5, 2), (6, 3), (7, 3)],
    ];
    let (row, column) = (usize::from(stage), usize::from(times) - 1);
    match rule {
        DrawRule::Design => DESIGN[row][column],
        DrawRule::AsBuilt64 => CODE[row][column],
        DrawRule::AsBuilt32 => (1, 9),
    }
}

/// Chances of the three outcomes.
fn chances(rule: DrawRule, stage: u8, times: u8) -> [(Outcome, f64); 3] {
    let (low, high) = table(rule, stage, times);
    let tenths = |tenths: u32| f64::from(tenths) / 10.0;
    [
        (Outcome::Promote, tenths(low)),
        (Outcome::Demote, tenths(high)),
        (Outcome::Stay, tenths(10 - low - high)),
    ]
}

/// The chi-square value with `freedom` degrees that is exceeded once in a thousand times (Wilson
/// and Hilferty's approximation, within 1 % from 3 degrees on).
fn critical(freedom: u32) -> f64 {
    let k = f64::from(freedom);
    let z = 3.0902;
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

fn chi_square(cells: &[(f64, u32)]) -> f64 {
    cells.iter().map(|(expected, found)| (f64::from(*found) - expected).powi(2) / expected).sum()
}

#[test]
fn section_5_2_transition_table_by_chi_square() {
    for (seed, rule) in RULES.into_iter().enumerate() {
        let mut random = Stream::new(seed as u64, Purpose::Scheduler, 0);
        let (mut sum, mut freedom) = (0.0, 0);
        for (stage, times) in (0..5).flat_map(|stage| (1..=3).map(move |times| (stage, times))) {
            let mut counts = [0; 3];
            for _ in 0..NR_DRAWS {
                counts[rule.draw(&mut random, stage, times).outcome as usize] += 1;
            }
            let mut cells = Vec::new();
            for (outcome, chance) in chances(rule, stage, times) {
                let found = counts[outcome as usize];
                if chance > 0.0 {
                    cells.push((chance * f64::from(NR_DRAWS), found));
                } else {
                    assert_eq!(found, 0, "{rule:?} {stage} {times} {outcome:?}");
                }
            }
            sum += chi_square(&cells);
            freedom += cells.len() as u32 - 1;
        }
        assert_eq!(freedom, if rule == DrawRule::AsBuilt32 { 15 } else { 25 });
        assert!(sum < critical(freedom), "{rule:?}: chi-square {sum} with {freedom}");
    }
}

#[test]
fn section_5_2_a_wrong_table_is_noticed() {
    let mut random = Stream::new(1, Purpose::Scheduler, 0);
    let mut counts = [0; 3];
    for _ in 0..NR_DRAWS {
        counts[DrawRule::AsBuilt64.draw(&mut random, 2, 1).outcome as usize] += 1;
    }
    let design = chances(DrawRule::Design, 2, 1);
    let cells = design.map(|(outcome, chance)| (chance * 1e6, counts[outcome as usize]));
    assert!(chi_square(&cells) > 100.0 * critical(2));
}

#[test]
fn s4_12_the_design_is_symmetric_and_the_code_is_not() {
    let asymmetry = |rule| {
        let states = (0..5).flat_map(|stage| (1..=3).map(move |times| (stage, times)));
        states.filter(|(s, t)| table(rule, *s, *t).0 != table(rule, 4 - *s, *t).1).count()
    };
    assert_eq!(asymmetry(DrawRule::Design), 0);
    assert_eq!(asymmetry(DrawRule::AsBuilt64), 10);
    assert_eq!(asymmetry(DrawRule::AsBuilt32), 15);
}

/// The reason for the 32-bit column: every product wraps to 2^32 - k.
#[test]
fn section_5_2_thresholds_collapse_on_32_bits() {
    for (stage, times) in (0..5).flat_map(|stage| (1..=3).map(move |times| (stage, times))) {
        let (low, high) = DrawRule::AsBuilt32.thresholds(stage, times);
        for threshold in [low, high] {
            assert!(
                (429_496_728..=429_496_729).contains(&threshold),
                "{stage} {times} {threshold}"
            );
        }
    }
    assert_eq!(DrawRule::AsBuilt64.thresholds(2, 1), (1_288_490_188, 2_576_980_377));
    assert_eq!(DrawRule::Design.thresholds(2, 1), (3, 6));
}

#[test]
fn section_5_2_moves_end_at_the_ends() {
    assert_eq!(moved(7, 2, Outcome::Promote), (7, 1));
    assert_eq!(moved(10, 2, Outcome::Promote), (0, 1));
    assert_eq!(moved(89, 2, Outcome::Demote), (99, 1));
    assert_eq!(moved(90, 2, Outcome::Demote), (90, 1));
    assert_eq!(moved(35, 2, Outcome::Stay), (35, 3));
    assert_eq!((decile(95), stage(95), decile(39), stage(39)), (9, 4, 3, 1));
}

/// Probabilities of the deciles in the long run, by iteration over decile and times.
fn stationary(rule: DrawRule) -> [f64; 10] {
    let mut now = [[0.0; 3]; 10];
    now[0][0] = 1.0;
    for _ in 0..20_000 {
        let mut next = [[0.0; 3]; 10];
        for (d, row) in now.iter().enumerate() {
            for (t, mass) in row.iter().enumerate() {
                let prio = d as u8 * 10;
                for (outcome, chance) in chances(rule, stage(prio), t as u8 + 1) {
                    let (prio, times) = moved(prio, t as u8 + 1, outcome);
                    if chance > 0.0 {
                        next[usize::from(decile(prio))][usize::from(times) - 1] += mass * chance;
                    }
                }
            }
        }
        now = next;
    }
    now.map(|row| row.iter().sum())
}

fn mean_slice_ms(distribution: &[f64; 10]) -> f64 {
    distribution.iter().enumerate().map(|(d, chance)| 100.0 * (d as f64 + 1.0) * chance).sum()
}

#[test]
fn section_5_2_stationary_distribution_and_mean_slice() {
    let thousandths = |rule| stationary(rule).map(|chance| (chance * 1000.0).round() as u32);
    let design = [10, 38, 86, 159, 206, 206, 159, 86, 38, 10];
    assert_eq!(thousandths(DrawRule::Design), design);
    assert_eq!(thousandths(DrawRule::AsBuilt64), [3, 15, 42, 97, 155, 201, 200, 152, 94, 40]);
    assert_eq!(thousandths(DrawRule::AsBuilt32), [0, 0, 0, 0, 0, 0, 1, 11, 99, 889]);
    let means = RULES.map(|rule| mean_slice_ms(&stationary(rule)).round() as u32);
    assert_eq!(means, [550, 640, 988]);
}

/// A chain of 10^6 draws, sampled at every hundredth: far enough apart to count as independent.
#[test]
fn section_5_2_stationary_distribution_by_chi_square() {
    for (seed, rule) in RULES.into_iter().enumerate() {
        let mut random = Stream::new(40 + seed as u64, Purpose::Scheduler, 0);
        let expected = stationary(rule);
        let (mut prio, mut times) = (50, 1);
        let mut counts = [0u32; 10];
        for index in 0..NR_DRAWS {
            let outcome = rule.draw(&mut random, stage(prio), times).outcome;
            (prio, times) = moved(prio, times, outcome);
            if index % 100 == 99 {
                counts[usize::from(decile(prio))] += 1;
            }
        }
        let nr_looks = f64::from(NR_DRAWS / 100);
        // Merge cells with too small an expected count into the next one.
        let mut cells = vec![(0.0, 0)];
        for (chance, found) in expected.iter().zip(counts) {
            let last = cells.last_mut().expect("there is one");
            if last.0 < 10.0 {
                *last = (last.0 + chance * nr_looks, last.1 + found);
            } else {
                cells.push((chance * nr_looks, found));
            }
        }
        let freedom = cells.len() as u32 - 1;
        let sum = chi_square(&cells);
        assert!(sum < critical(freedom), "{rule:?}: chi-square {sum} with {freedom}: {cells:?}");
    }
}
