// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler for sched_ext can follow the decisions of another scheduler to the end of a run.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use schedlab_check::{Agreement, DiffError, Feature, Setting, Side, Subject, follow, generate};
use schedlab_model::Machine;
use schedlab_sched::registry;
use schedlab_scx_native::{CompileOptions, NativeError, NativeScheduler};
use std::path::Path;
use std::sync::Arc;

/// Schedulers of bpf/scx: tasks in shared queues, in queues of CPUs, and in maps.
const NAMES: [&str; 6] = ["fifo", "rr", "vtime", "wrr", "mlfq", "sd"];

/// The compiled scheduler; `None`: there is no compiler.
fn native(name: &str) -> Option<Subject> {
    let path = format!("{}/../../bpf/scx/{name}.bpf.c", env!("CARGO_MANIFEST_DIR"));
    match NativeScheduler::compile(Path::new(&path), &CompileOptions::default()) {
        Ok(native) => {
            let scheduler = native.scheduler(name, &[]).expect("it loads");
            Some(Subject::new(Arc::new(scheduler)))
        }
        Err(NativeError::NoCompiler(why)) => {
            schedlab_testing::skip(why);
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// `b` follows `a` in the case of `seed`. Both have one CPU.
fn followed(a: &Subject, b: &Subject, seed: u64) -> Result<Agreement, DiffError> {
    let mut shape = b.shape();
    shape.features = shape.features.without(Feature::Smp).without(Feature::Deadline);
    let case = generate(&shape, seed);
    let machine = Machine { preempt: b.scheduler.preempt, ..case.machine.clone() };
    let setting = Setting { workload: &case.workload, seed: case.seed, until_ns: None };
    assert_eq!(machine.nr_cpus(), 1);
    let [a, b] = [a, b].map(|subject| Side {
        scheduler: &subject.scheduler,
        options: &subject.options,
        machine: &machine,
    });
    follow(&setting, &[a, b])
}

#[test]
fn a_scheduler_for_sched_ext_that_follows_itself_agrees() {
    for name in NAMES {
        let Some(one) = native(name) else { return };
        let mut nr_decisions = 0;
        for seed in 0..25 {
            let Ok(found) = followed(&one, &one, seed) else { continue };
            assert_eq!(found.counts.nr_differing(), 0, "{name}, seed {seed}: {found:?}");
            assert_eq!(found.stopped, None, "{name}, seed {seed}");
            nr_decisions += found.counts.nr_decisions;
        }
        assert!(nr_decisions > 100, "{name}: {nr_decisions}");
    }
}

#[test]
fn a_scheduler_for_sched_ext_follows_others_to_the_end() {
    let kernel = Subject::new(Arc::clone(registry::find("linux-6.12").expect("it is modelled")));
    let Some(fifo) = native("fifo") else { return };
    for name in NAMES {
        let Some(one) = native(name) else { return };
        let (mut nr_whole, mut nr_differing, mut nr_decisions) = (0, 0, 0);
        for seed in 0..15 {
            for other in [&kernel, &fifo] {
                let found = followed(other, &one, seed);
                let Ok(found) = found else { continue };
                nr_whole += u64::from(found.stopped.is_none());
                nr_differing += found.counts.nr_differing();
                nr_decisions += found.counts.nr_decisions;
            }
        }
        assert!(nr_whole >= 22, "{name}: {nr_whole} of 30");
        assert!(nr_differing <= nr_decisions && nr_decisions > 60, "{name}");
    }
}
