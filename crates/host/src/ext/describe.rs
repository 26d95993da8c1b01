// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the description of a scheduler from its object's type information (BTF). Objects are
//! untrusted: missing or malformed data is an error with the object's name, or is left out if it is
//! only displayed.

use super::options::{OptionInfo, Place};
use super::{Build, CounterInfo, Description, Source};
use crate::error::HostError;
use libbpf_rs::btf::types::{
    Array, DataSec, DeclTag, Enum, Int, IntEncoding, MemberAttr, Ptr, Struct, Var,
};
use libbpf_rs::btf::{Btf, BtfType, HasSize, ReferencesType, TypeId};
use libbpf_rs::{MapType, ObjectBuilder, OpenObject};
use std::collections::HashMap;
use std::ffi::OsStr;

/// Deepest array of arrays that is looked into.
const DEPTH_MAX: u32 = 4;

/// Place of the members of a `struct user_exit_info` in section .data.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExitPlace {
    pub kind: usize,
    pub exit_code: usize,
    /// Offset and length.
    pub reason: (usize, usize),
    pub message: (usize, usize),
}

/// An opened object, and what is known of it.
pub(super) struct Opened {
    pub object: OpenObject,
    pub description: Description,
    /// Name of the map with the sched_ext_ops.
    pub ops_map: String,
    /// Name of the map with section .rodata.
    pub rodata_map: Option<String>,
    /// Every integer of section .rodata, by name.
    pub constants: Vec<(String, Place)>,
    /// Size of an element of the array that a section of its own holds, by the section's name.
    pub arrays: Vec<(String, u32)>,
    pub exit: Option<ExitPlace>,
    /// Offsets of the counters in a value of map `stats`.
    pub counter_offsets: Vec<usize>,
}

/// Describes `source`, without loading it.
///
/// # Errors
/// As [`super::object`]; the file is not an object, or contains no scheduler.
pub fn describe(source: &Source, build: &Build) -> Result<Description, HostError> {
    open(source, build).map(|opened| opened.description)
}

/// Describes the object `bytes`, which the user calls `name`.
///
/// # Errors
/// It is not an object, or contains no scheduler.
pub fn describe_object(name: &str, bytes: &[u8]) -> Result<Description, HostError> {
    open_bytes(&Source::parse(name), bytes).map(|opened| opened.description)
}

