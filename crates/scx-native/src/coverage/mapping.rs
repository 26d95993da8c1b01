// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what clang wrote about the regions of a source and the counters of each.
//!
//! Source: "LLVM Code Coverage Mapping Format", versions 4 to 7 (clang 11 and later), and LLVM's
//! InstrProfData.inc for the sections `__llvm_covfun`, `__llvm_covmap`, `__llvm_prf_data` and
//! `__llvm_prf_names`. Left out: regions of branches, regions skipped by the preprocessor,
//! decisions of MC/DC, and what is within a macro. Nothing is trusted: a scheduler can put bytes
//! into these sections.

use super::super::object::{ObjectFile, Section};
use md5::{Digest, Md5};
use std::collections::BTreeMap;

/// Most regions of an object, and most lines of a source: more is no mapping of clang's.
const MAX: u64 = 1 << 20;

/// How often a region ran: a counter, or a sum or a difference of two counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Never.
    Zero,
    /// The counter with this index of the function.
    Counter(usize),
    /// The sum of the pair with this index of the function.
    Sum(usize),
    /// Its first count less its second.
    Difference(usize),
}

/// A part of a source that runs as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Line and column of its first character, from 1.
    pub start: (u32, u32),
    /// Its last line, and the column after its last character.
    pub end: (u32, u32),
    /// Whether it is only the space between two others.
    pub is_gap: bool,
    /// How often it runs.
    pub count: Count,
}

/// The regions of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its source, as the compiler was told it.
    pub file: String,
    /// Section and offset of its counters, of eight bytes each; `None`: it was never compiled to
    /// code, because nothing calls it.
    pub counters: Option<(usize, u64)>,
    /// What sums and differences are made of.
    pub pairs: Vec<[Count; 2]>,
    /// Its regions in `file`.
    pub regions: Vec<Region>,
}

/// Reads numbers from bytes.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A ULEB128 number.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The number of items that follow.
    fn length(&mut self) -> Option<usize> {
        self.number().filter(|nr| *nr <= MAX).map(|nr| nr as usize)
    }
}

fn count(encoded: u64) -> Count {
    let index = (encoded >> 2) as usize;
    match encoded & 3 {
        0 => Count::Zero,
        1 => Count::Counter(index),
        2 => Count::Difference(index),
        _ => Count::Sum(index),
    }
}

/// The functions of an object; `None` if a section is damaged.
pub fn functions(object: &ObjectFile) -> Option<Vec<Function>> {
    let of = |name: &'static str| object.sections.iter().filter(move |of| of.name == name);
    let mut files = BTreeMap::new();
    for section in of("__llvm_covmap") {
        let (sum, names) = file_names(&section.bytes)?;
        files.insert(sum, names);
    }
    let names: BTreeMap<u64, String> = of("__llvm_prf_names").flat_map(names).collect();
    let mut counters = BTreeMap::new();
    for section in of("__llvm_prf_data") {
        for (id, at) in counters_of(object, section) {
            counters.insert(id, at);
        }
    }
    let mut found = Vec::new();
    for section in of("__llvm_covfun") {
        let mut bytes = Reader(&section.bytes);
        while bytes.0.len() >= 28 {
            let (id, len) = (bytes.word()?, bytes.half()?);
            let (_hash, files_sum) = (bytes.word()?, bytes.word()?);
            let mut record = Reader(bytes.take(len as usize)?);
            // The next record begins at a multiple of eight bytes.
            let at = section.bytes.len() - bytes.0.len();
            bytes.take((at.next_multiple_of(8) - at).min(bytes.0.len()))?;
            let name = names.get(&id).cloned().unwrap_or_default();
            let (at, files) = (counters.get(&id).copied(), files.get(&files_sum)?);
            found.extend(function(&mut record, name, at, files)?);
        }
    }
    Some(found)
}

/// The names of a compilation's files, under the sum by which functions refer to them. They are not
/// compressed: `-enable-name-compression=false`.
fn file_names(bytes: &[u8]) -> Option<(u64, Vec<String>)> {
    let mut bytes = Reader(bytes);
    let (_, len, _, version) = (bytes.half()?, bytes.half()?, bytes.half()?, bytes.half()?);
    if !(3..=6).contains(&version) {
        return None;
    }
    let encoded = bytes.take(len as usize)?;
    let mut bytes = Reader(encoded);
    let (nr, _, packed) = (bytes.length()?, bytes.number()?, bytes.number()?);
    if packed != 0 {
        return None;
    }
    let mut names = Vec::new();
    for _ in 0..nr {
        let len = bytes.length()?;
        names.push(String::from_utf8_lossy(bytes.take(len)?).into_owned());
    }
    Some((sum(encoded), names))
}

/// LLVM's sum of a text: the first eight bytes of its MD5.
fn sum(bytes: &[u8]) -> u64 {
    let digest = Md5::digest(bytes);
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 16 bytes"))
}

