// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads a scheduler, monitors it and unloads it.

use super::describe::{ExitPlace, Opened, open_bytes};
use super::exit::ExitFields;
use super::setup::Applied;
use super::verifier::{Messages, condense};
use super::{Build, Counter, Description, ExitInfo, Source, check_kernel, kernel_state};
use super::{options, prepare};
use crate::error::HostError;
use libbpf_rs::{Link, MapCore, MapFlags, Object};
use schedlab_scx_source::ReadySetup;
use std::time::{Duration, Instant};

/// Longest time in which the kernel activates or removes a scheduler: it visits every task.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two readings of the kernel's state.
const PAUSE: Duration = Duration::from_millis(2);

/// A loaded scheduler. A drop unloads it; its tasks continue under the kernel's own class.
#[derive(Debug)]
pub struct Loaded {
    description: Description,
    object: Object,
    link: Option<Link>,
    exit: Option<ExitPlace>,
    counter_offsets: Vec<usize>,
}

/// Loads the scheduler of `source` on this machine, with `settings` (name and value, see
/// [`super::OptionInfo`]). A constant `tick_ns` is set to the length of the kernel's tick. `setup`
/// takes the place of the scheduler's user program; `settings` win over it.
///
/// # Errors
/// The kernel cannot load it ([`check_kernel`]), the source, the setup or a setting is wrong, the
/// verifier refuses a callback, or the scheduler ended at once.
pub fn load(
    source: &Source,
    build: &Build,
    settings: &[(String, String)],
    setup: Option<&ReadySetup>,
) -> Result<Loaded, HostError> {
    // Errors of the request are reported first, because they hold for every machine.
    let bytes = super::object(source, build)?;
    let mut opened = open_bytes(source, &bytes)?;
    let name = opened.description.name.clone();
    let setup = setup.map(|setup| Applied::new(setup, &name, &bytes)).transpose()?;
    configure(&mut opened, settings, setup.as_ref())?;
    check_kernel()?;
    let messages = Messages::collect();
    let refused = |error: libbpf_rs::Error| {
        HostError::System(format!(
            "scheduler {name} was refused: {} ({error})",
            condense(&messages.text())
        ))
    };
    let mut object = opened.object.load().map_err(refused)?;
    setup.as_ref().map_or(Ok(()), |setup| setup.before_attach(&object))?;
    let on_cpu = setup.as_ref().map(Applied::on_init_cpu).transpose()?;
    let link = object
        .maps_mut()
        .find(|map| map.name().to_string_lossy() == opened.ops_map)
        .ok_or_else(|| HostError::System(format!("scheduler {name}: its ops are gone")))?
        .attach_struct_ops()
        .map_err(refused)?;
    drop((messages, on_cpu));
    let loaded = Loaded {
        description: opened.description,
        object,
        link: Some(link),
        exit: opened.exit,
        counter_offsets: opened.counter_offsets,
    };
    loaded.begins()?;
    setup.as_ref().map_or(Ok(()), |setup| setup.run_programs(&loaded.object, true))?;
    Ok(loaded)
}

/// Sets the constants and the sizes of maps, first as a user program would, then as asked.
pub(super) fn configure(
    opened: &mut Opened,
    settings: &[(String, String)],
    setup: Option<&Applied<'_>>,
) -> Result<(), HostError> {
    prepare::sizes(opened)?;
    prepare::constants(opened);
    setup.map_or(Ok(()), |setup| setup.before_load(opened))?;
    let description = &opened.description;
    let wanted = opened.rodata_map.as_deref();
    let mut none = [];
    let mut map = opened.object.maps_mut().find(|map| wanted == map.name().to_str());
    let section = map.as_mut().and_then(|map| map.initial_value_mut()).unwrap_or(&mut none);
    options::apply(&description.options, settings, section, &description.name)?;
    Ok(())
}

