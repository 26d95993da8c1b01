// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab scx setup`: what a user program sets up is recorded, and a simulation applies it.
//!
//! `schedlab load` is a user program itself, with libbpf. Those of the scx schedulers are recorded
//! too if they are there:
//!
//!     scripts/fetch-scx-schedulers.sh DIR
//!     cargo install --root PROGRAMS scx_bpfland@1.1.4 ...    (clang and libclang 19)
//!     SCHEDLAB_SCX_SCHEDULERS=DIR SCHEDLAB_SCX_PROGRAMS=PROGRAMS/bin \
//!         cargo test -p schedlab --test scx_setup
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;
use common::{Done, flat, schedlab};
use schedlab_testing::skip;
use std::path::{Path, PathBuf};

const KERNEL: &str = "6.18";
/// Directory with user programs.
const PROGRAMS: &str = "SCHEDLAB_SCX_PROGRAMS";
/// Directory with the schedulers' sources.
const SOURCES: &str = "SCHEDLAB_SCX_SCHEDULERS";
const MACHINES: [&str; 2] = ["laptop", "server-2x32"];

/// Published schedulers: name, version, arguments of the user program, whether the recorded setup
/// and the built-in one give the same simulation on `laptop`.
const PUBLISHED: [(&str, &str, &[&str], bool); 10] = [
    ("beerland", "1.1.4", &[], true),
    ("bpfland", "1.1.4", &[], true),
    ("chaos", "1.1.4", &[], true),
    ("cosmos", "1.1.7", &[], true),
    ("flash", "1.1.4", &[], true),
    ("lavd", "1.1.4", &[], true),
    ("layered", "1.1.4", &["--run-example"], false),
    ("p2dq", "1.1.4", &[], true),
    ("rusty", "1.1.4", &[], true),
    // Its user program fails on more than 32 CPUs if it is built with checks of overflows.
    ("tickless", "1.1.4", &[], true),
];

/// Whether the kernel's types are there; if not, the test is skipped.
fn has_types() -> bool {
    let got = schedlab(&["kernel", "get", KERNEL]);
    match got.code {
        0 => true,
        3 => {
            skip(got.stderr);
            false
        }
        code => panic!("kernel get {KERNEL} gave {code}: {}", got.stderr),
    }
}

/// Records a user program; `None`: this machine has no namespaces or filters for that.
fn record(args: &[&str], output: &Path, command: &[&str]) -> Option<Done> {
    let output = output.display().to_string();
    let base = ["scx", "setup", "--kernel", KERNEL, "--output", &output];
    let done = schedlab(&[&base[..], args, &["--"], command].concat());
    if done.code == 3 {
        skip(done.stderr);
        return None;
    }
    Some(done)
}

fn wrr() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/scx/wrr.bpf.c");
    path.canonicalize().unwrap().display().to_string()
}

#[test]
fn the_setup_of_a_user_program_is_recorded_and_applied() {
    if !has_types() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("wrr.toml");
    let (program, source) = (env!("CARGO_BIN_EXE_schedlab"), wrr());
    let command = [program, "load", &source, "--set", "slice_foreground=7ms"];
    let Some(done) = record(&["--cpus", "2"], &setup, &command) else { return };
    assert_eq!(done.code, 0, "{}", done.stderr);
    let text = std::fs::read_to_string(&setup).unwrap();
    assert!(text.contains("\nslice_foreground_ns = 7000000\n"), "{text}");
    assert!(text.contains("\ncore = [0, 1]\n") && text.contains("kernel = \"6.18."), "{text}");
    let setup = setup.display().to_string();
    let simulated = |cpus: &str, more: &[&str]| {
        let base = ["sim", "hogs:n=5,work=50ms", "--cpus", cpus, "--scheduler", &source];
        schedlab(&[&base[..], more].concat())
    };
    let recorded = simulated("2", &["--scx-setup", &setup]);
    let chosen = simulated("2", &["--set", "slice_foreground=7ms"]);
    let default = simulated("2", &[]);
    assert_eq!((recorded.code, chosen.code), (0, 0), "{}{}", recorded.stderr, chosen.stderr);
    assert_eq!(recorded.stdout, chosen.stdout);
    assert_ne!(recorded.stdout, default.stdout);
    let other = simulated("3", &["--scx-setup", &setup]);
    let error = flat(&other.stderr);
    assert_eq!(other.code, 2, "{error}");
    assert!(error.contains("was recorded for a machine of 2 CPUs, 2 cores"), "{error}");
    assert!(error.contains("schedlab scx setup --machine MACHINE --cpus 3 -- "), "{error}");
}

#[test]
fn programs_that_attach_nothing_are_refused() {
    if !has_types() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let setup = folder.path().join("x.toml");
    let words = ["sh", "-c", "echo no scheduler here; exit 4"];
    let Some(done) = record(&[], &setup, &words) else { return };
    let error = flat(&done.stderr);
    assert_eq!(done.code, 1, "{error}");
    assert!(error.contains("sh ended before it attached a scheduler (exit status: 4)"), "{error}");
    assert!(error.ends_with("no scheduler here"), "{error}");
    assert!(!setup.exists());
    let done = record(&["--cpus", "9", "--machine", "laptop"], &setup, &words).unwrap();
    assert_eq!(done.code, 2, "{}", done.stderr);
    let done = schedlab(&["scx", "setup", "--cpus", "2"]);
    assert!(done.code == 2 && done.stderr.contains("<COMMAND>"), "{}", done.stderr);
}

/// The main source of a published scheduler.
fn source(registry: &Path, name: &str, version: &str) -> PathBuf {
    registry.join(format!("scx_{name}-{version}/src/bpf/main.bpf.c"))
}

#[test]
fn user_programs_of_published_schedulers_are_recorded() {
    let (Some(programs), Some(sources)) = (std::env::var_os(PROGRAMS), std::env::var_os(SOURCES))
    else {
        return skip(format!("{PROGRAMS} and {SOURCES} name no directories"));
    };
    if !has_types() {
        return;
    }
    let (programs, registry) = (PathBuf::from(programs), PathBuf::from(sources).join("registry"));
    let include = registry.join("include").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut nr = 0;
    for (name, version, args, is_equal) in PUBLISHED {
        let (program, source) =
            (programs.join(format!("scx_{name}")), source(&registry, name, version));
        if !program.is_file() || !source.is_file() {
            continue;
        }
        let (program, source) = (program.display().to_string(), source.display().to_string());
        for machine in MACHINES.iter().filter(|machine| name != "tickless" || **machine == "laptop")
        {
            let setup = folder.path().join(format!("{name}.toml"));
            let command = [&[program.as_str()], args].concat();
            let Some(done) = record(&["--machine", machine], &setup, &command) else { return };
            assert_eq!(done.code, 0, "{name} on {machine}: {}", done.stderr);
            let setup = setup.display().to_string();
            let base = ["sim", "hackbench:groups=2,loops=20", "--machine", machine];
            let base = [&base[..], &["--scx-include", &include, "--scheduler", &source]].concat();
            let recorded = schedlab(&[&base[..], &["--scx-setup", &setup]].concat());
            assert_eq!(recorded.code, 0, "{name} on {machine}: {}", recorded.stderr);
            if is_equal && *machine == "laptop" {
                assert_eq!(recorded.stdout, schedlab(&base).stdout, "{name}");
            }
            nr += 1;
        }
    }
    assert!(nr > 0, "no user program of a scheduler is in {}", programs.display());
}
