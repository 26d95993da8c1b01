// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links the objects of a scheduler's files as libbpf does, with libbpf's reason if it refuses.

use super::verifier::{Messages, condense};
use libbpf_rs::libbpf_sys as sys;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};

/// A linker of libbpf.
struct Linker(NonNull<sys::bpf_linker>);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: a linker that was not freed yet.
        unsafe { sys::bpf_linker__free(self.0.as_ptr()) };
    }
}

/// Links `objects` into the file `into`.
pub(super) fn link(objects: &[PathBuf], into: &Path) -> Result<(), String> {
    let messages = Messages::collect();
    linked(objects, into)
        .ok_or_else(|| format!("its files cannot be linked: {}", condense(&messages.text())))
}

fn linked(objects: &[PathBuf], into: &Path) -> Option<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    let path = text(into)?;
    // SAFETY: a valid C string; no options.
    let linker = Linker(NonNull::new(unsafe { sys::bpf_linker__new(path.as_ptr(), null_mut()) })?);
    for object in objects {
        let path = text(object)?;
        // SAFETY: a linker that is not finished, and a valid C string.
        let result =
            unsafe { sys::bpf_linker__add_file(linker.0.as_ptr(), path.as_ptr(), null_mut()) };
        (result == 0).then_some(())?;
    }
    // SAFETY: as above.
    (unsafe { sys::bpf_linker__finalize(linker.0.as_ptr()) } == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_refused_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let (object, into) = (dir.path().join("a.o"), dir.path().join("b.o"));
        std::fs::write(&object, "text").unwrap();
        let why = link(&[object.clone(), object], &into).unwrap_err();
        assert!(why.starts_with("its files cannot be linked: ") && why.contains("a.o"), "{why}");
        assert!(link(&[dir.path().join("none.o")], &into).is_err());
    }
}
