// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer to a question as data: the form of `schedlab explain --json`.

use schedlab_engine::{Cause, Decision};
use schedlab_model::TaskId;
use schedlab_sched::boundary::explain::{self, Fact, Value, Who};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Value of a compared number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FactValue {
    /// A number, in the fact's unit.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(String),
}

/// A number that was compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedFact {
    /// Name; the kernel's name if it has one.
    pub name: String,
    /// Value.
    pub value: FactValue,
    /// `ns`, `vns` (virtual time: ns at nice 0), or empty.
    pub unit: String,
}

/// One of the tasks or groups among which a class picked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedCandidate {
    /// Number of the task; `None` for a control group.
    pub task: Option<u32>,
    /// Name of the task, or path of the group.
    pub name: String,
    /// Whether it was running at the time of the pick.
    pub running: bool,
    /// Whether the rule considered it; under EEVDF: whether it was eligible.
    pub considered: bool,
    /// Whether it was picked.
    pub chosen: bool,
    /// Its numbers.
    pub facts: Vec<StatedFact>,
}

/// The pick of one class, or within one control group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedContest {
    /// Class.
    pub class: String,
    /// Path of the control group whose members were compared, if there are several groups.
    pub group: Option<String>,
    /// Kind of rule: `alone`, `least`, `greatest`, `keeps`, `named`, `drawn`, `empty`,
    /// `held-back`.
    pub rule: String,
    /// The rule in words.
    pub rule_text: String,
    /// Names of the numbers that a `least` or `greatest` compares, most important first. `greatest`
    /// takes the greatest of the first, and the least of all others.
    pub keys: Vec<String>,
    /// Numbers of the whole queue.
    pub facts: Vec<StatedFact>,
    /// The candidates.
    pub candidates: Vec<StatedCandidate>,
    /// Number of candidates that are not listed.
    pub nr_omitted: u64,
}

/// Why a CPU picked a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedCause {
    /// `left`, `woken`, `tick`, `timer`, `attr`, `cgroup` or `moved`.
    pub kind: String,
    /// The cause in words.
    pub text: String,
    /// The task that caused it, if any.
    pub task: Option<u32>,
    /// Numbers that were compared; for a tick: after the tick.
    pub facts: Vec<StatedFact>,
    /// For a tick: the running task's numbers before the tick.
    pub facts_before: Vec<StatedFact>,
}

/// One pick of a CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedDecision {
    /// Time (ns).
    pub time_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// The task that ran; `None`: idle.
    pub prev: Option<u32>,
    /// Its name.
    pub prev_name: Option<String>,
    /// The task that runs next; `None`: idle.
    pub next: Option<u32>,
    /// Its name.
    pub next_name: Option<String>,
    /// Why the CPU picked.
    pub cause: StatedCause,
    /// The picks of the classes, from the highest to the one that found a task.
    pub contests: Vec<StatedContest>,
}

/// A task that ran while another task waited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RanMeanwhile {
    /// Number of the task.
    pub task: u32,
    /// Name.
    pub name: String,
    /// How long it ran (ns).
    pub ran_ns: u64,
    /// Number of its slices.
    pub nr_slices: u64,
}

/// What a CPU did while a task waited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuMeanwhile {
    /// CPU.
    pub cpu: u32,
    /// Whether the task may run there.
    pub is_allowed: bool,
    /// How long the task waited on this CPU's queue (ns).
    pub waited_here_ns: u64,
    /// How long the CPU was idle during the wait (ns).
    pub idle_ns: u64,
    /// Tasks that ran there while the task waited on its queue; or, if `waited_here_ns` is 0,
    /// during the wait. The longest is first.
    pub ran: Vec<RanMeanwhile>,
}

/// A wait of a task on a run queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StatedWait {
    /// Number of the task.
    pub task: u32,
    /// Name.
    pub name: String,
    /// Which of the task's waits it was, from 1.
    pub nth: u64,
    /// How many waits it had in the run.
    pub nr_waits: u64,
    /// When the task became runnable, or lost its CPU.
    pub start_ns: u64,
    /// When it got a CPU; `None`: it still waited when the run ended.
    pub end_ns: Option<u64>,
    /// How long it waited.
    pub wait_ns: u64,
    /// Why it began to wait: `released`, `woken`, `preempted` or `yielded`.
    pub began_by: String,
    /// The task that woke or released it; `None`: a timer, a device or the launcher.
    pub waker: Option<String>,
    /// What the CPUs did during the wait; its own first.
    pub cpus: Vec<CpuMeanwhile>,
}

/// The answer to one question about a simulated run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainResult {
    /// Version of this form, [`EXPLAIN_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// schedlab's version.
    pub schedlab_version: String,
    /// Scheduler.
    pub scheduler: String,
    /// Workload.
    pub workload: String,
    /// Seed.
    pub seed: u64,
    /// CPUs of the modelled machine.
    pub nr_cpus: u32,
    /// End of the run.
    pub end_ns: u64,
    /// The question in words.
    pub question: String,
    /// The wait in question.
    pub wait: Option<StatedWait>,
    /// Picks, in order of time.
    pub decisions: Vec<StatedDecision>,
    /// Number of picks that are left out.
    pub nr_decisions_omitted: u64,
}

