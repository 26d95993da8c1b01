// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler in memory: one copy for each run, with all its state.
//!
//! Source: System V ABI, AMD64 supplement, relocation types. Sections are in one mapping, code
//! first, so that every distance fits 32 bits. When the code is complete it becomes executable and
//! read-only. Sections with one array of unknown length get the length that the run needs, as users
//! of libbpf do with `bpf_map__set_value_size`.

use super::error::NativeError;
use super::host;
use super::insns;
use super::object::Use;
use super::program::{Program, RUN_TIME, Target};
use super::thunks::{self, THUNK, WORDS, Words};
use super::zone::Zone;
use std::collections::BTreeMap;
use std::ops::Range;

const PAGE: usize = 4096;

/// Bytes of zeroes, for words of the kernel's configuration that are not set.
const ZEROES: usize = 64;

/// Bytes between two sections with data, which belong to none.
const BETWEEN: usize = 32;

/// Name of the run time's section that no scheduler may touch.
const HIDDEN: &str = ".schedlab";

/// The run time's variable with what concerns a callback (`struct schedlab_call` in quick.h), and
/// where in it are its times, the CPU, and the instructions so far.
pub const CALL: &str = "schedlab_call";
pub const CALL_RQ_NOW: u64 = 8;
pub const CALL_CPU: u64 = 16;
pub const CALL_INSNS: u64 = 20;

/// A loaded scheduler, in a zone. Copies refer to the same memory.
#[derive(Clone, Debug)]
pub struct Image {
    base: u64,
    len: usize,
    /// Address of each section of each object; 0: not loaded.
    sections: Vec<Vec<u64>>,
    /// Addresses of code.
    pub text: Range<u64>,
    /// Words that its trampolines use.
    pub words: Words,
}

/// Offsets within an image.
struct Layout {
    sections: Vec<Vec<Option<usize>>>,
    thunks: usize,
    text_len: usize,
    words: usize,
    slots: usize,
    zeroes: usize,
    len: usize,
}

fn up(at: usize, align: usize) -> usize {
    at.div_ceil(align) * align
}

/// Sizes of sections that differ from those in the file, by object and section.
pub type Sizes = BTreeMap<(usize, usize), usize>;

impl Layout {
    /// The layout: code, trampolines, then on a new page slots, zeroes and data.
    fn new(program: &Program, sizes: &Sizes) -> Self {
        let mut sections: Vec<Vec<Option<usize>>> =
            program.objects.iter().map(|object| vec![None; object.sections.len()]).collect();
        let mut at = 0;
        let mut place = |wanted: Use, at: &mut usize| {
            for (o, object) in program.objects.iter().enumerate() {
                for (s, section) in object.sections.iter().enumerate() {
                    if section.usage == wanted {
                        *at = up(*at, section.align.max(16));
                        sections[o][s] = Some(*at);
                        *at += sizes.get(&(o, s)).copied().unwrap_or(section.bytes.len());
                        if wanted == Use::Data {
                            *at += BETWEEN;
                        }
                    }
                }
            }
        };
        place(Use::Text, &mut at);
        let thunks = up(at, 16);
        let nr = program.nr_slots();
        let text_len = up(thunks + nr * THUNK, PAGE);
        let words = text_len;
        let slots = words + WORDS;
        let zeroes = slots + nr * 8;
        at = zeroes + ZEROES + BETWEEN;
        place(Use::Data, &mut at);
        let len = up(at + 1, PAGE);
        Self { sections, thunks, text_len, words, slots, zeroes, len }
    }
}

impl Layout {
    /// Lets C use the sections with data, at `base`.
    fn allow(&self, program: &Program, sizes: &Sizes, base: u64, zone: &Zone) {
        for (o, object) in program.objects.iter().enumerate() {
            for (s, section) in object.sections.iter().enumerate() {
                let is_hidden = o == RUN_TIME && section.name == HIDDEN;
                if let (Use::Data, Some(at), false) =
                    (section.usage, self.sections[o][s], is_hidden)
                {
                    let len = sizes.get(&(o, s)).copied().unwrap_or(section.bytes.len());
                    zone.allow(base + at as u64, len as u64);
                }
            }
        }
        zone.allow(base + self.zeroes as u64, ZEROES as u64);
    }
}

impl Program {
    /// One slot for each symbol.
    fn nr_slots(&self) -> usize {
        self.targets.iter().map(Vec::len).sum()
    }

    fn slot(&self, object: usize, symbol: usize) -> usize {
        self.targets[..object].iter().map(Vec::len).sum::<usize>() + symbol
    }
}

