// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab grade`: marks of the schedulers that students have handed in.

use crate::args::ScxArgs;
use crate::error::{CliError, CliResult, Exit};
use crate::output::Out;
use crate::schedulers::Schedulers;
use crate::table::{number, render, table};
use comfy_table::Cell;
use schedlab_grade::{Assignment, Marks, grade as judged};
use schedlab_run::file::{read_text, write_whole};
use schedlab_sched::SourceDigest;
use schedlab_trace::export::csv::quoted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Examples of the command's help.
pub const EXAMPLES: &str = "Examples:
  schedlab grade rr.toml alice.js
  schedlab grade rr.toml handed-in/ --csv marks.csv
  schedlab grade rr.toml handed-in/*.bpf.c --json

Exit code 1 if a scheduler does not get all points.";

/// Largest assignment file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Ends of the names of files that can be graded.
const ENDS: [&str; 3] = [".js", ".py", ".bpf.c"];

/// Options of `grade`.
#[derive(Clone, Debug, clap::Args)]
pub struct GradeArgs {
    /// The assignment: tests with points, as TOML
    #[arg(value_name = "ASSIGNMENT")]
    assignment: PathBuf,

    /// Schedulers to grade (.js, .py or .bpf.c), and directories of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write a line for each scheduler with the points of each test
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    scx: ScxArgs,
}

/// A scheduler that was handed in, with its marks.
#[derive(Serialize)]
struct Graded {
    /// Its file.
    file: String,
    /// Its marks.
    #[serde(flatten)]
    marks: Marks,
    /// Another file with the same text.
    same_text_as: Option<String>,
}

/// Runs the command.
pub fn grade(args: &GradeArgs, out: &mut Out) -> CliResult<()> {
    let path = &args.assignment;
    let text = read_text(path, FILE_BYTES_MAX)?;
    let assignment = Assignment::read(&text)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    let mut graded = Vec::new();
    let mut seen = BTreeMap::new();
    for file in listed(&args.files)? {
        graded.push(one(&assignment, &file, &args.scx, &mut seen)?);
    }
    if let Some(path) = &args.csv {
        write_whole(path, lines(&assignment, &graded).as_bytes())?;
    }
    match args.json {
        true => out.json(&graded)?,
        false => print(&assignment, &graded, out)?,
    }
    out.finish_now()?;
    match graded.iter().all(|one| one.marks.points == assignment.points()) {
        true => Ok(()),
        false => Err(CliError::Silent(Exit::Check)),
    }
}

/// The files to grade, those of directories by name.
fn listed(given: &[PathBuf]) -> CliResult<Vec<PathBuf>> {
    let is_scheduler = |path: &Path| ENDS.iter().any(|end| path.to_string_lossy().ends_with(end));
    let mut files = Vec::new();
    for path in given {
        if path.is_dir() {
            let entries =
                std::fs::read_dir(path).map_err(|error| CliError::file("read", path, &error))?;
            let mut found: Vec<PathBuf> = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| is_scheduler(path))
                .collect();
            if found.is_empty() {
                return Err(CliError::usage_help(
                    format!("{} has no scheduler", path.display()),
                    "give files that end in .js, .py or .bpf.c",
                ));
            }
            found.sort();
            files.append(&mut found);
        } else if is_scheduler(path) {
            files.push(path.clone());
        } else {
            return Err(CliError::usage_help(
                format!("{} is no scheduler that can be graded", path.display()),
                "give files that end in .js, .py or .bpf.c, or directories of them",
            ));
        }
    }
    Ok(files)
}

/// Grades a file. What is wrong with it costs all points, and the others are graded all the same;
/// only a machine that cannot compile C or run Python ends the command.
fn one(
    assignment: &Assignment,
    file: &Path,
    scx: &ScxArgs,
    seen: &mut BTreeMap<String, String>,
) -> CliResult<Graded> {
    let name = file.display().to_string();
    // A file in the present directory, too, is no name of a scheduler of this program.
    let path = if name.contains('/') { name.clone() } else { format!("./{name}") };
    let mut same_text_as = None;
    let marks = match Schedulers::new(scx, &[])?.find(&path) {
        Ok(scheduler) => {
            let digest = scheduler.digest.as_ref().map(SourceDigest::text);
            if let Some(digest) = digest {
                same_text_as = seen.get(digest).cloned();
                seen.entry(digest.to_owned()).or_insert_with(|| name.clone());
            }
            judged(assignment, &scheduler)
        }
        Err(error) if error.exit() == Some(Exit::Unavailable) && !name.ends_with(".js") => {
            return Err(error);
        }
        Err(error) => Marks::none(assignment, &error.text()),
    };
    Ok(Graded { file: name, marks, same_text_as })
}

fn print(assignment: &Assignment, graded: &[Graded], out: &mut Out) -> CliResult<()> {
    out.line(format!("{}: {} points", assignment.title, assignment.points()))?;
    let names = assignment.tests.iter().map(|test| test.name.as_str());
    let heads: Vec<&str> = ["scheduler", "points"].into_iter().chain(names).collect();
    let mut rows = table(&heads);
    for one in graded {
        let mut cells = vec![Cell::new(&one.file), number(one.marks.points)];
        cells.extend(one.marks.tests.iter().map(|mark| number(mark.points)));
        rows.add_row(cells);
    }
    out.line(render(&rows))?;
    for one in graded {
        if let Some(other) = &one.same_text_as {
            out.line(format!("{} has the same text as {other}", one.file))?;
        }
        let failed = one.marks.tests.iter().filter_map(|mark| Some((mark, mark.problem.as_ref()?)));
        let mut last = None;
        for (mark, problem) in failed {
            // A policy that cannot be read fails every test for the same reason.
            if last != Some(problem) {
                out.line(format!("{}, {}: {problem}", one.file, mark.name))?;
            }
            last = Some(problem);
        }
    }
    Ok(())
}

/// The marks as CSV.
fn lines(assignment: &Assignment, graded: &[Graded]) -> String {
    let mut text = String::from("scheduler,points");
    for test in &assignment.tests {
        text.push_str(&format!(",{}", field(&test.name)));
    }
    text.push('\n');
    for one in graded {
        text.push_str(&format!("{},{}", field(&one.file), one.marks.points));
        for mark in &one.marks.tests {
            text.push_str(&format!(",{}", mark.points));
        }
        text.push('\n');
    }
    text
}

/// A field of CSV. A spreadsheet takes text that begins with one of these characters for a formula,
/// and names are those of the students.
fn field(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => quoted(&format!("'{text}")).into_owned(),
        false => quoted(text).into_owned(),
    }
}
