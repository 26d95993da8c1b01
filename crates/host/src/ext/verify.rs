// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads each program of a scheduler for the verifier's log, without attaching anything.
//!
//! libbpf loads an object's programs one after the other and stops at the first that is refused.
//! So a refused program is left out of the next attempt, together with those that are known
//! already. A callback is left out by clearing its member of `sched_ext_ops`: libbpf loads what
//! the struct names, even if `autoload` is off.

use super::describe::{Opened, open_bytes};
use super::load::configure;
use super::setup::Applied;
use super::verdict::{ObjectLog, ProgramLog};
use super::verifier::{Messages, condense};
use super::{Build, Source};
use crate::error::HostError;
use libbpf_rs::{AsRawLibbpf, MapType, libbpf_sys};
use schedlab_scx_source::ReadySetup;
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Levels of the verifier's log (include/linux/bpf_verifier.h): the paths, and the figures at the
/// end.
const LOG_PATHS: u32 = 1;
const LOG_FIGURES: u32 = 4;
/// Bytes for the log of a program with figures only.
const FIGURES_BYTES: usize = 256 << 10;
/// Bytes for the log of a refused program. The kernel keeps the end of a longer one.
const PATHS_BYTES: usize = 4 << 20;
/// Bytes of a refused program's log that are returned.
const RETURNED_BYTES: usize = 256 << 10;
/// How the last line of a log begins that has the figures of a program.
const PROCESSED: &str = "processed ";
/// How libbpf begins a message about a program.
const PROGRAM: &str = "prog '";

/// Loads every program of `source` for the running kernel's verifier, with `settings` as in
/// [`super::load()`]. Of `setup`, flags and variables count.
///
/// # Errors
/// The kernel has no sched_ext, or the source, the setup or a setting is wrong. A refusal is no
/// error.
pub fn verify(
    source: &Source,
    build: &Build,
    settings: &[(String, String)],
    setup: Option<&ReadySetup>,
) -> Result<ObjectLog, HostError> {
    let bytes = super::object(source, build)?;
    let opened = open_bytes(source, &bytes)?;
    let name = &opened.description.name;
    let setup = setup.map(|setup| Applied::new(setup, name, &bytes)).transpose()?;
    super::check_kernel()?;
    let mut programs = programs(&opened);
    let scheduler = opened.description.name.clone();
    drop(opened);
    let attempt = |wanted: &[&str], level| {
        let mut opened = open_bytes(source, &bytes)?;
        configure(&mut opened, settings, setup.as_ref())?;
        Ok::<_, HostError>(load(opened, wanted, level))
    };
    let mut known: BTreeMap<String, Outcome> = BTreeMap::new();
    let mut error = None;
    loop {
        let names = programs.iter().map(|log| log.program.as_str());
        let wanted: Vec<&str> = names.filter(|name| !known.contains_key(*name)).collect();
        if wanted.is_empty() {
            break;
        }
        let loaded = attempt(&wanted, LOG_FIGURES)?;
        known.extend(loaded.accepted);
        let Some((name, outcome)) = loaded.refused else { break };
        if !wanted.contains(&name.as_str()) {
            error = outcome.error;
            break;
        }
        // Once more, alone, for the path that leads to the refusal.
        let again = attempt(&[&name], LOG_FIGURES | LOG_PATHS)?.refused;
        let outcome = again.filter(|(found, _)| *found == name).map_or(outcome, |(_, same)| same);
        known.insert(name, outcome);
    }
    programs.retain_mut(|log| {
        let Some(outcome) = known.remove(&log.program) else { return false };
        (log.error, log.log) = (outcome.error, outcome.log);
        true
    });
    Ok(ObjectLog { scheduler, programs, error })
}

/// What came of one program.
struct Outcome {
    error: Option<String>,
    log: String,
}

/// What came of one attempt, by the names of the programs. The name of a refused one is empty if
/// the attempt failed for another reason than a program.
#[derive(Default)]
struct Attempt {
    accepted: Vec<(String, Outcome)>,
    refused: Option<(String, Outcome)>,
}

/// The programs that are loaded unless one is asked otherwise.
fn programs(opened: &Opened) -> Vec<ProgramLog> {
    let text = |name: &OsStr| name.to_string_lossy().into_owned();
    let loaded = opened.object.progs().filter(|program| program.autoload());
    loaded
        .map(|program| ProgramLog {
            program: text(program.name()),
            section: text(program.section()),
            ..ProgramLog::default()
        })
        .collect()
}

