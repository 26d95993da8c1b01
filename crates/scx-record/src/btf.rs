// SPDX-License-Identifier: MIT OR Apache-2.0
//! Type information (BTF, Documentation/bpf/btf.rst) of objects and kernels: which variables a
//! section of data has, of which types they are, and the names of functions.
//!
//! The bytes come from a traced program and are treated as hostile: every offset is checked, and
//! types that contain themselves end the search.

const MAGIC: u32 = 0xeb9f;
const HEADER: usize = 24;
/// Most levels of types within types.
const DEPTH_MAX: u32 = 32;
/// Most types that one variable is made of.
const PARTS_MAX: u32 = 1 << 16;

/// Kinds of types (include/uapi/linux/btf.h).
mod kind {
    pub const INT: u32 = 1;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// What a variable consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// A number of this many bytes: 1, 2, 4 or 8.
    Number { size: usize, is_signed: bool },
    /// Equal parts.
    Array { of: Box<Shape>, nr: usize },
    /// Members: name, offset, shape.
    Struct { members: Vec<(String, usize, Shape)>, size: usize },
    /// Anything else, such as a pointer or a union.
    Opaque { size: usize },
}

impl Shape {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Number { size, .. } | Self::Struct { size, .. } | Self::Opaque { size } => *size,
            Self::Array { of, nr } => of.size().saturating_mul(*nr),
        }
    }
}

/// A variable of a section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) shape: Shape,
}

/// The types of an object or a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Btf {
    table: Vec<u8>,
    names: Vec<u8>,
    /// Where each type begins, from number 1 on.
    starts: Vec<usize>,
}

/// One type: the place of its name, kind, number of members, size or the type that it refers to,
/// and where its further words begin.
#[derive(Clone, Copy)]
struct Type {
    name: usize,
    kind: u32,
    has_bits: bool,
    nr: usize,
    refers: u32,
    at: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Bytes after the common part of a type.
fn extra_len(kind: u32, nr: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * nr,
        6 | 13 => 8 * nr,
        _ => return None,
    })
}

