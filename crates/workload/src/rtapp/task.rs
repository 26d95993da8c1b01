// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks: properties and phases, and the program that they describe.

use super::attr::AttrKeys;
use super::error::{Result, problem};
use super::event::{Code, TaskEvents};
use super::json::{
    boolean, bytes, duration_amount, integer, key, key_span, object, span, string, twice,
    wrong_kind,
};
use super::keys::{ATTR_KEYS, Meaning, TASK_KEYS, meaning};
use super::{Reader, global};
use crate::WarningKind;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use schedlab_model::program::ProgramError;
use schedlab_model::suggest::did_you_mean;
use schedlab_model::workload::TASKS_MAX;
use schedlab_model::{Amount, LoopCount, Op, Program, Release, SchedAttr, TaskSpec};
use std::collections::BTreeMap;
use std::ops::Range;

/// A task with the places of its operations.
pub(crate) struct ReadTask {
    pub spec: TaskSpec,
    /// Place of each operation.
    pub places: Vec<Range<usize>>,
    pub key_place: Range<usize>,
    /// Place of `delay`, if it is given.
    pub delay_place: Option<Range<usize>>,
    /// Timers by number: `ref` and the place of the first use.
    pub timers: Vec<(String, Range<usize>)>,
}

/// Properties of a task.
struct Properties<'v, 'a> {
    instances: u32,
    loops: LoopCount,
    delay: Option<(Amount, Range<usize>)>,
    interarrival: Option<Amount>,
    release: Release,
    phases: Option<&'v ObjectProp<'a>>,
    is_process: bool,
    working_set_bytes: u64,
    session: Option<u32>,
    attr: AttrKeys,
}

/// Names of the tasks, by number, in file order.
pub(crate) fn task_names(tasks: &Object) -> Result<BTreeMap<String, u32>> {
    let mut names = BTreeMap::new();
    for (index, member) in tasks.properties.iter().enumerate() {
        global::check_name(key(member), key_span(member), "task")?;
        if names.insert(key(member).to_string(), index as u32).is_some() {
            return Err(problem(
                key_span(member),
                format!("two tasks are called {:?}", key(member)),
                "give each task a name of its own; `instance` makes several tasks of one kind",
            ));
        }
    }
    Ok(names)
}

/// Reads one task.
pub(crate) fn read_task(reader: &mut Reader, member: &ObjectProp) -> Result<ReadTask> {
    let name = key(member);
    let body = object(&member.value, name)?;
    let keys: Vec<&str> = TASK_KEYS.iter().chain(&ATTR_KEYS).copied().collect();
    // A file of another grammar is told so before what follows from its keys.
    for member in &body.properties {
        if let Meaning::Refused { message, help } = meaning(key(member), &keys, "a task") {
            return Err(problem(key_span(member), message, help));
        }
    }
    let properties = read_properties(reader, member, body)?;
    let attr = properties.attr.apply(reader, &super::attr::default_attr(reader.default_policy))?;
    let mut events = TaskEvents::new(name, attr);
    let mut code = Code::default();
    match properties.phases {
        None => {
            let inner = events.read(reader, body, &keys, "a task")?;
            code.looped(properties.loops, span(body), inner);
        }
        Some(phases) => {
            let is_budget = properties.attr.takes_old_runtime(&attr);
            refuse_events_beside_phases(body, &keys, is_budget)?;
            let phases = read_phases(reader, &mut events, object(&phases.value, "phases")?)?;
            emit_phases(reader, &mut code, &attr, properties.loops, span(body), &phases)?;
        }
    }
    let program = Program { ops: code.ops, nr_timers: events.timers.names.len() as u32 };
    let mut spec = TaskSpec::new(name, program);
    spec.attr = attr;
    spec.instances = properties.instances;
    spec.interarrival_ns = properties.interarrival;
    spec.release = properties.release;
    spec.is_process = properties.is_process;
    spec.working_set_bytes = properties.working_set_bytes;
    spec.session = properties.session;
    spec.phases = events.phases.names;
    let mut delay_place = None;
    if let Some((delay, place)) = properties.delay {
        spec.release_ns = delay;
        delay_place = Some(place);
    }
    let read = ReadTask {
        spec,
        places: code.places,
        key_place: key_span(member),
        delay_place,
        timers: events.timers.names.into_iter().zip(events.timer_places).collect(),
    };
    check_program(&read, reader.task_names.len())?;
    Ok(read)
}

