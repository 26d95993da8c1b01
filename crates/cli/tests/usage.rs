// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad usage and bad input: exit code 2, nothing on stdout, and a text that states what was found,
//! what is allowed and what to do.

mod common;
use common::{command, done, flat, ok, schedlab, schedlab_in};
use std::io::Read;
use std::process::Stdio;

/// Runs the program and expects exit code 2. Returns the text of the error.
fn refused(args: &[&str]) -> String {
    let done = schedlab(args);
    assert_eq!(done.code, 2, "{args:?}: {}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "{args:?}");
    done.stderr
}

#[test]
fn names_that_do_not_exist_are_answered_with_the_nearest() {
    let cases: [&[&str]; 6] = [
        &["sim", "hgos"],
        &["sim", "hogs", "--scheduler", "fcsf"],
        &["sim", "hogs", "--param", "wrok=1ms"],
        &["list", "studies", "S9"],
        &["sim", "hogs", "--policy", "ffo"],
        &["sim", "hogs", "--scheduler", "linux-6.14"],
    ];
    let texts: Vec<String> = cases.iter().map(|args| flat(&refused(args))).collect();
    assert!(texts[0].contains("no built-in workload is called \"hgos\": did you mean `hogs`?"));
    assert!(texts[1].contains("no scheduler is called \"fcsf\": did you mean `fcfs`? allowed:"));
    assert!(texts[2].contains("has no parameter \"wrok\": did you mean `work`?"), "{}", texts[2]);
    assert!(texts[3].contains("no study is called \"S9\""), "{}", texts[3]);
    assert!(texts[4].contains("did you mean `FIFO`?"), "{}", texts[4]);
    let kernels = "nearest are linux-6.12 and linux-6.18.44; allowed: fcfs, sjf, sjf-predicted,";
    assert!(texts[5].contains(kernels), "no name is cut in two: {}", texts[5]);
}

#[test]
fn values_out_of_range_say_what_is_allowed() {
    for (args, wanted) in [
        (vec!["sim", "hogs", "--cpus", "0"], "allowed are 1 to 1024 CPUs"),
        (vec!["sim", "hogs", "--hz", "251"], "allowed are 100, 250, 300 and 1000"),
        (vec!["sim", "hogs", "--until", "5"], "\"5\" has no unit: write 5ms, 5us, 5s"),
        (vec!["sim", "hogs", "--nice", "20"], "-20..=19"),
        (vec!["sim", "hogs", "--priority", "5"], "--policy"),
        (vec!["sim", "hogs:n=0"], "allowed: a whole number, 1 to 100000"),
        (vec!["sim", "hogs:n"], "write NAME=VALUE"),
        (
            vec!["sim", "hogs", "--costs", "cheap"],
            "allowed are zero, default and the path of a file",
        ),
        (vec!["sim", "hogs", "--set", "x=1"], "x"),
        (vec!["sim", "hogs", "--set", "rr:quantum=5ms"], "rr does not run here, but linux-6.12"),
        (vec!["sim", "hogs", "--set", "rrr:quantum=5ms"], "did you mean `rr`"),
        (vec!["explain", "hogs", "--set", "rr:quantum=5ms"], "add --scheduler rr"),
        (vec!["compare", "hogs", "--set", "sjf:x=5ms"], "sjf does not run here"),
        (vec!["sim", "hogs", "--json", "--slices"], "cannot be used with"),
        (vec!["sim", "hogs", "--slices", "--scheduler", "fcfs,fcfs"], "give one scheduler"),
        (vec!["sim", "hogs:cpus=7", "--cpus", "2"], "CPU 7"),
        (vec!["run"], "<WORKLOAD>"),
        (vec!["run", "hogs", "-n", "3"], "<COMMAND>"),
        (vec!["run", "hogs", "--cpus", "3-1"], "write 1-3"),
        (vec!["export", "a.slt", "b.xlsx"], "allowed are .pftrace, .parquet"),
        (vec!["report", "/nonexistent/r.json"], "/nonexistent/r.json"),
        (vec!["frobnicate"], "unrecognized subcommand"),
    ] {
        let text = flat(&refused(&args));
        assert!(text.contains(wanted), "{args:?}: {text}");
    }
}

#[test]
fn a_bad_workload_file_is_shown_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    std::fs::write(&path, "{\n  \"tasks\": { \"a\": { \"rnu\": 1000 } }\n}\n").unwrap();
    let done = schedlab_in(folder.path(), &["sim", "w.json"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    let text = flat(&done.stderr);
    assert!(text.contains("w.json:2:") && text.contains("did you mean `run`?"), "{text}");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let done = schedlab_in(folder.path(), &["sim", "./w.json"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("byte 0 is not UTF-8"), "{}", done.stderr);
}

#[test]
fn a_costs_file_is_read_with_care() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("costs.txt");
    std::fs::write(&path, "tick_ns = 100\ntikc_ns = 5\n").unwrap();
    let done = schedlab_in(folder.path(), &["sim", "hogs", "--costs", "costs.txt"]);
    assert_eq!(done.code, 2);
    let text = flat(&done.stderr);
    assert!(
        text.contains("costs.txt, line 2") && text.contains("did you mean `tick_ns`?"),
        "{text}"
    );
}

#[test]
fn nothing_half_written_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.slt");
    std::fs::write(&bad, b"this is no trace").unwrap();
    for output in ["x.pftrace", "x.parquet", "x.ndjson", "x.ftrace", "x.csv", "x.slt"] {
        let done = schedlab_in(folder.path(), &["export", "bad.slt", output]);
        assert_eq!(done.code, 2, "{output}: {}", done.stderr);
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn help_is_short_with_h_and_long_with_help() {
    for command in ["sim", "run", "compare", "report", "export", "calibrate", "completion"] {
        let short = ok(&[command, "-h"]).stdout;
        let long = ok(&[command, "--help"]).stdout;
        assert!(!short.contains("Examples:") && long.contains("Examples:"), "{command}");
        assert!(short.lines().count() < long.lines().count(), "{command}");
    }
    assert!(ok(&["--help"]).stdout.contains("Exit codes: 0 success, 1 a check failed"));
    assert!(ok(&["--version"]).stdout.starts_with("schedlab "));
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ok(&["completion", shell]).stdout;
        assert!(script.contains("COMPLETE") && script.contains("schedlab"), "{shell}");
    }
}

#[test]
fn a_shell_that_asks_gets_names_of_schedulers_and_workloads() {
    let asked = |words: &[&str]| {
        let mut command = command();
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        done(&command.arg("--").args(words).output().unwrap()).stdout
    };
    let schedulers = asked(&["schedlab", "sim", "hogs", "--scheduler", "rr,linux-6.1"]);
    assert!(schedulers.contains("rr,linux-6.18"), "{schedulers}");
    assert!(asked(&["schedlab", "sim", "hog"]).contains("hogs"));
    assert!(asked(&["schedlab", "sim", "hogs", "--machine", "lap"]).contains("laptop"));
    assert!(asked(&["schedlab", "cal"]).contains("calibrate"));
}

#[test]
fn lists_are_complete_and_the_same_as_json() {
    let all: serde_json::Value = serde_json::from_str(&ok(&["list", "--json"]).stdout).unwrap();
    for kind in ["schedulers", "workloads", "measures", "studies"] {
        let table = ok(&["list", kind]).stdout;
        let entries = all[kind].as_array().unwrap();
        assert!(!entries.is_empty(), "{kind}");
        for entry in entries {
            let name = entry["name"].as_str().unwrap();
            assert!(table.contains(name), "{kind}: {name}");
        }
    }
    let long = ok(&["list", "schedulers", "fcfs", "--long"]).stdout;
    for part in ["source:", "leaves out:", "claims:"] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

/// A reader that closes the pipe after one line ends the program without an error or a panic.
#[test]
fn a_closed_pipe_is_no_error() {
    for args in [vec!["list", "--json"], vec!["schema"], vec!["completion", "bash"]] {
        let mut child = command()
            .args(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut byte = [0u8; 1];
        child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
        let done = done(&child.wait_with_output().unwrap());
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{args:?}");
    }
}

/// The subcommands, as `-h` lists them.
fn subcommands() -> Vec<String> {
    let help = ok(&["-h"]).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty());
    names.filter_map(|line| line.split_whitespace().next().map(String::from)).collect()
}

#[test]
fn short_help_fits_a_screen_of_80_columns() {
    let commands = subcommands();
    assert!(commands.len() > 15, "{commands:?}");
    for name in commands.iter().filter(|name| *name != "help") {
        let output = command().args([name, "-h"]).env("COLUMNS", "80").output();
        let help = done(&output.unwrap()).stdout;
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:#?}");
        assert!(help.lines().count() <= 48, "{name} has {} lines:\n{help}", help.lines().count());
    }
}

/// The commands in a text that a user would type: `schedlab ...` in help texts, and `$ schedlab
/// ...` or an indented `schedlab ...` in pages. Leaves out pipes, redirections and remarks.
fn examples(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let typed = joined.lines().filter(|line| line.starts_with("  ")).filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        line.starts_with("schedlab ").then(|| line.to_owned())
    });
    let ends = [" | ", " > ", " < ", " && ", " # ", "  "];
    let cut = |line: String| {
        let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
        line[..end].to_owned()
    };
    typed.map(cut).filter(|line| !line.contains("...") && !line.contains('[')).collect()
}

/// The arguments of an example, split as a shell does.
fn words(line: &str) -> Vec<String> {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("set -f; set -- {line}; printf '%s\\n' \"$@\"")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().skip(1).map(String::from).collect()
}

/// Appends `--help` to all other options: the parser refuses unknown or out-of-range values first.
#[test]
fn every_example_in_help_and_pages_is_understood() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts: Vec<(String, String)> = subcommands()
        .iter()
        .filter(|name| *name != "help")
        .map(|name| (format!("{name} --help"), ok(&[name, "--help"]).stdout))
        .collect();
    for folder in ["", "docs", "docs/guide", "docs/reference", "docs/tutorials"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                texts.push((path.display().to_string(), text));
            }
        }
    }
    let mut count = 0;
    for (place, text) in &texts {
        for example in examples(text) {
            let mut args = words(&example);
            let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
            args.insert(end, "--help".into());
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let done = schedlab(&args);
            assert_eq!(done.code, 0, "{place}: {example}\n{}", done.stderr);
            count += 1;
        }
    }
    assert!(count > 100, "only {count} examples were found");
}

