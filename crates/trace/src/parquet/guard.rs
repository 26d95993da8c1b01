// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that ends reading beyond its end with an error.
//!
//! The Parquet library skips unknown parts of a page's header without noticing the end of the file.
//! A list that claims two thousand million numbers is skipped number by number, for minutes. With
//! this guard the end of the file is an error after it was met more often than a correct reader
//! needs.

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{Error, ErrorKind, Read};

/// Empty answers at the end of the file before they become an error.
const ENDS_MAX: u32 = 16;

/// The guarded file.
pub(super) struct Guarded<R>(pub R);

impl<R: Length> Length for Guarded<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Guarded<R> {
    type T = GuardedRead<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(GuardedRead { inner: self.0.get_read(start)?, nr_ends: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// A part of the file.
pub(super) struct GuardedRead<T> {
    inner: T,
    nr_ends: u32,
}

impl<T: Read> Read for GuardedRead<T> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(out)?;
        if count == 0 && !out.is_empty() {
            self.nr_ends += 1;
            if self.nr_ends > ENDS_MAX {
                return Err(Error::new(ErrorKind::UnexpectedEof, "it claims more than it has"));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_an_error_when_it_is_asked_for_again_and_again() {
        let file = Guarded(Bytes::from_static(b"abc"));
        assert_eq!(file.len(), 3);
        let mut read = file.get_read(1).unwrap();
        let mut out = [0; 4];
        assert_eq!((read.read(&mut out).unwrap(), &out[..2]), (2, &b"bc"[..]));
        let ends = (0..100).take_while(|_| matches!(read.read(&mut out), Ok(0))).count();
        assert_eq!(ends, ENDS_MAX as usize);
        assert_eq!(read.read(&mut []).unwrap(), 0);
    }
}
