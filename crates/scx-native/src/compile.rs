// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles a `.bpf.c` to an object for this machine: finds clang, provides headers, shortens
//! messages.
//!
//! Source: the options that users of libbpf compile with, for another processor. `-fwrapv` because
//! BPF's arithmetic wraps; `-fno-strict-aliasing` because the kernel is compiled so. The headers
//! are part of this program and are written to a private directory for the compiler.

use super::cache::{Cache, Made, Slot};
use super::coverage;
use super::error::NativeError;
use super::object::ObjectFile;
use schedlab_model::KernelVersion;
use schedlab_scx::CoreRules;
use schedlab_scx_source::{SHARED_HEADERS, SYSTEM_HEADERS, SourceOptions, advice_on_headers};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The headers and the C part of the run time: path below the include directory, contents.
const FILES: &[(&str, &str)] = &[
    ("vmlinux.h", include_str!("../include/vmlinux.h")),
    ("bpf/bpf_helpers.h", include_str!("../include/bpf/bpf_helpers.h")),
    ("bpf/bpf_tracing.h", include_str!("../include/bpf/bpf_tracing.h")),
    ("bpf/bpf_core_read.h", include_str!("../include/bpf/bpf_core_read.h")),
    ("bpf/bpf_endian.h", include_str!("../include/bpf/bpf_endian.h")),
    ("scx/common.bpf.h", include_str!("../include/scx/common.bpf.h")),
    ("scx/compat.bpf.h", include_str!("../include/scx/compat.bpf.h")),
    ("scx/user_exit_info.h", include_str!("../include/scx/user_exit_info.h")),
    ("scx/user_exit_info.bpf.h", include_str!("../include/scx/user_exit_info.bpf.h")),
    ("schedlab/quick.h", include_str!("../include/schedlab/quick.h")),
    ("schedlab/frames.h", include_str!("../include/schedlab/frames.h")),
    ("schedlab/dynptr.h", include_str!("../include/schedlab/dynptr.h")),
    ("schedlab/prelude.h", include_str!("../include/schedlab/prelude.h")),
    ("schedlab/scx_enums.h", include_str!("../include/schedlab/scx_enums.h")),
    ("schedlab/scx_common.bpf.h", include_str!("../include/schedlab/scx_common.bpf.h")),
];

/// Where coverage finds the files of this program, whose directory has another name in each call.
pub const OWN_FILES: &str = "/schedlab-own";

/// The C part of the run time.
const RUN_TIME: &str = include_str!("../include/schedlab/rt.c");

/// How a scheduler is compiled.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Its headers, further sources and macros, in addition to those that are found.
    pub source: SourceOptions,
    /// The file with its setup; `None`: the one that is found.
    pub setup: Option<PathBuf>,
    /// The modelled kernel, one of [`schedlab_scx::CORES`].
    pub kernel: KernelVersion,
    /// Whether every load and store of the scheduler is checked when it runs.
    pub is_checked: bool,
    /// Whether every region of the source counts how often it runs.
    pub is_counted: bool,
    /// The cache directory; `None`: no cache.
    pub cache: Option<PathBuf>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        let kernel = CoreRules::default().version;
        let source = SourceOptions::default();
        Self { source, setup: None, kernel, is_checked: true, is_counted: false, cache: None }
    }
}

/// The result of a compilation.
#[derive(Debug)]
pub struct Compiled {
    /// The run time first, then the scheduler's files in the order given.
    pub objects: Vec<ObjectFile>,
}

/// Finds the compiler.
pub fn find_clang() -> Result<PathBuf, NativeError> {
    schedlab_scx_source::find_clang().map_err(NativeError::NoCompiler)
}

/// Compiles `source` and its further files.
pub fn compile(source: &Path, options: &CompileOptions) -> Result<Compiled, NativeError> {
    objects(source, options).map(|(objects, _)| Compiled { objects })
}

