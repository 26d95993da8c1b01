// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the recorder's BPF programs and generates their skeleton. Compiles the sched_ext
//! schedulers of bpf/scx, which become part of the library.
//!
//! Without clang the crate still builds: the cfg `schedlab_bpf` stays unset, the lane reads
//! /proc/PID/schedstat, and `doctor` names what is missing. `SCHEDLAB_CLANG` names a compiler;
//! otherwise the build uses the newest clang in PATH.

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
    match build_recorder().and_then(|()| build_schedulers()) {
        Ok(()) => println!("cargo::rustc-cfg=schedlab_bpf"),
        Err(why) => println!(
            "cargo::warning=schedlab-host is built WITHOUT BPF: {why}. Runs on this kernel will be \
             measured by /proc/PID/schedstat alone, and no sched_ext scheduler can be loaded."
        ),
    }
}

/// The requested compiler, or else the clang with the highest version in PATH.
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

/// Compiles every bpf/scx/NAME.bpf.c and writes the list of their objects.
#[cfg(feature = "bpf")]
fn build_schedulers() -> Result<(), String> {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let dir = Path::new("../../bpf/scx");
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".bpf.c")?.to_string()))
        .collect();
    names.sort();
    let mut list = String::from("pub const OBJECTS: &[(&str, &[u8])] = &[\n");
    for name in &names {
        let source = dir.join(format!("{name}.bpf.c"));
        let object = out_dir.join(format!("{name}.bpf.o"));
        libbpf_cargo::SkeletonBuilder::new()
            .source(&source)
            .obj(&object)
            .clang(clang()?)
            .clang_args(["-Wall", "-Werror", "-O2", "-mcpu=v3"])
            .build()
            .map_err(|error| format!("{}: {error:#}", source.display()))?;
        list += &format!("    ({name:?}, include_bytes!({:?})),\n", object.display().to_string());
    }
    list += "];\n";
    std::fs::write(out_dir.join("scx_objects.rs"), list).map_err(|error| error.to_string())
}
