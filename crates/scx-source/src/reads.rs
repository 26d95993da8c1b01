// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files a compilation may read, found without a compiler: a source that does not compile has
//! them too.

use super::files::SourceOptions;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most files that are followed.
const FILES_MAX: usize = 4_096;
/// Longest part of a file that is read.
const BYTES_MAX: u64 = 4 << 20;

impl SourceOptions {
    /// The files of the user that compiling `source` may read: itself, its further sources, their
    /// headers, and the headers of those. Every `#include` counts, whatever the preprocessor makes
    /// of the lines around it. A header that is found nowhere gives the places where it would be
    /// found, so that a caller sees it appear; one that comes with the compiler gives none.
    pub fn files_read(&self, source: &Path) -> BTreeSet<PathBuf> {
        let dirs = self.include_dirs(source);
        let mut waiting = vec![source.to_owned()];
        waiting.extend(self.further_sources(source));
        let mut all = BTreeSet::new();
        while let Some(path) = waiting.pop() {
            if all.len() >= FILES_MAX || !all.insert(path.clone()) {
                continue;
            }
            let parent = path.parent().unwrap_or(Path::new(""));
            for (name, is_quoted) in included(&text_of(&path)) {
                let own = is_quoted.then_some(parent);
                let places = own.into_iter().chain(dirs.iter().map(PathBuf::as_path));
                let places: Vec<PathBuf> = places.map(|place| place.join(&name)).collect();
                match places.iter().find(|place| place.is_file()) {
                    Some(found) => waiting.push(found.clone()),
                    None if is_quoted => all.extend(places),
                    None => {}
                }
            }
        }
        all
    }
}

/// The beginning of a file; empty if it cannot be read.
fn text_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    // A pipe or a device would not end.
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        // What was read before an error is as good as nothing.
        let _ = file.take(BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The names in `#include` lines, and whether each is in quotes.
fn included(text: &str) -> Vec<(String, bool)> {
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let (end, is_quoted) = match rest.chars().next()? {
            '"' => ('"', true),
            '<' => ('>', false),
            _ => return None,
        };
        let (name, _) = rest[1..].split_once(end)?;
        Some((name.to_owned(), is_quoted))
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn headers_of_headers_are_found_and_missing_ones_have_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let source = write(
            "my.bpf.c",
            "#include <scx/common.bpf.h>\n  #  include \"own.h\"\n#include <more.h>\n#include X\n\
             // #include \"no.h\"\nint broken(\n",
        );
        let own = write("own.h", "#include \"own.h\"\n#include \"sub/deep.h\"\n");
        let deep = write("sub/deep.h", "#include \"gone.h\"\n");
        let more = write("extra/more.h", "");
        let extra = root.join("extra");
        let options = SourceOptions { include: vec![extra.clone()], ..SourceOptions::default() };
        let wanted =
            [source.clone(), own, deep, more, root.join("sub/gone.h"), extra.join("gone.h")];
        assert_eq!(options.files_read(&source), BTreeSet::from(wanted));
        let missing = root.join("none.bpf.c");
        assert_eq!(options.files_read(&missing), BTreeSet::from([missing]));
    }
}
