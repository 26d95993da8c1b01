// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of questions. Each looks up its answer in a simulated run; a run that does not give
//! one clear answer is drawn again.

use crate::answer::Answer;
use crate::jobs::Job;
use crate::list::Exercise;
use crate::{Table, request};
use schedlab_core::explain::{FactValue, StatedCandidate, StatedContest};
use schedlab_core::{Ask as About, END_NAMES, Outcome, explain_request, simulate};
use schedlab_metrics::{RunTotals, TaskMeasures};
use schedlab_model::random::Stream;
use schedlab_model::time::{NSEC_PER_MSEC, NSEC_PER_USEC};

/// A question and its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The question.
    pub question: String,
    /// Numbers that it needs.
    pub table: Table,
    /// The answer.
    pub answer: Answer,
}

/// A kind of question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Turnaround of one job.
    Turnaround,
    /// Response of one job.
    Response,
    /// Run delay of one job.
    Wait,
    /// Mean turnaround.
    MeanTurnaround,
    /// Mean response.
    MeanResponse,
    /// Mean run delay.
    MeanWait,
    /// When the last job ends.
    Makespan,
    /// In which order the jobs end.
    Exits,
    /// In which order the jobs run first.
    FirstRuns,
    /// Which job CPU 0 runs at a time.
    RunsAt,
    /// How often jobs are preempted.
    Preemptions,
    /// Whether a job that is released takes the CPU at once.
    TakesCpu,
    /// Share of the CPU time of a job within the run.
    Share,
    /// Which job is picked, from the numbers that the scheduler compares.
    PickOf(&'static [&'static str]),
    /// A number of a job, from another number of all jobs: the shown one, then the wanted one.
    NumberOf(&'static str, &'static str),
}

type Maybe = Result<Option<Asked>, String>;

impl Ask {
    /// The question about `jobs` under the exercise's scheduler; `None`: there is no clear one.
    pub fn of(self, exercise: &Exercise, jobs: &[Job], random: &mut Stream) -> Maybe {
        let outcome = simulate(&request(exercise, jobs)).map_err(|error| error.one_line())?;
        let run = Run { exercise, jobs, outcome };
        match self {
            Self::Turnaround => Ok(run.of_job(random, "turnaround", |run, job| {
                run.outcome.result.measures.tasks[job].turnaround_ns
            })),
            Self::Response => Ok(run.of_job(random, "response time", |run, job| {
                run.outcome.result.measures.tasks[job].response_ns
            })),
            Self::Wait => Ok(run.of_job(random, "run delay", |run, job| {
                Some(run.outcome.result.measures.tasks[job].run_delay_ns)
            })),
            Self::MeanTurnaround => {
                Ok(run.of_all("mean turnaround", run.totals().turnaround_ns_mean))
            }
            Self::MeanResponse => {
                Ok(run.of_all("mean response time", run.totals().response_ns_mean))
            }
            Self::MeanWait => Ok(run.of_all("mean run delay", run.totals().run_delay.ns_mean)),
            Self::Makespan => {
                Ok(run.of_all("makespan (first release to last exit)", run.totals().makespan_ns))
            }
            Self::Exits => Ok(run.order("In which order do the jobs end?", |t| t.exit_ns)),
            Self::FirstRuns => {
                Ok(run.order("In which order do the jobs run for the first time?", |t| {
                    t.first_run_ns
                }))
            }
            Self::RunsAt => Ok(run.runs_at(random)),
            Self::Preemptions => Ok(run.preemptions()),
            Self::TakesCpu => Ok(run.takes_cpu()),
            Self::Share => Ok(run.share(random)),
            Self::PickOf(names) => run.pick_of(names, random),
            Self::NumberOf(shown, wanted) => run.number_of(shown, wanted, random),
        }
    }
}

/// A run to ask about.
struct Run<'e> {
    exercise: &'e Exercise,
    jobs: &'e [Job],
    outcome: Outcome,
}

fn plain(question: String, answer: Answer) -> Asked {
    Asked { question, table: Table::default(), answer }
}

/// A time in ms, without the decimal places that it does not need.
fn ms(ns: u64) -> String {
    Answer::Time(ns as i64).text()
}

