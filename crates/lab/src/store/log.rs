// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores results on disk, run by run, so that a sweep can stop at any moment and resume.
//!
//! One file, one line for each run: `{"key":"K","sha256":"S","result":R}` and a line feed, where K
//! is the run's key and S the sum of the bytes R. A single call writes each line after the last
//! complete one. A process killed in the middle leaves an incomplete line, or one with a wrong sum:
//! such lines are not results. Before writing more, the log truncates the file after the last
//! complete line. It skips damaged lines before that, and their runs run again.
//!
//! When every run is stored, [`RunLog::sort`] rewrites the lines in the plan's order. So the
//! finished file does not depend on the order, the number of threads or the number of parts in
//! which it was made. The directory is locked while it is written.

use schedlab_run::RunResult;
use schedlab_run::file::AtomicFile;
use schedlab_run::sha::sha256;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Name of the file in its directory.
pub const LOG_NAME: &str = "runs.jsonl";

const KEY: &str = "{\"key\":\"";
const SUM: &str = "\",\"sha256\":\"";
const RESULT: &str = "\",\"result\":";
const HASH_LEN: usize = 64;
const HEAD_LEN: usize = KEY.len() + HASH_LEN + SUM.len() + HASH_LEN + RESULT.len();

/// Locks a directory for the lifetime of the file; `None` if another process holds the lock.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = File::open(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The log of a directory.
#[derive(Debug)]
pub struct RunLog {
    path: PathBuf,
    file: File,
    /// Offset and length of each run's line.
    lines: BTreeMap<String, (u64, u64)>,
    /// Offset of the next line.
    end: u64,
    nr_damaged: u64,
}

impl RunLog {
    /// Opens the log in `folder`, creates it if needed, and finds its complete lines.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(LOG_NAME);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let mut log = Self { path, file, lines: BTreeMap::new(), end: 0, nr_damaged: 0 };
        log.scan()?;
        Ok(log)
    }

    fn scan(&mut self) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = Vec::new();
        let mut offset = 0;
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') {
                break;
            }
            match parts(&line[..line.len() - 1]) {
                Some((key, _)) => {
                    self.lines.entry(key.to_string()).or_insert((offset, length));
                }
                None => self.nr_damaged += 1,
            }
            offset += length;
        }
        self.end = offset;
        Ok(())
    }

    /// Whether a run is stored.
    pub fn contains(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Number of stored runs.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no run is stored.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Number of damaged lines.
    pub fn nr_damaged(&self) -> u64 {
        self.nr_damaged
    }

    /// Stores a run. After an error the file holds nothing of it.
    pub fn append(&mut self, key: &str, run: &RunResult) -> io::Result<()> {
        let result = serde_json::to_vec(run)?;
        let mut line = Vec::with_capacity(HEAD_LEN + result.len() + 2);
        for part in [KEY, key, SUM, &sha256(&result), RESULT] {
            line.extend_from_slice(part.as_bytes());
        }
        line.extend_from_slice(&result);
        line.extend_from_slice(b"}\n");
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(&line) {
            // A full disk takes a part of the line. The reader would skip it, but it is useless.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.lines.insert(key.to_string(), (self.end, line.len() as u64));
        self.end += line.len() as u64;
        Ok(())
    }

    /// Reads a run back.
    pub fn read(&mut self, key: &str) -> io::Result<RunResult> {
        let line = self.line(key)?;
        let (_, result) = line.strip_suffix(b"\n").and_then(parts).ok_or_else(damaged)?;
        Ok(serde_json::from_slice(result)?)
    }

    fn line(&mut self, key: &str) -> io::Result<Vec<u8>> {
        let (offset, length) = *self.lines.get(key).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no run {key}"))
        })?;
        let mut line = vec![0; length as usize];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut line)?;
        Ok(line)
    }

    /// Rewrites the file with the lines of only these keys, in their order; skips unknown keys. The
    /// file is replaced atomically, or stays as it was.
    pub fn sort<'k>(&mut self, keys: impl Iterator<Item = &'k str>) -> io::Result<()> {
        let mut file = AtomicFile::create(&self.path)?;
        for key in keys {
            if self.contains(key) {
                file.write_all(&self.line(key)?)?;
            }
        }
        file.sync()?;
        file.commit()?;
        let nr_damaged = self.nr_damaged;
        let sorted = Self::open(self.path.parent().unwrap_or(Path::new(".")))?;
        *self = Self { nr_damaged, ..sorted };
        Ok(())
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the stored run is damaged")
}

