// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of an ELF file that the vm lane needs: sections by name, and whether a program needs a
//! loader. The file is treated as hostile: `object` checks every offset.

use object::LittleEndian;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// A 64-bit little-endian ELF file.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    header: &'a FileHeader64<LittleEndian>,
}

impl<'a> Elf<'a> {
    /// Reads the file; `None` if it is not such a file.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = FileHeader64::parse(bytes).ok()?;
        header.is_little_endian().then_some(Self { bytes, header })
    }

    /// The bytes of the section with this name.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        let sections = self.header.sections(LittleEndian, self.bytes).ok()?;
        let (_, section) = sections.section_by_name(LittleEndian, name.as_bytes())?;
        section.data(LittleEndian, self.bytes).ok()
    }

    /// Path of the program's loader; `None`: it needs none.
    pub fn interpreter(&self) -> Option<String> {
        let headers = self.header.program_headers(LittleEndian, self.bytes).ok()?;
        let bytes =
            headers.iter().find_map(|one| one.interpreter(LittleEndian, self.bytes).ok()?)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    /// Whether the program needs a loader and its libraries. True if its headers cannot be read.
    pub fn is_dynamic(&self) -> bool {
        let headers = self.header.program_headers(LittleEndian, self.bytes);
        headers.map_or(true, |all| all.iter().any(|one| one.p_type(LittleEndian) == PT_INTERP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_its_sections_and_damage_is_harmless() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::new(&bytes).unwrap();
        assert!(elf.section(".text").is_some_and(|text| text.len() > 1000));
        assert!(elf.section(".no-such-section").is_none());
        assert!(elf.is_dynamic());
        assert!(elf.interpreter().is_some_and(|path| path.contains("/ld-")));
        assert!(Elf::new(&bytes[..40]).is_none());
        let mut head = bytes[..4096].to_vec();
        assert!(Elf::new(&head).unwrap().section(".text").is_none(), "its table is cut off");
        for at in 0x20..0x40 {
            head[at] = 0xff;
            let _ = Elf::new(&head).unwrap().section(".text");
            let _ = Elf::new(&head).unwrap().is_dynamic();
            let _ = Elf::new(&head).unwrap().interpreter();
        }
    }
}
