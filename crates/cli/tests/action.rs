// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scripts/action.sh`, the script of the GitHub action, on a small git repository with two
//! versions of a scheduler: with an empty environment, and as a user without rights.
#![cfg(target_os = "linux")]

mod common;
use common::{Done, done};
use schedlab_testing::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user and group nobody.
const NOBODY: &str = "65534";
const PATHS: &str = "/usr/local/bin:/usr/bin:/bin";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A place with copies of the program and of the script, and the directory `repository`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::copy(env!("CARGO_BIN_EXE_schedlab"), path.join("schedlab")).unwrap();
        fs::copy(root().join("scripts/action.sh"), path.join("action.sh")).unwrap();
        // Nobody writes here as the tester does.
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    /// A command with an empty environment, of a user without rights if the tester is root.
    fn command(&self, words: &[&str]) -> Command {
        let is_root = fs::metadata("/proc/self")
            .is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
        let drop = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        let all = [if is_root { &drop[..] } else { &[] }, words].concat();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).env_clear().env("PATH", PATHS).env("HOME", self.path("home"));
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        done(&self.command(words).output().unwrap())
    }

    /// Writes a file as that user.
    fn write(&self, name: &str, text: &str) {
        let script = "mkdir -p repository home && printf '%s' \"$2\" >repository/\"$1\"";
        let written = self.run(&["sh", "-c", script, "sh", name, text]);
        assert_eq!(written.code, 0, "{}", written.stderr);
    }

    fn git(&self, args: &[&str]) {
        let repository = self.repository();
        let own = ["-C", repository.to_str().unwrap(), "-c", "user.name=a", "-c", "user.email=a@b"];
        let found = self.run(&[&["git"], &own[..], args].concat());
        assert_eq!(found.code, 0, "git {args:?}: {}", found.stderr);
    }

    fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "a version"]);
    }

    /// Runs the script in the repository.
    fn action(&self, variables: &[(&str, &str)]) -> Done {
        let script = self.path("action.sh");
        let mut command = self.command(&["bash", script.to_str().unwrap()]);
        command.current_dir(self.repository()).env("SCHEDLAB_PROGRAM", self.path("schedlab"));
        command.env("SCHEDLAB_SCHEDULER", "src/my.bpf.c").env("SCHEDLAB_OUTPUT", self.path("out"));
        command.env("SCHEDLAB_WORKLOADS", "hogs:n=4,work=20ms\n").env("SCHEDLAB_CPUS", "1");
        command.env("SCHEDLAB_REPETITIONS", "2").env("SCHEDLAB_CASES", "0");
        command.env("SCHEDLAB_VERIFY", "never");
        done(&command.envs(variables.iter().copied()).output().unwrap())
    }
}

const SOURCE: &str = "#include <scx/common.bpf.h>\n#include \"slice.h\"\n\
    char _license[] SEC(\"license\") = \"GPL\";\n\
    void BPF_STRUCT_OPS(my_enqueue, struct task_struct *p, u64 flags)\n\
    {\n\tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE, flags);\n}\n\
    SCX_OPS_DEFINE(my_ops, .enqueue = (void *)my_enqueue, .name = \"my\");\n";