/// The objects, and how often the compiler was run. Other objects came from the cache.
fn objects(source: &Path, options: &CompileOptions) -> Result<(Vec<ObjectFile>, u32), NativeError> {
    let further = options.source.further_sources(source);
    for path in further.iter().map(PathBuf::as_path).chain([source]) {
        fs::metadata(path).map_err(|error| {
            NativeError::Refused(format!("cannot read the scheduler {}: {error}", path.display()))
        })?;
    }
    for path in &options.source.include {
        if !path.is_dir() {
            let path = path.display();
            return Err(NativeError::Refused(format!("no directory of headers: {path}")));
        }
    }
    let clang = find_clang()?;
    let directory = tempfile::Builder::new()
        .prefix("schedlab-scx-")
        .tempdir()
        .map_err(|error| internal("making a directory for the compiler", error))?;
    let (own, last) = (directory.path().join("include"), directory.path().join("last"));
    write_headers(&own, FILES)?;
    for headers in [SYSTEM_HEADERS, SHARED_HEADERS] {
        write_headers(&last, headers)?;
    }
    let run_time = directory.path().join("rt.c");
    fs::write(&run_time, RUN_TIME).map_err(|error| internal("writing headers", error))?;
    let users = options.source.include_dirs(source);
    let includes = [vec![own], users.clone(), vec![last]].concat();
    let mut job = Job {
        clang: &clang,
        directory: directory.path(),
        includes,
        users,
        flags: flags(options),
        cache: options.cache.as_deref().and_then(Cache::at),
        nr_compiled: 0,
    };
    let mut objects = vec![job.object(&run_time, Path::new("rt.c"))?];
    for file in [source].into_iter().chain(further.iter().map(PathBuf::as_path)) {
        objects.push(job.object(file, file)?);
    }
    Ok((objects, job.nr_compiled))
}

fn write_headers(directory: &Path, files: &[(&str, &str)]) -> Result<(), NativeError> {
    for (name, text) in files {
        let path = directory.join(name);
        let parent = path.parent().expect("it is below the directory");
        fs::create_dir_all(parent).map_err(|error| internal("writing headers", error))?;
        fs::write(&path, text).map_err(|error| internal("writing headers", error))?;
    }
    Ok(())
}

fn internal(doing: &str, error: std::io::Error) -> NativeError {
    NativeError::Internal(format!("{doing}: {error}"))
}

/// The compilation of several files with one compiler.
struct Job<'a> {
    clang: &'a Path,
    /// The directory for the compiler's input and output.
    directory: &'a Path,
    /// All include directories in the order of the search; and those of them that are the user's.
    includes: Vec<PathBuf>,
    users: Vec<PathBuf>,
    flags: Vec<String>,
    cache: Option<Cache>,
    nr_compiled: u32,
}

/// Options for every file.
const FLAGS: &[&str] = &[
    "-c",
    "-O2",
    "-g",
    "-gdwarf-4",
    "-std=gnu11",
    "-fPIE",
    // A section for each variable, so that the loader can put a distance between them.
    "-fdata-sections",
    "-fno-unique-section-names",
    // Every call returns to where it came from, so that errors can name the line.
    "-fno-optimize-sibling-calls",
    // Nothing but what the compiler makes: no assembly, and calls through pointers are looked at.
    "-fno-gnu-inline-asm",
    "-mretpoline",
    "-mretpoline-external-thunk",
    "-ffreestanding",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-delete-null-pointer-checks",
    "-fno-stack-protector",
    // Large frames touch every page, so that none steps over the guard of the stack.
    "-fstack-clash-protection",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
    "-fno-common",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
    "-ferror-limit=20",
    "-nostdlibinc",
    "-D__bpf__",
    "-D__BPF__",
    "-D__TARGET_ARCH_x86",
    "-D__SCX_TARGET_ARCH_x86",
    "-Wno-everything",
    "-Werror=vla",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
];

/// Options for checks of loads and stores. The offset of the shadow is that of
/// [`super::zone::SHADOW_OFFSET`], the compiler's own.
const CHECKS: &[&str] = &[
    "-DSCHEDLAB_CHECKS",
    "-fsanitize=address",
    "-fsanitize-address-use-after-return=always",
    "-fno-sanitize-address-use-after-scope",
    "-fno-sanitize-recover=address",
    // All local variables in memory are in frames, also those of which every access is safe.
    "-mllvm",
    "-asan-use-stack-safety=0",
    // The loader puts the distance between global variables.
    "-mllvm",
    "-asan-globals=0",
    // Checks are in line, whatever the size of a function.
    "-mllvm",
    "-asan-instrumentation-with-call-threshold=1000000",
    "-mllvm",
    "-asan-max-inline-poisoning-size=65536",
    "-mllvm",
    "-asan-guard-against-version-mismatch=0",
];

