// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published sched_ext schedulers, as their authors wrote them, under `schedlab sim`: each compiles
//! and runs, or is refused with what is missing. The table of
//! docs/reference/sched-ext-schedulers.md is written from these runs (`cargo xtask bless`).
//!
//!     scripts/fetch-scx-schedulers.sh DIR
//!     SCHEDLAB_SCX_SCHEDULERS=DIR cargo test -p schedlab --test scx_schedulers
//!
//! The column of the verifiers takes half an hour, real kernels (QEMU) and clang 19. It is made
//! only when the table is blessed, or with `SCHEDLAB_SCX_VERIFY=1`; otherwise its cells stay. The
//! same holds for the column of the agreement with guests and `SCHEDLAB_SCX_AGREE=1`. With `=0`
//! both stay even if the table is blessed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod agreement;
mod common;
use common::{Done, command, done, flat, kernel_ready};
use schedlab_testing::{golden, is_blessing, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const DIRECTORY: &str = "SCHEDLAB_SCX_SCHEDULERS";
/// Variable that asks for the column of the verifiers.
const VERIFY: &str = "SCHEDLAB_SCX_VERIFY";
/// Variable that asks for the column of the agreement with guests.
const AGREE: &str = "SCHEDLAB_SCX_AGREE";
/// Kernels whose verifiers are asked.
const KERNELS: [&str; 3] = ["6.18", "7.0", "7.2"];
/// Kernels whose rules the simulator has, the newest first.
const SIMULATED: [&str; 2] = ["7.2", "6.18"];
/// Columns of the table.
const HEAD: &str = "\
| scheduler | version | compiles | runs | verified on | agreement sim/guest | what is missing |
| --- | --- | --- | --- | --- | --- | --- |";
/// Index of a row's cell, with the empty one before the first.
const VERIFIED: usize = 5;
const AGREEMENT: usize = 6;
/// Longest reason of a verifier in the table, in words.
const REASON_WORDS_MAX: usize = 16;
const PAGE: &str = "docs/reference/sched-ext-schedulers.md";
const BEGIN: &str = "<!-- published: written by `cargo xtask bless` -->\n";
const END: &str = "<!-- published: end -->\n";
/// Runs at a time.
const THREADS: usize = 2;

/// Two groups of which one has three times the weight of the other.
const GROUPS: &str = r#"{
  "global": { "duration": "300ms" },
  "cgroups": { "/a": { "weight": 300 }, "/b": { "weight": 100 } },
  "tasks": {
    "a": { "instance": 6, "taskgroup": "/a", "loop": -1, "run": 100000 },
    "b": { "instance": 6, "taskgroup": "/b", "loop": -1, "run": 100000 }
  }
}"#;

/// Longest message in the table, in words.
const WORDS_MAX: usize = 32;

/// What every scheduler is tried with. `GROUPS` stands for a file with it.
const WORKLOADS: [&str; 5] = [
    "hogs:n=6,work=60ms",
    "schbench:threads=6,until=200ms",
    "GROUPS",
    "hackbench:groups=1,fds=4,loops=8",
    "hogs:n=4,work=40ms,cpus=1-2",
];

/// On which machines.
const MACHINES: [&[&str]; 3] = [&["--cpus", "4"], &["--cpus", "64"], &["--machine", "server-2x32"]];

/// A scheduler's file.
struct Published {
    name: String,
    version: String,
    path: PathBuf,
}