impl Run<'_> {
    fn totals(&self) -> &RunTotals {
        &self.outcome.result.measures.totals
    }

    /// A job, later ones more often: the first is the easiest.
    fn some_job(&self, random: &mut Stream) -> usize {
        let count = self.jobs.len() as u64;
        random.below(count).max(random.below(count)) as usize
    }

    fn of_job(
        &self,
        random: &mut Stream,
        what: &str,
        value: impl Fn(&Self, usize) -> Option<u64>,
    ) -> Option<Asked> {
        let job = self.some_job(random);
        let question = format!("What is the {what} of job {}?", self.jobs[job].name);
        value(self, job).map(|ns| plain(question, Answer::Time(ns as i64)))
    }

    fn of_all(&self, what: &str, ns: Option<u64>) -> Option<Asked> {
        ns.map(|ns| plain(format!("What is the {what}?"), Answer::Time(ns as i64)))
    }

    fn order(&self, question: &str, time: impl Fn(&TaskMeasures) -> Option<u64>) -> Option<Asked> {
        let tasks = &self.outcome.result.measures.tasks;
        let mut times = Vec::new();
        for task in tasks {
            times.push((time(task)?, task.name.clone()));
        }
        times.sort();
        let is_clear = times.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let names = times.into_iter().map(|(_, name)| name).collect();
        is_clear.then(|| plain(question.into(), Answer::Names(names)))
    }

    /// A time in the middle of a slice, so that no rule about simultaneous events matters.
    fn runs_at(&self, random: &mut Stream) -> Option<Asked> {
        let slices = &self.outcome.columns.slices;
        let long = |at: &usize| {
            slices.cpu[*at] == 0
                && slices.start_ns[*at] > 0
                && slices.end_ns[*at] - slices.start_ns[*at] >= NSEC_PER_MSEC
        };
        let found: Vec<usize> = (0..slices.cpu.len()).filter(long).collect();
        let at = *found.get(random.below(found.len().max(1) as u64) as usize)?;
        let time = slices.start_ns[at] + NSEC_PER_MSEC / 2;
        let name = self.jobs.get(slices.task[at] as usize)?.name.clone();
        let cpu = if self.exercise.cpus > 1 { "CPU 0" } else { "the CPU" };
        let question = format!("Which job does {cpu} run at {}?", ms(time));
        Some(plain(question, Answer::Names(vec![name])))
    }

    fn preemptions(&self) -> Option<Asked> {
        let ends = &self.outcome.columns.slices.end;
        let count = ends.iter().filter(|end| END_NAMES[usize::from(**end)] == "preempted").count();
        let question = "How often does a job leave a CPU although it is not done with its burst?";
        (count > 0).then(|| plain(question.into(), Answer::Count(count as i64)))
    }

    /// The last job is the one in question.
    fn takes_cpu(&self) -> Option<Asked> {
        let job = self.jobs.last()?;
        let task = self.outcome.result.measures.tasks.last()?;
        let release = job.release * NSEC_PER_MSEC;
        let slices = &self.outcome.columns.slices;
        let others = (0..slices.task.len()).filter(|at| slices.task[*at] != task.id);
        let runs_then = |at: usize| slices.start_ns[at] < release && slices.end_ns[at] >= release;
        let running: Vec<usize> = others.filter(|at| runs_then(*at)).collect();
        let [running] = running[..] else { return None };
        // If the running job is done at that time, nobody is preempted.
        let how = END_NAMES[usize::from(slices.end[running])];
        if slices.end_ns[running] == release && how != "preempted" {
            return None;
        }
        let answer = Answer::Yes(task.first_run_ns == Some(release));
        let name = &self.jobs.get(slices.task[running] as usize)?.name;
        let question = format!(
            "Job {} is released at {} while {name} runs. Does it take the CPU at once?",
            job.name,
            ms(release)
        );
        Some(plain(question, answer))
    }

    fn share(&self, random: &mut Stream) -> Option<Asked> {
        let job = self.some_job(random);
        let end = self.totals().end_ns;
        let used = self.outcome.result.measures.tasks[job].cpu_time_ns;
        let capacity = end.checked_mul(u64::from(self.exercise.cpus))?;
        let share = (u128::from(used) * 10_000 / u128::from(capacity.max(1))) as i64;
        let question = format!(
            "All jobs are still running after {}. What share of the CPU has {} got by then?",
            ms(end),
            self.jobs[job].name
        );
        Some(plain(question, Answer::Share(share)))
    }

    /// A contest with several candidates, each of which has the numbers called `names`.
    fn contest(
        &self,
        names: &[&str],
        random: &mut Stream,
    ) -> Result<Option<(u64, StatedContest)>, String> {
        let about = About {
            from_ns: Some(1),
            to_ns: Some(u64::MAX),
            decisions_max: 100,
            candidates_max: 20,
            ..About::default()
        };
        let request = request(self.exercise, self.jobs);
        let explained = explain_request(&request, &about).map_err(|error| error.one_line())?;
        let has_all = |one: &StatedCandidate| {
            one.task.is_some() && names.iter().all(|name| number(one, name).is_some())
        };
        let mut found = Vec::new();
        for decision in explained.decisions {
            for contest in decision.contests {
                let of = &contest.candidates;
                let picks = of.iter().filter(|one| one.chosen).count() == 1;
                let fits = contest.nr_omitted == 0 && of.len() >= 2 && of.iter().all(has_all);
                if picks && fits && contest.rule != "keeps" && contest.rule != "named" {
                    found.push((decision.time_ns, contest));
                }
            }
        }
        let at = random.below(found.len().max(1) as u64) as usize;
        Ok((at < found.len()).then(|| found.swap_remove(at)))
    }

    fn pick_of(&self, names: &[&str], random: &mut Stream) -> Maybe {
        let Some((time, contest)) = self.contest(names, random)? else { return Ok(None) };
        let chosen = contest.candidates.iter().find(|one| one.chosen);
        let Some(chosen) = chosen.map(|one| one.name.clone()) else { return Ok(None) };
        if !gives_choice(&contest, names, &chosen) {
            return Ok(None);
        }
        let question =
            format!("At {} the CPU picks among these jobs. Which one does it run next?", ms(time));
        let answer = Answer::Names(vec![chosen]);
        Ok(Some(Asked { question, table: table(&contest, names), answer }))
    }

    fn number_of(&self, shown: &str, wanted: &str, random: &mut Stream) -> Maybe {
        let Some((time, contest)) = self.contest(&[shown, wanted], random)? else {
            return Ok(None);
        };
        let at = random.below(contest.candidates.len() as u64) as usize;
        let one = &contest.candidates[at];
        let Some(value) = number(one, wanted) else { return Ok(None) };
        let question = format!(
            "At {} the CPU picks among these jobs. What is the {wanted} of {}?",
            ms(time),
            one.name
        );
        let answer = Answer::Time(value);
        Ok(Some(Asked { question, table: table(&contest, &[shown]), answer }))
    }
}

