// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison as data: what `diff --json` prints.

use super::{Party, group_path};
use crate::commands::explain::time;
use schedlab_check::{
    Agreement, Choice, Diff, DiffError, Difference, Kind, Setting, StateDifference,
};
use schedlab_lab::versus::Versus;
use schedlab_model::EventKind;
use schedlab_sched::boundary::explain::{Value, Who};
use schedlab_sim::explain::{FactValue, StatedDecision, stated};
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the form of [`DiffResult`].
const SCHEMA_VERSION: u32 = 1;

/// What `diff --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffResult {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the program.
    pub schedlab_version: String,
    /// The schedulers: A, B.
    pub schedulers: Vec<DiffScheduler>,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// CPUs of the modelled machine.
    pub nr_cpus: u32,
    /// Whether all decisions are the same.
    pub same: bool,
    /// The result in a sentence.
    pub sentence: String,
    /// Decisions before the first that differs: switches, placements and migrations.
    pub nr_equal: u64,
    /// End of the comparison (ns).
    pub end_ns: u64,
    /// The first decision that differs.
    pub first: Option<FirstDifference>,
    /// The first number of the schedulers' states that differs.
    pub state: Option<FirstState>,
    /// When A and B first chose different tasks that are equal (ns).
    pub renamed_ns: Option<u64>,
    /// How often B disagrees if it follows A's decisions.
    pub followed: Option<Followed>,
    /// With `--seeds`: the measures of B compared with those of A.
    pub measures: Option<Versus>,
    /// With `--random`: the seed of the workload that was made small.
    pub found_at_seed: Option<u64>,
    /// With `--random`: the workload file.
    pub workload_text: Option<String>,
    /// With `--random`: the command that compares it.
    #[serde(rename = "command")]
    pub file: Option<String>,
}

/// A scheduler of the comparison.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffScheduler {
    /// Its name.
    pub name: String,
    /// Its tunables that were set.
    pub tunables: Vec<(String, String)>,
    /// The preemption model of its machine.
    pub preempt: String,
}

/// The first decision that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FirstDifference {
    /// Time (ns).
    pub time_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// `pick`, `switch`, `placement` or `migration`.
    pub kind: String,
    /// What A and B did.
    pub sides: Vec<DiffSide>,
}

/// What one scheduler did at the first difference.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffSide {
    /// What it did, in words.
    pub did: String,
    /// The task that the CPU runs afterwards; `None`: idle.
    pub running: Option<String>,
    /// Whether it picked at this time.
    pub picked_now: bool,
    /// Its last pick on the CPU up to this time.
    pub decision: Option<StatedDecision>,
    /// For each CPU the running task, and the number of tasks that wait.
    pub cpus: Vec<(Option<String>, usize)>,
}

/// The first number that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FirstState {
    /// Time (ns).
    pub time_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// Name of the task, or path of the group, under A.
    pub who: String,
    /// Name of the number.
    pub field: String,
    /// `ns`, `vns` (virtual time: ns at nice 0), or empty.
    pub unit: String,
    /// Its value under A and under B.
    pub values: Vec<FactValue>,
    /// Whether the values are relative to the least virtual runtime of the queue.
    pub is_relative: bool,
    /// The difference in words.
    pub sentence: String,
}

/// How often B disagrees if it follows A's decisions and keeps its own books.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Followed {
    /// Picks of CPUs with two or more tasks.
    pub nr_decisions: u64,
    /// Picks in which B would choose otherwise.
    pub nr_differing: u64,
    /// Both switch, to different tasks.
    pub nr_other_task: u64,
    /// Only A preempts the running task.
    pub nr_only_a: u64,
    /// Only B would preempt it.
    pub nr_only_b: u64,
    /// Up to when they were counted (ns).
    pub until_ns: u64,
    /// Why they were not counted up to the end, or not at all.
    pub stopped: Option<String>,
}

/// What was compared.
pub struct Compared<'c> {
    pub setting: &'c Setting<'c>,
    pub parties: &'c [Party; 2],
    pub preempt: [String; 2],
    pub nr_cpus: u32,
}

impl DiffResult {
    /// The result of a comparison.
    pub fn new(
        compared: &Compared<'_>,
        diff: &Diff,
        agreement: Option<Result<Agreement, DiffError>>,
    ) -> Self {
        let first = diff.first.as_ref().map(|first| stated_first(compared, diff, first));
        let schedulers = compared.parties.iter().zip(&compared.preempt);
        let schedulers: Vec<DiffScheduler> = schedulers
            .map(|(party, preempt)| DiffScheduler {
                name: party.subject.scheduler.name.to_string(),
                tunables: party.tunables.clone(),
                preempt: preempt.clone(),
            })
            .collect();
        Self {
            schema_version: SCHEMA_VERSION,
            schedlab_version: env!("CARGO_PKG_VERSION").into(),
            workload: compared.setting.workload.name.clone(),
            seed: compared.setting.seed,
            nr_cpus: compared.nr_cpus,
            same: first.is_none(),
            sentence: sentence(diff, first.as_ref()),
            nr_equal: diff.nr_equal,
            end_ns: diff.end_ns,
            state: diff.state.as_ref().map(|state| stated_state(compared, diff, state)),
            renamed_ns: diff.renamed_ns,
            followed: agreement.map(stated_agreement),
            measures: None,
            found_at_seed: None,
            workload_text: None,
            file: None,
            schedulers,
            first,
        }
    }
}

