// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows the case of a seed, or of a file, and its breach, and the same made small.
//!
//! `cargo run -p schedlab-check --example one -- linux-6.12 24`
//! `cargo run -p schedlab-check --example one -- linux-6.12 workload.json 2`

use schedlab_check::{Case, Subject, generate, play, shrink};
use schedlab_model::Machine;
use schedlab_sched::registry;
use schedlab_workload::{read_rtapp, write_rtapp_short};
use std::sync::Arc;

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().expect("the name of a scheduler");
    let what = args.next().expect("a seed, or a workload file");
    let scheduler = Arc::clone(registry::find(&name).expect("a known scheduler"));
    let subject = Subject { judges_limits: true, ..Subject::new(scheduler) };
    let case = match what.parse() {
        Ok(seed) => generate(&subject.shape(), seed),
        Err(_) => {
            let nr_cpus = args.next().and_then(|text| text.parse().ok()).unwrap_or(1);
            let text = std::fs::read_to_string(&what).expect("a file");
            let workload = read_rtapp(&what, &text, nr_cpus).expect("a workload").workload;
            Case { workload, machine: Machine::flat(nr_cpus), seed: 1 }
        }
    };
    println!("{}", write_rtapp_short(&case.workload));
    let Some(breach) = play(&case, &subject).breach() else {
        println!("no breach");
        return;
    };
    println!("{breach}\n");
    let small = shrink(&case, &breach, 1_000, &mut |case| play(case, &subject).breach());
    println!("{}", write_rtapp_short(&small.case.workload));
    let machine = &small.case.machine;
    println!("{:?} HZ {} costs {}", machine.topology, machine.hz, machine.costs.tick_ns > 0);
    println!("{} ({} runs)", small.breach, small.nr_runs);
}
