// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for each known bug from a seed on, for at most 60 s of CPU time, and makes its case
//! small. A bug is found by a rule that the model without the bug keeps in the same case.
//!
//! `FIRST=700001 cargo run --release -p schedlab-check --example bugs -- P01 P22`

use schedlab_check::{Case, Subject, Verdict, check, check_rule, generate, shrink};
use schedlab_sched::bugs::{BUGS, KnownBug};
use schedlab_sched::registry;
use schedlab_workload::write_rtapp_short;
use std::sync::Arc;

/// CPU time of a search (ns).
const BUDGET_NS: u64 = 60_000_000_000;

/// Most lines of a small case.
const LINES_MAX: usize = 10;

/// CPU time of this thread (ns).
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("it is a number")
}

fn subject(name: &str) -> Subject {
    Subject::new(Arc::clone(registry::find(name).expect("it is modelled")))
}

/// Prints how the bug is found. Returns whether it is, by a small case.
fn search(bug: &KnownBug, first: u64) -> bool {
    let Some(name) = bug.names().next() else { return false };
    let (buggy, cured) = (subject(&name), subject(name.split('+').next().unwrap_or_default()));
    let begin = cpu_ns();
    let mut found = None;
    for seed in first.. {
        let case = generate(&buggy.shape(), seed);
        if let Verdict::Broken(breach) = check(&case, &buggy) {
            found = Some((seed, case, breach));
            break;
        }
        if cpu_ns() - begin > BUDGET_NS {
            println!("{}: not found in {} cases", bug.id, seed - first + 1);
            return false;
        }
    }
    let (seed, case, breach) = found.expect("the loop ends by one of the two");
    let search_ns = cpu_ns() - begin;
    let mut judge = |case: &Case| check_rule(case, &buggy, breach.rule).breach();
    let small = shrink(&case, &breach, 1_000, &mut judge);
    let lines = write_rtapp_short(&small.case.workload).lines().count();
    let passes = check_rule(&case, &cured, breach.rule) == Verdict::Passed;
    println!(
        "{}: seed {seed}, rule {}, {:.2} s of CPU time, {lines} lines{}",
        bug.id,
        breach.rule.name,
        search_ns as f64 / 1e9,
        if passes { "" } else { "; the model without the bug breaks it, too" }
    );
    passes && lines <= LINES_MAX
}

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let first: u64 = std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let wanted = BUGS.iter().filter(|bug| bug.left_out().is_none());
    let wanted: Vec<_> =
        wanted.filter(|bug| names.is_empty() || names.iter().any(|name| name == bug.id)).collect();
    let nr_found = wanted.iter().filter(|bug| search(bug, first)).count();
    println!("{nr_found} of {} found by a case of at most {LINES_MAX} lines", wanted.len());
}