/// What came of it.
struct Outcome {
    compiles: bool,
    runs: bool,
    /// What is missing, or how it failed; empty if it runs.
    first: String,
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a source defines a scheduler, and is not linked to another one.
fn is_scheduler(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    file_name(path).ends_with(".bpf.c")
        && ["SCX_OPS_DEFINE(", "SCX_OPS_CID_DEFINE("].iter().any(|word| text.contains(word))
}

fn published(root: &Path) -> Vec<Published> {
    let mut all = Vec::new();
    for tree in entries(&root.join("kernel")) {
        let version = file_name(&tree).replace("linux-source-", "Linux ");
        for path in entries(&tree).into_iter().filter(|path| is_scheduler(path)) {
            let name = file_name(&path).replace(".bpf.c", "");
            all.push(Published { name, version: version.clone(), path });
        }
    }
    for tree in entries(&root.join("registry")) {
        let name = file_name(&tree);
        let Some((name, version)) = name.rsplit_once('-') else { continue };
        for folder in ["src/bpf", "assets/bpf"] {
            for path in entries(&tree.join(folder)).into_iter().filter(|path| is_scheduler(path)) {
                all.push(Published { name: name.into(), version: version.into(), path });
            }
        }
    }
    all
}

fn sim(path: &Path, workload: &str, machine: &[&str]) -> Done {
    let mut sim = command();
    sim.args(["sim", workload, "--scheduler"]).arg(path).args(machine).args(["--json", "--keep"]);
    let source = fs::read_to_string(path).unwrap_or_default();
    if source.contains("SCX_OPS_CID_DEFINE(") {
        // The first kernel whose schedulers may count CPUs by topology, and that with cpuctl.
        let core = if source.contains(".cpuctl_") { "7.3" } else { "7.2" };
        sim.args(["--set", &format!("scx_core={core}")]);
    }
    done(&sim.output().expect("the program can be started"))
}

/// A message of the program as one line, without what depends on the machine.
fn words(path: &Path, text: &str) -> String {
    let folder = path.parent().unwrap_or(path).display().to_string();
    // Long paths are broken after a slash.
    let flat = flat(text).replace("/ ", "/").replace(&format!("{folder}/"), "");
    let flat = flat.trim_start_matches("Error: ").trim_start_matches("× ").replace('|', "\\|");
    let flat = flat.split(" help:").next().unwrap_or_default();
    // The row already names the scheduler.
    let flat = flat.split(" does not compile: ").last().unwrap_or_default();
    // The distribution updates a kernel's source now and then: lines move, messages stay.
    let is_place = |word: &str| word.ends_with(':') && word.contains(".c:");
    let kept: Vec<&str> = flat.split(' ').filter(|word| !is_place(word)).collect();
    let words = kept[..kept.len().min(WORDS_MAX)].join(" ");
    if kept.len() > WORDS_MAX { words + " ..." } else { words }
}

fn try_out(scheduler: &Published, groups: &Path) -> Outcome {
    let path = &scheduler.path;
    let first = sim(path, WORKLOADS[0], MACHINES[0]);
    if first.code != 0 {
        let lacks = ["does not compile", "calls what the simulator does not have"];
        let message = flat(&first.stderr);
        let compiles = !lacks.iter().any(|words| message.contains(words));
        return Outcome { compiles, runs: false, first: words(path, &first.stderr) };
    }
    let again = sim(path, WORKLOADS[0], MACHINES[0]);
    assert_eq!(again.stdout, first.stdout, "{} is not repeatable", scheduler.name);
    for machine in MACHINES {
        for workload in WORKLOADS {
            let groups = groups.display().to_string();
            let workload = if workload == "GROUPS" { groups.as_str() } else { workload };
            let done = sim(path, workload, machine);
            if done.code != 0 {
                let words = words(path, &done.stderr);
                let workload = workload.split(':').next().unwrap_or_default();
                let workload = workload.rsplit('/').next().unwrap_or_default();
                let on = machine[1];
                let first = format!("{workload} on {on}: {words}");
                return Outcome { compiles: true, runs: false, first };
            }
        }
    }
    Outcome { compiles: true, runs: true, first: String::new() }
}

/// What one kernel says: `None` if it accepts the scheduler, else the reason.
fn refusal(path: &Path, kernel: &str) -> Option<String> {
    let mut verify = command();
    verify.args(["scx", "verify", "--json", "--kernel", kernel]).arg(path);
    let done = done(&verify.output().expect("the program can be started"));
    let reason = match done.code {
        0 => return None,
        1 => {
            let verdicts: Value = serde_json::from_str(&done.stdout)
                .unwrap_or_else(|error| panic!("{}: {error}: {}", path.display(), done.stderr));
            let verdict = &verdicts[0];
            let programs = verdict["programs"].as_array().unwrap().iter();
            let refused = programs.filter(|program| !program["refusal"].is_null());
            let texts: Vec<String> = refused
                .map(|program| {
                    let name = program["program"].as_str().unwrap_or_default();
                    format!("{name}: {}", program["refusal"]["reason"].as_str().unwrap_or_default())
                })
                .chain(verdict["error"].as_str().map(str::to_owned))
                .collect();
            texts.first().cloned().unwrap_or_default()
        }
        _ => words(path, &done.stderr),
    };
    // Of several errors of the compiler the first, without the places of this machine's files.
    let flat = flat(&reason).replace('|', "\\|");
    let first = match flat.match_indices("error: ").nth(1) {
        Some((next, _)) => flat[..next].trim(),
        None => flat.as_str(),
    };
    let kept = first.split(' ').filter(|word| !word.starts_with('/')).take(REASON_WORDS_MAX);
    Some(kept.collect::<Vec<_>>().join(" "))
}

/// The cell of the verifiers: the kernels that accept it, and for the others the first reason.
fn verified(path: &Path) -> String {
    let said = KERNELS.map(|kernel| (kernel, refusal(path, kernel)));
    let accepted: Vec<&str> =
        said.iter().filter(|(_, why)| why.is_none()).map(|(kernel, _)| *kernel).collect();
    let refused = said.iter().find_map(|(kernel, why)| Some((kernel, why.as_ref()?)));
    match (accepted.join(", "), refused) {
        (accepted, None) => accepted,
        (accepted, Some((_, why))) if accepted.is_empty() => format!("none: {why}"),
        (accepted, Some((kernel, why))) => format!("{accepted}; not {kernel}: {why}"),
    }
}

fn row(scheduler: &Published, [verified, agreement]: [&str; 2], outcome: &Outcome) -> String {
    let word = |yes: bool| if yes { "yes" } else { "no" };
    let (name, version) = (&scheduler.name, &scheduler.version);
    let (compiles, runs) = (word(outcome.compiles), word(outcome.runs));
    let first = &outcome.first;
    format!("| {name} | {version} | {compiles} | {runs} | {verified} | {agreement} | {first} |")
}

/// The cells of a row, with an empty one before the first and after the last.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{1}");
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "\\|")).collect()
}

