// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a trace file is analysed, and in how much memory: read, measures and CPU times, as
//! `schedlab analyse` does it.
//!
//!     cargo run --release -p schedlab-metrics --example analyse_speed -- \
//!         [--format slt|ftrace|ndjson] [--events N] [--tasks N] [--cpus N] [--rounds N] [--file F]
//!
//! Makes a random trace, then reads it in processes of its own, one a round, and prints one JSON
//! object: the median rate of events per second of CPU time (user and system, the whole process)
//! and the greatest resident set of any round. With `--file`, a file that exists is read as it is,
//! and one that does not is made and stays.

use schedlab_metrics::Collector;
use schedlab_metrics::cpu_use::CpuUse;
use schedlab_trace::input::{self, HEAD_LEN, detect};
use schedlab_trace::synthetic::Synthetic;
use schedlab_trace::{BinarySink, FtraceSink, NdjsonSink};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was asked.
struct Args {
    format: String,
    what: Synthetic,
    rounds: usize,
    file: Option<PathBuf>,
    /// Read the file and print what it took: one round.
    is_round: bool,
}

fn args() -> Args {
    let what = Synthetic { seed: 1, nr_cpus: 4, nr_tasks: 200, nr_events: 11_000_000 };
    let mut args = Args { format: "slt".into(), what, rounds: 5, file: None, is_round: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{word} {value}: no number"));
        match word.as_str() {
            "--format" => args.format = value,
            "--events" => args.what.nr_events = number(),
            "--tasks" => args.what.nr_tasks = number() as u32,
            "--cpus" => args.what.nr_cpus = number() as u32,
            "--rounds" => args.rounds = number() as usize,
            "--file" => args.file = Some(value.into()),
            "--round" => (args.file, args.is_round) = (Some(value.into()), true),
            _ => panic!("{word} is not known"),
        }
    }
    args
}

/// Writes the random trace.
fn write(args: &Args, path: &Path) {
    let file = File::create(path).expect("the file can be made");
    let all = "the file takes everything";
    match args.format.as_str() {
        "slt" => {
            let mut sink = BinarySink::new(file, args.what.nr_cpus);
            args.what.play(&mut sink);
            sink.finish().expect(all);
        }
        "ftrace" => {
            let mut sink = FtraceSink::new(file).with_cpus(args.what.nr_cpus);
            args.what.play(&mut sink);
            sink.finish().expect(all);
        }
        "ndjson" => {
            let mut sink = NdjsonSink::new(file);
            args.what.play(&mut sink);
            sink.finish().expect(all);
        }
        other => panic!("the format {other} is not known: slt, ftrace, ndjson"),
    }
}

/// Reads the file and prints events, CPU time (ns) and greatest resident set (bytes).
fn round(path: &Path) {
    let mut file = File::open(path).expect("the file can be read");
    let mut head = vec![0; HEAD_LEN];
    let length = file.read(&mut head).expect("the file can be read");
    let format = detect(&head[..length]).expect("the format is known");
    let mut sinks = (Collector::new(1), CpuUse::default());
    let source = head[..length].chain(file);
    let facts = input::read(format, source, Vec::new(), &mut sinks).expect("the trace is good");
    sinks.0.set_cpus(facts.nr_cpus);
    let measures = sinks.0.finish();
    assert_eq!(sinks.1.finish(facts.nr_cpus).len(), facts.nr_cpus as usize);
    assert!(measures.totals.nr_inconsistent_events == 0, "the trace fits together");
    let read = |file: &str| std::fs::read_to_string(file).expect("procfs is there");
    let run_ns = read("/proc/self/schedstat");
    let run_ns = run_ns.split(' ').next().expect("a number");
    let status = read("/proc/self/status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("{} {run_ns} {}", facts.nr_events, peak * 1024);
}

fn main() {
    let args = args();
    if let (true, Some(path)) = (args.is_round, &args.file) {
        return round(path);
    }
    let is_temporary = args.file.is_none();
    let path = args.file.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("analyse-{}.trace", std::process::id()))
    });
    if !path.exists() {
        write(&args, &path);
    }
    let bytes = std::fs::metadata(&path).expect("the file is there").len();
    let own = std::env::current_exe().expect("this program has a path");
    let mut rounds: Vec<[u64; 3]> = Vec::new();
    for _ in 0..args.rounds.max(1) {
        let output = Command::new(&own).arg("--round").arg(&path).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("numbers");
        let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
        rounds.push(std::array::from_fn(|_| numbers.next().expect("three numbers")));
    }
    if is_temporary {
        std::fs::remove_file(&path).expect("the file can be removed");
    }
    rounds.sort_by_key(|round| round[1]);
    let [nr_events, cpu_ns, _] = rounds[rounds.len() / 2];
    let peak = rounds.iter().map(|round| round[2]).max().unwrap_or_default();
    println!(
        "{}",
        serde_json::json!({
            "format": args.format,
            "nr_events": nr_events,
            "file_bytes": bytes,
            "cpu_ns": cpu_ns,
            "events_per_cpu_s": (nr_events as f64 / cpu_ns as f64 * 1e9).round(),
            "max_rss_bytes": peak,
        })
    );
}