/// Whether the numbers called `names`, as they are shown, give the choice: `chosen` is the only one
/// of the considered candidates with the least value of the rule's key.
fn gives_choice(contest: &StatedContest, names: &[&str], chosen: &str) -> bool {
    let [key, ..] = &contest.keys[..] else { return false };
    // Shown to a microsecond, so what is less looks like 0.
    let blurs = |one: &StatedCandidate| {
        let values = names.iter().filter_map(|name| number(one, name));
        values.into_iter().any(|value| value != 0 && value.abs() < NSEC_PER_USEC as i64)
    };
    let considered = contest.candidates.iter().filter(|one| one.considered);
    let mut values: Vec<(i64, &str)> =
        considered.filter_map(|one| Some((number(one, key)?, one.name.as_str()))).collect();
    values.sort_unstable();
    let is_only = match values[..] {
        [] => false,
        [_] => contest.candidates.len() > 1,
        [first, second, ..] => second.0 - first.0 >= 2 * NSEC_PER_USEC as i64,
    };
    contest.rule == "least"
        && !contest.candidates.iter().any(blurs)
        && is_only
        && values[0].1 == chosen
}

/// The number called `name` of a candidate.
fn number(candidate: &StatedCandidate, name: &str) -> Option<i64> {
    let fact = candidate.facts.iter().find(|fact| fact.name == name)?;
    match fact.value {
        FactValue::Number(number) if number != i64::MAX => Some(number),
        _ => None,
    }
}

/// The numbers of all candidates, in order of their names: the order of the queue would tell.
fn table(contest: &StatedContest, names: &[&str]) -> Table {
    let columns = std::iter::once("job").chain(names.iter().copied()).map(Into::into).collect();
    let row = |one: &StatedCandidate| {
        let cell = |name: &&str| {
            let fact = one.facts.iter().find(|fact| fact.name == *name);
            let has_unit = fact.is_some_and(|fact| !fact.unit.is_empty());
            let value = number(one, name).unwrap_or_default();
            if has_unit { Answer::Time(value).text() } else { value.to_string() }
        };
        std::iter::once(one.name.clone()).chain(names.iter().map(cell)).collect()
    };
    let mut rows: Vec<Vec<String>> = contest.candidates.iter().map(row).collect();
    rows.sort();
    Table { columns, rows }
}
