// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures on the pages about schedulers equal what their commands draw now.

mod common;
use common::schedlab_in;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn each_command_draws_the_stored_figure() {
    let folder = root().join("docs/images/schedulers");
    let list = std::fs::read_to_string(folder.join("figures.json")).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut differ = Vec::new();
    for figure in list.as_array().unwrap() {
        let command = figure["command"].as_str().unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        let (name, rest) = words.split_first().unwrap();
        let (plots, args) = rest.split_last().unwrap();
        assert_eq!((*name, *plots), ("schedlab", "plots"), "{command}");
        let made = tempfile::tempdir().unwrap();
        let run = schedlab_in(&root(), &[args, &[made.path().to_str().unwrap()]].concat());
        assert_eq!(run.code, 0, "{command}: {}", run.stderr);
        let entries = std::fs::read_dir(made.path()).unwrap();
        let mut svgs = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with("-timeline.svg"));
        let svg = std::fs::read_to_string(svgs.next().expect("a timeline")).unwrap();
        let file = figure["file"].as_str().unwrap();
        let stored = std::fs::read_to_string(folder.join(file)).unwrap();
        if stored.trim_end() != svg.trim_end() {
            differ.push(file);
        }
    }
    assert!(differ.is_empty(), "not what is drawn now: {differ:?}; `cargo xtask figures`");
}
