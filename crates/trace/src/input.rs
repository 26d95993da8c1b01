// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any trace that can be read. The first bytes determine its format and its reader, not its name.

#[cfg(feature = "parquet")]
use crate::parquet;
use crate::{Facts, Place, ReadError, Reader, WakeSource, ndjson, perf_data, text, trace_dat};
use schedlab_model::TraceSink;
use std::fs::File;
use std::io::Read;

/// Formats of traces that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFormat {
    /// schedlab's own log.
    Slt,
    /// JSON lines.
    Ndjson,
    /// Two Parquet tables. They are files with random access, not streams (`parquet::read`).
    Parquet,
    /// Text of ftrace, trace-cmd or perf.
    Text,
    /// perf.data, a file of `perf record`, or what it writes into a pipe.
    PerfData,
    /// trace.dat, a file of `trace-cmd record`; it is sought in ([`trace_dat::read`]).
    TraceDat,
    /// One JSON document: no trace, but perhaps a result.
    Json,
}

/// How many first bytes of a file [`detect`] needs.
pub const HEAD_LEN: usize = 4096;

/// Files that are no text and often given, with what to do.
const OTHERS: [(&[u8], &str); 5] = [
    (
        b"2ELIFREP",
        "a perf.data of a big-endian machine: give what `perf script -i FILE --ns` prints",
    ),
    (b"\x1f\x8b", "compressed with gzip: give what `zcat FILE` prints"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: give what `zstdcat FILE` prints"),
    (b"\xfd7zXZ", "compressed with xz: give what `xzcat FILE` prints"),
    (b"BZh", "compressed with bzip2: give what `bzcat FILE` prints"),
];

/// The format of a file that begins with these bytes.
pub fn detect(head: &[u8]) -> Result<InputFormat, String> {
    if head.starts_with(&crate::binary::MAGIC) {
        return Ok(InputFormat::Slt);
    }
    if head.starts_with(b"PAR1") {
        return Ok(InputFormat::Parquet);
    }
    if head.starts_with(perf_data::MAGIC) {
        return Ok(InputFormat::PerfData);
    }
    if head.starts_with(trace_dat::MAGIC) {
        return Ok(InputFormat::TraceDat);
    }
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(format!("it is {what}"));
    }
    if head.is_empty() {
        return Err("it is empty".into());
    }
    let text = head.trim_ascii_start();
    match text.first() {
        // A line of a trace is a whole object, and has a kind.
        Some(b'{') => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or(text);
            let is_whole = line.trim_ascii_end().ends_with(b"}") && line.len() < text.len();
            let is_line = is_whole && memchr::memmem::find(line, b"\"kind\"").is_some();
            Ok(if is_line { InputFormat::Ndjson } else { InputFormat::Json })
        }
        Some(b'[') => Ok(InputFormat::Json),
        _ if head.contains(&0) => {
            Err("its format is not known; known are perf.data, trace.dat, ftrace text, `trace-cmd \
             report`, `perf script`, .slt, .parquet and .ndjson"
                .into())
        }
        _ => Ok(InputFormat::Text),
    }
}

/// Where a trace is.
pub enum Source {
    /// In a file that can be read at any place, for perf.data and trace.dat.
    File(File),
    /// In the two files of a Parquet trace: slices or events, and tasks.
    Files([File; 2]),
    /// In a stream, for the other formats.
    Stream(Box<dyn Read>),
}

/// Reads a trace of this format to its end. `names`: as in [`text::read`].
///
/// Every reader is compiled here, once: a reader for the type of each sink would be compiled with
/// the crate that has the sink, and as many times.
pub fn read_source(
    format: InputFormat,
    source: Source,
    names: Vec<String>,
    sink: &mut dyn TraceSink,
) -> Result<Facts, ReadError> {
    match (format, source) {
        (InputFormat::PerfData, Source::File(file)) => perf_data::read(file, names, sink),
        (InputFormat::TraceDat, Source::File(file)) => trace_dat::read(file, names, sink),
        #[cfg(feature = "parquet")]
        (_, Source::Files([file, tasks])) => parquet::read(file, tasks, sink),
        #[cfg(not(feature = "parquet"))]
        (_, Source::Files(_)) => refuse("this build reads no Parquet"),
        (_, Source::File(file)) => read(format, file, names, sink),
        (_, Source::Stream(stream)) => read(format, stream, names, sink),
    }
}

