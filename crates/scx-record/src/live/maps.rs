// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of bpf(2) after the attach: maps and programs are those of the simulated scheduler.
//! Sections of variables stay files, as the program has mapped them (`sections`).

use super::{Backend, Live};
use crate::RecordError;
use crate::bpf::{Attr, BATCH_MAX, Bpf, CONTEXT_MAX, RUN_ON_CPU, Reply, Target, command, copy_out};
use crate::calls::{Answer, Call};

impl Live {
    /// Answers a call of bpf(2).
    pub(super) fn bpf_call(
        &mut self,
        call: &Call,
        backend: Option<&mut dyn Backend>,
    ) -> Result<Answer, RecordError> {
        let cpu = self.affinities.cpu(call.thread);
        let Some(backend) = backend else { return Ok(self.bpf.answer(call, cpu)) };
        let Some(attr) = Attr::of(call) else { return Ok(Answer::Error(libc::EFAULT)) };
        if call.args[0] == command::PROG_TEST_RUN {
            self.sections.push(backend)?;
            let reply = run(&mut self.bpf, call, &attr, cpu, backend);
            self.sections.pull(backend)?;
            return Ok(reply.unwrap_or_else(Answer::Error));
        }
        let descriptor = match call.args[0] {
            command::MAP_LOOKUP_ELEM
            | command::MAP_UPDATE_ELEM
            | command::MAP_DELETE_ELEM
            | command::MAP_GET_NEXT_KEY
            | command::MAP_LOOKUP_AND_DELETE_ELEM => attr.u32(0),
            command::MAP_LOOKUP_BATCH
            | command::MAP_LOOKUP_AND_DELETE_BATCH
            | command::MAP_UPDATE_BATCH
            | command::MAP_DELETE_BATCH => attr.u32(36),
            _ => return Ok(self.bpf.answer(call, cpu)),
        };
        Ok(match self.bpf.target(call, descriptor) {
            Ok(map) if map.is_section => self.bpf.answer(call, cpu),
            Ok(map) => of_map(&map, call, &attr, backend).unwrap_or_else(Answer::Error),
            Err(error) => Answer::Error(error),
        })
    }
}

/// Runs a program (BPF_PROG_TEST_RUN).
fn run(
    bpf: &mut Bpf,
    call: &Call,
    attr: &Attr,
    cpu: Option<u32>,
    backend: &mut dyn Backend,
) -> Reply {
    let program = bpf.program(call, attr.u32(0))?;
    let len = attr.u32(40);
    if len > CONTEXT_MAX {
        return Err(libc::E2BIG);
    }
    let mut context = match attr.u64(48) {
        0 => Vec::new(),
        at => call.read(at, len as usize).ok_or(libc::EFAULT)?,
    };
    let cpu = if attr.u32(64) & RUN_ON_CPU != 0 { Some(attr.u32(68)) } else { cpu };
    let answer = backend.run(&program, &mut context, cpu)?;
    let argument = call.args[1];
    let is_written = (context.is_empty() || call.write(attr.u64(48), &context))
        && call.write(argument + 4, &answer.to_le_bytes())
        && call.write(argument + 36, &[0; 4]);
    if is_written { Ok(Answer::Value(0)) } else { Err(libc::EFAULT) }
}

/// A key in the caller's memory.
fn key_at(map: &Target, call: &Call, at: u64) -> Result<Vec<u8>, i32> {
    match map.key_size {
        0 => Ok(Vec::new()),
        size => call.read(at, size).ok_or(libc::EFAULT),
    }
}

