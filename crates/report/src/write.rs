// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a file whole or not at all: to a new file beside the target, then a rename.

use crate::error::ReportError;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes `bytes` to `path`. Whoever reads `path` sees the old content or the new, never a part;
/// on an error nothing is left behind.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let name = path.file_name().ok_or_else(|| ReportError::NotAFile { path: path.into() })?;
    if path.is_dir() {
        return Err(ReportError::NotAFile { path: path.into() });
    }
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(temporary_name);
    let written = fill(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // The file may not exist; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        ReportError::Write { path: path.into(), source }
    })
}

fn fill(temporary: &PathBuf, bytes: &[u8]) -> io::Result<()> {
    // A left-over of a process that had the same id and was killed.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // create_new: never follow a link that someone else put there.
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("schedlab-report-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn the_old_file_is_replaced_and_nothing_else_stays() {
        let folder = folder("replace");
        let path = folder.join("r.html");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_or_a_missing_folder_is_an_error_that_names_the_path() {
        let folder = folder("errors");
        let error = write_whole(&folder, b"x").unwrap_err().to_string();
        assert!(error.contains("names no file"), "{error}");
        let error = write_whole(&folder.join("no/such/r.html"), b"x").unwrap_err().to_string();
        assert!(error.contains("r.html") && error.contains("check that the folder"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }
}
