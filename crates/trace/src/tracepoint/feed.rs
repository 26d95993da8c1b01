// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes in their order, with the number of those that have been read.

use super::PIECE_MAX;
use std::io::{ErrorKind, Read};

/// Longest text that ends with a 0 byte.
const TEXT_MAX: usize = 4096;

/// A stream that is read piece by piece. Give it a source that buffers.
#[derive(Debug)]
pub(crate) struct Feed<R> {
    source: R,
    /// Bytes read so far.
    pub at: u64,
}

impl<R: Read> Feed<R> {
    pub const fn new(source: R) -> Self {
        Self { source, at: 0 }
    }

    /// Fills `buffer`.
    pub fn exact(&mut self, buffer: &mut [u8], what: &str) -> Result<(), String> {
        self.source.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => format!("the file ends within {what}: it was cut off"),
            _ => error.to_string(),
        })?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.exact(&mut bytes, what)?;
        Ok(bytes)
    }

    pub fn u8(&mut self, what: &str) -> Result<u8, String> {
        Ok(self.array::<1>(what)?[0])
    }

    pub fn u16(&mut self, what: &str) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// The next `len` bytes. The memory grows with what is there, not with what is announced.
    pub fn bytes(&mut self, len: u64, what: &str) -> Result<Vec<u8>, String> {
        if len > PIECE_MAX {
            return Err(format!("{what} of {len} bytes: allowed are {PIECE_MAX}"));
        }
        let mut bytes = Vec::new();
        let read = self.source.by_ref().take(len).read_to_end(&mut bytes);
        let read = read.map_err(|error| error.to_string())? as u64;
        self.at += read;
        if read < len {
            return Err(format!("the file ends within {what}: it was cut off"));
        }
        Ok(bytes)
    }

    /// Passes over `len` bytes.
    pub fn skip(&mut self, len: u64, what: &str) -> Result<(), String> {
        let mut source = self.source.by_ref().take(len);
        let passed = std::io::copy(&mut source, &mut std::io::sink());
        let passed = passed.map_err(|error| error.to_string())?;
        self.at += passed;
        if passed < len {
            return Err(format!("the file ends within {what}: it was cut off"));
        }
        Ok(())
    }

    /// A text that ends with a 0 byte, without it.
    pub fn text(&mut self, what: &str) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(text),
                _ if text.len() >= TEXT_MAX => {
                    return Err(format!("{what} has more than {TEXT_MAX} bytes"));
                }
                byte => text.push(byte),
            }
        }
    }

    /// These bytes and nothing else.
    pub fn expect(&mut self, wanted: &[u8], what: &str) -> Result<(), String> {
        let mut found = [0; 16];
        let found = &mut found[..wanted.len()];
        self.exact(found, what)?;
        if found == wanted {
            return Ok(());
        }
        let (found, wanted) = (String::from_utf8_lossy(found), String::from_utf8_lossy(wanted));
        Err(format!("{what} begins with {found:?} where {wanted:?} must be"))
    }
}
