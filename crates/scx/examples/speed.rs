// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the modelled sched_ext core is: job J8 of benchmarks/jobs.json (32 CPU-bound tasks on 8
//! CPUs) under scx_simple's virtual time, written in Rust, for so many simulated seconds.
//!
//! `cargo run --release -p schedlab-scx --example speed -- 1000`; under `valgrind --tool=callgrind`
//! it tells instructions.

#[path = "../tests/scx/support/schedulers.rs"]
#[allow(dead_code, reason = "one scheduler is measured")]
mod schedulers;

use schedlab_engine::{SimConfig, simulate};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::NullSink;
use schedlab_model::{LoopCount, Machine, TaskSpec, Workload};
use schedlab_sched::boundary::options::Options;
use schedlab_scx::named;

/// CPU time of this process so far, s.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let hog = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .run(3_600_000_000_000)
        .end_loop()
        .build();
    let hogs = TaskSpec { instances: 32, ..TaskSpec::new("hog", hog) };
    let workload = Workload::new("J8", vec![hogs]);
    let machine = Machine::flat(8);
    let scheduler = named("vtime", || Ok(Box::new(schedulers::Simple::vtime())));
    let options = Options::defaults(&scheduler.tunables);
    let config = SimConfig {
        machine: &machine,
        scheduler: &scheduler,
        options: &options,
        seed: 1,
        until_ns: Some(seconds * 1_000_000_000),
        watchdog_ns: None,
    };
    let before = cpu_s();
    let outcome = match simulate(&workload, &config, NullSink, None) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    };
    let used = cpu_s() - before;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: ?");
    println!(
        "{seconds} s simulated: {} switches, {} ticks, {used:.3} CPU-s, {:.2} M switches per \
         CPU-s; {peak}",
        outcome.nr_switches,
        outcome.nr_ticks,
        outcome.nr_switches as f64 / used / 1e6,
    );
}
