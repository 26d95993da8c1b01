// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers that break one rule each: random search finds every one of them by the rule's name,
//! and shrinks its case to a file of at most 10 lines. Without a fault the same scheduler passes.

mod toy;

use schedlab_check::{
    Breach, Case, Feature, Features, Needs, RULES, Shape, Subject, Verdict, check_rule, generate,
    pair, play, rule, shrink,
};
use schedlab_sched::registry;
use schedlab_workload::{read_rtapp, write_rtapp_short};
use std::sync::Arc;
use toy::{Sin, toy};

/// Features of which the toy knows something.
fn toy_features() -> Features {
    [
        Feature::Smp,
        Feature::Groups,
        Feature::Quota,
        Feature::Nice,
        Feature::Batch,
        Feature::Idle,
        Feature::Deadline,
        Feature::Slices,
        Feature::Inherit,
    ]
    .into_iter()
    .fold(Features::ALL, Features::without)
}

/// The first breach within `nr_seeds` seeds.
fn search(subject: &Subject, shape: &Shape, nr_seeds: u64) -> Option<(Case, Breach)> {
    (0..nr_seeds).find_map(|seed| {
        let case = generate(shape, seed);
        let breach = play(&case, subject).breach()?;
        Some((case, breach))
    })
}

/// The rule by which the fault is found; the lines of the small case.
fn find(subject: &Subject, shape: &Shape) -> (Breach, String) {
    let (case, breach) = search(subject, shape, 1_000).expect("the fault goes unnoticed");
    let small = shrink(&case, &breach, 500, &mut |case| play(case, subject).breach());
    assert!(small.breach.is_like(&breach), "{} became {}", breach, small.breach);
    let text = write_rtapp_short(&small.case.workload);
    assert!(text.lines().count() <= 10, "{breach}\n{text}");
    // What a person runs is the file.
    let nr_cpus = small.case.machine.nr_cpus();
    let read = read_rtapp("w.json", &text, nr_cpus).expect("the file reads back");
    let again = Case { workload: read.workload, ..small.case };
    assert_eq!(play(&again, subject), Verdict::Broken(small.breach.clone()), "{text}");
    (small.breach, text)
}

fn assert_found(sin: Sin, rules: &[&str], shape: &Shape) {
    let subject = Subject::new(Arc::new(toy(sin)));
    let (breach, text) = find(&subject, shape);
    assert!(rules.contains(&breach.rule.name), "{sin:?} is found by {breach}\n{text}");
}

/// Cases on one CPU, where a queue for each CPU is all that is needed.
fn one_cpu() -> Shape {
    Shape { features: toy_features(), ..Shape::default() }
}

fn more_cpus() -> Shape {
    Shape { features: Features::ALL.only(&[Feature::Smp, Feature::Affinity]), ..Shape::default() }
}

#[test]
fn without_a_fault_the_toy_passes() {
    let subject = Subject::new(Arc::new(toy(Sin::None)));
    // The toy has no limit of real-time tasks, which takes a second to show.
    let shape = Shape { duration_ns_max: 1_000_000_000, ..one_cpu() };
    if let Some((case, breach)) = search(&subject, &shape, 300) {
        panic!("{breach}\n{}", write_rtapp_short(&case.workload));
    }
}

#[test]
fn a_cpu_that_dozes_is_found() {
    assert_found(Sin::Dozes, &["answers", "idle-own-queue"], &one_cpu());
}

#[test]
fn a_forgotten_task_is_found() {
    assert_found(Sin::Forgets, &["answers", "idle-own-queue", "wait"], &one_cpu());
}

#[test]
fn an_ignored_affinity_is_found() {
    assert_found(Sin::IgnoresAffinity, &["answers", "affinity"], &more_cpus());
}

#[test]
fn the_lowest_priority_first_is_found() {
    assert_found(Sin::LowestFirst, &["rt-strict"], &one_cpu());
}

#[test]
fn a_late_real_time_task_is_found() {
    assert_found(Sin::LateRealTime, &["rt-strict"], &one_cpu());
}

#[test]
fn fifo_tasks_that_take_turns_are_found() {
    assert_found(Sin::FifoRotates, &["rt-order"], &one_cpu());
}

#[test]
fn a_reversed_queue_is_found() {
    assert_found(Sin::LastFirst, &["rt-order"], &one_cpu());
}

#[test]
fn an_endless_slice_of_round_robin_is_found() {
    assert_found(Sin::EndlessSlice, &["rr-slice"], &one_cpu());
}

#[test]
fn real_time_tasks_without_a_limit_are_found() {
    let features = Features::ALL.only(&[Feature::RealTime]);
    assert_found(Sin::None, &["rt-limit"], &Shape { features, ..Shape::default() });
}

#[test]
fn a_slice_that_is_too_long_is_found() {
    assert_found(Sin::LongSlice, &["share", "wait"], &one_cpu());
}

