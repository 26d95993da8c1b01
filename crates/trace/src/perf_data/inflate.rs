// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed records: one stream of zstd in pieces, whose content is records again.

use super::record::front;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are unpacked at a time.
const PIECE: usize = 1 << 17;

/// The stream.
pub(super) struct Inflate {
    decoder: Decoder<'static>,
    /// Unpacked bytes that are no whole record yet.
    rest: Vec<u8>,
}

impl std::fmt::Debug for Inflate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflate").field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

impl Inflate {
    pub fn new() -> Result<Self, String> {
        let decoder = Decoder::new().map_err(|error| error.to_string())?;
        Ok(Self { decoder, rest: Vec::new() })
    }

    /// Unpacks a piece, and hands out the records that are whole with it.
    pub fn piece(
        &mut self,
        packed: &[u8],
        mut record: impl FnMut(super::record::Bytes<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut input = InBuffer::around(packed);
        loop {
            let had = self.rest.len();
            self.rest.resize(had + PIECE, 0);
            let mut output = OutBuffer::around_pos(&mut self.rest[..], had);
            let ran = self.decoder.run(&mut input, &mut output);
            let len = output.pos();
            self.rest.truncate(len);
            ran.map_err(|error| format!("the compressed records are damaged: {error}"))?;
            let mut from = 0;
            while let Some(whole) = front(&self.rest[from..])? {
                from += whole.whole.len();
                record(whole)?;
            }
            self.rest.drain(..from);
            // A full buffer may have left some in the decoder.
            if input.pos() >= packed.len() && len < had + PIECE {
                return Ok(());
            }
        }
    }
}