fn flags(options: &CompileOptions) -> Vec<String> {
    let own = ["-include", "schedlab/prelude.h", "-x", "c"];
    let checks = if options.is_checked { CHECKS } else { &[] };
    let counters = if options.is_counted { coverage::FLAGS } else { &[] };
    let all = FLAGS.iter().chain(checks).chain(counters).chain(&own).map(|flag| (*flag).to_owned());
    let users = options.source.defines.iter().map(|define| format!("-D{define}"));
    let kernel = format!("-DSCHEDLAB_KERNEL={}", options.kernel.series_number());
    all.chain([kernel]).chain(users).collect()
}

impl Job<'_> {
    /// The object of `source`, compiled or from the cache, where it is stored as `name`.
    fn object(&mut self, source: &Path, name: &Path) -> Result<ObjectFile, NativeError> {
        let contents = fs::read(source).unwrap_or_default();
        let made = Made {
            clang: self.clang,
            flags: &self.flags,
            source: name,
            contents: &contents,
            includes: &self.users,
            headers: &[FILES, SYSTEM_HEADERS, SHARED_HEADERS],
        };
        let slot = self.cache.as_ref().and_then(|cache| cache.slot(&made));
        if let Some(bytes) = slot.as_ref().and_then(Slot::find) {
            return ObjectFile::parse(&bytes);
        }
        let (into, rule) = (self.directory.join("object.o"), self.directory.join("object.d"));
        self.compile(source, &into, &rule)?;
        let bytes = fs::read(&into).map_err(|error| internal("reading the object", error))?;
        if let (Some(slot), Ok(rule)) = (slot, fs::read_to_string(&rule)) {
            slot.keep(&made, &rule, self.directory, &bytes);
        }
        self.nr_compiled += 1;
        ObjectFile::parse(&bytes)
    }

    fn compile(&self, source: &Path, into: &Path, rule: &Path) -> Result<(), NativeError> {
        let mut command = Command::new(self.clang);
        command.args(&self.flags).arg("-MD").arg("-MF").arg(rule);
        let mut own = OsString::from("-fcoverage-prefix-map=");
        own.push(self.directory);
        own.push("=");
        own.push(OWN_FILES);
        command.arg(own);
        for include in &self.includes {
            command.arg("-I").arg(include);
        }
        command.arg(source).arg("-o").arg(into).env("LC_ALL", "C");
        let output = command.output().map_err(|error| {
            let clang = self.clang.display();
            NativeError::NoCompiler(format!("cannot start the compiler {clang}: {error}"))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(NativeError::Compile(condense(source, &messages)))
    }
}

/// Most lines of messages that are shown.
const MESSAGES_MAX: usize = 8;

/// The compiler's first error messages, each once.
fn condense(source: &Path, messages: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut nr_errors = 0;
    for line in messages.lines() {
        let is_error = line.contains(": error: ") || line.contains(": fatal error: ");
        if !is_error || shown.contains(&line) {
            continue;
        }
        nr_errors += 1;
        if shown.len() < MESSAGES_MAX {
            shown.push(line);
        }
    }
    let mut text = format!("{} does not compile:", source.display());
    if shown.is_empty() {
        shown = messages.lines().take(MESSAGES_MAX).collect();
    }
    for line in &shown {
        text.push_str("\n  ");
        text.push_str(line);
    }
    if nr_errors > shown.len() {
        text.push_str(&format!("\n  ... and {} more", nr_errors - shown.len()));
    }
    let advice = advice(messages);
    if !advice.is_empty() {
        text.push('\n');
        text.push_str(&advice);
    }
    text
}

/// What to do about the compiler's messages; empty if nothing is known.
fn advice(messages: &str) -> String {
    let headers = advice_on_headers(messages);
    if messages.contains("inline assembly is disabled") {
        return "Assembly cannot be simulated: write it in C".into();
    }
    if !headers.is_empty() {
        return headers;
    }
    if messages.contains("any field in type 'struct sched_ext_ops_cid'") {
        return "Linux 7.3 has renamed members of struct sched_ext_ops_cid (cgroup_... to \
                cpuctl_...): --set scx_core=7.3 gives the new names, 7.2 the old ones"
            .into();
    }
    let mut lacking = messages.lines().filter(|line| line.contains("no member named"));
    let is_kernels = |line: &str| {
        let name = line.rsplit(" in 'struct ").next().and_then(|rest| rest.split('\'').next());
        name.is_some_and(|name| FILES[0].1.contains(&format!("struct {name} {{")))
    };
    if lacking.any(is_kernels) {
        return "Fields of the kernel's structs are those of the simulator's vmlinux.h".into();
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::super::object::Use;
    use super::*;

    /// Compiles a scheduler of two files, `x.bpf.c` and `x.h`, and says for how many clang was run.
    fn runs(folder: &Path, cache: &Path, core: CoreRules) -> u32 {
        let options = CompileOptions {
            kernel: core.version,
            source: SourceOptions {
                include: vec![folder.join("one"), folder.join("two")],
                ..SourceOptions::default()
            },
            cache: Some(cache.to_owned()),
            ..CompileOptions::default()
        };
        let source = folder.join("x.bpf.c");
        let fresh = CompileOptions { cache: None, ..options.clone() };
        let [kept, fresh] = [options, fresh].map(|options| objects(&source, &options).unwrap());
        let code = |objects: &[ObjectFile]| -> Vec<Vec<u8>> {
            let sections = objects.iter().flat_map(|object| &object.sections);
            let text = sections.filter(|section| section.usage == Use::Text);
            text.map(|section| section.bytes.clone()).collect()
        };
        assert_eq!(code(&kept.0), code(&fresh.0), "an object of the cache is what clang makes");
        assert_eq!(fresh.1, 2);
        kept.1
    }

    #[test]
    fn a_second_call_does_not_run_clang_and_a_changed_header_does() {
        if find_clang().is_err() {
            return schedlab_testing::skip("no clang in PATH");
        }
        let folder = tempfile::tempdir().unwrap();
        let (folder, cache) = (folder.path(), folder.path().join("cache"));
        for name in ["one", "two"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("x.bpf.c", "#include <x.h>\nint f(void) { return X; }\n");
        write("two/x.h", "#define X 1\n");
        let [old, new, ..] = schedlab_scx::CORES;
        assert_eq!(runs(folder, &cache, old), 2);
        assert_eq!(runs(folder, &cache, old), 0, "nothing has changed");
        assert_eq!(runs(folder, &cache, new), 2, "another option");
        write("two/x.h", "#define X 2\n");
        assert_eq!(runs(folder, &cache, old), 1, "another header");
        write("one/x.h", "#define X 3\n");
        assert_eq!(runs(folder, &cache, old), 1, "a header that is found before");
        assert_eq!(runs(folder, &cache, old), 0);
        write("x.bpf.c", "#include <x.h>\nint f(void) { return X + 1; }\n");
        assert_eq!(runs(folder, &cache, old), 1, "another source");
        for entry in fs::read_dir(&cache).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(runs(folder, &cache, old), 2, "damaged entries");
        write("x.bpf.c", "#include <x.h>\nconst char *f(void) { return __TIME__; }\n");
        assert_eq!(runs(folder, &cache, old), 1);
        assert_eq!(runs(folder, &cache, old), 1, "what names the time is not kept");
    }

    #[test]
    fn messages_are_condensed_to_the_errors() {
        let messages = "In file included from x.c:1:\nx.c:3:1: error: one\nx.c:3:1: note: here\n\
                        x.c:3:1: error: one\nx.c:9:1: fatal error: two\n2 errors generated.\n";
        let text = condense(Path::new("x.c"), messages);
        assert_eq!(
            text,
            "x.c does not compile:\n  x.c:3:1: error: one\n  x.c:9:1: fatal error: two"
        );
    }

    #[test]
    fn fields_are_advised_on_by_whose_struct_lacks_them() {
        let lacks = |of: &str| advice(&format!("x.c:1:2: error: no member named 'id' in '{of}'"));
        assert!(lacks("struct task_struct").contains("simulator's vmlinux.h"));
        assert_eq!(lacks("struct topology"), "", "it is the scheduler's own");
        assert_eq!(lacks("struct task"), "");
    }
}
