// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes programs as events.

use super::attr;
use super::json::{Json, Member, member, names, plain, text};
use crate::units::format_duration;
use schedlab_model::program::{IoDirection, SchedTunable};
use schedlab_model::{
    Amount, Change, LoopCount, MemAccess, MemPattern, Nanos, ObjectId, Op, Policy, SchedAttr,
    TaskSpec, TimerMode, Workload,
};
use std::collections::BTreeMap;

/// A member of an event list before its key is made unique.
type Event = (&'static str, Json);

/// A program as a tree.
pub(super) enum Node<'p> {
    Op(&'p Op),
    Loop(LoopCount, Vec<Node<'p>>),
}

/// Converts the operations to a tree, with its own stack, because files decide the depth.
pub(super) fn tree(ops: &[Op]) -> Vec<Node<'_>> {
    let mut open: Vec<(LoopCount, Vec<Node>)> = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    for op in ops {
        match op {
            Op::LoopBegin { count, .. } => open.push((*count, std::mem::take(&mut nodes))),
            Op::LoopEnd { .. } => {
                if let Some((count, outer)) = open.pop() {
                    let body = std::mem::replace(&mut nodes, outer);
                    nodes.push(Node::Loop(count, body));
                }
            }
            op => nodes.push(Node::Op(op)),
        }
    }
    nodes
}

pub(super) struct Writer<'w> {
    pub workload: &'w Workload,
    pub spec: &'w TaskSpec,
}

impl Writer<'_> {
    /// Returns the body as named phases, if it is a sequence of phases: each begins with its mark,
    /// they are in order, and no phase is marked inside another.
    pub fn phases(&self, body: &[Node]) -> Option<Vec<Member>> {
        let mut phases: Vec<Member> = Vec::new();
        let mut rest = body;
        while let [Node::Op(Op::Phase(number)), after @ ..] = rest {
            if *number as usize != phases.len() {
                return None;
            }
            let is_mark = |node: &Node| matches!(node, Node::Op(Op::Phase(_)));
            let end = after.iter().position(is_mark).unwrap_or(after.len());
            let (own, next) = after.split_at(end);
            rest = next;
            let (count, events) = match own {
                [Node::Loop(count, inner)] if *count != LoopCount::Times(1) => (*count, &inner[..]),
                _ => (LoopCount::Times(1), own),
            };
            if events.iter().any(marks_phase) {
                return None;
            }
            let mut members = vec![member("loop", loop_count(count))];
            members.extend(unique(self.events(events)));
            phases.push((self.phase_name(*number), Json::Object(members)));
        }
        (rest.is_empty() && !phases.is_empty() && phases.len() == self.spec.phases.len())
            .then_some(phases)
    }

    fn phase_name(&self, number: u32) -> String {
        match self.spec.phases.get(number as usize) {
            Some(name) => name.clone(),
            None => format!("phase{number}"),
        }
    }

    pub fn events(&self, nodes: &[Node]) -> Vec<Event> {
        nodes.iter().map(|node| self.event(node)).collect()
    }

    fn event(&self, node: &Node) -> Event {
        let op = match node {
            Node::Loop(count, body) => {
                let mut members = vec![member("loop", loop_count(*count))];
                members.extend(unique(self.events(body)));
                return ("repeat", Json::Object(members));
            }
            Node::Op(op) => op,
        };
        let nothing = || text("");
        let value = match op {
            Op::Run(amount) | Op::RunWall(amount) | Op::Sleep(amount) => duration(amount),
            Op::Timer { timer, period, mode } => {
                let mut members = vec![
                    member("ref", text(format!("unique{timer}"))),
                    member("period", duration(period)),
                ];
                if *mode == TimerMode::Absolute {
                    members.push(member("mode", text("absolute")));
                }
                Json::Short(members)
            }
            Op::Io { direction, bytes, sync } => io(*direction, bytes, *sync),
            Op::Yield | Op::JoinAll | Op::Exit | Op::Progress => nothing(),
            Op::Fork { task } | Op::Join { task } => {
                let name = self.workload.tasks.get(*task as usize).map(|task| task.name.clone());
                text(name.unwrap_or_default())
            }
            Op::Phase(number) => text(self.phase_name(*number)),
            Op::SetAttr(attr) => self.sched(attr),
            Op::Change(change) => self.change(change),
            Op::Tune { tunable, value } => {
                let (name, value) = match tunable {
                    SchedTunable::Feature(_) => {
                        ("features", names([tunable.text(*value).as_str()].into_iter()))
                    }
                    SchedTunable::RtRuntime if *value == SchedTunable::NO_LIMIT => {
                        (tunable.name(), plain(-1))
                    }
                    _ if tunable.is_time() => (tunable.name(), constant(*value)),
                    _ => (tunable.name(), plain(value)),
                };
                Json::Short(vec![member(name, value)])
            }
            Op::Mem { bytes } => number(bytes),
            Op::MemRun { access, pattern, size_bytes, stride_bytes, count } => Json::Short(vec![
                member("type", text(access_word(*access))),
                member("size", plain(size_bytes)),
                member("stride", plain(stride_bytes)),
                member("pattern", text(pattern_word(*pattern))),
                member("count", number(count)),
            ]),
            Op::LoopBegin { .. } | Op::LoopEnd { .. } => {
                unreachable!("the tree has no loop marks")
            }
            op => self.with_objects(op),
        };
        (op.name(), value)
    }

    fn change(&self, change: &Change) -> Json {
        let path = self.workload.cgroups.get(change.group().index()).map_or("/", |g| &g.path);
        let file = match change {
            Change::Weight { weight, .. } => member("weight", plain(weight)),
            Change::CpuMax { cpu_max: Some(limit), .. } => member("cpu_max", super::cpu_max(limit)),
            Change::CpuMax { cpu_max: None, .. } => member("cpu_max", text("max")),
            Change::Cpus { cpus, .. } => member("cpus", attr::cpus(cpus.as_ref())),
        };
        Json::Short(vec![member("taskgroup", text(path)), file])
    }

    /// Writes the operations that name objects.
    fn with_objects(&self, op: &Op) -> Json {
        let condvar_and_mutex = |condvar: ObjectId, mutex: ObjectId| {
            Json::Short(vec![
                member("ref", text(self.object(condvar))),
                member("mutex", text(self.object(mutex))),
            ])
        };
        let channel_and_bytes = |channel: ObjectId, bytes: &Amount| {
            Json::Short(vec![
                member("channel", text(self.object(channel))),
                member("bytes", number(bytes)),
            ])
        };
        match op {
            Op::Wait { condvar, mutex } | Op::Sync { condvar, mutex } => {
                condvar_and_mutex(*condvar, *mutex)
            }
            Op::Send { channel, bytes } | Op::Receive { channel, bytes } => {
                channel_and_bytes(*channel, bytes)
            }
            Op::WaitAny { set } => {
                let set = self.workload.wait_sets.get(*set as usize);
                names(set.into_iter().flatten().map(|object| self.object(*object)))
            }
            Op::Lock { object }
            | Op::Unlock { object }
            | Op::Signal { object }
            | Op::Broadcast { object }
            | Op::Barrier { object }
            | Op::SemWait { object }
            | Op::SemPost { object }
            | Op::Suspend { object }
            | Op::Resume { object } => text(self.object(*object)),
            other => unreachable!("{} names no object", other.name()),
        }
    }

    fn object(&self, id: ObjectId) -> &str {
        self.workload.objects.get(id.index()).map_or("", |object| &object.name)
    }

    /// Writes a `sched` event. It always names the policy, which resets every other attribute to
    /// its default.
    fn sched(&self, attr: &SchedAttr) -> Json {
        let mut members = attr::attributes(self.workload, attr, &self.spec.attr);
        if attr.policy == Policy::Normal {
            members.insert(0, member("policy", text("SCHED_OTHER")));
        }
        Json::Short(members)
    }
}