#[test]
fn manual_pages_are_those_of_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("share/man1");
    assert_eq!(ok(&["man", dir.to_str().unwrap()]).stdout, "");
    let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(page("schedlab.1").contains("schedlab\\-compare(1)"), "{}", page("schedlab.1"));
    let sim = page("schedlab-sim.1");
    for part in [
        ".TH schedlab-sim 1",
        "\\-\\-scheduler",
        ".SH EXAMPLES",
        "250, 300 or 1000",
        "linux\\-6.12",
    ] {
        assert!(sim.contains(part), "{part}: {sim}");
    }
    let pages = std::fs::read_dir(&dir).unwrap().count();
    let commands = ok(&["-h"]).stdout;
    let listed = commands.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    assert_eq!(
        pages,
        names.count(),
        "one page for each command, one for the program, none for help"
    );
}

#[test]
fn a_number_alone_leads_to_the_kernels_that_it_may_mean() {
    for (name, wanted) in [
        ("linux-9", "nearest is linux-7.2"),
        ("linux-7", "nearest are linux-7.1 and linux-7.2"),
        ("5", "nearest are linux-2.6.32 and linux-6.1"),
    ] {
        let text = flat(&refused(&["sim", "hogs", "--scheduler", name]));
        assert!(text.contains(wanted), "{text}");
    }
}