/// One column of a table, by the keys of its rows.
fn column(table: &str, index: usize) -> BTreeMap<String, String> {
    let rows = table.lines().skip(2);
    rows.filter_map(|row| Some((key(row), cells(row).get(index)?.clone()))).collect()
}

/// Whether a column is made again that takes long.
fn is_asked(variable: &str) -> bool {
    match std::env::var_os(variable) {
        Some(value) => value != "0",
        None => is_blessing(),
    }
}

/// Whether a scheduler leaves its decisions to its user program, so that it is refused without it.
fn decides_in_user_space(path: &Path) -> bool {
    sim(path, WORKLOADS[0], MACHINES[0]).stderr.contains("it decides in user space")
}

/// The agreement of a scheduler with the newest simulated kernel that loads it.
fn agreement(path: &Path, verified: &str) -> String {
    let accepted = verified.split("; not").next().unwrap_or_default();
    let is_on = |kernel: &str| accepted.split(", ").any(|found| found == kernel);
    match SIMULATED.iter().find(|kernel| is_on(kernel)) {
        Some(_) if decides_in_user_space(path) => "it decides in user space".into(),
        Some(kernel) => agreement::agreement(path, kernel),
        None => "no kernel loads it".into(),
    }
}

/// Name and version of a row, by which it is known.
fn key(row: &str) -> String {
    row.split('|').skip(1).take(2).map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The page with the table: what is before it, its rows, what is after it.
struct Page {
    path: PathBuf,
    before: String,
    table: String,
    after: String,
}

impl Page {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the page has the mark of the table");
        let (table, after) = rest.split_once(END).expect("the page has the end of the table");
        let [before, table, after] = [before, table, after].map(str::to_owned);
        Self { path, before, table, after }
    }

    /// Compares the page with one that has these rows, or writes it.
    fn check(&self, rows: Vec<String>) {
        let Self { path, before, after, .. } = self;
        let table = format!("{BEGIN}{HEAD}\n{}\n{END}", rows.join("\n"));
        golden(path, &format!("{before}{table}{after}")).unwrap();
    }
}

