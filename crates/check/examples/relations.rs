// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges the pairs of metamorphic rules of every scheduler, or of those named, over many seeds.
//!
//! `cargo run --release -p schedlab-check --example relations -- 1000 linux-6.12`

use schedlab_check::{Needs, RULES, Subject, Verdict, check_rule, generate, pair, shrink};
use schedlab_sched::registry::{self, SCHEDULERS};
use schedlab_workload::write_rtapp_short;
use std::sync::Arc;

fn main() {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(100);
    let first: u64 = std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut names: Vec<String> = args.collect();
    let judges_limits = names.iter().any(|name| name == "--known");
    let shows = names.iter().any(|name| name == "--show");
    names.retain(|name| !name.starts_with("--"));
    if names.is_empty() {
        names = SCHEDULERS.iter().map(|scheduler| scheduler.name.to_string()).collect();
    }
    for name in &names {
        let scheduler = Arc::clone(registry::find(name).expect("a known scheduler"));
        let subject = Subject { judges_limits, ..Subject::new(scheduler) };
        println!("{name}");
        for rule in RULES.iter().filter(|rule| rule.needs == Needs::Pair) {
            let (mut nr_pairs, mut seeds, mut found) = (0, Vec::new(), None);
            for seed in first..first + count {
                let case = generate(&subject.shape(), seed);
                nr_pairs += u64::from(pair(&case, &subject, rule).is_some());
                if let Verdict::Broken(breach) = check_rule(&case, &subject, rule) {
                    seeds.push(seed);
                    found.get_or_insert((case, breach));
                }
            }
            println!(
                "    {}: {} of {nr_pairs} pairs {:?}",
                rule.name,
                seeds.len(),
                seeds.iter().take(8).collect::<Vec<_>>()
            );
            let Some((case, breach)) = found else { continue };
            println!("        {breach}");
            if shows {
                let mut test = |case: &_| check_rule(case, &subject, rule).breach();
                let small = shrink(&case, &breach, 500, &mut test);
                let both = pair(&small.case, &subject, rule).expect("it was judged");
                println!("{}\n{}", small.breach, write_rtapp_short(&both.cases[0].workload));
                println!("{}", write_rtapp_short(&both.cases[1].workload));
            }
        }
    }
}
