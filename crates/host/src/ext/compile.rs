// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles a scheduler's source for a kernel with clang, and links it with its further sources.
//!
//! Its headers, sources and macros are found by the rules of the simulator's compiler
//! (`schedlab_scx_source`). The headers of libbpf and of bpf/scx are part of this program, so
//! `#include "scx.bpf.h"` works from any directory. `vmlinux.h` is made from the kernel's types.

use super::{Build, link, vmlinux};
use crate::error::HostError;
use schedlab_scx_source::{SHARED_HEADERS, SYSTEM_HEADERS, advice_on_headers, find_clang};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of clang's errors that are shown.
const LINES_MAX: usize = 20;

/// The C library's headers stay out, as with `-ffreestanding`. That option itself would also keep
/// clang from expanding its builtins (`__builtin_memcmp`) into instructions, and leave calls of
/// functions that BPF does not have.
const NO_LIBRARY: [&str; 3] =
    ["-Wno-builtin-macro-redefined", "-U__STDC_HOSTED__", "-D__STDC_HOSTED__=0"];

/// The kernel's header, which is made for the kernel that is to load the scheduler.
const VMLINUX: &str = "vmlinux.h";
/// The header for sched_ext that includes it.
const COMMON: &str = "scx/common.bpf.h";

fn unpack(dir: &Path) -> std::io::Result<()> {
    let libbpf = libbpf_rs::libbpf_sys::API_HEADERS.iter();
    let libbpf = libbpf.map(|(name, text)| (Path::new("bpf").join(name), *text));
    let own = SHARED_HEADERS.iter().chain(SYSTEM_HEADERS);
    for (name, text) in own.map(|(name, text)| (PathBuf::from(name), *text)).chain(libbpf) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn system(source: &Path, what: &str) -> impl FnOnce(std::io::Error) -> HostError {
    let what = format!("{}: {what}", source.display());
    move |error| HostError::System(format!("{what}: {error}"))
}

/// Whether a source uses the kernel's types by their names: it includes the header, or headers for
/// sched_ext, which do. Headers for sched_ext that were found with the source may also be included
/// by another of its headers.
fn needs_types(source: &Path, includes: &[PathBuf]) -> bool {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let has = |name: &'static str| move |directory: &PathBuf| directory.join(name).is_file();
    let is_named = text.contains(VMLINUX) || text.contains(COMMON);
    (is_named || includes.iter().any(has(COMMON))) && !includes.iter().any(has(VMLINUX))
}

/// Compiles `source` and the sources that belong to it. Returns the object.
pub(super) fn compile(source: &Path, build: &Build) -> Result<Vec<u8>, HostError> {
    let further = build.source.further_sources(source);
    for path in further.iter().map(PathBuf::as_path).chain([source]) {
        if !path.is_file() {
            return Err(HostError::Input(format!("{}: there is no such file", path.display())));
        }
    }
    let dir = tempfile::tempdir().map_err(system(source, "a directory for headers"))?;
    let last = dir.path().join("last");
    unpack(&last).map_err(system(source, "unpacking headers"))?;
    let mut includes = build.source.include_dirs(source);
    if needs_types(source, &includes) {
        let text = vmlinux::header(&build.types)?;
        std::fs::write(last.join(VMLINUX), text).map_err(system(source, "writing vmlinux.h"))?;
    }
    // The directory has another name each time, and debug information has names of files.
    let map = format!("-ffile-prefix-map={}=schedlab", last.display());
    includes.push(last);
    let clang = find_clang().map_err(HostError::Unavailable)?;
    let job = Job { clang, includes, map, defines: &build.source.defines };
    let mut objects = Vec::new();
    for (number, file) in
        [source].into_iter().chain(further.iter().map(PathBuf::as_path)).enumerate()
    {
        let object = dir.path().join(format!("{number}.bpf.o"));
        job.compile(file, &object)?;
        objects.push(object);
    }
    let linked = match &objects[..] {
        [only] => only.clone(),
        several => {
            let linked = dir.path().join("linked.bpf.o");
            link::link(several, &linked)
                .map_err(|error| HostError::Input(format!("{}: {error}", source.display())))?;
            linked
        }
    };
    std::fs::read(linked).map_err(system(source, "reading the object"))
}

/// The compilation of several files alike.
struct Job<'a> {
    clang: PathBuf,
    includes: Vec<PathBuf>,
    /// The option that gives our headers the same place in every object.
    map: String,
    defines: &'a [String],
}

impl Job<'_> {
    fn compile(&self, source: &Path, into: &Path) -> Result<(), HostError> {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x86",
            "aarch64" => "arm64",
            "riscv64" => "riscv",
            arch => arch,
        };
        let mut command = Command::new(&self.clang);
        command
            .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-fno-stack-protector"])
            .args(NO_LIBRARY)
            .arg(&self.map)
            .args(["-D__TARGET_ARCH_", "-D__SCX_TARGET_ARCH_"].map(|name| format!("{name}{arch}")))
            .args(self.defines.iter().map(|define| format!("-D{define}")));
        for include in &self.includes {
            command.args([OsString::from("-I"), include.into()]);
        }
        command.arg("-c").arg(source).arg("-o").arg(into);
        let running = format!("running {}", self.clang.display());
        let output = command.output().map_err(system(source, &running))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let is_error = |line: &&str| line.contains("error: ");
        let mut lines: Vec<&str> = said.lines().filter(is_error).take(LINES_MAX).collect();
        let advice = advice_on_headers(&said);
        lines.extend(Some(advice.as_str()).filter(|advice| !advice.is_empty()));
        Err(HostError::Input(format!(
            "{}: {} refuses it:\n{}",
            source.display(),
            self.clang.file_name().unwrap_or_default().to_string_lossy(),
            lines.join("\n")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_types_are_made_for_whoever_may_include_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let own = write("own.bpf.c", "#include \"scx.bpf.h\"\n");
        let direct = write("direct.bpf.c", "#include <vmlinux.h>\n");
        let found = vec![dir.path().join("include")];
        assert!(!needs_types(&own, &[]) && needs_types(&direct, &[]));
        // By a header of another scheduler, as in scx_chaos.
        write("include/scx/common.bpf.h", "#include \"vmlinux.h\"\n");
        assert!(needs_types(&own, &found));
        write("include/vmlinux.h", "");
        assert!(!needs_types(&own, &found) && !needs_types(&direct, &found));
    }

    #[test]
    fn a_source_compiles_to_the_same_object_each_time() {
        if let Err(missing) = find_clang() {
            return schedlab_testing::skip(missing);
        }
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("x.bpf.c");
        let text = "typedef unsigned char __u8; typedef unsigned short __u16;
            typedef unsigned __u32, __be32, __wsum; typedef int __s32;
            typedef unsigned long long __u64; typedef long long __s64; typedef __u16 __be16;
            #include <bpf/bpf_helpers.h>
            char _license[] SEC(\"license\") = \"GPL\";";
        std::fs::write(&source, text).unwrap();
        let build = Build::default();
        let [one, other] = [(), ()].map(|()| compile(&source, &build).unwrap());
        assert!(one == other, "debug information has a name of this run");
    }
}