fn read_properties<'v, 'a>(
    reader: &mut Reader,
    member: &ObjectProp,
    body: &'v Object<'a>,
) -> Result<Properties<'v, 'a>> {
    let mut properties = Properties {
        instances: 1,
        loops: LoopCount::Forever,
        delay: None,
        interarrival: None,
        release: Release::Fork,
        phases: None,
        is_process: false,
        working_set_bytes: 0,
        session: None,
        attr: AttrKeys::new(key_span(member)),
    };
    let mut seen: Vec<&str> = Vec::new();
    for member in &body.properties {
        let (name, value) = (key(member), &member.value);
        if ATTR_KEYS.contains(&name) {
            properties.attr.read(reader, member)?;
            continue;
        }
        if name == "runtime" {
            properties.attr.read_old(member)?;
        }
        if !TASK_KEYS.contains(&name) {
            continue;
        }
        if seen.contains(&name) {
            return Err(twice(member));
        }
        seen.push(name);
        match name {
            "instance" => {
                properties.instances = integer(value, name, 0..=TASKS_MAX as i64)? as u32;
            }
            "loop" => properties.loops = loop_count(value)?,
            "delay" => properties.delay = Some((duration_amount(value, name)?, span(value))),
            "interarrival" => properties.interarrival = Some(duration_amount(value, name)?),
            "release" => properties.release = release(value)?,
            "process" => properties.is_process = boolean(value, name)?,
            "working_set" => properties.working_set_bytes = bytes(value, name)?,
            "session" => properties.session = Some(global::session(reader, value)?),
            "period" | "deadline" => properties.attr.read_old(member)?,
            _ => properties.phases = Some(member),
        }
    }
    if properties.instances == 0
        && let Some((_, place)) = &properties.delay
    {
        return Err(problem(
            place.clone(),
            "`delay` of a task that only forks create",
            "the delay counts from the start of the run: put a `sleep` first instead",
        ));
    }
    Ok(properties)
}

fn release(value: &Value) -> Result<Release> {
    match string(value, "release")? {
        "fork" => Ok(Release::Fork),
        "wakeup" => Ok(Release::Wakeup),
        other => Err(problem(
            span(value),
            format!("release {other:?} is not known"),
            did_you_mean(other, ["fork", "wakeup"])
                + "allowed are \"fork\" (created at its release time) and \"wakeup\" (exists and \
                   sleeps until then)",
        )),
    }
}

/// A loop count; -1 means endless, as in rt-app.
pub(crate) fn loop_count(value: &Value) -> Result<LoopCount> {
    Ok(match integer(value, "loop", -1..=i64::MAX)? {
        -1 => LoopCount::Forever,
        times => LoopCount::Times(times as u64),
    })
}

/// Refuses events next to phases. `is_budget`: a `runtime` here is the older name of `dl-runtime`.
fn refuse_events_beside_phases(body: &Object, keys: &[&str], is_budget: bool) -> Result<()> {
    for member in &body.properties {
        if is_budget && key(member) == "runtime" {
            continue;
        }
        match meaning(key(member), keys, "a task") {
            Meaning::Property => {}
            Meaning::Event { .. } => {
                return Err(problem(
                    key_span(member),
                    format!("event `{}` beside `phases`", key(member)),
                    "a task has either events or `phases`: move the event into a phase",
                ));
            }
            Meaning::Refused { message, help } => {
                return Err(problem(key_span(member), message, help));
            }
        }
    }
    Ok(())
}

/// A phase, before the attributes at its start are known.
struct Phase {
    number: u32,
    keys: AttrKeys,
    loops: LoopCount,
    place: Range<usize>,
    code: Code,
    /// The attributes after a `sched` event in it.
    leaves: Option<SchedAttr>,
}

fn read_phases(
    reader: &mut Reader,
    events: &mut TaskEvents,
    phases: &Object,
) -> Result<Vec<Phase>> {
    let properties: Vec<&str> = ATTR_KEYS.iter().copied().chain(["loop"]).collect();
    let mut read = Vec::new();
    for member in &phases.properties {
        let name = key(member);
        global::check_name(name, key_span(member), "phase")?;
        let number = events.phases.intern(name);
        if !matches!(member.value, Value::Object(_)) {
            return wrong_kind(&member.value, name, "an object with the events of the phase");
        }
        let body = object(&member.value, name)?;
        let mut keys = AttrKeys::new(key_span(member));
        let mut loops = None;
        for property in &body.properties {
            if ATTR_KEYS.contains(&key(property)) {
                keys.read(reader, property)?;
            } else if key(property) == "loop"
                && loops.replace(loop_count(&property.value)?).is_some()
            {
                return Err(twice(property));
            }
        }
        let loops = loops.unwrap_or(LoopCount::Times(1));
        events.leaves = None;
        let code = events.read(reader, body, &properties, "a phase")?;
        let leaves = events.leaves.take().filter(|_| loops != LoopCount::Times(0));
        read.push(Phase { number, keys, loops, place: key_span(member), code, leaves });
    }
    Ok(read)
}

/// The attributes at a point of the program.
#[derive(Clone, PartialEq)]
struct State {
    attr: SchedAttr,
    /// Whether a phase's `cpus` set the affinity. The next phase without `cpus` then restores the
    /// task's own.
    cpus_of_phase: bool,
}

