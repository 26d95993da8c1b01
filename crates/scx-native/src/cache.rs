// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache of compiled schedulers.
//!
//! An entry is identified by the source's contents, schedlab's headers, the compiler, its options
//! and its environment. It lists every header that the compiler read, with a hash of its contents,
//! and every place where the compiler would have found another one. If a header has changed or a
//! new one exists, the entry is invalid. An entry is code that will run, so it is valid only if it
//! and its directory belong to the user and nobody else may write them. A damaged entry is invalid
//! too. For an invalid entry the scheduler is compiled again and the entry is replaced.
//!
//! Not cached: output of a compiler that is not a program called clang (a script may start any
//! other); and sources that refer to the time or to files that the compiler does not list.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// First line of an entry. The number changes with the format.
const HEAD: &str = "schedlab native object 1";
/// Most entries that are kept. The least recently used is removed first.
const ENTRIES_MAX: usize = 512;
/// Longest entry: an object with its debug information is some 200 kB.
const ENTRY_BYTES_MAX: u64 = 16 << 20;
/// Words in a source whose object depends on more than the listed files.
const UNKEPT: [&str; 6] =
    ["__DATE__", "__TIME__", "__TIMESTAMP__", ".incbin", "#embed", "__has_include("];
/// Environment variables that change what clang reads.
const VARIABLES: [&str; 3] = ["CPATH", "C_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS"];

/// The bytes of a sum as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Identifies a compiler without starting it; `None`: it may be a script, or not clang.
fn identity(clang: &Path) -> Option<String> {
    let path = fs::canonicalize(clang).ok()?;
    path.file_name()?.to_str()?.strip_prefix("clang")?;
    let mut file = fs::File::open(&path).ok()?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).ok()?;
    let data = file.metadata().ok()?;
    let (inode, length) = (data.ino(), data.len());
    let (seconds, nanos) = (data.mtime(), data.mtime_nsec());
    (&magic == b"\x7fELF").then(|| format!("{path:?} {inode} {length} {seconds}.{nanos}"))
}

/// Everything that an object depends on, except headers.
#[derive(Clone, Debug)]
pub struct Made<'a> {
    /// The compiler.
    pub clang: &'a Path,
    /// Options, without directories that change between calls.
    pub flags: &'a [String],
    /// The source's path.
    pub source: &'a Path,
    /// The source's contents.
    pub contents: &'a [u8],
    /// The user's include directories, in order.
    pub includes: &'a [PathBuf],
    /// schedlab's own headers: path below one of their directories, and contents.
    pub headers: &'a [&'a [(&'a str, &'a str)]],
}

impl Made<'_> {
    fn key(&self) -> Option<String> {
        let mut text = format!("{HEAD}\n{}\n{:?}\n", identity(self.clang)?, self.flags);
        let here = std::env::current_dir().ok()?;
        let _ = write!(
            text,
            "{here:?} {:?} {:?}\n{}\n",
            self.source,
            self.includes,
            sum(self.contents)
        );
        for name in VARIABLES {
            let _ = writeln!(text, "{name} {:?}", std::env::var_os(name));
        }
        for (path, contents) in self.headers.iter().copied().flatten() {
            let _ = writeln!(text, "{path} {}", sum(contents.as_bytes()));
        }
        Some(sum(text.as_bytes()))
    }

    /// Every place where the compiler would look for one of the headers: below the directories of
    /// all files in `read`, in those of the user's headers, and in the compiler's working
    /// directory.
    fn places(&self, read: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let files = read.iter().map(PathBuf::as_path).chain([self.source]);
        let mut directories: BTreeSet<PathBuf> =
            files.filter_map(|path| Some(path.parent()?.to_owned())).collect();
        directories.extend(self.includes.iter().cloned());
        directories.insert(PathBuf::new());
        let mut names: BTreeSet<PathBuf> =
            self.headers.iter().copied().flatten().map(|(name, _)| PathBuf::from(name)).collect();
        for directory in &directories {
            names.extend(
                read.iter().filter_map(|path| Some(path.strip_prefix(directory).ok()?.into())),
            );
        }
        directories.iter().flat_map(|at| names.iter().map(move |name| at.join(name))).collect()
    }
}

/// The directory of the entries.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// The place of one object in the cache.
#[derive(Debug)]
pub struct Slot {
    directory: PathBuf,
    path: PathBuf,
}

impl Cache {
    /// The cache in `directory`, which is created if necessary; `None` if it does not exist or
    /// another user may write it.
    pub fn at(directory: &Path) -> Option<Self> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        let data = made.and_then(|()| fs::symlink_metadata(directory)).ok()?;
        (data.is_dir() && is_private(&data)).then(|| Self { directory: directory.to_owned() })
    }

    /// The place of this object; `None`: it is not cached.
    pub fn slot(&self, made: &Made<'_>) -> Option<Slot> {
        let path = self.directory.join(made.key().filter(|_| is_kept(made.contents))?);
        Some(Slot { directory: self.directory.clone(), path })
    }
}

/// Whether a file belongs to the user and only the user may write it.
fn is_private(data: &fs::Metadata) -> bool {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    data.uid() == unsafe { libc::geteuid() } && data.mode() & 0o022 == 0
}

fn is_kept(contents: &[u8]) -> bool {
    let text = String::from_utf8_lossy(contents);
    !UNKEPT.iter().any(|word| text.contains(word))
}

