// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of the trace log: no input panics, and what it accepts comes out of the writer again
//! byte for byte (there is one way to write a trace), while the checker, the slices and the
//! measures take it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_metrics::Collector;
use schedlab_model::TraceSink;
use schedlab_trace::{BinarySink, Place, Reader, Record, Slice, SliceSink, TraceCheck};

fuzz_target!(|data: &[u8]| {
    let Ok(reader) = Reader::new(data) else { return };
    let nr_cpus = reader.nr_cpus();
    let mut log = BinarySink::new(Vec::new(), nr_cpus);
    let mut others = (
        (TraceCheck::with_moves(), Collector::new(nr_cpus)),
        SliceSink::new(|slice: Slice| assert!(slice.start_ns <= slice.end_ns)),
    );
    for record in reader {
        match record {
            Ok(Record::Task(id, info)) => (&mut log, &mut others).task(id, &info),
            Ok(Record::Object(id, info)) => (&mut log, &mut others).object(id, &info),
            Ok(Record::Event(event)) => (&mut log, &mut others).event(&event),
            Ok(Record::End(end_ns)) => {
                (&mut log, &mut others).end(end_ns);
                let written = log.finish().expect("what was read can be written");
                // The writer writes the latest version only.
                if data[8..10] == written[8..10] {
                    assert_eq!(written, data, "the log was read as another");
                }
                let _ = others.0.1.finish();
                return;
            }
            Err(error) => {
                assert!(matches!(error.place, Place::Byte(at) if at <= data.len() as u64));
                return;
            }
        }
    }
    panic!("a log ends with an end record or an error");
});
