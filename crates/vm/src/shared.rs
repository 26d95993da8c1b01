// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of the memory shared with a guest: a file without a name, read and written with
//! ordinary file calls while the guest does not run.

use crate::sys;
use schedlab_guest::protocol::{BODY, MAGIC, Message, SHARED_BYTES, stage, word};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The shared memory.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
}

impl SharedFile {
    /// New memory with the protocol's mark.
    pub fn new() -> io::Result<Self> {
        let shared = Self { file: sys::memory_file(SHARED_BYTES as u64)? };
        shared.reset()?;
        Ok(shared)
    }

    /// Replaces the content from a snapshot by the protocol's mark.
    pub fn reset(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; BODY], 0)?;
        self.set_word(word::MAGIC, MAGIC)
    }

    /// The file, to be passed to QEMU.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The word at byte `at`.
    pub fn word(&self, at: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Sets the word at byte `at`.
    pub fn set_word(&self, at: usize, value: u64) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), at as u64)
    }

    /// The stage of the guest.
    pub fn stage(&self) -> u64 {
        self.word(word::STAGE).unwrap_or(stage::BOOTING)
    }

    /// Writes the request. A request that does not fit is refused.
    pub fn ask(&self, request: &Message) -> io::Result<()> {
        let Message { kind, bytes } = request;
        if bytes.len() > SHARED_BYTES - BODY {
            return Err(io::Error::other(format!(
                "the request takes {} bytes as a message; {} fit",
                bytes.len(),
                SHARED_BYTES - BODY
            )));
        }
        self.file.write_all_at(bytes, BODY as u64)?;
        self.set_word(word::KIND, *kind)?;
        self.set_word(word::REQUEST_LEN, bytes.len() as u64)
    }

    /// Reads reply and trace. Their lengths come from the guest and are checked.
    pub fn answer(&self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let (reply, trace) = (self.word(word::REPLY_LEN)?, self.word(word::TRACE_LEN)?);
        let room = (SHARED_BYTES - BODY) as u64;
        if reply.checked_add(trace).is_none_or(|sum| sum > room) {
            return Err(io::Error::other(format!(
                "the guest says that its answer has {reply} and {trace} bytes; {room} fit"
            )));
        }
        let read = |at: u64, len: u64| {
            let mut bytes = vec![0; len as usize];
            self.file.read_exact_at(&mut bytes, at).map(|()| bytes)
        };
        Ok((read(BODY as u64, reply)?, read(BODY as u64 + reply, trace)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let shared = SharedFile::new().unwrap();
        assert_eq!(shared.word(word::MAGIC).unwrap(), MAGIC);
        let message = |bytes: Vec<u8>| Message { kind: 1, bytes };
        assert!(shared.ask(&message(vec![0; SHARED_BYTES])).is_err());
        shared.ask(&message(b"abc".to_vec())).unwrap();
        assert_eq!(shared.word(word::REQUEST_LEN).unwrap(), 3);
        assert_eq!(shared.word(word::KIND).unwrap(), 1);
        for (reply, trace) in [(u64::MAX, 2), (SHARED_BYTES as u64, 0), (9, SHARED_BYTES as u64)] {
            shared.set_word(word::REPLY_LEN, reply).unwrap();
            shared.set_word(word::TRACE_LEN, trace).unwrap();
            assert!(shared.answer().is_err(), "{reply} {trace}");
        }
        shared.set_word(word::REPLY_LEN, 3).unwrap();
        shared.set_word(word::TRACE_LEN, 0).unwrap();
        assert_eq!(shared.answer().unwrap(), (b"abc".to_vec(), Vec::new()));
    }
}
