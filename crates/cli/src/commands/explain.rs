// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab explain`: why a task was chosen at a time, and who kept a task waiting.

use super::sim;
use crate::args::{ExplainArgs, OutputArgs, SimArgs};
use crate::error::{CliError, CliResult};
use crate::input;
use crate::machine;
use crate::output::{Out, say};
use crate::schedulers::Schedulers;
use crate::table::{self, counted, duration, number, percent};
use schedlab_model::CpuId;
use schedlab_run::LaneKind;
use schedlab_sim::explain::{
    self, CpuMeanwhile, ExplainResult, FactValue, Query, Question, StatedCandidate, StatedContest,
    StatedDecision, StatedFact, StatedWait,
};

/// Maximum number of tasks of one CPU that a wait shows; the others are summed up.
const RAN_SHOWN: usize = 8;
/// Maximum number of CPUs that a wait shows.
const CPUS_SHOWN: usize = 8;

/// Runs the command.
pub fn explain(args: &ExplainArgs, out: &mut Out) -> CliResult<()> {
    let mut lane = machine::sim_lane(&args.machine)?;
    let known = Schedulers::new(&args.machine.scx, &args.machine.tunables)?;
    let nr_cpus = machine::nr_cpus(&lane, args.cpus)?;
    let named = input::workload(&args.workload, &args.tasks, nr_cpus)?;
    let [scheduler] = &args.scheduler[..] else {
        return Err(CliError::usage_help(
            format!("an explanation is about one run, here are {}", args.scheduler.len()),
            "give one scheduler",
        ));
    };
    known.check_settings(std::iter::once(scheduler.as_str()))?;
    let request = sim::request(&sim_args(args), &known, &named, nr_cpus, scheduler, 0)?;
    lane.schedulers = known.compiled();
    machine::say_free(&lane, std::iter::once(request.scheduler.as_str()));
    let query = Query {
        question: question(args),
        cpu: args.cpu.map(CpuId),
        decisions_max: args.limit as usize,
        candidates_max: args.candidates as usize,
    };
    let (request, warning) = request.bounded(LaneKind::Sim);
    warning.iter().for_each(|warning| say(format!("warning: {}", warning.text)));
    let answer = explain::explain(&lane, &request, &query)?;
    if args.json {
        return out.json(&answer);
    }
    print(&answer, out)
}

/// The options of `explain` as those of `sim`.
fn sim_args(args: &ExplainArgs) -> SimArgs {
    SimArgs {
        workload: args.workload.clone(),
        scheduler: args.scheduler.clone(),
        cpus: args.cpus,
        repetitions: 1,
        switch_jitter: None,
        watch: false,
        tasks: args.tasks.clone(),
        machine: args.machine.clone(),
        output: OutputArgs::default(),
        inspect: crate::commands::InspectArgs::default(),
        user: crate::commands::ScxUserArgs::default(),
    }
}

fn question(args: &ExplainArgs) -> Question {
    match (args.at, &args.task, args.from, args.to) {
        (Some(at), ..) => Question::At(at),
        (None, Some(task), ..) => Question::Task(task.clone(), args.nth),
        (None, None, None, None) => Question::LongestWait,
        (None, None, from, to) => Question::Between(from.unwrap_or(0), to.unwrap_or(u64::MAX)),
    }
}

fn print(answer: &ExplainResult, out: &mut Out) -> CliResult<()> {
    let cpus = counted(answer.nr_cpus, "CPU", "CPUs");
    out.line(format!(
        "{} under {}: simulated, {cpus}, seed {}, schedlab {}",
        answer.workload, answer.scheduler, answer.seed, answer.schedlab_version
    ))?;
    let question = match &answer.wait {
        Some(_) => answer.question.clone(),
        None => format!(
            "{}, {}",
            answer.question,
            counted(answer.decisions.len() as u64, "choice", "choices")
        ),
    };
    out.line(format!("Asked: {question}"))?;
    if let Some(wait) = &answer.wait {
        print_wait(wait, out)?;
    }
    for decision in &answer.decisions {
        out.line("")?;
        print_decision(decision, out)?;
    }
    if answer.nr_decisions_omitted > 0 {
        let count = answer.nr_decisions_omitted;
        let place = if answer.wait.is_some() { " before the last one" } else { "" };
        out.line(format!("\n{count} more choices{place} are left out; --limit shows more"))?;
    }
    Ok(())
}

