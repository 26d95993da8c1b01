// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a compiled scheduler is: job J8 of benchmarks/jobs.json (32 CPU-bound tasks on 8 CPUs)
//! for so many simulated seconds, with checks of its loads and stores unless `off` is given.
//!
//! `cargo run --release -p schedlab-scx-native --example speed -- FILE [SECONDS] [off]`; under
//! `valgrind --tool=callgrind` the difference of two lengths tells instructions for a switch.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    measured::main();
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod measured {
    use schedlab_engine::{SimConfig, simulate};
    use schedlab_model::program::ProgramBuilder;
    use schedlab_model::trace::NullSink;
    use schedlab_model::{LoopCount, Machine, TaskSpec, Workload};
    use schedlab_sched::boundary::options::Options;
    use schedlab_scx_native::{CompileOptions, NativeScheduler};
    use std::path::PathBuf;

    /// CPU time of this process so far, s.
    fn cpu_s() -> f64 {
        let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
        ns.unwrap_or(f64::NAN) / 1e9
    }

    pub fn main() {
        let mut args = std::env::args().skip(1);
        let source = PathBuf::from(args.next().expect("the file of a scheduler"));
        let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
        let is_checked = args.next().as_deref() != Some("off");
        let compile = CompileOptions { is_checked, ..CompileOptions::default() };
        let native = NativeScheduler::compile(&source, &compile).unwrap_or_else(|e| panic!("{e}"));
        let scheduler = native.scheduler("it", &[]).unwrap_or_else(|error| panic!("{error}"));
        let hog = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .run(3_600_000_000_000)
            .end_loop()
            .build();
        let hogs = TaskSpec { instances: 32, ..TaskSpec::new("hog", hog) };
        let workload = Workload::new("J8", vec![hogs]);
        let options = Options::defaults(&scheduler.tunables);
        let config = SimConfig {
            machine: &Machine::flat(8),
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
        println!(
            "{seconds} s simulated: {} switches, {used:.3} CPU-s, {:.2} M switches per CPU-s",
            outcome.nr_switches,
            outcome.nr_switches as f64 / used / 1e6,
        );
    }
}
