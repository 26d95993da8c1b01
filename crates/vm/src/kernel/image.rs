// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of a kernel image: its release, and the ELF file that it unpacks when it boots.
//!
//! Source: the x86 boot protocol (Documentation/arch/x86/boot.rst, fields setup_sects, header,
//! kernel_version, payload_offset, payload_length, protocol 2.08). Booting the unpacked ELF file
//! (PVH) saves nearly a second of emulated time. Images packed with gzip, zstd or lz4, as
//! distributions do, are unpacked; others are booted as they are.

use super::elf::Elf;
use std::io::Read;

/// Largest unpacked kernel.
const UNPACKED_MAX: u64 = 512 << 20;
/// Largest block of the lz4 "legacy" format, unpacked.
const LZ4_BLOCK: usize = 8 << 20;

/// The content of an image.
#[derive(Debug)]
pub struct Image {
    /// Release, such as `6.18.15+deb13-cloud-amd64`.
    pub release: String,
    /// The unpacked ELF file; or why it could not be unpacked.
    pub elf: Result<Vec<u8>, String>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The first word of a text that ends with 0.
fn first_word(bytes: &[u8]) -> String {
    let end = bytes.iter().take(128).position(|byte| matches!(byte, 0 | b' ' | b'\n'));
    String::from_utf8_lossy(&bytes[..end.unwrap_or(0)]).into_owned()
}

impl Image {
    /// Reads a bzImage (`vmlinuz`) or an ELF file (`vmlinux`).
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if Elf::new(bytes).is_some() {
            return Ok(Self { release: banner(bytes)?, elf: Ok(bytes.to_vec()) });
        }
        let magic = bytes.get(0x202..0x206);
        let protocol = u16_at(bytes, 0x206).unwrap_or(0);
        if magic != Some(b"HdrS") || protocol < 0x208 {
            return Err(
                "this is no Linux kernel for x86-64: neither a bzImage (vmlinuz) nor an ELF \
                        file (vmlinux)"
                    .into(),
            );
        }
        let release_at = usize::from(u16_at(bytes, 0x20e).unwrap_or(0)) + 0x200;
        let release = first_word(bytes.get(release_at..).unwrap_or_default());
        if release.is_empty() {
            return Err("the image does not say which release it is".into());
        }
        let elf = payload(bytes).and_then(unpack).and_then(|elf| {
            Elf::new(&elf).map(|_| ()).ok_or("what it unpacks is no ELF file")?;
            Ok(elf)
        });
        Ok(Self { release, elf })
    }
}

/// The release, from the first line that the kernel prints.
fn banner(elf: &[u8]) -> Result<String, String> {
    const START: &[u8] = b"Linux version ";
    memchr::memmem::find_iter(elf, START)
        .map(|at| first_word(&elf[at + START.len()..]))
        // The format string of the same text has no release.
        .find(|release| release.starts_with(|first: char| first.is_ascii_digit()))
        .ok_or_else(|| {
            "the ELF file is no Linux kernel: it does not say which release it is".into()
        })
}

fn payload(bytes: &[u8]) -> Result<&[u8], String> {
    let find = || {
        let sectors = match bytes.get(0x1f1)? {
            0 => 4,
            count => usize::from(*count),
        };
        let from = (sectors + 1) * 512 + u32_at(bytes, 0x248)? as usize;
        bytes.get(from..from.checked_add(u32_at(bytes, 0x24c)? as usize)?)
    };
    find().ok_or_else(|| "its header points outside of the file: it is truncated".into())
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("it cannot be unpacked: {error}");
    let mut elf = Vec::new();
    match packed {
        [0x1f, 0x8b, ..] => {
            flate2::read::GzDecoder::new(packed)
                .take(UNPACKED_MAX)
                .read_to_end(&mut elf)
                .map_err(wrong)?;
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            // After the frame follows the length of the unpacked data.
            let frame = zstd::stream::Decoder::new(packed).map_err(wrong)?.single_frame();
            frame.take(UNPACKED_MAX).read_to_end(&mut elf).map_err(wrong)?;
        }
        [0x02, 0x21, 0x4c, 0x18, ..] => elf = unpack_lz4(&packed[4..])?,
        _ => return Err("it is packed neither by gzip nor by zstd nor by lz4".into()),
    }
    Ok(elf)
}

/// Blocks of the "legacy" format: length and content. The length of the whole is at the end.
fn unpack_lz4(mut packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut elf: Vec<u8> = Vec::new();
    while packed.len() > 4 {
        let len = u32_at(packed, 0).unwrap_or(0) as usize;
        let block = packed.get(4..4 + len).ok_or("a block of it is longer than the image")?;
        let unpacked = lz4_flex::block::decompress(block, LZ4_BLOCK)
            .map_err(|error| format!("it cannot be unpacked: {error}"))?;
        elf.extend_from_slice(&unpacked);
        if elf.len() as u64 > UNPACKED_MAX {
            return Err("it unpacks to more than 512 MiB".into());
        }
        packed = &packed[4 + len..];
    }
    Ok(elf)
}