fn print_wait(wait: &StatedWait, out: &mut Out) -> CliResult<()> {
    let waker = wait.waker.as_ref().map(|waker| format!(" by {waker}")).unwrap_or_default();
    let end = match wait.end_ns {
        Some(end) => format!("until {}, when it got a CPU", duration(end)),
        None => "and never got a CPU before the run ended".into(),
    };
    out.line(format!(
        "\n{} waited {} from {} ({}{waker}) {end}; wait {} of {}.",
        wait.name,
        duration(wait.wait_ns),
        duration(wait.start_ns),
        wait.began_by,
        wait.nth,
        wait.nr_waits
    ))?;
    let mut rows = table::table(&["meanwhile on", "task", "ran", "of the wait", "stays"]);
    for cpu in wait.cpus.iter().take(CPUS_SHOWN) {
        add_cpu(&mut rows, cpu, wait.wait_ns);
    }
    out.line(table::render(&rows))?;
    let hidden = wait.cpus.len().saturating_sub(CPUS_SHOWN);
    if hidden > 0 {
        let idle = wait.cpus[CPUS_SHOWN..].iter().filter(|cpu| cpu.is_allowed && cpu.idle_ns > 0);
        out.line(format!("... and {hidden} more CPUs, {} of them idle for a time", idle.count()))?;
    }
    Ok(())
}

fn add_cpu(rows: &mut comfy_table::Table, cpu: &CpuMeanwhile, wait_ns: u64) {
    let mut head = format!("CPU {}", cpu.cpu);
    if cpu.waited_here_ns > 0 {
        head += ", its own";
    } else if !cpu.is_allowed {
        head += ", not allowed";
    }
    let part = |ns: u64| percent(if wait_ns == 0 { 0.0 } else { ns as f64 / wait_ns as f64 });
    let mut row = |name: &str, ns: u64, stays: String| {
        let head = std::mem::take(&mut head);
        rows.add_row([
            comfy_table::Cell::new(head),
            comfy_table::Cell::new(name),
            number(duration(ns)),
            number(part(ns)),
            number(stays),
        ]);
    };
    for ran in cpu.ran.iter().take(RAN_SHOWN) {
        row(&ran.name, ran.ran_ns, ran.nr_slices.to_string());
    }
    if cpu.ran.len() > RAN_SHOWN {
        let rest = &cpu.ran[RAN_SHOWN..];
        let ns = rest.iter().map(|ran| ran.ran_ns).sum();
        let stays: u64 = rest.iter().map(|ran| ran.nr_slices).sum();
        row(&format!("{} others", rest.len()), ns, stays.to_string());
    }
    if cpu.idle_ns > 0 || cpu.ran.is_empty() {
        row("(idle)", cpu.idle_ns, String::new());
    }
}

pub(super) fn print_decision(decision: &StatedDecision, out: &mut Out) -> CliResult<()> {
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "idle".into());
    let what = match (&decision.next_name, decision.prev == decision.next) {
        (Some(next), true) => format!("{next} goes on"),
        _ => format!("{} -> {}", name(&decision.prev_name), name(&decision.next_name)),
    };
    out.line(format!("{}, CPU {}: {what}", time(decision.time_ns), decision.cpu))?;
    let cause = &decision.cause;
    out.line(format!("  because {}{}", cause.text, listed(&cause.facts, ": ")))?;
    if !cause.facts_before.is_empty() {
        out.line(format!("  before the tick{}", listed(&cause.facts_before, ": ")))?;
    }
    for contest in &decision.contests {
        let silent = contest.rule == "empty" && decision.contests.len() > 1;
        if !silent {
            print_contest(contest, out)?;
        }
    }
    Ok(())
}

