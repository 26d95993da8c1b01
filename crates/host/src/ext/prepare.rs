// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets in an opened object what a scheduler's own user program would set before it loads it.
//!
//! The simulator sets the same ones: the kernel's enumerations and the number of CPUs. An array of
//! unknown length gets an element, and a map without a size an entry, for each CPU. Without all
//! that an unmodified scheduler of the kernel's tree loads, with slices of 0.

use super::describe::Opened;
use crate::error::HostError;
use crate::sys;
use libbpf_rs::MapType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64};
use schedlab_scx_source::Constant;
use std::collections::HashMap;

/// Enumerator of the kernel's default slice.
const SLICE_DFL: &str = "SCX_SLICE_DFL";
/// Its value in every kernel so far, ns.
const SLICE_DFL_NS: i128 = 20_000_000;

/// Enumerators of sched_ext in the running kernel.
pub(super) fn enumerators() -> HashMap<String, i128> {
    let Ok(btf) = Btf::from_vmlinux() else { return HashMap::new() };
    let mut all = HashMap::new();
    let mut add = |name: Option<&std::ffi::OsStr>, value: i128| {
        let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
        if name.trim_start_matches('_').starts_with("SCX_") {
            all.insert(name.into_owned(), value);
        }
    };
    for of in btf.type_by_kind::<Enum<'_>>() {
        of.iter().for_each(|member| add(member.name, i128::from(member.value)));
    }
    for of in btf.type_by_kind::<Enum64<'_>>() {
        of.iter().for_each(|member| add(member.name, member.value));
    }
    all
}

/// Sets the constants that are known by their names.
pub(super) fn constants(opened: &mut Opened) {
    let (constants, wanted) = (&opened.constants, opened.rodata_map.as_deref());
    let known: Vec<_> =
        constants.iter().filter_map(|(name, place)| Some((Constant::of(name)?, *place))).collect();
    if known.is_empty() {
        return;
    }
    let enumerators = enumerators();
    let mut map = opened.object.maps_mut().find(|map| wanted == map.name().to_str());
    let Some(section) = map.as_mut().and_then(|map| map.initial_value_mut()) else { return };
    for (constant, place) in known {
        let before = place.read(section);
        let value = match constant {
            Constant::Enumerator(name) => enumerators.get(name).copied(),
            // Nothing reads the dump that the scheduler would keep.
            Constant::DumpLen => None,
            Constant::NrCpus => libbpf_rs::num_possible_cpus().ok().map(|nr| nr as i128),
            Constant::TickNs => Some(i128::from(sys::tick_ns())),
            Constant::SliceNs if before == Some(0) => {
                Some(enumerators.get(SLICE_DFL).copied().unwrap_or(SLICE_DFL_NS))
            }
            Constant::SliceNs => None,
        };
        if let Some(value) = value {
            place.write(section, value);
        }
    }
}

/// Gives arrays of unknown length and maps without a size an element for each CPU.
pub(super) fn sizes(opened: &mut Opened) -> Result<(), HostError> {
    let nr_cpus = libbpf_rs::num_possible_cpus().unwrap_or(1) as u32;
    let arrays = &opened.arrays;
    for mut map in opened.object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let needs_entries = matches!(
            map.map_type(),
            MapType::Hash
                | MapType::Array
                | MapType::PercpuHash
                | MapType::PercpuArray
                | MapType::LruHash
                | MapType::LruPercpuHash
                | MapType::Queue
                | MapType::Stack
        );
        let array = arrays.iter().find(|(section, _)| *section == name);
        let done = match array {
            Some((_, size)) if !name.ends_with("_dump") => {
                map.set_value_size(size.saturating_mul(nr_cpus))
            }
            None if needs_entries && map.max_entries() == 0 => map.set_max_entries(nr_cpus),
            _ => Ok(()),
        };
        done.map_err(|error| HostError::Input(format!("map {name}: {error}")))?;
    }
    Ok(())
}
