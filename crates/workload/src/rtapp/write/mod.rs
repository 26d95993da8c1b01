// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a workload as a file from which [`super::read_rtapp`] reads the same workload.
//!
//! Keys that would occur twice get a number (`run0`, `run1`), so that any JSON tool can read the
//! file. rt-app can read it too if it uses no key of schedlab's own. What a file cannot express is
//! left out: a nice value under a policy that has none.

mod attr;
mod event;
mod json;

use super::expect::{COMPARISONS, DECIMALS, MILLION};
use super::objects::SOCKETPAIR_BYTES;
use crate::units::{DURATION_NS_MAX, format_duration};
use event::{Node, Writer, constant, duration, loop_count, tree, unique};
use json::{Json, Member, member, plain, print, print_line, text};
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::objects::PIPE_BYTES;
use schedlab_model::{
    Amount, CgroupSpec, ChannelKind, CpuMax, Expectation, LoopCount, MutexProtocol, ObjectKind,
    Release, SchedAttr, Subject, TaskSpec, Workload,
};

/// Returns the text of the file.
pub fn write_rtapp(workload: &Workload) -> String {
    let mut text = String::new();
    print(&mut text, &Json::Object(document(workload)), 0);
    text.push('\n');
    text
}

/// Returns the text of the file with one line for each task, and one for each other part.
pub fn write_rtapp_short(workload: &Workload) -> String {
    let mut text = String::new();
    for (index, (key, value)) in document(workload).iter().enumerate() {
        text.push_str(match index {
            0 => "{ ",
            // A workload's name and duration share a line.
            _ if key == "global" => ", ",
            _ => ",\n  ",
        });
        match value {
            Json::Object(members) if key == "tasks" => {
                text.push_str("\"tasks\": {");
                for (index, (name, task)) in members.iter().enumerate() {
                    text.push_str(if index == 0 { "\n    " } else { ",\n    " });
                    print_line(&mut text, &[(name, task)]);
                }
                text.push_str(" }");
            }
            value => print_line(&mut text, &[(key, value)]),
        }
    }
    text.push_str(" }\n");
    text
}

/// The members of the document.
fn document(workload: &Workload) -> Vec<Member> {
    let mut root = vec![member("name", text(workload.name.clone()))];
    if let Some(ns) = workload.duration_ns {
        // rt-app counts seconds.
        let duration = match ns.is_multiple_of(1_000_000_000) {
            true => plain(ns / 1_000_000_000),
            false => text(format_duration(ns)),
        };
        root.push(member("global", Json::Short(vec![member("duration", duration)])));
    }
    let groups: Vec<_> = workload.cgroups.iter().skip(1).map(cgroup).collect();
    if !groups.is_empty() {
        root.push(member("cgroups", Json::Object(groups)));
    }
    let sessions: Vec<_> = workload
        .sessions
        .iter()
        .map(|spec| (spec.name.clone(), Json::Short(vec![member("nice", plain(spec.nice))])))
        .collect();
    if !sessions.is_empty() {
        root.push(member("sessions", Json::Object(sessions)));
    }
    let objects: Vec<_> = workload
        .objects
        .iter()
        .map(|spec| (spec.name.clone(), Json::Short(object(&spec.kind))))
        .collect();
    if !objects.is_empty() {
        root.push(member("objects", Json::Object(objects)));
    }
    let tasks = workload.tasks.iter().map(|spec| (spec.name.clone(), task(workload, spec)));
    root.push(member("tasks", Json::Object(tasks.collect())));
    if !workload.expect.is_empty() {
        let expect = workload.expect.iter().map(expectation).collect();
        root.push(member("expect", Json::Array(expect)));
    }
    root
}

fn cgroup(group: &CgroupSpec) -> Member {
    let mut members = vec![member("weight", plain(group.weight))];
    if let Some(limit) = &group.cpu_max {
        members.push(member("cpu_max", cpu_max(limit)));
    }
    if group.cpus.is_some() {
        members.push(member("cpus", attr::cpus(group.cpus.as_ref())));
    }
    (group.path.clone(), Json::Short(members))
}

fn cpu_max(cpu_max: &CpuMax) -> Json {
    let mut limit = vec![
        member("quota", constant(cpu_max.quota_ns)),
        member("period", constant(cpu_max.period_ns)),
    ];
    if cpu_max.burst_ns > 0 {
        limit.push(member("burst", constant(cpu_max.burst_ns)));
    }
    Json::Short(limit)
}

/// An object's kind, and the members that differ from the kind's defaults.
fn object(kind: &ObjectKind) -> Vec<Member> {
    let mut members = vec![member("kind", text(kind.name()))];
    match *kind {
        ObjectKind::Mutex { protocol } => match protocol {
            MutexProtocol::None => {}
            MutexProtocol::Inherit => members.push(member("protocol", text("inherit"))),
            MutexProtocol::Ceiling { rt_priority } => {
                members.push(member("protocol", text("ceiling")));
                members.push(member("priority", plain(rt_priority)));
            }
        },
        ObjectKind::Barrier { parties } => members.push(member("parties", plain(parties))),
        ObjectKind::Semaphore { initial: 0 } | ObjectKind::Condvar | ObjectKind::Event => {}
        ObjectKind::Semaphore { initial } => members.push(member("initial", plain(initial))),
        ObjectKind::Channel { kind, capacity_bytes } => {
            let default = match kind {
                ChannelKind::Pipe => PIPE_BYTES,
                ChannelKind::SocketPair => SOCKETPAIR_BYTES,
            };
            if capacity_bytes != default {
                members.push(member("capacity", plain(capacity_bytes)));
            }
        }
    }
    members
}

fn expectation(expectation: &Expectation) -> Json {
    let mut members = vec![member("measure", text(expectation.measure.clone()))];
    if let Subject::Task(name) = &expectation.subject {
        members.push(member("task", text(name.clone())));
    }
    let known = COMPARISONS.iter().find(|(_, known)| *known == expectation.comparison);
    let key = known.map_or("equal", |(key, _)| key);
    members.push(member(key, value(&expectation.measure, expectation.value_millionths)));
    Json::Short(members)
}

/// A duration if the measure is one and the value fits; otherwise a decimal number.
fn value(measure: &str, millionths: i128) -> Json {
    let is_time = measure.split(['_', '.']).any(|word| word == "ns");
    let ns = u64::try_from(millionths / MILLION).ok().filter(|ns| *ns <= DURATION_NS_MAX);
    if let (true, 0, Some(ns)) = (is_time, millionths % MILLION, ns) {
        return text(format_duration(ns));
    }
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, fraction) = (millionths.abs() / MILLION, millionths.abs() % MILLION);
    let number = format!("{sign}{whole}.{fraction:0DECIMALS$}");
    Json::Plain(number.trim_end_matches('0').trim_end_matches('.').into())
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
        members.push(member("release", text("wakeup")));
    }
    if spec.is_process {
        members.push(member("process", plain(true)));
    }
    if spec.working_set_bytes != 0 {
        members.push(member("working_set", plain(spec.working_set_bytes)));
    }
    if let Some(session) = spec.session.and_then(|index| workload.sessions.get(index as usize)) {
        members.push(member("session", text(session.name.clone())));
    }
    let at_root = SchedAttr {
        affinity: None,
        cgroup: ROOT_CGROUP,
        util_min: None,
        util_max: None,
        ..spec.attr
    };
    members.extend(attr::attributes(workload, &spec.attr, &at_root));
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
