// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a scheduler's debug information: its maps, its options, and lines of its code.
//!
//! A kernel gets this from BTF, which compilers write only for BPF; DWARF 4 contains the same.
//! Source: DWARF Debugging Information Format, version 4; the encoding of map definitions is
//! libbpf's (`__uint`, `__type`, `__array`, `__ulong`). Addresses are those of [`debug_address`].

use super::error::NativeError;
use super::object::{ObjectFile, Place, Use};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset,
};
use std::collections::BTreeMap;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The address of section `index` in the debug information: far from the others.
pub fn debug_address(index: usize) -> u64 {
    (index as u64 + 1) << 32
}

/// Section and offset of such an address.
pub fn debug_place(address: u64) -> Option<(usize, u64)> {
    Some(((address >> 32).checked_sub(1)? as usize, address & 0xffff_ffff))
}

/// The type of a variable, as far as options and statistics need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// An integer of this size.
    Int {
        /// Bytes.
        size: u64,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A boolean of one byte.
    Bool,
    /// An enumeration of this size.
    Enum {
        /// Bytes.
        size: u64,
        /// Names and values.
        values: Vec<(String, i64)>,
    },
    /// An array.
    Array {
        /// Type of the elements.
        of: Box<Type>,
        /// Number of elements; 0: unknown.
        nr: u64,
    },
    /// A struct.
    Struct {
        /// Bytes.
        size: u64,
        /// Members: name, offset, type.
        members: Vec<(String, u64, Type)>,
    },
    /// A pointer.
    Pointer,
    /// A bit field.
    Bits {
        /// Bytes that have a part of it.
        size: u64,
        /// Number of bits below it in them.
        shift: u64,
        /// Number of bits.
        bits: u64,
        /// Whether it has a sign.
        signed: bool,
    },
    /// Another type of this size.
    Other {
        /// Bytes.
        size: u64,
    },
}

impl Type {
    /// Bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Int { size, .. }
            | Self::Bits { size, .. }
            | Self::Enum { size, .. }
            | Self::Struct { size, .. }
            | Self::Other { size } => *size,
            Self::Bool => 1,
            Self::Pointer => 8,
            Self::Array { of, nr } => of.size().saturating_mul(*nr),
        }
    }
}

/// A global or static variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Section.
    pub section: usize,
    /// Offset within the section.
    pub offset: u64,
    /// Whether it is an option (`const volatile`).
    pub is_option: bool,
    /// Type.
    pub of: Type,
}

/// The declaration of a map. Missing values are 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapDef {
    /// BPF_MAP_TYPE_*.
    pub map_type: u64,
    /// Bytes of a key.
    pub key_size: u64,
    /// Bytes of a value.
    pub value_size: u64,
    /// Entries.
    pub max_entries: u64,
    /// BPF_F_*.
    pub map_flags: u64,
    /// Offset of the array of inner maps in the variable, if it has one.
    pub values_offset: Option<u64>,
    /// The inner map.
    pub inner: Option<Box<MapDef>>,
    /// Type of a key, if it is declared.
    pub key: Option<Box<Type>>,
    /// Type of a value, if it is declared.
    pub value: Option<Box<Type>>,
    /// Offset and size of the parts of a value that an update leaves alone.
    pub kept: Vec<(u64, u64)>,
}

/// A map and the place of its variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    /// Name.
    pub name: String,
    /// Section.
    pub section: usize,
    /// Offset within the section.
    pub offset: u64,
    /// Definition.
    pub def: MapDef,
}

/// Debug information of one object.
#[derive(Clone, Debug, Default)]
pub struct Debug {
    sections: BTreeMap<String, Vec<u8>>,
    map_sections: Vec<usize>,
}

fn bad(error: impl std::fmt::Display) -> NativeError {
    NativeError::Internal(format!("the debug information cannot be read: {error}"))
}

