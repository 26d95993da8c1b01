// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab compare EXPERIMENT.toml`: gives the same bytes for any number of threads and
//! interruptions, keeps one experiment in a directory, shows the position of mistakes, and repeats
//! manifests.

mod common;
use common::{command, flat, schedlab_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/examples/latency-under-load.toml");

const SMALL: &str = "name = 'small'
[[experiment]]
name = 'small'
workload = 'interactive'
parameters = { cpus = 1, until = '300ms' }
axes.n = [1, 2]
seeds = [1, 2, 3]
measure = ['nr_switches', 'wakeup_latency_ns_mean']
baseline = { scheduler = 'linux-6.12' }
[[experiment.runs]]
lane = 'sim'
schedulers = ['linux-6.12', 'rr']
";

/// A directory with the small experiment in it.
fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

/// Every file below `folder`, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for threads in ["1", "2", "5"] {
        let started = Instant::now();
        let done =
            schedlab_in(folder.path(), &["compare", EXAMPLE, "-o", threads, "--jobs", threads]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(started.elapsed() < Duration::from_secs(30), "the example is a small one");
        all.push((done.stdout, files(&folder.path().join(threads))));
    }
    assert!(all[0].1.len() >= 6, "{:?}", all[0].1.keys());
    assert!(all[0] == all[1] && all[0] == all[2], "the number of threads changed the output");
    assert!(all[0].0.contains("Student's t") && all[0].0.contains("baseline"), "{}", all[0].0);
}