#[test]
fn an_unfair_share_is_found() {
    assert_found(Sin::Unfair, &["share"], &one_cpu());
}

#[test]
fn a_starved_task_is_found() {
    assert_found(Sin::Starves, &["wait", "share"], &one_cpu());
}

#[test]
fn tasks_counted_twice_are_found() {
    assert_found(Sin::CountsTwice, &["counts"], &one_cpu());
}

#[test]
fn an_idle_cpu_that_pulls_nothing_is_found() {
    let features = Features::ALL.only(&[Feature::Smp, Feature::Instances]);
    let shape = Shape { features, ..Shape::default() };
    assert_found(Sin::None, &["idle-other-queue"], &shape);
}

#[test]
fn a_deadline_without_a_budget_is_found() {
    let features = Features::ALL.only(&[Feature::Deadline]);
    assert_found(Sin::None, &["deadline-budget"], &Shape { features, ..Shape::default() });
}

#[test]
fn an_ignored_weight_is_found() {
    let features = Features::ALL.only(&[Feature::Nice]);
    assert_found(Sin::None, &["share", "wait"], &Shape { features, ..Shape::default() });
}

#[test]
fn an_ignored_quota_is_found() {
    let subject = Subject::new(Arc::new(toy::without_quota()));
    let features = Features::ALL.only(&[Feature::Groups, Feature::Quota]);
    let (breach, text) = find(&subject, &Shape { features, ..Shape::default() });
    assert_eq!(breach.rule.name, "quota", "{text}");
}

