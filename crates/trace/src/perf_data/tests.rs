// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::BinarySink;
use crate::Dialect;
use crate::tracepoint::testing::{Count, damage, read as read_by, read_text};
use schedlab_model::cpumask::NR_CPUS_MAX;
use std::io::Cursor;

/// `perf record -a -e sched:...` of the workload samples/recorded.json, made small by `--synth no
/// -N -B` and an empty /proc/kallsyms; and what `perf script --ns --show-lost-events` prints of it.
const FILE: &[u8] = include_bytes!("../../tests/samples/perf.data");
const TEXT: &[u8] = include_bytes!("../../tests/samples/perf-data.txt");
/// The same with `-z`, and with `-o -`.
#[cfg(feature = "zstd")]
const PACKED: &[u8] = include_bytes!("../../tests/samples/perf-z.data");
#[cfg(feature = "zstd")]
const PACKED_TEXT: &[u8] = include_bytes!("../../tests/samples/perf-z.txt");
const PIPE: &[u8] = include_bytes!("../../tests/samples/perf-pipe.data");
const PIPE_TEXT: &[u8] = include_bytes!("../../tests/samples/perf-pipe.txt");

fn same(file: &[u8], text: &[u8]) -> Facts {
    let (found, facts) =
        read_by(|sink| read(Cursor::new(file), Vec::new(), sink)).expect("it can be read");
    let wanted = read_text(text);
    assert!(wanted.events.len() > 50);
    for (found, wanted) in found.events.iter().zip(&wanted.events) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
    facts
}

#[test]
fn a_file_is_what_perf_script_prints() {
    let facts = same(FILE, TEXT);
    assert_eq!((facts.dialect, facts.is_nr_cpus_stated), (Some(Dialect::Perf), true));
    let (tasks, processes) = (facts.nr_tasks, facts.processes.len() as u64);
    assert!(processes > tasks / 2, "{processes} of {tasks} tasks have a process");
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_records_are_what_perf_script_prints() {
    same(PACKED, PACKED_TEXT);
}

#[test]
fn a_pipe_is_what_perf_script_prints() {
    same(PIPE, PIPE_TEXT);
    let (found, _) = read_by(|sink| read_pipe(PIPE, Vec::new(), sink)).unwrap();
    assert_eq!(found, read_text(PIPE_TEXT));
}

#[test]
fn what_cannot_be_read_is_said() {
    let mut unfinished = FILE.to_vec();
    unfinished[48..56].fill(0);
    let mut other = FILE.to_vec();
    other[8..16].copy_from_slice(&16u64.to_le_bytes());
    for (bytes, word) in [
        (&FILE[..50], "the file ends within"),
        (&FILE[..FILE.len() / 2], "the file ends within"),
        (&unfinished, "killed before it finished"),
        (&other, "record"),
    ] {
        let error = read(Cursor::new(bytes), Vec::new(), &mut Count::default()).unwrap_err();
        assert!(error.what.contains(word), "{error}");
    }
    let error = read_pipe(FILE, Vec::new(), &mut Count::default()).unwrap_err();
    assert!(error.what.contains("cannot be read from a pipe"), "{error}");
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
    damage(FILE, 3_000, |bytes| {
        nr_read += u32::from(keeps_the_rules(|log| read(Cursor::new(bytes), Vec::new(), log)));
    });
    assert!(nr_read > 100, "{nr_read} were read all the same");
    damage(PIPE, 2_000, |bytes| {
        keeps_the_rules(|log| read_pipe(bytes, Vec::new(), log));
    });
    #[cfg(feature = "zstd")]
    damage(PACKED, 1_000, |bytes| {
        keeps_the_rules(|log| read(Cursor::new(bytes), Vec::new(), log));
    });
}
