// SPDX-License-Identifier: MIT OR Apache-2.0
//! The little of an ELF file that the lab wants to know: sections by name, and whether a program
//! needs a loader (System V ABI, chapters 4 and 5; 64 bits, little-endian). The file is taken as
//! hostile: every offset is checked.

/// Size of the header of a 64-bit file.
const HEADER: usize = 64;
/// PT_INTERP: the program names a loader.
const PT_INTERP: u32 = 3;

/// A 64-bit little-endian ELF file.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    bytes: &'a [u8],
}

fn number<const N: usize>(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let found = bytes.get(at..at.checked_add(N)?)?;
    let mut all = [0; 8];
    all[..N].copy_from_slice(found);
    Some(u64::from_le_bytes(all))
}

impl<'a> Elf<'a> {
    /// The file, if it is one.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        // Magic, ELFCLASS64, ELFDATA2LSB.
        (bytes.len() >= HEADER && bytes.starts_with(b"\x7fELF\x02\x01")).then_some(Self { bytes })
    }

    fn slice(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        let at = usize::try_from(at).ok()?;
        self.bytes.get(at..at.checked_add(usize::try_from(len).ok()?)?)
    }

    /// A section header: name (offset), file offset, length.
    fn section_at(&self, index: u64) -> Option<(u64, u64, u64)> {
        let table = number::<8>(self.bytes, 0x28)?;
        let size = number::<2>(self.bytes, 0x3a)?;
        let at = table.checked_add(size.checked_mul(index)?)?;
        let field = |offset: u64| at.checked_add(offset);
        Some((
            number::<4>(self.bytes, at)?,
            number::<8>(self.bytes, field(0x18)?)?,
            number::<8>(self.bytes, field(0x20)?)?,
        ))
    }

    /// The bytes of the section of this name.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        let count = number::<2>(self.bytes, 0x3c)?;
        let (_, names_at, names_len) = self.section_at(number::<2>(self.bytes, 0x3e)?)?;
        let names = self.slice(names_at, names_len)?;
        let (_, at, len) = (0..count).filter_map(|index| self.section_at(index)).find(|found| {
            let rest = names.get(found.0 as usize..).unwrap_or_default();
            rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })?;
        self.slice(at, len)
    }

    /// Whether the program needs a loader and its libraries.
    pub fn is_dynamic(&self) -> bool {
        let find = || {
            let table = number::<8>(self.bytes, 0x20)?;
            let (size, count) = (number::<2>(self.bytes, 0x36)?, number::<2>(self.bytes, 0x38)?);
            let kind =
                |index: u64| number::<4>(self.bytes, table.checked_add(size.checked_mul(index)?)?);
            Some((0..count).any(|index| kind(index) == Some(u64::from(PT_INTERP))))
        };
        find().unwrap_or(true)
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
        assert!(Elf::new(&bytes[..40]).is_none());
        let mut head = bytes[..4096].to_vec();
        assert!(Elf::new(&head).unwrap().section(".text").is_none(), "its table is cut off");
        for at in 0x20..0x40 {
            head[at] = 0xff;
            let _ = Elf::new(&head).unwrap().section(".text");
            let _ = Elf::new(&head).unwrap().is_dynamic();
        }
    }
}
