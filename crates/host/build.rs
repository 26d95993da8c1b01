// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the recorder's BPF programs and generates their skeleton.
//!
//! Without clang the crate still builds: the cfg `schedlab_bpf` stays unset, the lane then reads
//! /proc/PID/schedstat, and `doctor` says what is missing. `SCHEDLAB_CLANG` names a compiler;
//! otherwise the newest clang found in PATH is taken.

use std::env;
#[cfg(feature = "bpf")]
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(schedlab_bpf)");
    println!("cargo::rerun-if-env-changed=SCHEDLAB_CLANG");
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    #[cfg(feature = "bpf")]
    match build_recorder() {
        Ok(()) => println!("cargo::rustc-cfg=schedlab_bpf"),
        Err(why) => println!(
            "cargo::warning=schedlab-host is built WITHOUT the BPF recorder: {why}. \
             Runs on this kernel will be measured by /proc/PID/schedstat alone."
        ),
    }
}

/// The compiler: the one asked for, or clang with the highest version in PATH.
#[cfg(feature = "bpf")]
fn clang() -> Result<PathBuf, String> {
    if let Some(asked) = env::var_os("SCHEDLAB_CLANG") {
        return Ok(asked.into());
    }
    let names = (14..=30).rev().map(|version| format!("clang-{version}"));
    let mut names: Vec<String> = names.collect();
    names.push("clang".into());
    let dirs: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    names
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| "clang is not installed (apt-get install clang-16)".into())
}

#[cfg(feature = "bpf")]
fn build_recorder() -> Result<(), String> {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let source = Path::new("../../bpf/recorder.bpf.c");
    libbpf_cargo::SkeletonBuilder::new()
        .source(source)
        .clang(clang()?)
        .clang_args(["-Wall", "-Werror", "-O2", "-mcpu=v3"])
        .build_and_generate(out_dir.join("recorder.skel.rs"))
        .map_err(|error| format!("{}: {error:#}", source.display()))
}
