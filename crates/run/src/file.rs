// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that appear under their name whole or not at all: written beside it, then renamed.

use schedlab_trace::export::Output;
use std::fmt;
use std::fs::Permissions;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the name begins that a file has while it is written. Such a file, with nobody who writes it,
/// is what a killed process left.
pub const UNFINISHED: &str = ".schedlab-";

/// A file that could not be written.
#[derive(Debug)]
pub struct FileError {
    /// What was tried, as a verb: `write`, `create a file beside`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.what, self.path.display(), self.source)
    }
}

impl std::error::Error for FileError {}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        error.source
    }
}

/// A file that appears under its name when it is committed. One that is dropped before leaves
/// nothing behind.
pub struct AtomicFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will be `path`, with the rights that a new file gets. Fails where `path`
    /// is a directory, and where nothing can be created beside it.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let wrong = |what, source| FileError { what, path: path.into(), source };
        if path.is_dir() {
            return Err(wrong("write", io::ErrorKind::IsADirectory.into()));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| wrong("create a file beside", error))?;
        Ok(Self { path: path.into(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Puts what was written on the disk, so that a crash of the machine right after the commit
    /// leaves a whole file too.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().as_file().sync_all()
    }

    /// Makes the file appear under its name.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(IntoInnerError::into_error);
        match file.and_then(|file| Ok(file.persist(&path)?)) {
            Ok(_) => Ok(()),
            Err(source) => Err(FileError { what: "write", path, source }),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for AtomicFile {
    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(Self::commit(*self)?)
    }
}

/// Writes `bytes` to `path` and to the disk. Whoever reads `path` sees the old content or the new,
/// never a part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync());
    written.map_err(|source| FileError { what: "write", path: path.into(), source })?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_was_not_committed_never_appears() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // The mask of the process decides, as for any new file.
        fs::write(folder.path().join("b.txt"), "").unwrap();
        let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("a.txt"), mode("b.txt"));
    }

    #[test]
    fn a_folder_or_a_missing_folder_is_an_error_that_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_whole(folder.path(), b"x").unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::IsADirectory);
        let error = write_whole(&folder.path().join("no/such/r.html"), b"x").unwrap_err();
        assert!(error.to_string().contains("no/such/r.html"), "{error}");
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
