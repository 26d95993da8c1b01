// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks every scheduler of the registry, or those named, over many seeds.
//!
//! `cargo run --release -p schedlab-check --example seeds -- 1000 linux-6.12`
//!
//! `FIRST=700001` in the environment is the first seed.

use schedlab_check::{Subject, Verdict, check, generate};
use schedlab_sched::registry::SCHEDULERS;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let first: u64 = std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut names: Vec<String> = args.collect();
    let judges_limits = names.iter().any(|name| name == "--known");
    names.retain(|name| name != "--known");
    for scheduler in SCHEDULERS.iter() {
        if !names.is_empty() && !names.iter().any(|name| *name == scheduler.name) {
            continue;
        }
        let subject = Subject { judges_limits, ..Subject::new(Arc::clone(scheduler)) };
        let start = Instant::now();
        let mut nr_refused = 0;
        let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for seed in first..first + count {
            match check(&generate(&subject.shape(), seed), &subject) {
                Verdict::Passed => {}
                Verdict::Refused(_) => nr_refused += 1,
                Verdict::Broken(breach) => {
                    let key = format!("{} {}", breach.rule.name, breach.kind);
                    texts.entry(key.clone()).or_insert_with(|| format!("seed {seed}: {breach}"));
                    found.entry(key).or_default().push(seed);
                }
            }
        }
        let rate = (count * 1_000).checked_div(start.elapsed().as_millis() as u64);
        println!("{}: {nr_refused} refused, {} seeds/s", scheduler.name, rate.unwrap_or(count));
        for (key, seeds) in &found {
            println!("    {key}: {} of {count}, {:?}", seeds.len(), &seeds[..seeds.len().min(12)]);
            println!("        {}", texts[key]);
        }
    }
}
