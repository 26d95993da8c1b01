// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a report of made-up results: the shapes of studies S0 and S1, one timeline of 100,000
//! slices, hostile names. The browser test opens it. It is also the quickest way to see a report.
//!
//! `cargo run -p schedlab-report --example synthetic -- [--long|--studies] report.html [plots]`.
//! With `--long` the report holds only a timeline of 1,000,000 slices. With `--studies` it is a
//! report of a reproduction: an index, and a page for each of two studies.
//!
//! The numbers come from a toy round robin (results.rs), not from schedlab's engine: this crate
//! must not depend on it.

mod results;
mod studies;

use schedlab_report::{Limits, ModelNote, ReportInput, write_plots, write_report};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from).peekable();
    let is_long = arguments.next_if(|word| word.as_os_str() == "--long").is_some();
    let has_studies = arguments.next_if(|word| word.as_os_str() == "--studies").is_some();
    let Some(path) = arguments.next() else {
        eprintln!("usage: synthetic [--long|--studies] REPORT.html [PLOTS-FOLDER]");
        return ExitCode::from(2);
    };
    let reproduction = has_studies.then(|| studies::reproduction(true));
    let results = match &reproduction {
        Some(reproduction) => reproduction.results.clone(),
        None if is_long => results::long(),
        None => results::all(),
    };
    let notes = [ModelNote {
        scheduler: "linux-6.12".into(),
        source: "kernel/sched/fair.c of Linux 6.12 (EEVDF)".into(),
        leaves_out: "in this example everything: it is a toy round robin".into(),
    }];
    let input = ReportInput {
        title: "schedlab report",
        date: Some("Synthetic data, made to test the report"),
        command: Some("cargo run -p schedlab-report --example synthetic"),
        results: &results,
        claims: reproduction.as_ref().map_or(&[], |made| &made.claims),
        studies: reproduction.as_ref().map_or(&[], |made| &made.studies),
        model_notes: &notes,
        limits: Limits::default(),
    };
    let written = write_report(&path, &input).and_then(|_| match arguments.next() {
        Some(folder) => write_plots(&folder, &input).map(|files| files.len()),
        None => Ok(0),
    });
    match written {
        Ok(plots) => {
            let slices: usize = results.iter().flat_map(|r| &r.runs).map(|r| r.slices.len()).sum();
            println!("{}: {slices} slices; {plots} plot files", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("synthetic: {error}");
            ExitCode::FAILURE
        }
    }
}
