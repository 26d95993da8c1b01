// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exercises about CPU schedulers: seeded questions whose answers the simulator computes.
//!
//! [`EXERCISES`] is the only list. An exercise and a seed make a [`Sheet`]: jobs, a scheduler, a
//! question, hints and the answer. The command line and the site show the same sheets, which a
//! digest proves.
//!
//! - `jobs` draws jobs, `ask` has the kinds of questions, `answer` compares answers,
//!   `page` prints sheets.

mod answer;
mod ask;
mod jobs;
mod list;
mod page;

pub use answer::{Answer, Verdict};
pub use jobs::Job;
pub use list::{EXERCISES, Exercise};
pub use page::{Copy, copies, job_columns, page, student_seed};

use schedlab_core::Request;
use schedlab_model::random::{Purpose, Stream};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A table of numbers that belongs to a question.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Table {
    /// Heads.
    pub columns: Vec<String>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

/// An exercise with its numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sheet {
    /// Number of the exercise, from 1.
    pub number: u32,
    /// Seed of its numbers.
    pub seed: u64,
    /// Title.
    pub title: String,
    /// The rule of the scheduler.
    pub rule: String,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// CPUs.
    pub cpus: u32,
    /// Scheduler with its settings, as the command line takes it.
    pub scheduler: String,
    /// When the run ends, if it does not end with its jobs.
    pub until: Option<&'static str>,
    /// More numbers that the question needs; empty if it needs none.
    pub table: Table,
    /// The question.
    pub question: String,
    /// The form of an answer.
    pub form: String,
    /// Hints, from the vaguest to the plainest.
    pub hints: Vec<String>,
    /// The workload file of the jobs.
    pub workload: String,
    /// The answer as text.
    pub answer: String,
    /// SHA-256 of everything above, in hexadecimal digits: equal sheets have equal digests.
    pub digest: String,
}

/// The sheet of exercise `number` with `seed`.
///
/// # Errors
/// If there is no such exercise.
pub fn sheet(number: u32, seed: u64) -> Result<Sheet, String> {
    made(number, seed).map(|(sheet, _)| sheet)
}

/// Compares `given` with the answer of exercise `number` with `seed`.
///
/// # Errors
/// If there is no such exercise, or if `given` has another form than an answer must have.
pub fn check(number: u32, seed: u64, given: &str) -> Result<Verdict, String> {
    let (sheet, answer) = made(number, seed)?;
    let right = answer.matches(given)?;
    Ok(Verdict { right, answer: sheet.answer, digest: sheet.digest })
}

/// Seeds that are tried until the jobs give a question with one clear answer.
const DRAWS_MAX: u64 = 200;

fn made(number: u32, seed: u64) -> Result<(Sheet, Answer), String> {
    let index = (number as usize).wrapping_sub(1);
    let Some(exercise) = EXERCISES.get(index) else {
        return Err(format!("there is no exercise {number}: allowed are 1 to {}", EXERCISES.len()));
    };
    let mut random = Stream::new(seed, Purpose::Experiment, u64::from(number));
    for _ in 0..DRAWS_MAX {
        let jobs = exercise.jobs.draw(&mut random);
        if let Some(asked) = exercise.ask.of(exercise, &jobs, &mut random)? {
            return Ok(filled(exercise, number, seed, jobs, asked));
        }
    }
    Err(format!("exercise {number} has no question for seed {seed}: take another seed"))
}

fn filled(
    exercise: &Exercise,
    number: u32,
    seed: u64,
    jobs: Vec<Job>,
    asked: ask::Asked,
) -> (Sheet, Answer) {
    let mut sheet = Sheet {
        number,
        seed,
        title: exercise.title.into(),
        rule: exercise.rule.into(),
        workload: jobs::file_of(&jobs),
        jobs,
        cpus: exercise.cpus,
        scheduler: exercise.scheduler.into(),
        until: exercise.until,
        table: asked.table,
        question: asked.question,
        form: asked.answer.form().into(),
        hints: exercise.hints.iter().map(|hint| (*hint).into()).collect(),
        answer: asked.answer.text(),
        digest: String::new(),
    };
    let text = serde_json::to_string(&sheet).expect("a sheet has text keys only");
    sheet.digest = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    (sheet, asked.answer)
}

/// The run of an exercise: no costs, as in textbooks.
pub(crate) fn request(exercise: &Exercise, jobs: &[Job]) -> Request {
    let mut request = Request::new(jobs::file_of(jobs), exercise.scheduler);
    request.cpus = Some(exercise.cpus);
    request.costs = Some("zero".into());
    request.until = exercise.until.map(Into::into);
    request.keep.slices = true;
    request
}

#[cfg(test)]
mod tests;