fn sentence(diff: &Diff, first: Option<&FirstDifference>) -> String {
    match first {
        None if diff.renamed_ns.is_some() => format!(
            "A and B make the same {} decisions up to {}, except for the choice among equal tasks.",
            diff.nr_equal,
            time(diff.end_ns)
        ),
        None => format!(
            "A and B make the same {} decisions up to the end, {}.",
            diff.nr_equal,
            time(diff.end_ns)
        ),
        Some(first) => format!(
            "After {} equal decisions, at {} on CPU {}: A {}, B {}.",
            diff.nr_equal,
            time(first.time_ns),
            first.cpu,
            first.sides[0].did,
            first.sides[1].did
        ),
    }
}

fn stated_first(compared: &Compared<'_>, diff: &Diff, first: &Difference) -> FirstDifference {
    let side = |index: usize| {
        let (names, choice) = (&diff.names[index], &first.sides[index]);
        let name = |task: schedlab_model::TaskId| names[task.index()].clone();
        let pick = choice.pick.as_ref();
        DiffSide {
            did: did(first.kind, choice, names),
            running: choice.running.map(name),
            picked_now: pick.is_some_and(|pick| pick.time_ns == first.time_ns),
            decision: pick.map(|pick| stated(pick, names, compared.setting.workload)),
            cpus: choice.cpus.iter().map(|(task, waiting)| (task.map(name), *waiting)).collect(),
        }
    };
    FirstDifference {
        time_ns: first.time_ns,
        cpu: first.cpu.0,
        kind: first.kind.name().into(),
        sides: vec![side(0), side(1)],
    }
}

/// What a side did, as the rest of a sentence.
fn did(kind: Kind, choice: &Choice, names: &[String]) -> String {
    let name = |task: schedlab_model::TaskId| names[task.index()].as_str();
    let Some(event) = choice.event else {
        return match (kind, choice.running) {
            (Kind::Migration, _) => "moves no task".into(),
            (_, Some(running)) => format!("lets {} run on", name(running)),
            (_, None) => "leaves the CPU idle".into(),
        };
    };
    match event.kind {
        EventKind::Switch { next: Some(next), .. } => format!("picks {}", name(next)),
        EventKind::Switch { next: None, .. } => "lets the CPU become idle".into(),
        EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
            format!("places {} on CPU {}", name(task), event.cpu)
        }
        EventKind::Migrate { task, from } => {
            format!("moves {} from CPU {from} to CPU {}", name(task), event.cpu)
        }
        _ => "goes on".into(),
    }
}

fn stated_state(compared: &Compared<'_>, diff: &Diff, state: &StateDifference) -> FirstState {
    let who = match state.who[0] {
        Who::Task(task) => diff.names[0][task.index()].clone(),
        Who::Group(group) => format!("group {}", group_path(compared.setting.workload, group.0)),
    };
    let values = state.values.map(|value| match value {
        Value::Number(number) => FactValue::Number(number),
        Value::Flag(flag) => FactValue::Flag(flag),
        Value::Word(word) => FactValue::Word(word.into()),
    });
    let relative = match state.is_relative {
        true => ", counted from the least virtual runtime of the queue",
        false => "",
    };
    let [a, b] = values.each_ref().map(|value| shown(value, state.unit));
    let sentence = format!(
        "At {} on CPU {} the {} of {who} is {a} under A and {b} under B{relative}.",
        time(state.time_ns),
        state.cpu,
        meaning(state.field)
    );
    FirstState {
        time_ns: state.time_ns,
        cpu: state.cpu.0,
        who,
        field: state.field.into(),
        unit: state.unit.into(),
        values: values.into(),
        is_relative: state.is_relative,
        sentence,
    }
}

/// The number in words.
fn meaning(field: &str) -> String {
    let words = match field {
        "vruntime" => "virtual runtime (CPU time divided by weight)",
        "deadline" => "virtual deadline (when its slice should be served)",
        "lag" => "lag (service that it is owed)",
        "slice" => "slice (CPU time of one request)",
        "weight" => "weight (share of the CPU, from its nice value or cpu.weight)",
        "eligible" => "eligibility (whether it is owed service)",
        "protected" => "protection (whether others may not preempt it yet)",
        "protected_until" => "end of its protection from preemption",
        "dequeue_delayed" => "delayed dequeue (whether it sleeps, but stays in the queue)",
        "ticks_left" => "rest of its time slice (ticks)",
        "prio" => "priority",
        other => other,
    };
    words.into()
}

fn shown(value: &FactValue, unit: &str) -> String {
    match value {
        FactValue::Number(number) if !unit.is_empty() => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", time(number.unsigned_abs()))
        }
        FactValue::Number(number) => number.to_string(),
        FactValue::Flag(true) => "yes".into(),
        FactValue::Flag(false) => "no".into(),
        FactValue::Word(word) => word.clone(),
    }
}

fn stated_agreement(agreement: Result<Agreement, DiffError>) -> Followed {
    match agreement {
        Ok(Agreement { counts, until_ns, stopped }) => Followed {
            nr_decisions: counts.nr_decisions,
            nr_differing: counts.nr_differing(),
            nr_other_task: counts.nr_other_task,
            nr_only_a: counts.nr_only_first,
            nr_only_b: counts.nr_only_second,
            until_ns,
            stopped,
        },
        Err(error) => Followed { stopped: Some(error.to_string()), ..Followed::default() },
    }
}
