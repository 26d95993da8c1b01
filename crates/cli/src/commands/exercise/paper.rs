// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sheets to print: HTML by this program, PDF by a browser or WeasyPrint.

use crate::error::{CliError, CliResult, Exit};
use schedlab_exercises::{Copy, page};
use schedlab_run::file::{read_text, write_whole};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Largest file of names, in bytes.
const NAMES_BYTES_MAX: u64 = 1 << 20;

/// Most students.
const STUDENTS_MAX: usize = 5_000;

/// Browsers that print, by their programs.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The names of students in a file, one in each line.
pub fn names(path: &Path) -> CliResult<Vec<String>> {
    let text = read_text(path, NAMES_BYTES_MAX)?;
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let refuse = |what: String, help: &str| {
        Err(CliError::usage_help(format!("{}: {what}", path.display()), help))
    };
    if names.is_empty() || names.len() > STUDENTS_MAX {
        let what = format!("it has {} names: allowed are 1 to {STUDENTS_MAX}", names.len());
        return refuse(what, "write one name in each line");
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let what = format!("the name {:?} is there twice", twice[0]);
        return refuse(what, "equal names get equal sheets: tell them apart");
    }
    Ok(names)
}

/// Writes the sheets to `path`, in the format that its name ends in.
pub fn write(path: &Path, title: &str, copies: &[Copy], with_answers: bool) -> CliResult<()> {
    let html = page(title, copies, with_answers);
    match path.extension().and_then(|end| end.to_str()) {
        Some("html" | "htm") => Ok(write_whole(path, html.as_bytes())?),
        Some("pdf") => pdf(path, &html),
        _ => Err(CliError::usage_help(
            format!("{} has no format for sheets", path.display()),
            "give a name that ends in .html or .pdf",
        )),
    }
}

fn pdf(path: &Path, html: &str) -> CliResult<()> {
    let cannot = |error: std::io::Error| CliError::file("write", path, &error);
    let folder = tempfile::tempdir().map_err(cannot)?;
    let (source, printed) = (folder.path().join("sheets.html"), folder.path().join("sheets.pdf"));
    std::fs::write(&source, html).map_err(cannot)?;
    let Some(output) = print(&source, &printed, folder.path()) else {
        return Err(CliError::new(
            Exit::Unavailable,
            "no program was found that makes PDF",
            "apt-get install chromium (or weasyprint), or write .html and print it in a browser",
        ));
    };
    match std::fs::read(&printed) {
        Ok(bytes) if bytes.starts_with(b"%PDF") => Ok(write_whole(path, &bytes)?),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or("it printed no message");
            Err(CliError::new(
                Exit::Unavailable,
                format!("the browser made no PDF: {last}"),
                "write .html and print it in a browser",
            ))
        }
    }
}

/// Prints `source` with the first program that can be started; `None`: there is none.
fn print(source: &Path, printed: &Path, folder: &Path) -> Option<Output> {
    let is_root = schedlab_host::lane::is_root();
    for browser in BROWSERS {
        let mut command = Command::new(browser);
        command.args(["--headless", "--disable-gpu", "--no-pdf-header-footer"]);
        // The page has no script. As root Chromium starts without its sandbox only.
        command.args(is_root.then_some("--no-sandbox"));
        command.args(["--disable-background-networking", "--no-first-run", "--disable-sync"]);
        command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        command.arg(format!("--print-to-pdf={}", printed.display())).arg(source);
        if let Ok(output) = command.stdin(Stdio::null()).output() {
            return Some(output);
        }
    }
    Command::new("weasyprint").arg(source).arg(printed).stdin(Stdio::null()).output().ok()
}
