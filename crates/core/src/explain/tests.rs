// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers whose truth is known by hand.

use super::*;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Costs, TaskSpec, Workload};

const MS: Nanos = 1_000_000;

/// Three jobs of 30, 10 and 20 ms on one CPU, nothing costs time.
fn request(scheduler: &str, nr_cpus: u32) -> RunRequest {
    let job = |name: &str, ms: u64| TaskSpec::new(name, ProgramBuilder::new().run(ms * MS).build());
    let workload = Workload::new("jobs", vec![job("a", 30), job("b", 10), job("c", 20)]);
    RunRequest::new(workload, scheduler, CpuMask::first(nr_cpus))
}

fn ask(scheduler: &str, nr_cpus: u32, question: Question) -> Result<ExplainResult, LaneError> {
    let lane = SimLane { costs: Some(Costs::ZERO), ..SimLane::default() };
    let query = Query { question, cpu: None, decisions_max: 20, candidates_max: 16 };
    explain(&lane, &request(scheduler, nr_cpus), &query)
}

#[test]
fn the_one_who_waits_longest_is_told_who_ran() {
    let answer = ask("fcfs", 1, Question::LongestWait).unwrap();
    let wait = answer.wait.unwrap();
    assert_eq!((wait.name.as_str(), wait.wait_ns, wait.nth), ("c", 40 * MS, 1));
    assert_eq!((wait.began_by.as_str(), wait.end_ns), ("released", Some(40 * MS)));
    let ran: Vec<(&str, u64)> =
        wait.cpus[0].ran.iter().map(|ran| (ran.name.as_str(), ran.ran_ns)).collect();
    assert_eq!(ran, [("a", 30 * MS), ("b", 10 * MS)]);
    assert_eq!((wait.cpus[0].idle_ns, wait.cpus[0].waited_here_ns), (0, 40 * MS));
    let last = answer.decisions.last().unwrap();
    assert_eq!((last.next_name.as_deref(), last.time_ns), (Some("c"), 40 * MS));
}

#[test]
fn shortest_job_first_shows_the_bursts() {
    let chosen = |at| {
        let answer = ask("sjf", 1, Question::At(at)).unwrap();
        let [decision] = &answer.decisions[..] else { panic!("{:?}", answer.decisions) };
        decision.clone()
    };
    let left = |candidate: &StatedCandidate| {
        let fact = candidate.facts.iter().find(|fact| fact.name == "burst_left").unwrap();
        (candidate.name.clone(), fact.value.clone(), candidate.chosen)
    };
    let first = chosen(5 * MS);
    assert_eq!((first.time_ns, first.cause.kind.as_str()), (0, "woken"));
    let numbers: Vec<_> = first.contests[0].candidates.iter().map(left).collect();
    let number = |ms: i64| FactValue::Number(ms * MS as i64);
    let want = [("b", number(10), true), ("c", number(20), false), ("a", number(30), false)];
    assert_eq!(numbers, want.map(|(name, value, chosen)| (name.into(), value, chosen)));
    assert_eq!(first.contests[0].keys, ["burst_left", "position"]);
    let second = chosen(30 * MS - 1);
    assert_eq!((second.next_name.as_deref(), second.time_ns), (Some("c"), 10 * MS));
    let third = chosen(35 * MS);
    assert_eq!((third.next_name.as_deref(), third.contests[0].rule.as_str()), (Some("a"), "alone"));
    assert_eq!(third.cause.kind, "left");
}

#[test]
fn a_window_holds_its_choices() {
    let answer = ask("rr", 1, Question::Between(0, 60 * MS)).unwrap();
    assert!(answer.decisions.len() >= 3);
    assert!(answer.decisions.is_sorted_by_key(|decision| decision.time_ns));
    assert_eq!(answer.nr_decisions_omitted, 0);
}

#[test]
fn an_idle_cpu_beside_the_wait_is_told() {
    let mut request = request("fcfs", 2);
    let mut only_0 = CpuMask::empty();
    only_0.set(CpuId(0));
    for task in &mut request.workload.tasks {
        task.attr.affinity = Some(only_0);
    }
    let lane = SimLane { costs: Some(Costs::ZERO), ..SimLane::default() };
    let question = Question::Task("c".into(), Some(1));
    let query = Query { question, cpu: None, decisions_max: 20, candidates_max: 16 };
    let wait = explain(&lane, &request, &query).unwrap().wait.unwrap();
    let other = &wait.cpus[1];
    assert_eq!((other.cpu, other.is_allowed, other.idle_ns), (1, false, 40 * MS));
}

#[test]
fn questions_without_an_answer_say_why() {
    let error = |question| ask("fcfs", 1, question).unwrap_err().to_string();
    assert!(error(Question::Task("x".into(), None)).contains("the run has a, b, c"));
    assert!(error(Question::Task("b".into(), Some(2))).contains("it waited 1 times"));
    assert!(error(Question::At(61 * MS)).contains("ends at 60000000 ns"));
}

/// The machine's threads have the first numbers.
#[test]
fn threads_of_the_kernel_do_not_shift_the_names() {
    let machine = crate::machine::preset("guest-counted").map(std::sync::Arc::new);
    assert!(machine.as_ref().is_some_and(|spec| !spec.machine.threads.is_empty()));
    let lane = SimLane { machine, ..SimLane::default() };
    let question = Question::Task("c".into(), None);
    let query = Query { question, cpu: None, decisions_max: 20, candidates_max: 16 };
    let answer = explain(&lane, &request("linux-6.12", 1), &query).unwrap();
    assert_eq!(answer.wait.unwrap().name, "c");
    let last = answer.decisions.last().unwrap();
    assert_eq!(last.next_name.as_deref(), Some("c"));
    let contests = answer.decisions.iter().flat_map(|decision| &decision.contests);
    let known = ["a", "b", "c", "schedlab-launch", "rcu_preempt"];
    for candidate in contests.flat_map(|contest| &contest.candidates) {
        assert!(known.contains(&candidate.name.as_str()), "{}", candidate.name);
    }
}
