// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers questions about a simulated run: why a task was picked at a time, and what kept a task
//! waiting.
//!
//! The run is simulated twice. The first run finds the pick or the wait in question. The second is
//! the same to the nanosecond, and asks the classes for their numbers only there. A question
//! therefore costs two plain runs, however long the queues are.

mod result;
mod waits;

pub use result::{
    CpuMeanwhile, EXPLAIN_SCHEMA_VERSION, ExplainResult, FactValue, RanMeanwhile, StatedCandidate,
    StatedCause, StatedContest, StatedDecision, StatedFact, StatedWait,
};

use crate::SimLane;
use result::Names;
use schedlab_engine::{Decision, Observer};
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Workload};
use schedlab_run::{Keep, LaneError, RunRequest, RunResult};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::Explanation;
use std::collections::BTreeSet;
use waits::{Wait, WaitFinder, Wanted, Witness};

/// A question about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// What each CPU runs at this time, and why: its last pick up to then.
    At(Nanos),
    /// Every pick from the first time to the second.
    Between(Nanos, Nanos),
    /// The n-th wait of the task with this name, or its longest.
    Task(String, Option<u64>),
    /// The longest wait of any task.
    LongestWait,
}

/// A question, and limits of the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// The question.
    pub question: Question,
    /// Only picks of this CPU.
    pub cpu: Option<CpuId>,
    /// Most picks in the answer.
    pub decisions_max: usize,
    /// Most candidates of a pick, in addition to the picked and the running task.
    pub candidates_max: usize,
}

/// Answers `query` about the run that `request` describes.
pub fn explain(
    lane: &SimLane,
    request: &RunRequest,
    query: &Query,
) -> Result<ExplainResult, LaneError> {
    let request = RunRequest { keep: Keep::NOTHING, ..request.clone() };
    let nr_cpus = request.cpus.weight();
    if let Some(cpu) = query.cpu.filter(|cpu| cpu.0 >= nr_cpus) {
        return Err(LaneError::Input(format!(
            "there is no CPU {cpu}: the machine has CPUs 0 to {}",
            nr_cpus - 1
        )));
    }
    match &query.question {
        Question::At(at) => explain_at(lane, &request, query, *at),
        Question::Between(from, to) => {
            let mut watch = Watcher::new(query, Pick::Between(*from, *to), None);
            let (result, names) = run(lane, &request, &mut watch)?;
            let question = format!("every choice from {from} ns to {to} ns");
            Ok(answer(&request, &result, &names, question, watch))
        }
        Question::Task(name, nth) => {
            explain_wait(lane, &request, query, Wanted::Of(name.clone(), *nth))
        }
        Question::LongestWait => explain_wait(lane, &request, query, Wanted::Longest),
    }
}

/// A pick as `schedlab explain` states it. `tasks` are the names of the tasks.
pub fn stated(decision: &Decision, tasks: &[String], workload: &Workload) -> StatedDecision {
    let groups = workload.cgroups.iter().map(|group| group.path.as_str()).collect();
    Names { tasks, groups }.decision(decision)
}

/// The picks that are wanted.
#[derive(Debug)]
enum Pick {
    /// None yet; counts up to the last one of each CPU before a time.
    Last(Nanos),
    /// These, by CPU and number.
    Numbered(BTreeSet<(u32, u64)>),
    /// Those between two times.
    Between(Nanos, Nanos),
    /// Those on these CPUs between two times; if there are too many, the last one is kept.
    During(CpuMask, Nanos, Nanos),
}

/// The observer of both runs.
#[derive(Debug)]
struct Watcher {
    pick: Pick,
    cpu: Option<CpuId>,
    decisions_max: usize,
    candidates_max: usize,
    focus: Option<TaskId>,
    /// Number of picks of each CPU so far.
    count: Vec<u64>,
    /// Number of the last pick of each CPU up to the time in question.
    last: Vec<Option<u64>>,
    decisions: Vec<Decision>,
    nr_omitted: u64,
    /// CPUs that the task in question may use, at the last pick.
    allowed: Option<CpuMask>,
}

