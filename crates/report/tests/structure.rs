// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page as a whole: its skeleton, reproducible bytes, no foreign address, hostile text kept as
//! text, announced cuts.

#[path = "../examples/synthetic/results.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod results;
#[path = "../examples/synthetic/studies.rs"]
mod studies;

use schedlab_lab::ExperimentResult;
use schedlab_report::{
    Limits, PageFile, ReportError, ReportInput, render_report, render_reproduction, write_report,
};
use std::path::{Path, PathBuf};

/// Start of the page's script.
const CODE: &str = "<script>\n\"use strict\"";

fn input(results: &[ExperimentResult]) -> ReportInput<'_> {
    ReportInput {
        title: "T <i>",
        date: Some("any date"),
        command: None,
        results,
        claims: &[],
        studies: &[],
        model_notes: &[],
        limits: Limits::default(),
    }
}

/// Ids of the sections and figures in order of appearance, from the page without its script.
fn skeleton(html: &str) -> Vec<String> {
    let body = &html[html.find("<main>").expect("main")..html.find(CODE).expect("end")];
    body.split('<')
        .filter(|tag| ["section ", "figure ", "footer "].iter().any(|name| tag.starts_with(name)))
        .map(|tag| {
            let name = tag.split(' ').next().unwrap_or_default();
            let id = tag.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next());
            format!("{name} {}", id.unwrap_or("-"))
        })
        .collect()
}

