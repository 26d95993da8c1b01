// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the numbers that two schedulers state of the same queue at the same time.
//!
//! Only numbers that both state are compared. The fair class states virtual times relative to a
//! number of its own (`min_vruntime`), which versions keep differently. They are compared relative
//! to the least virtual runtime of the queue.

use super::labels::Label;
use super::log::Moment;
use schedlab_model::{CgroupId, CpuId, Nanos};
use schedlab_sched::boundary::explain::{Candidate, Contest, Fact, Value, Who};
use std::collections::BTreeMap;

/// Virtual times of the fair class that are relative to a number of the model.
const RELATIVE: [&str; 3] = ["vruntime", "deadline", "protected_until"];

/// Facts that say which pick it was, or what the wake-up of the moment found.
const PASSING: [&str; 1] = ["ran"];

/// The first number that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDifference {
    /// Time (ns).
    pub time_ns: Nanos,
    /// The CPU whose queue it is.
    pub cpu: CpuId,
    /// Class.
    pub class: &'static str,
    /// Control group whose members were compared.
    pub group: Option<CgroupId>,
    /// The task or group under A and under B.
    pub who: [Who; 2],
    /// Name of the number.
    pub field: &'static str,
    /// `ns`, `vns` (virtual time: ns at nice 0), or empty.
    pub unit: &'static str,
    /// Its value under A and under B.
    pub values: [Value; 2],
    /// Whether the values are relative to the least virtual runtime of the queue.
    pub is_relative: bool,
}

/// Whose entity it is, in both runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Task(Label),
    Group(u32),
}

/// The first difference between the picks of two moments at the same time.
pub fn compare(a: &Moment, b: &Moment) -> Option<StateDifference> {
    a.picks.iter().find_map(|(cpu, pick)| {
        let other = b.picks.get(cpu)?;
        let (one, other) = (pick.explanation.as_ref()?, other.explanation.as_ref()?);
        one.contests.iter().find_map(|contest| {
            let matches =
                |other: &&Contest| other.class == contest.class && other.group == contest.group;
            let other = other.contests.iter().find(matches)?;
            let found = compare_contests([(a, contest), (b, other)])?;
            Some(StateDifference { time_ns: a.time_ns, cpu: *cpu, ..found })
        })
    })
}

fn compare_contests(sides: [(&Moment, &Contest); 2]) -> Option<StateDifference> {
    let [(_, contest), _] = sides;
    let [one, other] = sides.map(|(moment, contest)| entities(moment, contest));
    let both: Vec<(&Candidate, &Candidate)> =
        one.iter().filter_map(|(key, one)| Some((*one, *other.get(key)?))).collect();
    let base = |pick: fn(&(&Candidate, &Candidate)) -> i64| both.iter().map(pick).min();
    let bases = [
        base(|(one, _)| one.number("vruntime").unwrap_or(0)),
        base(|(_, other)| other.number("vruntime").unwrap_or(0)),
    ];
    let bases = bases.map(Option::unwrap_or_default);
    both.iter().find_map(|(one, other)| {
        one.facts.iter().find_map(|fact| {
            let twin = |twin: &&Fact| twin.name == fact.name && twin.unit == fact.unit;
            let twin = other.facts.iter().find(twin)?;
            let is_relative = contest.class == "fair" && RELATIVE.contains(&fact.name);
            let values = match is_relative {
                true => [relative(fact.value, bases[0]), relative(twin.value, bases[1])],
                false if fact.name == "weight" => scaled(fact.value, twin.value),
                false => [fact.value, twin.value],
            };
            let differs = values[0] != values[1] && !PASSING.contains(&fact.name);
            differs.then_some(StateDifference {
                time_ns: 0,
                cpu: CpuId(0),
                class: contest.class,
                group: contest.group,
                who: [one.who, other.who],
                field: fact.name,
                unit: fact.unit,
                values,
                is_relative,
            })
        })
    })
}

/// Weights in the same unit: some versions state them in 1,024ths (`scale_load`).
fn scaled(one: Value, other: Value) -> [Value; 2] {
    let (Value::Number(a), Value::Number(b)) = (one, other) else { return [one, other] };
    match (a, b) {
        _ if a > 0 && b / a >= 512 => [one, Value::Number(b >> 10)],
        _ if b > 0 && a / b >= 512 => [Value::Number(a >> 10), other],
        _ => [one, other],
    }
}

fn relative(value: Value, base: i64) -> Value {
    match value {
        Value::Number(number) => Value::Number(number.wrapping_sub(base)),
        other => other,
    }
}

/// The candidates by what they are in both runs. Equal tasks that have not run have one label: they
/// are numbered in the order of the queue.
fn entities<'m>(moment: &Moment, contest: &'m Contest) -> BTreeMap<(Key, u32), &'m Candidate> {
    let mut found = BTreeMap::new();
    for candidate in &contest.candidates {
        let key = match &candidate.who {
            Who::Task(task) => moment.labels.get(task).map(|label| Key::Task(*label)),
            Who::Group(group) => Some(Key::Group(group.0)),
        };
        let Some(key) = key else { continue };
        let nth = (0..).find(|nth| !found.contains_key(&(key, *nth))).unwrap_or_default();
        found.insert((key, nth), candidate);
    }
    found
}