impl Btf {
    /// Reads type information; `None`: it is damaged.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if word(bytes, 0)? & 0xffff != MAGIC || (word(bytes, 4)? as usize) < HEADER {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let part = |offset: usize, len: usize| {
            let from = header.checked_add(word(bytes, offset)? as usize)?;
            bytes.get(from..from.checked_add(word(bytes, len)? as usize)?)
        };
        let (table, names) = (part(8, 12)?.to_vec(), part(16, 20)?.to_vec());
        let mut starts = Vec::new();
        let mut at = 0;
        while at < table.len() {
            let info = word(&table, at + 4)?;
            word(&table, at + 8)?;
            starts.push(at);
            at = at.checked_add(12 + extra_len(info >> 24 & 0x1f, (info & 0xffff) as usize)?)?;
        }
        (at == table.len()).then_some(Self { table, names, starts })
    }

    fn get(&self, id: u32) -> Option<Type> {
        let at = *self.starts.get((id as usize).checked_sub(1)?)?;
        let info = word(&self.table, at + 4)?;
        Some(Type {
            name: word(&self.table, at)? as usize,
            kind: info >> 24 & 0x1f,
            has_bits: info >> 31 == 1,
            nr: (info & 0xffff) as usize,
            refers: word(&self.table, at + 8)?,
            at: at + 12,
        })
    }

    fn text(&self, at: usize) -> Option<&str> {
        let rest = self.names.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }

    /// The name of a type.
    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.text(self.get(id)?.name)
    }

    /// The name of a function.
    pub(crate) fn function(&self, id: u32) -> Option<&str> {
        (self.get(id)?.kind == kind::FUNC).then(|| self.name(id))?
    }

    /// Whether a type is a section of variables.
    pub(crate) fn is_section(&self, id: u32) -> bool {
        self.get(id).is_some_and(|of| of.kind == kind::DATASEC)
    }

    /// The struct with this name.
    pub(crate) fn find_struct(&self, name: &str) -> Option<u32> {
        self.find(name, &[kind::STRUCT])
    }

    fn find(&self, name: &str, kinds: &[u32]) -> Option<u32> {
        (1..=self.starts.len() as u32).find(|id| {
            self.get(*id)
                .is_some_and(|of| kinds.contains(&of.kind) && self.text(of.name) == Some(name))
        })
    }

    /// Offset and shape of a member of a struct.
    pub(crate) fn member(&self, id: u32, name: &str) -> Option<(usize, Shape)> {
        let of = self.get(id).filter(|of| of.kind == kind::STRUCT)?;
        (0..of.nr).find_map(|nth| {
            let at = of.at + 12 * nth;
            let is_it = self.text(word(&self.table, at)? as usize) == Some(name);
            let offset =
                (word(&self.table, at + 8)? & if of.has_bits { 0xff_ffff } else { !0 }) / 8;
            let member = word(&self.table, at + 4)?;
            is_it.then(|| (offset as usize, self.shape(member, 0, &mut 0)))
        })
    }

    /// The type of a member of a struct.
    pub(crate) fn member_type(&self, id: u32, name: &str) -> Option<u32> {
        let of = self.get(id).filter(|of| of.kind == kind::STRUCT)?;
        (0..of.nr).find_map(|nth| {
            let at = of.at + 12 * nth;
            let is_it = self.text(word(&self.table, at)? as usize) == Some(name);
            is_it.then(|| word(&self.table, at + 4))?
        })
    }

    /// Names and values of an enumeration.
    pub(crate) fn enumerators(&self, name: &str) -> Vec<(String, u64)> {
        let of = self.find(name, &[kind::ENUM, kind::ENUM64]).and_then(|id| self.get(id));
        let Some(of) = of else { return Vec::new() };
        let step = if of.kind == kind::ENUM { 8 } else { 12 };
        let value = |nth: usize| {
            let at = of.at + step * nth;
            let high = if step == 12 { word(&self.table, at + 8)? } else { 0 };
            let name = self.text(word(&self.table, at)? as usize)?;
            Some((name.to_owned(), u64::from(word(&self.table, at + 4)?) | u64::from(high) << 32))
        };
        (0..of.nr).filter_map(value).collect()
    }

    /// Whether there are types with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find_struct(name).is_some()
    }

    /// The variables of the section with this number.
    pub(crate) fn variables(&self, section: u32) -> Vec<Variable> {
        let Some(of) = self.get(section).filter(|of| of.kind == kind::DATASEC) else {
            return Vec::new();
        };
        let variable = |nth: usize| {
            let at = of.at + 12 * nth;
            let own = self.get(word(&self.table, at)?).filter(|own| own.kind == kind::VAR)?;
            Some(Variable {
                name: self.text(own.name)?.to_owned(),
                offset: word(&self.table, at + 4)? as usize,
                shape: self.shape(own.refers, 0, &mut 0),
            })
        };
        (0..of.nr).filter_map(variable).collect()
    }

    /// Names of the variables of the section called `name`.
    pub(crate) fn names_in(&self, name: &str) -> Vec<&str> {
        let of = self.find(name, &[kind::DATASEC]).and_then(|id| self.get(id));
        let Some(of) = of else { return Vec::new() };
        let name = |nth: usize| self.name(word(&self.table, of.at + 12 * nth)?);
        (0..of.nr).filter_map(name).collect()
    }

    fn shape(&self, id: u32, depth: u32, parts: &mut u32) -> Shape {
        *parts += 1;
        let none = Shape::Opaque { size: 0 };
        let Some(of) = self.get(id).filter(|_| depth < DEPTH_MAX && *parts < PARTS_MAX) else {
            return none;
        };
        let size = of.refers as usize;
        match of.kind {
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.shape(of.refers, depth + 1, parts)
            }
            kind::INT if matches!(size, 1 | 2 | 4 | 8) => {
                let encoding = word(&self.table, of.at).unwrap_or(0) >> 24;
                Shape::Number { size, is_signed: encoding & 1 == 1 }
            }
            kind::ENUM | kind::ENUM64 if matches!(size, 1 | 2 | 4 | 8) => {
                Shape::Number { size, is_signed: of.has_bits }
            }
            kind::ARRAY => {
                let (element, nr) = (word(&self.table, of.at), word(&self.table, of.at + 8));
                let (Some(element), Some(nr)) = (element, nr) else { return none };
                let of = Box::new(self.shape(element, depth + 1, parts));
                Shape::Array { of, nr: nr as usize }
            }
            kind::STRUCT => self.members(of, depth, parts),
            // Forward declarations, functions, sections: none is a variable's type.
            2 | 5 | 16 => Shape::Opaque { size: if of.kind == 2 { 8 } else { size } },
            _ => none,
        }
    }

    fn members(&self, of: Type, depth: u32, parts: &mut u32) -> Shape {
        let mut members = Vec::new();
        for nth in 0..of.nr {
            let at = of.at + 12 * nth;
            let words =
                (word(&self.table, at), word(&self.table, at + 4), word(&self.table, at + 8));
            let (Some(name), Some(own), Some(place)) = words else { continue };
            let name = self.text(name as usize).unwrap_or_default().to_owned();
            let (bits, bit) = match of.has_bits {
                true => (place >> 24, place & 0xff_ffff),
                false => (0, place),
            };
            let mut shape = self.shape(own, depth + 1, parts);
            // A setup has no words for parts of a byte, and no path to a member without a name.
            if bits != 0 || bit % 8 != 0 || name.is_empty() {
                shape = Shape::Opaque { size: shape.size() };
            }
            members.push((name, bit as usize / 8, shape));
        }
        Shape::Struct { members, size: of.refers as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Types, kernel};

    #[test]
    fn variables_have_their_shapes() {
        let mut types = Types::new();
        let short = types.number("u16", 2);
        let constant = types.add("", 10, 0, short, &[]);
        let array = types.array(constant, 3);
        let pointer = types.add("", 2, 0, short, &[]);
        let members = [("a", array, 0), ("p", pointer, 8)];
        let pair = types.structure("pair", 16, &members);
        let section = types.section(".bss", &[("x", pair, 8, 16), ("y", short, 0, 2)]);
        let types = Btf::read(&types.bytes()).unwrap();
        assert!(types.is_section(section) && !types.is_section(pair));
        let number = Shape::Number { size: 2, is_signed: false };
        let array = Shape::Array { of: Box::new(number.clone()), nr: 3 };
        let pointer = Shape::Opaque { size: 8 };
        let members = vec![("a".into(), 0, array), ("p".into(), 8, pointer)];
        let shape = Shape::Struct { members, size: 16 };
        assert_eq!(
            types.variables(section),
            [
                Variable { name: "x".into(), offset: 8, shape },
                Variable { name: "y".into(), offset: 0, shape: number },
            ]
        );
        assert_eq!(types.names_in(".bss"), ["x", "y"]);
        assert!(types.names_in(".data").is_empty());
    }

    #[test]
    fn a_kernel_has_flags_and_the_place_of_them() {
        let (bytes, value) = kernel();
        let types = Btf::read(&bytes).unwrap();
        assert_eq!(types.name(value), Some("bpf_struct_ops_sched_ext_ops"));
        let data = types.member_type(value, "data").unwrap();
        assert_eq!(types.member(value, "data").unwrap().0, 64);
        assert_eq!(types.member(data, "flags").unwrap().0, 8);
        let flags = types.enumerators("scx_ops_flags");
        assert_eq!(flags[2], ("SCX_OPS_HIGH".into(), 1 << 40));
    }

    #[test]
    fn types_within_themselves_end() {
        let mut types = Types::new();
        // An array of itself, and a struct of two members, each of which is the struct.
        let array = types.array(1, 2);
        types.structure("deep", 8, &[("a", 2, 0), ("b", 2, 4)]);
        let section = types.section(".bss", &[("x", array, 0, 8), ("y", 2, 0, 8)]);
        let types = Btf::read(&types.bytes()).unwrap();
        assert_eq!(types.variables(section).len(), 2);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let (bytes, _) = kernel();
        for len in 0..bytes.len() {
            assert!(Btf::read(&bytes[..len]).is_none(), "{len}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            if let Some(types) = Btf::read(&damaged) {
                for id in 0..9 {
                    types.variables(id);
                    types.member(id, "data");
                    types.shape(id, 0, &mut 0);
                }
                types.enumerators("scx_ops_flags");
            }
        }
    }
}
