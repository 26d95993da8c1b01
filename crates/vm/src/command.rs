// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program of this machine that loads a sched_ext scheduler in the guest: found, and packed with
//! the libraries that it needs.

use crate::VmError;
use crate::kernel::elf::Elf;
use schedlab_guest::protocol::{GuestFile, SHARED_BYTES, SchedulerCommand};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the program is in the guest.
const DIR: &str = "/scheduler";
/// Most bytes of a program with its libraries. Request, reply and trace share the memory.
const BYTES_MAX: usize = SHARED_BYTES / 4 * 3;

/// A command that loads a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShippedScheduler {
    /// Its name in targets: `6.18:NAME`.
    pub name: String,
    /// The program, a path or a name in PATH, and its arguments.
    pub argv: Vec<String>,
}

impl ShippedScheduler {
    /// The command `argv` with the name that the user wrote.
    ///
    /// # Errors
    /// It has no words, or a name with a colon, which separates kernel and scheduler in a target.
    pub fn new(argv: Vec<String>) -> Result<Self, VmError> {
        let name = argv.first().filter(|name| !name.is_empty()).cloned().ok_or_else(|| {
            VmError::Input("a scheduler's command without words: give a program".into())
        })?;
        if name.contains(':') {
            return Err(VmError::Input(format!(
                "scheduler command {name:?}: a colon separates kernel and scheduler; rename the \
                 program, or link it under another name"
            )));
        }
        Ok(Self { name, argv })
    }

    /// The program with its libraries, as a guest gets them.
    pub fn pack(&self) -> Result<SchedulerCommand, VmError> {
        let program = find(&self.argv[0])?;
        let wrong = |why: &str| VmError::Input(format!("{}: {why}", program.display()));
        let bytes = read(&program)?;
        let elf = Elf::new(&bytes).ok_or_else(|| {
            wrong("it is no 64-bit ELF program, and a guest has no other interpreter")
        })?;
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        let path = format!("{DIR}/{file}");
        let mut argv = self.argv.clone();
        argv[0].clone_from(&path);
        let mut files = Vec::new();
        if let Some(loader) = elf.interpreter() {
            for library in libraries(&loader, &program).map_err(|why| wrong(&why))? {
                let content = read(Path::new(&library))?;
                files.push(GuestFile { path: library, content });
            }
        }
        files.push(GuestFile { path, content: bytes });
        let len: usize = files.iter().map(|file| file.content.len()).sum();
        if len > BYTES_MAX {
            return Err(wrong(&format!(
                "it has {} MB with its libraries; {} fit into a guest: strip it, or link it \
                 statically",
                len >> 20,
                BYTES_MAX >> 20
            )));
        }
        Ok(SchedulerCommand { argv, files })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    fs::read(path).map_err(|error| VmError::Input(format!("{}: {error}", path.display())))
}

/// The file of a program: a path, or a name in PATH.
fn find(name: &str) -> Result<PathBuf, VmError> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        VmError::Input(format!("scheduler command {name:?}: no such program in PATH (./{name}?)"))
    })
}

/// The loader and the libraries of a program, in the loader's own words (ld.so(8), `--list`).
fn libraries(loader: &str, program: &Path) -> Result<BTreeSet<String>, String> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("its loader {loader}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let missing: Vec<&str> = text.lines().filter(|line| line.contains("not found")).collect();
    if !output.status.success() || !missing.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = missing.first().map_or(errors.trim(), |line| line.trim());
        return Err(format!("its libraries cannot be found: {why}"));
    }
    let mut all = listed(&text);
    all.insert(loader.to_owned());
    Ok(all)
}

/// The files of `libz.so.1 => /lib/libz.so.1 (0x7f...)` and `/lib64/ld-linux.so.2 (0x7f...)`.
fn listed(text: &str) -> BTreeSet<String> {
    let path = |line: &str| {
        let right = line.split_once("=> ").map_or(line, |(_, right)| right);
        let path = right.trim().rsplit_once(" (").map_or(right.trim(), |(path, _)| path);
        path.starts_with('/').then(|| path.to_owned())
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Result<ShippedScheduler, VmError> {
        ShippedScheduler::new(words.iter().map(|word| (*word).into()).collect())
    }

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f1)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n\tstatically linked\n";
        let found = listed(text);
        let wanted = ["/lib/x86_64-linux-gnu/libz.so.1", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_program_is_packed_with_its_libraries() {
        // Not this one: a test program may be larger than what fits.
        let packed = command(&["/bin/sh", "--help"]).unwrap().pack().unwrap();
        assert!(packed.argv[0].starts_with("/scheduler/") && packed.argv[1] == "--help");
        assert!(packed.files.iter().any(|file| file.path.contains("libc.so")));
        assert_eq!(packed.files.last().unwrap().path, packed.argv[0]);
        assert!(packed.files.iter().all(|file| !file.content.is_empty()));
    }

    #[test]
    fn what_is_no_program_is_refused_by_name() {
        let why = |words: &[&str]| {
            command(words).and_then(|found| found.pack()).map(drop).unwrap_err().to_string()
        };
        assert!(why(&[]).contains("without words"));
        assert!(why(&["./a:b"]).contains("colon"));
        assert!(why(&["no-such-program-here"]).contains("PATH"));
        assert!(why(&["./none"]).contains("./none"));
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("s");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(why(&[script.to_str().unwrap()]).contains("no 64-bit ELF"));
    }
}
