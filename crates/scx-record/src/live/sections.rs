// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variables of a scheduler, which its user program has mapped.
//!
//! The two halves lay the same variables out differently. They never run at once, so bytes are
//! copied when one stops and the other begins: before a step those of the scheduler, after a step
//! those that the program has changed.

use super::Backend;
use crate::bpf::Shared;
use std::io;
use std::os::unix::fs::FileExt;

/// A section, and its bytes when the program last began.
#[derive(Debug)]
struct Section {
    shared: Shared,
    bytes: Vec<u8>,
}

/// All sections that both halves may change.
#[derive(Debug, Default)]
pub(super) struct Sections(Vec<Section>);

impl Sections {
    /// These sections, none of which is copied yet.
    pub(super) fn new(all: Vec<Shared>) -> Self {
        let section = |shared: Shared| Section { bytes: vec![0; shared.len], shared };
        Self(all.into_iter().map(section).collect())
    }

    /// Copies the scheduler's variables to the program.
    pub(super) fn pull(&mut self, backend: &mut dyn Backend) -> io::Result<()> {
        for Section { shared, bytes } in &mut self.0 {
            shared.file.read_exact_at(bytes, 0)?;
            for (name, offset, size) in &shared.variables {
                let end = offset.saturating_add(*size);
                let (Some(to), Some(from)) = (bytes.get_mut(*offset..end), backend.variable(name))
                else {
                    continue;
                };
                let len = to.len().min(from.len());
                if to[..len] != from[..len] {
                    to[..len].copy_from_slice(&from[..len]);
                    shared.file.write_all_at(&to[..len], *offset as u64)?;
                }
            }
        }
        Ok(())
    }

    /// Copies what the program has changed to the scheduler.
    pub(super) fn push(&mut self, backend: &mut dyn Backend) -> io::Result<()> {
        for Section { shared, bytes } in &mut self.0 {
            let before = bytes.clone();
            shared.file.read_exact_at(bytes, 0)?;
            for (name, offset, size) in &shared.variables {
                let range = *offset..offset.saturating_add(*size);
                let (Some(old), Some(new)) = (before.get(range.clone()), bytes.get(range)) else {
                    continue;
                };
                let mut at = 0;
                while let Some((from, to)) = changed(&old[at..], &new[at..]) {
                    backend.set_variable(name, at + from, &new[at + from..at + to]);
                    at += to;
                }
            }
        }
        Ok(())
    }
}

/// The first run of bytes that differ.
fn changed(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    let from = old.iter().zip(new).position(|(old, new)| old != new)?;
    let len = old[from..].iter().zip(&new[from..]).position(|(old, new)| old == new);
    Some((from, len.map_or(new.len(), |len| from + len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_changed_bytes_are_found() {
        assert_eq!(changed(&[1, 2, 3], &[1, 2, 3]), None);
        assert_eq!(changed(&[1, 2, 3, 4], &[1, 0, 0, 4]), Some((1, 3)));
        assert_eq!(changed(&[1, 2], &[1, 9]), Some((1, 2)));
        assert_eq!(changed(&[], &[]), None);
    }
}