/// Key and result of a complete line (without its line feed); `None` if anything does not match.
fn parts(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(KEY.as_bytes())?;
    let (key, rest) = rest.split_at_checked(HASH_LEN)?;
    let (sum, rest) = rest.strip_prefix(SUM.as_bytes())?.split_at_checked(HASH_LEN)?;
    let result = rest.strip_prefix(RESULT.as_bytes())?.strip_suffix(b"}")?;
    (sha256(result).as_bytes() == sum).then_some((std::str::from_utf8(key).ok()?, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u64) -> String {
        format!("{index:064}")
    }

    fn run(seed: u64) -> RunResult {
        let mut run = RunResult { seed, ..Default::default() };
        run.measures.totals.throughput_per_s = Some(1.0 / (seed as f64 + 3.0));
        run
    }

    fn filled(folder: &Path, seeds: &[u64]) -> RunLog {
        let mut log = RunLog::open(folder).unwrap();
        for seed in seeds {
            log.append(&key(*seed), &run(*seed)).unwrap();
        }
        log
    }

    #[test]
    fn what_was_stored_is_read_back_bit_by_bit() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path(), &(0..50).collect::<Vec<_>>());
        let mut log = RunLog::open(folder.path()).unwrap();
        for seed in 0..50 {
            assert_eq!(log.read(&key(seed)).unwrap(), run(seed));
        }
        assert!(log.read(&key(99)).is_err());
    }

    /// After a kill at any byte, the complete lines before it are present and the log can continue.
    #[test]
    fn a_log_cut_at_any_byte_keeps_its_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path(), &[0, 1]);
        let path = folder.path().join(LOG_NAME);
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in (0..whole.len()).step_by(37).chain([first - 1, first, whole.len()]) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut log = RunLog::open(folder.path()).unwrap();
            let stored = usize::from(cut >= first) + usize::from(cut == whole.len());
            assert_eq!(log.len(), stored, "cut at {cut}");
            log.append(&key(7), &run(7)).unwrap();
            let mut again = RunLog::open(folder.path()).unwrap();
            assert_eq!((again.len(), again.nr_damaged()), (stored + 1, 0), "cut at {cut}");
            assert_eq!(again.read(&key(7)).unwrap(), run(7));
        }
    }

    #[test]
    fn a_line_with_any_byte_changed_is_no_result() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path(), &[0, 1, 2]);
        let path = folder.path().join(LOG_NAME);
        let whole = std::fs::read(&path).unwrap();
        let start = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let sum = start + KEY.len() + HASH_LEN + SUM.len();
        for at in [start, start + 3, sum, sum + 63, start + HEAD_LEN, start + HEAD_LEN + 40] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let log = RunLog::open(folder.path()).unwrap();
            assert!(!log.contains(&key(1)) && log.contains(&key(2)), "byte {at}");
            assert_eq!(log.nr_damaged(), 1);
        }
    }

    #[test]
    fn the_order_of_a_sorted_log_is_the_plans() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let keys = [key(0), key(1), key(2)];
        let mut log = filled(folder.path(), &[2, 0, 5, 1]);
        log.sort(keys.iter().map(String::as_str)).unwrap();
        assert_eq!(log.read(&key(1)).unwrap(), run(1));
        log.append(&key(3), &run(3)).unwrap();
        filled(other.path(), &[0, 1, 2, 3]);
        let read = |folder: &Path| std::fs::read(folder.join(LOG_NAME)).unwrap();
        assert_eq!(read(folder.path()), read(other.path()));
    }

    #[test]
    fn a_directory_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        assert!(first.is_some());
        assert!(lock(folder.path()).unwrap().is_none());
        drop(first);
        assert!(lock(folder.path()).unwrap().is_some());
    }
}