#[test]
fn the_skeleton_is_as_agreed() {
    let results = results::small();
    let html = render_report(&input(&results)).unwrap();
    let expected = [
        "section warnings",
        "section overview",
        "section s0-1cpu-2",
        "figure s0-1cpu-2-timeline",
        "figure s0-1cpu-2-progress",
        "figure s0-1cpu-2-latency",
        "section s1-2cpu",
        "figure s1-2cpu-turnaround-n",
        "figure s1-2cpu-throughput-n",
        "figure s1-2cpu-boxes",
        "figure s1-2cpu-latency",
        "section agreement",
        "section machine",
        "section definitions",
        "footer models",
    ];
    assert_eq!(skeleton(&html), expected);
    assert_eq!(html.matches("<figcaption>").count(), 7);
    assert_eq!(html.matches("class=\"fig-data").count(), 7);
    assert_eq!(html.matches("role=\"img\"").count(), 8, "seven figures and the ratio strips");
    let table = &html[html.find("id=\"summary-table\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    // S0: 10 lines. S1: 10 lines at n = 5; a click shows those at n = 1 to 4.
    assert_eq!(table.matches("<tr>").count(), 1 + 10 + 10);
    assert!(html.contains("Show all 60\u{a0}rows"));
    assert_eq!(html.matches("<h1>T &lt;i&gt;</h1>").count(), 1);
}

#[test]
fn ids_are_unique() {
    let results = results::small();
    let html = render_report(&input(&results)).unwrap();
    let page = &html[..html.find(CODE).unwrap()];
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn equal_input_gives_equal_bytes() {
    let results = results::small();
    let again = results::small();
    assert!(render_report(&input(&results)).unwrap() == render_report(&input(&again)).unwrap());
}

#[test]
fn the_page_names_no_address() {
    let results = results::small();
    let html = render_report(&input(&results)).unwrap();
    let address = html.find("://");
    let before = address.map(|at| &html[html.floor_char_boundary(at.saturating_sub(60))..at]);
    assert_eq!(before, None);
    assert!(!html.contains("src=\"") && !html.contains("@import"));
}

#[test]
fn hostile_text_never_becomes_markup() {
    let evil = "</script><script>alert(1)</script><!--";
    let mut results = results::small();
    for result in &mut results {
        result.experiment.title = evil.into();
        result.experiment.text = evil.into();
        result.experiment.name = evil.into();
        for run in &mut result.runs {
            run.scheduler = format!("{evil}{}", run.scheduler);
            run.machine.cpu_model = evil.into();
            run.schedlab_version = evil.into();
            run.parameters.insert("x".into(), format!("{evil}{}", run.repetition));
            for task in &mut run.measures.tasks {
                task.name = evil.into();
            }
            for slice in &mut run.slices {
                slice.end = evil.into();
            }
        }
    }
    let html = render_report(&input(&results)).unwrap();
    assert!(!html.contains("<script>alert"));
    // Every end of a script belongs to one that began.
    let begun = ["<script>", "<script type=\"application/json\"", "<script type=\"text/plain\""];
    let begun: usize = begun.iter().map(|tag| html.matches(tag).count()).sum();
    assert_eq!(html.matches("</script").count(), begun);
    assert_eq!(html.matches(CODE).count(), 1);
}

#[test]
fn a_small_limit_cuts_with_a_notice_and_a_large_one_without() {
    let results = results::small();
    let mut small = input(&results);
    small.limits = Limits { slices_max: 100, progress_marks_max: 200 };
    let html = render_report(&small).unwrap();
    assert!(html.contains("is cut after"));
    assert!(html.contains("marks, because the report"));
    let html = render_report(&input(&results)).unwrap();
    assert!(!html.contains("is cut after"));
}

#[test]
fn nothing_to_report_is_an_error_and_writes_nothing() {
    let path = std::env::temp_dir().join(format!("schedlab-none-{}.html", std::process::id()));
    let mut results = results::small();
    for result in &mut results {
        result.runs.clear();
    }
    for given in [&results[..], &[]] {
        let error = write_report(&path, &input(given)).unwrap_err();
        assert!(matches!(error, ReportError::NoRuns { .. }), "{error}");
        assert!(error.to_string().contains("run one first"));
    }
    assert!(!path.exists());
}

fn pages(reproduction: &studies::Reproduction) -> Vec<PageFile> {
    let mut input = input(&reproduction.results);
    (input.claims, input.studies) = (&reproduction.claims, &reproduction.studies);
    render_reproduction(&input, "report.html").unwrap()
}

#[test]
fn a_reproduction_has_a_page_for_each_study_and_no_page_is_heavy() {
    let pages = pages(&studies::reproduction(true));
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names, ["report-s0.html", "report-s1.html", "report.html"]);
    for PageFile { name, html } in &pages {
        assert!(html.len() < 1_500_000, "{name} has {} bytes", html.len());
        // Elements that exist when the browser opens the page; scripts hold text.
        let page = &html[..html.rfind("<script>").unwrap()];
        let elements = page.matches('<').count() - page.matches("</").count();
        assert!(elements < 6000, "{name} has {elements} elements");
        assert!(!html.contains("://"), "{name} names an address");
    }
    assert!(pages[0].html.contains("No run gave data for S0-F2 of the study."));
    let index = &pages[2].html;
    let counts = "10\u{a0}claims of 2\u{a0}studies: 2 hold, 2 are mixed, 2 are incomplete, \
                  2 fail, 2 are inconclusive.";
    assert!(index.contains(counts), "{index}");
}

/// Files of a folder, by name.
fn files_in(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_reproduction_appears_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("schedlab-pages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = studies::reproduction(false);
    let mut input = input(&made.results);
    (input.claims, input.studies) = (&made.claims, &made.studies);
    // A directory in place of the second page: the first page must not appear either.
    std::fs::create_dir(folder.join("report-s1.html")).unwrap();
    let error = write_report(&folder.join("report.html"), &input).unwrap_err();
    assert!(error.to_string().contains("report-s1.html"), "{error}");
    assert_eq!(files_in(&folder), ["report-s1.html"]);
    std::fs::remove_dir(folder.join("report-s1.html")).unwrap();
    let written = write_report(&folder.join("report.html"), &input).unwrap();
    let names = ["report-s0.html", "report-s1.html", "report.html"];
    let expected: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    assert_eq!((written, files_in(&folder)), (expected, names.map(String::from).to_vec()));
    std::fs::remove_dir_all(folder).unwrap();
}
