// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::BinarySink;
use crate::tracepoint::testing::{Count, damage, read as read_by, read_text};
use schedlab_model::cpumask::NR_CPUS_MAX;
use std::io::Cursor;

/// `trace-cmd record -e sched_...` with an empty /proc/kallsyms, and what `trace-cmd report -t`
/// prints of it: in version 6, and in version 7 with and without compression.
const V6: &[u8] = include_bytes!("../../tests/samples/trace-v6.dat");
const V6_TEXT: &[u8] = include_bytes!("../../tests/samples/trace-v6.txt");
const PLAIN: &[u8] = include_bytes!("../../tests/samples/trace-v7.dat");
const PLAIN_TEXT: &[u8] = include_bytes!("../../tests/samples/trace-v7.txt");
#[cfg(feature = "zstd")]
const PACKED: &[u8] = include_bytes!("../../tests/samples/trace-v7-zstd.dat");
#[cfg(feature = "zstd")]
const PACKED_TEXT: &[u8] = include_bytes!("../../tests/samples/trace-v7-zstd.txt");

fn same(file: &[u8], text: &[u8]) {
    let (found, facts) =
        read_by(|sink| read(Cursor::new(file), Vec::new(), sink)).expect("it can be read");
    let wanted = read_text(text);
    assert!(wanted.events.len() > 20);
    for (found, wanted) in found.events.iter().zip(&wanted.events) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
    assert_eq!((facts.dialect, facts.is_clock_unknown), (Some(Dialect::TraceCmd), false));
}

#[test]
fn version_6_is_what_trace_cmd_report_prints() {
    same(V6, V6_TEXT);
}

#[test]
fn version_7_is_what_trace_cmd_report_prints() {
    same(PLAIN, PLAIN_TEXT);
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_pages_are_what_trace_cmd_report_prints() {
    same(PACKED, PACKED_TEXT);
}

#[test]
fn what_cannot_be_read_is_said() {
    let mut version = V6.to_vec();
    version[10] = b'9';
    let mut order = V6.to_vec();
    order[12] = 1;
    for (bytes, word) in [
        (&V6[..50], "the file ends within"),
        (&V6[..V6.len() - 10_000], "the file ends within"),
        (&version, "version \"9\""),
        (&order, "big-endian"),
    ] {
        let error = read(Cursor::new(bytes), Vec::new(), &mut Count::default()).unwrap_err();
        assert!(error.what.contains(word), "{error}");
    }
}

/// Reads, and writes what was read to a log, which takes nothing that breaks the rules of the
/// stream. Whether it could be read.
fn keeps_the_rules(
    reader: impl FnOnce(&mut BinarySink<Vec<u8>>) -> Result<Facts, ReadError>,
) -> bool {
    let mut log = BinarySink::new(Vec::new(), NR_CPUS_MAX as u32);
    let is_read = reader(&mut log).is_ok();
    assert!(!is_read || log.finish().is_ok(), "what was read can be written");
    is_read
}

/// No damage makes the reader panic or break the rules of the stream.
#[test]
fn damaged_files_do_no_harm() {
    let mut nr_read = 0;
    for file in [V6, PLAIN] {
        damage(file, 2_000, |bytes| {
            nr_read += u32::from(keeps_the_rules(|log| read(Cursor::new(bytes), Vec::new(), log)));
        });
    }
    assert!(nr_read > 100, "{nr_read} were read all the same");
    #[cfg(feature = "zstd")]
    damage(PACKED, 1_000, |bytes| {
        keeps_the_rules(|log| read(Cursor::new(bytes), Vec::new(), log));
    });
}
