// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles a scheduler's source with clang. The headers of libbpf and of bpf/scx are part of this
//! program, so `#include "scx.bpf.h"` works from any directory.

use crate::error::HostError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Headers of bpf/scx.
const OWN_HEADERS: &[(&str, &str)] = &[
    ("scx.bpf.h", include_str!("../../../../bpf/scx/scx.bpf.h")),
    ("queue.bpf.h", include_str!("../../../../bpf/scx/queue.bpf.h")),
    ("ranked.bpf.h", include_str!("../../../../bpf/scx/ranked.bpf.h")),
    ("background.bpf.h", include_str!("../../../../bpf/scx/background.bpf.h")),
    ("random.bpf.h", include_str!("../../../../bpf/scx/random.bpf.h")),
];
/// Lines of clang's errors that are shown.
const LINES_MAX: usize = 20;

/// Finds clang: the one in `SCHEDLAB_CLANG`, or else the newest one in PATH.
fn clang() -> Result<PathBuf, HostError> {
    if let Some(asked) = std::env::var_os("SCHEDLAB_CLANG") {
        return Ok(asked.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = (14..=30).rev().map(|version| format!("clang-{version}"));
    names
        .chain(["clang".into()])
        .flat_map(|name| {
            std::env::split_paths(&path).map(move |dir| dir.join(&name)).collect::<Vec<_>>()
        })
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            HostError::Unavailable(
                "a scheduler's source is compiled with clang, which is not installed (apt-get \
                 install clang-16); SCHEDLAB_CLANG names another"
                    .into(),
            )
        })
}

fn unpack(dir: &Path) -> std::io::Result<()> {
    for (name, text) in OWN_HEADERS {
        std::fs::write(dir.join(name), text)?;
    }
    std::fs::create_dir(dir.join("bpf"))?;
    for (name, text) in libbpf_rs::libbpf_sys::API_HEADERS {
        std::fs::write(dir.join("bpf").join(name), text)?;
    }
    Ok(())
}

/// Compiles `source` with clang. Returns the object.
pub(super) fn compile(source: &Path) -> Result<Vec<u8>, HostError> {
    if !source.is_file() {
        return Err(HostError::Input(format!("{}: there is no such file", source.display())));
    }
    let system = |what: &str| {
        let what = format!("{}: {what}", source.display());
        move |error: std::io::Error| HostError::System(format!("{what}: {error}"))
    };
    let dir = tempfile::tempdir().map_err(system("a directory for headers"))?;
    unpack(dir.path()).map_err(system("unpacking headers"))?;
    let object = dir.path().join("scheduler.bpf.o");
    let clang = clang()?;
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        arch => arch,
    };
    let output = Command::new(&clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-fno-stack-protector"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg("-I")
        .arg(dir.path())
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .map_err(system(&format!("running {}", clang.display())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().take(LINES_MAX).collect();
        return Err(HostError::Input(format!(
            "{}: {} refuses it:\n{}",
            source.display(),
            clang.file_name().unwrap_or_default().to_string_lossy(),
            lines.join("\n")
        )));
    }
    std::fs::read(&object).map_err(system("reading the object"))
}
