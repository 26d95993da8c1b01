// SPDX-License-Identifier: MIT OR Apache-2.0
//! The licenses of the crates that the program and the guest contain, for packages: most of them
//! ask that their text goes with every copy.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Programs that are packed.
const PROGRAMS: [&str; 2] = ["schedlab", "schedlab-guest"];

/// What the packed programs contain.
pub fn text(root: &Path) -> Result<String, String> {
    of(root, &PROGRAMS, &triple()?)
}

/// Each crate that `programs` contain when they are built for `triple`, with its license; then each
/// text once, with the crates that it belongs to.
pub fn of(root: &Path, programs: &[&str], triple: &str) -> Result<String, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", triple])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let contained = contained(&metadata, programs);
    let mut text = String::new();
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages.filter(|package| contained.contains(string(&package["id"]))) {
        // Crates of this repository come from no registry; their license is at the top.
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", string(&package["name"]), string(&package["version"]));
        let license = package["license"].as_str().unwrap_or("see its text below");
        let _ = writeln!(text, "{name:<32} {license}");
        for file in license_files(Path::new(string(&package["manifest_path"]))) {
            files.entry(file).or_default().push(name.clone());
        }
    }
    for (license, crates) in files {
        let _ = write!(text, "\n{}\n{}:\n\n{license}\n", "-".repeat(80), crates.join(", "));
    }
    Ok(text)
}

/// What this machine's compiler builds for: crates of other systems are not in the programs.
fn triple() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(Into::into).ok_or_else(|| "rustc names no host".into())
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Ids of the packages that the programs link: dependencies that are neither of tests alone nor of
/// builds alone.
fn contained<'m>(metadata: &'m Value, programs: &[&str]) -> BTreeSet<&'m str> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (string(&node["id"]), node)).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let programs = packages.filter(|package| programs.contains(&string(&package["name"])));
    let mut waiting: Vec<&str> = programs.map(|package| string(&package["id"])).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array());
        for dependency in dependencies.into_iter().flatten() {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null()) {
                waiting.push(string(&dependency["pkg"]));
            }
        }
    }
    found
}

/// The texts of the license files in the manifest's directory, in order of their names.
fn license_files(manifest: &Path) -> Vec<String> {
    let entries = manifest.parent().and_then(|dir| std::fs::read_dir(dir).ok());
    let mut paths: Vec<_> = entries.into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    let is_license = |path: &&std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| name.starts_with(start))
    };
    let texts =
        paths.iter().filter(is_license).filter_map(|path| std::fs::read_to_string(path).ok());
    texts.map(|text| text.trim().replace("\r\n", "\n")).filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linked_crate_is_named_with_a_license() {
        let text = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        let (list, _) = text.split_once("\n-----").unwrap();
        for name in ["clap ", "parquet ", "libbpf-rs ", "borsh "] {
            let line = list.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            assert!(
                line.contains("MIT") || line.contains("Apache") || line.contains("BSD"),
                "{name}{line}"
            );
        }
        for name in ["insta ", "proptest ", "libbpf-cargo ", "schedlab"] {
            assert!(!list.lines().any(|line| line.starts_with(name)), "{name} is not linked");
        }
        assert!(text.contains("Permission is hereby granted, free of charge"));
    }
}
