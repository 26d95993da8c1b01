// SPDX-License-Identifier: MIT OR Apache-2.0
//! A relocatable object file as a list of sections, symbols and relocations.
//!
//! Source: System V ABI, AMD64 supplement (ELF). The file comes from a compiler that schedlab
//! started. Every offset is checked nevertheless, because the scheduler's author can influence it
//! with assembly. Left out: everything except x86-64, thread-local storage, constructors.

use super::error::NativeError;
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionKind, SymbolKind, SymbolSection,
};
use std::ops::Range;

/// Purpose of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Machine code.
    Text,
    /// Data that is loaded.
    Data,
    /// Debug information: relocated and read, not loaded.
    Debug,
    /// What counters stand for: read, not loaded.
    Coverage,
    /// Not needed.
    Nothing,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Use.
    pub usage: Use,
    /// Contents; zeroes if the file has none.
    pub bytes: Vec<u8>,
    /// Alignment, a power of two.
    pub align: usize,
    /// Relocations, by offset.
    pub relocations: Vec<Relocation>,
}

/// The place of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a section of this object, by index, at an offset.
    Section(usize, u64),
    /// In another object.
    Undefined,
    /// A constant.
    Absolute(u64),
}

/// A symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Name; empty for sections.
    pub name: String,
    /// Place.
    pub place: Place,
    /// Size, bytes.
    pub size: u64,
    /// Whether only this object sees it.
    pub is_local: bool,
    /// Whether another definition replaces it, and it may be missing.
    pub is_weak: bool,
    /// It is a function.
    pub is_function: bool,
}

/// A place where an address is written.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Offset in the section.
    pub offset: u64,
    /// R_X86_64_*.
    pub r_type: u32,
    /// Index of the symbol.
    pub symbol: usize,
    /// Constant to add.
    pub addend: i64,
}

/// An object file.
#[derive(Clone, Debug, Default)]
pub struct ObjectFile {
    /// Sections. Symbols refer to their indices.
    pub sections: Vec<Section>,
    /// Symbols.
    pub symbols: Vec<Symbol>,
}

fn bad(error: impl std::fmt::Display) -> NativeError {
    NativeError::Internal(format!("the compiled object cannot be read: {error}"))
}

/// Sections that describe counters.
const COVERAGE: [&str; 4] =
    ["__llvm_covfun", "__llvm_covmap", "__llvm_prf_data", "__llvm_prf_names"];

fn usage(section: &object::Section<'_, '_>, name: &str) -> Use {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return Use::Nothing;
    };
    let loaded = sh_flags.0 & object::elf::SHF_ALLOC.0 != 0;
    match section.kind() {
        SectionKind::Text => Use::Text,
        _ if loaded && sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0 => Use::Text,
        // Constructors are never run.
        _ if name.starts_with(".init_array") || name.starts_with(".ctors") => Use::Nothing,
        _ if COVERAGE.contains(&name) => Use::Coverage,
        _ if loaded => Use::Data,
        _ if name.starts_with(".debug_") => Use::Debug,
        _ => Use::Nothing,
    }
}

impl ObjectFile {
    /// Reads an object of x86-64.
    pub fn parse(bytes: &[u8]) -> Result<Self, NativeError> {
        let file = object::File::parse(bytes).map_err(bad)?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(bad("it is not of x86-64"));
        }
        let mut this = Self::default();
        let mut index_of = std::collections::BTreeMap::new();
        for section in file.sections() {
            let name = section.name().map_err(bad)?.to_owned();
            let usage = usage(&section, &name);
            index_of.insert(section.index().0, this.sections.len());
            let mut bytes = section.data().map_err(bad)?.to_vec();
            if usage != Use::Nothing {
                bytes.resize(usize::try_from(section.size()).map_err(bad)?, 0);
            }
            let align = usize::try_from(section.align().max(1)).map_err(bad)?;
            if !align.is_power_of_two() || align > 4096 {
                return Err(bad(format!("section {name:?} has alignment {align}")));
            }
            this.sections.push(Section { name, usage, bytes, align, relocations: Vec::new() });
        }
        let mut symbol_of = std::collections::BTreeMap::new();
        for symbol in file.symbols() {
            symbol_of.insert(symbol.index().0, this.symbols.len());
            let place = match symbol.section() {
                SymbolSection::Section(index) => {
                    let section = *index_of.get(&index.0).ok_or_else(|| bad("a lost section"))?;
                    Place::Section(section, symbol.address())
                }
                SymbolSection::Absolute => Place::Absolute(symbol.address()),
                _ => Place::Undefined,
            };
            this.symbols.push(Symbol {
                name: symbol.name().map_err(bad)?.to_owned(),
                place,
                size: symbol.size(),
                is_local: symbol.is_local(),
                is_weak: symbol.is_weak(),
                is_function: symbol.kind() == SymbolKind::Text,
            });
        }
        for (index, section) in file.sections().enumerate() {
            if this.sections[index].usage == Use::Nothing {
                continue;
            }
            for (offset, relocation) in section.relocations() {
                let RelocationTarget::Symbol(target) = relocation.target() else {
                    return Err(bad("a relocation without a symbol"));
                };
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(bad("a relocation that is not of ELF"));
                };
                let symbol = *symbol_of.get(&target.0).ok_or_else(|| bad("a lost symbol"))?;
                this.sections[index].relocations.push(Relocation {
                    offset,
                    r_type: r_type.0,
                    symbol,
                    addend: relocation.addend(),
                });
            }
        }
        Ok(this)
    }

    /// Index of the section called `name`.
    pub fn section(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.name == name)
    }

    /// The symbols in section `index`, with their ranges.
    pub fn symbols_in(&self, index: usize) -> impl Iterator<Item = (&Symbol, Range<u64>)> {
        self.symbols.iter().filter_map(move |symbol| match symbol.place {
            Place::Section(at, offset) if at == index && !symbol.name.is_empty() => {
                Some((symbol, offset..offset.saturating_add(symbol.size)))
            }
            _ => None,
        })
    }
}