fn lossy(name: Option<&OsStr>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads and opens `source`.
pub(super) fn open(source: &Source, build: &Build) -> Result<Opened, HostError> {
    let bytes = super::object(source, build)?;
    open_bytes(source, &bytes)
}

/// Opens the object `bytes` of `source`.
pub(super) fn open_bytes(source: &Source, bytes: &[u8]) -> Result<Opened, HostError> {
    let bad = |what: String| HostError::Input(format!("{source}: {what}"));
    let messages = super::verifier::Messages::collect();
    let object = ObjectBuilder::default().open_memory(bytes).map_err(|error| {
        bad(format!("is no BPF object that can be opened: {error}{}", messages.tail()))
    })?;
    let btf = Btf::from_raw("scheduler", bytes)
        .ok()
        .flatten()
        .ok_or_else(|| bad("has no BTF: compile it with clang -g -target bpf".into()))?;
    drop(messages);
    let ops: Vec<String> = object
        .maps()
        .filter(|map| map.map_type() == MapType::StructOps)
        .map(|map| map.name().to_string_lossy().into_owned())
        .collect();
    let [ops_map] = ops.as_slice() else {
        return Err(bad(format!(
            "holds {} struct_ops maps; a scheduler has one struct sched_ext_ops in section \
             .struct_ops.link",
            ops.len()
        )));
    };
    let tags = Tags::of(&btf);
    let rodata = object
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .map(|map| (lossy(Some(map.name())), map.initial_value().unwrap_or(&[]).to_vec()));
    let options = match &rodata {
        Some((_, section)) => options(&btf, &tags, section).map_err(bad)?,
        None => Vec::new(),
    };
    let (counters, counter_offsets) = counters(&btf, &tags);
    let name = ops_name(&object, &btf, ops_map)
        .ok_or_else(|| bad("has no struct sched_ext_ops with a name".into()))?;
    let exit = exit_place(&btf);
    let bytes = rodata.as_ref().map_or(&[][..], |(_, section)| section);
    let empty_tables = empty_tables(&btf, bytes);
    let description = Description { name, options, counters, empty_tables };
    let (ops_map, rodata_map) = (ops_map.clone(), rodata.map(|(name, _)| name));
    let (constants, arrays) = (constants(&btf), arrays(&btf));
    Ok(Opened {
        object,
        description,
        ops_map,
        rodata_map,
        constants,
        arrays,
        exit,
        counter_offsets,
    })
}

fn constants(btf: &Btf<'_>) -> Vec<(String, Place)> {
    let Some(section) = section(btf, ".rodata") else { return Vec::new() };
    let constants = section.iter().filter_map(|entry| {
        let var = btf.type_by_id::<Var<'_>>(entry.ty)?;
        Some((lossy(var.name()), place(var.referenced_type(), entry.offset)?))
    });
    constants.collect()
}

/// Constants that are arrays of numbers without a value: those of section .rodata that are all
/// zeroes, and those of unknown length, which have a section of their own (RESIZABLE_ARRAY). Arrays
/// of characters are texts.
fn empty_tables(btf: &Btf<'_>, bytes: &[u8]) -> Vec<String> {
    let is_empty = |offset: u32, size: usize| {
        let section = bytes.get(offset as usize..).and_then(|rest| rest.get(..size));
        section.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    };
    let own = section(btf, ".rodata").into_iter().flat_map(|section| {
        let entries = section.iter().filter_map(|entry| {
            let var = btf.type_by_id::<Var<'_>>(entry.ty)?;
            let is_found = is_table(var.referenced_type(), 0) && is_empty(entry.offset, entry.size);
            is_found.then(|| lossy(var.name()))
        });
        entries.collect::<Vec<_>>()
    });
    let sections = arrays(btf).into_iter();
    let sized = sections.filter_map(|(name, _)| Some(name.strip_prefix(".rodata.")?.to_owned()));
    own.chain(sized).collect()
}

/// Whether a type is an array of numbers, or an array of such arrays.
fn is_table(ty: BtfType<'_>, depth: u32) -> bool {
    let ty = ty.skip_mods_and_typedefs();
    let Ok(array) = Array::try_from(ty) else {
        let is_text = |place: Place| place.size == 1 && place.is_signed;
        return depth > 0 && place(ty, 0).is_some_and(|place| !is_text(place));
    };
    depth < DEPTH_MAX && is_table(array.contained_type(), depth + 1)
}

/// Arrays of one element that are alone in a section named after them (RESIZABLE_ARRAY).
fn arrays(btf: &Btf<'_>) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for section in btf.type_by_kind::<DataSec<'_>>() {
        let name = lossy(section.name());
        let mut entries = section.iter();
        let (Some(entry), None) = (entries.next(), entries.next()) else { continue };
        let Some(var) = btf.type_by_id::<Var<'_>>(entry.ty) else { continue };
        let own = lossy(var.name());
        let is_alone = [".data.", ".rodata.", ".bss."]
            .iter()
            .any(|start| name.strip_prefix(start) == Some(own.as_str()));
        let array = Array::try_from(var.referenced_type().skip_mods_and_typedefs());
        if let (true, Ok(array)) = (is_alone, array)
            && array.capacity() == 1
        {
            found.push((name, entry.size as u32));
        }
    }
    found
}

/// Declaration tags by type and member.
struct Tags(HashMap<(u32, Option<u32>), String>);

impl Tags {
    fn of(btf: &Btf<'_>) -> Self {
        let tags = btf.type_by_kind::<DeclTag<'_>>();
        Self(
            tags.map(|tag| {
                let about = (id_of(tag.referenced_type().type_id()), tag.component_index());
                (about, lossy(tag.name()))
            })
            .collect(),
        )
    }

    fn get(&self, type_id: TypeId, member: Option<u32>) -> Option<&str> {
        self.0.get(&(id_of(type_id), member)).map(String::as_str)
    }
}

fn id_of(id: TypeId) -> u32 {
    id.into()
}

pub(super) fn section<'b>(btf: &'b Btf<'b>, name: &str) -> Option<DataSec<'b>> {
    btf.type_by_name::<DataSec<'_>>(name)
}

/// The integer variable of this type; `None` for other types.
fn place(ty: BtfType<'_>, offset: u32) -> Option<Place> {
    let ty = ty.skip_mods_and_typedefs();
    let offset = offset as usize;
    let place = match Int::try_from(ty) {
        Ok(int) => Place {
            offset,
            size: (usize::from(int.bits)).div_ceil(8),
            is_signed: matches!(int.encoding, IntEncoding::Signed),
            is_bool: matches!(int.encoding, IntEncoding::Bool),
        },
        Err(ty) => {
            let word = Enum::try_from(ty).ok()?;
            Place { offset, size: word.size(), is_signed: word.is_signed(), is_bool: false }
        }
    };
    matches!(place.size, 1 | 2 | 4 | 8).then_some(place)
}

fn options(btf: &Btf<'_>, tags: &Tags, bytes: &[u8]) -> Result<Vec<OptionInfo>, String> {
    let Some(section) = section(btf, ".rodata") else { return Ok(Vec::new()) };
    let mut options = Vec::new();
    for entry in section.iter() {
        let Some(var) = btf.type_by_id::<Var<'_>>(entry.ty) else { continue };
        let name = lossy(var.name());
        // Data of macros (format strings, enumerators) is not an option.
        if name.is_empty() || name.starts_with('_') || name.contains('.') {
            continue;
        }
        let Some(place) = place(var.referenced_type(), entry.offset) else { continue };
        let tag = tags.get(entry.ty, None);
        let option = OptionInfo::new(&name, place, bytes, tag)
            .map_err(|why| format!("option {name}: {why}"))?;
        options.push(option);
    }
    // Those with a description first, in the order of the source.
    options.sort_by_key(|option| (option.text.is_empty(), option.offset));
    Ok(options)
}

fn member_offset(attr: MemberAttr) -> Option<usize> {
    match attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

/// The members of the value of map `stats` that are u64.
fn counters(btf: &Btf<'_>, tags: &Tags) -> (Vec<CounterInfo>, Vec<usize>) {
    let value = stats_value(btf);
    let Some(value) = value else { return (Vec::new(), Vec::new()) };
    let mut counters = Vec::new();
    let mut offsets = Vec::new();
    for (index, member) in value.iter().enumerate() {
        let place = btf
            .type_by_id::<BtfType<'_>>(member.ty)
            .and_then(|ty| place(ty, 0))
            .filter(|place| place.size == 8);
        let (Some(_), Some(offset)) = (place, member_offset(member.attr)) else { continue };
        let text = tags.get(value.type_id(), Some(index as u32)).unwrap_or_default().into();
        counters.push(CounterInfo { name: lossy(member.name), text });
        offsets.push(offset);
    }
    (counters, offsets)
}

/// The struct behind member `value` of map `stats` in section .maps.
fn stats_value<'b>(btf: &'b Btf<'b>) -> Option<Struct<'b>> {
    let maps = section(btf, ".maps")?;
    let var = maps
        .iter()
        .filter_map(|entry| btf.type_by_id::<Var<'_>>(entry.ty))
        .find(|var| var.name() == Some(OsStr::new("stats")))?;
    let map = Struct::try_from(var.referenced_type().skip_mods_and_typedefs()).ok()?;
    let value = map.iter().find(|member| member.name == Some(OsStr::new("value")))?;
    let pointer = btf.type_by_id::<Ptr<'_>>(value.ty)?;
    Struct::try_from(pointer.referenced_type().skip_mods_and_typedefs()).ok()
}

fn exit_place(btf: &Btf<'_>) -> Option<ExitPlace> {
    let data = section(btf, ".data")?;
    data.iter().find_map(|entry| {
        let var = btf.type_by_id::<Var<'_>>(entry.ty)?;
        let info = Struct::try_from(var.referenced_type().skip_mods_and_typedefs()).ok()?;
        if info.name() != Some(OsStr::new("user_exit_info")) {
            return None;
        }
        let start = entry.offset as usize;
        let members: Vec<(String, usize)> = info
            .iter()
            .filter_map(|member| Some((lossy(member.name), start + member_offset(member.attr)?)))
            .collect();
        let of = |name: &str| members.iter().position(|(member, _)| member == name);
        // A text ends where the next member begins.
        let text = |name: &str| {
            let at = of(name)?;
            let end = members.get(at + 1).map_or(start + info.size(), |(_, next)| *next);
            Some((members[at].1, end.checked_sub(members[at].1)?))
        };
        Some(ExitPlace {
            kind: members[of("kind")?].1,
            exit_code: members[of("exit_code")?].1,
            reason: text("reason")?,
            message: text("msg")?,
        })
    })
}

fn ops_name(object: &OpenObject, btf: &Btf<'_>, ops_map: &str) -> Option<String> {
    let ops = btf.type_by_name::<Struct<'_>>("sched_ext_ops")?;
    let name = ops.iter().find(|member| member.name == Some(OsStr::new("name")))?;
    let offset = member_offset(name.attr)?;
    let map = object.maps().find(|map| map.name() == OsStr::new(ops_map))?;
    let bytes = map.initial_value()?.get(offset..)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    (!name.is_empty()).then_some(name)
}
