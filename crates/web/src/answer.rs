// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers the page's questions: lists, runs, explanations.

use crate::policy;
use schedlab_core::{Ask, END_NAMES, Error, Keep, Outcome, Request, STATE_NAMES};
use schedlab_exercises::EXERCISES;
use schedlab_model::Costs;
use schedlab_sched::boundary::options::{Tunable, TunableKind};
use schedlab_sched::{Scheduler, registry::SCHEDULERS};
use schedlab_workload::{BUILTINS, units};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer: JSON, and columns of numbers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// `{"ok": ...}` with `columns`, or `{"error": ...}`.
    pub json: String,
    /// The columns, one after the other, in little-endian order.
    pub bytes: Vec<u8>,
}

/// What a page asks.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
enum Question {
    /// Which schedulers and workloads there are.
    Lists,
    /// The exercises.
    Exercises,
    /// An exercise with its numbers, without its answer.
    Exercise { number: u32, seed: u64 },
    /// Whether an answer to an exercise is right.
    Mark { number: u32, seed: u64, given: String },
    /// Whether a request can run.
    Check { request: Request },
    /// A run: measures as JSON, slices and queues as columns.
    Run { request: Request },
    /// Why the tasks of a run were picked.
    Explain { request: Request, about: Ask },
}

/// Where a column is in [`Answer::bytes`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Place {
    name: &'static str,
    /// `f64`, `u32` or `u8`.
    kind: &'static str,
    offset: usize,
    length: usize,
}

/// Columns under construction.
#[derive(Default)]
struct Columns {
    places: Vec<Place>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Times as doubles: exact up to 2^53 ns, which is 104 days.
    fn times(&mut self, name: &'static str, times: &[u64]) {
        self.add(name, "f64", times, |time| (*time as f64).to_le_bytes());
    }

    fn numbers(&mut self, name: &'static str, numbers: &[u32]) {
        self.add(name, "u32", numbers, |number| number.to_le_bytes());
    }

    fn small(&mut self, name: &'static str, numbers: &[u8]) {
        self.add(name, "u8", numbers, |number| [*number]);
    }

    fn add<T, const N: usize>(
        &mut self,
        name: &'static str,
        kind: &'static str,
        values: &[T],
        bytes: impl Fn(&T) -> [u8; N],
    ) {
        let offset = self.bytes.len();
        self.places.push(Place { name, kind, offset, length: values.len() });
        self.bytes.extend(values.iter().flat_map(bytes));
    }
}

/// Answers a question. Never fails: what is wrong with the question is an answer too.
pub fn answer(question: &str) -> Answer {
    answered(question).unwrap_or_else(|error| plain(json!({ "error": error })))
}

fn plain(json: Value) -> Answer {
    Answer { json: json.to_string(), bytes: Vec::new() }
}

fn answered(question: &str) -> Result<Answer, Value> {
    let question: Question = serde_json::from_str(question)
        .map_err(|error| json!({ "text": format!("the page's question: {error}") }))?;
    match question {
        Question::Lists => Ok(plain(json!({ "ok": lists() }))),
        Question::Exercises => Ok(plain(json!({ "ok": exercises() }))),
        Question::Exercise { number, seed } => {
            let sheet = schedlab_exercises::sheet(number, seed).map_err(worded)?;
            let sheet = schedlab_exercises::Sheet { answer: String::new(), ..sheet };
            Ok(plain(json!({ "ok": sheet })))
        }
        Question::Mark { number, seed, given } => {
            let verdict = schedlab_exercises::check(number, seed, &given).map_err(worded)?;
            Ok(plain(json!({ "ok": verdict })))
        }
        Question::Check { request } => {
            schedlab_core::validate(&request).map_err(|error| stated(&error))?;
            Ok(plain(json!({ "ok": true })))
        }
        Question::Run { request } => {
            let keep = Keep { slices: true, states: true, ..Keep::default() };
            let request = Request { keep, ..request };
            let outcome = schedlab_core::simulate_with(&request, own(&request), None);
            Ok(ran(outcome.map_err(|error| stated(&error))?))
        }
        Question::Explain { request, about } => {
            let explained = schedlab_core::explain_request_with(&request, own(&request), &about);
            Ok(plain(json!({ "ok": explained.map_err(|error| stated(&error))? })))
        }
    }
}