/// A repository whose second version has a twentieth of the first one's slice; `None` if nothing
/// can be compiled here.
fn two_versions() -> Option<Place> {
    for tool in ["git", "bash"] {
        if !PATHS.split(':').any(|folder| Path::new(folder).join(tool).is_file()) {
            skip(format!("no {tool} in {PATHS}"));
            return None;
        }
    }
    let place = Place::new();
    place.write("w.json", r#"{ "tasks": { "a": { "instance": 3, "loop": 5, "run": 9000 } } }"#);
    place.git(&["init", "--quiet"]);
    assert_eq!(place.run(&["mkdir", "repository/src"]).code, 0);
    place.write("src/my.bpf.c", SOURCE);
    place.write("src/slice.h", "#define SLICE 20000000ULL\n");
    place.commit();
    place.write("src/slice.h", "#define SLICE 1000000ULL\n");
    place.commit();
    let source = place.repository().join("src/my.bpf.c");
    let program = place.path("schedlab");
    let args = [program.to_str().unwrap(), "sim", "hogs", "-S", source.to_str().unwrap()];
    let probe = place.run(&args);
    if probe.code == 3 {
        skip(&probe.stderr);
        return None;
    }
    assert_eq!(probe.code, 0, "{}", probe.stderr);
    Some(place)
}

#[test]
fn a_checkout_is_tested_and_compared_with_its_base() {
    let Some(place) = two_versions() else { return };
    let (summary, output) = (place.path("summary"), place.path("output"));
    let done = place.action(&[
        ("SCHEDLAB_BASE", "HEAD~1"),
        ("SCHEDLAB_WORKLOADS", "hogs:n=4,work=20ms\r\n\nw.json"),
        ("SCHEDLAB_CASES", "3"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
    ]);
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{}", done.stderr);
    let text = fs::read_to_string(&summary).unwrap();
    assert_eq!(text, fs::read_to_string(place.path("out/summary.md")).unwrap());
    let verdict = text.lines().find(|line| line.starts_with("**head/src/my.bpf.c's ")).unwrap();
    assert!(verdict.contains(" times base/src/my.bpf.c's"), "{text}");
    assert!(text.contains("| number of switches | "), "{text}");
    assert!(text.contains("### `head/w.json`") && text.contains("### Search for bugs"), "{text}");
    let written = fs::read_to_string(&output).unwrap();
    let trace = written.lines().find_map(|line| line.strip_prefix("trace=")).unwrap();
    assert!(fs::metadata(trace).unwrap().len() > 200, "{written}");
    assert!(place.path("out/trace-2.pftrace").is_file());
    // The checkout is as it was.
    let status = place.run(&["git", "-C", place.repository().to_str().unwrap(), "status", "-s"]);
    assert_eq!((status.code, status.stdout.as_str()), (0, ""), "{}", status.stderr);
}

#[test]
fn what_cannot_be_compared_is_told_and_mistakes_fail() {
    let Some(place) = two_versions() else { return };
    let missing = "1".repeat(40);
    let done = place.action(&[("SCHEDLAB_BASE", &missing)]);
    assert!(done.code == 0 && done.stdout.contains("lacks the base commit"), "{}", done.stdout);
    place.write("src/new.bpf.c", SOURCE);
    let new = [("SCHEDLAB_BASE", "HEAD"), ("SCHEDLAB_SCHEDULER", "src/new.bpf.c")];
    let done = place.action(&new);
    assert!(done.code == 0 && done.stdout.contains("The scheduler is new"), "{}", done.stdout);
    // A base that does not compile is no fault of the checkout.
    place.write("src/slice.h", "#define SLICE nothing\n");
    place.commit();
    let output = place.path("output");
    let done = place.action(&[
        ("SCHEDLAB_BASE", "HEAD~1"),
        ("SCHEDLAB_WORKLOADS", "hogs\nw.json"),
        ("SCHEDLAB_CASES", "3"),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
    ]);
    assert_eq!(done.code, 2, "{}", done.stdout);
    // Once, whatever else would have been tried.
    assert_eq!(done.stdout.matches("failed with exit code 2:**").count(), 1, "{}", done.stdout);
    assert_eq!(done.stdout.matches("does not compile").count(), 1, "{}", done.stdout);
    assert!(!fs::read_to_string(&output).unwrap().contains("trace="), "there is none");
    place.write("src/slice.h", "#define SLICE 2000000ULL\n");
    let done = place.action(&[("SCHEDLAB_BASE", "HEAD")]);
    assert!(done.code == 0 && done.stdout.contains("This version alone:"), "{}", done.stdout);
}

#[test]
fn hostile_inputs_are_refused_or_taken_by_the_letter() {
    let Some(place) = two_versions() else { return };
    for (name, value) in [
        ("SCHEDLAB_SCHEDULER", "../repository/src/my.bpf.c"),
        ("SCHEDLAB_SCHEDULER", "--help.c"),
        ("SCHEDLAB_SCHEDULER", "src/my.bpf.c,rr.c"),
        ("SCHEDLAB_SCHEDULER", "src/$(touch pwned).c"),
        ("SCHEDLAB_WORKLOADS", "--manifest=x"),
        ("SCHEDLAB_WORKLOADS", "x.toml"),
        ("SCHEDLAB_WORKLOADS", " \n"),
        ("SCHEDLAB_CPUS", "2 --json"),
        ("SCHEDLAB_BASE", "--output=pwned"),
        ("SCHEDLAB_KERNELS", "--again"),
        ("SCHEDLAB_VERIFY", "yes"),
    ] {
        let done = place.action(&[(name, value)]);
        assert!(done.code == 2 && done.stderr.contains("action.sh: "), "{value}: {}", done.stderr);
    }
    let name = "`$(touch pwned)`::error::x";
    let done = place.action(&[("SCHEDLAB_WORKLOADS", name), ("GITHUB_ACTIONS", "true")]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    let first = done.stdout.lines().next().unwrap();
    let token = first.strip_prefix("::stop-commands::").unwrap();
    assert!(token.len() == 32 && done.stdout.ends_with(&format!("\n::{token}::\n")));
    assert!(!place.repository().join("pwned").exists() && !place.path("pwned").exists());
}

/// An expression within a script is replaced before the shell reads it, and would be run.
#[test]
fn inputs_reach_the_script_by_the_environment_only() {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let script = fs::read_to_string(root().join("scripts/action.sh")).unwrap();
    let (inputs, steps) = text.split_once("\nruns:\n").unwrap();
    let mut is_script = false;
    let mut nr_scripts = 0;
    for line in steps.lines() {
        let indent = line.len() - line.trim_start().len();
        is_script = line.trim_start().starts_with("run:") || (is_script && indent > 6);
        nr_scripts += u32::from(line.trim_start().starts_with("run:"));
        assert!(!is_script || !line.contains("${{"), "{line}");
    }
    assert_eq!(nr_scripts, 2);
    let inputs = inputs.split_once("\ninputs:\n").unwrap().1.split("\noutputs:").next().unwrap();
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names: Vec<&str> =
        inputs.lines().filter(is_name).map(|line| line.trim().trim_end_matches(':')).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    for name in names {
        let variable = format!("SCHEDLAB_{}", name.to_uppercase());
        assert!(steps.contains(&format!("{variable}: ${{{{ inputs.{name} }}}}")), "{name}");
        assert!(script.contains(&format!("${{{variable}:-")), "{variable}");
    }
}