/// Kills the command at many moments and resumes it each time: the end equals that of an
/// uninterrupted run.
#[test]
fn a_killed_sweep_goes_on_and_ends_the_same() {
    let folder = small();
    let text = SMALL.replace("[1, 2, 3]", "{ first = 1, count = 200 }").replace("300ms", "2s");
    std::fs::write(folder.path().join("small.toml"), text).unwrap();
    let whole = schedlab_in(folder.path(), &["compare", "small.toml", "-o", "whole"]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let mut kills = 0;
    for round in 0..40 {
        let mut child = command()
            .args(["compare", "small.toml", "-o", "cut"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 11 * (round % 7)));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 2, "the sweep was over before it could be killed");
    let done = schedlab_in(folder.path(), &["compare", "small.toml", "-o", "cut"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout, whole.stdout);
    assert!(files(&folder.path().join("cut")) == files(&folder.path().join("whole")));
}

#[test]
fn what_is_stored_is_not_run_again() {
    let folder = small();
    let run = |args: &[&str]| {
        let args: Vec<&str> =
            ["compare", "small.toml", "-o", "out"].iter().chain(args).copied().collect();
        schedlab_in(folder.path(), &args)
    };
    let none = run(&["--resume"]);
    assert!(none.code == 2 && none.stderr.contains("holds no results"), "{}", none.stderr);
    assert_eq!(run(&[]).code, 0);
    let again = run(&["--resume"]);
    assert!(again.code == 0 && again.stderr.contains("12 are stored"), "{}", again.stderr);
    // The log decides: a run removed from it is the only one to run again.
    let log = folder.path().join("out/runs.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let cut = text.split_once('\n').unwrap().1;
    std::fs::write(&log, cut).unwrap();
    assert!(run(&["--dry-run"]).stderr.contains("11 stored"));
    assert!(run(&[]).stderr.contains("11 are stored"));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
    let fresh = run(&["--fresh"]);
    assert!(fresh.code == 0 && !fresh.stderr.contains("stored"), "{}", fresh.stderr);
    // Another table of the same runs needs no new run.
    let other = SMALL.replace("'nr_switches', ", "");
    std::fs::write(folder.path().join("small.toml"), other).unwrap();
    let view = run(&[]);
    assert!(view.code == 0 && view.stderr.contains("12 are stored"), "{}", view.stderr);
    assert!(!view.stdout.contains("nr_switches"));
}

/// A manifest as a version of the program with other models would have written it.
fn of_other_models(path: &Path) -> String {
    let mut manifest = json(&std::fs::read(path).unwrap());
    manifest["models"] = "0123456789abcdef".into();
    manifest["plan_key"] = "0".repeat(64).into();
    manifest.to_string()
}

#[test]
fn a_directory_holds_one_experiment() {
    let folder = small();
    let run = |args: &[&str]| {
        let args: Vec<&str> =
            ["compare", "small.toml", "-o", "out"].iter().chain(args).copied().collect();
        schedlab_in(folder.path(), &args)
    };
    assert_eq!(run(&[]).code, 0);
    let before = files(&folder.path().join("out"));
    let seeds = run(&["--hz", "1000"]);
    assert_eq!(seeds.code, 2);
    assert!(flat(&seeds.stderr).contains("other settings"), "{}", seeds.stderr);
    std::fs::write(folder.path().join("small.toml"), SMALL.replace("[1, 2]", "[1, 3]")).unwrap();
    let other = run(&[]);
    assert_eq!((other.code, other.stdout.as_str()), (2, ""));
    let text = flat(&other.stderr);
    assert!(text.contains("another experiment: 12 runs with another text of small.toml"), "{text}");
    assert!(text.contains("--fresh"), "{text}");
    assert!(files(&folder.path().join("out")) == before, "a refusal changes nothing");
    assert_eq!(run(&["--fresh"]).code, 0);
    let path = folder.path().join("out/manifest.json");
    std::fs::write(&path, of_other_models(&path)).unwrap();
    let text = flat(&run(&[]).stderr);
    assert!(text.contains("12 runs with other models (0123456789abcdef, these are "), "{text}");
    assert_eq!(run(&["--fresh"]).code, 0);
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/report.html"), "mine").unwrap();
    let mine = schedlab_in(folder.path(), &["compare", "small.toml", "-o", "mine"]);
    assert!(mine.code == 2 && mine.stderr.contains("no manifest.json"), "{}", mine.stderr);
}

#[test]
fn mistakes_are_shown_with_file_line_and_column() {
    let folder = small();
    for (from, to, place, wanted) in [
        ("measure", "mesure", "small.toml:8:1", "did you mean `measure`?"),
        ("'rr'", "'rx'", "small.toml:12:29", "did you mean `rr`?"),
        ("'interactive'", "'interactiv'", "small.toml:4:12", "did you mean `interactive`?"),
        ("axes.n", "axes.m", "small.toml:4:12", "has no parameter \"m\""),
        ("[1, 2]", "[1, 2", "small.toml:7:", ""),
        ("'nr_switches'", "'nr_switch'", "small.toml:8:12", "did you mean `nr_switches`?"),
    ] {
        std::fs::write(folder.path().join("small.toml"), SMALL.replace(from, to)).unwrap();
        let done = schedlab_in(folder.path(), &["compare", "small.toml"]);
        let text = flat(&done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{to}: {text}");
        assert!(text.contains(place) && text.contains(wanted), "{to}: {text}");
    }
    assert!(!folder.path().join("small.results").exists(), "nothing was begun");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = small();
    for (args, wanted) in [
        (vec!["small.toml", "--scheduler", "rr"], "--scheduler is given beside an experiment file"),
        (vec!["small.toml", "--cpus", "2"], "--cpus is given beside an experiment file"),
        (vec!["small.toml", "--runs-max", "11"], "there are 12 runs"),
        (vec!["hogs", "--dry-run"], "--dry-run belongs to an experiment file"),
        (vec!["small.toml", "--manifest", "m.json"], "cannot be used with"),
        (vec!["--manifest", "m.json"], "m.json"),
        (vec!["none.toml"], "none.toml"),
    ] {
        let args: Vec<&str> = ["compare"].into_iter().chain(args).collect();
        let done = schedlab_in(folder.path(), &args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?}");
        assert!(flat(&done.stderr).contains(wanted), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_manifest_repeats_the_sweep_and_sees_every_change() {
    let folder = small();
    let workload = "{ \"tasks\": { \"a\": { \"run\": 1000, \"loop\": 3, \"instance\": 2 } } }";
    std::fs::write(folder.path().join("w.json"), workload).unwrap();
    let both = format!(
        "{SMALL}[[experiment]]\nname = 'file'\nworkload = 'w.json'\naxes.cpus = [1, 2]\n\
         [[experiment.runs]]\nlane = 'sim'\nschedulers = ['fcfs']\n"
    );
    std::fs::write(folder.path().join("small.toml"), both).unwrap();
    let done = schedlab_in(folder.path(), &["compare", "small.toml", "-o", "out"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    // The manifest needs no other file.
    for name in ["small.toml", "w.json", "out/runs.jsonl"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let again = schedlab_in(folder.path(), &["compare", "--manifest", "out/manifest.json"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    assert!(again.stdout.contains("14 of 14 results are identical"), "{}", again.stdout);
    let path = folder.path().join("out/manifest.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let sum = json(whole.as_bytes())["runs"][3]["result_sha256"].as_str().unwrap().to_string();
    std::fs::write(&path, whole.replace(&sum, &"0".repeat(64))).unwrap();
    let other = schedlab_in(folder.path(), &["compare", "--manifest", "out/manifest.json"]);
    assert_eq!(other.code, 1, "{}", other.stderr);
    assert!(other.stdout.contains("13 of 14 results are identical"), "{}", other.stdout);
    std::fs::write(&path, whole.replace("[1, 2, 3]", "[1, 2, 4]")).unwrap();
    let edited = schedlab_in(folder.path(), &["compare", "--manifest", "out/manifest.json"]);
    assert_eq!(edited.code, 2);
    assert!(flat(&edited.stderr).contains("not those that its text gives"), "{}", edited.stderr);
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(&path, of_other_models(&path)).unwrap();
    let older = schedlab_in(folder.path(), &["compare", "--manifest", "out/manifest.json"]);
    assert!(older.stdout.contains("14 of 14 results are identical"), "{}", older.stdout);
    let note = flat(&older.stderr);
    assert!(note.contains("with models 0123456789abcdef, this is schedlab"), "{note}");
}

#[test]
fn tables_and_long_forms_hold_the_same_figures() {
    let folder = small();
    let done =
        schedlab_in(folder.path(), &["compare", "small.toml", "-o", "out", "--json", "--plots"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let tables = json(done.stdout.as_bytes());
    let row = tables[0]["rows"].as_array().unwrap().iter().find(|row| row["key"][0] == "rr");
    let value = &row.unwrap()["values"][0];
    assert_eq!(value["estimate"]["n"], 3);
    let csv = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
    let column = |line: &str, index: usize| line.split(',').nth(index).unwrap().to_string();
    let switches = |scheduler: &str| -> Vec<f64> {
        csv.lines()
            .filter(|line| {
                line.contains(",nr_switches,count,")
                    && column(line, 3) == scheduler
                    && column(line, 8) == "1"
            })
            .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
            .collect()
    };
    let (rr, fair) = (switches("rr"), switches("linux-6.12"));
    assert_eq!((rr.len(), fair.len()), (3, 3));
    let mean = rr.iter().sum::<f64>() / 3.0;
    assert!((value["estimate"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    let difference: f64 = rr.iter().zip(&fair).map(|(a, b)| a - b).sum::<f64>() / 3.0;
    let found = value["difference"]["paired"]["mean"].as_f64().unwrap();
    assert!((found - difference).abs() < 1e-9, "{found} {difference}");
    let schema = json(schedlab_in(folder.path(), &["schema", "tables"]).stdout.as_bytes());
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&tables));
    let schema = json(schedlab_in(folder.path(), &["schema", "manifest"]).stdout.as_bytes());
    let manifest = json(&files(&folder.path().join("out"))["manifest.json"]);
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&manifest));
    assert_eq!(manifest["is_complete"], true);
}

/// The program refuses what the schema declares invalid; both accept the examples.
#[test]
fn the_schema_of_experiment_files_is_the_programs() {
    let folder = small();
    let schema = json(schedlab_in(folder.path(), &["schema", "experiment"]).stdout.as_bytes());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    for text in [SMALL, &example] {
        let value: Value =
            serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    for (from, to) in [("measure", "mesure"), ("[1, 2, 3]", "'x'"), ("lane = 'sim'", "lane = 1")] {
        let text = SMALL.replace(from, to);
        let value = serde_json::to_value(toml::from_str::<toml::Value>(&text).unwrap()).unwrap();
        assert!(!validator.is_valid(&value), "{to}");
        std::fs::write(folder.path().join("small.toml"), text).unwrap();
        assert_eq!(schedlab_in(folder.path(), &["compare", "small.toml"]).code, 2, "{to}");
    }
}

#[test]
fn values_on_the_command_line_make_a_row_each() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["compare", "hogs:work=20ms", "-S", "rr,fcfs", "--set", "rr:quantum=1ms,5ms"];
    let done = schedlab_in(folder.path(), &[&args[..], &["--param", "n=2,3", "--json"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let runs: Vec<serde_json::Value> = serde_json::from_str(&done.stdout).unwrap();
    let key = |run: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
        let parameters = &run["parameters"];
        (text(&run["scheduler"]), text(&parameters["n"]), text(&parameters["set.quantum"]))
    };
    let keys: std::collections::BTreeSet<_> = runs.iter().map(key).collect();
    let wanted = ["2", "3"].into_iter().flat_map(|n| {
        [("rr", n, "1ms"), ("rr", n, "5ms"), ("fcfs", n, "-")]
            .map(|(name, n, quantum)| (name.to_owned(), n.to_owned(), quantum.to_owned()))
    });
    assert_eq!(keys, wanted.collect());
    let done = schedlab_in(folder.path(), &[&args[..], &["--report", "r.html"]].concat());
    assert!(done.stdout.contains("rr quantum=1ms"), "{}", done.stdout);
    let page = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(page.contains("quantum (ms)"), "the report draws the measures against the quantum");
}