fn worded(text: String) -> Value {
    json!({ "text": text })
}

/// The list of exercises.
fn exercises() -> Vec<Value> {
    let listed = EXERCISES
        .iter()
        .map(|one| json!({ "title": one.title, "scheduler": one.scheduler, "cpus": one.cpus }));
    listed.collect()
}

/// The page's policy, if the request wants it.
fn own(request: &Request) -> Option<Arc<Scheduler>> {
    (request.scheduler == policy::NAME).then(policy::scheduler)
}

/// An error as the page shows it: in the workload's text if it has a place there.
fn stated(error: &Error) -> Value {
    let kind = error.kind.name();
    match &error.place {
        Some(place) => json!({
            "kind": kind, "text": place.message, "help": place.help,
            "place": [place.line, place.column],
        }),
        None => json!({ "kind": kind, "text": error.text, "help": error.help }),
    }
}

/// What a page lets its reader choose from.
fn lists() -> Value {
    let schedulers = SCHEDULERS.iter().map(|scheduler| {
        json!({
            "name": scheduler.name,
            "summary": scheduler.summary,
            "is_textbook": scheduler.costs == Costs::ZERO,
            "tunables": scheduler.tunables.iter().map(tunable).collect::<Vec<_>>(),
        })
    });
    let workloads =
        BUILTINS.iter().map(|entry| json!({ "name": entry.name, "summary": entry.summary }));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "schedulers": schedulers.collect::<Vec<_>>(),
        "workloads": workloads.collect::<Vec<_>>(),
        "end_names": END_NAMES,
    })
}

fn tunable(tunable: &Tunable) -> Value {
    let (default, allowed) = match &tunable.kind {
        TunableKind::Time { min, max } => {
            let time = |ns| units::format_duration(ns);
            (time(tunable.default), format!("{} to {}", time(*min), time(*max)))
        }
        TunableKind::Count { min, max } => (tunable.default.to_string(), format!("{min} to {max}")),
        TunableKind::Choice(words) => {
            let default = words.get(tunable.default as usize).unwrap_or_default();
            (default.to_string(), words.joined())
        }
    };
    json!({ "name": tunable.name, "text": tunable.text, "default": default, "allowed": allowed })
}

