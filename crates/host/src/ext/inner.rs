// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills maps of maps as a user program does: each empty place gets a map of its own. libbpf makes
//! only those that the source names.

use super::describe::Opened;
use libbpf_rs::{
    AsRawLibbpf, MapCore, MapFlags, MapHandle, MapType, Object, OpenMapMut, libbpf_sys,
};
use std::os::fd::{AsFd, AsRawFd};

/// What the inner maps of a map are like. libbpf forgets it when it loads the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InnerMaps {
    /// The outer map.
    map: String,
    kind: MapType,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

impl InnerMaps {
    /// Those of the map called `name`.
    pub fn of(opened: &mut Opened, name: &str) -> Result<Self, String> {
        let mut maps = opened.object.maps_mut();
        let outer: OpenMapMut<'_> = maps
            .find(|map| map.name().to_string_lossy() == name)
            .ok_or("the scheduler has none")?;
        // SAFETY: the map is alive as long as the object.
        let inner = unsafe { libbpf_sys::bpf_map__inner_map(outer.as_libbpf_object().as_ptr()) };
        if inner.is_null() {
            return Err("it is no map of maps".into());
        }
        // SAFETY: the inner map belongs to the outer one.
        unsafe {
            Ok(Self {
                map: name.to_owned(),
                kind: MapType::from(libbpf_sys::bpf_map__type(inner)),
                key_size: libbpf_sys::bpf_map__key_size(inner),
                value_size: libbpf_sys::bpf_map__value_size(inner),
                max_entries: libbpf_sys::bpf_map__max_entries(inner),
            })
        }
    }

    /// Gives each empty place of the loaded map a map.
    pub fn fill(&self, object: &Object) -> Result<(), String> {
        let mut maps = object.maps();
        let outer = maps.find(|map| map.name().to_string_lossy() == self.map.as_str());
        let outer = outer.ok_or("the scheduler has none")?;
        let wrong = |error: libbpf_rs::Error| error.to_string();
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        for index in 0..outer.max_entries() {
            let key = index.to_ne_bytes();
            if outer.lookup(&key, MapFlags::ANY).map_err(wrong)?.is_some() {
                continue;
            }
            let inner = MapHandle::create(
                self.kind,
                None::<&str>,
                self.key_size,
                self.value_size,
                self.max_entries,
                &options,
            );
            let fd = inner.map_err(wrong)?;
            let value = fd.as_fd().as_raw_fd().to_ne_bytes();
            outer.update(&key, &value, MapFlags::ANY).map_err(wrong)?;
        }
        Ok(())
    }
}