/// For each phase: whether its attributes must be set at its start, and the attributes.
type Entries = Vec<(bool, SchedAttr)>;

/// Goes through the phases once, from `state`. rt-app's rules: attributes stay until a phase sets
/// others. Only the affinity returns to the task's own.
fn enter_phases(
    reader: &mut Reader,
    task: &SchedAttr,
    phases: &[Phase],
    state: &mut State,
) -> Result<Entries> {
    let mut entries = Vec::with_capacity(phases.len());
    for phase in phases {
        let mut attr = phase.keys.apply(reader, &state.attr)?;
        let mut set = !phase.keys.is_empty();
        if !phase.keys.names_cpus() && state.cpus_of_phase {
            set |= attr.affinity != task.affinity;
            attr.affinity = task.affinity;
        }
        *state = State { attr, cpus_of_phase: phase.keys.names_cpus() };
        entries.push((set, attr));
        if let Some(left) = phase.leaves {
            *state = State { attr: left, cpus_of_phase: false };
        }
    }
    Ok(entries)
}

fn emit_phases(
    reader: &mut Reader,
    code: &mut Code,
    task: &SchedAttr,
    loops: LoopCount,
    place: Range<usize>,
    phases: &[Phase],
) -> Result<()> {
    let mut state = State { attr: *task, cpus_of_phase: false };
    let mut first = enter_phases(reader, task, phases, &mut state)?;
    if matches!(loops, LoopCount::Times(0 | 1)) {
        code.looped(loops, place, round(phases, &first));
        return Ok(());
    }
    // Later rounds begin with the attributes of the last phase. Its warnings are known.
    let known = reader.warnings.len();
    let mut later = enter_phases(reader, task, phases, &mut state).map_err(|mut problem| {
        problem.help += ". This happens in the second round: attributes stay as the last phase \
                         left them until a phase names others";
        problem
    })?;
    reader.warnings.truncate(known);
    let same = |((set_a, a), (set_b, b)): (&(bool, SchedAttr), &(bool, SchedAttr))| {
        !(*set_a || *set_b) || a == b
    };
    if first.iter().zip(&later).all(same) {
        for (a, b) in first.iter_mut().zip(&mut later) {
            a.0 |= b.0;
        }
        code.looped(loops, place, round(phases, &first));
    } else {
        code.append(round(phases, &first));
        let rest = match loops {
            LoopCount::Times(times) => LoopCount::Times(times - 1),
            LoopCount::Forever => LoopCount::Forever,
        };
        // The rest is a loop even when it is a single round.
        code.always_looped(rest, place, round(phases, &later));
    }
    Ok(())
}

/// One round through all phases.
fn round(phases: &[Phase], entries: &Entries) -> Code {
    let mut code = Code::default();
    for (phase, (set, attr)) in phases.iter().zip(entries) {
        code.push(Op::Phase(phase.number), phase.place.clone());
        if *set {
            code.push(Op::SetAttr(Box::new(*attr)), phase.place.clone());
        }
        code.looped(phase.loops, phase.place.clone(), phase.code.clone());
    }
    code
}

fn check_program(task: &ReadTask, nr_specs: usize) -> Result<()> {
    let Err(error) = task.spec.program.check(nr_specs) else { return Ok(()) };
    let op = error.op();
    let place = task.places.get(op).cloned().unwrap_or_else(|| task.key_place.clone());
    let empty = !task.spec.program.ops.iter().any(|op| {
        !matches!(op, Op::LoopBegin { .. } | Op::LoopEnd { .. } | Op::Phase(_) | Op::SetAttr(_))
    });
    Err(match error {
        ProgramError::TimelessLoop { .. } if empty => problem(
            task.key_place.clone(),
            format!("task {:?} has no event and loops", task.spec.name),
            "give it an event such as \"run\": 1000 (microseconds)",
        ),
        ProgramError::TimelessLoop { .. } => problem(
            place,
            "this loops without end, or more than a million times, and nothing in it takes time",
            "put a `run`, `sleep` or `timer` into it, or give \"loop\": 1 (a task's default is -1, \
             without end)",
        ),
        other => problem(place, other.to_string(), "correct the value"),
    })
}

/// Warns of a `delay` that has no effect on forked instances.
pub(crate) fn warn_of_forked_delays(reader: &mut Reader, tasks: &[ReadTask]) {
    let forked: Vec<u32> = tasks
        .iter()
        .flat_map(|task| &task.spec.program.ops)
        .filter_map(|op| match op {
            Op::Fork { task } => Some(*task),
            _ => None,
        })
        .collect();
    for task in forked.iter().collect::<std::collections::BTreeSet<_>>() {
        if let Some(place) = tasks.get(*task as usize).and_then(|task| task.delay_place.clone()) {
            let text = "`delay` holds for instances that the launcher starts, not for forks";
            reader.warn(WarningKind::ForkIgnoresDelay, place.start, text.into());
        }
    }
}