impl Image {
    /// Loads `program` into `zone`. `sizes` are the sizes of sections that grow.
    pub fn load(program: &Program, sizes: &Sizes, zone: &Zone) -> Result<Self, NativeError> {
        let layout = Layout::new(program, sizes);
        let base = zone.region(layout.len as u64).map_err(NativeError::Internal)?;
        zone.forbid_region(base, layout.len as u64).map_err(NativeError::Internal)?;
        layout.allow(program, sizes, base, zone);
        let sections = layout
            .sections
            .iter()
            .map(|object| object.iter().map(|at| at.map_or(0, |at| base + at as u64)).collect())
            .collect();
        let text = base..base + layout.text_len as u64;
        let words = Words { base: base + layout.words as u64 };
        let mut image = Self { base, len: layout.len, sections, text, words };
        image.put(words.text_start(), &base.to_le_bytes());
        image.put(words.text_len(), &(layout.text_len as u64).to_le_bytes());
        image.copy(program);
        image.bind(program, &layout)?;
        // SAFETY: the first `text_len` bytes are whole pages of this mapping.
        let sealed = unsafe {
            let prot = libc::PROT_READ | libc::PROT_EXEC;
            libc::mprotect(base as *mut _, layout.text_len, prot)
        };
        if sealed != 0 {
            let error = std::io::Error::last_os_error();
            return Err(NativeError::Internal(format!(
                "the system does not let memory be made executable: {error}"
            )));
        }
        Ok(image)
    }

    fn copy(&mut self, program: &Program) {
        for (object, sections) in program.objects.iter().zip(&self.sections) {
            for (section, &at) in object.sections.iter().zip(sections) {
                if at != 0 {
                    // SAFETY: the layout gave this section at least these bytes of the mapping.
                    unsafe {
                        let bytes = section.bytes.as_ptr();
                        std::ptr::copy_nonoverlapping(bytes, at as *mut u8, section.bytes.len());
                    }
                }
            }
        }
    }

    /// Writes addresses into code and data.
    fn bind(&mut self, program: &Program, layout: &Layout) -> Result<(), NativeError> {
        let base = self.base;
        let (section, offset) = program.run_time_symbol(CALL)?;
        let counter = self.address(RUN_TIME, section, offset) + CALL_INSNS;
        for (o, object) in program.objects.iter().enumerate() {
            for s in 0..object.symbols.len() {
                let number = program.slot(o, s);
                let slot = base + (layout.slots + number * 8) as u64;
                let thunk = base + (layout.thunks + number * THUNK) as u64;
                let words = Words { base: base + layout.words as u64 };
                let value = match program.targets[o][s] {
                    Target::Section(object, section, offset) => {
                        self.address(object, section, offset)
                    }
                    Target::Host(index) => {
                        let function = &host::FUNCTIONS[index];
                        let insns = (insns::of(function.name), counter);
                        let at = function.address as u64;
                        self.put(thunk, &thunks::call(thunk, at, words, insns));
                        thunk
                    }
                    Target::Branch => {
                        self.put(thunk, &thunks::branch(thunk, words));
                        thunk
                    }
                    Target::Absent(index) => {
                        self.put(thunk, &thunks::absent(index, host::absent_address()));
                        0
                    }
                    Target::Zeroes => base + layout.zeroes as u64,
                    Target::Absolute(value) => value,
                };
                self.put(slot, &value.to_le_bytes());
            }
            for (s, section) in object.sections.iter().enumerate() {
                let start = self.sections[o][s];
                if start == 0 {
                    continue;
                }
                for relocation in &section.relocations {
                    let number = program.slot(o, relocation.symbol);
                    let symbol = Bound {
                        slot: base + (layout.slots + number * 8) as u64,
                        thunk: base + (layout.thunks + number * THUNK) as u64,
                        target: program.targets[o][relocation.symbol],
                    };
                    let room = section.bytes.len() as u64;
                    if relocation.offset.checked_add(4).is_none_or(|end| end > room) {
                        return Err(NativeError::Internal(
                            "a relocation outside its section".into(),
                        ));
                    }
                    self.relocate(start + relocation.offset, relocation, &symbol)?;
                }
            }
        }
        Ok(())
    }

