// SPDX-License-Identifier: MIT OR Apache-2.0
//! Third-party programs as workloads of an experiment: their figures, their permissions, and that
//! nothing of them remains after a run ends in any way.

#![cfg(target_os = "linux")]

mod common;
use common::{Done, command, done};
use schedlab_host::sys::kill;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A directory for a study and for the programs' private directories.
struct Place {
    folder: tempfile::TempDir,
    /// How long the test's own `sleep` sleeps. This number identifies its processes.
    seconds: String,
}

impl Place {
    fn new(number: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Programs run as an unprivileged user, who must be able to enter the directory.
        let open = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(folder.path(), open.clone()).unwrap();
        std::fs::create_dir(folder.path().join("io")).unwrap();
        std::fs::set_permissions(folder.path().join("io"), open).unwrap();
        Self { folder, seconds: format!("{}.{number}", 100_000 + std::process::id()) }
    }

    fn io(&self) -> PathBuf {
        self.folder.path().join("io")
    }

    /// `schedlab compare` of a study with this experiment, as a command.
    fn compare(&self, keys: &str, program: &str) -> std::process::Command {
        let text = format!(
            "name = 'x'\n[[experiment]]\nname = 'x'\n{keys}\n[[experiment.runs]]\nlane = 'host'\n\
             schedulers = ['OTHER']\n[experiment.program]\n{}",
            program.replace("SECONDS", &self.seconds)
        );
        std::fs::write(self.folder.path().join("x.toml"), text).unwrap();
        let mut command = command();
        command.args(["compare", "x.toml", "--json", "-o", "out"]).current_dir(self.folder.path());
        command.env("SCHEDLAB_IO_DIR", self.io());
        command
    }

    fn run(&self, keys: &str, program: &str) -> Done {
        let out = self.folder.path().join("out");
        let _ = std::fs::remove_dir_all(out);
        done(&self.compare(keys, program).output().unwrap())
    }

    /// Figures of the runs, in the order of the log.
    fn figures(&self) -> Vec<serde_json::Value> {
        let log = self.folder.path().join("out/runs.jsonl");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let results = text.lines().map(|line| {
            let run: serde_json::Value = serde_json::from_str(line).unwrap();
            run["result"]["figures"].clone()
        });
        results.collect()
    }

    /// Remaining processes and files of the runs.
    fn left(&self) -> Vec<String> {
        let mut left = sleepers(&self.seconds);
        let entries = std::fs::read_dir(self.io()).unwrap().flatten();
        left.extend(entries.map(|entry| entry.path().display().to_string()));
        left
    }

    fn wait_until_clean(&self, what: &str) {
        let start = Instant::now();
        while !self.left().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}: left: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Living processes with this word in their command line.
fn sleepers(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_one = line.starts_with("sleep ") && line.contains(word);
        is_one.then(|| format!("{} {line}", entry.path().display()))
    });
    found.collect()
}

const SLEEPER: &str = "[[experiment.program.setup]]\nargv = ['sleep', 'SECONDS']\nstays = true\n";
const VALUE: &str = "[[experiment.program.figure]]\nname = 'pass_ns'\nunit = 'ms'\n\
                     pattern = 'pass ([0-9.]+) ms'\n";

#[test]
fn figures_are_measures_and_what_stays_is_ended() {
    let place = Place::new(1);
    let program = format!(
        "argv = ['echo', 'pass {{n}}.5 ms']\nteardown = [['true']]\n\
         {SLEEPER}count = '{{n}}'\n{VALUE}"
    );
    let done = place.run("axes.n = [0, 3]\nmeasure = ['pass_ns', 'nr_exited']", &program);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(place.left(), Vec::<String>::new());
    let mut found: Vec<f64> =
        place.figures().iter().map(|figures| figures["pass_ns"].as_f64().unwrap()).collect();
    found.sort_by(f64::total_cmp);
    assert_eq!(found, [0.5e6, 3.5e6]);
    assert!(done.stdout.contains("3500000"), "the table has it: {}", done.stdout);
}

