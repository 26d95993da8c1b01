// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers for sched_ext, as far as tests can check them on a kernel without it: the objects'
//! descriptions, and refusals with their messages.
#![cfg(target_os = "linux")]

use schedlab_host::HostError;
use schedlab_host::ext::{self, Build, Description, OptionKind, Source, builtin};
use std::path::Path;

/// A description; `None` in a build without clang, in which the test is skipped.
fn description(name: &str) -> Option<Description> {
    match ext::describe(&Source::parse(name), &Build::default()) {
        Ok(description) => Some(description),
        Err(HostError::Unavailable(why)) => {
            schedlab_testing::skip(why);
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

fn error_of(source: &Source, settings: &[(&str, &str)]) -> HostError {
    let settings: Vec<(String, String)> =
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    match ext::load(source, &Build::default(), &settings, None) {
        Err(error) => error,
        Ok(loaded) => panic!("{} was loaded", loaded.name()),
    }
}

#[test]
fn every_builtin_describes_itself() {
    for scheduler in builtin::SCHEDULERS {
        let Some(description) = description(scheduler.name) else { return };
        // The kernel does not allow a dash in a name.
        assert_eq!(description.name, scheduler.name.replace('-', "_"));
        assert!(!description.options.is_empty());
        for option in &description.options {
            assert!(!option.text.is_empty(), "{}: {}", scheduler.name, option.name);
            assert!(option.least <= option.default && option.default <= option.most);
        }
        assert!(description.options.iter().any(|option| option.name == "tick_ns"));
        assert!(description.counters.iter().any(|counter| counter.name == "nr_picked"));
        for counter in &description.counters {
            assert!(!counter.text.is_empty(), "{}: {}", scheduler.name, counter.name);
            let unit = counter.name.ends_with("_ns") || counter.name.starts_with("nr_");
            assert!(unit, "{}: no unit in {}", scheduler.name, counter.name);
        }
    }
}

#[test]
fn every_source_is_in_the_list() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx");
    let names = std::fs::read_dir(dir).unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str()?.strip_suffix(".bpf.c").map(str::to_string)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    let mut listed: Vec<&str> = builtin::SCHEDULERS.iter().map(|known| known.name).collect();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn times_have_their_ranges() {
    let Some(rr) = description("rr") else { return };
    let quantum = rr.options.iter().find(|option| option.name == "quantum_ns").unwrap();
    assert_eq!(quantum.kind, OptionKind::Time);
    assert_eq!((quantum.least, quantum.most), (100_000, 3_600_000_000_000));
    assert_eq!(quantum.show(quantum.default), "100ms");
    assert_eq!(quantum.alias, "slice");
}

#[test]
fn wrong_options_are_refused_on_every_machine() {
    let rr = Source::parse("rr");
    if description("rr").is_none() {
        return;
    }
    for (settings, words) in [
        (("slize_ms", "50"), "rr has no option \"slize_ms\"; it has"),
        (("slice_ms", "99999999999"), "outside of 100us..3600s"),
        (("quantum", "50"), "has no unit"),
    ] {
        let error = error_of(&rr, &[settings]);
        assert!(matches!(&error, HostError::Input(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_kernel_without_sched_ext_is_named() {
    if ext::kernel_state().is_none() {
        let error = error_of(&Source::parse("rr"), &[("slice_ms", "50")]).to_string();
        assert!(error.contains("has no sched_ext") && error.contains("6.12"), "{error}");
    }
}

#[test]
fn files_that_are_no_schedulers_are_refused() {
    if description("rr").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let try_file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = error_of(&Source::File(path), &[]);
        assert!(matches!(&error, HostError::Input(_)), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        error.to_string()
    };
    assert!(try_file("text.o", b"no object").contains("no BPF object"));
    assert!(try_file("empty.o", b"").contains("no BPF object"));
    assert!(try_file("bad.bpf.c", b"int main(").contains("refuses it"));
    // A BPF object without a scheduler.
    let none = b"#include \"scx.bpf.h\"\nint x SEC(\".data\") = 1;\n";
    assert!(try_file("none.bpf.c", none).contains("0 struct_ops maps"));
    let error = error_of(&Source::parse("./no-such-file.bpf.c"), &[]).to_string();
    assert!(error.contains("no such file"), "{error}");
    let error = error_of(&Source::parse("./no-such-file.bpf.o"), &[]).to_string();
    assert!(error.contains("no-such-file.bpf.o"), "{error}");
}

#[test]
fn truncated_objects_never_panic() {
    let Ok(object) = ext::object(&Source::parse("rr"), &Build::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.bpf.o");
    for part in 1..40 {
        std::fs::write(&path, &object[..object.len() * part / 40]).unwrap();
        let _ = ext::describe(&Source::File(path.clone()), &Build::default());
    }
}

#[test]
fn an_own_source_is_compiled_with_the_headers_of_the_program() {
    if description("rr").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.bpf.c");
    let rr =
        include_str!("../../../bpf/scx/rr.bpf.c").replace(".name = \"rr\"", ".name = \"mine\"");
    std::fs::write(&path, rr).unwrap();
    let mine = ext::describe(&Source::File(path), &Build::default()).unwrap();
    assert_eq!(mine.name, "mine");
    assert_eq!(mine.options, description("rr").unwrap().options);
}

#[test]
fn the_schedulers_made_to_fail_are_whole_objects() {
    if description("rr").is_none() {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx/bad");
    for entry in std::fs::read_dir(&dir).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".bpf.c").unwrap();
        let source = Source::File(dir.join(format!("{name}.bpf.c")));
        let description =
            ext::describe(&source, &Build::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(description.name, name.replace('-', "_"));
    }
}

#[test]
fn the_scheduler_of_the_guide_is_whole() {
    if description("rr").is_none() {
        return;
    }
    let guide = include_str!("../../../docs/guide/write-a-scheduler.md");
    let (_, rest) = guide.split_once("```c\n").unwrap();
    let (source, _) = rest.split_once("```\n").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("least-run.bpf.c");
    std::fs::write(&path, source).unwrap();
    let description = ext::describe(&Source::File(path), &Build::default()).unwrap();
    assert_eq!(description.name, "least_run");
    assert!(description.options.iter().any(|option| option.name == "slice_ns"));
    assert!(description.counters.iter().any(|counter| counter.name == "nr_newcomers"));
}