    fn relocate(
        &mut self,
        at: u64,
        relocation: &super::object::Relocation,
        symbol: &Bound,
    ) -> Result<(), NativeError> {
        use object::elf;
        let value = match symbol.target {
            Target::Section(object, section, offset) => self.address(object, section, offset),
            // Only code reaches functions of the simulator directly, by calling them.
            _ => u64::from_le_bytes(self.bytes(symbol.slot, 8).try_into().expect("eight bytes")),
        };
        let is_far = !matches!(symbol.target, Target::Section(..));
        let near = |value: u64| value.wrapping_add_signed(relocation.addend).wrapping_sub(at);
        let distance = match relocation.r_type {
            t if t == elf::R_X86_64_64.0 => {
                let value = value.wrapping_add_signed(relocation.addend);
                self.put(at, &value.to_le_bytes());
                return Ok(());
            }
            t if t == elf::R_X86_64_PLT32.0 || (t == elf::R_X86_64_PC32.0 && is_far) => {
                near(if is_far { symbol.thunk } else { value })
            }
            t if t == elf::R_X86_64_PC32.0 => near(value),
            t if t == elf::R_X86_64_GOTPCREL.0
                || t == elf::R_X86_64_GOTPCRELX.0
                || t == elf::R_X86_64_REX_GOTPCRELX.0 =>
            {
                near(symbol.slot)
            }
            t => {
                return Err(NativeError::Internal(format!(
                    "the compiler used relocation type {t}, which the loader does not know"
                )));
            }
        };
        let distance = i32::try_from(distance as i64).map_err(|_| {
            NativeError::Internal("a distance in the scheduler does not fit 32 bits".into())
        })?;
        self.put(at, &distance.to_le_bytes());
        Ok(())
    }

    fn offset(&self, at: u64, len: usize) -> usize {
        let offset = (at - self.base) as usize;
        assert!(offset.saturating_add(len) <= self.len, "outside of the image");
        offset
    }

    /// The counter of eight bytes at an offset of a section; `None`: the section does not have it.
    pub fn counter(&self, object: usize, section: usize, offset: u64) -> Option<u64> {
        let start = self.sections.get(object)?.get(section).copied().filter(|start| *start != 0)?;
        let at = start.checked_add(offset)?;
        let end = self.base + self.len as u64;
        let is_within = at.checked_add(8).is_some_and(|last| last <= end);
        is_within.then(|| u64::from_le_bytes(self.bytes(at, 8).try_into().expect("eight bytes")))
    }

    /// Address of an offset of a section.
    pub fn address(&self, object: usize, section: usize, offset: u64) -> u64 {
        let start = self.sections[object][section];
        if start == 0 { 0 } else { start + offset }
    }

    /// The section of an address: object, section, offset.
    pub fn place(&self, program: &Program, address: u64) -> Option<(usize, usize, u64)> {
        for (o, sections) in self.sections.iter().enumerate() {
            for (s, &start) in sections.iter().enumerate() {
                let len = program.objects[o].sections[s].bytes.len() as u64;
                if start != 0 && (start..start + len).contains(&address) {
                    return Some((o, s, address - start));
                }
            }
        }
        None
    }

    /// The section with data that an address is in, or that ends before it: object, section, its
    /// start.
    pub fn data_before(&self, program: &Program, at: u64) -> Option<(usize, usize, u64)> {
        if !(self.base..self.base + self.len as u64).contains(&at) {
            return None;
        }
        let mut best: Option<(usize, usize, u64)> = None;
        for (o, sections) in self.sections.iter().enumerate() {
            for (s, &start) in sections.iter().enumerate() {
                let is_data = program.objects[o].sections[s].usage == Use::Data && start != 0;
                if is_data && start <= at && best.is_none_or(|(.., before)| before <= start) {
                    best = Some((o, s, start));
                }
            }
        }
        best
    }

    /// Writes data.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        let offset = self.offset(at, bytes.len());
        // SAFETY: the range was checked; nothing of the scheduler's runs while we have `&mut`.
        unsafe {
            let place = (self.base as *mut u8).add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }

    /// Reads a text up to its zero.
    pub fn text_at(&self, mut at: u64) -> String {
        let mut bytes = Vec::new();
        loop {
            match self.bytes(at, 1)[0] {
                0 => break,
                byte => bytes.push(byte),
            }
            at += 1;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads data.
    pub fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        let offset = self.offset(at, len);
        let mut bytes = vec![0; len];
        // SAFETY: the range was checked.
        unsafe {
            let place = (self.base as *const u8).add(offset);
            std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), len);
        }
        bytes
    }
}

/// A symbol in an image.
struct Bound {
    slot: u64,
    thunk: u64,
    target: Target,
}
