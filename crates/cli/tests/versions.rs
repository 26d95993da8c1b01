// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare` of two schedulers over several seeds: the verdict, its intervals, Markdown.

mod common;
use common::{ok, schedlab};

/// Tasks that sleep and run for random times: seeds differ.
const RANDOM: &str = "interactive:n=3";

fn compare(more: &[&str]) -> String {
    let base = ["compare", RANDOM, "--until", "1s", "--scheduler", "linux-6.12,rr"];
    ok(&[&base, more].concat()).stdout
}

/// Rows of the table of ratios: the cells of the lines below its head.
fn ratios(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("measure"));
    let rows = lines.skip(1).take_while(|line| !line.is_empty());
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split("  ").map(|cell| cell.trim().to_owned());
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn two_schedulers_over_seeds_get_a_verdict_with_intervals() {
    let text = compare(&["--repetitions", "12"]);
    let verdict = text.lines().next().unwrap();
    assert!(verdict.starts_with("rr's p99 wake-up latency is "), "{text}");
    assert!(verdict.contains(" times linux-6.12's [") && verdict.contains("over 12 seeds"));
    let rows = ratios(&text);
    let row = |words: &str| rows.iter().find(|row| row[0] == words).unwrap_or(&rows[0]).clone();
    let latency = row("p99 wake-up latency");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let (low, high) = latency[4].split_once(" .. ").unwrap();
    let ratio = number(&latency[3]);
    assert!(number(low) < ratio && ratio < number(high) && number(low) > 1.0, "{latency:?}");
    assert_eq!(latency[5..], ["higher", "12"]);
    // The other way round, the same ratio is inverted.
    let base = ["compare", RANDOM, "--until", "1s", "--scheduler", "rr,linux-6.12"];
    let swapped = ok(&[&base[..], &["--repetitions", "12"]].concat()).stdout;
    let swapped = ratios(&swapped).into_iter().find(|row| row[0] == latency[0]).unwrap();
    assert!((number(&swapped[3]) * ratio - 1.0).abs() < 0.01, "{latency:?} {swapped:?}");
    assert_eq!(swapped[5], "lower");
}

#[test]
fn a_scheduler_equals_itself_and_one_run_has_no_verdict() {
    let base = ["compare", RANDOM, "--until", "1s", "--scheduler", "rr,rr:OTHER"];
    let text = ok(&[&base[..], &["--repetitions", "3"]].concat()).stdout;
    assert!(text.starts_with("rr OTHER and rr give the same values under 3 seeds."), "{text}");
    assert!(ratios(&text).iter().all(|row| row.contains(&"equal".into())), "{text}");
    let text = compare(&[]);
    assert!(text.starts_with("linux-6.12 has the lowest p99 wake-up latency"), "{text}");
    assert!(ratios(&text).is_empty(), "{text}");
}

#[test]
fn markdown_has_the_verdict_and_whole_tables() {
    let text = compare(&["--repetitions", "4", "--markdown", "--columns", "nr_switches,makespan"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("**") && lines[0].ends_with("**"), "{text}");
    assert_eq!(lines[2], "| measure | linux-6.12 | rr | ratio | 95 % interval | verdict | seeds |");
    assert_eq!(lines[3], "| --- | ---: | ---: | ---: | ---: | --- | ---: |");
    assert!(lines[4].starts_with("| number of switches | "), "{text}");
    let is_row = |line: &&&str| line.starts_with("| sim | ");
    assert_eq!(lines.iter().filter(is_row).count(), 2, "{text}");
    let both = schedlab(&["compare", "hogs", "--markdown", "--json"]);
    assert_eq!((both.code, both.stdout.as_str()), (2, ""));
    let file = schedlab(&["compare", "x.toml", "--markdown"]);
    assert!(file.code == 2 && file.stderr.contains("--markdown is for one workload"));
}