#[test]
fn the_program_has_no_rights_and_a_private_place() {
    let place = Place::new(2);
    let shell = "argv = ['sh', '-c', 'echo user_id $(id -u); stat -c \"mode_octal %a\" .; \
                 test \"$PWD\" = \"$HOME\" -a -z \"$SECRET\" && echo env_count $(env | wc -l); \
                 grep -q \"NoNewPrivs:.1\" /proc/self/status && echo confined_count 1']\n";
    let figure = |name: &str| {
        format!("[[experiment.program.figure]]\nname = '{name}'\npattern = '{name} ([0-9]+)'\n")
    };
    let program = ["user_id", "mode_octal", "env_count", "confined_count"].map(figure).concat();
    let mut command = place.compare("", &format!("{shell}{program}"));
    let done = done(&command.env("SECRET", "x").output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let figures = &place.figures()[0];
    assert_ne!(figures["user_id"], 0.0, "never as root");
    assert_eq!(figures["mode_octal"], 700.0);
    assert!(figures["env_count"].as_f64().unwrap() <= 8.0, "{figures}");
    assert_eq!(figures["confined_count"], 1.0);
}

#[test]
fn what_fails_says_so_with_its_last_words() {
    let place = Place::new(3);
    let check = |program: &str, code: i32, wanted: &[&str]| {
        let done = place.run("", program);
        assert_eq!(done.code, code, "{program}: {}", done.stderr);
        for text in wanted {
            assert!(done.stderr.contains(text), "{program}: {text}: {}", done.stderr);
        }
        assert_eq!(place.left(), Vec::<String>::new(), "{program}");
    };
    check(
        "argv = ['no-such-program', '1']\npackages = ['some-package']",
        0,
        &["not installed: no-such-program: apt-get install some-package"],
    );
    check("argv = ['ls', '/no/such/file']", 1, &["ls failed (exit code 2)", "/no/such/file"]);
    check(&format!("argv = ['echo', 'none']\n{VALUE}"), 1, &["nothing printed matches", "none"]);
    check("argv = ['sleep', 'SECONDS']\nlimit = '300ms'", 1, &["within the 0.3 s of `limit`"]);
    check("argv = ['yes']\nlimit = '20s'", 1, &["yes "]);
    let step = "argv = ['true']\n[[experiment.program.setup]]\nargv = ['ls', '/none']";
    check(step, 3, &["ls failed (exit code 2)", "/none"]);
    let late = "argv = ['true']\nsetup_limit = '1s'\n[[experiment.program.setup]]\n\
                argv = ['sleep', 'SECONDS']\nstays = true\nready_output = 'never'";
    check(late, 3, &["sleep was not ready within the 1 s of `setup_limit`"]);
    let dies = "argv = ['sleep', '0.3']\n[[experiment.program.setup]]\nargv = ['sleep', '0.1']\n\
                stays = true";
    check(dies, 3, &["sleep ended before the program did (exit code 0)"]);
}

/// Starts a run that would take a minute, and waits until all its processes and files exist.
fn in_full_swing(place: &Place) -> Child {
    let program = format!("argv = ['sleep', 'SECONDS']\ndirectories = ['a/b']\n{SLEEPER}");
    let mut command = place.compare("", &program);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while sleepers(&place.seconds).len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(20), "the run did not begin");
        assert!(child.try_wait().unwrap().is_none(), "the run was over at once");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// The first process that has `pid` as its parent.
fn child_of(pid: u32) -> Option<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |of: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent == Some(pid.to_string().as_str())
    };
    pids.into_iter().find(is_child)
}

/// Numbers of signals, signal(7).
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGSTOP: i32 = 19;

#[test]
fn nothing_is_left_whoever_is_killed() {
    for (number, signal, strikes_launcher) in
        [(10, SIGINT, false), (11, SIGKILL, false), (12, SIGKILL, true), (13, SIGTERM, true)]
    {
        let place = Place::new(number);
        let mut child = in_full_swing(&place);
        let launcher = child_of(child.id()).expect("a launcher");
        kill(if strikes_launcher { launcher } else { child.id() as i32 }, signal);
        child.wait().unwrap();
        place.wait_until_clean(&format!("signal {signal}, launcher: {strikes_launcher}"));
    }
}