impl Watcher {
    fn new(query: &Query, pick: Pick, focus: Option<TaskId>) -> Self {
        Self {
            pick,
            cpu: query.cpu,
            decisions_max: query.decisions_max.max(1),
            candidates_max: query.candidates_max,
            focus,
            count: Vec::new(),
            last: Vec::new(),
            decisions: Vec::new(),
            nr_omitted: 0,
            allowed: None,
        }
    }

    fn slot(&mut self, cpu: CpuId) -> usize {
        if self.count.len() <= cpu.index() {
            self.count.resize(cpu.index() + 1, 0);
            self.last.resize(cpu.index() + 1, None);
        }
        cpu.index()
    }

    fn is_picked(&self, now: Nanos, cpu: CpuId, number: u64) -> bool {
        if self.cpu.is_some_and(|only| only != cpu) {
            return false;
        }
        match &self.pick {
            Pick::Last(_) => false,
            Pick::Numbered(set) => set.contains(&(cpu.0, number)),
            Pick::Between(from, to) => (*from..=*to).contains(&now),
            Pick::During(cpus, from, to) => cpus.contains(cpu) && (*from..=*to).contains(&now),
        }
    }
}

impl Observer for Watcher {
    fn wants(&mut self, now: Nanos, cpu: CpuId) -> Option<Explanation> {
        let index = self.slot(cpu);
        let number = self.count[index];
        self.is_picked(now, cpu, number).then(|| Explanation::new(self.candidates_max, self.focus))
    }

    fn decided(&mut self, core: &Core, decision: Decision) {
        let (now, cpu) = (decision.time_ns, decision.cpu);
        let index = self.slot(cpu);
        let number = self.count[index];
        self.count[index] += 1;
        if let Pick::Last(at) = self.pick
            && now <= at
        {
            self.last[index] = Some(number);
        }
        if !self.is_picked(now, cpu, number) {
            return;
        }
        if let Some(focus) = self.focus {
            self.allowed = core.tasks.get(focus.index()).map(|task| *task.cpus_allowed);
        }
        // A wait is explained by the choice that ended it: that one stays.
        let is_during = matches!(self.pick, Pick::During(..));
        if self.decisions.len() >= self.decisions_max {
            self.nr_omitted += 1;
            if !is_during {
                return;
            }
            self.decisions.pop();
        }
        let ends = is_during && decision.next == self.focus;
        self.decisions.push(decision);
        if ends && let Pick::During(_, from, _) = self.pick {
            self.pick = Pick::During(CpuMask::empty(), from, from);
        }
    }
}

/// An observer that wants nothing. With it, tasks have the numbers that they have for others,
/// which count the threads of the machine's kernel.
struct Nobody;

impl Observer for Nobody {
    fn wants(&mut self, _now: Nanos, _cpu: CpuId) -> Option<Explanation> {
        None
    }

    fn decided(&mut self, _core: &Core, _decision: Decision) {}
}

fn run(
    lane: &SimLane,
    request: &RunRequest,
    watcher: &mut Watcher,
) -> Result<(RunResult, Vec<String>), LaneError> {
    let mut finder = WaitFinder::new(Wanted::Longest);
    let result = lane.run_observed(request, &mut finder, Some(watcher))?;
    Ok((result, finder.names))
}

fn answer(
    request: &RunRequest,
    result: &RunResult,
    names: &[String],
    question: String,
    watcher: Watcher,
) -> ExplainResult {
    let groups = request.workload.cgroups.iter().map(|group| group.path.as_str()).collect();
    let names = Names { tasks: names, groups };
    ExplainResult {
        schema_version: EXPLAIN_SCHEMA_VERSION,
        schedlab_version: result.schedlab_version.clone(),
        scheduler: result.scheduler.clone(),
        workload: result.workload.clone(),
        seed: request.seed,
        nr_cpus: request.cpus.weight(),
        end_ns: result.measures.totals.end_ns,
        question,
        wait: None,
        decisions: watcher.decisions.iter().map(|decision| names.decision(decision)).collect(),
        nr_decisions_omitted: watcher.nr_omitted,
    }
}