/// Version of the form of [`ExplainResult`].
pub const EXPLAIN_SCHEMA_VERSION: u32 = 1;

/// Names for numbers.
pub(super) struct Names<'t> {
    pub tasks: &'t [String],
    pub groups: Vec<&'t str>,
}

impl Names<'_> {
    pub fn task(&self, task: TaskId) -> String {
        self.tasks.get(task.index()).cloned().unwrap_or_else(|| format!("task {task}"))
    }

    fn group(&self, group: schedlab_model::CgroupId) -> String {
        self.groups.get(group.0 as usize).map_or_else(|| group.0.to_string(), |p| (*p).into())
    }

    pub fn decision(&self, decision: &Decision) -> StatedDecision {
        let contests = decision.explanation.as_ref().map(|e| e.contests.as_slice());
        StatedDecision {
            time_ns: decision.time_ns,
            cpu: decision.cpu.0,
            prev: decision.prev.map(|task| task.0),
            prev_name: decision.prev.map(|task| self.task(task)),
            next: decision.next.map(|task| task.0),
            next_name: decision.next.map(|task| self.task(task)),
            cause: self.cause(decision),
            contests: contests.unwrap_or_default().iter().map(|c| self.contest(c)).collect(),
        }
    }

    fn contest(&self, contest: &explain::Contest) -> StatedContest {
        let keys = match contest.rule {
            explain::Rule::Least { keys, .. } | explain::Rule::Greatest { keys, .. } => keys,
            _ => &[],
        };
        StatedContest {
            class: contest.class.into(),
            group: contest.group.filter(|_| self.groups.len() > 1).map(|group| self.group(group)),
            rule: contest.rule.kind().into(),
            rule_text: contest.rule.text(),
            keys: keys.iter().map(|key| (*key).into()).collect(),
            facts: facts(&contest.facts),
            candidates: contest.candidates.iter().map(|c| self.candidate(c)).collect(),
            nr_omitted: contest.nr_omitted,
        }
    }

    fn candidate(&self, candidate: &explain::Candidate) -> StatedCandidate {
        let (task, name) = match candidate.who {
            Who::Task(task) => (Some(task.0), self.task(task)),
            Who::Group(group) => (None, format!("group {}", self.group(group))),
        };
        StatedCandidate {
            task,
            name,
            running: candidate.running,
            considered: candidate.considered,
            chosen: candidate.chosen,
            facts: facts(&candidate.facts),
        }
    }

    fn cause(&self, decision: &Decision) -> StatedCause {
        let none: &[Fact] = &[];
        let prev = decision.prev.map_or_else(|| "the CPU".into(), |task| self.task(task));
        let (kind, text, task, after, before) = match &decision.cause {
            Cause::Left(out) => ("left", format!("{prev} left: {}", out.name()), None, none, none),
            Cause::Woken { task, higher_class, facts } => {
                let name = self.task(*task);
                let text = match (decision.prev, higher_class) {
                    (None, _) => format!("{name} became runnable on an idle CPU"),
                    (Some(_), true) => {
                        format!("{name} became runnable: it is of a higher class than {prev}")
                    }
                    (Some(_), false) => format!("{name} became runnable and may preempt {prev}"),
                };
                ("woken", text, Some(task.0), facts.as_slice(), none)
            }
            Cause::Tick { before, after } => {
                let text = format!("the tick asked {prev} to give way");
                ("tick", text, None, after.as_slice(), before.as_slice())
            }
            Cause::Timer { class } => {
                let text = format!("a timer of class {class}: a quantum or period ended");
                ("timer", text, None, none, none)
            }
            Cause::Attr { task } => {
                let text = format!("{} changed its attributes", self.task(*task));
                ("attr", text, Some(task.0), none, none)
            }
            Cause::Group { task } => {
                let text = format!("{} changed a control group", self.task(*task));
                ("cgroup", text, Some(task.0), none, none)
            }
            Cause::Moved => ("moved", "tasks moved between CPUs".into(), None, none, none),
        };
        StatedCause {
            kind: kind.into(),
            text,
            task,
            facts: facts(after),
            facts_before: facts(before),
        }
    }
}

fn facts(facts: &[Fact]) -> Vec<StatedFact> {
    let stated = |fact: &Fact| StatedFact {
        name: fact.name.into(),
        value: match fact.value {
            Value::Number(number) => FactValue::Number(number),
            Value::Flag(flag) => FactValue::Flag(flag),
            Value::Word(word) => FactValue::Word(word.into()),
        },
        unit: fact.unit.into(),
    };
    facts.iter().map(stated).collect()
}