/// Uses rt-app's own form if it is sufficient.
fn io(direction: IoDirection, amount: &Amount, sync: bool) -> Json {
    if direction == IoDirection::Write && !sync && matches!(amount, Amount::Constant(_)) {
        return number(amount);
    }
    let direction = match direction {
        IoDirection::Read => "read",
        IoDirection::Write => "write",
    };
    Json::Short(vec![
        member("direction", text(direction)),
        member("bytes", number(amount)),
        member("sync", plain(sync)),
    ])
}

fn access_word(access: MemAccess) -> &'static str {
    match access {
        MemAccess::Read => "read",
        MemAccess::Write => "write",
        MemAccess::Chase => "chase",
    }
}

fn pattern_word(pattern: MemPattern) -> &'static str {
    match pattern {
        MemPattern::Sequential => "sequential",
        MemPattern::Random => "random",
    }
}

fn marks_phase(node: &Node) -> bool {
    match node {
        Node::Op(op) => matches!(op, Op::Phase(_)),
        Node::Loop(_, body) => body.iter().any(marks_phase),
    }
}

pub(super) fn loop_count(count: LoopCount) -> Json {
    match count {
        LoopCount::Times(times) => plain(times),
        LoopCount::Forever => plain(-1),
    }
}

/// Whole microseconds as rt-app writes them, else a string with a unit.
pub(super) fn constant(ns: Nanos) -> Json {
    if ns.is_multiple_of(1_000) { plain(ns / 1_000) } else { text(format_duration(ns)) }
}

pub(super) fn duration(amount: &Amount) -> Json {
    distribution(amount, constant)
}

fn number(amount: &Amount) -> Json {
    distribution(amount, plain)
}

fn distribution(amount: &Amount, value: fn(u64) -> Json) -> Json {
    match *amount {
        Amount::Constant(constant) => value(constant),
        Amount::Uniform { low, high } => Json::Short(vec![
            member("distribution", text("uniform")),
            member("low", value(low)),
            member("high", value(high)),
        ]),
        Amount::Exponential { mean } => Json::Short(vec![
            member("distribution", text("exponential")),
            member("mean", value(mean)),
        ]),
    }
}

/// Numbers the keys that occur more than once: `run0`, `run1`.
pub(super) fn unique(events: Vec<Event>) -> Vec<Member> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, _) in &events {
        *counts.entry(name).or_default() += 1;
    }
    let mut next: BTreeMap<&str, u32> = BTreeMap::new();
    events
        .into_iter()
        .map(|(name, value)| {
            if counts.get(name) == Some(&1) {
                return (name.to_string(), value);
            }
            let number = next.entry(name).or_default();
            *number += 1;
            (format!("{name}{}", *number - 1), value)
        })
        .collect()
}
