// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks of the repository: `cargo xtask NAME`.

mod build_time;
mod chart;
mod curves;
mod figures;
mod instructions;
mod layout;
mod notices;
mod site;
mod soak;
mod sums;
mod test;
mod tidy;
mod wasm;
mod words;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask TASK
  test [PART...|--with-bare]
          run every test, or parts of them, and sum up; with `bare`, also `./lab demo` and
          `./lab test` in a new, minimal Debian
  tidy    check the style and words of every file, and the messages of new commits
  layout  check the dependencies between the crates
  instructions [--bless]
          count the instructions of a switch against benchmarks/instructions.json
  build-time
          measure a clean `make build`, crate by crate, in a directory of its own
  figures [--check]
          make the figures of the documentation, or check that they are up to date
  soak [--seeds 1000] [--minutes 60] [--cpus 8] [--kernel 6.18] [--scheduler NAMES]
          check every modelled scheduler with random workloads, then run hackbench that long in
          guests under each scheduler of bpf/scx, on 1 and N CPUs
  wasm    run the pure crates on wasm32 and compare the digests of traces and measures
  site    build the static site with the playground into target/site (as `make site`)
  notices print the licenses of the crates that the programs contain
  bless   accept the present output as the expected one (goldens, snapshots, formats)
  ci      everything that continuous integration runs";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "test" => passed(tests()),
        "tidy" => report(tidy::check_repository(&root())),
        "layout" => report(layout::check(&root())),
        "instructions" => instructions(),
        "build-time" => passed(build_time::run(&root())),
        "figures" => figures(),
        "soak" => soak(),
        "wasm" => wasm(),
        "site" => passed(site::build(&root(), &target()).map(|()| true)),
        "notices" => notices(),
        "bless" => bless(),
        "ci" => run(&mut Command::new(root().join(".ci/run"))),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The root of the checkout that cargo runs this for. If several checkouts share a target
/// directory, it may differ from the one that built this program.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    PathBuf::from(package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())).join("..")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from)
}

fn passed(done: Result<bool, String>) -> bool {
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        false
    })
}

fn report(problems: Result<Vec<String>, String>) -> bool {
    match problems {
        Ok(problems) => {
            for problem in &problems {
                println!("{problem}");
            }
            eprintln!("{} problem(s)", problems.len());
            problems.is_empty()
        }
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    }
}

fn run(command: &mut Command) -> bool {
    match command.current_dir(root()).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("error: cannot run {:?}: {error}", command.get_program());
            false
        }
    }
}

/// The cargo that runs this program.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds a program without optimization, as the tests do, and returns its path. An example goes
/// with it, because then cargo chooses the features that it chooses for tests, and what is compiled
/// for one serves the other.
fn built(name: &str) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--workspace", "--example", "synthetic"]);
    if !run(build.args(["--bin", name])) {
        return Err(format!("{name} does not build"));
    }
    let program = target().join("debug").join(name);
    program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))
}

/// Runs the parts of the tests that the command line names.
fn tests() -> Result<bool, String> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    test::run(&root(), &target(), &test::Parts::parse(&words)?)
}

/// Prints the licenses of what packages contain.
fn notices() -> bool {
    passed(notices::text(&root()).map(|text| {
        print!("{text}");
        true
    }))
}

/// Builds the release program and counts its instructions.
fn instructions() -> bool {
    if let Some(missing) = instructions::missing() {
        println!("SKIP instructions: {missing}");
        return true;
    }
    let bless = std::env::args().any(|argument| argument == "--bless");
    let mut build = cargo();
    build.args(["build", "--profile", "dist", "--package", "schedlab"]);
    let program = target().join("dist/schedlab");
    run(&mut build) && report(instructions::check(&root(), &program, bless))
}

/// Builds the program and makes the figures with it.
fn figures() -> bool {
    let check = std::env::args().any(|argument| argument == "--check");
    report(built("schedlab").and_then(|program| figures::figures(&root(), &program, check)))
}

/// Builds program and guest, and runs hackbench under each scheduler.
fn soak() -> bool {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let soak = match soak::Soak::parse(&words) {
        Ok(soak) => soak,
        Err(error) => {
            eprintln!("error: {error}");
            return false;
        }
    };
    let mut build = cargo();
    build.args(["build", "--release", "--package", "schedlab"]);
    let program = target().join("release/schedlab");
    run(&mut build)
        && run(&mut Command::new(root().join("scripts/guest.sh")))
        && report(soak.run(&program))
}

/// Runs the pure crates on wasm32 and on this machine, and compares the results.
fn wasm() -> bool {
    if let Some(missing) = wasm::missing(&root()) {
        println!("SKIP wasm: {missing}");
        return true;
    }
    report(wasm::check(&root(), &target()))
}

/// Runs the tests in the mode that writes the expected output.
fn bless() -> bool {
    let mut command = cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--quiet"])
        .env("SCHEDLAB_BLESS", "1")
        .env("INSTA_UPDATE", "always")
        .env("INSTA_FORCE_PASS", "1");
    let done = run(&mut command);
    eprintln!("look at what changed: git diff");
    done
}
