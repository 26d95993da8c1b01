// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sheets as one HTML page to print: questions for students, or the key with answers.

use crate::{Job, Sheet, sheet};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The sheets of one student, or of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The student; `None`: the sheets have no name.
    pub student: Option<String>,
    /// The sheets.
    pub sheets: Vec<Sheet>,
}

/// Seeds of students are below this number, so that they are short enough to type.
const STUDENT_SEEDS: u64 = 1_000_000_000;

/// The seed of a student's sheets: the same for the same name and the same seed of the class.
pub fn student_seed(seed: u64, student: &str) -> u64 {
    let sum = Sha256::digest(format!("{seed}:{student}"));
    let first = sum.iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    first % STUDENT_SEEDS
}

/// The copies for `students`, each with numbers of its own; without students one copy with `seed`.
///
/// # Errors
/// If there is no exercise of a number.
pub fn copies(numbers: &[u32], seed: u64, students: &[String]) -> Result<Vec<Copy>, String> {
    let sheets = |seed| -> Result<Vec<Sheet>, String> {
        numbers.iter().map(|number| sheet(*number, seed)).collect()
    };
    if students.is_empty() {
        return Ok(vec![Copy { student: None, sheets: sheets(seed)? }]);
    }
    let copy = |student: &String| {
        let sheets = sheets(student_seed(seed, student))?;
        Ok(Copy { student: Some(student.clone()), sheets })
    };
    students.iter().map(copy).collect()
}

/// The columns of a table of jobs, with the cells of each job. Columns in which all jobs are alike
/// are left out.
pub fn job_columns(jobs: &[Job]) -> Vec<(&'static str, Vec<String>)> {
    let column = |head, cell: fn(&Job) -> String| (head, jobs.iter().map(cell).collect());
    let mut columns = vec![
        column("job", |job| job.name.clone()),
        column("released (ms)", |job| job.release.to_string()),
        column("runs (ms)", |job| job.run.to_string()),
    ];
    if jobs.iter().any(|job| job.rounds > 1) {
        columns.push(column("sleeps (ms)", |job| job.sleep.to_string()));
        columns.push(column("rounds", |job| job.rounds.to_string()));
    }
    let is_rt = jobs.iter().any(|job| job.policy != "OTHER");
    if is_rt {
        columns.push(column("policy", |job| job.policy.to_string()));
    }
    if jobs.iter().any(|job| job.priority != 0) {
        let head = if is_rt { "priority" } else { "nice" };
        columns.push(column(head, |job| job.priority.to_string()));
    }
    columns
}