/// Kills caller and launcher at once, so that neither can clean up. The next run does.
#[test]
fn what_nobody_could_remove_goes_with_the_next_run() {
    let place = Place::new(14);
    let mut child = in_full_swing(&place);
    let launcher = child_of(child.id()).expect("a launcher");
    kill(child.id() as i32, SIGSTOP);
    kill(launcher, SIGKILL);
    kill(child.id() as i32, SIGKILL);
    child.wait().unwrap();
    let start = Instant::now();
    while !sleepers(&place.seconds).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", place.left());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(place.left().len(), 1, "its directory: {:?}", place.left());
    let done = place.run("", "argv = ['true']");
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(place.left(), Vec::<String>::new());
}

/// A study with only experiment `name` of S3, with these axes and parameters.
fn of_s3(name: &str, axes: &str, parameters: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/S3.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text.split("\n[[experiment]]\n");
    let block = blocks.find(|block| block.starts_with(&format!("name = \"{name}\""))).unwrap();
    let block = block.split("\n[[claim]]").next().unwrap();
    let (block, _) = block.split_once("\n# What the study says").unwrap_or((block, ""));
    let lines = block.lines().map(|line| match line.split_once(" = ") {
        Some(("axes", _)) if line.starts_with("axes") => axes.to_string(),
        Some(("parameters", _)) if line.starts_with("parameters") => parameters.to_string(),
        Some(("schedulers", _)) => "schedulers = [\"OTHER\"]".into(),
        Some(("repetitions", _)) => "repetitions = 1".into(),
        _ => line.to_string(),
    });
    // Drop the changes for quick runs.
    let lines: Vec<String> = lines.collect();
    let kept = lines.iter().filter(|line| !line.starts_with("quick = "));
    let text: Vec<&str> = kept.map(String::as_str).collect();
    format!("name = \"x\"\n[[experiment]]\n{}\n", text.join("\n"))
}

/// Runs an experiment of S3. Returns its figures, or the reason why it cannot run here.
fn real(number: u32, study: &str) -> Option<serde_json::Value> {
    let place = Place::new(number);
    std::fs::write(place.folder.path().join("x.toml"), study).unwrap();
    let mut command = command();
    command.args(["compare", "x.toml", "-o", "out"]).current_dir(place.folder.path());
    let done = done(&command.env("SCHEDLAB_IO_DIR", place.io()).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(place.left(), Vec::<String>::new());
    if let Some(why) = done.stderr.lines().find(|line| line.contains("not installed")) {
        schedlab_testing::skip(why);
        return None;
    }
    place.figures().first().cloned()
}

#[test]
fn hackbench_of_rt_tests() {
    let study = of_s3("S3-hackbench-program", "axes = { groups = [2] }", "");
    let Some(figures) = real(20, &study) else { return };
    let ns = figures["time_ns"].as_f64().unwrap();
    assert!((1e6..6e10).contains(&ns), "80,000 messages in {ns} ns");
}

#[test]
fn sysbench_on_a_mariadb_server() {
    let study = of_s3("S3-mariadb", "axes = { threads = [2] }", "parameters = { seconds = 1 }");
    let Some(figures) = real(21, &study) else { return };
    assert!(figures["transactions_per_s"].as_f64().unwrap() > 1.0, "{figures}");
    assert!(figures["latency_ns_p95"].as_f64().unwrap() > 1e4, "{figures}");
    assert_eq!(sleepers("mariadbd"), Vec::<String>::new());
}

#[test]
fn glmark2_on_a_server_without_a_screen() {
    let study =
        of_s3("S3-glmark2", "axes = { hogs = [1], cpus = [1] }", "parameters = { seconds = 1 }");
    let Some(figures) = real(22, &study) else { return };
    assert!(figures["frames_per_s"].as_f64().unwrap() >= 1.0, "{figures}");
    let locks = std::fs::read_dir("/tmp").unwrap().flatten();
    let names = locks.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = names
        .filter(|name| {
            let number = name.strip_prefix(".X").and_then(|rest| rest.strip_suffix("-lock"));
            let pid = number.and_then(|number| number.parse::<u32>().ok());
            pid.is_some_and(|pid| pid > 1_000 && !Path::new(&format!("/proc/{pid}")).exists())
        })
        .collect();
    assert_eq!(left, Vec::<String>::new(), "the X server took its lock with it");
}
