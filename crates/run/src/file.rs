// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that appear under their name whole or not at all: written beside it, then renamed; and
//! text files, read up to a size.

use schedlab_trace::export::Output;
use schedlab_workload::units;
use std::fmt;
use std::fs::Permissions;
use std::io::{self, BufWriter, IntoInnerError, Read, Write};
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

/// What to do about an error of the system with a file.
pub fn help(error: &io::Error) -> &'static str {
    match is_full(error) {
        true => "make room, or write to another place",
        false => "check that the path is right and that you may use it",
    }
}

/// Whether a file could not grow: no space, no quota, or larger than a file may be.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
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

/// Why a text file was not read.
#[derive(Debug)]
pub enum TextError {
    /// The system refuses it.
    File(FileError),
    /// It has more bytes than this.
    TooLarge(PathBuf, u64),
    /// The byte at this offset is not UTF-8.
    NotText(PathBuf, usize),
}

impl TextError {
    /// What to do about it; empty where the text says it all.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotText(..) => "give a text file",
            Self::File(_) | Self::TooLarge(..) => "",
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::TooLarge(path, bytes_max) => write!(
                f,
                "{} is larger than {}, the most that is read",
                path.display(),
                units::format_bytes(*bytes_max)
            ),
            Self::NotText(path, byte) => {
                write!(f, "{} is no text: byte {byte} is not UTF-8", path.display())
            }
        }
    }
}

impl std::error::Error for TextError {}

/// Reads a text file of at most `bytes_max`; `-` is stdin.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, TextError> {
    let wrong = |source| TextError::File(FileError { what: "read", path: path.into(), source });
    let mut bytes = Vec::new();
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(wrong)?)
    };
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > bytes_max {
        return Err(TextError::TooLarge(path.into(), bytes_max));
    }
    String::from_utf8(bytes)
        .map_err(|error| TextError::NotText(path.into(), error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_text_file_has_a_size_and_only_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        let error = read_text(&path, 3).unwrap_err().to_string();
        assert!(error.ends_with("a.txt is larger than 3, the most that is read"), "{error}");
        fs::write(&path, b"ab\xff").unwrap();
        let error = read_text(&path, 4).unwrap_err();
        assert!(error.to_string().ends_with("byte 2 is not UTF-8"), "{error}");
        assert_eq!(error.help(), "give a text file");
        assert!(matches!(read_text(folder.path(), 4), Err(TextError::File(_))));
    }

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
