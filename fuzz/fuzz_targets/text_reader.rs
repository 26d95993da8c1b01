// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of ftrace, trace-cmd and perf text: no input panics, and what it hands on keeps the
//! rules of the stream, so that the log takes it and the measures, slices and CPUs add up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_metrics::Collector;
use schedlab_metrics::cpu_use::CpuUse;
use schedlab_model::TraceSink;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_trace::{BinarySink, Reader, Slice, SliceSink, TraceCheck, text};

fuzz_target!(|data: &[u8]| {
    let mut log = BinarySink::new(Vec::new(), NR_CPUS_MAX as u32);
    let mut others = (
        (TraceCheck::new(), (Collector::new(2), CpuUse::default())),
        SliceSink::new(|slice: Slice| assert!(slice.start_ns <= slice.end_ns)),
    );
    let Ok(facts) = text::read(data, Vec::new(), &mut (&mut log, &mut others)) else { return };
    let bytes = log.finish().expect("what was read can be written");
    let mut again = (Collector::new(2), CpuUse::default());
    let end_ns = Reader::new(&bytes[..]).unwrap().replay(&mut again).expect("and read again");
    assert_eq!(end_ns, facts.end_ns);
    let (collector, cpus) = others.0.1;
    assert_eq!(again.0.finish(), collector.finish());
    for cpu in cpus.finish(facts.nr_cpus) {
        assert_eq!(cpu.busy_ns + cpu.idle_ns + cpu.unknown_ns, end_ns);
    }
    again.1.end(end_ns);
});
