// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes a sum over the sources that decide a simulated run's result: engine, models, workloads,
//! measures, and the code from a request to its result.
//!
//! The sum is part of the identity of a stored result, so stale results are never reused after a
//! model changes. If the other crates' sources are missing, they cannot change, and the version is
//! enough.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files and directories, relative to this crate.
const SOURCES: [&str; 12] = [
    "../model/src",
    "../workload/src",
    "../sched/src",
    "../engine/src",
    "../metrics/src",
    "../scx/src",
    "../scx-native/src",
    "../scx-native/include",
    "../run/src",
    "../core/src",
    "../sim/src",
    "../../machines",
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    for source in SOURCES.map(Path::new).iter().filter(|source| source.exists()) {
        println!("cargo::rerun-if-changed={}", source.display());
        gather(source, &mut files)?;
    }
    files.sort();
    let mut sum = Sha256::new();
    for file in files {
        let text = fs::read(&file)?;
        sum.update(format!("{} {}\n", file.display(), text.len()));
        sum.update(text);
    }
    let mut digits = String::new();
    for byte in &sum.finalize()[..8] {
        let _ = write!(digits, "{byte:02x}");
    }
    println!("cargo::rustc-env=SCHEDLAB_MODELS={digits}");
    Ok(())
}

/// Collects the files below `path`, at all levels.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        gather(&entry?.path(), files)?;
    }
    Ok(())
}