const STYLE: &str = "
body { font: 11pt/1.45 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin: 1.6em 0 .3em }
table { border-collapse: collapse; margin: .7em 0 } caption { text-align: left }
th, td { border: 1px solid #888; padding: .15em .7em; text-align: right }
th:first-child, td:first-child { text-align: left }
.answer { margin: 1em 0 0; border-bottom: 1px solid #888; min-height: 2.6em }
.key { border-left: 3px solid #2a7; padding-left: .8em }
.source { color: #666; font-size: .8em; overflow-wrap: anywhere }
section { break-inside: avoid } article + article { break-before: page }
@page { margin: 18mm }
";

/// A page with all copies, each on a new sheet of paper. `with_answers`: the key.
pub fn page(title: &str, copies: &[Copy], with_answers: bool) -> String {
    let title = escaped(title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n"
    );
    for copy in copies {
        let name = match &copy.student {
            Some(student) => format!("{title}: {}", escaped(student)),
            None => title.clone(),
        };
        html.push_str(&format!("<article>\n<h1>{name}</h1>\n"));
        for (position, sheet) in copy.sheets.iter().enumerate() {
            section(&mut html, position + 1, sheet, with_answers);
        }
        html.push_str("</article>\n");
    }
    html.push_str("</html>\n");
    html
}

fn section(html: &mut String, position: usize, sheet: &Sheet, with_answers: bool) {
    let cpus = if sheet.cpus == 1 { "one CPU".into() } else { format!("{} CPUs", sheet.cpus) };
    let _ = writeln!(
        html,
        "<section>\n<h2>{position}. {}</h2>\n<p>{}</p>\n<p>Scheduler <code>{}</code>, {cpus}; \
         switches take no time.</p>",
        escaped(&sheet.title),
        escaped(&sheet.rule),
        escaped(&sheet.scheduler),
    );
    let columns = job_columns(&sheet.jobs);
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let cell = |row: usize| columns.iter().map(|(_, cells)| cells[row].as_str()).collect();
    let rows: Vec<Vec<&str>> = (0..sheet.jobs.len()).map(cell).collect();
    table(html, &heads, &rows);
    if !sheet.table.rows.is_empty() {
        let heads: Vec<&str> = sheet.table.columns.iter().map(String::as_str).collect();
        let rows = sheet.table.rows.iter();
        let rows: Vec<Vec<&str>> =
            rows.map(|row| row.iter().map(String::as_str).collect()).collect();
        table(html, &heads, &rows);
    }
    let (question, form) = (escaped(&sheet.question), escaped(&sheet.form));
    let _ = writeln!(html, "<p><b>{question}</b> Give {form}.</p>");
    if with_answers {
        let hints: Vec<String> = sheet.hints.iter().map(|hint| escaped(hint)).collect();
        let (answer, hints) = (escaped(&sheet.answer), hints.join(" "));
        let _ = writeln!(html, "<div class=\"key\"><b>Answer: {answer}</b><p>{hints}</p></div>");
    } else {
        html.push_str("<div class=\"answer\"></div>\n");
    }
    let _ = writeln!(
        html,
        "<p class=\"source\">Exercise {}, seed {}, digest {}</p>\n</section>",
        sheet.number,
        sheet.seed,
        &sheet.digest[..16],
    );
}

fn table(html: &mut String, heads: &[&str], rows: &[Vec<&str>]) {
    let row = |cells: &[&str], tag: &str| {
        let cells: Vec<String> =
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    html.push_str("<table>\n");
    html.push_str(&row(heads, "th"));
    rows.iter().for_each(|cells| html.push_str(&row(cells, "td")));
    html.push_str("</table>\n");
}

/// Text for HTML. Names of students come from a file.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_student_has_own_numbers_and_the_key_has_the_answers() {
        let students = ["Ann <Lee>".to_owned(), "Bo".to_owned()];
        let all = copies(&[3, 12], 2026, &students).unwrap();
        assert_eq!(all.iter().map(|copy| copy.sheets.len()).sum::<usize>(), 4);
        assert_ne!(all[0].sheets[0].jobs, all[1].sheets[0].jobs);
        assert_eq!(copies(&[3, 12], 2026, &students).unwrap(), all);
        assert_ne!(student_seed(2026, "Bo"), student_seed(2027, "Bo"));

        let (asked, key) = (page("Quiz", &all, false), page("Quiz", &all, true));
        assert!(asked.contains("Quiz: Ann &lt;Lee&gt;") && !asked.contains("<Lee>"), "{asked}");
        assert!(!asked.contains("Answer:") && asked.contains("class=\"answer\""));
        for sheet in all.iter().flat_map(|copy| &copy.sheets) {
            assert!(key.contains(&format!("Answer: {}", escaped(&sheet.answer))));
            assert!(asked.contains(&format!("seed {}", sheet.seed)));
        }
        assert!(copies(&[99], 1, &[]).unwrap_err().contains("there is no exercise 99"));
    }

    #[test]
    fn every_exercise_has_a_section() {
        let numbers: Vec<u32> = (1..=crate::EXERCISES.len() as u32).collect();
        let all = copies(&numbers, 1, &[]).unwrap();
        let html = page("All", &all, true);
        assert_eq!(html.matches("<section>").count(), crate::EXERCISES.len());
        assert_eq!(html.matches("<table>").count(), html.matches("</table>").count());
        assert!(html.matches("<th>nice</th>").count() > 3);
    }
}
