// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 as text: names of files in the cache, and identities.

use sha2::{Digest, Sha256};

/// SHA-256 of the bytes, 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of named parts, in order; no two lists of parts give the same bytes.
pub fn sha256_of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut all = Vec::new();
    for (name, value) in parts {
        all.extend_from_slice(format!("{name} {} {value}\n", value.len()).as_bytes());
    }
    sha256(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one_and_parts_cannot_be_mistaken() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        let one = sha256_of_parts([("a", "b\nc 1 d")]);
        assert_ne!(one, sha256_of_parts([("a", "b"), ("c", "d")]));
    }
}