/// The published schedulers, if they are here.
fn found() -> Option<Vec<Published>> {
    let Some(root) = std::env::var_os(DIRECTORY) else {
        skip(format!("{DIRECTORY} names no directory with published schedulers"));
        return None;
    };
    let all = published(Path::new(&root));
    assert!(!all.is_empty(), "{} has no scheduler", PathBuf::from(root).display());
    Some(all)
}

#[test]
fn published_schedulers_run_as_the_reference_says() {
    let Some(all) = found() else { return };
    let _turn = schedlab_testing::turn();
    let page = Page::read();
    let (verdicts, agreements) = (column(&page.table, VERIFIED), column(&page.table, AGREEMENT));
    let asks = is_asked(VERIFY) && KERNELS.iter().all(|kernel| kernel_ready(kernel));
    let folder = tempfile::tempdir().unwrap();
    let groups = folder.path().join("groups.json");
    fs::write(&groups, GROUPS).unwrap();
    let (open, found) = (Mutex::new(all.iter()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = open.lock().unwrap().next();
                    let Some(scheduler) = next else { break };
                    let own = format!("{} {}", scheduler.name, scheduler.version);
                    let verified = match asks {
                        true => verified(&scheduler.path),
                        false => verdicts.get(&own).cloned().unwrap_or_default(),
                    };
                    let agreement = agreements.get(&own).map_or("", String::as_str);
                    let outcome = try_out(scheduler, &groups);
                    let row = row(scheduler, [&verified, agreement], &outcome);
                    eprintln!("{row}");
                    found.lock().unwrap().insert(key(&row), row);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    // A scheduler that could not be fetched keeps its row.
    let mut rows: BTreeMap<String, String> =
        page.table.lines().skip(2).map(|row| (key(row), row.to_owned())).collect();
    if is_blessing() {
        rows.clear();
    }
    rows.extend(found);
    let nr_runs = rows.values().filter(|row| row.contains("| yes | yes |")).count();
    eprintln!("{nr_runs} of {} run", rows.len());
    page.check(rows.into_values().collect());
}

#[test]
fn published_schedulers_agree_with_guests_as_the_reference_says() {
    if !is_asked(AGREE) {
        return skip(format!("{AGREE}=1 asks for the column of the agreement with guests"));
    }
    let Some(all) = found() else { return };
    if !SIMULATED.iter().all(|kernel| kernel_ready(kernel)) {
        return;
    }
    let _turn = schedlab_testing::turn();
    let page = Page::read();
    let rows = page.table.lines().skip(2).map(|row| {
        let mut cells = cells(row);
        let own = all.iter().find(|own| key(row) == format!("{} {}", own.name, own.version));
        if let (Some(own), true) = (own, cells.len() > AGREEMENT) {
            cells[AGREEMENT] = agreement(&own.path, &cells[VERIFIED]);
        }
        let inner = &cells[1..cells.len() - 1];
        format!("| {} |", inner.join(" | "))
    });
    page.check(rows.collect());
}
