// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that act on other tasks or wait for them: locks, condition variables, barriers,
//! semaphores, suspend and resume, channels.
//!
//! Source: rt-app's src/rt-app.c, `run_event`. In rt-app `suspend` waits on a condition variable
//! and holds a mutex of the same name; `resume` broadcasts it. If other events use that variable or
//! mutex too, the two events are read as exactly these operations. Otherwise they are operations on
//! an event object.

use super::Reader;
use super::error::{Result, problem};
use super::event::Code;
use super::json::{Members, byte_amount, key, object, span, string, wrong_kind};
use super::keys::Event;
use super::objects::Need;
use jsonc_parser::ast::{ObjectProp, Value};
use schedlab_model::{ObjectId, Op};

/// Appends the operations of `event`, which names objects. `task` is the task's name.
pub(crate) fn read(
    reader: &mut Reader,
    code: &mut Code,
    event: Event,
    member: &ObjectProp,
    task: &str,
) -> Result<()> {
    let (name, value) = (key(member), &member.value);
    let op = match event {
        Event::Lock => Op::Lock { object: named(reader, value, name, Need::Mutex)? },
        Event::Unlock => Op::Unlock { object: named(reader, value, name, Need::Mutex)? },
        Event::Signal => Op::Signal { object: named(reader, value, name, Need::Condvar)? },
        Event::Broad => Op::Broadcast { object: named(reader, value, name, Need::Condvar)? },
        Event::Wait => {
            let (condvar, mutex) = condvar_and_mutex(reader, value, name)?;
            Op::Wait { condvar, mutex }
        }
        Event::Sync => {
            let (condvar, mutex) = condvar_and_mutex(reader, value, name)?;
            Op::Sync { condvar, mutex }
        }
        Event::Barrier => Op::Barrier { object: named(reader, value, name, Need::Barrier)? },
        Event::SemWait => Op::SemWait { object: named(reader, value, name, Need::Semaphore)? },
        Event::SemPost => Op::SemPost { object: named(reader, value, name, Need::Semaphore)? },
        Event::Send => {
            let (channel, bytes) = channel_and_bytes(reader, value, name)?;
            Op::Send { channel, bytes }
        }
        Event::Receive => {
            let (channel, bytes) = channel_and_bytes(reader, value, name)?;
            Op::Receive { channel, bytes }
        }
        Event::WaitAny => wait_any(reader, value, name)?,
        _ => return suspend_or_resume(reader, code, event, member, task),
    };
    code.push(op, span(value));
    Ok(())
}

/// The object that a string names.
fn named(reader: &mut Reader, value: &Value, name: &str, need: Need) -> Result<ObjectId> {
    reader.objects.resolve(string(value, name)?, need, span(value))
}

/// Reads `{ "ref": condition variable, "mutex": mutex }`. rt-app's default for both names is
/// `unknown`.
fn condvar_and_mutex(
    reader: &mut Reader,
    value: &Value,
    name: &str,
) -> Result<(ObjectId, ObjectId)> {
    let mut members = Members::new(object(value, name)?, &["ref", "mutex"], name)?;
    let mut take = |key: &str, need| match members.take(key) {
        Some(value) => named(reader, value, key, need),
        None => reader.objects.resolve("unknown", need, span(value)),
    };
    Ok((take("ref", Need::Condvar)?, take("mutex", Need::Mutex)?))
}

fn channel_and_bytes(
    reader: &mut Reader,
    value: &Value,
    name: &str,
) -> Result<(ObjectId, schedlab_model::Amount)> {
    let mut members = Members::new(object(value, name)?, &["channel", "bytes"], name)?;
    let missing = |what: &str| {
        let help = "give { \"channel\": the name of a pipe or socketpair of `objects`, \
                    \"bytes\": the size of the message }";
        problem(span(value), format!("`{name}` has no `{what}`"), help)
    };
    let channel = members.take("channel").ok_or_else(|| missing("channel"))?;
    let channel = named(reader, channel, "channel", Need::Channel)?;
    let bytes = byte_amount(members.take("bytes").ok_or_else(|| missing("bytes"))?, "bytes")?;
    Ok((channel, bytes))
}

fn wait_any(reader: &mut Reader, value: &Value, name: &str) -> Result<Op> {
    let Value::Array(array) = value else {
        return wrong_kind(value, name, "an array of names: [\"pipe1\", \"semaphore1\"]");
    };
    let mut set = Vec::with_capacity(array.elements.len());
    for element in &array.elements {
        let id = named(reader, element, name, Need::Pollable)?;
        if set.contains(&id) {
            let message = format!("`{name}` names the same object twice");
            return Err(problem(span(element), message, "name each object once"));
        }
        set.push(id);
    }
    if set.is_empty() {
        let help = "it would wait for ever: name a pipe, a socketpair or a semaphore";
        return Err(problem(span(value), format!("`{name}` names nothing"), help));
    }
    Ok(Op::WaitAny { set: reader.objects.wait_set(set) })
}

fn suspend_or_resume(
    reader: &mut Reader,
    code: &mut Code,
    event: Event,
    member: &ObjectProp,
    task: &str,
) -> Result<()> {
    let (name, value) = (key(member), &member.value);
    let suspends = event == Event::Suspend;
    let target = match value {
        // rt-app's workgen puts the task's own name where none is given.
        Value::NullKeyword(_) if suspends => task,
        _ => match string(value, name)? {
            "" if suspends => task,
            "" => {
                let help = "name the task, or what the task suspends on";
                return Err(problem(span(value), format!("`{name}` names nothing"), help));
            }
            target => target,
        },
    };
    let place = span(value);
    if !reader.objects.is_shared_event(target) {
        let object = reader.objects.resolve(target, Need::Event, place.clone())?;
        code.push(if suspends { Op::Suspend { object } } else { Op::Resume { object } }, place);
        return Ok(());
    }
    let condvar = reader.objects.resolve(target, Need::Condvar, place.clone())?;
    let mutex = reader.objects.resolve(target, Need::Mutex, place.clone())?;
    let inner =
        if suspends { Op::Wait { condvar, mutex } } else { Op::Broadcast { object: condvar } };
    for op in [Op::Lock { object: mutex }, inner, Op::Unlock { object: mutex }] {
        code.push(op, place.clone());
    }
    Ok(())
}