/// A time in ms, exact to the nanosecond, because users look up choices by it.
pub(super) fn time(ns: u64) -> String {
    format!("{}.{:06} ms", ns / 1_000_000, ns % 1_000_000)
}

fn print_contest(contest: &StatedContest, out: &mut Out) -> CliResult<()> {
    let group = contest.group.as_ref().map(|path| format!(", group {path}")).unwrap_or_default();
    out.line(format!(
        "  class {}{group}: {}{}",
        contest.class,
        contest.rule_text,
        listed(&contest.facts, "; ")
    ))?;
    if contest.candidates.is_empty() {
        return Ok(());
    }
    // Columns in order of first appearance. The running task has more values than the others.
    let mut names: Vec<&str> = Vec::new();
    for fact in contest.candidates.iter().flat_map(|candidate| &candidate.facts) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    let mut heads = vec!["", "candidate", ""];
    heads.extend(&names);
    let mut rows = table::table(&heads);
    for candidate in &contest.candidates {
        rows.add_row(candidate_row(candidate, &names));
    }
    for line in table::render(&rows).lines() {
        out.line(format!("    {line}"))?;
    }
    if contest.nr_omitted > 0 {
        out.line(format!("    ... and {} more; --candidates shows more", contest.nr_omitted))?;
    }
    Ok(())
}

fn candidate_row(candidate: &StatedCandidate, names: &[&str]) -> Vec<comfy_table::Cell> {
    let mark = if candidate.chosen { "->" } else { "" };
    let state = match (candidate.running, candidate.considered) {
        (true, _) => "running",
        (false, true) => "",
        (false, false) => "not considered",
    };
    let mut row = vec![
        comfy_table::Cell::new(mark),
        comfy_table::Cell::new(&candidate.name),
        comfy_table::Cell::new(state),
    ];
    for name in names {
        let fact = candidate.facts.iter().find(|fact| fact.name == *name);
        row.push(number(fact.map(value).unwrap_or_default()));
    }
    row
}

/// `: a 1.5 ms, b 7`, or an empty text.
fn listed(facts: &[StatedFact], before: &str) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let parts: Vec<String> =
        facts.iter().map(|fact| format!("{} {}", fact.name, value(fact))).collect();
    format!("{before}{}", parts.join(", "))
}

/// A value for people. Times keep every digit, so that two times 1 ns apart look different.
fn value(fact: &StatedFact) -> String {
    match &fact.value {
        FactValue::Number(i64::MAX) if fact.unit == "ns" => "unknown".into(),
        FactValue::Number(n) if !fact.unit.is_empty() => {
            let sign = if *n < 0 { "-" } else { "" };
            let n = n.unsigned_abs();
            format!("{sign}{}.{:06} ms", n / 1_000_000, n % 1_000_000)
        }
        FactValue::Number(n) => n.to_string(),
        FactValue::Flag(true) => "yes".into(),
        FactValue::Flag(false) => "no".into(),
        FactValue::Word(word) => word.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit_and_their_sign() {
        let fact = |value, unit: &str| StatedFact { name: "x".into(), value, unit: unit.into() };
        assert_eq!(value(&fact(FactValue::Number(-1_500_001), "vns")), "-1.500001 ms");
        assert_eq!(value(&fact(FactValue::Number(i64::MAX), "ns")), "unknown");
        assert_eq!(value(&fact(FactValue::Number(1024), "")), "1024");
        assert_eq!(value(&fact(FactValue::Flag(false), "")), "no");
        assert_eq!(time(12_000_345), "12.000345 ms");
    }
}
