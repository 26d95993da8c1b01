// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which headers and further sources belong to a scheduler's file.
//!
//! Three trees hold such files. The kernel has tools/sched_ext with `include` beside its examples.
//! The scx repository has `scheds/include` several directories above each scheduler. The scx
//! packages of the Rust registry list the further sources of a scheduler in their `build.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// The header by which a directory of headers for sched_ext is known.
const MARK: &str = "scx/common.bpf.h";
/// A header that only the simulator's own directory has, which is searched anyway.
const OWN_MARK: &str = "schedlab/prelude.h";
/// Names of such directories.
const INCLUDE_NAMES: [&str; 2] = ["include", "bpf_h"];
/// Directories above a source that are searched for headers; in the scx repository they are six
/// above.
const LEVELS_MAX: usize = 8;
/// Directories above a source in which its `build.rs` may be: `src/bpf` is below that one.
const BUILD_LEVELS_MAX: usize = 4;

/// How a scheduler's source is compiled, beside what is found next to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceOptions {
    /// Include directories, searched first.
    pub include: Vec<PathBuf>,
    /// Further source files.
    pub sources: Vec<PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
}

/// Checks a macro given as `NAME` or `NAME=VALUE`.
///
/// # Errors
/// The text is neither.
pub fn check_define(text: &str) -> Result<String, String> {
    let name = text.split('=').next().unwrap_or_default();
    let mut letters = name.chars();
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_name = letters.next().is_some_and(is_first)
        && letters.all(|letter| is_first(letter) || letter.is_ascii_digit());
    if is_name { Ok(text.to_owned()) } else { Err(format!("{text:?} is not NAME or NAME=VALUE")) }
}

/// The directories from that of `source` upwards.
fn above(source: &Path, levels: usize) -> Vec<PathBuf> {
    let parent = match source.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    parent.ancestors().take(levels + 1).map(Path::to_owned).collect()
}

impl SourceOptions {
    /// The include directories of `source`: those given, then the nearest one with headers for
    /// sched_ext, in the directory of the source or above it.
    pub fn include_dirs(&self, source: &Path) -> Vec<PathBuf> {
        let mut dirs = self.include.clone();
        let found = above(source, LEVELS_MAX).into_iter().find_map(|directory| {
            let names = INCLUDE_NAMES.iter().map(|name| directory.join(name));
            names.into_iter().find(|candidate| {
                candidate.join(MARK).is_file() && !candidate.join(OWN_MARK).is_file()
            })
        });
        dirs.extend(found.filter(|directory| !dirs.contains(directory)));
        dirs
    }

    /// The further sources of `source`: those given, then those that a `build.rs` above it links to
    /// it.
    pub fn further_sources(&self, source: &Path) -> Vec<PathBuf> {
        let mut all = self.sources.clone();
        for found in built_with(source) {
            if !all.contains(&found) {
                all.push(found);
            }
        }
        all
    }
}

/// The sources that are built together with `source`, in order of their names: `.add_source("...")`
/// in a `build.rs` whose `.enable_skel("...")` names it.
fn built_with(source: &Path) -> Vec<PathBuf> {
    let Ok(own) = fs::canonicalize(source) else { return Vec::new() };
    for directory in above(source, BUILD_LEVELS_MAX) {
        let Ok(text) = fs::read_to_string(directory.join("build.rs")) else { continue };
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let named = |call: &str| -> Vec<PathBuf> {
            let parts = code.split(call).skip(1);
            let names =
                parts.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
            names.filter_map(|name| fs::canonicalize(directory.join(name)).ok()).collect()
        };
        if named(".enable_skel(").contains(&own) {
            let mut others = named(".add_source(");
            others.sort();
            others.dedup();
            others.retain(|other| *other != own);
            return others;
        }
    }
    Vec::new()
}

/// The setup next to `NAME.bpf.c`, if there is one: `NAME.setup.toml`.
pub fn setup_next_to(source: &Path) -> Option<PathBuf> {
    let name = source.file_name()?.to_str()?;
    let path = source.with_file_name(format!("{}.setup.toml", name.strip_suffix(".bpf.c")?));
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) -> PathBuf {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn the_nearest_directory_of_headers_above_a_source_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let source = write(&root, "scheds/rust/x/src/bpf/main.bpf.c", "");
        let given = root.join("given");
        let options = SourceOptions { include: vec![given.clone()], ..SourceOptions::default() };
        write(&root, "scheds/rust/x/include/other.h", "");
        assert_eq!(options.include_dirs(&source), std::slice::from_ref(&given));
        write(&root, "scheds/include/scx/common.bpf.h", "");
        assert_eq!(options.include_dirs(&source), [given.clone(), root.join("scheds/include")]);
        write(&root, "scheds/rust/x/src/bpf/include/scx/common.bpf.h", "");
        let near = root.join("scheds/rust/x/src/bpf/include");
        assert_eq!(options.include_dirs(&source), [given, near]);
    }

    #[test]
    fn sources_of_a_build_are_linked_to_the_file_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let main = write(&root, "src/bpf/main.bpf.c", "");
        let (b, a) = (write(&root, "src/bpf/b.bpf.c", ""), write(&root, "src/bpf/lib/a.bpf.c", ""));
        let build = "fn main() {\n    Builder::new()\n        .enable_skel(\"src/bpf/main.bpf.c\", \
                     \"bpf\")\n        .add_source(\"src/bpf/lib/a.bpf.c\")\n        \
                     .add_source(\n            \"src/bpf/b.bpf.c\")\n        \
                     // .add_source(\"src/bpf/c.bpf.c\")\n        .build();\n}\n";
        write(&root, "build.rs", build);
        write(&root, "src/bpf/c.bpf.c", "");
        let options = SourceOptions::default();
        assert_eq!(options.further_sources(&main), [b.clone(), a]);
        assert_eq!(options.further_sources(&b), Vec::<PathBuf>::new());
    }

    #[test]
    fn macros_have_a_name_and_perhaps_a_value() {
        for good in ["X", "_a1", "X=", "X=1 + 2", "X=a=b"] {
            assert_eq!(check_define(good).as_deref(), Ok(good));
        }
        for bad in ["", "1X", "=1", "a b", "-DX"] {
            assert!(check_define(bad).unwrap_err().contains("NAME=VALUE"), "{bad}");
        }
    }
}
