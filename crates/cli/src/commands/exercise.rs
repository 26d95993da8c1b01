// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab exercise`: questions about schedulers, and their answers.

use crate::error::{CliError, CliResult, Exit};
use crate::output::Out;
use crate::table::{number, render, table};
use comfy_table::Cell;
use schedlab_exercises::{EXERCISES, Job, Sheet, check, sheet};
use serde::Serialize;

/// Examples of the command's help.
pub const EXAMPLES: &str = "Examples:
  schedlab exercise                             (the list)
  schedlab exercise 4 --seed 7
  schedlab exercise 4 --seed 7 --check 11.5ms   (exit code 1 if it is wrong)
  schedlab exercise 4 --seed 7 --answer
  for seed in 1 2 3; do schedlab exercise 4 --seed $seed --json; done

The site has the same exercises; equal digests prove equal sheets.";

/// Options of `exercise`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExerciseArgs {
    /// Number of the exercise; without it, list all
    #[arg(value_name = "N")]
    number: Option<u32>,

    /// Seed of the exercise's numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Print the answer and the hints too
    #[arg(long, conflicts_with = "check")]
    answer: bool,

    /// Check this answer; exit code 1 if it is wrong
    #[arg(long, value_name = "ANSWER", allow_hyphen_values = true)]
    check: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
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
    let Some(number) = args.number else { return list(args, out) };
    if let Some(given) = &args.check {
        let verdict = check(number, args.seed, given).map_err(CliError::usage)?;
        match args.json {
            true => out.json(&verdict)?,
            false => out.line(if verdict.right { "right" } else { "wrong" })?,
        }
        out.finish_now()?;
        return if verdict.right { Ok(()) } else { Err(CliError::Silent(Exit::Check)) };
    }
    let mut sheet = sheet(number, args.seed).map_err(CliError::usage)?;
    if !args.answer {
        sheet.answer.clear();
    }
    match args.json {
        true => out.json(&sheet),
        false => print(&sheet, args.answer, out),
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

fn print(sheet: &Sheet, with_answer: bool, out: &mut Out) -> CliResult<()> {
    out.line(format!("Exercise {}, seed {}: {}", sheet.number, sheet.seed, sheet.title))?;
    out.line(format!("\n{}", sheet.rule))?;
    let cpus = crate::table::counted(sheet.cpus, "CPU", "CPUs");
    out.line(format!("Scheduler {}, {cpus}; switches take no time.\n", sheet.scheduler))?;
    out.line(render(&jobs(&sheet.jobs)))?;
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

/// The table of jobs; columns in which all jobs are alike are left out.
fn jobs(jobs: &[Job]) -> comfy_table::Table {
    let sleeps = jobs.iter().any(|job| job.rounds > 1);
    let ranks = jobs.iter().any(|job| job.priority != 0);
    let is_rt = jobs.iter().any(|job| job.policy != "OTHER");
    let mut heads = vec!["job", "released (ms)", "runs (ms)"];
    heads.extend(sleeps.then_some(["sleeps (ms)", "rounds"]).into_iter().flatten());
    heads.extend(is_rt.then_some("policy"));
    heads.extend(ranks.then_some(if is_rt { "priority" } else { "nice" }));
    let mut rows = table(&heads);
    for job in jobs {
        let mut cells = vec![Cell::new(&job.name)];
        cells.extend([job.release, job.run].map(|ms| number(ms.to_string())));
        let more = [job.sleep, job.rounds].map(|value| number(value.to_string()));
        cells.extend(sleeps.then_some(more).into_iter().flatten());
        cells.extend(is_rt.then(|| Cell::new(job.policy)));
        cells.extend(ranks.then(|| number(job.priority.to_string())));
        rows.add_row(cells);
    }
    rows
}
