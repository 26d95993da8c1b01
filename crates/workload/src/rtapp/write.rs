// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a workload as a file that [`super::read_rtapp`] reads back to the same workload.
//!
//! Keys that JSON would see twice get a number (`run0`, `run1`), so that any JSON tool and, where
//! no key of schedlab's own is used, rt-app itself reads the file. What a file cannot hold is left
//! out: a nice value under a policy that has none.

use crate::policy::{has_nice, has_slice};
use crate::units::format_duration;
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::program::IoDirection;
use schedlab_model::{
    Amount, CpuMask, LoopCount, MemAccess, MemPattern, Nanos, ObjectId, Op, Policy, Release,
    SchedAttr, TaskSpec, TimerMode, Workload,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A JSON value to print. Numbers and booleans are `Plain`.
enum Json {
    Plain(String),
    Text(String),
    List(Vec<String>),
    Object(Vec<(String, Json)>),
    /// On one line.
    Short(Vec<(String, Json)>),
}

/// A member of an event list before its key is made unique.
type Event = (&'static str, Json);

/// The workload as the text of a file.
pub fn write_rtapp(workload: &Workload) -> String {
    let mut root = vec![member("name", Json::Text(workload.name.clone()))];
    if let Some(ns) = workload.duration_ns {
        // rt-app counts seconds.
        let duration = match ns.is_multiple_of(1_000_000_000) {
            true => plain(ns / 1_000_000_000),
            false => Json::Text(format_duration(ns)),
        };
        root.push(member("global", Json::Short(vec![member("duration", duration)])));
    }
    let groups: Vec<_> = workload
        .cgroups
        .iter()
        .skip(1)
        .map(|group| {
            let weight = member("weight", Json::Plain(group.weight.to_string()));
            (group.path.clone(), Json::Short(vec![weight]))
        })
        .collect();
    if !groups.is_empty() {
        root.push(member("cgroups", Json::Object(groups)));
    }
    let tasks = workload.tasks.iter().map(|spec| (spec.name.clone(), task(workload, spec)));
    root.push(member("tasks", Json::Object(tasks.collect())));
    let mut text = String::new();
    print(&mut text, &Json::Object(root), 0);
    text.push('\n');
    text
}

fn member(key: &str, value: Json) -> (String, Json) {
    (key.into(), value)
}

fn plain(value: impl ToString) -> Json {
    Json::Plain(value.to_string())
}

fn task(workload: &Workload, spec: &TaskSpec) -> Json {
    let mut members = Vec::new();
    if spec.instances != 1 {
        members.push(member("instance", plain(spec.instances)));
    }
    if spec.release_ns != Amount::Constant(0) {
        members.push(member("delay", duration(&spec.release_ns)));
    }
    if let Some(interarrival) = &spec.interarrival_ns {
        members.push(member("interarrival", duration(interarrival)));
    }
    if spec.release == Release::Wakeup {
        members.push(member("release", Json::Text("wakeup".into())));
    }
    let at_root = SchedAttr { affinity: None, cgroup: ROOT_CGROUP, ..spec.attr };
    members.extend(attributes(workload, &spec.attr, &at_root));
    let writer = Writer { workload, spec };
    let nodes = tree(&spec.program.ops);
    // One loop around everything is the task's own.
    let (count, body) = match &nodes[..] {
        [Node::Loop(count, body)] if *count != LoopCount::Times(1) => (*count, &body[..]),
        _ => (LoopCount::Times(1), &nodes[..]),
    };
    members.push(member("loop", loop_count(count)));
    match writer.phases(body) {
        Some(phases) => members.push(member("phases", Json::Object(phases))),
        None => members.extend(unique(writer.events(body))),
    }
    Json::Object(members)
}

/// The attributes, without those that a task described like `base` has anyhow as far as `cpus` and
/// `taskgroup` go; policy and priority always stand where they are not the default.
fn attributes(workload: &Workload, attr: &SchedAttr, base: &SchedAttr) -> Vec<(String, Json)> {
    let mut members = Vec::new();
    if attr.policy != Policy::Normal {
        members.push(member("policy", Json::Text(format!("SCHED_{}", attr.policy.name()))));
    }
    if attr.policy.is_rt() {
        members.push(member("priority", plain(attr.rt_priority)));
    } else if attr.nice != 0 && has_nice(attr.policy) {
        members.push(member("priority", plain(attr.nice)));
    }
    if attr.policy == Policy::Deadline {
        let dl = &attr.deadline;
        members.push(member("dl-runtime", constant(dl.runtime_ns)));
        members.push(member("dl-deadline", constant(dl.deadline_ns)));
        members.push(member("dl-period", constant(dl.period_ns)));
    } else if let Some(slice_ns) = attr.slice_ns.filter(|_| has_slice(attr.policy)) {
        members.push(member("dl-runtime", constant(slice_ns)));
    }
    if attr.affinity != base.affinity {
        members.push(member("cpus", cpus(attr.affinity.as_ref())));
    }
    if attr.cgroup != base.cgroup {
        let path = workload.cgroups.get(attr.cgroup.index()).map_or("/", |group| &group.path);
        members.push(member("taskgroup", Json::Text(path.into())));
    }
    members
}

fn cpus(mask: Option<&CpuMask>) -> Json {
    match mask {
        None => Json::Text("all".into()),
        Some(mask) => Json::List(mask.iter().map(|cpu| cpu.to_string()).collect()),
    }
}

fn loop_count(count: LoopCount) -> Json {
    match count {
        LoopCount::Times(times) => plain(times),
        LoopCount::Forever => plain(-1),
    }
}

/// Whole microseconds as rt-app writes them, else a string with a unit.
fn constant(ns: Nanos) -> Json {
    if ns.is_multiple_of(1_000) { plain(ns / 1_000) } else { Json::Text(format_duration(ns)) }
}

fn duration(amount: &Amount) -> Json {
    distribution(amount, constant)
}

fn bytes(amount: &Amount) -> Json {
    distribution(amount, plain)
}

fn distribution(amount: &Amount, value: fn(u64) -> Json) -> Json {
    match *amount {
        Amount::Constant(constant) => value(constant),
        Amount::Uniform { low, high } => Json::Short(vec![
            member("distribution", Json::Text("uniform".into())),
            member("low", value(low)),
            member("high", value(high)),
        ]),
        Amount::Exponential { mean } => Json::Short(vec![
            member("distribution", Json::Text("exponential".into())),
            member("mean", value(mean)),
        ]),
    }
}

/// A program as a tree.
enum Node<'p> {
    Op(&'p Op),
    Loop(LoopCount, Vec<Node<'p>>),
}

/// The operations as a tree, with an own stack: files decide the depth.
fn tree(ops: &[Op]) -> Vec<Node<'_>> {
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

struct Writer<'w> {
    workload: &'w Workload,
    spec: &'w TaskSpec,
}

impl Writer<'_> {
    /// The body as named phases, if it is one: each begins with its mark, in order, and none is
    /// marked deeper inside.
    fn phases(&self, body: &[Node]) -> Option<Vec<(String, Json)>> {
        let mut phases: Vec<(String, Json)> = Vec::new();
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

    fn name(&self, id: ObjectId) -> &str {
        self.workload.objects.get(id.index()).map_or("", |object| object.name.as_str())
    }

    fn object(&self, id: ObjectId) -> Json {
        Json::Text(self.name(id).into())
    }

    fn events(&self, nodes: &[Node]) -> Vec<Event> {
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
        let nothing = || Json::Text(String::new());
        match op {
            Op::Run(amount) => ("run", duration(amount)),
            Op::RunWall(amount) => ("runtime", duration(amount)),
            Op::Sleep(amount) => ("sleep", duration(amount)),
            Op::Timer { timer, period, mode } => {
                let mut members = vec![
                    member("ref", Json::Text(format!("unique{timer}"))),
                    member("period", duration(period)),
                ];
                if *mode == TimerMode::Absolute {
                    members.push(member("mode", Json::Text("absolute".into())));
                }
                ("timer", Json::Short(members))
            }
            Op::Io { direction, bytes, sync } => ("iorun", io(*direction, bytes, *sync)),
            Op::Yield => ("yield", nothing()),
            Op::Fork { task } => {
                let name = self.workload.tasks.get(*task as usize).map(|task| task.name.clone());
                ("fork", Json::Text(name.unwrap_or_default()))
            }
            Op::JoinAll => ("join", nothing()),
            Op::Join { task } => {
                let name = self.workload.tasks.get(*task as usize).map(|task| task.name.clone());
                ("join", Json::Text(name.unwrap_or_default()))
            }
            Op::Exit => ("exit", nothing()),
            Op::Progress => ("progress", nothing()),
            Op::Phase(number) => ("phase", Json::Text(self.phase_name(*number))),
            Op::SetAttr(attr) => ("sched", self.sched(attr)),
            Op::LoopBegin { .. } | Op::LoopEnd { .. } => {
                unreachable!("the tree has no loop marks")
            }
            op => self.shared(op),
        }
    }

    /// What touches objects or memory.
    fn shared(&self, op: &Op) -> Event {
        match op {
            Op::Lock { object }
            | Op::Unlock { object }
            | Op::Signal { object }
            | Op::Broadcast { object }
            | Op::Barrier { object }
            | Op::SemWait { object }
            | Op::SemPost { object }
            | Op::Suspend { object }
            | Op::Resume { object } => (op.name(), self.object(*object)),
            Op::Wait { condvar, mutex } | Op::Sync { condvar, mutex } => {
                let members = [("ref", *condvar), ("mutex", *mutex)];
                let members = members.map(|(key, id)| member(key, self.object(id)));
                (op.name(), Json::Short(members.into()))
            }
            Op::Mem { bytes: amount } => ("mem", bytes(amount)),
            Op::MemRun { access, pattern, size_bytes, stride_bytes, count } => {
                let access = match access {
                    MemAccess::Read => "read",
                    MemAccess::Write => "write",
                    MemAccess::Chase => "chase",
                };
                let pattern = match pattern {
                    MemPattern::Sequential => "sequential",
                    MemPattern::Random => "random",
                };
                let members = vec![
                    member("type", Json::Text(access.into())),
                    member("size", plain(size_bytes)),
                    member("count", bytes(count)),
                    member("stride", plain(stride_bytes)),
                    member("pattern", Json::Text(pattern.into())),
                ];
                ("memrun", Json::Short(members))
            }
            Op::Send { channel, bytes: amount } | Op::Receive { channel, bytes: amount } => {
                let members =
                    vec![member("ref", self.object(*channel)), member("bytes", bytes(amount))];
                (op.name(), Json::Short(members))
            }
            Op::WaitAny { set } => {
                let set = self.workload.wait_sets.get(*set as usize);
                let names = set.into_iter().flatten().map(|id| format!("{:?}", self.name(*id)));
                ("wait_any", Json::List(names.collect()))
            }
            _ => unreachable!("every other operation has its own form"),
        }
    }

    /// The policy is always named: it takes every other attribute back to its default first.
    fn sched(&self, attr: &SchedAttr) -> Json {
        let mut members = attributes(self.workload, attr, &self.spec.attr);
        if attr.policy == Policy::Normal {
            members.insert(0, member("policy", Json::Text("SCHED_OTHER".into())));
        }
        Json::Short(members)
    }
}

/// rt-app's own form where it says everything.
fn io(direction: IoDirection, amount: &Amount, sync: bool) -> Json {
    if direction == IoDirection::Write && !sync && matches!(amount, Amount::Constant(_)) {
        return bytes(amount);
    }
    let direction = match direction {
        IoDirection::Read => "read",
        IoDirection::Write => "write",
    };
    Json::Short(vec![
        member("direction", Json::Text(direction.into())),
        member("bytes", bytes(amount)),
        member("sync", plain(sync)),
    ])
}

fn marks_phase(node: &Node) -> bool {
    match node {
        Node::Op(op) => matches!(op, Op::Phase(_)),
        Node::Loop(_, body) => body.iter().any(marks_phase),
    }
}

/// Numbers the keys that stand more than once: `run0`, `run1`.
fn unique(events: Vec<Event>) -> Vec<(String, Json)> {
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

fn print(text: &mut String, value: &Json, indent: usize) {
    match value {
        Json::Plain(plain) => text.push_str(plain),
        Json::Text(string) => quote(text, string),
        Json::List(items) => {
            let _ = write!(text, "[{}]", items.join(", "));
        }
        Json::Object(members) => print_object(text, members, indent),
        Json::Short(members) => {
            text.push_str("{ ");
            for (index, (key, value)) in members.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                quote(text, key);
                text.push_str(": ");
                print(text, value, indent);
            }
            text.push_str(" }");
        }
    }
}

fn print_object(text: &mut String, members: &[(String, Json)], indent: usize) {
    if members.is_empty() {
        text.push_str("{}");
        return;
    }
    text.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(indent + 1));
        quote(text, key);
        text.push_str(": ");
        print(text, value, indent + 1);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(indent));
    text.push('}');
}

fn quote(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