/// A command about a map.
fn of_map(map: &Target, call: &Call, attr: &Attr, backend: &mut dyn Backend) -> Reply {
    let (key_at_attr, value_at) = (attr.u64(8), attr.u64(16));
    let name = map.name.as_str();
    match call.args[0] {
        command::MAP_LOOKUP_ELEM => {
            let key = key_at(map, call, key_at_attr)?;
            copy_out(call, value_at, &backend.lookup(name, &key)?)
        }
        command::MAP_UPDATE_ELEM => {
            let key = key_at(map, call, key_at_attr)?;
            let value = call.read(value_at, map.value_len).ok_or(libc::EFAULT)?;
            backend.update(name, &key, &value, attr.u64(24)).map(|()| Answer::Value(0))
        }
        command::MAP_DELETE_ELEM => {
            let key = key_at(map, call, key_at_attr)?;
            backend.delete(name, &key).map(|()| Answer::Value(0))
        }
        command::MAP_LOOKUP_AND_DELETE_ELEM if map.key_size == 0 => {
            copy_out(call, value_at, &backend.pop(name)?)
        }
        command::MAP_LOOKUP_AND_DELETE_ELEM => {
            let key = key_at(map, call, key_at_attr)?;
            let value = backend.lookup(name, &key)?;
            backend.delete(name, &key)?;
            copy_out(call, value_at, &value)
        }
        command::MAP_GET_NEXT_KEY => {
            let key = match key_at_attr {
                0 => None,
                at => Some(key_at(map, call, at)?),
            };
            copy_out(call, value_at, &backend.next_key(name, key.as_deref())?)
        }
        _ => batch(map, call, attr, backend),
    }
}

/// A command about several elements. The position in a map between two calls is a key.
fn batch(map: &Target, call: &Call, attr: &Attr, backend: &mut dyn Backend) -> Reply {
    let wanted = attr.u32(32);
    if wanted > BATCH_MAX {
        return Err(libc::E2BIG);
    }
    let reads =
        matches!(call.args[0], command::MAP_LOOKUP_BATCH | command::MAP_LOOKUP_AND_DELETE_BATCH);
    let mut position = match attr.u64(0) {
        0 => None,
        at if reads => Some(key_at(map, call, at)?),
        _ => None,
    };
    let at = |base: usize, size: usize, nth: u32| {
        attr.u64(base).wrapping_add(u64::from(nth) * size as u64)
    };
    let (mut nr, mut result) = (0, Ok(()));
    while nr < wanted && result.is_ok() {
        let (key_at_nth, value_at) = (at(16, map.key_size, nr), at(24, map.value_len, nr));
        result = match reads {
            true => next_of_batch(map, call, &mut position, [key_at_nth, value_at], backend),
            false => {
                let key = key_at(map, call, key_at_nth)?;
                match call.args[0] {
                    command::MAP_DELETE_BATCH => backend.delete(&map.name, &key),
                    _ => {
                        let value = call.read(value_at, map.value_len).ok_or(libc::EFAULT)?;
                        backend.update(&map.name, &key, &value, attr.u64(40))
                    }
                }
            }
        };
        nr += u32::from(result.is_ok());
    }
    if call.args[0] == command::MAP_LOOKUP_AND_DELETE_BATCH {
        for nth in 0..nr {
            let key = key_at(map, call, at(16, map.key_size, nth))?;
            backend.delete(&map.name, &key)?;
        }
    }
    let out = position.filter(|_| reads && attr.u64(8) != 0);
    let is_written = call.write(call.args[1] + 32, &nr.to_le_bytes())
        && out.is_none_or(|key| call.write(attr.u64(8), &key));
    match result {
        _ if !is_written => Err(libc::EFAULT),
        Ok(()) => Ok(Answer::Value(0)),
        Err(error) => Err(error),
    }
}

/// Writes the element after a position to the caller, and moves the position there.
fn next_of_batch(
    map: &Target,
    call: &Call,
    position: &mut Option<Vec<u8>>,
    at: [u64; 2],
    backend: &mut dyn Backend,
) -> Result<(), i32> {
    let key = backend.next_key(&map.name, position.as_deref())?;
    let value = backend.lookup(&map.name, &key)?;
    copy_out(call, at[0], &key)?;
    copy_out(call, at[1], &value)?;
    *position = Some(key);
    Ok(())
}
