// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events: what a task does, in the order of the file.

use super::Reader;
use super::attr::AttrKeys;
use super::error::{Result, problem};
use super::global;
use super::json::{
    Members, duration_amount, key, key_span, object, span, string, twice, wrong_kind,
};
use super::keys::{ATTR_KEYS, Event, Meaning, meaning};
use super::task::loop_count;
use super::{change, memory, sync};
use crate::WarningKind;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::{Amount, LoopCount, Op, SchedAttr, TimerMode};
use std::collections::BTreeMap;
use std::ops::Range;

/// Operations with their places in the file. Jumps are relative to the first.
#[derive(Clone, Default)]
pub(crate) struct Code {
    pub ops: Vec<Op>,
    pub places: Vec<Range<usize>>,
}

impl Code {
    pub fn push(&mut self, op: Op, place: Range<usize>) {
        self.ops.push(op);
        self.places.push(place);
    }

    /// Appends `inner` and moves its jumps.
    pub fn append(&mut self, inner: Code) {
        let offset = self.ops.len() as u32;
        self.ops.extend(inner.ops.into_iter().map(|op| match op {
            Op::LoopBegin { count, end } => Op::LoopBegin { count, end: end + offset },
            Op::LoopEnd { begin } => Op::LoopEnd { begin: begin + offset },
            op => op,
        }));
        self.places.extend(inner.places);
    }

    /// Appends `inner` in a loop; without a loop if the count is 1.
    pub fn looped(&mut self, count: LoopCount, place: Range<usize>, inner: Code) {
        if count == LoopCount::Times(1) {
            self.append(inner);
        } else {
            self.always_looped(count, place, inner);
        }
    }

    /// Appends `inner` in a loop.
    pub fn always_looped(&mut self, count: LoopCount, place: Range<usize>, inner: Code) {
        let begin = self.ops.len() as u32;
        let end = begin + 1 + inner.ops.len() as u32;
        self.push(Op::LoopBegin { count, end }, place.clone());
        self.append(inner);
        self.push(Op::LoopEnd { begin }, place);
    }
}

/// Names with numbers. The map keeps large files fast.
#[derive(Default)]
pub(crate) struct Names {
    pub names: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// Returns the number of `name`. A new name gets the next number.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        number
    }
}

/// Data that the events of one task share.
pub(crate) struct TaskEvents {
    /// The task's name.
    task: String,
    /// The task's own attributes. A `sched` event changes these.
    attr: SchedAttr,
    /// Phases.
    pub phases: Names,
    /// Timers, by `ref`.
    pub timers: Names,
    /// Place of each timer's first use.
    pub timer_places: Vec<Range<usize>>,
    /// The attributes after the last `sched` event.
    pub leaves: Option<SchedAttr>,
}

impl TaskEvents {
    pub fn new(task: &str, attr: SchedAttr) -> Self {
        Self {
            task: task.into(),
            attr,
            phases: Names::default(),
            timers: Names::default(),
            timer_places: Vec::new(),
            leaves: None,
        }
    }

    /// Reads the events among the members of `body`. `properties` are keys that are read elsewhere.
    pub fn read(
        &mut self,
        reader: &mut Reader,
        body: &Object,
        properties: &[&str],
        place: &str,
    ) -> Result<Code> {
        let mut code = Code::default();
        for member in &body.properties {
            match meaning(key(member), properties, place) {
                Meaning::Property => {}
                Meaning::Refused { message, help } => {
                    return Err(problem(key_span(member), message, help));
                }
                Meaning::Event { event, odd_suffix } => {
                    if let Some(suffix) = odd_suffix {
                        let name = &key(member)[..key(member).len() - suffix.len()];
                        let text = format!(
                            "`{}` is read as event `{name}`, as rt-app does: is it a slip?",
                            key(member)
                        );
                        reader.warn(WarningKind::OddSuffix, key_span(member).start, text);
                    }
                    self.event(reader, &mut code, event, member)?;
                }
            }
        }
        Ok(code)
    }

    fn event(
        &mut self,
        reader: &mut Reader,
        code: &mut Code,
        event: Event,
        member: &ObjectProp,
    ) -> Result<()> {
        let (name, value) = (key(member), &member.value);
        let op = match event {
            Event::Run => Op::Run(duration_amount(value, name)?),
            Event::Runtime => Op::RunWall(duration_amount(value, name)?),
            Event::Sleep => Op::Sleep(duration_amount(value, name)?),
            Event::Timer => self.timer(value, name)?,
            Event::Mem => memory::mem(reader, value, name)?,
            Event::Memrun => memory::memrun(reader, value, name)?,
            Event::Iorun => memory::iorun(value, name)?,
            Event::Yield => {
                if !matches!(value, Value::StringLit(_)) {
                    no_value(value, name)?;
                }
                Op::Yield
            }
            Event::Fork => Op::Fork { task: described(reader, value, name)? },
            Event::Join => match value {
                Value::StringLit(literal) if !literal.value.is_empty() => {
                    Op::Join { task: described(reader, value, name)? }
                }
                _ => no_value(value, name).map(|()| Op::JoinAll)?,
            },
            Event::Exit => no_value(value, name).map(|()| Op::Exit)?,
            Event::Progress => no_value(value, name).map(|()| Op::Progress)?,
            Event::Phase => Op::Phase(self.phase(value, name)?),
            Event::Sched => {
                let attr = self.sched(reader, value, name)?;
                self.leaves = Some(attr);
                Op::SetAttr(Box::new(attr))
            }
            Event::Tune => return change::tune(code, member),
            Event::Change => return change::read(reader, code, member),
            Event::Repeat => return self.repeat(reader, code, member),
            _ => return sync::read(reader, code, event, member, &self.task),
        };
        code.push(op, span(value));
        Ok(())
    }