impl Debug {
    /// The debug sections of `object`, relocated.
    pub fn new(object: &ObjectFile) -> Result<Self, NativeError> {
        let mut this = Self::default();
        for (index, section) in object.sections.iter().enumerate() {
            if section.name == ".maps" {
                this.map_sections.push(index);
            }
            if section.usage != Use::Debug {
                continue;
            }
            let mut bytes = section.bytes.clone();
            for relocation in &section.relocations {
                let value = match object.symbols[relocation.symbol].place {
                    Place::Section(at, offset) if object.sections[at].usage == Use::Debug => offset,
                    Place::Section(at, offset) => debug_address(at) + offset,
                    Place::Absolute(value) => value,
                    Place::Undefined => 0,
                };
                let value = value.wrapping_add_signed(relocation.addend);
                let size = match relocation.r_type {
                    t if t == object::elf::R_X86_64_64.0 => 8,
                    t if t == object::elf::R_X86_64_32.0 => 4,
                    t => return Err(bad(format!("relocation {t} in {}", section.name))),
                };
                let at = relocation.offset as usize;
                let place = bytes.get_mut(at..at.saturating_add(size));
                let place = place.ok_or_else(|| bad("a relocation outside its section"))?;
                place.copy_from_slice(&value.to_le_bytes()[..size]);
            }
            this.sections.insert(section.name.clone(), bytes);
        }
        Ok(this)
    }

    fn dwarf(&self) -> Result<Dwarf<Reader<'_>>, NativeError> {
        Dwarf::load(|id| {
            let bytes = self.sections.get(id.name()).map_or(&[][..], |bytes| &bytes[..]);
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        })
        .map_err(bad)
    }

    /// Every variable that is not a map, and every map.
    pub fn variables(&self) -> Result<(Vec<Variable>, Vec<Map>), NativeError> {
        let dwarf = self.dwarf()?;
        let (mut variables, mut maps) = (Vec::new(), Vec::new());
        let mut units = dwarf.units();
        while let Some(header) = units.next().map_err(bad)? {
            let unit = dwarf.unit(header).map_err(bad)?;
            let walker = Walker { dwarf: &dwarf, unit: &unit };
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs().map_err(bad)? {
                if entry.tag() != gimli::DW_TAG_variable {
                    continue;
                }
                let Some((name, section, offset, ty)) = walker.variable(entry)? else { continue };
                if self.map_sections.contains(&section) {
                    let def = walker.map(ty, 0)?;
                    maps.push(Map { name, section, offset, def });
                } else {
                    let is_option = walker.is_option(ty)?;
                    let of = walker.describe(ty, 0)?;
                    variables.push(Variable { name, section, offset, is_option, of });
                }
            }
        }
        Ok((variables, maps))
    }

    /// Bytes of the struct, or of the type definition of one, called `name`.
    pub fn size_of(&self, name: &str) -> Option<u64> {
        let dwarf = self.dwarf().ok()?;
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let unit = dwarf.unit(header).ok()?;
            let walker = Walker { dwarf: &dwarf, unit: &unit };
            let mut entries = unit.entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                let is_type =
                    matches!(entry.tag(), gimli::DW_TAG_typedef | gimli::DW_TAG_structure_type);
                if is_type && walker.name(entry).as_deref() == Some(name) {
                    let size = walker.size(entry.offset()).ok().filter(|size| *size > 0);
                    if size.is_some() {
                        return size;
                    }
                }
            }
        }
        None
    }

    /// File and line of an address.
    pub fn line(&self, address: u64) -> Option<(String, u64)> {
        let dwarf = self.dwarf().ok()?;
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else { continue };
            let Some(program) = unit.line_program.clone() else { continue };
            let mut before: Option<(u64, String, u64)> = None;
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                if let Some((start, file, line)) = &before
                    && (*start..row.address()).contains(&address)
                {
                    return Some((file.clone(), *line));
                }
                before = None;
                if !row.end_sequence() && row.address() <= address {
                    let file = row.file(header).and_then(|file| {
                        let name = dwarf.attr_string(&unit, file.path_name()).ok()?;
                        Some(name.to_string_lossy().into_owned())
                    });
                    let line = row.line().map_or(0, |line| line.get());
                    before = file.map(|file| (row.address(), file, line));
                }
            }
        }
        None
    }
}

/// Reads one compilation unit.
struct Walker<'a, 'd> {
    dwarf: &'a Dwarf<Reader<'d>>,
    unit: &'a Unit<Reader<'d>>,
}

/// DW_TAG_LLVM_annotation, in which clang writes the tags of types and declarations.
const ANNOTATION: gimli::DwTag = gimli::DwTag(0x6000);

/// Structs in values of maps that only their own functions write.
const KEPT: [&str; 9] = [
    "bpf_spin_lock",
    "bpf_res_spin_lock",
    "bpf_timer",
    "bpf_wq",
    "bpf_list_head",
    "bpf_list_node",
    "bpf_rb_root",
    "bpf_rb_node",
    "bpf_refcount",
];

/// Deepest nesting of types that is followed.
const DEPTH_MAX: u32 = 8;

