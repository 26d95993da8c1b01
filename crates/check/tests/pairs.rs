// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known bugs of kernels, put into models: random search finds each of them without its trigger,
//! and the model without the bug passes the same case. Each line has the first seed that finds the
//! bug; `cargo xtask soak` searches again from the start.

use schedlab_check::{Case, Feature, Features, Shape, Subject, Verdict, generate, play, shrink};
use schedlab_sched::bugs::{BUGS, KnownBug};
use schedlab_sched::registry;
use schedlab_workload::write_rtapp_short;
use std::sync::Arc;

/// Bugs, the seeds that find them, and the broken rules.
const FOUND: [(&str, u64, &str); 26] = [
    ("P01", 3, "reweight"),
    ("P02", 0, "lag"),
    ("P03", 307, "quota"),
    ("P04", 101, "sync-wakeup"),
    ("P05", 3, "slice-range"),
    ("P06", 3, "one-balancer"),
    ("P07", 72, "least-vruntime"),
    ("P08", 0, "lone"),
    ("P09", 3, "counts"),
    ("P10", 4, "bounded-work"),
    ("P17", 0, "unthrottle"),
    ("P20", 3, "empty-group"),
    ("P21", 3, "reweight"),
    ("P21b", 3, "reweight"),
    ("P22", 11, "idle-protection"),
    ("P24", 12, "reweight"),
    ("P25", 5, "placed"),
    ("P26", 10, "least-slice"),
    ("P27", 1, "eevdf-pick"),
    ("P28", 4, "placed"),
    ("P29", 4, "server-stays"),
    ("P30", 128, "server-budget"),
    ("P31", 75, "server-waits"),
    ("P32", 128, "server-budget"),
    ("P33", 3403, "delayed"),
    ("P34", 6, "refill"),
];

/// Most lines of a small case.
const LINES_MAX: usize = 10;

/// Needs a limit that goes and comes back while a real-time task waits: tune.rs of the engine's
/// tests shows it.
const LATE: &str = "P13";

/// The shape of cases before groups had CPUs and tunables changed: the seeds are of that time.
fn older_shape(subject: &Subject) -> Shape {
    let shape = subject.shape();
    let newer = [Feature::Cpusets, Feature::Tunes];
    Shape { features: newer.into_iter().fold(shape.features, Features::without), ..shape }
}

fn subject(name: &str) -> Subject {
    let scheduler = registry::find(name).unwrap_or_else(|| panic!("{name} is not there"));
    Subject::new(Arc::clone(scheduler))
}

#[test]
fn every_modelled_bug_is_found_and_its_cure_passes() {
    let is_here = |bug: &&KnownBug| bug.left_out().is_none() && bug.id != LATE;
    let modelled: Vec<&str> = BUGS.iter().filter(is_here).map(|bug| bug.id).collect();
    assert_eq!(modelled, FOUND.map(|(id, ..)| id), "each bug needs a seed that finds it");
    for (id, seed, rule) in FOUND {
        let bug = BUGS.iter().find(|bug| bug.id == id).expect("it is in the list");
        let name = bug.names().next().expect("it has a model");
        let (buggy, cured) = (subject(&name), subject(name.split('+').next().unwrap()));
        let case = generate(&older_shape(&buggy), seed);
        let Verdict::Broken(breach) = play(&case, &buggy) else {
            panic!("{name} passes the case of seed {seed}");
        };
        assert_eq!(breach.rule.name, rule, "{name}: {breach}");
        assert_eq!(play(&case, &cured), Verdict::Passed, "{name} without the bug");
        let small = shrink(&case, &breach, 500, &mut |case| play(case, &buggy).breach());
        assert_short(&name, &small.case);
        assert_eq!(play(&small.case, &cured), Verdict::Passed, "{name} without the bug, shrunk");
    }
}

/// Cases in which a rule broke although the kernel does the same.
#[test]
fn what_kernels_do_raises_no_alarm() {
    for (name, seed, is_limit) in [
        // A server that starts again before its deadline gets less runtime.
        ("linux-7.1", 1_498, false),
        ("linux-7.2", 1_498, false),
        // Known limits: changes of weights.
        ("linux-6.18.44", 1_288, true),
        ("linux-6.18", 12_043, true),
    ] {
        let mut subject = subject(name);
        // The cases are older than changes of groups, too.
        let shape = older_shape(&subject);
        let features = shape.features.without(Feature::GroupChanges);
        let case = generate(&Shape { features, ..shape }, seed);
        assert_eq!(play(&case, &subject), Verdict::Passed, "{name}, seed {seed}");
        subject.judges_limits = true;
        let breach = play(&case, &subject).breach();
        assert_eq!(breach.is_some(), is_limit, "{name}, seed {seed}: {breach:?}");
    }
}

fn assert_short(name: &str, case: &Case) {
    let text = write_rtapp_short(&case.workload);
    assert!(text.lines().count() <= LINES_MAX, "{name}\n{text}");
}