fn explain_at(
    lane: &SimLane,
    request: &RunRequest,
    query: &Query,
    at: Nanos,
) -> Result<ExplainResult, LaneError> {
    let mut first = Watcher::new(query, Pick::Last(at), None);
    let (result, _) = run(lane, request, &mut first)?;
    let end = result.measures.totals.end_ns;
    if at > end {
        return Err(LaneError::Input(format!(
            "the run ends at {end} ns, before {at} ns: ask for a time up to its end"
        )));
    }
    let numbers = first.last.iter().enumerate();
    let wanted = numbers.filter_map(|(cpu, number)| Some((cpu as u32, (*number)?))).collect();
    let mut second = Watcher::new(query, Pick::Numbered(wanted), None);
    let (result, names) = run(lane, request, &mut second)?;
    let question = format!("what runs at {at} ns, and why");
    Ok(answer(request, &result, &names, question, second))
}

fn explain_wait(
    lane: &SimLane,
    request: &RunRequest,
    query: &Query,
    wanted: Wanted,
) -> Result<ExplainResult, LaneError> {
    let mut finder = WaitFinder::new(wanted.clone());
    lane.run_observed(request, &mut finder, Some(&mut Nobody))?;
    let wait = found(&finder, &wanted)?;
    let mut witness = Witness::new(wait.clone(), request.cpus.weight());
    let pick = Pick::During(wait.cpus, wait.start_ns, wait.end_ns);
    let mut watcher = Watcher::new(query, pick, Some(wait.task));
    let result = lane.run_observed(request, &mut witness, Some(&mut watcher))?;
    let name = |task: TaskId| finder.names.get(task.index()).cloned().unwrap_or_default();
    let all = CpuMask::first(request.cpus.weight());
    let stated = StatedWait {
        task: wait.task.0,
        name: name(wait.task),
        nth: wait.nth,
        nr_waits: finder.nr_waits[wait.task.index()],
        start_ns: wait.start_ns,
        end_ns: wait.ended.then_some(wait.end_ns),
        wait_ns: wait.length_ns(),
        began_by: wait.began_by.into(),
        waker: wait.waker.map(name),
        cpus: witness.finish(&watcher.allowed.unwrap_or(all), name),
    };
    let question = match &wanted {
        Wanted::Longest => "the longest wait of any task".into(),
        Wanted::Of(name, None) => format!("the longest wait of {name}"),
        Wanted::Of(name, Some(nth)) => format!("wait number {nth} of {name}"),
    };
    let answer = answer(request, &result, &finder.names, question, watcher);
    Ok(ExplainResult { wait: Some(stated), ..answer })
}

/// Returns the wait, or an error that tells why there is none.
fn found(finder: &WaitFinder, wanted: &Wanted) -> Result<Wait, LaneError> {
    if let Some(wait) = &finder.found {
        return Ok(wait.clone());
    }
    Err(LaneError::Input(match wanted {
        Wanted::Of(name, _) if !finder.is_known() => {
            let names: Vec<&str> = finder.names.iter().take(30).map(String::as_str).collect();
            let more = finder.names.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("no task is called {name:?}: the run has {}{more}", names.join(", "))
        }
        Wanted::Of(name, Some(nth)) => {
            let waits = finder.names.iter().position(|other| other == name);
            let waits = waits.map_or(0, |index| finder.nr_waits[index]);
            format!("{name:?} has no wait number {nth}: it waited {waits} times")
        }
        _ => "no task waited in this run".into(),
    }))
}

#[cfg(test)]
mod tests;
