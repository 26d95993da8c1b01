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

#[test]
fn sheets_are_printed_for_a_class() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("names.txt"), "Ann\n\nBo & Co\n").unwrap();
    let names = path("names.txt");
    let args = ["exercise", "3,12-13", "--seed", "7", "--students", &names, "--title", "Quiz"];
    ok(&[&args[..], &["-o", &path("quiz.html")]].concat());
    ok(&[&args[..], &["-o", &path("key.html"), "--answer"]].concat());
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let (quiz, key) = (read("quiz.html"), read("key.html"));
    assert!(quiz.contains("Quiz: Bo &amp; Co") && !quiz.contains("Answer:"), "{quiz}");
    assert_eq!(quiz.matches("<section>").count(), 6);
    assert_eq!(key.matches("Answer:").count(), 6);

    // A question names what marks its answer.
    let seed = key.split("Exercise 3, seed ").nth(1).unwrap().split(',').next().unwrap();
    let answer = key.split("Answer: ").nth(1).unwrap().split('<').next().unwrap();
    assert_eq!(ok(&["exercise", "3", "--seed", seed, "--check", answer]).stdout, "right\n");

    std::fs::write(path("twice.txt"), "Ann\nAnn\n").unwrap();
    let twice = path("twice.txt");
    for (args, expected) in [
        (vec!["exercise", "3", "-o", "sheet.txt"], "has no format for sheets"),
        (vec!["exercise", "3-1"], "there is no exercise 3-1"),
        (vec!["exercise", "3,4", "--check", "5 ms"], "--check marks one answer"),
        (vec!["exercise", "3", "-o", "x.html", "--students", &twice], "is there twice"),
    ] {
        let done = schedlab(&args);
        assert!(done.code == 2 && flat(&done.stderr).contains(expected), "{}", done.stderr);
    }
}

#[test]
fn sheets_become_pdf_where_a_browser_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quiz.pdf");
    let done = schedlab(&["exercise", "all", "-o", path.to_str().unwrap()]);
    assert_eq!(done.code, 2, "all is no number");
    let done = schedlab(&["exercise", "1-34", "--answer", "-o", path.to_str().unwrap()]);
    if done.code == 3 && done.stderr.contains("no program was found that makes PDF") {
        schedlab_testing::skip("neither Chromium nor WeasyPrint is installed");
        return;
    }
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(std::fs::read(path).unwrap().starts_with(b"%PDF"));
}
