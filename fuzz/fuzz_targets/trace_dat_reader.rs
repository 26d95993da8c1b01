// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of trace.dat: no input panics, and what it hands on keeps the
//! rules of the stream, so that the measures and the CPUs add up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_metrics::Collector;
use schedlab_metrics::cpu_use::CpuUse;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_trace::{BinarySink, Facts, ReadError, trace_dat};
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
    check(|sinks| trace_dat::read(Cursor::new(data), Vec::new(), sinks));
});
