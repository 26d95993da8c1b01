// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of perf.data, as a file and as a pipe: no input panics, and its events keep the rules
//! of the stream, so that the measures and the CPUs add up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_metrics::Collector;
use schedlab_metrics::cpu_use::CpuUse;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_trace::{BinarySink, Facts, ReadError, perf_data};
use std::io::Cursor;

type Sinks = (BinarySink<Vec<u8>>, (Collector, CpuUse));

fn check(read: impl FnOnce(&mut Sinks) -> Result<Facts, ReadError>) {
    let log = BinarySink::new(Vec::new(), NR_CPUS_MAX as u32);
    let mut sinks = (log, (Collector::new(2), CpuUse::default()));
    let Ok(facts) = read(&mut sinks) else { return };
    let (log, (collector, cpus)) = sinks;
    log.finish().expect("what was read can be written");
    collector.finish();
    for cpu in cpus.finish(facts.nr_cpus) {
        assert_eq!(cpu.busy_ns + cpu.idle_ns + cpu.unknown_ns, facts.end_ns);
    }
}

fuzz_target!(|data: &[u8]| {
    check(|sinks| perf_data::read(Cursor::new(data), Vec::new(), sinks));
    check(|sinks| perf_data::read_pipe(data, Vec::new(), sinks));
});