impl<'d> Walker<'_, 'd> {
    fn text(&self, value: AttributeValue<Reader<'d>>) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    fn name(&self, entry: &DebuggingInformationEntry<Reader<'d>>) -> Option<String> {
        self.text(entry.attr_value(gimli::DW_AT_name)?)
    }

    fn type_of(&self, entry: &DebuggingInformationEntry<Reader<'d>>) -> Option<UnitOffset> {
        match entry.attr_value(gimli::DW_AT_type)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            _ => None,
        }
    }

    fn number(entry: &DebuggingInformationEntry<Reader<'d>>, at: gimli::DwAt) -> Option<u64> {
        let value = entry.attr_value(at)?;
        value.udata_value().or_else(|| value.sdata_value().map(|signed| signed as u64))
    }

    fn entry(
        &self,
        offset: UnitOffset,
    ) -> Result<DebuggingInformationEntry<Reader<'d>>, NativeError> {
        self.unit.entry(offset).map_err(bad)
    }

    /// Name, section, offset and type of a variable that has an address.
    fn variable(
        &self,
        entry: &DebuggingInformationEntry<Reader<'d>>,
    ) -> Result<Option<(String, usize, u64, UnitOffset)>, NativeError> {
        let mut origin = None;
        if let Some(AttributeValue::UnitRef(of)) = entry.attr_value(gimli::DW_AT_specification) {
            origin = Some(self.entry(of)?);
        }
        let declared = origin.as_ref().unwrap_or(entry);
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)
        else {
            return Ok(None);
        };
        let mut operations = expression.operations(self.unit.encoding());
        let Some(gimli::Operation::Address { address }) = operations.next().map_err(bad)? else {
            return Ok(None);
        };
        let (Some(name), Some(ty), Some((section, offset))) =
            (self.name(declared), self.type_of(declared), debug_place(address))
        else {
            return Ok(None);
        };
        Ok(Some((name, section, offset, ty)))
    }

    /// The type without names and qualifiers; and whether `const` and `volatile` were among them.
    fn strip(&self, mut ty: UnitOffset) -> Result<(Option<UnitOffset>, bool, bool), NativeError> {
        let (mut is_const, mut is_volatile) = (false, false);
        for _ in 0..64 {
            let entry = self.entry(ty)?;
            match entry.tag() {
                gimli::DW_TAG_const_type => is_const = true,
                gimli::DW_TAG_volatile_type => is_volatile = true,
                gimli::DW_TAG_typedef | gimli::DW_TAG_restrict_type => {}
                _ => return Ok((Some(ty), is_const, is_volatile)),
            }
            match self.type_of(&entry) {
                Some(next) => ty = next,
                None => return Ok((None, is_const, is_volatile)),
            }
        }
        Err(bad("a type without an end"))
    }

    fn is_option(&self, ty: UnitOffset) -> Result<bool, NativeError> {
        let (base, is_const, is_volatile) = self.strip(ty)?;
        if is_const && is_volatile {
            return Ok(true);
        }
        let Some(base) = base else { return Ok(false) };
        let entry = self.entry(base)?;
        match (entry.tag(), self.type_of(&entry)) {
            // The qualifiers of an array are its elements'.
            (gimli::DW_TAG_array_type, Some(of)) => self.is_option(of),
            _ => Ok(false),
        }
    }

    /// Bounds of an array, outermost first; 0: unknown.
    fn bounds(&self, ty: UnitOffset) -> Result<Vec<u64>, NativeError> {
        let mut tree = self.unit.entries_tree(Some(ty)).map_err(bad)?;
        let root = tree.root().map_err(bad)?;
        let mut children = root.children();
        let mut bounds = Vec::new();
        while let Some(child) = children.next().map_err(bad)? {
            let entry = child.entry();
            if entry.tag() == gimli::DW_TAG_subrange_type {
                let count = Self::number(entry, gimli::DW_AT_count).or_else(|| {
                    let upper = Self::number(entry, gimli::DW_AT_upper_bound)?;
                    Some(upper.wrapping_add(1))
                });
                bounds.push(count.unwrap_or(0));
            }
        }
        Ok(bounds)
    }

    /// Name, offset and type of the members of a struct.
    fn members(&self, ty: UnitOffset) -> Result<Vec<(String, u64, UnitOffset)>, NativeError> {
        let mut tree = self.unit.entries_tree(Some(ty)).map_err(bad)?;
        let root = tree.root().map_err(bad)?;
        let mut children = root.children();
        let mut members = Vec::new();
        while let Some(child) = children.next().map_err(bad)? {
            let entry = child.entry();
            if entry.tag() != gimli::DW_TAG_member {
                continue;
            }
            let offset = Self::number(entry, gimli::DW_AT_data_member_location).unwrap_or(0);
            if let Some(of) = self.type_of(entry) {
                members.push((self.name(entry).unwrap_or_default(), offset, of));
            }
        }
        Ok(members)
    }

    /// Gives the bit fields among the members of a struct their places and types.
    fn find_bit_fields(
        &self,
        ty: UnitOffset,
        members: &mut [(String, u64, Type)],
    ) -> Result<(), NativeError> {
        let mut tree = self.unit.entries_tree(Some(ty)).map_err(bad)?;
        let root = tree.root().map_err(bad)?;
        let mut children = root.children();
        let mut fields = members.iter_mut();
        while let Some(child) = children.next().map_err(bad)? {
            let entry = child.entry();
            if entry.tag() != gimli::DW_TAG_member || self.type_of(entry).is_none() {
                continue;
            }
            let Some((_, offset, of)) = fields.next() else { break };
            let (Some(bits), Some(start)) = (
                Self::number(entry, gimli::DW_AT_bit_size),
                Self::number(entry, gimli::DW_AT_data_bit_offset),
            ) else {
                continue;
            };
            let (first, shift) = (start / 8, start % 8);
            let size = shift.saturating_add(bits).div_ceil(8);
            let signed = matches!(of, Type::Int { signed: true, .. });
            *offset = first;
            *of = match (bits, size) {
                (1..=64, ..=8) => Type::Bits { size, shift, bits, signed },
                _ => Type::Other { size },
            };
        }
        Ok(())
    }

    fn values(&self, ty: UnitOffset) -> Result<Vec<(String, i64)>, NativeError> {
        let mut tree = self.unit.entries_tree(Some(ty)).map_err(bad)?;
        let root = tree.root().map_err(bad)?;
        let mut children = root.children();
        let mut values = Vec::new();
        while let Some(child) = children.next().map_err(bad)? {
            let entry = child.entry();
            if entry.tag() == gimli::DW_TAG_enumerator
                && let (Some(name), Some(value)) =
                    (self.name(entry), Self::number(entry, gimli::DW_AT_const_value))
            {
                values.push((name, value as i64));
            }
        }
        Ok(values)
    }

    fn describe(&self, ty: UnitOffset, depth: u32) -> Result<Type, NativeError> {
        let (Some(base), ..) = self.strip(ty)? else { return Ok(Type::Other { size: 0 }) };
        let entry = self.entry(base)?;
        let size = Self::number(&entry, gimli::DW_AT_byte_size).unwrap_or(0);
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type => {
                let encoding = entry.attr_value(gimli::DW_AT_encoding);
                match encoding {
                    Some(AttributeValue::Encoding(gimli::DW_ATE_boolean)) => Type::Bool,
                    Some(AttributeValue::Encoding(
                        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char,
                    )) => Type::Int { size, signed: true },
                    _ => Type::Int { size, signed: false },
                }
            }
            gimli::DW_TAG_enumeration_type => Type::Enum { size, values: self.values(base)? },
            gimli::DW_TAG_pointer_type => Type::Pointer,
            gimli::DW_TAG_array_type => {
                let Some(of) = self.type_of(&entry) else { return Ok(Type::Other { size: 0 }) };
                let mut of = self.describe(of, depth)?;
                for nr in self.bounds(base)?.into_iter().rev() {
                    of = Type::Array { of: Box::new(of), nr };
                }
                of
            }
            gimli::DW_TAG_structure_type if depth < DEPTH_MAX => {
                let mut members = Vec::new();
                for (name, offset, of) in self.members(base)? {
                    members.push((name, offset, self.describe(of, depth + 1)?));
                }
                self.find_bit_fields(base, &mut members)?;
                Type::Struct { size, members }
            }
            _ => Type::Other { size },
        })
    }

    fn size(&self, ty: UnitOffset) -> Result<u64, NativeError> {
        Ok(self.describe(ty, DEPTH_MAX)?.size())
    }

    /// The type that a pointer points to.
    fn target(&self, ty: UnitOffset) -> Result<Option<UnitOffset>, NativeError> {
        let (Some(base), ..) = self.strip(ty)? else { return Ok(None) };
        let entry = self.entry(base)?;
        Ok(match entry.tag() {
            gimli::DW_TAG_pointer_type => self.type_of(&entry),
            _ => None,
        })
    }

    /// Collects the parts of a value of type `ty` at `offset` that an update of a map leaves alone:
    /// locks, timers, heads of lists and trees, pointers to objects of the kernel. Source:
    /// btf_parse_fields() in kernel/bpf/btf.c.
    fn kept(
        &self,
        ty: UnitOffset,
        offset: u64,
        depth: u32,
        all: &mut Vec<(u64, u64)>,
    ) -> Result<(), NativeError> {
        let (Some(base), ..) = self.strip(ty)? else { return Ok(()) };
        let entry = self.entry(base)?;
        let size = Self::number(&entry, gimli::DW_AT_byte_size).unwrap_or(8);
        match entry.tag() {
            gimli::DW_TAG_pointer_type if self.is_kernel_pointer(base)? => all.push((offset, 8)),
            gimli::DW_TAG_structure_type => {
                let name = self.name(&entry).unwrap_or_default();
                if KEPT.contains(&name.as_str()) {
                    all.push((offset, size));
                } else if depth < DEPTH_MAX {
                    for (_, at, of) in self.members(base)? {
                        self.kept(of, offset + at, depth + 1, all)?;
                    }
                }
            }
            gimli::DW_TAG_array_type => {
                let Some(of) = self.type_of(&entry) else { return Ok(()) };
                let before = all.len();
                self.kept(of, offset, depth + 1, all)?;
                let nr: u64 = self.bounds(base)?.iter().product();
                let (first, stride) = (all[before..].to_vec(), self.size(of)?);
                for index in 1..if first.is_empty() { 1 } else { nr } {
                    all.extend(first.iter().map(|(at, size)| (at + index * stride, *size)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a pointer is declared `__kptr`, or with a similar tag.
    fn is_kernel_pointer(&self, ty: UnitOffset) -> Result<bool, NativeError> {
        let mut tree = self.unit.entries_tree(Some(ty)).map_err(bad)?;
        let root = tree.root().map_err(bad)?;
        let mut children = root.children();
        while let Some(child) = children.next().map_err(bad)? {
            let entry = child.entry();
            let value = entry.attr_value(gimli::DW_AT_const_value);
            let tag = value.and_then(|value| self.text(value)).unwrap_or_default();
            if entry.tag() == ANNOTATION && ["kptr", "uptr"].iter().any(|end| tag.contains(end)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number in `int (*name)[number]`, or the value of an enumeration with one value
    /// (`__ulong`).
    fn encoded(&self, ty: UnitOffset) -> Result<u64, NativeError> {
        let Some(target) = self.target(ty)? else {
            let (Some(base), ..) = self.strip(ty)? else { return Ok(0) };
            return Ok(self.values(base)?.first().map_or(0, |value| value.1 as u64));
        };
        let (Some(base), ..) = self.strip(target)? else { return Ok(0) };
        Ok(self.bounds(base)?.first().copied().unwrap_or(0))
    }

    fn map(&self, ty: UnitOffset, depth: u32) -> Result<MapDef, NativeError> {
        let (Some(base), ..) = self.strip(ty)? else { return Ok(MapDef::default()) };
        let mut def = MapDef::default();
        for (name, offset, of) in self.members(base)? {
            match name.as_str() {
                "type" => def.map_type = self.encoded(of)?,
                "key_size" => def.key_size = self.encoded(of)?,
                "value_size" => def.value_size = self.encoded(of)?,
                "max_entries" => def.max_entries = self.encoded(of)?,
                "map_flags" => def.map_flags = self.encoded(of)?,
                "key" | "value" => {
                    let target = self.target(of)?;
                    let size = target.map_or(Ok(0), |target| self.size(target))?;
                    let of = target.map(|of| self.describe(of, 0)).transpose()?.map(Box::new);
                    if name == "key" {
                        def.key = of;
                    } else {
                        def.value = of;
                        target.map_or(Ok(()), |of| self.kept(of, 0, 0, &mut def.kept))?;
                    }
                    *(if name == "key" { &mut def.key_size } else { &mut def.value_size }) = size;
                }
                "values" if depth == 0 => {
                    def.values_offset = Some(offset);
                    let (Some(array), ..) = self.strip(of)? else { continue };
                    let element = self.type_of(&self.entry(array)?);
                    if let Some(target) = element.map(|of| self.target(of)).transpose()?.flatten() {
                        def.inner = Some(Box::new(self.map(target, depth + 1)?));
                    }
                }
                _ => {}
            }
        }
        Ok(def)
    }
}
