// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab exercise`: the same sheets as in the page, and marks by exit code.

mod common;
use common::{flat, ok, schedlab};
use std::path::Path;

fn value(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&ok(args).stdout).unwrap()
}

#[test]
fn a_sheet_has_the_digest_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let golden = std::fs::read_to_string(root.join("tests/exercises/digests.txt")).unwrap();
    let line = golden.lines().find(|line| line.starts_with("12 2 ")).unwrap();
    let sheet = value(&["exercise", "12", "--seed", "2", "--json"]);
    assert_eq!(format!("12 2 {}", sheet["digest"].as_str().unwrap()), line);
    assert_eq!(sheet["answer"], "", "the sheet does not give it away");
    let list = value(&["exercise", "--json"]);
    assert_eq!(list.as_array().unwrap().len() * 2, golden.lines().count());
    assert_eq!(list[11]["scheduler"], "rr:quantum=4ms");
}

#[test]
fn an_answer_is_marked_by_the_exit_code() {
    let answer = value(&["exercise", "3", "--seed", "5", "--answer", "--json"]);
    let answer = answer["answer"].as_str().unwrap();
    let marked = |given: &str| schedlab(&["exercise", "3", "--seed", "5", "--check", given]);
    let (right, wrong, odd) = (marked(answer), marked("99999 ms"), marked("soon"));
    assert_eq!((right.code, right.stdout.as_str()), (0, "right\n"));
    assert_eq!((wrong.code, wrong.stdout.as_str()), (1, "wrong\n"));
    assert_eq!(odd.code, 2);
    assert!(flat(&odd.stderr).contains("give a time in ms"), "{}", odd.stderr);
    let none = schedlab(&["exercise", "99"]);
    assert!(none.code == 2 && flat(&none.stderr).contains("allowed are 1 to"), "{}", none.stderr);
}

#[test]
fn the_sheet_shows_jobs_and_question_and_the_answer_only_if_asked() {
    let plain = ok(&["exercise", "18"]).stdout;
    assert!(plain.contains("sleeps (ms)") && plain.contains('?'), "{plain}");
    assert!(!plain.contains("Answer:") && !plain.contains("Hint:"), "{plain}");
    let key = ok(&["exercise", "18", "--answer"]).stdout;
    assert!(key.contains("Answer: ") && key.contains("Hint: "), "{key}");
}