impl Slot {
    /// The object, if the cache has a valid one.
    pub fn find(&self) -> Option<Vec<u8>> {
        let file = fs::File::open(&self.path).ok()?;
        let data = file.metadata().ok()?;
        if !data.is_file() || !is_private(&data) || data.len() > ENTRY_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        (&file).take(ENTRY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let object = object_of(&bytes)?.to_vec();
        // Notes the use. If that fails, the object is used all the same.
        let _ = file.set_modified(SystemTime::now());
        Some(object)
    }

    /// Stores `object`. `rule`, a line for make, lists the files that the compiler read; those
    /// below `own` are schedlab's. Failures are ignored: the scheduler is then compiled again.
    pub fn keep(&self, made: &Made<'_>, rule: &str, own: &Path, object: &[u8]) {
        if let Some(entry) = entry(made, rule, own, object) {
            let _ = self.write(&entry);
        }
    }

    fn write(&self, entry: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.directory)?;
        file.write_all(entry)?;
        file.persist(&self.path)?;
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.directory)? {
            let found = found?;
            entries.push((found.metadata()?.modified()?, found.path()));
        }
        entries.sort();
        let nr_old = entries.len().saturating_sub(ENTRIES_MAX);
        entries[..nr_old].iter().try_for_each(|(_, path)| fs::remove_file(path))
    }
}

/// The bytes of an entry: its first line, the hash of all that follows, a line for each file that
/// was read and each place that was empty, and the object.
fn entry(made: &Made<'_>, rule: &str, own: &Path, object: &[u8]) -> Option<Vec<u8>> {
    let mut others = prerequisites(rule)?;
    others.retain(|path| !path.starts_with(own));
    let mut body = String::new();
    for path in others.iter().filter(|path| *path != made.source) {
        let contents = fs::read(path).ok().filter(|contents| is_kept(contents))?;
        let _ = writeln!(body, "read {} {}", sum(&contents), line_of(path)?);
    }
    for path in made.places(&others).iter().filter(|path| !path.exists()) {
        let _ = writeln!(body, "none {}", line_of(path)?);
    }
    let mut body = body.into_bytes();
    body.extend(b"object\n");
    body.extend(object);
    Some([format!("{HEAD}\n{}\n", sum(&body)).as_bytes(), &body].concat())
}

/// The path, if it can be written in a line.
fn line_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| !text.contains('\n'))
}

/// The object of an entry whose files have not changed.
fn object_of(entry: &[u8]) -> Option<&[u8]> {
    let rest = entry.strip_prefix(HEAD.as_bytes())?.strip_prefix(b"\n")?;
    let (sum_of_body, body) = rest.split_at_checked(64)?;
    let mut body = body.strip_prefix(b"\n")?;
    if sum(body).as_bytes() != sum_of_body {
        return None;
    }
    loop {
        let end = body.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&body[..end]).ok()?;
        body = &body[end + 1..];
        let as_it_was = match line.split_once(' ') {
            Some(("read", rest)) => {
                let (wanted, path) = rest.split_once(' ')?;
                fs::read(path).is_ok_and(|contents| sum(&contents) == wanted)
            }
            Some(("none", path)) => !Path::new(path).exists(),
            _ if line == "object" => return Some(body),
            _ => false,
        };
        if !as_it_was {
            return None;
        }
    }
}

/// The files in a rule for make, as written by `clang -MD`.
fn prerequisites(rule: &str) -> Option<BTreeSet<PathBuf>> {
    let (_, names) = rule.split_once(": ")?;
    let (mut all, mut name) = (BTreeSet::new(), String::new());
    let mut letters = names.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(' ' | '#')) | ('$', Some('$')) => name.extend(letters.next()),
            ('\\', Some('\n')) | (' ' | '\n', _) => {
                if !name.is_empty() {
                    all.insert(PathBuf::from(std::mem::take(&mut name)));
                }
            }
            _ => name.push(letter),
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_make_are_read() {
        let rule = "x.o: a.c /inc/b\\ c.h \\\n  d$$e.h f\\#g.h\n";
        let want = ["/inc/b c.h", "a.c", "d$e.h", "f#g.h"].map(PathBuf::from);
        assert_eq!(prerequisites(rule).unwrap().into_iter().collect::<Vec<_>>(), want);
        assert_eq!(prerequisites("nonsense"), None);
    }

    /// Every byte of an entry counts, and so does its length.
    #[test]
    fn a_damaged_entry_does_not_count() {
        let source = Path::new("x.c");
        let (flags, includes, headers) = (&[], &[], &[]);
        let made = Made { clang: source, flags, source, contents: b"", includes, headers };
        let entry = entry(&made, "x.o: x.c\n", Path::new("/own"), b"code").unwrap();
        assert_eq!(object_of(&entry), Some(&b"code"[..]));
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 1;
            assert_eq!(object_of(&damaged), None, "byte {at}");
            assert_eq!(object_of(&entry[..at]), None, "first {at} bytes");
        }
    }

    #[test]
    fn a_cache_that_others_may_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        assert!(Cache::at(&path).is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Cache::at(&path).is_none());
    }

    #[test]
    fn the_cache_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_owned();
        for number in 0..ENTRIES_MAX + 5 {
            let path = directory.join(number.to_string());
            Slot { directory: directory.clone(), path }.write(b"x").unwrap();
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), ENTRIES_MAX);
        assert!(directory.join((ENTRIES_MAX + 4).to_string()).exists());
    }
}
