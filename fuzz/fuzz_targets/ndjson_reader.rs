// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of JSON lines: no input panics, and what it accepts is written and read again to the
//! same trace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_model::trace::MemorySink;
use schedlab_trace::{NdjsonSink, ndjson};

fuzz_target!(|data: &[u8]| {
    let (mut first, mut lines) = (MemorySink::default(), NdjsonSink::new(Vec::new()));
    if ndjson::read(data, &mut (&mut first, &mut lines)).is_err() {
        return;
    }
    let text = lines.finish().expect("what was read can be written");
    let mut second = MemorySink::default();
    ndjson::read(&text[..], &mut second).expect("and read again");
    assert_eq!((first.tasks, first.objects), (second.tasks, second.objects));
    assert_eq!((first.events, first.end_ns), (second.events, second.end_ns));
});