fn refuse(what: &str) -> Result<Facts, ReadError> {
    Err(ReadError { place: Place::Byte(0), what: what.into() })
}

/// Reads a trace of this format from a stream to its end. `names`: as in [`text::read`].
pub fn read<R: Read, S: TraceSink + ?Sized>(
    format: InputFormat,
    source: R,
    names: Vec<String>,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    match format {
        InputFormat::Slt => read_log(source, sink),
        InputFormat::Ndjson => ndjson::read(source, sink),
        InputFormat::Text => text::read(source, names, sink),
        InputFormat::PerfData => perf_data::read_pipe(source, names, sink),
        InputFormat::TraceDat => refuse("a trace.dat is no stream: give the file"),
        InputFormat::Parquet => refuse("Parquet is two files: it cannot be read from a stream"),
        InputFormat::Json => refuse("this is one JSON document, no trace"),
    }
}

/// Reads schedlab's own log.
fn read_log<R: Read, S: TraceSink + ?Sized>(source: R, sink: &mut S) -> Result<Facts, ReadError> {
    let mut reader = Reader::new(source)?;
    let nr_cpus = reader.nr_cpus();
    let end_ns = reader.replay_into(sink)?;
    Ok(Facts {
        nr_cpus,
        is_nr_cpus_stated: true,
        nr_records: reader.nr_events() + u64::from(reader.nr_tasks()),
        nr_events: reader.nr_events(),
        nr_tasks: u64::from(reader.nr_tasks()),
        end_ns,
        is_own: true,
        wakes: WakeSource::Wakeup,
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use crate::{BinarySink, FtraceSink, NdjsonSink};
    use schedlab_model::trace::MemorySink;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for (head, want) in [
            (&b"\x89SLT\r\n\x1a\n\x01\0\0\0"[..], InputFormat::Slt),
            (b"PAR1....", InputFormat::Parquet),
            (b"{\"kind\":\"task\"}\n{", InputFormat::Ndjson),
            (b"{\n  \"schema_version\": 1", InputFormat::Json),
            (b"{\"measures\": 1}\n", InputFormat::Json),
            (b" [{\"a\": 1}]", InputFormat::Json),
            (b"# tracer: nop\n", InputFormat::Text),
            (b"cpus=2\n", InputFormat::Text),
            (b"PERFILE2....", InputFormat::PerfData),
            (b"\x17\x08\x44tracing6", InputFormat::TraceDat),
        ] {
            assert_eq!(detect(head), Ok(want));
        }
        for (head, word) in [
            (&b""[..], "empty"),
            (b"2ELIFREP....", "perf script"),
            (b"\x1f\x8b\x08", "zcat"),
            (b"\x7fELF\0\0", "its format is not known"),
        ] {
            assert!(detect(head).unwrap_err().contains(word));
        }
    }

    /// One trace in each stream format gives the same events and the same facts.
    #[test]
    fn every_format_says_the_same() {
        let what = Synthetic { seed: 12, nr_cpus: 3, nr_tasks: 20, nr_events: 3_000 };
        let (mut slt, mut ndjson) = (BinarySink::new(Vec::new(), 3), NdjsonSink::new(Vec::new()));
        let mut ftrace = FtraceSink::new(Vec::new()).with_cpus(3);
        what.play(&mut ((&mut slt, &mut ndjson), &mut ftrace));
        let files = [slt.finish().unwrap(), ndjson.finish().unwrap(), ftrace.finish().unwrap()];
        let read_one = |bytes: &Vec<u8>| {
            let format = detect(&bytes[..HEAD_LEN]).unwrap();
            let mut memory = MemorySink::default();
            let facts = read(format, &bytes[..], Vec::new(), &mut memory).unwrap();
            assert!(facts.is_own);
            (memory.events.len(), memory.end_ns, facts.nr_events, facts.nr_tasks, facts.nr_cpus)
        };
        let all = files.map(|bytes| read_one(&bytes));
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
        assert_eq!((all[0].3, all[0].4), (20, 3));
    }
}
