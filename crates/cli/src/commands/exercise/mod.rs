// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab exercise`: questions about schedulers, and their answers.

mod paper;

use crate::error::{CliError, CliResult, Exit};
use crate::output::Out;
use crate::table::{number, render, table};
use comfy_table::Cell;
use schedlab_exercises::{EXERCISES, Sheet, check, copies, job_columns};
use serde::Serialize;
use std::path::PathBuf;
use std::str::FromStr;

/// Examples of the command's help.
pub const EXAMPLES: &str = "Examples:
  schedlab exercise                             (the list)
  schedlab exercise 4 --seed 7
  schedlab exercise 4 --seed 7 --check 11.5ms   (exit code 1 if it is wrong)
  schedlab exercise 4 --seed 7 --answer
  schedlab exercise 1,5,8-12 --seed 2026 --students names.txt -o quiz.pdf
  schedlab exercise 1,5,8-12 --seed 2026 --students names.txt -o key.pdf --answer

The site has the same exercises; equal digests prove equal sheets.";

/// Options of `exercise`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExerciseArgs {
    /// Numbers of exercises, such as 4 or 1,5,8-12; without them, list all
    #[arg(value_name = "N")]
    numbers: Option<Numbers>,

    /// Seed of the exercise's numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Print the answer and the hints too
    #[arg(long, conflicts_with = "check")]
    answer: bool,

    /// Check this answer; exit code 1 if it is wrong
    #[arg(long, value_name = "ANSWER", allow_hyphen_values = true)]
    check: Option<String>,

    /// Write sheets to print: .html, or .pdf (needs Chromium or WeasyPrint)
    #[arg(short, long, value_name = "FILE", requires = "numbers")]
    #[arg(conflicts_with_all = ["check", "json"])]
    output: Option<PathBuf>,

    /// Give each student in this file (a name a line) own numbers
    #[arg(long, value_name = "FILE", requires = "output")]
    students: Option<PathBuf>,

    /// Title of the sheets
    #[arg(long, value_name = "TEXT", default_value = "Exercises", requires = "output")]
    title: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Numbers of exercises in the order in which they were given.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Numbers(Vec<u32>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let last = EXERCISES.len() as u32;
        let wrong = || format!("allowed are 1 to {last}, such as 4 or 1,5,8-12");
        let mut all = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let bound = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            let (from, to) = (bound(from)?, bound(to)?);
            if !(1..=last).contains(&from) || !(from..=last).contains(&to) {
                return Err(format!("there is no exercise {}: {}", part.trim(), wrong()));
            }
            all.extend(from..=to);
        }
        Ok(Self(all))
    }
}

/// A line of the list.
#[derive(Serialize)]
struct Listed {
    number: u32,
    title: &'static str,
    scheduler: &'static str,
    cpus: u32,
}

/// Runs the command.
pub fn exercise(args: &ExerciseArgs, out: &mut Out) -> CliResult<()> {
    let Some(Numbers(numbers)) = &args.numbers else { return list(args, out) };
    if let Some(given) = &args.check {
        let [number] = numbers[..] else {
            let what =
                format!("--check marks one answer, and here are {} exercises", numbers.len());
            return Err(CliError::usage_help(what, "give one number"));
        };
        let verdict = check(number, args.seed, given).map_err(CliError::usage)?;
        match args.json {
            true => out.json(&verdict)?,
            false => out.line(if verdict.right { "right" } else { "wrong" })?,
        }
        out.finish_now()?;
        return if verdict.right { Ok(()) } else { Err(CliError::Silent(Exit::Check)) };
    }
    let students = match &args.students {
        Some(path) => paper::names(path)?,
        None => Vec::new(),
    };
    let mut copies = copies(numbers, args.seed, &students).map_err(CliError::usage)?;
    if let Some(path) = &args.output {
        return paper::write(path, &args.title, &copies, args.answer);
    }
    let sheets = &mut copies[0].sheets;
    if !args.answer {
        sheets.iter_mut().for_each(|sheet| sheet.answer.clear());
    }
    match (args.json, &sheets[..]) {
        (true, [sheet]) => out.json(sheet),
        (true, sheets) => out.json(&sheets),
        (false, sheets) => print_all(sheets, args.answer, out),
    }
}

fn list(args: &ExerciseArgs, out: &mut Out) -> CliResult<()> {
    let listed = (1..).zip(EXERCISES).map(|(number, exercise)| Listed {
        number,
        title: exercise.title,
        scheduler: exercise.scheduler,
        cpus: exercise.cpus,
    });
    if args.json {
        return out.json(&listed.collect::<Vec<_>>());
    }
    let mut rows = table(&["N", "exercise", "scheduler", "CPUs"]);
    for one in listed {
        let cells = [
            number(one.number.to_string()),
            Cell::new(one.title),
            Cell::new(one.scheduler),
            number(one.cpus.to_string()),
        ];
        rows.add_row(cells);
    }
    out.line(render(&rows))
}

fn print_all(sheets: &[Sheet], with_answer: bool, out: &mut Out) -> CliResult<()> {
    for (position, sheet) in sheets.iter().enumerate() {
        if position > 0 {
            out.line("")?;
        }
        print(sheet, with_answer, out)?;
    }
    Ok(())
}

fn print(sheet: &Sheet, with_answer: bool, out: &mut Out) -> CliResult<()> {
    out.line(format!("Exercise {}, seed {}: {}", sheet.number, sheet.seed, sheet.title))?;
    out.line(format!("\n{}", sheet.rule))?;
    let cpus = crate::table::counted(sheet.cpus, "CPU", "CPUs");
    out.line(format!("Scheduler {}, {cpus}; switches take no time.\n", sheet.scheduler))?;
    out.line(render(&jobs(sheet)))?;
    if !sheet.table.rows.is_empty() {
        let heads: Vec<&str> = sheet.table.columns.iter().map(String::as_str).collect();
        let mut rows = table(&heads);
        for row in &sheet.table.rows {
            rows.add_row(row.iter().map(number));
        }
        out.line(format!("\n{}", render(&rows)))?;
    }
    out.line(format!("\n{}", sheet.question))?;
    out.line(format!("Give {}.", sheet.form))?;
    if with_answer {
        for hint in &sheet.hints {
            out.line(format!("Hint: {hint}"))?;
        }
        out.line(format!("Answer: {}", sheet.answer))?;
    }
    out.line(format!("Digest: {}", sheet.digest))
}

/// The table of jobs.
fn jobs(sheet: &Sheet) -> comfy_table::Table {
    let columns = job_columns(&sheet.jobs);
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut rows = table(&heads);
    for row in 0..sheet.jobs.len() {
        // Names are to the left, numbers to the right.
        rows.add_row(columns.iter().map(|(head, cells)| match *head {
            "job" | "policy" => Cell::new(&cells[row]),
            _ => number(&cells[row]),
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_lists_of_numbers_and_ranges() {
        let read = |text: &str| text.parse::<Numbers>().map(|numbers| numbers.0);
        assert_eq!(read("4"), Ok(vec![4]));
        assert_eq!(read("9, 1-3,2"), Ok(vec![9, 1, 2, 3, 2]));
        for wrong in ["", "0", "x", "3-1", "1-99", "1,,2", "-3", "4294967296"] {
            assert!(read(wrong).unwrap_err().contains("allowed are 1 to 34"), "{wrong}");
        }
    }
}