    fn timer(&mut self, value: &Value, name: &str) -> Result<Op> {
        let mut members = Members::new(object(value, name)?, &["ref", "period", "mode"], name)?;
        // rt-app's own default for `ref`.
        let timer_ref = members.take("ref").map_or(Ok("unknown"), |value| string(value, "ref"))?;
        let Some(period_value) = members.take("period") else {
            let help = "give \"period\": microseconds, more than 0";
            return Err(problem(span(value), format!("`{name}` has no `period`"), help));
        };
        let period = duration_amount(period_value, "period")?;
        let may_be_zero = match period {
            Amount::Constant(ns) => ns == 0,
            Amount::Uniform { low, .. } => low == 0,
            Amount::Exponential { .. } => false,
        };
        if may_be_zero {
            return Err(problem(
                span(period_value),
                "`period` is 0, or can be",
                "a period is more than 0: a timer that fires at once would never let time pass",
            ));
        }
        let mode = match members.take("mode") {
            None => TimerMode::Relative,
            Some(mode) => match string(mode, "mode")? {
                "relative" => TimerMode::Relative,
                "absolute" => TimerMode::Absolute,
                other => {
                    let known = ["relative", "absolute"];
                    return Err(problem(
                        span(mode),
                        format!("timer mode {other:?} is not known"),
                        did_you_mean(other, known) + "allowed are " + &list(known),
                    ));
                }
            },
        };
        let timer = self.timers.intern(timer_ref);
        if timer as usize == self.timer_places.len() {
            self.timer_places.push(span(value));
        }
        Ok(Op::Timer { timer, period, mode })
    }

    fn phase(&mut self, value: &Value, name: &str) -> Result<u32> {
        let phase = string(value, name)?;
        global::check_name(phase, span(value), "phase")?;
        Ok(self.phases.intern(phase))
    }

    fn sched(&mut self, reader: &mut Reader, value: &Value, name: &str) -> Result<SchedAttr> {
        let mut keys = AttrKeys::new(span(value));
        let body = object(value, name)?;
        // Refuses other keys, with a hint, before any value is looked at.
        Members::new(body, &ATTR_KEYS, name)?;
        for member in &body.properties {
            keys.read(reader, member)?;
        }
        if keys.is_empty() {
            let help = format!("name at least one of {}", list(ATTR_KEYS));
            return Err(problem(span(value), format!("`{name}` is empty"), help));
        }
        keys.apply(reader, &self.attr.clone())
    }

    fn repeat(&mut self, reader: &mut Reader, code: &mut Code, member: &ObjectProp) -> Result<()> {
        let body = object(&member.value, key(member))?;
        let mut count = None;
        for property in body.properties.iter().filter(|property| key(property) == "loop") {
            if count.replace(loop_count(&property.value)?).is_some() {
                return Err(twice(property));
            }
        }
        let Some(count) = count else {
            return Err(problem(
                key_span(member),
                format!("`{}` has no `loop`", key(member)),
                "give \"loop\": how often its events are repeated, or -1 for without end",
            ));
        };
        let before = self.leaves;
        let inner = self.read(reader, body, &["loop"], "a `repeat`")?;
        if count == LoopCount::Times(0) {
            self.leaves = before;
        }
        code.always_looped(count, key_span(member), inner);
        Ok(())
    }
}

/// Events without a value: `""`, `true` or `null`.
fn no_value(value: &Value, name: &str) -> Result<()> {
    match value {
        Value::NullKeyword(_) => Ok(()),
        Value::BooleanLit(literal) if literal.value => Ok(()),
        Value::StringLit(literal) if literal.value.is_empty() => Ok(()),
        _ => wrong_kind(value, name, "no value: write \"\""),
    }
}

/// The number of the task that a string names.
fn described(reader: &Reader, value: &Value, name: &str) -> Result<u32> {
    let target = string(value, name)?;
    match reader.task_names.get(target) {
        Some(task) => Ok(*task),
        None => {
            // A file may have a hundred thousand tasks; a few are enough for a hint.
            let names = || reader.task_names.keys().map(String::as_str).take(20);
            Err(problem(
                span(value),
                format!("`{name}` names the task {target:?}, which is not described"),
                did_you_mean(target, names()) + "described are " + &list(names()),
            ))
        }
    }
}
