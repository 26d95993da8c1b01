// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where output goes: data to stdout, talk to stderr, files whole or not at all.

use crate::error::{CliError, CliResult};
use schedlab_trace::export::Output;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Standard output, buffered. A reader that goes away ends the program without an error.
pub struct Out {
    writer: BufWriter<io::Stdout>,
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Self {
        Self { writer: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    /// Writes what is left in the buffer.
    pub fn finish(mut self) -> CliResult<()> {
        self.finish_now()
    }

    /// Writes what is left in the buffer, before something is said on stderr.
    pub fn finish_now(&mut self) -> CliResult<()> {
        Ok(self.writer.flush()?)
    }

    /// Writes `text` and a line end.
    pub fn line(&mut self, text: impl AsRef<str>) -> CliResult<()> {
        self.writer.write_all(text.as_ref().as_bytes())?;
        Ok(self.writer.write_all(b"\n")?)
    }

    /// Writes `value` as JSON over several lines.
    pub fn json(&mut self, value: &impl serde::Serialize) -> CliResult<()> {
        serde_json::to_writer_pretty(&mut self.writer, value).map_err(io::Error::from)?;
        Ok(self.writer.write_all(b"\n")?)
    }

    /// Writes `value` as JSON on one line.
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> CliResult<()> {
        serde_json::to_writer(&mut self.writer, value).map_err(io::Error::from)?;
        Ok(self.writer.write_all(b"\n")?)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A file that appears under its name only when it is whole: written beside it, then renamed.
pub struct AtomicFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a file that will be `path`.
    pub fn create(path: &Path) -> CliResult<Self> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(CliError::usage_help(
                format!("cannot write {}: it is a directory", path.display()),
                "give the name of a file",
            ));
        }
        let file = NamedTempFile::with_prefix_in(".schedlab-", folder)
            .map_err(|error| CliError::file("create a file beside", path, &error))?;
        Ok(Self { path: path.into(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Makes the file appear under its name, with the rights that a new file gets.
    pub fn commit(self) -> CliResult<()> {
        let Self { path, file } = self;
        persist(file, &path).map_err(|error| CliError::file("write", &path, &error))
    }
}

impl Output for AtomicFile {
    fn commit(self: Box<Self>) -> io::Result<()> {
        persist(self.file, &self.path)
    }
}

fn persist(file: BufWriter<NamedTempFile>, path: &Path) -> io::Result<()> {
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    set_default_mode(&file)?;
    file.persist(path)?;
    Ok(())
}

/// Temporary files are made for their owner only; the finished one is a file like any other.
fn set_default_mode(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // The mask can only be read by setting it; a file made the usual way shows it as well.
    let probe = tempfile::Builder::new()
        .prefix(".schedlab-mode-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(file.path().parent().unwrap_or(Path::new(".")))?;
    let mode = probe.as_file().metadata()?.permissions();
    file.as_file().set_permissions(mode)
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Says something to the person at the terminal. Where nobody can be told (a full disk behind
/// stderr, a closed pipe) the work goes on: `eprintln!` would end it in a panic.
pub fn say(text: impl AsRef<str>) {
    let line = format!("{}\n", text.as_ref());
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Whether a person watches stderr, so that a progress bar makes sense.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_committed_never_appears() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_is_no_file() {
        assert!(AtomicFile::create(&std::env::temp_dir()).is_err());
    }
}
