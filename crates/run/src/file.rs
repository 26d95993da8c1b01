// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes files so that they appear complete or not at all: into a temporary file in the same
//! directory, which is then renamed. Reads text files up to a maximum size.

use rustix::fs::{AtFlags, CWD};
use schedlab_trace::export::Output;
use schedlab_workload::units;
use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IntoInnerError, Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the name of an unfinished file begins, on file systems that have no files without a name.
/// A process that is killed there leaves such a file behind.
pub const UNFINISHED: &str = ".schedlab-";

/// A file that could not be written.
#[derive(Debug)]
pub struct FileError {
    /// What was tried, as in `write` or `create a file beside`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's error.
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

/// Advice about a system error with a file.
pub fn help(error: &io::Error) -> &'static str {
    match is_full(error) {
        true => "make room, or write to another place",
        false => "check that the path is right and that you may use it",
    }
}

/// Whether a file could not grow: no space, quota exceeded, or the file would be too large.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Where the bytes of an unfinished file go.
enum Unfinished {
    /// A file without a name (O_TMPFILE), and the directory that it is in. The kernel frees it when
    /// its process ends, however it ends.
    Nameless(File, PathBuf),
    /// A file with a name of its own. Only a process that is not killed removes it.
    Named(NamedTempFile),
}

impl Unfinished {
    /// Begins a file in `folder` with the rights that a new file gets.
    fn begin(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).mode(0o666).custom_flags(rustix::fs::OFlags::TMPFILE.bits() as i32);
        match options.open(folder) {
            Ok(file) => Ok(Self::Nameless(file, folder.into())),
            // Some file systems have no such files, and say it in several ways.
            Err(_) => Ok(Self::Named(temporary_names().tempfile_in(folder)?)),
        }
    }

    fn file(&self) -> &File {
        match self {
            Self::Nameless(file, _) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Gives the file the name `path`, in place of a file that has it.
    fn persist(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Named(file) => {
                file.persist(path)?;
            }
            Self::Nameless(file, folder) => {
                // A link replaces no file, a renaming does: a name in between is needed.
                let source = format!("/proc/self/fd/{}", file.as_raw_fd());
                let linked = temporary_names().make_in(folder, |name| {
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    Ok(rustix::fs::linkat(CWD, source.as_str(), CWD, name, follow)?)
                })?;
                linked.into_temp_path().persist(path)?;
            }
        }
        Ok(())
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Names that nobody else has, for files with the rights that a new file gets.
fn temporary_names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED).permissions(Permissions::from_mode(0o666));
    builder
}

/// A file that appears under its name when it is committed. One that is dropped before leaves
/// nothing behind, nor does one whose process is killed where the file system allows it.
pub struct AtomicFile {
    path: PathBuf,
    file: BufWriter<Unfinished>,
}

impl AtomicFile {
    /// Starts a file that will be `path`, with the permissions of a new file. Fails if `path` is a
    /// directory, or if its directory does not allow new files.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let wrong = |what, source| FileError { what, path: path.into(), source };
        if path.is_dir() {
            return Err(wrong("write", io::ErrorKind::IsADirectory.into()));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file =
            Unfinished::begin(folder).map_err(|error| wrong("create a file beside", error))?;
        Ok(Self { path: path.into(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Writes the content to the disk, so that it survives a crash of the machine right after the
    /// commit.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().file().sync_all()
    }

    /// Makes the file appear under its name.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(IntoInnerError::into_error);
        match file.and_then(|file| file.persist(&path)) {
            Ok(()) => Ok(()),
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

/// Writes `bytes` to `path` and to the disk. A reader of `path` sees the old content or the new,
/// never a part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync());
    written.map_err(|source| FileError { what: "write", path: path.into(), source })?;
    file.commit()
}

/// Why a text file could not be read.
#[derive(Debug)]
pub enum TextError {
    /// A system error.
    File(FileError),
    /// It has more bytes than this limit.
    TooLarge(PathBuf, u64),
    /// The byte at this offset is not UTF-8.
    NotText(PathBuf, usize),
}

impl TextError {
    /// Advice about the error; may be empty.
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
        // What a kill at this moment would leave.
        let nr_named = usize::from(matches!(file.file.get_ref(), Unfinished::Named(_)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), nr_named);
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let named = Unfinished::Named(temporary_names().tempfile_in(folder.path()).unwrap());
        let mut file = AtomicFile { path: path.clone(), file: BufWriter::new(named) };
        file.write_all(b"by name").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"by name");
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