impl Loaded {
    /// Its name, as in /sys/kernel/sched_ext/root/ops.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Its description.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Waits until the kernel has activated it.
    fn begins(&self) -> Result<(), HostError> {
        let since = Instant::now();
        loop {
            if let Some(exit) = self.exit()? {
                return Err(HostError::System(format!(
                    "scheduler {} ended as soon as it began: {exit}; the kernel's own class \
                     schedules again",
                    self.name()
                )));
            }
            let state = kernel_state().unwrap_or_default();
            if state.state == "enabled" {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err(HostError::System(format!(
                    "scheduler {}: the kernel still says {:?} after {} s",
                    self.name(),
                    state.state,
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Its counters, summed over all CPUs; none if it has no map `stats`.
    ///
    /// # Errors
    /// The kernel refuses to read them.
    pub fn stats(&self) -> Result<Vec<Counter>, HostError> {
        let Some(map) = self.object.maps().find(|map| map.name() == "stats") else {
            return Ok(Vec::new());
        };
        let refused = |error: libbpf_rs::Error| {
            HostError::System(format!("statistics of {}: {error}", self.name()))
        };
        let key = 0_u32.to_ne_bytes();
        let values = if map.map_type().is_percpu() {
            map.lookup_percpu(&key, MapFlags::ANY).map_err(refused)?.unwrap_or_default()
        } else {
            map.lookup(&key, MapFlags::ANY).map_err(refused)?.into_iter().collect()
        };
        let sum = |offset: usize| {
            values.iter().filter_map(|value| word(value, offset)).fold(0, u64::wrapping_add)
        };
        let counters = self.description.counters.iter().zip(&self.counter_offsets);
        Ok(counters
            .map(|(info, offset)| Counter {
                name: info.name.clone(),
                text: info.text.clone(),
                value: sum(*offset),
            })
            .collect())
    }

    /// Why it ended; `None` while it is active.
    ///
    /// # Errors
    /// The kernel refuses to read it.
    pub fn exit(&self) -> Result<Option<ExitInfo>, HostError> {
        let Some(place) = self.exit else { return Ok(self.exit_without_info()) };
        let data = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".data"));
        let Some(data) = data else { return Ok(self.exit_without_info()) };
        let section = data
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| HostError::System(format!("exit of {}: {error}", self.name())))?
            .unwrap_or_default();
        Ok(fields(&section, place).and_then(|fields| fields.read()))
    }

    /// For a scheduler that records nothing: derives it from the kernel's state.
    fn exit_without_info(&self) -> Option<ExitInfo> {
        let state = kernel_state().unwrap_or_default();
        let is_ours = state.ops.is_empty() || state.ops == self.name();
        let is_gone = state.is_free() || !is_ours;
        (is_gone && self.link.is_some()).then(|| ExitInfo {
            kind: super::EXIT_ERROR,
            reason: "it is no longer loaded".into(),
            message: "it records no reason; the kernel's log (dmesg) has it".into(),
            exit_code: 0,
        })
    }

    /// Unloads it and returns why it ended, which may have happened earlier.
    ///
    /// # Errors
    /// The kernel does not unload it.
    pub fn detach(mut self) -> Result<ExitInfo, HostError> {
        drop(self.link.take());
        let since = Instant::now();
        loop {
            let state = kernel_state().unwrap_or_default();
            let exit = if self.exit.is_some() { self.exit()? } else { None };
            if state.is_free() {
                return Ok(exit.unwrap_or(ExitInfo {
                    kind: super::EXIT_UNREG,
                    reason: super::kind_name(super::EXIT_UNREG).into(),
                    message: String::new(),
                    exit_code: 0,
                }));
            }
            if since.elapsed() > PATIENCE {
                return Err(HostError::System(format!(
                    "scheduler {} does not go: the kernel still says {:?} after {} s",
                    self.name(),
                    state.state,
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

fn fields(section: &[u8], place: ExitPlace) -> Option<ExitFields<'_>> {
    let text = |(start, len): (usize, usize)| section.get(start..start.checked_add(len)?);
    let kind = section.get(place.kind..place.kind.checked_add(4)?)?;
    Some(ExitFields {
        kind: u32::from_ne_bytes(kind.try_into().ok()?),
        reason: text(place.reason)?,
        message: text(place.message)?,
        exit_code: word(section, place.exit_code)? as i64,
    })
}
