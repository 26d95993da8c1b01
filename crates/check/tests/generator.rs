// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated cases are sound: their files read back as they were, and they simulate to their end
//! under every scheduler that can play them.

use schedlab_check::{Case, Feature, Features, Shape, Subject, Verdict, generate, play};
use schedlab_model::{Change, Op};
use schedlab_sched::registry::SCHEDULERS;
use schedlab_workload::{read_rtapp, write_rtapp, write_rtapp_short};
use std::collections::BTreeSet;
use std::sync::Arc;

const NR_SEEDS: u64 = 400;

fn cases() -> impl Iterator<Item = Case> {
    (0..NR_SEEDS).map(|seed| generate(&Shape::default(), seed))
}

#[test]
fn files_of_generated_workloads_read_back() {
    for case in cases() {
        let nr_cpus = case.machine.nr_cpus();
        assert_eq!(case.machine.check(), Ok(()));
        assert_eq!(case.workload.check(nr_cpus), Ok(()));
        for text in [write_rtapp(&case.workload), write_rtapp_short(&case.workload)] {
            let read = read_rtapp("w.json", &text, nr_cpus)
                .unwrap_or_else(|error| panic!("{error}\n{}\n{text}", error.help));
            assert_eq!(read.workload, case.workload, "{text}");
            assert_eq!(read.warnings, [], "{text}");
        }
    }
}

#[test]
fn a_seed_gives_one_case_and_seeds_differ() {
    let again: Vec<Case> = cases().collect();
    assert!(again.iter().eq(cases().collect::<Vec<_>>().iter()));
    let texts: BTreeSet<String> = again.iter().map(|case| write_rtapp(&case.workload)).collect();
    assert_eq!(texts.len() as u64, NR_SEEDS);
}

fn is_change(op: &Op, is: fn(&Change) -> bool) -> bool {
    matches!(op, Op::Change(change) if is(change))
}

#[test]
fn every_feature_occurs_and_can_be_left_out() {
    let has_op = |is: fn(&Op) -> bool| {
        cases()
            .filter(|case| case.workload.tasks.iter().any(|t| t.program.ops.iter().any(is)))
            .count()
    };
    let counts = [
        has_op(|op| matches!(op, Op::Lock { .. })),
        has_op(|op| matches!(op, Op::Send { .. })),
        has_op(|op| matches!(op, Op::Fork { .. })),
        has_op(|op| matches!(op, Op::SetAttr(_))),
        has_op(|op| matches!(op, Op::Timer { .. })),
        has_op(|op| matches!(op, Op::Barrier { .. })),
        cases().filter(|case| case.machine.nr_cpus() > 1).count(),
        cases().filter(|case| case.workload.cgroups.len() > 1).count(),
        cases().filter(|case| case.workload.cgroups.iter().any(|g| g.cpu_max.is_some())).count(),
        cases().filter(|case| case.workload.tasks.iter().any(|t| t.attr.policy.is_rt())).count(),
    ];
    assert!(counts.iter().all(|count| *count >= 15), "{counts:?}");
    // Each of these needs two features or more.
    let changes = [
        has_op(|op| is_change(op, |change| matches!(change, Change::Weight { .. }))),
        has_op(|op| is_change(op, |change| matches!(change, Change::CpuMax { .. }))),
        has_op(|op| is_change(op, |change| matches!(change, Change::Cpus { .. }))),
    ];
    assert!(changes.iter().all(|count| *count >= 4), "{changes:?}");
    let has_cpus = |case: &Case| case.workload.has_cpusets();
    assert!(cases().filter(has_cpus).count() >= 4);
    let kernel = SCHEDULERS.iter().find(|one| one.name == "linux-6.12").unwrap();
    let shape = Subject::new(Arc::clone(kernel)).shape();
    let tuned = (0..NR_SEEDS).map(|seed| generate(&shape, seed)).filter(|case| {
        let mut ops = case.workload.tasks.iter().flat_map(|task| &task.program.ops);
        ops.any(|op| matches!(op, Op::Tune { .. }))
    });
    assert!(tuned.count() >= 40);
    let features = Features::ALL.without(Feature::Smp).without(Feature::Locks);
    let shape = Shape { features, ..Shape::default() };
    for seed in 0..NR_SEEDS {
        let case = generate(&shape, seed);
        assert_eq!(case.machine.nr_cpus(), 1);
        let ops = case.workload.tasks.iter().flat_map(|task| &task.program.ops);
        assert!(!ops.into_iter().any(|op| matches!(op, Op::Lock { .. })));
    }
}

/// A refusal is of a feature that the scheduler leaves out, never of the case.
#[test]
fn every_scheduler_plays_what_it_has() {
    for scheduler in SCHEDULERS.iter() {
        let subject = Subject::new(Arc::clone(scheduler));
        for seed in 0..NR_SEEDS / 8 {
            let case = generate(&Shape::default(), seed);
            if let Verdict::Refused(why) = play(&case, &subject) {
                let is_known = why.contains("leaves out cpu.max")
                    || why.contains("leaves out policy DEADLINE");
                assert!(is_known, "{} seed {seed}: {why}", scheduler.name);
            }
        }
    }
}