/// The names of functions under their sums. That of a static function begins with its file's.
fn names(section: &Section) -> Vec<(u64, String)> {
    let mut bytes = Reader(&section.bytes);
    let mut found = Vec::new();
    while let (Some(len), Some(0)) = (bytes.length(), bytes.number()) {
        let Some(text) = bytes.take(len) else { break };
        for name in text.split(|byte| *byte == 1) {
            let own = name.rsplit(|byte| matches!(byte, b':' | b';')).next().unwrap_or(name);
            found.push((sum(name), String::from_utf8_lossy(own).into_owned()));
        }
        while let Some((0, rest)) = bytes.0.split_first() {
            bytes.0 = rest;
        }
    }
    found
}

/// The counters of the functions of a `__llvm_prf_data`: the name's sum, section and offset. Each
/// record refers to its counters by the only reference at its offset 16.
fn counters_of(object: &ObjectFile, section: &Section) -> Vec<(u64, (usize, u64))> {
    use super::super::object::Place;
    let mut found = Vec::new();
    for reference in &section.relocations {
        let Some(start) = reference.offset.checked_sub(16) else { continue };
        let id = section.bytes.get(start as usize..).and_then(|bytes| Reader(bytes).word());
        let Some(Place::Section(of, at)) = object.symbols.get(reference.symbol).map(|of| of.place)
        else {
            continue;
        };
        // The value is a distance between the counters and the record.
        let offset = at.wrapping_add_signed(reference.addend).wrapping_sub(16);
        let is_counters = object.sections.get(of).is_some_and(|of| of.name == "__llvm_prf_cnts");
        if let (Some(id), true) = (id, is_counters) {
            found.push((id, (of, offset)));
        }
    }
    found
}

/// Reads a function's record. `Some(None)`: it has no region in a file.
fn function(
    bytes: &mut Reader<'_>,
    name: String,
    counters: Option<(usize, u64)>,
    files: &[String],
) -> Option<Option<Function>> {
    let mut own = Vec::new();
    for _ in 0..bytes.length()? {
        own.push(files.get(bytes.length()?)?);
    }
    let mut pairs = Vec::new();
    for _ in 0..bytes.length()? {
        pairs.push([count(bytes.number()?), count(bytes.number()?)]);
    }
    let mut all = Vec::new();
    let mut expanded = vec![false; own.len()];
    for _ in 0..own.len() {
        all.push(regions(bytes, &mut expanded)?);
    }
    // The file that is no macro's has the function.
    let Some(main) = expanded.iter().position(|is_expanded| !is_expanded) else {
        return Some(None);
    };
    let (file, regions) = (own[main].clone(), all.swap_remove(main));
    Some((!regions.is_empty()).then_some(Function { name, file, counters, pairs, regions }))
}

/// Reads the regions of one file of a function, and which files are expansions of macros in it.
fn regions(bytes: &mut Reader<'_>, expanded: &mut [bool]) -> Option<Vec<Region>> {
    let (mut found, mut line) = (Vec::new(), 0u64);
    for _ in 0..bytes.length()? {
        let header = bytes.number()?;
        // The lowest two bits say what the rest is: a counter, or a kind of region.
        let kind = match header & 3 {
            0 if header & 4 != 0 => Kind::Expansion((header >> 3) as usize),
            0 => Kind::of(header >> 3)?,
            _ => Kind::Code,
        };
        for _ in 0..kind.further_numbers() {
            bytes.number()?;
        }
        let (lines, column) = (bytes.number()?, bytes.number()?);
        let (more, last) = (bytes.number()?, bytes.number()?);
        line = line.checked_add(lines).filter(|line| *line <= MAX)?;
        let end = line.checked_add(more).filter(|line| *line <= MAX)?;
        if let Kind::Expansion(file) = kind {
            *expanded.get_mut(file)? = true;
        }
        if !matches!(kind, Kind::Code) {
            continue;
        }
        let last = u32::try_from(last).ok()?;
        found.push(Region {
            start: (line as u32, u32::try_from(column).ok()?),
            end: (end as u32, last & !GAP),
            is_gap: last & GAP != 0,
            count: count(header),
        });
    }
    Some(found)
}

/// Bit of the last column of a gap.
const GAP: u32 = 1 << 31;

/// Kinds of regions.
enum Kind {
    /// Code with a counter.
    Code,
    /// A macro, whose contents have this number among the function's files.
    Expansion(usize),
    /// Not compiled.
    Skipped,
    /// Both ways of a branch.
    Branch,
    /// A decision of MC/DC, or a branch of one.
    Decision(usize),
}

impl Kind {
    fn of(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Code,
            2 => Self::Skipped,
            4 => Self::Branch,
            5 => Self::Decision(2),
            6 => Self::Decision(5),
            _ => return None,
        })
    }

    /// Numbers between the region's header and its place.
    fn further_numbers(&self) -> usize {
        match self {
            Self::Branch => 2,
            Self::Decision(nr) => *nr,
            _ => 0,
        }
    }
}
