// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs that `cargo xtask wasm` compares between this machine and wasm32: every built-in
//! workload under every scheduler of the registry. Each run is one line with the digests of its
//! trace and of its measures. Then come the requests of tests/requests, each with the digests of
//! its result and of its events: these must also be those of tests/requests/digests.txt.

use schedlab_core::{Keep, Request};
use schedlab_engine::{SimConfig, simulate};
use schedlab_metrics::Collector;
use schedlab_model::{Machine, Nanos, Workload};
use schedlab_sched::Scheduler;
use schedlab_sched::boundary::options::Options;
use schedlab_sched::registry::SCHEDULERS;
use schedlab_trace::BinarySink;
use schedlab_workload::{BUILTINS, builtin};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Sizes of the machines (CPUs): one where tasks wait for each other, one with balancing.
const MACHINES: [u32; 2] = [1, 3];
/// End of each run.
const UNTIL_NS: Nanos = 100_000_000;

/// One line for each run: workload, scheduler, CPUs, digest of the trace, digest of the measures,
/// or why the scheduler refuses the workload.
pub fn digests() -> String {
    let mut text = String::new();
    for entry in BUILTINS {
        let workload = builtin(entry.name, &[]).expect("the defaults are allowed");
        for scheduler in SCHEDULERS.iter() {
            for cpus in MACHINES {
                let run = run(&workload, scheduler, cpus).unwrap_or_else(|refusal| refusal);
                writeln!(text, "{} {} {cpus}: {run}", entry.name, scheduler.name)
                    .expect("a string takes everything");
            }
        }
    }
    text
}

/// The requests that the command line, wasm and Python run alike.
const REQUESTS: &str = include_str!("../../requests/requests.jsonl");
/// Their digests, as the command line gives them.
pub const DIGESTS: &str = include_str!("../../requests/digests.txt");

/// One line for each request: the digests of its result and of its events, or its error.
pub fn request_digests() -> String {
    REQUESTS.lines().map(|line| request_digest(line) + "\n").collect()
}

fn request_digest(line: &str) -> String {
    let keep = Keep { digest: true, ..Keep::default() };
    let outcome = Request::from_json(line)
        .and_then(|request| schedlab_core::simulate(&Request { keep, ..request }));
    match outcome {
        Ok(outcome) => {
            let digest = outcome.digest.unwrap_or_default();
            format!("{} {}", digest.result, digest.events)
        }
        Err(error) => format!("{}: {}", error.kind.name(), error.one_line()),
    }
}

fn run(workload: &Workload, scheduler: &Scheduler, cpus: u32) -> Result<String, String> {
    let machine = Machine::flat(cpus);
    let options = Options::defaults(&scheduler.tunables);
    let config = SimConfig {
        machine: &machine,
        scheduler,
        options: &options,
        seed: 1,
        until_ns: Some(UNTIL_NS),
        watchdog_ns: None,
    };
    let mut sinks = (BinarySink::new(Vec::new(), cpus), Collector::new(cpus));
    simulate(workload, &config, &mut sinks, None).map_err(|error| error.to_string())?;
    let trace = sinks.0.finish().map_err(|error| error.to_string())?;
    let measures = serde_json::to_vec(&sinks.1.finish()).map_err(|error| error.to_string())?;
    Ok(format!("{} {}", digest(&trace), digest(&measures)))
}

/// The first half of the SHA-256 of `bytes`.
fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of [`digests`] and of [`request_digests`] for the caller outside: its address in the
/// upper 32 bits, its length in the lower ones.
#[cfg(target_arch = "wasm32")]
#[unsafe(no_mangle)]
pub extern "C" fn digests_text() -> u64 {
    let text = (digests() + &request_digests()).leak();
    (text.as_ptr() as u64) << 32 | text.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_digests_of_the_command_line() {
        let found = request_digests();
        for (number, (found, wanted)) in found.lines().zip(DIGESTS.lines()).enumerate() {
            assert_eq!(found, wanted, "request {}", number + 1);
        }
        assert_eq!(found.lines().count(), 200);
    }

    #[test]
    fn a_run_is_known_by_its_trace_and_by_its_measures() {
        let workload = builtin("hogs", &[]).unwrap();
        let of = |name| run(&workload, schedlab_sched::registry::find(name).unwrap(), 1).unwrap();
        assert_eq!(of("rr"), of("rr"));
        assert_ne!(of("rr"), of("linux-7.2"));
        assert_eq!(digest(b""), "e3b0c44298fc1c149afbf4c8996fb924");
    }
}
