// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 (FIPS 180-4) as text. It identifies runs, files and guests.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The bytes of a hash as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 of `bytes`, 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, the empty message and "abc".
    #[test]
    fn the_sums_are_the_published_ones() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((sha256(b"").as_str(), sha256(b"abc").as_str()), (empty, abc));
    }
}