/// Loads the programs called `wanted` and unloads them again.
fn load(mut opened: Opened, wanted: &[&str], level: u32) -> Attempt {
    leave_out(&mut opened, wanted);
    let len = if level & LOG_PATHS == 0 { FIGURES_BYTES } else { PATHS_BYTES };
    let mut logs: Vec<(String, Vec<u8>)> = Vec::new();
    for mut program in opened.object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if !wanted.contains(&name.as_str()) {
            continue;
        }
        let mut log = vec![0_u8; len];
        program.set_log_level(level);
        let raw = program.as_libbpf_object().as_ptr();
        // SAFETY: the bytes of the vector outlive the object, which this function consumes.
        unsafe { libbpf_sys::bpf_program__set_log_buf(raw, log.as_mut_ptr().cast(), len as _) };
        logs.push((name, log));
    }
    let messages = Messages::collect();
    let result = opened.object.load();
    let said = messages.text();
    drop(messages);
    let text = |log: &[u8]| {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        String::from_utf8_lossy(&log[end.saturating_sub(RETURNED_BYTES)..end]).into_owned()
    };
    let is_loaded = |log: &&(String, Vec<u8>)| text(&log.1).contains(PROCESSED);
    let accepted =
        |log: &(String, Vec<u8>)| (log.0.clone(), Outcome { error: None, log: text(&log.1) });
    if result.is_ok() {
        return Attempt { accepted: logs.iter().map(accepted).collect(), refused: None };
    }
    // Programs are loaded in order: those before the refused one that have figures are loaded.
    let refused = refused_program(&said).filter(|name| wanted.contains(name));
    let at = logs.iter().position(|(name, _)| Some(name.as_str()) == refused);
    let before = &logs[..at.unwrap_or(0)];
    let outcome = match at {
        Some(at) => Outcome { error: first_words(&said, &logs[at].0), log: text(&logs[at].1) },
        None => Outcome { error: Some(condense(&said)), log: String::new() },
    };
    Attempt {
        accepted: before.iter().filter(is_loaded).map(accepted).collect(),
        refused: Some((refused.unwrap_or_default().to_owned(), outcome)),
    }
}

/// Keeps all programs except those called `wanted` from being loaded.
fn leave_out(opened: &mut Opened, wanted: &[&str]) {
    let mut left_out = Vec::new();
    for mut program in opened.object.progs_mut() {
        if !wanted.contains(&&*program.name().to_string_lossy()) {
            program.set_autoload(false);
            left_out.push(program.as_libbpf_object().as_ptr() as usize);
        }
    }
    let is_ops = |map: &libbpf_rs::OpenMapMut<'_>| map.map_type() == MapType::StructOps;
    for mut map in opened.object.maps_mut().filter(is_ops) {
        for member in
            map.initial_value_mut().unwrap_or_default().chunks_exact_mut(size_of::<usize>())
        {
            let pointer = member.try_into().map_or(0, usize::from_ne_bytes);
            if left_out.contains(&pointer) {
                member.fill(0);
            }
        }
    }
}

/// The program that libbpf's last message about a program names.
fn refused_program(said: &str) -> Option<&str> {
    said.rsplit_once(PROGRAM)?.1.split('\'').next()
}

/// The first message of libbpf about a program: the others follow from it.
fn first_words(said: &str, program: &str) -> Option<String> {
    let about = format!("{PROGRAM}{program}': ");
    let line = said.lines().find_map(|line| line.split_once(&about));
    Some(line.map_or_else(|| "libbpf gave no reason".into(), |(_, words)| words.trim().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "libbpf: prog 'on_exec': failed to find kernel BTF type ID of 'x': -ESRCH\n\
        libbpf: prog 'on_exec': failed to prepare load attributes: -ESRCH\n\
        libbpf: prog 'on_exec': failed to load: -ESRCH\n\
        libbpf: failed to load object 'x'\n";

    #[test]
    fn the_refused_program_and_the_first_reason_are_found() {
        assert_eq!(refused_program(SAID), Some("on_exec"));
        let words = first_words(SAID, "on_exec").unwrap();
        assert_eq!(words, "failed to find kernel BTF type ID of 'x': -ESRCH");
        assert_eq!(refused_program("libbpf: extern (func ksym) 'f': not found\n"), None);
    }
}