/// The answer to a run. Waits are the states in which a task is runnable and does not run.
fn ran(outcome: Outcome) -> Answer {
    let mut columns = Columns::default();
    let slices = &outcome.columns.slices;
    columns.times("start", &slices.start_ns);
    columns.times("end", &slices.end_ns);
    columns.numbers("task", &slices.task);
    columns.numbers("cpu", &slices.cpu);
    columns.small("how", &slices.end);
    let states = &outcome.columns.states;
    let is_wait = |at: &usize| STATE_NAMES[usize::from(states.state[*at])] == "runnable";
    let waits: Vec<usize> = (0..states.state.len()).filter(is_wait).collect();
    let of = |times: &[u64]| waits.iter().map(|at| times[*at]).collect::<Vec<_>>();
    columns.times("wait_start", &of(&states.start_ns));
    columns.times("wait_end", &of(&states.end_ns));
    let ok = json!({ "result": outcome.result, "notes": outcome.notes });
    let json = json!({ "ok": ok, "columns": columns.places });
    Answer { json: json.to_string(), bytes: columns.bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: Value) -> (Value, Vec<u8>) {
        let answer = answer(&question.to_string());
        (serde_json::from_str(&answer.json).unwrap(), answer.bytes)
    }

    /// The numbers of a column of doubles.
    fn doubles(answer: &Value, bytes: &[u8], name: &str) -> Vec<f64> {
        let places = answer["columns"].as_array().unwrap();
        let place = places.iter().find(|place| place["name"] == name).unwrap();
        let (offset, length) = (&place["offset"], &place["length"]);
        let from = offset.as_u64().unwrap() as usize;
        let bytes = &bytes[from..from + 8 * length.as_u64().unwrap() as usize];
        bytes.chunks(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap())).collect()
    }

    #[test]
    fn a_run_has_measures_slices_and_waits() {
        let request = json!({ "workload": "hogs:n=2,work=10ms", "scheduler": "rr:quantum=5ms" });
        let (answer, bytes) = asked(json!({ "ask": "run", "request": request }));
        let totals = &answer["ok"]["result"]["measures"]["totals"];
        assert_eq!(totals["makespan_ns"], 20_000_000);
        let ms =
            |name| doubles(&answer, &bytes, name).iter().map(|ns| ns / 1e6).collect::<Vec<_>>();
        assert_eq!(ms("start"), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(ms("end"), [5.0, 10.0, 15.0, 20.0]);
        assert_eq!(
            (ms("wait_start"), ms("wait_end")),
            (vec![0.0, 5.0, 10.0], vec![5.0, 10.0, 15.0])
        );
    }

    #[test]
    fn a_mistake_in_a_workload_has_its_place() {
        let request = json!({ "workload": "{\n  \"taks\": {}\n}", "scheduler": "rr" });
        let (answer, _) = asked(json!({ "ask": "run", "request": request }));
        assert_eq!(answer["error"]["place"], json!([2, 3]));
        assert_eq!(answer["error"]["text"], "the file knows no key \"taks\"");
        let (answer, _) = asked(json!({ "ask": "nothing" }));
        assert!(answer["error"]["text"].as_str().unwrap().contains("unknown variant"));
    }

    #[test]
    fn a_pick_is_explained() {
        let request = json!({ "workload": "hogs:n=2,work=10ms", "scheduler": "rr:quantum=5ms" });
        let about = json!({ "at_ns": 5_000_000, "cpu": 0 });
        let (answer, _) = asked(json!({ "ask": "explain", "request": request, "about": about }));
        let decision = &answer["ok"]["decisions"][0];
        assert_eq!((&decision["time_ns"], &decision["cpu"]), (&json!(5_000_000), &json!(0)));
        assert_eq!(decision["contests"][0]["class"], "rr");
    }

    #[test]
    fn lists_name_every_scheduler_with_its_tunables() {
        let (answer, _) = asked(json!({ "ask": "lists" }));
        let schedulers = answer["ok"]["schedulers"].as_array().unwrap();
        let rr = schedulers.iter().find(|one| one["name"] == "rr").unwrap();
        assert_eq!(rr["tunables"][0]["default"], "100ms");
        assert_eq!(schedulers.len(), SCHEDULERS.len());
    }

    #[test]
    fn an_exercise_has_the_digest_of_the_command_line_and_marks_answers() {
        let (answer, _) = asked(json!({ "ask": "exercise", "number": 2, "seed": 5 }));
        let own = schedlab_exercises::sheet(2, 5).unwrap();
        assert_eq!(answer["ok"]["digest"], own.digest);
        assert_eq!(answer["ok"]["answer"], "", "the page does not hold the answer");
        let mark =
            |given: &str| asked(json!({ "ask": "mark", "number": 2, "seed": 5, "given": given })).0;
        assert_eq!(mark(&own.answer)["ok"]["right"], true);
        assert_eq!(mark("0")["ok"]["right"], false);
        assert!(mark("x")["error"]["text"].as_str().unwrap().contains("a time in ms"));
    }

    #[test]
    fn without_a_page_a_policy_fails_with_a_reason() {
        let request = json!({ "workload": "hogs", "scheduler": policy::NAME });
        let (answer, _) = asked(json!({ "ask": "run", "request": request }));
        assert!(answer["error"]["text"].as_str().unwrap().contains("only in a page"), "{answer}");
    }
}
