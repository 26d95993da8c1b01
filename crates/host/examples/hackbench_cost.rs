// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what recording costs a real load: hackbench with and without the BPF recorder, in pairs
//! of alternating order.
//!
//! `cargo run --release -p schedlab-host --example hackbench_cost [PAIRS [COMMAND ...]]` (root).
//! The default command is `hackbench -g 10 -l 2000` (package rt-tests) or, without it, `perf bench
//! sched messaging`. Both kinds of run take the same path; the one without recording has only the
//! kernel's own counters. With recording, this process converts every event and writes it to a
//! binary trace file on the same CPUs, so that all of this work counts.
//!
//! The output is JSON: medians over the pairs of wall time and of all CPU time, with / without
//! recording. It also has the extra CPU time per event, of hackbench alone (the programs at the
//! tracepoints) and with this process (drain, conversion, writing).

use schedlab_host::sys::{self, Usage};
use schedlab_host::{Output, RecorderChoice, RunCommand, run_command};
use schedlab_model::TraceSink;
use schedlab_model::trace::NullSink;
use schedlab_trace::binary::BinarySink;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;

type Failure = Box<dyn std::error::Error>;

/// One run; times in ns.
struct Sample {
    wall: f64,
    /// CPU time of the command.
    command: f64,
    /// CPU time of this process during the run.
    own: f64,
    events: u64,
    lost: u64,
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args_os().skip(1);
    let pairs: u32 = args.next().map_or(Ok(15), |text| text.to_string_lossy().parse())?;
    let mut argv: Vec<OsString> = args.collect();
    if argv.is_empty() {
        argv = default_command()?;
    }
    sample(&argv, false)?; // Files and caches are warm after it.
    let (mut wall, mut cpu, mut traced, mut total) = (vec![], vec![], vec![], vec![]);
    let (mut events, mut lost, mut rate) = (vec![], 0, vec![]);
    for pair in 0..pairs {
        let (with, without) = if pair % 2 == 0 {
            let with = sample(&argv, true)?;
            (with, sample(&argv, false)?)
        } else {
            let without = sample(&argv, false)?;
            (sample(&argv, true)?, without)
        };
        let all = |sample: &Sample| sample.command + sample.own;
        wall.push(with.wall / without.wall);
        cpu.push(all(&with) / all(&without));
        traced.push((with.command - without.command) / with.events as f64);
        total.push((all(&with) - all(&without)) / with.events as f64);
        rate.push(with.events as f64 / with.wall * 1e9);
        events.push(with.events as f64);
        lost += with.lost;
    }
    let command: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let out = serde_json::json!({
        "command": command.join(" "),
        "pairs": pairs,
        "events_median": spread(events)[1],
        "events_per_s_median": spread(rate)[1],
        "lost_events": lost,
        "wall_ratio_p10_p50_p90": spread(wall),
        "cpu_ratio_p10_p50_p90": spread(cpu),
        "traced_cpu_ns_per_event_p10_p50_p90": spread(traced),
        "total_cpu_ns_per_event_p10_p50_p90": spread(total),
    });
    println!("{}", serde_json::to_string_pretty(&out)?);
    Ok(())
}

fn default_command() -> Result<Vec<OsString>, Failure> {
    let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
    let candidates =
        ["hackbench -g 10 -l 2000", "perf bench sched messaging -g 10 -l 2000"].map(words);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |argv: &Vec<OsString>| std::env::split_paths(&path).any(|dir| dir.join(&argv[0]).is_file());
    let found = candidates.into_iter().find(is_there);
    found.ok_or_else(|| "neither hackbench (package rt-tests) nor perf is here".into())
}

/// 10th percentile, median, 90th percentile, to three digits.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [10, 50, 90].map(|part| {
        let value = values[(values.len().max(1) - 1) * part / 100];
        (value * 1000.0).round() / 1000.0
    })
}

fn cpu_ns(usage: &Usage) -> f64 {
    (usage.user_us + usage.system_us) as f64 * 1000.0
}

fn sample(argv: &[OsString], is_recorded: bool) -> Result<Sample, Failure> {
    let mut command = RunCommand::new(argv.to_vec());
    command.output = Output::Null;
    command.recorder = RecorderChoice::Schedstat;
    let path = std::env::temp_dir().join(format!("hackbench-cost-{}.trace", std::process::id()));
    let mut trace = None;
    if is_recorded {
        command.recorder = RecorderChoice::Bpf;
        let nr_cpus = sys::nr_cpus_online();
        trace = Some(BinarySink::new(BufWriter::new(File::create(&path)?), nr_cpus));
    }
    let mut nothing = NullSink;
    let before = sys::own_usage();
    let outcome = match &mut trace {
        Some(trace) => run_command(&command, trace as &mut dyn TraceSink),
        None => run_command(&command, &mut nothing),
    };
    let after = sys::own_usage();
    drop(trace);
    if is_recorded {
        std::fs::remove_file(&path)?;
    }
    let outcome = outcome?;
    let copy = &outcome.copies[0];
    if copy.exit_code != Some(0) {
        return Err(format!("the command ended with {:?}", copy.exit_code).into());
    }
    Ok(Sample {
        wall: outcome.host.end_ns as f64,
        command: (copy.user_us + copy.system_us) as f64 * 1000.0,
        own: cpu_ns(&after) - cpu_ns(&before),
        events: outcome.host.nr_events,
        lost: outcome.host.nr_lost_events,
    })
}