/// A fault that other rules may see first: they are skipped.
fn assert_found_without(sin: Sin, name: &str, skipped: &[&'static str], features: &[Feature]) {
    let subject = Subject { skipped: skipped.to_vec(), ..Subject::new(Arc::new(toy(sin))) };
    let shape = Shape { features: Features::ALL.only(features), ..Shape::default() };
    let (breach, text) = find(&subject, &shape);
    assert_eq!(breach.rule.name, name, "{breach}\n{text}");
    let sound = Subject { scheduler: Arc::new(toy(Sin::None)), ..subject };
    assert_eq!(search(&sound, &shape, 100), None, "the toy without the fault");
}

#[test]
fn a_deadline_task_that_gets_too_little_is_found() {
    let skipped = ["deadline-budget", "rt-limit"];
    let features = [Feature::Deadline, Feature::RealTime];
    assert_found_without(Sin::DeadlineLast, "deadline-served", &skipped, &features);
}

#[test]
fn a_limit_that_gives_too_little_is_found() {
    // The rule of the state sees a refill first.
    let scheduler = Arc::new(toy::with_less_quota());
    let subject = Subject { skipped: vec!["refill"], ..Subject::new(scheduler) };
    let features = Features::ALL.only(&[Feature::Groups, Feature::Quota]);
    let (breach, text) = find(&subject, &Shape { features, ..Shape::default() });
    assert_eq!(breach.rule.name, "quota-given", "{text}");
}

#[test]
fn a_run_that_depends_on_an_earlier_one_is_found() {
    let subject = Subject::new(Arc::new(toy(Sin::Remembers)));
    let rule = rule("same-run").expect("the table has it");
    let mut cases = (0..1_000).map(|seed| generate(&Shape::default(), seed));
    let breach = cases.find_map(|case| check_rule(&case, &subject, rule).breach());
    assert_eq!(breach.expect("the fault goes unnoticed").rule.name, "same-run");
}

#[test]
fn a_rule_that_is_skipped_is_not_judged() {
    let features = Features::ALL.only(&[Feature::Nice]);
    let shape = Shape { features, ..Shape::default() };
    let all = Subject::new(Arc::new(toy(Sin::None)));
    let (_, breach) = search(&all, &shape, 1_000).expect("the toy has no weights");
    let without = Subject { skipped: vec!["share", "wait"], ..all };
    assert!(["share", "wait"].contains(&breach.rule.name), "{breach}");
    assert_eq!(search(&without, &shape, 300), None);
}

/// A fault that only a pair of runs shows: random search finds it by the rule of pairs `name`, and
/// makes both cases small.
fn assert_pair_found(sin: Sin, name: &str) {
    let subject = Subject::new(Arc::new(toy(sin)));
    let rule = rule(name).expect("the table has it");
    let mut judge = |case: &Case| check_rule(case, &subject, rule).breach();
    let found = (0..1_000).find_map(|seed| {
        let case = generate(&Shape::default(), seed);
        judge(&case).map(|breach| (case, breach))
    });
    let (case, breach) = found.unwrap_or_else(|| panic!("{sin:?} goes unnoticed"));
    assert_eq!(breach.rule.name, name, "{sin:?}");
    let small = shrink(&case, &breach, 500, &mut judge);
    let both = pair(&small.case, &subject, rule).expect("it was judged").cases;
    assert_ne!(both[0], both[1]);
    for half in &both {
        let text = write_rtapp_short(&half.workload);
        assert!(text.lines().count() <= 10, "{breach}\n{text}");
    }
    // What is stored is the first case: it shows the same.
    assert_eq!(judge(&both[0]), Some(small.breach), "{sin:?}");
}

#[test]
fn a_scheduler_that_reads_names_is_found() {
    assert_pair_found(Sin::ByName, "same-names");
}

#[test]
fn a_scheduler_that_favours_who_comes_first_is_found() {
    assert_pair_found(Sin::FirstComeMost, "any-order");
}

#[test]
fn a_scheduler_that_forgives_at_changes_is_found() {
    assert_pair_found(Sin::Forgives, "same-weight");
}

#[test]
fn a_scheduler_that_knows_nice_values_by_their_size_is_found() {
    assert_pair_found(Sin::NiceStays, "scaled-weights");
}

#[test]
fn a_scheduler_that_gives_less_for_more_weight_is_found() {
    assert_pair_found(Sin::MoreIsLess, "more-weight");
}

#[test]
fn a_scheduler_that_runs_groups_to_their_end_is_found() {
    assert_pair_found(Sin::GroupsStay, "one-more-group");
}

#[test]
fn a_scheduler_that_forgives_at_writes_is_found() {
    assert_pair_found(Sin::ForgivesAtWrites, "same-values");
}

/// The engine sees the answer before the rule of the trace sees the run. The toy knows no weights,
/// so a case counts only if it passes without the fault.
#[test]
fn a_scheduler_that_ignores_cpusets_is_found() {
    let features = [Feature::Smp, Feature::Groups, Feature::Cpusets];
    let shape = Shape { features: Features::ALL.only(&features), ..Shape::default() };
    let [bad, good] = [Sin::IgnoresCpuset, Sin::None].map(|sin| Subject::new(Arc::new(toy(sin))));
    let found = (0..1_000).find_map(|seed| {
        let case = generate(&shape, seed);
        let breach = play(&case, &bad).breach()?;
        let is_it = ["answers", "cpuset"].contains(&breach.rule.name);
        (is_it && play(&case, &good) == Verdict::Passed).then_some(case)
    });
    let case = found.expect("the fault goes unnoticed");
    assert!(case.workload.has_cpusets());
}

/// Kernels refill the pool at every write of cpu.max, which is a known limit.
#[test]
fn a_write_of_the_same_limit_is_a_known_limit() {
    let rule = rule("same-limit").expect("the table has it");
    let kernel = Arc::clone(registry::find("linux-6.12").expect("it is there"));
    let known = Subject::new(kernel);
    let all = Subject { judges_limits: true, ..known.clone() };
    let found = (0..1_000).find(|seed| {
        let case = generate(&Shape::default(), *seed);
        check_rule(&case, &all, rule).breach().is_some()
    });
    let case = generate(&Shape::default(), found.expect("a refill goes unnoticed"));
    assert_eq!(check_rule(&case, &known, rule), Verdict::Passed);
}

#[test]
fn a_scheduler_that_looks_at_other_cpus_is_found() {
    assert_pair_found(Sin::LooksAside, "other-cpu");
}

/// Neither the toy without a fault nor any registered scheduler breaks a rule of pairs.
#[test]
fn no_sound_scheduler_breaks_a_rule_of_pairs() {
    let registered = registry::SCHEDULERS.iter().map(|one| Subject::new(Arc::clone(one)));
    let subjects = registered.chain([Subject::new(Arc::new(toy(Sin::None)))]);
    for subject in subjects {
        for rule in RULES.iter().filter(|rule| rule.needs == Needs::Pair) {
            for seed in 0..60 {
                let case = generate(&subject.shape(), seed);
                let verdict = check_rule(&case, &subject, rule);
                assert_eq!(verdict, Verdict::Passed, "{}, seed {seed}", subject.scheduler.name);
            }
        }
    }
}

/// The rule by which Linux 6.13 to 7.0 reweighted the running entity: found without its trigger.
#[test]
fn the_reweight_that_starves_is_found_and_the_mended_one_is_not() {
    let subject = |name| {
        let scheduler = Arc::clone(registry::find(name).expect("it is there"));
        Subject { judges_limits: true, ..Subject::new(scheduler) }
    };
    let features = Features::ALL.only(&[Feature::Smp, Feature::Groups, Feature::Affinity]);
    let shape = Shape { features, cpus_max: 2, ..Shape::default() };
    let (breach, text) = find(&subject("linux-6.18.44"), &shape);
    assert_eq!(breach.rule.name, "reweight", "{breach}\n{text}");
    for fixed in ["linux-6.12", "linux-6.18", "linux-7.1"] {
        assert_eq!(search(&subject(fixed), &shape, 300), None, "{fixed}");
    }
}
