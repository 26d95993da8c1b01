// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignments, and marks of policies.

use super::*;

const ROUND_ROBIN: &str = r#"
title = "Round robin"
[[test]]
name = "slices"
points = 3
workload = "hogs:n=3,work=20ms"
seeds = [1, 2]
same_slices_as = "rr:quantum=4ms"
[[test]]
name = "response"
points = 2
workload = "queue"
cpus = 2
measure = "response_ns_mean"
relative_to = "rr:quantum=4ms"
at_most = 1.5
[[test]]
name = "random cases"
points = 5
cases = 40
cpus = 2
"#;

fn marks(assignment: &str, source: &str) -> Marks {
    let assignment = Assignment::read(assignment).unwrap();
    grade(&assignment, &Arc::new(schedlab_script::scheduler("own.js", source).unwrap()))
}

fn problems(marks: &Marks) -> Vec<&str> {
    marks.tests.iter().map(|mark| mark.problem.as_deref().unwrap_or("none")).collect()
}

#[test]
fn a_right_policy_gets_all_points() {
    let source = "policy({ pick: (cpu, waiting) => waiting[0], quantum: () => 4 });";
    let marks = marks(ROUND_ROBIN, source);
    assert_eq!((marks.points, problems(&marks)), (10, vec!["none"; 3]));
}

#[test]
fn a_wrong_policy_is_shown_its_first_mistake() {
    let source = "policy({ pick: (cpu, waiting) => waiting.at(-1), quantum: () => 4 });";
    let last_first = marks(ROUND_ROBIN, source);
    assert_eq!(last_first.tests[0].points, 0);
    assert_eq!(
        problems(&last_first)[0],
        "seed 1: slice 1 of 15 differs: hog-2 runs on CPU 0 from 0 ms to 20 ms, under \
         rr:quantum=4ms hog-0 runs on CPU 0 from 0 ms to 4 ms"
    );
    let no_turns = marks(ROUND_ROBIN, "policy({ pick: (cpu, waiting) => waiting[0] });");
    let response = problems(&no_turns)[1];
    assert!(response.contains("response_ns_mean is ") && response.contains("1.5 times rr"));
    assert!(no_turns.points < 10);
}

#[test]
fn a_policy_that_starves_tasks_breaks_a_rule_in_random_cases() {
    let source = "policy({ pick: (cpu, waiting) =>
        waiting.find((task) => task.name !== 'a') ?? waiting[0], quantum: () => 4 });";
    let marks = marks(ROUND_ROBIN, source);
    assert!(problems(&marks)[2].contains("random case"), "{:?}", problems(&marks));
}

#[test]
fn an_exception_costs_the_points_of_its_test_only() {
    let source = "policy({ quantum: () => 4, pick(cpu, waiting) {
        if (cpu > 0) throw new Error('one CPU is enough'); return waiting[0]; } });";
    let marks = marks(ROUND_ROBIN, source);
    assert_eq!(problems(&marks)[0], "none");
    assert!(problems(&marks)[1].contains("line 2: Error: one CPU is enough"), "{marks:?}");
}

#[test]
fn a_bound_without_a_reference_is_a_value() {
    let assignment = |bound: &str| {
        format!(
            "title = \"t\"\n[[test]]\nname = \"m\"\npoints = 1\nworkload = \"hogs:n=2,work=10ms\"\n\
             measure = \"makespan_ns\"\n{bound}\n"
        )
    };
    let source = "policy({ pick: (cpu, waiting) => waiting[0] });";
    assert_eq!(marks(&assignment("at_most = 20e6"), source).points, 1);
    let late = marks(&assignment("at_most = 19e6"), source);
    assert_eq!(problems(&late), ["makespan_ns is 20.000 ms: allowed is at most 19.000 ms"]);
    let early = marks(&assignment("at_least = 21e6"), source);
    assert_eq!(problems(&early), ["makespan_ns is 20.000 ms: asked for is at least 21.000 ms"]);
}

#[test]
fn a_wrong_assignment_is_refused_by_the_name_of_its_test() {
    let with = |from: &str, to: &str| {
        let text = ROUND_ROBIN.replacen(from, to, 1);
        assert_ne!(text, ROUND_ROBIN, "{from}");
        Assignment::read(&text).unwrap_err()
    };
    for (from, to, expected) in [
        ("same_slices_as = \"rr:quantum=4ms\"", "same_slices_as = \"rrr\"", "rrr"),
        ("hogs:n=3", "hogz:n=3", "test \"slices\": "),
        ("at_most = 1.5", "", "test \"response\": at_most and at_least belong to a measure"),
        ("response_ns_mean", "reponse", "there is no measure reponse"),
        ("cases = 40", "cases = 0", "cases is 0"),
        ("cases = 40", "cases = 20000", "allowed are 10000"),
        ("cases = 40", "cases = 40\nworkload = \"hogs\"", "a workload, or random cases"),
        ("cases = 40", "cases = 4\nsame_slices_as = \"rr\"", "give one of same_slices_as"),
        ("name = \"response\"", "name = \"slices\"", "two tests are called \"slices\""),
        ("points = 3", "point = 3", "unknown field `point`"),
        ("cpus = 2", "cpus = 0", "CPU"),
    ] {
        let error = with(from, to);
        assert!(error.contains(expected), "{to}: {error}");
    }
    assert!(Assignment::read("title = \"t\"").unwrap_err().contains("test"));
}
