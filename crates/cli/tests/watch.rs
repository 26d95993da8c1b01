// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab sim --watch`: every way of saving a file starts a new run, mistakes in a file end no
//! watch, Ctrl-C does.
#![cfg(target_os = "linux")]

mod common;
use common::{command, schedlab, schedlab_in};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A watch, with all that it has printed on stderr.
struct Watched {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Watched {
    fn start(folder: &Path, args: &[&str], config: &str) -> Self {
        let mut child = command()
            .args(args)
            .env("SCHEDLAB_CONFIG", config)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *into.lock().unwrap() += &(line + "\n");
            }
        });
        Self { child, said }
    }

    /// Waits until it has printed `text`.
    fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !self.said.lock().unwrap().contains(text) {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended: {}", self.text());
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(60), "no {text:?} in {}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn text(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Sends SIGINT to the program alone and expects its exit code.
    fn interrupt(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", "--", &id]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{}", self.text());
        // The reader has met the end when nobody holds stderr any more: no run is left.
        let start = Instant::now();
        while Arc::strong_count(&self.said) > 1 {
            assert!(start.elapsed() < Duration::from_secs(20), "a run goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.text()
    }
}

fn workload(work: &str) -> String {
    format!(r#"{{ "tasks": {{ "a": {{ "loop": {work}, "run": 1000, "sleep": 1000 }} }} }}"#)
}

/// Saves as most editors do: a new file takes the name of the old one.
fn rename_over(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn every_way_of_saving_starts_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    fs::write(&path, workload("3")).unwrap();
    let mut watched = Watched::start(folder.path(), &["sim", "w.json", "--watch"], "");
    watched.wait_for("run 1: exit code 0");
    watched.wait_for("waiting for a change of 1 file (Ctrl-C ends)");
    rename_over(&path, &workload("4"));
    watched.wait_for("──── run 2: w.json has changed ────");
    watched.wait_for("run 2: exit code 0");
    // Others remove the file before they write it anew.
    fs::remove_file(&path).unwrap();
    std::thread::sleep(Duration::from_millis(350));
    fs::write(&path, workload("5")).unwrap();
    watched.wait_for("run 3: exit code 0");
    fs::write(&path, "{ no JSON").unwrap();
    watched.wait_for("run 4: exit code 2");
    assert!(watched.text().contains("w.json"), "{}", watched.text());
    fs::write(&path, workload("6")).unwrap();
    watched.wait_for("run 5: exit code 0");
    fs::remove_file(&path).unwrap();
    watched.wait_for("run 6: exit code 2");
    fs::write(&path, workload("7")).unwrap();
    watched.wait_for("run 7: exit code 0");
    let text = watched.interrupt();
    assert!(text.contains("interrupted after 7 runs"), "{text}");
}

#[test]
fn a_save_and_ctrl_c_end_a_run_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    fs::write(&path, workload("-1")).unwrap();
    let args = ["sim", "w.json", "--watch", "--until", "1000000s"];
    let mut watched = Watched::start(folder.path(), &args, "");
    watched.wait_for("run 1");
    std::thread::sleep(Duration::from_millis(400));
    fs::write(&path, workload("-1").replace("1000", "2000")).unwrap();
    watched.wait_for("──── run 2: w.json has changed ────");
    std::thread::sleep(Duration::from_millis(400));
    let text = watched.interrupt();
    assert!(!text.contains("exit code"), "no run came to its end: {text}");
}

/// The configuration file may hold the watch: its runs must not watch in turn.
#[test]
fn a_watch_of_the_configuration_file_does_not_watch_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("w.json"), workload("3")).unwrap();
    fs::write(folder.path().join("c.toml"), "[sim]\nwatch = true\ncpus = 2\n").unwrap();
    let mut watched = Watched::start(folder.path(), &["sim", "w.json"], "c.toml");
    watched.wait_for("run 1: exit code 0");
    let text = watched.interrupt();
    assert_eq!(text.matches("────").count(), 4, "{text}");
}

#[test]
fn a_header_is_watched_and_mistakes_of_the_compiler_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (source, header) = (folder.path().join("x.bpf.c"), folder.path().join("slice.h"));
    let text = "#include <scx/common.bpf.h>\n#include \"slice.h\"\n\
        char _license[] SEC(\"license\") = \"GPL\";\n\
        void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 flags)\n\
        {\n\tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SLICE, flags);\n}\n\
        SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");\n";
    fs::write(&source, text).unwrap();
    fs::write(&header, "#define SLICE 1000000ULL\n").unwrap();
    let probe = schedlab_in(folder.path(), &["sim", "hogs:n=2,work=5ms", "-S", "./x.bpf.c"]);
    if probe.code == 3 {
        return schedlab_testing::skip(&probe.stderr);
    }
    let args = ["sim", "hogs:n=2,work=5ms", "-S", "./x.bpf.c", "--watch"];
    let mut watched = Watched::start(folder.path(), &args, "");
    watched.wait_for("run 1: exit code 0");
    rename_over(&header, "#define SLICE nothing\n");
    watched.wait_for("──── run 2: ./slice.h has changed ────");
    watched.wait_for("run 2: exit code 2");
    let text = watched.text();
    assert!(text.contains("does not compile") && text.contains("nothing"), "{text}");
    rename_over(&header, "#define SLICE 2000000ULL\n");
    watched.wait_for("run 3: exit code 0");
    watched.interrupt();
}

#[test]
fn a_run_that_reads_no_file_is_not_watched() {
    let done = schedlab(&["sim", "hogs", "--watch"]);
    assert!(done.code == 2 && done.stderr.contains("name a scheduler's .bpf.c"), "{}", done.stderr);
}
